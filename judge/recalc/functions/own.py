"""Computes some cells of a workbook here, instead of with an engine.

A cell is computed here if its formula is understood (:mod:`judge.recalc.functions.scalars`), every
cell that it reads has a known value, and its value depends on a conversion or a criterion, which
engines do differently from Excel. The limits are numbers of cells that are read and compared, not
times.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import itertools
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, TypeVar, cast

from judge.errors import WorkbookError
from judge.formulas.lexer import texts_of
from judge.formulas.references import FormulaForm, Reference, references, with_form
from judge.formulas.traits import traits
from judge.formulas.tree import (
    Call,
    Constant,
    ErrorConstant,
    Missing,
    Node,
    Operation,
    named_in,
    tree,
)
from judge.recalc.functions.arrays import FUNCTIONS_OF_ARRAYS, array_of, widened
from judge.recalc.functions.complexes import COMPLEX_FUNCTIONS
from judge.recalc.functions.contents import PLAIN_TYPES, Contents, plain_scalar
from judge.recalc.functions.conversions import UnsureError, date_number
from judge.recalc.functions.counting import COUNTING_FUNCTIONS
from judge.recalc.functions.criteria import Cells, Scalar
from judge.recalc.functions.dates_and_units import DATE_AND_UNIT_FUNCTIONS
from judge.recalc.functions.integers import INTEGER_FUNCTIONS, ROUNDING_FUNCTIONS
from judge.recalc.functions.lambdas import LAMBDA_FUNCTIONS
from judge.recalc.functions.lookups import LOOKUP_FUNCTIONS
from judge.recalc.functions.pairs import PAIR_FUNCTIONS
from judge.recalc.functions.regions import Region
from judge.recalc.functions.scalars import SCALAR_FUNCTIONS, Evaluation, Function, OfValues
from judge.recalc.functions.shaping import EMPTY, SHAPING_FUNCTIONS
from judge.recalc.functions.texts import TEXT_FUNCTIONS
from judge.recalc.functions.tried import has_criteria, is_tried, may_convert, own_position
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, cell_key, parse_window
from judge.workbook.cell import Cell, CellRange, CellRef, CellValue, ErrorValue
from judge.workbook.dependency import Walk
from judge.workbook.number_formats import DAYS_BETWEEN_SYSTEMS
from judge.workbook.sheets.sheet import Sheet

if TYPE_CHECKING:
    from judge.recalc.region import Regional

FUNCTIONS: dict[str, Function] = {
    **DATE_AND_UNIT_FUNCTIONS,
    **INTEGER_FUNCTIONS,
    **ROUNDING_FUNCTIONS,
    **COMPLEX_FUNCTIONS,
    **SCALAR_FUNCTIONS,
    **TEXT_FUNCTIONS,
    **COUNTING_FUNCTIONS,
    **PAIR_FUNCTIONS,
    **LOOKUP_FUNCTIONS,
    **FUNCTIONS_OF_ARRAYS,
    **LAMBDA_FUNCTIONS,
    **SHAPING_FUNCTIONS,
}

MAX_KEPT = 1_000_000
"""Largest number of values of computed arrays that are kept for formulas with the same array."""

DEEPEST = 40
"""Longest chain of formulas, each computed here from the next one."""

_OF_DAYS = frozenset(
    ("DATE", "YEAR", "MONTH", "DAY", "DATEVALUE", "TIMEVALUE", "EDATE", "EOMONTH", "VALUE")
)
_MAY_BE_DATE = re.compile(
    r"\d.*[/:-]|[/:-].*\d|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec", re.IGNORECASE
)


def _may_count_days(formula: str) -> bool:
    """Whether a formula calls a function of dates, or contains a string that may be a date."""
    is_of_days = not traits(formula).functions.isdisjoint(_OF_DAYS)
    return is_of_days or any(map(_MAY_BE_DATE.search, texts_of(formula)))


class OwnValues:
    """Computes cells of one workbook here; only one at a time for the same contents.

    Args:
        contents: the workbook. If it counts days from 1904, no functions of dates are computed.
        taken: formula cell -> the value that is already known, such as an engine's.
        regional: the cells that depend on a region other than the United States. Those that may
            depend on a date in text have no value if their formula has criteria, in which dates are
            read as in the United States.
        renewing: whether the limits on read and compared cells start again from zero.
    """

    def __init__(
        self,
        contents: Contents,
        taken: Mapping[CellRef, CellValue] | None = None,
        regional: Regional | None = None,
        *,
        renewing: bool = True,
    ) -> None:
        workbook = contents.workbook
        self.contents = contents
        self._workbook = workbook
        self._index = contents.index
        self._taken = taken or {}
        self._regional = regional
        self._computed: dict[CellRef, tuple[Scalar, bool] | None] = {}
        self._arrays: dict[CellRef, _Array] = {}
        self._areas: dict[CellRange, Cells | None] = {}
        self._depth = 0
        self._read_formulas = False
        """Whether the formula that is computed has read the value of a formula, so far."""
        self._corrected: dict[CellRef, Scalar] = {}
        on_mac = "macintosh" in (workbook.facts.application or "").casefold()
        self._kept_arrays: dict[Hashable, _Array] = {}
        self._kept_values = 0
        self._repeated: dict[Hashable, _Kept[object]] = {}
        self.date_1904 = workbook.date_1904
        self.region = contents.region
        self.charset = "mac_roman" if on_mac else "cp1252"
        if renewing:
            contents.budget.renew()
        self.spend = contents.budget.spend

    def converted(self, ref: CellRef, cell: Cell) -> Scalar:
        """The value of a formula cell, if it depends on a conversion.

        Args:
            ref: the position of the cell.
            cell: its content in the file.

        Raises:
            UnsureError: the cell is not computed here.
        """
        value, converted = self._formula(ref, cell)
        if not converted:
            raise UnsureError
        return self._as_result(value)

    def any_value(self, ref: CellRef, cell: Cell) -> Scalar:
        """The value of a formula cell, whether it depends on a conversion or not.

        Raises:
            UnsureError: the cell is not computed here.
        """
        return self._as_result(self._formula(ref, cell)[0])

    def reads_constants_alone(self, ref: CellRef, cell: Cell) -> bool:
        """Whether a formula cell that was computed here has read no other formula's value."""
        return _key(ref, cell) in self.contents.kept_results

    def _as_result(self, value: Scalar) -> Scalar:
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
            return int(value)  # as the reader and the engines' services do
        if value == EMPTY:
            return ErrorValue("#VALUE!")
        return value

    def correct(self, ref: CellRef, value: Scalar) -> None:
        """Replaces the value of a formula cell; cells that read it are computed from the new value.

        This must be called before any cell that reads it is computed.
        """
        self._corrected[ref] = value

    def _formula(self, ref: CellRef, cell: Cell) -> tuple[Scalar, bool]:
        if ref not in self._computed:
            self._computed[ref] = None  # a circular reference has no value here
            self._depth += 1
            before, self._read_formulas = self._read_formulas, False
            try:
                self._computed[ref] = self._kept_result(ref, cell)
            finally:
                self._depth -= 1
                self._read_formulas = before
        computed = self._computed[ref]
        if computed is None:
            raise UnsureError
        return computed

    def _kept_result(self, ref: CellRef, cell: Cell) -> tuple[Scalar, bool] | None:
        """The result of a formula; None if the formula cannot be computed here."""
        if self._depth > DEEPEST:
            return None
        kept, key = self.contents.kept_results, _key(ref, cell)
        if key in kept:
            return kept[key]
        try:
            value, converted = self._evaluated(ref, cell)
        except UnsureError:
            result = None
        else:
            result = 0 if value is None else value, converted  # as in =A1 if A1 is blank
        if not self._read_formulas and not self.contents.budget.is_spent:
            kept[key] = result
        return result

    def _evaluated(self, ref: CellRef, cell: Cell) -> tuple[Scalar, bool]:
        if cell.formula is None:
            raise UnsureError
        of_arrays = cell.array_range is not None
        if self.date_1904 and _may_count_days(cell.formula):
            raise UnsureError
        form, named = with_form(cell.formula)
        traits = form.traits
        if not of_arrays and traits.array_sensitive and not traits.intersects:
            raise UnsureError  # a range where Excel takes one of its values
        regional = self._regional
        if regional and has_criteria(cell.formula) and regional.reads_date(ref.sheet, cell):
            raise UnsureError
        if not of_arrays:
            result = self._of_form(ref.sheet, form, named)
            if result is not None:
                return result
        node: Node | None = tree(cell.formula)
        if node is None or (isinstance(node, Reference) and node.size > 1):
            raise UnsureError
        values = _Values(self, ref.sheet)
        evaluation = Evaluation(values, FUNCTIONS, of_arrays=of_arrays, position=own_position(cell))
        if of_arrays:
            return self._of_array(ref, cell, node, evaluation)
        return evaluation.scalar(node), evaluation.converted

    def _of_form(
        self, home: str, form: FormulaForm, named: Sequence[Reference]
    ) -> tuple[Scalar, bool] | None:
        """The result of a formula whose value depends on nothing but the values of single cells.

        Formulas of the same form that read equal values have the same result.

        Returns:
            The result; None if the formula is another one, or reads a value that is not known yet.

        Raises:
            UnsureError: the formula cannot be computed here.
        """
        of_form = _of_single_cells(form.text) if form.rows_only else None
        if of_form is None:
            return None
        try:
            given = tuple([self._known_value(read, home) for read in named])
        except UnsureError:
            return None
        # TRUE and 1 are equal in Python.
        key = form.text, given, tuple(map(type, given))
        kept = self.contents.kept_of_forms
        if key in kept:
            result = kept[key]
        else:
            node, names = of_form
            bound = _Bound(self, home, dict(zip(names, given, strict=True)))
            evaluation, result = Evaluation(bound, FUNCTIONS), None
            with contextlib.suppress(UnsureError):
                result = evaluation.scalar(node), evaluation.converted
            if not self.contents.budget.is_spent:
                kept[key] = result
        if result is None:
            raise UnsureError
        return result

    def _known_value(self, reference: Reference, home: str) -> Scalar:
        """The value of a cell, unless a formula would have to be computed first."""
        name, row, column, _, _ = reference
        ref = CellRef(self.sheet_named(name, home), row, column)
        if ref not in self._corrected and ref not in self._taken and not self._computed.get(ref):
            sheet, key = ref.sheet, cell_key(row, column)
            if self._index.sheet(sheet).filling or self._sheet(sheet).raw_formula(key) is not None:
                raise UnsureError
            return self._plain(self.contents.stored(sheet).get(key))
        return self.cell_value(ref)

    def _of_array(
        self, ref: CellRef, cell: Cell, node: Node, evaluation: Evaluation
    ) -> tuple[Scalar, bool]:
        """One value of an array formula; all of its values are computed together."""
        first = CellRef(ref.sheet, cell.row, cell.column)
        cells, converted = self._once(
            self._arrays, first, lambda: (array_of(evaluation, node), evaluation.converted)
        )
        return widened(cells, ref.row - cell.row, ref.column - cell.column), converted

    def _once(
        self, kept: dict[_Key, _Kept[_Result]], key: _Key, compute: Callable[[], _Result]
    ) -> _Result:
        """Computes a part of formulas, or returns it if it was computed before."""
        if key not in kept:
            kept[key] = None, True  # while it is computed
            before, self._read_formulas = self._read_formulas, False
            result = None
            try:
                with contextlib.suppress(UnsureError):
                    result = compute()
            finally:
                kept[key] = result, self._read_formulas
                self._read_formulas = before
        value, read_formulas = kept[key]
        self._read_formulas = self._read_formulas or read_formulas
        if value is None:
            raise UnsureError
        return value

    def cell_value(self, ref: CellRef) -> Scalar:
        """The value of any cell; raises UnsureError if the value is not known."""
        if ref in self._corrected:
            self._read_formulas = True
            return self._corrected[ref]
        if ref in self._taken:
            self._read_formulas = True
            value = plain_scalar(self._taken[ref])
            return "" if value is None else value  # the result of a formula is never blank
        key = cell_key(ref.row, ref.column)
        if self._sheet(ref.sheet).raw_formula(key) is not None:
            self._read_formulas = True
            computed = self._computed.get(ref)
            if computed is not None:
                return computed[0]
            cell = self._sheet(ref.sheet).cell(key)
            if "[" in (cell.formula or "") or traits(cell.formula or "").names:
                cell = self._index.cell(ref) or cell  # the index has tables written out
            return self._formula(ref, cell)[0]
        here = Reference(ref.sheet, ref.row, ref.column, ref.row, ref.column)
        filling = [*self._index.sheet(ref.sheet).filled_in(here)]
        if filling:
            self._read_formulas = True
            if len(filling) > 1:
                raise UnsureError
            return self._formula(ref, filling[0])[0]
        return self._plain(self.contents.stored(ref.sheet).get(key))

    def _plain(self, value: CellValue) -> Scalar:
        """The value that a formula reads from a cell with a constant."""
        scalar = plain_scalar(value)
        if not self.date_1904:
            return scalar
        if isinstance(scalar, str) and _MAY_BE_DATE.search(scalar) and date_number(scalar.strip()):
            raise UnsureError
        if isinstance(value, (dt.datetime, dt.date)) and isinstance(scalar, (int, float)):
            return scalar - DAYS_BETWEEN_SYSTEMS
        return scalar

    def kept_array(
        self, key: Hashable, compute: Callable[[], tuple[Cells, bool]]
    ) -> tuple[Cells, bool]:
        """An array that formulas share; see :meth:`.scalars.Values.kept_array`."""
        if key not in self._kept_arrays:
            if self._kept_values > MAX_KEPT:
                self._kept_arrays.clear()
                self._kept_values = 0
            kept = self._once(self._kept_arrays, key, compute)
            self._kept_values += kept[0].size
            return kept
        return self._once(self._kept_arrays, key, compute)

    def repeated(self, part: Hashable, compute: Callable[[], _Result]) -> _Result:
        """What several formulas in a row have in common; see :meth:`.scalars.Values.repeated`."""
        if part not in self._repeated:
            self._repeated.clear()
        try:
            return self._once(cast("dict[Hashable, _Kept[_Result]]", self._repeated), part, compute)
        except UnsureError:
            self._repeated.clear()  # it may be known in a formula that is nested less deeply
            raise

    def area(self, area: CellRange) -> Cells:
        """The cells of a rectangle; raises UnsureError if a value is not known."""
        kept = self.contents.kept_areas
        if area in kept:
            cells = kept[area]
        elif area in self._areas:
            self._read_formulas = True
            cells = self._areas[area]
        else:
            self._areas[area] = None
            before, self._read_formulas = self._read_formulas, False
            cells = None
            with contextlib.suppress(UnsureError):
                cells = self._read(area)
            if self._read_formulas or self.contents.budget.is_spent:
                self._areas[area] = cells
            else:
                kept[area] = cells
            self._read_formulas = self._read_formulas or before
        if cells is None:
            raise UnsureError
        self.spend(1)
        return cells

    def _read(self, area: CellRange) -> Cells:
        used = self.contents.used_range(area.sheet)
        rows = area.max_row - area.min_row + 1
        columns = area.max_column - area.min_column + 1
        values = self._filled(area)
        if used is None:
            return Cells(rows, columns, values)
        inside = CellRange(
            area.sheet,
            max(area.min_row, used.min_row),
            max(area.min_column, used.min_column),
            min(area.max_row, used.max_row),
            min(area.max_column, used.max_column),
        )
        if inside.min_row > inside.max_row or inside.min_column > inside.max_column:
            return Cells(rows, columns, values)
        self.contents.budget.read(inside.size)
        formulas = self._index.sheet(area.sheet)
        keys = self.contents.keys_in(inside)
        stored, top, left = self.contents.stored(area.sheet), area.min_row, area.min_column
        plain = not values and not self.date_1904
        if plain and not formulas.between(inside.min_column, inside.max_column):
            constants = zip(keys, map(cast("Mapping[int, Scalar]", stored).get, keys), strict=True)
            return Cells(
                rows,
                columns,
                {
                    ((key >> COLUMN_BITS) - top, (key & COLUMN_MASK) - left): value
                    for key, value in constants
                    if value is not None
                },
                self.spend,
            )
        raw_formula = self._sheet(area.sheet).raw_formula
        as_stored = frozenset[type]() if self.date_1904 else PLAIN_TYPES
        for key in keys:
            row, column = key >> COLUMN_BITS, key & COLUMN_MASK
            if (row - top, column - left) in values:
                continue
            # No formula fills the cell, so if it has no formula, it is a constant.
            if raw_formula(key) is not None:
                value = self.cell_value(CellRef(area.sheet, row, column))
            elif type(constant := stored.get(key)) in as_stored:
                value = cast("Scalar", constant)
            else:
                value = self._plain(constant)
            if value is not None:
                values[row - top, column - left] = value
        return Cells(rows, columns, values, self.spend)

    def _filled(self, area: CellRange) -> dict[tuple[int, int], Scalar]:
        """Row and column, from 0, of cells that array formulas fill -> their values."""
        values: dict[tuple[int, int], Scalar] = {}
        here = Reference(area.sheet, area.min_row, area.min_column, area.max_row, area.max_column)
        for cell in self._index.sheet(area.sheet).filled_in(here):
            self._read_formulas = True
            window = parse_window(cell.array_range or "")
            common = window.intersection(area) if window else None
            if common is None:
                raise UnsureError
            self.contents.budget.read(common.size)
            rows = range(common.min_row, common.max_row + 1)
            columns = range(common.min_column, common.max_column + 1)
            for row, column in itertools.product(rows, columns):
                position = row - area.min_row, column - area.min_column
                if position in values:
                    raise UnsureError
                values[position] = self._formula(CellRef(area.sheet, row, column), cell)[0]
        return values

    def _sheet(self, name: str) -> Sheet:
        return self._workbook.sheet(name)

    def named(self, reference: Reference, home: str) -> CellRange:
        """The rectangle of a reference, on a sheet by its real name."""
        sheet, top, left, bottom, right = reference
        return _range_of(self.sheet_named(sheet, home), top, left, bottom, right)

    def sheet_named(self, name: str | None, home: str) -> str:
        """The real name of the sheet that a reference names; ``home`` if it names none."""
        sheet = home if name is None else self._index.named(name)
        if sheet is None:
            raise UnsureError
        return sheet


