"""Runs the checks of published checklist suites on recorded outputs, for published verdicts.

    python -m benchmarks.checklists DATA [--jobs FILE] [--out FILE] [--suite NAME] [--tasks]

DATA is a folder with ``jobs.jsonl`` (one line per output), the tasks of the suites and the outputs.
``--jobs`` names another list of jobs, whose outputs are next to it or below DATA.

Writes a line for each check of each output: ``suite``, ``job``, ``check`` and ``passed`` (null if
the published code raises); for a pytest also its ``result``. If there are recorded verdicts next to
the list (``verdicts.jsonl``), prints the agreement per suite and kind, with the checks that differ.
The engines of the sandbox compute formulas that a suite's own code lets LibreOffice compute. An
output that cannot be judged (a missing file, a task that the suite does not have) is named on
stderr and has no lines; the exit status is then 1.

``--tasks`` judges the same outputs through the suites as the judge opens them and the checker
``checklist``, under ``official``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

from benchmarks.checklist_tasks import items_of, left_files, located, response_of
from benchmarks.command_line import existing, run_command
from judge.compare.cells.computing import Compute
from judge.compare.checklists.items import Judged, State
from judge.compare.published import ib_bench, officebench, opencomputer
from judge.compare.published.skillsbench.attempt import ERROR, FAILURE, PASSED, SKIPPED, Attempt
from judge.compare.published.skillsbench.items import TESTS, judge_test
from judge.compare.published.spider2v.compare_table import Evaluator, judge_published
from judge.compare.published_error import PublishedError, Side
from judge.compare.rules.book import Book
from judge.core.submission import Origin
from judge.errors import JudgeError, WorkbookError
from judge.recalc.computing import EngineCompute
from judge.recalc.select import open_recalculator
from judge.sandbox import open_sandbox
from judge.workbook.reader import Workbook, open_workbook

JOBS, VERDICTS = "jobs.jsonl", "verdicts.jsonl"
DOCUMENTS = "/home/user/Documents"
"""The folder of the files in tasks of OpenComputer."""

Job = Mapping[str, Any]
Outcome = bool | str | None


@dataclass(frozen=True, slots=True)
class Line:
    """The outcome of one check of an output.

    Attributes:
        suite, job, kind, check: what was judged.
        outcome: whether it passes; None if the published code raises; for a pytest, its result.
    """

    suite: str
    job: str
    kind: str
    check: str
    outcome: Outcome

    @property
    def passed(self) -> bool | None:
        """Whether the check passes; a skipped test does not."""
        return self.outcome == PASSED if isinstance(self.outcome, str) else self.outcome

    def record(self) -> dict[str, object]:
        """Returns the line that is written."""
        result = {"result": self.outcome} if isinstance(self.outcome, str) else {}
        return {
            "suite": self.suite,
            "job": self.job,
            "check": self.check,
            "passed": self.passed,
            **result,
        }

    @property
    def key(self) -> tuple[str, str, str]:
        """The key of the check, which its recorded line has too."""
        return self.suite, self.job, self.check


# -- the suites ------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@lru_cache(maxsize=16)
def _files_below(folder: Path) -> Mapping[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _first_workbook(files: Mapping[str, bytes]) -> Workbook | None:
    for name, content in files.items():
        if name.endswith(".xlsx"):
            try:
                return open_workbook(content)
            except WorkbookError:
                return None
    return None


def ib_bench_checks(data: Path, job: Job, _: Compute) -> Iterator[tuple[str, bool | None]]:
    """Checks the programmatic criteria of an answer; one line if its reply cannot be parsed."""
    rubric = _json(data / "ib-bench/tasks" / job["task"] / "rubric.json")["criteria"]
    reply = response_of(data, job).get("parsed_response")
    if not reply and all(criterion["type"] != "human_judge" for criterion in rubric.values()):
        yield "json_parse", False
        return
    workbook = _first_workbook(left_files(data, job))
    for name, criterion in rubric.items():
        if criterion["type"] == "programmatic":
            try:
                yield name, ib_bench.judge_criterion(name, criterion, reply, workbook).passed
            except PublishedError:
                yield name, None


def opencomputer_checks(
    data: Path, job: Job, compute: Compute
) -> Iterator[tuple[str, bool | None]]:
    """Runs the checks of a document, with the values that LibreOffice would show."""
    checks = _json(data / "opencomputer/tasks" / job["task"] / "task.json")["verification"]
    left = left_files(data, job)
    files = {f"{DOCUMENTS}/{name}": content for name, content in left.items()}
    document = opencomputer.Document(_first_workbook(left), files, compute, Origin.SOLUTION)
    for number, check in enumerate(checks):
        try:
            yield str(number), opencomputer.judge_check(check, document)
        except PublishedError:
            yield str(number), None


def officebench_checks(data: Path, job: Job, _: Compute) -> Iterator[tuple[str, bool | None]]:
    """Runs the checks of a workspace."""
    folder, number = str(job["task"]).split("/")
    task = data / "officebench/tasks" / folder
    before = _files_below(task / "testbed")
    files = {**(before if job.get("workspace") == "testbed" else {}), **left_files(data, job)}
    workspace = officebench.Workspace(files, before, _files_below(task / "reference"))
    for index, check in enumerate(_json(task / "subtasks" / f"{number}.json")["evaluation"]):
        try:
            yield str(index), officebench.judge_check(check["function"], check["args"], workspace)
        except PublishedError:
            yield str(index), None


def skillsbench_checks(data: Path, job: Job, _: Compute) -> Iterator[tuple[str, str]]:
    """Runs the tests of a task on its output."""
    files = _files_below(data / "skillsbench/tasks" / job["task"])
    output = next(iter(left_files(data, job).values()), None)
    attempt = Attempt(output, {Path(name).name: content for name, content in files.items()})
    for name in TESTS[job["task"]]:
        yield name, judge_test(job["task"], name, attempt).result


def waa_checks(data: Path, job: Job, _: Compute) -> Iterator[tuple[str, bool | None]]:
    """Checks each rule of ``compare_table`` alone, with the result as in Spider2-V's evaluator."""
    path = data / "waa-v2/examples/libreoffice_calc" / f"{job['task']}.json"
    answer = _first_workbook({f"{name}.xlsx": file for name, file in left_files(data, job).items()})
    gold = Book(open_workbook(located(data, job, job["gold"]["path"])), Side.GOLD)
    for number, rule in enumerate(_json(path)["evaluator"]["options"]["rules"]):
        passed: bool | None = False
        if answer is not None:
            try:
                book = Book(answer, Side.ANSWER)
                passed = judge_published(book, gold, [rule], Evaluator.SPIDER2V) is None
            except PublishedError:
                passed = None
        yield str(number), passed


