"""Writes files and folders so that they exist as a whole or not at all.

Everything that the judge keeps is written here: under another name in the same folder, then
renamed. A reader sees the old one or the new one. All functions raise OSError, which callers turn
into messages, most of them with :func:`naming_what_is_written`. What runs inside a sandbox
(``judge/sandbox/warden``, ``judge/recalc/services``) has no access to the judge's other modules and
writes its own files.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from judge.errors import JudgeError
from judge.files.documents import kind_of

PART = ".part"
"""Ending of files that are being written; their names begin with a dot."""


def write_whole(path: Path, data: bytes, *, mode: int = 0o600, durable: bool = False) -> None:
    """Writes a file, or replaces it; a link at its place is replaced, not followed.

    Args:
        path: the file, in an existing folder.
        data: the content.
        mode: who may read it; only its owner if nothing is given.
        durable: whether it is on the disk when this returns, not only with the kernel.

    Raises:
        OSError: it cannot be written; the old file is still there, and nothing of the new one.
    """
    with writing_whole(path, mode=mode, durable=durable) as file:
        file.write(data)


@contextlib.contextmanager
def writing_whole(
    path: Path, *, mode: int = 0o600, durable: bool = False
) -> Iterator[io.BufferedRandom]:
    """A file to write piece by piece, which is put in its place at the end.

    Args, and what is raised, as :func:`write_whole`; nothing is put in place if the block raises.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=PART)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            os.fchmod(descriptor, mode)
            if durable:
                file.flush()
                os.fsync(descriptor)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):  # why it could not be put in place is what is told
            temporary.unlink()
        raise
    if durable:
        sync_folder(path.parent)


def write_new(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Writes a file where there is nothing of its name yet, not even a link.

    Args:
        path: the file, in an existing folder.
        data: the content.
        mode: who may read and write it, less what the process withholds (its umask).

    Raises:
        FileExistsError: there is something of that name, which stays as it is.
        OSError: it cannot be written; nothing of it is left.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, mode), "wb") as file:
        try:
            file.write(data)
            file.flush()
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def open_to_write(path: Path, flags: int, mode: int = 0o666) -> int:
    """Opens a regular file to write into it, in place.

    Nothing is waited for: a FIFO or a device is refused before it is opened, and after.

    Args:
        path: the file.
        flags: of ``os.open``; with ``O_NOFOLLOW`` a link is refused too.
        mode: who may read and write a new file, less what the process withholds (its umask).

    Returns:
        The descriptor.

    Raises:
        OSError: it is not a regular file, or cannot be opened.
    """
    with contextlib.suppress(FileNotFoundError):
        follow = not flags & os.O_NOFOLLOW
        _refuse_irregular(path.stat(follow_symlinks=follow).st_mode, path)
    more = os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    descriptor = os.open(path, flags | more, mode)
    try:
        _refuse_irregular(os.fstat(descriptor).st_mode, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _refuse_irregular(mode: int, path: Path) -> None:
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, f"{kind_of(mode)}, not a regular file", str(path))


def sync_folder(folder: Path) -> None:
    """Makes renames and new files in a folder last.

    Raises:
        OSError: the disk does not take it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def folder_beside(target: Path, prefix: str) -> Iterator[Path]:
    """A private folder in which something is made that is moved to its place at the end.

    Args:
        target: the place; folders above it are made if they are missing.
        prefix: how the folder's name begins, with a dot.

    Raises:
        OSError: the folder cannot be made. It is gone at the end, unless it was moved.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def naming_what_is_written(
    path: Path, error: type[JudgeError] = JudgeError, *, kept: str = ""
) -> Iterator[None]:
    """Says which file could not be written: a full disk leaves no name in the system's error.

    Args:
        path: what is being written.
        error: what to raise.
        kept: what the hint adds about what already exists.

    Raises:
        JudgeError: of the class ``error``; a file that already exists is left to the caller.
    """
    try:
        yield
    except (FileExistsError, BrokenPipeError):
        raise
    except OSError as problem:
        full = problem.errno in {errno.ENOSPC, errno.EDQUOT}
        reason = "the disk is full" if full else (problem.strerror or str(problem))
        hint = f"Make room and run the same command again{kept}." if full else None
        raise error(f"{path}: cannot be written: {reason}", hint=hint) from problem


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
        path: the lock file, in an existing folder.
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
