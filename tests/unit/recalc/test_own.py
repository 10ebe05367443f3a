"""Cells that the judge computes itself, next to those of the engines."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import openpyxl
import pytest
from openpyxl.utils.datetime import CALENDAR_MAC_1904, CALENDAR_WINDOWS_1900
from openpyxl.worksheet.formula import ArrayFormula

from judge.core.submission import Origin
from judge.recalc.contract import PLAIN, Dialect, EngineResult
from judge.recalc.functions import contents, tried
from judge.recalc.functions.conversions import UnsureError
from judge.recalc.functions.criteria import Cells, Criterion, Matches, matches
from judge.recalc.functions.own import OwnValues
from judge.recalc.functions.scalars import Evaluation
from judge.recalc.policy import Recalculator
from judge.recalc.rewrite import with_constants
from judge.recalc.trust import read_table
from judge.workbook.cell import CellRange, CellRef, CellValue, ErrorValue
from judge.workbook.dependency import FormulaIndex
from judge.workbook.reader import open_workbook, sheet_formulas
from tests.unit.recalc.fakes import ALL, ScriptedEngine, ref, workbook

NO_TRUST = read_table({"measured_with": {}, "functions": {}})


VALUE = ErrorValue("#VALUE!")


class Reading(ScriptedEngine):
    """An engine that records what it was given."""

    opened: bytes = b""

    def compute(
        self,
        workbook: bytes,
        ranges: Sequence[CellRange],
        *,
        timeout_s: float,
        dialect: Dialect = PLAIN,
    ) -> EngineResult:
        self.opened = workbook
        return super().compute(workbook, ranges, timeout_s=timeout_s, dialect=dialect)


def computed(
    cells: Mapping[str, Any], office: Mapping[int, CellValue]
) -> tuple[dict[int, CellValue], Reading, tuple[str, ...]]:
    """Returns row of column A -> value, with two scripted engines; and who computed."""
    known = {ref(row): value for row, value in office.items()}
    engine = Reading("libreoffice", known)
    recalculator = Recalculator([engine, ScriptedEngine("ironcalc", known)], trust=NO_TRUST)
    result = recalculator.fill(workbook(cells), [ALL], origin=Origin.SOLUTION)
    return {cell.row: value for cell, value in result.values.items()}, engine, result.engines


def test_the_text_of_a_formula_is_the_one_in_the_file() -> None:
    shown = {f"A{row}": f"=_xlfn.FORMULATEXT(B{row + 3})" for row in (1, 2, 3)}
    cells = {**shown, "B4": "=DAY(0)+_xlfn.DAYS(2,1)", "B5": 5, "B6": '=IF(B5,"_xlfn.",0)'}
    rewritten = "=(DAY(0)-1)"
    values, _, _ = computed(cells, dict.fromkeys((1, 2, 3), rewritten))
    assert values[1] == "=DAY(0)+DAYS(2,1)"
    assert values[2] == ErrorValue("#N/A")
    assert values[3] == rewritten


def test_arrays_that_engines_compute_differently_are_computed_here_afterwards() -> None:
    cells = {"A1": "=SUMPRODUCT(B1:B2,B1:B2>1)", "A2": "=SUM(B1:C2)", "A3": "=SUM(B1:B2)"}
    data = {"B1": 1, "B2": 2, "C1": True}
    values, _, by = computed({**cells, **data}, {1: 2, 2: 4, 3: 33})
    assert values == {1: 0, 2: 3, 3: 33}  # nothing says that engines differ about the last one
    assert "judge" in by


@pytest.mark.parametrize(
    ("more", "asks"),
    [
        ({}, False),
        ({"A2": "=SUM(B1:B2)"}, True),  # nothing but engines computes this one
        ({"B2": "=1+1"}, True),  # engines compute what it reads
    ],
)
def test_engines_are_asked_unless_every_cell_is_computed_here_from_constants(
    more: dict[str, Any], asks: bool
) -> None:
    cells = {"A1": "=SUMPRODUCT(B1:B2,B1:B2>1)", "B1": 1, "B2": 2, **more}
    values, engine, _ = computed(cells, {1: 2, 2: 3})
    assert values[1] == 0
    assert bool(engine.asked) is asks


def test_shared_arrays_and_criteria_tell_true_from_1() -> None:
    cells = {
        "A1": "=SUMPRODUCT((B1:B3=1)*1)+C1",
        "A2": "=SUMPRODUCT((B1:B3=TRUE)*1)+C1",
        "A3": "=SUMPRODUCT((B1:B3=1)*1)+C1",
        "A4": "=COUNTIF(B1:B3,TRUE)",
        "A5": '=COUNTIF(B1:B3,"=1")',
        "A6": "=COUNTIF(B1:B3,TRUE)",
    }
    data = {"B1": 1, "B2": True, "B3": True, "C1": "3%"}
    values, _, _ = computed({**cells, **data}, {})
    assert values == {1: 1.03, 2: 2.03, 3: 1.03, 4: 2, 5: 1, 6: 2}


@pytest.mark.parametrize(
    ("formula", "mixed"),
    [
        ("SUMPRODUCT(A1:A9,A1:A9>5)", True),
        ("SUMPRODUCT((A1:A9>5)*(B1:B9=2),C1:C9)", False),
        ("SUM(OFFSET(A1,0,0,-3))", True),
        ("SUM(OFFSET(A1,0,0,3))", False),
        ('LOOKUP(A1,{1,2},{"a","b"})', True),
        ("VLOOKUP(A1,B:C,2,0)", False),
        ('TEXTJOIN({",",";"},TRUE,A1:A9)', True),
        ('TEXTJOIN(",",TRUE,A1:A9)', False),
        ("IF(OR(A1,B1),1,2)", True),
        ("FLOOR(A1,B1)", False),
        ("A1^B1", True),
        ("SUM(A1:A9*{1;2})", True),
        ("SUM(A1:A9=2)", True),
        ("SUM(A1:A9,B1:B9)", False),
        ("LOOKUP(9.9E+307,A1:A9)", True),
        ("SUMIF(OFFSET(A1,0,0,B1:B9),1)", True),
        ("SUMIF(A1:A9,1)", False),
    ],
)
def test_kinds_of_formulas_that_are_tried_after_engines(formula: str, mixed: bool) -> None:
    assert tried.is_of_mixed_arrays(formula) is mixed


def test_a_conversion_needs_no_engine() -> None:
    values, engine, by = computed({"A1": '=B1&""', "B1": 1 / 3}, {})
    assert values == {1: "0.333333333333333"}
    assert engine.asked == []
    assert by == ("judge",)


def test_wrong_conversions_of_an_engine_are_corrected() -> None:
    cells = {"A1": "=PI()", "A2": '=A1&""', "A3": "=A1+1"}
    values, _, by = computed(cells, {1: 3.14159265358979312, 2: "3.1415926535897931", 3: 4.25})
    assert values == {1: 3.14159265358979312, 2: "3.14159265358979", 3: 4.25}
    assert by == ("ironcalc 1", "judge", "libreoffice 1")


def test_cells_that_read_a_converted_one_see_its_value() -> None:
    cells = {"A1": '=COUNTIF(B1:B3,"<>5")', "A2": "=SUM(A1,1)", "B1": "5", "B2": 5}
    values, engine, _ = computed(cells, {1: 9, 2: 3})
    assert values == {1: 2, 2: 3}
    assert isinstance(values[1], int)
    seen = open_workbook(engine.opened).cells(ALL)
    assert seen[1, 1].formula is None
    assert seen[1, 1].value == 2
    assert seen[2, 1].formula == "=SUM(A1,1)"


def test_a_chain_of_conversions_is_followed() -> None:
    cells = {"A1": '=TEXT(B1,"0.0")', "A2": '=A1+0&"!"', "B1": 2.25}
    assert computed(cells, {})[0] == {1: "2.3", 2: "2.3!"}


def test_circular_references_and_unknown_cells_are_left_to_engines() -> None:
    cells = {"A1": '=A2&"1"', "A2": '=A1&"2"', "A3": '=B3&""', "B3": "=NOW()"}
    assert computed(cells, {})[0] == {}


def test_too_many_cells_are_left_to_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = {"A1": '=COUNTIF(B1:B9,"<>5")', "B1": 1, "B9": 2}
    assert computed(cells, {1: 4})[0] == {1: 9}
    monkeypatch.setattr(contents, "MAX_CELLS", 8)
    assert computed(cells, {1: 4})[0] == {1: 4}


def test_formulas_that_fill_a_column_are_computed_whatever_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cells: dict[str, Any] = {f"B{row}": row for row in range(1, 101)}
    cells |= {
        f"A{row}": f'=SUMIFS(B$1:B$100,B$1:B$100,">="&B{row},B$1:B$100,"<"&B{row}+2)'
        for row in range(1, 10)
    }
    monkeypatch.setattr(contents, "MAX_COMPARED", 400)  # 2,700 if all cells were compared
    values = {row: 2 * row + 1 for row in range(1, 10)}
    assert computed(cells, dict.fromkeys(values, -1))[0] == values


def test_the_number_of_compared_cells_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    cells: dict[str, Any] = {f"B{row}": f"x{row}" for row in range(1, 101)}
    cells |= {f"A{row}": '=COUNTIF(B$1:B$100,"x?")' for row in range(1, 10)}
    monkeypatch.setattr(contents, "MAX_COMPARED", 200)  # before the engines, and again after
    given = dict.fromkeys(range(1, 10), -1)
    values = computed(cells, given)[0]
    assert [row for row, value in sorted(values.items()) if value == 9] == [1, 2]


def test_the_steps_of_all_patterns_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a" * 49
    cells = {f"A{row}": f'=_xlfn.REGEXREPLACE("{text}","a+a+$","{row}")&""' for row in range(1, 10)}
    given = dict.fromkeys(range(1, 10), -1)
    assert computed(cells, given)[0] == {row: str(row) for row in range(1, 10)}
    # One pattern counts as 125 cells; before the engines, and again after.
    monkeypatch.setattr(contents, "MAX_COMPARED", 200)
    assert computed(cells, given)[0] == {1: "1", 2: "2"} | dict.fromkeys(range(3, 10), -1)


def own_values_of(cells: Mapping[str, Any]) -> dict[int, CellValue]:
    """Row of column A -> the value of its formula, from the values of all other cells."""
    book = workbook(cells)
    (sheet,) = book.sheet_names
    formulas = sheet_formulas(book, sheet)
    own = OwnValues(contents.Contents(book, FormulaIndex([sheet], lambda _: formulas)))
    return {cell.row: own.any_value(ref(cell.row), cell) for cell in formulas}


def test_formulas_of_one_form_that_read_equal_values_are_computed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    computations: list[Evaluation] = []

    class Counted(Evaluation):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            computations.append(self)

    monkeypatch.setattr("judge.recalc.functions.own.Evaluation", Counted)
    formulas = {f"A{row}": f'=IF(B{row}=1,"one",B{row}&C{row})' for row in range(1, 6)}
    data = {"B1": 1, "B2": True, "B3": 1, "B4": "x", "B5": 1, "C5": "other"}
    values = own_values_of({**formulas, **data})
    assert values == {1: "one", 2: "TRUE", 3: "one", 4: "x", 5: "one"}
    assert len(computations) == 4


def test_equal_criteria_of_formulas_in_a_row_are_met_once(monkeypatch: pytest.MonkeyPatch) -> None:
    met: list[Criterion] = []

    def counted(cells: Cells, wanted: Criterion) -> Matches:
        met.append(wanted)
        return matches(cells, wanted)

    monkeypatch.setattr("judge.recalc.functions.counting.matches", counted)
    sums = {
        "A1": '=SUMIFS(C1:C3,B1:B3,">"&E1)',
        "A2": '=SUMIFS(D1:D3,B1:B3,">"&E1)',
        "A3": '=SUMIFS(D1:D3,B1:B3,">"&E2)',
        "A4": '=SUMIFS(C1:C3,B1:B3,">"&E1)',
    }
    data = {"B1": 1, "B2": 2, "B3": 3, "C2": 10, "C3": 20, "D2": 1, "D3": 2, "E1": 1, "E2": 2}
    assert own_values_of({**sums, **data}) == {1: 30, 2: 3, 3: 2, 4: 30}
    assert [wanted.operand for wanted in met] == [1, 2, 1]


def test_a_formula_does_not_depend_on_cells_that_it_does_not_choose() -> None:
    cells = {
        "A1": "=IF(B1>0,1,A2)",
        "A2": "=IF(B1>0,A1+1,0)",
        "A3": "=IF(B1>0,A4,3)",
        "A4": "=A2*2",
    }
    assert own_values_of({**cells, "B1": 5}) == {1: 1, 2: 2, 3: 4, 4: 4}


def test_a_formula_that_reads_a_blank_cell_is_zero_to_other_formulas() -> None:
    cells = {"A1": "=B1", "A2": "=LEN(A1)", "A3": "=COUNT(A1:A1)", "A4": "=AVERAGE(A1,C1)", "C1": 4}
    assert own_values_of(cells) == {1: 0, 2: 1, 3: 1, 4: 2}


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ('=DATEDIF("2020-02-29","2021-02-28","y")', 0),
        ('=DATEDIF("2020-02-29","2021-03-01","Y")', 1),
        ('=DATEDIF("2020-01-31","2020-03-01","m")', 1),
        ('=DATEDIF("2001-06-01","2002-08-15","ym")', 2),
        ('=DATEDIF("2001-06-01","2002-08-15","d")', 440),
        ('=DATEDIF("2021-01-01","2020-01-01","d")', ErrorValue("#NUM!")),
        ("=WEEKNUM(DATE(2012,3,9))", 10),
        ("=WEEKNUM(DATE(2012,3,9),2)", 11),
        ("=WEEKNUM(DATE(2012,3,9),21)", 10),
        ("=WEEKNUM(DATE(2021,1,3),21)", 53),
        ("=WEEKNUM(DATE(2021,1,3),17)", 2),
        ("=WEEKNUM(DATE(2012,3,9),3)", ErrorValue("#NUM!")),
        ('=HYPERLINK("#a","shown")', "shown"),
        ('=HYPERLINK("#a")', "#a"),
        ('=DATEVALUE("1December2023")', 45261),
        ("=VLOOKUP(7,B:C,2,FALSE)", "seven"),
        ("=MATCH(7,B:B,0)", 2),
        ("=ROWS(A$1:A1)+COLUMN($A:$A)+ROW(A1)", 3),
        ("=ROW()*10+COLUMN()", 11),
        ("=SUMPRODUCT(ROW()*{1,2})", 3),
        ("=MAX(0,IFERROR(B1-C2,B2))", 7),
        ("=SUM(1,IF(B1>0,B2,C2))", 8),
        ("=ROUNDUP(-7/2,0)", -4),
        ("=ROUNDUP(1.1,1)", 1.1),
        ("=ROUNDDOWN(-31415.92654,-2)", -31400),
        ("=TRUNC(8.9)", 8),
        ("=TRIMMEAN({4,5,6,7,2,3,4,5,1,2,3},0.2)", 34 / 9),
        ("=TRIMMEAN({1,2},1)", ErrorValue("#NUM!")),
        ("=_xlfn.AGGREGATE(14,3,B1:B2/(B1:B2>5),1)", 7),
        ("=LEN(HYPERLINK(D9))", 0),
        ('=_xlfn.XLOOKUP("?e*n",C1:C2,B1:B2,0,2)', 7),
        ('=_xlfn.XLOOKUP("S?",C1:C2,B1:B2,0,2)', 0),
        ('=_xlfn.XLOOKUP(7,B1:C1,_xlfn.XLOOKUP("seven",C1:C2,B1:C2),"none")', "none"),
        ('=_xlfn.XLOOKUP(1,B1:C1,_xlfn.XLOOKUP("seven",C1:C2,B1:C2))', 7),
        ('=VLOOKUP(1,B1:C2,2,FALSE)&"x"', "x"),
        ('=IF(_xlfn.XLOOKUP(1,B1:B2,C1:C2)="","none",1)', "none"),
        ("=VLOOKUP(1,B1:C2,2,FALSE)", 0),
        ("=AND(TRUE,)", False),
        ('=INDIRECT("B"&2)', 7),
        ('=SUMPRODUCT(INDIRECT("B1:B2")*2)', 16),
    ],
)
def test_functions_that_no_engine_is_asked_about(formula: str, value: CellValue) -> None:
    cells = {"A1": formula, "B1": 1, "B2": 7, "C2": "seven"}
    assert own_values_of(cells) == {1: value}


@pytest.mark.parametrize(
    "formula",
    [
        "=COUNTA(IF(B1>0,D9))",  # IF returns a reference to a blank cell
        "=SUM(1,IF(B1>0,D1))",  # and here to a cell with TRUE
        "=ROUNDUP(0.1+0.2,1)",
        "=DISC(1,2,3)",
        '=SUM(INDIRECT("=B1:B2"))',
        '=_xlfn.XLOOKUP("ß",{"ss","x"},B1:C1)',
        '=_xlfn.XLOOKUP("",C1:C2,B1:B2,0,2)',
        "=MAX(-1,VLOOKUP(1,B1:C2,2,FALSE))",
        "=SUM(1,INDEX(D1:D2,1))",
        "=ISBLANK(VLOOKUP(1,B1:C2,2,FALSE))",
        '=INDIRECT("A0")',
    ],
)
def test_what_is_not_documented_is_left_to_engines(formula: str) -> None:
    with pytest.raises(UnsureError):
        own_values_of({"A1": formula, "B1": 1, "B2": 7, "C2": "seven", "D1": True})


@pytest.mark.parametrize("sought", ["C1", "C2", "C3", "C4", "C5", '"a"', "1"])
@pytest.mark.parametrize(
    "formula",
    [
        "=SUM(IF({}=B1:B40,D1:D40))",
        "=MIN(IF({}=B1:B40,D1:D40,2))",
        "=COUNT(IF(B1:B40={},D1:D40))",
        "=AVERAGE(IF(B1:B40={},5,1))",
        "=SUMPRODUCT(({}=B1:B40)*(D1:D40=3))",
        "=SUMPRODUCT((B1:B40={})*D1:D40)",
        "=SUMPRODUCT(--({}=B1:B40),D1:D40)",
        "=MATCH(1,(B1:B40={})*(D1:D40=3),0)",
        "=MATCH(0,(B1:B40={})*1,0)",
        "=SUM(1-(B1:B40={}))",
    ],
)
def test_few_values_that_are_equal_are_found_without_comparing_all(
    monkeypatch: pytest.MonkeyPatch, formula: str, sought: str
) -> None:
    written = formula.format(sought)
    column = {f"B{row}": value for row, value in enumerate(["a", 1, "A", True, "1", 2, 0] * 5, 1)}
    amounts = {f"D{row}": row % 7 for row in range(1, 41)}
    sought_cells = {"C1": "a", "C2": 1, "C3": True, "C4": "absent"}
    cells = {"A1": ("A1", written), **column, **amounts, **sought_cells}
    found = own_values_of(cells)
    monkeypatch.setattr(Cells, "as_equal", lambda *_: None)
    assert own_values_of(cells) == found


def test_blank_cells_of_a_long_column_count_in_arrays() -> None:
    cells = {
        "A1": "=SUMPRODUCT(--(LEN(B1:B5000)>1))",
        "A2": '=SUMPRODUCT((B1:B5000="")*2)',
        "A3": "=SUMPRODUCT((B1:B5000=0)*(B1:B5000<>FALSE))",
        "B3": "xy",
        "B4990": 100,
        "B5000": "",
        "B4000": False,
    }
    assert own_values_of(cells) == {1: 3, 2: 9994, 3: 0}


def test_ranges_where_excel_takes_one_of_their_values_are_left_to_engines() -> None:
    data = {"B1": "a", "B2": "b", "C1": "x", "C2": "y", "D1": 5, "D2": 6}
    found = '=INDEX(D1:D2,MATCH("b",B1:B2,0))'
    by_two = '=INDEX(D1:D2,MATCH("b"&"y",B1:B2&C1:C2,0))'
    book = workbook({"A1": found, "A2": by_two, **data})
    (sheet,) = book.sheet_names
    cells = sheet_formulas(book, sheet)
    index = FormulaIndex([sheet], lambda _: cells)
    own = OwnValues(contents.Contents(book, index))
    assert own.any_value(ref(1), cells[0]) == 6
    with pytest.raises(UnsureError):
        own.any_value(ref(2), cells[1])


def test_values_of_an_engine_requested_by_name_are_not_corrected() -> None:
    engine = ScriptedEngine("libreoffice", {ref(1): "0.33333333333333331"})
    recalculator = Recalculator([engine], trust=NO_TRUST)
    book = workbook({"A1": '=B1&""', "B1": 1 / 3})
    result = recalculator.fill(book, [ALL], origin=Origin.SOLUTION)
    assert result.values == {ref(1): "0.33333333333333331"}


def test_an_explanation_names_the_judge() -> None:
    engine = ScriptedEngine("libreoffice", {ref(1): "0.3333"})
    recalculator = Recalculator([engine, ScriptedEngine("ironcalc", {})], trust=NO_TRUST)
    book = workbook({"A1": '=B1&""', "B1": 1 / 3})
    explanation = recalculator.explain(book, ref(1), origin=Origin.SOLUTION)
    assert explanation.believed == ("judge",)
    assert explanation.value == "0.333333333333333"
    assert explanation.answers["libreoffice"].value == "0.3333"


def test_control_characters_are_as_the_reader_has_them() -> None:
    assert computed({"A1": "=CHAR(1)"}, {})[0] == {1: "_x0001_"}


@pytest.mark.parametrize(
    ("epoch", "values"),
    [
        (CALENDAR_WINDOWS_1900, ["1.3", "Sun", 43_832, 1, 43_833]),
        (CALENDAR_MAC_1904, ["1.3", None, VALUE, 1, None]),
    ],
)
def test_days_from_1904_are_left_to_engines(epoch: datetime, values: list[CellValue]) -> None:
    book = openpyxl.Workbook()
    book.epoch = epoch
    sheet = book.worksheets[0]
    sheet.title = "S"
    sheet["A1"] = '=TEXT(1.25,"0.0")'
    sheet["A2"] = '=TEXT(1.25,"ddd")'
    sheet["A3"] = "=B1*1"
    sheet["A4"] = "=COUNTIF(C1:C9,C2)"
    sheet["A5"] = '=DATEVALUE("1/3/2020")'
    sheet["B1"] = "1/2/2020"
    for address, day in (("C1", 43_832), ("C2", 44_198)):
        sheet[address] = day
        sheet[address].number_format = "yyyy-mm-dd"
    stream = io.BytesIO()
    book.save(stream)
    unknown = {ref(3): VALUE}
    engines = [ScriptedEngine(name, unknown) for name in ("libreoffice", "ironcalc")]
    recalculator = Recalculator(engines, trust=NO_TRUST)
    result = recalculator.fill(open_workbook(stream.getvalue()), [ALL], origin=Origin.SOLUTION)
    assert [result.values.get(ref(row)) for row in range(1, 6)] == values


def test_cells_that_read_a_corrected_cell_are_computed_again() -> None:
    cells = {"A1": "=PI()", "A2": '=A1&""', "A3": "=LEN(A2)", "A4": "=PROPER(A2)", "A5": "=PI()*2"}
    office: dict[int, CellValue] = {1: 3.14159265358979312, 2: "3.1415926535897931", 3: 18, 5: 6.5}
    values, engine, _ = computed(cells, {**office, 4: "3.1415926535897931"})
    assert [values[2], values[3], values[5]] == ["3.14159265358979", 16, 6.5]
    assert len(engine.asked) == 2
    seen = open_workbook(engine.opened).cells(ALL)
    assert (seen[2, 1].formula, seen[2, 1].value) == (None, "3.14159265358979")
    assert seen[4, 1].formula == "=PROPER(A2)"


def test_last_digits_are_those_of_sequential_addition() -> None:
    cells = {"A1": "=SUM(B1:B3)", "A2": "=A1*PI()", "A3": "=A1*2", "B1": 0.1, "B2": 0.2, "B3": 0.3}
    office = ScriptedEngine("libreoffice", {ref(1): 0.6, ref(2): 1.9, ref(3): 1.2})
    recalculator = Recalculator([office, ScriptedEngine("ironcalc", {})], trust=RIGHT)
    result = recalculator.fill(workbook(cells), [ALL], origin=Origin.SOLUTION)
    assert result.values == {ref(1): 0.1 + 0.2 + 0.3, ref(2): 1.9, ref(3): (0.1 + 0.2 + 0.3) * 2}
    assert len(office.asked) == 1


@pytest.mark.parametrize("function", ["COLUMN", "ROW"])
def test_values_that_if_chooses_have_no_place(function: str) -> None:
    first = f'=MATCH(3,ERROR.TYPE({function}(IF(B1:D1<>"x",B1:D1))),0)'
    place = f'=IFERROR(SUM({function}(IF(TRUE,B1:D1))),"?")'
    cells = {"A1": ("A1", first), "A2": ("A2", place), "B1": "#N/A", "C1": "x", "D1": 2}
    values, _, _ = computed(cells, {1: 9, 2: 5, 20: 1})
    assert (values[1], values[2]) == (2, 5)


RIGHT = read_table(
    {
        "measured_with": {},
        "functions": {name: {"libreoffice": [99, 99]} for name in ("SUM", "PI", "*", "CHAR")},
    }
)


def test_formulas_that_cells_share_become_constants_too() -> None:
    first = b'<c r="A1"><f t="shared" ref="A1:A3" si="0">CHAR(B1)</f><v>a</v></c>'
    rest = b'<c r="A2" t="str"><f t="shared" si="0"/></c><c r="A3"><f t="shared" si="0"/></c>'
    known = {b"A1": "x", b"A2": "y", b"A3": "z"}
    new = with_constants(first + rest, known)
    assert new.count(b"<f") == 0
    assert b'<c r="A2" t="str"><v>y</v></c>' in new
    known[b"A3"] = "\x01"
    new = with_constants(first + rest, known)
    assert new.startswith(first)
    assert b'<c r="A2" t="str"><v>y</v></c><c r="A3"><f t="shared" si="0"/></c>' in new
    unusual = b'<c r="A4"><f t="shared" si="0"/><v xml:space="preserve"> z</v></c>'
    assert with_constants(first + unusual, {b"A1": "x", b"A4": " z"}) == first + unusual


def test_a_formula_that_another_formula_reads_stays_a_formula() -> None:
    cells = {"A1": '=TEXT(1,"0.0")', "A2": "=_xlfn.FORMULATEXT(A1)", "A3": '=TEXT(2,"0.0")'}
    values, engine, _ = computed({**cells, "A4": "=LEN(A3)"}, {2: '=TEXT(1,"0.0")', 4: 3})
    assert (values[1], values[3]) == ("1.0", "2.0")
    seen = open_workbook(engine.opened).cells(ALL)
    assert (seen[1, 1].formula, seen[3, 1].formula) == ('=TEXT(1,"0.0")', None)


@pytest.mark.parametrize(
    ("filtered", "kept"), [(False, 55), (True, 47)], ids=["by hand", "by a filter"]
)
def test_hidden_rows_count_as_excel_counts_them(filtered: bool, kept: int) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "S"
    formulas = {
        "=SUBTOTAL(9,B2:B11)": kept,
        "=SUBTOTAL(109,B2:B11)": 47,
        "=SUBTOTAL(2,B2:B11)": 8 if filtered else 10,
        "=SUBTOTAL(9,B2:B12)": kept,
        "=_xlfn.AGGREGATE(9,5,B2:B11)": 47,
        "=_xlfn.AGGREGATE(14,3,B2:B12,1)": 10,
        "=_xlfn.AGGREGATE(15,6,B2:B11/(B2:B11>9),2)": ErrorValue("#NUM!"),
    }
    for row, formula in enumerate(formulas, 1):
        sheet.cell(row, 1).value = formula
    for number in range(1, 11):
        sheet.cell(number + 1, 2).value = number
    sheet["B1"], sheet["B12"] = "value", "=SUBTOTAL(9,B2:B11)"
    for row in (4, 6):
        sheet.row_dimensions[row].hidden = True
    sheet.auto_filter.ref = "B1:B11"
    if filtered:
        sheet.auto_filter.add_filter_column(0, [str(n) for n in range(1, 11) if n not in (3, 5)])
    content = io.BytesIO()
    book.save(content)
    wrong: dict[CellRef, CellValue] = {ref(row): ErrorValue("#VALUE!") for row in range(1, 8)}
    engines = [ScriptedEngine("libreoffice", wrong), ScriptedEngine("ironcalc", wrong)]
    recalculator = Recalculator(engines, trust=NO_TRUST)
    area = CellRange("S", 1, 1, 7, 1)
    opened = open_workbook(content.getvalue())
    values = recalculator.fill(opened, [area], origin=Origin.SOLUTION).values
    assert [values[ref(row)] for row in range(1, 8)] == [*formulas.values()]


def test_a_condition_of_a_database_may_be_a_formula_about_its_first_row() -> None:
    table = {"A2": "Item", "B2": "Qty", "A3": "pen", "B3": 3, "A4": "ink", "B4": 8, "A5": "cap"}
    conditions = {"D2": "big", "D3": "=B3>AVERAGE($B$3:$B$5)", "D4": "=A3=A4", "D5": "no", "B5": 10}
    totals = {
        "A1": '=DSUM(A2:B5,"Qty",D2:D3)',
        "A7": "=DCOUNT(A2:B5,2,D2:D4)",
        "A8": '=DSUM(A2:B5,"Qty",D2:D5)',
    }
    values, _, _ = computed({**table, **conditions, **totals}, {1: 0, 7: 0, 8: 0})
    assert (values[1], values[7], values.get(8)) == (18, 2, None)


@pytest.mark.parametrize(
    "formula",
    [
        '=SUBSTITUTE(REPT("a",32767),"a",REPT("b",32767))',
        '=_xlfn.REGEXREPLACE(REPT("a",3000),"a",REPT("b",32767))',
        '=_xlfn.TEXTJOIN(REPT("b",32767),FALSE,B1:B3000)',
    ],
)
def test_texts_that_no_cell_can_hold_are_refused_before_they_take_memory(formula: str) -> None:
    cells = {"A1": formula, **{f"B{row}": "a" for row in range(1, 3001)}}
    tracemalloc.start()
    try:
        values, _, _ = computed(cells, {})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert values[1] == ErrorValue("#VALUE!")
    assert peak < 30_000_000


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ('=SUMPRODUCT(LARGE(B1:B4,ROW(INDIRECT("1:2"))))', 70),
        ("=MATCH(1E+306,D:D,1)", 4),
        ("=TYPE(C1)&TYPE(C2)&TYPE({1,2})", "2464"),
        ('=TYPE(B1:B2)&""', "64"),
        ('=-E1&""', "0"),
        ('=C2&"!"', "TRUE!"),
        ("=SUMPRODUCT(--(WEEKDAY(ROW(INDIRECT(45323&CHAR(58)&45351)))=5))", 5),
    ],
)
def test_formulas_that_engines_agree_on_but_read_otherwise(formula: str, value: CellValue) -> None:
    data = {"B1": 10, "B2": 20, "B3": 30, "B4": 40, "C1": "x", "C2": True}
    last = {"D1": "n", "D2": 1, "D3": "=1/0", "D4": 3, "E1": 0}
    values, _, _ = computed({"A1": formula, **data, **last}, {1: 99})
    assert values[1] == value


def test_cells_that_an_array_formula_fills_are_computed_with_it() -> None:
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    sheet["A1"], sheet["A2"] = "=C2", "=SUM(B1:C2)"
    sheet["B1"] = ArrayFormula("B1:C2", "=ROW(1:2)*10+COLUMN(A:B)")
    stream = io.BytesIO()
    book.save(stream)
    opened = open_workbook(stream.getvalue())
    cells = list(sheet_formulas(opened, "Sheet"))
    index = FormulaIndex(opened.sheet_names, lambda _: cells)
    own = OwnValues(contents.Contents(opened, index))
    values = [own.any_value(CellRef("Sheet", row, 1), cells[at]) for row, at in ((1, 0), (2, 2))]
    assert values == [22, 66]


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ('=_xlfn.IMTAN("-3+2i")', "0.00988437503832249+0.965385879022133i"),
        ('=_xlfn.IMCOT("7+25j")', "3.82126757337684E-22-j"),
        ('=IMDIV("13+5j","3.1+2j")', "3.69581190301249-0.771491550330639j"),
        ('=IMPOWER("13+5j",2.3)', "283.928474828384+319.642085799475j"),
        ('=_xlfn.IMCSCH("13+5j")', "1.28233995888454E-06+4.33496947416312E-06j"),
        ("=IMSUM(B1:B2,2)", "5+2i"),
        ('=IMSUM("i","j")', VALUE),
        ('=IMSUB("i","j")', ErrorValue("#NUM!")),
        ('=IMDIV("i",B9)', ErrorValue("#NUM!")),
        ("=IMEXP(B9)", "1"),
        ("=IMARGUMENT(B9)", ErrorValue("#DIV/0!")),
        ('=IMABS("yvj")', ErrorValue("#NUM!")),
        ("=IMREAL(TRUE)", VALUE),
        ('=COMPLEX(0,-1,"j")', "-j"),
        ('=COMPLEX(1,2,"k")', VALUE),
    ],
)
def test_complex_numbers_are_written_as_excel_writes_them(formula: str, value: CellValue) -> None:
    cells = {"A1": formula, "B1": "1+i", "B2": "2+i"}
    values, _, _ = computed(cells, {1: "0.1i"})
    assert values[1] == value


OWN_FUNCTIONS = ("=", "+", "SUM", "IF", "INDIRECT", "SUM[]", "*[]", "+[]", "{}")
OWN_RECORDS = read_table(
    {
        "measured_with": {},
        "functions": {
            **{name: {"judge": [9, 9]} for name in OWN_FUNCTIONS},
            "MAX": {"judge": [8, 9]},
            "MIN": {"judge": [2, 2]},
        },
    }
)


def by_records(
    cells: Mapping[str, Any],
) -> tuple[dict[int, CellValue], Reading]:
    """Row of column A -> value, by the judge's records; the engines say 99 everywhere."""
    said = {ref(row): 99 for row in range(1, 9)}
    engine = Reading("libreoffice", said)
    recalculator = Recalculator([engine, ScriptedEngine("ironcalc", said)], trust=OWN_RECORDS)
    result = recalculator.fill(workbook(cells), [ALL], origin=Origin.SOLUTION)
    assert engine.asked or 99 not in result.values.values()
    return {cell.row: value for cell, value in result.values.items() if cell.column == 1}, engine


