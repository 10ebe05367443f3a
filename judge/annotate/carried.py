"""Relations that derive the answer to a changed input from the old answer, without a new gold.

If a key is renamed everywhere, it is renamed in the answer, and nothing else changes. A remark next
to a table changes nothing at all. A program that gives another answer contradicts itself, whatever
the question is. Each relation is an entry of :data:`RELATIONS`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence

from judge.annotate.carried_keys import (
    Material,
    keys_as_text,
    keys_with_blanks,
    keys_within_keys,
    other_prefixes,
    renamed_keys,
    unchanged,
)
from judge.annotate.edits import Edit, InsertRows, SetCell
from judge.annotate.idea import MAX_TABLES, CarriedAnswer, Idea, Values
from judge.annotate.relations import moved_row
from judge.annotate.row_mutants import is_plain, may_insert, touches_most_rows
from judge.annotate.tables import Column, Kind, Table
from judge.workbook.address import MAX_COLUMN
from judge.workbook.cell import CellRange, CellRef, CellValue

MAX_CHANGED = 1_500
"""How many cells one idea may change."""

Relation = Callable[[Material, random.Random], Iterator[Idea]]


def carried_ideas(material: Material, seed: str) -> Iterator[Idea]:
    """Ideas whose answer follows from the answer of the base case.

    Args:
        material: input, gold and question.
        seed: the same seed gives the same ideas.
    """
    for name, relation in RELATIONS.items():
        for idea in relation(material, random.Random(f"{seed}/{name}")):  # noqa: S311 - no secret
            if idea.edits and len(idea.edits) <= MAX_CHANGED:
                yield idea


# -- one more column ------------------------------------------------------------------------------


def remark_columns(material: Material, rng: random.Random) -> Iterator[Idea]:
    """Adds a column of remarks, with its heading, next to a table."""
    subject = material.subject
    for table in subject.tables[:MAX_TABLES]:
        number = table.columns[-1].number + 1
        taken = any(
            area.sheet == table.sheet and area.min_column <= number <= area.max_column
            for area in subject.answer
        )
        if taken or number + 1 > MAX_COLUMN or table.head is None or len(table.rows) > MAX_CHANGED:
            continue
        rows = sorted(rng.sample(table.rows, min(3, len(table.rows))))
        edits = [SetCell(table.ref(table.head_row or 1, number), "Remarks")]
        edits += [SetCell(table.ref(row, number), "checked") for row in rows]
        yield Idea(
            "remark-column",
            f"a column of remarks to the right of the table on {table.sheet!r}",
            tuple(edits),
            relation="a remark next to the table has nothing to do with the question",
            carried=CarriedAnswer(unchanged),
        )


# -- records in other rows ------------------------------------------------------------------------


Pairs = Sequence[tuple[int, int]]


def _swaps(table: Table, pairs: Pairs) -> tuple[Edit, ...]:
    return tuple(
        edit
        for first, second in pairs
        for source, target in ((first, second), (second, first))
        for edit in moved_row(table, source, target, in_place=False)
    )


def _swapped(pairs: Pairs, areas: Sequence[CellRange]) -> Callable[[Values], Values]:
    """The answer after rows were swapped: the same rows are swapped next to the table."""
    rows = dict(pairs) | {second: first for first, second in pairs}

    def carry(answer: Values) -> Values:
        return {
            ref._replace(row=rows[ref.row]) if ref.row in rows and _in(areas, ref) else ref: value
            for ref, value in answer.items()
        }

    return carry


def _areas_along(table: Table, material: Material) -> list[CellRange]:
    return [area for area in material.subject.answer if touches_most_rows(area, table)]


def _in(areas: Sequence[CellRange], ref: CellRef) -> bool:
    return any(
        area.sheet == ref.sheet
        and area.min_row <= ref.row <= area.max_row
        and area.min_column <= ref.column <= area.max_column
        for area in areas
    )


def swapped_records(material: Material, rng: random.Random) -> Iterator[Idea]:
    """Swaps the first and the last record of a table."""
    del rng
    for table in material.subject.tables[:MAX_TABLES]:
        rows = list(table.rows)
        if not MIN_SWAPPED <= len(rows) <= MAX_SWAPPED or not is_plain(table):
            continue
        areas = _areas_along(table, material)
        if any(
            not column.is_answer and area.min_column <= column.number <= area.max_column
            for area in areas
            for column in table.columns
        ):
            continue  # the answer is the table itself, filtered or sorted
        pairs = list(zip(rows[1:-1], reversed(rows[1:-1]), strict=True))[: (len(rows) - 2) // 2]
        yield Idea(
            "swapped-records",
            f"the first and the last record of {table.sheet!r} swapped",
            _swaps(table, [(rows[0], rows[-1])]),
            relation="the order of the records does not matter to the question: those between the "
            "first and the last may be in any order, but those two may not change places",
            carried=CarriedAnswer(
                _swapped([(rows[0], rows[-1])], areas),
                trial=_swaps(table, pairs),
                trial_answer=_swapped(pairs, areas),
            ),
        )


MIN_SWAPPED, MAX_SWAPPED = 5, 200
"""How many rows a table may have for its records to be swapped: the smallest and largest number."""


_KEY = re.compile(
    r"\b(?:id|ids|no|nr|num|number|code|sku|zip|phone|serial|index|invoice|account|year|month|day"
    r"|rate|price|percent|%)(?:\b|(?<=%))",
    re.IGNORECASE,
)


def _amounts(table: Table) -> list[Column]:
    """Columns whose numbers are amounts that can be split, unlike keys, years or serial numbers."""
    columns = []
    for column in table.inputs(Kind.NUMBER):
        values = [column.cells[row].value for row in column.rows_with_values()]
        numbers = [value for value in values if isinstance(value, int | float)]
        distinct = len(set(numbers)) == len(numbers) > 2
        whole = all(float(number).is_integer() for number in numbers)
        heading = (table.head or {}).get(column.number)
        is_key = _KEY.search(str(heading.value)) if heading is not None else None
        years = all(1900 <= number <= 2100 for number in numbers)
        counting = distinct and whole and max(numbers) - min(numbers) == len(numbers) - 1
        if numbers and not is_key and not years and not counting:
            columns.append(column)
    return columns


def _split(table: Table, source: int, at: int) -> tuple[Edit, ...]:
    """Splits a record: a copy of its row takes half of its amounts."""
    shifted = source + 1 if source >= at else source
    edits: list[Edit] = [InsertRows(table.sheet, at)]
    amounts = {column.number for column in _amounts(table)}
    for column in table.columns:
        cell = column.cells.get(source)
        if column.is_answer or cell is None:
            continue
        value, left = cell.value, None
        if column.number in amounts and isinstance(value, int | float):
            value = value // 2 if float(value).is_integer() else value / 2
            left = cell.value - value  # type: ignore[operator]
        edits.append(SetCell(table.ref(at, column.number), value, cell.style))
        if left is not None:
            edits.append(SetCell(table.ref(shifted, column.number), left, cell.style))
    return tuple(edits)


def split_records(material: Material, rng: random.Random) -> Iterator[Idea]:
    """Splits a record's amounts over two rows; the second row is far away, or right below it."""
    for table in material.subject.tables[:MAX_TABLES]:
        rows = list(table.rows)
        at = table.last_row
        if (
            len(rows) < 5
            or not is_plain(table)
            or not _amounts(table)
            or _areas_along(table, material)
            or not may_insert(material.subject, table, at)
        ):
            continue
        first, other = rng.sample(rows[:-2], 2)
        yield Idea(
            "split-record",
            f"the amounts of row {first} of {table.sheet!r} on two rows, far from each other",
            _split(table, first, at),
            relation="a record whose amounts are on two rows adds up to the same: right below it "
            "the second row is counted, further down it is not",
            carried=CarriedAnswer(unchanged, trial=_split(table, other, other + 1)),
        )


