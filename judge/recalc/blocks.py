"""Which rectangles to request from an engine so that they cover all the cells that are needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from judge.workbook.cell import CellRange, CellRef

SPARE_FACTOR = 6
SPARE_CELLS = 4_000
"""A sheet's cells are requested as one rectangle if its area is within this limit."""


def covering(cells: Iterable[CellRef]) -> tuple[CellRange, ...]:
    """Rectangles that cover all the cells; few rather than tight.

    A round trip for each rectangle costs more than reading some cells that are not needed.
    """
    by_sheet: dict[str, list[CellRef]] = defaultdict(list)
    for cell in cells:
        by_sheet[cell.sheet].append(cell)
    found: list[CellRange] = []
    for sheet, members in by_sheet.items():
        rows = [cell.row for cell in members]
        columns = [cell.column for cell in members]
        box = CellRange(sheet, min(rows), min(columns), max(rows), max(columns))
        if box.size <= SPARE_FACTOR * len(members) + SPARE_CELLS:
            found.append(box)
        else:
            found.extend(_by_columns(sheet, members))
    return tuple(found)


def _by_columns(sheet: str, members: list[CellRef]) -> Iterable[CellRange]:
    """Vertical runs that bridge gaps; neighbours with the same rows are merged."""
    columns: dict[int, list[int]] = defaultdict(list)
    for cell in members:
        columns[cell.column].append(cell.row)
    open_runs: dict[tuple[int, int], tuple[int, int]] = {}
    for column in sorted(columns):
        for span in _runs(sorted(columns[column])):
            first, last = open_runs.get(span, (column, column - 1))
            if last == column - 1:
                open_runs[span] = (first, column)
                continue
            yield CellRange(sheet, span[0], first, span[1], last)
            open_runs[span] = (column, column)
    for span, (first, last) in open_runs.items():
        yield CellRange(sheet, span[0], first, span[1], last)


def _runs(rows: list[int]) -> Iterable[tuple[int, int]]:
    start = previous = rows[0]
    for row in rows[1:]:
        if row - previous > _BRIDGED_ROWS:
            yield start, previous
            start = row
        previous = row
    yield start, previous


_BRIDGED_ROWS = 64
