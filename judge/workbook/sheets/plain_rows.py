"""Reads rows in the usual form with regular expressions instead of an XML parser.

A cell in its usual form (``<c r="B7" s="3" t="s"><v>12</v></c>`` and the like) needs no parser, and
reading thousands of them this way takes a fraction of the time. Nothing is guessed: rows are only
read if every requested cell among them is written in one of the known ways, and if there is no
comment, CDATA section or processing instruction between them. All others are left to the parser.

In large ranges, rows that look alike are read first, as whole rows. The columns, cell formats and
types of one row make a *shape*, a regular expression whose only groups are the row's number and the
values. All rows of that shape are taken out of the markup in one pass; the rest is read cell by
cell. A shape never reads a cell differently from the reader of single cells; it only saves time.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, NoReturn

from judge.workbook.address import (
    COLUMN_BITS,
    COLUMN_MASK,
    MAX_ROW,
    Window,
    cell_name,
    column_letters,
    column_number,
)
from judge.workbook.cell import CellValue
from judge.workbook.cell_values import CELL_TYPES, ODD_NUMBER, ValueReader, read_string
from judge.workbook.number_formats import NumberFormats
from judge.workbook.sheets.shared_formulas import (
    ATTRIBUTE,
    FILLING_KINDS,
    FORMULA_KINDS,
    UNUSUAL_ENTITY,
    RawFormula,
    unescape,
)
from judge.workbook.sheets.sheet_cells import SheetCells
from judge.workbook.sheets.sheet_tail import SheetTail

MARK = "<\0"
"""Replaces cells that were taken out, so that no match extends across the gap."""

_MAX_CELLS = 64
_MIN_ALIKE_ROWS = 8
_MAX_SHAPES = 8
_MAX_FAILURES = 3


@dataclass(frozen=True, slots=True)
class ShapeCell:
    """One cell of a shape.

    Attributes:
        letters: letters of its column.
        attributes: everything between its address and the end of its tag.
        value: how its content begins: ``v``, ``is``, or an empty string if it has no content.
    """

    letters: str
    attributes: str
    value: str


@dataclass(frozen=True, slots=True)
class ShapeRows:
    """Rows of one shape.

    Attributes:
        shape: their cells.
        digits: the number of each row, as written.
        values: the values of all rows, for each cell of the shape that has a value.
    """

    shape: tuple[ShapeCell, ...]
    digits: list[str]
    values: list[list[str]]


class RowShapes:
    """The shapes of the rows of a worksheet, which are learned while rows are read.

    Args:
        cell: the expression that reads one cell: groups for letters, digits, attributes, formula,
            value and inline text.
        start: the expression that finds where a requested cell begins.
    """

    def __init__(self, cell: re.Pattern[str], start: re.Pattern[str]) -> None:
        self._cell = cell
        self._start = start
        self._known: list[tuple[ShapeCell, ...]] = []
        self._failures = 0

    def take(self, rows: str) -> tuple[str, list[ShapeRows]]:
        """Takes the rows of known and of new shapes out of some markup.

        Returns:
            The rest of the markup, and the rows that were taken out.
        """
        taken: list[ShapeRows] = []
        for shape in self._known:
            rows, _ = _take(rows, shape, taken)
        while self._failures < _MAX_FAILURES and len(self._known) < _MAX_SHAPES:
            row_shape = self._shape_of(rows)
            if row_shape is None or row_shape in self._known:
                break
            rows, count = _take(rows, row_shape, taken)
            if count < _MIN_ALIKE_ROWS:
                self._failures += 1
                break
            self._known.append(row_shape)
        return rows, taken

    def _shape_of(self, rows: str) -> tuple[ShapeCell, ...] | None:
        """The shape of a row in the middle of some markup; None if the row has no shape."""
        middle = self._start.search(rows, len(rows) // 2)
        if middle is None:
            return None
        begin = max(0, rows.rfind("<row", 0, middle.start()))
        first = self._start.search(rows, begin)
        position = middle.start() if first is None else first.start()
        cells: list[ShapeCell] = []
        row = ""
        while len(cells) < _MAX_CELLS and (match := self._cell.match(rows, position)) is not None:
            letters, digits, attributes, formula, text, inline = match.groups(default="")
            if formula or not letters or (row and digits != row):
                break
            if match[0].endswith(_EMPTY_CELLS):
                break  # its value is there, and empty
            value = "v" if text else inline.partition(">")[0][1:] if inline else ""
            cells.append(ShapeCell(letters, attributes, value))
            row, position = digits, match.end()
        return tuple(cells) if any(cell.value for cell in cells) else None


def _take(rows: str, shape: tuple[ShapeCell, ...], taken: list[ShapeRows]) -> tuple[str, int]:
    pattern = _pattern(shape)
    pieces = pattern.split(rows)
    stride = pattern.groups + 1
    if len(pieces) == 1:
        return rows, 0
    digits = pieces[1::stride]
    taken.append(ShapeRows(shape, digits, [pieces[group::stride] for group in range(2, stride)]))
    return MARK.join(pieces[::stride]), len(digits)


@lru_cache(maxsize=256)
def _pattern(shape: Sequence[ShapeCell]) -> re.Pattern[str]:
    """The expression of a shape: groups for the row's number and for each value."""
    parts = []
    for number, cell in enumerate(shape):
        row = "([0-9]+)" if number == 0 else "\\1"
        parts.append(f'<c r="{cell.letters}{row}"{re.escape(cell.attributes)}>')
        if cell.value == "v":
            parts.append("<v>([^<]++)</v></c>")
        elif cell.value:
            parts.append(f"<is><{re.escape(cell.value)}>([^<]*+)</t></is></c>")
        elif not cell.attributes.endswith("/"):
            parts.append("</c>")
    return re.compile("".join(parts))


