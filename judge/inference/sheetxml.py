"""The XML of sheets and shared strings, read only as far as the first rows need it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pyexpat import ParserCreate, XMLParserType
from typing import IO

from judge.inference.numberformats import as_datetime

Value = str | int | float | bool | datetime | None
"""What a cell shows: None where it is blank; errors are text such as ``#N/A``."""

CHUNK_BYTES = 32 * 1024
REFERENCE = re.compile(r"([A-Za-z]{1,3})(\d+)")
_MAX_COLUMNS = 16_384


class CellError(str):
    """An error value such as ``#DIV/0!``."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Styles:
    """What of the styles decides a cell's value.

    Attributes:
        dates: indices of the cell formats that show dates or times.
        epoch_1904: whether the workbook counts days from 1904.
    """

    dates: frozenset[int] = frozenset()
    epoch_1904: bool = False


class Enough(Exception):  # noqa: N818  not an error: what was wanted has been read
    """Stops a parser."""


@dataclass(slots=True)
class Cell:
    """A cell as the XML has it."""

    row: int
    column: int
    kind: str
    style: int
    text: str


@dataclass(slots=True)
class SheetReader:
    """Handlers for the XML of one sheet.

    Attributes:
        rows: rows that are wanted, counted from row 1.
        cells: the cells of those rows that hold something.
        total: rows and columns that the sheet says it has.
        more: whether rows follow that were not read.
        last_string: the highest index of a shared string that the cells point to; -1 for none.
    """

    rows: int
    cells: list[Cell] = field(default_factory=list)
    total: tuple[int, int] | None = None
    more: bool = False
    last_string: int = -1
    _row: int = 0
    _column: int = 0
    _cell: Cell | None = None
    _text: list[str] | None = None

    def read(self, part: IO[bytes]) -> bytes:
        """Parses a sheet until the last wanted row.

        Returns:
            The piece in which it stopped; empty where the part was read to its end.
        """
        parser = new_parser()
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        while chunk := part.read(CHUNK_BYTES):
            try:
                parser.Parse(chunk, False)
            except Enough:
                return chunk
        parser.Parse(b"", True)
        return b""

    def grid(self, strings: list[str], styles: Styles) -> tuple[tuple[Value, ...], ...]:
        """The cells as rows of values, all of the same width; blank rows at the end go."""
        last = max((cell.row for cell in self.cells), default=0)
        height = self.rows if self.more else last
        width = max((cell.column for cell in self.cells), default=0)
        rows: list[list[Value]] = [[None] * width for _ in range(height)]
        for cell in self.cells:
            rows[cell.row - 1][cell.column - 1] = _value(cell, strings, styles)
        return tuple(tuple(row) for row in rows)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = local_name(tag)
        if tag == "c":
            self._start_cell(attributes)
        elif tag in {"v", "t"}:
            self._text = []
        elif tag == "row":
            self._row = int(attributes.get("r", self._row + 1))
            self._column = 0
            if self._row > self.rows:
                self.more = True
                raise Enough
        elif tag == "dimension":
            self.total = extent(attributes.get("ref", ""))

    def _start_cell(self, attributes: dict[str, str]) -> None:
        reference = REFERENCE.fullmatch(attributes.get("r", ""))
        column = column_number(reference[1]) if reference else self._column + 1
        if column > _MAX_COLUMNS or self._row < 1:
            raise ValueError(f"cell {attributes.get('r')} lies outside of a sheet")
        self._column = column
        style = int(attributes.get("s", 0))
        self._cell = Cell(self._row, column, attributes.get("t", "n"), style, "")

    def _characters(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def _end(self, tag: str) -> None:
        tag = local_name(tag)
        if tag in {"v", "t"} and self._text is not None:
            if self._cell is not None:
                self._cell.text += "".join(self._text)
            self._text = None
        elif tag == "c" and self._cell is not None:
            self._end_cell(self._cell)
            self._cell = None
        elif tag == "sheetData":
            raise Enough

    def _end_cell(self, cell: Cell) -> None:
        if not cell.text:
            return
        if cell.kind == "s":
            self.last_string = max(self.last_string, int(cell.text))
        self.cells.append(cell)


class _StringsReader:
    """Handlers for the XML of the shared strings; phonetic guides are left out."""

    def __init__(self, last: int) -> None:
        self.strings: list[str] = []
        self._last = last
        self._parts: list[str] = []
        self._in_text = False
        self._in_phonetic = False

    def start(self, tag: str, _: dict[str, str]) -> None:
        tag = local_name(tag)
        if tag == "si":
            self._parts = []
        elif tag == "rPh":
            self._in_phonetic = True
        elif tag == "t":
            self._in_text = not self._in_phonetic

    def characters(self, data: str) -> None:
        if self._in_text:
            self._parts.append(data)

    def end(self, tag: str) -> None:
        tag = local_name(tag)
        if tag == "t":
            self._in_text = False
        elif tag == "rPh":
            self._in_phonetic = False
        elif tag == "si":
            self.strings.append("".join(self._parts))
            if len(self.strings) > self._last:
                raise Enough


def read_strings(part: IO[bytes], last: int) -> list[str]:
    """Shared strings up to the last one that is wanted.

    Args:
        part: the XML of the shared strings.
        last: 0-based index of the last one that is wanted.
    """
    reader = _StringsReader(last)
    parser = new_parser()
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.characters
    with contextlib.suppress(Enough):
        while chunk := part.read(CHUNK_BYTES):
            parser.Parse(chunk, False)
        parser.Parse(b"", True)
    return reader.strings


def _value(cell: Cell, strings: list[str], styles: Styles) -> Value:
    match cell.kind:
        case "s":
            index = int(cell.text)
            return _unescape(strings[index]) if index < len(strings) else None
        case "str" | "inlineStr":
            return _unescape(cell.text)
        case "b":
            return cell.text.strip() in {"1", "true"}
        case "e":
            return CellError(cell.text)
        case "d":
            with contextlib.suppress(ValueError):
                return datetime.fromisoformat(cell.text)
            return cell.text
        case _:
            return _number(cell, styles)


def _number(cell: Cell, styles: Styles) -> Value:
    try:
        number = float(cell.text)
    except ValueError:
        return cell.text
    if cell.style in styles.dates:
        moment = as_datetime(number, epoch_1904=styles.epoch_1904)
        if moment is not None:
            return moment
    # Files write 3.0 as 3 or as 3.0; every reader of theirs sees the same whole number.
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def _unescape(text: str) -> str:
    """``_x000D_`` in strings stands for the character of that number."""
    if "_x" not in text:
        return text
    unescape: Callable[[re.Match[str]], str] = lambda match: chr(int(match[1], 16))  # noqa: E731
    return re.sub(r"_x([0-9A-Fa-f]{4})_", unescape, text)


def extent(reference: str) -> tuple[int, int] | None:
    """Rows and columns up to the last cell of a range such as ``B2:D9``; None for no range."""
    match = REFERENCE.fullmatch(reference.rsplit(":", 1)[-1].replace("$", ""))
    return (int(match[2]), column_number(match[1])) if match else None


def column_number(letters: str) -> int:
    """The 1-based number of a column: ``A`` is 1, ``AA`` is 27."""
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number


def column_letters(number: int) -> str:
    """The letters of a 1-based column number."""
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def local_name(tag: str) -> str:
    """An element's name without its prefix."""
    return tag.rsplit(":", 1)[-1]


def new_parser() -> XMLParserType:
    """A parser that refuses entity declarations, which blow up and which no workbook needs."""
    parser = ParserCreate()

    def refuse(*_: object) -> None:
        raise ValueError("the XML declares entities")

    parser.EntityDeclHandler = refuse
    parser.buffer_text = True
    return parser
