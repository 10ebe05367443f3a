"""Two workbooks compared as ``judge compare`` does it, formulas computed where they have to be."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from judge.comparison import api as comparison
from judge.comparison.comparison import Comparison
from judge.comparison.conditions import NO_ANSWERS, ConditionAnswers, ConditionQuestions
from judge.comparison.profiles import Profile
from judge.core.answer import Origin
from judge.recalc.conditions import answer_conditions
from judge.recalc.policy import Mode, Recalculator, calculates
from judge.recalc.select import open_recalculator, recalc_cache_folder
from judge.workbook.cell import NOTHING_COMPUTED, CellRange, ComputedValues
from judge.workbook.package import DEFAULT_LIMITS, ReadLimits
from judge.workbook.reader import Workbook


def compare(
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
    recalc: Mode = "auto",
    engine: str = "auto",
    lenient_names: bool = False,
    sandbox: str = "auto",
) -> Comparison:
    """Compares the answer range of an output workbook with that of its gold.

    Every default is that of ``judge compare``: where, and only where, the range holds formulas
    without a value to trust, they are computed, in the sandbox.

    Args:
        gold: the gold workbook, as a path or as bytes.
        output: the output workbook, as a path or as bytes; it may be hostile.
        position: the answer position, such as ``'Sheet1'!A1:B9``.
        answer_sheet: the sheet that the suite names with the position, if any.
        profile: what "equal" means, by name or as rules.
        style: names of style attributes to compare in addition to the values.
        before: the input workbook, for the option ``untouched`` and for the groups of cells.
        options: options of the checker, such as ``{"tolerance": 0.01}``.
        max_differences: how many differences are kept; all are counted.
        limits: bounds on what reading a workbook may cost.
        recalc: ``auto``, ``never`` (formulas count by the values stored in the files) or
            ``always``.
        engine: calculation engine, ``auto`` for the cascade.
        lenient_names: whether newer functions written without their prefix are computed.
        sandbox: ``auto``, ``docker`` or ``bubblewrap``; opened only where something is computed.

    Raises:
        PositionError: the position cannot be read, or the gold has no such sheet.
        WorkbookError: a workbook cannot be read.
        UsageError: there is no such profile, style attribute, option or engine.
        SandboxError: something has to be computed, and there is no sandbox.
    """
    with Engines(
        recalc=recalc, engine=engine, lenient_names=lenient_names, sandbox=sandbox
    ) as engines:
        return comparison.compare_workbooks(
            gold,
            output,
            position,
            answer_sheet=answer_sheet,
            profile=profile,
            style=style,
            before=before,
            options=options,
            max_differences=max_differences,
            limits=limits,
            compute=engines,
        )


class Engines:
    """The calculation engines of one comparison, opened when the first formula needs one.

    See :class:`judge.comparison.computing.Compute`.

    Args:
        recalc: when to compute.
        engine: calculation engine, ``auto`` for the cascade.
        lenient_names: whether newer functions written without their prefix are computed.
        sandbox: the kind of sandbox.
    """

    def __init__(self, *, recalc: Mode, engine: str, lenient_names: bool, sandbox: str) -> None:
        self.mode = recalc
        self._engine = engine
        self._lenient_names = lenient_names
        self._sandbox = sandbox
        self._stack = contextlib.ExitStack()

    @functools.cached_property
    def recalculator(self) -> Recalculator:
        """What computes.

        Raises:
            SandboxError: there is no sandbox.
        """
        from judge.sandbox import open_sandbox  # noqa: PLC0415  most comparisons need none

        opened = self._stack.enter_context(contextlib.closing(open_sandbox(self._sandbox)))
        recalculator = open_recalculator(
            opened,
            mode=self.mode,
            engine=self._engine,
            lenient_names=self._lenient_names,
            cache_dir=recalc_cache_folder(),
        )
        return self._stack.enter_context(contextlib.closing(recalculator))

    def fill(
        self, workbook: Workbook, ranges: Sequence[CellRange], *, origin: Origin
    ) -> ComputedValues:
        """Computes the formula cells of some ranges that have no value to trust.

        Raises:
            WorkbookError: the ranges cannot be read.
            SandboxError: something has to be computed, and there is no sandbox.
        """
        if self.mode == "never" or not self._needed(workbook, ranges):
            return NOTHING_COMPUTED
        return self.recalculator.fill(workbook, ranges, origin=origin)

    def _needed(self, workbook: Workbook, ranges: Sequence[CellRange]) -> bool:
        cells = [cell for each in ranges for cell in workbook.formula_cells(each)]
        if not cells:
            return False
        trusted = all(cell.has_cached_value for cell in cells) and calculates(workbook.facts)
        return self.mode == "always" or not trusted

    def answer_conditions(
        self, questions: ConditionQuestions, gold: Workbook, output: Workbook, *, origin: Origin
    ) -> ConditionAnswers:
        """Finds out which conditions of conditional formats hold.

        Raises:
            SandboxError: there is no sandbox to compute them in.
        """
        if self.mode == "never":
            return NO_ANSWERS
        return answer_conditions(self.recalculator, questions, gold, output, origin=origin)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
