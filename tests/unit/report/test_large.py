"""Reports with more cases than are shown: the same numbers, without details of single cases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from judge.report.html import report_html
from judge.report.load import load_run
from judge.report.markdown import render_markdown
from judge.report.report import Report, report_data
from tests.unit.report.runs import SHEET, Solution, TaskSpec, make_run, make_suite

ASKED = {"tokens": {"prompt": 10, "completion": 20}, "cost": 0.5, "conversation": ["a secret"]}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path / "cache"))
    suite = make_suite(tmp_path / "suite", [TaskSpec("1"), TaskSpec("2", kind=SHEET)])
    timed = ("TLE", {"timings_s": {"run": 3.0, "comparison": 0.25}})
    solutions = [
        Solution("1", ["AC", "WA", timed], record=ASKED),
        Solution("1", ["AC", "AC", "AC"], sample=1),
        Solution("2", ["AC", ("JE", {"cause": "no room"}), None]),
    ]
    return make_run(tmp_path / "run", suite, solutions)


def test_the_numbers_are_those_of_all_cases(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = report_data(run)
    assert load_run(run, details=False).is_large is False
    monkeypatch.setattr("judge.report.load.MAX_SHOWN_CASES", 7)
    monkeypatch.setattr("judge.report.build.MAX_SHOWN_CASES", 7)
    monkeypatch.setattr("judge.report.build.MAX_EXCLUSIONS", 1)
    large = report_data(run)
    (note,) = (each for each in large.notes if "only up to 7" in each)
    assert "the run has 9 cases" in note
    assert large.tasks == ()
    assert large.exclusions == whole.exclusions[:1]
    assert len(whole.exclusions) == 2
    assert large == replace(whole, tasks=(), notes=large.notes, exclusions=whole.exclusions[:1]), (
        "everything else is the same"
    )
    assert note in render_markdown(large)
    assert Report(large).rows("scores") == Report(whole).rows("scores")
    assert Report(large).rows("cases") == []
    page = report_html(run)
    assert "only up to 7" in page
    assert "a secret" not in page
    assert "a secret" in str(load_run(run).submissions[0].record), "where details are needed"
