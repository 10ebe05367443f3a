"""Finds formulas of the input that the gold replaced with constants on which the answer depends.

A program gets the formula and its value. If the gold has a different constant there, it answers the
question for data that no program has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from judge.console import counted
from judge.suspects.books import CellAddress
from judge.suspects.contract import address_in, and_more, evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial
from judge.suspects.model import About, Certainty, EvidenceFile, Suspect
from judge.suspects.signs.contradicted_input import MAX_RESTORED, what_moves


class FrozenInput:
    """See :mod:`judge.suspects.signs.frozen_input`."""

    name = "frozen-input"
    title = "outside the answer, the gold holds a constant where the input has a formula"
    about = About.GOLD
    blind_spots = (
        "a gold of constants does not show which cells its answer was made from",
        "if every case has the change in the same cells, it may be part of the solution",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields a suspect for each case whose answer depends on a constant replacing a formula."""
        frozen_by_case = {case.number: _frozen(case) for case in material.cases}
        for case in material.cases:
            others = [frozen for number, frozen in frozen_by_case.items() if number != case.number]
            everywhere = set.intersection(*others) if others else set()
            yield from self._case(material, case, is_everywhere=everywhere >= _frozen(case))

    def _case(
        self, material: TaskMaterial, case: CaseMaterial, *, is_everywhere: bool
    ) -> Iterator[Suspect]:
        formulas = {
            address: formula
            for address in sorted(_frozen(case))
            if (formula := case.input.formula(address)) is not None
        }
        if not formulas or len(formulas) > MAX_RESTORED:
            return
        moved = what_moves(case, {}, formulas)
        if not moved:
            return
        first, (was, now) = next(iter(moved.items()))
        frozen = next(iter(formulas))
        certainty = Certainty.POSSIBLE if is_everywhere else Certainty.LIKELY
        yield suspect(
            material,
            case.number,
            self,
            certainty,
            f"the gold's {address_in(case.gold, frozen)} is the constant "
            f"{shown(case.gold.value(frozen))}, the input's is {formulas[frozen]}"
            f"{and_more(len(formulas))}",
            f"with the input's own formulas, the gold's give {shown(now)} in "
            f"{address_in(case.gold, first)}, not {shown(was)} "
            f"({counted(len(moved), 'cell')} of the answer)",
            [
                evidence(
                    EvidenceFile.GOLD,
                    address,
                    expected=after,
                    found=before,
                    note="answer; expected with the input's formulas",
                )
                for address, (before, after) in moved.items()
            ],
        )


def _frozen(case: CaseMaterial) -> set[CellAddress]:
    """Finds cells outside the answer with a formula in the input and a constant in the gold."""
    return {
        address
        for address in case.differences
        if case.input.formula(address) is not None
        and case.gold.formula(address) is None
        and case.gold.value(address) is not None
    }


SIGN = FrozenInput()
