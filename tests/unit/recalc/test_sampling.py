"""Thousands of formulas of the same kind: a sample decides whether two engines agree."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence

import pytest

from judge.recalc.agreement import same_value
from judge.recalc.asking import Question
from judge.recalc.cascade import Cascade, CascadeResult
from judge.recalc.contract import PLAIN, Dialect, EngineResult
from judge.recalc.dependency import FormulaIndex, dependencies
from judge.recalc.rewrite import with_constants
from judge.recalc.sampling import FEWEST, SAMPLE, agrees, draw
from judge.recalc.trust import read_table
from judge.workbook.cell import Cell, CellRange, CellRef, CellValue, ErrorValue
from judge.workbook.formula_cells import sheet_formulas
from judge.workbook.reader import open_workbook
from tests.unit.recalc.fakes import SHEET, package, ref

SURE = {name: [9, 9] for name in ("libreoffice", "ironcalc", "formualizer", "pair")}
TRUST = read_table({"measured_with": {}, "functions": {"SUM": SURE}})
MANY = FEWEST + 200

FORMULAS = {ref(row, 2): f"=SUM(A$1:A{row})" for row in range(1, MANY + 1)}
TRUTH: dict[CellRef, CellValue] = {cell: cell.row * 10 for cell in FORMULAS}


@pytest.fixture(scope="module")
def book() -> bytes:
    cells = {f"B{cell.row}": formula for cell, formula in FORMULAS.items()}
    return package(cells | {f"A{cell.row}": 10 for cell in FORMULAS})


class WatchedEngine:
    """Says what a function says of a cell, and remembers what it was asked."""

    def __init__(self, name: str, says: Callable[[CellRef], CellValue]) -> None:
        self.name = name
        self.version = "1"
        self._says = says
        self.workbooks: list[bytes] = []

    def compute(
        self,
        workbook: bytes,
        ranges: Sequence[CellRange],
        *,
        timeout_s: float,
        dialect: Dialect = PLAIN,
    ) -> EngineResult:
        assert timeout_s > 0
        assert dialect is PLAIN
        self.workbooks.append(workbook)
        asked = {
            CellRef(area.sheet, row, column)
            for area in ranges
            for row in range(area.min_row, area.max_row + 1)
            for column in range(area.min_column, area.max_column + 1)
        }
        return EngineResult({cell: self._says(cell) for cell in asked & TRUTH.keys()}, {}, 0.0)

    def close(self) -> None:
        """Nothing to close."""


def computed(
    book: bytes, first: Callable[[CellRef], CellValue], second: Callable[[CellRef], CellValue]
) -> tuple[CascadeResult, dict[str, WatchedEngine]]:
    cells = [Cell(c.row, c.column, None, formula=text) for c, text in FORMULAS.items()]
    index = FormulaIndex([SHEET], lambda _: cells)
    rests_on = dependencies([(SHEET, cell) for cell in cells], index)
    engines = {
        "formualizer": WatchedEngine("formualizer", first),
        "ironcalc": WatchedEngine("ironcalc", second),
        "libreoffice": WatchedEngine("libreoffice", TRUTH.__getitem__),
    }
    question = Question(book, FORMULAS, rests_on, PLAIN, 30.0)
    return Cascade(list(engines.values()), TRUST).compute(question), engines


def test_a_sample_on_which_both_agree_settles_all(book: bytes) -> None:
    outcome, engines = computed(book, TRUTH.__getitem__, TRUTH.__getitem__)
    assert outcome.values == TRUTH
    assert outcome.used == {"formualizer", "ironcalc"}
    assert not engines["libreoffice"].workbooks
    left = sheet_formulas(open_workbook(engines["ironcalc"].workbooks[0]), SHEET)
    assert SAMPLE <= len(left) <= SAMPLE + 2


def test_a_sample_on_which_they_disagree_settles_nothing(book: bytes) -> None:
    outcome, engines = computed(book, TRUTH.__getitem__, lambda cell: cell.row)
    assert outcome.values == TRUTH
    assert outcome.used == {"libreoffice"}
    assert len(engines["libreoffice"].workbooks) == 1


def test_a_value_of_a_rare_kind_stands_for_itself(book: bytes) -> None:
    # One string, one zero, one error among a thousand numbers: wrong in the first engine only.
    odd: CellValue
    for odd in ("text", 0, True, ErrorValue("#N/A")):
        said = TRUTH | {ref(777, 2): odd}
        outcome, _ = computed(book, said.__getitem__, TRUTH.__getitem__)
        assert outcome.values == TRUTH


def test_what_is_settled_holds_the_value_of_the_first_engine(book: bytes) -> None:
    sample = draw(book, FORMULAS, TRUTH)
    assert sample is not None
    reduced = open_workbook(sample.package)
    whole = CellRange(SHEET, 1, 1, MANY, 2)
    for (row, column), cell in reduced.cells(whole).items():
        here = ref(row, column)
        if column == 1:
            assert cell.value == 10
        elif here in sample.cells:
            assert cell.formula == FORMULAS[here]
        else:
            assert (cell.formula, cell.value) == (None, TRUTH[here])
    assert {ref(1, 2), ref(MANY, 2)} <= sample.cells


def test_the_sample_is_the_same_in_every_run_and_another_for_another_workbook(book: bytes) -> None:
    first, again, other = (draw(each, FORMULAS, TRUTH) for each in (book, book, recommented(book)))
    assert first is not None
    assert again is not None
    assert other is not None
    assert first.cells == again.cells
    assert first.cells != other.cells


def recommented(book: bytes) -> bytes:
    stream = io.BytesIO(book)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.comment = b"another"
    return stream.getvalue()


def test_few_formulas_or_formulas_of_many_kinds_are_all_computed_twice(book: bytes) -> None:
    few = dict(list(FORMULAS.items())[: FEWEST - 1])
    assert draw(book, few, TRUTH) is None
    diverse = {cell: f"=SUM(A1)+{'A2+' * (cell.row // 40)}1" for cell in FORMULAS}
    assert draw(book, diverse, TRUTH) is None


def test_a_cell_without_a_value_is_no_agreement(book: bytes) -> None:
    sample = draw(book, FORMULAS, TRUTH)
    assert sample is not None
    missing = {cell: value for cell, value in TRUTH.items() if cell != min(sample.cells)}
    assert agrees(sample, TRUTH, TRUTH, same_value)
    assert not agrees(sample, TRUTH, missing, same_value)


def test_constants_replace_formulas_in_any_notation() -> None:
    sheet = (
        '<x:c r="A1" s="0"><x:f>1+1</x:f><x:v>7</x:v></x:c>'
        '<x:c t="str" r="B1"><x:f>C1</x:f></x:c><x:c r="C1"><x:f/></x:c>'
        '<x:c r="D1"><x:f t="shared" ref="D1:E1" si="0">A1</x:f></x:c>'
        '<x:c r="E1"><x:f t="shared" si="0"/></x:c>'
    )
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    text = (
        f'<x:worksheet xmlns:x="{main}"><x:sheetData><x:row r="1">{sheet}</x:row></x:sheetData>'
        "</x:worksheet>"
    )
    stream = io.BytesIO(package({"A1": 1}))
    target = io.BytesIO()
    with zipfile.ZipFile(stream) as source, zipfile.ZipFile(target, "w") as copy:
        for entry in source.infolist():
            is_sheet = entry.filename == "xl/worksheets/sheet1.xml"
            copy.writestr(entry, text if is_sheet else source.read(entry))
    new: list[CellValue] = ["a<b", ErrorValue("#N/A"), True, 4, 2.5]
    values = {ref(1, column): value for column, value in enumerate(new, start=1)}
    settled = open_workbook(with_constants(target.getvalue(), values))
    cells = settled.cells(CellRange(SHEET, 1, 1, 1, 5))
    assert [cells[1, column].value for column in (1, 2, 3, 5)] == [
        "a<b",
        ErrorValue("#N/A"),
        True,
        2.5,
    ]
    assert [cells[1, column].formula for column in range(1, 6)] == [None, None, None, "=A1", None]
