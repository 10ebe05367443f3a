"""Computes functions that cut, stack, wrap, split and group arrays. Pure.

Sources: Microsoft's pages on these functions. A blank cell of a range stays blank in the result,
which shows it as 0.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence

from judge.formulas.tree import Missing, Node, Parameter
from judge.recalc.functions.arrays import (
    MAX_VALUES,
    ArrayResult,
    all_of,
    lambda_of,
    of_rows,
    one_of,
    single,
    values_of,
)
from judge.recalc.functions.conversions import NA, NUM, VALUE, UnsureError
from judge.recalc.functions.criteria import Cells, Scalar, is_number
from judge.recalc.functions.scalars import Evaluation, compared, rank
from judge.recalc.functions.texts import spans_of
from judge.workbook.cell import ErrorValue

EMPTY = ErrorValue("#CALC!")
"""The result of a function whose array has no values; files store it as #VALUE!."""

Rows = list[list[Scalar]]


class _RefusedError(Exception):
    """Excel refuses an argument, with the error that it shows."""

    def __init__(self, error: ErrorValue) -> None:
        super().__init__(error.code)
        self.error = error


def _rows(evaluation: Evaluation, node: Node) -> Rows:
    cells = all_of(evaluation, node)
    if cells.size > MAX_VALUES:
        raise UnsureError
    evaluation.values.spend(cells.size)
    values = list(values_of(cells))
    wide = cells.columns
    return [values[at * wide : (at + 1) * wide] for at in range(cells.rows)]


def _option(
    evaluation: Evaluation, arguments: Sequence[Node], at: int, *, exact: bool = False
) -> int | None:
    """The value of an optional argument, without decimals; None if the argument is left out."""
    if at >= len(arguments) or isinstance(arguments[at], Missing):
        return None
    value = evaluation.scalar(arguments[at])
    number = value if isinstance(value, ErrorValue) else evaluation.number(value)
    if isinstance(number, ErrorValue):
        raise _RefusedError(number)
    if exact and not number.is_integer():
        raise _RefusedError(VALUE)
    return math.trunc(number)


def _shaped(
    least: int, most: int, shape: Callable[[Evaluation, Sequence[Node]], Rows]
) -> ArrayResult:
    """Makes a function from one that returns the rows of the resulting array."""

    def cells(evaluation: Evaluation, arguments: Sequence[Node]) -> Cells:
        if not least <= len(arguments) <= most:
            raise UnsureError
        try:
            rows = shape(evaluation, arguments)
        except _RefusedError as refused:
            return single(evaluation.refused(refused.error))
        if not rows or not rows[0]:
            return single(evaluation.refused(EMPTY))
        if len(rows) * len(rows[0]) > MAX_VALUES:
            raise UnsureError
        return of_rows(rows)

    return ArrayResult(cells)


def _turned(rows: Rows) -> Rows:
    return [list(column) for column in zip(*rows, strict=True)]


# -- cutting ---------------------------------------------------------------------------------------


def _part(*, taken: bool) -> Callable[[Evaluation, Sequence[Node]], Rows]:
    """TAKE and DROP; a negative number counts from the end."""

    def cut(lines: Rows, count: int | None) -> Rows:
        if count is None:
            return lines
        if taken:
            return lines[:count] if count > 0 else lines[count:] if count else []
        return lines[count:] if count > 0 else lines[: len(lines) + count]

    def shape(evaluation: Evaluation, arguments: Sequence[Node]) -> Rows:
        rows = _rows(evaluation, arguments[0])
        high, wide = (_option(evaluation, arguments, at) for at in (1, 2))
        if not taken:
            high, wide = max(high or 0, -len(rows)), max(wide or 0, -len(rows[0]))
        rows = cut(rows, high)
        return _turned(cut(_turned(rows), wide)) if rows else rows

    return shape


def _chosen(*, columns: bool) -> Callable[[Evaluation, Sequence[Node]], Rows]:
    """CHOOSECOLS and CHOOSEROWS."""

    def shape(evaluation: Evaluation, arguments: Sequence[Node]) -> Rows:
        rows = _rows(evaluation, arguments[0])
        lines = _turned(rows) if columns else rows
        chosen: Rows = []
        for argument in arguments[1:]:
            places = all_of(evaluation, argument)
            if places.rows > 1 and places.columns > 1:
                raise _RefusedError(VALUE)
            for value in values_of(places):
                number = value if isinstance(value, ErrorValue) else evaluation.number(value)
                if isinstance(number, ErrorValue):
                    raise _RefusedError(number)
                at = math.trunc(number)
                if not 1 <= abs(at) <= len(lines):
                    raise _RefusedError(VALUE)
                chosen.append(lines[at - 1 if at > 0 else at])
        return _turned(chosen) if columns else chosen

    return shape


