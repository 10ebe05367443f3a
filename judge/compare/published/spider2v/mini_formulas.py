"""Computes formulas of conditions from given values: comparisons, arithmetic, common functions.

Results are those of the package ``formulas`` 1.3.4, which the published functions use: an error
counts as true, and so does anything that is not false, zero or empty.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge.formulas.lexer import Kind, is_range, tokens

_NAME = re.compile(r"[A-Za-z_][\w.]*")
_SIGNS = frozenset(("<>", "<=", ">=", *"=<>+-*/^&%(),;"))
_MAX_CHARS = 2000
_MAX_DEPTH = 40


class CannotComputeError(Exception):
    """The formula cannot be computed here."""


@dataclass(frozen=True, slots=True)
class ErrorResult:
    """An error such as ``#VALUE!``."""

    code: str


_VALUE_ERROR = ErrorResult("#VALUE!")
_Node = Callable[[Mapping[str, object]], object]


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula that was read.

    Attributes:
        inputs: its references without dollar signs or repetitions, in alphabetical order.
        node: the function that computes it.
    """

    inputs: tuple[str, ...]
    node: _Node

    def compute(self, given: Mapping[str, object]) -> object:
        """Returns the result of the formula for given values.

        Raises:
            CannotComputeError: a function or a type is not known here.
        """
        return self.node(given)

    def holds(self, given: Mapping[str, object]) -> bool:
        """Returns whether the result counts as true.

        Raises:
            CannotComputeError: a function or a type is not known here.
        """
        result = self.node(given)
        return True if isinstance(result, ErrorResult) else bool(result)


def read_formula(text: str) -> Formula:
    """Reads a formula without its leading ``=``.

    Raises:
        CannotComputeError: it cannot be computed here.
    """
    if len(text) > _MAX_CHARS:
        raise CannotComputeError("the formula is too long")
    parser = _Parser(text)
    node = parser.expression(0)
    if parser.kind is not None:
        raise CannotComputeError(f"{parser.text!r} is not expected")
    return Formula(tuple(sorted(parser.inputs)), node)


def _read(text: str) -> list[tuple[str, str]]:
    """The kind and the text of each token of a formula, last first.

    Raises:
        CannotComputeError: it contains anything else.
    """
    words = [token for token in tokens(text) if token.kind is not Kind.SPACE]
    read: list[tuple[str, str]] = []
    index = 0
    while index < len(words):
        token = words[index]
        end = index + 1
        if token.kind is Kind.CELL:
            end = index + (3 if is_range(words, index) else 1)
            read.append(("area", "".join(word.text for word in words[index:end])))
        elif token.kind in (Kind.TEXT, Kind.NUMBER):
            read.append((token.kind, token.text))
        elif token.kind in (Kind.NAME, Kind.FUNCTION) and _NAME.fullmatch(token.text):
            read.append(("name", token.text))
        elif token.text in _SIGNS:
            read.append(("sign", token.text))
        else:
            raise CannotComputeError(f"{text[token.start : token.start + 10]!r} cannot be read")
        index = end
    return read[::-1]


class _Parser:
    """Reads a formula by precedence."""

    def __init__(self, text: str) -> None:
        self._tokens = _read(text)
        self.inputs: set[str] = set()
        self._depth = 0

    @property
    def kind(self) -> str | None:
        return self._tokens[-1][0] if self._tokens else None

    @property
    def text(self) -> str:
        return self._tokens[-1][1] if self._tokens else ""

    def _take(self) -> str:
        return self._tokens.pop()[1]

    def _expect(self, sign: str) -> None:
        if self.text != sign:
            raise CannotComputeError(f"expected {sign!r}, found {self.text!r}")
        self._take()

    def expression(self, least: int) -> _Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise CannotComputeError("the formula nests too deep")
        left = self._operand()
        while self.kind == "sign" and (binary := _BINARY.get(self.text)) and binary[0] > least:
            self._take()
            left = _joined(binary[1], left, self.expression(binary[0]))
        self._depth -= 1
        return left

    def _operand(self) -> _Node:
        if self.kind is None:
            raise CannotComputeError("the formula ends too early")
        kind = self.kind
        word = self._take()
        node: _Node
        if kind == "number":
            amount = float(word)
            node = lambda _: amount  # noqa: E731
        elif kind == "text":
            text = word[1:-1].replace('""', '"')
            node = lambda _: text  # noqa: E731
        elif kind == "area":
            name = _plain_area(word)
            self.inputs.add(name)
            node = lambda given: given[name]  # noqa: E731
        elif kind == "name":
            node = self._named(word.upper())
        elif word in "+-":
            inner = self.expression(5)
            node = inner if word == "+" else _joined(operator.sub, lambda _: 0.0, inner)
        elif word == "(":
            node = self.expression(0)
            self._expect(")")
        else:
            raise CannotComputeError(f"{word!r} is not expected")
        while self.text == "%":
            self._take()
            node = _joined(operator.truediv, node, lambda _: 100.0)
        return node

    def _named(self, name: str) -> _Node:
        if self.text != "(":
            if name in {"TRUE", "FALSE"}:
                return lambda _: name == "TRUE"
            raise CannotComputeError(f"the name {name} is not known")
        self._take()
        arguments: list[_Node] = []
        while self.text != ")":
            arguments.append(self.expression(0))
            if self.text != ")":
                self._expect(",")
        self._take()
        if name in {"TRUE", "FALSE"} and not arguments:
            return lambda _: name == "TRUE"
        function = _FUNCTIONS.get(name)
        if function is None:
            raise CannotComputeError(f"the function {name} is not known")
        return lambda given: _called(function, [argument(given) for argument in arguments])


def _plain_area(reference: str) -> str:
    ends = reference.replace("$", "").upper().split(":")
    return ends[0] if len(set(ends)) == 1 else ":".join(ends)


def _called(function: Callable[..., object], arguments: Sequence[object]) -> object:
    if function not in _TAKES_ERRORS:
        for argument in arguments:
            if isinstance(argument, ErrorResult):
                return argument
    try:
        return function(*arguments)
    except TypeError as error:
        raise CannotComputeError(str(error)) from error
    except (ValueError, ZeroDivisionError, OverflowError, AttributeError):
        return _VALUE_ERROR


def _joined(join: Callable[[object, object], object], left: _Node, right: _Node) -> _Node:
    def compute(given: Mapping[str, object]) -> object:
        first, second = left(given), right(given)
        for operand in (first, second):
            if isinstance(operand, ErrorResult):
                return operand
            if isinstance(operand, list):
                raise CannotComputeError("a range where one value belongs")
        try:
            return join(first, second)
        except ZeroDivisionError:
            return ErrorResult("#DIV/0!")
        except (TypeError, ValueError, OverflowError):
            return _VALUE_ERROR

    return compute


def _rank(value: object) -> tuple[int, object]:
    """Excel's order of types: numbers, strings, truth values."""
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, str):
        return 1, value.upper()
    if value is None:
        raise TypeError("a blank has no order")
    return 0, value