def test_no_engine_is_asked_where_the_judge_was_always_right() -> None:
    cells = {"A1": "=SUM(B1:B2)+1", "A2": "=IF(A1,A1+B1,0)", "A3": ("A3", "=SUM(B1:B2*2)")}
    values, engine = by_records({**cells, "B1": 1, "B2": 2})
    assert values == {1: 4, 2: 5, 3: 6}
    assert not engine.asked


@pytest.mark.parametrize(
    "formula",
    [
        "=MAX(B1:B2)",  # was wrong once
        "=MIN(B1:B2)",  # too few cells
        "=SUM(B1:B2)+RAND()*0",
        "=SUM(INDIRECT(B3))",
        "=SUM(Rates)",
        "=_xlfn.SINGLE(B1:B2)+1",
        "=B1:B2+1",
        "=SUM(Sheet9!B1)",
    ],
)
def test_engines_are_asked_where_the_judge_has_no_record(formula: str) -> None:
    cells = {"A1": formula, "A2": "=A1+1", "A3": "=B1+1", "B1": 1, "B2": 2, "B3": "B1:B2"}
    values, engine = by_records(cells)
    assert values == {1: 99, 2: 99, 3: 2}
    # Engines compute every formula, so what they say of one cell does not depend on the others.
    seen = open_workbook(engine.opened).cells(ALL)
    assert seen[3, 1].formula == "=B1+1"


