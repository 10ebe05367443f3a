"""Certified tasks: grades that are bound to files, corrections, and the resulting scores."""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from judge import api
from judge.api import scoring
from judge.api.options import ScoreOptions
from judge.cli.main import judge
from judge.core.records.reports import ReportDocument
from judge.errors import SuiteError
from judge.grading.case import known_fault
from judge.report.html import report_html
from judge.report.report import Report
from judge.suites import Suite, certified, load_suite
from judge.suites.certified import Grade, read_certification
from judge.suites.corrections import corrected_suite
from judge.suites.suite import certified_files
from judge.workbook.position import parse_position
from tests.conftest import REPOSITORY
from tests.unit.annotate.books import table, values
from tests.unit.suites.conftest import WriteSuite, task_record

FORMAT = "spreadsheetbench-v0.1"
GRADES = {"1": "sound", "2": "weak", "3": "ambiguous", "4": "faulty", "5": "faulty"}

Write = Callable[[list[dict[str, Any]]], Path]
Cells = dict[tuple[int, int], Any]
Places = set[tuple[int, int]]


@pytest.fixture
def suite(write_suite: WriteSuite) -> Suite:
    names = {
        task_id: [f"spreadsheet/{task_id}/1_{task_id}_{role}.xlsx" for role in ("input", "answer")]
        for task_id in GRADES
    }
    root = write_suite(
        [task_record(task_id, answer_position="A1") for task_id in GRADES],
        [name for pair in names.values() for name in pair],
    )
    for task_id, (given, gold) in names.items():
        (root / given).write_bytes(table((0,)))
        (root / gold).write_bytes(table((int(task_id),)))
    return load_suite(root)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def entries(suite: Suite) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [
        {
            "task": task.id,
            "grade": GRADES[task.id],
            "reason": "as the cells show",
            "readers": [GRADES[task.id], "sound"],
            "input_sha256": sha256(task.cases[0].input_path),
            "gold_sha256": sha256(task.cases[0].gold_path),
        }
        for task in suite.tasks
    ]
    made[4]["corrections"] = [
        {
            "case": 1,
            "field": "gold",
            "gold_sha256": made[4]["gold_sha256"],
            "cells": [{"sheet": "Sheet", "cell": "A1", "was": 5, "now": 50}],
            "reason": "the question asks for ten times as much",
            "evidence": "A1 is 5",
        }
    ]
    return made


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    folder = tmp_path / "certified"
    folder.mkdir()
    for module in (certified, scoring):
        monkeypatch.setattr(module, "certified_files", lambda name: [*folder.glob(f"{name}*.yaml")])

    def written(entries: list[dict[str, Any]]) -> Path:
        path = folder / f"{FORMAT}.yaml"
        document = {"format": FORMAT, "name": "Suite", "source": "two readers", "tasks": entries}
        path.write_text(yaml.safe_dump(document))
        return path

    return written


def test_faulty_and_ambiguous_tasks_are_left_out_and_corrected_ones_judged(
    suite: Suite, entries: list[dict[str, Any]], write: Write
) -> None:
    corrected = corrected_suite(suite, write(entries)).suite
    faults = {task.id: known_fault(task, 1) for task in corrected.tasks}
    assert {task_id for task_id, fault in faults.items() if fault is None} == {"1", "2", "5"}
    assert "ambiguous: as the cells show" in str(faults["3"])
    gold = corrected.task("5").cases[0].gold_path
    assert values(gold.read_bytes())[1, 1] == 50


def test_other_files_are_refused(suite: Suite, entries: list[dict[str, Any]], write: Write) -> None:
    suite.task("4").cases[0].gold_path.write_bytes(table((99,)))
    with pytest.raises(SuiteError, match="not for the files of this suite"):
        corrected_suite(suite, write(entries))


