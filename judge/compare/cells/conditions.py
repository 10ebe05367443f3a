"""The conditions of conditional formats that a comparison needs, and whether they hold.

The comparison does not compute formulas. If the rules of two workbooks differ as text, it lists the
conditions that it needs (:class:`Questions`). The caller computes them and passes in the answers
(:class:`Answers`), as with the values of formula cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from judge.workbook.cell import NOTHING_COMPUTED, CellRange, ComputedValues

ConditionKey = tuple[str, str]
"""A condition: its sheet, and its formula with the references shifted to the cell."""

MAX_CONDITIONS = 10_000
"""How many conditions per workbook are computed; the others are compared as text. LibreOffice takes
about a millisecond for each."""


@dataclass(slots=True)
class Questions:
    """Conditions and values that are needed from one workbook.

    Attributes:
        conditions: formulas to evaluate; none of them depends on the cell in which it is computed.
        ranges: rectangles whose values are needed, for rules that depend on many cells.
    """

    conditions: dict[ConditionKey, None] = field(default_factory=dict)
    ranges: dict[CellRange, None] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is needed."""
        return not self.conditions and not self.ranges

    def ask(self, key: ConditionKey) -> None:
        """Adds a condition; the caller decides how many are evaluated."""
        self.conditions[key] = None


def _no_truths() -> Mapping[ConditionKey, bool]:
    return MappingProxyType({})


def _no_reasons() -> Mapping[ConditionKey, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Answers:
    """The results for the conditions of one workbook.

    Attributes:
        truths: condition -> whether it holds.
        unknown: condition -> why it could not be determined whether it holds.
        values: values of the formula cells of the ranges.
        otherwise: why the conditions that are in neither mapping were not evaluated.
        engines: names and versions of the engines that were used.
    """

    truths: Mapping[ConditionKey, bool] = field(default_factory=_no_truths)
    unknown: Mapping[ConditionKey, str] = field(default_factory=_no_reasons)
    values: ComputedValues = NOTHING_COMPUTED
    otherwise: str = f"more than {MAX_CONDITIONS:,} conditions"
    engines: tuple[str, ...] = ()


NOT_ASKED = Answers(otherwise="nothing was evaluated")


@dataclass(frozen=True, slots=True)
class ConditionAnswers:
    """Which conditions hold in the two workbooks of a comparison."""

    gold: Answers = NOT_ASKED
    output: Answers = NOT_ASKED


NO_ANSWERS = ConditionAnswers()
"""The results if no condition was evaluated."""


@dataclass(frozen=True, slots=True)
class ConditionQuestions:
    """The conditions that are needed from the two workbooks of a comparison."""

    gold: Questions = field(default_factory=Questions)
    output: Questions = field(default_factory=Questions)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is needed from either workbook."""
        return self.gold.is_empty and self.output.is_empty
