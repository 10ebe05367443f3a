"""Reads a sheet as a table of typed columns, as ``pandas.read_excel`` 2.0.3 does.

The first row is the heading. The type of each column follows from its cells: a column of numbers
and blanks is numeric, even if numbers are written as text or as TRUE. With any other string, its
values stay unchanged. The strings that count as blank are those of pandas.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.compare.rules.published_error import PublishedError
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK
from judge.workbook.cell import CellValue, ErrorValue

BLANK_TEXTS = frozenset(
    {
        "",
        "#N/A",
        "#N/A N/A",
        "#NA",
        "-1.#IND",
        "-1.#QNAN",
        "-NaN",
        "-nan",
        "1.#IND",
        "1.#QNAN",
        "<NA>",
        "N/A",
        "NA",
        "NULL",
        "NaN",
        "None",
        "n/a",
        "nan",
        "null",
    }
)
_TRUE, _FALSE = {"True", "TRUE", "true"}, {"False", "FALSE", "false"}
_NUMBER = re.compile(r"[ \t\n\v\f\r]*[+-]?(?:[0-9]+(\.[0-9]*)?|(\.[0-9]+))([eE][+-]?[0-9]+)?\s*")
_INFINITY = re.compile(r"([+-]?)inf(?:inity)?", re.IGNORECASE)
_NAN = math.nan
_INT64 = 1 << 63
_FIRST_DAY, _LAST_DAY = dt.datetime(1677, 9, 22), dt.datetime(2262, 4, 11)  # noqa: DTZ001


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its type as pandas names it, and its values; NaN for a blank cell."""

    kind: str
    values: Sequence[object]


@dataclass(frozen=True, slots=True)
class Frame:
    """A table: headings, columns, and the number of rows below the heading.

    ``columns`` is empty for a sheet without cells, which pandas distinguishes from a heading
    without rows.
    """

    headings: tuple[object, ...]
    columns: tuple[Column, ...]
    rows: int


def read_frame(values: Mapping[int, CellValue]) -> Frame:
    """The table of a sheet.

    Args:
        values: stored values by key, cells that merged ranges cover included.
    """
    cells = {key: _converted(value) for key, value in values.items()}
    filled = {key: value for key, value in cells.items() if value != ""}
    if not filled:
        return Frame((), (), 0)
    last_row = max(filled) >> COLUMN_BITS
    width = max(key & COLUMN_MASK for key in filled)
    by_column: list[dict[int, object]] = [{} for _ in range(width)]
    for key, value in filled.items():
        by_column[(key & COLUMN_MASK) - 1][key >> COLUMN_BITS] = value
    headings = _headings([column.get(1, "") for column in by_column])
    rows = last_row - 1
    if rows == 0:
        return Frame(headings, tuple(Column("object", ()) for _ in by_column), 0)
    columns = tuple(
        _column([column.get(row, "") for row in range(2, last_row + 1)]) for column in by_column
    )
    return Frame(headings, columns, rows)


def size_of(values: Mapping[int, CellValue]) -> int:
    """Returns the number of cells that the table of a sheet would have."""
    filled = [key for key, value in values.items() if value is not None]
    if not filled:
        return 0
    return (max(filled) >> COLUMN_BITS) * max(key & COLUMN_MASK for key in filled)


def _converted(value: CellValue) -> object:
    if value is None:
        return ""
    if isinstance(value, ErrorValue):
        return _NAN
    if isinstance(value, float):
        if math.isfinite(value) and value == int(value):
            return int(value)
        return value
    return value


def _headings(row: list[object]) -> tuple[object, ...]:
    """Names the columns: a blank heading gets a name, and a repeated name gets a number."""
    names = [f"Unnamed: {index}" if name == "" else name for index, name in enumerate(row)]
    unnamed = [index for index, name in enumerate(row) if name == ""]
    counts: dict[object, int] = {}
    taken = set(names)
    order = [index for index in range(len(row)) if row[index] != ""] + unnamed
    for index in order:
        old = name = names[index]
        count = counts.get(name, 0)
        while count > 0:
            counts[old] = count + 1
            name = f"{old}.{count}"
            count = count + 1 if name in taken else counts.get(name, 0)
        taken.add(name)
        names[index] = name
        counts[name] = count + 1
    return tuple(names)