# Rows in the plain form hold no character that XML forbids, so text is everything up to a tag.
_ATTRIBUTES = '(?: [A-Za-z:]+="[^"<>&]*+")*+'
_CELL = (
    '<c r="({columns})([0-9]++)"([^<>&]*+)>(?:(?<=/>)|'
    f"(<f{_ATTRIBUTES} ?(?:/>|>[^<]*+</f>)(?:<v></v>|<v ?/>)?+)?+"
    "(?:<v>([^<]++)</v>|"
    '<is>(<t(?: xml:space="preserve")?+>[^<]*+)</t></is>|<v></v>|<v ?/>)?+'
    "</c>)"
)
_CELL_ATTRIBUTES = re.compile('(?: (?:s|t|cm|vm|ph)="[A-Za-z0-9]*")* ?/?')
_MAX_NAMED_COLUMNS = 64
_MIN_ROWS_TO_COMPILE = 1000
_MIN_CHARS = 50_000
_MAX_DATES = 100_000

_EMPTY_VALUES = ("<v></v>", "<v/>", "<v />")
_EMPTY_CELLS = tuple(f"{value}</c>" for value in _EMPTY_VALUES)

_DIGITS = b"0123456789\0"
_OFTEN_IN_NUMBERS = _DIGITS + b".-"
_NOT_DIGITS = re.compile(r"[^0-9\0]|[0-9]{10}")
_FILLING = re.compile(f'<f[^<>]* t="(?:{"|".join(sorted(FILLING_KINDS))})"[^<>]*')
_ODD_FORMULA = re.compile(f'<f[^<>]* t="(?!(?:{"|".join(FORMULA_KINDS)})")')

_NO_ATTRIBUTES: Mapping[str, str] = {}

_NUMBER, _DATE, _SHARED, _INLINE, _OTHER = range(5)
_KINDS = {"n": _NUMBER, "s": _SHARED, "inlineStr": _INLINE}


class _UnusualError(Exception):
    """The rows contain markup that only the parser can read."""


def _leave_to_parser(_: str) -> NoReturn:
    raise _UnusualError


class _Rows(dict[str, int]):
    """Text of a row number -> the number as the upper part of a key; filled on demand."""

    def __init__(self, first: int, last: int) -> None:
        super().__init__()
        self._first = first
        self._last = last

    def __missing__(self, digits: str) -> int:
        row = int(digits)
        # A cell whose address names a different row is left to the parser.
        if not self._first <= row <= self._last:
            raise _UnusualError
        self[digits] = row << COLUMN_BITS
        return self[digits]


