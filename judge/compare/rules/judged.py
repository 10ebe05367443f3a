"""The two workbooks that rules compare, and the difference that a failed rule reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from judge.compare.cells.computing import Compute
from judge.compare.rules.book import Book, Grid, Grids, Rule, option_of, sheet_named
from judge.compare.rules.published_error import PublishedError, Side
from judge.core.records.cases import DifferingCellRecord
from judge.core.submission import Origin
from judge.workbook.workbook_parts import Tab

NOT_CALCULATED = "not_calculated"

MAX_CELLS = 50
"""How many differing cells are kept per rule."""


@dataclass(frozen=True, slots=True)
class Target:
    """A sheet that a rule names, which exists in its book."""

    book: Book
    tab: Tab


class MissingSheetError(Exception):
    """The answer lacks a sheet."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass(frozen=True, slots=True)
class RuleDifference:
    """The difference that makes a rule fail.

    Attributes:
        expected, actual: the two values, as JSON.
        detail: position of the difference in the sheet.
        sheet: the sheet of the answer.
        kind: class of the difference; empty if it is the type of the rule.
        cells: the first cells that differ.
        all_cells: how many cells differ in total.
    """

    expected: object
    actual: object
    detail: str = ""
    sheet: str = ""
    kind: str = ""
    cells: tuple[DifferingCellRecord, ...] = ()
    all_cells: int = 0


class Judged:
    """The two workbooks that rules compare; the values of a sheet are computed only once.

    Args:
        answer: the workbook to judge.
        gold: the gold; None if the task has no gold.
        compute: computes formulas.
        origin: where the answer comes from.
    """

    def __init__(self, answer: Book, gold: Book | None, compute: Compute, origin: Origin) -> None:
        self.answer = answer
        self.gold = gold
        self.compute = compute
        self.origin = origin
        self._grids: Mapping[Side, Grids] = {
            book.side: Grids(book, compute, origin if book.side is Side.ANSWER else Origin.GOLD)
            for book in (answer, gold)
            if book is not None
        }

    def target(self, rule: Rule, option: str) -> Target:
        """Returns the sheet that an option of a rule names.

        Raises:
            PublishedError: the rule or the gold is at fault.
            MissingSheetError: the answer lacks the sheet.
        """
        ref = sheet_named(option_of(rule, option), self.answer, self.gold)
        if ref.book is None:
            raise PublishedError("ValueError", "the rule requires a gold", Side.RULES)
        tab = ref.book.tab(ref.name)
        if tab is None:
            if ref.book.side is Side.GOLD:
                raise PublishedError(
                    "KeyError", f"the gold has no sheet {rule[option]!r}", Side.GOLD
                )
            raise MissingSheetError(ref.name or str(rule[option]))
        return Target(ref.book, tab)

    def pair(self, rule: Rule) -> tuple[Target, Target]:
        """Returns the sheets that a rule compares: the gold's, or a second one; then the answer's.

        Raises:
            PublishedError: the rule or the gold is at fault, such as a rule that cannot fail.
            MissingSheetError: the answer lacks one of the sheets.
        """
        first, second = (
            sheet_named(option_of(rule, name), self.answer, self.gold)
            for name in ("sheet_idx0", "sheet_idx1")
        )
        if first.book is not None and (first.book, first.name) == (second.book, second.name):
            raise PublishedError(
                "ValueError", f"sheet {first.name!r} is compared with itself", Side.RULES
            )
        expected = self.target(rule, "sheet_idx1")
        return expected, self.target(rule, "sheet_idx0")

    def grid(self, target: Target) -> Grid:
        """Returns the values of a sheet.

        Raises:
            WorkbookError: the sheet is broken or over a limit.
            RecalcError: an engine cannot be started.
        """
        return self._grids[target.book.side].sheet(target.tab.name)
