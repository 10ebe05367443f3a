"""Hostile outputs: each gets a verdict within the reader's limits, and never a judge error."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from judge.compare.contract import AnswerFaultError, GoldFaultError
from judge.errors import WorkbookError
from judge.workbook.facts.book import BookFacts
from judge.workbook.facts.render import facts_to_json, facts_to_lines
from judge.workbook.reader import open_workbook
from tests.bounds import in_bounds
from tests.unit.compare.rules.hostile_packages import LARGE, SMALL
from tests.unit.compare.rules.judged import CORPUS, find
from tests.unit.workbook.test_facts import CACHES, chart, package, pivot_parts

pytestmark = pytest.mark.slow

PAIR = {"sheet_idx0": 0, "sheet_idx1": "EI0"}
FONTS = ["bgcolor", "font_color", "font_bold", "number_format", "hyperlink"]
RULES: list[dict[str, Any]] = [
    {"type": "sheet_data", **PAIR},
    {"type": "sheet_fuzzy", **PAIR, "rules": [{"range": "A1:C3", "type": "fuzzy_match"}]},
    {"type": "sparkline", **PAIR},
    {"type": "chart", **PAIR, "chart_props": ["type", "title", "legend", "xtitle", "anchor"]},
    {"type": "style", **PAIR, "props": FONTS},
    {"type": "freeze", **PAIR},
    {"type": "sheet_name"},
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
CPU_S, MEMORY_BYTES = 8, 1 << 29
USUAL_SHARE = 0.03
SHARE = {"a million series": 1.0}
"""How much of a package is made here; ``benchmarks/hostile_packages.py`` makes the whole."""


def judge(data: bytes, rules: list[dict[str, Any]], evaluator: str, profile: str) -> str:
    """Returns the verdict: AC, WA or IW. Any other exception is a fault of the judge."""
    try:
        found = find(rules, data, "base.xlsx", evaluator=evaluator, profile=profile)
    except AnswerFaultError:
        return "IW"
    return "AC" if found.agrees else "WA"


def every_verdict(data: bytes, rules: list[dict[str, Any]]) -> None:
    for rule in rules:
        judge(data, [rule], "spider2v", "standard")  # has the published verdict on record, too
        judge(data, [rule], "osworld", "official")
    for profile in ("official", "standard"):
        assert judge(data, RULES, "spider2v", profile) in {"IW", "WA"}


def as_a_gold(data: bytes, folder: Path) -> None:
    gold = folder / "gold.xlsx"
    gold.write_bytes(data)
    with contextlib.suppress(GoldFaultError):
        assert not find(RULES, "base.xlsx", gold).agrees


def facts(data: bytes, *, as_text: bool = True) -> None:
    """Runs ``judge facts`` with JSON output, and optionally with text output."""
    for show in [facts_to_json, *([facts_to_lines] if as_text else [])]:
        try:
            book = open_workbook(data)
            with book.package.budget.working():
                json.dumps(list(show(BookFacts(book))))
        except WorkbookError:
            continue


@pytest.mark.parametrize("name", SMALL)
def test_a_verdict_each(name: str, tmp_path: Path) -> None:
    facts(SMALL[name])
    every_verdict(SMALL[name], RULES)
    as_a_gold(SMALL[name], tmp_path)


@pytest.mark.parametrize("name", LARGE)
def test_a_verdict_each_within_bounds(name: str) -> None:
    make, kinds = LARGE[name]
    rules = [rule for rule in RULES if rule["type"] in kinds or "all" in kinds]
    data = make(SHARE.get(name, USUAL_SHARE))

    def work() -> None:
        facts(data, as_text=False)
        for rule in rules:
            judge(data, [rule], "spider2v", "standard")
        assert judge(data, RULES, "osworld", "official") in {"IW", "WA"}

    assert in_bounds(work, cpu_s=CPU_S, memory_bytes=MEMORY_BYTES) == 0


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (package("", chart("<barChart>" * 300)), "chart"),
        (package("", pivot_parts() | {"xl/pivotCache/p.xml": "<"}, CACHES), "pivot_table"),
    ],
)
def test_what_cannot_be_read_does_not_equal_nothing(data: bytes, kind: str) -> None:
    rule = {"type": kind, **PAIR}
    assert judge(data, [rule], "spider2v", "official") == "AC"
    assert judge(data, [rule], "spider2v", "standard") == "WA"


def test_there_are_at_least_forty() -> None:
    assert len(SMALL) + len(LARGE) >= 40
    assert CORPUS.is_dir()
