"""Mutators of rows, of records that share their keys, and of the workbook as a whole.

See :mod:`judge.annotate.mutants`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from judge.annotate.edits import (
    Edit,
    Formula,
    InsertRows,
    MergeCells,
    RenameSheet,
    SetCell,
    SetDateSystem,
)
from judge.annotate.idea import MAX_TABLES, Idea, Mutator, Subject, Twin
from judge.annotate.support import Group
from judge.annotate.tables import Column, Kind, Table
from judge.formulas.shift import shift_formula
from judge.workbook.address import Window
from judge.workbook.cell import Cell, CellRange, CellRef, CellValue

MAX_ROWS = 2_000
"""Largest number of rows that a table may grow to."""

GROWTH = 10  # a change makes a table this many times as long


# -- rows of one table ----------------------------------------------------------------------------


def is_plain(table: Table) -> bool:
    """Whether rows can be moved as plain values, without formulas and merged cells."""
    return (
        len(table.rows) > 2
        and all(
            cell.formula is None
            for column in table.columns
            if not column.is_answer
            for cell in column.cells.values()
        )
        and not any(row in table.rows for row, _ in table.covered)
    )


def shuffled_rows(table: Table, rng: random.Random) -> tuple[str, list[Edit]] | None:
    """Puts the rows of a table into another order."""
    if not is_plain(table) or len(table.rows) > MAX_ROWS:
        return None
    order = list(table.rows)
    rng.shuffle(order)
    edits: list[Edit] = []
    for row, source in zip(table.rows, order, strict=True):
        edits += _moved_row(table, source, row)
    return "rows in another order", edits


def _moved_row(table: Table, source: int, target: int) -> list[Edit]:
    edits: list[Edit] = []
    for column in table.columns:
        if column.is_answer:
            continue
        new, old = column.cells.get(source), column.cells.get(target)
        if (new.value if new else None) != (old.value if old else None):
            style = new.style if new is not None else None
            edits.append(
                SetCell(table.ref(target, column.number), new.value if new else None, style)
            )
    return edits


def kept_rows(count: int, title: str) -> Mutator:
    """A mutator that keeps only the first rows of a table."""

    def mutate(table: Table, rng: random.Random) -> tuple[str, list[Edit]] | None:
        del rng
        if not is_plain(table) or len(table.rows) > MAX_ROWS:
            return None
        edits: list[Edit] = [
            SetCell(table.ref(row, column.number), None)
            for column in table.columns
            if not column.is_answer
            for row in table.rows[count:]
            if row in column.cells
        ]
        return title, edits

    return mutate


def grown_tables(subject: Subject, rng: random.Random) -> Iterator[Idea]:
    """Adds rows, one or nine times as many, if the answer position has room for them."""
    for table in subject.tables[:MAX_TABLES]:
        if not table.free_below:
            continue
        rows = len(table.rows)
        room = _room(subject, table)
        for name, more in (("one-more-row", 1), ("ten-times-the-rows", rows * (GROWTH - 1))):
            if more <= room and rows + more <= MAX_ROWS:
                edits: list[Edit] = []
                for offset in range(more):
                    source = rng.choice(table.rows)
                    edits += _grown_row(table, source, table.last_row + 1 + offset, rng)
                if edits:
                    yield Idea(name, f"{more} more rows ({table.sheet!r})", tuple(edits))


def _room(subject: Subject, table: Table) -> int:
    """How many rows can be added so that the answer position still covers the answer.

    Only an answer with a value in every row limits the number; a sum next to the table does not.
    """
    ends = [area.max_row for area in subject.answer if touches_most_rows(area, table)]
    return max(0, min(ends) - table.last_row) if ends else MAX_ROWS


def touches_most_rows(area: CellRange, table: Table) -> bool:
    """Whether an area of the answer is in, or next to, at least half of a table's rows."""
    return area.sheet == table.sheet and 2 * _overlap(area, table) >= len(table.rows)


def _overlap(area: CellRange, table: Table) -> int:
    return min(area.max_row, table.last_row) - max(area.min_row, table.first_row) + 1


def _grown_row(table: Table, source: int, target: int, rng: random.Random) -> list[Edit]:
    edits: list[Edit] = []
    for column in table.columns:
        cell = column.cells.get(source)
        if column.is_answer or cell is None:
            continue
        ref = table.ref(target, column.number)
        if cell.formula is not None:
            moved = shift_formula(cell.formula[1:], target - source, 0)
            edits.append(SetCell(ref, Formula(moved), cell.style))
        else:
            value = cell.value
            if isinstance(value, int | float) and not isinstance(value, bool):
                value += rng.randrange(3)
            edits.append(SetCell(ref, value, cell.style))
    return edits


