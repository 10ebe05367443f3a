"""Small workbooks for tests, made by openpyxl or written out by hand."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

import openpyxl

from judge.workbook.cell import CellRange, CellValue
from judge.workbook.reader import open_workbook


def make_book(fill: Callable[[Any], None]) -> bytes:
    """A workbook that a function filled."""
    book = openpyxl.Workbook()
    fill(book)
    target = io.BytesIO()
    book.save(target)
    return target.getvalue()


_tables: dict[str, bytes] = {}
"""By what they were made of, in writing: as keys, FALSE and 0 would be the same."""


def table(*rows: tuple[object, ...], title: str = "Sheet") -> bytes:
    """Makes a workbook with one sheet that has some rows; the same bytes for the same rows."""

    def fill(book: Any) -> None:
        book.active.title = title
        for row in rows:
            book.active.append(row)

    made_of = repr((title, rows))
    if made_of not in _tables:  # openpyxl writes the time into what it saves
        _tables[made_of] = make_book(fill)
    return _tables[made_of]


def with_part(data: bytes, name: str, change: Callable[[bytes], bytes]) -> bytes:
    """Returns the package with one part changed."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(target, "w") as new:
        for entry in old.infolist():
            content = old.read(entry)
            new.writestr(entry, change(content) if entry.filename == name else content)
    return target.getvalue()


def parts(data: bytes) -> dict[str, bytes]:
    """Returns every part of a package."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def values(data: bytes, sheet: str = "Sheet") -> dict[tuple[int, int], CellValue]:
    """Returns the values of the stored cells of a sheet."""
    cells = open_workbook(data).cells(CellRange(sheet, 1, 1, 200, 50))
    return {place: cell.value for place, cell in cells.items() if cell.value is not None}


def formulas(data: bytes, sheet: str = "Sheet") -> dict[tuple[int, int], str | None]:
    """Returns the formulas of a sheet by position."""
    cells = open_workbook(data).formula_cells(CellRange(sheet, 1, 1, 200, 50))
    return {(cell.row, cell.column): cell.formula for cell in cells}
