"""Conditional formats that are written differently are compared by what they show in each cell.

The truth of a condition comes from a table here; that the engines give the same is tested with them
(`tests/unit/recalc/test_conditions.py`).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import openpyxl
import openpyxl.formatting.rule
import pytest
from openpyxl.styles import Font, PatternFill
from openpyxl.styles.differential import DifferentialStyle
from openpyxl.styles.numbers import NumberFormat

from judge.compare.cells.answer_range import Plan, check, prepare, wanted_conditions
from judge.compare.cells.comparison import Comparison
from judge.compare.cells.conditional_formats import MAX_EVALUATED
from judge.compare.cells.options import range_spec
from judge.compare.cells.sides import (
    NO_ANSWERS,
    Answers,
    ConditionAnswers,
    ConditionQuestions,
    Questions,
    Side,
)
from judge.compare.profiles import get_profile
from judge.workbook.reader import Workbook, open_workbook
from tests.unit.annotate.books import with_part

make: Any = openpyxl.formatting.rule  # its functions have no types
CellIsRule, FormulaRule, Rule = make.CellIsRule, make.FormulaRule, make.Rule
RED, BLUE = PatternFill(bgColor="FF0000"), PatternFill(bgColor="0000FF")
Placed = tuple[str, Any]


def book(
    *rules: Placed, rows: Sequence[Sequence[object]] = ((1, "x"), (2, "y"), (3, "X"))
) -> bytes:
    workbook = openpyxl.Workbook()
    sheet = workbook.worksheets[0]
    sheet.title = "S"
    for row in rows:
        sheet.append(list(row))
    for where, rule in rules:
        sheet.conditional_formatting.add(where, rule)
    target = io.BytesIO()
    workbook.save(target)
    return target.getvalue()


def when(formula: str, fill: PatternFill | None = RED, **more: Any) -> Any:
    return FormulaRule([formula], fill=fill, **more)


def kind(name: str, fill: PatternFill = RED, **terms: Any) -> Any:
    return Rule(type=name, dxf=DifferentialStyle(fill=fill), **terms)


def answered(questions: Questions, truth: Callable[[str], bool | None]) -> Answers:
    told = {key: truth(key[1]) for key in questions.conditions}
    return Answers(
        truths={key: each for key, each in told.items() if each is not None},
        unknown={key: "nobody knows" for key, each in told.items() if each is None},
    )


def opened(
    gold: bytes, output: bytes, at: str, options: dict[str, object]
) -> tuple[Plan, Workbook, Workbook]:
    first, second = open_workbook(gold), open_workbook(output)
    plan = prepare(range_spec(at, options=options), gold=first, output=second)
    return plan, first, second


def asked(
    gold: bytes, output: bytes, *style: str, at: str = "A1:B3", **options: object
) -> ConditionQuestions:
    plan, first, second = opened(gold, output, at, options)
    return wanted_conditions(
        plan, Side(first), Side(second), profile=get_profile("standard"), style=style
    )


def compare(
    gold: bytes,
    output: bytes,
    truth: Callable[[str], bool | None] | None,
    *style: str,
    at: str = "A1:B3",
    profile: str = "standard",
    **options: object,
) -> Comparison:
    plan, first, second = opened(gold, output, at, options)
    rules = get_profile(profile)
    style = style or ("fill",)
    answers = NO_ANSWERS
    if truth is not None:
        questions = wanted_conditions(plan, Side(first), Side(second), profile=rules, style=style)
        answers = ConditionAnswers(
            answered(questions.gold, truth), answered(questions.output, truth)
        )
    return check(plan, Side(first), Side(second), profile=rules, style=style, conditions=answers)


def truths(*true: str) -> Callable[[str], bool]:
    return lambda formula: formula in true


def cells(comparison: Comparison) -> list[str]:
    return [each.cell for each in comparison.differences]


# -- what is asked --------------------------------------------------------------------------------


def test_no_condition_is_evaluated_if_rules_are_equal_or_no_style_counts() -> None:
    gold = book(("A1:B3", when("$A1>1")))
    split = book(("A1:B1", when("$A1 > 1")), ("A2:B3", when("$a2>1")))
    other = book(("A1:B3", when("$A1>=2")))
    assert asked(gold, split, "fill").is_empty
    assert asked(gold, gold, "fill").is_empty
    assert asked(gold, other).is_empty
    assert asked(gold, other, "alignment").is_empty
    assert not asked(gold, other, "fill").is_empty


def test_official_ignores_styles_and_conditions() -> None:
    gold, other = book(("A1:B3", when("$A1>1"))), book(("A1:B3", when("$A1>=2")))
    plan, first, second = opened(gold, other, "A1:B3", {})
    profile = get_profile("official")
    assert wanted_conditions(
        plan, Side(first), Side(second), profile=profile, style=["fill"]
    ).is_empty
    assert compare(gold, other, None, profile="official").equal


def test_a_condition_is_evaluated_once_for_all_cells_with_the_same_text() -> None:
    questions = asked(book(("A1:B3", when("$A1>1"))), book(("A1:B3", when("A$1>1"))), "fill")
    assert [text for _, text in questions.gold.conditions] == ["$A1>1", "$A2>1", "$A3>1"]
    assert [text for _, text in questions.output.conditions] == ["A$1>1", "B$1>1"]


def test_conditions_are_evaluated_only_in_cells_with_different_rules() -> None:
    gold = book(("A1:B3", when("$A1>1")))
    output = book(("A1:B2", when("$A1>1")), ("A3:B3", when("$A3>=2")))
    questions = asked(gold, output, "fill")
    assert list(questions.gold.conditions) == [("S", "$A3>1")]
    assert list(questions.output.conditions) == [("S", "$A3>=2")]


def test_the_position_of_a_formula_is_written_into_it() -> None:
    gold = book(("A1:B3", when('AND(MOD(ROW(),2)=0,COLUMN( )=1,"ROW()"<>"")')))
    questions = asked(gold, book(("A1:B3", when("$A1>1"))), "fill")
    expected = 'AND(MOD(ROW(B2),2)=0,COLUMN(B2)=1,"ROW()"<>"")'
    assert ("S", expected) in questions.gold.conditions


@pytest.mark.parametrize(
    ("rule", "formula"),
    [
        (CellIsRule(operator="equal", formula=['"x"'], fill=RED), 'A2=("x")'),
        (CellIsRule(operator="notEqual", formula=["$B$1"], fill=RED), "A2<>($B$1)"),
        (CellIsRule(operator="greaterThan", formula=["B1"], fill=RED), "A2>(B2)"),
        (CellIsRule(operator="greaterThanOrEqual", formula=["1"], fill=RED), "A2>=(1)"),
        (CellIsRule(operator="lessThan", formula=["1"], fill=RED), "A2<(1)"),
        (CellIsRule(operator="lessThanOrEqual", formula=["1"], fill=RED), "A2<=(1)"),
        (
            CellIsRule(operator="between", formula=["1", "B1"], fill=RED),
            "OR(AND(A2>=(1),A2<=(B2)),AND(A2>=(B2),A2<=(1)))",
        ),
        (
            CellIsRule(operator="notBetween", formula=["1", "2"], fill=RED),
            "NOT(OR(AND(A2>=(1),A2<=(2)),AND(A2>=(2),A2<=(1))))",
        ),
        (kind("containsText", text='a"b'), 'NOT(ISERROR(SEARCH("a""b",A2)))'),
        (kind("containsText", text="a", formula=['SEARCH("a",A1)>0']), 'SEARCH("a",A2)>0'),
        (kind("notContainsText", text="a"), 'ISERROR(SEARCH("a",A2))'),
        (kind("beginsWith", text="ab"), 'LEFT(A2,LEN("ab"))="ab"'),
        (kind("endsWith", text="ab"), 'RIGHT(A2,LEN("ab"))="ab"'),
        (kind("containsBlanks"), "LEN(TRIM(A2))=0"),
        (kind("notContainsBlanks"), "LEN(TRIM(A2))>0"),
        (kind("containsErrors"), "ISERROR(A2)"),
        (kind("notContainsErrors"), "NOT(ISERROR(A2))"),
        (when("=A1>1"), "A2>1"),
    ],
)
def test_rules_about_their_own_cell_become_formulas(rule: Any, formula: str) -> None:
    questions = asked(book(("A1:A3", rule)), book(("A1:A3", when("$A1=7"))), "fill", at="A2")
    assert list(questions.gold.conditions) == [("S", formula)]


# -- what they show -------------------------------------------------------------------------------


def test_another_rule_that_fills_the_same_cells_is_equal() -> None:
    gold, output = book(("A1:B3", when("$A1>1"))), book(("A1:B3", when("$A1>=2")))
    painted = truths("$A2>1", "$A3>1", "$A2>=2", "$A3>=2")
    comparison = compare(gold, output, painted)
    assert comparison.equal
    assert any("by what they show in 6 cells" in each for each in comparison.notes)
    assert not compare(gold, output, None).equal


def test_a_cell_that_looks_different_is_reported_with_both_looks() -> None:
    gold, output = book(("A1:B3", when("$A1>1"))), book(("A1:B3", when("$A1>2", BLUE)))
    comparison = compare(gold, output, truths("$A2>1", "$A3>1", "$A3>2"))
    assert cells(comparison) == ["A2", "B2", "A3", "B3"]
    assert [each.detail for each in comparison.differences[1:3]] == [
        "fill: with conditional formats expected #FF0000, found no fill",
        "fill: with conditional formats expected #FF0000, found #0000FF",
    ]


def test_ranges_may_be_split_and_reach_further() -> None:
    gold = book(("A1:B3", when("$A1>1")))
    output = book(("A2:A3", when("A2>=2")), ("B2:B900", when("A2>=2")))
    assert compare(gold, output, truths("$A2>1", "$A3>1", "A2>=2", "A3>=2")).equal
    assert not compare(gold, output, truths("$A1>1", "$A2>1", "A2>=2")).equal


def test_of_rules_that_hold_the_first_one_that_sets_an_attribute_counts() -> None:
    def ordered(*fills: tuple[str, PatternFill]) -> bytes:
        return book(*(("A1:B3", when(text, fill)) for text, fill in fills))

    gold = ordered(("$A1>1", RED), ("$A1>2", BLUE))
    output = ordered(("$A1>2", BLUE), ("$A1>1", RED))
    assert cells(compare(gold, output, truths("$A2>1", "$A3>1", "$A3>2"))) == ["A3", "B3"]
    assert compare(gold, output, truths("$A2>1", "$A3>2")).equal


def test_rules_that_set_different_parts_are_merged() -> None:
    bold = Font(bold=True, color="00FF00")
    gold = book(("A1:B3", FormulaRule(["$A1>1"], fill=RED, font=bold)))
    output = book(("A1:B3", when("$A1>=2")), ("A1:B3", when("1<$A1", None, font=bold)))
    held = truths("$A2>1", "$A2>=2", "1<$A2")
    names = ("fill", "bold", "font_color")
    assert compare(gold, output, held, *names).equal
    without = truths("$A2>1", "$A2>=2")
    assert cells(compare(gold, output, without, *names)) == ["A2", "B2"]
    assert compare(gold, output, without, "fill").equal


def test_italic_underline_and_number_formats_are_parts_of_a_look() -> None:
    style = DifferentialStyle(
        font=Font(italic=True, underline="single"), numFmt=NumberFormat(200, "0.000")
    )
    gold = book(("A1:B3", Rule(type="expression", formula=["$A1>1"], dxf=style)))
    output = book(("A1:B3", when("$A1>=2")))
    for name in ("italic", "underline", "number_format"):
        assert compare(gold, output, truths("$A2>1", "$A2>=2"), name).differing_cells == 6
        same = book(("A1:B3", Rule(type="expression", formula=["$A1>=2"], dxf=style)))
        assert compare(gold, same, truths("$A2>1", "$A2>=2"), name).equal
        assert cells(compare(gold, same, truths("$A2>1"), name)) == ["A2", "B2"]


def test_a_rule_that_stops_silences_those_after_it() -> None:
    def stopping(*, stops: bool) -> bytes:
        bold = when("$A1>2", None, font=Font(bold=True), stopIfTrue=stops)
        return book(("A1:B3", bold), ("A1:B3", when("$A1>1")))

    output = book(("A1:B3", when("$A1=2")))
    held = truths("$A2>1", "$A3>1", "$A3>2", "$A2=2")
    assert compare(stopping(stops=True), output, held).equal
    assert cells(compare(stopping(stops=False), output, held)) == ["A3", "B3"]
    assert cells(compare(stopping(stops=True), stopping(stops=False), held)) == ["A3", "B3"]


def test_undecidable_rules_are_compared_as_text_with_a_note() -> None:
    gold, output = book(("A1:B3", when("$A1>1"))), book(("A1:B3", when("$A1>=2")))
    comparison = compare(gold, output, lambda text: None if "3" in text else "2>" in text)
    assert cells(comparison) == ["A3", "B3"]
    assert comparison.differences[-1].detail == "fill: other conditional formats"
    assert any("as text in 2 cells: nobody knows" in each for each in comparison.notes)
    swapped = book(("A1:B3", when("$A1>2", BLUE)), ("A1:B3", when("$A1>1")))
    ordered = book(("A1:B3", when("$A1>1")), ("A1:B3", when("$A1>2", BLUE)))
    assert compare(ordered, swapped, lambda _: None).equal


def test_having_no_rules_does_not_match_rules_that_hold_nowhere() -> None:
    gold, bare = book(("A1:B3", when("$A1>9"))), book()
    assert asked(gold, bare, "fill").is_empty
    assert not compare(gold, bare, truths()).equal
    assert not compare(bare, gold, truths()).equal
    assert compare(gold, book(("A1:B3", when("$A1>=10"))), truths()).equal


def test_a_filled_cell_does_not_match_one_that_a_rule_fills() -> None:
    painted = openpyxl.load_workbook(io.BytesIO(book(("A1:B3", when("$A1=9")))))
    painted.worksheets[0]["A2"].fill = PatternFill("solid", fgColor="FF0000")
    target = io.BytesIO()
    painted.save(target)
    gold = book(("A1:B3", when("$A1=2")))
    assert cells(compare(gold, target.getvalue(), truths("$A2=2"))) == ["A2", "B2"]


def test_rules_with_a_reference_that_leaves_the_sheet_are_compared_as_text() -> None:
    gold = book(("A1:B3", when("$A1>1")))
    output = book(("A1:B3", when("A1048575>1")))
    comparison = compare(gold, output, truths())
    assert cells(comparison) == ["A3", "B3"]
    assert any("leaves the sheet" in each for each in comparison.notes)


def test_rows_in_another_order_are_compared_at_their_positions() -> None:
    gold = book(("A1:B3", when("$A1>2")))
    output = book(("A1:B3", when("$A1=3")), rows=((3, "X"), (1, "x"), (2, "y")))
    plan, first, second = opened(gold, output, "A1:B3", {"unordered_rows": True})
    rules = get_profile("standard")
    questions = wanted_conditions(plan, Side(first), Side(second), profile=rules, style=["fill"])
    for held, equal in (
        (truths("$A3>2", "$A1=3"), True),
        (truths("$A3>2", "$A2=3"), False),
    ):
        answers = ConditionAnswers(answered(questions.gold, held), answered(questions.output, held))
        found = check(
            plan, Side(first), Side(second), profile=rules, style=["fill"], conditions=answers
        )
        assert found.equal is equal


# -- rules that look at their whole range ---------------------------------------------------------

NUMBERS = ((5, "a"), (1, "b"), (5, "A"), (9, "c"), (None, None), (2, "a"))


@pytest.mark.parametrize(
    ("rule", "where", "painted"),
    [
        (kind("duplicateValues"), "A1:A6", {1, 3}),
        (kind("duplicateValues"), "B1:B6", {1, 3, 6}),
        (kind("uniqueValues"), "B1:B6", {2, 4}),
        (kind("top10", rank=1), "A1:A6", {4}),
        (kind("top10", rank=2), "A1:A6", {1, 3, 4}),
        (kind("top10", rank=2, bottom=True), "A1:A6", {2, 6}),
        (kind("top10", rank=40, percent=True), "A1:A6", {1, 3, 4}),
        (kind("top10", rank=10, percent=True, bottom=True), "A1:A6", {2}),
        (kind("aboveAverage"), "A1:A6", {1, 3, 4}),
        (kind("aboveAverage", aboveAverage=False), "A1:A6", {2, 6}),
        (kind("aboveAverage", stdDev=1), "A1:A6", {4}),
        (kind("aboveAverage", aboveAverage=False, stdDev=1), "A1:A6", {2}),
        (kind("top10", rank=1), "B1:B6", set()),
    ],
)
def test_rules_about_many_cells_fill_what_excel_fills(
    rule: Any, where: str, painted: set[int]
) -> None:
    gold = book((where, rule), rows=NUMBERS)
    column = where[0]
    output = book((where, when(f"{column}1=0")), rows=NUMBERS)
    held = truths(*(f"{column}{row}=0" for row in painted))
    assert compare(gold, output, held, at="A1:B6").equal
    for row in range(1, 7):
        wrong = truths(*(f"{column}{each}=0" for each in painted ^ {row}))
        assert cells(compare(gold, output, wrong, at="A1:B6")) == [f"{column}{row}"]


def test_averages_may_include_the_average() -> None:
    rows = ((1,), (2,), (3,))
    gold = book(("A1:A3", kind("aboveAverage", equalAverage=True)), rows=rows)
    output = book(("A1:A3", when("A1=0")), rows=rows)
    assert compare(gold, output, truths("A2=0", "A3=0"), at="A1:A3").equal


def test_a_split_range_is_another_one_where_all_cells_count() -> None:
    rows = ((1,), (2,), (1,), (3,))

    def repeated(*ranges: str) -> bytes:
        return book(*((each, kind("duplicateValues")) for each in ranges), rows=rows)

    gold = repeated("A1:A4")
    assert compare(gold, repeated("A1:A4"), None, at="A1:A4").equal
    assert cells(compare(gold, repeated("A1:A2", "A3:A4"), truths(), at="A1:A4")) == ["A1", "A3"]
    assert compare(gold, repeated("A1:A2 A3:A4"), truths(), at="A1:A4").equal


def test_rules_whose_formulas_are_not_computed_are_compared_as_text() -> None:
    rows = ((1,), ("=A1",), (3,))
    gold = book(("A1:A3", kind("top10", rank=1)), rows=rows)
    output = book(("A1:A3", when("A1=3")), rows=rows)
    comparison = compare(gold, output, truths("A3=3"), at="A1:A3")
    assert any("formulas that were not computed" in each for each in comparison.notes)
    assert not comparison.equal


# -- scales, bars, icons --------------------------------------------------------------------------


def scale(start: Any, end: Any, kinds: tuple[str, str], **middle: Any) -> Any:
    return make.ColorScaleRule(
        start_type=kinds[0],
        start_value=start,
        start_color="FF0000",
        end_type=kinds[1],
        end_value=end,
        end_color="00FF00",
        **middle,
    )


def test_colour_scales_are_fills() -> None:
    rows = ((1,), (2,), (3,))

    def scaled(*rules: Any) -> bytes:
        return book(*(("A1:A3", each) for each in rules), rows=rows)

    gold = scaled(scale(None, None, ("min", "max")))
    at = "A1:A3"
    assert compare(gold, scaled(scale(None, None, ("min", "max"))), None, at=at).equal
    assert not compare(gold, scaled(), None, at=at).equal
    assert compare(gold, scaled(), None, "bold", at=at).equal
    assert compare(gold, scaled(scale(1, 3, ("num", "num"))), None, at=at).equal
    assert compare(gold, scaled(scale(0, 100, ("percent", "percentile"))), None, at=at).equal
    assert cells(compare(gold, scaled(scale(1, 5, ("num", "num"))), None, at=at)) == ["A2", "A3"]
    middle = scale(None, None, ("min", "max"), mid_type="num", mid_value=2, mid_color="0000FF")
    assert cells(compare(gold, scaled(middle), None, at=at)) == ["A2"]


def test_a_scale_with_a_computed_bound_is_compared_as_text() -> None:
    rows = ((1,), (2,), (3,))
    gold = book(("A1:A3", scale("$A$1", "$A$3", ("formula", "formula"))), rows=rows)
    output = book(("A1:A3", scale(1, 3, ("num", "num"))), rows=rows)
    assert compare(gold, gold, None, at="A1:A3").equal
    comparison = compare(gold, output, None, at="A1:A3")
    assert not comparison.equal
    assert any("bounds that have to be computed" in each for each in comparison.notes)


def test_data_bars_are_not_compared_and_a_note_says_so() -> None:
    bar = make.DataBarRule(start_type="min", end_type="max", color="FF0000")
    comparison = compare(book(("A1:A3", bar)), book(), None)
    assert comparison.equal
    assert any("data bars and icon sets" in each for each in comparison.notes)


# -- bounds ---------------------------------------------------------------------------------------


def test_many_cells_under_a_thousand_rules_are_compared_as_text_with_a_note() -> None:
    def many(suffix: str) -> bytes:
        rules = [("A1:ALL1000", when(f"$A1={n}{suffix}")) for n in range(1000)]
        return book(*rules, rows=((1,),))

    gold, output = many(""), many("+0")
    assert asked(gold, output, "fill", at="A1:ALL1000").is_empty
    comparison = compare(gold, output, truths(), at="A1:Z1000")
    assert comparison.differing_cells == 26_000
    assert any(f"more than {MAX_EVALUATED:,} conditions" in each for each in comparison.notes)


def test_a_rule_for_each_cell_costs_what_the_cells_cost() -> None:
    one = book(("A1:A500", when("$A1>1")), rows=((1,),))
    each = book(*((f"A{row}", when(f"A{row}>1")) for row in range(1, 501)), rows=((1,),))
    assert asked(one, each, "fill", at="A1:A500").is_empty
    assert compare(one, each, None, at="A1:A500").equal


def test_a_condition_longer_than_excel_takes_is_compared_as_text() -> None:
    long = "+".join(["$A1"] * 5000)
    gold, output = book(("A1:B3", when(long))), book(("A1:B3", when(long + "+0")))
    assert compare(gold, book(("A1:B3", when(long))), truths()).equal
    comparison = compare(gold, output, truths())
    assert any("longer than Excel takes" in each for each in comparison.notes)


@pytest.mark.parametrize("text", ["\u00b2", "9" * 5000, "-1"])
def test_invalid_numbers_do_no_harm(text: str) -> None:
    gold = book(("A1:B3", when("$A1>1")))
    rule = b'<cfRule type="expression" priority="1"'
    output = with_part(
        gold,
        "xl/worksheets/sheet1.xml",
        lambda xml: xml.replace(rule, rule.replace(b"1", text.encode())),
    )
    assert output != gold
    assert compare(gold, output, truths()).equal
