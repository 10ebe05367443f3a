"""Finds out what each requested cell depends on; nothing else may affect which value is taken.

A property of some formulas (a function that was never measured, a name, text beyond ASCII) is
passed on to the cells that depend on them, in one pass over all formulas that were followed. It
does not matter which other cells are requested, or what else the workbook holds.
"""

from __future__ import annotations

import bisect
import functools
import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from judge.formulas.references import Reference
from judge.formulas.traits import FormulaTraits
from judge.recalc.names import JUDGE
from judge.recalc.trust import PAIR, TrustTable
from judge.workbook.cell import CellRef
from judge.workbook.dependency import (
    Dependencies,
    Followed,
    FormulaIndex,
    Walk,
    first_unseen,
)

Reads = Callable[[str, Reference], bool]
"""Whether a rectangle of a sheet, given by its real name, holds something, such as non-ASCII text.
"""


class Support:
    """The properties of each cell of a request.

    If there are too many dependencies to follow, no cell is sure, and the other properties are
    those of the whole workbook.

    Args:
        dependencies: what the cells depend on.
        trust: the benchmark's records.
        reads_text: where there is text beyond ASCII; None if there is none.
        reads_logical: where there are constants TRUE and FALSE; None if there are none.
        reads_spilled: where formulas may spill to; None if no formula spills.
        reads_nameless: where there are constants ``#NAME?``; None if there are none.
    """

    def __init__(
        self,
        dependencies: Dependencies,
        trust: TrustTable,
        reads_text: Reads | None,
        reads_logical: Reads | None = None,
        reads_spilled: Reads | None = None,
        reads_nameless: Reads | None = None,
    ) -> None:
        self._dependencies = dependencies
        self._trust = trust
        self._reads_text = reads_text
        self._named: AbstractSet[CellRef] | None = None
        self._whole: AbstractSet[CellRef] | None = None
        self._valued: AbstractSet[CellRef] | None = None
        self._reads_logical = reads_logical
        self._reads_spilled = reads_spilled
        self._reads_nameless = reads_nameless
        self._foreign: AbstractSet[CellRef] | None = None
        self._logical: AbstractSet[CellRef] | None = None
        self._spilled: AbstractSet[CellRef] | None = None

    @functools.cached_property
    def steps(self) -> Mapping[CellRef, Followed]:
        """Formula cell -> how it was followed; empty if too many were reached."""
        walk = self._dependencies.walk
        return {} if walk is None else {step.ref: step for step in walk.steps}

    def sure(self) -> AbstractSet[CellRef]:
        """The cells in which the pair's value is taken if the two engines agree.

        Everything that such a cell depends on is known: only functions for which the pair was
        always right when it agreed, without names, arrays and text beyond ASCII.
        """
        walk = self._dependencies.walk
        if walk is None:
            return frozenset()
        judged: dict[int, bool] = {}

        def is_unsure(step: Followed) -> bool:
            # Formulas that differ only in numbers have the same object as ``calls``.
            if id(step.calls) not in judged:
                judged[id(step.calls)] = not self._trust.is_sure(PAIR, step.calls)
            return (
                judged[id(step.calls)]
                or not _is_plain(step.traits)
                or step.fills
                or (self._reads_text is not None and _misnames(step, walk.index))
            )

        def reads_unsure(sheet: str, reference: Reference) -> bool:
            return any(
                reads is not None and reads(sheet, reference)
                for reads in (self._reads_text, self._reads_spilled)
            )

        return {step.ref for step in walk.steps} - with_dependents(walk, is_unsure, reads_unsure)

    def is_nameless(self, cell: CellRef) -> bool:
        """Whether a cell may depend on a name that Excel does not know, or on ``#NAME?`` itself."""
        all_cells = self._dependencies
        if not (
            all_cells.unprefixed
            or all_cells.unknown
            or all_cells.names
            or self._reads_nameless is not None
        ):
            return False
        if self._named is None:
            self._named = self._without(
                lambda traits: bool(traits.unprefixed or traits.unknown or traits.names),
                self._reads_nameless,
            )
        return cell not in self._named

    def is_certainly_nameless(self, cell: CellRef) -> bool:
        """Whether a cell depends on a function that Excel does not know, or on ``#NAME?`` itself.

        Only the dependencies that were followed count. A name that the workbook may define does not
        count.
        """
        walk = self._dependencies.walk
        if walk is None:
            return True
        if self._foreign is None:
            self._foreign = with_dependents(
                walk,
                lambda step: bool(
                    step.traits.unknown or step.traits.unprefixed or "#NAME?" in step.traits.names
                ),
                self._reads_nameless,
            )
        return cell in self._foreign

    def is_broken(self, cell: CellRef) -> bool:
        """Whether a cell may depend on a reference to something that no longer exists."""
        if not self._dependencies.broken:
            return False
        if self._whole is None:
            self._whole = self._without(lambda traits: traits.broken)
        return cell not in self._whole

    def valueless(self, cell: CellRef) -> str:
        """Why the value of a cell in Excel may not be known; empty if it is known."""
        reasons = self._dependencies.valueless
        if not reasons:
            return ""
        if self._valued is None:
            self._valued = self._without(lambda traits: bool(traits.valueless))
        return "" if cell in self._valued else "; ".join(sorted(reasons))

    def reads_logical(self, cell: CellRef) -> bool:
        """Whether a cell depends on a constant TRUE or FALSE, which LibreOffice reads as a number.

        False if the cell depends on something that the quick engines do not support at all, such as
        tables and array formulas.
        """
        walk = self._dependencies.walk
        if self._reads_logical is None or walk is None:
            return False
        if self._logical is None:
            plain = self._without(
                lambda traits: bool(
                    traits.opaque
                    or traits.unbounded
                    or traits.array_sensitive
                    or traits.unprefixed
                    or traits.unknown
                )
            )
            self._logical = plain & with_dependents(walk, lambda _: False, self._reads_logical)
        return cell in self._logical

    def reads_spilled(self, cell: CellRef) -> bool:
        """Whether a cell may depend on a cell into which a formula spills beyond its stated range.

        LibreOffice computes such a formula only in its own cell.
        """
        walk = self._dependencies.walk
        if self._reads_spilled is None or walk is None:
            return False
        if self._spilled is None:
            self._spilled = with_dependents(
                walk, lambda step: step.may_read_more, self._reads_spilled
            )
        return cell in self._spilled

    def _without(
        self, has: Callable[[FormulaTraits], bool], reads: Reads | None = None
    ) -> AbstractSet[CellRef]:
        """The cells that certainly do not depend on formulas or constants of some kind."""
        walk = self._dependencies.walk
        if walk is None:
            return frozenset()
        marked = with_dependents(
            walk, lambda step: step.may_read_more or step.fills or has(step.traits), reads
        )
        return {step.ref for step in walk.steps} - marked