def _trimmed(evaluation: Evaluation, arguments: Sequence[Node]) -> Rows:
    """TRIMRANGE: removes the blank rows and columns at the edges."""
    cells = all_of(evaluation, arguments[0])
    spans: list[range] = []
    for at, size in ((1, cells.rows), (2, cells.columns)):
        ends = _option(evaluation, arguments, at, exact=True)
        ends = 3 if ends is None else ends
        if ends not in range(4):
            raise _RefusedError(VALUE)
        filled = [place[at - 1] for place in cells.values]
        if not filled:
            raise UnsureError
        last = max(filled) + 1 if ends & 2 else size
        spans.append(range(min(filled) if ends & 1 else 0, last))
    rows, columns = spans
    if len(rows) * len(columns) > MAX_VALUES:
        raise UnsureError
    evaluation.converted = True
    return [[cells.values.get((row, column)) for column in columns] for row in rows]


def _expanded(evaluation: Evaluation, arguments: Sequence[Node]) -> Rows:
    rows = _rows(evaluation, arguments[0])
    high, wide = (_option(evaluation, arguments, at) for at in (1, 2))
    high, wide = len(rows) if high is None else high, len(rows[0]) if wide is None else wide
    if high < len(rows) or wide < len(rows[0]):
        raise _RefusedError(VALUE)
    if high * wide > MAX_VALUES:
        raise UnsureError
    pad = _pad(evaluation, arguments, 3)
    widened = [[*row, *[pad] * (wide - len(row))] for row in rows]
    return [*widened, *([pad] * wide for _ in range(high - len(rows)))]


def _pad(evaluation: Evaluation, arguments: Sequence[Node], at: int) -> Scalar:
    """The value that fills gaps in the result: an argument, or #N/A."""
    if at >= len(arguments) or isinstance(arguments[at], Missing):
        return NA
    return evaluation.scalar(arguments[at])


# -- stacking and wrapping -------------------------------------------------------------------------


def _stacked(*, downwards: bool) -> Callable[[Evaluation, Sequence[Node]], Rows]:
    """VSTACK and HSTACK."""

    def shape(evaluation: Evaluation, arguments: Sequence[Node]) -> Rows:
        parts = [_rows(evaluation, argument) for argument in arguments]
        lines = [line for part in parts for line in (part if downwards else _turned(part))]
        wide = max(map(len, lines), default=0)
        if len(lines) * wide > MAX_VALUES:
            raise UnsureError
        filled: Rows = [[*line, *[NA] * (wide - len(line))] for line in lines]
        return filled if downwards else _turned(filled)

    return shape


def _wrapped(*, by_rows: bool) -> Callable[[Evaluation, Sequence[Node]], Rows]:
    """WRAPROWS and WRAPCOLS."""

    def shape(evaluation: Evaluation, arguments: Sequence[Node]) -> Rows:
        rows = _rows(evaluation, arguments[0])
        count = _option(evaluation, arguments, 1)
        if len(rows) > 1 and len(rows[0]) > 1:
            raise _RefusedError(VALUE)
        if count is None or count < 1:
            raise _RefusedError(NUM)
        values = [*itertools.chain.from_iterable(rows)]
        pad = _pad(evaluation, arguments, 2)
        values += [pad] * (-len(values) % count if count < len(values) else 0)
        lines = [values[at : at + count] for at in range(0, len(values), count)]
        return lines if by_rows else _turned(lines)

    return shape


