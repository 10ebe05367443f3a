"""The cells of two sheets compared: the table at A1 by its headings, the rest at its place."""

from __future__ import annotations

from collections.abc import Sequence

from judge.compare.boards.cells import SheetCells
from judge.compare.boards.charts import numbers_agree
from judge.compare.boards.differences import Differences, Shown, shown, where
from judge.compare.boards.looks import FONT_FIELDS, differing_field
from judge.workbook.address import COLUMN_MASK, cell_key
from judge.workbook.cell import CellValue


class TableJudge:
    """Compares the cells of two sheets.

    Args:
        gold: the sheet of the gold.
        answer: the sheet of the answer.
        number: number of the sheet in the board.
        asked: which of ``values``, ``formatting`` and ``hyperlink`` are asked.
        found: where differences go: the first of each property.
    """

    def __init__(
        self,
        gold: SheetCells,
        answer: SheetCells,
        number: int,
        asked: Sequence[str],
        found: Differences,
    ) -> None:
        self._gold = gold
        self._answer = answer
        self._number = number
        self._open = dict.fromkeys(asked)
        self._found = found

    def judge(self) -> None:
        """Lists what differs.

        Raises:
            WorkbookError: a workbook is over a limit.
        """
        columns = _width(self._gold), _width(self._answer)
        if columns[0] != columns[1]:
            name = "values" if "values" in self._open else next(iter(self._open))
            said = Shown(f"{columns[0]} columns", f"{columns[1]} columns", "table at A1")
            self._found.add((self._number, "cells", name), self._answer.tab.name, said)
            return
        matched = self._matched(columns[0])
        if matched is None:
            return
        rows = self._gold.rows | self._answer.rows
        package = self._answer.owner.book.workbook.package
        with package.blamed():
            package.budget.take_cells(len(rows) * columns[0])
        for row in sorted(rows):
            for column, match in enumerate(matched, start=1):
                self._cell(cell_key(row, column), cell_key(row, match))
                if not self._open:
                    return
        for key in sorted(self._gold.filled):
            # What the answer has besides is its own affair.
            if key & COLUMN_MASK > columns[0]:
                self._cell(key, key)

    def _matched(self, columns: int) -> list[int] | None:
        """The column of the answer for each of the gold's, by its heading."""
        free = list(range(1, columns + 1))
        found = []
        for column in range(1, columns + 1):
            key = cell_key(1, column)
            same = [
                each
                for each in free
                if values_agree(self._gold, key, self._answer, cell_key(1, each))
            ]
            if not same:
                name = "values" if "values" in self._open else next(iter(self._open))
                said = Shown(shown(self._gold.values.get(key)), None, "no such heading")
                self._found.add((self._number, "cells", name), self._answer.tab.name, said)
                return None
            match = column if column in same else same[0]
            free.remove(match)
            found.append(match)
        return found

    def _cell(self, expected: int, actual: int) -> None:
        gold, answer = self._gold, self._answer
        if "values" in self._open and not values_agree(gold, expected, answer, actual):
            missing = answer.not_calculated.get(actual) or gold.not_calculated.get(expected)
            said = Shown(
                shown(gold.values.get(expected)), shown(answer.values.get(actual)), where(actual)
            )
            self._add("values", said, missing=missing)
        if "formatting" in self._open:
            said_look = self._look(expected, actual)
            if said_look is not None:
                self._add("formatting", said_look)
        if "hyperlink" in self._open:
            links = gold.links.get(expected, ()), answer.links.get(actual, ())
            if sorted(links[0]) != sorted(links[1]):
                self._add("hyperlink", Shown(list(links[0]), list(links[1]), where(actual)))

    def _look(self, expected: int, actual: int) -> Shown | None:
        """How two cells look different. Fonts and number formats of blank cells do not show."""
        first, second = self._gold.look(expected), self._answer.look(actual)
        if first == second:
            return None
        filled = expected in self._gold.filled or actual in self._answer.filled
        names = (*FONT_FIELDS, "fill") if filled else ("fill",)
        name = differing_field(first, second, names, rounded=True)
        if name is not None:
            return Shown(getattr(first, name), getattr(second, name), f"{name} of {where(actual)}")
        if self._shows_format(expected, actual) and first.format_class != second.format_class:
            return Shown(first.code, second.code, f"number format of {where(actual)}")
        return None

    def _shows_format(self, expected: int, actual: int) -> bool:
        """Whether the number format of a cell shows: that of text does not."""
        values = self._gold.values.get(expected), self._answer.values.get(actual)
        return any(value is not None and not isinstance(value, str) for value in values)

    def _add(self, name: str, said: Shown, *, missing: str | None = None) -> None:
        del self._open[name]
        place = (self._number, "cells", name)
        self._found.add(place, self._answer.tab.name, said, missing=missing)


def _width(sheet: SheetCells) -> int:
    """How many columns the table at A1 has; without a heading there, all columns in use."""
    return max(1, min(sheet.ends[1], sheet.last_column))


def values_agree(gold: SheetCells, expected: int, answer: SheetCells, actual: int) -> bool:
    """Whether two cells hold the same: dates are numbers, text counts without outer space."""
    written, found = gold.values.get(expected), answer.values.get(actual)
    if type(written) is type(found) and written == found:
        return True
    first, second = _plain(gold, expected), _plain(answer, actual)
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, int | float) and isinstance(second, int | float):
        return numbers_agree(first, second) or numbers_agree(second, first)
    return first == second


def _plain(sheet: SheetCells, key: int) -> CellValue:
    value = sheet.serial(sheet.values.get(key))
    if isinstance(value, str):
        return value.strip() or None
    return value