Checks = Callable[[Path, Job, Compute], Iterable[tuple[str, Outcome]]]
SUITES: Mapping[str, Checks] = {
    "ib-bench": ib_bench_checks,
    "officebench": officebench_checks,
    "opencomputer": opencomputer_checks,
    "skillsbench": skillsbench_checks,
    "waa-v2": waa_checks,
}


def task_checks(data: Path, job: Job, compute: Compute) -> Iterator[tuple[str, Outcome]]:
    """Judges the items of the task that an output answers with the checker."""
    items = items_of(data, job, compute)
    if job["suite"] == "ib-bench" and not response_of(data, job).get("parsed_response"):
        yield "json_parse", any(item.outcome.ended is State.HOLDS for item in items)
    for entry in items:
        if entry.judged is Judged.DETERMINISTIC:
            ended = _ENDED if job["suite"] == "skillsbench" else _PASSED
            yield entry.item.id, ended[entry.outcome.ended]


_PASSED: Mapping[State, Outcome] = {State.HOLDS: True, State.FAILS: False, State.ERROR: None}
_ENDED: Mapping[State, Outcome] = {
    State.HOLDS: PASSED,
    State.FAILS: FAILURE,
    State.ERROR: ERROR,
    State.NOT_JUDGED: SKIPPED,
}

# -- all of them -----------------------------------------------------------------------------------


def jobs_in(data: Path, suites: Iterable[str], listed: Path | None = None) -> Iterator[Job]:
    """Reads the outputs of some suites; names malformed lines on stderr.

    Args:
        data: the folder with the tasks.
        suites: names of the suites that are judged.
        listed: the list of jobs, if it is not that of the folder.
    """
    chosen, path = set(suites), listed or data / JOBS
    with path.open(encoding="utf-8") as lines:
        for number, text in enumerate(lines, start=1):
            try:
                job = json.loads(text)
                suite = job["suite"]
            except (ValueError, LookupError, TypeError) as error:
                print(f"{path}, line {number}: not a job: {error!r}", file=sys.stderr)
                continue
            if suite in chosen:
                yield {**job, "beside": path.parent}
            elif suite not in SUITES:
                print(f"{path}, line {number}: no suite {suite!r}", file=sys.stderr)


