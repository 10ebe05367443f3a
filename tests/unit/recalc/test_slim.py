"""What is left out of the workbook that LibreOffice opens, and what is not."""

from __future__ import annotations

import pytest

from judge.recalc.services.slim import less_of, without_the_unseen

CELLS = b'<worksheet><cols/><sheetData><row r="1" hidden="1"><c r="A1" s="3"/></row></sheetData>'


def test_what_follows_the_cells_stays_only_where_formulas_can_see_it() -> None:
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


def test_a_sheet_in_another_spelling_is_cut_as_well() -> None:
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


def test_relationships_to_what_is_left_out_go_with_it() -> None:
    link = b'<Relationship Id="r%d" Type="http://x/relationships/%s" Target="%s"/>'
    rels = (
        link % (1, b"drawing", b"a>b.xml") + link % (2, b"table", b"t") + link % (3, b"vba", b"v")
    )
    assert less_of("xl/worksheets/_rels/sheet1.xml.rels", rels) == link % (2, b"table", b"t")
    assert less_of("xl/externalLinks/_rels/externalLink1.xml.rels", rels) == rels
    for part in ("xl/drawings/drawing1.xml", "xl/vbaProject.bin", "docProps/app.xml"):
        assert less_of(part, b"x") is None
    assert less_of("xl/sharedStrings.xml", b"x") == b"x"


@pytest.mark.parametrize("name", ["xl/worksheets/sheet1.xml", "xl/styles.xml", "a.rels"])
@pytest.mark.parametrize(
    "repeated", [b"<mergeCells>", b"<dxfs>", b"<cellXfs>", b'<Relationship Id="', b"</sheetData>"]
)
def test_time_grows_with_the_size_of_a_part_alone(name: str, repeated: bytes) -> None:
    # With the square of it, this would take hours.
    hostile = b"<styleSheet><cellXfs></cellXfs><sheetData/>" + repeated * 300_000
    assert less_of(name, hostile + b"</worksheet>") is not None


@pytest.mark.parametrize(
    ("part", "content"),
    [
        ("xl/worksheets/sheet1.xml", b'<f>CELL("format",A1)</f>'),
        ("xl/workbook.xml", b"<definedName>GETPIVOTDATA(A1,B1)</definedName>"),
        ("xl/workbook.xml", b'<calcPr fullPrecision="0"/>'),
    ],
)
def test_where_formulas_see_formats_everything_stays(part: str, content: bytes) -> None:
    parts = {part: content, "xl/drawings/drawing1.xml": b"x"}
    assert without_the_unseen(parts) == parts
    assert without_the_unseen({"xl/drawings/drawing1.xml": b"x"}) == {}