def _column(cells: list[object]) -> Column:
    numeric = _numeric(cells)
    if numeric is not None:
        return numeric
    values = [_NAN if isinstance(cell, str) and cell in BLANK_TEXTS else cell for cell in cells]
    truths = [_truth(value) for value in values]
    if None not in truths:
        return Column("bool", truths)
    present = [value for value in values if not _is_nan(value)]
    if present and all(isinstance(value, dt.datetime) for value in present):
        if all(_FIRST_DAY <= value <= _LAST_DAY for value in present):  # type: ignore[operator]
            return Column("datetime64[ns]", values)
    elif present and all(isinstance(value, dt.timedelta) for value in present):
        return Column("timedelta64[ns]", values)
    return Column("object", values)


def _truth(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return True if value in _TRUE else False if value in _FALSE else None
    return None


def _numeric(cells: list[object]) -> Column | None:
    """A column of numbers (numeric text, truth values and blanks included); None for any other."""
    numbers: list[float | int] = []
    is_bool = False
    for cell in cells:
        read = _as_number(cell)
        if read is None:
            return None
        is_bool = is_bool or isinstance(cell, bool)
        numbers.append(read)
    whole = [number for number, cell in zip(numbers, cells, strict=True) if _is_whole(number, cell)]
    unsigned = any(number >= _INT64 for number in whole)
    beyond = any(number >= 2 * _INT64 or number < -_INT64 for number in whole)
    signed = any(number < 0 for number in whole)
    if beyond or (signed and unsigned) or any(isinstance(value, float) for value in numbers):
        return Column("float64", [float(number) for number in numbers])
    if is_bool and not whole:
        return Column("bool", [bool(number) for number in numbers])
    return Column("uint64" if unsigned else "int64", numbers)


def _is_whole(number: float, cell: object) -> bool:
    return isinstance(number, int) and not isinstance(cell, bool)


def _as_number(cell: object) -> float | int | None:
    """A cell as a number, NaN for a blank one; None if it is anything else."""
    if isinstance(cell, bool):
        return int(cell)
    if isinstance(cell, int | float):
        return cell
    if isinstance(cell, str):
        return _NAN if cell in BLANK_TEXTS else _number_of_text(cell)
    return None


def _number_of_text(text: str) -> float | int | None:
    match = _NUMBER.fullmatch(text) if len(text) < 400 else None
    if match is not None:
        if match[1] is None and match[2] is None and match[3] is None:
            whole = int(text)
            return whole if -_INT64 <= whole < 2 * _INT64 else None
        return float(text)
    match = _INFINITY.fullmatch(text)
    if match is not None:
        return -math.inf if match[1] == "-" else math.inf
    return None


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and value != value  # noqa: PLR0124


# -- comparing ------------------------------------------------------------------------------------


def rounded(frame: Frame, decimals: object) -> Frame:
    """The table with its numeric columns rounded as NumPy rounds.

    Raises:
        PublishedError: ``decimals`` is not a whole number.
    """
    if not isinstance(decimals, int):
        raise PublishedError("TypeError", "decimals must be an integer, a dict-like or a Series")
    columns = tuple(
        Column(column.kind, [round_half_even(value, decimals) for value in column.values])  # type: ignore[arg-type]
        if column.kind == "float64" or (decimals < 0 and column.kind in {"int64", "uint64"})
        else column
        for column in frame.columns
    )
    return Frame(frame.headings, columns, frame.rows)


def round_half_even(value: float, decimals: int) -> float:
    """A number rounded to some decimals: scaled, rounded to even, scaled back."""
    if not math.isfinite(value) or abs(decimals) > 300:
        return value
    power = 10.0 ** abs(decimals)
    scaled = value * power if decimals >= 0 else value / power
    if not math.isfinite(scaled):
        return math.copysign(math.inf, value)
    nearest = float(round(scaled)) if abs(scaled) < 2**52 else scaled
    return nearest / power if decimals >= 0 else nearest * power


def frames_equal(first: Frame, second: Frame) -> bool:
    """``DataFrame.equals``: headings, number of rows, types of columns, values."""
    return (
        first.rows == second.rows
        and len(first.columns) == len(second.columns)
        and len(first.headings) == len(second.headings)
        and all(map(same_value, first.headings, second.headings))
        and all(map(_same_column, first.columns, second.columns))
    )


def _same_column(first: Column, second: Column) -> bool:
    return first.kind == second.kind and all(map(same_value, first.values, second.values))


def same_value(first: object, second: object) -> bool:
    """Returns whether two values of tables are equal; two blanks are equal."""
    return bool(first == second) or (_is_nan(first) and _is_nan(second))
