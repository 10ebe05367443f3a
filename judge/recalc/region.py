"""Finds out how a machine read dates in text and named months, and which cells depend on it.

``"3/4/2021"`` is in March or in April, and ``TEXT(A1,"mmmm")`` is ``March`` or ``marzo``, depending
on the region of the machine, which no file records. Only the values that Excel stored show it.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from judge.errors import WorkbookError
from judge.formulas.lexer import texts_of
from judge.formulas.references import references
from judge.formulas.traits import traits
from judge.formulas.tree import Call, Constant, Node, Operation, tree
from judge.recalc.agreement import same_value
from judge.recalc.contract import CascadeResult
from judge.recalc.functions.contents import Contents, plain_scalar
from judge.recalc.functions.conversions import UnsureError
from judge.recalc.functions.own import OwnValues
from judge.recalc.functions.regions import (
    ENGLISH,
    LANGUAGES,
    UNITED_STATES,
    DayOrder,
    Names,
    Region,
    common,
)
from judge.recalc.functions.tried import WITH_CRITERIA
from judge.recalc.names import JUDGE
from judge.recalc.reduction import Constants, with_texts
from judge.recalc.support import with_dependents
from judge.workbook.address import COLUMN_MASK
from judge.workbook.cell import Cell, CellRef, CellValue, ErrorValue
from judge.workbook.dependency import Followed, FormulaIndex, Walk
from judge.workbook.reader import Workbook

MAX_TRIED = 5_000
"""Largest number of formulas of a workbook whose stored values are compared with several readings.
"""

_CLASSES = bytes(
    ord("0") if byte in b"0123456789" else ord('"') if byte in b'"&;' else byte
    for byte in range(256)
)
_DATED = (b"0/0/00", b"0/00/00", b"0-0-00", b"0-00-00", b'"/"', b'"-"')
"""How a date in text, or a string from which formulas make one, looks in XML after every digit is
replaced by 0 and every quotation mark, escaped or not, by its last character. Six searches for
bytes take an
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

_CODES = (b"mmm", b"MMM", b"Mmm", b"ddd", b"DDD", b"Ddd")
"""A part contains one of these if a formula writes names of months or days."""

_CODE_OF_NAME = re.compile("mmm|ddd", re.IGNORECASE)
"""A number format that writes such names contains one of these."""

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


def region_of(contents: Contents) -> Region:
    """The region of the machine that saved a workbook, as the values that it stored show.

    Every formula that may read a date in text is computed in both orders from the stored values.
    The day comes first if some stored values are only right in this order, and none only in the
    other. Formulas that write names are computed in all languages: see :func:`_names`.

    Args:
        contents: a workbook whose stored values are trusted, read as in the United States.
    """
    workbook = contents.workbook
    if workbook.date_1904:
        return UNITED_STATES
    try:
        dates, names = _may_depend(workbook)
        if not dates and not names:
            return UNITED_STATES
        stored = _stored_results(contents)
        order = _day_order(contents, stored) if dates else DayOrder.UNKNOWN
        region = Region(order if order is DayOrder.DAY_FIRST else DayOrder.UNKNOWN)
        return replace(region, names=_names(contents, stored, region)) if names else region
    except WorkbookError:
        return UNITED_STATES


def _stored_results(contents: Contents) -> dict[CellRef, CellValue]:
    return {
        CellRef(sheet, row, column): cell.value
        for sheet in contents.workbook.sheet_names
        for column, (rows, cells) in contents.index.sheet(sheet).cells.items()
        for row, cell in zip(rows, cells, strict=True)
        if cell.has_cached_value
    }


def _may_depend(workbook: Workbook) -> tuple[bool, bool]:
    """Whether a workbook may hold dates in text, and whether its formulas may write names."""
    dates = calls = codes = False
    strings = workbook.shared_strings
    parts = [tab.part for tab in workbook.tabs if tab.is_worksheet]
    for part in ([strings] if strings else []) + parts:
        content = workbook.package.read(part)
        if not dates:
            classes = content.translate(_CLASSES)
            dates = any(dated in classes for dated in _DATED)
        has_call = b"TEXT(" in content
        calls = calls or has_call
        # A format is written in the formula, or in a cell.
        if not codes and (has_call or part == strings):
            codes = any(code in content for code in _CODES)
    return dates, calls and codes


