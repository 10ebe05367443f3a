"""Shrinks and joins pictures: the program of a sandbox service.

The judge never imports this file: its text is sent into the sandbox and runs there, isolated, with
Pillow. Pictures are untrusted and decoders have faults: a picture that crashes this process, or
makes it use up its memory, harms nothing else.
"""

from __future__ import annotations

import base64
import io
import math
import sys
from typing import Any

from judge.sandbox.service_frames import serve

QUALITIES = (90, 80, 70, 55, 40)
MIN_SIDE = 64


def opened(data: bytes, frame: dict[str, Any]) -> Any:
    """Opens a picture; its size is checked before anything is decoded."""
    from PIL import Image, ImageOps  # noqa: PLC0415  only in the sandbox

    Image.MAX_IMAGE_PIXELS = None  # the limit is checked below
    image = Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "WEBP", "GIF"))
    width, height = image.size
    if width * height > frame["max_pixels"]:
        raise ValueError(f"{width} x {height} pixels; at most {frame['max_pixels']} are decoded")
    if frame["longest_side"] and image.format == "JPEG":
        image.draft("RGB", (frame["longest_side"], frame["longest_side"]))
    image.load()
    # Cameras record how to rotate a picture; the new file would lose this, so rotate it now.
    return ImageOps.exif_transpose(image)


def flattened(image: Any) -> Any:
    """Converts a picture to RGB, with white behind its transparent parts."""
    from PIL import Image  # noqa: PLC0415  only in the sandbox

    if image.mode not in {"RGBA", "LA", "PA"} and "transparency" not in image.info:
        return image.convert("RGB")
    image = image.convert("RGBA")
    white = Image.new("RGB", image.size, "white")
    white.paste(image, mask=image.getchannel("A"))
    return white


def shrunk(image: Any, longest_side: int) -> Any:
    """Shrinks a picture so that no side is longer than ``longest_side``."""
    from PIL import Image  # noqa: PLC0415  only in the sandbox

    scale = longest_side / max(image.size)
    if scale >= 1:
        return image
    width, height = (max(round(side * scale), 1) for side in image.size)
    return image.resize((width, height), Image.Resampling.LANCZOS)


def encoded(image: Any, max_bytes: int | None, *, lossless: bool) -> bytes:
    """Encodes a picture: as PNG if that fits, else as JPEG, degraded until it fits."""
    if lossless:
        buffer = io.BytesIO()
        image.save(buffer, "PNG")
        if max_bytes is None or buffer.tell() <= max_bytes:
            return buffer.getvalue()
    while True:
        for quality in QUALITIES:
            buffer = io.BytesIO()
            image.save(buffer, "JPEG", quality=quality)
            if max_bytes is None or buffer.tell() <= max_bytes:
                return buffer.getvalue()
        if max(image.size) <= MIN_SIDE:
            raise ValueError(f"no picture fits into {max_bytes} bytes")
        image = shrunk(image, max(max(image.size) * 3 // 4, MIN_SIDE))


def fitted(data: bytes, frame: dict[str, Any]) -> bytes:
    """Makes one picture fit the limits; returns the same bytes if it fits them already."""
    side, max_bytes = frame["longest_side"], frame["max_bytes"]
    image = opened(data, frame)
    from PIL import Image  # noqa: PLC0415  only in the sandbox

    with Image.open(io.BytesIO(data)) as original:  # the sizes before scaling and rotation
        is_small = side is None or max(original.size) <= side
        is_taken = f"image/{(original.format or '').lower()}" in frame["types"]
        lossless = original.format != "JPEG" and (original.format != "WEBP" or not is_taken)
    if is_taken and is_small and (max_bytes is None or len(data) <= max_bytes):
        return data
    image = flattened(image)
    if side is not None:
        image = shrunk(image, side)
    return encoded(image, max_bytes, lossless=lossless)


def stitched(pictures: list[bytes], frame: dict[str, Any]) -> bytes:
    """Joins pictures into one, row by row, each row from left to right."""
    from PIL import Image  # noqa: PLC0415  only in the sandbox

    columns = math.ceil(math.sqrt(len(pictures)))
    rows = math.ceil(len(pictures) / columns)
    whole_side = frame["longest_side"] or frame["stitched_side"]
    cell = max(whole_side // max(columns, rows), 1)
    images = [shrunk(flattened(opened(data, frame)), cell) for data in pictures]
    widths = [max(image.width for image in images[at::columns]) for at in range(columns)]
    lines = [images[at : at + columns] for at in range(0, len(images), columns)]
    heights = [max(image.height for image in line) for line in lines]
    gap = max(cell // 50, 1)
    size = (sum(widths) + gap * (columns - 1), sum(heights) + gap * (rows - 1))
    sheet = Image.new("RGB", size, "white")
    top = 0
    for line, height in zip(lines, heights, strict=True):
        left = 0
        for image, width in zip(line, widths[: len(line)], strict=True):
            sheet.paste(image, (left, top))
            left += width + gap
        top += height + gap
    return encoded(shrunk(sheet, whole_side), frame["max_bytes"], lossless=True)


def answer_to(frame: dict[str, Any]) -> dict[str, Any]:
    """Returns the requested pictures, or the error if a received picture cannot be used."""
    pictures = [base64.b64decode(picture) for picture in frame["pictures"]]
    try:
        if frame["stitch"]:
            results = [stitched(pictures, frame)]
        else:
            results = [fitted(data, frame) for data in pictures]
    except Exception as error:  # noqa: BLE001  a decoder fails in many ways
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    return {"pictures": [base64.b64encode(data).decode("ascii") for data in results]}


def main() -> None:
    """Answers requests until there are no more."""
    serve(answer_to, sys.stdin.buffer, sys.stdout.buffer)
