"""Scores with suspected cases set aside, and the suspects about the tasks of a run. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from judge.core.records.runs import CertifiedIdentity, RunDocument
from judge.core.score import SubmissionScore, TaskScores, score_verdicts
from judge.core.verdict import Verdict
from judge.report.tally import TalliedTask, TaskGroup, by_code
from judge.suites.certified import Grade
from judge.suspects.decisions import SuspectStatus, Suspicions
from judge.suspects.model import About, Certainty

LEVELS = {
    Certainty.SURE: "without sure suspects",
    Certainty.LIKELY: "without sure and likely suspects",
    Certainty.POSSIBLE: "without any suspects",
}
"""The least certainty that is set aside -> the name of these scores; fewest cases first."""

LIST_LEVELS = {
    (About.GOLD, Certainty.SURE): "without sure wrong golds",
    (About.GOLD, Certainty.LIKELY): "without sure and likely wrong golds",
    (About.CASE, Certainty.SURE): "without cases that surely test nothing",
    (About.CASE, Certainty.LIKELY): "without cases that surely or likely test nothing",
}
"""The same for each of the two lists."""


def level_label(about: About | None, least: Certainty) -> str:
    """The name of the scores that remain, for people.

    Args:
        about: the list that is set aside; None for both.
        least: the least certainty that is set aside.
    """
    return LEVELS[least] if about is None else LIST_LEVELS[about, least]


def certified_label(applied: bool) -> str:
    """The name of a run's own scores, next to those over certified tasks.

    Args:
        applied: whether the run was judged with the corrections that follow from the grades.
    """
    return "as judged, with corrections" if applied else "as published"


def suspicions_of_run(suspicions: Suspicions, run: RunDocument) -> Suspicions:
    """The suspects of a run; those fixed by its corrections count as corrected."""
    suite = run.get("suite")
    corrections = None if suite is None else suite.get("corrections")
    return suspicions.with_corrections(corrections or ())


class LevelTally:
    """The results that remain if suspects with at least some certainty are set aside.

    Attributes:
        set_aside_cases: scored cases that are set aside.
        set_aside_tasks: tasks that have such a case.
    """

    def __init__(self) -> None:
        self.set_aside_cases = 0
        self.set_aside_tasks: set[str] = set()
        self._tasks: dict[str, TaskScores] = {}
        self._verdicts: Counter[Verdict] = Counter()

    def add(self, score: SubmissionScore, left: Sequence[int]) -> None:
        """Adds a submission.

        Args:
            score: its scores with all cases.
            left: 0-based positions of the cases that remain.
        """
        verdicts = [score.verdicts[rank] for rank in left]
        if fewer := _count_scored(score.verdicts) - _count_scored(verdicts):
            self.set_aside_cases += fewer
            self.set_aside_tasks.add(score.task_id)
        if verdicts:
            earned = [score.earned[rank] for rank in left]
            scores = self._tasks.setdefault(score.task_id, TaskScores())
            scores.add(score_verdicts(score.task_id, score.sample, verdicts, earned))
            self._verdicts.update(verdict for verdict in verdicts if verdict is not None)

    def group(self) -> TaskGroup:
        """The tasks that remain."""
        return TaskGroup(list(self._tasks.values()), by_code(self._verdicts))


def _count_scored(verdicts: Iterable[Verdict | None]) -> int:
    return sum(verdict is not None and verdict.is_scored for verdict in verdicts)


class CertifiedTally:
    """The scores over certified tasks; the others are set aside.

    Args:
        certified: the grades, as recorded in run.json.

    Attributes:
        level: the results of certified tasks.
        grades: grade -> tasks that were added; ``ungraded`` for those that nobody graded.
        accepted_weak: tasks with a weak gold and an answer that is accepted in all cases.
    """

    def __init__(self, certified: CertifiedIdentity) -> None:
        self.certified = certified
        self.level = LevelTally()
        self.grades: Counter[str] = Counter()
        self.accepted_weak: set[str] = set()
        self._added: set[str] = set()

    def counts(self, task_id: str) -> bool:
        """Whether the verdicts on a task count in the certified score."""
        grade = self.certified["grades"].get(task_id)
        if grade is None:
            return False
        corrected = self.certified["applied"] and task_id in self.certified["corrected"]
        return Grade(grade).is_certified or corrected

    def add(self, task: TalliedTask, score: SubmissionScore) -> None:
        """Adds a submission."""
        if task.id not in self._added:
            self._added.add(task.id)
            self.grades[self.certified["grades"].get(task.id, "ungraded")] += 1
        self.level.add(score, range(len(task.cases)) if self.counts(task.id) else ())
        if self.certified["grades"].get(task.id) == Grade.WEAK and score.hard == 1:
            self.accepted_weak.add(task.id)


class SuspectsTally:
    """The scores with suspected cases set aside.

    Args:
        suspicions: the suspects.

    Attributes:
        suspicions: the suspects.
        levels: lowest certainty of the suspects that are set aside -> the remaining results.
        lists: the same for each of the two lists of suspects.
        written_ids: the tasks that were added -> their ids as written in records.
    """

    def __init__(self, suspicions: Suspicions) -> None:
        self.suspicions = suspicions
        self.levels = {certainty: LevelTally() for certainty in LEVELS}
        self.lists = {level: LevelTally() for level in LIST_LEVELS}
        self.written_ids: dict[str, int | str] = {}

    def add(self, task: TalliedTask, score: SubmissionScore) -> None:
        """Adds a submission."""
        self.written_ids[task.id] = task.written_id
        for least, level in self.levels.items():
            level.add(score, self._left(task, least))
        for (about, least), level in self.lists.items():
            level.add(score, self._left(task, least, about))

    def _left(self, task: TalliedTask, least: Certainty, about: About | None = None) -> list[int]:
        """0-based positions of a task's cases that are not set aside."""
        return [
            index
            for index, number in enumerate(task.cases)
            if not self.suspicions.is_set_aside(task.id, number, least, about)
        ]

    def shown(self) -> list[tuple[About | None, Certainty, LevelTally]]:
        """The levels shown: for both lists together and, if both set cases aside, for each."""
        both: list[tuple[About | None, Certainty, LevelTally]] = [
            (None, least, level) for least, level in self.levels.items()
        ]
        aside = {about for (about, _), level in self.lists.items() if level.set_aside_cases}
        alone = [(*key, level) for key, level in self.lists.items()] if len(aside) > 1 else []
        return [*both, *alone]

    def by_status(self) -> dict[str, int]:
        """Status -> number of suspects about these tasks, in order of status, without zeros."""
        counts = Counter(
            reviewed.status
            for reviewed in self.suspicions.reviewed
            if reviewed.suspect.task in self.written_ids
        )
        return {status.value: counts[status] for status in SuspectStatus if counts[status]}
