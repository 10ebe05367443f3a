"""Compares with published numbers if there are any, otherwise with hand-computed numbers."""

from __future__ import annotations

import math
import random
from itertools import combinations
from statistics import NormalDist

import pytest

from judge.core.statistics import (
    Estimate,
    fewest_one_sided,
    holm,
    mcnemar_exact,
    mean_and_sd,
    mean_interval,
    mean_over_tasks,
    paired_bootstrap,
    pass_at_k,
    pass_hat_k,
    ratio_interval,
    smallest_detectable_change,
    smallest_detectable_difference,
    wilson,
)


def _coverage(n: int, share: float) -> float:
    """How often the interval of n observations contains the share from which they are drawn."""
    total = 0.0
    for hits in range(n + 1):
        found = wilson(hits, n)
        assert found.low is not None
        assert found.high is not None
        if found.low <= share <= found.high:
            total += math.comb(n, hits) * share**hits * (1 - share) ** (n - hits)
    return total


class TestWilson:
    # R. G. Newcombe, Two-sided confidence intervals for the single proportion, Statistics in
    # Medicine 17 (1998), 857-872, table I, method 3 (score).
    @pytest.mark.parametrize(
        ("successes", "n", "low", "high"),
        [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ],
    )
    def test_published_intervals(self, successes: int, n: int, low: float, high: float) -> None:
        found = wilson(successes, n)
        assert found.low == pytest.approx(low, abs=5e-5)
        assert found.high == pytest.approx(high, abs=5e-5)
        assert (found.value, found.n, found.method) == (successes / n, n, "wilson")

    def test_the_ends_are_the_ends(self) -> None:
        assert wilson(0, 7).low == 0.0
        assert wilson(7, 7).high == 1.0
        assert wilson(7, 7).low == pytest.approx(1 - (wilson(0, 7).high or 0))

    def test_more_confidence_is_a_wider_interval(self) -> None:
        usual, sure = wilson(5, 10), wilson(5, 10, confidence=0.99)
        assert (sure.low or 1) < (usual.low or 0)

    def test_one_task_raises_no_exception(self) -> None:
        # What docs/statistics.md says of it.
        assert mean_interval([0.0]) == wilson(0, 1)
        assert wilson(0, 1).high == pytest.approx(0.7935, abs=5e-5)
        assert wilson(1, 1).low == pytest.approx(0.2065, abs=5e-5)
        assert (mean_interval([1 / 3]).low, mean_interval([1 / 3]).high) == (None, None)
        for n, mean, least in ((1, 0.957, 0.79), (10, 0.954, 0.84)):
            found = [_coverage(n, step / 2000) for step in range(1, 2000)]
            assert sum(found) / len(found) == pytest.approx(mean, abs=5e-4)
            assert min(found) == pytest.approx(least, abs=5e-3)

    def test_nothing_observed(self) -> None:
        assert wilson(0, 0) == Estimate(None, None, None, 0, "")

    def test_impossible_counts_are_refused(self) -> None:
        with pytest.raises(ValueError, match="3 successes of 2"):
            wilson(3, 2)


class TestMcNemar:
    # 9 and 2 discordant pairs: the example on the help page of mcnemar.exact in M. P. Fay's R
    # package exact2x2, p = 0.06542; the others are binomial sums by hand.
    @pytest.mark.parametrize(
        ("first", "second", "p"),
        [
            (9, 2, 2 * (1 + 11 + 55) / 2**11),
            (2, 9, 0.06542969),
            (6, 0, 2 / 64),
            (5, 0, 2 / 32),
            (1, 1, 1.0),
            (0, 0, 1.0),
            (3, 3, 1.0),
        ],
    )
    def test_exact_p(self, first: int, second: int, p: float) -> None:
        assert mcnemar_exact(first, second) == pytest.approx(p)

    def test_counts_beyond_what_a_float_can_hold(self) -> None:
        assert 0 < mcnemar_exact(400, 800) < 1e-25
        assert mcnemar_exact(1_000, 1_000) == 1.0

    def test_six_tasks_are_the_fewest_that_can_speak(self) -> None:
        assert fewest_one_sided() == 6
        assert mcnemar_exact(0, 6) <= 0.05 < mcnemar_exact(0, 5)

    def test_negative_counts_are_refused(self) -> None:
        with pytest.raises(ValueError, match="-1"):
            mcnemar_exact(-1, 3)


