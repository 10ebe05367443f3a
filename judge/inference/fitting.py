"""Pictures made to fit what a model takes: shrunk, or several in one; decoded only in the sandbox.

The host never decodes a picture: it reads first bytes for the type, and hashes. So no decoder of
pictures is a dependency of the judge, and a picture made to burst ends a service of the sandbox.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

from judge.core.conversation import Picture
from judge.errors import SandboxError, SuiteError
from judge.files.media import PICTURE_SUFFIXES
from judge.inference.pictures import PictureStore
from judge.sandbox.bundle import program_text
from judge.sandbox.contract import Sandbox, ServiceChannel

MAX_PIXELS = 100_000_000
"""A picture with more pixels is not decoded: 300 MB in three channels."""

STITCHED_SIDE = 2_048
"""Longest side of several pictures in one, where no other is requested."""

_PROGRAM = "judge.inference.picture_worker"
_MEMORY_BYTES = 2 * 1024**3
_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Fit:
    """What pictures must fit.

    Attributes:
        longest_side: pixels; None for no bound.
        most_bytes: of each picture; None for no bound.
        stitch: whether several become one.
        types: media types that are taken; pictures of others become PNG.
    """

    longest_side: int | None = None
    most_bytes: int | None = None
    stitch: bool = False
    types: frozenset[str] = frozenset(PICTURE_SUFFIXES)

    def leaves(self, picture: Picture) -> bool:
        """Whether a picture certainly stays as it is."""
        is_unbounded = self.longest_side is None and self.most_bytes is None
        return is_unbounded and not self.stitch and picture.media_type in self.types


class PictureFitter:
    """Makes pictures fit, in a service of the sandbox. Safe to use from several threads.

    Args:
        sandbox: where pictures are decoded.
        store: where they are kept.
    """

    def __init__(self, sandbox: Sandbox, store: PictureStore) -> None:
        self._sandbox = sandbox
        self._store = store
        self._channel: ServiceChannel | None = None
        self._lock = threading.Lock()
        self._known: dict[tuple[Fit, tuple[str, ...]], list[Picture]] = {}

    def fit(self, pictures: Sequence[Picture], fit: Fit) -> list[Picture]:
        """The pictures within bounds, or one picture that shows them all.

        Args:
            pictures: of one message.
            fit: what they must fit; a single picture is never stitched.

        Raises:
            SuiteError: a picture cannot be decoded, or is too large to be.
            SandboxError: the sandbox failed.
        """
        stitch = fit.stitch and len(pictures) > 1
        fit = replace(fit, stitch=stitch)
        if all(fit.leaves(picture) for picture in pictures):
            return list(pictures)
        key = (fit, tuple(picture.sha256 for picture in pictures))
        with self._lock:
            if key not in self._known:
                self._known[key] = self._fit(pictures, fit)
            return self._known[key]

    def close(self) -> None:
        """Ends the service; safe to call twice."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def _fit(self, pictures: Sequence[Picture], fit: Fit) -> list[Picture]:
        if fit.stitch:
            return [self._made(pictures, fit)]
        return [
            picture if fit.leaves(picture) else self._made([picture], fit) for picture in pictures
        ]

    def _made(self, pictures: Sequence[Picture], fit: Fit) -> Picture:
        named = ", ".join(each.name for each in pictures)
        frame = {
            "pictures": [
                base64.b64encode(self._store.read(each.sha256, each.media_type)).decode("ascii")
                for each in pictures
            ],
            "longest_side": fit.longest_side,
            "most_bytes": fit.most_bytes,
            "stitch": fit.stitch,
            "stitched_side": STITCHED_SIDE,
            "types": sorted(fit.types),
            "most_pixels": MAX_PIXELS,
        }
        try:
            answer = json.loads(self._call(json.dumps(frame).encode()))
            error, made = answer.get("error"), answer.get("pictures")
        except (ValueError, AttributeError, RecursionError):
            error, made = "the service sent no answer", None
        if error is not None:
            raise SuiteError(f"{named}: cannot be shrunk: {str(error)[:300]}")
        try:
            data = base64.b64decode(made[0], validate=True)
        except (ValueError, TypeError, LookupError):
            data = b""
        picture = self._store.add_made(data, named)
        if picture is None:
            raise SuiteError(f"{named}: cannot be shrunk: what came back is not a picture")
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
            # The picture ended the service (memory, a fault of a decoder): the next gets another.
            self.close()
            raise SuiteError(f"a picture could not be shrunk: {error.message}") from error
