"""Our reader on workbooks made part by part: how each kind of cell is read."""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import re
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from judge.errors import WorkbookError
from judge.workbook.address import WHOLE_SHEET, Window, cell_key
from judge.workbook.budget import MIN_FORMULA_CHARS, ReadLimits
from judge.workbook.cell import Cell, CellRange, ErrorValue
from judge.workbook.cell_values import read_string, write_string
from judge.workbook.package import Package
from judge.workbook.reader import (
    Workbook,
    filling_cells,
    open_workbook,
    sheet_formulas,
    workbooks_kept,
)
from judge.workbook.sheets import plain_rows, sheet_scan
from judge.workbook.sheets import sheet as sheets
from judge.workbook.sheets.shared_formulas import find_masters
from judge.workbook.sheets.sheet_scan import scan_sheet
from tests.reference_workbook import ReferenceWorkbook
from tests.unit.compare.cells.packages import (
    DECLARATION,
    MAIN,
    RELATIONS,
    STYLES,
    Book,
    around,
    cell,
    relations,
    sheet_data,
    worksheet,
    zipped,
)

EVERYTHING = CellRange("Sheet1", 1, 1, 1_048_576, 16_384)


def read(book: Book | bytes, cell_range: CellRange = EVERYTHING) -> dict[str, Cell]:
    data = book if isinstance(book, bytes) else book.to_bytes()
    cells = open_workbook(data).cells(cell_range).values()
    return {f"{chr(64 + each.column)}{each.row}": each for each in cells}


def one(xml: str, **book: object) -> Cell:
    cells = read(Book({"Sheet1": sheet_data(xml)}, **book))  # type: ignore[arg-type]
    (found,) = cells.values()
    return found


# -- kinds of cells -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("xml", "value"),
    [
        (cell("A1", 5), 5),
        (cell("A1", "5.50"), "5.50"),
        ('<c r="A1"><v>5.5</v></c>', 5.5),
        ('<c r="A1" t="n"><v>1E3</v></c>', 1000.0),
        ('<c r="A1"><v> 7 </v></c>', 7),
        ('<c r="A1"><v></v></c>', None),
        ('<c r="A1"/>', None),
        (cell("A1", True), True),
        (cell("A1", False), False),
        ('<c r="A1" t="e"><v>#N/A</v></c>', ErrorValue("#N/A")),
        ('<c r="A1" t="str"><v>text</v></c>', "text"),
        (cell("A1", "  spaces  "), "  spaces  "),
        (cell("A1", "a\nb"), "a\nb"),
        (cell("A1", "<&>"), "<&>"),
        (cell("A1", ""), ""),
        ('<c r="A1" t="inlineStr"></c>', None),
        (
            (
                '<c r="A1" t="inlineStr"><is><r><rPr><b/></rPr><t>bold</t></r><r><t> plain</t></r>'
                "<rPh sb='0' eb='1'><t>phonetic</t></rPh></is></c>"
            ),
            "bold plain",
        ),
        ('<c r="A1" s="1" t="d"><v>2024-02-29</v></c>', dt.date(2024, 2, 29)),
        (
            '<c r="A1" s="1" t="d"><v>2024-02-29T13:45:30</v></c>',
            dt.datetime(2024, 2, 29, 13, 45, 30),  # noqa: DTZ001
        ),
        ('<c r="A1" s="2" t="d"><v>13:45:00</v></c>', dt.time(13, 45)),
        ('<c r="a1"><v>5</v></c>', 5),
    ],
)
def test_each_kind_of_cell_is_read_as_openpyxl_reads_it(xml: str, value: object) -> None:
    data = Book({"Sheet1": f'<sheetData><row r="1">{xml}</row></sheetData>'}).to_bytes()
    found = read(data)["A1"].value
    assert (type(found), found) == (type(value), value)
    reference = ReferenceWorkbook(data).cells(EVERYTHING)[1, 1].value
    assert (type(found), found) == (type(reference), reference)


@pytest.mark.parametrize(
    ("serial", "style", "value"),
    [
        ("45351", 1, dt.datetime(2024, 2, 29)),  # noqa: DTZ001
        ("45351.75", 1, dt.datetime(2024, 2, 29, 18)),  # noqa: DTZ001
        ("1", 1, dt.datetime(1900, 1, 1)),  # noqa: DTZ001
        ("59", 1, dt.datetime(1900, 2, 28)),  # noqa: DTZ001
        ("60", 1, dt.datetime(1900, 2, 28)),  # noqa: DTZ001
        ("61", 1, dt.datetime(1900, 3, 1)),  # noqa: DTZ001
        ("0", 1, dt.time()),
        ("0.5", 2, dt.time(12)),
        ("0.99999999999", 2, dt.datetime(1900, 1, 1)),  # noqa: DTZ001
        ("1.5", 2, dt.datetime(1900, 1, 1, 12)),  # noqa: DTZ001
        ("-1", 1, dt.datetime(1899, 12, 29)),  # noqa: DTZ001
        ("1.5", 3, dt.timedelta(days=1, hours=12)),
        ("0.123456789", 3, dt.timedelta(seconds=10666, microseconds=667000)),
        ("9999999", 1, ErrorValue("#VALUE!")),
        ("0.25", 4, 0.25),
        ("45351", 5, 45351),
    ],
)
def test_the_number_format_decides_what_is_a_date(serial: str, style: int, value: object) -> None:
    data = Book({"Sheet1": sheet_data(f'<c r="A1" s="{style}"><v>{serial}</v></c>')}).to_bytes()
    found = read(data)["A1"].value
    reference = ReferenceWorkbook(data).cells(EVERYTHING)[1, 1].value
    assert (type(found), found) == (type(reference), reference)
    assert found == value


def test_dates_count_from_1904_where_the_workbook_says_so() -> None:
    book = Book(
        {"Sheet1": sheet_data('<c r="A1" s="1"><v>0.5</v></c>', '<c r="A2" s="1"><v>59</v></c>')},
        workbook='<workbookPr date1904="1"/>',
    )
    cells = read(book)
    assert cells["A1"].value == dt.time(12)
    assert cells["A2"].value == dt.datetime(1904, 2, 29)  # noqa: DTZ001
    assert open_workbook(book.to_bytes()).facts.date_1904


