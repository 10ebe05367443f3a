"""Task 11-1: sorting rows between a title and a total."""

from __future__ import annotations

import datetime as dt
import random

from sample.book import Book, Cached
from sample.model import SHEET_LEVEL, Answer, SampleTask

DEPARTMENTS = ("Sales", "Finance", "Logistics", "IT")
FIRST = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gia", "Hugo", "Iris", "Jon", "Kim", "Leo")
ROWS = {1: 14, 2: 21, 3: 27}

Person = tuple[str, str | None, dt.date, int]


def people(case: int) -> list[Person]:
    chance = random.Random(f"staff {case}")
    found: list[Person] = []
    for number in range(ROWS[case]):
        department: str | None = chance.choice(DEPARTMENTS)
        salary = chance.randrange(310, 720) * 100
        if case > 1 and number % 5 == 2:
            salary = 48000  # several people have the same salary: their order must not change
        if case == 3 and number % 6 == 1:
            assert department is not None
            department = department.lower()
        if case == 3 and number in {8, 19}:
            department = None
        joined = dt.date(2012, 1, 1) + dt.timedelta(days=chance.randrange(4500))
        name = f"{FIRST[number % len(FIRST)]} {chr(65 + number)}."
        found.append((name, department, joined, salary))
    return found


def build(case: int) -> tuple[Book, Book]:
    data = people(case)
    in_order = sorted(data, key=lambda one: (one[1] is None, (one[1] or "").lower(), -one[3]))
    return _book(data), _book(in_order)


def _book(data: list[Person]) -> Book:
    book = Book()
    sheet = book.sheet("Staff", (14, 14, 13, 11))
    book.rows(sheet, [("Staff as of January",)])
    book.header(sheet, ("Name", "Department", "Joined", "Salary"), row=3)
    book.rows(sheet, data, top=4)
    last = 3 + len(data)
    total = Cached(f"=SUM(D4:D{last})", sum(one[3] for one in data))
    book.rows(sheet, [("Total", None, None, total)], top=last + 1)
    return book


VALUES = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Staff"]
last = max(r for r in range(4, ws.max_row + 1) if ws.cell(r, 1).value == "Total") - 1
rows = [[ws.cell(r, c).value for c in range(1, 5)] for r in range(4, last + 1)]
rows.sort(key=lambda row: (row[1] is None, (row[1] or "").casefold(), -row[3]))
for r, row in enumerate(rows, start=4):
    for c, value in enumerate(row, start=1):
        ws.cell(r, c).value = value
wb.save("@OUTPUT@")
"""

PANDAS = """
Departments are compared in lower case, those without one go to the end, and a stable sort keeps
the order of equal salaries. The total row is not part of the table.

```python
import pandas as pd
from openpyxl import load_workbook

path = "@INPUT@"
frame = pd.read_excel(path, sheet_name="Staff", header=2)
total = frame.index[frame["Name"] == "Total"][0]
table = frame.iloc[:total].copy()
table["key"] = table["Department"].str.lower()
table = table.sort_values(
    ["key", "Salary"], ascending=[True, False], kind="stable", na_position="last"
)

wb = load_workbook(path)
ws = wb["Staff"]
for r, row in enumerate(table.itertuples(index=False), start=4):
    ws.cell(r, 1).value = row.Name
    ws.cell(r, 2).value = None if pd.isna(row.Department) else row.Department
    ws.cell(r, 3).value = row.Joined.to_pydatetime()
    ws.cell(r, 4).value = int(row.Salary)
wb.save("@OUTPUT@")
```
"""

CAPITALS_FIRST = VALUES.replace('(row[1] or "").casefold()', 'row[1] or ""')

SORTS_NAMES_TOO = VALUES.replace("-row[3]))", "-row[3], row[0]))").replace(
    "rows.sort(key", "rows.reverse()\nrows.sort(key"
)

WRITES_TOO_MUCH = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
rows = list(wb["Staff"].iter_rows(min_row=4, values_only=True))
with open("@OUTPUT@", "wb") as output:
    block = repr(rows).encode() * 2000
    for _ in range(100_000):
        output.write(block)
"""

TASK = SampleTask(
    id="11-1",
    instruction_type=SHEET_LEVEL,
    instruction="""
        Please sort the table on the sheet Staff by department from A to Z and within a department
        by salary from high to low. Capital or small letters make no difference, people without a
        department go to the end, and people with the same department and salary keep the order
        that they have now. The two rows above the headings and the total at the bottom have to
        stay where they are.
    """,
    answer_position="A1:D31",
    answer_sheet="Staff",
    data_position="A1:D31",
    build=build,
    answers=(
        Answer("values", VALUES),
        Answer("pandas", PANDAS),
        Answer("capital-letters-first", CAPITALS_FIRST, ("AC", "AC", "WA")),
        Answer("loses-the-order-of-equals", SORTS_NAMES_TOO, ("AC", "WA", "WA")),
        Answer("writes-too-much", WRITES_TOO_MUCH, "OLE"),
    ),
)
