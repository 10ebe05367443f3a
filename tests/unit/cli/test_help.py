"""Help pages: every option is in a section, every command has an example that can be typed."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from judge.cli.groups import account, admin, board, dataset, keys, phase, suite
from judge.cli.help import FIRST, MAX_FLAT, OTHER, LazyGroup, page_of, sections_of
from judge.cli.main import COMMANDS_BY_TITLE, judge
from judge.core.option import Section
from judge.errors import did_you_mean
from judge.suites import load_suite
from judge.suites.suite import SHIPPED
from tests.conftest import Snapshot

FILES = (
    *("solutions.jsonl", "posts.jsonl", "solution.py", "right.py", "rules.json", "question.txt"),
    *("gold.xlsx", "output.xlsx", "input.xlsx", "case.xlsx", "suspects.json", "decisions.csv"),
    "results/mine/audit.xlsx",
    *("judge.tar", "checklist.json", "program.py", "marks.json"),
)
FOLDERS = (
    "results/mine",
    "results/a",
    "results/b",
    "jobs",
    "mysuite",
    "my-suite",
    "keys",
    "tests",
    "outputs",
    "eval/scores/MODEL/RUN",
)


def _walk(command: click.Command, path: str = "") -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from _walk(child, f"{path} {name}".strip())


COMMANDS = dict(_walk(judge))
PAGES = {path: page_of(command) for path, command in COMMANDS.items()}


def _options(command: click.Command) -> set[str]:
    return {each.name or "" for each in command.params if isinstance(each, click.Option)}


def test_every_command_has_a_page_and_every_page_a_command() -> None:
    assert PAGES.keys() == COMMANDS.keys()


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_is_in_one_section(path: str) -> None:
    command, page = COMMANDS[path], PAGES[path]
    sections = sections_of(command)
    shown = [each.name for options in sections.values() for each in options]
    assert sorted(map(str, shown)) == sorted(_options(command))
    assert OTHER not in sections, f"judge {path}: these options do not say their section"
    first = page.first.split()
    assert len(first) <= 10
    assert set(first) <= _options(command)
    if len(_options(command)) > MAX_FLAT:
        assert [each.name for each in sections[FIRST]] == first
        assert first


def test_every_section_is_used() -> None:
    shown = {title for path, command in COMMANDS.items() for title in sections_of(command)}
    assert shown >= set(Section)


def test_every_command_is_in_the_overview() -> None:
    shown = CliRunner().invoke(judge, ["--help"], prog_name="judge").output
    named = re.findall(r"^  ([a-z][a-z-]+)  ", shown, re.MULTILINE)
    assert sorted(named) == sorted(judge.list_commands(click.Context(judge)))


TOY = '''
import click
from judge.cli.help import HelpCommand
from judge.cli.options import json_option

@click.command(cls=HelpCommand, examples=("toy a b",))
@click.argument("words", nargs=-1)
@json_option("the number")
def toy(words, as_json):
    """Count WORDS."""
    click.echo(f"[{len(words)}]" if as_json else len(words))
'''


def test_a_command_is_a_module_and_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toy_command.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path)
    row = ("toy_command", "toy", "Count words.")
    monkeypatch.setitem(COMMANDS_BY_TITLE["Workbooks"], "toy", row)

    def call(*words: str) -> str:
        done = CliRunner().invoke(judge, [*words], prog_name="judge")
        assert done.exit_code == 0, done.output
        return done.output

    assert re.search(r"^  toy +Count words\.$", call("--help"), re.MULTILINE)
    assert "Examples:\n  judge toy a b\n" in call("toy", "--help")
    assert (call("toy", "a", "b"), call("toy", "--json")) == ("2\n", "[0]\n")


def _parse(words: list[str]) -> str:
    """Parses a command line as the judge does, without running it; returns the command's path."""
    return _parsed(words)[0]


def _parsed(words: list[str]) -> tuple[str, dict[str, Any]]:
    """The path of the command of a command line, and the values of its parameters."""
    command: click.Command = judge
    context = judge.make_context("judge", [*words])
    path: list[str] = []
    while isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        if not rest and command.invoke_without_command:
            break
        name, child, rest = command.resolve_command(context, rest)
        assert child is not None
        path.append(str(name))
        context, command = child.make_context(name, rest, parent=context), child
    return " ".join(path), context.params


def _work_where_examples_do(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the files and folders that examples name, and works in their folder."""
    monkeypatch.chdir(folder)
    for name in FOLDERS:
        Path(name).mkdir(parents=True)
    for name in FILES:
        Path(name).touch()


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_has_examples_that_parse(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _work_where_examples_do(tmp_path, monkeypatch)
    assert PAGES[path].examples
    for example in PAGES[path].examples:
        assert len(f"  judge {example}") <= 80
        assert _parse(shlex.split(example)).startswith(path)
    if path:
        assert any(_parse(shlex.split(each)) == path for each in PAGES[path].examples) or (
            isinstance(COMMANDS[path], click.Group)
        )


def test_the_examples_name_tasks_that_the_sample_suites_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _work_where_examples_do(tmp_path, monkeypatch)
    named = []
    for page in PAGES.values():
        for example in page.examples:
            _, values = _parsed(shlex.split(example))
            suite, task = values.get("dataset") or values.get("suite"), values.get("task")
            if suite in SHIPPED and task is not None:
                named.append(task)
                assert load_suite(suite).task(task), example
    assert {"1001", "profit"} <= set(named)


@pytest.mark.parametrize("path", COMMANDS)
def test_help_shows_sections_and_examples(path: str) -> None:
    result = CliRunner().invoke(judge, [*path.split(), "--help"], prog_name="judge")
    assert result.exit_code == 0, result.output
    for example in PAGES[path].examples:
        assert f"  judge {example}\n" in result.output
    for title in sections_of(COMMANDS[path]):
        assert f"\n{title}:\n" in result.output
    assert result.output.index("Examples:") < result.output.index("--help")
    starts = {len(each) for each in re.findall(r"^(  -.*?  +)\S", result.output, re.MULTILINE)}
    assert len(starts) <= 1, "the texts of options begin in one column"


def test_help_pages_are_as_recorded(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    # What a default takes from this machine is in no page of its own accord.
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    # A command keeps the option --help of its first call, which may have been without its group.
    for _, command in _walk(judge):
        command._help_option = None
    pages = [
        CliRunner().invoke(judge, [*path.split(), "--help"], prog_name="judge").output
        for path in sorted(COMMANDS)
    ]
    snapshot("help.txt", "\n".join(pages))


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("scroe", "score"),
        ("dataset lst", "list"),
        ("score results --profile standrad", "standard"),
        ("infer --mode mutli", "multi"),
        ("score results --datset x", "--dataset"),
    ],
)
def test_a_misspelt_word_is_answered_with_the_right_one(words: str, meant: str) -> None:
    result = CliRunner().invoke(judge, words.split(), prog_name="judge")
    assert result.exit_code == 2
    assert re.search(rf"[Dd]id you mean .*{meant}", result.output), result.output


def test_nothing_is_suggested_for_what_is_near_to_nothing() -> None:
    assert did_you_mean("xylophone", ["score", "run"]) == ""
    assert did_you_mean("SCORE", ["score", "run"], before=" ") == " Did you mean score?"


@pytest.mark.parametrize("group", [dataset, admin, account, suite, phase, board, keys])
def test_a_group_says_of_a_command_what_its_own_help_says_first(group: LazyGroup) -> None:
    context = click.Context(group)
    for name, (_, _, line) in group.lazy.items():
        command = group.get_command(context, name)
        assert command is not None
        assert command.get_short_help_str(200) == line
