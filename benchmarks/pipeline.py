"""Measures cases per second of the judge and of the plain way, in one run on one machine.

    .venv/bin/python benchmarks/pipeline.py SOLUTIONS.jsonl SUITE [--limit N] [--jobs 2]
        [--against CLONE] [--plain-jobs N]

The judge is ``judge.api.score`` with default sandbox and recalculation, and nothing cached.
``--against`` measures the judge of another clone in the same way, such as an earlier commit checked
out with ``git worktree``. The plain way starts for each case a fresh ``python`` with nothing
imported and one ``soffice --convert-to`` for the output, then reads gold and converted output with
openpyxl. It runs without isolation, one case after the other, as the published scripts do;
``--plain-jobs 2`` gives it as many workers as the judge. All ways grade the same cases, a few tasks
each in turns, so that a machine that slows down slows all of them.

The time of the judge is divided into ``own``, the processor time of the programs themselves;
``sandbox``, the other time of their runs; ``recalculation``; ``comparison``, including the reading
of workbooks; and ``rest``, everything else that the workers did (start, keys, records, waiting at
the end). If control groups can be made, the processor time of everything is also counted, including
the containers but not the work of their daemon to start them. With bubblewrap, ``parts`` divides
what is not the programs' own: the judge's process, the wardens, the engines' services, and
``starts``, the processes that become sandboxes. If a container cannot be counted (on
a remote daemon), there is no figure, since it would be less than the time of the programs alone.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openpyxl

from benchmarks.command_line import existing, run_command
from benchmarks.processor_time import processor_time
from judge.compare.cells.answer_range import prepare
from judge.core.submission import Submission
from judge.core.task import Task, TestCase
from judge.files.paths import cache_folder
from judge.sandbox.backends.bubblewrap import find_bwrap
from judge.sandbox.roots import ROOTS, is_complete, python_root
from judge.suites import Suite, load_suite
from judge.suites.submissions import load_submissions
from judge.workbook.reader import open_workbook


@dataclass
class PlainTimes:
    """Seconds of the plain way by phase, summed over cases."""

    run: float = 0.0
    recalculation: float = 0.0
    comparison: float = 0.0
    accepted: int = 0
    cpu: float = 0.0
    recalculations: dict[tuple[str, int], float] = field(default_factory=dict)
    """Seconds of each conversion, by task and case."""


@dataclass(frozen=True)
class PlainTools:
    """The commands for a plain Python with the solutions' packages, and for LibreOffice."""

    python: list[str]
    environment: dict[str, str]
    office: list[str]

    @classmethod
    def find(cls) -> PlainTools:
        """Uses packages and LibreOffice of the bubblewrap roots, so both ways have the same ones.

        LibreOffice is started through ``bwrap`` only because it is installed nowhere but in that
        root; nothing is isolated, and the start of ``bwrap`` itself takes milliseconds.
        """
        packages = python_root() / "opt" / "judge" / "site"
        if not packages.is_dir() or not is_complete(ROOTS["office"].folder):
            sys.exit("run `judge sandbox build --backend bubblewrap --office` first")
        bwrap = find_bwrap()
        assert bwrap is not None
        return cls(
            python=[sys.executable],
            environment={**os.environ, "PYTHONPATH": str(packages)},
            office=[
                *(
                    bwrap,
                    "--ro-bind",
                    str(ROOTS["office"].folder),
                    "/",
                    "--proc",
                    "/proc",
                    "--dev",
                    "/dev",
                ),
                *("--tmpfs", "/tmp", "--setenv", "PATH", "/usr/bin:/bin"),
            ],
        )

    def convert(self, output: Path, home: Path) -> Path:
        """Converts a workbook with a separate LibreOffice process; its profile stays in home."""
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
    """Reads both workbooks with openpyxl, and compares the cells of the range to two decimals."""
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


