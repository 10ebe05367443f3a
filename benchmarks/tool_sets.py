"""Runs sets of tools on tasks of a suite with a scripted model, and measures times and memory.

    python -m benchmarks.tool_sets SUITE [--sandbox bubblewrap] [--tasks 10] [--out FOLDER]
        [--tools native --tools ssb2 --tools mcp:excel]

The model knows the golds: it reads the workbook, writes the answer with the available tools, and
submits. Then the run is judged. Prints a line for each set: tasks solved, episodes by end, calls,
errors, seconds of an episode until its tools are ready and without the model, memory inside, and
the tokens of the definitions. If a server's tool for writing cells is not known here, the server is
only listed, and its first tool is called.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import resource
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openpyxl.utils import coordinate_to_tuple, get_column_letter

import judge
from benchmarks.command_line import run_command
from judge.api.infer_options import InferOptions
from judge.api.inferring import make_plan
from judge.api.planning import resume
from judge.core.task import Task
from judge.grading.store import RunDirectory
from judge.inference.chat import ChatReply, ChatRequest, ToolCall
from judge.inference.run import Resources, run_inference
from judge.recalc.library import ranges_of
from judge.sandbox import open_sandbox
from judge.suites import load_suite
from judge.tools.episodes import read_tool_episodes
from judge.tools.sets import SharedCalculator, list_server
from judge.workbook.address import cell_key
from judge.workbook.cell import CellRange
from judge.workbook.reader import open_workbook

MAX_CELLS = 200
MAX_CALLS = 16
"""How many calls of a reply are performed."""

Rows = list[list[Any]]


@dataclass(frozen=True, slots=True)
class Answer:
    """The content that must be written for a case.

    Attributes:
        parts: sheet, first cell and rows of each range of the answer.
    """

    parts: tuple[tuple[str, str, Rows], ...]


def answer_of(task: Task, number: int) -> Answer | None:
    """Returns the cells of a gold; None if a tool for cells could not write them."""
    case = task.cases[number - 1]
    path = case.golds[0].path
    if path is None:
        return None
    gold = open_workbook(path)
    position = str(task.question.details.get("answer_position", ""))
    sheet = task.question.details.get("answer_sheet")
    if sheet and "!" not in position:
        position = f"'{sheet}'!{position}"
    try:
        areas, _ = ranges_of(gold, position)
    except judge.errors.JudgeError:
        return None
    if sum(area.size for area in areas) > MAX_CELLS:
        return None
    parts = []
    for area in areas:
        rows = _rows(gold, area)
        if rows is None:
            return None
        parts.append((area.sheet, str(area.window).partition(":")[0], rows))
    return Answer(tuple(parts))


def _rows(gold: Any, area: CellRange) -> Rows | None:
    values = gold.sheet(area.sheet).values(area.window)
    rows: Rows = []
    for row in range(area.min_row, area.max_row + 1):
        line = []
        for column in range(area.min_column, area.max_column + 1):
            value = values.get(cell_key(row, column))
            plain = isinstance(value, int | float | str) and not isinstance(value, bool)
            if not plain or (isinstance(value, str) and value.startswith("=")):
                return None
            line.append(value)
        rows.append(line)
    return rows


def _window(first: str, rows: Rows) -> str:
    """Returns the range of rows that begin at a cell."""
    row, column = coordinate_to_tuple(first)
    last = f"{get_column_letter(column + len(rows[0]) - 1)}{row + len(rows) - 1}"
    return f"{first}:{last}"


def _cells(first: str, rows: Rows) -> list[dict[str, Any]]:
    """Yields the cells of rows that begin at a cell, one by one."""
    top, left = coordinate_to_tuple(first)
    return [
        {"cell": f"{get_column_letter(left + right)}{top + down}", "value": value}
        for down, row in enumerate(rows)
        for right, value in enumerate(row)
    ]


def calls_of(
    tools: Mapping[str, Mapping[str, Any]], answer: Answer, output: str, input_path: str
) -> list[list[Any]]:
    """Makes the turns of the model: pairs of a tool and its arguments.

    Args:
        tools: name -> schema of its arguments.
        answer: the content to write.
        output: path of the workbook that is judged.
        input_path: path of the input.
    """
    names = list(tools)
    taken = tools.get("write_cells", {}).get("properties", {})
    path = next((name for name in ("path", "file_path") if name in taken), "path")
    turns: list[list[Any]] = []
    script = (
        "import json, openpyxl\n"
        "from openpyxl.utils import coordinate_to_tuple\n"
        f"book = openpyxl.load_workbook({input_path!r})\n"
        f"for sheet, first, rows in json.loads({json.dumps(answer.parts)!r}):\n"
        "    top, left = coordinate_to_tuple(first)\n"
        "    for down, row in enumerate(rows):\n"
        "        for right, value in enumerate(row):\n"
        "            book[sheet].cell(top + down, left + right).value = value\n"
        f"book.save({output!r})\n"
    )
    if "view_xlsx" in names:
        turns += [[("view_xlsx", {"file_path": input_path, "mode": "list"})]]
        turns += [[("bash", {"command": f"cat > /tmp/a.py <<'END'\n{script}END"})]]
        turns += [[("bash", {"command": "python3 /tmp/a.py"})]]
    elif "python" in names:
        turns += [[("list_sheets", {}), ("python", {"code": script})], [("recalc", {})]]
    else:
        by_tool: dict[str, Any] = {
            "write_sheet_data": lambda sheet, first, rows: {
                "file_path": output, "sheet_name": sheet, "start_cell": first, "data": rows},
            "write_range": lambda sheet, first, rows: {
                "path": output, "sheet": sheet, "at": first, "rows": rows},
            "write_data_to_excel": lambda sheet, first, rows: {
                "filepath": output, "sheet_name": sheet, "start_cell": first, "data": rows},
            "excel_write_to_sheet": lambda sheet, first, rows: {
                "fileAbsolutePath": output, "sheetName": sheet, "newSheet": False,
                "range": _window(first, rows), "values": rows},
            "write_cells": lambda sheet, first, rows: {
                path: output, "sheet": sheet, "cells": _cells(first, rows)},
            "write_excel_rows": lambda sheet, first, rows: {
                "file_path": output, "sheet_name": sheet, "start_cell": first, "rows": rows},
            "excel_write_range": lambda sheet, first, rows: {
                "path": output, "sheet": sheet, "start_cell": first, "data": rows},
            "spreadsheet_edit": lambda sheet, first, rows: {
                "path": output, "output_path": output, "overwrite": True, "operations": [
                    {"type": "set_values", "sheet": sheet, "start": first, "values": rows}]},
        }  # fmt: skip
        if taken.get("cells", {}).get("type") == "object":
            by_tool["write_cells"] = lambda sheet, first, rows: {
                path: output, "sheet_name": sheet,
                "cells": {cell["cell"]: cell["value"] for cell in _cells(first, rows)}}  # fmt: skip
        tool = next((name for name in by_tool if name in names), None)
        if tool is not None:
            turns += [[(tool, by_tool[tool](*part)) for part in answer.parts]]
        elif "edit_xlsx_cell" in names:
            calls = [
                ("edit_xlsx_cell", {"file_path": output, "sheet_name": sheet,
                                    "cell": cell["cell"], "value": str(cell["value"])})
                for sheet, first, rows in answer.parts
                for cell in _cells(first, rows)
            ]  # fmt: skip
            turns += [calls[at : at + MAX_CALLS] for at in range(0, len(calls), MAX_CALLS)]
        else:
            return [[(names[0], {})], [("submit", {})]]
    return [*turns, [("submit", {})]]


class Knowing:
    """A chat model that knows the golds.

    Args:
        tasks: the tasks.
        definitions: the definitions of the tools that it may call.
    """

    endpoint = "http://scripted/v1"

    def __init__(self, tasks: Mapping[str, Task], definitions: Sequence[Mapping[str, Any]]) -> None:
        self._tools = {
            str(definition["function"]["name"]): definition["function"]["parameters"]
            for definition in definitions
        }
        self._tasks = tasks

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Returns the next reply for the case whose input the prompt names."""
        prompt = str(request.messages[1]["content"])
        for task in self._tasks.values():
            for case in task.question.inputs:
                input_path = f"/home/agent/in/{case.path.name}"
                if input_path in prompt:
                    answer = answer_of(task, case.number) or Answer(())
                    output = f"/home/agent/out/{case.path.name}"
                    turns = calls_of(self._tools, answer, output, input_path)
                    turn = sum(message["role"] == "assistant" for message in request.messages)
                    calls = [
                        ToolCall(f"c{turn}x{at}", name, json.dumps(arguments))
                        for at, (name, arguments) in enumerate(turns[turn])
                    ]
                    return ChatReply("", "tool_calls", 100, 10, calls=tuple(calls))
        raise AssertionError("a prompt about no task")

    async def close(self) -> None:
        """Does nothing: nothing is open."""


