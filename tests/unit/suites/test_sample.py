"""The sample suite is as described: checked here without the judge's own comparison."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from openpyxl import load_workbook

from judge.compare.cells.options import position_of
from judge.core.submission import Submission
from judge.core.task import Task, TestCase
from judge.suites import Suite, load_suite
from judge.suites.spreadsheetbench import InstructionType
from judge.suites.submissions import load_submissions
from judge.suites.suite import SHIPPED
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.slow

SAMPLE = REPOSITORY / "dataset" / "sample"
NEEDS_LIMITS = {"TLE", "MLE", "OLE", "SV"}
"""Verdicts that only a sandbox can give; the end-to-end tests cover those."""

DRIVER = """
import json, sys

outcomes = []
for code, program in json.load(open(sys.argv[1])):
    try:
        exec(compile(code, program, "exec"), {"__name__": "__main__"})
        outcomes.append("OK")
    except SyntaxError:
        outcomes.append("CE")
    except Exception as error:
        outcomes.append("RE")
json.dump(outcomes, open(sys.argv[2], "w"))
"""


@pytest.fixture(scope="module")
def suite() -> Suite:
    return load_suite(SAMPLE)


@pytest.fixture(scope="module")
def submissions(suite: Suite) -> list[Submission]:
    return load_submissions(SAMPLE / "submissions.jsonl", suite)


def split_position(position: str) -> Iterator[tuple[str | None, str]]:
    """Returns sheet (or None) and range of each part; commas in quotes do not separate parts."""
    for part in re.findall(r"(?:'(?:[^']|'')*'|[^,'])+", position):
        sheet, bang, cells = part.rpartition("!")
        name = sheet[1:-1].replace("''", "'") if sheet.startswith("'") else sheet
        yield (name if bang else None), cells


def plain(value: object) -> object:
    """Normalises a value for comparison: numbers to two digits, numeric text to numbers."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return value or None
    return round(float(value), 2) if isinstance(value, int | float) else value


class Answered(NamedTuple):
    """A cell of an answer: its value, its formula if any, and its fill if fills count."""

    value: object
    formula: str | None
    fill: object

    def agrees(self, actual: Answered) -> bool:
        """Nothing is computed here: a formula that was not changed agrees by its text."""
        if actual.formula is not None:
            return actual.formula == self.formula
        return (self.value, self.fill) == (actual.value, actual.fill)


Answer = dict[tuple[str, int, int], Answered]


def answer_of(task: Task, path: Path) -> Answer | None:
    """Returns the cells of the answer position, or None if a sheet is missing."""
    book, formulas = load_workbook(path, data_only=True), load_workbook(path)
    styled = task.checker.options.get("style") == ("fill",)
    found: Answer = {}
    position, answer_sheet = position_of(task.checker)
    for sheet, cells in split_position(position):
        name = sheet or answer_sheet or book.sheetnames[0]
        if name not in book.sheetnames:
            return None
        for row in book[name][cells]:
            for cell in row:
                written = formulas[name][cell.coordinate]
                found[name, cell.row, cell.column] = Answered(
                    plain(cell.value),
                    written.value if written.data_type == "f" else None,
                    cell.fill.fgColor.rgb if styled and cell.fill.fill_type else None,
                )
    return found


def agree(gold: Answer | None, actual: Answer | None) -> bool:
    assert gold is not None
    return actual is not None and all(gold[place].agrees(actual[place]) for place in gold)


def values_of(task: Task, path: Path) -> list[object]:
    """Returns the cached values of the answer position."""
    book = load_workbook(path, data_only=True)
    position, answer_sheet = position_of(task.checker)
    return [
        cell.value
        for sheet, cells in split_position(position)
        for row in book[sheet or answer_sheet or book.sheetnames[0]][cells]
        for cell in row
    ]


def test_its_size_and_its_kinds(suite: Suite) -> None:
    assert len(suite.tasks) >= 12
    assert {len(task.cases) for task in suite.tasks} == {3}
    assert {task.kind for task in suite.tasks} == {kind.value for kind in InstructionType}
    assert not suite.notes
    assert {type(task.raw_id) for task in suite.tasks} == {int, str}
    positions = [position_of(task.checker)[0] for task in suite.tasks]
    assert "G3:G6,J3:J5" in positions
    assert any("''" in position for position in positions)
    assert any(task.checker.options.get("style") == ("fill",) for task in suite.tasks)


