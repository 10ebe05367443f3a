"""Computes look-ups in arrays whose values are of several kinds or not in order. Pure.

Microsoft's pages say what a look-up finds among values in order; for others they only say that the
result may be wrong. Excel's results there are those of a binary search, as 390 cells of a workbook
show that Excel saved (`test/test_files/test.xlsx` of the library `formulas`). MATCH, LOOKUP,
VLOOKUP and HLOOKUP skip values of a different kind from the value that is looked up. For XLOOKUP
and XMATCH, numbers come before text, text before logical values, and these before a blank cell.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence

from judge.formulas.references import Reference
from judge.formulas.tree import Constant, Missing, Node
from judge.recalc.functions.arrays import (
    MAX_VALUES,
    Applied,
    ArrayResult,
    all_of,
    array_of,
    each_of,
    is_reference,
    of_rows,
    one_of,
    single,
)
from judge.recalc.functions.conversions import NA, VALUE, UnsureError, fits
from judge.recalc.functions.criteria import Cells, Scalar, SparseCells, has_logical, is_number
from judge.recalc.functions.scalars import Evaluation, Function, chosen, compared
from judge.workbook.address import MAX_COLUMN, MAX_ROW, column_letters
from judge.workbook.cell import ErrorValue

MAX_CELLS_COMPARED = 2_000
"""The largest number of values that are searched here; on larger tables the engines agree."""

REF = ErrorValue("#REF!")


def _cells(evaluation: Evaluation, node: Node) -> Cells:
    if isinstance(node, Reference):
        return evaluation.values.cells(node)
    if isinstance(node, Constant):
        raise UnsureError
    return all_of(evaluation, node)


def _line(cells: Cells) -> Sequence[Scalar]:
    """The values of an array that is a single row or column."""
    if (cells.rows > 1 and cells.columns > 1) or cells.size > MAX_CELLS_COMPARED:
        raise UnsureError
    return cells.every


def _filled_line(cells: Cells) -> Sequence[Scalar]:
    """The values of a single row or column, up to the last one that is not blank."""
    if cells.size <= MAX_CELLS_COMPARED:
        return _line(cells)
    filled = max(cells.used_size)
    if min(cells.rows, cells.columns) > 1 or filled > MAX_CELLS_COMPARED:
        raise UnsureError
    is_column = cells.columns == 1
    return [cells.values.get((at, 0) if is_column else (0, at)) for at in range(filled)]


# -- MATCH and its relatives -----------------------------------------------------------------------


def binary_search_position(
    sought: Scalar, line: Sequence[Scalar], size: int, *, descending: bool = False
) -> int | None:
    """Position, from 0, at which Excel's binary search ends: the last value not beyond the target.

    Values of another kind are skipped; None if no value is left.

    Args:
        sought: the target.
        line: the values that are searched.
        size: how many cells are searched; those after the values are blank.
        descending: whether the values are in descending order.
    """
    if descending and line and _kind(line[0]) == _kind(sought) and compared(line[0], sought, "<"):
        return None
    beyond = "<" if descending else ">"
    low, high = -1, size
    while high - low >= 2:
        middle = low + (high - low) // 2
        filled = range(middle, min(high, len(line)))
        at = next((at for at in filled if _kind(line[at]) == _kind(sought)), None)
        if at is None or compared(line[at], sought, beyond):
            high = middle
        elif compared(line[at], sought, "="):
            step = -1 if descending else 1
            while low < at + step < min(high, len(line)) and _is_equal(line[at + step], sought):
                at += step
            return at
        else:
            low = at
    return next((at for at in range(low, -1, -1) if _kind(line[at]) == _kind(sought)), None)


def _kind(value: Scalar) -> int:
    return _KINDS.get(type(value), 3)


_KINDS: Mapping[type, int] = {float: 0, int: 0, str: 1, bool: 2}
"""Type -> its rank in Excel's order; blank cells and errors come last."""


