"""Finds the tables of an input workbook, with headings and the kinds of columns."""

from __future__ import annotations

import datetime as dt
import enum
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.workbook.cell import Cell, CellRange, CellRef, CellValue
from judge.workbook.reader import Workbook


class Kind(enum.StrEnum):
    """The kind of most constants of a column."""

    NUMBER = "number"
    TEXT = "text"
    DATE = "date"
    FORMULA = "formula"
    BLANK = "blank"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        number: 1-based number on the sheet.
        kind: the kind of most of its constants.
        cells: the stored cells of its data rows, by row.
        is_answer: whether it is in the answer range.
    """

    number: int
    kind: Kind
    cells: Mapping[int, Cell]
    is_answer: bool

    def rows_with_values(self) -> list[int]:
        """Rows where the column holds a constant."""
        return [
            row
            for row, cell in self.cells.items()
            if cell.formula is None and cell.value not in {None, ""}
        ]


@dataclass(frozen=True, slots=True)
class Table:
    """A block of data.

    Attributes:
        sheet: its sheet.
        head_row: the row of its headings; None for a table without headings.
        first_row, last_row: its data rows.
        columns: its columns, left to right.
        free_below: whether its columns are empty below it.
        covered: cells of the sheet that belong to merged ranges.
        head: its headings by column number; None for a table without headings.
    """

    sheet: str
    head_row: int | None
    first_row: int
    last_row: int
    columns: tuple[Column, ...]
    free_below: bool
    covered: frozenset[tuple[int, int]]
    head: Mapping[int, Cell] | None = None

    @property
    def rows(self) -> range:
        """Its data rows."""
        return range(self.first_row, self.last_row + 1)

    def inputs(self, *kinds: Kind) -> list[Column]:
        """Columns of the given kinds that are inputs of the task, and not answers."""
        return [column for column in self.columns if not column.is_answer and column.kind in kinds]

    def ref(self, row: int, column: int) -> CellRef:
        """A cell of the table's sheet."""
        return CellRef(self.sheet, row, column)


MIN_ROWS = 2


def find_tables(workbook: Workbook, answer: Sequence[CellRange]) -> list[Table]:
    """The tables of a workbook, those with most rows first.

    Args:
        workbook: an input.
        answer: the rectangles of the answer. If they include all columns of a table, the table is
            edited in place and its columns count as inputs.

    Raises:
        WorkbookError: a sheet cannot be read.
    """
    tables = []
    for sheet in workbook.sheet_names:
        used = workbook.used_range(sheet)
        if used is None:
            continue
        stored = workbook.cells(used)
        cells = {
            position: cell
            for position, cell in stored.items()
            if cell.formula is not None or cell.value not in {None, ""}
        }
        covered = frozenset(
            (row, column)
            for merge in workbook.sheet(sheet).tail.merges
            for row in range(merge.min_row, min(merge.max_row, used.max_row) + 1)
            for column in range(merge.min_column, min(merge.max_column, used.max_column) + 1)
        )
        own = [area for area in answer if area.sheet == sheet]
        for first, last in _column_blocks(cells):
            table = _table_of(sheet, cells, first, last, own, covered)
            if table is not None:
                tables.append(table)
    return sorted(tables, key=lambda table: table.first_row - table.last_row)


def _column_blocks(cells: Mapping[tuple[int, int], Cell]) -> list[tuple[int, int]]:
    """Runs of adjacent columns that are not empty, as pairs of first and last column."""
    blocks: list[tuple[int, int]] = []
    for column in sorted({column for _, column in cells}):
        if blocks and blocks[-1][1] == column - 1:
            blocks[-1] = (blocks[-1][0], column)
        else:
            blocks.append((column, column))
    return blocks


MAX_GAP = 3
"""How many consecutive blank rows a table may contain."""


def _table_of(
    sheet: str,
    cells: Mapping[tuple[int, int], Cell],
    first: int,
    last: int,
    answer: Sequence[CellRange],
    covered: frozenset[tuple[int, int]],
) -> Table | None:
    rows: dict[int, dict[int, Cell]] = {}
    for (row, column), cell in cells.items():
        if first <= column <= last:
            rows.setdefault(row, {})[column] = cell
    head = _head_row(rows)
    start = head + 1 if head is not None else min(rows)
    end = start - 1
    while any(end + step in rows for step in range(1, MAX_GAP + 2)):
        end += 1
    if end - start + 1 < MIN_ROWS:
        return None
    columns = []
    for number in range(first, last + 1):
        numbered_cells = {
            row: rows[row][number]
            for row in range(start, end + 1)
            if row in rows and number in rows[row]
        }
        inside = any(
            area.min_column <= number <= area.max_column
            and area.min_row <= end
            and area.max_row >= start
            for area in answer
        )
        columns.append(Column(number, _kind(numbered_cells), numbered_cells, inside))
    if all(column.is_answer for column in columns):
        columns = [Column(column.number, column.kind, column.cells, False) for column in columns]
    free = not any(row > end for row in rows)
    headings = rows[head] if head is not None else None
    return Table(sheet, head, start, end, tuple(columns), free, covered, headings)


MAX_HEAD_ROWS = 12


def _head_row(rows: Mapping[int, Mapping[int, Cell]]) -> int | None:
    """The first row that holds only text and has data below it; None if there is no such row."""
    for row in sorted(rows)[:MAX_HEAD_ROWS]:
        if not all(map(_is_text, rows[row].values())) or row + 1 not in rows:
            continue
        # A single string above other text is a title; above anything else it is a heading.
        if len(rows[row]) > 1 or not all(map(_is_text, rows[row + 1].values())):
            return row
    return None


def _is_text(cell: Cell) -> bool:
    return isinstance(cell.value, str) and cell.formula is None


def _kind(cells: Mapping[int, Cell]) -> Kind:
    """The kind of most constants; in a column without constants, formulas or blank cells."""
    constants = Counter(
        kind_of_value(cell.value) for cell in cells.values() if cell.formula is None
    )
    if constants:
        return constants.most_common(1)[0][0]
    return Kind.FORMULA if cells else Kind.BLANK


def kind_of_value(value: CellValue) -> Kind:
    """The kind of a constant."""
    if isinstance(value, dt.datetime | dt.date):
        return Kind.DATE
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Kind.NUMBER
    return Kind.BLANK if value in {None, ""} else Kind.TEXT
