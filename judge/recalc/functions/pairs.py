"""Computes functions of several ranges and of matrices, some statistics, and NPV. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from judge.formulas.tree import Constant, Node
from judge.recalc.functions.arrays import (
    MAX_VALUES,
    all_of,
    gathered,
    of_rows,
    reference_of,
    single,
)
from judge.recalc.functions.conversions import DIV0, NA, NUM, VALUE, UnsureError
from judge.recalc.functions.counting import plain_sum
from judge.recalc.functions.criteria import (
    NUMBER_TYPES,
    Cells,
    Position,
    Scalar,
    SparseCells,
    is_number,
    numbers_of,
)
from judge.recalc.functions.scalars import Evaluation, Function
from judge.workbook.cell import ErrorValue


def _of_pairs(first: int) -> Function:
    """Functions of pairs of numbers: ranges of different sizes give #N/A.

    Args:
        first: how many arguments come before the ranges. If there are any, errors in the ranges
            are left to engines.
    """

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        if len(arguments) == first + 4 and evaluation.scalar(arguments[3]) == 1:
            arguments = arguments[:2]  # T.TEST of pairs
        if len(arguments) != first + 2:
            raise UnsureError
        sizes = {reference_of(evaluation, node).size for node in arguments[first:]}
        if first and isinstance(evaluation.scalar(arguments[0]), ErrorValue):
            raise UnsureError
        areas = [
            evaluation.values.cells(reference_of(evaluation, node)) for node in arguments[first:]
        ]
        has_errors = any(
            isinstance(value, ErrorValue) for area in areas for value in area.values.values()
        )
        if has_errors and first:
            raise UnsureError
        if len(sizes) == 1:
            if not has_errors or max(sizes) > MAX_VALUES:
                raise UnsureError
            evaluation.values.spend(2 * max(sizes))
            error = _first_in_pairs(*map(Cells.all_values, areas))
        else:
            error = NA
        evaluation.converted = True
        return error

    return call


_NULL = ErrorValue("#NULL!")


def _first_in_pairs(first: Iterable[Scalar], second: Iterable[Scalar]) -> ErrorValue:
    """The first error in pairs of values: that of a pair's first value comes before the second's.

    A pair whose first value is ``#NULL!`` does not count, as 82 values of Excel in a test file of
    the package `formulas` show.

    Raises:
        UnsureError: no other pair has an error, or the error is the second value and ``#NULL!``.
    """
    for one, other in zip(first, second, strict=True):
        if isinstance(one, ErrorValue):
            if one != _NULL:
                return one
        elif isinstance(other, ErrorValue):
            if other == _NULL:
                break
            return other
    raise UnsureError


def _of_frequencies(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """CHISQ.TEST of ranges of different sizes: #N/A; others are left to engines."""
    if len({reference_of(evaluation, node).size for node in arguments}) == 2:
        return evaluation.refused(NA)
    raise UnsureError


