"""What is removed from the workbook that LibreOffice opens, and what is kept."""

from __future__ import annotations

import pytest

from judge.recalc.services.slim import less_of, without_the_unseen

CELLS = b'<worksheet><cols/><sheetData><row r="1" hidden="1"><c r="A1" s="3"/></row></sheetData>'


def test_elements_after_the_cells_stay_only_if_formulas_depend_on_them() -> None:
    tail = (
        b'<sheetProtection sheet="1"/>'
        b'<autoFilter ref="A1:B2"><filterColumn colId="0"/></autoFilter>'
        b'<mergeCells count="1"><mergeCell ref="A1:B1"/></mergeCells>'
        b'<conditionalFormatting sqref="A1"><cfRule><formula>A1&gt;1</formula></cfRule>'
        b'</conditionalFormatting><dataValidations/><drawing r:id="r1"/>'
        b'<tableParts count="1"><tablePart r:id="r2"/></tableParts><extLst><ext/></extLst>'
    )
    slim = less_of("xl/worksheets/sheet1.xml", CELLS + tail + b"</worksheet>\n")
    assert slim == (
        CELLS + b'<autoFilter ref="A1:B2"><filterColumn colId="0"/></autoFilter>'
        b'<mergeCells count="1"><mergeCell ref="A1:B1"/></mergeCells>'
        b'<tableParts count="1"><tablePart r:id="r2"/></tableParts></worksheet>\n'
    )


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<worksheet>",
        b"<worksheet><sheetData>",
        b"<worksheet><sheetData/>",
        b"</worksheet></sheetData>",
        b"sheetData</worksheet>",
    ],
)
def test_a_sheet_that_is_cut_short_stays(content: bytes) -> None:
    assert less_of("xl/worksheets/sheet1.xml", content) == content


def test_a_sheet_in_another_notation_is_cut_as_well() -> None:
    sheet = b"<x:worksheet><x:sheetData /><x:pageMargins/><x:mergeCells/></x:worksheet >"
    assert less_of("xl/worksheets/sheet1.xml", sheet) == (
        b"<x:worksheet><x:sheetData /><x:mergeCells/></x:worksheet >"
    )


def test_cell_formats_keep_their_numbers_and_their_number_formats() -> None:
    styles = (
        b'<styleSheet xmlns="m">'
        b'<numFmts count="1"><numFmt numFmtId="164" formatCode="h:mm"/></numFmts>'
        b'<fonts/><cellStyleXfs><xf numFmtId="9"/></cellStyleXfs><cellXfs count="3"><xf/>'
        b'<xf fontId="2" numFmtId="164"><alignment/></xf><xf numFmtId=\'14\'/></cellXfs>'
        b"<dxfs count='1'><dxf><font/></dxf></dxfs></styleSheet>"
    )
    slim = less_of("xl/styles.xml", styles) or b""
    assert b'<numFmt numFmtId="164" formatCode="h:mm"/>' in slim
    cell_formats = slim.partition(b"<cellXfs>")[2].partition(b"</cellXfs>")[0]
    assert cell_formats == b"".join(
        b'<xf numFmtId="%d" applyNumberFormat="1"/>' % number for number in (0, 164, 14)
    )
    assert b"<dxf><font/></dxf>" in slim
    assert b"alignment" not in slim
    assert slim.startswith(b'<styleSheet xmlns="m"><numFmts')
    for other in (b"<styleSheet/>", b"<x:styleSheet><x:cellXfs></x:cellXfs></x:styleSheet>"):
        assert less_of("xl/styles.xml", other) == other


NAMESPACE = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'


def relationships(*links: str) -> bytes:
    return f"<Relationships {NAMESPACE}>{''.join(links)}</Relationships>".encode()


def link(number: int, kind: str, target: str, mode: str = "") -> str:
    outside = f' TargetMode="{mode}"' if mode else ""
    return f'<Relationship Id="r{number}" Type="http://x/{kind}" Target="{target}"{outside}/>'


@pytest.mark.parametrize(
    "rels",
    [
        relationships(link(1, "drawing", "a&gt;b.xml"), link(2, "table", "t"), link(3, "vba", "v")),
        relationships(
            link(1, "image", "i").replace("/>", "></Relationship>"), link(2, "table", "t")
        ),
        relationships(link(2, "table", "t"), link(4, "worksheet", "file:///etc", "External")),
        relationships(link(1, "oleObject", "o"), link(2, "table", "t"))
        .decode()
        .replace("<Relationships", '<?xml version="1.0" encoding="UTF-16"?><Relationships')
        .encode("utf-16"),
        relationships(link(2, "table", "t"), "<!-- ", link(5, "image", "i"), " -->"),
    ],
    ids=["usual", "not closed in the tag", "outside", "UTF-16", "comment"],
)
def test_relationships_to_removed_parts_are_removed(rels: bytes) -> None:
    assert less_of("xl/worksheets/_rels/sheet1.xml.rels", rels) == relationships(
        link(2, "table", "t")
    )


