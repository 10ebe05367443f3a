"""Measures how much processor time and memory a case's processes use.

There are two ways. The counters of a control group are exact, and the kernel enforces the limit
itself. Otherwise, the figures of each process in ``/proc`` are sampled and added up, and the warden
enforces the limit.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Protocol

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_NANOSECONDS = 1_000_000_000
_MICROSECONDS = 1_000_000


class Meter(Protocol):
    """The measurements that the supervisor takes while a case runs."""

    def sample(self) -> tuple[float, int]:
        """Processor seconds and memory in bytes of the case so far."""
        ...

    def peak_bytes(self) -> int:
        """The largest amount of memory that was in use, in bytes."""
        ...

    def memory_kills(self) -> int:
        """How many processes the kernel killed because of the memory limit."""
        ...


_READ_BYTES = 1 << 16


def read(path: str) -> bytes:
    """Reads a file of the kernel.

    Text layers and path objects would touch several times as many pages of a process that was
    forked a moment ago, and every page touched is copied.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = chunk = os.read(fd, _READ_BYTES)
        while chunk:
            chunk = os.read(fd, _READ_BYTES)
            content += chunk
    finally:
        os.close(fd)
    return content


def _number(path: str) -> int:
    return int(read(path))


def _field(path: str, name: bytes) -> int | None:
    """Reads a number from a file of ``name value`` lines."""
    for line in read(path).splitlines():
        key, _, value = line.partition(b" ")
        if key == name:
            return int(value)
    return None


class GroupFiles:
    """The counters of one control group, of either version.

    Args:
        memory: the group's folder with the memory counters.
        cpu: the group's folder with the processor counters.
    """

    def __init__(self, memory: str, cpu: str) -> None:
        self._unified = os.path.exists(f"{memory}/memory.current")
        self._memory = memory
        self._cpu = cpu

    def usage_bytes(self) -> int:
        """The memory that is charged at present, without reclaimable caches."""
        if self._unified:
            idle = _field(f"{self._memory}/memory.stat", b"inactive_file") or 0
            return max(0, _number(f"{self._memory}/memory.current") - idle)
        idle = _field(f"{self._memory}/memory.stat", b"total_inactive_file") or 0
        return max(0, _number(f"{self._memory}/memory.usage_in_bytes") - idle)

    def bound_bytes(self) -> int | None:
        """The memory limit; None if there is no limit."""
        name = "memory.max" if self._unified else "memory.limit_in_bytes"
        text = read(f"{self._memory}/{name}").strip()
        return int(text) if text.isdigit() else None

    def highest_bytes(self) -> int | None:
        """The peak according to the kernel; None if it does not record one."""
        name = "memory.peak" if self._unified else "memory.max_usage_in_bytes"
        path = f"{self._memory}/{name}"
        return _number(path) if os.path.exists(path) else None

    def kills(self) -> int:
        """How many processes were killed for memory since the group was made."""
        name = "memory.events" if self._unified else "memory.oom_control"
        return _field(f"{self._memory}/{name}", b"oom_kill") or 0

    def cpu_s(self) -> float:
        """Processor seconds since the group was made."""
        stat = f"{self._cpu}/cpu.stat"
        if os.path.exists(stat):
            used = _field(stat, b"usage_usec")
            if used is not None:
                return used / _MICROSECONDS
        return _number(f"{self._cpu}/cpuacct.usage") / _NANOSECONDS


class OwnGroupMeter:
    """The meter of a group that contains only the processes of one case."""

    def __init__(self, files: GroupFiles) -> None:
        self._files = files

    def sample(self) -> tuple[float, int]:
        """Reads only the processor time, because the kernel enforces the memory limit."""
        return self._files.cpu_s(), 0

    def peak_bytes(self) -> int:
        """The peak according to the kernel."""
        return self._files.highest_bytes() or 0

    def memory_kills(self) -> int:
        """The number of kills according to the kernel."""
        return self._files.kills()


class SharedGroupMeter:
    """The meter of a container's group, which includes the warden; measures increases."""

    def __init__(self, files: GroupFiles) -> None:
        self._files = files
        self._cpu_s = files.cpu_s()
        self._warden_cpu_s = time.process_time()
        self._bytes = files.usage_bytes()
        self._kills = files.kills()
        self._peak = 0

    def sample(self) -> tuple[float, int]:
        """The increase since the start, without the warden's own time."""
        warden = time.process_time() - self._warden_cpu_s
        used = max(0, self._files.usage_bytes() - self._bytes)
        self._peak = max(self._peak, used)
        return max(0.0, self._files.cpu_s() - self._cpu_s - warden), used

    def peak_bytes(self) -> int:
        """The highest sample."""
        return self._peak

    def memory_kills(self) -> int:
        """The number of kills since the start."""
        return self._files.kills() - self._kills


class ProcessMeter:
    """Adds up the figures in ``/proc`` of all processes but the warden's.

    Args:
        own: ids of processes that do not belong to the case.
    """

    def __init__(self, own: frozenset[int], limit_bytes: int) -> None:
        self._own = own
        self._limit_bytes = limit_bytes
        self._cpu_s: dict[tuple[int, str], float] = {}
        self._peak = 0

    def sample(self) -> tuple[float, int]:
        """Processor seconds of all processes seen so far, and memory of those that are alive."""
        resident = 0
        alive = []
        for pid in processes(self._own):
            with contextlib.suppress(OSError, ValueError, IndexError):
                fields = _stat(pid)
                used = (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
                self._cpu_s[pid, fields[19]] = used
                resident += int(fields[21]) * PAGE_BYTES
                alive.append(pid)
        used_bytes = _shared_once(resident, alive, self._limit_bytes)
        self._peak = max(self._peak, used_bytes)
        return sum(self._cpu_s.values()), used_bytes

    def peak_bytes(self) -> int:
        """The highest sample."""
        return self._peak

    def memory_kills(self) -> int:
        """Always 0: the kernel does not count kills here, and the warden counts its own."""
        return 0


def memory_of(pids: list[int], limit_bytes: int) -> int:
    """Total memory of processes; if it exceeds the limit, shared pages are counted only once."""
    resident = 0
    alive = []
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            resident += int(_stat(pid)[21]) * PAGE_BYTES
            alive.append(pid)
    return _shared_once(resident, alive, limit_bytes)


def _shared_once(resident: int, alive: list[int], limit_bytes: int) -> int:
    # forked processes share pages; the exact figure is read only if the plain sum is too large
    if resident > limit_bytes and len(alive) > 1:
        return sum(_proportional_bytes(pid) for pid in alive)
    return resident


def parent_of(pid: int) -> int | None:
    """The parent of a process; None if the process has ended."""
    try:
        return int(_stat(pid)[1])
    except (OSError, ValueError, IndexError):
        return None


def processes(own: frozenset[int]) -> list[int]:
    """Ids of all visible processes except those in ``own``."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in own]


def _stat(pid: int) -> list[str]:
    """The fields of ``/proc/<pid>/stat`` from the state on (field 3 of the manual is 0 here)."""
    text = read(f"/proc/{pid}/stat").decode(errors="replace")
    return text.rpartition(")")[2].split()


def is_alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return _stat(pid)[0] not in "ZX"
    except (OSError, IndexError):
        return False


def _proportional_bytes(pid: int) -> int:
    """Memory of a process; a shared page is divided among the processes that share it.

    If this figure cannot be read (root without the right to trace), shared pages count in full.
    """
    try:
        with contextlib.suppress(PermissionError):
            for line in read(f"/proc/{pid}/smaps_rollup").splitlines():
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
        return int(_stat(pid)[21]) * PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0
