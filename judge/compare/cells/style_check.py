"""Compares the formatting of cells whose values agree, also hyperlinks and conditional formats."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from judge.compare.cells.conditional_formats import RuleComparison, RuleSide, has_rules
from judge.compare.cells.options import check_style_names
from judge.compare.cells.sides import (
    NO_ANSWERS,
    Alignment,
    Answers,
    ConditionAnswers,
    ConditionQuestions,
    RangeSide,
)
from judge.workbook.address import Window
from judge.workbook.cell import CellRange, CellValue
from judge.workbook.reader import Workbook, linked_keys
from judge.workbook.styles.conditional import CONDITIONAL_ATTRIBUTES
from judge.workbook.styles.style_sheet import attribute_agrees


def compare_styles(
    gold: RangeSide,
    output: RangeSide,
    alignment: Alignment,
    style: tuple[str, ...],
    *,
    skip: Collection[int],
    conditions: ConditionAnswers,
) -> tuple[Mapping[int, str], Sequence[str]]:
    """Compares the formatting of the cells of a rectangle.

    Args:
        gold: the gold's side.
        output: the output's side.
        alignment: which cells are compared with each other.
        style: the style attributes to compare.
        skip: keys of cells that are not compared.
        conditions: which conditions of conditional formats hold.

    Returns:
        Key of the gold's cell -> which attributes differ and how; and notes on how conditional
        formats were compared.

    Raises:
        UsageError: there is no such attribute.
        WorkbookError: a style sheet is broken, or there are too many conditional formats.
    """
    checker = StyleChecker(gold.workbook, output.workbook, style)
    rules = _rules(gold, output, alignment, style, conditions)
    details = checker.details(
        gold.cell_range, output.cell_range, alignment.output_key, skip=skip, rules=rules
    )
    return details, () if rules is None else rules.notes


def have_rules(gold: RangeSide, output: RangeSide, style: tuple[str, ...]) -> bool:
    """Whether both sheets have conditional formats that set one of the style attributes."""
    names = conditional_names(style)
    return bool(names) and all(
        has_rules(side.sheet, side.workbook, names) for side in (gold, output)
    )


def ask_about_rules(
    gold: RangeSide,
    output: RangeSide,
    alignment: Alignment,
    style: tuple[str, ...],
    *,
    skip: Collection[int],
    questions: ConditionQuestions,
) -> None:
    """Collects the conditions that are needed to compare the conditional formats of a rectangle.

    Args:
        gold: the gold's side.
        output: the output's side.
        alignment: which cells are compared with each other.
        style: the style attributes to compare.
        skip: keys of cells that are not compared.
        questions: receives the conditions; none if the rules have the same text.

    Raises:
        WorkbookError: there are too many conditional formats.
    """
    rules = _rules(gold, output, alignment, style, NO_ANSWERS)
    if rules is not None:
        rules.ask(questions, skip=skip)


def _rules(
    gold: RangeSide,
    output: RangeSide,
    alignment: Alignment,
    style: tuple[str, ...],
    conditions: ConditionAnswers,
) -> RuleComparison | None:
    names = conditional_names(style)
    if not names:
        return None
    return RuleComparison(
        _rule_side(gold, conditions.gold),
        _rule_side(output, conditions.output),
        gold.window,
        names,
        alignment.rows,
    )


def _rule_side(side: RangeSide, answers: Answers) -> RuleSide:
    def values_of(area: CellRange) -> tuple[Mapping[int, CellValue], Mapping[int, str]]:
        cells = RangeSide(side.workbook, area, answers.values)
        return cells.values(), cells.uncomputed()

    return RuleSide(side.workbook, side.cell_range.sheet, answers, values_of)


class StyleChecker:
    """Compares style attributes of two workbooks.

    A cell that is not stored in the file has the workbook's first cell format. A cell that a merged
    range hides on both sides has no look: openpyxl stores such cells without one. Conditional
    formats are compared as well, by :mod:`judge.compare.cells.conditional_formats`.

    Args:
        gold: the gold workbook.
        output: the output workbook.
        attributes: names of :data:`judge.workbook.cell.STYLE_ATTRIBUTES`.

    Raises:
        UsageError: there is no such attribute.
    """

    def __init__(self, gold: Workbook, output: Workbook, attributes: Sequence[str]) -> None:
        check_style_names(attributes)
        self._gold = gold
        self._output = output
        self._attributes = tuple(dict.fromkeys(attributes))
        self._compared_pairs: dict[tuple[int, int], str] = {}

    def details(
        self,
        gold_range: CellRange,
        output_range: CellRange,
        output_key: Callable[[int], int],
        *,
        skip: Collection[int],
        rules: RuleComparison | None = None,
    ) -> dict[int, str]:
        """Compares the formatting of the cells of a rectangle.

        Args:
            gold_range: the gold's rectangle.
            output_range: the output's rectangle.
            output_key: key of a cell of the gold -> key of its counterpart in the output.
            skip: cells that are not compared.
            rules: compares the conditional formats; None if they are not compared.

        Returns:
            Key of the gold's cell -> which attributes differ and how.

        Raises:
            WorkbookError: a style sheet is broken, or there are too many conditional formats.
        """
        window = gold_range.window
        details: dict[int, list[str]] = {}

        def note(key: int, difference: str) -> None:
            if difference and key not in skip:
                details.setdefault(key, []).append(difference)

        self._compare_formats(gold_range, output_range, window, output_key, note)
        if rules is not None:
            for key, difference in rules.differing(skip=skip):
                note(key, difference)
        if "hyperlink" in self._attributes:
            self._compare_links(gold_range, output_range, window, output_key, note)
        return {key: "; ".join(differences) for key, differences in details.items()}

    # -- cell formats ----------------------------------------------------------------------------

    def _compare_formats(
        self,
        gold_range: CellRange,
        output_range: CellRange,
        window: Window,
        output_key: Callable[[int], int],
        note: Callable[[int, str], None],
    ) -> None:
        gold_sheet = self._gold.sheet(gold_range.sheet)
        output_sheet = self._output.sheet(output_range.sheet)
        expected, actual = gold_sheet.styles(window), output_sheet.styles(window)
        stored = gold_sheet.values(window).keys() | output_sheet.values(window).keys()
        hidden = gold_sheet.covered(window)
        hidden_in_output = output_sheet.covered(window) if hidden else set()
        for key in stored:
            if key in hidden and output_key(key) in hidden_in_output:
                continue
            pair = expected.get(key, 0), actual.get(output_key(key), 0)
            if pair not in self._compared_pairs:
                self._compared_pairs[pair] = self._compare_pair(*pair)
            note(key, self._compared_pairs[pair])

    def _compare_pair(self, gold_index: int, output_index: int) -> str:
        expected, actual = self._gold.style(gold_index), self._output.style(output_index)
        return "; ".join(
            f"{name.replace('_', ' ')}: expected {getattr(expected, name)}, "
            f"found {getattr(actual, name)}"
            for name in self._attributes
            if name != "hyperlink" and not attribute_agrees(name, expected, actual)
        )

    # -- hyperlinks ------------------------------------------------------------------------------

    def _compare_links(
        self,
        gold_range: CellRange,
        output_range: CellRange,
        window: Window,
        output_key: Callable[[int], int],
        note: Callable[[int, str], None],
    ) -> None:
        expected = _links(self._gold, gold_range.sheet, window)
        actual = _links(self._output, output_range.sheet, window)
        for key in expected.keys() | actual.keys():
            first, second = expected.get(key), actual.get(output_key(key))
            if first != second:
                note(key, f"hyperlink: expected {first or 'none'}, found {second or 'none'}")


def conditional_names(attributes: Sequence[str]) -> tuple[str, ...]:
    """Returns the style attributes that conditional formats can change."""
    return tuple(name for name in dict.fromkeys(attributes) if name in CONDITIONAL_ATTRIBUTES)


def _links(workbook: Workbook, sheet: str, window: Window) -> dict[int, str]:
    links: dict[int, str] = {}
    for _, keys, target in linked_keys(workbook, sheet, window):
        links |= dict.fromkeys(keys, target)
    return links
