"""Computes the numbers of a run for report.json and all reports, one submission at a time.

A tally keeps a few numbers for each submission but not its results, so that it fits into memory
however many cases a run has. ``report_json`` and ``build`` present these numbers. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from judge.core.score import GroupScore, SubmissionScore, TaskScores, score_submission, score_tasks
from judge.core.task import Task
from judge.core.verdict import CaseResult, Verdict
from judge.grading.overrides import NO_OVERRIDES, Overrides
from judge.report.counts import ChartsTally, ScopeTally, ShareTally, UsageTally

if TYPE_CHECKING:
    from judge.core.records.runs import RunDocument
    from judge.grading.marks import MarkRecord
    from judge.report.checklists import PointsTally
    from judge.report.repeats import RepeatedRuns
    from judge.report.set_aside import CertifiedTally, SuspectsTally
    from judge.suspects.decisions import Suspicions


def score_cases(
    task_id: str, sample: int, cases: Iterable[int], results: Mapping[int, CaseResult]
) -> SubmissionScore:
    """The scores of a submission.

    Args:
        task_id: the task's id as text.
        sample: 0-based number among several solutions of the same task.
        cases: the numbers of the task's cases, in order.
        results: case number -> its result, with changes by hand; cases that were not run are
            missing.
    """
    return score_submission(task_id, sample, [results.get(number) for number in cases])


def disagrees_with_published(result: CaseResult, automatic: Verdict) -> bool:
    """Whether the published script was run and disagrees with the judge.

    Args:
        result: the result of the case.
        automatic: the judge's own verdict; a person's verdict may depend on more than these rules.
    """
    official = result.comparison.get("official_equal")
    return official is not None and official != (automatic is Verdict.AC)


# -- tasks and groups of tasks --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TalliedTask:
    """The properties of a task on which the numbers of a run depend.

    Attributes:
        id: the task's id as text.
        written_id: the id as written in records.
        kind: the instruction type, in the suite's words.
        cases: the numbers of its cases, in order.
        groups: name of a division -> the group of this task.
    """

    id: str
    written_id: int | str
    kind: str
    cases: Sequence[int]
    groups: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, task: Task) -> TalliedTask:
        """The properties of a suite's task."""
        cases = [case.number for case in task.cases]
        return cls(task.id, task.written_id, task.kind, cases, task.groups)


class TaskTally:
    """The contribution of one task to the scores, from its submissions that count.

    Args:
        task: the task.

    Attributes:
        task: the task.
        scores: the scores of its samples.
        verdicts: verdict -> cases.
        shares: the shares of cells that are right.
    """

    __slots__ = ("scores", "shares", "task", "verdicts")

    def __init__(self, task: TalliedTask) -> None:
        self.task = task
        self.scores = TaskScores()
        self.verdicts: Counter[Verdict] = Counter()
        self.shares = ShareTally()

    def add(self, score: SubmissionScore, present: Iterable[CaseResult]) -> None:
        """Adds a submission.

        Args:
            score: its scores.
            present: the results on record of its cases.
        """
        self.scores.add(score)
        for result in present:
            self.verdicts[result.verdict] += 1
            self.shares.add(result)


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """A group of tasks. Every report gives the same numbers for it.

    Attributes:
        tasks: the scores of each task.
        verdicts: verdict code -> number of cases, in the order of
            :class:`judge.core.verdict.Verdict`.
    """

    tasks: Sequence[TaskScores]
    verdicts: Mapping[str, int]

    @classmethod
    def of(cls, tallies: Iterable[TaskTally]) -> TaskGroup:
        """Makes the group of the tasks with these tallies."""
        tasks: list[TaskScores] = []
        verdicts: Counter[Verdict] = Counter()
        for tally in tallies:
            tasks.append(tally.scores)
            verdicts.update(tally.verdicts)
        return cls(tasks, by_code(verdicts))

    def score(self) -> GroupScore:
        """The scores of the group, under both denominators."""
        return score_tasks(self.tasks)


def by_code(verdicts: Mapping[Verdict, int]) -> dict[str, int]:
    """Verdict code -> number of cases, in the order of the verdicts, without zeros."""
    return {verdict.value: verdicts[verdict] for verdict in Verdict if verdicts.get(verdict)}


# -- runs -----------------------------------------------------------------------------------------


def _suspects_tally(suspicions: Suspicions) -> SuspectsTally:
    from judge.report.set_aside import SuspectsTally  # noqa: PLC0415  few runs keep suspects

    return SuspectsTally(suspicions)


