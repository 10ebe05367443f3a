"""Edits a workbook so that nothing else in it changes.

Parts of the package are changed only if an edit requires it; all others are copied byte for byte.
Within a worksheet only the edited cells are rewritten. Formulas that depend on a changed cell lose
their stored value, or get the new one.
"""

from __future__ import annotations

import bisect
import datetime as dt
import functools
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from judge.annotate.edits import (
    DeleteRows,
    Edit,
    InsertRows,
    MergeCells,
    RenameSheet,
    SetCell,
    SetDateSystem,
    address,
)
from judge.annotate.rows import date_system, merged, renamed, row_losses, with_rows_moved
from judge.core.submission import Origin
from judge.errors import UsageError, WorkbookError
from judge.formulas.references import Reference, references
from judge.formulas.traits import traits
from judge.recalc.policy import Recalculator
from judge.recalc.rewrite import with_values
from judge.recalc.wanted import FILLED_LIMIT
from judge.workbook.address import MAX_COLUMN, MAX_ROW, folded, parse_window
from judge.workbook.cell import Cell, CellRange, CellRef, CellValue
from judge.workbook.editing.cells import set_cells
from judge.workbook.editing.parts import copy_package
from judge.workbook.reader import Workbook, open_workbook, sheet_formulas

__all__ = ["Edited", "apply_edits", "losses", "set_cells"]


MAX_PASSES = 50


@dataclass(frozen=True, slots=True)
class Refreshed:
    """A workbook whose cached values are up to date again.

    Attributes:
        data: the workbook.
        computed: formula cells whose value was computed again.
        emptied: formula cells that could not be computed and lost their old value.
        notes: lines for people.
    """

    data: bytes
    computed: tuple[CellRef, ...] = ()
    emptied: tuple[CellRef, ...] = ()
    notes: tuple[str, ...] = ()


def refresh(
    data: bytes,
    changed: Collection[CellRef],
    recalculator: Recalculator | None,
    *,
    before: bytes | None = None,
) -> Refreshed:
    """Computes new values for the formulas that depend on changed cells.

    An outdated value must not stay, because programs that read the workbook would take it for the
    current value. A formula that no engine can compute is left without a value, and reported.

    Args:
        data: the workbook after the change.
        changed: the cells that were changed.
        recalculator: computes the values; None removes them instead.
        before: the workbook before the change, with every cell in the same position. If the engine
            computes the same value before and after, the value in the file is kept: it may come
            from a spreadsheet program in another language, or from another day.

    Raises:
        WorkbookError: the workbook cannot be read.
    """
    if not changed:
        return Refreshed(data)
    workbook = open_workbook(data)
    stale = dependents(workbook, changed)
    if not stale:
        return Refreshed(data)
    values: dict[CellRef, CellValue] = dict.fromkeys(stale)
    if recalculator is not None:
        areas = _areas(stale)
        computed = recalculator.fill(workbook, areas, origin=Origin.SOLUTION).values
        values |= {ref: value for ref, value in computed.items() if ref in stale}
        if before is not None:
            for ref, value in _computed_before(before, recalculator).items():
                if ref in stale and ref in computed and _is_same(value, computed[ref]):
                    del values[ref]
    empty = tuple(sorted(ref for ref, value in values.items() if value is None))
    notes: tuple[str, ...] = ()
    if empty:
        line = (
            f"{len(empty)} formulas that depend on the change have no value now, the first in "
            f"{address(empty[0])}: nothing computed them, and their old value is out of date"
        )
        notes = (line,)
    return Refreshed(
        with_values(data, values, date_1904=workbook.facts.date_1904),
        computed=tuple(sorted(ref for ref, value in values.items() if value is not None)),
        emptied=empty,
        notes=notes,
    )