MAX_INSERTED = 4


def inserted_rows(subject: Subject, rng: random.Random) -> Iterator[Idea]:
    """Inserts a row before the last one of a table, so that references to the table grow with it.

    Unlike rows below the table, the row is within the ranges of the formulas, so the gold's
    formulas give the answer. A program that contains the row numbers of the given input does not
    read the last row. If keys are looked up, one lookup is set to the last key.
    """
    for table in subject.tables[:MAX_INSERTED]:
        row = table.last_row
        if len(table.rows) < 3 or not may_insert(subject, table, row):
            continue
        source = rng.choice(table.rows[:-1])
        edits: list[Edit] = [InsertRows(table.sheet, row)]
        edits += [_with_own_key(edit, subject) for edit in _grown_row(table, source, row, rng)]
        edits += _looked_up_last(subject, table, row, rng)
        if len(edits) > 1:
            title = f"a row inserted before the last one ({table.sheet!r})"
            yield Idea("inserted-row", title, tuple(edits))


def may_insert(subject: Subject, table: Table, row: int) -> bool:
    """Whether a row can be inserted without moving the answer out of its position.

    An answer at or below the row must have a value in every row of the table.
    """
    if any(cell_row >= row for cell_row, _ in table.covered):
        return False
    for area in subject.answer:
        if area.sheet != table.sheet or area.max_row < row:
            continue
        if area.min_row >= row or not touches_most_rows(area, table):
            return False
    return any(
        group.sheet == table.sheet
        and any(column.number == group.column for column in table.columns)
        and table.last_row in group.cells
        for group in subject.groups
    )


def _with_own_key(edit: Edit, subject: Subject) -> Edit:
    """Gives a new row of a lookup table a key that does not exist yet."""
    if not isinstance(edit, SetCell) or not isinstance(edit.content, str):
        return edit
    group = _group_at(subject, edit.ref)
    if group is None or not group.is_looked_up:
        return edit
    return replace(edit, content=f"{edit.content} new")


def _group_at(subject: Subject, ref: CellRef) -> Group | None:
    for group in subject.groups:
        if group.sheet == ref.sheet and group.column == ref.column:
            return group
    return None


def _looked_up_last(subject: Subject, table: Table, row: int, rng: random.Random) -> list[Edit]:
    """Sets one lookup to the key in the last row of the table, which the insertion moved down."""
    columns = {column.number for column in table.columns}
    for keys in subject.groups:
        if not keys.is_looked_up or keys.sheet != table.sheet or keys.column not in columns:
            continue
        if table.last_row not in keys.cells:
            continue
        last = keys.cells[table.last_row].value
        present = {cell.value for cell in keys.cells.values()}
        for other in subject.groups:
            other_values = {cell.value for cell in other.cells.values()}
            rows = [
                other_row
                for other_row in other.cells
                if other.sheet != table.sheet or other_row < row
            ]
            looks_up = (
                other is not keys and other.kind is keys.kind and bool(other_values & present)
            )
            if looks_up and rows and last not in other_values:
                return [SetCell(other.ref(rng.choice(rows)), last)]
    return []


def grown_columns(subject: Subject, rng: random.Random) -> Iterator[Idea]:
    """Adds a column at the right of a table, similar to its last column, such as another month."""
    del rng
    for table in subject.tables[:MAX_TABLES]:
        last = table.columns[-1]
        if last.is_answer or last.kind not in {Kind.NUMBER, Kind.DATE, Kind.TEXT}:
            continue
        number = last.number + 1
        taken = any(
            area.sheet == table.sheet and area.min_column <= number <= area.max_column
            for area in subject.answer
        )
        if taken or len(table.rows) > MAX_ROWS:
            continue
        edits: list[Edit] = []
        for row, cell in last.cells.items():
            value = cell.value
            if cell.formula is not None:
                moved = shift_formula(cell.formula[1:], 0, 1)
                edits.append(SetCell(table.ref(row, number), Formula(moved), cell.style))
                continue
            if isinstance(value, int | float) and not isinstance(value, bool):
                value += 1
            edits.append(SetCell(table.ref(row, number), value, cell.style))
        if table.head is not None:
            heading = table.head.get(last.number)
            if heading is not None and isinstance(heading.value, str):
                text = f"{heading.value} new"
                edits.insert(
                    0, SetCell(table.ref(table.head_row or 1, number), text, heading.style)
                )
        if edits:
            yield Idea("one-more-column", f"one more column ({table.sheet!r})", tuple(edits))


