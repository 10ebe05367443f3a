"""One worksheet of an open workbook: the cells read so far, by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from judge.errors import WorkbookError
from judge.workbook.address import (
    COLUMN_BITS,
    COLUMN_MASK,
    WHOLE_SHEET,
    Window,
    cell_key,
    parse_window,
)
from judge.workbook.cell import Cell, CellValue
from judge.workbook.number_formats import GENERAL, NumberFormats
from judge.workbook.package import Package
from judge.workbook.sheets.shared_formulas import (
    Formulas,
    RawFormula,
    SharedFormulas,
    find_masters,
)
from judge.workbook.sheets.shared_strings import SharedStrings
from judge.workbook.sheets.sheet_cells import SheetCells
from judge.workbook.sheets.sheet_scan import scan_sheet
from judge.workbook.sheets.sheet_tail import SheetTail

_Value = TypeVar("_Value")

DATA_TABLE = "=TABLE()"
"""Used as the formula of a data table's cells, which have no formula text."""

UNCOMPUTED_TABLE = "=TABLE(#REF!)"
"""Used if no engine computes the data table, for example because its inputs are not named."""


class Sheet:
    """The cells of a worksheet, read window by window.

    Args:
        package: the workbook's archive.
        part: name of the worksheet's part.
        formats: number formats by cell format.
        strings: the workbook's shared strings.
        date_1904: whether serial dates count from 1904.

    Attributes:
        hidden_values: key -> the stored value of a cell that was read and that a merged range
            hides.
    """

    def __init__(
        self,
        package: Package,
        part: str,
        *,
        formats: NumberFormats,
        strings: SharedStrings,
        date_1904: bool,
    ) -> None:
        self.part = part
        self._package = package
        self._formats = formats
        self._strings = strings
        self._date_1904 = date_1904
        self._loaded: list[Window] = []
        self._loaded_blanks: list[Window] = []
        self._cells = SheetCells()
        self.hidden_values: dict[int, CellValue] = {}
        # No method of this object, so that a workbook is freed as soon as it is not needed.
        read_all = partial(_read_all_formulas, package, part, formats, date_1904=date_1904)
        self._shared_formulas = SharedFormulas(read_all, package.budget.take_formula)
        self._written: dict[int, str] = {}
        self._with_formulas: dict[int, Cell] = {}
        self._all_formulas: list[Cell] | None = None

    # -- reading ---------------------------------------------------------------------------------

    def load(self, windows: Sequence[Window], *, blanks: bool = False) -> None:
        """Reads the cells of some windows that were not read before, in one pass.

        Args:
            windows: the windows.
            blanks: keep stored cells without value and formula too, for their looks.

        Raises:
            WorkbookError: the worksheet is broken or over a limit.
        """
        loaded = self._loaded_blanks if blanks else self._loaded
        missing = [window for window in windows if not _is_covered(window, loaded)]
        if missing:
            with self._package.blamed():
                self._read(missing, blanks=blanks)

    def _read(self, windows: Sequence[Window], *, blanks: bool) -> None:
        read = scan_sheet(
            self._package,
            self.part,
            windows,
            self._formats,
            date_1904=self._date_1904,
            blanks=blanks,
        )
        if read.strings:
            strings = self._strings.load(read.strings.values())
            # Every cell counts, however many cells share its string.
            self._package.budget.take_chars(
                sum(len(strings[string]) for string in read.strings.values())
            )
            read.values.update(
                zip(read.strings, map(strings.__getitem__, read.strings.values()), strict=True)
            )
            read.strings.clear()
        hidden, formulas = _clear_covered(read, self._package.budget.limits.cells)
        self.hidden_values.update(hidden)
        self._shared_formulas.add(formulas)
        self._shared_formulas.add(read.formulas)
        self._written.clear()
        if self._loaded:
            self._cells.add(read)
            self._cells.tail = read.tail
        else:
            self._cells = read
        self._loaded.extend(windows)
        if blanks:
            self._loaded_blanks.extend(windows)

    # -- queries ---------------------------------------------------------------------------------

    def values(self, window: Window) -> Mapping[int, CellValue]:
        """Values of the cells of a window, by key; callers must not change the mapping.

        Blank cells may or may not be included.
        """
        self.load([window])
        if self._loaded == [window]:
            return self._cells.values
        return _within(self._cells.values, window)

    def styles(self, window: Window) -> Mapping[int, int]:
        """Key -> cell format, for stored cells of a window whose format is not the first one."""
        self.load([window], blanks=True)
        return _within(self._cells.styles, window)

    def covered(self, window: Window) -> set[int]:
        """Keys of stored cells in a window that a merged range hides: all but its first cell."""
        self.load([window], blanks=True)
        with self._package.blamed():
            return {key for _, key in _covered_keys(self._cells, self._package.budget.limits.cells)}

    def formula_keys(self, window: Window) -> list[int]:
        """Keys of the cells of a window that hold formulas, in reading order."""
        self.load([window])
        return sorted(_within(self._cells.formulas, window))

    def raw_formula(self, key: int) -> RawFormula | None:
        """The formula, as stored in the file, of a cell that was read."""
        return self._cells.formulas.get(key)

    @property
    def tail(self) -> SheetTail:
        """Merged ranges, hyperlinks and conditional formats."""
        if not self._loaded:
            self.load([Window(1, 1, 1, 1)])
        return self._cells.tail

    @property
    def fills(self) -> bool:
        """Whether a formula of the worksheet may fill other cells; False if certainly none does."""
        if not self._loaded:
            self.load([Window(1, 1, 1, 1)])
        return self._cells.fills

    def last_filled_keys(self) -> list[int]:
        """The last cell of each range that a formula fills, stored or not."""
        if not self.fills:
            return []
        self.load([WHOLE_SHEET])
        filled = [
            parse_window(formula.reference or "")
            for formula in self._cells.formulas.values()
            if formula.fills
        ]
        return [
            cell_key(window.max_row, window.max_column) for window in filled if window is not None
        ]

    def used_window(self) -> Window | None:
        """The rectangle around all cells that hold a value, or that a formula fills."""
        self.load([WHOLE_SHEET])
        keys = [key for key, value in self._cells.values.items() if value is not None]
        keys.extend(self._cells.formulas)
        keys.extend(self.last_filled_keys())
        if not keys:
            return None
        columns = {key & COLUMN_MASK for key in keys}
        return Window(
            min(keys) >> COLUMN_BITS, min(columns), max(keys) >> COLUMN_BITS, max(columns)
        )

    def cell(self, key: int) -> Cell:
        """The stored cell with this key, which has to be among those that were read."""
        known_cell = self._with_formulas.get(key)
        if known_cell is not None:
            return known_cell
        style = self._cells.styles.get(key, 0)
        raw = self._cells.formulas.get(key)
        cell = Cell(
            key >> COLUMN_BITS,
            key & COLUMN_MASK,
            self._cells.values[key],
            None if raw is None else self.formula(key),
            raw.reference if raw is not None and raw.kind == "array" else None,
            raw is None or raw.cached,
            style,
            self._formats.code(style) if self._formats.ids else GENERAL,
        )
        if raw is not None:
            # Cached, since it is requested for the value and again when dependencies are followed.
            self._with_formulas[key] = cell
        return cell

    # -- formulas --------------------------------------------------------------------------------

    @property
    def all_formulas(self) -> list[Cell]:
        """Every formula cell of the sheet in reading order; callers must not change the list."""
        if self._all_formulas is None:
            self._all_formulas = [self._formula_cell(key) for key in self.formula_keys(WHOLE_SHEET)]
        return self._all_formulas

    def filling_formulas(self) -> list[Cell]:
        """The formula cells of the sheet that may fill other cells, in reading order.

        The other formulas, which can be many thousands, are not written out for it.
        """
        if not self.fills:
            return []
        self.load([WHOLE_SHEET])
        formulas = self._cells.formulas
        return [self._formula_cell(key) for key in sorted(formulas) if formulas[key].fills]

    def _formula_cell(self, key: int) -> Cell:
        """A formula cell; the first cell of a data table says what the table fills."""
        cell, raw = self.cell(key), self._cells.formulas[key]
        if raw.kind != "dataTable":
            return cell
        formula = DATA_TABLE if raw.computed_window else UNCOMPUTED_TABLE
        return cell._replace(formula=formula, array_range=raw.reference)

    def formula(self, key: int) -> str | None:
        """The formula of a cell with its leading ``=``; a shared formula is written out.

        Raises:
            WorkbookError: writing the formula out exceeds the limit of the workbook.
        """
        written = self._written.get(key)
        if written is None:
            raw = self._cells.formulas.get(key)
            if raw is None:
                return None
            try:
                written = self._written[key] = self._write_out(key, raw)
            except WorkbookError:
                with self._package.blamed():
                    raise
        return written

    def _write_out(self, key: int, raw: RawFormula) -> str:
        if raw.kind != "shared" or raw.shared is None:
            self._package.budget.take_formula(len(raw.text))
            return f"={raw.text}"
        return f"={self._shared_formulas.written_out(key, raw.shared)}"


