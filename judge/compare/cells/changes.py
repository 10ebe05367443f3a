"""Changes of inputs, such as a user could make in a workbook that already holds the answer.

A change is made only to constants outside the answer that are the same in input, gold and output.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from judge.compare.cells.comparison import Reason
from judge.compare.cells.sides import OtherCase
from judge.errors import WorkbookError
from judge.workbook.address import (
    COLUMN_BITS,
    COLUMN_MASK,
    WHOLE_SHEET,
    Window,
    cell_key,
    folded,
    parse_window,
)
from judge.workbook.cell import CellRange, CellRef, CellValue
from judge.workbook.editing.cells import set_cells
from judge.workbook.editing.sheet_xml import SetCell, address
from judge.workbook.facts.book import BookFacts
from judge.workbook.facts.references import areas_of
from judge.workbook.facts.sheets import Validation, validations_of
from judge.workbook.number_formats import to_serial
from judge.workbook.position import same_sheet
from judge.workbook.reader import Workbook, filling_cells, open_workbook

MAX_EDITS = 5_000
"""The most cells in which two cases of a task may differ."""

MAX_TRIES, ENOUGH = 12, 3
"""Largest number of single values that are tried, and number of changes of the answer after which
the trials end.
"""

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
        """Returns the workbook with these cells set; formulas keep their stored values.

        Raises:
            WorkbookError: a cell cannot be set, or the workbook cannot be read.
        """
        edits = []
        for edit in self.edits:
            sheet = same_sheet(edit.ref.sheet, workbook.sheet_names)
            if sheet is None:
                raise WorkbookError(f"there is no sheet {edit.ref.sheet!r}")
            edits.append(replace(edit, ref=edit.ref._replace(sheet=sheet)))
        return open_workbook(set_cells(workbook.data, edits))

    def undone_in(self, changed: Workbook, before: Workbook) -> Workbook:
        """Returns a changed workbook in which these cells hold the values of the input again.

        Raises:
            WorkbookError: for the same reasons as in :meth:`made_in`.
        """
        edits = tuple(replace(edit, content=value_at(before, edit.ref)) for edit in self.edits)
        return Change(edits).made_in(changed)


class NoChangeError(Exception):
    """A change cannot be made.

    Args:
        reason: why it cannot be made.
        detail: where it cannot be made, for people; empty if the reason says enough.
    """

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason.value)


def case_change(
    before: Workbook, holders: Sequence[Workbook], other: OtherCase, answer: Sequence[CellRange]
) -> Change:
    """Returns the change that turns the input into the input of another case.

    Args:
        before: the input.
        holders: gold and output; they have to agree with the input in every cell that changes.
        other: the other case.
        answer: rectangles of the answer, which do not count.

    Raises:
        NoChangeError: the two inputs differ in more than values, or a holder does not have the
            values in the same cells.
        WorkbookError: a workbook cannot be read.
    """
    second = other.before()
    if before.sheet_names != second.sheet_names:
        raise NoChangeError(Reason.OTHER_WORKBOOK, "their sheets differ")
    if _tables(before) != _tables(second):
        raise NoChangeError(Reason.OTHER_WORKBOOK, "their tables have different rows or columns")
    edits: list[SetCell] = []
    for name in before.sheet_names:
        windows = [area.window for area in answer if folded(area.sheet) == folded(name)]
        edits += _differing(before, second, name, windows)
        if len(edits) > MAX_EDITS:
            raise NoChangeError(
                Reason.OTHER_WORKBOOK, f"they differ in more than {MAX_EDITS:,} cells"
            )
    if not edits:
        raise NoChangeError(Reason.OTHER_WORKBOOK, "their inputs are the same")
    for edit in edits:
        if not all(_holds_the_same(before, holder, edit.ref) for holder in holders):
            raise NoChangeError(Reason.MOVED_INPUT, address(edit.ref))
    return Change(tuple(edits), other.number, other.gold())


def _tables(workbook: Workbook) -> list[tuple[str, str, str]]:
    """Returns the sheet, name and cells of each table; a changed size is not just a new value."""
    facts = BookFacts(workbook)
    sheets = [tab for tab in facts.tabs if tab.is_worksheet]
    return [(tab.name, table.name, table.place) for tab in sheets for table in facts.tables(tab)]


def _differing(
    before: Workbook, second: Workbook, name: str, answer: Sequence[Window]
) -> Iterator[SetCell]:
    one, two = before.sheet(name), second.sheet(name)
    first, last = one.values(WHOLE_SHEET), two.values(WHOLE_SHEET)
    formulas = {*one.formula_keys(WHOLE_SHEET), *two.formula_keys(WHOLE_SHEET)}
    filled = filled_windows(before, name)
    for key in sorted({*first, *last, *formulas}):
        if is_within(key, answer) or (key not in formulas and is_within(key, filled)):
            continue
        if key in formulas:
            if one.formula(key) != two.formula(key):
                raise NoChangeError(Reason.OTHER_WORKBOOK, "their formulas differ")
            continue
        old, new = first.get(key), last.get(key)
        if not _identical(old, new):
            yield SetCell(_ref(name, key), new)


def filled_windows(workbook: Workbook, sheet: str) -> list[Window]:
    """Returns the rectangles of a sheet that array formulas and data tables fill."""
    written = (cell.array_range or "" for cell in filling_cells(workbook, sheet))
    windows = (parse_window(text.replace("$", "")) for text in written)
    return [window for window in windows if window is not None]


def value_changes(
    before: Workbook,
    holders: Sequence[Workbook],
    reads: Mapping[str, Sequence[Window]],
    answer: Sequence[CellRange],
) -> Iterator[Change]:
    """Yields one change for each number or date that an answer depends on, in a fixed order.

    Whole numbers are increased by 7, or by 1 if they are below 10, other numbers by a tenth, dates
    by a day. Cells whose data validation does not allow the new value are left out. They are
    ordered by a hash of the address, so that the order does not follow the layout.

    Args:
        before: the input.
        holders: gold and output; they have to agree with the input in the cell that changes.
        reads: sheet of the input -> the cells that the gold's formulas read there.
        answer: rectangles of the answer, which do not count.

    Raises:
        NoChangeError: the answer has inputs, but gold and output hold none of them in the same
            cell.
        WorkbookError: a workbook cannot be read.
    """
    refs = []
    for name, windows in reads.items():
        sheet = before.sheet(name)
        taken = [area.window for area in answer if folded(area.sheet) == folded(name)]
        taken += filled_windows(before, name)
        validations = _validations(before, name)
        hidden = [merge for merge in sheet.tail.merges if merge.size > 1]
        formulas = set(sheet.formula_keys(WHOLE_SHEET))
        for key, value in sheet.values(WHOLE_SHEET).items():
            new = _next(value)
            if new is None or key in formulas or is_within(key, taken):
                continue
            if is_within(key, windows) and not _is_covered(key, hidden):
                ref = _ref(name, key)
                if _is_allowed(before, ref, new, validations):
                    refs.append((ref, new))
    kept = [
        (ref, new) for ref, new in refs if all(_holds_the_same(before, one, ref) for one in holders)
    ]
    if refs and not kept:
        raise NoChangeError(Reason.MOVED_INPUT, address(refs[0][0]))
    for ref, new in sorted(kept, key=lambda one: _order(one[0]))[:MAX_TRIES]:
        yield Change((SetCell(ref, new),))


def _is_covered(key: int, merges: Sequence[Window]) -> bool:
    """Whether a cell is hidden in a merged range, which shows only its first cell."""
    position = key >> COLUMN_BITS, key & COLUMN_MASK
    return any(merge.holds(*position) and position != merge.first for merge in merges)


def _order(ref: CellRef) -> str:
    return hashlib.sha256(address(ref).encode()).hexdigest()


def _next(value: CellValue) -> CellValue:
    """Returns the value that replaces a given one; None if it is not to be changed."""
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


# -- data validations ------------------------------------------------------------------------------


def _validations(workbook: Workbook, sheet: str) -> list[tuple[list[Window], Validation]]:
    facts = BookFacts(workbook)
    tab = facts.tab(sheet)
    if tab is None or not tab.is_worksheet:
        return []
    return [
        ([window for window in map(parse_window, rule.places) if window is not None], rule)
        for rule in validations_of(facts.tree(tab))
        if rule.kind is not None
    ]


def _is_allowed(
    workbook: Workbook,
    ref: CellRef,
    value: CellValue,
    validations: Sequence[tuple[Sequence[Window], Validation]],
) -> bool:
    """Whether every data validation of a cell allows a value; False if this cannot be decided."""
    key = cell_key(ref.row, ref.column)
    return all(
        _allows(workbook, ref.sheet, rule, value)
        for windows, rule in validations
        if is_within(key, windows)
    )


def _allows(workbook: Workbook, sheet: str, rule: Validation, value: CellValue) -> bool:
    if rule.kind == "list":
        text = rule.formulas[0].strip() if rule.formulas else ""
        if text.startswith('"'):
            listed: Sequence[CellValue] = [item.strip() for item in text.strip('"').split(",")]
            return _written(value) in listed
        return any(_identical(value, item) for item in _values_of(workbook, sheet, text))
    number = _number(workbook, value)
    if rule.kind == "textLength":
        number = float(len(_written(value)))
    elif rule.kind not in {"whole", "decimal", "date", "time"} or number is None:
        return False
    if rule.kind == "whole" and not number.is_integer():
        return False
    limits = [_limit(workbook, sheet, text) for text in rule.formulas]
    two_sided = rule.operator in {"between", "notBetween"}
    if None in limits or len(limits) < 1 + two_sided:
        return False
    first, last = limits[0] or 0.0, limits[-1] or 0.0
    return {
        "between": first <= number <= last,
        "notBetween": not first <= number <= last,
        "equal": number == first,
        "notEqual": number != first,
        "greaterThan": number > first,
        "greaterThanOrEqual": number >= first,
        "lessThan": number < first,
        "lessThanOrEqual": number <= first,
    }.get(rule.operator, False)


def _limit(workbook: Workbook, sheet: str, text: str) -> float | None:
    """Returns the limit of a validation if it is a number or a number's cell, otherwise None."""
    try:
        return float(text)
    except ValueError:
        values = _values_of(workbook, sheet, text)
        return _number(workbook, values[0]) if len(values) == 1 else None


