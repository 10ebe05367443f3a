"""Rules for the variables of a typed answer, and evaluation of arithmetic.

Arithmetic in a string is evaluated on its syntax tree within bounds; no code is executed. Only
arithmetic operators are evaluated. Anything else in a string, such as a call, is never executed:
its value counts as an unknown number (:data:`UNKNOWN`).
"""

from __future__ import annotations

import ast
import enum
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

VARIABLES = "variables"
"""Option: name of a variable -> its rule, see :func:`read_rules`."""

MAX_VARIABLES = 1_000  # of a task

_Choice = TypeVar("_Choice", bound=enum.StrEnum)


class AnswerType(enum.StrEnum):
    """The type of a variable's value."""

    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    TEXT = "text"
    LIST = "list"
    """A list, a list of lists, or an array of any depth."""
    EXPRESSION = "expression"
    """Arithmetic in a string; both its value and the numbers that it uses are compared."""


class Match(enum.StrEnum):
    """How a value is compared with the gold."""

    EXACT = "exact"
    FUZZY = "fuzzy"
    """Text that equals the gold ignoring case, or contains it."""
    ONE_OF = "one_of"
    """The gold is a list of values; any one of them is correct."""
    ANY_ORDER = "any_order"
    """A list in any order; inside nested lists, the order counts."""


_FIELDS = frozenset({"type", "match", "tolerance", "relative_tolerance", "operands"})
_FITTING = {
    AnswerType.INT: {Match.EXACT, Match.ONE_OF},
    AnswerType.FLOAT: {Match.EXACT, Match.ONE_OF},
    AnswerType.BOOL: {Match.EXACT},
    AnswerType.TEXT: {Match.EXACT, Match.FUZZY, Match.ONE_OF},
    AnswerType.LIST: {Match.EXACT, Match.ANY_ORDER},
    AnswerType.EXPRESSION: {Match.EXACT},
}


@dataclass(frozen=True, slots=True)
class VariableRule:
    """What is expected of a variable.

    Attributes:
        type: type of its value.
        match: how it is compared.
        tolerance: how far a number may be from the gold's; None for the default.
        relative_tolerance: the same as a share of the gold; None for the default.
        operands: the numbers that an expression has to use, each as often as it is listed; None for
            the numbers of the gold.
    """

    type: AnswerType
    match: Match = Match.EXACT
    tolerance: float | None = None
    relative_tolerance: float | None = None
    operands: tuple[float, ...] | None = None

    @property
    def described(self) -> str:
        """The rule in a few words: ``float, within 0.01``."""
        words = [self.type.value]
        if self.match is not Match.EXACT:
            words.append(self.match.value.replace("_", " "))
        if self.tolerance is not None:
            words.append(f"within {self.tolerance:g}")
        if self.operands is not None:
            words.append("of " + ", ".join(f"{operand:g}" for operand in self.operands))
        return ", ".join(words)

    def as_json(self) -> dict[str, object]:
        """Returns the rule as a suite's options state it, without fields that have defaults."""
        record: dict[str, object] = {"type": self.type.value}
        if self.match is not Match.EXACT:
            record["match"] = self.match.value
        if self.tolerance is not None:
            record["tolerance"] = self.tolerance
        if self.relative_tolerance is not None:
            record["relative_tolerance"] = self.relative_tolerance
        if self.operands is not None:
            record["operands"] = list(self.operands)
        return record


def read_rules(value: object) -> dict[str, VariableRule]:
    """Reads the rules of all variables from the option ``variables``.

    Args:
        value: name of a variable -> its rule: ``type``, and optionally ``match``, ``tolerance``,
            ``relative_tolerance`` and ``operands``.

    Raises:
        ValueError: a rule is invalid; the message names the variable, the field and the reason.
    """
    if not isinstance(value, Mapping) or not value:
        raise ValueError("must be an object: name of a variable -> its rule")
    if len(value) > MAX_VARIABLES:
        raise ValueError(f"has more than {MAX_VARIABLES:,} variables")
    return {str(name): _read_rule(str(name), rule) for name, rule in value.items()}


