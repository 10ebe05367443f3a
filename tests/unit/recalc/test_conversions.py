"""What the judge computes itself: conversions, number formats, criteria."""

from __future__ import annotations

from collections.abc import Sequence
from operator import ge, gt, le, lt
from typing import Any

import pytest

from benchmarks.conversions import Conversion, computed, conversions, is_right
from judge.recalc.functions.conversions import (
    UnsureError,
    date_serial,
    fits,
    general_text,
    number_text,
    text_number,
)
from judge.recalc.functions.criteria import Cells, Criterion, Scalar, criterion, matches
from judge.recalc.functions.formats import formatted
from judge.recalc.functions.tried import is_of_mixed_arrays
from judge.workbook.cell import ErrorValue

NA, VALUE, NUM, DIV0 = (ErrorValue(code) for code in ("#N/A", "#VALUE!", "#NUM!", "#DIV/0!"))


def test_the_table_is_computed_as_excel_does() -> None:
    table = list(conversions())
    assert len(table) >= 800
    wrong = [
        (conversion.formula, conversion.source)
        for conversion in table
        if not is_right(computed(conversion), conversion.expected)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.1 + 0.2, "0.3"),
        (1e19, "10000000000000000000"),
        (-1.5e20, "-1.5E+20"),
        (0.00001, "0.00001"),
        (1.23456789012345e-5, "1.23456789012345E-05"),
        (12345678901234.5, "12345678901234.5"),
        (-0.0, "0"),
    ],
)
def test_a_number_has_15_digits_as_text(number: float, text: str) -> None:
    assert number_text(number) == text


@pytest.mark.parametrize("number", [1e300, float("inf"), 1e-120])
def test_extreme_numbers_are_left_to_engines(number: float) -> None:
    with pytest.raises(UnsureError):
        number_text(number)


def test_general_fits_into_eleven_characters() -> None:
    numbers = (12345678901, 123456789012, 0.1234567891234, 0.00012345678, -1e-8, 1.2e-9)
    assert [general_text(number) for number in numbers] == [
        "12345678901",
        "1.23457E+11",
        "0.123456789",
        "0.000123457",
        "-0.00000001",
        "1.2E-09",
    ]


@pytest.mark.parametrize(
    "text",
    ["1/2", "Jan-20", "13/13/2020", "2/30/2020", "1,2,3", "(-5)", "25:61", "٣", "5 1/0", "1e400"],
)
def test_what_depends_on_region_or_day_is_left_to_engines(text: str) -> None:
    with pytest.raises(UnsureError):
        text_number(text)


@pytest.mark.parametrize("text", ["apples", "12 apples", "", "ID7x", "room 101", "TRUE", "$"])
def test_some_text_is_certainly_not_a_number(text: str) -> None:
    assert text_number(text) is None


def test_an_evaluation_leaves_unknown_formulas_to_engines() -> None:
    for formula in (
        "=KURT(A1:A3)", "=A1:A3+1", "=Name+1", "=TEXT(1,", '=TEXT(1,"b")',
        '=0.3-0.1-0.2&""', '="b"<"é"', "=COUNTIF(A1:A3,A1:A3)", '=[1]S!A1&""',
        "=" + "(" * 200 + "1" + ")" * 200, '=SUMIFS(A1:A3,A1:A3,">a*")',
    ):  # fmt: skip
        with pytest.raises(UnsureError):
            computed(Conversion(formula, None, "", {(1, 1): 1.0}))


@pytest.mark.parametrize(
    ("number", "code", "text"),
    [
        (1234567890, "0,## ##, ##", "1,234,56 7,8 90"),
        (1234567890, "0,## ## ,##", "1,234,56 7,8 ,90"),
        (1234567.555, "0 .  # ,0.00", "1234567 .  5 ,5.50"),
        (1234567, "#,##000######", "001,234,567"),
        (1234567, "#,##000######## ", "00,01,234,567 "),
        (1234, "5000700", "5012734"),
        (12345.678, "#,##0.00,", "12.35"),
        (1234567, "0,.00", "1234.57"),
        (5.25, "# ??/16", "5  4/16"),
        (130.33332, "h hh hhh hhhh", "7 07 07 07"),
        (0.75, 's:m" @ hour "[hh]', "0:0 @ hour 18"),
        (
            3.14159,
            '"It was "[h]" [yes, "h"] hours and "mm:ss',
            "It was 75 [yes, 75] hours and 23:53",
        ),
        (-9, '[=-10]#" Wow"', "-9"),
        (10, '[< 10]#" Wow"', "10"),
        (1e-9, "General", "0.000000001"),
        (-1, "yyyy", VALUE),
        (2_958_466, "yyyy-mm-dd", VALUE),
        (1, '#"a', VALUE),
    ],
)
def test_number_formats(number: float, code: str, text: str | ErrorValue) -> None:
    assert formatted(number, code) == text


@pytest.mark.parametrize(
    ("formula", "error"),
    [
        ("=CEILING(#N/A,#REF!)", NA),
        ('=CEILING("x",#N/A)', VALUE),
        ('=_xlfn.NORM.S.DIST(#N/A,"TRUE")', NA),
        ("=1/0+#N/A", DIV0),
        ("=ROUND(#N/A,#NUM!)", NA),
        ("=_xlfn.REGEXTEST(#N/A,1)", NA),
        ("=_xlfn.XLOOKUP(#N/A,A1:A3,A1:A3)", NA),
        ("=_xlfn.XLOOKUP(2,A1:A3,B1:B2,,1)", VALUE),
        ("=_xlfn.XMATCH(2,A1:A3,7)", VALUE),
        ('=_xlfn.XMATCH("b*",A1:A3,2,2)', VALUE),
        ("=DOLLARDE(1.02,0.5)", DIV0),
        ("=EFFECT(0,4)", NUM),
        ("=DB(-1,2,3,1)", NUM),
        ("=TBILLPRICE(DATE(2008,3,31),DATE(2008,3,31),0.09)", NUM),
        ("=PRICE(DATE(2008,2,15),DATE(2017,11,15),0.0575,0.065,100,3)", NUM),
        ("=DISC(DATE(2008,2,15),DATE(2017,11,15),97,100,5)", NUM),
        ("=COUPDAYS(DATE(2008,2,15),DATE(2017,11,15),5)", NUM),
        ("=_xlfn.BINOM.DIST(3,2,0.5,TRUE)", NUM),
        ("=TIME(-1,0,0)", NUM),
        ("=WEEKDAY(1,4)", NUM),
        ("=WEEKNUM(-1)", NUM),
        ("=_xlfn.ISOWEEKNUM(-1)", NUM),
        ("=WORKDAY(3,-5)", NUM),
        ('=NETWORKDAYS.INTL(1,9,"0000012")', VALUE),
        ("=NETWORKDAYS.INTL(1,9,8)", NUM),
        ('=WORKDAY.INTL(1,9,"1111111")', VALUE),
        ('=IMSUM("1+i","1+j")', VALUE),
        ("=0^-1", DIV0),
        ("=OR(TRUE,#N/A)", NA),
        ("=SUMPRODUCT(A1:A3*{1;2})", NA),
        ("=_xlfn.AGGREGATE(20,6,A1:A3)", VALUE),
        ("=_xlfn.SORTBY({1,2,3},{1,2})", VALUE),
        ("=_xlfn._xlws.SORT({3,1,2},4)", VALUE),
        ('=_xlfn.REGEXEXTRACT("abc","x")', NA),
    ],
)
def test_refused_arguments_give_the_error_that_excel_gives(formula: str, error: ErrorValue) -> None:
    data: dict[tuple[int, int], Scalar] = {(1, 1): 3.0, (2, 1): 2.0, (3, 1): 1.0, (1, 2): "x"}
    assert computed(Conversion(formula, None, "", data)) == error


@pytest.mark.parametrize(
    "formula",
    ["=CEILING(2,1)", "=SQRTPI(2)", "=EFFECT(0.05,4)", "=DOLLARDE(1.02,16)", "=IFS(#N/A,1)"],
)
def test_accepted_arguments_are_left_to_engines(formula: str) -> None:
    with pytest.raises(UnsureError):
        computed(Conversion(formula, None, "", {}))


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("SUM(_xlfn._xlws.FILTER(A1:A3,A1:A3-2))", 4),
        ("ERROR.TYPE(_xlfn._xlws.FILTER(A1:A3,A1:A3>9))", 14),
        ("ERROR.TYPE(_xlfn.UNIQUE({1,1},TRUE,TRUE))", 14),
        ('_xlfn.TEXTJOIN(",",TRUE,_xlfn._xlws.SORT({2,"b",1,"a",TRUE},,-1,TRUE))', "TRUE,b,a,2,1"),
        ('_xlfn.TEXTJOIN(",",TRUE,_xlfn.SORTBY({1,2,3},{1,1,2},-1,{1,2,3},-1))', "3,2,1"),
        ('_xlfn.TEXTJOIN(",",TRUE,_xlfn.UNIQUE({"a";"A";"b"},,TRUE))', "b"),
        ('_xlfn.TEXTJOIN(",",TRUE,_xlfn.SEQUENCE(2,2,0,-3))', "0,-3,-6,-9"),
        ('_xlfn.TEXTJOIN(",",TRUE,_xlfn.REGEXEXTRACT("a1b22","[0-9]+",1))', "1,22"),
        ('_xlfn.TEXTJOIN(",",TRUE,_xlfn.REGEXEXTRACT("k=v","(.)=(.)",2))', "k,v"),
        ('_xlfn.REGEXREPLACE("a-b-c","(-)","<$1>",-1)&""', "a-b<->c"),
        ('_xlfn.REGEXTEST("ABC","b",1)&""', "TRUE"),
        ('IF(SUM(SUMIF(OFFSET(A1,{0,1},0),">1"))=5,"x"&1.5,"")', "x1.5"),
        ('SUM(COUNTIF(INDIRECT({"A1:A2","A3"}),">1"))&""', "2"),
        ('INDEX(A1:A3,2)&_xlfn.SWITCH(A1,3,"c","d")&CHOOSE(2,1,0.5)', "2c0.5"),
    ],
)
def test_arrays_patterns_and_references_are_computed(formula: str, value: Scalar) -> None:
    data: dict[tuple[int, int], Scalar] = {(1, 1): 3.0, (2, 1): 2.0, (3, 1): 1.0, (1, 2): "x"}
    assert is_right(computed(Conversion(f"={formula}", None, "", data)), value)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((1, "#N/A", 3), ("#DIV/0!", 2, 3), "#DIV/0!"),
        ((1, "#N/A", 3), (2, "#DIV/0!", 3), "#N/A"),
        (("#NULL!", "#NUM!", 3), ("#REF!", 2, 3), "#NUM!"),
        ((True, "#VALUE!"), ("#N/A", 2), "#N/A"),
        (("#REF!", 2), (1, 2, 3), "#N/A"),
        ((1, 2), ("#NULL!", 2), None),
        ((1, 2), (1, 2), None),
    ],
)
@pytest.mark.parametrize("function", ["CORREL", "SLOPE", "_xlfn.COVARIANCE.S"])
def test_the_first_error_in_pairs_is_the_result(
    function: str, first: Sequence[Any], second: Sequence[Any], expected: str | None
) -> None:
    data: dict[tuple[int, int], Scalar] = {
        (row, column): ErrorValue(value) if isinstance(value, str) else value
        for column, values in enumerate((first, second), 1)
        for row, value in enumerate(values, 1)
    }
    formula = f"={function}(A1:A{len(first)},B1:B{len(second)})"
    if expected is None:
        with pytest.raises(UnsureError):
            computed(Conversion(formula, None, "", data))
    else:
        assert computed(Conversion(formula, None, "", data)) == ErrorValue(expected)


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "a*" * 12, r"\p{L}", "a++", "(?>a)", "(?i)a", "é", r"(a)\1", "[", "a{2}" * 9],
)
def test_patterns_that_may_take_long_or_mean_something_else_are_left_to_engines(
    pattern: str,
) -> None:
    text = "a" * 60
    with pytest.raises(UnsureError):
        computed(Conversion(f'=_xlfn.REGEXTEST("{text}","{pattern}")', None, "", {}))


