"""Engines open only what the requested cells depend on, and never less."""

from __future__ import annotations

import functools
import io
import zipfile

import openpyxl
import pytest
from openpyxl.comments import Comment
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.formula import ArrayFormula, DataTableFormula

from judge.formulas.references import Reference
from judge.recalc import rewrite
from judge.recalc.reduction import (
    MIN_FORMULAS,
    MIN_SHEET_BYTES,
    bounded_columns,
    is_ascii_only,
    logical_constants,
    of_cells,
    reduced,
    slimmed,
    spills,
    with_bounded_columns,
)
from judge.recalc.rewrite import without_formulas
from judge.workbook.cell import CellRange, CellRef
from judge.workbook.dependency import FormulaIndex, dependencies
from judge.workbook.reader import Workbook, open_workbook, sheet_formulas
from tests.unit.recalc.fakes import package, workbook

ROWS = MIN_FORMULAS + 50


def book(asked: str, *, rows: int = ROWS, more: int = 0) -> Workbook:
    """A1 of Main is requested; Data!B contains formulas, Other only text."""
    made = openpyxl.Workbook()
    main = made.worksheets[0]
    main.title = "Main"
    main["A1"] = asked
    main["A2"] = "=A1+1"
    data, other = made.create_sheet("Data"), made.create_sheet("Other")
    for row in range(1, rows + 1):
        data[f"A{row}"] = row
        data[f"B{row}"] = f"=A{row}*2"
    for row in range(1, more + 1):
        other[f"A{row}"] = f"a text of its own, {row}"
    stream = io.BytesIO()
    made.save(stream)
    return open_workbook(stream.getvalue())


def left_of(workbook: Workbook) -> Workbook:
    index = FormulaIndex(workbook.sheet_names, functools.partial(sheet_formulas, workbook))
    (asked,) = workbook.formula_cells(CellRange("Main", 1, 1, 1, 1))
    return open_workbook(reduced(workbook, dependencies([("Main", asked)], index), index))


def formulas(workbook: Workbook) -> set[str]:
    return {
        f"{sheet}!{cell.formula}"
        for sheet in workbook.sheet_names
        for cell in sheet_formulas(workbook, sheet)
    }


def test_formulas_that_nothing_depends_on_are_left_out() -> None:
    left = left_of(book("=SUM(Data!B2:B3)+Data!A9"))
    assert formulas(left) == {"Main!=SUM(Data!B2:B3)+Data!A9", "Data!=A2*2", "Data!=A3*2"}
    data = left.cells(CellRange("Data", 1, 1, ROWS, 2))
    assert [data[row, 1].value for row in range(1, ROWS + 1)] == list(range(1, ROWS + 1))


@pytest.mark.parametrize(
    "asked",
    [
        "=SUM(Data!B2:INDEX(Data!B1:B9,3))",  # a corner that is computed
        "=SUMIF(Data!A1:A9,1,Data!B1)",  # a sum range that grows
        "=SUM(Main:Data!B2)",  # sheets from one to another
        "=SUM(INDIRECT(Data!B2))",  # a reference from text
        "=SUM(Data!B2:B3)+Sales",  # a name
        "=SUM(IF(Data!B2:B3>1,1,0))",  # another value if it is an array formula
        '=CELL("width",Data!B2)',
    ],
)
def test_if_a_formula_may_read_more_than_it_names_everything_stays(asked: str) -> None:
    workbook = book(asked)
    assert left_of(workbook).data == workbook.data


def test_a_reduction_that_saves_nothing_is_not_made() -> None:
    workbook = book("=Data!B2", rows=MIN_FORMULAS)
    assert left_of(workbook).data == workbook.data


