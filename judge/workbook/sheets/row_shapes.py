"""Rows that look alike, read at once: the wanted cells of a table usually repeat row by row.

The columns, cell formats and types of one row make a *shape*, a regular expression whose only
groups are the row's number and the values. All rows of that shape are taken out of the markup in
one pass, column by column; what is left is read cell by cell. A shape can therefore never read a
cell differently from the reader of single cells: it only saves time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from judge.workbook.sheets.raw_formula import TEXT

MARK = "<\0"
"""Marks where a run of cells was taken out: no part of a cell matches across it."""

_MAX_CELLS = 64
_MIN_ROWS = 8
_MAX_SHAPES = 8
_MAX_FAILURES = 3


@dataclass(frozen=True, slots=True)
class ShapeCell:
    """One cell of a shape.

    Attributes:
        letters: letters of its column.
        attributes: everything between its address and the end of its tag.
        value: how its content begins: ``v``, ``is``, or nothing for a cell without content.
    """

    letters: str
    attributes: str
    value: str


@dataclass(frozen=True, slots=True)
class Taken:
    """Rows of one shape.

    Attributes:
        shape: their cells.
        digits: the number of each row, as written.
        values: the values of all rows, for each cell of the shape that has a value.
    """

    shape: tuple[ShapeCell, ...]
    digits: list[str]
    values: list[list[str]]


class RowShapes:
    """The shapes of the rows of a worksheet, learned while they are read.

    Args:
        cell: the expression that reads one cell: groups for letters, digits, attributes, formula,
            value and inline text.
        start: the expression that finds where a wanted cell begins.
    """

    def __init__(self, cell: re.Pattern[str], start: re.Pattern[str]) -> None:
        self._cell = cell
        self._start = start
        self._known: list[tuple[ShapeCell, ...]] = []
        self._failures = 0

    def take(self, rows: str) -> tuple[str, list[Taken]]:
        """Takes the rows of known and of new shapes out of some markup.

        Returns:
            What is left of the markup, and what was taken out of it.
        """
        taken: list[Taken] = []
        for shape in self._known:
            rows, _ = _take(rows, shape, taken)
        while self._failures < _MAX_FAILURES and len(self._known) < _MAX_SHAPES:
            found = self._shape_of(rows)
            if found is None or found in self._known:
                break
            rows, count = _take(rows, found, taken)
            if count < _MIN_ROWS:
                self._failures += 1
                break
            self._known.append(found)
        return rows, taken

    def _shape_of(self, rows: str) -> tuple[ShapeCell, ...] | None:
        """The shape of a row in the middle of some markup; None if it has none."""
        middle = self._start.search(rows, len(rows) // 2)
        if middle is None:
            return None
        begin = max(0, rows.rfind("<row", 0, middle.start()))
        first = self._start.search(rows, begin)
        position = middle.start() if first is None else first.start()
        cells: list[ShapeCell] = []
        row = ""
        while len(cells) < _MAX_CELLS and (match := self._cell.match(rows, position)) is not None:
            letters, digits, attributes, formula, text, inline = match.groups(default="")
            if formula or not letters or (row and digits != row):
                break
            value = "v" if text else inline.partition(">")[0][1:] if inline else ""
            cells.append(ShapeCell(letters, attributes, value))
            row, position = digits, match.end()
        return tuple(cells) if any(cell.value for cell in cells) else None


def _take(rows: str, shape: tuple[ShapeCell, ...], taken: list[Taken]) -> tuple[str, int]:
    pattern = _pattern(shape)
    pieces = pattern.split(rows)
    stride = pattern.groups + 1
    if len(pieces) == 1:
        return rows, 0
    digits = pieces[1::stride]
    taken.append(Taken(shape, digits, [pieces[group::stride] for group in range(2, stride)]))
    return MARK.join(pieces[::stride]), len(digits)


@lru_cache(maxsize=256)
def _pattern(shape: Sequence[ShapeCell]) -> re.Pattern[str]:
    """The expression of a shape: groups for the row's number and for each value."""
    parts = []
    for number, cell in enumerate(shape):
        row = "([0-9]+)" if number == 0 else "\\1"
        parts.append(f'<c r="{cell.letters}{row}"{re.escape(cell.attributes)}>')
        if cell.value == "v":
            parts.append(f"<v>({TEXT}+)</v></c>")
        elif cell.value:
            parts.append(f"<is><{re.escape(cell.value)}>({TEXT}*)</t></is></c>")
        elif not cell.attributes.endswith("/"):
            parts.append("</c>")
    return re.compile("".join(parts))
