"""The table of which engine is right where."""

from benchmarks.evidence import Sample, pair_word, tally
from judge.recalc.names import EMBEDDED, LIBREOFFICE
from judge.recalc.trust import PAIR, read_table, trust_table
from judge.workbook.cell import ErrorValue

TABLE = read_table(
    {
        "measured_with": {"libreoffice": "26"},
        "functions": {
            "SUM": {"libreoffice": [99, 100], "pair": [50, 50]},
            "DAY": {"libreoffice": [1, 4], "pair": [2, 2]},
            "TEXT": {"pair": [40, 50]},
        },
    }
)


def test_the_pair_needs_enough_evidence_for_every_function() -> None:
    assert TABLE.pair_is_sure({"SUM"})
    assert TABLE.pair_is_sure(set())
    assert not TABLE.pair_is_sure({"SUM", "DAY"})
    assert not TABLE.pair_is_sure({"TEXT"})
    assert not TABLE.pair_is_sure({"NEVER.SEEN"})


def test_the_weakest_function_counts() -> None:
    assert TABLE.share("libreoffice", {"SUM", "DAY"}) == 0.25
    assert TABLE.share("libreoffice", set()) == 1.0
    assert TABLE.share("libreoffice", {"NEVER.SEEN"}) == 0.0
    assert TABLE.weak("libreoffice", {"SUM", "DAY", "NEVER.SEEN"}) == {"DAY"}


def test_coverage_counts_functions() -> None:
    assert TABLE.coverage("libreoffice") == {"measured": 2, "trusted": 1}


def test_the_table_of_the_package_covers_every_engine_that_is_used_first() -> None:
    table = trust_table()
    for name in (LIBREOFFICE, *EMBEDDED[:2], PAIR):
        assert table.coverage(name)["trusted"] > 50
    assert table.pair_is_sure({"SUM", "IF", "COUNTIF"})
    assert not table.pair_is_sure({"DAY"})  # serials below 60


def test_a_mistake_is_laid_at_the_function_that_fails_most() -> None:
    samples = [Sample(frozenset({"IF"}), True)] * 9
    samples += [Sample(frozenset({"IF", "EOMONTH"}), False)] * 2
    assert tally(samples) == {"IF": [9, 9], "EOMONTH": [0, 2]}


def test_an_agreement_on_a_doubtful_error_is_none() -> None:
    assert pair_word(5, 5.0) == 5
    assert pair_word(5, 6) is None
    assert pair_word(None, None) is None
    assert pair_word(ErrorValue("#NAME?"), ErrorValue("#NAME?")) is None
    assert pair_word(ErrorValue("#N/A"), ErrorValue("#N/A")) == ErrorValue("#N/A")
