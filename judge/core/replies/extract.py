"""Finds the program in a chat model's reply, after its reasoning. Pure; nothing is run or compiled.

Programs come in every shape: in any kind of fence and with any tag, in several blocks, cut off,
wrapped in the XML or JSON of a tool call, after pages of reasoning, or unmarked. The rules, in
order:

0. A reply that is a program from its first character to its last is taken unchanged, byte for
   byte: line ends, blank lines and the contents of strings (a fence, ``</think>``) belong to the
   program. So files of solutions can hold bare programs.
1. Reasoning is removed (``<think>`` and similar), and so are remains of a template at the end.
2. A wrapper that names its content (``<execute>``, a tool call with a ``code`` argument …) counts
   if the reply has no fence of Python, or if the fence is inside the wrapper.
3. Of several fenced blocks, the last one that works on its own is the program; if the last
   block uses names from earlier blocks, those are joined before it.
4. A block without an end was cut off: it is taken only if no complete block came before it.
5. Without any mark, the lines that look like Python are taken, and prose around them is left out.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judge.core.replies.blocks import Block, find_blocks, unwrap
from judge.core.replies.python_text import (
    NUMBERED_IN,
    PROMPT_LINE,
    Scanner,
    defined_names,
    free_names,
    is_code_line,
    is_header_line,
    is_import_line,
    is_program,
    is_prose_line,
    is_strong_line,
    reads_like_code,
    scan,
    tidy,
)

_REASONING_TAGS = (
    "think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis|internal_monologue"
)
_REASONING_START = re.compile(
    rf"(?:^[ \t]*+<(?P<tag>{_REASONING_TAGS})\b[^>\n]*+>"
    r"|(?P<thought><\|begin_of_thought\|>)|(?P<bracket>\[THINK\])|(?P<moon>◁think▷)"
    r"|(?P<channel><\|channel\|>\s*+(?:analysis|commentary)\s*+<\|message\|>))",
    re.IGNORECASE | re.MULTILINE,
)
_REASONING_ENDS = {
    "thought": re.compile(r"<\|end_of_thought\|>"),
    "bracket": re.compile(r"\[/THINK\]", re.IGNORECASE),
    "moon": re.compile(r"◁/think▷"),
    "channel": re.compile(r"(?=<\|channel\|>|<\|start\|>)"),
}
_REASONING_END = re.compile(
    rf"</(?:{_REASONING_TAGS})>|<\|end_of_thought\|>|\[/THINK\]|◁/think▷", re.IGNORECASE
)
_SPECIAL = re.compile(
    r"<\|(?:im_end|im_start|endoftext|eot_id|eom_id|end|end_of_text|return|start_header_id"
    r"|end_header_id|begin_of_solution|end_of_solution|message|start|channel)\|>"
    r"|<\uff5c[^\uff5c\n]{1,40}\uff5c>|</s>\s*+\Z|<end_of_turn>|<EOT>"
)
_HARMONY_CALL = re.compile(
    r"<\|channel\|>\s*+commentary\s++to=[\w.]++\s*+(?:<\|constrain\|>\s*+\w++\s*+)?+<\|message\|>"
    r"(?P<body>.*?)(?:<\|call\|>|\Z)",
    re.DOTALL,
)


def answer_of(text: str) -> str:
    r"""Returns the answer without reasoning and without the marks of a template.

    Args:
        text: the reply, with line ends of ``\n``.
    """
    text = _HARMONY_CALL.sub(r"<tool_call>\g<body></tool_call>", text)
    return _SPECIAL.sub("\n", strip_reasoning(text))


def strip_reasoning(text: str) -> str:
    """Returns the reply without the model's marked reasoning."""
    text = _cut_reasoning(text)
    if (end := _last(_REASONING_END, text)) is not None and text[end.end() :].strip():
        # If a template opens the reasoning in the prompt, the reply has only its end mark.
        text = text[end.end() :]
    opening = _REASONING_START.match(text.lstrip())
    return "" if opening else text  # Reasoning without an end mark never reached an answer.


def _cut_reasoning(text: str) -> str:
    kept: list[str] = []
    position = 0
    endless: set[str] = set()
    for start in _REASONING_START.finditer(text):
        kind = str(start.lastgroup if start["tag"] is None else start["tag"].lower())
        if start.start() < position or kind in endless:
            continue
        ends = _REASONING_ENDS.get(kind) or re.compile(rf"</{kind}>", re.IGNORECASE)
        end = ends.search(text, start.end())
        if end is None:
            endless.add(kind)
            continue
        kept += [text[position : start.start()], "\n"]
        position = end.end()
    return "".join(kept) + text[position:]


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    last = None
    for last in pattern.finditer(text):  # noqa: B007  only the last one is needed
        pass
    return last