class _Columns(dict[str, int]):
    """Letters of a column -> its number."""

    def __missing__(self, letters: str) -> int:
        number = self[letters] = column_number(letters)
        return number


class _Dates(dict[str, CellValue]):
    """Text of a number -> the date that it means in one cell format."""

    def __init__(self, read: Callable[[str, int], CellValue], style: int) -> None:
        super().__init__()
        self._read = read
        self._style = style

    def __missing__(self, text: str) -> CellValue:
        value = self._read(text, self._style)
        if len(self) < _MAX_DATES:
            self[text] = value
        return value


class PlainRows:
    """Reads rows of a worksheet that are in the usual form.

    Args:
        windows: the rectangles whose cells are kept; at least one.
        formats: number formats, which decide which numbers are dates.
        date_1904: whether serial dates count from 1904.
        blanks: also keep stored cells without value and formula, and all cell formats; otherwise
            only the cell formats of formulas are kept.
    """

    def __init__(
        self,
        windows: Sequence[Window],
        formats: NumberFormats,
        *,
        date_1904: bool,
        blanks: bool,
    ) -> None:
        self._windows = tuple(windows)
        # For a single rectangle, its first and last row and column are sufficient.
        self._several = len(windows) > 1
        self._blanks = blanks
        self._reader = ValueReader(formats, date_1904=date_1904, fail=_leave_to_parser)
        self._first_row = min(window.min_row for window in windows)
        self._last_row = max(window.max_row for window in windows)
        self._first_column = min(window.min_column for window in windows)
        self._last_column = max(window.max_column for window in windows)
        start, self._cell, read_cell = _patterns(_columns_pattern(windows))
        self._shapes = RowShapes(read_cell, start)
        self._chars = 0
        self._rows = _Rows(max(1, self._first_row), min(MAX_ROW, self._last_row))
        self._columns = _Columns()
        self._kinds: dict[str, tuple[int, int, str]] = {}
        self._dates: dict[int, _Dates] = {}

    def take(self, rows: str, cells: SheetCells) -> int | None:
        """Adds the requested cells of some rows to the cells that were already read.

        Args:
            rows: complete rows, of which the first and the last are requested, without any comment,
                CDATA section or processing instruction.
            cells: the cells are added here.

        Returns:
            How many characters of strings and formulas were kept; None if the rows must be left to
            the parser, in which case nothing was added.
        """
        if "\r" in rows:
            return None
        entities = "&" in rows
        if entities and UNUSUAL_ENTITY.search(rows) is not None:
            return None
        read = SheetCells()
        try:
            kept = self._take_alike(rows, read, entities=entities)
            if kept is None:
                read = SheetCells()
                kept = self._read(rows, read)
        except (_UnusualError, ValueError):
            return None
        cells.add(read)
        self._chars += len(rows)
        return kept

    # -- rows that look alike --------------------------------------------------------------------

    def _take_alike(self, rows: str, read: SheetCells, *, entities: bool) -> int | None:
        """Reads rows of the same shape together, and the rest cell by cell.

        Returns:
            How many characters were kept; None if everything is to be read cell by cell.
        """
        # Learning shapes saves time only if there are many rows.
        if self._several or self._chars < _MIN_CHARS:
            return None
        rest, taken = self._shapes.take(rows)
        if not taken:
            return None
        kept = cells = 0
        for key in taken:
            more_kept, more_cells = self._read_alike(key, read, entities=entities)
            kept += more_kept
            cells += more_cells
        keys = read.values.keys() | read.strings.keys()
        if len(keys) != cells:
            return None  # an address occurs twice
        others = SheetCells()
        kept += self._read(rest, others)
        if not keys.isdisjoint(others.values) or not keys.isdisjoint(others.strings):
            return None
        read.add(others)
        return kept

    def _read_alike(self, taken: ShapeRows, read: SheetCells, *, entities: bool) -> tuple[int, int]:
        """Reads rows of one shape; returns how many characters and cells were kept."""
        numbers = [*map(int, taken.digits)]
        if min(numbers) < max(1, self._first_row) or max(numbers) > min(MAX_ROW, self._last_row):
            raise _UnusualError  # a cell whose address is not that of its row
        rows = [*map((1 << COLUMN_BITS).__mul__, numbers)]
        kept = cells = 0
        texts = iter(taken.values)
        for cell in taken.shape:
            values = next(texts) if cell.value else None
            column = self._columns[cell.letters]
            if not self._first_column <= column <= self._last_column:
                continue
            if values is None and not self._blanks:
                continue
            cells += len(rows)
            keys = map(column.__or__, rows)
            kind, style, named = self._kinds.get(cell.attributes) or self._learn(cell.attributes)
            if style and self._blanks:
                read.styles.update(dict.fromkeys(map(column.__or__, rows), style))
            if values is None:
                read.values.update(dict.fromkeys(keys))
                continue
            if kind is _SHARED and cell.value == "v":
                _check_texts((), values)
                read.strings.update(zip(keys, map(int, values), strict=True))
                continue
            if entities:
                values = [*map(unescape, values)]
            if kind is _INLINE or kind is _OTHER:
                kept += sum(map(len, values))
            read.values.update(
                zip(keys, self._values(values, cell, kind, style, named), strict=True)
            )
        return kept, cells

    def _values(
        self, texts: list[str], cell: ShapeCell, kind: int, style: int, named: str
    ) -> Iterable[CellValue]:
        """The values of the cells of one column."""
        if (kind is _INLINE) is (cell.value == "v"):
            # The value is not in the element that the type requires.
            raise _UnusualError
        if kind is _INLINE:
            return map(read_string, texts)
        if kind in {_NUMBER, _DATE}:
            _check_texts(texts, ())
        if kind is _NUMBER:
            try:
                return [*map(int, texts)]
            except ValueError:
                return map(_number, texts)
        if kind is _DATE:
            return self._reader.days(texts, style) or map(self._dates_of(style).__getitem__, texts)
        return [self._reader.typed(named, text, style) for text in texts]

    def _dates_of(self, style: int) -> _Dates:
        cached = self._dates.get(style)
        if cached is None:
            cached = self._dates[style] = _Dates(self._reader.number, style)
        return cached

    # -- cell by cell ----------------------------------------------------------------------------

    def _read(self, text_of_rows: str, read: SheetCells) -> int:
        _check_markup(text_of_rows)
        matches: list[tuple[str, ...]] = self._cell.findall(text_of_rows)
        rows, columns, kinds = self._rows, self._columns, self._kinds
        values, strings, blanks = read.values, read.strings, self._blanks
        several, first, last = self._several, self._first_column, self._last_column
        kept = 0
        numbers: list[str] = []
        indices: list[str] = []
        for letters, digits, attributes, formula, text, inline in matches:
            if not (text or formula or inline or (blanks and letters)):
                if not letters:
                    raise _UnusualError
                continue
            column = columns[letters]
            if not first <= column <= last:
                continue
            key = rows[digits] | column
            if several and not self._is_wanted(key):
                continue
            kind, style, _ = kind_of_cell = kinds.get(attributes) or self._learn(attributes)
            if formula or (blanks and style):
                kept += self._keep_formula(key, kind_of_cell, formula, text, read)
            if kind is _NUMBER and text:
                numbers.append(text)
                values[key] = (
                    float(text) if "." in text or "E" in text or "e" in text else int(text)
                )
            elif kind is _SHARED and text:
                indices.append(text)
                strings[key] = int(text)
            elif kind is _DATE and text:
                values[key] = self._dates_of(style)[text]
            else:
                kept += len(text) + len(inline)
                values[key] = self._other(kind_of_cell, text, inline)
        _check_texts(numbers, indices)
        if strings and not strings.keys().isdisjoint(values):
            raise _UnusualError  # an address occurs twice
        return kept

    def _keep_formula(
        self,
        key: int,
        kind_of_cell: tuple[int, int, str],
        formula: str,
        text: str,
        read: SheetCells,
    ) -> int:
        """Keeps the formula and the format of a cell; returns how many characters were kept."""
        _, style, named = kind_of_cell
        if style:
            read.styles[key] = style
        if formula:
            cached = bool(text) or (named == "str" and formula.endswith(_EMPTY_VALUES))
            raw = read.formulas[key] = RawFormula("", _NO_ATTRIBUTES, cached=cached, markup=formula)
            if formula[2] != ">" and (filling := _FILLING.match(formula)) is not None:
                # Most fill only their own cell, which needs no parsing.
                own = f' ref="{cell_name(key >> COLUMN_BITS, key & COLUMN_MASK)}"'
                if own not in filling[0] and not raw.belongs_to(key):
                    raise _UnusualError
        return len(formula)

    def _other(self, kind_of_cell: tuple[int, int, str], text: str, inline: str) -> CellValue:
        """The value of a cell that holds no number and no shared string."""
        kind, style, named = kind_of_cell
        if (text and kind is _INLINE) or (inline and kind is not _INLINE):
            raise _UnusualError
        if kind is _INLINE:
            return read_string(unescape(inline.partition(">")[2])) if inline else None
        return self._reader.typed(named, unescape(text), style) if text else None

    def _is_wanted(self, key: int) -> bool:
        row, column = key >> COLUMN_BITS, key & COLUMN_MASK
        return any(window.holds(row, column) for window in self._windows)

    def _learn(self, attributes: str) -> tuple[int, int, str]:
        """Kind, cell format and type of a cell, from its attributes."""
        if _CELL_ATTRIBUTES.fullmatch(attributes) is None:
            raise _UnusualError
        by_name = dict(ATTRIBUTE.findall(attributes))
        named = by_name.get("t", "n")
        if named not in CELL_TYPES:
            raise _UnusualError
        style = self._reader.style(by_name.get("s", "0"))
        kind = _KINDS.get(named, _OTHER)
        if kind is _NUMBER and self._reader.is_date(style):
            kind = _DATE
        learned = self._kinds[attributes] = (kind, style, named)
        return learned


