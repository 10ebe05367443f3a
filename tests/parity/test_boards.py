"""Boards against verdicts of a trial on SheetCopilot's files, and against changed golds."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.boards import PROFILES, VERDICTS, Row, recorded, verdicts, wrong_mutants
from judge.suites.suite import load_suite

pytestmark = pytest.mark.data

UNTOUCHED = {12, 73, 171, 206}
"""Tasks whose untouched inputs the published evaluation accepts."""

WITHOUT_EFFECT = {12, 87, 206}
"""Tasks with a board that any workbook passes, which the judge does not use."""

_EVERY = 9


@pytest.fixture(scope="module")
def rows(judge_data: Path) -> list[Row]:
    if not (judge_data / VERDICTS).is_file():
        pytest.skip(f"no SheetCopilot in {judge_data}")
    return recorded(judge_data)[0]


def test_recorded_verdicts_are_reproduced(rows: list[Row]) -> None:
    assert len(rows) == 365
    told = {18, *UNTOUCHED, *WITHOUT_EFFECT}
    chosen = [
        row for place, row in enumerate(rows) if place % _EVERY == 0 or row.record["order"] in told
    ]
    given = list(verdicts(chosen, "official"))
    assert [each for each in given if each.given is not each.recorded] == []
    passed = {each.row.record["order"] for each in given if each.what == "input" and each.given}
    assert passed == UNTOUCHED
    own = list(verdicts(chosen, "standard"))
    assert {each.row.record["order"] for each in own if each.given is not each.recorded} == {
        18,
        *WITHOUT_EFFECT,
    }


@pytest.mark.parametrize("profile", PROFILES)
def test_changed_golds_are_refused_if_the_board_checks_the_change(
    rows: list[Row], profile: str
) -> None:
    counts, wrong = wrong_mutants(rows[:: 2 * _EVERY], profile)
    assert wrong == []
    assert sum(counts.values()) > 5


def test_the_published_folder(judge_data: Path) -> None:
    if not (judge_data / VERDICTS).is_file():
        pytest.skip(f"no SheetCopilot in {judge_data}")
    suite = load_suite(judge_data / "sheetcopilot")
    assert len(suite.tasks) == 221
    left_out = [task for task in suite.tasks if "left_out" in task.checker.options]
    assert len(left_out) == 17
    assert all("GDPBreakdown" in task.id for task in left_out)
    counts = [sum(task.groups[name] == "yes" for task in suite.tasks) for name in DIVISIONS]
    assert counts == [165, 97, 65, 53, 39, 24]


DIVISIONS = (
    "entry_and_manipulation",
    "formula",
    "formatting",
    "charts",
    "pivot_table",
    "management",
)
