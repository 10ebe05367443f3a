"""The cells on which an answer depends: where a change of the input can matter.

Two things say so: the gold's formulas, by what they refer to, directly and through other formulas;
and the programs that all cases accept, by what they read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from judge.annotate.reads import Reads
from judge.annotate.tables import Kind, Table, kind_of_value
from judge.errors import WorkbookError
from judge.formulas.references import references
from judge.formulas.traits import traits
from judge.recalc.dependency import FOLLOWED_LIMIT, FormulaIndex, Search
from judge.workbook.address import MAX_COLUMN, MAX_ROW, parse_window
from judge.workbook.cell import Cell, CellRange, CellRef, CellValue
from judge.workbook.formula_cells import filling_cells, sheet_formulas
from judge.workbook.reader import Workbook


def _no_reads() -> Reads:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Support:
    """What is known of the cells on which an answer depends.

    Attributes:
        areas: what the gold's formulas refer to; None if they do not show it.
        reads: what accepted programs read.
    """

    areas: tuple[CellRange, ...] | None = None
    reads: Reads = field(default_factory=_no_reads)

    def by_formulas(self, ref: CellRef) -> bool:
        """Whether the gold's formulas depend on a cell."""
        return self.areas is not None and any(_holds(area, ref) for area in self.areas)

    def by_programs(self, ref: CellRef) -> bool:
        """Whether a program reads a cell."""
        return (ref.row, ref.column) in self.reads.get(ref.sheet, frozenset())

    def holds(self, ref: CellRef) -> bool:
        """Whether the answer may depend on a cell; every cell counts if nothing is known."""
        if self.areas is None and not self.reads:
            return True
        return self.by_formulas(ref) or self.by_programs(ref)


def _holds(area: CellRange, ref: CellRef) -> bool:
    return (
        area.sheet == ref.sheet
        and area.min_row <= ref.row <= area.max_row
        and area.min_column <= ref.column <= area.max_column
    )


def merged_reads(all_reads: Iterable[Reads]) -> Reads:
    """What any of several programs reads."""
    found: dict[str, set[tuple[int, int]]] = {}
    for reads in all_reads:
        for sheet, places in reads.items():
            found.setdefault(sheet, set()).update(places)
    return {sheet: frozenset(places) for sheet, places in found.items()}


def precedents(gold: Workbook, answer: Sequence[CellRange]) -> tuple[CellRange, ...] | None:
    """The rectangles that the formulas of an answer refer to, through other formulas as well.

    Returns:
        None if the answer holds no formula, or if one reaches cells that its text does not show.

    Raises:
        WorkbookError: a sheet cannot be read.
    """
    index = FormulaIndex(gold.sheet_names, lambda sheet: sheet_formulas(gold, sheet))
    search = Search(index)
    waiting = [(area.sheet, cell) for area in answer for cell in gold.formula_cells(area)]
    if not waiting:
        return None
    areas: set[CellRange] = set()
    followed = 0
    while waiting:
        home, cell = waiting.pop()
        followed += 1
        formula = cell.formula or ""
        if followed > FOLLOWED_LIMIT or index.work_left < 0 or traits(formula).opaque:
            return None
        for reference in references(formula):
            sheet = home if reference.sheet is None else index.named(reference.sheet)
            if sheet is None:
                continue
            area = CellRange(
                sheet,
                reference.min_row,
                reference.min_column,
                reference.max_row,
                reference.max_column,
            )
            if area not in areas:
                areas.add(area)
                waiting.extend(search.unseen(reference, home))
    return tuple(sorted(areas))


# -- constants that can be changed ----------------------------------------------------------------


@dataclass(frozen=True)
class Group:
    """Constants of one column of a sheet on which the answer may depend.

    Attributes:
        sheet, column: where they are.
        kind: what most of them are.
        cells: row -> cell, without headings and without the answer.
        heading: the heading above them, or empty.
        by_formulas: whether the gold's formulas refer to them.
        is_looked_up: whether most of them are keys that occur in another column too, and there once
            each: a lookup table.
    """

    sheet: str
    column: int
    kind: Kind
    cells: Mapping[int, Cell]
    heading: str
    by_formulas: bool
    is_looked_up: bool = False

    def ref(self, row: int) -> CellRef:
        """A cell of the column."""
        return CellRef(self.sheet, row, self.column)

    def rows(self, kind: Kind | None = None) -> list[int]:
        """Rows in order; only those whose constant is of a kind, if one is named."""
        return list(self._rows_by_kind.get(kind, ()))

    def values(self) -> list[CellValue]:
        """The constants in order."""
        return [self.cells[row].value for row in self._rows_by_kind[None]]

    @cached_property
    def _rows_by_kind(self) -> Mapping[Kind | None, Sequence[int]]:
        """Rows in order, of each kind and of all: dozens of mutators ask for them."""
        found: dict[Kind | None, list[int]] = {None: sorted(self.cells)}
        for row in found[None]:
            found.setdefault(kind_of_value(self.cells[row].value), []).append(row)
        return found


