"""IronCalc, formualizer and formulas as one service: runs inside the sandbox's python root.

This file is a program of its own: its text is passed to the sandbox, which runs it with the
solutions' interpreter. Each calculation is a process forked from this one, with its own time and
memory limit and its own temporary folder, so an engine that aborts, hangs or is taken over by the
workbook it reads ends with that workbook, and nothing of it is left.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import importlib
import importlib.metadata
import json
import os
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from judge.recalc.services.children import ReadyChild, small_workbook
from judge.recalc.services.common import (
    Answer,
    CannotComputeError,
    CannotStartError,
    Request,
    encode,
    error_value,
    serve,
)
from judge.recalc.services.folders import TemporaryFolder, write_book
from judge.recalc.services.package import prepare

Range = tuple[str, int, int, int, int]
Reader = Callable[[str, int, int], object]

ENGINES = ("ironcalc", "formualizer", "formulas")

FORMUALIZER_ERRORS = {
    "Div": "#DIV/0!",
    "Na": "#N/A",
    "Value": "#VALUE!",
    "Ref": "#REF!",
    "Name": "#NAME?",
    "Num": "#NUM!",
    "Null": "#NULL!",
    "Spill": "#SPILL!",
    "Calc": "#CALC!",
}

LAST_REAL_DAY = 60
"""Serial of the day that never was, 1900-02-29."""


def read_ranges(ranges: list[Range], read: Reader) -> list[list[object]]:
    """Asks an engine for each cell of each range, row by row."""
    return [
        [
            read(sheet, row, column)
            for row in range(first_row, last_row + 1)
            for column in range(first_column, last_column + 1)
        ]
        for sheet, first_row, first_column, last_row, last_column in ranges
    ]


def with_ironcalc(workbook: bytes, ranges: list[Range]) -> list[list[object]]:
    """Computes with IronCalc, which reads from a file."""
    import ironcalc  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415 - each engine is imported only when it is used

    path = write_book(tempfile.gettempdir(), workbook)
    model = ironcalc.load_from_xlsx(path, "en", "UTC", "en")
    os.remove(path)  # noqa: PTH107 - it takes memory, which is bounded
    sheets = {
        properties["name"]: index
        for index, properties in enumerate(model.get_worksheets_properties())
    }
    model.evaluate()
    error = ironcalc.CellType.ErrorValue

    def read(sheet: str, row: int, column: int) -> object:
        if sheet not in sheets:
            return {"x": f"IronCalc finds no sheet {sheet!r}"}
        value = model.get_cell_value(sheets[sheet], row, column)
        if isinstance(value, str) and model.get_cell_type(sheets[sheet], row, column) == error:
            return error_value(value)
        return encode(value)

    return read_ranges(ranges, read)


def with_formualizer(workbook: bytes, ranges: list[Range]) -> list[list[object]]:
    """Computes with formualizer."""
    import formualizer  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415

    book = formualizer.Workbook.from_bytes(workbook)
    book.evaluate_all()
    names = set(book.sheet_names)
    answer: list[list[object]] = []
    for sheet, first_row, first_column, last_row, last_column in ranges:
        if sheet not in names:
            count = (last_row - first_row + 1) * (last_column - first_column + 1)
            answer.append([{"x": f"formualizer finds no sheet {sheet!r}"}] * count)
            continue
        address = formualizer.RangeAddress(sheet, first_row, first_column, last_row, last_column)
        rows = book.sheet(sheet).get_values(address)
        answer.append([formualizer_value(value) for row in rows for value in row])
    return answer


def formualizer_value(value: Any) -> object:
    """A value as formualizer's Python binding gives it: errors are dictionaries."""
    if isinstance(value, dict):
        kind = str(value.get("kind"))
        return error_value(FORMUALIZER_ERRORS.get(kind, kind))
    if isinstance(value, dt.timedelta):
        return value / dt.timedelta(days=1)
    if isinstance(value, dt.time):
        seconds = value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
        return seconds / 86_400
    if isinstance(value, dt.datetime):
        return serial(value)
    if isinstance(value, dt.date):
        return serial(dt.datetime.combine(value, dt.time()))
    return encode(value)


def serial(moment: dt.datetime) -> float:
    """A date-time as a serial number of the 1900 system, which believes in 1900-02-29."""
    days = (moment - dt.datetime(1899, 12, 30)) / dt.timedelta(days=1)  # noqa: DTZ001
    return days if days > LAST_REAL_DAY else days - 1


