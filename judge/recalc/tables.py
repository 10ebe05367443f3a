"""Replaces structured references by the rectangles that they mean.

``SUM(Sales[Amount])`` and ``Sales[[#This Row],[Amount]]`` name cells through a table. Two of the
engines do not support some forms of them, and the dependencies of a formula are only known once
they are written as ``$C$2:$C$9`` and ``$C$4``. Source of the grammar: ECMA-376 part 1, 18.17.6.1.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from judge.errors import WorkbookError
from judge.formulas.lexer import Kind, Token, is_too_long, tokens
from judge.workbook.address import Window, cell_name, folded, parse_window
from judge.workbook.cell import Cell
from judge.workbook.editing.parts import escape_text
from judge.workbook.reader import Workbook, sheet_formulas
from judge.workbook.xml_parts import linked_parts, scan_part, whole_number

_ITEM = re.compile(r"\[((?:'.|[^\[\]'])*)\]")
_ESCAPED = re.compile(r"'(.)", re.DOTALL)
_KEPT = 1000
"""Formulas whose pieces are kept; a column of a table usually repeats one text in every row."""
_WHOLE = frozenset(("#all", "#data", "#headers", "#totals", "#this row"))


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a sheet.

    Attributes:
        sheet: the sheet.
        window: its cells, including headings and totals.
        headings: number of heading rows, 0 or 1.
        totals: number of total rows, 0 or 1.
        columns: case-folded name of a column -> its number on the sheet.
    """

    sheet: str
    window: Window
    headings: int
    totals: int
    columns: Mapping[str, int]

    @property
    def _data(self) -> tuple[int, int]:
        """The first and last row of the data."""
        return self.window.min_row + self.headings, self.window.max_row - self.totals

    def has_data_in(self, row: int) -> bool:
        """Whether a row of the sheet is one of the data; ``[#This Row]`` elsewhere is #VALUE!."""
        first, last = self._data
        return first <= row <= last

    def rows(self, items: Iterable[str], row: int) -> tuple[int, int] | None:
        """The first and last row that items such as ``#headers`` name; None if there are none.

        Args:
            items: the items, in lower case; empty for the data.
            row: the row of the formula.
        """
        top, bottom = self.window.min_row, self.window.max_row
        first, last = self._data
        parts = {
            "#all": (top, bottom),
            "#data": (first, last),
            "#headers": (top, top + self.headings - 1),
            "#totals": (bottom - self.totals + 1, bottom),
            "#this row": (row, row) if self.has_data_in(row) else (1, 0),
        }
        named = [parts[item] for item in items] or [parts["#data"]]
        if any(start > end for start, end in named):
            return None
        return min(start for start, _ in named), max(end for _, end in named)


class _Reference:
    """A structured reference, read once for every row that repeats it.

    Args:
        table: the table that it names.
        brackets: the brackets after its name, with their content.
        sheet: the sheet to write before the cells, if it is not that of the formula.
    """

    def __init__(self, table: Table, brackets: str, sheet: str | None) -> None:
        self._table = table
        self._sheet = sheet
        self._named = _items_and_columns(table, brackets)
        self._depends_on_row = "#this row" in brackets.casefold()
        self._fixed = None if self._depends_on_row else self._cells(0)

    def text(self, row: int) -> str | None:
        """What it means in a row of the formula's sheet; None if it is not understood."""
        if not self._depends_on_row:
            return self._fixed
        cells = self._cells(row)
        return "#VALUE!" if cells is None and not self._table.has_data_in(row) else cells

    def _cells(self, row: int) -> str | None:
        if self._named is None:
            return None
        items, left, right = self._named
        rows = self._table.rows(items, row)
        return rows and _as_text(Window(rows[0], left, rows[1], right), self._sheet)


_FORMULA = re.compile(
    rb"""(?P<start><c r="[A-Z]{1,3}(?P<row>\d{1,7})"[^<>]*+>"""
    rb"""<f(?![^<>]*? t="shared")(?:\s[^<>]*+)?+(?<!/)>)(?P<text>[^<]++)(?=</f>)"""
)


