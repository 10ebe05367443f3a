"""Finds out in which order Excel read the numbers of dates in text, and which cells depend on it.

``"3/4/2021"`` is in March or in April, depending on the region of the machine, which no file
records. Only the values that Excel stored show it.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from judge.errors import WorkbookError
from judge.formulas.lexer import texts_of
from judge.formulas.references import references
from judge.formulas.traits import traits
from judge.recalc.agreement import same_value
from judge.recalc.contract import CascadeResult
from judge.recalc.functions.contents import Contents, plain_scalar
from judge.recalc.functions.conversions import DayOrder, UnsureError
from judge.recalc.functions.own import OwnValues
from judge.recalc.functions.tried import WITH_CRITERIA
from judge.recalc.names import JUDGE
from judge.recalc.reduction import Constants, with_texts
from judge.recalc.support import passed_on
from judge.workbook.address import COLUMN_MASK
from judge.workbook.cell import Cell, CellRef, CellValue, ErrorValue
from judge.workbook.dependency import Followed, FormulaIndex, Walk
from judge.workbook.reader import Workbook

MAX_TRIED = 5_000
"""Largest number of formulas of a workbook whose stored values are compared with both readings."""

_CLASSES = bytes(
    ord("0") if byte in b"0123456789" else ord('"') if byte in b'"&;' else byte
    for byte in range(256)
)
_DATED = (b"0/0/00", b"0/00/00", b"0-0-00", b"0-00-00", b'"/"', b'"-"')
"""What a date in text, or a string from which formulas make one, is in XML with every digit as 0,
and every quotation mark, escaped or not, as its last character. Six searches for bytes take an
eighth of the time of one regular expression, which tries every number of the sheet."""

_DATE = re.compile(
    r"(?<!\d)\d{1,2}([./-])\d{1,2}\1\d{2}|(?<![\d./-])\d{1,2}[/-]\d{1,2}(?![\d./-])"
    r"|^\s*[/-]\s*$|[dmy][/-][dmy]",
    re.IGNORECASE,
)
_NUMBERS = re.compile(
    rb"(?<!\d)(\d{1,2})([./-])(\d{1,2})(?=\2\d{2})"
    rb"|(?<![\d./-])(\d{1,2})([/-])(\d{1,2})(?![\d./-])"
)
"""The first two numbers of a date."""

_CHARACTERS = frozenset(("CHAR", "UNICHAR"))
_JOINING = frozenset(("CONCAT", "CONCATENATE", "TEXTJOIN", "SUBSTITUTE", "REPLACE"))
_HIDING_ERRORS = frozenset(
    """
    IFERROR IFNA ISERROR ISERR ISNUMBER ISNONTEXT ERROR.TYPE COUNT AGGREGATE LOOKUP MATCH XMATCH
    XLOOKUP VLOOKUP HLOOKUP FILTER
    """.split()  # noqa: SIM905 - a list of lines says no more
).union(WITH_CRITERIA)


def may_be_date(value: CellValue) -> bool:
    """Whether a value is text with a date of numbers, or text from which a formula makes one."""
    return isinstance(value, str) and _DATE.search(value) is not None


def day_order(workbook: Workbook, index: FormulaIndex) -> DayOrder:
    """In which order a program read dates in text, as the values that it stored show.

    Every formula that may read such a date is computed in both orders from the stored values. The
    day comes first if some stored values are only right in this order, and none only in the other.

    Args:
        workbook: a workbook whose stored values are trusted.
        index: its formulas.
    """
    if workbook.date_1904:
        return DayOrder.UNKNOWN
    try:
        return _shown(workbook, index) if _may_hold_dates(workbook) else DayOrder.UNKNOWN
    except WorkbookError:
        return DayOrder.UNKNOWN


def _may_hold_dates(workbook: Workbook) -> bool:
    strings = workbook.shared_strings
    parts = [tab.part for tab in workbook.tabs if tab.is_worksheet]
    for part in ([strings] if strings else []) + parts:
        classes = workbook.package.read(part).translate(_CLASSES)
        if any(dated in classes for dated in _DATED):
            return True
    return False


def _shown(workbook: Workbook, index: FormulaIndex) -> DayOrder:
    stored = {
        CellRef(sheet, row, column): cell.value
        for sheet in workbook.sheet_names
        for column, (rows, cells) in index.sheet(sheet).cells.items()
        for row, cell in zip(rows, cells, strict=True)
        if cell.has_cached_value
    }
    readings = [
        OwnValues(Contents(workbook, index, order), stored)
        for order in (DayOrder.DAY_FIRST, DayOrder.MONTH_FIRST)
    ]
    found: set[DayOrder] = set()
    for ref, cell in _candidates(workbook, index, stored):
        try:
            by_day, by_month = (own.any_value(ref, cell) for own in readings)
        except UnsureError:
            continue
        value = plain_scalar(stored[ref])
        right = [same_value(value, reading) for reading in (by_day, by_month)]
        if right == [True, False]:
            found.add(DayOrder.DAY_FIRST)
        elif right == [False, True]:
            return DayOrder.UNKNOWN
    return found.pop() if found else DayOrder.UNKNOWN


def _candidates(
    workbook: Workbook, index: FormulaIndex, stored: Mapping[CellRef, CellValue]
) -> Iterator[tuple[CellRef, Cell]]:
    """The formula cells with a stored value that may read a date in text."""
    columns: dict[str, set[int]] = defaultdict(set)
    for sheet in workbook.sheet_names:
        values = workbook.stored_values(sheet)
        columns[sheet] = {key & COLUMN_MASK for key, value in values.items() if may_be_date(value)}
    tried = 0
    for ref in stored:
        cell = index.cell(ref)
        formula = (cell.formula if cell is not None else None) or ""
        if cell is None or cell.array_range is not None or traits(formula).volatile:
            continue
        reads_date = any(
            read.min_column <= column <= read.max_column
            for read in references(formula)
            for column in columns.get(index.named(read.sheet or ref.sheet) or "", ())
        )
        if reads_date or any(map(may_be_date, texts_of(formula))):
            yield ref, cell
            tried += 1
            if tried == MAX_TRIED:
                return


@dataclass(frozen=True, slots=True)
class Dated:
    """The formula cells of a workbook that may depend on a date in text.

    Attributes:
        cells: the cells; None for every cell.
        made: those that may read a date that formulas make or contain; None for every cell. The
            others only read dates in cells with constants.
        hiding: those that may give a value where an engine that cannot read a date has an error;
            None for every cell.
    """

    cells: AbstractSet[CellRef] | None
    made: AbstractSet[CellRef] | None
    hiding: AbstractSet[CellRef] | None

    def holds(self, sheet: str, cell: Cell) -> bool:
        """Whether a formula may depend on a date in text."""
        return _is_in(self.cells, sheet, cell)

    def among(self, cells: Mapping[CellRef, Cell]) -> dict[CellRef, Cell]:
        """Those of some formula cells that may depend on a date in text."""
        return {ref: cell for ref, cell in cells.items() if self.holds(ref.sheet, cell)}

    def settled(
        self,
        contents: Contents,
        cells: Mapping[CellRef, Cell],
        outcome: CascadeResult,
        asked_again: Callable[[Callable[[bytes], bytes], AbstractSet[CellRef]], CascadeResult],
    ) -> CascadeResult:
        """Replaces the engines' values of cells that may depend on a date in text.

        A cell's value is computed without engines, whether it converts anything or not. An engine's
        value is only taken if it is the same with day and month exchanged in all constants, so that
        it does not depend on the order. An error, and a value that may hide one, must also be the
        same with plain numbers instead of dates, since not every engine can read dates.

        Args:
            contents: the workbook.
            cells: requested formula cells.
            outcome: the values so far.
            asked_again: asks the engines about some cells of a package with changed text constants.
        """
        dated = self.among(cells)
        values = {ref: value for ref, value in outcome.values.items() if ref not in dated}
        own, by_judge = OwnValues(contents, values, self), dict[CellRef, CellValue]()
        for ref, cell in dated.items():
            with contextlib.suppress(UnsureError, WorkbookError):
                by_judge[ref] = own.any_value(ref, cell)
        left = dated.keys() & outcome.values.keys() - by_judge.keys()
        same = {
            ref: outcome.values[ref] for ref in left if not _is_in(self.made, ref.sheet, dated[ref])
        }
        in_doubt = {
            ref
            for ref, value in same.items()
            if isinstance(value, ErrorValue) or _is_in(self.hiding, ref.sheet, dated[ref])
        }
        complete = outcome.complete
        for change, asked in ((with_days_first, same.keys()), (with_plain_numbers, in_doubt)):
            cells_left = asked & same.keys()
            if cells_left:
                again = asked_again(functools.partial(with_texts, change=change), cells_left)
                complete = complete and again.complete
                for ref in cells_left:
                    if ref not in again.values or not same_value(same[ref], again.values[ref]):
                        del same[ref]
        values |= by_judge | same
        failed = outcome.failed | {ref: _why_not(outcome.values[ref]) for ref in left}
        return replace(
            outcome,
            values=values,
            failed={ref: why for ref, why in failed.items() if ref not in values},
            used=outcome.used | ({JUDGE} if by_judge else set()),
            complete=complete,
        )


def _is_in(cells: AbstractSet[CellRef] | None, sheet: str, cell: Cell) -> bool:
    # All cells that an array formula fills have the same source.
    return cells is None or CellRef(sheet, cell.row, cell.column) in cells


def _why_not(value: CellValue) -> str:
    """Why an engine's value is not taken."""
    shown = value.code if isinstance(value, ErrorValue) else repr(value)
    return (
        "it may depend on a date in text; by the stored values of the gold, the day comes first in "
        f"these, but engines read the month first and say {shown}"
    )