_range_of = functools.lru_cache(maxsize=1024)(CellRange)
"""Makes a rectangle. Formulas that are filled down often name the same one, and making it takes
several times as long as finding it here."""

_Key = TypeVar("_Key", bound=Hashable)
_Result = TypeVar("_Result")

_Kept = tuple[_Result | None, bool]
"""A result, and whether it depends on formulas."""

_Array = _Kept[tuple[Cells, bool]]
"""An array, whether it depends on a conversion, and whether it depends on formulas."""


def _key(ref: CellRef, cell: Cell) -> Hashable:
    """A key of the kept result of a formula cell."""
    return ref, cell.formula, cell.array_range


class _Values:
    """Gives the formulas of one sheet the values that they read."""

    def __init__(self, own: OwnValues, home: str) -> None:
        self._own = own
        self._home = home

    @property
    def charset(self) -> str:
        return self._own.charset

    @property
    def date_1904(self) -> bool:
        return self._own.date_1904

    @property
    def region(self) -> Region:
        return self._own.region

    def kept_array(
        self, key: Hashable, compute: Callable[[], tuple[Cells, bool]]
    ) -> tuple[Cells, bool]:
        return self._own.kept_array((self._home, key), compute)

    def repeated(self, part: Hashable, compute: Callable[[], _Result]) -> _Result:
        return self._own.repeated((self._home, part), compute)

    def value(self, reference: Reference) -> Scalar:
        sheet, top, left, bottom, right = reference
        if top != bottom or left != right:
            raise UnsureError
        return self._own.cell_value(CellRef(self._own.sheet_named(sheet, self._home), top, left))

    def formula(self, reference: Reference) -> str | None:
        return self._own.contents.formula_in(self._own.named(reference, self._home))

    def cells(self, reference: Reference) -> Cells:
        cells = self.searched(reference)
        self._own.spend(len(cells.values))
        return cells

    def searched(self, reference: Reference) -> Cells:
        return self._own.area(self._own.named(reference, self._home))

    def spend(self, cells: int) -> None:
        self._own.spend(cells)

    def hidden(self, reference: Reference) -> tuple[AbstractSet[int], bool]:
        return self._own.contents.hidden_in(self._own.named(reference, self._home))

    def subtotals(self, reference: Reference) -> Mapping[tuple[int, int], str]:
        return self._own.contents.subtotals_in(self._own.named(reference, self._home))


