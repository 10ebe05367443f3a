"""A control group for each case, made by the warden in the part of the tree that it may use.

Version 1 has a tree for each controller, version 2 a single tree; the configuration from the judge
gives the folders (``{"memory": folder, "pids": folder, "cpu": folder}``).
"""

from __future__ import annotations

import contextlib
import os

from judge.sandbox.warden import meters

_NAME = "case"


class CaseGroup:
    """The group of one case; its folders are kept open, because a case's file system lacks them.

    Args:
        folders: controller -> folder in which the group is made.
        memory_bytes: memory limit of all its processes.
        processes: greatest number of processes and threads in it.
    """

    def __init__(self, folders: dict[str, str], memory_bytes: int, processes: int) -> None:
        homes = {name: f"{folder}/{_NAME}" for name, folder in folders.items()}
        for home in set(homes.values()):
            with contextlib.suppress(FileExistsError):
                os.mkdir(home)
        memory = homes["memory"]
        if os.path.exists(f"{memory}/memory.max"):
            bounds = {"memory.max": memory_bytes, "memory.swap.max": 0, "memory.oom.group": 0}
        else:
            bounds = {
                "memory.limit_in_bytes": memory_bytes,
                "memory.memsw.limit_in_bytes": memory_bytes,
            }
        for name, value in bounds.items():
            with contextlib.suppress(FileNotFoundError):
                _write(f"{memory}/{name}", value)
        if "pids" in homes:
            _write(f"{homes['pids']}/pids.max", processes)
        self._kept = {name: _keep_open(home) for name, home in homes.items()}
        self.entrances = [
            os.open(f"{home}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
            for home in set(homes.values())
        ]

    def meter(self) -> meters.Meter:
        """A meter of the group, which also works in the namespaces of the case."""
        return meters.OwnGroupMeter(meters.GroupFiles(self._kept["memory"], self._kept["cpu"]))


def remove(folders: dict[str, str]) -> None:
    """Removes the group of a case that has ended."""
    for folder in set(folders.values()):
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(f"{folder}/{_NAME}")


def _write(path: str, value: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, str(value).encode())
    finally:
        os.close(fd)


def find_container_group(bound_bytes: int | None) -> meters.GroupFiles | None:
    """The counters of the container in which this process runs, if they are visible.

    The folders of the counters are kept open, because they are not mounted in a case's sandbox.

    Args:
        bound_bytes: memory limit of the container's group. A group with a different limit belongs
            to something else: a rootless engine may not create groups, and its containers see a
            group of the host.
    """
    if bound_bytes is None:
        return None
    root = "/sys/fs/cgroup"
    choices = ((f"{root}/memory", f"{root}/cpuacct"), (root, root))
    for choice in choices:
        with contextlib.suppress(OSError, ValueError):
            memory, cpu = (_keep_open(folder) for folder in choice)
            files = meters.GroupFiles(memory, cpu)
            found = files.bound_bytes()
            # The kernel rounds to whole pages.
            if found is None or abs(found - bound_bytes) >= meters.PAGE_BYTES:
                continue
            files.usage_bytes()
            files.cpu_s()
            files.kills()
            return files
    return None


def _keep_open(folder: str) -> str:
    """A path of the folder that stays valid whatever is mounted."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    return f"/proc/self/fd/{fd}"
