"""The pictures of a run: kept once by their SHA-256, and read again when a message is sent.

A picture that is an input of the suite stays where it is. One that a program made, or that was
shrunk, is kept in the folder ``pictures`` of the run. No file of a run holds a picture as text: a
data URL is only made for the request that leaves.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from pathlib import Path
from typing import Any

from judge.core.conversation import Content, Part, Picture, pictures_in
from judge.errors import StoreError, SuiteError
from judge.files.documents import MIB, read_regular
from judge.files.hashed import HashedFolder, read_hashed
from judge.files.media import PICTURE_SUFFIXES, image_type

MAX_PICTURE_BYTES = 20 * MIB
"""The longest picture that is sent; servers take less."""


class PictureStore:
    """Pictures by their hash. Safe to use from several threads.

    Args:
        folder: where pictures that are no input of the suite are kept; made when the first one is.
    """

    def __init__(self, folder: Path) -> None:
        self._made = HashedFolder(folder, "picture", MAX_PICTURE_BYTES)
        self._inputs: dict[str, Path] = {}
        self._lock = threading.Lock()

    def add_input(self, path: Path) -> Picture:
        """A picture of the suite.

        Raises:
            SuiteError: it does not exist, is too long, or is not a PNG, JPEG, WEBP or GIF.
        """
        data = read_regular(path, SuiteError, most_bytes=MAX_PICTURE_BYTES)
        if data is None:
            raise SuiteError(
                f"{path}: the picture is missing",
                hint="`judge dataset validate` lists missing files; --pictures none asks without.",
            )
        media_type = image_type(data)
        if media_type not in PICTURE_SUFFIXES:
            raise SuiteError(f"{path}: is not a PNG, JPEG, WEBP or GIF picture")
        digest = hashlib.sha256(data).hexdigest()
        with self._lock:
            self._inputs[digest] = path
        return Picture(digest, media_type, len(data), path.name)

    def add_made(self, data: bytes, name: str) -> Picture | None:
        """A picture that a program made, or the judge; None if it is not a picture, or too long.

        Raises:
            StoreError: it cannot be written.
        """
        media_type = image_type(data)
        if media_type not in PICTURE_SUFFIXES or len(data) > MAX_PICTURE_BYTES:
            return None
        picture = Picture(hashlib.sha256(data).hexdigest(), media_type, len(data), name)
        with self._lock:
            if picture.sha256 not in self._inputs:
                self._made.add(data, PICTURE_SUFFIXES[media_type])
        return picture

    def read(self, sha256: str, media_type: str) -> bytes:
        """The bytes of a picture.

        Raises:
            StoreError: it is missing, or is not what it was.
        """
        path = self._inputs.get(sha256)
        if path is None:
            if media_type not in PICTURE_SUFFIXES:
                raise StoreError(f"{media_type[:80]!r} is not a type of picture that is kept")
            path = self._made.path(sha256, PICTURE_SUFFIXES[media_type])
        data = read_hashed(path, sha256, most_bytes=MAX_PICTURE_BYTES)
        if data is None:
            raise StoreError(
                f"{path}: the picture {'was changed' if path.exists() else 'is missing'}",
                hint="Give another --out, and the conversation starts from the beginning.",
            )
        return data


def has_pictures(content: Content) -> bool:
    """Whether a message shows a picture."""
    return bool(pictures_in(content))


def sent_content(content: Content, pictures: PictureStore | None) -> str | list[dict[str, Any]]:
    """A message's content as chat completions take it, pictures as data URLs.

    Args:
        content: the content as it is kept.
        pictures: where its pictures are; None where no message may hold any.

    Raises:
        StoreError: a picture is missing, or is not what it was.
    """
    if isinstance(content, str):
        return content
    return [_sent_part(part, pictures) for part in content]


def _sent_part(part: Part, pictures: PictureStore | None) -> dict[str, Any]:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    assert pictures is not None, "a request with pictures comes with their store"
    media_type = part["media_type"]
    data = base64.b64encode(pictures.read(part["sha256"], media_type)).decode("ascii")
    return {"type": "image_url", "image_url": {"url": f"data:{media_type};base64,{data}"}}
