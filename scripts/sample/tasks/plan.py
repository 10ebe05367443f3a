"""Task 1002: deviation from a plan, on a sheet whose name has spaces and an apostrophe."""

from __future__ import annotations

import random
from decimal import Decimal

from sample.book import Book, Value
from sample.model import CELL_LEVEL, Answer, SampleTask, round_half_up

SHEET = "Bob's Q1 Plan"
WEEKS = 13

Line = tuple[str, int | None, int | None]


def lines(case: int) -> list[Line]:
    chance = random.Random(f"plan {case}")
    found: list[Line] = []
    for week in range(1, WEEKS + 1):
        planned = chance.randrange(40, 400)
        actual: int | None = chance.randrange(20, 500)
        if case == 2 and week in {4, 9}:
            planned = 0
        if case == 3 and week > 10:
            actual = None  # not there yet
        if case == 3 and week == 5:
            actual = 0  # a week in which nothing was sold is a result
        while _is_tie(planned, actual):
            assert actual is not None
            actual += 1
        found.append((f"Week {week}", planned, actual))
    return found


def _is_tie(planned: int, actual: int | None) -> bool:
    try:
        deviation(planned, actual)
    except ValueError:
        return True
    return False


def deviation(planned: int | None, actual: int | None) -> Value:
    if actual is None:
        return None
    if not planned:
        return "n/a"
    return round_half_up(Decimal(actual - planned) / planned * 100, 1)


def build(case: int) -> tuple[Book, Book]:
    data = lines(case)
    return _book(data, []), _book(data, [deviation(*line[1:]) for line in data])


def _book(data: list[Line], answers: list[Value]) -> Book:
    book = Book()
    notes = book.sheet("Notes", (60,))
    book.rows(notes, [("The figures come from the till.",), ("Weeks start on Monday.",)])
    sheet = book.sheet(SHEET, (12, 10, 10, 14))
    book.rows(sheet, [("Plan of the first quarter",)])
    book.header(sheet, ("Week", "Planned", "Actual", "Deviation %"), row=3)
    book.rows(sheet, data, top=4)
    book.rows(sheet, [(answer,) for answer in answers], top=4, left=4)
    return book


VALUES = """
from decimal import ROUND_HALF_UP, Decimal

from openpyxl import load_workbook

book = load_workbook("@INPUT@")
sheet = book["Bob's Q1 Plan"]
for row in range(4, sheet.max_row + 1):
    planned, actual = sheet.cell(row, 2).value, sheet.cell(row, 3).value
    if sheet.cell(row, 1).value is None or actual is None:
        continue
    if not planned:
        sheet.cell(row, 4).value = "n/a"
    else:
        percent = (Decimal(actual) - Decimal(planned)) / Decimal(planned) * 100
        sheet.cell(row, 4).value = float(percent.quantize(Decimal("0.1"), ROUND_HALF_UP))
book.save("@OUTPUT@")
"""

FORMULAS = """
from openpyxl import load_workbook

book = load_workbook("@INPUT@")
sheet = book["Bob's Q1 Plan"]
for row in range(4, sheet.max_row + 1):
    if sheet.cell(row, 1).value is not None:
        sheet.cell(row, 4).value = (
            f'=IF(C{row}="","",IF(B{row}=0,"n/a",ROUND((C{row}-B{row})/B{row}*100,1)))'
        )
book.save("@OUTPUT@")
"""

FIRST_SHEET = VALUES.replace('book["Bob\'s Q1 Plan"]', "book.active").replace(
    "sheet.max_row + 1", "17"
)

NO_SUCH_SHEET = FORMULAS.replace("Bob's Q1 Plan", "Bobs Q1 Plan")

DIVIDES_BY_ZERO = """
from openpyxl import load_workbook

book = load_workbook("@INPUT@")
sheet = book["Bob's Q1 Plan"]
for row in range(4, 17):
    planned, actual = sheet.cell(row, 2).value, sheet.cell(row, 3).value
    if actual is not None:
        sheet.cell(row, 4).value = round((actual - planned) / planned * 100, 1)
book.save("@OUTPUT@")
"""

TASK = SampleTask(
    id=1002,
    instruction_type=CELL_LEVEL,
    instruction="""
        On the sheet Bob's Q1 Plan there is one row per week with the planned quantity in column B
        and the actual quantity in column C, starting in row 4. In column D I need by how many
        percent the actual quantity is off the plan, as a plain number with one decimal: 12.5
        when it is 12.5 % above, -8 when it is 8 % below. If nothing was planned for a week (0),
        write n/a instead. Weeks that have no actual figure yet stay empty, but an actual figure
        of 0 is a real result.
    """,
    answer_position="'Bob''s Q1 Plan'!D4:D18",
    build=build,
    answers=(
        Answer("values", VALUES),
        Answer("formulas", FORMULAS),
        Answer("takes-the-first-sheet", FIRST_SHEET, "WA"),
        Answer("no-such-sheet", NO_SUCH_SHEET, "RE"),
        Answer("divides-by-zero", DIVIDES_BY_ZERO, ("AC", "RE", "AC")),
    ),
)
