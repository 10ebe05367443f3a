# ruff: noqa: DTZ001 - workbooks know no time zones
from __future__ import annotations

import zipfile
from datetime import datetime, time
from pathlib import Path

import openpyxl
import pytest

from judge.errors import WorkbookError
from judge.workbook.cell import ErrorValue
from judge.workbook.preview import SheetPreview, read_preview
from judge.workbook.sheets.sheet_scan import MAX_PASSED_BYTES
from tests.unit.compare.cells.packages import around

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"


def write_package(
    path: Path, sheets: dict[str, str], compression: int = zipfile.ZIP_DEFLATED, **parts: str
) -> Path:
    """A workbook made by hand: sheet name -> the XML inside of <worksheet>."""
    names = "".join(
        f'<sheet name="{name}" sheetId="{number}" r:id="rId{number}"/>'
        for number, name in enumerate(sheets, start=1)
    )
    targets = "".join(
        f'<Relationship Id="rId{number}" Type="{RELATIONS}/worksheet" '
        f'Target="worksheets/sheet{number}.xml"/>'
        for number in range(1, len(sheets) + 1)
    ) + "".join(
        f'<Relationship Id="{part}" Type="{RELATIONS}/{part}" Target="{part}.xml"/>'
        for part in parts
        if part != "workbookPr"
    )
    properties = parts.pop("workbookPr", "")
    with zipfile.ZipFile(path, "w", compression) as archive:
        kinds = {"xl/workbook.xml": "workbook"} | {f"xl/{part}.xml": part for part in parts}
        for number in range(1, len(sheets) + 1):
            kinds[f"xl/worksheets/sheet{number}.xml"] = "worksheet"
        for name, text in around(kinds).items():
            archive.writestr(name, text)
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}">{properties}'
            f"<sheets>{names}</sheets></workbook>",
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{PACKAGE}">{targets}</Relationships>',
        )
        for number, xml in enumerate(sheets.values(), start=1):
            archive.writestr(f"xl/worksheets/sheet{number}.xml", xml)
        for name, text in parts.items():
            archive.writestr(f"xl/{name}.xml", text)
    return path


def sheet(rows: str, before: str = "", after: str = "") -> str:
    return f'<worksheet xmlns="{MAIN}">{before}<sheetData>{rows}</sheetData>{after}</worksheet>'


def one(path: Path, rows: int = 5) -> SheetPreview:
    (preview,) = read_preview(path, rows)
    return preview


def test_every_type_of_cell(tmp_path: Path) -> None:
    styles = (
        f'<styleSheet xmlns="{MAIN}"><numFmts>'
        '<numFmt numFmtId="164" formatCode="0.00 &quot;d&quot;"/>'
        '<numFmt numFmtId="165" formatCode="yyyy\\-mm\\-dd"/></numFmts>'
        '<cellStyleXfs><xf numFmtId="14"/></cellStyleXfs><cellXfs><xf numFmtId="0"/>'
        '<xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="165"/></cellXfs></styleSheet>'
    )
    strings = (
        f'<sst xmlns="{MAIN}"><si><t>plain</t></si><si><r><t>ri</t></r><r><t>ch</t></r>'
        "<rPh><t>no</t></rPh></si><si><t>a_x000D_b</t></si></sst>"
    )
    rows = (
        '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c>'
        '<c r="C1" t="s"><v>2</v></c><c r="D1" t="inlineStr"><is><t>in</t></is></c>'
        '<c r="E1" t="str"><f>A1</f><v>text</v></c><c r="F1" t="b"><v>1</v></c>'
        '<c r="G1" t="e"><v>#N/A</v></c></row>'
        '<row><c><v>1.50</v></c><c><v>3.0</v></c><c s="1"><v>45000.5</v></c><c s="2"><v>7</v></c>'
        '<c s="3"><v>60</v></c><c><f>1+1</f></c><c s="3" t="d"><v>2024-02-03T00:00:00</v></c></row>'
    )
    path = write_package(
        tmp_path / "w.xlsx", {"S": sheet(rows)}, styles=styles, sharedStrings=strings
    )
    first, second = one(path).rows
    assert first == ("plain", "rich", "a\rb", "in", "text", True, ErrorValue("#N/A"))
    assert second == (
        1.5, 3, datetime(2023, 3, 15, 12), 7, datetime(1900, 2, 28), None, datetime(2024, 2, 3),
    )  # fmt: skip
    assert isinstance(second[1], int)


