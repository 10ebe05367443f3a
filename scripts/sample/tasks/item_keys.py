"""Task 1005: item numbers that are text or numbers, with leading zeros."""

from __future__ import annotations

import random

from sample.book import Book
from sample.model import CELL_LEVEL, Answer, SampleTask

WAREHOUSES = ("ber", "HAM", "muc ", "Fra")
ROWS = {1: 15, 2: 24, 3: 30}

Item = tuple[str, int | str]


def items(case: int) -> list[Item]:
    chance = random.Random(f"items {case}")
    found: list[Item] = []
    for number in range(ROWS[case]):
        item = chance.randrange(3, 99_999)
        written: int | str = item
        if number % 3 == 1:
            written = f"{item:05d}"
        if case > 1 and number % 8 == 5:
            written = f" {item} "
        if case == 3 and number % 10 == 7:
            written = item + 100_000  # the new numbers have six digits
        found.append((chance.choice(WAREHOUSES), written))
    return found


def build(case: int) -> tuple[Book, Book]:
    data = items(case)
    answers = [
        (f"{where.strip().upper()}-{int(item):05d}", f"{int(item):07d}") for where, item in data
    ]
    return _book(data, []), _book(data, answers)


def _book(data: list[Item], answers: list[tuple[str, str]]) -> Book:
    book = Book()
    sheet = book.sheet("Items", (12, 12, 16, 14))
    book.header(sheet, ("Warehouse", "Item", "Key", "Label no."))
    book.rows(sheet, data, top=2)
    book.rows(sheet, answers, top=2, left=3)
    return book


VALUES = """
from openpyxl import load_workbook

wb = load_workbook("@INPUT@")
ws = wb["Items"]
for row in range(2, ws.max_row + 1):
    warehouse, item = ws.cell(row, 1).value, ws.cell(row, 2).value
    if item is None:
        continue
    digits = str(item).strip()
    ws.cell(row, 3).value = warehouse.strip().upper() + "-" + digits.zfill(5)
    ws.cell(row, 4).value = digits.zfill(7)
    ws.cell(row, 4).number_format = "@"
wb.save("@OUTPUT@")
"""

FORMULAS = """
from openpyxl import load_workbook

wb = load_workbook("@INPUT@")
ws = wb["Items"]
for row in range(2, ws.max_row + 1):
    digits = f"TRIM(B{row})"
    zeros = f'REPT("0",MAX(0,5-LEN({digits})))'
    ws.cell(row, 3).value = f'=UPPER(TRIM(A{row}))&"-"&{zeros}&{digits}'
    ws.cell(row, 4).value = f'=RIGHT("0000000"&{digits},7)'
wb.save("@OUTPUT@")
"""

# Keeps the last five digits even where there are six.
CUTS_SIX_DIGITS = VALUES.replace("digits.zfill(5)", "digits.zfill(5)[-5:]")

LOSES_ZEROS = VALUES.replace("digits.zfill(5)", "str(int(digits))").replace(
    "digits.zfill(7)", "str(int(digits))"
)

UNCLOSED = VALUES.replace("wb.save(", "wb.save((")

TASK = SampleTask(
    id=1005,
    instruction_type=CELL_LEVEL,
    instruction="""
        Column A has the warehouse and column B the item number, but the item numbers come from
        two systems: some are real numbers, some are text with leading zeros or with blanks around
        them. I need a key in column C that is the warehouse in capitals, a hyphen and the item
        number with at least five digits, for instance BER-00417. The newer six digit numbers must
        not be cut. In column D put the number that goes on the label: seven digits with leading
        zeros, as text.
    """,
    answer_position="C2:D31",
    build=build,
    answers=(
        Answer("values", VALUES),
        Answer("formulas", FORMULAS),
        Answer("cuts-six-digits", CUTS_SIX_DIGITS, ("AC", "AC", "WA")),
        Answer("loses-leading-zeros", LOSES_ZEROS, "WA"),
        Answer("unclosed-bracket", UNCLOSED, "CE"),
    ),
)
