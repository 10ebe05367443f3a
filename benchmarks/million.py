"""Judges a million cases on a scripted sandbox: memory, time, resuming with no work, the report.

    nice python benchmarks/million.py [--cases 1000000] [--out FOLDER] [--compared 10] [--jobs 2]

Uses the sample suite's tasks that run programs, with as many samples as necessary. The sandbox is
scripted (``judge.sandbox.scripted``): one of every `--compared` runs writes the gold, which is
stored, read and compared; the others end like programs without output (an error with a traceback, a
time limit, nothing written). Each step runs in a separate process and reports its cost; the
resident memory of the first is read after every tenth of the cases, for `docs/plots`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import judge
from benchmarks.command_line import run_command
from judge.api.progress import Silent
from judge.grading.batch import Event
from judge.sandbox.contract import OutputStatus, RunRequest, RunResult, RunStatus
from judge.sandbox.scripted import ScriptedSandbox

TRACEBACK = (
    b'Traceback (most recent call last):\n  File "/mnt/data/solution.py", line 12, in <module>\n'
    b"    sheet = book['Summary']\n  File \"/opt/judge/site/openpyxl/workbook/workbook.py\", line "
    b'288, in __getitem__\n    raise KeyError("Worksheet {0} does not exist.".format(key))\n'
    b"KeyError: 'Worksheet Summary does not exist.'\n"
)
PROGRAM = """import openpyxl

book = openpyxl.load_workbook("/mnt/data/{task}_input.xlsx")
sheet = book.active
for row in range(2, sheet.max_row + 1):
    sheet.cell(row, 5).value = sheet.cell(row, 2).value * {sample}
book.save("/mnt/data/{task}_output.xlsx")
"""


class EndlessSandbox(ScriptedSandbox):
    """Plays scripted outcomes without end, and stores no request.

    Args:
        suite: the suite; right programs write its golds.
        compared: one of this many runs writes a workbook.
    """

    def __init__(self, suite: judge.suites.Suite, compared: int) -> None:
        super().__init__()
        self._golds = {
            case.input_path.read_bytes(): case.gold_path.read_bytes()
            for task in suite.tasks
            if task.answer.is_file
            for case in task.cases
        }
        self._compared = compared
        self._count = itertools.count()
        self._ends = (
            RunResult(RunStatus.EXITED, OutputStatus.MISSING, exit_code=1, stderr=TRACEBACK),
            RunResult(RunStatus.WALL_LIMIT, OutputStatus.MISSING, wall_s=60.0),
            RunResult(RunStatus.OK, OutputStatus.MISSING, exit_code=0),
        )

    def play(self, request: RunRequest) -> RunResult:
        """Returns the next outcome."""
        number = next(self._count)
        if number % self._compared:
            return self._ends[number % len(self._ends)]
        output = self._golds[next(iter(request.files.values()))]
        return RunResult(
            RunStatus.OK, OutputStatus.COLLECTED, exit_code=0, output=output,
            output_bytes=len(output),
        )  # fmt: skip


def memory_mb() -> float:
    """Returns the present resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Watching(Silent):
    """Reads the memory after every tenth of the cases."""

    def __init__(self) -> None:
        self.read: list[tuple[int, float]] = []

    def __call__(self, event: Event) -> None:
        """Reads the memory if another tenth is done."""
        if event.done % max(1, event.total // 10) == 0:
            self.read.append((event.done, round(memory_mb(), 1)))


def write_solutions(path: Path, suite: judge.suites.Suite, cases: int) -> None:
    """Writes enough different solutions to have a number of cases."""
    tasks = [task for task in suite.tasks if task.answer.is_file]
    left = cases
    with path.open("w") as file:
        for sample in itertools.count():
            for task in tasks:
                if left <= 0:
                    return
                left -= len(task.cases)
                record = {
                    "id": task.written_id,
                    "sample": sample,
                    "solution": PROGRAM.format(task=task.id, sample=sample),
                    "model": "scripted",
                }
                file.write(json.dumps(record) + "\n")


def score(out: Path, source: Path, compared: int, jobs: int) -> dict[str, object]:
    """Scores, or continues."""
    suite = judge.load_suite("sample")
    watching = Watching()
    options = judge.ScoreOptions(dataset="sample", out=out, jobs=jobs, recalc="never")
    sandbox = EndlessSandbox(suite, compared)
    judged_s: list[float] = []
    started = time.perf_counter()

    class Timed(Watching):
        def __exit__(self, *_: object) -> None:
            judged_s.append(time.perf_counter() - started)

    watching = Timed()
    with patch("judge.api.resources.open_sandbox", lambda *_, **__: sandbox):
        (run,) = judge.score(source, options, progress=lambda _: watching)
    return {
        "reused": run.reused,
        "cases": run.report["overall"]["including_excluded"]["cases"],
        "entries": len(run.report["tasks"]),
        "judging_s": round(judged_s[0], 1),
        "memory_mb": watching.read,
        "threads": threading.active_count(),
    }


def report(out: Path) -> dict[str, object]:
    """Writes every format of `judge report`."""
    seconds: dict[str, object] = {}
    for form in ("json", "markdown", "html"):
        started = time.perf_counter()
        target = out.parent / f"report.{form}"
        command = [str(Path(sys.executable).with_name("judge")), "report", str(out)]
        command += ["--format", form, "--out", str(target)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        seconds[form] = {
            "exit": done.returncode,
            "s": round(time.perf_counter() - started, 1),
            "peak_mb_at_most": round(max(before, peak) / 1e3),
            "mb": round(target.stat().st_size / 1e6, 1) if target.exists() else None,
            "said": done.stderr.strip()[-300:] if done.returncode else "",
        }
    return seconds


STEPS: dict[str, Callable[[argparse.Namespace, Path], dict[str, object]]] = {
    "score": lambda a, f: score(f / "run", f / "solutions.jsonl", a.compared, a.jobs),
    "resume": lambda a, f: score(f / "run", f / "run", a.compared, a.jobs),
    "report": lambda _, f: report(f / "run"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--compared", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, help="keep everything here")
    parser.add_argument("--steps", default="score,resume,report")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="judge-million-") as temporary:
        folder = arguments.out or Path(temporary)
        if arguments.step:
            started, cpu = time.perf_counter(), time.process_time()
            figures = STEPS[arguments.step](arguments, folder)
            figures["wall_s"] = round(time.perf_counter() - started, 1)
            figures["cpu_s"] = round(time.process_time() - cpu, 1)
            figures["peak_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
            print(json.dumps(figures))
            return
        folder.mkdir(parents=True, exist_ok=True)
        write_solutions(folder / "solutions.jsonl", judge.load_suite("sample"), arguments.cases)
        for step in arguments.steps.split(","):
            command = [sys.executable, __file__, "--step", step, "--out", str(folder)]
            command += ["--compared", str(arguments.compared), "--jobs", str(arguments.jobs)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            print(f"{step}: {done.stdout.strip()}", flush=True)
        for name in ("submissions.jsonl", "cases.jsonl", "report.json"):
            print(f"{name}: {(folder / 'run' / name).stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    run_command(main)
