"""What a judge may leave behind: containers, processes, control groups."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import docker
from docker.utils import kwargs_from_env

from judge.sandbox.cgroups import find_groups
from judge.sandbox.daemon import Daemon
from judge.sandbox.owner import Owner


def descendants(root: int) -> set[int]:
    """All processes below one."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
    found = {root}
    while True:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        if not more:
            return found - {root}
        found |= more


def containers_of(pid: int) -> list[str]:
    """Containers whose label names that judge.

    Raises:
        SandboxError: the daemon does not answer; that says nothing of containers.
    """
    owners = {identity: Owner.from_label(label) for identity, label in Daemon().labelled().items()}
    return [name for name, owner in owners.items() if owner is not None and owner.pid == pid]


def started_containers_of(pid: int) -> list[str]:
    """Those of them that run: one that a killed judge made and never started stays as it is."""
    with contextlib.closing(docker.APIClient(**kwargs_from_env())) as client:
        running = {str(each["Id"]) for each in client.containers()}
    return [identity for identity in containers_of(pid) if identity in running]


def alive(pids: set[int]) -> set[int]:
    """Those of the processes that are more than zombies."""
    found = set()
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state not in "ZX":
            found.add(pid)
    return found


def groups_of(pid: int) -> list[Path]:
    """Control groups that that judge made."""
    tree = find_groups()
    homes = set(tree.homes.values()) if tree is not None else set()
    return [folder for home in homes for folder in home.glob(f"judge-{pid}-*")]


def wait_until(condition: Callable[[], bool], seconds: float = 120) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return condition()
