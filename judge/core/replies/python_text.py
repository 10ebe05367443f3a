"""Reads Python text without compiling it, since replies of models are hostile. Pure; runs nothing.

- :func:`scan` walks a program once and distinguishes strings, comments and brackets. This is enough
  to see whether a block of code is complete and which names it takes from elsewhere.
- :func:`is_code_line` and similar functions distinguish lines of Python from prose.
- :func:`is_program` checks whether text is a program from its first character to its last.
- :func:`tidy` removes prompts, notebook magics, odd indentation and escapes, which files lack.
"""

from __future__ import annotations

import ast
import builtins
import functools
import keyword
import re
import warnings
from dataclasses import dataclass

# -- scanning --------------------------------------------------------------------------------------

_DELIMITERS = r"""
    (?P<comment>\#[^\n]*)
  | {prefix}(?P<quote>\"{{3}}|'{{3}}|"|')
  | (?P<open>[(\[{{])
  | (?P<close>[)\]}}])
"""
_DELIMITER = re.compile(_DELIMITERS.format(prefix=""), re.VERBOSE)
_TOKEN = re.compile(
    _DELIMITERS.format(prefix="[rRbBuUfF]{0,2}") + r"| (?P<name>[^\W\d]\w*)", re.VERBOSE
)
_STRING_BODIES = {
    '"""': re.compile(r'(?:[^"\\]++|\\.|"(?!""))*+', re.DOTALL),
    "'''": re.compile(r"(?:[^'\\]++|\\.|'(?!''))*+", re.DOTALL),
    '"': re.compile(r'(?:[^"\\\n]++|\\.)*+', re.DOTALL),
    "'": re.compile(r"(?:[^'\\\n]++|\\.)*+", re.DOTALL),
}
_MAX_BOUND_LINE_CHARS = 500  # longer lines are data, and a "for" is searched to the end of its line
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
    """The result of a walk over a program.

    Attributes:
        closed: whether all brackets and strings are closed, without surplus closing brackets.
        in_string: whether the text ends within a triple-quoted string.
        bare: the text with empty strings and without comments, line for line.
    """

    closed: bool
    in_string: bool
    bare: str


class Scanner:
    """Walks over a program by whole lines, and keeps its bare text if ``keeps_bare`` says so."""

    def __init__(self, *, keeps_bare: bool = False) -> None:
        self._open: list[str] = []
        self._quote: str | None = None
        self._balanced = True
        self._bare: list[str] | None = [] if keeps_bare else None
        self._tokens = _TOKEN if keeps_bare else _DELIMITER
        self._broken: dict[str, int] = {}

    @property
    def closed(self) -> bool:
        """Whether all brackets and strings so far are closed, without surplus closing brackets."""
        return self._balanced and not self._open and self._quote is None

    @property
    def in_string(self) -> bool:
        """Whether the text so far ends within a triple-quoted string."""
        return self._quote is not None

    def feed(self, piece: str) -> None:
        """Continues with whole lines; the time needed grows linearly with their length."""
        position = 0
        bare = self._bare
        self._broken.clear()
        if self._quote is not None:
            position = self._end_string(piece, 0, self._quote)
        while self._quote is None and (match := self._tokens.search(piece, position)):
            kind = match.lastgroup
            if bare is not None:
                bare.append(piece[position : match.start()])
                if kind in {"open", "close", "name"}:
                    bare.append(match[0])
            position = match.end()
            if kind == "quote":
                if match.start("quote") >= self._broken.get(match["quote"], 0):
                    position = self._end_string(piece, position, match["quote"])
            elif kind == "open":
                self._open.append(match[0])
            elif kind == "close" and (not self._open or self._open.pop() != _PAIRS[match[0]]):
                self._balanced = False
        if bare is not None and self._quote is None:
            bare.append(piece[position:])

    def bare(self) -> str:
        """Returns the text so far with empty strings and without comments, line for line."""
        return "".join(self._bare or ())

    def _end_string(self, piece: str, position: int, quote: str) -> int:
        """Returns the index after a string, or after its opening quote if the string has no end."""
        body = _STRING_BODIES[quote].match(piece, position)
        end = position if body is None else body.end()
        if piece.startswith(quote, end):
            self._quote = None
            if self._bare is not None:
                self._bare.append('""' + "\n" * piece.count("\n", position, end))
            return end + len(quote)
        if len(quote) == 3:
            self._quote = quote
            return len(piece)
        # A lone quote: the line is broken, but its rest can still be read. Other quotes of this
        # kind in the line do not begin strings either.
        self._balanced = False
        self._broken[quote] = end
        return position


def scan(code: str) -> Scan:
    """Scans a whole program."""
    scanner = Scanner(keeps_bare=True)
    scanner.feed(code)
    return Scan(scanner.closed, scanner.in_string, scanner.bare())


def defined_names(code: str) -> frozenset[str]:
    """Finds the names that a program binds: imports, assignments, definitions, loop variables."""
    names: set[str] = set()
    bare = "\n".join(line[:_MAX_BOUND_LINE_CHARS] for line in scan(code).bare.split("\n"))
    for match in _BINDS.finditer(bare):
        for text in match.groupdict().values():
            if text:
                names.update(_WORD.findall(text))
    return frozenset(names - _KNOWN)


