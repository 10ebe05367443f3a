"""Sets of cells, written as rectangles."""

from __future__ import annotations

from collections.abc import Sequence

from judge.workbook.address import Window, parse_window

Rows = tuple[Window, ...]

_MOST_RECTANGLES = 2000


def cells_of(places: Sequence[str]) -> Rows:
    """The cells of some rectangles: for each band of rows, the columns that are covered."""
    return tuple(
        window for each in places if (window := parse_window(each.replace("$", "").upper()))
    )


def between(inner: Rows, places: Sequence[str], outer: Rows) -> bool:
    """Whether some cells hold all of others and are among a third set, however they are written."""
    middle = cells_of(places)
    return _covers(middle, inner) and _covers(outer, middle)


def overlap(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether a cell is in rectangles of both lists."""
    others = cells_of(second)
    return any(
        one.min_row <= two.max_row
        and two.min_row <= one.max_row
        and one.min_column <= two.max_column
        and two.min_column <= one.max_column
        for one in cells_of(first)[:_MOST_RECTANGLES]
        for two in others[:_MOST_RECTANGLES]
    )


def _covers(outer: Rows, inner: Rows) -> bool:
    """Whether every cell of some rectangles is in one of others."""
    edges = sorted({row for each in (*outer, *inner) for row in (each.min_row, each.max_row + 1)})
    if len(edges) > 2000:
        return all(any(_holds(each, place) for each in outer) for place in inner)
    for top in edges:
        wanted = _columns(inner, top)
        have = _columns(outer, top)
        if any(not any(a <= first and last <= b for a, b in have) for first, last in wanted):
            return False
    return True


def _holds(outer: Window, inner: Window) -> bool:
    return outer.holds(inner.min_row, inner.min_column) and outer.holds(
        inner.max_row, inner.max_column
    )


def _columns(places: Rows, row: int) -> list[tuple[int, int]]:
    """The columns that rectangles cover in a row, neighbours joined."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(
        (each.min_column, each.max_column) for each in places if each.min_row <= row <= each.max_row
    ):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined
