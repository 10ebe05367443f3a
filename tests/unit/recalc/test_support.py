"""Whether a cell is sure depends on its own dependencies, not on other requested cells."""

from __future__ import annotations

import functools
import io
import itertools
from collections.abc import Mapping
from typing import Any

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.recalc.reduction import is_ascii_only, text_beyond_ascii
from judge.recalc.support import Reads, Support
from judge.recalc.trust import read_table
from judge.workbook import dependency
from judge.workbook.cell import Cell, CellRef
from judge.workbook.dependency import FormulaIndex, dependencies
from judge.workbook.reader import open_workbook, sheet_formulas
from tests.bounds import in_bounds

SURE = {"pair": [9, 9]}
MEASURED = ("SUM", "UPPER", "SUMIF", "INDEX", "COUNTIF", "IF")
TRUST = read_table({"measured_with": {}, "functions": dict.fromkeys(MEASURED, SURE)})

Book = Mapping[str, Mapping[tuple[int, int], str]]


def support(book: Book, reads_text: Reads | None = None) -> Support:
    """The support of every formula of some sheets, all of which are requested."""
    cells = {
        sheet: [
            Cell(
                row,
                column,
                None,
                formula=formula.removesuffix("}"),
                array_range=f"R{row}" if formula.endswith("}") else None,
            )
            for (row, column), formula in formulas.items()
        ]
        for sheet, formulas in book.items()
    }
    index = FormulaIndex(cells, cells.__getitem__)
    asked = [(sheet, cell) for sheet, formulas in cells.items() for cell in formulas]
    return Support(dependencies(asked, index), TRUST, reads_text)


def sure(book: Book, reads_text: Reads | None = None) -> set[tuple[int, int]]:
    return {(ref.row, ref.column) for ref in support(book, reads_text).sure() if ref.sheet == "S"}


@pytest.mark.parametrize(
    "unsure",
    [
        "=TODAY()",
        "=MYMACRO(A1)",
        "=TRIM(A1)",
        "=SUM(A1:A2*2)",
        "=SUM(A1:A2)}",
        "=XLOOKUP(1,A1:A2,A1:A2)",
        "=SUM(Rates)",
        "=INDIRECT(A1)",
        '=UPPER("\u00e9")',
        '=UPPER("_x00E9_")',
        "=SUM(A1:A2#)",
        "=B9",
    ],
)
def test_only_cells_that_read_an_unsure_cell_become_unsure(
    unsure: str,
) -> None:
    book = {
        "S": {
            (1, 5): "=SUM(A1:A2)",
            (9, 2): unsure,
            (3, 5): "=SUM(A1:B20)",
            (4, 5): "=E3+1",
            (5, 5): "=SUM(E1:E2)",
        }
    }
    assert sure(book) == {(1, 5), (5, 5)}


def test_a_sheet_of_any_name_may_be_read_under_its_own_name() -> None:
    book = {
        "S": {(1, 1): "='\u00c9t\u00e9'!A1", (2, 1): "='\u00e9t\u00e9'!A1"},
        "\u00c9t\u00e9": {},
    }
    assert sure(book, lambda *_: False) == {(1, 1)}


def test_cells_that_read_themselves_are_not_sure() -> None:
    book = {
        "S": {
            (1, 1): "=B1",
            (1, 2): "=SUM(A1:A2)",
            (2, 1): "=1",
            (3, 1): "=A3",
            (4, 1): "=B1+1",
            (5, 1): "=A2",
        }
    }
    for order in itertools.permutations(book["S"].items()):
        assert sure({"S": dict(order)}) == {(2, 1), (5, 1)}


@pytest.mark.parametrize(
    ("formula", "reads_it"),
    [
        ('=SUMIF(A1:A9,"x",B1)', True),  # the sum range is extended to B9
        ('=SUMIF(A1:A8,"x",B1)', False),
        ('=SUMIF(A1:A9,"x",C1:C9)', False),
        ("=SUMIF(A1:A9,B8,C1:C9)", False),  # a criterion is not extended
        ('=SUMIF(A1:A9,IF(1,"x"),B1)', True),
        ('=SUMIF(A1:A3,"x",INDEX(B1:B7,7))', True),
        ("=SUM(A1:INDEX(C9:C12,2))", True),  # the range crosses it
        ("=SUM(B1:INDEX(B3:B8,2))", False),
        ("=SUM(S:T!A1)", True),
    ],
)
def test_cells_that_a_formula_reads_beyond_its_text_count(formula: str, *, reads_it: bool) -> None:
    book = {"S": {(9, 2): "=TODAY()", (1, 5): formula}, "T": {}}
    assert ((1, 5) in sure(book)) is not reads_it


def test_a_cell_that_an_array_formula_fills_is_not_sure() -> None:
    master = Cell(1, 2, None, formula="=A1:A9*10", array_range="B1:B9")
    asked = [Cell(1, 8, None, formula="=B4+1"), Cell(2, 8, None, formula="=B10+1")]
    index = FormulaIndex(["S"], lambda _: [master, *asked])
    found = dependencies([("S", each) for each in asked], index)
    assert Support(found, TRUST, None).sure() == {CellRef("S", 2, 8)}


def test_beyond_the_bounds_no_cell_is_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    book = {"S": {(row, 1): "=B1" for row in range(1, 9)}}
    assert len(sure(book)) == 8
    monkeypatch.setattr(dependency, "FOLLOWED_LIMIT", 7)
    assert sure(book) == set()


