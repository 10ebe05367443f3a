"""Shrinks pictures of episodes and joins them into an animation; runs only in the sandbox.

The judge never imports this file: its source is sent into the sandbox and runs there, isolated,
with Pillow. Screenshots come from strangers, and decoders have bugs: if one crashes this process or
takes too much memory, nothing else is harmed.
"""

from __future__ import annotations

import base64
import importlib.util
import io
import math
import sys
from pathlib import Path
from typing import Any

from judge.inference.picture_worker import shrunk
from judge.sandbox.service_frames import serve

INK, PAPER, QUIET, MARK, WHITE = "#1d2024", "#f5f5f2", "#666a70", "#d6006c", "#ffffff"
MIN_SIDE = 240
BEFORE_MS = 600
_FONTS: dict[tuple[str, int], Any] = {}
_FILM: list[tuple[Any, int]] = []


def opened(data: bytes, max_pixels: int) -> Any:
    """Decodes a picture into three channels, after checking its size."""
    from PIL import Image  # noqa: PLC0415  only in the sandbox

    Image.MAX_IMAGE_PIXELS = None  # the limit below replaces it
    image = Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "WEBP", "GIF"))
    width, height = image.size
    if width * height > max_pixels:
        raise ValueError(f"{width} x {height} pixels; at most {max_pixels} are decoded")
    image.load()
    return image.convert("RGB")


def smaller(frame: dict[str, Any]) -> bytes:
    """Encodes a picture as WebP."""
    image = shrunk(opened(base64.b64decode(frame["picture"]), frame["max_pixels"]), frame["side"])
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", quality=frame["quality"], method=4)
    return buffer.getvalue()


# -- animated pictures -----------------------------------------------------------------------------


def font(name: str, size: int) -> Any:
    """A font that comes with matplotlib, or Pillow's own font if that is missing."""
    from PIL import ImageFont  # noqa: PLC0415  only in the sandbox

    if (name, size) not in _FONTS:
        spec = importlib.util.find_spec("matplotlib")
        folder = Path(spec.origin).parent if spec and spec.origin else Path("/nowhere")
        path = folder / "mpl-data" / "fonts" / "ttf" / name
        _FONTS[name, size] = (
            ImageFont.truetype(str(path), size) if path.is_file() else ImageFont.load_default(size)
        )
    return _FONTS[name, size]


def add_turn(frame: dict[str, Any]) -> None:
    """Adds a turn: the screenshot, then the same screenshot with the actions marked."""
    from PIL import Image  # noqa: PLC0415  only in the sandbox

    width, height = frame["width"], frame["height"]
    if frame["picture"] is None:
        whole = Image.new("RGB", (width, height), PAPER)
        scale = 1.0
    else:
        image = opened(base64.b64decode(frame["picture"]), frame["max_pixels"])
        scale = min(width / image.width, height / image.height)
        size = max(round(image.width * scale), 1), max(round(image.height * scale), 1)
        whole = Image.new("RGB", (width, height), PAPER)
        whole.paste(image.resize(size, Image.Resampling.LANCZOS), (0, 0))
    plain = captioned(whole, frame)
    marked = plain.copy()
    for number, mark in enumerate(frame["marks"], start=1):
        draw_mark(marked, mark, number, scale)
    if frame["marks"] and frame["picture"] is not None:
        _FILM.append((plain, BEFORE_MS))
    _FILM.append((marked, frame["ms"]))


def captioned(image: Any, frame: dict[str, Any]) -> Any:
    """The picture with lines of text below it."""
    from PIL import Image, ImageDraw  # noqa: PLC0415  only in the sandbox

    size = 15
    line = size + 7
    sheet = Image.new("RGB", (image.width, image.height + line * 3 + 14), PAPER)
    sheet.paste(image, (0, 0))
    draw = ImageDraw.Draw(sheet)
    draw.rectangle((0, image.height, image.width, image.height), fill=QUIET)
    top = image.height + 7
    for number, text in enumerate(frame["lines"][:3]):
        name = "DejaVuSans-Bold.ttf" if number == 0 else "DejaVuSansMono.ttf"
        chosen = font(name, size if number == 0 else size - 2)
        shown = fitted(draw, text, chosen, image.width - 24)
        draw.text((12, top), shown, font=chosen, fill=INK if number < 2 else QUIET)
        top += line
    return sheet


