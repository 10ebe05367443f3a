"""Each fault of the published evaluators: their verdict, and the judge's own.

The numbers are those of the calls that showed a fault; ``docs/rules.md`` lists the same faults, and
those without a number in the words that are their names here.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.unit.compare.rules.judged import CORPUS, DATA, PAIR, outcome
from tests.unit.compare.rules.made import (
    anchored,
    charted,
    filtered,
    grid,
    linked_title,
    pivots,
    strings,
    validated,
    with_chart_sheet,
)
from tests.unit.workbook.test_facts import package

DOCUMENT = Path(__file__).parents[4] / "docs" / "rules.md"

EQUAL, DIFFERENT, RAISES, BAD = "equal", "different", "raises", "bad test"
BOTH, S, OSW = ("spider2v", "osworld"), ("spider2v",), ("osworld",)
Workbook = str | bytes | None


def style(*props: str) -> dict[str, Any]:
    return {"type": "style", **PAIR, "props": list(props)}


def chart(*props: str, **more: Any) -> dict[str, Any]:
    return {"type": "chart", **PAIR, "chart_props": list(props), **more}


def fuzzy(cells: str, kind: str = "exact_match", **more: Any) -> dict[str, Any]:
    rules = [{"range": [cells], "type": kind}]
    return {"type": "sheet_fuzzy", **PAIR, "rules": rules, **more}


def cell(place: str, name: str, method: str, ref: Any, sheet: Any = 0) -> dict[str, Any]:
    props = {name: {"method": method, "ref": ref}}
    return {"type": "check_cell", "sheet_idx": sheet, "coordinate": place, "props": props}


def kind(name: str, **more: Any) -> dict[str, Any]:
    return {"type": name, **PAIR, **more}


def entry(places: list[str], *items: str) -> dict[str, Any]:
    return {
        "ranges": {"method": "spreadsheet_range", "ref": places},
        "formula1": {"method": "str_set_eq", "ref": list(items)},
    }


LISTED = entry(["D2:D4", "D1:D1048576"], "Pass", "Fail", "Held")
OTHER = entry(["E2:E4", "E1:E1048576"], "x", "y")
NOWHERE = {"sheet_idx0": "RNNone", "sheet_idx1": "EI0"}
SECOND = {"sheet_idx0": "RNSheet2", "sheet_idx1": "ENSheet2"}


def validation(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"type": "data_validation", "sheet_idx": 0, "dv_props": list(entries)}


Rules = dict[str, Any] | list[dict[str, Any]]
FAULTS: list[tuple[str, Rules, Workbook, Workbook, tuple[str, ...], str, str]] = [
    # which, rule, output, gold, evaluators, published, the judge's own
    # -- sheets
    ("37", kind("sheet_data", sheet_idx1=0), "val5.xlsx", "base.xlsx", BOTH, EQUAL, BAD),
    ("42", kind("sheet_data", **SECOND), "two.xlsx", "base.xlsx", BOTH, BAD, BAD),
    ("45", kind("sheet_data", sheet_idx0="XX0"), "base.xlsx", "base.xlsx", BOTH, BAD, BAD),
    ("50", DATA, "base.xlsx", "broken.xlsx", BOTH, BAD, BAD),
    ("54", [DATA, {"type": "nope"}], "val5.xlsx", "base.xlsx", BOTH, DIFFERENT, BAD),
    ("124", chart("type", **NOWHERE), "base.xlsx", "base.xlsx", BOTH, EQUAL, DIFFERENT),
    ("124 style", kind("style", **NOWHERE), "base.xlsx", "empty.xlsx", BOTH, EQUAL, DIFFERENT),
    ("124 pivot_table", kind("pivot_table", **NOWHERE), "base.xlsx", "base.xlsx", BOTH, EQUAL,
     DIFFERENT),
    ("124 col_props", kind("col_props", **NOWHERE), "base.xlsx", "base.xlsx", BOTH, EQUAL,
     DIFFERENT),
    ("124 in the gold", chart(sheet_idx1="ENNone"), "base.xlsx", "base.xlsx", BOTH, EQUAL, BAD),
    ("92", fuzzy("A1", **NOWHERE), "base.xlsx", "base.xlsx", S, RAISES, DIFFERENT),
    ("92 check_cell", cell("A1", "value", "eq", 1, "RNNone"), "base.xlsx", None, S, DIFFERENT,
     DIFFERENT),
    ("102", kind("sparkline", **NOWHERE), "renamed.xlsx", "sp.xlsx", BOTH, RAISES, DIFFERENT),
    ("161", kind("freeze", **SECOND), "two.xlsx", "base.xlsx", BOTH, BAD, BAD),
    ("chart sheets", kind("sheet_name"), with_chart_sheet("C"), with_chart_sheet("D"), BOTH, EQUAL,
     DIFFERENT),
    # -- values
    ("10", DATA, "float_dtype.xlsx", "base.xlsx", BOTH, DIFFERENT, EQUAL),
    ("11", DATA, "text_num.xlsx", "base.xlsx", BOTH, EQUAL, DIFFERENT),
    ("20", DATA, "bool.xlsx", "base.xlsx", BOTH, EQUAL, DIFFERENT),
    ("29", DATA, "na_text.xlsx", "na_blank.xlsx", BOTH, EQUAL, DIFFERENT),
    ("30", DATA, "err.xlsx", "blankB2.xlsx", BOTH, EQUAL, DIFFERENT),
    ("32", DATA, "header_text.xlsx", "header_num.xlsx", BOTH, DIFFERENT, DIFFERENT),
    ("33", DATA, "mixed_gold.xlsx", "mixed_exact.xlsx", BOTH, DIFFERENT, EQUAL),
    ("62", kind("sheet_print", sheet_idx0="RNSheet1", sheet_idx1="ENSheet1"), "base.xlsx",
     "round_in.xlsx", BOTH, DIFFERENT, BAD),
    ("63", kind("sheet_print", ignore_case=True), "base.xlsx", "round_in.xlsx", BOTH, DIFFERENT,
     BAD),
    # -- texts
    ("66", fuzzy("A2:A3"), "addr3.xlsx", "addr1.xlsx", S, EQUAL, DIFFERENT),
    ("85", fuzzy("C1"), grid([["a", 1, "None"]]), grid([["a", 1]]), OSW, EQUAL, DIFFERENT),
    ("87", fuzzy("B1"), grid([["a", "1.0"]]), grid([["a", 1]]), OSW, EQUAL, DIFFERENT),
    ("88", fuzzy("A1"), grid([[True]]), grid([[False]]), BOTH, EQUAL, DIFFERENT),
    ("93", [DATA, fuzzy("A1", "nope")], "base.xlsx", "base.xlsx", BOTH, EQUAL, BAD),
    ("91", fuzzy("A1", **SECOND), "sheetid.xlsx", "two.xlsx", S, RAISES, EQUAL),
    ("91 OSWorld", fuzzy("A1", **SECOND), "sheetid.xlsx", "two.xlsx", OSW, DIFFERENT, EQUAL),
    ("233", cell("A1", "value", "eq", "Name", "RNSheet2"), "sheetid.xlsx", None, OSW, DIFFERENT,
     EQUAL),
    ("234", cell("A1", "value", "eq", "Name", "RNSheet2"), "sheetid_swap.xlsx", None, S, DIFFERENT,
     EQUAL),
    ("rich inline strings", fuzzy("A1"), strings("<is><r><t>x</t></r></is>"),
     strings("<is><r><t>y</t></r></is>"), OSW, EQUAL, DIFFERENT),
    ("phonetics", fuzzy("A1"), strings(shared="<si><t>Ulm</t></si>"),
     strings(shared="<si><t>Ulm</t><rPh sb='0' eb='1'><t>uru</t></rPh></si>"), BOTH, DIFFERENT,
     EQUAL),
    ("empty shared string", fuzzy("A1"), strings(shared="<si><t>x</t></si><si><t/></si>"),
     strings(shared="<si><t>y</t></si>"), BOTH, RAISES, DIFFERENT),
    ("empty shared string, OSWorld's check_cell", cell("A1", "value", "eq", "x"),
     strings(shared="<si><t>x</t></si><si><t/></si>"), None, OSW, DIFFERENT, EQUAL),
    ("218", cell("Z9", "value", "re", "x"), "base.xlsx", None, S, RAISES, DIFFERENT),
    ("219", cell("A2", "value", "re", "^a$"), "base.xlsx", None, S, RAISES, EQUAL),
    ("221", cell("B2", "value", "eq", True), "rich.xlsx", None, BOTH, DIFFERENT, EQUAL),
    ("222", cell("C3", "value", "eq", "#DIV/0!"), "rich.xlsx", None, S, DIFFERENT, EQUAL),
    ("231", cell("B2", "nope", "eq", 1), "base.xlsx", None, OSW, DIFFERENT, BAD),
    # -- objects
    ("96", kind("sparkline"), "sp_col.xlsx", "sp.xlsx", BOTH, EQUAL, DIFFERENT),
    ("113", chart("direction"), "ch_line.xlsx", "ch_line.xlsx", BOTH, RAISES, EQUAL),
    ("115", chart("anchor"), "ch_line_G9.xlsx", "ch_line.xlsx", BOTH, RAISES, DIFFERENT),
    ("row of an anchor", chart("anchor"), anchored((1, 2), (8, 20)), anchored((1, 5), (8, 20)),
     BOTH, EQUAL, DIFFERENT),
    ("117", chart("width", "height"), anchored((1, 2), (8, 20)), anchored((1, 2), (9, 30)), BOTH,
     EQUAL, DIFFERENT),
    ("117 another anchor", chart("width", "height"), anchored((1, 2), (8, 22)),
     anchored((5, 5), extent=(7 * 609600, 20 * 190500)), BOTH, EQUAL, EQUAL),
    ("120", chart("type"), "ch_sc_C.xlsx", "ch_sc_B.xlsx", BOTH, EQUAL, DIFFERENT),
    ("121", chart("type"), "ch_two.xlsx", "ch_line.xlsx", BOTH, EQUAL, DIFFERENT),
    ("combined charts", chart("type"), charted("barChart S!$A$1", "lineChart S!$A$2"),
     charted("barChart S!$A$1", "lineChart S!$A$3"), BOTH, EQUAL, DIFFERENT),
    ("first run of a title", chart("title"), charted("barChart S!$A$1", title="Sales|of June"),
     charted("barChart S!$A$1", title="Sales|of May"), BOTH, EQUAL, DIFFERENT),
    ("dropped charts", chart("type"), charted("barChart S!$A$1", cached="2003-01-01"),
     charted("barChart S!$A$1", cached="37622"), BOTH, DIFFERENT, EQUAL),
    ("linked title", chart("title"), linked_title("North"), linked_title("South"), BOTH, EQUAL,
     DIFFERENT),
    ("pivot charts", chart("type"), charted("barChart 0", categories="categories"),
     charted("barChart pt@data 0", categories="pt@categories"), BOTH, DIFFERENT, EQUAL),
    ("equal pivot keys", kind("pivot_table", pivot_props=["row_fields"]), pivots(2), pivots(1),
     BOTH, EQUAL, DIFFERENT),
    ("pivot of a table", kind("pivot_table"), pivots(1, 'name="T"'), pivots(1, 'name="T"'), BOTH,
     RAISES, EQUAL),
    ("pivot of a table in the output", kind("pivot_table"), pivots(1, 'name="T"'),
     pivots(1, 'ref="A1:B9" sheet="S"'), BOTH, RAISES, EQUAL),
    # -- looks
    ("126", style("bgcolor"), "fill_blue.xlsx", "fill_red.xlsx", S, EQUAL, DIFFERENT),
    ("129", style("bgcolor", "fill_type"), "base.xlsx", "fill_red.xlsx", S, EQUAL, DIFFERENT),
    ("132", style("font_color"), "font_theme5.xlsx", "font_theme1.xlsx", BOTH, EQUAL, DIFFERENT),
    ("133", style("font_color"), "font_nocolor.xlsx", "base.xlsx", BOTH, RAISES, EQUAL),
    ("137", style("number_format"), "numfmt_blank.xlsx", "base.xlsx", BOTH, DIFFERENT, EQUAL),
    ("138", style("number_format"), "styled_blank.xlsx", "base.xlsx", BOTH, DIFFERENT, EQUAL),
    ("139", style("hyperlink"), "hyper.xlsx", "hyper2.xlsx", BOTH, EQUAL, DIFFERENT),
    ("141", style("merge"), "merged.xlsx", "merged.xlsx", S, BAD, EQUAL),
    ("143", style("bgcolor", "font_color"), "cf_cellis.xlsx", "base.xlsx", S, RAISES, DIFFERENT),
    ("146", style("bgcolor"), "cf_cellis_ref.xlsx", "base.xlsx", OSW, RAISES, DIFFERENT),
    ("148", style("bgcolor"), "cf_expr_abs.xlsx", "base.xlsx", BOTH, RAISES, DIFFERENT),
    ("151", style("bgcolor"), "cf_top.xlsx", "base.xlsx", OSW, EQUAL, DIFFERENT),
    ("152", style("bgcolor"), "cf_scale.xlsx", "base.xlsx", OSW, EQUAL, DIFFERENT),
    ("153", style("font_color"), "cf_nofont.xlsx", "base.xlsx", OSW, RAISES, EQUAL),
    # -- views, rows, columns, filters, validations
    ("160", kind("freeze"), "freeze_scrolled.xlsx", "freeze_B2.xlsx", S, DIFFERENT, EQUAL),
    ("175", validation(LISTED), "dv_space.xlsx", None, BOTH, DIFFERENT, EQUAL),
    ("177", validation(LISTED), "dv_split.xlsx", None, BOTH, DIFFERENT, EQUAL),
    ("178", validation(LISTED), "dv_two.xlsx", None, BOTH, DIFFERENT, EQUAL),
    ("178 on the same cells", validation(LISTED), "dv_twice.xlsx", None, BOTH, EQUAL, DIFFERENT),
    ("181", validation(LISTED), "dv_none_formula.xlsx", None, BOTH, RAISES, DIFFERENT),
    ("184", validation(LISTED, OTHER), "dv_twice.xlsx", None, BOTH, EQUAL, DIFFERENT),
    ("184 both met", validation(LISTED, OTHER), "dv_two.xlsx", None, BOTH, EQUAL, EQUAL),
    ("186 none asked for", validation(), "dv.xlsx", None, BOTH, DIFFERENT, DIFFERENT),
    ("validations of the extension part", validation(LISTED), validated("D2:D4"), None, BOTH,
     DIFFERENT, EQUAL),
    ("191", kind("row_props", props=["hidden"]), "row_hidden_h.xlsx", "row_hidden.xlsx", BOTH,
     DIFFERENT, EQUAL),
    ("199", kind("col_props", props=["hidden"]), "col_width.xlsx", "base.xlsx", BOTH, DIFFERENT,
     EQUAL),
    ("grouped columns", kind("col_props", props=["hidden", "min", "max"]),
     package("", {"xl/worksheets/sheet1.xml": '<worksheet><cols><col min="2" max="2" hidden="1"/>'
                  '<col min="3" max="3" hidden="1"/></cols><sheetData/></worksheet>'}),
     package("", {"xl/worksheets/sheet1.xml": '<worksheet><cols><col min="2" max="3" hidden="1"/>'
                  '</cols><sheetData/></worksheet>'}), BOTH, DIFFERENT, EQUAL),
    ("filter by top ten", kind("filter"), filtered('<top10 val="3"/>'),
     filtered('<top10 val="9"/>'), BOTH, EQUAL, DIFFERENT),
    ("filter by a moving date", kind("filter"), filtered('<dynamicFilter type="today"/>'),
     filtered('<dynamicFilter type="lastYear"/>'), BOTH, EQUAL, DIFFERENT),
    ("filter by colour", kind("filter"), filtered('<colorFilter dxfId="0"/>'), filtered(""), BOTH,
     EQUAL, DIFFERENT),
    ("filter by icon", kind("filter"), filtered('<iconFilter iconSet="3Arrows" iconId="0"/>'),
     filtered('<iconFilter iconSet="3Arrows" iconId="1"/>'), BOTH, EQUAL, DIFFERENT),
    ("filter by parts of dates", kind("filter"),
     filtered('<filters><dateGroupItem year="2023" dateTimeGrouping="year"/></filters>'),
     filtered('<filters><dateGroupItem year="2024" dateTimeGrouping="year"/></filters>'), BOTH,
     EQUAL, DIFFERENT),
]  # fmt: skip
ENGINES = {"16", "31", "150", "51 blank cells"}
"""Faults that only formulas show; see ``test_with_engines.py``."""


@pytest.mark.parametrize(
    ("rule", "output", "gold", "evaluator", "published", "right"),
    [
        pytest.param(*fault[1:4], evaluator, *fault[5:], id=f"{fault[0]} {evaluator}")
        for fault in FAULTS
        for evaluator in fault[4]
    ],
)
def test_a_published_fault(
    rule: Rules,
    output: Workbook,
    gold: Workbook,
    evaluator: str,
    published: str,
    right: str,
    tmp_path: Path,
) -> None:
    if isinstance(gold, bytes):
        path = tmp_path / "gold.xlsx"
        path.write_bytes(gold)
        gold = str(path)
    rules = rule if isinstance(rule, list) else [rule]
    assert outcome(rules, output, gold, evaluator=evaluator, profile="official") == published
    assert outcome(rules, output, gold, evaluator=evaluator) == right


def test_the_document_lists_the_same_faults() -> None:
    section = DOCUMENT.read_text().partition("### Faults, one by one")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| (?:#(\d+)|([^|#]+?)) \|", section, re.MULTILINE)
    named = {number or words for number, words in listed} - {"fault"}
    numbers = {str(fault[0].split()[0]) for fault in FAULTS if fault[0][0].isdigit()}
    words = {fault[0].partition(",")[0] for fault in FAULTS if not fault[0][0].isdigit()}
    assert named == numbers | words | ENGINES
    assert CORPUS.is_dir()
