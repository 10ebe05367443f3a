"""Reads JSON and text that someone else may have written: results, solutions, conversations.

Only regular files are read, so that nothing waits for a FIFO or reads from a device. Size and
nesting are limited, the text is UTF-8, and the result can be written as JSON again: it contains no
NaN and no infinities. The caller chooses the class of error that is raised. Files with one JSON
object on each line are read by :mod:`judge.files.json_lines`, which builds on this module.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import re
import stat
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import IO, Any

from judge.console import clipped, visible
from judge.errors import JudgeError, StoreError

MIB = 1024 * 1024

MAX_FILE_BYTES = 1024 * MIB
"""Longest file that is read; all conversations of 100 samples of 912 tasks are far shorter."""

MAX_DOCUMENT_BYTES = 64 * MIB
"""Longest document, unless the caller sets another limit."""

MAX_DEPTH = 100
"""How deeply objects and arrays may be nested; Python's readers and writers fail at about 900."""

BOM = b"\xef\xbb\xbf"
"""The byte order mark that some programs put before UTF-8 text."""


class MalformedError(Exception):
    """A document is malformed; callers add the name of the file."""


def read_regular(
    path: Path, error: type[JudgeError], *, start: int = 0, max_bytes: int = MAX_FILE_BYTES
) -> bytes | None:
    """Reads the bytes of a regular file; None if nothing has that name.

    Args:
        path: the file; a link to a regular file is accepted.
        error: the class of error to raise.
        start: how many bytes to skip.
        max_bytes: a longer file is refused.

    Raises:
        JudgeError: of the class ``error``: it is not a regular file, is too long, or
            cannot be read.
    """
    with opened_regular(path, error, max_bytes) as file:
        if file is None:
            return None
        file.seek(start)
        # A read allocates the size that is requested, so the file's size is requested and not the
        # limit. If the file grows, or reports no size, the rest is read as well.
        size = max(os.fstat(file.fileno()).st_size - start, 0)
        data = file.read(min(size, max_bytes) + 1)
        if len(data) > size:
            pieces, length = [data], len(data)
            while length <= max_bytes and (piece := file.read(MIB)):
                pieces.append(piece)
                length += len(piece)
            data = b"".join(pieces)
    if len(data) > max_bytes:
        raise too_long(path, error, max_bytes)
    return data


def read_text(path: Path, error: type[JudgeError], *, max_bytes: int = MAX_FILE_BYTES) -> str:
    """Reads the text of a regular file, without a byte order mark.

    Raises:
        JudgeError: of the class ``error``: :func:`read_regular` fails, or the file does not exist
            or is not UTF-8.
    """
    data = read_regular(path, error, max_bytes=max_bytes)
    if data is None:
        raise error(f"{path}: cannot be read: no such file")
    try:
        return _decoded(data.removeprefix(BOM))
    except MalformedError as problem:
        raise error(f"{path}: {problem}", hint="Save the file as UTF-8.") from problem


def read_json(path: Path, error: type[JudgeError]) -> Any | None:
    """Reads the JSON document of a regular file; None if nothing has that name.

    Raises:
        JudgeError: :func:`read_regular` fails, or the file is not JSON; of the class ``error``.
    """
    data = read_regular(path, error, max_bytes=MAX_DOCUMENT_BYTES)
    if data is None:
        return None
    try:
        return parse_json(data.removeprefix(BOM))
    except MalformedError as problem:
        # Files that the judge wrote can be made again; other files must be corrected.
        hint = f"Move {path} away and run the command again."
        if not issubclass(error, StoreError):
            hint = "Correct the file, and run the command again."
        raise error(f"{path}: {problem}", hint=hint) from problem


