"""The pages of questions with typed answers, as data."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest

from judge.api import ScoreOptions, score
from judge.report.build import build_report_data
from judge.report.html.pages import TaskPages
from judge.report.html.render import json_form
from judge.report.load import load_run
from judge.report.report import Report
from judge.report.shapes import inspect_files
from tests.conftest import REPOSITORY

SAMPLE = REPOSITORY / "dataset" / "sample-typed"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("typed") / "run"
    options = ScoreOptions(dataset="sample-typed", out=out, ids=("bars", "stations"))
    score(SAMPLE / "answers.jsonl", options)
    return out


def page_of(run: Path, task_id: str, sample: int) -> tuple[TaskPages, dict[str, Any]]:
    loaded = load_run(run)
    document = json_form(build_report_data(loaded, inspect_files(loaded)))
    keys = [(each["task_id"], each["sample"]) for each in document["tasks"]]
    pages = TaskPages(loaded, document)
    return pages, pages.page(keys.index((task_id, sample)))


def test_a_page_has_values_inputs_and_the_reply(run: Path) -> None:
    pages, page = page_of(run, "bars", 3)
    assert (page["unit"], page["code"]) == ("values", None)
    assert '"Station"' in page["reply"]
    (case,) = page["cases"]
    assert case["values"] == [
        {
            "name": "shop", "rule": "text", "expected": '"Market"', "found": '"Station"',
            "kind": "wrong_value", "detail": "",
        },
        {
            "name": "rent", "rule": "int", "expected": "95", "found": "143",
            "kind": "wrong_value", "detail": "",
        },
    ]  # fmt: skip
    assert case["outside"] == []
    assert case["grid"] == {"blocks": [], "notes": []}
    table, picture = case["inputs"]
    assert table["sheets"][0]["rows"][1] == ["red", "Harbour", "120"]
    data = (SAMPLE / "files" / "bars" / "bars.png").read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    assert picture["picture"]["sha256"] == digest
    assert pages.pictures_of(page) == {digest: base64.b64encode(data).decode()}


def test_without_a_reply_there_are_no_values(run: Path) -> None:
    _, page = page_of(run, "stations", 5)
    (case,) = page["cases"]
    assert (page["reply"], case["values"]) == (None, [])
    assert page["entry"]["cases"][0]["verdict"] == "NO"


def test_the_table_counts_missing_tasks_as_failed(run: Path) -> None:
    report = Report.of_run(run)
    (table,) = report.data.tables
    total, with_picture = table.columns[0], table.columns[1]
    assert (total.suite_tasks, total.scores.tasks) == (6, 2)
    value = total.scores.hard_restriction.value
    assert value is not None
    assert total.score_of_suite == pytest.approx(2 / 6 * value)
    assert (with_picture.suite_tasks, with_picture.scores.tasks) == (3, 1)
    divisions = [each.key for each in report.data.breakdowns]
    assert divisions == ["both", "difficulty", "picture", "table"]
    text = report.to_markdown()
    assert "## By what a question is about" in text
    assert "| tasks of the suite | 6 | 3 | 3 | 4 | 2 | 1 | 3 | 2 | 1 |" in text
    rows = report.rows("paper")
    assert [row["suite_tasks"] for row in rows] == [6, 3, 3, 4, 2, 1, 3, 2, 1]
    assert report.to_csv("paper").splitlines()[0].startswith("table,heading,label,suite_tasks")