def cells_of_judge(
    walk: Walk | None, trust: TrustTable, *, states_spills: bool
) -> AbstractSet[CellRef]:
    """The cells whose value is the judge's own, if it can compute them; no engine is asked.

    Everything that such a cell depends on is known: only functions with which the judge was always
    right when it had a value, and no names and volatile functions. An array formula is represented
    by its first cell. Cells that make references from text are included, but not those that depend
    on them: their values are the judge's only if they have read constants alone.

    Args:
        walk: the formula cells in the order in which they were followed; None if there are too
            many.
        trust: the benchmark's records.
        states_spills: whether the file states which cells each formula fills.
    """
    if walk is None:
        return frozenset()
    judged: dict[int, bool] = {}

    def is_unsure(step: Followed) -> bool:
        return step.may_read_more or calls_unsure(step)

    def calls_unsure(step: Followed) -> bool:
        if not _is_understood(step.traits, step.fills):
            return True
        # Formulas that differ only in numbers have the same object as ``calls``.
        if id(step.calls) not in judged:
            judged[id(step.calls)] = not trust.is_sure(JUDGE, step.calls)
        return judged[id(step.calls)]

    spilled = None if states_spills else _reads_spilled(walk.index)
    unsure = with_dependents(walk, is_unsure, spilled, arrays=True)
    return {
        step.ref
        for step in walk.steps
        if step.ref not in unsure
        or (states_spills and step.traits.opaque and not calls_unsure(step))
    }


