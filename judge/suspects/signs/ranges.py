"""Finds ranges in a gold's formulas that move with the row, or end before the data do."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping

from judge.console import counted
from judge.formulas.references import Area, Reference, area_text, corner, references, with_areas
from judge.formulas.shift import shift_formula
from judge.formulas.traits import traits
from judge.suspects.books import Book, CellAddress
from judge.suspects.contract import address_in, and_more, evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial, apart_by_rewriting
from judge.suspects.model import About, Certainty, EvidenceFile, Suspect
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, cell_key
from judge.workbook.cell import CellRange, CellValue

MIN_ROWS = 3
"""How many rows a range must have to count as a table."""

MAX_MISSED = 10_000
LOOKUPS = frozenset(
    {"VLOOKUP", "HLOOKUP", "LOOKUP", "MATCH", "INDEX", "XLOOKUP", "XMATCH"}
    | {"COUNTIF", "COUNTIFS", "SUMIF", "SUMIFS", "AVERAGEIF", "AVERAGEIFS", "MAXIFS", "MINIFS"}
)
"""Functions whose ranges are lookup tables, not windows that should move with the row."""


class MovingRange:
    """Finds ranges in a gold's formulas that move with the row, or end before the data do."""

    name = "range"
    title = "a range of the answer's formulas moves with the row, or ends before the data"
    about = About.GOLD
    blind_spots = (
        "only references of the form A1:B9 are followed, not names, tables or OFFSET",
        (
            "a range may end early on purpose; it is reported only if the rest of the data would "
            "change the answer"
        ),
        "moving windows of SUM or AVERAGE are assumed to be intended",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case whose answer is changed by a wrong range."""
        for case in material.cases:
            yield from self._case(material, case)

    def _case(self, material: TaskMaterial, case: CaseMaterial) -> Iterator[Suspect]:
        moving = dict(_held_in_place(case))
        differing = apart_by_rewriting(case, moving)
        if differing:
            yield self._suspect(
                material,
                case,
                differing,
                moving,
                "with the range of the first row",
                Certainty.LIKELY,
            )
            return
        longer = dict(_lengthened(case))
        differing = apart_by_rewriting(case, longer)
        if differing:
            yield self._suspect(
                material,
                case,
                differing,
                longer,
                "with its range down to the last row of the data",
                Certainty.POSSIBLE,
            )

    def _suspect(
        self,
        material: TaskMaterial,
        case: CaseMaterial,
        differing: Mapping[CellAddress, CellValue],
        formulas: Mapping[CellAddress, str],
        how: str,
        certainty: Certainty,
    ) -> Suspect:
        first = next(iter(differing))
        return suspect(
            material,
            case.number,
            self,
            certainty,
            f"the gold's {address_in(case.gold, first)} is {shown(case.answer.get(first))}, {how} "
            f"its formula gives {shown(differing[first])}{and_more(len(differing))}",
            f"{counted(len(differing), 'cell')} of the answer read only a part of the table: "
            f"{case.gold.formula(first)}",
            [
                evidence(
                    EvidenceFile.GOLD,
                    address,
                    expected=value,
                    found=case.answer.get(address),
                    note=f"expected {how}: {formulas[address]}",
                )
                for address, value in differing.items()
            ],
        )


def _held_in_place(case: CaseMaterial) -> Iterator[tuple[CellAddress, str]]:
    """Returns the formulas that were filled down, with their tables fixed as in the first row."""
    by_column: dict[tuple[str, int], list[CellAddress]] = {}
    for address in case.answer_formulas:
        by_column.setdefault((address.sheet, address.column), []).append(address)
    for addresses in by_column.values():
        top = min(addresses)
        first = case.answer_formulas[top]
        if len(addresses) < MIN_ROWS or not traits(first).functions & LOOKUPS:
            continue
        held = with_areas(first, functools.partial(_with_fixed_rows, first))
        if held == first:
            continue
        for address in addresses:
            down = address.row - top.row
            if down and case.answer_formulas[address] == shift_formula(first, down, 0):
                yield address, shift_formula(held, down, 0)


def _with_fixed_rows(formula: str, area: Area) -> str:
    (column, low), (last_column, high) = corner(area.first), corner(area.last)
    if area.last is area.first or int(high) - int(low) + 1 < MIN_ROWS:
        return area_text(formula, area)
    if column.endswith("$") or last_column.endswith("$"):
        return area_text(formula, area)
    sheet = "" if area.sheet is None else area.sheet.text
    return f"{sheet}{column}${low}:{last_column}${high}"


def _lengthened(case: CaseMaterial) -> Iterator[tuple[CellAddress, str]]:
    """Returns the formulas whose tables end before the data, extended to the end of the data."""
    seen: dict[Reference, int] = {}
    runs: dict[tuple[str, int], Mapping[int, int]] = {}
    for address, text in case.answer_formulas.items():
        longer = text
        for reference in references(text):
            if reference.max_row - reference.min_row + 1 < MIN_ROWS:
                continue
            sheet = reference.sheet or address.sheet
            if sheet not in case.gold:
                continue
            if reference not in seen:
                column = (sheet, reference.min_column)
                if column not in runs:
                    runs[column] = _runs(case.gold, *column)
                seen[reference] = _last_row(case, sheet, reference, runs[column])
            last = seen[reference]
            if last > reference.max_row:
                longer = _with_last_row(longer, reference.max_row, last)
        if longer != text:
            yield address, longer


def _with_last_row(formula: str, old: int, new: int) -> str:
    def longer(area: Area) -> str:
        text = area_text(formula, area)
        column, row = corner(area.last)
        is_end = area.last is not area.first and int(row) == old and column.endswith("$")
        return f"{text[: -len(row)]}{new}" if is_end else text

    return with_areas(formula, longer)


def _last_row(case: CaseMaterial, sheet: str, reference: Reference, runs: Mapping[int, int]) -> int:
    """Returns the last row of the table, if it continues directly below the range."""
    row = reference.max_row
    last = min(runs.get(row, row), row + MAX_MISSED)
    column = reference.min_column
    added = CellRange(sheet, row + 1, column, last, column) if last > row else None
    meets_answer = added is not None and any(
        area.sheet == sheet and area.overlaps(added) for area in case.ranges
    )
    return row if meets_answer else last


def _runs(book: Book, sheet: str, column: int) -> Mapping[int, int]:
    """Maps each row of a column to the last of the adjacent rows that have the same cell type."""
    values, formulas = book.values(sheet), book.formulas(sheet)
    sorts = {
        key >> COLUMN_BITS: (key in formulas, isinstance(value, str))
        for key, value in values.items()
        if key & COLUMN_MASK == column
    }
    ends: dict[int, int] = {}
    for row in sorted(sorts, reverse=True):
        goes_down = sorts.get(row + 1) == sorts[row]
        ends[row] = ends[row + 1] if goes_down else row
    return ends


def goes_on(book: Book, sheet: str, reference: Reference, row: int) -> bool:
    """Returns whether a row's cell in the range's first column resembles that of its last row."""
    values, formulas = book.values(sheet), book.formulas(sheet)
    above = cell_key(reference.max_row, reference.min_column)
    key = cell_key(row, reference.min_column)
    if key not in values or above not in values:
        return False
    if (key in formulas) != (above in formulas):
        return False
    return isinstance(values[key], str) == isinstance(values[above], str)


RANGES = MovingRange()
