"""Comparing two workbooks in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from judge.compare.cells.answer_range import prepare
from judge.compare.cells.comparison import Comparison
from judge.compare.cells.computing import Compute, NoEngines, compute_and_check
from judge.compare.cells.options import check_contradictions, range_spec
from judge.compare.profiles import Profile, get_profile
from judge.core.submission import Origin
from judge.workbook.budget import DEFAULT_LIMITS, ReadLimits
from judge.workbook.reader import open_workbook


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
    """Compares the answer range of an output workbook with that of its gold.

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
        limits: bounds on what reading a workbook may cost.
        compute: computes formulas; with None, the values stored in the files count.
        typed: whether a person typed the position: a sheet that does not exist is then an error.

    Raises:
        PositionError: the position cannot be read, or the gold has no such sheet.
        WorkbookError: a workbook cannot be read.
        UsageError: there is no such profile, style attribute or option, or one contradicts a
            published profile.
    """
    rules = get_profile(profile) if isinstance(profile, str) else profile
    check_contradictions(rules, options or {}, style=style)
    gold_book = open_workbook(_source(gold), limits=limits)
    output_book = open_workbook(_source(output), limits=limits)
    if output_book.data == gold_book.data:
        # A file that is compared with itself, as when a suite is verified, is read once.
        output_book = gold_book
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
