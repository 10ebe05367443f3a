"""The published script's verdict on two workbooks, with all differences, not only the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judge.compare.cells.comparison import Comparison, Difference, DifferenceClass
from judge.compare.cells.differences import Differences
from judge.compare.cells.range_check import RangeSide, differing_keys
from judge.compare.cells.remarks import remark_on
from judge.compare.cells.value import classify
from judge.compare.profiles import get_profile
from judge.compare.published.spreadsheetbench import (
    OfficialPart,
    ScriptError,
    official_agree,
    official_parts,
)
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, Window, cell_key, cell_name
from judge.workbook.cell import CellRange, CellValue, ComputedValues
from judge.workbook.links import linked_keys
from judge.workbook.reader import Workbook

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
    """Whether the published script accepts an output.

    Raises:
        WorkbookError: cells that the script reads cannot be read here.
    """
    return check_officially(
        position,
        gold,
        output,
        gold_computed=gold_computed,
        output_computed=output_computed,
        max_differences=0,
    ).equal


def check_officially(
    position: str,
    gold: Workbook,
    output: Workbook,
    *,
    gold_computed: ComputedValues,
    output_computed: ComputedValues,
    max_differences: int,
) -> Comparison:
    """Compares as the published script does.

    Args:
        position: the answer position as the suite has it.
        gold: the gold workbook.
        output: the output workbook.
        gold_computed: computed values of the gold, which replace those in the file.
        output_computed: the same for the output.
        max_differences: how many differences are kept; all are counted.

    Raises:
        WorkbookError: cells that the script reads cannot be read here.
    """
    found = Differences(max_differences)
    notes: list[str] = []
    ranges: list[CellRange] = []
    equal = False
    try:
        parts = official_parts(
            position, [tab.name for tab in gold.tabs], [tab.name for tab in output.tabs]
        )
        if parts is None:
            notes.append(
                "the output lacks a sheet of the position as the published script reads it"
            )
        else:
            ranges = [_cell_range(part) for part in parts if part.window is not None]
            _load(ranges, gold, output)
            for each in ranges:
                _compare(
                    RangeSide(gold, each, gold_computed),
                    RangeSide(output, each, output_computed),
                    found,
                )
            if len(ranges) < len(parts):
                notes.append(
                    "a part of the position holds no cell as the published script reads it"
                )
            equal = not found.cells
    except ScriptError as error:
        notes.append(f"the published script falls over and does not accept: {error}")
    return Comparison(
        equal=equal,
        profile=PROFILE_NAME,
        ranges=tuple(ranges),
        cells=sum(each.size for each in ranges),
        differing_cells=found.cells,
        difference_counts=found.counts,
        differences=found.kept,
        notes=tuple(notes),
        official_equal=equal,
    )


def _cell_range(part: OfficialPart) -> CellRange:
    window = part.window
    assert window is not None
    return CellRange(
        part.sheet, window.min_row, window.min_column, window.max_row, window.max_column
    )


def _load(ranges: list[CellRange], gold: Workbook, output: Workbook) -> None:
    for workbook in (gold, output):
        for each in ranges:
            if each.sheet not in workbook.sheet_names:
                raise ScriptError(f"TypeError: {each.sheet!r} is a chart sheet")
        workbook.preload(ranges)


def _compare(gold: RangeSide, output: RangeSide, found: Differences) -> None:
    expected, actual = script_values(gold), script_values(output)
    differing = _with_nan(expected, actual, differing_keys(expected, actual, official_agree))
    for key in sorted(differing):
        first, second = expected.get(key), actual.get(key)
        raw = output.sheet.raw_formula(key)
        uncomputed = second is None and raw is not None and not raw.cached
        kind = DifferenceClass.NOT_CALCULATED if uncomputed else classify(first, second, _SCRIPT)
        if found.is_full:
            found.count(kind)
            continue
        found.add(
            Difference(
                kind=kind,
                sheet=gold.cell_range.sheet,
                cell=cell_name(key >> COLUMN_BITS, key & COLUMN_MASK),
                expected=first,
                actual=second,
                expected_formula=gold.sheet.formula(key),
                actual_formula=output.sheet.formula(key),
                detail=remark_on(first, second, expected_1904=gold.workbook.date_1904),
            )
        )


def script_values(side: RangeSide) -> Mapping[int, CellValue]:
    """The values as openpyxl gives them, which puts link targets into blank cells."""
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
    """Cells that get a link's target if they are blank."""
    if not merges:
        return keys
    if _first_key(linked) == cell_key(linked.max_row, linked.max_column):
        row, column = linked.min_row, linked.min_column
        covering = next((each for each in merges if each.holds(row, column)), linked)
        # A link on a covered cell moves to the first cell of the merged range.
        return [_first_key(covering)]
    return [
        key
        for key in keys
        if not any(
            each.holds(key >> COLUMN_BITS, key & COLUMN_MASK) and _first_key(each) != key
            for each in merges
        )
    ]


def _first_key(window: Window) -> int:
    return cell_key(window.min_row, window.min_column)


def _with_nan(
    expected: Mapping[int, CellValue], actual: Mapping[int, CellValue], differing: list[int]
) -> set[int]:
    """Adds cells that hold the same value on both sides, which the script considers unequal."""
    odd = [
        key
        for key, value in expected.items()
        if (value.__class__ is str and value[-1:] in _ENDS_OF_NAN and _may_be_nan(value))
        or (value.__class__ is int and not -_HUGE < value < _HUGE)
    ]
    return {*differing} | {key for key in odd if not official_agree(expected[key], actual.get(key))}


def _may_be_nan(text: str) -> bool:
    return text.rstrip()[-3:].lower() == "nan"