def test_grades_are_of_the_files_that_were_read(
    suite: Suite, entries: list[dict[str, Any]], write: Write
) -> None:
    certification = read_certification(write(entries))
    grades = {task_id: Grade(grade) for task_id, grade in GRADES.items()}
    assert certification.grades_of(suite) == grades
    suite.task("2").cases[0].input_path.write_bytes(table((7,)))
    del grades["2"]
    assert certification.grades_of(suite) == grades


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grade": "fine"}, "grade"),
        ({"gold_sha256": "abc"}, "gold_sha256"),
        ({"task": "2"}, "task 2 is graded twice"),
        ({"corrections": [{"field": "gold"}]}, "field 'reason'"),
    ],
)
def test_a_fault_of_the_file_is_named(
    entries: list[dict[str, Any]], write: Write, change: dict[str, object], message: str
) -> None:
    entries[0].update(change)
    with pytest.raises(SuiteError, match=message):
        read_certification(write(entries))


def test_the_list_of_failures_says_which_golds_are_in_doubt(
    suite: Suite, entries: list[dict[str, Any]], write: Write, tmp_path: Path
) -> None:
    write(entries)
    for task_id in GRADES:
        wrong = tmp_path / "outputs" / f"1_{task_id}_output.xlsx"
        wrong.parent.mkdir(exist_ok=True)
        wrong.write_bytes(table((-1,)))
    options = [str(wrong.parent), "--dataset", str(suite.root), "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(judge, ["score", *options, "--recalc", "never", "--jobs", "1"])
    assert done.exit_code == 0, done.output
    failures = [line for line in done.stdout.splitlines() if line.startswith("  WA task ")]
    assert [line.partition(", case 1")[2].partition(":")[0] for line in failures] == [
        "", "", " (ambiguous gold)", " (faulty gold)", " (faulty gold)",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("certified", "--suite"), ("readings",)])
