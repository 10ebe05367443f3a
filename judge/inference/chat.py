"""Requests to a chat model, and its replies: types, parsing, estimates of tokens. No I/O.

The parser reads the answers that OpenAI-compatible servers really send: chat completions, lists of
models, and the time to wait before the next request.
"""

from __future__ import annotations

import contextlib
import email.utils
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, NotRequired, Protocol, TypedDict

from judge.core.conversation import Content, estimate_tokens, pictures_in
from judge.inference.pictures import PictureStore, has_pictures, sent_content

PICTURE_TOKENS = 1_000
"""Estimated tokens of a picture; hosted models count 85 to 1,600, depending on its size."""


class Message(TypedDict):
    """A message of a conversation."""

    role: str
    content: Content
    tool_calls: NotRequired[list[dict[str, Any]]]
    tool_call_id: NotRequired[str]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool, exactly as the server sent it.

    Attributes:
        id: its identifier; empty if it has none.
        name: the name of the tool.
        arguments: the arguments as text, which should be a JSON object.
    """

    id: str
    name: str
    arguments: str


class CallError(Exception):
    """A call that failed and is not retried any more.

    Args:
        kind: ``gave-up`` (the retries are used up), ``refused`` (the server will not answer this
            request), ``context-length`` (the conversation is too long for the model), ``pictures``
            (the model does not accept pictures), ``access`` (the key, model name or address is
            wrong, so that every other call would fail as well).
        message: what happened, without the key.
        attempts: number of requests that were sent.
        faults: the error of each attempt.
    """

    def __init__(
        self, kind: str, message: str, *, attempts: int = 0, faults: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.attempts = attempts
        self.faults = tuple(faults)


class BudgetReachedError(Exception):
    """The budget does not allow another call."""


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request to a chat model.

    Attributes:
        model: the server's name for the model.
        messages: the conversation so far.
        params: temperature, top_p, seed, max_tokens and any other request parameters.
        pictures: the store of the messages' pictures; not needed if there are none.
        custom_id: distinguishes the request from all others in a batch, even from equal ones; not
            sent to the model.
    """

    model: str
    messages: tuple[Message, ...]
    params: Mapping[str, Any] = field(default_factory=_nothing)
    pictures: PictureStore | None = field(default=None, repr=False, compare=False)
    custom_id: str = field(default="", repr=False, compare=False)

    @property
    def has_pictures(self) -> bool:
        """Whether any message shows a picture."""
        return any(has_pictures(message["content"]) for message in self.messages)

    def sent_messages(self) -> list[dict[str, Any]]:
        """Returns the messages in the format of the chat completions API.

        Raises:
            StoreError: a picture is missing, or was changed.
        """
        return [
            {**message, "content": sent_content(message["content"], self.pictures)}
            for message in self.messages
        ]

    def body(self) -> dict[str, Any]:
        """Returns the request's JSON body, including fields that the SDK does not know.

        Raises:
            StoreError: a picture is missing, or was changed.
        """
        params = dict(self.params)
        extra = params.pop("extra_body", None) or {}
        return {"model": self.model, "messages": self.sent_messages(), **params, **extra}

    @property
    def is_repeatable(self) -> bool:
        """Whether the same request should give the same reply: a seed is set, or temperature 0."""
        return self.params.get("seed") is not None or self.params.get("temperature") == 0

    def digest(self, endpoint: str) -> str:
        """SHA-256 of everything that could change the reply; for pictures, of their SHA-256.

        Args:
            endpoint: address of the server.
        """
        document = [endpoint, self.model, list(self.messages), dict(self.params)]
        text = json.dumps(document, sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()


@dataclass(frozen=True, slots=True)
class ChatReply:
    """One reply of a chat model.

    Attributes:
        text: the message's text; empty if it has none.
        finish_reason: why the reply ended, in the server's words (``stop``, ``length`` …).
        prompt_tokens: tokens of the prompt as the server counted them; None if it did not.
        completion_tokens: tokens of the reply, reasoning included; None if the server did not
            count them.
        seconds: time from the first attempt to the reply, with the waits between attempts.
        latency_s: the latency of the attempt that succeeded.
        attempts: number of requests that were sent; 0 for a reply from the cache.
        faults: the errors of the earlier attempts.
        reasoning: reasoning that the server sent separately from the text.
        model: the model that answered, as the server names it.
        cached: whether the reply came from the cache, so that no request was sent.
        calls: the tool calls; :attr:`text` repeats them if the message has no text.
        cached_tokens: tokens of the prompt that the server had in its cache; None if it does not
            report them.
        reasoning_field: the field of the message that held the reasoning; empty for none.
    """

    text: str
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float = 0.0
    latency_s: float = 0.0
    attempts: int = 1
    faults: tuple[str, ...] = ()
    reasoning: str | None = None
    model: str | None = None
    cached: bool = False
    calls: tuple[ToolCall, ...] = ()
    cached_tokens: int | None = None
    reasoning_field: str = ""

    @property
    def is_truncated(self) -> bool:
        """Whether the server cut the reply off at its length limit."""
        return self.finish_reason in {"length", "max_tokens", "model_length"}

    def to_json(self) -> dict[str, Any]:
        """Returns the reply as a JSON object, which :func:`reply_of_json` reads back."""
        document = {name: getattr(self, name) for name in _REPLY_FIELDS}
        document |= {"faults": list(self.faults), "calls": [asdict(call) for call in self.calls]}
        for name in ("calls", "cached_tokens", "reasoning_field"):
            if not document[name]:
                del document[name]
        return document


_REPLY_FIELDS = tuple(item.name for item in fields(ChatReply))


_REPLY_TYPES: Mapping[str, tuple[type, ...]] = MappingProxyType(
    {
        "text": (str,),
        "finish_reason": (str, type(None)),
        "prompt_tokens": (int, type(None)),
        "completion_tokens": (int, type(None)),
        "seconds": (int, float),
        "latency_s": (int, float),
        "attempts": (int,),
        "faults": (tuple,),
        "reasoning": (str, type(None)),
        "model": (str, type(None)),
        "cached": (bool,),
        "calls": (tuple,),
        "cached_tokens": (int, type(None)),
        "reasoning_field": (str,),
    }
)


def reply_of_json(document: Mapping[str, Any], **changes: Any) -> ChatReply:
    """Reads a recorded reply.

    Raises:
        TypeError: the record was not written by the judge.
    """
    values = {name: document[name] for name in _REPLY_FIELDS if name in document} | changes
    values["faults"] = tuple(map(str, values.get("faults") or ()))
    calls = values.get("calls") or ()
    values["calls"] = tuple(
        ToolCall(*(str(call.get(name, "")) for name in ("id", "name", "arguments")))
        for call in calls
        if isinstance(call, dict)
    )
    for name, value in values.items():
        if type(value) not in _REPLY_TYPES[name]:
            raise TypeError(f"{name} of a reply is {str(value)[:80]!r}")
    return ChatReply(**values)


class ChatModel(Protocol):
    """A model that answers requests. An instance belongs to one event loop."""

    @property
    def endpoint(self) -> str:
        """Address of the server, without credentials."""
        ...

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Sends a request, with retries, and returns the reply.

        Raises:
            CallError: no reply could be obtained.
        """
        ...

    async def close(self) -> None:
        """Closes connections; safe to call twice."""
        ...


def estimate_request_tokens(messages: Sequence[Message]) -> int:
    """Estimates the tokens of a conversation; each message counts four more than its content."""
    return sum(estimate_content_tokens(message["content"]) + 4 for message in messages)


def estimate_content_tokens(content: Content) -> int:
    """Estimates the tokens of the content of a message, pictures included."""
    if isinstance(content, str):
        return estimate_tokens(content)
    text = sum(estimate_tokens(part["text"]) for part in content if part["type"] == "text")
    return text + PICTURE_TOKENS * len(pictures_in(content))


_DATE_CHARS = 100
_MAX_TOKENS = 10**9
_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,500}")
_HALF_PAIR = re.compile("[\ud800-\udfff]")


class NotACompletionError(ValueError):
    """The server's answer is not a chat completion; the message says what it is instead."""


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Returns the seconds that the server asks to wait (``Retry-After-Ms`` or ``Retry-After``).

    If ``Retry-After`` is a date, it is compared with the server's own clock, if the server sends
    its time (``Date``); a wrong local clock then makes no difference. Returns None if the server
    does not ask to wait.
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
    """Reads the date of a header; without a time zone it is taken as GMT, as HTTP requires."""
    if text is None:
        return None
    try:
        moment = email.utils.parsedate_to_datetime(text[:_DATE_CHARS])
    except (TypeError, ValueError, OverflowError):
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def read_model_names(body: bytes) -> list[str]:
    """Returns the names in a list of models.

    Args:
        body: the body of the server's answer.

    Raises:
        NotACompletionError: the body is not a list of models, or a name in it is not valid.
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
            raise NotACompletionError(f"the name of a model is not valid: {str(name)[:80]!r}")
    return names


def read_reply(body: bytes, latency_s: float) -> ChatReply:
    """Parses a chat completion.

    Args:
        body: the body of the server's answer.
        latency_s: how long the answer took.

    Raises:
        NotACompletionError: the body is not a chat completion.
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
    named = [name for name in ("reasoning_content", "reasoning") if message.get(name)]
    reasoning = message[named[0]] if named else None
    details = usage.get("prompt_tokens_details")
    return ChatReply(
        text=writable(text),
        finish_reason=_text_or_none(choice.get("finish_reason")),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        latency_s=latency_s,
        reasoning=_text_or_none(reasoning),
        model=_text_or_none(document.get("model")),
        calls=_calls_of(message),
        cached_tokens=_count(details.get("cached_tokens")) if isinstance(details, dict) else None,
        reasoning_field=named[0] if named and message.get("tool_calls") else "",
    )


_MAX_CALLS_READ = 256


def _calls_of(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    """Returns the calls of a message; fields of the wrong type count as empty text."""
    calls = message.get("tool_calls")
    valid = []
    for call in calls[:_MAX_CALLS_READ] if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            continue
        arguments = function.get("arguments")
        if isinstance(arguments, dict):  # some servers send an object instead of its text
            arguments = json.dumps(arguments, ensure_ascii=False)
        valid.append(
            ToolCall(
                *(
                    writable(value) if isinstance(value, str) else ""
                    for value in (call.get("id"), function.get("name"), arguments)
                )
            )
        )
    return tuple(valid)


def _text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):  # some servers send a list of parts
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    if content is not None and not isinstance(content, str):
        raise TypeError
    calls = message.get("tool_calls")
    if not content and isinstance(calls, list) and calls:
        # Some servers mistake text for the call of a tool, even though no tool was offered.
        return "\n".join(
            f"<tool_call>{json.dumps(call.get('function', {}), ensure_ascii=False)}</tool_call>"
            for call in calls
            if isinstance(call, dict)
        )
    return content or ""


def _error_in(body: bytes) -> str | None:
    """Returns the error message in an answer; some gateways report errors with status 200."""
    with contextlib.suppress(ValueError, RecursionError):
        document = json.loads(body)
        if isinstance(document, dict) and document.get("error"):
            error = document["error"]
            return str(error.get("message", error) if isinstance(error, dict) else error)[:200]
    return None


def _count(value: object) -> int | None:
    """Returns a number of tokens; None if the value is not a plausible count."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_TOKENS:
        return value
    return None


def _text_or_none(value: object) -> str | None:
    return writable(value) if isinstance(value, str) else None


def writable(text: str) -> str:
    """Makes text encodable in UTF-8: lone surrogates, which JSON allows, are replaced."""
    return _HALF_PAIR.sub("\N{REPLACEMENT CHARACTER}", text)