def test_each_task_has_right_and_wrong_submissions(
    suite: Suite, submissions: list[Submission]
) -> None:
    for task in suite.tasks:
        own = [one for one in submissions if one.task_id == task.id]
        assert [one.sample for one in own] == list(range(len(own)))
        assert own[0].label == "values"
        assert [one.expected for one in own[:2]] == [("AC",), ("AC",)]
        assert len(own) > 2
        assert all(set(one.expected) != {"AC"} for one in own[2:])
        assert all(len(one.expected) in {1, 3} for one in own)
        assert len({one.label for one in own}) == len(own)


def test_each_verdict_of_a_solution_is_expected_somewhere(submissions: list[Submission]) -> None:
    codes = Counter(code for one in submissions for code in one.expected)
    assert codes.keys() == {"AC", "WA", "NO", "IW", "CE", "RE", "TLE", "MLE", "OLE", "SV"}
    assert any(one.code is None for one in submissions)


def test_solution_paths(suite: Suite, submissions: list[Submission]) -> None:
    assert {one.task_id for one in submissions} == {task.id for task in suite.tasks}
    for one in submissions:
        assert one.input_path == f"/mnt/data/input/1_{one.task_id}_input.xlsx"
        assert one.output_path == f"/mnt/data/output/1_{one.task_id}_output.xlsx"
        # Nothing but what it was told leads anywhere outside, attacks apart.
        if set(one.expected) != {"SV"} and one.code is not None:
            assert set(re.findall(r"\"(/[^\"]*)\"", one.code)) <= {
                one.input_path,
                one.output_path,
                "/mnt/data/output/invoices_done.xlsx",
            }


def test_every_answer_is_something_and_fits_its_position(suite: Suite) -> None:
    for task in suite.tasks:
        answers = [values_of(task, case.gold_path) for case in task.cases]
        assert all(any(value is not None for value in answer) for answer in answers), task.id
        # Other values in each case: a solution that learns one by heart fails.
        assert len({repr(answer) for answer in answers}) == 3, task.id


def test_an_untouched_input_is_never_right(suite: Suite) -> None:
    for task in suite.tasks:
        for case in task.cases:
            gold, untouched = answer_of(task, case.gold_path), answer_of(task, case.input_path)
            assert not agree(gold, untouched), (task.id, case.number)


def test_nothing_but_the_answer_differs(suite: Suite) -> None:
    """Golds are inputs with the answer: apart from moved rows, no other cell has changed."""
    for task in suite.tasks:
        if task.kind == InstructionType.SHEET_LEVEL.value:
            continue
        for case in task.cases:
            before, after = (load_workbook(path) for path in (case.input_path, case.gold_path))
            assert before.sheetnames == after.sheetnames
            answer = answer_of(task, case.gold_path) or {}
            for sheet in after.worksheets:
                for row in sheet.iter_rows():
                    for cell in row:
                        place = (sheet.title, cell.row, cell.column)
                        if cell.value is not None and place not in answer:
                            old = before[sheet.title][cell.coordinate]
                            assert old.value == cell.value, (task.id, place)


def test_golds_with_formulas_have_their_values(suite: Suite) -> None:
    with_formulas = set()
    for task in suite.tasks:
        for case in task.cases:
            values = load_workbook(case.gold_path, data_only=True)
            for sheet in load_workbook(case.gold_path).worksheets:
                for row in sheet.iter_rows():
                    for cell in row:
                        if cell.data_type == "f":
                            with_formulas.add(task.id)
                            cached = values[sheet.title][cell.coordinate].value
                            assert cached is not None, (task.id, cell.coordinate)
    assert with_formulas == {"1006", "1008", "11-1"}


def runs_here(submission: Submission, code: str) -> bool:
    """Whether this test can check it: without sandbox and engine, with openpyxl alone."""
    assert submission.code is not None
    return (
        code not in NEEDS_LIMITS
        and submission.label not in {"formulas", "hides-errors"}
        and re.search(r"\b(pandas|xlsxwriter)\b", submission.code) is None
    )


def outcome_of(task: Task, case: TestCase, status: str, output: Path) -> str:
    if status != "OK":
        return status
    if not output.exists():
        return "NO"
    if not zipfile.is_zipfile(output):
        return "IW"
    return "AC" if agree(answer_of(task, case.gold_path), answer_of(task, output)) else "WA"


