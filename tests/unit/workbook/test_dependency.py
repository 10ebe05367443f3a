"""Which formulas a cell depends on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import WorkbookError
from judge.formulas.references import Reference
from judge.workbook import dependency
from judge.workbook.cell import Cell
from judge.workbook.dependency import (
    Dependencies,
    FormulaIndex,
    Search,
    dependencies,
    dependencies_or_doubt,
)
from tests.bounds import in_bounds

SHEETS = {
    "One": {(1, 1): "=A2+Two!A1", (2, 1): "=B5", (5, 2): "=1", (9, 9): "=XLOOKUP(1,A:A,A:A)"},
    "Two": {(1, 1): "=SUM(B:B)", (7, 2): "=TODAY()", (8, 3): "=LEFT(A1)"},
}


def index(sheets: dict[str, dict[tuple[int, int], str]] = SHEETS) -> FormulaIndex:
    return FormulaIndex(
        sheets,
        lambda name: [
            Cell(row, column, None, formula=formula)
            for (row, column), formula in sheets[name].items()
        ],
    )


def of(
    sheet: str, row: int, column: int, formula: str, array_range: str | None = None
) -> Dependencies:
    cell = Cell(row, column, None, formula=formula, array_range=array_range)
    return dependencies([(sheet, cell)], index())


def test_only_reached_formulas_count() -> None:
    said = of("One", 1, 1, "=A2+Two!A1")
    assert said.cells == 5
    assert said.functions == {"SUM", "TODAY"}
    assert said.volatile == {"TODAY"}
    assert not said.unprefixed
    assert said.complete


def test_sheet_names_are_found_in_any_case() -> None:
    assert of("One", 3, 3, "='TWO'!B7").volatile == {"TODAY"}
    assert of("One", 3, 3, "=Three!B7").functions == frozenset()


def test_a_formula_that_may_read_any_cell_depends_on_everything() -> None:
    anywhere = {**SHEETS, "One": {**SHEETS["One"], (3, 3): "=INDIRECT(A9)"}}
    cell = Cell(3, 3, None, formula="=INDIRECT(A9)")
    said = dependencies([("One", cell)], index(anywhere))
    assert not said.complete
    assert said.opaque
    assert said.unprefixed == {"XLOOKUP"}


def test_circular_references_end() -> None:
    circle = {"S": {(1, 1): "=B1", (1, 2): "=A1"}}
    said = dependencies([("S", Cell(1, 1, None, formula="=B1"))], index(circle))
    assert said.cells == 2


@pytest.mark.slow
def test_a_formula_does_not_read_a_range_of_which_it_uses_only_the_size() -> None:
    sheets = {"S": {(1, 1): "=ROWS(A$1:A1)+COLUMN(Other!B2)", (1, 2): "=ROWS(A$1:A1,B1)"}}
    cells = index({**sheets, "Other": {(2, 2): "=1"}})
    sized, read = [
        dependency.dependencies([("S", Cell(1, column, None, formula))], cells)
        for column, formula in enumerate(("=ROWS(A$1:A1)+COLUMN(Other!B2)", "=SUM(B2:B3)"), 1)
    ]
    assert sized.walk is not None
    assert read.walk is not None
    assert [tuple(step.reads) for step in sized.walk.steps] == [()]
    assert [len(step.reads) for step in read.walk.steps] == [1]
    assert sized.reach is not None
    assert sized.reach.sheets == {"S", "Other"}  # the sheets stay in what an engine gets


def test_too_many_formulas_are_not_followed_one_by_one() -> None:
    limit = dependency.FOLLOWED_LIMIT
    rows = limit + 2
    cells = [Cell(row, 1, None, formula=f"=A{row + 1}") for row in range(1, rows)]
    said = dependencies([("S", cells[0])], FormulaIndex(["S"], lambda _: cells))
    assert not said.complete


def test_array_formulas_are_noticed() -> None:
    assert of("One", 1, 3, "=SUM(A1)", array_range="C1").array_sensitive
    assert not of("One", 1, 3, "=SUM(A9)").array_sensitive


def test_a_sheet_that_cannot_be_read_may_hold_anything() -> None:
    def refuse(_: str) -> list[Cell]:
        raise WorkbookError("broken")

    cell = Cell(1, 1, None, formula="=SUM(B:B)")
    said = dependencies_or_doubt([("S", cell)], FormulaIndex(["S"], refuse))
    assert not said.complete
    assert said.array_sensitive
    assert said.functions == {"SUM"}


ROWS = 40_000
MEMORY_BYTES = 3 << 30
CPU_S = 30


def growing_sums() -> list[Cell]:
    return [Cell(row, 1, None, formula=f"=SUM(A$1:A{row - 1})") for row in range(2, ROWS)]


def counts_so_far() -> list[Cell]:
    return [
        each
        for row in range(2, ROWS // 2)
        for each in (
            Cell(row, 1, None, formula=f"=LEFT(C{row},3)"),
            Cell(row, 2, None, formula=f"=COUNTIF(A$2:A{row},A{row})"),
        )
    ]


@pytest.mark.slow
@pytest.mark.parametrize("shape", [growing_sums, counts_so_far])
def test_overlapping_ranges_cost_their_cells_only_once(shape: Callable[[], list[Cell]]) -> None:
    cells = shape()

    def followed() -> None:
        said = dependencies([("S", cell) for cell in cells], FormulaIndex(["S"], lambda _: cells))
        assert said.complete
        assert said.cells == len(cells)

    assert in_bounds(followed, cpu_s=CPU_S, memory_bytes=MEMORY_BYTES) == 0


def steps(cells: list[Cell]) -> int:
    index = FormulaIndex(["S"], lambda _: cells)
    before = index.work_left
    dependencies([("S", cell) for cell in cells], index)
    return before - index.work_left


def test_steps_grow_with_the_formulas_and_not_with_what_they_name() -> None:
    spent = []
    for rows in (1_000, 2_000):
        cells = [Cell(row, 1, None, formula=f"=SUM(A$1:A{row - 1})") for row in range(2, rows)]
        spent.append(steps(cells))
    assert spent[1] < 2.2 * spent[0]


def test_after_too_much_work_a_formula_depends_on_everything() -> None:
    cells = [Cell(row, 1, None, formula=f"=A{row + 1}") for row in range(1, 100)]
    cells.append(Cell(500, 5, None, formula="=TODAY()"))
    index = FormulaIndex(["S"], lambda _: cells, work=2_000)
    for _ in range(2):
        said = dependencies([("S", cells[0])], index)
        assert (said.complete, said.cells) == (False, 100)
        assert said.volatile == {"TODAY"}
    assert not dependencies([("S", cells[98])], index).complete
    assert dependencies([("S", cells[98])], FormulaIndex(["S"], lambda _: cells)).complete


rectangles = st.lists(
    st.tuples(st.integers(1, 12), st.integers(1, 6), st.integers(1, 12), st.integers(1, 6)),
    max_size=12,
)


@given(st.sets(st.tuples(st.integers(1, 12), st.integers(1, 6))), rectangles)
def test_every_cell_of_every_rectangle_is_found_once(
    places: set[tuple[int, int]], areas: list[tuple[int, int, int, int]]
) -> None:
    cells = [Cell(row, column, None, formula="=1") for row, column in places]
    search = Search(FormulaIndex(["S"], lambda _: cells))
    found: list[tuple[int, int]] = []
    wanted: set[tuple[int, int]] = set()
    for top, left, bottom, right in areas:
        area = Reference(None, top, left, bottom, right)
        found += [(cell.row, cell.column) for _, cell in search.unseen(area, "S")]
        wanted |= {
            (row, column)
            for row, column in places
            if top <= row <= bottom and left <= column <= right
        }
    assert len(found) == len(set(found))
    assert set(found) == wanted


def test_a_cell_that_an_array_formula_fills_depends_on_that_formula() -> None:
    master = Cell(1, 2, None, formula="=A1:A300*10", array_range="B1:B300")
    inputs = [Cell(row, 1, None, formula="=ROW()*2") for row in range(1, 301)]
    asked = Cell(1, 8, None, formula="=B4+1")
    cells = {"S": [asked, master, *inputs]}
    found = dependencies([("S", asked)], FormulaIndex(cells, cells.__getitem__))
    assert found.array_sensitive
    assert found.cells == 302
    assert found.reach is None


def test_a_formula_that_may_read_further_counts_the_whole_workbook() -> None:
    """The sum range of SUMIF has the size of the criteria range, whatever the text names."""
    asked = Cell(1, 8, None, formula='=SUMIF(A1:A3,"x",B1)')
    today = Cell(3, 2, None, formula="=TODAY()")
    cells = {"S": [asked, today]}
    found = dependencies([("S", asked)], FormulaIndex(cells, cells.__getitem__))
    assert found.volatile == {"TODAY"}
    assert found.reach is None
