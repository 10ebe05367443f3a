"""Computes formulas of single values: operators, logic, numbers. Pure.

An evaluation records whether the value depends on a conversion (between numbers and text, of a
date) or on a criterion. Only then does the value replace an engine's, since engines differ from
Excel in conversions and criteria but agree with it otherwise. A formula that is not understood
raises :class:`UnsureError`, and is left to the engines.
"""

from __future__ import annotations

import contextlib
import math
import operator as operators
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeVar, cast

from judge.formulas.functions import PREFIX
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
)
from judge.recalc.functions.conversions import (
    DIV0,
    NA,
    NUM,
    VALUE,
    UnsureError,
    number_text,
    round_half_up,
    text_number,
    text_order,
)
from judge.recalc.functions.criteria import (
    NUMBER_TYPES,
    Cells,
    Scalar,
    Values,
    is_number,
)
from judge.recalc.functions.refusals import OF_TEXT, REFUSALS, REFUSING_ERRORS
from judge.workbook.cell import ErrorValue

_Result = TypeVar("_Result")

MAX_TEXT_CHARS = 32_767


COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "=": operators.eq, "<>": operators.ne, "<": operators.lt, ">": operators.gt,
    "<=": operators.le, ">=": operators.ge,
}  # fmt: skip


class Evaluation:
    """The evaluation of one formula.

    Args:
        values: provides the values of cells.
        functions: name as in files, with its prefix -> function.
        of_arrays: whether the formula is entered as an array formula.
        position: the row and column of the formula's cell, if it may ask for them.

    Attributes:
        converted: whether the value depends on a conversion that engines do differently.
        spreads: whether operators and functions of single values are applied to each value of a
            range.
    """

    def __init__(
        self,
        values: Values,
        functions: Mapping[str, Function],
        *,
        of_arrays: bool = False,
        position: tuple[int, int] | None = None,
    ) -> None:
        self.values = values
        self.position = position
        self.converted = False
        self.functions = functions
        self.of_arrays = of_arrays
        self.spreads = of_arrays
        self._names: Mapping[str, Cells] = {}

    def named(self, name: str) -> Cells:
        """The value of a name from LET or LAMBDA; raises UnsureError if it is not defined here."""
        if name not in self._names:
            raise UnsureError
        return self._names[name]

    def shared(self, node: Node, compute: Callable[[], Cells]) -> Cells:
        """An array that other formulas of the sheet may contain as well, so it is kept for them.

        Args:
            node: the array's node.
            compute: computes the array.
        """
        if self._names:
            return compute()  # it may depend on a name
        cells, converted = self.values.kept_array(self._key(node), lambda: self._tracked(compute))
        self.converted = self.converted or converted
        return cells

    def repeated(self, nodes: tuple[Node, ...], compute: Callable[[], _Result]) -> _Result:
        """The result for some arguments, which the next formula may have as well."""
        if self._names:
            return compute()
        result, converted = self.values.repeated(self._key(nodes), lambda: self._tracked(compute))
        self.converted = self.converted or converted
        return result

    def _key(self, part: Hashable) -> Hashable:
        """Everything that the value of a part of a formula depends on, except for cells."""
        return part, self.spreads, self.of_arrays, self.position

    def _tracked(self, compute: Callable[[], _Result]) -> tuple[_Result, bool]:
        """A result, and whether it depends on a conversion."""
        before, self.converted = self.converted, False
        try:
            return compute(), self.converted
        finally:
            self.converted = self.converted or before

    @contextlib.contextmanager
    def naming(self, names: Mapping[str, Cells]) -> Iterator[None]:
        """Defines names within a block."""
        before = self._names
        self._names = {**before, **names}
        try:
            yield
        finally:
            self._names = before

    @contextlib.contextmanager
    def spreading(self) -> Iterator[None]:
        """Inside a ``with`` block, operators and functions are applied to each value of a range."""
        before, self.spreads = self.spreads, True
        try:
            yield
        finally:
            self.spreads = before

    def scalar(self, node: Node) -> Scalar:
        """The value of a node.

        Raises:
            UnsureError: the node is not understood, or has more than one value.
        """
        if isinstance(node, Constant):
            return node.value
        if isinstance(node, Call):
            function = self.functions.get(node.name)
            return function(self, node.arguments) if function else self._left_to_engines(node)
        if isinstance(node, Reference):
            return self.values.value(node)
        if isinstance(node, Operation):
            operands = [self.scalar(operand) for operand in node.operands]
            return self.operation(node.operator, operands)
        if isinstance(node, ErrorConstant):
            return ErrorValue(node.code)
        if isinstance(node, Missing):
            return None
        if not isinstance(node, Parameter):
            raise UnsureError
        cells = self.named(node.name)
        if cells.size != 1:
            raise UnsureError
        return cells.values.get((0, 0))

    def refused(self, error: ErrorValue) -> ErrorValue:
        """Returns the error for an argument that Excel refuses; engines may accept it."""
        self.converted = True
        return error

    def _left_to_engines(self, node: Call) -> Scalar:
        """The error of a function that is left to engines, if Excel refuses its arguments.

        It is the first error among the arguments (LibreOffice returns the last one); text that is
        not a number counts as an error.

        Raises:
            UnsureError: Excel may accept the arguments.
        """
        name = PREFIX.sub("", node.name).upper()
        if name not in REFUSING_ERRORS and name not in OF_TEXT:
            raise UnsureError
        refused: ErrorValue | None = None
        values = [self.scalar(argument) for argument in node.arguments]
        for value in values:
            if isinstance(value, ErrorValue):
                refused = refused or value
            elif isinstance(value, str) and name not in OF_TEXT and not self._accepts(value):
                refused = refused or VALUE
        refused = refused or self.refusal(name, values)
        if refused is None:
            raise UnsureError
        return self.refused(refused)

    def refusal(self, name: str, values: Sequence[Scalar]) -> ErrorValue | None:
        """The error that a function gives for its arguments; None if none is known.

        Args:
            name: the function, without a prefix.
            values: its arguments, none of which is an error.
        """
        rule = REFUSALS.get(name)
        if rule is None:
            return None
        numbers = [self.number(value) for value in values]
        plain = [number for number in numbers if not isinstance(number, ErrorValue)]
        return rule(plain) if len(plain) == len(numbers) else None

    def operation(self, operator: str, operands: Sequence[Scalar]) -> Scalar:
        """Applies an operator to its operands."""
        if len(operands) == 1 and operator == "+":
            return operands[0]
        if ErrorValue in map(type, operands):
            errors = [operand for operand in operands if isinstance(operand, ErrorValue)]
            self.converted = self.converted or len(errors) > 1  # LibreOffice returns the last one
            return errors[0]
        if operator == "&":
            return joined(self, map(self.text, operands))
        if operator in COMPARISONS:
            return compared(operands[0], operands[1], operator)
        numbers: list[float] = []
        for operand in operands:
            number = operand if type(operand) is float else self.number(operand)
            if isinstance(number, ErrorValue):
                return number
            numbers.append(number)
        # Some engines compute 0^0, or keep the sign of -0.
        of_zero = numbers[0] == 0 and (len(numbers) == 1 or (operator == "^" and numbers[1] <= 0))
        self.converted = self.converted or of_zero
        return _arithmetic(operator, numbers)

    def text(self, value: Scalar) -> str:
        """Converts a value to text; an error cannot be converted."""
        if isinstance(value, str):
            return value
        if value is None:
            return ""
        if isinstance(value, bool):
            self.converted = True  # LibreOffice may join them as 1 and 0
            return "TRUE" if value else "FALSE"
        if isinstance(value, ErrorValue):
            raise UnsureError
        self.converted = self.converted or not float(value).is_integer() or abs(value) >= 1e15
        return number_text(float(value))

    def number(self, value: Scalar) -> float | ErrorValue:
        """Converts a value to a number, as operators and functions do; an error stays an error."""
        if isinstance(value, (ErrorValue, float)):
            return value
        if value is None or isinstance(value, (bool, int)):
            return float(value or 0)
        self.converted = True
        number = text_number(value, self.values.region)
        return VALUE if number is None else number

    def _accepts(self, text: str) -> bool:
        """Whether a function of numbers and logical values accepts a string."""
        number = text_number(text, self.values.region)
        return number is not None or text.upper() in ("TRUE", "FALSE")


