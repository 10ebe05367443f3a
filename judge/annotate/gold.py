"""Makes the gold for a changed input, by formulas, by reference solutions, or by hand.

A *source* gives an answer. Sources are the formulas of the base case's gold, every reference
solution, and the base gold itself if the values of the input have not changed. The gold is the
answer that most independent sources give (:mod:`judge.annotate.gold_sources`). The votes are
reported, with each cell where a source differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import NamedTuple

from judge.annotate.answers import (
    MovedCell,
    ProgramRuns,
    StoredCells,
    formulas_problem,
    gold_ranges,
    judge_workbooks,
    moved_cells,
    same_content,
    value_of,
)
from judge.annotate.archive import CaseData
from judge.annotate.edit import Edited, apply_edits
from judge.annotate.edits import Edit, Formula, InsertRows, SetCell, address
from judge.annotate.gold_sources import (
    BY_HAND,
    CARRIED,
    FORMULA_DERIVATION,
    FORMULAS,
    MIN_AGREEING,
    OWN_SOURCES,
    SAME_VALUES,
    GoldSource,
    Proposal,
    Side,
    derivation_of_formulas,
    derivation_of_program,
    skeletons,
)
from judge.annotate.rows import move_formula, row_map
from judge.compare.cells.answer_range import prepare
from judge.compare.cells.value import comparator
from judge.compare.profiles import get_profile
from judge.core.limits import Limits
from judge.core.submission import Origin, Submission
from judge.core.task import Task
from judge.core.verdict import Verdict
from judge.errors import PositionError, UsageError, WorkbookError
from judge.formulas.shift import shift_formula
from judge.grading.case import CaseJudge, GradingRules
from judge.grading.running import RunOutcome
from judge.recalc.policy import Recalculator
from judge.recalc.rewrite import with_values
from judge.sandbox.contract import Sandbox
from judge.workbook.address import MAX_COLUMN, parse_window
from judge.workbook.cell import Cell, CellRange, CellRef, CellValue
from judge.workbook.editing.cells import set_cells
from judge.workbook.reader import Workbook, filling_cells, open_workbook

__all__ = [
    "BY_HAND",
    "CARRIED",
    "FORMULAS",
    "MIN_AGREEING",
    "SAME_VALUES",
    "GoldMaker",
    "GoldSource",
    "MovedCell",
    "Proposal",
    "reference_name",
]


class FormulaCheck:
    """Checks whether the formulas of golds can be relied on; each gold is computed once.

    Args:
        recalculator: computes formulas.
    """

    def __init__(self, recalculator: Recalculator) -> None:
        self._recalculator = recalculator
        self._untrue: dict[str, str] = {}

    def problem(self, task: Task, base: CaseData) -> str:
        """Why a gold's formulas cannot give the answer for another input; empty if they can."""
        try:
            return formulas_problem(task, base, ()) or self.untrue(task, base)
        except (WorkbookError, PositionError) as error:
            return error.message

    def untrue(self, task: Task, base: CaseData) -> str:
        """Why the gold's formulas are not reliable: the engines do not compute the gold's values.

        This happens to formulas that depend on the date, and to those that the engines compute
        differently from the program that saved the gold. They cannot answer for another input.
        Empty if the formulas are reliable.

        Raises:
            WorkbookError, PositionError: the gold cannot be read.
        """
        key = base.revision
        if key not in self._untrue:
            gold = base.gold_workbook
            ranges = gold_ranges(task, gold)
            computed = self._recalculator.fill(gold, ranges, origin=Origin.SOLUTION).values
            agree = comparator(get_profile("standard"))
            wrong = sorted(
                CellRef(area.sheet, cell.row, cell.column)
                for area in ranges
                for cell in gold.formula_cells(area)
                if cell.has_cached_value
                and (ref := CellRef(area.sheet, cell.row, cell.column)) in computed
                and not agree(cell.value, computed[ref])
            )
            self._untrue[key] = (
                f"the engines do not compute the gold's own value of {address(wrong[0])}"
                if wrong
                else ""
            )
        return self._untrue[key]


def with_answer(task: Task, gold: bytes, answer: Mapping[CellRef, CellValue]) -> bytes:
    """A gold with new values in its answer; answer cells without a value become blank.

    Raises:
        WorkbookError, PositionError: the gold cannot be read or changed.
    """
    workbook = open_workbook(gold)
    changes: list[SetCell] = []
    for area in gold_ranges(task, workbook):
        changes += _changes_of_values(area, workbook.cells(area), _within(answer, area))
    return set_cells(gold, [*whole_arrays(workbook, changes), *changes])


