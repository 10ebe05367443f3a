"""Whose word is taken for which cell."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import pytest

from judge.errors import RecalcError
from judge.recalc.agreement import same_value
from judge.recalc.asking import Question
from judge.recalc.cascade import Cascade, CascadeResult
from judge.recalc.contract import (
    PLAIN,
    Dialect,
    Engine,
    EngineResult,
    EngineUnavailableError,
    Patience,
)
from judge.recalc.dependency import FormulaIndex, dependencies
from judge.recalc.trust import TrustTable, read_table
from judge.workbook.cell import Cell, CellRange, CellRef, CellValue, ErrorValue
from tests.unit.recalc.fakes import SHEET, ScriptedEngine, ref

SURE = {"libreoffice": [9, 9], "ironcalc": [9, 9], "formualizer": [9, 9], "pair": [9, 9]}
UNSURE = {"libreoffice": [9, 9], "ironcalc": [9, 9], "formualizer": [9, 9], "pair": [5, 9]}
OFFICE_WRONG = {"libreoffice": [1, 9], "ironcalc": [1, 9], "formualizer": [9, 9]}
NOBODY = {"libreoffice": [1, 9], "ironcalc": [1, 9], "formualizer": [1, 9]}

TRUST = read_table(
    {
        "measured_with": {},
        "functions": {"SUM": SURE, "TEXT": UNSURE, "DAY": OFFICE_WRONG, "CELL": NOBODY},
    }
)

NA = ErrorValue("#N/A")
NUM = ErrorValue("#NUM!")
VALUE = ErrorValue("#VALUE!")
NAME = ErrorValue("#NAME?")
REF = ErrorValue("#REF!")


def ask(
    formula: str,
    *,
    trust: TrustTable = TRUST,
    failed: Mapping[str, str] | None = None,
    array_range: str | None = None,
    intersects: bool = False,
    **words: CellValue | BaseException,
) -> tuple[CellValue | str, CascadeResult, dict[str, ScriptedEngine]]:
    """One formula in A1, with what each engine says of it."""
    cell = Cell(1, 1, None, formula=formula, array_range=array_range)
    index = FormulaIndex([SHEET], lambda _: [cell])
    engines = {
        name: ScriptedEngine(name, word if isinstance(word, BaseException) else {ref(1): word})
        for name, word in words.items()
    }
    for name, why in (failed or {}).items():
        engines[name] = ScriptedEngine(name, {}, {ref(1): why})
    intersecting = frozenset({ref(1)} if intersects else ())
    rests_on = dependencies([(SHEET, cell)], index)
    question = Question(b"", {ref(1): formula}, rests_on, PLAIN, 30.0, intersecting)
    outcome = Cascade(list(engines.values()), trust).compute(question)
    found = outcome.values.get(ref(1), outcome.failed.get(ref(1), ""))
    return found, outcome, engines


def test_where_the_pair_is_sure_libreoffice_is_not_asked() -> None:
    value, outcome, engines = ask("=SUM(A2:A3)", libreoffice=9, ironcalc=5, formualizer=5.0)
    assert value == 5
    assert outcome.used == {"ironcalc", "formualizer"}
    assert engines["libreoffice"].asked == []


@pytest.mark.parametrize(
    ("formula", "array_range"),
    [
        ("=TEXT(A2,A3)", None),  # the pair was wrong there
        ("=TRIM(A2)", None),  # never measured
        ("=SUM(A2:A3*2)", None),
        ("=SUM(A2:A3)", "A1"),
        ("=SUM(Rates)", None),
        ("=SUM(A2,TODAY())", None),
        ("=SUM(MYMACRO(A2))", None),
    ],
)
def test_elsewhere_libreoffice_is_believed(formula: str, array_range: str | None) -> None:
    value, outcome, engines = ask(
        formula, array_range=array_range, libreoffice=9, ironcalc=5, formualizer=5
    )
    assert value == 9
    assert outcome.used == {"libreoffice"}
    assert "engines disagree in S!A1: libreoffice 9, formualizer 5; took" in outcome.notes[0]
    # A second witness is asked only where it could matter.
    assert engines["ironcalc"].asked == []


def test_one_quick_engine_without_an_answer_is_worth_as_much_as_two() -> None:
    value, _, engines = ask(
        "=SUM(A2:A3)", libreoffice=9, formualizer=RecalcError("too long"), ironcalc=5
    )
    assert value == 9
    assert engines["ironcalc"].asked == []


def test_a_second_opinion_that_does_not_come_leaves_the_outcome_open() -> None:
    value, outcome, _ = ask(
        "=DAY(A2)", libreoffice=9, formualizer=RecalcError("too long"), ironcalc=9
    )
    assert value == 9
    assert not outcome.complete


def test_a_pair_that_disagrees_asks_libreoffice() -> None:
    value, _, engines = ask("=SUM(A2:A3)", libreoffice=6, ironcalc=5, formualizer=6)
    assert value == 6
    assert len(engines["libreoffice"].asked) == 1


def test_an_error_that_may_be_a_gap_of_the_pair_asks_libreoffice() -> None:
    value, _, _ = ask("=SUM(A2:A3)", libreoffice=6, ironcalc=REF, formualizer=REF)
    assert value == 6
    value, _, engines = ask("=SUM(A2:A3)", libreoffice=6, ironcalc=NA, formualizer=NA)
    assert value == NA
    assert engines["libreoffice"].asked == []


def test_the_table_overrules_libreoffice() -> None:
    value, outcome, _ = ask("=DAY(A2)", libreoffice=4, ironcalc=4, formualizer=5)
    assert value == 5
    assert outcome.notes[0].endswith("took formualizer")


def test_a_value_of_libreoffice_never_gives_way_to_an_error() -> None:
    value, _, _ = ask("=DAY(A2)", libreoffice=4, ironcalc=NUM, formualizer=NUM)
    assert value == 4
    value, _, _ = ask("=DAY(A2)", libreoffice=NA, ironcalc=NUM, formualizer=5)
    assert value == 5


def test_a_table_without_a_better_engine_leaves_libreoffice() -> None:
    value, _, _ = ask("=CELL(A2)", libreoffice=4, ironcalc=5, formualizer=5)
    assert value == 4


def test_libreoffice_has_fewer_errors_than_excel() -> None:
    value, _, _ = ask("=TEXT(A2,1)", libreoffice=VALUE, ironcalc=NUM, formualizer=NUM)
    assert value == NUM
    value, _, _ = ask("=TEXT(A2,1)", libreoffice=VALUE, ironcalc=NUM, formualizer=7)
    assert value == VALUE
    value, _, _ = ask("=Rates(A2,1)", libreoffice=NA, ironcalc=NAME, formualizer=NAME)
    assert value == NA


def test_true_is_not_lost_to_a_number_format() -> None:
    value, outcome, _ = ask("=TEXT(A2,1)", libreoffice=1, ironcalc=True, formualizer=True)
    assert value is True
    assert outcome.notes == []


def test_an_unknown_name_is_a_gap_of_the_engine_unless_excel_does_not_know_it() -> None:
    value, _, _ = ask("=TEXT(A2,1)", libreoffice=NAME, ironcalc="x", formualizer="x")
    assert value == "x"
    value, _, _ = ask("=MYMACRO(A2)", libreoffice=NAME, ironcalc=NAME, formualizer=NAME)
    assert value == NAME
    value, _, _ = ask("=Rates+1", libreoffice=NAME, ironcalc=NAME, formualizer=NAME)
    assert value == NAME


def test_a_broken_reference_is_ref() -> None:
    value, _, _ = ask("=TEXT(#REF!,1)", libreoffice=NAME, ironcalc=NUM, formualizer=VALUE)
    assert value == REF


def test_what_libreoffice_cannot_the_others_may() -> None:
    value, outcome, _ = ask(
        "=TEXT(A2,1)", failed={"libreoffice": "Err:509"}, ironcalc="x", formualizer="x"
    )
    assert value == "x"
    assert outcome.used == {"ironcalc", "formualizer"}


def test_without_libreoffice_two_must_agree_or_one_be_good() -> None:
    assert ask("=CELL(A2)", ironcalc=1, formualizer=1)[0] == 1
    assert ask("=DAY(A2)", ironcalc=4, formualizer=5)[0] == 5
    value, outcome, _ = ask("=CELL(A2)", ironcalc=4, formualizer=5)
    assert value == "ironcalc says 4; formualizer says 5 (CELL)"
    assert outcome.values == {}


def test_where_excel_intersects_the_quick_engines_are_not_believed() -> None:
    value, _, _ = ask("=SUM(A2:A3*2)", intersects=True, ironcalc=1, formualizer=1)
    assert str(value).startswith("Excel takes one cell of a range here")
    value, _, _ = ask("=SUM(A2:A3*2)", intersects=True, libreoffice=7, ironcalc=1, formualizer=1)
    assert value == 7
    value, _, _ = ask("=DAY(A2:A3)", intersects=True, libreoffice=VALUE, formualizer=1)
    assert value == VALUE


def test_an_engine_alone_is_taken_at_its_word() -> None:
    assert ask("=CELL(A2)", ironcalc=4)[0] == 4
    assert ask("=CELL(A2)", ironcalc=NAME)[0] == "ironcalc says #NAME? (CELL)"


def test_the_slow_engine_is_asked_last_and_only_where_it_is_needed() -> None:
    value, _, engines = ask("=CELL(A2)", ironcalc=4, formualizer=5, formulas=4)
    assert value == 4
    _, _, engines = ask("=SUM(A2)", ironcalc=4, formualizer=4, formulas=9)
    assert engines["formulas"].asked == []


def test_an_engine_that_falls_over_on_a_workbook_is_passed_by() -> None:
    value, outcome, _ = ask(
        "=SUM(A2)", libreoffice=4, ironcalc=RecalcError("ironcalc: boom"), formualizer=4
    )
    assert value == 4
    assert outcome.complete
    value, outcome, _ = ask("=CELL(A2)", ironcalc=RecalcError("ironcalc: boom"))
    assert value == "ironcalc: boom (CELL)"
    assert not outcome.complete


def test_a_quick_engine_that_was_slow_is_asked_again_only_where_it_matters() -> None:
    slow = RecalcError("ironcalc: took longer")
    _, _, engines = ask("=SUM(A2)", libreoffice=4, ironcalc=slow, formualizer=4)
    assert len(engines["ironcalc"].asked) == 1
    _, outcome, engines = ask("=SUM(A2)", libreoffice=VALUE, ironcalc=slow, formualizer=4)
    assert len(engines["ironcalc"].asked) == 2
    assert not outcome.complete


def test_an_engine_that_cannot_be_started_is_our_fault() -> None:
    with pytest.raises(EngineUnavailableError):
        ask("=SUM(A2)", libreoffice=EngineUnavailableError("gone"), ironcalc=1)


def test_every_cell_is_accounted_for_and_notes_are_bounded() -> None:
    cells = [Cell(row, 1, None, formula="=TEXT(B1,1)") for row in range(1, 31)]
    index = FormulaIndex([SHEET], lambda _: cells)
    refs: list[CellRef] = [ref(cell.row) for cell in cells]
    engines = [
        ScriptedEngine("libreoffice", dict.fromkeys(refs[:20], 1)),
        ScriptedEngine("ironcalc", dict.fromkeys(refs[:20], 2)),
    ]
    question = Question(
        b"",
        dict.fromkeys(refs, "=TEXT(B1,1)"),
        dependencies([(SHEET, cell) for cell in cells], index),
        PLAIN,
        30.0,
    )
    outcome = Cascade(engines, TRUST).compute(question)
    assert set(outcome.values) | set(outcome.failed) == set(refs)
    assert len(outcome.values) == 20
    assert outcome.notes[-1] == "engines disagree in 15 more cells"


def test_values_that_differ_in_the_last_digits_are_the_same() -> None:
    assert same_value(0.1 + 0.2, 0.3)
    assert same_value(5, 5.0)
    assert not same_value(1, True)
    assert not same_value(1, "1")
    assert not same_value(NA, "#N/A")


class SlowEngine(ScriptedEngine):
    """Takes all the time that it is given, and has no answer then."""

    def compute(
        self,
        workbook: bytes,
        ranges: Sequence[CellRange],
        *,
        timeout_s: float,
        dialect: Dialect = PLAIN,
    ) -> EngineResult:
        time.sleep(timeout_s)
        return super().compute(workbook, ranges, timeout_s=timeout_s, dialect=dialect)


def test_the_slowest_engine_is_not_asked_where_a_faster_one_ran_out_of_time() -> None:
    slow = SlowEngine("libreoffice", RecalcError("took longer"))
    last = ScriptedEngine("formulas", {ref(1): 1})
    cell = Cell(1, 1, None, formula="=CELL(A2)")
    rests_on = dependencies([(SHEET, cell)], FormulaIndex([SHEET], lambda _: [cell]))
    question = Question(b"", {ref(1): "=CELL(A2)"}, rests_on, PLAIN, timeout_s=0.01)
    outcome = Cascade([slow, last], TRUST).compute(question)
    assert last.asked == []
    assert "took longer" in outcome.failed[ref(1)]


class Teamed(ScriptedEngine):
    """Computes with another engine in one go; that one's answer is given here."""

    def __init__(
        self, name: str, values: Mapping[CellRef, CellValue], then: EngineResult | RecalcError
    ) -> None:
        super().__init__(name, values)
        self.then = then

    def is_teamed_with(self, other: Engine) -> bool:
        return other.name == "ironcalc"

    def compute_both(
        self,
        second: Engine,
        workbook: bytes,
        ranges: Sequence[CellRange],
        *,
        timeout_s: float,
        patience: Patience,
        dialect: Dialect = PLAIN,
    ) -> tuple[EngineResult, EngineResult | RecalcError]:
        assert patience.limit_s(timeout_s) >= timeout_s
        return self.compute(workbook, ranges, timeout_s=timeout_s, dialect=dialect), self.then