def joined(evaluation: Evaluation, pieces: Iterable[str]) -> Scalar:
    """The pieces as one text; #VALUE! if a cell cannot hold it, before all pieces are made."""
    kept: list[str] = []
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > MAX_TEXT_CHARS:
            return evaluation.refused(VALUE)
        kept.append(piece)
    return "".join(kept)


PLAIN_ARITHMETIC = frozenset("+-*/")
"""Operators whose result for two numbers depends on no conversion."""

NUMERIC_TYPES: AbstractSet[type] = frozenset((float, int, bool, type(None)))
"""Types of values that operators read as a number."""


def calculated(first: Scalar, second: Scalar, operator: str) -> Scalar:
    """Applies one of :data:`PLAIN_ARITHMETIC` to values of :data:`NUMERIC_TYPES`."""
    numbers = [
        value if type(value) is float else float(cast("int | None", value) or 0)
        for value in (first, second)
    ]
    return _arithmetic(operator, numbers)


def _arithmetic(operator: str, numbers: list[float]) -> Scalar:
    if len(numbers) == 1:
        return 0.0 - numbers[0] if operator == "-" else numbers[0] / 100
    first, second = numbers
    if operator in ("+", "-"):
        result = first + second if operator == "+" else first - second
        # Excel treats differences that are only rounding errors as 0, by undocumented rules.
        if result and abs(result) < 1e-13 * max(abs(first), abs(second)):
            raise UnsureError
    elif operator == "*":
        result = first * second
    elif operator == "/":
        if second == 0:
            return DIV0
        result = first / second
    else:
        power = _power(first, second)
        if isinstance(power, ErrorValue):
            return power
        result = power
    if not math.isfinite(result):
        return NUM
    if result and abs(result) < 1e-300:
        raise UnsureError
    return result