def read_kept(path: Path, *, max_bytes: int = MAX_DOCUMENT_BYTES) -> Any | None:
    """Reads the JSON document of an entry in a cache that others may write to.

    Args:
        path: the entry.
        max_bytes: a longer entry is ignored.

    Returns:
        The document; None if it is missing or anything is wrong with it: it is a link, a device, a
        FIFO or a folder, is too long or too deeply nested, or is not JSON. An entry of a cache can
        be made again.
    """
    try:
        if path.is_symlink():
            return None
        data = read_regular(path, JudgeError, max_bytes=max_bytes)
        return None if data is None else parse_json(data)
    except (JudgeError, MalformedError, OSError, ValueError):
        return None


_DEEP = f"nested more than {MAX_DEPTH} levels deep"


def parse_json(text: bytes | str, *, max_values: int | None = None) -> Any:
    """Reads JSON within limits; NaN and infinities, which JSON does not have, become null.

    Args:
        text: the document.
        max_values: how many values it may have; they are counted before any is created, since
            ``[],`` takes 3 bytes in a file and 72 in memory.

    Raises:
        MalformedError: the message says what is wrong, and where.
    """
    shown = _decoded(text) if isinstance(text, bytes) else text
    if max_values is not None and has_more_values(shown, max_values):
        raise MalformedError(f"more than {max_values:,} values")
    try:
        document = json.loads(shown, parse_constant=_nothing, parse_float=_number)
    except json.JSONDecodeError as problem:
        position = f"line {problem.lineno}, " if problem.lineno > 1 else ""
        raise MalformedError(
            f"not JSON at {position}column {problem.colno}: {problem.msg}"
        ) from None
    except RecursionError:
        raise MalformedError(_DEEP) from None
    except ValueError as problem:  # a number with thousands of digits
        raise MalformedError(f"not JSON: {visible(str(problem))}") from None
    # Only documents with that many brackets, which are rare, have to be walked through.
    if shown.count("[") + shown.count("{") > MAX_DEPTH and _depth(document) > MAX_DEPTH:
        raise MalformedError(_DEEP)
    return document


def as_object(document: Any) -> dict[str, Any]:
    """Returns the document if it is a JSON object.

    Raises:
        MalformedError: it is not an object.
    """
    if not isinstance(document, dict):
        raise MalformedError(f"expected a JSON object, found {json_type(document)}")
    return document


_ON_ONE_LINE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def dump_json(document: object, *, indent: int | None = None, spaced: bool = False) -> str:
    """Writes JSON text that can be encoded as UTF-8, whatever strings a chat model produced.

    Args:
        document: plain data.
        indent: spaces for each level; None for one line.
        spaced: whether a single line has spaces after commas and colons, as Python writes it.
    """
    separators = (",", ":") if indent is None and not spaced else None
    if separators is None:
        text = json.dumps(document, ensure_ascii=False, indent=indent)
    else:
        text = _ON_ONE_LINE.encode(document)
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate cannot be encoded as UTF-8, but can be escaped
        return json.dumps(document, indent=indent, separators=separators)
    return text


