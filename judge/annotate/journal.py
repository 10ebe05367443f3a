"""Files that survive a crash: records appended one by one, files replaced as a whole.

What a function here has returned from is on the disk, not only with the kernel.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judge.errors import StoreError
from judge.files.documents import read_json_lines
from judge.grading.store import dump_json


def append_record(path: Path, record: Mapping[str, Any]) -> None:
    """Appends one line of JSON; a line that an earlier crash left torn is cut off first.

    Raises:
        StoreError: the file cannot be written.
    """
    line = dump_json(record).encode() + b"\n"
    with _told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        new = not path.exists()
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            end = os.lseek(descriptor, 0, os.SEEK_END)
            if end and os.pread(descriptor, 1, end - 1) != b"\n":
                end = path.read_bytes().rfind(b"\n") + 1
                os.ftruncate(descriptor, end)
            os.lseek(descriptor, end, os.SEEK_SET)
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if new:
            sync_folder(path.parent)


def read_records(path: Path) -> list[dict[str, Any]]:
    """The records of a file; none where there is no file. A torn last line is not there.

    Raises:
        StoreError: the file cannot be read, or holds something else.
    """
    return [record for _, record in read_json_lines(path, StoreError, whole=True)]


def write_file(path: Path, data: bytes) -> None:
    """Writes a file as a whole, or replaces it: whoever reads sees the old or the new one.

    Raises:
        StoreError: the file cannot be written.
    """
    with _told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # The leading dot keeps the half-written file out of the suite.
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as handle:
                handle.write(data)
                handle.flush()
                os.fsync(handle.fileno())
            Path(temporary).chmod(0o644)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Makes renames and new files in a folder last."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a lock file, waiting for other processes and threads that hold it.

    The lock goes with its holder, however that ends.

    Raises:
        StoreError: the lock file cannot be written.
    """
    with _told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # A FIFO is opened without waiting for its other end.
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    try:
        with _told(path):
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise StoreError(f"{path}: not a regular file", hint="Take it away.")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}") from error
