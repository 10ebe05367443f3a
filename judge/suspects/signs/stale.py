"""Finds golds whose stored values differ from what their formulas compute now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from judge.console import counted
from judge.suspects.books import CellAddress, agree
from judge.suspects.contract import address_in, and_more, gold_evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial
from judge.suspects.model import About, Certainty, Suspect
from judge.workbook.cell import CellValue, ErrorValue

WEAK = frozenset({"#REF!", "#NAME?", "#VALUE!", "#NUM!", "#NULL!", "#SPILL!", "#CALC!"})
"""Errors that an engine also shows if it lacks a feature."""


class Stale:
    """See :mod:`judge.suspects.signs.stale`."""

    name = "stale-gold"
    title = "the gold's stored values differ from what its own formulas compute from its own cells"
    about = About.GOLD
    blind_spots = (
        "a gold of constants has no formulas that could be computed",
        (
            "if the calculation engines share an error, or differ from Excel in the same way, the "
            "gold is suspected without reason; a cell that only one engine computes is never sure"
        ),
        "if the input shows a stored value as an example, the suspect is only possible",
        "golds that a library wrote have no stored values that could be out of date",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case whose gold has outdated stored values."""
        for case in material.cases:
            yield from self._case(material, case)

    def _case(self, material: TaskMaterial, case: CaseMaterial) -> Iterator[Suspect]:
        differing = stale_cells(case)
        if not differing:
            return
        cells = sorted(address for address in differing if address not in case.changing)
        if not cells:
            return
        now = case.recomputed
        total = len(case.answer_formulas)
        first = cells[0]
        # If everything differs, an engine probably lacks a feature; it is less probable that the
        # whole gold is out of date. If only a few cells differ, the gold is suspect.
        few = len(cells) * 2 <= total
        # If the input shows the stored value as an example, the engines are wrong.
        shown_before = any(
            case.input.formula(address) is None
            and case.input.value(address) is not None
            and agree(case.input.value(address), case.answer.get(address))
            for address in cells
        )
        yield suspect(
            material,
            case.number,
            self,
            Certainty.LIKELY if few and not shown_before else Certainty.POSSIBLE,
            f"the gold's {address_in(case.gold, first)} is {shown(case.answer.get(first))}, "
            f"its own formula gives {shown(now[first])}{and_more(len(cells))}",
            f"{counted(len(cells), 'cell')} of {total:,} formulas in the answer; the gold was not "
            "computed again after an edit, or was edited without its formulas",
            gold_evidence(case, cells, expected=now),
        )


def stale_cells(case: CaseMaterial) -> list[CellAddress]:
    """Finds the cells of the answer whose stored value differs from the computed one."""
    if not case.recomputed:
        return []
    return [
        address
        for address, value in case.recomputed.items()
        if not alike(case.answer, address, value) and not _is_weak(value)
    ]


def alike(answer: Mapping[CellAddress, CellValue], address: CellAddress, value: CellValue) -> bool:
    """Returns whether a computed value equals the answer's; strings of spaces count as blank."""
    stored = answer.get(address)
    if isinstance(value, str) and not value.strip():
        value = None
    if isinstance(stored, str) and not stored.strip():
        stored = None
    return agree(stored, value)


def _is_weak(value: CellValue) -> bool:
    return isinstance(value, ErrorValue) and value.code in WEAK


SIGN = Stale()
