"""Values of whole sheets with computed formulas, and how two values are compared."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from judge.compare.cells.computing import Compute
from judge.compare.cells.sides import RangeSide
from judge.compare.rules.book import Book
from judge.core.submission import Origin
from judge.workbook.cell import CellRange, CellValue, ErrorValue
from judge.workbook.number_formats import to_serial

_RELATIVE = 1e-9
_DAYS = 1e-6
"""Serial numbers this close are the same time; it is about a tenth of a second."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The values of a sheet.

    Attributes:
        values: filled cells by key, computed values in place of stored ones.
        not_calculated: key of a formula cell whose value could not be computed -> why.
        not_tried: those of these cells that no engine tried to compute.
    """

    values: Mapping[int, CellValue]
    not_calculated: Mapping[int, str]
    not_tried: frozenset[int] = frozenset()


class Grids:
    """Values of the sheets of one workbook; each sheet is computed only once.

    Args:
        book: the workbook.
        compute: computes formulas.
        origin: where the workbook comes from.
    """

    def __init__(self, book: Book, compute: Compute, origin: Origin) -> None:
        self._book = book
        self._compute = compute
        self._origin = origin
        self._grids: dict[str, Grid] = {}

    def sheet(self, name: str) -> Grid:
        """Returns the values of a sheet.

        Raises:
            WorkbookError: the sheet is missing, broken or over a limit.
            RecalcError: an engine cannot be started.
        """
        grid = self._grids.get(name)
        if grid is None:
            grid = self._grids[name] = self._read(name)
        return grid

    def _read(self, name: str) -> Grid:
        workbook = self._book.workbook
        used = workbook.used_range(name)
        if used is None:
            return Grid({}, {})
        cells = CellRange(name, 1, 1, used.max_row, used.max_column)
        computed = self._compute.fill(workbook, [cells], origin=self._origin)
        area = RangeSide(workbook, cells, computed)
        missing = area.uncomputed()
        return Grid(
            {key: value for key, value in area.values().items() if not is_blank(value)},
            missing,
            frozenset(missing.keys() - area.refused().keys()),
        )


def is_blank(value: CellValue) -> bool:
    """Whether a cell shows nothing."""
    return value is None or value == ""


def values_agree(expected: CellValue, actual: CellValue, decimals: int) -> bool:
    """Whether two values agree: numbers within half a unit of the last decimal, others exactly.

    TRUE is not 1, text is not a number, and an error agrees with the same error. Dates are compared
    by their serial numbers, also with numbers.

    Args:
        expected: the gold's value.
        actual: the answer's value.
        decimals: to how many decimals numbers are compared.
    """
    if is_blank(expected) or is_blank(actual):
        return is_blank(expected) and is_blank(actual)
    if isinstance(expected, bool | str | ErrorValue) or isinstance(actual, bool | str | ErrorValue):
        return type(expected) is type(actual) and expected == actual
    first, second = _number(expected), _number(actual)
    gap = abs(first - second)
    if not isinstance(expected, int | float) or not isinstance(actual, int | float):
        return gap <= _DAYS
    if first == second or gap <= _RELATIVE * max(abs(first), abs(second)):
        return True
    return gap <= 0.5 * 10.0 ** -max(-300, min(decimals, 300))


def _number(value: CellValue) -> float:
    if isinstance(value, dt.datetime | dt.date | dt.time | dt.timedelta):
        return to_serial(value)
    assert isinstance(value, int | float)
    return float(value)


def text_of(value: CellValue) -> str:
    """Returns a value as text: whole numbers without a decimal point, blanks as empty text."""
    if value is None:
        return ""
    if isinstance(value, ErrorValue):
        return value.code
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)
