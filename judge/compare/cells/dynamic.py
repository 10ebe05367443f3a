"""Dynamic correctness: whether the answer changes with its inputs in the way the gold's does.

The same change is made in the gold and in the output, and the answer is computed again in both.
Changes come from the other cases of the task if these are the same workbook with other values.
Their golds then show what the changed gold has to be. If there is no such case, single numbers and
dates are changed, one at a time; text is then not changed, because it may be looked up, compared or
grouped.
"""

from __future__ import annotations

import functools
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from judge.compare.cells.changes import (
    ENOUGH,
    Change,
    NoChangeError,
    case_change,
    is_within,
    value_changes,
)
from judge.compare.cells.comparison import Dynamic, Reason
from judge.compare.cells.dynamic_finding import DynamicFinding, Trial, kind_of
from judge.compare.cells.requested_formula import Demand, new_formulas
from judge.compare.cells.sides import RangeSide, ScopeSources
from judge.compare.cells.value import comparator
from judge.compare.profiles import Profile
from judge.core.submission import Origin
from judge.errors import WorkbookError
from judge.formulas.lexer import Kind, Token, tokens
from judge.formulas.references import Reference, references
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, Window, cell_key, parse_window
from judge.workbook.cell import Cell, CellRange, CellRef, CellValue, ErrorValue
from judge.workbook.dependency import (
    Dependencies,
    Followed,
    FormulaIndex,
    dependencies_or_doubt,
)
from judge.workbook.editing.cells import set_cells
from judge.workbook.editing.sheet_xml import SetCell
from judge.workbook.facts.book import BookFacts
from judge.workbook.facts.references import areas_of
from judge.workbook.position import same_sheet
from judge.workbook.reader import Workbook, filling_cells, open_workbook, sheet_formulas

if TYPE_CHECKING:
    from judge.compare.cells.computing import Compute

_MAX_ALONE = 2_000
"""If some formulas are volatile, at most this many are traced separately."""

_UNCOMPUTED = frozenset(("GETPIVOTDATA", "TABLE"))
"""Functions that read data which only a spreadsheet program recomputes."""

_ELSEWHERE = frozenset(("CUBEVALUE", "RTD", "WEBSERVICE"))
"""Functions that read data from outside the workbook."""

_UNNAMED = frozenset(("INDIRECT", "OFFSET"))
"""Functions that read cells which are not named in the formula."""

_MAX_STEPS = 50_000
"""How many formulas are traced through defined names and tables."""

_MAX_LOOKS = 1_000_000
"""Largest number of pairs of formulas that are compared to find circular references."""

_Place = tuple[int, int]
"""A cell of the answer: the number of its rectangle, and its key in the gold."""


def measure_dynamic(
    sources: ScopeSources,
    gold: Workbook,
    output: Workbook,
    ranges: tuple[Sequence[CellRange], Sequence[CellRange | None]],
    *,
    profile: Profile,
    compute: Compute,
    demand: Demand,
) -> DynamicFinding:
    """Changes inputs in gold and output, and computes the answer again in both.

    Args:
        sources: the input, and the other cases of the task.
        gold: the gold workbook.
        output: the output workbook; it may be hostile.
        ranges: rectangles of the answer in the gold, and in the output.
        profile: the rules that decide whether values agree.
        compute: computes formulas.
        demand: whether the question asks for a formula.

    Raises:
        WorkbookError: a workbook cannot be read.
        RecalcError: an engine cannot be started.
    """
    try:
        return _Measure(sources, gold, output, ranges, profile, compute, demand).finding()
    except _NotMeasurable as why:
        return DynamicFinding(Dynamic.NOT_MEASURABLE, str(why), demand)


class _NotMeasurable(Exception):  # noqa: N818  a reason, and no error
    pass


@dataclass(frozen=True, slots=True)
class _Values:
    """The computed answer of a workbook: values by cell, and cells whose value is unknown."""

    values: Mapping[_Place, CellValue]
    unknown: frozenset[_Place]


