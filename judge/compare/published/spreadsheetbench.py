"""The verdict of SpreadsheetBench's published evaluation script, faults included.

Rewritten from the script's behaviour, and checked against 3,584 of its recorded verdicts. The
script does several things that a reader would not expect:

- A position is cut at every comma and bang, and quotes (but not spaces) are taken off both ends.
- A part without a sheet belongs to the gold's first sheet; ``answer_sheet`` is never read.
- The corners of a range are read letter by letter, each as its code minus 64, so that lower-case
  letters and spaces name unintended columns. Columns below 1 make the script crash. A range whose
  end is before its start holds no cell and is accepted.
- A whole column, two colons or two bangs make it crash, which counts as not accepted.
- Numbers, booleans and strings that Python reads as numbers are rounded to two binary decimals;
  ``nan`` differs from itself. Dates are rounded to the nearest whole day and equal that number;
  times lose their last three characters. Blank equals the empty string.
- A blank cell under a hyperlink shows the link's target, since openpyxl puts it there.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from judge.compare.cells.comparison import (
    Comparison,
    Difference,
    DifferenceClass,
    Differences,
    remark_on,
)
from judge.compare.cells.range_check import differing_keys
from judge.compare.cells.sides import RangeSide
from judge.compare.cells.value import classify
from judge.compare.profiles import get_profile
from judge.workbook.address import (
    COLUMN_BITS,
    COLUMN_MASK,
    MAX_ROW,
    Window,
    cell_key,
    cell_name,
    parse_cell,
)
from judge.workbook.cell import CellRange, CellValue, ComputedValues, ErrorValue
from judge.workbook.number_formats import EPOCH_1900
from judge.workbook.reader import Workbook, linked_keys

_LAST_COLUMN = 18_278  # ZZZ, the last column that openpyxl names


class ScriptError(Exception):
    """The published script crashes here, which it counts as not accepted."""


@dataclass(frozen=True, slots=True)
class OfficialPart:
    """One part of a position, as the script reads it.

    Attributes:
        sheet: the sheet whose cells are compared.
        window: the cells; None if the part holds no cell at all.
    """

    sheet: str
    window: Window | None


def official_parts(
    position: str, gold_tabs: Sequence[str], output_tabs: Sequence[str]
) -> list[OfficialPart] | None:
    """Returns the cells that the script compares.

    Args:
        position: the answer position as written in the suite.
        gold_tabs: all sheets of the gold in workbook order, chart sheets included.
        output_tabs: all sheets of the output, likewise.

    Returns:
        The parts, or None if the output lacks a sheet, which is not accepted.

    Raises:
        ScriptError: the script crashes.
    """
    parts: list[OfficialPart] = []
    lacking = False
    for piece in position.split(","):
        sheet, cells = gold_tabs[0], piece
        if "!" in piece:
            sheet, *rest = piece.split("!")
            if len(rest) != 1:
                raise ScriptError("ValueError: more than one bang")
            cells = rest[0]
        sheet = sheet.strip("'")
        if sheet not in output_tabs:
            lacking = True
            continue
        if sheet not in gold_tabs:
            raise ScriptError(f"KeyError: the gold has no sheet {sheet!r}")
        parts.append(OfficialPart(sheet, script_window(cells.strip("'"))))
    return None if lacking else parts


def script_window(cells: str) -> Window | None:
    """Returns the cells of a range as the published scripts read it; None if it holds no cell.

    Raises:
        ScriptError: the script crashes.
    """
    if ":" not in cells:
        cell = parse_cell(cells)
        if cell is None:
            raise ScriptError(f"no single cell: {cells!r}")
        return Window(*cell, *cell)
    corners = cells.split(":")
    if len(corners) != 2:
        raise ScriptError("ValueError: more than one colon")
    (column, row), (last_column, last_row) = (_corner(corner) for corner in corners)
    if column > last_column or row > last_row:
        return None
    if column < 1:
        raise ScriptError("AttributeError: a row where a cell should be")
    if row < 1 or last_row > MAX_ROW or last_column > _LAST_COLUMN:
        raise ScriptError("ValueError: outside of a worksheet")
    return Window(row, column, last_row, last_column)


def _corner(text: str) -> tuple[int, int]:
    column = 0
    digits = ""
    for character in text:
        if character.isdigit():
            digits += character
        else:
            column = column * 26 + ord(character) - 64
    try:
        return column, int(digits)
    except ValueError:
        raise ScriptError(f"ValueError: no row in {text!r}") from None


# -- values ---------------------------------------------------------------------------------------


def official_agree(expected: CellValue, actual: CellValue) -> bool:
    """Returns whether the script considers two values equal.

    Raises:
        ScriptError: the script crashes on one of them.
    """
    first, second = transformed(expected), transformed(actual)
    if first in {"", None} and second in {"", None}:
        return True
    return type(first) is type(second) and first == second


def transformed(value: CellValue) -> CellValue:
    """Converts a value as the published scripts do: rounded, dates as days, strings as numbers.

    Raises:
        ScriptError: the script crashes.
    """
    if isinstance(value, ErrorValue):
        return value.code
    if isinstance(value, int | float):  # booleans are integers here, as in the script
        try:
            return round(float(value), 2)
        except OverflowError:
            raise ScriptError("OverflowError: a whole number too large for a float") from None
    if isinstance(value, dt.time):
        return str(value)[:-3]
    if isinstance(value, dt.datetime):
        span = value - EPOCH_1900
        return float(round(span.days + span.seconds / 86_400))
    if isinstance(value, str):
        try:
            return round(float(value), 2)
        except ValueError:
            return value
    return value


# -- the verdict on two workbooks, with all differences --------------------------------------------

PROFILE_NAME = "official"

_SCRIPT = get_profile(PROFILE_NAME)

_ENDS_OF_NAN = {"n", "N", *filter(str.isspace, map(chr, range(0x3001)))}
_HUGE = 1 << 1000  # close to the largest whole number that fits a float


def officially_equal(
    position: str,
    gold: Workbook,
    output: Workbook,
    gold_computed: ComputedValues,
    output_computed: ComputedValues,
) -> bool:
    """Returns whether the published script accepts an output.

    This is :func:`check_officially` without the differences: in the last range, no cell is compared
    after the first one that differs.

    Raises:
        WorkbookError: cells that the script reads cannot be read here.
    """
    equal = True
    try:
        read = _ranges(position, gold, output)
        if read is None:
            return False
        for left, area in zip(reversed(range(len(read.ranges))), read.ranges, strict=True):
            expected = script_values(RangeSide(gold, area, gold_computed))
            actual = script_values(RangeSide(output, area, output_computed))
            differing = differing_keys(expected, actual, official_agree)
            if not left:
                differing = islice(differing, 1)
            if _with_nan(expected, actual, differing):
                equal = False
    except ScriptError:
        return False
    return equal


def check_officially(
    position: str,
    gold: Workbook,
    output: Workbook,
    *,
    gold_computed: ComputedValues,
    output_computed: ComputedValues,
    max_differences: int,
) -> Comparison:
    """Compares two workbooks as the published script does.

    Args:
        position: the answer position as written in the suite.
        gold: the gold workbook.
        output: the output workbook.
        gold_computed: computed values of the gold, which replace those in the file.
        output_computed: computed values of the output, likewise.
        max_differences: how many differences are listed at most; all are counted.

    Raises:
        WorkbookError: cells that the script reads cannot be read here.
    """
    differences = Differences(max_differences)
    notes: list[str] = []
    ranges: list[CellRange] = []
    equal = False
    try:
        read = _ranges(position, gold, output)
        if read is None:
            notes.append(
                "the output lacks a sheet of the position as the published script reads it"
            )
        else:
            ranges = read.ranges
            for area in ranges:
                expected = RangeSide(gold, area, gold_computed)
                _compare(expected, RangeSide(output, area, output_computed), differences)
            if len(ranges) < read.parts:
                notes.append(
                    "a part of the position holds no cell as the published script reads it"
                )
            equal = not differences.cells
    except ScriptError as error:
        notes.append(f"the published script crashes, which counts as not accepted: {error}")
    return Comparison(
        equal=equal,
        profile=PROFILE_NAME,
        ranges=tuple(ranges),
        cells=sum(window.size for window in ranges),
        differing_cells=differences.cells,
        difference_counts=differences.counts,
        differences=differences.kept,
        notes=tuple(notes),
        official_equal=equal,
    )


@dataclass(frozen=True, slots=True)
class _Ranges:
    """The ranges that the script reads, and how many parts the position has."""

    ranges: list[CellRange]
    parts: int


def _ranges(position: str, gold: Workbook, output: Workbook) -> _Ranges | None:
    """Finds and reads the ranges of a position; None if the output lacks one of the sheets."""
    sheets = [tab.name for tab in gold.tabs], [tab.name for tab in output.tabs]
    parts = official_parts(position, *sheets)
    if parts is None:
        return None
    ranges = [_cell_range(part) for part in parts if part.window is not None]
    _load(ranges, gold, output)
    return _Ranges(ranges, len(parts))


def _cell_range(part: OfficialPart) -> CellRange:
    window = part.window
    assert window is not None
    return CellRange.of(part.sheet, window)


def _load(ranges: list[CellRange], gold: Workbook, output: Workbook) -> None:
    for workbook in (gold, output):
        for window in ranges:
            if window.sheet not in workbook.sheet_names:
                raise ScriptError(f"TypeError: {window.sheet!r} is a chart sheet")
        workbook.preload(ranges)


def _compare(gold: RangeSide, output: RangeSide, differences: Differences) -> None:
    expected, actual = script_values(gold), script_values(output)
    differing = _with_nan(expected, actual, differing_keys(expected, actual, official_agree))
    gold_sheet, output_sheet = gold.sheet, output.sheet
    for key in sorted(differing):
        first, second = expected.get(key), actual.get(key)
        raw = output_sheet.raw_formula(key)
        uncomputed = second is None and raw is not None and not raw.cached
        kind = DifferenceClass.NOT_CALCULATED if uncomputed else classify(first, second, _SCRIPT)
        if differences.is_full:
            differences.count(kind)
            continue
        differences.add(
            Difference(
                kind=kind,
                sheet=gold.cell_range.sheet,
                cell=cell_name(key >> COLUMN_BITS, key & COLUMN_MASK),
                expected=first,
                actual=second,
                expected_formula=gold_sheet.formula(key),
                actual_formula=output_sheet.formula(key),
                detail=remark_on(first, second, expected_1904=gold.workbook.date_1904),
            )
        )


def script_values(side: RangeSide) -> Mapping[int, CellValue]:
    """Returns the values as openpyxl reads them: blank cells with a link hold its target."""
    values = side.values()
    filled: dict[int, CellValue] | None = None
    window, merges = side.window, side.sheet.tail.merges
    links = linked_keys(side.workbook, side.cell_range.sheet, window, merges=len(merges))
    for linked, keys, target in links:
        filled = dict(values) if filled is None else filled
        for key in _filled_keys(linked, keys, merges):
            if window.holds(key >> COLUMN_BITS, key & COLUMN_MASK) and filled.get(key) is None:
                filled[key] = target or None
    return values if filled is None else filled


def _filled_keys(linked: Window, keys: Sequence[int], merges: Sequence[Window]) -> Sequence[int]:
    """Returns the cells that receive a link's target if they are blank."""
    if not merges:
        return keys
    if _first_key(linked) == cell_key(linked.max_row, linked.max_column):
        row, column = linked.first
        covering = next((merge for merge in merges if merge.holds(row, column)), linked)
        # A link on a covered cell moves to the first cell of the merged range.
        return [_first_key(covering)]
    return [
        key
        for key in keys
        if not any(
            merge.holds(key >> COLUMN_BITS, key & COLUMN_MASK) and _first_key(merge) != key
            for merge in merges
        )
    ]


def _first_key(window: Window) -> int:
    return cell_key(*window.first)


def _with_nan(
    expected: Mapping[int, CellValue], actual: Mapping[int, CellValue], differing: Iterable[int]
) -> set[int]:
    """Adds cells that the script considers unequal although both sides hold the same value."""
    odd = [
        key
        for key, value in expected.items()
        if (value.__class__ is str and value[-1:] in _ENDS_OF_NAN and _may_be_nan(value))
        or (value.__class__ is int and not -_HUGE < value < _HUGE)
    ]
    return {*differing} | {key for key in odd if not official_agree(expected[key], actual.get(key))}


def _may_be_nan(text: str) -> bool:
    return text.rstrip()[-3:].lower() == "nan"
