"""Task 1001: totals by region and counts by channel, in two answer ranges."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal

from sample.book import Book, Value
from sample.model import CELL_LEVEL, Answer, SampleTask

REGIONS = ("North", "South", "East", "West")
CHANNELS = ("Web", "Phone", "Shop")
ROWS = {1: 24, 2: 37, 3: 52}

Order = tuple[dt.date, str, str, Decimal]


def orders(case: int) -> list[Order]:
    chance = random.Random(f"orders {case}")
    regions = REGIONS if case < 3 else REGIONS[:3]  # nobody ordered in the west in case 3
    day = dt.date(2025, 3, 1)
    found: list[Order] = []
    for number in range(ROWS[case]):
        day += dt.timedelta(days=chance.randrange(3))
        region = chance.choice(regions)
        if case == 2 and number % 7 == 3:
            region = region.lower() if number % 2 else region.upper()
        amount = Decimal(chance.randrange(1500, 90000)) / 100
        if case == 3 and number % 9 == 4:
            amount = -amount  # a return
        found.append((day, region, chance.choice(CHANNELS), amount))
    return found


def build(case: int) -> tuple[Book, Book]:
    data = orders(case)
    totals = [
        sum((amount for _, where, _, amount in data if where.lower() == region.lower()), Decimal(0))
        for region in REGIONS
    ]
    counts = [sum(1 for _, _, how, _ in data if how == channel) for channel in CHANNELS]
    return _book(data, [], []), _book(data, [float(total) for total in totals], counts)


def _book(data: list[Order], totals: list[float], counts: list[int]) -> Book:
    book = Book()
    sheet = book.sheet("Orders", (12, 10, 10, 11, 4, 10, 12, 4, 10, 9))
    book.header(sheet, ("Date", "Region", "Channel", "Amount"))
    rows: list[tuple[Value, ...]] = [
        (day, region, channel, float(amount)) for day, region, channel, amount in data
    ]
    book.rows(sheet, rows, top=2)
    book.header(sheet, ("Region", "Total"), row=2, left=6)
    book.rows(sheet, [(region,) for region in REGIONS], top=3, left=6)
    book.rows(sheet, [(total,) for total in totals], top=3, left=7)
    book.header(sheet, ("Channel", "Orders"), row=2, left=9)
    book.rows(sheet, [(channel,) for channel in CHANNELS], top=3, left=9)
    book.rows(sheet, [(count,) for count in counts], top=3, left=10)
    return book


VALUES = """
The log is read from row 2 down to the last used row, and region names are compared without
regard to case, because some of them are typed by hand.

```python
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Orders"]

totals, counts = {}, {}
for row in ws.iter_rows(min_row=2, max_col=4, values_only=True):
    _, region, channel, amount = row
    if region is None:
        continue
    key = region.strip().lower()
    totals[key] = totals.get(key, 0) + (amount or 0)
    counts[channel] = counts.get(channel, 0) + 1

for r in range(3, 7):
    ws.cell(r, 7).value = round(totals.get(ws.cell(r, 6).value.lower(), 0), 2)
for r in range(3, 6):
    ws.cell(r, 10).value = counts.get(ws.cell(r, 9).value, 0)

wb.save("@OUTPUT@")
```

The totals stand in G3:G6 and the number of orders in J3:J5.
"""

FORMULAS = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Orders"]
last = max(r for r in range(2, ws.max_row + 1) if ws.cell(r, 2).value is not None)
for r in range(3, 7):
    ws[f"G{r}"] = f"=SUMIFS($D$2:$D${last},$B$2:$B${last},F{r})"
for r in range(3, 6):
    ws[f"J{r}"] = f"=COUNTIF($C$2:$C${last},I{r})"
wb.save("@OUTPUT@")
"""

FIXED_ROWS = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Orders"]
# the table has 24 orders
rows = list(ws.iter_rows(min_row=2, max_row=25, max_col=4, values_only=True))
for r in range(3, 7):
    ws.cell(r, 7).value = round(sum(x[3] for x in rows if x[1] == ws.cell(r, 6).value), 2)
for r in range(3, 6):
    ws.cell(r, 10).value = sum(1 for x in rows if x[2] == ws.cell(r, 9).value)
wb.save("@OUTPUT@")
"""

CASE_SENSITIVE = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Orders"]
rows = [x for x in ws.iter_rows(min_row=2, max_col=4, values_only=True) if x[0] is not None]
for r in range(3, 7):
    ws.cell(r, 7).value = round(sum(x[3] for x in rows if x[1] == ws.cell(r, 6).value), 2)
for r in range(3, 6):
    ws.cell(r, 10).value = sum(1 for x in rows if x[2] == ws.cell(r, 9).value)
wb.save("@OUTPUT@")
"""

TASK = SampleTask(
    id=1001,
    instruction_type=CELL_LEVEL,
    instruction="""
        I keep an order log on the sheet Orders, with the date in column A, the region in B, the
        channel in C and the amount in D. It gets longer every week. Next to it I would like a
        small overview: the total amount of each region listed in F3:F6, and the number of orders
        of each channel listed in I3:I5. The regions are typed by hand, so you will find NORTH or
        north as well as North, and they are all the same to me. Returns are negative amounts;
        they reduce the total but still count as orders. A region without orders should show 0.
        The totals belong in G3:G6 and the counts in J3:J5.
    """,
    answer_position="G3:G6,J3:J5",
    build=build,
    answers=(
        Answer("values", VALUES),
        Answer("formulas", FORMULAS),
        Answer("reads-24-rows-only", FIXED_ROWS, ("AC", "WA", "WA")),
        Answer("case-sensitive", CASE_SENSITIVE, ("AC", "WA", "AC")),
    ),
)
