"""Verdicts again from stored outputs; with --recalc never, so that no sandbox is needed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge.api import ScoreOptions, score
from judge.api.rejudging import change_verdict, rejudge
from judge.errors import StoreError, SuiteError, UsageError
from judge.report.data import report_data
from judge.store import CASES_FILE, RunDirectory
from tests.unit.report.runs import TABLE, Solution, TaskSpec, book, make_run, make_suite

AS_TEXT = book((("Name", "Amount"), ("Ann", "1"), ("Bob", 2), ("Cyd", 3)))
"""Equal under `standard`, not under `strict`: a number stored as text."""
SUITE = (TaskSpec("1", cases=2), TaskSpec("2", cases=2))


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


def test_rules_that_are_not_named_stay_as_they_were(run: Path) -> None:
    rejudge(run, profile="strict", apply=True)
    assert rejudge(run).rules["profile"] == "strict"
    assert rejudge(run).rules["recalc"]["mode"] == "never"
    assert rejudge(run, style=["fill"]).rules["style"] == ["fill"]


def test_an_output_that_is_gone_keeps_its_verdict(run: Path) -> None:
    for path in (run / "workbooks").iterdir():
        path.unlink()
    found = rejudge(run, profile="strict")
    assert found.changed == []
    assert [each.kept_because for each in found.cases] == [
        "its output workbook is not stored any more",
        "its output workbook is not stored any more",
        "its output workbook is not stored any more",
        "",
    ]
    assert len(found.to_json()["kept"]) == 3


def test_a_case_that_was_never_run_waits_for_judge_score(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", SUITE)
    found = rejudge(make_run(tmp_path / "run", suite, [Solution("1", ("JE", None))]))
    assert [each.kept_because for each in found.cases] == [
        "it was not run: `judge score` tries again"
    ]


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
    assert scored.report["tasks"][0]["test_case_results"] == ["AC", "AC"]  # type: ignore[index]
    change_verdict(run, "1", 2, "WA", by="Ann", why="wrong currency")
    (again,) = score(run, replace(options, out=None, profile="strict"))
    assert again.report["tasks"][0]["test_case_results"] == ["WA", "WA"]  # type: ignore[index]
    assert "by Ann" in again.report["tasks"][0]["causes"]["2"]  # type: ignore[index]
    (third,) = score(run, replace(options, out=None))
    assert third.report["tasks"][0]["test_case_results"] == ["AC", "WA"]  # type: ignore[index]
    found = rejudge(run, profile="strict")
    assert [(each.after.task_id, each.after.case) for each in found.changed] == [
        ("1", 1),
        ("1", 2),
        ("2", 1),
    ]
    (outputs / "1_1_output.xlsx").write_bytes(book(TABLE))
    kept = [
        each.after.task_id for each in rejudge(run, profile="strict").cases if each.kept_because
    ]
    assert kept == ["1"]  # another file now: the verdict on the old one stays