def _check_markup(rows: str) -> None:
    """Raises an error for unknown formulas, and for cells that do not begin with their address."""
    if rows.count("<c") != rows.count('<c r="'):
        raise _UnusualError
    if "<f " in rows and _ODD_FORMULA.search(rows) is not None:
        raise _UnusualError


def _check_texts(numbers: Sequence[str], indices: Sequence[str]) -> None:
    """Raises an error for text that is a number to Python, but not in a workbook."""
    # Most hold nothing but a few digits, which is seen without looking at each character.
    joined = "\0".join(numbers)
    odd = joined.encode().translate(None, _OFTEN_IN_NUMBERS) or _are_long(numbers, 300)
    if odd and ODD_NUMBER.search(joined):
        raise _UnusualError
    joined = "\0".join(indices)
    odd = joined.encode().translate(None, _DIGITS) or _are_long(indices, 10)
    if odd and _NOT_DIGITS.search(joined):
        raise _UnusualError


def _are_long(texts: Sequence[str], length: int) -> bool:
    return max(map(len, texts), default=0) >= length


def _number(text: str) -> int | float:
    return float(text) if "." in text or "E" in text or "e" in text else int(text)


def _columns_pattern(windows: Sequence[Window]) -> str:
    """A regular expression for the letters of the columns that are read."""
    rows = sum(window.rows for window in windows)
    column_count = sum(max(0, window.columns) for window in windows)
    if rows < _MIN_ROWS_TO_COMPILE or not 0 < column_count <= _MAX_NAMED_COLUMNS:
        # For few rows, reading the other columns takes less time than compiling an expression.
        return "[A-Z]{1,3}"
    columns = {
        column for window in windows for column in range(window.min_column, window.max_column + 1)
    }
    letters = [column_letters(column) for column in sorted(columns)]
    single = "".join(letter for letter in letters if len(letter) == 1)
    several = [letter for letter in letters if len(letter) > 1]
    return "(?:" + "|".join(([f"[{single}]"] if single else []) + several) + ")"


