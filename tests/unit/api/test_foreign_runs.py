"""A results directory made to judge itself: the claims in its run.json decide nothing.

With --recalc never, so that no sandbox is needed; where values come from is tested with engines in
tests/inference/test_desktop_runs.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from judge.api.commands import score
from judge.api.options import ScoreOptions
from judge.api.rejudging import change_verdict, rejudge
from judge.api.runs import compare_runs
from judge.cli.rejudge import rejudge as command
from judge.cli.tables import print_run
from judge.console import make_console
from judge.grading.store import CASES_FILE, REPORT_FILE, RUN_FILE, SUBMISSIONS_FILE
from judge.report.html import report_html
from judge.report.html.runs import render_comparison
from judge.report.pairing import comparison_markdown
from judge.report.report import Report
from tests.unit.report.runs import TABLE, Solution, TaskSpec, book, make_run, make_suite

WRONG = book((("Name", "Amount"), ("Ann", 7), ("Bob", 2), ("Cyd", 3)))
SUITE = (TaskSpec("1", cases=2), TaskSpec("2", cases=2), TaskSpec("3", cases=1))
DEPARTS = "departs from the suite as published"


def edit(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """Task 1 is right, task 2 wrong in both cases; every record and the report claim AC."""
    suite = make_suite(tmp_path / "suite", SUITE)
    solutions = [
        Solution("1", ("AC", "AC"), output=book(TABLE)),
        Solution("2", ("AC", "AC"), output=WRONG),
    ]
    return make_run(tmp_path / "theirs", suite, solutions)


def correction(suite: Path, case: int) -> dict[str, object]:
    gold = (suite / "spreadsheet" / "2" / f"{case}_2_answer.xlsx").read_bytes()
    return {
        "task": "2",
        "case": case,
        "field": "gold",
        "gold_sha256": hashlib.sha256(gold).hexdigest(),
        "cells": [{"sheet": "Sheet1", "cell": "B2", "was": 1, "now": 7}],
        "reason": "what the output says",
        "evidence": "what the output says",
        "source": "nobody",
    }


def ignoring(run: dict[str, Any], suite: Path) -> None:
    del suite
    run["checker"] = {"ignore": ["A1:XFD1048576"]}


def tolerant(run: dict[str, Any], suite: Path) -> None:
    del suite
    run["checker"] = {"tolerance": 1000}


def correcting(run: dict[str, Any], suite: Path) -> None:
    run["suite"]["corrections"] = [correction(suite, case) for case in (1, 2)]


def excluding(run: dict[str, Any], suite: Path) -> None:
    del suite
    fault = {"task": "2", "field": "exclude", "reason": "hard", "source": "nobody"}
    run["suite"]["corrections"] = [fault]


FORGERIES: Mapping[str, tuple[Callable[[dict[str, Any], Path], None], str]] = {
    "every cell is ignored": (ignoring, "options of the comparison: ignore ['A1:XFD1048576']"),
    "numbers may differ by a thousand": (tolerant, "options of the comparison: tolerance 1000"),
    "golds set to the output": (correcting, "corrections: 2 (2 case 1 gold, 2 case 2 gold)"),
    "the task left out": (excluding, "corrections: 1 (2 exclude)"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_what_a_folder_says_of_rules_decides_nothing(theirs: Path, forgery: str) -> None:
    change, said = FORGERIES[forgery]
    suite = theirs.parent / "suite"
    edit(theirs / RUN_FILE, lambda run: change(run, suite))
    found = rejudge(theirs, recalc="never", dataset=str(suite))
    assert [each.after.verdict.value for each in found.cases] == ["AC", "AC", "WA", "WA"]
    assert found.before["overall"]["soft_restriction"] == 1
    assert found.after["overall"]["soft_restriction"] == 0.5
    assert said in found.not_taken
    assert "departures" not in found.after or said not in found.after["departures"]
    # By name it counts, and the head says so.
    asked = rejudge(theirs, as_recorded=True, recalc="never")
    assert "WA" not in {each.after.verdict.value for each in asked.cases}
    assert said in asked.after["departures"]
    assert asked.not_taken == ()


def test_profile_and_recalculation_of_a_folder_are_listed_and_not_taken(theirs: Path) -> None:
    def change(run: dict[str, Any]) -> None:
        run |= {"profile": "official", "style": ["fill"], "best_of": True}
        run["recalc"] |= {"lenient_names": True, "engine": "ironcalc"}

    edit(theirs / RUN_FILE, change)
    found = rejudge(theirs, recalc="never")
    assert found.rules["profile"] == "standard"
    assert found.rules["style"] == []
    assert (found.rules["recalc"]["engine"], found.rules["recalc"]["lenient_names"]) == (
        "auto",
        False,
    )
    assert set(found.not_taken) == {
        "profile official",
        "styles that are compared: fill",
        "calculation engine ironcalc",
        "newer functions without their prefix are computed",
        "of several samples of a task, the best one counts",
    }
    assert not found.suite_is_named
    document = found.to_json()
    assert document["not_taken"] == list(found.not_taken)
    assert document["departures"] == ["recalculation never"]


def test_a_rejudgement_that_is_written_names_what_it_was_made_by(theirs: Path) -> None:
    edit(theirs / RUN_FILE, lambda run: run.update(checker={"ignore": ["B2"]}, best_of=True))
    rejudge(theirs, recalc="never", checker={"tolerance": 0.5}, apply=True)
    run = json.loads((theirs / RUN_FILE).read_text())
    assert run["checker"] == {"tolerance": 0.5}
    assert "best_of" not in run
    report = json.loads((theirs / REPORT_FILE).read_text())
    assert report["departures"] == [
        "options of the comparison: tolerance 0.5",
        "recalculation never",
    ]


def test_what_is_left_out_of_a_folder_is_counted(theirs: Path) -> None:
    """Failures that are removed from report.json or cases.jsonl would raise the score."""
    edit(theirs / REPORT_FILE, lambda report: report["tasks"].pop())
    lines = (theirs / CASES_FILE).read_text().splitlines()
    (theirs / CASES_FILE).write_text("\n".join(lines[1:]) + "\n")
    found = rejudge(theirs, recalc="never")
    assert found.missing == (
        "1 solutions of submissions.jsonl are not in report.json",
        "1 cases have no recorded verdict",
        "2 of 3 tasks of the suite have no result here",
    )
    (theirs / SUBMISSIONS_FILE).write_text("")
    assert rejudge(theirs, recalc="never").missing[-1].startswith("2 of 3 tasks")


def test_changes_by_hand_are_set_against_the_judges_own_verdicts(theirs: Path) -> None:
    rejudge(theirs, recalc="never", apply=True)
    for case in (1, 2):
        change_verdict(theirs, "2", case, "AC", by="Me", why="I say so")
    found = rejudge(theirs, recalc="never")
    assert found.automatic is not None
    assert found.automatic["overall"]["soft_restriction"] == 0.5
    assert "verdicts that were changed by hand: 2" in found.after["departures"]
    shown = CliRunner().invoke(command, [str(theirs), "--recalc", "never"]).output
    assert "without them: soft 50.00 % after, hard 50.00 % after" in shown


def test_the_command_says_it_before_the_scores(theirs: Path) -> None:
    edit(theirs / RUN_FILE, lambda run: run.update(checker={"ignore": ["A1:XFD1048576"]}))
    shown = CliRunner().invoke(command, [str(theirs), "--recalc", "never"]).output
    head = shown.partition("  soft ")[0]
    assert "as run.json names it" in head
    said = "run.json has options that do not apply here: options of the comparison: ignore"
    assert said in head
    assert "2 of 4 verdicts change" in shown
    options = ["--recalc", "never", "--as-recorded"]
    shown = CliRunner().invoke(command, [str(theirs), *options]).output
    said = f"{DEPARTS}: options of the comparison: ignore ['A1:XFD1048576']"
    assert said in shown.partition("  soft ")[0]
    assert "0 of 4 verdicts change" in shown


def test_every_page_says_in_its_head_what_differs_from_the_rules(theirs: Path) -> None:
    edit(theirs / RUN_FILE, lambda run: run.update(checker={"ignore": ["B2"]}))
    said = "options of the comparison: ignore ['B2']"
    report = Report.of_run(theirs)
    assert said in json.loads(report.to_json())["departures"]
    assert f"**{DEPARTS}**: options of the comparison" in report.to_markdown().partition("##")[0]
    page = report_html(theirs).partition("Soft score")[0]
    assert f"{DEPARTS}: options of the comparison: ignore [" in page
    compared = compare_runs(theirs, theirs)
    assert compared.runs[0].departures == (said, "recalculation never")
    assert said in compared.to_json()["runs"][1]["departures"]
    assert DEPARTS in comparison_markdown(compared).partition("## Scores")[0]
    assert DEPARTS in render_comparison(compared).partition("Scores on the common tasks")[0]


def test_the_table_of_a_score_says_it_above_the_scores(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = make_suite(tmp_path / "suite", SUITE)
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    (outputs / "1_1_output.xlsx").write_bytes(WRONG)
    options = ScoreOptions(
        dataset=str(suite.root), out=tmp_path / "run", recalc="never", checker={"ignore": ["B2"]}
    )
    (run,) = score(outputs, options)
    print_run(run, make_console())
    head = capsys.readouterr().out.partition("Overall")[0]
    assert f"{DEPARTS}: options of the comparison: ignore ['B2']" in head
    assert "recalculation never" in head