def test_names_and_broken_references_are_known_cell_by_cell() -> None:
    found = support(
        {
            "S": {
                (1, 1): "=Rates",
                (2, 1): "=A1",
                (3, 1): "=#REF!",
                (4, 1): "=A3",
                (5, 1): "=SUM(B1:B9)",
            }
        }
    )
    nameless = {row for row in range(1, 7) if found.is_nameless(CellRef("S", row, 1))}
    broken = {row for row in range(1, 7) if found.is_broken(CellRef("S", row, 1))}
    # A name may refer to anything, and nothing was followed to the last one.
    assert nameless == {1, 2, 6}
    assert broken == {1, 2, 3, 4, 6}


FORMULAS = st.one_of(
    st.just("=TODAY()"),
    st.builds(
        "=SUM({}{}:{}{})".format,
        st.sampled_from("ABC"),
        st.integers(1, 6),
        st.sampled_from("ABC"),
        st.integers(1, 6),
    ),
    st.builds("={}{}".format, st.sampled_from("ABC"), st.integers(1, 6)),
)


@given(st.dictionaries(st.tuples(st.integers(1, 6), st.integers(1, 3)), FORMULAS, max_size=14))
def test_a_cell_is_sure_if_it_reaches_nothing_unsure_and_not_itself(
    formulas: dict[tuple[int, int], str],
) -> None:
    reads = {place: _read(formula) & formulas.keys() for place, formula in formulas.items()}
    expected = set()
    for place in formulas:
        reached: set[tuple[int, int]] = set()
        waiting = set(reads[place])
        while waiting:
            each = waiting.pop()
            reached.add(each)
            waiting |= reads[each] - reached
        circular = any(each in _closure(each, reads) for each in reached | {place})
        volatile = any(formulas[each] == "=TODAY()" for each in reached | {place})
        if not circular and not volatile:
            expected.add(place)
    assert sure({"S": formulas}) == expected


def _closure(
    start: tuple[int, int], reads: Mapping[tuple[int, int], set[tuple[int, int]]]
) -> set[tuple[int, int]]:
    reached: set[tuple[int, int]] = set()
    waiting = set(reads[start])
    while waiting:
        each = waiting.pop()
        reached.add(each)
        waiting |= reads[each] - reached
    return reached


def _read(formula: str) -> set[tuple[int, int]]:
    corners = formula.removeprefix("=SUM(").removeprefix("=").removesuffix(")").split(":")
    if not corners[0][1:].isdigit():
        return set()
    columns = sorted("ABC".index(corner[0]) + 1 for corner in (corners[0], corners[-1]))
    rows = sorted(int(corner[1:]) for corner in (corners[0], corners[-1]))
    return {
        (row, column)
        for row in range(rows[0], rows[1] + 1)
        for column in range(columns[0], columns[1] + 1)
    }


ROWS = 40_000
LARGE = {
    "growing sums": ["=1", *(f"=SUM(A$1:A{row})" for row in range(1, ROWS))],
    "the same block": ["=SUM($C$1:$XFD$9)"] * ROWS,
    "a chain": [f"=A{row}" for row in range(ROWS)],
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", LARGE)
def test_a_property_is_computed_once_for_all_formulas(shape: str) -> None:
    cells = [Cell(row, 1, None, formula=text) for row, text in enumerate(LARGE[shape], 1)]
    cells += [Cell(9, column, None, formula="=1") for column in range(3, 9_000)]
    asked = [("S", cell) for cell in cells[:ROWS]]

    def pass_on() -> None:
        found = dependencies(asked, FormulaIndex(["S"], lambda _: cells))
        assert len(Support(found, TRUST, None).sure()) >= ROWS

    assert in_bounds(pass_on, cpu_s=30, memory_bytes=3 << 30) == 0


def of_text(cells: Mapping[str, Any]) -> set[str]:
    """The sure cells of a workbook, among its formulas in column E."""
    made = openpyxl.Workbook()
    sheet = made.worksheets[0]
    sheet.title = "S"
    for address, value in cells.items():
        sheet[address] = value
    stream = io.BytesIO()
    made.save(stream)
    workbook = open_workbook(stream.getvalue())
    index = FormulaIndex(workbook.sheet_names, functools.partial(sheet_formulas, workbook))
    asked = [("S", cell) for cell in sheet_formulas(workbook, "S")]
    reads_text = None if is_ascii_only(workbook.data) else text_beyond_ascii(workbook)
    found = Support(dependencies(asked, index), TRUST, reads_text).sure()
    return {f"E{ref.row}" for ref in found if ref.column == 5}


FORMULAS_OF_TEXT = {"E1": "=SUM(A1:A9)", "E2": "=UPPER(B3)", "E3": '=UPPER("plain")', "E4": "=E2"}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, {"E1", "E2", "E3", "E4"}),
        ({"B3": "Ren\u00e9"}, {"E1", "E3"}),
        ({"B3": "Ren_x00E9_"}, {"E1", "E3"}),
        ({"A9": "Ren\u00e9"}, {"E2", "E3", "E4"}),
        # None of these is read by a formula that is asked for.
        ({"A10": "Ren\u00e9", "C1": "\u4e2d\u6587", "B2": "\u00e9"}, {"E1", "E2", "E3", "E4"}),
        ({"F1": '=UPPER("\u00e9")'}, {"E1", "E2", "E3", "E4"}),
    ],
)
def test_text_counts_where_a_cell_reads_it(more: Mapping[str, Any], expected: set[str]) -> None:
    assert of_text({**FORMULAS_OF_TEXT, **more}) == expected
