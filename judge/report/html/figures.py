"""Formats the numbers of a page, each with its path in the JSON form of the report.

A template cannot print a number of a run itself: it names a path in the document, and the number is
taken from there. So a page cannot differ from the JSON. Characters that are invisible, or change
the direction of text, are shown by their names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

INVISIBLE_CHARACTERS = {
    *range(0x20),
    *range(0x7F, 0xA0),
    0xAD,
    0x61C,
    0x180E,
    *range(0x200B, 0x2010),
    *range(0x2028, 0x202F),
    *range(0x2060, 0x2070),
    0xFEFF,
    *range(0xFFF9, 0xFFFC),
    *range(0xD800, 0xE000),
}
"""Code points that pages show by their name."""


def with_named_characters(text: str) -> str:
    """Replaces these characters by their names where markup is impossible: drawings and labels."""
    return "".join(
        character if ord(character) not in INVISIBLE_CHARACTERS else f"U+{ord(character):04X}"
        for character in text
    )


MIB = 1 << 20
SMALL_P = 0.0001
"""p-values below this are shown with a power of ten."""
KIB = 1 << 10
DASH = "\u2013"
MINUS = "\u2212"


@dataclass(frozen=True, slots=True)
class FigureFormat:
    """How a number is shown.

    Attributes:
        factor: the factor that it is multiplied by.
        digits: digits after the decimal point.
        unit: the text after it, if any.
        grouped: whether thousands are separated.
        scientific: whether it is shown with a power of ten.
    """

    factor: float = 1
    digits: int = 0
    unit: str = ""
    grouped: bool = True
    scientific: bool = False

    def text(self, value: float) -> str | Markup:
        """The number as text, or as markup if it has a power of ten."""
        if self.scientific:
            mantissa, _, power = f"{value:.1e}".partition("e")
            sign = MINUS if int(power) < 0 else ""
            return Markup("{} × 10<sup>{}{}</sup>").format(mantissa, sign, abs(int(power)))  # noqa: RUF001 - multiplication sign
        return f"{value * self.factor:{',' if self.grouped else ''}.{self.digits}f}"


def shown_as(value: float, style: str) -> FigureFormat:
    """How a number of a certain kind is shown.

    Args:
        value: the number.
        style: ``count``, ``percent`` (of a share), ``share`` (with one digit),
            ``whole_percent``, ``seconds``, ``bytes``, ``usd``, ``p``, ``name`` (a number that only
            identifies something) or ``plain``.
    """
    match style:
        case "count":
            return FigureFormat()
        case "percent":
            return FigureFormat(factor=100, digits=2, unit="%")
        case "share":
            return FigureFormat(factor=100, digits=1)
        case "whole_percent":
            return FigureFormat(factor=100, unit="%")
        case "seconds":
            return FigureFormat(digits=_digits(value, 3), unit="s")
        case "bytes":
            factor, unit = (1 / MIB, "MiB") if value >= MIB else (1 / KIB, "KiB")
            return FigureFormat(factor, 1, unit)
        case "usd":
            return FigureFormat(digits=max(2, _digits(value, 2)), unit="US$")
        case "name":
            return FigureFormat(grouped=False)
        case "p":
            return FigureFormat(digits=_digits(value, 2), scientific=0 < value < SMALL_P)
        case _:
            return FigureFormat(digits=0 if float(value).is_integer() else _digits(value, 3))


def _digits(value: float, significant: int) -> int:
    """How many decimals show a certain number of significant digits."""
    if not value:
        return 0
    return max(0, min(12, significant - 1 - math.floor(math.log10(abs(value)))))


class Figures:
    """The numbers of one document.

    Args:
        document: the JSON form of a report.
    """

    def __init__(self, document: Any) -> None:
        self._document = document

    def at(self, pointer: str) -> Any:
        """The value at a path, given as a JSON pointer (RFC 6901).

        Raises:
            LookupError: the path does not exist.
        """
        value = self._document
        for part in pointer.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            value = value[name] if isinstance(value, Mapping) else value[int(name)]
        return value

    def number(self, pointer: str, style: str = "count", *, unit: bool = True) -> Markup:
        """The number at a path as markup; a dash if it is null."""
        value = self.at(pointer)
        if value is None:
            return Markup('<span class="none" data-at="{}">{}</span>').format(pointer, DASH)
        shown = shown_as(value, style)
        markup = Markup(
            '<data data-at="{}" data-factor="{}" data-digits="{}" value="{}">{}</data>'
        ).format(pointer, repr(shown.factor), shown.digits, repr(value), shown.text(value))
        if unit and shown.unit:
            markup += Markup(' <span class="unit">{}</span>').format(shown.unit)
        return markup

    def length(self, pointer: str) -> Markup:
        """The number of entries in the list at a path."""
        entries = len(self.at(pointer))
        return Markup('<data data-at="{}" data-of="length" value="{}">{}</data>').format(
            pointer, entries, FigureFormat().text(entries)
        )

    def signed(self, pointer: str) -> Markup:
        """The difference of two shares at a path, in points, with its sign."""
        value = self.at(pointer)
        if value is None:
            return self.number(pointer)
        return self._with_sign(pointer, value, FigureFormat(factor=100, digits=2))

    def moved(self, pointer: str) -> Markup:
        """The number at a path, which is the difference of two amounts, with its sign."""
        value = self.at(pointer)
        if value is None:
            return self.number(pointer)
        return self._with_sign(pointer, value, FigureFormat(digits=min(_digits(value, 3), 2)))

    def _with_sign(self, pointer: str, value: float, shown: FigureFormat) -> Markup:
        sign = "+" if value > 0 else MINUS if value < 0 else ""
        return Markup(
            '<data data-at="{}" data-factor="{}" data-digits="{}" value="{}">{}{}</data>'
        ).format(
            pointer, repr(shown.factor), shown.digits, repr(value), sign, shown.text(abs(value))
        )

    def interval(self, pointer: str, style: str = "percent") -> Markup:
        """The interval of the estimate at a path; empty if it does not have one."""
        if self.at(f"{pointer}/low") is None:
            return Markup()
        return Markup('<span class="ci">{}{}{}</span>').format(
            self.number(f"{pointer}/low", style, unit=False),
            DASH,
            self.number(f"{pointer}/high", style, unit=False),
        )

    def estimate(self, pointer: str, style: str = "percent") -> Markup:
        """The estimate at a path with its interval, without a unit."""
        return self.number(f"{pointer}/value", style, unit=False) + self.interval(pointer, style)


def plain(text: object) -> str:
    """Untrusted text without markup, for attributes and options; invisible characters by name."""
    return "".join(
        f"[U+{ord(one):04X}]" if ord(one) in INVISIBLE_CHARACTERS else one for one in str(text)
    )


def lines(text: object) -> Markup:
    """Untrusted multi-line text; its line breaks and tabs are kept."""
    return visible(text, "\n\t")


def visible(text: object, kept: str = "") -> Markup:
    """Untrusted text, with invisible characters shown by name.

    Args:
        text: the text.
        kept: invisible characters that are not replaced.
    """
    pieces: list[str] = []
    plain: list[str] = []
    for character in str(text):
        code = ord(character)
        if code not in INVISIBLE_CHARACTERS or character in kept:
            plain.append(character)
            continue
        pieces.append(str(escape("".join(plain))))
        plain.clear()
        name = f"U+{code:04X}"
        shown = chr(0x2400 + code) if code < 0x20 else name
        pieces.append(f'<span class="unseen" title="{name}">{shown}</span>')
    pieces.append(str(escape("".join(plain))))
    return Markup("".join(pieces))  # noqa: S704 - every piece is escaped above
