"""Solves four published desktop tasks by step lists on real desktops, and judges the episodes.

In every sandbox that is named, each list is performed twice, which must be accepted, and once
without its last step, which must be a wrong answer. Exits with 1 if any result differs.

    python benchmarks/desktop_tasks.py ../shared/data/spider2v_calc --sandbox bubblewrap docker
    python benchmarks/desktop_tasks.py ../shared/data/spider2v_calc --out results/steps
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.command_line import run_command
from judge.api import desktop_trials as trials
from judge.desktop import sandboxed
from judge.desktop.contract import DesktopHost
from judge.desktop.steps import Step, steps_of
from judge.errors import JudgeError, UsageError
from judge.files.yaml_documents import read_yaml

LISTS = Path(__file__).with_suffix(".yaml")
TIMES = 2


def read_lists(path: Path = LISTS) -> Mapping[str, tuple[Step, ...]]:
    """Reads the step lists, by task id."""
    document = read_yaml(path, UsageError)
    if not isinstance(document, dict):
        raise UsageError(f"{path}: must hold an object: id of a task -> list of steps")
    return {str(task): steps_of(steps, f"{path}, {task}") for task, steps in document.items()}


@dataclass(frozen=True)
class Tried:
    """The result of performing a list."""

    verdict: str
    cause: str
    seconds: float


def play(host: DesktopHost, options: trials.TrialOptions, steps: tuple[Step, ...]) -> Tried:
    """Performs a list on a fresh desktop."""
    start = time.perf_counter()
    try:
        with trials.opened_trial(options, model=trials.STEP_LIST, setting=trials.STEPS) as trial:
            result = trials.play_trial(trial, host, options, steps)
    except JudgeError as error:
        return Tried("none", error.message, time.perf_counter() - start)
    return Tried(result.verdict, result.cause, time.perf_counter() - start)


def play_all(
    sandbox: str, dataset: str, lists: Mapping[str, tuple[Step, ...]], out: Path | None
) -> Iterator[tuple[str, bool, Tried]]:
    """Yields task, whether its list was complete, and the result; complete lists come first."""
    with contextlib.ExitStack() as stack:
        host = sandboxed.open_desktops(sandbox, 1, stack)
        for task, steps in lists.items():
            for played, is_whole in [*[(steps, True)] * TIMES, (steps[:-1], False)]:
                options = trials.TrialOptions(
                    task_id=task,
                    dataset=dataset,
                    sandbox=sandbox,
                    out=None if out is None else out / sandbox,
                )
                yield task, is_whole, play(host, options, played)


def main() -> int:
    """Performs all lists and prints a line for each; returns whether all results are right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", help="the tasks of Spider2-V, with their workbooks")
    parser.add_argument("--sandbox", nargs="+", default=["bubblewrap"])
    parser.add_argument("--task", help="only tasks whose id begins like this", default="")
    parser.add_argument("--out", type=Path, help="folder below which the episodes are kept")
    arguments = parser.parse_args()
    chosen = {
        task: steps for task, steps in read_lists().items() if task.startswith(arguments.task)
    }
    faults, seconds = 0, []
    for sandbox in arguments.sandbox:
        for task, is_whole, tried in play_all(sandbox, arguments.suite, chosen, arguments.out):
            expected = "AC" if is_whole else "WA"
            faults += tried.verdict != expected
            seconds.append(tried.seconds)
            description = f"{len(chosen[task])} steps" if is_whole else "without the last"
            remark = "" if tried.verdict == expected else f"  (expected {expected}) {tried.cause}"
            print(
                f"{sandbox:10} {task[:8]} {description:16} {tried.verdict} "
                f"{tried.seconds:5.1f} s{remark}",
                flush=True,
            )
    print(
        f"{len(seconds)} episodes, median {statistics.median(seconds):.1f} s, {faults} unexpected"
    )
    return 1 if faults else 0


if __name__ == "__main__":
    run_command(main)
