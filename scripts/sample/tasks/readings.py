"""Task 1007: averages in which a blank does not count as a reading, but 0 does."""

from __future__ import annotations

import random
from decimal import Decimal

from sample.book import Book, Value
from sample.model import CELL_LEVEL, Answer, SampleTask, round_half_up

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
ROWS = {1: 10, 2: 14, 3: 17}

Reading = Decimal | int | str | None
Station = tuple[str, list[Reading]]


def stations(case: int) -> list[Station]:
    chance = random.Random(f"readings {case}")
    found: list[Station] = []
    for number in range(ROWS[case]):
        readings: list[Reading] = [Decimal(chance.randrange(5, 400)) / 10 for _ in DAYS]
        for day in range(len(DAYS)):
            if chance.random() < 0.2:
                readings[day] = None
            elif case > 1 and chance.random() < 0.15:
                readings[day] = 0
            elif case == 3 and chance.random() < 0.1:
                readings[day] = "n/a"
        if case > 1 and number == 4:
            readings = [None] * len(DAYS)
        if case > 1 and number == 9:
            readings = [0] * len(DAYS)
        if case == 3 and number == 13:
            readings = ["n/a", None, None, "n/a", None, None]
        found.append((f"Station {number + 1}", _without_ties(readings)))
    return found


def _without_ties(readings: list[Reading]) -> list[Reading]:
    """Moves the first reading by 0.1 until the average is not half way between two results."""
    while True:
        try:
            average(readings)
        except ValueError:
            first = next(i for i, reading in enumerate(readings) if isinstance(reading, Decimal))
            moved = readings[first]
            assert isinstance(moved, Decimal)
            readings = [*readings[:first], moved + Decimal("0.1"), *readings[first + 1 :]]
        else:
            return readings


def average(readings: list[Reading]) -> float | None:
    numbers = [reading for reading in readings if isinstance(reading, Decimal | int)]
    return round_half_up(Decimal(sum(numbers)) / len(numbers), 2) if numbers else None


def build(case: int) -> tuple[Book, Book]:
    data = stations(case)
    answers = [
        (average(readings), sum(isinstance(reading, Decimal | int) for reading in readings))
        for _, readings in data
    ]
    return _book(data, []), _book(data, answers)


def _book(data: list[Station], answers: list[tuple[float | None, int]]) -> Book:
    book = Book()
    sheet = book.sheet("Readings", (12, *[8] * 6, 12, 10))
    book.rows(sheet, [("Water level in cm",)])
    book.header(sheet, ("Station", *DAYS, "Average", "Readings"), row=2)
    rows: list[list[Value]] = [
        [name, *(float(r) if isinstance(r, Decimal) else r for r in readings)]
        for name, readings in data
    ]
    book.rows(sheet, rows, top=3)
    book.rows(sheet, answers, top=3, left=8)
    return book


VALUES = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Readings"]
for row in range(3, ws.max_row + 1):
    if ws.cell(row, 1).value is None:
        continue
    values = [ws.cell(row, column).value for column in range(2, 8)]
    numbers = [v for v in values if isinstance(v, (int, float))]
    ws.cell(row, 9).value = len(numbers)
    if numbers:
        ws.cell(row, 8).value = round(sum(numbers) / len(numbers), 2)
wb.save("@OUTPUT@")
"""

FORMULAS = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Readings"]
for row in range(3, ws.max_row + 1):
    if ws.cell(row, 1).value is not None:
        days = f"B{row}:G{row}"
        ws.cell(row, 8).value = f'=IF(COUNT({days})=0,"",ROUND(AVERAGE({days}),2))'
        ws.cell(row, 9).value = f"=COUNT({days})"
wb.save("@OUTPUT@")
"""

# 0 is false as well.
DROPS_ZEROS = VALUES.replace(
    "if isinstance(v, (int, float))]", "if v and isinstance(v, (int, float))]"
)

BLANK_IS_ZERO = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Readings"]
for row in range(3, ws.max_row + 1):
    values = [ws.cell(row, column).value or 0 for column in range(2, 8)]
    numbers = [v for v in values if not isinstance(v, str)]
    ws.cell(row, 8).value = round(sum(numbers) / max(1, len(numbers)), 2)
    ws.cell(row, 9).value = len(numbers)
wb.save("@OUTPUT@")
"""

HOARDS_MEMORY = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Readings"]
history = []
row = 3
while True:
    # every pass keeps a copy of the row, padded to a full year of readings a second apart
    history.append([ws.cell(row, column).value for column in range(2, 8)] * 1_000_000)
    row = row + 1 if ws.cell(row + 1, 1).value else 3
"""

TASK = SampleTask(
    id=1007,
    instruction_type=CELL_LEVEL,
    instruction="""
        Our stations report the water level once a day, columns B to G, one station per row from
        row 3 on. Column H should get the average of the days that have a reading, rounded to two
        decimals, and column I the number of readings. Mind that an empty cell means there was no
        reading, while 0 is a proper reading that counts. Some colleagues write n/a instead of
        leaving the cell empty, which also is no reading. If there is no reading at all in a row
        the average stays empty and the number is 0.
    """,
    answer_position="Readings!H3:I19",
    build=build,
    answers=(
        Answer("values", VALUES),
        Answer("formulas", FORMULAS),
        Answer("drops-zeros", DROPS_ZEROS, ("AC", "WA", "WA")),
        Answer("blank-is-zero", BLANK_IS_ZERO, "WA"),
        Answer("hoards-memory", HOARDS_MEMORY, "MLE"),
    ),
)
