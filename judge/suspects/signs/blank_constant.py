"""Finds cells outside the answer that are blank in either input or gold, but not in both.

Somebody filled in or emptied a cell in only one of the two files. A program gets the input, so its
answer may differ from the gold's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from judge.suspects.books import CellAddress
from judge.suspects.material import CaseMaterial, TaskMaterial, traces_of
from judge.suspects.model import About, Certainty, Suspect
from judge.suspects.signs.contradicted_input import (
    FEW,
    MAX_RESTORED,
    Contradictions,
    contradictions,
    is_heading,
    not_everywhere,
    suspect_of_contradiction,
    what_moves,
)


class BlankConstant:
    """See :mod:`judge.suspects.signs.blank_constant`."""

    name = "blank-constant"
    title = "a cell outside the answer is blank in the gold, a constant in the input, or vice versa"
    about = About.GOLD
    blind_spots = (
        "a question may want cells to be filled in or emptied outside the answer position",
        (
            "in a task with one case, that cannot be distinguished from a fault, and counts as one "
            "if the gold's formulas read the cell"
        ),
        "in a gold of constants, a cell that was emptied leaves no trace in the answer",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case whose answer depends, or may depend, on these cells."""
        by_case = {case.number: contradictions(case) for case in material.cases}
        for case in material.cases:
            mine = by_case[case.number]
            if not mine.emptied and not mine.added:
                continue
            others = [by_case[other.number] for other in material.cases if other is not case]
            if case.answer_formulas:
                yield from self._with_formulas(material, case, mine, others)
            elif others:
                yield from self._with_constants(material, case, mine, others)

    def _with_formulas(
        self,
        material: TaskMaterial,
        case: CaseMaterial,
        mine: Contradictions,
        others: Sequence[Contradictions],
    ) -> Iterator[Suspect]:
        for addresses in (mine.emptied, mine.added):
            if not addresses or len(addresses) > MAX_RESTORED:
                continue
            moved = what_moves(case, {address: case.input.value(address) for address in addresses})
            if not moved:
                continue
            own = not_everywhere(addresses, others)
            certainty = Certainty.LIKELY if own else Certainty.POSSIBLE
            yield suspect_of_contradiction(
                self, material, case, own or addresses, moved=moved, certainty=certainty
            )
            return

    def _with_constants(
        self,
        material: TaskMaterial,
        case: CaseMaterial,
        mine: Contradictions,
        others: Sequence[Contradictions],
    ) -> Iterator[Suspect]:
        # Cells that the question wants emptied or filled in are in different rows in each case.
        columns = {(address.sheet, address.column) for other in others for address in other.cells}
        own: list[CellAddress] = [
            address
            for address in (*mine.emptied, *mine.added)
            if (address.sheet, address.column) not in columns
            and not is_heading(material.cases, case, address)
        ]
        if not own or len(own) > FEW:
            return
        traces = traces_of(case.answer.values())
        traced = [address for address in own if traces.holds(case.gold.value(address))]
        certainty = Certainty.LIKELY if traced else Certainty.POSSIBLE
        yield suspect_of_contradiction(self, material, case, traced or own, certainty=certainty)


SIGN = BlankConstant()
