"""Ideas for corner cases: mutators of an input workbook, seeded and reproducible.

Each mutator returns edits of the workbook, or nothing if it cannot be applied.
"""

from __future__ import annotations

import datetime as dt
import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from judge.annotate.carried import RELATIONS
from judge.annotate.corner_mutants import CORNER_NAMES, corner_ideas
from judge.annotate.edits import Edit, SetCell
from judge.annotate.idea import MAX_TABLES, REPEATS_KEYS, Idea, Mutator, Subject
from judge.annotate.relations import RELATION_NAMES
from judge.annotate.row_mutants import (
    RECORD_NAMES,
    RECORDS,
    changed_workbooks,
    grown_columns,
    grown_tables,
    inserted_rows,
    kept_rows,
    shuffled_rows,
)
from judge.annotate.tables import Column, Kind, Table, kind_of_value
from judge.compare.cells.value import text_as_number
from judge.workbook.address import column_letters
from judge.workbook.cell import Cell, CellValue

MAX_IDEAS = 6
"""How many ideas of one kind are made for one workbook."""

_READ_COLUMN = (Kind.NUMBER, Kind.TEXT, Kind.DATE)


def blank_columns(subject: Subject, rng: random.Random) -> Iterator[Idea]:
    """Empties one cell in each column, and one whole row."""
    for table in subject.tables[:MAX_TABLES]:
        for column in table.inputs(*_READ_COLUMN)[:MAX_IDEAS]:
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
                for column in table.inputs(*_READ_COLUMN)
                if row in _open_rows(table, column)
            )
            if edits:
                yield Idea("blank-rows", f"row {row} emptied ({table.sheet!r})", edits)


def repeated_keys(subject: Subject, rng: random.Random) -> Iterator[Idea]:
    """Repeats a value of each column further down in the same column."""
    for table in subject.tables[:MAX_TABLES]:
        for column in table.inputs(*_READ_COLUMN)[:MAX_IDEAS]:
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
    """Sets keys in a table to the lookup table's first and last key, and to one that it lacks."""
    count = 0
    for table in subject.tables:
        for column in table.inputs(Kind.TEXT, Kind.NUMBER):
            for other, keys in _tables_with_keys(subject, table, column):
                rows = _open_rows(table, column)
                chosen = rng.sample(rows, min(2, len(rows)))
                filled_rows = keys.rows_with_values()
                values = [keys.cells[filled_rows[0]].value, keys.cells[filled_rows[-1]].value]
                edits = [
                    SetCell(table.ref(row, column.number), value)
                    for row, value in zip(chosen, values, strict=False)
                    if column.cells[row].value != value
                ]
                if edits and count < MAX_IDEAS:
                    count += 1
                    title = f"the first and the last key of {other.sheet!r} looked up"
                    yield Idea("lookup-edges", f"{title} ({table.sheet!r})", tuple(edits))


def _tables_with_keys(
    subject: Subject, table: Table, column: Column
) -> Iterator[tuple[Table, Column]]:
    """Other columns that contain most values of a column, with their tables."""
    values = _values(column)
    if len(values) < 2:
        return
    for other in subject.tables:
        for keys in other.columns:
            if keys is column or (other is table and keys.number == column.number):
                continue
            if keys.kind is column.kind and len(values & _values(keys)) * 2 > len(values):
                yield other, keys


def _values(column: Column) -> frozenset[CellValue]:
    return frozenset(column.cells[row].value for row in column.rows_with_values())


def limits_met(subject: Subject, rng: random.Random) -> Iterator[Idea]:
    """Sets numbers to limits in the question or the gold's formulas, or next to them."""
    count = 0
    for table in subject.tables[:MAX_TABLES]:
        for column in table.inputs(Kind.NUMBER):
            rows = _open_rows(table, column)
            for limit in _near(column, subject.limits):
                if count == MAX_IDEAS or not rows:
                    return
                count += 1
                picked = rng.sample(rows, min(3, len(rows)))
                edits = tuple(
                    SetCell(table.ref(row, column.number), value)
                    for row, value in zip(picked, (limit, limit + 1, limit - 1), strict=False)
                )
                yield Idea("limits", f"numbers at the limit {limit} ({table.sheet!r})", edits)


def _near(column: Column, limits: tuple[float, ...]) -> list[float]:
    """The limits that have the magnitude of a column's numbers."""
    numbers = [
        abs(value)
        for row in column.rows_with_values()
        if isinstance(value := column.cells[row].value, int | float)
    ]
    most = max(numbers, default=0)
    return [limit for limit in limits if most and most / 1000 <= abs(limit) <= most * 2][:3]


