"""Checks: of options, and of scored runs (complete, and with the verdicts that they should get)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judge.api.options import JudgingOptions
from judge.api.reporting import ScoredRun
from judge.cluster.config import parse_place
from judge.cluster.session import check_installed
from judge.compare.cells.options import check_contradictions
from judge.compare.cells.style_check import check_style_names
from judge.compare.profiles import get_profile
from judge.core.submission import Submission
from judge.core.task import Task, TestCase
from judge.core.verdict import Verdict
from judge.errors import IncompleteRunError, SuiteError
from judge.grading.case import LEFT_OUT
from judge.recalc.select import check_recalculation
from judge.sandbox import check_sandbox_kind
from judge.suites.submissions import SubmissionIndex


def check_judging(options: JudgingOptions) -> None:
    """Checks the names in options, and that they do not contradict each other.

    Raises:
        UsageError: something has no such name, or an option contradicts a published profile.
    """
    profile = get_profile(options.profile)
    check_style_names(options.style)
    check_sandbox_kind(options.sandbox)
    check_recalculation(options.recalc, options.engine)
    check_contradictions(profile, options.checker, style=options.style, recalc=options.recalc)
    if options.cluster is not None:
        check_installed(parse_place(options.cluster, insecure=options.insecure_cluster).kind)


def check_complete(runs: Sequence[ScoredRun]) -> None:
    """Raises if a run is incomplete, or if faults in the suite kept cases from being judged.

    Raises:
        IncompleteRunError: a run holds judge errors or was stopped; the message names it.
        SuiteError: a run holds bad tests (BT) other than those that were left out on request;
            each is named with its file.
    """
    for run in runs:
        if run.problem is not None:
            raise IncompleteRunError(
                f"{run.path}: {run.problem}",
                hint="Run the same command again: it continues where this one ended.",
            )
    faults = [
        f"task {result.task_id}, case {result.case}: {result.cause}"
        for run in runs
        if _may_hold_faults(run)
        for result in run.results
        if result.verdict is Verdict.BT and not result.cause.startswith(LEFT_OUT)
    ]
    if faults:
        raise SuiteError(
            f"{len(faults)} cases could not be judged because of faults in the suite's own files",
            faults=tuple(dict.fromkeys(faults)),
            hint="Everything else is scored. `judge verify SUITE` checks a whole suite.",
        )


def _may_hold_faults(run: ScoredRun) -> bool:
    """Whether the results have to be searched; those of a large run are read for it."""
    overall = run.report["overall"]
    # What a better sample outdid is in no score, and not counted there.
    return bool(run.report["run"].get("best_of")) or Verdict.BT.value in overall["verdicts"]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A case whose verdict is not the one that its submission is meant to get."""

    task_id: str
    label: str
    case: int
    expected: str
    actual: str


def check_expectations(run: ScoredRun) -> tuple[int, list[Mismatch]]:
    """Compares verdicts with those that sample submissions must get.

    Returns:
        How many cases had an expected verdict, and those that got another one.
    """
    if isinstance(run.submissions, SubmissionIndex) and not run.submissions.facts.expects:
        return 0, []
    verdicts = {
        (result.task_id, result.sample, result.case): result.verdict for result in run.results
    }
    expected_cases = 0
    mismatches: list[Mismatch] = []
    for task, submission in run.submissions:
        for case, expected in _expected(task, submission):
            expected_cases += 1
            actual = verdicts.get((task.id, submission.sample, case.number))
            if actual is None or actual.value != expected:
                label = submission.label or f"sample {submission.sample}"
                found = "not run" if actual is None else actual.value
                mismatches.append(Mismatch(task.id, label, case.number, expected, found))
    return expected_cases, mismatches


def _expected(task: Task, submission: Submission) -> Iterator[tuple[TestCase, str]]:
    if not submission.expected:
        return iter(())
    codes = submission.expected
    if len(codes) == 1:
        codes = codes * len(task.cases)
    return zip(task.cases, codes, strict=False)
