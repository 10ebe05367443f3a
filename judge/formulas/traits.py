"""Derives the traits of a formula that decide how to compute it: functions, references, arrays.

Only the properties on which the choice of an engine depends are read; nothing is computed here.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judge.formulas.functions import (
    CLASSIC,
    LOGICAL,
    NATIVE_ARRAYS,
    PREFIX,
    PREFIXED,
    SINGLE_VALUES,
    TAKES_RANGES,
    VOLATILE,
)
from judge.formulas.lexer import MAX_FORMULA_LENGTH, Kind, Token, is_range, is_too_long, tokens


@dataclass(frozen=True, slots=True)
class FormulaTraits:
    """Traits of a formula's text, except for its references.

    Attributes:
        functions: names of the functions that it calls, in upper case, without prefix; uses on
            which engines differ count as separate functions (:data:`NEAREST_OF_COMPUTED`).
        unprefixed: newer functions that it calls without the prefix that Excel requires.
        unknown: functions that it calls and Excel does not know (macros, add-ins, misspellings).
        volatile: volatile functions that it calls.
        opaque: whether it reads cells that its references do not show (names, tables, INDIRECT,
            OFFSET, other workbooks).
        array_sensitive: whether Excel gives another value if it is entered as an array formula: it
            has a range where a single value is expected.
        logical: whether its value can only be TRUE, FALSE or an error.
        names: other names that it uses (defined names, tables), in upper case; ``#NAME?`` if it
            contains this error.
        broken: whether it contains a reference to something that no longer exists (``#REF!``).
        reaches_further: whether it may read cells beyond the rectangles that it names: a range
            with a computed corner, a range of sheets, a spilled range, or a function that extends
            a range (``SUMIF`` with a sum range of one cell).
        spans: whether a corner of a range is computed.
        unbounded: whether it may read cells that cannot be derived from the rectangles it names.
        beyond_ascii: whether it contains text beyond ASCII; names of sheets do not count.
        valueless: why its value in Excel cannot be known; empty if it can be known.
        spans_sheets: whether it has a range of sheets (``Jan:Mar!A1``).
        intersects: whether a space between two references, or a reference and a bracket, may mean
            the cells that two ranges share.
    """

    functions: frozenset[str]
    unprefixed: frozenset[str]
    unknown: frozenset[str]
    volatile: frozenset[str]
    opaque: bool
    array_sensitive: bool
    logical: bool
    names: frozenset[str]
    broken: bool
    reaches_further: bool
    spans: bool
    unbounded: bool
    beyond_ascii: bool
    valueless: str = ""
    spans_sheets: bool = False
    intersects: bool = False


_DIGITS = re.compile(r"\d(?<=[A-Za-z$]\d)\d*+(?![\w.(])")


@functools.lru_cache(maxsize=16_384)
def traits(formula: str) -> FormulaTraits:
    """Derives the traits of a formula's text.

    Args:
        formula: with or without its leading ``=``; never rejected, however broken.
    """
    if is_too_long(formula):
        return NEVER_READ
    # The formulas of a column differ only in row numbers, which do not matter here.
    return _traits(_DIGITS.sub("1", formula.removeprefix("=")))


ESCAPED_LETTER = re.compile(r"_x[0-9A-Fa-f]{4}_")
"""How Excel escapes some letters in a file; not every engine decodes them."""


TOO_LONG = f"a formula of more than {MAX_FORMULA_LENGTH:,} characters"
"""The unknown function that is reported for a formula that is too long to read."""

NEVER_READ = FormulaTraits(
    functions=frozenset((TOO_LONG,)),
    unprefixed=frozenset(),
    unknown=frozenset((TOO_LONG,)),
    volatile=frozenset(),
    opaque=True,
    array_sensitive=False,
    logical=False,
    names=frozenset(),
    broken=False,
    reaches_further=True,
    spans=True,
    unbounded=True,
    beyond_ascii=True,
)
"""The traits of a formula that is too long to read."""


_OPAQUE = frozenset(("INDIRECT", "OFFSET", "GETPIVOTDATA", "CUBEVALUE", "RTD", "WEBSERVICE"))

_INTERNAL = frozenset(("SINGLE", "ANCHORARRAY"))

_OF_FIRST_CELL = frozenset(("N", "T", "TYPE", "ERROR.TYPE"))
"""Functions that take the first cell of a range, wherever the formula is."""

_EXTENDING = frozenset(("SUMIF", "AVERAGEIF", "LOOKUP"))

_UNBOUNDED = frozenset(("TABLE", "CELL", "INFO", "ANCHORARRAY", "SHEETS", "CALL"))


@functools.lru_cache(maxsize=4096)
def _traits(formula: str) -> FormulaTraits:
    reading = _Reading()
    reading.read(formula)
    bare = frozenset(PREFIX.sub("", call).upper() for call in reading.calls)
    unprefixed = frozenset(
        call.upper()
        for call in reading.calls
        if call.upper() in PREFIXED and not PREFIX.match(call)
    )
    local = reading.parameters
    return FormulaTraits(
        functions=(bare - local) | reading.uses,
        unprefixed=unprefixed,
        unknown=bare - CLASSIC - PREFIXED - local - _INTERNAL,
        volatile=bare & VOLATILE,
        opaque=reading.opaque or bool(bare & _OPAQUE),
        array_sensitive=reading.array_sensitive,
        logical=reading.logical,
        names=frozenset(reading.names) - local,
        broken=reading.broken,
        reaches_further=reading.spans
        or reading.unbounded
        or bool(bare & (_EXTENDING | _UNBOUNDED)),
        spans=reading.spans,
        unbounded=reading.unbounded or bool(bare & _UNBOUNDED),
        beyond_ascii=reading.beyond_ascii,
        valueless=reading.valueless,
        spans_sheets=reading.spans_sheets,
        intersects=reading.intersects,
    )


DEPENDS_ON_MACHINE = (
    "CELL and INFO tell here where the file is or which program computes it, which differs from "
    "one run to another"
)
UNBALANCED = "a bracket of the formula has no counterpart, so that Excel does not load it"
"""Reasons why the value of a formula cannot be known."""

_OF_CELLS = frozenset(
    (
        *("address", "col", "color", "contents", "format", "parentheses"),
        *("prefix", "protect", "row", "type", "width"),
    )
)
"""The kinds of information for which ``CELL`` needs only the workbook."""


NEAREST_OF_COMPUTED = "MATCH(computed, nearest)"
"""Name of the trait for an approximate ``MATCH`` in computed values: ``MATCH(2,1/(A1:A9="x"))``."""


@dataclass(slots=True)
class _Frame:
    """An open bracket: that of a call, or a plain one."""

    function: str | None
    native: bool
    """Whether arrays are computed as arrays inside this bracket."""
    around: _Frame | None
    """The innermost call that contains this bracket."""
    argument: int = 0
    """Index of the argument that is being read, from 0."""
    computed: bool = False
    """Whether its second argument is a computed value."""
    bare_range: bool = False
    """Whether the argument, as far as it was read, is just a range."""
    text: str | None = None
    """The first text of the argument."""
    tokens: int = 0

    @property
    def call(self) -> _Frame | None:
        """The innermost call: this bracket itself, if it is a call, or the one that contains it."""
        return self if self.function is not None else self.around


_COMPARISONS = frozenset(("=", "<", ">", "<=", ">=", "<>"))


class _Reading:
    """Reads the tokens once, with a stack of open calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.names: set[str] = set()
        self.parameters: set[str] = set()
        self.opaque = False
        self.array_sensitive = False
        self.logical = False
        self.broken = False
        self.spans = False
        self.unbounded = False
        self.beyond_ascii = False
        self.valueless = ""
        self.spans_sheets = False
        self.intersects = False
        self.uses: set[str] = set()
        self._stack = [_Frame(None, native=False, around=None)]
        self._top_comparison = False
        self._top_first: str | None = None
        self._top_other = False

    def read(self, formula: str) -> None:
        self.beyond_ascii = ESCAPED_LETTER.search(formula) is not None
        words = tokens(formula)
        last_brace = max((token.start for token in words if token.text == "}"), default=-1)
        index = 0
        while index < len(words):
            kind, end = _whole(words, index, last_brace)
            if kind not in (Kind.SHEET, Kind.BRACKETS) and not self.beyond_ascii:
                self.beyond_ascii = not all(token.text.isascii() for token in words[index:end])
            self.intersects = self.intersects or _is_intersection(words, index)
            getattr(self, f"_{kind}")(words[index].text)
            index = end
        # Text in an array constant may hold brackets.
        if len(self._stack) > 1 and "{" not in formula:
            self.valueless = UNBALANCED
        while len(self._stack) > 1:
            self._close(")")
        self._end_argument(self._stack[0])
        self.logical = self._top_comparison or (self._top_first in LOGICAL and not self._top_other)

    def _space(self, _: str) -> None:
        """Spaces have no other traits; an intersection of two ranges counts as two ranges."""

    def _quoted(self, _: str) -> None:
        """A quoted name that is not followed by a sheet reference does not matter here."""

    def _other(self, _: str) -> None:
        """Text that Excel would not accept does not matter either."""

    def _text(self, token: str) -> None:
        self._plain(token)
        frame = self._stack[-1]
        frame.text = token if frame.tokens == 1 else None

    def _plain(self, token: str) -> None:
        self._at_top(token)
        self._stack[-1].tokens += 1

    def _at_top(self, token: str) -> None:
        if len(self._stack) == 1:
            self._top_other = self._top_other or bool(token)

    def _sheet(self, token: str) -> None:
        self.opaque = self.opaque or "[" in token
        self.unbounded = self.unbounded or ":" in token
        self.spans_sheets = self.spans_sheets or (":" in token and "[" not in token)

    _cell = _number = _plain

    def _range(self, token: str) -> None:
        self._plain(token)
        self._a_range()

    _columns = _rows = _range

    def _brackets(self, token: str) -> None:
        self.opaque = True
        self._plain(token)
        self._a_range()

    def _array(self, token: str) -> None:
        # An array constant where one value is expected gives its first element; engines differ.
        self._plain(token)
        frame = self._stack[-1]
        if frame.tokens > 1:
            self._range_in_expression(frame)

    def _a_range(self) -> None:
        frame = self._stack[-1]
        if frame.tokens == 1:
            frame.bare_range = True
        else:
            self._range_in_expression(frame)

    def _range_in_expression(self, frame: _Frame) -> None:
        if not frame.native:
            self.array_sensitive = True

    def _name(self, token: str) -> None:
        self._plain(token)
        upper = token.upper()
        if upper.startswith("_XLPM."):
            self.parameters.add(upper)
        elif upper not in ("TRUE", "FALSE"):
            self.names.add(upper)
            self.opaque = True

    def _function(self, name: str) -> None:
        upper = name.upper()
        if upper.startswith("_XLPM."):
            self.parameters.add(upper)
        self.calls.append(name)
        outer = self._stack[-1]
        if len(self._stack) == 1:
            if self._top_first is None and not outer.tokens:
                self._top_first = PREFIX.sub("", upper)
            else:
                self._top_other = True
        if outer.bare_range and outer.tokens:
            self._range_in_expression(outer)
        outer.tokens += 1
        bare = PREFIX.sub("", upper)
        native = outer.native or bare in NATIVE_ARRAYS
        self._stack.append(_Frame(bare, native=native, around=outer.call))

    def _open(self, token: str) -> None:
        outer = self._stack[-1]
        self._at_top(token)
        outer.tokens += 1
        self._stack.append(_Frame(None, native=outer.native, around=outer.call))

    def _close(self, _: str) -> None:
        frame = self._stack[-1]
        self._end_argument(frame)
        if frame.function == "MATCH" and frame.computed and frame.argument == 1:
            self.uses.add(NEAREST_OF_COMPUTED)
        if len(self._stack) > 1:
            self._stack.pop()

    def _separator(self, _: str) -> None:
        frame = self._stack[-1]
        self._end_argument(frame)
        frame.tokens = 0
        frame.argument += 1
        frame.bare_range = False
        frame.text = None

    def _end_argument(self, frame: _Frame) -> None:
        if frame.function in ("CELL", "INFO") and frame.argument == 0:
            info_type = (frame.text or "").strip('"').casefold() if frame.tokens == 1 else ""
            if frame.function == "INFO" or info_type not in _OF_CELLS:
                self.valueless = self.valueless or DEPENDS_ON_MACHINE
        if not frame.bare_range or frame.native:
            return
        takes_range = frame.function in TAKES_RANGES and (
            frame.function in _OF_FIRST_CELL
            or frame.argument not in SINGLE_VALUES.get(frame.function, ())
        )
        if frame.function is None or frame.tokens > 1 or not takes_range:
            self.array_sensitive = True

    def _operator(self, token: str) -> None:
        frame = self._stack[-1]
        if len(self._stack) == 1 and token in _COMPARISONS:
            self._top_comparison = True
        self._at_top(token)
        self.spans = self.spans or ":" in token
        self.unbounded = self.unbounded or "#" in token
        if frame.bare_range and token not in (":", "@", "#"):
            self._range_in_expression(frame)
        frame.tokens += 1
        self._computed_for(token)

    def _computed_for(self, token: str) -> None:
        if token in (":", "@", "#", "%"):
            return
        call = self._stack[-1].call
        if call is not None:
            call.computed = call.computed or call.argument == 1

    def _error(self, code: str) -> None:
        self.broken = self.broken or code == "#REF!"
        if code == "#NAME?":
            self.names.add(code)
        self._plain(code)


_BEFORE_SPACE = frozenset((Kind.CELL, Kind.COLUMNS, Kind.ROWS, Kind.NAME, Kind.CLOSE))
_AFTER_SPACE = frozenset((Kind.CELL, Kind.COLUMNS, Kind.ROWS, Kind.SHEET, Kind.OPEN))


def _is_intersection(words: Sequence[Token], index: int) -> bool:
    """Whether the token at an index is a space that may be the operator of an intersection."""
    return (
        words[index].kind is Kind.SPACE
        and 0 < index < len(words) - 1
        and words[index - 1].kind in _BEFORE_SPACE
        and words[index + 1].kind in _AFTER_SPACE
    )


def _whole(words: Sequence[Token], index: int, last_brace: int) -> tuple[str, int]:
    """The operand that begins with a token, and the index after it; an array is a single operand.

    Args:
        words: the tokens of a formula.
        index: index of the operand's first token.
        last_brace: position of the last closing brace in the formula; below 0 if there is none.
    """
    token = words[index]
    if is_range(words, index):
        return "range", index + 3
    if token.kind is Kind.FUNCTION:
        # The bracket belongs to the call.
        return token.kind, index + (3 if words[index + 1].kind is Kind.SPACE else 2)
    if token.kind is Kind.BRACE:
        if token.text == "}" or token.start > last_brace:
            return Kind.OTHER, index + 1
        return "array", _behind(words, index, "{}", nested=False)
    if token.text == "[":
        return Kind.BRACKETS, _behind(words, index, "[]", nested=True)
    return token.kind, index + 1


def _behind(words: Sequence[Token], index: int, pair: str, *, nested: bool) -> int:
    """The index after the bracket that closes the one at an index, or after the last token."""
    depth = 0
    for end in range(index, len(words)):
        text = words[end].text
        if text == pair[0] and (nested or not depth):
            depth += 1
        elif text == pair[1]:
            depth -= 1
        if not depth:
            return end + 1
    return len(words)


def units(formula: str) -> Iterator[tuple[str, str]]:
    """The elements of a formula, each with its kind and the text that it begins with.

    Unlike with :func:`tokens`, a range, an array constant, the brackets of a table, and the name of
    a function with its bracket are single elements.
    """
    words = tokens(formula)
    last_brace = max((token.start for token in words if token.text == "}"), default=-1)
    index = 0
    while index < len(words):
        kind, end = _whole(words, index, last_brace)
        yield kind, words[index].text
        index = end
