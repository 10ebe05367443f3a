"""A small suite in BabelBench's published layout, for tests of inference."""

from __future__ import annotations

import csv
import json
import struct
import zlib
from pathlib import Path

# Bytes that say what they are; nothing of the judge decodes them.
JPEG = bytes.fromhex("ffd8ffe000104a46494600010100000100010000ffd9")
WEBP = b"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0/\0\0\0\x10\x07\x10\x11\x11\x88\x88\xfe\x07\0"


def png(width: int, height: int, *, claimed: tuple[int, int] | None = None) -> bytes:
    """Makes a grey picture; it can claim a size that is not its own."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    size = struct.pack(">IIBBBBB", *(claimed or (width, height)), 8, 0, 0, 0, 0)
    rows = b"".join(b"\0" + bytes((x * y) % 251 for x in range(width)) for y in range(height))
    parts = (chunk(b"IHDR", size), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


Question = tuple[str, tuple[str, ...], tuple[str, ...], int]
"""Question, names of pictures, names of tables, and the right number."""


def write_suite(root: Path, questions: list[Question], files: dict[str, bytes]) -> Path:
    """Writes a suite of questions that ask for a number called ``answer``."""
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    columns = ["tag", "prompt", "imgs", "imgs_src", "attachments", "attachments_src"]
    columns += ["prompt_type", "eval_info", "difficulty"]
    with (root / "benchmark.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        for prompt, images, tables, right in questions:
            rule = {"gt_answer": right, "answer_type": "int", "eval_method": "exact"}
            writer.writerow(
                {
                    "tag": "Count",
                    "prompt": f'{prompt} Answer as JSON: {{"answer": your_answer}}',
                    "imgs": str(list(images)),
                    "imgs_src": "[]",
                    "attachments": str(list(tables)),
                    "attachments_src": "",
                    "prompt_type": "Freeform",
                    "eval_info": json.dumps({"answer": rule}),
                    "difficulty": "Easy",
                }
            )
    return root
