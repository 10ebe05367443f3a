"""The sides of a comparison: workbooks with computed values, and rectangles of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

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
