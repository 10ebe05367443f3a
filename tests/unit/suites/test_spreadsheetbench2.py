"""The published format of SpreadsheetBench 2, with a suite made here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import judge
from judge.api.rejudging import _with_recorded
from judge.api.reporting import ScoredRun
from judge.cli.main import judge as judge_command
from judge.compare.profiles import get_profile
from judge.core.submission import Answer, Origin
from judge.core.task import CheckerSpec, Task, TestCase
from judge.core.verdict import Verdict
from judge.errors import SubmissionError, SuiteError, UsageError
from judge.grading.case import CaseJudge, GradingRules, Judgement
from judge.recalc.policy import Recalculator
from judge.suites.formats import FileRole
from judge.suites.spreadsheetbench2 import FORMAT
from judge.suites.validate import compute_stats, validate_suite
from tests.unit.compare.cells.packages import Book, cell, sheet_data, simple
from tests.unit.compare.rules.judged import CORPUS

BEFORE, GOLD = simple({"A1": 1, "B1": "x"}), simple({"A1": 1, "A2": 2, "B1": "x"})
RED = Book(
    {"Sheet1": sheet_data(cell("A1", 1, style=9), cell("B1", "x"))},
).to_bytes()
AT = "'Sheet1'!A1:B2"


def record(task_id: str, before: str, gold: str | None, **changes: object) -> dict[str, Any]:
    stated = {} if gold is None else {"golden_response_path": f"spreadsheet/p/{gold}"}
    return {
        "id": task_id,
        "instruction": "Work.",
        "spreadsheet_path": f"spreadsheet/p/{before}",
        "answer_position": AT,
        **stated,
        **changes,
    }


def put(root: Path, category: str, records: object, files: Mapping[str, bytes]) -> None:
    """Makes a category with its files, which are all in one project."""
    for name, data in files.items():
        path = root / category / "spreadsheet" / "p" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (root / category).mkdir(parents=True, exist_ok=True)
    (root / category / "dataset.json").write_text(json.dumps(records))


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Makes all four categories; ``02_01`` is in two of them."""
    root = tmp_path / "bench"
    formulas = [
        Book({"Sheet1": sheet_data(cell("A1", 1, formula=text), cell("B1", "x"))}).to_bytes()
        for text in ("SUM(C1:C2)", "SUM(C1:C3)")
    ]
    put(
        root,
        "Debugging",
        [
            record("02_01", "input_files/Font Color_input.xlsx", "red.xlsx"),
            record("02_02", "input_files/Embedded Number_input.xlsx", "formulas.xlsx"),
            record("02_03", "input_files/Same_input.xlsx", "red.xlsx", difficulty=3),
        ],
        {
            "input_files/Font Color_input.xlsx": BEFORE,
            "input_files/Embedded Number_input.xlsx": formulas[0],
            "input_files/Same_input.xlsx": RED,
            "red.xlsx": RED,
            "formulas.xlsx": formulas[1],
        },
    )
    put(
        root,
        "Financial_Model",
        [record("05_01", "05_01_input.xlsx", "05_01_golden.xlsx")],
        {"05_01_input.xlsx": BEFORE, "05_01_golden.xlsx": GOLD},
    )
    put(
        root,
        "Template",
        [record("02_01", "02_01_input.xlsx", "02_01_golden.xlsx")],
        {"02_01_input.xlsx": BEFORE, "02_01_golden.xlsx": GOLD},
    )
    criteria = [{"id": 1, "instruction": "The chart has bars.", "chart": "Sales"}]
    put(
        root,
        "Visualization",
        [record("07", "07_input.xlsx", "07_golden.xlsx", category="Bars", criteria=criteria)],
        {
            "07_input.xlsx": BEFORE,
            "07_golden.xlsx": (CORPUS / "ch_line.xlsx").read_bytes(),
        },
    )
    return root