def repeated_records(material: Material, rng: random.Random) -> Iterator[Idea]:
    """Repeats the last record in the next row, if the answer position includes that row."""
    for table in material.subject.tables[:MAX_TABLES]:
        areas = [area for area in _areas_along(table, material) if area.max_row > table.last_row]
        rows = list(table.rows)
        if len(rows) < 4 or not areas or not table.free_below or not is_plain(table):
            continue
        source, target = rng.sample(rows[1:-1], 2) if len(rows) > 4 else (rows[1], rows[2])
        new = table.last_row + 1
        edits = moved_row(table, table.last_row, new, in_place=False)
        yield Idea(
            "repeated-record",
            f"the last record of {table.sheet!r} is repeated in the next row",
            tuple(edits),
            relation="two rows with the same record have the same answer within the table; in the "
            "next row, which the answer position includes, they do not",
            carried=CarriedAnswer(
                _answered_alike(table.last_row, new, areas),
                trial=tuple(moved_row(table, source, target, in_place=False)),
                trial_answer=_answered_alike(source, target, areas),
            ),
        )


def _answered_alike(
    source: int, target: int, areas: Sequence[CellRange]
) -> Callable[[Values], Values]:
    def carry(answer: Values) -> Values:
        kept = {
            ref: value for ref, value in answer.items() if ref.row != target or not _in(areas, ref)
        }
        copies = {
            ref._replace(row=target): value
            for ref, value in answer.items()
            if ref.row == source and _in(areas, ref._replace(row=target))
        }
        return kept | copies

    return carry