def test_a_large_sheet_that_no_formula_names_loses_its_cells() -> None:
    workbook = book("=Data!B2", rows=3, more=MIN_SHEET_BYTES // 40)
    left = left_of(workbook)
    assert left.sheet_names == workbook.sheet_names
    assert left.used_range("Other") is None
    assert formulas(left) == formulas(workbook)
    named = book(
        f"=Data!B2+COUNTA(Other!A1:A{MIN_SHEET_BYTES // 40})", rows=3, more=MIN_SHEET_BYTES // 40
    )
    assert left_of(named).data == named.data


def test_formulas_that_fill_or_are_shared_by_other_cells_stay() -> None:
    own = b'<c r="A1" s="2" t="str"><f>B1</f><v>x</v></c>'
    shared = b'<c r="A2"><f t="shared" ref="A2:A3" si="0">B2</f><v>1</v></c>'
    child = b'<c r="A3"><f t="shared" si="0"/><v>2</v></c>'
    filling = b'<c r="A4"><f t="array" ref="A4:A5">B4:B5</f><v>3</v></c>'
    rest = shared + child + filling
    assert without_formulas(own + rest, set()) == b'<c r="A1" s="2"/>' + rest
    assert without_formulas(own + rest, {b"A1"}) == own + rest


def test_a_package_that_would_unpack_to_too_much_is_not_copied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workbook = book("=Data!B2")
    assert left_of(workbook).data != workbook.data
    monkeypatch.setattr(rewrite, "COPIED_BYTES", 5_000)
    assert left_of(workbook).data == workbook.data


def names_of(package: bytes) -> set[str]:
    with zipfile.ZipFile(io.BytesIO(package)) as archive:
        return set(archive.namelist())


def test_the_quick_engines_get_only_parts_that_values_come_from() -> None:
    made = openpyxl.Workbook()
    sheet = made.worksheets[0]
    sheet["A1"], sheet["A2"] = 1, "=A1+1"
    sheet["A1"].comment = Comment("hi", "me")
    stream = io.BytesIO()
    made.save(stream)
    slim = slimmed(stream.getvalue())
    assert not any("comment" in name or "docProps" in name for name in names_of(slim))
    picture = io.BytesIO(stream.getvalue())
    with zipfile.ZipFile(picture, "a") as archive:
        archive.writestr("docProps/thumbnail.jpeg", b"\xff\xd8" * 500_000)
    assert slimmed(picture.getvalue()) == slim
    assert formulas(open_workbook(slim)) == {"Sheet!=A1+1"}


def test_a_package_that_cannot_be_slimmed_is_unchanged() -> None:
    bomb = with_part("xl/_rels/workbook.xml.rels", b"<!DOCTYPE r [<!ENTITY a 'b'>]><r/>")
    assert slimmed(bomb) == bomb
    assert slimmed(b"no package") == b"no package"


def test_only_the_formulas_of_some_cells_are_left() -> None:
    made = openpyxl.Workbook()
    sheet = made.worksheets[0]
    sheet.title = "S"
    sheet["A1"], sheet["A2"], sheet["A3"] = 1, "=A1+1", "=A2+Rate"
    sheet["B1"] = ArrayFormula("B1:B2", "=A1:A2*2")
    sheet["C1"] = DataTableFormula(ref="C1:C2", r1="F1", dt2D=False, dtr=False)
    made.defined_names["Rate"] = DefinedName("Rate", attr_text="S!$A$1")
    stream = io.BytesIO()
    made.save(stream)
    left = of_cells(
        slimmed(stream.getvalue()), {"S": "xl/worksheets/sheet1.xml"}, {CellRef("S", 2, 1)}
    )
    assert formulas(open_workbook(left)) == {"S!=A1+1"}
    assert b"Rate" not in zipfile.ZipFile(io.BytesIO(left)).read("xl/workbook.xml")


def spilling_book(more: dict[str, object], dynamic: bool = True) -> bytes:
    """A workbook whose C1 is a dynamic array formula with its own cell as range."""
    made = package({"A1": 3, "A2": 1, "C1": ("C1", "=SORT(A1:A2)"), **more})
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(made)) as archive, zipfile.ZipFile(target, "w") as copy:
        for name in archive.namelist():
            content = archive.read(name)
            if dynamic:
                content = content.replace(b'<c r="C1"', b'<c r="C1" cm="1"')
            copy.writestr(name, content)
    return target.getvalue()


@pytest.mark.parametrize(
    ("more", "area", "expected"),
    [
        ({}, (1, 3, 1, 3), False),  # its own cell
        ({}, (2, 3, 2, 3), True),
        ({}, (1, 1, 9, 4), True),
        ({}, (1, 1, 9, 2), False),
        ({"C2": 1}, (2, 3, 9, 3), False),
        ({"C2": 1}, (1, 4, 1, 4), True),
        ({"D1": 1}, (2, 3, 2, 9), True),
        ({"D1": 1}, (1, 4, 9, 9), False),
    ],
)
def test_a_dynamic_array_may_reach_free_cells(
    more: dict[str, object], area: tuple[int, int, int, int], expected: bool
) -> None:
    reaches = spills(spilling_book(more), {"S": "xl/worksheets/sheet1.xml"})
    assert reaches is not None
    assert reaches("S", Reference(None, *area)) is expected


def test_an_array_formula_of_one_cell_does_not_spill() -> None:
    assert spills(spilling_book({}, dynamic=False), {"S": "xl/worksheets/sheet1.xml"}) is None


def test_constants_true_and_false_are_noticed() -> None:
    book = workbook({"A1": True, "A2": 1, "A3": "=A2>0"})
    logical = logical_constants(book, book.data)
    assert logical is not None
    assert [logical("S", Reference(None, row, 1, row, 1)) for row in (1, 2, 3)] == [
        True,
        False,
        False,
    ]
    plain = workbook({"A1": 1})
    assert logical_constants(plain, plain.data) is None


def with_part(name: str, content: bytes) -> bytes:
    """A workbook of plain text with an additional part, or with a replaced one."""
    source, target = io.BytesIO(package({"A1": "plain", "A2": "=A1"})), io.BytesIO()
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(target, "w") as copy:
        for entry in archive.infolist():
            if entry.filename != name:
                copy.writestr(entry.filename, archive.read(entry))
        copy.writestr(name, content)
    return target.getvalue()


