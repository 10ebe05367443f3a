"""Editing a workbook so that nothing else in it changes.

Parts of the package are changed only if an edit requires it; all others are copied byte for byte,
and within a worksheet only the touched cells are rewritten.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.annotate.calc_chain import without_cells
from judge.annotate.cell_styles import (
    DATE_FORMAT,
    DATE_TIME_FORMAT,
    TIME_FORMAT,
    StylesXml,
)
from judge.annotate.dependents import refresh
from judge.annotate.edits import (
    CellContent,
    DeleteRows,
    Edit,
    InsertRows,
    MergeCells,
    RenameSheet,
    SetCell,
    SetDateSystem,
    address,
)
from judge.annotate.parts import copy_package, linked_part, styles_part, without_part
from judge.annotate.rows import row_losses, with_rows_moved
from judge.annotate.sheet_xml import NewContent, SheetXml
from judge.annotate.structure import date_system, merged, renamed, sheet_ids
from judge.errors import UsageError, WorkbookError
from judge.recalc.policy import Recalculator
from judge.recalc.wanted import filling_cells
from judge.workbook.address import MAX_COLUMN, MAX_ROW, Window, parse_window
from judge.workbook.cell import Cell, CellRange, CellRef
from judge.workbook.dates import is_date_format
from judge.workbook.package import relationships, scan_part
from judge.workbook.reader import Workbook, open_workbook


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
                CellRef(names.get(each.sheet, each.sheet), each.row, each.column) for each in cells
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
            cells = {place for each in cells if (place := _moved(each, edit.sheet, edit.row, by))}
        case SetCell():
            raise AssertionError("cells are set in one go")
    return data, cells


def _moved(ref: CellRef, sheet: str, row: int, by: int) -> CellRef | None:
    if ref.sheet != sheet or ref.row < row:
        return ref
    if by < 0 and ref.row < row - by:
        return None
    return CellRef(sheet, ref.row + by, ref.column)


# -- cells --------------------------------------------------------------------------------------


def set_cells(data: bytes, edits: Sequence[SetCell]) -> bytes:
    """A copy of a workbook with some cells set; the values of formulas stay as they were.

    Of several edits of one cell the last counts.

    Raises:
        WorkbookError: a cell cannot be set: no such sheet, covered by a merged range, part of an
            array formula, a table's heading.
    """
    if not edits:
        return data
    workbook = open_workbook(data)
    by_sheet: dict[str, dict[tuple[int, int], SetCell]] = defaultdict(dict)
    for edit in edits:
        by_sheet[edit.ref.sheet][edit.ref.row, edit.ref.column] = edit
    replaced: dict[str, bytes | None] = {}
    styles_name = styles_part(workbook)
    styles = StylesXml(workbook.package.read(styles_name) if styles_name else b"")
    before = styles.xml
    chain_name = linked_part(workbook, "calcChain")
    chain = workbook.package.read(chain_name) if chain_name else None
    ids = sheet_ids(workbook.package)
    for sheet, cells in by_sheet.items():
        part = workbook.sheet(sheet).part
        _check_places(workbook, sheet, cells)
        known = _known_cells(workbook, sheet, cells)
        xml = SheetXml(
            workbook.package.read(part), part, date_1904=workbook.facts.date_1904
        ).with_cells(
            {
                place: NewContent(edit.content, _style(edit, known.get(place), styles))
                for place, edit in cells.items()
            }
        )
        replaced[part] = xml
        gone = [place for place, cell in known.items() if cell.formula is not None]
        if chain is not None and gone:
            chain = without_cells(chain, ids.get(part, ""), gone)
            if chain is None and chain_name is not None:
                replaced |= without_part(workbook.package, chain_name)
            elif chain_name is not None:
                replaced[chain_name] = chain
    if styles_name and styles.xml != before:
        replaced[styles_name] = styles.xml
    return copy_package(data, replaced)


def _known_cells(
    workbook: Workbook, sheet: str, places: Mapping[tuple[int, int], SetCell]
) -> dict[tuple[int, int], Cell]:
    rows = [row for row, _ in places]
    columns = [column for _, column in places]
    area = CellRange(sheet, min(rows), min(columns), max(rows), max(columns))
    stored = workbook.cells(area)
    return {place: stored[place] for place in places if place in stored}


def _style(edit: SetCell, known: Cell | None, styles: StylesXml) -> int | None:
    """The cell format that an edit needs; None if the cell's own will do."""
    style = edit.style
    base = style if style is not None else known.style if known is not None else 0
    shows_dates = known is not None and style is None and is_date_format(known.number_format)
    wanted = _date_format(edit.content)
    if wanted is not None and not shows_dates and style is None:
        style = base = styles.with_number_format(base, wanted)
    if edit.fill is not None:
        style = styles.with_fill(base, edit.fill)
    return style


def _date_format(content: CellContent) -> int | None:
    if isinstance(content, dt.datetime):
        return DATE_FORMAT if content.time() == dt.time() else DATE_TIME_FORMAT
    if isinstance(content, dt.date):
        return DATE_FORMAT
    return TIME_FORMAT if isinstance(content, dt.time | dt.timedelta) else None


def _check_places(workbook: Workbook, sheet: str, cells: Mapping[tuple[int, int], SetCell]) -> None:
    target = workbook.sheet(sheet)
    for merge in target.tail.merges:
        for row, column in cells:
            first = (merge.min_row, merge.min_column)
            if merge.holds(row, column) and (row, column) != first:
                if cells[row, column].content is None:
                    continue
                raise WorkbookError(
                    f"{address(CellRef(sheet, row, column))} is covered by the merged range "
                    f"{merge}, and shows nothing",
                    hint=f"Set {address(CellRef(sheet, *first))} instead.",
                )
    for source in filling_cells(workbook, sheet):
        filled = parse_window((source.array_range or "").replace("$", ""))
        if filled is None:
            continue
        inside = [place for place in cells if filled.holds(*place)]
        size = (filled.max_row - filled.min_row + 1) * (filled.max_column - filled.min_column + 1)
        if inside and len(inside) < size:
            raise WorkbookError(
                f"{address(CellRef(sheet, *inside[0]))} is part of the array formula of {filled}, "
                "which can only be changed as a whole",
                hint=f"Set every cell of {filled}, or leave them alone.",
            )
    for heading in _table_headings(workbook, target.part):
        for row, column in cells:
            if heading.holds(row, column):
                raise WorkbookError(
                    f"{address(CellRef(sheet, row, column))} is a heading of a table; Excel would "
                    "call the file damaged",
                    hint="Change headings of tables in a spreadsheet program.",
                )


def _table_headings(workbook: Workbook, part: str) -> list[Window]:
    found: list[Window] = []

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        area = parse_window(attributes.get("ref", "")) if tag == "table" else None
        if area is not None and attributes.get("headerRowCount", "1") != "0":
            found.append(Window(area.min_row, area.min_column, area.min_row, area.max_column))

    for link in relationships(workbook.package, part).values():
        if link.kind == "table" and link.target in workbook.package:
            scan_part(workbook.package, link.target, on_start)
    return found


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
