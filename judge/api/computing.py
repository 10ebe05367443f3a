"""Formulas computed only where a comparison needs them: the engines are opened for the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from judge.comparison.conditions import NO_ANSWERS, ConditionAnswers, ConditionQuestions
from judge.core.answer import Origin
from judge.recalc.conditions import answer_conditions
from judge.recalc.names import Mode
from judge.recalc.policy import Recalculator, calculates
from judge.workbook.cell import NOTHING_COMPUTED, CellRange, ComputedValues
from judge.workbook.reader import Workbook


class ComputedWhereNeeded:
    """Computes with engines that are opened when the first formula needs one.

    See :class:`judge.comparison.computing.Compute`.

    Args:
        mode: when to compute.
        opened: opens the engines; called each time that one is needed.
    """

    def __init__(self, mode: Mode, opened: Callable[[], Recalculator]) -> None:
        self.mode = mode
        self._opened = opened

    def fill(
        self, workbook: Workbook, ranges: Sequence[CellRange], *, origin: Origin
    ) -> ComputedValues:
        """Computes the formula cells of some ranges that have no value to trust.

        Raises:
            WorkbookError: the ranges cannot be read.
            SandboxError: something has to be computed, and there is no sandbox.
        """
        if self.mode == "never" or not self._needed(workbook, ranges):
            return NOTHING_COMPUTED
        return self._opened().fill(workbook, ranges, origin=origin)

    def _needed(self, workbook: Workbook, ranges: Sequence[CellRange]) -> bool:
        cells = [cell for each in ranges for cell in workbook.formula_cells(each)]
        if not cells:
            return False
        trusted = all(cell.has_cached_value for cell in cells) and calculates(workbook.facts)
        return self.mode == "always" or not trusted

    def answer_conditions(
        self, questions: ConditionQuestions, gold: Workbook, output: Workbook, *, origin: Origin
    ) -> ConditionAnswers:
        """Finds out which conditions of conditional formats hold.

        Raises:
            SandboxError: there is no sandbox to compute them in.
        """
        if self.mode == "never":
            return NO_ANSWERS
        return answer_conditions(self._opened(), questions, gold, output, origin=origin)