def test_a_date_with_blanks_around_it_is_no_number() -> None:
    assert text_number("2024-01-10") == 45301
    assert text_number(" 12 ") == 12
    assert text_number(" 2024-01-10 ") is None
    with pytest.raises(UnsureError):
        text_number(" 2024-01-10")


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ('=CONVERT(1,"ksec","sec")', 1000),
        ('=CONVERT(3,"hr","min")', 180),
        ('=CONVERT(1,"mm","dam")', 0.0001),
        ('=CONVERT(1,"msec","usec")', 1000),
    ],
)
def test_units_have_all_their_names_and_prefixes(formula: str, value: Scalar) -> None:
    assert is_right(computed(Conversion(formula, None, "", {})), value)


def test_errors_pass_through() -> None:
    data: dict[tuple[int, int], Scalar] = {(1, 1): ErrorValue("#N/A"), (2, 1): 2.5}
    for formula, value in (
        ('=A1&"x"', ErrorValue("#N/A")),
        ('=IF(A2>2,A2&"",A1)', "2.5"),
        ('=IFERROR(A1,A2&"")', "2.5"),
        ('=SUMIF(A1:A2,"<3")', 2.5),
        ("=SUMIF(A1:A2,A1)", ErrorValue("#N/A")),
        ('=COUNTIF(A1:A3,"#N/A")', 1),
        ('=COUNTIF(A:A,"<>2.5")', 2**20 - 1),
    ):
        assert computed(Conversion(formula, None, "", data)) == value


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("operand", [-3, 0, 1, 2, 2.5, 7, 9, 10**17])
def test_sorted_numbers_give_the_same_matches_as_single_comparisons(
    operator: str, operand: float
) -> None:
    values: list[Scalar] = [
        7,
        2,
        True,
        "5",
        None,
        ErrorValue("#N/A"),
        2.5,
        -3,
        2,
        0,
        "b",
        10**17 + 1,
        9.5,
    ]
    cells = Cells(len(values), 1, {(row, 0): value for row, value in enumerate(values)})
    wanted = Criterion(operator, operand)
    if operand == 10**17:
        with pytest.raises(UnsureError):  # Excel cannot tell it from the number next to it
            matches(cells, wanted)
        return
    compare = {"<": lt, "<=": le, ">": gt, ">=": ge}[operator]
    numbers = {
        (row, 0): value
        for row, value in enumerate(values)
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    met = {place for place, value in numbers.items() if compare(value, operand)}
    chosen = matches(cells, wanted)
    assert not chosen.inverted
    assert chosen.positions == met


def test_an_interval_is_not_compared_cell_by_cell() -> None:
    spent: list[int] = []
    cells = Cells(1000, 1, {(row, 0): row % 500 for row in range(1000)}, spent.append)
    between = matches(cells, Criterion(">=", 100)) & matches(cells, Criterion("<", 102))
    assert between.count(cells.size) == 4
    assert between.positions == {(100, 0), (101, 0), (600, 0), (601, 0)}
    outside = matches(cells, Criterion("<", 100)) & matches(cells, Criterion(">=", 102))
    assert outside.count(cells.size) == 0
    assert not outside.positions
    both_columns = between & matches(Cells(1000, 1, {(100, 0): "x"}), Criterion("=", "x"))
    assert both_columns.positions == {(100, 0)}
    assert spent == [1000, 4, 0, 4]  # the numbers in order once, then what is asked for


def test_criteria_of_every_kind() -> None:
    column: list[Scalar] = [
        "5",
        5,
        "05",
        True,
        "TRUE",
        "a*c",
        "abc",
        ErrorValue("#N/A"),
        "",
        "Ärger",
    ]
    cells = Cells(12, 1, {(row, 0): value for row, value in enumerate(column)})
    counted = {
        wanted: matches(cells, criterion(wanted)).count(cells.size)
        for wanted in (5, "5", "<>5", ">4", "TRUE", "a*c", "a~*c", "#N/A", "", "=", "<>", "ä*", "<")
    }
    assert counted == {
        5: 3, "5": 3, "<>5": 11, ">4": 1, "TRUE": 1, "a*c": 2, "a~*c": 1, "#N/A": 1, "": 3,
        "=": 2, "<>": 10, "ä*": 1, "<": 0,
    }  # fmt: skip
    assert matches(cells, criterion(None)).count(cells.size) == 0


def test_a_pattern_takes_time_proportional_to_its_length_times_the_text() -> None:
    assert not fits("a" * 5_000, "*a" * 200 + "b")
    assert fits("x" * 5_000 + "y", "*x*x*?y")


def test_a_long_format_is_refused() -> None:
    with pytest.raises(UnsureError):
        formatted(1.0, "0" * 300)


def test_days_of_1900_are_counted_as_excel_does() -> None:
    for parts, serial in (
        ((1900, 1, 1), 1), ((1900, 1, 0), 0), ((1900, 2, 29), 60), ((1900, 3, 0), 60),
        ((1900, 3, 1), 61), ((1900, 1, -1), None), ((0, 0, 0), None), ((1900, 0, 1), None),
    ):  # fmt: skip
        assert date_serial(*parts) == serial
    with pytest.raises(UnsureError):
        date_serial(1900, 0, 32)


def test_functions_of_the_former_add_in_refuse_logical_values() -> None:
    data: dict[tuple[int, int], Scalar] = {(1, 1): True, (2, 1): 3.0, (3, 1): "x"}
    for formula in (
        "=EOMONTH(A2,A1)",
        "=GCD(A2:A2,A1)",
        "=MULTINOMIAL(A1:A2)",
        "=QUOTIENT(TRUE,2)",
    ):
        assert computed(Conversion(formula, None, "", data)) == ErrorValue("#VALUE!")
    for formula in ("=GESTEP(A2,A2)", "=GESTEP(A3,A1)", "=_xlfn.BITAND(A2,A1)", "=SIN(A1)"):
        with pytest.raises(UnsureError):
            computed(Conversion(formula, None, "", data))


def test_ranks() -> None:
    data: dict[tuple[int, int], Scalar] = {(1, 1): 4.0, (2, 1): 7.0, (3, 1): 4.0, (4, 1): "-"}
    for formula, value in (
        ("=RANK(A1,A1:A4)", 2),
        ("=_xlfn.RANK.EQ(A1,A1:A4,1)", 1),
        ("=RANK(A4,A1:A4)", ErrorValue("#VALUE!")),
        ("=RANK(5,A1:A4)", ErrorValue("#N/A")),
    ):
        assert computed(Conversion(f'{formula}&""', None, "", data)) == (
            value if isinstance(value, ErrorValue) else str(value)
        )


def test_sums_have_the_rounding_errors_of_sequential_addition() -> None:
    data: dict[tuple[int, int], Scalar] = {(1, 1): 0.1, (2, 1): 0.2, (3, 1): 0.3, (4, 1): 1e15}
    assert computed(Conversion("=SUM(A1:A3)", None, "", data)) == 0.1 + 0.2 + 0.3 != 0.6
    assert computed(Conversion("=AVERAGE(A1:A3)", None, "", data)) == (0.1 + 0.2 + 0.3) / 3


def test_months_away_in_the_first_year() -> None:
    data: dict[tuple[int, int], Scalar] = {(1, 1): 0.0, (2, 1): 44_000.0}
    for formula, value in (
        ("=EDATE(A1,1)", 31), ("=EDATE(A1,0)", 0), ("=EOMONTH(A1,0)", 31), ("=EDATE(31,1)", 60),
        ("=EOMONTH(A1,1)", 60), ("=EDATE(1,-5)", ErrorValue("#NUM!")), ("=EDATE(A2,12)", 44_365),
        ("=EOMONTH(A2,-1.9)", 43_982), ("=EDATE(A2,97199)", ErrorValue("#NUM!")),
    ):  # fmt: skip
        assert computed(Conversion(formula, None, "", data)) == value


MIXED: tuple[Scalar, ...] = (2.0, 5.0, 4.0, 5.0, 3.0, True, "ala")
"""A4:A10 of calc_tests/LOOKUP_AND_REFERENCE/XLOOKUP.xlsx, sheet ReturnSmaller."""


@pytest.mark.parametrize(
    ("sought", "modes", "result"),
    [
        ("FALSE", "-1", "g"), ("FALSE", "-1,-1", "g"), ('"qwerty"', "1", "f"), ("4.5", "-1", "c"),
        ("4.5", "1", "b"), ("4.5", "1,-1", "d"), ("9", "-1", "b"), ("1", "-1", None),
        ("TRUE", "1", "f"),
    ],
)  # fmt: skip
def test_the_nearest_value_may_be_of_another_kind(
    sought: str, modes: str, result: str | None
) -> None:
    data: dict[tuple[int, int], Scalar] = {(row, 1): each for row, each in enumerate(MIXED, 1)}
    data |= {(row, 2): letter for row, letter in enumerate("abcdefg", 1)}
    formula = f"=_xlfn.XLOOKUP({sought},A1:A7,B1:B7,,{modes})"
    expected = ErrorValue("#N/A") if result is None else result
    assert computed(Conversion(formula, None, "", data)) == expected
    if result is not None:
        place = computed(Conversion(f"=_xlfn.XMATCH({sought},A1:A7,{modes})", None, "", data))
        assert place == "abcdefg".index(result) + 1


def test_other_lookups_are_left_to_engines() -> None:
    data: dict[tuple[int, int], Scalar] = {(1, 1): 3.0, (2, 1): 2.0, (3, 1): 1.0, (1, 2): "x"}
    assert computed(Conversion("=_xlfn.XMATCH(2.5,A1:A3,1,-2)", None, "", data)) == 1
    for formula in (
        "=_xlfn.XMATCH(2,A1:B3,1)", "=MATCH(2,A1:B3,0)",
        '=_xlfn.XMATCH("b*",A1:A3,3)', '=VLOOKUP(2,"Nothing",1)', "=LOOKUP(2,A1:A3,B1:B2)",
    ):  # fmt: skip
        with pytest.raises(UnsureError):
            computed(Conversion(formula, None, "", data))


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        # Values of another kind are skipped where a search by halves meets them.
        ('=MATCH(5,{"z",2,"y",4})', 4),
        ("=MATCH(3,{FALSE,2,TRUE,4})", 2),
        ("=MATCH(TRUE,{FALSE,2,TRUE,4})", 3),
        ('=MATCH(3,{"a","b"})', NA),
        ("=LOOKUP(2,{TRUE,4,FALSE,1})", NA),
        ("=LOOKUP(2,{1,#DIV/0!,1,#N/A},{10,20,30,40})", 30),
        # Out of order, what the halves lead to.
        ("=MATCH(2,{4,3,2,1})", NA),
        ("=MATCH(5,{4,3,2,1})", 4),
        ("=MATCH(2,{-1,2,3,4},-1)", NA),
        ("=MATCH(-2,{-1,2,3,4},-1)", 4),
        ("=MATCH(3,{5,4,2,1},-1)", 2),
        ("=MATCH(2,{1,2,2,2,3})", 4),
        ("=VLOOKUP(2.5,{1,10;2,20;3,30},2)", 20),
        ("=HLOOKUP(2.5,{1,2,3;10,20,30},2,TRUE)", 20),
        ("=VLOOKUP(2,{1,10;2,20},3,FALSE)", ErrorValue("#REF!")),
        ("=VLOOKUP(2,{1,10;2,20},0)", VALUE),
        ('=VLOOKUP("b*",{"a",1;"bc",2},2,FALSE)', 2),
        # All kinds have one order for XMATCH, and one for its search by halves.
        ("=_xlfn.XMATCH(TRUE,{1,2,3},-1)", 3),
        ("=_xlfn.XMATCH(TRUE,{1,2,3},1)", NA),
        ("=_xlfn.XMATCH(A1,{FALSE,2,TRUE,4},-1)", 3),
        ("=_xlfn.XMATCH(4,{TRUE,4,FALSE,1},-1,2)", 2),
        ("=_xlfn.XMATCH(A1,{TRUE,4,FALSE,1},-1,2)", 4),
        ("=_xlfn.XMATCH(5,{9,7,5,5,5,1},-1,-2)", 5),
        ('=_xlfn.XLOOKUP(3,{1,2},{"a","b"},"none")', "none"),
    ],
)
def test_mixed_arrays_are_searched_as_excel_does(formula: str, value: Scalar) -> None:
    assert computed(Conversion(formula, None, "", {})) == value


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("=SUMPRODUCT(A1:A3,A1:A3>1)", 0),
        ("=SUMPRODUCT(A1:A3,--(A1:A3>1))", 5),
        ("=SUMPRODUCT(B1:B3,A1:A3)", 2),
        ("=SUMPRODUCT(--ISNUMBER(B1:B3))", 1),
        ("=SUMPRODUCT(A1:A3,A1:A2)", VALUE),
        ("=SUMPRODUCT(A1:A3*{1,10})", 66),
        ("=SUMPRODUCT(ROW(1:3)*A1:A3)", 14),
        ("=SUM(OFFSET(A3,0,0,-2,1))", 5),
        ("=COUNT(OFFSET(B3,0,0,-3,-2))", 4),
        ("=COUNT(B1:B3)", 1),
        ("=MAX(B1:B3)", 1),
        ('=SUM("2",TRUE,A1)', 4),
        ("=CORREL(A1:A3,A1:A2)", NA),
        ('=COUNTIFS(A1:A3,">1",A1:A2,">1")', VALUE),
        ("=POWER(0,0)", NUM),
        ("=0^-1", DIV0),
        ("=LOG(8,1)", DIV0),
        ("=SUM(_xlfn.SCAN(0,A1:A3,_xlfn.LAMBDA(_xlpm.a,_xlpm.b,_xlpm.a+_xlpm.b)))", 10),
        ("=_xlfn.REDUCE(1,A1:A3,_xlfn.LAMBDA(_xlpm.a,_xlpm.b,_xlpm.a*_xlpm.b))", 6),
        ("=SUM(_xlfn.BYCOL(A1:B3,_xlfn.LAMBDA(_xlpm.c,COUNT(_xlpm.c))))", 4),
        ("=MAX(_xlfn.BYROW(A1:A3*{1,2},_xlfn.LAMBDA(_xlpm.r,SUM(_xlpm.r))))", 9),
        ("=SUM(_xlfn.MAKEARRAY(2,3,_xlfn.LAMBDA(_xlpm.r,_xlpm.c,_xlpm.r*_xlpm.c)))", 18),
        ("=SUM(_xlfn.MAP(A1:A3,_xlfn.LAMBDA(_xlpm.v,_xlpm.v^2)))", 14),
        ("=SUM(_xlfn.BYROW(A1:B3,_xleta.COUNT))", 4),
        ("=MAX(_xlfn.BYCOL(A1:A3,_xleta.SUM))", 6),
        ("=_xlfn.PERCENTOF(A1:A2,A1:A3)", 0.5),
        ('=_xlfn.TEXTJOIN(",",TRUE,A1:B2)', "1,TRUE,2,1"),
        ('=_xlfn.TEXTJOIN(",",,{"a","","b"})', "a,b"),
        (
            '=_xlfn.TEXTJOIN("|",FALSE,_xlfn.MAP(A1:A3,_xlfn.LAMBDA(_xlpm.v,_xlpm.v>1)))',
            "FALSE|TRUE|TRUE",
        ),
        ("=_xlfn.AGGREGATE(9,6,A1:B3)", 7),
        ("=_xlfn.AGGREGATE(3,4,A1:B3)", 6),
        ("=LARGE(A1:B3,2)", 2),
        ("=SMALL(A1:B3,5)", NUM),
        ("=_xlfn.VALUETOTEXT(B3,1)", '"2"'),
        ("=_xlfn.VALUETOTEXT(1/0)", "#DIV/0!"),
        ('=_xlfn.NUMBERVALUE("(2.500,27)",",",".")', -2500.27),
        ('=_xlfn.NUMBERVALUE("(-1)")', VALUE),
        ("=_xlfn.LET(_xlpm.x,5,_xlpm.y,_xlpm.x*2,_xlpm.x+_xlpm.y)", 15),
    ],
)
def test_arrays_are_computed_value_by_value(formula: str, value: Scalar) -> None:
    data: dict[tuple[int, int], Scalar] = {
        (1, 1): 1.0, (2, 1): 2.0, (3, 1): 3.0, (1, 2): True, (2, 2): 1.0, (3, 2): "2",
    }  # fmt: skip
    assert computed(Conversion(formula, None, "", data)) == value


