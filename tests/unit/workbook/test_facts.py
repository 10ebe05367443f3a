"""Facts about packages, with workbooks made for them and with hostile ones."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from judge.cli.compare import facts
from judge.errors import WorkbookError
from judge.workbook.budget import ReadLimits
from judge.workbook.cell import CellRange
from judge.workbook.facts.book import BookFacts
from judge.workbook.facts.references import areas_of, read_reference
from judge.workbook.facts.render import facts_to_json, facts_to_lines
from judge.workbook.facts.sheets import Line, Pane, SheetFacts
from judge.workbook.package import Package
from judge.workbook.reader import Workbook, open_workbook
from tests.unit.compare.cells.packages import around, in_namespaces

CORPUS = Path(__file__).parents[2] / "workbook_rules" / "corpus"
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"


def first(name: str) -> SheetFacts:
    book = BookFacts(open_workbook(CORPUS / name))
    return book.sheet(book.tabs[0])


def related(*links: tuple[str, str, str]) -> str:
    inner = "".join(
        f'<Relationship Id="{key}" Type="{_REL}/{kind}" Target="{target}"/>'
        for key, kind, target in links
    )
    return f'<Relationships xmlns="{_PACKAGE}">{inner}</Relationships>'


def package(sheet: str = "", parts: dict[str, str] | None = None, workbook: str = "") -> bytes:
    """A workbook with one sheet; ``parts`` are added, or replace its own."""
    kinds = {"xl/workbook.xml": "workbook", "xl/worksheets/sheet1.xml": "worksheet"}
    kinds |= {
        f"xl/{kind}.xml": kind
        for kind in ("sharedStrings", "styles")
        if f"xl/{kind}.xml" in (parts or {})
    }
    written = {
        **around(kinds),
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_REL}"><sheets>'
        f'<sheet name="S" sheetId="1" r:id="rId1"/></sheets>{workbook}</workbook>',
        "xl/_rels/workbook.xml.rels": related(("rId1", "worksheet", "worksheets/sheet1.xml")),
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{_MAIN}" xmlns:r="{_REL}"><sheetData>'
        f'<row r="1"><c r="A1"><v>1</v></c></row></sheetData>{sheet}</worksheet>',
        **(parts or {}),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in written.items():
            archive.writestr(name, in_namespaces(text))
    return buffer.getvalue()


DRAWN = {
    "xl/worksheets/_rels/sheet1.xml.rels": related(("rId1", "drawing", "../drawings/d.xml")),
    "xl/drawings/d.xml": '<wsDr xmlns:r="r"><twoCellAnchor><from><col>1</col><row>2</row></from>'
    '<to><col>3</col><row>4</row></to><graphicFrame><chart r:id="rId1"/></graphicFrame>'
    "</twoCellAnchor></wsDr>",
    "xl/drawings/_rels/d.xml.rels": related(("rId1", "chart", "../charts/c.xml")),
}


def chart(inner: str) -> dict[str, str]:
    space = f"<chartSpace><chart><plotArea>{inner}</plotArea></chart></chartSpace>"
    return {**DRAWN, "xl/charts/c.xml": space}


def test_a_chart_with_its_series_titles_and_place() -> None:
    (found,) = first("ch_xt.xlsx").charts
    (plot,) = found.plots
    (series,) = plot.series
    assert (plot.kind, plot.direction, found.legend) == ("lineChart", None, "r")
    assert series.values is not None
    assert series.values.reference == "'Sheet1'!$B$2:$B$4"
    assert found.anchor is not None
    assert found.anchor.kind == "oneCell"
    assert [axis.title.text for axis in found.axes if axis.title] == ["X"]


def test_bars_have_a_direction_and_a_legend_may_be_missing() -> None:
    assert first("ch_bar.xlsx").charts[0].plots[0].kind == "barChart"
    assert first("ch_col.xlsx").charts[0].plots[0].direction == "col"
    assert first("ch_bar.xlsx").charts[0].plots[0].grouping == "clustered"
    assert first("ch_line_noleg.xlsx").charts[0].legend is None
    assert first("ch_line_t2.xlsx").charts[0].title != first("ch_line.xlsx").charts[0].title
    assert len(first("ch_two.xlsx").charts) == 2


def test_scatter_series_have_both_axes() -> None:
    first_pair, second_pair = (
        first(name).charts[0].plots[0].series[0] for name in ("ch_sc_B.xlsx", "ch_sc_C.xlsx")
    )
    assert first_pair.values != second_pair.values
    assert first_pair.categories is not None


def test_views_rows_and_columns() -> None:
    assert first("zoom260.xlsx").view.zoom == 260
    assert first("freeze_B2.xlsx").view.pane == Pane(True, 1, 1, "B2")
    scrolled = first("freeze_scrolled.xlsx").view.pane
    assert scrolled is not None
    assert (scrolled.columns, scrolled.rows) == (1, 1)
    assert [line for line in first("row_hidden.xlsx").rows if line.hidden] == [Line(3, 3, True)]
    assert any(line.hidden for line in first("col_hidden.xlsx").columns)
    assert first("merged.xlsx").merges == ("A1:B1",)


def test_rules_of_a_sheet() -> None:
    (rule,) = first("dv.xlsx").validations
    assert (rule.kind, rule.places, rule.formulas) == ("list", ("D2:D4",), ('"Pass,Fail,Held"',))
    assert len(first("dv_split.xlsx").validations[0].places) == 2
    (conditional,) = first("cf_cellis.xlsx").formats
    assert (conditional.kind, conditional.operator) == ("cellIs", "greaterThan")
    assert conditional.formulas == ("1",)
    assert dict(conditional.look)["fill"]
    (scale,) = first("cf_scale.xlsx").formats
    assert ("color", "rgb=FFFF0000") in scale.attributes
    assert first("hyper.xlsx").links[0].target.startswith("http")
    assert {each.place for each in first("sp.xlsx").sparklines} >= {"F2"}


def test_filters() -> None:
    values = first("flt_vals.xlsx").filter
    assert values is not None
    assert values.columns[0].kind == "filters"
    top = first("flt_top.xlsx").filter
    assert top is not None
    assert top.columns[0].kind == "top10"
    assert dict(top.columns[0].terms)["val"].startswith("1")
    custom = first("flt_custom.xlsx").filter
    assert custom is not None
    assert custom.columns[0].values[0][0] == "greaterThan"


def test_a_validation_of_the_extension_part() -> None:
    sheet = (
        '<extLst><ext><x:dataValidations xmlns:x="http://schemas.microsoft.com/office/'
        'spreadsheetml/2009/9/main" xmlns:m="http://schemas.microsoft.com/office/excel/2006/main">'
        '<x:dataValidation type="list">'
        "<x:formula1><m:f>Other!$A$1:$A$3</m:f></x:formula1><m:sqref>B2:B9</m:sqref>"
        "</x:dataValidation></x:dataValidations></ext></extLst>"
    )
    book = BookFacts(open_workbook(package(sheet)))
    (rule,) = book.sheet(book.tabs[0]).validations
    assert rule.extension
    assert (rule.places, rule.formulas) == (("B2:B9",), ("Other!$A$1:$A$3",))


def test_references_are_read_from_the_cells() -> None:
    book = open_workbook(CORPUS / "base.xlsx")
    assert read_reference(book, "'Sheet1'!$B$2:$B$4") == (1, 2, 3)
    assert areas_of("('A''b'!$A$1,C!$B:$B)") == (
        CellRange("A'b", 1, 1, 1, 1),
        CellRange("C", 1, 2, 1_048_576, 2),
    )
    assert areas_of("OFFSET(Sheet1!A1,1,1)") is None
    assert read_reference(book, "Nowhere!$A$1") is None
    everything = read_reference(book, "Sheet1!$A$1:$XFD$1048576")
    assert everything is not None
    assert len(everything) < 100


def pivot_parts(
    location: str = 'ref="A3:B6"', *, source: str = 'ref="A1:B9" sheet="S"'
) -> dict[str, str]:
    return {
        "xl/_rels/workbook.xml.rels": related(
            ("rId1", "worksheet", "worksheets/sheet1.xml"),
            ("rId2", "pivotCacheDefinition", "pivotCache/p.xml"),
        ),
        "xl/worksheets/_rels/sheet1.xml.rels": related(("rId1", "pivotTable", "../pivot/t.xml")),
        "xl/pivot/t.xml": f'<pivotTableDefinition name="P" cacheId="7"><location {location}/>'
        '<pivotFields><pivotField axis="axisRow"><items><item x="0"/><item h="1" x="1"/>'
        '<item t="default"/></items></pivotField><pivotField dataField="1"/></pivotFields>'
        '<rowFields><field x="0"/></rowFields><colFields><field x="-2"/></colFields>'
        '<dataFields><dataField name="Mean" fld="1" subtotal="average"/></dataFields>'
        "</pivotTableDefinition>",
        "xl/pivotCache/p.xml": f'<pivotCacheDefinition><cacheSource type="worksheet">'
        f'<worksheetSource {source}/></cacheSource><cacheFields><cacheField name="Town">'
        '<sharedItems><s v="Ulm"/><s v="Hof"/></sharedItems></cacheField>'
        '<cacheField name="Sum"/></cacheFields></pivotCacheDefinition>',
    }


CACHES = '<pivotCaches><pivotCache cacheId="7" r:id="rId2"/></pivotCaches>'


def test_a_pivot_table_by_names() -> None:
    book = BookFacts(open_workbook(package("", pivot_parts(), CACHES)))
    (pivot,) = book.pivots(book.tabs[0])
    assert pivot.names_of(pivot.rows) == ("Town",)
    assert pivot.names_of(pivot.columns) == ("Values",)
    assert [(each.value, each.hidden) for each in pivot.fields[0].items] == [
        ("Ulm", None),
        ("Hof", True),
        (None, None),
    ]
    assert (pivot.data[0].function, pivot.data[0].column) == ("average", "Sum")
    assert (pivot.source_sheet, pivot.source_range) == ("S", "A1:B9")
    assert any("average of Sum" in line for line in facts_to_lines(book))


def test_names_and_the_state_of_sheets() -> None:
    names = (
        '<definedNames><definedName name="N" localSheetId="0">S!$A$1</definedName></definedNames>'
    )
    book = BookFacts(open_workbook(package("", None, names)))
    assert [(each.name, each.refers_to, each.sheet) for each in book.names] == [
        ("N", "S!$A$1", "S")
    ]
    assert book.sheet(book.tabs[0]).state == "visible"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(chart("<barChart><ser>" * 300), id="nested"),
        pytest.param(chart(""), id="empty"),
        pytest.param({**DRAWN, "xl/charts/c.xml": "<chartSpace/>"}, id="no chart"),
        pytest.param({**DRAWN, "xl/charts/c.xml": "<"}, id="not XML"),
        pytest.param(
            {**DRAWN, "xl/charts/c.xml": '<!DOCTYPE a [<!ENTITY b "c">]><a/>'}, id="entities"
        ),
        pytest.param(
            {**DRAWN, "xl/drawings/_rels/d.xml.rels": related(("rId1", "chart", "d.xml"))},
            id="a drawing as its own chart",
        ),
        pytest.param(
            chart(
                '<pieChart><ser><val><numRef><numCache><ptCount val="999999999"/>'
                '<pt idx="999999999"><v>1</v></pt></numCache></numRef></val></ser></pieChart>'
            ),
            id="lying counts",
        ),
        pytest.param(
            chart("<lineChart><ser><val><numRef><f>S!$A:$XFD</f></numRef></val></ser></lineChart>"),
            id="refers to everything",
        ),
        pytest.param({**DRAWN, "xl/drawings/d.xml": "<wsDr>" + "<oneCellAnchor/>" * 9}, id="cut"),
        pytest.param(
            {
                "xl/worksheets/_rels/sheet1.xml.rels": related(
                    ("a", "drawing", "sheet1.xml"),
                    ("b", "pivotTable", "sheet1.xml"),
                    ("c", "table", "sheet1.xml"),
                    ("d", "drawing", "../../../../etc/passwd"),
                )
            },
            id="relationship cycles",
        ),
    ],
)
def test_hostile_charts_leave_the_rest_readable(parts: dict[str, str]) -> None:
    book = BookFacts(open_workbook(package("", parts)))
    said = facts_to_json(book)
    assert [each["name"] for each in said["sheets"]] == ["S"]
    assert len(json.dumps(said)) < 2_000_000


@pytest.mark.parametrize(
    "changed",
    [
        {"xl/pivotCache/p.xml": "<pivotCacheDefinition/>"},
        {"xl/pivotCache/p.xml": "<a><cacheSource/><cacheFields>" + "<cacheField/>" * 9},
        {"xl/pivot/t.xml": '<pivotTableDefinition cacheId="9"/>'},
        {
            "xl/pivot/t.xml": '<x cacheId="7"><pivotFields><pivotField><items>'
            '<item x="999999999"/><item x="-5"/></items></pivotField></pivotFields>'
            '<dataFields><dataField fld="-3"/></dataFields><rowFields><field x="77"/></rowFields>'
            "</x>"
        },
    ],
)
def test_false_pivot_caches(changed: dict[str, str]) -> None:
    book = BookFacts(open_workbook(package("", {**pivot_parts(), **changed}, CACHES)))
    sheet = book.sheet(book.tabs[0])
    assert len(sheet.pivots) + len(sheet.problems) == 1
    assert list(facts_to_lines(book))


def test_too_much_is_refused_and_not_kept() -> None:
    parts = chart("<barChart>" + "<ser/>" * 2000 + "</barChart>")
    book = BookFacts(Workbook(package("", parts), ReadLimits(cells=1500)))
    with pytest.raises(WorkbookError, match="1,500 cells"):
        book.sheet(book.tabs[0])
    rules = "<conditionalFormatting/>" * 3000
    crowded = BookFacts(Workbook(package(rules), ReadLimits(cells=1500)))
    with pytest.raises(WorkbookError, match="1,500 cells"):
        crowded.sheet(crowded.tabs[0])


def test_the_command(tmp_path: Path) -> None:
    run = CliRunner().invoke(facts, [str(CORPUS / "ch_line.xlsx")])
    assert run.exit_code == 0
    assert "lineChart" in run.stdout
    run = CliRunner().invoke(facts, [str(CORPUS / "ch_line.xlsx"), "--json"])
    series = json.loads(run.stdout)["sheets"][0]["charts"][0]["plots"][0]["series"][0]
    assert series["values"]["values"] == [1, 2, 3]
    broken = tmp_path / "broken.xlsx"
    broken.write_bytes(b"no workbook")
    run = CliRunner().invoke(facts, [str(broken)])
    assert isinstance(run.exception, WorkbookError)
    assert str(broken) in run.exception.message


def test_the_facts_of_a_sheet_are_read_in_one_pass_over_its_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passes: list[str] = []
    inflated = Package.chunks

    def counted(archive: Package, name: str) -> Iterator[bytes]:
        passes.append(name)
        return inflated(archive, name)

    monkeypatch.setattr(Package, "chunks", counted)
    rows = "".join(f'<row r="{row}" hidden="1"/>' for row in range(1, 2001))
    merges = '<mergeCells><mergeCell ref="A1:B2"/></mergeCells>'
    sheet_xml = f'<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData>{merges}</worksheet>'
    data = package(parts={"xl/worksheets/sheet1.xml": sheet_xml})
    book = BookFacts(open_workbook(data))
    (tab,) = book.tabs
    sheet = book.sheet(tab)
    line, *others = sheet.rows
    assert (line, len(others), sheet.merges) == (Line(1, 1, True), 1999, ("A1:B2",))
    assert passes.count(tab.part) == 1
    # Whoever asked for one of the two before gets the same.
    for first in (BookFacts.tree, BookFacts.row_attributes):
        again = BookFacts(open_workbook(data))
        first(again, tab)
        assert again.sheet(tab) == sheet
