"""Task 13-3: combining three sheets on another one."""

from __future__ import annotations

import random

from sample.book import Book, Value
from sample.model import SHEET_LEVEL, Answer, SampleTask

MONTHS = ("Jan", "Feb", "Mar")
PRODUCTS = (
    *("Almond butter", "Baker's flour", "Cocoa", "Dried figs", "Espresso beans", "Fennel tea"),
    *("Ginger", "Hazelnuts", "Icing sugar", "Jasmine rice", "Kidney beans", "Lentils"),
)
ROWS = {1: 8, 2: 11, 3: 15}

Month = list[tuple[str, int]]


def months(case: int) -> list[Month]:
    chance = random.Random(f"stock {case}")
    found: list[Month] = []
    for number in range(len(MONTHS)):
        # In case 1 every month has the same products; in later cases, products come and go.
        products = list(PRODUCTS[: ROWS[1]])
        if case > 1:
            products = chance.sample(PRODUCTS[: 9 + case], 6 + case)
        if case == 3:
            products += chance.choices(products, k=5)  # delivered more than once
        if case == 2 and number == 0:
            products = [product for product in products if product != "Cocoa"]
        chance.shuffle(products)
        found.append([(product, chance.randrange(0, 80)) for product in products])
    return found


def table(data: list[Month]) -> list[tuple[Value, ...]]:
    products = sorted({product for month in data for product, _ in month})
    rows: list[tuple[Value, ...]] = []
    for product in products:
        amounts = [sum(count for name, count in month if name == product) for month in data]
        rows.append((product, *amounts, sum(amounts)))
    return rows


def build(case: int) -> tuple[Book, Book]:
    data = months(case)
    return _book(data, []), _book(data, table(data))


def _book(data: list[Month], answers: list[tuple[Value, ...]]) -> Book:
    book = Book()
    for name, month in zip(MONTHS, data, strict=True):
        sheet = book.sheet(name, (18, 10))
        book.header(sheet, ("Product", "Pieces"))
        book.rows(sheet, month, top=2)
    sheet = book.sheet("Summary", (18, 8, 8, 8, 9))
    book.header(sheet, ("Product", *MONTHS, "Total"))
    book.rows(sheet, answers, top=2)
    return book


VALUES = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
months = ["Jan", "Feb", "Mar"]
pieces = {}
for index, month in enumerate(months):
    for product, count in wb[month].iter_rows(min_row=2, max_col=2, values_only=True):
        if product is not None:
            pieces.setdefault(product, [0, 0, 0])[index] += count
summary = wb["Summary"]
for row, product in enumerate(sorted(pieces), start=2):
    for column, value in enumerate((product, *pieces[product], sum(pieces[product])), start=1):
        summary.cell(row, column).value = value
wb.save("@OUTPUT@")
"""

FORMULAS = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
months = ["Jan", "Feb", "Mar"]
products = set()
for month in months:
    products |= {r[0] for r in wb[month].iter_rows(min_row=2, max_col=1, values_only=True) if r[0]}
summary = wb["Summary"]
for row, product in enumerate(sorted(products), start=2):
    summary.cell(row, 1).value = product
    for column, month in enumerate(months, start=2):
        last = wb[month].max_row
        names, pieces = (f"{month}!${letter}$2:${letter}${last}" for letter in "AB")
        summary.cell(row, column).value = f"=SUMIF({names},$A{row},{pieces})"
    summary.cell(row, 5).value = f"=SUM(B{row}:D{row})"
wb.save("@OUTPUT@")
"""

ONLY_JANUARY = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
months = ["Jan", "Feb", "Mar"]
tables = [dict(wb[m].iter_rows(min_row=2, max_col=2, values_only=True)) for m in months]
summary = wb["Summary"]
for row, product in enumerate(sorted(tables[0]), start=2):
    counts = [table.get(product, 0) for table in tables]
    for column, value in enumerate((product, *counts, sum(counts)), start=1):
        summary.cell(row, column).value = value
wb.save("@OUTPUT@")
"""

WRITES_CSV = """
import csv

import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
with open("@OUTPUT@", "w", newline="") as output:
    writer = csv.writer(output)
    for month in ("Jan", "Feb", "Mar"):
        writer.writerows(wb[month].iter_rows(min_row=2, max_col=2, values_only=True))
"""

TASK = SampleTask(
    id="13-3",
    instruction_type=SHEET_LEVEL,
    instruction="""
        The sheets Jan, Feb and Mar each list products and pieces delivered in that month. I want
        all of them together on the sheet Summary: from row 2 on one row per product, in
        alphabetical order, with the pieces of the three months in columns B to D and the total in
        column E. A product does not have to be there every month, then that month is 0, and a
        product that was delivered several times in a month is added up.
    """,
    answer_position="'Summary'!A2:E16",
    answer_sheet="Summary",
    data_position="Jan!A1:B20,Feb!A1:B20,Mar!A1:B20",
    build=build,
    answers=(
        Answer("values", VALUES),
        Answer("formulas", FORMULAS),
        Answer("products-of-january-only", ONLY_JANUARY, ("AC", "WA", "WA")),
        Answer("writes-text-as-xlsx", WRITES_CSV, "IW"),
    ),
)