def blank_rows(material: Material, rng: random.Random) -> Iterator[Idea]:
    """Inserts a blank row before the last record of a table."""
    del rng
    for table in material.subject.tables[:MAX_TABLES]:
        rows = list(table.rows)
        if (
            len(rows) < 4
            or not is_plain(table)
            or _areas_along(table, material)
            or not may_insert(material.subject, table, table.last_row)
        ):
            continue
        yield Idea(
            "blank-row",
            f"a blank row before the last record of {table.sheet!r}",
            (InsertRows(table.sheet, table.last_row),),
            relation="a blank row is not a record, and the table does not end there",
            carried=CarriedAnswer(unchanged),
        )


# -- amounts in another unit ----------------------------------------------------------------------


def _scaled(table: Table, factor: float) -> tuple[Edit, ...]:
    return tuple(
        SetCell(table.ref(row, column.number), _times(column.cells[row].value, factor))
        for column in _amounts(table)
        for row in column.rows_with_values()
        if isinstance(column.cells[row].value, int | float)
    )


def _times(value: CellValue, factor: float) -> CellValue:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    product = round(value * factor, 9)
    return int(product) if float(product).is_integer() else product


_ROUNDED = re.compile(r"round|whole number|integer|decimal|digit|bracket|band|between|limit|%")


def amounts_in_other_units(material: Material, rng: random.Random) -> Iterator[Idea]:
    """Multiplies all amounts by 1.25.

    The answer has to scale if it scales with a factor of 10, and only then.
    """
    del rng
    question = material.instruction.casefold()
    if material.subject.limits or _ROUNDED.search(question):
        return
    for table in material.subject.tables[:1]:
        if not _amounts(table) or not is_plain(table):
            continue
        for growth, carry in (
            ("the same", _unchanged_by),
            ("times as much", _scaled_by),
        ):
            yield Idea(
                "other-unit",
                f"all amounts of {table.sheet!r} in another unit: times 1.25",
                _scaled(table, 1.25),
                relation=f"with all amounts times ten the answer is {growth}, but not with all "
                "amounts times 1.25",
                carried=CarriedAnswer(
                    carry(1.25), trial=_scaled(table, 10), trial_answer=carry(10)
                ),
            )


def _unchanged_by(factor: float) -> Callable[[Values], Values]:
    del factor
    return unchanged


def _scaled_by(factor: float) -> Callable[[Values], Values]:
    return lambda answer: {ref: _times(value, factor) for ref, value in answer.items()}


RELATIONS: dict[str, Relation] = {
    "renamed-key": renamed_keys,
    "key-within-key": keys_within_keys,
    "other-prefix": other_prefixes,
    "keys-as-text": keys_as_text,
    "repeated-record": repeated_records,
    "split-record": split_records,
    "swapped-records": swapped_records,
    "remark-column": remark_columns,
    "blank-row": blank_rows,
    "other-unit": amounts_in_other_units,
    "key-with-blank": keys_with_blanks,
}
"""Relations by name; those with the most likely inputs come first."""
