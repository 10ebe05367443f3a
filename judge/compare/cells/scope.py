"""What a user would object to although the answer is right: losses, and constants for formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from judge.compare.cells.formula_asked import FormulaAsked, find_asked_formula, words_for_formula
from judge.compare.cells.kept import Kept, find_losses
from judge.compare.cells.options import FAIL, OFF, CheckOptions
from judge.errors import WorkbookError
from judge.workbook.cell import CellRange
from judge.workbook.reader import Workbook

_Found = TypeVar("_Found", Kept, FormulaAsked)

NO_INPUT = "that requires the input"


@dataclass(frozen=True, slots=True)
class ScopeSources:
    """What is known besides gold and output.

    Attributes:
        before: the input workbook, or None.
        question: the instruction of the task; None if there is none, in which case the caller who
            sets ``formula_asked`` is believed to have asked for a formula.
        problem: why the input is not known.
    """

    before: Workbook | None = None
    question: str | None = None
    problem: str = NO_INPUT


@dataclass(frozen=True, slots=True)
class Scope:
    """What the options ``keep`` and ``formula_asked`` found.

    Attributes:
        keep: how losses count: ``off``, ``note`` or ``fail``.
        formula_asked: how constants count where a formula is requested.
        kept: what was lost; None if it was not examined, or could not be.
        formula: what became of a formula; None likewise.
        problems: option -> why it could not be examined.
    """

    keep: str
    formula_asked: str
    kept: Kept | None
    formula: FormulaAsked | None
    problems: dict[str, str]


def look_at_scope(
    options: CheckOptions,
    sources: ScopeSources,
    gold: Workbook,
    output: Workbook,
    ranges: tuple[tuple[CellRange, ...], tuple[CellRange | None, ...]],
) -> Scope | None:
    """Looks for what a user would object to, as far as the options say so.

    As a note, it never changes what the comparison found: a part that cannot be read becomes the
    reason why nothing is known.

    Args:
        options: the options of the task's checker.
        sources: the input and the question.
        gold: the gold workbook.
        output: the output workbook.
        ranges: rectangles of the answer in the gold, and in the output.

    Raises:
        WorkbookError: a workbook cannot be read, and the option makes it part of the verdict.
    """
    if options.keep == OFF and options.formula_asked == OFF:
        return None
    problems: dict[str, str] = {}
    before = sources.before
    kept = formula = None
    if options.keep != OFF and before is None:
        problems["keep"] = sources.problem
    elif options.keep != OFF and before is not None:
        known = before
        kept = _guarded(
            "keep", options.keep, problems, lambda: find_losses(known, gold, output, ranges[0])
        )
    if options.formula_asked != OFF:
        words = "" if sources.question is None else words_for_formula(sources.question)
        if sources.question is not None and not words:
            formula = FormulaAsked("", asked=False)
        else:
            formula = _guarded(
                "formula_asked",
                options.formula_asked,
                problems,
                lambda: find_asked_formula(
                    words,
                    before=before,
                    gold=gold,
                    output=output,
                    gold_ranges=ranges[0],
                    output_ranges=ranges[1],
                ),
            )
    return Scope(options.keep, options.formula_asked, kept, formula, problems)


def _guarded(
    name: str, mode: str, problems: dict[str, str], look: Callable[[], _Found]
) -> _Found | None:
    try:
        return look()
    except WorkbookError as error:
        if mode == FAIL:
            raise
        problems[name] = error.message
        return None
