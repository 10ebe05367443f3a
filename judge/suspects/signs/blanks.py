"""Signs about blank cells: zeros that come from them, and rows that should have stayed blank."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from judge.console import counted
from judge.formulas.references import references
from judge.suspects.books import CellAddress, agree
from judge.suspects.contract import address_in, and_more, gold_evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial, formula_values
from judge.suspects.model import About, Certainty, Suspect
from judge.workbook.address import cell_key, column_number

_ZERO = re.compile(r"(?<![\w.,])0(?![\w.,]\d|\w)|\bzeros?\b|\bzeroes\b", re.IGNORECASE)


class BlankAsZero:
    """Finds zeros in an answer that come from blank cells.

    A formula that refers to a blank cell shows 0. Anyone who copies or looks up values by hand, or
    by program, leaves the cell blank, and questions rarely say which is wanted.
    """

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
    joined = formula_values(case, {cell: f'({text})&""' for cell, text in zeros.items()})
    blank = {cell: zeros[cell] for cell, value in joined.items() if value in ("", None)}
    alone = formula_values(case, blank)
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


BLANK_AS_ZERO = BlankAsZero()


SHARE = 0.8
"""If a larger share of the filled rows breaks the rule, the question means another column."""

# "if column C (Sales $) is blank, the formula should return blank"
_RULE = re.compile(
    r"\b(?i:if|when|where)\b[^.;\n]{0,40}?\b(?:column|cell)\s+(?P<column>[A-Z]{1,2})\d*\b"
    r"(?!\s*(?:,|&|and\b|or\b))[^.;\n]{0,40}?\bis\s+(?:blank|empty)\b[^.;\n]{0,60}?"
    r"\b(?:be|return|leave|left|remain|stay|show|display)s?(?:\s+\w+){0,3}?\s+(?:blank|empty)\b"
)


class FilledBlank:
    """Finds rows that the gold fills in although the question wants them to stay blank."""

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


FILLED_BLANK = FilledBlank()