@pytest.mark.parametrize(
    "formula",
    [
        "=SUM(A1:A3*2)",  # Excel takes one cell of the range
        "=SUMPRODUCT(IF(A1:A3>1,1,0))",
        "=_xlfn.SCAN(0,A1:A3,_xlfn.LAMBDA(_xlpm.a,_xlpm.a))",
        "=_xlfn.MAKEARRAY(1E6,1E6,_xlfn.LAMBDA(_xlpm.r,_xlpm.c,1))",
        "=SUM(_xlpm.x)",
        "=SUM(OFFSET(A1,-1,0))",
        '=AND("x",TRUE)',
    ],
)
def test_other_arrays_are_left_to_engines(formula: str) -> None:
    with pytest.raises(UnsureError):
        computed(Conversion(formula, None, "", {(1, 1): 1.0}))


@pytest.mark.parametrize(
    ("formula", "tried"),
    [
        ("=SUMPRODUCT(A1:A3=1,B1:B3)", True),
        ("=SUMPRODUCT(B1:B3,A1:A3>1)", True),
        ("=SUMPRODUCT(--(A1:A3=1),B1:B3)", False),
        ("=SUMPRODUCT(A1:A3,B1:B3)", False),
        ("=1-SUMPRODUCT(A1:A3=1)", True),
        ("=SUMPRODUCT((A1:A3=1)*SUMPRODUCT(B1:B3=1", True),
        ('=TEXTJOIN({"-","/"},1,A1:A3)', True),
        ('=TEXTJOIN("-",1,A1:A3)', False),
    ],
)
def test_sums_of_comparisons_and_texts_with_several_separators_are_tried_here(
    formula: str, tried: bool
) -> None:
    assert is_of_mixed_arrays(formula) is tried


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("=LEN(1/3)", 17),
        ("=LEN(SQRT(2))", 15),
        ("=LEN(1E20)", 5),
        ("=LEFT(A1+A2,5)", "0.3"),
        ("=RIGHT(2/3)", "7"),
        ("=MID(2/3,3,20)", "666666666666667"),
        ('=FIND("7",2/3)', 17),
        ('=ISNUMBER(FIND("4",A1+A2))', False),
        ('=SUBSTITUTE(A1+A2,".",",")', "0,3"),
        ('=SUBSTITUTE(1/3,"3","x",15)', "0.33333333333333x"),
        ('=SUBSTITUTE(1/3,"3","x",16)', "0.333333333333333"),
        ('=SUBSTITUTE(1/3,"3","x",0)', VALUE),
        ('=REPLACE(A1+A2,1,1,"1")', "1.3"),
        ('=REPLACE(1/3,0,1,"1")', VALUE),
        ("=REPT(A1+A2,2.9)", "0.30.3"),
        ("=REPT(1/3,-1)", VALUE),
        ("=CLEAN(1/3)", "0.333333333333333"),
        ('=_xlfn.TEXTBEFORE(1.5&"-"&1/3,"-")', "1.5"),
        ('=_xlfn.TEXTAFTER(A1+A2,".")', "3"),
        ('=_xlfn.TEXTAFTER(A1+A2,".",-1)', "3"),
        ('=_xlfn.TEXTAFTER(A1+A2,".",2)', NA),
        ('=_xlfn.TEXTBEFORE(A1+A2,".",-2)', NA),
    ],
)
def test_functions_of_texts_read_numbers_with_15_digits(formula: str, value: Scalar) -> None:
    data: dict[tuple[int, int], Scalar] = {(1, 1): 0.1, (2, 1): 0.2}
    assert computed(Conversion(formula, None, "", data)) == value


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ('=IF(A1>1,"not ",)&"ok"', "ok"),
        ('=IF(A1<1,B9)&"x"', "x"),
        ('=IFERROR(1/0,)&"x"', "x"),
        ('=IFERROR(B9,"none")&"x"', "x"),
        ('=_xlfn.IFNA(#N/A,)&"x"', "x"),
        ('=IF(A1>1,1,)+"2"', 2),
        ("=EXACT(IF(A1>1,1,),A1+A2)", False),
    ],
)
def test_a_blank_that_if_chooses_stays_blank(formula: str, value: Scalar) -> None:
    data: dict[tuple[int, int], Scalar] = {(1, 1): 0.1, (2, 1): 0.2}
    assert computed(Conversion(formula, None, "", data)) == value


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ('=_xlfn.TEXTJOIN(",",TRUE,_xlfn.TOROW(A1:B2,1))', "1.5,TRUE,x"),
        ('=_xlfn.TEXTJOIN(",",TRUE,_xlfn.TOCOL(A1:B2,3,TRUE))', "1.5,x,TRUE"),
    ],
)
def test_logical_values_in_a_row_or_column_stay_logical(formula: str, value: Scalar) -> None:
    data: dict[tuple[int, int], Scalar] = {(1, 1): 1.5, (1, 2): True, (2, 1): "x"}
    assert computed(Conversion(formula, None, "", data)) == value
    with pytest.raises(UnsureError):  # a blank cell is 0 there, but not in every function
        computed(Conversion(formula.replace(",1)", ")").replace(",3,", ",2,"), None, "", data))


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("=BAHTTEXT(-21.5)", "ลบยี่สิบเอ็ดบาทห้าสิบสตางค์"),
        ("=BAHTTEXT(11000010)", "สิบเอ็ดล้านสิบบาทถ้วน"),
        ("=BAHTTEXT(0)", "ศูนย์บาทถ้วน"),
        ('=_xlfn.ENCODEURL("a-b_c.d/é&")', "a-b_c.d%2F%C3%A9%26"),
        ("=DURATION(DATE(2018,7,1),DATE(2019,7,1),8%,9%,1)", 1),
        ("=DURATION(DATE(2018,7,1),DATE(2019,7,1),8%,9%,TRUE)", VALUE),
    ],
)
def test_functions_that_engines_lack_or_differ_on(formula: str, value: Scalar) -> None:
    assert computed(Conversion(formula, None, "", {})) == value


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ('=LEN("\U0001f600a")', 3),
        ('=MID("\U0001f600ab",3,1)', "a"),
        ('=RIGHT("ab\U0001f600",2)', "\U0001f600"),
        ('=FIND("b","\U0001f600b")', 3),
        ('=REPLACE("\U0001f600b",1,2,"x")', "xb"),
        ("=LEN(_xlfn.UNICHAR(128512))", 2),
        ('=CODE("日")', 63),
        ('=LEN(REPT("a",32767)&"b")', VALUE),
        ('=SUBSTITUTE(REPT("a",20000),"a","bb")', VALUE),
        ('=REPT("a",32768)', VALUE),
        ("=FIXED(12,128)", VALUE),
    ],
)
def test_lengths_of_texts(formula: str, value: Scalar) -> None:
    assert computed(Conversion(formula, None, "", {})) == value


