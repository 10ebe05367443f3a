"""Archives that two programs could read differently are refused; those of programs are not."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable, Mapping

import pytest

from judge.errors import WorkbookError
from judge.workbook.cell import CellRange
from judge.workbook.reader import open_workbook
from tests.unit.compare.cells.hostile import HOSTILE
from tests.unit.compare.cells.packages import simple, zipped

SHEET = "xl/worksheets/sheet1.xml"
GOOD = simple({"A1": 1})
OTHER = simple({"A1": 666})
LOCAL, CENTRAL, END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"


def parts_of(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def with_parts(more: Mapping[str, bytes]) -> bytes:
    return zipped(parts_of(GOOD) | dict(more))


def twice() -> bytes:
    buffer = io.BytesIO(GOOD)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(SHEET, parts_of(OTHER)[SHEET])
    return buffer.getvalue()


def patched(find: bytes, offset: int, form: str, *values: int) -> bytes:
    """The good workbook with changed fields in a record: the sheet's, or the end record."""
    data = bytearray(GOOD)
    place = -1
    while (place := GOOD.index(find, place + 1)) >= 0:
        size = {LOCAL: 30, CENTRAL: 46, END: 22}[find]
        if find == END or GOOD.startswith(SHEET.encode(), place + size):
            break
    struct.pack_into(form, data, place + offset, *values)
    return bytes(data)


def renamed_in_header() -> bytes:
    """The header gives the part a different name than the directory does."""
    return GOOD.replace(SHEET.encode(), SHEET.replace("1", "2").encode(), 1)


def in_front() -> bytes:
    """Another whole workbook in front: offsets are right from the start, and from the end."""
    return OTHER + GOOD


def in_front_with_offsets() -> bytes:
    """The same, with offsets that count from the start of the file."""
    data = bytearray(OTHER + GOOD)
    end = data.rindex(END)
    count, _, offset = struct.unpack_from("<H2I", data, end + 10)
    place = offset + len(OTHER)
    struct.pack_into("<I", data, end + 16, place)
    for _ in range(count):
        name, extra, comment = struct.unpack_from("<3H", data, place + 28)
        (header,) = struct.unpack_from("<I", data, place + 42)
        struct.pack_into("<I", data, place + 42, header + len(OTHER))
        place += 46 + name + extra + comment
    return bytes(data)


def hidden_header() -> bytes:
    """An entry that is not in the directory is between two that are."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("first.xml", b"<x/>")
        archive.writestr("hidden.xml", b"<hidden/>")
        for name, data in parts_of(GOOD).items():
            archive.writestr(name, data)
        del archive.filelist[1]
    return buffer.getvalue()


def two_ends() -> bytes:
    """The comment of the first end record contains a directory and another end record."""
    end = GOOD.rindex(END)
    inner = GOOD[struct.unpack_from("<I", GOOD, end + 16)[0] : end]
    body = GOOD[:end] + GOOD[end : end + 20]
    rest = len(inner) + 22
    place = len(body) + 2
    size = struct.unpack_from("<I", GOOD, end + 12)[0]
    last = GOOD[end : end + 12] + struct.pack("<2IH", size, place, 0)
    return body + struct.pack("<H", rest) + inner + last


def more_than_counted() -> bytes:
    count = struct.unpack_from("<H", GOOD, GOOD.rindex(END) + 10)[0]
    return patched(END, 8, "<2H", count - 1, count - 1)


def wide_end(*, entries: int | None = None, place: int | None = None) -> bytes:
    """The good workbook with a 64-bit end record in addition to its plain one."""
    end = GOOD.rindex(END)
    count, size, offset = struct.unpack_from("<H2I", GOOD, end + 10)
    number = count if entries is None else entries
    wide = struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, number, number, size, offset)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, end if place is None else place, 1)
    return GOOD[:end] + wide + locator + GOOD[end:]


def other_name() -> bytes:
    """An extra field gives the sheet another name, which some programs use."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in parts_of(GOOD).items():
            info = zipfile.ZipInfo(name)
            if name == SHEET:
                info.extra = struct.pack("<2HBI", 0x7075, 5 + 9, 1, 0) + b"other.xml"
            archive.writestr(info, data)
    return buffer.getvalue()


def latin_name() -> bytes:
    """A part with a non-ASCII name whose encoding is not stated."""
    data = with_parts({"xl/worksheets/sheetX.xml": b"<x/>"})
    return data.replace(b"sheetX.xml", b"sheet\xe9.xml")