def test_number_formats_are_named_by_their_codes() -> None:
    cells = [cell(f"A{row}", 1, style=style) for row, style in enumerate([0, 1, 2, 4, 5], 1)]
    codes = [each.number_format for each in read(Book({"Sheet1": sheet_data(*cells)})).values()]
    assert codes == ["General", "yyyy\\-mm\\-dd", "h:mm", "0%", "@"]


def test_shared_strings_plain_rich_and_escaped() -> None:
    shared = [
        "plain",
        "<r><t>rich </t></r><r><rPr><b/></rPr><t>text</t></r><rPh sb='0' eb='1'><t>no</t></rPh>",
        "_x005F_x000D_",
        '<t xml:space="preserve">  kept  </t>',
        "<t/>",
    ]
    cells = [cell(f"A{row}", row - 1, kind="s") for row in range(1, 6)]
    data = Book({"Sheet1": sheet_data(*cells)}, shared=shared).to_bytes()
    values = [each.value for each in read(data).values()]
    assert values == ["plain", "rich text", "_x000D_", "  kept  ", ""]
    reference = ReferenceWorkbook(data).cells(EVERYTHING)
    assert values == [reference[row, 1].value for row in range(1, 6)]


# -- formulas -------------------------------------------------------------------------------------


def test_formulas_keep_their_cached_values() -> None:
    book = Book(
        {
            "Sheet1": sheet_data(
                cell("A1", 3, formula="1+2"),
                cell("A2", formula="1+2"),
                '<c r="A3"><f>1+2</f><v></v></c>',
                '<c r="A4" t="str"><f>""</f><v></v></c>',
                cell("A5", "text", formula='"te"&"xt"'),
                '<c r="A6" t="e"><f>1/0</f><v>#DIV/0!</v></c>',
                '<c r="A7"><f/><v>1</v></c>',
            )
        }
    )
    cells = read(book)
    assert [(each.value, each.formula, each.has_cached_value) for each in cells.values()] == [
        (3, "=1+2", True),
        (None, "=1+2", False),
        (None, "=1+2", False),
        (None, '=""', True),
        ("text", '="te"&"xt"', True),
        (ErrorValue("#DIV/0!"), "=1/0", True),
        (1, "=", True),
    ]


def test_formula_cells_are_listed_in_reading_order() -> None:
    book = Book(
        {"Sheet1": sheet_data(cell("A1", 2), cell("B1", 1, formula="1"), cell("A2", formula="2"))}
    )
    workbook = open_workbook(book.to_bytes())
    found = workbook.formula_cells(CellRange("Sheet1", 1, 1, 2, 2))
    assert [(each.row, each.column) for each in found] == [(1, 2), (2, 1)]


SHARED_BLOCK = sheet_data(
    '<c r="B1"><f t="shared" ref="B1:B4" si="0">A1*$C$1+SUM(A$1:A1)</f><v>1</v></c>',
    '<c r="B2"><f t="shared" si="0"/><v>2</v></c>',
    '<c r="B3"><f t="shared" si="0"/><v>3</v></c>',
    '<c r="B4"><f t="shared" si="0"/><v>4</v></c>',
)


def test_shared_formulas_are_written_out() -> None:
    cells = read(Book({"Sheet1": SHARED_BLOCK}))
    assert cells["B3"].formula == "=A3*$C$1+SUM(A$1:A3)"


def test_a_shared_formula_is_found_above_the_range() -> None:
    cells = read(Book({"Sheet1": SHARED_BLOCK}), CellRange("Sheet1", 4, 2, 4, 2))
    assert cells["B4"].formula == "=A4*$C$1+SUM(A$1:A4)"


def test_a_shared_formula_without_its_first_cell_is_an_error() -> None:
    """LibreOffice shows a blank cell, openpyxl the stored value."""
    with pytest.raises(WorkbookError, match="shared formula '7'"):
        one('<c r="B2"><f t="shared" si="7"/><v>2</v></c>')


def shared(reference: str, index: int | str, text: str = "", reach: str = "") -> str:
    """A cell with a shared formula; the master cell if it has a text."""
    reached = f' ref="{reach}"' if reach else ""
    return f'<c r="{reference}"><f t="shared"{reached} si="{index}">{text}</f><v>1</v></c>'


TWO_BLOCKS = Book(
    {
        "Sheet1": sheet_data(
            *(shared(f"B{row}", 0, "A1+1" * (row == 1), "B1:B4" * (row == 1)) for row in (1, 2)),
            *(shared(f"D{row}", 1, "C1*2" * (row == 1), "D1:D4" * (row == 1)) for row in (1, 2)),
            shared("B3", 0),
            shared("D3", 1),
        )
    }
)


def formulas_of(workbook: Workbook, *area: int) -> list[str | None]:
    return [each.formula for each in workbook.formula_cells(CellRange("Sheet1", *area))]


@pytest.mark.parametrize("first", [(1, 2, 3, 2), (2, 4, 3, 4), (1, 4, 1, 4), (9, 9, 9, 9)])
def test_shared_formulas_are_the_same_whatever_was_read_before(
    first: tuple[int, int, int, int],
) -> None:
    workbook = open_workbook(TWO_BLOCKS.to_bytes())
    formulas_of(workbook, *first)
    assert formulas_of(workbook, 2, 2, 3, 4) == ["=A2+1", "=C2*2", "=A3+1", "=C3*2"]


def counted(monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any]) -> list[str]:
    """Returns the worksheets' parts that are requested from now on."""
    parts: list[str] = []

    def counting(package: Package, part: str, *arguments: Any, **named: Any) -> Any:
        parts.append(part)
        return function(package, part, *arguments, **named)

    monkeypatch.setattr(f"judge.workbook.sheets.sheet.{function.__name__}", counting)
    return parts