def equal_columns(subject: Subject, rng: random.Random) -> Iterator[Idea]:
    """Gives two columns of the same kind the same value in some rows."""
    count = 0
    for table in subject.tables[:MAX_TABLES]:
        for kind in (Kind.NUMBER, Kind.DATE):
            columns = table.inputs(kind)
            for first, second in itertools.pairwise(columns):
                rows = [row for row in _open_rows(table, second) if row in first.cells]
                if not rows or count == MAX_IDEAS:
                    continue
                count += 1
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
    """Rows where a column holds a constant that can be changed."""
    return [row for row in column.rows_with_values() if (row, column.number) not in table.covered]


TARGETED_MUTATORS = {
    "blanks": blank_columns,
    "keys": repeated_keys,
    "lookups": looked_up_edges,
    "limits": limits_met,
    "equal": equal_columns,
}
"""Generators of ideas, by the name that their random seed includes."""

TARGETED_NAMES = (
    *("blank-columns", "blank-rows", "repeated-keys", "lookup-edges", "limits", "equal-columns"),
)
"""Names of the mutators in :data:`TARGETED_MUTATORS`."""


_GROWING = frozenset({"inserted-row", "one-more-row", "ten-times-the-rows", "one-more-column"})
"""Mutators that add cells, on which nothing can depend yet."""


def ideas(subject: Subject, seed: str) -> Iterator[Idea]:
    """Corner cases for an input; those that change cells on which the answer depends come first.

    Args:
        subject: the contents of the input.
        seed: the same seed gives the same ideas.
    """
    for idea in _all_ideas(subject, seed):
        if idea.mutator in _GROWING or any(_matters(edit, subject) for edit in idea.edits):
            yield replace(idea, disputed=_disputed(idea, subject))


def _all_ideas(subject: Subject, seed: str) -> Iterator[Idea]:
    yield from corner_ideas(subject, seed)
    whole = {
        "inserted": inserted_rows,
        "rows": grown_tables,
        "columns": grown_columns,
        **RECORDS,
        **TARGETED_MUTATORS,
    }
    for name, idea in whole.items():
        yield from idea(subject, random.Random(f"{seed}/{name}"))  # noqa: S311 - no secret
    for name, mutate in MUTATORS.items():
        for index, table in enumerate(subject.tables[:MAX_TABLES]):
            mutants = mutate(table, random.Random(f"{seed}/{name}/{index}"))  # noqa: S311 - no secret
            if mutants is not None and mutants[1]:
                yield Idea(name, f"{mutants[0]} ({table.sheet!r})", tuple(mutants[1]))
    yield from changed_workbooks(subject, random.Random(f"{seed}/workbook"))  # noqa: S311 - no secret


def _matters(edit: Edit, subject: Subject) -> bool:
    """Whether an edit can affect the answer."""
    return not isinstance(edit, SetCell) or subject.support.holds(edit.ref)


_MAY_DIFFER = "right solutions may differ here: the question leaves it open"

_REPEATING = frozenset(
    {"shuffled-rows", "duplicate-rows", "duplicate-keys", "repeated-keys", "ties", "edge-rows"}
    | {"equal-amounts", "categories", "one-more-row", "ten-times-the-rows", "same-key-record"}
)
"""Mutators that repeat or move rows. If the rows belong to a lookup table, whose keys should be
unique, correct solutions may give different answers."""

CONTESTED = frozenset(
    {"numbers-as-text", "text-as-numbers", "spaces", "nbsp", "case", "merged-cells"}
    | {"renamed-sheet", "no-row", "date-system", "key-as-text", "empty-key", "unknown-label"}
    | {"minority-kinds", "blank-numbers-of-a-row", "swapped-pair", "text-key"}
)
"""Mutators after which correct solutions may differ, so that agreeing sources prove nothing."""


def _disputed(idea: Idea, subject: Subject) -> str:
    """Why correct solutions may differ after an idea; empty if they may not."""
    if idea.mutator in CONTESTED:
        return _MAY_DIFFER
    if idea.mutator in _REPEATING and any(
        edit.ref.sheet == group.sheet and edit.ref.row in group.cells
        for group in subject.groups
        if group.is_looked_up
        for edit in idea.edits
        if isinstance(edit, SetCell)
    ):
        return REPEATS_KEYS
    return ""


# -- values -------------------------------------------------------------------------------------


def _pick(
    table: Table, columns: Sequence[Column], rng: random.Random, count: int = 1
) -> list[tuple[Column, int, Cell]]:
    """Chooses cells with constants, each in a different row."""
    candidates = [
        (column, row, column.cells[row])
        for column in columns
        for row in column.rows_with_values()
        if (row, column.number) not in table.covered
    ]
    rng.shuffle(candidates)
    chosen: list[tuple[Column, int, Cell]] = []
    for ref in candidates:
        if all(ref[1] != other[1] for other in chosen):
            chosen.append(ref)
        if len(chosen) == count:
            break
    return chosen


