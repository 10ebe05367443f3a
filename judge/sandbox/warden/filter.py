"""The seccomp filter of solutions and services: refuses calls that spreadsheet programs don't need.

It is assembled by hand for x86_64 and aarch64, since the library for it is seldom installed.
Refused calls fail with EPERM instead of killing the process, so a library that probes for a feature
can do without it.

It refuses everything that Docker's default profile refuses. In addition, it refuses io_uring,
ptrace and reading other processes' memory, System V and POSIX message IPC (it outlives a process),
memfd (memory that no resident-set counter sees), and all sockets but local ones: there is nothing
to connect to, and the next case could see traces of connections in the network namespace. Limits,
priority and processors can be set only for the calling process; otherwise a solution could starve
or throttle a warden of the same user.
"""

from __future__ import annotations

import errno
import os
import struct

# Results of a filter, and instructions of BPF, as in linux/seccomp.h and linux/bpf_common.h
_ALLOW = 0x7FFF0000
_KILL_PROCESS = 0x80000000
_ERRNO = 0x00050000
_LOAD = 0x20
_JUMP_EQUAL = 0x15
_JUMP_AT_LEAST = 0x35
_JUMP_ANY_BIT = 0x45
_RETURN = 0x06
_OFFSET_NUMBER, _OFFSET_ARCH, _OFFSET_FIRST_ARGUMENT, _OFFSET_SECOND_ARGUMENT = 0, 4, 16, 24

_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000  # set in the numbers of system calls of the x32 ABI
_NAMESPACE_FLAGS = 0x7E020000  # every CLONE_NEW* flag but CLONE_NEWTIME
_SOCKET_FAMILIES = (1,)  # AF_UNIX

# name: (number on x86_64, number on aarch64); None if the machine does not have the call
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "ioprio_set": (251, 30),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "init_module": (175, 105),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "nfsservctl": (180, 42),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "acct": (163, 89),
    "syslog": (103, 116),
    "lookup_dcookie": (212, 18),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "personality": (135, 92),
    "vhangup": (153, 58),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "_sysctl": (156, None),
    "sysfs": (139, None),
    "ustat": (136, None),
    "get_mempolicy": (239, 236),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "create_module": (174, None),
    "get_kernel_syms": (177, None),
    "query_module": (178, None),
}
_FIRST_UNKNOWN = 450
"""Calls from this number on are newer than these tables; the C library can do without them."""
_CLONE = (56, 220)
_CLONE3 = (435, 435)  # its flags are in memory, which a filter cannot read; C libraries fall back
_SOCKET = (41, 198)
_SOCKETPAIR = (53, 199)
_FIRST = (_OFFSET_FIRST_ARGUMENT,)
_OWN_ONLY: dict[str, tuple[tuple[int, int], tuple[int, ...]]] = {
    "prlimit64": ((302, 261), _FIRST),
    "sched_setaffinity": ((203, 122), _FIRST),
    "sched_setattr": ((314, 274), _FIRST),
    "sched_setparam": ((142, 118), _FIRST),
    "sched_setscheduler": ((144, 119), _FIRST),
    "setpriority": ((141, 140), (_OFFSET_FIRST_ARGUMENT, _OFFSET_SECOND_ARGUMENT)),
}
"""Name -> numbers of the call, and the arguments that have to be 0, meaning the calling process."""


def refused_names() -> list[str]:
    """Names of the calls that are refused with any arguments."""
    return list(_REFUSED)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def assemble(machine: str | None = None) -> bytes:
    """The filter for a machine (default: this one), with 8 bytes for each instruction.

    Raises:
        OSError: there is no table for that machine.
    """
    machine = machine or os.uname().machine
    if machine not in _ARCH:
        raise OSError(f"no system call filter for {machine}: only x86_64 and aarch64 are supported")
    column = list(_ARCH).index(machine)
    refuse = _instruction(_RETURN, _ERRNO | errno.EPERM)
    lines = [
        _instruction(_LOAD, _OFFSET_ARCH),
        _instruction(_JUMP_EQUAL, _ARCH[machine], if_true=1),
        _instruction(_RETURN, _KILL_PROCESS),
        _instruction(_LOAD, _OFFSET_NUMBER),
    ]
    if machine == "x86_64":
        lines += [_instruction(_JUMP_AT_LEAST, _X32_BIT, if_false=1), refuse]
    lines += [
        _instruction(_JUMP_AT_LEAST, _FIRST_UNKNOWN, if_false=1),
        _instruction(_RETURN, _ERRNO | errno.ENOSYS),
        _instruction(_JUMP_EQUAL, _CLONE3[column], if_false=1),
        _instruction(_RETURN, _ERRNO | errno.ENOSYS),
        _instruction(_JUMP_EQUAL, _CLONE[column], if_false=4),
        _instruction(_LOAD, _OFFSET_FIRST_ARGUMENT),
        _instruction(_JUMP_ANY_BIT, _NAMESPACE_FLAGS, if_false=1),
        refuse,
        _instruction(_RETURN, _ALLOW),
        _instruction(_JUMP_EQUAL, _SOCKET[column], if_true=1),
        _instruction(_JUMP_EQUAL, _SOCKETPAIR[column], if_false=3 + len(_SOCKET_FAMILIES)),
        _instruction(_LOAD, _OFFSET_FIRST_ARGUMENT),
    ]
    for position, family in enumerate(_SOCKET_FAMILIES):
        to_allow = len(_SOCKET_FAMILIES) - position
        lines.append(_instruction(_JUMP_EQUAL, family, if_true=to_allow))
    lines += [refuse, _instruction(_RETURN, _ALLOW)]
    for numbers_of_call, arguments in _OWN_ONLY.values():
        lines += _own_only(numbers_of_call[column], arguments, refuse)
    numbers = [pair[column] for pair in _REFUSED.values()]
    known = sorted(number for number in numbers if number is not None)
    for position, number in enumerate(known):
        lines.append(_instruction(_JUMP_EQUAL, number, if_true=len(known) - position))
    lines += [_instruction(_RETURN, _ALLOW), refuse]
    return b"".join(lines)


def _own_only(number: int, arguments: tuple[int, ...], refuse: bytes) -> list[bytes]:
    """Allows one call if all of these arguments are 0; other calls skip these instructions."""
    lines = [_instruction(_JUMP_EQUAL, number, if_false=3 * len(arguments) + 1)]
    for offset in arguments:
        lines += [_instruction(_LOAD, offset), _instruction(_JUMP_EQUAL, 0, if_true=1), refuse]
    return [*lines, _instruction(_RETURN, _ALLOW)]
