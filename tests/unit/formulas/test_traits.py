"""Traits of a formula's text that decide how it must be computed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.formulas.references import Reference, references
from judge.formulas.traits import DEPENDS_ON_MACHINE, NEAREST_OF_COMPUTED, UNBALANCED, traits


@pytest.mark.parametrize(
    "formula",
    [
        "=A1:A3",
        "=A1:A3*2",
        "=SUM(A1:A3*2)",
        "=SUM(IF(A1:A3>1,1,0))",
        "=LEN(A1:A3)",
        "=INDEX(A1:A9,MATCH(1,(B1:B9=1)*(C1:C9=2),0))",
        "=AND(A:A>1)",
        "=Table1[Col]",
        "='My Sheet'!A1:B2+1",
        "=1+A1:A3",
    ],
)
def test_a_range_where_one_value_is_expected_is_noticed(formula: str) -> None:
    assert traits(formula).array_sensitive


@pytest.mark.parametrize(
    "formula",
    [
        "=SUM(A1:A3)",
        "=SUMPRODUCT(A1:A3*2)",
        "=LOOKUP(2,1/(A1:A3=2),B1:B3)",
        "=INDEX(A:A,MATCH(1,B:B,0))",
        "=VLOOKUP(A1,$B$1:C9,2,FALSE)",
        '=SUMIFS(C:C,A:A,">"&B1)',
        '=IF(A1>1,B1,"A1:A3*2")',
        "=MAX(A1:A3)-MIN(B1:B3)",
        "=COUNTIF(A1:A3,B1)/2",
        "=_xlfn.XLOOKUP(A1,B:B,C:C)",
    ],
)
def test_a_range_in_its_place_is_not_an_array(formula: str) -> None:
    assert not traits(formula).array_sensitive


def test_functions_lose_their_prefixes_and_local_names() -> None:
    said = traits("=_xlfn.LET(_xlpm.x,1,_xlfn._xlws.FILTER(A1:A3,A1:A3>_xlpm.x)+sum(B1))")
    assert said.functions == {"LET", "FILTER", "SUM"}
    assert not said.unprefixed
    assert not said.names


def test_newer_functions_without_prefix_are_noticed() -> None:
    said = traits("=XLOOKUP(1,A:A,B:B)+IFERROR(STDEV.S(A1:A3),0)+_xlfn.CONCAT(A1)")
    assert said.unprefixed == {"XLOOKUP", "STDEV.S"}
    assert not said.unknown


def test_names_in_text_and_sheet_names_are_not_functions() -> None:
    said = traits("=IF(A1=\"XLOOKUP(1)\",'SUM(x'!B2,1)")
    assert said.functions == {"IF"}
    assert not said.unprefixed


def test_macros_names_and_other_workbooks_are_noticed() -> None:
    assert traits("=MYMACRO(A1)").unknown == {"MYMACRO"}
    assert traits("=Rate*2").names == {"RATE"}
    assert traits("=Rate*2").opaque
    assert traits("=[1]Data!A1").opaque
    assert traits("=INDIRECT(A1)").opaque
    assert not traits("=Sheet2!A1+TRUE").opaque


@pytest.mark.parametrize(
    ("formula", "logical"),
    [
        ("=A1>1", True),
        ("=NOT(A1)", True),
        ("=NOT(A1)*2", False),
        ("=IF(A1>1,2,3)", False),
        ("=ISNUMBER(A1)", True),
        ("=SUM(A1)=SUM(B1)", True),
        ("=--ISNUMBER(A1)", False),
    ],
)
def test_formulas_that_can_only_be_true_or_false(formula: str, logical: bool) -> None:
    assert traits(formula).logical is logical


def test_volatile_and_broken() -> None:
    assert traits("=TODAY()-A1").volatile == {"TODAY"}
    assert traits("=SUM(#REF!)").broken
    assert not traits('="#REF!"').broken


@pytest.mark.parametrize(
    ("formula", "computed"),
    [
        ('=MATCH(2,1/(A1:A9="x"))', True),
        ("=MATCH(2,(1/(B7=$B$1:B6)))", True),
        ("=MATCH(1,(A1:A9=1)*(B1:B9=2),0)", False),
        ("=MATCH(A1+1,B1:B9,0)", False),
        ("=MATCH(A1+1,B1:B9)", False),
        ("=MATCH(A1,B1:B9,1-1)", False),
    ],
)
def test_match_for_the_nearest_of_computed_values_counts_as_a_separate_function(
    formula: str, computed: bool
) -> None:
    assert (NEAREST_OF_COMPUTED in traits(formula).functions) is computed


def test_references_are_read_with_their_sheets() -> None:
    assert references("='It''s'!$B$2:A1+Sheet2!C3&\"D4\"") == (
        Reference("It's", 1, 1, 2, 2),
        Reference("Sheet2", 3, 3, 3, 3),
    )
    assert references("=SUM(B:A,3:2)") == (
        Reference(None, 1, 1, 1_048_576, 2),
        Reference(None, 2, 1, 3, 16_384),
    )
    assert references("=LOG10(5)+DEC2BIN(7)") == ()


@given(st.text(max_size=80))
def test_no_text_is_refused(text: str) -> None:
    traits(text)
    references(text)


@pytest.mark.parametrize(
    ("formula", "why"),
    [
        ('=CELL("filename",A1)', DEPENDS_ON_MACHINE),
        ('=MID(CELL( "FileName" ),FIND("]",A1),31)', DEPENDS_ON_MACHINE),
        ("=CELL(A1)", DEPENDS_ON_MACHINE),
        ('=CELL("file"&"name")', DEPENDS_ON_MACHINE),
        ('=CELL("row",A1)', ""),
        ('=CELL("Width")', ""),
        ('=INFO("osversion")', DEPENDS_ON_MACHINE),
        ("=SUM(", UNBALANCED),
        ("=SUM((1,2)", UNBALANCED),
        ('=SUM(1,")")', ""),
        ("=SUM(1)", ""),
        ('=SUM({1,2})&"("', ""),
        ("='a(b'!A1", ""),
        ("=SUM(Table1[Amount (net)])", ""),
    ],
)
def test_some_values_cannot_be_known(formula: str, why: str) -> None:
    assert traits(formula).valueless == why


@pytest.mark.parametrize(
    ("formula", "spans_sheets", "intersects"),
    [
        ("=SUM(Jan:Mar!B2)", True, False),
        ("=SUM('[1]Jan'!B2)", False, False),
        ("=SUM(A1:B2 B1:C9)", False, True),
        ("=SUM(A:A 2:2)", False, True),
        ("=SUM(A1:A9 (A2:C3))", False, True),
        ("=A1:B2 Sheet2!A1", False, True),
        ('=IF(A1 > 0,"yes (now)","no A1")', False, False),
        ("='b A1 (x)'!C1 + SUM (A1:A2)", False, False),
        ('="Jan:Mar!"&A1', False, False),
    ],
)
def test_ranges_of_sheets_and_intersections_are_noticed_outside_texts(
    formula: str, spans_sheets: bool, intersects: bool
) -> None:
    found = traits(formula)
    assert (found.spans_sheets, found.intersects) == (spans_sheets, intersects)
