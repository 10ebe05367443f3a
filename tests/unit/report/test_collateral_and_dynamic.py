"""Collateral damage and dynamic correctness in reports and in comparisons of runs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from judge.api.runs import compare_runs
from judge.core.statistics import wilson
from judge.report.build import build_report_data
from judge.report.counts import ScopeTally, scope_lines
from judge.report.html.runs import render_comparison
from judge.report.load import load_run
from judge.report.pairing import comparison_markdown, figure_cells, figure_headings
from judge.report.tables import case_rows
from judge.suites import Suite
from tests.unit.report.runs import Solution, TaskSpec, make_run, make_suite


def damage(count: int, **more: int) -> dict[str, Any]:
    return {"as": "note", "damage": count, "overwritten": count, **more}


def follows(kind: str, asked: str = "nothing", reason: str = "") -> dict[str, Any]:
    changes = [] if reason else [{"case": 2, "edits": 1, "cells": [], "moved": 1}]
    return {
        "as": "note", "class": kind, "asked": asked, "eligible": 1,
        "changes": [{**each, "followed": 1, "false_moves": 0} for each in changes],
        **({"reason": reason} if reason else {}),
    }  # fmt: skip


def said(verdict: str, **comparison: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    return verdict, {"comparison": comparison}


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return make_suite(tmp_path / "suite", [TaskSpec(each, cases=2) for each in "abcd"])


@pytest.fixture
def run(tmp_path: Path, suite: Suite) -> Path:
    first = {
        "a": said("AC", collateral=damage(3, added=1), dynamic=follows("live", "formula")),
        "b": said("AC", collateral=damage(0), dynamic=follows("hard_coded")),
        "c": said("WA", collateral=damage(5), dynamic=follows("not_measurable", reason="static")),
        "d": said("AC", collateral={"as": "note", "problem": "broken"}),
    }
    second = said("AC", collateral=damage(1))
    solutions = [Solution(task, (each, second)) for task, each in first.items()]
    return make_run(tmp_path / "one", suite, solutions)


def document(run: Path) -> dict[str, Any]:
    known: dict[str, Any] = json.loads((run / "report.json").read_text())
    return known


def test_the_shares_are_of_tasks_and_of_accepted_answers(run: Path, suite: Suite) -> None:
    scope = document(run)["scope"]
    found = scope["collateral"]
    # Each task but the last has an output of its first case; all have one of the second.
    assert (found["cases"], found["not_examined"], found["cases_with_damage"]) == (7, 1, 6)
    assert (found["accepted_cases"], found["accepted_cases_with_damage"]) == (6, 5)
    assert (found["median_damage"], found["largest_damage"]) == (1, 5)
    assert (found["tasks"]["part"], found["tasks"]["whole"]) == (4, 4)
    assert found["tasks"]["low"] == wilson(4, 4).low
    dynamic = scope["dynamic"]
    live = dynamic["accepted"]["live"]
    assert (live["part"], live["whole"], live["high"]) == (1, 2, wilson(1, 2).high)
    assert dynamic["every_output"]["classes"] == {"live": 1, "hard_coded": 1, "not_measurable": 1}
    assert dynamic["by_question"]["nothing"]["classes"] == {"hard_coded": 1}
    assert dynamic["by_change"].keys() == {"cases"}
    assert dynamic["not_measurable"] == {"static": 1}


def test_the_lines_say_that_a_constant_is_a_fact(run: Path, suite: Suite) -> None:
    lines = list(scope_lines(document(run)["scope"]))
    assert lines[0].startswith("collateral damage")
    assert "in 4 of 4 (100.0 % [" in lines[0]
    assert "cells were added in 1 outputs, which is not damage" in lines[0]
    assert any("constants are not a fault" in line for line in lines)


def test_a_run_without_the_options_says_nothing(tmp_path: Path, suite: Suite) -> None:
    plain = make_run(tmp_path / "plain", suite, [Solution("a", ("AC", "AC"))])
    assert "scope" not in document(plain)
    assert list(scope_lines(ScopeTally().report())) == []
    rows = case_rows(build_report_data(load_run(plain, str(suite.root)), {}))
    assert not {"damage", "dynamic"} & rows[0].keys()


def test_cases_have_a_column_for_each_figure(run: Path, suite: Suite) -> None:
    rows = case_rows(build_report_data(load_run(run, str(suite.root)), {}))
    assert [(row["damage"], row["dynamic"]) for row in rows[:2]] == [(3, "live"), (1, None)]


def test_runs_are_compared_by_both_figures(tmp_path: Path, run: Path, suite: Suite) -> None:
    plain = make_run(tmp_path / "plain", suite, [Solution(task, ("AC", "AC")) for task in "abcd"])
    found = compare_runs(run, plain)
    assert figure_headings(found) == ["damaged tasks", "live answers"]
    assert figure_cells(found, found.runs[1]) == ["-", "-"]
    first, second = found.to_json()["runs"]
    assert first["collateral"]["value"] == 1.0
    assert not {"collateral", "dynamic"} & second.keys()
    assert "damaged tasks % [interval]" in comparison_markdown(found)
    page = render_comparison(found)
    assert "damaged tasks, %" in page
    assert re.search(r'data-at="/runs/0/dynamic/value"', page)
    alone = compare_runs(plain, plain)
    assert figure_headings(alone) == []
    assert "damaged tasks" not in render_comparison(alone)
