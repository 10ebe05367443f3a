"""Sends requests to an isolated service program, and reads its answers."""

from __future__ import annotations

import json
import re
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from judge.errors import RecalcError, SandboxError
from judge.recalc.contract import (
    CrashedError,
    Dialect,
    EngineResult,
    EngineUnavailableError,
    OutOfTimeError,
    RangeValues,
)
from judge.recalc.services.common import HANG_FACTOR, HANG_S
from judge.sandbox.contract import ServiceChannel
from judge.workbook.cell import CellRange, CellRef, CellValue, ErrorValue

GRACE_S = 300.0
"""How many seconds longer than the engine the channel may take, to restart the engine and to
transfer data. The service itself ends an engine that hangs; this ends a service that hangs."""

ATTEMPTS = 2
"""How many times a service is started for one request. The engines are child processes of a
service, which reports how they end; so if the service itself ends, something outside ended it."""


WAITED_FOR_S = 0.5
"""How many seconds a request waits for a running copy of a service before another one is started.
A start costs as much as a dozen usual requests: a quarter of a second of processor time for
LibreOffice, and half of that for the quick engines."""


class ServicePool:
    """Channels to one service program, opened on demand; a dead one is replaced.

    Safe to use from several threads: each call has its own channel, at most ``size`` at once.

    Args:
        open_channel: starts the program inside the sandbox.
        size: how many copies of the program may run at once.
        waited_for_s: how long a request waits for a running copy before it starts another one.
    """

    def __init__(
        self,
        open_channel: Callable[[], ServiceChannel],
        *,
        size: int = 1,
        waited_for_s: float = WAITED_FOR_S,
    ) -> None:
        self._open = open_channel
        self._waited_for_s = waited_for_s
        self._free: list[ServiceChannel] = []
        self._in_use = 0
        self._size = size
        self._open_channels: set[ServiceChannel] = set()
        self._changed = threading.Condition()
        self._closed = False

    def ask(self, header: Mapping[str, Any], workbook: bytes, timeout_s: float) -> dict[str, Any]:
        """Sends one request and returns the answer; if a service ends, tries another one.

        Args:
            header: the request.
            workbook: the workbook that the request refers to.
            timeout_s: processor seconds that all engines together may take. The wall-clock limit
                for the service is many times that, since the machine may be busy.

        Raises:
            EngineUnavailableError: the service, or the engine in it, cannot be started, hangs, or
                is ended from outside again and again.
            RecalcError: the service sent no valid answer; the next call starts a new service.
        """
        text = json.dumps(header).encode()
        payload = struct.pack(">I", len(text)) + text + workbook
        channel = self._take()
        try:
            started = 0
            while True:
                if self._closed:
                    raise EngineUnavailableError("the calculation service was closed")
                if channel is None:
                    channel = self._start()
                    started += 1
                try:
                    answer = _answer(channel, payload, _waited_s(timeout_s))
                except (TimeoutError, SandboxError, ValueError, EngineUnavailableError) as error:
                    self._drop(channel)
                    channel = None
                    # An idle service may have ended in the same event as others; try a new one.
                    if started == ATTEMPTS or isinstance(error, TimeoutError):
                        raise _as_ours(error) from error
                else:
                    return answer
        finally:
            self._put_back(channel)

    def _take(self) -> ServiceChannel | None:
        """Takes a free channel; None if one has to be opened."""
        with self._changed:
            if not self._free and 0 < self._in_use < self._size:
                self._changed.wait_for(lambda: self._free or not self._in_use, self._waited_for_s)
            self._changed.wait_for(lambda: self._free or self._in_use < self._size)
            self._in_use += 1
            return self._free.pop() if self._free else None

    def _put_back(self, channel: ServiceChannel | None) -> None:
        with self._changed:
            self._in_use -= 1
            if channel is not None:
                self._free.append(channel)
            self._changed.notify_all()

    def _start(self) -> ServiceChannel:
        try:
            channel = self._open()
        except SandboxError as error:
            raise EngineUnavailableError(
                f"the calculation service does not start: {error.message}", hint=error.hint
            ) from error
        with self._changed:
            self._open_channels.add(channel)
        return channel

    def _drop(self, channel: ServiceChannel) -> None:
        with self._changed:
            self._open_channels.discard(channel)
        channel.close()

    def close(self) -> None:
        """Ends every copy of the program; safe to call twice."""
        self._closed = True
        with self._changed:
            channels, self._open_channels = self._open_channels, set()
        for channel in channels:
            channel.close()


