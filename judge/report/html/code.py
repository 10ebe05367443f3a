"""Source code as coloured pieces of text."""

from __future__ import annotations

from typing import Any

from pygments.lexers import PythonLexer
from pygments.token import Token

_KINDS = (
    (Token.Comment, "c"),
    (Token.Keyword, "k"),
    (Token.Literal.String.Doc, "c"),
    (Token.Literal.String, "s"),
    (Token.Literal.Number, "m"),
    (Token.Name.Function, "f"),
    (Token.Name.Class, "f"),
    (Token.Name.Builtin, "b"),
    (Token.Name.Exception, "b"),
    (Token.Operator.Word, "k"),
)

_MAX_CODE_LENGTH = 400_000


def highlight(code: str) -> list[tuple[str, str]]:
    """Splits Python source into pieces, each with a letter for its kind.

    Returns:
        ``(kind, text)``: comments ``c``, keywords ``k``, strings ``s``, numbers ``m``, names of
        functions and classes ``f``, built-in names ``b``, an empty string for anything else. Joined
        together, the pieces are the source.
    """
    if len(code) > _MAX_CODE_LENGTH:
        return [("", code)]
    pieces: list[tuple[str, str]] = []
    lexer = PythonLexer(stripnl=False, ensurenl=False)
    for _, token, text in lexer.get_tokens_unprocessed(code):
        kind = _kind(token)
        if pieces and (pieces[-1][0] == kind or not text.strip()):
            pieces[-1] = (pieces[-1][0], pieces[-1][1] + text)
        else:
            pieces.append((kind, text))
    return pieces


def _kind(token: Any) -> str:
    return next((kind for parent, kind in _KINDS if token in parent), "")
