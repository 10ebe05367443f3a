"""Draws pictures in plain Python, and writes them as PNG files with the same bytes each time."""

from __future__ import annotations

import struct
import zlib

COLOURS = {
    "white": (255, 255, 255),
    "black": (30, 30, 30),
    "grey": (170, 170, 170),
    "red": (200, 60, 50),
    "blue": (40, 90, 170),
    "green": (50, 140, 80),
    "yellow": (235, 190, 60),
}
_NUMBERS = {name: number for number, name in enumerate(COLOURS)}
_DIGITS = {
    "0": "111 101 101 101 111",
    "1": "010 110 010 010 111",
    "2": "111 001 111 100 111",
    "3": "111 001 111 001 111",
    "4": "101 101 111 001 001",
    "5": "111 100 111 001 111",
    "6": "111 100 111 101 111",
    "7": "111 001 010 010 010",
    "8": "111 101 111 101 111",
    "9": "111 101 111 001 111",
}
_MAX_STORED = 65_535


class Picture:
    """A picture with a few colours, which is white at first.

    Args:
        width: in pixels; an even number.
        height: in pixels.
    """

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._rows = [bytearray(width) for _ in range(height)]

    def fill(self, left: int, top: int, width: int, height: int, colour: str) -> None:
        """Fills a rectangle."""
        for row in self._rows[top : top + height]:
            row[left : left + width] = bytes([_NUMBERS[colour]]) * width

    def write(self, left: int, top: int, digits: str, *, size: int, colour: str = "black") -> None:
        """Draws digits, each three squares wide and five squares high.

        Args:
            left: where the first one begins.
            top: where they begin.
            digits: what to write.
            size: of a square, in pixels.
            colour: of the squares.
        """
        for place, digit in enumerate(digits):
            for row, squares in enumerate(_DIGITS[digit].split()):
                for column, is_set in enumerate(squares):
                    if is_set == "1":
                        x = left + (4 * place + column) * size
                        self.fill(x, top + row * size, size, size, colour)

    def to_bytes(self) -> bytes:
        """Returns the picture as a PNG with four bits per pixel, stored without compression."""
        header = struct.pack(">IIBBBBB", self.width, self.height, 4, 3, 0, 0, 0)
        palette = b"".join(bytes(colour) for colour in COLOURS.values())
        pixels = b"".join(
            b"\0" + bytes(one << 4 | two for one, two in zip(row[::2], row[1::2], strict=True))
            for row in self._rows
        )
        chunks = ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", _stored(pixels)), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _stored(data: bytes) -> bytes:
    """Returns a zlib stream (RFC 1950) of stored blocks, the same with every version of zlib."""
    starts = range(0, len(data), _MAX_STORED)
    blocks = []
    for start in starts:
        piece = data[start : start + _MAX_STORED]
        is_last = start == starts[-1]
        blocks.append(struct.pack("<BHH", is_last, len(piece), 0xFFFF ^ len(piece)) + piece)
    return b"\x78\x01" + b"".join(blocks) + struct.pack(">I", zlib.adler32(data))
