"""Shared formulas of a worksheet: written out in one cell, the master, and used in others.

A program may write a formula once and let other cells refer to it by an index. The formula of a
cell is taken from the cells that were read, whatever window they were read with; only if their
masters do not settle it, the whole worksheet is searched, once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from judge.errors import WorkbookError
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, Window, parse_window
from judge.workbook.formula_shift import shift_formula
from judge.workbook.sheets.raw_formula import RawFormula

Formulas = Mapping[int, RawFormula]
"""Formulas by the key of their cell, in the order of the file."""

_MOST_MASTERS = 64
"""Most masters of one index that are checked: programs write one, hostile files have thousands."""


@dataclass(frozen=True, slots=True)
class _Master:
    """A cell that writes a shared formula out.

    Attributes:
        key: the cell.
        text: the formula without its leading ``=``.
        window: the cells to which it says it applies; None if it does not say.
    """

    key: int
    text: str
    window: Window | None


class SharedFormulas:
    """The formulas of the cells of one worksheet that share them.

    A cell belongs to the master of its index whose range it is in. If there is no such master, the
    first cell of that index that has a formula is its master; text in the cell itself is ignored.

    Args:
        read_all: gives all formulas of the worksheet that others may share, including those under
            merged ranges.
        count: called with the number of characters before they are written out; it raises if they
            are too many.

    Source: ECMA-376 part 1, 18.3.1.40 (the formula of a cell that is not the master shall be
    ignored), and openpyxl, which knows only the first master of each index.
    """

    def __init__(self, read_all: Callable[[], Formulas], count: Callable[[int], None]) -> None:
        self._read_all = read_all
        self._count = count
        self._unseen: list[Formulas] = []
        self._masters: dict[str, dict[int, _Master]] = {}
        self._first: dict[str, _Master] | None = None

    def add(self, formulas: Formulas) -> None:
        """Takes note of formulas that were read; they are not parsed before they are needed."""
        if formulas and self._first is None:
            self._unseen.append(formulas)

    def written_out(self, key: int, index: str) -> str:
        """The formula of a cell that shares one, without its leading ``=``.

        Args:
            key: the cell.
            index: the index of its shared formula.

        Raises:
            WorkbookError: no cell of the worksheet writes it out, or it is broken or over a limit.
        """
        master = self._covering(key, index)
        if master is None:
            master = self._covering_anywhere(key, index)
        if master is None:
            raise WorkbookError(f"no cell of the sheet has the shared formula {index[:20]!r}")
        self._count(len(master.text))
        rows = (key >> COLUMN_BITS) - (master.key >> COLUMN_BITS)
        columns = (key & COLUMN_MASK) - (master.key & COLUMN_MASK)
        return shift_formula(master.text, rows, columns)

    def _covering(self, key: int, index: str) -> _Master | None:
        """The master among the cells that were read whose range holds a cell."""
        while self._unseen:
            self._note(self._unseen.pop())
        masters = self._masters.get(index)
        if not masters:
            return None
        row, column = key >> COLUMN_BITS, key & COLUMN_MASK
        holding = [
            each.key
            for each in masters.values()
            if each.window is not None and each.window.holds(row, column)
        ]
        return masters[min(holding)] if holding else None

    def _covering_anywhere(self, key: int, index: str) -> _Master | None:
        """The master in the whole worksheet: the one whose range holds a cell, or the first one."""
        if self._first is None:
            everything = self._read_all()
            self._note(everything)
            self._first = {
                name: next(iter(masters.values())) for name, masters in _masters(everything).items()
            }
        return self._covering(key, index) or self._first.get(index)

    def _note(self, formulas: Formulas) -> None:
        for index, masters in _masters(formulas).items():
            known = self._masters.setdefault(index, {})
            known.update(masters)
            if len(known) > _MOST_MASTERS:
                kept = sorted(known)[:_MOST_MASTERS]
                self._masters[index] = {key: known[key] for key in kept}


def _masters(formulas: Formulas) -> dict[str, dict[int, _Master]]:
    found: dict[str, dict[int, _Master]] = {}
    for key, raw in formulas.items():
        if raw.kind == "shared" and raw.text and raw.shared is not None:
            window = parse_window(raw.reference) if raw.reference else None
            found.setdefault(raw.shared, {})[key] = _Master(key, raw.text, window)
    return found
