"""Finds the formulas that a set of cells depends on, directly and indirectly."""

from __future__ import annotations

import bisect
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from judge.errors import WorkbookError
from judge.formulas.references import Reference, readable, with_form
from judge.formulas.shapes import Call, calls
from judge.formulas.traits import FormulaTraits, traits
from judge.workbook.address import WHOLE_SHEET, Window, folded, parse_window
from judge.workbook.cell import Cell, CellRef

FOLLOWED_LIMIT = 50_000
"""Largest number of formulas that are followed one by one; if there are more, every formula of the
workbook counts as reached."""

WORK_LIMIT = 4_000_000
"""Largest number of steps that are spent on following the formulas of one workbook, over all
queries. If more are needed, every formula of the workbook counts as reached. A step takes about
half a microsecond. The workbooks of the published suites need at most a sixth of this limit."""

STEPS_OF_FORMULA = 20
STEPS_OF_REFERENCE = 3
CHARACTERS_OF_STEP = 8
"""The cost of reading a formula, in steps: a fixed amount, an amount for each reference, and its
characters. Each column that is searched costs a step, and so does each cell that is found there."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The formula cells that some formula cells depend on.

    Attributes:
        cells: every formula cell that was reached, including the requested ones.
        sheets: every sheet that holds one of these formulas or that one of them names.
    """

    cells: AbstractSet[CellRef]
    sheets: AbstractSet[str]