def _put(table: Table, row: int, column: Column | int, content: CellValue) -> SetCell:
    number = column if isinstance(column, int) else column.number
    return SetCell(table.ref(row, number), content)


_READ = (Kind.NUMBER, Kind.TEXT, Kind.DATE)


def _blank_cells(table: Table, rng: random.Random) -> tuple[str, list[Edit]] | None:
    chosen = _pick(table, table.inputs(*_READ), rng, 2)
    return "cells emptied", [_put(table, row, column, None) for column, row, _ in chosen]


def _zeros_and_blanks(table: Table, rng: random.Random) -> tuple[str, list[Edit]] | None:
    columns = table.inputs(Kind.NUMBER)
    edits: list[Edit] = []
    for column in columns:
        zeros = [row for row in column.rows_with_values() if column.cells[row].value == 0]
        blanks = [row for row in table.rows if row not in column.cells]
        edits += [_put(table, row, column, None) for row in rng.sample(zeros, min(2, len(zeros)))]
        edits += [
            _put(table, row, column, 0)
            for row in rng.sample(blanks, min(2, len(blanks)))
            if (row, column.number) not in table.covered
        ]
    if not edits:
        edits = [_put(table, row, column, 0) for column, row, _ in _pick(table, columns, rng, 2)]
    return "zeros and blanks swapped", edits


def _duplicate_keys(table: Table, rng: random.Random) -> tuple[str, list[Edit]] | None:
    for column in table.inputs(Kind.TEXT, Kind.NUMBER, Kind.DATE):
        rows = column.rows_with_values()
        if len(rows) > 2:
            first, second = sorted(rng.sample(rows, 2))
            value = column.cells[first].value
            if value != column.cells[second].value:
                return "a key that occurs twice", [_put(table, second, column, value)]
    return None


def _duplicate_rows(table: Table, rng: random.Random) -> tuple[str, list[Edit]] | None:
    rows = list(table.rows)
    if len(rows) < 3:
        return None
    first, second = sorted(rng.sample(rows, 2))
    return "a row that occurs twice", _copied(table, first, second)


def _copied(table: Table, source: int, target: int) -> list[Edit]:
    return [
        _put(table, target, column, column.cells[source].value if source in column.cells else None)
        for column in table.inputs(*_READ)
        if (target, column.number) not in table.covered
    ]


def _ties(table: Table, rng: random.Random) -> tuple[str, list[Edit]] | None:
    edits: list[Edit] = []
    for column in table.inputs(Kind.NUMBER, Kind.DATE):
        rows = [
            row for row in column.rows_with_values()
            if kind_of_value(column.cells[row].value) is column.kind
        ]  # fmt: skip
        if len(rows) > 2:
            best = max(rows, key=lambda row: _sortable(column.cells[row].value))
            other = rng.choice([row for row in rows if row != best])
            edits.append(_put(table, other, column, column.cells[best].value))
    return "ties for the largest", edits


def _sortable(value: CellValue) -> float:
    if isinstance(value, dt.datetime):
        return value.timestamp()
    return float(value) if isinstance(value, int | float) else 0.0


def _numbers_as_text(table: Table, rng: random.Random) -> tuple[str, list[Edit]] | None:
    chosen = _pick(table, table.inputs(Kind.NUMBER), rng, 2)
    return "numbers stored as text", [
        _put(table, row, column, f"{cell.value}") for column, row, cell in chosen
    ]


def _text_as_numbers(table: Table, rng: random.Random) -> tuple[str, list[Edit]] | None:
    del rng
    columns = [
        _put(table, row, column, float(number) if not number.is_integer() else int(number))
        for column in table.inputs(Kind.TEXT)
        for row in column.rows_with_values()
        if isinstance(text := column.cells[row].value, str)
        and (number := text_as_number(text)) is not None
    ]
    return "text that looks like numbers stored as numbers", list(columns[:3])


def _texts(change: Callable[[str], str], title: str, count: int = 2) -> Mutator:
    def mutate(table: Table, rng: random.Random) -> tuple[str, list[Edit]] | None:
        chosen = _pick(table, table.inputs(Kind.TEXT), rng, count)
        edits: list[Edit] = [
            _put(table, row, column, change(cell.value))
            for column, row, cell in chosen
            if isinstance(cell.value, str) and change(cell.value) != cell.value
        ]
        return title, edits

    return mutate


