"""Compares two workbooks as ``judge compare`` does; computes formulas where necessary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self, Unpack

from judge.api.judging import ComputedWhereNeeded, Judge
from judge.api.options import ComputingChanges, with_changes
from judge.compare.cells.comparison import Comparison
from judge.compare.profiles import Profile
from judge.workbook.budget import DEFAULT_LIMITS, ReadLimits


def compare_workbooks(
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
    **computing: Unpack[ComputingChanges],
) -> Comparison:
    """Compares the answer range of an output workbook with the same range of its gold.

    The defaults are those of ``judge compare``: if, and only if, the range holds formulas without a
    trusted value, they are computed in the sandbox.

    Args:
        gold: the gold workbook, as a path or as bytes.
        output: the output workbook, as a path or as bytes; it may be hostile.
        position: the answer position, such as ``'Sheet1'!A1:B9``; a sheet that does not exist is an
            error (:meth:`judge.Judge.compare` also reads positions of published suites).
        answer_sheet: the sheet that the suite names with the position, if any.
        profile: what "equal" means, by name or as rules.
        style: names of style attributes to compare in addition to the values.
        before: the input workbook, for the option ``untouched`` and for the groups of cells.
        options: options of the checker, such as ``{"tolerance": 0.01}``.
        max_differences: how many differences are kept; all are counted.
        limits: limits on the cost of reading a workbook.
        computing: how formulas are computed: the fields ``recalc``, ``engine``, ``lenient_names``
            and ``sandbox`` of :class:`JudgingOptions`; the sandbox is opened only if something has
            to be computed.

    Raises:
        PositionError: the position cannot be read, or the gold has no such sheet.
        WorkbookError: a workbook cannot be read.
        UsageError: there is no such profile, style attribute, option or engine.
        SandboxError: something has to be computed, and there is no sandbox.
    """
    with Judge(options=with_changes(None, {**computing, "jobs": 1})) as judge:
        return judge.compare(
            gold,
            output,
            position,
            answer_sheet=answer_sheet,
            profile=profile,
            style=style,
            before=before,
            checker=options,
            max_differences=max_differences,
            limits=limits,
        )


class Engines(ComputedWhereNeeded):
    """The calculation engines of one comparison, opened when the first formula needs one.

    Args:
        computing: how formulas are computed, as fields of :class:`JudgingOptions`.
    """

    def __init__(self, **computing: Unpack[ComputingChanges]) -> None:
        options = with_changes(None, {**computing, "jobs": 1})
        self._judge = Judge(options=options)
        super().__init__(options.recalc, self._judge.recalculator)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._judge.close()
