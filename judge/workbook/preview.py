"""The first rows of a workbook's sheets, for people and models to look at.

Only the rows that are shown are parsed, and the shared strings are read only as far as those rows
need them. The rows below are skipped as bytes, since merged ranges are written after all rows; in a
worksheet of more than 16 MiB not even that is done.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from judge.errors import WorkbookError
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, MAX_COLUMN
from judge.workbook.cell import CellValue, ErrorValue
from judge.workbook.dates import from_serial, to_serial
from judge.workbook.reader import open_workbook
from judge.workbook.sheets.sheet_cells import SheetCells

Value = str | int | float | bool | dt.datetime | dt.time | ErrorValue | None
"""What a cell shows; None where it is blank."""

_EXACT = 10**15
"""From here on, not every whole number is a floating-point number that prints the same digits."""


@dataclass(frozen=True, slots=True)
class SheetPreview:
    """The first rows of one sheet.

    Attributes:
        name: the sheet's name.
        rows: values of the first rows, row 1 first, all of the same width; blank rows at the
            end of the sheet are left out.
        total_rows: rows that the sheet says it has; None if it does not say.
        total_columns: columns that the sheet says it has; None if it does not say.
        more_rows: whether rows follow that are not in ``rows``.
        merged: merged ranges that touch ``rows``, as ``A1:C1``.
    """

    name: str
    rows: tuple[tuple[Value, ...], ...]
    total_rows: int | None = None
    total_columns: int | None = None
    more_rows: bool = False
    merged: tuple[str, ...] = ()


def read_preview(path: Path, rows: int) -> tuple[SheetPreview, ...]:
    """The first rows of every worksheet, in the workbook's order.

    Args:
        path: the workbook (.xlsx or .xlsm).
        rows: how many rows of each sheet, counted from row 1.

    Raises:
        WorkbookError: not a workbook, broken as far as it is read, or over a limit.
    """
    workbook = open_workbook(path)
    try:
        return tuple(
            _preview(name, cells, rows, date_1904=workbook.date_1904)
            for name, cells in workbook.first_rows(rows)
        )
    except WorkbookError as error:
        raise WorkbookError(f"{path}: {error.message}", hint=error.hint) from error


def _preview(name: str, cells: SheetCells, rows: int, *, date_1904: bool) -> SheetPreview:
    dimension, more = cells.tail.dimension, cells.rows_below
    merged = (str(merge) for merge in cells.tail.merges if merge.min_row <= rows)
    return SheetPreview(
        name=name,
        rows=_grid(cells.values, rows if more else 0, date_1904=date_1904),
        total_rows=dimension.max_row if dimension else None,
        total_columns=dimension.max_column if dimension else None,
        more_rows=more,
        merged=tuple(dict.fromkeys(merged)),
    )


def _grid(
    values: Mapping[int, CellValue], least_rows: int, *, date_1904: bool
) -> tuple[tuple[Value, ...], ...]:
    """The cells as rows of values, all of the same width."""
    stored = {key: value for key, value in values.items() if value is not None}
    height = max(max(stored, default=0) >> COLUMN_BITS, least_rows)
    width = max((key & COLUMN_MASK for key in stored), default=0)
    if width > MAX_COLUMN:
        raise WorkbookError(f"a cell is in column {width}, outside the sheet")
    grid: list[list[Value]] = [[None] * width for _ in range(height)]
    for key, value in stored.items():
        grid[(key >> COLUMN_BITS) - 1][(key & COLUMN_MASK) - 1] = _shown(value, date_1904=date_1904)
    return tuple(map(tuple, grid))


def _shown(value: CellValue, *, date_1904: bool) -> Value:
    """What a cell shows of its value."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number(value)
    if isinstance(value, dt.timedelta):
        return _moment(value, date_1904=date_1904)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime.combine(value, dt.time())
    return value


def _number(number: float) -> int | float:
    """Files write 3.0 as 3 or as 3.0; every program reads the same whole number."""
    if abs(number) < _EXACT:
        return int(number) if number == int(number) else number
    # The digits, since a whole number may be too large for a conversion.
    return float(str(number))


def _moment(span: dt.timedelta, *, date_1904: bool) -> Value:
    """The date and time of day that the number of an elapsed time stands for, if there is one."""
    serial = to_serial(span)
    if serial >= 0:
        with contextlib.suppress(OverflowError, ValueError):
            moment = from_serial(serial, date_1904=date_1904)
            assert not isinstance(moment, dt.timedelta)
            return moment
    return _number(serial)
