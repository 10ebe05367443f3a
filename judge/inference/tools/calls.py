"""Calls of tools in replies: what of them is used, and how they are sent back.

Servers differ in what they send: identifiers that are missing or doubled, arguments that are empty
or no JSON, calls in a reply that was cut off. Each call is answered exactly once, under an
identifier that is valid, and what is sent back of its arguments always parses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from judge.files.documents import MalformedError, dump_json, parse_json
from judge.inference.chat import ChatReply, ToolCall
from judge.tools.contract import ToolFaultError

_MAX_VALUES = 20_000
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TEXT_CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
_MAX_TEXT_CALLS = 16
_FAULT_CHARS = 200


class CallIds:
    """Identifiers under which calls are sent back; no two of a conversation are the same."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def of(self, call: ToolCall, turn: int, at: int) -> str:
        """The identifier of a call, or one of our own where it is missing or used before.

        Args:
            call: the call.
            turn: number of the reply.
            at: number of the call in it.
        """
        given = call.id
        if not _ID.fullmatch(given) or given in self._used:
            # Nine letters and digits, which the templates of all servers take.
            given = f"j{turn:04d}{at:04d}"
        while given in self._used:
            given = f"k{len(self._used):08d}"
        self._used.add(given)
        return given


@dataclass(frozen=True, slots=True)
class ReadCall:
    """A call with its arguments.

    Attributes:
        call: as it was sent.
        id_sent: as it is sent back.
        arguments: None if they cannot be read.
        fault: why not.
    """

    call: ToolCall
    id_sent: str
    arguments: dict[str, Any] | None
    fault: str = ""

    def sent(self, *, as_received: bool = False) -> dict[str, Any]:
        """The call as it is sent back: servers parse the arguments of earlier calls again.

        Args:
            as_received: whether arguments that parse go back to the letter, as published.
        """
        name = self.call.name if _ID.fullmatch(self.call.name) else "unknown"
        arguments = dump_json(self.arguments) if self.arguments is not None else "{}"
        if as_received and self.arguments:
            arguments = self.call.arguments
        return {
            "id": self.id_sent,
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }


def read_calls(calls: Sequence[ToolCall], ids: CallIds, turn: int) -> list[ReadCall]:
    """The calls of a reply with their arguments.

    Args:
        calls: as they were sent.
        ids: the ids of the conversation.
        turn: number of the reply.
    """
    found = []
    for at, call in enumerate(calls, start=1):
        id_sent = ids.of(call, turn, at)
        try:
            found.append(ReadCall(call, id_sent, arguments_of(call.arguments)))
        except ToolFaultError as error:
            found.append(ReadCall(call, id_sent, None, error.message))
    return found


def arguments_of(text: str) -> dict[str, Any]:
    """The arguments of a call; none where the text is empty, as some servers send it.

    Raises:
        ToolFaultError: it is not JSON, or not an object.
    """
    if not text.strip():
        return {}
    try:
        document = parse_json(text, most_values=_MAX_VALUES)
    except MalformedError as error:
        raise ToolFaultError(f"the arguments are {error}: {text[:_FAULT_CHARS]!r}") from None
    if not isinstance(document, dict):
        raise ToolFaultError(f"the arguments must be an object: {text[:_FAULT_CHARS]!r}")
    return document


def text_calls_in(text: str) -> list[ToolCall]:
    """Calls that a server without the right parser leaves in the text, as Hermes writes them."""
    found = []
    for match in list(_TEXT_CALL.finditer(text))[:_MAX_TEXT_CALLS]:
        try:
            document = parse_json(match[1], most_values=_MAX_VALUES)
        except MalformedError:
            continue
        name, arguments = document.get("name"), document.get("arguments", {})
        if isinstance(name, str) and isinstance(arguments, dict):
            found.append(ToolCall("", name, dump_json(arguments)))
    return found


def looks_like_calls(text: str) -> bool:
    """Whether text seems to hold calls that the server should have cut out of it."""
    return bool(_TEXT_CALL.search(text)) or "[TOOL_CALLS]" in text or "<function=" in text


def is_cut(reply: ChatReply, most_tokens: object) -> bool:
    """Whether a reply was cut off, whatever the server says ended it.

    Args:
        reply: the reply.
        most_tokens: ``max_tokens`` of the request.
    """
    if reply.is_truncated:
        return True
    used = reply.completion_tokens
    return isinstance(most_tokens, int) and used is not None and used >= most_tokens