def test_tasks_with_their_modes_and_groups(suite: Path) -> None:
    loaded = judge.load_suite(suite)
    assert (loaded.name, loaded.format) == ("bench", "spreadsheetbench-2")
    ids = ["Debugging_02_01", "02_02", "02_03", "05_01", "Template_02_01", "07"]
    assert [task.id for task in loaded.tasks] == ids
    colour, formulas, same, model, _, chart = loaded.tasks
    ruled = {"answer_position": AT, "accept": "groups"}
    assert colour.checker.options == ruled | {"style": ("font_color",)}
    assert formulas.checker.options == ruled | {"formulas": True}
    assert same.checker.options == model.checker.options == ruled
    assert colour.groups == {"category": "Debugging", "error": "Font Color"}
    assert (model.kind, model.groups) == ("Financial_Model", {"category": "Financial_Model"})
    # What the judge compares is not part of the question.
    assert model.details == {}
    assert chart.excluded is not None
    assert [note for note in loaded.notes if "02_03" in note] == [
        "Debugging/dataset.json, record 2 (id 02_03): unknown fields are ignored: difficulty"
    ]


def test_a_category_may_be_missing(suite: Path) -> None:
    (suite / "Template" / "dataset.json").unlink()
    loaded = judge.load_suite(suite)
    # No other category has the id any more.
    assert loaded.tasks[0].id == "02_01"
    assert "Template/dataset.json: is missing, so the category has no task" in loaded.notes


def test_the_digest_depends_on_every_category(suite: Path) -> None:
    before = judge.load_suite(suite).digest
    path = suite / "Template" / "dataset.json"
    path.write_text(path.read_text().replace("Work.", "Rest."))
    assert judge.load_suite(suite).digest != before


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"id": None}, "field 'id' is missing"),
        ({"id": "a/b"}, "field 'id' must not hold a slash: 'a/b'"),
        ({"instruction": 5}, "field 'instruction' must be text, not 5"),
        ({"answer_position": " "}, "field 'answer_position' must be text, not ' '"),
        ({"golden_response_path": "no.xlsx"}, "there is no file Template/no.xlsx"),
        ({"spreadsheet_path": "../x.xlsx"}, "field 'spreadsheet_path' leaves the category"),
        ({"spreadsheet_path": "/etc/passwd"}, "field 'spreadsheet_path' leaves the category"),
        ({"spreadsheet_path": "spreadsheet"}, "there is no file Template/spreadsheet"),
        ({"spreadsheet_path": "link.xlsx"}, "Template/link.xlsx is a link that leaves the suite"),
    ],
)
def test_every_fault_names_its_field(
    suite: Path, tmp_path: Path, changes: dict[str, object], fault: str
) -> None:
    (tmp_path / "outside.xlsx").write_bytes(BEFORE)
    (suite / "Template" / "link.xlsx").symlink_to(tmp_path / "outside.xlsx")
    broken = record("02_01", "02_01_input.xlsx", "02_01_golden.xlsx", **changes)
    (suite / "Template" / "dataset.json").write_text(json.dumps([broken, "text"]))
    with pytest.raises(SuiteError) as raised:
        judge.load_suite(suite)
    first, second = raised.value.faults
    assert first.startswith("Template/dataset.json, record 0: ")
    assert fault in first
    assert second == (
        "Template/dataset.json, record 1: must be an object with the fields of a task"
    )


@pytest.mark.parametrize("text", ["{", "{}", "[" * 200])
def test_a_definition_that_is_not_a_list_of_tasks(suite: Path, text: str) -> None:
    (suite / "Template" / "dataset.json").write_text(text)
    with pytest.raises(SuiteError, match=r"Template/dataset.json"):
        judge.load_suite(suite)


def test_an_id_twice_in_a_category(suite: Path) -> None:
    path = suite / "Template" / "dataset.json"
    path.write_text(json.dumps(json.loads(path.read_text()) * 2))
    with pytest.raises(SuiteError) as raised:
        judge.load_suite(suite)
    assert raised.value.faults == (
        (
            "Template/dataset.json, record 1 (id 02_01): the id is already used by "
            "Template/dataset.json, record 0 (id 02_01)"
        ),
    )


