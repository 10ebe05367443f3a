"""Scores with suspected cases set aside: what is left of the verdicts of a task. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from judge.core.records.reports import ScoresWithout, SuspectsReport
from judge.core.records.runs import RunDocument
from judge.core.score import SubmissionScore, TaskScores, score_submission, score_tasks
from judge.core.task import Task
from judge.core.verdict import Verdict
from judge.suspects.decisions import Standing, Suspicions
from judge.suspects.model import Certainty

LEVELS = {
    Certainty.SURE: "without sure suspects",
    Certainty.LIKELY: "without sure and likely suspects",
    Certainty.POSSIBLE: "without any suspects",
}
"""Which suspects are set aside, from the fewest to all, and what that is called."""


def suspicions_of_run(suspicions: Suspicions, run: RunDocument) -> Suspicions:
    """The suspects of a run, of which those that it was judged with corrections of are settled."""
    suite = run.get("suite")
    corrections = None if suite is None else suite.get("corrections")
    return suspicions.with_corrections(corrections or ())


def cases_left(
    suspicions: Suspicions, task_id: str, cases: Sequence[int], least: Certainty
) -> list[int]:
    """Places in a task's cases that are not set aside.

    Args:
        suspicions: the suspects.
        task_id: the task.
        cases: the numbers of its cases, in order.
        least: suspects that are this sure or surer are set aside.
    """
    return [
        place
        for place, number in enumerate(cases)
        if not suspicions.is_set_aside(task_id, number, least)
    ]


def count_set_aside(before: Sequence[Verdict | None], after: Sequence[Verdict | None]) -> int:
    """How many scored cases were set aside."""
    return _scored(before) - _scored(after)


def _scored(verdicts: Sequence[Verdict | None]) -> int:
    return sum(verdict is not None and verdict.is_scored for verdict in verdicts)


def count_standings(suspicions: Suspicions, tasks: Sequence[str]) -> dict[str, int]:
    """Standing -> suspects about some tasks, in the order of the standings; none are left out."""
    chosen = set(tasks)
    counts = Counter(point.standing for point in suspicions.points if point.suspect.task in chosen)
    return {standing.value: counts[standing] for standing in Standing if counts[standing]}


class SuspectsTally:
    """The scores with suspected cases set aside.

    Args:
        suspicions: the suspects.
    """

    def __init__(self, suspicions: Suspicions) -> None:
        self._suspicions = suspicions
        self._levels = {level: _Level() for level in LEVELS}
        self._ids: dict[str, int | str] = {}

    def add(self, task: Task, score: SubmissionScore) -> None:
        """Takes a submission."""
        self._ids[task.id] = task.written_id
        numbers = [case.number for case in task.cases]
        for least, level in self._levels.items():
            level.add(self._suspicions, task.id, numbers, score, least)

    def report(self) -> SuspectsReport:
        """The scores by level, and the suspects about the tasks that were taken."""
        return {
            "without": {least.value: level.report() for least, level in self._levels.items()},
            "standing": count_standings(self._suspicions, list(self._ids)),
            "suspects": [
                {
                    "id": self._ids[point.suspect.task],
                    "case": point.suspect.case,
                    "sign": point.suspect.sign,
                    "certainty": point.suspect.certainty.value,
                    "standing": point.standing.value,
                    "summary": point.suspect.summary,
                }
                for point in self._suspicions.points
                if point.suspect.task in self._ids
            ],
        }


class _Level:
    """What is left with suspects of one certainty, and surer ones, set aside."""

    def __init__(self) -> None:
        self._left: dict[str, TaskScores] = {}
        self._set_aside = 0

    def add(
        self,
        suspicions: Suspicions,
        task_id: str,
        numbers: Sequence[int],
        score: SubmissionScore,
        least: Certainty,
    ) -> None:
        places = cases_left(suspicions, task_id, numbers, least)
        verdicts = [score.verdicts[place] for place in places]
        self._set_aside += count_set_aside(score.verdicts, verdicts)
        if verdicts:
            left = self._left.setdefault(task_id, TaskScores())
            left.add(score_submission(task_id, score.sample, verdicts))

    def report(self) -> ScoresWithout:
        group = score_tasks(self._left.values())
        return {
            "set_aside": self._set_aside,
            "tasks": group.tasks,
            "cases": group.cases,
            "soft_restriction": group.soft,
            "hard_restriction": group.hard,
        }
