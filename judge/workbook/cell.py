"""Cells, their values and their positions: plain data, without any reading."""

from __future__ import annotations

import datetime as dt
import functools
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from judge.workbook.address import Rectangle, Window


@dataclass(frozen=True, slots=True)
class ErrorValue:
    """An error value such as ``#N/A``, distinct from a string with the same characters."""

    code: str


CellValue = (
    bool | int | float | str | dt.datetime | dt.date | dt.time | dt.timedelta | ErrorValue | None
)
"""A value that a cell can hold, in the types that openpyxl uses (except for errors)."""


def json_value(value: CellValue) -> object:
    """Converts a value for JSON: dates and times to ISO text, errors and durations to objects."""
    if isinstance(value, ErrorValue):
        return {"error": value.code}
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return {"date": value.isoformat()}
    if isinstance(value, dt.timedelta):
        return {"days": value.total_seconds() / 86_400}
    return value


STYLE_ATTRIBUTES: tuple[str, ...] = (
    "fill",
    "font_color",
    "bold",
    "italic",
    "underline",
    "number_format",
    "alignment",
    "hyperlink",
)
"""The attributes of a cell's look that can be compared in addition to its value."""


class CellRef(NamedTuple):
    """The position of a cell: the sheet's real name and 1-based row and column.

    It is a tuple because it is the key of most mappings, and tuples are fast to hash and compare.
    """

    sheet: str
    row: int
    column: int


def refs_in(sheet: str, rows: range, columns: range) -> Iterator[CellRef]:
    """The positions of a rectangle, row by row, in half the time that calls of ``CellRef`` take."""
    positions = itertools.product((sheet,), rows, columns)
    return map(functools.partial(tuple.__new__, CellRef), positions)


@dataclass(frozen=True, slots=True, order=True)
class CellRange(Rectangle):
    """A rectangle of cells on one sheet, 1-based and inclusive.

    Attributes:
        sheet: the sheet's real name.
        min_row, min_column, max_row, max_column: the corners.
    """

    sheet: str
    min_row: int
    min_column: int
    max_row: int
    max_column: int

    @classmethod
    def of(cls, sheet: str, window: Rectangle) -> CellRange:
        """Makes a rectangle on a sheet."""
        return cls(sheet, window.min_row, window.min_column, window.max_row, window.max_column)

    @property
    def window(self) -> Window:
        """The rectangle without its sheet."""
        return Window(self.min_row, self.min_column, self.max_row, self.max_column)

    def refs(self) -> Iterator[CellRef]:
        """The positions of its cells, row by row."""
        rows = range(self.min_row, self.max_row + 1)
        return refs_in(self.sheet, rows, range(self.min_column, self.max_column + 1))

    def has(self, cell: CellRef) -> bool:
        """Whether a cell is inside, on the same sheet."""
        return self.sheet == cell.sheet and self.holds(cell.row, cell.column)


class Cell(NamedTuple):
    """A cell as the file stores it; a tuple, because tuples are created several times as fast.

    Attributes:
        row: 1-based row.
        column: 1-based column.
        value: the constant, or the *cached* value if the cell holds a formula.
        formula: the formula's text with its leading ``=``, or None for a constant.
        array_range: the range that an array formula fills, as ``A1:A3``, on its first cell.
        has_cached_value: False if a formula is stored without a value, as openpyxl writes it.
        style: index into the workbook's cell formats.
        number_format: the number format's code.
    """

    row: int
    column: int
    value: CellValue
    formula: str | None = None
    array_range: str | None = None
    has_cached_value: bool = True
    style: int = 0
    number_format: str = "General"


@dataclass(frozen=True, slots=True)
class WorkbookFacts:
    """Facts about a workbook that decide whether its cached values can be trusted.

    Attributes:
        application: ``Application`` of ``docProps/app.xml``, such as ``Microsoft Excel``.
        app_version: ``AppVersion`` of the same part (openpyxl: ``3.1``, XlsxWriter: ``12.0000``).
        full_calc_on_load: whether the workbook asks for a full calculation when it is opened.
        date_1904: whether its serial dates count from 1904.
        sheet_names: worksheets in workbook order.
    """

    application: str | None
    app_version: str | None
    full_calc_on_load: bool
    date_1904: bool
    sheet_names: tuple[str, ...]


def _no_values() -> Mapping[CellRef, CellValue]:
    return MappingProxyType({})


def _no_reasons() -> Mapping[CellRef, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ComputedValues:
    """The results of calculation engines for the formula cells of a range.

    A cell that is in neither mapping keeps the value in the file.

    Attributes:
        values: computed values, which replace the cached ones.
        not_calculated: formula cells that no engine could compute -> why.
        engines: names and versions of the engines that computed something here.
        notes: lines for people: volatile functions, engines that disagree, caches not trusted.
        seconds: how long the calculation took.
    """

    values: Mapping[CellRef, CellValue] = field(default_factory=_no_values)
    not_calculated: Mapping[CellRef, str] = field(default_factory=_no_reasons)
    engines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


NOTHING_COMPUTED = ComputedValues()
"""The result for a range without any formula that needs an engine."""
