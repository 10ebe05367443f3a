"""The pictures of a run: stored under their SHA-256, shrunk to the limits, sent with requests.

A picture that is an input of the suite stays in the suite. A picture that a program made, or that
was shrunk, is stored in the folder ``pictures`` of the run. No file of a run holds a picture as
text: a data URL is made only for a request that is sent.

The host never decodes a picture: it only reads the first bytes for the type, and computes hashes.
Pictures are shrunk and joined in a service of the sandbox. So the judge does not depend on a
decoder of pictures, and a decompression bomb ends only that service.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judge.core.conversation import Content, Part, Picture, pictures_in
from judge.errors import SandboxError, StoreError, SuiteError
from judge.files.documents import MIB, read_regular
from judge.files.media import PICTURE_SUFFIXES, image_size, image_type
from judge.files.writing import HashedFolder, read_hashed
from judge.sandbox.bundle import program_text
from judge.sandbox.contract import Sandbox, ServiceChannel

MAX_PICTURE_BYTES = 20 * MIB
"""Largest picture that is sent, in bytes; servers accept less."""

_MAX_PIXELS = 100_000_000
"""Largest picture of a program that is accepted, in pixels."""


class PictureStore:
    """A store of pictures by their hash. Safe to use from several threads.

    Args:
        folder: the folder for pictures that are not inputs of the suite; created when the first
            picture is stored.
    """

    def __init__(self, folder: Path) -> None:
        self._made = HashedFolder(folder, "picture", MAX_PICTURE_BYTES)
        self._inputs: dict[str, Path] = {}
        self._lock = threading.Lock()

    def add_input(self, path: Path) -> Picture:
        """Adds a picture of the suite.

        Raises:
            SuiteError: the file does not exist, is too long, or is not a PNG, JPEG, WEBP or GIF.
        """
        data = read_regular(path, SuiteError, max_bytes=MAX_PICTURE_BYTES)
        if data is None:
            raise SuiteError(
                f"{path}: the picture is missing",
                hint="`judge dataset validate` lists missing files; --pictures none sends none.",
            )
        media_type = image_type(data)
        if media_type not in PICTURE_SUFFIXES:
            raise SuiteError(f"{path}: is not a PNG, JPEG, WEBP or GIF picture")
        digest = hashlib.sha256(data).hexdigest()
        with self._lock:
            self._inputs[digest] = path
        return Picture(digest, media_type, len(data), path.name)

    def add_made(self, data: bytes, name: str) -> Picture | None:
        """Stores a picture made by a program or the judge; None if it is too large, or no picture.

        Raises:
            StoreError: the picture cannot be written.
        """
        media_type = image_type(data)
        if media_type not in PICTURE_SUFFIXES or len(data) > MAX_PICTURE_BYTES:
            return None
        width, height = image_size(data) or (0, 0)
        if width * height > _MAX_PIXELS:
            return None
        picture = Picture(hashlib.sha256(data).hexdigest(), media_type, len(data), name)
        with self._lock:
            if picture.sha256 not in self._inputs:
                self._made.add(data, PICTURE_SUFFIXES[media_type])
        return picture

    def read(self, sha256: str, media_type: str) -> bytes:
        """Reads a picture.

        Raises:
            StoreError: the picture is missing, or was changed.
        """
        path = self._inputs.get(sha256)
        if path is None:
            if media_type not in PICTURE_SUFFIXES:
                raise StoreError(f"{media_type[:80]!r} is not a type of picture that is kept")
            path = self._made.path(sha256, PICTURE_SUFFIXES[media_type])
        data = read_hashed(path, sha256, max_bytes=MAX_PICTURE_BYTES)
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
    """Converts a message's content to the chat completions format, pictures to data URLs.

    Args:
        content: the content as it is stored.
        pictures: the store of its pictures; None if messages cannot contain pictures.

    Raises:
        StoreError: a picture is missing, or was changed.
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


MAX_PIXELS = 100_000_000
"""Largest picture that is decoded, in pixels: 300 MB in three channels."""

STITCHED_SIDE = 2_048
"""Longest side of pictures joined into one, in pixels, unless the setting names another."""

