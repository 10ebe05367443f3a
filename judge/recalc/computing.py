"""The engines, as a comparison uses them."""

from __future__ import annotations

from collections.abc import Sequence

from judge.comparison.conditions import ConditionAnswers, ConditionQuestions
from judge.core.answer import Origin
from judge.recalc.conditions import answer_conditions
from judge.recalc.policy import Recalculator
from judge.workbook.cell import CellRange, ComputedValues
from judge.workbook.reader import Workbook


class EngineCompute:
    """Computes formulas with a recalculator; see :class:`judge.comparison.computing.Compute`.

    Args:
        recalculator: decides what is computed, and computes it.
    """

    def __init__(self, recalculator: Recalculator) -> None:
        self._recalculator = recalculator

    def fill(
        self, workbook: Workbook, ranges: Sequence[CellRange], *, origin: Origin
    ) -> ComputedValues:
        """Computes the formula cells of some ranges that have no value to trust."""
        return self._recalculator.fill(workbook, ranges, origin=origin)

    def answer_conditions(
        self, questions: ConditionQuestions, gold: Workbook, output: Workbook, *, origin: Origin
    ) -> ConditionAnswers:
        """Finds out which conditions of conditional formats hold."""
        return answer_conditions(self._recalculator, questions, gold, output, origin=origin)
