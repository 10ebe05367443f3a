"""The data from which the judge computes cells: the sheets of a workbook, and earlier results."""

from __future__ import annotations

import bisect
import copy
import datetime as dt
import re
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from judge.formulas.functions import PREFIX
from judge.formulas.references import Reference
from judge.formulas.traits import traits
from judge.formulas.tree import Call, Node, tree
from judge.recalc.functions.conversions import UnsureError
from judge.recalc.functions.criteria import Cells, Scalar
from judge.recalc.functions.regions import UNITED_STATES, Region
from judge.workbook.address import COLUMN_MASK, cell_key, parse_area
from judge.workbook.cell import CellRange, CellRef, CellValue, ErrorValue
from judge.workbook.dependency import FormulaIndex
from judge.workbook.number_formats import to_serial
from judge.workbook.reader import Workbook

MAX_CELLS = 2_000_000
"""Largest number of cells that are read for one workbook."""

MAX_COMPARED = 20_000_000
"""Largest number of cells that functions compare and add up. In a range of numbers, every cell
counts. In a range with a criterion, only the cells that meet it count, because the values of the
range are sorted once.
"""

MAX_INSTEAD = 2_000_000
"""Largest number of cells that functions compare and add up for formulas that engines can compute
as well. Engines finish sooner than the judge if more is needed."""

SUBTOTALS = frozenset(("SUBTOTAL", "AGGREGATE"))
"""Functions that omit the cells that are subtotals themselves."""


_IN_FILES = re.compile(r"_xlfn\.|_xlws\.|_xlpm\.", re.IGNORECASE)
_WRITTEN_OTHERWISE = re.compile(
    r"[\[\"]|_xleta\.|_xlop\.|SINGLE\(|ANCHORARRAY\(|_xludf", re.IGNORECASE
)


class Budget:
    """How many cells may still be read, compared and added up.

    Separate from :class:`OwnValues`: rectangles count cells here and do not refer to the values.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Starts to count again."""
        self._unread = MAX_CELLS
        self._left = MAX_COMPARED

    def restrict(self) -> None:
        """Lowers the limit to that of formulas that engines can compute as well."""
        self._left = min(self._left, MAX_INSTEAD)

    @property
    def is_spent(self) -> bool:
        """Whether a limit was exceeded."""
        return self._unread < 0 or self._left < 0

    def read(self, cells: int) -> None:
        """Counts cells that are read; raises UnsureError if the limit is exceeded."""
        self._unread -= cells
        if self._unread < 0:
            raise UnsureError

    def spend(self, cells: int) -> None:
        """Counts cells that a function compares or adds up.

        Raises:
            UnsureError: the limit is exceeded.
        """
        self._left -= cells
        if self._left < 0:
            raise UnsureError


