"""The reference for checking the judge's own reader: openpyxl behind the same contract.

Grading never uses it. It is slower by an order of magnitude and has no bounds.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping
from typing import Any

import openpyxl
from openpyxl.worksheet.formula import ArrayFormula

from judge.errors import WorkbookError
from judge.workbook.cell import Cell, CellRange, CellValue, ErrorValue


class ReferenceWorkbook:
    """A workbook as openpyxl reads it.

    Args:
        data: the file's bytes.
        formulas: read the formulas too, which takes another pass over the whole file.

    Raises:
        WorkbookError: openpyxl cannot read it.
    """

    def __init__(self, data: bytes, *, formulas: bool = True) -> None:
        self._values = _load(data, data_only=True)
        self._formulas = _load(data, data_only=False) if formulas else None

    @property
    def sheet_names(self) -> tuple[str, ...]:
        """Worksheets in workbook order, without chart sheets."""
        return tuple(sheet.title for sheet in self._values.worksheets)

    def cells(self, cell_range: CellRange) -> Mapping[tuple[int, int], Cell]:
        """The stored cells of a range by (row, column), 1-based.

        Unlike the judge's reader, openpyxl puts the target of a hyperlink into a blank cell.
        """
        sheet = self._values[cell_range.sheet]
        written = {}
        if self._formulas is not None:
            written = self._formulas[cell_range.sheet]._cells
        found: dict[tuple[int, int], Cell] = {}
        for (row, column), cell in sheet._cells.items():
            if not (
                cell_range.min_row <= row <= cell_range.max_row
                and cell_range.min_column <= column <= cell_range.max_column
            ):
                continue
            formula, array_range = _formula(written.get((row, column)))
            found[row, column] = Cell(
                row=row,
                column=column,
                value=_value(cell),
                formula=formula,
                array_range=array_range,
                has_cached_value=formula is None or cell.value is not None,
                style=0,
                number_format=cell.number_format,
            )
        return found

    def is_linked(self, cell_range: CellRange, row: int, column: int) -> bool:
        """Whether a cell has a hyperlink."""
        cell = self._values[cell_range.sheet]._cells.get((row, column))
        return getattr(cell, "hyperlink", None) is not None


def _load(data: bytes, *, data_only: bool) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return openpyxl.load_workbook(io.BytesIO(data), data_only=data_only)
    except Exception as error:  # openpyxl lets nearly any exception through
        raise WorkbookError(f"openpyxl: {type(error).__name__}: {error}") from error


def _value(cell: Any) -> CellValue:
    value: CellValue = cell.value
    if cell.data_type == "e" and isinstance(value, str):
        return ErrorValue(value)
    return value


def _formula(cell: Any) -> tuple[str | None, str | None]:
    value = getattr(cell, "value", None)
    if isinstance(value, ArrayFormula):
        return value.text, value.ref
    if getattr(cell, "data_type", None) == "f" and isinstance(value, str):
        return value, None
    return None, None