# -- the order of dates ----------------------------------------------------------------------------


def _day_order(contents: Contents, stored: Mapping[CellRef, CellValue]) -> DayOrder:
    readings = [
        OwnValues(contents.in_region(Region(order)), stored)
        for order in (DayOrder.DAY_FIRST, DayOrder.MONTH_FIRST)
    ]
    orders: set[DayOrder] = set()
    for ref, cell in _reading_dates(contents, stored):
        try:
            by_day, by_month = (own.any_value(ref, cell) for own in readings)
        except UnsureError:
            continue
        value = plain_scalar(stored[ref])
        right = [same_value(value, reading) for reading in (by_day, by_month)]
        if right == [True, False]:
            orders.add(DayOrder.DAY_FIRST)
        elif right == [False, True]:
            return DayOrder.UNKNOWN
    return orders.pop() if orders else DayOrder.UNKNOWN


def _reading_dates(
    contents: Contents, stored: Mapping[CellRef, CellValue]
) -> Iterator[tuple[CellRef, Cell]]:
    """The formula cells with a stored value that may read a date in text."""
    workbook, index = contents.workbook, contents.index
    columns: dict[str, set[int]] = defaultdict(set)
    for sheet in workbook.sheet_names:
        values = workbook.stored_values(sheet)
        columns[sheet] = {key & COLUMN_MASK for key, value in values.items() if may_be_date(value)}
    tried = 0
    for ref, cell in _repeatable(index, stored):
        formula = cell.formula or ""
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


def _repeatable(
    index: FormulaIndex, stored: Mapping[CellRef, CellValue]
) -> Iterator[tuple[CellRef, Cell]]:
    """The formula cells with a stored value that would be the same at any time."""
    for ref in stored:
        cell = index.cell(ref)
        if cell is None or cell.array_range is not None or traits(cell.formula or "").volatile:
            continue
        yield ref, cell


# -- the names of months and days ------------------------------------------------------------------


def _names(contents: Contents, stored: Mapping[CellRef, CellValue], region: Region) -> Names:
    """The names of months and days of a language, as stored values show.

    Every formula that writes such names is computed in all languages from the stored values. If a
    stored value is right in some languages, those in which it is wrong are out. The names are those
    that the remaining languages and styles share. They are English unless a stored value shows
    otherwise, and if the stored values contradict each other.
    """
    shown = []
    english = OwnValues(contents.in_region(region), stored)
    for ref, cell in _repeatable(contents.index, stored):
        value = stored[ref]
        if isinstance(value, str) and writes_names(cell.formula or ""):
            languages = [names for names in (ENGLISH, *LANGUAGES) if names.in_text(value)]
            if languages:
                shown.append((ref, cell, languages, _is_right(english, ref, cell, value)))
                if len(shown) == MAX_TRIED:
                    break
    # Values that are wrong in English come first: without any, no other language is tried.
    shown.sort(key=lambda evidence: evidence[3] is not False)
    if not shown or shown[0][3] is not False:
        return ENGLISH

    @functools.cache
    def reading(names: Names) -> OwnValues:
        accepting = replace(names, other_codes="")
        return OwnValues(contents.in_region(replace(region, names=accepting)), stored)

    remaining: Sequence[Names] = (ENGLISH, *LANGUAGES)
    for ref, cell, languages, _ in shown:
        right = {
            names: _is_right(reading(names), ref, cell, stored[ref])
            for names in dict.fromkeys((*languages, *remaining))
        }
        if True in right.values():
            remaining = [names for names in remaining if right[names] is not False]
        if not remaining:
            return ENGLISH
    if ENGLISH in remaining:
        return ENGLISH
    names = common(remaining)
    # A code such as "yyyy" is only read as in English if a stored value shows that it is.
    cautious = OwnValues(contents.in_region(replace(region, names=names)), stored)
    is_shown = any(
        _is_right(reading(names), ref, cell, stored[ref])
        and _is_right(cautious, ref, cell, stored[ref]) is None
        for ref, cell, _, _ in shown
    )
    return replace(names, other_codes="") if is_shown else names


