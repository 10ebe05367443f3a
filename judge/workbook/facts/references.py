"""Reads the current values of the cells that a chart refers to, instead of the chart's cache."""

from __future__ import annotations

import re

from judge.workbook.address import (
    COLUMN_BITS,
    COLUMN_MASK,
    MAX_COLUMN,
    MAX_ROW,
    column_number,
)
from judge.workbook.cell import CellRange, CellValue
from judge.workbook.reader import Workbook

_AREA = re.compile(
    r"(?:'(?P<quoted>(?:[^']|'')+)'|(?P<plain>[^'!,()]+))!"
    r"\$?(?P<first_column>[A-Za-z]{0,3})\$?(?P<first_row>[0-9]{0,7})"
    r"(?::\$?(?P<last_column>[A-Za-z]{0,3})\$?(?P<last_row>[0-9]{0,7}))?"
)
MAX_VALUES = 100_000
"""Largest number of values that are read for one reference."""


def areas_of(reference: str) -> tuple[CellRange, ...] | None:
    """The rectangles of a reference such as ``Sheet1!$B$2:$B$5`` or ``(A!$A$1,A!$C$1)``.

    Returns:
        The rectangles in order; None if the reference is a name, a formula, or too long.
    """
    text = reference.strip()
    if len(text) > 8192:
        return None
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    areas = []
    position = 0
    while position < len(text):
        match = _AREA.match(text, position)
        if match is None:
            return None
        area = _area(match)
        if area is None:
            return None
        areas.append(area)
        position = match.end()
        if position < len(text):
            if text[position] != ",":
                return None
            position += 1
    return tuple(areas) or None


def _area(match: re.Match[str]) -> CellRange | None:
    quoted = match["quoted"]
    sheet = match["plain"] if quoted is None else quoted.replace("''", "'")
    columns = [match["first_column"], match["last_column"]]
    rows = [match["first_row"], match["last_row"]]
    if columns[1] is None:
        columns[1], rows[1] = columns[0], rows[0]
        if not (columns[0] and rows[0]):
            return None
    first_column = column_number(columns[0]) if columns[0] else 1
    last_column = column_number(columns[1]) if columns[1] else MAX_COLUMN
    first_row = int(rows[0]) if rows[0] else 1
    last_row = int(rows[1]) if rows[1] else MAX_ROW
    if not (1 <= first_column <= last_column <= COLUMN_MASK and 1 <= first_row <= last_row):
        return None
    return CellRange(sheet, first_row, first_column, min(last_row, MAX_ROW), last_column)


def read_reference(workbook: Workbook, reference: str) -> tuple[CellValue, ...] | None:
    """The values of a reference's cells by rows, up to the last used cell; None for blank cells.

    Args:
        workbook: the workbook with the cells.
        reference: the reference of a series.

    Returns:
        At most :data:`MAX_VALUES` values; None if the reference does not name cells of the
        workbook, or if more cells are in use.

    Raises:
        WorkbookError: a sheet is broken or over a limit.
    """
    areas = areas_of(reference)
    if areas is None:
        return None
    cell_values: list[CellValue] = []
    for area in areas:
        if area.sheet not in workbook.sheet_names:
            return None
        window = area.window
        values = {
            key: value
            for key, value in workbook.sheet(area.sheet).values(window).items()
            if value is not None and window.holds(key >> COLUMN_BITS, key & COLUMN_MASK)
        }
        last_row = max((key >> COLUMN_BITS for key in values), default=0)
        width = area.columns
        if width > 1:
            width = max(((key & COLUMN_MASK) - area.min_column + 1 for key in values), default=1)
        height = last_row - area.min_row + 1
        if len(cell_values) + height * width > MAX_VALUES:
            return None
        with workbook.package.blamed():
            workbook.package.budget.take_cells(height * width + len(values))
        cell_values.extend(
            values.get(row << COLUMN_BITS | column)
            for row in range(area.min_row, last_row + 1)
            for column in range(area.min_column, area.min_column + width)
        )
    return tuple(cell_values)
