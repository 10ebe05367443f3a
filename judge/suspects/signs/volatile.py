"""Answers that depend on the day on which the gold was saved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from judge.formulas.traits import traits
from judge.suspects.books import CellAddress, agree
from judge.suspects.contract import address_in, and_more, counted, evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial
from judge.suspects.model import About, Certainty, EvidenceFile, Suspect


class Volatile:
    """See :mod:`judge.suspects.signs.volatile`."""

    name = "day-of-saving"
    title = "the answer depends on a function that changes by itself, such as TODAY or RAND"
    about = About.GOLD
    blind_spots = (
        (
            "a gold of constants that somebody computed on the day of saving holds no such "
            "function; only dates that nothing in the input explains betray it"
        ),
        "a random choice that the question itself requires is listed as well",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """One suspect for each case whose answer changes by itself."""
        for case in material.cases:
            yield from self._case(material, case)

    def _case(self, material: TaskMaterial, case: CaseMaterial) -> Iterator[Suspect]:
        changing = case.changing
        if not changing:
            return
        now = case.recomputed
        moved = sorted(
            address
            for address in changing
            if address in now
            and address in case.answer
            and not agree(case.answer[address], now[address])
        )
        cells = moved or sorted(changing)
        first = cells[0]
        if moved:
            summary = (
                f"the gold's {address_in(case.gold, first)} is {shown(case.answer[first])}, and "
                f"{shown(now[first])} when it is computed today{and_more(len(moved))}"
            )
        else:
            summary = (
                f"the gold's {address_in(case.gold, first)} depends on "
                f"{_functions(case, first) or 'a function that changes by itself'}"
                f"{and_more(len(cells))}"
            )
        yield suspect(
            material,
            case.number,
            self,
            Certainty.SURE if moved else Certainty.POSSIBLE,
            summary,
            f"{counted(len(cells), 'cell')} of the answer "
            + (
                "had this value on the day on which the gold was saved; a right program gives "
                "another one today"
                if moved
                else "may have another value on another day"
            ),
            [
                evidence(
                    EvidenceFile.GOLD,
                    address,
                    expected=now.get(address),
                    found=case.answer.get(address),
                    note=case.gold.formula(address) or "",
                )
                for address in cells
            ],
        )


def _functions(case: CaseMaterial, address: CellAddress) -> str:
    formula = case.gold.formula(address)
    return ", ".join(sorted(traits(formula).volatile)) if formula else ""


SIGN = Volatile()
