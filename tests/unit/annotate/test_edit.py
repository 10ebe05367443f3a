# ruff: noqa: DTZ001 - spreadsheet dates have no time zone
from __future__ import annotations

import datetime as dt
import io
from typing import Any

import openpyxl
import pytest
from openpyxl.comments import Comment
from openpyxl.formatting.rule import CellIsRule
from openpyxl.styles import Font
from openpyxl.worksheet.formula import ArrayFormula
from openpyxl.worksheet.table import Table

from judge.annotate.edit import apply_edits, losses
from judge.annotate.edits import (
    CellContent,
    DeleteRows,
    InsertRows,
    MergeCells,
    RenameSheet,
    SetCell,
    SetDateSystem,
)
from judge.errors import UsageError, WorkbookError
from judge.workbook.address import Window
from judge.workbook.cell import CellRange, CellRef, ErrorValue
from judge.workbook.editing.cells import set_cells, without_cells
from judge.workbook.reader import open_workbook
from tests.unit.annotate.books import formulas, make_book, parts, table, values, with_part

CONTENTS: tuple[CellContent, ...] = (
    *(5, 2.5, -1e300, "text", " spaced ", 'a <b> & "c"', "line\nbreak", "日本 😀", True, False),
    *(ErrorValue("#N/A"), dt.datetime(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 30)),
    *(dt.time(9, 30), None),
)
SHEET_PART = "xl/worksheets/sheet1.xml"


def put(row: int, column: int, content: CellContent, sheet: str = "Sheet") -> SetCell:
    return SetCell(CellRef(sheet, row, column), content)


@pytest.mark.parametrize(
    "content",
    CONTENTS,
)
@pytest.mark.parametrize("place", [(1, 1), (2, 2), (2, 4), (9, 1)])
def test_what_is_set_is_read_back_and_the_rest_stays(
    place: tuple[int, int], content: CellContent
) -> None:
    data = table(("a", "b"), (1, 2.5), ("x", None, "z"))
    before = values(data)
    after = values(set_cells(data, [put(*place, content)]))
    expected = {**before, place: content}
    assert after == {key: value for key, value in expected.items() if value is not None}


def test_only_the_parts_with_changed_cells_differ() -> None:
    data = table(("a", "b"), (1, 2))
    before, after = parts(data), parts(set_cells(data, [put(2, 1, 7)]))
    assert list(before) == list(after)
    assert [name for name in before if before[name] != after[name]] == [SHEET_PART]
    assert after[SHEET_PART] == before[SHEET_PART].replace(
        b'<c r="A2" t="n"><v>1</v></c>', b'<c r="A2"><v>7</v></c>'
    )


def test_a_style_stays_and_a_date_gets_a_date_format() -> None:
    def fill(book: Any) -> None:
        sheet = book.active
        sheet["A1"] = 1
        sheet["A1"].font = Font(bold=True)
        sheet["A2"] = dt.datetime(2020, 1, 1)
        sheet["A2"].number_format = "yyyy/mm"

    data = set_cells(
        make_book(fill), [put(1, 1, dt.datetime(2024, 2, 29)), put(2, 1, dt.datetime(2021, 5, 1))]
    )
    sheet = openpyxl.load_workbook(io.BytesIO(data)).active
    assert sheet is not None
    assert sheet["A1"].value == dt.datetime(2024, 2, 29)
    assert sheet["A1"].font.bold
    assert sheet["A2"].number_format == "yyyy/mm"


def test_a_background_is_added_and_others_keep_theirs() -> None:
    data = set_cells(
        table(("a", "b")), [SetCell(CellRef("Sheet", 1, 1), "a", fill="FFC000"), put(1, 2, "c")]
    )
    sheet = openpyxl.load_workbook(io.BytesIO(data)).active
    assert sheet is not None
    assert sheet["A1"].fill.fgColor.rgb == "FFFFC000"
    assert sheet["B1"].fill.fill_type is None


def shared_book() -> bytes:
    def share(xml: bytes) -> bytes:
        return (
            xml.replace(b"<f>A1*2</f>", b'<f t="shared" ref="B1:B3" si="0">A1*2</f>')
            .replace(b"<f>A2*2</f>", b'<f t="shared" si="0"/>')
            .replace(b"<f>A3*2</f>", b'<f t="shared" si="0"/>')
        )

    return with_part(table((1, "=A1*2"), (2, "=A2*2"), (3, "=A3*2")), SHEET_PART, share)


def test_a_shared_formula_outlives_its_first_cell() -> None:
    data = shared_book()
    assert formulas(data) == {(1, 2): "=A1*2", (2, 2): "=A2*2", (3, 2): "=A3*2"}
    assert formulas(set_cells(data, [put(1, 2, 5)])) == {(2, 2): "=A2*2", (3, 2): "=A3*2"}
    assert formulas(set_cells(data, [put(1, 2, 5), put(2, 2, 6)])) == {(3, 2): "=A3*2"}
    assert formulas(set_cells(data, [put(2, 2, 5)])) == {(1, 2): "=A1*2", (3, 2): "=A3*2"}


