"""The container of a workbook: a zip archive of parts, opened with hard bounds.

A solution may have written the file, so nothing in it is trusted. The directory of the archive is
read from its bytes and checked entry by entry before anything is inflated, and bytes are counted
while they are inflated.

Programs find the entries of an archive in different ways: through its directory or through the
header before each entry, from the first or the last end record, with or without regard to the case
of names. An archive that two programs would read differently is refused: it could show one workbook
to the comparison and another one to a person. No program writes such archives on purpose.
"""

from __future__ import annotations

import hashlib
import re
import struct
import time
import zlib
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import unquote

from judge.console import clipped
from judge.errors import WorkbookError
from judge.workbook.address import folded
from judge.workbook.budget import DEFAULT_LIMITS, Budget, ReadLimits

STORED = 0
DEFLATED = 8

_ENCRYPTED_FLAG = 0x1
_UTF8_FLAG = 0x800
_OLE2_SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_END_SIGNATURE = b"PK\x05\x06"
_END = struct.Struct("<4s4H2IH")
_END_64_SIGNATURE = b"PK\x06\x06"
_END_64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR_64_SIGNATURE = b"PK\x06\x07"
_LOCATOR_64 = struct.Struct("<4sIQI")
_CENTRAL_SIGNATURE = b"PK\x01\x02"
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_LOCAL_SIGNATURE = b"PK\x03\x04"
_LOCAL = struct.Struct("<4s5H3I2H")
_LENGTHS = struct.Struct("<2H")
_MAX_COMMENT_LENGTH = 0xFFFF
_ENCRYPTED_STREAM = "EncryptedPackage".encode("utf-16-le")
_TEXT_SAMPLE_BYTES = 512
_PLAIN_TEXT = re.compile(rb"[\t\n\r\x20-\x7e\x80-\xff]+")
_IN_EXTRA_16 = 0xFFFF
_IN_EXTRA_32 = 0xFFFFFFFF
_ZIP64_EXTRA = 0x0001
_UNICODE_NAME_EXTRA = 0x7075
_UNICODE_NAME = struct.Struct("<BI")
_DESCRIPTOR_FLAG = 0x8
_MASKED_FLAG = 0x2000
_UNREAD_FLAGS = 0x20 | 0x40 | 0x8000
"""Flags for patches and strong encryption, and an undefined flag that LibreOffice refuses."""

_FLAGS_OF_BOTH = _ENCRYPTED_FLAG | _DESCRIPTOR_FLAG | _UTF8_FLAG | _MASKED_FLAG | _UNREAD_FLAGS
_NEWEST_VERSION = 63
"""Newest version of the zip format that is read, times ten; Python reads no newer one."""
_DESCRIPTOR_SIGNATURE = b"PK\x07\x08"
_READ_AS_TEXT = (".xml", ".rels", ".vml")
_PLAIN_NAME = re.compile(r"(?:\w[\w.-]*+/)*+\w[\w.-]*+")
_PIECE = re.compile(r"/\[[0-9]+\](?:\.last)?\.piece\Z", re.IGNORECASE)
_ODD_CHARACTER = re.compile(r"[\x00-\x1f\x7f\\]")
_AMBIGUOUS_HINT = "Write the workbook with another program, or once more with this one."


class Entry(NamedTuple):
    """One entry of an archive.

    Attributes:
        name: its name.
        encoded_name: the bytes of its name in the archive.
        method: how it is packed, :data:`STORED` or :data:`DEFLATED`.
        packed_bytes: its size in the archive.
        bytes: its declared size when inflated.
        offset: where its local header begins.
        checksum: CRC-32 of what it inflates to.
        flags: its general purpose flags.
        record: where its record in the directory begins.
    """

    name: str
    encoded_name: bytes
    method: int
    packed_bytes: int
    bytes: int
    offset: int
    checksum: int
    flags: int
    record: int


