"""Applies criteria of COUNTIF, SUMIFS and their relatives, and of databases, as Excel does. Pure.

Sources: Microsoft's pages on COUNTIF, COUNTIFS, SUMIF, SUMIFS, AVERAGEIFS, MAXIFS, MINIFS and DSUM,
and workbooks that Excel saved (`benchmarks/conversions.yaml` names them).
"""

from __future__ import annotations

import bisect
import functools
import itertools
import operator as operators
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeGuard, TypeVar, cast

from judge.formulas.references import Reference
from judge.recalc.functions.conversions import (
    UnsureError,
    fits,
    number_text,
    text_number,
    text_order,
)
from judge.recalc.functions.regions import Region
from judge.workbook.cell import ErrorValue

Scalar = float | int | bool | str | ErrorValue | None
"""A value of a cell: a number (dates as serial numbers), text, a logical value, an error, blank."""


NUMBER_TYPES = frozenset((int, float))
"""The types of numbers; TRUE and FALSE have another type."""


EXACT = 2**53
"""Whole numbers from here on may not be exact."""

EQUAL_TYPES = frozenset((bool, int, float))
"""Types of which some values are equal in Python."""


def is_number(value: Scalar) -> TypeGuard[float]:
    """Whether a value is a number; TRUE and FALSE are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_OPERATOR = re.compile(r"(<=|>=|<>|<|>|=)?(.*)", re.DOTALL)
_ERRORS = frozenset(("#N/A", "#VALUE!", "#REF!", "#DIV/0!", "#NUM!", "#NAME?", "#NULL!"))
MAX_CRITERION_CHARS = 255


class Criterion(NamedTuple):
    """A condition on a cell.

    Attributes:
        operator: ``=``, ``<>``, ``<``, ``<=``, ``>`` or ``>=``.
        operand: a number, a string in lower case, a logical value or an error to compare with; None
            for ``=`` and ``<>`` alone.
        pattern: whether the operand is a pattern with ``*``, ``?`` or ``~``.
    """

    operator: str
    operand: Scalar
    pattern: bool = False


def criterion(value: Scalar) -> Criterion:
    """Turns a value into a criterion; a blank cell counts as 0.

    Raises:
        UnsureError: it is not documented how Excel reads the value.
    """
    if value is None:
        return Criterion("=", 0)
    if not isinstance(value, str):
        return Criterion("=", value)
    if len(value) > MAX_CRITERION_CHARS:
        raise UnsureError
    match = _OPERATOR.fullmatch(value)
    if match is None:
        raise UnsureError
    operator, text = match[1], match[2]
    if not text:
        if operator in (None, "=", "<>"):
            return Criterion(operator or "=", None if operator else "")
        return Criterion(operator, None)  # without an operand, no cell is less or greater
    operand: Scalar = _operand(text)
    pattern = isinstance(operand, str) and any(letter in operand for letter in "*?~")
    if pattern and operator not in (None, "=", "<>"):
        raise UnsureError
    return Criterion(operator or "=", operand, pattern)


@functools.lru_cache(maxsize=1024)
def _operand(text: str) -> Scalar:
    upper = text.upper()
    if upper in ("TRUE", "FALSE"):
        return upper == "TRUE"
    if upper in _ERRORS:
        return ErrorValue(upper)
    number = text_number(text)
    return text.lower() if number is None else number


class Cells:
    """The cells of a rectangle.

    Args:
        values: (row, column) from 0 -> value, for the cells that are not blank; or the values of
            all cells, row by row, None for blank ones.
        spend: called with the number of cells that a function is about to compare or add up; it
            may raise UnsureError.

    Attributes:
        rows, columns: the shape of the rectangle.
    """

    def __init__(
        self,
        rows: int,
        columns: int,
        values: Mapping[Position, Scalar] | list[Scalar],
        spend: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.rows = rows
        self.columns = columns
        self._every: list[Scalar] | None = None
        if isinstance(values, list):
            self._every = values
        else:
            self.values = values
        self.spend = spend
        self._equal: dict[Scalar, list[Position]] | None = None
        self._doubtful = False
        self._ascending: tuple[list[float], list[Position]] | None = None
        self._in_order: list[tuple[Position, Scalar]] | None = None
        self._meeting: dict[Hashable, frozenset[Position]] = {}

    @functools.cached_property
    def values(self) -> Mapping[Position, Scalar]:
        """(row, column) from 0 -> value, for the cells that are not blank."""
        positions = zip(self._all_positions(), self.all_values(), strict=True)
        return {position: value for position, value in positions if value is not None}

    def all_values(self) -> Iterator[Scalar]:
        """The values of all cells, row by row; None for blank ones."""
        if self._every is not None:
            return iter(self._every)
        return map(self.values.get, self._all_positions())

    @property
    def every(self) -> Sequence[Scalar]:
        """The same as a list, which takes memory for blank cells, too."""
        if self._every is not None:
            return self._every
        every = [*self.all_values()]
        if len(every) <= 2 * len(self.values):
            self._every = every  # otherwise it would take far more memory than the values
        return every

    @functools.cached_property
    def used_size(self) -> tuple[int, int]:
        """The numbers of rows and of columns up to the last value."""
        rows = max((row for row, _ in self.values), default=-1) + 1
        return rows, max((column for _, column in self.values), default=-1) + 1

    @property
    def first(self) -> Scalar:
        """The value of the first cell."""
        return self.values.get((0, 0)) if self._every is None else self._every[0]

    @functools.cached_property
    def types(self) -> AbstractSet[type]:
        """The types of the values, with that of None for blank cells."""
        if self._every is not None:
            return {*map(type, self._every)}
        types: set[type] = {*map(type, self.values.values())}
        return types if len(self.values) == self.size else {*types, type(None)}

    def mapped(self, change: Callable[[Scalar], Scalar]) -> Cells:
        """The results of a function for all cells; it is called once for equal values."""
        # TRUE and 1 are equal in Python.
        if len(EQUAL_TYPES & self.types) > 1:
            keys = [*zip(self.every, map(type, self.every), strict=True)]
            by_key = {key: change(key[0]) for key in dict.fromkeys(keys)}
            return Cells(self.rows, self.columns, [*map(by_key.__getitem__, keys)])
        if self._every is not None or 2 * len(self.values) >= self.size:
            every = self.every
            by_value = {value: change(value) for value in dict.fromkeys(every)}
            return Cells(self.rows, self.columns, [*map(by_value.__getitem__, every)])
        by_value = {value: change(value) for value in dict.fromkeys(self.values.values())}
        results = [change(None)] * self.size
        for (row, column), value in self.values.items():
            results[row * self.columns + column] = by_value[value]
        return Cells(self.rows, self.columns, results)

    def filled(self) -> list[Scalar]:
        """The values that are not blank, row by row."""
        if self._every is not None:
            return [value for value in self._every if value is not None]
        return [value for _, value in self.in_order]

    def _all_positions(self) -> Iterator[Position]:
        return itertools.product(range(self.rows), range(self.columns))

    @property
    def in_order(self) -> list[tuple[Position, Scalar]]:
        """The positions that are not blank, row by row, with their values."""
        if self._in_order is None:
            self._in_order = sorted(self.values.items(), key=operators.itemgetter(0))
        return self._in_order

    @property
    def size(self) -> int:
        """How many cells the rectangle has."""
        return self.rows * self.columns

    def equal_to(self, operand: float | str) -> frozenset[Position]:
        """The cells that are equal to a number, or to a string in lower case.

        Raises:
            UnsureError: it is not documented as which number Excel reads the text of a cell.
        """
        if self._equal is None:
            self._equal = self._by_value()
        if self._doubtful and not isinstance(operand, str):
            raise UnsureError
        equal = self._equal.get(operand, ())
        self.spend(len(equal))
        return frozenset(equal)

    def meeting(self, condition: Criterion) -> frozenset[Position]:
        """The cells that are not blank and meet a criterion with an operand, other than ``<>``.

        Raises:
            UnsureError: it is not documented how Excel reads some cell.
        """
        self.spend(len(self.values))
        # TRUE and 1 are equal in Python.
        key = type(condition.operand), condition
        if key not in self._meeting:
            self._meeting[key] = frozenset(
                position for position, value in self.values.items() if _meets(value, condition)
            )
        return self._meeting[key]

    def ordered_against(self, operand: float, operator: str) -> Slice:
        """The cells whose number is less (``<``, ``<=``) or greater (``>``, ``>=``) than another.

        Raises:
            UnsureError: a number is so close to the operand that Excel may treat them as equal.
        """
        if self._ascending is None:
            self.spend(len(self.values))
            numbers = sorted(
                (cast("float", value), position)
                for position, value in self.values.items()
                if type(value) in NUMBER_TYPES
            )
            self._ascending = [value for value, _ in numbers], [position for _, position in numbers]
        values, positions = self._ascending
        first, end = bisect.bisect_left(values, operand), bisect.bisect_right(values, operand)
        beside = (*values[first - 1 : first], *values[end : end + 1])
        if any(are_close(value, operand) for value in beside):
            raise UnsureError
        if operator in ("<", "<="):
            return Slice(self, positions, 0, first if operator == "<" else end)
        return Slice(self, positions, end if operator == ">" else first, len(positions))

    def at(self, position: Position) -> Scalar:
        """The value of one cell."""
        if self._every is not None:
            return self._every[position[0] * self.columns + position[1]]
        return self.values.get(position)

    def as_equal(self, operand: Scalar) -> SparseCells | None:
        """Which cells an ``=`` finds equal to a value: TRUE or FALSE for each cell.

        Returns:
            The results; None if blank cells may be equal to the value, or a cell has an error.

        Raises:
            UnsureError: a number is so close to the value that Excel may treat them as equal.
        """
        is_large = is_number(operand) and abs(operand) >= EXACT
        if operand in (None, "", 0) or is_large or isinstance(operand, ErrorValue):
            return None
        positions, numbers = self._by_kind
        key = _kind_and_value(operand)
        if ErrorValue in {kind for kind, _ in positions}:
            return None
        if key[0] is float:
            number = float(cast("float", operand))
            first, end = bisect.bisect_left(numbers, number), bisect.bisect_right(numbers, number)
            beside = (*numbers[first - 1 : first], *numbers[end : end + 1])
            if any(are_close(value, number) for value in beside):
                raise UnsureError
        equal = positions.get(key, ())
        self.spend(len(equal))
        return SparseCells(self.rows, self.columns, False, dict.fromkeys(equal, True))

    @functools.cached_property
    def _by_kind(self) -> tuple[Mapping[tuple[type, Scalar], Sequence[Position]], Sequence[float]]:
        """The cells by :func:`_kind_and_value`, and the numbers in ascending order."""
        self.spend(len(self.values))
        positions: dict[tuple[type, Scalar], list[Position]] = {}
        for position, value in self.values.items():
            positions.setdefault(_kind_and_value(value), []).append(position)
        return positions, sorted(cast("float", value) for kind, value in positions if kind is float)

    def _by_value(self) -> dict[Scalar, list[Position]]:
        self.spend(len(self.values))
        by_value: dict[Scalar, list[Position]] = {}
        for position, value in self.values.items():
            if isinstance(value, str):
                by_value.setdefault(value.lower(), []).append(position)
                try:
                    number = _as_number(value)
                except UnsureError:
                    self._doubtful = True
                else:
                    if number is not None:
                        by_value.setdefault(number, []).append(position)
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                by_value.setdefault(float(value), []).append(position)
        return by_value


class SparseCells(Cells):
    """An array of which most values are the same.

    Args:
        rows, columns: its shape.
        usual: the value at all other places.
        others: (row, column) from 0 -> value.
    """

    def __init__(
        self, rows: int, columns: int, usual: Scalar, others: Mapping[Position, Scalar]
    ) -> None:
        super().__init__(rows, columns, [])
        self._every = None
        self.usual = usual
        self.others = others

    def all_values(self) -> Iterator[Scalar]:
        """The values of all cells, row by row; None for blank ones."""
        return (self.others.get(position, self.usual) for position in self._all_positions())

    def at(self, position: Position) -> Scalar:
        """The value of one cell."""
        return self.others.get(position, self.usual)

    @property
    def first(self) -> Scalar:
        """The value of the first cell."""
        return self.at((0, 0))

    @functools.cached_property
    def types(self) -> AbstractSet[type]:
        """The types of the values, with that of None for blank cells."""
        return {type(self.usual), *map(type, self.others.values())}

    def with_usual_once(self) -> list[Scalar]:
        """The values that are not blank, row by row, after the usual one."""
        values = [self.usual, *(value for _, value in sorted(self.others.items(), key=_place_of))]
        return [value for value in values if value is not None]


Position = tuple[int, int]

_place_of = operators.itemgetter(0)


def _kind_and_value(value: Scalar) -> tuple[type, Scalar]:
    """A key that is the same for values of a cell that Excel finds equal."""
    if isinstance(value, str):
        return str, value.lower()
    if isinstance(value, bool):
        return bool, value
    return (float, float(value)) if isinstance(value, (int, float)) else (type(value), None)


_Result = TypeVar("_Result")


class Values(Protocol):
    """Provides the values of cells."""

    @property
    def charset(self) -> str:
        """Python's name of the character set that CHAR and CODE use."""
        ...

    @property
    def date_1904(self) -> bool:
        """Whether the workbook counts days from 1904."""
        ...

    @property
    def region(self) -> Region:
        """How dates in text are read, and names of months and days are written."""
        ...

    def kept_array(
        self, key: Hashable, compute: Callable[[], tuple[Cells, bool]]
    ) -> tuple[Cells, bool]:
        """A computed array; it is computed once for all formulas of a sheet that contain it.

        Args:
            key: identifies the array among the arrays of the sheet.
            compute: computes the array, and whether it depends on a conversion.

        Raises:
            UnsureError: the array cannot be computed.
        """
        ...

    def repeated(self, part: Hashable, compute: Callable[[], _Result]) -> _Result:
        """The result for a part of a formula; recomputed if the previous call was for another part.

        Args:
            part: identifies this part among the repeatable parts of the sheet.
            compute: computes the result.

        Raises:
            UnsureError: the part cannot be computed.
        """
        ...

    def value(self, reference: Reference) -> Scalar:
        """The value of one cell; raises UnsureError if the value is not known."""
        ...

    def formula(self, reference: Reference) -> str | None:
        """The formula of the first cell of a rectangle, as Excel shows it; None if it has none.

        Raises:
            UnsureError: it is not known how Excel shows the formula.
        """
        ...

    def cells(self, reference: Reference) -> Cells:
        """The values of a rectangle for a function that reads all of them.

        Raises:
            UnsureError: a value is not known, or functions have read too many cells.
        """
        ...

    def searched(self, reference: Reference) -> Cells:
        """The values of a rectangle to which criteria are applied; raises like :meth:`cells`."""
        ...

    def spend(self, cells: int) -> None:
        """Counts the values of computed arrays; raises UnsureError beyond a limit."""
        ...

    def hidden(self, reference: Reference) -> tuple[AbstractSet[int], bool]:
        """The hidden rows of a rectangle, counted from 0, and whether a filter hides them.

        Raises:
            UnsureError: the file does not say whether a filter hides them.
        """
        ...

    def subtotals(self, reference: Reference) -> Mapping[tuple[int, int], str]:
        """Row and column, from 0, of cells with SUBTOTAL or AGGREGATE -> which of these.

        Raises:
            UnsureError: one of these calls is only a part of a formula.
        """
        ...


