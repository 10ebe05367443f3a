"""Computes the figures that a benchmark publishes from the verdicts of cases.

The figures are soft and hard scores of a submission, their means over tasks, the accuracy of cells,
and the tables of scores that a benchmark's paper prints.
"""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from judge.core.verdict import CaseResult, Verdict


@dataclass(frozen=True, slots=True)
class SubmissionScore:
    """The scores of one submission.

    Attributes:
        task_id: the task's id as text.
        sample: 0-based number among several solutions of the same task.
        verdicts: one per test case, in case order; None if the case was not run.
        soft: mean credit of the scored cases, from 0 to 1; None if no case is scored.
        hard: 1.0 if all scored cases are accepted, otherwise 0.0; None if no case is scored.
        earned: the credit of each case, scored or not, in case order: 1 if it is accepted,
            otherwise the share of points that it earned, or 0 if its checker gives no points.
    """

    task_id: str
    sample: int
    verdicts: tuple[Verdict | None, ...]
    soft: float | None
    hard: float | None
    earned: tuple[float, ...] = ()


def score_submission(
    task_id: str, sample: int, results: Sequence[CaseResult | None]
) -> SubmissionScore:
    """Scores one submission from the results of its test cases.

    Args:
        task_id: the task's id as text.
        sample: 0-based number among several solutions of the same task.
        results: one per test case of the task, in case order; None if it was not run.
    """
    return score_verdicts(
        task_id,
        sample,
        [None if result is None else result.verdict for result in results],
        [0.0 if result is None else earned_share(result) for result in results],
    )


def score_verdicts(
    task_id: str, sample: int, verdicts: Sequence[Verdict | None], earned: Sequence[float]
) -> SubmissionScore:
    """Scores one submission from the verdict and the credit of each of its test cases."""
    pairs = zip(verdicts, earned, strict=True)
    scored = [(code, share) for code, share in pairs if code is not None and code.is_scored]
    return SubmissionScore(
        task_id=task_id,
        sample=sample,
        verdicts=tuple(verdicts),
        soft=_mean([share for _, share in scored]) if scored else None,
        hard=float(all(code is Verdict.AC for code, _ in scored)) if scored else None,
        earned=tuple(earned),
    )


def earned_share(result: CaseResult) -> float:
    """Returns the credit of a case in the soft score, from 0 to 1.

    An accepted case counts 1. Any other case counts the share of points that it earned. It counts 0
    if its checker gives no points, or if a person took the points away by changing the verdict.
    """
    if result.verdict is Verdict.AC:
        return 1.0
    share = result.comparison.get("earned_share")
    if share is None or result.comparison.get("equal") or not result.verdict.is_scored:
        return 0.0
    # Stay below 1, which would mean that the case is accepted.
    return min(max(share, 0.0), math.nextafter(1.0, 0.0))


@dataclass(frozen=True, slots=True)
class GroupScore:
    """The scores of a group of tasks, under both denominators.

    Attributes:
        tasks: how many tasks have at least one scored case.
        cases: how many cases are scored.
        soft: mean soft score of those tasks; for a task with several samples, their mean counts.
        hard: the same for the hard score.
        all_tasks: how many tasks there are, including those without a scored case.
        all_cases: how many cases there are, including unscored ones.
        soft_of_all: the soft score if every unscored case counts as not accepted.
        hard_of_all: the hard score if every unscored case counts as not accepted.
    """

    tasks: int
    cases: int
    soft: float | None
    hard: float | None
    all_tasks: int
    all_cases: int
    soft_of_all: float | None
    hard_of_all: float | None


class TaskScores:
    """The scores of all samples of one task, in a few dozen bytes per sample.

    Attributes:
        samples: the sample numbers, in the order in which they were added.
        cases: how many cases of all samples are scored.
        all_cases: how many cases all samples have.
    """

    __slots__ = ("_accepted", "_hard", "_soft", "all_cases", "cases", "samples")

    def __init__(self) -> None:
        self.samples = array("Q")
        self._soft, self._hard, self._accepted = array("d"), array("d"), array("d")
        self.cases = 0
        self.all_cases = 0

    def add(self, score: SubmissionScore) -> None:
        """Adds the scores of a sample."""
        self.samples.append(score.sample)
        self._soft.append(math.nan if score.soft is None else score.soft)
        self._hard.append(math.nan if score.hard is None else score.hard)
        self._accepted.append(_accepted_share(score))
        self.cases += _scored_cases(score)
        self.all_cases += len(score.verdicts)

    @property
    def soft(self) -> list[float | None]:
        """The soft score of each sample; None if none of its cases is scored."""
        return [None if math.isnan(score) else score for score in self._soft]

    @property
    def hard(self) -> list[float | None]:
        """The hard score of each sample; None if none of its cases is scored."""
        return [None if math.isnan(score) else score for score in self._hard]

    @property
    def accepted(self) -> list[float]:
        """For each sample the mean credit of all its cases; unscored cases count 0."""
        return list(self._accepted)


