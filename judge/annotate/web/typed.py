"""Turns input on the page into edits of a workbook. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from judge.annotate.edits import (
    CellContent,
    DeleteRows,
    Edit,
    Formula,
    InsertRows,
    SetCell,
    parse_content,
)
from judge.errors import UsageError
from judge.workbook.address import MAX_COLUMN, MAX_ROW, parse_cell
from judge.workbook.cell import Cell, CellRange, CellRef
from judge.workbook.reader import Workbook

INPUT, GOLD = "input", "gold"

MAX_CELLS = 20_000
"""How many cells one change may set."""

_COLOUR = re.compile(r"#?[0-9A-Fa-f]{6}")
_TEXT_FORMAT = "@"


def read_change(change: Mapping[str, Any], books: Mapping[str, Workbook]) -> tuple[str, list[Edit]]:
    """Reads a change from the page.

    Args:
        change: ``book`` and ``sheet``, and one of these: ``cells`` (objects with ``cell`` and the
            typed ``text``); ``fill`` (a colour) with ``range``; ``insert_rows`` or ``delete_rows``
            (the first row, 1-based) with ``count``.
        books: the workbooks that the page shows.

    Returns:
        The workbook's name, and the edits.

    Raises:
        UsageError: the change does not have this form.
        WorkbookError: there is no such sheet.
    """
    book, sheet = change.get("book"), change.get("sheet")
    if not isinstance(book, str) or book not in books or not isinstance(sheet, str):
        raise UsageError("a change must name a workbook and a sheet")
    workbook = books[book]
    workbook.sheet(sheet)
    if "cells" in change:
        return book, _cells(change["cells"], sheet, workbook)
    if "fill" in change:
        return book, _fill(change, sheet, workbook)
    for name, kind in (("insert_rows", InsertRows), ("delete_rows", DeleteRows)):
        if name in change:
            row, count = change[name], change.get("count", 1)
            if not _is_row(row) or not _is_row(count):
                raise UsageError("rows must be whole numbers, 1 or more")
            return book, [kind(sheet, row, count)]
    raise UsageError("a change must have one of cells, fill, insert_rows or delete_rows")


def _cells(cells: Any, sheet: str, workbook: Workbook) -> list[Edit]:
    if not isinstance(cells, list) or len(cells) > MAX_CELLS:
        raise UsageError(f"at most {MAX_CELLS:,} cells are changed in one go")
    edits: list[Edit] = []
    for cell in cells:
        name, text = (cell.get("cell"), cell.get("text")) if isinstance(cell, dict) else (None, "")
        if not isinstance(name, str) or not isinstance(text, str):
            raise UsageError("a cell must have an address and text")
        ref = _ref(name, sheet)
        edits.append(SetCell(ref, _content(text, _cell(workbook, ref))))
    return edits


def _content(text: str, cell: Cell | None) -> CellContent:
    """The content for typed text; in a cell formatted as text, all but formulas are text."""
    is_text = cell is not None and cell.number_format == _TEXT_FORMAT
    if is_text and text and not text.startswith(("=", "'")):
        return text
    return parse_content(text)


def _fill(change: Mapping[str, Any], sheet: str, workbook: Workbook) -> list[Edit]:
    colour, corners = change["fill"], str(change.get("range", "")).split(":")
    if not isinstance(colour, str) or not _COLOUR.fullmatch(colour):
        raise UsageError(f"{colour!r} is not a colour; write it as RRGGBB")
    first, last = _ref(corners[0], sheet), _ref(corners[-1], sheet)
    area = CellRange(sheet, first.row, first.column, last.row, last.column)
    if not 0 < area.size <= MAX_CELLS:
        raise UsageError(f"at most {MAX_CELLS:,} cells are changed in one go")
    stored = workbook.cells(area)
    return [
        SetCell(
            CellRef(sheet, row, column),
            _held(stored.get((row, column))),
            fill=colour.removeprefix("#").upper(),
        )
        for row in range(first.row, last.row + 1)
        for column in range(first.column, last.column + 1)
    ]


def _held(cell: Cell | None) -> CellContent:
    if cell is None:
        return None
    return cell.value if cell.formula is None else Formula(cell.formula.removeprefix("="))


def _cell(workbook: Workbook, ref: CellRef) -> Cell | None:
    area = CellRange(ref.sheet, ref.row, ref.column, ref.row, ref.column)
    return workbook.cells(area).get((ref.row, ref.column))


def _ref(name: str, sheet: str) -> CellRef:
    ref = parse_cell(name)
    if ref is None or not (1 <= ref[0] <= MAX_ROW and 1 <= ref[1] <= MAX_COLUMN):
        raise UsageError(f"{name!r} is not a cell")
    return CellRef(sheet, *ref)


def _is_row(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_ROW
