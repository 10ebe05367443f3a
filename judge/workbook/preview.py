"""The first rows of a workbook's sheets, or of a table in plain text, for people and models.

Only the rows that are shown are parsed, and the shared strings are read only as far as those rows
need them. The rows below are skipped as bytes, because merged ranges follow after all rows; in a
worksheet of more than 16 MiB, they are not even skipped. CSV and similar files are shown like a
sheet.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import datetime as dt
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from judge.errors import WorkbookError
from judge.files.documents import MAX_FILE_BYTES, MIB, opened_regular
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, MAX_COLUMN
from judge.workbook.cell import CellValue, ErrorValue
from judge.workbook.number_formats import from_serial, to_serial
from judge.workbook.reader import open_workbook
from judge.workbook.sheets.sheet_cells import SheetCells

Value = str | int | float | bool | dt.datetime | dt.time | ErrorValue | None
"""The value that a cell shows; None if it is blank."""

_EXACT = 10**15
"""Up to this limit, every whole number can be stored as a float that prints the same digits."""


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
        WorkbookError: the file is not a workbook, the part that is read is broken, or a limit is
            exceeded.
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
    """Arranges cells as rows of values, all of the same width."""
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
    """Writes a cell's value as text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number(value)
    if isinstance(value, dt.timedelta):
        return _moment(value, date_1904=date_1904)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime.combine(value, dt.time())
    return value


def _number(number: float) -> int | float:
    """Writes a number as text; a whole number without ``.0``, which only some files write."""
    if abs(number) < _EXACT:
        return int(number) if number == int(number) else number
    # The digits, since a whole number may be too large for a conversion.
    return float(str(number))


def _moment(span: dt.timedelta, *, date_1904: bool) -> Value:
    """The date and time with the same serial number as an elapsed time; None if there is none."""
    serial = to_serial(span)
    if serial >= 0:
        with contextlib.suppress(OverflowError, ValueError):
            moment = from_serial(serial, date_1904=date_1904)
            assert not isinstance(moment, dt.timedelta)
            return moment
    return _number(serial)


MAX_TABLE_BYTES = 8 * MIB
"""How many bytes of a table are read."""

_SEPARATORS = ",;\t|"
_SAMPLE_CHARS = 16 * 1024
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def read_table(path: Path, rows: int) -> SheetPreview:
    """The first rows of a table in plain text; its cells are strings, blank ones None.

    The text is UTF-8, or UTF-16 if the first bytes say so; otherwise it is read as Windows-1252.
    The separator is the character that occurs most often in the first line: comma, semicolon, tab
    or bar. Blank lines are left out, as pandas does.

    Args:
        path: the file.
        rows: how many rows, the header included.

    Returns:
        The rows. If the file is longer than :data:`MAX_TABLE_BYTES`, ``total_rows`` has no value.

    Raises:
        WorkbookError: the file is missing, is not a regular file, or cannot be read as a table.
    """
    with opened_regular(path, WorkbookError, MAX_FILE_BYTES) as file:
        if file is None:
            raise WorkbookError(f"{path}: the table is missing")
        data = file.read(MAX_TABLE_BYTES + 1)
    text = _text_of(data[:MAX_TABLE_BYTES])
    is_whole = len(data) <= MAX_TABLE_BYTES
    if not is_whole:
        text = text[: text.rfind("\n") + 1]
    kept: list[list[str]] = []
    total = width = 0
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator_of(text))
    try:
        for row in reader:
            if not row:
                continue
            total += 1
            if total <= rows:
                kept.append(row)
                width = max(width, len(row))
    except csv.Error as error:
        raise WorkbookError(f"{path}, line {reader.line_num}: {error}") from error
    return SheetPreview(
        name=path.name,
        rows=tuple((*(cell or None for cell in row), *[None] * (width - len(row))) for row in kept),
        total_rows=total if is_whole else None,
        total_columns=width,
        more_rows=total > len(kept) or not is_whole,
    )


def separator_of(text: str) -> str:
    """The separator between the cells of a table, found in its first line that is not blank."""
    lines = text[:_SAMPLE_CHARS].splitlines()
    first = next((line for line in lines if line.strip()), "")
    return max(_SEPARATORS, key=lambda mark: (first.count(mark), -_SEPARATORS.index(mark)))


def _text_of(data: bytes) -> str:
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    # The last character may be cut in half where the file is longer than what is read.
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        return decoder.decode(data)
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")
