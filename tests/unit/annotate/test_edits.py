# ruff: noqa: DTZ001 - spreadsheet dates have no time zone
from __future__ import annotations

import datetime as dt

import pytest

from judge.annotate.edits import (
    CellContent,
    DeleteRows,
    Edit,
    Formula,
    InsertRows,
    MergeCells,
    RenameSheet,
    SetCell,
    SetDateSystem,
    content_text,
    edit_from_json,
    edit_to_json,
    parse_assignment,
    parse_content,
)
from judge.errors import UsageError
from judge.workbook.address import Window
from judge.workbook.cell import CellRef, ErrorValue


@pytest.mark.parametrize(
    ("typed", "content"),
    [
        ("", None),
        ("5", 5),
        ("-2.50", -2.5),
        ("1e3", 1000.0),
        ("007", 7),
        ("'007", "007"),
        (" 5", " 5"),
        ("true", True),
        ("#n/a", ErrorValue("#N/A")),
        ("=SUM(A1:A9)", Formula("SUM(A1:A9)")),
        ("=", "="),
        ("2024-02-29", dt.datetime(2024, 2, 29)),
        ("2024-02-30", "2024-02-30"),
        ("9:05", dt.time(9, 5)),
        ("plain", "plain"),
    ],
)
def test_reads_what_is_typed_into_a_cell(typed: str, content: CellContent) -> None:
    assert parse_content(typed) == content
    assert parse_content(content_text(content)) == content


@pytest.mark.parametrize(
    ("typed", "sheet", "row", "column", "content"),
    [
        ("B2=5", "Home", 2, 2, 5),
        ("Data!$C$10=a=b", "Data", 10, 3, "a=b"),
        ("'Bob''s Q1'!A1==B1", "Bob's Q1", 1, 1, Formula("B1")),
        ("D4=", "Home", 4, 4, None),
    ],
)
def test_reads_assignments(
    typed: str, sheet: str, row: int, column: int, content: CellContent
) -> None:
    assert parse_assignment(typed, "Home") == SetCell(CellRef(sheet, row, column), content)


@pytest.mark.parametrize("typed", ["B2", "=5", "ZZZZ1=2", "XFE1=2", "B0=1", "Sheet!=1"])
def test_refuses_what_is_not_an_assignment(typed: str) -> None:
    with pytest.raises(UsageError, match="CELL=VALUE"):
        parse_assignment(typed, "Home")


@pytest.mark.parametrize(
    "edit",
    [
        SetCell(CellRef("S", 2, 3), "text", style=4, fill="FF0000"),
        SetCell(CellRef("S", 2, 3), Formula("A1")),
        SetCell(CellRef("S", 2, 3), ErrorValue("#N/A")),
        SetCell(CellRef("S", 2, 3), dt.datetime(2024, 2, 29, 12)),
        SetCell(CellRef("S", 2, 3), dt.time(9, 30)),
        SetCell(CellRef("S", 2, 3), dt.timedelta(hours=30)),
        SetCell(CellRef("S", 2, 3), True),
        InsertRows("S", 3, 2),
        DeleteRows("S", 3, 2),
        RenameSheet("S", "T"),
        MergeCells("S", Window(1, 1, 2, 2)),
        SetDateSystem(date_1904=True),
    ],
)
def test_edits_survive_json(edit: Edit) -> None:
    assert edit_from_json(edit_to_json(edit)) == edit


@pytest.mark.parametrize(
    "record", [{}, {"edit": "fly"}, {"edit": "set", "cell": "1", "sheet": "S"}]
)
def test_refuses_records_that_are_no_edits(record: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="not an edit"):
        edit_from_json(record)
