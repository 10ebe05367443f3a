"""Which formulas a set of cells rests on, near and far."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from judge.compare.cell import Cell, CellRef
from judge.errors import WorkbookError
from judge.recalc.formula import FormulaTraits, Reference, references, traits

FOLLOWED_LIMIT = 50_000
"""Most formulas that are followed one by one; past it every formula of the workbook counts."""


@dataclass(frozen=True, slots=True)
class Footing:
    """What some formula cells rest on, themselves included.

    Attributes:
        traits: what each formula that is reached says, each kind once.
        array_formulas: whether an array formula is among them.
        complete: whether every formula that can be reached is known; False where a formula reaches
            cells that its text does not show. Then every formula of the workbook is counted.
        cells: how many formula cells were reached.
    """

    traits: tuple[FormulaTraits, ...]
    array_formulas: bool
    complete: bool
    cells: int

    @property
    def functions(self) -> frozenset[str]:
        """Every function that is called."""
        return frozenset().union(*(each.functions for each in self.traits))

    @property
    def volatile(self) -> frozenset[str]:
        """Every function whose value changes by itself."""
        return frozenset().union(*(each.volatile for each in self.traits))

    @property
    def unprefixed(self) -> frozenset[str]:
        """Every newer function that is called without its prefix."""
        return frozenset().union(*(each.unprefixed for each in self.traits))

    @property
    def unknown(self) -> frozenset[str]:
        """Every function that Excel does not know."""
        return frozenset().union(*(each.unknown for each in self.traits))

    @property
    def array_sensitive(self) -> bool:
        """Whether a formula depends on being entered as an array formula or not."""
        return self.array_formulas or any(each.array_sensitive for each in self.traits)

    @property
    def names(self) -> frozenset[str]:
        """Every defined name or table that is used."""
        return frozenset().union(*(each.names for each in self.traits))

    @property
    def broken(self) -> bool:
        """Whether a formula refers to what is no longer there."""
        return any(each.broken for each in self.traits)

    @property
    def opaque(self) -> bool:
        """Whether a formula uses names, tables, or references made from text."""
        return any(each.opaque for each in self.traits)


class FormulaIndex:
    """The formula cells of a workbook, found by rectangle.

    Args:
        sheets: names of the sheets, as they really are.
        load: gives the formula cells of a whole sheet; called once for each sheet reached.
    """

    def __init__(self, sheets: Iterable[str], load: Callable[[str], Iterable[Cell]]) -> None:
        self._names = {name.casefold(): name for name in sheets}
        self._load = load
        self._sheets: dict[str, Mapping[int, tuple[list[int], list[Cell]]]] = {}

    @property
    def sheets(self) -> tuple[str, ...]:
        """Real names of the sheets."""
        return tuple(self._names.values())

    def sheet(self, name: str) -> Mapping[int, tuple[list[int], list[Cell]]]:
        """Column -> sorted rows and their cells."""
        if name not in self._sheets:
            columns: dict[int, tuple[list[int], list[Cell]]] = defaultdict(lambda: ([], []))
            ordered = sorted(self._load(name), key=lambda cell: cell.row)
            for cell in ordered:
                rows, cells = columns[cell.column]
                rows.append(cell.row)
                cells.append(cell)
            self._sheets[name] = columns
        return self._sheets[name]

    def within(self, reference: Reference, home: str) -> Iterable[tuple[str, Cell]]:
        """The formula cells of a rectangle, with their sheet."""
        name = home
        if reference.sheet is not None:
            found = self._names.get(reference.sheet.casefold())
            if found is None:
                return
            name = found
        for column, (rows, cells) in self.sheet(name).items():
            if reference.min_column <= column <= reference.max_column:
                first = bisect.bisect_left(rows, reference.min_row)
                last = bisect.bisect_right(rows, reference.max_row)
                for cell in cells[first:last]:
                    yield name, cell

    def every(self) -> Iterable[Cell]:
        """Every formula cell of the workbook."""
        for name in self.sheets:
            for _, cells in self.sheet(name).values():
                yield from cells


def footing(cells: Iterable[tuple[str, Cell]], index: FormulaIndex) -> Footing:
    """What formula cells rest on.

    Args:
        cells: the formula cells asked for, with their sheet.
        index: the workbook's formulas.
    """
    found: dict[str, FormulaTraits] = {}
    seen: set[CellRef] = set()
    asked: set[tuple[str, Reference]] = set()
    arrays = False
    waiting = list(cells)
    while waiting:
        sheet, cell = waiting.pop()
        ref = CellRef(sheet, cell.row, cell.column)
        if ref in seen or cell.formula is None:
            continue
        seen.add(ref)
        arrays = arrays or cell.array_range is not None
        said = found.setdefault(cell.formula, traits(cell.formula))
        if said.opaque or len(seen) > FOLLOWED_LIMIT:
            return _everything(index)
        for reference in references(cell.formula):
            key = (sheet, reference)
            if key not in asked:
                asked.add(key)
                waiting.extend(index.within(reference, sheet))
    return Footing(tuple(set(found.values())), arrays, complete=True, cells=len(seen))


def footing_or_doubt(cells: Sequence[tuple[str, Cell]], index: FormulaIndex) -> Footing:
    """What formula cells rest on; where a sheet cannot be read, that they may rest on anything."""
    try:
        return footing(cells, index)
    except WorkbookError:
        found = {traits(cell.formula or "") for _, cell in cells}
        return Footing(tuple(found), array_formulas=True, complete=False, cells=len(cells))


def _everything(index: FormulaIndex) -> Footing:
    found: set[FormulaTraits] = set()
    arrays = False
    count = 0
    for cell in index.every():
        count += 1
        arrays = arrays or cell.array_range is not None
        if cell.formula is not None:
            found.add(traits(cell.formula))
    return Footing(tuple(found), arrays, complete=False, cells=count)