def _split(evaluation: Evaluation, arguments: Sequence[Node]) -> Rows:
    """TEXTSPLIT: splits text at separators of columns, and of rows.

    Raises:
        UnsureError: separators that are empty or contain each other, or several strings.
    """
    value = evaluation.scalar(arguments[0])
    if isinstance(value, ErrorValue):
        raise _RefusedError(value)
    marks = [
        None
        if at >= len(arguments) or isinstance(arguments[at], Missing)
        else [evaluation.text(mark) for mark in values_of(all_of(evaluation, arguments[at]))]
        for at in (1, 2)
    ]
    skips, ignores_case = (_option(evaluation, arguments, at) or 0 for at in (3, 4))
    if ignores_case not in (0, 1):
        raise _RefusedError(VALUE)
    text = evaluation.text(value)
    if not text or (ignores_case and not text.isascii()):
        raise UnsureError
    lines = [
        _pieces(line, marks[0], ignores_case=bool(ignores_case), skips=bool(skips))
        for line in _pieces(text, marks[1], ignores_case=bool(ignores_case), skips=bool(skips))
    ]
    wide = max(map(len, lines), default=0)
    pad = _pad(evaluation, arguments, 5)
    return [[*line, *[pad] * (wide - len(line))] for line in lines]


def _pieces(
    text: str, marks: Sequence[str] | None, *, ignores_case: bool, skips: bool
) -> list[str]:
    if marks is None:
        return [text]
    if not all(marks) or any(
        one in other for one, other in itertools.permutations(marks, 2) if len(other) > 1
    ):
        raise UnsureError
    spans = spans_of(text, marks, ignores_case=ignores_case)
    starts, ends = [0, *(end for _, end in spans)], [*(start for start, _ in spans), len(text)]
    parts = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    return [part for part in parts if part or not skips]


# -- grouping --------------------------------------------------------------------------------------

_TOTAL = "Total"
_SHARE = Parameter("_XLETA.PERCENTOF")


class _Groups:
    """The rows of a table by the value in their first column, in ascending order."""

    def __init__(self, keys: Sequence[Scalar]) -> None:
        self.keys: list[Scalar] = []
        self.rows: list[list[int]] = []
        places: dict[object, int] = {}
        for row, key in enumerate(keys):
            if key is None or isinstance(key, ErrorValue):
                raise UnsureError
            known = (rank(key), key.lower() if isinstance(key, str) else key)
            if known not in places:
                places[known] = len(self.keys)
                self.keys.append(key)
                self.rows.append([])
            self.rows[places[known]].append(row)
        self.order(self.keys)

    def order(self, by: Sequence[Scalar], *, descending: bool = False) -> None:
        """Sorts the groups by some values; equal ones stay in their order."""
        key = functools.cmp_to_key(functools.partial(_order, descending=descending))
        order = sorted(range(len(by)), key=lambda at: key(by[at]))
        self.keys = [self.keys[at] for at in order]
        self.rows = [self.rows[at] for at in order]


def _order(value: Scalar, other: Scalar, *, descending: bool) -> int:
    """Negative if a value comes before another one, positive if after it, 0 if they are equal."""
    order = rank(value) - rank(other)
    if not order:
        order = compared(value, other, ">") - compared(value, other, "<")
    return -order if descending else order


class _Table:
    """The arguments that GROUPBY and PIVOTBY have in common.

    Raises:
        UnsureError: several columns of fields or values, headers that are generated or shown, or
            several functions.
    """

    def __init__(
        self,
        evaluation: Evaluation,
        fields: Sequence[Node],
        arguments: Sequence[Node],
        filter_at: int,
    ) -> None:
        self._evaluation = evaluation
        columns = [_rows(evaluation, node) for node in (*fields, arguments[0])]
        if any(len(rows[0]) != 1 for rows in columns):
            raise UnsureError
        if len({*map(len, columns)}) > 1:
            raise _RefusedError(VALUE)
        headers = _option(evaluation, arguments, 2)
        values = [row[0] for row in columns[-1]]
        if headers is None:
            has = len(values) > 1 and isinstance(values[0], str) and is_number(values[1])
        elif headers in (0, 1):
            has = headers == 1
        else:
            raise UnsureError
        kept = list(range(len(values)))
        if filter_at < len(arguments) and not isinstance(arguments[filter_at], Missing):
            shown = [row[0] for row in _rows(evaluation, arguments[filter_at])]
            if len(shown) != len(values) or any(
                isinstance(one, (str, ErrorValue)) for one in shown
            ):
                raise UnsureError
            kept = [row for row in kept if shown[row]]
        kept = [row for row in kept if row or not has]
        self.fields = [[rows[row][0] for row in kept] for rows in columns[:-1]]
        self._values = [values[row] for row in kept]
        self.shares = arguments[1] == _SHARE
        self._call = lambda_of(arguments[1], 2 if self.shares else 1)
        if not kept:
            raise UnsureError

    def total(self, rows: Sequence[int]) -> Scalar:
        """The function's value for some rows; a share is relative to all rows."""
        parts = [of_rows([[self._values[row]] for row in rows])]
        if self.shares:
            parts.append(of_rows([[value] for value in self._values]))
        return one_of(self._call(self._evaluation, parts))

    def sorted_groups(self, field: int, order: int | None, totals: bool) -> _Groups:
        """The groups by a field, in the order that an argument requests."""
        groups = _Groups(self.fields[field])
        if order is None or order == 1:
            return groups
        if abs(order) == 2 and totals:
            groups.order([self.total(rows) for rows in groups.rows], descending=order < 0)
        elif order == -1:
            groups.order(groups.keys, descending=True)
        else:
            raise UnsureError
        return groups


