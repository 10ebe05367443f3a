"""Files that survive a crash: records appended one by one, files replaced as a whole.

When a function here returns, its data is on the disk, not only with the kernel.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judge.errors import StoreError
from judge.files.documents import dump_json
from judge.files.json_lines import LineAppender, read_json_lines
from judge.files.writing import take_lock, write_whole

_MODE = 0o644


def append_record(path: Path, record: Mapping[str, Any]) -> None:
    """Appends one line of JSON; a line that an earlier crash left torn is cut off first.

    Raises:
        StoreError: the file cannot be written.
    """
    with _named(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(LineAppender(path, mode=_MODE, durable=True)) as appender:
            appender.append(dump_json(record).encode())


def read_records(path: Path) -> list[dict[str, Any]]:
    """The records of a file; none if there is no file. A torn last line is left out.

    Raises:
        StoreError: the file cannot be read, or holds something else.
    """
    return [record for _, record in read_json_lines(path, StoreError, whole=True)]


def write_file(path: Path, data: bytes) -> None:
    """Writes a file as a whole, or replaces it: a reader sees either the old or the new one.

    Raises:
        StoreError: the file cannot be written.
    """
    with _named(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data, mode=_MODE, durable=True)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a lock file, waiting for other processes and threads that hold it.

    The lock is released when its holder ends, however that happens.

    Raises:
        StoreError: the lock file cannot be written.
    """
    with _named(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = take_lock(path, wait=True)
    with lock:
        yield


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Says which file a fault is about."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}") from error
