"""Computes totals, counts and sums by criteria, and the database functions. Pure."""

from __future__ import annotations

import collections
import functools
import math
from collections.abc import Callable, Container, Sequence
from collections.abc import Set as AbstractSet

from judge.formulas.functions import PREFIX
from judge.formulas.references import Reference
from judge.formulas.shift import shift_formula
from judge.formulas.tree import ArrayConstant, Call, Missing, Node, Operation, tree
from judge.recalc.functions.arrays import (
    all_of,
    array_of,
    check_no_cell,
    gathered,
    is_reference,
    reference_of,
    referenced_cells,
    typed_number,
)
from judge.recalc.functions.conversions import DIV0, NA, NUM, VALUE, UnsureError
from judge.recalc.functions.criteria import (
    Cells,
    Matches,
    Position,
    Scalar,
    criterion,
    has_logical,
    is_number,
    matches,
    names_of,
    numbers_of,
    table_rows,
)
from judge.recalc.functions.scalars import Evaluation, Function
from judge.workbook.address import MAX_COLUMN, MAX_ROW
from judge.workbook.cell import ErrorValue

COST_OF_CONDITION = 1_000
"""A computed condition of a database row counts as this many compared cells."""

_Sum = Callable[[Sequence[float]], Scalar]


def _area(evaluation: Evaluation, node: Node) -> Cells:
    return evaluation.values.cells(reference_of(evaluation, node))


def _searched(evaluation: Evaluation, node: Node) -> Cells:
    """The cells of a rectangle to which criteria are applied."""
    return evaluation.values.searched(reference_of(evaluation, node))


def plain_sum(numbers: Sequence[float]) -> float:
    """Adds one number after the other, with the same rounding errors as Excel."""
    total = 0.0
    for number in numbers:
        total += number
    return total


def _total(numbers: Sequence[float]) -> Scalar:
    return plain_sum(numbers)


def _average(numbers: Sequence[float]) -> Scalar:
    return plain_sum(numbers) / len(numbers) if numbers else DIV0


def _median(numbers: Sequence[float]) -> Scalar:
    if not numbers:
        return NUM
    ordered, middle = sorted(numbers), len(numbers) // 2
    return ordered[middle] if len(numbers) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _modes(numbers: Sequence[float]) -> list[float]:
    """The numbers that occur most often, in order of first occurrence; none if all are distinct."""
    counts = collections.Counter(numbers)
    most = max(counts.values(), default=1)
    return [number for number, count in counts.items() if count == most > 1]


def _mode(evaluation: Evaluation, numbers: Sequence[float]) -> Scalar:
    """The first of the numbers that occur most often; LibreOffice takes the smallest of them."""
    modes = _modes(numbers)
    evaluation.converted = evaluation.converted or len(modes) > 1
    return modes[0] if modes else NA


def _of_all(total: _Sum) -> Function:
    """SUM and AVERAGE with Excel's rounding errors, which LibreOffice avoids."""

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        numbers = numbers_of(gathered(evaluation, arguments))
        if isinstance(numbers, ErrorValue):
            return numbers
        result = total(numbers)
        exact = math.fsum(numbers) / (1 if total is _total else len(numbers) or 1)
        evaluation.converted = evaluation.converted or result != exact
        return result

    return call


def _of_numbers_in(total: _Sum) -> Function:
    """MAX, MIN and similar functions of ranges and numbers."""

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        numbers = numbers_of(gathered(evaluation, arguments))
        return numbers if isinstance(numbers, ErrorValue) else total(numbers)

    return call


def _is_part_of_range(node: Node) -> bool:
    """Whether a function returns a part of a range, in which blank cells stay blank."""
    if not isinstance(node, Call) or PREFIX.sub("", node.name) not in ("TAKE", "DROP", "TRIMRANGE"):
        return False
    return any(is_reference(part) or _is_part_of_range(part) for part in node.arguments[:1])


