"""Finds the cells on the screen by hit tests, on a sheet whose positions are known."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import Any

import pytest

TABLE = ("office", "/table")
WINDOW = (14, 157, 883, 60)
COLUMNS = 100
WIDTHS = (77, 212, 77, 30, 5, 77)
ROW_HEIGHT = 20


class Grid:
    """Answers like an office that shows a sheet, in either direction.

    Of a sheet that runs from right to left, it gives where a cell ends in place of where it begins,
    and cuts off at the window's edge what it then thinks of it. A merged cell covers the cells of
    the second and third row in one column, if there is one.
    """

    def __init__(self, *, to_the_left: bool, merged: int | None = None) -> None:
        self._to_the_left = to_the_left
        self._merged = merged
        self.hit_tests = 0

    def span(self, column: int) -> tuple[int, int]:
        """Returns the first pixel of a column, and the pixel after its last."""
        left, right = WINDOW[0], WINDOW[0] + WINDOW[2]
        before = sum(WIDTHS[each % len(WIDTHS)] for each in range(column))
        width = WIDTHS[column % len(WIDTHS)]
        if self._to_the_left:
            return max(left, right - before - width), right - before
        return left + before, min(right, left + before + width)

    def ask(self, questions: Iterable[Any]) -> list[Any]:
        return [self._answer(each) for each in questions]

    def _answer(self, question: Any) -> Any:
        match question.method:
            case "Get":
                return COLUMNS
            case "GetAccessibleAtPoint":
                self.hit_tests += 1
                x, y, _ = question.arguments
                row = (y - WINDOW[1]) // ROW_HEIGHT
                column = next(
                    number
                    for number in range(COLUMNS)
                    if self.span(number)[0] <= x < self.span(number)[1]
                )
                if column == self._merged:
                    row = min(row, 1)
                return ("office", f"/cell/{row * COLUMNS + column}")
            case "GetIndexInParent":
                return int(question.ref[1].rpartition("/")[2])
            case "GetChildAtIndex":
                return ("office", f"/cell/{question.arguments[0]}")
            case "GetExtents":
                return self._extents(int(question.ref[1].rpartition("/")[2]))
        raise AssertionError(question)

    def _extents(self, index: int) -> tuple[int, int, int, int]:
        row, column = divmod(index, COLUMNS)
        start, end = self.span(column)
        right = WINDOW[0] + WINDOW[2]
        if self._to_the_left:
            start, end = min(end, right - 1), min(end + WIDTHS[column % len(WIDTHS)], right)
        height = 2 * ROW_HEIGHT if (row, column) == (1, self._merged) else ROW_HEIGHT
        return start, WINDOW[1] + row * ROW_HEIGHT, end - start, height


@pytest.fixture
def driver_cells(driver: Callable[[str], types.ModuleType]) -> types.ModuleType:
    return driver("cells")


@pytest.mark.parametrize("to_the_left", [False, True])
def test_cells_are_where_clicks_reach_them(
    to_the_left: bool, driver_cells: types.ModuleType
) -> None:
    grid = Grid(to_the_left=to_the_left)
    cells = driver_cells.Sheet(grid, TABLE, WINDOW).cells()
    first = [cell for cell in cells if cell.name.endswith("1")]
    names = "ABCDEFGHIJKL"[: len(first)]
    assert [cell.name for cell in first] == [
        f"{letter}1" for letter in (reversed(names) if to_the_left else names)
    ]
    assert len(first) > 8
    assert len(cells) == 3 * len(first)
    for cell in cells:
        start, end = grid.span(names.index(cell.name[0]))
        x, _, width, _ = cell.box
        assert abs(x - start) <= 1
        assert abs(x + width - end) <= 1


def test_lines_after_the_first_search_only_what_a_merged_cell_may_hide(
    driver_cells: types.ModuleType,
) -> None:
    plain, merged = (Grid(to_the_left=False, merged=column) for column in (None, 0))
    expected, found = (driver_cells.Sheet(grid, TABLE, WINDOW).cells() for grid in (plain, merged))
    assert [(cell.name, cell.box) for cell in found] == [(cell.name, cell.box) for cell in expected]
    rows, columns = WINDOW[3] // ROW_HEIGHT, len(expected) * ROW_HEIGHT // WINDOW[3]
    assert plain.hit_tests < 2 * (rows + columns)  # three lines for rows, three for columns
    assert merged.hit_tests <= plain.hit_tests + 2 * rows


def test_of_very_many_cells_the_first_rows_are_read(
    driver_cells: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    sheet = driver_cells.Sheet(Grid(to_the_left=False), TABLE, WINDOW)
    everything = [cell.name for cell in sheet.cells()]
    monkeypatch.setattr(driver_cells, "MAX_CELLS", len(everything) - 1)
    assert [cell.name for cell in sheet.cells()] == everything[: len(everything) * 2 // 3]
