"""Mutators of several cells: a key on both sides, records that share their keys, sums."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from judge.annotate.edits import Edit, SetCell
from judge.annotate.idea import MAX_TABLES, Idea, Subject, Twin
from judge.annotate.support import Group
from judge.annotate.tables import Column, Kind, Table
from judge.workbook.cell import Cell, CellRef, CellValue

MAX_RECORDS = 6
"""Ideas of one kind for one workbook."""

MAX_KEYS = 5
"""Cells up to which a column of numbers is what is looked up, not where."""


# -- keys on both sides ---------------------------------------------------------------------------


def text_keys(subject: Subject, rng: random.Random) -> Iterator[Idea]:
    """A key with a letter, where it is looked up and where it is found: first and last of its list.

    Programs find the extent of a list by its numbers; a key such as 9B is at home in it too.
    """
    made = 0
    for group in subject.groups:
        keys = group.rows(Kind.NUMBER)
        if group.kind is not Kind.NUMBER or group.is_looked_up or not 0 < len(keys) <= MAX_KEYS:
            continue
        held = set(group.values())
        for other in subject.groups:
            if other is group or not held & set(other.values()):
                continue
            row = rng.choice(keys)
            for ref, value in _ends(other, held, subject):
                if made == MAX_RECORDS or ref == group.ref(row):
                    continue
                made += 1
                text = f"{value:g}B"
                yield Idea(
                    "text-key",
                    f"a key with a letter at an end of its list on {ref.sheet!r}",
                    (SetCell(group.ref(row), text), SetCell(ref, text)),
                )


def _ends(
    found: Group, held: set[CellValue], subject: Subject
) -> list[tuple[CellRef, int | float]]:
    """The first and the last number of the list that a key is found in, down or across."""
    if len(found.rows(Kind.NUMBER)) > 2:
        line = [(found.ref(row), found.cells[row]) for row in found.rows(Kind.NUMBER)]
    else:
        row = next(row for row, cell in found.cells.items() if cell.value in held)
        line = [(group.ref(row), group.cells[row]) for group in _across(found, row, subject)]
    numbers = [(ref, number) for ref, cell in line if (number := _number(cell)) is not None]
    return [numbers[0], numbers[-1]] if len(numbers) > 2 else []


def _across(found: Group, row: int, subject: Subject) -> list[Group]:
    """The groups of the run of neighbouring numbers in a row."""
    beside = {
        group.column: group
        for group in subject.groups
        if group.sheet == found.sheet
        and row in group.cells
        and _number(group.cells[row]) is not None
    }
    first = last = found.column
    while first - 1 in beside:
        first -= 1
    while last + 1 in beside:
        last += 1
    return [beside[column] for column in range(first, last + 1) if column in beside]


def _number(cell: Cell | None) -> int | float | None:
    value = cell.value if cell is not None and cell.formula is None else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


# -- records that share their keys ----------------------------------------------------------------


def same_key_records(subject: Subject, rng: random.Random) -> Iterator[Idea]:
    """A record like another one in all its cells but one text: same key, same date, other batch."""
    made = 0
    for table in subject.tables[:MAX_TABLES]:
        texts = [each for each in table.inputs(Kind.TEXT) if len(each.cells) > 2]
        if len(table.inputs(Kind.TEXT, Kind.NUMBER, Kind.DATE)) < 3:
            continue
        for column in texts:
            for source in dict.fromkeys((_last_of_first_key(table), _last_full(table))):
                others = [row for row in table.rows if _differ(column, source, row)]
                if not others or made == MAX_RECORDS:
                    continue
                target = rng.choice(others)
                edits = _copied(table, source, target, column)
                if edits:
                    made += 1
                    yield Idea(
                        "same-key-record",
                        f"row {target} like row {source} but for one text ({table.sheet!r})",
                        tuple(edits),
                    )


def _last_full(table: Table) -> int:
    """The last row with most cells."""
    columns = table.inputs(Kind.TEXT, Kind.NUMBER, Kind.DATE)
    return max(table.rows, key=lambda row: (sum(row in column.cells for column in columns), row))


def _last_of_first_key(table: Table) -> int:
    """The last row that begins with the same text as the first one."""
    column = table.inputs(Kind.TEXT)[0]
    rows = column.rows_with_values()
    first = column.cells[min(rows)].value if rows else None
    same = [row for row in rows if column.cells[row].value == first]
    return max(same, default=table.first_row)


def _differ(column: Column, first: int, second: int) -> bool:
    one, other = column.cells.get(first), column.cells.get(second)
    return one is not None and other is not None and one.value != other.value


def _copied(table: Table, source: int, target: int, but: Column) -> list[Edit]:
    edits: list[Edit] = []
    for column in table.inputs(Kind.TEXT, Kind.NUMBER, Kind.DATE):
        new, old = column.cells.get(source), column.cells.get(target)
        fixed = (target, column.number) in table.covered or (old is not None and old.formula)
        if column is but or new is None or new.formula is not None or fixed:
            continue
        if old is None or new.value != old.value:
            edits.append(SetCell(table.ref(target, column.number), new.value))
    return edits


# -- sums of decimals -----------------------------------------------------------------------------

_SCALE = 10


def sums_at_a_limit(subject: Subject, rng: random.Random) -> Iterator[Idea]:
    """Decimals of a row whose sum is just a limit, which binary fractions fall short of.

    With the limit in the row, all its numbers times ten say what the answer is: there the sum is
    exact.
    """
    made = 0
    for sheet in dict.fromkeys(group.sheet for group in subject.groups):
        groups = sorted(
            (
                group
                for group in subject.groups
                if group.sheet == sheet and group.kind is Kind.NUMBER
            ),
            key=lambda each: each.column,
        )
        rows = sorted({row for group in groups for row in group.rows(Kind.NUMBER)})
        in_cells = {limit: _bounds(groups, limit) for limit in subject.limits}
        for limit in sorted(in_cells, key=lambda each: not in_cells[each]):
            bounds = in_cells[limit]
            added = [group for group in groups if group not in bounds][:3]
            decimals = short_sum(limit)
            bounded = [row for row in rows if not bounds or row in bounds[0].cells]
            if len(added) < 3 or decimals is None or not bounded or made == 2:
                continue
            made += 1
            row = rng.choice(bounded)
            held = {group.ref(row): _number(group.cells.get(row)) for group in groups}
            before = {ref: number for ref, number in held.items() if number is not None}
            new = dict(zip((each.ref(row) for each in added), decimals, strict=True))
            yield Idea(
                "sum-at-limit",
                f"decimals of row {row} of {sheet!r} that add up to {limit:g}",
                _set(new),
                twins=(Twin("the same row times ten", _set(_times_ten(before | new))),)
                if bounds
                else (),
                premise=_set(_times_ten(before)),
                relation="the program gives another answer if the row is times ten, limit included",
            )


def _bounds(groups: Sequence[Group], limit: float) -> list[Group]:
    """The columns that hold nothing but a limit."""
    return [group for group in groups if set(group.values()) == {limit}]


def _set(values: Mapping[CellRef, int | float]) -> tuple[Edit, ...]:
    return tuple(SetCell(ref, value) for ref, value in values.items())


def _times_ten(values: Mapping[CellRef, int | float]) -> dict[CellRef, int | float]:
    exact = {ref: Decimal(repr(number)) * _SCALE for ref, number in values.items()}
    return {
        ref: int(number) if number == number.to_integral_value() else float(number)
        for ref, number in exact.items()
    }


def short_sum(limit: float) -> tuple[float, float, float] | None:
    """Three numbers with one decimal whose sum is a limit, but less than it as binary fractions."""
    tenths = round(limit * _SCALE)
    if not 20 <= tenths <= 10**6 or abs(tenths / _SCALE - limit) > 1e-12:
        return None
    for first in range(tenths * 3 // 10, min(tenths * 5 // 10, tenths * 3 // 10 + MAX_TRIED)):
        for second in range(tenths * 2 // 10, min(tenths - first, tenths * 2 // 10 + MAX_TRIED)):
            parts = first / _SCALE, second / _SCALE, (tenths - first - second) / _SCALE
            if parts[0] + parts[1] + parts[2] < limit:
                return parts
    return None


MAX_TRIED = 150


RECORDS = {"text-keys": text_keys, "records": same_key_records, "sums": sums_at_a_limit}
"""Generators of ideas, by the name that goes into their seed."""

RECORD_NAMES = ("text-key", "same-key-record", "sum-at-limit")
"""Names of their mutators."""