def test_a_master_that_was_read_is_not_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    workbook = open_workbook(TWO_BLOCKS.to_bytes())
    searches = counted(monkeypatch, find_masters)
    formulas_of(workbook, 1, 2, 3, 2)
    formulas_of(workbook, 1, 4, 3, 4)
    assert not searches


def test_masters_are_searched_once_and_without_reading_cells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workbook = open_workbook(TWO_BLOCKS.to_bytes())
    searches, scans = counted(monkeypatch, find_masters), counted(monkeypatch, scan_sheet)
    assert formulas_of(workbook, 3, 2, 3, 2) == ["=A3+1"]
    assert formulas_of(workbook, 3, 4, 3, 4) == ["=C3*2"]
    assert (len(searches), len(scans)) == (1, 2)


MASTER = '<c r="B1"><f t="shared" ref="B1:B4" si="0">A1&amp;"x"</f><v>1</v></c>'


@pytest.mark.parametrize(
    ("master", "plain"),
    [
        (MASTER, True),
        (MASTER.replace("<f ", '<f ca="1" ').replace('r="B1"', 'r="B1" s="1" t="str"'), True),
        (MASTER.replace('t="shared"', "t='shared'"), False),
        (MASTER.replace("shared", "sh&#97;red"), False),
        (MASTER.replace("A1&amp;", "A1&#38;"), False),
        (MASTER.replace("<f ", "<f\n"), False),
        (MASTER.replace("<v>1", "<!-- 1 --><v>1"), False),
        (MASTER.replace('A1&amp;"x"', '<![CDATA[A1&"x"]]>'), False),
        (cell("A1", "shared") + MASTER, False),
        (cell("A1", "a shared </f> text") + MASTER, False),
        (MASTER.replace("B1", "b1", 1), False),
        (MASTER.replace(' r="B1"', "").replace("<c", '<c r="A1"/><c', 1), False),
    ],
)
def test_masters_in_any_notation_are_found(master: str, plain: bool) -> None:
    inner = f'<sheetData><row r="1">{master}</row><row r="2">{shared("B2", 0)}</row></sheetData>'
    workbook = open_workbook(Book({"Sheet1": inner}).to_bytes())
    assert formulas_of(workbook, 2, 2, 2, 2) == ['=A2&"x"']
    found = find_masters(workbook.package, "xl/worksheets/sheet1.xml")
    assert (found is not None) is plain


def test_masters_below_a_prefix_are_found() -> None:
    inner = f'<sheetData><row r="1">{MASTER}</row><row r="2">{shared("B2", 0)}</row></sheetData>'
    whole = worksheet(inner)
    prefixed = re.sub("<(/?)([a-z])", r"<\1x:\2", whole).replace("xmlns=", "xmlns:x=")
    book = Book({"Sheet1": inner}, parts={"xl/worksheets/sheet1.xml": prefixed})
    assert formulas_of(open_workbook(book.to_bytes()), 2, 2, 2, 2) == ['=A2&"x"']


def test_a_master_under_a_merged_range_is_still_one() -> None:
    block = [shared("A1", 0, "C1", "A1:A3"), shared("A2", 0), shared("A3", 0)]
    covered = sheet_data(*block) + merged("A1:B1")
    below = sheet_data(
        cell("A1", 1), *(re.sub(r"A(?=[123][\":])", "B", each) for each in block)
    ) + merged("A1:B1")
    for inner, column, formula in ((covered, 1, "=C3"), (below, 2, "=C3")):
        data = Book({"Sheet1": inner}).to_bytes()
        (theirs,) = (
            ReferenceWorkbook(data).cells(CellRange("Sheet1", 3, column, 3, column)).values()
        )
        assert theirs.formula == formula
        for window in ((1, 1, 3, 2), (3, column, 3, column)):
            assert formulas_of(open_workbook(data), *window)[-1] == formula


@pytest.mark.parametrize(
    "cells",
    [
        [shared("B1", 0, "A1+1", "B1:B4"), shared("B2", 0, "99"), shared("B3", 0)],
        [shared("B1", 0, "A1+1", "B1:B2"), shared("B2", 0), shared("B3", 0, "A3*2", "B3:B4")],
        [shared("B1", 0, "A1+1", "B2:B3"), shared("B2", 0)],
        [shared("B1", 0, "A1+1"), shared("B2", 0)],
        [shared("B1", "00", "A1+1", "B1:B3"), shared("B2", "00")],
        [shared(f"B{row}", 0, "A1", f"B{row}:B9000") for row in range(1, 8001)],
    ],
    ids=["text of its own", "two", "not in its range", "no range", "odd index", "thousands"],
)
@pytest.mark.parametrize("form", ["plain", "parsed"])
def test_a_shared_formula_has_one_master_in_its_range(cells: list[str], form: str) -> None:
    xml = sheet_data(*cells)
    data = Book({"Sheet1": xml if form == "plain" else xml.replace("<row", "<row ", 1)}).to_bytes()
    # Wherever the cells are that are read: a program that reads all of them takes either master.
    for window in (Window(1, 2, 9000, 2), Window(1, 1, 1, 1)):
        with pytest.raises(WorkbookError, match="shared formula"):
            formulas_of(open_workbook(data), *astuple(window))


def test_a_cell_that_shares_a_formula_comes_after_its_master() -> None:
    inner = sheet_data(shared("B1", 0), shared("B2", 0, "A2+1", "B1:B3"), shared("B3", 0))
    data = Book({"Sheet1": inner}).to_bytes()
    assert formulas_of(open_workbook(data), 3, 2, 3, 2) == ["=A3+1"]
    with pytest.raises(WorkbookError, match="no cell before B1"):
        formulas_of(open_workbook(data), 1, 2, 1, 2)