def _grouped(evaluation: Evaluation, arguments: Sequence[Node]) -> Rows:
    """GROUPBY of one column by one field."""
    table = _Table(evaluation, arguments[:1], arguments[1:], 5)
    depth = _option(evaluation, arguments, 4)
    depth = 1 if depth is None else depth
    if depth not in (-1, 0, 1):
        raise UnsureError
    groups = table.sorted_groups(0, _option(evaluation, arguments, 5), totals=True)
    rows: Rows = [[key, table.total(of)] for key, of in zip(groups.keys, groups.rows, strict=True)]
    last: Rows = [[_TOTAL, table.total(range(len(table.fields[0])))]] if depth else []
    evaluation.converted = True
    return [*last, *rows] if depth < 0 else [*rows, *last]


def _pivoted(evaluation: Evaluation, arguments: Sequence[Node]) -> Rows:
    """PIVOTBY of one column by one field in rows and one in columns, with totals at their end."""
    table = _Table(evaluation, arguments[:2], arguments[2:], 7)
    down, across = (_option(evaluation, arguments, at) for at in (5, 7))
    depths = [1 if depth is None else depth for depth in (down, across)]
    if not set(depths) <= {0, 1} or table.shares:
        raise UnsureError
    by_row = table.sorted_groups(0, _option(evaluation, arguments, 6), totals=False)
    by_column = table.sorted_groups(1, _option(evaluation, arguments, 8), totals=False)
    lines = [*zip(by_row.keys, by_row.rows, strict=True)]
    columns = [*zip(by_column.keys, by_column.rows, strict=True)]
    everything = list(range(len(table.fields[0])))
    lines += [(_TOTAL, everything)] if depths[0] else []
    columns += [(_TOTAL, everything)] if depths[1] else []
    if (len(lines) + 1) * (len(columns) + 1) > MAX_VALUES:
        raise UnsureError
    rows: Rows = [["", *(key for key, _ in columns)]]
    sets = [frozenset(of_column) for _, of_column in columns]
    for key, of_row in lines:
        in_row = frozenset(of_row)
        cells = [sorted(in_row & in_column) for in_column in sets]
        rows.append([key, *(table.total(cell) if cell else "" for cell in cells)])
    evaluation.converted = True
    return rows


SHAPING_FUNCTIONS: dict[str, ArrayResult] = {
    "_XLFN.TAKE": _shaped(2, 3, _part(taken=True)),
    "_XLFN.DROP": _shaped(2, 3, _part(taken=False)),
    "_XLFN.CHOOSECOLS": _shaped(2, 254, _chosen(columns=True)),
    "_XLFN.CHOOSEROWS": _shaped(2, 254, _chosen(columns=False)),
    "_XLFN.TRIMRANGE": _shaped(1, 3, _trimmed),
    "_XLFN.EXPAND": _shaped(2, 4, _expanded),
    "_XLFN.VSTACK": _shaped(1, 254, _stacked(downwards=True)),
    "_XLFN.HSTACK": _shaped(1, 254, _stacked(downwards=False)),
    "_XLFN.WRAPROWS": _shaped(2, 3, _wrapped(by_rows=True)),
    "_XLFN.WRAPCOLS": _shaped(2, 3, _wrapped(by_rows=False)),
    "_XLFN.TEXTSPLIT": _shaped(2, 6, _split),
    "_XLFN.GROUPBY": _shaped(3, 7, _grouped),
    "_XLFN.PIVOTBY": _shaped(4, 10, _pivoted),
}