class Contents:
    """What cells are computed from: the sheets of a workbook, each read and sorted only once.

    Args:
        workbook: an open workbook.
        index: its formulas.
        region: how dates in text are read, and names of months and days are written.

    Attributes:
        budget: what may still be read and compared.
        kept_areas: rectangles without formulas; None for one that cannot be read.
        kept_results: results of formulas that read nothing but constants, which are the same
            whatever values other formulas have; None for one that cannot be computed here.
        kept_of_forms: the same for formulas of some form that read some values.
    """

    def __init__(
        self,
        workbook: Workbook,
        index: FormulaIndex,
        region: Region = UNITED_STATES,
    ) -> None:
        self.workbook = workbook
        self.index = index
        self.region = region
        self._used: dict[str, CellRange | None] = {}
        self._stored: dict[str, Mapping[int, CellValue]] = {}
        self._columns: dict[str, defaultdict[int, list[int]]] = {}
        self._hidden: dict[str, tuple[Sequence[int], AbstractSet[int], bool] | None] = {}
        self._subtotals: dict[str, Mapping[int, tuple[Sequence[int], Sequence[str]]]] = {}
        self.budget = Budget()
        self.kept_areas: dict[CellRange, Cells | None] = {}
        self.kept_results: dict[Hashable, tuple[Scalar, bool] | None] = {}
        self.kept_of_forms: dict[Hashable, tuple[Scalar, bool] | None] = {}

    def in_region(self, region: Region) -> Contents:
        """The same sheets, for formulas of another region; what was read is not read again."""
        other = copy.copy(self)
        other.region, other.budget = region, Budget()
        other.kept_areas, other.kept_results, other.kept_of_forms = {}, {}, {}
        return other

    def used_range(self, sheet: str) -> CellRange | None:
        """The rectangle around all cells with a value or a formula, or filled by one; or None."""
        if sheet not in self._used:
            self._used[sheet] = self.workbook.used_range(sheet)
        return self._used[sheet]

    def stored(self, sheet: str) -> Mapping[int, CellValue]:
        """The values of all cells of a sheet, by key, as the file stores them.

        Dates and times are serial numbers if the workbook counts days from 1900.
        """
        if sheet not in self._stored:
            stored = self.workbook.stored_values(sheet)
            if not self.workbook.date_1904 and not PLAIN_TYPES.issuperset(
                map(type, stored.values())
            ):
                stored = {
                    key: value if type(value) in PLAIN_TYPES else plain_scalar(value)
                    for key, value in stored.items()
                }
            self._stored[sheet] = stored
        return self._stored[sheet]

    def keys_in(self, area: CellRange) -> list[int]:
        """The keys of the cells of a rectangle that hold a value or a formula."""
        by_column = self._columns.get(area.sheet)
        if by_column is None:
            by_column = self._columns[area.sheet] = defaultdict(list)
            for key in sorted(self.stored(area.sheet)):
                by_column[key & COLUMN_MASK].append(key)
        inside: list[int] = []
        for column in range(area.min_column, area.max_column + 1):
            keys = by_column.get(column, [])
            first = bisect.bisect_left(keys, cell_key(area.min_row, column))
            inside += keys[first : bisect.bisect_right(keys, cell_key(area.max_row, column))]
        return inside

    def hidden(self, sheet: str) -> tuple[Sequence[int], AbstractSet[int], bool]:
        """The hidden rows of a sheet; see :func:`hidden_rows`."""
        if sheet not in self._hidden:
            self._hidden[sheet] = None
            self._hidden[sheet] = hidden_rows(self.workbook, sheet)
        on_sheet = self._hidden[sheet]
        if on_sheet is None:
            raise UnsureError
        return on_sheet

    def subtotals(self, sheet: str) -> Mapping[int, tuple[Sequence[int], Sequence[str]]]:
        """The subtotals of a sheet by column; see :func:`subtotals_by_column`."""
        if sheet not in self._subtotals:
            self._subtotals[sheet] = subtotals_by_column(self.index, sheet)
        return self._subtotals[sheet]

    def formula_in(self, area: CellRange) -> str | None:
        """The formula of the first cell of a rectangle, as Excel shows it; None if it has none.

        Raises:
            UnsureError: an array formula, or one that Excel writes differently from files.
        """
        here = Reference(area.sheet, area.min_row, area.min_column, area.min_row, area.min_column)
        cell = self.index.cell(CellRef(area.sheet, area.min_row, area.min_column))
        if cell is None and any(True for _ in self.index.sheet(area.sheet).filled_in(here)):
            raise UnsureError
        if cell is None:
            return None
        text = cell.formula or ""
        if not text or cell.array_range is not None or _WRITTEN_OTHERWISE.search(text):
            raise UnsureError
        return f"={_IN_FILES.sub('', text.removeprefix('='))}"

    def hidden_in(self, area: CellRange) -> tuple[AbstractSet[int], bool]:
        """The hidden rows of a rectangle, counted from 0, and whether a filter hides them.

        Raises:
            UnsureError: the file does not say whether a filter hides them.
        """
        hidden, filtered, filters = self.hidden(area.sheet)
        rows = between(hidden, area.min_row, area.max_row)
        self.budget.spend(len(rows))
        if rows and filters and not filtered >= set(rows):
            raise UnsureError
        return frozenset(row - area.min_row for row in rows), bool(rows) and filters

    def subtotals_in(self, area: CellRange) -> Mapping[tuple[int, int], str]:
        """Row and column, from 0, of cells of a rectangle that are subtotals -> their function.

        Raises:
            UnsureError: one of these calls is only a part of a formula.
        """
        subtotals: dict[tuple[int, int], str] = {}
        for column, (rows, names) in self.subtotals(area.sheet).items():
            if area.min_column <= column <= area.max_column:
                first = bisect.bisect_left(rows, area.min_row)
                for at in range(first, bisect.bisect_right(rows, area.max_row)):
                    if not names[at]:
                        raise UnsureError
                    subtotals[rows[at] - area.min_row, column - area.min_column] = names[at]
        self.budget.spend(len(subtotals))
        return subtotals


