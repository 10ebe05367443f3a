"""Tasks for mouse and keyboard: formulas, a sheet, a chart, and one that cannot be solved."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from openpyxl.chart import BarChart, Reference
from openpyxl.styles import Font
from sample.book import Book, Cached, Value
from sample_rules.model import pair

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun")
BUILDINGS = ("Museum", "Castle")
WEEKS = 8


@dataclass(frozen=True)
class DesktopTask:
    """A task with one case.

    Attributes:
        id: its id.
        kind: what sort of task it is.
        instruction: the question.
        question: makes the input.
        gold: makes the gold; None for a task that cannot be done.
        rules: what the output is judged by.
        options: more options of the checker.
    """

    id: str
    kind: str
    instruction: str
    question: Callable[[], bytes]
    gold: Callable[[], bytes] | None = None
    rules: Sequence[Mapping[str, Any]] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def files(self) -> dict[str, bytes]:
        """Returns input and gold by file name."""
        found = {f"1_{self.id}_input.xlsx": self.question()}
        if self.gold is not None:
            found[f"1_{self.id}_answer.xlsx"] = self.gold()
        return found

    def record(self) -> dict[str, Any]:
        """Returns the task's record in ``suite.json``."""
        place = f"files/{self.id}"
        if self.gold is None:
            checker = {"name": "metrics", "options": {"metrics": [{"func": "infeasible"}]}}
            gold: object = {"value": "FAIL"}
        else:
            options = {"rules": list(self.rules), **self.options}
            checker = {"name": "rules", "options": options}
            gold = f"{place}/1_{self.id}_answer.xlsx"
        return {
            "id": self.id,
            "instruction": " ".join(self.instruction.split()),
            "kind": self.kind,
            "groups": {"feasible": "no" if self.gold is None else "yes"},
            "answer": "text" if self.gold is None else "workbook",
            "checker": checker,
            "cases": [
                {"number": 1, "inputs": [f"{place}/1_{self.id}_input.xlsx"], "golds": [gold]}
            ],
        }


def _weeks(*, profit: bool) -> bytes:
    chance = random.Random("desktop profit")
    book = Book()
    sheet = book.sheet("Weeks", (10, 10, 10, 10))
    book.header(sheet, ("Week", "Sales", "Cost", *(["Profit"] if profit else [])))
    for row in range(2, WEEKS + 2):
        sales, cost = chance.randrange(900, 2400), chance.randrange(500, 1900)
        values: list[Value | Cached] = [row - 1, sales, cost]
        if profit:
            values.append(Cached(f"=B{row}-C{row}", sales - cost))
        book.rows(sheet, [values], top=row)
    return book.to_bytes()


def _plan(*, summary: bool) -> bytes:
    book = Book()
    sheet = book.sheet("Plan", (14, 10, 10))
    book.header(sheet, ("Department", 2027, 2028))
    book.rows(sheet, [("Garden", 1200, 1350), ("Kitchen", 3100, 2900), ("Office", 800, 820)], top=2)
    if summary:
        added = book.sheet("Summary")
        book.put(added, 1, 1, "Budget of all departments")
        added.cell(1, 1).font = Font(bold=True)
        added.merge_cells("A1:C1")
    return book.to_bytes()


def _visitors(*, drawn: bool) -> bytes:
    chance = random.Random("desktop chart")
    book = Book()
    sheet = book.sheet("Visitors", (10, 10, 10))
    book.header(sheet, ("Month", *BUILDINGS))
    for row, month in enumerate(MONTHS, start=2):
        values: list[Value] = [month, *(chance.randrange(40, 400) for _ in BUILDINGS)]
        book.rows(sheet, [values], top=row)
    if drawn:
        chart = BarChart()
        chart.type = "col"
        chart.title = "Visitors"
        last = len(MONTHS) + 1
        series = Reference(sheet, min_col=2, max_col=3, min_row=1, max_row=last)
        chart.add_data(series, titles_from_data=True)
        chart.set_categories(Reference(sheet, min_col=1, min_row=2, max_row=last))
        chart.y_axis.delete = chart.x_axis.delete = False
        sheet.add_chart(chart, "F2")
    return book.to_bytes()


TASKS = (
    DesktopTask(
        id="profit",
        kind="Formulas",
        instruction="""Add a column Profit to the sheet Weeks, to the right of Cost: formulas that
            subtract the cost of each week from its sales.""",
        question=lambda: _weeks(profit=False),
        gold=lambda: _weeks(profit=True),
        rules=[{"type": "sheet_name"}, pair("sheet_data", "Weeks")],
    ),
    DesktopTask(
        id="summary",
        kind="Sheets and formats",
        instruction="""Add a sheet Summary after the sheet Plan. Merge its cells A1 to C1, write
            "Budget of all departments" into them, and make that bold. Nothing else changes.""",
        question=lambda: _plan(summary=False),
        gold=lambda: _plan(summary=True),
        rules=[
            {"type": "sheet_name"},
            pair("sheet_data", "Plan"),
            pair("sheet_data", "Summary"),
            pair("style", "Summary", props=["font_bold", "merge"]),
        ],
        options={"profile": "standard"},  # the published evaluator does not support merged cells
    ),
    DesktopTask(
        id="chart",
        kind="Chart",
        instruction="""Draw a clustered column chart of the table on the sheet Visitors, with a
            series for each building, the months as categories, and the title "Visitors". The cells
            stay as they are.""",
        question=lambda: _visitors(drawn=False),
        gold=lambda: _visitors(drawn=True),
        rules=[
            pair("sheet_data", "Visitors"),
            pair("chart", "Visitors", chart_props=["type", "title", "direction"]),
        ],
    ),
    DesktopTask(
        id="impossible",
        kind="Chart",
        instruction="""Draw a chart of the table on the sheet Visitors that moves from month to
            month by itself as long as the workbook is open. Use no macros.""",
        question=lambda: _visitors(drawn=False),
    ),
)
