"""Finds the cells of a sheet that are on the screen by hit tests.

A sheet has one child for each of its 17 billion cells. Queries for the cell at a point, along the
first column and some rows, find the cells on the screen, however many rows are hidden, frozen or
scrolled away. Only the contents of these cells are then read.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from judge.desktop.driver.bus import NOTHING, Bus, Question, Ref
from judge.desktop.driver.nodes import Box

SCREEN = 0
"""Coordinate type of AT-SPI: positions are relative to the screen."""
MAX_CELLS = 10_000
"""How many cells of a sheet are read; at a zoom of 20 %, more than twice as many are shown."""
_MAX_LOOKS = 200
"""How often gaps are searched: far more often than rows one pixel high require."""
_MAX_PIXELS = 1 << 15
"""Upper bound of the size of a screen."""
_ROW_STEP = 16
_COLUMN_STEP = 64
_MAX_WALKED = 500
"""How many rows or columns the published walk tries to find the first cell on the screen."""
_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Band:
    """A row or a column on the screen.

    Attributes:
        number: its number, from 0.
        start: its first pixel on the screen.
        end: the pixel after its last pixel on the screen.
    """

    number: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell on the screen.

    Attributes:
        ref: its accessible object.
        name: its address.
        box: x, y, width and height as the program reports them.
    """

    ref: Ref
    name: str
    box: Box


def address(row: int, column: int) -> str:
    """Returns the address of a cell: ``A1`` for row 0 and column 0."""
    letters, column = "", column + 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return f"{letters}{row + 1}"


def extents_of(ref: Ref) -> Question:
    """Makes a query for the position and size of an object on the screen."""
    return Question(ref, "Component", "GetExtents", "u", (SCREEN,))


