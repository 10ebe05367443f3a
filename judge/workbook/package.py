"""The container of a workbook: a zip archive of parts, opened with hard bounds.

A solution may have written the file, so nothing in it is trusted: entries are checked before
anything is inflated, and bytes are counted while they are inflated.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from judge.errors import WorkbookError
from judge.workbook.archive import STORED, Entry, packed, read_entries
from judge.workbook.budget import DEFAULT_LIMITS, Budget, ReadLimits

_CHUNK_BYTES = 1 << 16
_CHUNKS_BETWEEN_CLOCKS = 8


class Package:
    """A workbook's archive.

    Args:
        data: the file's bytes.
        limits: bounds on what reading may cost.

    Raises:
        WorkbookError: not a zip archive, encrypted, or over a limit; the message says which.
    """

    def __init__(self, data: bytes, limits: ReadLimits = DEFAULT_LIMITS) -> None:
        self._data = data
        self._namespace: str | None = None
        self.budget = Budget(limits)
        if len(data) > limits.file_bytes:
            raise WorkbookError(
                f"the file has {len(data):,} bytes, more than {limits.file_bytes:,} are not read"
            )
        self._entries = {
            read_entry.name: read_entry for read_entry in read_entries(data, most=limits.entries)
        }
        for entry in self._entries.values():
            _check_size(entry, limits)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Marks errors of reading from this archive as its own: two are often read together."""
        try:
            yield
        except WorkbookError as error:
            if error.culprit is None:
                error.culprit = self
            raise

    def agree_on_namespace(self, uri: str, part: str) -> None:
        """Called with the main namespace of each part, the transitional or the strict one.

        Raises:
            WorkbookError: another part has the other one; openpyxl reads only the transitional one.
        """
        if self._namespace not in {None, uri}:
            raise WorkbookError(
                f"{part} is not in the namespace of the workbook's other parts: one is the "
                "transitional, the other the strict one"
            )
        self._namespace = uri

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all entries, in the archive's order."""
        return tuple(self._entries)

    def inflated_size(self, name: str) -> int:
        """Bytes of a part as the archive declares them; 0 if there is no such part."""
        entry = self._entries.get(name)
        return 0 if entry is None else entry.bytes

    def read(self, name: str) -> bytes:
        """The whole of a part.

        Raises:
            WorkbookError: there is no such part, it is broken, or over a limit.
        """
        return b"".join(self.chunks(name))

    def chunks(self, name: str) -> Iterator[bytes]:
        """A part in pieces of about 64 KiB, inflated as they are requested.

        Raises:
            WorkbookError: there is no such part, it is broken, or over a limit.
        """
        entry = self._entries.get(name)
        if entry is None:
            raise WorkbookError(f"the workbook lacks its part {name}")
        body = packed(self._data, entry)
        inflate = self._stored if entry.method == STORED else self._inflated
        budget = self.budget
        started = time.thread_time()
        for number, chunk in enumerate(inflate(entry, body)):
            budget.take_bytes(len(chunk))
            yield chunk
            # The time that the caller spends on a chunk is reading time too. Reading the clock is
            # not free, so it is not read after every chunk.
            if number % _CHUNKS_BETWEEN_CLOCKS == 0:
                now = time.thread_time()
                budget.take_seconds(now - started)
                started = now
        budget.take_seconds(time.thread_time() - started)

    def _stored(self, entry: Entry, body: memoryview) -> Iterator[bytes]:
        if entry.bytes != entry.packed_bytes:
            raise WorkbookError(f"the archive is broken: sizes of {entry.name} disagree")
        checksum = 0
        for start in range(0, len(body), _CHUNK_BYTES):
            chunk = bytes(body[start : start + _CHUNK_BYTES])
            checksum = zlib.crc32(chunk, checksum)
            yield chunk
        _check_checksum(entry, checksum)

    def _inflated(self, entry: Entry, body: memoryview) -> Iterator[bytes]:
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        left = entry.bytes
        position = checksum = 0
        pending: bytes | memoryview = b""
        while not inflater.eof:
            if not pending:
                pending = body[position : position + _CHUNK_BYTES]
                position += _CHUNK_BYTES
            try:
                chunk = inflater.decompress(pending, _CHUNK_BYTES)
            except zlib.error as error:
                raise WorkbookError(f"{entry.name} cannot be inflated: {error}") from error
            if not chunk and not pending and not inflater.eof:
                raise WorkbookError(f"the archive is cut short inside {entry.name}")
            pending = inflater.unconsumed_tail
            left -= len(chunk)
            if left < 0:
                raise WorkbookError(f"{entry.name} inflates to more bytes than it declares")
            if chunk:
                checksum = zlib.crc32(chunk, checksum)
                yield chunk
        if left:
            raise WorkbookError(f"{entry.name} inflates to fewer bytes than it declares")
        _check_checksum(entry, checksum)


def _check_checksum(entry: Entry, checksum: int) -> None:
    """Called when a part was read to its end: data that was damaged on the way is not an answer."""
    if checksum != entry.checksum:
        raise WorkbookError(
            f"{entry.name} is damaged: its checksum is not that of the archive",
            hint="Write or copy the file again.",
        )


def _check_size(entry: Entry, limits: ReadLimits) -> None:
    if entry.bytes > limits.part_bytes:
        raise WorkbookError(
            f"{entry.name} inflates to {entry.bytes:,} bytes, more than {limits.part_bytes:,}"
        )
    if entry.bytes > limits.ratio_floor_bytes and entry.bytes > limits.ratio * entry.packed_bytes:
        raise WorkbookError(
            f"{entry.name} inflates {entry.bytes // max(1, entry.packed_bytes):,} times; "
            f"more than {limits.ratio} times is not read"
        )
