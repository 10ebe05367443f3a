"""Finds tasks whose rule changes between cases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from judge.console import counted
from judge.formulas.references import Reference, references
from judge.suspects.books import CellAddress, agree
from judge.suspects.contract import (
    address_in,
    and_more,
    evidence,
    gold_evidence,
    shown,
    suspect,
)
from judge.suspects.material import CaseMaterial, TaskMaterial, what_formulas_give
from judge.suspects.model import About, Certainty, EvidenceFile, Suspect
from judge.suspects.signs.ranges import goes_on
from judge.suspects.signs.says_nothing import same_input
from judge.suspects.signs.stored_values import alike
from judge.workbook.cell import ErrorValue

_NUMBERS = re.compile(r"\d+")


class ChangedRule:
    """Finds tasks whose rule changes between cases.

    The formulas of case 1's answer are filled into the other cases and computed there. This sign
    also finds cases whose inputs are the same but whose answers differ.
    """

    name = "changed-rule"
    title = "the rule of case 1's answer does not give the answer of another case"
    about = About.GOLD
    blind_spots = (
        "a gold of constants in case 1 has no rule that could be filled into the other cases",
        ("a formula whose ranges end where the data of case 1 end is not filled into longer data"),
        "a wrong formula that all cases share causes no contradiction",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each later case that follows a different rule."""
        if len(material.cases) < 2:
            return
        first = material.cases[0]
        for case in material.cases[1:]:
            suspect = next(self._same_input(material, case), None) or next(
                self._filled(material, first, case), None
            )
            if suspect is not None:
                yield suspect

    def _same_input(self, material: TaskMaterial, case: CaseMaterial) -> Iterator[Suspect]:
        for other in material.cases:
            if other.number >= case.number or other.ranges != case.ranges:
                continue
            differing = _apart(case, other)
            if not differing or case.changing or not same_input(other, case):
                continue
            address = differing[0]
            yield suspect(
                material,
                case.number,
                self,
                Certainty.SURE,
                f"the input is that of case {other.number}, but "
                f"{address_in(case.gold, address)} of the answer is "
                f"{shown(case.answer.get(address))}, not "
                f"{shown(other.answer.get(address))}{and_more(len(differing))}",
                "one of the two golds is wrong: no rule gives two answers to one input",
                gold_evidence(
                    case,
                    differing,
                    expected={address: other.answer.get(address) for address in differing},
                    note=f"expected as in case {other.number}",
                ),
            )

    def _filled(
        self, material: TaskMaterial, first: CaseMaterial, case: CaseMaterial
    ) -> Iterator[Suspect]:
        if first.ranges != case.ranges or not first.answer_formulas:
            return
        expected = dict(_other_than_first(first, case))
        if not expected:
            return
        values = what_formulas_give(case, expected)
        # In case 1 itself the formulas must give its answer; otherwise they prove nothing.
        trusted = {
            address: value
            for address, value in values.items()
            if address in first.recomputed
            and alike(first.answer, address, first.recomputed[address])
            and not isinstance(value, ErrorValue)
        }
        differing = sorted(
            address for address, value in trusted.items() if not alike(case.answer, address, value)
        )
        if not differing or first.changing:
            return
        right = len(trusted) - len(differing)
        address = differing[0]
        by_hand = all(case.gold.formula(address) is None for address in expected)
        certainty = Certainty.LIKELY if by_hand or right else Certainty.POSSIBLE
        own_formula = case.gold.formula(address)
        yield suspect(
            material,
            case.number,
            self,
            certainty,
            f"the gold's {address_in(case.gold, address)} is {shown(case.answer.get(address))}, "
            f"case {first.number}'s formula gives {shown(trusted[address])} there"
            f"{and_more(len(differing))}",
            (
                f"the cells hold {'constants' if own_formula is None else 'another formula'} in "
                f"this case; of {counted(len(trusted), 'cell')}, {right} are as case "
                f"{first.number}'s formula gives them"
            ),
            [
                evidence(
                    EvidenceFile.GOLD,
                    address,
                    expected=trusted[address],
                    found=case.answer.get(address),
                    note=f"case {first.number}: {first.answer_formulas[address]}",
                )
                for address in differing
            ],
        )


def _other_than_first(first: CaseMaterial, case: CaseMaterial) -> Iterator[tuple[CellAddress, str]]:
    """Yields the cells that lack the first case's formula, each with this formula."""
    moved = _moved_columns(first, case)
    for address, formula in first.answer_formulas.items():
        own = case.gold.formula(address)
        if own == formula or (address.sheet, address.column) in moved:
            continue
        if own is None and (case.gold.value(address) is None or case.is_given(address)):
            continue  # the data are shorter, or the cell is data
        if own is not None and _NUMBERS.sub("1", own) == _NUMBERS.sub("1", formula):
            continue  # the same formula for different rows
        if any(_grew(first, case, address, reference) for reference in references(formula)):
            continue
        yield address, formula


def _grew(
    first: CaseMaterial, case: CaseMaterial, address: CellAddress, reference: Reference
) -> bool:
    """Returns whether a range covers a whole table in the first case, but not in another case."""
    sheet, below = reference.sheet or address.sheet, reference.max_row + 1
    return (
        reference.max_row > reference.min_row
        and goes_on(case.gold, sheet, reference, below)
        and not goes_on(first.gold, sheet, reference, below)
    )


def _moved_columns(first: CaseMaterial, case: CaseMaterial) -> frozenset[tuple[str, int]]:
    """Finds columns whose formulas are in different rows than in case 1: the table has moved."""
    return frozenset(
        (address.sheet, address.column)
        for address in case.answer_formulas
        if address not in first.answer_formulas
    )


def _apart(case: CaseMaterial, other: CaseMaterial) -> list[CellAddress]:
    return sorted(
        address
        for address in case.answer.keys() | other.answer.keys()
        if not agree(case.answer.get(address), other.answer.get(address))
    )


CHANGED_RULE = ChangedRule()
