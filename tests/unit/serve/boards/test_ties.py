"""Ties and rank intervals of boards."""

from __future__ import annotations

import random

import pytest

from judge.core.statistics import holm, mcnemar_exact
from judge.report.build import DEFAULT_METHOD
from judge.report.paired import TaskMeans, compare_pair
from judge.serve.boards.ties import Metric, rank_intervals, ties_of, ties_of_shown


def entry(solved: set[int], tasks: int, *, third: set[int] = frozenset()) -> TaskMeans:  # type: ignore[assignment]
    hard = {str(task): float(task in solved) for task in range(tasks)}
    soft = {str(task): 1 / 3 if task in third else hard[str(task)] for task in range(tasks)}
    return TaskMeans(soft, hard)


def random_entries(count: int, tasks: int = 60) -> list[TaskMeans]:
    draw = random.Random(7)
    entries = []
    for place in range(count):
        soft = {
            str(task): draw.choice([0, 1 / 3, 2 / 3, 1]) if draw.random() > place / 10 else 1.0
            for task in range(tasks)
        }
        entries.append(TaskMeans(soft, {task: float(score == 1) for task, score in soft.items()}))
    return entries


@pytest.mark.parametrize("metric", list(Metric))
def test_pairs_have_the_numbers_of_a_comparison_of_two_runs(metric: Metric) -> None:
    entries = random_entries(5)
    ties = ties_of(entries, metric)
    assert len(ties.p) == 10
    for (first, second), p in ties.p.items():
        common = list(entries[first].soft)
        random.Random(first).shuffle(common)  # the order of the records says nothing
        pair = compare_pair("a", "b", common, entries[first], entries[second], DEFAULT_METHOD)
        assert p == (pair.p_hard if metric is Metric.HARD else pair.soft_difference.p)


def test_a_lead_of_the_tasks_that_are_needed_separates_two_entries() -> None:
    strong, weak = entry(set(range(50)), 100), entry(set(range(44)), 100)
    ties = ties_of([weak, strong], Metric.HARD)
    assert ties.smallest.tasks == 6
    assert ties.ranks == ((2, 2), (1, 1))
    nearly = ties_of([entry(set(range(45)), 100), strong], Metric.HARD)
    assert nearly.ranks == ((1, 2), (1, 2))


def test_holm_over_all_pairs_asks_for_more() -> None:
    # The board of SpreadsheetBench Verified: 16 systems on 400 tasks.
    entries = [entry(set(range(300 - place)), 400) for place in range(16)]
    ties = ties_of(entries, Metric.HARD)
    assert ties.smallest.tasks == 13
    assert ties.smallest.hard == pytest.approx(0.0325)
    assert ties.ranks[0] == (1, 13)  # three entries are at least 13 tasks behind
    assert ties.ranks[15] == (4, 16)
    expected = holm([mcnemar_exact(0, second - first) for first, second in sorted(ties.p)])
    assert [ties.p_holm[pair] for pair in sorted(ties.p)] == expected


def test_many_entries_can_differ_although_a_bootstrap_has_a_smallest_p() -> None:
    entries = [entry(set(range(90 if place else 10)), 100) for place in range(30)]
    ties = ties_of(entries, Metric.SOFT)
    assert ties.p[0, 1] == pytest.approx(2 / 10_001)
    assert ties.p[0, 1] * 435 > 0.05  # adjusted by itself, it could show nothing
    assert ties.ranks[0] == (30, 30)


def test_entries_are_compared_on_the_tasks_that_both_have() -> None:
    whole, part = entry(set(range(20)), 40), entry(set(range(10)), 20)
    ties = ties_of([whole, part], Metric.HARD)
    assert ties.p[0, 1] == mcnemar_exact(0, 10)  # of the 20 tasks of the second one


def test_ranks_of_shown_scores_use_nothing_but_them() -> None:
    assert ties_of_shown([0.9, 0.5, 0.505], 300) == ((1, 1), (2, 3), (2, 3))
    assert ties_of_shown([0.9, 0.5], 5) == ((1, 2), (1, 2))
    assert ties_of_shown([], 5) == ()


def test_equal_scores_are_never_ordered() -> None:
    assert rank_intervals([0.5, 0.5], {(0, 1): 0.0}, 0.05) == ((1, 2), (1, 2))


def test_an_empty_board_has_no_ranks() -> None:
    assert ties_of([], Metric.HARD).ranks == ()
