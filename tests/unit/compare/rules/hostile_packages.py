"""Packages made to harm their reader: what each attempts, and its bytes."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

from tests.unit.workbook.test_facts import (
    CACHES,
    DRAWN,
    chart,
    package,
    pivot_parts,
    related,
)

EVERYWHERE = "A1:XFD1048576"
SHEET = "xl/worksheets/sheet1.xml"
LINKS = "xl/_rels/workbook.xml.rels"
SHEET_LINKS = "xl/worksheets/_rels/sheet1.xml.rels"

SMALL: dict[str, bytes] = {
    "a cell in the last corner": package(
        "", {"xl/worksheets/sheet1.xml": '<worksheet><sheetData><row r="1048576">'
             '<c r="XFD1048576" s="9"><v>1</v></c></row></sheetData></worksheet>'}
    ),
    "merged everywhere": package(f'<mergeCells><mergeCell ref="{EVERYWHERE}"/></mergeCells>'),
    "links everywhere": package(
        f'<hyperlinks><hyperlink ref="{EVERYWHERE}" location="A1"/></hyperlinks>'
    ),
    "a condition everywhere": package(
        f'<conditionalFormatting sqref="{EVERYWHERE}"><cfRule type="expression" priority="1">'
        "<formula>A1&gt;0</formula></cfRule></conditionalFormatting>"
    ),
    "a condition over everything": package(
        '<conditionalFormatting sqref="A1"><cfRule type="expression" priority="1">'
        "<formula>SUM($A$1:$XFD$1048576)&gt;0</formula></cfRule></conditionalFormatting>"
    ),
    "a deep condition": package(
        '<conditionalFormatting sqref="A1"><cfRule type="expression" priority="1">'
        f"<formula>{'(' * 900}1{')' * 900}</formula></cfRule></conditionalFormatting>"
    ),
    "many conditions": package(
        '<conditionalFormatting sqref="A1:A999"><cfRule type="cellIs" operator="between" '
        'priority="1"><formula>1</formula></cfRule></conditionalFormatting>' * 50
    ),
    "columns without end": package(
        "", {"xl/worksheets/sheet1.xml": '<worksheet><cols><col min="1" max="999999999" '
             'width="9"/><col min="-4" max="x" hidden="1"/></cols><sheetData/></worksheet>'}
    ),
    "rows that are no numbers": package(
        "", {"xl/worksheets/sheet1.xml": '<worksheet><sheetData><row ht="1e999" hidden="1"/>'
             '<row r="2" ht="nan"/></sheetData></worksheet>'}
    ),
    "a view of nothing": package(
        "", {"xl/worksheets/sheet1.xml": '<worksheet><sheetViews><sheetView zoomScale="x">'
             '<pane xSplit="-1e300" ySplit="nan" state="frozen"/></sheetView></sheetViews>'
             "<sheetData/></worksheet>"}
    ),
    "a filter of nothing": package(
        '<autoFilter ref="nowhere"><filterColumn colId="x"><customFilters/></filterColumn>'
        '<sortState><sortCondition/></sortState></autoFilter>'
    ),
    "validations of nothing": package(
        '<dataValidations><dataValidation sqref="ZZZ9 A0"/><dataValidation/></dataValidations>'
    ),
    "sparklines without places": package(
        '<extLst><ext><x:sparkline xmlns:x="x"/></ext></extLst>'
    ),
    "a title without end": package("", chart("<lineChart/>") | {
        "xl/charts/c.xml": "<chartSpace><chart><title><tx><rich>" + "<p><r/></p>" * 9999
        + "</rich></tx></title><plotArea><lineChart/></plotArea></chart></chartSpace>"
    }),
    "axes of nobody": package("", chart(
        '<scatterChart><ser/><axId val="1"/></scatterChart><barChart><axId/></barChart>'
    )),
    "many series": package("", chart("<barChart>" + "<ser><val/></ser>" * 2_000 + "</barChart>")),
    "many charts": package("", DRAWN | {
        "xl/drawings/d.xml": '<wsDr xmlns:r="r">' + '<oneCellAnchor><graphicFrame><graphic>'
        '<graphicData><chart r:id="rId1"/></graphicData></graphic></graphicFrame>'
        "</oneCellAnchor>" * 600 + "</wsDr>",
        "xl/charts/c.xml": "<chartSpace><chart><plotArea><pieChart/></plotArea></chart>"
        "</chartSpace>",
    }),
    "a pivot of nothing": package("", pivot_parts(source='ref="A1" sheet="S"'), CACHES),
    "a pivot of a table": package("", pivot_parts(source='name="Nobody"'), CACHES),
    "a pivot of a broken range": package("", pivot_parts(source='ref="1A:B:C"'), CACHES),
    "a shared string far away": package(
        "", {"xl/worksheets/sheet1.xml": '<worksheet><sheetData><row r="1"><c r="A1" t="s">'
             "<v>999999999999</v></c></row></sheetData></worksheet>"}
    ),
    "a number without end": package(
        "", {"xl/worksheets/sheet1.xml": '<worksheet><sheetData><row r="1"><c r="A1"><v>'
             + "9" * 9000 + "</v></c></row></sheetData></worksheet>"}
    ),
    "text that is a huge number": package(
        "", {"xl/worksheets/sheet1.xml": '<worksheet><sheetData><row r="2"><c r="A2" '
             't="inlineStr"><is><t>' + "9" * 9000 + "</t></is></c></row></sheetData></worksheet>"}
    ),
    "broken styles": package("", {
        "xl/_rels/workbook.xml.rels": '<Relationships><Relationship Id="rId1" Type="t/worksheet" '
        'Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Type="t/styles" '
        'Target="styles.xml"/></Relationships>',
        "xl/styles.xml": "<styleSheet><fonts/><fills><fill/></fills><cellXfs><xf fontId='-1' "
        "fillId='99'/></cellXfs><dxfs><dxf/></dxfs></styleSheet>",
    }),
}  # fmt: skip


def _part(count: int, share: float) -> int:
    return max(1, int(count * share))


def _sheet(inner: str) -> dict[str, str]:
    return {SHEET: f'<worksheet xmlns:r="r">{inner}</worksheet>'}


def _styled(styles: str, sheet: str = "<sheetData/>") -> bytes:
    links = related(("rId1", "worksheet", "worksheets/sheet1.xml"), ("s", "styles", "styles.xml"))
    return package("", {LINKS: links, "xl/styles.xml": styles, **_sheet(sheet)})


def _series(reference: str, count: int) -> str:
    one = f"<ser><val><numRef><f>{reference}</f></numRef></val></ser>"
    return f"<barChart>{one * count}</barChart>"


def _chart_loop(_: float) -> bytes:
    # the chart says that its drawing is the sheet's, which says that its chart is the drawing
    parts = chart(_series("S!A1", 1)) | {
        "xl/charts/_rels/c.xml.rels": related(("rId1", "drawing", "../drawings/d.xml")),
        "xl/drawings/_rels/d.xml.rels": related(
            ("rId1", "chart", "../drawings/d.xml"), ("rId2", "drawing", "../charts/c.xml")
        ),
    }
    return package("", parts)


def _relationship_cycle(_: float) -> bytes:
    links = [
        ("rId1", "worksheet", "worksheets/sheet1.xml"),
        ("rId2", "worksheet", "workbook.xml"),
        ("rId3", "styles", "workbook.xml"),
        ("rId4", "sharedStrings", "workbook.xml"),
        ("rId5", "pivotCacheDefinition", "workbook.xml"),
    ]
    own = [(kind, kind, "sheet1.xml") for kind in ("drawing", "table", "pivotTable", "worksheet")]
    parts = {LINKS: related(*links), SHEET_LINKS: related(*own)}
    return package("", parts, '<pivotCaches><pivotCache cacheId="7" r:id="rId5"/></pivotCaches>')


def _one_part_many_sheets(share: float) -> bytes:
    listed = "".join(
        f'<sheet name="S{n}" sheetId="{n}" r:id="rId1"/>' for n in range(1, _part(15_000, share))
    )
    book = f'<workbook xmlns:r="r"><sheets>{listed}</sheets></workbook>'
    return package("", {"xl/workbook.xml": book})


def _many_drawings_of_one_chart(share: float) -> bytes:
    points = "".join(f'<pt idx="{n}"><v>1</v></pt>' for n in range(_part(3000, share)))
    cached = f"<ser><val><numRef><f>S!A1</f><numCache>{points}</numCache></numRef></val></ser>"
    frames = '<oneCellAnchor><chart r:id="rId1"/></oneCellAnchor>' * _part(3000, share)
    parts = chart(f"<barChart>{cached}</barChart>")
    parts["xl/drawings/d.xml"] = f'<wsDr xmlns:r="r">{frames}</wsDr>'
    return package("", parts)


def _many_series_of_many_cells(share: float) -> bytes:
    rows = "".join(
        f'<row r="{n}"><c r="A{n}"><v>1</v></c></row>' for n in range(1, _part(20_001, share))
    )
    return package(
        "",
        chart(_series("S!$A:$A", _part(3000, share)))
        | _sheet(f'<sheetData>{rows}</sheetData><drawing r:id="rId1"/>'),
    )


def _pivot(fields: str, items: str = "", shared: str = "") -> bytes:
    parts = pivot_parts()
    table = parts["xl/pivot/t.xml"]
    table = table.replace("<pivotFields>", f"<pivotFields>{fields}")
    parts["xl/pivot/t.xml"] = table.replace("<items>", f"<items>{items}")
    cache = parts["xl/pivotCache/p.xml"]
    parts["xl/pivotCache/p.xml"] = cache.replace("<sharedItems>", f"<sharedItems>{shared}")
    return package("", parts, CACHES)


def _lying_pivot(_: float) -> bytes:
    parts = pivot_parts(source='ref="XFD1048576:A1" sheet="Nowhere" name="S"')
    for part in ("xl/pivot/t.xml", "xl/pivotCache/p.xml"):
        parts[part] = (
            parts[part]
            .replace('x="0"', 'x="999999999"')
            .replace('x="1"', 'x="-1"')
            .replace('fld="1"', 'fld="-77"')
            .replace("<sharedItems>", '<sharedItems count="999999999">')
        )
    return package("", parts, CACHES)


def _pivot_that_is_its_cache(_: float) -> bytes:
    parts = pivot_parts()
    links = (
        ("rId1", "worksheet", "worksheets/sheet1.xml"),
        ("rId2", "pivotCacheDefinition", "pivot/t.xml"),
    )
    return package("", parts | {LINKS: related(*links)}, CACHES)


def _many_pivots_of_one_cache(share: float) -> bytes:
    parts = pivot_parts()
    links = [(f"p{n}", "pivotTable", f"../pivot/t{n}.xml") for n in range(_part(400, share))]
    parts |= {f"xl/pivot/t{n}.xml": parts["xl/pivot/t.xml"] for n in range(_part(400, share))}
    return package("", parts | {SHEET_LINKS: related(*links)}, CACHES)


def _names(count: int, refers_to: str) -> bytes:
    one = f'<definedName name="N">{refers_to}</definedName>'
    return package("", None, f"<definedNames>{one * count}</definedNames>")


def _nested(tag: str, depth: int) -> str:
    return f"<{tag}>" * depth + f"</{tag}>" * depth


def _strings(items: str) -> bytes:
    links = related(
        ("rId1", "worksheet", "worksheets/sheet1.xml"), ("s", "sharedStrings", "sharedStrings.xml")
    )
    held = '<sheetData><row r="1"><c r="A1" t="s"><v>0</v></c></row></sheetData>'
    return package("", {LINKS: links, "xl/sharedStrings.xml": f"<sst>{items}</sst>"} | _sheet(held))


def _twice(part: str, text: str) -> bytes:
    buffer = io.BytesIO(package())
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(part, text)
    return buffer.getvalue()


def _bomb(share: float) -> bytes:
    return package("", _sheet("<sheetData>" + " " * _part(64 << 20, share) + "</sheetData>"))


def _cut(_: float) -> bytes:
    made = package('<autoFilter ref="A1:B9"/>')
    return made[: len(made) // 2]


LARGE: dict[str, tuple[Callable[[float], bytes], tuple[str, ...]]] = {
    # what it is -> how a share of it is made, and the rules that read it
    "a chart and its drawing in a loop": (_chart_loop, ("all",)),
    "relationships in a circle": (_relationship_cycle, ("all",)),
    "a pivot table that is its own cache": (_pivot_that_is_its_cache, ("all",)),
    "a pivot cache that lies": (_lying_pivot, ("all",)),
    "a sheet that is missing": (
        lambda _: package("", {LINKS: related(("rId1", "worksheet", "nowhere.xml"))}),
        ("all",),
    ),
    "half a file": (_cut, ("all",)),
    "a part twice": (lambda _: _twice(SHEET, "<worksheet/>"), ("all",)),
    "an entity bomb": (
        lambda _: package(
            "",
            {
                SHEET: '<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;&b;">]>'
                "<worksheet>&c;</worksheet>"
            },
        ),
        ("all",),
    ),
    "an external entity": (
        lambda _: package(
            "",
            {
                SHEET: '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>'
                "<worksheet>&b;</worksheet>"
            },
        ),
        ("all",),
    ),
    "links to files of the machine": (
        lambda _: package(
            '<hyperlinks><hyperlink ref="A1" r:id="x"/></hyperlinks>',
            {
                SHEET_LINKS: related(
                    ("x", "hyperlink", "file:///etc/passwd"),
                    ("d", "drawing", "../../../../../etc/passwd"),
                )
            },
        ),
        ("all",),
    ),
    "names that are each other": (
        lambda _: package(
            "",
            pivot_parts(source='name="N"'),
            CACHES + "<definedNames><definedName "
            'name="N">M!N</definedName><definedName name="M">N!M</definedName>'
            "</definedNames>",
        ),
        ("pivot_table",),
    ),
    "an attribute of five megabytes": (
        lambda share: package(f'<autoFilter ref="{"A1 " * _part(1_800_000, share)}"/>'),
        ("filter", "sheet_data"),
    ),
    "a deep sheet": (
        lambda share: package(_nested("a", _part(50_000, share))),
        ("filter", "sheet_data", "style"),
    ),
    "a deep chart": (
        lambda share: package("", chart(_nested("barChart", _part(50_000, share)))),
        ("chart",),
    ),
    "deep styles": (lambda share: _styled(_nested("styleSheet", _part(50_000, share))), ("style",)),
    "a bomb of blanks": (_bomb, ("sheet_data",)),
    "a million series": (
        lambda share: package(
            "", chart("<barChart>" + "<ser/>" * _part(1_000_000, share) + "</barChart>")
        ),
        ("chart",),
    ),
    "series of every cell": (
        lambda share: package("", chart(_series("S!$A$1:$XFD$1048576", _part(2000, share)))),
        ("chart",),
    ),
    "many series of many cells": (_many_series_of_many_cells, ("chart",)),
    "one chart in many places": (_many_drawings_of_one_chart, ("chart",)),
    "one sheet under many names": (_one_part_many_sheets, ("sheet_name", "chart")),
    "a reference of many areas": (
        lambda share: package(
            "", chart(_series("(" + "S!$A:$XFD," * _part(700, share) + "S!A1)", _part(300, share)))
        ),
        ("chart",),
    ),
    "a pivot of many fields": (
        lambda share: _pivot('<pivotField axis="axisRow"/>' * _part(200_000, share)),
        ("pivot_table",),
    ),
    "a pivot of many items": (
        lambda share: _pivot(
            "", '<item x="0"/>' * _part(150_000, share), '<s v="x"/>' * _part(150_000, share)
        ),
        ("pivot_table",),
    ),
    "many pivots of one cache": (_many_pivots_of_one_cache, ("pivot_table",)),
    "a million names": (
        lambda share: _names(_part(1_000_000, share), "S!A1"),
        ("pivot_table", "sheet_name"),
    ),
    "a million cell formats": (
        lambda share: _styled(
            "<styleSheet><cellXfs>" + "<xf/>" * _part(1_000_000, share) + "</cellXfs></styleSheet>",
            '<sheetData><row r="1"><c r="A1" s="999999"/></row></sheetData>',
        ),
        ("style",),
    ),
    "fonts without end": (
        lambda share: _styled(
            "<styleSheet><fonts>"
            + "<font><b/></font>" * _part(300_000, share)
            + "</fonts></styleSheet>"
        ),
        ("style",),
    ),
    "a hundred thousand merged ranges": (
        lambda share: package(
            "<mergeCells>"
            + f'<mergeCell ref="{EVERYWHERE}"/>' * _part(100_000, share)
            + "</mergeCells>"
        ),
        ("sheet_data", "style"),
    ),
    "a hundred thousand validations": (
        lambda share: package(
            "<dataValidations>" + '<dataValidation sqref="A1:A9 C1:C9" type="list">'
            "<formula1>1</formula1></dataValidation>" * 1 + "<dataValidation "
            'sqref="A1"/>' * _part(100_000, share) + "</dataValidations>"
        ),
        ("data_validation",),
    ),
    "a validation of many ranges": (
        lambda share: package(
            '<dataValidations><dataValidation sqref="'
            + " ".join(f"A{n}:B{n}" for n in range(1, _part(90_000, share), 2))
            + '"/></dataValidations>'
        ),
        ("data_validation",),
    ),
    "a filter of many values": (
        lambda share: package(
            '<autoFilter ref="A1:B9"><filterColumn colId="0"><filters>'
            + '<filter val="x"/>' * _part(200_000, share)
            + "</filters></filterColumn></autoFilter>"
        ),
        ("filter",),
    ),
    "sparklines without end": (
        lambda share: package(
            "<extLst><ext>"
            + "<sparkline><f>S!A1</f><sqref>B1</sqref></sparkline>" * _part(100_000, share)
            + "</ext></extLst>"
        ),
        ("sparkline",),
    ),
    "columns over columns": (
        lambda share: package(
            "",
            _sheet(
                "<cols>"
                + '<col min="1" max="16384" hidden="1"/>' * _part(3000, share)
                + "</cols><sheetData/>"
            ),
        ),
        ("col_props",),
    ),
    "a hundred thousand rows that say something": (
        lambda share: package(
            "",
            _sheet(
                "<sheetData>"
                + "".join(
                    f'<row r="{n}" hidden="1" ht="3"/>' for n in range(1, _part(100_000, share))
                )
                + "</sheetData>"
            ),
        ),
        ("row_props", "sheet_data"),
    ),
    "a text of many runs": (
        lambda share: _strings("<si>" + "<r><t>x</t></r>" * _part(200_000, share) + "</si>"),
        ("sheet_fuzzy", "sheet_data"),
    ),
    "a million shared strings": (
        lambda share: _strings("<si><t>x</t></si>" * _part(1_000_000, share)),
        ("sheet_data", "sheet_fuzzy"),
    ),
    "a condition of many words": (
        lambda _: package(
            '<conditionalFormatting sqref="A1:A500"><cfRule type="expression" '
            f'priority="1"><formula>{"1+" * 4000}1</formula></cfRule>'
            "</conditionalFormatting>" * 30
        ),
        ("style",),
    ),
    "conditions of every cell": (
        lambda share: package(
            (
                f'<conditionalFormatting sqref="{EVERYWHERE}"><cfRule type="cellIs" '
                'operator="equal" priority="1"><formula>1</formula></cfRule>'
                "</conditionalFormatting>"
            )
            * _part(3000, share)
        ),
        ("style",),
    ),
}
