"""Finds conditions that differ only in which blank cells they refer to.

A rule for a whole column covers thousands of cells below the data. There it refers only to blank
cells and has the same result in all of them, so it is computed once.
"""

from __future__ import annotations

import re

from judge.errors import WorkbookError
from judge.formulas.lexer import Kind, tokens
from judge.formulas.references import references
from judge.formulas.traits import traits
from judge.workbook.address import Window
from judge.workbook.reader import Workbook

_PLACES = frozenset(("ROW", "ROWS", "COLUMN", "COLUMNS", "ADDRESS", "INDIRECT", "OFFSET", "CELL"))
"""Functions whose result depends on the position of a cell, not only on its value."""

_ROW_NUMBER = re.compile(r"(?<=[A-Za-z$])[0-9]+")


class BlankCells:
    """Finds the conditions of a workbook that are equivalent.

    Args:
        workbook: the workbook; its sheets are read when they are needed.
    """

    def __init__(self, workbook: Workbook) -> None:
        self._workbook = workbook
        self._used: dict[str, Window | None] = {}

    def meaning(self, sheet: str, formula: str) -> object:
        """A key that two conditions share only if they always have the same result.

        Args:
            sheet: the sheet of the condition.
            formula: the condition as its cell sees it.
        """
        facts = traits(formula)
        exact = (sheet, formula)
        if (
            facts.names
            or facts.opaque
            or facts.broken
            or facts.functions & _PLACES
            or "!" in formula
        ):
            return exact
        used = self._used_window(sheet)
        regions: list[object] = []
        is_blank = False
        for reference in references(formula):
            if used is not None and reference.min_row <= used.max_row:
                regions.append(
                    (
                        reference.min_row,
                        reference.min_column,
                        reference.max_row,
                        reference.max_column,
                    )
                )
            else:
                is_blank = True
                regions.append(
                    (
                        reference.max_row - reference.min_row,
                        reference.min_column,
                        reference.max_column,
                    )
                )
        if not is_blank:
            return exact
        plain = tuple(
            _ROW_NUMBER.sub("#", token.text) if token.kind in (Kind.CELL, Kind.ROWS) else token.text
            for token in tokens(formula)
        )
        return (sheet, plain, tuple(regions))

    def _used_window(self, sheet: str) -> Window | None:
        if sheet not in self._used:
            try:
                self._used[sheet] = self._workbook.sheet(sheet).used_window()
            except WorkbookError:
                self._used[sheet] = _EVERYTHING
        return self._used[sheet]


_EVERYTHING = Window(1, 1, 1 << 21, 1 << 15)
"""Used range of a sheet that cannot be read: none of its cells counts as blank."""
