"""Counts the disk space of cached results as they are written, and frees some if it is too much.

A file in the cache's folder holds a number on each line: first the total size of all entries when
the folder was last walked, then the size of each entry that any process has written since. An entry
that replaces another counts twice, which only means that the folder is walked again sooner.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from judge.errors import JudgeError
from judge.files.documents import read_regular
from judge.files.writing import PART, open_to_write, write_whole

LEDGER = "written"

KEPT_SHARE = 0.75
"""If the limit is exceeded, the least recently used entries are removed, down to this share."""

ABANDONED_S = 3600.0
"""Age from which a partly written file counts as left over from a process that ended."""


def note_written(folder: Path, size_bytes: int) -> None:
    """Counts a new entry; does nothing until the folder has been walked for the first time.

    Raises:
        OSError: the count cannot be written.
    """
    with contextlib.suppress(FileNotFoundError):
        descriptor = open_to_write(folder / LEDGER, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
        try:
            os.write(descriptor, b"%d\n" % size_bytes)
        finally:
            os.close(descriptor)


def written_bytes(folder: Path) -> int | None:
    """Roughly how many bytes all entries take; None if they were never counted."""
    try:
        numbers = (read_regular(folder / LEDGER, JudgeError) or b"").split()
        return sum(map(int, numbers)) if numbers else None
    except (JudgeError, ValueError):
        return None


def keep_within(folder: Path, limit_bytes: int) -> None:
    """Removes entries if their counted size exceeds the limit; walks the folder only then."""
    written = written_bytes(folder)
    if written is None or written > limit_bytes:
        left = prune(folder, limit_bytes)
        with contextlib.suppress(OSError):
            write_whole(folder / LEDGER, b"%d\n" % left)


def prune(folder: Path, limit_bytes: int) -> int:
    """Removes the least recently used entries if all entries together take too much space.

    Other processes may do the same at the same time: entries that are already gone are ignored.

    Returns:
        The size of the remaining entries, in bytes.
    """
    entries: list[tuple[float, int, Path]] = []
    for path in _entries(folder):
        with contextlib.suppress(OSError):
            facts = path.lstat()
            if path.suffix != PART:
                entries.append((facts.st_mtime, facts.st_size, path))
            elif facts.st_mtime < time.time() - ABANDONED_S:
                path.unlink()
    left = sum(size for _, size, _ in entries)
    if left <= limit_bytes:
        return left
    for _, size, path in sorted(entries):
        if left <= limit_bytes * KEPT_SHARE:
            break
        with contextlib.suppress(OSError):
            path.unlink()
        left -= size
    return left


def _entries(folder: Path) -> Iterator[Path]:
    """Yields the files of the cache. Links to folders are not followed: they may lead anywhere."""
    with contextlib.suppress(OSError):
        for shelf in folder.iterdir():
            if stat.S_ISDIR(shelf.lstat().st_mode):
                yield from shelf.iterdir()
