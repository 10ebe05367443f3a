"""Finds the cells that get their value from a formula."""

import io
import zipfile

import pytest

from judge.core.submission import Origin
from judge.recalc import wanted
from judge.recalc.policy import Recalculator
from judge.recalc.wanted import wanted_cells
from judge.workbook.budget import ReadLimits
from judge.workbook.cell import CellRange
from judge.workbook.reader import Workbook, open_workbook, sheet_formulas
from tests.unit.compare.cells.packages import Book
from tests.unit.recalc.fakes import ALL, SHEET, ScriptedEngine, package, ref, workbook


def test_formulas_and_what_they_fill() -> None:
    book = workbook({"A1": "=1", "A2": 5, "C3": ("C3:D4", "=A1:B2"), "D9": "text"})
    found = {cell.ref: cell for cell in wanted_cells(book, [ALL])[0]}
    assert set(found) == {ref(1), ref(3, 3), ref(3, 4), ref(4, 3), ref(4, 4)}
    assert found[ref(4, 4)].source.formula == "=A1:B2"
    assert not found[ref(4, 4)].has_cached_value


def test_an_array_formula_reaches_into_a_range_from_above() -> None:
    book = workbook({"A1": ("A1:A9", "=ROW(A1:A9)")})
    found, _ = wanted_cells(book, [CellRange(SHEET, 5, 1, 20, 3)])
    assert {cell.ref for cell in found} == {ref(row) for row in range(5, 10)}


def test_a_single_cell_array_formula_fills_itself() -> None:
    book = workbook({"A1": ("A1", "=SUM(B1:B3*2)")})
    assert [cell.ref for cell in wanted_cells(book, [ALL])[0]] == [ref(1)]


def test_constants_are_not_computed() -> None:
    assert wanted_cells(workbook({"A1": 1, "B1": "x"}), [ALL]) == ([], [])


def test_what_array_formulas_fill_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wanted, "FILLED_LIMIT", 5)
    book = workbook({"A1": ("A1:C3", "=1")})
    found, (note,) = wanted_cells(book, [ALL])
    assert [cell.ref for cell in found] == [ref(1)]
    assert "fill more than 5 cells" in note


def test_every_formula_of_a_sheet() -> None:
    book = workbook({"A1": "=1", "C3": ("C3:D4", "=A1")})
    assert [cell.array_range for cell in sheet_formulas(book, SHEET)] == [None, "C3:D4"]


def test_many_array_formulas_cost_one_reading_of_the_sheet() -> None:
    cells = {f"A{row}": (f"A{row}:B{row}", "=C1:D1") for row in range(1, 301)}
    data = package(cells)
    size = sum(entry.file_size for entry in zipfile.ZipFile(io.BytesIO(data)).infolist())
    book = open_workbook(data, limits=ReadLimits(total_bytes=10 * size))
    found, notes = wanted_cells(book, [CellRange(SHEET, 1, 1, 400, 2)])
    assert (len(found), notes) == (600, [])


TABLE = 'dt2D="0" dtr="0" r1="A7"'


def with_formula(markup: str) -> Workbook:
    """B2 to B5 with stored values, and the markup of a formula in B2."""
    rows = "".join(
        f'<row r="{row}"><c r="B{row}">{markup if row == 2 else ""}<v>{1000 + row}</v></c></row>'
        for row in range(2, 6)
    )
    book = Book({SHEET: f"<sheetData>{rows}</sheetData>"}, application="SomeLibrary")
    return open_workbook(book.to_bytes())


def data_table(attributes: str, reference: str = "B2:B5", text: str = "") -> str:
    return f'<f t="dataTable" ref="{reference}" {attributes}>{text}</f>'


def stored(name: str) -> ScriptedEngine:
    """An engine that repeats the stored values."""
    return ScriptedEngine(name, {ref(row, 2): 1000 + row for row in range(2, 6)})


@pytest.mark.parametrize(
    "markup",
    [
        data_table('dt2D="0" dtr="0" r1="A7" del1="1"'),
        data_table('dt2D="0" dtr="0" r1="#REF!"'),
        data_table('dt2D="0" dtr="0" r1="A7:A8"'),
        data_table('dt2D="0" dtr="0"'),
        data_table('dt2D="1" dtr="1" r1="A7"'),
        data_table('dt2D="1" dtr="1" r1="A7" r2="A8" del2="true"'),
        data_table('dt2D="x" dtr="0" r1="A7"'),
        data_table(TABLE, text="1000+2").replace("A7", "XFE1"),
        data_table(TABLE).replace("dataTable", "data&#84;able").replace("A7", "#REF!"),
    ],
)
@pytest.mark.parametrize("first_row", [2, 3])
def test_a_data_table_without_its_inputs_has_no_values(markup: str, first_row: int) -> None:
    area = CellRange(SHEET, first_row, 2, 5, 2)
    computed = Recalculator([stored("libreoffice"), stored("formualizer")]).fill(
        with_formula(markup), [area], origin=Origin.SOLUTION
    )
    assert not computed.values
    assert computed.not_calculated.keys() == {ref(row, 2) for row in range(first_row, 6)}
    assert "data table" in computed.not_calculated[ref(5, 2)]


