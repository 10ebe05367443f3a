"""Protects programs on a desktop, which run as one user, and the driver from each other's signals.

The driver cannot be inspected, and as process 1 it gets no signal that it does not handle. Actions
and the office (whose macros are programs too) get another system call filter, in addition to the
sandbox's: a process can send signals only to itself and to its own group. A list of protected
process ids would not be enough, since the id of any thread can be used instead of its process's.
"""

from __future__ import annotations

import errno
import os
import struct

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER, _FIRST, _SECOND = 0, 16, 24
_REFUSE = _ERRNO | errno.EPERM

# name: (x86_64, aarch64)
_TO_PROCESS = {
    "kill": (62, 129),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
}
"""Calls whose first argument is a process; 0 is the caller's own group."""
_NEVER = {"tkill": (200, 130), "pidfd_send_signal": (424, 424)}
"""Calls whose arguments do not show which process they reach; no program needs them."""
_FCNTL = (72, 25)
_IOCTL = (16, 29)
_OWNER_COMMANDS = (8, 10, 15)  # F_SETOWN, F_SETSIG, F_SETOWN_EX: signals through a descriptor
_OWNER_REQUESTS = (0x8901, 0x8902)  # FIOSETOWN, SIOCSPGRP


def _line(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def assemble(own: int, machine: str | None = None) -> bytes:
    """Assembles the filter for a process and its children, with 8 bytes per instruction.

    It only sees calls of the machine's native interface: the sandbox's filter refuses all others.

    Args:
        own: id of the process.
        machine: type of the processor; by default that of this machine.
    """
    column = 0 if (machine or os.uname().machine) == "x86_64" else 1
    lines = [_line(_LOAD, _NUMBER)]
    for numbers in _NEVER.values():
        lines += [_line(_EQUAL, numbers[column], if_false=1), _line(_RETURN, _REFUSE)]
    for numbers in _TO_PROCESS.values():
        lines += _case(numbers[column], _FIRST, (0, own), found=_ALLOW, otherwise=_REFUSE)
    for call, values in ((_FCNTL, _OWNER_COMMANDS), (_IOCTL, _OWNER_REQUESTS)):
        lines += _case(call[column], _SECOND, values, found=_REFUSE, otherwise=_ALLOW)
    return b"".join([*lines, _line(_RETURN, _ALLOW)])


def _case(
    number: int, offset: int, values: tuple[int, ...], *, found: int, otherwise: int
) -> list[bytes]:
    """Decides about one system call by an argument; for other calls, the filter continues."""
    body = [_line(_LOAD, offset)]
    for value in values:
        body += [_line(_EQUAL, value, if_false=1), _line(_RETURN, found)]
    body.append(_line(_RETURN, otherwise))
    return [_line(_EQUAL, number, if_false=len(body)), *body]
