"""The stored cells of a worksheet, collected from the events of an XML parser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from judge.errors import WorkbookError
from judge.workbook.address import COLUMN_BITS, Window, parse_cell
from judge.workbook.budget import Budget, ReadLimits
from judge.workbook.cell import CellValue
from judge.workbook.cell_values import ValueReader
from judge.workbook.number_formats import NumberFormats
from judge.workbook.sheets.raw_formula import RawFormula
from judge.workbook.sheets.rich_text import InlineText
from judge.workbook.sheets.sheet_tail import SheetTail, TailCollector, TailListener


@dataclass(slots=True)
class SheetCells:
    """What was read of a worksheet.

    Attributes:
        values: stored cells by key; blank ones only if they were requested.
        styles: index of the cell format of those whose format is not the first one, by key; if
            blank cells were not requested, maybe only of formulas.
        formulas: formulas by key.
        strings: cells that are not among the values yet -> index into the shared strings.
        rows_below: whether there are rows below the last one that was wanted.
        tail: what precedes and follows the rows.
    """

    values: dict[int, CellValue] = field(default_factory=dict)
    styles: dict[int, int] = field(default_factory=dict)
    formulas: dict[int, RawFormula] = field(default_factory=dict)
    strings: dict[int, int] = field(default_factory=dict)
    rows_below: bool = False
    tail: SheetTail = field(default_factory=SheetTail)

    def add(self, other: SheetCells) -> None:
        """Adds what was read separately of the same worksheet."""
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

    @property
    def size(self) -> int:
        """How many cells are kept."""
        return len(self.values) + len(self.strings)


class CellCollector:
    """Handlers for the rows of a worksheet; keeps the cells that are in some rectangles.

    The handlers run several times per cell, which is why they look their tags up in attributes,
    share one text buffer, and leave rare things to methods of their own.

    Args:
        windows: the rectangles.
        formats: number formats, which decide what is a date.
        date_1904: whether serial dates count from 1904.
        blanks: keep stored cells without value and formula too, for their looks.
        part: name of the part, for messages.
        limits: bounds on what reading may cost.
        listener: what is called for the elements around the rows; None for what
            :class:`SheetTail` keeps of them.
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
    ) -> None:
        self.cells = SheetCells()
        self.row = 0
        self.stopped_at: int | None = None
        self._kept = 0
        self.kept_chars = 0
        self._windows = tuple(windows)
        self._last_row = max((each.max_row for each in windows), default=0)
        self._reader = ValueReader(formats, date_1904=date_1904, fail=self._malformed)
        self._blanks = blanks
        self._part = part
        self._limits = limits
        self._tail: TailListener = listener or TailCollector(self.cells.tail, part)
        self._values = self.cells.values
        self._styles = self.cells.styles
        self._style_numbers: dict[str, int] = {}
        self._columns: tuple[tuple[int, int], ...] = ()
        self._row_text = ""
        self._row_digits = 0
        self._column = 0
        self._letters: dict[str, int] = {}
        self._key = 0
        self._in_row = self._in_cell = self._in_value = False
        self._depth = 0
        self._attributes: dict[str, str] = {}
        self._value: str | None = None
        self._formula: dict[str, str] | None = None
        self._formula_text = ""
        self._inline: InlineText | None = None
        self._text: list[str] = []

    def install(
        self, parser: expat.XMLParserType, prefix: str, *, stop_after_rows: bool = False
    ) -> None:
        """Makes a parser call the handlers.

        Args:
            parser: the parser.
            prefix: the namespace prefix of the worksheet's elements with its colon, or nothing.
            stop_after_rows: call no handler after the last wanted row, but note in ``stopped_at``
                the offset of the byte where the rest begins.
        """
        self._parser = parser
        self._stop_after_rows = stop_after_rows
        self.stopped_at = None
        self._in_row = self._in_cell = self._in_value = False
        self._set_prefix(prefix)
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text.append

    def install_tail(self, parser: expat.XMLParserType, prefix: str) -> None:
        """Makes a parser call the handlers of what precedes and follows the rows."""
        self._set_prefix(prefix)
        self._in_row = self._in_cell = False
        parser.StartElementHandler = self._start_other
        parser.EndElementHandler = self._end_other
        parser.CharacterDataHandler = self._text.append

    def finish(self) -> SheetCells:
        """Returns what was read.

        The parser refers back to its handlers, and so would keep the cells in memory until Python
        collects the cycle; the reference is therefore dropped here.
        """
        cells = self.cells
        self.cells = SheetCells()
        self._values, self._styles = self.cells.values, self.cells.styles
        self._tail = TailCollector(self.cells.tail, self._part)
        return cells

    def _set_prefix(self, prefix: str) -> None:
        self._row_tag = f"{prefix}row"
        self._cell_tag = f"{prefix}c"
        self._value_tag = f"{prefix}v"
        self._formula_tag = f"{prefix}f"
        self._inline_tag = f"{prefix}is"
        self._data_tag = f"{prefix}sheetData"
        self._prefix_length = len(prefix)

    def check(self, budget: Budget) -> None:
        """Called between chunks: stops if text or the number of cells exceeds its bound.

        Raises:
            WorkbookError: the text is too long, or there are too many cells.
        """
        kept = self.cells.size + self.cells.tail.size
        budget.take_cells(kept - self._kept)
        self._kept = kept
        budget.take_chars(self.kept_chars)
        self.kept_chars = 0
        if len(self._text) > 8 and sum(map(len, self._text)) > self._limits.text_chars:
            raise WorkbookError(
                f"{self._part} holds a string of more than {self._limits.text_chars:,} characters"
            )

    # -- events ----------------------------------------------------------------------------------

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == self._cell_tag:
            self._start_cell(attributes)
        elif tag == self._value_tag and self._in_cell:
            if self._in_value:
                self._malformed("a value within a value")
            self._in_value = True
            self._text.clear()
        elif tag == self._row_tag:
            self._start_row(attributes)
        else:
            self._start_other(tag, attributes)

    def _end(self, tag: str) -> None:
        if tag == self._cell_tag:
            self._in_cell = False
            if self._key:
                self._finish_cell()
        elif tag == self._value_tag and self._in_value:
            self._in_value = False
            if self._value is None:
                self._value = "".join(self._text)
        elif tag == self._row_tag:
            self._in_row = False
        else:
            self._end_other(tag)

    def _start_row(self, attributes: dict[str, str]) -> None:
        if self._in_row:
            self._malformed("a row within a row")
        self._in_row = True
        number = attributes.get("r")
        row = self.row + 1 if number is None else self._row_number(number)
        self.row = row
        self._column = 0
        self._text.clear()
        self._row_text = str(row)
        self._row_digits = len(self._row_text)
        self._columns = tuple(
            [
                (each.min_column, each.max_column)
                for each in self._windows
                if each.min_row <= row <= each.max_row
            ]
        )
        if row > self._last_row:
            self.cells.rows_below = True
            self._stop()

    def _stop(self) -> None:
        if self._stop_after_rows and self.stopped_at is None:
            self.stopped_at = self._parser.CurrentByteIndex
            self._parser.StartElementHandler = None
            self._parser.EndElementHandler = None
            self._parser.CharacterDataHandler = None

    def _row_number(self, text: str) -> int:
        try:
            return int(text)
        except ValueError:
            pass
        try:
            number = float(text)
        except ValueError:
            self._malformed(f"{text[:20]!r} as a row number")
        if not number.is_integer():
            self._malformed(f"{text[:20]!r} as a row number")
        return int(number)

    def _start_cell(self, attributes: dict[str, str]) -> None:
        if self._in_cell:
            self._malformed("a cell within a cell")
        self._in_cell = True
        self._text.clear()
        self._key = 0
        reference = attributes.get("r")
        if not reference:
            column = self._column + 1
        else:
            known = self._letters.get(reference[: -self._row_digits])
            if known is None or not reference.endswith(self._row_text):
                self._start_unusual_cell(reference, attributes)
                return
            column = known
        self._column = column
        for first, last in self._columns:
            if first <= column <= last:
                self._key = self.row << COLUMN_BITS | column
                self._attributes = attributes
                self._value = self._formula = self._inline = None
                return

    def _start_unusual_cell(self, reference: str, attributes: dict[str, str]) -> None:
        """The first cell of a column, or one whose address is not that of its row."""
        place = parse_cell(reference)
        if place is None:
            self._malformed(f"a cell at {reference[:20]!r}")
        row, column = place
        self._column = column
        if row == self.row and reference.endswith(self._row_text):
            self._letters[reference[: -self._row_digits]] = column
        if any(each.holds(row, column) for each in self._windows):
            self._key = row << COLUMN_BITS | column
            self._attributes = attributes
            self._value = self._formula = self._inline = None

    def _start_other(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > self._limits.depth:
            self._malformed(f"more than {self._limits.depth} elements within each other")
        if self._in_cell:
            if self._inline is not None:
                self._inline.start(tag[self._prefix_length :])
            elif tag == self._formula_tag and self._formula is None:
                self._formula = attributes
            elif tag == self._inline_tag:
                self._inline = InlineText()
            self._text.clear()
        else:
            self._text.clear()
            self._tail.start(tag[self._prefix_length :], attributes)

    def _end_other(self, tag: str) -> None:
        self._depth -= 1
        if self._in_cell:
            if self._inline is not None and tag != self._inline_tag:
                self._inline.end(tag[self._prefix_length :], self._text)
            elif tag == self._formula_tag:
                self._formula_text = "".join(self._text)
            self._text.clear()
        elif tag == self._data_tag:
            self._stop()
        else:
            self._tail.end(tag[self._prefix_length :], self._text)

    def _malformed(self, what: str) -> NoReturn:
        raise WorkbookError(f"{self._part} holds {what} (near row {self.row})")

    # -- cells -----------------------------------------------------------------------------------

    def _finish_cell(self) -> None:
        key = self._key
        self._key = 0
        text = self._value
        if not text and self._formula is None and self._inline is None and not self._blanks:
            return
        attributes = self._attributes
        style = 0
        if "s" in attributes:
            style = self._style_number(attributes["s"])
            if style:
                self._styles[key] = style
        if text is not None:
            self.kept_chars += len(text)
        if self._formula is not None:
            self._keep_formula(key, self._formula, text)
        kind = attributes.get("t", "n")
        if kind == "n":
            self._values[key] = self._reader.number(text, style) if text else None
        elif kind == "s" and text:
            self.cells.strings[key] = self._reader.integer(text)
            self._values.pop(key, None)
            return
        elif kind == "inlineStr":
            self._values[key] = self._inline_text()
        else:
            self._values[key] = self._reader.typed(kind, text) if text else None
        # If an address occurs twice, the last cell counts.
        self.cells.strings.pop(key, None)

    def _style_number(self, text: str) -> int:
        number = self._style_numbers.get(text)
        if number is None:
            # One number is shared by all cells of a format.
            number = self._style_numbers[text] = self._reader.integer(text or "0")
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
        self.cells.formulas[key] = RawFormula(
            self._formula_text, attributes, cached=cached or self._inline is not None
        )
        self.kept_chars += len(self._formula_text)
        self._formula_text = ""
