"""Processes that the driver starts: their input, output and end."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence

TAIL_BYTES = 64 * 1024
"""How much of the end of standard error is kept, in bytes."""

_CHUNK_BYTES = 64 * 1024
_DRAIN_PAUSE_S = 0.01
"""Pause after each chunk of standard error; it slows down a flood, but not the driver."""
_END_S = 2.0


class EndedError(Exception):
    """The process has ended, or closed its output."""


class TooLongError(Exception):
    """A line, or a frame, is longer than the limit."""


class Child:
    """A child process with pipes, in a new session.

    Args:
        command: the command and its arguments.
        environment: the whole environment.
        folder: the working directory.
        data_bytes: how much private memory the process may allocate.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: str,
        data_bytes: int,
    ) -> None:
        def bound() -> None:
            resource.setrlimit(resource.RLIMIT_DATA, (data_bytes, data_bytes))

        self.process = subprocess.Popen(
            list(command),
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            preexec_fn=bound,  # noqa: PLW1509 - the driver's threads hold no lock
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._in = self.process.stdin.fileno()
        self._out = self.process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self._buffer = bytearray()
        self._at_end = False
        self._tail = b""
        self._stderr_bytes = 0
        self._draining = threading.Thread(
            target=self._drain, args=(self.process.stderr.fileno(),), daemon=True
        )
        self._draining.start()

    def wait(self, limit_s: float) -> int | None:
        """Waits for the process to end, then for its standard error; each up to the limit.

        Returns:
            The exit code; None if the process still runs.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(limit_s)
        self._draining.join(limit_s)
        return self.process.poll()

    @property
    def stderr_end(self) -> str:
        """The end of the process's standard error."""
        return self._tail.decode("utf-8", "replace")

    @property
    def stderr_bytes(self) -> int:
        """How many bytes the process wrote to standard error."""
        return self._stderr_bytes

    def send(self, data: bytes, deadline: float) -> None:
        """Sends all of the data.

        Raises:
            TimeoutError: the process does not read it in time.
            EndedError: the process has ended.
        """
        view = memoryview(data)
        while view:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            _, writable, _ = select.select([], [self._in], [], left)
            if not writable:
                raise TimeoutError
            try:
                view = view[os.write(self._in, view[:_CHUNK_BYTES]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise EndedError from error

    def lines(self, deadline: float, max_bytes: int, max_lines: int) -> list[bytes]:
        """Waits for a whole line; returns it with further lines that have arrived.

        The lines are returned without line breaks.

        Args:
            deadline: time limit, by the monotonic clock.
            max_bytes: largest size of a line, and of all lines together after the first.
            max_lines: how many lines are returned at most.

        Raises:
            TimeoutError: no whole line came in time.
            EndedError: the output has ended, without a whole line.
            TooLongError: a line is longer.
        """
        lines: list[bytes] = []
        size = 0
        searched = 0
        while True:
            while len(lines) < max_lines:
                end = self._buffer.find(b"\n", searched)
                if end < 0 or (lines and size + end > max_bytes):
                    break
                if end > max_bytes:
                    raise TooLongError
                lines.append(bytes(self._buffer[:end]))
                del self._buffer[: end + 1]
                size += end
                searched = 0
            if lines:
                return lines
            if len(self._buffer) > max_bytes:
                raise TooLongError
            searched = len(self._buffer)
            self._fill(deadline)

    def exactly(self, count: int, deadline: float) -> bytes:
        """Reads exactly ``count`` bytes.

        Raises:
            TimeoutError: they did not come in time.
            EndedError: the output ended before.
        """
        while len(self._buffer) < count:
            self._fill(deadline)
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data

    def frame(self, deadline: float, max_bytes: int) -> bytes:
        """Reads the payload of one length-prefixed frame.

        Raises:
            TimeoutError, EndedError: as in :meth:`exactly`.
            TooLongError: the payload is longer.
        """
        length = int.from_bytes(self.exactly(4, deadline), "big")
        if length > max_bytes:
            raise TooLongError
        return self.exactly(length, deadline)

    def _fill(self, deadline: float) -> None:
        if self._at_end:
            raise EndedError
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        readable, _, _ = select.select([self._out], [], [], left)
        if not readable:
            raise TimeoutError
        try:
            chunk = os.read(self._out, _CHUNK_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            self._at_end = True
            raise EndedError
        self._buffer += chunk

    def _drain(self, descriptor: int) -> None:
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(descriptor, _CHUNK_BYTES):
                self._stderr_bytes += len(chunk)
                self._tail = (self._tail + chunk)[-TAIL_BYTES:]
                time.sleep(_DRAIN_PAUSE_S)

    def interrupt(self) -> None:
        """Sends SIGINT to the process, as Ctrl-C does."""
        with contextlib.suppress(OSError):
            os.kill(self.process.pid, signal.SIGINT)

    def end(self) -> None:
        """Ends the process: closes its input, waits, sends SIGTERM, then kills its whole group."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                with contextlib.suppress(OSError):
                    os.killpg(self.process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_END_S)
                break
        self.kill()

    def kill(self) -> None:
        """Kills the whole process group immediately."""
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_END_S)
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                assert pipe is not None
                pipe.close()


def stats(*, ended: bool = False) -> dict[int, int]:
    """Returns the parent of each running process, or of each that ended but is not reaped yet."""
    parents = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{name}/stat", "rb") as file:
                after = file.read().rpartition(b")")[2].split()
            if (after[0] in {b"Z", b"X"}) is ended:
                parents[int(name)] = int(after[1])
    return parents


def descendants(root: int) -> list[int]:
    """Returns all descendants of a process."""
    parents = stats()
    below: list[int] = []
    for pid in parents:
        line, seen = parents.get(pid, 0), {pid}
        while line and line != root and line not in seen:
            seen.add(line)
            line = parents.get(line, 0)
        if line == root and pid != root:
            below.append(pid)
    return below


def reap(ours: set[int]) -> None:
    """Reaps orphans that have ended, which process 1 inherits."""
    for pid, parent in stats(ended=True).items():
        if parent == os.getpid() and pid not in ours:
            with contextlib.suppress(OSError):
                os.waitpid(pid, os.WNOHANG)


def memory_bytes() -> int:
    """Returns the proportional memory (PSS) of all processes in this namespace, driver included."""
    total = 0
    for pid in stats():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as file:
            for line in file:
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
                    break
    return total
