"""Several samples of each task, as repeated runs and as pass@k. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from judge.core.score import TaskScores
from judge.core.statistics import mean_and_sd, mean_over_tasks

_STEPS = (1, 2, 3, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100)


@dataclass(frozen=True, slots=True)
class RepeatedRuns:
    """Several samples of each task, treated as repeated runs.

    Attributes:
        samples: samples of each task; if tasks differ, the smallest number.
        soft_restriction: mean of the runs' soft scores.
        soft_sd: their standard deviation (n - 1); None for one run.
        hard_restriction: mean of the runs' hard scores.
        hard_sd: their standard deviation.
        pass_at: k -> expected share of the tasks that at least one of k samples solves.
        pass_hat: k -> expected share of the tasks that all of k samples solve.
        best_of: share of the tasks that at least one of their samples solves, however many samples
            a task has; None if no sample could be judged.
    """

    samples: int
    soft_restriction: float | None
    soft_sd: float | None
    hard_restriction: float | None
    hard_sd: float | None
    pass_at: Mapping[int, float]
    pass_hat: Mapping[int, float]
    best_of: float | None = None


def repeated_runs(tasks: Collection[TaskScores]) -> RepeatedRuns:
    """Mean, standard deviation, pass@k and pass^k over the samples of some tasks."""
    samples = min(len(task.samples) for task in tasks)
    softs, hards = _by_sample(tasks, samples)
    soft, soft_sd = mean_and_sd([mean for sample in softs if (mean := _mean(sample)) is not None])
    hard, hard_sd = mean_and_sd([mean for sample in hards if (mean := _mean(sample)) is not None])
    # Samples that could not be judged do not count; nor do tasks that have only such samples.
    solved = {
        str(number): (len(hard_scores), hard_scores.count(1.0))
        for number, task in enumerate(tasks)
        if (hard_scores := [hard for hard in task.hard if hard is not None])
    }
    best = [any_solved > 0 for _, any_solved in solved.values()]
    ks = [k for k in _STEPS if k <= samples]
    at = {k: mean_over_tasks(solved, k) for k in ks}
    hat = {k: mean_over_tasks(solved, k, every=True) for k in ks}
    return RepeatedRuns(
        samples=samples,
        soft_restriction=soft,
        soft_sd=soft_sd,
        hard_restriction=hard,
        hard_sd=hard_sd,
        pass_at={k: value for k, value in at.items() if value is not None},
        pass_hat={k: value for k, value in hat.items() if value is not None},
        best_of=sum(best) / len(best) if best else None,
    )


def _by_sample(
    tasks: Collection[TaskScores], samples: int
) -> tuple[list[list[float]], list[list[float]]]:
    """The scores of each repeated run; the n-th run has the n-th sample of each task."""
    softs: list[list[float]] = [[] for _ in range(samples)]
    hards: list[list[float]] = [[] for _ in range(samples)]
    for task in tasks:
        order = sorted(range(len(task.samples)), key=task.samples.__getitem__)[:samples]
        soft, hard = task.soft, task.hard
        for number, index in enumerate(order):
            if (score := soft[index]) is not None:
                softs[number].append(score)
            if (score := hard[index]) is not None:
                hards[number].append(score)
    return softs, hards


def _mean(scores: Sequence[float]) -> float | None:
    return math.fsum(scores) / len(scores) if scores else None
