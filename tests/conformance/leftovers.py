"""What a judge may leave behind: containers, processes, control groups."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import docker
from docker.utils import kwargs_from_env

from judge.sandbox.backends.cgroups import find_groups
from judge.sandbox.backends.daemon import Daemon
from judge.sandbox.backends.docker import image_tags
from judge.sandbox.owner import Owner

_PARENT, _STARTED = 1, 19
_SETTLED_S = 1.0


@dataclass(frozen=True)
class Process:
    """A process; its number alone is soon reused where many processes are started."""

    pid: int
    started: str


def _fields(pid: int) -> list[str] | None:
    """The fields of ``/proc/PID/stat`` from the state on; None if the process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def descendants(root: int) -> set[Process]:
    """Returns all descendants of a process."""
    found, parents = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (fields := _fields(int(folder.name))) is not None:
            process = Process(int(folder.name), fields[_STARTED])
            found[process.pid], parents[process.pid] = process, int(fields[_PARENT])
    below = {root}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return {found[pid] for pid in below - {root}}


def settled_descendants(root: int) -> set[Process]:
    """Returns all descendants of a process, once none has appeared or ended for a while.

    Other tests of this process have sandboxes open, which get places ready in the background.
    """
    last, since = descendants(root), time.monotonic()
    while time.monotonic() - since < _SETTLED_S:
        time.sleep(0.05)
        if (now := descendants(root)) != last:
            last, since = now, time.monotonic()
    return last


def containers_of(pid: int) -> list[str]:
    """Returns the containers whose label names this judge.

    Raises:
        SandboxError: the daemon does not answer; that says nothing of containers.
    """
    owners = {identity: Owner.from_label(label) for identity, label in Daemon().labelled().items()}
    return [name for name, owner in owners.items() if owner is not None and owner.pid == pid]


def started_containers_of(pid: int) -> list[str]:
    """Returns those that run; a container that a killed judge made but never started stays."""
    running = _containers()
    return [identity for identity in containers_of(pid) if identity in running]


def desktops_of(pid: int) -> list[str]:
    """Those of them that are desktops: sandboxes of other tests of a process have places ready."""
    tag = image_tags()["desktop"]
    with contextlib.closing(docker.APIClient(**kwargs_from_env())) as client:
        (image,) = (str(each["Id"]) for each in client.images() if tag in (each["RepoTags"] or ()))
    listed = _containers(ended=True)
    return [identity for identity in containers_of(pid) if listed.get(identity) == image]


def _containers(*, ended: bool = False) -> dict[str, str]:
    """Containers of the daemon, those that have ended as well if wanted -> their images."""
    with contextlib.closing(docker.APIClient(**kwargs_from_env())) as client:
        return {str(each["Id"]): str(each["ImageID"]) for each in client.containers(all=ended)}


def alive(processes: set[Process]) -> set[Process]:
    """Returns those of the processes that are not just zombies."""
    return {
        process
        for process in processes
        if (fields := _fields(process.pid)) is not None
        and fields[_STARTED] == process.started
        and fields[0] not in "ZX"
    }


def groups_of(pid: int) -> list[Path]:
    """Returns the control groups that this judge made."""
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