@pytest.mark.parametrize("text", ["", "1000+2"])
@pytest.mark.parametrize("others", [["formualizer"], ["formualizer", "ironcalc"]])
def test_only_libreoffice_computes_data_tables(text: str, others: list[str]) -> None:
    book = with_formula(data_table(TABLE, text=text))
    area = CellRange(SHEET, 2, 2, 5, 2)
    quick = [stored(name) for name in others]
    without = Recalculator(quick).fill(book, [area], origin=Origin.SOLUTION)
    assert not without.values
    assert len(without.not_calculated) == 4
    office = ScriptedEngine("libreoffice", {ref(row, 2): 2 * row for row in range(2, 6)})
    computed = Recalculator([office, *quick]).fill(book, [area], origin=Origin.SOLUTION)
    assert computed.values == {ref(row, 2): 2 * row for row in range(2, 6)}


@pytest.mark.parametrize(
    ("attributes", "computed"),
    [
        ('dtr="0" r1="A7"', "BC"),
        ('dtr="1" r1="A7"', "BCD"),
        ('dt2D="1" dtr="1" r1="A7" r2="A8"', "BCD"),
    ],
)
def test_libreoffice_computes_two_columns_or_rows_of_a_table_with_one_input(
    attributes: str, computed: str
) -> None:
    rows = (
        f'<row r="2"><c r="B2">{data_table(attributes, "B2:D4")}<v>7</v></c></row>'
        '<row r="4"><c r="D4"><v>7</v></c></row>'
    )
    book = open_workbook(Book({SHEET: f"<sheetData>{rows}</sheetData>"}).to_bytes())
    found = {
        cell.ref for cell in wanted_cells(book, [ALL])[0] if cell.source.formula != "=TABLE(#REF!)"
    }
    last = 3 if 'dtr="1"' in attributes and "dt2D" not in attributes else 4
    expected = {ref(row, "ABCD".index(each) + 1) for row in range(2, last + 1) for each in computed}
    assert found == expected
    area = CellRange(SHEET, 2, 2, 4, 4)
    office = ScriptedEngine(
        "libreoffice", {ref(row, column): 7 for row in (2, 3, 4) for column in (2, 3, 4)}
    )
    result = Recalculator([office]).fill(book, [area], origin=Origin.SOLUTION)
    assert result.values.keys() == expected
    assert len(result.values) + len(result.not_calculated) == 9


def test_a_data_table_of_one_cell_is_a_data_table() -> None:
    (found,), _ = wanted_cells(with_formula(data_table(TABLE, "B2")), [ALL])
    assert found.source.formula == "=TABLE()"


@pytest.mark.parametrize(
    "markup",
    [
        "<f/>",
        "<f></f>",
        '<f t="normal"></f>',
        '<f t="array" ref="B2"></f>',
        '<f ca="1"/>',
        '<f t="shared"/>',
    ],
)
def test_a_formula_without_text_has_no_value(markup: str) -> None:
    area = CellRange(SHEET, 2, 2, 2, 2)
    computed = Recalculator([stored("libreoffice"), stored("formualizer")]).fill(
        with_formula(markup), [area], origin=Origin.SOLUTION
    )
    assert not computed.values
    assert computed.not_calculated == {ref(2, 2): "its formula has no text"}


def test_an_array_formula_fills_cells_whose_own_formula_has_no_text() -> None:
    rows = (
        '<row r="2"><c r="B2"><f t="array" ref="B2:C2">{1,666}</f><v>1</v></c>'
        '<c r="C2"><f ca="1"/><v>1</v></c></row>'
    )
    book = open_workbook(Book({SHEET: f"<sheetData>{rows}</sheetData>"}).to_bytes())
    found = {cell.ref: cell.source.formula for cell in wanted_cells(book, [ALL])[0]}
    assert found == {ref(2, 2): "={1,666}", ref(2, 3): "={1,666}"}
