"""Computes functions that cut, stack, wrap, split and group arrays. Pure.

Sources: Microsoft's pages on these functions. A blank cell of a range stays blank in the result,
which shows it as 0.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Sequence

from judge.formulas.tree import Missing, Node, Parameter
from judge.recalc.functions.arrays import (
    MAX_VALUES,
    ArrayFunction,
    ArrayResult,
    all_of,
    array_of,
    gathered,
    of_rows,
    of_values,
    one_of,
    single,
)
from judge.recalc.functions.conversions import NA, NUM, VALUE, UnsureError
from judge.recalc.functions.criteria import Cells, Scalar, is_number, numbers_of
from judge.recalc.functions.lambdas import lambda_of
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
    values = list(cells.all_values())
    wide = cells.columns
    return [values[at * wide : (at + 1) * wide] for at in range(cells.rows)]


def _option(
    evaluation: Evaluation, arguments: Sequence[Node], at: int, *, exact: bool = False
) -> int | None:
    """The value of an optional argument, without decimals; None if the argument is left out."""
    if at >= len(arguments) or isinstance(arguments[at], Missing):
        return None
    number = evaluation.number(evaluation.scalar(arguments[at]))
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


def _frequency(evaluation: Evaluation, arguments: Sequence[Node]) -> Rows:
    """FREQUENCY: how many numbers are in each interval; a limit that is repeated gets 0."""
    numbers, limits = (numbers_of(gathered(evaluation, (node,))) for node in arguments)
    if isinstance(numbers, ErrorValue) or isinstance(limits, ErrorValue) or not limits:
        raise UnsureError
    ordered, ascending = sorted(numbers), sorted(set(limits))
    evaluation.values.spend(len(ordered) + len(limits))
    # LibreOffice counts for the last of equal limits.
    evaluation.converted = evaluation.converted or len(ascending) < len(limits)
    ends = [0, *(bisect.bisect_right(ordered, limit) for limit in ascending)]
    counts = dict(zip(ascending, map(operator.sub, ends[1:], ends), strict=True))
    return [[counts.pop(limit, 0)] for limit in limits] + [[len(ordered) - ends[-1]]]


def _turned(rows: Rows) -> Rows:
    return [list(column) for column in zip(*rows, strict=True)]


# -- turning --------------------------------------------------------------------------------------


def _transpose(evaluation: Evaluation, arguments: Sequence[Node]) -> Cells:
    if len(arguments) != 1:
        raise UnsureError
    cells = array_of(evaluation, arguments[0])
    turned = {(column, row): value for (row, column), value in cells.values.items()}
    return Cells(cells.columns, cells.rows, turned)


def _line_of(*, rows: bool) -> ArrayFunction:
    """Computes TOROW and TOCOL; arrays that keep a blank are left to engines, as Excel shows 0."""

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Cells:
        if not 1 <= len(arguments) <= 3:
            raise UnsureError
        cells = all_of(evaluation, arguments[0])
        options = [evaluation.scalar(argument) for argument in arguments[1:]]
        if any(isinstance(option, (str, ErrorValue)) for option in options):
            raise UnsureError
        ignored, by_column, *_ = (*(option or 0 for option in options), 0, 0)
        if cells.size > MAX_VALUES or ignored not in range(4):
            raise UnsureError
        positions: Iterator[tuple[int, int]] = itertools.product(
            range(cells.rows), range(cells.columns)
        )
        if by_column:
            positions = (
                (row, column) for column in range(cells.columns) for row in range(cells.rows)
            )
        values = [cells.values.get(position) for position in positions]
        if ignored in (1, 3):
            evaluation.converted = evaluation.converted or "" in values  # text, if an empty one
            values = [value for value in values if value is not None]
        if ignored in (2, 3):
            values = [value for value in values if not isinstance(value, ErrorValue)]
        if not values or None in values:
            raise UnsureError
        return of_values(1, len(values), values) if rows else of_values(len(values), 1, values)

    return call


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
            indices = all_of(evaluation, argument)
            if indices.rows > 1 and indices.columns > 1:
                raise _RefusedError(VALUE)
            for value in indices.all_values():
                number = evaluation.number(value)
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
        filled = [position[at - 1] for position in cells.values]
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
        else [evaluation.text(mark) for mark in all_of(evaluation, arguments[at]).all_values()]
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


# -- filtering and sorting -------------------------------------------------------------------------


def _filtered(evaluation: Evaluation, arguments: Sequence[Node]) -> Rows:
    """FILTER: the rows or columns whose condition is TRUE, or a number other than 0."""
    rows, tests = (_rows(evaluation, argument) for argument in arguments[:2])
    of_lines = len(tests) == len(rows) and len(tests[0]) == 1
    if not of_lines and (len(tests) > 1 or len(tests[0]) != len(rows[0])):
        raise _RefusedError(VALUE)
    flags = [*itertools.chain.from_iterable(tests)]
    for flag in flags:
        if isinstance(flag, (str, ErrorValue)):
            raise _RefusedError(VALUE if isinstance(flag, str) else flag)
    # LibreOffice takes a negative number for FALSE.
    evaluation.converted = evaluation.converted or any(
        is_number(flag) and flag not in (0, 1) for flag in flags
    )
    kept = [
        line for line, flag in zip(rows if of_lines else _turned(rows), flags, strict=True) if flag
    ]
    if not kept and len(arguments) == 3 and not isinstance(arguments[2], Missing):
        return [[evaluation.scalar(arguments[2])]]
    return kept if of_lines else _turned(kept)


def _distinct(evaluation: Evaluation, arguments: Sequence[Node]) -> Rows:
    """UNIQUE: each row or column once, or only those that occur once."""
    rows = _rows(evaluation, arguments[0])
    by_column, once = (_option(evaluation, arguments, at) for at in (1, 2))
    lines = _turned(rows) if by_column else rows
    groups: dict[object, Rows] = {}
    for line in lines:
        key = tuple((_folded(value), type(value) is bool) for value in line)
        groups.setdefault(key, []).append(line)
    kept = [group[0] for group in groups.values() if not once or len(group) == 1]
    return _turned(kept) if by_column and kept else kept


def _folded(value: Scalar) -> Scalar:
    """A value as UNIQUE and GROUPBY compare it: without regard to upper and lower case."""
    return value.lower() if isinstance(value, str) else value


def _in_order(lines: Rows, keys: Sequence[tuple[Sequence[Scalar], bool]]) -> Rows:
    """Sorts lines by several keys, the first of which counts most; blank ones come last.

    Raises:
        UnsureError: a key is an error.
    """
    order = list(range(len(lines)))
    for values, descending in reversed(keys):
        if any(isinstance(value, ErrorValue) for value in values):
            raise UnsureError
        key = functools.cmp_to_key(functools.partial(_order, descending=descending))
        filled = [at for at in order if values[at] is not None]
        order = sorted(filled, key=lambda at: key(values[at])) + [
            at for at in order if values[at] is None
        ]
    return [lines[at] for at in order]


def _descends(value: Scalar) -> bool:
    """Whether an order is descending; an order is 1 or -1."""
    if value not in (1, -1) or isinstance(value, bool):
        raise _RefusedError(VALUE)
    return value == -1


def _sorted(evaluation: Evaluation, arguments: Sequence[Node]) -> Rows:
    """SORT by one or several columns, or rows."""
    rows = _rows(evaluation, arguments[0])
    indexes, orders = (
        [*itertools.chain.from_iterable(_rows(evaluation, arguments[at]))]
        if at < len(arguments) and not isinstance(arguments[at], Missing)
        else [1]
        for at in (1, 2)
    )
    if len(orders) not in (1, len(indexes)):
        raise UnsureError
    orders = orders * len(indexes) if len(orders) == 1 else orders
    by_column = _option(evaluation, arguments, 3)
    lines = _turned(rows) if by_column else rows
    fields = _turned(lines)
    keys: list[tuple[Sequence[Scalar], bool]] = []
    for index, order in zip(indexes, orders, strict=True):
        if not is_number(index) or not 1 <= index < len(fields) + 1:
            raise _RefusedError(VALUE)
        keys.append((fields[int(index) - 1], _descends(order)))
    ordered = _in_order(lines, keys)
    return _turned(ordered) if by_column else ordered


def _sorted_by(evaluation: Evaluation, arguments: Sequence[Node]) -> Rows:
    """SORTBY: sorts rows, or columns, by the values of other ones."""
    rows = _rows(evaluation, arguments[0])
    keys: list[tuple[Sequence[Scalar], bool]] = []
    shapes: set[tuple[int, int]] = set()
    for at in range(1, len(arguments), 2):
        by = _rows(evaluation, arguments[at])
        given = at + 1 < len(arguments) and not isinstance(arguments[at + 1], Missing)
        descending = _descends(evaluation.scalar(arguments[at + 1])) if given else False
        keys.append(([*itertools.chain.from_iterable(by)], descending))
        shapes.add((len(by), len(by[0])))
    if shapes == {(len(rows), 1)}:
        return _in_order(rows, keys)
    if shapes == {(1, len(rows[0]))}:
        return _turned(_in_order(_turned(rows), keys))
    raise _RefusedError(VALUE)


def _sequence(evaluation: Evaluation, arguments: Sequence[Node]) -> Rows:
    """SEQUENCE: numbers in equal steps, row by row."""
    high, wide = (_option(evaluation, arguments, at) for at in (0, 1))
    high, wide = 1 if high is None else high, 1 if wide is None else wide
    numbers = [1.0, 1.0]
    for at in (2, 3):
        if at < len(arguments) and not isinstance(arguments[at], Missing):
            number = evaluation.number(evaluation.scalar(arguments[at]))
            if isinstance(number, ErrorValue):
                raise _RefusedError(number)
            numbers[at - 2] = number
    if high < 0 or wide < 0:
        raise _RefusedError(VALUE)
    if high * wide > MAX_VALUES:
        raise UnsureError
    first, step = numbers
    return [[first + (row * wide + at) * step for at in range(wide)] for row in range(high)]


# -- grouping --------------------------------------------------------------------------------------

_TOTAL = "Total"
_SHARE = Parameter("_XLETA.PERCENTOF")


class _Groups:
    """The rows of a table, grouped by the values of some columns, in ascending order.

    Attributes:
        keys: for each group, its value in each of the columns.
        rows: the rows of each group.
    """

    def __init__(self, columns: Sequence[Sequence[Scalar]]) -> None:
        self.keys: list[tuple[Scalar, ...]] = []
        self.rows: list[list[int]] = []
        indices: dict[object, int] = {}
        for row, key in enumerate(zip(*columns, strict=True)):
            if any(value is None or isinstance(value, ErrorValue) for value in key):
                raise UnsureError
            group_key = tuple((rank(value), _folded(value)) for value in key)
            if group_key not in indices:
                indices[group_key] = len(self.keys)
                self.keys.append(key)
                self.rows.append([])
            self.rows[indices[group_key]].append(row)
        for at in reversed(range(len(columns))):
            self.order([key[at] for key in self.keys])

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
        UnsureError: headers that are generated or shown, or several functions.

    Attributes:
        fields: the columns by which rows are grouped, those of each argument.
        values: the columns that are totalled.
    """

    def __init__(
        self,
        evaluation: Evaluation,
        fields: Sequence[Node],
        arguments: Sequence[Node],
        filter_at: int,
    ) -> None:
        self._evaluation = evaluation
        parts = [_rows(evaluation, node) for node in (*fields, arguments[0])]
        if len({*map(len, parts)}) > 1:
            raise _RefusedError(VALUE)
        columns = [_turned(rows) for rows in parts]
        headers = _option(evaluation, arguments, 2)
        count = len(parts[0])
        if headers is None:
            signs = {
                count > 1 and isinstance(values[0], str) and is_number(values[1])
                for values in columns[-1]
            }
            if len(signs) > 1:
                raise UnsureError
            has = signs == {True}
        elif headers in (0, 1):
            has = headers == 1
        else:
            raise UnsureError
        kept = list(range(count))
        if filter_at < len(arguments) and not isinstance(arguments[filter_at], Missing):
            shown = [row[0] for row in _rows(evaluation, arguments[filter_at])]
            if len(shown) != count or any(isinstance(one, (str, ErrorValue)) for one in shown):
                raise UnsureError
            kept = [row for row in kept if shown[row]]
        kept = [row for row in kept if row or not has]
        self.size = len(kept)
        shown_columns = [[[values[row] for row in kept] for values in part] for part in columns]
        self.fields = shown_columns[:-1]
        self.values = shown_columns[-1]
        self.shares = arguments[1] == _SHARE
        self._call = lambda_of(arguments[1], 2 if self.shares else 1)
        if not kept:
            raise UnsureError

    def totals(self, rows: Sequence[int]) -> list[Scalar]:
        """The function's value for some rows of each column; a share is relative to all rows."""
        totals: list[Scalar] = []
        for values in self.values:
            parts = [of_rows([[values[row]] for row in rows])]
            if self.shares:
                parts.append(of_rows([[value] for value in values]))
            totals.append(one_of(self._call(self._evaluation, parts)))
        return totals

    def sorted_groups(self, field: int, order: int | None, totals: bool) -> _Groups:
        """The groups by the columns of one argument, in the order that another argument requests.

        Raises:
            UnsureError: there are several columns of fields, and the order is not the usual one.
        """
        groups = _Groups(self.fields[field])
        if order is None or order == 1:
            return groups
        if len(self.fields[field]) > 1:
            raise UnsureError
        if 2 <= abs(order) <= len(self.values) + 1 and totals:
            by = [self.totals(rows)[abs(order) - 2] for rows in groups.rows]
            groups.order(by, descending=order < 0)
        elif order == -1:
            groups.order([key[0] for key in groups.keys], descending=True)
        else:
            raise UnsureError
        return groups


