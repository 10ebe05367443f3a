"""The scores of a run, counted submission by submission; no result is kept for them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from judge.core.records.reports import (
    ExcludedCase,
    GroupReport,
    ScoresOfAll,
    ScoresWithout,
    SuiteScores,
    SuspectsReport,
)
from judge.core.records.runs import RunDocument
from judge.core.score import (
    GroupScore,
    SubmissionScore,
    TaskScores,
    score_submission,
    score_tasks,
)
from judge.core.task import Task
from judge.core.verdict import CaseResult, Verdict
from judge.report.counts import ShareTally, shares_of_tallies
from judge.suspects.model import Certainty
from judge.suspects.standing import Standing, Suspicions

LEVELS = {
    Certainty.SURE: "without sure suspects",
    Certainty.LIKELY: "without sure and likely suspects",
    Certainty.POSSIBLE: "without any suspects",
}
"""Which suspects are set aside, from the fewest to all, and what that is called."""


def suspicions_of_run(suspicions: Suspicions | None, run: RunDocument) -> Suspicions | None:
    """The suspects of a run, of which those that it was judged with corrections of are settled."""
    if suspicions is None:
        return None
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


class TaskTally:
    """What all counted submissions of one task add to the scores.

    Args:
        task: the task.

    Attributes:
        task: the task.
        scores: the scores of its samples.
        shares: the shares of cells that are right.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.scores = TaskScores()
        self.shares = ShareTally()
        self._verdicts: Counter[Verdict] = Counter()
        self._excluded: dict[str, list[ExcludedCase]] = {}

    def add(self, score: SubmissionScore, present: Sequence[CaseResult]) -> None:
        """Takes a submission.

        Args:
            score: its scores.
            present: the results on record of its cases.
        """
        self.scores.add(score)
        for result in present:
            self._verdicts[result.verdict] += 1
            self.shares.add(result)
            if not result.verdict.is_scored:
                self._excluded.setdefault(result.verdict.value, []).append(_reason(result))
        known = {result.case for result in present}
        self._excluded.setdefault("not_run", []).extend(
            {"id": self.task.id, "sample": score.sample, "case": case.number}
            for case in self.task.cases
            if case.number not in known
        )

    @staticmethod
    def group(tallies: Collection[TaskTally], *, shared: bool) -> GroupReport:
        """The scores of a group of tasks.

        Args:
            tallies: the tasks.
            shared: whether cells to change and cells to keep decide in this run.
        """
        group = score_tasks(tally.scores for tally in tallies)
        verdicts: Counter[Verdict] = Counter()
        excluded: dict[str, list[ExcludedCase]] = {}
        for tally in tallies:
            verdicts.update(tally._verdicts)  # noqa: SLF001  of the same class
            for code, cases in tally._excluded.items():  # noqa: SLF001
                excluded.setdefault(code, []).extend(cases)
        report: GroupReport = {
            "tasks": group.tasks,
            "cases": group.cases,
            "soft_restriction": group.soft,
            "hard_restriction": group.hard,
            "verdicts": {
                verdict.value: verdicts[verdict] for verdict in Verdict if verdicts[verdict]
            },
            "excluded": {code: cases for code, cases in excluded.items() if cases},
            "including_excluded": _all_of_it(group),
        }
        if shared:
            report["shares"] = shares_of_tallies([tally.shares for tally in tallies])
        return report

    @staticmethod
    def over(tallies: Iterable[TaskTally], members: Collection[str]) -> SuiteScores:
        """Scores with the denominator of a whole suite, or of a group of its tasks."""
        group = score_tasks(tally.scores for tally in tallies if tally.task.id in members)
        share = group.all_tasks / len(members)
        return {
            "tasks": len(members),
            "soft_restriction": (group.soft_of_all or 0.0) * share,
            "hard_restriction": (group.hard_of_all or 0.0) * share,
        }


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


def _all_of_it(group: GroupScore) -> ScoresOfAll:
    return {
        "tasks": group.all_tasks,
        "cases": group.all_cases,
        "soft_restriction": group.soft_of_all,
        "hard_restriction": group.hard_of_all,
    }


def _reason(result: CaseResult) -> ExcludedCase:
    return {
        "id": result.task_id,
        "sample": result.sample,
        "case": result.case,
        "reason": result.cause,
    }
