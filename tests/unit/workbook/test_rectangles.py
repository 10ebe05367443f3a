"""Rectangles of cells: which cells they contain, cover and share."""

from __future__ import annotations

import itertools

import pytest

from judge.workbook.address import Rectangle, Window, parse_window
from judge.workbook.cell import CellRange, CellRef


def window(text: str) -> Window:
    found = parse_window(text)
    assert found is not None
    return found


WINDOWS = [
    Window(top, left, bottom, right)
    for top, bottom in itertools.combinations_with_replacement(range(1, 5), 2)
    for left, right in itertools.combinations_with_replacement(range(1, 4), 2)
]


@pytest.mark.parametrize("one", [window("B2:C3"), window("A1"), window("A4:C4")], ids=str)
def test_geometry_follows_from_the_cells(one: Window) -> None:
    cells = set(one.cells())
    assert list(one.cells()) == sorted(cells)
    assert (one.size, one.first) == (len(cells), min(cells))
    assert one.size == one.rows * one.columns
    every = itertools.product(range(6), range(5))
    assert {cell for cell in every if one.holds(*cell)} == cells
    for two in WINDOWS:
        others = set(two.cells())
        assert one.covers(two) == (others <= cells)
        assert one.overlaps(two) == bool(others & cells)
        common = one.intersection(two)
        assert (set() if common is None else set(common.cells())) == others & cells


def test_a_range_of_a_sheet_is_a_rectangle_too() -> None:
    area = CellRange.of("Data", window("B2:C3"))
    assert isinstance(area, Rectangle)
    assert (area, area.window) == (CellRange("Data", 2, 2, 3, 3), window("B2:C3"))
    assert area.overlaps(window("C3:D9"))
    assert area.has(CellRef("Data", 3, 3))
    assert not area.has(CellRef("Other", 3, 3))
    assert not area.has(CellRef("Data", 4, 3))
