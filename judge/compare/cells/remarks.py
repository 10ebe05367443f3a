"""What is reported about a difference in addition to the two values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from judge.compare.cells.comparison import Comparison, Difference, DifferenceClass
from judge.errors import WorkbookError
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, Window, cell_key, parse_cell
from judge.workbook.cell import CellValue, ErrorValue
from judge.workbook.number_formats import to_serial
from judge.workbook.position import match_sheet
from judge.workbook.reader import Workbook, open_workbook


def remark_on(expected: CellValue, actual: CellValue, *, expected_1904: bool = False) -> str:
    """What the two values do not show by themselves; empty if there is nothing to add.

    Args:
        expected: the gold's value.
        actual: the output's value, which does not agree with it.
        expected_1904: whether the gold counts dates from 1904.
    """
    if isinstance(expected, ErrorValue):
        return "the gold itself holds an error value"
    if isinstance(expected, dt.datetime | dt.date | dt.time | dt.timedelta) and (
        isinstance(actual, int | float) and not isinstance(actual, bool)
    ):
        return f"the gold stores {to_serial(expected, date_1904=expected_1904):.10g}"
    return ""


def tell_erased(comparison: Comparison, before: Workbook | Path) -> Comparison:
    """Adds to a comparison what the input holds in the cells that the output left blank.

    This is only an explanation: an input that cannot be read leaves the comparison as it is.

    Args:
        comparison: the comparison of an output with its gold.
        before: the input workbook, which is only opened if something is blank.
    """
    blank: dict[str, list[int]] = {}
    for difference in comparison.differences:
        place = parse_cell(difference.cell) if difference.kind is DifferenceClass.MISSING else None
        if place is not None:
            blank.setdefault(difference.sheet, []).append(cell_key(*place))
    if not blank:
        return comparison
    held: dict[tuple[str, int], CellValue] = {}
    try:
        before = open_workbook(before) if isinstance(before, Path) else before
        for sheet, keys in blank.items():
            name = match_sheet(sheet, before.sheet_names)
            if name is not None:
                values = before.sheet(name).values(_around(keys))
                held.update({(sheet, key): values.get(key) for key in keys})
    except WorkbookError:
        return comparison
    return replace(
        comparison,
        differences=tuple(_with_input(difference, held) for difference in comparison.differences),
    )


def _with_input(difference: Difference, held: dict[tuple[str, int], CellValue]) -> Difference:
    place = parse_cell(difference.cell)
    if place is None or difference.kind is not DifferenceClass.MISSING:
        return difference
    value = held.get((difference.sheet, cell_key(*place)))
    return replace(difference, erased=None if value == "" else value)


def _around(keys: Sequence[int]) -> Window:
    rows = [key >> COLUMN_BITS for key in keys]
    columns = [key & COLUMN_MASK for key in keys]
    return Window(min(rows), min(columns), max(rows), max(columns))
