"""Rejudging stored outputs, with --recalc never so that no sandbox is needed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import judge.api.resources
from judge.api import ScoreOptions, score
from judge.api.rejudging import change_verdict
from judge.api.rejudging import rejudge as judge_again
from judge.core.limits import Limits
from judge.errors import StoreError, SuiteError, UsageError
from judge.grading.store import CASES_FILE, RunDirectory
from judge.report.report import report_data
from judge.sandbox.contract import OutputStatus, RunResult, RunStatus
from judge.sandbox.scripted import ScriptedSandbox
from tests.unit.report.runs import TABLE, Solution, TaskSpec, book, make_run, make_suite

AS_TEXT = book((("Name", "Amount"), ("Ann", "1"), ("Bob", 2), ("Cyd", 3)))
"""Equal under `standard`, not under `strict`: a number stored as text."""
SUITE = (TaskSpec("1", cases=2), TaskSpec("2", cases=2))
rejudge = partial(judge_again, recalc="never")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    suite = make_suite(tmp_path / "suite", SUITE)
    solutions = [
        Solution("1", ("AC", "AC"), output=AS_TEXT),
        Solution("2", ("AC", ("TLE", {"run": {"output_sha256": None}})), output=book(TABLE)),
    ]
    return make_run(tmp_path / "run", suite, solutions)


def records(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / CASES_FILE).read_text().splitlines()]


def test_a_preview_writes_nothing(run: Path) -> None:
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    found = rejudge(run, profile="strict")
    assert [(each.after.task_id, each.after.case) for each in found.changed] == [("1", 1), ("1", 2)]
    assert found.changed[0].before.verdict == "AC"
    assert found.changed[0].after.verdict == "WA"
    assert "number as text" in found.changed[0].after.cause
    assert found.before["overall"]["soft_restriction"] == 0.75
    assert found.after["overall"]["soft_restriction"] == 0.25
    assert found.after["run"]["profile"] == "strict"
    assert not found.applied
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_applied_verdicts_stand_beside_the_earlier_ones(run: Path) -> None:
    preview = rejudge(run, profile="strict")
    found = rejudge(run, profile="strict", apply=True)
    assert found.after == preview.after
    assert json.loads((run / "report.json").read_text()) == found.after
    verdicts = [record["verdict"] for record in records(run)]
    assert verdicts == ["AC", "AC", "AC", "TLE", "WA", "WA", "AC", "TLE"]
    described = json.loads((run / "run.json").read_text())
    assert described["profile"] == "strict"
    (entry,) = described["rejudged"]
    assert (entry["from"]["profile"], entry["to"]["profile"]) == ("standard", "strict")
    assert entry["changed_cases"] == 2
    # What ran is as it ran.
    assert records(run)[4]["run"] == records(run)[0]["run"]
    assert records(run)[4]["run_key"] == records(run)[0]["run_key"]


def test_the_same_again_is_nothing_to_do(run: Path) -> None:
    rejudge(run, profile="strict", apply=True)
    size = len(records(run))
    again = rejudge(run, profile="strict", apply=True)
    assert again.changed == []
    assert len(records(run)) == size


def test_there_and_back(run: Path) -> None:
    before = json.loads((run / "report.json").read_text())
    rejudge(run, profile="strict", apply=True)
    rejudge(run, profile="standard", apply=True)
    after = json.loads((run / "report.json").read_text())
    assert after["overall"] == before["overall"]


def test_rules_that_are_not_named_stay_as_they_were_if_that_is_asked_for(run: Path) -> None:
    rejudge(run, profile="strict", apply=True)
    assert rejudge(run).rules["profile"] == "standard"
    as_recorded = judge_again(run, as_recorded=True)
    assert as_recorded.rules["profile"] == "strict"
    assert as_recorded.rules["recalc"]["mode"] == "never"
    assert judge_again(run, as_recorded=True, style=["fill"]).rules["style"] == ["fill"]


def edit(run: Path, task: str, case: int, **fields: Any) -> None:
    """Changes the record of a case, as `sed` would."""
    edited = records(run)
    (record,) = (each for each in edited if (each["task"], each["case"]) == (task, case))
    record.update(fields)
    (run / CASES_FILE).write_text("".join(json.dumps(each) + "\n" for each in edited))


def unproven(run: Path, **options: Any) -> dict[tuple[str, int], str]:
    return {
        (each.after.task_id, each.after.case): each.unproven
        for each in rejudge(run, **options).cases
        if each.unproven
    }


@pytest.fixture
def scored(tmp_path: Path) -> Path:
    """A really scored run: task 1 right and wrong, task 2 right, and a case without output."""
    suite = make_suite(tmp_path / "suite", SUITE)
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    wrong = book((("Name", "Amount"), ("Ann", 7), ("Bob", 2), ("Cyd", 3)))
    for name, data in (("1_1", book(TABLE)), ("2_1", wrong), ("1_2", book(TABLE))):
        (outputs / f"{name}_output.xlsx").write_bytes(data)
    run = tmp_path / "run"
    score(outputs, ScoreOptions(dataset=str(suite.root), out=run, recalc="never", jobs=1))
    assert [each["verdict"] for each in records(run)] == ["AC", "WA", "AC", "NO"]
    return run


def test_an_honest_record_is_found_to_be_right(scored: Path) -> None:
    found = rejudge(scored)
    assert not found.changed
    assert [each.record for each in found.cases] == [None] * 4
    assert found.after["overall"] == found.before["overall"]


def test_a_verdict_that_was_edited_is_contradicted(scored: Path) -> None:
    edit(scored, "1", 2, verdict="AC", cause="")
    found = rejudge(scored)
    (case,) = found.changed
    assert (case.before.verdict, case.after.verdict, case.contradicted) == ("AC", "WA", True)
    assert "B2" in case.after.cause
    assert found.before["overall"]["soft_restriction"] == 0.75
    assert found.after["overall"]["soft_restriction"] == 0.5
    assert found.to_json()["cases"][0]["contradicted"] is True
    rejudge(scored, apply=True)
    assert records(scored)[-1]["verdict"] == "WA"
    assert not rejudge(scored).changed


def test_a_verdict_that_was_lowered_is_contradicted_as_well(scored: Path) -> None:
    edit(scored, "1", 1, verdict="WA", cause="B2: wrong value")
    (case,) = rejudge(scored).changed
    assert (case.before.verdict, case.after.verdict, case.contradicted) == ("WA", "AC", True)


@pytest.mark.parametrize(
    ("claimed", "why"),
    [
        ("AC", "the record names no output workbook"),
        ("BT", "the files of the suite show no fault"),
        ("SK", "the files of the suite show no fault"),
    ],
)
def test_what_would_win_something_needs_proof(scored: Path, claimed: str, why: str) -> None:
    """A case without an output whose record was edited so that it counts, or does not count."""
    edit(scored, "2", 2, verdict=claimed)
    found = rejudge(scored)
    assert unproven(scored) == {("2", 2): why}
    assert [each.after.verdict for each in found.changed] == ["JE"]
    everything = found.after["overall"]["including_excluded"]
    assert everything["soft_restriction"] == 0.5
    assert why in found.after["overall"]["excluded"]["JE"][0]["reason"]


def test_an_output_that_is_gone_proves_nothing(run: Path) -> None:
    for path in (run / "workbooks").glob("*/*"):
        path.unlink()
    gone = "its output workbook is no longer stored"
    assert unproven(run) == {("1", 1): gone, ("1", 2): gone, ("2", 1): gone}
    found = rejudge(run, profile="strict")
    # Not scored, but counted among the failures where everything is counted.
    assert found.after["overall"]["verdicts"] == {"TLE": 1, "JE": 3}
    assert found.after["overall"]["including_excluded"]["soft_restriction"] == 0
    assert len(found.to_json()["unproven"]) == 3


@pytest.mark.parametrize("profile", [None, "strict"])
def test_a_failed_case_stays_failed_without_its_output(scored: Path, profile: str | None) -> None:
    """Deleting the evidence of a failure must not remove the case from the score."""
    (scored.parent / "outputs" / "2_1_output.xlsx").unlink()
    found = rejudge(scored, profile=profile)
    assert unproven(scored) == {("1", 2): "its output workbook is no longer stored"}
    assert found.after["tasks"][0]["test_case_results"] == ["AC", "WA"]


def test_an_output_that_was_exchanged_proves_nothing(run: Path) -> None:
    digest = records(run)[0]["run"]["output_sha256"]
    (run / "workbooks" / digest[:2] / f"{digest}.xlsx").write_bytes(book(TABLE))
    why = "its stored output is not the one that the record names"
    assert unproven(run) == {("1", 1): why, ("1", 2): why}


def test_a_case_that_was_never_run_waits_for_judge_score(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", SUITE)
    run = make_run(tmp_path / "run", suite, [Solution("1", ("JE", None))])
    assert unproven(run) == {("1", 1): "it was not run: `judge score` tries again"}


# -- programs run again ----------------------------------------------------------------------------


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> ScriptedSandbox:
    right = RunResult(status=RunStatus.OK, output_status=OutputStatus.COLLECTED, output=book(TABLE))
    nothing = RunResult(status=RunStatus.OK, output_status=OutputStatus.MISSING)
    scripted = ScriptedSandbox([right, nothing, right, right])
    monkeypatch.setattr(judge.api.resources, "open_sandbox", lambda *_, **__: scripted)
    return scripted


def test_programs_of_others_are_run_again(run: Path, sandbox: ScriptedSandbox) -> None:
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    found = rejudge(run, rerun=True, jobs=1, limits=Limits(cpu_s=7))
    assert [each.limits.cpu_s for each in sandbox.requests] == [7] * 4
    assert [each.after.verdict for each in found.cases] == ["AC", "NO", "AC", "AC"]
    assert [(each.before.verdict, each.after.verdict) for each in found.changed] == [
        ("AC", "NO"),
        ("TLE", "AC"),
    ]
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_what_ran_again_can_be_written(run: Path, sandbox: ScriptedSandbox) -> None:
    rejudge(run, rerun=True, apply=True, jobs=1, limits=Limits(cpu_s=7))
    assert [each["verdict"] for each in records(run)[4:]] == ["AC", "NO", "AC", "AC"]
    described = json.loads((run / "run.json").read_text())
    assert described["limits"]["cpu_s"] == 7
    assert described["sandbox"]["backend"] == "scripted"
    # From now on the run is ours, and nothing of it is run twice.
    options = ScoreOptions(recalc="never", jobs=1, limits=Limits(cpu_s=7))
    (again,) = score(run, options)
    assert again.reused == 4
    assert len(sandbox.requests) == 4
    assert not rejudge(run).changed


def test_finished_outputs_hold_no_programs(scored: Path) -> None:
    with pytest.raises(UsageError, match="no programs to run"):
        rejudge(scored, rerun=True)


def test_without_its_suite_nothing_is_judged(run: Path) -> None:
    (run.parent / "suite" / "dataset.json").unlink()
    with pytest.raises(SuiteError, match="golds are needed"):
        rejudge(run, profile="strict")


def test_two_judges_do_not_write_at_once(run: Path) -> None:
    with RunDirectory(run) as other:
        other.lock()
        assert rejudge(run, profile="strict").changed  # looking is always allowed
        with pytest.raises(StoreError, match="another judge"):
            rejudge(run, profile="strict", apply=True)


def test_a_verdict_changed_by_hand_outlives_rejudging(run: Path) -> None:
    change = change_verdict(run, "1", 1, "NC", by="Ann", why="its formula was lost")
    assert change is not None
    report = json.loads((run / "report.json").read_text())
    assert report["overall"]["verdicts"] == {"AC": 2, "NC": 1, "TLE": 1}
    assert report["tasks"][0]["manual_verdicts"]["1"]["by"] == "Ann"
    found = rejudge(run, profile="strict", apply=True)
    assert found.after["tasks"][0]["test_case_results"] == ["NC", "WA"]
    data = report_data(run)
    manual = data.tasks[0].cases[0].manual
    assert manual is not None
    assert (manual.automatic, manual.verdict) == ("WA", "NC")
    assert change_verdict(run, "1", 1, None, by="Ann", why="found it") is None
    report = json.loads((run / "report.json").read_text())
    assert report["tasks"][0]["test_case_results"] == ["WA", "WA"]
    assert "manual_verdicts" not in report["tasks"][0]


def test_changes_that_cannot_be(run: Path) -> None:
    with pytest.raises(UsageError, match="no verdict 'GOOD'"):
        change_verdict(run, "1", 1, "GOOD", by="Ann", why="so")
    with pytest.raises(UsageError, match="task 5, sample 0"):
        change_verdict(run, "5", 1, "AC", by="Ann", why="so")
    with pytest.raises(UsageError, match="glitter"):
        rejudge(run, style=["glitter"])


def test_finished_outputs_are_judged_again_from_their_folder(tmp_path: Path) -> None:
    """Scored for real, changed by hand, scored again by other rules, and rejudged."""
    suite = make_suite(tmp_path / "suite", SUITE)
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    for name in ("1_1", "2_1", "1_2"):
        (outputs / f"{name}_output.xlsx").write_bytes(AS_TEXT)
    run = tmp_path / "run"
    options = ScoreOptions(dataset=str(suite.root), out=run, recalc="never", jobs=1)
    (scored,) = score(outputs, options)
    assert scored.report["tasks"][0]["test_case_results"] == ["AC", "AC"]
    change_verdict(run, "1", 2, "WA", by="Ann", why="wrong currency")
    (again,) = score(run, replace(options, out=None, profile="strict"))
    assert again.report["tasks"][0]["test_case_results"] == ["WA", "WA"]
    assert "by Ann" in again.report["tasks"][0]["causes"]["2"]
    (third,) = score(run, replace(options, out=None))
    assert third.report["tasks"][0]["test_case_results"] == ["AC", "WA"]
    found = rejudge(run, profile="strict")
    assert [(each.after.task_id, each.after.case) for each in found.changed] == [
        ("1", 1),
        ("1", 2),
        ("2", 1),
    ]
    (outputs / "1_1_output.xlsx").write_bytes(book(TABLE))
    why = "1_1_output.xlsx is not the workbook that the record names"
    assert unproven(run, profile="strict") == {("1", 1): why}


def correction_of_b3(suite: Path, now: int) -> dict[str, object]:
    gold = (suite / "spreadsheet" / "1" / "2_1_answer.xlsx").read_bytes()
    return {
        "task": "1",
        "case": 2,
        "field": "gold",
        "gold_sha256": hashlib.sha256(gold).hexdigest(),
        "cells": [{"sheet": "Sheet1", "cell": "B3", "was": 2, "now": now}],
        "reason": "amounts are rounded up",
        "evidence": "Bob has 2.5",
        "source": "review",
    }


def test_a_corrected_gold_changes_the_verdicts_of_its_case_only(run: Path) -> None:
    suite = run.parent / "suite"
    file = run.parent / "corrections.yaml"
    entry = correction_of_b3(suite, now=3)
    file.write_text(json.dumps({"format": "spreadsheetbench-v0.1", "corrections": [entry]}))
    found = rejudge(run, corrections=file, apply=True)
    assert [(each.after.task_id, each.after.case) for each in found.changed] == [("1", 2)]
    assert "expected 3" in found.changed[0].after.cause
    assert found.corrections == 1
    # The run remembers what it was judged by, which counts if a command asks for it.
    assert rejudge(run, as_recorded=True).changed == []
    (run.parent / "none.yaml").write_text("format: spreadsheetbench-v0.1\ncorrections: []\n")
    back = rejudge(run, corrections=run.parent / "none.yaml", as_recorded=True)
    assert [each.after.verdict for each in back.changed] == ["AC"]
    back = rejudge(run)
    assert [each.after.verdict for each in back.changed] == ["AC"]
    assert any("corrections: 1 (1 case 2 gold)" in each for each in back.not_taken)