def _power(base: float, exponent: float) -> float | ErrorValue:
    if base == 0 and exponent <= 0:
        return NUM if exponent == 0 else DIV0
    if base < 0 and not exponent.is_integer():
        raise UnsureError
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf


def compared(first: Scalar, second: Scalar, operator: str) -> bool:
    """Whether a comparison of two values holds; neither is an error.

    Raises:
        UnsureError: numbers are too close to each other, or the order depends on the region.
    """
    one, two = first, second
    if type(one) in NUMBER_TYPES and type(two) in NUMBER_TYPES:
        return _numbers_compared(cast("float", one), cast("float", two), operator)
    if one is None or two is None:
        one, two = _beside(first, second), _beside(second, first)
    order = 0 if type(one) is type(two) else rank(one) - rank(two)
    if order:
        pass  # values of different kinds
    elif isinstance(one, str) and isinstance(two, str):
        if one.lower() == two.lower():
            order = 0
        elif operator in ("=", "<>"):
            order = 1
        else:
            order = -1 if text_order(one, two, "<") else 1
    elif isinstance(one, (int, float)) and isinstance(two, (int, float)):
        return _numbers_compared(one, two, operator)
    else:
        raise UnsureError
    return COMPARISONS[operator](order, 0)


def _numbers_compared(one: float, two: float, operator: str) -> bool:
    if one != two and abs(one - two) <= 1e-14 * max(abs(one), abs(two)):
        raise UnsureError
    return COMPARISONS[operator](one, two)


def _beside(value: Scalar, other: Scalar) -> Scalar:
    """Returns a value; a blank becomes the empty value of the other operand's type."""
    if value is not None:
        return value
    return "" if isinstance(other, str) else False if isinstance(other, bool) else 0


def rank(value: Scalar) -> int:
    """Rank of a value's type in Excel's order: numbers, then text, then logical values."""
    return 2 if isinstance(value, bool) else 1 if isinstance(value, str) else 0


Function = Callable[[Evaluation, Sequence[Node]], Scalar]
_Plain = Callable[..., Scalar]


