"""Finds rows that an answer copies twice, or alters although rows are only deleted."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from judge.console import counted
from judge.suspects.books import Book, CellAddress, same_constant
from judge.suspects.contract import (
    address_in,
    and_more,
    gold_evidence,
    shown,
    suspect,
)
from judge.suspects.material import CaseMaterial, TaskMaterial, trace
from judge.suspects.model import About, Certainty, Suspect
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, cell_key
from judge.workbook.cell import CellRange, CellValue

MIN_ROWS = 3
MIN_CELLS = 2
"""A row with fewer filled cells may repeat another one by chance."""

MAX_ROWS = 5_000
SHARE_ALTERED = 0.5
"""A column counts only if at least this share of the remaining rows have an altered cell in it."""

# "delete rows", "remove the entire row": the rows that are left are to stay as they are.
_DELETES_ROWS = re.compile(
    r"\b(?:delet|remov)(?:e|es|ed|ing)\b[^.;\n]{0,40}\brows?\b", re.IGNORECASE
)

Row = Mapping[int, CellValue]
"""Column -> value, for the filled cells of a row."""


class CopiedRows:
    """Finds rows that an answer copies twice, or alters although rows are only deleted."""

    name = "copied-rows"
    title = "the answer repeats rows that the input already shows, or alters rows that stay"
    about = About.GOLD
    blind_spots = (
        "answers with one column",
        "repeated rows count only if the gold repeats all rows of the input's answer in order",
        (
            "altered cells count only if the question deletes rows, most rows that stay are "
            "altered, and the new values are nowhere in the input's column"
        ),
    )

    def examine(self, material: TaskMaterial) -> Iterator[Suspect]:
        """Yields one suspect for each case whose answer repeats or alters copied rows."""
        deletes = _DELETES_ROWS.search(material.task.instruction) is not None
        for case in material.cases:
            if case.ranges != case.input_ranges:
                continue
            for area in case.ranges:
                if area.max_column == area.min_column:
                    continue
                repeated = _repeated(case, area)
                altered = _altered(case, area) if deletes and not repeated else []
                if repeated:
                    yield self._repeated(material, case, repeated)
                elif altered:
                    yield self._altered(material, case, altered)
                if repeated or altered:
                    break

    def _repeated(
        self, material: TaskMaterial, case: CaseMaterial, cells: list[CellAddress]
    ) -> Suspect:
        rows = len({cell.row for cell in cells})
        return suspect(
            material,
            case.number,
            self,
            Certainty.LIKELY,
            f"the gold's rows from {address_in(case.gold, cells[0])} repeat {counted(rows, 'row')} "
            "that the input already shows above them",
            "a program that adds missing rows, or writes the whole answer again, has each row once",
            gold_evidence(case, cells),
        )

    def _altered(
        self, material: TaskMaterial, case: CaseMaterial, cells: list[CellAddress]
    ) -> Suspect:
        first = cells[0]
        return suspect(
            material,
            case.number,
            self,
            Certainty.LIKELY,
            f"the gold's {address_in(case.gold, first)} is {shown(case.answer.get(first))}"
            f"{and_more(len(cells))}, which no cell of the input's column is",
            "the question deletes rows, and the other cells of these rows are as in the input",
            gold_evidence(case, cells),
        )


def _rows(book: Book, area: CellRange) -> dict[int, Row]:
    rows: dict[int, dict[int, CellValue]] = defaultdict(dict)
    for key, value in book.values(area.sheet).items():
        row, column = key >> COLUMN_BITS, key & COLUMN_MASK
        if area.min_row <= row <= area.max_row and area.min_column <= column <= area.max_column:
            rows[row][column] = value
    return dict(sorted(rows.items()))


def _repeated(case: CaseMaterial, area: CellRange) -> list[CellAddress]:
    """Finds the gold's rows that repeat all rows of the input's answer, in their order."""
    given, gold = _rows(case.input, area), _rows(case.gold, area)
    shown_rows = [row for row, cells in given.items() if len(cells) >= MIN_CELLS]
    added = [row for row in gold if row not in given]
    if not MIN_ROWS <= len(shown_rows) <= len(added) or len(gold) > MAX_ROWS:
        return []
    if not all(row in gold and _has(gold[row], given[row]) for row in shown_rows):
        return []
    repeated = added[: len(shown_rows)]
    same = sum(_has(gold[new], given[old]) for new, old in zip(repeated, shown_rows, strict=True))
    # In cases made from the first one, one or two of the rows above may be out of date.
    if same < MIN_ROWS or 2 * same <= len(shown_rows):
        return []
    return [
        CellAddress(area.sheet, cell_key(row, column)) for row in repeated for column in gold[row]
    ]


def _has(row: Row, example: Row) -> bool:
    return all(same_constant(row.get(column), value) for column, value in example.items())


def _altered(case: CaseMaterial, area: CellRange) -> list[CellAddress]:
    """Finds cells in remaining rows whose value does not occur in the input's column."""
    whole = CellRange(area.sheet, 1, area.min_column, MAX_ROWS, area.max_column)
    given, gold = _rows(case.input, whole), _rows(case.gold, area)
    if len(gold) < MIN_ROWS or len(gold) > MAX_ROWS:
        return []
    rows_by_trace: dict[tuple[int, str], set[int]] = defaultdict(set)
    in_column: dict[int, set[str]] = defaultdict(set)
    for number, row in given.items():
        for column, value in row.items():
            in_column[column].add(_plain(value))
            traced = trace(value)
            if traced is not None:
                rows_by_trace[column, traced].add(number)
    origins = {
        number: given[origin]
        for number, row in gold.items()
        if (origin := _origin(row, rows_by_trace)) is not None
    }
    columns: dict[int, list[CellAddress]] = defaultdict(list)
    for number, own in origins.items():
        for column, value in gold[number].items():
            cell = CellAddress(area.sheet, cell_key(number, column))
            if (
                own.get(column) is not None
                and _plain(value) not in in_column[column]
                and case.gold.formula(cell) is None
            ):
                columns[column].append(cell)
    return [
        cell
        for _, cells in sorted(columns.items())
        if len(cells) >= max(MIN_ROWS, SHARE_ALTERED * len(gold))
        for cell in cells
    ]


def _plain(value: CellValue) -> str:
    """Returns a value in a form that is the same for a number and its text."""
    return trace(value) or repr(value)


def _origin(row: Row, rows_by_trace: Mapping[tuple[int, str], set[int]]) -> int | None:
    """Returns the input row that has most recognizable values in common with a row, if unique."""
    traces = {column: traced for column, value in row.items() if (traced := trace(value))}
    votes = Counter(number for item in traces.items() for number in rows_by_trace.get(item, ()))
    best = votes.most_common(2)
    if not best or best[0][1] < MIN_CELLS or 2 * best[0][1] <= len(traces):
        return None
    return None if len(best) > 1 and best[1][1] == best[0][1] else best[0][0]


COPIED_ROWS = CopiedRows()