def test_a_master_without_text_is_replaced_by_the_next() -> None:
    inner = sheet_data(
        shared("B1", 0, "", "B1:B4"), shared("B2", 0, "A2+1", "B2:B4"), shared("B3", 0)
    )
    data = Book({"Sheet1": inner}).to_bytes()
    theirs = ReferenceWorkbook(data).cells(CellRange("Sheet1", 2, 2, 3, 2))
    assert formulas_of(open_workbook(data), 2, 2, 3, 2) == [x.formula for x in theirs.values()]
    assert formulas_of(open_workbook(data), 3, 2, 3, 2) == ["=A3+1"]


def test_array_formulas_name_their_range() -> None:
    found = one('<c r="A1"><f t="array" ref="A1:A3">B1:B3*2</f><v>2</v></c>')
    assert (found.formula, found.array_range, found.value) == ("=B1:B3*2", "A1:A3", 2)


@pytest.mark.parametrize("form", ["plain", "parsed"])
def test_other_formulas_are_not_written_out_to_find_those_that_fill_a_range(form: str) -> None:
    filling = '<c r="C1"><f t="array" ref="C1:C2">B1:B2*2</f><v>1</v></c>'
    xml = sheet_data(shared("B1", 0, "A1+1", "B1:B9"), filling, shared("B2", 0), shared("B3", 0))
    data = Book({"Sheet1": xml if form == "plain" else xml.replace("<row", "<row ", 1)}).to_bytes()
    workbook = Workbook(data, ReadLimits(formula_chars=2 * MIN_FORMULA_CHARS))
    assert [cell.formula for cell in filling_cells(workbook, "Sheet1")] == ["=B1:B2*2"]
    with pytest.raises(WorkbookError, match="formula"):
        sheet_formulas(workbook, "Sheet1")


@pytest.mark.parametrize("kind", ["array", "dataTable"])
@pytest.mark.parametrize("reference", ["", "A2:A3", "A1:A2 A3", "A3:A1", "zzz"])
def test_a_formula_that_fills_a_range_is_in_its_first_cell(kind: str, reference: str) -> None:
    with pytest.raises(WorkbookError, match="fills a range"):
        one(f'<c r="A1"><f t="{kind}" ref="{reference}">B1:B3*2</f><v>2</v></c>')


def test_a_merged_range_does_not_cover_a_formula_that_fills_others() -> None:
    cells = [cell("A1", 1), '<c r="B1"><f t="array" ref="B1:B3">C1:C3</f><v>2</v></c>']
    data = Book({"Sheet1": sheet_data(*cells) + merged("A1:B1")}).to_bytes()
    with pytest.raises(WorkbookError, match="covers a formula that fills B1:B3"):
        open_workbook(data).cells(CellRange("Sheet1", 1, 1, 3, 2))


# -- merged cells, hyperlinks ---------------------------------------------------------------------


def merged(*references: str) -> str:
    inner = "".join(f'<mergeCell ref="{each}"/>' for each in references)
    return f'<mergeCells count="{len(references)}">{inner}</mergeCells>'


def test_covered_cells_of_a_merged_range_have_no_value() -> None:
    cells = [cell("A1", 1), cell("B1", 2), cell("A2", 3, formula="1+2"), cell("C3", 4)]
    data = Book({"Sheet1": sheet_data(*cells) + merged("A1:B2")}).to_bytes()
    found = read(data)
    assert {name: each.value for name, each in found.items()} == {
        "A1": 1,
        "B1": None,
        "A2": None,
        "C3": 4,
    }
    assert found["A2"].formula is None
    reference = ReferenceWorkbook(data).cells(EVERYTHING)
    assert [reference[1, 2].value, reference[2, 1].value] == [None, None]


def test_a_merged_range_below_the_rows_that_are_read_counts_too() -> None:
    cells = [cell(f"A{row}", row) for row in range(1, 50)]
    book = Book({"Sheet1": sheet_data(*cells) + merged("A2:A3")})
    assert [each.value for each in read(book, CellRange("Sheet1", 1, 1, 4, 1)).values()] == [
        1,
        2,
        None,
        4,
    ]


def test_hyperlinks_are_known_but_do_not_fill_blank_cells() -> None:
    links = (
        '<hyperlinks><hyperlink ref="A1" r:id="rId1"/>'
        '<hyperlink ref="B1:B2" location="Sheet1!C1"/></hyperlinks>'
    )
    data = Book(
        {"Sheet1": sheet_data('<c r="A1"/>', cell("B1", 5)) + links},
        parts={
            "xl/worksheets/_rels/sheet1.xml.rels": relations(
                ("rId1", "hyperlink", "https://example.org/")
            )
        },
    ).to_bytes()
    workbook = open_workbook(data)
    assert workbook.hyperlinks("Sheet1") == [
        (CellRange("Sheet1", 1, 1, 1, 1), "https://example.org/"),
        (CellRange("Sheet1", 1, 2, 2, 2), "Sheet1!C1"),
    ]
    assert read(data)["A1"].value is None
    # The one known difference to openpyxl, which the official profile makes up for.
    assert ReferenceWorkbook(data).cells(EVERYTHING)[1, 1].value == "https://example.org/"


# -- ranges ---------------------------------------------------------------------------------------

GRID = sheet_data(*(cell(f"{column}{row}", row) for row in range(1, 400) for column in "ABC"))


@pytest.mark.parametrize("rows", [(1, 1), (1, 399), (200, 210), (399, 399), (399, 600), (500, 9)])
def test_only_the_cells_of_the_range_are_read(rows: tuple[int, int]) -> None:
    first, last = rows[0], max(rows)
    workbook = open_workbook(Book({"Sheet1": GRID}).to_bytes())
    found = workbook.cells(CellRange("Sheet1", first, 2, last, 2))
    assert list(found) == [(row, 2) for row in range(first, min(last, 399) + 1)]
    assert all(each.value == row for (row, _), each in found.items())


def test_a_range_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    workbook = open_workbook(Book({"Sheet1": GRID}).to_bytes())
    scans = counted(monkeypatch, scan_sheet)
    workbook.preload([CellRange("Sheet1", 1, 1, 9, 1), CellRange("Sheet1", 20, 1, 30, 2)])
    assert len(workbook.sheet("Sheet1").values(Window(1, 1, 9, 1))) == 9
    assert len(workbook.sheet("Sheet1").values(Window(22, 2, 25, 2))) == 4
    assert workbook.formula_cells(CellRange("Sheet1", 20, 1, 21, 1)) == []
    assert len(scans) == 1


