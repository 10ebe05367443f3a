"""Draws ranges of workbooks twice with the tool ``render``, and checks that pictures are equal.

    python -m benchmarks.drawings SUITE [--sandbox bubblewrap] [--count 20]

Takes the first inputs of the suite's tasks, and of each the used range of the first sheet, at most
40 rows and 12 columns. The second picture is made in another episode. Then a chart is drawn: the
picture must differ from that of the same cells without the chart. Last, a range of a million rows
must be refused. Prints a line for each workbook; exits with 1 if two pictures differ or the chart
is missing.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import statistics
import sys
import time
from collections.abc import Sequence

import openpyxl
from openpyxl.chart import BarChart, Reference

from benchmarks.command_line import run_command
from judge.sandbox import open_sandbox
from judge.sandbox.contract import Sandbox
from judge.suites import load_suite
from judge.tools.box import HOME
from judge.tools.sets import EpisodeTools, SharedCalculator, ToolSet

INPUT, OUTPUT = f"{HOME}/in/book.xlsx", f"{HOME}/out/book.xlsx"
TOOLS = ToolSet("list_sheets,render", ("list_sheets", "render", "submit"))
ROWS, COLUMNS = 40, 12


def drawn(sandbox: Sandbox, data: bytes, area: str) -> tuple[bytes | None, str, float]:
    """Draws a range in a separate episode; returns picture, text of the tool, and seconds."""
    with contextlib.closing(
        EpisodeTools(TOOLS, sandbox, {INPUT: data}, INPUT, OUTPUT, SharedCalculator("auto"))
    ) as tools:
        tools.start()
        began = time.monotonic()
        outcome = tools.call("render", {"range": area})
        seconds = time.monotonic() - began
    return (outcome.pictures[0] if outcome.pictures else None), outcome.text, seconds


def area_of(data: bytes) -> str:
    """Returns the range of a workbook that is drawn."""
    sheet = openpyxl.load_workbook(io.BytesIO(data)).worksheets[0]
    last = sheet.cell(min(sheet.max_row, ROWS), min(sheet.max_column, COLUMNS)).coordinate
    name = sheet.title.replace("'", "''")
    return f"'{name}'!A1:{last}"


def charted(*, chart: bool) -> bytes:
    """Makes a workbook with numbers, with or without a chart."""
    book = openpyxl.Workbook()
    for number in range(1, 9):
        book.worksheets[0].append([number * number])
    if chart:
        bar_chart = BarChart()
        bar_chart.add_data(Reference(book.worksheets[0], min_col=1, min_row=1, max_row=8))
        book.worksheets[0].add_chart(bar_chart, "C2")
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()


def main(arguments: Sequence[str] | None = None) -> None:
    """Draws all ranges and prints the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite")
    parser.add_argument("--sandbox", default="bubblewrap")
    parser.add_argument("--count", type=int, default=20)
    options = parser.parse_args(arguments)
    same, seconds = 0, []
    tasks = [task for task in load_suite(options.suite).tasks if task.question.answer.is_file]
    with contextlib.closing(open_sandbox(options.sandbox)) as sandbox:
        for task in tasks[: options.count]:
            data = task.question.inputs[0].path.read_bytes()
            area = area_of(data)
            first, text, taken = drawn(sandbox, data, area)
            second, _, _ = drawn(sandbox, data, area)
            alike = first is not None and first == second
            same += alike
            seconds.append(taken)
            digest = "none" if first is None else hashlib.sha256(first).hexdigest()[:12]
            print(f"{task.id} | {text!a} | {digest} | {'same' if alike else 'NOT'} | {taken:.2f}")
        area = "Sheet!A1:M30"
        pictures = [drawn(sandbox, charted(chart=chart), area)[0] for chart in (True, False)]
        appears = None not in pictures and pictures[0] != pictures[1]
        _, text, taken = drawn(sandbox, charted(chart=False), "Sheet!A1:C1000000")
    count = len(seconds)
    print(
        f"{same} of {count} the same twice; median seconds of a call (with the start of "
        f"LibreOffice) {statistics.median(seconds):.2f}; the chart appears: {appears}; "
        f"a million rows: {text!a} after {taken:.3f} s"
    )
    sys.exit(same != count or not appears)


if __name__ == "__main__":
    run_command(main)