def test_nothing_after_the_last_row_is_parsed(tmp_path: Path) -> None:
    rows = "".join(f'<row r="{n}"><c r="A{n}"><v>{n}</v></c></row>' for n in range(1, 4))
    path = write_package(
        tmp_path / "w.xlsx", {"S": sheet(rows + '<row r="4"><broken' + "x" * 90_000)}
    )
    preview = one(path, 2)
    assert preview.rows == ((1,), (2,))
    assert preview.more_rows


def test_a_table_of_strings_is_read_to_its_end(tmp_path: Path) -> None:
    """A fault after the last string that is shown makes the workbook unreadable as well."""
    strings = f'<sst xmlns="{MAIN}"><si><t>first</t></si>' + "<si><t>x</t></si>" * 9 + "<broken"
    rows = '<row r="1"><c r="A1" t="s"><v>0</v></c></row>'
    path = write_package(tmp_path / "w.xlsx", {"S": sheet(rows)}, sharedStrings=strings)
    with pytest.raises(WorkbookError, match=r"sharedStrings\.xml is not well-formed"):
        one(path)


def test_blank_rows_at_the_end_are_removed_unless_more_follow(tmp_path: Path) -> None:
    few = '<row r="2"><c r="B2"><v>1</v></c></row><row r="4"><c r="B4" s="1"/></row>'
    path = write_package(tmp_path / "w.xlsx", {"S": sheet(few)})
    assert one(path).rows == ((None, None), (None, 1))
    many = few + '<row r="9"><c r="A9"><v>1</v></c></row>'
    path = write_package(tmp_path / "v.xlsx", {"S": sheet(many)})
    assert one(path, 4).rows == ((None, None), (None, 1), (None, None), (None, None))


def test_merged_ranges_and_dimension(tmp_path: Path) -> None:
    rows = "".join(f'<row r="{n}"><c r="A{n}"><v>{n}</v></c></row>' for n in range(1, 4000))
    merges = "".join(f'<mergeCell ref="A{n}:B{n}"/>' for n in (1, 2, 2000))
    path = write_package(
        tmp_path / "w.xlsx",
        {"S": sheet(rows, '<dimension ref="A1:D3999"/>', f"<mergeCells>{merges}</mergeCells>")},
    )
    preview = one(path, 3)
    assert preview.merged == ("A1:B1", "A2:B2")
    assert (preview.total_rows, preview.total_columns) == (3999, 4)


def test_days_counted_from_1904(tmp_path: Path) -> None:
    styles = f'<styleSheet xmlns="{MAIN}"><cellXfs><xf numFmtId="14"/></cellXfs></styleSheet>'
    rows = '<row r="1"><c r="A1" s="0"><v>1</v></c></row>'
    path = write_package(
        tmp_path / "w.xlsx",
        {"S": sheet(rows)},
        styles=styles,
        workbookPr='<workbookPr date1904="1"/>',
    )
    assert one(path).rows == ((datetime(1904, 1, 2),),)


