"""Computes functions of whole numbers: bits, number systems, combinations, shares, rounding. Pure.

Sources: Microsoft's pages on these functions. Engines agree on the results, but not on which
arguments are refused, and with which error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from judge.formulas.references import Reference
from judge.formulas.tree import Constant, Missing, Node
from judge.recalc.functions.conversions import DIV0, NUM, VALUE, UnsureError, rounded_towards
from judge.recalc.functions.criteria import Scalar
from judge.recalc.functions.scalars import Evaluation, Function, OfValues
from judge.workbook.cell import ErrorValue

BITS = 2**48
"""Bit functions accept and return only numbers smaller than this."""

MAX_SHIFT = 53
EXACT = 2**53
"""Whole numbers from here on may not be exact."""

MAX_OBJECTS = 10_000
"""Choices are counted here from at most this many objects."""

MAX_PLACES = 10
"""Largest number of digits of a number that is written in another number system."""


def _number(evaluation: Evaluation, value: Scalar) -> float | ErrorValue:
    """A number; logical values are left to the engines."""
    if isinstance(value, bool):
        raise UnsureError
    return evaluation.number(value)


def strict_number(evaluation: Evaluation, value: Scalar) -> float | ErrorValue:
    """A number; logical values are refused."""
    return VALUE if isinstance(value, bool) else evaluation.number(value)


def _of_whole(least: int, most: int, plain: Callable[..., Scalar], *, exact: int = 0) -> Function:
    """Makes a function of whole numbers from ``plain``, which returns #NUM! for bad numbers.

    Args:
        least: the smallest number of arguments.
        most: the largest.
        plain: computes the result from numbers without their decimals.
        exact: how many of the first arguments may not have decimals.
    """

    def call(evaluation: Evaluation, *values: Scalar) -> Scalar:
        numbers: list[int] = []
        for at, value in enumerate(values):
            number = _number(evaluation, value)
            if isinstance(number, ErrorValue):
                return number
            if abs(number) >= EXACT or (at < exact and not number.is_integer()):
                return evaluation.refused(NUM)
            numbers.append(math.trunc(number))
        result = plain(*numbers)
        return evaluation.refused(result) if isinstance(result, ErrorValue) else result

    return OfValues(least, most, call)


# -- bits ------------------------------------------------------------------------------------------


def _of_bits(combined: Callable[[int, int], int]) -> Function:
    def plain(one: int, other: int) -> Scalar:
        if not (0 <= one < BITS and 0 <= other < BITS):
            return NUM
        return combined(one, other)

    return _of_whole(2, 2, plain, exact=2)


def _shifted(*, left: bool) -> Function:
    def plain(number: int, bits: int) -> Scalar:
        if not 0 <= number < BITS or abs(bits) > MAX_SHIFT:
            return NUM
        shift = bits if left else -bits
        result = number << shift if shift > 0 else number >> -shift
        return result if result < BITS else NUM

    return _of_whole(2, 2, plain, exact=1)


# -- number systems --------------------------------------------------------------------------------

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _in_base(number: int, base: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, base)
        digits = _DIGITS[digit] + digits
    return digits or "0"


def _half(base: int) -> int:
    """The first ten-digit number (of ten bits, for base 2) that represents a negative number."""
    return 2**9 if base == 2 else base**MAX_PLACES // 2


def _read(evaluation: Evaluation, value: Scalar, base: int) -> int | ErrorValue:
    """Reads a number of up to ten digits; the upper half of these numbers are negative."""
    if isinstance(value, bool):
        return VALUE
    text = evaluation.text(value)
    if len(text) > MAX_PLACES or not set(text.upper()) <= set(_DIGITS[:base]):
        return NUM
    number = int(text or "0", base)
    return number if number < _half(base) else number - 2 * _half(base)


def _converted(evaluation: Evaluation, value: Scalar, base: int) -> int | ErrorValue:
    if base != 10:
        return _read(evaluation, value, base)
    number = strict_number(evaluation, value)
    return number if isinstance(number, ErrorValue) else math.trunc(number)


def _to_system(source: int, target: int) -> Function:
    """BIN2HEX and its relatives, and DEC2BIN and its relatives: a number as text."""

    def call(evaluation: Evaluation, value: Scalar, *places: Scalar) -> Scalar:
        number = _converted(evaluation, value, source)
        if isinstance(number, ErrorValue):
            return evaluation.refused(number)
        if not -_half(target) <= number < _half(target):
            return evaluation.refused(NUM)
        if number < 0:
            return _in_base(number + 2 * _half(target), target)
        text = _in_base(number, target)
        if not places or places[0] is None:
            return text
        width = strict_number(evaluation, places[0])
        if isinstance(width, ErrorValue):
            return evaluation.refused(width)
        if not len(text) <= math.trunc(width) <= MAX_PLACES:
            return evaluation.refused(NUM)
        return text.zfill(math.trunc(width))

    return OfValues(1, 2, call)


def _to_decimal(source: int) -> Function:
    def call(evaluation: Evaluation, value: Scalar) -> Scalar:
        number = _read(evaluation, value, source)
        return evaluation.refused(number) if isinstance(number, ErrorValue) else number

    return OfValues(1, 1, call)


def _base(number: int, radix: int, places: int = 0) -> Scalar:
    if number < 0 or not 2 <= radix <= len(_DIGITS) or not 0 <= places <= 255:
        return NUM
    return _in_base(number, radix).zfill(places)


# -- combinations ----------------------------------------------------------------------------------


def _factorial(number: int) -> Scalar:
    return NUM if number < 0 or number > 170 else _whole(math.factorial(number))


def _double_factorial(evaluation: Evaluation, value: Scalar) -> Scalar:
    if isinstance(value, bool):
        return evaluation.refused(VALUE)
    number = evaluation.number(value)
    if isinstance(number, ErrorValue):
        return number
    if number < -1 or number > 300:
        return evaluation.refused(NUM)
    return _whole(math.prod(range(math.trunc(number), 0, -2)))


def _whole(number: int) -> float | ErrorValue:
    """A whole number as Excel keeps it; #NUM! if it is too large."""
    try:
        return number if number < EXACT else float(number)
    except OverflowError:
        return NUM


