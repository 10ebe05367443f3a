"""Messages of a conversation: text, or parts of text and pictures. Pure.

A picture in a message is its SHA-256 with what people need to recognise it, never its bytes: so
conversations, journals and caches stay small, and two runs that show the same picture agree.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    """A message's content: the string itself where there are no pictures, else text, then those."""
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
