from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from judge.cli.compare import compare
from judge.errors import PositionError, UsageError, WorkbookError
from tests.unit.compare.cells.packages import (
    BROKEN_LOOKS,
    Book,
    cell,
    sheet_data,
    simple,
    worksheet,
)


@pytest.fixture
def books(tmp_path: Path) -> Path:
    (tmp_path / "gold.xlsx").write_bytes(simple({"A1": 1, "B1": "x", "C1": 0.5}))
    (tmp_path / "same.xlsx").write_bytes(simple({"A1": 1, "B1": "x", "C1": 0.5}))
    (tmp_path / "other.xlsx").write_bytes(simple({"A1": 2, "B1": "X ", "C1": 0.6, "D1": 4}))
    return tmp_path


def run(folder: Path, output: str, *options: str, catch: bool = False) -> Result:
    arguments = [str(folder / "gold.xlsx"), str(folder / output), *options]
    return CliRunner().invoke(compare, arguments, catch_exceptions=catch)


def test_equal_workbooks(books: Path) -> None:
    result = run(books, "same.xlsx", "--at", "A1:C1")
    assert result.exit_code == 0
    assert result.output.startswith("equal under standard: 3 of 3 cells agree (100.00 %)")


def test_different_workbooks_exit_with_1(books: Path) -> None:
    result = run(books, "other.xlsx", "--at", "A1:C1", "--show", "1")
    assert result.exit_code == 1
    assert "Sheet1!A1  1         2" in result.output
    assert "… and 2 more" in result.output


def test_json(books: Path) -> None:
    result = run(books, "other.xlsx", "--at", "A1:C1", "--json", "--profile", "official")
    record = json.loads(result.output)
    assert result.exit_code == 1
    assert (record["equal"], record["profile"], record["differing_cells"]) == (False, "official", 3)


def test_options_of_the_checker(books: Path) -> None:
    options = ["--at", "A1:D1", "--ignore", "A1", "--ignore-extra", "--ignore-case"]
    options += ["--ignore-whitespace"]
    assert run(books, "other.xlsx", *options, "--tolerance", "0.1").exit_code == 0
    assert run(books, "other.xlsx", *options, "--relative-tolerance", "0.2").exit_code == 0
    assert run(books, "other.xlsx", *options, "--tolerance", "0").exit_code == 1
    assert run(books, "other.xlsx", *options).exit_code == 1


def test_unordered_rows_and_style(books: Path) -> None:
    (books / "gold.xlsx").write_bytes(simple({"A1": 1, "A2": 2}))
    (books / "swapped.xlsx").write_bytes(simple({"A1": 2, "A2": 1}))
    red = Book({"Sheet1": sheet_data(cell("A1", 1, style=6), cell("A2", 2))}).to_bytes()
    (books / "red.xlsx").write_bytes(red)
    assert run(books, "swapped.xlsx", "--at", "A1:A2").exit_code == 1
    assert run(books, "swapped.xlsx", "--at", "A1:A2", "--unordered-rows").exit_code == 0
    assert run(books, "red.xlsx", "--at", "A1:A2").exit_code == 0
    result = run(books, "red.xlsx", "--at", "A1:A2", "--style", "fill", "--style", "bold")
    assert result.exit_code == 1
    assert "style differs: fill: expected no fill, found #FF0000" in result.output


def test_untouched_cells(books: Path) -> None:
    (books / "input.xlsx").write_bytes(simple({"A1": 0, "D1": 1}))
    (books / "changed.xlsx").write_bytes(simple({"A1": 1, "D1": 2}))
    given = ["--at", "A1", "--input", str(books / "input.xlsx")]
    result = run(books, "changed.xlsx", *given, "--untouched")
    assert result.exit_code == 1
    assert "Sheet1!D1: changed: was 1, is 2" in result.output
    result = run(books, "changed.xlsx", *given)
    assert result.exit_code == 0
    assert "modification: 1 of 1 cells agree" in result.output


def test_untouched_cells_take_the_input(books: Path) -> None:
    with pytest.raises(UsageError) as raised:
        run(books, "same.xlsx", "--at", "A1", "--untouched")
    assert raised.value.hint == "Add --input FILE."


def test_what_the_output_lost(books: Path) -> None:
    merged = sheet_data(cell("A1", 1), cell("D1", 1)) + (
        '<mergeCells count="1"><mergeCell ref="D1:E1"/></mergeCells>'
    )
    for name in ("input.xlsx", "gold.xlsx"):
        (books / name).write_bytes(Book({"Sheet1": merged}).to_bytes())
    (books / "lost.xlsx").write_bytes(simple({"A1": 1, "D1": 1}))
    given = ["--at", "A1", "--input", str(books / "input.xlsx"), "--keep"]
    result = run(books, "lost.xlsx", *given, "note")
    assert result.exit_code == 0
    assert "note: lost: Sheet1!D1:E1: merged cells, 1 x 2" in result.output
    result = run(books, "lost.xlsx", *given, "fail")
    assert result.exit_code == 1
    assert "  lost: Sheet1!D1:E1: merged cells, 1 x 2" in result.output
    with pytest.raises(UsageError) as raised:
        run(books, "same.xlsx", "--at", "A1", "--keep", "note")
    assert raised.value.hint == "Add --input FILE."
    run(books, "same.xlsx", "--at", "A1", "--keep", "off", "--no-untouched")


