from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judge.compare.cells.options import range_spec
from judge.core.records.runs import RunDocument
from judge.core.task import Task, TestCase
from judge.core.verdict import CaseResult, Verdict
from judge.report.report_json import build_report
from judge.suites.spreadsheetbench import InstructionType


def make_task(task_id: str, cases: int, kind: InstructionType) -> Task:
    return Task(
        id=task_id,
        instruction="?",
        kind=kind.value,
        checker=range_spec("A1"),
        cases=tuple(TestCase.of_workbooks(n + 1, Path("i"), Path("g")) for n in range(cases)),
        raw_id=int(task_id) if task_id.isdigit() else task_id,
    )


def make_result(task_id: str, case: int, verdict: Verdict, **rest: Any) -> CaseResult:
    rest.setdefault("sample", 0)
    return CaseResult(task_id=task_id, case=case, verdict=verdict, **rest)


CELL, SHEET = InstructionType.CELL_LEVEL, InstructionType.SHEET_LEVEL
TASKS = [make_task("7", 3, CELL), make_task("a-1", 2, SHEET), make_task("b-2", 1, SHEET)]
RESULTS = [
    make_result("a-1", 2, Verdict.JE, cause="daemon gone"),
    make_result("7", 3, Verdict.AC, comparison={"official_equal": False}),
    make_result("7", 1, Verdict.AC, comparison={"official_equal": True}),
    make_result("7", 2, Verdict.WA, cause="B2: expected 1, found 2"),
    make_result("a-1", 1, Verdict.AC),
    make_result("stranger", 1, Verdict.AC),
]


@pytest.fixture
def report() -> Any:
    run: RunDocument = {
        "profile": "standard",
        "created": "today",
        "suite": {"name": "made", "digest": "d"},
    }
    return build_report(run, [(task, 0) for task in TASKS], RESULTS, without_submission=4)


def test_scores_and_counts(report: Any) -> None:
    overall = report["overall"]
    assert (overall["tasks"], overall["cases"]) == (2, 4)
    assert overall["soft_restriction"] == pytest.approx((2 / 3 + 1) / 2)
    assert overall["hard_restriction"] == 0.5
    assert overall["verdicts"] == {"AC": 3, "WA": 1, "JE": 1}
    assert overall["tasks_without_submission"] == 4
    assert set(report["by_instruction_type"]) == {CELL.value, SHEET.value}


def test_what_is_not_scored_is_named_and_counted_in_the_second_denominator(report: Any) -> None:
    overall = report["overall"]
    assert overall["excluded"] == {
        "JE": [{"id": "a-1", "sample": 0, "case": 2, "reason": "daemon gone"}],
        "not_run": [{"id": "b-2", "sample": 0, "case": 1}],
    }
    everything = overall["including_excluded"]
    assert (everything["tasks"], everything["cases"]) == (3, 6)
    assert everything["soft_restriction"] == pytest.approx((2 / 3 + 1 / 2 + 0) / 3)
    assert everything["hard_restriction"] == 0.0


def test_tasks_are_listed_in_suite_order_with_the_ids_of_the_suite(report: Any) -> None:
    first, second, third = report["tasks"]
    assert first["id"] == 7
    assert first["test_case_results"] == ["AC", "WA", "AC"]
    assert first["causes"] == {"2": "B2: expected 1, found 2"}
    assert first["official_disagrees"] == [3]
    assert second["test_case_results"] == ["AC", "JE"]
    assert (third["test_case_results"], third["soft_restriction"]) == ([None], None)


def test_nothing_measured_and_no_date_is_in_the_report(report: Any) -> None:
    assert report["run"] == {"profile": "standard", "suite": {"name": "made", "digest": "d"}}


def test_the_order_of_records_changes_nothing(report: Any) -> None:
    run: RunDocument = {
        "profile": "standard",
        "created": "later",
        "suite": {"name": "made", "digest": "d"},
    }
    pairs = [(task, 0) for task in TASKS]
    assert build_report(run, pairs, RESULTS[::-1], without_submission=4) == report
