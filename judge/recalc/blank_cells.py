"""Conditions that differ in nothing but which blank cells they look at.

A rule for a whole column speaks for thousands of cells below the data. There it looks at blank
cells alone, and what it says in one of them it says in all: it is computed once.
"""

from __future__ import annotations

import re

from judge.errors import WorkbookError
from judge.recalc.formula import references, traits
from judge.workbook.address import Window
from judge.workbook.reader import Workbook

_PLACES = frozenset(("ROW", "ROWS", "COLUMN", "COLUMNS", "ADDRESS", "INDIRECT", "OFFSET", "CELL"))
"""Functions to which it matters where a cell stands, and not only what it holds."""

_TEXT = re.compile(r'("(?:[^"]|"")*")')
_ROW_NUMBER = re.compile(r"(?<=[A-Za-z$])[0-9]+(?![\w.(])")


class BlankCells:
    """Says which conditions of a workbook mean the same.

    Args:
        workbook: the workbook; its sheets are read when they are asked for.
    """

    def __init__(self, workbook: Workbook) -> None:
        self._workbook = workbook
        self._used: dict[str, Window | None] = {}

    def meaning(self, sheet: str, formula: str) -> object:
        """What is equal for two conditions only if one holds where the other does.

        Args:
            sheet: the sheet on which it is asked.
            formula: the condition, as it reads in its cell.
        """
        said = traits(formula)
        exact = (sheet, formula)
        if said.names or said.opaque or said.broken or said.functions & _PLACES or "!" in formula:
            return exact
        used = self._used_window(sheet)
        told: list[object] = []
        is_blank = False
        for each in references(formula):
            if used is not None and each.min_row <= used.max_row:
                told.append((each.min_row, each.min_column, each.max_row, each.max_column))
            else:
                is_blank = True
                told.append((each.max_row - each.min_row, each.min_column, each.max_column))
        if not is_blank:
            return exact
        pieces = _TEXT.split(formula)
        plain = tuple(
            piece if index % 2 else _ROW_NUMBER.sub("#", piece)
            for index, piece in enumerate(pieces)
        )
        return (sheet, plain, tuple(told))

    def _used_window(self, sheet: str) -> Window | None:
        if sheet not in self._used:
            try:
                self._used[sheet] = self._workbook.sheet(sheet).used_window()
            except WorkbookError:
                self._used[sheet] = _EVERYTHING
        return self._used[sheet]


_EVERYTHING = Window(1, 1, 1 << 21, 1 << 15)
"""Where a sheet cannot be read, no cell of it is known to be blank."""
