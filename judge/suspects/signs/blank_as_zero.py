"""Finds zeros in an answer that come from blank cells.

A formula that refers to a blank cell shows 0. Anyone who copies or looks up values by hand, or by
program, leaves the cell blank, and questions rarely say which is wanted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from judge.console import counted
from judge.formulas.references import references
from judge.suspects.books import CellAddress, agree
from judge.suspects.contract import address_in, and_more, gold_evidence, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial, what_formulas_give
from judge.suspects.model import About, Certainty, Suspect

_ZERO = re.compile(r"(?<![\w.,])0(?![\w.,]\d|\w)|\bzeros?\b|\bzeroes\b", re.IGNORECASE)


class BlankAsZero:
    """See :mod:`judge.suspects.signs.blank_as_zero`."""

    name = "blank-as-zero"
    title = "the answer has 0 where its formula refers to a blank cell"
    about = About.GOLD
    blind_spots = (
        "a question may want zeros: if it contains 0 or zero, nothing is reported",
        "formulas that read the cell above them continue a count or a balance, and are left out",
        "golds of constants do not show where their zeros come from",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case whose answer has zeros from blank cells."""
        if _ZERO.search(material.task.instruction):
            return
        for case in material.cases:
            yield from self._case(material, case)

    def _case(self, material: TaskMaterial, case: CaseMaterial) -> Iterator[Suspect]:
        cells = zeros_of_blanks(case)
        if not cells:
            return
        first = cells[0]
        yield suspect(
            material,
            case.number,
            self,
            Certainty.LIKELY,
            f"the gold's {address_in(case.gold, first)} is 0 for a blank cell"
            f"{and_more(len(cells))}",
            f"{counted(len(cells), 'cell')} of {len(case.answer):,} in the answer: anyone who "
            "copies what is there leaves the cell blank",
            gold_evidence(case, cells),
        )


def zeros_of_blanks(case: CaseMaterial) -> list[CellAddress]:
    """Finds answer cells whose formula returns a blank cell, which is shown as 0."""
    zeros = {
        address: formula.removeprefix("=")
        for address, formula in case.answer_formulas.items()
        if agree(case.answer.get(address), 0) and not _continues(address, formula)
    }
    # Joined with an empty string, a number still has digits, but a blank cell has none.
    joined = what_formulas_give(case, {cell: f'({text})&""' for cell, text in zeros.items()})
    blank = {cell: zeros[cell] for cell, value in joined.items() if value in ("", None)}
    alone = what_formulas_give(case, blank)
    return sorted(cell for cell, value in alone.items() if agree(value, 0))


def _continues(address: CellAddress, formula: str) -> bool:
    """Returns whether a formula reads the cell above it, and so continues a count or a balance."""
    above = (address.row - 1, address.row - 1, address.column, address.column)
    return any(
        reference.sheet in (None, "", address.sheet)
        and (reference.min_row, reference.max_row, reference.min_column, reference.max_column)
        == above
        for reference in references(formula)
    )


SIGN = BlankAsZero()
