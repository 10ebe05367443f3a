"""The cells on which an answer depends, where a change of the input can matter.

They come from two sources: the references in the gold's formulas, direct and through other
formulas; and the cells that accepted programs read. To record the cells that a program reads, it is
run once more with a tracing layer. The output of this run is discarded, so that tracing cannot
change a verdict. The report comes from an untrusted program, so its size is limited.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

from judge.annotate.tables import Kind, Table, kind_of_value
from judge.core.limits import Limits
from judge.core.submission import Submission
from judge.errors import WorkbookError
from judge.formulas.references import references
from judge.formulas.traits import traits
from judge.sandbox.contract import OutputStatus, RunRequest, SandboxSession
from judge.workbook.address import MAX_COLUMN, MAX_ROW, parse_window
from judge.workbook.cell import Cell, CellRange, CellRef, CellValue
from judge.workbook.dependency import FOLLOWED_LIMIT, FormulaIndex, Search
from judge.workbook.reader import Workbook, filling_cells, sheet_formulas

MAX_READS = 100_000
"""How many cells one traced run reports."""

MAX_TRACE_BYTES = 4 * 1024**2

Reads = Mapping[str, frozenset[tuple[int, int]]]
"""Sheet -> row and column of the cells that were read, including blank ones."""

_LAYER = """
import atexit as _atexit, json as _json
_seen, _written, _state = {}, set(), {"on": True, "left": %(most)d}
def _note(cell):
    if not _state["on"] or _state["left"] <= 0:
        return
    try:
        key = (cell.parent.title, cell.row, cell.column)
    except AttributeError:
        return
    if key in _seen or key in _written:
        return
    _seen[key] = None
    _state["left"] -= 1
def _traced(kind, writes):
    held = kind.value
    if not isinstance(held, property):
        return
    def read(self):
        _note(self)
        return held.fget(self)
    def write(self, value):
        try:
            _written.add((self.parent.title, self.row, self.column))
        except AttributeError:
            pass
        held.fset(self, value)
    kind.value = property(read, write if held.fset else None, None, held.__doc__)
def _save():
    _state["on"] = False
    sheets = {}
    for sheet, row, column in _seen:
        sheets.setdefault(sheet, []).append([row, column])
    with open(%(path)r, "w", encoding="utf-8") as target:
        _json.dump(sheets, target)
try:
    import openpyxl as _openpyxl
    from openpyxl.cell.cell import Cell as _Cell
    from openpyxl.cell.read_only import ReadOnlyCell as _ReadOnlyCell
    _traced(_Cell, True)
    _traced(_ReadOnlyCell, False)
    _plain_save = _openpyxl.Workbook.save
    def _quiet_save(self, *args, **kwargs):
        _state["on"] = False
        try:
            return _plain_save(self, *args, **kwargs)
        finally:
            _state["on"] = True
    _openpyxl.Workbook.save = _quiet_save
except ImportError:
    pass
_atexit.register(_save)
exec(compile(%(code)r, "solution.py", "exec"), {"__name__": "__main__"})
"""


def traced_program(code: str, trace_path: str) -> str:
    """A program that runs another program, and reports the cells that it read.

    Args:
        code: the program to run.
        trace_path: absolute path of the report inside the sandbox.
    """
    return _LAYER % {"most": MAX_READS, "path": trace_path, "code": code}


def cells_read(
    session: SandboxSession, submission: Submission, input_data: bytes, limits: Limits
) -> Reads:
    """The cells of an input that a program reads; empty if the program cannot be traced.

    Raises:
        SandboxError: the sandbox failed, not the program.
    """
    if submission.code is None:
        return {}
    trace_path = posixpath.join(posixpath.dirname(submission.output_path), "cells-read.json")
    result = session.run(
        RunRequest(
            program=traced_program(submission.code, trace_path),
            files={submission.input_path: input_data},
            collect=trace_path,
            limits=limits,
        )
    )
    if result.output_status is not OutputStatus.COLLECTED or result.output is None:
        return {}
    return parse_reads(result.output)


def parse_reads(data: bytes) -> Reads:
    """Reads a report of :func:`traced_program`; invalid entries are ignored."""
    if len(data) > MAX_TRACE_BYTES:
        return {}
    try:
        document: Any = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(document, dict):
        return {}
    return {
        sheet: frozenset(
            (position[0], position[1])
            for position in positions[:MAX_READS]
            if isinstance(position, list)
            and len(position) == 2
            and all(type(number) is int for number in position)
            and 1 <= position[0] <= MAX_ROW
            and 1 <= position[1] <= MAX_COLUMN
        )
        for sheet, positions in document.items()
        if isinstance(positions, list)
    }


def _no_reads() -> Reads:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Support:
    """Facts about the cells on which an answer depends.

    Attributes:
        areas: the rectangles that the gold's formulas refer to; None if their text does not show
            all of them.
        reads: the cells that accepted programs read.
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
        """Whether the answer may depend on a cell; True for every cell if nothing is known."""
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
    """The cells that at least one of several programs reads."""
    cells_by_sheet: dict[str, set[tuple[int, int]]] = {}
    for reads in all_reads:
        for sheet, positions in reads.items():
            cells_by_sheet.setdefault(sheet, set()).update(positions)
    return {sheet: frozenset(positions) for sheet, positions in cells_by_sheet.items()}


