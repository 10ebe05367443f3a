"""Counts and sums by criteria, and the database functions, over cells with known values. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from judge.formulas.references import Reference
from judge.formulas.tree import Missing, Node
from judge.recalc.conversions import UnsureError
from judge.recalc.criteria import (
    Cells,
    Matches,
    Scalar,
    criterion,
    matches,
    names_of,
    numbers_of,
    table_rows,
)
from judge.recalc.scalars import DIV0, NA, NUM, VALUE, Evaluation, Function, compared
from judge.workbook.address import MAX_COLUMN, MAX_ROW
from judge.workbook.cell import ErrorValue

_Sum = Callable[[Sequence[float]], Scalar]


def _area(evaluation: Evaluation, node: Node) -> Cells:
    return evaluation.values.cells(_reference(node))


def _searched(evaluation: Evaluation, node: Node) -> Cells:
    """A rectangle from which criteria choose cells."""
    return evaluation.values.searched(_reference(node))


def _plain_sum(numbers: Sequence[float]) -> float:
    """The sum as Excel adds, one number after the other, with the rounding errors of that."""
    total = 0.0
    for number in numbers:
        total += number
    return total


def _total(numbers: Sequence[float]) -> Scalar:
    return _plain_sum(numbers)


def _average(numbers: Sequence[float]) -> Scalar:
    return _plain_sum(numbers) / len(numbers) if numbers else DIV0


def _of_all(total: _Sum) -> Function:
    """SUM and AVERAGE of ranges and numbers; LibreOffice adds without rounding errors."""

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        values: list[Scalar] = []
        for argument in arguments:
            if isinstance(argument, Reference):
                values += (value for _, value in sorted(_area(evaluation, argument).values.items()))
            else:
                values.append(evaluation.scalar(argument))
                if not isinstance(values[-1], (int, float, ErrorValue)):
                    raise UnsureError
        numbers = numbers_of(values)
        if isinstance(numbers, ErrorValue):
            return numbers
        result = total(numbers)
        exact = math.fsum(numbers) / (1 if total is _total else len(numbers) or 1)
        evaluation.converted = evaluation.converted or result != exact
        return result

    return call


def _greatest(numbers: Sequence[float]) -> Scalar:
    return max(numbers, default=0)


def _least(numbers: Sequence[float]) -> Scalar:
    return min(numbers, default=0)


def _all_matching(evaluation: Evaluation, pairs: Sequence[Node]) -> tuple[Cells, Matches] | None:
    """The first range, and the places that meet all criteria; None if shapes differ."""
    if not pairs or len(pairs) % 2:
        raise UnsureError
    first: Cells | None = None
    meeting = Matches(frozenset(), inverted=True)
    for area, condition in zip(pairs[::2], pairs[1::2], strict=True):
        cells = _searched(evaluation, area)
        if isinstance(condition, Missing):
            raise UnsureError
        first = first or cells
        if (cells.rows, cells.columns) != (first.rows, first.columns):
            return None
        meeting &= matches(cells, criterion(evaluation.scalar(condition)))
    evaluation.converted = True
    return None if first is None else (first, meeting)


def _countif(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    if len(arguments) != 2:
        raise UnsureError
    return _countifs(evaluation, arguments)


def _countifs(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    counted = _all_matching(evaluation, arguments)
    return VALUE if counted is None else counted[1].count(counted[0].size)


def _of_matching(cells: Cells, meeting: Matches, total: _Sum) -> Scalar:
    values = cells.values
    if meeting.inverted:
        cells.spend(len(values))
        met = values.keys() - meeting.places
    else:
        met = {place for place in meeting.places if place in values}
    numbers = numbers_of(values[place] for place in sorted(met))
    return numbers if isinstance(numbers, ErrorValue) else total(numbers)


def _by_one(total: _Sum) -> Function:
    """SUMIF and AVERAGEIF: the sums begin where their range begins, in the shape of the other."""

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        if not 2 <= len(arguments) <= 3:
            raise UnsureError
        counted = _all_matching(evaluation, arguments[:2])
        if counted is None:
            raise UnsureError
        cells, meeting = counted
        if len(arguments) == 3:
            cells = evaluation.values.searched(_in_shape(_reference(arguments[2]), cells))
        return _of_matching(cells, meeting, total)

    return call


def _in_shape(sums: Reference, cells: Cells) -> Reference:
    last_row, last_column = sums.min_row + cells.rows - 1, sums.min_column + cells.columns - 1
    if last_row > MAX_ROW or last_column > MAX_COLUMN:
        raise UnsureError
    return sums._replace(max_row=last_row, max_column=last_column)


def _by_several(total: _Sum) -> Function:
    """SUMIFS and its relatives: the range of sums comes first, and all have one shape."""

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        if len(arguments) < 3:
            raise UnsureError
        cells = _searched(evaluation, arguments[0])
        counted = _all_matching(evaluation, arguments[1:])
        if counted is None or (cells.rows, cells.columns) != (counted[0].rows, counted[0].columns):
            return VALUE
        return _of_matching(cells, counted[1], total)

    return call


def _rank(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """RANK: the place of a number among those of a range; equal numbers share the first one."""
    if not 2 <= len(arguments) <= 3:
        raise UnsureError
    value = evaluation.scalar(arguments[0])
    number = value if isinstance(value, ErrorValue) else evaluation.number(value)
    order = evaluation.scalar(arguments[2]) if len(arguments) == 3 else 0
    ascending = order if isinstance(order, ErrorValue) else evaluation.number(order)
    if isinstance(number, ErrorValue) or isinstance(ascending, ErrorValue):
        return number if isinstance(number, ErrorValue) else ascending
    numbers = numbers_of(_area(evaluation, arguments[1]).values.values())
    if isinstance(numbers, ErrorValue):
        return numbers
    if any(each != number and math.isclose(each, number, rel_tol=1e-14) for each in numbers):
        raise UnsureError
    if number not in numbers:
        return NA
    return 1 + sum(each < number if ascending else each > number for each in numbers)


# -- looking up -----------------------------------------------------------------------------------


def _line(cells: Cells) -> list[Scalar]:
    """The values of a row or a column."""
    if cells.rows > 1 and cells.columns > 1:
        raise UnsureError
    return [
        cells.values.get((at, 0) if cells.columns == 1 else (0, at)) for at in range(cells.size)
    ]


def _mode(evaluation: Evaluation, arguments: Sequence[Node], at: int, default: int) -> int:
    """A mode of matching or searching."""
    if len(arguments) <= at or isinstance(arguments[at], Missing):
        return default
    value = evaluation.scalar(arguments[at])
    if isinstance(value, (bool, str, ErrorValue)) or value is None or value != int(value):
        raise UnsureError
    return int(value)


def _place(
    evaluation: Evaluation, arguments: Sequence[Node], sought: Scalar, modes_at: int
) -> int | None:
    """Where XLOOKUP and XMATCH find a value, from 0; None if nowhere.

    Numbers come before text, and text before logical values; the kind of a nearest value may
    differ from that of the one that is sought.
    """
    match, search = (
        _mode(evaluation, arguments, modes_at, 0),
        _mode(evaluation, arguments, modes_at + 1, 1),
    )
    if sought is None or match not in (-1, 0, 1) or search not in (1, -1, 2, -2):
        raise UnsureError
    line = _line(_area(evaluation, arguments[1]))
    if len(line) > MOST_LOOKED_AT or any(isinstance(value, ErrorValue) for value in line):
        raise UnsureError
    filled = [(at, value) for at, value in enumerate(line) if value is not None]
    if abs(search) == 2 and not _is_sorted([value for _, value in filled], search < 0):
        raise UnsureError
    evaluation.converted = evaluation.converted or match != 0
    nearest: tuple[int, Scalar] | None = None
    for at, value in filled if search > 0 else filled[::-1]:
        if compared(value, sought, "="):
            return at
        if match and compared(value, sought, "<" if match < 0 else ">"):
            nearer = ">" if match < 0 else "<"
            if nearest is None or compared(value, nearest[1], nearer):
                nearest = at, value
    return None if nearest is None else nearest[0]


def _is_sorted(values: Sequence[Scalar], descending: bool) -> bool:
    order = ">" if descending else "<"
    return all(compared(one, two, order) for one, two in itertools.pairwise(values))


MOST_LOOKED_AT = 2_000
"""Values among which a nearest one is searched; engines agree on large tables."""


def _xlookup(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    if not 3 <= len(arguments) <= 6 or not isinstance(arguments[2], Reference):
        raise UnsureError
    sought = evaluation.scalar(arguments[0])
    if isinstance(sought, ErrorValue):
        return sought
    if _mode(evaluation, arguments, 4, 0) == 0:
        raise UnsureError  # engines look up equal values as Excel does
    at = _place(evaluation, arguments, sought, 4)
    if at is None:
        is_given = len(arguments) > 3 and not isinstance(arguments[3], Missing)
        return evaluation.scalar(arguments[3]) if is_given else NA
    results = evaluation.values.cells(arguments[2])
    if results.size != evaluation.values.cells(_reference(arguments[1])).size:
        raise UnsureError
    value = _line(results)[at]
    return 0 if value is None else value


def _xmatch(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    if not 2 <= len(arguments) <= 4 or _mode(evaluation, arguments, 2, 0) == 0:
        raise UnsureError
    sought = evaluation.scalar(arguments[0])
    if isinstance(sought, ErrorValue):
        return sought
    at = _place(evaluation, arguments, sought, 2)
    return NA if at is None else at + 1


def _reference(node: Node) -> Reference:
    if not isinstance(node, Reference):
        raise UnsureError
    return node


# -- databases -------------------------------------------------------------------------------------


def _field(evaluation: Evaluation, node: Node, table: Cells) -> int | None:
    """The column of a database that a field names, from 0; None if it is left out."""
    if isinstance(node, Missing):
        return None
    value = evaluation.scalar(node)
    if isinstance(value, str):
        return names_of(table).get(value.lower(), -1)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UnsureError
    return int(value) - 1 if 1 <= value < table.columns + 1 else -1


def _of_table(
    result: Callable[[Sequence[Scalar]], Scalar], *, field_needed: bool = True
) -> Function:
    """A database function: what its result is of the values in the rows that meet the criteria."""

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        if len(arguments) != 3:
            raise UnsureError
        table, conditions = _area(evaluation, arguments[0]), _area(evaluation, arguments[2])
        column = _field(evaluation, arguments[1], table)
        evaluation.converted = True
        if table.rows < 2:
            return VALUE
        if column is None and not field_needed:
            rows = table_rows(table, conditions)
            return result([1.0] * len(rows))
        if column is None or column < 0:
            return VALUE
        rows = table_rows(table, conditions)
        return result([table.values.get((row, column)) for row in rows])

    return call


def _of_numbers(total: _Sum) -> Callable[[Sequence[Scalar]], Scalar]:
    def result(values: Sequence[Scalar]) -> Scalar:
        numbers = numbers_of(values)
        return numbers if isinstance(numbers, ErrorValue) else total(numbers)

    return result


def _single(values: Sequence[Scalar]) -> Scalar:
    """DGET: the only value; none is #VALUE!, several are #NUM!."""
    if not values:
        return VALUE
    return NUM if len(values) > 1 else values[0]