def _ordered(compare: Callable[[Any, Any], Any]) -> Callable[[object, object], object]:
    return lambda first, second: bool(compare(_rank(first), _rank(second)))


def _equal(first: object, second: object) -> bool:
    if first is None or second is None:
        return first is second
    return _rank(first) == _rank(second)


def _amount(value: object) -> float:
    if value is None:
        return 0.0
    return float(value)  # type: ignore[arg-type]


def _arithmetic(compute: Callable[[float, float], float]) -> Callable[[object, object], object]:
    return lambda first, second: compute(_amount(first), _amount(second))


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


_BINARY: Mapping[str, tuple[int, Callable[[object, object], object]]] = {
    "=": (1, _equal),
    "<>": (1, lambda first, second: not _equal(first, second)),
    "<": (1, _ordered(operator.lt)),
    ">": (1, _ordered(operator.gt)),
    "<=": (1, _ordered(operator.le)),
    ">=": (1, _ordered(operator.ge)),
    "&": (2, lambda first, second: _text(first) + _text(second)),
    "+": (3, _arithmetic(operator.add)),
    "-": (3, _arithmetic(operator.sub)),
    "*": (4, _arithmetic(operator.mul)),
    "/": (4, _arithmetic(operator.truediv)),
    "^": (5, _arithmetic(math.pow)),
}


def _numbers(arguments: Sequence[object]) -> list[float]:
    flat: list[object] = []
    for argument in arguments:
        flat.extend(argument if isinstance(argument, list) else [argument])
    return [
        float(value)
        for value in flat
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]


def _search(what: object, within: object, start: object = 1.0) -> float:
    return _text(within).upper().index(_text(what).upper(), int(_amount(start)) - 1) + 1.0


def _find(what: object, within: object, start: object = 1.0) -> float:
    return _text(within).index(_text(what), int(_amount(start)) - 1) + 1.0


def _is_error(value: object) -> bool:
    return isinstance(value, ErrorResult)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _if(condition: object, then: object = True, otherwise: object = False) -> object:
    return then if condition else otherwise


def _right(text: object, count: object = 1.0) -> str:
    length = int(_amount(count))
    return _text(text)[-length:] if length else ""


_FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "AND": lambda *values: all(map(bool, values)),
    "OR": lambda *values: any(map(bool, values)),
    "NOT": lambda value: not value,
    "IF": _if,
    "MAX": lambda *values: max(_numbers(values), default=0.0),
    "MIN": lambda *values: min(_numbers(values), default=0.0),
    "SUM": lambda *values: math.fsum(_numbers(values)),
    "AVERAGE": lambda *values: math.fsum(_numbers(values)) / len(_numbers(values)),
    "COUNT": lambda *values: float(len(_numbers(values))),
    "ABS": lambda value: abs(_amount(value)),
    "INT": lambda value: float(math.floor(_amount(value))),
    "MOD": lambda value, by: (
        _amount(value) - _amount(by) * math.floor(_amount(value) / _amount(by))
    ),
    "ROUND": lambda value, digits: round(_amount(value), int(_amount(digits))),
    "LEN": lambda value: float(len(_text(value))),
    "LEFT": lambda value, count=1.0: _text(value)[: int(_amount(count))],
    "RIGHT": _right,
    "MID": lambda value, start, count: _text(value)[
        int(_amount(start)) - 1 : int(_amount(start)) - 1 + int(_amount(count))
    ],
    "UPPER": lambda value: _text(value).upper(),
    "LOWER": lambda value: _text(value).lower(),
    "TRIM": lambda value: " ".join(_text(value).split()),
    "SEARCH": _search,
    "FIND": _find,
    "ISNUMBER": _is_number,
    "ISTEXT": lambda value: isinstance(value, str),
    "ISERROR": _is_error,
    "ISBLANK": lambda value: False,  # noqa: ARG005 - the argument is never a blank cell
}
_TAKES_ERRORS = {_is_error, _is_number, _FUNCTIONS["ISTEXT"]}