# -- the workbook as a whole ----------------------------------------------------------------------


def changed_workbooks(subject: Subject, rng: random.Random) -> Iterator[Idea]:
    """Changes the date system, renames a sheet, or merges cells."""
    if subject.has_dates:
        system = SetDateSystem(not subject.date_1904)
        yield Idea("date-system", "days counted from another year", (system,))
    for sheet in subject.sheets:
        if sheet.casefold() not in subject.named and len(subject.sheets) > 1:
            new = f"{sheet[:25]} new"
            yield Idea("renamed-sheet", f"{sheet!r} renamed", (RenameSheet(sheet, new),))
            break
    for table in subject.tables[:MAX_TABLES]:
        pairs = [
            (column, row)
            for column in table.inputs(Kind.TEXT)
            for row in column.rows_with_values()
            if row + 1 in column.cells
            and column.cells[row].value == column.cells[row + 1].value
            and not {(row, column.number), (row + 1, column.number)} & table.covered
        ]
        if pairs:
            column, row = rng.choice(pairs)
            window = Window(row, column.number, row + 1, column.number)
            edit = MergeCells(table.sheet, window)
            yield Idea("merged-cells", f"{window} merged ({table.sheet!r})", (edit,))
            break


MAX_RECORDS = 6
"""How many ideas of one kind are made for one workbook."""

MAX_KEYS = 5
"""A column with at most this many numbers holds values to look up; with more, a list to search."""


# -- keys on both sides ---------------------------------------------------------------------------


def text_keys(subject: Subject, rng: random.Random) -> Iterator[Idea]:
    """Appends a letter to the first or last key of a list, and to the cell that looks it up.

    Programs find the ends of a list by its numbers, but a list may also contain keys such as 9B.
    """
    count = 0
    for group in subject.groups:
        keys = group.rows(Kind.NUMBER)
        if group.kind is not Kind.NUMBER or group.is_looked_up or not 0 < len(keys) <= MAX_KEYS:
            continue
        key_values = set(group.values())
        for other in subject.groups:
            if other is group or not key_values & set(other.values()):
                continue
            row = rng.choice(keys)
            for ref, value in _ends(other, key_values, subject):
                if count == MAX_RECORDS or ref == group.ref(row):
                    continue
                count += 1
                text = f"{value:g}B"
                yield Idea(
                    "text-key",
                    f"a key with a letter at an end of its list on {ref.sheet!r}",
                    (SetCell(group.ref(row), text), SetCell(ref, text)),
                )


def _ends(
    holder: Group, keys: set[CellValue], subject: Subject
) -> list[tuple[CellRef, int | float]]:
    """The first and the last number of the list that contains a key, vertically or horizontally."""
    if len(holder.rows(Kind.NUMBER)) > 2:
        line = [(holder.ref(row), holder.cells[row]) for row in holder.rows(Kind.NUMBER)]
    else:
        row = next(row for row, cell in holder.cells.items() if cell.value in keys)
        line = [(group.ref(row), group.cells[row]) for group in _across(holder, row, subject)]
    numbers = [(ref, number) for ref, cell in line if (number := _number(cell)) is not None]
    return [numbers[0], numbers[-1]] if len(numbers) > 2 else []


def _across(holder: Group, row: int, subject: Subject) -> list[Group]:
    """The groups of adjacent columns that hold numbers in a row."""
    by_column = {
        group.column: group
        for group in subject.groups
        if group.sheet == holder.sheet
        and row in group.cells
        and _number(group.cells[row]) is not None
    }
    first = last = holder.column
    while first - 1 in by_column:
        first -= 1
    while last + 1 in by_column:
        last += 1
    return [by_column[column] for column in range(first, last + 1) if column in by_column]


def _number(cell: Cell | None) -> int | float | None:
    value = cell.value if cell is not None and cell.formula is None else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


# -- records that share their keys ----------------------------------------------------------------


