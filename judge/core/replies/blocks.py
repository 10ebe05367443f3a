"""Finds the code in a reply: in Markdown fences, or in the XML or JSON of a tool call. Pure.

Fences may be of any kind, have any language tag, and be nested, indented or unclosed.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from judge.core.replies.python_text import Scanner, dedent

_OPEN = re.compile(
    r"(?P<lead>[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?+)"
    r"(?P<fence>`{3,}+|~{3,}+)(?P<info>[^`]*+)\Z"
)
_CODE_BEHIND_FENCE = re.compile(
    r"^(?P<open>[ \t]*+(?:`{3,}+|~{3,}+)(?:python3?|py)?)"
    r"[ \t]++(?P<code>(?:import|from)[ \t][^\n]++)$",
    re.MULTILINE,
)
_FENCE_LINE = re.compile(r"[ \t]*+(?P<fence>`{3,}+|~{3,}+)")
_INNER_FENCE = re.compile(r"^[ \t]*+(?:`{3,}+|~{3,}+)\w", re.MULTILINE)
_MAX_NESTED = 4
_MAX_LOOKS_AHEAD = 5
_QUOTE_MARK = re.compile(r"^[ \t]*+> ?")
_PROSE = re.compile(r"(?P<word>[A-Za-z][\w']*+),? [^`]++\Z")
_TAG = re.compile(r"[A-Za-z][\w+#-]*+")
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
        tag: the language tag in lower case; empty for a fence without a tag.
        text: the text between the fences, without the indentation of the fence.
        closed: whether a closing fence was found.
    """

    tag: str
    text: str
    closed: bool

    @property
    def is_python(self) -> bool:
        """Whether the tag names Python."""
        return self.tag in _PYTHON_TAGS

    @property
    def may_be_python(self) -> bool:
        """Whether the block may be Python: its tag does not name another language."""
        return self.tag not in _OTHER_TAGS


def find_blocks(text: str) -> list[Block]:
    """Finds fenced blocks, in order.

    A closing fence within a string of the program does not close the block: if the text before
    it ends inside a triple-quoted string, the next fence is tried.
    """
    return _find_blocks(text, _MAX_NESTED)


def _find_blocks(text: str, nested: int) -> list[Block]:
    reader = _Reader(_split_inline_fences(text).split("\n"))
    blocks: list[Block] = []
    number = 0
    while number < len(reader.lines):
        opening = _OPEN.match(reader.lines[number])
        if opening is None:
            number += 1
            continue
        block, number = reader.read_block(number + 1, opening)
        blocks.extend(_nested(block, nested))
    return blocks


def outside_fences(text: str) -> Iterator[tuple[str, bool]]:
    """Yields each line with its line end, and whether it is outside all fenced blocks.

    Fences are read as in Markdown, whatever the program between them contains.
    """
    fence: str | None = None
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        is_last = number == len(lines)
        outside = fence is None
        if fence is not None:
            if line.strip(" \t") == fence:
                fence = None
        elif not is_last and (opening := _FENCE_LINE.match(line)):
            fence = opening["fence"]
            outside = False
        yield line if is_last else line + "\n", outside


