"""The numbers of ``report.json``, counted submission by submission; no result is kept for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from judge.core.records.reports import (
    ExcludedCase,
    GroupReport,
    ScoresOfAll,
    SuiteScores,
)
from judge.core.score import (
    GroupScore,
    SubmissionScore,
    TaskScores,
    score_tasks,
)
from judge.core.task import Task
from judge.core.verdict import CaseResult, Verdict
from judge.report.shares import ShareTally, shares_of_tallies


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
