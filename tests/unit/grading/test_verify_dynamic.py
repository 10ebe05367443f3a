"""``judge verify --dynamic``: the tasks whose answers can be measured by changing inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import openpyxl
import pytest

from judge.cli.verify import print_dynamic
from judge.compare.cells.options import range_spec
from judge.compare.profiles import get_profile
from judge.core.submission import Origin
from judge.core.task import Task, TestCase
from judge.grading.case import CaseJudge, GradingRules
from judge.grading.verify import CaseCheck, DynamicCheck, verify_case
from judge.recalc.policy import Recalculator
from judge.workbook.cell import CellRange, ComputedValues
from judge.workbook.reader import Workbook
from tests.unit.compare.cells.test_two_figures import Arithmetic


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """Two cases of a sum, whose golds are formulas."""
    cases = []
    for number, amounts in enumerate(((20, 30), (5, 6)), start=1):
        book = openpyxl.Workbook()
        sheet = book.worksheets[0]
        sheet.title = "S"
        sheet["A1"], sheet["A2"] = amounts
        files = tmp_path / f"{number}_input.xlsx", tmp_path / f"{number}_gold.xlsx"
        book.save(files[0])
        sheet["C1"] = "=A1+A2"
        book.save(files[1])
        cases.append(TestCase.of_workbooks(number, *files))
    return Task(
        id="sum",
        instruction="Write a formula for the total.",
        kind="Cell-Level Manipulation",
        cases=tuple(cases),
        checker=range_spec("'S'!C1", None, {"dynamic": "note"}),
    )


class Adding(Recalculator):
    """A recalculator that computes sums without an engine."""

    def fill(
        self,
        workbook: Workbook,
        ranges: Sequence[CellRange],
        *,
        origin: Origin,
        like: Workbook | None = None,
    ) -> ComputedValues:
        return Arithmetic().fill(workbook, ranges, origin=origin, like=like)


def checks(task: Task) -> list[CaseCheck]:
    judge = CaseJudge(Adding(()), GradingRules(get_profile("standard")))
    return [verify_case(task, case, judge) for case in task.cases]


def test_a_gold_is_measured_on_the_first_case(task: Task) -> None:
    first, second = checks(task)
    assert first.gold_accepted
    assert first.dynamic == DynamicCheck("live", "", "hard_coded")
    assert second.dynamic is None


def test_nothing_is_measured_unless_the_option_asks_for_it(task: Task) -> None:
    plain = replace(task, checker=range_spec("'S'!C1"))
    assert [check.dynamic for check in checks(plain)] == [None, None]


def test_the_command_names_what_can_be_measured_and_why_others_cannot(
    task: Task, capsys: pytest.CaptureFixture[str]
) -> None:
    static = replace(task, id="static", checker=range_spec("'S'!A1", None, {"dynamic": "note"}))
    found = [check for each in (task, static) for check in checks(each)]
    print_dynamic([check for check in found if check.dynamic is not None])
    assert capsys.readouterr().out.splitlines() == [
        "tasks whose answers can be measured by changing inputs: 1",
        "  sum",
        "  not 1 (the gold has no formula in the answer that the input lacks): static",
    ]
