"""A Python interpreter that lives for one task: the program of a sandbox service.

The judge never imports this file: its text is sent into the sandbox and runs there, isolated,
with only the standard library. The programs that it executes can do anything to this process. So
its answers are used only in the conversation of its own task: no verdict and no score depends on
them.
"""

from __future__ import annotations

import base64
import contextlib
import io
import linecache
import os
import sys
import threading
import time
import traceback
import types
from typing import Any, Self

from judge.sandbox.service_frames import serve

PROGRAM = "/tmp/data/solution.py"  # noqa: S108  a name in tracebacks, inside the sandbox


class Capture:
    """Captures text written to a descriptor: keeps its beginning, and counts its length."""

    def __init__(self, descriptor: int, limit: int) -> None:
        self._descriptor = descriptor
        self._limit = limit
        self.kept = bytearray()
        self.total = 0

    def __enter__(self) -> Self:
        self._saved = os.dup(self._descriptor)
        reader, writer = os.pipe()
        os.dup2(writer, self._descriptor)
        os.close(writer)
        self._thread = threading.Thread(target=self._drain, args=(reader,), daemon=True)
        self._thread.start()
        return self

    def _drain(self, reader: int) -> None:
        while chunk := os.read(reader, 65536):
            self.total += len(chunk)
            if len(self.kept) < self._limit:
                self.kept += chunk[: self._limit - len(self.kept)]
        os.close(reader)

    def __exit__(self, *_: object) -> None:
        os.dup2(self._saved, self._descriptor)
        os.close(self._saved)
        self._thread.join(1.0)  # a process that the program left behind may hold the pipe open


def place(frame: dict[str, Any]) -> dict[str, Any]:
    """Writes files, makes folders, and changes to the working folder, if one is named."""
    for path, data in frame["files"].items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
    for path in frame["folders"]:
        os.makedirs(path, exist_ok=True)
    if frame.get("work_in"):
        os.chdir(frame["work_in"])
    return {"placed": True}


def execute(frame: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    """Runs a program, which sees the names that earlier programs defined."""
    started = time.monotonic()
    before = state_of(frame["output_path"])
    drawing = frame.get("pictures")
    pictures_before = picture_files(drawing)
    error = None
    limit = frame["console_bytes"]
    code = frame["code"]
    # Allows tracebacks to quote the lines of the program.
    linecache.cache[PROGRAM] = (len(code), None, code.splitlines(keepends=True), PROGRAM)
    with Capture(1, limit) as out, Capture(2, limit):
        try:
            exec(compile(code, PROGRAM, "exec"), names)  # noqa: S102  this is its purpose
        except SystemExit as stop:
            error = None if stop.code in {None, 0} else f"SystemExit: {stop.code}"
        except BaseException as failure:  # noqa: BLE001  every end of a program is an answer
            below = failure.__traceback__.tb_next if failure.__traceback__ else None
            error = "".join(traceback.format_exception(type(failure), failure, below))
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
    return {
        "error": error,
        "stdout": out.kept.decode("utf-8", "replace"),
        "seconds": time.monotonic() - started,
        # A workbook left by an earlier round does not count.
        "output_exists": state_of(frame["output_path"]) not in {None, before},
        "pictures": drawn(drawing, pictures_before),
    }


def picture_files(drawing: dict[str, Any] | None) -> dict[str, tuple[int, int, int] | None]:
    """Returns the pictures in the working folder, each with a fingerprint of its file."""
    if not drawing:
        return {}
    folder = drawing["folder"]
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return {}
    pictures = [name for name in names if name.lower().endswith(tuple(drawing["suffixes"]))]
    return {name: state_of(os.path.join(folder, name)) for name in pictures}


def drawn(
    drawing: dict[str, Any] | None, before: dict[str, tuple[int, int, int] | None]
) -> list[dict[str, str]]:
    """Returns the pictures that a program made: files that it wrote, or else open figures."""
    if not drawing:
        return []
    made: list[dict[str, str]] = []
    for name, state in picture_files(drawing).items():
        if state is None or before.get(name) == state:
            continue
        path = os.path.join(drawing["folder"], name)
        with contextlib.suppress(OSError), open(path, "rb") as file:
            add_picture(drawing, made, name, file.read(drawing["max_bytes"] + 1))
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return made
    with contextlib.suppress(Exception):
        figures = [] if made else [pyplot.figure(number) for number in pyplot.get_fignums()]
        for number, figure in enumerate(figures[: drawing["max_pictures"]], start=1):
            data = io.BytesIO()
            figure.savefig(data, format="png")
            add_picture(drawing, made, f"figure {number}", data.getvalue())
        pyplot.close("all")
    return made


def add_picture(
    drawing: dict[str, Any], made: list[dict[str, str]], name: str, data: bytes
) -> None:
    """Adds a picture, unless a limit is exceeded."""
    if data and len(made) < drawing["max_pictures"] and len(data) <= drawing["max_bytes"]:
        made.append({"name": name, "data": base64.b64encode(data).decode("ascii")})


def state_of(path: str | None) -> tuple[int, int, int] | None:
    """Returns a fingerprint that changes when a file is written; None if there is no file.

    For a folder, whose path ends with a slash, it consists of the number of files and the
    fingerprint of the newest one.
    """
    if path is None:
        return None
    if path.endswith("/"):
        below = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
        states = [state for state in map(state_of, below) if state is not None]
        return (len(states), *max((state[1], state[2]) for state in states)) if states else None
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return (facts.st_ino, facts.st_mtime_ns, facts.st_size)


def main() -> None:
    """Answers requests until there are no more."""
    # Requests and answers use other descriptors than 0 and 1, which programs read and write.
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.environ["MPLBACKEND"] = "agg"  # there is no display
    for descriptor in (0, 1):
        os.dup2(nothing, descriptor)
    names = types.ModuleType("__main__")
    sys.modules["__main__"] = names

    def answer_to(frame: dict[str, Any]) -> dict[str, Any]:
        return place(frame) if frame["do"] == "place" else execute(frame, vars(names))

    serve(answer_to, requests, answers)
