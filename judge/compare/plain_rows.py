"""Rows as programs usually write them, read with regular expressions instead of an XML parser.

A cell in its usual spelling (``<c r="B7" s="3" t="s"><v>12</v></c>`` and the like) needs no parser,
and reading thousands of them this way takes a fraction of the time. Nothing is guessed: rows are
only taken if every wanted cell among them is spelled in one of the known ways, and if no comment,
CDATA section or processing instruction stands between them. All others are left to the parser.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NoReturn

from judge.compare.address import (
    COLUMN_BITS,
    COLUMN_MASK,
    MAX_ROW,
    Window,
    column_letters,
    column_number,
)
from judge.compare.cell import CellValue
from judge.compare.cell_values import ValueReader
from judge.compare.number_formats import NumberFormats
from judge.compare.raw_formula import (
    ATTRIBUTE,
    ATTRIBUTES,
    TEXT,
    UNUSUAL_ENTITY,
    RawFormula,
    unescape,
)
from judge.compare.sheet_cells import SheetCells

_CELL = (
    '<c r="({columns})([0-9]+)"([^<>&]*)>(?:(?<=/>)|'
    f"(<f{ATTRIBUTES} ?(?:/>|>{TEXT}*</f>)(?:<v></v>|<v ?/>)?)?"
    f"(?:<v>({TEXT}+)</v>)?"
    f'(?:<is>(<t(?: xml:space="preserve")?>{TEXT}*)</t></is>)?'
    "</c>)"
)
_CELL_ATTRIBUTES = re.compile('(?: (?:s|t|cm|vm|ph)="[A-Za-z0-9]*")* ?/?')
_MOST_NAMED_COLUMNS = 64
_FEWEST_ROWS = 1000

_EMPTY_VALUES = ("<v></v>", "<v/>", "<v />")

_NUMBER, _DATE, _SHARED, _INLINE, _OTHER = range(5)
_KINDS = {"n": _NUMBER, "s": _SHARED, "inlineStr": _INLINE}


class _UnusualError(Exception):
    """Something is spelled in a way that only the parser reads."""


def _leave_to_parser(_: str) -> NoReturn:
    raise _UnusualError


class _Rows(dict[str, int]):
    """Text of a row number -> the number as the upper part of a key; made as it is needed."""

    def __init__(self, first: int, last: int) -> None:
        super().__init__()
        self._first = first
        self._last = last

    def __missing__(self, digits: str) -> int:
        row = int(digits)
        # A cell whose address is not that of its row is the parser's business.
        if not self._first <= row <= self._last:
            raise _UnusualError
        self[digits] = row << COLUMN_BITS
        return self[digits]


class _Columns(dict[str, int]):
    """Letters of a column -> its number."""

    def __missing__(self, letters: str) -> int:
        number = self[letters] = column_number(letters)
        return number


class PlainRows:
    """Reads rows of a worksheet that are spelled as usual.

    Args:
        windows: the rectangles whose cells are kept; at least one.
        formats: number formats, which decide what is a date.
        date_1904: whether serial dates count from 1904.
        blanks: keep stored cells without value and formula too.
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
        # Within a single rectangle, the first and the last of rows and columns say it all.
        self._several = len(windows) > 1
        self._blanks = blanks
        self._reader = ValueReader(formats, date_1904=date_1904, fail=_leave_to_parser)
        self._first_row = min(each.min_row for each in windows)
        self._last_row = max(each.max_row for each in windows)
        self._first_column = min(each.min_column for each in windows)
        self._last_column = max(each.max_column for each in windows)
        self._start, self._cell = _patterns(_columns_pattern(windows))
        self._rows = _Rows(max(1, self._first_row), min(MAX_ROW, self._last_row))
        self._columns = _Columns()
        self._kinds: dict[str, tuple[int, int, str]] = {}
        self._dates: dict[tuple[int, str], CellValue] = {}

    def take(self, rows: str, cells: SheetCells) -> int | None:
        """Adds the wanted cells of some rows to those that were read.

        Args:
            rows: complete rows, the first and the last of them wanted, without any comment, CDATA
                section or processing instruction.
            cells: where the cells go.

        Returns:
            How many characters of texts and formulas were kept; None where the rows must be left
            to the parser, and then nothing was added.
        """
        if rows.count("<c") != rows.count('<c r="') or "\r" in rows:
            return None
        entities = "&" in rows
        if entities and UNUSUAL_ENTITY.search(rows) is not None:
            return None
        found = self._cell.findall(rows)
        if len(found) != len(self._start.findall(rows)):
            return None
        read = SheetCells()
        try:
            kept = self._read(found, read, entities=entities)
        except (_UnusualError, ValueError):
            return None
        cells.values.update(read.values)
        cells.styles.update(read.styles)
        cells.formulas.update(read.formulas)
        cells.strings.update(read.strings)
        return kept

    def _read(self, found: list[tuple[str, ...]], read: SheetCells, *, entities: bool) -> int:
        rows, columns, kinds = self._rows, self._columns, self._kinds
        values, styles, blanks = read.values, read.styles, self._blanks
        several, first, last = self._several, self._first_column, self._last_column
        kept = 0
        for letters, digits, attributes, formula, text, inline in found:
            if not (text or formula or inline or blanks):
                continue
            column = columns[letters]
            if not first <= column <= last:
                continue
            key = rows[digits] | column
            if several and not self._is_wanted(key):
                continue
            kind, style, named = kinds.get(attributes) or self._learn(attributes)
            if style:
                styles[key] = style
            if formula:
                cached = bool(text) or (named == "str" and formula.endswith(_EMPTY_VALUES))
                read.formulas[key] = RawFormula.of_markup(formula, cached=cached)
                kept += len(formula)
            if kind is _NUMBER and text:
                values[key] = (
                    float(text) if "." in text or "E" in text or "e" in text else int(text)
                )
            else:
                content = unescape(text) if entities else text
                kept += self._keep_other(key, kind, style, named, content, inline, read)
        return kept

    def _keep_other(
        self,
        key: int,
        kind: int,
        style: int,
        named: str,
        text: str,
        inline: str,
        read: SheetCells,
    ) -> int:
        """Keeps a value that is no plain number; returns how many characters were kept."""
        if kind is _INLINE:
            read.values[key] = unescape(inline.partition(">")[2]) if inline else None
            return len(inline)
        if not text:
            read.values[key] = None
        elif kind is _SHARED:
            read.strings[key] = self._reader.integer(text)
            read.values[key] = None
        elif kind is _DATE:
            known = self._dates.get((style, text))
            if known is None:
                known = self._dates[style, text] = self._reader.number(text, style)
            read.values[key] = known
        else:
            read.values[key] = self._reader.typed(named, text)
            return len(text)
        return 0

    def _is_wanted(self, key: int) -> bool:
        row, column = key >> COLUMN_BITS, key & COLUMN_MASK
        return any(each.holds(row, column) for each in self._windows)

    def _learn(self, attributes: str) -> tuple[int, int, str]:
        """Kind, cell format and type that the attributes of a cell give it."""
        if _CELL_ATTRIBUTES.fullmatch(attributes) is None:
            raise _UnusualError
        given = dict(ATTRIBUTE.findall(attributes))
        named = given.get("t", "n")
        style = self._reader.integer(given.get("s") or "0")
        kind = _KINDS.get(named, _OTHER)
        if kind is _NUMBER and self._reader.is_date(style):
            kind = _DATE
        known = self._kinds[attributes] = (kind, style, named)
        return known


def _columns_pattern(windows: Sequence[Window]) -> str:
    """A regular expression for the letters of the columns that are looked at."""
    rows = sum(each.max_row - each.min_row + 1 for each in windows)
    wanted = sum(max(0, each.max_column - each.min_column + 1) for each in windows)
    if rows < _FEWEST_ROWS or not 0 < wanted <= _MOST_NAMED_COLUMNS:
        # Compiling an expression takes longer than looking at the other columns of a few rows.
        return "[A-Z]{1,3}"
    columns = {column for each in windows for column in range(each.min_column, each.max_column + 1)}
    letters = [column_letters(column) for column in sorted(columns)]
    single = "".join(each for each in letters if len(each) == 1)
    several = [each for each in letters if len(each) > 1]
    return "(?:" + "|".join(([f"[{single}]"] if single else []) + several) + ")"


@lru_cache(maxsize=64)
def _patterns(columns: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Expressions for the start of a cell that is looked at, and for the whole of it."""
    start = re.compile(f'<c r="(?:{columns}[0-9]|[^A-Z])')
    return start, re.compile(_CELL.replace("{columns}", columns))
