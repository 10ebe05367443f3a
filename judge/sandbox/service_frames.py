"""Answers JSON with JSON: the code that the judge's small services share.

The judge never runs this: :func:`judge.sandbox.bundle.program_text` puts its source into
programs for the sandbox, so it needs only the standard library. A frame is four bytes of length,
the most significant first, then JSON.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import IO, Any


def serve(
    answer_to: Callable[[dict[str, Any]], dict[str, Any]], requests: IO[bytes], answers: IO[bytes]
) -> None:
    """Answers frames; ends the process when there are no more.

    Args:
        answer_to: makes the answer to a frame.
        requests: the stream of frames.
        answers: the stream of answers.
    """
    while True:
        (length,) = struct.unpack(">I", read_exactly(requests, 4))
        answer = answer_to(json.loads(read_exactly(requests, length)))
        data = json.dumps(answer).encode()
        answers.write(struct.pack(">I", len(data)) + data)
        answers.flush()


def read_exactly(stream: IO[bytes], count: int) -> bytes:
    """Reads a number of bytes; ends the process when there are no more."""
    data = b""
    while len(data) < count:
        chunk = stream.read(count - len(data))
        if not chunk:
            raise SystemExit(0)
        data += chunk
    return data
