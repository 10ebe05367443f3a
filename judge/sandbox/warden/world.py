"""A filesystem and namespaces for one case alone (bubblewrap places).

The warden of a case is process 1 of a new process namespace, with new mount, IPC, host name and
network namespaces and a root of its own: a fresh tmpfs of bounded size with the place's read-only
folders bound into it. When that process ends the kernel ends all others and drops the tmpfs, so
nothing that a case leaves behind can be seen by any other.
"""

from __future__ import annotations

import os

from judge.sandbox.warden import kernel

_NEW_ROOT = "/run/case"
_FRESH = ("proc", "dev", "tmp", "mnt", "home", "run", "var")
_NAMESPACES = kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS


def enter(disk_bytes: int, inodes: int, *, own_network: bool) -> None:
    """Moves this process, process 1 of its namespace, into a world of its own.

    Args:
        disk_bytes: size of everything that can be written.
        inodes: number of files and folders that can be made.
        own_network: make an empty network namespace as well.
    """
    kernel.unshare(_NAMESPACES | (kernel.CLONE_NEWNET if own_network else 0))
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount(
        "tmpfs",
        _NEW_ROOT,
        "tmpfs",
        kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC,
        f"size={disk_bytes},nr_inodes={inodes},mode=0755",
    )
    for name in os.listdir("/"):
        if name not in _FRESH:
            _bring(name)
    os.mkdir(f"{_NEW_ROOT}/proc", 0o555)
    flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    kernel.mount("proc", f"{_NEW_ROOT}/proc", "proc", flags)
    os.mkdir(f"{_NEW_ROOT}/dev", 0o755)
    kernel.mount("/dev", f"{_NEW_ROOT}/dev", "", kernel.MS_BIND | kernel.MS_REC)
    for name in ("tmp", "mnt", "home", "shm", ".former"):
        os.mkdir(f"{_NEW_ROOT}/{name}")
        os.chmod(f"{_NEW_ROOT}/{name}", 0o1777)  # noqa: S103 - a world for one case alone
    kernel.mount(f"{_NEW_ROOT}/shm", f"{_NEW_ROOT}/dev/shm", "", kernel.MS_BIND)  # noqa: S108 - as above
    kernel.pivot_root(_NEW_ROOT, f"{_NEW_ROOT}/.former")
    os.chdir("/")
    kernel.detach("/.former")
    os.rmdir("/.former")


def _bring(name: str) -> None:
    source, target = f"/{name}", f"{_NEW_ROOT}/{name}"
    if os.path.islink(source):
        os.symlink(os.readlink(source), target)
    elif os.path.isdir(source):
        os.mkdir(target)
        kernel.mount(source, target, "", kernel.MS_BIND | kernel.MS_REC)