def test_names_of_files(suite: Path) -> None:
    assert FORMAT.output_of("02_01_output.xlsx") == ("02_01", 1)
    assert FORMAT.output_of("02_01_input.xlsx") is None
    assert FORMAT.role_of("02_01_output.xlsx", "Template_02_01") is FileRole.OUTPUT
    assert FORMAT.role_of("Font Color_input.xlsx", "02_03") is FileRole.INPUT
    assert FORMAT.role_of("notes.xlsx", "02_03") is None
    paths = FORMAT.default_paths(judge.load_suite(suite).task("02_02").question)
    assert paths.input_path.endswith("/input/Embedded Number_input.xlsx")
    assert paths.output_path.endswith("/output/02_02_output.xlsx")
    with pytest.raises(UsageError, match="cannot be written"):
        FORMAT.definition_of(suite, ())


# -- judging --------------------------------------------------------------------------------------


def outputs(suite: Path, folder: Path) -> Path:
    """Makes outputs of all tasks but ``02_03``: wrong for ``02_02``, no workbook for ``05_01``."""
    formulas = suite / "Debugging/spreadsheet/p/input_files/Embedded Number_input.xlsx"
    written = {
        "Debugging/02_01_output.xlsx": RED,
        "Template/02_01/02_01_output.xlsx": GOLD,
        "02_02_output.xlsx": formulas.read_bytes(),
        "05_01_output.xlsx": b"no workbook",
        "07_output.xlsx": (CORPUS / "ch_line_t2.xlsx").read_bytes(),
    }
    for name, data in written.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


@pytest.fixture
def scored(suite: Path, tmp_path: Path) -> ScoredRun:
    (run,) = judge.score(
        outputs(suite, tmp_path / "outputs"),
        judge.ScoreOptions(
            dataset=str(suite), out=tmp_path / "run", profile="ssb2-official", recalc="never"
        ),
    )
    return run


def test_verdicts_and_means_by_category(scored: ScoredRun) -> None:
    verdicts = {result.task_id: result.verdict.value for result in scored.results}
    assert verdicts == {
        "Debugging_02_01": "AC",
        "Template_02_01": "AC",
        "02_02": "WA",
        "05_01": "IW",
        "07": "BT",
    }
    by_category = scored.report["by_group"]["category"]
    assert {name: group["hard_restriction"] for name, group in by_category.items()} == {
        "Debugging": 0.5,
        "Financial_Model": 0.0,
        "Template": 1.0,
        "Visualization": None,
    }
    assert {name: group["shares"] for name, group in by_category.items()} == {
        "Debugging": {"cases": 2, "modification": 0.5, "regression": 1.0},
        "Financial_Model": {"cases": 1, "modification": 0.0, "regression": 0.0},
        "Template": {"cases": 1, "modification": 1.0, "regression": 1.0},
        "Visualization": {"cases": 0, "modification": None, "regression": None},
    }
    assert scored.report["overall"]["shares"] == {
        "cases": 4,
        "modification": 0.5,
        "regression": 0.75,
    }
    (chart,) = by_category["Visualization"]["excluded"]["BT"]
    assert "a vision model that looks at pictures" in chart["reason"]


def test_charts_have_a_figure_of_their_own(scored: ScoredRun) -> None:
    (case,) = [result for result in scored.results if result.task_id == "07"]
    (fact,) = case.comparison["charts"]["charts"]
    assert fact["lacking"] == ["title"]
    assert case.comparison["charts"]["share"] == fact["share"] == 0.75
    assert scored.report["charts"] == {"cases": 1, "mean_share": 0.75, "tasks": {"07": 0.75}}
    notes = judge.Report.of_run(scored.path).data.notes
    assert any("on average, 75.00 % of the properties" in note for note in notes)
    assert "charts by task: 07 75 %" in notes


def test_the_report_for_people_says_the_same(scored: ScoredRun) -> None:
    notes = judge.Report.of_run(scored.path).data.notes
    assert (
        "Overall, 4 outputs: on average, 50.00 % of the cells to change are right, and 75.00 % of "
        "the cells to keep"
    ) in notes
    other = judge.rejudge(scored.path, profile="ssb2", recalc="never")
    assert other.changed == []


def test_an_output_of_an_id_that_two_categories_have(suite: Path, tmp_path: Path) -> None:
    folder = tmp_path / "outputs"
    folder.mkdir()
    (folder / "02_01_output.xlsx").write_bytes(GOLD)
    options = judge.ScoreOptions(dataset=str(suite), out=tmp_path / "run", recalc="never")
    with pytest.raises(SubmissionError, match=r"02_01_output.xlsx \(no task 02_01\)"):
        judge.score(folder, options)


