"""What conditional formats show, cell by cell, if they are written differently.

All questions are collected first and answered later: :class:`RuleAsker` collects what has to be
known about a workbook, :class:`RuleEvaluator` derives the look of a cell from the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from judge.compare.cells.conditions import Answers, ConditionKey, Questions
from judge.compare.cells.rule_values import Holds, aggregate, scale
from judge.errors import WorkbookError
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, Window, cell_key
from judge.workbook.cell import CellRange, CellValue
from judge.workbook.styles.conditional import SpokenRule
from judge.workbook.styles.rule_formulas import AGGREGATES, UNDRAWN
from judge.workbook.styles.style import Fill, Palette

MOST_EVALUATED = 200_000
"""How many conditions (cells times rules) of a comparison are evaluated."""

MOST_VALUES = 500_000
"""How many cells, times ranges, a rule may have that looks at all of them."""

ValuesOf = Callable[[CellRange], tuple[Mapping[int, CellValue], Mapping[int, str]]]
"""Values of a range by key, computed ones included, and the cells whose value is not known."""

Overlay = dict[str, object]
"""Attribute -> the value that conditional formats give it."""

_OFF_THE_SHEET = "a reference of a condition leaves the sheet"


def rule_range(sheet: str, rule: SpokenRule) -> CellRange:
    """The rectangle around the ranges of a rule."""
    windows = rule.rule.windows
    return CellRange(
        sheet,
        min(each.min_row for each in windows),
        min(each.min_column for each in windows),
        max(each.max_row for each in windows),
        max(each.max_column for each in windows),
    )


def _key(sheet: str, rule: SpokenRule, row: int, column: int) -> ConditionKey | str:
    """The condition to evaluate, or why there is none."""
    if rule.formula.reason:
        return rule.formula.reason
    text = rule.formula.at(row, column)
    return _OFF_THE_SHEET if text is None else (sheet, text)


class RuleAsker:
    """Notes what has to be known about a workbook.

    Args:
        sheet: the sheet of the rules.
        questions: where it is noted.
    """

    def __init__(self, sheet: str, questions: Questions) -> None:
        self._sheet = sheet
        self._questions = questions

    def ask(self, rules: Sequence[SpokenRule], row: int, column: int) -> None:
        """Asks for everything that decides the look of a cell."""
        for rule in rules:
            if rule.rule.kind in AGGREGATES:
                self._questions.ranges[rule_range(self._sheet, rule)] = None
            elif rule.rule.kind not in UNDRAWN:
                key = _key(self._sheet, rule, row, column)
                if not isinstance(key, str):
                    self._questions.ask(key)


class RuleEvaluator:
    """Says how the rules of one sheet change the look of a cell.

    Args:
        sheet: the sheet of the rules.
        answers: what was found out.
        values_of: gives the values of ranges.
        palette: what colours refer to.
    """

    def __init__(self, sheet: str, answers: Answers, values_of: ValuesOf, palette: Palette) -> None:
        self._sheet = sheet
        self._answers = answers
        self._values_of = values_of
        self._palette = palette
        self._aggregates: dict[int, Holds | str] = {}
        self._scales: dict[int, Callable[[int], Fill | None] | str] = {}

    def overlay(
        self, rules: Sequence[SpokenRule], row: int, column: int, names: Sequence[str]
    ) -> Overlay | str:
        """How the rules change a cell: the first one that holds and sets an attribute wins.

        Args:
            rules: the rules that apply to the cell, in their order.
            row: its row.
            column: its column.
            names: the attributes that are compared.

        Returns:
            The attributes that are set, or why they cannot be determined.
        """
        found: Overlay = {}
        for rule in rules:
            if rule.is_scale:
                fill = self._scaled(rule, cell_key(row, column))
                if isinstance(fill, str):
                    return fill
                if fill is not None and "fill" in names:
                    found.setdefault("fill", fill)
                continue
            truth = self._truth(rule, row, column)
            if isinstance(truth, str):
                return truth
            if not truth:
                continue
            for name in names:
                if (look := getattr(rule.look, name)) is not None:
                    found.setdefault(name, look)
            if rule.rule.stops:
                break
        return found

    def _truth(self, rule: SpokenRule, row: int, column: int) -> bool | str:
        if rule.rule.kind in UNDRAWN:
            return False
        if rule.rule.kind in AGGREGATES:
            holds = self._aggregate(rule)
            return holds if isinstance(holds, str) else holds(cell_key(row, column))
        key = _key(self._sheet, rule, row, column)
        if isinstance(key, str):
            return key
        answers = self._answers
        truth = answers.truths.get(key)
        return answers.unknown.get(key, answers.otherwise) if truth is None else truth

    def _aggregate(self, rule: SpokenRule) -> Holds | str:
        known = self._aggregates.get(id(rule))
        if known is None:
            values = self._values(rule)
            known = values if isinstance(values, str) else aggregate(rule.rule, values)
            self._aggregates[id(rule)] = known
        return known

    def _scaled(self, rule: SpokenRule, key: int) -> Fill | str | None:
        known = self._scales.get(id(rule))
        if known is None:
            values = self._values(rule)
            known = values if isinstance(values, str) else scale(rule.rule, values, self._palette)
            self._scales[id(rule)] = known
        return known if isinstance(known, str) else known(key)

    def _values(self, rule: SpokenRule) -> Mapping[int, CellValue] | str:
        windows = rule.rule.windows
        try:
            values, unknown = self._values_of(rule_range(self._sheet, rule))
        except WorkbookError as error:
            return f"the ranges of a rule cannot be read: {error.message}"
        if max(len(values), len(unknown)) * len(windows) > MOST_VALUES:
            return "a rule looks at too many cells"
        if any(_within(key, windows) for key in unknown):
            return "a rule looks at formulas that nothing computed"
        return {key: value for key, value in values.items() if _within(key, windows)}


def _within(key: int, windows: Sequence[Window]) -> bool:
    row, column = key >> COLUMN_BITS, key & COLUMN_MASK
    return any(each.holds(row, column) for each in windows)
