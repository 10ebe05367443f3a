"""The profile ``official`` against the recorded verdicts of the published script."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from benchmarks.disagreements import Disagreement, disagreement
from benchmarks.pairs import Pair, compare_pair, recorded_pairs
from judge.compare.cells.comparison import Comparison

pytestmark = pytest.mark.data


@dataclass
class Compared:
    """The results for the recorded pairs.

    Attributes:
        pairs: how many there are.
        changed: those that ``official`` judges otherwise than is on record, with what it says.
        disagreements: those on which ``standard`` and ``official`` disagree.
    """

    pairs: int = 0
    changed: list[tuple[Pair, Comparison]] = field(default_factory=list)
    disagreements: list[Disagreement] = field(default_factory=list)


@pytest.fixture(scope="module")
def compared(judge_data: Path) -> Compared:
    """Judges a pair with both profiles in turn, while its workbooks are open."""
    compared = Compared()
    for pair in recorded_pairs(judge_data):
        compared.pairs += 1
        official = compare_pair(pair, "official", max_differences=1)
        falls_over = any("script crashes" in note for note in official.notes)
        if official.equal is not pair.accepted or falls_over is not bool(pair.raised):
            compared.changed.append((pair, official))
        found = disagreement(pair)
        if found is not None:
            compared.disagreements.append(found)
    return compared


def test_every_recorded_verdict_is_reproduced(compared: Compared) -> None:
    assert not compared.changed
    assert compared.pairs == 3584


def test_standard_accepts_every_gold_as_its_own_answer(compared: Compared) -> None:
    rejected = [
        each
        for each in compared.disagreements
        if each.pair.kind == "gold itself" and not each.standard
    ]
    assert not rejected


def test_each_disagreement_has_a_reason_that_is_documented(compared: Compared) -> None:
    found = compared.disagreements
    documented = Path(__file__, "../../../docs/disagreements.md").resolve().read_text()
    assert f"disagree on {len(found)}." in documented
    for each in found:
        row = f"| {each.pair.task} | {each.pair.gold.name} | {each.pair.prediction.name} |"
        assert row in documented
        assert each.reason.replace("|", "\\|") in documented
        assert not each.reason.startswith("values"), each