class _Measure:
    def __init__(
        self,
        sources: ScopeSources,
        gold: Workbook,
        output: Workbook,
        ranges: tuple[Sequence[CellRange], Sequence[CellRange | None]],
        profile: Profile,
        compute: Compute,
        demand: Demand,
    ) -> None:
        if sources.before is None:
            raise _NotMeasurable(sources.problem)
        if profile.unordered_rows:
            raise _NotMeasurable(Reason.UNORDERED)
        self._before, self._others = sources.before, sources.others
        self._gold, self._output, self._demand = gold, output, demand
        self._pairs = [(one, two) for one, two in zip(*ranges, strict=True) if two is not None]
        self._answer = [one for one, _ in self._pairs]
        self._compute = compute
        self._output_changes: dict[CellRange, set[int]] = {}
        self._agree = comparator(
            profile, expected_1904=gold.date_1904, actual_1904=output.date_1904
        )
        gold_1904, output_1904 = gold.date_1904, output.date_1904
        self._gold_agrees = comparator(profile, expected_1904=gold_1904, actual_1904=gold_1904)
        self._output_agrees = comparator(
            profile, expected_1904=output_1904, actual_1904=output_1904
        )

    def finding(self) -> DynamicFinding:
        """Tries the changes; returns the class of the output, and the changes that show it."""
        cells, precedents = self._formulas()
        first, last = self._computed(self._gold, own=True), self._computed(self._output, own=False)
        computed = [c for c in cells if c not in first.unknown and c not in last.unknown]
        if not computed:
            raise _NotMeasurable(Reason.NOT_COMPUTED)
        eligible = [c for c in computed if self._agree(first.values.get(c), last.values.get(c))]
        if not eligible:
            raise _NotMeasurable(Reason.WRONG_BEFORE)
        problems: list[str] = []
        trials = list(self._case_trials(eligible, first, last, problems))
        if not trials:
            trials = list(self._value_trials(eligible, first, last, precedents, problems))
            trials += self._further_trials(trials, eligible, first, last, precedents, problems)
        if not trials:
            raise _NotMeasurable(_first_of(problems))
        return DynamicFinding(kind_of(trials), "", self._demand, len(eligible), tuple(trials))

    # -- what can be measured --------------------------------------------------------------------

    def _formulas(self) -> tuple[list[_Place], Precedents]:
        """Returns answer cells with a formula that the input lacks, and their precedents."""
        finder = PrecedentFinder(self._gold)
        precedents: list[Precedents] = []
        cells: dict[_Place, None] = {}
        problems: list[str] = []
        for number, area in enumerate(self._answer):
            sources = self._sources(area)
            together = finder.of(list(sources.values()))
            keys = set(sources)
            if together.problem is None:
                precedents.append(together)
            else:
                # A problem of one formula must not exclude the others.
                alone = {key: finder.of([sources[key]]) for key in sorted(sources)[:_MAX_ALONE]}
                keys = {key for key, read in alone.items() if read.problem is None}
                precedents += [alone[key] for key in sorted(keys)]
                problems.append(together.problem)
            cells |= {(number, key): None for key in self._with_filled(area, keys)}
        if not cells:
            raise _NotMeasurable(problems[0] if problems else Reason.STATIC)
        return list(cells), Precedents.of_all(precedents)

    def _sources(self, area: CellRange) -> dict[int, tuple[str, Cell]]:
        """Returns the sheet and cells of the gold's formulas in a rectangle, without the input's.

        An array formula that fills part of the rectangle may be outside of it. Data tables are left
        out, as engines do not recompute them.
        """
        sheet = self._gold.sheet(area.sheet)
        keys = set(new_formulas(self._before, self._gold, area))
        for source in filling_cells(self._gold, area.sheet):
            key = cell_key(source.row, source.column)
            if self._filled_by(source, area) and new_formulas(
                self._before, self._gold, CellRange.of(area.sheet, Window(*_corners(source)))
            ):
                keys.add(key)
        return {
            key: (area.sheet, sheet.cell(key))
            for key in sorted(keys)
            if (raw := sheet.raw_formula(key)) is not None and raw.kind != "dataTable"
        }

    def _filled_by(self, source: Cell, area: CellRange) -> Window | None:
        window = parse_window((source.array_range or "").replace("$", ""))
        return None if window is None else window.intersection(area.window)

    def _with_filled(self, area: CellRange, keys: set[int]) -> Iterator[int]:
        """Yields the cells in the answer, and the answer cells that their array formulas fill."""
        yield from (key for key in sorted(keys) if is_within(key, (area.window,)))
        for source in filling_cells(self._gold, area.sheet):
            inside = self._filled_by(source, area)
            if inside is not None and cell_key(source.row, source.column) in keys:
                yield from (cell_key(*position) for position in inside.cells())

    def _computed(self, workbook: Workbook, *, own: bool) -> _Values:
        """The answer in a workbook; values that are stored with formulas are ignored.

        Args:
            workbook: gold or output, changed or not.
            own: whether it is the gold.
        """
        areas = [pair[0 if own else 1] for pair in self._pairs]
        computed = self._compute.fill(workbook, areas, origin=Origin.SOLUTION, like=self._gold)
        values: dict[_Place, CellValue] = {}
        unknown: set[_Place] = set()
        for number, area in enumerate(areas):
            side = RangeSide(workbook, area, computed)
            values |= {(number, key): value for key, value in side.values().items()}
            formulas = set(side.sheet.formula_keys(side.window))
            stored = formulas - side.computed_values().keys()
            changing = set() if own else self._changing(area, formulas)
            unknown |= {(number, key) for key in {*side.refused(), *stored, *changing}}
        return _Values(values, frozenset(unknown))

    def _changing(self, area: CellRange, keys: set[int]) -> set[int]:
        """Returns the formula cells of the output that are volatile."""
        if area not in self._output_changes:
            sheet = self._output.sheet(area.sheet)
            finder = PrecedentFinder(self._output)
            cells = {key: (area.sheet, sheet.cell(key)) for key in sorted(keys)}
            changing: set[int] = set()
            if finder.of(list(cells.values())).problem is Reason.CHANGING:
                alone = list(cells)[:_MAX_ALONE]
                changing = set(cells) - {
                    key for key in alone if finder.of([cells[key]]).problem is not Reason.CHANGING
                }
            self._output_changes[area] = changing
        return self._output_changes[area]

    # -- changes ---------------------------------------------------------------------------------

    def _case_trials(
        self, cells: Sequence[_Place], first: _Values, last: _Values, problems: list[str]
    ) -> Iterator[Trial]:
        for other in self._others or ():
            holders = (self._gold, self._output)
            try:
                change = case_change(self._before, holders, other, self._answer)
            except NoChangeError as why:
                problems.append(str(why))
                continue
            except WorkbookError as error:
                problems.append(f"case {other.number}: {error.message}")
                continue
            trial = self._trial(change, cells, first, last, problems)
            if trial is not None:
                yield trial

    def _value_trials(
        self,
        cells: Sequence[_Place],
        first: _Values,
        last: _Values,
        precedents: Precedents,
        problems: list[str],
        besides: Sequence[CellRange] = (),
    ) -> Iterator[Trial]:
        """Tries single inputs that the formulas read, except the cells in ``besides``."""
        moved = 0
        holders = (self._gold, self._output)
        reads: dict[str, list[Window]] = {}
        for name, windows in precedents.reads.items():
            sheet = same_sheet(name, self._before.sheet_names)
            if sheet is not None:
                reads.setdefault(sheet, []).extend(windows)
        try:
            taken = [*self._answer, *besides]
            for change in value_changes(self._before, holders, reads, taken):
                trial = self._trial(change, cells, first, last, problems)
                if trial is not None:
                    yield trial
                    moved += 1
                    if moved == ENOUGH:
                        return
        except NoChangeError as why:
            problems.append(str(why))

    def _further_trials(
        self,
        trials: Sequence[Trial],
        cells: Sequence[_Place],
        first: _Values,
        last: _Values,
        precedents: Precedents,
        problems: list[str],
    ) -> Iterator[Trial]:
        """Tries inputs on which only the gold depends, if the output followed all other changes.

        Three inputs out of many say nothing about rows that do not depend on them. The trials end
        at the first change that the output does not follow.
        """
        if not trials or not all(trial.follows for trial in trials):
            return
        refs = [edit.ref for trial in trials for edit in trial.change.edits]
        besides = [CellRange.of(ref.sheet, Window(*ref[1:], *ref[1:])) for ref in refs]
        constants = set(cells) - self._output_formulas
        behind = [
            source
            for number, area in enumerate(self._answer)
            for key, source in self._sources(area).items()
            if (number, key) in constants
        ]
        formulas = [
            (placed.sheet, self._output.sheet(placed.sheet).cell(key))
            for _, placed in self._pairs
            for key in self._output.sheet(placed.sheet).formula_keys(placed.window)
        ]
        read = PrecedentFinder(self._output).of(formulas).reads.items()
        areas_read = [CellRange.of(name, window) for name, windows in read for window in windows]
        groups = (
            (PrecedentFinder(self._gold).of(behind[:_MAX_ALONE]), ()),
            (precedents, areas_read),
        )
        for group, left_out in groups:
            taken = [*besides, *left_out]
            for trial in self._value_trials(cells, first, last, group, problems, taken):
                yield trial
                if not trial.follows:
                    return

    def _trial(
        self,
        change: Change,
        cells: Sequence[_Place],
        first: _Values,
        last: _Values,
        problems: list[str],
    ) -> Trial | None:
        """Tries a change; returns None and records the reason if it shows nothing."""
        try:
            gold = change.made_in(self._gold)
            output = gold if self._output is self._gold else change.made_in(self._output)
        except WorkbookError as error:
            problems.append(error.message)
            return None
        here, there = self._computed(gold, own=True), self._computed(output, own=False)
        if not self._is_valid(change, first, here):
            problems.append(Reason.OTHER_KIND if change.case is None else Reason.OTHER_GOLD)
            return None
        moving = {
            c for c in cells if not self._gold_agrees(first.values.get(c), here.values.get(c))
        }
        unknown = here.unknown | there.unknown
        moved = moving - unknown
        if not moved:
            problems.append(Reason.NOT_COMPUTED if moving else Reason.NOTHING_MOVED)
            return None
        # A result that depends on the path of computation, such as the order of ties, shows
        # nothing.
        again = self._computed(change.undone_in(gold, self._before), own=True)
        unsteady = {
            c
            for c in cells
            if c not in again.unknown
            and not self._gold_agrees(first.values.get(c), again.values.get(c))
        }
        moved -= unsteady
        unknown |= unsteady
        if not moved:
            problems.append(Reason.NOT_REPEATED)
            return None
        agreeing = {c for c in cells if self._agree(here.values.get(c), there.values.get(c))}
        false_moves = sum(
            c not in moving
            and c not in agreeing
            and c not in unknown
            and not self._output_agrees(last.values.get(c), there.values.get(c))
            for c in cells
        )
        constants = len(moved - self._output_formulas)
        return Trial(change, len(moved), len(moved & agreeing), false_moves, constants)

    def _is_valid(self, change: Change, first: _Values, here: _Values) -> bool:
        if change.expected is None:
            return all(
                _sort(value) == _sort(here.values.get(position))
                for position, value in first.values.items()
            )
        if any(area.sheet not in change.expected.sheet_names for area in self._answer):
            return False
        expected = self._stored(change.expected)
        positions = expected.values.keys() | here.values.keys()
        return not expected.unknown and all(
            position in here.unknown
            or self._gold_agrees(expected.values.get(position), here.values.get(position))
            for position in positions
        )

    def _stored(self, gold: Workbook) -> _Values:
        """Returns the answer in another case's gold, whose stored values are trusted."""
        computed = self._compute.fill(gold, self._answer, origin=Origin.GOLD)
        values: dict[_Place, CellValue] = {}
        unknown: set[_Place] = set()
        for number, area in enumerate(self._answer):
            side = RangeSide(gold, area, computed)
            values |= {(number, key): value for key, value in side.values().items()}
            unknown |= {(number, key) for key in side.uncomputed()}
        return _Values(values, frozenset(unknown))

    @functools.cached_property
    def _output_formulas(self) -> frozenset[_Place]:
        """Returns the cells of the output's answer that hold a formula or are filled by one."""
        formula_cells: set[_Place] = set()
        for number, (area, placed) in enumerate(self._pairs):
            down, right = placed.min_row - area.min_row, placed.min_column - area.min_column
            keys = set(self._output.sheet(placed.sheet).formula_keys(placed.window))
            for source in filling_cells(self._output, placed.sheet):
                inside = self._filled_by(source, placed)
                keys |= {cell_key(*position) for position in inside.cells()} if inside else set()
            formula_cells |= {
                (number, cell_key((key >> COLUMN_BITS) - down, (key & COLUMN_MASK) - right))
                for key in keys
            }
        return frozenset(formula_cells)


