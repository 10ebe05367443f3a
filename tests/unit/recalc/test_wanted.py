"""Which cells a formula gives a value."""

import io
import zipfile

import pytest

from judge.recalc import wanted
from judge.recalc.wanted import wanted_cells
from judge.workbook.budget import ReadLimits
from judge.workbook.cell import CellRange
from judge.workbook.formula_cells import sheet_formulas
from judge.workbook.reader import open_workbook
from tests.unit.recalc.fakes import ALL, SHEET, package, ref, workbook


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


def test_constants_want_nothing() -> None:
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
