"""What the service programs share: frames, requests, and the check before an engine is asked.

Standard library only, and nothing of ``judge``: this text goes into the sandbox.

A frame is a 4-byte big-endian length and that many bytes, on standard input and output. The
payload of a request is a JSON header with its own 4-byte length before it, then the workbook::

    {"op": "describe"}    -> {"version": …, …}
    {"op": "compute", "engine": …, "ranges": [[sheet, row, column, last row, last column], …],
     "names": {"XLOOKUP": "_xlfn.XLOOKUP", …}, "timeout_s": 20}
        -> {"values": [[…], …], "seconds": …}    one list for each range, row by row

In those lists a number is a number, a text a text, a boolean a boolean, ``{"e": "#N/A"}`` an
error, ``{"x": why}`` a cell that could not be computed. ``{"error": why}`` instead of the lists
says that there is nothing for the whole workbook.
"""

from __future__ import annotations

import html
import io
import json
import math
import os
import re
import struct
import sys
import zipfile
from collections.abc import Callable, Mapping
from typing import BinaryIO, Protocol

Request = dict[str, "object"]
Answer = dict[str, "object"]


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; none at the end."""
        ...


UNPACKED_LIMIT_BYTES = 768 * 1024 * 1024
"""Most bytes that the parts of a workbook may claim together; real ones stay far below."""

ENTRY_LIMIT = 20_000

EXCEL_ERRORS = frozenset(
    (
        "#NULL!",
        "#DIV/0!",
        "#VALUE!",
        "#REF!",
        "#NAME?",
        "#NUM!",
        "#N/A",
        "#SPILL!",
        "#CALC!",
        "#FIELD!",
        "#BLOCKED!",
        "#GETTING_DATA",
    )
)


class CannotComputeError(Exception):
    """Why there is no value for anything in the workbook, in words for people."""


def read_frame(stream: Readable) -> bytes | None:
    """The next frame's payload, or None at the end of the stream."""
    head = _read_exactly(stream, 4)
    if head is None:
        return None
    return _read_exactly(stream, struct.unpack(">I", head)[0])


def _read_exactly(stream: Readable, count: int) -> bytes | None:
    chunks = []
    while count:
        chunk = stream.read(min(count, 1 << 20))
        if not chunk:
            return None
        chunks.append(chunk)
        count -= len(chunk)
    return b"".join(chunks)


def write_frame(stream: BinaryIO, payload: bytes) -> None:
    """Writes one frame and flushes it."""
    stream.write(struct.pack(">I", len(payload)))
    stream.write(payload)
    stream.flush()


def split_request(payload: bytes) -> tuple[Request, bytes]:
    """The header and the workbook of a request."""
    (length,) = struct.unpack(">I", payload[:4])
    return json.loads(payload[4 : 4 + length]), payload[4 + length :]


def serve(
    handle: Callable[[Request, bytes], Answer], *, after: Callable[[], None] | None = None
) -> None:
    """Answers requests until standard input ends.

    Standard output belongs to the frames alone: whatever an engine prints goes to standard error.

    Args:
        handle: makes the answer to a request.
        after: called when an answer is on its way, to make ready for the next request.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    while True:
        payload = read_frame(requests)
        if payload is None:
            return
        try:
            answer = handle(*split_request(payload))
        except CannotComputeError as error:
            answer = {"error": str(error)}
        except Exception as error:  # noqa: BLE001 - whatever an engine raises is an answer
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        write_frame(answers, json.dumps(answer).encode())
        if after is not None:
            after()


def encode(value: object) -> object:
    """A Python value as it goes into an answer."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"e": "#NUM!"}
    return {"x": f"a value of an unexpected kind ({type(value).__name__})"}


def error_value(code: str) -> dict[str, str]:
    """An error as it goes into an answer: one of Excel's, or a cell that could not be computed."""
    return {"e": code} if code in EXCEL_ERRORS else {"x": f"the engine says {code}"}


def prepare(
    workbook: bytes,
    names: Mapping[str, str],
    *,
    rewrite: Rewrite | None = None,
    trigger: re.Pattern[bytes] | None = None,
) -> bytes:
    """The workbook that the engine gets: checked against bombs, formulas in the engine's words.

    Args:
        workbook: the package.
        names: function name -> name to write in its place wherever it is called *without* a
            prefix. An engine that computes what Excel would not recognise is so kept from it.
        rewrite: turns a formula into what the engine reads as Excel does; told whether it is
            an array formula.
        trigger: what a part must contain for ``rewrite`` to be asked.

    Raises:
        CannotComputeError: not a package, or it claims to unpack to more than the limit.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(workbook))
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise CannotComputeError(f"the workbook is no package: {error}") from error
    with archive:
        entries = archive.infolist()
        unpacked = sum(entry.file_size for entry in entries)
        if unpacked > UNPACKED_LIMIT_BYTES or len(entries) > ENTRY_LIMIT:
            raise CannotComputeError(
                f"the workbook claims {unpacked} bytes in {len(entries)} parts; "
                f"the limit is {UNPACKED_LIMIT_BYTES} bytes in {ENTRY_LIMIT} parts"
            )
        if not names and rewrite is None:
            return workbook
        renamed = renaming(names) if names else None
        changed: dict[str, bytes] = {}
        for entry in entries:
            if not entry.filename.startswith("xl/") or not entry.filename.endswith(".xml"):
                continue
            content = archive.read(entry)
            asked = rewrite if trigger is None or trigger.search(content) else None
            new = edit_formulas(content, [step for step in (renamed, asked) if step is not None])
            if new != content:
                changed[entry.filename] = new
        return repack(archive, changed) if changed else workbook


def renaming(names: Mapping[str, str]) -> Rewrite:
    """Writes other names for functions that are called without a prefix."""
    calls = re.compile(
        r"""("[^"]*"|'[^']*')|(?<![\w.\\])(""" + "|".join(map(re.escape, names)) + r")(?=\s*\()",
        re.IGNORECASE,
    )
    return lambda formula, _: calls.sub(lambda m: m[1] or names[m[2].upper()], formula)


Rewrite = Callable[[str, bool], str]
"""Makes another text of a formula's text, told whether it is an array formula."""


def edit_formulas(content: bytes, steps: list[Rewrite]) -> bytes:
    """Applies some steps to the text of every formula of a part."""
    if not steps:
        return content

    def edit(found: re.Match[bytes]) -> bytes:
        text = html.unescape(found[2].decode("utf-8", "surrogateescape"))
        new = text
        # A defined name is computed as an array formula is.
        is_array = b"definedName" in found[1] or _ARRAY.search(found[1]) is not None
        for step in steps:
            new = step(new, is_array)
        if new == text:
            return found[0]
        escaped = new.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return found[1] + escaped.encode("utf-8", "surrogateescape")

    return _FORMULA.sub(edit, content)


def repack(archive: zipfile.ZipFile, changed: Mapping[str, bytes]) -> bytes:
    """A copy of a package with some parts changed, nothing compressed."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as copy:
        for entry in archive.infolist():
            content = changed.get(entry.filename)
            copy.writestr(entry.filename, archive.read(entry) if content is None else content)
    return target.getvalue()


_ARRAY = re.compile(rb"""\bt\s*=\s*["']array["']""")
_FORMULA = re.compile(
    rb"(<(?:\w+:)?(?:f|definedName)(?:\s[^<>]*)?(?<!/)>)([^<]*)(?=</(?:\w+:)?(?:f|definedName)>)"
)