def test_references_made_from_text_may_name_constants_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("judge.recalc.calculation.calculates", lambda _: True)
    cells = {"A1": "=SUM(INDIRECT(C1))", "A2": "=SUM(INDIRECT(C2))", "A3": "=A1+1", "B2": "=B1+1"}
    values, _ = by_records({**cells, "B1": 5, "C1": "B1:B1", "C2": "B1:B2"})
    assert values == {1: 5, 2: 99, 3: 99}


def test_cells_that_an_array_formula_fills_are_as_sure_as_it_is() -> None:
    cells = {"A1": "=SUM(C1:C2)+1", "B1": 1, "B2": 2}
    assert not by_records({**cells, "C1": ("C1:C2", "=B1:B2+1")})[1].asked
    assert by_records({**cells, "C1": ("C1:C2", "=MAX(B1:B2)")})[1].asked


def test_cells_into_which_a_formula_may_spill_are_left_to_engines() -> None:
    # Excel may fill more cells below C1 than the file states.
    cells = {"C1": ("C1", "=B1:B2*2"), "B1": 1, "B2": 2}
    assert by_records({**cells, "A1": "=SUM(C1:C2)"})[1].asked
    assert not by_records({**cells, "A1": "=SUM(B1:B2)"})[1].asked


def test_formulas_that_take_long_are_left_to_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = {"A1": "=SUM(B1:B2)+1", "A2": "=SUM(B1:B3)+1", "B1": 1, "B2": 2}
    monkeypatch.setattr(contents, "MAX_INSTEAD", 3)
    assert by_records(cells)[0] == {1: 99, 2: 99}
    monkeypatch.setattr(contents, "MAX_INSTEAD", 30)
    assert by_records(cells)[0] == {1: 4, 2: 4}


def test_an_explanation_shows_what_engines_say_that_were_not_needed() -> None:
    engine = Reading("libreoffice", {ref(1): 7})
    recalculator = Recalculator([engine, ScriptedEngine("ironcalc", {})], trust=OWN_RECORDS)
    book = workbook({"A1": "=SUM(B1:B2)", "B1": 1, "B2": 2})
    explanation = recalculator.explain(book, ref(1), origin=Origin.SOLUTION)
    assert (explanation.value, explanation.believed) == (3, ("judge",))
    assert explanation.why.startswith("no engine is needed")
    assert explanation.answers["libreoffice"].value == 7
    assert open_workbook(engine.opened).cells(ALL)[1, 1].formula == "=SUM(B1:B2)"


def test_the_judge_has_no_record_without_engines_to_compare() -> None:
    engine = ScriptedEngine("libreoffice", {ref(1): 99})
    recalculator = Recalculator([engine], trust=OWN_RECORDS)
    result = recalculator.fill(workbook({"A1": "=B1+1"}), [ALL], origin=Origin.SOLUTION)
    assert result.values == {ref(1): 99}