def _read_all_formulas(
    package: Package, part: str, formats: NumberFormats, *, date_1904: bool
) -> Formulas:
    """Every formula of a worksheet that other cells may share, inside the window or not."""
    with package.blamed():
        masters = find_masters(package, part)
        if masters is not None:
            return masters
        everything = scan_sheet(
            package, part, [WHOLE_SHEET], formats, date_1904=date_1904, blanks=False
        )
    return everything.formulas


def _is_covered(window: Window, loaded: Sequence[Window]) -> bool:
    return any(
        area.min_row <= window.min_row
        and area.max_row >= window.max_row
        and area.min_column <= window.min_column
        and area.max_column >= window.max_column
        for area in loaded
    )


def _within(cells: Mapping[int, _Value], window: Window) -> dict[int, _Value]:
    if window == WHOLE_SHEET:
        return dict(cells)
    low, high = window.min_column, window.max_column
    first = window.min_row << COLUMN_BITS
    last = (window.max_row + 1) << COLUMN_BITS
    return {
        key: value
        for key, value in cells.items()
        if first <= key < last and low <= key & COLUMN_MASK <= high
    }


def _covered_keys(cells: SheetCells, limit: int) -> Iterator[tuple[Window, int]]:
    """Yields the stored cells that a merged range hides, which are all but its first, by key."""
    values = cells.values
    work = 0
    for merge in cells.tail.merges:
        first = merge.min_row << COLUMN_BITS | merge.min_column
        size = merge.size
        work += min(size, len(values))
        if work > limit:
            raise WorkbookError("the merged ranges of a worksheet overlap too often")
        covered = (
            [key for key in values if merge.holds(key >> COLUMN_BITS, key & COLUMN_MASK)]
            if size > len(values)
            else [
                row << COLUMN_BITS | column
                for row in range(merge.min_row, merge.max_row + 1)
                for column in range(merge.min_column, merge.max_column + 1)
            ]
        )
        for key in covered:
            if key != first and key in values:
                yield merge, key


def _clear_covered(
    cells: SheetCells, limit: int
) -> tuple[dict[int, CellValue], dict[int, RawFormula]]:
    """Removes the values of cells that a merged range hides.

    Returns:
        The values and the formulas that were removed, by key; other cells may share the formulas.
    """
    values: dict[int, CellValue] = {}
    taken: dict[int, RawFormula] = {}
    for merge, key in _covered_keys(cells, limit):
        if cells.values[key] is not None:
            values[key], cells.values[key] = cells.values[key], None
        formula = cells.formulas.pop(key, None)
        if formula is None:
            continue
        if formula.fills and ":" in (formula.reference or ""):
            raise WorkbookError(
                f"the merged range {merge} covers a formula that fills {formula.reference}"
            )
        taken[key] = formula
    return values, taken
