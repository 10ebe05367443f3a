"""Shared formulas of a worksheet: written out in one cell, the master, and used in others.

A program may write a formula once and let other cells refer to it by an index. The formula of a
cell is taken from the cells that were read, whatever window they were read with; only if its master
is not among them, the whole worksheet is searched, once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from judge.errors import WorkbookError
from judge.formulas.shift import shift_formula
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, cell_name
from judge.workbook.sheets.raw_formula import RawFormula

Formulas = Mapping[int, RawFormula]
"""Formulas by the key of their cell, in the order of the file."""


@dataclass(frozen=True, slots=True)
class _Master:
    """A cell that writes a shared formula out.

    Attributes:
        key: the cell.
        text: the formula without its leading ``=``.
    """

    key: int
    text: str


class SharedFormulas:
    """The formulas of the cells of one worksheet that share them.

    Every index has one master, which comes before the cells that use it and is in the range that it
    names; scanning a worksheet makes sure of that, as far as masters are concerned
    (:meth:`~judge.workbook.sheets.sheet_cells.CellCollector.note_master`). Programs differ in what
    they read of anything else.

    Args:
        read_all: gives all formulas of the worksheet that others may share, including those under
            merged ranges.
        count: called with the number of characters before they are written out; it raises if they
            are too many.

    Source: ECMA-376 part 1, 18.3.1.40.
    """

    def __init__(self, read_all: Callable[[], Formulas], count: Callable[[int], None]) -> None:
        self._read_all = read_all
        self._count = count
        self._unseen: list[Formulas] = []
        self._masters: dict[str, _Master] = {}
        self._complete = False

    def add(self, formulas: Formulas) -> None:
        """Takes note of formulas that were read; they are not parsed before they are needed."""
        if formulas and not self._complete:
            self._unseen.append(formulas)

    def written_out(self, key: int, index: str) -> str:
        """The formula of a cell that shares one, without its leading ``=``.

        Args:
            key: the cell.
            index: the index of its shared formula.

        Raises:
            WorkbookError: no cell before it writes it out, or it is broken or over a limit.
        """
        while self._unseen:
            self._note(self._unseen.pop())
        if index not in self._masters and not self._complete:
            self._note(self._read_all())
            self._complete = True
        master = self._masters.get(index)
        if master is None or master.key > key:
            cell = cell_name(key >> COLUMN_BITS, key & COLUMN_MASK)
            raise WorkbookError(f"no cell before {cell} has the shared formula {index[:20]!r}")
        self._count(len(master.text))
        rows = (key >> COLUMN_BITS) - (master.key >> COLUMN_BITS)
        columns = (key & COLUMN_MASK) - (master.key & COLUMN_MASK)
        return shift_formula(master.text, rows, columns)

    def _note(self, formulas: Formulas) -> None:
        for key, raw in formulas.items():
            if raw.kind == "shared" and raw.text and raw.shared is not None:
                self._masters.setdefault(raw.shared, _Master(key, raw.text))
