"""Task 1004: the first and the last swipe of a day, as times, on another sheet."""

from __future__ import annotations

import datetime as dt
import random

from sample.book import Book
from sample.model import CELL_LEVEL, Answer, SampleTask

BADGES = ("B-004", "B-017", "B-023", "B-042", "B-051", "B-077", "B-108")
ROWS = {1: 20, 2: 38, 3: 55}
DAYS = (dt.date(2025, 5, 12), dt.date(2025, 5, 13), dt.date(2025, 5, 14))

Swipe = tuple[str, dt.date, dt.time]
Summary = tuple[dt.time | None, dt.time | None, int]


def swipes(case: int) -> list[Swipe | None]:
    """Returns the log; None stands for a row that was cleared."""
    chance = random.Random(f"attendance {case}")
    badges = BADGES if case < 3 else BADGES[:5]
    found: list[Swipe] = []
    for number in range(ROWS[case]):
        minutes = chance.randrange(6 * 60, 22 * 60)
        found.append(
            (
                badges[number % len(badges)],
                chance.choice(DAYS),
                dt.time(minutes // 60, minutes % 60),
            )
        )
    log: list[Swipe | None] = list(found)
    if case == 1:
        log = [*sorted(found, key=lambda swipe: swipe[1:])]
    if case == 2:
        log[11] = None
        log[25] = None
    return log


def summary(log: list[Swipe | None], badge: str, day: dt.date) -> Summary:
    times = [swipe[2] for swipe in log if swipe is not None and swipe[:2] == (badge, day)]
    return (min(times), max(times), len(times)) if times else (None, None, 0)


def build(case: int) -> tuple[Book, Book]:
    log = swipes(case)
    day = DAYS[case % len(DAYS)]
    return _book(log, day, []), _book(log, day, [summary(log, badge, day) for badge in BADGES])


def _book(log: list[Swipe | None], day: dt.date, answers: list[Summary]) -> Book:
    book = Book()
    sheet = book.sheet("Swipes", (10, 13, 10))
    book.header(sheet, ("Badge", "Date", "Time"))
    book.rows(sheet, [swipe or () for swipe in log], top=2)
    report = book.sheet("Day Report", (10, 12, 12, 10, 4, 8, 13))
    book.header(report, ("Badge", "First in", "Last out", "Swipes"))
    book.rows(report, [(badge,) for badge in BADGES], top=2)
    book.rows(report, answers, top=2, left=2)
    book.rows(report, [("Day", day)], left=6)
    return book


VALUES = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
log = wb["Swipes"]
report = wb["Day Report"]
day = report["G1"].value
times = {}
for badge, date, time in log.iter_rows(min_row=2, max_col=3, values_only=True):
    if badge is not None and date == day:
        times.setdefault(badge, []).append(time)
for row in range(2, 9):
    found = times.get(report.cell(row, 1).value, [])
    report.cell(row, 4).value = len(found)
    if found:
        report.cell(row, 2).value = min(found)
        report.cell(row, 3).value = max(found)
wb.save("@OUTPUT@")
"""

FORMULAS = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
log = wb["Swipes"]
report = wb["Day Report"]
last = log.max_row
badges, days, times = (f"Swipes!${c}$2:${c}${last}" for c in "ABC")
for row in range(2, 9):
    where = f"{badges},$A{row},{days},$G$1"
    report.cell(row, 4).value = f"=COUNTIFS({where})"
    for column, function in ((2, "MINIFS"), (3, "MAXIFS")):
        cell = report.cell(row, column)
        cell.value = f'=IF($D{row}=0,"",_xlfn.{function}({times},{where}))'
        cell.number_format = "hh:mm:ss"
wb.save("@OUTPUT@")
"""

TRUSTS_ORDER = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
report = wb["Day Report"]
day = report["G1"].value
rows = [r for r in wb["Swipes"].iter_rows(min_row=2, max_col=3, values_only=True) if r[1] == day]
for row in range(2, 9):
    found = [r[2] for r in rows if r[0] == report.cell(row, 1).value]
    report.cell(row, 4).value = len(found)
    if found:
        # the log is written as people come and go
        report.cell(row, 2).value = found[0]
        report.cell(row, 3).value = found[-1]
wb.save("@OUTPUT@")
"""

ENDLESS = """
import openpyxl

wb = openpyxl.load_workbook("@INPUT@")
log = wb["Swipes"]
report = wb["Day Report"]
day = report["G1"].value
times = {}
row = 2
while row <= log.max_row:
    badge = log.cell(row, 1).value
    if badge is None:
        continue
    if log.cell(row, 2).value == day:
        times.setdefault(badge, []).append(log.cell(row, 3).value)
    row += 1
for row in range(2, 9):
    found = times.get(report.cell(row, 1).value, [])
    report.cell(row, 4).value = len(found)
    if found:
        report.cell(row, 2).value = min(found)
        report.cell(row, 3).value = max(found)
wb.save("@OUTPUT@")
"""

TASK = SampleTask(
    id=1004,
    instruction_type=CELL_LEVEL,
    instruction="""
        The door writes every badge swipe to the sheet Swipes (badge, date, time), in no
        particular order, and sometimes a row in between is cleared. On the sheet Day Report I
        pick a day in G1. For each badge in column A I need the first time of that day in column
        B, the last time in column C and the number of swipes in column D. Somebody who was not in
        that day has no times, so B and C stay empty, and 0 swipes.
    """,
    answer_position="'Day Report'!B2:D8",
    build=build,
    answers=(
        Answer("values", VALUES),
        Answer("formulas", FORMULAS),
        Answer("trusts-the-order", TRUSTS_ORDER, ("AC", "WA", "WA")),
        Answer("endless-loop-on-a-blank-row", ENDLESS, ("AC", "TLE", "AC")),
    ),
)
