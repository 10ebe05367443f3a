"""The stored cells of a worksheet, collected from the events of an XML parser."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn, Protocol

from judge.errors import WorkbookError
from judge.workbook.address import (
    COLUMN_BITS,
    COLUMN_MASK,
    MAX_COLUMN,
    MAX_ROW,
    Window,
    column_number,
    parse_window,
)
from judge.workbook.budget import Budget, ReadLimits
from judge.workbook.cell import CellValue
from judge.workbook.cell_values import CELL_TYPES, InlineText, ValueReader
from judge.workbook.number_formats import NumberFormats
from judge.workbook.sheets.shared_formulas import FILLING_KINDS, FORMULA_KINDS, RawFormula
from judge.workbook.sheets.sheet_tail import SheetTail, TailCollector, TailListener
from judge.workbook.xml_parts import (
    SEPARATOR,
    SHEET_NAMES,
    PartParser,
    whole_number,
)

_ROOTS = frozenset({"worksheet"})
_ROW_NUMBER = re.compile(r"[1-9][0-9]{0,6}")
_CELL_REFERENCE = re.compile(r"([A-Za-z]{1,3})([1-9][0-9]{0,6})")

_PARENTS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        (
            *("sheetData", "dimension", "cols", "mergeCells", "hyperlinks", "dataValidations"),
            *("conditionalFormatting", "tableParts"),
        ),
        _ROOTS,
    ),
    **dict.fromkeys(("row", "c", "v", "f", "is", "si", "sst"), frozenset[str]()),
    "mergeCell": frozenset({"mergeCells"}),
    "hyperlink": frozenset({"hyperlinks"}),
    "cfRule": frozenset({"conditionalFormatting"}),
    "formula": frozenset({"cfRule"}),
    "dataValidation": frozenset({"dataValidations"}),
    "col": frozenset({"cols"}),
    "autoFilter": _ROOTS | {"customSheetView"},
    "filterColumn": frozenset({"autoFilter"}),
}
"""Element around the rows -> its only parent; only some programs read the element elsewhere."""

_OWN_ATTRIBUTES = frozenset({"r", "s", "t", "si", "ref"})

_ONLY_CHILD = {"mergeCells": "mergeCell", "cols": "col"}

_INDEX = re.compile("[0-9]+")
_ROW_NUMBERS = {
    "ht": re.compile(r"[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?"),
    "s": _INDEX,
    "outlineLevel": _INDEX,
}
_COLUMN_NUMBERS = {
    **dict.fromkeys(("min", "max", "style", "outlineLevel"), _INDEX),
    "width": _ROW_NUMBERS["ht"],
}
"""Attributes that are numbers: Excel and openpyxl refuse anything else."""

_MAX_MASTERS = 500_000
"""Largest number of shared formulas of a worksheet; their masters are kept even if they are not
requested."""

_ONCE = frozenset({"sheetData", "dimension", "mergeCells", "hyperlinks", "dataValidations"})


@dataclass(slots=True)
class SheetCells:
    """The data that was read from a worksheet.

    Attributes:
        values: key -> value of a stored cell; blank cells only if they were requested.
        styles: key -> index of the cell format, for cells whose format is not the first one; if
            blank cells were not requested, perhaps only for cells with formulas.
        formulas: key -> formula.
        strings: key of a cell whose value is not known yet -> index into the shared strings.
        fills: whether a formula anywhere in the worksheet gives values to cells other than its own;
            also True if a string in the worksheet only looks like such a formula.
        rows_below: whether there are rows below the last one that was requested.
        tail: the elements before and after the rows.
    """

    values: dict[int, CellValue] = field(default_factory=dict)
    styles: dict[int, int] = field(default_factory=dict)
    formulas: dict[int, RawFormula] = field(default_factory=dict)
    strings: dict[int, int] = field(default_factory=dict)
    fills: bool = False
    rows_below: bool = False
    tail: SheetTail = field(default_factory=SheetTail)

    def add(self, other: SheetCells) -> None:
        """Adds cells that were read separately from the same worksheet."""
        if self.strings:
            for key in other.values.keys() & self.strings.keys():
                del self.strings[key]
        if other.strings:
            for key in self.values.keys() & other.strings.keys():
                del self.values[key]
        self.values.update(other.values)
        self.styles.update(other.styles)
        self.formulas.update(other.formulas)
        self.strings.update(other.strings)
        self.fills = self.fills or other.fills

    def copy(self) -> SheetCells:
        """The same cells in mappings of their own."""
        return replace(
            self,
            values=dict(self.values),
            styles=dict(self.styles),
            formulas=dict(self.formulas),
            strings=dict(self.strings),
        )

    @property
    def size(self) -> int:
        """How many cells are kept."""
        return len(self.values) + len(self.strings)


class RowListener(Protocol):
    """An object that is notified of the rows of a worksheet, in their order."""

    def on_row(self, row: int, attributes: Mapping[str, str]) -> None:
        """Called with the number of a row and its attributes."""
        ...

    def on_plain_row(self, row: int, attributes: bytes) -> None:
        """Called with the number of a row, and the unparsed rest of its tag after that number."""
        ...


class CellCollector:
    """The parser's handlers for a worksheet; keeps the cells in some rectangles.

    An unexpected element among the rows is an error, whatever its namespace: other programs may
    take it for a row, a cell or a value, or leave out a row within it.

    The handlers run several times per cell. For speed, they look up tags in attributes, share one
    text buffer, and leave rare elements to other methods.

    Args:
        windows: the rectangles.
        formats: number formats, which decide which numbers are dates.
        date_1904: whether serial dates count from 1904.
        blanks: also keep stored cells without a value or formula, for their styles.
        part: name of the part, for messages.
        limits: bounds on what reading may cost.
        listener: called for the elements around the rows; None to collect them in ``tail``.
        row_listener: called with the number and the attributes of each row.

    Attributes:
        kept_chars: how many characters of strings and formulas were kept since the last check.
        taken_chars: how many were kept before.
    """

    def __init__(
        self,
        windows: Sequence[Window],
        formats: NumberFormats,
        *,
        date_1904: bool,
        blanks: bool,
        part: str,
        limits: ReadLimits,
        listener: TailListener | None = None,
        row_listener: RowListener | None = None,
    ) -> None:
        self.cells = SheetCells()
        self.row = 0
        self._kept = 0
        self.kept_chars = 0
        self.taken_chars = 0
        self._windows = tuple(windows)
        self._last_row = max((window.max_row for window in windows), default=0)
        self._reader = ValueReader(formats, date_1904=date_1904, fail=self._malformed)
        self._blanks = blanks
        self._has_formats = bool(formats.ids)
        self._part = part
        self._limits = limits
        self._tail: TailListener = listener or TailCollector(self.cells.tail, part)
        self.row_listener = row_listener
        self._values = self.cells.values
        self._styles = self.cells.styles
        self._style_numbers: dict[str, int] = {}
        self._columns: tuple[tuple[int, int], ...] = ()
        self._row_text = ""
        self._row_digits = 0
        self._column = 0
        self._letters: dict[str, int] = {}
        self._key = 0
        self._path: list[str] = []
        self._seen: set[str] = set()
        self._masters: dict[int, int] = {}
        self._attributes: dict[str, str] = {}
        self._value: str | None = None
        self._formula: dict[str, str] | None = None
        self._formula_text = ""
        self._inline: InlineText | None = None
        self._text: list[str] = []

    def install(self, parser: PartParser) -> None:
        """Makes a parser of a whole worksheet call the handlers."""
        self._parser = parser
        self._in_row = self._in_cell = False
        self._leaf = ""
        self._path = []
        self._seen = set()
        parser.expat.StartElementHandler = self._start_root
        parser.expat.EndElementHandler = self._end_other
        parser.expat.CharacterDataHandler = self._text.append

    def finish(self) -> SheetCells:
        """Returns what was read.

        The parser and the reader of values refer back to this object, and so would keep the cells
        and the workbook in memory until Python collects the cycle; the references are therefore
        dropped here.
        """
        cells = self.cells
        self.cells = SheetCells()
        self._values, self._styles = self.cells.values, self.cells.styles
        self._tail = TailCollector(self.cells.tail, self._part)
        del self._reader
        return cells

    def check(self, budget: Budget) -> None:
        """Called between chunks: stops if text or the number of cells exceeds its bound.

        Raises:
            WorkbookError: the text is too long, or there are too many cells.
        """
        kept = self.cells.size + self.cells.tail.size
        budget.take_cells(kept - self._kept)
        self._kept = kept
        budget.take_chars(self.kept_chars)
        self.taken_chars += self.kept_chars
        self.kept_chars = 0
        if len(self._text) > 8 and sum(map(len, self._text)) > self._limits.text_chars:
            raise WorkbookError(
                f"{self._part} holds a string of more than {self._limits.text_chars:,} characters"
            )

    # -- around the rows -------------------------------------------------------------------------

    def _start_root(self, tag: str, attributes: dict[str, str]) -> None:
        name = SHEET_NAMES[tag]
        if name not in _ROOTS:
            self._malformed(f"not a worksheet: it begins with {name[:80]}")
        self._parser.check_compatibility(attributes)
        self._path.append(name)
        self._parser.expat.StartElementHandler = self._start_other

    def _start_other(self, tag: str, attributes: dict[str, str]) -> None:
        self._text.clear()
        name = SHEET_NAMES[tag]
        path = self._path
        parents = _PARENTS.get(name)
        if parents is not None and path[-1] not in parents:
            self._malformed(f"{name} within {path[-1][:80]}")
        elif path[-1] in _ONLY_CHILD and name != _ONLY_CHILD[path[-1]]:
            # openpyxl reads it whatever its namespace is.
            self._malformed(f"{name[:80]} within {path[-1]}")
        path.append(name)
        if len(path) > self._limits.depth:
            self._malformed(f"more than {self._limits.depth} elements within each other")
        short = self._parser.short_names(attributes, SHEET_NAMES)
        if name in _ONCE:
            if name in self._seen:
                self._malformed(f"{name} twice")
            self._seen.add(name)
        if name == "col":
            _check_numbers(attributes, _COLUMN_NUMBERS, self._malformed)
        if name == "sheetData":
            self._start_rows(tag.removesuffix("sheetData"))
        else:
            self._tail.start(name, short)

    def _end_other(self, _: str) -> None:
        name = self._path.pop()
        if self._path:
            self._tail.end(name, self._text)

    def _start_rows(self, namespace: str) -> None:
        self._row_tag = f"{namespace}row"
        self._cell_tag = f"{namespace}c"
        self._value_tag = f"{namespace}v"
        self._formula_tag = f"{namespace}f"
        self._inline_tag = f"{namespace}is"
        self._parser.expat.StartElementHandler = self._start
        self._parser.expat.EndElementHandler = self._end

    # -- rows ------------------------------------------------------------------------------------

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == self._cell_tag:
            self._start_cell(attributes)
        elif self._in_cell:
            self._start_content(tag, attributes)
        elif tag == self._row_tag:
            self._start_row(attributes)
        else:
            self._malformed(f"{SHEET_NAMES[tag][:80]} among its rows")

    def _start_content(self, tag: str, attributes: dict[str, str]) -> None:
        """The start of an element within a cell."""
        self._text.clear()
        if self._leaf == "is" and self._inline is not None:
            self._inline.start(SHEET_NAMES[tag])
        elif self._leaf:
            self._malformed(f"{SHEET_NAMES[tag][:80]} within {self._leaf}")
        elif tag == self._value_tag and self._value is None and self._inline is None:
            self._leaf = "v"
        elif tag == self._formula_tag and self._is_empty():
            self._leaf = "f"
            self._formula = attributes
            self._check_names(attributes)
            if attributes.get("t") in FILLING_KINDS:
                self.cells.fills = True
        elif tag == self._inline_tag and self._inline is None and self._value is None:
            self._leaf = "is"
            self._inline = InlineText(self._part)
        else:
            self._malformed(f"{SHEET_NAMES[tag][:80]} in a cell, where it does not belong")

    def _is_empty(self) -> bool:
        return self._formula is None and self._value is None and self._inline is None

    def _end(self, tag: str) -> None:
        if tag == self._cell_tag:
            self._in_cell = False
            if self._key:
                self._finish_cell()
        elif self._in_cell:
            self._end_content(tag)
        elif tag == self._row_tag:
            self._in_row = False
        else:  # the end of the rows
            self._path.pop()
            self._text.clear()
            self._parser.expat.StartElementHandler = self._start_other
            self._parser.expat.EndElementHandler = self._end_other

    def _end_content(self, tag: str) -> None:
        """The end of an element within a cell."""
        if tag == self._value_tag and self._leaf == "v":
            self._value = "".join(self._text)
            self._leaf = ""
        elif tag == self._formula_tag and self._leaf == "f":
            self._formula_text = "".join(self._text)
            self._leaf = ""
            attributes = self._formula or {}
            if self._formula_text and attributes.get("t") == "shared":
                key = self.row << COLUMN_BITS | self._column
                self.note_master(key, attributes.get("si"), attributes.get("ref"))
        elif tag == self._inline_tag:
            self._leaf = ""
        elif self._inline is not None:
            self._inline.end(SHEET_NAMES[tag], self._text)
        self._text.clear()

    def note_master(self, key: int, index: str | None, reference: str | None) -> None:
        """Records the master of a shared formula, whether its cell is requested or not.

        Raises:
            WorkbookError: the formula has another master, or the cell is outside of its range.
        """
        number = whole_number(index)
        window = parse_window(reference or "")
        if number is None or str(number) != index or window is None:
            self._malformed(f"the shared formula {index!r:.20} for the range {reference!r:.20}")
        if not window.holds(key >> COLUMN_BITS, key & COLUMN_MASK):
            self._malformed(f"the shared formula of {window} in a cell that is not in that range")
        if self._masters.setdefault(number, key) != key:
            self._malformed(f"the shared formula {index} twice")
        if len(self._masters) > _MAX_MASTERS:
            self._malformed(f"more than {_MAX_MASTERS:,} shared formulas")

    def _start_row(self, attributes: dict[str, str]) -> None:
        if self._in_row:
            self._malformed("a row within a row")
        self._in_row = True
        self._check_names(attributes)
        self.check_row(attributes)
        number = attributes.get("r")
        row = self.row + 1 if number is None else self._row_number(number)
        if not self.row < row <= MAX_ROW:
            self._malformed(f"row {row} after row {self.row}")
        self.row = row
        self._column = 0
        self._text.clear()
        self._row_text = str(row)
        self._row_digits = len(self._row_text)
        self._columns = tuple(
            [
                (window.min_column, window.max_column)
                for window in self._windows
                if window.min_row <= row <= window.max_row
            ]
        )
        if self.row_listener is not None:
            self.row_listener.on_row(row, attributes)
        if row > self._last_row:
            self.cells.rows_below = True

    def check_row(self, attributes: Mapping[str, str]) -> None:
        """Called with the attributes of rows, at least once for each combination of them.

        Raises:
            WorkbookError: a height or a format is not a number, or the format does not exist.
        """
        _check_numbers(attributes, _ROW_NUMBERS, self._malformed)
        if self._has_formats and "s" in attributes:
            self._style_number(attributes["s"])

    def _check_names(self, attributes: dict[str, str]) -> None:
        """Refuses attributes of other namespaces that have the names of row or cell attributes."""
        if SEPARATOR not in "".join(attributes):
            return
        for name in attributes:
            if SEPARATOR in name:
                self._parser.check_compatibility(attributes)
                if name.rpartition(SEPARATOR)[2] in _OWN_ATTRIBUTES:
                    self._malformed(f"the attribute {SHEET_NAMES[name][:80]}")

    def _row_number(self, text: str) -> int:
        if _ROW_NUMBER.fullmatch(text) is None:
            self._malformed(f"{text[:20]!r} as a row number")
        return int(text)

    def _start_cell(self, attributes: dict[str, str]) -> None:
        if self._in_cell or not self._in_row:
            self._malformed("a cell that is not in a row")
        self._in_cell = True
        self._leaf = ""
        self._text.clear()
        self._key = 0
        self._check_names(attributes)
        reference = attributes.get("r")
        if reference is None:
            column = self._column + 1
        else:
            cached = self._letters.get(reference[: -self._row_digits])
            if cached is None or not reference.endswith(self._row_text):
                cached = self._column_of(reference)
            column = cached
        if not self._column < column <= MAX_COLUMN:
            self._malformed(f"a cell at {reference!r} that is not in the order of its row")
        self._column = column
        self._value = self._formula = self._inline = None
        for first, last in self._columns:
            if first <= column <= last:
                self._key = self.row << COLUMN_BITS | column
                self._attributes = attributes
                return

    def _column_of(self, reference: str) -> int:
        """The column of the first cell with some letters."""
        match = _CELL_REFERENCE.fullmatch(reference)
        if match is None or match[2] != self._row_text:
            self._malformed(f"a cell at {reference[:20]!r}")
        column = self._letters[match[1]] = column_number(match[1])
        return column

    def _malformed(self, fault: str) -> NoReturn:
        raise WorkbookError(f"{self._part} holds {fault} (near row {self.row})")

    # -- cells -----------------------------------------------------------------------------------

    def _finish_cell(self) -> None:
        key = self._key
        self._key = 0
        text = self._value
        attributes = self._attributes
        kind = attributes.get("t", "n")
        if not text and self._formula is None and self._inline is None and not self._blanks:
            return
        if kind not in CELL_TYPES:
            self._malformed(f"a cell of the type {kind[:20]!r}")
        style = 0
        if "s" in attributes:
            style = self._style_number(attributes["s"])
            if style:
                self._styles[key] = style
        if text is not None:
            self.kept_chars += len(text)
        if self._formula is not None:
            self._keep_formula(key, self._formula, text)
        if (text and kind == "inlineStr") or (self._inline is not None and kind != "inlineStr"):
            self._malformed(f"a value that is not one of the type {kind!r}")
        if kind == "n":
            self._values[key] = self._reader.number(text, style) if text else None
        elif kind == "s" and text:
            self.cells.strings[key] = self._reader.index(text)
        elif kind == "inlineStr":
            self._values[key] = self._inline_text()
        else:
            self._values[key] = self._reader.typed(kind, text, style) if text else None

    def _style_number(self, text: str) -> int:
        number = self._style_numbers.get(text)
        if number is None:
            # One number is shared by all cells of a format.
            number = self._style_numbers[text] = self._reader.style(text)
        return number

    def _inline_text(self) -> str | None:
        if self._inline is None:
            return None
        content = self._inline.content
        self.kept_chars += len(content)
        return content

    def _keep_formula(self, key: int, attributes: dict[str, str], value: str | None) -> None:
        # A formula whose result is the empty string has an empty value of type "str"; without the
        # type, an empty value means that there is none, which is how openpyxl writes formulas.
        cached = value is not None and (
            bool(value) or self._attributes.get("t") in {"str", "inlineStr"}
        )
        if attributes.get("t", "normal") not in FORMULA_KINDS:
            self._malformed(f"a formula of the type {attributes['t'][:20]!r}")
        formula = self.cells.formulas[key] = RawFormula(
            self._formula_text, attributes, cached=cached or self._inline is not None
        )
        if not formula.belongs_to(key):
            self._malformed("a formula that fills a range but is not in its first cell")
        self.kept_chars += len(self._formula_text)
        self._formula_text = ""


def _check_numbers(
    attributes: Mapping[str, str],
    forms: Mapping[str, re.Pattern[str]],
    fail: Callable[[str], NoReturn],
) -> None:
    for name in forms.keys() & attributes.keys():
        if forms[name].fullmatch(attributes[name].strip(" ")) is None:
            fail(f"{name}={attributes[name][:20]!r}")