PLAIN_TYPES = frozenset((int, float, str, bool, ErrorValue, type(None)))
"""Types of constants that formulas read without conversion."""


def plain_scalar(value: CellValue) -> Scalar:
    """Converts a value of the reader to what a formula sees: dates and times as serial numbers."""
    if isinstance(value, (dt.datetime, dt.date, dt.time, dt.timedelta)):
        return to_serial(value)
    return value


def between(rows: Sequence[int], first: int, last: int) -> Sequence[int]:
    """The sorted rows from ``first`` to ``last``, inclusive."""
    return rows[bisect.bisect_left(rows, first) : bisect.bisect_right(rows, last)]


def subtotals_by_column(
    index: FormulaIndex, sheet: str
) -> Mapping[int, tuple[Sequence[int], Sequence[str]]]:
    """The subtotals of a sheet.

    Returns:
        Column -> sorted rows of the cells that call SUBTOTAL or AGGREGATE, and the name of that
        function; the name is empty if the call is only a part of the formula.
    """
    columns: dict[int, tuple[list[int], list[str]]] = {}
    for column, (rows, cells) in index.sheet(sheet).cells.items():
        for row, cell in zip(rows, cells, strict=True):
            if SUBTOTALS.isdisjoint(traits(cell.formula or "").functions):
                continue
            node: Node | None = tree(cell.formula or "")
            name = PREFIX.sub("", node.name).upper() if isinstance(node, Call) else ""
            in_column, names = columns.setdefault(column, ([], []))
            in_column.append(row)
            names.append(name if name in SUBTOTALS else "")
    return columns


def hidden_rows(workbook: Workbook, sheet: str) -> tuple[Sequence[int], AbstractSet[int], bool]:
    """The sorted hidden rows of a sheet, those within a filter, and whether a filter is set.

    Raises:
        UnsureError: the file does not say which rows are hidden, or by what.
    """
    from judge.workbook.facts.book import BookFacts  # noqa: PLC0415  rarely needed
    from judge.workbook.facts.sheets import filter_of  # noqa: PLC0415
    from judge.workbook.xml_parts import is_on  # noqa: PLC0415

    facts = BookFacts(workbook)
    tab = facts.tab(sheet)
    if tab is None:
        raise UnsureError
    attributes = facts.row_attributes(tab)
    hidden = sorted(row for row, of_row in attributes.items() if is_on(of_row.get("hidden")))
    root = facts.tree(tab)
    usual, properties = root.child("sheetFormatPr"), root.child("sheetPr")
    if usual is not None and is_on(usual.attributes.get("zeroHeight")):
        raise UnsureError
    filters = [filter_of(root.child("autoFilter")), *(table.filter for table in facts.tables(tab))]
    filtered: set[int] = set()
    is_set = False
    for one in filters:
        if one is not None and any(column.kind for column in one.columns):
            is_set = True
            window = parse_area(one.place)
            if window is None:
                raise UnsureError
            filtered.update(between(hidden, window.min_row + 1, window.max_row))
    in_mode = properties is not None and is_on(properties.attributes.get("filterMode"))
    if hidden and in_mode and not is_set:
        raise UnsureError  # an advanced filter, which the file does not describe
    return hidden, filtered, is_set
