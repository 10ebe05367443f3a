"""The outcome of comparing an output with its gold: every difference, classed and counted."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from judge.compare.cells.scope import Scope
from judge.workbook.cell import CellRange, CellValue


class DifferenceClass(enum.StrEnum):
    """What kind of difference a cell shows."""

    MISSING = "missing"
    """The gold has a value, the output is blank."""
    EXTRA = "extra"
    """The gold is blank, the output has a value."""
    WRONG_VALUE = "wrong_value"
    NUMBER_AS_TEXT = "number_as_text"
    """A number stored as text, or text stored as a number; otherwise the two agree."""
    TYPE = "type"
    """Values of different types (a date and a string …)."""
    ERROR_VALUE = "error_value"
    """One of the two is an error such as ``#N/A``."""
    NOT_CALCULATED = "not_calculated"
    """The output holds a formula that nothing could compute."""
    MISSING_SHEET = "missing_sheet"
    WRONG_FORMULA = "wrong_formula"
    """Formulas are compared, and these differ."""
    STYLE = "style"
    """The values agree, but a style that is compared (fill, font colour …) does not."""
    TOUCHED = "touched"
    """A cell outside the answer range that the solution changed."""
    LOST = "lost"
    """Something that the input had, the gold kept, and the output lost."""
    NO_FORMULA = "no_formula"
    """Constants where the question asks for a formula."""


APART = frozenset({DifferenceClass.TOUCHED, DifferenceClass.LOST, DifferenceClass.NO_FORMULA})
"""Classes that are no cells of the answer range and are not counted among them."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One cell in which the output differs from the gold.

    Attributes:
        kind: the class.
        sheet: the gold's sheet.
        cell: address such as ``B7``; empty for a missing sheet.
        expected: the gold's value.
        actual: the output's value.
        expected_formula: the gold's formula, if it has one.
        actual_formula: the output's formula, if it has one.
        detail: a line for people: which style, why not calculated, which sheets there are.
        erased: what the input holds in a cell that the output left blank, if that is known.
    """

    kind: DifferenceClass
    sheet: str
    cell: str
    expected: CellValue = None
    actual: CellValue = None
    expected_formula: str | None = None
    actual_formula: str | None = None
    detail: str = ""
    erased: CellValue = None


@dataclass(frozen=True, slots=True)
class CellGroup:
    """How one kind of cells of the answer range came out.

    Attributes:
        name: ``modification`` for cells in which the gold differs from the input, ``regression``
            for those that should have stayed as they were.
        cells: how many there are.
        differing_cells: how many of them differ from the gold.
    """

    name: str
    cells: int
    differing_cells: int


@dataclass(frozen=True, slots=True)
class GroupShares:
    """Shares of the cells that agree, from 0 to 1; None for a group without cells.

    Attributes:
        modification: of the cells to change.
        regression: of the cells to keep.
    """

    modification: float | None
    regression: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """How an output compares with its gold under one profile.

    Attributes:
        equal: whether the profile accepts the output.
        profile: name of the profile.
        ranges: the rectangles of the gold that were compared.
        cells: how many cells were compared.
        differing_cells: how many of them differ (counted in full).
        difference_counts: class -> count, in full.
        differences: the first of them, in reading order, at most as many as were requested.
        notes: liberties taken with the position, engines that disagree, caches not trusted.
        touched_cells: cells outside the answer range that the solution changed; None if they were
            not checked. They are counted here and not among the differing cells.
        groups: the answer range by kind of cell, if the input was given.
        shares: the shares of these groups that count for the task, if the groups decide.
        official_equal: the published script's verdict on the same two files, if it was requested;
            ``None`` otherwise.
        scope: what the options ``keep`` and ``formula_asked`` found; None if neither was set.
    """

    equal: bool
    profile: str
    ranges: tuple[CellRange, ...]
    cells: int
    differing_cells: int
    difference_counts: Mapping[DifferenceClass, int]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...] = ()
    official_equal: bool | None = None
    touched_cells: int | None = None
    groups: tuple[CellGroup, ...] = ()
    shares: GroupShares | None = None
    scope: Scope | None = None

    @property
    def cell_accuracy(self) -> float:
        """Share of the compared cells that agree, from 0 to 1; 1 if no cell was compared."""
        return 1.0 if not self.cells else 1.0 - min(self.differing_cells, self.cells) / self.cells