def _filled(values: Sequence[Scalar]) -> Scalar:
    return sum(value is not None for value in values)


def _counted(values: Sequence[Scalar]) -> Scalar:
    return sum(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)


def _product(numbers: Sequence[float]) -> Scalar:
    return math.prod(numbers) if numbers else 0


def _variance(*, sample: bool, root: bool) -> _Sum:
    def total(numbers: Sequence[float]) -> Scalar:
        degrees = len(numbers) - sample
        if degrees < 1:
            return DIV0
        mean = math.fsum(numbers) / len(numbers)
        variance = math.fsum((number - mean) ** 2 for number in numbers) / degrees
        return math.sqrt(variance) if root else variance

    return total


COUNTING_FUNCTIONS: dict[str, Function] = {
    "SUM": _of_all(_total),
    "AVERAGE": _of_all(_average),
    "COUNTIF": _countif,
    "COUNTIFS": _countifs,
    "SUMIF": _by_one(_total),
    "AVERAGEIF": _by_one(_average),
    "SUMIFS": _by_several(_total),
    "AVERAGEIFS": _by_several(_average),
    "_XLFN.MAXIFS": _by_several(_greatest),
    "_XLFN.MINIFS": _by_several(_least),
    "_XLFN.XLOOKUP": _xlookup,
    "_XLFN.XMATCH": _xmatch,
    "RANK": _rank,
    "_XLFN.RANK.EQ": _rank,
    "DSUM": _of_table(_of_numbers(_total)),
    "DAVERAGE": _of_table(_of_numbers(_average)),
    "DMAX": _of_table(_of_numbers(_greatest)),
    "DMIN": _of_table(_of_numbers(_least)),
    "DPRODUCT": _of_table(_of_numbers(_product)),
    "DVAR": _of_table(_of_numbers(_variance(sample=True, root=False))),
    "DVARP": _of_table(_of_numbers(_variance(sample=False, root=False))),
    "DSTDEV": _of_table(_of_numbers(_variance(sample=True, root=True))),
    "DSTDEVP": _of_table(_of_numbers(_variance(sample=False, root=True))),
    "DCOUNT": _of_table(_counted, field_needed=False),
    "DCOUNTA": _of_table(_filled, field_needed=False),
    "DGET": _of_table(_single),
}
