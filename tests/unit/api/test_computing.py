"""Which files make the library open its engines."""

from __future__ import annotations

import pytest

from judge.api.judging import ComputeOnDemand
from judge.core.submission import Origin
from judge.recalc.names import Mode
from judge.recalc.policy import Recalculator
from judge.workbook.cell import CellRange, CellRef, CellValue
from judge.workbook.reader import open_workbook
from tests.unit.compare.cells.packages import Book, cell, sheet_data
from tests.unit.recalc.fakes import ScriptedEngine, ref
from tests.unit.recalc.test_policy import pivot_book

FILLED = CellRange("S", 2, 2, 3, 2)
"""Cells that are filled by an array formula above them."""

ARRAYS = [
    '<c r="B1"><f t="array" ref="B1:B3">A1:A3*2</f><v>2</v></c>',
    '<c r="B1"><f t="arr&#97;y" ref="B1:B3">A1:A3*2</f><v>2</v></c>',
    "<c r='B1'><f t='array' ref='$b$1:$b$3'>A1:A3*2</f><v>2</v></c>",
]


TABLE = '<c r="B1"><f t="dataTable" ref="B1:B3" dt2D="0" dtr="0" r1="A1"/><v>2</v></c>'
"""A data table in the first row, with no cell above it for the formula that it repeats."""


def forged(array: str) -> Book:
    """A workbook whose array formula is outside the range, with forged values inside."""
    rows = f'<row r="1">{array}</row>' + "".join(
        f'<row r="{row}">{cell(f"B{row}", 99)}</row>' for row in (2, 3)
    )
    return Book({"S": f"<sheetData>{rows}</sheetData>"}, app_version="16.0300")


def fill(book: Book, origin: Origin, mode: Mode = "auto") -> tuple[dict[CellRef, CellValue], int]:
    """Returns which filled cells are computed, and how often the engines were opened."""
    opened: list[ScriptedEngine] = []
    engine = ScriptedEngine("libreoffice", {ref(2, 2): 4, ref(3, 2): 6})

    def opens() -> Recalculator:
        opened.append(engine)
        return Recalculator([engine], mode=mode)

    workbook = open_workbook(book.to_bytes())
    computed = ComputeOnDemand(mode, opens).fill(workbook, [FILLED], origin=origin)
    return dict(computed.values), len(opened)


def test_stored_values_of_a_data_table_without_a_formula_are_not_trusted() -> None:
    computed, opened = fill(forged(TABLE), Origin.SOLUTION)
    assert (computed, opened) == ({}, 1)


@pytest.mark.parametrize("array", ARRAYS)
def test_cells_that_a_formula_outside_of_the_range_fills_are_computed(array: str) -> None:
    assert fill(forged(array), Origin.SOLUTION) == ({ref(2, 2): 4, ref(3, 2): 6}, 1)


def test_values_that_a_calculating_program_stored_need_no_engine() -> None:
    assert fill(forged(ARRAYS[0]), Origin.GOLD) == ({}, 0)
    assert fill(forged(ARRAYS[0]), Origin.SOLUTION, "never") == ({}, 0)
    assert fill(forged(ARRAYS[0]), Origin.GOLD, "always")[1] == 1


def test_constants_need_no_engine() -> None:
    assert fill(Book({"S": sheet_data(cell("B2", 1))}), Origin.SOLUTION) == ({}, 0)


def test_a_pivot_table_that_is_refreshed_on_load_needs_no_engine_either() -> None:
    def refuse() -> Recalculator:
        raise AssertionError("an engine was opened")

    compute = ComputeOnDemand("auto", refuse)
    book = pivot_book('refreshOnLoad="1"')
    computed = compute.fill(book, [CellRange("S", 3, 1, 3, 9)], origin=Origin.SOLUTION)
    assert set(computed.not_calculated) == {ref(3, 1), ref(3, 2)}
