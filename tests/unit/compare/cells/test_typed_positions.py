"""Positions that a person types are taken literally; those of published suites are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import judge
from judge.cli.main import judge as main
from judge.compare.cells.answer_range import prepare
from judge.compare.cells.computing import compare_files
from judge.compare.cells.options import range_spec
from judge.core.task import Task, TestCase
from judge.errors import PositionError, UsageError
from judge.recalc.library import ranges_of
from judge.sessions.corrections import Signed, Typed, corrections_of
from judge.suspects.model import CaseFiles
from judge.workbook.reader import open_workbook
from tests.unit.compare.cells.packages import Book, cell, sheet_data


def book(*sheets: str) -> bytes:
    return Book({name: sheet_data(cell("A1", 1)) for name in sheets}).to_bytes()


ONE, TWO = book("Sales"), book("Sales 2024", "Costs")

WRONG = [
    (ONE, "Nope!A1", None),
    (ONE, "Sale!A1", None),
    (ONE, "'Sal es'!A1", None),
    (ONE, "A1", "Nope"),
    (TWO, "Sales!A1", None),
    (TWO, "Sales2024!A1", None),
    (TWO, "Costs!A1,Sales!A1", None),
]
"""Positions that name no sheet of the workbook; some of them would be read leniently."""

RIGHT = [
    (ONE, "Sales!A1", None, "Sales"),
    (ONE, "SALES!A1", None, "Sales"),
    (ONE, "A1", None, "Sales"),
    (TWO, "A1", "costs", "Costs"),
    (TWO, "Costs!A1", "Sales 2024", "Costs"),
]


@pytest.mark.parametrize(("data", "position", "sheet"), WRONG)
def test_a_sheet_that_does_not_exist_is_an_error(
    data: bytes, position: str, sheet: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "book.xlsx"
    path.write_bytes(data)
    names = [repr(each) for each in open_workbook(data).sheet_names]
    with pytest.raises(PositionError, match="names the sheet") as raised:
        judge.compare(data, data, position, answer_sheet=sheet)
    assert raised.value.message.endswith(f"the workbook has {', '.join(names)}")
    given = ["compare", str(path), str(path), "--at", position]
    asked = CliRunner().invoke(main, [*given, *(["--answer-sheet", sheet] if sheet else [])])
    assert isinstance(asked.exception, PositionError)
    assert asked.exception.exit_code == 7
    if sheet is None:
        with pytest.raises(PositionError, match="names the sheet"):
            ranges_of(open_workbook(data), position)


@pytest.mark.parametrize(("data", "position", "sheet", "found"), RIGHT)
def test_a_sheet_is_found_as_spreadsheet_programs_find_it(
    data: bytes, position: str, sheet: str | None, found: str
) -> None:
    compared = judge.compare(data, data, position, answer_sheet=sheet)
    assert (compared.equal, [each.sheet for each in compared.ranges]) == (True, [found])


def test_published_positions_keep_their_lenience_and_their_note() -> None:
    lenient = judge.Judge().compare(ONE, ONE, "Nope!A1", published=True)
    assert lenient.equal
    assert "no sheet is called 'Nope'; the only one, 'Sales', was used instead" in lenient.notes
    read = compare_files(TWO, TWO, "Sales!A1")
    assert read.notes == ("sheet 'Sales' was read as 'Sales 2024'",)
    plan = prepare(range_spec("Nope!A1"), gold=open_workbook(ONE), output=None)
    assert plan.gold_ranges[0].sheet == "Sales"


def test_ranges_to_ignore_are_on_sheets_that_exist() -> None:
    with pytest.raises(PositionError, match="names the sheet 'Nope'"):
        judge.compare(ONE, ONE, "A1", options={"ignore": "Nope!A1"})
    other = Book({"Sales": sheet_data(cell("A1", 2))}).to_bytes()
    for ignored in ("A1", "sales!A1", "Sales!A1:B2"):
        assert judge.compare(ONE, other, "A1", options={"ignore": ignored}).equal, ignored


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    for name in ("input", "gold"):
        value = 1 if name == "gold" else 0
        data = Book({"Sales": sheet_data(cell("A1", value))}).to_bytes()
        (tmp_path / f"{name}.xlsx").write_bytes(data)
    assert CliRunner().invoke(main, ["dataset", "new", str(tmp_path / "s")]).exit_code == 0
    return tmp_path / "s"


def write(suite: Path, *options: str) -> BaseException | None:
    files = [str(suite.parent / f"{name}.xlsx") for name in ("input", "gold")]
    added = ["--instruction", "What is the sum?", "--type", "cell", "--case", *files]
    command = ["dataset", "add-task", str(suite), "7"]
    return CliRunner().invoke(main, [*command, *added, *options]).exception


def test_a_task_that_is_written_names_a_sheet_of_its_gold(suite: Path) -> None:
    refused = write(suite, "--position", "Nope!A1")
    assert isinstance(refused, PositionError)
    assert "gold of case 1" in refused.message
    assert "the workbook has 'Sales'" in refused.message
    assert write(suite, "--position", "Sales!A1") is None
    edit = ["dataset", "edit-task", str(suite), "7", "--position", "Nope!A1"]
    changed = CliRunner().invoke(main, edit)
    assert isinstance(changed.exception, PositionError), changed.output
    (record,) = json.loads((suite / "dataset.json").read_text())
    assert record["answer_position"] == "Sales!A1"
    # What a published suite says of itself may stay, whatever else is edited.
    record["answer_position"] = "Nope!A1"
    (suite / "dataset.json").write_text(json.dumps([record]))
    kept = ["dataset", "edit-task", str(suite), "7", "--instruction", "What is the total?"]
    assert CliRunner().invoke(main, kept).exception is None


def test_a_reviewer_names_a_sheet_of_the_golds(suite: Path) -> None:
    parent = suite.parent
    case = TestCase.of_workbooks(1, parent / "input.xlsx", parent / "gold.xlsx")
    task = Task("7", "?", "?", (case,), range_spec("A1"))
    files = [CaseFiles("7", 1, "0" * 64, "1" * 64)]
    signed = Signed("ann", "2026-11-23", "it is wrong", "A1", "by hand")
    with pytest.raises(UsageError, match=r"case 1: .* names the sheet 'Nope'"):
        corrections_of(task, files, Typed(position="Nope!A1"), signed, "spreadsheetbench")
    corrections = corrections_of(
        task, files, Typed(position="Sales!A1"), signed, "spreadsheetbench"
    )
    assert [each.now for each in corrections] == ["Sales!A1"]
