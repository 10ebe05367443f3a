"""Fenced blocks of a reply: any fence, any language tag, nested, indented, unclosed. Pure."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from judge.inference.scan import Scanner

_OPEN = re.compile(
    r"^(?P<lead>[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)?)(?P<fence>`{3,}|~{3,})(?P<info>[^\n`]*)$"
)
_CODE_BEHIND_FENCE = re.compile(
    r"^(?P<open>[ \t]*(?:```+|~~~+)(?:python3?|py)?)[ \t]+(?P<code>(?:import|from)[ \t][^\n]+)$",
    re.MULTILINE,
)
_PYTHON_TAGS = frozenset(
    {"python", "py", "python3", "py3", "python2", "ipython", "ipython3", "jupyter", "tool_code"}
    | {"pycon", "code", "python-repl", "execute", "pyspark", "cpython", "openpyxl", "pandas"}
)
_MARKDOWN_TAGS = frozenset({"markdown", "md"})
_OTHER_TAGS = frozenset(
    {"bash", "sh", "shell", "console", "zsh", "powershell", "cmd", "text", "txt", "plaintext"}
    | {"output", "json", "jsonc", "yaml", "yml", "toml", "ini", "xml", "html", "css", "sql"}
    | {"markdown", "md", "csv", "tsv", "vba", "vb", "vbnet", "basic", "excel", "excel-formula"}
    | {"formula", "javascript", "js", "typescript", "ts", "java", "c", "cpp", "csharp", "r"}
    | {"go", "rust", "ruby", "diff", "patch", "dax", "m", "powerquery", "latex", "mermaid"}
    | {"traceback", "log", "stdout", "stderr", "result", "results", "table", "pseudocode"}
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block.

    Attributes:
        tag: the language tag in lower case; empty where there is none.
        text: what stands between the fences, without the fence's own indentation.
        closed: whether a closing fence was found.
    """

    tag: str
    text: str
    closed: bool

    @property
    def is_python(self) -> bool:
        """Whether the tag says Python."""
        return self.tag in _PYTHON_TAGS

    @property
    def may_be_python(self) -> bool:
        """Whether the tag does not say anything else."""
        return self.tag not in _OTHER_TAGS


def find_blocks(text: str) -> list[Block]:
    """Fenced blocks in order.

    A closing fence within a string of the program does not close the block: where the text up
    to it ends inside a triple-quoted string, the next fence is tried.
    """
    lines = _split_inline_fences(text).split("\n")
    blocks: list[Block] = []
    number = 0
    while number < len(lines):
        opening = _OPEN.match(lines[number])
        if opening is None:
            number += 1
            continue
        block, number = _read_block(lines, number + 1, opening)
        blocks.extend(_nested(block))
    return blocks


def _read_block(lines: list[str], start: int, opening: re.Match[str]) -> tuple[Block, int]:
    """The block that begins at a line, and the number of the line after it."""
    tag = _tag(opening["info"])
    fence = opening["fence"]
    lead = len(opening["lead"].expandtabs(4))
    quoted = ">" in opening["lead"]
    closing = re.compile(rf"^[ \t>]*{re.escape(fence[0])}{{{len(fence)},}}[ \t]*$")
    before_prose = re.compile(rf"^[ \t>]*{re.escape(fence)}(?P<word>[A-Za-z][\w']*),? [^`\n]+$")
    glued = re.compile(
        rf"^(?P<code>[^`\n]*[^`\s])[ \t]*{re.escape(fence[0])}{{{len(fence)}}}[ \t]*$"
    )
    body: list[str] = []
    walk = Scanner()
    first_close: int | None = None
    depth = 0
    for number in range(start, len(lines)):
        line = lines[number]
        if closing.match(line):
            if depth:
                depth -= 1
            elif not walk.in_string:
                return Block(tag, _body(body, lead, quoted), closed=True), number + 1
            elif first_close is None:
                first_close = number
        elif tag in _MARKDOWN_TAGS and _OPEN.match(line):
            depth += 1  # A whole answer inside a Markdown fence holds fences of its own.
        elif (reopened := _OPEN.match(line)) and _tag(reopened["info"]) in _PYTHON_TAGS:
            # The fence above was never closed, and another block begins.
            if not walk.in_string:
                return Block(tag, _body(body, lead, quoted), closed=False), number
        elif walk.closed and (prose := before_prose.match(line)) and not _is_tag(prose["word"]):
            return Block(tag, _body(body, lead, quoted), closed=True), number + 1
        elif end := glued.match(line):
            body.append(end["code"])
            return Block(tag, _body(body, lead, quoted), closed=True), number + 1
        body.append(line)
        walk.feed(line + "\n")
    if first_close is not None:
        # The string never ended either: the fence that seemed to be inside it was the end.
        kept = body[: first_close - start]
        return Block(tag, _body(kept, lead, quoted), closed=True), first_close + 1
    return Block(tag, _body(body, lead, quoted), closed=False), len(lines)


def _nested(block: Block) -> list[Block]:
    """A Markdown fence around the whole answer is looked into."""
    if block.tag in {*_MARKDOWN_TAGS, ""} and re.search(
        r"^[ \t]*(?:```|~~~)\w", block.text, re.MULTILINE
    ):
        inner = find_blocks(block.text)
        if any(each.is_python for each in inner):
            return inner
    return [block]


def _split_inline_fences(text: str) -> str:
    """Puts a fence that stands behind prose, or before code, on a line of its own."""
    lines = []
    for line in text.split("\n"):
        at = line.find("```py")
        # Blanks, quote marks and list marks may stand before a fence; words may not. A fence
        # behind a quotation mark is a string of the program's.
        before = line[:at].rstrip()
        if at > 0 and before[-1:] not in {"'", '"'} and before.strip(" \t>-*+.)`~0123456789"):
            lines += [line[:at], line[at:]]
        else:
            lines.append(line)
    text = "\n".join(lines)
    return _CODE_BEHIND_FENCE.sub(r"\g<open>\n\g<code>", text)


def _tag(info: str) -> str:
    """The language of a fence's info string: ``{.python}``, ``Python title="x"``, ``py:main``."""
    word = re.search(r"[A-Za-z][\w+#-]*", info)
    if word is None:
        return ""
    return word[0].lower()


def _is_tag(word: str) -> bool:
    return word.lower() in _PYTHON_TAGS | _OTHER_TAGS


def _body(lines: list[str], lead: int, quoted: bool) -> str:
    if quoted:
        lines = [re.sub(r"^[ \t]*> ?", "", line) for line in lines]
    elif lead:
        lines = [_without_indent(line, lead) for line in lines]
    return textwrap.dedent("\n".join(lines))


def _without_indent(line: str, width: int) -> str:
    kept = line.expandtabs(4) if line[:width].count("\t") else line
    blank = len(kept) - len(kept.lstrip(" "))
    return kept[min(blank, width) :]