def _is_equal(value: Scalar, sought: Scalar) -> bool:
    return _kind(value) == _kind(sought) and compared(value, sought, "=")


def _equal(sought: Scalar, line: Sequence[Scalar]) -> int | None:
    """Position, from 0, of the first value equal to the target, which may have wildcards."""
    if isinstance(sought, str) and any(letter in sought for letter in "*?~"):
        pattern = sought.lower()
        fitting = (at for at, value in enumerate(line) if isinstance(value, str))
        return next((at for at in fitting if fits(str(line[at]).lower(), pattern)), None)
    if isinstance(sought, bool):
        return next((at for at, value in enumerate(line) if value is sought), None)
    if has_logical(line):  # TRUE and 1 are equal in Python
        return next((at for at, value in enumerate(line) if _is_equal(value, sought)), None)
    equal = (value for value in dict.fromkeys(line) if _is_equal(value, sought))
    return next((line.index(value) for value in equal), None)


def _is_plain(sought: Scalar, line: Sequence[Scalar]) -> bool:
    """Whether values are all numbers or all text, in ascending order; engines get these right."""
    kinds = {_kind(value) for value in line}
    return kinds == {_kind(sought)} and kinds <= {0, 1} and _is_sorted(line, descending=False)


def _is_sorted(values: Sequence[Scalar], *, descending: bool) -> bool:
    order = ">=" if descending else "<="
    return all(compared(one, two, order) for one, two in itertools.pairwise(values))


def _near(evaluation: Evaluation, sought: Scalar, line: Sequence[Scalar], size: int) -> int | None:
    evaluation.converted = evaluation.converted or not _is_plain(sought, line)
    return binary_search_position(sought, line, size)


def _sought(evaluation: Evaluation, node: Node) -> Scalar:
    value = evaluation.scalar(node)
    return 0 if value is None else value


