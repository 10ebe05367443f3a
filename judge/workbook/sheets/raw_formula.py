"""A formula as a worksheet has it, parsed when it is accessed."""

from __future__ import annotations

import re
from dataclasses import replace

from judge.workbook.address import MAX_COLUMN, Window, cell_key, parse_cell, parse_window

# What XML allows in text, apart from markup and from the carriage return, which it rewrites.
TEXT = "[^<\\x00-\\x08\\x0b-\\x1f\\ufffe\\uffff]"
ATTRIBUTES = '(?: [A-Za-z:]+="[^"<>&]*")*'
ATTRIBUTE = re.compile(' ([A-Za-z:]+)="([^"<>&]*)"')

FORMULA_KINDS = frozenset({"normal", "shared", "array", "dataTable"})
"""Types of formulas: ECMA-376 part 1, 18.18.6."""

FILLING_KINDS = frozenset({"array", "dataTable"})
"""Types of formulas that give values to a whole range, whose first cell has the formula."""

_FLAGS = {"0": False, "false": False, "1": True, "true": True}
_FORMULA = re.compile(f"<f({ATTRIBUTES}) ?(?:/>|>({TEXT}*)</f>)")
_ENTITY = re.compile("&(amp|lt|gt|quot|apos);")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
UNUSUAL_ENTITY = re.compile("&(?!(?:amp|lt|gt|quot|apos);)")
"""A character reference, or an entity that XML does not know."""


def unescape(text: str) -> str:
    """Text in which the five named entities are replaced by their characters."""
    return _ENTITY.sub(lambda match: _ENTITIES[match[1]], text) if "&" in text else text


class RawFormula:
    """A formula as the file has it.

    Args:
        text: the formula without its leading ``=``; empty if it refers to a shared one.
        attributes: attributes of its element.
        cached: whether a value is stored with it.

    Attributes:
        cached: whether a value is stored with it.
    """

    __slots__ = ("_attributes", "_markup", "_text", "cached")

    def __init__(self, text: str, attributes: dict[str, str], *, cached: bool) -> None:
        self._text = text
        self._attributes = attributes
        self._markup = ""
        self.cached = cached

    @classmethod
    def of_markup(cls, markup: str, *, cached: bool) -> RawFormula:
        """A formula that begins with the markup of an ``<f>`` element in its usual form."""
        formula = cls("", {}, cached=cached)
        formula._markup = markup
        return formula

    def _parse(self) -> None:
        markup = self._markup
        if markup:
            self._markup = ""
            if markup.startswith("<f>"):
                self._text = unescape(markup[3 : markup.index("</f>")])
                return
            match = _FORMULA.match(markup)
            assert match is not None
            self._attributes = dict(ATTRIBUTE.findall(match[1]))
            self._text = unescape(match[2] or "")

    @property
    def text(self) -> str:
        """The formula without its leading ``=``; empty if it refers to a shared one."""
        self._parse()
        return self._text

    @property
    def kind(self) -> str:
        """``normal``, ``shared``, ``array`` or ``dataTable``."""
        self._parse()
        return self._attributes.get("t", "normal")

    @property
    def reference(self) -> str | None:
        """The range to which a shared or array formula applies, on its first cell."""
        self._parse()
        return self._attributes.get("ref")

    @property
    def shared(self) -> str | None:
        """Index of the shared formula."""
        self._parse()
        return self._attributes.get("si")

    @property
    def computed_window(self) -> Window | None:
        """The part of a data table that LibreOffice computes; None if it computes nothing of it.

        The table must name the cells that its inputs replace: Excel shows ``#REF!`` where such a
        cell was deleted, LibreOffice what is stored. There must be a row above it and a column left
        of it. Of a table with one input, LibreOffice computes two columns, or two rows.
        """
        self._parse()
        given = self._attributes
        window = parse_window(self.reference or "")
        if window is None or min(window.min_row, window.min_column) == 1:
            return None
        flags = {name: _FLAGS.get(given.get(name, "0")) for name in ("dt2D", "dtr", "del1", "del2")}
        if None in flags.values():
            return None
        numbers = "12" if flags["dt2D"] else "1"
        if any(
            flags[f"del{number}"] or not _is_cell(given.get(f"r{number}", "")) for number in numbers
        ):
            return None
        if flags["dt2D"]:
            return window
        if flags["dtr"]:
            return replace(window, max_row=min(window.max_row, window.min_row + 1))
        return replace(window, max_column=min(window.max_column, window.min_column + 1))

    def belongs_to(self, key: int) -> bool:
        """Whether a formula that fills a range says which one, and is in its first cell."""
        if self.kind not in FILLING_KINDS:
            return True
        window = parse_window(self.reference or "")
        return window is not None and cell_key(window.min_row, window.min_column) == key


def _is_cell(text: str) -> bool:
    place = parse_cell(text)
    return place is not None and place[1] <= MAX_COLUMN
