"""A workbook as rules refer to it: its sheets by name, by number, and as printed text.

Sheets are printed to text files next to the workbook, named ``{stem}-{sheet}.csv``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

from judge.compare.published.spider2v.cell_text import CellTexts
from judge.compare.rules.published_error import PublishedError, Side
from judge.compare.sealed import UnreadableFileError
from judge.core.submission import AnswerFile
from judge.errors import RecalcError, WorkbookError
from judge.files.documents import read_regular
from judge.workbook.facts.book import BookFacts
from judge.workbook.reader import Workbook
from judge.workbook.workbook_parts import Tab


@dataclass(eq=False)
class Book:
    """A workbook, with its parts as far as they were read.

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
    """A sheet that a rule names: its name, and its workbook, which may be missing."""

    book: Book | None
    name: str


Rule = Mapping[str, Any]
"""A rule of a rule list, as written in the suite."""


def option_of(rule: Rule, name: str) -> Any:
    """Returns an option that a rule must have.

    Raises:
        PublishedError: the rule does not have it.
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


_MAX_BYTES = 32 << 20
_MAX_FILES = 200


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
        data = read_regular(path, WorkbookError, most_bytes=_MAX_BYTES) or b""
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