def _of_choice(count: Callable[[int, int], int]) -> Callable[[int, int], Scalar]:
    """Makes COMBIN and PERMUT from the function that counts."""

    def plain(number: int, chosen: int) -> Scalar:
        if number > MAX_OBJECTS:
            raise UnsureError
        return _whole(count(number, chosen)) if 0 <= chosen <= number else NUM

    return plain


def _repeated_combinations(number: int, chosen: int) -> Scalar:
    if number < 0 or chosen < 0:
        return NUM
    if number < chosen or number + chosen > MAX_OBJECTS:
        raise UnsureError
    return _whole(math.comb(max(number + chosen - 1, 0), chosen))


def _repeated_permutations(number: int, chosen: int) -> Scalar:
    if number < 0 or chosen < 0:
        return NUM
    if not number or chosen > 1000:
        raise UnsureError
    return _whole(number**chosen)


# -- divisors --------------------------------------------------------------------------------------


def _of_list(combined: Callable[[Sequence[int]], int]) -> Function:
    """GCD and LCM of numbers and ranges, without blank cells; text and logical values are refused.

    Raises:
        UnsureError: an argument is left out, or text is written in the formula.
    """

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        values: list[Scalar] = []
        for argument in arguments:
            if isinstance(argument, (Missing, Constant)):
                raise UnsureError
            if isinstance(argument, Reference) and argument.size > 1:
                values += evaluation.values.cells(argument).filled()
            else:
                values.append(evaluation.scalar(argument))
        filled = [value for value in values if value is not None]
        errors = [value for value in filled if isinstance(value, ErrorValue)]
        if errors:
            return evaluation.refused(errors[0])
        numbers: list[float] = []
        for value in filled:
            number = strict_number(evaluation, value)
            if isinstance(number, ErrorValue):
                return evaluation.refused(number)
            numbers.append(number)
        if not numbers:
            return evaluation.refused(VALUE)
        if not all(0 <= number < EXACT for number in numbers):
            return evaluation.refused(NUM)
        result = combined([*map(math.trunc, numbers)])
        return result if result < EXACT else evaluation.refused(NUM)

    return call


def _quotient(evaluation: Evaluation, *values: Scalar) -> Scalar:
    numbers: list[float] = []
    for value in values:
        number = strict_number(evaluation, value)
        if isinstance(number, ErrorValue):
            return evaluation.refused(number)
        numbers.append(number)
    if not numbers[1]:
        return evaluation.refused(DIV0)
    result = numbers[0] / numbers[1]
    if abs(result) >= EXACT or (not result.is_integer() and math.isclose(result, round(result))):
        raise UnsureError
    return math.trunc(result)


_SYSTEMS = {"BIN": 2, "OCT": 8, "HEX": 16}

# -- rounding --------------------------------------------------------------------------------------


def _cut(least: int, *, zero: bool) -> Function:
    """ROUNDDOWN and TRUNC, towards zero, and ROUNDUP, away from it."""

    def call(evaluation: Evaluation, value: Scalar, places: Scalar = 0) -> Scalar:
        number, digits = evaluation.number(value), evaluation.number(places)
        if isinstance(number, ErrorValue) or isinstance(digits, ErrorValue):
            return VALUE
        if abs(digits) > 20 or not (number == 0 or 1e-15 < abs(number) < 1e15):
            raise UnsureError
        return rounded_towards(number, math.trunc(digits), zero=zero)

    return OfValues(least, 2, call)


ROUNDING_FUNCTIONS: dict[str, Function] = {
    "ROUNDUP": _cut(2, zero=False),
    "ROUNDDOWN": _cut(2, zero=True),
    "TRUNC": _cut(1, zero=True),
}

INTEGER_FUNCTIONS: dict[str, Function] = {
    "_XLFN.BITAND": _of_bits(int.__and__),
    "_XLFN.BITOR": _of_bits(int.__or__),
    "_XLFN.BITXOR": _of_bits(int.__xor__),
    "_XLFN.BITLSHIFT": _shifted(left=True),
    "_XLFN.BITRSHIFT": _shifted(left=False),
    **{
        f"{one}2{other}": _to_system(base, target)
        for one, base in (*_SYSTEMS.items(), ("DEC", 10))
        for other, target in _SYSTEMS.items()
        if one != other
    },
    **{f"{name}2DEC": _to_decimal(base) for name, base in _SYSTEMS.items()},
    "_XLFN.BASE": _of_whole(2, 3, _base),
    "FACT": _of_whole(1, 1, _factorial),
    "FACTDOUBLE": OfValues(1, 1, _double_factorial),
    "COMBIN": _of_whole(2, 2, _of_choice(math.comb)),
    "PERMUT": _of_whole(2, 2, _of_choice(math.perm)),
    "_XLFN.COMBINA": _of_whole(2, 2, _repeated_combinations),
    "_XLFN.PERMUTATIONA": _of_whole(2, 2, _repeated_permutations),
    "GCD": _of_list(lambda numbers: math.gcd(*numbers)),
    "LCM": _of_list(lambda numbers: math.lcm(*numbers)),
    "QUOTIENT": OfValues(2, 2, _quotient),
}
