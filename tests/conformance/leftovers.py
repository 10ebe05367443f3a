"""What a judge may leave behind: containers, processes, control groups."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from judge.errors import SandboxError
from judge.sandbox.backends.cgroups import find_groups
from judge.sandbox.backends.daemon import Daemon
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
    """Containers whose label names that judge."""
    try:
        labelled = Daemon().labelled()
    except SandboxError:
        return []
    owners = {identity: Owner.from_label(label) for identity, label in labelled.items()}
    return [name for name, owner in owners.items() if owner is not None and owner.pid == pid]


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


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return condition()
