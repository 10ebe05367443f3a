"""Signs about the formulas of an answer: one unlike its column, a broken column, a moving range."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from judge.console import counted
from judge.formulas.references import Area, Reference, area_text, corner, references, with_areas
from judge.formulas.shift import shift_formula
from judge.formulas.traits import traits
from judge.suspects.books import Book, CellAddress
from judge.suspects.contract import address_in, and_more, evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial, changed_by_formulas
from judge.suspects.model import About, Certainty, EvidenceFile, Suspect
from judge.suspects.signs.contradicted_input import MAX_RESTORED, moved_answers
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, cell_key
from judge.workbook.cell import CellRange, CellValue

MIN_FORMULAS = 4
"""How many cells of a column must share a formula before a different one is suspicious."""

SHARE = 0.75
"""Share of a column's cells that must have this formula."""


class OddFormula:
    """Finds cells of an answer that do not follow the formula of their column."""

    name = "odd-formula"
    title = "a cell of the answer does not have the formula of its column"
    about = About.GOLD
    blind_spots = (
        "a constant that the input holds in the same column is taken for data",
        ("a column in which fewer than three in four cells share a formula has no rule to break"),
        (
            "the first and the last cell of a column may follow a different rule, such as a "
            "total, and are only listed as possible"
        ),
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case with values that differ from their column's formula."""
        for case in material.cases:
            yield from self._case(material, case)

    def _case(self, material: TaskMaterial, case: CaseMaterial) -> Iterator[Suspect]:
        expected = dict(_by_the_rule(case))
        differing = changed_by_formulas(case, expected)
        if not differing:
            return
        ends = {
            address
            for addresses in _columns(case.answer_addresses).values()
            for address in (min(addresses), max(addresses))
        }
        inner = [address for address in differing if address not in ends]
        first = (inner or list(differing))[0]
        own = case.gold.formula(first)
        yield suspect(
            material,
            case.number,
            self,
            Certainty.LIKELY if inner else Certainty.POSSIBLE,
            f"the gold's {address_in(case.gold, first)} is {shown(case.answer.get(first))}, the "
            f"formula of its column gives {shown(differing[first])}{and_more(len(differing))}",
            f"{counted(len(differing), 'cell')} of the answer "
            + (
                "holds a constant among formulas"
                if own is None
                else "does not have the formula of the others in the column"
            ),
            [
                evidence(
                    EvidenceFile.GOLD,
                    address,
                    expected=value,
                    found=case.answer.get(address),
                    note=f"the column's formula: {expected[address]}",
                )
                for address, value in differing.items()
            ],
        )


def _columns(cells: Iterable[CellAddress]) -> Mapping[tuple[str, int], list[CellAddress]]:
    columns: dict[tuple[str, int], list[CellAddress]] = defaultdict(list)
    for address in cells:
        columns[address.sheet, address.column].append(address)
    return columns


def _by_the_rule(case: CaseMaterial) -> Iterator[tuple[CellAddress, str]]:
    """Finds odd cells in the answer's columns, each with the column's formula for its row."""
    for addresses in _columns(case.answer_addresses).values():
        formulas = {
            address: case.answer_formulas[address]
            for address in addresses
            if address in case.answer_formulas
        }
        rule = rule_of_column(formulas)
        if rule is None or len(rule.cells) < SHARE * len(addresses):
            continue
        for address in addresses:
            if address not in rule.cells and not case.is_given(address):
                text = rule.at(address.row)
                if "#REF!" not in text:
                    yield address, text


class ColumnRule(NamedTuple):
    """A formula that cells of a column share.

    Attributes:
        text: the formula as written for one row.
        row: that row.
        cells: the cells that have the formula.
    """

    text: str
    row: int
    cells: frozenset[CellAddress]

    def at(self, row: int) -> str:
        """Returns the formula as written for a row."""
        return shift_formula(self.text, row - self.row, 0)


def rule_of_column(formulas: Mapping[CellAddress, str]) -> ColumnRule | None:
    """Returns the formula that most cells of a column share; None if fewer than four share one.

    Args:
        formulas: the formulas of one column.
    """
    if len(formulas) < MIN_FORMULAS:
        return None
    # Written for the last row, no relative reference points above the first row of the sheet.
    anchor = max(address.row for address in formulas)
    cells: dict[str, set[CellAddress]] = defaultdict(set)
    for address, text in formulas.items():
        cells[shift_formula(text, anchor - address.row, 0)].add(address)
    text, holders = max(cells.items(), key=lambda item: len(item[1]))
    if len(holders) < MIN_FORMULAS or "#REF!" in text:
        return None
    return ColumnRule(text, anchor, frozenset(holders))


ODD_FORMULA = OddFormula()


class BrokenColumn:
    """Finds formulas that fill a column of the input and that the gold replaces in some rows."""

    name = "broken-column"
    title = "the gold keeps a column formula of the input, except in some rows"
    about = About.GOLD
    blind_spots = (
        "a column in which the gold changes at least half of the formulas is taken to be the task",
        "if every case has the change in the same cells, it may be part of the task as well",
        "constants outside the answer are left to the sign frozen-input",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case whose answer would change with the input's formulas."""
        broken_by_case = {case.number: dict(_broken(case)) for case in material.cases}
        for case in material.cases:
            broken = broken_by_case[case.number]
            others = [
                cells.keys() for number, cells in broken_by_case.items() if number != case.number
            ]
            own = {
                cell for cell in broken if not others or not all(cell in cells for cells in others)
            }
            yield from self._case(material, case, broken, is_own=bool(own))

    def _case(
        self,
        material: TaskMaterial,
        case: CaseMaterial,
        broken: Mapping[CellAddress, str],
        *,
        is_own: bool,
    ) -> Iterator[Suspect]:
        differing = _apart(case, broken)
        if not differing:
            return
        first = next(iter(differing))
        by_hand = any(
            case.gold.formula(address) is None for address in broken if case.in_answer(address)
        )
        where = next(iter(broken)) if first not in broken else first
        yield suspect(
            material,
            case.number,
            self,
            Certainty.LIKELY if is_own and by_hand else Certainty.POSSIBLE,
            f"the gold's {address_in(case.gold, where)} is "
            f"{case.gold.formula(where) or shown(case.gold.value(where))}, the input has the "
            f"column's formula {broken[where]} there{and_more(len(broken))}",
            f"with the input's formulas, {address_in(case.gold, first)} is "
            f"{shown(differing[first])}, not {shown(case.answer.get(first))} "
            f"({counted(len(differing), 'cell')} of the answer)",
            [
                evidence(
                    EvidenceFile.GOLD,
                    address,
                    expected=value,
                    found=case.answer.get(address),
                    note=f"the input: {broken[address]}" if address in broken else "answer",
                )
                for address, value in differing.items()
            ],
        )


def _broken(case: CaseMaterial) -> Iterator[tuple[CellAddress, str]]:
    """Finds the cells in which the gold replaces a column formula of the input."""
    for sheet in case.input.sheet_names:
        if sheet not in case.gold:
            continue
        columns: dict[int, dict[CellAddress, str]] = defaultdict(dict)
        for key, text in case.input.formulas(sheet).items():
            address = CellAddress(sheet, key)
            columns[address.column][address] = text
        for formulas in columns.values():
            rule = rule_of_column(formulas)
            if rule is None:
                continue
            differing = [cell for cell in sorted(rule.cells) if _is_broken(case, cell)]
            kept = sum(case.gold.formula(cell) == formulas[cell] for cell in rule.cells)
            if len(differing) < kept:
                yield from ((cell, formulas[cell]) for cell in differing)


def _is_broken(case: CaseMaterial, cell: CellAddress) -> bool:
    """Returns whether the gold's cell is not blank and differs from the input's formula."""
    own = case.gold.formula(cell)
    if own is None:
        return case.gold.value(cell) is not None and case.in_answer(cell)
    return own != case.input.formula(cell)


def _apart(case: CaseMaterial, broken: Mapping[CellAddress, str]) -> dict[CellAddress, CellValue]:
    """Finds the answer cells that the input's formulas would change, with their new values."""
    if not broken or len(broken) > MAX_RESTORED:
        return {}
    inside = {cell: text for cell, text in broken.items() if case.in_answer(cell)}
    outside = {cell: text for cell, text in broken.items() if cell not in inside}
    moved = moved_answers(case, {}, outside) if outside else {}
    return {
        **changed_by_formulas(case, inside),
        **{cell: now for cell, (_, now) in moved.items()},
    }


BROKEN_COLUMN = BrokenColumn()


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
        differing = changed_by_formulas(case, moving)
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
        differing = changed_by_formulas(case, longer)
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
    for addresses in _columns(case.answer_formulas).values():
        top = min(addresses)
        first = case.answer_formulas[top]
        if len(addresses) < MIN_ROWS or not traits(first).functions & LOOKUPS:
            continue
        fixed = with_areas(first, functools.partial(_with_fixed_rows, first))
        if fixed == first:
            continue
        for address in addresses:
            down = address.row - top.row
            if down and case.answer_formulas[address] == shift_formula(first, down, 0):
                yield address, shift_formula(fixed, down, 0)


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


def resembles_last_row(book: Book, sheet: str, reference: Reference, row: int) -> bool:
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
