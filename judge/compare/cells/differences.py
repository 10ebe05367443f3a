"""Collecting differences: all are counted, the first ones are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judge.compare.cells.comparison import Difference, DifferenceClass
from judge.workbook.cell import CellRange, CellValue


class Differences:
    """The differences of one comparison.

    Args:
        limit: how many are kept.

    Attributes:
        cells: how many cells differ.
    """

    def __init__(self, limit: int) -> None:
        self.cells = 0
        self._limit = limit
        self._counts: dict[DifferenceClass, int] = {}
        self._kept: list[Difference] = []

    @property
    def counts(self) -> Mapping[DifferenceClass, int]:
        """Class -> how many differences, in full."""
        return dict(self._counts)

    @property
    def kept(self) -> tuple[Difference, ...]:
        """The first differences, in reading order of each range."""
        return tuple(self._kept)

    @property
    def is_full(self) -> bool:
        """Whether further differences will only be counted."""
        return len(self._kept) >= self._limit

    def count(self, kind: DifferenceClass, cells: int = 1) -> None:
        """Counts differing cells without keeping them."""
        self.cells += cells
        self._counts[kind] = self._counts.get(kind, 0) + cells

    def add(self, difference: Difference) -> None:
        """Counts a differing cell, and keeps it if there is room."""
        self.count(difference.kind)
        if not self.is_full:
            self._kept.append(difference)

    def add_missing_sheet(self, gold_range: CellRange, sheets: Sequence[str]) -> None:
        """Counts all cells of a range as missing."""
        self.count(DifferenceClass.MISSING_SHEET, gold_range.size)
        if not self.is_full:
            listed = ", ".join(repr(name) for name in sheets[:10])
            detail = f"the output has no sheet {gold_range.sheet!r}; it has {listed}"
            self._kept.append(
                Difference(DifferenceClass.MISSING_SHEET, gold_range.sheet, "", detail=detail)
            )

    def note_touched(
        self,
        sheet: str,
        cell: str,
        detail: str,
        *,
        expected: CellValue = None,
        actual: CellValue = None,
        expected_formula: str | None = None,
        actual_formula: str | None = None,
    ) -> None:
        """Keeps a cell outside the answer range; these are counted separately."""
        kind = DifferenceClass.TOUCHED
        self._counts[kind] = self._counts.get(kind, 0) + 1
        if not self.is_full:
            self._kept.append(
                Difference(
                    kind=kind,
                    sheet=sheet,
                    cell=cell,
                    expected=expected,
                    actual=actual,
                    expected_formula=expected_formula,
                    actual_formula=actual_formula,
                    detail=detail,
                )
            )