@dataclass
class Run:
    """All outputs of a list of jobs.

    Attributes:
        data: the folder with the tasks of the suites.
        compute: computes formulas.
        tasks: whether the checker ``checklist`` judges them.
        listed: the list of jobs, if it is not that of the folder.
        not_judged: outputs that could not be judged so far.
    """

    data: Path
    compute: Compute
    tasks: bool = False
    listed: Path | None = None
    not_judged: int = 0

    def lines(self, suites: Iterable[str]) -> Iterator[Line]:
        """The outcome of every check of every output of some suites."""
        for job in jobs_in(self.data, suites, self.listed):
            decide = task_checks if self.tasks else SUITES[job["suite"]]
            try:
                outcomes = list(decide(self.data, job, self.compute))
            except (JudgeError, OSError, LookupError, ValueError, TypeError) as error:
                problem = error.message if isinstance(error, JudgeError) else repr(error)
                print(f"{job['suite']} {job.get('job')}: not judged: {problem}", file=sys.stderr)
                self.not_judged += 1
                continue
            for check, outcome in outcomes:
                yield Line(job["suite"], str(job["job"]), job.get("kind", ""), check, outcome)


def recorded_outcomes(data: Path) -> dict[tuple[str, str, str], Outcome]:
    """Reads the results of the published code: (suite, job, check) -> outcome."""
    outcomes: dict[tuple[str, str, str], Outcome] = {}
    with (data / VERDICTS).open(encoding="utf-8") as lines:
        for text in lines:
            line = json.loads(text)
            if line.get("kind") == "header" or line["suite"] not in SUITES:
                continue
            outcome = line.get("result", line.get("value", line.get("passed")))
            key = line["suite"], line["job"], str(line["check"])
            outcomes[key] = bool(outcome) if isinstance(outcome, float) else outcome
    return outcomes


def agree(first: Outcome, second: Outcome) -> bool:
    """Returns whether two outcomes are the same; a check or test that raises counts as failed."""
    return _plain(first) == _plain(second)


def _plain(outcome: Outcome) -> bool | str:
    if isinstance(outcome, str):
        return FAILURE if outcome == ERROR else outcome
    return bool(outcome)


def engines() -> Compute:
    """Opens the engines that compute formulas in the sandbox of this machine."""
    return EngineCompute(open_recalculator(open_sandbox(), mode="always", workers=2))


def main() -> int:
    """Judges the outputs, writes the lines and compares them with recorded ones."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("data", type=existing)
    parser.add_argument("--jobs", type=existing, metavar="FILE", help="another list of jobs")
    parser.add_argument("--out", type=argparse.FileType("w", encoding="utf-8"))
    parser.add_argument("--suite", choices=sorted(SUITES), action="append")
    parser.add_argument("--tasks", action="store_true", help="through the checker checklist")
    parser.add_argument("--show", type=int, default=20)
    arguments = parser.parse_args()
    listed = arguments.jobs or arguments.data / JOBS
    if not listed.is_file():
        parser.error(f"{listed}: no such file; it lists the outputs, one JSON object a line")
    beside = arguments.jobs.parent if arguments.jobs else arguments.data
    recorded = recorded_outcomes(beside) if (beside / VERDICTS).exists() else {}
    counts: Counter[tuple[str, str]] = Counter()
    agreeing: Counter[tuple[str, str]] = Counter()
    out: TextIO | None = arguments.out
    run = Run(arguments.data, engines(), arguments.tasks, arguments.jobs)
    for line in run.lines(arguments.suite or SUITES):
        if out is not None:
            out.write(json.dumps(line.record()) + "\n")
        if line.key in recorded:
            counts[line.suite, line.kind] += 1
            agrees = agree(recorded[line.key], line.outcome)
            agreeing[line.suite, line.kind] += agrees
            if not agrees and sum(counts.values()) - sum(agreeing.values()) <= arguments.show:
                print("differs:", *line.key, "recorded", recorded[line.key], "judged", line.outcome)
    for group in sorted(counts):
        print(f"{group[0]:14}{group[1]:12}{agreeing[group]:>6,} of {counts[group]:>6,}")
    if recorded:
        print(f"{sum(agreeing.values()):,} of {sum(counts.values()):,} recorded checks agree")
    if run.not_judged:
        print(f"{run.not_judged:,} outputs are not judged; see above")
    return 0 if agreeing == counts and not run.not_judged else 1


if __name__ == "__main__":
    run_command(main)
