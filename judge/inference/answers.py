"""Parses a server's answer: a chat completion, a list of models, how long to wait. Pure."""

from __future__ import annotations

import contextlib
import email.utils
import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from judge.inference.chat import ChatReply

_DATE_CHARS = 100
_MAX_TOKENS = 10**9
_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,500}")
_HALF_PAIR = re.compile("[\ud800-\udfff]")


class NotACompletionError(ValueError):
    """What came back is not a chat completion; says what it is instead."""


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait, from ``Retry-After-Ms`` or ``Retry-After``.

    A date is relative to the server's own clock if the server sends it (``Date``), so it makes no
    difference if the local clock is wrong or was set in the meantime.
    """
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with contextlib.suppress(KeyError, ValueError):
            seconds = float(headers[name]) * unit_s
            if math.isfinite(seconds):
                return max(seconds, 0.0)
    moment = _moment(headers.get("retry-after"))
    if moment is None:
        return None
    now = _moment(headers.get("date")) or datetime.now(UTC)
    return max((moment - now).total_seconds(), 0.0)


def _moment(text: str | None) -> datetime | None:
    """A date of a header; one without a zone is taken as GMT, as all of them should be."""
    if text is None:
        return None
    try:
        moment = email.utils.parsedate_to_datetime(text[:_DATE_CHARS])
    except (TypeError, ValueError, OverflowError):
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def read_model_names(body: bytes) -> list[str]:
    """The names in a list of models.

    Args:
        body: what the server sent.

    Raises:
        NotACompletionError: it is not a list of models, or a name in it is not valid.
    """
    try:
        names = [entry["id"] for entry in json.loads(body)["data"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        if isinstance(detail := _error_in(body), str):
            raise NotACompletionError(f"the server answers with an error: {detail}") from None
        shown = body[:80].decode("utf-8", "replace")
        raise NotACompletionError(f"the reply is not a list of models: {shown!r}") from None
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise NotACompletionError(f"a model's name is {str(name)[:80]!r}")
    return names


def read_reply(body: bytes, latency_s: float) -> ChatReply:
    """Parses a chat completion.

    Args:
        body: what the server sent.
        latency_s: how long that took.

    Raises:
        NotACompletionError: it is not a chat completion.
    """
    try:
        document = json.loads(body)
        choice = document["choices"][0]
        message = choice["message"]
        text = _text_of(message)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        if isinstance(detail := _error_in(body), str):
            raise NotACompletionError(f"the server answers with an error: {detail}") from None
        shown = body[:80].decode("utf-8", "replace")
        raise NotACompletionError(f"the reply is not a chat completion: {shown!r}") from None
    usage = document.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    return ChatReply(
        text=writable(text),
        finish_reason=_text_or_none(choice.get("finish_reason")),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        latency_s=latency_s,
        reasoning=_text_or_none(reasoning),
        model=_text_or_none(document.get("model")),
    )


def _text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):  # parts, as some servers send them
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    if content is not None and not isinstance(content, str):
        raise TypeError
    calls = message.get("tool_calls")
    if not content and isinstance(calls, list) and calls:
        # Some servers turn what looks like a call of a tool into one, though none was offered.
        return "\n".join(
            f"<tool_call>{json.dumps(call.get('function', {}), ensure_ascii=False)}</tool_call>"
            for call in calls
        )
    return content or ""


def _error_in(body: bytes) -> str | None:
    """The message of an error that came with a status of success, as some gateways do."""
    with contextlib.suppress(ValueError, RecursionError):
        document = json.loads(body)
        if isinstance(document, dict) and document.get("error"):
            error = document["error"]
            return str(error.get("message", error) if isinstance(error, dict) else error)[:200]
    return None


def _count(value: object) -> int | None:
    """A number of tokens, or None if no server can have counted it."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_TOKENS:
        return value
    return None


def _text_or_none(value: object) -> str | None:
    return writable(value) if isinstance(value, str) else None


def writable(text: str) -> str:
    """Text that UTF-8 can hold: JSON may say half a surrogate pair, which no file can."""
    return _HALF_PAIR.sub("\N{REPLACEMENT CHARACTER}", text)