@pytest.mark.parametrize(
    "content",
    [b"", b"not a zip", b"PK\x03\x04 broken"],
)
def test_what_is_not_a_workbook(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "w.xlsx"
    path.write_bytes(content)
    with pytest.raises(WorkbookError, match=r"w\.xlsx"):
        read_preview(path, 5)


def test_broken_within_the_shown_rows(tmp_path: Path) -> None:
    for name, xml in {
        "xml": sheet('<row r="1"><c r="A1"><v>1</row>'),
        "column": sheet('<row r="1"><c r="ZZZ1"><v>1</v></c></row>'),
        "entity": '<!DOCTYPE x [<!ENTITY a "b">]>' + sheet("<row/>"),
    }.items():
        path = write_package(tmp_path / f"{name}.xlsx", {"S": xml})
        with pytest.raises(WorkbookError, match=name):
            read_preview(path, 5)
    with pytest.raises(WorkbookError, match=r"missing\.xlsx: No such file"):
        read_preview(tmp_path / "missing.xlsx", 5)


TIMES = (
    f'<styleSheet xmlns="{MAIN}"><numFmts><numFmt numFmtId="164" formatCode="[h]:mm"/></numFmts>'
    '<cellXfs><xf numFmtId="0"/><xf numFmtId="20"/><xf numFmtId="164"/></cellXfs></styleSheet>'
)


@pytest.mark.parametrize(
    ("style", "number", "shown"),
    [
        (1, "0.75", time(18)), (1, "-0.25", datetime(1899, 12, 29, 18)),
        (1, "3e6", ErrorValue("#VALUE!")), (2, "0.75", time(18)),
        (2, "1.5", datetime(1900, 1, 1, 12)), (2, "61", datetime(1900, 3, 1)), (2, "-0.5", -0.5),
        (2, "3e6", 3_000_000), (0, "12345678901234567890", 12345678901234567890.0),
        (0, "-7.0", -7), (0, "1e300", 1e300), (0, "9" * 400, float("inf")),
    ],
)  # fmt: skip
def test_times_and_large_numbers(tmp_path: Path, style: int, number: str, shown: object) -> None:
    rows = f'<row r="1"><c r="A1" s="{style}"><v>{number}</v></c></row>'
    path = write_package(tmp_path / "w.xlsx", {"S": sheet(rows)}, styles=TIMES)
    ((value,),) = one(path).rows
    assert value == shown
    assert type(value) is type(shown)


def test_values_under_a_merged_range_stay(tmp_path: Path) -> None:
    rows = '<row r="1"><c r="A1"><v>1</v></c><c r="B1"><v>2</v></c></row>'
    merges = '<mergeCells><mergeCell ref="A1:B1"/></mergeCells>'
    path = write_package(tmp_path / "w.xlsx", {"S": sheet(rows, after=merges)})
    assert one(path).rows == ((1, 2),)


@pytest.mark.parametrize("note", ["", "<!-- rows -->"], ids=["skipped", "parsed"])
def test_the_existence_of_rows_below_is_known(tmp_path: Path, note: str) -> None:
    below = f'{note}<row r="3"/>'
    rows = '<row r="2"><c r="A2"><v>1</v></c></row>'
    before, after = '<dimension ref="B2:D9"/>', '<mergeCells><mergeCell ref="A2:C2"/></mergeCells>'
    path = write_package(tmp_path / "w.xlsx", {"S": sheet(rows + below, before, after)})
    for shown, more in ((2, True), (3, False)):
        preview = one(path, shown)
        assert (preview.more_rows, preview.rows) == (more, ((None,), (1,)))
        assert (preview.total_rows, preview.total_columns) == (9, 4)
        assert preview.merged == ("A2:C2",)


@pytest.mark.parametrize("reference", ["", "D9:B2", "everything"])
def test_a_dimension_that_says_nothing(tmp_path: Path, reference: str) -> None:
    rows = '<row r="1"><c r="A1"><v>1</v></c></row>'
    path = write_package(tmp_path / "w.xlsx", {"S": sheet(rows, f'<dimension ref="{reference}"/>')})
    assert one(path) == SheetPreview("S", ((1,),))


def test_the_end_of_a_very_long_sheet_is_not_searched(tmp_path: Path) -> None:
    rows = "".join(f'<row r="{n}"><c r="A{n}"><v>{n}</v></c></row>' for n in range(1, 4))
    broken = f"<mergeCells><mergeCell ref='A1:B1'/>{'x' * MAX_PASSED_BYTES}<broken"
    path = write_package(
        tmp_path / "w.xlsx", {"S": sheet(rows, after=broken)}, compression=zipfile.ZIP_STORED
    )
    preview = one(path, 2)
    assert (preview.rows, preview.merged) == (((1,), (2,)), ())
    path = write_package(tmp_path / "v.xlsx", {"S": sheet(rows, after=broken[-100:])})
    with pytest.raises(WorkbookError, match=r"v\.xlsx: .*sheet1\.xml is not well-formed"):
        one(path, 2)


@pytest.mark.data
def test_agrees_with_openpyxl_on_published_inputs(judge_data: Path) -> None:
    folder = judge_data / "spreadsheetbench_912_dev300" / "spreadsheet"
    paths = [
        path for path in sorted(folder.glob("*/1_*_input.xlsx")) if path.stat().st_size < 20_000
    ][:60]
    assert len(paths) == 60
    cells = 0
    for path in paths:
        previews = {each.name: each for each in read_preview(path, 6)}
        workbook = openpyxl.load_workbook(path, data_only=True)
        for worksheet in workbook.worksheets:
            preview = previews[worksheet.title]
            for y, row in enumerate(preview.rows, start=1):
                for x, value in enumerate(row, start=1):
                    expected = worksheet.cell(y, x).value
                    cells += expected is not None
                    if isinstance(value, datetime):
                        # Times of day and durations are other types there.
                        assert str(expected).split(".")[0][-8:] == f"{value:%H:%M:%S}", (path, x, y)
                    else:
                        assert value == expected, (path, worksheet.title, x, y)
    assert cells > 1000
