"""Parses formulas into trees. Pure.

Parses only what a small evaluator supports: constants, cells, ranges, operators, calls. Source of
the precedence of operators: ECMA-376 part 1, 18.17.2.2 (a sign binds more strongly than ``^``).
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from judge.formulas.lexer import Kind, Token, is_range, is_too_long, sheet_of, tokens
from judge.formulas.references import Area, Reference, reference, references, with_form


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A number, a string, or a logical value; None stands for a blank cell."""

    value: float | str | bool | None

    def __eq__(self, other: object) -> bool:
        """Whether the other node is the same constant; TRUE and 1 differ, and so do 0 and -0."""
        return isinstance(other, Constant) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        """The hash of the value."""
        return hash(self.value)


@dataclass(frozen=True, slots=True)
class ErrorConstant:
    """An error that is written in a formula."""

    code: str


@dataclass(frozen=True, slots=True)
class Missing:
    """An argument that is left out, as in ``IF(A1,,2)``."""


@dataclass(frozen=True, slots=True)
class ArrayConstant:
    """An array constant in a formula, such as ``{1,2;3,"a"}``: its rows."""

    rows: tuple[tuple[Constant | ErrorConstant, ...], ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A name that LET or LAMBDA gives to a value, in upper case and with its prefix.

    It can also be the name of a function in place of a LAMBDA, as in ``BYROW(A1:C9,SUM)``.
    """

    name: str


class Call(NamedTuple):
    """A function with its arguments; its name is in upper case, with its prefix if it has one."""

    name: str
    arguments: tuple[Node, ...]


class Operation(NamedTuple):
    """An operator with one operand (``-``, ``+``, ``%``) or two."""

    operator: str
    operands: tuple[Node, ...]


Node = Constant | ErrorConstant | ArrayConstant | Missing | Parameter | Reference | Call | Operation

_PRECEDENCE = {
    "=": 1, "<": 1, ">": 1, "<=": 1, ">=": 1, "<>": 1, "&": 2, "+": 3, "-": 3, "*": 4, "/": 4,
    "^": 5,
}  # fmt: skip

_DIGITS = 18
"""Largest number of digits of a constant that Excel writes: 17 digits and an exponent."""

PARAMETER = re.compile(r"_xlpm\.|_xleta\.", re.IGNORECASE)
"""Prefixes in files of names from LET and LAMBDA, and of functions in place of a LAMBDA."""

DEEPEST = 60
"""Deepest nesting of a formula that is parsed."""


class _UnreadableError(Exception):
    """A formula contains something that is not understood."""


@functools.lru_cache(maxsize=4096)
def tree(formula: str) -> Node | None:
    """The tree of a formula; None if something in it is not understood.

    Args:
        formula: with or without its leading ``=``.
    """
    if is_too_long(formula):
        return None
    form, named = with_form(formula)
    if not form.rows_only or not _is_in_order(form.text):
        return _read(formula)
    node = _read(form.text)
    return None if node is None else _naming(node, iter(named))


@functools.lru_cache(maxsize=1024)
def _read(formula: str) -> Node | None:
    try:
        return _Reader(formula.removeprefix("=")).read()
    except _UnreadableError:
        return None


@functools.lru_cache(maxsize=1024)
def _is_in_order(formula: str) -> bool:
    """Whether a formula's tree has the references of its text; spaces may merge some of them."""
    node = _read(formula)
    return node is None or [*named_in(node)] == [*references(formula)]


def named_in(node: Node) -> Iterator[Reference]:
    """The rectangles of a tree, in their order in the formula."""
    if isinstance(node, Reference):
        yield node
    elif isinstance(node, Operation):
        yield from itertools.chain.from_iterable(map(named_in, node.operands))
    elif isinstance(node, Call):
        yield from itertools.chain.from_iterable(map(named_in, node.arguments))


def _naming(node: Node, named: Iterator[Reference]) -> Node:
    """Replaces the rectangles of a tree, in their order in the formula."""
    if isinstance(node, Reference):
        return next(named)
    if isinstance(node, Operation):
        return Operation(
            node.operator, tuple([_naming(operand, named) for operand in node.operands])
        )
    if isinstance(node, Call):
        return Call(node.name, tuple([_naming(argument, named) for argument in node.arguments]))
    return node


class _Reader:
    """Reads the tokens of one formula."""

    def __init__(self, formula: str) -> None:
        self._words: Sequence[Token] = [
            word for word in tokens(formula) if word.kind is not Kind.SPACE
        ]
        self._at = 0
        self._depth = 0

    def read(self) -> Node:
        node = self._expression(1)
        if self._at < len(self._words):
            raise _UnreadableError
        return node

    def _peek(self) -> Token:
        if self._at >= len(self._words):
            raise _UnreadableError
        return self._words[self._at]

    def _expression(self, least: int) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise _UnreadableError
        left = self._signed()
        while self._at < len(self._words):
            word = self._words[self._at]
            precedence = _PRECEDENCE.get(word.text, 0) if word.kind is Kind.OPERATOR else 0
            if word.kind is Kind.OPERATOR and not precedence:
                raise _UnreadableError
            if precedence < least or not precedence:
                break
            self._at += 1
            left = Operation(word.text, (left, self._expression(precedence + 1)))
        self._depth -= 1
        return left

    def _signed(self) -> Node:
        word = self._peek()
        if word.kind is Kind.OPERATOR and word.text in ("+", "-"):
            self._at += 1
            self._depth += 1
            if self._depth > DEEPEST:
                raise _UnreadableError
            node: Node = Operation(word.text, (self._signed(),))
            self._depth -= 1
            return node
        node = self._single()
        while self._at < len(self._words) and self._words[self._at].text == "%":
            self._at += 1
            node = Operation("%", (node,))
        return node

    def _single(self) -> Node:
        word = self._peek()
        sheet = None
        if word.kind is Kind.SHEET:
            sheet = word
            name = sheet_of(word)
            if "[" in name or ":" in word.text:
                raise _UnreadableError
            self._at += 1
            word = self._peek()
        if word.kind in (Kind.CELL, Kind.COLUMNS, Kind.ROWS):
            last = word
            if is_range(self._words, self._at):
                last = self._words[self._at + 2]
                self._at += 2
            self._at += 1
            return self._common(reference(Area(sheet, word, last)))
        if sheet is not None:
            raise _UnreadableError
        self._at += 1
        return self._constant(word)

    def _common(self, area: Reference) -> Node:
        """The cells that a rectangle and the next one have in common, if only a space is between.

        That is ``#NULL!`` if they have none.
        """
        operand_kinds = (Kind.SHEET, Kind.CELL, Kind.COLUMNS, Kind.ROWS)
        if self._at >= len(self._words) or self._peek().kind not in operand_kinds:
            return area
        other = self._single()
        if isinstance(other, ErrorConstant):
            return other
        if not isinstance(other, Reference) or other.sheet != area.sheet:
            raise _UnreadableError
        top, left = max(area.min_row, other.min_row), max(area.min_column, other.min_column)
        bottom, right = min(area.max_row, other.max_row), min(area.max_column, other.max_column)
        if top > bottom or left > right:
            return ErrorConstant("#NULL!")
        return Reference(area.sheet, top, left, bottom, right)

    def _constant(self, word: Token) -> Node:
        if word.kind is Kind.NUMBER:
            if sum(map(str.isdigit, word.text)) > _DIGITS:
                raise _UnreadableError  # Excel reads 15 digits of it
            return Constant(float(word.text))
        if word.kind is Kind.TEXT:
            return Constant(word.text[1:-1].replace('""', '"'))
        if word.kind is Kind.ERROR:
            return ErrorConstant(word.text)
        if word.kind is Kind.NAME and word.text.upper() in ("TRUE", "FALSE"):
            return Constant(word.text.upper() == "TRUE")
        if word.kind is Kind.NAME and PARAMETER.match(word.text):
            return Parameter(word.text.upper())
        if word.text == "{":
            return self._array()
        if word.kind is Kind.OPEN:
            node = self._expression(1)
            self._expect(Kind.CLOSE)
            return node
        if word.kind is Kind.FUNCTION:
            return self._call(word)
        raise _UnreadableError

    def _array(self) -> Node:
        rows: list[tuple[Constant | ErrorConstant, ...]] = []
        row: list[Constant | ErrorConstant] = []
        while True:
            value = self._signed()
            if isinstance(value, Operation) and isinstance(value.operands[0], Constant):
                number = value.operands[0].value
                if value.operator != "-" or number is None or isinstance(number, (bool, str)):
                    raise _UnreadableError
                value = Constant(-number)
            if not isinstance(value, (Constant, ErrorConstant)):
                raise _UnreadableError
            row.append(value)
            end = self._peek().text
            self._at += 1
            if end != ",":
                rows.append(tuple(row))
                row = []
            if end == "}" and len({*map(len, rows)}) == 1:
                return ArrayConstant(tuple(rows))
            if end not in (",", ";"):
                raise _UnreadableError

    def _call(self, word: Token) -> Node:
        self._expect(Kind.OPEN)
        name = word.text.upper()
        arguments: list[Node] = []
        if self._peek().kind is Kind.CLOSE:
            self._at += 1
            return Call(name, ())
        while True:
            if self._peek().kind in (Kind.SEPARATOR, Kind.CLOSE):
                arguments.append(Missing())
            else:
                arguments.append(self._expression(1))
            end = self._peek()
            self._at += 1
            if end.kind is Kind.CLOSE:
                return Call(name, tuple(arguments))
            if end.kind is not Kind.SEPARATOR or end.text != ",":
                raise _UnreadableError

    def _expect(self, kind: Kind) -> None:
        if self._peek().kind is not kind:
            raise _UnreadableError
        self._at += 1
