"""One of the two workbooks of a comparison, as the published evaluators see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from judge.compare.published.spider2v.cell_text import CellTexts
from judge.compare.rules.raised import Side
from judge.compare.sealed import UnreadableFileError
from judge.errors import RecalcError, WorkbookError
from judge.workbook.facts.book import BookFacts
from judge.workbook.reader import Workbook
from judge.workbook.workbook_parts import Tab


@dataclass(eq=False)
class Book:
    """A workbook with what is read of it.

    Attributes:
        workbook: the workbook.
        side: whether it is the answer or the gold.
        prints: name of a sheet -> the lines of its text file next to the workbook.
        printer: makes the lines of a sheet, by its 1-based number, that has no such file; None if
            nothing here prints.
        printed: name of a sheet -> its lines that were printed.
        unprinted: why nothing was printed, if what prints failed.
        touched: sheet -> the last row and column of cells that a rule made when it read them.
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
        """Charts, pivot tables and the like."""
        return BookFacts(self.workbook)

    @cached_property
    def texts(self) -> CellTexts:
        """Values of cells, read from the parts themselves."""
        return CellTexts(self.workbook.package)

    def tab(self, name: str) -> Tab | None:
        """The worksheet of a name."""
        return next(
            (tab for tab in self.workbook.tabs if tab.name == name and tab.is_worksheet), None
        )

    def lines(self, name: str) -> Sequence[str] | None:
        """A sheet as text: from its file, or printed now; None if there is neither.

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
        """Notes that a cell was read, and so exists from then on."""
        rows, columns = self.touched.get(sheet, (0, 0))
        self.touched[sheet] = max(rows, row), max(columns, column)


@dataclass(frozen=True, slots=True)
class SheetRef:
    """A sheet that a rule names: its book, which may be missing, and its name."""

    book: Book | None
    name: str