_PROGRAM = "judge.inference.picture_worker"
_MEMORY_BYTES = 2 * 1024**3
_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class PictureLimits:
    """The limits on pictures.

    Attributes:
        longest_side: longest side in pixels; None for no limit.
        max_bytes: largest picture in bytes; None for no limit.
        stitch: whether several pictures are joined into one.
        types: accepted media types; pictures of other types are converted to PNG.
    """

    longest_side: int | None = None
    max_bytes: int | None = None
    stitch: bool = False
    types: frozenset[str] = frozenset(PICTURE_SUFFIXES)

    def leaves(self, picture: Picture) -> bool:
        """Whether a picture certainly stays unchanged, as far as its undecoded data shows."""
        is_unbounded = self.longest_side is None and self.max_bytes is None
        return is_unbounded and not self.stitch and picture.media_type in self.types


class PictureFitter:
    """Makes pictures fit given limits, in a service of the sandbox. Safe to use in several threads.

    Args:
        sandbox: the sandbox in which pictures are decoded.
        store: the store of the pictures.
    """

    def __init__(self, sandbox: Sandbox, store: PictureStore) -> None:
        self._sandbox = sandbox
        self._store = store
        self._channel: ServiceChannel | None = None
        self._lock = threading.Lock()
        self._fitted: dict[tuple[PictureLimits, tuple[str, ...]], list[Picture]] = {}

    def fit(self, pictures: Sequence[Picture], fit: PictureLimits) -> list[Picture]:
        """Returns the pictures within the limits, or one picture that shows them all.

        Args:
            pictures: the pictures of one message.
            fit: the limits; a single picture is never stitched.

        Raises:
            SuiteError: a picture cannot be decoded, or is too large to be decoded.
            SandboxError: the sandbox failed.
        """
        stitch = fit.stitch and len(pictures) > 1
        fit = replace(fit, stitch=stitch)
        if all(fit.leaves(picture) for picture in pictures):
            return list(pictures)
        key = (fit, tuple(picture.sha256 for picture in pictures))
        with self._lock:
            if key not in self._fitted:
                self._fitted[key] = self._fit(pictures, fit)
            return self._fitted[key]

    def close(self) -> None:
        """Ends the service; safe to call twice."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def _fit(self, pictures: Sequence[Picture], fit: PictureLimits) -> list[Picture]:
        if fit.stitch:
            return [self._fit_together(pictures, fit)]
        return [
            picture if fit.leaves(picture) else self._fit_together([picture], fit)
            for picture in pictures
        ]

    def _fit_together(self, pictures: Sequence[Picture], fit: PictureLimits) -> Picture:
        names = ", ".join(picture.name for picture in pictures)
        frame = {
            "pictures": [
                base64.b64encode(self._store.read(item.sha256, item.media_type)).decode("ascii")
                for item in pictures
            ],
            "longest_side": fit.longest_side,
            "max_bytes": fit.max_bytes,
            "stitch": fit.stitch,
            "stitched_side": STITCHED_SIDE,
            "types": sorted(fit.types),
            "max_pixels": MAX_PIXELS,
        }
        try:
            answer = json.loads(self._call(json.dumps(frame).encode()))
            error, shrunk = answer.get("error"), answer.get("pictures")
        except (ValueError, AttributeError, RecursionError):
            error, shrunk = "the service sent no answer", None
        if error is not None:
            raise SuiteError(f"{names}: cannot be shrunk: {str(error)[:300]}")
        try:
            data = base64.b64decode(shrunk[0], validate=True)
        except (ValueError, TypeError, LookupError):
            data = b""
        picture = self._store.add_made(data, names)
        if picture is None:
            raise SuiteError(f"{names}: cannot be shrunk: what came back is not a picture")
        return picture

    def _call(self, frame: bytes) -> bytes:
        if self._channel is None:
            self._channel = self._sandbox.service(
                program_text(_PROGRAM), root="python", memory_bytes=_MEMORY_BYTES
            )
        try:
            return self._channel.call(frame, _TIMEOUT_S)
        except TimeoutError as error:
            self.close()
            raise SuiteError(f"a picture was not shrunk within {_TIMEOUT_S:g} s") from error
        except SandboxError as error:
            # The picture ended the service (memory, a fault of a decoder). The next picture gets a
            # new service.
            self.close()
            raise SuiteError(f"a picture could not be shrunk: {error.message}") from error