@dataclass(slots=True)
class Slice:
    """A run of cells in the ascending order of a rectangle's numbers.

    Attributes:
        cells: the rectangle.
        ascending: the positions of its numbers, in ascending order of the numbers.
        first, end: the run in ``ascending``, from 0; the end is excluded.
    """

    cells: Cells
    ascending: Sequence[Position]
    first: int
    end: int

    def __len__(self) -> int:
        return max(0, self.end - self.first)

    def positions(self) -> frozenset[Position]:
        """The positions of the cells."""
        self.cells.spend(len(self))
        return frozenset(self.ascending[self.first : self.end])


@dataclass(slots=True)
class Matches:
    """Selected cells: the chosen ones or, if inverted, all others. A slice is never inverted."""

    chosen: frozenset[Position] | Slice
    inverted: bool = False

    @property
    def positions(self) -> frozenset[Position]:
        """The positions that are chosen or, if inverted, left out."""
        return self.chosen.positions() if isinstance(self.chosen, Slice) else self.chosen

    def __and__(self, other: Matches) -> Matches:
        if self.inverted and not self.chosen:
            return other
        one, two = self.chosen, other.chosen
        if isinstance(one, Slice) and isinstance(two, Slice) and one.cells is two.cells:
            # Both bounds of an interval: the cells in between need no comparison.
            both = Slice(one.cells, one.ascending, max(one.first, two.first), min(one.end, two.end))
            return Matches(both)
        if self.inverted and other.inverted:
            return Matches(self.positions | other.positions, inverted=True)
        if self.inverted:
            return Matches(other.positions - self.positions)
        if other.inverted:
            return Matches(self.positions - other.positions)
        return Matches(self.positions & other.positions)

    def count(self, size: int) -> int:
        """How many cells are selected, out of a rectangle of this size."""
        return size - len(self.chosen) if self.inverted else len(self.chosen)