def _read_rule(name: str, value: object) -> VariableRule:
    if not isinstance(value, Mapping):
        raise ValueError(f"variable {name!r}: must be an object with a type")  # noqa: TRY004
    for field in value:
        if field not in _FIELDS:
            raise ValueError(f"variable {name!r}: the field {field!r} does not exist")
    kind = _choice(AnswerType, name, "type", value.get("type"))
    match = _choice(Match, name, "match", value.get("match", Match.EXACT.value))
    if match not in _FITTING[kind]:
        raise ValueError(
            f"variable {name!r}: match {match.value!r} does not fit type {kind.value!r}"
        )
    for field in ("tolerance", "relative_tolerance"):
        bound = value.get(field)
        if bound is not None and not (_is_number(bound) and bound >= 0):
            raise ValueError(f"variable {name!r}: {field} must be 0 or a positive number")
    operands = value.get("operands")
    if operands is not None and not (
        isinstance(operands, list | tuple) and all(_is_number(operand) for operand in operands)
    ):
        raise ValueError(f"variable {name!r}: operands must be a list of numbers")
    return VariableRule(
        kind,
        match,
        tolerance=value.get("tolerance"),
        relative_tolerance=value.get("relative_tolerance"),
        operands=None if operands is None else tuple(operands),
    )


def _choice(choices: type[_Choice], name: str, field: str, value: object) -> _Choice:
    try:
        return choices(str(value))
    except ValueError:
        choices_text = ", ".join(choice.value for choice in choices)
        raise ValueError(f"variable {name!r}: {field} must be one of {choices_text}") from None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def problem_of_gold(rule: VariableRule, gold: object) -> str | None:
    """Returns why a value cannot be the gold of a variable; None if it can."""
    if rule.match is Match.ONE_OF:
        if not isinstance(gold, list) or not gold:
            return "must be a list of the values that are right"
        problems = (_problem_of_value(rule.type, value) for value in gold)
        return next((problem for problem in problems if problem is not None), None)
    return _problem_of_value(rule.type, gold)


def _problem_of_value(kind: AnswerType, gold: object) -> str | None:
    is_text = isinstance(gold, str)
    fits = {
        # The published suites write two whole numbers as text.
        AnswerType.INT: _is_number(gold)
        or (is_text and str(gold).strip().lstrip("-+").isdecimal()),
        AnswerType.FLOAT: _is_number(gold),
        AnswerType.BOOL: isinstance(gold, bool),
        AnswerType.TEXT: is_text,
        AnswerType.LIST: isinstance(gold, list),
        AnswerType.EXPRESSION: is_text,
    }
    if fits[kind]:
        return None
    type_words = {
        AnswerType.INT: "a whole number",
        AnswerType.FLOAT: "a number",
        AnswerType.BOOL: "true or false",
        AnswerType.TEXT: "text",
        AnswerType.LIST: "a list",
        AnswerType.EXPRESSION: "an arithmetic expression in a string",
    }
    return f"must be {type_words[kind]}"


MAX_CHARS = 1_000
"""Length of the longest expression that is evaluated, in characters."""

MAX_NODES = 500  # of the syntax tree of an expression
_MAX_BITS = 20_000  # of a whole number; a power can become huge
_MAX_TEXT_CHARS = 100_000  # of a string that repetition makes


class ExpressionError(Exception):
    """A string is not arithmetic, or has no value; the message says why."""


class UnboundedError(Exception):
    """Evaluating an expression would exceed the bounds."""


class _Unknown:
    """A number that could only be computed by executing code."""

    def __repr__(self) -> str:
        return "a number that is not known"


UNKNOWN = _Unknown()
"""The value of every part that is not evaluated."""

Value = int | float | complex | str | _Unknown


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The value of an expression, and the numbers in it.

    Attributes:
        value: the value.
        operands: the numbers in it, in order, without their signs.
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
    """Evaluates an expression.

    Args:
        text: the expression, in Python's notation.
        guess: whether to accept text, lengths and calls as well. Anything that is not arithmetic
            then has the value :data:`UNKNOWN`. Otherwise only numbers, ``+ - * / // % **`` and
            parentheses are accepted.

    Raises:
        ExpressionError: the text is not arithmetic, or has no value (division by zero).
        UnboundedError: the expression is too long, or its numbers become too large.
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
            # Zero times an unknown value is zero.
            is_zero = isinstance(op, ast.Mult) and 0 in (left, right)
            return 0 if is_zero else UNKNOWN
        has_text = isinstance(left, str) or isinstance(right, str)
        if has_text and not isinstance(op, ast.Mult | ast.Add):
            return UNKNOWN  # "%9999999d" % 1 formats text, which is not arithmetic
        _check_size(left, op, right)
        result = _BINARY[type(op)](left, right)
        if isinstance(result, complex):
            raise ExpressionError("its value is not a real number")
        return result

    def _other(self, node: ast.expr) -> Value:
        """Returns the value of a node that is not an arithmetic operation."""
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
    """Rejects an operation whose result would be too large, before it is computed.

    Raises:
        UnboundedError: the result would be too large.
    """
    for text, times in ((left, right), (right, left)):
        if isinstance(op, ast.Mult) and isinstance(text, str) and isinstance(times, int):
            if len(text) * times > _MAX_TEXT_CHARS:
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
