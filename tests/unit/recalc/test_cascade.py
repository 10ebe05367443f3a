"""Which engine's value is taken for which cell."""

from __future__ import annotations

import functools
import io
import itertools
import json
import struct
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from judge.core.submission import Origin
from judge.errors import RecalcError
from judge.recalc.agreement import same_value
from judge.recalc.asking import LATE_SHARE, SECOND_OPINION_S
from judge.recalc.cascade import Cascade
from judge.recalc.contract import (
    PLAIN,
    CascadeResult,
    CrashedError,
    Dialect,
    Engine,
    EngineRequest,
    EngineResult,
    EngineUnavailableError,
    OutOfTimeError,
)
from judge.recalc.policy import Recalculator
from judge.recalc.service import read_answer
from judge.recalc.services.children import ReadyChild
from judge.recalc.services.common import Answer, Request
from judge.recalc.services.folders import TemporaryFolder
from judge.recalc.support import Reads
from judge.recalc.trust import TrustTable, read_table
from judge.workbook.cell import Cell, CellRange, CellRef, CellValue, ErrorValue
from judge.workbook.dependency import Dependencies, FormulaIndex, dependencies
from tests.unit.recalc.fakes import ALL, SHEET, ScriptedEngine, package, ref, workbook

pytestmark = pytest.mark.slow

SURE = {"libreoffice": [9, 9], "ironcalc": [9, 9], "formualizer": [9, 9], "pair": [9, 9]}
UNSURE = {"libreoffice": [9, 9], "ironcalc": [9, 9], "formualizer": [9, 9], "pair": [5, 9]}
OFFICE_WRONG = {"libreoffice": [1, 9], "ironcalc": [1, 9], "formualizer": [9, 9]}
OFFICE_RIGHT = {"libreoffice": [9, 9], "ironcalc": [9, 9], "formualizer": [1, 9]}
INTERSECTED = {"libreoffice": [9, 9], "ironcalc": [1, 9], "formualizer": [1, 9]}
NOBODY = {"libreoffice": [1, 9], "ironcalc": [1, 9], "formualizer": [1, 9]}

