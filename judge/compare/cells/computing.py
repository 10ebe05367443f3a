"""Compares two workbooks after computing formulas and the conditions of conditional formats.

:func:`compare_files` does it in one call, :func:`compute_and_check` for a plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from judge.compare.cells.answer_range import Plan, check, needs_groups, prepare, wanted_conditions
from judge.compare.cells.comparison import Comparison
from judge.compare.cells.options import check_contradictions, range_spec
from judge.compare.cells.sides import (
    NO_ANSWERS,
    ConditionAnswers,
    ConditionQuestions,
    ScopeSources,
    Side,
)
from judge.compare.profiles import Profile, get_profile
from judge.core.submission import Origin
from judge.workbook.budget import DEFAULT_LIMITS, ReadLimits
from judge.workbook.cell import NOTHING_COMPUTED, CellRange, ComputedValues
from judge.workbook.reader import Workbook, open_workbook, workbooks_kept


class Compute(Protocol):
    """Computes formulas for a comparison."""

    def fill(
        self,
        workbook: Workbook,
        ranges: Sequence[CellRange],
        *,
        origin: Origin,
        like: Workbook | None = None,
    ) -> ComputedValues:
        """Computes the formula cells in the given ranges that have no trustworthy stored value.

        Args:
            workbook: an open workbook.
            ranges: rectangles on its sheets.
            origin: where the workbook comes from.
            like: the gold of an output, whose stored values show how its formulas are read; see
                :mod:`judge.recalc.region`.

        Raises:
            WorkbookError: the ranges cannot be read.
            RecalcError: an engine cannot be started.
        """
        ...

    def answer_conditions(
        self, questions: ConditionQuestions, gold: Workbook, output: Workbook, *, origin: Origin
    ) -> ConditionAnswers:
        """Finds out which conditions of conditional formats hold.

        Raises:
            RecalcError: an engine cannot be started.
        """
        ...


class NoEngines:
    """Computes nothing: formulas have the values that are stored in the files."""

    def fill(
        self,
        workbook: Workbook,  # noqa: ARG002
        ranges: Sequence[CellRange],  # noqa: ARG002
        *,
        origin: Origin,  # noqa: ARG002
        like: Workbook | None = None,  # noqa: ARG002
    ) -> ComputedValues:
        """Returns no computed values."""
        return NOTHING_COMPUTED

    def answer_conditions(
        self,
        questions: ConditionQuestions,  # noqa: ARG002
        gold: Workbook,  # noqa: ARG002
        output: Workbook,  # noqa: ARG002
        *,
        origin: Origin,  # noqa: ARG002
    ) -> ConditionAnswers:
        """Returns no answers."""
        return NO_ANSWERS


@dataclass(frozen=True, slots=True)
class Computed:
    """A comparison, with the values that were computed for it.

    Attributes:
        comparison: the comparison.
        gold: computed values of the gold.
        output: computed values of the output.
        conditions: which conditions of conditional formats hold.
    """

    comparison: Comparison
    gold: ComputedValues
    output: ComputedValues
    conditions: ConditionAnswers


def _computed(
    side: Side,
    areas: Iterable[CellRange | None],
    compute: Compute,
    origin: Origin,
    like: Workbook | None = None,
) -> Side:
    """The same side with computed values in some of its rectangles."""
    present = [area for area in areas if area is not None]
    return Side(side.workbook, compute.fill(side.workbook, present, origin=origin, like=like))


def compute_and_check(
    plan: Plan,
    gold: Workbook,
    output: Workbook,
    *,
    compute: Compute,
    origin: Origin,
    profile: Profile,
    style: Sequence[str] = (),
    before: Workbook | None = None,
    sources: ScopeSources | None = None,
    max_differences: int = 200,
    gold_origin: Origin = Origin.GOLD,
) -> Computed:
    """Compares two workbooks after computing what their answer ranges and styles depend on.

    Args:
        plan: what is compared, from :func:`judge.compare.cells.answer_range.prepare`.
        gold: the gold workbook.
        output: the output workbook.
        compute: computes formulas.
        origin: where the output comes from.
        profile: what "equal" means.
        style: names of style attributes to compare in addition to the values.
        before: the input workbook, for the option ``untouched`` and for the groups of cells.
        sources: input, question and other cases for the options of scope and of figures; None to
            use only ``before``, without a question.
        max_differences: how many differences are kept; all are counted.
        gold_origin: where the gold comes from; stored values of a changed gold are not trusted.

    Raises:
        WorkbookError: cells of a workbook cannot be read.
        RecalcError: an engine cannot be started.
        UsageError: there is no such style attribute.
    """
    gold_side, output_side = Side(gold), Side(output)
    before_side = None if before is None else Side(before)
    if not (profile.reads_stored_values or plan.options.apply_to(profile).formulas):
        gold_side = _computed(gold_side, plan.gold_ranges, compute, gold_origin)
        like = gold if gold_origin is Origin.GOLD else None
        output_side = _computed(output_side, plan.output_ranges, compute, origin, like)
        if before_side is not None and needs_groups(plan.options, profile):
            areas = map(before_side.counterpart, plan.gold_ranges)
            before_side = _computed(before_side, areas, compute, Origin.GOLD)
    questions = wanted_conditions(plan, gold_side, output_side, profile=profile, style=style)
    conditions = NO_ANSWERS
    if not questions.is_empty:
        conditions = compute.answer_conditions(questions, gold, output, origin=origin)
    comparison = check(
        plan,
        gold_side,
        output_side,
        profile=profile,
        style=style,
        conditions=conditions,
        before=before_side,
        max_differences=max_differences,
    )
    if not profile.published:
        scope_sources = sources or ScopeSources(before)
        comparison = _with_options(
            comparison, plan, scope_sources, gold, output, profile, compute, max_differences
        )
    return Computed(comparison, gold_side.computed, output_side.computed, conditions)


def _with_options(
    comparison: Comparison,
    plan: Plan,
    sources: ScopeSources,
    gold: Workbook,
    output: Workbook,
    profile: Profile,
    compute: Compute,
    max_differences: int,
) -> Comparison:
    """Returns the comparison with the results of the options of scope and of figures."""
    options, ranges = plan.options, (plan.gold_ranges, plan.output_ranges)
    if options.examines_scope:
        # The module reads charts, names, rules and more, which no other comparison needs.
        from judge.compare.cells.scope import examine_scope  # noqa: PLC0415

        scope = examine_scope(options, sources, gold, output, ranges)
        comparison = scope.applied_to(comparison, max_differences)
    if options.measures_figures:
        from judge.compare.cells.figures import measure_figures  # noqa: PLC0415  few runs ask

        rules = options.apply_to(profile)
        figures = measure_figures(
            options, sources, gold, output, ranges, profile=rules, compute=compute
        )
        comparison = figures.applied_to(comparison, max_differences)
    return comparison


def compare_files(
    gold: bytes | str | Path,
    output: bytes | str | Path,
    position: str,
    *,
    answer_sheet: str | None = None,
    profile: str | Profile = "standard",
    style: Sequence[str] = (),
    before: bytes | str | Path | None = None,
    options: Mapping[str, object] | None = None,
    max_differences: int = 200,
    limits: ReadLimits = DEFAULT_LIMITS,
    compute: Compute | None = None,
    typed: bool = False,
) -> Comparison:
    """Compares the answer range of an output workbook with the same range of its gold.

    :func:`judge.compare_workbooks` does the same with engines that compute formulas.

    Args:
        gold: the gold workbook, as a path or as bytes.
        output: the output workbook, as a path or as bytes; it may be hostile.
        position: the answer position, such as ``'Sheet1'!A1:B9``.
        answer_sheet: the sheet that the suite names in addition to the position, if any.
        profile: what "equal" means, by name or as rules.
        style: names of style attributes to compare in addition to the values.
        before: the input workbook, for the option ``untouched`` and for the groups of cells.
        options: options of the checker, such as ``{"tolerance": 0.01}``.
        max_differences: how many differences are kept; all are counted.
        limits: bounds on memory and work for reading a workbook.
        compute: computes formulas; with None, the values stored in the files count.
        typed: whether a person typed the position; if so, a sheet that does not exist is an error.

    Raises:
        PositionError: the position cannot be read, or the gold has no such sheet.
        WorkbookError: a workbook cannot be read.
        UsageError: there is no such profile, style attribute or option, or one contradicts a
            published profile.
    """
    rules = get_profile(profile) if isinstance(profile, str) else profile
    check_contradictions(rules, options or {}, style=style)
    gold_book = open_workbook(_source(gold), limits=limits)
    # A file that is compared with itself, as in the verification of a suite, is read once.
    with workbooks_kept(gold_book):
        output_book = open_workbook(_source(output), limits=limits)
    spec = range_spec(position, answer_sheet, options)
    plan = prepare(spec, gold=gold_book, output=output_book, typed=typed)
    return compute_and_check(
        plan,
        gold_book,
        output_book,
        compute=compute or NoEngines(),
        origin=Origin.FINISHED,
        profile=rules,
        style=style,
        before=None if before is None else open_workbook(_source(before), limits=limits),
        max_differences=max_differences,
    ).comparison


def _source(source: bytes | str | Path) -> bytes | Path:
    return source if isinstance(source, bytes) else Path(source)
