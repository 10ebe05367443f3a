"""Results of calculations, kept by content."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from judge.compare.cell import CellRef, CellValue, ComputedValues, ErrorValue

KEPT_IN_MEMORY = 512
FORMAT = 1


class ResultCache:
    """Remembers what was computed: in memory for a run, on disk where a folder is given.

    Safe to use from several threads and processes: an entry on disk is written beside its place
    and moved there. A broken entry counts as none.

    Args:
        folder: where entries are kept between runs; None for memory alone.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
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
        try:
            data = json.loads(self._path(key).read_text(encoding="utf-8"))
            found = _from_json(data)
        except (OSError, ValueError, KeyError, TypeError):
            return None
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
        path = self._path(key)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    json.dump(_to_json(values), file)
                Path(name).replace(path)
            except OSError:
                Path(name).unlink(missing_ok=True)
                raise

    def _path(self, key: str) -> Path:
        assert self._folder is not None
        return self._folder / key[:2] / f"{key}.json"

    def _remember(self, key: str, values: ComputedValues) -> None:
        with self._lock:
            self._memory[key] = values
            self._memory.move_to_end(key)
            while len(self._memory) > KEPT_IN_MEMORY:
                self._memory.popitem(last=False)


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
