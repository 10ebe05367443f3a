"""Lists the calls of a formula with the shapes of their arguments: the keys of engine records.

An engine that counts a range correctly may fail if the range is computed, an argument is left out,
or a criterion has an operator. An engine's record is therefore kept for each function and shape:
``XLOOKUP(c,r,r,_,-1)`` looks a cell up in a range, with an argument left out and a mode of -1.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from judge.formulas.functions import CLASSIC, PREFIX, PREFIXED, SINGLE_VALUES, TAKES_RANGES
from judge.formulas.traits import units

MAX_ALIKE = 2
"""This many consecutive arguments of the same shape are written one by one; more become ``c+``."""

OF_ARRAYS = "[]"
"""Suffix for a function or an operator that gets a computed array, or several values where it
expects one. It counts as a separate function: an engine that is right about single values may use
one of several, or compute all where Excel uses one, and engines make the same mistake."""

NAMED = "LAMBDA()"
"""The name of every function that a workbook or a formula defines."""

INTERSECTS = "@"
"""The name for a range where a single value is expected."""


_ARRAYS = frozenset(
    (
        *("FILTER", "SORT", "SORTBY", "UNIQUE", "SEQUENCE", "RANDARRAY", "TRANSPOSE", "MMULT"),
        *("MINVERSE", "MUNIT", "FREQUENCY", "LINEST", "LOGEST", "TREND", "GROWTH", "TOCOL"),
        *("TOROW", "VSTACK", "HSTACK", "TAKE", "DROP", "CHOOSECOLS", "CHOOSEROWS", "WRAPCOLS"),
        *("WRAPROWS", "EXPAND", "MAP", "SCAN", "BYROW", "BYCOL", "MAKEARRAY", "TEXTSPLIT"),
        *("MODE.MULT", "ROW", "COLUMN", "TRIMRANGE"),
    )
)
"""Functions that return an array, whatever their arguments are."""

_SEVERAL = frozenset("rkXs")
"""Shapes that mean several values: a range, array constant, computed array or spilled range."""


class Call(NamedTuple):
    """A call, or an operator, in a formula.

    Attributes:
        function: name in upper case, without prefix; for an operator, its sign. It ends with
            :data:`OF_ARRAYS` if it is called for arrays.
        shape: the function with the shapes of its arguments: ``c`` a cell, ``r`` a range, ``n`` a
            number (one digit stands for itself), ``t`` text (``t<`` begins with an operator,
            ``t[`` with a bracket, ``t*`` holds a wildcard, ``tu`` letters beyond ASCII, ``t0`` is
            empty), ``b`` TRUE or FALSE, ``e`` an error, ``k`` an array constant, ``m`` a name,
            ``p`` a parameter, ``s`` a spilled range, ``_`` nothing, ``x`` a computed value, ``X`` a
            computed array. A brace at the end: in an array formula.
    """

    function: str
    shape: str

    @property
    def is_of_arrays(self) -> bool:
        """Whether the call gets a computed array, or several values where it expects one."""
        return self.function.endswith(OF_ARRAYS)

    @property
    def omits(self) -> bool:
        """Whether an argument is left out between commas."""
        return "(_" in self.shape or ",_" in self.shape


_DIGITS = re.compile(r"(?<=[A-Za-z$])\d++(?![\w.(])")


@functools.lru_cache(maxsize=16_384)
def calls(formula: str, *, is_array: bool = False, intersects: bool = False) -> tuple[Call, ...]:
    """The calls of a formula; never empty.

    Args:
        formula: with or without its leading ``=``.
        is_array: whether it is entered as an array formula.
        intersects: whether it has a range where Excel expects a single value.
    """
    return _calls(_DIGITS.sub("1", formula.removeprefix("=")), is_array, intersects)


_FALLS_BACK = re.compile(r"[=\s]*(?:_[a-z]+\.)*IF(?:ERROR|NA)\b", re.IGNORECASE)
"""Beginning of a formula that may be a single IFERROR or IFNA; all others need not be parsed."""


@functools.lru_cache(maxsize=8192)
def fallback(formula: str) -> str | float | None:
    """The constant that an IFERROR or IFNA around a whole formula gives for an error, or None.

    If an engine lacks a feature that the formula uses, the formula inside gives an error, and the
    constant hides it.
    """
    if _FALLS_BACK.match(formula) is None:
        return None
    words = [unit for unit in units(formula.removeprefix("=")) if unit[0] != "space"]
    if len(words) < 5 or PREFIX.sub("", words[0][1]).upper() not in ("IFERROR", "IFNA"):
        return None
    depth = 0
    for at, (kind, _) in enumerate(words):
        depth += (kind in ("function", "open")) - (kind == "close")
        if not depth and at < len(words) - 1:
            return None
    (before, _), (kind, text), (after, _) = words[-3:]
    if (before, after) != ("separator", "close"):
        return None
    if kind == "text":
        return text[1:-1].replace('""', '"')
    return float(text) if kind == "number" else None


_MINUS = "minus"


class _Frame:
    """An open bracket: its complete arguments, and the current argument so far."""

    __slots__ = ("arguments", "function", "operands", "operators")

    def __init__(self, function: str) -> None:
        self.function = function
        self.arguments: list[str] = []
        self.operators: set[str] = set()
        self.operands: list[str] = []

    def shape(self) -> str:
        """The shape of the current argument."""
        if not self.operands:
            return "_"
        if len(self.operands) == 1 and not self.operators:
            return self.operands[0]
        if len(self.operands) == 1 and self.operators == {_MINUS}:
            only = self.operands[0]
            if only == "n" or only.isdigit():
                return f"-{only}"
        return "X" if any(operand in _SEVERAL for operand in self.operands) else "x"


@functools.lru_cache(maxsize=8192)
def _calls(formula: str, is_array: bool, intersects: bool) -> tuple[Call, ...]:
    reading = _Reading()
    for kind, text in units(formula):
        reading.read(kind, text)
    reading.end()
    calls = reading.calls or {Call("=", "=")}
    if is_array:
        calls = {Call(call.function, call.shape + "{") for call in calls} | {Call("{}", "{}")}
    if intersects:
        calls = calls | {Call(INTERSECTS, INTERSECTS)}
    return tuple(sorted(calls))


_OPERANDS = {
    "error": "e",
    "cell": "c",
    "array": "k",
    "range": "r",
    "columns": "r",
    "rows": "r",
}


class _Reading:
    """One pass over the tokens of a formula."""

    def __init__(self) -> None:
        self.calls: set[Call] = set()
        self._stack = [_Frame("")]

    def read(self, kind: str, text: str) -> None:
        """Processes the next token."""
        frame = self._stack[-1]
        if kind in _OPERANDS:
            frame.operands.append(_OPERANDS[kind])
        elif kind == "text":
            frame.operands.append(_of_text(text[1:-1]))
        elif kind == "number":
            frame.operands.append(text if len(text) == 1 else "n")
        elif kind == "name":
            frame.operands.append(_of_name(text.upper()))
        elif kind == "brackets":
            if frame.operands and frame.operands[-1] == "m":
                frame.operands.pop()
            frame.operands.append("m")
        elif kind == "function":
            self._stack.append(_Frame(PREFIX.sub("", text).upper()))
        elif kind == "open":
            self._stack.append(_Frame(""))
        elif kind == "separator":
            self._end_argument(frame)
        elif kind == "operator":
            _operator(frame, text)
        elif kind == "close" and len(self._stack) > 1:
            self._close()

    def end(self) -> None:
        """Closes all open brackets."""
        while len(self._stack) > 1:
            self._close()
        self._end_argument(self._stack[0])

    def _end_argument(self, frame: _Frame) -> None:
        frame.arguments.append(frame.shape())
        kinds = {"n" if operand.isdigit() else operand for operand in frame.operands}
        operands = ",".join(sorted(kinds))
        arrays = OF_ARRAYS if any(operand in _SEVERAL for operand in kinds) else ""
        self.calls.update(
            Call(f"{sign}{arrays}", f"{sign}{arrays}({operands})")
            for sign in frame.operators
            if sign != _MINUS
        )
        frame.operators, frame.operands = set(), []

    def _close(self) -> None:
        frame = self._stack.pop()
        self._end_argument(frame)
        arguments = frame.arguments if frame.arguments != ["_"] else []
        self._stack[-1].operands.append(self._value_of(frame.function, arguments))

    def _value_of(self, function: str, arguments: list[str]) -> str:
        """The shape of a call, or of plain brackets, as a part of the surrounding argument."""
        if not function:
            return arguments[-1] if arguments else "x"
        if function == "ANCHORARRAY":
            return "s"
        if function == "SINGLE":
            return "c"
        lifted = any(
            argument in _SEVERAL and _takes_one(function, number)
            for number, argument in enumerate(arguments)
        )
        if function not in CLASSIC and function not in PREFIXED:
            function = NAMED
        name = f"{function}{OF_ARRAYS}" if lifted or "X" in arguments else function
        self.calls.add(Call(name, f"{name}({','.join(_in_short(arguments))})"))
        if function in ("ROW", "COLUMN") and arguments in ([], ["c"]):
            return "x"
        return "X" if lifted or function in _ARRAYS else "x"


def _takes_one(function: str, argument: int) -> bool:
    """Whether a function expects a single value in an argument."""
    return function not in TAKES_RANGES or argument in SINGLE_VALUES.get(function, ())


def _of_text(text: str) -> str:
    if not text:
        return "t0"
    if text[0] in "<>=[":
        return f"t{'[' if text[0] == '[' else '<'}"
    if any(letter in text for letter in "*?~"):
        return "t*"
    return "t" if text.isascii() else "tu"


def _of_name(name: str) -> str:
    if name in ("TRUE", "FALSE"):
        return "b"
    return "p" if name.startswith("_XLPM.") else "m"


def _operator(frame: _Frame, sign: str) -> None:
    if not frame.operands and sign in "+-":
        if sign == "-":
            frame.operators.add(_MINUS)
    elif sign == "#":
        if frame.operands:
            frame.operands[-1] = "s"
    elif sign != "@":
        frame.operators.add(sign)


def _in_short(arguments: list[str]) -> list[str]:
    """The shapes of arguments; more than two equal ones in a row are written once."""
    parts: list[str] = []
    alike = 0
    for number, argument in enumerate(arguments):
        alike = alike + 1 if number and arguments[number - 1] == argument else 1
        if alike <= MAX_ALIKE:
            parts.append(argument)
        elif alike == MAX_ALIKE + 1:
            parts[-MAX_ALIKE:] = [f"{argument}+"]
    return parts