def test_rows_move_through_a_shared_formula() -> None:
    inserted = apply_edits(shared_book(), [InsertRows("Sheet", 2)]).data
    assert formulas(inserted) == {(1, 2): "=A1*2", (3, 2): "=A3*2", (4, 2): "=A4*2"}
    deleted = apply_edits(shared_book(), [DeleteRows("Sheet", 1)]).data
    assert formulas(deleted) == {(1, 2): "=A1*2", (2, 2): "=A2*2"}


def test_what_covers_several_cells_is_refused_in_part() -> None:
    def fill(book: Any) -> None:
        sheet = book.active
        sheet.merge_cells("A1:B2")
        sheet["D1"] = ArrayFormula("D1:D3", "=A5:A7")
        sheet.append(["Head", "Other"])
        sheet["G1"], sheet["H1"], sheet["G2"] = "Head", "Other", 1
        sheet.add_table(Table(displayName="T", ref="G1:H2"))

    data = make_book(fill)
    for place, why in [((2, 2), "covered by"), ((2, 4), "array formula"), ((1, 7), "heading")]:
        with pytest.raises(WorkbookError, match=why):
            set_cells(data, [put(*place, 1)])
    assert values(set_cells(data, [put(row, 4, row) for row in (1, 2, 3)]))[2, 4] == 2


def test_unknown_sheets_and_impossible_texts_are_refused() -> None:
    data = table(("a",))
    with pytest.raises(WorkbookError, match="no worksheet"):
        set_cells(data, [put(1, 1, 1, "Nowhere")])
    with pytest.raises(WorkbookError, match="character"):
        set_cells(data, [put(1, 1, "a\x01")])
    with pytest.raises(WorkbookError, match=r"32,768 characters"):
        set_cells(data, [put(1, 1, "x" * 32_768)])


def test_formulas_that_depend_on_the_change_lose_a_value_that_is_no_longer_true() -> None:
    data = table((1, "=A1*2", "=B1+1"), (5, "=A2*2", "=D9"))
    cached = with_part(data, SHEET_PART, lambda xml: xml.replace(b"<v></v>", b"<v>99</v>"))
    cached = with_part(cached, SHEET_PART, lambda xml: xml.replace(b"<v />", b"<v>99</v>"))
    assert values(cached)[1, 3] == 99
    edited = apply_edits(cached, [put(1, 1, 4)])
    left = values(edited.data)
    assert (1, 2) not in left
    assert (1, 3) not in left
    assert left[2, 2] == left[2, 3] == 99
    assert "2 formulas" in edited.notes[0]


def test_the_calculation_chain_forgets_cells_without_formulas() -> None:
    chain = (
        b'<calcChain xmlns="x"><c r="A1" i="1"/><c r="A2"/><c r="B1" i="2"/><c r="B2"/></calcChain>'
    )
    assert without_cells(chain, "1", {(1, 1)}) == (
        b'<calcChain xmlns="x"><c r="A2" i="1"/><c r="B1" i="2"/><c r="B2"/></calcChain>'
    )
    assert without_cells(chain, "2", {(9, 9)}) == chain
    assert without_cells(b'<calcChain><c r="A1" i="1"/></calcChain>', "1", {(1, 1)}) is None


# -- structure ------------------------------------------------------------------------------------


def test_renaming_follows_formulas_and_names() -> None:
    def fill(book: Any) -> None:
        book.active.title = "Data"
        book.active["A1"] = 1
        other = book.create_sheet("Sum")
        other["A1"] = "=Data!A1+'Data'!A1"
        other["A2"] = '="Data!A1"&MyData!B1'
        book.create_sheet("MyData")
        book.defined_names["Total"] = openpyxl.workbook.defined_name.DefinedName(
            "Total", attr_text="Data!$A$1"
        )

    edited = apply_edits(make_book(fill), [RenameSheet("Data", "New Data")])
    assert formulas(edited.data, "Sum") == {
        (1, 1): "='New Data'!A1+'New Data'!A1",
        (2, 1): '="Data!A1"&MyData!B1',
    }
    book = openpyxl.load_workbook(io.BytesIO(edited.data))
    assert book.sheetnames == ["New Data", "Sum", "MyData"]
    assert book.defined_names["Total"].attr_text == "'New Data'!$A$1"
    with pytest.raises(UsageError, match="already"):
        apply_edits(edited.data, [RenameSheet("Sum", "mydata")])
    with pytest.raises(UsageError, match="cannot be the name"):
        apply_edits(edited.data, [RenameSheet("Sum", "a/b")])