def fitted(draw: Any, text: str, chosen: Any, width: int) -> str:
    """Cuts a line to the width that fits."""
    if draw.textlength(text, font=chosen) <= width:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if draw.textlength(text[:middle] + "…", font=chosen) <= width:
            low = middle
        else:
            high = middle - 1
    return text[:low] + "…"


def draw_mark(image: Any, mark: dict[str, Any], number: int, scale: float) -> None:
    """Draws a click, a drag or a scroll; typed text is shown in the lines."""
    from PIL import ImageDraw  # noqa: PLC0415  only in the sandbox

    kind = mark["kind"]
    if kind in {"type", "keys", "move"}:
        return
    draw = ImageDraw.Draw(image)
    x, y, to_x, to_y = (mark[name] * scale for name in ("x", "y", "to_x", "to_y"))
    if kind == "drag":
        angle = math.atan2(to_y - y, to_x - x)
        wings = [
            (to_x - 11 * math.cos(angle + turn), to_y - 11 * math.sin(angle + turn))
            for turn in (0.5, -0.5)
        ]
        for colour, width in ((WHITE, 6), (MARK, 3)):
            draw.line((x, y, to_x, to_y), fill=colour, width=width)
            for wing in wings:
                draw.line((to_x, to_y, *wing), fill=colour, width=width)
    if kind == "scroll":
        for colour, width in ((WHITE, 6), (MARK, 3)):
            draw.line((x, y - 16, x, y + 16), fill=colour, width=width)
    for ring in range(min(mark["times"], 3) if kind != "scroll" else 0):
        for colour, width, radius in ((WHITE, 6, 11 + 5 * ring), (MARK, 3, 10 + 5 * ring)):
            box = (x - radius, y - radius, x + radius, y + radius)
            draw.ellipse(box, outline=colour, width=width)
    draw.text(
        (x + 15, y - 24),
        str(number),
        font=font("DejaVuSans-Bold.ttf", 15),
        fill=MARK,
        stroke_width=3,
        stroke_fill=WHITE,
    )


def finished(frame: dict[str, Any]) -> bytes:
    """All turns as one file that loops for ever; it is made smaller until it fits."""
    if not _FILM:
        raise ValueError("there is no turn")
    pictures, times = [picture for picture, _ in _FILM], [ms for _, ms in _FILM]
    while True:
        data = encoded(pictures, times, frame["form"])
        longest = max(pictures[0].size)
        if len(data) <= frame["max_bytes"]:
            return data
        if longest <= MIN_SIDE:
            raise ValueError(f"it does not fit into {frame['max_bytes']} bytes")
        pictures = [shrunk(picture, max(longest * 3 // 4, MIN_SIDE)) for picture in pictures]


def encoded(pictures: list[Any], times: list[int], form: str) -> bytes:
    """Encodes the pictures as a GIF or a WebP file."""
    from PIL import Image  # noqa: PLC0415  only in the sandbox

    buffer = io.BytesIO()
    options: dict[str, Any] = {"save_all": True, "duration": times, "loop": 0}
    if form == "gif":
        method, dither = Image.Quantize.FASTOCTREE, Image.Dither.NONE
        pictures = [picture.quantize(255, method=method, dither=dither) for picture in pictures]
        options |= {"optimize": False, "disposal": 1}
    else:
        options |= {"quality": 70, "method": 4, "minimize_size": False}
    pictures[0].save(buffer, form.upper(), append_images=pictures[1:], **options)
    return buffer.getvalue()


# -- frames ----------------------------------------------------------------------------------------


def answer_to(frame: dict[str, Any]) -> dict[str, Any]:
    """The answer to a frame: the requested result, or the problem with it."""
    try:
        match frame["do"]:
            case "shrink":
                result = smaller(frame)
            case "turn":
                add_turn(frame)
                result = b""
            case _:
                result = finished(frame)
    except Exception as error:  # noqa: BLE001  a decoder fails in many ways
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    return {"made": base64.b64encode(result).decode("ascii")}


def main() -> None:
    """Answers frames until there are no more."""
    serve(answer_to, sys.stdin.buffer, sys.stdout.buffer)
