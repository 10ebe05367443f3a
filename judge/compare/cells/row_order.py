"""Rows in any order: which row of the output matches which row of the gold. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from judge.compare.cells.value import Agree
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, Window
from judge.workbook.cell import CellValue

_MOST_PAIRS = 250_000

_Row = dict[int, CellValue]


def match_rows(
    expected: Mapping[int, CellValue],
    actual: Mapping[int, CellValue],
    window: Window,
    agree: Agree,
) -> dict[int, int]:
    """Pairs the rows of a rectangle: equal ones first, then those that agree, then the rest.

    Args:
        expected: values of the gold by key.
        actual: values of the output by key.
        window: the rectangle.
        agree: whether two values agree.

    Returns:
        Row of the gold -> row of the output, for all rows that hold something on either side; a
        permutation. If there are more than 250,000 pairs of unequal rows, these keep their order.
    """
    gold_rows, output_rows = _rows(expected, window), _rows(actual, window)
    numbers = sorted(gold_rows.keys() | output_rows.keys())
    pairs: dict[int, int] = {}
    waiting: dict[frozenset[tuple[int, type, CellValue]], list[int]] = {}
    for row in reversed(numbers):
        waiting.setdefault(_fingerprint(output_rows.get(row, {})), []).append(row)
    for row in numbers:
        same = waiting.get(_fingerprint(gold_rows.get(row, {})))
        if same:
            pairs[row] = same.pop()
    taken = set(pairs.values())
    left = [row for row in numbers if row not in pairs]
    free = [row for row in numbers if row not in taken]
    if len(left) * len(free) <= _MOST_PAIRS:
        for row in left:
            match = next(
                (
                    each
                    for each in free
                    if _rows_agree(gold_rows.get(row, {}), output_rows.get(each, {}), agree)
                ),
                None,
            )
            if match is not None:
                pairs[row] = match
                free.remove(match)
    unpaired = (row for row in numbers if row not in pairs)
    return pairs | dict(zip(unpaired, free, strict=True))


def _rows(values: Mapping[int, CellValue], window: Window) -> dict[int, _Row]:
    rows: dict[int, _Row] = {}
    for key, value in values.items():
        row, column = key >> COLUMN_BITS, key & COLUMN_MASK
        if value is not None and window.holds(row, column):
            rows.setdefault(row, {})[column] = value
    return rows


def _fingerprint(row: _Row) -> frozenset[tuple[int, type, CellValue]]:
    return frozenset((column, type(value), value) for column, value in row.items())


def _rows_agree(expected: _Row, actual: _Row, agree: Agree) -> bool:
    return all(
        agree(expected.get(column), actual.get(column))
        for column in expected.keys() | actual.keys()
    )
