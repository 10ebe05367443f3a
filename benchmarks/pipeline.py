"""Cases per second of the whole way, against the plain way, in one run on one machine.

    .venv/bin/python benchmarks/pipeline.py SOLUTIONS.jsonl SUITE [--limit N] [--jobs 2]

Ours: ``judge.api.score`` with both sandbox and recalculation as they come. Plain: for each case a
fresh ``python`` with nothing imported, one ``soffice --convert-to`` for the output, then openpyxl
on gold and converted output. The plain way runs unisolated and one case after the other, as the
published scripts do; ``--plain-jobs 2`` gives it as many workers as ours. Both grade the same
cases, some tasks each in turns, so that a machine that slows down slows both.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openpyxl

from judge import api
from judge.comparison.answer_range import prepare
from judge.core.submission import Submission
from judge.core.task import Task, TestCase
from judge.core.verdict import CaseResult
from judge.sandbox.backends.bubblewrap import find_bwrap
from judge.sandbox.office import office_root
from judge.sandbox.roots import is_complete, python_root
from judge.suites import Suite, load_suite
from judge.suites.submissions import load_submissions
from judge.workbook.reader import open_workbook


@dataclass
class PlainTimes:
    """Seconds by phase of the plain way, summed over cases."""

    run: float = 0.0
    recalculation: float = 0.0
    comparison: float = 0.0
    accepted: int = 0


@dataclass(frozen=True)
class PlainTools:
    """A plain Python with the solutions' packages, and LibreOffice, both as commands."""

    python: list[str]
    environment: dict[str, str]
    office: list[str]

    @classmethod
    def find(cls) -> PlainTools:
        """Takes the packages and LibreOffice of the bubblewrap roots, so both ways have the same.

        LibreOffice is started through ``bwrap`` only because that root is the one place where it
        is; nothing is sealed off, and the start of ``bwrap`` itself takes milliseconds.
        """
        packages = python_root() / "opt" / "judge" / "site"
        if not packages.is_dir() or not is_complete(office_root()):
            sys.exit("run `judge sandbox build --backend bubblewrap --office` first")
        bwrap = find_bwrap()
        assert bwrap is not None
        return cls(
            python=[sys.executable],
            environment={**os.environ, "PYTHONPATH": str(packages)},
            office=[
                *(bwrap, "--ro-bind", str(office_root()), "/", "--proc", "/proc", "--dev", "/dev"),
                *("--tmpfs", "/tmp", "--setenv", "PATH", "/usr/bin:/bin"),
            ],
        )

    def convert(self, output: Path, home: Path) -> Path:
        """Converts a workbook with a LibreOffice process of its own; its profile stays in home."""
        folder = output.parent
        command = [
            *self.office,
            *("--bind", str(folder), "/mnt", "--bind", str(home), "/home", "--setenv", "HOME"),
            *("/home", "/usr/lib/libreoffice/program/soffice", "--headless", "--convert-to"),
            *("xlsx", "--outdir", "/mnt/converted", f"/mnt/{output.name}"),
        ]
        subprocess.run(command, capture_output=True, check=False, timeout=300)
        return folder / "converted" / output.name


def plain_case(
    task: Task, submission: Submission, case: TestCase, tools: PlainTools, folder: Path, home: Path
) -> tuple[float, float, float, bool]:
    """Grades one case the plain way; returns seconds of the three phases, and the outcome."""
    output = folder / "output.xlsx"
    code = (submission.code or "").replace(submission.input_path, str(case.input_path))
    program = folder / "solution.py"
    program.write_text(code.replace(submission.output_path, str(output)), encoding="utf-8")
    started = time.perf_counter()
    subprocess.run(
        [*tools.python, str(program)],
        capture_output=True,
        check=False,
        timeout=90,
        cwd=folder,
        env=tools.environment,
    )
    ran = time.perf_counter()
    if not output.exists():
        return ran - started, 0.0, 0.0, False
    converted = tools.convert(output, home)
    recalculated = time.perf_counter()
    accepted = plain_comparison(task, case, converted)
    return ran - started, recalculated - ran, time.perf_counter() - recalculated, accepted


def plain_comparison(task: Task, case: TestCase, output: Path) -> bool:
    """openpyxl on both workbooks, then the cells of the range with two decimals."""
    try:
        gold_book = openpyxl.load_workbook(case.gold_path, data_only=True)
        output_book = openpyxl.load_workbook(output, data_only=True)
    except Exception:  # noqa: BLE001  as the published script: whatever fails is not accepted
        return False
    plan = prepare(
        task.checker,
        gold=open_workbook(case.gold_path),
        output=None,
    )
    for area in plan.gold_ranges:
        if area.sheet not in output_book.sheetnames:
            return False
        gold_sheet, output_sheet = gold_book[area.sheet], output_book[area.sheet]
        for row in range(area.min_row, area.max_row + 1):
            for column in range(area.min_column, area.max_column + 1):
                expected = _plain(gold_sheet.cell(row, column).value)
                if expected != _plain(output_sheet.cell(row, column).value):
                    return False
    return True