def scores_by_task(submissions: Iterable[SubmissionScore]) -> dict[str, TaskScores]:
    """Groups the scores of submissions by task id, in the order in which the tasks occur."""
    by_task: dict[str, TaskScores] = defaultdict(TaskScores)
    for submission in submissions:
        by_task[submission.task_id].add(submission)
    return dict(by_task)


def score_tasks(tasks: Iterable[TaskScores]) -> GroupScore:
    """Averages tasks; several samples of a task count as one task."""
    soft, hard, soft_of_all, hard_of_all = [], [], [], []
    cases = all_cases = 0
    for task in tasks:
        scored = [score for score in task.soft if score is not None]
        if scored:
            soft.append(_mean(scored))
            hard.append(_mean([score for score in task.hard if score is not None]))
        cases += task.cases
        all_cases += task.all_cases
        soft_of_all.append(_mean(task.accepted))
        hard_of_all.append(_mean([float(share == 1.0) for share in task.accepted]))
    return GroupScore(
        tasks=len(soft),
        cases=cases,
        soft=_mean(soft) if soft else None,
        hard=_mean(hard) if hard else None,
        all_tasks=len(soft_of_all),
        all_cases=all_cases,
        soft_of_all=_mean(soft_of_all) if soft_of_all else None,
        hard_of_all=_mean(hard_of_all) if hard_of_all else None,
    )


def best_samples(submissions: Iterable[SubmissionScore]) -> set[tuple[str, int]]:
    """Chooses the best-scored sample of each task (best of n); the first if several are equal.

    Returns:
        Pairs of task id and sample number.
    """
    best: dict[str, SubmissionScore] = {}
    for submission in submissions:
        other = best.get(submission.task_id)
        if other is None or _rank(submission) > _rank(other):
            best[submission.task_id] = submission
    return {(submission.task_id, submission.sample) for submission in best.values()}


def _rank(submission: SubmissionScore) -> tuple[float, float, int]:
    unscored = -1.0
    hard = unscored if submission.hard is None else submission.hard
    soft = unscored if submission.soft is None else submission.soft
    return (hard, soft, -submission.sample)


def _scored_cases(submission: SubmissionScore) -> int:
    return sum(verdict is not None and verdict.is_scored for verdict in submission.verdicts)


def _accepted_share(submission: SubmissionScore) -> float:
    if not submission.verdicts:
        return 0.0
    return _mean(submission.earned)


def _mean(numbers: Sequence[float]) -> float:
    # `fsum`, because the mean must not depend on the order in which workers finished.
    return math.fsum(numbers) / len(numbers)


def cell_accuracy(result: CaseResult) -> float | None:
    """Returns the share of a case's compared cells that are right; None if it is not scored.

    The share is from 0 to 1. An accepted case has 1. Any other case has less: 0 if nothing was
    compared (no program, an exception, a limit, no readable workbook). Otherwise cells that should
    have been left alone also count as wrong, and at least one cell counts as wrong.

    Args:
        result: the result of the case, from a checker that counts cells.
    """
    if not result.verdict.is_scored:
        return None
    if result.verdict is Verdict.AC:
        return 1.0
    cells = result.comparison.get("cells") or 0
    if not cells:
        return 0.0
    differing = result.comparison.get("differing_cells") or 0
    touched = result.comparison.get("touched_cells") or 0
    return 1.0 - min(max(differing + touched, 1), cells) / cells


def mean_cell_accuracy(results: Iterable[CaseResult]) -> float | None:
    """The mean over the scored cases; None if no case is scored."""
    scored = [share for result in results if (share := cell_accuracy(result)) is not None]
    return fmean(scored) if scored else None


@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """A column of a score table: the score of a group of tasks.

    Attributes:
        label: the column's heading.
        division: the division of tasks that the column uses; empty for all tasks.
        group: the group of that division whose tasks the column counts.
        heading: a common heading above this column and its neighbours; may be empty.
    """

    label: str
    division: str = ""
    group: str = ""
    heading: str = ""

    def holds(self, groups: Mapping[str, str]) -> bool:
        """Whether a task is counted in the column.

        Args:
            groups: name of a division -> the group of the task.
        """
        return not self.division or groups.get(self.division) == self.group


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """A table of scores that a suite defines.

    Attributes:
        title: the caption.
        columns: the columns, in order.
    """

    title: str
    columns: tuple[ScoreColumn, ...]
