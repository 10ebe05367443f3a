"""Compares the answer range of an output with the same range of its gold.

:func:`prepare` finds and reads the cells, :func:`check` compares them. In between, the caller may
compute formulas: the values that it passes in replace those in the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from judge.compare.cells.comparison import (
    Comparison,
    Differences,
    GroupsVerdict,
    with_erased_content,
)
from judge.compare.cells.options import FAIL, GROUPS, CheckOptions, position_of
from judge.compare.cells.range_check import (
    ask_conditions,
    compare_range,
    differing_keys,
    group_cells,
    judge_groups,
)
from judge.compare.cells.sides import NO_ANSWERS, ConditionAnswers, ConditionQuestions, Side
from judge.compare.cells.value import Agree, comparator
from judge.compare.profiles import Profile, get_profile
from judge.compare.published.spreadsheetbench import check_officially, officially_equal
from judge.core.task import CheckerSpec
from judge.errors import UsageError
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, WHOLE_SHEET, Window, cell_name
from judge.workbook.cell import CellRange, CellValue, ComputedValues
from judge.workbook.position import Position, SheetIndex, parse_position, resolve_position
from judge.workbook.reader import Workbook

# -- what a solution changed outside the answer range ----------------------------------------------


def find_touched(
    before: Workbook, output: Workbook, answer: Sequence[CellRange], differences: Differences
) -> int:
    """Adds the cells that a solution changed outside the answer range to the differences.

    A formula with unchanged text is untouched, whatever value is stored with it: programs that
    write workbooks often drop the values. Everything else is compared with the input strictly.

    Args:
        before: the input workbook.
        output: the output workbook.
        answer: rectangles of the output that the solution was meant to change.
        differences: receives the cells that were changed.

    Returns:
        How many cells were changed; for a sheet that was removed, all its cells.

    Raises:
        WorkbookError: a sheet cannot be read.
    """
    touched = 0
    agree = comparator(get_profile("strict"))
    for name in before.sheet_names:
        windows = [part.window for part in answer if part.sheet == name]
        if name not in output.sheet_names:
            lost = [key for key in _values(before, name) if not _within(key, windows)]
            touched += len(lost)
            differences.note_touched(name, "", f"the sheet {name!r} is gone")
            continue
        for key in _changed(before, output, name, agree):
            if not _within(key, windows):
                touched += 1
                _note_touched(before, output, name, key, differences)
    return touched


def _values(workbook: Workbook, sheet: str) -> Mapping[int, CellValue]:
    return workbook.sheet(sheet).values(WHOLE_SHEET)


def _changed(before: Workbook, output: Workbook, name: str, agree: Agree) -> list[int]:
    first, second = before.sheet(name), output.sheet(name)
    changed = set(differing_keys(first.values(WHOLE_SHEET), second.values(WHOLE_SHEET), agree))
    formulas = {*first.formula_keys(WHOLE_SHEET), *second.formula_keys(WHOLE_SHEET)}
    for key in formulas:
        if first.formula(key) == second.formula(key):
            changed.discard(key)
        else:
            changed.add(key)
    return sorted(changed)


def _note_touched(
    before: Workbook, output: Workbook, name: str, key: int, differences: Differences
) -> None:
    first, second = before.sheet(name), output.sheet(name)
    differences.note_touched(
        name,
        cell_name(key >> COLUMN_BITS, key & COLUMN_MASK),
        "outside the answer range",
        expected=_values(before, name).get(key),
        actual=_values(output, name).get(key),
        expected_formula=first.formula(key),
        actual_formula=second.formula(key),
    )


def _within(key: int, windows: Iterable[Window]) -> bool:
    row, column = key >> COLUMN_BITS, key & COLUMN_MASK
    return any(window.holds(row, column) for window in windows)


# -- the answer range ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plan:
    """The cells to compare, and the options for it.

    Attributes:
        answer_position: the position as the suite writes it.
        gold_ranges: rectangles of the gold.
        output_ranges: the same rectangles of the output, in the same order; None if the output
            lacks the sheet. Empty for a plan without an output.
        notes: how the judge interpreted an inexact position.
        options: the options of the task's checker.
    """

    answer_position: str
    gold_ranges: tuple[CellRange, ...]
    output_ranges: tuple[CellRange | None, ...]
    notes: tuple[str, ...]
    options: CheckOptions


def prepare(
    spec: CheckerSpec,
    *,
    gold: Workbook,
    output: Workbook | None,
    typed: bool = False,
) -> Plan:
    """Finds the cells that are to be compared, as :func:`planned` does, and reads them.

    Raises:
        PositionError: as for :func:`planned`.
        WorkbookError: the cells of a workbook cannot be read.
        UsageError: as for :func:`planned`.
    """
    plan = planned(spec, gold=gold, output=output, typed=typed)
    gold.preload(plan.gold_ranges)
    if output is not None:
        output.preload(ranged for ranged in plan.output_ranges if ranged is not None)
    return plan


def planned(
    spec: CheckerSpec,
    *,
    gold: Workbook,
    output: Workbook | None,
    typed: bool = False,
) -> Plan:
    """Finds the cells that are to be compared, without reading them.

    Args:
        spec: the options of the task's checker, the answer position among them.
        gold: the gold workbook.
        output: the output workbook, or None to prepare only the gold.
        typed: whether a person typed the position; see
            :func:`judge.workbook.position.resolve_position`.

    Raises:
        PositionError: the position cannot be read, or the gold has no such sheet.
        WorkbookError: a sheet whose used range the position takes cannot be read.
        UsageError: an option does not exist, or there is no answer position among them.
    """
    answer_position, answer_sheet = position_of(spec)
    options = CheckOptions.of(spec.own_options)
    position = parse_position(answer_position, answer_sheet=answer_sheet)
    resolved = resolve_position(
        position,
        _sheet_index(gold),
        None if output is None else _sheet_index(output),
        typed=typed,
    )
    if typed:
        _check_ignored(options.ignore, gold)
    return Plan(
        answer_position=answer_position,
        gold_ranges=resolved.gold_ranges,
        output_ranges=() if output is None else resolved.output_ranges,
        notes=position.notes + resolved.notes,
        options=options,
    )


def _check_ignored(ranges: Sequence[str], gold: Workbook) -> None:
    """Checks that the ranges to ignore are on sheets that exist.

    Raises:
        PositionError: a range names a sheet that does not exist.
    """
    for text in ranges:
        # Ranges to ignore follow the sheet of the range that is compared, unless they name one.
        parts = tuple(part for part in parse_position(text).parts if part.sheet is not None)
        if parts:
            resolve_position(Position(text, parts), _sheet_index(gold), None, typed=True)


def needs_input(options: CheckOptions, profile: Profile) -> bool:
    """Whether the verdict depends on the input workbook."""
    if needs_groups(options, profile):
        return True
    return not profile.published and (
        options.untouched or FAIL in {options.keep, options.collateral, options.dynamic}
    )


def needs_groups(options: CheckOptions, profile: Profile) -> bool:
    """Whether cells to change and cells to keep are counted separately."""
    return profile.groups or options.accept == GROUPS


def reports_from_input(options: CheckOptions, profile: Profile) -> bool:
    """Whether a figure next to the verdict is computed from the input workbook."""
    return not profile.published and (options.examines_scope or options.measures_figures)


def _sheet_index(workbook: Workbook) -> SheetIndex:
    return SheetIndex(
        names=workbook.sheet_names, used=lambda name: workbook.sheet(name).used_window()
    )


def wanted_conditions(
    plan: Plan, gold: Side, output: Side, *, profile: Profile, style: Sequence[str] = ()
) -> ConditionQuestions:
    """Collects the conditions of conditional formats that :func:`check` needs evaluated.

    The result is empty if no compared style depends on them, or if both sides have the same rules.
    The arguments are those of :func:`check`.

    Raises:
        WorkbookError: the conditional formats cannot be read, or there are too many.
    """
    questions = ConditionQuestions()
    style = tuple(style) or plan.options.style
    if profile.published or not style or gold.workbook is output.workbook:
        return questions
    rules = plan.options.apply_to(profile)
    for gold_range, output_range in zip(plan.gold_ranges, plan.output_ranges, strict=True):
        if output_range is not None:
            ask_conditions(
                gold.area(gold_range),
                output.area(output_range),
                rules,
                style=style,
                questions=questions,
            )
    return questions


def check(
    plan: Plan,
    gold: Side,
    output: Side,
    *,
    profile: Profile,
    style: Sequence[str] = (),
    conditions: ConditionAnswers = NO_ANSWERS,
    before: Side | None = None,
    max_differences: int = 200,
    ask_official: bool = True,
) -> Comparison:
    """Compares the cells of a plan.

    Args:
        plan: what to compare, from :func:`prepare` with both workbooks.
        gold: the gold, with the values that were computed for it.
        output: the output, with its own computed values.
        profile: what "equal" means.
        style: names of style attributes to compare in addition to the values.
        conditions: the answers to :func:`wanted_conditions`; without them, conditional formats
            that are written differently count as different.
        before: the input, for the groups of cells and for the option ``untouched``.
        max_differences: how many differences are kept; all are counted.
        ask_official: also report the published script's verdict on the two files.

    Raises:
        WorkbookError: cells that only the published script, a style or the check of untouched
            cells needs cannot be read.
        UsageError: a style attribute does not exist, or the published functions of SpreadsheetBench
            2 are needed, and the input, which they compare with, is missing.
    """
    rules = plan.options.apply_to(profile)
    style = tuple(style) or plan.options.style
    sides = _Sides(gold, output, before)
    script = _Script(plan, rules, style, sides)
    if profile.published:
        return script.check(max_differences)
    comparison = _compare_cells(plan, sides, rules, style, conditions, max_differences)
    if ask_official:
        comparison = replace(comparison, official_equal=script.verdict())
    return comparison if before is None else with_erased_content(comparison, before.workbook)


@dataclass(frozen=True, slots=True)
class _Sides:
    gold: Side
    output: Side
    before: Side | None


def _compare_cells(
    plan: Plan,
    sides: _Sides,
    rules: Profile,
    style: tuple[str, ...],
    conditions: ConditionAnswers,
    max_differences: int,
) -> Comparison:
    """Compares the cells of a plan by the judge's own rules."""
    gold, output = sides.gold, sides.output
    differences = Differences(max_differences)
    differing, remarks = _compare_ranges(plan, sides, rules, style, conditions, differences)
    notes = [*plan.notes, *_computed_notes(gold.computed, output.computed), *remarks]
    notes += [f"output: {remark}" for remark in output.workbook.remarks]
    equal = not differences.cells
    touched: int | None = None
    ruled: GroupsVerdict | None = None
    if sides.before is not None:
        ruled = _judge_groups(plan, sides.before, gold, differing, rules, style)
        if plan.options.accept == GROUPS:
            equal = ruled.accepted
            notes += ruled.notes
        if plan.options.untouched:
            answer = [area for area in plan.output_ranges if area is not None]
            touched = find_touched(sides.before.workbook, output.workbook, answer, differences)
    else:
        notes += _notes_without_input(plan.options)
    if not differences.cells and not any(map(gold.holds_values, plan.gold_ranges)):
        notes.append("the answer range of the gold is blank")
    return Comparison(
        equal=equal and not touched,
        profile=rules.name,
        ranges=plan.gold_ranges,
        cells=sum(area.size for area in plan.gold_ranges),
        differing_cells=differences.cells,
        difference_counts=differences.counts,
        differences=differences.kept,
        notes=tuple(dict.fromkeys(notes)),
        touched_cells=touched,
        groups=() if ruled is None else ruled.groups,
        shares=ruled.shares if ruled is not None and plan.options.accept == GROUPS else None,
    )


