"""Finds the actions in a chat model's reply. Pure; nothing is performed.

With PyAutoGUI, every fenced block of Python is one action; ``WAIT``, ``FAIL`` and ``DONE`` are
written in a separate block, in the last line of a block, or as the whole reply. With computer_13,
every JSON object with an ``action_type`` is an action. The published parser cuts a reply at every
semicolon, even in strings, so ``=SUM(A1;B1)`` becomes two pieces of broken code; it can be chosen
to get the published behaviour.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from judge.core.replies.blocks import Block, find_blocks
from judge.core.replies.extract import MAX_REPLY_CHARS, answer_of
from judge.desktop.choices import ActionSpace
from judge.desktop.contract import Action, Signal
from judge.files.documents import MalformedError, parse_json

MAX_ACTIONS = 100
"""How many actions of one reply are performed."""

_MAX_LOOKS = 500
_SIGNALS = {signal.value: signal for signal in Signal}
_ON_ONE_LINE = re.compile(
    r"(?P<fence>```)(?:(?P<tag>python3?|py|json|code)[ \t]+)?(?P<code>[^`\n]+)```"
)
_PUBLISHED_BLOCK = re.compile(r"```(?:\w+\s+)?(.*?)```", re.DOTALL)
_MARK = re.compile(r"\b(?:tag|index)_(\d{1,6})\b")
_JSON_TAGS = frozenset({"", "json", "jsonc", "json5", "action", "actions"})


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """The actions of a reply.

    Attributes:
        actions: in order, up to FAIL or DONE.
        problem: why there are none, for the model; empty if there are actions.
    """

    actions: tuple[Action, ...] = ()
    problem: str = ""


_NOTHING = {
    ActionSpace.PYAUTOGUI: "it has no fenced block of code, and is not WAIT, FAIL or DONE",
    ActionSpace.COMPUTER_13: "it has no JSON object with an action_type",
}


def parse_reply(
    reply: str, space: ActionSpace, *, is_truncated: bool = False, as_published: bool = False
) -> ParsedReply:
    """Finds the actions in a reply.

    Args:
        reply: the unchanged text of the message.
        space: the language of actions.
        is_truncated: whether the server cut the reply off.
        as_published: whether replies with PyAutoGUI are cut at every semicolon.
    """
    text = reply[:MAX_REPLY_CHARS]
    if space is ActionSpace.PYAUTOGUI and as_published:
        parsed = ParsedReply(tuple(_published(text)))
    else:
        text = answer_of(text).strip()
        if (signal := _SIGNALS.get(text.strip("`*.! \n"))) is not None:
            return ParsedReply((Action(signal=signal),))
        try:
            parsed = _code(text) if space is ActionSpace.PYAUTOGUI else _calls(text)
        except MalformedError as problem:
            return ParsedReply(problem=f"an action is {problem}")
    if parsed.actions:
        return ParsedReply(_up_to_the_end(parsed.actions))
    if is_truncated:
        return ParsedReply(problem="the reply was cut off before its first action was complete")
    return parsed if parsed.problem else ParsedReply(problem=_NOTHING[space])


def with_marks(action: Action, positions: Mapping[int, tuple[int, int]]) -> Action:
    """Defines the names of marks, such as ``tag_1`` or ``index_1``, that an action's code uses.

    Args:
        action: the action.
        positions: number of a mark -> the centre of its element, in pixels.

    Returns:
        The action; its code begins with definitions of the names in it that have an element.
    """
    if action.code is None:
        return action
    names = dict.fromkeys(match[0] for match in _MARK.finditer(action.code))
    lines = [
        f"{name} = ({position[0]}, {position[1]})"
        for name in names
        if (position := positions.get(int(name.rpartition("_")[2]))) is not None
    ]
    return Action(code="\n".join([*lines, action.code])) if lines else action


def _up_to_the_end(actions: tuple[Action, ...]) -> tuple[Action, ...]:
    for number, action in enumerate(actions, start=1):
        if action.signal in {Signal.FAIL, Signal.DONE}:
            return actions[:number][:MAX_ACTIONS]
    return actions[:MAX_ACTIONS]


# -- PyAutoGUI ------------------------------------------------------------------------------------


def _code(text: str) -> ParsedReply:
    blocks = _blocks(text)
    complete = [block for block in blocks if block.closed and (block.may_be_python or _says(block))]
    actions = tuple(action for block in complete for action in _of_block(block.text))
    if not actions and any(not block.closed for block in blocks):
        return ParsedReply(problem="its block of code has no end")
    return ParsedReply(actions)


def _says(block: Block) -> bool:
    return block.text.strip() in _SIGNALS


def _of_block(text: str) -> Iterator[Action]:
    """Returns the code of a block, and the signal in its last line."""
    lines = text.rstrip().split("\n")
    signal = _SIGNALS.get(lines[-1].strip())
    if signal is not None:
        lines = lines[:-1]
    code = "\n".join(lines)
    if code.strip():
        yield Action(code=code)
    if signal is not None:
        yield Action(signal=signal)


def _blocks(text: str) -> list[Block]:
    """Finds fenced blocks, including those on a single line."""
    return find_blocks(_ON_ONE_LINE.sub(_on_three_lines, text))


def _on_three_lines(match: re.Match[str]) -> str:
    return f"\n```{match['tag'] or ''}\n{match['code'].strip()}\n```\n"


def _published(text: str) -> Iterator[Action]:
    """Finds actions as the published parser does: every semicolon ends a line."""
    pieces = (piece.strip() for piece in text.split(";"))
    text = "\n".join(piece for piece in pieces if piece)
    if (signal := _SIGNALS.get(text.strip())) is not None:
        yield Action(signal=signal)
        return
    for match in _PUBLISHED_BLOCK.finditer(text):
        yield from _of_block(match[1].strip())


# -- computer_13 ----------------------------------------------------------------------------------


def _calls(text: str) -> ParsedReply:
    blocks = [block for block in _blocks(text) if block.tag in _JSON_TAGS]
    texts = [block.text for block in blocks if block.closed] or ([] if blocks else [text])
    actions: list[Action] = []
    for part in texts:
        if (signal := _SIGNALS.get(part.strip())) is not None:
            actions.append(Action(signal=signal))
        elif "{" in part:
            actions += (_of_object(call) for call in _objects(part, alone=bool(blocks)))
    if not actions and any(not block.closed for block in blocks):
        return ParsedReply(problem="its block of JSON has no end")
    return ParsedReply(tuple(actions))


def _objects(text: str, *, alone: bool) -> Iterator[dict[str, Any]]:
    """Reads the JSON objects in a string: a single one, a list, or several in a row.

    Args:
        text: the text.
        alone: whether anything else in the text is an error.

    Raises:
        MalformedError: an object cannot be read.
    """
    decoder = json.JSONDecoder()
    start, looks = 0, 0
    while (start := text.find("{", start)) >= 0 and looks < _MAX_LOOKS:
        looks += 1
        try:
            _, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            if alone:
                parse_json(text[start:])  # the error of the whole text says what is wrong
                raise MalformedError("not JSON") from None
            start += 1
            continue
        call = parse_json(text[start:end])
        start = end
        if isinstance(call.get("action_type"), str):
            yield call
        elif alone:
            raise MalformedError("JSON without an action_type")


def _of_object(call: Mapping[str, Any]) -> Action:
    kind = str(call["action_type"]).strip().upper()
    if (signal := _SIGNALS.get(kind)) is not None:
        return Action(signal=signal)
    return Action(call={**call, "action_type": kind})
