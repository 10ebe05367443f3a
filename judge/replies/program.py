"""Whether text is a program from its first character to its last. Pure; nothing is run."""

from __future__ import annotations

import ast
import re
import warnings

from judge.replies.codelines import is_code_line, is_prose_line, is_strong_line
from judge.replies.scan import scan

_MAX_PARSED_CHARS = 256 * 1024  # Python takes up to a kilobyte of memory for each character
_MAX_FORMATTED = 2_000_000_000
_MAX_SCANNED_CHARS = 4 * 1024 * 1024
_FORMATTED_STRING = re.compile(r"[rR]?[fF][rR]?['\"]")
_MARK = re.compile(r"`|<\||</?+[A-Za-z]\w*+>|\[/?+THINK\]")


def syntax_tree(code: str) -> ast.Module | None:
    """The syntax tree of a program; None if it does not parse, or would take too long."""
    if not _can_be_parsed(code):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def is_program(text: str) -> bool:
    """Whether the whole text is a program.

    It is if it parses and does something: a lone word, or a JSON object, parses as well. What
    is too long to be parsed counts as one if it begins with a line of code, closes everything that
    it opens, and holds neither a sentence nor a mark such as a fence outside its strings.
    """
    if not _can_be_parsed(text):
        return len(text) <= _MAX_SCANNED_CHARS and _reads_like_a_program(text)
    module = syntax_tree(text)
    return module is not None and any(
        not isinstance(statement, ast.Expr) or _calls(statement) for statement in module.body
    )


def _can_be_parsed(code: str) -> bool:
    """Whether parsing takes a bounded time.

    Python's parser is linear with one exception: for each ``{}`` of an f-string it searches the
    whole string again.
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
    found = scan(text)
    if not found.closed or _MARK.search(found.bare):
        return False
    lines = found.bare.split("\n")
    return any(map(is_strong_line, lines)) and not any(map(is_prose_line, lines))
