"""Two optional figures in addition to the verdict: collateral damage and dynamic correctness.

A figure that is only a note never changes the result of the comparison: if a part of a workbook
cannot be read, the note says why there is no figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from judge.compare.cells.collateral import Collateral, find_collateral
from judge.compare.cells.comparison import Comparison, Difference, DifferenceClass, Dynamic
from judge.compare.cells.dynamic import measure_dynamic
from judge.compare.cells.dynamic_finding import DynamicFinding
from judge.compare.cells.options import FAIL, NOTE, OFF, CheckOptions
from judge.compare.cells.requested_formula import demand_of
from judge.compare.cells.sides import ScopeSources
from judge.compare.profiles import Profile
from judge.core.records.cases import CollateralRecord, DynamicRecord
from judge.errors import WorkbookError
from judge.workbook.cell import CellRange
from judge.workbook.reader import Workbook

if TYPE_CHECKING:
    from judge.compare.cells.computing import Compute


@dataclass(frozen=True, slots=True)
class Figures:
    """Results of the options ``collateral`` and ``dynamic``.

    Attributes:
        options: whether each figure is a note or part of the verdict.
        collateral: the changes outside the answer; None if they were not or could not be examined.
        dynamic: whether the answer follows its inputs; None if this was not measured.
        problem: why collateral damage could not be examined.
    """

    options: CheckOptions
    collateral: Collateral | None
    dynamic: DynamicFinding | None
    problem: str = ""

    def applied_to(self, comparison: Comparison, max_differences: int) -> Comparison:
        """Returns the comparison with the figures as notes or, with ``fail``, as differences.

        Args:
            comparison: the comparison of the answer.
            max_differences: how many differences are kept.
        """
        return replace(
            comparison.with_differences(list(self._differences()), max_differences),
            notes=(*comparison.notes, *self._notes()),
            figures=self,
        )

    def _differences(self) -> Iterator[Difference]:
        damage, dynamic = self.collateral, self.dynamic
        if self.options.collateral == FAIL and damage is not None and damage.damage:
            yield Difference(DifferenceClass.COLLATERAL, "", "", detail=str(damage))
        if self.options.dynamic == FAIL and dynamic is not None and dynamic.is_fault:
            yield Difference(DifferenceClass.NOT_LIVE, "", "", detail=str(dynamic))

    def _notes(self) -> Iterator[str]:
        damage, dynamic = self.collateral, self.dynamic
        if self.problem:
            yield f"cells outside the answer were not compared with the input: {self.problem}"
        if self.options.collateral == NOTE and damage is not None and damage.damage:
            yield str(damage)
        if dynamic is None or dynamic.kind in {Dynamic.LIVE, Dynamic.NOT_MEASURABLE}:
            return
        if self.options.dynamic == NOTE or not dynamic.is_fault:
            yield str(dynamic)

    def to_json(self) -> tuple[CollateralRecord | None, DynamicRecord | None]:
        """Returns both figures as written to records; None for a figure that was not examined."""
        damage: CollateralRecord | None = None
        if self.collateral is not None:
            damage = self.collateral.to_json(self.options.collateral)
        elif self.problem:
            damage = {"as": self.options.collateral, "problem": self.problem}
        if self.dynamic is None:
            return damage, None
        return damage, self.dynamic.to_json(self.options.dynamic)


def measure_figures(
    options: CheckOptions,
    sources: ScopeSources,
    gold: Workbook,
    output: Workbook,
    ranges: tuple[Sequence[CellRange], Sequence[CellRange | None]],
    *,
    profile: Profile,
    compute: Compute,
) -> Figures:
    """Measures the figures that the options request.

    Args:
        options: the options of the task's checker.
        sources: the input, the question and the other cases.
        gold: the gold workbook.
        output: the output workbook.
        ranges: rectangles of the answer in the gold, and in the output.
        profile: the rules of the comparison.
        compute: computes formulas.

    Raises:
        WorkbookError: a workbook cannot be read, and the option makes it part of the verdict.
        RecalcError: an engine cannot be started.
    """
    damage, dynamic, problem = None, None, ""
    if options.collateral != OFF and sources.before is None:
        problem = sources.problem
    elif options.collateral != OFF and sources.before is not None:
        try:
            damage = find_collateral(sources.before, gold, output, *ranges)
        except WorkbookError as error:
            if options.collateral == FAIL:
                raise
            problem = error.message
    if options.dynamic != OFF and sources.others is not None:
        demand = demand_of(sources.question)
        try:
            dynamic = measure_dynamic(
                sources, gold, output, ranges, profile=profile, compute=compute, demand=demand
            )
        except WorkbookError as error:
            if options.dynamic == FAIL:
                raise
            dynamic = DynamicFinding(Dynamic.NOT_MEASURABLE, error.message, demand)
    return Figures(options, damage, dynamic, problem)
