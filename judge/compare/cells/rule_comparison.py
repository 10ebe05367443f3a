"""Comparing the conditional formats of a rectangle: as text first, then by what they show.

Rules with the same text are the same, and nothing is computed for them. If their text differs, what
counts is the look of each cell, by the conditions that hold in it. If it cannot be determined which
hold, the text decides, with a note. A side without any rule does not match one with rules, even if
none of these holds: nothing else shows that the task required a rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from judge.compare.cells.conditions import Answers, ConditionQuestions
from judge.compare.cells.rule_check import (
    MOST_EVALUATED,
    Overlay,
    RuleAsker,
    RuleEvaluator,
    ValuesOf,
)
from judge.workbook.address import Window, cell_key
from judge.workbook.reader import Workbook
from judge.workbook.sheets.sheet import Sheet
from judge.workbook.styles.conditional import (
    RuleWork,
    Segment,
    SpokenRule,
    reads_alike,
    same_rules,
    segments,
    spoken_rules,
)
from judge.workbook.styles.rule_formulas import UNDRAWN
from judge.workbook.styles.style import CellStyle, attribute_agrees

OTHER_RULES = "other conditional formats"
"""How the detail of a difference ends that was found in the text of rules."""

_ONE_SIDED = "one side has no such rule"
_TOO_MANY = f"there are more than {MOST_EVALUATED:,} conditions to evaluate"


@dataclass(frozen=True, slots=True)
class RuleSide:
    """One of the two sides.

    Attributes:
        workbook: the workbook.
        sheet: name of the worksheet.
        answers: what was found out about its conditions.
        values_of: gives values of its ranges.
    """

    workbook: Workbook
    sheet: str
    answers: Answers
    values_of: ValuesOf


@dataclass(frozen=True, slots=True)
class _Unlike:
    """A rectangle in which the text of the rules differs.

    Attributes:
        segment: the rectangle.
        names: the attributes for which it differs.
        other: those for which it differs whatever the order of the rules.
        reason: why the rules are not evaluated; empty if they may be.
    """

    segment: Segment
    names: tuple[str, ...]
    other: tuple[str, ...]
    reason: str


def has_rules(sheet: Sheet, workbook: Workbook, names: Sequence[str]) -> bool:
    """Whether a sheet has rules that set one of some attributes."""
    rules = sheet.tail.rules
    return bool(rules) and bool(spoken_rules(rules, workbook.style_sheet, names, RuleWork()))


class RuleComparison:
    """The conditional formats of one rectangle on both sides.

    Args:
        gold: the gold's side.
        output: the output's side.
        window: the rectangle.
        names: attributes of :data:`judge.workbook.styles.conditional.CONDITIONAL_ATTRIBUTES`.
        moved_rows: row of the gold -> row in which the output has it, if rows were moved.
    """

    def __init__(
        self,
        gold: RuleSide,
        output: RuleSide,
        window: Window,
        names: Sequence[str],
        moved_rows: Mapping[int, int],
    ) -> None:
        self._gold = gold
        self._output = output
        self._window = window
        self._names = tuple(names)
        self._moved_rows = moved_rows
        self._styles: dict[int, Mapping[int, int]] = {}
        self._as_text: Counter[str] = Counter()
        self._as_shown = 0

    @property
    def notes(self) -> list[str]:
        """How rules with different text were compared, after :meth:`differing`."""
        where = f"{self._gold.sheet!r}"
        told = []
        if self._as_shown:
            told.append(
                f"conditional formats of {where} that are written differently were compared by "
                f"what they show in {self._as_shown:,} cells"
            )
        for reason, cells in self._as_text.items():
            told.append(
                f"conditional formats of {where} were compared as text in {cells:,} cells: {reason}"
            )
        return told + self._undrawn()

    def _undrawn(self) -> list[str]:
        drawn = [
            [
                (rule.kind, rule.windows, rule.terms, rule.drawn)
                for rule in side.workbook.sheet(side.sheet).tail.rules
                if rule.kind in UNDRAWN
            ]
            for side in (self._gold, self._output)
        ]
        if drawn[0] == drawn[1]:
            return []
        return [f"data bars and icon sets of {self._gold.sheet!r} differ; they are not compared"]

    # -- asking ----------------------------------------------------------------------------------

    def ask(self, questions: ConditionQuestions, *, skip: Collection[int]) -> None:
        """Notes what has to be known for :meth:`differing` with the same cells to skip.

        Raises:
            WorkbookError: there are too many rules.
        """
        gold = RuleAsker(self._gold.sheet, questions.gold)
        output = RuleAsker(self._output.sheet, questions.output)
        for unlike in self._unlike():
            if unlike.reason:
                continue
            segment = unlike.segment
            for row, column in _cells(segment.window):
                if cell_key(row, column) not in skip:
                    gold.ask(segment.gold, row, column)
                    output.ask(segment.output, row + segment.rows_down, column)

    def _unlike(self) -> Iterator[_Unlike]:
        """Rectangles in which the text of the rules differs."""
        if self._gold.workbook is self._output.workbook and not self._moved_rows:
            return
        work = RuleWork()
        gold, output = self._spoken(self._gold, work), self._spoken(self._output, work)
        left = MOST_EVALUATED
        blamed = self._gold if len(gold) > len(output) else self._output
        with blamed.workbook.package.blamed():
            for segment in segments(self._window, gold, output, self._moved_rows, work):
                names = [name for name in self._names if not reads_alike(name, segment)]
                if not names:
                    continue
                work.take(_size(segment.window))
                cost = _size(segment.window) * (len(segment.gold) + len(segment.output))
                reason = ""
                if not (gold and output):
                    reason = _ONE_SIDED
                elif cost > left:
                    reason = _TOO_MANY
                else:
                    left -= cost
                other = tuple(name for name in names if not same_rules(name, segment))
                yield _Unlike(segment, tuple(names), other, reason)

    def _spoken(self, side: RuleSide, work: RuleWork) -> list[SpokenRule]:
        with side.workbook.package.blamed():
            rules = [
                each
                for each in side.workbook.sheet(side.sheet).tail.rules
                if any(_overlap(window, self._window) for window in each.windows)
            ]
            if not rules:
                return []
            return spoken_rules(rules, side.workbook.style_sheet, self._names, work)

    # -- comparing -------------------------------------------------------------------------------

    def differing(self, *, skip: Collection[int]) -> Iterator[tuple[int, str]]:
        """The cells that conditional formats make look different, and how.

        Args:
            skip: keys of cells that are not compared.

        Yields:
            Key of the gold's cell, and what differs.

        Raises:
            WorkbookError: there are too many rules.
        """
        gold = self._evaluator(self._gold)
        output = self._evaluator(self._output)
        for unlike in self._unlike():
            segment, down = unlike.segment, unlike.segment.rows_down
            for row, column in _cells(segment.window):
                key = cell_key(row, column)
                if key in skip:
                    continue
                if unlike.reason:
                    yield from self._by_text(key, unlike, unlike.reason)
                    continue
                first = gold.overlay(segment.gold, row, column, unlike.names)
                second = output.overlay(segment.output, row + down, column, unlike.names)
                if isinstance(first, str) or isinstance(second, str):
                    reason = first if isinstance(first, str) else str(second)
                    yield from self._by_text(key, unlike, reason)
                    continue
                self._as_shown += 1
                shown = self._look(self._gold, key, first)
                found = self._look(self._output, cell_key(row + down, column), second)
                for name in unlike.names:
                    if not attribute_agrees(name, shown, found):
                        yield key, _told(name, shown, found)

    def _by_text(self, key: int, unlike: _Unlike, reason: str) -> Iterator[tuple[int, str]]:
        if reason != _ONE_SIDED:
            self._as_text[reason] += 1
        for name in unlike.other:
            yield key, f"{name.replace('_', ' ')}: {OTHER_RULES}"

    @staticmethod
    def _evaluator(side: RuleSide) -> RuleEvaluator:
        return RuleEvaluator(
            side.sheet, side.answers, side.values_of, side.workbook.style_sheet.palette
        )

    def _look(self, side: RuleSide, key: int, overlay: Overlay) -> CellStyle:
        """What a cell looks like after its conditional formats were applied."""
        if id(side) not in self._styles:
            self._styles[id(side)] = side.workbook.sheet(side.sheet).styles(self._window)
        own = side.workbook.style(self._styles[id(side)].get(key, 0))
        return replace(own, **overlay) if overlay else own  # type: ignore[arg-type]


def _told(name: str, shown: CellStyle, found: CellStyle) -> str:
    return (
        f"{name.replace('_', ' ')}: with conditional formats expected {getattr(shown, name)}, "
        f"found {getattr(found, name)}"
    )


def _overlap(first: Window, second: Window) -> bool:
    return (
        first.min_row <= second.max_row
        and second.min_row <= first.max_row
        and first.min_column <= second.max_column
        and second.min_column <= first.max_column
    )


def _size(window: Window) -> int:
    return (window.max_row - window.min_row + 1) * (window.max_column - window.min_column + 1)


def _cells(window: Window) -> Iterator[tuple[int, int]]:
    for row in range(window.min_row, window.max_row + 1):
        for column in range(window.min_column, window.max_column + 1):
            yield row, column
