"""Reads values from a document that is open in LibreOffice.

Standard library only: this text goes into the sandbox.
"""

from __future__ import annotations

import contextlib
from typing import Any

from judge.recalc.services.common import CannotComputeError

Area = tuple[str, int, int, int, int]
"""A sheet's name, then row, column, last row, last column, from 1."""

Place = tuple[int, int]
"""Index of an area, and index of a cell in it, counted row by row."""

LAST_ROW = 1_048_576
LAST_COLUMN = 16_384

ROWS_AT_ONCE = 100_000

EXCEL_ERRORS = {
    32767: "#N/A",
    502: "#NUM!",
    503: "#NUM!",
    504: "#REF!",
    519: "#VALUE!",
    521: "#NULL!",
    523: "#NUM!",
    524: "#REF!",
    525: "#NAME?",
    532: "#DIV/0!",
}
"""LibreOffice's error number -> the error that Excel shows. Other errors mean: not computed."""

OTHER_ERRORS = {
    501: "a character that the formula parser does not take",
    508: "brackets that do not match",
    509: "an operator is missing",
    510: "a variable is missing",
    511: "a parameter is missing",
    512: "the formula is too long",
    513: "a string is too long",
    514: "the sort or stack is too deep",
    516: "an internal syntax error",
    517: "an internal syntax error",
    518: "an internal syntax error",
    522: "the formula refers to itself",
    527: "the formulas are nested too deep",
    540: "external content is not loaded",
}


def read_values(document: Any, areas: list[Area]) -> list[list[object]]:
    """The values of some areas, row by row, as an answer contains them."""
    reading = Reading(document, areas)
    lists = [reading.raw(*area) for area in areas]
    errors: list[Place] = []
    ones: list[Place] = []
    for index, flat in enumerate(lists):
        for position, value in enumerate(flat):
            if value is None:
                errors.append((index, position))
            elif value in (0.0, 1.0):
                ones.append((index, position))
    said = reading.ask(
        [("ERRORTYPE", place) for place in errors] + [("ISLOGICAL", place) for place in ones]
    )
    for (index, position), number in zip(errors, said, strict=False):
        lists[index][position] = error_of(number)
    for (index, position), logical in zip(ones, said[len(errors) :], strict=True):
        if logical == 1.0:
            lists[index][position] = bool(lists[index][position])
    return lists


class Reading:
    """Reads values from an open document, and details that its interface does not provide."""

    def __init__(self, document: Any, areas: list[Area]) -> None:
        self.document = document
        self.sheets = document.Sheets
        self.areas = areas

    def raw(self, name: str, top: int, left: int, bottom: int, right: int) -> list[object]:
        """The values that LibreOffice returns in one call: numbers, strings, None for errors."""
        if not self.sheets.hasByName(name):
            raise CannotComputeError(f"LibreOffice finds no sheet {name!r}")
        cells = self.sheets.getByName(name).getCellRangeByPosition(
            left - 1, top - 1, right - 1, bottom - 1
        )
        return [value for row in cells.getDataArray() for value in row]

    def ask(self, questions: list[tuple[str, Place]]) -> list[object]:
        """The results of functions for some cells, computed by formulas in unused cells.

        Asking for each cell separately would take a round trip for each. Adding a sheet for the
        formulas would make LibreOffice compute the whole workbook again.
        """
        if not questions:
            return []
        sheet, column = self.free_column()
        formulas = tuple((f"={function}({self.address(place)})",) for function, place in questions)
        said: list[object] = []
        for start in range(0, len(formulas), ROWS_AT_ONCE):
            part = formulas[start : start + ROWS_AT_ONCE]
            # At the bottom, outside any reference to whole rows of the table.
            first = LAST_ROW - len(part)
            target = sheet.getCellRangeByPosition(column, first, column, LAST_ROW - 1)
            target.setFormulaArray(part)
            said.extend(row[0] for row in target.getDataArray())
        return said

    def free_column(self) -> tuple[Any, int]:
        """A writable sheet and a column of it, from 0, after everything that it contains."""
        for index in range(self.sheets.getCount()):
            sheet = self.sheets.getByIndex(index)
            if not unprotected(sheet):
                continue
            cursor = sheet.createCursor()
            cursor.gotoEndOfUsedArea(False)
            column = cursor.getRangeAddress().EndColumn + 1
            if column < LAST_COLUMN:
                return sheet, column
        if not unprotected(self.document):
            raise CannotComputeError("every sheet of the workbook is protected by a password")
        free = "judge"
        while self.sheets.hasByName(free):
            free += "_"
        self.sheets.insertNewByName(free, self.sheets.getCount())
        return self.sheets.getByName(free), 0

    def address(self, place: Place) -> str:
        """A cell as it is written in a formula that is set over UNO."""
        name, top, left, _, right = self.areas[place[0]]
        row, column = divmod(place[1], right - left + 1)
        sheet = "$'" + name.replace("'", "''") + "'"
        return f"{sheet}.{column_name(left + column)}{top + row}"


def unprotected(part: Any) -> bool:
    """Removes the protection of a sheet or a document; returns whether it is unprotected now."""
    if part.isProtected():
        with contextlib.suppress(Exception):  # UNO's own, if there is a password
            part.unprotect("")
    return not part.isProtected()


def column_name(column: int) -> str:
    """Letters of a 1-based column."""
    name = ""
    while column:
        column, digit = divmod(column - 1, 26)
        name = chr(65 + digit) + name
    return name


def error_of(number: object) -> dict[str, str]:
    """The form of LibreOffice's error number in an answer."""
    if not isinstance(number, float):
        return {"x": "LibreOffice gives no value"}
    code = int(number)
    if code in EXCEL_ERRORS:
        return {"e": EXCEL_ERRORS[code]}
    return {"x": f"LibreOffice cannot compute it (Err:{code}, {OTHER_ERRORS.get(code, 'other')})"}
