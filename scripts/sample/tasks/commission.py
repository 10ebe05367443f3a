"""Task 1008: a tiered commission, computed from revenues that are formulas themselves."""

from __future__ import annotations

import random
from decimal import Decimal

from sample.book import Book, Cached
from sample.model import CELL_LEVEL, Answer, SampleTask, round_half_up

ROWS = {1: 12, 2: 19, 3: 24}
TIERS = {
    1: ((0, "0.02"), (1000, "0.035"), (5000, "0.05"), (20000, "0.08")),
    2: ((0, "0.015"), (2000, "0.03"), (8000, "0.045"), (15000, "0.07")),
    3: ((0, "0.01"), (1000, "0.025"), (4000, "0.06"), (12000, "0.09")),
}
NAMES = ("Alvarez", "Brandt", "Chen", "Dubois", "Eriksen", "Farouk", "Greco", "Hansen")

Sale = tuple[str, int, Decimal]


def sales(case: int) -> list[Sale]:
    chance = random.Random(f"commission {case}")
    found: list[Sale] = []
    for number in range(ROWS[case]):
        units = chance.randrange(5, 400)
        price = Decimal(chance.randrange(200, 9000)) / 100
        if number % 6 == 4 and case > 1:
            units = -units  # goods that came back
        if number == 5 and case == 3:
            units, price = 40, Decimal(100)  # exactly the limit of a tier
        if number == 11 and case == 3:
            units, price = 48, Decimal(250)
        found.append((chance.choice(NAMES), units, _without_tie(case, units, price)))
    return found


def _without_tie(case: int, units: int, price: Decimal) -> Decimal:
    """Raises a price by cents until the commission is not half way between two cents."""
    while True:
        try:
            commission(case, units * price)
        except ValueError:
            price += Decimal("0.01")
        else:
            return price


def commission(case: int, revenue: Decimal) -> float:
    if revenue <= 0:
        return 0
    rate = [rate for start, rate in TIERS[case] if revenue >= start][-1]
    return round_half_up(revenue * Decimal(rate), 2)


def build(case: int) -> tuple[Book, Book]:
    data = sales(case)
    return (
        _book(case, data, []),
        _book(case, data, [commission(case, units * price) for _, units, price in data]),
    )


def _book(case: int, data: list[Sale], answers: list[float]) -> Book:
    book = Book()
    sheet = book.sheet("Sales", (12, 9, 9, 12, 13, 4, 12, 9))
    book.header(sheet, ("Rep", "Units", "Price", "Revenue", "Commission"))
    rows = [
        (name, units, float(price), Cached(f"=ROUND(B{row}*C{row},2)", float(units * price)))
        for row, (name, units, price) in enumerate(data, start=2)
    ]
    book.rows(sheet, rows, top=2)
    book.rows(sheet, [(answer,) for answer in answers], top=2, left=5)
    book.header(sheet, ("From", "Rate"), row=2, left=7)
    book.rows(sheet, [(start, float(rate)) for start, rate in TIERS[case]], top=3, left=7)
    return book


VALUES = """
from decimal import ROUND_HALF_UP, Decimal

import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Sales"]
# the revenues are formulas: their values are in a second reading of the file
revenues = openpyxl.load_workbook("@INPUT@", data_only=True)["Sales"]
tiers = [(ws.cell(row, 7).value, ws.cell(row, 8).value) for row in range(3, 7)]
for row in range(2, ws.max_row + 1):
    revenue = revenues.cell(row, 4).value
    if ws.cell(row, 1).value is None:
        continue
    rate = 0
    for start, share in tiers:
        if revenue >= start:
            rate = share
    exact = Decimal(str(max(revenue, 0))) * Decimal(str(rate))
    ws.cell(row, 5).value = float(exact.quantize(Decimal("0.01"), ROUND_HALF_UP))
wb.save("@OUTPUT@")
"""

FORMULAS = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Sales"]
for row in range(2, ws.max_row + 1):
    if ws.cell(row, 1).value is not None:
        rate = f"VLOOKUP(D{row},$G$3:$H$6,2,TRUE)"
        ws.cell(row, 5).value = f"=IF(D{row}<=0,0,ROUND(D{row}*{rate},2))"
wb.save("@OUTPUT@")
"""

# Without data_only a formula cell gives its text.
READS_FORMULA_TEXT = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Sales"]
tiers = [(ws.cell(row, 7).value, ws.cell(row, 8).value) for row in range(3, 7)]
for row in range(2, ws.max_row + 1):
    revenue = ws.cell(row, 4).value
    rate = max(share for start, share in tiers if revenue >= start)
    ws.cell(row, 5).value = round(revenue * rate, 2)
wb.save("@OUTPUT@")
"""

OWN_TIERS = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Sales"]
revenues = openpyxl.load_workbook("@INPUT@", data_only=True)["Sales"]
for row in range(2, ws.max_row + 1):
    revenue = revenues.cell(row, 4).value
    if revenue is None:
        continue
    if revenue < 1000:
        rate = 0.02
    elif revenue < 5000:
        rate = 0.035
    elif revenue < 20000:
        rate = 0.05
    else:
        rate = 0.08
    ws.cell(row, 5).value = round(max(revenue, 0) * rate + 1e-9, 2)
wb.save("@OUTPUT@")
"""

TASK = SampleTask(
    id=1008,
    instruction_type=CELL_LEVEL,
    instruction="""
        Column D of the sheet Sales calculates the revenue of each sale. The commission goes into
        column E. The rate depends on the revenue: G3:H6 says from which revenue on which rate
        applies to the whole amount, and exactly on the limit the higher rate already applies. We
        change that table every quarter, so please do not write the rates into the formula.
        Returned goods have a negative revenue and get 0. Round to cents.
    """,
    answer_position="Sales!E2:E25",
    build=build,
    answers=(
        Answer("values", VALUES),
        Answer("formulas", FORMULAS),
        Answer("reads-the-formula-text", READS_FORMULA_TEXT, "RE"),
        Answer("own-tiers", OWN_TIERS, ("AC", "WA", "WA")),
    ),
)
