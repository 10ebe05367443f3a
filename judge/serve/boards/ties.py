"""Ties and rank intervals of a board, computed from the scores of tasks. Pure.

Each pair is tested as ``judge compare-runs`` tests two runs, all with the same resamples of tasks;
the p-values are adjusted by Holm's method over all pairs of the board.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist, median_high
from typing import TYPE_CHECKING

from judge.core.statistics import (
    MAX_DRAWN_TASKS,
    fewest_one_sided,
    holm,
    mcnemar_exact,
    p_of_resamples,
    paired_bootstrap,
    resampled_columns,
    smallest_detectable_difference,
)
from judge.report.build import DEFAULT_METHOD
from judge.report.paired import POWER, SOLVED, TaskMeans

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Metric(StrEnum):
    """The score by which a board ranks."""

    HARD = "hard"
    SOFT = "soft"


@dataclass(frozen=True, slots=True)
class SmallestDifferences:
    """The smallest differences that a board could show between two of its entries.

    Attributes:
        pairs: number of pairs of entries, over which Holm's method adjusts.
        tasks: if one entry solves all tasks that another one solves, how many more tasks it has to
            solve for a significant difference of hard scores.
        hard: ``tasks`` as a share of all tasks; None if the board has fewer tasks.
        soft: the true difference of soft scores that the test finds with a power of 80 %, for a
            pair with the median spread; None if scores cannot differ by that much.
    """

    pairs: int
    tasks: int
    hard: float | None
    soft: float | None


@dataclass(frozen=True, slots=True)
class Ties:
    """All pairs of a board.

    Attributes:
        ranks: for each entry, the best and the worst rank that the tests allow: 1 + the number of
            significantly better entries, and N - the number of significantly worse ones.
        p: (first, second) -> p of the board's metric, first < second, as ``judge compare-runs``
            computes it.
        p_holm: the same, adjusted for all pairs. A bootstrap of 10,000 resamples cannot give a p
            below 0.0002; with that, no pair of 23 entries could differ after Holm's adjustment. So
            if all resamples are on the same side of zero, the p of the exact sign test is adjusted
            instead, if it is smaller.
        smallest: the smallest differences that the board could show.
    """

    ranks: tuple[tuple[int, int], ...]
    p: Mapping[tuple[int, int], float]
    p_holm: Mapping[tuple[int, int], float]
    smallest: SmallestDifferences


def ties_of(entries: Sequence[TaskMeans], metric: Metric) -> Ties:
    """Tests all pairs of entries on the tasks for which both have a score.

    Args:
        entries: their scores by task; a task that an entry did not answer has the score 0, a task
            that was set aside has no score.
        metric: the score by which the board ranks.
    """
    p: dict[tuple[int, int], float] = {}
    sharper: dict[tuple[int, int], float] = {}
    spreads: list[float] = []
    for group, other in _pairs_of_groups(entries):
        tasks = sorted(entries[group[0]].soft.keys() & entries[other[0]].soft.keys())
        columns = list(dict.fromkeys((*group, *other)))
        tests = _PairTests([entries[index] for index in columns], tasks, metric)
        column_of = {index: column for column, index in enumerate(columns)}
        for first in group:
            for second in other:
                pair = (min(first, second), max(first, second))
                if first != second and pair not in p:
                    columns_of = column_of[pair[0]], column_of[pair[1]]
                    p[pair] = tests.p(*columns_of)
                    sharper[pair] = tests.sharper_p(p[pair], *columns_of)
                    spreads.append(tests.spread(*columns_of))
    order = sorted(p)
    adjusted = dict(zip(order, holm([sharper[pair] for pair in order]), strict=True))
    means = [_mean(getattr(entry, metric.value)) for entry in entries]
    all_tasks = len(set().union(*(entry.soft.keys() for entry in entries))) if entries else 0
    return Ties(
        ranks=rank_intervals(means, adjusted, 1 - DEFAULT_METHOD.confidence),
        p=p,
        p_holm=adjusted,
        smallest=smallest_differences(all_tasks, len(entries), spreads),
    )


def rank_intervals(
    scores: Sequence[float], p_holm: Mapping[tuple[int, int], float], alpha: float
) -> tuple[tuple[int, int], ...]:
    """The rank interval of each entry.

    Args:
        scores: the scores of the entries.
        p_holm: adjusted p of each pair (first, second), first < second.
        alpha: two entries differ if p is below this.
    """
    better, worse = [0] * len(scores), [0] * len(scores)
    for (first, second), p in p_holm.items():
        if p <= alpha and scores[first] != scores[second]:
            winner, loser = (first, second) if scores[first] > scores[second] else (second, first)
            better[loser] += 1
            worse[winner] += 1
    return tuple(
        (1 + above, len(scores) - below) for above, below in zip(better, worse, strict=True)
    )


def smallest_differences(tasks: int, entries: int, spreads: Sequence[float]) -> SmallestDifferences:
    """Computes the smallest differences that a board could show between two of its entries.

    Args:
        tasks: number of tasks of the board.
        entries: number of entries of the board.
        spreads: the standard deviation of the differences of soft scores, of each pair that has
            one.
    """
    pairs = max(1, entries * (entries - 1) // 2)
    alpha = (1 - DEFAULT_METHOD.confidence) / pairs
    needed = fewest_one_sided(alpha)
    median = median_high(spreads) if spreads else 0.0
    soft = smallest_detectable_difference(tasks, median, alpha=alpha, power=POWER)
    return SmallestDifferences(
        pairs, needed, needed / tasks if needed <= tasks else None, soft or None
    )


def ties_of_shown(scores: Sequence[float], tasks: int) -> tuple[tuple[int, int], ...]:
    """Rank intervals computed from total scores, for boards that may not show single tasks.

    As tasks cannot be paired, two scores are compared as if they came from different tasks: by the
    normal test with the variance p (1 - p) / n, the largest that scores from 0 to 1 with this mean
    can have. Systems mostly solve the same tasks, so this test finds fewer differences than the
    paired one. It uses only the scores that the board shows.

    Args:
        scores: the scores as shown, from 0 to 1.
        tasks: number of tasks of the board.
    """
    p = {
        (first, second): _unpaired(scores[first], scores[second], tasks)
        for first in range(len(scores))
        for second in range(first + 1, len(scores))
    }
    order = sorted(p)
    adjusted = dict(zip(order, holm([p[pair] for pair in order]), strict=True))
    return rank_intervals(scores, adjusted, 1 - DEFAULT_METHOD.confidence)


def _unpaired(one: float, two: float, tasks: int) -> float:
    if not tasks or one == two:
        return 1.0
    pooled = (one + two) / 2
    deviation = math.sqrt(2 * pooled * (1 - pooled) / tasks)
    return 2 * (1 - NormalDist().cdf(abs(one - two) / deviation)) if deviation else 1.0


def _mean(scores: Mapping[str, float]) -> float:
    return math.fsum(scores.values()) / len(scores) if scores else 0.0


def _pairs_of_groups(entries: Sequence[TaskMeans]) -> list[tuple[list[int], list[int]]]:
    """Yields all pairs of groups, and each group with itself.

    The entries of a group have the same scored tasks.
    """
    groups: dict[frozenset[str], list[int]] = {}
    for index, entry in enumerate(entries):
        groups.setdefault(frozenset(entry.soft), []).append(index)
    listed = list(groups.values())
    return [(group, other) for index, group in enumerate(listed) for other in listed[index:]]


class _PairTests:
    """Tests pairs of entries on the same tasks, all pairs with the same resamples."""

    def __init__(self, entries: Sequence[TaskMeans], tasks: Sequence[str], metric: Metric) -> None:
        import numpy as np  # noqa: PLC0415 - slow, and most commands draw no samples

        self._metric, self._tasks = metric, len(tasks)
        shape = (len(tasks), len(entries))
        self._soft = np.array(
            [[entry.soft[task] for entry in entries] for task in tasks], dtype=np.float64
        ).reshape(shape)
        solved = np.array(
            [[entry.hard[task] > SOLVED for entry in entries] for task in tasks], dtype=np.float64
        ).reshape(shape)
        # [a, b]: tasks that a solved and b did not.
        self._alone = solved.T @ (1 - solved)
        self._means: NDArray[np.float64] | None = None
        if metric is Metric.SOFT and 1 < len(tasks) <= MAX_DRAWN_TASKS:
            self._means = resampled_columns(
                self._soft, DEFAULT_METHOD.resamples, DEFAULT_METHOD.seed
            ).T.copy()
        self._variances, self._centred = _moments(self._soft)

    def p(self, first: int, second: int) -> float:
        """The p-value of a pair by the board's metric."""
        if self._metric is Metric.HARD:
            alone = round(self._alone[first, second]), round(self._alone[second, first])
            return _mcnemar(min(alone), max(alone))
        one, two = self._soft[:, first], self._soft[:, second]
        if self._tasks < 2 or not (one != two).any():
            return 1.0
        if self._means is None:
            pair = paired_bootstrap(
                one.tolist(),
                two.tolist(),
                resamples=DEFAULT_METHOD.resamples,
                seed=DEFAULT_METHOD.seed,
            )
            return pair.p
        return p_of_resamples(self._means[second] - self._means[first])

    def sharper_p(self, p: float, first: int, second: int) -> float:
        """The p-value that Holm's method adjusts; see :class:`Ties`."""
        if self._metric is Metric.HARD or p > 2 / (DEFAULT_METHOD.resamples + 1):
            return p
        one, two = self._soft[:, first], self._soft[:, second]
        better, worse = int((two > one).sum()), int((two < one).sum())
        return min(p, _mcnemar(min(better, worse), max(better, worse)))

    def spread(self, first: int, second: int) -> float:
        """The standard deviation of the differences of the soft scores."""
        if self._tasks < 2:
            return 0.0
        product = float(self._centred[first, second])
        square = float(self._variances[first] + self._variances[second]) - 2 * product
        return math.sqrt(max(0.0, square))


def _moments(soft: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Variances and covariances of columns, with the divisor n - 1."""
    tasks = max(2, soft.shape[0])
    centred = soft - soft.mean(axis=0) if soft.shape[0] else soft
    covariances = centred.T @ centred / (tasks - 1)
    return covariances.diagonal(), covariances


@functools.lru_cache(maxsize=65_536)
def _mcnemar(fewer: int, more: int) -> float:
    return mcnemar_exact(fewer, more)
