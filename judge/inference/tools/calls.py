"""Reads the calls of tools in replies, and prepares them for being sent back.

Servers send calls with missing or duplicate identifiers, with arguments that are empty or not JSON,
and in replies that were cut off. Each call is answered exactly once, under a valid identifier, and
the arguments that are sent back can always be parsed.
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
    """Gives the calls of a conversation the identifiers under which they are sent back."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def of(self, call: ToolCall, turn: int, at: int) -> str:
        """Returns the identifier of a call, or a new one if it is missing, invalid or used before.

        Args:
            call: the call.
            turn: number of the reply.
            at: number of the call in the reply.
        """
        call_id = call.id
        if not _ID.fullmatch(call_id) or call_id in self._used:
            # Nine letters and digits: the templates of all servers accept this form.
            call_id = f"j{turn:04d}{at:04d}"
        while call_id in self._used:
            call_id = f"k{len(self._used):08d}"
        self._used.add(call_id)
        return call_id


@dataclass(frozen=True, slots=True)
class ReadCall:
    """A call with its arguments.

    Attributes:
        call: the call as the server sent it.
        id_sent: the identifier under which it is sent back.
        arguments: its arguments; None if they cannot be read.
        fault: why the arguments cannot be read; empty if they can.
    """

    call: ToolCall
    id_sent: str
    arguments: dict[str, Any] | None
    fault: str = ""

    def sent(self, *, as_received: bool = False) -> dict[str, Any]:
        """Returns the call as it is sent back; servers parse the arguments of earlier calls again.

        Args:
            as_received: whether valid arguments are sent back exactly as received, as the published
                code does.
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
    """Reads the arguments of the calls in a reply.

    Args:
        calls: the calls as the server sent them.
        ids: the identifiers of the conversation.
        turn: number of the reply.
    """
    read = []
    for at, call in enumerate(calls, start=1):
        id_sent = ids.of(call, turn, at)
        try:
            read.append(ReadCall(call, id_sent, arguments_of(call.arguments)))
        except ToolFaultError as error:
            read.append(ReadCall(call, id_sent, None, error.message))
    return read


def arguments_of(text: str) -> dict[str, Any]:
    """Parses the arguments of a call; empty text, which some servers send, means no arguments.

    Raises:
        ToolFaultError: the text is not JSON, or not an object.
    """
    if not text.strip():
        return {}
    try:
        document = parse_json(text, max_values=_MAX_VALUES)
    except MalformedError as error:
        raise ToolFaultError(f"the arguments are {error}: {text[:_FAULT_CHARS]!r}") from None
    if not isinstance(document, dict):
        raise ToolFaultError(f"the arguments must be an object: {text[:_FAULT_CHARS]!r}")
    return document


def text_calls_in(text: str) -> list[ToolCall]:
    """Returns calls in the format of Hermes, which servers without a parser leave in the text."""
    calls = []
    for match in list(_TEXT_CALL.finditer(text))[:_MAX_TEXT_CALLS]:
        try:
            document = parse_json(match[1], max_values=_MAX_VALUES)
        except MalformedError:
            continue
        name, arguments = document.get("name"), document.get("arguments", {})
        if isinstance(name, str) and isinstance(arguments, dict):
            calls.append(ToolCall("", name, dump_json(arguments)))
    return calls


def looks_like_calls(text: str) -> bool:
    """Whether text seems to contain calls that the server should have parsed."""
    return bool(_TEXT_CALL.search(text)) or "[TOOL_CALLS]" in text or "<function=" in text


def is_cut(reply: ChatReply, max_tokens: object) -> bool:
    """Whether a reply was cut off, even if the server gives another reason for its end.

    Args:
        reply: the reply.
        max_tokens: its largest number of tokens, as it was requested.
    """
    if reply.is_truncated:
        return True
    used = reply.completion_tokens
    return isinstance(max_tokens, int) and used is not None and used >= max_tokens