def _corners(source: Cell) -> tuple[int, int, int, int]:
    return source.row, source.column, source.row, source.column


_BY_WEIGHT = (
    Reason.MOVED_INPUT,
    Reason.NOT_COMPUTED,
    Reason.NOT_REPEATED,
    Reason.NOTHING_MOVED,
)


def _first_of(problems: Sequence[str]) -> str:
    """Returns the most informative reason why no change could be tried."""
    for reason in _BY_WEIGHT:
        for problem in problems:
            if problem.startswith(reason.value):
                return problem
    return problems[0] if problems else Reason.NO_INPUT


# -- what formulas depend on -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Precedents:
    """The precedents of a set of formulas: the cells that they depend on.

    Attributes:
        reads: sheet -> the rectangles that they read, directly or through other formulas.
        problem: why the formulas cannot be measured; None if they can.
    """

    reads: Mapping[str, Sequence[Window]]
    problem: Reason | None = None

    @staticmethod
    def of_all(groups: Sequence[Precedents]) -> Precedents:
        """Merges the precedents of several sets of formulas; keeps each rectangle once."""
        reads: dict[str, dict[Window, None]] = {}
        for group in groups:
            for sheet, windows in group.reads.items():
                reads.setdefault(sheet, {}).update(dict.fromkeys(windows))
        return Precedents({sheet: list(windows) for sheet, windows in reads.items()})