def matches(cells: Cells, condition: Criterion) -> Matches:
    """The cells that meet a criterion.

    Raises:
        UnsureError: it is not documented how Excel reads some cell.
    """
    if condition.operator == "<>":
        operand = condition.operand
        if is_number(operand):
            cells.spend(len(cells.values))
            # Unlike with =, text is never equal to the number that it shows.
            numbers = (
                position
                for position, value in cells.values.items()
                if not isinstance(value, str) and _meets(value, Criterion("=", operand))
            )
            return Matches(frozenset(numbers), inverted=True)
        equal = matches(cells, Criterion("=", operand, condition.pattern))
        return Matches(equal.chosen, inverted=not equal.inverted)
    if condition.operator == "=":
        if condition.operand is None:
            cells.spend(len(cells.values))
            return Matches(frozenset(cells.values), inverted=True)
        if condition.operand == "":
            cells.spend(len(cells.values))
            filled = (position for position, value in cells.values.items() if value != "")
            return Matches(frozenset(filled), inverted=True)
        if isinstance(condition.operand, str) and not condition.pattern:
            return Matches(cells.equal_to(condition.operand))
        if is_number(condition.operand):
            return Matches(cells.equal_to(float(condition.operand)))
    elif is_number(condition.operand):
        return Matches(cells.ordered_against(condition.operand, condition.operator))
    return Matches(cells.meeting(condition))


