"""The judge's own reader of workbooks: as exact as openpyxl, but reads only what is requested.

Nothing is read before it is needed: opening a workbook reads its list of sheets; cells are read
range by range, and each range once.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from judge.errors import WorkbookError
from judge.files.documents import read_regular
from judge.workbook.address import (
    COLUMN_BITS,
    COLUMN_MASK,
    WHOLE_SHEET,
    Window,
    cell_key,
)
from judge.workbook.budget import DEFAULT_LIMITS, ReadLimits
from judge.workbook.cell import Cell, CellRange, CellValue, WorkbookFacts
from judge.workbook.number_formats import NumberFormats, read_number_formats
from judge.workbook.package import Package
from judge.workbook.sheets.shared_strings import SharedStrings
from judge.workbook.sheets.sheet import DATA_TABLE, UNCOMPUTED_TABLE, Sheet
from judge.workbook.sheets.sheet_cells import SheetCells
from judge.workbook.sheets.sheet_scan import scan_first_rows
from judge.workbook.workbook_parts import (
    Tab,
    WorkbookPart,
    read_application,
    read_saved,
    read_workbook_part,
)
from judge.workbook.xml_parts import Relationship, relationships

if TYPE_CHECKING:
    from judge.workbook.styles.style_sheet import CellStyle, FontColours, StyleSheet


def open_workbook(source: bytes | Path, *, limits: ReadLimits = DEFAULT_LIMITS) -> Workbook:
    """Opens a workbook without reading any cell yet.

    Args:
        source: the file, or its bytes.
        limits: bounds on what reading may cost.

    Raises:
        WorkbookError: not a workbook package, broken, encrypted, or over a limit.
    """
    if isinstance(source, bytes):
        return _opened(source, limits)
    try:
        size = source.stat().st_size
        if size > limits.file_bytes:
            raise WorkbookError(
                f"{source}: the file has {size:,} bytes, "
                f"more than {limits.file_bytes:,} are not read"
            )
        data = read_regular(source, WorkbookError, max_bytes=limits.file_bytes) or b""
    except OSError as error:
        raise WorkbookError(f"{source}: {error.strerror or error}") from error
    try:
        return _opened(data, limits)
    except WorkbookError as error:
        raise WorkbookError(f"{source}: {error.message}", hint=error.hint) from error


@contextmanager
def workbooks_kept(*workbooks: Workbook) -> Iterator[None]:
    """Within the block, opens files with the same bytes only once, in this thread.

    It serves code that reads one workbook in several roles, such as a gold that is also the answer.
    The limits on reading then apply to all roles together. Blocks can be nested.

    Args:
        workbooks: workbooks that are already open.
    """
    before = _kept.set((_kept.get() or {}) | {workbook.data: workbook for workbook in workbooks})
    try:
        yield
    finally:
        _kept.reset(before)


_kept: ContextVar[dict[bytes, Workbook] | None] = ContextVar("kept workbooks", default=None)


def _opened(data: bytes, limits: ReadLimits) -> Workbook:
    kept = _kept.get()
    if kept is None:
        return Workbook(data, limits)
    workbook = kept.get(data)
    if workbook is None or workbook.package.budget.limits is not limits:
        workbook = kept[data] = Workbook(data, limits)
    return workbook


class Workbook:
    """An open workbook.

    Sheets are requested by their real names. Cells that were read are kept; if several ranges of a
    sheet will be needed, read them together with :meth:`preload`.

    Args:
        data: the file's bytes.
        limits: bounds on what reading may cost.

    Raises:
        WorkbookError: not a workbook package, broken, encrypted, or over a limit.
    """

    def __init__(self, data: bytes, limits: ReadLimits = DEFAULT_LIMITS) -> None:
        self.data = data
        self._package = Package(data, limits)
        self._part: WorkbookPart = read_workbook_part(self._package)
        self._strings = SharedStrings(self._package, self._part.shared_strings)
        self._sheets: dict[str, Sheet] = {}
        self._parts = {tab.name: tab.part for tab in self._part.tabs if tab.is_worksheet}

    # -- facts -----------------------------------------------------------------------------------

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the file, in hexadecimal digits."""
        import hashlib  # noqa: PLC0415 - it loads OpenSSL, which comparing does not need

        return hashlib.sha256(self.data).hexdigest()

    @property
    def package(self) -> Package:
        """The archive of the workbook, which enforces the limits."""
        return self._package

    @property
    def tabs(self) -> tuple[Tab, ...]:
        """All sheets in workbook order, chart sheets included."""
        return self._part.tabs

    @property
    def shared_strings(self) -> str | None:
        """Name of the part of the shared strings; None if there is none."""
        return self._part.shared_strings

    @property
    def styles_part(self) -> str | None:
        """Name of the part of the style sheet; None if there is none."""
        return self._part.styles

    @cached_property
    def sheet_names(self) -> tuple[str, ...]:
        """Worksheets in workbook order, without chart sheets."""
        return tuple(self._parts)

    @property
    def active_sheet(self) -> str | None:
        """The sheet that is active when the workbook is opened; None if it is not a worksheet."""
        index = self._part.active_tab
        tab = self.tabs[index] if index < len(self.tabs) else None
        return tab.name if tab is not None and tab.is_worksheet else None

    @property
    def date_1904(self) -> bool:
        """Whether serial dates count from 1904."""
        return self._part.date_1904

    @cached_property
    def facts(self) -> WorkbookFacts:
        """Facts about the workbook itself."""
        with self._package.blamed():
            application, version = read_application(self._package)
        return WorkbookFacts(
            application=application,
            app_version=version,
            full_calc_on_load=self._part.full_calc_on_load,
            date_1904=self._part.date_1904,
            sheet_names=self.sheet_names,
        )

    @cached_property
    def saved(self) -> dt.date | None:
        """The day on which the workbook was saved last, if the file states it."""
        with self._package.blamed():
            return read_saved(self._package)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The contents of the file that the reader ignores, one line for each kind."""
        names = self._package.names
        remarks = []
        if any(name.endswith("vbaProject.bin") for name in names):
            remarks.append("the workbook holds macros, which are never run")
        if any(name.startswith("xl/externalLinks/") for name in names):
            remarks.append("the workbook points to other workbooks, which are never opened")
        return tuple(remarks)

    # -- cells -----------------------------------------------------------------------------------

    def preload(self, ranges: Iterable[CellRange], *, blanks: bool = False) -> None:
        """Reads several ranges; those on the same sheet in a single pass.

        Args:
            ranges: the ranges.
            blanks: whether to keep stored cells without value and formula, as :meth:`cells` does.

        Raises:
            WorkbookError: a sheet is missing, broken or over a limit.
        """
        by_sheet: dict[str, list[Window]] = {}
        for area in ranges:
            by_sheet.setdefault(area.sheet, []).append(area.window)
        for name, windows in by_sheet.items():
            self.sheet(name).load(windows, blanks=blanks)

    def cells(self, cell_range: CellRange) -> Mapping[tuple[int, int], Cell]:
        """The stored cells of a range by (row, column), 1-based, in reading order.

        Cells that the file does not store are blank and are not in the mapping. Cells covered by
        a merged range have no value.

        Raises:
            WorkbookError: the sheet is missing, broken or over a limit.
        """
        return _CellsView(self.sheet(cell_range.sheet), cell_range.window)

    def first_rows(self, rows: int) -> list[tuple[str, SheetCells]]:
        """The stored cells of the first rows of every worksheet, for a preview of the workbook.

        The cells are as the file stores them: cells that a merged range covers keep their stored
        values. The rows are read, and the rest is inflated
        (:func:`~judge.workbook.sheets.sheet_scan.scan_first_rows`). Nothing is kept.

        Args:
            rows: how many rows of each worksheet, counted from row 1.

        Returns:
            Names of the worksheets in workbook order, with their cells.

        Raises:
            WorkbookError: the part of a worksheet that is read is broken, or a limit is exceeded.
        """
        with self._package.blamed():
            read = [
                (tab.name, self._scan_first_rows(tab.part, rows))
                for tab in self._part.tabs
                if tab.is_worksheet
            ]
            # One pass over the table of strings serves all worksheets.
            indexes = [index for _, cells in read for index in cells.strings.values()]
            strings = self._strings.load(indexes) if indexes else {}
            for _, cells in read:
                cells.values.update((key, strings[index]) for key, index in cells.strings.items())
                cells.strings.clear()
        return read

    def _scan_first_rows(self, part: str, rows: int) -> SheetCells:
        return scan_first_rows(
            self._package, part, rows, self.number_formats, date_1904=self._part.date_1904
        )

    def stored_values(self, sheet: str) -> Mapping[int, CellValue]:
        """The values of all cells of a sheet by key, as in the file; callers must not change them.

        Cells that a merged range covers keep their stored values.

        Raises:
            WorkbookError: the sheet is missing, broken or over a limit.
        """
        values = self.sheet(sheet).values(WHOLE_SHEET)
        hidden = self.sheet(sheet).hidden_values
        return {**values, **hidden} if hidden else values

    def formula_cells(self, cell_range: CellRange) -> list[Cell]:
        """The cells of a range that hold formulas, in reading order.

        Raises:
            WorkbookError: the sheet is missing, broken or over a limit.
        """
        sheet = self.sheet(cell_range.sheet)
        window = cell_range.window
        keys = sheet.formula_keys(window)
        return [sheet.cell(key) for key in keys]

    def used_range(self, sheet: str) -> CellRange | None:
        """The rectangle around all cells with content or filled by a formula; None without cells.

        Raises:
            WorkbookError: the sheet is missing, broken or over a limit.
        """
        used = self.sheet(sheet).used_window()
        return None if used is None else CellRange(sheet, *_bounds(used))

    def hyperlinks(self, sheet: str) -> list[tuple[CellRange, str]]:
        """Hyperlinks of a sheet as (range, address or place in the workbook).

        Raises:
            WorkbookError: the sheet is missing, broken or over a limit.
        """
        target = self.sheet(sheet)
        links: Mapping[str, Relationship] = {}
        if target.tail.links:
            with self._package.blamed():
                links = relationships(self._package, target.part)
        formulas = []
        for link in target.tail.links:
            relationship = links.get(link.relationship) if link.relationship else None
            address = (relationship.target if relationship else "") or link.location or ""
            formulas.append((CellRange(sheet, *_bounds(link.window)), address))
        return formulas

    def sheet(self, name: str) -> Sheet:
        """The cells of one worksheet that were read so far.

        Raises:
            WorkbookError: there is no worksheet of that name.
        """
        cached = self._sheets.get(name)
        if cached is None:
            part = self._parts.get(name)
            if part is None:
                raise WorkbookError(f"the workbook has no worksheet {name!r}")
            cached = Sheet(
                self._package,
                part,
                formats=self.number_formats,
                strings=self._strings,
                date_1904=self._part.date_1904,
            )
            self._sheets[name] = cached
        return cached

    @cached_property
    def style_sheet(self) -> StyleSheet:
        """The formats that the workbook defines, read when they are first needed."""
        from judge.workbook.styles.style_sheet import (  # noqa: PLC0415 - seldom needed
            read_style_sheet,
        )

        with self._package.blamed():
            return read_style_sheet(
                self._package, self._part.styles, self._part.theme, self.number_formats
            )

    @cached_property
    def font_colours(self) -> FontColours:
        """The colours of fonts as the file writes them, read when they are first needed."""
        from judge.workbook.styles.style_sheet import (  # noqa: PLC0415 - seldom needed
            read_font_colours,
        )

        with self._package.blamed():
            return read_font_colours(self._package, self._part.styles)

    def style(self, index: int) -> CellStyle:
        """The look of a cell format.

        Raises:
            WorkbookError: the style sheet is broken or over a limit.
        """
        return self.style_sheet.cell(index)

    @cached_property
    def number_formats(self) -> NumberFormats:
        """Number formats by cell format."""
        with self._package.blamed():
            return read_number_formats(self._package, self._part.styles)


class _CellsView(Mapping[tuple[int, int], Cell]):
    """The cells of a window; cell objects are made when they are accessed."""

    def __init__(self, sheet: Sheet, window: Window) -> None:
        self._sheet = sheet
        self._window = window
        sheet.load([window], blanks=True)
        self._values: Mapping[int, CellValue] = sheet.values(window)

    def __getitem__(self, position: tuple[int, int]) -> Cell:
        key = cell_key(*position)
        if key not in self._values:
            raise KeyError(position)
        return self._sheet.cell(key)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        for key in sorted(self._values):
            yield key >> COLUMN_BITS, key & COLUMN_MASK

    def __len__(self) -> int:
        return len(self._values)


def _bounds(window: Window) -> tuple[int, int, int, int]:
    return window.min_row, window.min_column, window.max_row, window.max_column


_MAX_LOOKS = 20_000_000
"""How many pairs of a linked cell and a merged range are checked, which takes a few seconds."""


def linked_keys(
    workbook: Workbook, sheet: str, window: Window, *, merges: int = 0
) -> Iterator[tuple[Window, list[int], str]]:
    """Each hyperlink of a sheet with the cells of a window that it covers, and its target.

    Args:
        workbook: the workbook.
        sheet: name of the sheet.
        window: the window; cells outside of it are left out.
        merges: how many merged ranges the caller checks for each link and cell.

    Raises:
        WorkbookError: the sheet is broken or over a limit, or its links cover too much.
    """
    cells_left = workbook.package.budget.limits.cells
    looks_left = _MAX_LOOKS
    for linked, target in workbook.hyperlinks(sheet):
        rows = range(max(linked.min_row, window.min_row), min(linked.max_row, window.max_row) + 1)
        columns = range(
            max(linked.min_column, window.min_column),
            min(linked.max_column, window.max_column) + 1,
        )
        cells = len(rows) * len(columns)
        cells_left -= cells
        looks_left -= max(cells, 1) * merges
        if cells_left < 0 or looks_left < 0:
            with workbook.package.blamed():
                raise WorkbookError(
                    f"the hyperlinks of the sheet {sheet!r} overlap each other or merged ranges "
                    "too often"
                )
        linked_window = linked.window
        yield linked_window, [cell_key(row, column) for row in rows for column in columns], target


def filling_cells(workbook: Workbook, sheet: str) -> list[Cell]:
    """The cells of a sheet whose formula fills a range, with that range.

    They include data tables of a single cell.

    Raises:
        WorkbookError: the sheet cannot be read.
    """
    return [
        cell
        for cell in workbook.sheet(sheet).filling_formulas()
        if cell.array_range is not None
        and (":" in cell.array_range or cell.formula in {DATA_TABLE, UNCOMPUTED_TABLE})
    ]


def sheet_formulas(workbook: Workbook, sheet: str) -> Sequence[Cell]:
    """Every formula cell of a sheet; a data table's first cell says what the table fills.

    Raises:
        WorkbookError: the sheet cannot be read.
    """
    return workbook.sheet(sheet).all_formulas