def _values_of(workbook: Workbook, sheet: str, text: str) -> list[CellValue]:
    """Returns the constants in the rectangle that a formula refers to; empty for other formulas."""
    areas = areas_of(text if "!" in text else f"'{sheet.replace(chr(39), chr(39) * 2)}'!{text}")
    if areas is None or len(areas) > 1:
        return []
    name = same_sheet(areas[0].sheet, workbook.sheet_names)
    if name is None or workbook.sheet(name).formula_keys(areas[0].window):
        return []
    return [one for one in workbook.sheet(name).values(areas[0].window).values() if one is not None]


def _number(workbook: Workbook, value: CellValue) -> float | None:
    if isinstance(value, dt.datetime):
        return to_serial(value, date_1904=workbook.date_1904)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _written(value: CellValue) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


# -- cells -----------------------------------------------------------------------------------------


def _holds_the_same(before: Workbook, holder: Workbook, ref: CellRef) -> bool:
    sheet = same_sheet(ref.sheet, holder.sheet_names)
    if sheet is None:
        return False
    placed = ref._replace(sheet=sheet)
    window = Window(ref.row, ref.column, ref.row, ref.column)
    return not holder.sheet(sheet).formula_keys(window) and _identical(
        value_at(before, ref), value_at(holder, placed)
    )


def value_at(workbook: Workbook, ref: CellRef) -> CellValue:
    """Returns the stored value of a cell."""
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
    """Whether a cell is in one of the rectangles."""
    row, column = key >> COLUMN_BITS, key & COLUMN_MASK
    return any(window.holds(row, column) for window in windows)
