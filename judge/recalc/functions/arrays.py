"""Computes formulas over several values: operators and functions are applied to each value. Pure.

Microsoft documents what each function that takes arrays does with them. A function of single values
is applied to each value of an array. If arrays have different shapes, all are widened to the
largest, with ``#N/A`` where they have no value.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Container, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

from judge.formulas.functions import PREFIX, SINGLE_VALUES, TAKES_RANGES
from judge.formulas.references import Reference
from judge.formulas.tree import (
    ArrayConstant,
    Call,
    Constant,
    ErrorConstant,
    Missing,
    Node,
    Operation,
    Parameter,
    tree,
)
from judge.recalc.functions.conversions import NA, VALUE, UnsureError
from judge.recalc.functions.criteria import (
    EQUAL_TYPES,
    NUMBER_TYPES,
    Cells,
    Scalar,
    SparseCells,
    has_logical,
)
from judge.recalc.functions.dates_and_units import ADD_IN
from judge.recalc.functions.scalars import (
    COMPARISONS,
    NUMERIC_TYPES,
    PLAIN_ARITHMETIC,
    Evaluation,
    Function,
    OfValues,
    calculated,
    compared,
    joined,
    type_of,
)
from judge.workbook.address import MAX_COLUMN, MAX_ROW
from judge.workbook.cell import ErrorValue

MAX_VALUES = 200_000
"""The largest number of values in an array that is computed here."""

COST = 20
"""Each value of a computed array counts as this many cells towards the limit on compared cells."""

FEW = 4
"""An array is sparse while at most one value out of this many is not the usual one."""

CHOOSING = frozenset(("IF", "IFERROR", "CHOOSE"))
"""Functions that compute an array only in an array formula. In a plain formula, they take one value
of a range, even as an argument of a function of arrays such as SUMPRODUCT."""

RETURNING_CELLS = CHOOSING.union(
    ("IFS", "SWITCH", "IFNA", "INDEX", "LOOKUP", "VLOOKUP", "HLOOKUP", "XLOOKUP")
)
"""Functions that may return a cell: one of their arguments, or one that they find."""


def array_of(evaluation: Evaluation, node: Node) -> Cells:
    """All values of a node.

    Raises:
        UnsureError: the node is not understood, or has too many values.
    """
    if isinstance(node, Reference):
        if node.size > 1 and not evaluation.spreads:
            raise UnsureError  # Excel takes one of its cells
        return evaluation.values.searched(node)
    if isinstance(node, ArrayConstant):
        return of_rows([[_plain(value) for value in row] for row in node.rows])
    if isinstance(node, Parameter):
        return evaluation.named(node.name)
    if isinstance(node, (Operation, Call)):
        if _reads_range(node):
            return evaluation.shared(node, lambda: _array_of(evaluation, node))
        if not _is_of_single_values(evaluation, node):
            return _array_of(evaluation, node)
    return single(evaluation.scalar(node))


def check_no_cell(node: Node, value: Scalar) -> None:
    """Refuses a blank or logical value of a cell, which functions of ranges ignore.

    Raises:
        UnsureError: a blank or a logical value, returned by a function that may return a reference.
    """
    name = PREFIX.sub("", node.name).upper() if isinstance(node, Call) else ""
    if name in RETURNING_CELLS and (value is None or isinstance(value, bool)):
        raise UnsureError


def _array_of(evaluation: Evaluation, node: Operation | Call) -> Cells:
    if isinstance(node, Operation):
        return _of_operation(evaluation, node)
    return _called(evaluation, node)


def _of_operation(evaluation: Evaluation, node: Operation) -> Cells:
    parts = [array_of(evaluation, operand) for operand in node.operands]
    operator = node.operator
    apply = functools.partial(evaluation.operation, operator)
    equal = _found_equal(*parts) if operator == "=" else None
    if equal is not None:
        return equal
    if operator in COMPARISONS:
        of_values = functools.partial(compared, operator=operator)
        return each_of(evaluation, parts, Applied(apply, of_values))
    if operator in PLAIN_ARITHMETIC and len(parts) == 2:
        of_numbers = functools.partial(calculated, operator=operator)
        idle = _factors_of_zero if operator == "*" else _none
        return each_of(evaluation, parts, Applied(apply, of_numbers, NUMERIC_TYPES, idle))
    return each_of(evaluation, parts, Applied(apply))


def _found_equal(one: Cells, other: Cells) -> Cells | None:
    """Which values of one array are equal to a single value; None if this needs comparisons."""
    if one.size == 1:
        one, other = other, one
    if one.size == 1 or other.size != 1 or isinstance(one, SparseCells):
        return None
    return one.as_equal(other.first)


def _reads_range(node: Node) -> bool:
    """Whether any operand of an operation, or argument of a call, at any depth, is a range."""
    if isinstance(node, Operation):
        return any(map(_reads_range, node.operands))
    if isinstance(node, Call):
        return any(map(_reads_range, node.arguments))
    return _is_range(node)


def _is_of_single_values(evaluation: Evaluation, node: Node) -> bool:
    """Whether a node without ranges has a single value, computed from single values alone."""
    if isinstance(node, Operation):
        return all(_is_of_single_values(evaluation, operand) for operand in node.operands)
    if isinstance(node, Call):
        is_array = isinstance(evaluation.functions.get(node.name), ArrayResult)
        return not is_array and all(
            _is_of_single_values(evaluation, argument) for argument in node.arguments
        )
    return not isinstance(node, (ArrayConstant, Parameter))


def reference_of(evaluation: Evaluation, node: Node) -> Reference:
    """The rectangle that a node refers to, as a written reference or through OFFSET or INDIRECT.

    Raises:
        UnsureError: the node is neither.
    """
    if isinstance(node, Reference):
        return node
    if isinstance(node, Call) and node.name == "INDIRECT":
        return _written_reference(evaluation, node.arguments)
    if not isinstance(node, Call) or node.name != "OFFSET" or not 3 <= len(node.arguments) <= 5:
        raise UnsureError
    sheet, top, left, bottom, right = reference_of(evaluation, node.arguments[0])
    height, width = bottom - top + 1, right - left + 1
    down, across, high, wide = (
        default if at >= len(node.arguments) or isinstance(node.arguments[at], Missing)
        else whole_number_of(evaluation, node.arguments[at])
        for at, default in ((1, 0), (2, 0), (3, height), (4, width))
    )  # fmt: skip
    evaluation.converted = evaluation.converted or high < 0 or wide < 0
    top, bottom = _from_to(top + down, high)
    left, right = _from_to(left + across, wide)
    if top < 1 or left < 1 or bottom > MAX_ROW or right > MAX_COLUMN:
        raise UnsureError
    return Reference(sheet, top, left, bottom, right)


_NAMING = re.compile(r"['$\w].*[\w]\Z", re.DOTALL)
"""Text that begins and ends as a reference does, without brackets, blanks or an equals sign."""


def _written_reference(evaluation: Evaluation, arguments: Sequence[Node]) -> Reference:
    """The rectangle that INDIRECT finds in text such as ``Sheet2!A1:B5``."""
    text = evaluation.scalar(arguments[0]) if len(arguments) == 1 else None
    node = tree(text) if isinstance(text, str) and _NAMING.match(text) else None
    if not isinstance(node, Reference):
        raise UnsureError
    if node.min_row < 1 or node.max_row > MAX_ROW or node.max_column > MAX_COLUMN:
        raise UnsureError
    if node.sheet is not None:
        first = node._replace(max_row=node.min_row, max_column=node.min_column)
        evaluation.values.cells(first)  # raises UnsureError if there is no such sheet
    return node


def is_reference(node: Node) -> bool:
    """Whether a node may refer to a rectangle of cells."""
    return isinstance(node, (Reference, Parameter)) or (
        isinstance(node, Call) and node.name in _REFERRING
    )


def referenced_cells(evaluation: Evaluation, node: Node) -> Cells:
    """The cells of a reference (:func:`is_reference`), or the values of a LET or LAMBDA name."""
    if isinstance(node, Parameter):
        return evaluation.named(node.name)
    return evaluation.values.cells(reference_of(evaluation, node))


def whole_number_of(evaluation: Evaluation, node: Node) -> int:
    """The value of an argument as a whole number, rounded toward 0."""
    value = evaluation.scalar(node)
    number = VALUE if isinstance(value, (str, ErrorValue)) else evaluation.number(value)
    if isinstance(number, ErrorValue):
        raise UnsureError
    return math.trunc(number)


def _from_to(first: int, size: int) -> tuple[int, int]:
    """The first and the last of ``size`` cells; a negative size counts upwards or to the left."""
    if not size:
        raise UnsureError
    last = first + size - 1 if size > 0 else first + size + 1
    return min(first, last), max(first, last)


def _referring(name: str) -> ArrayFunction:
    """Computes OFFSET and INDIRECT: the values of the rectangle that they refer to."""

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Cells:
        reference = reference_of(evaluation, Call(name, tuple(arguments)))
        if reference.size > 1 and not evaluation.spreads:
            raise UnsureError
        return evaluation.values.cells(reference)

    return call


def all_of(evaluation: Evaluation, node: Node) -> Cells:
    """The values of an argument that is evaluated as an array even if the formula is not one."""
    with evaluation.spreading():
        return array_of(evaluation, node)


def single(value: Scalar) -> Cells:
    """One value as an array."""
    return Cells(1, 1, {} if value is None else {(0, 0): value})


def of_rows(rows: Sequence[Sequence[Scalar]]) -> Cells:
    """An array from its rows, which all have the same number of values."""
    every = [*itertools.chain.from_iterable(rows)]
    return Cells(len(rows), len(rows[0]) if rows else 0, every)


def _plain(node: Constant | ErrorConstant) -> Scalar:
    return ErrorValue(node.code) if isinstance(node, ErrorConstant) else node.value


def as_node(value: Scalar) -> Node:
    """Turns a value into a node, to pass it to a function as an argument."""
    return ErrorConstant(value.code) if isinstance(value, ErrorValue) else Constant(value)


def _none(parts: Sequence[Cells]) -> Container[int]:
    """No array is without effect."""
    del parts
    return ()


def _factors_of_zero(parts: Sequence[Cells]) -> Container[int]:
    """The factors that do not matter where another one is 0."""
    if all(part.types <= NUMERIC_TYPES for part in parts):
        for at, part in enumerate(parts):
            if isinstance(part, SparseCells) and not part.usual:
                return set(range(len(parts))) - {at}
    return ()


def _without_test(parts: Sequence[Cells]) -> Container[int]:
    """The argument of IF that does not matter where the test has its usual value."""
    test = parts[0]
    if not isinstance(test, SparseCells) or type(test.usual) not in NUMERIC_TYPES:
        return ()
    return (2,) if test.usual else (1,)


class Applied(NamedTuple):
    """What is applied to the values of several arrays.

    Attributes:
        result: computes the result from one value of each array.
        of_values: the same, with the values as separate arguments; None if there is no such
            function.
        takes: the types of values that this takes; None for all except errors.
        idle: returns which of the arrays do not matter where all others have their usual value.
    """

    result: Callable[[Sequence[Scalar]], Scalar]
    of_values: Callable[..., Scalar] | None = None
    takes: AbstractSet[type] | None = None
    idle: Callable[[Sequence[Cells]], Container[int]] = _none

    def to(self, types: AbstractSet[type]) -> Callable[..., Scalar]:
        """A function of separate arguments, for values of some types."""
        result, of_values, takes, _ = self
        fits = ErrorValue not in types if takes is None else takes >= types
        if of_values is not None and fits:
            return of_values
        return lambda *values: result(values)


def each_of(evaluation: Evaluation, parts: Sequence[Cells], applied: Applied) -> Cells:
    """The array of the results for the values at the same position of several arrays.

    The result depends on the values alone, so it is computed once for equal values.
    """
    rows, columns = max(part.rows for part in parts), max(part.columns for part in parts)
    if rows * columns > MAX_VALUES:
        raise UnsureError
    sparse = _of_sparse(evaluation, parts, (rows, columns), applied)
    if sparse is not None:
        return sparse
    evaluation.values.spend(rows * columns * COST)
    varying = [at for at, part in enumerate(parts) if part.size != 1]
    if len(varying) > 1 or (varying and not parts[varying[0]].size):
        return _each_of_several(evaluation, parts, (rows, columns), applied)
    apply = applied.to(frozenset[type]().union(*(part.types for part in parts)))
    values = [part.first if part.size == 1 else None for part in parts]
    if not varying:
        return Cells(1, 1, [apply(*values)])
    (at,) = varying
    before, behind = values[:at], values[at + 1 :]
    return parts[at].mapped(lambda value: apply(*before, value, *behind))


def _of_sparse(
    evaluation: Evaluation, parts: Sequence[Cells], size: tuple[int, int], applied: Applied
) -> Cells | None:
    """The results if few places have other values than the usual one; None if that is not known."""
    idle = applied.idle(parts)
    mattering = [part for at, part in enumerate(parts) if part.size != 1 and at not in idle]
    sparse = [part for part in mattering if isinstance(part, SparseCells)]
    if not sparse or len(sparse) < len(mattering):
        return None
    if any(part.size != 1 and (part.rows, part.columns) != size for part in parts):
        return None
    positions = {position for part in sparse for position in part.others}
    if len(positions) * FEW > size[0] * size[1]:
        return None
    evaluation.values.spend((len(positions) + 1) * COST)
    usual = [
        part.usual if isinstance(part, SparseCells) else part.first if part.size == 1 else 0
        for part in parts
    ]
    others = {
        position: applied.result(
            [part.first if part.size == 1 else part.at(position) for part in parts]
        )
        for position in positions
    }
    return SparseCells(*size, applied.result(usual), others)


def _each_of_several(
    evaluation: Evaluation, parts: Sequence[Cells], size: tuple[int, int], applied: Applied
) -> Cells:
    """The results if several of the arrays have more than one value; all get the same size."""
    sizes = {(part.rows, part.columns) for part in parts if part.size > 1}
    # Places that only one of two arrays has are #N/A; LibreOffice leaves them out.
    evaluation.converted = evaluation.converted or any(
        len({size[side] for size in sizes} - {1}) > 1 for side in (0, 1)
    )
    operands = [_widened_values(part, *size) for part in parts]
    types_of = [{*map(type, values)} for values in operands]
    # TRUE and 1 are equal in Python, so the types are a part of the key if there are several.
    mixed = [at for at, types in enumerate(types_of) if len(EQUAL_TYPES & types) > 1]
    keys = list(zip(*operands, *(map(type, operands[at]) for at in mixed), strict=True))
    distinct = [*dict.fromkeys(keys)]
    given = [key[: len(parts)] for key in distinct] if mixed else distinct
    apply = applied.to(set[type]().union(*types_of))
    by_key = dict(zip(distinct, itertools.starmap(apply, given), strict=True))
    return Cells(*size, [*map(by_key.__getitem__, keys)])


def _widened_values(cells: Cells, rows: int, columns: int) -> Sequence[Scalar]:
    """The values of an array that is widened to a size, row by row."""
    if cells.size == 1:
        return [cells.values.get((0, 0))] * (rows * columns)
    if (cells.rows, cells.columns) == (rows, columns):
        return cells.every
    positions = itertools.product(range(rows), range(columns))
    return [widened(cells, row, column) for row, column in positions]


def widened(cells: Cells, row: int, column: int) -> Scalar:
    """The value at a position of an array whose only row, or only column, is repeated."""
    row, column = row if cells.rows > 1 else 0, column if cells.columns > 1 else 0
    return cells.values.get((row, column)) if row < cells.rows and column < cells.columns else NA


def _called(evaluation: Evaluation, node: Call) -> Cells:
    function = evaluation.functions.get(node.name)
    if isinstance(function, ArrayResult):
        return function.cells(evaluation, node.arguments)
    name = PREFIX.sub("", node.name).upper()
    if function is None or (name in CHOOSING and not evaluation.of_arrays):
        raise UnsureError
    several = _of_references(evaluation, function, node) if name in TAKES_RANGES else None
    if several is not None:
        return several
    lifted = [
        number
        for number, argument in enumerate(node.arguments)
        if not isinstance(argument, Missing) and takes_one(name, number)
    ]
    if not lifted:
        return single(function(evaluation, node.arguments))
    if name in ADD_IN and any(_is_range(node.arguments[number]) for number in lifted):
        if name in ("IMSUM", "IMPRODUCT"):  # they take ranges
            return single(function(evaluation, node.arguments))
        evaluation.converted = True
        return single(VALUE)
    parts = [array_of(evaluation, node.arguments[number]) for number in lifted]
    if all(part.size == 1 for part in parts) and name not in CHOOSING:
        return single(function(evaluation, node.arguments))
    # Given several values where a function expects one, engines use one of them, or fail.
    evaluation.converted = True
    if isinstance(function, OfValues) and len(lifted) == len(node.arguments):
        plain = functools.partial(function.plain, evaluation) if function.takes(parts) else None
        of = functools.partial(function.of, evaluation)
        return each_of(evaluation, parts, Applied(of, plain))

    def result(values: Sequence[Scalar]) -> Scalar:
        arguments = list(node.arguments)
        for number, value in zip(lifted, values, strict=True):
            arguments[number] = as_node(value)
        return function(evaluation, arguments)

    return each_of(
        evaluation, parts, Applied(result, idle=_without_test if name == "IF" else _none)
    )


_REFERRING = frozenset(("OFFSET", "INDIRECT"))
"""Functions that return a reference, or an array of references if one of their arguments is an
array."""


def _of_references(evaluation: Evaluation, function: Function, node: Call) -> Cells | None:
    """The results of a function for each reference of an array; None if there is no such array.

    An array of references comes from OFFSET or INDIRECT. SUMIF and SUBTOTAL, for example, are then
    called once for each of them.
    """
    arguments = node.arguments
    calls = [
        (at, argument)
        for at, argument in enumerate(arguments)
        if isinstance(argument, Call) and argument.name in _REFERRING
    ]
    if len(calls) != 1:
        return None
    at, referring = calls[0]
    first = 1 if referring.name == "OFFSET" else 0
    given = [
        (number, all_of(evaluation, argument))
        for number, argument in enumerate(referring.arguments)
        if number >= first and not isinstance(argument, Missing)
    ]
    if all(part.size == 1 for _, part in given):
        return None
    evaluation.converted = True

    def result(values: Sequence[Scalar]) -> Scalar:
        inner = list(referring.arguments)
        for (number, _), value in zip(given, values, strict=True):
            inner[number] = as_node(value)
        outer = list(arguments)
        outer[at] = Call(referring.name, tuple(inner))
        return function(evaluation, outer)

    return each_of(evaluation, [part for _, part in given], Applied(result))


def _is_range(node: Node) -> bool:
    return isinstance(node, Reference) and node.size > 1


def takes_one(name: str, argument: int) -> bool:
    """Whether a function expects a single value in one of its arguments."""
    if name in CHOOSING:
        return True
    return name not in TAKES_RANGES or argument in SINGLE_VALUES.get(name, ())


# -- functions of arrays ---------------------------------------------------------------------------


def gathered(evaluation: Evaluation, arguments: Sequence[Node]) -> list[Scalar]:
    """The values that functions such as SUM and MAX take from their arguments.

    Ranges and arrays contribute every value that is not blank. Single values contribute as
    numbers, even if they are text that is a number, or TRUE or FALSE.
    """
    values: list[Scalar] = []
    for argument in arguments:
        if is_reference(argument):
            cells = referenced_cells(evaluation, argument)
        else:
            cells = array_of(evaluation, argument)
            if cells.size == 1 and not isinstance(argument, ArrayConstant):
                # Some engines do not count TRUE and FALSE that are written in the formula.
                written = isinstance(argument, Constant) and isinstance(argument.value, bool)
                evaluation.converted = evaluation.converted or written
                values.append(typed_number(evaluation, argument, cells.values.get((0, 0))))
                continue
        if isinstance(cells, SparseCells) and type(cells.usual) not in NUMBER_TYPES:
            elements = cells.with_usual_once()
        else:
            elements = cells.filled()
        # A logical value is a number to LibreOffice.
        evaluation.converted = evaluation.converted or has_logical(elements)
        values += elements
    return values


def typed_number(evaluation: Evaluation, node: Node, value: Scalar) -> Scalar:
    """Converts a single value (not a reference) to a number; an error is returned unchanged.

    Raises:
        UnsureError: the value is computed text, which counts as a number only in some formulas.
    """
    check_no_cell(node, value)
    if isinstance(value, str) and not isinstance(node, Constant):
        raise UnsureError
    return evaluation.number(value)


def _textjoin(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """TEXTJOIN; if there are several separators, they are used in turn."""
    if len(arguments) < 3:
        raise UnsureError
    between, is_left_out = all_of(evaluation, arguments[0]), isinstance(arguments[1], Missing)
    skips = is_left_out or evaluation.scalar(arguments[1])
    if isinstance(skips, (str, ErrorValue)):
        raise UnsureError
    # To some engines, an argument that is left out is FALSE.
    evaluation.converted = evaluation.converted or between.size > 1 or is_left_out
    texts = _texts(evaluation, arguments[2:])
    if isinstance(texts, ErrorValue):
        return texts
    texts = [text for text in texts if text or not skips]
    separators = itertools.cycle([evaluation.text(value) for value in between.all_values()])
    pairs = zip(separators, texts[1:], strict=False)
    return joined(evaluation, itertools.chain(texts[:1], itertools.chain.from_iterable(pairs)))


def _concat(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    texts = _texts(evaluation, arguments)
    return texts if isinstance(texts, ErrorValue) else joined(evaluation, texts)


def _texts(evaluation: Evaluation, arguments: Sequence[Node]) -> list[str] | ErrorValue:
    """The values of all arguments as text, row by row, or the first error among them."""
    texts: list[str] = []
    for argument in arguments:
        cells = (
            evaluation.values.cells(argument)
            if isinstance(argument, Reference)
            else array_of(evaluation, argument)
        )
        if cells.size > MAX_VALUES:
            raise UnsureError
        for value in cells.all_values():
            if isinstance(value, ErrorValue):
                return value
            # A logical value of an array is a number to LibreOffice.
            evaluation.converted = evaluation.converted or isinstance(value, bool)
            texts.append(evaluation.text(value))
    return texts


def one_of(cells: Cells) -> Scalar:
    """The only value of an array; raises UnsureError if it has several."""
    if cells.size != 1:
        raise UnsureError  # an array within an array is #CALC!
    return cells.values.get((0, 0))


def of_values(rows: int, columns: int, values: Sequence[Scalar]) -> Cells:
    """An array of values that are given row by row; raises UnsureError if there are too many."""
    if rows * columns > MAX_VALUES:
        raise UnsureError
    return of_rows([values[row * columns : (row + 1) * columns] for row in range(rows)])


def _numbers_of_cells(*, rows: bool) -> ArrayFunction:
    """Computes ROW and COLUMN of a range."""

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Cells:
        if not arguments and evaluation.position:
            return single(evaluation.position[0 if rows else 1])
        if len(arguments) != 1:
            raise UnsureError
        if _is_if_of_array(evaluation, arguments[0]):
            return _without_places(evaluation, array_of(evaluation, arguments[0]))
        _, top, left, bottom, right = reference_of(evaluation, arguments[0])
        first, last = (top, bottom) if rows else (left, right)
        # Two engines give only the first number of a range that a function returns.
        evaluation.converted = evaluation.converted or isinstance(arguments[0], Call)
        if (last > first and not evaluation.spreads) or last - first > MAX_VALUES:
            raise UnsureError
        numbers = [*range(first, last + 1)]
        return of_values(len(numbers), 1, numbers) if rows else of_values(1, len(numbers), numbers)

    return call


def _is_if_of_array(evaluation: Evaluation, node: Node) -> bool:
    """Whether a node is an IF with several tests, which gives values instead of a reference."""
    if not isinstance(node, Call) or node.name != "IF" or not node.arguments:
        return False
    return evaluation.spreads and array_of(evaluation, node.arguments[0]).size > 1


def _without_places(evaluation: Evaluation, cells: Cells) -> Cells:
    """ROW or COLUMN of values: ``#VALUE!``, but errors stay (the golds of 42354 record it)."""
    evaluation.converted = True
    values = {
        (row, column): value if isinstance(value, ErrorValue) else VALUE
        for row in range(cells.rows)
        for column in range(cells.columns)
        for value in (cells.values.get((row, column)),)
    }
    return Cells(cells.rows, cells.columns, values)


