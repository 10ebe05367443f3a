"""The files that the tests of SkillsBench check, and the results that pytest reports.

Where Gnumeric is installed, the published tests of ``weighted-gdp-calc`` read the values that it
computes; this judge does not use it. Sheets are read as the tests read them, with openpyxl, pandas
and polars.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from judge.compare.published_error import PublishedError, Side
from judge.errors import WorkbookError
from judge.workbook.address import WHOLE_SHEET, parse_cell
from judge.workbook.cell import Cell, CellRange, CellValue, ErrorValue
from judge.workbook.facts.book import BookFacts
from judge.workbook.package import Package
from judge.workbook.reader import Workbook, open_workbook

PASSED, FAILURE, ERROR, SKIPPED = "passed", "failure", "error", "skipped"
"""The results of a test, as pytest names them; a skipped test does not fail."""

_MAX_TEXT_CELLS = 2_000_000
"""A sheet with more cells than this, blank ones included, is not read; the published code has no
such limit."""

Value = CellValue
"""A cell as openpyxl gives it; an error is a string such as ``#N/A``."""


class SkippedError(Exception):
    """The test is skipped."""


def opened(data: bytes | None) -> Workbook:
    """A workbook.

    Raises:
        PublishedError: there is none, or it cannot be opened.
    """
    if data is None:
        raise PublishedError("FileNotFoundError", "there is no output", Side.ANSWER)
    try:
        return open_workbook(data)
    except WorkbookError as error:
        raise PublishedError("BadZipFile", error.message, Side.ANSWER) from error


def number(value: object) -> float:
    """Returns a value as a number; truth values are numbers.

    Raises:
        TypeError: the value is not a number.
    """
    if isinstance(value, int | float):
        return value
    raise TypeError(f"{value!r} is not a number")


def archive(data: bytes | None) -> Package:
    """An archive: a workbook, or a presentation.

    Raises:
        PublishedError: there is none, or it is broken.
    """
    if data is None:
        raise PublishedError("FileNotFoundError", "there is no output", Side.ANSWER)
    try:
        return Package(data)
    except WorkbookError as error:
        raise PublishedError("BadZipFile", error.message, Side.ANSWER) from error


@dataclass(frozen=True)
class Attempt:
    """The files that a solution of a task left.

    Attributes:
        output: the bytes of the file that the task requires; None if it is missing.
        files: name of a file that belongs to the task -> its bytes (inputs and oracles).
    """

    output: bytes | None
    files: Mapping[str, bytes] = field(default_factory=dict)

    @cached_property
    def workbook(self) -> Workbook:
        """Returns the output as a workbook.

        Raises:
            PublishedError: there is none, or it cannot be opened.
        """
        return opened(self.output)

    @property
    def sheet_names(self) -> list[str]:
        """The sheets of the output, chart sheets included.

        Raises:
            PublishedError: there is no workbook.
        """
        return [tab.name for tab in self.workbook.tabs]

    def sheet(self, name: str, *, formulas: bool = False) -> Sheet:
        """A sheet of the output.

        Args:
            name: its name.
            formulas: whether formulas count as strings, and not as their stored values.

        Raises:
            PublishedError: there is no workbook, or no such sheet.
        """
        key = (name, formulas)
        if key not in self._sheets:
            self._sheets[key] = Sheet(self.workbook, name, formulas=formulas)
        return self._sheets[key]

    @cached_property
    def _sheets(self) -> dict[tuple[str, bool], Sheet]:
        """The sheets that were read, which are kept since dozens of tests use the same ones."""
        return {}

    def file(self, name: str) -> bytes:
        """Returns a file of the task.

        Raises:
            PublishedError: the folder of the task does not have it.
        """
        if name not in self.files:
            raise PublishedError("FileNotFoundError", f"no such file: {name}", Side.RULES)
        return self.files[name]