def dated_cells(workbook: Workbook, walk: Walk | None) -> Dated:
    """Finds the formula cells that may depend on a date in text.

    Args:
        workbook: the workbook.
        walk: the formula cells, in the order in which they were followed; None if they are not
            known.
    """
    if walk is None:
        return Dated(None, None, None)

    def may_make(step: Followed) -> bool:
        cell = walk.index.cell(step.ref)
        if cell is None or step.may_read_more:
            return True
        formula, functions = cell.formula or "", step.traits.functions
        if not functions.isdisjoint(_CHARACTERS) and (
            "&" in formula or not functions.isdisjoint(_JOINING)
        ):
            return True
        return any(map(may_be_date, texts_of(formula)))

    def may_hide(step: Followed) -> bool:
        return step.may_read_more or not step.traits.functions.isdisjoint(_HIDING_ERRORS)

    constants = Constants(workbook, may_be_date)
    return Dated(
        passed_on(walk, may_make, constants),
        passed_on(walk, may_make),
        passed_on(walk, may_hide),
    )


def with_days_first(text: bytes) -> bytes:
    """Exchanges the first two numbers of every date, since engines read the first one as month."""

    def exchanged(date: re.Match[bytes]) -> bytes:
        first, separator, second = (part for part in date.groups() if part)
        return second + separator + first

    return _NUMBERS.sub(exchanged, text)


def with_plain_numbers(text: bytes) -> bytes:
    """The digits of text that contains a date: a number that every engine can read."""
    return b"".join(re.findall(rb"\d+", text))[:9] if _NUMBERS.search(text) else text
