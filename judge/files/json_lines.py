"""Reads files of lines, most of them JSON; follows files that grow; appends lines.

If a process dies in the middle of a write, the last line may be incomplete, without its line end.
Readers can ignore such a line, and it is cut off before the next line is appended.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from judge.errors import JudgeError, StoreError
from judge.files.documents import (
    BOM,
    MIB,
    MalformedError,
    as_object,
    has_more_values,
    opened_regular,
    parse_json,
    read_regular,
    too_long,
)
from judge.files.writing import open_to_write, sync_folder

MAX_LINE_BYTES = 64 * MIB
"""Longest record; writers check it with :func:`fits_a_line`."""

MAX_LINE_VALUES = 1_000_000
"""How many JSON values a record may have; they take about 100 MB in memory."""

MAX_LINES_BYTES = 64 * 1024 * MIB
"""Longest file, in bytes: a million cases take a few gigabytes. No file is held in memory as a
whole."""


def fits_a_line(text: str) -> bool:
    """Returns whether a record, as JSON, is within the limits of readers."""
    if 4 * len(text) > MAX_LINE_BYTES < len(text.encode("utf-8")):
        return False
    return not has_more_values(text, MAX_LINE_VALUES)


def read_lines(path: Path, error: type[JudgeError]) -> Iterator[tuple[int, bytes]]:
    """Yields the non-blank lines of a regular file, numbered from 1; none if there is no file.

    Args:
        path: the file.
        error: the class of error to raise.

    Raises:
        JudgeError: of the class ``error``, as :func:`judge.files.documents.read_regular`, and if a
            line is too long.
    """
    for number, _, line in read_placed_lines(path, error):
        yield number, line


def read_placed_lines(
    path: Path, error: type[JudgeError], *, whole: bool = False
) -> Iterator[tuple[int, int, bytes]]:
    """Yields the lines of :func:`read_lines`, each with its offset in the file.

    A line ends at its offset plus its length.
    """
    with opened_regular(path, error, MAX_LINES_BYTES) as file:
        if file is None:
            return
        number, offset = 0, 0
        while line := file.readline(MAX_LINE_BYTES + 2):
            start, offset, number = offset, offset + len(line), number + 1
            if offset > MAX_LINES_BYTES:  # the file grew, or reported no size
                raise too_long(path, error, MAX_LINES_BYTES)
            if len(line) > MAX_LINE_BYTES + 1:
                raise error(
                    f"{path}, line {number}: longer than {MAX_LINE_BYTES // MIB} MiB",
                    hint="Records are never that long. Remove the line.",
                )
            if whole and not line.endswith(b"\n"):
                return
            if number == 1 and line.startswith(BOM):
                start, line = start + len(BOM), line.removeprefix(BOM)
            if line.strip():
                yield number, start, line.removesuffix(b"\n")


class LinesAt:
    """Reads single lines of a file again, by their known offsets.

    Safe to use from several threads. The file is opened when the first line is read.

    Args:
        path: the file.
        error: the class of error to raise.
    """

    def __init__(self, path: Path, error: type[JudgeError]) -> None:
        self.path = path
        self._error = error
        self._stack = contextlib.ExitStack()
        self._opening = threading.Lock()
        self._file: IO[bytes] | None = None

    def read(self, offset: int, length: int) -> bytes:
        """Reads a line by its offset and its length.

        Raises:
            JudgeError: of the class ``error``: the file cannot be read, or has become shorter.
        """
        with self._opening:
            if self._file is None:
                opened = opened_regular(self.path, self._error, MAX_LINES_BYTES)
                self._file = self._stack.enter_context(opened)
            file = self._file
        data = b"" if file is None else os.pread(file.fileno(), length, offset)
        if len(data) < length:
            raise self._error(
                f"{self.path}: has changed while it was in use", hint="Run the command again."
            )
        return data

    def close(self) -> None:
        """Closes the file; safe to call twice."""
        with self._opening:
            self._file = None
            self._stack.close()


def read_json_lines(
    path: Path, error: type[JudgeError], *, whole: bool = False
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields the objects of a .jsonl file with their line numbers; none if there is no file.

    Arguments and errors are those of :func:`read_lines`; a line that is not a JSON object is also
    an error.
    """
    for number, _, _, record in read_placed_json_lines(path, error, whole=whole):
        yield number, record