@functools.lru_cache(maxsize=4)
def _computed_before(data: bytes, recalculator: Recalculator) -> Mapping[CellRef, CellValue]:
    """Computes all formula cells with a stored value, which the next edits of it need as well."""
    before = open_workbook(data)
    formulas = _formulas(before)
    filled = {
        filled_ref
        for ref, cell in formulas.items()
        for filled_ref in _filled(ref, cell.array_range)
    }
    areas = _areas(formulas.keys() | filled)
    was = recalculator.fill(before, areas, origin=Origin.SOLUTION).values
    before.preload(areas, blanks=True)
    return {
        ref: was[ref]
        for area in areas
        for (row, column), cell in before.cells(area).items()
        if cell.has_cached_value and (ref := CellRef(area.sheet, row, column)) in was
    }


def _is_same(first: CellValue, second: CellValue) -> bool:
    return type(first) is type(second) and first == second


def dependents(workbook: Workbook, changed: Collection[CellRef]) -> frozenset[CellRef]:
    """Formula cells that depend on changed cells, directly or not; includes changed formula cells.

    For an array formula, all cells that it fills are included.

    A formula also counts as dependent if its text does not show its references (names, tables,
    INDIRECT), or if its value can change although no cell changes.

    Raises:
        WorkbookError: a sheet cannot be read, or array formulas fill more cells than the limit.
    """
    formulas = _formulas(workbook)
    waiting = dict.fromkeys(formulas)
    touched = _Touched(changed)
    refs: set[CellRef] = set()
    names = {folded(name): name for name in workbook.sheet_names}
    rests = functools.cache(references)
    for _ in range(MAX_PASSES):
        fresh = [
            ref
            for ref in waiting
            if ref in touched.cells
            or _is_opaque(formulas[ref].formula or "")
            or any(
                touched.meets(_sheet_of(rest, ref.sheet, names), rest)
                for rest in rests(formulas[ref].formula or "")
            )
        ]
        if not fresh:
            return frozenset(refs)
        for ref in fresh:
            del waiting[ref]
            for filled_ref in {ref, *_filled(ref, formulas[ref].array_range)}:
                refs.add(filled_ref)
                touched.add(filled_ref)
    # A longer chain is not followed: all remaining formulas may depend on the change.
    return frozenset(refs | waiting.keys())


def _formulas(workbook: Workbook) -> dict[CellRef, Cell]:
    """Every formula cell of a workbook.

    Raises:
        WorkbookError: a sheet cannot be read, or array formulas fill more cells than the limit.
    """
    formulas = {
        CellRef(sheet, cell.row, cell.column): cell
        for sheet in workbook.sheet_names
        for cell in sheet_formulas(workbook, sheet)
    }
    areas = (_filled_area(ref, cell.array_range) for ref, cell in formulas.items())
    if sum(area.size for area in areas if area is not None) > FILLED_LIMIT:
        raise WorkbookError(f"the array formulas fill more than {FILLED_LIMIT:,} cells")
    return formulas


def _filled_area(ref: CellRef, array_range: str | None) -> CellRange | None:
    window = parse_window((array_range or "").replace("$", ""))
    if window is None:
        return None
    return CellRange(
        ref.sheet, window.min_row, window.min_column, window.max_row, window.max_column
    )


def _filled(ref: CellRef, array_range: str | None) -> list[CellRef]:
    """The cells that a formula fills in addition to its own."""
    area = _filled_area(ref, array_range)
    if area is None:
        return []
    return [
        CellRef(ref.sheet, row, column)
        for row in range(area.min_row, area.max_row + 1)
        for column in range(area.min_column, area.max_column + 1)
    ]


@functools.cache
def _is_opaque(formula: str) -> bool:
    formula_traits = traits(formula)
    return formula_traits.opaque or bool(formula_traits.volatile)


def _sheet_of(reference: Reference, home: str, names: dict[str, str]) -> str | None:
    return home if reference.sheet is None else names.get(folded(reference.sheet))


