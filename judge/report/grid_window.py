"""Chooses the part of a sheet that a grid shows: the answer range and its surroundings. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from judge.workbook.address import MAX_COLUMN, MAX_ROW, Window
from judge.workbook.cell import CellRange, CellRef

ROWS_AROUND = 2
"""How many rows of context are shown above and below an answer range."""
COLUMNS_BEFORE = 8
"""How many columns of context are shown to the left, where the data for the answer usually is."""
COLUMNS_AFTER = 2

_FIRST_ROWS = 20  # of a long range that are shown
_LAST_ROWS = 5  # of a long range that are shown
_AROUND_A_DIFFERENCE = 1


@dataclass(frozen=True, slots=True)
class GridBounds:
    """How much of a case is shown.

    Attributes:
        cells: largest number of cells in one block (rows times columns).
        columns: largest number of columns in one block.
        blocks: largest number of blocks of one case.
        text_chars: how many characters of one text value or formula are shown.
    """

    cells: int = 240_000
    columns: int = 80
    blocks: int = 12
    text_chars: int = 32_767


@dataclass(frozen=True, slots=True)
class Block:
    """A part of one sheet that is shown in one piece.

    Attributes:
        sheet: the gold's sheet.
        output_sheet: the corresponding sheet of the output; None if it does not have one.
        answer: the answer ranges inside the block.
        window: the rectangle around the answer ranges and their context.
        places: (row, column) of further cells that are shown even if others are left out.
    """

    sheet: str
    output_sheet: str | None
    answer: tuple[Window, ...]
    window: Window
    places: frozenset[tuple[int, int]] = frozenset()

    def in_answer(self, row: int, column: int) -> bool:
        """Whether a cell belongs to the answer."""
        if len(self.answer) == 1:
            return self.answer[0].holds(row, column)
        return any(window.holds(row, column) for window in self.answer)


def plan_blocks(
    gold_ranges: Sequence[CellRange], output_ranges: Sequence[CellRange | None]
) -> list[Block]:
    """Puts the ranges of one sheet into one block, unless they are far apart.

    Args:
        gold_ranges: rectangles of the gold.
        output_ranges: the ranges of the output, in the same order; empty if there is no output.
    """
    sheets: dict[str, list[Window]] = {}
    answering: dict[str, str | None] = {}
    outputs: Sequence[CellRange | None] = output_ranges or [None] * len(gold_ranges)
    for gold, output in zip(gold_ranges, outputs, strict=True):
        window = Window(gold.min_row, gold.min_column, gold.max_row, gold.max_column)
        sheets.setdefault(gold.sheet, []).append(window)
        answering[gold.sheet] = None if output is None else output.sheet
    blocks = []
    for sheet, windows in sheets.items():
        whole = _around(windows)
        together = _size(whole) <= 4 * sum(map(_size, windows)) + 4000
        for answer in [windows] if together else [[window] for window in windows]:
            window = _with_context(_around(answer))
            blocks.append(Block(sheet, answering[sheet], tuple(answer), window))
    return blocks


def with_places(
    blocks: Sequence[Block], cells: Iterable[CellRef], output_sheet: Callable[[str], str | None]
) -> list[Block]:
    """Adds cells to the blocks that contain them, and makes new blocks for the other cells.

    Args:
        blocks: the blocks of the answer.
        cells: the cells, by sheet of the gold.
        output_sheet: a sheet of the gold -> the corresponding sheet of the output.
    """
    shown = list(blocks)
    elsewhere: dict[str, list[Window]] = {}
    for cell in cells:
        position = (cell.row, cell.column)
        for number, block in enumerate(shown):
            if block.sheet == cell.sheet and block.window.holds(*position):
                shown[number] = replace(block, places=block.places | {position})
                break
        else:
            elsewhere.setdefault(cell.sheet, []).append(Window(*position, *position))
    for sheet, windows in elsewhere.items():
        positions = frozenset((window.min_row, window.min_column) for window in windows)
        window = _with_context(_around(windows))
        shown.append(Block(sheet, output_sheet(sheet), (), window, positions))
    return shown


def choose_lines(first: int, last: int, differing: Collection[int], limit: int) -> list[int]:
    """Chooses the rows (or columns) of a block to show: all, or those around its differences.

    Args:
        first: the block's first row.
        last: its last row.
        differing: rows that hold a difference.
        limit: largest number of rows to show; at least as many as the head and the tail have.

    Returns:
        The rows in order. If not all rows fit, these are the first rows, the last rows, and the
        rows around as many differences as fit.
    """
    if last - first + 1 <= limit:
        return list(range(first, last + 1))
    head, tail = min(_FIRST_ROWS, limit // 2), min(_LAST_ROWS, limit // 4)
    chosen = {*range(first, first + head), *range(last - tail + 1, last + 1)}
    for row in sorted(differing):
        near = range(row - _AROUND_A_DIFFERENCE, row + _AROUND_A_DIFFERENCE + 1)
        new = {line for line in near if first <= line <= last} - chosen
        if len(chosen) + len(new) > limit:
            break
        chosen |= new
    # The rest of the limit goes to the rows that follow the head.
    for row in range(first + head, last + 1):
        if len(chosen) >= limit:
            break
        chosen.add(row)
    return sorted(chosen)


def spans(lines: Iterable[int]) -> list[list[int]]:
    """Rows in order, as ``[first, count]`` of each unbroken stretch."""
    stretches: list[list[int]] = []
    for line in lines:
        if stretches and stretches[-1][0] + stretches[-1][1] == line:
            stretches[-1][1] += 1
        else:
            stretches.append([line, 1])
    return stretches


def _around(windows: Sequence[Window]) -> Window:
    return Window(
        min(window.min_row for window in windows),
        min(window.min_column for window in windows),
        max(window.max_row for window in windows),
        max(window.max_column for window in windows),
    )


def _with_context(window: Window) -> Window:
    return Window(
        max(1, window.min_row - ROWS_AROUND),
        max(1, window.min_column - COLUMNS_BEFORE),
        min(MAX_ROW, window.max_row + ROWS_AROUND),
        min(MAX_COLUMN, window.max_column + COLUMNS_AFTER),
    )


def _size(window: Window) -> int:
    return (window.max_row - window.min_row + 1) * (window.max_column - window.min_column + 1)
