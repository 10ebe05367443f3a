"""Mutators that aim at certain mistakes: keys looked up, limits, blanks in each column."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from judge.annotate.edits import Edit, SetCell
from judge.annotate.idea import MAX_TABLES, Idea, Subject
from judge.annotate.tables import Column, Kind, Table
from judge.workbook.address import column_letters
from judge.workbook.cell import CellValue

MAX_IDEAS = 6
"""Ideas of one kind for one workbook."""

_READ = (Kind.NUMBER, Kind.TEXT, Kind.DATE)


def blank_columns(subject: Subject, rng: random.Random) -> Iterator[Idea]:
    """One cell emptied, in each column; and a whole row."""
    for table in subject.tables[:MAX_TABLES]:
        for column in table.inputs(*_READ)[:MAX_IDEAS]:
            rows = _open_rows(table, column)
            if len(rows) > 1:
                edit = SetCell(table.ref(rng.choice(rows), column.number), None)
                title = f"a cell of column {column_letters(column.number)} emptied"
                yield Idea("blank-columns", f"{title} ({table.sheet!r})", (edit,))
        rows = list(table.rows)[1:-1]
        if rows:
            row = rng.choice(rows)
            edits = tuple(
                SetCell(table.ref(row, column.number), None)
                for column in table.inputs(*_READ)
                if row in _open_rows(table, column)
            )
            if edits:
                yield Idea("blank-rows", f"row {row} emptied ({table.sheet!r})", edits)


def repeated_keys(subject: Subject, rng: random.Random) -> Iterator[Idea]:
    """A value of each column put a second time into it, further down."""
    for table in subject.tables[:MAX_TABLES]:
        for column in table.inputs(*_READ)[:MAX_IDEAS]:
            rows = _open_rows(table, column)
            if len(rows) < 3:
                continue
            first, second = sorted(rng.sample(rows, 2))
            value = column.cells[first].value
            if value != column.cells[second].value:
                edit = SetCell(table.ref(second, column.number), value)
                title = f"a value of column {column_letters(column.number)} occurs twice"
                yield Idea("repeated-keys", f"{title} ({table.sheet!r})", (edit,))


def looked_up_edges(subject: Subject, rng: random.Random) -> Iterator[Idea]:
    """Keys of one table set to the first, the last, and no key of the table they are found in."""
    made = 0
    for table in subject.tables:
        for column in table.inputs(Kind.TEXT, Kind.NUMBER):
            for other, keys in _tables_with_keys(subject, table, column):
                rows = _open_rows(table, column)
                chosen = rng.sample(rows, min(2, len(rows)))
                held = keys.rows_with_values()
                values = [keys.cells[held[0]].value, keys.cells[held[-1]].value]
                edits = [
                    SetCell(table.ref(row, column.number), value)
                    for row, value in zip(chosen, values, strict=False)
                    if column.cells[row].value != value
                ]
                if edits and made < MAX_IDEAS:
                    made += 1
                    title = f"the first and the last key of {other.sheet!r} looked up"
                    yield Idea("lookup-edges", f"{title} ({table.sheet!r})", tuple(edits))


def _tables_with_keys(
    subject: Subject, table: Table, column: Column
) -> Iterator[tuple[Table, Column]]:
    """Other tables with a column in which most values of a column are found."""
    wanted = _values(column)
    if len(wanted) < 2:
        return
    for other in subject.tables:
        for keys in other.columns:
            if keys is column or (other is table and keys.number == column.number):
                continue
            if keys.kind is column.kind and len(wanted & _values(keys)) * 2 > len(wanted):
                yield other, keys


def _values(column: Column) -> frozenset[CellValue]:
    return frozenset(column.cells[row].value for row in column.rows_with_values())


def limits_met(subject: Subject, rng: random.Random) -> Iterator[Idea]:
    """Numbers set at or next to the limits that the question or the gold's formulas name."""
    made = 0
    for table in subject.tables[:MAX_TABLES]:
        for column in table.inputs(Kind.NUMBER):
            rows = _open_rows(table, column)
            for limit in _near(column, subject.limits):
                if made == MAX_IDEAS or not rows:
                    return
                made += 1
                picked = rng.sample(rows, min(3, len(rows)))
                edits = tuple(
                    SetCell(table.ref(row, column.number), value)
                    for row, value in zip(picked, (limit, limit + 1, limit - 1), strict=False)
                )
                yield Idea("limits", f"numbers at the limit {limit} ({table.sheet!r})", edits)


def _near(column: Column, limits: tuple[float, ...]) -> list[float]:
    """The limits that are of the size of a column's numbers."""
    numbers = [
        abs(value)
        for row in column.rows_with_values()
        if isinstance(value := column.cells[row].value, int | float)
    ]
    most = max(numbers, default=0)
    return [limit for limit in limits if most and most / 1000 <= abs(limit) <= most * 2][:3]


def equal_columns(subject: Subject, rng: random.Random) -> Iterator[Idea]:
    """Two columns of the same kind with the same value in a row."""
    made = 0
    for table in subject.tables[:MAX_TABLES]:
        for kind in (Kind.NUMBER, Kind.DATE):
            columns = table.inputs(kind)
            for first, second in itertools.pairwise(columns):
                rows = [row for row in _open_rows(table, second) if row in first.cells]
                if not rows or made == MAX_IDEAS:
                    continue
                made += 1
                edits: list[Edit] = [
                    SetCell(table.ref(row, second.number), first.cells[row].value)
                    for row in rng.sample(rows, min(2, len(rows)))
                    if first.cells[row].formula is None
                ]
                names = f"{column_letters(first.number)} and {column_letters(second.number)}"
                if edits:
                    title = f"columns {names} are equal in some rows"
                    yield Idea("equal-columns", f"{title} ({table.sheet!r})", tuple(edits))


def _open_rows(table: Table, column: Column) -> list[int]:
    """Rows in which a column holds a constant that can be changed."""
    return [row for row in column.rows_with_values() if (row, column.number) not in table.covered]


TARGETED = {
    "blanks": blank_columns,
    "keys": repeated_keys,
    "lookups": looked_up_edges,
    "limits": limits_met,
    "equal": equal_columns,
}
"""Generators of ideas, by the name that goes into their seed."""

TARGETED_NAMES = (
    *("blank-columns", "blank-rows", "repeated-keys", "lookup-edges", "limits", "equal-columns"),
)
"""Names of their mutators."""
