"""Makes the report and the rewards of a run that was just scored, and checks its verdicts.

The report is made from the records, one submission at a time.
"""

from __future__ import annotations

import contextlib
import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from judge.core.records.reports import ReportDocument
from judge.core.records.runs import RunDocument, recorded_usage
from judge.core.score import SubmissionScore, best_samples, score_submission
from judge.core.submission import Submission
from judge.core.task import Task, TestCase
from judge.core.verdict import CaseResult, Verdict
from judge.errors import IncompleteRunError, StoreError, SubmissionError, SuiteError, UsageError
from judge.files.documents import dump_json
from judge.files.writing import naming_what_is_written, write_whole
from judge.grading.batch import BatchResult, Settings, current_records
from judge.grading.case import LEFT_OUT
from judge.grading.case_records import KnownCases
from judge.grading.overrides import RecordedResults, read_overrides
from judge.grading.store import CASES_FILE, MARKS_FILE, SUSPECTS_FILE, RunDirectory
from judge.report.report_json import MAX_HELD, EntriesFile, ReportBuilder
from judge.suites import Suite
from judge.suites.submissions import SubmissionIndex

if TYPE_CHECKING:
    from judge.grading.marks import MarkRecord
    from judge.suspects.decisions import Suspicions


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """A run that was scored.

    Attributes:
        path: its results directory.
        report: the document of its report.json.
        results: every recorded case result of the reported submissions.
        submissions: the reported submissions, with their tasks; empty for finished outputs.
        reused: how many cases already had a recorded result.
        problem: why the run is incomplete, or None.
        not_taken: options of run.json that affect verdicts and were not requested.
        suite_is_named: whether the command named the suite; otherwise run.json did.
        left_out: tasks that the suite does not have, whose solutions were left out.
    """

    path: Path
    report: ReportDocument
    results: Sequence[CaseResult]
    submissions: Sequence[tuple[Task, Submission]]
    reused: int
    problem: str | None
    not_taken: tuple[str, ...] = ()
    suite_is_named: bool = True
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Reported:
    """A reported submission; its program is not read for the report."""

    task: Task
    submission: Submission
    score: SubmissionScore
    present: list[CaseResult]


class RunReporter:
    """Makes the report of a run that was just scored.

    Args:
        store: the results directory.
        run: the run's description.
        suite: the suite that it answers.
        settings: the rules under which the verdicts have to be made.
        outcome: how the batch ended.
    """

    def __init__(
        self,
        store: RunDirectory,
        run: RunDocument,
        suite: Suite,
        settings: Settings,
        outcome: BatchResult,
    ) -> None:
        self._store = store
        self._run = run
        self._suite = suite
        self._settings = settings
        self._overrides = read_overrides(store)
        self._outcome = outcome
        unchanged = None if outcome.judged else outcome.recorded
        self._known = unchanged or KnownCases(store)
        self._slots = array("Q")
        self._places = array("I")
        self._held: list[CaseResult] = []
        self._judged = 0

    def report(self, pairs: SubmissionIndex, chosen: set[str], *, problem: str | None) -> ScoredRun:
        """Writes report.json.

        Args:
            pairs: all submissions of the run, with their tasks.
            chosen: the tasks that were requested this time; for other tasks, only verdicts made by
                exactly these rules on exactly this code are reported.
            problem: why the run is incomplete, or None.
        """
        suspicions = suspicions_in(self._store)
        builder = ReportBuilder(
            self._run,
            overrides=self._overrides,
            suspicions=suspicions,
            marks=marks_in(self._store),
        )
        entries = EntriesFile(self._store)
        best_of = bool(self._run.get("best_of"))
        submissions = self._submissions(pairs, chosen)
        for _, samples in groupby(submissions, key=lambda submission: submission.task.id):
            # Which of several samples is best is known only after the last one.
            together = list(samples) if best_of else samples  # noqa: B031  used once
            best = best_samples(submission.score for submission in together) if best_of else set()
            for part in together:
                counts = not best_of or (part.task.id, part.score.sample) in best
                entries.add(builder.add(part.task, part.score, part.present, counts=counts))
                builder.add_usage(recorded_usage(part.submission.provenance))
        self._check_records()
        head = builder.head(
            without_submission=len(self._suite.tasks) - pairs.facts.tasks,
            suite_tasks=self._suite.tasks,
        )
        report = entries.finish(head)
        few = len(self._slots) <= MAX_HELD
        reported = pairs.only(self._places)
        return ScoredRun(
            path=self._store.path,
            report=report,
            results=self._held if few else self._recorded(),
            submissions=list(reported) if few else reported,
            reused=self._outcome.reused,
            problem=problem,
        )

    def _check_records(self) -> None:
        """Checks that everything that was judged is recorded, as the report depends on it.

        Raises:
            StoreError: the records were changed in the meantime.
        """
        self._store.check_intact()
        judged = self._outcome.reused + self._outcome.judged
        if self._judged < judged:
            raise StoreError(
                f"{self._store.path / CASES_FILE}: {judged - self._judged} of the {judged} "
                "verdicts of this command are not in it: somebody changed it in the meantime",
                hint="No report was written. Run the command again: it judges what is missing.",
            )

    def _recorded(self) -> Sequence[CaseResult]:
        return RecordedResults(self._store.path, self._known, self._slots, self._overrides)

    def _submissions(self, pairs: SubmissionIndex, chosen: set[str]) -> Iterator[_Reported]:
        """Submissions of the report, in suite order."""
        # The keys cover all submissions only if all of them were requested.
        whole = all(pairs.task(index).id in chosen for index in range(len(pairs)))
        keys = self._outcome.keys if whole else None
        records = current_records(self._known, pairs, self._settings, keys)
        for at, slots in enumerate(records):
            task = pairs.task(at)
            present_slots = [slot for slot in slots if slot is not None]
            if task.id in chosen:
                self._judged += len(present_slots)
            elif not present_slots:
                continue
            present = self._overrides.apply(self._known.result(slot) for slot in present_slots)
            by_case = {result.case: result for result in present}
            results = [by_case.get(case.number) for case in task.cases]
            self._places.append(at)
            self._slots.extend(present_slots)
            # A few results are kept in memory; many are read again when they are needed.
            if len(self._slots) <= MAX_HELD:
                self._held += present
            else:
                self._held = []
            score = score_submission(task.id, pairs.sample(at), results)
            yield _Reported(task, pairs.without_program(at), score, present)