def test_blank_cells_are_read_if_looks_are_requested() -> None:
    book = Book({"Sheet1": sheet_data(cell("A1", 1, style=6), cell("B1", style=6))})
    sheet = open_workbook(book.to_bytes()).sheet("Sheet1")
    window = Window(1, 1, 1, 2)
    assert len(sheet.values(window)) == 1
    assert len(sheet.styles(window)) == 2
    assert len(sheet.values(window)) == 2


def test_cells_that_are_not_stored_are_not_in_the_mapping() -> None:
    cells = open_workbook(Book({"Sheet1": GRID}).to_bytes()).cells(CellRange("Sheet1", 1, 1, 1, 9))
    assert len(cells) == 3
    assert (1, 4) not in cells
    assert cells.get((1, 9)) is None


def test_the_used_range_counts_values_and_formulas_not_looks() -> None:
    cells = [cell("C3", 1), cell("E9", formula="1"), cell("Z99", style=6)]
    book = Book({"Sheet1": sheet_data(*cells), "Blank": sheet_data()})
    workbook = open_workbook(book.to_bytes())
    assert workbook.used_range("Sheet1") == CellRange("Sheet1", 3, 3, 9, 5)
    assert workbook.used_range("Blank") is None


# -- spelling of the XML --------------------------------------------------------------------------

PREFIXED = (
    f'{DECLARATION}<x:worksheet xmlns:x="{MAIN}"><x:sheetData><x:row r="1"><x:c r="A1">'
    '<x:v>1</x:v></x:c></x:row><x:row r="2"><x:c r="A2" t="inlineStr"><x:is><x:t>two</x:t></x:is>'
    '</x:c></x:row><x:row r="3"><x:c r="A3"><x:v>3</x:v></x:c></x:row></x:sheetData>'
    '<x:mergeCells><x:mergeCell ref="A2:A3"/></x:mergeCells></x:worksheet>'
)
UNNUMBERED = (
    "<sheetData><row><c><v>1</v></c><c><v>2</v></c></row><row/>"
    "<row><c/><c><v>3</v></c></row></sheetData>"
)


def test_prefixed_elements() -> None:
    for cell_range in (
        EVERYTHING,
        CellRange("Sheet1", 2, 1, 2, 1),
        CellRange("Sheet1", 3, 1, 3, 1),
    ):
        found = read(Book({"Sheet1": PREFIXED}), cell_range)
        expected = {"A1": 1, "A2": "two", "A3": None}
        assert {name: each.value for name, each in found.items()}.items() <= expected.items()
        assert found


@pytest.mark.parametrize("first_row", [1, 2, 3])
def test_rows_and_cells_without_addresses(first_row: int) -> None:
    found = read(Book({"Sheet1": UNNUMBERED}), CellRange("Sheet1", first_row, 1, 9, 9))
    values = {name: each.value for name, each in found.items() if each.value is not None}
    everything = {"A1": 1, "B1": 2, "B3": 3}
    assert values == {name: v for name, v in everything.items() if int(name[1]) >= first_row}


@pytest.mark.parametrize(
    "noise",
    [
        "<!-- <row r='9'><c r='A9'><v>9</v></c></row> -->",
        "<?note <row r='9'> ?>",
        "<row r='2'><c r='A2' t='str'><v><![CDATA[</sheetData><row r='7'>]]></v></c></row>",
    ],
)
def test_comments_cdata_and_instructions_are_not_taken_for_rows(noise: str) -> None:
    xml = (
        f'<sheetData><row r="1"><c r="A1"><v>1</v></c></row>{noise}'
        '<row r="3"><c r="A3"><v>3</v></c></row><row r="4"><c r="A4"><v>4</v></c></row>'
        "</sheetData>" + merged("A3:A4")
    )
    found = read(Book({"Sheet1": xml}), CellRange("Sheet1", 3, 1, 4, 1))
    assert {name: each.value for name, each in found.items()} == {"A3": 3, "A4": None}
    above = read(Book({"Sheet1": xml}), CellRange("Sheet1", 1, 1, 1, 1))
    assert above["A1"].value == 1


def test_utf_16_and_a_byte_order_mark() -> None:
    plain = worksheet(GRID)
    wide = plain.replace('encoding="UTF-8"', 'encoding="UTF-16"').encode("utf-16")
    marked = b"\xef\xbb\xbf" + plain.encode()
    book = Book({"Sheet1": GRID}, parts={"xl/worksheets/sheet1.xml": marked})
    assert read(book, CellRange("Sheet1", 300, 3, 300, 3))["C300"].value == 300
    # What adapts formulas to an engine would not see them.
    book = Book({"Sheet1": GRID}, parts={"xl/worksheets/sheet1.xml": wide})
    with pytest.raises(WorkbookError, match="is not in UTF-8"):
        read(book)


@pytest.mark.parametrize("sheet", ["<sheetData/>", "<sheetData></sheetData>", "<sheetData />"])
def test_a_sheet_without_rows(sheet: str) -> None:
    for cell_range in (EVERYTHING, CellRange("Sheet1", 5, 5, 9, 9)):
        assert read(Book({"Sheet1": sheet + merged("A1:B2")}), cell_range) == {}


def test_an_attribute_that_holds_a_bracket() -> None:
    xml = "".join(
        f"<row spans='1>2' r='{row}' ><c r='A{row}'><v>{row}</v></c></row>" for row in range(1, 9)
    )
    found = read(Book({"Sheet1": f"<sheetData>{xml}</sheetData>"}), CellRange("Sheet1", 5, 1, 6, 1))
    assert [each.value for each in found.values()] == [5, 6]


# -- workbooks ------------------------------------------------------------------------------------


