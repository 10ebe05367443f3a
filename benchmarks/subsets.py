"""Prints the judge's shares of the subsets in the paper's Table 3, next to the paper's.

    python -m benchmarks.subsets SUITE

The paper's shares are of the whole benchmark with 912 tasks; the shares of a part of it differ by
chance, which the intervals show. The first case of a task decides to which subset the task belongs;
tasks with cases in different subsets are counted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from benchmarks.command_line import run_command
from judge.core.statistics import wilson
from judge.core.task import Task
from judge.report.breakdowns import COLUMNS, LAYOUT, ROWS, TABLES, Division, TaskFacts
from judge.report.shapes import ShapeCache, WorkbookShape
from judge.suites import load_suite

PAIRS = (ROWS, COLUMNS, TABLES, LAYOUT)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", help="folder, archive or name of a suite")
    suite = load_suite(parser.parse_args().suite)
    cache = ShapeCache()
    started = time.perf_counter()
    shapes = [_shapes(task, cache) for task in suite.tasks]
    seconds = time.perf_counter() - started
    workbooks = sum(len(shape) for shape in shapes)
    print(f"{suite.name}: {len(shapes)} tasks, {workbooks} input workbooks in {seconds:.1f} s")
    print(f"{'':24}{'ours %':>8}  {'95 % interval':16}{'paper %':>8}{'cases differ':>14}")
    for division in PAIRS:
        print(_line(division, suite.tasks, shapes))


def _shapes(task: Task, cache: ShapeCache) -> list[WorkbookShape | None]:
    return [cache.of(case.input_path.read_bytes()) for case in task.cases]


def _line(
    division: Division, tasks: Sequence[Task], shapes: Sequence[Sequence[WorkbookShape | None]]
) -> str:
    subsets_by_task = [
        [division.part_of(TaskFacts(task.kind, shape)) for shape in of_task]
        for task, of_task in zip(tasks, shapes, strict=True)
    ]
    first, paper = division.parts[0], division.parts[0].paper_share or 0.0
    first_subsets = [subsets[0] for subsets in subsets_by_task if subsets[0] is not None]
    share = wilson(first_subsets.count(first.key), len(first_subsets))
    differ = sum(len(set(subsets)) > 1 for subsets in subsets_by_task)
    interval = f"{100 * (share.low or 0):.2f} to {100 * (share.high or 0):.2f}"
    own_share = f"{100 * (share.value or 0):8.2f}"
    return f"{first.label:24}{own_share}  {interval:16}{100 * paper:8.2f}{differ:14}"


if __name__ == "__main__":
    run_command(main)
