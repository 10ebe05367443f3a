"""Finds cells of an answer that do not follow the formula of their column."""

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

MIN_FORMULAS = 4
"""How many cells of a column must share a formula for another formula to be odd."""

SHARE = 0.75
"""Share of a column's cells that must have this formula."""


class OddFormula:
    """See :mod:`judge.suspects.signs.odd_formula`."""

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


SIGN = OddFormula()
