"""The sides of a comparison: workbooks with computed values, and rectangles of them.

The comparison does not compute formulas. If the rules of conditional formats of two workbooks
differ as text, it lists the conditions that it needs (:class:`Questions`). The caller computes them
and passes in the answers (:class:`Answers`), as with the values of formula cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from judge.workbook.address import Window, cell_key
from judge.workbook.cell import NOTHING_COMPUTED, CellRange, CellRef, CellValue, ComputedValues
from judge.workbook.position import match_sheet
from judge.workbook.reader import Workbook
from judge.workbook.sheets.sheet import Sheet

NO_INPUT = "that requires the input"
"""The reason why something was not examined: there is no input workbook."""


@dataclass(frozen=True, slots=True)
class Side:
    """One workbook of a comparison: the gold, the output or the input.

    Attributes:
        workbook: the workbook.
        computed: computed values, which replace those in the file.
    """

    workbook: Workbook
    computed: ComputedValues = NOTHING_COMPUTED

    def area(self, cell_range: CellRange) -> RangeSide:
        """Returns one rectangle of this workbook."""
        return RangeSide(self.workbook, cell_range, self.computed)

    def holds_values(self, cell_range: CellRange) -> bool:
        """Whether a rectangle has a value or a formula in the file."""
        stored = self.workbook.sheet(cell_range.sheet).values(cell_range.window)
        return any(value is not None for value in stored.values()) or bool(
            self.workbook.formula_cells(cell_range)
        )

    def counterpart(self, cell_range: CellRange) -> CellRange | None:
        """Returns the same rectangle of this workbook; None if it lacks the sheet."""
        sheet = match_sheet(cell_range.sheet, self.workbook.sheet_names)
        return None if sheet is None else replace(cell_range, sheet=sheet)


@dataclass(frozen=True, slots=True)
class RangeSide:
    """A rectangle of a workbook.

    Attributes:
        workbook: the workbook.
        cell_range: the rectangle.
        computed: values that replace those in the file.
    """

    workbook: Workbook
    cell_range: CellRange
    computed: ComputedValues

    @property
    def sheet(self) -> Sheet:
        """The worksheet."""
        return self.workbook.sheet(self.cell_range.sheet)

    @property
    def window(self) -> Window:
        """The rectangle without its sheet."""
        return self.cell_range.window

    def values(self) -> Mapping[int, CellValue]:
        """Stored and computed values by key."""
        stored = self.sheet.values(self.window)
        computed = self.computed_values()
        return {**stored, **computed} if computed else stored

    def computed_values(self) -> dict[int, CellValue]:
        """Only the computed values, by key."""
        computed = self._in_range(self.computed.values)
        return {key: self.computed.values[ref] for key, ref in computed.items()}

    def uncomputed(self) -> dict[int, str]:
        """Formula cells whose value is unknown -> why."""
        unknown = self.refused()
        computed = self._in_range(self.computed.values)
        for key in self.sheet.formula_keys(self.window):
            raw = self.sheet.raw_formula(key)
            if key not in computed and raw is not None and not raw.cached:
                unknown.setdefault(key, "the formula has no value, and nothing computed it")
        return unknown

    def refused(self) -> dict[int, str]:
        """Formula cells that an engine could not compute -> why."""
        refused = self._in_range(self.computed.not_calculated)
        return {key: self.computed.not_calculated[ref] for key, ref in refused.items()}

    def _in_range(self, cells: Iterable[CellRef]) -> dict[int, CellRef]:
        window, sheet = self.window, self.cell_range.sheet
        return {
            cell_key(cell.row, cell.column): cell
            for cell in cells
            if cell.sheet == sheet and window.holds(cell.row, cell.column)
        }


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which cells of gold and output are compared with each other.

    Attributes:
        output_key: key of a cell of the gold -> key of its counterpart in the output.
        rows: row of the gold -> row of the output, if rows may be in any order; empty otherwise.
    """

    output_key: Callable[[int], int]
    rows: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class OtherCase:
    """Another case of the task.

    Attributes:
        number: its number.
        before: opens the input; it may raise a WorkbookError.
        gold: opens the gold; it may raise a WorkbookError.
    """

    number: int
    before: Callable[[], Workbook]
    gold: Callable[[], Workbook]


@dataclass(frozen=True, slots=True)
class ScopeSources:
    """What a comparison may use in addition to gold and output.

    Attributes:
        before: the input workbook, or None.
        question: the instruction of the task; None if unknown. In that case, setting
            ``formula_asked`` means that a formula is requested.
        problem: why there is no input.
        others: the other cases of the task, for the option ``dynamic``, which is measured only on
            the first case; None for all further cases.
    """

    before: Workbook | None = None
    question: str | None = None
    problem: str = NO_INPUT
    others: Sequence[OtherCase] | None = ()


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


NOT_EVALUATED = Answers(otherwise="nothing was evaluated")


@dataclass(frozen=True, slots=True)
class ConditionAnswers:
    """Which conditions hold in the two workbooks of a comparison."""

    gold: Answers = NOT_EVALUATED
    output: Answers = NOT_EVALUATED


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
