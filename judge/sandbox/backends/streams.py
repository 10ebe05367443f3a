"""Streams of bytes to a program inside: pipes of a local process, a container's connection."""

from __future__ import annotations

import contextlib
import os
import select
import time
from typing import Any

from judge.sandbox.link import StreamEndedError

_CHUNK_BYTES = 1 << 18
_COMPLAINT_BYTES = 4096


class PipeStream:
    """Pipes to a process inside a sandbox.

    Args:
        to: descriptor of its standard input.
        back: descriptor of its standard output.
        complaints: descriptor of its standard error; the end of that is kept.
    """

    def __init__(self, to: int, back: int, complaints: int) -> None:
        self._to = to
        self._back = back
        self._complaints = complaints
        self._tail = b""
        for fd in (to, back, complaints):
            os.set_blocking(fd, False)

    def send(self, data: bytes, deadline: float) -> None:
        """Sends everything."""
        view = memoryview(data)
        while view:
            self._await(self._to, select.POLLOUT, deadline)
            try:
                view = view[os.write(self._to, view[:_CHUNK_BYTES]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise StreamEndedError(str(error)) from error

    def receive(self, size: int, deadline: float) -> bytes:
        """Receives exactly ``size`` bytes."""
        chunks = []
        while size:
            self._await(self._back, select.POLLIN, deadline)
            try:
                chunk = os.read(self._back, min(size, _CHUNK_BYTES))
            except BlockingIOError:
                continue
            except OSError as error:
                raise StreamEndedError(str(error)) from error
            if not chunk:
                raise StreamEndedError("end of stream")
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)

    def complaint(self) -> str:
        """The end of its standard error."""
        self._take_complaints()
        return self._tail.decode(errors="replace")

    def _await(self, fd: int, event: int, deadline: float) -> None:
        poller = select.poll()
        poller.register(fd, event)
        poller.register(self._complaints, select.POLLIN)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            for ready, _ in poller.poll(left * 1000):
                if ready == fd:
                    return
                if not self._take_complaints():
                    poller.unregister(ready)

    def _take_complaints(self) -> bool:
        """Reads what is available; False at the end of the stream."""
        with contextlib.suppress(BlockingIOError):
            while True:
                chunk = os.read(self._complaints, _CHUNK_BYTES)
                if not chunk:
                    return False
                self._tail = (self._tail + chunk)[-_COMPLAINT_BYTES:]
        return True


class ContainerStream:
    """The hijacked connection to a container's standard streams, demultiplexed.

    Without a terminal the daemon sends standard output and error as chunks on one connection, each
    with a head of 8 bytes: which of the two, and how long.
    """

    def __init__(self, attached: Any) -> None:
        self._attached = attached  # keeps the response, and with it the connection, alive
        self._socket = getattr(attached, "_sock", attached)
        self._received = bytearray()
        self._output = bytearray()
        self._tail = b""

    def send(self, data: bytes, deadline: float) -> None:
        """Sends everything."""
        view = memoryview(data)
        try:
            while view:
                self._set_timeout(deadline)
                view = view[self._socket.send(view[:_CHUNK_BYTES]) :]
        except TimeoutError:
            raise
        except OSError as error:
            raise StreamEndedError(str(error)) from error

    def receive(self, size: int, deadline: float) -> bytes:
        """Receives exactly ``size`` bytes of standard output."""
        while len(self._output) < size:
            self._receive_more(deadline)
        wanted = bytes(self._output[:size])
        del self._output[:size]
        return wanted

    def complaint(self) -> str:
        """The end of its standard error."""
        with contextlib.suppress(StreamEndedError, TimeoutError):
            while True:
                self._receive_more(time.monotonic() + 0.05)
        return self._tail.decode(errors="replace")

    def close(self) -> None:
        """Hangs up."""
        with contextlib.suppress(OSError):
            self._socket.close()
        with contextlib.suppress(OSError):
            self._attached.close()

    def _set_timeout(self, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)

    def _receive_more(self, deadline: float) -> None:
        self._set_timeout(deadline)
        try:
            chunk = self._socket.recv(_CHUNK_BYTES)
        except TimeoutError:
            raise
        except OSError as error:
            raise StreamEndedError(str(error)) from error
        if not chunk:
            raise StreamEndedError("end of stream")
        self._received += chunk
        self._take_apart()

    def _take_apart(self) -> None:
        position = 0
        received = self._received
        while len(received) - position >= 8:
            end = position + 8 + int.from_bytes(received[position + 4 : position + 8], "big")
            if len(received) < end:
                break
            part = received[position + 8 : end]
            if received[position] == 1:
                self._output += part
            else:
                self._tail = (self._tail + part)[-_COMPLAINT_BYTES:]
            position = end
        del received[:position]