class PrecedentFinder:
    """Finds the cells on which formulas depend, also through defined names and tables.

    Args:
        workbook: the workbook.
    """

    def __init__(self, workbook: Workbook) -> None:
        self._workbook = workbook
        self._facts = BookFacts(workbook)
        self._index = FormulaIndex(
            workbook.sheet_names, functools.partial(sheet_formulas, workbook)
        )

    def of(self, cells: Sequence[tuple[str, Cell]]) -> Precedents:
        """Returns the cells that formula cells depend on."""
        reads: dict[str, dict[Window, None]] = {}
        seen: set[CellRef] = set()
        todo = list(cells)
        while todo:
            dependencies = dependencies_or_doubt(todo, self._index)
            if dependencies.walk is None:
                return Precedents({}, Reason.CHANGING if dependencies.volatile else None)
            if self._is_circular(dependencies.walk.steps):
                return Precedents({}, Reason.CIRCULAR)
            todo = []
            for step in dependencies.walk.steps:
                if step.ref in seen:
                    continue
                seen.add(step.ref)
                problem = self._problem(step, dependencies)
                if problem is not None or len(seen) > _MAX_STEPS:
                    return Precedents({}, problem or Reason.NOT_COMPUTED)
                for area in self._areas(step):
                    reads.setdefault(area.sheet, {})[area.window] = None
                    # Cells that the formula reads by name were not traced.
                    todo += self._formulas_in(area, seen) if step.traits.opaque else ()
        if any(self._is_pivot(sheet, windows) for sheet, windows in reads.items()):
            return Precedents({}, Reason.NOT_RECALCULATED)
        return Precedents({sheet: list(windows) for sheet, windows in reads.items()})

    def _problem(self, step: Followed, dependencies: Dependencies) -> Reason | None:
        traits = step.traits
        # A formula that does not name its cells may depend on every other formula.
        unnamed = bool(traits.functions & _UNNAMED)
        if traits.volatile or (unnamed and dependencies.volatile):
            return Reason.CHANGING
        if traits.functions & _ELSEWHERE or _names_other_workbook(self._formula(step)):
            return Reason.CHANGING
        return Reason.NOT_RECALCULATED if traits.functions & _UNCOMPUTED else None

    def _is_circular(self, steps: Sequence[Followed]) -> bool:
        """Whether a formula reads a formula that is computed after it: a circular reference.

        If the workbook does not allow circular references, no engine has a value for them. If it
        does, values depend on the previous ones.
        """
        if not self._facts.iterates:
            return False
        order = {step.ref: number for number, step in enumerate(steps)}
        left = _MAX_LOOKS
        for number, step in enumerate(steps):
            for area in references(self._formula(step)):
                name = self._index.named(area.sheet or step.ref.sheet)
                formulas = self._index.sheet(name) if name is not None else None
                columns = formulas.between(area.min_column, area.max_column) if formulas else ()
                for column in columns:
                    rows, _ = formulas.cells[column] if formulas else ((), ())
                    low, high = bisect_left(rows, area.min_row), bisect_right(rows, area.max_row)
                    left -= high - low
                    if left < 0:
                        return False
                    refs = (CellRef(name or "", row, column) for row in rows[low:high])
                    if any(order.get(ref, -1) >= number for ref in refs):
                        return True
        return False

    def _areas(self, step: Followed) -> Iterator[CellRange]:
        """Yields the rectangles that a formula reads, by address, by defined name or as tables."""
        areas: Sequence[Reference] = step.reads
        if step.traits.opaque:
            areas = references(self._formula(step))
        for area in areas:
            sheet = self._index.named(area.sheet or step.ref.sheet)
            if sheet is not None:
                yield CellRange.of(sheet, Window(*area[1:]))
        for name in step.traits.names:
            yield from self._named(name)

    def _named(self, name: str) -> Iterator[CellRange]:
        """Yields the rectangles that a defined name or a table refers to."""
        for defined in self._facts.names:
            if defined.name.upper() == name:
                for area in areas_of(defined.refers_to.removeprefix("=")) or ():
                    sheet = self._index.named(area.sheet)
                    if sheet is not None:
                        yield replace(area, sheet=sheet)
        for tab in self._facts.tabs:
            for table in self._facts.tables(tab) if tab.is_worksheet else ():
                window = parse_window(table.place)
                if table.name.upper() == name and window is not None:
                    yield CellRange.of(tab.name, window)

    def _formulas_in(self, area: CellRange, seen: Container[CellRef]) -> list[tuple[str, Cell]]:
        return [
            (area.sheet, cell)
            for cell in sheet_formulas(self._workbook, area.sheet)
            if area.window.holds(cell.row, cell.column)
            and CellRef(area.sheet, cell.row, cell.column) not in seen
        ]

    def _formula(self, step: Followed) -> str:
        sheet = self._workbook.sheet(step.ref.sheet)
        return sheet.formula(cell_key(step.ref.row, step.ref.column)) or ""

    def _is_pivot(self, sheet: str, windows: Mapping[Window, None]) -> bool:
        """Whether one of the rectangles overlaps a pivot table."""
        tab = self._facts.tab(sheet)
        if tab is None:
            return False
        filled = [parse_window(pivot.place) for pivot in self._facts.pivots(tab)]
        return any(
            pivot_window is not None and pivot_window.intersection(window) is not None
            for pivot_window in filled
            for window in windows
        )


