"""What a server sends, read up to a limit: raw bytes, and their content. Pure except for time.

The SDK reads error bodies, redirects and lists whole, and its transport unpacks while it reads: a
few kilobytes can stand for gigabytes, and what follows the end of a packed stream is kept for
nothing. So bodies are read raw, and unpacked here.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
import zlib
from collections.abc import AsyncIterable
from typing import IO
from urllib.parse import quote

from judge.files.documents import MAX_FILE_BYTES

MAX_BODY_BYTES = 8 * 1024 * 1024
"""Bytes of a reply or a list of models, packed and unpacked."""

MAX_ERROR_BYTES = 64 * 1024
"""Bytes of an error's body that are read; the judge does not wait for the rest."""

ERROR_BODY_S = 10.0
"""Seconds for the body of an error."""

KEY_MASK = b"[key]"
"""Replaces a key; it can be part of a JSON string, and cannot be an id."""

_MIN_SECRET_CHARS = 12
"""Shorter keys are those of local servers (``none``, ``EMPTY``), and words in replies."""

_PACKED = frozenset({"gzip", "x-gzip", "deflate"})


class KeyMask:
    """Takes keys out of what a server sends, before any of it is parsed, shown or kept.

    A key is found as it is; with any of its characters escaped as JSON may escape them; percent
    encoded; in hexadecimal digits; and within base64, whatever is coded before and after it. A key
    that a server reverses, cuts up or encrypts is not found.

    Args:
        secrets: keys and passwords; those that are too short to be secret are left out.
    """

    def __init__(self, *secrets: str | None) -> None:
        forms = {form for secret in secrets if secret for form in _forms_of(secret)}
        self._plain = tuple(form.encode() for form in forms)
        spelled = sorted(map(_spelled, forms), key=len, reverse=True)
        self._pattern = re.compile("|".join(spelled).encode()) if forms else None

    def masked(self, body: bytes) -> bytes:
        """The body with :data:`KEY_MASK` for each key in it."""
        if self._pattern is None:
            return body
        if b"\\" not in body and not any(form in body for form in self._plain):
            return body
        return self._pattern.sub(KEY_MASK, body)


def _forms_of(secret: str) -> set[str]:
    """The spellings by which a secret is recognized."""
    data = secret.encode()
    if len(secret) < _MIN_SECRET_CHARS:
        return set()
    forms = {secret, quote(secret), quote(secret, safe=""), data.hex(), data.hex().upper()}
    for before in range(3):
        # Characters of base64 that hold bits of something else, on either side, are left out.
        coded = base64.b64encode(bytes(before) + data).decode()
        whole = coded[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        forms |= {whole, whole.translate(str.maketrans("+/", "-_"))}
    return forms


def _spelled(form: str) -> str:
    """A pattern of a string in which JSON may have escaped any character."""
    spelled = []
    for each in form:
        code = "".join(f"[{x}{x.upper()}]" if x.isalpha() else x for x in f"{ord(each):04x}")
        escaped = r"\\/|" if each == "/" else ""
        spelled.append(rf"(?:{re.escape(each)}|{escaped}\\u{code})")
    return "".join(spelled)


class BodyError(ValueError):
    """A body that cannot be accepted; says why."""


async def read_body(chunks: AsyncIterable[bytes], encoding: str | None) -> bytes:
    """The body of an answer, unpacked.

    Args:
        chunks: the raw bytes as they come.
        encoding: the header ``Content-Encoding``.

    Raises:
        BodyError: it is longer than :data:`MAX_BODY_BYTES`, or packed so that it cannot be read.
    """
    received = bytearray()
    async for chunk in chunks:
        received += chunk
        if len(received) > MAX_BODY_BYTES:
            raise BodyError(f"the reply is longer than {MAX_BODY_BYTES} bytes")
    body = _unpack(bytes(received), encoding, MAX_BODY_BYTES)
    if len(body) > MAX_BODY_BYTES:
        raise BodyError(f"the reply is longer than {MAX_BODY_BYTES} bytes once unpacked")
    return body


async def keep_body(chunks: AsyncIterable[bytes], encoding: str | None, file: IO[bytes]) -> None:
    """Puts the body of an answer into a file, which is emptied before.

    Args:
        chunks: the raw bytes as they come.
        encoding: the header ``Content-Encoding``; files have to come as they are.
        file: takes the body.

    Raises:
        BodyError: it is longer than a file may be, or packed.
        OSError: the file cannot be written.
    """
    if (encoding or "identity").strip().lower() != "identity":
        raise BodyError(f"the file is packed as {str(encoding)[:40]!r}, which was not asked for")
    file.seek(0)
    file.truncate()
    received = 0
    async for chunk in chunks:
        received += len(chunk)
        if received > MAX_FILE_BYTES:
            raise BodyError(f"the file is longer than {MAX_FILE_BYTES} bytes")
        file.write(chunk)
    file.seek(0)


async def read_error_body(
    chunks: AsyncIterable[bytes], encoding: str | None, within_s: float
) -> bytes:
    """As much of an error's body as a message needs; never fails because of its content.

    Args:
        chunks: the raw bytes as they come.
        encoding: the header ``Content-Encoding``.
        within_s: seconds after which what came until then is enough.
    """
    received = bytearray()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            async for chunk in chunks:
                received += chunk
                if len(received) >= MAX_ERROR_BYTES:
                    break
    try:
        packed = bytes(received[:MAX_ERROR_BYTES])
        return _unpack(packed, encoding, MAX_ERROR_BYTES, whole=False)
    except BodyError:
        return b""


def _unpack(body: bytes, encoding: str | None, limit: int, *, whole: bool = True) -> bytes:
    """The unpacked body; one byte more than the limit where it is longer."""
    name = (encoding or "identity").strip().lower()
    if name in {"identity", ""} or not body:
        return body
    if name not in _PACKED:
        raise BodyError(f"the reply is packed as {name[:40]!r}, which was not asked for")
    for window in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):  # deflate comes with a header or without
        unpacker = zlib.decompressobj(window)
        with contextlib.suppress(zlib.error):
            unpacked = unpacker.decompress(body, limit + 1)
            if unpacker.eof or len(unpacked) > limit or not whole:
                return unpacked
    raise BodyError("the reply cannot be unpacked")
