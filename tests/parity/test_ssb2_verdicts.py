"""The profile ``ssb2-official`` against recorded verdicts of SpreadsheetBench 2's functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.ssb2_verdicts import (
    FOLDER,
    VERDICTS,
    Row,
    recorded_rows,
    recorded_values,
    score_rows,
)
from judge.compare.published.spreadsheetbench2 import values_agree

pytestmark = pytest.mark.data

KINDS = 21
"""Kinds of rows, by output, mode and outcome."""
SCORED = 4
"""How many rows of each kind are judged by the command."""


@pytest.fixture(scope="module")
def recorded(judge_data: Path) -> Path:
    if not (judge_data / FOLDER / VERDICTS).is_file():
        pytest.skip(f"no recorded verdicts of SpreadsheetBench 2 in {judge_data}")
    return judge_data


def test_every_recorded_verdict_is_reproduced(recorded: Path) -> None:
    rows = list(recorded_rows(recorded))
    assert [row for row in rows if not row.is_reproduced()] == []
    assert len(rows) == 1334


@pytest.mark.slow
def test_judge_score_reproduces_recorded_verdicts(recorded: Path, tmp_path: Path) -> None:
    """Four rows of each kind; the test above shows that the comparison reproduces all of them."""
    kinds: dict[tuple[object, ...], list[Row]] = {}
    for row in recorded_rows(recorded):
        outcome = (row.published[name] for name in ("accuracy", "correct", "crash"))
        kinds.setdefault((row.kind, row.mode, *map(bool, outcome)), []).append(row)
    rows = [row for alike in kinds.values() for row in alike[:SCORED]]
    assert len(kinds) == KINDS
    assert score_rows(rows, tmp_path) == []


def test_every_recorded_pair_of_values_is_reproduced(recorded: Path) -> None:
    values = list(recorded_values(recorded))
    assert [
        (one, other) for one, other, told in values if values_agree(one, other) is not told
    ] == []
    assert len(values) == 50
