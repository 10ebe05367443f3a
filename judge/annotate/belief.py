"""Whether the formulas of a gold can say what the answer of another input is."""

from __future__ import annotations

from judge.annotate.answers import formulas_problem, gold_ranges
from judge.annotate.drafts import CaseData
from judge.annotate.edits import address
from judge.compare.cells.value import comparator
from judge.compare.profiles import get_profile
from judge.core.submission import Origin
from judge.core.task import Task
from judge.errors import PositionError, WorkbookError
from judge.recalc.policy import Recalculator
from judge.workbook.cell import CellRef


class FormulaBelief:
    """Whether the formulas of golds are believed; each gold is computed once.

    Args:
        recalculator: computes formulas.
    """

    def __init__(self, recalculator: Recalculator) -> None:
        self._recalculator = recalculator
        self._untrue: dict[str, str] = {}

    def problem(self, task: Task, base: CaseData) -> str:
        """Why a gold's formulas say nothing of any other input; empty if they do."""
        try:
            return formulas_problem(task, base, ()) or self.untrue(task, base)
        except (WorkbookError, PositionError) as error:
            return error.message

    def untrue(self, task: Task, base: CaseData) -> str:
        """Why the gold's formulas are not believed: they do not give the gold's own values here.

        Formulas that depend on the day, and those that the engines compute differently from the
        program that saved the gold, say nothing about another input.

        Raises:
            WorkbookError, PositionError: the gold cannot be read.
        """
        key = base.revision
        if key not in self._untrue:
            gold = base.gold_workbook
            ranges = gold_ranges(task, gold)
            computed = self._recalculator.fill(gold, ranges, origin=Origin.SOLUTION).values
            agree = comparator(get_profile("standard"))
            wrong = sorted(
                CellRef(area.sheet, cell.row, cell.column)
                for area in ranges
                for cell in gold.formula_cells(area)
                if cell.has_cached_value
                and (ref := CellRef(area.sheet, cell.row, cell.column)) in computed
                and not agree(cell.value, computed[ref])
            )
            self._untrue[key] = (
                f"the engines do not compute the gold's own value of {address(wrong[0])}"
                if wrong
                else ""
            )
        return self._untrue[key]