def find_groups(
    workbook: Workbook,
    answer: Sequence[CellRange],
    support: Support,
    tables: Sequence[Table],
) -> list[Group]:
    """The constants of an input on which an answer depends, column by column.

    Those that the gold's formulas refer to come first, shorter columns before longer ones: a single
    cell that an answer depends on is more of it than one of many rows.

    Raises:
        WorkbookError: a sheet cannot be read.
    """
    found = _groups(workbook, answer, support, tables)
    if not found:
        found = _groups(workbook, (), support, tables)
    keys = [(each, frozenset(each.values())) for each in found]
    marked = [_with_lookup(each, values, keys) for each, values in keys]
    return sorted(
        marked, key=lambda each: (not each.by_formulas, len(each.cells), each.sheet, each.column)
    )


def _groups(
    workbook: Workbook,
    answer: Sequence[CellRange],
    support: Support,
    tables: Sequence[Table],
) -> list[Group]:
    heads: dict[tuple[str, int], int] = {}
    for table in tables:
        if table.head_row is not None:
            heads |= {(table.sheet, each.number): table.head_row for each in table.columns}
    found = []
    for tab in workbook.tabs:
        if tab.name not in workbook.sheet_names or tab.state != "visible":
            continue
        columns: dict[int, dict[int, Cell]] = {}
        stored = workbook.cells(CellRange(tab.name, 1, 1, MAX_ROW, MAX_COLUMN))
        covered = _covered(workbook, tab.name)
        for (row, column), cell in stored.items():
            ref = CellRef(tab.name, row, column)
            if (
                cell.formula is None
                and cell.value not in {None, ""}
                and not isinstance(cell.value, bool)
                and _is_below(ref, heads, support)
                and (row, column) not in covered
                and not any(_holds(area, ref) for area in answer)
                and support.holds(ref)
            ):
                columns.setdefault(column, {})[row] = cell
        for column, cells in columns.items():
            head = heads.get((tab.name, column))
            group = _group(tab.name, column, cells, stored, head, support)
            if group is not None:
                found.append(group)
    return found


def _is_below(ref: CellRef, heads: Mapping[tuple[str, int], int], support: Support) -> bool:
    """Whether a cell is below its column's heading; above it only what formulas refer to counts."""
    head = heads.get((ref.sheet, ref.column), 0)
    return ref.row > head or (ref.row < head and support.by_formulas(ref))


def _covered(workbook: Workbook, sheet: str) -> set[tuple[int, int]]:
    """Cells that cannot be set on their own: covered by a merged range, filled by an array."""
    windows = [*workbook.sheet(sheet).tail.merges]
    try:
        for source in filling_cells(workbook, sheet):
            window = parse_window((source.array_range or "").replace("$", ""))
            if window is not None:
                windows.append(window)
    except WorkbookError:
        pass
    return {
        (row, column)
        for window in windows
        if (window.max_row - window.min_row + 1) * (window.max_column - window.min_column + 1)
        < MAX_COVERED
        for row in range(window.min_row, window.max_row + 1)
        for column in range(window.min_column, window.max_column + 1)
        if (row, column) != (window.min_row, window.min_column)
    }


MAX_COVERED = 100_000


def _group(
    sheet: str,
    column: int,
    cells: dict[int, Cell],
    stored: Mapping[tuple[int, int], Cell],
    head: int | None,
    support: Support,
) -> Group | None:
    kinds = [kind_of_value(cell.value) for cell in cells.values()]
    kind = max(set(kinds), key=lambda each: (kinds.count(each), each))
    first = min(cells)
    heading = ""
    if head is not None and (head, column) in stored:
        heading = str(stored[head, column].value)
    elif kind is not Kind.TEXT and len(cells) > 1 and isinstance(cells[first].value, str):
        # Text above values of another kind is their heading, whatever the rest of the row holds.
        heading = str(cells.pop(first).value)
    if not cells:
        return None
    by_formulas = any(support.by_formulas(CellRef(sheet, row, column)) for row in cells)
    return Group(sheet, column, kind, cells, heading, by_formulas)


def _with_lookup(
    group: Group,
    values: frozenset[CellValue],
    others: Sequence[tuple[Group, frozenset[CellValue]]],
) -> Group:
    """A column of distinct keys, of which another column holds some, is a lookup table's."""
    distinct = len(values) == len(group.cells) and len(values) > 1
    looked_up = distinct and any(
        other is not group
        and other.kind is group.kind
        and held
        and 2 * len(held & values) > len(held)
        for other, held in others
    )
    return Group(
        group.sheet,
        group.column,
        group.kind,
        group.cells,
        group.heading,
        group.by_formulas,
        looked_up,
    )
