"""When engines agree on a value, which errors count, and where an engine was overruled. Pure."""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from judge.formulas.references import Reference
from judge.workbook.cell import CellRef, CellValue, ErrorValue

SURE_ERRORS = frozenset(("#N/A", "#DIV/0!", "#VALUE!"))
"""Errors that the quick engines never show merely because they lack a feature."""

INCAPABLE_ERRORS = frozenset(("#SPILL!", "#CALC!"))
"""Errors that show that an engine lacks a feature, unless the formula itself spills."""


def same_value(first: CellValue, second: CellValue) -> bool:
    """Whether two values are equal, up to last digits that depend on the order of additions."""
    if type(first) is type(second) and first == second:
        return True
    if isinstance(first, bool) or isinstance(second, bool):
        return False
    if isinstance(first, (int, float)) and isinstance(second, (int, float)):
        return math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-9)
    return first == second


def with_logical(office: CellValue, other: CellValue) -> CellValue:
    """Returns LibreOffice's value, as TRUE or FALSE if another engine's equal value is logical.

    LibreOffice turns TRUE into 1 in a cell with a number format.
    """
    if not isinstance(office, bool) and office in (0, 1) and isinstance(other, bool):
        return other if other == office else office
    return office


def is_doubtful(value: CellValue) -> bool:
    """Whether a value is an error that quick engines may show because they lack a feature."""
    return isinstance(value, ErrorValue) and value.code not in SURE_ERRORS


class Overruled:
    """The cells in which engines were overruled; their answers in dependent cells do not count."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, int], list[int]] = defaultdict(list)
        self._columns: dict[tuple[str, str], set[int]] = defaultdict(set)
        self._engines: set[str] = set()

    def add(self, engine: str, ref: CellRef) -> None:
        """Notes that an engine was overruled in a cell."""
        self._engines.add(engine)
        self._columns[engine, ref.sheet].add(ref.column)
        bisect.insort(self._rows[engine, ref.sheet, ref.column], ref.row)

    def reading(
        self, home: str, reads: Sequence[Reference], named: Callable[[str], str | None]
    ) -> AbstractSet[str]:
        """The engines that were overruled in some cell of the rectangles that a formula reads.

        Args:
            home: the sheet of the formula.
            reads: the rectangles.
            named: returns the real name of a sheet; None if there is no such sheet.
        """
        return {
            engine
            for engine in self._engines
            if any(self._holds(engine, home, read, named) for read in reads)
        }

    def _holds(
        self, engine: str, home: str, read: Reference, named: Callable[[str], str | None]
    ) -> bool:
        sheet = home if read.sheet is None else named(read.sheet)
        if sheet is None:
            return False
        for column in self._columns.get((engine, sheet), ()):
            if read.min_column <= column <= read.max_column:
                rows = self._rows[engine, sheet, column]
                at = bisect.bisect_left(rows, read.min_row)
                if at < len(rows) and rows[at] <= read.max_row:
                    return True
        return False
