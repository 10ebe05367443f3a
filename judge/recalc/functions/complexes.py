"""Computes functions of complex numbers, which are text such as ``3+4i``. Pure.

Sources: Microsoft's pages on these functions, and 442 cells of a workbook that Excel saved
(`test/test_files/test.xlsx` of the library `formulas`) for what the pages do not say: with which
formulas Excel computes the 15 digits, how it writes small numbers, and which errors it returns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from judge.formulas.references import Reference
from judge.formulas.tree import ArrayConstant, Node
from judge.recalc.functions.arrays import all_of
from judge.recalc.functions.conversions import (
    DIV0,
    NUM,
    VALUE,
    UnsureError,
    decimal_digits,
    scientific,
    written_out,
)
from judge.recalc.functions.criteria import Scalar
from judge.recalc.functions.integers import strict_number
from judge.recalc.functions.scalars import Evaluation, Function
from judge.workbook.cell import ErrorValue

_SMALLEST_PLAIN = -5
"""Smallest exponent of a number that is written without E notation."""
_TOO_LARGE = 15
"""Exponents from which no source shows how a number is written."""

_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_COMPLEX = re.compile(
    rf"(?:(?P<real>[+-]?{_NUMBER})(?=[+-]|$))?"
    rf"(?:(?P<imaginary>[+-]?(?:{_NUMBER})?)(?P<suffix>[ij]))?"
)


class _Complex(NamedTuple):
    """A complex number.

    Attributes:
        value: the number.
        suffix: ``i`` or ``j`` as written; empty for a number without an imaginary part.
    """

    value: complex
    suffix: str = ""


def _read(value: Scalar) -> _Complex | ErrorValue:
    if isinstance(value, ErrorValue):
        return value
    if isinstance(value, bool):
        return VALUE
    if not isinstance(value, str):
        return _Complex(complex(value or 0))
    if value.strip() != value or not value or value[-1] in "IJ":
        raise UnsureError
    match = _COMPLEX.fullmatch(value)
    if match is None:
        return NUM
    imaginary = match["imaginary"] or ""
    one = f"{imaginary}1" if imaginary in ("", "+", "-") else imaginary
    suffix = match["suffix"] or ""
    return _Complex(complex(float(match["real"] or 0), float(one) if suffix else 0.0), suffix)


def _written(number: complex, suffix: str) -> str:
    """Writes a complex number with 15 digits.

    Raises:
        UnsureError: it is not known how Excel writes a number of this size.
    """
    real, imaginary = _part(number.real), _part(number.imag)
    if imaginary == "0":
        return real
    if imaginary in ("1", "-1"):
        imaginary = imaginary[:-1]
    if real == "0":
        return imaginary + suffix
    return f"{real}{'' if imaginary.startswith('-') else '+'}{imaginary}{suffix}"


def _part(number: float) -> str:
    if not math.isfinite(number):
        raise UnsureError
    if not number:
        return "0"
    digits, exponent = decimal_digits(number)
    if abs(exponent) >= (_TOO_LARGE if exponent > 0 else 300):
        raise UnsureError
    write = scientific if exponent < _SMALLEST_PLAIN else written_out
    return ("-" if number < 0 else "") + write(digits, exponent)


def _numbers(
    evaluation: Evaluation, arguments: Sequence[Node], *, ranges: bool
) -> list[_Complex] | ErrorValue:
    """The numbers in all arguments, or the first error; a range is one if they are not accepted."""
    values: list[Scalar] = []
    for argument in arguments:
        is_range = isinstance(argument, Reference) and argument.size > 1
        if ranges and (is_range or isinstance(argument, ArrayConstant)):
            values += all_of(evaluation, argument).filled()
        else:
            values.append(VALUE if is_range else evaluation.scalar(argument))
    numbers: list[_Complex] = []
    for value in values:
        number = _read(value)
        if isinstance(number, ErrorValue):
            return number
        numbers.append(number)
    return numbers


_Computed = complex | float | ErrorValue


def _of_one(compute: Callable[[complex], _Computed], *, real: bool = False) -> Function:
    """Makes a function of one complex number; its result is real, or complex as well."""

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        numbers = _numbers(evaluation, arguments, ranges=False)
        if isinstance(numbers, ErrorValue):
            return evaluation.refused(numbers)
        if len(numbers) != 1:
            raise UnsureError
        try:
            result = compute(numbers[0].value)
        except (ArithmeticError, ValueError):
            raise UnsureError from None
        if isinstance(result, ErrorValue):
            return evaluation.refused(result)
        if real:
            return result.real
        evaluation.converted = True  # engines differ in the last digits
        return _written(complex(result), numbers[0].suffix or "i")

    return call


def _of_several(
    combine: Callable[[complex, complex], _Computed], mixed: ErrorValue, *, ranges: bool = False
) -> Function:
    """Makes a function that combines one complex number after the other.

    Args:
        combine: combines two of them.
        mixed: the error for numbers with i and with j.
        ranges: whether it accepts ranges, and any number of arguments instead of two.
    """

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        numbers = _numbers(evaluation, arguments, ranges=ranges)
        if isinstance(numbers, ErrorValue):
            return evaluation.refused(numbers)
        if not numbers or not (ranges or len(numbers) == 2):
            raise UnsureError
        suffixes = {number.suffix for number in numbers} - {""}
        if len(suffixes) > 1:
            return evaluation.refused(mixed)
        total = numbers[0].value
        for number in numbers[1:]:
            result = combine(total, number.value)
            if isinstance(result, ErrorValue):
                return evaluation.refused(result)
            total = complex(result)
        evaluation.converted = True
        return _written(total, suffixes.pop() if suffixes else "i")

    return call


def _complex(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """COMPLEX: a complex number from its parts."""
    if len(arguments) not in (2, 3):
        raise UnsureError
    values = [
        VALUE if isinstance(node, Reference) and node.size > 1 else evaluation.scalar(node)
        for node in arguments
    ]
    parts: list[float] = []
    for value in values[:2]:
        number = strict_number(evaluation, value)
        if isinstance(number, ErrorValue):
            return evaluation.refused(number)
        parts.append(number)
    suffix = "i" if len(values) == 2 or values[2] is None else values[2]
    if isinstance(suffix, ErrorValue) or suffix not in ("i", "j"):
        return evaluation.refused(suffix if isinstance(suffix, ErrorValue) else VALUE)
    evaluation.converted = True
    return _written(complex(*parts), str(suffix))


def _power(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """IMPOWER: a complex number to a real power."""
    if len(arguments) != 2:
        raise UnsureError
    number = strict_number(evaluation, evaluation.scalar(arguments[1]))

    def power(base: complex) -> _Computed:
        if isinstance(number, ErrorValue):
            return number
        if not base and number <= 0:
            raise UnsureError
        return _of_angle(abs(base) ** number, number * math.atan2(base.imag, base.real))

    return _of_one(power)(evaluation, arguments[:1])


def _of_angle(size: float, angle: float) -> complex:
    return complex(size * math.cos(angle), size * math.sin(angle))


def _quotient(one: complex, other: complex) -> _Computed:
    size = other.real * other.real + other.imag * other.imag
    if not size:
        return NUM
    real = one.real * other.real + one.imag * other.imag
    return complex(real / size, (one.imag * other.real - one.real * other.imag) / size)


def _product(one: complex, other: complex) -> complex:
    real = one.real * other.real - one.imag * other.imag
    return complex(real, one.real * other.imag + one.imag * other.real)


def _angle(number: complex) -> _Computed:
    return math.atan2(number.imag, number.real) if number else DIV0


def _logarithm(base: float) -> Callable[[complex], _Computed]:
    def compute(number: complex) -> _Computed:
        if not number:
            return NUM
        scale = math.log(base)
        angle = math.atan2(number.imag, number.real)
        return complex(math.log(abs(number)) / scale, angle / scale)

    return compute


def _root(number: complex) -> complex:
    return _of_angle(math.sqrt(abs(number)), math.atan2(number.imag, number.real) / 2)


# -- functions of angles ---------------------------------------------------------------------------


def _sine(number: complex) -> complex:
    x, y = number.real, number.imag
    return complex(math.sin(x) * math.cosh(y), math.cos(x) * math.sinh(y))


def _cosine(number: complex) -> complex:
    x, y = number.real, number.imag
    return complex(math.cos(x) * math.cosh(y), -math.sin(x) * math.sinh(y))


def _tangent(number: complex) -> _Computed:
    x, y = 2 * number.real, 2 * number.imag
    return _shared(math.sin(x), math.sinh(y), math.cos(x) + math.cosh(y))


def _cotangent(number: complex) -> _Computed:
    x, y = 2 * number.real, 2 * number.imag
    return _shared(math.sin(x), -math.sinh(y), math.cosh(y) - math.cos(x))


def _secant(number: complex) -> _Computed:
    x, y = number.real, number.imag
    divisor = math.cosh(2 * y) + math.cos(2 * x)
    return _shared(2 * math.cos(x) * math.cosh(y), 2 * math.sin(x) * math.sinh(y), divisor)


def _cosecant(number: complex) -> _Computed:
    x, y = number.real, number.imag
    divisor = math.cosh(2 * y) - math.cos(2 * x)
    return _shared(2 * math.sin(x) * math.cosh(y), -2 * math.cos(x) * math.sinh(y), divisor)


def _shared(real: float, imaginary: float, divisor: float) -> _Computed:
    return complex(real / divisor, imaginary / divisor) if divisor else NUM


def _turned(number: complex) -> complex:
    """The number whose circular functions are the hyperbolic functions of a number."""
    return complex(-number.imag, number.real)


def _hyperbolic_sine(number: complex) -> complex:
    sine = _sine(_turned(number))
    return complex(sine.imag, -sine.real)


def _hyperbolic_cosecant(number: complex) -> _Computed:
    cosecant = _cosecant(_turned(number))
    if isinstance(cosecant, ErrorValue):
        return cosecant
    return complex(-cosecant.imag, cosecant.real)


COMPLEX_FUNCTIONS: dict[str, Function] = {
    "COMPLEX": _complex,
    "IMABS": _of_one(abs, real=True),
    "IMAGINARY": _of_one(lambda number: number.imag, real=True),
    "IMARGUMENT": _of_one(_angle, real=True),
    "IMCONJUGATE": _of_one(complex.conjugate),
    "IMCOS": _of_one(_cosine),
    "IMDIV": _of_several(_quotient, NUM),
    "IMEXP": _of_one(lambda number: _of_angle(math.exp(number.real), number.imag)),
    "IMLN": _of_one(_logarithm(math.e)),
    "IMLOG10": _of_one(_logarithm(10)),
    "IMLOG2": _of_one(_logarithm(2)),
    "IMPOWER": _power,
    "IMPRODUCT": _of_several(_product, VALUE, ranges=True),
    "IMREAL": _of_one(lambda number: number.real, real=True),
    "IMSIN": _of_one(_sine),
    "IMSQRT": _of_one(_root),
    "IMSUB": _of_several(lambda one, other: one - other, NUM),
    "IMSUM": _of_several(lambda one, other: one + other, VALUE, ranges=True),
    "_XLFN.IMCOSH": _of_one(lambda number: _cosine(_turned(number))),
    "_XLFN.IMCOT": _of_one(_cotangent),
    "_XLFN.IMCSC": _of_one(_cosecant),
    "_XLFN.IMCSCH": _of_one(_hyperbolic_cosecant),
    "_XLFN.IMSEC": _of_one(_secant),
    "_XLFN.IMSECH": _of_one(lambda number: _secant(_turned(number))),
    "_XLFN.IMSINH": _of_one(_hyperbolic_sine),
    "_XLFN.IMTAN": _of_one(_tangent),
}