def json_type(value: object) -> str:
    """Returns JSON's name for the type of a value."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true or false"
    names = {str: "text", dict: "an object", list: "an array", int: "a number", float: "a number"}
    return names.get(type(value), type(value).__name__)


def written(value: object, max_chars: int = 80) -> str:
    """Formats a value of a document for a message, in the notation of JSON and not of Python.

    Args:
        value: the value; a long array or object is described by its type.
        max_chars: how many characters are shown.
    """
    if isinstance(value, str):
        return repr(clipped(value, max_chars))
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, date):
        return value.isoformat()
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (
        TypeError,
        ValueError,
        RecursionError,
    ):  # a key that is not a string, a cycle, or a huge number
        return json_type(value)
    return text if len(text) <= max_chars else json_type(value)


def _nothing(_: str) -> None:
    return None


def _number(text: str) -> float | None:
    value = float(text)  # 1e999 becomes infinite
    return value if math.isfinite(value) else None


def _depth(document: Any) -> int:
    """Returns how deeply objects and arrays are nested, counted level by level."""
    level, depth = [document], 0
    while level := [child for child in level if isinstance(child, dict | list)]:
        depth += 1
        level = [
            inner
            for parent in level
            for inner in (parent.values() if isinstance(parent, dict) else parent)
        ]
    return depth


_VALUE_MARK = re.compile(r'"(?:[^"\\]++|\\.)*+"?+|([\[{,])', re.DOTALL)
"""Matches a string, which is skipped, or a character that begins another value."""


def has_more_values(text: str, max_values: int) -> bool:
    """Returns whether a JSON document has more values than a limit, without creating any value."""
    if len(text) <= max_values or text.count(",") + text.count("[") + text.count("{") <= max_values:
        return False  # true of most documents, even those with commas in strings
    marks = (mark for mark in _VALUE_MARK.finditer(text) if mark[1] is not None)
    return next(itertools.islice(marks, max_values, None), None) is not None


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise MalformedError(f"not UTF-8 at byte {problem.start}") from None


@contextlib.contextmanager
def opened_regular(
    path: Path, error: type[JudgeError], max_bytes: int
) -> Iterator[IO[bytes] | None]:
    """Opens a regular file for reading; None if nothing has that name.

    Args:
        path: the file; a link to a regular file is accepted.
        error: the class of error to raise, also if the caller fails to read the file.
        max_bytes: a longer file is refused.

    Raises:
        JudgeError: of the class ``error``, as :func:`read_regular`.
    """
    try:
        file = _open(path, error, max_bytes)
    except FileNotFoundError:
        file = None
    except ValueError as problem:  # a NUL character in the name
        raise error(f"{path}: cannot be read: {problem}") from problem
    except OSError as problem:
        raise error(f"{path}: cannot be read: {problem.strerror or problem}") from problem
    if file is None:
        yield None
        return
    with file:
        try:
            yield file
        except OSError as problem:
            raise error(f"{path}: cannot be read: {problem.strerror or problem}") from problem


def _open(path: Path, error: type[JudgeError], max_bytes: int) -> IO[bytes]:
    # Checked before opening, since opening alone can block or have an effect.
    _check_regular(path.stat(), path, error, max_bytes)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    file = os.fdopen(descriptor, "rb")
    try:
        # The file may have been replaced since.
        _check_regular(os.fstat(descriptor), path, error, max_bytes)
    except BaseException:
        file.close()
        raise
    return file


def _check_regular(
    status: os.stat_result, path: Path, error: type[JudgeError], max_bytes: int
) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise error(
            f"{path}: {kind_of(status.st_mode)}, not a regular file",
            hint="Only regular files are read. Remove it, or put a file in its place.",
        )
    if status.st_size > max_bytes:
        raise too_long(path, error, max_bytes)


def kind_of(mode: int) -> str:
    """Returns the kind of something that is not a regular file, for messages."""
    for is_kind, name in (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISLNK, "a link"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
    ):
        if is_kind(mode):
            return name
    return "a device"


def too_long(path: Path, error: type[JudgeError], max_bytes: int) -> JudgeError:
    """Returns the exception to raise for a file that is too long."""
    return error(
        f"{path}: longer than {max_bytes // MIB:,} MiB",
        hint="The judge does not write such long files.",
    )


def utc_now() -> str:
    """Returns the current time in UTC to the second, in ISO 8601: ``2026-01-02T03:04:05+00:00``."""
    return datetime.now(UTC).isoformat(timespec="seconds")


_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""First characters of a formula for a spreadsheet program, including the full-width forms."""


def as_csv_text(text: str) -> str:
    """Changes text so that a spreadsheet program never reads it as a formula.

    Text that the program would take for a formula gets a leading apostrophe, as OWASP advises.
    """
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def of_csv_text(text: str) -> str:
    """Restores the original of text from :func:`as_csv_text`."""
    return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA_STARTS) else text
