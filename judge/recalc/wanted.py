"""Finds the cells of some ranges that have to be computed, and types their computed values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from judge.core.submission import Origin
from judge.errors import WorkbookError
from judge.formulas.lexer import MAX_FORMULA_LENGTH, is_too_long
from judge.formulas.references import with_form
from judge.formulas.traits import traits
from judge.recalc.names import Mode
from judge.workbook.address import Window, cell_key, parse_window
from judge.workbook.cell import Cell, CellRange, CellRef, CellValue, ErrorValue, WorkbookFacts
from judge.workbook.cell_values import written_controls
from judge.workbook.number_formats import from_serial, is_date_format, is_elapsed_format
from judge.workbook.reader import Workbook, filling_cells
from judge.workbook.sheets.sheet import DATA_TABLE, UNCOMPUTED_TABLE
from judge.workbook.xml_parts import linked_parts, whole_number

if TYPE_CHECKING:
    from judge.workbook.dependency import Dependencies, FormulaIndex


class WantedCell(NamedTuple):
    """A cell whose value comes from a formula.

    Attributes:
        ref: its position.
        source: the cell with the formula: itself, or the first cell of an array formula's range.
        has_cached_value: whether the file contains a value for the cell.
        number_format: code of the cell's own number format.
    """

    ref: CellRef
    source: Cell
    has_cached_value: bool
    number_format: str

    @property
    def is_alone(self) -> bool:
        """Whether the cell has its own formula, which fills no other cell."""
        source = self.source
        return source.array_range is None and (source.row, source.column) == self.ref[1:]


class ChosenCells(NamedTuple):
    """The formula cells of some ranges that are to be computed.

    Attributes:
        cells: the cells.
        refused: cell that has no value and cannot be computed -> the reason.
        notes: what a person should know about the choice.
    """

    cells: Sequence[WantedCell]
    refused: Mapping[CellRef, str]
    notes: Sequence[str]


def wanted_cells(
    workbook: Workbook, ranges: Sequence[CellRange]
) -> tuple[list[WantedCell], list[str]]:
    """Every formula cell of some ranges, and every cell there that an array formula fills.

    Returns:
        The cells, and notes on what could not be searched: a sheet may be readable within the
        ranges but too large, or broken, beyond them.

    Raises:
        WorkbookError: the ranges cannot be read.
    """
    by_ref: dict[CellRef, WantedCell] = {}
    for area in ranges:
        for cell in workbook.formula_cells(area):
            ref = CellRef(area.sheet, cell.row, cell.column)
            by_ref[ref] = WantedCell(ref, cell, cell.has_cached_value, cell.number_format)
    notes = []
    for sheet in dict.fromkeys(area.sheet for area in ranges):
        areas = [area for area in ranges if area.sheet == sheet]
        try:
            sources = filling_cells(workbook, sheet)
            for filled in _filled(workbook, areas, sources):
                own = by_ref.get(filled.ref)
                if own is None or _is_filled(own.source, filled.source):
                    by_ref[filled.ref] = filled
        except WorkbookError as error:
            notes.append(f"cells filled by array formulas were not searched for: {error.message}")
    return list(by_ref.values()), notes


def _is_filled(own: Cell, source: Cell) -> bool:
    """Whether a formula that fills a range takes precedence over the cell's own formula."""
    return own.formula == "=" or source.formula in {DATA_TABLE, UNCOMPUTED_TABLE}


def uncomputed_cells(cells: Iterable[WantedCell]) -> dict[CellRef, str]:
    """Cell whose formula contains nothing that can be computed -> the reason.

    LibreOffice shows the stored value there, whatever it is.
    """
    why = {
        "=": "its formula has no text",
        UNCOMPUTED_TABLE: "no engine computes it: it is in a data table that does not name the "
        "cells that its inputs replace, or beyond the first two rows or columns of one with one "
        "input",
    }
    formulas = ((cell.ref, cell.source.formula or "=") for cell in cells)
    return {ref: why[formula] for ref, formula in formulas if formula in why}


FILLED_LIMIT = 250_000
"""Largest number of cells that array formulas may fill; each takes half a kilobyte and some
microseconds."""


