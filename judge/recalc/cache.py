"""The cache of calculation results, addressed by content, and the disk space that it may take.

A file in the cache's folder holds a number on each line: first the total size of all entries when
the folder was last walked, then the size of each entry that any process has written since. An entry
that replaces another counts twice, which only means that the folder is walked again sooner.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import stat
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

from judge.errors import JudgeError
from judge.files.documents import read_kept, read_regular
from judge.files.writing import PART, open_to_write, write_whole
from judge.workbook.address import COLUMN_MASK, MAX_ROW
from judge.workbook.cell import CellRef, CellValue, ComputedValues, ErrorValue

KEPT_BYTES = 64 * 1024 * 1024
"""Limit for all results in memory, in bytes as :func:`weight_bytes` counts them."""

CELL_BYTES = 192
"""Size of a computed cell in memory: its position, its entry in a mapping, and a number."""

FORMAT = 1
"""Version of the format of entries; entries in another one are computed again."""

DISK_LIMIT_BYTES = 256 * 1024 * 1024
"""Limit for all entries on disk, in bytes; a typical workbook's result takes about a kilobyte."""

LOOKED_AFTER_EVERY = 256
"""How many entries are written between two checks of their total size."""


class ResultCache:
    """Keeps computed values: in memory for a run, and on disk if a folder is given.

    Safe to use from several threads and processes: an entry on disk is written to a temporary file
    next to its final path and then renamed. A broken entry counts as missing.

    Args:
        folder: where entries are kept between runs; None to keep them only in memory.
        limit_bytes: approximate limit for all entries on disk.
        memory_bytes: limit for all results in memory; a result larger than this is not kept there.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        limit_bytes: int = DISK_LIMIT_BYTES,
        memory_bytes: int = KEPT_BYTES,
    ) -> None:
        self._folder = folder
        self._limit_bytes = limit_bytes
        self._memory_bytes = memory_bytes
        self._written = 0
        self._memory: OrderedDict[str, tuple[ComputedValues, int]] = OrderedDict()
        self._used_bytes = 0
        self._lock = threading.Lock()

    def get(self, key: str) -> ComputedValues | None:
        """The result that is kept under a key (hex digits); None if there is no result."""
        with self._lock:
            kept = self._memory.get(key)
            if kept is not None:
                self._memory.move_to_end(key)
                return kept[0]
        if self._folder is None:
            return None
        path = self._path(key)
        try:
            result = _from_json(read_kept(path))
        except (ValueError, KeyError, TypeError, OverflowError):
            return None
        with contextlib.suppress(OSError):
            os.utime(path, follow_symlinks=False)
        self._remember(key, result)
        return result

    def put(self, key: str, values: ComputedValues, *, lasting: bool) -> None:
        """Keeps a result. If the disk is full, the entry is lost but the run continues.

        Args:
            key: hex digits.
            values: the computed values.
            lasting: whether any run would compute the same; otherwise, it is kept only in memory.
        """
        self._remember(key, values)
        if self._folder is None or not lasting:
            return
        with contextlib.suppress(OSError):
            path = self._path(key)
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                data = json.dumps(_to_json(values), allow_nan=False).encode()
            except ValueError:
                return  # infinite: JSON has no such number
            write_whole(path, data)
            note_written(self._folder, len(data))
        with self._lock:
            self._written += 1
            is_due = self._written % LOOKED_AFTER_EVERY == 1
        if is_due:
            keep_within(self._folder, self._limit_bytes)

    def _path(self, key: str) -> Path:
        assert self._folder is not None
        return self._folder / key[:2] / f"{key}.json"

    def _remember(self, key: str, values: ComputedValues) -> None:
        weight = weight_bytes(values)
        with self._lock:
            _, before = self._memory.pop(key, (None, 0))
            self._used_bytes -= before
            if weight > self._memory_bytes:
                return
            self._memory[key] = (values, weight)
            self._used_bytes += weight
            while self._used_bytes > self._memory_bytes:
                _, (_, oldest) = self._memory.popitem(last=False)
                self._used_bytes -= oldest


def weight_bytes(values: ComputedValues) -> int:
    """Roughly the memory that a result takes; a string that many cells share counts once."""
    texts = [*values.not_calculated.values(), *values.notes, *values.engines]
    texts += [value for value in values.values.values() if isinstance(value, str)]
    shared = {id(text): sys.getsizeof(text) for text in texts}
    cells = len(values.values) + len(values.not_calculated)
    return CELL_BYTES * (cells + 1) + sum(shared.values())


def _to_json(values: ComputedValues) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "values": [[*_address(ref), *_packed(value)] for ref, value in values.values.items()],
        "not_calculated": [[*_address(ref), why] for ref, why in values.not_calculated.items()],
        "engines": list(values.engines),
        "notes": list(values.notes),
    }


def _from_json(data: Any) -> ComputedValues:
    """Reads the computed values from an entry.

    Raises:
        ValueError, KeyError, TypeError, OverflowError: the entry is not one that this judge wrote.
    """
    if data["format"] != FORMAT:
        raise ValueError("an entry of another format")
    return ComputedValues(
        values=MappingProxyType(
            {
                _ref(sheet, row, column): _unpacked(kind, value)
                for sheet, row, column, kind, value in data["values"]
            }
        ),
        not_calculated=MappingProxyType(
            {
                _ref(sheet, row, column): _text(why)
                for sheet, row, column, why in data["not_calculated"]
            }
        ),
        engines=tuple(map(_text, data["engines"])),
        notes=tuple(map(_text, data["notes"])),
    )


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError("not text")
    return value


def _ref(sheet: Any, row: Any, column: Any) -> CellRef:
    if type(row) is not int or type(column) is not int:
        raise TypeError("not the position of a cell")
    if not (0 < row <= MAX_ROW and 0 < column <= COLUMN_MASK):
        raise ValueError("not the position of a cell")
    return CellRef(_text(sheet), row, column)


def _address(ref: CellRef) -> tuple[str, int, int]:
    return ref.sheet, ref.row, ref.column


def _packed(value: CellValue) -> tuple[str, Any]:
    if isinstance(value, ErrorValue):
        return "error", value.code
    if isinstance(value, dt.datetime):
        return "datetime", value.isoformat()
    if isinstance(value, dt.date):
        return "date", value.isoformat()
    if isinstance(value, dt.time):
        return "time", value.isoformat()
    if isinstance(value, dt.timedelta):
        return "span", [value.days, value.seconds, value.microseconds]
    return "plain", value


def _unpacked(kind: str, value: Any) -> CellValue:
    if kind == "error":
        return ErrorValue(_text(value))
    if kind == "datetime":
        return dt.datetime.fromisoformat(value)
    if kind == "date":
        return dt.date.fromisoformat(value)
    if kind == "time":
        return dt.time.fromisoformat(value)
    if kind == "span":
        return dt.timedelta(*value)
    if kind == "plain" and (value is None or isinstance(value, (bool, int, float, str))):
        if type(value) is int:
            float(value)  # no number of a cell is larger
        return value
    raise ValueError(f"an entry of an unknown kind {kind!r}")


LEDGER = "written"

KEPT_SHARE = 0.75
"""If the limit is exceeded, the least recently used entries are removed, down to this share."""

ABANDONED_S = 3600.0
"""A partly written file of this age is assumed to be left over from a process that ended."""


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
