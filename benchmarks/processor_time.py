"""Measures the processor time of a command and of everything that it starts, by a control group.

Containers are children of their daemon, and in none of the command's groups: the containers that a
process starts are counted by their own groups (:class:`ContainerTime`). The daemon's own work for
them is not counted.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FIRST = Path("/sys/fs/cgroup/cpuacct")
SECOND = Path("/sys/fs/cgroup")


@dataclass
class Spent:
    """The processor time that was spent in a control group.

    Attributes:
        group: the folder of the group; None if none can be made.
        seconds: the processor time, which is set at the end.
    """

    group: Path | None
    seconds: float | None = None

    def command(self, command: list[str]) -> list[str]:
        """Returns the command that starts a command in the group."""
        if self.group is None:
            return command
        enter = f'echo $$ > "{self.group}/cgroup.procs" && exec "$@"'
        return ["/bin/sh", "-c", enter, "sh", *command]


@contextlib.contextmanager
def processor_time() -> Iterator[Spent]:
    """Makes a control group for one command; ``seconds`` stays None if none can be made."""
    spent = Spent(_made())
    try:
        yield spent
    finally:
        if spent.group is not None:
            spent.seconds = _read(spent.group)
            for _ in range(50):
                with contextlib.suppress(OSError):
                    spent.group.rmdir()
                    break
                time.sleep(0.1)


class Meter:
    """Measures the processor time of this process and of everything that it starts from now on.

    The process moves into its own control group; if none can be made, the time is that of the
    process and of its ended children.
    """

    def __init__(self) -> None:
        self._group = _made()
        if self._group is not None:
            (self._group / "cgroup.procs").write_text(str(os.getpid()))

    @property
    def seconds(self) -> float:
        """Returns the processor time that was spent so far."""
        spent = _read(self._group) if self._group is not None else None
        return sum(os.times()[:4]) if spent is None else spent


@dataclass
class ContainerTime:
    """Measures the processor time of this process's containers, just before each is removed.

    Attributes:
        seconds: the processor time of the removed containers.
        missed: how many had no readable group, such as those of a remote daemon.
    """

    seconds: float = 0.0
    missed: int = 0
    _read: set[str] = field(default_factory=set)

    @classmethod
    def watching(cls, container: Any) -> ContainerTime:
        """Reads the group of each container when it is closed.

        Args:
            container: the class of containers of :mod:`judge.sandbox.backends.docker`.
        """
        counted = cls()
        for name in ("end", "close"):
            close = getattr(container, name)

            @functools.wraps(close)
            def read_first(itself: Any, close: Any = close) -> None:
                counted.take(itself._identity)  # noqa: SLF001 - old clones have nothing else
                close(itself)

            setattr(container, name, read_first)
        return counted

    def take(self, identity: str) -> None:
        """Adds the processor time of a container, once."""
        if identity in self._read:
            return
        self._read.add(identity)
        patterns = identity, f"*/{identity}", f"*/docker-{identity}.scope"
        groups = [
            group for root in (FIRST, SECOND) for name in patterns for group in root.glob(name)
        ]
        used = next((used for group in groups if (used := _read(group)) is not None), None)
        self.missed += used is None
        self.seconds += used or 0.0


@dataclass
class LentTime:
    """Measures the processor time of bubblewrap's processes, just before each group is removed.

    Attributes:
        wardens: seconds of the wardens, including the programs that they ran.
        services: seconds of the engines' services.
    """

    wardens: float = 0.0
    services: float = 0.0

    @classmethod
    def watching(cls, tree: Any, lent: Any) -> LentTime:
        """Reads every control group that is lent from now on.

        Args:
            tree: the class of trees of :mod:`judge.sandbox.backends.cgroups`.
            lent: the class of groups there.
        """
        counted = cls()
        lend, remove = tree.lend, lent.remove
        services: set[int] = set()

        def noting(itself: Any, **bounds: int) -> Any:
            group = lend(itself, **bounds)
            if bounds:  # a warden bounds each of its cases itself
                services.add(id(group))
            return group

        def read_first(itself: Any) -> None:
            used = _read(itself.folders["cpu"]) or 0.0
            if id(itself) in services:
                services.discard(id(itself))
                counted.services += used
            else:
                counted.wardens += used
            remove(itself)

        tree.lend, lent.remove = noting, read_first
        return counted


def _made() -> Path | None:
    for parent, file in ((FIRST, "cpuacct.usage"), (SECOND, "cpu.stat")):
        folder = parent / f"judge-benchmark-{os.getpid()}"
        with contextlib.suppress(OSError):
            folder.mkdir()
            if (folder / file).exists() and os.access(folder / "cgroup.procs", os.W_OK):
                return folder
            folder.rmdir()
    return None


def _read(group: Path) -> float | None:
    with contextlib.suppress(OSError, ValueError):
        return int((group / "cpuacct.usage").read_text()) / 1e9
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = (group / "cpu.stat").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("usage_usec")) / 1e6
    return None