def _count(*, filled: bool) -> Function:
    """COUNT and COUNTA; text that is written in the formula counts as a number if it is one."""

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        counted = 0
        for argument in arguments:
            if isinstance(argument, Missing):
                raise UnsureError
            if is_reference(argument):
                values = [*referenced_cells(evaluation, argument).values.values()]
            elif _is_part_of_range(argument):
                values = [*all_of(evaluation, argument).values.values()]
            else:
                cells = array_of(evaluation, argument)
                if cells.size == 1:
                    check_no_cell(argument, cells.first)
                if cells.size == 1 and not filled:
                    number = typed_number(evaluation, argument, cells.values.get((0, 0)))
                    counted += not isinstance(number, ErrorValue)
                    continue
                values = [*cells.values.values()] if not filled else [*cells.all_values()]
            evaluation.converted = evaluation.converted or has_logical(values)
            counted += len(values) if filled else sum(map(is_number, values))
        return counted

    return call


def _ranked(*, largest: bool) -> Function:
    """LARGE and SMALL."""

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        if len(arguments) != 2:
            raise UnsureError
        numbers = numbers_of(gathered(evaluation, arguments[:1]))
        return _nth(evaluation, arguments[1], numbers, largest=largest)

    return call


def _quantile(*, quarters: bool, exclusive: bool) -> Function:
    """PERCENTILE and QUARTILE, with or without the ends."""

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        if len(arguments) != 2:
            raise UnsureError
        numbers = numbers_of(gathered(evaluation, arguments[:1]))
        return _at_share(evaluation, arguments[1], numbers, quarters=quarters, exclusive=exclusive)

    return call


