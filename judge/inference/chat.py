"""What is asked of a chat model and what comes back; nothing here uses the network."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Protocol, TypedDict

from judge.core.conversation import Content, pictures_in
from judge.inference.pictures import PictureStore, has_pictures, sent_content

PICTURE_TOKENS = 1_000
"""About what a picture costs: hosted models count 85 to 1,600 tokens, by its size and theirs."""


class Message(TypedDict):
    """A message: who says what."""

    role: str
    content: Content


class CallError(Exception):
    """A call that failed for good.

    Args:
        kind: ``gave-up`` (the retries are used up), ``refused`` (the server will not answer this
            request), ``context-length`` (the conversation is too long for the model), ``pictures``
            (the model takes none), ``access`` (key, model name or address are wrong: no other call
            will do better).
        message: what happened, without the key.
        attempts: requests that were sent.
        faults: what went wrong in each of them.
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
    """One request.

    Attributes:
        model: the server's name for the model.
        messages: the conversation so far.
        params: temperature, top_p, seed, max_tokens and any other request parameters.
        pictures: where the pictures of the messages are; not needed where there are none.
        custom_id: what tells it from others in a batch, equal ones included; not part of what is
            asked.
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
        """The messages as chat completions take them.

        Raises:
            StoreError: a picture is missing, or is not what it was.
        """
        return [
            {**message, "content": sent_content(message["content"], self.pictures)}
            for message in self.messages
        ]

    def body(self) -> dict[str, Any]:
        """The request as chat completions take it; what the SDK does not know is left in.

        Raises:
            StoreError: a picture is missing, or is not what it was.
        """
        params = dict(self.params)
        extra = params.pop("extra_body", None) or {}
        return {"model": self.model, "messages": self.sent_messages(), **params, **extra}

    @property
    def is_repeatable(self) -> bool:
        """Whether the same request is meant to give the same reply: seed or temperature 0."""
        return self.params.get("seed") is not None or self.params.get("temperature") == 0

    def digest(self, endpoint: str) -> str:
        """SHA-256 of everything that could change the reply; pictures are in it by their own.

        Args:
            endpoint: address of the server.
        """
        document = [endpoint, self.model, list(self.messages), dict(self.params)]
        text = json.dumps(document, sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()


@dataclass(frozen=True, slots=True)
class ChatReply:
    """One reply.

    Attributes:
        text: the message's text; empty if it has none.
        finish_reason: why it ended, as the server says (``stop``, ``length`` …).
        prompt_tokens: as the server counted; None where it did not.
        completion_tokens: likewise, reasoning included.
        seconds: from the first attempt to the reply, waiting between attempts included.
        latency_s: of the attempt that succeeded.
        attempts: requests that were sent; 0 for a reply from the cache.
        faults: what went wrong with the attempts before.
        reasoning: reasoning that the server gave separately from the text.
        model: the model that the server says answered.
        cached: whether the reply came from the cache, so that nothing was asked.
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

    @property
    def is_truncated(self) -> bool:
        """Whether the server cut the reply off at its length limit."""
        return self.finish_reason in {"length", "max_tokens", "model_length"}

    def to_json(self) -> dict[str, Any]:
        """The reply as a JSON object that :func:`reply_of_json` reads back."""
        return {name: getattr(self, name) for name in _REPLY_FIELDS} | {"faults": list(self.faults)}


_REPLY_FIELDS = tuple(each.name for each in fields(ChatReply))


def reply_of_json(document: Mapping[str, Any], **changes: Any) -> ChatReply:
    """A reply that was written down before.

    Raises:
        TypeError: somebody else wrote it, who does not know what a reply is.
    """
    known = {name: document[name] for name in _REPLY_FIELDS if name in document} | changes
    known["faults"] = tuple(map(str, known.get("faults") or ()))
    for name, value in known.items():
        if type(value) not in _REPLY_TYPES[name]:
            raise TypeError(f"{name} of a reply is {str(value)[:80]!r}")
    return ChatReply(**known)


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
    }
)


class ChatModel(Protocol):
    """A model that answers requests. Used by one event loop."""

    @property
    def endpoint(self) -> str:
        """Address of the server, without credentials."""
        ...

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Asks once, retries included.

        Raises:
            CallError: no reply could be obtained.
        """
        ...

    async def close(self) -> None:
        """Closes connections; safe to call twice."""
        ...


def estimate_tokens(text: str) -> int:
    """About how many tokens a string has: for pacing, dry runs and budgets, never for records.

    Common tokenizers make one token of about four letters of English prose, of every two or three
    characters of code and numbers, and of almost every character of other scripts.
    """
    ascii_chars = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    sample = text[:1000]
    letters = sum(map(str.isalpha, sample)) / max(len(sample), 1)
    per_token = 4.4 * letters + 2.2 * (1 - letters)
    return round(ascii_chars / max(per_token, 1) + (len(text) - ascii_chars) * 0.8) + 1


def estimate_request_tokens(messages: Sequence[Message]) -> int:
    """About how many tokens a conversation has, with a few for each message's frame."""
    return sum(estimate_content_tokens(message["content"]) + 4 for message in messages)


def estimate_content_tokens(content: Content) -> int:
    """About how many tokens a message's content has, pictures included."""
    if isinstance(content, str):
        return estimate_tokens(content)
    text = sum(estimate_tokens(part["text"]) for part in content if part["type"] == "text")
    return text + PICTURE_TOKENS * len(pictures_in(content))