def test_submissions_get_what_they_expect(
    suite: Suite, submissions: list[Submission], tmp_path: Path
) -> None:
    planned: list[tuple[Submission, Task, TestCase, str, Path]] = []
    programs: list[tuple[str, str]] = []
    for submission in submissions:
        task = suite.task(submission.task_id)
        expected = submission.expected * (3 if len(submission.expected) == 1 else 1)
        for case, code in zip(task.cases, expected, strict=True):
            if submission.code is None:
                assert code == "CE"
                continue
            if not runs_here(submission, code):
                continue
            folder = tmp_path / f"{task.id}.{submission.sample}.{case.number}"
            folder.mkdir()
            output = folder / "output.xlsx"
            program = (
                submission.code.replace(submission.input_path, str(case.input_path))
                .replace(submission.output_path, str(output))
                .replace("/mnt/data/output", str(folder))
            )
            planned.append((submission, task, case, code, output))
            programs.append((program, f"{task.id}-{submission.label}.py"))
    plan, report = tmp_path / "plan.json", tmp_path / "report.json"
    plan.write_text(json.dumps(programs))
    subprocess.run([sys.executable, "-c", DRIVER, plan, report], check=True, timeout=120)
    statuses = json.loads(report.read_text())
    surprises = [
        f"{task.id} {submission.label} case {case.number}: expected {code}, got {got}"
        for (submission, task, case, code, output), status in zip(planned, statuses, strict=True)
        if (got := outcome_of(task, case, status, output)) != code
    ]
    assert not surprises
    assert len({one.task_id for one, *_ in planned}) == len(suite.tasks)
    assert {code for *_, code, _ in planned} == {"AC", "WA", "NO", "IW", "CE", "RE"}


def test_formula_solutions_write_formulas(
    suite: Suite, submissions: list[Submission], tmp_path: Path
) -> None:
    formulas = [one for one in submissions if one.label == "formulas"]
    assert len(formulas) >= 9
    outputs = [tmp_path / f"{one.task_id}.xlsx" for one in formulas]
    programs = []
    for one, output in zip(formulas, outputs, strict=True):
        assert one.code is not None
        source = suite.task(one.task_id).cases[2].input_path
        code = one.code.replace(one.input_path, str(source))
        programs.append((code.replace(one.output_path, str(output)), f"{one.task_id}.py"))
    plan, report = tmp_path / "plan.json", tmp_path / "report.json"
    plan.write_text(json.dumps(programs))
    subprocess.run([sys.executable, "-c", DRIVER, plan, report], check=True, timeout=120)
    assert set(json.loads(report.read_text())) == {"OK"}
    for one, output in zip(formulas, outputs, strict=True):
        answer = answer_of(suite.task(one.task_id), output) or {}
        assert any(cell.formula is not None for cell in answer.values())


def test_it_is_made_the_same_each_time(tmp_path: Path) -> None:
    generator = REPOSITORY / "scripts" / "make_sample.py"
    command = [sys.executable, str(generator), "--out", str(tmp_path)]
    subprocess.run(command, check=True, timeout=120, stdout=subprocess.DEVNULL)
    made = {path.relative_to(tmp_path): path for path in tmp_path.rglob("*.*")}
    folders = [SAMPLE.with_name(name) for name in SHIPPED]
    by_hand = {"README.md", "profit.yaml", "summary.yaml", "chart.yaml", "impossible.yaml"}
    paths = [path for folder in folders for path in folder.rglob("*.*") if path.name not in by_hand]
    committed = {path.relative_to(SAMPLE.parent): path for path in paths}
    assert committed.keys() == made.keys()
    for place, path in committed.items():
        # Another zlib may pack it otherwise; all else of an archive is the same.
        seen = parts_of if path.suffix == ".xlsx" else Path.read_bytes
        assert seen(made[place]) == seen(path), place


def parts_of(path: Path) -> list[tuple[str, tuple[int, ...], int, int, bytes]]:
    """Returns names, dates, methods, permissions and contents, in their order."""
    with zipfile.ZipFile(path) as package:
        return [
            (each.filename, each.date_time, each.compress_type, each.external_attr,
             package.read(each))
            for each in package.infolist()
        ]  # fmt: skip