class Followed(NamedTuple):
    """A formula cell whose references were followed.

    Attributes:
        ref: the cell.
        traits: the traits of its formula.
        reads: the rectangles that hold everything that it can read.
        may_read_more: whether it may read cells beyond these rectangles.
        fills: whether it is an array formula or a data table.
        calls: the calls in its formula.
    """

    ref: CellRef
    traits: FormulaTraits
    reads: Sequence[Reference]
    may_read_more: bool
    fills: bool
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Walk:
    """The order in which the formulas of a workbook were followed.

    Attributes:
        steps: the formula cells. A cell comes after the cells that it reads, except in a circular
            reference.
        index: the workbook's formulas.
    """

    steps: Sequence[Followed]
    index: FormulaIndex


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The dependencies of some formula cells, including these cells themselves.

    Attributes:
        functions: every function that is called.
        volatile: every volatile function that is called.
        unprefixed: every newer function that is called without its prefix.
        unknown: whether a function is called that Excel does not know.
        names: whether a defined name or a table is used.
        array_sensitive: whether a formula depends on being entered as an array formula or not.
        broken: whether a formula refers to something that no longer exists.
        opaque: whether a formula uses names, tables, or references that are made from text.
        valueless: why the values of some formulas in Excel cannot be known.
        complete: whether every formula that can be reached is known; False if a formula makes
            references from text, or if there are too many formulas to follow. In that case, and if
            a formula reads cells beyond the rectangles that it names, every formula of the workbook
            counts as reached.
        cells: how many formula cells were reached.
        named_cells: how many cells all of these formulas name together, counted once for each
            formula: about as many as an engine visits. Whole columns count in full.
        reach: the formula cells; None if a formula may read cells that its text does not name.
        walk: how they were reached, cell by cell; None if there are too many to follow.
    """

    functions: frozenset[str]
    volatile: frozenset[str]
    unprefixed: frozenset[str]
    unknown: bool
    names: bool
    array_sensitive: bool
    broken: bool
    opaque: bool
    complete: bool
    cells: int
    named_cells: int = 0
    valueless: frozenset[str] = frozenset()
    reach: Reach | None = None
    walk: Walk | None = field(default=None, repr=False, compare=False)


KINDS_KNOWN = 4096


class _Sum:
    """The combined traits of formulas; each kind of formula is added once."""

    def __init__(self) -> None:
        self.cells = 0
        self.named_cells = 0
        self._known: dict[int, FormulaTraits] = {}
        self._functions: set[str] = set()
        self._volatile: set[str] = set()
        self._unprefixed: set[str] = set()
        self._valueless: set[str] = set()
        self._unknown = self._names = self._arrays = self._broken = self._opaque = False
        self.further = False

    def add(self, cell: Cell, traits: FormulaTraits) -> None:
        """Adds the traits of a formula cell."""
        self._arrays = self._arrays or cell.array_range is not None
        # Formulas that differ only in numbers have the same object, so identity is enough.
        if id(traits) in self._known:
            return
        if len(self._known) < KINDS_KNOWN:
            self._known[id(traits)] = traits
        self._functions |= traits.functions
        self._volatile |= traits.volatile
        self._unprefixed |= traits.unprefixed
        self._valueless |= {traits.valueless} - {""}
        self._unknown = self._unknown or bool(traits.unknown)
        self._names = self._names or bool(traits.names)
        self._arrays = self._arrays or traits.array_sensitive
        self._broken = self._broken or traits.broken
        self._opaque = self._opaque or traits.opaque
        self.further = self.further or traits.reaches_further

    def dependencies(
        self, *, complete: bool, arrays: bool = False, reach: Reach | None = None
    ) -> Dependencies:
        """The dependencies that were added so far."""
        return Dependencies(
            functions=frozenset(self._functions),
            volatile=frozenset(self._volatile),
            unprefixed=frozenset(self._unprefixed),
            unknown=self._unknown,
            names=self._names,
            array_sensitive=self._arrays or arrays,
            broken=self._broken,
            opaque=self._opaque,
            complete=complete,
            cells=self.cells,
            named_cells=self.named_cells,
            valueless=frozenset(self._valueless),
            reach=None if self.further or self._arrays or arrays else reach,
        )


@dataclass(frozen=True, slots=True)
class SheetFormulas:
    """The formula cells of a sheet.

    Attributes:
        columns: sorted numbers of the columns that hold formulas.
        cells: column -> sorted rows and their cells.
        filling: the formula cells that fill other cells too, with the range that they fill.
    """

    columns: Sequence[int]
    cells: Mapping[int, tuple[list[int], list[Cell]]]
    filling: Sequence[tuple[Window, Cell]] = ()

    def between(self, first: int, last: int) -> Sequence[int]:
        """The columns from one to another that hold formulas."""
        return self.columns[
            bisect.bisect_left(self.columns, first) : bisect.bisect_right(self.columns, last)
        ]

    def filled_in(self, reference: Reference) -> Iterator[Cell]:
        """The formula cells that fill several cells, at least one of them in a rectangle."""
        for filled, cell in self.filling:
            if (
                filled.min_row <= reference.max_row
                and reference.min_row <= filled.max_row
                and filled.min_column <= reference.max_column
                and reference.min_column <= filled.max_column
            ):
                yield cell


_NO_CELLS: tuple[list[int], list[Cell]] = ([], [])


class FormulaIndex:
    """The formula cells of a workbook, found by rectangle.

    Args:
        sheets: the real names of the sheets.
        load: returns the formula cells of a whole sheet; called once for each sheet reached.
        work: how many steps may be spent on following formulas, over all queries.
    """

    def __init__(
        self,
        sheets: Iterable[str],
        load: Callable[[str], Iterable[Cell]],
        *,
        work: int = WORK_LIMIT,
    ) -> None:
        self._names = {folded(name): name for name in sheets}
        self._load = load
        self._sheets: dict[str, SheetFormulas] = {}
        self._everything: Dependencies | None = None
        self.work_left = work

    @property
    def sheets(self) -> tuple[str, ...]:
        """Real names of the sheets."""
        return tuple(self._names.values())

    def named(self, name: str) -> str | None:
        """The real name of a sheet that a formula names; None if there is no such sheet."""
        return self._names.get(folded(name))

    def sheet(self, name: str) -> SheetFormulas:
        """The formula cells of a sheet, by its real name."""
        if name not in self._sheets:
            columns: dict[int, tuple[list[int], list[Cell]]] = defaultdict(lambda: ([], []))
            filling = []
            ordered = sorted(self._load(name), key=lambda cell: cell.row)
            for cell in ordered:
                rows, cells = columns[cell.column]
                rows.append(cell.row)
                cells.append(cell)
                if cell.array_range is not None and ":" in cell.array_range:
                    filled = parse_window(cell.array_range.replace("$", ""))
                    filling.append((filled or WHOLE_SHEET, cell))
            self._sheets[name] = SheetFormulas(sorted(columns), dict(columns), filling)
        return self._sheets[name]

    @property
    def known(self) -> int:
        """How many formula cells there are on the sheets that were reached."""
        return sum(len(rows) for sheet in self._sheets.values() for rows, _ in sheet.cells.values())

    def index_in_column(self, ref: CellRef) -> int | None:
        """Index of a formula cell among those of its column; None if its sheet was not reached."""
        formulas = self._sheets.get(ref.sheet)
        rows, _ = formulas.cells.get(ref.column, _NO_CELLS) if formulas else _NO_CELLS
        at = bisect.bisect_left(rows, ref.row)
        return at if at < len(rows) and rows[at] == ref.row else None

    def cell(self, ref: CellRef) -> Cell | None:
        """A formula cell; None if its sheet was not reached, or it holds no formula."""
        position = self.index_in_column(ref)
        return None if position is None else self._sheets[ref.sheet].cells[ref.column][1][position]

    def every(self) -> Iterator[Cell]:
        """Every formula cell of the workbook."""
        for name in self.sheets:
            for _, cells in self.sheet(name).cells.values():
                yield from cells

    def everything(self) -> Dependencies:
        """The combined traits of every formula of the workbook."""
        if self._everything is None:
            total = _Sum()
            for cell in self.every():
                total.cells += 1
                total.add(cell, traits(cell.formula or ""))
            self._everything = total.dependencies(complete=False)
        return self._everything


class Search:
    """A walk through an index; it visits each formula cell only once, however often it is named.

    Args:
        index: the workbook's formulas; its steps are spent.
    """

    def __init__(self, index: FormulaIndex) -> None:
        self._index = index
        self._seen: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
        """For each column: index of a cell that was visited -> a later index, to skip all visited
        cells, as in a union-find structure."""
        self._rectangles: set[tuple[str, Reference]] = set()
        self.sheets: set[str] = set()
        """Every sheet that was searched, or that a formula refers to."""

    def unseen(self, reference: Reference, home: str) -> Iterable[tuple[str, Cell]]:
        """The formula cells of a rectangle that were not returned before, with their sheet."""
        name = home if reference.sheet is None else self._index.named(reference.sheet)
        if name is None:
            return ()
        self.sheets.add(name)
        _, top, left, bottom, right = reference
        formulas = self._index.sheet(name)
        if top != bottom or left != right:
            if (name, reference) in self._rectangles:
                return ()
            self._rectangles.add((name, reference))
        elif left not in formulas.cells and not formulas.filling:
            return ()  # most references are to single cells that hold constants
        return self._unseen_in(name, formulas, reference)

    def keep_sheets(self, references: Iterable[Reference], home: str) -> None:
        """Records the sheets of references of which no cell is read."""
        for reference in references:
            name = home if reference.sheet is None else self._index.named(reference.sheet)
            if name is not None:
                self.sheets.add(name)

    def _unseen_in(
        self, name: str, formulas: SheetFormulas, reference: Reference
    ) -> Iterator[tuple[str, Cell]]:
        for column in formulas.between(reference.min_column, reference.max_column):
            self._index.work_left -= 1
            rows, cells = formulas.cells[column]
            seen = self._seen[name, column]
            last = bisect.bisect_right(rows, reference.max_row)
            index = first_unseen(seen, bisect.bisect_left(rows, reference.min_row))
            while index < last:
                seen[index] = index + 1
                self._index.work_left -= 1
                yield name, cells[index]
                index = first_unseen(seen, index + 1)
            if self._index.work_left < 0:
                return
        # The cells that an array formula fills have no formulas of their own.
        self._index.work_left -= len(formulas.filling)
        for cell in formulas.filled_in(reference):
            yield name, cell


def first_unseen(seen: dict[int, int], index: int) -> int:
    """The first index, from a given one on, that was not seen; compresses paths on the way."""
    end = index
    while end in seen:
        end = seen[end]
    while index != end:
        seen[index], index = end, seen[index]
    return end


def dependencies(cells: Iterable[tuple[str, Cell]], index: FormulaIndex) -> Dependencies:
    """What formula cells depend on.

    Args:
        cells: the formula cells in question, with their sheet.
        index: the workbook's formulas.
    """
    follower = _Follower(index)
    if not all(follower.follow(sheet, cell) for sheet, cell in cells):
        return index.everything()
    return follower.dependencies()


class _Kind(NamedTuple):
    """What is the same in all formula cells of one form; see :class:`Followed`."""

    may_read_more: bool
    fills: bool
    calls: tuple[Call, ...]


class _Follower:
    """Follows formulas from cell to cell, each only once, and after the cells that it reads."""

    def __init__(self, index: FormulaIndex) -> None:
        self._index = index
        self._search = Search(index)
        self._sum = _Sum()
        self._reached: set[CellRef] = set()
        self._steps: list[Followed] = []
        self._kinds: dict[tuple[str, bool], _Kind] = {}
        """For the text of a form, as an array formula or not."""
        self._opaque = False

    def follow(self, sheet: str, cell: Cell) -> bool:
        """Follows a formula; returns False if there are too many formulas to follow."""
        entered = self._enter(sheet, cell)
        path = [] if entered is None else [entered]
        while path:
            step, below = path[-1]
            for home, child in below:
                entered = self._enter(home, child)
                if entered is not None:
                    path.append(entered)
                    break
            else:
                self._steps.append(step)
                path.pop()
            if self._index.work_left < 0 or len(self._reached) > FOLLOWED_LIMIT:
                return False
        return True

    def _enter(self, sheet: str, cell: Cell) -> tuple[Followed, Iterator[tuple[str, Cell]]] | None:
        """A formula cell that was not reached before, and the formula cells that it reads."""
        ref = CellRef(sheet, cell.row, cell.column)
        if cell.formula is None or ref in self._reached:
            return None
        self._reached.add(ref)
        form, named = with_form(cell.formula)
        traits = form.traits
        self._index.work_left -= (
            STEPS_OF_FORMULA
            + STEPS_OF_REFERENCE * len(named)
            + len(cell.formula) // CHARACTERS_OF_STEP
        )
        for _, top, left, bottom, right in named:
            self._sum.named_cells += (bottom - top + 1) * (right - left + 1)
        self._sum.cells += 1
        key = form.text or cell.formula, cell.array_range is not None
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = self._kind_of(cell, traits, key[0])
        if form.unread:
            self._search.keep_sheets([named[index] for index in form.unread], sheet)
            named = tuple(read for at, read in enumerate(named) if at not in form.unread)
        # Formulas often name a cell several times.
        reads = () if traits.opaque else [*dict.fromkeys(readable(cell.formula, traits, named))]
        below = itertools.chain.from_iterable(self._search.unseen(read, sheet) for read in reads)
        return Followed(ref, traits, reads, *kind), below

    def _kind_of(self, cell: Cell, traits: FormulaTraits, text: str) -> _Kind:
        """What a formula cell has in common with all others of its form; adds up their traits."""
        self._sum.add(cell, traits)
        self._opaque = self._opaque or traits.opaque
        # A data table has no formula text.
        fills = cell.array_range is not None or cell.formula in ("", "=")
        called = calls(text, is_array=fills, intersects=traits.array_sensitive and not fills)
        return _Kind(traits.opaque or traits.unbounded, fills, called)

    def dependencies(self) -> Dependencies:
        """The dependencies that were followed so far."""
        walk = Walk(self._steps, self._index)
        if self._opaque:
            return replace(self._index.everything(), walk=walk)
        if self._sum.further:
            return replace(self._index.everything(), complete=True, walk=walk)
        sheets = self._search.sheets | {ref.sheet for ref in self._reached}
        reach = Reach(self._reached, sheets)
        return replace(self._sum.dependencies(complete=True, reach=reach), walk=walk)


def dependencies_or_doubt(cells: Sequence[tuple[str, Cell]], index: FormulaIndex) -> Dependencies:
    """The dependencies of formula cells; if a sheet cannot be read, they may depend on anything."""
    try:
        return dependencies(cells, index)
    except WorkbookError:
        total = _Sum()
        total.cells = len(cells)
        for _, cell in cells:
            total.add(cell, traits(cell.formula or ""))
        return total.dependencies(complete=False, arrays=True)
