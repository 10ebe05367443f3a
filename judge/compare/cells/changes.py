"""Changes of inputs, as somebody could make them in a workbook after the answer is in it.

A change is made only to constants outside the answer that are the same in input, gold and output.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from judge.compare.cells.sides import OtherCase
from judge.errors import WorkbookError
from judge.workbook.address import (
    COLUMN_BITS,
    COLUMN_MASK,
    WHOLE_SHEET,
    Window,
    folded,
    parse_window,
)
from judge.workbook.cell import CellRange, CellRef, CellValue
from judge.workbook.dependency import Dependencies
from judge.workbook.editing.cells import set_cells
from judge.workbook.editing.contents import SetCell, address
from judge.workbook.facts.book import BookFacts
from judge.workbook.position import match_sheet
from judge.workbook.reader import Workbook, filling_cells, open_workbook

MAX_EDITS = 5_000
"""Most cells in which two cases of a task may differ."""

MAX_TRIES, ENOUGH = 12, 3
"""How many single values are changed at most, and how many that move the answer are enough."""

_STEP, _SMALL_STEP, _SMALL, _FACTOR = 7, 1, 10, 1.1


@dataclass(frozen=True, slots=True)
class Change:
    """Cells of the input with new values.

    Attributes:
        edits: the cells, by the names of the input's sheets.
        case: number of the case whose input has these values; None for a single value.
        expected: the gold of that case, which the changed gold has to agree with.
    """

    edits: tuple[SetCell, ...]
    case: int | None = None
    expected: Workbook | None = None

    def made_in(self, workbook: Workbook) -> Workbook:
        """The workbook with these cells set; values of formulas are as they were.

        Raises:
            WorkbookError: a cell cannot be set, or the workbook cannot be read.
        """
        edits = []
        for edit in self.edits:
            sheet = match_sheet(edit.ref.sheet, workbook.sheet_names)
            if sheet is None:
                raise WorkbookError(f"there is no sheet {edit.ref.sheet!r}")
            edits.append(replace(edit, ref=edit.ref._replace(sheet=sheet)))
        return open_workbook(set_cells(workbook.data, edits))


class NoChangeError(Exception):
    """A change cannot be made; the message says why."""


def case_change(
    before: Workbook, holders: Sequence[Workbook], other: OtherCase, answer: Sequence[CellRange]
) -> Change:
    """What turns the input into that of another case.

    Args:
        before: the input.
        holders: gold and output, which have to hold the same where something changes.
        other: the other case.
        answer: rectangles of the answer, which do not count.

    Raises:
        NoChangeError: the two inputs differ in more than values, or the values are elsewhere now.
        WorkbookError: a workbook cannot be read.
    """
    second = other.before()
    if before.sheet_names != second.sheet_names:
        raise NoChangeError("the inputs of the cases have other sheets")
    edits: list[SetCell] = []
    for name in before.sheet_names:
        windows = [each.window for each in answer if folded(each.sheet) == folded(name)]
        edits += _differing(before, second, name, windows)
        if len(edits) > MAX_EDITS:
            raise NoChangeError(f"the inputs of the cases differ in more than {MAX_EDITS:,} cells")
    if not edits:
        raise NoChangeError("the inputs of the cases are the same")
    for edit in edits:
        if not all(_holds_the_same(before, holder, edit.ref) for holder in holders):
            raise NoChangeError(f"{address(edit.ref)} is not what it was in gold and output")
    return Change(tuple(edits), other.number, other.gold())


def _differing(
    before: Workbook, second: Workbook, name: str, answer: Sequence[Window]
) -> Iterator[SetCell]:
    one, two = before.sheet(name), second.sheet(name)
    first, last = one.values(WHOLE_SHEET), two.values(WHOLE_SHEET)
    formulas = {*one.formula_keys(WHOLE_SHEET), *two.formula_keys(WHOLE_SHEET)}
    filled = [
        window
        for source in filling_cells(before, name)
        if (window := parse_window((source.array_range or "").replace("$", ""))) is not None
    ]
    for key in sorted({*first, *last, *formulas}):
        if is_within(key, answer) or (key not in formulas and is_within(key, filled)):
            continue
        if key in formulas:
            if one.formula(key) != two.formula(key):
                raise NoChangeError("the inputs of the cases have other formulas")
            continue
        old, new = first.get(key), last.get(key)
        if not _identical(old, new):
            yield SetCell(_ref(name, key), new)


def value_changes(
    before: Workbook,
    holders: Sequence[Workbook],
    rests_on: Sequence[Dependencies],
    answer: Sequence[CellRange],
) -> Iterator[Change]:
    """Single numbers and dates that an answer depends on, one change for each, in a fixed order.

    Whole numbers become larger by 7, or by 1 below 10, other numbers by a tenth, dates by a day.
    What is under a data validation stays: another value may not be allowed there. The order is that
    of the hash of the address, so that it does not follow the layout.

    Args:
        before: the input.
        holders: gold and output, which have to hold the same.
        rests_on: what the gold's formulas read, in the gold, whose sheets are named as the input's.
        answer: rectangles of the answer, which do not count.

    Raises:
        WorkbookError: a workbook cannot be read.
    """
    read: dict[str, list[Window]] = {}
    for step in (step for each in rests_on if each.walk is not None for step in each.walk.steps):
        for each in step.reads:
            sheet = match_sheet(each.sheet or step.ref.sheet, before.sheet_names)
            if sheet is not None:
                window = Window(each.min_row, each.min_column, each.max_row, each.max_column)
                read.setdefault(sheet, []).append(window)
    refs = []
    for sheet, windows in read.items():
        unique = list(dict.fromkeys(windows))
        taken = [each.window for each in answer if folded(each.sheet) == folded(sheet)]
        taken += _validated(before, sheet)
        formulas = set(before.sheet(sheet).formula_keys(WHOLE_SHEET))
        for key, value in before.sheet(sheet).values(WHOLE_SHEET).items():
            if key not in formulas and _next(value) is not None and not is_within(key, taken):
                refs.append((_ref(sheet, key), key, unique))
    tries = 0
    for ref, key, windows in sorted(refs, key=lambda each: _order(each[0])):
        if is_within(key, windows) and all(_holds_the_same(before, one, ref) for one in holders):
            yield Change((SetCell(ref, _next(value_at(before, ref))),))
            tries += 1
            if tries == MAX_TRIES:
                return


def _order(ref: CellRef) -> str:
    return hashlib.sha256(address(ref).encode()).hexdigest()


def _next(value: CellValue) -> CellValue:
    """The value that takes the place of another one; None for what stays."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        if value != value or abs(value) > 1e15:  # noqa: PLR0124  not a number
            return None
        if float(value).is_integer():
            return value + (_SMALL_STEP if abs(value) < _SMALL else _STEP)
        return value * _FACTOR
    if isinstance(value, dt.datetime) and value.year < 9999:
        return value + dt.timedelta(days=1)
    return None


