"""Matches rows and columns of two sheets after lines were inserted or deleted in one of them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from judge.formulas.shift import formula_shape
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, Window, cell_key
from judge.workbook.cell import CellValue


class Content(NamedTuple):
    """The content of a cell: a formula or a constant."""

    formula: str | None
    value: CellValue


Contents = Mapping[int, Content]
"""Key of a cell -> its content; blank cells are left out."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Positions of the rows and columns of one sheet in another sheet.

    Attributes:
        rows: row -> its row in the other sheet; None if no row was shifted.
        columns: column -> its column in the other sheet; None if no column was shifted.
        shifts: how often the offset changes from one line to the next.
    """

    rows: Mapping[int, int | None] | None = None
    columns: Mapping[int, int | None] | None = None
    shifts: int = 0

    @staticmethod
    def of(first: Contents, second: Contents, answer: Sequence[Window]) -> Lines:
        """Matches rows by their content, then columns.

        The answer's columns are ignored when rows are matched, and its rows when columns are
        matched, since their content is expected to change.
        """
        if first is second or first == second:
            return IN_PLACE
        rows, row_shifts = _placed(first, second, answer, by_row=True)
        shifted = first if rows is None else _moved(first, Lines(rows=rows))
        columns, column_shifts = _placed(shifted, second, answer, by_row=False)
        if columns is not None and rows is None:
            # Some rows become comparable only after the columns are matched.
            shifted = _moved(first, Lines(columns=columns))
            rows, row_shifts = _placed(shifted, second, answer, by_row=True)
        return Lines(rows, columns, row_shifts + column_shifts)

    def place(self, key: int) -> int | None:
        """Returns the key of a cell in the other sheet; None if its line was deleted."""
        if self.rows is None and self.columns is None:
            return key
        row: int | None = key >> COLUMN_BITS
        column: int | None = key & COLUMN_MASK
        if self.rows is not None:
            row = self.rows.get(key >> COLUMN_BITS)
        if self.columns is not None:
            column = self.columns.get(key & COLUMN_MASK)
        return None if row is None or column is None else cell_key(row, column)


IN_PLACE = Lines()


def _moved(contents: Contents, lines: Lines) -> Contents:
    placed = ((lines.place(key), held) for key, held in contents.items())
    return {key: held for key, held in placed if key is not None}


_Line = Mapping[int, tuple[type, object]]
"""Position in a line -> type and value of its content; for a formula, only the formula's shape."""


def _placed(
    first: Contents, second: Contents, answer: Sequence[Window], *, by_row: bool
) -> tuple[Mapping[int, int | None] | None, int]:
    """Maps lines to lines, and counts shifts; returns None and 0 if no line was shifted."""
    one, two = (_lines(each, answer, by_row=by_row) for each in (first, second))
    for alike in (_in_common_positions, _in_common_contents):
        placed, shifts = _matched(*alike(one, two))
        if placed is not None:
            return placed, shifts
    return None, 0


def _lines(contents: Contents, answer: Sequence[Window], *, by_row: bool) -> Mapping[int, _Line]:
    """Returns line -> its content outside the answer; blank lines are left out."""
    lines: dict[int, dict[int, tuple[type, object]]] = {}
    for key in sorted(contents):
        row, column = key >> COLUMN_BITS, key & COLUMN_MASK
        line, across = (row, column) if by_row else (column, row)
        if any(
            (part.min_column if by_row else part.min_row)
            <= across
            <= (part.max_column if by_row else part.max_row)
            for part in answer
        ):
            continue
        held = contents[key]
        content = held.value if held.formula is None else formula_shape(held.formula)
        lines.setdefault(line, {})[across] = type(content), content
    return lines


_Signatures = dict[int, Hashable]