@dataclass
class JudgeTimes:
    """The time that one judge took, summed over turns.

    Attributes:
        cache: its own cache folder; computed values are removed from it before each turn.
    """

    cache: Path
    seconds: float = 0.0
    cpu: float = 0.0
    counted: bool = True
    parts: Counter[str] = field(default_factory=Counter)
    cases: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self, jobs: int) -> dict[str, Any]:
        """Returns the figures; phases in seconds of the workers."""
        count = len(self.cases)
        own = self._sum("own_s")
        phases = {
            "own": own,
            "sandbox": self._sum("wall_s") - own,
            "recalculation": self._sum("recalculation_s"),
            "comparison": self._sum("comparison_s"),
        }
        phases["rest"] = self.seconds * jobs - sum(phases.values())
        figures: dict[str, Any] = {
            "s_per_case": round(self.seconds / count, 4),
            "cases_per_s": round(count / self.seconds, 3),
            "accepted": sum(case["verdict"] == "AC" for case in self.cases),
            "phase_s_summed_over_workers": {k: round(v, 2) for k, v in phases.items()},
        }
        figures["processor_s"] = "not counted: a group of a process or a container cannot be read"
        if self.counted:
            figures["processor_s"] = {
                "all": round(self.cpu, 2),
                "own": round(own, 2),
                "all_but_own": round(self.cpu - own, 2),
                "all_but_own_over_own": round((self.cpu - own) / own, 3) if own else 0.0,
            }
            if self.parts["wardens"]:
                parts = {
                    "judge": self.parts["judge"],
                    "wardens": self.parts["wardens"] - own,
                    "services": self.parts["services"],
                }
                parts["starts"] = self.cpu - own - sum(parts.values())
                figures["processor_s"]["parts"] = {k: round(v, 2) for k, v in parts.items()}
        return figures

    def _sum(self, name: str) -> float:
        return sum(float(case[name]) for case in self.cases)

    def recalculations(self) -> dict[tuple[str, int], float]:
        """The seconds of recalculation of each case that needed an engine."""
        return {
            (case["task"], case["case"]): case["recalculation_s"]
            for case in self.cases
            if case["engines"]
        }


def main() -> None:
    """Runs all ways and prints a table and, with --json, the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("solutions", type=existing)
    parser.add_argument("suite")
    parser.add_argument("--limit", type=int, help="tasks (default: all that have a solution)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--against", type=existing, help="another clone, measured in the same way")
    parser.add_argument("--plain-jobs", type=int, default=1, help="0: without the plain way")
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument("--batch", type=int, default=25, help="tasks per turn")
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    suite = load_suite(arguments.suite)
    pairs = [
        (suite.task(submission.task_id), submission)
        for submission in load_submissions(arguments.solutions, suite)
    ]
    pairs = pairs[: arguments.limit]
    with tempfile.TemporaryDirectory() as scratch:
        figures = measure(suite, pairs, arguments, Path(scratch))
    print(json.dumps(figures, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def measure(
    suite: Suite,
    pairs: list[tuple[Task, Submission]],
    arguments: argparse.Namespace,
    scratch: Path,
) -> dict[str, Any]:
    """Lets all ways grade the same tasks in turns."""
    clones = {"ours": Path(__file__).parent.parent}
    if arguments.against:
        clones["against"] = arguments.against
    judges = {name: JudgeTimes(_cache(scratch / name)) for name in clones}
    plain = PlainTimes()
    tools = PlainTools.find() if arguments.plain_jobs else None
    plain_s, ratios = 0.0, []
    for batch in _batches(pairs, arguments.batch):
        taken = {
            name: measure_judge(clone, batch, arguments, judges[name])
            for name, clone in clones.items()
        }
        if tools is not None:
            seconds = measure_plain(batch, arguments.plain_jobs, tools, plain)
            plain_s += seconds
            ratios.append(seconds / taken["ours"])
        count = len(judges["ours"].cases)
        summaries = [f"{name} {times.seconds / count:.3f}" for name, times in judges.items()]
        print(
            f"{count} cases, s a case: {', '.join(summaries)}, plain {plain_s / count:.3f}",
            file=sys.stderr,
        )
    count = len(judges["ours"].cases)
    figures: dict[str, Any] = {
        "suite": suite.name,
        "cases": count,
        "jobs": arguments.jobs,
        "plain_jobs": arguments.plain_jobs,
        **{name: times.as_json(arguments.jobs) for name, times in judges.items()},
    }
    own = judges["ours"]
    if tools is not None:
        figures["plain"] = {
            "s_per_case": round(plain_s / count, 4),
            "cases_per_s": round(count / plain_s, 3),
            "accepted": plain.accepted,
            "phase_s_summed_over_workers": {
                "run": round(plain.run, 2),
                "recalculation": round(plain.recalculation, 2),
                "comparison": round(plain.comparison, 2),
            },
            "processor_s": round(plain.cpu, 2),
        }
        figures["times_as_fast"] = {n: round(plain_s / t.seconds, 2) for n, t in judges.items()}
        figures["times_as_fast_by_turn"] = {
            "min": round(min(ratios), 2),
            "median": round(statistics.median(ratios), 2),
            "max": round(max(ratios), 2),
        }
    figures["recalculation_ms"] = recalculation_figures(judges, plain.recalculations)
    if "against" in judges:
        against = judges["against"]
        figures["ours_over_against"] = round(against.seconds / own.seconds, 2)
        figures["verdicts_changed"] = changed_verdicts(against, own)
    return figures


def _cache(folder: Path) -> Path:
    """Makes a cache folder that has only the sandbox's roots."""
    folder.mkdir()
    (folder / "roots").symlink_to(cache_folder() / "roots")
    return folder


