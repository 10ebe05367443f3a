"""A filesystem and namespaces for a single case, if a sandbox is used for many submissions.

The warden of a case is process 1 of a new process namespace, with new mount, IPC, host name and
network namespaces and its own root: a fresh tmpfs of limited size, into which the sandbox's
read-only folders are bound, and a ``/proc`` with the same masks as in container engines. When
that process ends, the kernel kills all others and drops the tmpfs and the state of the network
namespace, so no other case can see anything that a case leaves behind.
"""

from __future__ import annotations

import os

from judge.sandbox.warden import kernel

_NEW_ROOT = "/run"
_DEVICES = ("null", "zero", "full", "random", "urandom")
_BROUGHT = ("bin", "etc", "lib", "lib32", "lib64", "libx32", "opt", "sbin", "usr")
_NAMESPACES = kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS | kernel.CLONE_NEWNET
_PLAIN = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
_HIDDEN = ("kcore", "keys", "latency_stats", "sched_debug", "timer_list", "timer_stats")
_EMPTIED = ("acpi", "asound", "pressure", "scsi")
_FIXED = ("bus", "fs", "irq", "sys", "sysrq-trigger")


def become_own_root(user: int) -> None:
    """Continues in a child, process 1 of its own user, process and mount namespaces.

    The process that calls this waits for the child and ends with it.

    Args:
        user: id of the child inside, where it has every capability.
    """
    outer_user, outer_group = os.getuid(), os.getgid()
    kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWPID)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {outer_user} 1"),
        ("gid_map", f"{user} {outer_group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    inner = os.fork()
    if inner:
        os.closerange(0, 1024)
        _, status = os.waitpid(inner, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("proc", "/proc", "proc", _PLAIN)


def enter(disk_bytes: int, inodes: int) -> None:
    """Moves this process, process 1 of its namespace, into a file system of its own.

    Args:
        disk_bytes: total size of everything that can be written.
        inodes: how many files and folders can be made.
    """
    kernel.unshare(_NAMESPACES)
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount(
        "tmpfs",
        _NEW_ROOT,
        "tmpfs",
        _PLAIN,
        f"size={disk_bytes},nr_inodes={inodes},mode=0755",
    )
    for name in _BROUGHT:
        _bring(name)
    _make_proc(f"{_NEW_ROOT}/proc")
    for name in ("tmp", "mnt", "home", ".former"):
        _make_open_folder(name)
    _make_devices()
    kernel.pivot_root(_NEW_ROOT, f"{_NEW_ROOT}/.former")
    os.chdir("/")
    kernel.detach("/.former")
    os.rmdir("/.former")


def _make_proc(proc: str) -> None:
    """Mounts ``/proc``; files that a case does not need are hidden or read-only."""
    os.mkdir(proc, 0o555)
    kernel.mount("proc", proc, "proc", _PLAIN)
    nothing = f"{_NEW_ROOT}/.nothing"
    os.mkdir(nothing, 0o555)
    for name in _HIDDEN:
        if os.path.exists(f"{proc}/{name}"):
            kernel.mount("/dev/null", f"{proc}/{name}", "", kernel.MS_BIND)
    for name in _EMPTIED:
        if os.path.exists(f"{proc}/{name}"):
            _bind_fixed(nothing, f"{proc}/{name}")
    for name in _FIXED:
        if os.path.exists(f"{proc}/{name}"):
            _bind_fixed(f"{proc}/{name}", f"{proc}/{name}")
    os.rmdir(nothing)


def _bind_fixed(source: str, target: str) -> None:
    kernel.mount(source, target, "", kernel.MS_BIND)
    kernel.mount("none", target, "", kernel.MS_BIND | kernel.MS_REMOUNT | kernel.MS_RDONLY | _PLAIN)


def _make_open_folder(name: str) -> None:
    os.mkdir(f"{_NEW_ROOT}/{name}")
    os.chmod(f"{_NEW_ROOT}/{name}", 0o1777)  # noqa: S103 - only one case uses this world


def _make_devices() -> None:
    os.mkdir(f"{_NEW_ROOT}/dev")
    _make_open_folder("dev/shm")
    for name in _DEVICES:
        os.close(os.open(f"{_NEW_ROOT}/dev/{name}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC))
        kernel.mount(f"/dev/{name}", f"{_NEW_ROOT}/dev/{name}", "", kernel.MS_BIND)
    for name, below in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink(f"/proc/self/fd{below}", f"{_NEW_ROOT}/dev/{name}")


def _bring(name: str) -> None:
    source, target = f"/{name}", f"{_NEW_ROOT}/{name}"
    if os.path.islink(source):
        os.symlink(os.readlink(source), target)
    elif os.path.isdir(source):
        os.mkdir(target)
        kernel.mount(source, target, "", kernel.MS_BIND | kernel.MS_REC)