def free_names(code: str) -> frozenset[str]:
    """Finds the names that a program uses without binding them, except attributes and keywords."""
    bare = _FROM.sub("import", scan(code).bare)
    used = set(_USED.findall(bare))
    return frozenset(used - defined_names(code) - _KNOWN)


# -- lines of code and prose -----------------------------------------------------------------------

_MAX_LINE_CHARS = 2_000
_CODE_LINE = re.compile(
    r"""\s*+(?:
        (?:from\s++[\w.]++\s++import\s++[\w(*]
          |import\s++[\w.]++(?:\s++as\s++\w++)?+(?:\s*+,\s*+[\w.]++)*+\s*+(?:\#|\Z))
      | (?:async\s++)?+(?:def|class)\s++\w++.*[:(,]\s*+(?:\#|\Z)
      | (?:if|elif|while|for|with|try|except|else|finally|match|case)\b.*:\s*+(?:\#|\Z)
      | (?:return|raise|yield|assert|del|global|nonlocal)\b(?:\s|\Z)
      | (?:pass|break|continue)\s*+\Z
      | [A-Za-z_][\w.]*+(?:\[[^\]]*+\])*+(?:\s*+,\s*+[A-Za-z_][\w.]*+)*+\s*+
        (?::\s*+[\w\[\], .|]++)?+\s*+
        (?:[-+*/%|&]|//|\*\*)?=(?!=)
      | [A-Za-z_][\w.]*+(?:\[[^\]]*+\])*+\(
      | [)\]}]++[,:.\w()]*+\s*+\Z
      | \# | @\w | \"{3} | '{3}
      | ["'\w.]++\s*+:\s*+[^ ].*,\s*+\Z
    )""",
    re.VERBOSE,
)
_STRONG_LINE = re.compile(
    r"""\s*+(?:
        import\s++\w | from\s++[\w.]++\s++import\s | def\s++\w++\s*+\( | \w[\w.]*+\s*+=\s*+\S
      | (?:for|with|while|if)\s.*:\s*+\Z
      | \w++(?:\.\w++)*+\(.*\)\s*+\Z
    )""",
    re.VERBOSE,
)
_IMPORT_LINE = re.compile(r"\s*+(?:import\s++[\w.]|from\s++[\w.]++\s++import\s)")
_HEADER_LINE = re.compile(
    r"""(?:async[ ]++)?+(?:
        for\s++\w++(?:\s*+,\s*+\w++)*+\s++in\s | with\s.*\sas\s++\w
      | def\s++\w++\s*+\( | class\s++\w++\s*+\Z
      | (?:if|elif|while)\s[^=<>(]*+[=<>(] | (?:try|else|finally)\s*+\Z
    )""",
    re.VERBOSE,
)
_PROSE_LINE = re.compile(r"[A-Z][\w',-]*+(?: [\w'\",;()./-]++){3,}+[.:!]?\Z")


def is_code_line(line: str) -> bool:
    """Returns whether a line could be part of a program."""
    return _CODE_LINE.match(line[:_MAX_LINE_CHARS]) is not None


def is_strong_line(line: str) -> bool:
    """Returns whether a line is almost certainly Python."""
    return _STRONG_LINE.match(line[:_MAX_LINE_CHARS]) is not None


def is_import_line(line: str) -> bool:
    """Returns whether a line imports something."""
    return _IMPORT_LINE.match(line[:_MAX_LINE_CHARS]) is not None and is_code_line(line)


def is_prose_line(line: str) -> bool:
    """Returns whether a line is a sentence."""
    return _PROSE_LINE.match(line[:_MAX_LINE_CHARS]) is not None


def is_header_line(line: str, next_line: str) -> bool:
    """Returns whether a line begins a block of Python, even if its colon was forgotten."""
    return next_line[:1].isspace() and _HEADER_LINE.match(line[:_MAX_LINE_CHARS]) is not None


