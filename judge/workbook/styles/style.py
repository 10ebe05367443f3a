"""Looks of a cell: colours with theme and tint, fonts, number formats, alignment. Pure."""

from __future__ import annotations

import colorsys
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from judge.workbook.dates import MAX_CODE_LENGTH
from judge.workbook.xml_numbers import whole_number

STYLE_ATTRIBUTES: tuple[str, ...] = (
    "fill",
    "font_color",
    "bold",
    "italic",
    "underline",
    "number_format",
    "alignment",
    "hyperlink",
)
"""What can be compared in addition to the values."""

AUTOMATIC_FONT = "000000"
_CHANNEL_TOLERANCE = 3  # Excel computes tints in whole steps of its own

# Colours of the Office theme, for workbooks without one; in the order in which cells count.
OFFICE_THEME: tuple[str, ...] = (
    "FFFFFF",
    "000000",
    "EEECE1",
    "1F497D",
    "4F81BD",
    "C0504D",
    "9BBB59",
    "8064A2",
    "4BACC6",
    "F79646",
    "0000FF",
    "800080",
)

_EGA = ("000000", "FFFFFF", "FF0000", "00FF00", "0000FF", "FFFF00", "FF00FF", "00FFFF")
INDEXED_COLOURS: tuple[str, ...] = (
    *_EGA,
    *_EGA,
    *["800000", "008000", "000080", "808000", "800080", "008080", "C0C0C0", "808080"],
    *["9999FF", "993366", "FFFFCC", "CCFFFF", "660066", "FF8080", "0066CC", "CCCCFF"],
    *["000080", "FF00FF", "FFFF00", "00FFFF", "800080", "800000", "008080", "0000FF"],
    *["00CCFF", "CCFFFF", "CCFFCC", "FFFF99", "99CCFF", "FF99CC", "CC99FF", "FFCC99"],
    *["3366FF", "33CCCC", "99CC00", "FFCC00", "FF9900", "FF6600", "666699", "969696"],
    *["003366", "339966", "003300", "333300", "993300", "993366", "333399", "333333"],
    "000000",  # 64: the system's text
    "FFFFFF",  # 65: the system's window
)
"""The palette that files refer to by index unless they define their own."""


@dataclass(frozen=True, slots=True)
class Palette:
    """What a workbook's colours refer to.

    Attributes:
        theme: colours of the theme in the order in which cells count: light 1, dark 1, light 2,
            dark 2, six accents, link, followed link.
        indexed: the indexed colours.
    """

    theme: Sequence[str] = OFFICE_THEME
    indexed: Sequence[str] = INDEXED_COLOURS


def resolve_colour(attributes: Mapping[str, str], palette: Palette) -> str | None:
    """The colour that a colour element means.

    Args:
        attributes: ``rgb``, ``theme``, ``indexed`` or ``auto``, and ``tint``.
        palette: what the workbook's colours refer to.

    Returns:
        Six hexadecimal digits, or None for an automatic colour or one that refers to nothing.
    """
    colour: str | None = None
    if "rgb" in attributes:
        digits = attributes["rgb"][-6:].upper()
        colour = digits if re.fullmatch("[0-9A-F]{6}", digits) else None
    elif "theme" in attributes:
        colour = _at(palette.theme, attributes["theme"])
    elif "indexed" in attributes:
        colour = _at(palette.indexed, attributes["indexed"])
    if colour is None:
        return None
    try:
        tint = float(attributes.get("tint", "0"))
    except ValueError:
        tint = 0.0
    return _tinted(colour, max(-1.0, min(1.0, tint))) if tint else colour


def _at(colours: Sequence[str], index: str) -> str | None:
    number = whole_number(index)
    return colours[number] if number is not None and number < len(colours) else None