def _meets(value: Scalar, condition: Criterion) -> bool:
    """Whether a cell that is not blank meets a criterion with an operand, other than ``<>``."""
    operand = condition.operand
    if isinstance(operand, bool) or isinstance(value, bool):
        return (
            isinstance(operand, bool)
            and isinstance(value, bool)
            and _compared(value, operand, condition.operator)
        )
    if isinstance(operand, ErrorValue) or isinstance(value, ErrorValue):
        if condition.operator != "=" and isinstance(operand, ErrorValue):
            raise UnsureError
        return operand == value
    if isinstance(operand, str):
        if not isinstance(value, str):
            return False
        if condition.pattern:
            return fits(value.lower(), operand)
        if condition.operator == "=":
            return value.lower() == operand
        return text_order(value, operand, condition.operator)
    if isinstance(value, str):
        # The text "5" in a cell is equal to 5, but neither less nor greater than any number.
        return condition.operator == "=" and _as_number(value) == operand
    if value is None or operand is None:
        return False
    return _compared(value, operand, condition.operator)


def _as_number(text: str) -> float | None:
    return text_number(text) if any(map(str.isdigit, text)) else None


def are_close(value: float, operand: float) -> bool:
    """Whether two numbers differ by so little that Excel may treat them as equal."""
    return value != operand and abs(value - operand) <= 1e-14 * abs(operand)


