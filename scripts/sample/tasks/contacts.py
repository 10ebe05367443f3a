"""Task 1009: splitting names that were typed by hand."""

from __future__ import annotations

from sample.book import Book
from sample.model import CELL_LEVEL, Answer, SampleTask

FIRST = ("Maria", "Jean-Luc", "Anna Lena", "Tom", "Ngozi", "Piotr", "Siobhán", "Wei", "Lucía")
LAST = ("Olsen", "van der Berg", "O'Neill", "Smith-Jones", "Okafor", "Nowak", "Li", "Peña")
PLACES = ("Oslo", "Gent", "Cork", "Leeds", "Lagos", "Łódź")
COMPANIES = ("Fjord Shipping", "Nordlys", "Acme Tools", "3D Print Works")
ROWS = {1: 10, 2: 17, 3: 25}

Parts = tuple[str | None, str, str | None]


def contacts(case: int) -> list[tuple[str, Parts]]:
    found: list[tuple[str, Parts]] = []
    for number in range(ROWS[case]):
        first = FIRST[(number * 4 + case) % len(FIRST)]
        last = LAST[(number * 3 + case * 5) % len(LAST)]
        place: str | None = PLACES[(number * 5 + case) % len(PLACES)]
        if number % 4 == 3:
            place = None
        blank = "  " if case == 3 and number % 3 == 0 else " "
        written = f"{last},{blank}{first}"
        if case == 2 and number in {6, 13}:
            # A company has no first name.
            company = COMPANIES[number % len(COMPANIES)]
            found.append((f"{company} ({place})" if place else company, (None, company, place)))
            continue
        if place is not None:
            written += f" ({place})"
        found.append((written, (first, last, place)))
    return found


def build(case: int) -> tuple[Book, Book]:
    data = contacts(case)
    return _book([text for text, _ in data], []), _book(*map(list, zip(*data, strict=True)))


def _book(texts: list[str], answers: list[Parts]) -> Book:
    book = Book()
    sheet = book.sheet("Contacts", (34, 14, 16, 12))
    book.header(sheet, ("Entry", "First name", "Last name", "City"))
    book.rows(sheet, [(text,) for text in texts], top=2)
    book.rows(sheet, answers, top=2, left=2)
    return book


VALUES = """
import re

import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Contacts"]
for row in range(2, ws.max_row + 1):
    entry = ws.cell(row, 1).value
    if not entry:
        continue
    name, city = re.fullmatch(r"(.*?)(?:\\(([^)]*)\\))?", entry.strip()).groups()
    last, comma, first = name.partition(",")
    for column, part in ((2, first), (3, last), (4, city or "")):
        ws.cell(row, column).value = part.strip() or None
wb.save("@OUTPUT@")
"""

FORMULAS = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Contacts"]
for row in range(2, ws.max_row + 1):
    if ws.cell(row, 1).value is None:
        continue
    a = f"A{row}"
    name = f'LEFT({a},IFERROR(FIND("(",{a})-1,LEN({a})))'
    comma = f'FIND(",",{a})'
    ws.cell(row, 2).value = f'=IFERROR(TRIM(MID({name},{comma}+1,100)),"")'
    ws.cell(row, 3).value = f"=TRIM(LEFT({name},IFERROR({comma}-1,100)))"
    ws.cell(row, 4).value = f'=IFERROR(SUBSTITUTE(MID({a},FIND("(",{a})+1,100),")",""),"")'
wb.save("@OUTPUT@")
"""

NEEDS_A_COMMA = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Contacts"]
for row in range(2, ws.max_row + 1):
    name, _, city = ws.cell(row, 1).value.partition("(")
    parts = name.split(",")
    ws.cell(row, 2).value = parts[1].strip()
    ws.cell(row, 3).value = parts[0].strip()
    ws.cell(row, 4).value = city.rstrip(")") or None
wb.save("@OUTPUT@")
"""

KEEPS_BLANKS = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Contacts"]
for row in range(2, ws.max_row + 1):
    name, _, city = ws.cell(row, 1).value.partition(" (")
    last, _, first = name.partition(", ")
    ws.cell(row, 2).value = first or None
    ws.cell(row, 3).value = last
    ws.cell(row, 4).value = city.rstrip(")") or None
wb.save("@OUTPUT@")
"""

TASK = SampleTask(
    id=1009,
    instruction_type=CELL_LEVEL,
    instruction="""
        Column A holds contacts in the form Last name, First name (City). I need the first name in
        column B, the last name in column C and the city in column D, without the brackets and
        without blanks at either end. Some have no city, then D stays empty. Companies have no
        comma; their whole name goes into column C and B stays empty.
    """,
    answer_position="B2:D26",
    build=build,
    answers=(
        Answer("values", VALUES),
        Answer("formulas", FORMULAS),
        Answer("needs-a-comma", NEEDS_A_COMMA, ("AC", "RE", "AC")),
        Answer("keeps-blanks", KEEPS_BLANKS, ("AC", "AC", "WA")),
    ),
)