def _compare_ranges(
    plan: Plan,
    sides: _Sides,
    rules: Profile,
    style: tuple[str, ...],
    conditions: ConditionAnswers,
    differences: Differences,
) -> tuple[list[set[int] | None], list[str]]:
    """Compares the rectangles of a plan one after the other.

    Returns:
        For each rectangle the keys of the cells that differ, or None if the output lacks the
        sheet; and notes on how conditional formats were compared.
    """
    differing: list[set[int] | None] = []
    remarks: list[str] = []
    for gold_range, output_range in zip(plan.gold_ranges, plan.output_ranges, strict=True):
        if output_range is None:
            differences.add_missing_sheet(gold_range, sides.output.workbook.sheet_names)
            differing.append(None)
            continue
        differing.append(
            compare_range(
                sides.gold.area(gold_range),
                sides.output.area(output_range),
                rules,
                plan.options,
                style=style,
                differences=differences,
                conditions=conditions,
                notes=remarks,
            )
        )
    return differing, remarks


def _judge_groups(
    plan: Plan,
    before: Side,
    gold: Side,
    differing: Sequence[set[int] | None],
    rules: Profile,
    style: tuple[str, ...],
) -> GroupsVerdict:
    groups = group_cells(before, gold, plan.gold_ranges, differing, rules, plan.options, style)
    return judge_groups(groups, published=False)