def _size(*, rows: bool) -> Function:
    """Computes ROWS and COLUMNS."""

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        if len(arguments) != 1:
            raise UnsureError
        if isinstance(arguments[0], Reference):
            _, top, left, bottom, right = arguments[0]
            return bottom - top + 1 if rows else right - left + 1
        cells = all_of(evaluation, arguments[0])
        error = cells.values.get((0, 0)) if cells.size == 1 else None
        if isinstance(error, ErrorValue):
            return error
        return cells.rows if rows else cells.columns

    return call


ArrayFunction = Callable[[Evaluation, Sequence[Node]], Cells]


@dataclass(frozen=True, slots=True)
class ArrayResult:
    """A function that returns an array; where one value is expected, it must have just one.

    Attributes:
        cells: computes the array.
    """

    cells: ArrayFunction

    def __call__(self, evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        """Computes the only value of the array; raises UnsureError if there are several."""
        return one_of(self.cells(evaluation, arguments))


ARRAY_FUNCTIONS: dict[str, ArrayFunction] = {
    "ROW": _numbers_of_cells(rows=True),
    "COLUMN": _numbers_of_cells(rows=False),
    "TYPE": lambda evaluation, arguments: single(type_of(evaluation, arguments)),
    **{name: _referring(name) for name in _REFERRING},
}


FUNCTIONS_OF_ARRAYS: dict[str, Function] = {
    "_XLFN.TEXTJOIN": _textjoin,
    "_XLFN.CONCAT": _concat,
    "ROWS": _size(rows=True),
    "COLUMNS": _size(rows=False),
    **{name: ArrayResult(function) for name, function in ARRAY_FUNCTIONS.items()},
}
