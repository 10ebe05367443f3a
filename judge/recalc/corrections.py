"""Corrects values that engines gave, and computes the cells that read a corrected one. Pure."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

from judge.errors import WorkbookError
from judge.recalc.agreement import Overruled, same_value
from judge.recalc.functions.contents import Contents, plain_scalar
from judge.recalc.functions.conversions import UnsureError
from judge.recalc.functions.own import OwnValues, converted_values
from judge.recalc.names import JUDGE
from judge.workbook.cell import Cell, CellRef, CellValue
from judge.workbook.dependency import Followed, FormulaIndex, Walk


def corrected_values(
    contents: Contents,
    cells: Mapping[CellRef, Cell],
    taken: Mapping[CellRef, CellValue],
    walk: Walk | None,
    *,
    suspects: Callable[[CellRef], bool],
    rounded: AbstractSet[CellRef],
) -> tuple[dict[CellRef, CellValue], frozenset[CellRef]]:
    """Finds the cells for which a wrong value was taken, and computes the right one.

    Cells that read such a cell are computed here as well, whatever their formula is.

    Args:
        contents: the workbook.
        cells: formula cells.
        taken: formula cell -> the value that is already known, such as an engine's.
        walk: all formula cells that these depend on; None if they are not known.
        suspects: whether cells are tried even if none of their functions converts anything.
        rounded: cells of which only the last digits are in doubt.

    Returns:
        Cell -> the right value, and the cells that read one of these but cannot be computed here.
    """
    own = OwnValues(contents, taken)
    tried = converted_values(own, cells, suspects)
    corrected = {ref: value for ref, value in tried.items() if _is_other(taken.get(ref), value)}
    if contents.budget.is_spent:
        own = OwnValues(contents, taken)
    for ref in sorted(cells.keys() - taken.keys() - corrected.keys()):
        with contextlib.suppress(UnsureError, WorkbookError):
            corrected[ref] = own.any_value(ref, cells[ref])
    for ref in sorted(rounded - corrected.keys()):
        with contextlib.suppress(UnsureError, WorkbookError):
            exact = own.any_value(ref, cells[ref])
            if same_value(taken[ref], exact) and _is_other(taken[ref], exact):
                corrected[ref] = exact
    if not corrected or walk is None:
        return corrected, frozenset()
    corrections = _Corrections(OwnValues(contents, taken), taken)
    for ref, value in corrected.items():
        corrections.add(ref, value)
    for step in walk.steps:
        if step.ref not in corrected:
            corrections.follow(step, walk.index, cells.get(step.ref))
    return corrections.values, frozenset(corrections.stale)


_DIGITS = "digits"
"""Replaces an engine's name if a cell's value was wrong only in its last digits."""


class _Corrections:
    """Corrects cells, and the cells that read them.

    Args:
        own: computes cells here.
        taken: formula cell -> the value that is already known, such as an engine's.

    Attributes:
        values: corrected cell -> its value.
        stale: cells that read a corrected cell but cannot be computed here.
    """

    def __init__(self, own: OwnValues, taken: Mapping[CellRef, CellValue]) -> None:
        self._own = own
        self._taken = taken
        self._changed = Overruled()
        self.values: dict[CellRef, CellValue] = {}
        self.stale: set[CellRef] = set()

    def add(self, ref: CellRef, value: CellValue) -> None:
        """Records the corrected value of a cell."""
        self.values[ref] = value
        self._own.correct(ref, plain_scalar(value))
        before = self._taken.get(ref)
        only_digits = before is not None and same_value(before, value)
        self._changed.add(_DIGITS if only_digits else JUDGE, ref)

    def follow(self, step: Followed, index: FormulaIndex, cell: Cell | None) -> None:
        """Computes a cell if it reads a corrected cell.

        Args:
            step: the cell; the cells that it reads were followed before.
            index: the formulas of the workbook.
            cell: its content in the file; None if its value is not needed.
        """
        how = self._changed.reading(step.ref.sheet, step.reads, index.named)
        if how and cell is None:
            for kind in how:
                self._changed.add(kind, step.ref)
        elif how and cell is not None:
            try:
                value = self._own.any_value(step.ref, cell)
            except (UnsureError, WorkbookError):
                if JUDGE in how:
                    self.stale.add(step.ref)
                    self._changed.add(JUDGE, step.ref)
                return
            if _is_other(self._taken.get(step.ref), value):
                self.add(step.ref, value)


def _is_other(before: CellValue, value: CellValue) -> bool:
    """Whether two values differ, even if only in a last digit because of rounding errors."""
    if isinstance(before, float) and isinstance(value, float):
        return before != value
    return before is None or not same_value(before, value)