def precedents(gold: Workbook, answer: Sequence[CellRange]) -> tuple[CellRange, ...] | None:
    """The rectangles that the formulas of an answer refer to, directly or through other formulas.

    Returns:
        None if the answer holds no formula, or if a formula depends on cells that its text does not
        show.

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
        sheet, column: where the constants are.
        kind: the kind of most constants.
        cells: row -> cell, without headings and without the answer.
        heading: the heading above them, or empty.
        by_formulas: whether the gold's formulas refer to them.
        is_looked_up: whether this is the key column of a lookup table: its values are distinct, and
            another column consists mostly of them.
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
        """Rows in order; if a kind is given, only rows whose constant is of this kind."""
        return list(self._rows_by_kind.get(kind, ()))

    def values(self) -> list[CellValue]:
        """The constants in order."""
        return [self.cells[row].value for row in self._rows_by_kind[None]]

    @cached_property
    def _rows_by_kind(self) -> Mapping[Kind | None, Sequence[int]]:
        """Kind -> rows in order; None for all rows. Cached, because dozens of mutators use it."""
        rows_by_kind: dict[Kind | None, list[int]] = {None: sorted(self.cells)}
        for row in rows_by_kind[None]:
            rows_by_kind.setdefault(kind_of_value(self.cells[row].value), []).append(row)
        return rows_by_kind


def find_groups(
    workbook: Workbook,
    answer: Sequence[CellRange],
    support: Support,
    tables: Sequence[Table],
) -> list[Group]:
    """The constants of an input on which an answer depends, grouped by column.

    Columns that the gold's formulas refer to come first, and shorter columns before longer ones: a
    single cell matters more to an answer than one row of many.

    Raises:
        WorkbookError: a sheet cannot be read.
    """
    groups = _groups(workbook, answer, support, tables)
    if not groups:
        groups = _groups(workbook, (), support, tables)
    keys = [(group, frozenset(group.values())) for group in groups]
    marked = [_with_lookup(group, values, keys) for group, values in keys]
    return sorted(
        marked,
        key=lambda group: (not group.by_formulas, len(group.cells), group.sheet, group.column),
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
            heads |= {(table.sheet, column.number): table.head_row for column in table.columns}
    groups = []
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
                groups.append(group)
    return groups


def _is_below(ref: CellRef, heads: Mapping[tuple[str, int], int], support: Support) -> bool:
    """Whether a cell is below its column's heading, or above it and used by formulas."""
    head = heads.get((ref.sheet, ref.column), 0)
    return ref.row > head or (ref.row < head and support.by_formulas(ref))


MAX_COVERED = 100_000


def _covered(workbook: Workbook, sheet: str) -> set[tuple[int, int]]:
    """Cells that cannot be set alone, because a merged range or an array formula covers them."""
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


def _group(
    sheet: str,
    column: int,
    cells: dict[int, Cell],
    stored: Mapping[tuple[int, int], Cell],
    head: int | None,
    support: Support,
) -> Group | None:
    kinds = [kind_of_value(cell.value) for cell in cells.values()]
    kind = max(set(kinds), key=lambda kind_: (kinds.count(kind_), kind_))
    first = min(cells)
    heading = ""
    if head is not None and (head, column) in stored:
        heading = str(stored[head, column].value)
    elif kind is not Kind.TEXT and len(cells) > 1 and isinstance(cells[first].value, str):
        # Text above values of another kind is their heading, whatever else is in its row.
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
    """Marks a column as looked up if its values are distinct and include most of another's."""
    distinct = len(values) == len(group.cells) and len(values) > 1
    looked_up = distinct and any(
        other is not group
        and other.kind is group.kind
        and other_values
        and 2 * len(other_values & values) > len(other_values)
        for other, other_values in others
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
