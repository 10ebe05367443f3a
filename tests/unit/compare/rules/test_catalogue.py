"""A user's own rule lists are checked option by option; published ones are taken as they are."""

from __future__ import annotations

import json

import pytest

from judge.compare.published.spider2v.compare_table import RULE_TYPES
from judge.compare.registry import check_options
from judge.compare.rules.options import RULE_CATALOGUE, RuleOptions, faults_of
from judge.core.task import CheckerSpec
from judge.errors import UsageError
from tests.conftest import REPOSITORY

ORACLE = REPOSITORY / "tests" / "workbook_rules" / "rules_oracle.jsonl"
PAIR = {"sheet_idx0": 0, "sheet_idx1": "EI0"}


def test_every_type_is_known_and_sound_published_rules_have_no_fault() -> None:
    assert set(RULE_CATALOGUE) == set(RULE_TYPES)
    calls = [json.loads(line) for line in ORACLE.read_text().splitlines()]
    faulty = {call["n"]: list(faults_of(call["rules"])) for call in calls}
    said = [fault for faults in faulty.values() for fault in faults]
    # What the oracle holds on purpose: names that do not exist, an empty list, odd sheets.
    assert len(calls) > 100
    assert all("nope" in each or "is empty" in each or "a sheet" in each for each in said), said
    assert sum(map(bool, faulty.values())) < 12


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        ({"type": "chrt"}, "rule 1: there is no type 'chrt'; types: sheet_name, sheet_data,"),
        ({"type": "freeze", "sheet_idx0": 0}, "rule 1 (freeze): option 'sheet_idx1' is missing"),
        ({"type": "sheet_name", "prop": 1}, "option 'prop' is unknown; options: none except"),
        ({"type": "freeze", **PAIR, "sheet_idx0": "Sales"}, "must be a sheet, not 'Sales'"),
        ({"type": "freeze", **PAIR, "sheet_idx0": -1}, "must be a sheet, not -1"),
        ({"type": "freeze", **PAIR, "sheet_idx0": "EIx"}, "must be a sheet, not 'EIx'"),
        ({"type": "chart", **PAIR, "chart_props": ["titel"]}, "no property 'titel'; properties:"),
        ({"type": "chart", **PAIR, "chart_props": "title"}, "must be a list of properties"),
        ({"type": "style", **PAIR, "props": []}, "is empty, so nothing would be compared"),
        ({"type": "style", **PAIR}, "option 'props' is missing"),
        ({"type": "row_props", **PAIR, "props": ["width"]}, "has no property 'width'"),
        ({"type": "pivot_table", **PAIR, "pivot_props": ["rows"]}, "has no property 'rows'"),
        ({"type": "sheet_data", **PAIR, "precision": 1.5}, "a whole number from 0 to 15, not 1.5"),
        ({"type": "sheet_print", **PAIR, "ignore_case": "yes"}, "must be true or false"),
        ({"type": "zoom", "sheet_idx": 0, "method": "gte", "ref": 1}, "there is no method 'gte'"),
        ({"type": "zoom", "sheet_idx": 0, "method": "re", "ref": "("}, "not a regular expression"),
        ({"type": "zoom", "sheet_idx": 0, "method": "approx:x", "ref": 1}, "'approx:' and a"),
        ({"type": "zoom", "sheet_idx": 0, "method": "range.te", "ref": 1}, "two numbers, not 1"),
        ({"type": "zoom", "sheet_idx": 0, "method": "eq", "ref": [1]}, "must be one value"),
        (
            {"type": "check_cell", "sheet_idx": 0, "coordinate": "2B", "props": {}},
            "must be a cell such as 'B2', not '2B'",
        ),
        (
            {"type": "check_cell", "sheet_idx": 0, "coordinate": "B2", "props": {"bold": {}}},
            "has no property 'bold'",
        ),
        (
            {"type": "data_validation", "sheet_idx": 0, "dv_props": [{"type": {"method": "eq"}}]},
            "entry 1: type: must be an object with 'method' and 'ref'",
        ),
        (
            {
                "type": "data_validation",
                "sheet_idx": 0,
                "dv_props": [{"ranges": {"method": "spreadsheet_range", "ref": ["A1", "x"]}}],
            },
            "the ref of spreadsheet_range must be the least and the most ranges",
        ),
        (
            {"type": "sheet_fuzzy", **PAIR, "rules": [{"range": "A1", "type": "like"}]},
            "entry 1: option 'type' must be one of includes",
        ),
        (
            {"type": "sheet_fuzzy", **PAIR, "rules": [{"range": "A", "type": "includes"}]},
            "entry 1: option 'range' must be ranges such as 'A1:B9'",
        ),
    ],
)
def test_a_slip_is_named_with_its_rule_and_what_is_allowed(
    rule: dict[str, object], fault: str
) -> None:
    with pytest.raises(UsageError) as caught:
        check_options(CheckerSpec("rules", {"rules": [rule]}))
    assert fault in caught.value.message
    # The same in a published list is judged as it is there.
    check_options(CheckerSpec("rules", {"rules": [rule], "evaluator": "osworld"}))


def test_all_faults_are_named_at_once_and_a_profile_has_to_exist() -> None:
    rules = [{"type": "nope"}, {"type": "freeze", "sheet_idx0": 0}]
    with pytest.raises(UsageError, match=r"rule 1: .*; rule 2 \(freeze\): "):
        RuleOptions.of({"rules": rules})
    assert RuleOptions.of({"rules": [], "profile": "official"}).profile == "official"
    with pytest.raises(UsageError, match="profile: 'strict' is not one of standard, official"):
        RuleOptions.of({"rules": [], "profile": "strict"})