class _Bound(_Values):
    """Gives a formula of some form the values of the cells that it reads.

    Args:
        own: computes cells.
        home: the sheet of the formula.
        values: reference of the form's tree -> value.
    """

    def __init__(self, own: OwnValues, home: str, values: Mapping[Reference, Scalar]) -> None:
        super().__init__(own, home)
        self._values = values

    def value(self, reference: Reference) -> Scalar:
        return self._values[reference]


@functools.lru_cache(maxsize=1024)
def _of_single_cells(formula: str) -> tuple[Node, Sequence[Reference]] | None:
    """The tree of a formula and its references, if only the values of single cells matter."""
    node, named = tree(formula), references(formula)
    if node is None or not _reads_single_cells(node):
        return None
    return (node, named) if (*named_in(node),) == named else None


def _reads_single_cells(node: Node) -> bool:
    if isinstance(node, Call):
        function = FUNCTIONS.get(node.name)
        is_of_values = isinstance(function, OfValues) or (
            function is not None and function is SCALAR_FUNCTIONS.get(node.name)
        )
        return is_of_values and all(map(_reads_single_cells, node.arguments))
    if isinstance(node, Operation):
        return all(map(_reads_single_cells, node.operands))
    if isinstance(node, Reference):
        return node.size == 1
    return isinstance(node, (Constant, ErrorConstant, Missing))


