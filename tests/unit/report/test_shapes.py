from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from judge.report import shapes
from judge.report.shapes import ShapeCache, WorkbookShape, measure
from judge.workbook.reader import open_workbook
from tests.unit.report.runs import TABLE, book


def shape(*sheets: Any) -> WorkbookShape:
    return measure(open_workbook(book(*sheets)))


def beside(*tables: Any, gap: int = 1) -> Any:
    """Tables side by side, with blank columns between them."""
    height = max(len(table) for table in tables)
    rows = []
    for number in range(height):
        row: list[Any] = []
        for table in tables:
            width = len(table[0])
            row += list(table[number]) if number < len(table) else [None] * width
            row += [None] * gap
        rows.append(tuple(row))
    return tuple(rows)


def test_one_table_with_a_header() -> None:
    assert shape(TABLE) == WorkbookShape(4, 2, 1, 1, is_relational=True)


def test_the_highest_and_the_widest_sheet_count() -> None:
    high, wide = tuple(("a", 1) for _ in range(70)), (tuple("abcdefghijkl"),)
    found = shape(high, wide)
    assert (found.rows, found.columns, found.sheets) == (70, 12, 2)


def test_blank_rows_and_columns_around_the_values_do_not_count() -> None:
    rows = ((None,) * 5, (None, None, *TABLE[0]), *((None, None, *row) for row in TABLE[1:]))
    found = shape(rows)
    assert (found.rows, found.columns) == (4, 2)


@pytest.mark.parametrize(
    ("sheets", "tables"),
    [
        ((beside(TABLE, TABLE),), 2),
        (((*TABLE, (None,), *TABLE),), 2),
        ((TABLE, TABLE, TABLE), 3),
        ((beside(TABLE, (("note",), ("see",), ("below",))),), 1),  # one column is no table
        ((beside(TABLE, (("a", "b"), (1, 2))),), 1),  # nor are two rows
        ((beside(tuple(("n", 1, 2) for _ in range(30)), TABLE),), 1),  # far smaller: a note
        (((("alone",),),), 0),
        ((((None,),),), 0),
    ],
)
def test_how_many_tables(sheets: Any, tables: int) -> None:
    assert shape(*sheets).tables == tables


@pytest.mark.parametrize(
    ("rows", "relational"),
    [
        (TABLE, True),
        ((("Name", 2024), *TABLE[1:]), False),  # a number is no name of a column
        ((("Name", None), *TABLE[1:]), False),
        ((("Report", None), *TABLE), False),  # a title above the header
        ((("Name", " "), *TABLE[1:]), False),
        ((("alone",),), None),
    ],
)
def test_whether_the_largest_table_is_relational(rows: Any, relational: bool | None) -> None:
    assert shape(rows).is_relational is relational


def test_a_merged_cell_makes_a_table_non_standard() -> None:
    workbook = openpyxl.load_workbook(io.BytesIO(book(TABLE)))
    workbook["Sheet1"].merge_cells("A3:A4")
    buffer = io.BytesIO()
    workbook.save(buffer)
    assert measure(open_workbook(buffer.getvalue())).is_relational is False
    workbook["Sheet1"].unmerge_cells("A3:A4")
    workbook["Sheet1"].merge_cells("F10:G11")  # elsewhere, it does not matter
    buffer = io.BytesIO()
    workbook.save(buffer)
    assert measure(open_workbook(buffer.getvalue())).is_relational is True


def test_formulas_without_a_value_are_filled_cells() -> None:
    found = shape((("a", "b"), (1, "=A2*2"), (2, "=A3*2")))
    assert (found.tables, found.columns) == (1, 2)


def test_shapes_are_kept_by_content(tmp_path: Path) -> None:
    data = book(TABLE)
    first = ShapeCache(tmp_path).of(data)
    (kept,) = tmp_path.rglob("*.json")
    kept.write_text(kept.read_text().replace('"rows": 4', '"rows": 5'))
    again = ShapeCache(tmp_path).of(data)
    assert first is not None
    assert again is not None
    assert (first.rows, again.rows) == (4, 5)  # it was read from the cache
    kept.write_text("broken")
    assert ShapeCache(tmp_path).of(data) == first


def test_shapes_of_other_code_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = book(TABLE)
    ShapeCache(tmp_path).of(data)
    (kept,) = tmp_path.rglob("*.json")
    kept.write_text(kept.read_text().replace('"rows": 4', '"rows": 5'))
    monkeypatch.setattr(shapes, "shapes_digest", lambda: "of another reader")
    found = ShapeCache(tmp_path).of(data)
    assert found is not None
    assert found.rows == 4


def test_what_is_not_a_workbook_has_no_shape(tmp_path: Path) -> None:
    assert ShapeCache(tmp_path).of(b"PK but no more") is None
    assert not list(tmp_path.rglob("*.json"))
