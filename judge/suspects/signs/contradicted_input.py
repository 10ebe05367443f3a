"""Constants outside the answer that differ between the case's input and its gold.

Somebody changed an input value in one of the two files only, so the gold answers a question that no
program was given. Where the gold holds formulas, they decide what matters: they
are computed again with the input's own constants, and only answers that then differ count. The
engines are compared with themselves, with and without the change, never with the stored values
alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from judge.errors import JudgeError
from judge.suspects.books import CellAddress, agree
from judge.suspects.contract import address_in, and_more, counted, evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial, Traces, traces_of
from judge.suspects.model import Certainty, Evidence, EvidenceFile, Suspect
from judge.workbook.cell import CellValue

MAX_RESTORED = 2_000
"""Most constants of a gold that are replaced by the input's to see what follows."""


@dataclass(frozen=True, slots=True)
class Contradictions:
    """Cells outside the answer in which a gold and its input differ.

    Attributes:
        changed: both hold a constant, and not the same one.
        added: the input's cell is blank, the gold's holds a constant.
    """

    changed: tuple[CellAddress, ...]
    added: tuple[CellAddress, ...]


class ContradictedInput:
    """See :mod:`judge.suspects.signs.contradicted_input`."""

    name = "contradicted-input"
    title = "outside the answer, the gold and the input hold different constants"
    blind_spots = (
        "a constant that the gold changed within the answer range is not compared",
        (
            "values that a macro of the question changes on purpose look the same; where every "
            "case has the change in the same cells, the sign is weaker, or left out"
        ),
        ("formulas that reach cells through names of other workbooks or macros are not followed"),
        "in a gold of constants, only values that can be traced into the answer are sure",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """One suspect for each case whose gold contradicts its input."""
        by_case = {case.number: contradictions(case) for case in material.cases}
        for case in material.cases:
            mine = by_case[case.number]
            if not mine.changed and not mine.added:
                continue
            others = [by_case[other.number] for other in material.cases if other is not case]
            everywhere = _everywhere(mine, others)
            if case.answer_formulas:
                yield from self._with_formulas(material, case, mine, everywhere)
            else:
                elsewhere = [address for other in others for address in other.changed]
                yield from self._with_constants(material, case, mine, elsewhere)

    def _with_formulas(
        self,
        material: TaskMaterial,
        case: CaseMaterial,
        mine: Contradictions,
        everywhere: frozenset[CellAddress],
    ) -> Iterator[Suspect]:
        for addresses in (mine.changed, mine.added):
            if not addresses or len(addresses) > MAX_RESTORED:
                continue
            moved = what_moves(case, {address: case.input.value(address) for address in addresses})
            if not moved:
                continue
            own = [address for address in addresses if address not in everywhere]
            certainty = _certainty(case, addresses, own, added=addresses is mine.added)
            if addresses is mine.added and len(material.cases) == 1:
                certainty = Certainty.POSSIBLE  # nothing tells a fault from the solution's own work
            yield self._suspect(material, case, own or list(addresses), moved, certainty)
            return

    def _with_constants(
        self,
        material: TaskMaterial,
        case: CaseMaterial,
        mine: Contradictions,
        elsewhere: Sequence[CellAddress],
    ) -> Iterator[Suspect]:
        # A macro that changes its input does so in other rows in each case.
        columns = {(address.sheet, address.column) for address in elsewhere}
        own = [
            address
            for address in mine.changed
            if (address.sheet, address.column) not in columns and not _is_heading(case, address)
        ]
        if not own:
            return
        traces = traces_of(case.answer.values())
        traced = [address for address in own if _is_traced(case, address, traces)]
        if traced:
            certainty = Certainty.SURE
        else:
            alone = len(material.cases) == 1
            certainty = Certainty.POSSIBLE if alone or len(own) > FEW else Certainty.LIKELY
        yield self._suspect(material, case, traced or own, {}, certainty)

    def _suspect(
        self,
        material: TaskMaterial,
        case: CaseMaterial,
        addresses: Sequence[CellAddress],
        moved: Mapping[CellAddress, tuple[CellValue, CellValue]],
        certainty: Certainty,
    ) -> Suspect:
        first = addresses[0]
        gold, given = case.gold.value(first), case.input.value(first)
        cells: list[Evidence] = [
            evidence(
                EvidenceFile.GOLD,
                address,
                expected=case.input.value(address),
                found=case.gold.value(address),
                note="the input has the expected value",
            )
            for address in addresses[:LISTED]
        ]
        if moved:
            address, (was, now) = next(iter(moved.items()))
            why = (
                f"with the input's own values, the gold's formulas give {shown(now)} in "
                f"{address_in(case.gold, address)}, not {shown(was)} "
                f"({counted(len(moved), 'cell')} of the answer)"
            )
            cells += [
                evidence(
                    EvidenceFile.GOLD,
                    address,
                    expected=after,
                    found=before,
                    note="answer; expected with the input's values",
                )
                for address, (before, after) in moved.items()
            ]
        elif certainty is Certainty.SURE:
            why = "the answer holds the gold's value, which the input does not have"
        else:
            why = "a program is given the input's value, and the gold was made with another one"
        return suspect(
            material,
            case.number,
            self,
            certainty,
            f"the gold's {address_in(case.gold, first)} is {shown(gold)}, the input's is "
            f"{shown(given)}{and_more(len(addresses))}",
            why,
            cells,
        )


LISTED = 10
FEW = 20
HEADING_ROWS = 2


def contradictions(case: CaseMaterial) -> Contradictions:
    """Constants outside the answer in which a gold differs from its input."""
    changed, added = [], []
    for address in case.differences:
        if case.gold.formula(address) is not None or case.input.formula(address) is not None:
            continue
        if case.gold.value(address) is None:
            continue
        if case.input.value(address) is None:
            added.append(address)
        else:
            changed.append(address)
    return Contradictions(tuple(changed), tuple(added))


def what_moves(
    case: CaseMaterial,
    constants: Mapping[CellAddress, CellValue],
    formulas: Mapping[CellAddress, str] | None = None,
) -> dict[CellAddress, tuple[CellValue, CellValue]]:
    """Cells of the answer that the gold's formulas compute differently with other contents.

    Args:
        case: the case.
        constants: cell -> its constant.
        formulas: cell -> its formula, with the leading ``=``.

    Returns:
        Cell -> its value in the gold, and with these contents. Only cells for which the engines
        give the gold's value without the change are in it.
    """
    baseline = case.recomputed
    if not baseline:
        return {}
    try:
        restored = case.tools.edit(
            case.gold.workbook.data,
            {address.ref: value for address, value in constants.items()},
            {address.ref: text.removeprefix("=") for address, text in (formulas or {}).items()},
        )
        computed = case.tools.compute(restored, case.ranges)
    except JudgeError:
        return {}
    after = {CellAddress.of(ref): value for ref, value in computed.values.items()}
    return {
        address: (value, after[address])
        for address, value in sorted(baseline.items())
        if address in after
        and address not in case.changing
        and agree(case.answer.get(address), value)
        and not agree(value, after[address])
    }


def _everywhere(mine: Contradictions, others: Sequence[Contradictions]) -> frozenset[CellAddress]:
    """Cells in which every case differs: what the question itself changes."""
    common = {*mine.changed, *mine.added}
    if not others:
        return frozenset()
    for other in others:
        common &= {*other.changed, *other.added}
    return frozenset(common)


def _certainty(
    case: CaseMaterial, addresses: Sequence[CellAddress], own: Sequence[CellAddress], *, added: bool
) -> Certainty:
    if added:
        return Certainty.LIKELY if own else Certainty.POSSIBLE
    # A string that every case changes may be what the formulas are meant to look for; a number or
    # a date is data.
    data = any(not isinstance(case.gold.value(address), str) for address in addresses)
    return Certainty.SURE if own or data else Certainty.POSSIBLE


def _is_heading(case: CaseMaterial, address: CellAddress) -> bool:
    """Whether a cell is a string in the first rows, or directly above the answer."""
    if not isinstance(case.gold.value(address), str):
        return False
    return address.row <= HEADING_ROWS or any(
        area.sheet == address.sheet
        and area.min_column <= address.column <= area.max_column
        and area.min_row - HEADING_ROWS <= address.row < area.min_row
        for area in case.ranges
    )


def _is_traced(case: CaseMaterial, address: CellAddress, traces: Traces) -> bool:
    """Whether the answer holds the gold's value of a cell, and nowhere the input's."""
    gold, given = case.gold.value(address), case.input.value(address)
    return traces.holds(gold) and not traces.holds(given)


SIGN = ContradictedInput()
