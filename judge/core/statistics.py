"""Intervals and paired comparison. Pure: the result depends only on the numbers and the seed.

The clusters are the tasks. Test cases of one task share an instruction and a solution, so they
tend to pass and fail together; an interval that treats them as independent is too narrow. A soft
score is a mean over tasks of one number per task, so resampling tasks means resampling these
numbers.

NumPy does the resampling. Everything else is a line or two of arithmetic and is written out here:
``scipy.stats`` has most of it, but importing it takes longer than making a whole report.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, stdev
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CONFIDENCE = 0.95
RESAMPLES = 10_000
SEED = 20_240_624
"""The default seed of every bootstrap; reports record the seed."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval.

    Attributes:
        value: the estimate; None if nothing was observed.
        low: lower end of the interval; None if no interval could be computed.
        high: upper end.
        n: the number of independent observations (usually tasks).
        method: ``wilson`` or ``cluster bootstrap``; empty if there is no interval.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str


NOTHING_OBSERVED = Estimate(None, None, None, 0, "")


# -- intervals ------------------------------------------------------------------------------------


def wilson(successes: int, n: int, *, confidence: float = CONFIDENCE) -> Estimate:
    """Computes Wilson's score interval of a proportion.

    Args:
        successes: how many of the observations are successes.
        n: the number of independent observations.
        confidence: the confidence of the interval, two-sided.

    Raises:
        ValueError: ``successes`` is not between 0 and ``n``.

    Source: E. B. Wilson, JASA 22 (1927), 209-212; recommended for small samples by Brown, Cai and
    DasGupta, Statistical Science 16 (2001), 101-133.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}")
    if n == 0:
        return NOTHING_OBSERVED
    z = _quantile(confidence)
    share = successes / n
    centre = share + z * z / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    # The exact bounds at the ends are 0 and 1; the arithmetic has a rounding error there.
    low = 0.0 if successes == 0 else max(0.0, (centre - half) / scale)
    high = 1.0 if successes == n else min(1.0, (centre + half) / scale)
    return Estimate(share, low, high, n, "wilson")


def cohens_kappa(pairs: Sequence[tuple[bool, bool]]) -> Estimate:
    """Computes Cohen's kappa of two raters, with an interval from its large-sample standard error.

    Source: J. Cohen, Educational and Psychological Measurement 20 (1960), 37-46.

    Args:
        pairs: the ratings of both raters for each item.

    Returns:
        An estimate without a value if there are no items, or if both raters give every item the
        same rating: chance alone would then explain the agreement.
    """
    n = len(pairs)
    if not n:
        return NOTHING_OBSERVED
    observed = sum(first == second for first, second in pairs) / n
    first_yes = sum(first for first, _ in pairs) / n
    second_yes = sum(second for _, second in pairs) / n
    by_chance = first_yes * second_yes + (1 - first_yes) * (1 - second_yes)
    if by_chance == 1:
        return Estimate(None, None, None, n, "")
    kappa = (observed - by_chance) / (1 - by_chance)
    error = math.sqrt(observed * (1 - observed) / n) / (1 - by_chance)
    reach = _quantile(CONFIDENCE) * error
    return Estimate(kappa, max(-1.0, kappa - reach), min(1.0, kappa + reach), n, "large sample")


def mean_interval(
    values: Sequence[float],
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Estimate:
    """Computes a score with its interval, from one number for each task.

    Numbers that are all 0 or 1 are a proportion and get Wilson's interval. It is right at the ends
    as well, where resampling equal numbers would give an interval of width 0. Other numbers get the
    percentile interval of the cluster bootstrap.

    Args:
        values: one number from 0 to 1 for each task.
        confidence: the confidence of the interval, two-sided.
        resamples: how many times the tasks are resampled.
        seed: the seed of the generator.
    """
    if not values:
        return NOTHING_OBSERVED
    if all(value in {0.0, 1.0} for value in values):
        return wilson(round(math.fsum(values)), len(values), confidence=confidence)
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Estimate(mean, None, None, 1, "")
    low, high = _percentiles(_resampled_means(values, resamples, seed), confidence)
    return Estimate(mean, low, high, len(values), "cluster bootstrap")


def ratio_interval(
    numerators: Sequence[float],
    denominators: Sequence[float],
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Estimate:
    """Computes a share of cases with its interval, for cases that come in clusters.

    Args:
        numerators: for each cluster, how many of its cases have the property.
        denominators: for each cluster, how many cases it has; empty clusters are ignored.
        confidence: the confidence of the interval, two-sided.
        resamples: how many times the clusters are resampled.
        seed: the seed of the generator.

    Returns:
        The ratio of the sums. If no case or every case has the property, all resamples are equal;
        the interval is then Wilson's, with the clusters as observations, which is wide enough even
        if the cases of a cluster always agree.
    """
    import numpy as np  # noqa: PLC0415 - slow, and most commands draw no samples

    pairs = [(a, b) for a, b in zip(numerators, denominators, strict=True) if b]
    if not pairs:
        return NOTHING_OBSERVED
    top, bottom = math.fsum(a for a, _ in pairs), math.fsum(b for _, b in pairs)
    clusters = len(pairs)
    share = top / bottom
    if share in {0.0, 1.0} or bottom == clusters:
        return wilson(round(share * clusters), clusters, confidence=confidence)
    if clusters == 1:
        return Estimate(share, None, None, 1, "")
    counts = Counter(pairs)
    kinds = sorted(counts)
    drawn = _resampled_counts([counts[kind] for kind in kinds], resamples, seed)
    sums = drawn @ np.array(kinds, dtype=np.float64)
    low, high = _percentiles(sums[:, 0] / sums[:, 1], confidence)
    return Estimate(share, low, high, clusters, "cluster bootstrap")


# -- two runs on the same tasks -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """How two runs differ on the same tasks.

    Attributes:
        difference: mean of the differences (second run minus first), from -1 to 1.
        low: lower end of the interval; None for fewer than two tasks.
        high: upper end.
        p: two-sided p of "no difference"; 1 if no task differs.
        n: tasks that both runs have.
        sd: standard deviation of the differences; None for fewer than two tasks.
    """

    difference: float | None
    low: float | None
    high: float | None
    p: float
    n: int
    sd: float | None


MAX_DRAWN_TASKS = 5_000
"""With more tasks than this, the bootstrap draws counts of distinct differences instead of tasks.
The distribution is the same and takes less time and memory, but pairs of systems cannot share the
draws."""


def paired_bootstrap(
    first: Sequence[float],
    second: Sequence[float],
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> PairedDifference:
    """Compares two runs by the paired cluster bootstrap: draws tasks, each with both its numbers.

    Args:
        first: one number for each task.
        second: the same tasks in the same order.
        confidence: the confidence of the interval, two-sided.
        resamples: how many times the tasks are resampled.
        seed: the seed of the generator.

    Returns:
        The difference, its percentile interval, and its p: twice the smaller of the shares of
        resampled differences on either side of zero. The observed difference is counted as one of
        them, so p is never 0.

    Source: B. Efron and R. Tibshirani, An Introduction to the Bootstrap (1993), chapters 13 and 16;
    A. C. Davison and D. V. Hinkley, Bootstrap Methods and their Application (1997), section 4.2.
    """
    import numpy as np  # noqa: PLC0415 - slow, and most commands draw no samples

    differences = [b - a for a, b in zip(first, second, strict=True)]
    n = len(differences)
    if not n:
        return PairedDifference(None, None, None, 1.0, 0, None)
    mean = math.fsum(differences) / n
    if n == 1:
        return PairedDifference(mean, None, None, 1.0, 1, None)
    spread = stdev(differences)
    if not any(differences):
        return PairedDifference(mean, 0.0, 0.0, 1.0, n, spread)
    if n <= MAX_DRAWN_TASKS:
        columns = np.array(differences, dtype=np.float64).reshape(n, 1)
        means = resampled_columns(columns, resamples, seed)[:, 0]
    else:
        means = _resampled_means(differences, resamples, seed)
    low, high = _percentiles(means, confidence)
    return PairedDifference(mean, low, high, p_of_resamples(means), n, spread)


_ROUNDING_ERROR = 1e-12  # of a mean of differences from -1 to 1

_RESAMPLES_AT_ONCE = 1_000  # bounds the memory


def resampled_columns(
    columns: NDArray[np.float64], resamples: int, seed: int
) -> NDArray[np.float64]:
    """Computes the means of several series over the same draws of the same tasks.

    All series are multiplied with one matrix of draws, so the difference of two columns equals what
    :func:`paired_bootstrap` draws for this pair: a board of 200 systems needs one set of draws.

    Args:
        columns: shape (tasks, series), at most :data:`MAX_DRAWN_TASKS` tasks.
        resamples: how many times the tasks are resampled.
        seed: the seed of the generator.

    Returns:
        Shape (resamples, series).
    """
    import numpy as np  # noqa: PLC0415 - slow, and most commands draw no samples

    tasks = columns.shape[0]
    generator = np.random.default_rng(seed)
    means = np.empty((resamples, columns.shape[1]))
    for start in range(0, resamples, _RESAMPLES_AT_ONCE):
        rows = min(_RESAMPLES_AT_ONCE, resamples - start)
        drawn = generator.integers(0, tasks, (rows, tasks), dtype=np.int32)
        drawn += np.arange(rows, dtype=np.int32)[:, None] * tasks
        weights = np.bincount(drawn.ravel(), minlength=rows * tasks).reshape(rows, tasks)
        means[start : start + rows] = weights.astype(np.float64) @ columns / tasks
    return means


def p_of_resamples(differences: NDArray[np.float64]) -> float:
    """Computes the two-sided p of "no difference" from resampled mean differences."""
    import numpy as np  # noqa: PLC0415 - slow, and most commands draw no samples

    # Rounding keeps sums of thirds from being exactly zero; zero must count on both sides.
    below = int(np.count_nonzero(differences <= _ROUNDING_ERROR)) + 1
    above = int(np.count_nonzero(differences >= -_ROUNDING_ERROR)) + 1
    return min(1.0, 2 * min(below, above) / (len(differences) + 1))


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """Computes McNemar's exact two-sided test: a binomial test on the tasks that one run solved.

    Args:
        only_first: tasks that only the first run solved.
        only_second: tasks that only the second run solved.

    Returns:
        The p of "both runs are equally good"; 1 if no task distinguishes them.

    Source: Q. McNemar, Psychometrika 12 (1947), 153-157, with the exact distribution.
    """
    if only_first < 0 or only_second < 0:
        raise ValueError(f"{only_first} and {only_second} tasks")
    n = only_first + only_second
    tail = sum(math.comb(n, k) for k in range(min(only_first, only_second) + 1))
    return min(1.0, 2 * tail / (1 << n))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusts the p values of several tests by Holm's step-down method; keeps their order.

    Source: S. Holm, Scandinavian Journal of Statistics 6 (1979), 65-70.
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


# -- the difference that a suite can detect -------------------------------------------------------


def smallest_detectable_difference(
    n: int, sd: float, *, alpha: float = 1 - CONFIDENCE, power: float = 0.8
) -> float | None:
    """Computes the smallest true difference of two paired mean scores that a test would detect.

    Args:
        n: number of tasks.
        sd: standard deviation of the differences; scores are from 0 to 1.
        alpha: level of the two-sided test.
        power: the required probability of detecting the difference.

    Returns:
        The difference; None if there are fewer than two tasks, or so few that the difference would
        be larger than scores can differ.
    """
    if n < 2:
        return None
    difference = (_quantile(1 - alpha) + NormalDist().inv_cdf(power)) * sd / math.sqrt(n)
    return difference if difference <= 1 else None


def smallest_detectable_change(
    n: int, discordant: float, *, alpha: float = 1 - CONFIDENCE, power: float = 0.8
) -> float | None:
    """Computes the smallest true difference of two hard scores that McNemar's test would detect.

    Args:
        n: number of tasks.
        discordant: share of the tasks that exactly one of the two runs solves, from 0 to 1.
        alpha: level of the two-sided test.
        power: the required probability of detecting the difference.

    Returns:
        The difference; None if so few tasks differ that none would be detected, even if all of
        them favoured the same run.

    Source: R. J. Connor, Biometrics 43 (1987), 207-211: n tasks find a difference d among a share
    s of discordant tasks if n = (z_alpha sqrt(s) + z_beta sqrt(s - d^2))^2 / d^2.
    """
    z_alpha, z_beta = _quantile(1 - alpha), NormalDist().inv_cdf(power)

    def tasks_needed(difference: float) -> float:
        rest = max(0.0, discordant - difference * difference)
        return (z_alpha * math.sqrt(discordant) + z_beta * math.sqrt(rest)) ** 2 / difference**2

    if n < 1 or discordant <= 0 or tasks_needed(discordant) > n:
        return None
    low, high = 0.0, discordant
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if tasks_needed(middle) > n else (low, middle)
    return high


def fewest_one_sided(alpha: float = 1 - CONFIDENCE) -> int:
    """Returns how many tasks must differ, all in favour of one run, to be significant.

    With fewer discordant tasks, McNemar's exact test can never be significant.
    """
    return next(count for count in range(1, 1_100) if mcnemar_exact(0, count) <= alpha)


# -- several samples ------------------------------------------------------------------------------


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """Estimates the chance that at least one of k samples solves the task, without bias.

    Args:
        n: how many samples were taken.
        c: how many of them solved the task.
        k: how many samples are drawn.

    Returns:
        The estimate; None if n < k, because no unbiased estimate exists then.

    Source: M. Chen et al., Evaluating Large Language Models Trained on Code (2021), section 2.1.
    """
    _check_samples(n, c, k)
    return None if n < k else 1 - math.comb(n - c, k) / math.comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """Estimates the chance that all of k samples solve the task (pass^k), without bias.

    Args, returns: as :func:`pass_at_k`.

    Source: S. Yao et al., tau-bench (2024), section 3.
    """
    _check_samples(n, c, k)
    return None if n < k else math.comb(c, k) / math.comb(n, k)


def _check_samples(n: int, c: int, k: int) -> None:
    if not 0 <= c <= n or k < 1:
        raise ValueError(f"{c} of {n} samples, k = {k}")


def mean_and_sd(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Computes the mean and the standard deviation (n - 1) of repeated runs.

    Returns:
        Both; None for a mean without runs, and for a standard deviation of fewer than two runs.

    Source: Table 5 of the SpreadsheetBench paper, which has four runs on 200 tasks.
    """
    if not values:
        return None, None
    mean = math.fsum(values) / len(values)
    return mean, stdev(values) if len(values) > 1 else None


