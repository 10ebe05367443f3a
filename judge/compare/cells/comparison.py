"""The result of comparing an output with its gold: all differences, classified and counted.

All differences are counted; the first ones are kept, with remarks for people.
"""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from judge.errors import WorkbookError
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, Window, cell_key, parse_cell
from judge.workbook.cell import CellRange, CellValue, ErrorValue
from judge.workbook.number_formats import to_serial
from judge.workbook.position import match_sheet
from judge.workbook.reader import Workbook, open_workbook

if TYPE_CHECKING:
    from judge.compare.cells.figures import Figures
    from judge.compare.cells.scope import Scope


class DifferenceClass(enum.StrEnum):
    """The kinds of differences."""

    MISSING = "missing"
    """The gold has a value, the output is blank."""
    EXTRA = "extra"
    """The gold is blank, the output has a value."""
    WRONG_VALUE = "wrong_value"
    NUMBER_AS_TEXT = "number_as_text"
    """A number stored as text, or the reverse; apart from that, the two agree."""
    TYPE = "type"
    """Values of different types (a date and a string …)."""
    ERROR_VALUE = "error_value"
    """One of the two values is an error such as ``#N/A``."""
    NOT_CALCULATED = "not_calculated"
    """The output holds a formula that no engine could compute."""
    MISSING_SHEET = "missing_sheet"
    WRONG_FORMULA = "wrong_formula"
    """Formulas are compared, and the two formulas differ."""
    STYLE = "style"
    """The values agree, but a style that is compared (fill, font colour …) does not."""
    TOUCHED = "touched"
    """A cell outside the answer range that the solution changed."""
    LOST = "lost"
    """A feature that the input had, the gold kept, and the output lost."""
    NO_FORMULA = "no_formula"
    """The output holds constants where the question asks for a formula."""
    COLLATERAL = "collateral"
    """The output changed a cell outside the answer that the gold left unchanged."""
    NOT_LIVE = "not_live"
    """The answer does not follow its inputs, and the question asks for a formula."""


OUTSIDE_ANSWER = frozenset(
    {
        DifferenceClass.TOUCHED,
        DifferenceClass.LOST,
        DifferenceClass.NO_FORMULA,
        DifferenceClass.COLLATERAL,
        DifferenceClass.NOT_LIVE,
    }
)
"""Classes that do not concern cells of the answer range and are not counted among them."""


class Dynamic(enum.StrEnum):
    """How an answer reacts to changes of its inputs."""

    LIVE = "live"
    """It followed every change as the gold did, and nothing else in it changed."""
    HARD_CODED = "hard_coded"
    """It followed no change, and holds constants where the gold changed. This is a fact about the
    answer, and a fault only if a formula is required."""
    STALE = "stale"
    """It followed no change although it holds formulas: they do not depend on the changed cells."""
    PARTIAL = "partial"
    """It followed some changes, or changed in some cells only."""
    NOT_MEASURABLE = "not_measurable"


class Reason(enum.StrEnum):
    """Why it cannot be measured whether an answer follows its inputs."""

    STATIC = "the gold has no formula in the answer that the input lacks"
    CHANGING = "the gold's formulas depend on what changes by itself, or on another workbook"
    CIRCULAR = "the gold's formulas depend on themselves"
    NOT_RECALCULATED = "the gold's formulas depend on a data table or a pivot table"
    NO_INPUT = "the answer depends on no input that can be changed"
    MOVED_INPUT = "an input is not where it was in gold or output"
    OTHER_WORKBOOK = "the other cases are not the same workbook with other values"
    OTHER_GOLD = "the changed gold is not the gold of the changed input"
    OTHER_KIND = "a changed value makes the gold an error, or another kind of value"
    NOTHING_MOVED = "no change moved the answer of the gold"
    NOT_COMPUTED = "the answer could not be computed"
    NOT_REPEATED = "the gold computed twice is not the same"
    WRONG_BEFORE = "the answer is wrong before any change"
    UNORDERED = "the rows of the answer may be in any order"