def _in_common_positions(
    first: Mapping[int, _Line], second: Mapping[int, _Line]
) -> tuple[_Signatures, _Signatures]:
    """Returns the lines' content in positions where at least half of it is equal on both sides.

    This way, a helper column or an overwritten column does not make all rows different.
    """
    bags: tuple[dict[int, Counter[Hashable]], ...] = ({}, {})
    for bag, lines in zip(bags, (first, second), strict=True):
        for line in lines.values():
            for across, held in line.items():
                bag.setdefault(across, Counter())[held] += 1
    one, two = bags
    common = {
        across
        for across, held in one.items()
        if across in two
        and (held & two[across]).total() * 2 >= max(held.total(), two[across].total())
    }
    if not common:
        common = {*one, *two}

    def signed(lines: Mapping[int, _Line]) -> _Signatures:
        kept = (
            (n, tuple((across, held) for across, held in line.items() if across in common))
            for n, line in lines.items()
        )
        return {n: signature for n, signature in kept if signature}

    return signed(first), signed(second)


def _in_common_contents(
    first: Mapping[int, _Line], second: Mapping[int, _Line]
) -> tuple[_Signatures, _Signatures]:
    """Returns the lines' content that occurs on both sides, in any position."""
    one, two = (
        {held for line in lines.values() for held in line.values()} for lines in (first, second)
    )

    def signed(lines: Mapping[int, _Line]) -> _Signatures:
        common = one & two
        kept = (
            (n, tuple(held for held in line.values() if held in common))
            for n, line in lines.items()
        )
        return {n: signature for n, signature in kept if signature}

    return signed(first), signed(second)


def _matched(
    first: Mapping[int, Hashable], second: Mapping[int, Hashable]
) -> tuple[Mapping[int, int | None] | None, int]:
    """Maps lines to lines, and counts shifts; returns None and 0 if no line was shifted.

    Only lines that have the same order on both sides are matched. They have to be at least half of
    all lines, and more than the lines that have not moved.
    """
    anchors = list(_anchors(first, second))
    in_place = sum(second.get(line) == held for line, held in first.items())
    apart = [there - here for here, there in anchors]
    if not any(apart) or len(anchors) * 2 < len(first) or len(anchors) <= in_place:
        return None, 0
    placed: dict[int, int | None] = {}
    last = max(first, default=0) + 1
    ends = [(0, 0), *anchors, (last, last + apart[-1])]
    for (here, there), (next_here, next_there) in pairwise(ends):
        gap, room = next_here - here, next_there - there
        placed[here] = there
        for step in range(1, gap):
            placed[here + step] = there + step if step < room else None
    del placed[0]
    return placed, sum(one != two for one, two in zip([0, *apart], apart, strict=False))


def _anchors(
    first: Mapping[int, Hashable], second: Mapping[int, Hashable]
) -> Iterator[tuple[int, int]]:
    """Yields pairs of equal lines: the first ones, the last ones, and unique ones."""
    here, there = sorted(first), sorted(second)
    start, most = 0, min(len(here), len(there))
    while start < most and first[here[start]] == second[there[start]]:
        start += 1
    left = 0
    while left < most - start and first[here[-1 - left]] == second[there[-1 - left]]:
        left += 1
    yield from zip(here[:start], there[:start], strict=True)
    yield from _unique_anchors(
        {line: first[line] for line in here[start : len(here) - left]},
        {line: second[line] for line in there[start : len(there) - left]},
    )
    yield from zip(here[len(here) - left :], there[len(there) - left :], strict=True)


def _unique_anchors(
    first: Mapping[int, Hashable], second: Mapping[int, Hashable]
) -> Iterator[tuple[int, int]]:
    """Yields the longest sequence of lines that are unique and in the same order on both sides."""
    once = {held for held, n in Counter(first.values()).items() if n == 1}
    here = {held: line for line, held in second.items()}
    counts = Counter(second.values())
    pairs = [
        (line, here[held])
        for line, held in sorted(first.items())
        if held in once and counts[held] == 1
    ]
    # The longest increasing subsequence, by patience sorting.
    tops: list[int] = []
    piles: list[int] = []
    below: list[int | None] = []
    for number, (_, there) in enumerate(pairs):
        at = bisect_left(tops, there)
        below.append(piles[at - 1] if at else None)
        tops[at : at + 1] = [there]
        piles[at : at + 1] = [number]
    chain = []
    at_pair = piles[-1] if piles else None
    while at_pair is not None:
        chain.append(pairs[at_pair])
        at_pair = below[at_pair]
    yield from reversed(chain)
