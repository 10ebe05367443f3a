"""Judges by boards in the judge's own way: every property is checked, on all sheets and rows.

Sheets are paired by name, objects one to one, and properties that the published evaluation ignores
are checked; docs/boards.md lists the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from typing import TypeVar

from judge.compare.boards.board import Board, Differences, Evidence
from judge.compare.boards.cells import BoardBook
from judge.compare.boards.charts import charts_of
from judge.compare.boards.conditions import rules_of
from judge.compare.boards.objects import (
    TableJudge,
    chart_properties,
    filter_properties,
    merged_rules,
    pivot_properties,
    pivots_of,
    rule_properties,
)
from judge.compare.rules.methods import unmatched
from judge.core.finding import FoundDifference
from judge.workbook.address import folded
from judge.workbook.facts.sheets import view_of
from judge.workbook.workbook_parts import Tab

# -- which sheet of an answer corresponds to which sheet of its gold -------------------------------

_MAX_TRIED = 5
"""If at most this many sheets lack a partner of the same name, all of their orders (120) are
tried."""


def paired_sheets(
    gold: Sequence[Tab], answer: Sequence[Tab], distance: Callable[[Tab, Tab], float]
) -> Mapping[str, Tab]:
    """Returns the name of each sheet of the gold -> the corresponding sheet of the answer.

    Sheets of the same name are paired. Other sheets, whose names the task leaves open, are paired
    so that they differ least. Of several such pairings, the first in sheet order is used.

    Args:
        gold: sheets of the gold, in order.
        answer: sheets of the answer, in order.
        distance: how far two sheets differ, from 0 up.
    """
    by_name = {folded(sheet.name): sheet for sheet in reversed(answer)}
    by_gold_name = {
        sheet.name: by_name[folded(sheet.name)] for sheet in gold if folded(sheet.name) in by_name
    }
    taken = {sheet.name for sheet in by_gold_name.values()}
    left = [sheet for sheet in gold if sheet.name not in by_gold_name]
    free = [sheet for sheet in answer if sheet.name not in taken]
    if not left or not free:
        return by_gold_name
    if len(left) == len(free) == 1 or max(len(left), len(free)) > _MAX_TRIED:
        return {**by_gold_name, **{one.name: other for one, other in zip(left, free, strict=False)}}
    distances = {(a.name, b.name): distance(a, b) for a in left for b in free}
    short, long, flipped = (left, free, False) if len(left) <= len(free) else (free, left, True)

    def pairs(order: Sequence[Tab]) -> list[tuple[Tab, Tab]]:
        return [(b, a) if flipped else (a, b) for a, b in zip(short, order, strict=True)]

    best = min(
        permutations(long, len(short)),
        key=lambda order: sum(distances[a.name, b.name] for a, b in pairs(order)),
    )
    return {**by_gold_name, **{a.name: b for a, b in pairs(best)}}


# -- boards ----------------------------------------------------------------------------------------

_Object = TypeVar("_Object")
Properties = Mapping[str, tuple[object, object, bool]]
"""Property -> its value in the gold, its value in the answer, and whether the two agree."""


class UnusableBoardError(Exception):
    """A board requires only objects that its gold does not have, so any workbook would pass."""


class StandardJudge:
    """Judges an answer by a board.

    Args:
        answer: the workbook to judge.
        gold: the gold.
        board: its board.

    Attributes:
        notes: what could not be checked, one line for each problem.
    """

    def __init__(self, answer: BoardBook, gold: BoardBook, board: Board) -> None:
        self._answer = answer
        self._gold = gold
        self._board = board
        self._differences = Differences(board, [tab.name for tab in gold.tabs])
        self.notes: list[str] = []

    def differences(self) -> list[FoundDifference]:
        """Returns the differences in the properties that the board asks for.

        Raises:
            UnusableBoardError: the gold has nothing that the board asks for.
            WorkbookError: a workbook is broken or over a limit.
            RecalcError: an engine cannot be started.
        """
        golds, answers = self._gold.tabs, self._answer.tabs
        checked = [sheet for sheet in sorted(self._board.sheets) if self._board.sheets[sheet]]
        check_board(self._gold, self._board)
        if len(golds) != len(answers):
            self._differences.sheet_count(len(golds), len(answers))
        partners = paired_sheets(golds, answers, self._distance)
        for number in checked:
            if number > len(golds):
                continue
            gold = golds[number - 1]
            answer = partners.get(gold.name)
            if answer is None:
                self._differences.missing_sheet(number, gold.name)
                continue
            self._sheet(number, gold, answer)
        return self._differences.listed

    def _distance(self, gold: Tab, answer: Tab) -> float:
        """Returns how much two sheets differ: in charts and pivot tables, then in filled cells."""
        counts = []
        for owner, tab in ((self._gold, gold), (self._answer, answer)):
            facts = owner.book.facts
            counts.append((len(facts.charts(tab)), len(facts.pivots(tab))))
        first, second = self._gold.sheet(gold).filled, self._answer.sheet(answer).filled
        union = len(first | second)
        apart = float(sum(abs(a - b) for a, b in zip(*counts, strict=True)))
        return apart + (1 - len(first & second) / union if union else 0)

    def _sheet(self, number: int, gold: Tab, answer: Tab) -> None:
        categories = self._board.sheets[number]
        if "cells" in categories:
            TableJudge(
                self._gold.sheet(gold),
                self._answer.sheet(answer),
                number,
                categories["cells"],
                self._differences,
            ).judge()
        if "charts" in categories:
            self._objects(
                (number, "charts"),
                answer,
                (charts_of(self._gold, gold), charts_of(self._answer, answer)),
                chart_properties,
            )
        if "pivot_tables" in categories:
            self._objects(
                (number, "pivot_tables"),
                answer,
                (pivots_of(self._gold, gold), pivots_of(self._answer, answer)),
                pivot_properties,
            )
        if "filters" in categories:
            sides = self._gold.sheet(gold), self._answer.sheet(answer)
            self._report((number, "filters"), answer, filter_properties(*sides))
        if "format_conditions" in categories:
            rules = (
                merged_rules(rules_of(self._gold, gold), self._gold.sheet(gold)),
                merged_rules(rules_of(self._answer, answer), self._answer.sheet(answer)),
            )
            self._objects((number, "format_conditions"), answer, rules, rule_properties)
        if "view" in categories:
            self._pane(number, gold, answer)

    # -- objects ---------------------------------------------------------------------------------

    def _objects(
        self,
        position: tuple[int, str],
        answer: Tab,
        sides: tuple[Sequence[_Object], Sequence[_Object]],
        properties: Callable[[_Object, _Object], Properties],
    ) -> None:
        """Pairs objects that agree in all requested properties; reports how the others differ."""
        number, category = position
        required = self._board.sheets[number][category]
        first, second = sides

        def wrong(one: _Object, other: _Object) -> list[str]:
            return [
                name
                for name, (_, _, same) in properties(one, other).items()
                if name in required and not same
            ]

        if "name" in required and category == "charts":
            self._note("names of charts are not stored in the charts, and are not compared")
        if len(sides[0]) != len(sides[1]):
            counts = Evidence(
                [str(side) for side in sides[0]], [str(side) for side in sides[1]], "number"
            )
            self._differences.add((number, category, "count"), answer.name, counts)
            return
        left, right = unmatched(first, second, lambda one, other: not wrong(one, other))
        for one in left:
            nearest = min(right, key=lambda other: len(wrong(one, other)))
            right.remove(nearest)
            self._report(position, answer, properties(one, nearest), str(one))

    def _report(
        self, position: tuple[int, str], answer: Tab, properties: Properties, detail: str = ""
    ) -> None:
        number, category = position
        required = self._board.sheets[number][category]
        for name, (expected, actual, same) in properties.items():
            if name in required and not same:
                shown = Evidence(expected, actual, detail)
                self._differences.add((number, category, name), answer.name, shown)

    def _note(self, line: str) -> None:
        if line not in self.notes:
            self.notes.append(line)

    def _pane(self, number: int, gold: Tab, answer: Tab) -> None:
        first, second = frozen(self._gold, gold), frozen(self._answer, answer)
        if first != second:
            self._differences.add(
                (number, "view", "freeze_pane"),
                answer.name,
                Evidence(_pane_in_words(first), _pane_in_words(second)),
            )


def frozen(owner: BoardBook, tab: Tab) -> tuple[float, float]:
    """Returns how many rows and columns of a sheet are frozen; none if it is only split."""
    pane = view_of(owner.book.facts.tree(tab)).pane
    return (pane.rows, pane.columns) if pane is not None and pane.frozen else (0, 0)


def _pane_in_words(pane: tuple[float, float]) -> str:
    return f"{pane[0]:g} rows and {pane[1]:g} columns frozen"


def check_board(gold: BoardBook, board: Board) -> None:
    """Checks that a board does not accept every workbook.

    Raises:
        UnusableBoardError: the gold has nothing that the board asks for.
        WorkbookError: the gold is broken or over a limit.
    """
    if not board.required:
        raise UnusableBoardError("the board asks for nothing")
    tabs = gold.tabs
    inside = [check for check in board.required if check.sheet <= len(tabs)]
    if not inside:
        raise UnusableBoardError(
            f"the board checks sheet {board.required[0].sheet}, but the gold has {len(tabs)}"
        )
    required = {(check.sheet, check.category) for check in inside}
    if any(_has(gold, tabs[sheet - 1], category) for sheet, category in required):
        return
    named = ", ".join(sorted({check.category for check in inside}))
    raise UnusableBoardError(f"the board asks for {named}, but the gold has none")


def _has(gold: BoardBook, tab: Tab, category: str) -> bool:
    """Whether a sheet has an object of a category."""
    facts = gold.book.facts
    if category == "charts":
        return bool(facts.charts(tab))
    if category == "pivot_tables":
        return bool(facts.pivots(tab))
    if category == "filters":
        return facts.sheet(tab).filter is not None
    return category != "format_conditions" or bool(rules_of(gold, tab))
