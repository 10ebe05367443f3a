"""Hostile outputs: a verdict each, within the limits of the reader, and never a judge error."""

from __future__ import annotations

from typing import Any

import pytest

from judge.checkers.contract import AnswerFaultError, Rules
from judge.checkers.registry import checker_of
from judge.comparison.computing import NoEngines
from judge.comparison.profiles import get_profile
from judge.core.answer import Answer, Origin
from judge.core.task import CheckerSpec, Gold, Task, TestCase
from tests.unit.rules.judged import CORPUS
from tests.unit.workbook.test_facts import CACHES, DRAWN, chart, package, pivot_parts

PAIR = {"sheet_idx0": 0, "sheet_idx1": "EI0"}
FONTS = ["bgcolor", "font_color", "font_bold", "number_format", "hyperlink"]
RULES: list[dict[str, Any]] = [
    {"type": "sheet_data", **PAIR},
    {"type": "sheet_fuzzy", **PAIR, "rules": [{"range": "A1:C3", "type": "fuzzy_match"}]},
    {"type": "sparkline", **PAIR},
    {"type": "chart", **PAIR, "chart_props": ["type", "title", "legend", "xtitle", "anchor"]},
    {"type": "style", **PAIR, "props": FONTS},
    {"type": "freeze", **PAIR},
    {"type": "zoom", "sheet_idx": 0, "method": "eq", "ref": 100},
    {
        "type": "data_validation",
        "sheet_idx": 0,
        "dv_props": [{"ranges": {"method": "spreadsheet_range", "ref": ["A1", "A:C"]}}],
    },
    {"type": "row_props", **PAIR, "props": ["hidden", "height"]},
    {"type": "col_props", **PAIR, "props": ["hidden", "width", "min"]},
    {"type": "filter", **PAIR},
    {"type": "pivot_table", **PAIR, "pivot_props": ["filter", "row_fields", "data_fields"]},
    {
        "type": "check_cell",
        "sheet_idx": 0,
        "coordinate": "A1",
        "props": {"value": {"method": "re", "ref": "x"}, "font_color": {"method": "eq", "ref": 1}},
    },
]
EVERYWHERE = "A1:XFD1048576"
HOSTILE = {
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
    "many series": package("", chart("<barChart>" + "<ser><val/></ser>" * 20_000 + "</barChart>")),
    "many charts": package("", DRAWN | {
        "xl/drawings/d.xml": '<wsDr xmlns:r="r">' + '<oneCellAnchor><graphicFrame><graphic>'
        '<graphicData><chart r:id="rId1"/></graphicData></graphic></graphicFrame>'
        "</oneCellAnchor>" * 3000 + "</wsDr>",
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


@pytest.mark.parametrize("name", HOSTILE)
def test_a_verdict_each(name: str) -> None:
    golds = (Gold(CORPUS / "base.xlsx"),)
    answer = Answer.of_workbook(HOSTILE[name], Origin.SOLUTION)
    for profile in ("official", "standard"):
        for evaluator in ("spider2v", "osworld"):
            for rule in RULES:
                spec = CheckerSpec("rules", {"rules": [rule], "evaluator": evaluator})
                task = Task("1", "?", "?", (TestCase(1, (), golds),), spec)
                rules = Rules(get_profile(profile))
                try:
                    found = checker_of(spec).check(
                        task, task.cases[0], golds, answer, NoEngines(), rules
                    )
                except AnswerFaultError:
                    continue
                assert found.agrees in {True, False}