def _validated(workbook: Workbook, sheet: str) -> list[Window]:
    tab = next(tab for tab in workbook.tabs if tab.name == sheet)
    places = (place for each in BookFacts(workbook).sheet(tab).validations for place in each.places)
    return [window for window in map(parse_window, places) if window is not None]


def _holds_the_same(before: Workbook, holder: Workbook, ref: CellRef) -> bool:
    sheet = match_sheet(ref.sheet, holder.sheet_names)
    if sheet is None:
        return False
    placed = ref._replace(sheet=sheet)
    window = Window(ref.row, ref.column, ref.row, ref.column)
    return not holder.sheet(sheet).formula_keys(window) and _identical(
        value_at(before, ref), value_at(holder, placed)
    )


def value_at(workbook: Workbook, ref: CellRef) -> CellValue:
    """The stored value of a cell."""
    key = (ref.row << COLUMN_BITS) | ref.column
    return workbook.sheet(ref.sheet).values(WHOLE_SHEET).get(key)


def _identical(first: CellValue, second: CellValue) -> bool:
    blank = {None, ""}
    if first in blank or second in blank:
        return first in blank and second in blank
    numbers = (int, float)
    alike = type(first) is type(second) or (type(first) in numbers and type(second) in numbers)
    return alike and first == second


def _ref(sheet: str, key: int) -> CellRef:
    return CellRef(sheet, key >> COLUMN_BITS, key & COLUMN_MASK)


def is_within(key: int, windows: Sequence[Window]) -> bool:
    """Whether a cell is in one of some rectangles."""
    row, column = key >> COLUMN_BITS, key & COLUMN_MASK
    return any(window.holds(row, column) for window in windows)
