"""What a comparison has to know about conditions of conditional formats, and the answers it got.

The comparison does not compute formulas. If the rules of two workbooks differ as text, it says
which conditions it needs (:class:`Questions`); the caller has them computed and passes in the
answers (:class:`Answers`), as with the values of formula cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from judge.workbook.cell import NOTHING_COMPUTED, CellRange, ComputedValues

ConditionKey = tuple[str, str]
"""A condition: the sheet to which it applies, and its formula as it reads in its cell."""

MAX_CONDITIONS = 10_000
"""How many conditions of one workbook are computed; the rest is compared as text. Each takes
LibreOffice about a millisecond."""


@dataclass(slots=True)
class Questions:
    """What has to be known about one workbook.

    Attributes:
        conditions: formulas to evaluate; none of them depends on the cell in which it is computed.
        ranges: rectangles whose values are needed, for rules that look at many cells at once.
    """

    conditions: dict[ConditionKey, None] = field(default_factory=dict)
    ranges: dict[CellRange, None] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether there are no questions."""
        return not self.conditions and not self.ranges

    def ask(self, key: ConditionKey) -> None:
        """Asks for a condition; the caller decides how many are answered."""
        self.conditions[key] = None


def _no_truths() -> Mapping[ConditionKey, bool]:
    return MappingProxyType({})


def _no_reasons() -> Mapping[ConditionKey, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Answers:
    """What was found out about the conditions of one workbook.

    Attributes:
        truths: condition -> whether it holds.
        unknown: condition -> why that is not known.
        values: values of the formula cells of the ranges.
        otherwise: why a condition that is in neither mapping is not known.
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
    """Answers about both workbooks of a comparison."""

    gold: Answers = NOT_ASKED
    output: Answers = NOT_ASKED


NO_ANSWERS = ConditionAnswers()
"""For comparisons in which no condition was evaluated."""


@dataclass(frozen=True, slots=True)
class ConditionQuestions:
    """Questions about both workbooks of a comparison."""

    gold: Questions = field(default_factory=Questions)
    output: Questions = field(default_factory=Questions)

    @property
    def is_empty(self) -> bool:
        """Whether there are no questions about either."""
        return self.gold.is_empty and self.output.is_empty