def _reads_spilled(index: FormulaIndex) -> Reads:
    """Whether a rectangle may hold a cell into which an array formula spills from its own cell."""

    @functools.cache
    def spilling(sheet: str) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
        """The rows of such formulas, the first column in each, and the first down to each."""
        first: dict[int, int] = {}
        for _, cells in index.sheet(sheet).cells.values():
            for cell in cells:
                if len(set((cell.array_range or "A1:A2").split(":"))) == 1:
                    first[cell.row] = min(cell.column, first.get(cell.row, cell.column))
        rows = sorted(first)
        columns = [first[row] for row in rows]
        return rows, columns, [*itertools.accumulate(columns, min)]

    def reads(sheet: str, reference: Reference) -> bool:
        _, _, _, bottom, right = reference
        rows, columns, first_so_far = spilling(sheet)
        above = bisect.bisect_left(rows, bottom)
        if above and first_so_far[above - 1] <= right:
            return True
        return above < len(rows) and rows[above] == bottom and columns[above] < right

    return reads


def _is_understood(formula: FormulaTraits, fills: bool) -> bool:
    """Whether the judge knows what a formula reads, and that its value in Excel is known."""
    return not (
        formula.unprefixed
        or formula.unknown
        or formula.volatile
        or formula.valueless
        or formula.spans_sheets
        or formula.intersects
        or (formula.array_sensitive and not fills)
    )


def _is_plain(formula: FormulaTraits) -> bool:
    """Whether a formula has only properties that the benchmark's records cover."""
    return not (
        formula.opaque
        or formula.unbounded
        or formula.array_sensitive
        or formula.unprefixed
        or formula.unknown
        or formula.volatile
        or formula.beyond_ascii
    )


def _misnames(step: Followed, index: FormulaIndex) -> bool:
    """Whether a formula writes a sheet's name with non-ASCII letters in a different case."""
    return any(
        read.sheet is not None
        and not read.sheet.isascii()
        and index.named(read.sheet) != read.sheet
        for read in step.reads
    )


def with_dependents(
    walk: Walk,
    is_marked: Callable[[Followed], bool],
    reads_text: Reads | None = None,
    *,
    arrays: bool = False,
) -> AbstractSet[CellRef]:
    """The marked cells, all cells that depend on them, and circular references.

    Args:
        walk: the formula cells in the order in which they were followed.
        is_marked: whether a cell is marked, whatever it reads.
        reads_text: whether a rectangle holds something that marks the cells that read it.
        arrays: whether a cell that reads cells filled by an array formula may be free.
    """
    marked: set[CellRef] = set()
    free = _FreeCells(walk.index, reads_text, arrays=arrays)
    for step in walk.steps:
        if is_marked(step) or not all(free.cover(step.ref.sheet, read) for read in step.reads):
            marked.add(step.ref)
        else:
            free.add(step.ref)
    return marked


class _FreeCells:
    """Records which cells are known not to be marked while a walk is repeated step by step.

    If a formula cell is not free when a later step reads it, it is already marked, or it is part of
    a circular reference and will be marked. So each rectangle is searched only once.
    """

    def __init__(self, index: FormulaIndex, reads_text: Reads | None, *, arrays: bool) -> None:
        self._index = index
        self._reads_text = reads_text
        self._arrays = arrays
        self._filling: set[CellRef] = set()
        """Cells that are free if cells filled by an array formula may be read."""
        self._free: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
        """For each column: index of a free cell -> a later index; skips runs of free cells."""
        self._covered: dict[tuple[str, Reference], bool] = {}

    def add(self, ref: CellRef) -> None:
        """Records that a cell is free."""
        if self._arrays:
            self._filling.add(ref)
        index = self._index.index_in_column(ref)
        if index is not None:
            self._free[ref.sheet, ref.column][index] = index + 1

    def cover(self, home: str, reference: Reference) -> bool:
        """Whether every cell of a rectangle is free."""
        sheet, top, left, bottom, right = reference
        if sheet is None and top == bottom and left == right:
            return self._cover(home, reference)  # as fast as to find it among those searched
        key = (home if sheet is None else sheet, reference)
        covered = self._covered.get(key)
        if covered is None:
            name = self._index.named(key[0])
            covered = self._covered[key] = name is None or self._cover(name, reference)
        return covered

    def _cover(self, name: str, reference: Reference) -> bool:
        if self._reads_text is not None and self._reads_text(name, reference):
            return False
        formulas = self._index.sheet(name)
        _, top, left, bottom, right = reference
        for column in formulas.between(left, right):
            rows, _ = formulas.cells[column]
            first, last = bisect.bisect_left(rows, top), bisect.bisect_right(rows, bottom)
            if first < last and first_unseen(self._free[name, column], first) < last:
                return False
        return not formulas.filling or all(
            CellRef(name, cell.row, cell.column) in self._filling
            for cell in formulas.filled_in(reference)
        )