def _grouped(evaluation: Evaluation, arguments: Sequence[Node]) -> Rows:
    """GROUPBY with a total of everything, or none; subtotals are left to engines."""
    table = _Table(evaluation, arguments[:1], arguments[1:], 5)
    depth = _option(evaluation, arguments, 4)
    depth = 1 if depth is None else depth
    if depth not in (-1, 0, 1):
        raise UnsureError
    groups = table.sorted_groups(0, _option(evaluation, arguments, 5), totals=True)
    rows: Rows = [
        [*key, *table.totals(of)] for key, of in zip(groups.keys, groups.rows, strict=True)
    ]
    blank = [""] * (len(table.fields[0]) - 1)
    last: Rows = [[_TOTAL, *blank, *table.totals(range(table.size))]] if depth else []
    evaluation.converted = True
    return [*last, *rows] if depth < 0 else [*rows, *last]


def _pivoted(evaluation: Evaluation, arguments: Sequence[Node]) -> Rows:
    """PIVOTBY of one column by one field in rows and one in columns, with totals at their end."""
    table = _Table(evaluation, arguments[:2], arguments[2:], 7)
    down, across = (_option(evaluation, arguments, at) for at in (5, 7))
    depths = [1 if depth is None else depth for depth in (down, across)]
    if not set(depths) <= {0, 1} or table.shares:
        raise UnsureError
    if any(len(columns) > 1 for columns in (*table.fields, table.values)):
        raise UnsureError
    by_row = table.sorted_groups(0, _option(evaluation, arguments, 6), totals=False)
    by_column = table.sorted_groups(1, _option(evaluation, arguments, 8), totals=False)
    lines = [(key[0], rows) for key, rows in zip(by_row.keys, by_row.rows, strict=True)]
    columns = [(key[0], rows) for key, rows in zip(by_column.keys, by_column.rows, strict=True)]
    everything = list(range(table.size))
    lines += [(_TOTAL, everything)] if depths[0] else []
    columns += [(_TOTAL, everything)] if depths[1] else []
    if (len(lines) + 1) * (len(columns) + 1) > MAX_VALUES:
        raise UnsureError
    rows: Rows = [["", *(key for key, _ in columns)]]
    sets = [frozenset(of_column) for _, of_column in columns]
    for key, of_row in lines:
        in_row = frozenset(of_row)
        cells = [sorted(in_row & in_column) for in_column in sets]
        rows.append([key, *(table.totals(cell)[0] if cell else "" for cell in cells)])
    evaluation.converted = True
    return rows


SHAPING_FUNCTIONS: dict[str, ArrayResult] = {
    "TRANSPOSE": ArrayResult(_transpose),
    "_XLFN.TOROW": ArrayResult(_line_of(rows=True)),
    "_XLFN.TOCOL": ArrayResult(_line_of(rows=False)),
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
    "_XLFN._XLWS.FILTER": _shaped(2, 3, _filtered),
    "_XLFN.UNIQUE": _shaped(1, 3, _distinct),
    "_XLFN._XLWS.SORT": _shaped(1, 4, _sorted),
    "_XLFN.SORTBY": _shaped(2, 253, _sorted_by),
    "_XLFN.SEQUENCE": _shaped(1, 4, _sequence),
    "FREQUENCY": _shaped(2, 2, _frequency),
    "_XLFN.GROUPBY": _shaped(3, 7, _grouped),
    "_XLFN.PIVOTBY": _shaped(4, 10, _pivoted),
}
