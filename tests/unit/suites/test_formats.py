from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from judge.annotate.casebook import Casebook
from judge.core.submission import AnswerForm
from judge.core.task import CaseInput, FileKind, InputFile, TaskQuestion
from judge.errors import SuiteError, UsageError
from judge.suites import formats, load_suite
from judge.suites.formats import (
    Contents,
    FileRole,
    definition_names,
    format_named,
    is_output_name,
    register,
    suite_formats,
    unregister,
)
from judge.suites.own_format import FORMAT as OWN
from judge.suites.own_format import OwnFormat
from judge.suites.spreadsheetbench import FORMAT as SPREADSHEETBENCH
from judge.suites.submission_lines import solution_paths


class Empty(OwnFormat):
    """A format whose suites never have a task."""

    names = ("empty", "hollow")
    definition = "empty.txt"

    def recognises(self, root: Path) -> bool:
        return (root / "empty.txt").is_file()

    def load(self, root: Path) -> Contents:
        return Contents(format="empty", tasks=())


@pytest.fixture
def empty() -> Iterator[Empty]:
    added = Empty()
    register(added)
    yield added
    unregister("empty")


def test_formats_are_found_by_every_name() -> None:
    assert format_named("spreadsheetbench-v0.1") is SPREADSHEETBENCH
    assert format_named("spreadsheetbench-verified") is SPREADSHEETBENCH
    assert format_named("sheetjudge-v1") is OWN
    with pytest.raises(UsageError, match="no suite format 'other'"):
        format_named("other")


def test_the_table_of_formats_has_the_names_of_each() -> None:
    assert [row.load().names for row in formats.FORMATS] == [row.names for row in formats.FORMATS]
    definitions = [row.load().definition for row in formats.FORMATS]
    assert definitions == [row.definition for row in formats.FORMATS]


def test_one_row_makes_a_format_of_a_module(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A suite in another module's format is loaded and named because of one row alone."""
    (tmp_path / "order.json").write_text('{"a1": "Sort the sheets by name."}')
    for name in ("input", "gold"):
        (tmp_path / "a1").mkdir(exist_ok=True)
        (tmp_path / "a1" / f"{name}.xlsx").write_bytes(b"workbook")
    with pytest.raises(SuiteError, match="is not a suite"):
        load_suite(tmp_path)
    row = formats.Row(("folders",), "order.json", "tests.e2e.toy.folders:FORMAT")
    monkeypatch.setattr(formats, "FORMATS", (*formats.FORMATS, row))
    for source in (tmp_path, tmp_path / "order.json"):
        suite = load_suite(source)
        assert (suite.format, [task.id for task in suite.tasks]) == ("folders", ["a1"])
    assert suite.suite_format is row.load()
    assert "order.json" in definition_names()


def test_formats_of_other_suites_are_not_imported() -> None:
    """A user's own suite needs only the judge's format, and its record names that format again."""
    program = """
import sys
from judge.suites import formats, load_suite
load_suite("sample").suite_format
print([name for name in sys.modules if name.startswith("judge.suites.")])
"""
    command = [sys.executable, "-c", program]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "'judge.suites.spreadsheetbench'" in loaded
    others = ("own_format", "babelbench", "spreadsheetbench2", "dabench", "desktop", "sheetcopilot")
    assert [name for name in others if f"'judge.suites.{name}" in loaded] == []


def test_a_format_comes_and_goes(empty: Empty, tmp_path: Path) -> None:
    assert format_named("hollow") is empty
    assert list(suite_formats()).count(empty) == 1
    assert "empty.txt" in definition_names()
    (tmp_path / "empty.txt").touch()
    with pytest.raises(SuiteError) as caught:
        load_suite(tmp_path)
    assert caught.value.faults == ("empty.txt: a suite needs at least one task",)
    unregister("hollow")
    with pytest.raises(SuiteError, match=r"holds no dataset\.json or suite\.json, and no file"):
        load_suite(tmp_path)


def test_names_and_definitions_are_not_taken_twice(
    empty: Empty, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(empty)  # the same once more changes nothing
    with pytest.raises(UsageError, match="a suite format 'empty' already"):
        register(Empty())
    with monkeypatch.context() as patched:  # it is taken back by its own names afterwards
        patched.setattr(Empty, "names", ("another",))
        patched.setattr(Empty, "definition", "dataset.json")
        with pytest.raises(UsageError, match=r"defined by a dataset\.json already"):
            register(Empty())


def test_names_of_outputs() -> None:
    assert SPREADSHEETBENCH.output_of("2_7-1_Output .xlsx") == ("7-1", 2)
    assert SPREADSHEETBENCH.output_of("2_7-1_output.csv") is None
    assert OWN.output_of("2_7-1_output.csv") == ("7-1", 2)
    assert OWN.output_of("7-1_output.csv") is None
    assert is_output_name("1_q_output.txt")
    assert not is_output_name("1_q_input.xlsx")


def test_paths_follow_the_files_of_a_task() -> None:
    table = InputFile(Path("/suite/rates.csv"), FileKind.TABLE)
    question = TaskQuestion("q", "Sum.", "Sum", {}, AnswerForm.TEXT, (CaseInput(1, (table,)),))
    default = solution_paths(question, None, OWN)
    assert default.input_path == "/mnt/data/input/1_q_input.csv"
    assert default.output_path == "/mnt/data/output/1_q_output.txt"
    prompt = "Read /data/q_input.csv and write `/data/1_q_output.json`."
    asked = solution_paths(question, None, OWN, conversation=[prompt])
    assert (asked.input_path, asked.output_path) == ("/data/q_input.csv", "/data/1_q_output.json")
    assert OWN.role_of("1_qq_input.csv", "q") is None
    assert OWN.role_of("q_output.csv", "q") is FileRole.OUTPUT


def test_formats_travel_to_other_processes() -> None:
    for each in suite_formats():
        assert pickle.loads(pickle.dumps(each)).names == each.names


def test_cases_of_a_suite_json_are_added_there(tmp_path: Path) -> None:
    for name in ("in.xlsx", "gold.xlsx"):
        (tmp_path / name).write_bytes(b"bytes")
    (tmp_path / "suite.json").write_text(
        '{"format": "sheetjudge", "version": 1, "tasks": [{"id": "q", "instruction": "Sum.", '
        '"kind": "Sum", "checker": {"name": "cell_range", "options": {"answer_position": "B1"}}, '
        '"cases": [{"inputs": ["in.xlsx"], "golds": ["gold.xlsx"]}]}]}'
    )
    book = Casebook(tmp_path)
    assert book.case("q", 1).gold == b"bytes"
    with pytest.raises(UsageError, match=r"cases are added in suite\.json"):
        book.begin("q", "ada")
    draft = book.begin("q", "ada", replace=1)
    saved = book.save(draft, b"new input", b"new gold", {})
    assert saved.gold_path.read_bytes() == b"new gold"
