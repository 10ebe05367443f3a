"""Computes LET, LAMBDA and the functions that call one, as Microsoft documents them. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from judge.formulas.tree import Call, Missing, Node, Parameter
from judge.recalc.functions.arrays import (
    MAX_VALUES,
    ArrayFunction,
    ArrayResult,
    all_of,
    array_of,
    of_values,
    one_of,
    single,
    whole_number_of,
)
from judge.recalc.functions.conversions import UnsureError
from judge.recalc.functions.criteria import Cells
from judge.recalc.functions.scalars import Evaluation


def _let(evaluation: Evaluation, arguments: Sequence[Node]) -> Cells:
    if len(arguments) < 3 or len(arguments) % 2 == 0:
        raise UnsureError
    names: dict[str, Cells] = {}
    for name, value in zip(arguments[:-1:2], arguments[1::2], strict=True):
        if not isinstance(name, Parameter):
            raise UnsureError
        with evaluation.naming(names):
            names[name.name] = all_of(evaluation, value)
    with evaluation.naming(names):
        return array_of(evaluation, arguments[-1])


_ETA = "_XLETA."


def lambda_of(node: Node, parameters: int) -> Callable[[Evaluation, Sequence[Cells]], Cells]:
    """A Python function that computes a LAMBDA, or the named function that replaces one."""
    if isinstance(node, Parameter) and node.name.startswith(_ETA):
        return _of_function(node.name.removeprefix(_ETA), parameters)
    if not isinstance(node, Call) or node.name != "_XLFN.LAMBDA":
        raise UnsureError
    names = [name.name for name in node.arguments[:-1] if isinstance(name, Parameter)]
    if len(names) != len(node.arguments) - 1 or len(names) != parameters:
        raise UnsureError

    def call(evaluation: Evaluation, values: Sequence[Cells]) -> Cells:
        evaluation.values.spend(1)
        evaluation.converted = True
        with evaluation.naming(dict(zip(names, values, strict=True))), evaluation.spreading():
            return array_of(evaluation, node.arguments[-1])

    return call


def _of_function(name: str, parameters: int) -> Callable[[Evaluation, Sequence[Cells]], Cells]:
    nodes = tuple(Parameter(f"_XLPM.{number}") for number in range(parameters))

    def call(evaluation: Evaluation, values: Sequence[Cells]) -> Cells:
        evaluation.values.spend(1)
        evaluation.converted = True
        names = dict(zip((node.name for node in nodes), values, strict=True))
        prefixed = name if name in evaluation.functions else f"_XLFN.{name}"
        with evaluation.naming(names), evaluation.spreading():
            return array_of(evaluation, Call(prefixed, nodes))

    return call


def _map(evaluation: Evaluation, arguments: Sequence[Node]) -> Cells:
    parts = [all_of(evaluation, argument) for argument in arguments[:-1]]
    call = lambda_of(arguments[-1], len(parts))
    rows, columns = max(part.rows for part in parts), max(part.columns for part in parts)
    if any((part.rows, part.columns) != (rows, columns) for part in parts):
        raise UnsureError
    groups = zip(*map(Cells.all_values, parts), strict=True)
    results = [one_of(call(evaluation, [*map(single, values)])) for values in groups]
    return of_values(rows, columns, results)


def _accumulated(evaluation: Evaluation, arguments: Sequence[Node]) -> tuple[Cells, list[Cells]]:
    """The array of REDUCE or SCAN, and the accumulated result after each of its values."""
    if len(arguments) != 3 or isinstance(arguments[0], Missing):
        raise UnsureError
    cells, call = all_of(evaluation, arguments[1]), lambda_of(arguments[2], 2)
    steps = [all_of(evaluation, arguments[0])]
    for value in cells.all_values():
        steps.append(call(evaluation, [steps[-1], single(value)]))
    return cells, steps[1:]


def _reduce(evaluation: Evaluation, arguments: Sequence[Node]) -> Cells:
    return _accumulated(evaluation, arguments)[1][-1]


def _scan(evaluation: Evaluation, arguments: Sequence[Node]) -> Cells:
    cells, steps = _accumulated(evaluation, arguments)
    return of_values(cells.rows, cells.columns, [*map(one_of, steps)])


def _by_line(*, rows: bool) -> ArrayFunction:
    """Computes BYROW and BYCOL."""

    def call(evaluation: Evaluation, arguments: Sequence[Node]) -> Cells:
        if len(arguments) != 2:
            raise UnsureError
        cells, call = all_of(evaluation, arguments[0]), lambda_of(arguments[1], 1)
        values = [*cells.all_values()]
        wide = cells.columns
        lines = (
            [of_values(1, wide, values[at * wide : (at + 1) * wide]) for at in range(cells.rows)]
            if rows
            else [of_values(cells.rows, 1, values[at::wide]) for at in range(wide)]
        )
        results = [one_of(call(evaluation, [line])) for line in lines]
        return of_values(len(results), 1, results) if rows else of_values(1, len(results), results)

    return call


def _makearray(evaluation: Evaluation, arguments: Sequence[Node]) -> Cells:
    if len(arguments) != 3:
        raise UnsureError
    rows, columns = (whole_number_of(evaluation, argument) for argument in arguments[:2])
    if rows < 1 or columns < 1:
        raise UnsureError
    call = lambda_of(arguments[2], 2)
    positions = itertools.product(range(1, rows + 1), range(1, columns + 1))
    if rows * columns > MAX_VALUES:
        raise UnsureError
    results = [one_of(call(evaluation, [single(row), single(column)])) for row, column in positions]
    return of_values(rows, columns, results)


LAMBDA_FUNCTIONS: dict[str, ArrayResult] = {
    "_XLFN.LET": ArrayResult(_let),
    "_XLFN.MAP": ArrayResult(_map),
    "_XLFN.REDUCE": ArrayResult(_reduce),
    "_XLFN.SCAN": ArrayResult(_scan),
    "_XLFN.BYROW": ArrayResult(_by_line(rows=True)),
    "_XLFN.BYCOL": ArrayResult(_by_line(rows=False)),
    "_XLFN.MAKEARRAY": ArrayResult(_makearray),
}