def read_placed_json_lines(
    path: Path, error: type[JudgeError], *, whole: bool = False
) -> Iterator[tuple[int, int, int, dict[str, Any]]]:
    """Yields the objects of a .jsonl file, each with the offset and the length of its line."""
    for number, offset, line in read_placed_lines(path, error, whole=whole):
        try:
            record = as_object(parse_json(line, max_values=MAX_LINE_VALUES))
        except MalformedError as problem:
            hint = _HINT_FOR_RECORDS if issubclass(error, StoreError) else _HINT_FOR_OTHERS
            raise error(f"{path}, line {number}: {problem}", hint=hint) from problem
        yield number, offset, len(line), record


_HINT_FOR_RECORDS = (
    "It was not written by the judge. Remove the line and run the command again: it makes missing "
    "records again."
)
_HINT_FOR_OTHERS = "Correct the line: each line has to be one JSON object."


class GrowingLines:
    """Follows a file that others append lines to; returns each line once.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self, error: type[JudgeError]) -> tuple[list[bytes], bool]:
        """Reads the lines appended since the last call.

        Args:
            error: the class of error to raise.

        Returns:
            The complete lines, and whether a shorter file has replaced the file. In that case, the
            lines are the first ones of the new file.

        Raises:
            JudgeError: of the class ``error``, as :func:`judge.files.documents.read_regular`.
        """
        try:
            replaced = self._path.stat().st_size < self._offset
        except OSError:
            return [], False
        if replaced:
            self._offset = 0
        data = read_regular(self._path, error, start=self._offset) or b""
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return whole.split(b"\n")[:-1], replaced


class LineAppender:
    """Appends lines to a file; no line is left incomplete, however the process ends.

    Not safe for several threads or processes at a time: the caller must hold a lock.

    Args:
        path: the file, in an existing folder; a link to a regular file is accepted.
        mode: permissions of a new file, before the umask of the process is applied.
        durable: whether :meth:`append` returns only when the line is on disk, and not just passed
            to the kernel.

    Raises:
        OSError: it is not a regular file, or cannot be written.
    """

    def __init__(self, path: Path, *, mode: int = 0o666, durable: bool = False) -> None:
        self._durable = durable
        self._new_in = None if path.exists() else path.parent
        self._descriptor: int | None = open_to_write(path, os.O_RDWR | os.O_CREAT, mode)
        try:
            _cut_torn_line(self._descriptor)
        except BaseException:
            self.close()
            raise

    def append(self, line: bytes) -> int:
        """Appends a line; adds the line end.

        Returns:
            The new size of the file, in bytes.

        Raises:
            OSError: the line cannot be written; then no part of it is in the file.
        """
        assert self._descriptor is not None
        end = os.lseek(self._descriptor, 0, os.SEEK_END)
        try:
            # On a full disk, a write may store a part of the data without an error.
            rest = memoryview(line + b"\n")
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            if self._durable:
                self.sync()
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, end)
            raise
        return end + len(line) + 1

    def sync(self) -> None:
        """Waits until all lines so far are on disk.

        Raises:
            OSError: they cannot be written to disk.
        """
        assert self._descriptor is not None
        os.fsync(self._descriptor)
        if self._new_in is not None:
            sync_folder(self._new_in)
            self._new_in = None

    def status(self) -> os.stat_result:
        """Returns the status of the open file, even if another file now has its name."""
        assert self._descriptor is not None
        return os.fstat(self._descriptor)

    def close(self) -> None:
        """Closes the file; safe to call twice."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _cut_torn_line(descriptor: int) -> None:
    """Truncates a file after its last complete line."""
    size = end = os.fstat(descriptor).st_size
    while end:
        start = max(end - MIB, 0)
        line_end = os.pread(descriptor, end - start, start).rfind(b"\n")
        if line_end >= 0:
            end = start + line_end + 1
            break
        end = start
    if end < size:
        os.ftruncate(descriptor, end)
