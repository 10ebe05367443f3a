"""A conversation with a chat model: its messages, and what its requests took. Pure.

A picture in a message is its SHA-256 with what people need to recognise it, never its bytes: so
conversations, journals and caches stay small, and two runs that show the same picture agree.

``judge infer`` records with each submission what its requests took. A file of solutions may come
from anywhere, and its fields are kept as they are: a field of another form counts as unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NotRequired, TypedDict

MAX_PARTS = 1_000
"""Parts of one message that are read; files of conversations may come from anybody."""


class Part(TypedDict):
    """A piece of a message.

    ``text`` is there where ``type`` is ``text``, all others where it is ``picture``.
    """

    type: Literal["text", "picture"]
    text: NotRequired[str]
    sha256: NotRequired[str]
    media_type: NotRequired[str]
    bytes: NotRequired[int]
    name: NotRequired[str]


Content = str | list[Part]
"""What a message says: a string, or parts where it holds pictures."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as messages name it.

    Attributes:
        sha256: hash of its bytes, in hexadecimal digits.
        media_type: what its bytes are, such as ``image/png``, whatever its name says.
        size_bytes: how long it is.
        name: the name of it that prompts and people use.
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
    """A message's content: the string itself if there are no pictures, or text, then pictures."""
    if not pictures:
        return text
    return [{"type": "text", "text": text}, *(picture.part for picture in pictures)]


def plain_text(content: object) -> str:
    """A message's content for people and for logs: pictures by name, type and size.

    Args:
        content: a string, or parts; it may come from anybody.
    """
    if isinstance(content, list):
        return "\n".join(map(_shown, content[:MAX_PARTS]))
    return "" if content is None else str(content)


def pictures_in(content: Content) -> list[Part]:
    """The picture parts of a content, in order."""
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
_CALL_NUMBERS = ("attempts", "latency_s", "prompt_tokens", "completion_tokens")


@dataclass(frozen=True, slots=True)
class Call:
    """A request to the chat model.

    Attributes:
        attempts: requests that were sent for it, those that failed included.
        latency_s: seconds of the one that was answered; None where the reply came from the cache,
            or was not timed.
        prompt_tokens: tokens asked.
        completion_tokens: tokens answered.
    """

    attempts: float = 0.0
    latency_s: float | None = None
    prompt_tokens: float | None = None
    completion_tokens: float | None = None


@dataclass(frozen=True, slots=True)
class Asking:
    """Cost of the requests for one submission.

    Attributes:
        model: the chat model.
        setting: the inference setting.
        rounds: rounds of the conversation.
        is_counted: whether tokens are on record.
        prompt_tokens: tokens asked.
        completion_tokens: tokens answered.
        cost_usd: US dollars.
        seconds: of all calls together, waiting between attempts included.
        is_truncated: whether the reply that the program came from was cut off.
        stands_alone: whether the program works without earlier rounds; None where that was not
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


NOT_ASKED = Asking()
"""For a submission about which nothing is known."""


def asking_of(record: Mapping[str, object]) -> Asking:
    """Reads what a record of ``submissions.jsonl`` says about the requests.

    Args:
        record: the record, or what a submission keeps of it as its provenance.
    """
    tokens = record.get("tokens")
    counted = tokens if isinstance(tokens, Mapping) else {}
    calls = record.get("calls")
    stands_alone = record.get("stands_alone")
    rounds = _number(record.get("rounds"))
    return Asking(
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


def fault_of_asking(record: Mapping[str, object]) -> str | None:
    """Fault in the numbers of a record about the requests; None if there is none.

    They are added up, and what no measurement comes near would overflow there. A field of another
    form counts as unknown, and is accepted.

    Args:
        record: as for :func:`asking_of`.

    Returns:
        The first such field, and what it must be.
    """
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
    """An estimate of the tokens of a string: for pacing, dry runs and budgets, never for records.

    Common tokenizers make one token of about four letters of English prose, of every two or three
    characters of code and numbers, and of almost every character of other scripts.
    """
    ascii_chars = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    sample = text[:1000]
    letters = sum(map(str.isalpha, sample)) / max(len(sample), 1)
    per_token = 4.4 * letters + 2.2 * (1 - letters)
    return round(ascii_chars / max(per_token, 1) + (len(text) - ascii_chars) * 0.8) + 1
