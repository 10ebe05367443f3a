"""When a value agrees with its gold, by each profile."""

from __future__ import annotations

from typing import Any

import pytest

from judge.compare.profiles import PROFILES
from judge.compare.values.agreement import compare_value
from judge.compare.values.rules import problem_of_gold, read_rules

CARDS = "(10-6-2)*12"
ARRAY = [[[255, 0], [0, 1]], [[3, 4], [5, 6]]]


def rule(kind: str, match: str = "exact", **more: Any) -> Any:
    return read_rules({"x": {"type": kind, "match": match, **more}})["x"]


def verdicts(asked: Any, gold: object, found: object) -> str:
    """One letter for each of official, standard and strict: Y if the value is accepted."""
    assert problem_of_gold(asked, gold) is None
    names = ("official", "standard", "strict")
    agrees = [compare_value(asked, gold, found, PROFILES[name]).agrees for name in names]
    return "".join("Y" if each else "n" for each in agrees)


@pytest.mark.parametrize(
    ("gold", "found", "expected"),
    [
        (3, 3, "YYY"),
        (3, 3.0, "YYY"),
        (3, 3.9, "Ynn"),
        (3, 2.9999999, "nnn"),
        (3, "3", "YYn"),
        (3, "3.0", "nYn"),
        (3, " 1_000 ", "nnn"),
        (1000, "1_000", "Ynn"),
        (1000, "1,000", "nYn"),
        (3, "$3", "nYn"),
        (3, "The answer is 3.", "nYn"),
        (3, "between 3 and 7", "nnn"),
        (-3, "-3", "YYn"),
        (3, "-3", "nnn"),
        (1, True, "YYn"),
        (3, [3], "nnn"),
        (3, None, "nnn"),
        (3, float("inf"), "nnn"),
        (3, float("nan"), "nnn"),
        ("7", 7, "YYY"),
        ("7", "7", "YYY"),
        # Large ones are compared to their last digit.
        (10**13 + 1, 10**13 + 1, "YYY"),
        (10**13 + 1, 10**13 + 2, "nnn"),
        (10**13 + 1, 10**13, "nnn"),
        (10**13 + 1, 1e13, "nnn"),
        (10**13, 1e13, "YYY"),
        (10**13, "1e13", "nYn"),
        (10**13 + 1, "1e13", "nnn"),
        (10**13 + 1, 10000000000001.0, "YYY"),
        (10**13 + 1, "10000000000001.0", "nYn"),
        (10**13 + 1, "10,000,000,000,002", "nnn"),
        (10**13 + 1, 10000000000001.5, "Ynn"),
        (2**53 + 1, float(2**53), "nnn"),
        (2**53 + 1, "9007199254740993.0", "nYn"),
        (2**53, "9007199254740993.0", "nnn"),
        (1365218683862189337228, 1365218683862189337229, "nnn"),
        (1365218683862189337228, "1.365218683862189337228e21", "nYn"),
        # What arithmetic leaves behind a float's last digit is no fraction.
        (3, 3.0000000000000004, "YYY"),
        (3, 2.9999999999999996, "nYY"),
        (3, 3.00000000001, "Ynn"),
    ],
)
def test_whole_numbers(gold: object, found: object, expected: str) -> None:
    assert verdicts(rule("int"), gold, found) == expected


@pytest.mark.parametrize(
    ("tolerance", "gold", "found", "expected"),
    [
        (None, 0.5, 0.500001, "YYY"),
        (None, 0.5, 0.5004, "YYn"),
        (None, 0.5, 0.501, "nnn"),
        (0.01, 0.5, 0.51, "nYY"),
        (0, 1000.0, 1000.9, "YYn"),
        (None, 13, "-13", "Ynn"),
        (None, 13, "between 13 and 20", "Ynn"),
        (None, 1234.5, "1,234.5", "nYn"),
        (None, 0.5, "5e-1", "nYn"),
        (None, 0.5, "0.5 %", "YYn"),
        (None, 0.5, "\u22120.5", "Ynn"),
        (None, 0.5, "H2O", "nnn"),
        (None, 0, False, "YYn"),
        (None, 0.5, 10**400, "nnn"),
        (None, 0.5, [0.5], "nnn"),
        (None, 0.5, "on 2020-05-01", "nnn"),
    ],
)
def test_numbers_within_a_tolerance(
    tolerance: float | None, gold: float, found: object, expected: str
) -> None:
    assert verdicts(rule("float", tolerance=tolerance), gold, found) == expected


@pytest.mark.parametrize(
    ("gold", "found", "expected"),
    [
        (True, True, "YYY"),
        (True, "True.", "YYn"),
        (True, "not true", "Ynn"),
        (True, "yes", "nYn"),
        (False, "no", "YYn"),
        (False, "maybe", "Ynn"),
        (True, 1, "YYn"),
        (True, 7, "nnn"),
        (True, [True], "nnn"),
    ],
)
def test_true_and_false(gold: bool, found: object, expected: str) -> None:
    assert verdicts(rule("bool"), gold, found) == expected


