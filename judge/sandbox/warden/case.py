"""Runs one case: places its files, forks, supervises, collects the output, reports.

The warden of a case is a separate process, forked from the pristine zygote before anything of the
case is read, so the memory that a solution inherits contains nothing of another case.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import time
from typing import Any

from judge.sandbox.warden import files, meters, program

_TICK_S = 0.02
_PIPE_CHUNK_BYTES = 1 << 16
_REAP_S = 10.0


class CaseError(Exception):
    """Raised when the warden failed, which says nothing about the solution."""


class Bounded:
    """Keeps the head or the tail of a stream, and counts all bytes.

    Args:
        keep_bytes: how many bytes are kept.
        tail: whether to keep the end instead of the beginning.
    """

    def __init__(self, keep_bytes: int, *, tail: bool) -> None:
        self._keep_bytes = keep_bytes
        self._tail = tail
        self._kept = bytearray()
        self.total_bytes = 0

    def add(self, chunk: bytes) -> None:
        """Adds the next piece."""
        self.total_bytes += len(chunk)
        if not self._tail:
            self._kept += chunk[: max(0, self._keep_bytes - len(self._kept))]
            return
        self._kept += chunk
        if len(self._kept) > 2 * self._keep_bytes + _PIPE_CHUNK_BYTES:
            del self._kept[: -self._keep_bytes or None]

    def kept(self) -> bytes:
        """The bytes that were kept."""
        if self._tail and len(self._kept) > self._keep_bytes:
            return bytes(self._kept[len(self._kept) - self._keep_bytes :])
        return bytes(self._kept)


class Facts:
    """The raw facts of a run, from which ``judge.sandbox.link`` derives a status.

    No dataclass: to import ``dataclasses`` is a fifth of the processor time that a sandbox takes to
    start.
    """

    def __init__(self) -> None:
        self.compiled = True
        self.exit_code: int | None = None
        self.signal: int | None = None
        self.killed_for: str | None = None
        self.cpu_s = 0.0
        self.wall_s = 0.0
        self.peak_memory_bytes = 0
        self.memory_kills = 0
        self.disk_full = False
        self.survivors = 0
        self.max_resident_bytes = 0


class Supervisor:
    """Watches the processes of one case, from the fork until the last one has ended.

    Args:
        main: process id of the solution.
        limits: the run's limits.
        meter: measures its time and memory.
        own: ids of processes that do not belong to the case.
        hangup: descriptor that becomes readable at its end when the judge has disappeared.
    """

    def __init__(
        self,
        main: int,
        limits: dict[str, Any],
        meter: meters.Meter,
        own: frozenset[int],
        hangup: int,
    ) -> None:
        self._main = main
        self._limits = limits
        self._meter = meter
        self._own = own
        self._hangup = hangup
        self._reaped_cpu_s = 0.0
        self._ended = False
        self.facts = Facts()

    def watch(
        self, streams: dict[int, Bounded], wakeup: int, roots: list[str], started: float
    ) -> None:
        """Drains the pipes and enforces the limits until the solution has ended."""
        poller = select.poll()
        for fd in streams:
            os.set_blocking(fd, False)
            poller.register(fd, select.POLLIN)
        poller.register(wakeup, select.POLLIN)
        poller.register(self._hangup, select.POLLHUP | select.POLLRDHUP)
        checked = started
        while not self._ended:
            for fd, event in poller.poll(_TICK_S * 1000):
                if fd == wakeup:
                    with contextlib.suppress(BlockingIOError):
                        os.read(wakeup, 4096)
                elif fd == self._hangup:
                    raise CaseError("the judge disappeared")
                elif not _drain(fd, streams[fd]) or event & (select.POLLERR | select.POLLNVAL):
                    poller.unregister(fd)
            self._reap()
            now = time.monotonic()
            if not self._ended and now - checked >= _TICK_S:
                checked = now
                self.facts.disk_full = self.facts.disk_full or files.is_full(roots)
                self._enforce(now - started)
        self.facts.wall_s = time.monotonic() - started
        self._finish(streams, roots)

    def _enforce(self, wall_s: float) -> None:
        cpu_s, used_bytes = self._meter.sample()
        limits = self._limits
        reason = None
        if used_bytes > limits["memory_bytes"]:
            reason = "memory"
        elif max(cpu_s, self._reaped_cpu_s) > limits["cpu_s"]:
            reason = "cpu"
        elif wall_s > limits["wall_s"]:
            reason = "wall"
        if reason is not None:
            self.facts.killed_for = reason
            self._ended = True

    def _reap(self) -> None:
        """Reaps every child that has ended; the solution's orphans are children here too."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._account(pid, status, usage)

    def _account(self, pid: int, status: int, usage: resource.struct_rusage) -> None:
        self._reaped_cpu_s += usage.ru_utime + usage.ru_stime
        facts = self.facts
        facts.max_resident_bytes = max(facts.max_resident_bytes, usage.ru_maxrss * 1024)
        if pid == self._main:
            self._ended = True
            code = os.waitstatus_to_exitcode(status)
            if code < 0:
                facts.signal = -code
            else:
                facts.exit_code = code

    def _finish(self, streams: dict[int, Bounded], roots: list[str]) -> None:
        alive = [pid for pid in meters.processes(self._own) if meters.is_alive(pid)]
        self.facts.survivors = sum(pid != self._main for pid in alive)
        self._meter.sample()
        self._kill_all()
        for fd, buffer in streams.items():
            _drain(fd, buffer)
        cpu_s, _ = self._meter.sample()
        facts = self.facts
        facts.cpu_s = max(cpu_s, self._reaped_cpu_s)
        facts.peak_memory_bytes = max(self._meter.peak_bytes(), facts.max_resident_bytes)
        facts.memory_kills = self._meter.memory_kills()
        facts.disk_full = facts.disk_full or files.is_full(roots)

    def _kill_all(self) -> None:
        """Kills every process of the case; no process is left when this returns."""
        deadline = time.monotonic() + _REAP_S
        while True:
            # -1 signals every process that can be signalled, except process 1 and this one, at once
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
            self._reap()
            if not meters.processes(self._own):
                return
            if time.monotonic() > deadline:
                raise CaseError("processes of the solution outlived SIGKILL")
            time.sleep(0.001)


