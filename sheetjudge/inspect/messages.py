"""Messages of the judge as Inspect has them."""

from __future__ import annotations

import base64

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    Content,
    ContentImage,
    ContentText,
)

from judge.core import conversation as judged
from judge.inference.chat import Message
from judge.inference.pictures import PictureStore


def inspect_message(message: Message, pictures: PictureStore) -> ChatMessage:
    """A message as Inspect sends it, its pictures as data URLs.

    Raises:
        StoreError: a picture is missing, or is not what it was.
    """
    content = inspect_content(message["content"], pictures)
    match message["role"]:
        case "assistant":
            return ChatMessageAssistant(content=content)
        case "system":
            return ChatMessageSystem(content=content)
        case _:
            return ChatMessageUser(content=content)


def inspect_content(content: judged.Content, pictures: PictureStore) -> str | list[Content]:
    """What a message says: text, or text and pictures."""
    if isinstance(content, str):
        return content
    return [_part(part, pictures) for part in content]


def _part(part: judged.Part, pictures: PictureStore) -> Content:
    if part["type"] == "text":
        return ContentText(text=part["text"])
    media_type = part["media_type"]
    data = base64.b64encode(pictures.read(part["sha256"], media_type)).decode("ascii")
    return ContentImage(image=f"data:{media_type};base64,{data}")