def _compared(value: float, operand: float, operator: str) -> bool:
    if are_close(value, operand):
        raise UnsureError
    return {
        "=": value == operand, "<": value < operand, "<=": value <= operand,
        ">": value > operand, ">=": value >= operand,
    }[operator]  # fmt: skip


# -- tables with criteria --------------------------------------------------------------------------


def table_rows(
    table: Cells, conditions: Cells, computed: Callable[[int, int, int], bool]
) -> list[int]:
    """The rows of a database, from 1, that meet the conditions of a criteria range.

    A database row has to meet all conditions of at least one row of the criteria range.

    Args:
        table: the database.
        conditions: the criteria range.
        computed: gets the position of a condition that does not belong to a column of the database,
            and a row; returns whether the row meets the condition.
    """
    names = names_of(table)
    matching: set[int] = set()
    rows = range(1, table.rows)
    for line in range(1, conditions.rows):
        meeting = set(rows)
        for column in range(conditions.columns):
            condition = conditions.values.get((line, column))
            if condition is None:
                continue
            name = _name(conditions.values.get((0, column)))
            if name in names:
                meeting &= _rows_meeting(table, names[name], condition)
            else:
                meeting = {row for row in meeting if computed(line, column, row)}
        matching |= meeting
    return sorted(matching)