def test_a_file_that_is_missing_is_named_by_the_benchmarks(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    missing = tmp_path / "missing"
    name, *options = arguments
    command = [sys.executable, "-m", f"benchmarks.{name}", *options, str(missing)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert str(missing) in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.data
def test_the_grades_that_ship_are_of_the_published_workbooks(judge_data: Path) -> None:
    (path,) = certified_files("spreadsheetbench-verified")
    certification = read_certification(path)
    graded: set[str] = set()
    for name in ("spreadsheetbench_verified_dev128", "spreadsheetbench_verified_rest"):
        suite = load_suite(judge_data / name)
        graded |= certification.grades_of(suite).keys()
        assert corrected_suite(suite, path).unfit == ()
    assert graded == certification.tasks.keys()


def corrected_task(judge_data: Path, suite: str, task_id: str) -> tuple[Cells, Cells, Places]:
    """The input and the corrected gold of a task, and the cells of the corrected position."""
    (path,) = certified_files("spreadsheetbench-verified")
    task = corrected_suite(load_suite(judge_data / suite), path).suite.task(task_id)
    position = str(task.checker.options["answer_position"])
    case, name = task.cases[0], "Base" if task_id == "13284" else "Sheet1"
    given, gold = (values(path.read_bytes(), name) for path in (case.input_path, case.gold_path))
    places = {
        (row, column)
        for part in parse_position(position).parts
        for row in range(part.min_row, (part.max_row or 0) + 1)
        for column in range(part.min_column, (part.max_column or 0) + 1)
    }
    return given, gold, places


@pytest.mark.data
def test_corrected_averages_are_those_of_the_rows_that_the_examples_average(
    judge_data: Path,
) -> None:
    given, gold, compared = corrected_task(judge_data, "spreadsheetbench_verified_dev128", "56786")
    year = dt.timedelta(days=365)
    for row in range(5, 201):
        first = given[row, 1] - year
        earlier = [given[other, 2] for other in range(4, row) if given[other, 1] >= first]
        assert gold[row, 3] == pytest.approx(sum(earlier) / len(earlier)), row
    examples = [row for row in range(4, 201) if (row, 3) in given]
    assert examples == [70, 71, 72, 80, 99]
    assert all(gold[row, 3] == pytest.approx(given[row, 3]) for row in examples)
    assert compared == {(row, 3) for row in range(5, 201)}


@pytest.mark.data
def test_corrected_payments_of_bonds_are_those_of_the_finished_tables_below(
    judge_data: Path,
) -> None:
    given, gold, compared = corrected_task(judge_data, "spreadsheetbench_verified_rest", "45738")
    payments = set()
    for row, column in itertools.product(range(6, 26), range(5, 29)):
        amount, interest, frequency, matures = (given[row, number] for number in (1, 2, 3, 4))
        month = given[4, column]
        left = 12 * (matures.year - month.year) + matures.month - month.month
        pays = left >= 0 and left % (12 // frequency) == 0
        payment = pays * interest + (left == 0) * amount
        assert gold[row, column] == payment == given[row + 21, column], (row, column)
        if payment:
            payments.add((row, column))
    assert compared == payments


@pytest.mark.data
def test_cells_in_which_question_and_input_contradict_each_other_are_not_compared(
    judge_data: Path,
) -> None:
    given, gold, compared = corrected_task(judge_data, "spreadsheetbench_verified_dev128", "13284")
    suite = load_suite(judge_data / "spreadsheetbench_verified_dev128")
    streets: Cells = {**values(suite.task("13284").cases[0].input_path.read_bytes(), "Streets")}
    for row in range(2, 27):
        names = [
            streets[place, 6]
            for place in range(2, 27)
            if streets[place, 2].casefold() == given[row, 3].casefold()
            and {(place, 3), (place, 4)} <= streets.keys()
            and streets[place, 3] <= given[row, 4] <= streets[place, 4]
        ]
        assert (gold.get((row, 5)) == next(iter(names), None)) is ((row, 5) in compared), row
        if (row, 5) not in compared:
            assert gold[row, 5] == given[row, 6]


def score(suite: Suite, folder: Path, **options: Any) -> ReportDocument:
    """Scores workbooks that contain 1, 2, 3, 4 and, for task 5, the corrected value."""
    outputs = folder / "outputs"
    outputs.mkdir(exist_ok=True)
    for task_id, value in {"1": 1, "2": 0, "3": 3, "4": 4, "5": 50}.items():
        (outputs / f"1_{task_id}_output.xlsx").write_bytes(table((value,)))
    chosen = ScoreOptions(dataset=suite.root, out=folder / "run", jobs=1, **options)
    return api.score(outputs, chosen)[0].report


def test_reports_show_certified_beside_published(
    suite: Suite, entries: list[dict[str, Any]], write: Write, tmp_path: Path
) -> None:
    write(entries)
    report = score(suite, tmp_path)
    assert (report["overall"]["tasks"], report["overall"]["hard_restriction"]) == (5, 0.6)
    shown = report["certified"]
    assert shown["grades"] == {"sound": 1, "weak": 1, "ambiguous": 1, "faulty": 2}
    assert (shown["scores"]["tasks"], shown["scores"]["hard_restriction"]) == (2, 0.5)
    assert not shown["applied"]
    assert shown["accepted_weak"] == []
    markdown = Report.of_run(tmp_path / "run").to_markdown()
    assert "| certified tasks only | 2 | 2 | 50.00" in markdown
    assert "as published" in markdown
    page = report_html(tmp_path / "run")
    assert "certified tasks only" in page
    assert "ambiguous gold" in page


def test_an_accepted_answer_to_a_weak_gold_is_named_in_all_forms(
    suite: Suite, entries: list[dict[str, Any]], write: Write, tmp_path: Path
) -> None:
    entries[0]["grade"] = "weak"
    write(entries)
    assert score(suite, tmp_path)["certified"]["accepted_weak"] == ["1"]
    markdown = Report.of_run(tmp_path / "run").to_markdown()
    assert "task 1 is accepted, and its gold is weak" in markdown
    assert "weak gold" in report_html(tmp_path / "run")


def test_a_run_with_the_corrections_says_so(
    suite: Suite, entries: list[dict[str, Any]], write: Write, tmp_path: Path
) -> None:
    report = score(suite, tmp_path, corrections=write(entries).parent)
    assert report["overall"]["tasks"] == 3
    assert report["overall"]["hard_restriction"] == pytest.approx(2 / 3)
    assert report["overall"]["including_excluded"]["tasks"] == 5
    shown = report["certified"]
    assert shown["applied"]
    assert shown["scores"]["tasks"] == 3
    assert shown["scores"]["hard_restriction"] == pytest.approx(2 / 3)


def test_nothing_is_said_of_a_suite_that_nobody_graded(
    suite: Suite, entries: list[dict[str, Any]], write: Write, tmp_path: Path
) -> None:
    write([entry | {"gold_sha256": "0" * 64, "corrections": []} for entry in entries])
    assert "certified" not in score(suite, tmp_path)