@dataclass(frozen=True, slots=True)
class Difference:
    """One cell in which the output differs from the gold.

    Attributes:
        kind: the class.
        sheet: name of the sheet in the gold.
        cell: address such as ``B7``; empty for a missing sheet.
        expected: the gold's value.
        actual: the output's value.
        expected_formula: the gold's formula, if it has one.
        actual_formula: the output's formula, if it has one.
        detail: a remark for people, such as which style differs, why a formula was not calculated,
            or which sheets exist.
        erased: what the input holds in a cell that is blank in the output, if known.
    """

    kind: DifferenceClass
    sheet: str
    cell: str
    expected: CellValue = None
    actual: CellValue = None
    expected_formula: str | None = None
    actual_formula: str | None = None
    detail: str = ""
    erased: CellValue = None


@dataclass(frozen=True, slots=True)
class CellGroup:
    """The result for one of the two groups of cells in the answer range.

    Attributes:
        name: ``modification`` for cells in which the gold differs from the input, ``regression``
            for those that should have stayed as they were.
        cells: how many cells the group has.
        differing_cells: how many of them differ from the gold.
    """

    name: str
    cells: int
    differing_cells: int


@dataclass(frozen=True, slots=True)
class GroupShares:
    """Shares of the cells that agree, from 0 to 1; None for a group without cells.

    Attributes:
        modification: share for the cells to change.
        regression: share for the cells to keep.
    """

    modification: float | None
    regression: float | None


@dataclass(frozen=True, slots=True)
class GroupsVerdict:
    """The verdict by the rule for two groups of cells.

    Attributes:
        accepted: whether the task is solved.
        groups: the two groups.
        shares: the shares of their cells that agree.
        notes: what decided the verdict, if the cells do not show it.
    """

    accepted: bool
    groups: tuple[CellGroup, ...]
    shares: GroupShares
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing an output with its gold under one profile.

    Attributes:
        equal: whether the profile accepts the output.
        profile: name of the profile.
        ranges: the rectangles of the gold that were compared.
        cells: how many cells were compared.
        differing_cells: how many of them differ (all are counted).
        difference_counts: class -> number of differences (all are counted).
        differences: the first differences, in reading order, up to the requested number.
        notes: how an inexact position was read, which engines disagree, which stored values are not
            trusted.
        touched_cells: cells outside the answer range that the solution changed; None if they were
            not checked. They are counted here and not among the differing cells.
        groups: results for cells to change and cells to keep, if the input was given.
        shares: the share of agreeing cells in each group, as it counts for the task; None unless
            the groups decide whether the output is accepted.
        official_equal: the published script's verdict on the same two files, if it was requested;
            ``None`` otherwise.
        scope: results of the options ``keep`` and ``formula_asked``; None if neither is set.
        figures: results of ``collateral`` and ``dynamic``; None if neither is set.
    """

    equal: bool
    profile: str
    ranges: tuple[CellRange, ...]
    cells: int
    differing_cells: int
    difference_counts: Mapping[DifferenceClass, int]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...] = ()
    official_equal: bool | None = None
    touched_cells: int | None = None
    groups: tuple[CellGroup, ...] = ()
    shares: GroupShares | None = None
    scope: Scope | None = None
    figures: Figures | None = None

    def with_differences(
        self, differences: Sequence[Difference], max_differences: int
    ) -> Comparison:
        """Returns the comparison with further differences; all are counted, the first ones kept.

        Args:
            differences: differences outside the compared cells.
            max_differences: how many differences are kept in total.
        """
        counts = dict(self.difference_counts)
        for difference in differences:
            counts[difference.kind] = counts.get(difference.kind, 0) + 1
        room = max(0, max_differences - len(self.differences))
        return replace(
            self,
            equal=self.equal and not differences,
            difference_counts=counts,
            differences=(*self.differences, *differences[:room]),
        )

    @property
    def cell_accuracy(self) -> float:
        """Share of the compared cells that agree, from 0 to 1; 1 if no cell was compared."""
        return 1.0 if not self.cells else 1.0 - min(self.differing_cells, self.cells) / self.cells


class Differences:
    """Collects the differences of one comparison.

    Args:
        limit: how many are kept.

    Attributes:
        cells: how many cells differ.
    """

    def __init__(self, limit: int) -> None:
        self.cells = 0
        self._limit = limit
        self._counts: dict[DifferenceClass, int] = {}
        self._kept: list[Difference] = []

    @property
    def counts(self) -> Mapping[DifferenceClass, int]:
        """Class -> number of differences, including those that are not kept."""
        return dict(self._counts)

    @property
    def kept(self) -> tuple[Difference, ...]:
        """The first differences, in reading order of each range."""
        return tuple(self._kept)

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached, so that further differences are only counted."""
        return len(self._kept) >= self._limit

    def count(self, kind: DifferenceClass, cells: int = 1) -> None:
        """Counts differing cells without keeping them."""
        self.cells += cells
        self._counts[kind] = self._counts.get(kind, 0) + cells

    def add(self, difference: Difference) -> None:
        """Counts a differing cell, and keeps it if there is room."""
        self.count(difference.kind)
        if not self.is_full:
            self._kept.append(difference)

    def add_missing_sheet(self, gold_range: CellRange, sheets: Sequence[str]) -> None:
        """Counts all cells of a range as missing."""
        self.count(DifferenceClass.MISSING_SHEET, gold_range.size)
        if not self.is_full:
            listed = ", ".join(repr(name) for name in sheets[:10])
            detail = f"the output has no sheet {gold_range.sheet!r}; it has {listed}"
            self._kept.append(
                Difference(DifferenceClass.MISSING_SHEET, gold_range.sheet, "", detail=detail)
            )

    def note_touched(
        self,
        sheet: str,
        cell: str,
        detail: str,
        *,
        expected: CellValue = None,
        actual: CellValue = None,
        expected_formula: str | None = None,
        actual_formula: str | None = None,
    ) -> None:
        """Keeps a changed cell outside the answer range; the caller counts these separately."""
        kind = DifferenceClass.TOUCHED
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if not self.is_full:
            self._kept.append(
                Difference(
                    kind=kind,
                    sheet=sheet,
                    cell=cell,
                    expected=expected,
                    actual=actual,
                    expected_formula=expected_formula,
                    actual_formula=actual_formula,
                    detail=detail,
                )
            )