def suspicions_in(store: RunDirectory) -> Suspicions | None:
    """The suspects stored in a results directory; None if it has no suspects.

    Raises:
        StoreError: a file is not in the form that the judge writes.
    """
    if not os.path.lexists(store.path / SUSPECTS_FILE):
        return None
    from judge.suspects.decisions import kept_suspicions  # noqa: PLC0415  few runs have any

    return kept_suspicions(store)


def marks_in(store: RunDirectory) -> Sequence[MarkRecord]:
    """The marks of models, people and programs on checklist items; often empty.

    Raises:
        StoreError: a record does not have the format that this judge writes.
    """
    if not os.path.lexists(store.path / MARKS_FILE):
        return ()
    from judge.grading.marks import read_marks  # noqa: PLC0415  few runs have any

    return read_marks(store)


def write_reward(path: Path, runs: Sequence[ScoredRun]) -> None:
    """Writes ``reward`` (the soft score), ``soft``, ``hard``, ``case_1``, ``case_2`` and so on.

    All of them are numbers from 0 to 1; verdicts and causes are in the results directory.

    Args:
        path: the file.
        runs: the scored runs, which must have one submission to one task.

    Raises:
        UsageError: more than one submission was scored.
        IncompleteRunError: it has no score, since the judge or the test is at fault; nothing is
            written.
        StoreError: the file cannot be written.
    """
    submissions = {(result.task_id, result.sample) for run in runs for result in run.results}
    if len(runs) != 1 or len(submissions) != 1:
        raise UsageError(
            f"--reward is for one answer to one task, but {len(submissions)} were scored",
            hint="Name one task with --ids, or leave --reward out.",
        )
    failed = [result for result in runs[0].results if result.verdict is Verdict.JE]
    if failed:
        raise IncompleteRunError(f"the judge failed, so there is no reward: {failed[0].cause}")
    overall = runs[0].report["overall"]
    soft, hard = overall["soft_restriction"], overall["hard_restriction"]
    if soft is None or hard is None:
        raise IncompleteRunError("no case of the task could be scored, so there is no reward")
    rewards: dict[str, float] = {"reward": soft, "soft": soft, "hard": hard}
    for case_result in sorted(runs[0].results, key=lambda result: result.case):
        if case_result.verdict.is_scored:
            rewards[f"case_{case_result.case}"] = float(case_result.verdict is Verdict.AC)
    with naming_what_is_written(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, dump_json(rewards, indent=2).encode(), mode=0o644)


def add_published_figures(
    report: ReportDocument, suite: Suite, folder: str | Path | None, results: Iterable[CaseResult]
) -> bool:
    """Adds the published figures to a report, if there are logs to compute them from.

    They are based on the published verdicts, whatever the profile is.

    Args:
        report: the report, which is changed.
        suite: the suite that was answered.
        folder: the folder of finished outputs; None for a run without such a folder.
        results: results of the reported outputs.

    Returns:
        Whether figures were added.
    """
    if folder is None:
        return False
    accepted: dict[tuple[str, int], bool] = {}
    for result in results:
        key = result.task_id, result.sample
        official = result.comparison.get("official_equal")
        agrees = result.verdict is Verdict.AC if official is None else official
        accepted[key] = accepted.get(key, True) and agrees
    # If the folder is missing, the report stays as it is; each case reports it where needed.
    with contextlib.suppress(SubmissionError, SuiteError):
        if figures := suite.suite_format.published_figures(suite.whole, Path(folder), accepted):
            report["published_figures"] = figures
            return True
    return False


def check_complete(runs: Sequence[ScoredRun]) -> None:
    """Raises if a run is incomplete, or if cases could not be judged because the suite is at fault.

    Raises:
        IncompleteRunError: a run has judge errors or was stopped; the message names it.
        SuiteError: a run has bad tests (BT) other than those that were left out on request; each
            is named with its file.
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
    """Whether the results have to be searched for faults; for a large run, that reads them."""
    overall = run.report["overall"]
    # With the best sample only, verdicts of the other samples are not in the report's counts.
    return bool(run.report["run"].get("best_of")) or Verdict.BT.value in overall["verdicts"]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A case whose verdict differs from the one that its submission should get."""

    task_id: str
    label: str
    case: int
    expected: str
    actual: str


def check_expectations(run: ScoredRun) -> tuple[int, list[Mismatch]]:
    """Compares verdicts with those that sample submissions must get.

    Returns:
        How many cases had an expected verdict, and the cases that got another verdict.
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
                text = "not run" if actual is None else actual.value
                mismatches.append(Mismatch(task.id, label, case.number, expected, text))
    return expected_cases, mismatches


def _expected(task: Task, submission: Submission) -> Iterator[tuple[TestCase, str]]:
    if not submission.expected:
        return iter(())
    codes = submission.expected
    if len(codes) == 1:
        codes = codes * len(task.cases)
    return zip(task.cases, codes, strict=False)