class TestHolm:
    def test_published_example(self) -> None:
        # The worked example of the article "Holm-Bonferroni method" in the English Wikipedia.
        assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])

    def test_no_p_is_above_one_and_one_test_is_left_alone(self) -> None:
        assert holm([0.9, 0.8]) == [1.0, 1.0]
        assert holm([0.04]) == [0.04]
        assert holm([]) == []


class TestBootstrap:
    def test_a_score_of_ones_and_zeros_is_a_proportion(self) -> None:
        assert mean_interval([1.0, 0.0, 1.0, 1.0]) == wilson(3, 4)

    def test_the_interval_is_near_the_normal_one_where_there_are_many_tasks(self) -> None:
        values = [0.0] * 300 + [1 / 3] * 100 + [2 / 3] * 100 + [1.0] * 400
        n, mean = len(values), sum(values) / len(values)
        sd = math.sqrt(sum((value - mean) ** 2 for value in values) / n)
        half = NormalDist().inv_cdf(0.975) * sd / math.sqrt(n)
        found = mean_interval(values)
        assert found.value == pytest.approx(mean)
        assert found.low == pytest.approx(mean - half, abs=0.003)
        assert found.high == pytest.approx(mean + half, abs=0.003)
        assert found.method == "cluster bootstrap"

    def test_drawing_kinds_is_drawing_tasks(self) -> None:
        """The multinomial shortcut, compared with drawing each task as in the textbook."""
        values = [0.0, 0.0, 1 / 3, 2 / 3, 1.0, 1.0, 1.0]
        source = random.Random(7)
        means = sorted(sum(source.choices(values, k=7)) / 7 for _ in range(40_000))
        found = mean_interval(values, resamples=40_000)
        assert found.low == pytest.approx(means[1_000], abs=0.05)
        assert found.high == pytest.approx(means[39_000], abs=0.05)

    def test_the_same_seed_gives_the_same_and_another_one_about_the_same(self) -> None:
        values = [0.0, 1 / 3, 0.5, 1.0] * 20
        assert mean_interval(values) == mean_interval(values)
        other = mean_interval(values, seed=1)
        assert other.low == pytest.approx(mean_interval(values).low, abs=0.02)

    def test_one_task_has_no_interval(self) -> None:
        assert mean_interval([0.5]) == Estimate(0.5, None, None, 1, "")
        assert mean_interval([]).value is None

    def test_cases_of_a_task_are_not_independent(self) -> None:
        # 20 clusters of 3 that always agree hold no more than 20 observations.
        clustered = ratio_interval([3, 0] * 10, [3, 3] * 10)
        alone = wilson(30, 60)
        assert clustered.value == 0.5
        assert (clustered.low or 1) < (alone.low or 0)
        assert clustered.n == 20

    def test_a_ratio_without_a_single_hit_still_has_an_interval(self) -> None:
        found = ratio_interval([0, 0, 0], [3, 3, 2])
        assert (found.value, found.low, found.high) == (0.0, 0.0, wilson(0, 3).high)

    def test_clusters_without_a_case_say_nothing(self) -> None:
        assert ratio_interval([0, 1], [0, 2]) == ratio_interval([1], [2])
        assert ratio_interval([0], [0]).value is None


class TestPaired:
    def test_differences_of_the_same_tasks(self) -> None:
        first, second = [0.0, 1 / 3, 1.0] * 30, [1 / 3, 1 / 3, 1.0] * 30
        found = paired_bootstrap(first, second)
        assert found.difference == pytest.approx(1 / 9)
        assert 0 < (found.low or 0) < 1 / 9 < (found.high or 0)
        assert found.p == pytest.approx(2 / 10_001)  # as small as 10,000 resamples can say
        assert found.n == 90

    def test_pairing_sees_what_two_intervals_do_not(self) -> None:
        first = [value / 100 for value in range(100)]
        second = [value + 0.01 for value in first]
        found = paired_bootstrap(first, second)
        assert found.low == pytest.approx(0.01)
        assert found.p < 0.001

    def test_the_other_way_round(self) -> None:
        first, second = [0.0, 1.0, 0.5, 0.25], [1.0, 1.0, 0.0, 0.25]
        there, back = paired_bootstrap(first, second), paired_bootstrap(second, first)
        assert there.difference == pytest.approx(-(back.difference or 0))
        assert there.p == pytest.approx(back.p, abs=0.03)

    def test_nothing_differs(self) -> None:
        found = paired_bootstrap([0.5, 1.0], [0.5, 1.0])
        assert (found.difference, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)

    def test_no_task_and_one_task(self) -> None:
        assert paired_bootstrap([], []).difference is None
        assert paired_bootstrap([0.0], [1.0]).low is None

    def test_other_tasks_are_refused(self) -> None:
        with pytest.raises(ValueError, match="zip"):
            paired_bootstrap([0.0], [1.0, 0.0])