def test_merging_keeps_the_first_cell() -> None:
    data = table(("a", "b"), ("c", "d"), ("e", "f"))
    edited = apply_edits(data, [MergeCells("Sheet", Window(1, 1, 2, 1))])
    edited = apply_edits(edited.data, [MergeCells("Sheet", Window(1, 2, 3, 2))])
    assert values(edited.data) == {(1, 1): "a", (1, 2): "b", (3, 1): "e"}
    sheet = openpyxl.load_workbook(io.BytesIO(edited.data)).active
    assert sheet is not None
    assert sorted(map(str, sheet.merged_cells.ranges)) == ["A1:A2", "B1:B3"]
    with pytest.raises(WorkbookError, match="overlaps"):
        apply_edits(edited.data, [MergeCells("Sheet", Window(2, 1, 3, 1))])


def test_dates_stay_the_same_in_the_other_date_system() -> None:
    data = table(("day",), (dt.datetime(2024, 2, 29),), (dt.datetime(1999, 12, 31, 18, 0),))
    edited = apply_edits(data, [SetDateSystem(date_1904=True)])
    assert open_workbook(edited.data).facts.date_1904
    assert values(edited.data) == values(data)
    back = apply_edits(edited.data, [SetDateSystem(date_1904=False)])
    assert values(back.data) == values(data)


# -- rows -----------------------------------------------------------------------------------------


def row_book() -> bytes:
    def fill(book: Any) -> None:
        sheet = book.active
        for row in range(1, 7):
            sheet.append([row, f"=A{row}*2", f"=SUM($A$1:A{row})"])
        sheet["E8"] = "=SUM(A2:A4)+A3"
        sheet.merge_cells("F3:G4")
        rule = CellIsRule(operator="greaterThan", formula=["A3"])  # type: ignore[no-untyped-call]
        sheet.conditional_formatting.add("A2:A5", rule)
        other = book.create_sheet("Other")
        other["A1"] = "=SUM(Sheet!A:A)+Sheet!A5"

    return make_book(fill)


def test_inserted_rows_are_blank_and_references_follow() -> None:
    edited = apply_edits(row_book(), [InsertRows("Sheet", 3, 2)])
    found = formulas(edited.data)
    assert found[2, 2] == "=A2*2"
    assert found[5, 2] == "=A5*2"
    assert found[8, 3] == "=SUM($A$1:A8)"
    assert found[10, 5] == "=SUM(A2:A6)+A5"
    assert (3, 1) not in values(edited.data)
    assert values(edited.data)[5, 1] == 3
    assert formulas(edited.data, "Other") == {(1, 1): "=SUM(Sheet!A:A)+Sheet!A7"}
    sheet = openpyxl.load_workbook(io.BytesIO(edited.data))["Sheet"]
    assert str(sheet.merged_cells) == "F5:G6"
    assert [str(each.sqref) for each in sheet.conditional_formatting] == ["A2:A7"]


def test_deleted_rows_are_gone_and_references_to_them_break() -> None:
    edited = apply_edits(row_book(), [DeleteRows("Sheet", 3, 2)])
    found = formulas(edited.data)
    assert values(edited.data)[3, 1] == 5
    assert found[3, 2] == "=A3*2"
    assert found[6, 5] == "=SUM(A2:A2)+#REF!"
    assert formulas(edited.data, "Other") == {(1, 1): "=SUM(Sheet!A:A)+Sheet!A3"}
    sheet = openpyxl.load_workbook(io.BytesIO(edited.data))["Sheet"]
    assert str(sheet.merged_cells) == ""


def test_a_range_to_the_end_of_the_sheet_ends_there_still() -> None:
    data = table((1, "=SUM(A2:A1048576)"), (2, None))
    assert formulas(apply_edits(data, [InsertRows("Sheet", 2, 3)]).data) == {
        (1, 2): "=SUM(A5:A1048576)"
    }


def test_cells_set_before_rows_move_are_reported_at_their_new_position() -> None:
    edited = apply_edits(row_book(), [put(5, 1, 50), put(1, 1, 10), InsertRows("Sheet", 3, 2)])
    assert edited.cells == (CellRef("Sheet", 1, 1), CellRef("Sheet", 7, 1))
    assert open_workbook(edited.data).cells(CellRange("Sheet", 7, 1, 7, 1))[7, 1].value == 50


def test_what_does_not_move_is_said_before() -> None:
    def fill(book: Any) -> None:
        book.active["A1"] = 1
        book.active["A1"].comment = Comment("look", "me")

    assert losses(row_book(), [InsertRows("Sheet", 1)]) == ()
    (line, *_) = losses(make_book(fill), [InsertRows("Sheet", 1)])
    assert "comments" in line