def mean_over_tasks(
    solved: Mapping[str, tuple[int, int]], k: int, *, every: bool = False
) -> float | None:
    """Computes the mean pass@k (or pass^k) over tasks.

    Args:
        solved: task -> (samples, samples that solved it).
        k: how many samples are drawn.
        every: whether all k samples have to solve the task (pass^k) instead of one (pass@k).

    Returns:
        The mean; None if any task has fewer than k samples, since a mean over the other tasks
        would describe a different suite.
    """
    estimate = pass_hat_k if every else pass_at_k
    estimates = [estimate(n, c, k) for n, c in solved.values()]
    defined = [estimate for estimate in estimates if estimate is not None]
    if not estimates or len(defined) < len(estimates):
        return None
    return math.fsum(defined) / len(defined)


# -- inside ---------------------------------------------------------------------------------------


def _quantile(confidence: float) -> float:
    """The normal quantile of a two-sided interval: 1.96 for 0.95."""
    return NormalDist().inv_cdf(1 - (1 - confidence) / 2)


def _resampled_counts(counts: Sequence[int], resamples: int, seed: int) -> NDArray[np.int64]:
    """Draws how often each kind of cluster occurs in each resample.

    If many clusters are equal, drawing n clusters with replacement amounts to drawing the counts of
    each kind from a multinomial distribution, at a fraction of the cost.

    Returns:
        Shape (resamples, kinds).
    """
    import numpy as np  # noqa: PLC0415 - slow, and most commands draw no samples

    total = sum(counts)
    shares = [count / total for count in counts]
    return np.random.default_rng(seed).multinomial(total, shares, size=resamples)


def _resampled_means(values: Sequence[float], resamples: int, seed: int) -> NDArray[np.float64]:
    import numpy as np  # noqa: PLC0415 - slow, and most commands draw no samples

    counts = Counter(values)
    kinds = sorted(counts)
    drawn = _resampled_counts([counts[kind] for kind in kinds], resamples, seed)
    means: NDArray[np.float64] = drawn @ np.array(kinds, dtype=np.float64) / len(values)
    return means


def _percentiles(resampled: NDArray[np.float64], confidence: float) -> tuple[float, float]:
    import numpy as np  # noqa: PLC0415 - slow, and most commands draw no samples

    tail = 100 * (1 - confidence) / 2
    low, high = np.percentile(resampled, [tail, 100 - tail])
    return float(low), float(high)
