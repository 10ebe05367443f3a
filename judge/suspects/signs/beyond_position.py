"""Finds cells that the gold fills but the answer position does not include."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from judge.console import counted
from judge.formulas.shift import shift_formula
from judge.suspects.books import CellAddress, same_constant
from judge.suspects.contract import address_in, and_more, evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial
from judge.suspects.model import About, Certainty, EvidenceFile, Suspect
from judge.workbook.address import COLUMN_BITS
from judge.workbook.cell import CellRange


class BeyondPosition:
    """Finds cells that the gold fills but the answer position does not include.

    A gold fills a block of cells, and the answer position covers only part of it: a first row, a
    last row or a column is never compared. A program that does not fill those cells is still
    accepted.
    """

    name = "beyond-position"
    title = "the gold continues beyond the answer position"
    about = About.CASE
    blind_spots = (
        "headings that the gold adds above the answer are left out: no question asks for them",
        "only a reader can tell whether the question asks for the cells that are not compared",
        "work on other sheets, or apart from the answer, is only listed as possible",
        "rows that the gold deletes further down are not seen",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case whose gold fills cells outside the answer position."""
        for case in material.cases:
            yield from self._case(material, case)

    def _case(self, material: TaskMaterial, case: CaseMaterial) -> Iterator[Suspect]:
        written = [address for address in case.differences if _is_written(case, address)]
        emptied = [address for address in case.differences if _is_emptied_below(case, address)]
        if not (written or emptied) or not case.answer_addresses:
            return
        adjoining = emptied + [address for address in written if _adjoins(case, address)]
        cells = adjoining or written
        first = cells[0]
        certainty = Certainty.LIKELY if adjoining else Certainty.POSSIBLE
        why = (
            "the cells adjoin what the gold wrote within the position, but are never compared"
            if adjoining
            else "the gold has work outside the position, which is never compared"
        )
        yield suspect(
            material,
            case.number,
            self,
            certainty,
            f"{_work(case, first)}, outside the answer position{and_more(len(cells))}",
            f"{why} ({counted(len(written) + len(emptied), 'cell')} outside in all)",
            [
                evidence(
                    EvidenceFile.GOLD,
                    address,
                    expected=case.input.value(address),
                    found=case.gold.value(address),
                    note="outside the answer position",
                )
                for address in cells
            ],
        )


def _is_written(case: CaseMaterial, address: CellAddress) -> bool:
    """Returns whether the gold has content in a cell that the input does not have there."""
    value = case.gold.value(address)
    if value is None:
        return False
    if case.gold.formula(address) != case.input.formula(address):
        return True
    return not same_constant(value, case.input.value(address))


def _is_emptied_below(case: CaseMaterial, address: CellAddress) -> bool:
    """Returns whether the gold emptied a cell directly below an answer whose last row it changed.

    Deleting rows has this effect.
    """
    if case.gold.value(address) is not None or case.gold.formula(address) is not None:
        return False
    above = CellAddress(address.sheet, (address.row - 1) << COLUMN_BITS | address.column)
    return any(
        area.sheet == address.sheet
        and area.min_column <= address.column <= area.max_column
        and address.row == area.max_row + 1
        for area in case.ranges
    ) and not same_constant(case.gold.value(above), case.input.value(above))


def _work(case: CaseMaterial, address: CellAddress) -> str:
    """Describes what the gold did to a cell."""
    name = address_in(case.gold, address)
    if case.gold.value(address) is None:
        return f"the gold empties {name}"
    return f"the gold writes {shown(case.gold.value(address))} in {name}"


def _adjoins(case: CaseMaterial, address: CellAddress) -> bool:
    """Returns whether a cell continues what the gold wrote at an edge of the answer.

    Above and below, both cells must be of the same kind, since a string above numbers is a heading.
    To its side, both must have the same formula, filled sideways; other columns may be helpers.
    """
    for area in case.ranges:
        if area.sheet != address.sheet:
            continue
        inside = _neighbour(area, address)
        if inside is None or not _is_written(case, inside):
            continue
        if inside.column == address.column:
            if _is_of_one_kind(case, address, inside):
                return True
        elif _is_filled(case, address, inside):
            return True
    return False


def _neighbour(area: CellRange, address: CellAddress) -> CellAddress | None:
    """Returns the cell of a rectangle next to a cell outside it; None if they do not touch."""
    row = min(max(address.row, area.min_row), area.max_row)
    column = min(max(address.column, area.min_column), area.max_column)
    if abs(row - address.row) + abs(column - address.column) != 1:
        return None
    return CellAddress(address.sheet, row << COLUMN_BITS | column)


def _is_of_one_kind(case: CaseMaterial, first: CellAddress, second: CellAddress) -> bool:
    kinds = {
        (isinstance(case.gold.value(address), str), case.gold.formula(address) is None)
        for address in (first, second)
    }
    return len(kinds) == 1


def _is_filled(case: CaseMaterial, address: CellAddress, inside: CellAddress) -> bool:
    """Returns whether two cells of a row have the same formula, filled sideways."""
    formula, other = case.gold.formula(address), case.gold.formula(inside)
    if formula is None or other is None:
        return False
    return shift_formula(other, 0, address.column - inside.column) == formula


BEYOND_POSITION = BeyondPosition()