def _is_right(own: OwnValues, ref: CellRef, cell: Cell, value: CellValue) -> bool | None:
    """Whether a stored value is what a reading computes; None if it does not compute the cell."""
    try:
        return same_value(plain_scalar(value), own.any_value(ref, cell))
    except UnsureError:
        return None


def writes_names(formula: str) -> bool:
    """Whether a formula may write names of months or days: by TEXT, with such a format."""
    if "TEXT" not in traits(formula).functions:
        return False
    node = tree(formula)
    return node is None or any(map(_may_write_name, _calls(node)))


def _calls(node: Node) -> Iterator[Call]:
    parts: Sequence[Node] = ()
    if isinstance(node, Call):
        yield node
        parts = node.arguments
    elif isinstance(node, Operation):
        parts = node.operands
    for part in parts:
        yield from _calls(part)


def _may_write_name(call: Call) -> bool:
    if call.name != "TEXT":
        return False
    code = call.arguments[1] if len(call.arguments) == 2 else None
    return not isinstance(code, Constant) or _CODE_OF_NAME.search(str(code.value)) is not None


# -- the cells that depend on the region -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Regional:
    """The formula cells of a workbook that depend on its region.

    Attributes:
        region: the region, which is not the United States.
        dates: the cells that may depend on a date in text; None for every cell.
        names: the cells that may depend on the name of a month or day that a formula writes or
            turns into a date; None for every cell.
        made: the cells that may depend on names, or on a date that formulas make or contain; None
            for every cell. For these, reading the constants differently does not show whether an
            engine's value depends on the region. All other cells only read dates of numbers in
            cells with constants.
        hiding: the cells that may have a value even if an engine cannot read a date and gets an
            error; None for every cell.
    """

    region: Region
    dates: AbstractSet[CellRef] | None
    names: AbstractSet[CellRef] | None
    made: AbstractSet[CellRef] | None
    hiding: AbstractSet[CellRef] | None

    def reads_date(self, sheet: str, cell: Cell) -> bool:
        """Whether a formula may depend on a date in text."""
        return _is_in(self.dates, sheet, cell)

    def among(self, cells: Mapping[CellRef, Cell]) -> dict[CellRef, Cell]:
        """Those of some formula cells that may depend on the region."""
        return {
            ref: cell
            for ref, cell in cells.items()
            if self.reads_date(ref.sheet, cell) or _is_in(self.names, ref.sheet, cell)
        }

    def settled(
        self,
        contents: Contents,
        cells: Mapping[CellRef, Cell],
        outcome: CascadeResult,
        asked_again: Callable[[Callable[[bytes], bytes], AbstractSet[CellRef]], CascadeResult],
    ) -> CascadeResult:
        """Replaces the engines' values of cells that may depend on the region.

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
        regional = self.among(cells)
        values = {ref: value for ref, value in outcome.values.items() if ref not in regional}
        own, by_judge = OwnValues(contents, values, self), dict[CellRef, CellValue]()
        for ref, cell in regional.items():
            with contextlib.suppress(UnsureError, WorkbookError):
                by_judge[ref] = own.any_value(ref, cell)
        left = regional.keys() & outcome.values.keys() - by_judge.keys()
        same = {
            ref: outcome.values[ref]
            for ref in left
            if not _is_in(self.made, ref.sheet, regional[ref])
        }
        in_doubt = {
            ref
            for ref, value in same.items()
            if isinstance(value, ErrorValue) or _is_in(self.hiding, ref.sheet, regional[ref])
        }
        complete = outcome.complete
        for change, possible in ((with_days_first, same.keys()), (with_plain_numbers, in_doubt)):
            cells_left = possible & same.keys()
            if cells_left:
                again = asked_again(functools.partial(with_texts, change=change), cells_left)
                complete = complete and again.complete
                for ref in cells_left:
                    if ref not in again.values or not same_value(same[ref], again.values[ref]):
                        del same[ref]
        values |= by_judge | same
        failed = outcome.failed | {
            ref: self._why_not(ref.sheet, regional[ref], outcome.values[ref]) for ref in left
        }
        return replace(
            outcome,
            values=values,
            failed={ref: why for ref, why in failed.items() if ref not in values},
            used=outcome.used | ({JUDGE} if by_judge else set()),
            complete=complete,
        )

    def _why_not(self, sheet: str, cell: Cell, value: CellValue) -> str:
        """Why an engine's value is not taken."""
        shown = value.code if isinstance(value, ErrorValue) else repr(value)
        if _is_in(self.names, sheet, cell):
            return (
                "it may depend on a name of a month or day; by the stored values of the gold, "
                f"these are in another language ({self.region.names.language}), but engines take "
                f"them for English and say {shown}"
            )
        return (
            "it may depend on a date in text; by the stored values of the gold, the day comes "
            f"first in these, but engines read the month first and say {shown}"
        )


