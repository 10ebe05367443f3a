"""Measures the processor time of all ties of a board, and of one comparison of two runs.

    python benchmarks/ranking.py [--entries 200] [--tasks 300] [--rounds 3]

Prints the seconds of both, and their ratio; the two runs are compared as ``judge compare-runs``
compares them once their records are read.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from statistics import median

from benchmarks.command_line import run_command
from judge.report.build import DEFAULT_METHOD
from judge.report.paired import TaskMeans, compare_pair
from judge.serve.boards.ties import Metric, ties_of


def main() -> None:
    """Prints medians of processor time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--entries", type=int, default=200)
    parser.add_argument("--tasks", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    entries = _entries(options.entries, options.tasks)
    tasks = list(entries[0].soft)
    first, two = entries[0], entries[-1]

    def pair() -> object:
        return compare_pair("one", "two", tasks, first, two, DEFAULT_METHOD)

    base = _seconds(pair, options.rounds)
    print(f"{options.tasks} tasks; one pair as compare-runs compares it: {base:.3f} s")
    for metric in Metric:
        seconds = _seconds(lambda metric=metric: ties_of(entries, metric), options.rounds)  # type: ignore[misc]
        print(f"{options.entries} entries by {metric}: {seconds:.3f} s, {seconds / base:.1f} times")


def _entries(count: int, tasks: int) -> list[TaskMeans]:
    draw = random.Random(20_240_624)
    entries = []
    for index in range(count):
        skill = 0.2 + 0.6 * index / count
        soft = {
            str(task): 1.0 if draw.random() < skill else draw.choice([0.0, 1 / 3, 2 / 3])
            for task in range(tasks)
        }
        hard = {task: float(score == 1.0) for task, score in soft.items()}
        entries.append(TaskMeans(soft, hard))
    return entries


def _seconds(act: Callable[[], object], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        act()
        taken.append(time.process_time() - start)
    return median(taken)


if __name__ == "__main__":
    run_command(main)
