"""Splits a formula's text into tokens, and limits its length. Pure.

The judge analyses every formula by these tokens. Text that is not quite a formula has its own
parsers: positions of answers (:mod:`judge.workbook.position`), references of charts
(:mod:`judge.workbook.facts.references`), and pieces of formulas in programs
(:mod:`judge.annotate.strength`). The engines' services (:mod:`judge.recalc.services`), whose text
is copied into the sandbox, also have their own.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """The kind of a token.

    ``CELL`` is one corner: ``A1:B2`` has three tokens, and so has a range with a computed corner.
    ``COLUMNS`` and ``ROWS`` are a whole ``A:C`` or ``1:5``. Whether a worksheet has that many rows
    and columns is not checked: ``YTD2020`` reads as a cell. ``SHEET`` includes quotes, the number
    of another workbook and the exclamation mark. ``BRACKETS`` is the part of a structured reference
    after the name of its table (or of ``R[1]C[1]``, which no file holds). ``NAME`` is also TRUE
    and FALSE. ``OPERATOR`` includes ``%``, ``:``, ``@`` and the ``#`` of a spilled range. ``OTHER``
    is a character that Excel would not accept where it is.
    """

    SPACE = "space"
    TEXT = "text"
    SHEET = "sheet"
    QUOTED = "quoted"
    ERROR = "error"
    BRACKETS = "brackets"
    COLUMNS = "columns"
    ROWS = "rows"
    CELL = "cell"
    NUMBER = "number"
    FUNCTION = "function"
    NAME = "name"
    OPERATOR = "operator"
    SEPARATOR = "separator"
    OPEN = "open"
    CLOSE = "close"
    BRACE = "brace"
    OTHER = "other"


class Token(NamedTuple):
    """A token, with the position of its first character in the formula, from 0."""

    kind: Kind
    text: str
    start: int

    @property
    def end(self) -> int:
        """The position after the token's last character."""
        return self.start + len(self.text)


_KINDS: dict[str | None, Kind] = {kind.value: kind for kind in Kind}


def tokens(formula: str) -> list[Token]:
    """The tokens of a formula in order; joined, they are the formula.

    The time is proportional to the length of the text: no part of the pattern backtracks.

    Args:
        formula: with or without its leading ``=``; never rejected, however broken.
    """
    kinds = _KINDS
    return [
        Token(kinds[match.lastgroup], match[0], match.start())
        for match in _token().finditer(formula)
    ]


_WORD = r"""[^\s\x00-\x1f!"#%&'()*+,\-/:;<=>@\[\]^`{|}~\x7f]"""
"""The characters of names: letters, digits, ``_.$?\\``, and all characters beyond ASCII."""


@functools.cache
def _token() -> re.Pattern[str]:
    """The pattern of all kinds of tokens.

    It is compiled when it is first used; compiling takes a third of the reader's load time.
    """
    return re.compile(
        rf"""
        (?P<separator>[,;])
      | (?P<open>\()
      | (?P<close>\))
      | (?P<space>\s++)
      | (?P<text>"(?:[^"]++|"")*+")
      | (?P<sheet>(?: '(?:[^']++|'')*+'
                    | (?:\[[0-9]++\])?+{_WORD}++
                    | (?<!!)(?:\[[0-9]++\])?+{_WORD}++:{_WORD}++ )!)
      | (?P<quoted>'(?:[^']++|'')*+')
      | (?P<error>\#(?:NULL!|DIV/0!|VALUE!|REF!|NAME\?|NUM!|N/A|SPILL!|CALC!|GETTING_DATA))
      | (?P<brackets>\[(?:[^\[\]]++|\[[^\[\]]*+\])*+\])
      | (?P<columns>\$?[A-Za-z]{{1,3}}:\$?[A-Za-z]{{1,3}})(?!{_WORD}|[(!])
      | (?P<rows>\$?[0-9]{{1,7}}:\$?[0-9]{{1,7}})(?!{_WORD}|[(!])
      | (?P<cell>\$?[A-Za-z]{{1,3}}\$?[0-9]{{1,7}})(?!{_WORD}|[(!])
      | (?P<number>(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+)(?!{_WORD})
      | (?P<function>(?![0-9$.?]){_WORD}++)(?=\s*+\()
      | (?P<name>{_WORD}++)
      | (?P<operator><=|>=|<>|[-+*/^&=<>%:@\#])
      | (?P<brace>[{{}}])
      | (?P<other>.)
        """,
        re.VERBOSE | re.DOTALL,
    )


def is_range(words: Sequence[Token], index: int) -> bool:
    """Whether the tokens that begin at an index are two cells with a colon between them."""
    return (
        index + 2 < len(words)
        and words[index].kind is words[index + 2].kind is Kind.CELL
        and words[index + 1].text == ":"
    )


def outside_text(formula: str, change: Callable[[str], str]) -> str:
    """Applies a function to everything in a formula except its text in quotes."""
    return "".join(
        token.text if token.kind is Kind.TEXT else change(token.text) for token in tokens(formula)
    )


def texts_of(formula: str) -> list[str]:
    """The text constants of a formula, without their quotes."""
    return [
        token.text[1:-1].replace('""', '"') for token in tokens(formula) if token.kind is Kind.TEXT
    ]


def sheet_of(token: Token) -> str:
    """The name of the sheet, without quotes, that a token of the kind ``SHEET`` names.

    If it names several sheets, the last one is returned; if it names another workbook, the result
    begins with that workbook's number.
    """
    name = token.text[:-1]
    if name.startswith("'"):
        return name[1:-1].replace("''", "'")
    return name.rpartition(":")[2]


MAX_FORMULA_LENGTH = 8_192
"""Largest number of characters that a formula can have, as a person sees it.

Source: Excel specifications and limits, "length of formula contents".
"""

_MAX_IN_FILE_LENGTH = 2 * MAX_FORMULA_LENGTH
"""The same limit for the text in a file, where every function may have a prefix."""

_PREFIXES = ("_xlfn.", "_xlws.", "_xludf.", "_xlpm.")


def is_too_long(formula: str) -> bool:
    """Whether a formula is too long for every spreadsheet program.

    This is checked before any regular expression is applied to a formula: a longer formula can only
    be an attempt to slow the judge down, and is not searched.

    Args:
        formula: with or without its leading ``=``.
    """
    length = len(formula) - formula.startswith("=")
    if length <= MAX_FORMULA_LENGTH:
        return False
    if length > _MAX_IN_FILE_LENGTH:
        return True
    hidden = sum(formula.count(prefix) * len(prefix) for prefix in _PREFIXES)
    return length - hidden > MAX_FORMULA_LENGTH