class Tables:
    """The tables of a workbook; its parts are read when the first formula may name one.

    Args:
        workbook: an open workbook.
    """

    def __init__(self, workbook: Workbook) -> None:
        self._workbook = workbook
        self._cells: dict[int, tuple[Cell, Cell]] = {}
        self._pieces: dict[tuple[str, str], Sequence[str | _Reference] | None] = {}

    @cached_property
    def by_name(self) -> Mapping[str, Table]:
        """Case-folded name -> table; empty if a part cannot be read."""
        try:
            return dict(self._read())
        except WorkbookError:
            return {}

    def _read(self) -> Iterable[tuple[str, Table]]:
        for tab in self._workbook.tabs:
            if tab.is_worksheet:
                for part in linked_parts(self._workbook.package, tab.part, "table"):
                    yield from self._of_part(part, tab.name)

    def _of_part(self, part: str, sheet: str) -> Iterable[tuple[str, Table]]:
        elements: list[tuple[str, Mapping[str, str]]] = []
        scan_part(
            self._workbook.package, part, lambda tag, values: elements.append((tag, dict(values)))
        )
        root = next((values for tag, values in elements if tag == "table"), {})
        window = parse_window(root.get("ref", ""))
        name = root.get("displayName") or root.get("name")
        if window is None or not name:
            return
        names = [values.get("name", "") for tag, values in elements if tag == "tableColumn"]
        columns = {folded(column): window.min_column + at for at, column in enumerate(names)}
        if len(names) != window.max_column - window.min_column + 1 or len(columns) != len(names):
            return
        headings = whole_number(root.get("headerRowCount", "1"))
        totals = whole_number(root.get("totalsRowCount", "0"))
        if headings is not None and totals is not None:
            yield folded(name), Table(sheet, window, headings, totals, columns)

    @cached_property
    def _names(self) -> re.Pattern[str] | None:
        """Finds a table's name in a formula; None if there are no tables."""
        has_some = any("/table" in part for part in self._workbook.package.names)
        if not has_some or not self.by_name:
            return None
        names = "|".join(map(re.escape, self.by_name))
        return re.compile(rf"(?<![\w.])(?:{names})(?![\w.(])", re.IGNORECASE)

    def may_name_one(self, formula: str) -> bool:
        """Whether a formula may refer to a table, by a structured reference or its name alone."""
        return "[" in formula or (self._names is not None and bool(self._names.search(formula)))

    def formulas_on(self, sheet: str) -> Sequence[Cell]:
        """The formula cells of a sheet, with structured references written out."""
        cells = sheet_formulas(self._workbook, sheet)
        if not any(self.may_name_one(cell.formula or "") for cell in cells):
            return cells
        return [self.cell(cell, sheet) for cell in cells]

    def written_out(self, formula: str, sheet: str, row: int) -> str:
        """Replaces the structured references of a formula; unchanged if one is not understood.

        Args:
            formula: with or without its leading ``=``.
            sheet: the sheet of the formula.
            row: the row of the formula.
        """
        if (formula, sheet) not in self._pieces:
            if len(self._pieces) == _KEPT:
                self._pieces.clear()
            self._pieces[formula, sheet] = self._pieces_of(formula, sheet)
        pieces = self._pieces[formula, sheet]
        if pieces is None:
            return formula
        texts = [piece if isinstance(piece, str) else piece.text(row) for piece in pieces]
        new = "".join(text for text in texts if text is not None)
        return formula if None in texts or is_too_long(new) else new

    def _pieces_of(self, formula: str, sheet: str) -> Sequence[str | _Reference] | None:
        """Separates the references of a formula from its text; None if it stays as it is."""
        if is_too_long(formula) or not self.may_name_one(formula) or not self.by_name:
            return None
        words = tokens(formula)
        pieces: list[str | _Reference] = []
        at = 0
        while at < len(words):
            word, behind = words[at], words[at + 1] if at + 1 < len(words) else None
            is_named = word.kind in (Kind.NAME, Kind.CELL) and not (
                at and words[at - 1].kind is Kind.SHEET
            )
            table = self.by_name.get(folded(word.text)) if is_named else None
            bracketed = behind is not None and behind.kind is Kind.BRACKETS
            if table is not None and (bracketed or word.kind is Kind.NAME):
                text = behind.text if behind and bracketed else "[]"
                pieces.append(
                    _Reference(table, text, None if table.sheet == sheet else table.sheet)
                )
                at += 1 + bracketed
                continue
            if word.kind is Kind.BRACKETS:
                return None
            pieces.append(self._named_in_text(words, at, sheet) or word.text)
            at += 1
        return pieces

    def _named_in_text(self, words: Sequence[Token], at: int, sheet: str) -> str | None:
        """The text of ``INDIRECT("Sales[Units]")`` as a range; None for any other token."""
        word, near = words[at], (*words[max(at - 2, 0) : at], *words[at + 1 : at + 2])
        if [token.text.upper() for token in near] != ["INDIRECT", "(", ")"]:
            return None
        if word.kind is not Kind.TEXT or "#this row" in word.text.casefold():
            return None
        pieces = self._pieces_of(word.text[1:-1], sheet)
        named = pieces[0] if pieces is not None and len(pieces) == 1 else None
        text = named.text(0) if isinstance(named, _Reference) else None
        return None if text is None else '"' + text.replace('"', '""') + '"'

    def cell(self, cell: Cell, sheet: str) -> Cell:
        """Replaces the structured references of a formula cell, once for each object."""
        if cell.formula is None or not self.may_name_one(cell.formula):
            return cell
        if id(cell) not in self._cells:
            new = self.written_out(cell.formula, sheet, cell.row)
            written = cell if new == cell.formula else cell._replace(formula=new)
            self._cells[id(cell)] = cell, written
        return self._cells[id(cell)][1]

    def sheet_written_out(self, xml: bytes, sheet: str) -> bytes:
        """Replaces the structured references of a sheet's formulas, except in shared formulas."""

        def changed(match: re.Match[bytes]) -> bytes:
            text = html.unescape(match["text"].decode("utf-8", "surrogateescape"))
            new = self.written_out(text, sheet, int(match["row"]))
            if new == text:
                return match[0]
            return match["start"] + escape_text(new).encode("utf-8", "surrogateescape")

        named = self._names is not None
        return _FORMULA.sub(changed, xml) if named and b"<f" in xml else xml