class TestSmallestDifference:
    def test_connors_sample_size_turned_around(self) -> None:
        # By hand from the formula: s = 0.2, d = 0.1 take
        # (1.959964 sqrt(0.2) + 0.841621 sqrt(0.2 - 0.01))^2 / 0.01 = 154.6 tasks.
        z_alpha, z_beta = 1.959964, 0.841621
        tasks = (z_alpha * math.sqrt(0.2) + z_beta * math.sqrt(0.19)) ** 2 / 0.01
        assert tasks == pytest.approx(154.56, abs=0.05)
        assert smallest_detectable_change(round(tasks), 0.2) == pytest.approx(0.1, abs=0.001)

    def test_too_few_tasks_differ(self) -> None:
        assert smallest_detectable_change(100, 0.02) is None
        assert smallest_detectable_change(100, 0.0) is None

    def test_means_by_hand(self) -> None:
        found = smallest_detectable_difference(100, 0.5)
        assert found == pytest.approx((1.959964 + 0.841621) * 0.5 / 10)
        assert smallest_detectable_difference(1, 0.5) is None
        assert smallest_detectable_difference(2, 0.5) == pytest.approx(0.990, abs=0.001)
        assert smallest_detectable_difference(2, 0.6) is None  # scores cannot differ by so much

    def test_a_difference_of_that_size_is_found_four_times_in_five(self) -> None:
        n, discordant = 200, 0.3
        size = smallest_detectable_change(n, discordant)
        assert size is not None
        source = random.Random(11)
        found = 0
        for _ in range(400):
            draws = [source.random() for _ in range(n)]
            won = sum(draw < (discordant + size) / 2 for draw in draws)
            lost = sum((discordant + size) / 2 <= draw < discordant for draw in draws)
            found += mcnemar_exact(won, lost) <= 0.05
        # The exact test is a little less powerful than the formula, which is an approximation.
        assert 0.68 <= found / 400 <= 0.86


class TestSamples:
    @pytest.mark.parametrize("estimate", [pass_at_k, pass_hat_k])
    @pytest.mark.parametrize(("n", "c", "k"), [(5, 2, 3), (5, 0, 2), (5, 5, 5), (4, 1, 1)])
    def test_against_every_way_of_drawing(self, estimate: object, n: int, c: int, k: int) -> None:
        solved = [True] * c + [False] * (n - c)
        draws = list(combinations(solved, k))
        quantify = any if estimate is pass_at_k else all
        share = sum(quantify(draw) for draw in draws) / len(draws)
        assert estimate(n, c, k) == pytest.approx(share)  # type: ignore[operator]

    def test_by_hand(self) -> None:
        # 1 - C(3, 3) / C(5, 3) = 0.9, and C(2, 2) / C(5, 2) = 0.1
        assert pass_at_k(5, 2, 3) == pytest.approx(0.9)
        assert pass_hat_k(5, 2, 2) == pytest.approx(0.1)

    def test_undefined_below_k_samples(self) -> None:
        assert pass_at_k(2, 1, 3) is None
        assert pass_hat_k(2, 2, 3) is None

    def test_impossible_counts_are_refused(self) -> None:
        with pytest.raises(ValueError, match="4 of 3"):
            pass_at_k(3, 4, 1)

    def test_over_tasks_only_where_every_task_has_enough(self) -> None:
        solved = {"a": (4, 1), "b": (4, 4)}
        assert mean_over_tasks(solved, 1) == pytest.approx((0.25 + 1) / 2)
        assert mean_over_tasks(solved, 2, every=True) == pytest.approx((0 + 1) / 2)
        assert mean_over_tasks(solved | {"c": (1, 1)}, 2) is None
        assert mean_over_tasks({}, 1) is None

    def test_repeated_runs(self) -> None:
        # The first worked example of the article "Standard deviation" in the English Wikipedia:
        # 2, 4, 4, 4, 5, 5, 7, 9 have the mean 5 and, as a sample, the deviation sqrt(32 / 7).
        assert mean_and_sd([2, 4, 4, 4, 5, 5, 7, 9]) == pytest.approx((5.0, math.sqrt(32 / 7)))
        assert mean_and_sd([0.5]) == (0.5, None)
        assert mean_and_sd([]) == (None, None)