def names_of(table: Cells) -> dict[str, int]:
    """Name in the first row of a database, in lower case -> its first column with that name."""
    heads = sorted(position for position in table.values if position[0] == 0)
    names: dict[str, int] = {}
    for position in heads:
        names.setdefault(_name(table.values[position]), position[1])
    return names


def _name(value: Scalar) -> str:
    """The name of a column as text; numbers and logical values can be names as well."""
    if value is None or isinstance(value, ErrorValue):
        raise UnsureError
    if isinstance(value, bool):
        return str(value).lower()
    return value.lower() if isinstance(value, str) else number_text(value)


def _rows_meeting(table: Cells, column: int, condition: Scalar) -> set[int]:
    parsed = criterion(condition)
    plain = isinstance(condition, str) and condition[:1] not in ("=", "<", ">")
    if plain and isinstance(parsed.operand, str):
        # Plain text matches all cells that begin with it.
        parsed = Criterion("=", parsed.operand + "*", pattern=True)
    values = {(row, 0): value for (row, at), value in table.values.items() if at == column and row}
    meeting = matches(Cells(table.rows, 1, values), parsed)
    rows, inverted = {row for row, _ in meeting.positions}, meeting.inverted
    return {row for row in range(1, table.rows) if (row in rows) != inverted}


def numbers_of(values: Iterable[Scalar]) -> list[float] | ErrorValue:
    """The numbers among some values, or the first error."""
    given = list(values)
    types = set(map(type, given))
    if ErrorValue in types:
        return next(value for value in given if isinstance(value, ErrorValue))
    if not types <= NUMBER_TYPES:
        given = [value for value in given if type(value) in NUMBER_TYPES]
    return cast("list[float]", given)


def has_logical(values: Iterable[Scalar]) -> bool:
    """Whether one of some values is TRUE or FALSE."""
    return bool in set(map(type, values))
