"""A workbook as rules see it: sheets by name or number, as printed text, and as computed values.

Sheets are printed to text files next to the workbook, named ``{stem}-{sheet}.csv``. A grid has the
values of a whole sheet with computed formulas. Rules compare two such workbooks, and a failed rule
reports a difference between them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

from judge.compare.cells.computing import Compute
from judge.compare.cells.sides import RangeSide
from judge.compare.published.spider2v.cell_text import CellTexts
from judge.compare.published_error import PublishedError, Side
from judge.compare.sealed import UnreadableFileError
from judge.core.records.cases import DifferingCellRecord
from judge.core.submission import AnswerFile, Origin
from judge.errors import RecalcError, WorkbookError
from judge.files.documents import read_regular
from judge.workbook.cell import CellRange, CellValue, ErrorValue
from judge.workbook.facts.book import BookFacts
from judge.workbook.number_formats import to_serial
from judge.workbook.reader import Workbook
from judge.workbook.workbook_parts import Tab


@dataclass(eq=False)
class Book:
    """A workbook, with the parts that have been read so far.

    Attributes:
        workbook: the workbook.
        side: whether it is the answer or the gold.
        prints: name of a sheet -> the lines of its text file next to the workbook.
        printer: returns the lines of a sheet, by its 1-based number, for a sheet without such a
            file; None if sheets cannot be printed.
        printed: name of a sheet -> its lines, if the printer was used.
        unprinted: why nothing was printed, if the printer failed.
        touched: sheet -> the last row and column of the cells that rules created by reading them,
            as openpyxl does.
    """

    workbook: Workbook
    side: Side
    prints: Mapping[str, Sequence[str]] = field(default_factory=dict)
    printer: Callable[[bytes, int], Sequence[str]] | None = None
    touched: dict[str, tuple[int, int]] = field(default_factory=dict)
    printed: dict[str, Sequence[str]] = field(default_factory=dict)
    unprinted: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the worksheets."""
        return self.workbook.sheet_names

    @cached_property
    def facts(self) -> BookFacts:
        """Charts, pivot tables and other objects."""
        return BookFacts(self.workbook)

    @cached_property
    def texts(self) -> CellTexts:
        """Values of cells, read directly from the parts of the package."""
        return CellTexts(self.workbook.package)

    def tab(self, name: str) -> Tab | None:
        """Returns the worksheet with a name; None if it does not exist."""
        return next(
            (tab for tab in self.workbook.tabs if tab.name == name and tab.is_worksheet), None
        )

    def lines(self, name: str) -> Sequence[str] | None:
        """Returns a sheet as text, from its file or printed now; None if neither is possible.

        Raises:
            WorkbookError: the workbook cannot be printed.
        """
        if name in self.prints:
            return self.prints[name]
        number = next((n for n, tab in enumerate(self.workbook.tabs, 1) if tab.name == name), None)
        if self.printer is None or number is None:
            return None
        if name not in self.printed:
            try:
                self.printed[name] = self.printer(self.workbook.data, number)
            except UnreadableFileError as error:
                with self.workbook.package.blamed():
                    raise WorkbookError(str(error)) from error
            except RecalcError as error:
                self.unprinted = error.message
                return None
        return self.printed[name]

    def touch(self, sheet: str, row: int, column: int) -> None:
        """Records that a cell was read, which creates the cell in the published evaluator."""
        rows, columns = self.touched.get(sheet, (0, 0))
        self.touched[sheet] = max(rows, row), max(columns, column)


@dataclass(frozen=True, slots=True)
class SheetRef:
    """A sheet that a rule names: its name, and its workbook, which may not exist."""

    book: Book | None
    name: str


Rule = Mapping[str, Any]
"""A rule of a rule list, as written in the suite."""


def option_of(rule: Rule, name: str) -> Any:
    """Returns an option that a rule must have.

    Raises:
        PublishedError: the rule lacks the option.
    """
    if name not in rule:
        raise PublishedError("KeyError", repr(name), Side.RULES)
    return rule[name]


def nth(names: Sequence[str], index: int) -> str:
    """Returns the name at an index, which may count from the end; empty if it is out of range."""
    return names[index] if -len(names) <= index < len(names) else ""


def sheet_named(index: object, answer: Book, gold: Book | None) -> SheetRef:
    """Returns the book and sheet that a rule names; an index out of range gives an empty name.

    Raises:
        PublishedError: the index does not name a sheet.
    """
    if isinstance(index, int):
        return SheetRef(answer, nth(answer.names, index))
    if isinstance(index, str) and index[:2] in {"RI", "EI", "RN", "EN"}:
        book = answer if index[0] == "R" else gold
        if index[1] == "N" or book is None:
            return SheetRef(book, index[2:])
        try:
            return SheetRef(book, nth(book.names, int(index[2:])))
        except ValueError:
            pass
    raise PublishedError("ValueError", f"unrecognized sheet {index!r}", Side.RULES)


_MAX_BYTES = 32 << 20  # of a text file next to the workbook
_MAX_FILES = 200  # next to a workbook


def prints_beside(workbook: Path) -> Mapping[str, Sequence[str]]:
    """Reads the files next to a workbook: name of a sheet -> its lines.

    Raises:
        WorkbookError: a file is too large or cannot be read.
    """
    prints = {}
    start = f"{workbook.stem}-"
    try:
        listed = sorted(
            file
            for file in workbook.parent.iterdir()
            if file.name.startswith(start) and file.suffix == ".csv"
        )
    except OSError:
        return {}
    for path in listed[:_MAX_FILES]:
        data = read_regular(path, WorkbookError, max_bytes=_MAX_BYTES) or b""
        lines = _lines(data)
        if lines is not None:
            prints[path.stem[len(start) :]] = lines
    return prints


def prints_of(files: Sequence[AnswerFile]) -> Mapping[str, Sequence[str]]:
    """Reads the submitted files other than the workbook: name of a sheet -> its lines."""
    prints = {}
    start = f"{PurePath(files[0].name).stem}-" if files else ""
    for file in files[1 : _MAX_FILES + 1]:
        name = PurePath(file.name)
        if name.suffix == ".csv" and name.name.startswith(start) and len(file.data) <= _MAX_BYTES:
            lines = _lines(file.data)
            if lines is not None:
                prints[name.stem[len(start) :]] = lines
    return prints


def _lines(data: bytes) -> list[str] | None:
    try:
        return data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        return None


_RELATIVE_TOLERANCE = 1e-9  # only rounding errors are ignored
_DAYS = 1e-6
"""Serial numbers this close are the same time; it is about a tenth of a second."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The values of a sheet.

    Attributes:
        values: filled cells by key, computed values in place of stored ones.
        not_calculated: key of a formula cell whose value could not be computed -> why.
        not_tried: the cells among these that no engine tried to compute.
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
    if first == second or gap <= _RELATIVE_TOLERANCE * max(abs(first), abs(second)):
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
