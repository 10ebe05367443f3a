"""Whether a question asks for a formula, and whether the output has one."""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass

from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, WHOLE_SHEET, cell_key
from judge.workbook.cell import CellRange
from judge.workbook.reader import Workbook

MAX_QUESTION_CHARS = 20_000
"""How many characters of a question are searched."""

_NOUN = re.compile(
    r"\bformula[es]?\b"
    r"|\b(?:an?|the|excel|which|what|using|use)\s+(?:(?!to\b)[\w-]+\s+){0,2}functions?\b",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"\b(?:[XVH]LOOKUP|SUMPRODUCT|SUMIFS?|COUNTIFS?|AVERAGEIFS?|MAXIFS|MINIFS|INDEX|INDIRECT)\b"
)
"""Functions whose names, in capitals, have no other meaning."""

_REFUSED = re.compile(
    r"(?:\b(?:without|instead\s+of|rather\s+than|no|avoid(?:ing)?"
    r"|not\s+(?:an?|by|with|using|use|via|want))|n't\s+want)\s+(?:\w+\s+){0,3}$",
    re.IGNORECASE,
)
"""Words that negate the request if they precede it."""

_PROGRAM = re.compile(
    r"\b(?:vba|macros?|udf|user[- ]defined function|power\s?query|script)\b", re.IGNORECASE
)
"""Words of a question that asks for a macro or script; the results of one may be constants."""

_CHARS_BEFORE = 60  # characters before a request that are searched for a negation


@dataclass(frozen=True, slots=True)
class RequestedFormula:
    """Whether the output has the formulas that the question asks for.

    Attributes:
        words: the words of the question that ask for a formula; empty if there are none, or no
            question.
        is_requested: whether a formula is requested, by the question or, without a question, by the
            caller.
        gold_formulas: how many formulas the gold has in the answer that the input lacks.
        constants: how many of these cells hold a constant in the output; 0 if the output has any
            formula that the input lacks.
    """

    words: str
    is_requested: bool
    gold_formulas: int = 0
    constants: int = 0

    @property
    def is_missing(self) -> bool:
        """Whether a formula is requested, and the output has only constants."""
        return self.constants > 0

    def __str__(self) -> str:
        asks = f"the question asks for a formula ({self.words!r}), and " if self.words else ""
        return f"{asks}the gold has {self.gold_formulas:,} in the answer; the output has constants"


def words_for_formula(question: str) -> str:
    """Returns the words of a question that ask for a formula; empty if there are none.

    The rule is for English: "formula", "function" as a noun of Excel, or the name of a function
    that has no other meaning, unless a word such as "without" precedes it or the question asks for
    a macro or another program. It misses a formula that is requested in other words ("the cell
    should update by itself"), and counts a formula that is only mentioned as requested.

    Args:
        question: the instruction of a task; only the first :data:`MAX_QUESTION_CHARS` are read.
    """
    text = question[:MAX_QUESTION_CHARS]
    if _PROGRAM.search(text):
        return ""
    for pattern in (_NOUN, _NAMED):
        for match in pattern.finditer(text):
            before = text[max(0, match.start() - _CHARS_BEFORE) : match.start()]
            if not _REFUSED.search(before):
                return " ".join(match[0].split())
    return ""


class Demand(enum.StrEnum):
    """What a question asks for, judged by its words."""

    FORMULA = "formula"
    PROGRAM = "program"
    """A macro or another program, whose results may be constants."""
    NOTHING = "nothing"
    """The question does not say how to obtain the values."""


def demand_of(question: str | None) -> Demand:
    """Returns what a question asks for.

    If there is no question, the caller has requested a formula.

    Args:
        question: the instruction of a task, of which :data:`MAX_QUESTION_CHARS` are read.
    """
    if question is None or words_for_formula(question):
        return Demand.FORMULA
    return Demand.PROGRAM if _PROGRAM.search(question[:MAX_QUESTION_CHARS]) else Demand.NOTHING


def find_requested_formula(
    words: str,
    *,
    before: Workbook | None,
    gold: Workbook,
    output: Workbook,
    gold_ranges: Sequence[CellRange],
    output_ranges: Sequence[CellRange | None],
) -> RequestedFormula:
    """Searches the answer of gold and output for formulas.

    Args:
        words: the words of the question that ask for a formula; empty if there are none.
        before: the input workbook; None if the case has no input.
        gold: the gold workbook.
        output: the output workbook.
        gold_ranges: rectangles of the answer in the gold.
        output_ranges: the same rectangles in the output; None for a sheet that it lacks.

    Raises:
        WorkbookError: a sheet cannot be read.
    """
    gold_formulas = constants = 0
    has_formula = False
    for expected, actual in zip(gold_ranges, output_ranges, strict=True):
        cells = new_formulas(before, gold, expected)
        gold_formulas += len(cells)
        if actual is None:
            continue
        window = actual.window
        sheet = output.sheet(actual.sheet)
        old = _old_formulas(before, actual)
        here = {key: sheet.formula(key) for key in sheet.formula_keys(window)}
        has_formula = has_formula or any(old.get(key) != text for key, text in here.items())
        values = sheet.values(window)
        down = actual.min_row - expected.min_row
        right = actual.min_column - expected.min_column
        for key in cells:
            actual_key = cell_key((key >> COLUMN_BITS) + down, (key & COLUMN_MASK) + right)
            constants += actual_key not in here and values.get(actual_key) not in {None, ""}
    # A formula next to the answer, such as in a column that the question names, counts too.
    if has_formula or (constants and before is not None and _has_new_formula(before, output)):
        constants = 0
    return RequestedFormula(words, True, gold_formulas, constants)


def _has_new_formula(before: Workbook, output: Workbook) -> bool:
    """Whether the output has a formula that the input does not have in that cell."""
    for name in output.sheet_names:
        sheet = output.sheet(name)
        input_sheet = before.sheet(name) if name in before.sheet_names else None
        if input_sheet is not None:
            input_sheet.load([WHOLE_SHEET])
        for key in sheet.formula_keys(WHOLE_SHEET):
            if input_sheet is None or input_sheet.formula(key) != sheet.formula(key):
                return True
    return False


def new_formulas(before: Workbook | None, gold: Workbook, expected: CellRange) -> list[int]:
    """Returns the cells of the gold's answer with a formula that the input does not have there."""
    sheet = gold.sheet(expected.sheet)
    window = expected.window
    old = _old_formulas(before, expected)
    return [key for key in sheet.formula_keys(window) if old.get(key) != sheet.formula(key)]


def _old_formulas(before: Workbook | None, cells: CellRange) -> dict[int, str | None]:
    if before is None or cells.sheet not in before.sheet_names:
        return {}
    sheet = before.sheet(cells.sheet)
    window = cells.window
    return {key: sheet.formula(key) for key in sheet.formula_keys(window)}