STRINGS = '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>{}</t></si></sst>'


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("xl/sharedStrings.xml", STRINGS.format("Rene").encode(), True),
        ("xl/sharedStrings.xml", STRINGS.format("Ren\u00e9").encode(), False),
        ("xl/sharedStrings.xml", STRINGS.format("Ren&#233;").encode(), False),
        ("xl/sharedStrings.xml", STRINGS.format("Ren_x00E9_").encode(), False),
        ("xl/sharedStrings.xml", STRINGS.format("Rene").encode("utf-16"), False),
        ("xl/sharedStrings.xml", STRINGS.format("Rene").encode("utf-16-be"), False),
        ("media/of_any_name.png", STRINGS.format("Ren\u00e9").encode(), False),
        ("media/image1.png", b"\x89PNG\r\n\xff\x00", True),
        ("xl/theme/theme1.xml", '<a:theme name="\uff2d\uff33"/>'.encode(), True),
    ],
)
def test_text_beyond_ascii_is_noticed_in_any_notation(
    name: str, content: bytes, expected: bool
) -> None:
    assert is_ascii_only(with_part(name, content)) is expected


def test_an_unreadable_package_may_contain_anything() -> None:
    assert is_ascii_only(package({"A1": "plain", "A2": "=UPPER(A1)"}))
    assert not is_ascii_only(package({"A1": "Ren\u00e9", "A2": "=UPPER(A1)"}))
    assert not is_ascii_only(b"no package")


def used_rows(sheet: str | None) -> int | None:
    return {None: 9, "Data": 700, "It's": 0}.get(sheet)


@pytest.mark.parametrize(
    ("formula", "bounded"),
    [
        ("=VLOOKUP(A2,Data!A:B,2,FALSE)", "=VLOOKUP(A2,Data!A$1:B$700,2,FALSE)"),
        ("=vlookup(A2, $A:$B, 2)", "=vlookup(A2, $A$1:$B$9, 2)"),
        ("=INDEX(Data!B:B,MATCH(A2,Data!A:A,0))", "=INDEX(Data!B:B,MATCH(A2,Data!A$1:A$700,0))"),
        ("=MATCH(A2,'It''s'!A:A,0)", "=MATCH(A2,'It''s'!A$1:A$1,0)"),
        ("=LOOKUP(A2,A:A,Data!B:B)", "=LOOKUP(A2,A$1:A$700,Data!B$1:B$700)"),
        ("=COUNTA(A:A,B1:B3,{1,2},C:C)", "=COUNTA(A$1:A$9,B1:B3,{1,2},C$1:C$9)"),
        ("=_xlfn.RANK.EQ(A1,A:A)+LARGE(A:A,2)", "=_xlfn.RANK.EQ(A1,A$1:A$9)+LARGE(A$1:A$9,2)"),
    ],
)
def test_whole_columns_are_replaced_by_their_used_rows(formula: str, bounded: str) -> None:
    assert bounded_columns(formula, used_rows) == bounded


@pytest.mark.parametrize(
    "formula",
    [
        "=ROWS(A:A)+COUNTBLANK(A:A)",  # where blank cells count
        '=SUMPRODUCT((A:A="")*1)',
        '=COUNTIF(A:A,"")+XLOOKUP("",A:A,B:B)',
        "=MATCH(A:A,{1,2},0)",  # one cell of the column is taken
        "=MATCH(A2,(A:A),0)",
        "=MATCH(A2,A:A&B:B,0)",
        "=LOOKUP(A2,A:A,Gone!B:B)",  # a sheet whose end is not known
        "=MATCH(A2,[1]Data!A:A,0)",
        "=COUNTA(More:Data!A:A)",
        '="COUNTA(A:A)"',
        "=COUNTA(OFFSET(A:A,0,1))",
        "=COUNTA(A:A",
    ],
)
def test_whole_columns_stay_where_more_than_the_used_rows_may_count(formula: str) -> None:
    assert bounded_columns(formula, used_rows) == formula


def test_formulas_of_a_sheet_are_written_as_xml_again() -> None:
    row = b'<row r="1"><c r="A1"><f t="shared" ref="A1:A2" si="0">%s</f><v>1</v></c></row>'
    before = row % b"IF(B1&lt;3,MATCH(&quot;A&amp;B&quot;,C:C,0),1)"
    after = row % b'IF(B1&lt;3,MATCH("A&amp;B",C$1:C$9,0),1)'
    assert with_bounded_columns(before, used_rows) == after
    text = b"<c r='A1' t='inlineStr'><is><t>COUNTA(A:A)</t></is></c>"
    assert with_bounded_columns(text, used_rows) == text


def test_a_sheet_does_not_claim_a_range_to_the_quick_engines() -> None:
    head = b'<worksheet><dimension ref="A1:XFD9"/>'
    rows = b'<sheetData><row r="1"><c r="A1"><v>1</v></c></row></sheetData></worksheet>'
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("xl/worksheets/sheet1.xml", head + rows)
    with zipfile.ZipFile(io.BytesIO(slimmed(stream.getvalue()))) as archive:
        assert archive.read("xl/worksheets/sheet1.xml") == b"<worksheet>" + rows