class _Reader:
    """Reads the fenced blocks from the lines of a reply."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self._looks_ahead = 0

    def read_block(self, start: int, opening: re.Match[str]) -> tuple[Block, int]:
        """Returns the block that begins at a line, and the number of the line after it."""
        fence = opening["fence"]
        lead = len(opening["lead"].expandtabs(4))
        rules = _BlockRules(
            tag=_tag(opening["info"]), fence=fence, lead=lead, quoted=">" in opening["lead"]
        )
        body: list[str] = []
        walk = Scanner()
        first_close: int | None = None
        depth = 0
        for number in range(start, len(self.lines)):
            line = self.lines[number]
            if rules.closes(line):
                if depth:
                    depth -= 1
                elif not walk.in_string or self._looks_ahead >= _MAX_LOOKS_AHEAD:
                    return rules.block(body, closed=True), number + 1
                elif first_close is None:
                    first_close = number
            elif rules.tag in _MARKDOWN_TAGS and _OPEN.match(line):
                depth += 1  # A whole answer inside a Markdown fence contains more fences.
            elif (reopened := _OPEN.match(line)) and _tag(reopened["info"]) in _PYTHON_TAGS:
                # The fence above was never closed, and another block begins.
                if not walk.in_string:
                    return rules.block(body, closed=False), number
            elif walk.closed and rules.closes_before_prose(line):
                return rules.block(body, closed=True), number + 1
            elif (end := rules.glued_end(line)) is not None:
                body.append(end)
                return rules.block(body, closed=True), number + 1
            body.append(line)
            walk.feed(line + "\n")
        if first_close is not None:
            # The string never ended either, so the fence that seemed to be inside it was the end of
            # the block. Only a few blocks of a reply may be read to the end in vain.
            self._looks_ahead += 1
            return rules.block(body[: first_close - start], closed=True), first_close + 1
        return rules.block(body, closed=False), len(self.lines)


@dataclass(frozen=True, slots=True)
class _BlockRules:
    """The ways that an open block can end."""

    tag: str
    fence: str
    lead: int
    quoted: bool

    def closes(self, line: str) -> bool:
        """Whether the line is a closing fence: at least as long as the opening one."""
        mark = line.lstrip(" \t>").rstrip(" \t")
        return len(mark) >= len(self.fence) and not mark.strip(self.fence[0])

    def closes_before_prose(self, line: str) -> bool:
        """Whether the line is a closing fence followed by a sentence."""
        rest = line.lstrip(" \t>")
        if not rest.startswith(self.fence):
            return False
        prose = _PROSE.match(rest, len(self.fence))
        return prose is not None and not _is_tag(prose["word"])

    def glued_end(self, line: str) -> str | None:
        """Returns the code before a closing fence on the same line; None if there is no fence."""
        line = line.rstrip(" \t")
        code = line.removesuffix(self.fence)
        if len(code) == len(line) or "`" in code:
            return None
        code = code.rstrip(" \t")
        return code if code and not code[-1].isspace() else None

    def block(self, body: list[str], *, closed: bool) -> Block:
        """Makes the block with these lines."""
        return Block(self.tag, _body(body, self.lead, self.quoted), closed)


def _nested(block: Block, nested: int) -> list[Block]:
    """Returns the blocks inside a Markdown fence around the whole answer, or the block itself."""
    if nested and block.tag in {*_MARKDOWN_TAGS, ""} and _INNER_FENCE.search(block.text):
        inner = _find_blocks(block.text, nested - 1)
        if any(block.is_python for block in inner):
            return inner
    return [block]


def _split_inline_fences(text: str) -> str:
    """Puts a fence that follows prose, or precedes code, on a separate line."""
    lines = []
    for line in text.split("\n"):
        at = line.find("```py")
        # Spaces, quote marks and list marks may precede a fence, but not words. A fence after a
        # quotation mark is part of a string of the program.
        before = line[:at].rstrip()
        if at > 0 and before[-1:] not in {"'", '"'} and before.strip(" \t>-*+.)`~0123456789"):
            lines += [line[:at], line[at:]]
        else:
            lines.append(line)
    text = "\n".join(lines)
    return _CODE_BEHIND_FENCE.sub(r"\g<open>\n\g<code>", text)


def _tag(info: str) -> str:
    """Returns the language in a fence's info string: ``{.python}``, ``Python title="x"`` …."""
    word = _TAG.search(info)
    if word is None:
        return ""
    return word[0].lower()


def _is_tag(word: str) -> bool:
    return word.lower() in _PYTHON_TAGS | _OTHER_TAGS


def _body(lines: list[str], lead: int, quoted: bool) -> str:
    if quoted:
        lines = [_QUOTE_MARK.sub("", line) for line in lines]
    elif lead:
        lines = [_without_indent(line, lead) for line in lines]
    return dedent("\n".join(lines))


def _without_indent(line: str, width: int) -> str:
    kept = line.expandtabs(4) if line[:width].count("\t") else line
    blank = len(kept) - len(kept.lstrip(" "))
    return kept[min(blank, width) :]


# -- tool calls ------------------------------------------------------------------------------------

