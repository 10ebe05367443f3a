"""Workbooks that are hard to read: for each kind, a function that makes the bytes."""

from __future__ import annotations

import io
import random
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping

from tests.unit.compare.cells.packages import (
    DECLARATION,
    MAIN,
    RELATIONS,
    STYLES,
    Book,
    cell,
    relations,
    sheet_data,
    simple,
    worksheet,
    zipped,
)

SHEET = "xl/worksheets/sheet1.xml"
GOOD = {"A1": 1, "B1": "x", "A2": 2}
MEGABYTE = 1 << 20


def _good() -> Book:
    return Book({"Sheet1": sheet_data(cell("A1", 1), cell("B1", "x"), cell("A2", 2))})


def _with(parts: Mapping[str, bytes | str], **book: object) -> bytes:
    return Book({"Sheet1": sheet_data(cell("A1", 1))}, parts=parts, **book).to_bytes()  # type: ignore[arg-type]


def _sheet(inner: str, **book: object) -> bytes:
    return Book({"Sheet1": inner}, **book).to_bytes()  # type: ignore[arg-type]


def raw_archive(entries: list[tuple[str, bytes, int, int, int]]) -> bytes:
    """An archive written field by field.

    Args:
        entries: name, packed bytes, method, flags and the inflated size to declare.
    """
    body, directory = b"", b""
    for name, packed, method, flags, size in entries:
        encoded = name.encode()
        checksum = _checksum(packed, method, size)
        fields = struct.pack(
            "<5H3I2H", 20, flags, method, 0, 0, checksum, len(packed), size, len(encoded), 0
        )
        offset = len(body)
        body += b"PK\x03\x04" + fields + encoded + packed
        directory += b"PK\x01\x02" + struct.pack("<H", 20) + fields
        directory += struct.pack("<3H2I", 0, 0, 0, 0, offset) + encoded
    end = struct.pack("<4H2IH", 0, 0, len(entries), len(entries), len(directory), len(body), 0)
    return body + directory + b"PK\x05\x06" + end


def _checksum(body: bytes, method: int, size: int) -> int:
    """Returns the right checksum of an entry, or any number if it is not cheaply available."""
    if method != zipfile.ZIP_DEFLATED or size > 4 * MEGABYTE:
        return zlib.crc32(body)
    try:
        return zlib.crc32(zlib.decompressobj(-15).decompress(body, size))
    except zlib.error:
        return 0


def packed(data: bytes) -> bytes:
    """Returns raw deflate data."""
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    return deflater.compress(data) + deflater.flush()


