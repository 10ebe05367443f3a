"""Locks between processes, and between threads, on files of their own.

A lock goes with its holder, however that ends: the kernel releases it, and the file stays. Other
processes see it in ``/proc/locks``.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Self

from judge.files.writing import open_to_write


class HeldError(Exception):
    """Somebody else holds the lock."""


class FileLock:
    """A lock that is held, as :func:`take_lock` gives it.

    Released by :meth:`close`, at the end of a ``with``, or when the process ends.

    Args:
        descriptor: the open lock file.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def close(self) -> None:
        """Releases the lock; safe to call twice."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def take_lock(path: Path, *, wait: bool = False) -> FileLock:
    """Takes the lock of a file, which is made where it is missing; no link is followed.

    Args:
        path: the lock file, in a folder that is there.
        wait: whether to wait for the process that holds it.

    Raises:
        HeldError: another process holds it, and ``wait`` is not set.
        OSError: the file cannot be made, or is not a regular one.
    """
    descriptor = open_to_write(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise HeldError(f"{path} is held") from error
    except BaseException:
        os.close(descriptor)
        raise
    return FileLock(descriptor)


def is_held(path: Path) -> bool | None:
    """Whether a process holds the lock of a file; None where this system does not say.

    The lock is only inspected, never taken: a process that needs it at that moment must get it.
    """
    try:
        inode = path.stat().st_ino
    except OSError:
        return False
    try:
        locks = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    # "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF"
    fields = (line.split() for line in locks)
    return any(
        len(field) > 5 and field[1] == "FLOCK" and field[5].rpartition(":")[2] == str(inode)
        for field in fields
    )