_CODE_TAGS = (
    "execute_python|execute|execute_code|run_python|python_code|python|code|code_block|pycode"
    "|solution_code|final_code|tool_code|code_interpreter|ipython|script"
)
_LOOSE_TAGS = "solution|answer|final_answer|final|output|response|result"
_CODE_ARGUMENT = re.compile(
    r"<(?:parameter|arg|argument)\s*+(?:=\s*+|name\s*+=\s*+)[\"']?"
    r"(?:code|python|source|script|program|python_code|cmd)[\"']?\s*+>"
    r"(?P<body>.*?)(?P<end></(?:parameter|arg|argument)>|</invoke>|</function>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_ARGUMENT_PAIR = re.compile(
    r"<arg_key>\s*+code\s*+</arg_key>\s*+<arg_value>(?P<body>.*?)(?P<end></arg_value>|\Z)",
    re.DOTALL,
)
_TOOL_CALL = re.compile(
    r"(?:<tool_call>|<function_call>|<tool_use>|\[TOOL_CALLS\]|<\|tool_call\|>|<\|tool_calls_section_begin\|>)"
    r"(?P<body>.*?)(?P<end></tool_call>|</function_call>|</tool_use>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_PYTHON_TAG = re.compile(r"<\|python_tag\|>(?P<body>.*?)(?P<end><\|\w{1,40}+\|>|\Z)", re.DOTALL)
_CODE_ELEMENT = re.compile(
    rf"(?<!['\"=(\w])<(?P<tag>{_CODE_TAGS})(?:\s++(?:[^<>\s][^<>\n]*+)?+)?+>"
    r"(?P<body>.*?)(?P<end></(?P=tag)>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_LOOSE_ELEMENT = re.compile(
    rf"(?<!['\"=(\w])<(?P<tag>{_LOOSE_TAGS})>(?P<body>.*?)(?P<end></(?P=tag)>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_CDATA_START, _CDATA_END = "<![CDATA[", "]]>"
_JSON_KEYS = ("code", "python", "python_code", "solution", "program", "script", "source", "input")
_JSON_FENCE = re.compile(r"```(?:json)?\s*+")
_JSON_START = re.compile(r"[\[{]")
_MAX_JSON_STARTS = 20
_MAX_JSON_DEPTH = 40
_WITHOUT_TAGS = str.maketrans("<>[", "   ")
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|#39);")
_ABOUT_HTML = re.compile(r"html|unescape")


@dataclass(frozen=True, slots=True)
class WrappedContent:
    """The content of a wrapper, such as an XML element or an argument of a tool call.

    Attributes:
        text: the content, unescaped.
        closed: whether the wrapper's end was found.
        is_code: whether the wrapper's name says that its content is code.
    """

    text: str
    closed: bool
    is_code: bool


def unwrap(text: str) -> WrappedContent | None:
    """Returns the content of the last wrapper in a reply; None if it has no wrapper.

    A wrapper inside a fenced block belongs to the program and is ignored.
    """
    outside = _blank_fences(text)
    for pattern, is_code in (
        (_CODE_ARGUMENT, True),
        (_ARGUMENT_PAIR, True),
        (_PYTHON_TAG, True),
        (_TOOL_CALL, True),
        (_CODE_ELEMENT, True),
        (_LOOSE_ELEMENT, False),
    ):
        matches = [match for match in pattern.finditer(outside) if match["body"].strip()]
        if not matches:
            continue
        match = matches[-1]
        body = text[match.start("body") : match.end("body")]
        closed = bool(match["end"]) or pattern is _PYTHON_TAG
        if pattern is _TOOL_CALL:
            argument = _json_code(body)
            if argument is None:
                continue
            return WrappedContent(argument, closed=True, is_code=True)
        return WrappedContent(_unescape(body), closed, is_code)
    if (whole := _json_body(text)) is not None and (argument := _json_code(whole)) is not None:
        return WrappedContent(argument, closed=True, is_code=True)
    return None


def _blank_fences(text: str) -> str:
    """Replaces brackets inside fenced blocks by spaces, which keeps the length of the text."""
    return "".join(
        line if outside else line.translate(_WITHOUT_TAGS) for line, outside in outside_fences(text)
    )


def _json_body(text: str) -> str | None:
    """Returns the JSON of a reply that is nothing but an object or a list; otherwise None."""
    body = text.strip()
    if fence := _JSON_FENCE.match(body):
        body = body[fence.end() :]
    body = body.removesuffix("```").rstrip()
    return body if body[:1] + body[-1:] in {"{}", "[]"} else None


def _json_code(text: str, depth: int = 0) -> str | None:
    """Finds the code argument of a tool call in JSON, wherever it is nested."""
    decoder = json.JSONDecoder(strict=False)
    position = 0
    for _ in range(_MAX_JSON_STARTS):
        start = _JSON_START.search(text, position)
        if start is None:
            return None
        try:
            document, position = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            position = start.end()
            continue
        # Skip what was read: otherwise JSON within JSON would be read again at every bracket of
        # every level.
        if (code := _find_code(document, depth)) is not None:
            return code
    return None


def _find_code(document: object, depth: int) -> str | None:
    if depth > _MAX_JSON_DEPTH:
        return None
    if isinstance(document, str):
        # Arguments are often JSON within JSON.
        return _json_code(document, depth + 1) if document.lstrip().startswith("{") else None
    if isinstance(document, list):
        for item in reversed(document):
            if (code := _find_code(item, depth + 1)) is not None:
                return code
    if isinstance(document, dict):
        for key in _JSON_KEYS:
            value = document.get(key)
            if isinstance(value, str) and value.strip() and not value.lstrip().startswith("{"):
                return value
        for value in document.values():
            if (code := _find_code(value, depth + 1)) is not None:
                return code
    return None


def _unescape(body: str) -> str:
    inner = body.lstrip()
    if inner.startswith(_CDATA_START):
        return inner.removeprefix(_CDATA_START).rstrip().removesuffix(_CDATA_END)
    if _ENTITY.search(body) and not _ABOUT_HTML.search(body):
        return html.unescape(body)
    return body