def same_key_records(subject: Subject, rng: random.Random) -> Iterator[Idea]:
    """Makes two records differ in only one string, such as a batch with equal keys and dates."""
    count = 0
    for table in subject.tables[:MAX_TABLES]:
        texts = [column for column in table.inputs(Kind.TEXT) if len(column.cells) > 2]
        if len(table.inputs(Kind.TEXT, Kind.NUMBER, Kind.DATE)) < 3:
            continue
        for column in texts:
            for source in dict.fromkeys((_last_of_first_key(table), _last_full(table))):
                others = [row for row in table.rows if _differ(column, source, row)]
                if not others or count == MAX_RECORDS:
                    continue
                target = rng.choice(others)
                edits = _copied(table, source, target, column)
                if edits:
                    count += 1
                    yield Idea(
                        "same-key-record",
                        f"row {target} like row {source} except for one string ({table.sheet!r})",
                        tuple(edits),
                    )


def _last_full(table: Table) -> int:
    """The row with the most filled cells; the last one if there are several."""
    columns = table.inputs(Kind.TEXT, Kind.NUMBER, Kind.DATE)
    return max(table.rows, key=lambda row: (sum(row in column.cells for column in columns), row))


def _last_of_first_key(table: Table) -> int:
    """The last row that has the same text as the first row, in the first column of text."""
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

_SCALE = 10  # numbers are summed as whole tenths


def sums_at_a_limit(subject: Subject, rng: random.Random) -> Iterator[Idea]:
    """Puts decimals into a row whose sum is exactly a limit, but lower in floating point.

    If the limit is in the row, the same row times ten has the same answer, and its sum is exact.
    """
    count = 0
    for sheet in dict.fromkeys(group.sheet for group in subject.groups):
        groups = sorted(
            (
                group
                for group in subject.groups
                if group.sheet == sheet and group.kind is Kind.NUMBER
            ),
            key=lambda column: column.column,
        )
        rows = sorted({row for group in groups for row in group.rows(Kind.NUMBER)})
        in_cells = {limit: _bounds(groups, limit) for limit in subject.limits}
        for limit in sorted(in_cells, key=lambda limit_: not in_cells[limit_]):
            bounds = in_cells[limit]
            added = [group for group in groups if group not in bounds][:3]
            decimals = short_sum(limit)
            bounded = [row for row in rows if not bounds or row in bounds[0].cells]
            if len(added) < 3 or decimals is None or not bounded or count == 2:
                continue
            count += 1
            row = rng.choice(bounded)
            numbers = {group.ref(row): _number(group.cells.get(row)) for group in groups}
            before = {ref: number for ref, number in numbers.items() if number is not None}
            new = dict(zip((column.ref(row) for column in added), decimals, strict=True))
            yield Idea(
                "sum-at-limit",
                f"decimals of row {row} of {sheet!r} that add up to {limit:g}",
                _set(new),
                twins=(Twin("the same row times ten", _set(_times_ten(before | new))),)
                if bounds
                else (),
                premise=_set(_times_ten(before)),
                relation="the program gives another answer if row and limit are multiplied by ten",
            )


def _bounds(groups: Sequence[Group], limit: float) -> list[Group]:
    """The columns that hold only a limit."""
    return [group for group in groups if set(group.values()) == {limit}]


def _set(values: Mapping[CellRef, int | float]) -> tuple[Edit, ...]:
    return tuple(SetCell(ref, value) for ref, value in values.items())


def _times_ten(values: Mapping[CellRef, int | float]) -> dict[CellRef, int | float]:
    exact = {ref: Decimal(repr(number)) * _SCALE for ref, number in values.items()}
    return {
        ref: int(number) if number == number.to_integral_value() else float(number)
        for ref, number in exact.items()
    }


MAX_TRIED = 150


def short_sum(limit: float) -> tuple[float, float, float] | None:
    """Three numbers with one decimal whose sum is exactly a limit, but lower in floating point."""
    tenths = round(limit * _SCALE)
    if not 20 <= tenths <= 10**6 or abs(tenths / _SCALE - limit) > 1e-12:
        return None
    for first in range(tenths * 3 // 10, min(tenths * 5 // 10, tenths * 3 // 10 + MAX_TRIED)):
        for second in range(tenths * 2 // 10, min(tenths - first, tenths * 2 // 10 + MAX_TRIED)):
            parts = first / _SCALE, second / _SCALE, (tenths - first - second) / _SCALE
            if parts[0] + parts[1] + parts[2] < limit:
                return parts
    return None


RECORDS = {"text-keys": text_keys, "records": same_key_records, "sums": sums_at_a_limit}
"""Generators of ideas, by the name that their random seed includes."""

RECORD_NAMES = ("text-key", "same-key-record", "sum-at-limit")
"""Names of the mutators in :data:`RECORDS`."""
