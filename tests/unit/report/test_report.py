"""The forms of a report: rows, CSV, Markdown, frames, and what a notebook shows."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.errors import UsageError
from judge.report.markdown import escape
from judge.report.report import Report
from judge.report.tables import Row, to_csv
from tests.unit.report.runs import SHEET, Solution, TaskSpec, make_run, make_suite

NASTY = '=HYPERLINK("http://x")|<script>alert(1)</script>\n# \u202e*bold*'


@pytest.fixture
def report(tmp_path: Path) -> Report:
    suite = make_suite(tmp_path / "suite", [TaskSpec("1"), TaskSpec("2", SHEET, 2), TaskSpec("3")])
    solutions = [
        Solution("1", ("AC", ("WA", {"cause": NASTY}), "AC")),
        Solution("2", ("AC", "BT"), record={"model": "<m>"}),
    ]
    return Report.of_run(make_run(tmp_path / "run", suite, solutions, model="<m>"))


def test_scores_as_rows(report: Report) -> None:
    rows = report.rows("scores")
    assert rows[0]["breakdown"] == "overall"
    assert rows[0]["soft_restriction"] == report.data.overall.soft_restriction.value
    assert {row["breakdown"] for row in rows} >= {"instruction_type", "rows", "answer_cells"}


def test_one_row_for_each_submission_and_each_case(report: Report) -> None:
    assert [row["verdicts"] for row in report.rows("tasks")] == ["AC WA AC", "AC BT"]
    cases = report.rows("cases")
    assert [(row["task_id"], row["case"]) for row in cases] == [
        ("1", 1), ("1", 2), ("1", 3), ("2", 1), ("2", 2),
    ]  # fmt: skip
    assert cases[1]["cells_wrong_value"] == 1
    assert cases[1]["automatic_verdict"] == "WA"


def test_metrics_are_flat_numbers_under_stable_names(report: Report) -> None:
    metrics = report.metrics()
    overall = report.data.overall
    assert metrics["soft"] == overall.soft_restriction.value
    assert metrics["soft_low"] <= metrics["soft"] <= metrics["soft_high"]
    assert (metrics["tasks"], metrics["all_tasks"], metrics["verdict/AC"]) == (2, 2, 3)
    assert metrics["tasks_without_submission"] == 1
    assert metrics["difference/wrong_value"] == 1
    assert metrics["by/instruction_type/Sheet-Level_Manipulation/tasks"] == 1
    assert metrics["measure/run_wall_s/mean"] > 0
    assert all(type(value) is float for value in metrics.values())
    assert all(re.fullmatch(r"[\w./-]+", name) for name in metrics)
    # A tracker that keeps each in a file of its name could not hold both a name and one below it.
    folders = {"/".join(name.split("/")[:end]) for name in metrics for end in range(1, 5)
               if end < len(name.split("/"))}  # fmt: skip
    assert not folders & metrics.keys()


def test_an_unknown_table_is_refused(report: Report) -> None:
    with pytest.raises(UsageError, match="no table 'verdicts'"):
        report.rows("verdicts")


@pytest.mark.parametrize("table", ["scores", "tasks", "cases"])
def test_csv_reads_back_as_it_was(report: Report, table: str) -> None:
    read = list(csv.DictReader(io.StringIO(report.to_csv(table))))
    rows = report.rows(table)
    assert len(read) == len(rows)
    for got, row in zip(read, rows, strict=True):
        for name, value in row.items():
            if value is None:
                assert got[name] == ""
            elif isinstance(value, float):
                assert float(got[name]) == value
            elif not isinstance(value, bool) and value != NASTY:
                assert got[name] == str(value)


def test_no_text_in_a_csv_is_a_formula(report: Report) -> None:
    cause = list(csv.DictReader(io.StringIO(report.to_csv("cases"))))[1]["cause"]
    assert cause == "'" + NASTY
    dangerous: list[Row] = [{"text": start + "1"} for start in "=+-@\t\r"]
    assert all(line.strip('"').startswith("'") for line in to_csv(dangerous).split("\n")[1:-1])
    assert to_csv([{"number": -1.5}]) == "number\n-1.5\n"
    assert to_csv([]) == ""


def test_json_is_the_data(report: Report) -> None:
    assert json.loads(report.to_json()) == json.loads(json.dumps(report.data.to_json()))


def test_markdown_says_the_same_numbers(report: Report) -> None:
    text = report.to_markdown()
    overall = report.data.overall
    soft, hard = overall.soft_restriction, overall.hard_restriction
    for estimate in (soft, hard):
        shown = [f"{100 * (number or 0):.2f}" for number in (estimate.value, estimate.low)]
        assert f"{shown[0]} [{shown[1]}, " in text
    assert f"soft {100 * (overall.soft_of_all or 0):.2f} %" in text
    assert "task 2, case 2: BT, BT for a reason" in text
    assert "| ≤ 50 rows | 2 | 100.00 | 75.19 |" in text
    widths = [
        {line.count("|") for line in table.splitlines()}
        for table in re.findall(r"(?:^\|.*\n)+", text.replace(r"\|", ""), flags=re.MULTILINE)
    ]
    assert len(widths) >= 9
    assert all(len(each) == 1 for each in widths)


def test_markdown_shows_text_as_text(report: Report) -> None:
    assert escape(NASTY) == (
        '=HYPERLINK("http://x")\\|\\<script\\>alert(1)\\</script\\> \\# \\*bold\\*'
    )
    assert "<m>" not in report.to_markdown()


def test_frames(report: Report) -> None:
    scores, tasks, cases = report.scores(), report.tasks(), report.cases()
    assert (len(tasks), len(cases)) == (2, 5)
    hard = report.data.overall.hard_restriction.value
    assert scores.set_index("group").loc["overall", "hard_restriction"] == hard
    assert cases.groupby("verdict").size().to_dict() == {"AC": 3, "BT": 1, "WA": 1}


def test_without_pandas_the_rows_are_still_there(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pandas"):
        report.scores()
    assert report.rows("scores")


def test_a_notebook_shows_a_table_and_no_script(report: Report) -> None:
    shown = report._repr_html_()
    assert shown.startswith("<table>")
    assert "Overall" in shown
    assert "<script" not in shown


def test_everything_is_reachable_from_the_package() -> None:
    for name in judge.__all__:
        assert getattr(judge, name) is not None
    found: Any = judge.Report
    assert found is Report
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = judge.nothing  # type: ignore[attr-defined]