def reads_like_code(text: str) -> bool:
    """Returns whether at least half of the lines could be code, and at least one certainly is."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return False
    like = sum(1 for line in lines if is_code_line(line))
    return any(is_strong_line(line) for line in lines) and like * 2 >= len(lines)


# -- whole programs --------------------------------------------------------------------------------

_MAX_PARSED_CHARS = 256 * 1024  # Python takes up to a kilobyte of memory for each character
_MAX_FORMATTED = 2_000_000_000
_MAX_SCANNED_CHARS = 4 * 1024 * 1024
_FORMATTED_STRING = re.compile(r"[rR]?[fF][rR]?['\"]")
_MARK = re.compile(r"`|<\||</?+[A-Za-z]\w*+>|\[/?+THINK\]")


@functools.lru_cache(maxsize=1)  # a program is recognized by its tree, then searched for paths
def syntax_tree(code: str) -> ast.Module | None:
    """Returns the syntax tree of a program; None if parsing fails or would take too long.

    Callers do not change the tree, since the next caller may get the same one.
    """
    if not _can_be_parsed(code):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def is_program(text: str) -> bool:
    """Returns whether the whole text is a program.

    It is a program if it parses and does something, since a single word or a JSON object parses as
    well. Text that is too long to be parsed counts as a program if it begins with a line of code,
    closes everything that it opens, and has neither a sentence nor a mark such as a fence outside
    its strings.
    """
    if not _can_be_parsed(text):
        return len(text) <= _MAX_SCANNED_CHARS and _reads_like_a_program(text)
    module = syntax_tree(text)
    return module is not None and any(
        not isinstance(statement, ast.Expr) or _calls(statement) for statement in module.body
    )


def _can_be_parsed(code: str) -> bool:
    """Returns whether parsing takes a limited time.

    Python's parser takes linear time with one exception: for each ``{}`` of an f-string, it
    searches the whole string again.
    """
    if len(code) > _MAX_PARSED_CHARS:
        return False
    is_heavy = code.count("{") * len(code) > _MAX_FORMATTED
    return not is_heavy or _FORMATTED_STRING.search(code) is None


def _calls(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Call | ast.NamedExpr) for node in ast.walk(statement))


def _reads_like_a_program(text: str) -> bool:
    first = next((line for line in text.split("\n") if line.strip()), "")
    if not is_code_line(first):
        return False
    scanned = scan(text)
    if not scanned.closed or _MARK.search(scanned.bare):
        return False
    lines = scanned.bare.split("\n")
    return any(map(is_strong_line, lines)) and not any(map(is_prose_line, lines))


# -- code as in a file -----------------------------------------------------------------------------

PROMPT_LINE = re.compile(r"^(?:>>>|\.\.\.)(?: |\Z)")
"""The prompt before a line of Python's console."""
NUMBERED_IN = re.compile(r"^In ?\[\d{0,9}\]: ?")
"""The prompt before a cell of a notebook."""

_SHELL_LINE = re.compile(r"[ \t]*+(?:!\w|%{1,2}\w|pip3? install )")
_LINE_NUMBER = re.compile(r" *+(\d{1,7}+)(?:[:.|] ?| |\t|\Z)")


def tidy(code: str) -> str:
    """Cleans a block of code, so that it reads as it would in a file.

    Args:
        code: lines that end with a newline, as they were in the reply.

    Returns:
        The code with one newline at its end; empty if there is no code.
    """
    code = code.strip("\n")
    if "\n" not in code and code.count("\\n") >= 2:
        code = code.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    lines = code.split("\n")
    first = next((line for line in lines if line.strip()), "")
    if PROMPT_LINE.match(first):
        # A pasted console session: lines without a prompt are output.
        lines = [PROMPT_LINE.sub("", line) for line in lines if PROMPT_LINE.match(line)]
    lines = [NUMBERED_IN.sub("", line, count=1) for line in _without_line_numbers(lines)]
    lines = [_indent_without_nbsp(line) for line in lines]
    lines = dedent("\n".join(lines)).split("\n")
    if lines and lines[0].strip().lower() in {"python", "python3", "py"}:
        lines = lines[1:]
    if any(_SHELL_LINE.match(line) for line in lines):
        lines = _without_shell(lines)
    return "\n".join(lines).strip("\n").rstrip() + "\n" if "".join(lines).strip() else ""


def dedent(text: str) -> str:
    """Removes the indentation that all lines share; blank lines become empty.

    Does the same as :func:`textwrap.dedent`, which builds a pattern from indents of any length.
    """
    lines = [line if line.strip(" \t") else "" for line in text.split("\n")]
    indents = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line]
    # A prefix that the first and last line in alphabetical order share is shared by all lines.
    first, last = min(indents, default=""), max(indents, default="")
    width = next(
        (
            column
            for column, pair in enumerate(zip(first, last, strict=False))
            if pair[0] != pair[1]
        ),
        min(len(first), len(last)),
    )
    return "\n".join(line[width:] for line in lines)


def _without_shell(lines: list[str]) -> list[str]:
    """Turns notebook magics and shell lines into comments, except inside strings."""
    walk = Scanner()
    kept: list[str] = []
    for line in lines:
        is_shell = walk.closed and _SHELL_LINE.match(line)
        kept.append(f"# {line}" if is_shell else line)
        walk.feed(kept[-1] + "\n")
    return kept


def _without_line_numbers(lines: list[str]) -> list[str]:
    """Removes line numbers (1, 2, 3 …) if every line begins with its number."""
    numbers = [_LINE_NUMBER.match(line) for line in lines]
    if len(lines) < 2 or any(
        match is None or int(match[1]) != number for number, match in enumerate(numbers, start=1)
    ):
        return lines
    return [line[match.end() :] for line, match in zip(lines, numbers, strict=True) if match]


def _indent_without_nbsp(line: str) -> str:
    rest = line.lstrip(" \t\u00a0\u2003\u3000\u200b\u2060\ufeff")
    indent = re.sub("[\u200b\u2060\ufeff]", "", line[: len(line) - len(rest)])
    return re.sub("[\u00a0\u2003\u3000]", " ", indent) + rest