def remark_on(expected: CellValue, actual: CellValue, *, expected_1904: bool = False) -> str:
    """Returns a remark that explains the two values; empty if there is nothing to add.

    Args:
        expected: the gold's value.
        actual: the output's value, which does not agree with it.
        expected_1904: whether the gold uses the 1904 date system.
    """
    if isinstance(expected, ErrorValue):
        return "the gold itself holds an error value"
    if isinstance(expected, dt.datetime | dt.date | dt.time | dt.timedelta) and (
        isinstance(actual, int | float) and not isinstance(actual, bool)
    ):
        return f"the gold stores {to_serial(expected, date_1904=expected_1904):.10g}"
    return ""


def with_erased_content(comparison: Comparison, before: Workbook | Path) -> Comparison:
    """Adds the input's content to a comparison, for cells that are blank in the output.

    This is only an explanation: if the input cannot be read, the comparison is returned unchanged.

    Args:
        comparison: the comparison of an output with its gold.
        before: the input workbook, which is opened only if such cells exist.
    """
    blank: dict[str, list[int]] = {}
    for difference in comparison.differences:
        cell = parse_cell(difference.cell) if difference.kind is DifferenceClass.MISSING else None
        if cell is not None:
            blank.setdefault(difference.sheet, []).append(cell_key(*cell))
    if not blank:
        return comparison
    inputs: dict[tuple[str, int], CellValue] = {}
    try:
        before = open_workbook(before) if isinstance(before, Path) else before
        for sheet, keys in blank.items():
            name = match_sheet(sheet, before.sheet_names)
            if name is not None:
                values = before.sheet(name).values(_around(keys))
                inputs.update({(sheet, key): values.get(key) for key in keys})
    except WorkbookError:
        return comparison
    return replace(
        comparison,
        differences=tuple(_with_input(difference, inputs) for difference in comparison.differences),
    )


def _with_input(difference: Difference, inputs: dict[tuple[str, int], CellValue]) -> Difference:
    cell = parse_cell(difference.cell)
    if cell is None or difference.kind is not DifferenceClass.MISSING:
        return difference
    value = inputs.get((difference.sheet, cell_key(*cell)))
    return replace(difference, erased=None if value == "" else value)


def _around(keys: Sequence[int]) -> Window:
    rows = [key >> COLUMN_BITS for key in keys]
    columns = [key & COLUMN_MASK for key in keys]
    return Window(min(rows), min(columns), max(rows), max(columns))
