"""System calls that Python's standard library lacks, through ``ctypes``."""

from __future__ import annotations

import ctypes
import os
import signal
from functools import cache

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
_MNT_DETACH = 2

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_SECCOMP = 22
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_SECCOMP_MODE_FILTER = 2
_CAPABILITY_VERSION_3 = 0x20080522

# Not every C library has a wrapper for pivot_root and capset.
_NUMBERS = {
    "x86_64": {"pivot_root": 155, "capset": 126},
    "aarch64": {"pivot_root": 41, "capset": 91},
}


@cache
def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.mount.argtypes = (
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_ulong,
        ctypes.c_char_p,
    )
    library.prctl.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)
    library.syscall.restype = ctypes.c_long
    return library


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _syscall_number(name: str) -> int:
    machine = os.uname().machine
    try:
        return _NUMBERS[machine][name]
    except KeyError:
        raise OSError(f"{name} is not known on {machine}") from None


def unshare(flags: int) -> None:
    """Leaves the namespaces named by ``flags``."""
    _check(_libc().unshare(flags), f"unshare({flags:#x})")


def set_namespace(fd: int, kind: int) -> None:
    """Enters the namespace to which ``fd`` refers."""
    _check(_libc().setns(fd, kind), "setns")


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Mounts a filesystem, or binds a folder."""
    result = _libc().mount(
        source.encode(), target.encode(), kind.encode(), flags, options.encode() or None
    )
    _check(result, f"mount {kind or source} on {target}")


def detach(target: str) -> None:
    """Unmounts lazily."""
    _check(_libc().umount2(target.encode(), _MNT_DETACH), f"umount {target}")


def pivot_root(new: str, old: str) -> None:
    """Makes ``new`` the root and moves the former one to ``old``."""
    number = _syscall_number("pivot_root")
    result = _libc().syscall(
        ctypes.c_long(number), ctypes.c_char_p(new.encode()), ctypes.c_char_p(old.encode())
    )
    _check(result, "pivot_root")


def _prctl(option: int, first: int = 0, second: int = 0) -> int:
    return int(_libc().prctl(option, first, second, 0, 0))


def forbid_inspection(*, forbid: bool = True) -> None:
    """Forbids other processes to trace this one and to read its memory or descriptors."""
    _check(_prctl(_PR_SET_DUMPABLE, 0 if forbid else 1), "prctl(PR_SET_DUMPABLE)")


def end_with_parent() -> None:
    """Lets the kernel kill this process when its parent ends; a change of user cancels this."""
    _check(_prctl(_PR_SET_PDEATHSIG, signal.SIGKILL), "prctl(PR_SET_PDEATHSIG)")


def adopt_orphans() -> None:
    """Makes descendants whose parent has died children of this process."""
    _check(_prctl(_PR_SET_CHILD_SUBREAPER, 1), "prctl(PR_SET_CHILD_SUBREAPER)")


def forbid_new_privileges() -> None:
    """Forbids programs that are started from now on to gain privileges."""
    _check(_prctl(_PR_SET_NO_NEW_PRIVS, 1), "prctl(PR_SET_NO_NEW_PRIVS)")


def drop_capabilities(*, bounding_only: bool = False) -> None:
    """Gives up every capability.

    Args:
        bounding_only: whether to give up only the ability to regain capabilities, if permitted.
    """
    capability = 0
    while _prctl(_PR_CAPBSET_DROP, capability) == 0:
        capability += 1
    if bounding_only:
        return
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    number = _syscall_number("capset")
    _check(_libc().syscall(ctypes.c_long(number), header, nothing), "capset")


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def install_filter(instructions: bytes) -> None:
    """Installs an assembled seccomp filter (8 bytes an instruction), which is permanent."""
    program = _Program(len(instructions) // 8, instructions)
    address = ctypes.addressof(program)
    _check(_prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, address), "prctl(PR_SET_SECCOMP)")


def privileges_left(*, filtered: bool = True) -> str:
    """Names the privileges that this process still has but a solution must not have; may be empty.

    Args:
        filtered: whether a filter of system calls is expected.
    """
    facts = {}
    with open("/proc/self/status") as status:
        for line in status:
            name, _, value = line.partition(":")
            facts[name] = value.strip()
    wanted = {"CapEff": 0, "CapPrm": 0, "CapAmb": 0, "NoNewPrivs": 1, "Seccomp": 2}
    if not filtered:
        del wanted["Seccomp"]
    return ", ".join(
        f"{name} is {facts[name]}"
        for name, value in wanted.items()
        if name in facts and int(facts[name], 16) != value
    )