def test_relationships_that_cannot_be_read_are_left_out() -> None:
    for rels in (b"", b"<Relationships>", b'<?xml version="1.0" encoding="odd"?><a/>'):
        assert less_of("xl/_rels/workbook.xml.rels", rels) is None


def test_parts_that_no_value_comes_through_are_left_out() -> None:
    for part in (
        "xl/drawings/drawing1.xml",
        "xl/vbaProject.bin",
        "XL/MEDIA/image1.png",
        "elsewhere/vbaProject.bin",
        "xl/embeddings/oleObject1.bin",
        "docProps/app.xml",
        "xl/pivotTables/pivotTable1.xml",
    ):
        assert less_of(part, b"x") is None
    assert less_of("xl/sharedStrings.xml", b"x") == b"x"


def test_cached_values_of_other_workbooks_stay_and_their_addresses_are_removed() -> None:
    part = b"<externalLink><externalBook/></externalLink>"
    assert less_of("xl/externalLinks/externalLink1.xml", part) == part
    for other in (b"<externalLink><ddeLink/></externalLink>", b"<externalLink><oleLink/>", b""):
        assert less_of("xl/externalLinks/externalLink1.xml", other) is None
    rels = [
        relationships(
            link(1, "externalLinkPath", "file:///etc/passwd", "External"), link(2, "oleObject", "x")
        )
        for _ in range(2)
    ]
    slim = [
        less_of(f"xl/externalLinks/_rels/externalLink{number}.xml.rels", content) or b""
        for number, content in enumerate(rels)
    ]
    assert all(b"passwd" not in content and b"oleObject" not in content for content in slim)
    assert all(b'Id="r1"' in content and b'TargetMode="External"' in content for content in slim)
    assert slim[0] != slim[1]


@pytest.mark.parametrize("closed", [b"/>", b"></sheetProtection>"])
def test_protection_is_removed(closed: bytes) -> None:
    protection = b'<sheetProtection sheet="1" password="CC1A"' + closed
    slim = less_of("xl/worksheets/sheet1.xml", CELLS + protection + b"</worksheet><!-- -->")
    assert slim == CELLS + b"</worksheet><!-- -->"
    assert less_of("xl/worksheets/sheet1.xml", CELLS + protection + b"</worksheet>") == (
        CELLS + b"</worksheet>"
    )
    book = b'<workbook><workbookProtection lockStructure="1"/><sheets/></workbook>'
    assert less_of("xl/workbook.xml", book) == b"<workbook><sheets/></workbook>"


@pytest.mark.parametrize("name", ["xl/worksheets/sheet1.xml", "xl/styles.xml", "a.rels"])
@pytest.mark.parametrize(
    "repeated", [b"<mergeCells>", b"<dxfs>", b"<cellXfs>", b'<Relationship Id="', b"</sheetData>"]
)
def test_time_grows_with_the_size_of_a_part_alone(name: str, repeated: bytes) -> None:
    # With the square of it, this would take hours.
    hostile = b"<styleSheet><cellXfs></cellXfs><sheetData/>" + repeated * 300_000
    less_of(name, hostile + b"</worksheet>")


STYLES = b'<styleSheet><cellXfs count="1"><xf><alignment/></xf></cellXfs></styleSheet>'
SHEET = "xl/worksheets/sheet1.xml"


@pytest.mark.parametrize(
    ("part", "content", "formats", "pivots"),
    [
        (SHEET, CELLS + b'<f>CELL("format",A1)</f></worksheet>', True, False),
        (SHEET, CELLS + b'<f>cELL ("format",A1)</f></worksheet>', True, False),
        (
            SHEET,
            CELLS + b'<mergeCells><mergeCell ref="A1"/></mergeCells></worksheet>',
            False,
            False,
        ),
        ("xl/workbook.xml", b"<definedName>GetPivotData(A1,B1)</definedName>", False, True),
        ("xl/workbook.xml", b'<calcPr fullPrecision="0"/>', True, False),
        ("xl/workbook.xml", b"<workbook/>", False, False),
    ],
)
def test_formulas_keep_only_what_they_depend_on(
    part: str, content: bytes, formats: bool, pivots: bool
) -> None:
    unseen = {
        "xl/drawings/drawing1.xml": b"x",
        "xl/media/image1.png": b"x",
        "xl/vbaProject.bin": b"x",
        "xl/embeddings/oleObject1.bin": b"x",
    }
    rels = relationships(link(1, "vbaProject", "v"), link(2, "pivotCacheDefinition", "p"))
    pivot = {"xl/pivotCache/pivotCacheDefinition1.xml": b"<x/>"}
    links = "xl/_rels/workbook.xml.rels"
    slim = without_the_unseen(
        {part: content, "xl/styles.xml": STYLES, links: rels} | pivot | unseen
    )
    assert slim.keys() == {part, "xl/styles.xml", links} | (pivot.keys() if pivots else set())
    assert (slim["xl/styles.xml"] == STYLES) is formats
    assert b"vbaProject" not in slim[links]
    assert (b"pivotCacheDefinition" in slim[links]) is pivots
