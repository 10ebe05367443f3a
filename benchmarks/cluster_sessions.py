#!/usr/bin/env python3
"""Judges two runs at a time on workers: in one session of a cluster, and in one session each.

    .venv/bin/python -m benchmarks.cluster_sessions

For both ways, prints the seconds until both runs are done, the number of this command's processes
at the end, and whether the reports equal those of threads. A single session has two workers in all.
"""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.command_line import parser_of, run_command
from judge.api.options import ScoreOptions
from judge.api.progress import Silent
from judge.api.resources import JudgingResources
from judge.api.scoring import RunScorer, RunToScore

TASKS = ("1003",)
SAMPLE = Path(__file__).resolve().parent.parent / "dataset/sample/submissions.jsonl"


def options(cluster: str | None) -> ScoreOptions:
    """Returns the options with which both runs are judged."""
    return ScoreOptions(dataset="sample", ids=TASKS, jobs=2, sandbox="bubblewrap", cluster=cluster)


def score(scorer: RunScorer, folder: Path) -> bytes:
    """Judges one run and returns its report."""
    scorer.score(RunToScore(folder, solutions=SAMPLE, outputs=None, fresh=True), lambda _: Silent())
    return (folder / "report.json").read_bytes()


def processes() -> int:
    """Counts the processes of workers."""
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return sum("multiprocessing.spawn" in line for line in listed.stdout.splitlines())


def two_runs(folder: Path, sessions: int) -> tuple[float, int, list[bytes]]:
    """Judges two runs at a time; returns seconds, worker processes and reports."""
    with contextlib.ExitStack() as stack:
        chosen = options("local:2")
        resources = [JudgingResources(chosen, stack) for _ in range(sessions)]
        scorers = [RunScorer(chosen, shared) for shared in resources]
        begun = time.perf_counter()
        with ThreadPoolExecutor(2) as pool:
            runs = [
                pool.submit(score, scorers[index % sessions], folder / f"{sessions}-{index}")
                for index in range(2)
            ]
            reports = [run.result() for run in runs]
        return time.perf_counter() - begun, processes(), reports


def main() -> None:
    """Runs the command."""
    parser_of(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        threads = score(
            RunScorer(options(None), JudgingResources(options(None), stack)), folder / "t"
        )
        for sessions, title in ((1, "one session"), (2, "a session for each run")):
            seconds, workers, reports = two_runs(folder, sessions)
            same = sum(report == threads for report in reports)
            print(
                f"{title}: {seconds:.1f} s, {workers} worker processes, {same} of 2 reports equal"
            )


if __name__ == "__main__":
    run_command(main)
