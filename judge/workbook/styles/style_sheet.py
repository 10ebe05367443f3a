"""The style sheet of a workbook: the looks of each cell format and of each conditional one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from judge.workbook.namespaces import THEME_NAMES
from judge.workbook.number_formats import NumberFormats
from judge.workbook.package import Package
from judge.workbook.styles.style import (
    AUTOMATIC_FONT,
    DEFAULT_STYLE,
    INDEXED_COLOURS,
    OFFICE_THEME,
    Alignment,
    CellStyle,
    Fill,
    Palette,
    resolve_colour,
)
from judge.workbook.tree import Element, read_tree
from judge.workbook.xml_numbers import whole_number

_MAX_ELEMENTS = 500_000
"""Excel has at most 65,490 cell formats, of a few elements each."""

_Item = TypeVar("_Item")
_ON = {"1", "true", "on", "t"}


@dataclass(frozen=True, slots=True)
class ConditionalStyle:
    """What a conditional format changes; None leaves the cell's own look.

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
    """The looks that a workbook defines.

    Attributes:
        cells: looks of the cell formats, by index.
        conditional: looks of the conditional formats, by index.
        palette: what colours refer to, for colours outside the style sheet.
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
    """Reads the looks that a workbook defines.

    Args:
        package: the workbook.
        styles: part of the style sheet, or None.
        theme: part of the theme, or None.
        formats: number formats by cell format.

    Raises:
        WorkbookError: a part is broken or over a limit.
    """
    if styles is None:
        return StyleSheet()
    root = read_tree(package, styles, most=_MAX_ELEMENTS)
    palette = Palette(
        theme=OFFICE_THEME
        if theme is None
        else _theme_colours(read_tree(package, theme, names=THEME_NAMES)),
        indexed=_indexed_colours(root),
    )
    fonts = [_font(each, palette) for each in _list(root, "fonts")]
    fills = [_fill(each, palette) for each in _list(root, "fills")]
    cells = []
    for index, xf in enumerate(each for each in _list(root, "cellXfs") if each.name == "xf"):
        font = _pick(fonts, xf.attributes.get("fontId"), DEFAULT_STYLE)
        cells.append(
            replace(
                font,
                fill=_pick(fills, xf.attributes.get("fillId"), Fill()),
                number_format=formats.code(index),
                alignment=_alignment(xf.child("alignment")),
            )
        )
    looks = [_conditional(each, palette) for each in _list(root, "dxfs")]
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
        """The colour of the first font, which cells have that are not stored."""
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
    """Reads the colours of fonts as they are written.

    Args:
        package: the workbook.
        styles: part of the style sheet, or None.

    Raises:
        WorkbookError: the part is broken or over a limit.
    """
    if styles is None:
        return FontColours()
    root = read_tree(package, styles, most=_MAX_ELEMENTS)
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
    found = {}
    for entry in scheme.children:
        for colour in entry.children:
            digits = colour.attributes.get(
                "lastClr" if colour.name == "sysClr" else "val", ""
            ).upper()
            if len(digits) == 6:
                found[entry.name] = digits
    return tuple(
        found.get(name, default) for name, default in zip(_THEME_ORDER, OFFICE_THEME, strict=True)
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
    return element is not None and element.attributes.get("val", "1").lower() in _ON


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
        wrap=attributes.get("wrapText", "0").lower() in _ON,
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
