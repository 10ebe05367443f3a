"""Cells of several runs side by side, from their records alone."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

from judge.core.records.cases import DifferenceRecord
from judge.core.records.runs import NO_USAGE
from judge.core.verdict import CaseResult, Verdict
from judge.grading.overrides import NO_OVERRIDES
from judge.report.load import LoadedRun, LoadedSubmission
from judge.report.pairing import (
    AGREES,
    MAX_CELLS_OF_CASE,
    NO_VALUE,
    NOT_RECORDED,
    MatrixCase,
    task_matrix,
)


def difference(cell: str, actual: object, kind: str = "wrong_value") -> DifferenceRecord:
    return {"kind": kind, "sheet": "S", "cell": cell, "expected": 1, "actual": actual}


def wrong(*differences: DifferenceRecord, differing: int | None = None) -> CaseResult:
    count = len(differences) if differing is None else differing
    comparison = {"equal": False, "differing_cells": count, "differences": list(differences)}
    return CaseResult("1", 0, 1, Verdict.WA, comparison=comparison)  # type: ignore[arg-type]


def run(result: CaseResult) -> LoadedRun:
    results = MappingProxyType({1: result})
    submission = LoadedSubmission("1", 0, "", None, (1,), None, NO_USAGE, results, results)
    return LoadedRun(Path("run"), {}, None, (submission,), NO_OVERRIDES, 0, ())


def case(*results: CaseResult) -> MatrixCase:
    (row,) = task_matrix([run(each) for each in results], ["1"])
    return row.cases[0]


RIGHT = CaseResult("1", 0, 1, Verdict.AC, comparison={"equal": True, "differing_cells": 0})


def test_a_cell_is_listed_once_with_the_value_of_each_run() -> None:
    found = case(wrong(difference("A1", 2), difference("A2", None)), wrong(difference("A2", "x")))
    assert [(each.where, each.expected, each.outputs) for each in found.cells] == [
        ("S!A1", "1", ("2", AGREES)),
        ("S!A2", "1", ("blank", "'x'")),
    ]
    assert found.more == 0


def test_a_cell_beyond_those_on_record_is_not_said_to_agree() -> None:
    found = case(wrong(difference("A1", 2)), wrong(difference("A9", 2), differing=60))
    assert [each.outputs for each in found.cells] == [("2", NOT_RECORDED), (AGREES, "2")]
    assert found.more == 58


def test_runs_without_a_compared_output() -> None:
    failed = CaseResult("1", 0, 1, Verdict.RE)
    uncomputed = wrong(difference("A1", None, kind="not_calculated"))
    assert case(uncomputed, failed, RIGHT).cells[0].outputs == (NO_VALUE, None, AGREES)
    assert case(failed, RIGHT).cells == ()


def test_the_cells_of_a_case_are_bounded() -> None:
    many = wrong(*(difference(f"A{row}", 2) for row in range(1, 51)), differing=500)
    found = case(many, RIGHT)
    assert len(found.cells) == MAX_CELLS_OF_CASE
    assert found.more == 500 - MAX_CELLS_OF_CASE


def test_what_is_in_no_cell_is_not_listed() -> None:
    lost = difference("", None, kind="lost")
    assert case(wrong(lost, differing=0), RIGHT).cells == ()
