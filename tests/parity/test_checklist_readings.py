"""Checklist suites as opened by the judge: recorded outcomes, and where the profiles differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.checklist_readings import RIGHT, difference_of, published_points
from benchmarks.checklist_tasks import items_of
from benchmarks.checklists import JOBS, Run, agree, engines, jobs_in, recorded_outcomes
from judge.compare.cells.computing import NoEngines

pytestmark = pytest.mark.data

CHECKS = {
    "ib-bench": 1163,
    "officebench": 809,
    "opencomputer": 5015,
    "skillsbench": 1210,
    "waa-v2": 238,
}
"""Suite -> how many outcomes of its own code are recorded."""

POINTS = {
    "Mistral-Large-3/20260121_131522": (56, 771, 7, 46),
    "Mistral-Large-3/20260121_140528": (28, 610, 2, 40),
    "claude-opus-4-5-20251101/20260114_165753_squashed": (964, 1712, 67, 113),
    "gpt-4o/20260120_233344": (172, 921, 16, 55),
    "gpt-4o/20260120_234829": (60, 606, 7, 47),
    "gpt-5.2-2025-12-11/20260114_164451_squashed": (326, 817, 22, 53),
    "gpt-5.2-chat/20260121_155440": (336, 870, 20, 42),
    "gpt-5.2-chat/20260121_180411": (10, 120, 1, 9),
}
"""Run -> points earned and possible, criteria passed and in total, by the published scorer."""


@pytest.fixture(scope="module")
def checklists(judge_data: Path) -> Path:
    folder = judge_data / "checklists"
    if not (folder / JOBS).is_file():
        pytest.skip(f"no recorded checklists in {judge_data}")
    return folder


@pytest.mark.parametrize("suite", CHECKS)
def test_the_opened_suites_reproduce_every_recorded_outcome(checklists: Path, suite: str) -> None:
    compute = engines() if suite == "opencomputer" else NoEngines()
    recorded = {
        key: outcome for key, outcome in recorded_outcomes(checklists).items() if key[0] == suite
    }
    judged = {
        line.key: line.outcome for line in Run(checklists, compute, tasks=True).lines([suite])
    }
    assert len(recorded) == CHECKS[suite]
    assert {
        key: (outcome, judged.get(key))
        for key, outcome in recorded.items()
        if key not in judged or not agree(outcome, judged[key])
    } == {}


def test_the_published_runs_have_their_points(checklists: Path) -> None:
    points = published_points(checklists, NoEngines())
    assert {
        run: (sums.earned, sums.possible, sums.passed, sums.criteria)
        for run, sums in points.items()
        if sums.criteria
    } == POINTS


def test_four_published_formulas_without_values_become_right(checklists: Path) -> None:
    compute = engines()
    turned = [
        (job["job"].split("/")[1], entry.item.fields["check"]["cell"], entry.other.found)  # type: ignore[index,union-attr]
        for job in jobs_in(checklists, ["ib-bench"])
        if job["kind"] == "published" and job["task"] in {"e-011", "e-014", "m-005", "e-020"}
        for entry in items_of(checklists, job, compute, both=True)
        if (difference := difference_of(job, entry)) is not None
        and (difference.fault, difference.turn) == ("B1", RIGHT)
    ]
    assert sorted(turned) == [
        ("Mistral-Large-3", "D35", 30516),
        ("claude-opus-4-5-20251101", "N96", 0),
        ("claude-opus-4-5-20251101", "X96", 0),
        ("gpt-4o", "D41", 170854),
    ]
