"""A run that was just scored, and its report: from its records, one submission at a time."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from judge.core.conversation import asking_of
from judge.core.records.reports import ReportDocument
from judge.core.records.runs import RunDocument
from judge.core.score import SubmissionScore, best_samples, score_submission
from judge.core.submission import Submission
from judge.core.task import Task
from judge.core.verdict import CaseResult
from judge.errors import StoreError
from judge.grading.batch import BatchResult, Settings, current_records
from judge.grading.case_records import KnownCases
from judge.grading.overrides import RecordedResults, read_overrides
from judge.grading.store import CASES_FILE, RunDirectory
from judge.report.report_json import MAX_HELD, EntriesFile, ReportBuilder
from judge.suites import Suite
from judge.suites.submissions import SubmissionIndex
from judge.suspects.standing import kept_suspicions


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """A run that was scored.

    Attributes:
        path: its results directory.
        report: the document of its report.json.
        results: every case result on record for the reported submissions.
        submissions: the submissions reported on, with their tasks; empty for finished outputs.
        reused: cases whose result was on record already.
        problem: why the run is incomplete, or None.
        not_taken: what run.json said that would decide verdicts, and the command did not ask for.
        suite_is_named: whether the command named the suite; otherwise run.json did.
    """

    path: Path
    report: ReportDocument
    results: Sequence[CaseResult]
    submissions: Sequence[tuple[Task, Submission]]
    reused: int
    problem: str | None
    not_taken: tuple[str, ...] = ()
    suite_is_named: bool = True


@dataclass(frozen=True, slots=True)
class _Reported:
    """A submission that is reported on; its program is not read for it."""

    task: Task
    submission: Submission
    score: SubmissionScore
    present: list[CaseResult]


class RunReporter:
    """Makes the report of a run that was just scored.

    Args:
        store: the results directory.
        run: the run's description.
        suite: which it answers.
        settings: the rules that the verdicts have to be of.
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
        unchanged = None if outcome.judged else outcome.known
        self._known = unchanged or KnownCases(store)
        self._slots = array("Q")
        self._places = array("I")
        self._held: list[CaseResult] = []
        self._judged = 0

    def report(self, pairs: SubmissionIndex, chosen: set[str], *, problem: str | None) -> ScoredRun:
        """Writes report.json.

        Args:
            pairs: all submissions of the run, with their tasks.
            chosen: the tasks that were requested this time; of the others, only what these very
                rules said of this very code is reported.
            problem: why the run is incomplete, or None.
        """
        suspicions = kept_suspicions(self._store)
        builder = ReportBuilder(self._run, overrides=self._overrides, suspicions=suspicions)
        entries = EntriesFile(self._store)
        best_of = bool(self._run.get("best_of"))
        found = self._submissions(pairs, chosen)
        for _, samples in groupby(found, key=lambda each: each.task.id):
            # Of several samples the best one is known only after the last.
            together = list(samples) if best_of else samples  # noqa: B031  used once
            best = best_samples(each.score for each in together) if best_of else set()
            for each in together:
                counts = not best_of or (each.task.id, each.score.sample) in best
                entries.add(builder.add(each.task, each.score, each.present, counts=counts))
                builder.add_asking(asking_of(each.submission.provenance))
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
        """Checks that everything that was judged is on record, on which the report depends.

        Raises:
            StoreError: the records were changed meanwhile.
        """
        self._store.check_intact()
        judged = self._outcome.reused + self._outcome.judged
        if self._judged < judged:
            raise StoreError(
                f"{self._store.path / CASES_FILE}: {judged - self._judged} of the {judged} "
                "verdicts of this command are not in it: somebody changed it meanwhile",
                hint="No report was written. Run the command again: it judges what is missing.",
            )

    def _recorded(self) -> Sequence[CaseResult]:
        return RecordedResults(self._store.path, self._known, self._slots, self._overrides)

    def _submissions(self, pairs: SubmissionIndex, chosen: set[str]) -> Iterator[_Reported]:
        """What is reported on, in suite order."""
        # The keys are those of all submissions only if all of them were asked to be judged.
        whole = all(pairs.task(place).id in chosen for place in range(len(pairs)))
        keys = self._outcome.keys if whole else None
        records = current_records(self._known, pairs, self._settings, keys)
        for place, slots in enumerate(records):
            task = pairs.task(place)
            known = [slot for slot in slots if slot is not None]
            if task.id in chosen:
                self._judged += len(known)
            elif not known:
                continue
            present = self._overrides.apply(self._known.result(slot) for slot in known)
            by_case = {each.case: each.verdict for each in present}
            verdicts = [by_case.get(case.number) for case in task.cases]
            self._places.append(place)
            self._slots.extend(known)
            # Few results are held, many are read again when they are asked for.
            if len(self._slots) <= MAX_HELD:
                self._held += present
            else:
                self._held = []
            score = score_submission(task.id, pairs.sample(place), verdicts)
            yield _Reported(task, pairs.without_program(place), score, present)