def _is_in(cells: AbstractSet[CellRef] | None, sheet: str, cell: Cell) -> bool:
    # All cells that an array formula fills have the same source.
    return cells is None or CellRef(sheet, cell.row, cell.column) in cells


def regional_cells(workbook: Workbook, walk: Walk | None, region: Region) -> Regional:
    """Finds the formula cells that may depend on a region.

    Args:
        workbook: the workbook.
        walk: the formula cells, in the order in which they were followed; None if they are not
            known.
        region: not the United States.
    """
    if walk is None:
        return Regional(region, None, None, None, None)

    def is_date(value: CellValue) -> bool:
        if not isinstance(value, str):
            return False
        if region.day_order is DayOrder.DAY_FIRST and may_be_date(value):
            return True
        return not region.speaks_english and _has_digit(value) and region.names_month(value)

    def may_make(step: Followed) -> bool:
        cell = walk.index.cell(step.ref)
        if cell is None or step.may_read_more:
            return True
        if not step.traits.functions.isdisjoint(_CHARACTERS) and _joins(step, cell):
            return True
        return any(map(is_date, texts_of(cell.formula or "")))

    def may_hide(step: Followed) -> bool:
        return step.may_read_more or not step.traits.functions.isdisjoint(_HIDING_ERRORS)

    named = Constants(workbook, lambda value: isinstance(value, str) and region.names_month(value))

    def may_name(step: Followed) -> bool:
        cell = walk.index.cell(step.ref)
        if cell is None or step.may_read_more or writes_names(cell.formula or ""):
            return True
        return _joins(step, cell) and (
            any(map(region.names_month, texts_of(cell.formula or "")))
            or any(named(read.sheet or step.ref.sheet, read) for read in step.reads)
        )

    dates = with_dependents(walk, may_make, Constants(workbook, is_date))
    hiding = with_dependents(walk, may_hide)
    if region.speaks_english:
        return Regional(region, dates, frozenset(), with_dependents(walk, may_make), hiding)
    # Engines know no other names, so there is no other reading to compare with.
    return Regional(region, dates, with_dependents(walk, may_name), None, hiding)


def _joins(step: Followed, cell: Cell) -> bool:
    """Whether a formula joins strings."""
    return "&" in (cell.formula or "") or not step.traits.functions.isdisjoint(_JOINING)


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def with_days_first(text: bytes) -> bytes:
    """Exchanges the first two numbers of every date, since engines read the first one as month."""

    def exchanged(date: re.Match[bytes]) -> bytes:
        first, separator, second = (part for part in date.groups() if part)
        return second + separator + first

    return _NUMBERS.sub(exchanged, text)


def with_plain_numbers(text: bytes) -> bytes:
    """The digits of text that contains a date: a number that every engine can read."""
    return b"".join(re.findall(rb"\d+", text))[:9] if _NUMBERS.search(text) else text
