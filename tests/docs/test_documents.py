"""Documents keep up with the code: links lead somewhere, commands and exit codes are described."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import click
import pytest

from judge import errors
from judge.cli.main import COMMANDS
from judge.core.verdict import Verdict
from tests.conftest import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
DOCUMENTS = sorted(
    path
    for path in REPOSITORY.rglob("*.md")
    if not any(
        part.startswith(".") or part == "results" for part in path.parts[len(REPOSITORY.parts) :]
    )
)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_relative_links_lead_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text)
    missing = [link for link in links if not (path.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_readme_and_says_what_it_does(name: str) -> None:
    assert f"judge {name}" in README
    module, attribute, line = COMMANDS[name]
    command = getattr(importlib.import_module(module), attribute)
    assert isinstance(command, click.Command)
    assert command.help
    assert line.endswith(".")


def test_every_exit_code_is_in_the_readme() -> None:
    section = README.split("### Exit codes")[1].split("\n## ")[0]
    codes = {
        error.exit_code
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, errors.JudgeError)
    } | {errors.INTERRUPTED_EXIT_CODE}
    described = {int(number) for number in re.findall(r"(?:^|[;\s])(\d+)\s", section)}
    assert codes <= described


def test_every_verdict_is_in_the_readme() -> None:
    table = README.split("### Verdicts")[1].split("###")[0]
    assert all(re.search(rf"\b{verdict.value}\b", table) for verdict in Verdict)
