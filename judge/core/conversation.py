"""A conversation with a chat model: its messages, and the cost of its requests.

A message holds the SHA-256 of a picture and a few facts that let people recognise it, but never its
bytes. So conversations, journals and caches stay small, and two runs that show the same picture
have equal messages.

``judge infer`` records the cost of its requests with each submission. A file of solutions may come
from anywhere, and its fields are kept unchanged: a field of the wrong type counts as unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NotRequired, TypedDict

MAX_PARTS = 1_000
"""At most this many parts of a message are read, because conversation files may be untrusted."""


class Part(TypedDict):
    """A piece of a message.

    If ``type`` is ``text``, only ``text`` is set; if it is ``picture``, all other fields are.
    """

    type: Literal["text", "picture"]
    text: NotRequired[str]
    sha256: NotRequired[str]
    media_type: NotRequired[str]
    bytes: NotRequired[int]
    name: NotRequired[str]


Content = str | list[Part]
"""The content of a message: a string, or a list of parts if it has pictures."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A reference to a picture in a message.

    Attributes:
        sha256: hash of its bytes, in hexadecimal digits.
        media_type: the media type of its bytes, such as ``image/png``, whatever its file name.
        size_bytes: its length in bytes.
        name: its name in prompts and for people.
    """

    sha256: str
    media_type: str
    size_bytes: int
    name: str

    @property
    def part(self) -> Part:
        """The picture as a part of a message."""
        return {
            "type": "picture",
            "sha256": self.sha256,
            "media_type": self.media_type,
            "bytes": self.size_bytes,
            "name": self.name,
        }


def content_of(text: str, pictures: Sequence[Picture] = ()) -> Content:
    """Makes a message's content: the text as a string, or, with pictures, as a list of parts."""
    if not pictures:
        return text
    return [{"type": "text", "text": text}, *(picture.part for picture in pictures)]


def plain_text(content: object) -> str:
    """Formats a message's content for people and logs, with name, type and size of each picture.

    Args:
        content: a string or parts; it may come from an untrusted source.
    """
    if isinstance(content, list):
        return "\n".join(map(_shown, content[:MAX_PARTS]))
    return "" if content is None else str(content)


def pictures_in(content: Content) -> list[Part]:
    """Returns the picture parts of a message's content, in order."""
    parts = [] if isinstance(content, str) else content
    return [part for part in parts if part["type"] == "picture"]


def _shown(part: object) -> str:
    if not isinstance(part, dict):
        return str(part)
    if part.get("type") == "text":
        return str(part.get("text") or "")
    if part.get("type") == "picture":
        facts = (part.get("name"), part.get("media_type"), f"{part.get('bytes')} bytes")
        return f"[picture {', '.join(str(fact) for fact in facts)}]"
    return f"[{part.get('type')}]"


_MOST = 2**63
_USAGE_FIELDS = frozenset({"tokens", "calls", "rounds", "cost", "seconds"})
_CALL_NUMBERS = ("attempts", "latency_s", "prompt_tokens", "completion_tokens")


@dataclass(frozen=True, slots=True)
class Call:
    """A request to the chat model.

    Attributes:
        attempts: how many requests were sent for it, including those that failed.
        latency_s: seconds that the successful request took; None if the reply came from the cache
            or was not timed.
        prompt_tokens: tokens of the request.
        completion_tokens: tokens of the reply.
    """

    attempts: float = 0.0
    latency_s: float | None = None
    prompt_tokens: float | None = None
    completion_tokens: float | None = None


@dataclass(frozen=True, slots=True)
class RecordedUsage:
    """Cost of the requests for one submission.

    Attributes:
        model: the chat model.
        setting: the inference setting.
        rounds: rounds of the conversation.
        is_counted: whether tokens are on record.
        prompt_tokens: tokens of all requests.
        completion_tokens: tokens of all replies.
        cost_usd: cost in US dollars.
        seconds: duration of all calls together, including the waits between attempts.
        is_truncated: whether the reply that the program came from was cut off.
        stands_alone: whether the program works without the earlier rounds; None if that was not
            tried.
        calls: the requests.
    """

    model: str | None = None
    setting: str | None = None
    rounds: int | None = None
    is_counted: bool = False
    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    is_truncated: bool = False
    stands_alone: bool | None = None
    calls: tuple[Call, ...] = ()


NO_USAGE = RecordedUsage()
"""The value for a submission whose requests are not on record."""


def recorded_usage(record: Mapping[str, object]) -> RecordedUsage:
    """Reads the fields of a ``submissions.jsonl`` record that are about the requests.

    Args:
        record: the record, or the part of it that a submission keeps as its provenance.
    """
    tokens = record.get("tokens")
    counted = tokens if isinstance(tokens, Mapping) else {}
    calls = record.get("calls")
    stands_alone = record.get("stands_alone")
    rounds = _number(record.get("rounds"))
    return RecordedUsage(
        model=_text(record.get("model")),
        setting=_text(record.get("setting")),
        rounds=rounds if isinstance(rounds, int) else None,
        is_counted=isinstance(tokens, Mapping),
        prompt_tokens=_number(counted.get("prompt")),
        completion_tokens=_number(counted.get("completion")),
        cost_usd=_number(record.get("cost")),
        seconds=_number(record.get("seconds")),
        is_truncated=record.get("truncated") is True,
        stands_alone=stands_alone if isinstance(stands_alone, bool) else None,
        calls=tuple(
            _call(call)
            for call in (calls if isinstance(calls, list) else ())
            if isinstance(call, Mapping)
        ),
    )


def usage_fault(record: Mapping[str, object]) -> str | None:
    """Finds an impossibly large number among the fields about requests; None if all are plausible.

    Such a value would overflow when the numbers are added up. A field of the wrong type counts as
    unknown and is accepted.

    Args:
        record: as for :func:`recorded_usage`.

    Returns:
        A message with the name of the first such field and its bound.
    """
    if _USAGE_FIELDS.isdisjoint(record):
        return None
    tokens, calls = record.get("tokens"), record.get("calls")
    numbers = [(name, record.get(name)) for name in ("rounds", "cost", "seconds")]
    if isinstance(tokens, Mapping):
        numbers += [(f"tokens.{name}", tokens.get(name)) for name in ("prompt", "completion")]
    for index, call in enumerate(calls if isinstance(calls, list) else ()):
        if isinstance(call, Mapping):
            numbers += [(f"calls[{index}].{name}", call.get(name)) for name in _CALL_NUMBERS]
    for name, value in numbers:
        number = _number(value)
        if number is not None and not abs(number) < _MOST:
            return f"field {name!r} must be a number below 2^63"
    return None


def _call(call: Mapping[str, object]) -> Call:
    return Call(
        attempts=_number(call.get("attempts")) or 0.0,
        latency_s=None if call.get("cached") else _number(call.get("latency_s")),
        prompt_tokens=_number(call.get("prompt_tokens")),
        completion_tokens=_number(call.get("completion_tokens")),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def estimate_tokens(text: str) -> int:
    """Estimates the tokens of a string, for pacing, dry runs and budgets; never for records.

    Common tokenizers make one token from about four letters of English prose, from two or three
    characters of code or numbers, and from almost every single character of other scripts.
    """
    ascii_chars = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    sample = text[:1000]
    letters = sum(map(str.isalpha, sample)) / max(len(sample), 1)
    per_token = 4.4 * letters + 2.2 * (1 - letters)
    return round(ascii_chars / max(per_token, 1) + (len(text) - ascii_chars) * 0.8) + 1
