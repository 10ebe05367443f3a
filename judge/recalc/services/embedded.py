"""IronCalc, formualizer and formulas as one service: runs inside the sandbox's python root.

This file is a separate program: its text is passed to the sandbox, which runs it with the
solutions' interpreter. Each calculation is a process forked from this one, with its own time and
memory limit and its own temporary folder. So an engine that aborts, hangs or is taken over by the
workbook that it reads ends with that workbook, and leaves nothing behind. This process itself
computes only its own small workbook, once for each engine, so that the processes it forks are warm.
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
from collections.abc import Callable, Iterator, Sequence
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
from judge.recalc.services.files import READERS, read_file
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
"""Serial number of 1900-02-29, a day that never existed."""


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

    options = formualizer.EvaluationConfig()
    # Processes are forked from this one, and would not have its threads.
    options.enable_parallel = False
    config = formualizer.WorkbookConfig(eval_config=options)
    book = formualizer.Workbook.from_bytes(workbook, config=config)
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
    """Converts a value of formualizer's Python binding, in which errors are dictionaries."""
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
    """Converts a date-time to a serial number of the 1900 system, which includes 1900-02-29."""
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
    """Converts a value of ``formulas``: numpy scalars, or its objects for errors and blanks."""
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


def compute(engines: Sequence[str], request: Request, workbook: bytes) -> Iterator[Answer]:
    """Computes one workbook with some engines; runs in a child."""
    options: dict[str, Any] = dict(request)
    started = time.process_time()
    ready = prepare(workbook, options.get("names") or {})
    for engine in engines:
        values = COMPUTE[engine](ready, [tuple(asked) for asked in options["ranges"]])
        yield {"values": values, "seconds": time.process_time() - started}
        started = time.process_time()


def read_with(reader: str, request: Request, data: bytes) -> Iterator[Answer]:
    """Reads one file other than a workbook; runs in a child."""
    yield read_file(reader, request, data)


def warm_up(engine: str) -> None:
    """Imports an engine and computes a small workbook, so that forked processes need not do so.

    The slow engine is only imported, since computing starts threads.

    Raises:
        CannotComputeError: the engine is not installed.
    """
    try:
        importlib.import_module(engine)
    except ImportError as error:
        raise CannotComputeError(f"{engine} is not installed in the sandbox ({error})") from error
    if engine != "formulas":
        with contextlib.suppress(Exception):  # an engine that fails will say so itself
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


def framed(request: Request, data: bytes) -> bytes:
    """A request as a child reads it."""
    header = json.dumps(request).encode()
    return struct.pack(">I", len(header)) + header + data


ATTEMPTS = 2
"""How many times a request is tried. A child may have been killed from outside, because memory was
short; if it is killed twice, the workbook is the cause."""


class Service:
    """Answers requests; keeps one child ready for each kind of request that occurred before."""

    def __init__(self) -> None:
        self.temporary = TemporaryFolder()
        self.warm: set[str] = set()
        self.children: dict[tuple[str, ...], ReadyChild] = {}
        self.wanted: dict[tuple[str, ...], int] = {}

    def handle(self, request: Request, workbook: bytes) -> Answer:
        """Answers one request."""
        if request["op"] == "describe":
            return describe()
        options: dict[str, Any] = dict(request)
        memory_bytes = int(options["memory_bytes"])
        then = options.get("then")
        engines = (str(options["engine"]), *([str(then)] if then else []))
        self.temporary.check()
        if engines[0] in READERS:
            return self.read(engines[0], request, workbook)
        for engine in engines:
            if engine not in self.warm:
                warm_up(engine)
                self.warm.add(engine)
        self.wanted[engines] = memory_bytes
        payload = framed(request, workbook)
        for _ in range(ATTEMPTS):
            said = self.taken(engines, memory_bytes).ask(
                payload, float(options["timeout_s"]), engines=len(engines)
            )
            then_said = said.get("then")
            if "killed" not in said and not (isinstance(then_said, dict) and "killed" in then_said):
                break
        return said

    def taken(self, engines: tuple[str, ...], memory_bytes: int) -> ReadyChild:
        """The child that is ready for some engines, or a new one."""
        child = self.children.pop(engines, None)
        if child is not None and child.memory_bytes != memory_bytes:
            child.end()
            child = None
        return child if child is not None else self.child(engines, memory_bytes)

    def read(self, reader: str, request: Request, data: bytes) -> Answer:
        """Reads a file in a separate child."""
        options: dict[str, Any] = dict(request)
        reading = functools.partial(read_with, reader)
        child = ReadyChild(reading, int(options["memory_bytes"]), self.temporary)
        return child.ask(framed(request, data), float(options["timeout_s"]))

    def child(self, engines: tuple[str, ...], memory_bytes: int) -> ReadyChild:
        """A new child for some engines."""
        return ReadyChild(functools.partial(compute, engines), memory_bytes, self.temporary)

    def get_ready(self) -> None:
        """Forks the children that the next request will need."""
        # If a child cannot be started now, that is reported when it is needed.
        with contextlib.suppress(CannotStartError):
            for engines, memory_bytes in self.wanted.items():
                if engines not in self.children:
                    self.children[engines] = self.child(engines, memory_bytes)

    def close(self) -> None:
        """Ends the children that are waiting."""
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
