"""Results of calculations, kept by content."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from judge.compare.cell import CellRef, CellValue, ComputedValues, ErrorValue
from judge.recalc.files import PART, write_whole

KEPT_IN_MEMORY = 512
FORMAT = 1

DISK_LIMIT_BYTES = 256 * 1024 * 1024
"""What entries on disk may take together; a result of a usual workbook takes about a kilobyte."""

KEPT_SHARE = 0.75
"""How much of that is kept when there is too much: what was used longest ago goes."""

LOOKED_AFTER_EVERY = 256
"""Entries written between two looks at what is there."""

ABANDONED_S = 3600.0
"""Age from which a file that was being written was left by a process that ended over it."""


class ResultCache:
    """Remembers what was computed: in memory for a run, on disk where a folder is given.

    Safe to use from several threads and processes: an entry on disk is written beside its place
    and moved there. A broken entry counts as none.

    Args:
        folder: where entries are kept between runs; None for memory alone.
        limit_bytes: what entries on disk may take together, more or less.
    """

    def __init__(self, folder: Path | None = None, *, limit_bytes: int = DISK_LIMIT_BYTES) -> None:
        self._folder = folder
        self._limit_bytes = limit_bytes
        self._written = 0
        self._memory: OrderedDict[str, ComputedValues] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> ComputedValues | None:
        """What was remembered under a key (hex digits), or None."""
        with self._lock:
            found = self._memory.get(key)
            if found is not None:
                self._memory.move_to_end(key)
                return found
        if self._folder is None:
            return None
        path = self._path(key)
        try:
            found = _from_json(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        self._remember(key, found)
        return found

    def put(self, key: str, values: ComputedValues, *, lasting: bool) -> None:
        """Remembers a result. A disk that is full costs the entry, not the run.

        Args:
            key: hex digits.
            values: what was computed.
            lasting: whether another run would compute the same; else it is kept in memory alone.
        """
        self._remember(key, values)
        if self._folder is None or not lasting:
            return
        with contextlib.suppress(OSError):
            write_whole(self._path(key), json.dumps(_to_json(values)))
        with self._lock:
            self._written += 1
            is_due = self._written % LOOKED_AFTER_EVERY == 1
        if is_due:
            prune(self._folder, self._limit_bytes)

    def _path(self, key: str) -> Path:
        assert self._folder is not None
        return self._folder / key[:2] / f"{key}.json"

    def _remember(self, key: str, values: ComputedValues) -> None:
        with self._lock:
            self._memory[key] = values
            self._memory.move_to_end(key)
            while len(self._memory) > KEPT_IN_MEMORY:
                self._memory.popitem(last=False)


def prune(folder: Path, limit_bytes: int) -> None:
    """Removes entries that were not used for long, where all together take too much.

    Other processes may do the same at the same time: what is gone already is no fault.
    """
    entries: list[tuple[float, int, Path]] = []
    for path in folder.glob("*/*"):
        with contextlib.suppress(OSError):
            facts = path.stat()
            if path.suffix != PART:
                entries.append((facts.st_mtime, facts.st_size, path))
            elif facts.st_mtime < time.time() - ABANDONED_S:
                path.unlink()
    left = sum(size for _, size, _ in entries)
    if left <= limit_bytes:
        return
    for _, size, path in sorted(entries):
        if left <= limit_bytes * KEPT_SHARE:
            return
        with contextlib.suppress(OSError):
            path.unlink()
        left -= size


def _to_json(values: ComputedValues) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "values": [[*_place(ref), *_packed(value)] for ref, value in values.values.items()],
        "not_calculated": [[*_place(ref), why] for ref, why in values.not_calculated.items()],
        "engines": list(values.engines),
        "notes": list(values.notes),
    }


def _from_json(data: Mapping[str, Any]) -> ComputedValues:
    if data["format"] != FORMAT:
        raise ValueError("an entry of another format")
    return ComputedValues(
        values=MappingProxyType(
            {
                CellRef(sheet, row, column): _unpacked(kind, value)
                for sheet, row, column, kind, value in data["values"]
            }
        ),
        not_calculated=MappingProxyType(
            {
                CellRef(sheet, row, column): str(why)
                for sheet, row, column, why in data["not_calculated"]
            }
        ),
        engines=tuple(data["engines"]),
        notes=tuple(data["notes"]),
    )


def _place(ref: CellRef) -> tuple[str, int, int]:
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
        return ErrorValue(value)
    if kind == "datetime":
        return dt.datetime.fromisoformat(value)
    if kind == "date":
        return dt.date.fromisoformat(value)
    if kind == "time":
        return dt.time.fromisoformat(value)
    if kind == "span":
        return dt.timedelta(*value)
    if kind == "plain" and (value is None or isinstance(value, (bool, int, float, str))):
        return value
    raise ValueError(f"an entry of an unknown kind {kind!r}")
