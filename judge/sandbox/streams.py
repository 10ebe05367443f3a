"""A stream over the pipes of a local process."""

from __future__ import annotations

import contextlib
import os
import select
import time

from judge.sandbox.link import StreamEndedError

_CHUNK_BYTES = 1 << 18
_COMPLAINT_BYTES = 4096


class PipeStream:
    """Pipes to a process inside a sandbox.

    Args:
        to: descriptor of its standard input.
        back: descriptor of its standard output.
        complaints: descriptor of its standard error, of which the end is kept.
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
        """Reads what is there; False at the end of the stream."""
        with contextlib.suppress(BlockingIOError):
            while True:
                chunk = os.read(self._complaints, _CHUNK_BYTES)
                if not chunk:
                    return False
                self._tail = (self._tail + chunk)[-_COMPLAINT_BYTES:]
        return True
