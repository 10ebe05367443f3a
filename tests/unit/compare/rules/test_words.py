"""Rules as sentences."""

from __future__ import annotations

from typing import Any

import pytest

from judge.compare.published.spider2v.compare_table import RULE_TYPES
from judge.compare.rules.words import LONGEST, rule_in_words

PAIR = {"sheet_idx0": 0, "sheet_idx1": "EI0"}
SENTENCES: list[tuple[dict[str, Any], str]] = [
    (
        {"type": "sheet_name"},
        "The sheets have the names of the gold's sheets, in the same order.",
    ),
    (
        {"type": "sheet_data", **PAIR, "precision": 1},
        ("All values of the first sheet are those of the gold's first sheet; numbers are compared "
        "to 1 decimal."),
    ),
    (
        {"type": "sheet_print", "sheet_idx0": "RNA", "sheet_idx1": "ENB", "ignore_case": True},
        ("As text, sheet “A” has the lines of the gold's sheet “B”, apart from white space around "
        "them; upper and lower case are alike."),
    ),
    (
        {
            "type": "sheet_fuzzy", **PAIR,
            "rules": [
                {"range": ["A1:B2", "D4"], "type": "fuzzy_match", "threshold": 90},
                {
                    "range": "C1", "type": "includes", "normalization": [["\u00a0", " "]],
                    "trim_leadings": " ", "trim_trailings": ".", "ignore_chars": "-",
                    "ignore_case": True,
                },
            ],
        },
        ("The first sheet shows text like that of the gold's first sheet: cells A1:B2 and D4 "
            "resemble the expected text (by at least 90 of 100) and cells C1 contain the expected "
        "text (with “\u00a0” as “ ”, without any of “ ” in front, without any of “.” at the end, "
        "without the characters “-”, upper and lower case alike)."),
    ),
    (
        {"type": "sparkline", **PAIR},
        "The first sheet has the sparklines of the gold's first sheet: kind, cell and data.",
    ),
    (
        {"type": "chart", "sheet_idx0": -1, "sheet_idx1": 1, "chart_props": ["type", "xtitle"]},
        ("The last sheet has the charts of the output's second sheet, with the same data, kind and "
        "title of the x axis."),
    ),
    (
        {"type": "pivot_table", **PAIR, "pivot_props": ["row_fields", "nonsense"]},
        ("The first sheet has the pivot tables of the gold's first sheet, with the same source, "
        "row fields and “nonsense”."),
    ),
    (
        {"type": "style", **PAIR, "props": ["bgcolor", "fgcolor", "font_bold"]},
        ("The cells of the first sheet look like those of the gold's first sheet: fill colour and "
        "bold; conditional formats count."),
    ),
    (
        {"type": "freeze", "sheet_idx0": "RI11", "sheet_idx1": "EI-2"},
        "The 12th sheet has the frozen rows and columns of the gold's second sheet from the end.",
    ),
    (
        {"type": "zoom", "sheet_idx": 0, "method": "range.te", "ref": [100, 200]},
        "The zoom of the first sheet, in percent, is more than 100 and at most 200.",
    ),
    (
        {
            "type": "data_validation", "sheet_idx": 0,
            "dv_props": [
                {
                    "ranges": {"method": "spreadsheet_range", "ref": ["D2:D4", "D1:D9"]},
                    "type": {"method": "eq", "ref": "list"},
                },
                {"formula1": {"method": "str_set_eq", "ref": ["Pass", "Fail"]}},
            ],
        },
        ("The first sheet has exactly 2 data validations: cells hold D2:D4 and lie within D1:D9 "
        "and kind is “list”; formula lists “Pass” and “Fail”, in any order."),
    ),
    (
        {"type": "row_props", **PAIR, "props": ["hidden"]},
        "The rows of the first sheet are like those of the gold's first sheet: hidden or not.",
    ),
    (
        {"type": "col_props", **PAIR, "props": ["width"]},
        "The columns of the first sheet are like those of the gold's first sheet: width.",
    ),
    (
        {"type": "filter", **PAIR},
        ("The first sheet is filtered and sorted like the gold's first sheet: range, conditions "
        "and order."),
    ),
    (
        {
            "type": "check_cell", "sheet_idx": 0, "coordinate": "B2",
            "props": {
                "value": {"method": "approx:0.1", "ref": 3},
                "font_name": {"method": "re.I", "ref": "arial"},
                "font_bold": {"method": "eq", "ref": True},
            },
        },
        ("Cell B2 of the first sheet: value is 3 to within 0.1, font matches the regular "
        "expression “arial” (upper and lower case alike) and bold is true."),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "sentence"), SENTENCES)
def test_sentences(rule: dict[str, Any], sentence: str) -> None:
    assert rule_in_words(rule) == sentence


def test_every_type_has_one() -> None:
    assert {rule["type"] for rule, _ in SENTENCES} == {*RULE_TYPES}


@pytest.mark.parametrize("kind", [*RULE_TYPES, "nope", None])
@pytest.mark.parametrize("value", [None, 7, "x" * 5000, [["y" * 5000] * 500], {"a": {}}, -3])
def test_whatever_a_rule_holds_the_sentence_is_short(kind: object, value: object) -> None:
    names = ["sheet_idx", "sheet_idx0", "sheet_idx1", "props", "chart_props", "pivot_props"]
    names += ["dv_props", "rules", "method", "ref", "coordinate", "precision"]
    said = rule_in_words({"type": kind, **dict.fromkeys(names, value)})
    assert 10 < len(said) <= LONGEST
