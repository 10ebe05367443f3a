"""The ladder, the budget of each gold, and what levels reveal."""

from __future__ import annotations

import math
from typing import Any

import pytest

from benchmarks.feedback_attack import Contestant, Phase
from judge.serve.boards.feedback import (
    ANSWERS_FOR_EACH_GOLD,
    MAX_STEPS,
    Rung,
    answer_of,
    guessable,
    ladder_bits,
    leaks,
    rounded,
    small_number,
    within_budget,
)


@pytest.mark.parametrize(
    ("score", "shown"), [(0.0, 0.0), (0.5024, 0.5), (0.5026, 0.505), (1.0, 1.0), (2 / 3, 0.665)]
)
def test_scores_are_shown_in_half_points(score: float, shown: float) -> None:
    assert rounded(score) == pytest.approx(shown)


class TestLadder:
    def test_the_first_score_is_shown(self) -> None:
        first = Rung().after(0.412)
        assert first.steps == 1
        assert first.score == pytest.approx(0.41)

    def test_it_stays_below_a_gain_of_a_point(self) -> None:
        first = Rung().after(0.41)
        assert first.after(0.4199) is first
        assert first.after(0.42).score == pytest.approx(0.42)
        assert first.after(0.1) is first

    def test_it_ends(self) -> None:
        assert Rung(0.2, MAX_STEPS).after(0.9) == Rung(0.2, MAX_STEPS)


def record(verdict: str, **fields: Any) -> Any:
    return {"task": "1", "sample": 0, "case": 1, "verdict": verdict, **fields}


class TestAnswers:
    def test_equal_values_in_other_files_are_one_answer(self) -> None:
        comparison = {"differences": [{"cell": "A1", "actual": 7}], "differing_cells": 1}
        one = record("WA", comparison=comparison, run={"output_sha256": "a" * 64})
        two = record("WA", comparison=dict(comparison), run={"output_sha256": "b" * 64})
        assert answer_of(one) == answer_of(two)

    def test_other_values_are_another_answer(self) -> None:
        answers = {
            answer_of(record("WA", comparison={"differences": [{"cell": "A1", "actual": value}]}))
            for value in range(5)
        }
        assert len(answers) == 5

    def test_typed_answers_are_their_text(self) -> None:
        right, wrong = (record(code, run={"answer": "42"}) for code in ("AC", "WA"))
        assert answer_of(right) == answer_of(wrong)

    @pytest.mark.parametrize("verdict", ["RE", "NO", "CE", "TLE", "BT"])
    def test_what_was_not_compared_is_not_an_answer(self, verdict: str) -> None:
        assert answer_of(record(verdict)) is None

    def test_the_budget_is_a_number_of_answers(self) -> None:
        assert within_budget(None)
        assert within_budget(ANSWERS_FOR_EACH_GOLD)
        assert not within_budget(ANSWERS_FOR_EACH_GOLD + 1)


def test_leaks_are_those_of_the_specification() -> None:
    """The table of 300 tasks with 3 cases, for 150 submissions."""
    rows = [(row.level, row.bounded, row.per_submission) for row in leaks(300, 900, 150)]
    assert rows == [
        ("none", True, 0),
        ("score", True, pytest.approx(7.65, abs=0.01)),
        ("score", False, pytest.approx(9.8, abs=0.05)),
        ("tasks", False, 300),
        ("verdicts", False, pytest.approx(2990, abs=1)),
    ]
    assert ladder_bits(150, 300) < 150 * math.log2(201) / 3
    assert ladder_bits(150, 1) < 14, "of one task there are two scores, each shown once at most"


def test_guessable_golds_are_counted() -> None:
    counts = guessable([(7,), ("x",), (True, False), tuple(range(11)), (1, 2, 3)])
    assert (counts.one_cell, counts.whole, counts.few) == (2, 1, 3)
    assert [small_number(value) for value in (True, 100.0, 100.5, "7", None)] == [
        *(None, 100, None, None, None)
    ]


@pytest.mark.parametrize(
    ("level", "found"),
    [("none", 0), ("tasks", 12), ("score, rounded", 12), ("score, ladder alone", 12)],
)
def test_the_attack_finds_what_a_level_gives_away(level: str, found: int) -> None:
    golds = {str(task): 5 + 8 * task for task in range(12)}
    contestant = Contestant(Phase(level, golds, 300, 5_000), solved=180)
    contestant.recover_numbers()
    assert contestant.found == (golds if found else {})


def test_the_budget_ends_the_attack() -> None:
    golds = {str(task): 5 + 8 * task for task in range(12)}
    contestant = Contestant(Phase("score, ladder and budget", golds, 300, 5_000), solved=180)
    contestant.recover_numbers()
    below = {task: gold for task, gold in golds.items() if gold < ANSWERS_FOR_EACH_GOLD}
    assert contestant.found == below