def read_entries(data: bytes, *, max_entries: int) -> list[Entry]:
    """The entries of an archive, in the order of its directory.

    Args:
        data: the file.
        max_entries: how many entries there may be.

    Raises:
        WorkbookError: the file is not an archive, is broken, has too many entries, has an entry
            that is encrypted or packed by a method that workbooks do not use, or could be read
            differently by two programs.
    """
    if not data:
        raise WorkbookError("the file is empty")
    _refuse_other_formats(data)
    try:
        count, size, offset = _directory(data)
        if count > max_entries:
            raise WorkbookError(f"the archive has more than {max_entries:,} entries")
        entries = _entries(data, count, offset, size)
        _check_names(entries)
        _check_places(data, entries, offset)
    except struct.error as error:
        raise WorkbookError(f"the archive's directory is broken: {error}") from error
    return entries


def _ambiguous(reason: str) -> WorkbookError:
    return WorkbookError(f"the archive can be read in two ways: {reason}", hint=_AMBIGUOUS_HINT)


def _refuse_other_formats(data: bytes) -> None:
    """Raises an error that names the kind of file, if the file is recognised as something else."""
    if data.startswith(_OLE2_SIGNATURE):
        if _ENCRYPTED_STREAM in data:
            raise WorkbookError(
                "the workbook is encrypted with a password", hint="Save it without a password."
            )
        raise WorkbookError(
            "the file is an old binary workbook (.xls), not an .xlsx package",
            hint="Save it as .xlsx; giving it another name does not convert it.",
        )
    start = data[:_TEXT_SAMPLE_BYTES]
    if not data.startswith(b"PK") and _PLAIN_TEXT.fullmatch(start) is not None:
        kind = "HTML or XML" if start.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"<") else "text"
        raise WorkbookError(
            f"the file is {kind}, not an .xlsx package",
            hint="Save it as .xlsx; giving it another name does not convert it.",
        )


def _directory(data: bytes) -> tuple[int, int, int]:
    """The number of entries in the directory, its size and its offset."""
    end = data.rfind(_END_SIGNATURE, max(0, len(data) - _END.size - _MAX_COMMENT_LENGTH))
    if end < 0:
        raise WorkbookError("not a zip archive, or one that was cut short: it has no directory")
    _, disk, first_disk, here, count, size, offset, comment = _END.unpack_from(data, end)
    if end + _END.size + comment != len(data):
        raise _ambiguous("its end record is not at the end of the file")
    _check_single_end(data, end)
    stop = end
    locator = end - _LOCATOR_64.size
    if locator >= 0 and data.startswith(_LOCATOR_64_SIGNATURE, locator):
        narrow = (here, count, size, offset)
        end_64 = locator - _END_64.size
        if end_64 < 0 or not data.startswith(_END_64_SIGNATURE, end_64):
            raise WorkbookError("the archive's directory is broken: no 64-bit end record")
        *_, disk, first_disk, here, count, size, offset = _END_64.unpack_from(data, end_64)
        _, _, start, _ = _LOCATOR_64.unpack_from(data, locator)
        ones = (_IN_EXTRA_16, _IN_EXTRA_16, _IN_EXTRA_32, _IN_EXTRA_32)
        wide = (here, count, size, offset)
        sizes = zip(narrow, ones, wide, strict=True)
        if start != end_64 or any(short not in {all_ones, long} for short, all_ones, long in sizes):
            raise _ambiguous("its two end records disagree")
        stop = end_64
    if disk or first_disk or here != count:
        raise WorkbookError("the archive is one part of a split archive")
    if offset + size > stop:
        raise WorkbookError("the archive's directory is broken: it is outside the file")
    if offset + size < stop:
        # For example after the program of a self-extractor: some readers count offsets from its
        # end, others do not.
        raise _ambiguous("its directory is not where its end record says")
    return count, size, offset


def _check_single_end(data: bytes, end: int) -> None:
    """Refuses a second end record that would also be valid: some programs take the first one."""
    start = max(0, len(data) - _END.size - _MAX_COMMENT_LENGTH)
    other = data.find(_END_SIGNATURE, start)
    while 0 <= other < end:
        if other + _END.size + _END.unpack_from(data, other)[-1] == len(data):
            raise _ambiguous("it has two end records")
        other = data.find(_END_SIGNATURE, other + 1)