@pytest.mark.parametrize(
    ("match", "gold", "found", "expected"),
    [
        ("exact", "Paris", " Paris\n", "YYY"),
        ("exact", "Paris", "paris", "nnn"),
        ("exact", "Paris", "Paris.", "nnn"),
        ("exact", "1", 1, "YYn"),
        ("exact", "None", None, "Ynn"),
        ("exact", "Mil\u00e0", "Mila\u0300", "nYY"),
        ("fuzzy", "Casa Mil\u00e0", "it is the casa mil\u00e0.", "nYY"),
        ("fuzzy", "Casa", "Casablanca", "Ynn"),
        ("fuzzy", "Casa", ["Casa"], "Ynn"),
        ("one_of", ["a b", "c"], " c ", "YYY"),
        ("one_of", ["a b", "c"], "a", "nnn"),
        ("one_of", [" a", "c"], "a", "nYY"),
    ],
)
def test_text(match: str, gold: object, found: object, expected: str) -> None:
    assert verdicts(rule("text", match), gold, found) == expected


@pytest.mark.parametrize(
    ("match", "gold", "found", "expected"),
    [
        ("exact", [1, 2], [1, 2], "YYY"),
        ("exact", [1, 2], [1.00001, 2], "YYY"),
        ("exact", [1, 2], [2, 1], "nnn"),
        ("exact", [1, 2], ["1", "2"], "nYn"),
        ("exact", [1, 2], "[1, 2]", "nYn"),
        ("exact", [1, 2], "1, 2", "nnn"),
        ("exact", [1, 2], [[1, 2]], "nnn"),
        ("exact", [1, 2], [1, None], "nnn"),
        ("exact", ["a", "b"], ["a", "b "], "nYY"),
        ("exact", ARRAY, ARRAY, "YYY"),
        ("exact", [[1, 2]], [[1.00001, 2]], "nYY"),
        ("any_order", [[3, 4], [1, 2]], [[1, 2], [3, 4]], "YYY"),
        ("any_order", [[3, 4], [1, 2]], [[2, 1], [3, 4]], "nnn"),
        ("any_order", [1, 1, 2], [1, 2, 2], "nnn"),
        ("any_order", [1, "a"], ["a", 1], "nYY"),
    ],
)
def test_lists(match: str, gold: object, found: object, expected: str) -> None:
    assert verdicts(rule("list", match), gold, found) == expected


def test_a_list_has_the_tolerance_that_the_suite_gives_it() -> None:
    assert verdicts(rule("list", tolerance=0.1), [1, 2], [1.05, 2]) == "nYY"


def test_long_lists_are_compared_in_any_order() -> None:
    gold = list(range(5_000))
    assert verdicts(rule("list", "any_order"), gold, gold[::-1]) == "YYY"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (CARDS, "YYY"),
        ("12*(10-2-6)", "YYY"),
        ("(10-6-2)\u00d712", "nYY"),
        ("(10-6-2)*12 = 24", "nYY"),
        ("(10-6-2)*12 = 25", "nnn"),
        ("24", "Ynn"),
        (24, "Ynn"),
        ("((2*10)-6)+10", "Ynn"),
        ('len("x"*24)', "Ynn"),
        ("8/(3-8/3)", "nnn"),
        ("(10-6", "nnn"),
        ("24/0", "nnn"),
        ("9**9**9", "nnn"),
        ("x", "nnn"),
        (None, "nnn"),
    ],
)
def test_arithmetic(found: object, expected: str) -> None:
    assert verdicts(rule("expression"), CARDS, found) == expected


def test_the_numbers_of_an_expression_can_be_those_of_the_suite() -> None:
    asked = rule("expression", operands=[3, 3, 8, 8])
    assert verdicts(asked, "24", "8/(3-8/3)") == "nYY"
    assert verdicts(asked, "24", "3*8") == "Ynn"


def test_what_ends_the_published_script_is_noted() -> None:
    official = PROFILES["official"]
    found = compare_value(rule("list"), [1, 2], [1, None], official)
    assert "ends with TypeError" in found.detail
    found = compare_value(rule("float"), 0.5, 10**400, official)
    assert "ends with OverflowError" in found.detail
    assert compare_value(rule("list"), [1, 2], [1, 3], official).detail == ""


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        (None, "must be an object"),
        ({}, "must be an object"),
        ({"x": 3}, "variable 'x': must be an object with a type"),
        ({"x": {"type": "date"}}, "type must be one of int, float"),
        ({"x": {"type": "int", "match": "fuzzy"}}, "does not fit type 'int'"),
        ({"x": {"type": "float", "tolerance": -1}}, "tolerance must be 0 or a positive number"),
        ({"x": {"type": "expression", "operands": ["1"]}}, "operands must be a list of numbers"),
        ({"x": {"type": "int", "unit": "m"}}, "the field 'unit' does not exist"),
    ],
)
def test_rules_that_do_not_fit_are_named(rules: object, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_rules(rules)


@pytest.mark.parametrize(
    ("kind", "match", "gold"),
    [
        ("int", "exact", "seven"),
        ("float", "exact", True),
        ("bool", "exact", 1),
        ("text", "one_of", "a"),
        ("text", "one_of", []),
        ("list", "exact", "[1]"),
    ],
)
def test_golds_of_another_type_are_noticed(kind: str, match: str, gold: object) -> None:
    assert problem_of_gold(rule(kind, match), gold) is not None


def test_a_whole_number_may_have_a_tolerance_of_its_own() -> None:
    asked = rule("int", tolerance=2)
    assert verdicts(asked, 10**13, 10**13 + 2) == "nYY"
    assert verdicts(asked, 10**13, 10**13 + 3) == "nnn"


def test_large_whole_numbers_in_lists_are_not_rounded() -> None:
    asked = rule("list")
    assert verdicts(asked, [2**53 + 1], [2**53 + 1]) == "YYY"
    assert compare_value(asked, [2**53 + 1], [float(2**53)], PROFILES["standard"]).kind
