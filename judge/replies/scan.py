"""A small scanner of Python text that never compiles it: replies of models are hostile text.

It walks a program once and tells strings, comments and brackets apart, which is enough to see
whether a block of code is whole and which names it takes from elsewhere.
"""

from __future__ import annotations

import builtins
import keyword
import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<comment>\#[^\n]*)
  | (?P<string>(?:[rRbBuUfF]{0,2})(?P<quote>\"{3}|'{3}|"|'))
  | (?P<name>[^\W\d]\w*)
  | (?P<open>[(\[{])
  | (?P<close>[)\]}])
    """,
    re.VERBOSE,
)
_STRING_BODIES = {
    '"""': re.compile(r'(?:[^"\\]++|\\.|"(?!""))*+', re.DOTALL),
    "'''": re.compile(r"(?:[^'\\]++|\\.|'(?!''))*+", re.DOTALL),
    '"': re.compile(r'(?:[^"\\\n]++|\\.)*+', re.DOTALL),
    "'": re.compile(r"(?:[^'\\\n]++|\\.)*+", re.DOTALL),
}
_MAX_LINE_CHARS = 500  # longer ones are data, and each "for" looks to the end of its line
_MAX_PARAMETERS_CHARS = 2_000
_PAIRS = {")": "(", "]": "[", "}": "{"}
_BINDS = re.compile(
    rf"""
    ^[ \t]*+(?:async[ ]++)?+(?:def|class)[ ]++(?P<defined>\w++)
        (?:\s*+\((?P<parameters>[^)]{{0,{_MAX_PARAMETERS_CHARS}}}+)\))?+
  | \b(?:import|as|global|nonlocal)\b[ ]++(?P<bound>[\w., ()]++)
  | \bfor\b[ ]++(?P<loop>(?:[\w.,()*]++|[ ]++(?!in\b))++)[ ]++in\b
  | ^[ \t]*+(?P<assigned>[\w., ()\[\]*]++)(?::[^=\n]++)?+[-+]?+=(?!=)
  | \blambda\s++(?P<arguments>[\w., =*]++):
  | \b(?P<walrus>\w++)\s*+:=
    """,
    re.VERBOSE | re.MULTILINE,
)
_USED = re.compile(r"(?<![\w.])([^\W\d]\w*+)(?!\s*+=[^=])")
_FROM = re.compile(r"\bfrom\s++[\w.]++\s++import\b")
_WORD = re.compile(r"[^\W\d]\w*")
_KNOWN = frozenset(dir(builtins)) | frozenset(keyword.kwlist) | {"__name__", "__file__", "self"}


@dataclass(frozen=True, slots=True)
class Scan:
    """What a walk over a program found.

    Attributes:
        closed: every bracket and string that was opened is closed, and none too many.
        in_string: the text ends within a triple-quoted string.
        bare: the text with strings emptied and comments taken out, line for line.
    """

    closed: bool
    in_string: bool
    bare: str


class Scanner:
    """Walks over a program piece by piece; every piece ends at the end of a line."""

    def __init__(self) -> None:
        self._open: list[str] = []
        self._quote: str | None = None
        self._balanced = True
        self._bare: list[str] = []
        self._broken: dict[str, int] = {}

    @property
    def closed(self) -> bool:
        """Whether every bracket and string so far is closed, and none too many."""
        return self._balanced and not self._open and self._quote is None

    @property
    def in_string(self) -> bool:
        """Whether the text so far ends within a triple-quoted string."""
        return self._quote is not None

    def feed(self, piece: str) -> None:
        """Walks on over whole lines; time is linear in their length."""
        position = 0
        self._broken.clear()
        if self._quote is not None:
            position = self._end_string(piece, 0, self._quote)
        while self._quote is None and (match := _TOKEN.search(piece, position)):
            self._bare.append(piece[position : match.start()])
            position = match.end()
            if match["string"]:
                if match.start("quote") < self._broken.get(match["quote"], 0):
                    continue
                position = self._end_string(piece, position, match["quote"])
            elif match["open"]:
                self._open.append(match[0])
                self._bare.append(match[0])
            elif match["close"]:
                if not self._open or self._open.pop() != _PAIRS[match[0]]:
                    self._balanced = False
                self._bare.append(match[0])
            elif match["name"]:
                self._bare.append(match[0])
        if self._quote is None:
            self._bare.append(piece[position:])

    def result(self) -> Scan:
        """What was found so far."""
        return Scan(self.closed, self._quote is not None, "".join(self._bare))

    def _end_string(self, piece: str, position: int, quote: str) -> int:
        """Goes to the end of a string, or past the quote if it has none; returns the new place."""
        body = _STRING_BODIES[quote].match(piece, position)
        end = position if body is None else body.end()
        if piece.startswith(quote, end):
            self._quote = None
            self._bare.append('""' + "\n" * piece.count("\n", position, end))
            return end + len(quote)
        if len(quote) == 3:
            self._quote = quote
            return len(piece)
        # A lone quote: the line is broken, the rest of it can still be read. Other quotes of its
        # kind are on the same broken line and do not begin strings either.
        self._balanced = False
        self._broken[quote] = end
        return position


def scan(code: str) -> Scan:
    """Walks over a whole program once."""
    scanner = Scanner()
    scanner.feed(code)
    return scanner.result()


def defined_names(code: str) -> frozenset[str]:
    """Names that a program binds: imports, assignments, definitions, loop variables."""
    names: set[str] = set()
    bare = "\n".join(line[:_MAX_LINE_CHARS] for line in scan(code).bare.split("\n"))
    for match in _BINDS.finditer(bare):
        for text in match.groupdict().values():
            if text:
                names.update(_WORD.findall(text))
    return frozenset(names - _KNOWN)


def free_names(code: str) -> frozenset[str]:
    """Names that a program uses without binding them; attributes and keywords do not count."""
    bare = _FROM.sub("import", scan(code).bare)
    used = set(_USED.findall(bare))
    return frozenset(used - defined_names(code) - _KNOWN)
