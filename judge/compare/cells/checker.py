"""The checker of SpreadsheetBench: compares the cells of a position by the rules of a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from judge.compare.cells.answer_range import (
    Plan,
    needs_input,
    planned,
    prepare,
    reports_from_input,
)
from judge.compare.cells.comparison import Comparison, with_erased_content
from judge.compare.cells.computing import Compute, Computed, NoEngines, compute_and_check
from judge.compare.cells.options import (
    CELL_RANGE,
    FEATURE_RULES,
    FIGURE_OPTIONS,
    GROUPS,
    OFF,
    POSITION_OPTIONS,
    STYLE_RULES,
    CheckOptions,
    position_of,
)
from judge.compare.cells.render import comparison_to_json, computed_to_json, first_difference
from judge.compare.cells.sides import NO_INPUT, OtherCase, ScopeSources
from judge.compare.contract import (
    AnswerAreas,
    AnswerFaultError,
    Checker,
    Examination,
    GoldFaultError,
    Needs,
    Rules,
)
from judge.compare.profiles import PROFILES, RELATIVE_RULES_VERSION, Profile
from judge.core.finding import Finding, nearest
from judge.core.submission import Answer, Origin
from judge.core.task import CheckerSpec, Gold, Task, TestCase
from judge.errors import PositionError, UsageError, WorkbookError
from judge.workbook.reader import Workbook, open_workbook

_COMPUTED_KEPT = 2000
"""How many computed values are recorded per workbook, to show them next to the verdict."""


class CellRangeChecker(Checker):
    """Compares the cells of the answer position."""

    name = CELL_RANGE
    counts_cells = True

    def check_options(self, options: Mapping[str, object]) -> None:
        """Checks the options; see :class:`judge.compare.cells.options.CheckOptions`."""
        CheckOptions.of(options)

    def describe(self, spec: CheckerSpec) -> str:
        """Returns the name, with the styles that are compared."""
        style = spec.options.get("style")
        return (
            f"{self.name} + {', '.join(map(str, style))}" if isinstance(style, tuple) else self.name
        )

    def key(self, task: Task) -> Mapping[str, object]:
        """Returns the position, the options and, if an option depends on it, the question."""
        options = {
            name: value
            for name, value in task.checker.options.items()
            if name not in POSITION_OPTIONS
        }
        on = {name for name, value in options.items() if value != OFF}
        key: dict[str, object] = {
            "position": list(position_of(task.checker)),
            "checker": [task.checker.name, options],
        }
        if options.get("relative_tolerance"):
            key["rules_version"] = RELATIVE_RULES_VERSION
        if not on.isdisjoint(("keep", "collateral")):
            key["feature_rules"] = FEATURE_RULES
        if options.get("style") or "collateral" in on:
            key["style_rules"] = STYLE_RULES
        if not on.isdisjoint(("formula_asked", "dynamic")):
            key["question"] = task.instruction
        return key

    def also_reads(self, task: Task, case: TestCase) -> Sequence[TestCase]:
        """Returns the other cases of the task if an option needs to read their inputs."""
        if task.checker.options.keys().isdisjoint(FIGURE_OPTIONS):
            return ()
        options = CheckOptions.of(task.checker.own_options)
        if options.dynamic != OFF and case.number == task.cases[0].number:
            return task.cases
        return (case,) if options.measures_figures else ()

    def needs(self, task: Task, case: TestCase, rules: Rules) -> Needs:  # noqa: ARG002
        """Adds the input if more than the answer range is compared or reported."""
        options = CheckOptions.of(task.checker.own_options)
        inputs = needs_input(options, rules.profile) or reports_from_input(options, rules.profile)
        return Needs(inputs=inputs, engines=not rules.profile.reads_stored_values)

    def check(
        self,
        task: Task,
        case: TestCase,
        golds: Sequence[Gold],
        answer: Answer,
        compute: Compute,
        rules: Rules,
    ) -> Finding:
        """Compares the cells of the answer position with those of each gold."""
        _check_golds(golds)
        input_path = case.input_path if case.inputs else None
        opened: dict[str, Workbook] = {}
        findings = []
        for gold in golds:
            spec = task.checker.with_options(gold.options)
            side = _open_gold(spec, gold, input_path, rules.profile)
            sources = _sources(spec, side, task, case, rules.profile)
            finding = _compare(spec, side, sources, answer, opened, compute, rules, input_path)
            findings.append((gold.name, finding))
            if finding.agrees:
                break
        return nearest(findings)

    def examine(self, task: Task, case: TestCase, compute: Compute | None) -> Examination:
        """Counts the cells of the range in the first gold."""
        _check_golds(case.golds)
        gold_file = case.golds[0]
        spec = task.checker.with_options(gold_file.options)
        try:
            gold = open_workbook(gold_file.read())
            plan = prepare(spec, gold=gold, output=None)
            formulas = [
                cell for gold_range in plan.gold_ranges for cell in gold.formula_cells(gold_range)
            ]
            uncached = sum(not cell.has_cached_value for cell in formulas)
            not_calculated = 0
            if uncached and compute is not None:
                filled = compute.fill(gold, plan.gold_ranges, origin=Origin.GOLD)
                not_calculated = len(filled.not_calculated)
            doubts = []
            if not plan.options.style and _is_blank(gold, plan):
                doubts.append(f"{plan.answer_position} is blank")
            if plan.options.accept == GROUPS and case.inputs:
                doubts += _doubts_of_groups(spec, gold, case.input_path, compute)
        except (WorkbookError, PositionError, UsageError) as error:
            raise GoldFaultError(error.message) from error
        return Examination(
            units=sum(gold_range.size for gold_range in plan.gold_ranges),
            uncached_formulas=uncached,
            not_calculated=not_calculated,
            notes=plan.notes,
            doubts=tuple(doubts),
        )

    def areas(self, task: Task, gold: Workbook, output: Workbook | None) -> AnswerAreas:
        """Returns the rectangles of the answer position."""
        plan = planned(task.checker, gold=gold, output=output)
        return AnswerAreas(plan.gold_ranges, plan.output_ranges)


CHECKER = CellRangeChecker()


def _check_golds(golds: Sequence[Gold]) -> None:
    """Checks that there is a gold, and that each gold is a workbook.

    Raises:
        GoldFaultError: the case has no gold, or a gold that is a value.
    """
    if not golds or any(gold.path is None and gold.data is None for gold in golds):
        existing = "one that is a value" if golds else "none"
        raise GoldFaultError(
            f"cells are compared with a gold workbook, but the case has {existing}"
        )


def _is_blank(gold: Workbook, plan: Plan) -> bool:
    # Not by Workbook.cells, which reads the sheet once more for the looks of blank cells.
    return not any(
        sheet.formula_keys(gold_range.window)
        or any(value is not None for value in sheet.values(gold_range.window).values())
        for gold_range in plan.gold_ranges
        for sheet in [gold.sheet(gold_range.sheet)]
    )


def _doubts_of_groups(
    spec: CheckerSpec, gold: Workbook, input_path: Path, compute: Compute | None
) -> Sequence[str]:
    """Returns why the published rule of the task rejects the gold itself; empty if it does not.

    An input that cannot be read is reported as a fault when the gold is judged, not here.
    """
    try:
        before = open_workbook(input_path)
        plan = prepare(spec, gold=gold, output=gold)
        comparison = compute_and_check(
            plan,
            gold,
            gold,
            compute=compute or NoEngines(),
            origin=Origin.GOLD,
            profile=PROFILES["ssb2-official"],
            before=before,
            max_differences=1,
        ).comparison
    except WorkbookError:
        return ()
    return () if comparison.equal else (first_difference(comparison),)


@dataclass(frozen=True, slots=True)
class _GoldSide:
    """A gold with its opened workbook.

    Attributes:
        gold: the gold.
        data: its bytes.
        workbook: the workbook.
        before: the input workbook, if the rules need it.
    """

    gold: Gold
    data: bytes
    workbook: Workbook
    before: Workbook | None


def _open_gold(
    spec: CheckerSpec, gold: Gold, input_path: Path | None, profile: Profile
) -> _GoldSide:
    data = gold.read()
    try:
        workbook = open_workbook(data)
        plan = prepare(spec, gold=workbook, output=None)
        before = None
        if input_path is not None and needs_input(plan.options, profile):
            before = open_workbook(input_path)
        elif plan.options.accept == GROUPS:
            raise GoldFaultError("cells to keep are cells of the input, but the case has no input")
    except (WorkbookError, PositionError) as error:
        # If the file was opened by its path, the error already names it.
        named = "" if error.message.startswith(str(input_path)) else f"{gold.name}: "
        raise GoldFaultError(f"{named}{error.message}") from error
    return _GoldSide(gold, data, workbook, before)


def _sources(
    spec: CheckerSpec, side: _GoldSide, task: Task, case: TestCase, profile: Profile
) -> ScopeSources:
    """Returns the sources that are compared in addition to gold and output.

    If the verdict does not depend on the input, an unreadable input is not a fault.
    """
    before, problem = side.before, NO_INPUT
    input_path = case.input_path if case.inputs else None
    options = CheckOptions.of(spec.own_options)
    if before is None and input_path is not None and reports_from_input(options, profile):
        try:
            before = open_workbook(input_path)
        except WorkbookError as error:
            problem = error.message
    others = other_cases(task) if case.number == task.cases[0].number else None
    return ScopeSources(before, task.instruction, problem, others)


def other_cases(task: Task) -> tuple[OtherCase, ...]:
    """Returns the cases after the first: they show how the answer has to change with its inputs."""
    return tuple(
        OtherCase(
            case.number,
            partial(open_workbook, case.input_path),
            partial(open_workbook, case.gold_path),
        )
        for case in task.cases[1:]
        if case.inputs and case.golds and case.golds[0].path is not None
    )


def _compare(
    spec: CheckerSpec,
    side: _GoldSide,
    sources: ScopeSources,
    answer: Answer,
    opened: dict[str, Workbook],
    compute: Compute,
    rules: Rules,
    input_path: Path | None,
) -> Finding:
    try:
        # A file that is compared with itself, as in the verification of a suite, is read once.
        if answer.data == side.data:
            output = side.workbook
        elif (opened_output := opened.get("output")) is not None:
            output = opened_output
        else:
            output = opened["output"] = open_workbook(answer.data)
        with output.package.budget.working():
            plan = prepare(spec, gold=side.workbook, output=output)
            computed = compute_and_check(
                plan,
                side.workbook,
                output,
                compute=compute,
                origin=answer.origin,
                profile=rules.profile,
                style=rules.style,
                before=side.before,
                sources=sources,
                max_differences=rules.max_differences,
            )
            comparison = computed.comparison
            if side.before is None and input_path is not None:
                comparison = with_erased_content(comparison, input_path)
    except WorkbookError as error:
        # Much of the files is read only during the comparison, which reads both in parallel.
        if error.culprit is side.workbook.package:
            raise GoldFaultError(f"{side.gold.name}: {error.message}") from error
        if sources.before is not None and error.culprit is sources.before.package:
            raise GoldFaultError(f"{input_path}: {error.message}") from error
        raise AnswerFaultError(error.message) from error
    return finding_of_comparison(comparison, computed)


def finding_of_comparison(comparison: Comparison, computed: Computed) -> Finding:
    """Returns the finding of a comparison, with the part of the comparison that is recorded.

    Args:
        comparison: the comparison.
        computed: what was computed for it.
    """
    record = comparison_to_json(comparison)
    parts = (computed.gold, computed.output, computed.conditions.gold, computed.conditions.output)
    record["engines"] = sorted({engine for part in parts for engine in part.engines})
    record["computed_cells"] = {
        "gold": len(computed.gold.values),
        "output": len(computed.output.values),
    }
    record["computed_values"] = {
        "gold": computed_to_json(computed.gold, _COMPUTED_KEPT),
        "output": computed_to_json(computed.output, _COMPUTED_KEPT),
    }
    kinds = {kind.value for kind, count in comparison.difference_counts.items() if count}
    return Finding(
        agrees=comparison.equal,
        cause=first_difference(comparison),
        record=record,
        # A single wrong value makes the answer wrong, whatever the other values are.
        undecided=kinds == {"not_calculated"},
    )
