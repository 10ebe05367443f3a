"""Values that no missing engine can change, checked against every vote that it might give."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from judge.formulas.shapes import Call, calls
from judge.recalc.agreement import same_value
from judge.recalc.names import LIBREOFFICE
from judge.recalc.trust import PAIR, PAIR_ENGINES, Record, TrustTable
from judge.recalc.voting import VOTERS, Votes, is_settled, possible_votes, winner
from judge.workbook.cell import CellValue, ErrorValue

FORMULAS = ("=SUM(A1:A9)", "=XLOOKUP(A1,B:B,C:C,,-1)", "=SUM(A1:A9*2)", "=A1+1", "=LEFT(A1,,2)")
SAID: Sequence[CellValue] = (
    *(0, 1, True, False, 1.0, 5, 5.0000000000001, "x", ""),
    *(ErrorValue("#N/A"), ErrorValue("#VALUE!"), ErrorValue("#NUM!")),
)


def table(chance: random.Random) -> TrustTable:
    """Records of some functions and shapes, right more or less often."""

    def records() -> dict[str, Record]:
        names = [name for name in (*sorted(VOTERS), PAIR) if chance.random() < 0.8]
        found = {}
        for name in names:
            total, errors = chance.randrange(1, 40), chance.randrange(0, 6)
            right = chance.choice((total, total, chance.randrange(0, total + 1)))
            right_errors = chance.randrange(0, errors + 1)
            found[name] = Record(right + right_errors, total + errors, right_errors, errors)
        return found

    called = [call for formula in FORMULAS for call in calls(formula)]
    return TrustTable(
        {call.function: records() for call in called if chance.random() < 0.8},
        {call.shape: records() for call in called if chance.random() < 0.6},
        {},
    )


def settled(
    votes: Votes, called: tuple[Call, ...], trust: TrustTable, instead: CellValue
) -> list[bool]:
    """Whether the value is settled, for each set of missing engines; checked with all votes."""
    absent = sorted(VOTERS - votes.keys())
    found = []
    for missing in {frozenset(absent), *(frozenset((name,)) for name in absent)} - {frozenset()}:
        found.append(is_settled(votes, called, trust, missing, instead))
        if not found[-1]:
            continue
        first = winner(votes, called, trust, instead)
        assert first is not None
        for possible in possible_votes(votes, missing):
            other = winner(possible, called, trust, instead)
            assert other is not None, (votes, possible, called)
            assert same_value(first.value, other.value), (votes, possible, called)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_a_settled_value_stays_the_same_with_every_possible_vote(seed: int) -> None:
    chance = random.Random(seed)
    found: list[bool] = []
    for _ in range(250):
        trust = table(chance)
        called = calls(chance.choice(FORMULAS), is_array=chance.random() < 0.2)
        names = chance.sample(sorted(VOTERS), chance.choice((1, 2, 2, 2)))
        few = chance.sample(SAID, 2)
        votes = {name: chance.choice(few) for name in names}
        found += settled(votes, called, trust, chance.choice((None, None, 0, "x")))
    assert 0.05 < sum(found) / len(found) < 0.95


NUM, VALUE, REF = (ErrorValue(code) for code in ("#NUM!", "#VALUE!", "#REF!"))


@pytest.mark.parametrize(
    ("quick", "office", "taken"),
    [
        (NUM, 5, NUM),
        (NUM, VALUE, NUM),
        (VALUE, REF, VALUE),
        (VALUE, 5, 5),
        (REF, 5, 5),
    ],
)
def test_an_error_of_both_quick_engines_counts_more_than_the_answer_of_libreoffice(
    quick: CellValue, office: CellValue, taken: CellValue
) -> None:
    measured = {LIBREOFFICE: Record(90, 90, 30, 30)}
    trust = TrustTable({"ABS": measured}, {}, {})
    votes = {LIBREOFFICE: office, **dict.fromkeys(PAIR_ENGINES, quick)}
    chosen = winner(votes, calls("=ABS(A1)"), trust)
    assert chosen is not None
    assert chosen.value == taken


def test_errors_that_were_mostly_wrong_do_not_count_more() -> None:
    wrong = Record(2, 9, 2, 9)
    trust = TrustTable({"ABS": {LIBREOFFICE: Record(9, 9), PAIR_ENGINES[0]: wrong}}, {}, {})
    votes: dict[str, CellValue] = {LIBREOFFICE: 5, **dict.fromkeys(PAIR_ENGINES, NUM)}
    chosen = winner(votes, calls("=ABS(A1)"), trust)
    assert chosen is not None
    assert chosen.value == 5


def test_a_value_is_not_settled_while_both_quick_engines_may_refuse_it() -> None:
    trust = TrustTable({"ABS": {LIBREOFFICE: Record(90, 90)}}, {}, {})
    called = calls("=ABS(A1)")
    first, second = PAIR_ENGINES
    assert not is_settled({LIBREOFFICE: 5, first: NUM}, called, trust, {second})
    assert is_settled({LIBREOFFICE: 5, first: 5}, called, trust, {second})
