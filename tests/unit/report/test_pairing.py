from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from judge.api.runs import compare_runs
from judge.core.statistics import holm, mcnemar_exact
from judge.errors import StoreError, UsageError
from judge.report.html.plots import difference_scale
from judge.suites import Suite
from tests.unit.report.runs import Solution, TaskSpec, make_run, make_suite

ALL, SOME, NONE = ("AC", "AC"), ("AC", "WA"), ("WA", "WA")
IDS = [str(number) for number in range(12)]


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return make_suite(tmp_path / "suite", [TaskSpec(each, cases=2) for each in IDS])


def run_of(folder: Path, suite: Suite, verdicts: Sequence[tuple[str, ...]]) -> Path:
    solutions = [Solution(task, each) for task, each in zip(IDS, verdicts, strict=False)]
    return make_run(folder, suite, solutions)


def test_won_lost_and_how_sure_that_is(tmp_path: Path, suite: Suite) -> None:
    first = run_of(tmp_path / "a", suite, [ALL] * 2 + [NONE] * 8 + [SOME] * 2)
    second = run_of(tmp_path / "b", suite, [NONE] + [ALL] * 9 + [SOME] * 2)
    found = compare_runs(first, second)
    (pair,) = found.pairs
    assert (pair.first, pair.second, pair.tasks) == ("a", "b", 12)
    assert pair.won == tuple(IDS[2:10])
    assert pair.lost == ("0",)
    assert pair.p_hard == pair.p_hard_holm == mcnemar_exact(1, 8)
    assert pair.hard_difference.difference == pytest.approx(7 / 12)
    assert pair.soft_difference.difference == pytest.approx(7 / 12)
    low, high = pair.soft_difference.low, pair.soft_difference.high
    assert low is not None
    assert high is not None
    assert 0 < low < 7 / 12 < high
    assert pair.soft_difference.p < 0.05
    assert pair.smallest_soft is not None
    assert [run.hard_restriction.value for run in found.runs] == [2 / 12, 9 / 12]
    assert found.fewest_one_sided == 6


def test_the_other_order_turns_everything_round(tmp_path: Path, suite: Suite) -> None:
    first = run_of(tmp_path / "a", suite, [ALL] * 8 + [NONE] * 4)
    second = run_of(tmp_path / "b", suite, [SOME] * 12)
    there = compare_runs(first, second).pairs[0]
    back = compare_runs(second, first).pairs[0]
    assert there.won == back.lost == ()
    assert there.lost == back.won
    assert there.p_hard == back.p_hard
    assert there.better == back.worse == tuple(IDS[8:])
    difference = back.soft_difference.difference
    assert difference is not None
    assert there.soft_difference.difference == pytest.approx(-difference)


def test_only_common_tasks_with_a_score_count(tmp_path: Path, suite: Suite) -> None:
    first = run_of(tmp_path / "a", suite, [ALL, NONE, ("JE", "JE")])
    second = run_of(tmp_path / "b", suite, [ALL, ALL])
    found = compare_runs(first, second)
    assert (found.tasks, found.left_out) == (2, 0)
    third = run_of(tmp_path / "c", suite, [ALL] * 5)
    found = compare_runs(first, third)
    assert (found.tasks, found.left_out) == (2, 3)


def test_several_runs_are_adjusted(tmp_path: Path, suite: Suite) -> None:
    runs = [
        run_of(tmp_path / "a", suite, [NONE] * 12),
        run_of(tmp_path / "b", suite, [ALL] * 7 + [NONE] * 5),
        run_of(tmp_path / "c", suite, [ALL] * 12),
    ]
    found = compare_runs(*runs)
    assert [(each.first, each.second) for each in found.pairs] == [
        ("a", "b"),
        ("a", "c"),
        ("b", "c"),
    ]
    assert [each.p_hard_holm for each in found.pairs] == holm([each.p_hard for each in found.pairs])
    assert found.pairs[0].p_hard_holm > found.pairs[0].p_hard


def test_the_seed_is_used_and_recorded(tmp_path: Path, suite: Suite) -> None:
    first = run_of(tmp_path / "a", suite, [ALL] * 5 + [NONE] * 7)
    second = run_of(tmp_path / "b", suite, [SOME] * 12)
    usual, again = compare_runs(first, second), compare_runs(first, second)
    other = compare_runs(first, second, seed=5, resamples=500)
    assert usual == again
    assert (other.method.seed, other.method.resamples) == (5, 500)
    assert other.pairs[0].p_hard == usual.pairs[0].p_hard


def test_folders_of_one_name_are_distinguished(tmp_path: Path, suite: Suite) -> None:
    first = run_of(tmp_path / "x" / "run", suite, [ALL])
    second = run_of(tmp_path / "y" / "run", suite, [ALL])
    assert [run.name for run in compare_runs(first, second).runs] == [str(first), str(second)]


def test_samples_count_by_their_majority(tmp_path: Path, suite: Suite) -> None:
    first = run_of(tmp_path / "a", suite, [NONE])
    samples = [Solution("0", each, sample=n) for n, each in enumerate((ALL, ALL, NONE))]
    found = compare_runs(first, make_run(tmp_path / "b", suite, samples))
    assert found.pairs[0].won == ("0",)
    assert found.runs[1].hard_restriction.value == pytest.approx(2 / 3)
    assert "more than half" in found.notes[0]


def test_runs_that_cannot_be_compared(tmp_path: Path, suite: Suite) -> None:
    first = run_of(tmp_path / "a", suite, [ALL])
    other = make_suite(tmp_path / "other", [TaskSpec("0", cases=2)])
    with pytest.raises(UsageError, match="different suites"):
        compare_runs(first, run_of(tmp_path / "b", other, [ALL]))
    with pytest.raises(UsageError, match="at least two"):
        compare_runs(first)
    with pytest.raises(UsageError, match="no scored task in common"):
        compare_runs(first, make_run(tmp_path / "c", suite, [Solution("5", ALL)]))
    with pytest.raises(StoreError, match="holds no run"):
        compare_runs(first, tmp_path)


def test_the_matrix_has_tasks_on_which_runs_disagree_first(tmp_path: Path, suite: Suite) -> None:
    first = run_of(tmp_path / "a", suite, [ALL] * 12)
    second = run_of(tmp_path / "b", suite, [ALL] * 5 + [SOME] + [ALL] * 6)
    found = compare_runs(first, second)
    assert [row.task for row in found.matrix] == ["5", *IDS[:5], *IDS[6:]]
    assert [row.disagree for row in found.matrix] == [True] + [False] * 11
    assert [case.verdicts for case in found.matrix[0].cases] == [("AC", "AC"), ("AC", "WA")]
    assert found.to_json()["matrix"][0] == {
        "task": "5",
        "disagree": True,
        "cases": [
            {"sample": 0, "case": 1, "verdicts": ["AC", "AC"]},
            {"sample": 0, "case": 2, "verdicts": ["AC", "WA"]},
        ],
    }


@pytest.mark.parametrize(
    ("widest", "end"), [(0.01, 0.05), (0.05, 0.05), (0.22, 0.25), (0.3, 0.5), (0.51, 1.0)]
)
def test_the_axis_of_differences_ends_beyond_their_intervals(widest: float, end: float) -> None:
    small = {"difference": 0.0, "low": None, "high": 0.005}
    wide = {"difference": 0.0, "low": -widest, "high": 0.004}
    assert difference_scale([{"soft_difference": small, "hard_difference": wide}]) == end
