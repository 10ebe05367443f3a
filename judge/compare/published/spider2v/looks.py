"""Reads the formatting of cells as the published functions do through openpyxl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from judge.compare.published_error import PublishedError, Side, no_attribute
from judge.compare.rules.book import Book
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, WHOLE_SHEET, cell_key, cell_name
from judge.workbook.cell import CellValue, ErrorValue
from judge.workbook.reader import linked_keys
from judge.workbook.tree import MAX_ELEMENTS, Element, number, read_tree, whole
from judge.workbook.xml_parts import is_on

NO_RGB = "a colour that is not written as digits"
"""The value of all theme and palette colours: openpyxl returns the same object for each."""

_FONTS = {
    "font_name": "name",
    "font_family": "family",
    "font_color": "color",
    "font_bold": "b",
    "font_italic": "i",
    "font_underline": "u",
    "font_size": "sz",
}
PROPERTIES = {*_FONTS, "number_format", "fill_type", "bgcolor", "fgcolor", "hyperlink", "merge"}
_BLACK = "00000000"


@dataclass(frozen=True, slots=True)
class CellState:
    """The facts about a cell on which its properties depend.

    Attributes:
        style: index of the cell format; None for a cell that is not in the file.
        filled: whether the cell holds a value or a formula.
        is_number: whether the cell holds a plain number.
        link: the part of its hyperlink that is compared; None if it has no hyperlink.
        merged: whether it is in a merged range, but not its first cell.
    """

    style: int | None = None
    filled: bool = False
    is_number: bool = False
    link: tuple[object, ...] | None = None
    merged: bool = False


_ABSENT = CellState()


class SheetLooks:
    """Looks of the cells of one worksheet.

    Args:
        book: the workbook.
        sheet: name of the worksheet.
        osworld: read properties as OSWorld's evaluator does, and not as Spider2-V's.
    """

    def __init__(self, book: Book, sheet: str, *, osworld: bool) -> None:
        self._book = book
        self._name = sheet
        self._osworld = osworld
        self._properties: dict[tuple[str, CellState], object] = {}

    @cached_property
    def states(self) -> Mapping[int, CellState]:
        """The cells that openpyxl has created after reading the sheet, by key.

        Raises:
            WorkbookError: the sheet is broken or over a limit.
        """
        book, name = self._book.workbook, self._name
        sheet = book.sheet(name)
        sheet.load([WHOLE_SHEET], blanks=True)
        values, styles = sheet.values(WHOLE_SHEET), sheet.styles(WHOLE_SHEET)
        formulas = set(sheet.formula_keys(WHOLE_SHEET))
        states = {
            key: CellState(
                style=styles.get(key, 0),
                filled=key in formulas or values.get(key) is not None,
                is_number=key not in formulas and _is_number(values.get(key)),
            )
            for key in values.keys() | styles.keys() | formulas
        }
        budget = book.package.budget
        for merge in sheet.tail.merges:
            size = merge.size
            with book.package.blamed():
                budget.take_cells(size)
            for row in range(merge.min_row, merge.max_row + 1):
                for column in range(merge.min_column, merge.max_column + 1):
                    if (row, column) != merge.first:
                        states[cell_key(row, column)] = CellState(merged=True)
        self._add_links(states)
        return states

    def _add_links(self, states: dict[int, CellState]) -> None:
        tab = self._book.tab(self._name)
        holder = None if tab is None else self._book.facts.tree(tab).child("hyperlinks")
        listed = [] if holder is None else holder.all("hyperlink")
        linked = linked_keys(self._book.workbook, self._name, WHOLE_SHEET)
        for element, (_, keys, target) in zip(listed, linked, strict=False):
            attributes = element.attributes
            link = tuple(attributes.get(name) for name in ("location", "tooltip", "display"))
            identifier = attributes.get("r:id")
            for key in keys:
                state = states.get(key, _ABSENT)
                if state.merged:
                    continue
                filled = state.filled or bool(target)
                states[key] = replace(state, link=(key, *link, identifier), filled=filled)

    @property
    def size(self) -> tuple[int, int]:
        """The last row and column of the cells that exist; (0, 0) without cells."""
        states = self.states
        if not any(not state.merged and state.style is not None for state in states.values()):
            rows = columns = 0
        else:
            rows = max(states) >> COLUMN_BITS
            columns = max(key & COLUMN_MASK for key in states)
        touched = self._book.touched.get(self._name, (0, 0))
        return max(rows, touched[0]), max(columns, touched[1])

    def state(self, key: int) -> CellState:
        """Returns a cell; a cell that is not in the file is blank."""
        return self.states.get(key, _ABSENT)

    def row_of(self, property_names: Sequence[str], key: int) -> tuple[object, ...]:
        """Returns the requested properties of a cell.

        Raises:
            PublishedError: the published function raises.
            WorkbookError: the style sheet is broken or over a limit.
        """
        return tuple(self.property(name, self.state(key)) for name in property_names)

    def property(self, name: str, state: CellState, look: Element | None = None) -> object:
        """A property of a cell, or of a conditional look that is on top of it.

        Raises:
            PublishedError: the published function raises.
            WorkbookError: the style sheet is broken or over a limit.
        """
        if look is not None:
            return self._property(name, state, look)
        cache_key = (name, state)
        if cache_key not in self._properties:
            self._properties[cache_key] = self._property(name, state, None)
        return self._properties[cache_key]

    def _property(self, name: str, state: CellState, look: Element | None) -> object:
        if name not in PROPERTIES or (name == "merge" and not self._osworld):
            raise PublishedError("NotImplementedError", f"Unsupported Style: {name}", Side.RULES)
        if name == "merge":
            return state.merged
        if name == "hyperlink":
            return (state.link or "") if state.filled else None
        if name == "number_format":
            return self._number_format(state, look) if state.filled and state.is_number else None
        if name in _FONTS:
            return self._font(name, state, look) if state.filled else None
        return self._fill(name, state, look)

    def _number_format(self, state: CellState, look: Element | None) -> object:
        if look is None:
            return self._book.workbook.number_formats.code(state.style or 0)
        code = look.child("numFmt")
        if code is None:
            raise no_attribute("NoneType", "formatCode")
        return code.attributes.get("formatCode")

    def _font(self, name: str, state: CellState, look: Element | None) -> object:
        font = self._sheet.font(state.style) if look is None else look.child("font")
        tag = _FONTS[name]
        if font is None:
            raise no_attribute("NoneType", {"b": "bold", "i": "italic"}.get(tag, name[5:]))
        if tag == "color":
            return rgb_of(font.child("color"), missing="rgb")
        if tag in {"b", "i"}:
            child = font.child(tag)
            return child is not None and is_on(child.attributes.get("val"), default=True)
        if tag == "u":
            child = font.child("u")
            word = None if child is None else child.attributes.get("val", "single")
            return None if word == "none" else word
        value = font.value(tag)
        return value if tag == "name" else number(value)

    def _fill(self, name: str, state: CellState, look: Element | None) -> object:
        fill = self._sheet.fill(state.style) if look is None else look.child("fill")
        kind = None if fill is None else next(iter(fill.children), None)
        if kind is None:
            return None
        if name == "fill_type":
            return kind.name
        if kind.name != "patternFill":
            return None
        # OSWorld's evaluator takes the visible colour: the foreground of a cell's own fill, the
        # background of a conditional one.
        tag = "fgColor" if name == "fgcolor" else "bgColor"
        if self._osworld:
            tag = "fgColor" if look is None else "bgColor"
        colour = kind.child(tag)
        return _BLACK if colour is None else rgb_of(colour)

    @cached_property
    def _sheet(self) -> StyleParts:
        return style_parts(self._book)


def _is_number(value: CellValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool | ErrorValue)


def rgb_of(colour: Element | None, *, missing: str = "rgb") -> str:
    """The hex digits of a colour; :data:`NO_RGB` for a theme or palette colour.

    Raises:
        PublishedError: there is no colour.
    """
    if colour is None:
        raise no_attribute("NoneType", missing)
    attributes = colour.attributes
    if any(name in attributes for name in ("indexed", "theme")) or (
        "auto" in attributes and "rgb" not in attributes
    ):
        return NO_RGB
    digits = attributes.get("rgb", _BLACK)
    return f"00{digits}" if len(digits) == 6 else digits


class StyleParts:
    """Fonts, fills and conditional formats of a style sheet, as elements.

    Args:
        root: the style sheet; None if the workbook has no style sheet.
    """

    def __init__(self, root: Element | None) -> None:
        top = root or Element("styleSheet")
        self._fonts = _children(top, "fonts")
        self._fills = _children(top, "fills")
        self._formats = [child for child in _children(top, "cellXfs") if child.name == "xf"]
        self.looks = _children(top, "dxfs")

    def font(self, style: int | None) -> Element | None:
        """The font of a cell format."""
        return _pick(self._fonts, self._index(style, "fontId"))

    def fill(self, style: int | None) -> Element | None:
        """The fill of a cell format."""
        return _pick(self._fills, self._index(style, "fillId"))

    def _index(self, style: int | None, name: str) -> int:
        if style is None or style >= len(self._formats):
            return 0
        return whole(self._formats[style].attributes.get(name)) or 0


def style_parts(book: Book) -> StyleParts:
    """The style sheet of a workbook.

    Raises:
        WorkbookError: it is broken or over a limit.
    """
    part = book.workbook.styles_part
    if part is None:
        return StyleParts(None)
    with book.workbook.package.blamed():
        return StyleParts(read_tree(book.workbook.package, part, max_elements=MAX_ELEMENTS))


def _children(root: Element, name: str) -> list[Element]:
    holder = root.child(name)
    return [] if holder is None else holder.children


def _pick(items: Sequence[Element], index: int) -> Element | None:
    return items[index] if 0 <= index < len(items) else None


def name_of(key: int) -> str:
    """The address of a cell by its key."""
    return cell_name(key >> COLUMN_BITS, key & COLUMN_MASK)