def _within(
    values: Mapping[CellRef, CellValue], area: CellRange
) -> dict[tuple[int, int], CellValue]:
    return {
        (ref.row, ref.column): value
        for ref, value in values.items()
        if ref.sheet == area.sheet
        and area.min_row <= ref.row <= area.max_row
        and area.min_column <= ref.column <= area.max_column
    }


def _changes_of_values(
    area: CellRange,
    present_cells: Mapping[tuple[int, int], Cell],
    expected: Mapping[tuple[int, int], CellValue],
) -> Iterable[SetCell]:
    """The cells to set so that an area holds the expected values, and no formulas."""
    for at in sorted(present_cells.keys() | expected.keys()):
        old, value = present_cells.get(at), expected.get(at)
        same = type(value_of(old)) is type(value) and value_of(old) == value
        if not same or (old is not None and old.formula is not None):
            yield SetCell(CellRef(area.sheet, *at), value)


def answer_changes(
    gold: Workbook,
    gold_range: CellRange,
    output: Workbook,
    output_range: CellRange,
    computed: Mapping[CellRef, CellValue],
) -> Iterable[SetCell]:
    """The cells to set so that one range of a gold holds the answer of an output."""
    present_cells = gold.cells(gold_range)
    expected: dict[tuple[int, int], CellValue] = {
        position: cell.value for position, cell in output.cells(output_range).items()
    }
    expected |= _within(computed, output_range)
    yield from _changes_of_values(gold_range, present_cells, expected)


def whole_arrays(gold: Workbook, changes: Sequence[SetCell]) -> list[SetCell]:
    """Additional cells to set, because an array formula can only be replaced as a whole."""
    edits: list[SetCell] = []
    set_already = {change.ref for change in changes}
    for sheet in {change.ref.sheet for change in changes}:
        for source in filling_cells(gold, sheet):
            window = parse_window((source.array_range or "").replace("$", ""))
            if window is None or not any(
                window.holds(edit.row, edit.column) for edit in set_already if edit.sheet == sheet
            ):
                continue
            area = CellRange(
                sheet, window.min_row, window.min_column, window.max_row, window.max_column
            )
            present_cells = gold.cells(area)
            edits += [
                SetCell(ref, value_of(present_cells.get((row, column))))
                for row in range(area.min_row, area.max_row + 1)
                for column in range(area.min_column, area.max_column + 1)
                if (ref := CellRef(sheet, row, column)) not in set_already
            ]
    return edits


def filled_down(gold: Workbook, edits: Sequence[Edit]) -> list[SetCell]:
    """The formulas for an inserted row, in columns with the same formula above and below it."""
    inserted = [edit for edit in edits if isinstance(edit, InsertRows)]
    if len(inserted) != 1 or inserted[0].count != 1 or inserted[0].row < 2:
        return []
    sheet, row = inserted[0].sheet, inserted[0].row
    edited = {edit.ref for edit in edits if isinstance(edit, SetCell)}
    pair = gold.cells(CellRange(sheet, row - 1, 1, row, MAX_COLUMN))
    rows = row_map(row, 1)
    cell_edits = []
    for (above_row, column), cell in pair.items():
        below = pair.get((row, column))
        ref = CellRef(sheet, row, column)
        if above_row != row - 1 or cell.formula is None or below is None or ref in edited:
            continue
        if below.formula is None or shift_formula(cell.formula, 1, 0) != below.formula:
            continue
        # The row below has moved down by one, and its references are already updated.
        moved = move_formula(below.formula[1:], sheet, sheet, rows)
        cell_edits.append(SetCell(ref, Formula(shift_formula(moved, -1, 0)), cell.style))
    return cell_edits


class _Vote(NamedTuple):
    """What the sources of an answer give together.

    Attributes:
        gold: the workbook of the winning side; None if no side has won.
        sources: all sources; the one that gave the gold comes first.
        sides: the sides, the winner first; empty if no side has won.
    """

    gold: bytes | None
    sources: tuple[GoldSource, ...]
    sides: tuple[Side, ...]


