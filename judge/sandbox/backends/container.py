"""A container with a trusted program in it, and the shape that it was made for."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import Self

from judge.core.limits import Limits
from judge.sandbox import layout
from judge.sandbox.backends.daemon import ContainerSpec, Daemon
from judge.sandbox.backends.streams import ContainerStream


@dataclass(frozen=True, slots=True)
class Shape:
    """What a container is made for; a run that needs a different shape gets another container.

    Attributes:
        memory_bytes: memory of a run.
        disk_bytes: size of each writable mount.
        processes: processes of a run.
        roots: writable mounts.
    """

    memory_bytes: int
    disk_bytes: int
    processes: int
    roots: frozenset[str]

    @classmethod
    def of(cls, limits: Limits, roots: frozenset[str]) -> Self:
        """The shape that a run with these limits needs."""
        return cls(limits.memory_bytes, layout.disk_bytes(limits), limits.processes, roots)

    def serves(self, wanted: Shape) -> bool:
        """Whether a container of this shape is enough for a run that needs ``wanted``."""
        return wanted.roots <= self.roots and replace(wanted, roots=self.roots) == self


class Container:
    """A started container with a trusted program in it."""

    def __init__(self, daemon: Daemon, spec: ContainerSpec) -> None:
        self._daemon = daemon
        self._lock = threading.Lock()
        self._closed = False
        self._started = time.time()
        identity, stream = daemon.start(spec)
        self._identity = identity
        self.stream: ContainerStream = stream

    def end(self) -> None:
        """Removes it while another thread speaks to it, which then meets the end of the stream."""
        with self._lock:
            if not self._closed:
                self._daemon.remove(self._identity)

    def close(self) -> None:
        """Removes it; safe to call twice."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self.stream.close()
        self._daemon.remove(self._identity)

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel killed a process in it for its memory limit."""
        return self._daemon.ran_out_of_memory(self._identity, self._started)
