"""The directory of a zip archive, read straight from its bytes and checked entry by entry."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from judge.errors import WorkbookError

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
_LONGEST_COMMENT = 0xFFFF
_ENCRYPTED_STREAM = "EncryptedPackage".encode("utf-16-le")
_TEXT_SAMPLE_BYTES = 512
_PLAIN_TEXT = re.compile(rb"[\t\n\r\x20-\x7e\x80-\xff]+")
_IN_EXTRA_32 = 0xFFFFFFFF
_ZIP64_EXTRA = 0x0001


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of an archive.

    Attributes:
        name: its name.
        method: how it is packed, :data:`STORED` or :data:`DEFLATED`.
        packed_bytes: its size in the archive.
        bytes: its declared size when inflated.
        offset: where its local header begins.
        checksum: CRC-32 of what it inflates to.
    """

    name: str
    method: int
    packed_bytes: int
    bytes: int
    offset: int
    checksum: int


def read_entries(data: bytes, *, most: int) -> list[Entry]:
    """The entries of an archive, in the order of its directory.

    Args:
        data: the file.
        most: how many entries there may be.

    Raises:
        WorkbookError: not an archive, a broken one, one with too many entries, or an entry that is
            encrypted or packed in another way than workbooks are.
    """
    if not data:
        raise WorkbookError("the file is empty")
    _refuse_other_formats(data)
    try:
        count, size, offset, shift = _directory(data)
        if count > most:
            raise WorkbookError(f"the archive has more than {most:,} entries")
        return _entries(data, count, offset + shift, size, shift)
    except struct.error as error:
        raise WorkbookError(f"the archive's directory is broken: {error}") from error


def _refuse_other_formats(data: bytes) -> None:
    """Says of a file that is no archive what it is instead, where that can be told."""
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


def _directory(data: bytes) -> tuple[int, int, int, int]:
    """Number of entries, size and offset of the directory, and what all offsets lack."""
    end = data.rfind(_END_SIGNATURE, max(0, len(data) - _END.size - _LONGEST_COMMENT))
    if end < 0:
        raise WorkbookError("not a zip archive, or one that was cut short: it has no directory")
    _, disk, first_disk, _, count, size, offset, _ = _END.unpack_from(data, end)
    stop = end
    locator = end - _LOCATOR_64.size
    if locator >= 0 and data.startswith(_LOCATOR_64_SIGNATURE, locator):
        end_64 = locator - _END_64.size
        if end_64 < 0 or not data.startswith(_END_64_SIGNATURE, end_64):
            raise WorkbookError("the archive's directory is broken: no 64-bit end record")
        *_, disk, first_disk, _, count, size, offset = _END_64.unpack_from(data, end_64)
        stop = end_64
    if disk or first_disk:
        raise WorkbookError("the archive is a part of one that was split")
    # Bytes before the archive (a self-extractor's program) shift everything in it.
    shift = stop - size - offset
    if shift < 0:
        raise WorkbookError("the archive's directory is broken: it lies outside of the file")
    return count, size, offset, shift


def _entries(data: bytes, count: int, start: int, size: int, shift: int) -> list[Entry]:
    entries = []
    position, stop = start, start + size
    for _ in range(count):
        fields = _CENTRAL.unpack_from(data, position)
        signature, _, _, flags, method, _, _, checksum, packed_bytes, plain_bytes = fields[:10]
        name_length, extra_length, comment_length, _, _, _, offset = fields[10:]
        position += _CENTRAL.size
        following = position + name_length + extra_length + comment_length
        if signature != _CENTRAL_SIGNATURE or following > stop:
            raise WorkbookError("the archive's directory is broken: an entry is no entry")
        encoded = data[position : position + name_length]
        name = encoded.decode("utf-8" if flags & _UTF8_FLAG else "cp437", "replace")
        if _IN_EXTRA_32 in {packed_bytes, plain_bytes, offset}:
            extra = data[position + name_length : position + name_length + extra_length]
            plain_bytes, packed_bytes, offset = _wide_fields(
                extra, plain_bytes, packed_bytes, offset
            )
        if flags & _ENCRYPTED_FLAG:
            raise WorkbookError(f"the archive's entry {_cut(name)} is encrypted")
        if method not in {STORED, DEFLATED}:
            raise WorkbookError(
                f"the archive's entry {_cut(name)} is packed with method {method}; "
                "workbooks use deflate"
            )
        entries.append(Entry(name, method, packed_bytes, plain_bytes, offset + shift, checksum))
        position = following
    return entries


def _wide_fields(extra: bytes, *fields: int) -> tuple[int, int, int]:
    """Inflated size, packed size and offset, taken from the 64-bit field where they are there."""
    position = 0
    while position + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, position)
        position += 4
        if kind == _ZIP64_EXTRA:
            wide = list(struct.unpack_from(f"<{length // 8}Q", extra, position))
            found = [wide.pop(0) if each == _IN_EXTRA_32 and wide else each for each in fields]
            return found[0], found[1], found[2]
        position += length
    return fields[0], fields[1], fields[2]


def packed(data: bytes, entry: Entry) -> memoryview:
    """The packed bytes of an entry.

    Raises:
        WorkbookError: there is no entry where it should be, or it is cut short.
    """
    header = data[entry.offset : entry.offset + _LOCAL.size]
    if len(header) < _LOCAL.size or not header.startswith(_LOCAL_SIGNATURE):
        raise WorkbookError(f"the archive is broken: no entry where {_cut(entry.name)} should be")
    *_, name_length, extra_length = _LOCAL.unpack(header)
    start = entry.offset + _LOCAL.size + name_length + extra_length
    if start + entry.packed_bytes > len(data):
        raise WorkbookError(f"the archive is cut short inside {_cut(entry.name)}")
    return memoryview(data)[start : start + entry.packed_bytes]


def _cut(name: str) -> str:
    return name if len(name) <= 80 else name[:79] + "…"