def _match(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    if not 2 <= len(arguments) <= 3:
        raise UnsureError
    sought = _sought(evaluation, arguments[0])
    given = evaluation.scalar(arguments[2]) if len(arguments) == 3 else 1
    if isinstance(sought, ErrorValue):
        return evaluation.refused(sought)
    if isinstance(given, (str, ErrorValue)):
        raise UnsureError
    cells = _cells(evaluation, arguments[1])
    if not given and isinstance(cells, SparseCells) and is_number(sought):
        evaluation.converted = evaluation.converted or bool in cells.types
        at = _first_of_sparse(cells, sought)
    elif not given:
        line = _filled_line(cells)
        evaluation.converted = evaluation.converted or has_logical(line)
        at = _equal(sought, line)
    elif given > 0:
        at = _near(evaluation, sought, _filled_line(cells), cells.size)
    else:
        evaluation.converted = True
        at = binary_search_position(sought, _filled_line(cells), cells.size, descending=True)
    return NA if at is None else at + 1


def _first_of_sparse(cells: SparseCells, sought: float) -> int | None:
    """Position, from 0, of the first number equal to the target."""
    if min(cells.rows, cells.columns) > 1:
        raise UnsureError
    if _is_equal(cells.usual, sought):
        return _equal(sought, _filled_line(cells))
    positions = (position for position, value in cells.others.items() if _is_equal(value, sought))
    return min(map(max, positions), default=None)


def _lookup(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    if not 2 <= len(arguments) <= 3:
        raise UnsureError
    sought = _sought(evaluation, arguments[0])
    if isinstance(sought, ErrorValue):
        return evaluation.refused(sought)
    searched = _cells(evaluation, arguments[1])
    results = _cells(evaluation, arguments[-1])
    if searched.size != results.size or min(results.rows, results.columns) > 1:
        raise UnsureError
    at = _near(evaluation, sought, _filled_line(searched), searched.size)
    if at is None:
        return NA
    return chosen(evaluation, results.values.get((at, 0) if results.columns == 1 else (0, at)))


def _given(value: Scalar) -> Scalar:
    return 0 if value is None else value


def _in_table(*, by_rows: bool) -> Function:
    """Returns a Python function that computes VLOOKUP (by rows) or HLOOKUP."""

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        if not 3 <= len(arguments) <= 4:
            raise UnsureError
        sought = _sought(evaluation, arguments[0])
        number = evaluation.number(evaluation.scalar(arguments[2]))
        near = evaluation.scalar(arguments[3]) if len(arguments) == 4 else True
        for value in (sought, number, near):
            if isinstance(value, ErrorValue):
                return value
        if isinstance(number, ErrorValue) or isinstance(near, str):
            raise UnsureError
        table = _cells(evaluation, arguments[1])
        if not 1 <= number < (table.columns if by_rows else table.rows) + 1:
            evaluation.converted = True
            return VALUE if number < 1 else REF
        size = table.rows if by_rows else table.columns
        filled = min(size, table.used_size[0 if by_rows else 1])
        if filled > MAX_CELLS_COMPARED:
            raise UnsureError
        line = [table.values.get((at, 0) if by_rows else (0, at)) for at in range(filled)]
        evaluation.converted = evaluation.converted or has_logical(line)
        at = _near(evaluation, sought, line, size) if near else _equal(sought, line)
        if at is None:
            return NA
        other = int(number) - 1
        return chosen(evaluation, table.values.get((at, other) if by_rows else (other, at)))

    return call


def _index(evaluation: Evaluation, arguments: Sequence[Node]) -> Cells:
    """INDEX: a value of an array or a range, or a whole row or column of it."""
    if not 2 <= len(arguments) <= 3:
        raise UnsureError
    area = arguments[0]
    if isinstance(area, Reference):
        cells = evaluation.values.searched(area)
    else:
        cells = _cells(evaluation, area)
    given = [array_of(evaluation, argument) for argument in arguments[1:]]
    if any(part.size > 1 for part in given):
        return _several(evaluation, cells, given)
    indices: list[int] = []
    for argument in given:
        number = evaluation.number(argument.values.get((0, 0)))
        if isinstance(number, ErrorValue):
            return single(number)
        indices.append(int(number))
    result = _at(cells, indices)
    if result.size > 1 and not evaluation.spreads:
        if is_reference(area):
            raise UnsureError
        evaluation.converted = True  # LibreOffice computes no array in a plain formula
    return result


def _at(cells: Cells, indices: Sequence[int]) -> Cells:
    """The value at a row and a column, or in one of them; 0 stands for all rows or columns."""
    if len(indices) == 1:
        if cells.rows > 1 and cells.columns > 1:
            raise UnsureError
        indices = [0, indices[0]] if cells.rows == 1 else [indices[0], 0]
    if min(indices) < 0:
        return single(VALUE)
    row, column = indices
    if row > cells.rows or column > cells.columns:
        return single(REF)
    rows = range(row - 1, row) if row else range(cells.rows)
    columns = range(column - 1, column) if column else range(cells.columns)
    if len(rows) * len(columns) > MAX_VALUES:
        raise UnsureError
    return of_rows([[cells.values.get((at, to)) for to in columns] for at in rows])


def _several(evaluation: Evaluation, cells: Cells, given: Sequence[Cells]) -> Cells:
    """INDEX of several rows or columns, which only some engines support: a value for each place."""
    evaluation.converted = True

    def result(indices: Sequence[Scalar]) -> Scalar:
        numbers: list[int] = []
        for index in indices:
            number = evaluation.number(index)
            if isinstance(number, ErrorValue):
                return number
            numbers.append(int(number))
        return _given(one_of(_at(cells, numbers)))

    return each_of(evaluation, given, Applied(result))


# -- XLOOKUP and XMATCH ----------------------------------------------------------------------------


def _mode(evaluation: Evaluation, arguments: Sequence[Node], at: int, default: int) -> int:
    """The number that an argument gives for the match mode or the search mode."""
    if len(arguments) <= at or isinstance(arguments[at], Missing):
        return default
    value = evaluation.scalar(arguments[at])
    if isinstance(value, (bool, str, ErrorValue)) or value is None or value != int(value):
        raise UnsureError
    return int(value)


def _order(value: Scalar, other: Scalar) -> int:
    """Compares two values of any kind: -1, 0 or 1."""
    one, two = _kind(value), _kind(other)
    if one != two or one == 3:
        return (one > two) - (one < two)
    return 0 if compared(value, other, "=") else -1 if compared(value, other, "<") else 1


def _match_index(
    evaluation: Evaluation, arguments: Sequence[Node], sought: Scalar, modes_at: int
) -> int | ErrorValue | None:
    """Position, from 0, at which XLOOKUP and XMATCH find a value; None if they do not find it.

    #VALUE! if a mode does not exist, or the two modes cannot be combined.
    """
    match = _mode(evaluation, arguments, modes_at, 0)
    search = _mode(evaluation, arguments, modes_at + 1, 1)
    if match not in (-1, 0, 1, 2, 3) or search not in (1, -1, 2, -2):
        return evaluation.refused(VALUE)
    if match > 1 and abs(search) > 1:
        return evaluation.refused(VALUE)  # a pattern is not found by a binary search
    if match == 3 or (match == 2 and sought in (None, "")):
        raise UnsureError
    line = _line(_cells(evaluation, arguments[1]))
    if any(isinstance(value, ErrorValue) for value in line):
        raise UnsureError
    logical = any(isinstance(value, bool) for value in (sought, *line))
    evaluation.converted = evaluation.converted or match != 0 or abs(search) == 2 or logical
    if abs(search) == 2:
        return _halved_of_all(sought, line, match, descending=search < 0)
    nearest: int | None = None
    filled = [at for at, value in enumerate(line) if value is not None]
    filled = filled if search > 0 else filled[::-1]
    if match == 2 and isinstance(sought, str):
        texts = ((at, value.lower()) for at in filled if isinstance(value := line[at], str))
        return next((at for at, text in texts if fits(text, sought.lower())), None)
    if match in (0, 2):
        return next((at for at in filled if _is_certainly_equal(line[at], sought)), None)
    for at in filled:
        order = _order(line[at], sought)
        if not order:
            return at
        if order == match and (nearest is None or _order(line[nearest], line[at]) == match):
            nearest = at
    return nearest


def _is_certainly_equal(value: Scalar, sought: Scalar) -> bool:
    """Whether two values are equal; letters beyond ASCII may be equal to others, as ß is to ss.

    Raises:
        UnsureError: they differ, and contain such letters.
    """
    if _is_equal(value, sought):
        return True
    if isinstance(value, str) and isinstance(sought, str) and not (value + sought).isascii():
        raise UnsureError
    return False


def _halved_of_all(
    sought: Scalar, line: Sequence[Scalar], match: int, *, descending: bool
) -> int | None:
    """Position, from 0, at which a binary search over values of all kinds ends."""
    low, high = -1, len(line)
    while high - low >= 2:
        middle = low + (high - low) // 2
        order = _order(line[middle], sought)
        if not order:
            equal = itertools.takewhile(
                lambda at: not _order(line[at], sought), range(middle, high)
            )
            return max(equal)
        if (order < 0) != descending:
            low = middle
        else:
            high = middle
    at = low if (match < 0) != descending else high
    return at if match and 0 <= at < len(line) else None


def _xlookup(evaluation: Evaluation, arguments: Sequence[Node]) -> Cells:
    """XLOOKUP: a value for each value that is looked up; for one, a whole row or column."""
    if not 3 <= len(arguments) <= 6:
        raise UnsureError
    sought = array_of(evaluation, arguments[0])
    if sought.size == 1:
        cells = _looked_up(evaluation, sought.first, arguments)
        if cells.size > 1 and not evaluation.spreads:
            raise UnsureError
        return cells
    evaluation.converted = True

    def result(values: Sequence[Scalar]) -> Scalar:
        return _given(one_of(_looked_up(evaluation, values[0], arguments)))

    return each_of(evaluation, [sought], Applied(result))


def _looked_up(evaluation: Evaluation, sought: Scalar, arguments: Sequence[Node]) -> Cells:
    """What XLOOKUP finds for one value; blank cells stay blank in a row or column."""
    if isinstance(sought, ErrorValue):
        return single(evaluation.refused(sought))
    at = _match_index(evaluation, arguments, sought, 4)
    if isinstance(at, ErrorValue):
        return single(at)
    searched, results = (_cells(evaluation, argument) for argument in arguments[1:3])
    if searched.size > 1 and not _fits(searched, results):
        return single(evaluation.refused(VALUE))
    if at is None:
        is_given = len(arguments) > 3 and not isinstance(arguments[3], Missing)
        return single(evaluation.scalar(arguments[3]) if is_given else NA)
    if searched.size == 1 and results.size > 1:
        raise UnsureError
    indices = (at + 1, 0) if searched.columns == 1 else (0, at + 1)
    line = _at(results, indices)
    return single(chosen(evaluation, line.first)) if line.size == 1 else line


def _fits(searched: Cells, results: Cells) -> bool:
    """Whether the results of a look-up have as many rows, or columns, as the values searched."""
    return (searched.columns == 1 and results.rows == searched.rows) or (
        searched.rows == 1 and results.columns == searched.columns
    )


def _xmatch(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    if not 2 <= len(arguments) <= 4:
        raise UnsureError
    sought = evaluation.scalar(arguments[0])
    if isinstance(sought, ErrorValue):
        return evaluation.refused(sought)
    at = _match_index(evaluation, arguments, sought, 2)
    if isinstance(at, ErrorValue):
        return at
    return NA if at is None else at + 1


_PLAIN_SHEET = re.compile(r"(?:[^\W\d][\w.]*)?")
_LIKE_CELL = re.compile(r"[A-Z]{1,3}\d+|R\d*C?\d*|C\d*", re.IGNORECASE)


def _address(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """ADDRESS: LibreOffice writes a point after the sheet if arguments before it are left out."""
    if not 2 <= len(arguments) <= 5:
        raise UnsureError
    numbers = [0, 0, 1, 1]
    for at, node in enumerate(arguments[:4]):
        number = evaluation.number(evaluation.scalar(node))
        if isinstance(number, ErrorValue):
            return number
        numbers[at] = numbers[at] if isinstance(node, Missing) else math.trunc(number)
    row, column, kind, is_a1 = numbers
    if not (1 <= row <= MAX_ROW and 1 <= column <= MAX_COLUMN and 1 <= kind <= 4):
        return evaluation.refused(VALUE)
    fixed_row, fixed_column = kind in (1, 2), kind in (1, 3)
    if is_a1:
        text = f"{'$' * fixed_column}{column_letters(column)}{'$' * fixed_row}{row}"
    else:
        text = f"R{row}" if fixed_row else f"R[{row}]"
        text += f"C{column}" if fixed_column else f"C[{column}]"
    if len(arguments) < 5:
        return text
    name = evaluation.scalar(arguments[4])
    if isinstance(name, ErrorValue):
        return name
    evaluation.converted = True
    name = evaluation.text(name)
    if "'" in name or "[" in name or _LIKE_CELL.fullmatch(name):
        raise UnsureError
    return f"{name}!{text}" if _PLAIN_SHEET.fullmatch(name) else f"'{name}'!{text}"


LOOKUP_FUNCTIONS: dict[str, Function] = {
    "MATCH": _match,
    "LOOKUP": _lookup,
    "INDEX": ArrayResult(_index),
    "VLOOKUP": _in_table(by_rows=True),
    "HLOOKUP": _in_table(by_rows=False),
    "_XLFN.XLOOKUP": ArrayResult(_xlookup),
    "_XLFN.XMATCH": _xmatch,
    "ADDRESS": _address,
}
