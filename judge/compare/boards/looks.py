"""Looks of cells as boards compare them: font, colours, class of the number format."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from judge.compare.published.spider2v.looks import StyleParts, style_parts
from judge.compare.rules.book import Book
from judge.workbook.styles.style_sheet import CellStyle, Fill, colours_agree
from judge.workbook.tree import number

_WHITE = "FFFFFF"


@dataclass(frozen=True, slots=True)
class CellLook:
    """The look of a cell.

    Attributes:
        font: name of its font.
        size: size of its font in points.
        color: colour of its text, six hexadecimal digits.
        bold, italic: whether its text is bold or italic.
        underline: ``none``, ``single`` …
        fill: colour behind it; white where it has none, as the published functions see it.
        code: its number format.
    """

    font: str | None
    size: float | None
    color: str
    bold: bool
    italic: bool
    underline: str
    fill: str
    code: str

    @property
    def format_class(self) -> str:
        """The class of its number format."""
        return format_class(self.code)


FONT_FIELDS = ("font", "size", "color", "bold", "italic", "underline")
FIELDS = (*FONT_FIELDS, "fill")
"""What ``cells.formatting`` compares, in addition to the class of the number format."""


def differing_field(
    expected: CellLook, actual: CellLook, names: tuple[str, ...], *, rounded: bool
) -> str | None:
    """The first of some fields in which two looks differ; None if there is none.

    Args:
        expected: the look in the gold.
        actual: the look in the answer.
        names: the fields.
        rounded: whether colours may differ by a rounding step.
    """
    for name in names:
        first, second = getattr(expected, name), getattr(actual, name)
        same = first == second
        if not same and rounded and name in {"color", "fill"}:
            same = colours_agree(first, second)
        if not same:
            return name
    return None


class Looks:
    """Looks of the cell formats of a workbook.

    Args:
        book: the workbook.
    """

    def __init__(self, book: Book) -> None:
        self._book = book
        self._parts: StyleParts | None = None
        self._known: dict[int, CellLook] = {}

    def of(self, style: int) -> CellLook:
        """The look of a cell format.

        Raises:
            WorkbookError: the style sheet is broken or over a limit.
        """
        known = self._known.get(style)
        if known is None:
            if self._parts is None:
                self._parts = style_parts(self._book)
            known = self._known[style] = self._read(self._parts, style)
        return known

    def _read(self, parts: StyleParts, style: int) -> CellLook:
        font = parts.font(style)
        resolved: CellStyle = self._book.workbook.style(style)
        return CellLook(
            font=None if font is None else font.value("name"),
            size=None if font is None else number(font.value("sz")),
            color=resolved.font_color,
            bold=resolved.bold,
            italic=resolved.italic,
            underline=resolved.underline,
            fill=_interior(resolved.fill),
            code=self._book.workbook.number_formats.code(style),
        )


def _interior(fill: Fill) -> str:
    if fill.pattern == "none":
        return _WHITE
    colours = [colour for colour in fill.colours if colour]
    return (
        colours[0]
        if fill.pattern in {"solid", "gradient"} and colours
        else (fill.colours[-1] or _WHITE if fill.colours else _WHITE)
    )


@cache
def format_class(code: str) -> str:
    """The class of a number format, as the published function sorts it by what the code holds."""
    lower = code.lower()
    if "$" in lower or "¥" in lower or lower == "currency":
        return "currency"
    if "%" in lower:
        return "percentage"
    if "yy" in lower or "dd" in lower:
        return "date"
    if any(each in lower for each in (":", "m", "ss", "hh")):
        return "time"
    if lower == "@":
        return "text"
    if "general" in lower:
        return "general"
    if "#0" in lower or lower in {"0", "0.00"}:
        return "number"
    return code