def with_formulas(workbook: bytes, ranges: list[Range]) -> list[list[object]]:
    """Computes with ``formulas``, which reads from a file and is slow."""
    import formulas  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415

    model = formulas.ExcelModel().loads(write_book(tempfile.gettempdir(), workbook)).finish()
    solution = model.calculate()
    found: dict[tuple[str, int, int], object] = {}
    for key, cells in solution.items():
        if not hasattr(cells, "ranges") or not hasattr(cells, "value"):
            continue
        del key
        for area in cells.ranges:
            sheet = str(area["sheet"]).upper()
            top, left = int(area["r1"]), int(area["n1"])
            for row, line in enumerate(cells.value):
                for column, value in enumerate(line):
                    found.setdefault((sheet, top + row, left + column), value)
            break

    def read(sheet: str, row: int, column: int) -> object:
        value = found.get((sheet.upper(), row, column))
        if value is None:
            return {"x": "formulas has no value for the cell"}
        return formulas_value(value)

    return read_ranges(ranges, read)


def formulas_value(value: Any) -> object:
    """A value as ``formulas`` gives it: numpy scalars, errors and blanks of its own."""
    name = type(value).__name__
    if name == "XlError":
        return error_value(str(value))
    if name == "Empty" or str(value) == "empty":
        return 0
    item = value.item() if hasattr(value, "item") and not isinstance(value, str) else value
    return encode(str(item) if isinstance(item, str) else item)


COMPUTE = {
    "ironcalc": with_ironcalc,
    "formualizer": with_formualizer,
    "formulas": with_formulas,
}


def compute(engine: str, request: Request, workbook: bytes) -> Answer:
    """Computes one workbook; runs in a child."""
    options: dict[str, Any] = dict(request)
    started = time.perf_counter()
    ready = prepare(workbook, options.get("names") or {})
    values = COMPUTE[engine](ready, [tuple(asked) for asked in options["ranges"]])
    return {"values": values, "seconds": time.perf_counter() - started}


def warm_up(engine: str) -> None:
    """Computes a small workbook, so that the next one takes a tenth of the time."""
    if engine != "formulas":
        COMPUTE[engine](small_workbook(), [("S", 1, 1, 1, 1)])


def describe() -> Answer:
    """The installed engines and their versions."""
    versions: dict[str, str] = {}
    for engine in ENGINES:
        try:
            versions[engine] = importlib.metadata.version(engine)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {"versions": versions, "python": sys.version.split()[0]}


def preload(engine: str) -> None:
    """Imports an engine here, so that the forked processes need not."""
    try:
        importlib.import_module(engine)
    except ImportError as error:
        raise CannotComputeError(f"{engine} is not installed in the sandbox ({error})") from error


class Service:
    """Answers requests, one ready child ahead of each engine that was asked before."""

    def __init__(self) -> None:
        self.temporary = TemporaryFolder()
        self.children: dict[str, ReadyChild] = {}
        self.wanted: dict[str, int] = {}

    def handle(self, request: Request, workbook: bytes) -> Answer:
        """Answers one request."""
        if request["op"] == "describe":
            return describe()
        options: dict[str, Any] = dict(request)
        engine, memory_bytes = str(options["engine"]), int(options["memory_bytes"])
        self.temporary.check()
        preload(engine)
        child = self.children.pop(engine, None)
        if child is not None and child.memory_bytes != memory_bytes:
            child.end()
            child = None
        if child is None:
            child = self.child(engine, memory_bytes)
        self.wanted[engine] = memory_bytes
        header = json.dumps(request).encode()
        payload = struct.pack(">I", len(header)) + header + workbook
        return child.ask(payload, float(options["timeout_s"]))

    def child(self, engine: str, memory_bytes: int) -> ReadyChild:
        """A new child for an engine."""
        return ReadyChild(
            functools.partial(compute, engine),
            functools.partial(warm_up, engine),
            memory_bytes,
            self.temporary,
        )

    def get_ready(self) -> None:
        """Forks what the next request will need."""
        # What cannot be started now is reported when it is needed.
        with contextlib.suppress(CannotStartError):
            for engine, memory_bytes in self.wanted.items():
                if engine not in self.children:
                    self.children[engine] = self.child(engine, memory_bytes)

    def close(self) -> None:
        """Ends the children that wait."""
        for child in self.children.values():
            child.end()


def main() -> None:
    """Serves until the sandbox closes standard input."""
    service = Service()
    try:
        serve(service.handle, after=service.get_ready)
    finally:
        service.close()


if __name__ == "__main__":
    main()
