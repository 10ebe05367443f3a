"""Finds rows that the gold fills in although, by the question, a blank column leaves them blank."""

from __future__ import annotations

import re
from collections.abc import Iterator

from judge.console import counted
from judge.suspects.books import CellAddress
from judge.suspects.contract import address_in, gold_evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial
from judge.suspects.model import About, Certainty, Suspect
from judge.workbook.address import cell_key, column_number

SHARE = 0.8
"""If a larger share of the filled rows breaks the rule, the question means another column."""

# "if column C (Sales $) is blank, the formula should return blank"
_RULE = re.compile(
    r"\b(?i:if|when|where)\b[^.;\n]{0,40}?\b(?:column|cell)\s+(?P<column>[A-Z]{1,2})\d*\b"
    r"(?!\s*(?:,|&|and\b|or\b))[^.;\n]{0,40}?\bis\s+(?:blank|empty)\b[^.;\n]{0,60}?"
    r"\b(?:be|return|leave|left|remain|stay|show|display)s?(?:\s+\w+){0,3}?\s+(?:blank|empty)\b"
)


class FilledBlank:
    """See :mod:`judge.suspects.signs.filled_blank`."""

    name = "filled-blank"
    title = "the question wants rows without a value to stay blank, and the gold fills them in"
    about = About.GOLD
    blind_spots = (
        "only rules about one column, which the question names by its letter in the same sentence",
        "a rule that another sentence restricts",
        f"if more than {SHARE:.0%} of the rows break the rule, it is taken for a misreading",
    )

    def examine(self, material: TaskMaterial) -> Iterator[Suspect]:
        """Yields one suspect for each case whose gold breaks the rule in some rows."""
        match = _RULE.search(material.task.instruction)
        column = column_number(match["column"]) if match else None
        if column is not None:
            for case in material.cases:
                yield from self._case(material, case, column)

    def _case(self, material: TaskMaterial, case: CaseMaterial, column: int) -> Iterator[Suspect]:
        for area in case.ranges:
            if area.min_column <= column <= area.max_column:
                continue
            filled = [address for address in sorted(case.answer) if address.sheet == area.sheet]
            broken = [
                address
                for address in filled
                if case.gold.value(_beside(address, column)) is None
                and case.input.value(_beside(address, column)) is None
            ]
            if not broken or len(broken) > SHARE * len(filled):
                continue
            first = broken[0]
            yield suspect(
                material,
                case.number,
                self,
                Certainty.LIKELY,
                f"the gold's {address_in(case.gold, first)} is {shown(case.answer[first])}, though "
                f"{_beside(first, column).name} is blank",
                f"{counted(len(broken), 'cell')} should stay blank by the question",
                gold_evidence(case, broken),
            )
            return


def _beside(address: CellAddress, column: int) -> CellAddress:
    """Returns the cell in a column of the same row."""
    return CellAddress(address.sheet, cell_key(address.row, column))


SIGN = FilledBlank()