def packed_long(head: bytes, filler: bytes, megabytes: int) -> bytes:
    """Returns raw deflate data of a head and many megabytes of filler, without holding those."""
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = deflater.compress(head) + deflater.flush(zlib.Z_FULL_FLUSH)
    block = filler * (MEGABYTE // len(filler))
    # After a full flush nothing refers back, so that each block packs to the same bytes.
    repeated = deflater.compress(block) + deflater.flush(zlib.Z_FULL_FLUSH)
    return start + repeated * megabytes + deflater.flush()


def _entries(replaced: Mapping[str, tuple[bytes, int, int, int]]) -> bytes:
    parts = _good().all_parts()
    entries = [
        (name, *replaced[name]) if name in replaced else (name, packed(data), 8, 0, len(data))
        for name, data in parts.items()
    ]
    return raw_archive(entries)


# -- the archive ----------------------------------------------------------------------------------


def _bomb_of_4_gb() -> bytes:
    head = worksheet("<sheetData>").removesuffix("</worksheet>").encode()
    body = packed_long(head, b" ", 4095)
    return _entries({SHEET: (body, 8, 0, 4095 * MEGABYTE + len(head))})


def _bomb_that_lies() -> bytes:
    head = worksheet("<sheetData>").removesuffix("</worksheet>").encode()
    body = packed_long(head, b" ", 1024)
    return _entries({SHEET: (body, 8, 0, 4000)})


def _overlapping_entries() -> bytes:
    """Makes a few kilobytes whose 10,000 entries share one body and together inflate to 4 GB."""
    base = zipfile_parts(_good().to_bytes())
    shared = packed_long(b"", b"\0", 1)
    archive = raw_archive([*base, ("shared", shared, 8, 0, MEGABYTE)])
    end = archive.rindex(b"PK\x05\x06")
    count, size, start = struct.unpack("<H2I", archive[end + 10 : end + 20])
    last = archive.rindex(b"PK\x01\x02", start, end)
    extra = b"".join(
        archive[last:end].replace(b"shared", f"{number:06}".encode()) for number in range(10_000)
    )
    tail = struct.pack("<4H2IH", 0, 0, count + 10_000, count + 10_000, size + len(extra), start, 0)
    return archive[:end] + extra + b"PK\x05\x06" + tail


def zipfile_parts(data: bytes) -> list[tuple[str, bytes, int, int, int]]:
    """Returns the entries of an archive, ready to be written again."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [
            (info.filename, packed(archive.read(info)), 8, 0, info.file_size)
            for info in archive.infolist()
        ]


def _method(compression: int) -> bytes:
    return _good().to_bytes(compression)


def _zip_slip() -> bytes:
    parts = _good().all_parts()
    slips = ["../../../../etc/passwd", "/etc/shadow", "..\\..\\x", "xl/../../y", "C:\\z"]
    return zipped(parts | dict.fromkeys(slips, b"outside"))


def _duplicates() -> bytes:
    parts = zipfile_parts(_good().to_bytes())
    other = worksheet(sheet_data(cell("A1", 666))).encode()
    return raw_archive([*parts, (SHEET, packed(other), 8, 0, len(other))])


def _wrong_checksum() -> bytes:
    """Makes a workbook in which one byte of a stored sheet was changed afterwards."""
    return _good().to_bytes(zipfile.ZIP_STORED).replace(b"<v>1</v>", b"<v>7</v>")


# -- XML ------------------------------------------------------------------------------------------

_LAUGHS = (
    '<!DOCTYPE lolz [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9))
    + "]>"
)


def _doctype(part_xml: str, doctype: str) -> str:
    return part_xml.replace(DECLARATION, DECLARATION + doctype)


def _laughing_sheet() -> bytes:
    xml = worksheet('<sheetData><row r="1"><c r="A1" t="str"><v>&j;</v></c></row></sheetData>')
    return _with({SHEET: _doctype(xml, _LAUGHS)})


def _laughing_strings() -> bytes:
    xml = f'{DECLARATION}{_LAUGHS}<sst xmlns="{MAIN}"><si><t>&j;</t></si></sst>'
    return Book(
        {"Sheet1": sheet_data(cell("A1", 0, kind="s"))},
        shared=["x"],
        parts={"xl/sharedStrings.xml": xml},
    ).to_bytes()


def _outside_entity() -> bytes:
    workbook = Book({"Sheet1": ""}).all_parts()["xl/workbook.xml"].decode()
    doctype = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
    return _with({"xl/workbook.xml": _doctype(workbook, doctype).replace("Sheet1", "&e;")})


def _nested(count: int) -> bytes:
    return _sheet(f"<sheetData>{'<a>' * count}{'</a>' * count}</sheetData>")


def _nested_behind_the_rows(count: int) -> bytes:
    return _sheet(f"<sheetData/><extLst>{'<a>' * count}{'</a>' * count}</extLst>")


def _rows(count: int, row: str) -> str:
    return (
        "<sheetData>" + "".join(row.format(r=number) for number in range(1, count)) + "</sheetData>"
    )


def _links(target: str, *, kind: str = "worksheet", external: bool = False) -> bytes:
    links = relations(("rId1", kind, target), ("rIdY", "styles", "styles.xml"))
    if external:
        links = links.replace(f'Target="{target}"', f'Target="{target}" TargetMode="External"')
    return _with({"xl/_rels/workbook.xml.rels": links})


def _one(xml: str, **book: object) -> bytes:
    return _sheet(f'<sheetData><row r="1">{xml}</row></sheetData>', **book)


def _workbook_xml(inner: str) -> bytes:
    xml = f'{DECLARATION}<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}">{inner}</workbook>'
    return _with({"xl/workbook.xml": xml})


def _random_bytes(count: int) -> bytes:
    return random.Random(1).randbytes(count)


_LONG_TEXT = "x" * (15 * MEGABYTE)

HOSTILE: dict[str, Callable[[], bytes]] = {
    # the file
    "empty": lambda: b"",
    "one byte": lambda: b"P",
    "random bytes": lambda: _random_bytes(100_000),
    "random bytes after a zip signature": lambda: b"PK\x03\x04" + _random_bytes(100_000),
    "old binary workbook": lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(4096),
    "an encrypted workbook": lambda: (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le") + bytes(4096)
    ),
    "plain text": lambda: b"A,B\n1,2\n",
    "an XML workbook of 2003": lambda: (
        b'<?xml version="1.0"?><?mso-application progid="Excel.Sheet"?><Workbook/>'
    ),
    "html": lambda: b"<html><table><tr><td>1</td></tr></table></html>",
    # the archive
    "cut in half": lambda: simple(GOOD)[: len(simple(GOOD)) // 2],
    "without its directory": lambda: simple(GOOD)[:-30],
    "without the start": lambda: simple(GOOD)[40:],
    "garbage before": lambda: b"#!/bin/sh\n" + simple(GOOD),
    "an empty archive": lambda: zipped({}),
    "an archive of other things": lambda: zipped({"readme.txt": b"hello"}),
    "a Word document": lambda: zipped(
        {
            "word/document.xml": b"<w/>",
            "[Content_Types].xml": b'<Types xmlns="http://schemas.openxmlformats.org/package/'
            b'2006/content-types"/>',
        }
    ),
    "an OpenDocument spreadsheet": lambda: zipped(
        {"mimetype": b"application/vnd.oasis.opendocument.spreadsheet", "content.xml": b"<x/>"}
    ),
    "a binary workbook": lambda: zipped({"xl/workbook.bin": bytes(100)}),
    "names that climb out": _zip_slip,
    "an entry twice": _duplicates,
    "25,000 entries": lambda: zipped({str(number): b"" for number in range(25_000)}),
    "encrypted entries": lambda: _entries({SHEET: (packed(b"x"), 8, 1, 1)}),
    "packed with bzip2": lambda: _method(zipfile.ZIP_BZIP2),
    "packed with lzma": lambda: _method(zipfile.ZIP_LZMA),
    "4 MB that inflate to 4 GB": _bomb_of_4_gb,
    "1 GB that claims to be 4 kB": _bomb_that_lies,
    "10,000 entries that share a body": _overlapping_entries,
    "a stored part of another size": lambda: _entries({SHEET: (b"<worksheet/>", 0, 0, 99)}),
    "a part that is no deflate": lambda: _entries({SHEET: (_random_bytes(900), 8, 0, 4000)}),
    "a wrong checksum": _wrong_checksum,
    "fewer bytes than declared": lambda: _entries({SHEET: (packed(b"<worksheet/>"), 8, 0, 99)}),
    "a part cut short": lambda: _entries({SHEET: (packed(b"<worksheet>" * 900)[:-9], 8, 0, 9900)}),
    # relations
    "no relations at all": lambda: zipped(
        {name: data for name, data in _good().all_parts().items() if "rels" not in name}
    ),
    "a sheet that is not there": lambda: _links("worksheets/sheet9.xml"),
    "a sheet outside the package": lambda: _links("../../../../../etc/passwd"),
    "a sheet on the network": lambda: _links("http://192.0.2.1/sheet.xml", external=True),
    "a sheet that is the workbook": lambda: _links("workbook.xml"),
    "a sheet that is the styles": lambda: _links("styles.xml"),
    "only a chart sheet": lambda: _links("worksheets/sheet1.xml", kind="chartsheet"),
    "no sheets": lambda: _workbook_xml("<sheets/>"),
    "100,000 sheets": lambda: _workbook_xml(
        "<sheets>"
        + "".join(f'<sheet name="S{n}" sheetId="{n}" r:id="rId1"/>' for n in range(100_000))
        + "</sheets>"
    ),
    "two sheets of one name": lambda: _workbook_xml(
        '<sheets><sheet name="Sheet1" sheetId="1" r:id="rId1"/>'
        '<sheet name="Sheet1" sheetId="2" r:id="rId1"/></sheets>'
    ),
    "macros": lambda: _with({"xl/vbaProject.bin": _random_bytes(9000)}),
    "external links": lambda: _with(
        {
            "xl/externalLinks/externalLink1.xml": f'<externalLink xmlns="{MAIN}"/>',
            "xl/externalLinks/_rels/externalLink1.xml.rels": relations(
                ("rId1", "externalLinkPath", "file:///etc/passwd")
            ),
        }
    ),
    # XML
    "a workbook part that is no XML": lambda: _with({"xl/workbook.xml": b"\x00\x01"}),
    "a sheet that is no XML": lambda: _with({SHEET: b"not xml"}),
    "a sheet that ends early": lambda: _with({SHEET: worksheet("<sheetData><row>")[:-20]}),
    "styles that are no XML": lambda: _with({"xl/styles.xml": b"<styleSheet"}),
    "bytes that are no UTF-8": lambda: _with(
        {SHEET: worksheet(sheet_data(cell("A1", "x"))).encode().replace(b">x<", b">\xff\xfe<")}
    ),
    "an encoding that nobody knows": lambda: _with(
        {SHEET: worksheet(sheet_data()).replace("UTF-8", "KLINGON")}
    ),
    "an encoding that is another": lambda: _with(
        {SHEET: worksheet(sheet_data(cell("A1", 1))).replace("UTF-8", "UTF-16")}
    ),
    "laughing entities in a sheet": _laughing_sheet,
    "laughing entities in the strings": _laughing_strings,
    "an entity from outside": _outside_entity,
    "a million elements within each other": lambda: _nested(1_000_000),
    "a million of them behind the rows": lambda: _nested_behind_the_rows(1_000_000),
    "cells within cells": lambda: _one("<c r='A1'>" * 900 + "</c>" * 900),
    "rows within rows": lambda: _sheet(f"<sheetData>{'<row>' * 900}{'</row>' * 900}</sheetData>"),
    "15 MB of text in a cell": lambda: _one(f'<c r="A1" t="str"><v>{_LONG_TEXT}</v></c>'),
    "15 MB of text in a string": lambda: Book(
        {"Sheet1": sheet_data(cell("A1", 0, kind="s"))}, shared=[_LONG_TEXT]
    ).to_bytes(),
    "a formula of 15 MB": lambda: _one(f'<c r="A1"><f>{_LONG_TEXT}</f></c>'),
    "an attribute of 15 MB": lambda: _one(f'<c r="A1" x="{_LONG_TEXT}"><v>1</v></c>'),
    "a comment of 15 MB": lambda: _sheet(f"<!--{_LONG_TEXT}-->" + sheet_data(cell("A1", 1))),
    "a tag that never ends": lambda: _with({SHEET: "<worksheet " + _LONG_TEXT}),
    # cells
    "the first and the last cell": lambda: _sheet(
        '<dimension ref="A1:XFD1048576"/>' + sheet_data(cell("A1", 1), cell("C1048576", 2))
    ),
    "a million styled blank cells": lambda: _sheet(
        _rows(
            333_334, '<row r="{r}"><c r="A{r}" s="6"/><c r="B{r}" s="6"/><c r="C{r}" s="6"/></row>'
        )
    ),
    "a million empty rows": lambda: _sheet(_rows(1_000_001, '<row r="{r}"/>')),
    "row numbers that are none": lambda: _sheet(
        '<sheetData><row r="x"><c r="A1"/></row></sheetData>'
    ),
    "a negative row": lambda: _sheet('<sheetData><row r="-5"><c><v>1</v></c></row></sheetData>'),
    "a row beyond all rows": lambda: _sheet(
        '<sheetData><row r="99999999999999"><c><v>1</v></c></row></sheetData>'
    ),
    "an infinite row": lambda: _sheet(
        '<sheetData><row r="1e999"><c><v>1</v></c></row></sheetData>'
    ),
    "a cell that is nowhere": lambda: _one('<c r="1A"><v>1</v></c>'),
    "more cells in a row than columns": lambda: _one("<c><v>1</v></c>" * 70_000),
    "a number that is none": lambda: _one('<c r="A1"><v>five</v></c>'),
    "a number of 100,000 digits": lambda: _one(f'<c r="A1"><v>{"9" * 100_000}</v></c>'),
    "infinity": lambda: _one('<c r="A1" s="1"><v>1e999</v></c>'),
    "a string that is not there": lambda: _one('<c r="A1" t="s"><v>5</v></c>', shared=["x"]),
    "a negative string": lambda: _one('<c r="A1" t="s"><v>-1</v></c>', shared=["x"]),
    "strings without a table": lambda: _one('<c r="A1" t="s"><v>0</v></c>'),
    "a style that is none": lambda: _one('<c r="A1" s="red"><v>1</v></c>'),
    "a style beyond all styles": lambda: _one('<c r="A1" s="99999999999"><v>1</v></c>'),
    "a date that is none": lambda: _one('<c r="A1" t="d"><v>2024-99-99</v></c>'),
    "a boolean that is none": lambda: _one('<c r="A1" t="b"><v>perhaps</v></c>'),
    "formulas that are their own master": lambda: _one(
        '<c r="A1"><f t="shared" si="0" ref="A1:A9"/></c>'
    ),
    "50,000 merged ranges over everything": lambda: _sheet(
        _rows(3_000, '<row r="{r}"><c r="A{r}"><v>1</v></c></row>')
        + "<mergeCells>"
        + '<mergeCell ref="A1:XFD1048576"/>' * 50_000
        + "</mergeCells>"
    ),
    "a merged range that is none": lambda: _sheet(
        sheet_data(cell("A1", 1)) + '<mergeCells><mergeCell ref="everything"/></mergeCells>'
    ),
    "a hyperlink over everything": lambda: _sheet(
        sheet_data(cell("A1", 1))
        + '<hyperlinks><hyperlink ref="A1:XFD1048576" location="x"/></hyperlinks>'
    ),
    "one text of a megabyte in 200,000 cells": lambda: Book(
        {"Sheet1": _rows(200_000, '<row r="{r}"><c r="A{r}" t="s"><v>0</v></c></row>')},
        shared=["y" * 1_000_000],
    ).to_bytes(),
    "number formats without end": lambda: _sheet(
        sheet_data(cell("A1", 1, style=1)),
        styles=STYLES.replace("<cellXfs>", "<cellXfs>" + '<xf numFmtId="164"/>' * 700_000),
    ),
    "a number format to choke on": lambda: _sheet(
        sheet_data(cell("A1", 1, style=1)),
        styles=STYLES.replace("yyyy\\-mm\\-dd", "[" * 50_000 + "&quot;" * 50_001),
    ),
}
"""Kind -> the bytes of such a file."""
