"""The sample of checklists: scored, reported and verified."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from judge.api import ScoreOptions, score, verify
from judge.report.build import build_report_data
from judge.report.html.pages import TaskPages
from judge.report.html.render import json_form
from judge.report.load import load_run
from judge.report.report import Report
from judge.report.shapes import inspect_files
from tests.conftest import REPOSITORY

SAMPLE = REPOSITORY / "dataset" / "sample-checklist"
FILES = SAMPLE / "files" / "budget"


@pytest.fixture
def reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    """A report on the input and the gold as two finished samples."""
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path / "cache"))
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    shutil.copy(FILES / "1_budget_input.xlsx", outputs / "1_budget_output.xlsx")
    out = tmp_path / "run"
    options = ScoreOptions(dataset="sample-checklist", out=out, recalc="never")
    (run,) = score(outputs, options)
    assert run.report["overall"]["verdicts"] == {"WA": 1}
    return Report.of_run(out)


def test_points_are_in_every_form_of_the_report(reported: Report, tmp_path: Path) -> None:
    points = json.loads((tmp_path / "run" / "report.json").read_text())["points"]
    # The untouched input earns what needs no work: the unchanged items of the budget.
    assert (points["by_judge"]["deterministic"]["earned"], points["cases"]) == (5, 1)
    assert points["by_judge"]["llm"]["judged_items"] == 0
    assert points["mean_share_of_all"] == pytest.approx(5 / 100)
    assert points["mean_share_of_judged"] == pytest.approx(5 / 95)
    assert reported.data.overall.soft_restriction.value == pytest.approx(5 / 95)
    text = reported.to_markdown()
    assert "deterministic 5 of 95 points, LLM 0 of 5 (0 of 1 judged)" in text
    assert "5.0 % of all points" in text
    rows = list(csv.DictReader(io.StringIO(reported.to_csv("items"))))
    assert [row["id"] for row in rows[:2]] == ["total-2023", "total-2024"]
    assert {row["state"] for row in rows} == {"holds", "fails", "not_judged"}


def test_the_page_of_a_task_lists_its_items(reported: Report, tmp_path: Path) -> None:
    assert reported.data.tasks[0].cases[0].items
    loaded = load_run(tmp_path / "run")
    document = json_form(build_report_data(loaded, inspect_files(loaded)))
    page = TaskPages(loaded, document).page(0)
    part = page["cases"][0]["items"]
    assert page["unit"] == "items"
    assert [(group["name"], group["points"]) for group in part["groups"]] == [
        ("values", "5 of 75 points"),
        ("looks", "0 of 15 points"),
        ("text", "0 of 10 points"),
    ]
    assert part["groups"][0]["items"][0]["words"] == "The total of 2023 is right"


def test_verifying_names_what_holds_without_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path / "cache"))
    (check,) = verify("sample-checklist", recalc="never")
    assert check.gold_accepted, check.gold_problem
    assert check.items is not None
    assert (check.items.deterministic, check.items.not_judged) == (9, 1)
    assert (check.items.without_work, check.items.unreached) == (("inputs",), ())


def test_verifying_names_what_no_gold_reaches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path / "cache"))
    suite = tmp_path / "suite"
    shutil.copytree(SAMPLE, suite)
    document = json.loads((suite / "suite.json").read_text())
    items = document["tasks"][0]["checker"]["options"]["items"]
    items[1]["expected"] = 1
    (suite / "suite.json").write_text(json.dumps(document))
    (check,) = verify(str(suite), recalc="never")
    assert not check.gold_accepted
    assert check.items is not None
    assert check.items.unreached == ("total-2024",)