@pytest.mark.parametrize("formula", ['=LEFT("\U0001f600",1)', '=CODE("\u03b1")'])
def test_half_characters_and_similar_ones_are_left_to_engines(formula: str) -> None:
    with pytest.raises(UnsureError):
        computed(Conversion(formula, None, "", {}))


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ('=_xlfn.TEXTJOIN(",",,"a","","b")', "a,b"),
        ('=_xlfn.TEXTJOIN(",",FALSE,"a","","b")', "a,,b"),
        ('=SUMPRODUCT(LEN(_xlfn.TEXTAFTER("a,b;c",{",",";"},2)))', 1),
        ('=_xlfn.ARRAYTOTEXT({1,"a";TRUE,#N/A})', "1, a, TRUE, #N/A"),
        ('=_xlfn.ARRAYTOTEXT({1,"a";TRUE,2},1)', '{1,"a";TRUE,2}'),
        ("=COUNTA(_xlfn.TRIMRANGE(A1:B9))", 2),
        ("=COUNTA(_xlfn.DROP(_xlfn.TAKE(A1:B9,5),1))", 1),
        ('=ADDRESS(2,3,,,"My Sheet")', "'My Sheet'!$C$2"),
        ('=ADDRESS(2,28,2,,"Data")', "Data!AB$2"),
        ('=ADDRESS(3,1,4,C9,"*b?u*")', "'*b?u*'!R[3]C[1]"),
        ("=ADDRESS(1,3,4,TRUE,C9)", "!C1"),
        ("=_xlfn.ARRAYTOTEXT({1,#N/A},0.9)", "1, #N/A"),
        ('=ADDRESS(2,3,4,FALSE,"Data")', "Data!R[2]C[3]"),
        ('=_xlfn.CONCAT({"a",1;TRUE,"b"},A1:A2)', "a1TRUEb0.10.2"),
        ('=SUMPRODUCT(COUNTIFS(A1:A2,A1:A3,A1:A2,"<"&{1;1;1}))', 2),
        ('=SUMPRODUCT(--(TEXT(ROW(INDIRECT(45292&":"&45322)),"ddd")="Mon"))', 5),
    ],
)
def test_joined_and_counted_arrays(formula: str, value: Scalar) -> None:
    data: dict[tuple[int, int], Scalar] = {(1, 1): 0.1, (2, 1): 0.2}
    assert computed(Conversion(formula, None, "", data)) == value


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ('=_xlfn.TEXTJOIN(",",TRUE,FREQUENCY({2;4;4;5;7;9;9;12},{4;4;9}))', "3,0,4,1"),
        ("=ROUND(IRR(A1:A4),6)", 0.130662),
        ("=XIRR({-100,110},{45658,45292})", ErrorValue("#NUM!")),
        ("=TTEST(A1:A4,B1:B3,2,1)", ErrorValue("#N/A")),
        ('=MONTH(1&"Sep")', 9),
        ('=DAY("Sep 3")', 3),
        ('=TEXT(TIME(0,0,59)+2,"d:hh:mm")', "2:00:00"),
        ("=SUM(B1:B3)=0", False),
        ("=SUM(A1:B2 A2:B3)", 60.2),
        ("=SUM(A1:A2 B1:B3)", ErrorValue("#NULL!")),
        ("=NPV(0.1,A3:A4,121)", 60 / 1.1 + 100),
        ("=NPV(0,{100,TRUE},)", 100),
        ("=NPV(-1,100)", DIV0),
        ("=FTEST(A1,B1:B3)", DIV0),
        ("=CHITEST(A1:A2,B1:B3)", NA),
        ("=BETAINV(0,2,3)", NUM),
        ("=_xlfn.HYPGEOM.DIST(6,5,8,20,TRUE)", NUM),
        ("=RECEIVED(45337,45566,1000,0.05)", 1000 / (1 - 0.05 * 226 / 360)),
        ("=PRICEDISC(45337,45566,0.05,100,3)", 100 - 5 * 229 / 365),
        ("=INTRATE(45337,45566,96,100,2)", 4 / 96 * 360 / 229),
        ("=ACCRINTM(45337,45566,0.06,,4)", 60 * 226 / 360),
        ("=ACCRINT(45352,45536,45444,0.1,,2)", 25),
    ],
)
def test_numbers_that_engines_read_otherwise(formula: str, value: Scalar) -> None:
    column: list[Scalar] = [-100, 60, True, 60]
    data = {(row, 1): paid for row, paid in enumerate(column, start=1)}
    data |= {(1, 2): 0.1, (2, 2): 0.2, (3, 2): -0.3}
    assert computed(Conversion(formula, None, "", data)) == value


