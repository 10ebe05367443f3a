"""The program in a chat model's reply. Pure.

A reply is a bare program, or prose around fenced blocks. Where several blocks hold Python, the
last complete one counts: models correct themselves downwards.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings

_FENCE = re.compile(
    r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<tag>[\w+#.-]*)[^\n`]*$", re.MULTILINE
)
_PYTHON_TAGS = frozenset({"python", "py", "python3", "python2", "ipython", "pycon"})
_CODE_LINE = re.compile(
    r"^[ \t]*(import [\w.]+|from [\w.]+ import |def \w+\(|class \w+[(:]|with .+ as \w+:"
    r"|for .+ in .+:|[\w.\[\]'\"]+ *=[^=]|[\w.]+\(.*\)$)",
    re.MULTILINE,
)
_MAX_PARSED_CHARS = 512 * 1024


def extract_code(reply: str) -> str | None:
    """The Python program of a reply.

    Args:
        reply: a bare program, or text with fenced blocks; a fence may be left open at the end.

    Returns:
        The program (which may be broken: whether it compiles is not asked), or None where the
        reply holds prose only. A bare program comes back as it is.
    """
    if not reply.strip():
        return None
    if _is_program(reply):
        return reply
    tagged: list[str] = []
    untagged: list[str] = []
    open_block: str | None = None
    position = 0
    while opening := _FENCE.search(reply, position):
        tag = opening["tag"].lower()
        closing = _closing_fence(reply, opening)
        if closing is None:
            body = textwrap.dedent(reply[opening.end() :].removeprefix("\n"))
            open_block = body if _may_be_python(tag, body) else None
            break
        body = textwrap.dedent(reply[opening.end() + 1 : closing.start()])
        position = closing.end()
        if tag in _PYTHON_TAGS:
            tagged.append(body)
        elif _may_be_python(tag, body):
            untagged.append(body)
    for found in (tagged, untagged, [open_block] if open_block else []):
        if found and found[-1].strip():
            return found[-1]
    if _FENCE.search(reply) is None and _CODE_LINE.search(reply) and _mostly_code(reply):
        return reply
    return None


def _closing_fence(reply: str, opening: re.Match[str]) -> re.Match[str] | None:
    fence = opening["fence"]
    closing = re.compile(rf"^[ \t]*{re.escape(fence[0])}{{{len(fence)},}}[ \t]*\r?$", re.MULTILINE)
    return closing.search(reply, opening.end())


def _may_be_python(tag: str, body: str) -> bool:
    if tag in _PYTHON_TAGS:
        return True
    return not tag and (_is_program(body) or _CODE_LINE.search(body) is not None)


def _is_program(text: str) -> bool:
    """Whether the text parses and does something: a lone word parses as well."""
    if len(text) > _MAX_PARSED_CHARS:
        return _FENCE.search(text) is None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(
        not isinstance(statement, ast.Expr) or isinstance(statement.value, ast.Call)
        for statement in module.body
    )


def _mostly_code(text: str) -> bool:
    """Tells a program with a syntax error from prose that mentions code."""
    lines = [line for line in text.splitlines() if line.strip()]
    code = sum(
        line[0] in " \t#)]}" or _CODE_LINE.match(line) is not None or line.rstrip().endswith(":")
        for line in lines
    )
    return 2 * code >= len(lines)