def followed_values(
    contents: Contents,
    cells: Mapping[CellRef, Cell],
    walk: Walk | None,
    regional: Regional | None = None,
) -> tuple[dict[CellRef, CellValue], bool]:
    """Computes, without any engine, some requested cells and the cells that they depend on.

    Args:
        contents: the workbook.
        cells: the requested formula cells.
        walk: all formula cells that these depend on; None if they are not known.
        regional: as for :class:`OwnValues`.

    Returns:
        The values, and whether a cell that is left to engines may read one of them.
    """
    followed = dict(cells)
    for step in () if walk is None else walk.steps:
        ref = step.ref
        if ref not in followed and not step.fills:
            stored = contents.workbook.sheet(ref.sheet).cell(cell_key(ref.row, ref.column))
            followed[ref] = contents.index.cell(ref) or stored
    own = OwnValues(contents, regional=regional)
    values = converted_values(own, followed, lambda _: False)
    if not values:
        return {}, False
    read = walk is None or any(
        step.reads or step.may_read_more for step in walk.steps if step.ref not in values
    )
    return values, read


def values_of_constants(
    contents: Contents, cells: Mapping[CellRef, Cell]
) -> dict[CellRef, CellValue]:
    """Computes cells from constants alone; the judge takes these values whatever the engines say.

    They count against the limits of :func:`followed_values`.

    Args:
        contents: the workbook.
        cells: formula cells.

    Returns:
        Cell -> value, dates and times as serial numbers; nothing unless all of them are computed.
    """
    if not all(is_tried(cell.formula or "") for cell in cells.values()):
        return {}
    own = OwnValues(contents, renewing=False)
    values: dict[CellRef, CellValue] = {}
    for ref, cell in cells.items():
        try:
            values[ref] = own.converted(ref, cell)
        except (UnsureError, WorkbookError):
            return {}
        if not own.reads_constants_alone(ref, cell):
            return {}
    return values