def refreshed_cells(workbook: Workbook, ranges: Sequence[CellRange]) -> dict[CellRef, str]:
    """Cell of some ranges whose value Excel replaces when it opens the file -> the reason.

    Raises:
        WorkbookError: a pivot table cannot be read, or has too many cells.
    """
    replaced: dict[CellRef, str] = {}
    with workbook.package.blamed():
        for sheet in dict.fromkeys(area.sheet for area in ranges):
            part = workbook.sheet(sheet).part
            if not linked_parts(workbook.package, part, "pivotTable"):
                continue
            from judge.workbook.facts.pivots import refreshed_windows  # noqa: PLC0415  seldom

            for window in refreshed_windows(workbook.package, part):
                why = (
                    f"it is in a pivot table ({window}) that Excel computes as it opens the file "
                    "(refreshOnLoad), whatever the file stores"
                )
                parts = (_overlap(area, window) for area in ranges if area.sheet == sheet)
                for overlap in filter(None, parts):
                    if overlap.size > FILLED_LIMIT:
                        raise WorkbookError(
                            f"a pivot table of {sheet!r} fills more than {FILLED_LIMIT:,} cells of "
                            "the range"
                        )
                    for row in range(overlap.min_row, overlap.max_row + 1):
                        for column in range(overlap.min_column, overlap.max_column + 1):
                            replaced[CellRef(sheet, row, column)] = why
    return replaced


def _filled(
    workbook: Workbook, areas: Sequence[CellRange], sources: Sequence[Cell]
) -> Iterable[WantedCell]:
    overlaps = []
    for source in sources:
        window = parse_window((source.array_range or "").replace("$", ""))
        if window is not None:
            parts = ((area, _overlap(area, window)) for area in areas)
            overlaps += [(source, area, part) for area, part in parts if part is not None]
    if sum(part.size for _, _, part in overlaps) > FILLED_LIMIT:
        raise WorkbookError(
            f"the array formulas of {areas[0].sheet!r} fill more than {FILLED_LIMIT:,} cells of "
            "the range"
        )
    if not overlaps:
        return
    # Read all areas at once: each separate read would go through the sheet again.
    needed = list(dict.fromkeys(area for _, area, _ in overlaps))
    workbook.preload(needed, blanks=True)
    sheet = workbook.sheet(areas[0].sheet)
    stored = {area: (sheet.values(area.window), sheet.styles(area.window)) for area in needed}
    for source, area, part in overlaps:
        values, styles = stored[area]
        beyond = source._replace(formula=UNCOMPUTED_TABLE)
        computed = _computed_window(workbook, part.sheet, source)
        for row in range(part.min_row, part.max_row + 1):
            for column in range(part.min_column, part.max_column + 1):
                key = cell_key(row, column)
                yield WantedCell(
                    CellRef(part.sheet, row, column),
                    source if computed is None or computed.holds(row, column) else beyond,
                    has_cached_value=values.get(key) is not None,
                    number_format=workbook.number_formats.code(styles.get(key, 0)),
                )


def _computed_window(workbook: Workbook, sheet: str, source: Cell) -> Window | None:
    """The cells of a data table that LibreOffice computes; None if it computes all of them."""
    if source.formula != DATA_TABLE:
        return None
    raw = workbook.sheet(sheet).raw_formula(cell_key(source.row, source.column))
    return None if raw is None else raw.computed_window


def _overlap(area: CellRange, window: Window) -> CellRange | None:
    overlap = CellRange(
        area.sheet,
        max(area.min_row, window.min_row),
        max(area.min_column, window.min_column),
        min(area.max_row, window.max_row),
        min(area.max_column, window.max_column),
    )
    empty = overlap.min_row > overlap.max_row or overlap.min_column > overlap.max_column
    return None if empty else overlap


def _logical(value: CellValue, formula: str) -> CellValue:
    """Turns 1 and 0 into TRUE and FALSE if the formula can only give a logical value."""
    if not isinstance(value, bool) and value in (0, 1) and traits(formula).logical:
        return bool(value)
    return value


def finished(value: CellValue, cell: WantedCell, *, date_1904: bool) -> CellValue:
    """Converts a value of the engines to what the reader would return for the cell."""
    logical = _logical(value, cell.source.formula or "")
    return reader_value(logical, cell.number_format, date_1904=date_1904)


