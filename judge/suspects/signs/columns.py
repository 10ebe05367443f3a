"""Signs about columns of formulas: cells that do not follow the column's formula."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from judge.console import counted
from judge.formulas.shift import shift_formula
from judge.suspects.books import CellAddress
from judge.suspects.contract import address_in, and_more, evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial, apart_by_rewriting
from judge.suspects.model import About, Certainty, EvidenceFile, Suspect
from judge.suspects.signs.contradicted_input import MAX_RESTORED, what_moves
from judge.workbook.cell import CellValue

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
        differing = apart_by_rewriting(case, expected)
        if not differing:
            return
        ends = {
            address
            for addresses in _columns(case).values()
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


def _columns(case: CaseMaterial) -> Mapping[tuple[str, int], list[CellAddress]]:
    columns: dict[tuple[str, int], list[CellAddress]] = defaultdict(list)
    for address in case.answer_addresses:
        columns[address.sheet, address.column].append(address)
    return columns


def _by_the_rule(case: CaseMaterial) -> Iterator[tuple[CellAddress, str]]:
    """Finds odd cells in the answer's columns, each with the column's formula for its row."""
    for addresses in _columns(case).values():
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
    moved = what_moves(case, {}, outside) if outside else {}
    return {
        **apart_by_rewriting(case, inside),
        **{cell: now for cell, (_, now) in moved.items()},
    }


BROKEN_COLUMN = BrokenColumn()
