"""Task chart: a column chart with a series for each shop."""

from __future__ import annotations

import random

from openpyxl.chart import BarChart, LineChart, Reference
from sample.book import Book, Value
from sample.model import Answer

from sample_rules.model import Finished, RuleTask, changed, pair

SHOPS = {
    1: ("Harbour", "Market"),
    2: ("Bridge", "Station", "Tower"),
    3: ("Mill", "Quay", "Park", "Gate"),
}
MONTHS = {1: 6, 2: 9, 3: 12}
_NAMES = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def _book(case: int) -> Book:
    chance = random.Random(f"chart {case}")
    book = Book()
    sheet = book.sheet("Sales", (10, 11, 11, 11, 11))
    book.header(sheet, ("Month", *SHOPS[case]))
    for row, name in enumerate(_NAMES[: MONTHS[case]], start=2):
        values: list[Value] = [name, *(chance.randrange(40, 400) for _ in SHOPS[case])]
        book.rows(sheet, [values], top=row)
    return book


def _drawn(case: int, chart: BarChart | LineChart, place: str) -> bytes:
    book = _book(case)
    sheet = book.workbook.worksheets[0]
    last = MONTHS[case] + 1
    chart.title = "Sales by month"
    series = Reference(sheet, min_col=2, max_col=1 + len(SHOPS[case]), min_row=1, max_row=last)
    chart.add_data(series, titles_from_data=True)
    chart.set_categories(Reference(sheet, min_col=1, min_row=2, max_row=last))
    sheet.add_chart(chart, place)
    return book.to_bytes()


def build(case: int) -> tuple[bytes, bytes]:
    """Returns the input and the gold."""
    chart = BarChart()
    chart.type = "col"
    chart.y_axis.delete = chart.x_axis.delete = False
    return _book(case).to_bytes(), _drawn(case, chart, "H2")


def finish(case: int) -> Finished:
    """Returns an answer whose chart has another size and position and, in the last case, lines."""
    if case == 3:
        return Finished(_drawn(case, LineChart(), "B16"), "WA")
    chart = BarChart()
    chart.width, chart.height = 20, 10
    chart.legend.position = "b"
    return Finished(_drawn(case, chart, "B16"))


COLUMNS = """
import openpyxl
from openpyxl.chart import BarChart, Reference

wb = openpyxl.load_workbook("@INPUT@")
ws = wb["Sales"]
chart = BarChart()
chart.type = "col"
chart.title = "Sales by month"
data = Reference(ws, min_col=2, max_col=ws.max_column, min_row=1, max_row=ws.max_row)
chart.add_data(data, titles_from_data=True)
chart.set_categories(Reference(ws, min_col=1, min_row=2, max_row=ws.max_row))
ws.add_chart(chart, "G3")
wb.save("@OUTPUT@")
"""

WRITER = """
import openpyxl
import xlsxwriter

source = openpyxl.load_workbook("@INPUT@")["Sales"]
rows = [[cell.value for cell in row] for row in source]
wb = xlsxwriter.Workbook("@OUTPUT@")
ws = wb.add_worksheet("Sales")
for number, row in enumerate(rows):
    ws.write_row(number, 0, row)
chart = wb.add_chart({"type": "column"})
last = len(rows) - 1
for column in range(1, len(rows[0])):
    chart.add_series({
        "name": ["Sales", 0, column],
        "categories": ["Sales", 1, 0, last, 0],
        "values": ["Sales", 1, column, last, column],
    })
chart.set_title({"name": "Sales by month"})
ws.insert_chart("H5", chart)
wb.close()
"""

LINES = COLUMNS.replace("BarChart", "LineChart").replace('chart.type = "col"\n', "")
LAST = "max_col=ws.max_column"

TASK = RuleTask(
    id="chart",
    kind="Chart",
    instruction="""Draw a clustered column chart on the sheet Sales: one series for each shop, with
        the months as categories, and the title "Sales by month". Where it stands does not matter.
        The cells stay as they are.""",
    rules=[
        pair("sheet_data", "Sales"),
        pair("chart", "Sales", chart_props=["type", "title", "direction"]),
    ],
    build=build,
    finish=finish,
    answers=(
        Answer("openpyxl", COLUMNS),
        Answer("XlsxWriter, a new workbook", WRITER),
        Answer("bars that lie", changed(COLUMNS, '"col"', '"bar"'), "WA"),
        Answer("lines", LINES, "WA"),
        Answer("one series short", changed(COLUMNS, LAST, f"{LAST} - 1"), "WA"),
        Answer("the first two shops", changed(COLUMNS, LAST, "max_col=3"), ("AC", "WA", "WA")),
        Answer("another title", changed(COLUMNS, "Sales by month", "Sales per month"), "WA"),
        Answer("a cell is gone", changed(COLUMNS, "wb.save", 'ws["B2"] = None\nwb.save'), "WA"),
    ),
)  # fmt: skip