@dataclass(frozen=True, slots=True)
class OfValues:
    """A function of single values; its result is the first error among them, if any.

    Attributes:
        least, most: how many arguments it takes.
        plain: computes it from values of which none is an error.
    """

    least: int
    most: int
    plain: _Plain

    def __call__(self, evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        """Computes the function from its arguments."""
        return self.of(evaluation, [evaluation.scalar(argument) for argument in arguments])

    def takes(self, arguments: Sized) -> bool:
        """Whether it takes that many arguments."""
        return self.least <= len(arguments) <= self.most

    def of(self, evaluation: Evaluation, values: Sequence[Scalar]) -> Scalar:
        """Computes the function from the values of its arguments."""
        if not self.takes(values):
            raise UnsureError
        if ErrorValue in map(type, values):
            evaluation.converted = evaluation.converted or len(values) > 1
            return next(value for value in values if isinstance(value, ErrorValue))
        return self.plain(evaluation, *values)


def _of_numbers(least: int, most: int, plain: Callable[..., Scalar]) -> Function:
    """Makes a function whose arguments are all converted to numbers."""

    def call(evaluation: Evaluation, *values: Scalar) -> Scalar:
        numbers: list[float] = []
        for value in values:
            number = evaluation.number(value)
            if isinstance(number, ErrorValue):
                return number
            numbers.append(number)
        return plain(*numbers)

    return OfValues(least, most, call)


def _n(evaluation: Evaluation, value: Scalar) -> Scalar:
    del evaluation
    return float(value) if isinstance(value, (int, float)) else 0


# -- logic and numbers -----------------------------------------------------------------------------


def _if(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    if not 2 <= len(arguments) <= 3:
        raise UnsureError
    test = evaluation.scalar(arguments[0])
    if isinstance(test, ErrorValue):
        return test
    if isinstance(test, str):
        raise UnsureError
    if test:
        return chosen(evaluation, evaluation.scalar(arguments[1]))
    return chosen(evaluation, evaluation.scalar(arguments[2])) if len(arguments) == 3 else False


def chosen(evaluation: Evaluation, value: Scalar) -> Scalar:
    """The value that a function chooses among its arguments, or finds.

    If that is a blank cell, or an argument that is left out, the result is blank to the function or
    operator that reads it (``IF(A1,"not ",)&"ok"``, ``VLOOKUP(A1,B:C,2)=""``), except in arrays.
    """
    return 0 if value is None and evaluation.spreads else value


def _iferror(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    if len(arguments) != 2:
        raise UnsureError
    value = evaluation.scalar(arguments[0])
    is_error = isinstance(value, ErrorValue)
    return chosen(evaluation, evaluation.scalar(arguments[1]) if is_error else value)


def _ifna(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    if len(arguments) != 2:
        raise UnsureError
    value = evaluation.scalar(arguments[0])
    return chosen(evaluation, evaluation.scalar(arguments[1]) if value == NA else value)


def _ifs(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """IFS: the value after the first test that holds."""
    if len(arguments) % 2:
        raise UnsureError
    for test, value in zip(arguments[::2], arguments[1::2], strict=True):
        holds = evaluation.scalar(test)
        if isinstance(holds, ErrorValue):
            return holds
        if isinstance(holds, str):
            raise UnsureError
        if holds:
            return chosen(evaluation, evaluation.scalar(value))
    return NA


def _switch(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """SWITCH: the value after the first equal one, or the last argument."""
    if len(arguments) < 3:
        raise UnsureError
    sought = evaluation.scalar(arguments[0])
    if isinstance(sought, ErrorValue) or sought is None:
        raise UnsureError
    pairs = arguments[1:]
    for case, value in zip(pairs[::2], pairs[1::2], strict=False):
        other = evaluation.scalar(case)
        if isinstance(other, ErrorValue) or other is None:
            raise UnsureError
        if rank(other) == rank(sought) and compared(sought, other, "="):
            return chosen(evaluation, evaluation.scalar(value))
    return chosen(evaluation, evaluation.scalar(pairs[-1])) if len(pairs) % 2 else NA


def _choose(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """CHOOSE: the argument with a number."""
    value = evaluation.scalar(arguments[0]) if len(arguments) > 1 else NA
    number = evaluation.number(value)
    if isinstance(number, ErrorValue):
        return number
    if not 1 <= number < len(arguments):
        return VALUE
    return chosen(evaluation, evaluation.scalar(arguments[int(number)]))


def _rounded(number: float, places: float) -> Scalar:
    if abs(places) > 20 or abs(number) >= 1e15:
        raise UnsureError
    if abs(number) < 1e-15:
        return 0.0 if places < 15 else number
    return float(round_half_up(number, math.trunc(places)))


def _logarithm(number: float, base: float = 10) -> Scalar:
    if number <= 0 or base <= 0:
        return NUM
    return DIV0 if base == 1 else math.log10(number) / math.log10(base)


def _modulo(number: float, divisor: float) -> Scalar:
    if divisor == 0:
        return DIV0
    if not (number.is_integer() and divisor.is_integer()) or abs(number) >= 2**53:
        raise UnsureError
    return number - divisor * math.floor(number / divisor)


def _raised(evaluation: Evaluation, base: Scalar, exponent: Scalar) -> Scalar:
    return evaluation.operation("^", (base, exponent))


def _logarithm_of(evaluation: Evaluation, *values: Scalar) -> Scalar:
    numbers = [evaluation.number(value) for value in values]
    evaluation.converted = evaluation.converted or numbers[1:] == [1.0]
    for number in numbers:
        if isinstance(number, ErrorValue):
            return number
    return _logarithm(*(number for number in numbers if not isinstance(number, ErrorValue)))


def _root(number: float) -> Scalar:
    return NUM if number < 0 else math.sqrt(number)


def _negated(evaluation: Evaluation, value: Scalar) -> Scalar:
    del evaluation
    if isinstance(value, str):
        raise UnsureError
    return not value


_ERROR_NUMBERS = {
    "#NULL!": 1, "#DIV/0!": 2, "#VALUE!": 3, "#REF!": 4, "#NAME?": 5, "#NUM!": 6, "#N/A": 7,
    "#GETTING_DATA": 8, "#SPILL!": 9, "#CALC!": 14,
}  # fmt: skip


def _error_type(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    if len(arguments) != 1:
        raise UnsureError
    value = evaluation.scalar(arguments[0])
    if not isinstance(value, ErrorValue):
        return NA
    if value.code not in _ERROR_NUMBERS:
        raise UnsureError
    if value == VALUE and isinstance(arguments[0], Reference):
        raise UnsureError  # files have #VALUE! for some newer errors as well
    evaluation.converted = True  # engines fail for ranges of one cell, and for #CALC!
    return _ERROR_NUMBERS[value.code]


def type_of(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """TYPE: a number for the kind of a value; engines differ on the kinds of values in cells."""
    if len(arguments) != 1:
        raise UnsureError
    evaluation.converted = True
    node = arguments[0]
    if isinstance(node, ArrayConstant) or (isinstance(node, Reference) and node.size > 1):
        return 64
    value = evaluation.scalar(node)
    if isinstance(value, ErrorValue):
        return 16
    return 4 if isinstance(value, bool) else 2 if isinstance(value, str) else 1


def _is(test: Callable[[Scalar], bool], *, of_calls: bool = True) -> Function:
    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        if len(arguments) != 1 or (isinstance(arguments[0], Call) and not of_calls):
            raise UnsureError
        return test(evaluation.scalar(arguments[0]))

    return call


SCALAR_FUNCTIONS: dict[str, Function] = {
    "N": OfValues(1, 1, _n),
    "IF": _if,
    "IFERROR": _iferror,
    "_XLFN.IFS": _ifs,
    "_XLFN.SWITCH": _switch,
    "CHOOSE": _choose,
    "ISBLANK": _is(lambda value: value is None, of_calls=False),
    "ROUND": _of_numbers(2, 2, _rounded),
    "ABS": _of_numbers(1, 1, abs),
    "SQRT": _of_numbers(1, 1, _root),
    "INT": _of_numbers(1, 1, lambda number: float(math.floor(number))),
    "MOD": _of_numbers(2, 2, _modulo),
    "POWER": OfValues(2, 2, _raised),
    "LOG": OfValues(1, 2, _logarithm_of),
    "ERROR.TYPE": _error_type,
    "NOT": OfValues(1, 1, _negated),
    "ISNA": _is(lambda value: value == NA),
    "ISERR": _is(lambda value: isinstance(value, ErrorValue) and value != NA),
    "ISLOGICAL": _is(lambda value: isinstance(value, bool)),
    "ISNONTEXT": _is(lambda value: not isinstance(value, str)),
    "_XLFN.IFNA": _ifna,
    "ISNUMBER": _is(is_number),
    "ISTEXT": _is(lambda value: isinstance(value, str)),
    "ISERROR": _is(lambda value: isinstance(value, ErrorValue)),
}