_QUOTED_PROGRAM = re.compile(
    r"\A\s*+(?P<quote>'{3}|\"{3})(?:python3?|py)[ \t]*+\n(?P<body>.*?)(?P<end>(?P=quote)\s*+\Z|\Z)",
    re.DOTALL,
)
_BLANK_LINES = re.compile(r"\A(?:[ \t]*+\n)++")
_HANGING_END = re.compile(
    r"(?:[-=+*/%,:.(\[{\\|&<>@~^]|\b(?:in|and|or|not|is|import|from|as|if|elif|while|for|def|class|with|return))\Z"
)
_CALL = re.compile(r"\w\s*+\(")
_WRITES = re.compile(r"\.save\s*+\(|\.to_excel\s*+\(|ExcelWriter|\.close\s*+\(")


MAX_REPLY_CHARS = 400_000
"""How many characters of a reply are read: far more than any program has."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """The program in a reply.

    Attributes:
        code: the program; None if the reply has no program.
        form: how the reply contains it: ``fence``, ``joined``, ``unclosed``, ``wrapper``, ``bare``
            or ``none``.
        truncated: whether the reply seems to end in the middle of the program.
        blocks: how many pieces of Python the reply has.
    """

    code: str | None
    form: str
    truncated: bool = False
    blocks: int = 0


@functools.lru_cache(maxsize=8)  # a submission is read when it is loaded, run and reported
def extract(reply: str) -> Extraction:
    r"""Finds the program in a reply.

    Args:
        reply: the unchanged text of the message.

    Returns:
        The program: unchanged if the reply is nothing else, otherwise with the line end ``\n`` and
        without common indentation.
    """
    if is_program(reply):
        return Extraction(reply, "bare", blocks=1)
    reply = reply[:MAX_REPLY_CHARS]
    text = answer_of(reply.replace("\r\n", "\n").replace("\r", "\n"))
    if text != reply and is_program(text):
        return Extraction(_BLANK_LINES.sub("", text).rstrip() + "\n", "bare", blocks=1)
    wrapped = unwrap(text)
    if wrapped is not None:
        inner = _from_blocks(find_blocks(wrapped.text))
        if inner is None and wrapped.text.strip():
            inner = Extraction(tidy(wrapped.text), "wrapper", not wrapped.closed, 1)
        # A wrapper whose name does not promise code may contain prose (<answer>done</answer>).
        if inner is not None and inner.code and (wrapped.is_code or reads_like_code(inner.code)):
            truncated = inner.truncated or not scan(inner.code).closed
            return Extraction(inner.code, "wrapper", truncated, inner.blocks)
    return _from_quotes(text) or _from_blocks(find_blocks(text)) or _from_bare_text(text)


def _from_quotes(text: str) -> Extraction | None:
    """Finds the program in a reply that uses three quotation marks instead of a fence."""
    quoted = _QUOTED_PROGRAM.match(text)
    if quoted is None or not quoted["end"].strip():
        return None
    return Extraction(tidy(quoted["body"]), "fence", blocks=1)


def _from_blocks(blocks: list[Block]) -> Extraction | None:
    """Chooses the program among fenced blocks; None if none of them is Python."""
    named = [block for block in blocks if block.is_python and block.text.strip()]
    pieces = named or [
        block for block in blocks if block.may_be_python and reads_like_code(block.text)
    ]
    if not pieces:
        return None
    codes = [tidy(block.text) for block in pieces]
    whole = [
        index
        for index, block in enumerate(pieces)
        if block.closed and scan(codes[index]).closed and codes[index]
    ]
    if not whole:
        last = codes[-1]
        truncated = not pieces[-1].closed
        return Extraction(last, "unclosed" if truncated else "fence", truncated, len(pieces))
    cut_off = not pieces[-1].closed
    if cut_off:
        last_whole = whole[-1]
        ends_whole = scan(codes[-1]).closed and not _HANGING_END.search(codes[-1].rstrip()[-20:])
        if ends_whole and _stands_alone(codes[-1], codes[:-1]):
            # No closing fence, but a complete program: many models just stop.
            return Extraction(codes[-1], "unclosed", truncated=False, blocks=len(pieces))
        if not _makes_something(codes[last_whole]):
            joined = _join(codes, len(codes) - 1, [*whole, len(codes) - 1])
            return Extraction(joined, "unclosed", truncated=True, blocks=len(pieces))
    return _join_from(codes, whole, len(pieces), truncated=cut_off)


def _join_from(codes: list[str], whole: list[int], blocks: int, *, truncated: bool) -> Extraction:
    # A program is often followed by an example of its output or of a call, so a block without
    # effective statements is not a program.
    last = next((index for index in reversed(whole) if reads_like_code(codes[index])), whole[0])
    # Nor is a block that only inspects the finished workbook: unlike a solution, it writes nothing.
    makers = [index for index in whole if index < last and _makes_something(codes[index])]
    if makers and not _makes_something(codes[last]) and _stands_alone(codes[last], codes[:last]):
        last = makers[-1]
    joined = _join(codes, last, whole)
    form = "fence" if joined == codes[last] else "joined"
    return Extraction(joined, form, truncated, blocks)


def _join(codes: list[str], last: int, whole: list[int]) -> str:
    """Returns the block, preceded by the earlier blocks on which it depends."""
    first = last
    needed = set(free_names(codes[last]))
    for index in reversed([index for index in whole if index < last]):
        defined = defined_names(codes[index])
        if not needed.isdisjoint(defined):
            first = index
            needed -= defined
            needed |= free_names(codes[index])
    chosen: list[int] = []
    defined_before: set[str] = set()
    for index in [index for index in whole if first <= index < last]:
        # A block in between belongs to the program if it uses the same names (ws = wb.active).
        if index == first or not defined_before.isdisjoint(free_names(codes[index])):
            chosen.append(index)
            defined_before |= defined_names(codes[index])
    return "\n\n".join(codes[index].rstrip() for index in [*chosen, last]) + "\n"


def _stands_alone(code: str, earlier: list[str]) -> bool:
    needed = free_names(code)
    return all(needed.isdisjoint(defined_names(code_before)) for code_before in earlier)


def _makes_something(code: str) -> bool:
    """Returns whether the program seems to write a workbook, judging by its text."""
    return _WRITES.search(code) is not None


def _from_bare_text(text: str) -> Extraction:
    """Finds the lines that look like Python in a reply without any mark."""
    if quoted := _QUOTED_PROGRAM.match(text):
        return Extraction(tidy(quoted["body"]), "fence", truncated=True, blocks=1)
    stripped = text.strip()
    if stripped.startswith("`") and stripped.endswith("`"):
        text = stripped.strip("`")
    lines = [NUMBERED_IN.sub("", PROMPT_LINE.sub("", line)) for line in text.split("\n")]
    strong = [index for index, line in enumerate(lines) if is_strong_line(line)]
    imports = [index for index in strong if is_import_line(lines[index])]
    if not strong:
        return Extraction(None, "none")
    first = (imports or strong)[0]
    while first and (
        not lines[first - 1].strip()
        or is_code_line(lines[first - 1])
        or is_header_line(lines[first - 1], lines[first])
    ):
        first -= 1
    lines = _without_prose(lines[first:])
    code = tidy("\n".join(lines))
    # Code without a call cannot read or write: "Profit = Revenue - Cost" is not a program.
    if not reads_like_code(code) or not _CALL.search(scan(code).bare):
        return Extraction(None, "none")
    return Extraction(code, "bare", truncated=not scan(code).closed, blocks=1)


def _without_prose(lines: list[str]) -> list[str]:
    """Leaves out sentences between pieces of code, and everything after the last piece."""
    kept: list[str] = []
    walk = Scanner()
    last_code = 0
    for line in lines:
        if walk.closed and not line[:1].isspace() and is_prose_line(line):
            continue
        was_open = not walk.closed
        walk.feed(line + "\n")
        kept.append(line)
        if was_open or is_code_line(line):
            last_code = len(kept)
    return kept[:last_code]


def recorded_program(record: Mapping[str, Any]) -> str | None:
    """Returns the program of a record.

    Args:
        record: ``solution`` (or ``code``) is a program or a whole reply; ``reply``, if present, is
            the reply that the program was found in.

    Returns:
        The program; None if the record has no program. A program that was already found in the
        recorded reply is taken unchanged, and not searched again.
    """
    text = record.get("solution", record.get("code"))
    if not isinstance(text, str):
        return None
    reply = record.get("reply")
    if isinstance(reply, str) and reply != text and extract(reply).code == text:
        return text
    return extract(text).code


MAX_ANSWER_CHARS = 4_000_000
"""How many characters of a reply are read: the last ones, since the answer is at the end."""


def bounded_reply(reply: str) -> str:
    """Returns the part of a reply that is read: at most its last :data:`MAX_ANSWER_CHARS`."""
    return reply[-MAX_ANSWER_CHARS:]