def recalculation_figures(
    judges: Mapping[str, JudgeTimes], plain: Mapping[tuple[str, int], float]
) -> dict[str, Any]:
    """Computes median and 95th percentile of a case's recalculation, over cases that needed any."""
    times = {name: times_of_judge.recalculations() for name, times_of_judge in judges.items()}
    common = set(times["ours"]).intersection(*times.values())
    times["plain"] = dict(plain)
    figures: dict[str, Any] = {"cases": len(common)}
    for name, by_case in times.items():
        values = [by_case[key] * 1000 for key in common if key in by_case]
        if len(values) > 1:
            figures[name] = {
                "median": round(statistics.median(values), 1),
                "p95": round(statistics.quantiles(values, n=20)[-1], 1),
            }
    return figures


def changed_verdicts(before: JudgeTimes, after: JudgeTimes) -> list[str]:
    """Counts the cases with different verdicts of the two judges."""
    earlier = {(case["task"], case["case"]): case["verdict"] for case in before.cases}
    return [
        f"{case['task']} case {case['case']}: {earlier.get((case['task'], case['case']))}, "
        f"now {case['verdict']}"
        for case in after.cases
        if earlier.get((case["task"], case["case"])) != case["verdict"]
    ]


def measure_judge(
    clone: Path,
    batch: list[tuple[Task, Submission]],
    arguments: argparse.Namespace,
    times: JudgeTimes,
) -> float:
    """Measures a clone's judge on a batch in seconds, including opening sandbox and engines."""
    with tempfile.TemporaryDirectory() as folder:
        turn = Path(folder) / "turn.json"
        turn.write_text(
            json.dumps(
                {
                    "suite": arguments.suite,
                    "solutions": str(arguments.solutions),
                    "jobs": arguments.jobs,
                    "ids": [task.id for task, _ in batch],
                    "sandbox": arguments.sandbox,
                }
            )
        )
        shutil.rmtree(times.cache / "recalc" / "results", ignore_errors=True)
        environment = os.environ | {"PYTHONPATH": str(clone), "JUDGE_CACHE": str(times.cache)}
        # Like an installed judge, it is compiled once, here before its first turn.
        environment["PYTHONPYCACHEPREFIX"] = str(times.cache / "bytecode")
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        if not times.cases:
            compiling = [sys.executable, "-m", "compileall", "-q", str(clone / "judge")]
            subprocess.run(compiling, env=environment, check=True)
        program = str(Path(__file__).with_name("pipeline_turn.py"))
        with processor_time() as spent:
            done = subprocess.run(
                spent.command([sys.executable, program, str(turn)]),
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
    if done.returncode:
        sys.exit(f"the judge of {clone} failed:\n{done.stderr}")
    result = json.loads(done.stdout.splitlines()[-1])
    if not Path(result["judge"]).is_relative_to(clone.resolve()):
        sys.exit(f"{clone} was to be measured, and {result['judge']} was")
    times.seconds += result["seconds"]
    times.cpu += (spent.seconds or 0.0) + (result["containers_s"] or 0.0)
    counted = spent.seconds is not None and result["containers_s"] is not None
    times.counted = times.counted and counted
    times.parts.update(result["parts_s"])
    times.cases += result["cases"]
    return float(result["seconds"])


def measure_plain(
    batch: list[tuple[Task, Submission]], jobs: int, tools: PlainTools, times: PlainTimes
) -> float:
    """Measures the plain way on a batch, in seconds."""
    homes: queue.SimpleQueue[Path] = queue.SimpleQueue()
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(jobs):
            home = Path(scratch) / f"home-{number}"
            home.mkdir()
            homes.put(home)

        def one(item: tuple[Task, Submission, TestCase]) -> tuple[float, float, float, bool]:
            home = homes.get()
            try:
                with tempfile.TemporaryDirectory(dir=scratch) as folder:
                    return plain_case(*item, tools, Path(folder), home)
            finally:
                homes.put(home)

        before = os.times()
        started = time.perf_counter()
        items = [(task, submission, case) for task, submission in batch for case in task.cases]
        with ThreadPoolExecutor(jobs) as pool:
            results = pool.map(one, items)
            for item, result in zip(items, results, strict=True):
                run, recalculation, comparison, accepted = result
                times.recalculations[item[0].id, item[2].number] = recalculation
                times.run += run
                times.recalculation += recalculation
                times.comparison += comparison
                times.accepted += accepted
        seconds = time.perf_counter() - started
        after = os.times()
        # The plain way waits for everything it starts, so all of it counts as children.
        times.cpu += sum(after[:4]) - sum(before[:4])
        return seconds


def _batches(
    pairs: list[tuple[Task, Submission]], size: int
) -> Iterator[list[tuple[Task, Submission]]]:
    for start in range(0, len(pairs), size):
        yield pairs[start : start + size]


if __name__ == "__main__":
    run_command(main)
