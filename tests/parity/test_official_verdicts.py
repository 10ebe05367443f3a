"""The profile ``official`` against the recorded verdicts of the published script."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.disagreements import Disagreement, disagreements
from benchmarks.pairs import Pair, compare_pair, recorded_pairs

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def pairs(judge_data: Path) -> list[Pair]:
    return list(recorded_pairs(judge_data))


def test_every_recorded_verdict_is_given_again(pairs: list[Pair]) -> None:
    wrong = []
    for pair in pairs:
        comparison = compare_pair(pair, "official", max_differences=1)
        falls_over = any("falls over" in note for note in comparison.notes)
        if comparison.equal is not pair.accepted or falls_over is not bool(pair.raised):
            wrong.append((pair, comparison.notes, comparison.differences))
    assert not wrong
    assert len(pairs) == 3584


@pytest.fixture(scope="module")
def found(pairs: list[Pair]) -> list[Disagreement]:
    return disagreements(pairs)


def test_standard_accepts_every_gold_as_its_own_answer(found: list[Disagreement]) -> None:
    rejected = [each for each in found if each.pair.kind == "gold itself" and not each.standard]
    assert not rejected


def test_each_disagreement_has_a_reason_that_is_documented(found: list[Disagreement]) -> None:
    documented = Path(__file__, "../../../docs/disagreements.md").resolve().read_text()
    assert f"disagree on {len(found)}." in documented
    for each in found:
        row = f"| {each.pair.task} | {each.pair.gold.name} | {each.pair.prediction.name} |"
        assert row in documented
        assert each.reason.replace("|", "\\|") in documented
        assert not each.reason.startswith("values"), each
