"""Writes conditions of conditional formats as formulas that do not depend on their cell. Pure.

Source: ECMA-376 part 1, 18.3.1.10 and 18.18.12, and the formulas that [MS-XLSB] gives for the kinds
of rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from judge.formulas.lexer import MAX_FORMULA_LENGTH, Kind, Token, outside_text, tokens
from judge.formulas.shift import shift_formula
from judge.workbook.address import cell_name
from judge.workbook.sheets.sheet_tail import ConditionalRule

AGGREGATES = {"duplicateValues", "uniqueValues", "top10", "aboveAverage", "colorScale"}
"""Kinds of rules that depend on all cells of their range."""

UNDRAWN = {"dataBar", "iconSet"}
"""Kinds of rules that change no fill, font or number format."""

_COMPARISONS = {
    "equal": "{cell}=({0})",
    "notEqual": "{cell}<>({0})",
    "greaterThan": "{cell}>({0})",
    "greaterThanOrEqual": "{cell}>=({0})",
    "lessThan": "{cell}<({0})",
    "lessThanOrEqual": "{cell}<=({0})",
    # The two bounds may be in either order.
    "between": "OR(AND({cell}>=({0}),{cell}<=({1})),AND({cell}>=({1}),{cell}<=({0})))",
    "notBetween": "NOT(OR(AND({cell}>=({0}),{cell}<=({1})),AND({cell}>=({1}),{cell}<=({0}))))",
}

_TEXTS = {
    "containsText": "NOT(ISERROR(SEARCH({text},{cell})))",
    "notContainsText": "ISERROR(SEARCH({text},{cell}))",
    "beginsWith": "LEFT({cell},LEN({text}))={text}",
    "endsWith": "RIGHT({cell},LEN({text}))={text}",
    "containsBlanks": "LEN(TRIM({cell}))=0",
    "notContainsBlanks": "LEN(TRIM({cell}))>0",
    "containsErrors": "ISERROR({cell})",
    "notContainsErrors": "NOT(ISERROR({cell}))",
}


@dataclass(frozen=True)
class RuleFormula:
    """The condition of a rule as a formula, written for the first cell of the rule's ranges.

    Attributes:
        text: the formula without a leading ``=``; empty if there is none.
        row, column: the cell for which it is written.
        reason: why there is no formula.
    """

    text: str
    row: int
    column: int
    reason: str = ""

    def at(self, row: int, column: int) -> str | None:
        """The formula as it reads in a cell; None if a reference leaves the sheet there."""
        rows = row - self.row if self._depends_on_row else 0
        columns = column - self.column if self._depends_on_column else 0
        cached = self._shifted.get((rows, columns))
        if cached is None:
            cached = self._shifted[rows, columns] = shift_formula(self.text, rows, columns)
        return None if "#REF!" in cached and "#REF!" not in self.text else cached

    @cached_property
    def _shifted(self) -> dict[tuple[int, int], str]:
        return {}

    @cached_property
    def _depends_on_row(self) -> bool:
        return shift_formula(self.text, 1, 0) != self.text

    @cached_property
    def _depends_on_column(self) -> bool:
        return shift_formula(self.text, 0, 1) != self.text


def origin_of(rule: ConditionalRule) -> tuple[int, int]:
    """Row and column of the cell for which the formulas of a rule are written."""
    return (
        min(window.min_row for window in rule.windows),
        min(window.min_column for window in rule.windows),
    )


def rule_formula(rule: ConditionalRule) -> RuleFormula:
    """The condition of a rule that depends on one cell, as a formula."""
    row, column = origin_of(rule)
    cell = cell_name(row, column)
    terms = dict(rule.terms)
    formulas = [formula.strip().removeprefix("=") for formula in rule.formulas]
    text = ""
    if rule.kind == "expression" or (rule.kind in {*_TEXTS, "timePeriod"} and formulas):
        text = formulas[0] if formulas else ""
    elif rule.kind == "cellIs":
        shape = _COMPARISONS.get(terms.get("operator", ""), "")
        if shape and len(formulas) >= (2 if "{1}" in shape else 1):
            text = _filled(shape, cell, formulas)
    elif rule.kind in _TEXTS and ("text" in terms or "{text}" not in _TEXTS[rule.kind]):
        quoted = '"' + terms.get("text", "").replace('"', '""') + '"'
        text = _TEXTS[rule.kind].replace("{text}", quoted).replace("{cell}", cell)
    elif rule.kind == "timePeriod":
        return RuleFormula(
            "", row, column, "a condition depends on the day on which it is evaluated"
        )
    if not text:
        return RuleFormula("", row, column, f"a rule of the kind {rule.kind!r} without a condition")
    if len(text) > MAX_FORMULA_LENGTH:
        return RuleFormula("", row, column, "a condition longer than Excel takes")
    return RuleFormula(_without_place(text, cell), row, column)


def _filled(shape: str, cell: str, formulas: list[str]) -> str:
    pieces = {"{cell}": cell, "{0}": formulas[0], "{1}": formulas[-1]}
    return re.sub(r"\{\w+\}", lambda match: pieces[match[0]], shape)


def _without_place(formula: str, cell: str) -> str:
    """Turns ``ROW()`` into ``ROW(B2)``, since the formula is computed in a different cell."""
    words = tokens(formula)
    pieces = []
    asks = filled = False
    for index, token in enumerate(words):
        if token.kind is Kind.SPACE:
            pieces.append("" if filled else token.text)
            continue
        pieces.append(token.text)
        filled = token.kind is Kind.OPEN and asks and _closes(words[index + 1 : index + 3])
        if filled:
            pieces.append(cell)
        asks = token.kind is Kind.FUNCTION and token.text.upper() in ("ROW", "COLUMN")
    return "".join(pieces)


def _closes(words: Sequence[Token]) -> bool:
    kinds = [token.kind for token in words if token.kind is not Kind.SPACE]
    return kinds[:1] == [Kind.CLOSE]


_IDLE = re.compile(r"[\s$]+")


def canonical(formula: str) -> str:
    """Upper-cases a condition and drops spaces and dollar signs: within one cell, none matter."""
    return outside_text(formula, lambda text: _IDLE.sub("", text).upper())


def canonical_reader(
    rule: ConditionalRule, on_read: Callable[[], None]
) -> Callable[[int, int], tuple[str, ...]]:
    """Gives the formulas of a rule as they read in a cell, for comparing them as text.

    Args:
        rule: the rule.
        on_read: called before the text of the rule is read.
    """
    top, left = origin_of(rule)
    cached: dict[tuple[int, int], tuple[str, ...]] = {}

    def read(row: int, column: int) -> tuple[str, ...]:
        offset = (row - top, column - left)
        if offset not in cached:
            on_read()
            cached[offset] = tuple(
                text if len(text) > MAX_FORMULA_LENGTH else canonical(shift_formula(text, *offset))
                for text in rule.formulas
            )
        return cached[offset]

    return read
