"""Writes files and folders atomically, or under the SHA-256 of their content.

Everything that the judge keeps is written here: under another name in the same folder, then
renamed. A reader sees either the old file or the new one. All functions raise OSError, which
callers turn into messages, mostly with :func:`naming_what_is_written`. Code that runs inside a
sandbox (``judge/sandbox/warden``, ``judge/recalc/services``) cannot import this module, and writes
its files itself.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import io
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Self

from judge.errors import JudgeError, StoreError
from judge.files.documents import kind_of, read_regular

PART = ".part"
"""The suffix of files that are being written; their names begin with a dot."""


def write_whole(path: Path, data: bytes, *, mode: int = 0o600, durable: bool = False) -> None:
    """Writes or replaces a file; a link of that name is replaced, not followed.

    Args:
        path: the file, in an existing folder.
        data: the content.
        mode: permissions of the file; by default, only its owner may read it.
        durable: whether it is on disk when this returns, and not just passed to the kernel.

    Raises:
        OSError: it cannot be written; the old file is kept, and no part of the new file.
    """
    with writing_whole(path, mode=mode, durable=durable) as file:
        file.write(data)


@contextlib.contextmanager
def writing_whole(
    path: Path, *, mode: int = 0o600, durable: bool = False
) -> Iterator[io.BufferedRandom]:
    """Opens a file to write in pieces; at the end it is renamed to its path.

    Arguments and errors are those of :func:`write_whole`; if the block raises, the file is dropped.
    """
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=PART)
    except OSError as error:
        error.filename = str(path)  # the user knows this name
        raise
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
        with contextlib.suppress(OSError):  # the first error is the one to report
            temporary.unlink()
        raise
    if durable:
        sync_folder(path.parent)


def write_new(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Writes a new file; nothing may have its name yet, not even a link.

    Args:
        path: the file, in an existing folder.
        data: the content.
        mode: permissions of the file, before the umask of the process is applied.

    Raises:
        FileExistsError: something has that name; it is not changed.
        OSError: the file cannot be written; no part of it is left.
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

    It never blocks: a FIFO or a device is refused, before and after opening.

    Args:
        path: the file.
        flags: flags of ``os.open``; with ``O_NOFOLLOW`` a link is refused too.
        mode: permissions of a new file, before the umask of the process is applied.

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
    """Waits until renames and new files in a folder are on disk.

    Raises:
        OSError: they cannot be written to disk.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def folder_beside(target: Path, prefix: str) -> Iterator[Path]:
    """Makes a private folder to prepare something that is moved to its final path at the end.

    The folder is removed at the end, unless it was moved.

    Args:
        target: the final path; missing folders above it are made.
        prefix: the beginning of the folder's name, with a dot.

    Raises:
        OSError: the folder cannot be made.
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
    """Turns an OSError into a message with the file's name, which not every OSError contains.

    Args:
        path: the file that is being written.
        error: the class of error to raise.
        kept: a clause for the hint that says what has already been written.

    Raises:
        JudgeError: of the class ``error``; FileExistsError is left to the caller.
    """
    try:
        yield
    except (FileExistsError, BrokenPipeError):
        raise
    except OSError as problem:
        reason, hint = problem.strerror or str(problem), None
        if problem.errno in {errno.ENOSPC, errno.EDQUOT}:
            reason, hint = "the disk is full", f"Make room and run the same command again{kept}."
        elif problem.errno == errno.ENOENT and not path.parent.exists():
            reason, hint = f"there is no folder {path.parent}", "Make the folder first."
        elif problem.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
            hint = f"Name another place, or make {path.parent} writable."
        raise error(f"{path}: cannot be written: {reason}", hint=hint) from problem


class HeldError(Exception):
    """Another process holds the lock."""


class FileLock:
    """A held lock, from :func:`take_lock`.

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
    """Takes the lock of a file, which is made if it is missing; follows no link.

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
    """Returns whether a process holds the lock of a file; None if this system cannot tell.

    The lock is only inspected, never taken, so that a process that needs it at that moment gets it.
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


_HASH = re.compile(r"[0-9a-f]{64}")


def digest_of_modules(*packages: ModuleType) -> str:
    """Returns the SHA-256 of all modules of packages and their subpackages, in hexadecimal digits.

    Raises:
        JudgeError: the modules of a package cannot be found, so changes would not be noticed.
    """
    whole = hashlib.sha256()
    for package in packages:
        before = whole.hexdigest()
        for folder in map(Path, package.__path__):
            for path in sorted(folder.rglob("*.py")):
                name = f"{package.__name__}/{path.relative_to(folder).as_posix()}"
                whole.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
        if whole.hexdigest() == before:
            raise JudgeError(
                f"the modules of {package.__name__} cannot be found, so nothing can show whether "
                "stored results come from this code",
                hint="Install the package as files, not as an archive.",
            )
    return whole.hexdigest()


class HashedFolder:
    """A folder of files named by their hash. Safe to use from several threads.

    Args:
        folder: the folder; it is made with the first file.
        noun: what messages call such a file.
        max_bytes: a longer file is not read.
    """

    def __init__(self, folder: Path, noun: str, max_bytes: int) -> None:
        self._folder = folder
        self._noun = noun
        self._max_bytes = max_bytes

    def add(self, data: bytes, suffix: str) -> str:
        """Stores a file.

        Args:
            data: the content of the file.
            suffix: the suffix of its name, with the dot.

        Returns:
            The SHA-256 of the content, in hexadecimal digits.

        Raises:
            StoreError: it cannot be written.
        """
        digest = hashlib.sha256(data).hexdigest()
        path = self.path(digest, suffix)
        with naming_what_is_written(path, StoreError):
            # Readers check the content against the name; an incomplete file is written again.
            if not path.is_file() or path.stat().st_size != len(data):
                self._folder.mkdir(parents=True, exist_ok=True)
                write_whole(path, data)
        return digest

    def path(self, sha256: str, suffix: str) -> Path:
        """Returns the path of a file, whether or not it exists.

        Raises:
            StoreError: the argument is not a hash.
        """
        if _HASH.fullmatch(sha256) is None:
            raise StoreError(f"{sha256[:80]!r} is not a {self._noun} of this run")
        return self._folder / f"{sha256}{suffix}"

    def read(self, sha256: str, suffix: str) -> bytes | None:
        """Reads a file; None if it is missing or was changed.

        Raises:
            StoreError: the argument is not a hash, or the file cannot be read.
        """
        return read_hashed(self.path(sha256, suffix), sha256, max_bytes=self._max_bytes)


def read_hashed(path: Path, sha256: str, *, max_bytes: int) -> bytes | None:
    """Reads a file; None if it is missing or has a different hash.

    Args:
        path: the file.
        sha256: the expected hash.
        max_bytes: a longer file is refused.

    Raises:
        StoreError: the file cannot be read, or is too long.
    """
    data = read_regular(path, StoreError, max_bytes=max_bytes)
    return data if data is not None and hashlib.sha256(data).hexdigest() == sha256 else None