class GoldMaker:
    """Makes golds.

    Args:
        recalculator: computes formulas.
        sandbox: runs reference solutions; None if there are none.
        rules: how two answers are compared with each other.
        limits: limits of each run.
    """

    def __init__(
        self,
        recalculator: Recalculator,
        sandbox: Sandbox | None,
        *,
        rules: GradingRules | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._recalculator = recalculator
        self._sandbox = sandbox
        self._judge = CaseJudge(recalculator, rules or GradingRules(get_profile("standard")))
        self._limits = limits or Limits()
        self._formulas_checked = FormulaCheck(recalculator)

    @property
    def recalculator(self) -> Recalculator:
        """The recalculator."""
        return self._recalculator

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox that runs programs."""
        assert self._sandbox is not None, "programs were given without a sandbox"
        return self._sandbox

    def formulas_say_nothing(self, task: Task, base: CaseData) -> str:
        """Why the gold's formulas cannot compute golds for other inputs; empty if they can."""
        return self._formulas_checked.problem(task, base)

    def answer_in(self, task: Task, gold: bytes, output: bytes) -> bytes | None:
        """A gold that has the answer of an output; None if the output has no answer."""
        return self._gold_of(task, gold, GoldSource("", data=output))[0]

    def propose(
        self,
        task: Task,
        base: CaseData,
        edits: Sequence[Edit],
        *,
        references: Sequence[Submission] = (),
        answers: Sequence[SetCell] = (),
        edited: Edited | None = None,
        runs: ProgramRuns | None = None,
        same_values: bool = False,
        carried_answer: Mapping[CellRef, CellValue] | None = None,
        is_certain: bool = False,
        decide: str = "",
    ) -> Proposal:
        """The gold that follows from some edits of a case's input.

        Args:
            task: the task.
            base: the case that the edits begin from.
            edits: changes of its input.
            references: solutions that are known to be right.
            answers: cells of the gold that are set by hand, whatever answer the sources give.
            edited: the input with these edits, if they were already applied; the references and
                the proposed case get exactly this file.
            runs: runs the references; None to open sessions only for this call.
            same_values: whether the edits change only how values are stored; if so, the base gold
                is a source too.
            carried_answer: the values of the answer that follow by a relation from the answer of
                the base case; they are a source too.
            is_certain: whether the relation takes precedence over the gold's formulas.
            decide: name of the source whose side gives the gold; if empty, the side with the most
                independent sources gives it.

        Raises:
            UsageError: no source of the name in ``decide`` gives an answer.
            WorkbookError: the workbooks cannot be read or the edits do not fit.
            SandboxError: the sandbox failed.
        """
        if edited is None:
            edited = apply_edits(base.input, edits, recalculator=self._recalculator)
        problem = self._problem_of_formulas(task, base, edits)
        if problem and not (references or answers or same_values or carried_answer is not None):
            unknown = (GoldSource(FORMULAS, problem),)
            return Proposal(edited.data, None, unknown, notes=edited.notes)
        carried, kept_back = self._carry(base, edits)
        notes = (*edited.notes, *kept_back)
        sources = [GoldSource(FORMULAS, problem) if problem else self._by_formulas(task, carried)]
        if same_values:
            sources.append(GoldSource(SAME_VALUES, data=carried, derivation=SAME_VALUES))
        if carried_answer is not None:
            source = _by_carrying(task, carried, carried_answer)
            sources.insert(0 if is_certain else len(sources), source)
        if references:
            sources += self._by_references(task, references, edited.data, carried, runs)
        vote = self._vote(task, carried, sources, decide, is_certain=is_certain)
        gold = vote.gold
        if answers:
            gold = apply_edits(gold or carried, answers, recalculator=self._recalculator).data
        if gold is None:
            return Proposal(edited.data, None, vote.sources, notes=notes)
        return Proposal(
            edited.data,
            gold,
            tuple(self._judged(task, gold, source) for source in vote.sources),
            moved_cells(task, base.gold_workbook, gold, self._recalculator),
            notes,
            vote.sides,
            decide,
        )

    # -- the vote of the sources ------------------------------------------------------------------

    def _vote(
        self,
        task: Task,
        carried: bytes,
        sources: Sequence[GoldSource],
        decide: str,
        *,
        is_certain: bool,
    ) -> _Vote:
        sources, golds = self._with_golds(task, carried, sources)
        sides = self._sides(task, sources, golds)
        if not is_certain:
            sides, sources = _with_kept_relations(sides, sources)
        winner = _winner(sides, sources, decide)
        if not winner:
            return _Vote(None, tuple(sources), ())
        first = winner[0]
        others = (source for number, source in enumerate(sources) if number != first)
        return _Vote(
            golds[first],
            (sources[first], *others),
            tuple(
                _side(side, sources)
                for side in [winner, *(side for side in sides if side is not winner)]
            ),
        )

    def _with_golds(
        self, task: Task, carried: bytes, sources: Sequence[GoldSource]
    ) -> tuple[list[GoldSource], dict[int, bytes]]:
        """All sources, with reasons for missing answers; and index of a source -> its gold."""
        distinct: list[GoldSource] = []
        golds: dict[int, bytes] = {}
        for number, source in enumerate(sources):
            gold, problem = (
                self._gold_of(task, carried, source)
                if source.data is not None
                else (None, source.problem)
            )
            if gold is None:
                distinct.append(GoldSource(source.name, problem))
            else:
                golds[number] = gold
                distinct.append(source)
        return distinct, golds

    def _sides(
        self, task: Task, sources: Sequence[GoldSource], golds: Mapping[int, bytes]
    ) -> list[list[int]]:
        """The sides, each as the indices of sources that agree, ordered by their first sources."""
        sides: list[list[int]] = []
        for number in golds:
            for side in sides:
                if self._judged(task, golds[side[0]], sources[number]).agrees:
                    side.append(number)
                    break
            else:
                sides.append([number])
        return sides

    # -- the base gold with the edits -------------------------------------------------------------

    def _carry(self, base: CaseData, edits: Sequence[Edit]) -> tuple[bytes, list[str]]:
        """Applies edits to the cells that base gold and input share; also returns notes."""
        before = StoredCells(base.input_workbook)
        gold = StoredCells(base.gold_workbook)
        kept: list[Edit] = []
        left: list[CellRef] = []
        for edit in edits:
            if isinstance(edit, SetCell) and not same_content(before, gold, edit.ref):
                left.append(edit.ref)
            else:
                kept.append(edit)
        notes = []
        if left:
            notes.append(
                f"{len(left)} changed cells differ in the gold and were not changed there, the "
                f"first is {address(left[0])}"
            )
        try:
            filled = filled_down(base.gold_workbook, kept)
            data = apply_edits(base.gold, [*kept, *filled], recalculator=self._recalculator).data
        except WorkbookError as error:
            data = base.gold
            notes.append(f"the gold outside the answer was left unchanged: {error.message}")
        return data, notes

    # -- sources ----------------------------------------------------------------------------------

    def _problem_of_formulas(self, task: Task, base: CaseData, edits: Sequence[Edit]) -> str:
        """Why the gold's formulas cannot compute the gold after some edits; empty if they can."""
        try:
            return formulas_problem(task, base, edits) or self._formulas_checked.untrue(task, base)
        except (WorkbookError, PositionError) as error:
            return error.message

    def _by_formulas(self, task: Task, carried: bytes) -> GoldSource:
        try:
            workbook = open_workbook(carried)
            ranges = gold_ranges(task, workbook)
            # Formulas that depend on the edits were computed; the others have published values.
            computed = self._recalculator.fill(workbook, ranges, origin=Origin.GOLD)
        except (WorkbookError, PositionError) as error:
            return GoldSource(FORMULAS, error.message)
        if computed.not_calculated:
            ref, why = min(computed.not_calculated.items())
            return GoldSource(FORMULAS, f"{address(ref)} cannot be computed: {why}")
        data = with_values(carried, computed.values, date_1904=workbook.facts.date_1904)
        return GoldSource(FORMULAS, data=data, derivation=FORMULA_DERIVATION)

    def _by_references(
        self,
        task: Task,
        references: Sequence[Submission],
        input_data: bytes,
        carried: bytes,
        runs: ProgramRuns | None,
    ) -> list[GoldSource]:
        names = reference_names(references)
        with (
            ProgramRuns(self.sandbox, self._limits) if runs is None else nullcontext(runs)
        ) as open_runs:
            open_runs.start(references, input_data)
            sources = [
                _answer_as_source(open_runs.outcome(reference, input_data), name)
                for reference, name in zip(references, names, strict=True)
            ]
        return [
            replace(source, derivation=_derivation(task, reference, source.data, carried))
            for reference, source in zip(references, sources, strict=True)
        ]

    def _gold_of(self, task: Task, carried: bytes, source: GoldSource) -> tuple[bytes | None, str]:
        """The gold workbook that a source gives, or why the source gives none."""
        assert source.data is not None
        if source.name in OWN_SOURCES:
            return source.data, ""
        try:
            output = open_workbook(source.data)
            gold = open_workbook(carried)
            plan = prepare(
                task.checker,
                gold=gold,
                output=output,
            )
            if plan.options.style:
                # Formats cannot be copied cell by cell, so the whole output becomes the gold.
                return self._with_own_values(output, plan.output_ranges), ""
            missing = [area for area in plan.output_ranges if area is None]
            if missing:
                return None, "the output lacks a sheet of the answer"
            areas = [area for area in plan.output_ranges if area is not None]
            computed = self._recalculator.fill(output, areas, origin=Origin.SOLUTION)
            if computed.not_calculated:
                ref, why = min(computed.not_calculated.items())
                return None, f"{address(ref)} cannot be computed: {why}"
            changes: list[SetCell] = [
                change
                for gold_range, output_range in zip(plan.gold_ranges, areas, strict=True)
                for change in answer_changes(
                    gold, gold_range, output, output_range, computed.values
                )
            ]
            return set_cells(carried, [*whole_arrays(gold, changes), *changes]), ""
        except (WorkbookError, PositionError) as error:
            return None, error.message

    def _with_own_values(self, output: Workbook, ranges: Iterable[CellRange | None]) -> bytes:
        areas = [area for area in ranges if area is not None]
        computed = self._recalculator.fill(output, areas, origin=Origin.SOLUTION)
        return with_values(output.data, computed.values, date_1904=output.facts.date_1904)

    def _judged(self, task: Task, gold: bytes, source: GoldSource) -> GoldSource:
        if source.data is None:
            return source
        if source.data == gold:
            return replace(source, agrees=True)
        own = source.name in OWN_SOURCES
        origin = Origin.FINISHED if own else Origin.SOLUTION
        judgement = judge_workbooks(self._judge, task, gold, source.data, origin=origin)
        if judgement.error is not None:
            raise judgement.error
        if judgement.verdict is Verdict.AC:
            return replace(source, agrees=True)
        return replace(
            source, problem=judgement.cause, agrees=False, comparison=judgement.comparison
        )


def _by_carrying(task: Task, carried: bytes, answer: Mapping[CellRef, CellValue]) -> GoldSource:
    return GoldSource(CARRIED, data=with_answer(task, carried, answer), derivation=CARRIED)


def _answer_as_source(outcome: RunOutcome, name: str) -> GoldSource:
    if outcome.answer is None:
        return GoldSource(name, f"{outcome.verdict}: {outcome.cause}")
    return GoldSource(name, data=outcome.answer.data)


def reference_name(reference: Submission) -> str:
    """The name of a reference solution in records and messages."""
    return reference.label or f"{reference.model or 'solution'} #{reference.sample}"


def reference_names(references: Sequence[Submission]) -> list[str]:
    """A name for each reference; equal names are numbered."""
    names = [reference_name(reference) for reference in references]
    return [
        name if names.count(name) == 1 else f"{name} ({names[: index + 1].count(name)})"
        for index, name in enumerate(names)
    ]


def _derivation(task: Task, reference: Submission, output: bytes | None, carried: bytes) -> str:
    if output is None:
        return ""
    try:
        written, gold = open_workbook(output), open_workbook(carried)
        plan = prepare(task.checker, gold=gold, output=written)
        derivation = derivation_of_formulas(
            skeletons(written, plan.output_ranges), skeletons(gold, plan.gold_ranges)
        )
    except (WorkbookError, PositionError):
        derivation = ""
    return derivation or derivation_of_program(reference)


def _with_kept_relations(
    sides: list[list[int]], sources: list[GoldSource]
) -> tuple[list[list[int]], list[GoldSource]]:
    """Drops the carried answer if other sources give answers but none agrees with it.

    A relation that no other source confirms does not hold for this question.
    """
    if len(sides) < 2:
        return sides, sources
    sides = [side for side in sides if [sources[at].name for at in side] != [CARRIED]]
    numbers_kept = {number for side in sides for number in side}
    return sides, [
        source
        if number in numbers_kept or source.name != CARRIED
        else GoldSource(CARRIED, data=source.data)
        for number, source in enumerate(sources)
    ]


def _winner(sides: Sequence[list[int]], sources: Sequence[GoldSource], decide: str) -> list[int]:
    """The side whose answer becomes the gold: the chosen side, or the one with the most sources."""
    if decide:
        for side in sides:
            if any(sources[number].name == decide for number in side):
                return side
        names = [sources[number].name for side in sides for number in side]
        raise UsageError(
            f"no source {decide!r} gives an answer",
            hint=f"These do: {', '.join(names) or 'none'}.",
        )
    return max(sides, key=lambda side: _side(side, sources).independent, default=[])


def _side(numbers: Sequence[int], sources: Sequence[GoldSource]) -> Side:
    chosen = [sources[number] for number in numbers]
    return Side(
        tuple(source.name for source in chosen),
        len({source.derivation or source.name for source in chosen}),
    )