def chosen(source: str, count: int) -> dict[str, Task]:
    """Returns the first tasks whose answers can be written as cells."""
    tasks: dict[str, Task] = {}
    for task in load_suite(source).tasks:
        numbers = range(1, len(task.cases) + 1)
        if task.question.answer.is_file and all(answer_of(task, n) is not None for n in numbers):
            tasks[task.id] = task
        if len(tasks) == count:
            break
    return tasks


def measure(options: argparse.Namespace, tool_set: str, tasks: Mapping[str, Task]) -> str:
    """Makes the line about one set of tools."""
    out = Path(options.out, f"{options.sandbox}-{tool_set.replace(':', '-').replace(',', '-')}")
    planned = make_plan(
        resume(
            InferOptions(
                model="scripted", base_url="http://scripted/v1", dataset=options.suite,
                mode="tools", tools=tool_set, ids=tuple(tasks), out=out, sandbox=options.sandbox,
            )
        )
    )  # fmt: skip
    plan = planned.plan
    assert plan.tools is not None
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        sandbox = stack.enter_context(contextlib.closing(open_sandbox(options.sandbox, jobs=1)))
        calculator = stack.enter_context(SharedCalculator(options.sandbox))
        store = stack.enter_context(RunDirectory(out))
        resources = Resources(
            Knowing(tasks, plan.tool_definitions),
            sandbox=sandbox,
            calculator=calculator,
            jobs=1,
            concurrency=1,
        )
        summary = asyncio.run(run_inference(plan, store, resources))
        for name, problem in summary.failures.items():
            print(f"{name}: {problem}")
        memory = 0
        for server in plan.tools.tools.servers:
            memory = max(memory, list_server(server.server, sandbox).memory_bytes)
    seconds = time.monotonic() - began
    report = judge.score(str(out), judge.ScoreOptions(sandbox=options.sandbox))[0].report
    episodes = list(read_tool_episodes(out))
    ends = [episode.end for episode in episodes if episode.end is not None]
    errors: Counter[str] = Counter()
    for end in ends:
        errors.update(end["errors"])
    start = statistics.median(episode.head["start_s"] or 0.0 for episode in episodes)
    work = statistics.median(end["tools_s"] for end in ends)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    solved = (report["overall"]["hard_restriction"] or 0) * len(tasks)
    return (
        f"{tool_set} | {solved:.0f} of {len(tasks)} | "
        f"{dict(Counter(end['ended'] for end in ends))} | {sum(end['calls'] for end in ends)} | "
        f"{dict(errors)} | {start:.2f} | {work:.2f} | {seconds / max(len(ends), 1):.2f} | "
        f"{memory / 1e6:.0f} | {plan.tool_tokens:,} | {peak:.0f}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures each set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite")
    parser.add_argument("--sandbox", default="bubblewrap")
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--tools", action="append")
    parser.add_argument("--out", default=None)
    options = parser.parse_args(arguments)
    with contextlib.ExitStack() as stack:
        if options.out is None:
            options.out = stack.enter_context(tempfile.TemporaryDirectory())
        tasks = chosen(options.suite, options.tasks)
        print(
            "tools | solved | ends | calls | errors | start s | calls s | episode s | server MB | "
            "tokens of definitions | judge's peak MB"
        )
        for tool_set in options.tools or ["native", "ssb2"]:
            print(measure(options, tool_set, tasks), flush=True)


if __name__ == "__main__":
    run_command(main)
