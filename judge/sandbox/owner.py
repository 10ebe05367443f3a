"""Identifies the judge that owns a container, so that containers of dead judges can be removed."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, slots=True)
class Owner:
    """The identity of the judge that owns a container, as visible to another judge.

    Attributes:
        host: the machine.
        boot: the id of the machine's current boot.
        pid_namespace: process namespace of the judge, in which its process id is valid.
        pid: its process id.
        started: when that process started, in clock ticks since boot; ids are reused.
    """

    host: str
    boot: str
    pid_namespace: str
    pid: int
    started: str

    @classmethod
    def this_process(cls) -> Self:
        """The judge that runs this code."""
        pid = os.getpid()
        return cls(
            host=_read("/etc/machine-id") or socket.gethostname(),
            boot=_read("/proc/sys/kernel/random/boot_id"),
            pid_namespace=str(Path("/proc/self/ns/pid").readlink()),
            pid=pid,
            started=_start_of(pid),
        )

    def label(self) -> str:
        """The text of the container's label."""
        return " ".join((self.host, self.boot, self.pid_namespace, str(self.pid), self.started))

    @classmethod
    def from_label(cls, text: str) -> Self | None:
        """Reads the text of a label; None if the label was not written by a judge."""
        parts = text.split(" ")
        if len(parts) != 5 or not parts[3].isdigit():
            return None
        return cls(parts[0], parts[1], parts[2], int(parts[3]), parts[4])

    def knows_ended(self, other: Owner) -> bool:
        """Whether the other judge has certainly ended."""
        if other.host != self.host:
            return False
        if other.boot != self.boot:
            return True
        return other.pid_namespace == self.pid_namespace and _start_of(other.pid) != other.started


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace").strip()  # programs choose their own names
    except OSError:
        return ""


def _start_of(pid: int) -> str:
    """Start time of a process in clock ticks since boot; empty if there is no such process."""
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""
