"""Measures the cost of showing the first rows of the largest inputs in every form of a prompt.

    python benchmarks/preview.py SUITE... [--before TREE] [--workbooks 20] [--repeat 9]

For each workbook, measures the processor time of reading its first six rows and writing all forms,
in a process that has done so before, and the peak memory that Python allocates for it; for the
largest workbook also the processor time and the memory of a process that does nothing else. If the
source tree of an earlier state is given, both are measured in turns, and the last column is the
time of this state as a share of the time of the earlier one. All figures are medians.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.command_line import existing, run_command

HERE = Path(__file__).resolve().parent.parent

WORKER = """
import importlib, importlib.util, json, sys, time, tracemalloc
from pathlib import Path

sys.path.insert(0, sys.argv[1])
rows, again, paths = 5, sys.argv[2] == "again", [Path(path) for path in sys.argv[3:]]
import judge.workbook
# Earlier states had a reader of the first rows of their own.
found = importlib.util.find_spec("judge.workbook.preview")
place = "judge.workbook.preview" if found else "judge.inference.preview"
read_preview = importlib.import_module(place).read_preview
from judge.inference.content import FORMS, ContentLimits, render_content

def show(path):
    sheets = read_preview(path, rows + 1)
    for form in FORMS:
        render_content(sheets, form, ContentLimits(rows=rows))

figures = []
for path in paths:
    show(path)
    if again:
        started = time.process_time()
        show(path)
        seconds = time.process_time() - started
        tracemalloc.start()
        show(path)
        figures.append((seconds, tracemalloc.get_traced_memory()[1]))
        tracemalloc.stop()
print(json.dumps(figures))
"""


@dataclass
class State:
    """A source tree with its measurements: seconds and bytes."""

    tree: Path
    workbooks: list[list[tuple[float, int]]] = field(default_factory=list)
    process: list[tuple[float, int]] = field(default_factory=list)

    def measure(self, paths: list[Path]) -> None:
        command = [sys.executable, "-P", "-c", WORKER, str(self.tree)]
        done = subprocess.run(
            [*command, "again", *map(str, paths)], check=True, capture_output=True, text=True
        )
        self.workbooks.append([(seconds, size) for seconds, size in json.loads(done.stdout)])
        child = subprocess.Popen(
            [*command, "once", str(paths[0])], stdout=subprocess.DEVNULL, cwd=self.tree
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"{self.tree}: {paths[0]} cannot be shown")
        self.process.append((used.ru_utime + used.ru_stime, used.ru_maxrss * 1024))

    def of_workbook(self, number: int) -> tuple[float, float]:
        return _median([figures[number] for figures in self.workbooks])

    def of_process(self) -> tuple[float, float]:
        return _median(self.process)


def _median(figures: list[tuple[float, int]]) -> tuple[float, float]:
    """Returns milliseconds and MB."""
    seconds, sizes = zip(*figures, strict=True)
    return statistics.median(seconds) * 1e3, statistics.median(sizes) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("suites", type=existing, nargs="+", metavar="SUITE")
    parser.add_argument("--before", type=existing, metavar="TREE")
    parser.add_argument("--workbooks", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=9)
    options = parser.parse_args()
    inputs = [
        path.resolve()
        for suite in options.suites
        for end in ("input", "init")
        for path in suite.rglob(f"*_{end}.xlsx")
    ]
    largest = sorted(inputs, key=lambda path: (-path.stat().st_size, path))[: options.workbooks]
    if not largest:
        raise SystemExit("the suites have no input workbooks (*_input.xlsx, *_init.xlsx)")
    states = [State(HERE)] if options.before is None else [State(options.before), State(HERE)]
    for number in range(options.repeat):
        for state in states if number % 2 else reversed(states):
            state.measure(largest)
    head = "  ".join(["ms     MB"] * len(states))
    print(f"{'workbook':<24} {'file MB':>7}  {head}")
    for number, path in enumerate(largest):
        size = path.stat().st_size / 1e6
        print(_line(path.name, f"{size:7.2f}", [state.of_workbook(number) for state in states]))
    sums = [
        (
            sum(state.of_workbook(number)[0] for number in range(len(largest))),
            max(state.of_workbook(number)[1] for number in range(len(largest))),
        )
        for state in states
    ]
    print(_line("all", " " * 7, sums))
    print(_line("a process for the first", " " * 7, [state.of_process() for state in states]))


def _line(name: str, size: str, figures: list[tuple[float, float]]) -> str:
    columns = "  ".join(f"{ms:6.1f} {mb:5.1f}" for ms, mb in figures)
    ratio = f"  {figures[-1][0] / figures[0][0]:.2f}" if len(figures) > 1 else ""
    return f"{name:<24} {size}  {columns}{ratio}"


if __name__ == "__main__":
    run_command(main)
