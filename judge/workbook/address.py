"""Addresses of cells as text and as numbers. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_ROW = 1_048_576
MAX_COLUMN = 16_384
COLUMN_BITS = 15
COLUMN_MASK = (1 << COLUMN_BITS) - 1

_REFERENCE = re.compile(r"\$?([A-Za-z]{1,3})\$?([0-9]{1,7})")
_COLUMNS = re.compile(r"\$?([A-Za-z]{1,3}):\$?([A-Za-z]{1,3})")
_ROWS = re.compile(r"\$?([0-9]{1,7}):\$?([0-9]{1,7})")


def cell_key(row: int, column: int) -> int:
    """The key of a cell: one small integer instead of a pair. Keys sort in reading order."""
    return row << COLUMN_BITS | column


def column_number(letters: str) -> int:
    """The 1-based number of a column named by letters A to Z, in either case."""
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number


def column_letters(number: int) -> str:
    """The letters of a column, given its 1-based number."""
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def cell_name(row: int, column: int) -> str:
    """An address such as ``B7``."""
    return f"{column_letters(column)}{row}"


def folded(name: str) -> str:
    """Case-folds the name of a sheet or a part, for comparison.

    It is folded letter by letter, as in Excel: ``Straße`` is not ``Strasse``.
    """
    return name.lower() if name.isascii() else "".join(map(_folded_letter, name))


def _folded_letter(letter: str) -> str:
    return next(
        (folded for folded in (letter.casefold(), letter.lower()) if len(folded) == 1), letter
    )


class Rectangle:
    """Geometry of a rectangle of cells, 1-based and inclusive.

    :class:`Window` and :class:`judge.workbook.cell.CellRange` are rectangles.
    """

    __slots__ = ()

    min_row: int
    min_column: int
    max_row: int
    max_column: int

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.max_row - self.min_row + 1

    @property
    def columns(self) -> int:
        """The number of columns."""
        return self.max_column - self.min_column + 1

    @property
    def size(self) -> int:
        """The number of cells."""
        return (self.max_row - self.min_row + 1) * (self.max_column - self.min_column + 1)

    @property
    def first(self) -> tuple[int, int]:
        """Row and column of its top left cell."""
        return self.min_row, self.min_column

    def holds(self, row: int, column: int) -> bool:
        """Whether a cell is inside."""
        return self.min_row <= row <= self.max_row and self.min_column <= column <= self.max_column

    def cells(self) -> Iterator[tuple[int, int]]:
        """Yields the row and column of every cell, in reading order."""
        for row in range(self.min_row, self.max_row + 1):
            for column in range(self.min_column, self.max_column + 1):
                yield row, column

    def covers(self, other: Rectangle) -> bool:
        """Whether all cells of another rectangle are inside."""
        return (
            self.min_row <= other.min_row
            and self.min_column <= other.min_column
            and other.max_row <= self.max_row
            and other.max_column <= self.max_column
        )

    def overlaps(self, other: Rectangle) -> bool:
        """Whether the two rectangles have a cell in common."""
        return (
            self.min_row <= other.max_row
            and other.min_row <= self.max_row
            and self.min_column <= other.max_column
            and other.min_column <= self.max_column
        )


@dataclass(frozen=True, slots=True, order=True)
class Window(Rectangle):
    """A rectangle of a worksheet, without the worksheet's name."""

    min_row: int
    min_column: int
    max_row: int
    max_column: int

    def intersection(self, other: Rectangle) -> Window | None:
        """The rectangle that both have in common; None if there is none."""
        if not self.overlaps(other):
            return None
        return Window(
            max(self.min_row, other.min_row),
            max(self.min_column, other.min_column),
            min(self.max_row, other.max_row),
            min(self.max_column, other.max_column),
        )

    def __str__(self) -> str:
        first = cell_name(self.min_row, self.min_column)
        last = cell_name(self.max_row, self.max_column)
        return first if first == last else f"{first}:{last}"


WHOLE_SHEET = Window(1, 1, MAX_ROW, MAX_COLUMN)


def parse_cell(text: str) -> tuple[int, int] | None:
    """Row and column of an address such as ``B7`` or ``$b$7``; None if it is not an address."""
    match = _REFERENCE.fullmatch(text)
    if match is None:
        return None
    row = int(match[2])
    return (row, column_number(match[1])) if 1 <= row <= MAX_ROW else None


def parse_window(text: str) -> Window | None:
    """Reads ``B7`` or ``B7:C9``; None if the text is neither."""
    first, colon, last = text.partition(":")
    start = parse_cell(first)
    end = parse_cell(last) if colon else start
    if start is None or end is None or end[0] < start[0] or end[1] < start[1]:
        return None
    return Window(*start, *end)


def parse_area(text: str) -> Window | None:
    """Reads a range with its corners in any order, such as ``C9:B7``, ``B:C`` or ``7:9``.

    Returns:
        The range; None if the text is not one, or if it reaches beyond a worksheet.
    """
    columns = _COLUMNS.fullmatch(text)
    rows = _ROWS.fullmatch(text)
    if columns is not None:
        corners = [(1, column_number(columns[1])), (MAX_ROW, column_number(columns[2]))]
    elif rows is not None:
        corners = [(int(rows[1]), 1), (int(rows[2]), MAX_COLUMN)]
    else:
        first, colon, last = text.partition(":")
        start = parse_cell(first)
        end = parse_cell(last) if colon else start
        if start is None or end is None:
            return None
        corners = [start, end]
    (low, high), (left, right) = map(sorted, zip(*corners, strict=True))
    if low < 1 or high > MAX_ROW or right > MAX_COLUMN:
        return None
    return Window(low, left, high, right)
