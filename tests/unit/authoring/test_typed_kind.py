"""Suites of questions with typed answers are written with the same commands as others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from judge.authoring.draft import SuiteDraft
from judge.cli.main import judge
from judge.core.submission import AnswerForm
from judge.core.task import FileKind
from judge.errors import SuiteError, UsageError
from judge.suites import load_suite
from judge.suites.validate import validate_suite

Run = Callable[..., Result]
QUESTION = 'How many are there, and how long is the mean? {"count": ..., "mean": ..., "names": ...}'


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("JUDGE_AUTHOR", raising=False)
    return lambda *args: CliRunner().invoke(judge, ["dataset", *map(str, args)])


@pytest.fixture
def inputs(tmp_path: Path) -> list[Path]:
    table, picture = tmp_path / "rivers.csv", tmp_path / "map.png"
    table.write_text("river,km\nOder,866\n")
    picture.write_bytes(b"\x89PNG\r\n\x1a\nmore")
    return [table, picture]


@pytest.fixture
def suite(run: Run, tmp_path: Path, inputs: list[Path]) -> Path:
    folder = tmp_path / "mine"
    assert run("new", folder, "--kind", "typed", "--by", "Ann").exit_code == 0
    done = run(
        *("add-task", folder, "7", "--instruction", QUESTION, "--kind", "Rivers", "--by", "Ann"),
        *("--input", inputs[0], "--input", inputs[1], "--group", "difficulty=easy"),
        *("--answer", "count=12", "--answer", "mean=866.5", "--tolerance", "mean=0.01"),
        *("--answer", 'names=["Oder", "Elbe"]', "--match", "names=any_order"),
    )
    assert done.exit_code == 0, done.output
    return folder


def refused(done: Result) -> str:
    """Returns the message of a command that failed."""
    assert isinstance(done.exception, UsageError | SuiteError), done.output
    return " ".join([done.exception.message, *getattr(done.exception, "faults", ())])


def test_a_question_is_added_with_its_files_and_variables(
    run: Run, suite: Path, inputs: list[Path]
) -> None:
    task = load_suite(suite).task("7")
    assert (task.answer, task.kind, task.raw_id) == (AnswerForm.TEXT, "Rivers", 7)
    assert task.groups == {"difficulty": "easy"}
    assert [each.kind for each in task.cases[0].inputs] == [FileKind.TABLE, FileKind.IMAGE]
    assert task.cases[0].inputs[0].path.read_bytes() == inputs[0].read_bytes()
    assert task.checker.options["variables"] == {
        "count": {"type": "int"},
        "mean": {"type": "float", "tolerance": 0.01},
        "names": {"type": "list", "match": "any_order"},
    }
    assert task.cases[0].golds[0].value == {"count": 12, "mean": 866.5, "names": ["Oder", "Elbe"]}
    assert validate_suite(load_suite(suite)) == []
    shown = run("review", suite)
    assert "draft" in shown.output
    assert "non-standard" not in shown.output


def test_two_reviewers_then_an_edit_then_export(run: Run, suite: Path, tmp_path: Path) -> None:
    assert "cannot review" in refused(
        run("review", suite, "7", "--state", "checked", "--by", "Ann")
    )
    assert run("review", suite, "7", "--state", "checked", "--by", "Bob").exit_code == 0
    assert run("review", suite, "7", "--state", "accepted", "--by", "Cat").exit_code == 0
    out = tmp_path / "out.tar.gz"
    assert run("export", suite, out).exit_code == 0
    exported, written = load_suite(out), load_suite(suite)
    assert exported.task("7").cases[0].golds == written.task("7").cases[0].golds
    assert [each.path.name for each in exported.task("7").cases[0].inputs] == [
        "rivers.csv",
        "map.png",
    ]
    notes = json.loads((exported.root / "annotations.jsonl").read_text())
    assert (notes["state"], notes["reviewers"]) == ("accepted", ["Bob", "Cat"])
    done = run("edit-task", suite, "7", "--answer", "count=13", "--by", "Ann")
    assert "changed since" in done.output
    changed = load_suite(suite).task("7")
    assert changed.cases[0].golds[0].value == {
        "count": 13, "mean": 866.5, "names": ["Oder", "Elbe"]
    }  # fmt: skip
    assert changed.checker == written.task("7").checker


def test_all_variables_in_a_file(run: Run, suite: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "count: {type: text, match: one_of, answer: ['12', twelve]}\n"
        "sum: {type: expression, operands: [1, 2], answer: 1 + 2}\n"
    )
    done = run("edit-task", suite, "7", "--variables", rules, "--by", "Ann")
    assert done.exit_code == 0, done.output
    assert "does not name 'sum'" in done.output
    task = load_suite(suite).task("7")
    assert task.cases[0].golds[0].value == {"count": ["12", "twelve"], "sum": "1 + 2"}
    assert task.checker.options["variables"] == {
        "count": {"type": "text", "match": "one_of"},
        "sum": {"type": "expression", "operands": [1, 2]},
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--instruction", "Which?"), "has no variable"),
        (("--answer", "a=1"), "the instruction is empty"),
        (("--instruction", "Which?", "--answer", "a"), "must be NAME=VALUE"),
        (("--instruction", "Which?", "--answer", "a=x", "--type", "a=int"), "a whole number"),
        (("--instruction", "Which?", "--answer", "a=1", "--type", "a=whole"), "must be one of"),
        (("--instruction", "Which?", "--answer", "a=1", "--tolerance", "a=b"), "must be a number"),
        (("--instruction", "Which?", "--answer", "a=1", "--position", "A1"), "--position"),
        (("--instruction", "Which?", "--type", "a=int"), "has no value"),
    ],
)
def test_what_cannot_be_judged_is_refused(
    run: Run, suite: Path, options: tuple[str, ...], said: str
) -> None:
    before = (suite / "suite.json").read_bytes()
    done = run("add-task", suite, "8", *options, "--by", "Ann")
    assert said in refused(done)
    assert (suite / "suite.json").read_bytes() == before
    assert [each.name for each in (suite / "files").iterdir()] == ["7"]


def test_options_of_a_typed_answer_mean_nothing_for_workbooks(run: Run, tmp_path: Path) -> None:
    draft = SuiteDraft.create(tmp_path / "books", by="Ann")
    done = run("add-task", draft.root, "8", "--answer", "a=1", "--by", "Ann")
    assert "--answer" in refused(done)
