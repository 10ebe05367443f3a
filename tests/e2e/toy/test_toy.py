"""A checker and a suite format, one file each, work everywhere without any other change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openpyxl
import pytest

import judge
from judge.compare import registry as checkers
from judge.errors import UsageError
from judge.suites import formats
from tests.e2e.conftest import require_backend
from tests.e2e.toy.folders import FORMAT
from tests.e2e.toy.sheet_order import CHECKER

PROGRAM = """
import openpyxl
book = openpyxl.load_workbook("/mnt/data/{id}.in.xlsx")
book._sheets.sort(key=lambda sheet: sheet.title, reverse={backwards})
book.save("/mnt/data/{id}.out.xlsx")
"""
SHEETS = ("Sales", "Costs", "Notes")


def workbook(path: Path, *names: str) -> None:
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for name in names:
        book.create_sheet(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    book.save(path)


@pytest.fixture(autouse=True)
def toys() -> Iterator[None]:
    checkers.register(CHECKER)
    formats.register(FORMAT)
    yield
    checkers.unregister(CHECKER.name)
    formats.unregister(FORMAT.names[0])


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    root = tmp_path / "suite"
    for task_id in ("a1", "a2", "b1"):
        workbook(root / task_id / "input.xlsx", *SHEETS)
        workbook(root / task_id / "gold.xlsx", *sorted(SHEETS))
    questions = dict.fromkeys(("a1", "a2", "b1"), "Sort the sheets by name.")
    (root / "order.json").write_text(json.dumps(questions))
    return root


@pytest.fixture
def solutions(tmp_path: Path) -> Path:
    path = tmp_path / "solutions.jsonl"
    records = [
        {"id": task_id, "code": PROGRAM.format(id=task_id, backwards=task_id == "a2")}
        for task_id in ("a1", "a2", "b1")
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def records(run: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (run / "cases.jsonl").read_text().splitlines()]


@pytest.mark.bubblewrap
def test_scored_resumed_rejudged_and_reported(suite: Path, solutions: Path, tmp_path: Path) -> None:
    require_backend("bubblewrap")
    options: dict[str, Any] = {"dataset": str(suite), "out": tmp_path / "run"}
    judge.score(solutions, judge.ScoreOptions(**options, limit=1))
    begun = records(tmp_path / "run")
    assert [record["verdict"] for record in begun] == ["AC"]

    (scored,) = judge.score(solutions, judge.ScoreOptions(**options))
    assert scored.reused == 1
    whole = records(tmp_path / "run")
    assert whole[:1] == begun
    assert {record["task"]: record["verdict"] for record in whole} == {
        "a1": "AC",
        "a2": "WA",
        "b1": "AC",
    }
    assert scored.report["by_instruction_type"].keys() == {"Sheet order"}
    letters = scored.report["by_group"]["letter"]
    assert {name: group["soft_restriction"] for name, group in letters.items()} == {
        "a": 0.5,
        "b": 1,
    }

    wrong = next(record for record in whole if record["task"] == "a2")
    assert "sheet 1: sheet order: expected 'Costs', found 'Sales'" in str(wrong["cause"])
    rejudged = judge.rejudge(tmp_path / "run", profile="strict")
    assert not rejudged.changed

    page = judge.report_html(tmp_path / "run")
    assert "sheet order" in page
    markdown = (
        judge.Report.of(tmp_path / "run").to_markdown() if hasattr(judge.Report, "of") else ""
    )
    assert "Sheet order" in markdown or not markdown


@pytest.mark.bubblewrap
def test_finished_outputs_are_found_by_their_names(suite: Path, tmp_path: Path) -> None:
    require_backend("bubblewrap")
    workbook(tmp_path / "made" / "a1.out.xlsx", *sorted(SHEETS))
    workbook(tmp_path / "made" / "b1.out.xlsx", *SHEETS)
    options = judge.ScoreOptions(dataset=str(suite), out=tmp_path / "run", recalc="never")
    (scored,) = judge.score(tmp_path / "made", options)
    assert {each.task_id: each.verdict.value for each in scored.results} == {"a1": "AC", "b1": "WA"}


def test_verified_and_validated(suite: Path) -> None:
    workbook(suite / "b1" / "input.xlsx", *sorted(SHEETS))
    checks = judge.verify(str(suite), recalc="never")
    assert [check.gold_accepted for check in checks] == [True] * 3
    assert [check.untouched_accepted for check in checks] == [False, False, True]
    assert {check.cells for check in checks} == {3}
    (suite / "a1" / "gold.xlsx").write_bytes(b"torn")
    checks = judge.verify(str(suite), recalc="never")
    assert [check.gold_accepted for check in checks] == [False, True, True]
    assert checks[0].gold_problem.startswith("gold.xlsx: ")


def test_nothing_refers_to_them_when_they_are_removed(suite: Path) -> None:
    loaded = judge.load_suite(suite)
    assert loaded.format == "folders"
    checkers.unregister(CHECKER.name)
    with pytest.raises(UsageError, match="no checker 'sheet_order'"):
        loaded.with_checker_options({"untouched": True})
    formats.unregister(FORMAT.names[0])
    with pytest.raises(judge.errors.SuiteError):
        judge.load_suite(suite)
