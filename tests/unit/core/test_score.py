from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import pytest

from judge.core.score import (
    GroupScore,
    SubmissionScore,
    earned_share,
    score_submission,
    score_tasks,
    scores_by_task,
)
from judge.core.verdict import CaseResult, Verdict

AC, WA, JE, BT, SK = Verdict.AC, Verdict.WA, Verdict.JE, Verdict.BT, Verdict.SK


def scored(task: str, sample: int, verdicts: Sequence[Verdict | None]) -> SubmissionScore:
    results = [
        None if verdict is None else CaseResult(task, sample, number, verdict)
        for number, verdict in enumerate(verdicts, start=1)
    ]
    return score_submission(task, sample, results)


def score_group(submissions: Iterable[SubmissionScore]) -> GroupScore:
    return score_tasks(scores_by_task(submissions).values())


@pytest.mark.parametrize(
    ("verdicts", "soft", "hard"),
    [
        ([AC, AC, AC], 1.0, 1.0),
        ([AC, WA, AC], 2 / 3, 0.0),
        ([WA], 0.0, 0.0),
        ([AC, JE, AC], 1.0, 1.0),
        ([AC, BT, WA], 0.5, 0.0),
        ([AC, None, AC], 1.0, 1.0),
        ([JE, BT, None, SK], None, None),
        ([], None, None),
    ],
)
def test_a_submission_is_scored_over_its_scored_cases(
    verdicts: list[Verdict | None], soft: float | None, hard: float | None
) -> None:
    score = scored("t", 0, verdicts)
    assert (score.soft, score.hard) == (soft, hard)


@pytest.mark.parametrize("verdict", [each for each in Verdict if each is not AC])
def test_nothing_but_ac_counts_as_accepted(verdict: Verdict) -> None:
    score = scored("t", 0, [AC, verdict])
    assert score.soft == (0.5 if verdict.is_scored else 1.0)


def test_a_group_averages_over_tasks_and_not_over_cases() -> None:
    group = score_group([scored("a", 0, [AC]), scored("b", 0, [WA, WA, WA])])
    assert (group.soft, group.hard, group.tasks, group.cases) == (0.5, 0.5, 2, 4)


def test_several_samples_of_a_task_count_as_one_task() -> None:
    group = score_group(
        [
            scored("a", 0, [AC, AC]),
            scored("a", 1, [AC, WA]),
            scored("b", 0, [WA, WA]),
        ]
    )
    assert group.tasks == 2
    assert group.soft == pytest.approx((0.75 + 0.0) / 2)
    assert group.hard == pytest.approx((0.5 + 0.0) / 2)


def test_excluded_cases_lower_only_the_second_denominator() -> None:
    group = score_group([scored("a", 0, [AC, JE]), scored("b", 0, [None, BT])])
    assert (group.tasks, group.cases, group.soft, group.hard) == (1, 1, 1.0, 1.0)
    assert (group.all_tasks, group.all_cases) == (2, 4)
    assert (group.soft_of_all, group.hard_of_all) == (0.25, 0.0)


def test_a_group_without_anything_has_no_score() -> None:
    group = score_group([])
    assert (group.soft, group.hard, group.soft_of_all, group.tasks) == (None, None, None, 0)


def test_the_order_of_submissions_changes_nothing() -> None:
    submissions = [
        scored(str(number), 0, [AC] * number + [WA] * (7 - number)) for number in range(7)
    ]
    scores = {score_group(order).soft for order in itertools.permutations(submissions)}
    assert len(scores) == 1


def test_a_case_with_points_counts_its_share_in_the_soft_score_alone() -> None:
    cases = [
        CaseResult("t", 0, 1, WA, comparison={"equal": False, "earned_share": 0.75}),
        CaseResult("t", 0, 2, AC, comparison={"equal": True, "earned_share": 1.0}),
    ]
    score = score_submission("t", 0, cases)
    assert (score.soft, score.hard) == (0.875, 0.0)
    assert score_group([score]).soft_of_all == 0.875


def test_points_count_for_nothing_where_a_verdict_was_changed_or_there_is_none() -> None:
    equal = CaseResult("t", 0, 1, WA, comparison={"equal": True, "earned_share": 1.0})
    failed = CaseResult("t", 0, 1, JE, comparison={"equal": False, "earned_share": 0.5})
    whole = CaseResult("t", 0, 1, WA, comparison={"equal": False, "earned_share": 1.0})
    assert (earned_share(equal), earned_share(failed)) == (0.0, 0.0)
    assert 0.999 < earned_share(whole) < 1.0