TRUST = read_table(
    {
        "measured_with": {},
        "functions": {
            "SUM": SURE,
            "TEXT": UNSURE,
            "DAY": OFFICE_WRONG,
            "MONTH": OFFICE_RIGHT,
            "BAHTTEXT": NOBODY,
            "@": INTERSECTED,
        },
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
    """Computes one formula in A1, given each engine's value for it."""
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
    request = EngineRequest(b"", {ref(1): formula}, rests_on, PLAIN, 30.0, intersecting)
    outcome = Cascade(list(engines.values()), trust).compute(request)
    found = outcome.values.get(ref(1), outcome.failed.get(ref(1), ""))
    return found, outcome, engines


def test_if_the_pair_is_sure_libreoffice_is_not_asked() -> None:
    value, outcome, engines = ask("=SUM(A2:A3)", libreoffice=9, ironcalc=5, formualizer=5.0)
    assert value == 5
    assert outcome.used == {"ironcalc", "formualizer"}
    assert engines["libreoffice"].asked == []


@pytest.mark.parametrize(
    ("formula", "array_range"),
    [
        ("=TEXT(A2,A3)", None),  # the pair was wrong there
        ("=TRIM(A2)", None),  # never measured
        ("=SUM(A2:A3)", "A1"),
        ("=SUM(Rates)", None),
        ("=SUM(A2,TODAY())", None),
        ("=SUM(MYMACRO(A2))", None),
    ],
)
def test_otherwise_libreoffice_is_asked_and_two_of_three_decide(
    formula: str, array_range: str | None
) -> None:
    value, outcome, engines = ask(
        formula, array_range=array_range, libreoffice=9, ironcalc=5, formualizer=5
    )
    assert value == 5
    assert outcome.used == {"formualizer", "ironcalc"}
    assert (
        "engines disagree in S!A1: libreoffice 9, formualizer 5, ironcalc 5; took"
        in (outcome.notes[0])
    )
    assert len(engines["libreoffice"].asked) == 1


@pytest.mark.parametrize("formula", ["=SUM(A2:A3)", "=TRIM(A2)", "=BAHTTEXT(A2)"])
def test_no_value_is_taken_by_default(formula: str) -> None:
    late = RecalcError("too long")
    value, outcome, engines = ask(formula, libreoffice=9, formualizer=late, ironcalc=5)
    assert str(value).startswith("libreoffice says 9; too long; ironcalc says 5")
    assert outcome.values == {}
    assert len(engines["ironcalc"].asked) == 1


def test_one_engine_that_was_never_measured_is_not_enough() -> None:
    gone = RecalcError("cannot open it")
    assert ask("=TRIM(A2)", libreoffice=9, ironcalc=gone, formualizer=gone)[1].values == {}
    assert ask("=TEXT(A2,1)", libreoffice=9, ironcalc=gone, formualizer=gone)[0] == 9
    assert ask("=TRIM(A2)", libreoffice=9, ironcalc=9, formualizer=gone)[0] == 9


def test_a_small_record_does_not_decide_against_two_others() -> None:
    few = read_table(
        {
            "measured_with": {},
            "functions": {
                "SUM": SURE,
                "ROMAN": {"libreoffice": [5, 6], "ironcalc": [6, 6], "formualizer": [6, 6]},
            },
        }
    )
    value, _, _ = ask("=ROMAN(A2,1)", trust=few, libreoffice="a", ironcalc="a", formualizer="b")
    assert value == "a"


def test_records_depend_on_the_shape_of_the_arguments() -> None:
    shaped = read_table(
        {
            "measured_with": {},
            "functions": {
                "COUNT": {"libreoffice": [10, 10], "ironcalc": [20, 20]},
                "COUNT[]": {"libreoffice": [10, 10], "ironcalc": [0, 10]},
            },
            "shapes": {
                "COUNT(r)": {"libreoffice": [10, 10], "ironcalc": [20, 20]},
                "COUNT[](X)": {"libreoffice": [10, 10], "ironcalc": [0, 10]},
            },
        }
    )
    assert ask("=COUNT(A2:A9*1)", trust=shaped, libreoffice=3, ironcalc=0)[0] == 3
    assert ask("=COUNT(A2:A9)", trust=shaped, ironcalc=0, formualizer=NAME)[0] == 0
    assert ask("=COUNT(A2:A9*1)", trust=shaped, ironcalc=0, formualizer=NAME)[1].values == {}


def test_the_pair_has_one_vote_if_a_function_gets_an_array() -> None:
    formula = "=SUMPRODUCT(SUMIFS(B2:B9,A2:A9,C2:C3))"
    alike = [50, 50]
    engines = ("libreoffice", "ironcalc", "formualizer", "pair")
    functions = {name: dict.fromkeys(engines, alike) for name in ("SUMIFS", "SUMPRODUCT[]")}
    without = read_table({"measured_with": {}, "functions": functions})
    value, outcome, _ = ask(formula, trust=without, libreoffice=9, ironcalc=5, formualizer=5)
    assert outcome.values == {}
    assert str(value).startswith("libreoffice says 9; ironcalc says 5; formualizer says 5")
    assert ask(formula, trust=without, libreoffice=9, ironcalc=5, formualizer=9)[0] == 9
    office = {"libreoffice": alike, "ironcalc": [2, 6], "formualizer": [2, 6], "pair": [2, 6]}
    with_records = read_table({"measured_with": {}, "functions": {**functions, "SUMIFS[]": office}})
    value, _, _ = ask(formula, trust=with_records, libreoffice=9, ironcalc=5, formualizer=5)
    assert value == 9


def test_what_iferror_gives_instead_counts_as_an_error() -> None:
    values_alone = {"libreoffice": [40, 40], "ironcalc": [40, 60, 0, 20]}
    trust = read_table(
        {"measured_with": {}, "functions": {"IFERROR": values_alone, "DAY": values_alone}}
    )
    assert ask("=IFERROR(DAY(A2),0)", trust=trust, libreoffice=3, ironcalc=0)[0] == 3
    assert ask("=IFERROR(DAY(A2),0)", trust=trust, libreoffice=0, ironcalc=3)[0] == 3


def test_a_value_on_which_all_agree_is_taken_whatever_their_records() -> None:
    poor = {"libreoffice": [2, 9], "ironcalc": [2, 9], "formualizer": [2, 9]}
    trust = read_table({"measured_with": {}, "functions": {"CHAR": poor}})
    assert ask("=CHAR(A2)", trust=trust, libreoffice="a", ironcalc="a", formualizer="a")[0] == "a"
    assert (
        ask("=CHAR(A2)", trust=trust, libreoffice="a", ironcalc="b", formualizer="a")[1].values
        == {}
    )


def test_an_overruled_engine_has_no_vote_in_cells_that_read_that_cell() -> None:
    cells = [Cell(1, 1, None, formula="=MONTH(B1)"), Cell(2, 1, None, formula="=SUM(A1)")]
    index = FormulaIndex([SHEET], lambda _: cells)
    formulas = {ref(cell.row): cell.formula or "" for cell in cells}
    # In both cells formualizer is alone; its record with SUM is as good as the others'.
    words: dict[str, dict[CellRef, CellValue]] = {
        "libreoffice": {ref(1): 5, ref(2): 5},
        "formualizer": {ref(1): 6, ref(2): 6},
    }
    for wanted in (None, {ref(2)}):
        request = EngineRequest(
            b"",
            formulas,
            dependencies([(SHEET, cell) for cell in cells], index),
            PLAIN,
            30.0,
            wanted=wanted,
        )
        engines = [ScriptedEngine(name, values) for name, values in words.items()]
        outcome = Cascade(engines, TRUST).compute(request)
        assert outcome.values == dict.fromkeys(wanted or formulas, 5)


def test_a_missing_second_opinion_leaves_the_outcome_open() -> None:
    value, outcome, _ = ask(
        "=TEXT(A2,1)", libreoffice=9, formualizer=RecalcError("too long"), ironcalc=9
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


def test_an_error_where_an_argument_is_left_out_needs_a_record_of_that_shape() -> None:
    right = {name: [30, 30, 15, 15] for name in ("ironcalc", "formualizer", "pair", "libreoffice")}
    table = {"measured_with": {}, "functions": {"TEXTAFTER": right}}
    formula = "=TEXTAFTER(A2,A3,,0)"
    said: dict[str, Any] = {"libreoffice": "x", "ironcalc": VALUE, "formualizer": VALUE}
    assert ask("=TEXTAFTER(A2,A3,1,0)", trust=read_table(table), **said)[0] == VALUE
    assert ask(formula, trust=read_table(table), **said)[0] == "x"
    assert ask(formula, trust=read_table(table), **{**said, "libreoffice": VALUE})[0] == VALUE
    shapes = {"TEXTAFTER(c,c,_,0)": right}
    assert ask(formula, trust=read_table({**table, "shapes": shapes}), **said)[0] == VALUE


def test_errors_have_separate_records() -> None:
    quick = [9, 14, 0, 5]
    records = {"libreoffice": [9, 9], "ironcalc": quick, "formualizer": quick}
    wrong = read_table({"measured_with": {}, "functions": {"WEEKDAY": records}})
    value, _, _ = ask("=WEEKDAY(A2)", trust=wrong, libreoffice=4, ironcalc=NUM, formualizer=NUM)
    assert value == 4
    value, _, _ = ask("=WEEKDAY(A2)", trust=wrong, libreoffice=4, ironcalc=5, formualizer=5)
    assert value == 5
    value, _, _ = ask("=DAY(A2)", libreoffice=NA, ironcalc=NUM, formualizer=5)
    assert value == 5


def test_if_all_were_mostly_wrong_no_value_is_taken() -> None:
    value, outcome, _ = ask("=BAHTTEXT(A2)", libreoffice=4, ironcalc=5, formualizer=5)
    assert value == "libreoffice says 4; ironcalc says 5; formualizer says 5 (BAHTTEXT)"
    assert outcome.values == {}


def test_libreoffice_has_fewer_errors_than_excel() -> None:
    value, _, _ = ask("=TEXT(A2,1)", libreoffice=VALUE, ironcalc=NUM, formualizer=NUM)
    assert value == NUM
    value, _, _ = ask("=TEXT(A2,1)", libreoffice=VALUE, ironcalc=NUM, formualizer=7)
    assert value == 7
    value, _, _ = ask("=Rates(A2,1)", libreoffice=NA, ironcalc=NAME, formualizer=NAME)
    assert value == NAME


def test_true_is_kept_despite_a_number_format() -> None:
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


def test_a_name_that_one_engine_knows_is_a_gap_of_the_others() -> None:
    assert ask("=Rates+1", libreoffice=4, ironcalc=NAME, formualizer=NAME)[0] == 4
    _, outcome, _ = ask("=ROT13(A2)", libreoffice="n", ironcalc=NAME, formualizer=NAME)
    assert outcome.values == {}


def test_a_cell_may_contain_the_error_of_an_unknown_name() -> None:
    value, _, _ = ask("=SUM(#NAME?,1)", libreoffice=NAME, ironcalc=NAME, formualizer=NAME)
    assert value == NAME
    cells = {"A1": "=B1+1", "B1": "#NAME?", "A2": "=LN(B2)", "B2": 5}
    words = {ref(1): NAME, ref(2): NAME}
    engines = [ScriptedEngine(each, words) for each in ("libreoffice", "ironcalc", "formualizer")]
    book = workbook(cells)
    result = Recalculator(engines, trust=TRUST).fill(book, [ALL], origin=Origin.SOLUTION)
    assert result.values == {ref(1): NAME}
    assert list(result.not_calculated) == [ref(2)]


def test_an_array_without_elements_is_the_error_that_files_have() -> None:
    calc = ErrorValue("#CALC!")
    formula = "=_xlfn._xlws.FILTER(A2:A9,A2:A9>9)"
    assert ask(formula, ironcalc=calc, formualizer=calc)[0] == VALUE
    assert ask("=SUM(A2)", ironcalc=calc, formualizer=calc)[1].values == {}


def test_for_arrays_libreoffice_has_precedence_over_a_single_quick_engine() -> None:
    formula = "=IFERROR(SUMPRODUCT(A2:A9/B2:B9),0)"
    better = {"libreoffice": [9, 9], "ironcalc": [99, 99]}
    functions = dict.fromkeys(("/[]", "SUMPRODUCT[]", "IFERROR"), better)
    trust = read_table({"measured_with": {}, "functions": functions})
    assert ask(formula, trust=trust, libreoffice=7, ironcalc=9)[0] == 7
    assert ask("=DAY(A2)", trust=TRUST, libreoffice=7, formualizer=9)[0] == 9


def test_a_broken_reference_is_ref() -> None:
    value, _, _ = ask("=TEXT(#REF!,1)", libreoffice=NAME, ironcalc=REF, formualizer=VALUE)
    assert value == REF


def test_what_libreoffice_cannot_compute_others_may() -> None:
    value, outcome, _ = ask(
        "=TEXT(A2,1)", failed={"libreoffice": "Err:509"}, ironcalc="x", formualizer="x"
    )
    assert value == "x"
    assert outcome.used == {"ironcalc", "formualizer"}


def test_without_libreoffice_two_must_agree_or_one_have_a_good_record() -> None:
    assert ask("=TRIM(A2)", ironcalc=1, formualizer=1)[0] == 1
    assert ask("=DAY(A2)", ironcalc=4, formualizer=5)[0] == 5
    value, outcome, _ = ask("=BAHTTEXT(A2)", ironcalc=4, formualizer=5)
    unheard = "the value depends on what libreoffice, not available here, would compute"
    assert value == f"ironcalc says 4; formualizer says 5; {unheard} (BAHTTEXT)"
    assert outcome.values == {}
    assert outcome.complete  # it will not be otherwise in the next run


@pytest.mark.parametrize("absent", ["libreoffice", "ironcalc", "formualizer"])
def test_without_an_engine_no_value_is_different(absent: str) -> None:
    names = ("libreoffice", "ironcalc", "formualizer")
    formulas = ("=DAY(A2)", "=SUM(A2:A3)", "=BAHTTEXT(A2)", "=IFERROR(DAY(A2),2)")
    valued = 0
    for formula, *said in itertools.product(formulas, *((1, 2, VALUE, None),) * 3):
        words: dict[str, Any] = dict(zip(names, said, strict=True))
        _, complete, _ = ask(formula, **words)
        _, without, _ = ask(formula, **{name: words[name] for name in words if name != absent})
        valued += bool(without.values)
        if complete.values:
            assert without.values in ({}, complete.values), words
    assert valued


def test_without_an_engine_a_cell_without_a_value_is_not_used() -> None:
    cells = [Cell(1, 1, None, formula="=BAHTTEXT(B1)"), Cell(2, 1, None, formula="=SUM(A1)")]
    rests_on = dependencies([(SHEET, cells[1])], FormulaIndex([SHEET], lambda _: cells))
    formulas = {ref(cell.row): cell.formula or "" for cell in cells}
    request = EngineRequest(b"", formulas, rests_on, PLAIN, 30.0, wanted={ref(2)})
    engines = [
        ScriptedEngine("ironcalc", {ref(1): 4, ref(2): 0}),
        ScriptedEngine("formualizer", {ref(1): 5, ref(2): 0}),
    ]
    outcome = Cascade(engines, TRUST).compute(request)
    assert outcome.values == {}


def test_if_excel_intersects_the_quick_engines_have_no_vote() -> None:
    value, _, _ = ask("=SUM(A2:A3*2)", intersects=True, ironcalc=1, formualizer=1)
    assert str(value).startswith("Excel takes one cell of a range here")
    value, _, _ = ask("=SUM(A2:A3*2)", intersects=True, libreoffice=7, ironcalc=1, formualizer=1)
    assert value == 7
    value, _, _ = ask("=TEXT(A2:A3,1)", intersects=True, libreoffice=VALUE, formualizer=1)
    assert value == VALUE
    quick_right = {"libreoffice": [1, 99], "ironcalc": [99, 99], "formualizer": [99, 99]}
    trust = read_table({"measured_with": {}, "functions": {"MATCH": quick_right}})
    for formula, intersects, taken in (
        ("=MATCH(1,A2:A9,0)", False, 3),
        ("=MATCH(1,A2:A9&C1,0)", True, VALUE),
    ):
        value, _, _ = ask(
            formula,
            trust=trust,
            intersects=intersects,
            libreoffice=VALUE,
            ironcalc=3,
            formualizer=3,
        )
        assert value == taken


def test_a_single_engine_is_not_checked() -> None:
    assert ask("=BAHTTEXT(A2)", ironcalc=4)[0] == 4
    assert ask("=BAHTTEXT(A2)", ironcalc=NAME)[0] == "ironcalc says #NAME? (BAHTTEXT)"


def test_the_slow_engine_is_asked_last_and_only_if_needed() -> None:
    lacking = {"libreoffice": "Err:508"}
    value, _, engines = ask("=BAHTTEXT(A2)", failed=lacking, ironcalc=4, formualizer=5, formulas=4)
    assert value == 4
    _, _, engines = ask("=SUM(A2)", ironcalc=4, formualizer=4, formulas=9)
    assert engines["formulas"].asked == []


def test_an_engine_that_crashes_on_a_workbook_is_skipped() -> None:
    value, outcome, _ = ask(
        "=SUM(A2)", libreoffice=4, ironcalc=RecalcError("ironcalc: boom"), formualizer=4
    )
    assert value == 4
    assert outcome.complete
    value, outcome, _ = ask("=BAHTTEXT(A2)", ironcalc=RecalcError("ironcalc: boom"))
    assert value == "ironcalc: boom (BAHTTEXT)"
    assert not outcome.complete


def test_a_slow_quick_engine_is_asked_again_only_if_it_matters() -> None:
    slow = OutOfTimeError("ironcalc: took longer")
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
        ScriptedEngine("formualizer", dict.fromkeys(refs[:20], 2)),
    ]
    request = EngineRequest(
        b"",
        dict.fromkeys(refs, "=TEXT(B1,1)"),
        dependencies([(SHEET, cell) for cell in cells], index),
        PLAIN,
        30.0,
    )
    outcome = Cascade(engines, TRUST).compute(request)
    assert set(outcome.values) | set(outcome.failed) == set(refs)
    assert len(outcome.values) == 20
    assert outcome.notes[-1] == "engines disagree in 15 more cells"


def test_values_that_differ_in_the_last_digits_are_the_same() -> None:
    assert same_value(0.1 + 0.2, 0.3)
    assert same_value(5, 5.0)
    assert not same_value(1, True)
    assert not same_value(1, "1")
    assert not same_value(NA, "#N/A")


def test_the_slowest_engine_is_not_asked_if_a_faster_one_ran_out_of_time() -> None:
    slow = ScriptedEngine("libreoffice", OutOfTimeError("took longer"))
    last = ScriptedEngine("formulas", {ref(1): 1})
    cell = Cell(1, 1, None, formula="=BAHTTEXT(A2)")
    rests_on = dependencies([(SHEET, cell)], FormulaIndex([SHEET], lambda _: [cell]))
    request = EngineRequest(b"", {ref(1): "=BAHTTEXT(A2)"}, rests_on, PLAIN, timeout_s=0.01)
    outcome = Cascade([slow, last], TRUST).compute(request)
    assert last.asked == []
    assert "took longer" in outcome.failed[ref(1)]


class Teamed(ScriptedEngine):
    """Computes with another engine in one request; that engine's answer is given here."""

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
        dialect: Dialect = PLAIN,
    ) -> tuple[EngineResult, EngineResult | RecalcError]:
        return self.compute(workbook, ranges, timeout_s=timeout_s, dialect=dialect), self.then


@pytest.mark.parametrize(
    ("then", "expected", "used"),
    [
        (EngineResult({ref(1): 7}, {}, 0.0), 7, {"formualizer", "ironcalc"}),
        (EngineResult({ref(1): 9}, {}, 0.0), 9, {"libreoffice", "ironcalc"}),
        (RecalcError("took longer"), None, set()),
    ],
)
def test_two_engines_of_a_team_are_asked_in_one_request(
    then: EngineResult | RecalcError, expected: int | None, used: set[str]
) -> None:
    cell = Cell(1, 1, None, formula="=SUM(B1)")
    rests_on = dependencies([(SHEET, cell)], FormulaIndex([SHEET], lambda _: [cell]))
    other = ScriptedEngine("ironcalc", AssertionError("asked by itself"))
    engines = [
        Teamed("formualizer", {ref(1): 7}, then),
        other,
        ScriptedEngine("libreoffice", {ref(1): 9}),
    ]
    request = EngineRequest(b"", {ref(1): "=SUM(B1)"}, rests_on, PLAIN, 30.0)
    outcome = Cascade(engines, TRUST).compute(request)
    assert (outcome.values.get(ref(1)), outcome.used) == (expected, used)
    assert not other.asked


def test_a_second_engine_that_cannot_be_started_is_our_fault() -> None:
    cell = Cell(1, 1, None, formula="=SUM(B1)")
    rests_on = dependencies([(SHEET, cell)], FormulaIndex([SHEET], lambda _: [cell]))
    engines = [
        Teamed("formualizer", {ref(1): 7}, EngineUnavailableError("no room")),
        ScriptedEngine("ironcalc", {}),
        ScriptedEngine("libreoffice", {ref(1): 9}),
    ]
    request = EngineRequest(b"", {ref(1): "=SUM(B1)"}, rests_on, PLAIN, 30.0)
    with pytest.raises(EngineUnavailableError, match="no room"):
        Cascade(engines, TRUST).compute(request)


MANY = 1200
COLUMN = {ref(row, 2): f"=SUM(A$1:A{row})" for row in range(1, MANY + 1)}
TRUTH: dict[CellRef, CellValue] = {cell: cell.row * 10 for cell in COLUMN}


def test_no_value_is_taken_because_of_what_was_computed_for_other_cells() -> None:
    # Wrong in one engine of the pair, in a few cells that a program would like to have missed.
    wrong = TRUTH | dict.fromkeys((ref(row, 2) for row in range(40, MANY, 60)), 9)
    cells = {f"B{cell.row}": formula for cell, formula in COLUMN.items()}
    book = package(cells | {f"A{cell.row}": 10 for cell in COLUMN})
    rests_on = dependencies(
        [(SHEET, Cell(cell.row, 2, None, formula=text)) for cell, text in COLUMN.items()],
        FormulaIndex([SHEET], lambda _: []),
    )
    for comment in range(40):
        stream = io.BytesIO(book)
        with zipfile.ZipFile(stream, "a") as archive:
            archive.comment = str(comment).encode()
        engines = [
            ScriptedEngine("formualizer", wrong),
            ScriptedEngine("ironcalc", TRUTH),
            ScriptedEngine("libreoffice", TRUTH),
        ]
        request = EngineRequest(stream.getvalue(), COLUMN, rests_on, PLAIN, 30.0)
        assert Cascade(engines, TRUST).compute(request).values == TRUTH


def test_records_of_ascii_text_say_nothing_about_other_text() -> None:
    cell = Cell(1, 1, None, formula="=SUM(A2)")
    rests_on = dependencies([(SHEET, cell)], FormulaIndex([SHEET], lambda _: [cell]))
    for reads_text, asked in ((None, 0), (lambda *_: True, 1)):
        office = ScriptedEngine("libreoffice", {ref(1): 9})
        engines = [
            ScriptedEngine("formualizer", {ref(1): 5}),
            ScriptedEngine("ironcalc", {ref(1): 5}),
            office,
        ]
        request = EngineRequest(
            b"", {ref(1): "=SUM(A2)"}, rests_on, PLAIN, 30.0, reads_text=reads_text
        )
        assert Cascade(engines, TRUST).compute(request).values == {ref(1): 5}
        assert len(office.asked) == asked


def test_two_values_of_equal_weight_leave_no_value() -> None:
    lacking = {"libreoffice": "Err:508"}
    value, outcome, _ = ask("=SUM(A2)", failed=lacking, formualizer="RENé", ironcalc="RENÉ")
    assert value == ("formualizer says 'RENé'; ironcalc says 'RENÉ'; libreoffice: Err:508 (SUM)")
    assert outcome.values == {}


@pytest.mark.parametrize("count", [2 + 1])
def test_among_many_cells_a_rival_may_only_seem_to_be_worse(count: int) -> None:
    # SUM has a perfect record in both engines. Beside DAY, of whose cells nobody knows which
    # functions they are on if there are many, IronCalc's would seem to be worse.
    cells = [Cell(1, 1, None, formula="=SUM(B1)")]
    cells += [Cell(row, 1, None, formula="=DAY(B1)") for row in range(2, count + 1)]
    index = FormulaIndex([SHEET], lambda _: cells)

    request = EngineRequest(
        b"",
        {ref(each.row): each.formula or "" for each in cells},
        dependencies([(SHEET, each) for each in cells], index),
        PLAIN,
        30.0,
    )
    engines = [
        ScriptedEngine("formualizer", {ref(1): 5}),
        ScriptedEngine("ironcalc", {ref(1): 6}),
    ]
    assert Cascade(engines, TRUST).compute(request).values == {}


SLOWNESS = (0.0, 0.05, 0.2, 0.4, 2.0, 4.0, 10.0, 16.0, 25.0, 61.0)
"""Processor seconds on both sides of each limit, and of the time after which an answer is late."""

CASES = {
    "a sure pair": ("=SUM(A2)", 5, 5, 9),
    "a sure pair and LibreOffice": ("=SUM(A2)", 5, 5, 5),
    "a pair that is split": ("=SUM(A2)", 5, 6, 9),
    "TRUE that LibreOffice loses": ("=TEXT(A2,1)", True, True, 1),
    "a coarse error": ("=TEXT(A2,1)", NUM, NUM, VALUE),
    "a better engine": ("=DAY(A2)", 5, 4, 4),
    "nothing from LibreOffice": ("=TEXT(A2,1)", 5, 5, NAME),
}


@pytest.mark.parametrize("case", CASES)
def test_no_two_runs_give_two_values(case: str) -> None:
    """However much processor time one engine needs, a run in which another needs more agrees."""
    formula, *words = CASES[case]
    assert isinstance(formula, str)
    names = ("formualizer", "ironcalc", "libreoffice")
    for slow in names:
        outcomes = [timed(formula, dict(zip(names, words, strict=True)), slow, s) for s in SLOWNESS]
        for seconds, outcome in zip(SLOWNESS, outcomes, strict=True):
            # As long as a loaded machine makes it, short of what divides early from never.
            others = [
                other
                for other_s, other in zip(SLOWNESS, outcomes, strict=True)
                if seconds <= other_s < seconds / LATE_SHARE
            ]
            values = {repr(each.values[ref(1)]) for each in (outcome, *others) if each.values}
            assert len(values) <= 1, (slow, seconds, values)


@pytest.mark.parametrize("case", CASES)
def test_only_results_that_every_run_computes_are_kept(case: str) -> None:
    formula, *words = CASES[case]
    assert isinstance(formula, str)
    names = ("formualizer", "ironcalc", "libreoffice")
    quick = timed(formula, dict(zip(names, words, strict=True)), "libreoffice", 0.0)
    assert quick.complete
    for seconds in (25.0, 61.0):
        outcome = timed(formula, dict(zip(names, words, strict=True)), "libreoffice", seconds)
        if "libreoffice" in outcome.used or outcome.failed:
            assert not outcome.complete


def of_sums(
    count: int, *, date_1904: bool = False, quick: int | None = None
) -> tuple[CascadeResult, ScriptedEngine]:
    """A sum that stands for many others; LibreOffice's value is 9.

    IronCalc runs out of time, and so does formualizer, unless it says something quickly.
    """
    cell = Cell(1, 1, None, formula="=SUM(A2:A3)")
    rests_on = dependencies([(SHEET, cell)], FormulaIndex([SHEET], lambda _: [cell]))
    slow = 0.0 if date_1904 else 1000.0
    engines = [
        ScriptedEngine("formualizer", {ref(1): quick or 5}, seconds=0.0 if quick else slow),
        ScriptedEngine("ironcalc", {ref(1): 5}, seconds=slow),
    ]
    office = ScriptedEngine("libreoffice", {ref(1): 9})
    request = EngineRequest(
        b"",
        {ref(1): "=SUM(A2:A3)"},
        replace(rests_on, cells=count),
        Dialect({}, date_1904),
        30.0,
    )
    return Cascade([*engines, office], TRUST).compute(request), office


@pytest.mark.parametrize(("count", "kept"), [(1, True), (60_000, False)])
def test_nothing_is_kept_if_an_engine_used_up_its_full_time(count: int, *, kept: bool) -> None:
    """With this many formulas the limit of a quick engine is the full one."""
    outcome, _ = of_sums(count, quick=9)
    assert outcome.values == {ref(1): 9}
    assert outcome.complete is kept


def test_libreoffice_does_not_stand_in_for_a_pair_that_ran_out_of_time() -> None:
    outcome, _ = of_sums(1)
    assert outcome.values == {}
    assert "depends on what formualizer and ironcalc would compute" in outcome.failed[ref(1)]
    assert not outcome.complete


def test_the_quick_engines_have_no_vote_on_days_from_1904() -> None:
    outcome, office = of_sums(1, date_1904=True)
    assert office.asked
    assert outcome.values == {ref(1): 9}


def timed(formula: str, words: Mapping[str, object], slow: str, seconds: float) -> CascadeResult:
    """One formula, for which one engine needs some processor time."""
    cell = Cell(1, 1, None, formula=formula)
    rests_on = dependencies([(SHEET, cell)], FormulaIndex([SHEET], lambda _: [cell]))
    engines = [
        ScriptedEngine(name, {ref(1): word}, seconds=seconds if name == slow else 0.0)  # type: ignore[dict-item]
        for name, word in words.items()
    ]
    return Cascade(engines, TRUST).compute(
        EngineRequest(b"", {ref(1): formula}, rests_on, PLAIN, 60.0)
    )


class WaitingEngine(ScriptedEngine):
    """Computes in a separate process that waits for a processor, as on a busy machine."""

    wait_s = 0.5

    def compute(
        self,
        workbook: bytes,
        ranges: Sequence[CellRange],
        *,
        timeout_s: float,
        dialect: Dialect = PLAIN,
    ) -> EngineResult:
        values = super().compute(workbook, ranges, timeout_s=timeout_s, dialect=dialect).values

        def answers(_: Request, __: bytes) -> list[Answer]:
            time.sleep(self.wait_s)
            return [{"values": [[values[ref(1)]]], "seconds": time.process_time()}]

        header = json.dumps({"timeout_s": timeout_s}).encode()
        child = ReadyChild(answers, 4 << 30, TemporaryFolder())
        said = child.ask(struct.pack(">I", len(header)) + header, timeout_s)
        return read_answer(said, ranges, self.name)


@pytest.mark.parametrize("slow", ["formualizer", "ironcalc", "libreoffice"])
def test_an_engine_that_waits_for_a_processor_changes_nothing(slow: str) -> None:
    cell = Cell(1, 1, None, formula="=SUM(A2)")
    rests_on = dependencies([(SHEET, cell)], FormulaIndex([SHEET], lambda _: [cell]))
    engines = [
        (WaitingEngine if name == slow else ScriptedEngine)(name, {ref(1): value})
        for name, value in {"formualizer": 5, "ironcalc": 5, "libreoffice": 9}.items()
    ]
    request = EngineRequest(b"", {ref(1): "=SUM(A2)"}, rests_on, PLAIN, 30.0)
    outcome = Cascade(engines, TRUST).compute(request)
    assert outcome.values == {ref(1): 5}
    assert outcome.used == {"formualizer", "ironcalc"}


def test_a_late_answer_counts_and_a_missing_one_leaves_the_cell_open() -> None:
    late_s = 0.25
    words: dict[str, object] = {"formualizer": 5, "ironcalc": 5, "libreoffice": 9}
    outcome = timed("=SUM(A2)", words, "ironcalc", late_s)
    assert outcome.values == {ref(1): 5}
    assert not outcome.complete
    # What a quick look leaves open is asked again with all the time there is.
    assert timed("=SUM(A2)", words, "ironcalc", 50.0).values == {ref(1): 5}
    outcome = timed("=SUM(A2)", words, "ironcalc", 61.0)
    assert outcome.failed == {
        ref(1): "formualizer says 5; ironcalc: took longer than 60 s; libreoffice says 9; "
        "the value depends on what ironcalc would compute (SUM)"
    }
    outcome = timed("=SUM(A2)", words | {"libreoffice": 5}, "ironcalc", 61.0)
    assert outcome.values == {ref(1): 5}
    # What is late for a quick look is not for a second opinion.
    words = {"formualizer": 5, "ironcalc": 4, "libreoffice": 4}
    assert timed("=DAY(A2)", words, "formualizer", 0.9 * SECOND_OPINION_S * LATE_SHARE).values == {
        ref(1): 5
    }


ABSENT = RecalcError("the engine cannot open the workbook")
CRASHED = CrashedError("the engine crashed")

TIMES: dict[str, float | CrashedError] = {
    "in time": 0.0,
    "late": 21.0,
    "out of time": 100.0,
    "crashed": CRASHED,
}
"""Processor seconds. The limit is 60 s; a quick engine first gets 0.3 s or 15 s."""

ENGINES = ("formualizer", "ironcalc", "libreoffice")


def outcome_of(
    formula: str,
    answers: Sequence[object],
    times: Sequence[float | CrashedError],
    more: object,
    misread: Mapping[str, Reads] = MappingProxyType({}),
) -> CellValue:
    """The value of one formula where engines answer something after some processor time.

    Engines that raise the same whatever time they take are computed with once.
    """
    engines: list[tuple[str, object, float]] = []
    for name, answer, time_s in zip(ENGINES, answers, times, strict=False):
        if isinstance(time_s, CrashedError):
            engines.append((name, time_s, 0.0))
        elif isinstance(answer, RecalcError):
            engines.append((name, answer, 0.0))
        else:
            engines.append((name, answer, time_s))
    if more is not None:
        engines.append(("formulas", more, 0.0))
    key = repr((formula, engines, sorted(misread)))  # by its text, since 1 and True are equal
    if key not in OUTCOMES:
        OUTCOMES[key] = computed(formula, engines, misread)
    return OUTCOMES[key]


OUTCOMES: dict[str, CellValue] = {}


class AtOnce(ThreadPoolExecutor):
    """Runs the given work in the thread that submits it."""

    def submit(self, work: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(*given, **named))
        return done


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """LibreOffice is asked before the others: a script needs no thread, of which there would be
    one for each of twenty thousand formulas."""
    monkeypatch.setattr("judge.recalc.asking.ThreadPoolExecutor", AtOnce)


def computed(
    formula: str, engines: Sequence[tuple[str, object, float]], misread: Mapping[str, Reads]
) -> CellValue:
    """The value of one formula, from engines given as names, answers and processor seconds."""
    scripted = [
        ScriptedEngine(name, answer)
        if isinstance(answer, BaseException)
        else ScriptedEngine(
            name,
            {} if answer is None else {ref(1): answer},  # type: ignore[dict-item]
            seconds=time_s,
        )
        for name, answer, time_s in engines
    ]
    request = EngineRequest(b"", {ref(1): formula}, rests_on(formula), PLAIN, 60.0)
    request = replace(request, **misread)  # type: ignore[arg-type]
    return Cascade(scripted, TRUST).compute(request).values.get(ref(1))


@functools.cache
def rests_on(formula: str) -> Dependencies:
    """The dependencies of a formula in A1 that is alone on its sheet."""
    cell = Cell(1, 1, None, formula=formula)
    return dependencies([(SHEET, cell)], FormulaIndex([SHEET], lambda _: [cell]))


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("misread", ["reads_logical", "reads_spilled"])
@pytest.mark.parametrize("formula", ["=SUM(A2)", "=TEXT(A2,1)", "=DAY(A2)"])
@pytest.mark.parametrize("alphabet", [(5, 6, ABSENT), (1, True, None)], ids=["values", "logical"])
def test_the_same_holds_if_libreoffice_misreads_something(
    formula: str, alphabet: tuple[object, ...], misread: str
) -> None:
    reads: dict[str, Reads] = {misread: lambda sheet, reference: True}
    for answers in itertools.product(alphabet, repeat=3):
        value = outcome_of(formula, answers, [0.0] * 3, None, reads)
        for times in itertools.product(TIMES, repeat=3):
            given = [TIMES[each] for each in times]
            other = outcome_of(formula, answers, given, None, reads)
            assert other is None or (value is not None and same_value(other, value)), (
                answers,
                times,
            )


@pytest.mark.parametrize(
    ("misread", "answers", "value"),
    [
        ("reads_logical", (5, 5, 6), 5),
        ("reads_logical", (5, 6, 6), 6),
        ("reads_logical", (5, 4, 6), None),
        ("reads_spilled", (5, 5, 6), 5),
        ("reads_spilled", (5, 6, 6), 6),
        ("reads_spilled", (5, 4, 6), None),
        ("reads_spilled", (None, 5, 6), None),
    ],
)
def test_what_libreoffice_misreads_needs_a_second_engine(
    misread: str, answers: Sequence[object], value: CellValue
) -> None:
    reads: dict[str, Reads] = {misread: lambda sheet, reference: True}
    assert outcome_of("=TEXT(A2,1)", answers, [0.0] * 3, None, reads) == value


def test_the_pair_computes_sure_cells_in_a_separate_workbook() -> None:
    """A sure cell gets its value even if the engine cannot compute the whole workbook."""

    class Choosy(ScriptedEngine):
        def compute(self, workbook: bytes, *rest: Any, **more: Any) -> EngineResult:
            if workbook == b"slim":
                raise RecalcError("a comment")
            assert workbook == b"narrowed"
            return super().compute(workbook, *rest, **more)

    cells = [Cell(1, 1, None, formula="=SUM(A3)"), Cell(2, 1, None, formula="=TEXT(A3,1)")]
    index = FormulaIndex([SHEET], lambda _: cells)
    request = EngineRequest(
        b"whole",
        {ref(cell.row): cell.formula or "" for cell in cells},
        dependencies([(SHEET, cell) for cell in cells], index),
        PLAIN,
        60.0,
        slim=b"slim",
        narrowed=lambda sure: b"narrowed" if sure == {ref(1)} else b"",
    )
    quick = [Choosy(name, {ref(1): 5}) for name in ("formualizer", "ironcalc")]
    office = ScriptedEngine("libreoffice", {ref(1): 6, ref(2): "x"})
    outcome = Cascade([office, *quick], TRUST).compute(request)
    assert outcome.values == {ref(1): 5, ref(2): "x"}


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("engines", "more"), [(2, None), (2, 5), (3, None), (3, 5)])
@pytest.mark.parametrize("formula", ["=SUM(A2)", "=TEXT(A2,1)", "=DAY(A2)", "=BAHTTEXT(A2)"])
@pytest.mark.parametrize(
    "alphabet",
    [(5, 6, ABSENT), (5, NUM, VALUE), (1, True, None)],
    ids=["values", "errors", "logical"],
)
def test_lack_of_time_removes_a_value_or_does_not_matter(
    formula: str, alphabet: tuple[object, ...], more: object, engines: int
) -> None:
    """Whichever engines are late, out of time or ended: the value is the same, or there is none."""
    for answers in itertools.product(alphabet, repeat=engines):
        value = outcome_of(formula, answers, [0.0] * engines, more)
        for times in itertools.product(TIMES, repeat=engines):
            other = outcome_of(formula, answers, [TIMES[each] for each in times], more)
            assert other is None or (value is not None and same_value(other, value)), (
                answers,
                times,
            )
            if set(times) <= {"in time", "late"}:
                assert (other is None) == (value is None), (answers, times)
