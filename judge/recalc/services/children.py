"""Forks processes in advance; each waits for the one workbook that it will compute.

Standard library only: this text goes into the sandbox.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import select
import signal
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator

from judge.recalc.services.common import (
    LOOKED_EVERY_S,
    Answer,
    CannotStartError,
    Request,
    Stopwatch,
    out_of_time,
    read_frame,
    split_request,
    write_frame,
)
from judge.recalc.services.folders import Folder, TemporaryFolder

# Result strings can be large, but no honest workbook gives an answer larger than this.
ANSWER_LIMIT_BYTES = 256 * 1024 * 1024


Compute = Callable[[Request, bytes], Iterable[Answer]]
"""Computes a workbook with one engine after the other; each gives an answer."""


class ReadyChild:
    """A process that is forked before its workbook is known.

    It computes one workbook and ends, so that the next one sees nothing of it. It has its own
    folder, which the parent process removes however the child ended.

    Args:
        compute: makes the answers to a request.
        memory_bytes: its address space.
        temporary: where its folder is made.

    Raises:
        CannotStartError: there is no room for its folder, or for another process.
    """

    def __init__(
        self,
        compute: Compute,
        memory_bytes: int,
        temporary: TemporaryFolder,
    ) -> None:
        self.memory_bytes = memory_bytes
        self._temporary = temporary
        self._status: int | None = None
        temporary.check()
        self._folder = Folder("calculation-")
        task_read, self._task = os.pipe()
        self._answer, answer_write = os.pipe()
        try:
            self._process = os.fork()
        except OSError as error:
            for descriptor in (task_read, self._task, self._answer, answer_write):
                os.close(descriptor)
            self._folder.remove()
            raise CannotStartError(f"no process can be started: {error}") from error
        if self._process == 0:
            status = 1
            try:
                keep_only(task_read, answer_write)
                self._folder.enter()
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
                work(compute, task_read, answer_write)
                status = 0
            finally:
                os._exit(status)
        os.close(task_read)
        os.close(answer_write)

    def ask(self, payload: bytes, timeout_s: float, *, engines: int = 1) -> Answer:
        """Passes a request and waits for the answer; the process is ended either way.

        An answer that may be due to lack of space says so (``unavailable``).

        Args:
            payload: the request.
            timeout_s: processor seconds that each engine may take.
            engines: how many compute it, 1 or 2; the second one's answer is ``then`` in the
                first's.
        """
        try:
            watch = Stopwatch(self._process, timeout_s)
            with contextlib.suppress(BrokenPipeError), os.fdopen(self._task, "wb") as task:
                write_frame(task, payload)
            said = self._next_answer(watch)
            if engines > 1 and "error" not in said:
                then = self._next_answer(Stopwatch(self._process, timeout_s))
                said = then if "unavailable" in then else {**said, "then": then}
        finally:
            self.end()
        return said

    def _next_answer(self, watch: Stopwatch) -> Answer:
        said: Answer
        text = next_frame(self._answer, watch)
        # Its folder is removed with it, so this is the last chance to check.
        full = self._temporary.is_full()
        if text is None:
            said = watch.verdict()
        elif not text:
            status = self.end()
            said = {"error": f"the engine crashed (wait status {status})"}
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
                said = out_of_time(watch.limit_s)
            elif os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
                said["killed"] = True
        else:
            said = json.loads(text)
        if full and "error" in said:
            said = {"error": f"no space was left: {said['error']}", "unavailable": True}
        return said

    def end(self) -> int:
        """Ends the process and removes its folder; returns its wait status. Safe to call twice."""
        if self._status is not None:
            return self._status
        for descriptor in (self._answer, self._task):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process, signal.SIGKILL)
        self._status = os.waitpid(self._process, 0)[1]
        self._folder.remove()
        return self._status


def work(compute: Compute, task: int, answer: int) -> None:
    """What a child does: waits for its workbook, computes, answers."""
    with os.fdopen(task, "rb") as stream:
        payload = read_frame(stream)
    if payload is None:
        return
    request, workbook = split_request(payload)
    # Enough for two engines, in case the parent process does not end this one in time.
    cpu_s = 2 * int(float(str(request["timeout_s"]))) + 10 + int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    with os.fdopen(answer, "wb") as stream_out:
        for said in answers(compute, request, workbook):
            write_frame(stream_out, json.dumps(said).encode())


def answers(compute: Compute, request: Request, workbook: bytes) -> Iterator[Answer]:
    """Yields the engines' answers; if an engine raises an error, that is the last answer."""
    try:
        yield from compute(request, workbook)
    except CannotStartError as error:
        yield {"error": str(error), "unavailable": True}
    except MemoryError:
        yield {"error": "out of memory"}
    except BaseException as error:  # noqa: BLE001 - a panic in Rust code arrives as one
        yield {"error": one_line(error)}


def one_line(error: BaseException) -> str:
    """An exception in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def keep_only(*descriptors: int) -> None:
    """Closes all but standard error and some descriptors, so a child cannot write frames."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    below = 3
    for descriptor in (*sorted(descriptors), MAX_DESCRIPTORS):
        os.closerange(below, descriptor)
        below = descriptor + 1


MAX_DESCRIPTORS = 256


def next_frame(descriptor: int, watch: Stopwatch) -> bytes | None:
    """The next frame that the child writes; None if it takes too long, empty if the child ended."""
    head = _exactly(descriptor, 4, watch)
    if not head:
        return head
    size = int.from_bytes(head, "big")
    return _exactly(descriptor, size, watch) if size <= ANSWER_LIMIT_BYTES else b""


def _exactly(descriptor: int, count: int, watch: Stopwatch) -> bytes | None:
    chunks: list[bytes] = []
    while count:
        ready = select.select([descriptor], [], [], LOOKED_EVERY_S)[0]
        if watch.hangs or (not ready and watch.is_up):
            return None
        if not ready:
            continue
        chunk = os.read(descriptor, min(count, 1 << 20))
        if not chunk:
            return b""
        chunks.append(chunk)
        count -= len(chunk)
    return b"".join(chunks)


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
