"""Task style: format headings, and the names of items that are running out."""

from __future__ import annotations

import random

from openpyxl.styles import Font
from sample.book import Book
from sample.model import Answer

from sample_rules.model import Finished, RuleTask, changed, pair

ROWS = {1: 8, 2: 15, 3: 24}
_ITEMS = ["bolts", "nuts", "hinges", "screws", "nails", "brackets", "rails", "locks"]
_RED = "FFFFC7CE"


def _stock(case: int) -> list[tuple[str, int, int]]:
    chance = random.Random(f"style {case}")
    rows = []
    for number in range(ROWS[case]):
        least = chance.randrange(5, 40)
        stock = least if number % 5 == 2 else max(0, least + chance.randrange(-20, 30))
        rows.append((f"{chance.choice(_ITEMS)} {number + 1}", stock, least))
    return rows


def _book(case: int) -> Book:
    book = Book()
    sheet = book.sheet("Stock", (16, 10, 10))
    book.rows(sheet, [("Item", "Stock", "Minimum"), *_stock(case)])
    return book


def _styled(case: int, short: set[int]) -> bytes:
    book = _book(case)
    sheet = book.workbook["Stock"]
    for cell in sheet[1]:
        cell.font = Font(name="Calibri", size=11, bold=True, color="FFFFFFFF")
    book.fill(sheet, 1, range(1, 4), "FF1F3864")
    for row in sorted(short):
        book.fill(sheet, row, (1,), _RED)
    sheet.freeze_panes = "A2"
    return book.to_bytes()


def _short(case: int) -> set[int]:
    return {row for row, (_, stock, least) in enumerate(_stock(case), start=2) if stock < least}


def build(case: int) -> tuple[bytes, bytes]:
    """Returns the input and the gold."""
    return _book(case).to_bytes(), _styled(case, _short(case))


def finish(case: int) -> Finished:
    """Returns an answer like the gold; in the last case, one name is not formatted."""
    short = _short(case)
    if case == 3:
        return Finished(_styled(case, short - {max(short)}), "WA")
    return Finished(_styled(case, short))


RIGHT = """
import openpyxl
from openpyxl.styles import Font, PatternFill

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Stock"]
for cell in ws[1]:
    cell.font = Font(name="Calibri", size=11, bold=True, color="FFFFFF")
    cell.fill = PatternFill("solid", fgColor="1F3864")
ws.freeze_panes = "A2"
for row in ws.iter_rows(min_row=2):
    if row[1].value < row[2].value:
        row[0].fill = PatternFill("solid", fgColor="FFC7CE")
wb.save("@OUTPUT@")
"""

TASK = RuleTask(
    id="style",
    kind="Style",
    instruction="""On the sheet Stock, make the headings bold and white on a dark blue fill
        (1F3864), freeze the row of the headings, and fill the name of every item whose stock is
        below its minimum with light red (FFC7CE). Nothing else changes.""",
    rules=[
        pair("sheet_data", "Stock"),
        pair("style", "Stock", props=["fgcolor", "font_color", "font_bold"]),
        pair("freeze", "Stock"),
    ],
    build=build,
    finish=finish,
    answers=(
        Answer("openpyxl", RIGHT),
        Answer("another fill", changed(RIGHT, '"FFC7CE"', '"FFEB9C"'), "WA"),
        Answer("at the minimum too", changed(RIGHT, "value < row", "value <= row"), "WA"),
        Answer("not frozen", changed(RIGHT, 'ws.freeze_panes = "A2"\n', ""), "WA"),
        Answer("headings in black", changed(RIGHT, ', color="FFFFFF"', ""), "WA"),
        Answer("whole rows", changed(RIGHT, "        row[0].fill = PatternFill",
                                     "        for cell in row: cell.fill = PatternFill"), "WA"),
    ),
)  # fmt: skip
