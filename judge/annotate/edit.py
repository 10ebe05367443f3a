"""Editing a workbook so that nothing else in it changes.

Parts of the package are changed only if an edit requires it; all others are copied byte for byte,
and within a worksheet only the touched cells are rewritten.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from judge.annotate.dependents import refresh
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
from judge.annotate.rows import row_losses, with_rows_moved
from judge.annotate.structure import date_system, merged, renamed
from judge.errors import UsageError, WorkbookError
from judge.recalc.policy import Recalculator
from judge.workbook.address import MAX_COLUMN, MAX_ROW
from judge.workbook.cell import CellRange, CellRef
from judge.workbook.editing.cells import set_cells
from judge.workbook.editing.parts import copy_package
from judge.workbook.reader import Workbook, open_workbook

__all__ = ["Edited", "apply_edits", "losses", "set_cells"]


@dataclass(frozen=True, slots=True)
class Edited:
    """A workbook after some edits.

    Attributes:
        data: the workbook.
        cells: the cells that were set, by their addresses after all edits.
        computed: formula cells that depend on the edits and have another value now.
        emptied: formula cells that depend on the edits and have no value now.
        notes: lines for people: what was not kept, what could not be computed.
    """

    data: bytes
    cells: tuple[CellRef, ...]
    computed: tuple[CellRef, ...] = ()
    emptied: tuple[CellRef, ...] = ()
    notes: tuple[str, ...] = ()


def losses(data: bytes, edits: Sequence[Edit]) -> tuple[str, ...]:
    """What some edits cannot keep, to report before they are saved; empty if everything is kept.

    Raises:
        WorkbookError: the workbook cannot be read.
    """
    found: list[str] = []
    for edit in edits:
        if isinstance(edit, InsertRows | DeleteRows):
            found += row_losses(open_workbook(data), edit.sheet)
    return tuple(dict.fromkeys(found))


def apply_edits(
    data: bytes, edits: Sequence[Edit], *, recalculator: Recalculator | None = None
) -> Edited:
    """A copy of a workbook with some edits, in their order.

    Args:
        data: the workbook.
        edits: what to change.
        recalculator: computes the formulas that depend on the change; None leaves them without
            a value.

    Raises:
        WorkbookError: the workbook cannot be read, or an edit does not fit it (the message names
            the cell).
        UsageError: an edit makes no sense in any workbook.
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
        changed |= {each.ref for each in waiting}
        waiting = []
        data, changed = _restructure(data, edit, changed)
        everything = True
    data = set_cells(data, waiting)
    changed |= {each.ref for each in waiting}
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
    """The workbook after an edit of its structure, and where the cells set before are now."""
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
            cells = {place for cell in cells if (place := _moved(cell, edit.sheet, edit.row, by))}
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
                        "which both date systems cannot hold"
                    )
                dates.append(SetCell(CellRef(sheet, row, column), cell.value, cell.style))
    data = copy_package(workbook.data, date_system(workbook.package, date_1904=date_1904))
    return set_cells(data, dates)
