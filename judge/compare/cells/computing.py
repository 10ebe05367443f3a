"""Comparison that computes what it needs: values of formulas, conditions of formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from judge.compare.cells.answer_range import Plan, check, needs_groups, wanted_conditions
from judge.compare.cells.comparison import Comparison
from judge.compare.cells.conditions import NO_ANSWERS, ConditionAnswers, ConditionQuestions
from judge.compare.cells.groups import Before
from judge.compare.cells.scope import ScopeSources, look_at_scope
from judge.compare.cells.scope_verdict import with_scope
from judge.compare.profiles import Profile
from judge.core.submission import Origin
from judge.workbook.cell import NOTHING_COMPUTED, CellRange, ComputedValues
from judge.workbook.reader import Workbook


class Compute(Protocol):
    """What computes formulas for a comparison."""

    def fill(
        self, workbook: Workbook, ranges: Sequence[CellRange], *, origin: Origin
    ) -> ComputedValues:
        """Computes those formula cells of some ranges that have no trustworthy value.

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
    """Computes nothing: the values that the files store for formulas count."""

    def fill(
        self,
        workbook: Workbook,  # noqa: ARG002
        ranges: Sequence[CellRange],  # noqa: ARG002
        *,
        origin: Origin,  # noqa: ARG002
    ) -> ComputedValues:
        """Nothing."""
        return NOTHING_COMPUTED

    def answer_conditions(
        self,
        questions: ConditionQuestions,  # noqa: ARG002
        gold: Workbook,  # noqa: ARG002
        output: Workbook,  # noqa: ARG002
        *,
        origin: Origin,  # noqa: ARG002
    ) -> ConditionAnswers:
        """Nothing."""
        return NO_ANSWERS


@dataclass(frozen=True, slots=True)
class Computed:
    """A comparison, with what was computed for it.

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
        sources: input and question for the options ``keep`` and ``formula_asked``; None for
            ``before`` and no question.
        max_differences: how many differences are kept; all are counted.

    Raises:
        WorkbookError: cells of a workbook cannot be read.
        RecalcError: an engine cannot be started.
        UsageError: there is no such style attribute.
    """
    gold_computed = output_computed = before_computed = NOTHING_COMPUTED
    if not (profile.reads_stored_values or plan.options.apply_to(profile).formulas):
        gold_computed = compute.fill(gold, plan.gold_ranges, origin=Origin.GOLD)
        wanted = [cell_range for cell_range in plan.output_ranges if cell_range is not None]
        output_computed = compute.fill(output, wanted, origin=origin)
        if before is not None and needs_groups(plan.options, profile):
            placed = map(Before(before).placed, plan.gold_ranges)
            old = [cell_range for cell_range in placed if cell_range is not None]
            before_computed = compute.fill(before, old, origin=Origin.GOLD)
    questions = wanted_conditions(
        plan,
        gold,
        output,
        profile=profile,
        style=style,
        gold_computed=gold_computed,
        output_computed=output_computed,
    )
    conditions = NO_ANSWERS
    if not questions.is_empty:
        conditions = compute.answer_conditions(questions, gold, output, origin=origin)
    comparison = check(
        plan,
        gold,
        output,
        profile=profile,
        style=style,
        gold_computed=gold_computed,
        output_computed=output_computed,
        conditions=conditions,
        before=before,
        before_computed=before_computed,
        max_differences=max_differences,
    )
    if not profile.published:
        scope = look_at_scope(
            plan.options,
            sources or ScopeSources(before),
            gold,
            output,
            (plan.gold_ranges, plan.output_ranges),
        )
        comparison = with_scope(comparison, scope, max_differences)
    return Computed(comparison, gold_computed, output_computed, conditions)
