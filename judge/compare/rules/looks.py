"""Resolved formatting of cells: theme colours with their tints, hyperlinks by their target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from judge.compare.cells.answer_range import Plan
from judge.compare.cells.comparison import DifferenceClass
from judge.compare.cells.computing import Compute, compute_and_check
from judge.compare.cells.options import CheckOptions
from judge.compare.profiles import get_profile
from judge.compare.published.spider2v.looks import PROPERTIES, StyleParts, style_parts
from judge.compare.published_error import PublishedError, Side
from judge.compare.rules.book import Book
from judge.core.submission import Origin
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, WHOLE_SHEET, cell_key, cell_name
from judge.workbook.cell import CellRange
from judge.workbook.reader import linked_keys
from judge.workbook.styles.style_sheet import attribute_agrees
from judge.workbook.tree import number

_ATTRIBUTES = {
    "number_format": "number_format",
    "font_color": "font_color",
    "font_bold": "bold",
    "font_italic": "italic",
    "font_underline": "underline",
    "fill_type": "fill",
    "bgcolor": "fill",
    "fgcolor": "fill",
}
_FONT_TAGS = {"font_name": "name", "font_family": "family", "font_size": "sz"}


class WholeLooks:
    """The formatting of the cells of a sheet.

    Args:
        book: the workbook.
        sheet: name of the worksheet.
    """

    def __init__(self, book: Book, sheet: str) -> None:
        self.book = book
        self.name = sheet

    @cached_property
    def parts(self) -> StyleParts:
        """Fonts as XML elements, for properties that the resolved formatting does not include."""
        return style_parts(self.book)

    @cached_property
    def filled(self) -> frozenset[int]:
        """Keys of the cells that hold a value or a formula."""
        sheet = self.book.workbook.sheet(self.name)
        values = sheet.values(WHOLE_SHEET)
        keys = {key for key, value in values.items() if value is not None}
        return frozenset(keys.union(sheet.formula_keys(WHOLE_SHEET)))

    @cached_property
    def styles(self) -> Mapping[int, int]:
        """Key of a stored cell -> its cell format, without cells that have the first format."""
        return self.book.workbook.sheet(self.name).styles(WHOLE_SHEET)

    @cached_property
    def merged(self) -> frozenset[int]:
        """Keys of the cells of merged ranges."""
        keys: set[int] = set()
        for merge in self.book.workbook.sheet(self.name).tail.merges:
            size = merge.size
            with self.book.workbook.package.blamed():
                self.book.workbook.package.budget.take_cells(size)
            keys.update(
                cell_key(row, column)
                for row in range(merge.min_row, merge.max_row + 1)
                for column in range(merge.min_column, merge.max_column + 1)
            )
        return frozenset(keys)

    @cached_property
    def links(self) -> Mapping[int, str]:
        """Key of a cell -> target of its hyperlink."""
        links: dict[int, str] = {}
        for _, keys, target in linked_keys(self.book.workbook, self.name, WHOLE_SHEET):
            links |= dict.fromkeys(keys, target)
        return links

    def property(self, name: str, key: int) -> object:
        """Returns a property of a cell by its name in rules; colours have eight digits.

        Raises:
            PublishedError: there is no such property.
            WorkbookError: the style sheet is broken or over a limit.
        """
        check_property(name)
        index = self.styles.get(key, 0)
        if name == "merge":
            return key in self.merged
        if name == "hyperlink":
            return self.links.get(key, "")
        if name in _FONT_TAGS:
            font = self.parts.font(index)
            value = None if font is None else font.value(_FONT_TAGS[name])
            return value if name == "font_name" else number(value)
        look = self.book.workbook.style(index)
        if name in {"bgcolor", "fgcolor", "fill_type"}:
            if name == "fill_type":
                return "gradientFill" if look.fill.pattern == "gradient" else "patternFill"
            colour = next((one for one in look.fill.colours if one), None)
            return "00000000" if colour is None else f"FF{colour}"
        value = getattr(look, _ATTRIBUTES[name])
        if name == "font_color":
            return f"FF{value}"
        return None if value == "none" else value


def check_property(name: str) -> None:
    """Checks that a property exists.

    Raises:
        PublishedError: the property does not exist.
    """
    if name not in PROPERTIES:
        raise PublishedError("NotImplementedError", f"Unsupported Style: {name}", Side.RULES)


def differing_looks(
    expected: WholeLooks,
    actual: WholeLooks,
    property_names: Sequence[str],
    *,
    compute: Compute,
    origin: Origin,
) -> dict[str, str]:
    """Compares the requested properties of all cells: address -> how the cells differ.

    Fonts and number formats of blank cells are invisible and do not count. Conditional formats are
    compared by their effect.

    Raises:
        PublishedError: there is no such property.
        WorkbookError: a workbook is broken or over a limit.
        RecalcError: an engine cannot be started.
    """
    return {
        **differing_formats(expected, actual, property_names),
        **_conditional(expected, actual, property_names, compute, origin),
    }


def differing_formats(
    expected: WholeLooks, actual: WholeLooks, property_names: Sequence[str]
) -> dict[str, str]:
    """Compares without conditional formats, because these may need computed formulas.

    Raises:
        PublishedError: there is no such property.
        WorkbookError: a workbook is broken or over a limit.
    """
    for name in property_names:
        check_property(name)
    details: dict[int, str] = {}
    keys = expected.filled | actual.filled | expected.styles.keys() | actual.styles.keys()
    if "merge" in property_names:
        keys |= expected.merged | actual.merged
    compared: dict[tuple[int, int, bool], str] = {}
    for key in sorted(keys):
        shows = key in expected.filled and key in actual.filled
        pair = expected.styles.get(key, 0), actual.styles.get(key, 0), shows
        if pair not in compared:
            compared[pair] = _compared(expected, actual, key, property_names, shows=shows)
        detail = compared[pair] + _own_of_cell(expected, actual, key, property_names, shows=shows)
        if detail:
            details[key] = detail
    return {
        cell_name(key >> COLUMN_BITS, key & COLUMN_MASK): detail for key, detail in details.items()
    }


def _compared(
    expected: WholeLooks,
    actual: WholeLooks,
    key: int,
    property_names: Sequence[str],
    *,
    shows: bool,
) -> str:
    """Returns how two cell formats differ in the requested properties."""
    parts: list[str] = []
    first, second = (
        look.book.workbook.style(look.styles.get(key, 0)) for look in (expected, actual)
    )
    attributes = dict.fromkeys(_ATTRIBUTES[name] for name in property_names if name in _ATTRIBUTES)
    parts.extend(
        f"{attribute.replace('_', ' ')}: expected {getattr(first, attribute)}, "
        f"found {getattr(second, attribute)}"
        for attribute in attributes
        if (shows or attribute == "fill") and not attribute_agrees(attribute, first, second)
    )
    for name in property_names:
        if shows and name in _FONT_TAGS:
            pair = expected.property(name, key), actual.property(name, key)
            if pair[0] != pair[1]:
                parts.append(f"{name.replace('_', ' ')}: expected {pair[0]}, found {pair[1]}")
    return "; ".join(parts)


def _own_of_cell(
    expected: WholeLooks,
    actual: WholeLooks,
    key: int,
    property_names: Sequence[str],
    *,
    shows: bool,
) -> str:
    """Returns how two cells differ in properties that are not part of their cell format."""
    text = ""
    for name in property_names:
        if name == "merge" or (name == "hyperlink" and shows):
            pair = expected.property(name, key), actual.property(name, key)
            if pair[0] != pair[1]:
                text += f"; {name}: expected {pair[0]!r}, found {pair[1]!r}"
    return text.removeprefix("; ")


def _conditional(
    expected: WholeLooks,
    actual: WholeLooks,
    property_names: Sequence[str],
    compute: Compute,
    origin: Origin,
) -> dict[str, str]:
    """Returns the differences in the effect of conditional formats: address -> how they differ."""
    sheets = [look.book.workbook.sheet(look.name) for look in (expected, actual)]
    if not any(sheet.tail.rules for sheet in sheets):
        return {}
    used = [window for sheet in sheets if (window := sheet.used_window()) is not None]
    style = tuple(
        dict.fromkeys(_ATTRIBUTES[name] for name in property_names if name in _ATTRIBUTES)
    )
    if not used or not style:
        return {}
    corner = max(extent.max_row for extent in used), max(extent.max_column for extent in used)
    plan = Plan(
        "",
        (CellRange(expected.name, 1, 1, *corner),),
        (CellRange(actual.name, 1, 1, *corner),),
        (),
        CheckOptions.of({}),
    )
    compared = compute_and_check(
        plan,
        expected.book.workbook,
        actual.book.workbook,
        compute=compute,
        origin=origin,
        profile=get_profile("standard"),
        style=style,
    ).comparison
    return {
        difference.cell: difference.detail
        for difference in compared.differences
        if difference.kind is DifferenceClass.STYLE
    }
