"""Control groups for a sandbox, if the host allows creating them (versions 1 and 2).

A group that is lent to a sandbox contains two groups: ``warden`` for the trusted program, and
``case`` for the solution, which the warden makes from inside. There are two levels because in
version 2 a group that delegates controllers may not contain processes itself.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_CONTROLLERS = {"memory": "memory", "pids": "pids", "cpu": "cpuacct"}
_PREFIX = "judge-"
_WARDEN = "warden"
_REMOVE_S = 3.0
_counter = itertools.count(1)


@dataclass(frozen=True, slots=True)
class GroupTree:
    """The folders in which groups can be made.

    Attributes:
        homes: role (``memory``, ``pids``, ``cpu``) -> folder below which groups are made. In
            version 2, all three are the same.
        version: 1 or 2.
    """

    homes: Mapping[str, Path]
    version: int

    def lend(self, *, memory_bytes: int | None = None, processes: int | None = None) -> LentGroup:
        """Makes a group.

        Args:
            memory_bytes: memory limit of all its processes, including the warden; None for no
                limit.
            processes: limit on processes and threads; None for no limit.

        Raises:
            OSError: it cannot be made.
        """
        name = f"{_PREFIX}{os.getpid()}-{next(_counter)}"
        group = LentGroup({role: home / name for role, home in self.homes.items()})
        try:
            for folder in set(group.folders.values()):
                folder.mkdir()
                if self.version == 2:
                    (folder / "cgroup.subtree_control").write_text("+memory +pids +cpu")
                (folder / _WARDEN).mkdir()
            _bound(group.folders, memory_bytes, processes)
        except OSError:
            group.remove()
            raise
        return group

    def reap(self) -> None:
        """Removes the groups of judges that have ended."""
        for home in set(self.homes.values()):
            for folder in home.glob(f"{_PREFIX}*"):
                owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
                if owner.isdigit() and not Path(f"/proc/{owner}").exists():
                    _remove(folder)


@dataclass(frozen=True, slots=True)
class LentGroup:
    """One group: role -> its folder."""

    folders: Mapping[str, Path]

    @property
    def entrances(self) -> list[str]:
        """Files to which a process writes ``0`` to join the warden's group."""
        return [str(folder / _WARDEN / "cgroup.procs") for folder in set(self.folders.values())]

    def remove(self) -> None:
        """Removes the group; waits for its last processes to end."""
        deadline = time.monotonic() + _REMOVE_S
        left = [folder for folder in set(self.folders.values()) if not _remove(folder)]
        while left and time.monotonic() < deadline:
            time.sleep(0.01)
            left = [folder for folder in left if not _remove(folder)]


def _remove(folder: Path) -> bool:
    """Removes a group and its subgroups; False while one of them contains a process."""
    try:
        for inner in folder.iterdir():
            if inner.is_dir():
                inner.rmdir()
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _bound(folders: Mapping[str, Path], memory_bytes: int | None, processes: int | None) -> None:
    memory = folders["memory"]
    bounds: list[tuple[Path, int | None]] = [(folders["pids"] / "pids.max", processes)]
    if (memory / "memory.max").exists():
        bounds += [
            (memory / "memory.max", memory_bytes),
            (memory / "memory.swap.max", None if memory_bytes is None else 0),
        ]
    else:
        bounds += [
            (memory / "memory.limit_in_bytes", memory_bytes),
            (memory / "memory.memsw.limit_in_bytes", memory_bytes),
        ]
    for path, value in bounds:
        if value is not None and path.exists():
            path.write_text(str(value))


def find_groups(
    own: Path = Path("/proc/self/cgroup"), mounts: Path = Path("/proc/self/mountinfo")
) -> GroupTree | None:
    """Finds where this process can make groups with memory, pids and processor counters, or None.

    Args:
        own: the kernel's file that lists the groups of this process.
        mounts: the kernel's file that lists the mounts.
    """
    try:
        membership = _membership(own.read_text())
        hierarchies = _hierarchies(mounts.read_text())
    except OSError:
        return None
    return _find_version_1(membership, hierarchies) or _find_version_2(membership, hierarchies)


def _membership(text: str) -> dict[str, str]:
    """Controller (empty for version 2) -> path of the group."""
    paths = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            paths[controller] = path
    return paths


def _hierarchies(text: str) -> dict[str, tuple[Path, str]]:
    """Controller (empty for version 2) -> mount point, and the group at its root."""
    hierarchies: dict[str, tuple[Path, str]] = {}
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        root, point = before.split(" ")[3:5]
        if kind == "cgroup2":
            hierarchies.setdefault("", (Path(point), root))
        elif kind == "cgroup":
            for option in options.rpartition(" ")[2].split(","):
                hierarchies.setdefault(option, (Path(point), root))
    return hierarchies


def _folder(path: str, hierarchy: tuple[Path, str]) -> Path:
    point, root = hierarchy
    return point / os.path.relpath(path, root) if path.startswith(root) else point


def _find_version_1(
    membership: dict[str, str], hierarchies: dict[str, tuple[Path, str]]
) -> GroupTree | None:
    homes = {}
    for role, controller in _CONTROLLERS.items():
        if controller not in membership or controller not in hierarchies:
            return None
        homes[role] = _folder(membership[controller], hierarchies[controller])
    if all(_can_make(home) for home in set(homes.values())):
        return GroupTree(homes, version=1)
    return None


def _find_version_2(
    membership: dict[str, str], hierarchies: dict[str, tuple[Path, str]]
) -> GroupTree | None:
    if "" not in membership or "" not in hierarchies:
        return None
    point = hierarchies[""][0]
    home = _folder(membership[""], hierarchies[""])
    while True:
        if _delegates(home) and _can_make(home):
            return GroupTree(dict.fromkeys(_CONTROLLERS, home), version=2)
        if home == point or point not in home.parents:
            return None
        home = home.parent


def _delegates(home: Path) -> bool:
    """Whether subgroups get the controllers; switches these on if that is allowed."""
    control = home / "cgroup.subtree_control"
    controllers = {"memory", "pids", "cpu"}
    with contextlib.suppress(OSError):
        if controllers <= set(control.read_text().split()):
            return os.access(home / "cgroup.procs", os.W_OK)
        control.write_text("+memory +pids +cpu")
        return controllers <= set(control.read_text().split())
    return False


def _can_make(home: Path) -> bool:
    trial = home / f"{_PREFIX}{os.getpid()}-trial"
    try:
        trial.mkdir(exist_ok=True)
        trial.rmdir()
    except OSError:
        return False
    return True