AMBIGUOUS: dict[str, tuple[Callable[[], bytes], str]] = {
    "an entry twice": (twice, "sheet1.xml is in it twice"),
    "names that differ in case": (
        lambda: with_parts({SHEET.upper(): b"<x/>"}),
        "SHEET1.XML are one name",
    ),
    "names that differ in an escape": (
        lambda: with_parts({"xl/worksheets/sheet%31.xml": b"<x/>"}),
        "sheet%31.xml are one name",
    ),
    "a name with backslashes": (
        lambda: with_parts({SHEET: b"<x/>"}).replace(b"xl/worksheets/s", b"xl\\worksheets/s"),
        "has a name that is not a plain path",
    ),
    "a name that climbs out": (
        lambda: with_parts({"xl/../../x.xml": b"<x/>"}),
        "has a name that is not a plain path",
    ),
    "an absolute name": (
        lambda: with_parts({"/xl/x.xml": b"<x/>"}),
        "has a name that is not a plain path",
    ),
    "a name with an empty step": (
        lambda: with_parts({"xl//x.xml": b"<x/>"}),
        "has a name that is not a plain path",
    ),
    "a name with a control character": (
        lambda: with_parts({"xl/x\n.xml": b"<x/>"}),
        "has a name that is not a plain path",
    ),
    "a name in an unknown encoding": (latin_name, "nothing says how the name"),
    "another name in an extra field": (other_name, "has a second name next to its own"),
    "another name in the header": (renamed_in_header, "has a different name than the directory"),
    "another size in the header": (
        lambda: patched(LOCAL, 18, "<2I", 7, 7),
        "contradicts the directory",
    ),
    "another checksum in the header": (
        lambda: patched(LOCAL, 14, "<I", 7),
        "contradicts the directory",
    ),
    "another method in the header": (
        lambda: patched(LOCAL, 8, "<H", 0),
        "contradicts the directory",
    ),
    "encrypted by its header alone": (
        lambda: patched(LOCAL, 6, "<H", 1),
        "contradicts the directory",
    ),
    "a stream without its record": (
        lambda: patched(LOCAL, 6, "<H", 8).replace(
            CENTRAL + GOOD[GOOD.index(CENTRAL) + 4 : GOOD.index(CENTRAL) + 8], CENTRAL + b"\0" * 4
        ),
        "contradicts the directory",
    ),
    "names that share a body": (
        HOSTILE["10,000 entries that share a body"],
        "overlaps another entry",
    ),
    "another workbook in front": (in_front, "its directory is not where its end record says"),
    "a program in front": (
        lambda: b"#!/bin/sh\n" + GOOD,
        "its directory is not where its end record says",
    ),
    "another workbook in front, offsets fixed": (in_front_with_offsets, "are not in the directory"),
    "an entry in no directory": (hidden_header, "are not in the directory"),
    "something behind": (lambda: GOOD + b"more", "its end record is not at the end of the file"),
    "another workbook in the comment": (two_ends, "it has two end records"),
    "more entries than counted": (more_than_counted, "more than the entries that are counted"),
    "two end records that disagree": (
        lambda: wide_end(entries=1),
        "its two end records disagree",
    ),
    "a 64-bit end record elsewhere": (lambda: wide_end(place=0), "its two end records disagree"),
}


@pytest.mark.parametrize("kind", AMBIGUOUS)
def test_an_archive_that_can_be_read_in_two_ways_is_refused(kind: str) -> None:
    make, message = AMBIGUOUS[kind]
    with pytest.raises(WorkbookError) as raised:
        open_workbook(make())
    assert message in raised.value.message
    assert raised.value.message.isprintable()


class _Stream(io.RawIOBase):
    """A target without seeking, so that sizes follow the entries."""

    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        piece = bytes(data)  # type: ignore[call-overload]
        self.data += piece
        return len(piece)


def streamed() -> bytes:
    target = _Stream()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts_of(GOOD).items():
            archive.writestr(name, data)
    return bytes(target.data)


def wide_headers() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts_of(GOOD).items():
            with archive.open(name, "w", force_zip64=True) as entry:
                entry.write(data)
    return buffer.getvalue()


def with_folders_and_comment() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.comment = b"written by a program"
        archive.writestr("xl/", b"")
        archive.writestr("xl/media/\u56fe.png", b"png")
        for name, data in parts_of(GOOD).items():
            archive.writestr(name, data)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "make", [streamed, wide_headers, with_folders_and_comment, wide_end, lambda: GOOD]
)
def test_what_real_programs_write_is_read(make: Callable[[], bytes]) -> None:
    workbook = open_workbook(make())
    [sheet] = workbook.sheet_names
    assert workbook.cells(CellRange(sheet, 1, 1, 1, 1))[1, 1].value == 1


def test_an_embedded_workbook_that_is_stored_is_not_a_second_end_record() -> None:
    parts = parts_of(GOOD) | {"xl/embeddings/book.xlsx": OTHER}
    assert open_workbook(zipped(parts, zipfile.ZIP_STORED)).sheet_names