class _Touched:
    """Cells by sheet and column, with sorted rows, to find the cells of a rectangle quickly."""

    def __init__(self, cells: Iterable[CellRef]) -> None:
        self.cells: set[CellRef] = set()
        self._rows: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for ref in cells:
            self.add(ref)

    def add(self, ref: CellRef) -> None:
        self.cells.add(ref)
        bisect.insort(self._rows[ref.sheet][ref.column], ref.row)

    def meets(self, sheet: str | None, area: Reference) -> bool:
        columns = self._rows.get(sheet or "", {})
        if area.max_column - area.min_column < len(columns):
            areas = (
                columns[column] for column in range(area.min_column, area.max_column + 1)
                if column in columns
            )  # fmt: skip
        else:
            areas = (
                rows for column, rows in columns.items()
                if area.min_column <= column <= area.max_column
            )  # fmt: skip
        for rows in areas:
            first = bisect.bisect_left(rows, area.min_row)
            if first < len(rows) and rows[first] <= area.max_row:
                return True
        return False


def _areas(cells: Collection[CellRef]) -> list[CellRange]:
    """One-column rectangles that together cover exactly the given cells."""
    areas: list[CellRange] = []
    for ref in sorted(
        cells, key=lambda sheet_ref: (sheet_ref.sheet, sheet_ref.column, sheet_ref.row)
    ):
        last = areas[-1] if areas else None
        if last is not None and (last.sheet, last.min_column, last.max_row + 1) == (
            ref.sheet,
            ref.column,
            ref.row,
        ):
            areas[-1] = CellRange(ref.sheet, last.min_row, ref.column, ref.row, ref.column)
        else:
            areas.append(CellRange(ref.sheet, ref.row, ref.column, ref.row, ref.column))
    return areas


@dataclass(frozen=True, slots=True)
class Edited:
    """A workbook after some edits.

    Attributes:
        data: the workbook.
        cells: the cells that were set, by their addresses after all edits.
        computed: formula cells that depend on the edits and have a new value.
        emptied: formula cells that depend on the edits and have no value any more.
        notes: lines for people: features that were lost, formulas that could not be computed.
    """

    data: bytes
    cells: tuple[CellRef, ...]
    computed: tuple[CellRef, ...] = ()
    emptied: tuple[CellRef, ...] = ()
    notes: tuple[str, ...] = ()


def losses(data: bytes, edits: Sequence[Edit]) -> tuple[str, ...]:
    """Features that would be lost by some edits, to report before saving; empty if all are kept.

    Raises:
        WorkbookError: the workbook cannot be read.
    """
    losses: list[str] = []
    for edit in edits:
        if isinstance(edit, InsertRows | DeleteRows):
            losses += row_losses(open_workbook(data), edit.sheet)
    return tuple(dict.fromkeys(losses))


def apply_edits(
    data: bytes, edits: Sequence[Edit], *, recalculator: Recalculator | None = None
) -> Edited:
    """A copy of a workbook with edits applied in order.

    Args:
        data: the workbook.
        edits: the edits.
        recalculator: computes the formulas that depend on the change; None leaves them without
            a value.

    Raises:
        WorkbookError: the workbook cannot be read, or an edit does not fit it (the message names
            the cell).
        UsageError: an edit is not valid for any workbook.
    """
    notes = list(losses(data, edits))
    original = data
    changed: set[CellRef] = set()
    everything = False
    waiting: list[SetCell] = []
    for edit in edits:
        if isinstance(edit, SetCell):
            waiting.append(edit)
            continue
        data = set_cells(data, waiting)
        changed |= {formula.ref for formula in waiting}
        waiting = []
        data, changed = _restructure(data, edit, changed)
        everything = True
    data = set_cells(data, waiting)
    changed |= {formula.ref for formula in waiting}
    stale = _all_formulas(open_workbook(data)) | changed if everything else changed
    fresh = refresh(data, stale, recalculator, before=None if everything else original)
    return Edited(
        fresh.data,
        cells=tuple(sorted(changed)),
        computed=fresh.computed,
        emptied=fresh.emptied,
        notes=(*notes, *fresh.notes),
    )


