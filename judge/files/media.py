"""Detects the type of a file by its first bytes, since file names may be wrong. Pure."""

from __future__ import annotations

import struct

HEAD_BYTES = 16
"""How many bytes of a file are needed to detect its type."""

PICTURES_FOLDER = "pictures"
"""The folder of a run with its pictures, each named by its hash."""

PICTURE_SUFFIXES = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/webp": ".webp",
    "image/gif": ".gif",
}
"""Media types of pictures that chat models accept -> suffixes of file names."""

ZIP_MAGIC = b"PK\x03\x04"
"""The first bytes of a workbook, which are those of any zip file."""


def image_type(head: bytes) -> str | None:
    """Returns the media type of a picture, such as ``image/webp``; None if it is unknown.

    Args:
        head: the first :data:`HEAD_BYTES` bytes of the file, or more.
    """
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return "image/bmp" if head.startswith(b"BM") else None


def image_size(data: bytes) -> tuple[int, int] | None:
    """Reads the width and height of a PNG, JPEG, GIF or WEBP in pixels from its header.

    Returns None for any other file, or if the header does not have them. Decodes nothing.

    Args:
        data: the whole file, since the header of a JPEG may be anywhere in it.
    """
    try:
        size = _size_of(data)
    except (struct.error, IndexError):
        return None
    return size if size is not None and min(size) > 0 else None


def _size_of(data: bytes) -> tuple[int, int] | None:
    match image_type(data[:HEAD_BYTES]):
        case "image/png":
            return _pair(struct.unpack_from(">II", data, 16))
        case "image/gif":
            return _pair(struct.unpack_from("<HH", data, 6))
        case "image/jpeg":
            return _jpeg_size(data)
        case "image/webp":
            return _webp_size(data)
    return None


def _pair(values: tuple[int, ...]) -> tuple[int, int]:
    return values[0], values[1]


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Reads the size from the first frame header (ISO/IEC 10918-1, B.2.2); skips other segments."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
            continue
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        at += 2 + max(struct.unpack_from(">H", data, at + 2)[0], 2)
    return None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    """Reads the size from the first chunk: lossy, lossless or extended (RFC 9649, 2.5 to 2.7)."""
    match data[12:16]:
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            bits = struct.unpack_from("<I", data, 21)[0]
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            width, height = (int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27))
            return width, height
    return None