def test_facts() -> None:
    book = Book(
        {"One": GRID, "Two": sheet_data()},
        after_sheets='<calcPr calcId="1" fullCalcOnLoad="1"/>',
        application="Microsoft Excel",
        app_version="3.1",
    )
    workbook = open_workbook(book.to_bytes())
    facts = workbook.facts
    assert (facts.application, facts.app_version) == ("Microsoft Excel", "3.1")
    assert facts.full_calc_on_load
    assert facts.sheet_names == workbook.sheet_names == ("One", "Two")
    assert workbook.digest == hashlib.sha256(workbook.data).hexdigest()


def test_a_workbook_without_properties_and_styles() -> None:
    data = Book({"Sheet1": sheet_data(cell("A1", 1))}, application=None, styles=None)
    workbook = open_workbook(data.to_bytes())
    assert (workbook.facts.application, workbook.facts.app_version) == (None, None)
    assert read(data)["A1"].value == 1
    assert read(data)["A1"].number_format == "General"


@pytest.mark.parametrize("lost", ["", '<sheet name="Lost" sheetId="3" r:id="rIdX"/>'])
def test_chart_sheets_are_tabs_but_not_worksheets(lost: str) -> None:
    workbook_xml = (
        f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets>'
        '<sheet name="Chart" sheetId="1" r:id="rIdC"/><sheet name="Data" sheetId="2" r:id="rId1"/>'
        f"{lost}</sheets></workbook>"
    )
    links = relations(
        ("rIdC", "chartsheet", "chartsheets/sheet1.xml"),
        ("rId1", "worksheet", "worksheets/sheet1.xml"),
        ("rIdX", "worksheet", "worksheets/none.xml"),
        ("rIdY", "styles", "styles.xml"),
    )
    book = Book(
        {"Data": GRID},
        parts={
            "xl/workbook.xml": workbook_xml,
            "xl/_rels/workbook.xml.rels": links,
            "xl/chartsheets/sheet1.xml": f'<chartsheet xmlns="{MAIN}"/>',
            "[Content_Types].xml": around(
                {
                    "xl/workbook.xml": "workbook",
                    "xl/worksheets/sheet1.xml": "worksheet",
                    "xl/chartsheets/sheet1.xml": "chartsheet",
                    "xl/styles.xml": "styles",
                }
            )["[Content_Types].xml"],
        },
    )
    if lost:  # openpyxl leaves it out, LibreOffice shows a blank sheet
        with pytest.raises(WorkbookError, match="lacks the part of the sheet 'Lost'"):
            open_workbook(book.to_bytes())
        return
    workbook = open_workbook(book.to_bytes())
    assert [tab.name for tab in workbook.tabs] == ["Chart", "Data"]
    assert workbook.sheet_names == ("Data",)


def test_a_file_and_its_bytes_are_the_same_workbook(tmp_path: Path) -> None:
    data = Book({"Sheet1": GRID}).to_bytes()
    path = tmp_path / "book.xlsx"
    path.write_bytes(data)
    assert open_workbook(path).digest == open_workbook(data).digest


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorkbookError, match=r"nothing\.xlsx"):
        open_workbook(tmp_path / "nothing.xlsx")


def test_a_missing_sheet_is_named() -> None:
    workbook = open_workbook(Book({"Sheet1": GRID}).to_bytes())
    with pytest.raises(WorkbookError, match="no worksheet 'Sheet2'"):
        workbook.cells(CellRange("Sheet2", 1, 1, 1, 1))


def test_opening_reads_no_sheet() -> None:
    book = Book({"Sheet1": "<broken"})
    workbook: Workbook = open_workbook(book.to_bytes())
    assert workbook.sheet_names == ("Sheet1",)
    with pytest.raises(WorkbookError, match=r"sheet1\.xml"):
        workbook.cells(EVERYTHING)


def test_custom_formats_win_over_built_in_ones() -> None:
    styles = STYLES.replace(
        'numFmtId="164" formatCode="yyyy\\-mm\\-dd"', 'numFmtId="14" formatCode="0.0"'
    )
    data = Book(
        {"Sheet1": sheet_data('<c r="A1" s="1"><v>5</v></c>')},
        styles=styles.replace('<xf numFmtId="164"/>', '<xf numFmtId="14"/>'),
    )
    assert (read(data)["A1"].value, read(data)["A1"].number_format) == (5, "0.0")


# -- what is broken where nobody looks ------------------------------------------------------------

BROKEN_ROWS = {
    "above": '<row r="1"><c r="A1"><v>1</v></d></row><row r="5"><c r="A5"><v>7</v></c></row>',
    "below": '<row r="5"><c r="A5"><v>7</v></c></row><row r="9"><c r="A9"><v>1</w></c></row>',
}


@pytest.mark.parametrize("where", BROKEN_ROWS)
def test_malformed_rows_outside_of_the_range_are_an_error(where: str) -> None:
    """Programs read such a sheet up to its error, or not at all."""
    data = Book({"S": f"<sheetData>{BROKEN_ROWS[where]}</sheetData>"}).to_bytes()
    with pytest.raises(WorkbookError, match="is not well-formed XML"):
        open_workbook(data).cells(CellRange("S", 5, 1, 5, 1))


@pytest.mark.parametrize("where", BROKEN_ROWS)
def test_malformed_rows_within_the_range_are_an_error(where: str) -> None:
    data = Book({"S": f"<sheetData>{BROKEN_ROWS[where]}</sheetData>"}).to_bytes()
    with pytest.raises(WorkbookError, match="is not well-formed XML"):
        open_workbook(data).cells(CellRange("S", 1, 1, 9, 1))


def test_damage_is_an_error_wherever_it_is() -> None:
    """A checksum covers the whole part, and is known only when the part has been read."""
    rows = '<row r="1"><c r="A1"><v>7</v></c></row><row r="900"><c r="A900"><v>1</v></c></row>'
    data = Book({"S": f"<sheetData>{rows}</sheetData>"}).to_bytes(zipfile.ZIP_STORED)
    assert open_workbook(data).cells(CellRange("S", 1, 1, 1, 1))
    damaged = data.replace(b'"A900"><v>1</v>', b'"A900"><v>2</v>')
    with pytest.raises(WorkbookError, match=r"sheet1\.xml is damaged: its checksum"):
        open_workbook(damaged).cells(CellRange("S", 1, 1, 1, 1))


