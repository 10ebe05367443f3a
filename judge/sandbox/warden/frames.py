"""The protocol between the judge and the warden: length-prefixed frames.

A frame is a 4-byte big-endian length and a payload of that many bytes. The payload of a message
consists of a 4-byte header length, a JSON header, and raw bytes (blobs) with lengths in the header.
"""

from __future__ import annotations

import json
import os
import struct
from typing import Any

MAX_FRAME_BYTES = 1 << 30
_LENGTH = struct.Struct(">I")
_CHUNK_BYTES = 1 << 20


class ProtocolError(Exception):
    """Raised when the other side sent something other than a message."""


class ClosedError(Exception):
    """Raised when the other side closed the connection."""


def pack(header: dict[str, Any], blobs: list[bytes] | None = None) -> bytes:
    """One message as a whole frame, ready to send."""
    blobs = blobs or []
    head = json.dumps({**header, "blobs": [len(blob) for blob in blobs]}).encode()
    size = _LENGTH.size + len(head) + sum(len(blob) for blob in blobs)
    if size > MAX_FRAME_BYTES:
        raise ProtocolError(f"a message of {size} bytes is over the {MAX_FRAME_BYTES} of a frame")
    return b"".join([_LENGTH.pack(size), _LENGTH.pack(len(head)), head, *blobs])


def unpack(payload: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Splits a frame's payload.

    Raises:
        ProtocolError: the payload is not a message.
    """
    if len(payload) < _LENGTH.size:
        raise ProtocolError("a message without a header")
    (length,) = _LENGTH.unpack_from(payload)
    start = _LENGTH.size + length
    try:
        header = json.loads(payload[_LENGTH.size : start])
        sizes = header.pop("blobs")
        if start + sum(sizes) != len(payload):
            raise ProtocolError("the blobs of a message do not fill it")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProtocolError(f"a message with a broken header: {error}") from error
    blobs = []
    for size in sizes:
        blobs.append(payload[start : start + size])
        start += size
    return header, blobs


def frame_length(prefix: bytes) -> int:
    """The payload's length according to a frame's first four bytes.

    Raises:
        ProtocolError: it is over the limit of a frame.
    """
    (length,) = _LENGTH.unpack(prefix)
    if length > MAX_FRAME_BYTES:
        raise ProtocolError(f"a frame of {length} bytes")
    return int(length)


def read_exactly(fd: int, size: int) -> bytes:
    """Reads ``size`` bytes from a blocking descriptor.

    Raises:
        ClosedError: it ended too early.
    """
    chunks: list[bytes] = []
    while size:
        chunk = os.read(fd, min(size, _CHUNK_BYTES))
        if not chunk:
            raise ClosedError
        chunks.append(chunk)
        size -= len(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def read_frame(fd: int) -> bytes:
    """Reads one frame's payload from a blocking descriptor."""
    return read_exactly(fd, frame_length(read_exactly(fd, _LENGTH.size)))


def write_all(fd: int, data: bytes) -> None:
    """Writes everything to a blocking descriptor."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view[:_CHUNK_BYTES]) :]
