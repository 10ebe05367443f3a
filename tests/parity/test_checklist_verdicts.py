"""Checks of published checklist suites against recorded outcomes of their own code."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.checklists import JOBS, SUITES, Run, agree, engines, recorded_outcomes
from judge.compare.cells.computing import NoEngines

pytestmark = pytest.mark.data

CHECKS = {
    "ib-bench": 1163,
    "officebench": 809,
    "opencomputer": 5015,
    "skillsbench": 1210,
    "waa-v2": 238,
}


@pytest.fixture(scope="module")
def checklists(judge_data: Path) -> Path:
    folder = judge_data / "checklists"
    if not (folder / JOBS).is_file():
        pytest.skip(f"no recorded checklists in {judge_data}")
    return folder


@pytest.mark.parametrize("suite", sorted(SUITES))
def test_every_recorded_outcome_is_given_again(checklists: Path, suite: str) -> None:
    compute = engines() if suite == "opencomputer" else NoEngines()
    recorded = recorded_outcomes(checklists)
    judged = {line.key: line.outcome for line in Run(checklists, compute).lines([suite])}
    expected = {key: outcome for key, outcome in recorded.items() if key[0] == suite}
    assert len(expected) == CHECKS[suite]
    assert {
        key: (outcome, judged.get(key))
        for key, outcome in expected.items()
        if key not in judged or not agree(outcome, judged[key])
    } == {}