def _plain(value: Any) -> Any:
    if isinstance(value, int | float):
        return round(float(value), 2)
    return None if value == "" else value


def main() -> None:
    """Runs both and prints a table and, with --json, the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("solutions", type=Path)
    parser.add_argument("suite")
    parser.add_argument("--limit", type=int, help="tasks (default: all that have a solution)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--plain-jobs", type=int, default=1)
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument("--batch", type=int, default=25, help="tasks per turn")
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    suite = load_suite(arguments.suite)
    pairs = [
        (suite.task(each.task_id), each) for each in load_submissions(arguments.solutions, suite)
    ]
    pairs = pairs[: arguments.limit]
    figures = measure(suite, pairs, arguments)
    print(json.dumps(figures, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def measure(
    suite: Suite, pairs: list[tuple[Task, Submission]], arguments: argparse.Namespace
) -> dict[str, Any]:
    """Lets both ways grade the same tasks in turns."""
    ours_s, plain_s, ratios = 0.0, 0.0, []
    ours_phases: dict[str, float] = {}
    plain = PlainTimes()
    tools = PlainTools.find()
    ours_accepted = cases = 0
    for batch in _batches(pairs, arguments.batch):
        batch_cases = sum(len(task.cases) for task, _ in batch)
        seconds, results = measure_ours(batch, arguments)
        plain_seconds = measure_plain(batch, arguments.plain_jobs, tools, plain)
        ours_s += seconds
        plain_s += plain_seconds
        ratios.append(plain_seconds / seconds)
        cases += batch_cases
        for result in results:
            ours_accepted += result.verdict.value == "AC"
            for phase, value in result.timings_s.items():
                ours_phases[phase] = ours_phases.get(phase, 0.0) + value
        print(
            f"{cases} cases: ours {ours_s / cases:.3f} s, plain {plain_s / cases:.3f} s a case",
            file=sys.stderr,
        )
    return {
        "suite": suite.name,
        "cases": cases,
        "jobs": arguments.jobs,
        "plain_jobs": arguments.plain_jobs,
        "ours": {
            "s_per_case": round(ours_s / cases, 4),
            "cases_per_s": round(cases / ours_s, 3),
            "accepted": ours_accepted,
            "phase_s_summed_over_workers": {k: round(v, 2) for k, v in ours_phases.items()},
        },
        "plain": {
            "s_per_case": round(plain_s / cases, 4),
            "cases_per_s": round(cases / plain_s, 3),
            "accepted": plain.accepted,
            "phase_s_summed_over_workers": {
                "run": round(plain.run, 2),
                "recalculation": round(plain.recalculation, 2),
                "comparison": round(plain.comparison, 2),
            },
        },
        "times_as_fast": round(plain_s / ours_s, 2),
        "times_as_fast_by_turn": {
            "min": round(min(ratios), 2),
            "median": round(statistics.median(ratios), 2),
            "max": round(max(ratios), 2),
        },
    }


def measure_ours(
    batch: list[tuple[Task, Submission]], arguments: argparse.Namespace
) -> tuple[float, list[CaseResult]]:
    """Seconds that ours takes for a batch, opening sandbox and engines included."""
    with tempfile.TemporaryDirectory() as folder:
        options = api.ScoreOptions(
            dataset=arguments.suite,
            out=Path(folder) / "run",
            jobs=arguments.jobs,
            ids=tuple(task.id for task, _ in batch),
            sandbox=arguments.sandbox,
        )
        started = time.perf_counter()
        (run,) = api.score(arguments.solutions, options)
        return time.perf_counter() - started, list(run.results)


def measure_plain(
    batch: list[tuple[Task, Submission]], jobs: int, tools: PlainTools, times: PlainTimes
) -> float:
    """Seconds that the plain way takes for a batch."""
    homes: queue.SimpleQueue[Path] = queue.SimpleQueue()
    with tempfile.TemporaryDirectory() as place:
        for number in range(jobs):
            home = Path(place) / f"home-{number}"
            home.mkdir()
            homes.put(home)

        def one(item: tuple[Task, Submission, TestCase]) -> tuple[float, float, float, bool]:
            home = homes.get()
            try:
                with tempfile.TemporaryDirectory(dir=place) as folder:
                    return plain_case(*item, tools, Path(folder), home)
            finally:
                homes.put(home)

        started = time.perf_counter()
        items = [(task, submission, case) for task, submission in batch for case in task.cases]
        with ThreadPoolExecutor(jobs) as pool:
            for run, recalculation, comparison, accepted in pool.map(one, items):
                times.run += run
                times.recalculation += recalculation
                times.comparison += comparison
                times.accepted += accepted
        return time.perf_counter() - started


def _batches(
    pairs: list[tuple[Task, Submission]], size: int
) -> Iterator[list[tuple[Task, Submission]]]:
    for start in range(0, len(pairs), size):
        yield pairs[start : start + size]


if __name__ == "__main__":
    main()