class Sheet:
    """The stored cells of a sheet.

    Args:
        workbook: the workbook.
        name: the sheet's name.
        formulas: whether formulas count as strings, and not as their stored values.

    Attributes:
        stored: (row, column) -> cell, formatted blank ones included.

    Raises:
        PublishedError: there is no such worksheet, or it cannot be read.
    """

    def __init__(self, workbook: Workbook, name: str, *, formulas: bool = False) -> None:
        if name not in workbook.sheet_names:
            raise PublishedError("KeyError", f"Worksheet {name} does not exist.", Side.ANSWER)
        self.name = name
        self._workbook = workbook
        self._formulas = formulas
        area = CellRange.of(name, WHOLE_SHEET)
        try:
            workbook.preload([area], blanks=True)
            self.stored = dict(workbook.cells(area))
        except WorkbookError as error:
            raise PublishedError("BadZipFile", error.message, Side.ANSWER) from error

    def value_of(self, cell: Cell | None) -> Value:
        """Returns the content of a stored cell as openpyxl reads it; None for a blank cell."""
        if cell is None:
            return None
        if self._formulas and cell.formula is not None:
            return cell.formula
        return cell.value.code if isinstance(cell.value, ErrorValue) else cell.value

    def value(self, address: str) -> Value:
        """Returns the content of a cell; None for a blank cell.

        Args:
            address: such as ``B2``.

        Raises:
            KeyError: the text is not an address.
        """
        key = parse_cell(address)
        if key is None:
            raise KeyError(address)
        return self.value_of(self.stored.get(key))

    @cached_property
    def values(self) -> Mapping[tuple[int, int], Value]:
        """(row, column) -> value of each cell that is not blank."""
        values = {key: self.value_of(cell) for key, cell in self.stored.items()}
        return {key: value for key, value in values.items() if value is not None}

    def grid(self, first_row: int = 1, first_column: int = 1) -> list[list[Value]]:
        """Returns the rows from a corner to the last stored row and column, blank cells included.

        Raises:
            PublishedError: the sheet has too many cells.
        """
        rows = max((row for row, _ in self.stored), default=0)
        columns = max((column for _, column in self.stored), default=0)
        if rows * columns > _MAX_TEXT_CELLS:
            raise PublishedError("MemoryError", f"the sheet has {rows * columns:,} cells")
        return [
            [
                self.value_of(self.stored.get((row, column)))
                for column in range(first_column, columns + 1)
            ]
            for row in range(first_row, rows + 1)
        ]

    def column_widths(self) -> Mapping[int, float]:
        """Number of a column -> its width in characters, for the first column of each group.

        openpyxl gives the width of a group of columns to its first one only.
        """
        facts = BookFacts(self._workbook)
        tab = facts.tab(self.name)
        lines = () if tab is None else facts.sheet(tab).columns
        return {line.first: line.size for line in lines if line.size is not None}


@dataclass(frozen=True, slots=True)
class Table:
    """A sheet as polars reads it: the first row that is not blank has the headings.

    Attributes:
        headings: the headings of the columns; blank columns without one are left out.
        rows: the rows below it that are not blank.
    """

    headings: tuple[str, ...]
    rows: Sequence[Sequence[Value]]

    def records(self) -> list[Mapping[str, Value]]:
        """Each row by heading."""
        return [dict(zip(self.headings, row, strict=True)) for row in self.rows]


def polars_table(sheet: Sheet) -> Table:
    """A sheet as a table.

    Raises:
        PublishedError: the sheet holds nothing.
    """
    if not sheet.values:
        raise PublishedError("NoDataError", "empty Excel sheet", Side.ANSWER)
    first_row = min(row for row, _ in sheet.values)
    first_column = min(column for _, column in sheet.values)
    headings, *rows = sheet.grid(first_row, first_column)
    columns = [
        index
        for index, heading in enumerate(headings)
        if heading is not None or any(row[index] is not None for row in rows)
    ]
    filled = [
        [row[index] for index in columns]
        for row in rows
        if any(row[index] is not None for index in columns)
    ]
    typed = [_typed(column) for column in zip(*filled, strict=True)]
    return Table(
        tuple("" if headings[index] is None else str(headings[index]) for index in columns),
        [list(row) for row in zip(*typed, strict=True)],
    )


def _typed(column: Sequence[Value]) -> Sequence[Value]:
    """Converts a column to one type, as a data frame does: one string makes all numbers strings."""
    if any(isinstance(value, str) for value in column):
        return [value if value is None else str(value) for value in column]
    return column


# -- tests -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TestOutcome:
    """The result that pytest reports for a test.

    Attributes:
        result: ``passed``, ``failure``, ``error`` (before the test began) or ``skipped``.
        detail: the reason, in one line; empty if the test passed.
    """

    result: str
    detail: str = ""


_RAISED = (
    PublishedError,
    WorkbookError,
    ArithmeticError,
    LookupError,
    TypeError,
    ValueError,
)
"""The errors that the published assertions raise for values of a wrong type."""


@dataclass(frozen=True, slots=True)
class Test:
    """A test and its fixture: an exception in the fixture is an error, not a failure.

    Attributes:
        body: the test itself; it returns what is wrong, or an empty string.
        prepare: the fixture, which runs before the test.
    """

    body: Callable[[Attempt], str]
    prepare: Callable[[Attempt], object] | None = None

    def outcome(self, attempt: Attempt) -> TestOutcome:
        """Returns the result that pytest reports."""
        try:
            if self.prepare is not None:
                self.prepare(attempt)
        except SkippedError as reason:
            return TestOutcome(SKIPPED, str(reason))
        except _RAISED as error:
            return TestOutcome(ERROR, str(error))
        try:
            wrong = self.body(attempt)
        except SkippedError as reason:
            return TestOutcome(SKIPPED, str(reason))
        except _RAISED as error:
            return TestOutcome(FAILURE, str(error))
        return TestOutcome(FAILURE, wrong) if wrong else TestOutcome(PASSED)


def exists(attempt: Attempt) -> str:
    """A test that the output exists."""
    return "" if attempt.output is not None else "there is no output"


def opens(attempt: Attempt) -> str:
    """A test that the output is a workbook."""
    attempt.sheet_names  # noqa: B018 - what it raises is the point
    return ""