def _at_share(
    evaluation: Evaluation,
    node: Node,
    numbers: list[float] | ErrorValue,
    *,
    quarters: bool,
    exclusive: bool,
) -> Scalar:
    """The value below which a share of the numbers is; a node gives the share (or quarters)."""
    share = evaluation.number(evaluation.scalar(node))
    if isinstance(share, ErrorValue):
        evaluation.converted = True  # engines may return an error of the numbers
        return share
    if isinstance(numbers, ErrorValue):
        return numbers
    # A quarter below 0 is refused before its decimals are dropped.
    share = math.floor(share) / 4 if quarters else share
    count, ordered = len(numbers), sorted(numbers)
    at = share * (count + 1) - 1 if exclusive else share * (count - 1)
    if not numbers or not 0 <= share <= 1 or not 0 <= at <= count - 1:
        return NUM
    below = math.floor(at)
    above = min(below + 1, count - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


def _nth(
    evaluation: Evaluation, node: Node, numbers: list[float] | ErrorValue, *, largest: bool
) -> Scalar:
    """The number that has the rank given by a node."""
    number = evaluation.number(evaluation.scalar(node))
    if isinstance(number, ErrorValue):
        return number
    if isinstance(numbers, ErrorValue):
        return numbers
    if number != int(number):
        raise UnsureError  # Microsoft does not document which way Excel rounds it
    if not 1 <= number <= len(numbers):
        return NUM
    return sorted(numbers, reverse=largest)[int(number) - 1]


def _subtotal(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """SUBTOTAL: omits other subtotals and filtered rows, and from number 101 on all hidden rows.

    Raises:
        UnsureError: the function number is unusual.
    """
    if len(arguments) < 2:
        raise UnsureError
    which = evaluation.scalar(arguments[0])
    if isinstance(which, (bool, str, ErrorValue)) or which is None:
        raise UnsureError
    number = which - 100 if which > 100 else which
    if number not in _AGGREGATED:
        raise UnsureError
    values: list[Scalar] = []
    for argument in arguments[1:]:
        reference = reference_of(evaluation, argument)
        rows, by_filter = evaluation.values.hidden(reference)
        nested = evaluation.values.subtotals(reference)
        if any(name != "SUBTOTAL" for name in nested.values()):
            raise UnsureError
        evaluation.converted = evaluation.converted or bool(rows)
        left_out = rows if which > 100 or by_filter else ()
        values += _shown(_area(evaluation, reference), left_out, nested)
    return _aggregated(evaluation, number, values)


def _shown(
    cells: Cells, rows: Container[int], positions: Container[tuple[int, int]]
) -> list[Scalar]:
    """The values of a rectangle, without the given rows and positions."""
    return [
        value
        for position, value in cells.in_order
        if position[0] not in rows and position not in positions
    ]


def _aggregated(evaluation: Evaluation, which: float, values: Sequence[Scalar]) -> Scalar:
    """Totals some values with the function that SUBTOTAL or AGGREGATE selects by this number."""
    if which == 3:
        return len(values)
    evaluation.converted = evaluation.converted or has_logical(values)
    if which == 2:
        return sum(map(is_number, values))
    numbers = numbers_of(values)
    if isinstance(numbers, ErrorValue):
        return numbers
    if which in (12, 13):
        return _median(numbers) if which == 12 else _mode(evaluation, numbers)
    return _AGGREGATED[which](numbers)


def _aggregate(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """AGGREGATE: omits hidden rows, errors and other subtotals, as its option says.

    Raises:
        UnsureError: rows are hidden by a filter and the option does not say whether they count.
    """
    if len(arguments) < 3:
        raise UnsureError
    which, option = (evaluation.scalar(argument) for argument in arguments[:2])
    if isinstance(which, (bool, str, ErrorValue)) or which is None or isinstance(option, bool):
        raise UnsureError
    if not isinstance(option, (int, float)):
        raise UnsureError
    if math.trunc(which) not in range(1, 20) or math.trunc(option) not in range(8):
        return evaluation.refused(VALUE)
    ranks = which in _RANKED
    if (
        option != int(option)
        or (ranks and len(arguments) != 4)
        or not (ranks or which in _AGGREGATED or which in (12, 13))
    ):
        raise UnsureError
    values: list[Scalar] = []
    for argument in arguments[2:3] if ranks else arguments[2:]:
        if isinstance(argument, (Operation, ArrayConstant)) and not ranks:
            evaluation.converted = True  # only the functions from 14 on take arrays
            return VALUE
        if ranks and not is_reference(argument):
            # Among calculated values, only errors are left out, whatever else the option says.
            if option not in (4, 6) and not isinstance(argument, Operation):
                raise UnsureError
            values += all_of(evaluation, argument).filled()
        else:
            values += _not_omitted(evaluation, argument, int(option))
    if int(option) & 2:
        values = [value for value in values if type(value) is not ErrorValue]
    if not ranks:
        return _aggregated(evaluation, which, values)
    result = _RANKED[which](evaluation, arguments[3], numbers_of(values))
    # LibreOffice gives another error if there are too few values, or counts logical values.
    evaluation.converted = evaluation.converted or result == NUM
    evaluation.converted = evaluation.converted or has_logical(values)
    return result


def _not_omitted(evaluation: Evaluation, argument: Node, option: int) -> list[Scalar]:
    """The values of a reference that an option of AGGREGATE does not omit; errors are kept."""
    reference = reference_of(evaluation, argument)
    if option in (4, 6):
        return _shown(_area(evaluation, reference), (), ())
    rows, by_filter = evaluation.values.hidden(reference)
    if by_filter and not option % 2:
        raise UnsureError
    nested = evaluation.values.subtotals(reference) if option < 4 else {}
    evaluation.converted = evaluation.converted or bool(rows)
    return _shown(_area(evaluation, reference), rows if option % 2 else (), nested)


def _logical(total: Callable[[Sequence[bool]], bool]) -> Function:
    """AND, OR and XOR; text in cells does not count."""

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        values: list[Scalar] = []
        for argument in arguments:
            if isinstance(argument, Missing):
                added: list[Scalar] = [False]
            elif is_reference(argument):
                added = [*referenced_cells(evaluation, argument).values.values()]
            else:
                added = [*array_of(evaluation, argument).values.values()]
            if any(isinstance(value, str) for value in added) and not is_reference(argument):
                raise UnsureError  # versions of Excel differ
            values += added
        error = next((value for value in values if isinstance(value, ErrorValue)), None)
        tests = [bool(value) for value in values if isinstance(value, (bool, int, float))]
        # Excel reads every argument, while IronCalc stops at the first that decides.
        evaluation.converted = evaluation.converted or error is not None
        return error or (total(tests) if tests else VALUE)

    return call


def _internal_rate(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """IRR, which ignores logical values in cells; they are numbers to two engines."""
    if not 1 <= len(arguments) <= 2:
        raise UnsureError
    payments = numbers_of(gathered(evaluation, arguments[:1]))
    rate = evaluation.number(evaluation.scalar(arguments[1])) if len(arguments) > 1 else 0.1
    if isinstance(payments, ErrorValue) or isinstance(rate, ErrorValue):
        raise UnsureError
    for _ in range(20):  # as on Microsoft's page
        if not -1 < rate < math.inf:
            break
        evaluation.values.spend(len(payments))
        try:
            discounted = [paid / (1 + rate) ** at for at, paid in enumerate(payments)]
        except ArithmeticError:  # the rate is so high or low that a power is not a number
            break
        slope = sum(at * value for at, value in enumerate(discounted)) / (1 + rate)
        step = sum(discounted) / slope if slope else math.inf
        rate += step
        if abs(step) < 1e-12:
            return rate
    raise UnsureError


def _most_frequent(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """MODE of ranges; other arguments are left to engines, since text counts differently there."""
    if not all(map(is_reference, arguments)):
        raise UnsureError
    numbers = numbers_of(gathered(evaluation, arguments))
    return numbers if isinstance(numbers, ErrorValue) else _mode(evaluation, numbers)


def _greatest(numbers: Sequence[float]) -> Scalar:
    return max(numbers, default=0)


def _least(numbers: Sequence[float]) -> Scalar:
    return min(numbers, default=0)


def _all_matching(evaluation: Evaluation, pairs: Sequence[Node]) -> tuple[Cells, Matches] | None:
    """The first range and the positions that meet all criteria; None if the shapes differ."""
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
            evaluation.converted = True
            return None
        meeting &= matches(cells, criterion(evaluation.scalar(condition)))
    evaluation.converted = True
    return None if first is None else (first, meeting)


def _added_up(evaluation: Evaluation, pairs: Sequence[Node]) -> tuple[Cells, Matches] | None:
    """The same for formulas in a row, which often add up different columns by equal criteria."""
    return evaluation.repeated(tuple(pairs), lambda: _all_matching(evaluation, pairs))


def _countif(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    if len(arguments) != 2:
        raise UnsureError
    return _countifs(evaluation, arguments)


def _countifs(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    counted = _all_matching(evaluation, arguments)
    return VALUE if counted is None else counted[1].count(counted[0].size)


def _of_matching(cells: Cells, meeting: Matches, total: _Sum) -> Scalar:
    values = cells.values
    chosen: AbstractSet[Position] = meeting.positions
    if meeting.inverted:
        cells.spend(len(values))
        chosen = values.keys() - chosen
    numbers = numbers_of(map(values.get, sorted(chosen)))
    return numbers if isinstance(numbers, ErrorValue) else total(numbers)


def _by_one(total: _Sum) -> Function:
    """SUMIF and AVERAGEIF: the range to add up gets the shape of the criterion's range."""

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        if not 2 <= len(arguments) <= 3:
            raise UnsureError
        counted = _added_up(evaluation, arguments[:2])
        if counted is None:
            raise UnsureError
        cells, meeting = counted
        if len(arguments) == 3:
            cells = evaluation.values.searched(
                _in_shape(reference_of(evaluation, arguments[2]), cells)
            )
        return _of_matching(cells, meeting, total)

    return call


def _in_shape(sums: Reference, cells: Cells) -> Reference:
    last_row, last_column = sums.min_row + cells.rows - 1, sums.min_column + cells.columns - 1
    if last_row > MAX_ROW or last_column > MAX_COLUMN:
        raise UnsureError
    return sums._replace(max_row=last_row, max_column=last_column)


def _by_several(total: _Sum) -> Function:
    """SUMIFS and its relatives: the range to add up comes first; all ranges have the same shape."""

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        if len(arguments) < 3:
            raise UnsureError
        cells = _searched(evaluation, arguments[0])
        counted = _added_up(evaluation, arguments[1:])
        if counted is None or (cells.rows, cells.columns) != (counted[0].rows, counted[0].columns):
            evaluation.converted = True
            return VALUE
        return _of_matching(cells, counted[1], total)

    return call


def _rank(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
    """RANK: the rank of a number among those of a range; equal numbers share the best rank."""
    if not 2 <= len(arguments) <= 3:
        raise UnsureError
    number = evaluation.number(evaluation.scalar(arguments[0]))
    order = evaluation.scalar(arguments[2]) if len(arguments) == 3 else 0
    ascending = evaluation.number(order)
    if isinstance(number, ErrorValue) or isinstance(ascending, ErrorValue):
        return number if isinstance(number, ErrorValue) else ascending
    numbers = numbers_of(_area(evaluation, arguments[1]).values.values())
    if isinstance(numbers, ErrorValue):
        return numbers
    if any(other != number and math.isclose(other, number, rel_tol=1e-14) for other in numbers):
        raise UnsureError
    if number not in numbers:
        return NA
    return 1 + sum(other < number if ascending else other > number for other in numbers)


# -- databases -------------------------------------------------------------------------------------


def _field(evaluation: Evaluation, node: Node, table: Cells) -> int | None:
    """Index, from 0, of the database column that a field names; None if the field is left out."""
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
    """A database function, which computes its result from the rows that meet the criteria."""

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Scalar:
        if len(arguments) != 3:
            raise UnsureError
        table, conditions = _area(evaluation, arguments[0]), _area(evaluation, arguments[2])
        column = _field(evaluation, arguments[1], table)
        evaluation.converted = True
        if table.rows < 2:
            return VALUE
        holds = functools.partial(_computed_condition, evaluation, arguments[2])
        if column is None and not field_needed:
            return result([1.0] * len(table_rows(table, conditions, holds)))
        if column is None or column < 0:
            return VALUE
        rows = table_rows(table, conditions, holds)
        return result([table.values.get((row, column)) for row in rows])

    return call


def _computed_condition(
    evaluation: Evaluation, conditions: Node, line: int, column: int, row: int
) -> bool:
    """Whether a row of a database meets a condition that is a formula about its first row."""
    sheet, top, left, _, _ = reference_of(evaluation, conditions)
    reference = Reference(sheet, top + line, left + column, top + line, left + column)
    formula = evaluation.values.formula(reference)
    node = None if formula is None else tree(shift_formula(formula, row - 1, 0))
    if sheet is not None or node is None:
        raise UnsureError
    evaluation.values.spend(COST_OF_CONDITION)
    value = evaluation.scalar(node)
    if isinstance(value, (str, ErrorValue)):
        raise UnsureError
    return bool(value)


def _of_numbers(total: _Sum) -> Callable[[Sequence[Scalar]], Scalar]:
    def result(values: Sequence[Scalar]) -> Scalar:
        numbers = numbers_of(values)
        return numbers if isinstance(numbers, ErrorValue) else total(numbers)

    return result


def _single(values: Sequence[Scalar]) -> Scalar:
    """DGET: the only value; #VALUE! if there is no value, #NUM! if there are several."""
    if not values:
        return VALUE
    return NUM if len(values) > 1 else values[0]


def _filled(values: Sequence[Scalar]) -> Scalar:
    return sum(value is not None for value in values)


def _counted(values: Sequence[Scalar]) -> Scalar:
    return sum(map(is_number, values))


def _product(numbers: Sequence[float]) -> Scalar:
    return math.prod(numbers) if numbers else 0


def _variance(*, sample: bool, root: bool) -> _Sum:
    def total(numbers: Sequence[float]) -> Scalar:
        degrees = len(numbers) - sample
        if degrees < 1:
            return DIV0
        variance = _squares(numbers) / degrees
        return math.sqrt(variance) if root else variance

    return total


def _squares(numbers: Sequence[float]) -> float:
    """The sum of the squared differences from the mean."""
    mean = math.fsum(numbers) / len(numbers)
    return math.fsum((number - mean) ** 2 for number in numbers)


def _squared_deviations(numbers: Sequence[float]) -> Scalar:
    return _squares(numbers) if numbers else NUM


def _mean_deviation(numbers: Sequence[float]) -> Scalar:
    if not numbers:
        return NUM
    mean = math.fsum(numbers) / len(numbers)
    return math.fsum(abs(number - mean) for number in numbers) / len(numbers)


_AGGREGATED: dict[float, _Sum] = {
    1: _average, 2: len, 3: len, 4: _greatest, 5: _least, 6: _product,
    7: _variance(sample=True, root=True), 8: _variance(sample=False, root=True), 9: _total,
    10: _variance(sample=True, root=False), 11: _variance(sample=False, root=False),
}  # fmt: skip

_RANKED: dict[float, Callable[[Evaluation, Node, list[float] | ErrorValue], Scalar]] = {
    14: functools.partial(_nth, largest=True),
    15: functools.partial(_nth, largest=False),
    16: functools.partial(_at_share, quarters=False, exclusive=False),
    17: functools.partial(_at_share, quarters=True, exclusive=False),
    18: functools.partial(_at_share, quarters=False, exclusive=True),
    19: functools.partial(_at_share, quarters=True, exclusive=True),
}

_QUANTILES = {
    "PERCENTILE": _quantile(quarters=False, exclusive=False),
    "QUARTILE": _quantile(quarters=True, exclusive=False),
    "_XLFN.PERCENTILE.EXC": _quantile(quarters=False, exclusive=True),
    "_XLFN.QUARTILE.EXC": _quantile(quarters=True, exclusive=True),
}

_SPREADS = {
    "VAR": _variance(sample=True, root=False), "VARP": _variance(sample=False, root=False),
    "STDEV": _variance(sample=True, root=True), "STDEVP": _variance(sample=False, root=True),
}  # fmt: skip

COUNTING_FUNCTIONS: dict[str, Function] = {
    "SUM": _of_all(_total),
    "AVERAGE": _of_all(_average),
    "AND": _logical(all),
    "OR": _logical(any),
    "_XLFN.XOR": _logical(lambda tests: sum(tests) % 2 == 1),
    "IRR": _internal_rate,
    **dict.fromkeys(("MODE", "_XLFN.MODE.SNGL"), _most_frequent),
    **_QUANTILES,
    "_XLFN.PERCENTILE.INC": _QUANTILES["PERCENTILE"],
    "_XLFN.QUARTILE.INC": _QUANTILES["QUARTILE"],
    **{name: _of_numbers_in(total) for name, total in _SPREADS.items()},
    "_XLFN.VAR.S": _of_numbers_in(_SPREADS["VAR"]),
    "_XLFN.VAR.P": _of_numbers_in(_SPREADS["VARP"]),
    "_XLFN.STDEV.S": _of_numbers_in(_SPREADS["STDEV"]),
    "_XLFN.STDEV.P": _of_numbers_in(_SPREADS["STDEVP"]),
    "DEVSQ": _of_numbers_in(_squared_deviations),
    "AVEDEV": _of_numbers_in(_mean_deviation),
    "MEDIAN": _of_numbers_in(_median),
    "MAX": _of_numbers_in(_greatest),
    "MIN": _of_numbers_in(_least),
    "PRODUCT": _of_numbers_in(_product),
    "LARGE": _ranked(largest=True),
    "SMALL": _ranked(largest=False),
    "SUBTOTAL": _subtotal,
    "AGGREGATE": _aggregate,
    "_XLFN.AGGREGATE": _aggregate,
    "COUNT": _count(filled=False),
    "COUNTA": _count(filled=True),
    "COUNTIF": _countif,
    "COUNTIFS": _countifs,
    "SUMIF": _by_one(_total),
    "AVERAGEIF": _by_one(_average),
    "SUMIFS": _by_several(_total),
    "AVERAGEIFS": _by_several(_average),
    "_XLFN.MAXIFS": _by_several(_greatest),
    "_XLFN.MINIFS": _by_several(_least),
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
