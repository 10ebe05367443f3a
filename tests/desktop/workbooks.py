"""Workbooks with which desktops are opened."""

from __future__ import annotations

import io

from openpyxl import Workbook, load_workbook
from openpyxl.worksheet.worksheet import Worksheet

from judge.desktop.contract import HOME, DesktopTask

PATH = f"{HOME}/Book.xlsx"


def crowded() -> bytes:
    """Makes a workbook with hidden rows, hidden columns, frozen panes, zoom and a merged cell."""
    book = Workbook()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    for row in range(1, 41):
        sheet.append([row * column for column in range(1, 9)])
    for row in (3, 4, 9):
        sheet.row_dimensions[row].hidden = True
    sheet.column_dimensions["C"].hidden = True
    sheet.freeze_panes = "B3"
    sheet.sheet_view.zoomScale = 120
    sheet.merge_cells("D6:E7")
    book.create_sheet("Second")
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()


def task() -> DesktopTask:
    """Returns this workbook as a task."""
    return DesktopTask({PATH: crowded()}, PATH, PATH)


def column_of(data: bytes, letter: str, first: int, last: int) -> list[object]:
    """Returns the values of some cells of the first sheet."""
    sheet = load_workbook(io.BytesIO(data)).worksheets[0]
    return [sheet[f"{letter}{row}"].value for row in range(first, last + 1)]