def _names_other_workbook(formula: str) -> bool:
    """Whether a formula names a sheet, or a name, of another workbook."""
    words = tokens(formula)
    return any(
        (word.kind is Kind.SHEET and "[" in word.text)
        or (word.kind is Kind.BRACKETS and following.text.startswith("!"))
        for word, following in zip_longest(words, words[1:], fillvalue=Token(Kind.OTHER, "", 0))
    )


def constant_answer(
    workbook: Workbook, ranges: Sequence[CellRange], compute: Compute
) -> Workbook | None:
    """Replaces the answer's formulas by their values, like someone who types in the answers.

    Args:
        workbook: the workbook.
        ranges: rectangles of the answer.
        compute: computes formulas.

    Returns:
        The changed workbook; None if a value could not be computed, or a cell cannot be set.

    Raises:
        WorkbookError: the workbook cannot be read.
        RecalcError: an engine cannot be started.
    """
    computed = compute.fill(workbook, ranges, origin=Origin.SOLUTION)
    edits = []
    for area in ranges:
        side = RangeSide(workbook, area, computed)
        values = side.values()
        if side.refused():
            return None
        keys = {*side.sheet.formula_keys(area.window), *side.computed_values()}
        edits += [
            SetCell(CellRef(area.sheet, key >> COLUMN_BITS, key & COLUMN_MASK), values.get(key))
            for key in sorted(keys)
        ]
    try:
        return open_workbook(set_cells(workbook.data, edits))
    except WorkbookError:
        return None


def _sort(value: CellValue) -> object:
    """Returns the type of a value; each error code counts as a separate type."""
    if isinstance(value, ErrorValue):
        return value.code
    if value is None or value == "":
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float
    return type(value)