@pytest.mark.parametrize(
    ("then", "expected", "used"),
    [
        (EngineResult({ref(1): 7}, {}, 0.0), 7, {"formualizer", "ironcalc"}),
        (EngineResult({ref(1): 8}, {}, 0.0), 9, {"libreoffice"}),
        (RecalcError("took longer"), 9, {"libreoffice"}),
    ],
)
def test_two_engines_of_a_team_are_asked_in_one_go(
    then: EngineResult | RecalcError, expected: int, used: set[str]
) -> None:
    cell = Cell(1, 1, None, formula="=SUM(B1)")
    rests_on = dependencies([(SHEET, cell)], FormulaIndex([SHEET], lambda _: [cell]))
    other = ScriptedEngine("ironcalc", AssertionError("asked by itself"))
    engines = [
        Teamed("formualizer", {ref(1): 7}, then),
        other,
        ScriptedEngine("libreoffice", {ref(1): 9}),
    ]
    question = Question(b"", {ref(1): "=SUM(B1)"}, rests_on, PLAIN, 30.0)
    outcome = Cascade(engines, TRUST).compute(question)
    assert (outcome.values[ref(1)], outcome.used) == (expected, used)
    assert not other.asked


def test_a_second_engine_that_cannot_be_started_is_our_fault() -> None:
    cell = Cell(1, 1, None, formula="=SUM(B1)")
    rests_on = dependencies([(SHEET, cell)], FormulaIndex([SHEET], lambda _: [cell]))
    engines = [
        Teamed("formualizer", {ref(1): 7}, EngineUnavailableError("no room")),
        ScriptedEngine("ironcalc", {}),
        ScriptedEngine("libreoffice", {ref(1): 9}),
    ]
    question = Question(b"", {ref(1): "=SUM(B1)"}, rests_on, PLAIN, 30.0)
    with pytest.raises(EngineUnavailableError, match="no room"):
        Cascade(engines, TRUST).compute(question)
