"""The truth of conditions: the formulas that the engines get, and their results."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import openpyxl
import pytest

from judge.compare.cells.sides import Answers, ConditionQuestions, Questions
from judge.core.submission import Origin
from judge.errors import WorkbookError
from judge.recalc.computing import ScratchFormula, answer_conditions, with_formulas
from judge.recalc.contract import PLAIN, Dialect, EngineResult
from judge.recalc.names import Mode
from judge.recalc.policy import Recalculator
from judge.recalc.select import open_recalculator
from judge.sandbox import open_sandbox
from judge.workbook.address import MAX_COLUMN, cell_key
from judge.workbook.cell import CellRange, CellRef, CellValue, ErrorValue
from judge.workbook.reader import Workbook, open_workbook
from tests.unit.annotate.books import with_part

SHEET = "S"


def book(cells: Mapping[str, Any]) -> bytes:
    workbook = openpyxl.Workbook()
    sheet = workbook.worksheets[0]
    sheet.title = SHEET
    for address, value in cells.items():
        sheet[address] = value
    target = io.BytesIO()
    workbook.save(target)
    return target.getvalue()


class ReadingEngine:
    """Gives each formula cell the result of a function of its text."""

    name = "libreoffice"
    version = "1"

    def __init__(self, value: Callable[[str], CellValue]) -> None:
        self._value = value
        self.computed: list[str] = []

    def compute(
        self,
        workbook: bytes,
        ranges: Sequence[CellRange],
        *,
        timeout_s: float,
        dialect: Dialect = PLAIN,
    ) -> EngineResult:
        opened = open_workbook(workbook)
        values: dict[CellRef, CellValue] = {}
        for area in ranges:
            for cell in opened.formula_cells(area):
                text = (cell.formula or "")[1:]
                self.computed.append(text)
                values[CellRef(area.sheet, cell.row, cell.column)] = self._value(text)
        return EngineResult(values, {}, 0.0)

    def close(self) -> None:
        pass


def ask(
    recalculator: Recalculator, workbook: Workbook, *formulas: str, ranges: Sequence[CellRange] = ()
) -> Answers:
    questions = Questions(dict.fromkeys((SHEET, each) for each in formulas), dict.fromkeys(ranges))
    asked = ConditionQuestions(Questions(), questions)
    return answer_conditions(recalculator, asked, workbook, workbook, origin=Origin.SOLUTION).output


def told(
    data: bytes, value: Callable[[str], CellValue], *formulas: str, mode: Mode = "auto"
) -> Answers:
    recalculator = Recalculator([ReadingEngine(value)], mode=mode)
    return ask(recalculator, open_workbook(data), *formulas)


# -- scratch cells --------------------------------------------------------------------------------


def test_scratch_formulas_are_outside_every_range_of_the_sheet() -> None:
    data = book({"A1": 1, "C7": "=A1"})
    copy, places = with_formulas(
        data, {SHEET: [ScratchFormula('A1&"<"'), ScratchFormula("1", True)]}
    )
    first, second = places[SHEET]
    assert (first.row, first.column, second.row) == (9, MAX_COLUMN, 10)
    workbook = open_workbook(copy)
    area = CellRange(SHEET, 1, 1, 20, MAX_COLUMN)
    found = {(each.row, each.column): each for each in workbook.formula_cells(area)}
    assert found[9, MAX_COLUMN].formula == '=A1&"<"'
    assert found[10, MAX_COLUMN].array_range == "XFD10"
    assert found[7, 3].formula == "=A1"


def test_a_sheet_without_cells_takes_scratch_formulas_too() -> None:
    data = book({})
    bare = with_part(
        data,
        "xl/worksheets/sheet1.xml",
        lambda xml: xml.replace(b"<sheetData></sheetData>", b"<sheetData/>"),
    )
    for each in (data, bare):
        copy, places = with_formulas(each, {SHEET: [ScratchFormula("1=1")]})
        ref = places[SHEET][0]
        sheet = open_workbook(copy).sheet(SHEET)
        sheet.used_window()
        assert sheet.formula(cell_key(ref.row, ref.column)) == "=1=1"


def test_a_full_or_broken_sheet_takes_none() -> None:
    with pytest.raises(WorkbookError, match="no room"):
        with_formulas(book({"A1048576": 1}), {SHEET: [ScratchFormula("1")]})
    with pytest.raises(WorkbookError, match="no worksheet 'T'"):
        with_formulas(book({}), {"T": [ScratchFormula("1")]})
    broken = with_part(
        book({"A1": 1}),
        "xl/worksheets/sheet1.xml",
        lambda xml: xml.replace(b"</sheetData>", b"").replace(b"<sheetData>", b"<sheetData >"),
    )
    with pytest.raises(WorkbookError, match="have no end tag"):
        with_formulas(broken, {SHEET: [ScratchFormula("1")]})


# -- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "holds"),
    [
        (True, True),
        (False, False),
        (2, True),
        (0, False),
        (0.5, True),
        ("TRUE", False),
        (ErrorValue("#N/A"), False),
    ],
)
def test_which_conditions_hold(value: CellValue, holds: bool) -> None:
    answers = told(book({"A1": 1}), lambda _: value, "A1>0")
    assert answers.truths == {(SHEET, "A1>0"): holds}


def test_a_volatile_condition_is_unknown() -> None:
    data = book({"A1": 1, "B1": "=TODAY()", "C1": "=B1+1"})
    answers = told(data, lambda _: True, "A1<NOW()", "C1>A1", "A1>0")
    assert answers.truths == {(SHEET, "A1>0"): True}
    assert set(answers.unknown) == {(SHEET, "A1<NOW()"), (SHEET, "C1>A1")}
    assert "TODAY" in answers.unknown[SHEET, "C1>A1"]


def test_without_computing_every_condition_is_unknown() -> None:
    answers = told(book({"A1": 1}), lambda _: True, "A1>0", mode="never")
    assert not answers.truths
    assert answers.unknown[SHEET, "A1>0"] == "nothing computed it"
    full = told(book({"A1048576": 1}), lambda _: True, "A1>0")
    assert "no room below the last row" in full.unknown[SHEET, "A1>0"]


def test_values_of_ranges_are_computed_too() -> None:
    engine = ReadingEngine(lambda text: 7 if text == "1+6" else None)
    area = CellRange(SHEET, 1, 1, 9, 1)
    answers = ask(Recalculator([engine]), open_workbook(book({"A2": "=1+6"})), ranges=[area])
    assert answers.values.values == {CellRef(SHEET, 2, 1): 7}


def test_conditions_of_blank_cells_are_computed_once() -> None:
    data = book({f"A{row}": row for row in range(1, 6)})
    engine = ReadingEngine(lambda text: "A6" in text)
    formulas = [f'AND($A{row}>$A$1,B{row}="A{row}")' for row in range(1, 3)]
    formulas += [f"$A{row}=$A$1" for row in range(1, 5000)]
    formulas += [f"ROW(A{row})>9" for row in range(10, 13)]
    formulas += [f"A{row}=1" for row in range(8, 11)] + [f"A{row}=2" for row in range(8, 11)]
    formulas += [f"SUM($A$1:A{row})=1" for row in range(8, 11)]
    formulas += ['A9="A10"', 'A10="A11"']
    answers = ask(Recalculator([engine]), open_workbook(data), *formulas)
    assert len(answers.truths) == len(formulas)
    assert len(engine.computed) == 2 + 6 + 3 + 2 + 3 + 2
    assert answers.truths[SHEET, "$A4999=$A$1"]
    assert not answers.truths[SHEET, "$A5=$A$1"]


@pytest.mark.slow
def test_conditions_beyond_the_bound_are_not_evaluated() -> None:
    data = book({"A1": 1})
    engine = ReadingEngine(lambda _: True)
    formulas = [f"A1>{number}" for number in range(10_001)]
    answers = ask(Recalculator([engine]), open_workbook(data), *formulas)
    assert len(answers.truths) == len(engine.computed) == 10_000
    assert "more than 10,000" in answers.otherwise


# -- with the engines -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recalculator() -> Iterator[Recalculator]:
    with (
        contextlib.closing(open_sandbox("bubblewrap")) as sandbox,
        contextlib.closing(open_recalculator(sandbox)) as opened,
    ):
        yield opened


CELLS = {"A1": 5, "A2": "x5", "A4": "=1/0", "A5": "=A1*2", "B1": 5, "B2": 7, "C1": "a b"}


@pytest.mark.bubblewrap
@pytest.mark.timeout(180)
def test_the_engines_evaluate_conditions_correctly(recalculator: Recalculator) -> None:
    held = {
        "A1=(5)": True,
        "A3=(0)": True,
        'A3=("")': True,
        "A2>(9)": True,
        "A4>(0)": False,
        "ISERROR(A4)": True,
        "A5=10": True,
        "COUNTIF(A:A,A1)=1": True,
        "COUNTIF($1:$1,A1)=2": True,
        "MOD(ROW(A3),2)=1": True,
        "SUM(($A$1:$B$2=5)*1)=2": True,
        "OR(7=$B$1:$B$9)": True,
        'NOT(ISERROR(SEARCH("A",C1)))': True,
        "LEN(TRIM(A3))=0": True,
        'LEFT(A2,LEN("x"))="x"': True,
        "A1": True,
        "A3": False,
        "A2": False,
        "NOSUCHFUNCTION(A1)": False,
    }
    # Apart from the others, which a second engine has to confirm: it would compute all that are
    # asked together, and takes a quarter of a minute for a row as wide as the sheet.
    row = "COUNTIF($1:$1,A1)=2"
    truths: dict[str, bool] = {}
    for asked in ([row], [text for text in held if text != row]):
        answers = ask(recalculator, open_workbook(book(CELLS)), *asked)
        assert answers.unknown == {}
        truths |= {text: truth for (_, text), truth in answers.truths.items()}
    assert truths == held
