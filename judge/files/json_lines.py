"""Files of lines, most of them JSON: read, read on while they grow, and appended to.

A process that dies in the middle of a write leaves at most a torn last line, one without its end.
Readers can leave it out, and it is cut off before the next line is appended.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judge.errors import JudgeError
from judge.files.documents import (
    BOM,
    MIB,
    MOST_FILE_BYTES,
    MalformedError,
    as_object,
    opened_regular,
    parse_json,
    read_regular,
    too_long,
)
from judge.files.writing import open_to_write, sync_folder

MOST_LINE_BYTES = 64 * MIB
"""One record."""


def read_lines(
    path: Path, error: type[JudgeError], *, whole: bool = False
) -> Iterator[tuple[int, bytes]]:
    """The lines of a regular file that are not blank, numbered from 1; none where there is no file.

    Args:
        path: the file.
        error: what to raise.
        whole: whether a last line without its end, which a crash left torn, is left out.

    Raises:
        JudgeError: of the class ``error``, as :func:`judge.files.documents.read_regular`, and where
            a line is too long.
    """
    with opened_regular(path, error, MOST_FILE_BYTES) as file:
        if file is None:
            return
        number, left = 0, MOST_FILE_BYTES
        while line := file.readline(MOST_LINE_BYTES + 2):
            number, left = number + 1, left - len(line)
            if left < 0:  # a file that grows while it is read, or that has no size of its own
                raise too_long(path, error, MOST_FILE_BYTES)
            if len(line) > MOST_LINE_BYTES + 1:
                raise error(
                    f"{path}, line {number}: longer than {MOST_LINE_BYTES // MIB} MiB",
                    hint="Records are never that long. Remove the line.",
                )
            if whole and not line.endswith(b"\n"):
                return
            if number == 1:
                line = line.removeprefix(BOM)
            if line.strip():
                yield number, line.removesuffix(b"\n")


def read_json_lines(
    path: Path, error: type[JudgeError], *, whole: bool = False
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a .jsonl file with their line numbers; none where there is no file.

    Args, and what is raised, as :func:`read_lines`; a line that is not a JSON object is named.
    """
    for number, line in read_lines(path, error, whole=whole):
        try:
            record = as_object(parse_json(line))
        except MalformedError as problem:
            raise error(
                f"{path}, line {number}: {problem}",
                hint="It was not written by the judge. Remove the line and run the "
                "command again: what is missing is made again.",
            ) from problem
        yield number, record


class GrowingLines:
    """The lines of a file that others append to, each given once.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self, error: type[JudgeError]) -> tuple[list[bytes], bool]:
        """What was appended since the last call.

        Args:
            error: what to raise.

        Returns:
            The lines, without one that is still being written; and whether the file was replaced
            by a shorter one, of which these are the first lines.

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
    """Appends lines to a file, each in whole, whatever ends the process.

    Not safe for several threads, or several processes, at a time: the caller holds a lock.

    Args:
        path: the file, in a folder that is there; a link to a regular file is one.
        mode: who may read and write a new file, less what the process withholds (its umask).
        durable: whether a line is on the disk, not only with the kernel, when :meth:`append`
            returns.

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

    def append(self, line: bytes) -> None:
        """Appends a line, whose end is put in here.

        Raises:
            OSError: it cannot be written; nothing of it is in the file then.
        """
        assert self._descriptor is not None
        end = os.lseek(self._descriptor, 0, os.SEEK_END)
        try:
            # A write to a full disk may take a part of the data without an error.
            rest = memoryview(line + b"\n")
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            if self._durable:
                os.fsync(self._descriptor)
                if self._new_in is not None:
                    sync_folder(self._new_in)
                    self._new_in = None
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, end)
            raise

    def close(self) -> None:
        """Closes the file; safe to call twice."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _cut_torn_line(descriptor: int) -> None:
    """Ends a file after its last whole line."""
    size = end = os.fstat(descriptor).st_size
    while end:
        start = max(end - MIB, 0)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            end = start + found + 1
            break
        end = start
    if end < size:
        os.ftruncate(descriptor, end)