def _drain(fd: int, buffer: Bounded) -> bool:
    """Reads what is available, up to a limit at a time; False at the end of the stream."""
    for _ in range(16):
        try:
            chunk = os.read(fd, _PIPE_CHUNK_BYTES)
        except BlockingIOError:
            return True
        if not chunk:
            return False
        buffer.add(chunk)
    return True


def run(
    request: dict[str, Any],
    source: bytes,
    meter: meters.Meter,
    own: frozenset[int],
    hangup: int,
    user: int | None,
    enter_groups: list[int],
) -> tuple[Facts, Bounded, Bounded]:
    """Forks the solution and watches it to its end.

    Raises:
        CaseError: the solution could not be started in isolation, or could not be killed.
    """
    limits = request["limits"]
    out = Bounded(limits["console_bytes"], tail=False)
    err = Bounded(limits["console_bytes"], tail=True)
    wake_read, wake_write = os.pipe()
    for fd in (wake_read, wake_write):
        os.set_blocking(fd, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    pairs = [os.pipe() for _ in range(3)]
    started = time.monotonic()
    main = os.fork()
    if main == 0:
        for fd in enter_groups:
            os.write(fd, b"0")
        program.become_solution(request, source, (pairs[0][1], pairs[1][1], pairs[2][1]), user)
    for _, write_end in pairs:
        os.close(write_end)
    report = pairs[2][0]
    if (word := os.read(report, 1)) != b".":
        while chunk := os.read(report, 4096):
            word += chunk
        os.waitpid(main, 0)
        raise CaseError(f"the solution could not be isolated: {word.decode() or 'it died'}")
    supervisor = Supervisor(main, limits, meter, own, hangup)
    # The limits apply to the rest of the report too, because compiling can take long.
    compilation = Bounded(1, tail=False)
    streams = {pairs[0][0]: out, pairs[1][0]: err, report: compilation}
    supervisor.watch(streams, wake_read, request["writable"], started)
    supervisor.facts.compiled = not compilation.kept()
    return supervisor.facts, out, err