def _changed(changes: dict[str, list[tuple[str, str]]]) -> bytes:
    """A workbook by openpyxl whose A1 is "right", with pieces of some parts replaced."""
    made = io.BytesIO()
    book = openpyxl.Workbook()
    assert book.active is not None
    book.active.title = "S"
    book.active["A1"] = "right"
    book.save(made)
    target = io.BytesIO()
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            text = old.read(name).decode()
            for before, after in changes.get(name, []):
                assert before in text
                text = text.replace(before, after)
            new.writestr(name, text)
    return target.getvalue()


def _first_cell(data: bytes) -> object:
    (cell,) = open_workbook(data).cells(CellRange("S", 1, 1, 1, 1)).values()
    return cell.value


def test_a_sheet_with_an_id_in_both_namespaces_is_unreadable() -> None:
    """Other programs use the id in the workbook's own namespace, in any order."""
    strict = "http://purl.oclc.org/ooxml/officeDocument/relationships"
    book = "xl/workbook.xml"
    assert _first_cell(_changed({})) == "right"
    both = (' r:id="rId1"', f' r:id="rId1" xmlns:s="{strict}" s:id="rId2"')
    data = _changed({book: [("<sheet ", "<sheet "), both]})
    with pytest.raises(WorkbookError, match="one attribute in two namespaces"):
        _first_cell(data)


def test_the_main_part_may_have_the_type_of_its_ending() -> None:
    main = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
    own = f'<Override PartName="/xl/workbook.xml" ContentType="{main}" />'
    ending = 'Extension="xml" ContentType="application/xml"'
    data = _changed(
        {"[Content_Types].xml": [(own, ""), (ending, f'Extension="xml" ContentType="{main}"')]}
    )
    assert _first_cell(data) == "right"


# -- escapes of characters ------------------------------------------------------------------------


ESCAPES = {
    "a_x0042_c": "aBc",
    "a_x000D_\nb": "a\r\nb",
    "a_x000a_b": "a\nb",
    "a_x005F_x0042_c": "a_x0042_c",
    "a_x005f_x0042_c": "a_x0042_c",
    "a_x005F_b": "a_b",
    "a_x0042_x0043_c": "aBx0043_c",
    "nox005F_rth": "nox005F_rth",
    "x005F_": "x005F_",
    "_x42_ _X0042_ _x00G2_ _x0042": "_x42_ _X0042_ _x00G2_ _x0042",
    "bell_x0007_ half_xD83D_": "bell_x0007_ half_xD83D_",
}
"""Text in a file -> the string that is read (ECMA-376 part 1, 22.9.2.19)."""


@pytest.mark.parametrize("comment", ["", "<!-- x -->"], ids=["plain", "parsed"])
@pytest.mark.parametrize("written", ESCAPES)
def test_escaped_characters_are_read_in_every_kind_of_string(written: str, comment: str) -> None:
    cells = [
        '<c r="A1" t="s"><v>0</v></c>',
        f'<c r="B1" t="inlineStr"><is><t>{written}</t></is></c>',
        f'<c r="C1" t="str"><v>{written}</v></c>',
        '<c r="D1" t="s"><v>1</v></c>',
        f'<c r="E1" t="inlineStr"><is><r><t>{written}</t></r></is></c>{comment}',
    ]
    strings = [f"<t>{written}</t>", f"<r><t>{written}</t></r>{comment}"]
    values = {each.value for each in read(Book({"Sheet1": sheet_data(*cells)}, strings)).values()}
    assert values == {ESCAPES[written]}


def test_an_escape_is_in_one_run() -> None:
    book = Book(
        {"Sheet1": sheet_data('<c r="A1" t="s"><v>0</v></c>')},
        ["<r><t>a_x00</t></r><r><t>42_c</t></r>"],
    )
    assert read(book)["A1"].value == "a_x0042_c"


@pytest.mark.parametrize("string", [*ESCAPES, *ESCAPES.values(), "_x005F_x0007_", "_" * 9, "\r"])
def test_a_written_string_is_read_as_itself(string: str) -> None:
    assert read_string(write_string(string)) == string


def test_equal_files_are_opened_once_if_workbooks_are_kept(tmp_path: Path) -> None:
    data = Book({"Sheet1": sheet_data(cell("A1", 1))}).to_bytes()
    path = tmp_path / "gold.xlsx"
    path.write_bytes(data)
    with workbooks_kept():
        kept = open_workbook(data)
        assert open_workbook(path) is kept
        assert open_workbook(Book({"Sheet1": sheet_data(cell("A1", 2))}).to_bytes()) is not kept
        assert open_workbook(data, limits=ReadLimits(cells=9)) is not kept
    assert open_workbook(data) is not kept


def test_a_whole_sheet_is_read_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = []

    def counted(package: Package, part: str, *others: Any, **named: Any) -> Any:
        passes.append(part)
        return scan_sheet(package, part, *others, **named)

    monkeypatch.setattr(sheets, "scan_sheet", counted)
    book = openpyxl.Workbook()
    book.worksheets[0].append([1, 2, "=A1+B1"])
    stream = io.BytesIO()
    book.save(stream)
    opened = open_workbook(stream.getvalue())
    assert [cell.formula for cell in sheet_formulas(opened, "Sheet")] == ["=A1+B1"]
    assert opened.used_range("Sheet") == CellRange("Sheet", 1, 1, 1, 3)
    assert opened.stored_values("Sheet")
    assert len(passes) == 1