def _other_text(table: Table, rng: random.Random) -> tuple[str, list[Edit]] | None:
    edits: list[Edit] = []
    for column in table.inputs(Kind.TEXT):
        rows = column.rows_with_values()
        values = sorted({str(column.cells[row].value) for row in rows})
        if 1 < len(values) < len(rows):
            for row in rng.sample(rows, min(2, len(rows))):
                others = [value for value in values if value != column.cells[row].value]
                edits.append(_put(table, row, column, rng.choice(others)))
    return "rows moved to another category", edits


def _dates(table: Table, rng: random.Random) -> tuple[str, list[Edit]] | None:
    edges = [(2024, 2, 29), (2023, 2, 28), (2024, 12, 31), (2025, 1, 1), (2024, 1, 31)]
    edits: list[Edit] = []
    for column in table.inputs(Kind.DATE):
        chosen = _pick(table, [column], rng, len(edges))
        edits += [
            _put(table, row, column, dt.datetime(*edge))  # noqa: DTZ001 - no time zones here
            for (_, row, _), edge in zip(chosen, edges, strict=False)
        ]
    return "dates at the ends of months and years, leap days", edits


def _numbers(change: Callable[[float], float], title: str, count: int = 2) -> Mutator:
    def mutate(table: Table, rng: random.Random) -> tuple[str, list[Edit]] | None:
        edits: list[Edit] = []
        for column in table.inputs(Kind.NUMBER):
            for _, row, cell in _pick(table, [column], rng, count):
                if isinstance(cell.value, int | float) and not isinstance(cell.value, bool):
                    edits.append(_put(table, row, column, change(cell.value)))
        return title, edits

    return mutate


def _fractions(table: Table, rng: random.Random) -> tuple[str, list[Edit]] | None:
    """Puts decimals into some rows and the last row, by which programs find the data's end."""
    edits: list[Edit] = []
    for column in table.inputs(Kind.NUMBER):
        rows = [
            row for row in column.rows_with_values() if (row, column.number) not in table.covered
        ]
        for row in {*rng.sample(rows, min(1, len(rows))), *rows[-1:]}:
            value = column.cells[row].value
            if isinstance(value, int | float) and not isinstance(value, bool):
                edits.append(_put(table, row, column, value + 0.125))
    return "numbers with decimals", edits


def _edge_rows(table: Table, rng: random.Random) -> tuple[str, list[Edit]] | None:
    edits: list[Edit] = []
    for column in table.inputs(*_READ):
        rows = column.rows_with_values()
        if len(rows) < 3:
            continue
        for row in (rows[0], rows[-1]):
            if (row, column.number) not in table.covered:
                donor = rng.choice([other for other in rows if other != row])
                value = column.cells[donor].value
                if isinstance(value, int | float) and column.kind is Kind.NUMBER:
                    value += 1
                edits.append(_put(table, row, column, value))
    return "other values in the first and the last row", edits


def _accented(text: str) -> str:
    for plain, accented in (("a", "á"), ("e", "é"), ("o", "ö"), ("u", "ü"), ("n", "ñ")):
        if plain in text:
            return text.replace(plain, accented, 1)
    return f"{text} 日本"


MUTATORS: dict[str, Mutator] = {
    "blank-cells": _blank_cells,
    "zeros-and-blanks": _zeros_and_blanks,
    "duplicate-keys": _duplicate_keys,
    "duplicate-rows": _duplicate_rows,
    "ties": _ties,
    "numbers-as-text": _numbers_as_text,
    "text-as-numbers": _text_as_numbers,
    "spaces": _texts(lambda text: f" {text} ", "spaces around text"),
    "nbsp": _texts(lambda text: f"{text}\u00a0", "non-breaking spaces after text"),
    "case": _texts(str.swapcase, "text in another letter case"),
    "unicode": _texts(_accented, "text with other letters, such as accented ones"),
    "categories": _other_text,
    "dates": _dates,
    "negative": _numbers(lambda number: -number, "negative numbers"),
    "huge": _numbers(lambda number: number * 10**9 + 1, "huge numbers", 1),
    "fractions": _fractions,
    "edge-rows": _edge_rows,
    "shuffled-rows": shuffled_rows,
    "one-row": kept_rows(1, "a single row of data"),
    "no-row": kept_rows(0, "no row of data"),
}
"""Mutators of one table by name; those that change rows, sheets or date systems are separate."""


NAMES = (
    *CORNER_NAMES,
    *MUTATORS,
    *("inserted-row", "one-more-row", "ten-times-the-rows", "one-more-column"),
    *("date-system", "renamed-sheet", "merged-cells"),
    *RECORD_NAMES,
    *TARGETED_NAMES,
    *RELATION_NAMES,
    *RELATIONS,
)
"""Names of all mutators."""
