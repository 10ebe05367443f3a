"""The messages of a conversation with a chat model, and an estimate of their tokens.

A message holds the SHA-256 of a picture and a few facts that let people recognise it, but never its
bytes. So conversations, journals and caches stay small, and two runs that show the same picture
have equal messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NotRequired, TypedDict

MAX_PARTS = 1_000
"""How many parts of a message are read; conversation files may come from anybody."""


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