@dataclass(frozen=True, slots=True)
class _Script:
    """Runs the published scripts on the same workbooks.

    The script of SpreadsheetBench 2 is used if its profile is chosen, or if the groups of cells
    decide; otherwise that of the first version.
    """

    plan: Plan
    rules: Profile
    style: tuple[str, ...]
    sides: _Sides

    def check(self, max_differences: int) -> Comparison:
        """Compares by the script of the profile.

        Raises:
            UsageError: the input is missing.
        """
        if self.rules.groups:
            return self._ssb2(max_differences)
        gold, output = self.sides.gold, self.sides.output
        return check_officially(
            self.plan.answer_position,
            gold.workbook,
            output.workbook,
            gold_computed=gold.computed,
            output_computed=output.computed,
            max_differences=max_differences,
        )

    def verdict(self) -> bool | None:
        """Whether the script accepts the output; None if it needs the input and there is none."""
        if self.plan.options.accept == GROUPS:
            return None if self.sides.before is None else self._ssb2(0).equal
        gold, output = self.sides.gold, self.sides.output
        return officially_equal(
            self.plan.answer_position,
            gold.workbook,
            output.workbook,
            gold.computed,
            output.computed,
        )

    def _ssb2(self, max_differences: int) -> Comparison:
        from judge.compare.published.spreadsheetbench2 import (  # noqa: PLC0415  few tasks
            Mode,
            check_ssb2,
        )

        if self.sides.before is None:
            raise UsageError(
                "the published functions of SpreadsheetBench 2 compare with the input workbook",
                hint="Add --input FILE.",
            )
        return check_ssb2(
            self.plan.answer_position,
            # The script reads the files themselves, not the values that were computed for other
            # rules.
            gold=Side(self.sides.gold.workbook),
            output=Side(self.sides.output.workbook),
            before=Side(self.sides.before.workbook),
            mode=Mode(formulas=self.rules.formulas, colours="font_color" in self.style),
            by_groups=self.plan.options.accept == GROUPS,
            max_differences=max_differences,
        )


def _notes_without_input(options: CheckOptions) -> list[str]:
    notes = []
    if options.untouched:
        notes.append("cells outside the answer range were not checked: that requires the input")
    if options.accept == GROUPS:
        notes.append("every cell has to agree: the rule of the task requires the input")
    return notes


def _computed_notes(gold: ComputedValues, output: ComputedValues) -> list[str]:
    notes = [f"gold: {note}" for note in gold.notes]
    if gold.values:
        notes.append(f"gold: {len(gold.values)} formula cells were computed")
    if gold.not_calculated:
        notes.append(
            f"gold: {len(gold.not_calculated)} formula cells could not be computed; "
            "the values in the file were kept"
        )
    return notes + [f"output: {note}" for note in output.notes]