def _entries(data: bytes, count: int, start: int, size: int) -> list[Entry]:
    entries = []
    position, stop = start, start + size
    for _ in range(count):
        fields = _CENTRAL.unpack_from(data, position)
        signature, _, version, flags, method, _, _, checksum, packed_bytes, plain_bytes = fields[
            :10
        ]
        name_length, extra_length, comment_length, _, _, _, offset = fields[10:]
        record = position
        position += _CENTRAL.size
        following = position + name_length + extra_length + comment_length
        if signature != _CENTRAL_SIGNATURE or following > stop:
            raise WorkbookError("the archive's directory is broken: an entry is not valid")
        encoded = data[position : position + name_length]
        name = encoded.decode("utf-8" if flags & _UTF8_FLAG else "cp437", "replace")
        if extra_length:
            extra = data[position + name_length : position + name_length + extra_length]
            _check_other_name(extra, encoded, name)
            plain_bytes, packed_bytes, offset = _wide_fields(
                extra, plain_bytes, packed_bytes, offset
            )
        if flags & _ENCRYPTED_FLAG:
            raise WorkbookError(f"the archive's entry {_cut(name)} is encrypted")
        if flags & _UNREAD_FLAGS or version & 0xFF > _NEWEST_VERSION:
            raise WorkbookError(
                f"the archive's entry {_cut(name)} has the flags {flags:#06x} and needs version "
                f"{(version & 0xFF) / 10} of the format, which programs read differently",
                hint=_AMBIGUOUS_HINT,
            )
        if method not in {STORED, DEFLATED}:
            raise WorkbookError(
                f"the archive's entry {_cut(name)} is packed with method {method}; "
                "workbooks use deflate"
            )
        entries.append(
            Entry(name, encoded, method, packed_bytes, plain_bytes, offset, checksum, flags, record)
        )
        position = following
    if position != stop:
        raise _ambiguous("its directory holds more than the entries that are counted")
    return entries


