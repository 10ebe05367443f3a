"""Task 1006: a price list with quantity discounts, in which missing articles show #N/A."""

from __future__ import annotations

import random
from decimal import Decimal

from sample.book import Book, Cached, Value
from sample.model import CELL_LEVEL, Answer, SampleTask, round_half_up

ROWS = {1: 12, 2: 16, 3: 18}
BULK = 100
LISTED = 14

Price = tuple[str, Decimal, Decimal]
Line = tuple[str, int]


def price_list(case: int) -> list[Price]:
    chance = random.Random(f"prices {case}")
    found = []
    for number in range(LISTED):
        price = Decimal(chance.randrange(120, 9000)) / 100
        bulk = (price * Decimal("0.88")).quantize(Decimal("0.01"))
        found.append((f"ART-{case}{number * 7 + 3:03d}", price, bulk))
    chance.shuffle(found)
    return found


def lines(case: int, prices: list[Price]) -> list[Line]:
    chance = random.Random(f"quote {case}")
    found: list[Line] = []
    for number in range(ROWS[case]):
        article = chance.choice(prices)[0]
        quantity = chance.choice((1, 4, 12, 60, 99, 120, 250))
        if case != 2 and number in {3, 8, 9}:
            article = f"ART-9{number:03d}"  # not in the list
        if case == 3 and number in {5, 12}:
            quantity = BULK
        found.append((article, quantity))
    return found


def build(case: int) -> tuple[Book, Book]:
    prices = price_list(case)
    data = lines(case, prices)
    table = {article: (price, bulk) for article, price, bulk in prices}
    answers: list[tuple[Cached, Cached]] = []
    for row, (article, quantity) in enumerate(data, start=2):
        unit: Value = "#N/A"
        total: Value = "#N/A"
        if article in table:
            price = table[article][quantity >= BULK]
            unit, total = float(price), round_half_up(price * quantity, 2)
        lookup = f"VLOOKUP(A{row},'Price List'!$A$2:$C$15,IF(B{row}>={BULK},3,2),FALSE)"
        answers.append((Cached(f"={lookup}", unit), Cached(f"=ROUND(B{row}*C{row},2)", total)))
    return _book(prices, data, []), _book(prices, data, answers)


def _book(prices: list[Price], data: list[Line], answers: list[tuple[Cached, Cached]]) -> Book:
    book = Book()
    sheet = book.sheet("Quote", (12, 10, 12, 12))
    book.header(sheet, ("Article", "Quantity", "Unit price", "Total"))
    book.rows(sheet, data, top=2)
    book.rows(sheet, answers, top=2, left=3)
    listed = book.sheet("Price List", (12, 10, 14))
    book.header(listed, ("Article", "Price", "From 100 pcs"))
    book.rows(listed, [(name, float(price), float(bulk)) for name, price, bulk in prices], top=2)
    return book


VALUES = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
quote, prices = wb["Quote"], wb["Price List"]
table = {a: (p, bulk) for a, p, bulk in prices.iter_rows(min_row=2, max_col=3, values_only=True)}
for row in range(2, quote.max_row + 1):
    article, quantity = quote.cell(row, 1).value, quote.cell(row, 2).value
    if article is None:
        continue
    if article not in table:
        quote.cell(row, 3).value = quote.cell(row, 4).value = "#N/A"
        continue
    unit = table[article][1 if quantity >= 100 else 0]
    quote.cell(row, 3).value = unit
    quote.cell(row, 4).value = round(unit * quantity, 2)
wb.save("@OUTPUT@")
"""

FORMULAS = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
quote, prices = wb["Quote"], wb["Price List"]
last = prices.max_row
for row in range(2, quote.max_row + 1):
    match = f"MATCH(A{row},'Price List'!$A$2:$A${last},0)"
    column = f"IF(B{row}<100,1,2)"
    quote.cell(row, 3).value = f"=INDEX('Price List'!$B$2:$C${last},{match},{column})"
    quote.cell(row, 4).value = f"=ROUND(B{row}*C{row},2)"
wb.save("@OUTPUT@")
"""

HIDES_ERRORS = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
quote = wb["Quote"]
for row in range(2, quote.max_row + 1):
    lookup = f"VLOOKUP(A{row},'Price List'!$A$2:$C$15,IF(B{row}>=100,3,2),FALSE)"
    quote.cell(row, 3).value = f"=IFERROR({lookup},0)"
    quote.cell(row, 4).value = f"=ROUND(B{row}*C{row},2)"
wb.save("@OUTPUT@")
"""

OVER_HUNDRED = VALUES.replace("quantity >= 100", "quantity > 100")

TASK = SampleTask(
    id=1006,
    instruction_type=CELL_LEVEL,
    instruction="""
        For each article on the sheet Quote I need the unit price in column C and the total (unit
        price times quantity, rounded to cents) in column D. The prices are on the sheet Price
        List: column B is the normal price, column C the price from 100 pieces on. If an article
        is not in the list I want to see #N/A in both columns, please do not hide it, that is how I
        notice what is missing.
    """,
    answer_position="Quote!C2:D19",
    build=build,
    answers=(
        Answer("values", VALUES),
        Answer("formulas", FORMULAS),
        Answer("hides-errors", HIDES_ERRORS, ("WA", "AC", "WA")),
        Answer("more-than-100-only", OVER_HUNDRED, ("AC", "AC", "WA")),
    ),
)
