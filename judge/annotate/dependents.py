"""Which formulas depend on changed cells, and their values after the change."""

from __future__ import annotations

import bisect
import functools
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from judge.annotate.edits import address
from judge.core.answer import Origin
from judge.errors import WorkbookError
from judge.formulas.references import Reference, references
from judge.formulas.traits import traits
from judge.recalc.policy import Recalculator
from judge.recalc.rewrite import with_values
from judge.recalc.wanted import FILLED_LIMIT
from judge.workbook.address import folded, parse_window
from judge.workbook.cell import Cell, CellRange, CellRef, CellValue
from judge.workbook.formula_cells import sheet_formulas
from judge.workbook.reader import Workbook, open_workbook

MAX_PASSES = 50


@dataclass(frozen=True, slots=True)
class Refreshed:
    """A workbook whose cached values are true again.

    Attributes:
        data: the workbook.
        computed: formula cells whose value was computed again.
        emptied: formula cells that could not be computed, and whose old value was removed.
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
    """Gives the formulas that depend on changed cells their new values.

    A value that was computed before the change must not be left: programs that read the workbook
    would take it as current. What no engine can compute is left without a value, and reported.

    Args:
        data: the workbook after the change.
        changed: the cells that were changed.
        recalculator: computes; None removes the values instead.
        before: the workbook before the change, with every cell in the same place. Where the engine
            computes the same before and after, the value in the file stays: it may come from a
            spreadsheet program of another language, or of another day.

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
            for ref in _unmoved(open_workbook(before), computed, recalculator) & stale:
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


def _unmoved(
    before: Workbook, now: Mapping[CellRef, CellValue], recalculator: Recalculator
) -> frozenset[CellRef]:
    """Formula cells that the engine gives the same value as before, and that have one stored."""
    # All formulas are requested, whatever is stale: the next edit of the same workbook requests
    # them again, and finds the answer in the cache.
    formulas = _formulas(before)
    filled = {each for ref, cell in formulas.items() for each in _filled(ref, cell.array_range)}
    areas = _areas(formulas.keys() | filled)
    was = recalculator.fill(before, areas, origin=Origin.SOLUTION).values
    before.preload(areas, blanks=True)
    stored = {
        CellRef(area.sheet, row, column)
        for area in areas
        for (row, column), cell in before.cells(area).items()
        if cell.has_cached_value
    }
    same = {ref for ref in was if ref in now and _is_same(was[ref], now[ref])}
    return frozenset(same & stored)


def _is_same(first: CellValue, second: CellValue) -> bool:
    return type(first) is type(second) and first == second


def dependents(workbook: Workbook, changed: Collection[CellRef]) -> frozenset[CellRef]:
    """Formula cells that depend on some cells, near or far, and those of these with formulas.

    An array formula brings all cells that it fills.

    A formula whose references its text does not show (names, tables, INDIRECT) counts as depending
    on them, and so does one that changes by itself.

    Raises:
        WorkbookError: a sheet cannot be read, or array formulas fill more than is ever looked at.
    """
    formulas = _formulas(workbook)
    waiting = dict.fromkeys(formulas)
    touched = _Touched(changed)
    found: set[CellRef] = set()
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
            return frozenset(found)
        for ref in fresh:
            del waiting[ref]
            for each in {ref, *_filled(ref, formulas[ref].array_range)}:
                found.add(each)
                touched.add(each)
    # A longer chain than that is not followed further: everything left may depend on it.
    return frozenset(found | waiting.keys())


def _formulas(workbook: Workbook) -> dict[CellRef, Cell]:
    """Every formula cell of a workbook.

    Raises:
        WorkbookError: a sheet cannot be read, or array formulas fill more than is ever looked at.
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
    said = traits(formula)
    return said.opaque or bool(said.volatile)


def _sheet_of(reference: Reference, home: str, names: dict[str, str]) -> str | None:
    return home if reference.sheet is None else names.get(folded(reference.sheet))


class _Touched:
    """Cells by sheet and column, rows sorted, so that a rectangle is looked up quickly."""

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
            wanted = (
                columns[each] for each in range(area.min_column, area.max_column + 1)
                if each in columns
            )  # fmt: skip
        else:
            wanted = (
                rows for column, rows in columns.items()
                if area.min_column <= column <= area.max_column
            )  # fmt: skip
        for rows in wanted:
            first = bisect.bisect_left(rows, area.min_row)
            if first < len(rows) and rows[first] <= area.max_row:
                return True
        return False


def _areas(cells: Collection[CellRef]) -> list[CellRange]:
    """Rectangles of one column each that hold exactly some cells."""
    areas: list[CellRange] = []
    for ref in sorted(cells, key=lambda each: (each.sheet, each.column, each.row)):
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