def test_the_published_profile_computes_nothing_whatever_the_usual_is(
    suite: Path, tmp_path: Path, scored: ScoredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")  # no sandbox, hence no engine
    (run,) = judge.score(
        outputs(suite, tmp_path / "others"),
        judge.ScoreOptions(dataset=str(suite), out=tmp_path / "usual", profile="ssb2-official"),
    )
    verdicts = {each.task_id: each.verdict for each in run.results}
    assert verdicts == {each.task_id: each.verdict for each in scored.results}
    described: Any = json.loads((tmp_path / "usual/run.json").read_text())
    assert described["recalc"]["mode"] == "never"
    # Another profile computes again: nobody had asked for `never`.
    again = _with_recorded(described, judge.JudgingOptions(), {"profile": "standard"})
    assert (again.recalc, again.recalculation) == ("auto", "auto")
    described["recalc"] = {"mode": "always"}
    asked = _with_recorded(described, again, {"profile": "ssb2-official"})
    assert asked.recalculation == "never"


def test_verify_lists_what_cannot_be_passed_and_what_is_not_judged(suite: Path) -> None:
    asked = ["verify", str(suite), "--recalc", "never", "--profile"]
    run = CliRunner().invoke(judge_command, [*asked, "ssb2"])
    assert run.exit_code == 0, run.output
    assert "golds accepted as their own answer: 5 of 5 cases" in run.output
    assert (
        "cases that may not tell right from wrong: 1\n"
        "  task 02_03 case 1: no cell of the range is to be changed: the published rule counts "
        "that as a share of 0, so it accepts no output"
    ) in run.output
    assert "tasks that are not judged: 1\n  07: the task is left out: the published" in run.output
    published = CliRunner().invoke(judge_command, [*asked, "ssb2-official", "--json"])
    assert isinstance(published.exception, SuiteError)
    found = json.loads(published.output.splitlines()[0])
    assert [each["task_id"] for each in found["checks"] if not each["gold_accepted"]] == ["02_03"]
    assert list(found["left_out"]) == ["07"]


def test_an_input_that_cannot_be_read_is_the_suites_fault(suite: Path) -> None:
    (suite / "Template/spreadsheet/p/02_01_input.xlsx").write_bytes(b"no workbook")
    checks = judge.verify(str(suite), ids=["Template_02_01"], profile="ssb2", recalc="never")
    assert "02_01_input.xlsx" in checks[0].gold_problem
    found = [each for each in validate_suite(judge.load_suite(suite)) if each.task]
    assert any("02_01_input.xlsx" in each.file for each in found)


def judged(task: Task) -> Judgement:
    case = task.cases[0]
    rules = GradingRules(get_profile("ssb2"))
    answer = Answer.of_workbook(GOLD, Origin.FINISHED)
    return CaseJudge(Recalculator([], mode="never"), rules).judge(task, case, answer)


def test_a_case_without_an_input_cannot_be_judged_by_its_groups(suite: Path) -> None:
    task = judge.load_suite(suite).task("Template_02_01")
    assert judged(task).verdict is Verdict.AC
    bare = replace(task, cases=(TestCase(1, (), task.cases[0].golds),))
    judgement = judged(bare)
    assert judgement.verdict is Verdict.BT
    assert judgement.cause == "cells to keep are cells of the input, but the case has no input"


def test_a_task_that_is_not_judged_is_in_every_list(suite: Path) -> None:
    loaded = judge.load_suite(suite)
    notes = [each.message for each in validate_suite(loaded) if each.task == "07"]
    assert notes == [f"the suite leaves it out: {loaded.task('07').excluded}"]
    assert compute_stats(loaded).tasks_by_checker["not judged"] == 1
    # A command's options are those of the other tasks.
    chart = loaded.with_checker_options({"keep": "note"}).task("07")
    assert judged(chart).cause.startswith("the task is left out: ")
    nameless = replace(chart, checker=CheckerSpec("unjudged"))
    assert judged(nameless).verdict is Verdict.BT
    assert judged(nameless).cause == "the judge has no checker for task 07"
