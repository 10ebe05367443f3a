"""Task 14-4: colouring rows with the colour of a legend; only fills are compared."""

from __future__ import annotations

import datetime as dt
import random

from sample.book import Book
from sample.model import SHEET_LEVEL, Answer, SampleTask

LEGEND = {1: "FFFFFF00", 2: "FFFFFF00", 3: "FFFFC000"}
TODAY = {1: dt.date(2025, 2, 3), 2: dt.date(2025, 8, 18), 3: dt.date(2026, 1, 5)}
JOBS = ("Order paint", "Call the roofer", "Check the pump", "Renew permit", "Send offer", "Clean")
OWNERS = ("Mia", "Noah", "Olga", "Pete")
ROWS = {1: 12, 2: 18, 3: 28}

Job = tuple[str, str, dt.date | None, str | None]


def jobs(case: int) -> list[Job]:
    chance = random.Random(f"overdue {case}")
    found: list[Job] = []
    for number in range(ROWS[case]):
        due: dt.date | None = TODAY[case] + dt.timedelta(days=chance.randrange(-20, 21))
        if number % 6 == 3:
            due = TODAY[case]  # due today is not overdue yet
        if case > 1 and number % 8 == 5:
            due = None
        done = "x" if chance.random() < 0.35 else None
        if number == 3:
            done = None
        if case == 3 and done and number % 2:
            done = "X"
        found.append((f"{chance.choice(JOBS)} {number + 1}", chance.choice(OWNERS), due, done))
    return found


def is_overdue(case: int, job: Job) -> bool:
    _, _, due, done = job
    return due is not None and due < TODAY[case] and (done or "").lower() != "x"


def build(case: int) -> tuple[Book, Book]:
    data = jobs(case)
    # Last week's colours are still there: some rows have been done since.
    old = {row for row, job in enumerate(data) if job[3] and row % 3 == 0}
    new = {row for row, job in enumerate(data) if is_overdue(case, job)}
    return _book(case, data, old), _book(case, data, new)


def _book(case: int, data: list[Job], coloured: set[int]) -> Book:
    book = Book()
    sheet = book.sheet("Jobs", (20, 10, 13, 8, 4, 10, 13))
    book.header(sheet, ("Job", "Owner", "Due", "Done"))
    book.rows(sheet, data, top=2)
    book.rows(sheet, [("Today", TODAY[case]), ("Overdue", "like this")], left=6)
    book.fill(sheet, 2, (7,), LEGEND[case])
    for row in sorted(coloured):
        book.fill(sheet, row + 2, range(1, 5), LEGEND[case])
    return book


VALUES = """
from copy import copy

import openpyxl
from openpyxl.styles import PatternFill

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Jobs"]
today, legend = ws["G1"].value, ws["G2"].fill
for row in range(2, ws.max_row + 1):
    due, done = ws.cell(row, 3).value, ws.cell(row, 4).value
    overdue = due is not None and due < today and str(done or "").lower() != "x"
    for column in range(1, 5):
        ws.cell(row, column).fill = copy(legend) if overdue else PatternFill()
wb.save("@OUTPUT@")
"""

BY_COLOUR = """
import openpyxl
from openpyxl.styles import PatternFill

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Jobs"]
colour = ws["G2"].fill.start_color.rgb
for job in ws.iter_rows(min_row=2, max_col=4):
    for cell in job:
        cell.fill = PatternFill(fill_type=None)
    if job[2].value is None or job[2].value >= ws["G1"].value:
        continue
    if job[3].value not in ("x", "X"):
        for cell in job:
            cell.fill = PatternFill(fill_type="solid", start_color=colour, end_color=colour)
wb.save("@OUTPUT@")
"""

ALWAYS_YELLOW = BY_COLOUR.replace('ws["G2"].fill.start_color.rgb', '"FFFFFF00"')

COUNTS_TODAY = VALUES.replace("due < today", "due <= today")

LEAVES_UNTOUCHED = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
wb.save("@OUTPUT@")
"""

MAKES_A_PIPE = """
import os

# whoever opens the output waits for ever
os.mkfifo("@OUTPUT@")
"""

TASK = SampleTask(
    id="14-4",
    instruction_type=SHEET_LEVEL,
    instruction="""
        On the sheet Jobs I would like every overdue job to be coloured, columns A to D, in the
        colour that cell G2 has (I change it now and then). A job is overdue when its due date in
        column C is before the date in G1 and there is no x in column D. Due on that very day is
        not overdue yet, and a job without a date never is. The colours of last week are still in
        the sheet; jobs that are not overdue should have no colour.
    """,
    answer_position="A2:D29",
    answer_sheet="Jobs",
    data_position="A1:G29",
    style=("fill",),
    build=build,
    answers=(
        Answer("values", VALUES),
        Answer("colour-by-number", BY_COLOUR),
        Answer("always-yellow", ALWAYS_YELLOW, ("AC", "AC", "WA")),
        Answer("due-today-counts", COUNTS_TODAY, "WA"),
        Answer("leaves-the-input-untouched", LEAVES_UNTOUCHED, "WA"),
        Answer("makes-a-pipe", MAKES_A_PIPE, "SV"),
    ),
)
