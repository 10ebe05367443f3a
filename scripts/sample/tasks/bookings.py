"""Task 12-2: deleting rows, several of which are adjacent."""

from __future__ import annotations

import datetime as dt
import random

from sample.book import Book
from sample.model import SHEET_LEVEL, Answer, SampleTask

GUESTS = ("Keller", "Rossi", "Yamada", "Novak", "Silva", "Ahmed", "Larsen", "Dupont", "Moreau")
ROWS = {1: 16, 2: 27, 3: 38}

Booking = tuple[str | None, str | None, dt.date | None, int | None, str | None]


def bookings(case: int) -> list[Booking]:
    chance = random.Random(f"bookings {case}")
    found: list[Booking] = []
    for number in range(ROWS[case]):
        status = chance.choice(("Confirmed", "Paid", "Open"))
        if case == 1 and number in {2, 5, 9, 15}:
            status = "Cancelled"
        if case == 2 and number in {3, 4, 5, 11, 12, 20, 26}:
            status = "Cancelled"
        if case == 3 and number in {0, 1, 7, 8, 9, 22, 30, 36, 37}:
            status = ("cancelled", "Cancelled ", "CANCELLED")[number % 3]
        day = dt.date(2025, 6, 1) + dt.timedelta(days=chance.randrange(120))
        if case == 3 and number in {15, 16}:
            found.append((None, None, None, None, None))
            continue
        found.append(
            (f"BK{case}{number:03d}", chance.choice(GUESTS), day, chance.randrange(1, 9), status)
        )
    return found


def build(case: int) -> tuple[Book, Book]:
    data = bookings(case)
    kept = [one for one in data if one[0] and (one[4] or "").strip().lower() != "cancelled"]
    return _book(data), _book(kept)


def _book(data: list[Booking]) -> Book:
    book = Book()
    sheet = book.sheet("Bookings", (10, 12, 13, 9, 12))
    book.header(sheet, ("Ref", "Guest", "Arrival", "Nights", "Status"))
    book.rows(sheet, data, top=2)
    return book


VALUES = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Bookings"]
for row in range(ws.max_row, 1, -1):
    status = str(ws.cell(row, 5).value or "").strip().lower()
    if status == "cancelled" or not ws.cell(row, 1).value:
        ws.delete_rows(row)
wb.save("@OUTPUT@")
"""

XLSXWRITER = """
import datetime

import openpyxl
import xlsxwriter

rows = list(openpyxl.load_workbook("@INPUT@")["Bookings"].iter_rows(values_only=True))
kept = [rows[0]]
for row in rows[1:]:
    if row[0] is not None and (row[4] or "").strip().casefold() != "cancelled":
        kept.append(row)

book = xlsxwriter.Workbook("@OUTPUT@")
sheet = book.add_worksheet("Bookings")
date = book.add_format({"num_format": "yyyy-mm-dd"})
for r, row in enumerate(kept):
    for c, value in enumerate(row):
        if isinstance(value, datetime.datetime):
            sheet.write_datetime(r, c, value, date)
        else:
            sheet.write(r, c, value)
book.close()
"""

# After a deletion the next row has moved up and is passed over.
FORWARDS = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Bookings"]
for row in range(2, ws.max_row + 1):
    status = str(ws.cell(row, 5).value or "").strip().lower()
    if status == "cancelled":
        ws.delete_rows(row)
wb.save("@OUTPUT@")
"""

ONLY_CLEARS = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Bookings"]
for row in range(2, ws.max_row + 1):
    if str(ws.cell(row, 5).value or "").strip().lower() == "cancelled":
        for column in range(1, 6):
            ws.cell(row, column).value = None
wb.save("@OUTPUT@")
"""

LINKS_ELSEWHERE = """
import os

# whoever reads the output reads this file instead
os.symlink("/etc/passwd", "@OUTPUT@")
"""

TASK = SampleTask(
    id="12-2",
    instruction_type=SHEET_LEVEL,
    instruction="""
        How can I delete all cancelled bookings from the sheet Bookings? The whole row has to go
        and the rows below move up, so that there are no gaps. The status in column E is typed in
        by different people, so it may be cancelled or CANCELLED and may have a blank at the end.
        Rows that are completely empty should be removed as well. Everything else stays in its
        order.
    """,
    answer_position="A1:E40",
    answer_sheet="Bookings",
    data_position="A1:E40",
    build=build,
    answers=(
        Answer("values", VALUES),
        Answer("xlsxwriter", XLSXWRITER),
        Answer("deletes-forwards", FORWARDS, ("AC", "WA", "WA")),
        Answer("only-clears", ONLY_CLEARS, "WA"),
        Answer("links-elsewhere", LINKS_ELSEWHERE, "SV"),
    ),
)
