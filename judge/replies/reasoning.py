"""Removes marked reasoning that precedes a chat model's answer. Pure."""

from __future__ import annotations

import re

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