@pytest.mark.parametrize(
    "formula",
    [
        "=IRR({1,1})",
        "=IRR({1,-1,1E300,-1E300},1E200)",
        "=XIRR({-100,110},{45292,45658})",
        "=TTEST(A1:A2,B1:B3,2,2)",
        "=CHITEST(A1:A2,B1:B2)",
        "=FTEST({1,2},{2,4})",
        "=BETAINV(1,2,3)",
        "=DISC(45351,45566,96,100)",  # from the end of a month
        "=DISC(45337,45566,96,100,1)",
        "=ACCRINT(45352,45536,45444,0.1,1000,2)",
        "=SUM(A1:A2 B1:INDEX(B1:B3,2))",
        '=DAY("Feb 29")',
    ],
)
def test_what_engines_agree_on_is_left_to_them(formula: str) -> None:
    with pytest.raises(UnsureError):
        computed(Conversion(formula, None, "", {}))


@pytest.mark.parametrize(
    "formula",
    [
        "=BAHTTEXT(101)",  # it is read in two ways
        "=BAHTTEXT(0.25)",
        '=_xlfn.ENCODEURL("it\'s")',
        "=DURATION(DATE(2018,7,2),DATE(2048,1,1),8%,9%,2,1)",
        "=DURATION(DATE(2018,6,30),DATE(2048,6,30),8%,9%,1)",
        "=MDURATION(DATE(2018,7,1),DATE(2019,7,1),0.08,0.09,1,7)",
    ],
)
def test_what_is_not_documented_of_them_is_left_to_engines(formula: str) -> None:
    with pytest.raises(UnsureError):
        computed(Conversion(formula, None, "", {}))
