"""Kills a run with tools after each line of its records, continues it, and compares the reports.

    python -m benchmarks.tool_interruptions SUITE [--sandbox bubblewrap] [--tasks 1] [--tools T]

A scripted model that knows the golds solves the tasks in a separate process. A second run is killed
immediately after the first line of its episodes, a third after the second line, and so on; the same
command then continues each run, and it is scored. Prints all differences from the first run (except
times), and how many replies had to be paid for again; exits with 1 if anything differs.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import judge
from benchmarks.command_line import run_command
from benchmarks.tool_sets import Knowing, chosen
from judge.api.infer_options import InferOptions
from judge.api.inferring import make_plan
from judge.api.planning import resume
from judge.core.task import Task
from judge.grading.store import RunDirectory
from judge.inference.chat import ChatReply, ChatRequest
from judge.inference.run import Resources, run_inference
from judge.sandbox import open_sandbox
from judge.tools.episodes import ToolEpisodeWriter
from judge.tools.sets import SharedCalculator

PASSING = {"seconds", "model_s", "tools_s", "start_s", "latency_s", "started", "created", "run"}
PASSING |= {"sha256", "bytes"}  # hashes of workbooks, in which openpyxl stores the time
"""The fields of records and reports that always differ between runs."""


class Counting(Knowing):
    """Counts the paid replies in a file, which outlives the process.

    Args:
        tasks: the tasks.
        definitions: the definitions of the tools.
        path: the file.
    """

    def __init__(self, tasks: dict[str, Task], definitions: Any, path: Path) -> None:
        super().__init__(tasks, definitions)
        self._path = path

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Returns the next reply."""
        with self._path.open("a") as file:
            file.write("x")
        return await super().complete(request)


def infer(options: argparse.Namespace, tasks: dict[str, Task], out: Path, last: int | None) -> None:
    """Makes or continues a run; kills this process after a number of lines of its episodes."""
    written = 0
    append = ToolEpisodeWriter.append

    def counted(self: ToolEpisodeWriter, line: Any) -> None:
        nonlocal written
        append(self, line)
        written += 1
        if written == last:
            os._exit(9)

    ToolEpisodeWriter.append = counted  # type: ignore[method-assign, assignment]
    infer_options = InferOptions(
        model="scripted", base_url="http://scripted/v1", dataset=options.suite, mode="tools",
        tools=options.tools, ids=tuple(tasks), out=out, sandbox=options.sandbox,
    )  # fmt: skip
    plan = make_plan(resume(infer_options)).plan
    with contextlib.ExitStack() as stack:
        sandbox = stack.enter_context(contextlib.closing(open_sandbox(options.sandbox, jobs=1)))
        calculator = stack.enter_context(SharedCalculator(options.sandbox))
        store = stack.enter_context(RunDirectory(out))
        model = Counting(tasks, plan.tool_definitions, out.with_suffix(".asked"))
        resources = Resources(model, sandbox=sandbox, calculator=calculator, jobs=1, concurrency=1)
        summary = asyncio.run(run_inference(plan, store, resources))
    assert not summary.failures, summary.failures


def apart(work: Callable[[], None]) -> int:
    """Calls a function in a separate process; returns its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            sys.stdout.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def lasting(value: Any) -> Any:
    """Returns a document without the fields that always differ."""
    if isinstance(value, dict):
        return {key: lasting(item) for key, item in value.items() if key not in PASSING}
    return [lasting(item) for item in value] if isinstance(value, list) else value


def differences(first: Any, other: Any, at: str = "") -> Iterator[str]:
    """Lists the differences between two documents."""
    if isinstance(first, dict) and isinstance(other, dict):
        for key in first.keys() | other.keys():
            yield from differences(first.get(key), other.get(key), f"{at}.{key}")
    elif isinstance(first, list) and isinstance(other, list) and len(first) == len(other):
        for number, pair in enumerate(zip(first, other, strict=True)):
            yield from differences(*pair, f"{at}[{number}]")
    elif first != other:
        yield f"{at}: {str(first)[:60]} / {str(other)[:60]}"


def outcome(options: argparse.Namespace, out: Path) -> Any:
    """Returns the results of a run: its submissions and its report."""
    code = apart(
        lambda: (
            judge.score(str(out), judge.ScoreOptions(sandbox=options.sandbox)),
            None,
        )[-1]
    )
    assert code == 0, f"{out} cannot be scored"
    lines = (out / "submissions.jsonl").read_text(encoding="utf-8").splitlines()
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    records = sorted((json.loads(line) for line in lines), key=lambda record: str(record["id"]))
    return {"submissions": lasting(records), "overall": lasting(report["overall"])}


def main(arguments: Sequence[str] | None = None) -> None:
    """Interrupts runs after each line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite")
    parser.add_argument("--sandbox", default="bubblewrap")
    parser.add_argument("--tasks", type=int, default=1)
    parser.add_argument("--tools", default="native")
    options = parser.parse_args(arguments)
    tasks = chosen(options.suite, options.tasks)
    with tempfile.TemporaryDirectory() as folder:
        uninterrupted = Path(folder, "whole", "run")
        uninterrupted.parent.mkdir()
        assert apart(lambda: infer(options, tasks, uninterrupted, None)) == 0
        expected = outcome(options, uninterrupted)
        episodes = sorted((uninterrupted / "episodes").glob("*.jsonl"))
        lines = sum(len(path.read_text().splitlines()) for path in episodes)
        paid = uninterrupted.with_suffix(".asked").stat().st_size
        differing, repaid_bytes = [], 0
        for last in range(1, lines + 1):
            out = Path(folder, str(last), "run")
            out.parent.mkdir()
            ended = apart(lambda: infer(options, tasks, out, last))  # noqa: B023 - done at once
            assert ended == 9, f"not interrupted at line {last}: {ended}"
            assert apart(lambda: infer(options, tasks, out, None)) == 0, last  # noqa: B023
            repaid_bytes += out.with_suffix(".asked").stat().st_size - paid
            if found_differences := list(differences(expected, outcome(options, out))):
                differing.append(last)
            print(f"line {last} of {lines}: {found_differences or 'the same'}", flush=True)
    print(
        f"{len(episodes)} episodes, {lines} lines: {lines - len(differing)} runs continue to the "
        f"same report; replies paid for again: {repaid_bytes} of {paid * lines}"
    )
    sys.exit(bool(differing))


if __name__ == "__main__":
    run_command(main)
