"""The layout of SheetCopilot: tasks with golds and boards, folders of results with logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openpyxl
import pytest

from judge.api import ScoreOptions, score, verify
from judge.api.rejudging import rejudge
from judge.errors import SuiteError
from judge.files.yaml_documents import dump_yaml
from judge.suites.formats import format_named
from judge.suites.layouts import find_outputs
from judge.suites.sheetcopilot import COLUMNS
from judge.suites.suite import load_suite
from tests.boards import GOLD, Made, workbook

TITLE = {"1": {"charts": {"title": True}}}
ROWS: list[list[Any]] = [
    ["Sales", 1, "My sheet.", "Draw it.", "Formula, Charts", "Lookup functions, Create chart (1)"],
    ["Sales", 2, None, "Name it.", "Charts", "Set chart title (1), Create chart (1)"],
    ["Costs", 1, None, "Sum up.", "Formula", "Math functions"],
]


def make(root: Path, board: Any = TITLE, rows: list[list[Any]] | None = None) -> Path:
    """A suite of three tasks, the last of which lacks its workbooks."""
    data = root / "dataset"
    (data / "task_sheets").mkdir(parents=True)
    book = openpyxl.Workbook()
    for row in [list(COLUMNS), *(ROWS if rows is None else rows)]:
        book.worksheets[0].append(row)
    book.save(data / "dataset.xlsx")
    (data / "task_sheets" / "Sales.xlsx").write_bytes(workbook(Made(title="Old")))
    for number, titles in ((1, ["Sales"]), (2, ["Sales", "Sold"])):
        folder = data / "task_sheet_answers_v2" / "Sales" / f"{number}_Sales"
        folder.mkdir(parents=True)
        for place, title in enumerate(titles, start=1):
            (folder / f"{number}_Sales_gt{place}.xlsx").write_bytes(workbook(Made(title=title)))
            text = dump_yaml({"check_board": board, "required_APIs": ["Write"]})
            (folder / f"{number}_Sales_gt{place}_check.yaml").write_text(text)
    return root


def answer(folder: Path, name: str, titles: list[str], log: Any = None) -> None:
    place = folder / name
    place.mkdir(parents=True)
    (place / f"{name}_source.xlsx").write_bytes(workbook())
    for repeat, title in enumerate(titles, start=1):
        (place / f"{name}_{repeat}.xlsx").write_bytes(workbook(Made(title=title)))
    if log is not None:
        (place / f"{name}_log.yaml").write_text(dump_yaml(log))


def logged(*plans: list[list[str]]) -> dict[str, Any]:
    responses = [{"refined response": plan} for plan in plans]
    return {"Success Count": len(plans), "Success Response": responses}


def test_tasks_golds_boards_and_groups(tmp_path: Path) -> None:
    suite = load_suite(make(tmp_path))
    first, second, third = suite.tasks
    assert [task.id for task in suite.tasks] == ["1_Sales", "2_Sales", "3_Costs"]
    assert first.question.instruction == "My sheet.\n\nDraw it."
    assert second.question.instruction == "Name it."
    assert (first.groups["charts"], first.groups["formula"]) == ("yes", "yes")
    assert second.groups["formula"] == "no"
    assert [gold.name for gold in second.cases[0].golds] == ["2_Sales_gt1.xlsx", "2_Sales_gt2.xlsx"]
    assert "task_sheets/Costs.xlsx" in str(third.checker.options["left_out"])
    assert "1 tasks are left out" in " ".join(suite.notes)
    assert [table.title for table in suite.tables] == ["Pass@1 by category"]


def test_the_papers_golds_count_where_there_are_no_others(tmp_path: Path) -> None:
    make(tmp_path)
    data = tmp_path / "dataset"
    (data / "task_sheet_answers_v2").rename(data / "task_sheet_answers")
    suite = load_suite(tmp_path)
    assert "golds of task_sheet_answers" in suite.notes
    assert len(suite.task("2_Sales").cases[0].golds) == 2


def test_the_boards_belong_to_the_digest(tmp_path: Path) -> None:
    one = load_suite(make(tmp_path / "a"))
    legend = {"1": {"charts": {"title": True, "legend": True}}}
    other = load_suite(make(tmp_path / "b", legend))
    same = load_suite(make(tmp_path / "c"))
    assert one.digest != other.digest
    assert one.tasks[0].checker == same.tasks[0].checker


def test_verify_accepts_the_golds(tmp_path: Path) -> None:
    found = verify(make(tmp_path), recalc="never")
    assert [check.gold_accepted for check in found] == [True, True]
    assert [check.untouched_accepted for check in found] == [False, False]


@pytest.mark.parametrize(
    ("board", "rows", "said"),
    [
        ({"1": {"cells": {"value": True}}}, None, "no property 'value'"),
        (None, None, "expected a board"),
        (TITLE, [["../Sales", 1, None, "?", "", ""]], "is not a name of a workbook"),
        (TITLE, [["Sales", "1", None, "?", "", ""]], "expected a number"),
    ],
)
def test_faults_are_named_with_their_row(
    tmp_path: Path, board: Any, rows: list[list[Any]] | None, said: str
) -> None:
    with pytest.raises(SuiteError) as caught:
        load_suite(make(tmp_path, board, rows))
    assert said in caught.value.faults[0]
    assert "dataset.xlsx, row 2" in caught.value.faults[0]


def test_a_gold_needs_its_board(tmp_path: Path) -> None:
    make(tmp_path)
    next(tmp_path.rglob("1_Sales_gt1_check.yaml")).unlink()
    with pytest.raises(SuiteError) as caught:
        load_suite(tmp_path)
    assert "has no board" in caught.value.faults[0]


def test_a_table_without_the_columns_is_refused(tmp_path: Path) -> None:
    make(tmp_path)
    openpyxl.Workbook().save(tmp_path / "dataset" / "dataset.xlsx")
    with pytest.raises(SuiteError, match="the columns Sheet Name"):
        load_suite(tmp_path)


def test_names_of_outputs() -> None:
    suite_format = format_named("sheetcopilot")
    assert suite_format.output_of("12_Sales_3.xlsx") == ("12_Sales", 1, 2)
    assert suite_format.output_of("12_Sales_output.xlsx") == ("12_Sales", 1)
    assert suite_format.output_of("12_Sales.xlsx") == ("12_Sales", 1)
    assert suite_format.output_of("12_Sales_source.xlsx") is None
    assert suite_format.output_of("Sales.xlsx") is None
    assert suite_format.output_of("1_13284_input.xlsx") is None


def test_results_in_both_namings_with_repeats_and_logs(tmp_path: Path) -> None:
    suite = make(tmp_path / "suite")
    # Costs are numbered 3 in the whole suite, and 1 among the tasks of their workbook.
    results = tmp_path / "results"
    plan = [["CreateChart()"], ["SetChartTitle()", "SetChartTitle()"]]
    answer(results, "1_Sales", ["Sales", "Gold"], logged(plan, plan))
    answer(results, "2_Sales", ["Sold", "Sold"])
    found = find_outputs(results, load_suite(suite))
    assert found.samples_of("1_Sales") == [0, 1]
    assert found.of_sample("1_Sales", 1, 1) == results / "1_Sales" / "1_Sales_2.xlsx"
    options = ScoreOptions(dataset=str(suite), out=tmp_path / "run", recalc="never")
    (run,) = score(results, options)
    verdicts = {(each.task_id, each.sample): each.verdict.value for each in run.results}
    assert verdicts == {
        ("1_Sales", 0): "AC",
        ("1_Sales", 1): "WA",
        ("2_Sales", 0): "AC",
        ("2_Sales", 1): "AC",
    }
    first, second = run.report["published_figures"]
    # The task without a log is left out; the plan has three actions, and one is enough.
    assert (first["tasks"], first["exec_at_1"], first["pass_at_1"]) == (1, 1, 1)
    assert (first["a50"], first["a90"]) == (3, 3)
    assert (second["executed"], second["pass_at_1"], second["a50"]) == (1, 0, None)
    before = run.report["published_figures"]
    again = rejudge(tmp_path / "run", profile="official", recalc="never")
    assert again.after["published_figures"] == before


def test_a_task_by_its_number_within_the_workbook(tmp_path: Path) -> None:
    rows = [["Other", 1, None, "?", "Charts", ""], *ROWS]
    suite = load_suite(make(tmp_path / "suite", rows=rows))
    assert suite.task_id_in("1_Sales", ()) == "2_Sales"
    assert suite.task_id_in("2_Sales", ()) == "2_Sales"
    results = tmp_path / "results"
    answer(results, "1_Costs", ["Sales"])
    assert find_outputs(results, suite).samples_of("4_Costs") == [0]


def test_a_log_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    suite, results = make(tmp_path / "suite"), tmp_path / "results"
    answer(results, "1_Sales", ["Sales"], logged([["a"]]))
    answer(results, "2_Sales", ["Sold"], {"Success Count": "one"})
    suite_format = format_named("sheetcopilot")
    figures = suite_format.published_figures(load_suite(suite), results, {("1_Sales", 0): True})
    assert figures[0]["tasks"] == 1
    assert "Success Count" in figures[0]["problems"][0]
    assert GOLD.title == "Sales"