def _answer(channel: ServiceChannel, payload: bytes, timeout_s: float) -> dict[str, Any]:
    answer = json.loads(channel.call(payload, timeout_s))
    if not isinstance(answer, dict):
        raise ValueError("the answer is not an object")  # noqa: TRY004 - as other invalid ones
    if answer.get("unavailable"):
        raise EngineUnavailableError(f"the engine does not start: {answer.get('error')}")
    return answer


def _waited_s(timeout_s: float) -> float:
    """Wall-clock seconds after which a service without an answer counts as hanging."""
    return ATTEMPTS * (2 * HANG_S + HANG_FACTOR * timeout_s) + GRACE_S


def _as_ours(error: Exception) -> RecalcError:
    if isinstance(error, RecalcError):
        return error
    if isinstance(error, TimeoutError):
        return EngineUnavailableError("the calculation service did not answer and was stopped")
    if isinstance(error, SandboxError):
        return EngineUnavailableError(
            f"the calculation service was ended from outside: {error.message}", hint=error.hint
        )
    return CrashedError(f"the calculation service sent an invalid answer: {error}")


_MEMORY_BYTES = 2 * 1024**3  # of one calculation, if the service can enforce it


def compute_request(
    engine: str,
    ranges: Sequence[CellRange],
    dialect: Dialect,
    timeout_s: float,
) -> dict[str, Any]:
    """The header of a request to compute a workbook."""
    return {
        "op": "compute",
        "engine": engine,
        "ranges": [
            [area.sheet, area.min_row, area.min_column, area.max_row, area.max_column]
            for area in ranges
        ],
        "names": dict(dialect.names),
        "date_1904": dialect.date_1904,
        "timeout_s": timeout_s,
        "memory_bytes": _MEMORY_BYTES,
    }


_CRASHED = re.compile(r"(?:the engine|LibreOffice) crashed\b")
"""The beginning of a service's answer if the process of an engine ended."""


def read_answer(
    answer: Mapping[str, Any], ranges: Sequence[CellRange], engine: str
) -> EngineResult:
    """Reads the cells of an answer.

    Raises:
        OutOfTimeError: the engine used up its processor time.
        CrashedError: the engine ended without an answer.
        RecalcError: the engine has no values at all for the workbook, or the answer does not fit
            the request.
    """
    if answer.get("timed_out"):
        raise OutOfTimeError(f"{engine}: {answer.get('error')}")
    if "error" in answer:
        crashed = "killed" in answer or _CRASHED.match(str(answer["error"])) is not None
        raise (CrashedError if crashed else RecalcError)(f"{engine}: {answer['error']}")
    lists = answer.get("values")
    if not isinstance(lists, list) or len(lists) != len(ranges):
        raise RecalcError(f"{engine}: the answer does not fit the question")
    values: list[tuple[CellRange, Sequence[CellValue]]] = []
    failed: dict[CellRef, str] = {}
    for area, flat in zip(ranges, lists, strict=True):
        if len(flat) != area.size:
            raise RecalcError(f"{engine}: the answer does not fit the question")
        read = [value if type(value) in _READ_AS_SENT else _read(value) for value in flat]
        values.append((area, read))
        if dict in set(map(type, flat)):
            for ref, value in zip(area.refs(), flat, strict=True):
                if isinstance(value, dict) and "e" not in value:
                    failed[ref] = str(value.get("x", "no value"))
    seconds = float(answer.get("seconds", 0.0))
    return EngineResult(values=RangeValues(values), failed=failed, seconds=seconds)


_READ_AS_SENT = frozenset((bool, int, str))


def _read(value: Any) -> CellValue:
    """A value that an engine sent; None if it has none."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 1e15 else value
    if value is None or (isinstance(value, dict) and "e" not in value):
        return None
    return ErrorValue(str(value["e"]) if isinstance(value, dict) else "#VALUE!")