def reader_value(value: CellValue, number_format: str, *, date_1904: bool) -> CellValue:
    """Converts a computed value to what the reader would return if it were in the file."""
    if isinstance(value, str):
        return written_controls(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    if not is_date_format(number_format):
        return value
    try:
        return from_serial(value, date_1904=date_1904, elapsed=is_elapsed_format(number_format))
    except (OverflowError, ValueError):
        return ErrorValue("#VALUE!")


OLDEST_EXCEL = 9
"""Major version of Excel 2000; a writer that claims to be an older Excel is a library."""


CALCULATING = ("libreoffice", "openoffice", "collabora", "wps", "gnumeric", "numbers", "google")
"""Other programs that calculate, by the names that they write into files."""


def calculates(facts: WorkbookFacts) -> bool:
    """Whether the workbook was last written by a program that calculates, according to the file.

    openpyxl claims to be Excel with its own version (3.x), and XlsxWriter to be Excel 12 with
    placeholders for values and a request to calculate on load.
    """
    application = facts.application or ""
    if facts.full_calc_on_load:
        return False
    if "excel" in application.casefold():
        major = whole_number((facts.app_version or "").split(".")[0])
        return major is None or major >= OLDEST_EXCEL
    return any(name in application.casefold() for name in CALCULATING)


def untrusted_cells(
    workbook: Workbook, ranges: Sequence[CellRange], mode: Mode, origin: Origin
) -> tuple[list[WantedCell], list[str]]:
    """The formula cells in some ranges that have no stored value, or one that is not trusted.

    Args:
        workbook: an open workbook.
        ranges: rectangles on its sheets, with the sheets' real names.
        mode: when to compute.
        origin: where the workbook comes from.

    Returns:
        The cells, and notes on what could not be searched.

    Raises:
        WorkbookError: the ranges cannot be read, or it cannot be determined which cells of a
            submission are filled by formulas.
    """
    if mode == "never":
        return [], []
    formula_cells, unseen = wanted_cells(workbook, ranges)
    if unseen and origin is Origin.SOLUTION:
        with workbook.package.blamed():
            raise WorkbookError(unseen[0])
    trusted = mode != "always" and origin is not Origin.SOLUTION and calculates(workbook.facts)
    return [cell for cell in formula_cells if not (trusted and cell.has_cached_value)], unseen


def replaced_cells(
    workbook: Workbook, ranges: Sequence[CellRange], mode: Mode, origin: Origin
) -> dict[CellRef, str]:
    """Cell of a submission whose stored value Excel replaces when it opens the file -> why.

    Raises:
        WorkbookError: it cannot be determined which cells these are.
    """
    if mode == "never" or origin is not Origin.SOLUTION:
        return {}
    return refreshed_cells(workbook, ranges)


MAX_BELOW = 20_000
"""Largest number of precedents of the requested cells that the engines are asked about as well. An
engine that is overruled in one of these does not count in the cells that read it."""


def precedents(rests_on: Dependencies, index: FormulaIndex) -> dict[CellRef, Cell]:
    """The formula cells on which the requested cells depend; none if there are too many."""
    steps = rests_on.walk.steps if rests_on.walk is not None else ()
    if len(steps) > MAX_BELOW:
        return {}
    pairs = ((step.ref, index.cell(step.ref)) for step in steps)
    return {
        ref: cell
        for ref, cell in pairs
        if cell is not None and cell.formula is not None and not is_too_long(cell.formula)
    }


def fills_cells(source: Cell) -> bool:
    """Whether a cell's formula is an array formula or a data table."""
    return source.array_range is not None or source.formula in ("", "=")


def intersecting_cells(cells: Mapping[CellRef, Cell]) -> frozenset[CellRef]:
    """The cells with a plain formula that would give several values if it were an array formula."""
    return frozenset(
        ref
        for ref, source in cells.items()
        if source.array_range is None and with_form(source.formula or "")[0].traits.array_sensitive
    )


def too_long_formulas(cells: Sequence[WantedCell]) -> dict[CellRef, str]:
    """Cell whose formula is too long for any spreadsheet program -> the reason."""
    return {
        cell.ref: f"its formula has {len(formula):,} characters; "
        f"spreadsheet programs accept at most {MAX_FORMULA_LENGTH:,}"
        for cell in cells
        if len(formula := cell.source.formula or "") > MAX_FORMULA_LENGTH and is_too_long(formula)
    }
