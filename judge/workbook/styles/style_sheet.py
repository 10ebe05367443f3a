"""The style sheet of a workbook: the look of each cell format and of each conditional format.

A look has its colours resolved, with theme and tint, and its font, number format and alignment.
"""

from __future__ import annotations

import colorsys
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from judge.workbook.number_formats import MAX_CODE_LENGTH, NumberFormats
from judge.workbook.package import Package
from judge.workbook.tree import Element, read_tree
from judge.workbook.xml_parts import THEME_NAMES, is_on, whole_number

AUTOMATIC_FONT = "000000"
_CHANNEL_TOLERANCE = 3  # Excel computes tints in its own whole steps

# Colours of the Office theme, for workbooks without one; in the order of their indices.
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
"""The palette to which files refer by index unless they define their own palette."""


@dataclass(frozen=True, slots=True)
class Palette:
    """The palette to which a workbook's colours refer.

    Attributes:
        theme: colours of the theme in the order of their indices: light 1, dark 1, light 2,
            dark 2, six accents, link, followed link.
        indexed: the indexed colours.
    """

    theme: Sequence[str] = OFFICE_THEME
    indexed: Sequence[str] = INDEXED_COLOURS


def resolve_colour(attributes: Mapping[str, str], palette: Palette) -> str | None:
    """The colour that a colour element stands for.

    Args:
        attributes: ``rgb``, ``theme``, ``indexed`` or ``auto``, and ``tint``.
        palette: the palette of the workbook.

    Returns:
        Six hexadecimal digits, or None for an automatic colour or a colour that is not defined.
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
    """Whether two colours look the same; their tints may differ by rounding."""
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
    """The formatting of a cell, with all references resolved.

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
    """Removes the invisible parts of a number format: locales, quoting, a section for text.

    A string that is too long for a number format does not change.
    """
    if len(code) > MAX_CODE_LENGTH:
        return code
    plain = _CURRENCY.sub(r"\1", _LOCALE.sub("", code))
    plain = _ESCAPED.sub(lambda match: match[1] or match[2] or "", plain)
    return plain.removesuffix(";@").lower()


_MAX_ELEMENTS = 500_000
"""Largest number of elements of a style sheet: Excel allows 65,490 cell formats, with a few
elements each."""

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class ConditionalStyle:
    """The changes that a conditional format makes; None leaves the cell's own look.

    Attributes:
        fill: the fill that it sets.
        font_color: the colour of the text that it sets.
        bold, italic: whether the text becomes bold or italic.
        underline: how the text is underlined.
        number_format: code of the number format that it sets.
    """

    fill: Fill | None = None
    font_color: str | None = None
    bold: bool | None = None
    italic: bool | None = None
    underline: str | None = None
    number_format: str | None = None


@dataclass(frozen=True, slots=True)
class StyleSheet:
    """The formats that a workbook defines.

    Attributes:
        cells: the cell formats, resolved, by index.
        conditional: the formats of conditional formatting, by index.
        palette: the palette, for colours outside of the style sheet.
    """

    cells: Sequence[CellStyle] = ()
    conditional: Sequence[ConditionalStyle] = ()
    palette: Palette = field(default_factory=Palette)

    def cell(self, index: int) -> CellStyle:
        """The look of a cell format."""
        return self.cells[index] if 0 <= index < len(self.cells) else DEFAULT_STYLE


def read_style_sheet(
    package: Package, styles: str | None, theme: str | None, formats: NumberFormats
) -> StyleSheet:
    """Reads the formats that a workbook defines.

    Args:
        package: the workbook.
        styles: the style sheet's part, or None.
        theme: part of the theme, or None.
        formats: number formats by cell format.

    Raises:
        WorkbookError: a part is broken or over a limit.
    """
    if styles is None:
        return StyleSheet()
    root = read_tree(package, styles, max_elements=_MAX_ELEMENTS)
    palette = Palette(
        theme=OFFICE_THEME
        if theme is None
        else _theme_colours(read_tree(package, theme, names=THEME_NAMES)),
        indexed=_indexed_colours(root),
    )
    fonts = [_font(node, palette) for node in _list(root, "fonts")]
    fills = [_fill(node, palette) for node in _list(root, "fills")]
    cells = []
    for index, xf in enumerate(node for node in _list(root, "cellXfs") if node.name == "xf"):
        font = _pick(fonts, xf.attributes.get("fontId"), DEFAULT_STYLE)
        cells.append(
            replace(
                font,
                fill=_pick(fills, xf.attributes.get("fillId"), Fill()),
                number_format=formats.code(index),
                alignment=_alignment(xf.child("alignment")),
            )
        )
    looks = [_conditional(node, palette) for node in _list(root, "dxfs")]
    return StyleSheet(cells, looks, palette)


@dataclass(frozen=True, slots=True)
class FontColours:
    """The colours of fonts as the style sheet writes them, without looking them up.

    Attributes:
        fonts: attributes of the colour element of each font; None if it has none.
        formats: index of the font of each cell format.
    """

    fonts: Sequence[Mapping[str, str] | None] = ()
    formats: Sequence[int] = ()

    @property
    def first(self) -> Mapping[str, str] | None:
        """The colour of the first font, which applies to cells that are not stored."""
        return self.fonts[0] if self.fonts else None

    def of_format(self, index: int) -> Mapping[str, str] | None:
        """The colour of the font of a cell format.

        Raises:
            IndexError: there is no such cell format, or no such font.
        """
        if not self.formats and not index:
            return self.first
        return self.fonts[self.formats[index]]