def _all_formulas(workbook: Workbook) -> set[CellRef]:
    return {
        CellRef(sheet, cell.row, cell.column)
        for sheet in workbook.sheet_names
        for cell in workbook.formula_cells(CellRange(sheet, 1, 1, MAX_ROW, MAX_COLUMN))
    }


def _restructure(data: bytes, edit: Edit, cells: set[CellRef]) -> tuple[bytes, set[CellRef]]:
    """The workbook after a structural edit, and the new addresses of the cells set before it."""
    workbook = open_workbook(data)
    match edit:
        case RenameSheet():
            data = copy_package(data, renamed(workbook.package, edit.sheet, edit.name))
            names = {edit.sheet: edit.name}
            cells = {
                CellRef(names.get(cell.sheet, cell.sheet), cell.row, cell.column) for cell in cells
            }
        case MergeCells():
            data, emptied = _merge(workbook, edit)
            cells = cells | emptied
        case SetDateSystem():
            data = _set_date_system(workbook, date_1904=edit.date_1904)
        case InsertRows() | DeleteRows():
            if edit.count < 1 or edit.row < 1:
                raise UsageError("rows are counted from 1, and at least one must be given")
            by = edit.count if isinstance(edit, InsertRows) else -edit.count
            data = with_rows_moved(workbook, edit.sheet, edit.row, by)
            cells = {moved for cell in cells if (moved := _moved(cell, edit.sheet, edit.row, by))}
        case SetCell():
            raise AssertionError("cells are set in one go")
    return data, cells


def _moved(ref: CellRef, sheet: str, row: int, by: int) -> CellRef | None:
    if ref.sheet != sheet or ref.row < row:
        return ref
    if by < 0 and ref.row < row - by:
        return None
    return CellRef(sheet, ref.row + by, ref.column)


# -- structure ------------------------------------------------------------------------------------


def _merge(workbook: Workbook, edit: MergeCells) -> tuple[bytes, set[CellRef]]:
    window = edit.window
    for other in workbook.sheet(edit.sheet).tail.merges:
        if not (
            other.max_row < window.min_row
            or other.min_row > window.max_row
            or other.max_column < window.min_column
            or other.min_column > window.max_column
        ):
            raise WorkbookError(f"{window} of {edit.sheet!r} overlaps the merged range {other}")
    area = CellRange(
        edit.sheet, window.min_row, window.min_column, window.max_row, window.max_column
    )
    covered = {
        CellRef(edit.sheet, row, column)
        for (row, column), cell in workbook.cells(area).items()
        if (row, column) != (window.min_row, window.min_column)
        and (cell.value is not None or cell.formula is not None)
    }
    data = set_cells(workbook.data, [SetCell(ref, None) for ref in sorted(covered)])
    part = workbook.sheet(edit.sheet).part
    xml = open_workbook(data).package.read(part)
    return copy_package(data, {part: merged(xml, window)}), covered


def _set_date_system(workbook: Workbook, *, date_1904: bool) -> bytes:
    if workbook.facts.date_1904 == date_1904:
        return workbook.data
    dates: list[SetCell] = []
    for sheet in workbook.sheet_names:
        used = workbook.used_range(sheet)
        for (row, column), cell in workbook.cells(used).items() if used else ():
            if isinstance(cell.value, dt.datetime) and cell.formula is None:
                if cell.value.year < 1904 + date_1904:
                    raise WorkbookError(
                        f"{address(CellRef(sheet, row, column))} holds {cell.value:%Y-%m-%d}, "
                        "which only one of the date systems can hold"
                    )
                dates.append(SetCell(CellRef(sheet, row, column), cell.value, cell.style))
    data = copy_package(workbook.data, date_system(workbook.package, date_1904=date_1904))
    return set_cells(data, dates)
