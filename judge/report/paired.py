"""Two series of scores on the same tasks: runs, or phrasings of the tasks of one run. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from judge.core.score import SubmissionScore
from judge.core.statistics import (
    mcnemar_exact,
    paired_bootstrap,
    smallest_detectable_change,
    smallest_detectable_difference,
)
from judge.core.task import Phrasing
from judge.report.model import Method
from judge.report.pair_model import RunPair

POWER = 0.8
SOLVED = 0.5
"""A hard score of several samples that is above this counts as solved: most samples solved it."""


@dataclass(frozen=True, slots=True)
class TaskScores:
    """Scores by task, several samples averaged.

    Attributes:
        soft: task -> soft score, of the tasks that have a scored case.
        hard: task -> hard score, of the same tasks.
    """

    soft: Mapping[str, float]
    hard: Mapping[str, float]


def task_scores(scores: Iterable[SubmissionScore]) -> TaskScores:
    """Soft and hard score of each task that has a scored case; samples are averaged."""
    soft: dict[str, list[float]] = defaultdict(list)
    hard: dict[str, list[float]] = defaultdict(list)
    for score in scores:
        if score.soft is not None and score.hard is not None:
            soft[score.task_id].append(score.soft)
            hard[score.task_id].append(score.hard)
    return TaskScores(
        {task: math.fsum(each) / len(each) for task, each in soft.items()},
        {task: math.fsum(each) / len(each) for task, each in hard.items()},
    )


def by_phrasing(scores: TaskScores, phrasings: Mapping[str, Phrasing]) -> TaskScores | None:
    """The same scores by what all phrasings of a task share.

    Args:
        scores: by task.
        phrasings: of the tasks that have one, by id.

    Returns:
        The scores; None where several phrasings of one task have scores.
    """
    shared = {task: phrasings[task].of if task in phrasings else task for task in scores.soft}
    if len(set(shared.values())) < len(shared):
        return None
    return TaskScores(
        {shared[task]: score for task, score in scores.soft.items()},
        {shared[task]: score for task, score in scores.hard.items()},
    )


def compare_pair(
    first: str,
    second: str,
    common: Sequence[str],
    one: TaskScores,
    two: TaskScores,
    method: Method,
) -> RunPair:
    """Compares two series of scores on the same tasks.

    Args:
        first: name of the one that is compared with.
        second: name of the one that is compared with it.
        common: the tasks that both have.
        one: scores of the first.
        two: scores of the second.
        method: confidence, resamples and seed.
    """
    won = tuple(task for task in common if one.hard[task] <= SOLVED < two.hard[task])
    lost = tuple(task for task in common if two.hard[task] <= SOLVED < one.hard[task])
    soft, hard = (
        paired_bootstrap(
            [before[task] for task in common],
            [after[task] for task in common],
            confidence=method.confidence,
            resamples=method.resamples,
            seed=method.seed,
        )
        for before, after in ((one.soft, two.soft), (one.hard, two.hard))
    )
    n, alpha = len(common), 1 - method.confidence
    discordant = (len(won) + len(lost)) / n
    p_hard = mcnemar_exact(len(lost), len(won))
    return RunPair(
        first=first,
        second=second,
        tasks=n,
        hard_difference=hard,
        won=won,
        lost=lost,
        p_hard=p_hard,
        p_hard_holm=p_hard,
        soft_difference=soft,
        p_soft_holm=soft.p,
        better=tuple(task for task in common if two.soft[task] > one.soft[task]),
        worse=tuple(task for task in common if two.soft[task] < one.soft[task]),
        smallest_hard=smallest_detectable_change(n, discordant, alpha=alpha, power=POWER),
        smallest_soft=None
        if not soft.sd
        else smallest_detectable_difference(n, soft.sd, alpha=alpha, power=POWER),
    )