def _certified_tally(run: RunDocument) -> CertifiedTally | None:
    """The scores over certified tasks; None if nobody graded the golds of the run's suite."""
    suite = run.get("suite")
    certified = None if suite is None else suite.get("certified")
    if certified is None:
        return None
    from judge.report.set_aside import CertifiedTally  # noqa: PLC0415  few suites are certified

    return CertifiedTally(certified)


_POINTS = "judge.report.checklists:PointsTally"
"""Imported for the first case that a checklist judges."""


class RunTally:
    """The numbers of a run.

    Args:
        overrides: verdicts that a person changed; the results that are added already have them.
        suspicions: golds that may be at fault; the scores are also counted without their cases.
        run: the run's description, as in ``run.json``.
        marks: marks on checklist items by models, people and programs.

    Attributes:
        tasks: task id -> what its counted submissions add to the scores.
        cases: cases of all submissions, including those that were not run.
        by_hand: cases whose verdict a person changed.
        official_disagreements: cases on which the published script disagrees.
        has_shares: whether cells to change and cells to keep are counted separately in some case.
        scope: results of the options ``keep`` and ``formula_asked``, and the two figures.
        charts: the share of the golds' charts that the outputs have.
        points: points of checklists; None if no case was judged by one.
        usage: what the requests to the chat model used, such as tokens.
        suspects: the scores without suspects; None if no suspects are known.
        certified: the scores over certified tasks; None if nobody graded the suite's golds.
    """

    def __init__(
        self,
        overrides: Overrides = NO_OVERRIDES,
        suspicions: Suspicions | None = None,
        run: RunDocument | None = None,
        marks: Sequence[MarkRecord] = (),
    ) -> None:
        self._overrides = overrides
        self._samples: dict[str, TaskScores] = {}
        self._not_counted: Counter[Verdict] = Counter()
        self.tasks: dict[str, TaskTally] = {}
        self.cases = self.by_hand = self.official_disagreements = 0
        self.has_shares = False
        self.scope = ScopeTally()
        self.charts = ChartsTally()
        self.points: PointsTally | None = None
        self._marks = marks
        self.usage = UsageTally()
        self.suspects = None if suspicions is None else _suspects_tally(suspicions)
        self.certified = None if run is None else _certified_tally(run)

    def add(
        self,
        task: TalliedTask,
        score: SubmissionScore,
        present: Sequence[CaseResult],
        *,
        counts: bool = True,
    ) -> None:
        """Adds a submission.

        Args:
            task: the task.
            score: the scores of the submission.
            present: the results on record of its cases, in case order.
            counts: whether it is in the scores; of several samples, perhaps only the best one is.
        """
        self._samples.setdefault(task.id, TaskScores()).add(score)
        self.cases += len(score.verdicts)
        for result in present:
            self._add_case(result)
        if counts:
            tally = self.tasks.get(task.id)
            if tally is None:
                tally = self.tasks[task.id] = TaskTally(task)
            tally.add(score, present)
            if self.suspects is not None:
                self.suspects.add(task, score)
            if self.certified is not None:
                self.certified.add(task, score)
        else:
            self._not_counted.update(result.verdict for result in present)

    def _add_case(self, result: CaseResult) -> None:
        automatic = result.verdict
        if changes := self._overrides.applied:
            self.by_hand += (result.task_id, result.sample, result.case) in changes
            automatic = self._overrides.automatic(result)
        self.official_disagreements += disagrees_with_published(result, automatic)
        self.has_shares = self.has_shares or "shares" in result.comparison
        self.scope.add(result)
        self.charts.add(result)
        if "checklist" in result.comparison:
            if self.points is None:
                self.points = resolve_name(_POINTS)(self._marks)
            self.points.add(result)

    def verdicts(self) -> Counter[Verdict]:
        """Verdict -> cases of all submissions, including those that are not in the scores."""
        verdicts = self._not_counted.copy()
        for tally in self.tasks.values():
            verdicts.update(tally.verdicts)
        return verdicts

    def all_tasks(self) -> TaskGroup:
        """All tasks as one group."""
        return TaskGroup.of(self.tasks.values())

    def by_kind(self) -> dict[str, list[TaskTally]]:
        """Instruction type -> its tasks, in the order in which the types occur."""
        kinds: dict[str, list[TaskTally]] = {}
        for tally in self.tasks.values():
            kinds.setdefault(tally.task.kind, []).append(tally)
        return kinds

    def repeated_runs(self) -> RepeatedRuns | None:
        """Several samples of each task as repeated runs; None if each task has one."""
        tasks: Collection[TaskScores] = self._samples.values()
        if all(len(task.samples) == 1 for task in tasks):
            return None
        # The statistics are loaded only for a run that has several samples.
        from judge.report.repeats import repeated_runs  # noqa: PLC0415

        return repeated_runs(tasks)