def read_font_colours(package: Package, styles: str | None) -> FontColours:
    """Reads font colours in the form in which the file stores them.

    Args:
        package: the workbook.
        styles: the style sheet's part, or None.

    Raises:
        WorkbookError: the part is broken or over a limit.
    """
    if styles is None:
        return FontColours()
    root = read_tree(package, styles, max_elements=_MAX_ELEMENTS)
    colours = [font.child("color") for font in _list(root, "fonts")]
    return FontColours(
        [None if colour is None else colour.attributes for colour in colours],
        [
            whole_number(xf.attributes.get("fontId")) or 0
            for xf in _list(root, "cellXfs")
            if xf.name == "xf"
        ],
    )


def _list(root: Element, name: str) -> list[Element]:
    holder = root.child(name)
    return [] if holder is None else holder.children


def _pick(items: Sequence[_Item], index: str | None, default: _Item) -> _Item:
    number = whole_number(index) or 0
    return items[number] if number < len(items) else default


# -- colours --------------------------------------------------------------------------------------

_THEME_ORDER = (
    "lt1",
    "dk1",
    "lt2",
    "dk2",
    *(f"accent{n}" for n in range(1, 7)),
    "hlink",
    "folHlink",
)


def _theme_colours(root: Element) -> tuple[str, ...]:
    elements = root.child("themeElements")
    scheme = None if elements is None else elements.child("clrScheme")
    if scheme is None:
        return OFFICE_THEME
    styles = {}
    for entry in scheme.children:
        for colour in entry.children:
            digits = colour.attributes.get(
                "lastClr" if colour.name == "sysClr" else "val", ""
            ).upper()
            if len(digits) == 6:
                styles[entry.name] = digits
    return tuple(
        styles.get(name, default) for name, default in zip(_THEME_ORDER, OFFICE_THEME, strict=True)
    )


def _indexed_colours(root: Element) -> Sequence[str]:
    colours = root.child("colors")
    own = None if colours is None else colours.child("indexedColors")
    if own is None:
        return INDEXED_COLOURS
    listed = [child.attributes.get("rgb", "")[-6:].upper() for child in own.children]
    return (*listed, *INDEXED_COLOURS[len(listed) :])


def _colour(element: Element | None, palette: Palette) -> str | None:
    return None if element is None else resolve_colour(element.attributes, palette)


# -- parts of a format ----------------------------------------------------------------------------


def _is_on(element: Element | None) -> bool:
    return element is not None and is_on(element.attributes.get("val"), default=True)


def _font(element: Element, palette: Palette) -> CellStyle:
    underline = element.child("u")
    return replace(
        DEFAULT_STYLE,
        font_color=_colour(element.child("color"), palette) or AUTOMATIC_FONT,
        bold=_is_on(element.child("b")),
        italic=_is_on(element.child("i")),
        underline="none" if underline is None else underline.attributes.get("val", "single"),
    )


def _fill(element: Element, palette: Palette) -> Fill:
    gradient = element.child("gradientFill")
    if gradient is not None:
        stops = [_colour(stop.child("color"), palette) for stop in gradient.all("stop")]
        return Fill("gradient", tuple(stops))
    pattern = element.child("patternFill")
    kind = "none" if pattern is None else pattern.attributes.get("patternType", "none")
    if pattern is None or kind == "none":
        return Fill()
    foreground = _colour(pattern.child("fgColor"), palette)
    if kind == "solid":
        return Fill("solid", (foreground,))
    return Fill(kind, (foreground, _colour(pattern.child("bgColor"), palette)))


def _alignment(element: Element | None) -> Alignment:
    if element is None:
        return Alignment()
    attributes = element.attributes
    return Alignment(
        horizontal=attributes.get("horizontal", "general"),
        vertical=attributes.get("vertical", "bottom"),
        wrap=is_on(attributes.get("wrapText")),
        indent=_number(attributes.get("indent")),
        rotation=_number(attributes.get("textRotation")),
    )


def _number(text: str | None) -> int:
    return whole_number(text) or 0


def _conditional(element: Element, palette: Palette) -> ConditionalStyle:
    font, fill = element.child("font"), element.child("fill")
    style = ConditionalStyle()
    if font is not None:
        bold, italic, underline = (font.child(name) for name in ("b", "i", "u"))
        style = replace(
            style,
            font_color=_colour(font.child("color"), palette),
            bold=None if bold is None else _is_on(bold),
            italic=None if italic is None else _is_on(italic),
            underline=None if underline is None else underline.attributes.get("val", "single"),
        )
    number_format = element.child("numFmt")
    if number_format is not None:
        style = replace(style, number_format=number_format.attributes.get("formatCode"))
    pattern = None if fill is None else fill.child("patternFill")
    if pattern is not None:
        # Here, and only here, the colour of a plain fill is its background colour.
        colour = _colour(pattern.child("bgColor"), palette) or _colour(
            pattern.child("fgColor"), palette
        )
        kind = pattern.attributes.get("patternType", "solid")
        style = replace(style, fill=Fill() if kind == "none" else Fill(kind, (colour,)))
    return style