def test_a_sheet_is_inflated_once_for_a_range_and_for_all_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = "".join(
        f'<row r="{row}"><c r="A{row}"><v>{row}</v></c><c r="B{row}"><f>A{row}*2</f></c></row>'
        for row in range(1, 9000)
    )
    sheet = worksheet(
        f'<sheetData>{rows}</sheetData><mergeCells><mergeCell ref="A7:A8"/></mergeCells>'
    )
    data = Book({"Sheet1": sheet}).to_bytes()
    # With limits of its own, it does not use what another workbook has read.
    at_once = open_workbook(data, limits=ReadLimits(entries=100)).sheet("Sheet1")
    at_once.load([WHOLE_SHEET])
    inflated: list[str] = []
    chunks = Package.chunks

    def counted(package: Package, name: str) -> Iterator[bytes]:
        inflated.append(name)
        return chunks(package, name)

    monkeypatch.setattr(Package, "chunks", counted)
    sheet_read = open_workbook(data).sheet("Sheet1")
    sheet_read.load([Window(2, 1, 3, 1)])
    keys = sheet_read.formula_keys(WHOLE_SHEET)
    assert inflated.count(sheet_read.part) == 1
    assert keys == at_once.formula_keys(WHOLE_SHEET)
    assert sheet_read.values(WHOLE_SHEET) == at_once.values(WHOLE_SHEET)
    assert sheet_read.tail.merges == at_once.tail.merges != []
    again = open_workbook(data).sheet("Sheet1")
    again.load([Window(2, 1, 9000, 1)])
    assert inflated.count(sheet_read.part) == 1
    assert again.values(WHOLE_SHEET) == at_once.values(WHOLE_SHEET)
    assert again.tail.merges == at_once.tail.merges


def test_a_main_part_that_was_read_before_still_needs_its_sheets() -> None:
    parts = Book({"Sheet1": sheet_data(cell("A1", 1))}).all_parts()
    assert open_workbook(zipped(parts)).sheet_names == ("Sheet1",)
    with pytest.raises(WorkbookError, match="lacks the part of the sheet 'Sheet1'"):
        open_workbook(zipped({name: parts[name] for name in parts if "worksheets" not in name}))
    parts["xl/_rels/workbook.xml.rels"] = parts["xl/_rels/workbook.xml.rels"].replace(
        b"relationships/worksheet", b"relationships/chartsheet"
    )
    with pytest.raises(WorkbookError, match=r"says that xl/worksheets/sheet1\.xml is"):
        open_workbook(zipped(parts))


def test_a_part_that_was_read_before_is_still_held_to_its_checksum() -> None:
    parts = Book({"Sheet1": sheet_data(cell("A1", 1))}).all_parts()
    data = zipped(parts, zipfile.ZIP_STORED)
    assert open_workbook(data).sheet_names == ("Sheet1",)
    types = zlib.crc32(parts["[Content_Types].xml"])
    assert data.count(struct.pack("<I", types)) == 2
    with pytest.raises(WorkbookError, match="damaged"):
        open_workbook(data.replace(struct.pack("<I", types), struct.pack("<I", types ^ 1)))


@pytest.mark.parametrize("asked", [Window(1, 1, 2, 2), Window(1, 1, 3, 2)], ids=["same", "other"])
def test_a_sheet_that_was_read_before_is_still_held_to_the_styles(asked: Window) -> None:
    rows = (
        '<row r="1" s="4"><c r="A1"><v>1</v></c></row><row r="2"><c r="B2" s="4"><v>2</v></c></row>'
    )
    few = re.sub("<cellXfs>.*</cellXfs>", '<cellXfs><xf numFmtId="0"/></cellXfs>', STYLES)
    data = f"<sheetData>{rows}</sheetData>"
    sheet = open_workbook(Book({"Sheet1": data}).to_bytes()).sheet("Sheet1")
    assert sheet.values(Window(1, 1, 2, 2)) == {cell_key(1, 1): 1, cell_key(2, 2): 2}
    other = open_workbook(Book({"Sheet1": data}, styles=few).to_bytes()).sheet("Sheet1")
    with pytest.raises(WorkbookError, match="cell format 4"):
        other.load([asked])


@pytest.mark.parametrize(
    "behind",
    [
        f"<extLst><ext uri='x'>{'a' * 150_000}</ext></extLst>",
        (f"<conditionalFormatting sqref='{'A1 ' * 2_000}'/>"
        "<conditionalFormatting sqref='A1'><cfRule type='aboveAverage' priority='1'/>"
        "</conditionalFormatting>"),
        (f"<conditionalFormatting sqref='{'A1 ' * 2_000}'>"
        "<cfRule type='aboveAverage' priority='1'/></conditionalFormatting>"),
    ],
    ids=["elements that nobody reads", "ranges without a rule", "ranges of a rule"],
)  # fmt: skip
def test_worksheets_that_were_read_take_little_memory_whatever_they_hold(
    monkeypatch: pytest.MonkeyPatch, behind: str
) -> None:
    limit = 200_000
    monkeypatch.setattr(plain_rows, "_MAX_ALL_KEPT_BYTES", limit)
    monkeypatch.setattr(sheet_scan, "recent_sheets", plain_rows.RecentSheets())
    books = [
        Book({"Sheet1": sheet_data(cell("A1", number)) + behind}).to_bytes(zipfile.ZIP_STORED)
        for number in range(12)
    ]
    sheet_of_one_cell = CellRange("Sheet1", 1, 1, 1, 1)
    read(books[0], sheet_of_one_cell)
    tracemalloc.start()
    try:
        for book in books[1:]:
            read(book, sheet_of_one_cell)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 2 * limit


def test_what_one_workbook_does_with_its_cells_does_not_change_those_of_another() -> None:
    xml = sheet_data(cell("A1", 1), cell("B1", 2), '<c r="C1" t="s"><v>0</v></c>')
    book = Book({"Sheet1": f'{xml}<mergeCells><mergeCell ref="A1:B1"/></mergeCells>'}, ["x"])
    values = {cell_key(1, 1): 1, cell_key(1, 2): None, cell_key(1, 3): "x"}
    for _ in range(3):
        sheet = open_workbook(book.to_bytes()).sheet("Sheet1")
        assert sheet.values(Window(1, 1, 1, 3)) == values
        assert sheet.hidden_values == {cell_key(1, 2): 2}
