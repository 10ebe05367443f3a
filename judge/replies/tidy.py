"""Code as a file would hold it: no prompts, magics, odd indentation or JSON escapes. Pure."""

from __future__ import annotations

import re

from judge.replies.scan import Scanner

PROMPT_LINE = re.compile(r"^(?:>>>|\.\.\.)(?: |\Z)")
"""A line of Python's console."""
NUMBERED_IN = re.compile(r"^In ?\[\d{0,9}\]: ?")
"""The mark of a notebook's cell."""

_SHELL_LINE = re.compile(r"[ \t]*+(?:!\w|%{1,2}\w|pip3? install )")
_LINE_NUMBER = re.compile(r" *+(\d{1,7}+)(?:[:.|] ?| |\t|\Z)")


def tidy(code: str) -> str:
    """A block of code as a file would hold it.

    Args:
        code: lines that end with a newline, as they were in the reply.

    Returns:
        The code with one newline at its end; empty if it holds nothing.
    """
    code = code.strip("\n")
    if "\n" not in code and code.count("\\n") >= 2:
        code = code.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    lines = code.split("\n")
    first = next((line for line in lines if line.strip()), "")
    if PROMPT_LINE.match(first):
        # A pasted console: lines without a prompt are what it printed.
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
    """The text without the indentation that all of its lines share; blank lines become empty.

    Like :func:`textwrap.dedent`, which makes a pattern of the indentation, however long it is.
    """
    lines = [line if line.strip(" \t") else "" for line in text.split("\n")]
    indents = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line]
    # All of them share what the first and the last in alphabetical order share.
    first, last = min(indents, default=""), max(indents, default="")
    width = next(
        (place for place, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]),
        min(len(first), len(last)),
    )
    return "\n".join(line[width:] for line in lines)


def _without_shell(lines: list[str]) -> list[str]:
    """Notebook magics and shell lines become comments; inside strings they are left alone."""
    walk = Scanner()
    kept: list[str] = []
    for line in lines:
        is_shell = walk.closed and _SHELL_LINE.match(line)
        kept.append(f"# {line}" if is_shell else line)
        walk.feed(kept[-1] + "\n")
    return kept


def _without_line_numbers(lines: list[str]) -> list[str]:
    """Removes 1, 2, 3 … from the beginnings, if every line has its number."""
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