def _items_and_columns(table: Table, brackets: str) -> tuple[list[str], int, int] | None:
    """The items and the first and last column that brackets name; None if not understood."""
    inner = brackets[1:-1]
    if "[" not in inner:
        items, columns = ([], []) if not inner.strip() else _sorted_out([inner])
    else:
        between = _ITEM.sub("", inner)
        items, columns = _sorted_out(_ITEM.findall(inner))
        if between.strip(" ,:") or len(columns) != min(len(columns), 1) + between.count(":"):
            return None
    numbers = [table.columns.get(folded(_ESCAPED.sub(r"\1", name))) for name in columns]
    if None in numbers:
        return None
    named = [number for number in numbers if number is not None]
    left = min(named, default=table.window.min_column)
    right = max(named, default=table.window.max_column)
    return items, left, right


def _sorted_out(specs: Iterable[str]) -> tuple[list[str], list[str]]:
    """Separates items such as ``#headers`` from names of columns."""
    items: list[str] = []
    columns: list[str] = []
    for spec in specs:
        if spec.lower() in _WHOLE:
            items.append(spec.lower())
        else:
            columns.append(spec)
    return items, columns


def _as_text(area: Window, sheet: str | None) -> str:
    prefix = "" if sheet is None else "'" + sheet.replace("'", "''") + "'!"
    first, last = (
        "$" + re.sub(r"(?=\d)", "$", cell_name(row, column), count=1)
        for row, column in ((area.min_row, area.min_column), (area.max_row, area.max_column))
    )
    return prefix + (first if first == last else f"{first}:{last}")
