"""IronCalc, formualizer and formulas as one service: runs inside the sandbox's python root.

This file is a program of its own: its text is handed to the sandbox, which runs it with the
solutions' interpreter. Each calculation is a process forked from this one, with its own time and
memory limit, so an engine that aborts, hangs or is taken over by the workbook it reads ends with
that workbook.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import importlib
import importlib.metadata
import io
import json
import os
import resource
import select
import signal
import struct
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from typing import Any

from judge.recalc.services.common import (
    Answer,
    CannotComputeError,
    Request,
    encode,
    error_value,
    prepare,
    read_frame,
    serve,
    split_request,
    write_frame,
)

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

# Result texts can be large, but an answer that is larger than this is no honest workbook.
ANSWER_LIMIT_BYTES = 256 * 1024 * 1024


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
    import ironcalc  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415 - each engine is imported where it is asked for

    with tempfile.NamedTemporaryFile(suffix=".xlsx") as file:
        file.write(workbook)
        file.flush()
        model = ironcalc.load_from_xlsx(file.name, "en", "UTC", "en")
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

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "book.xlsx")  # noqa: PTH118 - a text is what is needed
        with open(path, "wb") as file:  # noqa: PTH123
            file.write(workbook)
        model = formulas.ExcelModel().loads(path).finish()
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


class ReadyChild:
    """A process that is forked and warmed up before its workbook is known.

    It computes one workbook and ends, so that nothing of it is seen by the next.

    Args:
        engine: what it computes with.
        memory_bytes: its address space.
    """

    def __init__(self, engine: str, memory_bytes: int) -> None:
        self.memory_bytes = memory_bytes
        task_read, self._task = os.pipe()
        self._answer, answer_write = os.pipe()
        self._process = os.fork()
        if self._process == 0:
            status = 1
            try:
                keep_only(task_read, answer_write)
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
                work(engine, task_read, answer_write)
                status = 0
            finally:
                os._exit(status)
        os.close(task_read)
        os.close(answer_write)

    def ask(self, payload: bytes, timeout_s: float) -> Answer:
        """Hands over a request and waits for the answer; the process is ended either way."""
        deadline = time.monotonic() + timeout_s
        text: bytes | None = b""
        try:
            with contextlib.suppress(BrokenPipeError), os.fdopen(self._task, "wb") as task:
                write_frame(task, payload)
            text = drain(self._answer, deadline)
        finally:
            status = self.end()
        if text is None:
            return {"error": f"took longer than {timeout_s:g} s", "timed_out": True}
        if not text:
            return {"error": f"the engine fell over (wait status {status})"}
        loaded: Answer = json.loads(text)
        return loaded

    def end(self) -> int:
        """Ends the process; returns its wait status."""
        for descriptor in (self._answer, self._task):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process, signal.SIGKILL)
        return os.waitpid(self._process, 0)[1]


def work(engine: str, task: int, answer: int) -> None:
    """What a child does: warm up, wait for its workbook, compute, answer."""
    warm_up(engine)
    with os.fdopen(task, "rb") as stream:
        payload = read_frame(stream)
    if payload is None:
        return
    request, workbook = split_request(payload)
    options: dict[str, Any] = dict(request)
    cpu_s = int(options["timeout_s"]) + 5 + int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    said: Answer
    try:
        started = time.perf_counter()
        ready = prepare(workbook, options.get("names") or {})
        values = COMPUTE[engine](ready, [tuple(asked) for asked in options["ranges"]])
        said = {"values": values, "seconds": time.perf_counter() - started}
    except MemoryError:
        said = {"error": "out of memory"}
    except BaseException as error:  # noqa: BLE001 - a panic of Rust code comes as one
        said = {"error": one_line(error)}
    with os.fdopen(answer, "wb") as stream_out:
        stream_out.write(json.dumps(said).encode())


def one_line(error: BaseException) -> str:
    """An exception in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def keep_only(*descriptors: int) -> None:
    """Closes everything but standard error and some descriptors: a child has no say in frames."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    for descriptor in range(3, MOST_DESCRIPTORS):
        if descriptor not in descriptors:
            with contextlib.suppress(OSError):
                os.close(descriptor)


MOST_DESCRIPTORS = 256


def drain(descriptor: int, deadline: float) -> bytes | None:
    """Everything that the child writes, or None where it takes too long."""
    chunks: list[bytes] = []
    size = 0
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            return None
        chunk = os.read(descriptor, 1 << 20)
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)
        size += len(chunk)
        if size > ANSWER_LIMIT_BYTES:
            return b""


def warm_up(engine: str) -> None:
    """Computes a small workbook, after which the next one costs a tenth."""
    if engine != "formulas":
        COMPUTE[engine](small_workbook(), [("S", 1, 1, 1, 1)])


def small_workbook() -> bytes:
    """A workbook with one formula."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    mime = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    kinds = (("workbook", "sheet.main"), ("worksheets/sheet1", "worksheet"), ("styles", "styles"))
    overrides = "".join(
        f'<Override PartName="/xl/{part}.xml" ContentType="{mime}.{kind}+xml"/>'
        for part, kind in kinds
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="rels" '
        f'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>{overrides}'
        "</Types>",
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        '<sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="r1" Type="{office}/worksheet" Target="worksheets/sheet1.xml"/>'
        f'<Relationship Id="r2" Type="{office}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{main}"><fonts count="1"><font/></fonts>'
        '<fills count="1"><fill/></fills><borders count="1"><border/></borders>'
        '<cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="1"><xf/></cellXfs>'
        '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles>'
        "</styleSheet>",
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData><row r="1">'
        '<c r="A1"><f>SUM(B1:B2)+IF(B1&gt;1,1,2)</f></c><c r="B1"><v>1</v></c></row></sheetData>'
        "</worksheet>",
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return stream.getvalue()


def describe() -> Answer:
    """Which engines there are, and their versions."""
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
        self.children: dict[str, ReadyChild] = {}
        self.wanted: dict[str, int] = {}

    def handle(self, request: Request, workbook: bytes) -> Answer:
        """Answers one request."""
        if request["op"] == "describe":
            return describe()
        options: dict[str, Any] = dict(request)
        engine, memory_bytes = str(options["engine"]), int(options["memory_bytes"])
        preload(engine)
        child = self.children.pop(engine, None)
        if child is not None and child.memory_bytes != memory_bytes:
            child.end()
            child = None
        if child is None:
            child = ReadyChild(engine, memory_bytes)
        self.wanted[engine] = memory_bytes
        header = json.dumps(request).encode()
        payload = struct.pack(">I", len(header)) + header + workbook
        return child.ask(payload, float(options["timeout_s"]))

    def get_ready(self) -> None:
        """Forks what the next request will need."""
        for engine, memory_bytes in self.wanted.items():
            if engine not in self.children:
                self.children[engine] = ReadyChild(engine, memory_bytes)

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