def test_a_formula_that_is_asked_for(books: Path) -> None:
    formula = Book({"Sheet1": sheet_data(cell("A1", 1, formula="0+1"))}).to_bytes()
    (books / "gold.xlsx").write_bytes(formula)
    (books / "constant.xlsx").write_bytes(simple({"A1": 1}))
    given = ["--at", "A1", "--recalc", "never", "--formula-asked", "fail"]
    result = run(books, "constant.xlsx", *given)
    assert result.exit_code == 1
    assert "  no formula: the gold has 1 in the answer; the output has constants" in result.output


def test_a_change_is_made_in_both_workbooks_before_they_are_compared(books: Path) -> None:
    before = run(books, "other.xlsx", "--at", "A1", "--recalc", "never")
    changed = ["--at", "A1", "--recalc", "never", "--change", "A1=5"]
    assert (before.exit_code, run(books, "other.xlsx", *changed).exit_code) == (1, 0)
    with pytest.raises(UsageError, match="is not CELL=VALUE"):
        run(books, "same.xlsx", "--at", "A1", "--change", "A1")
    with pytest.raises(WorkbookError, match="there is no sheet 'None'"):
        run(books, "same.xlsx", "--at", "A1", "--change", "None!A1=3")
    with pytest.raises(UsageError, match="--change can only be used with --at"):
        run(books, "same.xlsx", "--board", str(books / "gold.xlsx"), "--change", "A1=5")


def test_collateral_damage_takes_the_input(books: Path) -> None:
    with pytest.raises(UsageError, match="--collateral compares with the workbook"):
        run(books, "other.xlsx", "--at", "A1", "--collateral", "note")
    given = ["--at", "A1", "--input", str(books / "gold.xlsx"), "--collateral", "note", "--json"]
    record = json.loads(run(books, "other.xlsx", *given).output)["collateral"]
    assert (record["overwritten"], record["added"], record["damage"]) == (2, 1, 2)


def test_an_engine_that_does_not_exist_is_refused_where_nothing_is_computed(books: Path) -> None:
    result = run(books, "same.xlsx", "--at", "A1:C1", "--engine", "abacus", catch=True)
    assert result.exit_code == 2
    assert "'abacus' is not a calculation engine; choose auto, libreoffice" in result.output


def test_without_recalculation_a_formula_stays_without_a_value(books: Path) -> None:
    formula = Book({"Sheet1": sheet_data(cell("A1", formula="0+1"))}).to_bytes()
    (books / "formula.xlsx").write_bytes(formula)
    result = run(books, "formula.xlsx", "--at", "A1", "--recalc", "never")
    assert result.exit_code == 1
    assert "formula without a value  the formula has no value" in result.output


def test_the_answer_sheet_of_a_position_without_one(books: Path) -> None:
    two = Book({"One": sheet_data(cell("A1", 1)), "Two": sheet_data(cell("A1", 2))}).to_bytes()
    (books / "gold.xlsx").write_bytes(two)
    (books / "two.xlsx").write_bytes(two)
    result = run(books, "two.xlsx", "--at", "A1", "--answer-sheet", "Two")
    assert "in 'Two'!A1" in result.output


def test_a_position_that_cannot_be_read(books: Path) -> None:
    with pytest.raises(PositionError):
        run(books, "same.xlsx", "--at", "nowhere")


@pytest.mark.parametrize(
    ("gold", "output", "message"),
    [
        ("broken", "same", r"^the gold, .*broken\.xlsx: the file is text, not"),
        ("gold", "broken", r"^the output, .*broken\.xlsx: the file is text, not"),
        ("rows", "same", r"^the gold, .*rows\.xlsx: xl/worksheets/sheet1\.xml ends among its rows"),
        ("gold", "rows", r"^the output, .*rows\.xlsx: xl/worksheets/sheet1\.xml ends among its"),
        ("looks", "same", r"^the gold, .*looks\.xlsx: xl/styles\.xml is not well-formed"),
        ("gold", "looks", r"^the output, .*looks\.xlsx: xl/styles\.xml is not well-formed"),
    ],
)
def test_a_broken_file_is_named_with_what_to_do(
    books: Path, gold: str, output: str, message: str
) -> None:
    (books / "broken.xlsx").write_bytes(b"not a workbook")
    cut = worksheet('<sheetData><row r="1"><c r="A1"><v>1</v></c></row>')
    cut = cut.removesuffix("</worksheet>")
    (books / "rows.xlsx").write_bytes(Book({"Sheet1": cut}).to_bytes())
    looks = Book({"Sheet1": sheet_data(cell("A1", 1))}, styles=BROKEN_LOOKS).to_bytes()
    (books / "looks.xlsx").write_bytes(looks)
    arguments = [str(books / f"{gold}.xlsx"), str(books / f"{output}.xlsx"), "--at", "A1"]
    with pytest.raises(WorkbookError, match=message) as raised:
        CliRunner().invoke(compare, [*arguments, "--style", "bold"], catch_exceptions=False)
    assert raised.value.hint is not None
    assert "ave it as .xlsx" in raised.value.hint


def test_a_missing_file_is_wrong_use(books: Path) -> None:
    assert run(books, "absent.xlsx", "--at", "A1", catch=True).exit_code == 2