def _extra_fields(extra: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the kind and content of the extra fields of an entry.

    Raises:
        WorkbookError: a field is longer than the space for all fields.
    """
    position = 0
    while position + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, position)
        position += 4
        if position + length > len(extra):
            raise WorkbookError(f"the archive is broken: an extra field {kind:#06x} is cut short")
        yield kind, extra[position : position + length]
        position += length


def _wide_fields(extra: bytes, *fields: int) -> tuple[int, ...]:
    """Sizes and offset of an entry, taken from the 64-bit field if it has them."""
    if _IN_EXTRA_32 in fields:
        for kind, content in _extra_fields(extra):
            if kind == _ZIP64_EXTRA:
                wide = list(struct.unpack_from(f"<{len(content) // 8}Q", content))
                return tuple(
                    wide.pop(0) if field == _IN_EXTRA_32 and wide else field for field in fields
                )
    return fields


# -- entries that two programs could read differently ----------------------------------------------


def _check_names(entries: list[Entry]) -> None:
    """Refuses names that some program treats as the same, and names that leave the archive."""
    seen: dict[str, str] = {}
    encoded: set[bytes] = set()
    for entry in entries:
        name = entry.name.removesuffix("/")
        if entry.encoded_name in encoded:
            raise _ambiguous(f"{_cut(name)} is in it twice")
        encoded.add(entry.encoded_name)
        if _PLAIN_NAME.fullmatch(name) is None and (
            _ODD_CHARACTER.search(name)
            or any(segment in {"", ".", ".."} for segment in name.split("/"))
        ):
            raise WorkbookError(
                f"the archive's entry {_cut(entry.name)!a} has a name that is not a plain path",
                hint=_AMBIGUOUS_HINT,
            )
        if "[" in name and _PIECE.search(name):
            raise _ambiguous(
                f"{_cut(name)} is one of several pieces, which some programs join to a part"
            )
        if not entry.encoded_name.isascii():
            is_text = name.casefold().endswith(_READ_AS_TEXT)
            if (is_text and not entry.flags & _UTF8_FLAG) or "\ufffd" in name:
                raise _ambiguous(f"nothing says how the name {_cut(name)} is encoded")
        # By the package convention, names that differ only in case or escapes are the same.
        key = folded(unquote(name) if "%" in name else name)
        if key in seen:
            reason = (
                f"{_cut(name)} is in it twice"
                if seen[key] == name
                else f"{_cut(seen[key])} and {_cut(name)} are one name"
            )
            raise _ambiguous(reason)
        seen[key] = name


def _check_other_name(extra: bytes, encoded: bytes, name: str) -> None:
    """Refuses a second name in an extra field, which some programs use in place of the first."""
    for kind, content in _extra_fields(extra):
        if kind == _UNICODE_NAME_EXTRA and content[_UNICODE_NAME.size :] != encoded:
            raise _ambiguous(f"{_cut(name)} has a second name next to its own")


def _check_places(data: bytes, entries: list[Entry], directory: int) -> None:
    """Refuses entries that overlap, and headers that contradict the directory."""
    position = 0
    for entry in sorted(entries, key=lambda item: item.offset):
        if entry.offset < position:
            raise _ambiguous(f"{_cut(entry.name)} overlaps another entry")
        if entry.offset > position and (
            position == 0 or data.startswith(_LOCAL_SIGNATURE, position)
        ):
            raise _ambiguous(f"the bytes before {_cut(entry.name)} are not in the directory")
        position = _end_of(data, entry)
        if position > directory:
            raise WorkbookError(f"the archive is cut short inside {_cut(entry.name)}")
    if position != directory:
        raise _ambiguous("there is something between its entries and its directory")


def _end_of(data: bytes, entry: Entry) -> int:
    """Checks the header of an entry against the directory, and returns where the entry ends."""
    start = _start_of(data, entry)
    named = entry.offset + _LOCAL.size
    if (
        start == named + len(entry.encoded_name)
        and not entry.flags & _DESCRIPTOR_FLAG
        and data[entry.offset + 4 : entry.offset + 28] == data[entry.record + 6 : entry.record + 30]
        and data.startswith(entry.encoded_name, named)
    ):
        return start + entry.packed_bytes  # word for word what the directory says
    _, _, flags, method, _, _, *sizes, name_length, _ = _LOCAL.unpack_from(data, entry.offset)
    if data[named : named + name_length] != entry.encoded_name:
        raise _ambiguous(
            f"the header of {_cut(entry.name)} has a different name than the directory"
        )
    extra = data[named + name_length : start]
    if extra:
        _check_other_name(extra, entry.encoded_name, entry.name)
    checksum, packed_bytes, plain_bytes = sizes
    plain_bytes, packed_bytes = _wide_fields(extra, plain_bytes, packed_bytes)
    described = (checksum, packed_bytes, plain_bytes)
    listed = (entry.checksum, entry.packed_bytes, entry.bytes)
    if flags & _DESCRIPTOR_FLAG:
        # In an entry that was written as a stream, the sizes are 0 and follow after its data.
        agree = all(
            size in {0, _IN_EXTRA_32, other} for size, other in zip(described, listed, strict=True)
        )
    else:
        agree = described == listed
    if (
        not agree
        or method != entry.method
        or flags & _FLAGS_OF_BOTH != entry.flags & _FLAGS_OF_BOTH
    ):
        raise _ambiguous(f"the header of {_cut(entry.name)} contradicts the directory")
    stop = start + entry.packed_bytes
    return stop + _descriptor_bytes(data, stop, entry) if flags & _DESCRIPTOR_FLAG else stop


def _descriptor_bytes(data: bytes, start: int, entry: Entry) -> int:
    """Length of the record after an entry that was written as a stream."""
    for sizes in ("<3I", "<I2Q"):
        for signature in (_DESCRIPTOR_SIGNATURE, b""):
            try:
                record = signature + struct.pack(
                    sizes, entry.checksum, entry.packed_bytes, entry.bytes
                )
            except struct.error:
                continue  # sizes that take 64 bits
            if data.startswith(record, start):
                return len(record)
    raise _ambiguous(f"the record after {_cut(entry.name)} contradicts the directory")


def packed(data: bytes, entry: Entry) -> memoryview:
    """The packed bytes of an entry.

    Raises:
        WorkbookError: there is no entry at its position, or it is cut short.
    """
    start = _start_of(data, entry)
    return memoryview(data)[start : start + entry.packed_bytes]


def _start_of(data: bytes, entry: Entry) -> int:
    """The offset at which the packed bytes of an entry begin."""
    behind = entry.offset + _LOCAL.size
    if len(data) < behind or not data.startswith(_LOCAL_SIGNATURE, entry.offset):
        raise WorkbookError(f"the archive is broken: no entry where {_cut(entry.name)} should be")
    name_length, extra_length = _LENGTHS.unpack_from(data, behind - _LENGTHS.size)
    start: int = behind + name_length + extra_length
    if start + entry.packed_bytes > len(data):
        raise WorkbookError(f"the archive is cut short inside {_cut(entry.name)}")
    return start


def _cut(name: str) -> str:
    return clipped(name, 80)


_CHUNK_BYTES = 1 << 16
_CHUNKS_BETWEEN_CLOCKS = 8


class Package:
    """A workbook's archive.

    Args:
        data: the file's bytes.
        limits: bounds on what reading may cost.

    Raises:
        WorkbookError: the file is not a zip archive, is encrypted, or exceeds a limit; the message
            says which.
    """

    def __init__(self, data: bytes, limits: ReadLimits = DEFAULT_LIMITS) -> None:
        self._data = data
        self._namespace: str | None = None
        self._with_namespace: set[str] = set()
        self.budget = Budget(limits)
        if len(data) > limits.file_bytes:
            raise WorkbookError(
                f"the file has {len(data):,} bytes, more than {limits.file_bytes:,} are not read"
            )
        self._entries = {
            read_entry.name: read_entry
            for read_entry in read_entries(data, max_entries=limits.entries)
        }
        for entry in self._entries.values():
            _check_size(entry, limits)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Attributes errors in the block to this archive: often, two are read together."""
        try:
            yield
        except WorkbookError as error:
            if error.culprit is None:
                error.culprit = self
            raise

    def agree_on_namespace(self, uri: str, part: str) -> None:
        """Called with the main namespace of each part, which is transitional or strict.

        Raises:
            WorkbookError: another part has the other namespace; openpyxl reads only the
                transitional one.
        """
        if self._namespace not in {None, uri}:
            raise WorkbookError(
                f"{part} is not in the namespace of the workbook's other parts: one is the "
                "transitional, the other the strict one"
            )
        self._namespace = uri
        self._with_namespace.add(part)

    def namespace_of(self, part: str) -> str | None:
        """The main namespace with which :meth:`agree_on_namespace` was called for a part."""
        return self._namespace if part in self._with_namespace else None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all entries, in the archive's order."""
        return tuple(self._entries)

    def inflated_size(self, name: str) -> int:
        """The size of a part in bytes, as the archive declares it; 0 if there is no such part."""
        entry = self._entries.get(name)
        return 0 if entry is None else entry.bytes

    def packed_form(self, name: str) -> Hashable:
        """A short key of a part that decides how it is inflated: equal keys mean equal bytes.

        Raises:
            WorkbookError: the part is cut short.
        """
        entry = self._entries[name]
        digest = hashlib.sha256(packed(self._data, entry)).digest()
        return digest, entry.method, entry.bytes, entry.checksum, self.budget.limits

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
            # The caller's time for a chunk counts as reading time too. Reading the clock takes
            # time, so it is not read after every chunk.
            if number % _CHUNKS_BETWEEN_CLOCKS == _CHUNKS_BETWEEN_CLOCKS - 1:
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
    """Called at the end of a part: refuses a part whose data is damaged."""
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