def _tinted(colour: str, tint: float) -> str:
    """Lightens (tint above 0) or darkens a colour, in hue, luminance and saturation.

    Source: ECMA-376 part 1, 18.8.19, attribute ``tint``.
    """
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (0, 2, 4))
    hue, luminance, saturation = colorsys.rgb_to_hls(red, green, blue)
    luminance = luminance * (1 + tint) if tint < 0 else luminance * (1 - tint) + tint
    channels = colorsys.hls_to_rgb(hue, luminance, saturation)
    return "".join(f"{round(channel * 255):02X}" for channel in channels)


def colours_agree(first: str | None, second: str | None) -> bool:
    """Whether two colours look the same; tints may differ by a rounding step."""
    if first is None or second is None:
        return first == second
    return all(
        abs(int(first[at : at + 2], 16) - int(second[at : at + 2], 16)) <= _CHANNEL_TOLERANCE
        for at in (0, 2, 4)
    )


@dataclass(frozen=True, slots=True)
class Fill:
    """How a cell is filled.

    Attributes:
        pattern: ``none``, ``solid``, another pattern's name, or ``gradient``.
        colours: its colours, as six hexadecimal digits or None for automatic.
    """

    pattern: str = "none"
    colours: tuple[str | None, ...] = ()

    def __str__(self) -> str:
        named = ", ".join(
            "automatic" if colour is None else f"#{colour}" for colour in self.colours
        )
        if self.pattern == "none":
            return "no fill"
        return named if self.pattern == "solid" else f"{self.pattern} {named}".rstrip()


@dataclass(frozen=True, slots=True)
class Alignment:
    """How a value is aligned in its cell."""

    horizontal: str = "general"
    vertical: str = "bottom"
    wrap: bool = False
    indent: int = 0
    rotation: int = 0

    def __str__(self) -> str:
        parts = [self.horizontal, self.vertical]
        parts += ["wrapped"] if self.wrap else []
        parts += [f"indent {self.indent}"] if self.indent else []
        parts += [f"rotated {self.rotation}"] if self.rotation else []
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class CellStyle:
    """The looks of a cell, with all references resolved.

    Attributes:
        fill: how it is filled.
        font_color: colour of its text, six hexadecimal digits.
        bold, italic: whether its text is bold or italic.
        underline: ``none``, ``single``, ``double`` …
        number_format: code of its number format.
        alignment: how its value is aligned.
    """

    fill: Fill = field(default_factory=Fill)
    font_color: str = AUTOMATIC_FONT
    bold: bool = False
    italic: bool = False
    underline: str = "none"
    number_format: str = "General"
    alignment: Alignment = field(default_factory=Alignment)


DEFAULT_STYLE = CellStyle()


def fills_agree(first: Fill, second: Fill) -> bool:
    """Whether two fills look the same."""
    return (
        first.pattern == second.pattern
        and len(first.colours) == len(second.colours)
        and all(map(colours_agree, first.colours, second.colours))
    )


def attribute_agrees(name: str, expected: CellStyle, actual: CellStyle) -> bool:
    """Whether two cells look the same in one attribute of :data:`STYLE_ATTRIBUTES`."""
    first, second = getattr(expected, name), getattr(actual, name)
    if name == "fill":
        return fills_agree(first, second)
    if name == "font_color":
        return colours_agree(first, second)
    if name == "number_format":
        return canonical_number_format(first) == canonical_number_format(second)
    return bool(first == second)


_LOCALE = re.compile(r"\[\$-[0-9A-Fa-f]++\]")
_CURRENCY = re.compile(r"\[\$([^\]\-]*+)(?:-[0-9A-Fa-f]++)?\]")
_ESCAPED = re.compile(r'\\(.)|"([^"]*)"')


@functools.lru_cache(maxsize=4096)
def canonical_number_format(code: str) -> str:
    """A number format without what is not visible: locales, kinds of quoting, a section for text.

    A string that is too long for a number format is compared as it is.
    """
    if len(code) > MAX_CODE_LENGTH:
        return code
    plain = _CURRENCY.sub(r"\1", _LOCALE.sub("", code))
    plain = _ESCAPED.sub(lambda match: match[1] or match[2] or "", plain)
    return plain.removesuffix(";@").lower()
