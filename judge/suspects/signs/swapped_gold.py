"""Finds golds whose rows come from another case's input."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from judge.console import counted
from judge.suspects.books import Book, CellAddress
from judge.suspects.contract import evidence, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial
from judge.suspects.model import About, Certainty, EvidenceFile, Suspect
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, cell_key
from judge.workbook.cell import CellRange, CellValue

MIN_ROWS = 5
SHARE = 0.75
"""With this share of its rows in the input, a gold is assumed to consist of input rows."""

MIN_COLUMNS = 2

Row = tuple[tuple[int, CellValue], ...]
"""A row: column and value of each of its non-blank cells."""


@dataclass(frozen=True)
class _Table:
    """The rows of a case's answer, and all rows of its input in the same columns."""

    case: CaseMaterial
    area: CellRange
    rows: Mapping[int, Row]
    gold: Counter[Row]
    input_rows: Counter[Row]


class SwappedGold:
    """Finds golds whose rows come from another case's input."""

    name = "swapped-gold"
    title = "the rows of the gold are those of another case's input"
    about = About.GOLD
    blind_spots = (
        "answers with computed values: only golds whose rows are all in one input count",
        "two cases whose inputs have the same rows",
        "to which case each gold belongs: the other gold may be in the wrong case as well",
    )

    def examine(self, material: TaskMaterial) -> Iterator[Suspect]:
        """Yields one suspect for each case whose rows are only in the input of another case."""
        tables = [table for case in material.cases if (table := _table(case)) is not None]
        for own in tables:
            missing_rows = own.gold - own.input_rows
            if not missing_rows or missing_rows.total() > (1 - SHARE) * own.gold.total():
                continue
            for other in tables:
                if other is not own and not own.gold - other.input_rows:
                    yield self._suspect(material, own, other, missing_rows)
                    break

    def _suspect(
        self, material: TaskMaterial, own: _Table, other: _Table, missing_rows: Counter[Row]
    ) -> Suspect:
        number = other.case.number
        return suspect(
            material,
            own.case.number,
            self,
            Certainty.LIKELY,
            f"not in this input: {counted(missing_rows.total(), 'row')} of the gold; all "
            f"{own.gold.total():,} are in the input of case {number}",
            f"the gold seems to belong to another case, such as case {number}",
            [
                evidence(
                    EvidenceFile.GOLD,
                    CellAddress(own.area.sheet, cell_key(row, column)),
                    found=value,
                    note=f"a row of the input of case {number}",
                )
                for row, row_values in own.rows.items()
                if row_values in missing_rows
                for column, value in row_values
            ],
        )


def _table(case: CaseMaterial) -> _Table | None:
    """Returns the rows of a case if its answer is one table of constants; otherwise None."""
    if len(case.ranges) != 1 or None in case.input_ranges or case.answer_formulas:
        return None
    (area,) = case.ranges
    if area.max_column - area.min_column + 1 < MIN_COLUMNS:
        return None
    rows = {
        row: values
        for row, values in _rows(case.gold, area.sheet, area).items()
        if area.min_row <= row <= area.max_row
    }
    if len(rows) < MIN_ROWS:
        return None
    input_rows = Counter(
        values
        for sheet in case.input.sheet_names
        for values in _rows(case.input, sheet, area).values()
    )
    return _Table(case, area, rows, Counter(rows.values()), input_rows)


def _rows(book: Book, sheet: str, area: CellRange) -> dict[int, Row]:
    """Returns the rows of a sheet, in an area's columns, with at least two non-blank cells."""
    rows: dict[int, list[tuple[int, CellValue]]] = defaultdict(list)
    for key, value in book.values(sheet).items():
        column = key & COLUMN_MASK
        if area.min_column <= column <= area.max_column:
            text = value.strip() if isinstance(value, str) else value
            rows[key >> COLUMN_BITS].append((column, text))
    return {
        row: tuple(sorted(cells, key=lambda cell: cell[0]))
        for row, cells in sorted(rows.items())
        if len(cells) >= MIN_COLUMNS
    }


SWAPPED_GOLD = SwappedGold()
