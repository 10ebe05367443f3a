"""Task 15-5: a wide table is turned into a long one, on a sheet that does not exist yet."""

from __future__ import annotations

import datetime as dt
import random

from sample.book import Book, Value
from sample.model import SHEET_LEVEL, Answer, SampleTask

ACCOUNTS = ("Rent", "Wages", "Travel", "Software", "Repairs", "Insurance", "Marketing")
SIZES = {1: (4, 4), 2: (6, 6), 3: (7, 8)}

Row = tuple[str, list[int | None]]


def months(case: int) -> list[dt.date]:
    first = {1: 3, 2: 9, 3: 7}[case]
    return [
        dt.date(2025 + (first + n - 1) // 12, (first + n - 1) % 12 + 1, 1)
        for n in range(SIZES[case][1])
    ]


def budget(case: int) -> list[Row]:
    chance = random.Random(f"budget {case}")
    rows, columns = SIZES[case]
    found: list[Row] = []
    for number in range(rows):
        amounts: list[int | None] = [chance.randrange(10, 900) * 10 for _ in range(columns)]
        for column in range(columns):
            if case > 1 and chance.random() < 0.25:
                amounts[column] = None
            elif case == 3 and chance.random() < 0.15:
                amounts[column] = 0
        if case == 3 and number == 4:
            amounts = [None] * columns
        found.append((ACCOUNTS[number], amounts))
    return found


def build(case: int) -> tuple[Book, Book]:
    data = budget(case)
    long: list[tuple[Value, ...]] = [
        (account, month, amount)
        for account, amounts in data
        for month, amount in zip(months(case), amounts, strict=True)
        if amount is not None
    ]
    return _book(case, data, None), _book(case, data, long)


def _book(case: int, data: list[Row], answers: list[tuple[Value, ...]] | None) -> Book:
    book = Book()
    sheet = book.sheet("Budget", (13, *[12] * SIZES[case][1]))
    book.header(sheet, ("Account", *months(case)))
    book.rows(sheet, [(account, *amounts) for account, amounts in data], top=2)
    if answers is not None:
        long = book.sheet("Long", (13, 13, 10))
        book.header(long, ("Account", "Month", "Amount"))
        book.rows(long, answers, top=2)
    return book


VALUES = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Budget"]
header = [cell.value for cell in ws[1]]
long = wb.create_sheet("Long")
long.append(["Account", "Month", "Amount"])
for row in ws.iter_rows(min_row=2, values_only=True):
    for month, amount in zip(header[1:], row[1:]):
        if amount is not None:
            long.append([row[0], month, amount])
wb.save("@OUTPUT@")
"""

PANDAS = """
First attempt:

```python
import pandas as pd
pd.read_excel("@INPUT@").melt(id_vars="Account").to_excel("@OUTPUT@")
```

That sorts by month instead of by account, keeps the empty cells, and loses the sheet Budget. The
corrected program:

```python
import pandas as pd

frame = pd.read_excel("@INPUT@", sheet_name="Budget")
frame["order"] = range(len(frame))
long = frame.melt(id_vars=["Account", "order"], var_name="Month", value_name="Amount")
long["Month"] = pd.to_datetime(long["Month"])
long = long.dropna(subset=["Amount"]).sort_values(["order", "Month"], kind="stable")
with pd.ExcelWriter("@OUTPUT@") as writer:
    frame.drop(columns="order").to_excel(writer, sheet_name="Budget", index=False)
    long[["Account", "Month", "Amount"]].to_excel(writer, sheet_name="Long", index=False)
```
"""

DROPS_ZEROS = VALUES.replace("if amount is not None:", "if amount:")

KEEPS_BLANKS = VALUES.replace("if amount is not None:", "if month is not None:")

OTHER_SHEET = VALUES.replace('create_sheet("Long")', 'create_sheet("Budget long")')

NO_CODE = """
You can do this with Power Query: select the table, choose From Table, mark the column Account and
click Unpivot Other Columns. Then load the result to a new sheet and call it Long. Should I
explain the steps in more detail?
"""

TASK = SampleTask(
    id="15-5",
    instruction_type=SHEET_LEVEL,
    instruction="""
        My budget on the sheet Budget has one row per account and one column per month (row 1 has
        the first day of each month). For a pivot table I need it as a list on a new sheet called
        Long, with the headings Account, Month and Amount in row 1 and below one row per account
        and month: first all months of the first account, then those of the second and so on.
        Months without an amount are left out, but 0 is an amount and has to be in the list.
    """,
    answer_position="'Long'!A1:C60",
    answer_sheet="Long",
    data_position="A1:I8",
    build=build,
    answers=(
        Answer("values", VALUES),
        Answer("pandas", PANDAS),
        Answer("drops-zeros", DROPS_ZEROS, ("AC", "AC", "WA")),
        Answer("keeps-blanks", KEEPS_BLANKS, ("AC", "WA", "WA")),
        Answer("other-sheet-name", OTHER_SHEET, "WA"),
        Answer("no-code", NO_CODE, "CE"),
    ),
)
