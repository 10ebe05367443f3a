"""Dynamic correctness: whether the answer follows, as the gold's does, if an input is changed.

The same change is put into the gold and into the output, and the answer is computed again in both.
Changes come from the other cases of the task, as long as they are the same workbook with other
values: then it is known what the gold has to become. A task without such a case has single numbers
and dates changed, one at a time. Text that is looked up, compared or grouped is not changed then.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from judge.compare.cells.changes import ENOUGH, Change, NoChangeError, case_change, value_changes
from judge.compare.cells.comparison import Dynamic
from judge.compare.cells.dynamic_finding import (
    DynamicFinding,
    Reason,
    Trial,
    kind_of,
)
from judge.compare.cells.requested_formula import Asked, new_formulas
from judge.compare.cells.sides import RangeSide, ScopeSources
from judge.compare.cells.value import comparator
from judge.compare.profiles import Profile
from judge.core.submission import Origin
from judge.errors import WorkbookError
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, cell_key, parse_window
from judge.workbook.cell import CellRange, CellRef, CellValue, ErrorValue
from judge.workbook.dependency import Dependencies, FormulaIndex, dependencies_or_doubt
from judge.workbook.editing.cells import set_cells
from judge.workbook.editing.contents import SetCell
from judge.workbook.reader import Workbook, filling_cells, open_workbook, sheet_formulas

if TYPE_CHECKING:
    from judge.compare.cells.computing import Compute

_MAX_ALONE = 2_000
"""How many formulas are followed one by one if some of them change by themselves."""

_EXTERNAL = re.compile(r"\[\d+\]")
"""How a formula names another workbook."""

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
    asked: Asked,
) -> DynamicFinding:
    """Changes inputs in gold and output, and computes the answer of both again.

    Args:
        sources: the input, and the other cases of the task.
        gold: the gold workbook.
        output: the output workbook; it may be hostile.
        ranges: rectangles of the answer in the gold, and in the output.
        profile: the rules by which values agree.
        compute: computes formulas.
        asked: what the question asks for.

    Raises:
        WorkbookError: a workbook cannot be read.
        RecalcError: an engine cannot be started.
    """
    try:
        return _Measure(sources, gold, output, ranges, profile, compute, asked).finding()
    except _NotMeasurable as why:
        return DynamicFinding(Dynamic.NOT_MEASURABLE, str(why), asked)


class _NotMeasurable(Exception):  # noqa: N818  a reason, and no error
    pass


@dataclass(frozen=True, slots=True)
class _Values:
    """The computed answer of a workbook: values by cell, and cells without a known value."""

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
        asked: Asked,
    ) -> None:
        if sources.before is None:
            raise _NotMeasurable(sources.problem)
        if profile.unordered_rows:
            raise _NotMeasurable(Reason.UNORDERED)
        self._before, self._others = sources.before, sources.others
        self._gold, self._output, self._asked = gold, output, asked
        self._pairs = [(one, two) for one, two in zip(*ranges, strict=True) if two is not None]
        self._answer = [one for one, _ in self._pairs]
        self._compute = compute
        self._agree = comparator(
            profile, expected_1904=gold.date_1904, actual_1904=output.date_1904
        )
        gold_1904, output_1904 = gold.date_1904, output.date_1904
        self._gold_agrees = comparator(profile, expected_1904=gold_1904, actual_1904=gold_1904)
        self._output_agrees = comparator(
            profile, expected_1904=output_1904, actual_1904=output_1904
        )

    def finding(self) -> DynamicFinding:
        """The class of the output."""
        cells, rests_on = self._formulas()
        first, last = self._computed(self._gold, own=True), self._computed(self._output, own=False)
        known = [c for c in cells if c not in first.unknown and c not in last.unknown]
        if not known:
            raise _NotMeasurable(Reason.NOT_COMPUTED)
        eligible = [c for c in known if self._agree(first.values.get(c), last.values.get(c))]
        if not eligible:
            raise _NotMeasurable(Reason.WRONG_BEFORE)
        problems: list[str] = []
        trials = list(self._case_trials(eligible, first, last, problems))
        if not trials:
            trials = list(self._value_trials(eligible, first, last, rests_on, problems))
        if not trials:
            raise _NotMeasurable(problems[0] if problems else Reason.NO_INPUT)
        return DynamicFinding(kind_of(trials), "", self._asked, len(eligible), tuple(trials))

    # -- what can be measured --------------------------------------------------------------------

    def _formulas(self) -> tuple[list[_Place], list[Dependencies]]:
        """Cells of the answer with a formula that the input lacks, and what they depend on."""
        index = FormulaIndex(self._gold.sheet_names, functools.partial(sheet_formulas, self._gold))
        rests_on: list[Dependencies] = []
        cells: dict[_Place, None] = {}
        found = False
        for number, area in enumerate(self._answer):
            sheet = self._gold.sheet(area.sheet)
            sources = {
                key: (area.sheet, sheet.cell(key))
                for key in new_formulas(self._before, self._gold, area)
                if (raw := sheet.raw_formula(key)) is not None and raw.kind != "dataTable"
            }
            found = found or bool(sources)
            together = dependencies_or_doubt(list(sources.values()), index)
            keys = set(sources)
            if self._is_steady(together):
                rests_on.append(together)
            else:
                # One formula may spoil it for the others.
                alone = {
                    key: dependencies_or_doubt([sources[key]], index)
                    for key in sorted(sources)[:_MAX_ALONE]
                }
                keys = {key for key, each in alone.items() if self._is_steady(each)}
                rests_on += [alone[key] for key in sorted(keys)]
            cells |= {(number, key): None for key in self._with_filled(area, keys)}
        if not found:
            raise _NotMeasurable(Reason.STATIC)
        if not cells:
            raise _NotMeasurable(Reason.CHANGING)
        return list(cells), rests_on

    def _is_steady(self, rests_on: Dependencies) -> bool:
        """Whether values stay as they are until a cell of this workbook is changed."""
        if rests_on.volatile:
            return False
        steps = rests_on.walk.steps if rests_on.walk is not None else ()
        written = (
            self._gold.sheet(ref.sheet).formula(cell_key(ref.row, ref.column)) or ""
            for ref in (step.ref for step in steps)
        )
        return not any(map(_EXTERNAL.search, written))

    def _with_filled(self, area: CellRange, keys: set[int]) -> Iterator[int]:
        """The cells, and those of the answer that their array formulas fill."""
        yield from sorted(keys)
        for source in filling_cells(self._gold, area.sheet):
            window = parse_window((source.array_range or "").replace("$", ""))
            inside = None if window is None else window.intersection(area.window)
            if inside is not None and cell_key(source.row, source.column) in keys:
                yield from (cell_key(*place) for place in inside.cells())

    def _computed(self, workbook: Workbook, *, own: bool) -> _Values:
        """The answer of a workbook; no value that a file stores with a formula counts.

        Args:
            workbook: gold or output, changed or not.
            own: whether it is the gold.
        """
        areas = [pair[0 if own else 1] for pair in self._pairs]
        computed = self._compute.fill(workbook, areas, origin=Origin.SOLUTION)
        values: dict[_Place, CellValue] = {}
        unknown: set[_Place] = set()
        for number, area in enumerate(areas):
            side = RangeSide(workbook, area, computed)
            values |= {(number, key): value for key, value in side.values().items()}
            stored = set(side.sheet.formula_keys(side.window)) - side.computed_values().keys()
            unknown |= {(number, key) for key in {*side.refused(), *stored}}
        return _Values(values, frozenset(unknown))

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
        rests_on: Sequence[Dependencies],
        problems: list[str],
    ) -> Iterator[Trial]:
        moved = 0
        holders = (self._gold, self._output)
        for change in value_changes(self._before, holders, rests_on, self._answer):
            trial = self._trial(change, cells, first, last, problems)
            if trial is not None:
                yield trial
                moved += 1
                if moved == ENOUGH:
                    return

    def _trial(
        self,
        change: Change,
        cells: Sequence[_Place],
        first: _Values,
        last: _Values,
        problems: list[str],
    ) -> Trial | None:
        """What a change does; None, and the reason, if it says nothing."""
        try:
            gold = change.made_in(self._gold)
            output = gold if self._output is self._gold else change.made_in(self._output)
        except WorkbookError as error:
            problems.append(error.message)
            return None
        here, there = self._computed(gold, own=True), self._computed(output, own=False)
        if not self._is_valid(change, first, here):
            problems.append("the changed gold is not the gold of the changed input")
            return None
        moving = {
            c for c in cells if not self._gold_agrees(first.values.get(c), here.values.get(c))
        }
        unknown = here.unknown | there.unknown
        moved = moving - unknown
        if not moved:
            problems.append(Reason.NOT_COMPUTED if moving else Reason.NOTHING_MOVED)
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
                _sort(value) == _sort(here.values.get(place))
                for place, value in first.values.items()
            )
        if any(area.sheet not in change.expected.sheet_names for area in self._answer):
            return False
        expected = self._stored(change.expected)
        places = expected.values.keys() | here.values.keys()
        return not expected.unknown and all(
            place in here.unknown
            or self._gold_agrees(expected.values.get(place), here.values.get(place))
            for place in places
        )

    def _stored(self, gold: Workbook) -> _Values:
        """The answer of another case's gold, whose values are trusted as everywhere."""
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
        """Cells of the output's answer that hold a formula, or are filled by one."""
        found: set[_Place] = set()
        for number, (area, placed) in enumerate(self._pairs):
            down, right = placed.min_row - area.min_row, placed.min_column - area.min_column
            keys = set(self._output.sheet(placed.sheet).formula_keys(placed.window))
            for source in filling_cells(self._output, placed.sheet):
                window = parse_window((source.array_range or "").replace("$", ""))
                inside = None if window is None else window.intersection(placed.window)
                keys |= {cell_key(*place) for place in inside.cells()} if inside else set()
            found |= {
                (number, cell_key((key >> COLUMN_BITS) - down, (key & COLUMN_MASK) - right))
                for key in keys
            }
        return frozenset(found)


def constant_answer(
    workbook: Workbook, ranges: Sequence[CellRange], compute: Compute
) -> Workbook | None:
    """A workbook with the values of its answer in place of formulas, as someone who types answers.

    Args:
        workbook: the workbook.
        ranges: rectangles of the answer.
        compute: computes formulas.

    Returns:
        The other workbook; None if a value could not be computed, or a cell cannot be set.

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
    """What sort of value it is; an error is one of its own, by its code."""
    if isinstance(value, ErrorValue):
        return value.code
    if value is None or value == "":
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float
    return type(value)