class Sheet:
    """A sheet that a window shows.

    Args:
        bus: the accessibility bus.
        table: the sheet.
        window: position and size of the area with the cells, as the program reports it.
    """

    def __init__(self, bus: Bus, table: Ref, window: Box) -> None:
        self._bus = bus
        self._table = table
        self._left, self._top = window[0], window[1]
        self._right = window[0] + min(window[2], _MAX_PIXELS)
        self._bottom = window[1] + min(window[3], _MAX_PIXELS)
        columns = bus.ask([Question.about(table, "Table", "NColumns")])[0]
        self.columns = columns if isinstance(columns, int) and columns > 0 else 16_384
        self._known: dict[Ref, tuple[int, int, Box]] = {}
        self._to_the_left = False

    def cells(self) -> list[Cell]:
        """Yields the cells on the screen, row by row; only the first rows if there are many."""
        rows = self._rows()
        columns = self._columns(rows) if rows else []
        rows = rows[: MAX_CELLS // max(1, len(columns))]
        wanted = [(row, column) for row in rows for column in columns]
        refs = self._bus.ask(
            Question(
                self._table, "Accessible", "GetChildAtIndex", "i",
                (row.number * self.columns + column.number,),
            )
            for row, column in wanted
        )  # fmt: skip
        return [
            Cell(
                ref,
                address(row.number, column.number),
                (column.start, row.start, column.end - column.start, row.end - row.start),
            )
            for (row, column), ref in zip(wanted, refs, strict=True)
            if ref is not None and ref[1] != NOTHING
        ]

    def _hit(self, points: list[tuple[int, int]]) -> list[tuple[int, int, Box] | None]:
        """Returns row, column, and position and size, of the cell at each point."""
        refs = self._bus.ask(
            Question(self._table, "Component", "GetAccessibleAtPoint", "iiu", (x, y, SCREEN))
            for x, y in points
        )
        fresh = [
            ref
            for ref in dict.fromkeys(refs)
            if ref is not None and ref[1] != NOTHING and ref not in self._known
        ]
        answers = self._bus.ask(
            each
            for ref in fresh
            for each in (Question(ref, "Accessible", "GetIndexInParent"), extents_of(ref))
        )
        for ref, index, box in zip(fresh, answers[::2], answers[1::2], strict=True):
            if isinstance(index, int) and index >= 0 and box is not None:
                self._known[ref] = (*divmod(index, self.columns), tuple(box))
        return [self._known.get(ref) for ref in refs]

    def _rows(self) -> list[Band]:
        width = self._right - self._left
        lines = [self._left + 1, self._left + width // 3, self._left + 2 * width // 3]

        beyond: list[bool] = []

        def probe(x: int, places: list[int]) -> list[Band]:
            hits = self._hit([(x, y) for y in places])
            beyond.extend(box[0] > x for _, _, box in filter(None, hits))
            return [
                Band(row, max(box[1], self._top), min(box[1] + box[3], self._bottom))
                for row, _, box in filter(None, hits)
            ]

        rows = _along(probe, lines, (self._top + 1, self._bottom, _ROW_STEP))
        # For sheets from right to left, the office reports positions that are one cell too far to
        # the right: the cell that was hit begins where the reported cell ends.
        self._to_the_left = 2 * sum(beyond) > len(beyond)
        return rows

    def _columns(self, rows: list[Band]) -> list[Band]:
        last = len(rows) - 1
        chosen = sorted({0, min(1, last), last // 4, last // 2, last})

        def probe(y: int, places: list[int]) -> list[Band]:
            hits = self._hit([(x, y) for x in places])
            back = 1 if self._to_the_left else 0
            return [
                Band(
                    column,
                    max(box[0] - back * box[2], self._left),
                    min(box[0] + (1 - back) * box[2], self._right),
                )
                for _, column, box in filter(None, hits)
            ]

        lines = [rows[line].start + 1 for line in chosen]
        columns = _along(probe, lines, (self._left + 1, self._right, _COLUMN_STEP))
        return self._joined(columns) if self._to_the_left else columns

    def _joined(self, columns: list[Band]) -> list[Band]:
        """Widens right-to-left columns that are cut off at the edge of the window.

        The office reports only the visible part of their width.
        """
        starts = [self._left, *(band.end for band in columns[:-1])]
        return [
            Band(
                band.number,
                start if 2 * band.end - band.start >= self._right else band.start,
                band.end,
            )
            for start, band in zip(starts, columns, strict=True)
        ]


def _along(
    probe: Callable[[int, list[int]], list[Band]], lines: list[int], span: tuple[int, int, int]
) -> list[Band]:
    """Finds rows or columns along several lines, since a merged cell hides those that it covers.

    A merged cell reports the size of all the cells that it covers, and the number of the first one,
    which may not even be on the screen. So the narrowest report for a row or column is right, and
    one that the next row or column follows immediately is not searched again.
    """
    narrow: dict[int, Band] = {}
    certain: dict[int, Band] = {}
    for line in lines:
        for band in _bands(functools.partial(probe, line), certain, *span):
            narrowest = narrow.get(band.number)
            if narrowest is None or band.end - band.start < narrowest.end - narrowest.start:
                narrow[band.number] = band
        certain = {
            number: band
            for number, band in narrow.items()
            if (following := narrow.get(number + 1)) is not None
            and (following.start == band.end or following.end == band.start)
        }
    kept: list[Band] = []
    for band in sorted(narrow.values(), key=lambda band: band.end - band.start):
        if all(band.end <= other.start or other.end <= band.start for other in kept):
            kept.append(band)
    return sorted(kept, key=lambda band: band.start)


def _bands(
    probe: Callable[[list[int]], list[Band]],
    certain: Mapping[int, Band],
    first: int,
    end: int,
    step: int,
) -> list[Band]:
    """Finds rows or columns between two pixels: coarse steps first, then one probe in each gap."""
    bands_by_number = dict(certain)
    looked: set[int] = set()
    places = [
        place
        for place in range(first, end, step)
        if not any(band.start <= place < band.end for band in certain.values())
    ]
    for _ in range(_MAX_LOOKS):
        looked.update(places)
        for band in probe(places):
            if band.end > band.start:
                bands_by_number.setdefault(band.number, band)
        bands = sorted(bands_by_number.values(), key=lambda band: band.start)
        places = []
        for one, other in itertools.pairwise(bands):
            if other.start > one.end + 1 and one.end + 1 not in looked:
                places.append(one.end + 1)
        if bands and bands[-1].end + 1 < end and bands[-1].end + 1 not in looked:
            places.append(bands[-1].end + 1)
        if not places:
            break
    return sorted(bands_by_number.values(), key=lambda band: band.start)


def walked_cells(bus: Bus, table: Ref) -> Iterator[Cell]:
    """Finds cells as the published desktops do: by a walk that ends at the first hidden cell."""
    columns = bus.ask([Question.about(table, "Table", "NColumns")])[0]
    first: int | None = None
    at_once = _AT_ONCE
    for row in range(1_048_576):
        shown: list[tuple[int, Ref]] = []
        for number, ref, showing in _walked_row(bus, table, row, (first or 0, columns), at_once):
            if showing:
                if first is None:
                    first = number
                shown.append((number, ref))
            elif first is not None or number >= _MAX_WALKED:
                break
        boxes = bus.ask(extents_of(ref) for _, ref in shown)
        for (number, ref), box in zip(shown, boxes, strict=True):
            yield Cell(ref, address(row, number), tuple(box) if box else (0, 0, 0, 0))
        if (first is not None and not shown) or (first is None and row >= _MAX_WALKED):
            return
        if shown:
            at_once = min(len(shown) + 1, _AT_ONCE)  # the next row probably ends at the same column


def _walked_row(
    bus: Bus, table: Ref, row: int, span: tuple[int, int], at_once: int
) -> Iterator[tuple[int, Ref, bool]]:
    first, columns = span
    for start in range(first, columns, at_once):
        numbers = range(start, min(start + at_once, columns))
        refs = bus.ask(
            Question(table, "Accessible", "GetChildAtIndex", "i", (row * columns + number,))
            for number in numbers
        )
        states = bus.ask(Question(ref, "Accessible", "GetState") for ref in refs if ref is not None)
        there: Iterator[Any] = iter(states)
        for number, ref in zip(numbers, refs, strict=True):
            if ref is not None:
                bits = next(there)
                yield number, ref, bool(bits and bits[0] >> SHOWING & 1)


SHOWING = 25
"""The number of the state ``showing``."""
