"""Finds formulas that fill a column of the input and that the gold replaces in some rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from judge.console import counted
from judge.suspects.books import CellAddress
from judge.suspects.contract import address_in, and_more, evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial, apart_by_rewriting
from judge.suspects.model import About, Certainty, EvidenceFile, Suspect
from judge.suspects.signs.contradicted_input import MAX_RESTORED, what_moves
from judge.suspects.signs.odd_formula import rule_of_column
from judge.workbook.cell import CellValue


class BrokenColumn:
    """See :mod:`judge.suspects.signs.broken_column`."""

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
    """Returns whether the gold has other content than the input's formula, and is not blank."""
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


SIGN = BrokenColumn()
