"""Rectangles that cover some cells."""

from hypothesis import given
from hypothesis import strategies as st

from judge.recalc.asking import SPARE_CELLS, SPARE_FACTOR, covering
from judge.workbook.cell import CellRange, CellRef

cells = st.builds(
    CellRef,
    st.sampled_from(["A", "B"]),
    st.integers(1, 100_000),
    st.integers(1, 300),
)


@given(st.sets(cells, max_size=40))
def test_every_cell_is_covered_and_little_else(wanted: set[CellRef]) -> None:
    found = covering(wanted)
    for cell in wanted:
        assert any(
            area.sheet == cell.sheet
            and area.min_row <= cell.row <= area.max_row
            and area.min_column <= cell.column <= area.max_column
            for area in found
        )
    most = 2 * SPARE_CELLS + (SPARE_FACTOR + 65) * len(wanted)
    assert sum(area.size for area in found) <= most


def test_no_cells_need_no_rectangles() -> None:
    assert covering([]) == ()


def test_a_small_sheet_is_one_rectangle() -> None:
    wanted = [CellRef("S", 2, 3), CellRef("S", 9, 1)]
    assert covering(wanted) == (CellRange("S", 2, 1, 9, 3),)


def test_distant_corners_are_read_separately() -> None:
    wanted = [CellRef("S", 1, 1), CellRef("S", 1_048_576, 16_384)]
    assert sum(area.size for area in covering(wanted)) == 2
