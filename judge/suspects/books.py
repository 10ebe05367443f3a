"""Workbooks as signs read them: each sheet once, as a whole; comparisons of such workbooks."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from judge.compare.cells.value import comparator
from judge.compare.profiles import get_profile
from judge.errors import WorkbookError
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, WHOLE_SHEET, cell_name
from judge.workbook.cell import CellRef, CellValue
from judge.workbook.reader import Workbook, open_workbook
from judge.workbook.styles.style_sheet import CellStyle

agree = comparator(get_profile("standard"))
"""Returns whether two values are the same answer under the default rules."""


NO_ANSWER = frozenset({"", "-", "n/a", "na", "none", "not found", "#n/a"})
"""Strings, in lower case, that mean "no answer"; 0, a blank cell and #N/A mean the same."""

NOISE = 1e-9
"""Numbers count as equal up to this relative difference, because saving a workbook rounds them."""


@dataclass(frozen=True, slots=True, order=True)
class CellAddress:
    """A cell: its sheet, and its key (:func:`judge.workbook.address.cell_key`)."""

    sheet: str
    key: int

    @property
    def row(self) -> int:
        """The 1-based row."""
        return self.key >> COLUMN_BITS

    @property
    def column(self) -> int:
        """The 1-based column."""
        return self.key & COLUMN_MASK

    @property
    def name(self) -> str:
        """The address without the sheet."""
        return cell_name(self.row, self.column)

    @property
    def ref(self) -> CellRef:
        """The address as a reference."""
        return CellRef(self.sheet, self.row, self.column)

    @staticmethod
    def of(ref: CellRef) -> CellAddress:
        """Makes the address from a reference."""
        return CellAddress(ref.sheet, ref.row << COLUMN_BITS | ref.column)


class Book:
    """A workbook whose sheets are read as a whole, each one when it is first needed.

    Args:
        data: the workbook.

    Raises:
        WorkbookError: it cannot be read.
    """

    def __init__(self, data: bytes) -> None:
        self.workbook: Workbook = open_workbook(data)
        self._values: dict[str, Mapping[int, CellValue]] = {}
        self._formulas: dict[str, Mapping[int, str]] = {}

    @property
    def sheet_names(self) -> tuple[str, ...]:
        """The worksheets, in workbook order."""
        return self.workbook.sheet_names

    @functools.cached_property
    def hidden(self) -> frozenset[str]:
        """The names of the hidden sheets."""
        return frozenset(tab.name for tab in self.workbook.tabs if tab.state != "visible")

    def read_whole(self) -> None:
        """Reads every sheet in one pass; a broken sheet raises its error when a sign needs it."""
        for sheet in self.sheet_names:
            with contextlib.suppress(WorkbookError):
                self.workbook.sheet(sheet).load([WHOLE_SHEET])

    def values(self, sheet: str) -> Mapping[int, CellValue]:
        """Returns the values of a sheet's non-blank cells, by key; empty if it does not exist."""
        if sheet not in self._values:
            stored = self.workbook.sheet(sheet).values(WHOLE_SHEET) if sheet in self else {}
            self._values[sheet] = {
                key: value for key, value in stored.items() if value is not None and value != ""
            }
        return self._values[sheet]

    def formulas(self, sheet: str) -> Mapping[int, str]:
        """Returns the formulas of a sheet by key, each with its leading ``=``."""
        if sheet not in self._formulas:
            strings: dict[int, str] = {}
            if sheet in self:
                cells = self.workbook.sheet(sheet)
                for key in cells.formula_keys(WHOLE_SHEET):
                    text = cells.formula(key)
                    if text is not None:
                        strings[key] = text
            self._formulas[sheet] = strings
        return self._formulas[sheet]

    def value(self, address: CellAddress) -> CellValue:
        """Returns the value of a cell; None if it is blank."""
        return self.values(address.sheet).get(address.key)

    def formula(self, address: CellAddress) -> str | None:
        """Returns the formula of a cell; None for a constant or a blank cell."""
        return self.formulas(address.sheet).get(address.key)

    def is_array(self, address: CellAddress) -> bool:
        """Returns whether a cell has an array formula, which cannot simply be replaced."""
        if address.key not in self.formulas(address.sheet):
            return False
        raw = self.workbook.sheet(address.sheet).raw_formula(address.key)
        return raw is not None and raw.kind == "array"

    def __contains__(self, sheet: str) -> bool:
        return sheet in self.workbook.sheet_names


def differing(first: Book, second: Book, sheet: str) -> Iterator[CellAddress]:
    """Yields the cells of a sheet in which two workbooks differ, in reading order."""
    old, new = first.values(sheet), second.values(sheet)
    old_formulas, new_formulas = first.formulas(sheet), second.formulas(sheet)
    keys = _unlike(old, new) | _unlike(old_formulas, new_formulas)
    for key in sorted(keys):
        was, now = old_formulas.get(key), new_formulas.get(key)
        if was != now or (was is None and not same_constant(old.get(key), new.get(key))):
            yield CellAddress(sheet, key)


def _unlike(old: Mapping[int, CellValue], new: Mapping[int, CellValue]) -> set[int]:
    """Returns the keys whose values in the two mappings differ in value or type."""
    keys = old.keys() ^ new.keys()
    for key in old.keys() & new.keys():
        was, now = old[key], new[key]
        if was is not now and (was != now or type(was) is not type(now)):
            keys.add(key)
    return keys


def same_looks(first: Book, second: Book) -> bool:
    """Returns whether all cells of two workbooks have the same fonts, fills, borders and formats.

    Raises:
        WorkbookError: a sheet or the style sheet cannot be read.
    """
    if first.sheet_names != second.sheet_names:
        return False
    return all(_looks(first, sheet) == _looks(second, sheet) for sheet in first.sheet_names)


def _looks(book: Book, sheet: str) -> dict[int, CellStyle]:
    """Returns the styles of stored cells that do not have the default style, by key."""
    styles = book.workbook.sheet(sheet).styles(WHOLE_SHEET)
    styles_by_index = {index: book.workbook.style(index) for index in set(styles.values())}
    plain = book.workbook.style(0)
    return {
        key: styles_by_index[index]
        for key, index in styles.items()
        if styles_by_index[index] != plain
    }


def same_constant(first: CellValue, second: CellValue) -> bool:
    """Returns whether two constants are equal, up to the rounding of saved numbers."""
    if first == second:
        return isinstance(first, bool) == isinstance(second, bool)
    if isinstance(first, int | float) and isinstance(second, int | float):
        return abs(first - second) <= NOISE * max(abs(first), abs(second))
    return False