@lru_cache(maxsize=64)
def _patterns(columns: str) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Expressions for the cells that are read.

    Returns:
        An expression that finds where such a cell begins; one that finds all of them, with empty
        groups for cells in an unusual form; and one that reads a cell in the usual form.
    """
    start = f'<c r="(?:{columns}[0-9]|[^A-Z])'
    cell = _CELL.replace("{columns}", columns)
    return re.compile(start), re.compile(f"(?:{cell}|{start})"), re.compile(cell)


# -- rows that were read lately --------------------------------------------------------------------

_MAX_ALL_KEPT_BYTES = 8 << 20
_BYTES_OF_A_SHEET = 4_000
_BYTES_OF_A_CELL = 300
_BYTES_OF_A_WINDOW = 150
_BYTES_OF_A_NUMBER = 40
_BYTES_OF_A_CHARACTER = 4


@dataclass(frozen=True, slots=True)
class RowPiece:
    """Complete rows of a worksheet in the plain form.

    Attributes:
        data: their bytes, with the spaces around them.
        numbers: the number of each row.
        attributes: what their tags hold after the number, in the order in which it first occurs.
    """

    data: bytes
    numbers: Sequence[int]
    attributes: Collection[bytes]


@dataclass(slots=True)
class PlainSheet:
    """A worksheet of which one pass has shown that all rows are in the plain form.

    Attributes:
        part_bytes: size of its part.
        root: its start tag.
        namespace: its main namespace.
        tail: the elements around its rows.
        pieces: its rows.
        fills: whether a formula may fill other cells.
        first_read: the cells that the pass read; None if there are many.
    """

    part_bytes: int
    root: bytes = b""
    namespace: str | None = None
    tail: SheetTail = field(default_factory=SheetTail)
    pieces: list[RowPiece] = field(default_factory=list)
    fills: bool = False
    first_read: FirstRead | None = None

    @property
    def size(self) -> int:
        """How many bytes of memory it takes at most, whatever the worksheet holds."""
        row_bytes = sum(len(piece.data) for piece in self.pieces)
        numbers = sum(len(piece.numbers) for piece in self.pieces)
        windows = sum(len(rule.windows) for rule in self.tail.rules)
        elements, chars = self.tail.size, self.part_bytes - row_bytes  # of what is around the rows
        for piece in self.pieces:
            elements += len(piece.attributes)
            chars += sum(map(len, piece.attributes))
        if self.first_read is not None:
            windows += len(self.first_read.requested.windows)
            elements += self.first_read.cells.size
            chars += self.first_read.chars
        return (
            _BYTES_OF_A_SHEET
            + row_bytes
            + _BYTES_OF_A_NUMBER * numbers
            + _BYTES_OF_A_WINDOW * windows
            + _BYTES_OF_A_CELL * elements
            + _BYTES_OF_A_CHARACTER * chars
        )


class Requested(NamedTuple):
    """The cells that are requested of a worksheet, and what decides their values.

    Attributes:
        windows: the rectangles.
        formats: digest of the number formats.
        date_1904: whether serial dates count from 1904.
        blanks: whether stored cells without value and formula are read, too.
    """

    windows: tuple[Window, ...]
    formats: bytes
    date_1904: bool
    blanks: bool


class FirstRead(NamedTuple):
    """The cells that the first pass over a worksheet read.

    Attributes:
        requested: which cells were requested.
        cells: the cells.
        chars: how many characters of strings and formulas they have.
    """

    requested: Requested
    cells: SheetCells
    chars: int


class RecentSheets:
    """The worksheets that were read lately, by their packed bytes.

    A range and then all of a worksheet are often read, and a gold is read for every answer; nothing
    is inflated and checked twice then.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[Hashable, PlainSheet] = {}
        self._size = 0

    def get(self, key: Hashable) -> PlainSheet | None:
        """The worksheet of a key."""
        return self._known.get(key)

    def keep(self, key: Hashable, sheet: PlainSheet) -> None:
        """Keeps a worksheet, and lets the oldest ones go if all take too much memory."""
        size = sheet.size
        if size > _MAX_ALL_KEPT_BYTES // 2:
            return
        with self._lock:
            if key in self._known:
                return
            self._known[key] = sheet
            self._size += size
            while self._size > _MAX_ALL_KEPT_BYTES:
                self._size -= self._known.pop(next(iter(self._known))).size


recent_sheets = RecentSheets()