def values_of_all(
    contents: Contents, cells: Mapping[CellRef, Cell], computed: Mapping[CellRef, CellValue]
) -> dict[CellRef, CellValue]:
    """Computes cells, whether their values depend on a conversion or not.

    Args:
        contents: the workbook.
        cells: formula cells.
        computed: formula cell -> the value that was computed here before.

    Returns:
        Cell -> value, dates and times as serial numbers; of cells with OFFSET or INDIRECT only if
        they read constants alone; none if this takes more than a part of the limits.
    """
    own = OwnValues(contents, computed)
    contents.budget.restrict()
    values: dict[CellRef, CellValue] = {}
    for ref, cell in cells.items():
        with contextlib.suppress(UnsureError, WorkbookError):
            value = own.any_value(ref, cell)
            if not traits(cell.formula or "").opaque or own.reads_constants_alone(ref, cell):
                values[ref] = value
        if contents.budget.is_spent:
            return {}
    return values


def converted_values(
    own: OwnValues, cells: Mapping[CellRef, Cell], suspects: Callable[[CellRef], bool]
) -> dict[CellRef, CellValue]:
    """The values of the cells that depend on a conversion, or are suspects, and can be computed."""
    values: dict[CellRef, CellValue] = {}
    for ref, cell in cells.items():
        if not may_convert(cell.formula or "") and not suspects(ref):
            continue
        try:
            values[ref] = own.converted(ref, cell)
        except (UnsureError, WorkbookError):
            continue
    return values
