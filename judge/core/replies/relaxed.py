"""Reads JSON as chat models write it: trailing commas, comments, single quotes, tuples, True.

Reads only literals and evaluates nothing. Pure.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

MAX_DEPTH = 100
"""How deep objects and lists may be nested."""

MAX_DIGITS = 1_000
"""How many digits a whole number may have; longer numbers are refused."""

_MAX_EXACT_FLOAT = 2.0**53  # below it, floats represent every whole number
_BLANK = re.compile(r"(?:[\s\ufeff]++|//[^\n]*+|\#[^\n]*+)*+")
_NUMBER = re.compile(r"[-+]?+(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][-+]?+\d++)?+", re.ASCII)
_NAME = re.compile(r"[-+]?+[A-Za-z]++")
_DOUBLE = re.compile(r'"(?P<body>(?:[^"\\\n]++|\\.)*+)"', re.DOTALL)
_SINGLE = re.compile(r"'(?P<body>(?:[^'\\\n]++|\\.)*+)'", re.DOTALL)
_ESCAPED_SINGLE = re.compile(r"\\.|\"", re.DOTALL)
_NAMES: dict[str, object] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "None", "NULL", "nan", "NaN", "Infinity", "inf")),
    **dict.fromkeys(("-Infinity", "-inf", "+Infinity", "+inf", "-NaN", "-nan")),
}
_CLOSING = {"[": "]", "(": ")"}


class NotLiteralError(Exception):
    """No literal begins at an index.

    Attributes:
        position: the index where reading ended.
        is_deep: whether it would be a literal if it were nested less deeply.
    """

    def __init__(self, position: int, *, is_deep: bool = False) -> None:
        super().__init__(position)
        self.position = position
        self.is_deep = is_deep


@dataclass(slots=True)
class _Reader:
    text: str
    position: int

    def skip(self) -> str:
        """Skips spaces and comments; returns the next character, empty at the end."""
        match = _BLANK.match(self.text, self.position)
        self.position = self.position if match is None else match.end()
        return self.text[self.position : self.position + 1]

    def value(self, depth: int) -> object:
        if depth > MAX_DEPTH:
            raise NotLiteralError(self.position, is_deep=True)
        sign = self.skip()
        if sign == "{":
            return self._object(depth)
        if sign in _CLOSING and sign:
            return self._list(depth, sign)
        if sign in {'"', "'"} and sign:
            return self._string(sign)
        return self._number() if _NUMBER.match(self.text, self.position) else self._name()

    def _object(self, depth: int) -> dict[str, object]:
        members: dict[str, object] = {}
        self.position += 1
        while (sign := self.skip()) != "}":
            if sign not in {'"', "'"}:
                raise NotLiteralError(self.position)
            key = self._string(sign)
            if self.skip() != ":":
                raise NotLiteralError(self.position)
            self.position += 1
            members[key] = self.value(depth + 1)
            self._comma("}")
        self.position += 1
        return members

    def _list(self, depth: int, opening: str) -> object:
        closing, items, commas = _CLOSING[opening], [], 0
        self.position += 1
        while self.skip() != closing:
            items.append(self.value(depth + 1))
            commas += self._comma(closing)
        self.position += 1
        # (3) is a number in parentheses, (3,) a list.
        return items[0] if opening == "(" and len(items) == 1 and not commas else items

    def _comma(self, closing: str) -> bool:
        sign = self.skip()
        if sign == ",":
            self.position += 1
        elif sign != closing:
            raise NotLiteralError(self.position)
        return sign == ","

    def _string(self, quote: str) -> str:
        match = (_DOUBLE if quote == '"' else _SINGLE).match(self.text, self.position)
        if match is None:
            raise NotLiteralError(self.position)
        self.position = match.end()
        body = match["body"]
        if quote == "'":
            body = _ESCAPED_SINGLE.sub(_as_double, body)
        try:
            text = json.loads(f'"{body}"', strict=False)
        except ValueError:
            # A backslash of an escape that JSON does not have, as in LaTeX, is kept.
            text = body
        return str(text)

    def _number(self) -> object:
        match = _NUMBER.match(self.text, self.position)
        assert match is not None, "the caller has looked"
        self.position = match.end()
        if self.text[match.end() : match.end() + 1].isalnum():
            raise NotLiteralError(self.position)
        if match[0].lstrip("-+").isdecimal():
            if len(match[0]) > MAX_DIGITS:
                raise NotLiteralError(self.position)
            return int(match[0])
        number = number_of(match[0])
        return number if number is not None and math.isfinite(number) else None

    def _name(self) -> object:
        match = _NAME.match(self.text, self.position)
        if match is None or match[0] not in _NAMES:
            raise NotLiteralError(self.position)
        self.position = match.end()
        return _NAMES[match[0]]


def _as_double(match: re.Match[str]) -> str:
    return {"\\'": "'", '"': '\\"'}.get(match[0], match[0])


def number_of(digits: str) -> float | None:
    """Reads a number from its digits, with an optional point or exponent.

    A whole number with more digits than a float can hold is kept exactly:
    ``9007199254740993.0`` is not ``9007199254740992``.

    Returns:
        The number; None if it has too many digits.
    """
    try:
        if digits.lstrip("-+").isdecimal():
            return int(digits)
        number = float(digits)
        if not _MAX_EXACT_FLOAT <= abs(number) < math.inf:
            return number
        stated = Decimal(digits)
        return int(stated) if stated == stated.to_integral_value() else number
    except (ValueError, ArithmeticError):
        return None


def object_in(reply: str) -> Any:
    """The JSON object of a reply that was to hold nothing else: from the first brace to the last.

    Raises:
        ValueError: that is not JSON.
        RecursionError: it is nested too deeply.
    """
    return json.loads(reply[reply.find("{") : reply.rfind("}") + 1])


def read_literal(text: str, start: int = 0) -> tuple[object, int]:
    """Reads one literal: an object, a list, a string, a number, a name such as ``true``.

    Args:
        text: the text with the literal.
        start: the index at which the literal begins.

    Returns:
        The value, and the index after the literal. NaN and infinities become None.

    Raises:
        NotLiteralError: no literal begins there.
    """
    reader = _Reader(text, start)
    return reader.value(0), reader.position
