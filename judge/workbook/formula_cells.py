"""The formula cells of a whole sheet, and those whose formula fills other cells too."""

from __future__ import annotations

from dataclasses import replace

from judge.workbook.address import MAX_COLUMN, MAX_ROW, cell_key
from judge.workbook.cell import Cell, CellRange
from judge.workbook.reader import Workbook

DATA_TABLE = "=TABLE()"
"""The formula of the cells of a data table, which has no text."""

UNCOMPUTED_TABLE = "=TABLE(#REF!)"
"""The same if no engine computes it, as where the file does not name its input cells."""


def filling_cells(workbook: Workbook, sheet: str) -> list[Cell]:
    """The cells of a sheet whose formula fills other cells too, with the range that it fills.

    A data table of one cell is one of them.

    Raises:
        WorkbookError: the sheet cannot be read.
    """
    if not workbook.sheet(sheet).fills:
        return []
    return [
        cell
        for cell in sheet_formulas(workbook, sheet)
        if cell.array_range is not None
        and (":" in cell.array_range or cell.formula in {DATA_TABLE, UNCOMPUTED_TABLE})
    ]


def sheet_formulas(workbook: Workbook, sheet: str) -> list[Cell]:
    """Every formula cell of a sheet; a data table's first cell says what the table fills.

    Raises:
        WorkbookError: the sheet cannot be read.
    """
    target = workbook.sheet(sheet)
    cells = []
    for cell in workbook.formula_cells(_whole(sheet)):
        raw = target.raw_formula(cell_key(cell.row, cell.column))
        if raw is not None and raw.kind == "dataTable":
            formula = DATA_TABLE if raw.computed_window else UNCOMPUTED_TABLE
            cells.append(replace(cell, formula=formula, array_range=raw.reference))
        else:
            cells.append(cell)
    return cells


def _whole(sheet: str) -> CellRange:
    return CellRange(sheet, 1, 1, MAX_ROW, MAX_COLUMN)
