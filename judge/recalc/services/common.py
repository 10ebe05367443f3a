"""Code that the service programs share: frames, requests, and limits of processor time.

Standard library only, and nothing of ``judge``: this text goes into the sandbox.

A frame is a 4-byte big-endian length and that many bytes, on standard input and output. The
payload of a request is a JSON header with its own 4-byte length before it, then the workbook::

    {"op": "describe"}    -> {"version": …, …}
    {"op": "compute", "engine": …, "ranges": [[sheet, row, column, last row, last column], …],
     "names": {"XLOOKUP": "_xlfn.XLOOKUP", …}, "timeout_s": 20}
        -> {"values": [[…], …], "seconds": …}    one list for each range, row by row
    the same with "then": engine
        -> {"values": …, "seconds": …, "then": {"values": …}}    what a second engine computes

In those lists numbers, strings and booleans are themselves, ``{"e": "#N/A"}`` is an error, and
``{"x": why}`` a cell that could not be computed. ``{"error": why}`` instead of the lists means that
the whole workbook has no values. If ``"timed_out": true`` is added, the processor time was used up;
if ``"unavailable": true`` is added, the workbook is not at fault.

``timeout_s`` and ``seconds`` are processor seconds of the engine's process: how busy the machine is
does not matter.
"""

from __future__ import annotations

import json
import math
import os
import struct
import sys
import time
from collections.abc import Callable
from typing import BinaryIO, Protocol

Request = dict[str, "object"]
Answer = dict[str, "object"]


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; none at the end."""
        ...


HANG_S = 60.0
HANG_FACTOR = 10
"""If an engine has not used up its processor time after HANG_S seconds of wall-clock time plus
HANG_FACTOR times its processor time, it hangs or gets no processor. It is unknown which of the two
is the case, so this is not the workbook's fault."""

LOOKED_EVERY_S = 0.05
"""Seconds between two readings of an engine's processor time."""


class Stopwatch:
    """The processor time that a process has used since this clock was made, and whether it hangs.

    Args:
        process: its process id.
        limit_s: the processor seconds that it may use.

    Attributes:
        limit_s: the same.
    """

    def __init__(self, process: int, limit_s: float) -> None:
        # Linux's clock of all threads of a process (CPUCLOCK_SCHED); it can be read for any.
        self._clock = (~process << 3) | 2
        self.limit_s = limit_s
        self._used_s = self._read()
        self._started_s = time.monotonic()

    def _read(self) -> float:
        try:
            return time.clock_gettime(self._clock)
        except OSError:  # it has ended
            return 0.0

    @property
    def seconds(self) -> float:
        """The processor seconds that the process has used."""
        return max(0.0, self._read() - self._used_s)

    @property
    def is_up(self) -> bool:
        """Whether the process has used more than it may."""
        return self.seconds > self.limit_s

    @property
    def hangs(self) -> bool:
        """Whether the process should have ended or used up its time long ago."""
        return time.monotonic() - self._started_s > HANG_S + HANG_FACTOR * self.limit_s

    def verdict(self) -> Answer:
        """The answer for a process that was ended because it ran out of time or hung."""
        if self.is_up:
            return out_of_time(self.limit_s)
        return {"error": "the engine hangs, or gets no processor", "unavailable": True}


def out_of_time(limit_s: float) -> Answer:
    """The answer if the processor time is used up."""
    return {"error": f"took longer than {limit_s:g} s of processor time", "timed_out": True}


EXCEL_ERRORS = frozenset(
    (
        "#NULL!",
        "#DIV/0!",
        "#VALUE!",
        "#REF!",
        "#NAME?",
        "#NUM!",
        "#N/A",
        "#SPILL!",
        "#CALC!",
        "#FIELD!",
        "#BLOCKED!",
        "#GETTING_DATA",
    )
)


class CannotComputeError(Exception):
    """The engine cannot compute the workbook at all; the message tells people why."""


class CannotStartError(Exception):
    """The engine does not start, whatever the workbook is; the message says why."""


def read_frame(stream: Readable) -> bytes | None:
    """The next frame's payload, or None at the end of the stream."""
    head = _read_exactly(stream, 4)
    if head is None:
        return None
    return _read_exactly(stream, struct.unpack(">I", head)[0])


def _read_exactly(stream: Readable, count: int) -> bytes | None:
    chunks = []
    while count:
        chunk = stream.read(min(count, 1 << 20))
        if not chunk:
            return None
        chunks.append(chunk)
        count -= len(chunk)
    return b"".join(chunks)


def write_frame(stream: BinaryIO, payload: bytes) -> None:
    """Writes one frame and flushes it."""
    stream.write(struct.pack(">I", len(payload)))
    stream.write(payload)
    stream.flush()


def split_request(payload: bytes) -> tuple[Request, bytes]:
    """The header and the workbook of a request."""
    (length,) = struct.unpack(">I", payload[:4])
    return json.loads(payload[4 : 4 + length]), payload[4 + length :]


def serve(
    handle: Callable[[Request, bytes], Answer], *, after: Callable[[], None] | None = None
) -> None:
    """Answers requests until standard input ends.

    Standard output is only for frames: whatever an engine prints goes to standard error.

    Args:
        handle: makes the answer to a request.
        after: called when an answer has been sent, to prepare for the next request.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    while True:
        payload = read_frame(requests)
        if payload is None:
            return
        try:
            answer = handle(*split_request(payload))
        except CannotComputeError as error:
            answer = {"error": str(error)}
        except CannotStartError as error:
            answer = {"error": str(error), "unavailable": True}
        except Exception as error:  # noqa: BLE001 - whatever an engine raises is an answer
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        write_frame(answers, json.dumps(answer).encode())
        if after is not None:
            after()


def encode(value: object) -> object:
    """Converts a Python value to its form in an answer."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"e": "#NUM!"}
    return {"x": f"a value of an unexpected kind ({type(value).__name__})"}


def error_value(code: str) -> dict[str, str]:
    """The form of an error in an answer: an error of Excel, or a cell that was not computed."""
    return {"e": code} if code in EXCEL_ERRORS else {"x": f"the engine reports {code}"}
