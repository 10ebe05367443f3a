"""The wrong cells of a gold, and their right values, as a correction lists them.

:mod:`judge.suites.gold_corrections` writes the right values into the gold.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from judge.errors import UsageError
from judge.files.documents import written
from judge.workbook.address import cell_name, parse_cell
from judge.workbook.cell import CellRef, CellValue
from judge.workbook.editing.contents import (
    Formula,
    address,
    content_from_json,
    content_to_json,
)


class UnfitCellsError(Exception):
    """The cells of a correction are not valid, or do not match a file."""


@dataclass(frozen=True, slots=True)
class CellCorrection:
    """One corrected cell of a gold.

    Attributes:
        ref: the cell, with the real name of its sheet.
        was: the value that the file holds; None if the cell is blank.
        now: the right value; None for a blank cell.
    """

    ref: CellRef
    was: CellValue
    now: CellValue

    def __str__(self) -> str:
        return f"{address(self.ref)} is {shown_value(self.now)} instead of {shown_value(self.was)}"

    def to_json(self) -> dict[str, object]:
        """The cell as it is written in a correction."""
        return {
            "sheet": self.ref.sheet,
            "cell": cell_name(self.ref.row, self.ref.column),
            "was": content_to_json(self.was),
            "now": content_to_json(self.now),
        }


def read_cells(entries: object) -> tuple[CellCorrection, ...]:
    """Reads the cells of a correction from parsed YAML or JSON.

    Raises:
        UnfitCellsError: the cells are not valid; says what is wrong.
    """
    if not isinstance(entries, list) or not entries:
        raise UnfitCellsError(f"field 'cells' must be a list of cells, not {written(entries)}")
    cells = tuple(_cell(number, entry) for number, entry in enumerate(entries, 1))
    if len({cell.ref for cell in cells}) < len(cells):
        raise UnfitCellsError("field 'cells' names a cell twice")
    return cells


def _cell(number: int, entry: object) -> CellCorrection:
    names = {"sheet", "cell", "was", "now"}
    if not isinstance(entry, Mapping) or entry.keys() != names:
        raise UnfitCellsError(
            f"cell {number}: must have sheet, cell, was and now, not {written(entry)}"
        )
    sheet, position = entry["sheet"], parse_cell(str(entry["cell"]))
    if not isinstance(sheet, str) or not sheet or position is None:
        raise UnfitCellsError(f"cell {number}: {sheet!r}, {entry['cell']!r} is not a cell")
    was, now = (_value(number, name, entry[name]) for name in ("was", "now"))
    if same_value(was, now):
        raise UnfitCellsError(f"cell {number}: 'was' and 'now' are the same value")
    return CellCorrection(CellRef(sheet, *position), was, now)


def _value(number: int, name: str, value: object) -> CellValue:
    if isinstance(value, dt.date):  # as YAML reads a date without quotes
        return value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())
    try:
        content = content_from_json(value)
    except (UsageError, ValueError, OverflowError) as error:
        raise UnfitCellsError(
            f"cell {number}: {name!r} must be a number, text, true, false, nothing, or one of "
            f'{{error: "#N/A"}}, {{date: "2024-01-31"}}, {{time: "12:30:00"}}, {{seconds: 90}}, '
            f"not {written(value)}"
        ) from error
    if isinstance(content, Formula):
        raise UnfitCellsError(f"cell {number}: {name!r} must be a value, not a formula")
    return content


def same_value(first: CellValue, second: CellValue) -> bool:
    """Whether two values are the same; a Boolean never equals a number."""
    if isinstance(first, bool) is not isinstance(second, bool):
        return False
    return bool(first == second) or content_to_json(first) == content_to_json(second)


def shown_value(value: CellValue) -> str:
    """A value as messages show it."""
    if value is None:
        return "blank"
    content = content_to_json(value)
    return str(next(iter(content.values()))) if isinstance(content, dict) else repr(content)
