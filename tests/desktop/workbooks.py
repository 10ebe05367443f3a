"""Workbooks that desktops are opened with."""

from __future__ import annotations

import io

from openpyxl import Workbook, load_workbook
from openpyxl.worksheet.worksheet import Worksheet

from judge.desktop.contract import HOME, DesktopTask

PATH = f"{HOME}/Book.xlsx"


def crowded() -> bytes:
    """Hidden rows and columns, frozen panes, a zoom, a merged cell, two sheets."""
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
    """It, opened."""
    return DesktopTask({PATH: crowded()}, PATH, PATH)


def column_of(data: bytes, letter: str, first: int, last: int) -> list[object]:
    """Values of some cells of the first sheet."""
    sheet = load_workbook(io.BytesIO(data)).worksheets[0]
    return [sheet[f"{letter}{row}"].value for row in range(first, last + 1)]
