"""Arithmetic out of a string, evaluated over its syntax tree within bounds; nothing is executed.

Only the operators of arithmetic are known. What a string would do in addition to that, such as a
call, is never carried out: its value counts as a number that is not known (:data:`UNKNOWN`).
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

MAX_CHARS = 1_000
"""The longest expression that is evaluated."""

MAX_NODES = 500
_MAX_BITS = 20_000
_MAX_TEXT = 100_000


class ExpressionError(Exception):
    """The string is not arithmetic, or has no value; says why."""


class UnboundedError(Exception):
    """Evaluating it would take more than the bounds allow."""


class _Unknown:
    """A number that only executing the string would give."""

    def __repr__(self) -> str:
        return "a number that is not known"


UNKNOWN = _Unknown()
"""The value of everything that is not carried out."""

Value = int | float | complex | str | _Unknown


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The value of an expression, and what it is made of.

    Attributes:
        value: the value.
        operands: the numbers in it, in order, signs left out.
    """

    value: Value
    operands: tuple[float, ...]


_BINARY: Mapping[type[ast.operator], Callable[..., Value]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_UNARY: Mapping[type[ast.unaryop], Callable[..., Value]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}


def evaluate(text: str, *, guess: bool = False) -> Arithmetic:
    """The value of an expression.

    Args:
        text: the expression, as Python writes it.
        guess: whether text, lengths and calls are accepted as well: what is not arithmetic then
            is :data:`UNKNOWN`. Otherwise only numbers, ``+ - * / // % **`` and parentheses are.

    Raises:
        ExpressionError: it is not arithmetic, or has no value (a division by zero).
        UnboundedError: it is too long, or its numbers become too large.
    """
    if len(text) > MAX_CHARS:
        raise UnboundedError(f"longer than {MAX_CHARS:,} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ExpressionError("not an arithmetic expression") from error
    if sum(1 for _ in ast.walk(tree)) > MAX_NODES:
        raise UnboundedError(f"more than {MAX_NODES:,} terms")
    walk = _Walk(guess)
    try:
        value = walk.value(tree.body)
    except (ZeroDivisionError, OverflowError, TypeError, ValueError) as error:
        raise ExpressionError(f"has no value: {error}") from error
    return Arithmetic(value, tuple(walk.operands))


class _Walk:
    """Evaluates a tree of at most :data:`MAX_NODES` nodes."""

    def __init__(self, guess: bool) -> None:
        self._guess = guess
        self.operands: list[float] = []

    def value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=bool()):
                return self._other(node)
            case ast.Constant(value=int() | float() as number):
                self.operands.append(number)
                return number
            case ast.Constant(value=str() as text) if self._guess:
                return text
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
                inner = self.value(operand)
                return UNKNOWN if inner is UNKNOWN else _UNARY[type(op)](inner)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return self._binary(self.value(left), op, self.value(right))
            case _:
                return self._other(node)

    def _binary(self, left: Value, op: ast.operator, right: Value) -> Value:
        if left is UNKNOWN or right is UNKNOWN:
            # Whatever the number is, nothing remains of it.
            is_zero = isinstance(op, ast.Mult) and 0 in (left, right)
            return 0 if is_zero else UNKNOWN
        has_text = isinstance(left, str) or isinstance(right, str)
        if has_text and not isinstance(op, ast.Mult | ast.Add):
            return UNKNOWN  # "%9999999d" % 1 is not arithmetic
        _check_size(left, op, right)
        result = _BINARY[type(op)](left, right)
        if isinstance(result, complex):
            raise ExpressionError("its value is not a real number")
        return result

    def _other(self, node: ast.expr) -> Value:
        """What is not arithmetic."""
        if not self._guess:
            raise ExpressionError("holds something other than numbers, + - * / and parentheses")
        match node:
            case ast.Constant(value=bool() as truth):
                return int(truth)
            case ast.Call(func=ast.Name(id="len"), args=[argument], keywords=[]):
                inner = self.value(argument)
                return len(inner) if isinstance(inner, str) else UNKNOWN
            case ast.Name():
                raise ExpressionError(f"the name {node.id!r:.40} has no value")
            case _:
                return UNKNOWN


def _check_size(left: Value, op: ast.operator, right: Value) -> None:
    """Refuses what would become too large, before it is computed.

    Raises:
        UnboundedError: it would.
    """
    for text, times in ((left, right), (right, left)):
        if isinstance(op, ast.Mult) and isinstance(text, str) and isinstance(times, int):
            if len(text) * times > _MAX_TEXT:
                raise UnboundedError("text that becomes too long")
            return
    if not (isinstance(left, int) and isinstance(right, int)):
        return
    bits = {
        ast.Pow: left.bit_length() * max(right, 0) if abs(left) > 1 else 0,
        ast.Mult: left.bit_length() + right.bit_length(),
    }.get(type(op), 0)
    if bits > _MAX_BITS:
        raise UnboundedError("numbers that become too large")
