"""Cells of a sheet as boards compare them: values, the table at A1, fonts, colours, formats."""

from __future__ import annotations

import bisect
import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from judge.compare.cells.computing import Compute
from judge.compare.cells.sides import RangeSide
from judge.compare.published.spider2v.looks import StyleParts, style_parts
from judge.compare.rules.book import Book
from judge.core.submission import Origin
from judge.workbook.address import (
    COLUMN_BITS,
    COLUMN_MASK,
    MAX_COLUMN,
    MAX_ROW,
    WHOLE_SHEET,
    Window,
    cell_key,
)
from judge.workbook.cell import CellRange, CellValue
from judge.workbook.number_formats import to_serial
from judge.workbook.reader import linked_keys
from judge.workbook.styles.style_sheet import CellStyle, Fill, colours_agree
from judge.workbook.tree import number, whole
from judge.workbook.workbook_parts import Tab
from judge.workbook.xml_parts import is_on

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
        fill: colour of the background; white without a fill, as in the published functions.
        code: code of its number format.
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
"""Fields that ``cells.formatting`` compares, in addition to the class of the number format."""


def differing_field(
    expected: CellLook, actual: CellLook, names: tuple[str, ...], *, rounded: bool
) -> str | None:
    """Returns the first of some fields in which two formats differ; None if they agree in all.

    Args:
        expected: the look in the gold.
        actual: the look in the answer.
        names: the fields.
        rounded: whether colours may differ by a rounding error.
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
    """Resolves the cell formats of a workbook.

    Args:
        book: the workbook.
    """

    def __init__(self, book: Book) -> None:
        self._book = book
        self._parts: StyleParts | None = None
        self._looks: dict[int, CellLook] = {}

    def of(self, style: int) -> CellLook:
        """Returns the look of a cell format.

        Raises:
            WorkbookError: the style sheet is broken or over a limit.
        """
        look = self._looks.get(style)
        if look is None:
            if self._parts is None:
                self._parts = style_parts(self._book)
            look = self._looks[style] = self._read(self._parts, style)
        return look

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
    """Returns the class that the published function assigns to the code of a number format."""
    lower = code.lower()
    if "$" in lower or "¥" in lower or lower == "currency":
        return "currency"
    if "%" in lower:
        return "percentage"
    if "yy" in lower or "dd" in lower:
        return "date"
    if any(token in lower for token in (":", "m", "ss", "hh")):
        return "time"
    if lower == "@":
        return "text"
    if "general" in lower:
        return "general"
    if "#0" in lower or lower in {"0", "0.00"}:
        return "number"
    return code


class BoardBook:
    """A workbook with the sheets that a board checks; each sheet is read and computed once.

    Args:
        book: the workbook.
        compute: computes formulas.
        origin: where the workbook comes from.
    """

    def __init__(self, book: Book, compute: Compute, origin: Origin) -> None:
        self.book = book
        self._compute = compute
        self._origin = origin
        self._sheets: dict[str, SheetCells] = {}

    @property
    def tabs(self) -> tuple[Tab, ...]:
        """The worksheets in workbook order."""
        return tuple(tab for tab in self.book.workbook.tabs if tab.is_worksheet)

    @cached_property
    def looks(self) -> Looks:
        """The resolved cell formats of the workbook."""
        return Looks(self.book)

    def sheet(self, tab: Tab) -> SheetCells:
        """Returns the cells of a worksheet.

        Raises:
            WorkbookError: the sheet is broken or over a limit.
            RecalcError: an engine cannot be started.
        """
        cells = self._sheets.get(tab.name)
        if cells is None:
            cells = SheetCells(self, tab, self._compute, self._origin)
            self._sheets[tab.name] = cells
        return cells

    def named(self, name: str) -> SheetCells | None:
        """Returns the cells of the worksheet with a name; None if there is no such worksheet."""
        tab = self.book.tab(name)
        return None if tab is None else self.sheet(tab)


class SheetCells:
    """The cells of a worksheet, with computed formulas.

    Args:
        owner: the workbook.
        tab: the worksheet.
        compute: computes formulas.
        origin: where the workbook comes from.

    Attributes:
        values: values by key; blank cells may be missing.
        filled: keys of cells that hold a value or a formula.
        not_calculated: key of a formula cell whose value could not be computed -> why.
        uncached_formulas: how many formulas have no stored value.
    """

    def __init__(self, owner: BoardBook, tab: Tab, compute: Compute, origin: Origin) -> None:
        self.owner = owner
        self.tab = tab
        workbook = owner.book.workbook
        sheet = workbook.sheet(tab.name)
        sheet.load([WHOLE_SHEET], blanks=True)
        self._stored = sheet.values(WHOLE_SHEET)
        self._styles = sheet.styles(WHOLE_SHEET)
        values: dict[int, CellValue] = {
            key: value for key, value in self._stored.items() if value is not None
        }
        formulas = sheet.formula_keys(WHOLE_SHEET)
        self.not_calculated: dict[int, str] = {}
        if formulas:
            computed_keys = [*formulas, *sheet.last_filled_keys()]
            rows = [key >> COLUMN_BITS for key in computed_keys]
            columns = [key & COLUMN_MASK for key in computed_keys]
            extent = CellRange(tab.name, min(rows), min(columns), max(rows), max(columns))
            computed = compute.fill(workbook, [extent], origin=origin)
            area = RangeSide(workbook, extent, computed)
            values |= area.computed_values()
            self.not_calculated = area.refused()
        self.values: Mapping[int, CellValue] = values
        self.uncached_formulas = sum(
            raw is not None and not raw.cached for raw in map(sheet.raw_formula, formulas)
        )
        self.filled = frozenset(values).union(formulas)

    # -- extent ----------------------------------------------------------------------------------

    @cached_property
    def last_row(self) -> int:
        """The last row with a filled cell; 0 on a blank sheet."""
        return max(self.filled, default=0) >> COLUMN_BITS

    @cached_property
    def last_column(self) -> int:
        """The last column with a filled cell; 0 on a blank sheet."""
        return max((key & COLUMN_MASK for key in self.filled), default=0)

    @cached_property
    def rows(self) -> frozenset[int]:
        """The rows in which a cell has content or a format."""
        return frozenset(key >> COLUMN_BITS for key in self.filled | self._styles.keys())

    @cached_property
    def used_size(self) -> tuple[int, int]:
        """How many rows and columns the rectangle around all cells with content or a format has."""
        keys = self.filled | self._styles.keys()
        if not keys:
            return 1, 1
        columns = [key & COLUMN_MASK for key in keys]
        rows = (max(keys) >> COLUMN_BITS) - (min(keys) >> COLUMN_BITS) + 1
        return rows, max(columns) - min(columns) + 1

    @cached_property
    def used_corner(self) -> tuple[int, int]:
        """The last row and column with content or a format."""
        keys = self.filled | self._styles.keys()
        rows = max(keys, default=0) >> COLUMN_BITS
        return rows, max((key & COLUMN_MASK for key in keys), default=0)

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The cells that Ctrl+Down and Ctrl+Right reach from A1."""
        rows = {key >> COLUMN_BITS for key in self.filled if key & COLUMN_MASK == 1}
        columns = {key & COLUMN_MASK for key in self.filled if key >> COLUMN_BITS == 1}
        return _end(rows, MAX_ROW), _end(columns, MAX_COLUMN)

    @property
    def table_size(self) -> tuple[int, int]:
        """How many rows and columns the table at A1 has, as the published functions measure it."""
        (rows, columns), (max_rows, max_columns) = self.ends, self.used_size
        return min(rows, max_rows), min(columns, max_columns)

    # -- what is shown ---------------------------------------------------------------------------

    def look(self, key: int) -> CellLook:
        """Returns the look of a cell; if it is not stored, the look of its row or column."""
        return self.owner.looks.of(self._style(key))

    def _style(self, key: int) -> int:
        style = self._styles.get(key)
        if style is not None:
            return style
        if key in self._stored:
            return 0
        row = self._row_styles.get(key >> COLUMN_BITS)
        return self._column_style(key & COLUMN_MASK) if row is None else row

    @cached_property
    def _row_styles(self) -> Mapping[int, int]:
        lines = self.owner.book.facts.row_attributes(self.tab)
        return {
            row: whole(line.get("s")) or 0
            for row, line in lines.items()
            if "s" in line and is_on(line.get("customFormat"))
        }

    @cached_property
    def _column_lines(self) -> list[tuple[int, int, int, bool]]:
        """For each group of columns: first and last column, style, and whether they are hidden."""
        lines = []
        for holder in self.owner.book.facts.tree(self.tab).all("cols"):
            for element in holder.all("col"):
                first = whole(element.attributes.get("min")) or 0
                last = whole(element.attributes.get("max")) or first
                style = whole(element.attributes.get("style")) or 0
                lines.append((first, last, style, is_on(element.attributes.get("hidden"))))
        return sorted(lines)

    def _column_line(self, column: int) -> tuple[int, bool]:
        """Returns the style of a column, and whether it is hidden."""
        lines = self._column_lines
        index = bisect.bisect_right(lines, column, key=lambda line: line[0]) - 1
        if index < 0 or lines[index][1] < column:
            return 0, False
        return lines[index][2], lines[index][3]

    def _column_style(self, column: int) -> int:
        return self._column_line(column)[0]

    def is_hidden_column(self, column: int) -> bool:
        """Whether a column is hidden."""
        return self._column_line(column)[1]

    @cached_property
    def hidden_rows(self) -> frozenset[int]:
        """The rows that are hidden."""
        lines = self.owner.book.facts.row_attributes(self.tab)
        return frozenset(row for row, line in lines.items() if is_on(line.get("hidden")))

    @cached_property
    def links(self) -> Mapping[int, tuple[str, ...]]:
        """Key of a linked cell -> the targets of its hyperlinks."""
        links: dict[int, tuple[str, ...]] = {}
        for _, keys, target in linked_keys(self.owner.book.workbook, self.tab.name, WHOLE_SHEET):
            for key in keys:
                links[key] = (*links.get(key, ()), target)
        return links

    def visible(self, window: Window) -> list[int]:
        """Returns the keys of a rectangle's used cells that are not hidden.

        Raises:
            WorkbookError: the sheet is over a limit.
        """
        rows = range(window.min_row, min(window.max_row, max(self.last_row, window.min_row)) + 1)
        shown = [row for row in rows if row not in self.hidden_rows]
        last = min(window.max_column, max(self.last_column, window.min_column))
        columns = [
            index
            for index in range(window.min_column, last + 1)
            if not self.is_hidden_column(index)
        ]
        package = self.owner.book.workbook.package
        with package.blamed():
            package.budget.take_cells(len(shown) * len(columns))
        return [cell_key(row, column) for row in shown for column in columns]

    def serial(self, value: CellValue) -> CellValue:
        """Returns the number that a cell stores for a date or a time; other values unchanged."""
        if isinstance(value, dt.datetime | dt.date | dt.time | dt.timedelta):
            return to_serial(value, date_1904=self.owner.book.workbook.date_1904)
        return value


def _end(filled: Iterable[int], limit: int) -> int:
    """Returns where Ctrl+arrow leads from the first cell of a line with these filled cells."""
    filled_indices = set(filled)
    index = 1
    if 1 in filled_indices and 2 in filled_indices:
        while index + 1 in filled_indices:
            index += 1
        return index
    return min((window for window in filled_indices if window > 1), default=limit)
