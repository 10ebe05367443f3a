"""The table of how often each engine was right, and what a decision depends on."""

import itertools
from collections import defaultdict

import pytest

from benchmarks.evidence import Sample, fold_of, pair_word, tally, trust_data
from judge.formulas.shapes import Call, calls
from judge.recalc.names import EMBEDDED, LIBREOFFICE
from judge.recalc.trust import PAIR, read_table, trust_table
from judge.recalc.voting import VOTERS, is_settled, pattern, possible_votes, winner
from judge.workbook.cell import CellValue, ErrorValue

TABLE = read_table(
    {
        "measured_with": {"libreoffice": "26"},
        "functions": {
            "SUM": {"libreoffice": [99, 100], "pair": [50, 50]},
            "DAY": {"libreoffice": [1, 4], "pair": [2, 2]},
            "TEXT": {"pair": [49, 50]},
            "ROMAN": {"libreoffice": [5, 6, 0, 1]},
        },
        "shapes": {
            "TEXT(c,t)": {"pair": [30, 30]},
            "TEXT(c,c)": {"pair": [19, 20]},
        },
    }
)


@pytest.mark.parametrize(
    ("formula", "sure"),
    [
        ("=SUM(A1)", True),
        ("=A1", True),
        ("=SUM(DAY(A1))", False),
        ("=NEVER.SEEN(A1)", False),
        ("=TEXT(A1,B1,2)", False),
        ('=TEXT(A1,"0")', True),
        ("=TEXT(A1,B1)", False),
    ],
)
def test_the_pair_needs_enough_evidence_for_every_call(formula: str, sure: bool) -> None:
    assert TABLE.is_sure(PAIR, calls(formula)) is sure


def test_the_weakest_call_counts() -> None:
    def chance(formula: str) -> float:
        return TABLE.chance("libreoffice", calls(formula), is_error=False)

    assert chance("=SUM(DAY(A1))") == chance("=DAY(A1)") < 0.7 < chance("=SUM(A1)")
    assert 0.8 < chance("=NEVER.SEEN(A1)") < chance("=SUM(A1)")
    assert not TABLE.is_measured("libreoffice", calls("=NEVER.SEEN(A1)"))
    assert TABLE.is_measured("libreoffice", calls("=A1+1"))


def test_records_of_errors_say_nothing_about_values() -> None:
    (roman,) = calls("=ROMAN(A1)")
    assert TABLE.chance("libreoffice", [roman], is_error=False) > 0.9
    assert TABLE.chance("libreoffice", [roman], is_error=True) < 0.7


@pytest.mark.parametrize(
    ("formula", "shapes"),
    [
        ("=XLOOKUP(A1,B1:B9,C:C,,-1)", ["XLOOKUP(c,r,r,_,-1)"]),
        ('=COUNTIF(A1:A3,">="&B1)', ["&(c,t<)", "COUNTIF(r,x)"]),
        ('=COUNTIF(A1:A3,"a*")', ["COUNTIF(r,t*)"]),
        ("=COUNT(_xlfn._xlws.FILTER(A1:A3,B1:B3>1))", None),
        ("=SUM(A1#,{1,2},-A2,Rates,Table1[x])", ["SUM(s,k,x,m,m)"]),
        ("=CONCAT(A1,B1,C1,D1)", ["CONCAT(c+)"]),
        ("=A1", ["="]),
        ("=SUM((", ["SUM(x)"]),
    ],
)
def test_the_shape_of_arguments(formula: str, shapes: list[str] | None) -> None:
    found = [call.shape for call in calls(formula)]
    assert found == (shapes or [">[](n,r)", "COUNT[](X)", "FILTER[](r,X)"])


def test_array_formulas_and_intersections_have_separate_records() -> None:
    assert calls("=SUM(A1)", is_array=True) == (Call("SUM", "SUM(c){"), Call("{}", "{}"))
    assert calls("=SUM(A1)", intersects=True) == (Call("@", "@"), Call("SUM", "SUM(c)"))


def test_coverage_counts_functions() -> None:
    assert TABLE.coverage("libreoffice") == {"measured": 3, "trusted": 1}


def test_the_table_of_the_package_covers_every_engine_that_is_used_first() -> None:
    table = trust_table()
    for name in (LIBREOFFICE, *EMBEDDED[:2], PAIR):
        assert table.coverage(name)["trusted"] > 50
    assert table.is_sure(PAIR, calls("=IF(SUM(A1:A3)>1,1,COUNTIF(B1:B3,C1))"))
    assert not table.is_sure(PAIR, calls("=DATEVALUE(A1)"))  # texts that both take for dates


def test_a_mistake_counts_against_the_call_that_fails_most() -> None:
    lone, both = calls("=IF(A1,1,2)"), calls("=IF(A1,1,EOMONTH(A1,1))")
    samples = [Sample("a", "x", lone, False, 9, 9), Sample("a", "x", both, True, 0, 2)]
    functions, shapes = tally([*samples, Sample("b", "x", calls("=EOMONTH(A1,1)"), False, 0, 1)])
    assert functions == {"IF": {"x": [9, 9, 0, 0]}, "EOMONTH": {"x": [0, 3, 0, 2]}}
    assert shapes == {"IF(c,1,2)": {"x": [9, 9, 0, 0]}, "EOMONTH(c,1)": {"x": [0, 3, 0, 2]}}
    assert trust_data(samples, {})["functions"]["IF"] == {"x": [9, 9]}


def test_the_cases_of_a_task_are_in_one_fold() -> None:
    assert {fold_of(f"golds/{number}", 10) for number in range(99)} == set(range(10))
    assert fold_of("golds/1", 10) == fold_of("golds/1", 10)


def test_an_agreement_on_a_doubtful_error_does_not_count() -> None:
    assert pair_word(5, 5.0) == 5
    assert pair_word(5, 6) is None
    assert pair_word(None, None) is None
    assert pair_word(ErrorValue("#NAME?"), ErrorValue("#NAME?")) is None
    assert pair_word(ErrorValue("#N/A"), ErrorValue("#N/A")) == ErrorValue("#N/A")


VOTES: list[CellValue] = [
    *(0, 1, 1 + 1e-12, 2, 2 + 1e-12, 3.5, -4, True, False),
    *("", "a", "b", "1", ErrorValue("#N/A"), ErrorValue("#VALUE!"), ErrorValue("#NAME?")),
]


@pytest.mark.parametrize("formula", ["=SUM(A1)", "=TEXT(A1,B1)", "=SUM({1,2}*A1:A2)", "=DAY(,A1)"])
@pytest.mark.parametrize("instead", [None, 0, 2, "", "a"])
def test_votes_of_one_pattern_are_decided_alike(formula: str, instead: str | float | None) -> None:
    called = calls(formula)
    outcomes: dict[object, set[object]] = defaultdict(set)
    repeated = 0
    for names in itertools.chain.from_iterable(
        itertools.combinations(sorted(VOTERS), length) for length in (1, 2)
    ):
        missing = VOTERS - set(names)
        for given in itertools.product(VOTES, repeat=len(names)):
            votes = dict(zip(names, given, strict=True))
            key = names, pattern(votes, instead)
            repeated += key in outcomes
            settled = is_settled(votes, called, TABLE, missing, instead)
            winners = []
            for possible in possible_votes(votes, missing):
                elected = winner(possible, called, TABLE, instead)
                winners.append(elected and (tuple(elected.engines), round(elected.weight, 9)))
            outcomes[key].add((settled, tuple(winners)))
    assert repeated > 100
    assert all(len(each) == 1 for each in outcomes.values())
