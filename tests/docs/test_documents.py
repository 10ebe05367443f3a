"""Documents match the code: links lead somewhere, commands and exit codes are described."""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from judge import errors
from judge.cli.main import COMMANDS
from judge.cli.main import judge as judge_command
from judge.core.verdict import Verdict
from tests.conftest import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
COMMANDS_PAGE = (REPOSITORY / "docs" / "commands.md").read_text(encoding="utf-8")
RESULTS_PAGE = (REPOSITORY / "docs" / "results.md").read_text(encoding="utf-8")
FOLDERS = [  # environments of Python, which are hidden, hold ten thousand others
    path
    for path in REPOSITORY.iterdir()
    if path.is_dir() and not path.name.startswith(".") and path.name != "results"
]
DOCUMENTS = sorted(
    path
    for path in (*REPOSITORY.glob("*.md"), *(each for top in FOLDERS for each in top.rglob("*.md")))
    if not any(
        part.startswith(".") or part == "results" for part in path.parts[len(REPOSITORY.parts) :]
    )
)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_relative_links_lead_to_existing_files(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text)
    missing = [link for link in links if not (path.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_on_its_page_and_says_what_it_does(name: str) -> None:
    assert f"judge {name}" in COMMANDS_PAGE, f"docs/commands.md does not describe judge {name}"
    module, attribute, line = COMMANDS[name]
    command = getattr(importlib.import_module(module), attribute)
    assert isinstance(command, click.Command)
    assert command.help
    assert line.endswith(".")


def test_every_extra_is_in_the_table_and_hints_name_only_extras_that_exist() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"]) - {"pandas"}  # kept for old commands, and empty
    index = (REPOSITORY / "docs" / "index.md").read_text(encoding="utf-8")
    table = index.split("| extra | for |")[1].split("\n\n")[0]
    first_cells = [line.split("|")[1] for line in table.splitlines()[2:] if line]
    assert set(re.findall("`(.+?)`", "".join(first_cells))) == extras
    hints = {
        extra
        for path in (REPOSITORY / "judge").rglob("*.py")
        for extra in re.findall(r'how_to_install\("(.+?)"\)', path.read_text(encoding="utf-8"))
    }
    assert hints
    assert hints <= extras


def test_every_exit_code_is_described() -> None:
    section = COMMANDS_PAGE.split("## Exit codes")[1].split("\n## ")[0]
    codes = {
        error.exit_code
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, errors.JudgeError)
    } | {errors.INTERRUPTED_EXIT_CODE}
    described = {int(number) for number in re.findall(r"(?:\| |, )(\d+)(?=[, ])", section)}
    assert codes <= described


def test_every_verdict_is_described() -> None:
    table = RESULTS_PAGE.split("## Verdicts")[1].split("## ")[0]
    assert all(re.search(rf"\b{verdict.value}\b", table) for verdict in Verdict)


def _typed(page: str) -> Iterator[list[str]]:
    """Returns the judge's commands in the code blocks of a page, split into words."""
    for block in re.findall(r"^```(?:bash|sh)?\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        for line in block.replace("\\\n", " ").splitlines():
            said = line.split("  #")[0].strip()
            if said.startswith("judge ") and "…" not in said:
                yield re.sub(r"[|>;&].*", "", said).split()[1:]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_the_options_in_documents_exist(path: Path) -> None:
    for words in _typed(path.read_text(encoding="utf-8")):
        command: click.Command = judge_command
        for word in words:
            if not isinstance(command, click.Group) or word.startswith("-"):
                break
            found = command.get_command(click.Context(command), word)
            if found is None:  # `judge annotate SUITE TASK`, or a word that stands for a command
                break
            command = found
        known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
        known |= {"--help", "-h", "--version"}
        if command.name == "annotate":
            continue
        named = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert named <= known, f"judge {' '.join(words)}: {', '.join(sorted(named - known))}"


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 150


ARCHITECTURE = (REPOSITORY / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_the_architecture_page_names_files_that_exist() -> None:
    names = re.findall(r"`([a-z_]+(?:/[a-z_.]+)*(?:\.py|/))`", ARCHITECTURE)
    missing = [
        name
        for name in names
        if not (REPOSITORY / "judge" / name).exists() and not (REPOSITORY / name).exists()
    ]
    assert names
    assert missing == []


def test_the_architecture_page_shows_every_room() -> None:
    """The diagram shows the layers that the import linter enforces."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    layers = next(
        contract["layers"]
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers" and contract["containers"] == ["judge"]
    )
    packages = {package.strip() for layer in layers for package in layer.split("|")}
    drawing = re.search(r"```\n(.*?)```", ARCHITECTURE, re.DOTALL)
    assert drawing is not None
    drawn = set(re.findall(r"[a-z_]+", drawing[1]))
    assert packages <= drawn, f"not in the drawing: {', '.join(sorted(packages - drawn))}"