def _of_variances(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """F.TEST of a sample with fewer than two numbers: #DIV/0!; others are left to engines."""
    samples = [numbers_of(gathered(evaluation, (node,))) for node in arguments]
    if any(isinstance(sample, ErrorValue) for sample in samples):
        raise UnsureError
    if any(isinstance(sample, list) and len(sample) < 2 for sample in samples):
        return evaluation.refused(DIV0)
    raise UnsureError


def _present_value(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """NPV: only numbers of ranges and arrays are payments; engines count TRUE and FALSE."""
    if len(arguments) < 2:
        raise UnsureError
    rate, given = evaluation.number(evaluation.scalar(arguments[0])), arguments[1:]
    values = gathered(evaluation, given)
    payments = numbers_of(values)
    if isinstance(rate, ErrorValue) or isinstance(payments, ErrorValue):
        raise UnsureError
    if rate == -1:
        return evaluation.refused(DIV0)
    growth = 1 + rate
    return math.fsum(paid / growth**at for at, paid in enumerate(payments, start=1))


def _trimmed_mean(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """TRIMMEAN: leaves out as many of the smallest as of the largest numbers."""
    if len(arguments) != 2:
        raise UnsureError
    numbers = numbers_of(gathered(evaluation, arguments[:1]))
    share = evaluation.number(evaluation.scalar(arguments[1]))
    if isinstance(numbers, ErrorValue) or isinstance(share, ErrorValue):
        raise UnsureError
    if not numbers or not 0 <= share < 1:
        return NUM
    omitted = len(numbers) * share / 2
    if math.floor(omitted) != math.floor(omitted + 1e-9):
        raise UnsureError  # a whole number but for its rounding error
    at = math.floor(omitted)
    kept = sorted(numbers)[at : len(numbers) - at]
    return math.fsum(kept) / len(kept)


def _sumproduct(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """SUMPRODUCT: a value that is not a number counts as 0, even TRUE or a number as text."""
    parts = [all_of(evaluation, argument) for argument in arguments]
    first = parts[0] if parts else single(None)
    if len(parts) == 1 and isinstance(first, SparseCells) and first.usual == 0:
        first = of_rows([first.with_usual_once()])  # the other zeros add nothing
        parts = [first]
    filled = [part.filled() for part in parts]
    if any(ErrorValue in map(type, values) for values in filled):
        values = itertools.chain.from_iterable(part.values.values() for part in parts)
        return next(value for value in values if isinstance(value, ErrorValue))
    if first.size == 1 and any(isinstance(value, str) for value in first.values.values()):
        raise UnsureError
    if any((part.rows, part.columns) != (first.rows, first.columns) for part in parts):
        evaluation.converted = True
        return VALUE
    evaluation.values.spend(first.size * len(parts))
    if any(not {bool, str}.isdisjoint(map(type, values)) for values in filled):
        evaluation.converted = True
    total = 0.0
    if len(parts) == 1:
        numbers = numbers_of(filled[0])
        assert not isinstance(numbers, ErrorValue)
        for number in numbers:
            total += number
    elif parts:
        factors = [_factors(part) for part in parts]
        # A place without a number in some array adds nothing.
        for position in sorted(set(factors[0]).intersection(*factors)):
            total += math.prod([numbers[position] for numbers in factors], start=1.0)
    if not math.isfinite(total):
        raise UnsureError
    return total


def _factors(cells: Cells) -> Mapping[Position, float]:
    """The numbers of an array by their position, without TRUE, FALSE and strings."""
    return {
        position: cast("float", value)
        for position, value in cells.values.items()
        if type(value) in NUMBER_TYPES
    }


def _percentof(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """PERCENTOF: one sum as a share of another."""
    if len(arguments) != 2:
        raise UnsureError
    sums: list[float] = []
    for argument in arguments:
        numbers = numbers_of(gathered(evaluation, (argument,)))
        if isinstance(numbers, ErrorValue):
            raise UnsureError
        sums.append(math.fsum(numbers))
    evaluation.converted = True
    return sums[0] / sums[1] if sums[1] else DIV0


def _sum_of_pairs(term: Callable[[float, float], float]) -> Function:
    """SUMX2MY2 and its relatives: pairs of values in order, of which both have to be numbers.

    Engines count text as 0, and some need ranges of the same shape.

    Raises:
        UnsureError: there are several errors, or text that is written in the formula.
    """

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        if len(arguments) != 2 or any(isinstance(node, Constant) for node in arguments):
            raise UnsureError
        one, other = (all_of(evaluation, node) for node in arguments)
        evaluation.values.spend(one.size + other.size)
        if max(one.size, other.size) > MAX_VALUES:
            raise UnsureError
        if one.size != other.size:
            evaluation.converted = True
            return NA
        pairs = list(zip(one.all_values(), other.all_values(), strict=True))
        errors = {value for pair in pairs for value in pair if isinstance(value, ErrorValue)}
        if errors:
            raise UnsureError
        terms = [
            term(first, second) for first, second in pairs if is_number(first) and is_number(second)
        ]
        evaluation.converted = (
            evaluation.converted or len(terms) < len(pairs) or one.rows != other.rows
        )
        return plain_sum(terms) if terms else DIV0

    return call


def _of_full_matrices(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """MDETERM, MINVERSE and MMULT: cells that are blank or hold text give #VALUE!.

    Raises:
        UnsureError: all values are numbers, which are left to engines, or one is an error.
    """
    values: list[Scalar] = []
    for argument in arguments:
        cells = all_of(evaluation, argument)
        if cells.size > MAX_VALUES:
            raise UnsureError
        values += cells.all_values()
    if any(isinstance(value, ErrorValue) for value in values):
        raise UnsureError
    if any(value is None or isinstance(value, str) for value in values):
        evaluation.converted = True
        return VALUE
    raise UnsureError


PAIRS = frozenset(
    ("CORREL", "PEARSON", "RSQ", "SLOPE", "INTERCEPT", "STEYX", "COVAR", "COVARIANCE.P")
) | frozenset(("COVARIANCE.S",))

PAIR_FUNCTIONS: dict[str, Function] = {
    **{f"{prefix}{name}": _of_pairs(0) for name in PAIRS for prefix in ("", "_XLFN.")},
    **dict.fromkeys(("TTEST", "_XLFN.T.TEST"), _of_pairs(0)),
    **dict.fromkeys(("CHITEST", "_XLFN.CHISQ.TEST"), _of_frequencies),
    **dict.fromkeys(("FTEST", "_XLFN.F.TEST"), _of_variances),
    "NPV": _present_value,
    "TRIMMEAN": _trimmed_mean,
    "FORECAST": _of_pairs(1),
    "_XLFN.FORECAST.LINEAR": _of_pairs(1),
    "_XLFN.PERCENTOF": _percentof,
    "SUMPRODUCT": _sumproduct,
    "SUMX2MY2": _sum_of_pairs(lambda x, y: x * x - y * y),
    "SUMX2PY2": _sum_of_pairs(lambda x, y: x * x + y * y),
    "SUMXMY2": _sum_of_pairs(lambda x, y: (x - y) ** 2),
    **dict.fromkeys(("MDETERM", "MINVERSE", "MMULT"), _of_full_matrices),
}
