"""Two series of scores on the same tasks: two runs, or two phrasings in one run. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from judge.core.score import TaskScores
from judge.core.statistics import (
    mcnemar_exact,
    paired_bootstrap,
    smallest_detectable_change,
    smallest_detectable_difference,
)
from judge.core.task import Phrasing, Task
from judge.report.breakdowns import Division, TaskFacts
from judge.report.model import Method, PairCounts, PhrasingComparison, RunPair

POWER = 0.8
SOLVED = 0.5
"""A task counts as solved if its hard score over several samples is above this."""


@dataclass(frozen=True, slots=True)
class TaskMeans:
    """Scores by task; several samples of a task are averaged.

    Attributes:
        soft: task -> soft score, of the tasks that have a scored case.
        hard: task -> hard score, of the same tasks.
    """

    soft: Mapping[str, float]
    hard: Mapping[str, float]

    @classmethod
    def of(cls, tasks: Mapping[str, TaskScores]) -> TaskMeans:
        """The means over the samples of tasks."""
        return cls(
            _means({task_id: scores.soft for task_id, scores in tasks.items()}),
            _means({task_id: scores.hard for task_id, scores in tasks.items()}),
        )


def _means(scores: Mapping[str, Sequence[float | None]]) -> dict[str, float]:
    """Task -> mean of the scores of its samples; tasks without a score are left out."""
    scored = {
        task: [score for score in of_task if score is not None] for task, of_task in scores.items()
    }
    return {task: math.fsum(of_task) / len(of_task) for task, of_task in scored.items() if of_task}


def by_phrasing(scores: TaskMeans, phrasings: Mapping[str, Phrasing]) -> TaskMeans | None:
    """These scores, by the id that all phrasings of a task share.

    Args:
        scores: the scores by task.
        phrasings: id -> phrasing, for the tasks that have one.

    Returns:
        The scores; None if several phrasings of one task have scores.
    """
    shared = {task: phrasings[task].of if task in phrasings else task for task in scores.soft}
    if len(set(shared.values())) < len(shared):
        return None
    return TaskMeans(
        {shared[task]: score for task, score in scores.soft.items()},
        {shared[task]: score for task, score in scores.hard.items()},
    )


def compare_pair(
    first: str,
    second: str,
    common: Sequence[str],
    one: TaskMeans,
    two: TaskMeans,
    method: Method,
) -> RunPair:
    """Compares two series of scores on the same tasks.

    Args:
        first: name of the first series, the baseline.
        second: name of the second series, which is compared with the first.
        common: the tasks that both have.
        one: scores of the first.
        two: scores of the second.
        method: confidence, resamples and seed.
    """
    # Sorted by id: tasks are drawn by position, which must not depend on the order of the records.
    drawn = sorted(common)
    won = tuple(task for task in common if one.hard[task] <= SOLVED < two.hard[task])
    lost = tuple(task for task in common if two.hard[task] <= SOLVED < one.hard[task])
    soft, hard = (
        paired_bootstrap(
            [before[task] for task in drawn],
            [after[task] for task in drawn],
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


def compare_phrasings(
    scores: Mapping[str, TaskScores],
    tasks: Mapping[str, Task],
    facts: Mapping[str, TaskFacts],
    divisions: Sequence[Division],
    method: Method,
) -> tuple[PhrasingComparison, ...]:
    """Compares every pair of phrasings that a run has scores for.

    Args:
        scores: task id -> the scores of its samples.
        tasks: the tasks by id.
        facts: the facts that decide which group of a division a task belongs to.
        divisions: the divisions that tasks are counted by.
        method: confidence, resamples and seed.
    """
    phrasings = {task.id: task.phrasing for task in tasks.values() if task.phrasing is not None}
    names = list(dict.fromkeys(phrasing.name for phrasing in phrasings.values()))
    every = TaskMeans.of(scores)
    series = {}
    for name in sorted(names):
        mine = {task for task, phrasing in phrasings.items() if phrasing.name == name}
        part = TaskMeans(
            {task: score for task, score in every.soft.items() if task in mine},
            {task: score for task, score in every.hard.items() if task in mine},
        )
        if part.soft and (joined := by_phrasing(part, phrasings)) is not None:
            series[name] = joined
    shared = {phrasing.of: facts[task] for task, phrasing in phrasings.items()}
    return tuple(
        _compared(first, second, series, shared, divisions, method)
        for first, second in combinations(series, 2)
        if series[first].soft.keys() & series[second].soft.keys()
    )


def _compared(
    first: str,
    second: str,
    series: Mapping[str, TaskMeans],
    facts: Mapping[str, TaskFacts],
    divisions: Sequence[Division],
    method: Method,
) -> PhrasingComparison:
    one, two = series[first], series[second]
    common = [task for task in one.soft if task in two.soft]
    counts = [_counts("all", common, one, two)]
    for division in divisions:
        for part in division.parts:
            inside = [task for task in common if division.part_of(facts[task]) == part.key]
            if inside:
                counts.append(_counts(part.label, inside, one, two))
    return PhrasingComparison(
        pair=compare_pair(first, second, common, one, two, method),
        counts=tuple(counts),
        alone=len(one.soft.keys() ^ two.soft.keys()),
    )


def _counts(label: str, tasks: Sequence[str], one: TaskMeans, two: TaskMeans) -> PairCounts:
    solved = [(one.hard[task] > SOLVED, two.hard[task] > SOLVED) for task in tasks]
    return PairCounts(
        label=label,
        tasks=len(tasks),
        both=solved.count((True, True)),
        only_first=solved.count((True, False)),
        only_second=solved.count((False, True)),
        neither=solved.count((False, False)),
    )
