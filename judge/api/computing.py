"""Formulas computed only where a comparison needs them: the engines are opened for the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from judge.compare.cells.conditions import NO_ANSWERS, ConditionAnswers, ConditionQuestions
from judge.core.submission import Origin
from judge.recalc.conditions import answer_conditions
from judge.recalc.names import Mode
from judge.recalc.policy import Recalculator, replaced_cells, untrusted_cells
from judge.workbook.cell import NOTHING_COMPUTED, CellRange, ComputedValues
from judge.workbook.reader import Workbook


class ComputedWhereNeeded:
    """Computes with engines that are opened when the first formula needs one.

    See :class:`judge.compare.cells.computing.Compute`.

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
        needed, _ = untrusted_cells(workbook, ranges, self.mode, origin)
        if needed:
            return self._opened().fill(workbook, ranges, origin=origin)
        replaced = replaced_cells(workbook, ranges, self.mode, origin)
        return ComputedValues(not_calculated=replaced) if replaced else NOTHING_COMPUTED

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
