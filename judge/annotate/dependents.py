"""Which formulas rest on changed cells, and their values after the change."""

from __future__ import annotations

import bisect
import functools
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from judge.annotate.edits import address
from judge.compare.cell import Cell, CellRange, CellRef, CellValue
from judge.compare.reader import Workbook, open_workbook
from judge.recalc.formula import Reference, references, traits
from judge.recalc.policy import Origin, Recalculator
from judge.recalc.rewrite import with_values
from judge.recalc.wanted import sheet_formulas

MOST_PASSES = 50


@dataclass(frozen=True, slots=True)
class Refreshed:
    """A workbook whose cached values are true again.

    Attributes:
        data: the workbook.
        computed: formula cells whose value was computed anew.
        emptied: formula cells that nothing could compute, and whose old value was taken out.
        notes: lines for people.
    """

    data: bytes
    computed: tuple[CellRef, ...] = ()
    emptied: tuple[CellRef, ...] = ()
    notes: tuple[str, ...] = ()


def refresh(
    data: bytes, changed: Collection[CellRef], recalculator: Recalculator | None
) -> Refreshed:
    """Gives the formulas that rest on changed cells their new values.

    A value that was computed before the change must not be left: programs that read the workbook
    would take it for true. What no engine can compute is left without a value, and said.

    Args:
        data: the workbook after the change.
        changed: the cells that were changed.
        recalculator: computes; None takes the values out instead.

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
    notes: tuple[str, ...] = ()
    if recalculator is not None:
        computed = recalculator.fill(workbook, _areas(stale), origin=Origin.SOLUTION)
        values |= {ref: value for ref, value in computed.values.items() if ref in stale}
        notes = computed.notes
    empty = tuple(sorted(ref for ref, value in values.items() if value is None))
    if empty:
        line = (
            f"{len(empty)} formulas that rest on the change have no value now, the first in "
            f"{address(empty[0])}: nothing computed them, and their old value is not true"
        )
        notes = (*notes, line)
    return Refreshed(
        with_values(data, values, date_1904=workbook.facts.date_1904),
        computed=tuple(sorted(ref for ref, value in values.items() if value is not None)),
        emptied=empty,
        notes=notes,
    )


def dependents(workbook: Workbook, changed: Collection[CellRef]) -> frozenset[CellRef]:
    """Formula cells that rest on some cells, near or far, and those among them that hold formulas.

    A formula whose references its text does not show (names, tables, INDIRECT) counts as resting
    on them, and so does one that changes by itself.

    Raises:
        WorkbookError: a sheet cannot be read.
    """
    waiting: dict[CellRef, tuple[CellRef, ...]] = {}
    formulas: dict[CellRef, Cell] = {}
    for sheet in workbook.sheet_names:
        for cell in sheet_formulas(workbook, sheet):
            ref = CellRef(sheet, cell.row, cell.column)
            formulas[ref] = cell
            waiting[ref] = (ref,)
    touched = _Touched(changed)
    found: set[CellRef] = set()
    names = {name.casefold(): name for name in workbook.sheet_names}
    rests = functools.cache(references)
    for _ in range(MOST_PASSES):
        fresh = [
            ref
            for ref in waiting
            if ref in touched.cells
            or _is_opaque(formulas[ref].formula or "")
            or any(
                touched.meets(_sheet_of(each, ref.sheet, names), each)
                for each in rests(formulas[ref].formula or "")
            )
        ]
        if not fresh:
            return frozenset(found)
        for ref in fresh:
            del waiting[ref]
            found.add(ref)
            touched.add(ref, formulas[ref].array_range)
    # A longer chain than that is not followed further: everything left may rest on it.
    return frozenset(found | waiting.keys())


@functools.cache
def _is_opaque(formula: str) -> bool:
    said = traits(formula)
    return said.opaque or bool(said.volatile)


def _sheet_of(reference: Reference, home: str, names: dict[str, str]) -> str | None:
    return home if reference.sheet is None else names.get(reference.sheet.casefold())


class _Touched:
    """Cells by sheet and column, rows sorted, so that a rectangle is looked up quickly."""

    def __init__(self, cells: Iterable[CellRef]) -> None:
        self.cells: set[CellRef] = set()
        self._rows: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for ref in cells:
            self.add(ref, None)

    def add(self, ref: CellRef, filled: str | None) -> None:
        self.cells.add(ref)
        bisect.insort(self._rows[ref.sheet][ref.column], ref.row)
        if filled is not None:
            for each in references(filled):
                for row in range(each.min_row, each.max_row + 1):
                    for column in range(each.min_column, each.max_column + 1):
                        bisect.insort(self._rows[ref.sheet][column], row)

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
