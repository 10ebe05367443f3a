"""Hostile PDF files, written object by object."""

from __future__ import annotations

import functools
import io
import zlib
from collections.abc import Callable, Sequence

import pypdf

MIB = 1 << 20
TEXT = b"BT /F1 12 Tf 20 100 Td (Total 7) Tj ET"
FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
FLATE = b"/Filter /FlateDecode "
_FONTS = b"<< /Font << /F1 5 0 R >> >>"
_WITH_IMAGE = b"<< /Font << /F1 5 0 R >> /XObject << /I 6 0 R >> >>"
_CATALOG = b"<< /Type /Catalog /Pages 2 0 R >>"
_FORM = b"/Type /XObject /Subtype /Form "


def package(objects: Sequence[bytes], trailer: bytes = b"") -> bytes:
    """Makes a PDF from objects, numbered from 1; the first is the catalogue."""
    data = bytearray(b"%PDF-1.7\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    start = len(data)
    size = len(objects) + 1
    data += b"xref\n0 %d\n0000000000 65535 f \n" % size
    for offset in offsets:
        data += b"%010d 00000 n \n" % offset
    data += b"trailer\n<< /Size %d /Root 1 0 R %b>>\n" % (size, trailer)
    data += b"startxref\n%d\n%%%%EOF\n" % start
    return bytes(data)


def stream(data: bytes, attributes: bytes = b"") -> bytes:
    return b"<< /Length %d %b>>\nstream\n%b\nendstream" % (len(data), attributes, data)


def one_page(
    content: bytes,
    *more: bytes,
    resources: bytes = _FONTS,
    catalog: bytes = b"",
) -> bytes:
    """Makes a page with a content stream, and further objects from number 6 on."""
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 4 0 R /Resources %b >>"
    return package(
        [
            b"<< /Type /Catalog /Pages 2 0 R %b>>" % catalog,
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            page % resources,
            content,
            FONT,
            *more,
        ]
    )


def repeated(block: bytes, times: int) -> bytes:
    """A block as often as that, compressed: once, and the compressed block repeated.

    The checksum at the end is wrong, which a reader sees when it has read everything.
    """
    packed = zlib.compressobj(9)
    first = packed.compress(block) + packed.flush(zlib.Z_FULL_FLUSH)
    again = packed.compress(block) + packed.flush(zlib.Z_FULL_FLUSH)
    return first + again * (times - 1) + packed.flush()


def zeros(size: int) -> bytes:
    """Compresses a number of zero bytes."""
    return repeated(bytes(MIB), size // MIB)


def encrypted(password: str) -> bytes:
    writer = pypdf.PdfWriter()
    writer.append(io.BytesIO(HONEST))
    writer.encrypt(password, algorithm="RC4-128")
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def pages(count: int) -> bytes:
    """Makes a PDF that repeats one page object many times."""
    kids = b"3 0 R " * count
    return package(
        [
            _CATALOG,
            b"<< /Type /Pages /Kids [%b] /Count %d >>" % (kids, count),
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>",
            stream(TEXT),
        ]
    )


def distinct_pages(count: int) -> bytes:
    """Makes a PDF with separate page objects, as every program writes them."""
    kids = b" ".join(b"%d 0 R" % number for number in range(3, 3 + count))
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>"
    tree = b"<< /Type /Pages /Kids [%b] /Count %d >>" % (kids, count)
    return package([_CATALOG, tree, *[page] * count])


def _doubling_tree() -> bytes:
    """Thirty levels of pages, each with the next one twice: 2**30 pages."""
    level = b"<< /Type /Pages /Kids [%d 0 R %d 0 R] /Count 2 >>"
    levels = [level % (number + 1, number + 1) for number in range(2, 32)]
    return package([_CATALOG, *levels, b"<< /Type /Page /Parent 31 0 R >>"])


def _doubling_forms() -> bytes:
    """Thirty levels of forms, each of which draws the next one twice."""
    forms = [
        stream(b"/I Do /I Do", _FORM + b"/Resources << /XObject << /I %d 0 R >> >> " % (number + 1))
        for number in range(6, 36)
    ]
    last = stream(TEXT, _FORM)
    return one_page(stream(b"/I Do"), *forms, last, resources=b"<< /XObject << /I 6 0 R >> >>")


def _form_in_itself() -> bytes:
    own = stream(b"/I Do " * 10, _FORM + b"/Resources << /XObject << /I 6 0 R >> >> ")
    return one_page(stream(TEXT + b" /I Do"), own, resources=_WITH_IMAGE)


def _page_tree_loop() -> bytes:
    first = b"<< /Type /Pages /Kids [2 0 R 3 0 R] /Count 2 >>"
    return package([_CATALOG, first, b"<< /Type /Pages /Parent 2 0 R /Kids [2 0 R] /Count 1 >>"])


def _parents_in_a_loop() -> bytes:
    own = b"<< /Type /Pages /Parent 2 0 R /Kids [3 0 R] /Count 1 >>"
    page = b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R >>"
    return package([_CATALOG, own, page, stream(TEXT)])


def _deep_tree() -> bytes:
    level = b"<< /Type /Pages /Kids [%d 0 R] /Count 1 >>"
    levels = [level % (number + 1) for number in range(2, 20_002)]
    return package([_CATALOG, *levels, b"<< /Type /Page >>"])


def _huge_image() -> bytes:
    size = b"/Width 100000 /Height 100000 /ColorSpace /DeviceRGB /BitsPerComponent 8 "
    image = stream(zeros(1024 * MIB), FLATE + b"/Type /XObject /Subtype /Image " + size)
    return one_page(stream(TEXT + b" /I Do"), image, resources=_WITH_IMAGE)


def _wide_code_map() -> bytes:
    ranges = (
        b"1 begincodespacerange <0000> <FFFFFFFF> endcodespacerange "
        b"1 beginbfrange <00000000> <FFFFFFFF> <0041> endbfrange"
    )
    font = b"<< /Type /Font /Subtype /Type0 /Encoding /Identity-H /ToUnicode 7 0 R >>"
    resources = b"<< /Font << /F1 6 0 R >> >>"
    return one_page(stream(TEXT), font, stream(ranges), resources=resources)


HONEST = one_page(stream(TEXT))
_START = HONEST.index(b"xref\n0")
_SHOWN = stream(repeated(b"(a) Tj " * 100_000, 400), FLATE)

# What cannot be read: how it is made, and the beginning of what is said.
UNREADABLE: dict[str, Callable[[], bytes]] = {
    "nested arrays": lambda: one_page(stream(TEXT), resources=b"[" * 50_000 + b"]" * 50_000),
    "page tree with a loop": _page_tree_loop,
    "parents in a loop": _parents_in_a_loop,
    "doubling page tree": _doubling_tree,
    "deep page tree": _deep_tree,
    "a million pages": lambda: pages(1_000_000),
    "stream of 2 GiB": lambda: one_page(stream(zeros(2048 * MIB), FLATE)),
    "stream compressed twice": lambda: one_page(
        stream(zlib.compress(zeros(4096 * MIB)), b"/Filter [/FlateDecode /FlateDecode] ")
    ),
    "run lengths": lambda: one_page(
        stream(b"\x81 " * 4_000_000 + b"\x80", b"/Filter /RunLengthDecode ")
    ),
    "filters without end": lambda: one_page(
        stream(TEXT, b"/Filter [" + b"/ASCIIHexDecode " * 20_000 + b"] ")
    ),
    "content of 280 MB": lambda: one_page(_SHOWN),
    "code map of 2**32 characters": _wide_code_map,
    "cross references: none": lambda: HONEST.replace(b"startxref", b"startxxxx"),
    "cross references: a thousand million": lambda: HONEST.replace(
        b"xref\n0 6", b"xref\n0 999999999"
    ),
    "encrypted": lambda: encrypted("secret"),
    "cut off": lambda: HONEST[:300],
    "nothing": lambda: b"",
}

# What is read: how many pages it has.
READABLE: dict[str, tuple[Callable[[], bytes], int]] = {
    "cross references to themselves": (
        lambda: HONEST.replace(b"trailer\n<< ", b"trailer\n<< /Prev %d " % _START),
        1,
    ),
    "more pages promised than there are": (
        lambda: HONEST.replace(b"/Count 1 ", b"/Count 1000000000 "),
        1,
    ),
    "JavaScript that opens with it": (
        lambda: one_page(
            stream(TEXT), catalog=b"/OpenAction << /S /JavaScript /JS (while\\(1\\){}) >> "
        ),
        1,
    ),
    "a program that opens with it": (
        lambda: one_page(stream(TEXT), catalog=b"/OpenAction << /S /Launch /F (/bin/sh) >> "),
        1,
    ),
    "image of 30 GB": (_huge_image, 1),
    "form in itself": (_form_in_itself, 1),
    "doubling forms": (_doubling_forms, 1),
    "encrypted without a password": (functools.partial(encrypted, ""), 1),
    "no pages": (lambda: package([_CATALOG, b"<< /Type /Pages /Kids [] /Count 0 >>"]), 0),
}
