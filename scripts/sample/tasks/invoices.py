"""Task 1003: due dates that fall on working days."""

from __future__ import annotations

import datetime as dt
import random

from sample.book import Book
from sample.model import CELL_LEVEL, Answer, SampleTask

ROWS = {1: 16, 2: 22, 3: 28}
USUAL_TERMS = 30

Invoice = tuple[str, dt.date | None, int | None]


def invoices(case: int) -> list[Invoice]:
    chance = random.Random(f"invoices {case}")
    # Case 2 crosses the end of February in a leap year and the end of a year.
    start = {1: dt.date(2025, 4, 7), 2: dt.date(2023, 12, 1), 3: dt.date(2025, 9, 1)}[case]
    found: list[Invoice] = []
    for number in range(ROWS[case]):
        day: dt.date | None = start + dt.timedelta(days=number * 4 + chance.randrange(4))
        terms: int | None = chance.choice((14, 30, 45, 60))
        if number % 5 == 2:
            terms = None
        if case == 3 and number % 6 == 1:
            terms = 0
        if case == 3 and number in {9, 20}:
            day = None  # not sent yet
        found.append((f"R-{2000 + case * 100 + number}", day, terms))
    return found


def due(day: dt.date | None, terms: int | None) -> dt.date | None:
    if day is None:
        return None
    found = day + dt.timedelta(days=USUAL_TERMS if terms is None else terms)
    return found + dt.timedelta(days={5: 2, 6: 1}.get(found.weekday(), 0))


def build(case: int) -> tuple[Book, Book]:
    data = invoices(case)
    return _book(data, []), _book(data, [due(day, terms) for _, day, terms in data])


def _book(data: list[Invoice], answers: list[dt.date | None]) -> Book:
    book = Book()
    sheet = book.sheet("Invoices", (12, 14, 10, 14))
    book.header(sheet, ("Invoice", "Date", "Terms", "Due"))
    book.rows(sheet, data, top=2)
    book.rows(sheet, [(answer,) for answer in answers], top=2, left=4)
    return book


VALUES = """
import datetime

import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Invoices"]
for row in range(2, ws.max_row + 1):
    date, terms = ws.cell(row, 2).value, ws.cell(row, 3).value
    if date is None:
        continue
    due = date + datetime.timedelta(days=30 if terms is None else terms)
    while due.isoweekday() > 5:
        due += datetime.timedelta(days=1)
    ws.cell(row, 4).value = due
    ws.cell(row, 4).number_format = "yyyy-mm-dd"
wb.save("@OUTPUT@")
"""

FORMULAS = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Invoices"]
for row in range(2, ws.max_row + 1):
    raw = f'(B{row}+IF(C{row}="",30,C{row}))'
    cell = ws.cell(row, 4)
    cell.value = f'=IF(B{row}="","",{raw}+CHOOSE(WEEKDAY({raw},2),0,0,0,0,0,2,1))'
    cell.number_format = "yyyy-mm-dd"
wb.save("@OUTPUT@")
"""

# 0 days and no entry are the same to "or".
NO_TERMS_IS_ZERO = VALUES.replace("30 if terms is None else terms", "terms or 30")

AS_TEXT = VALUES.replace("value = due", 'value = due.strftime("%d.%m.%Y")')

SAVES_ELSEWHERE = VALUES.replace('"@OUTPUT@"', '"/mnt/data/output/invoices_done.xlsx"')

TASK = SampleTask(
    id=1003,
    instruction_type=CELL_LEVEL,
    instruction="""
        My invoice list has the invoice date in column B and the payment terms in days in column
        C. I want the due date in column D: invoice date plus terms. Where column C is empty our
        usual 30 days apply, but 0 means payable at once. If the due date is a Saturday or a
        Sunday it moves to the Monday after. Rows without an invoice date have not been sent yet
        and should stay empty. Please give me real dates, not text, because I sort by them.
    """,
    answer_position="D2:D30",
    build=build,
    answers=(
        Answer("values", VALUES),
        Answer("formulas", FORMULAS),
        Answer("zero-days-become-thirty", NO_TERMS_IS_ZERO, ("AC", "AC", "WA")),
        Answer("dates-as-text", AS_TEXT, "WA"),
        Answer("saves-elsewhere", SAVES_ELSEWHERE, "NO"),
    ),
)
