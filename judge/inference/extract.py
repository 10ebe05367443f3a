"""Finds the program in a chat model's reply. Pure.

Replies come in every shape: fenced with any fence and tag, in several blocks, cut off, wrapped in
the XML or JSON of a tool call, after pages of reasoning, or with no mark at all. The rules, in
order:

1. Reasoning is taken out (``<think>`` and its kin); what a template left at the end as well.
2. A wrapper that names its content (``<execute>``, a tool call with a ``code`` argument …) counts
   where the reply holds no fence of Python, or where the fence is inside the wrapper.
3. Of several fenced blocks the last one that stands on its own is the program; where the last
   one takes names from earlier ones, those are joined before it.
4. A block without an end was cut off: it is taken only where nothing whole came before it.
5. Without any mark, the lines that read like Python are taken, prose around them left out.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from dataclasses import dataclass

from judge.inference.fences import Block, find_blocks
from judge.inference.scan import Scanner, defined_names, free_names, scan
from judge.inference.wrappers import unwrap

_REASONING_TAGS = (
    "think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis|internal_monologue"
)
_REASONING_START = re.compile(
    rf"(?:^[ \t]*<(?P<tag>{_REASONING_TAGS})\b[^>\n]*>"
    r"|(?P<thought><\|begin_of_thought\|>)|(?P<bracket>\[THINK\])|(?P<moon>◁think▷)"
    r"|(?P<channel><\|channel\|>\s*(?:analysis|commentary)\s*<\|message\|>))",
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
    r"|<\uff5c[^\uff5c\n]{1,40}\uff5c>|</s>\s*\Z|<end_of_turn>|<EOT>"
)
_CODE_LINE = re.compile(
    r"""^\s*(?:
        (?:from\s+[\w.]+\s+import\s+[\w(*]|import\s+[\w.]+(?:\s+as\s+\w+)?(?:\s*,\s*[\w.]+)*\s*(?:\#.*)?$)
      | (?:async\s+)?(?:def|class)\s+\w+.*[:(,]\s*(?:\#.*)?$
      | (?:if|elif|while|for|with|try|except|else|finally|match|case)\b.*:\s*(?:\#.*)?$
      | (?:return|raise|yield|assert|del|global|nonlocal)\b(?:\s.*)?$ | (?:pass|break|continue)\s*$
      | [A-Za-z_][\w.]*(?:\[[^\]]*\])*(?:\s*,\s*[A-Za-z_][\w.]*)*\s*(?::\s*[\w\[\], .|]+)?\s*
        (?:[-+*/%|&]|//|\*\*)?=(?!=)\s*\S
      | [A-Za-z_][\w.]*(?:\[[^\]]*\])*\(.*
      | [)\]}]+[,:.\w()]*\s*$
      | \# | @\w+ | \"{3} | '{3}
      | ["'\w.]+\s*:\s*[^ ].*,\s*$
    )""",
    re.VERBOSE,
)
_STRONG_LINE = re.compile(
    r"^\s*(?:import\s+\w+|from\s+[\w.]+\s+import\s|def\s+\w+\s*\(|\w[\w.]*\s*=\s*\S+|(?:for|with|while|if)\s.*:\s*$|\w+(?:\.\w+)*\(.*\)\s*$)"
)
_IMPORT_LINE = re.compile(r"\s*(?:import\s+[\w.]+|from\s+[\w.]+\s+import\s)")
_PROSE_LINE = re.compile(r"^[A-Z][\w',-]*(?: [\w'\",;()./-]+){3,}[.:!]?$")
_SHELL_LINE = re.compile(r"^[ \t]*(?:!\w.*|%{1,2}\w.*|pip3? install .*)$")
_LINE_NUMBER = re.compile(r"^ *(\d+)(?:[:.|] ?| |\t|$)")
_QUOTED_PROGRAM = re.compile(
    r"\A\s*(?P<quote>'{3}|\"{3})(?:python3?|py)[ \t]*\n(?P<body>.*?)(?P<end>(?P=quote)\s*\Z|\Z)",
    re.DOTALL,
)
_HARMONY_CALL = re.compile(
    r"<\|channel\|>\s*commentary\s+to=[\w.]+\s*(?:<\|constrain\|>\s*\w+\s*)?<\|message\|>"
    r"(?P<body>.*?)(?:<\|call\|>|\Z)",
    re.DOTALL,
)
_HANGING_END = re.compile(
    r"(?:[-=+*/%,:.(\[{\\|&<>@~^]|\b(?:in|and|or|not|is|import|from|as|if|elif|while|for|def|class|with|return))\s*\Z"
)
_CALL = re.compile(r"\w\s*\(")
_PROMPT_LINE = re.compile(r"^(?:>>>|\.\.\.)(?: |$)")
_NUMBERED_IN = re.compile(r"^In ?\[\d*\]: ?")


MAX_REPLY_CHARS = 400_000
"""What is looked at of a reply: far more than any program, and a bound on a reply without end."""

_MAX_LINE_CHARS = 2_000
_MAX_PARSED_CHARS = 64 * 1024


@dataclass(frozen=True, slots=True)
class Extraction:
    """The program that a reply holds.

    Attributes:
        code: the program, or None where the reply holds none.
        form: how it stood there: ``fence``, ``joined``, ``unclosed``, ``wrapper``, ``bare``
            or ``none``.
        truncated: the reply, as far as can be seen, ends in the middle of the program.
        blocks: how many pieces of Python the reply holds.
    """

    code: str | None
    form: str
    truncated: bool = False
    blocks: int = 0


def extract(reply: str) -> Extraction:
    r"""Finds the program in a reply.

    Args:
        reply: the message's text as it came.

    Returns:
        The program with line ends of ``\n`` and without indentation of the whole; never runs
        or compiles anything.
    """
    reply = reply[:MAX_REPLY_CHARS]
    text = reply.replace("\r\n", "\n").replace("\r", "\n")
    text = _HARMONY_CALL.sub(r"<tool_call>\g<body></tool_call>", text)
    text = _SPECIAL.sub("\n", strip_reasoning(text))
    wrapped = unwrap(text)
    if wrapped is not None:
        inner = _from_blocks(find_blocks(wrapped.text))
        if inner is None and wrapped.text.strip():
            inner = Extraction(_tidy(wrapped.text), "wrapper", not wrapped.closed, 1)
        # A wrapper that was asked for by nobody may hold prose (<answer>done</answer>).
        if inner is not None and inner.code and (wrapped.is_code or _reads_like_code(inner.code)):
            truncated = inner.truncated or not scan(inner.code).closed
            return Extraction(inner.code, "wrapper", truncated, inner.blocks)
    if not _is_program_with_fences(text):
        found = _from_blocks(find_blocks(text))
        if found is not None:
            return found
    return _from_bare_text(text)


def _is_program_with_fences(text: str) -> bool:
    """Whether the whole reply is a program whose strings hold fences."""
    first = text.lstrip().partition("\n")[0]
    if "```" not in text or len(text) > _MAX_PARSED_CHARS or not _is_code_line(first):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def strip_reasoning(text: str) -> str:
    """The reply without the model's reasoning, as far as that is marked."""
    text = _cut_reasoning(text)
    if (end := _last(_REASONING_END, text)) is not None and text[end.end() :].strip():
        # Templates that open the reasoning in the prompt leave only its end in the reply.
        text = text[end.end() :]
    opening = _REASONING_START.match(text.lstrip())
    return "" if opening else text  # Reasoning without an end never came to an answer.


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
    found = None
    for found in pattern.finditer(text):  # noqa: B007  the last one is what is wanted
        pass
    return found


def _from_blocks(blocks: list[Block]) -> Extraction | None:
    """The program among fenced blocks; None where none of them is Python."""
    named = [block for block in blocks if block.is_python and block.text.strip()]
    pieces = named or [
        block for block in blocks if block.may_be_python and _reads_like_code(block.text)
    ]
    if not pieces:
        return None
    codes = [_tidy(block.text) for block in pieces]
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
        ends_whole = scan(codes[-1]).closed and not _HANGING_END.search(codes[-1])
        if ends_whole and _stands_alone(codes[-1], codes[:-1]):
            # No closing fence, yet a whole program: many models just stop.
            return Extraction(codes[-1], "unclosed", truncated=False, blocks=len(pieces))
        if not _makes_something(codes[last_whole]):
            joined = _join(codes, len(codes) - 1, [*whole, len(codes) - 1])
            return Extraction(joined, "unclosed", truncated=True, blocks=len(pieces))
    return _join_from(codes, whole, len(pieces), truncated=cut_off)


def _join_from(codes: list[str], whole: list[int], blocks: int, *, truncated: bool) -> Extraction:
    last = whole[-1]
    # What follows a program is often an example of its output or of a call: a block without a
    # statement that does anything is no program.
    while last != whole[0] and not _reads_like_code(codes[last]):
        last = whole[whole.index(last) - 1]
    # So is a look at the finished workbook: it is told from a solution by what it does not do.
    makers = [index for index in whole if index < last and _makes_something(codes[index])]
    if makers and not _makes_something(codes[last]) and _stands_alone(codes[last], codes[:last]):
        last = makers[-1]
    joined = _join(codes, last, whole)
    form = "fence" if joined == codes[last] else "joined"
    return Extraction(joined, form, truncated, blocks)


def _join(codes: list[str], last: int, whole: list[int]) -> str:
    """The block with what it takes from earlier blocks before it."""
    first = last
    needed = set(free_names(codes[last]))
    for index in reversed([each for each in whole if each < last]):
        defined = defined_names(codes[index])
        if needed & defined:
            first = index
            needed = (needed - defined) | free_names(codes[index])
    chosen: list[int] = []
    known: set[str] = set()
    for index in [each for each in whole if first <= each < last]:
        # Between them, what works on the same names belongs to it (ws = wb.active).
        if index == first or free_names(codes[index]) & known:
            chosen.append(index)
            known |= defined_names(codes[index])
    return "\n\n".join(codes[index].rstrip() for index in [*chosen, last]) + "\n"


def _stands_alone(code: str, earlier: list[str]) -> bool:
    defined = frozenset().union(*(defined_names(each) for each in earlier)) if earlier else set()
    return not (free_names(code) & set(defined))


def _makes_something(code: str) -> bool:
    """Whether the program writes a workbook, as far as its words show."""
    return bool(re.search(r"\.save\s*\(|\.to_excel\s*\(|ExcelWriter|\.close\s*\(", code))


def _reads_like_code(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return False
    like = sum(1 for line in lines if _is_code_line(line))
    return any(_is_strong_line(line) for line in lines) and like * 2 >= len(lines)


def _is_code_line(line: str) -> bool:
    return _CODE_LINE.match(line[:_MAX_LINE_CHARS]) is not None


def _is_strong_line(line: str) -> bool:
    return _STRONG_LINE.match(line[:_MAX_LINE_CHARS]) is not None


def _from_bare_text(text: str) -> Extraction:
    """Lines that read like Python in a reply without any mark."""
    if quoted := _QUOTED_PROGRAM.match(text):
        code = _tidy(quoted["body"])
        return Extraction(code, "fence", truncated=not quoted["end"].strip(), blocks=1)
    stripped = text.strip()
    if stripped.startswith("`") and stripped.endswith("`"):
        text = stripped.strip("`")
    lines = [_NUMBERED_IN.sub("", _PROMPT_LINE.sub("", line)) for line in text.split("\n")]
    strong = [index for index, line in enumerate(lines) if _is_strong_line(line)]
    imports = [
        index
        for index in strong
        if _IMPORT_LINE.match(lines[index]) and _is_code_line(lines[index])
    ]
    if not strong:
        return Extraction(None, "none")
    first = (imports or strong)[0]
    while first and (not lines[first - 1].strip() or _is_code_line(lines[first - 1])):
        first -= 1
    lines = _without_prose(lines[first:])
    code = _tidy("\n".join(lines))
    # Without a call nothing is read or written: "Profit = Revenue - Cost" is no program.
    if not _reads_like_code(code) or not _CALL.search(scan(code).bare):
        return Extraction(None, "none")
    return Extraction(code, "bare", truncated=not scan(code).closed, blocks=1)


def _without_prose(lines: list[str]) -> list[str]:
    """Leaves out sentences between pieces of code, and everything after the last piece."""
    kept: list[str] = []
    walk = Scanner()
    last_code = 0
    for line in lines:
        if walk.closed and not line[:1].isspace() and _PROSE_LINE.match(line[:_MAX_LINE_CHARS]):
            continue
        was_open = not walk.closed
        walk.feed(line + "\n")
        kept.append(line)
        if was_open or _is_code_line(line):
            last_code = len(kept)
    return kept[:last_code]


def _tidy(code: str) -> str:
    """Code as a file would hold it: no prompts, magics, odd indentation or JSON escapes."""
    code = code.strip("\n")
    if "\n" not in code and code.count("\\n") >= 2:
        code = code.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    lines = code.split("\n")
    filled = [line for line in lines if line.strip()]
    if filled and all(_PROMPT_LINE.match(line) for line in filled[:1]):
        # A pasted console: lines without a prompt are what it printed.
        lines = [_PROMPT_LINE.sub("", line) for line in lines if _PROMPT_LINE.match(line)]
    lines = [_NUMBERED_IN.sub("", line) for line in _without_line_numbers(lines)]
    lines = [_indent_without_nbsp(line) for line in lines]
    code = textwrap.dedent("\n".join(lines))
    lines = code.split("\n")
    if lines and lines[0].strip().lower() in {"python", "python3", "py"}:
        lines = lines[1:]
    if any(_SHELL_LINE.match(line) for line in lines):
        lines = _without_shell(lines)
    return "\n".join(lines).strip("\n").rstrip() + "\n" if "".join(lines).strip() else ""


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
    """Takes 1, 2, 3 … off the beginnings, where every line has its number."""
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
