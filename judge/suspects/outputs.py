"""Shows the cells of a suspect in input, gold and outputs, and weighs the answers of runs there.

A program only gets the input. If its output has the value that a sign expects, the sign is
confirmed. If it has the gold's value, that value follows from the input after all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from judge.compare.cells.render import value_to_json
from judge.errors import JudgeError
from judge.suspects.books import CellAddress, agree
from judge.suspects.material import CaseMaterial, ReadOutput, TaskMaterial
from judge.suspects.model import (
    About,
    Certainty,
    Evidence,
    EvidenceFile,
    Held,
    RunVerdict,
    SeenCell,
    Suspect,
)
from judge.workbook.address import cell_key, parse_cell

MAX_SEEN = 12
"""How many cells are shown side by side for each suspect."""


def with_outputs(material: TaskMaterial, suspect: Suspect) -> Suspect:
    """Adds the cells side by side, and adjusts the certainty to the answers of runs.

    If the answer cannot be computed, the suspect is returned unchanged.
    """
    case = None if suspect.case is None else material.case(suspect.case)
    if case is None:
        return suspect
    outputs = material.outputs[case.number]
    try:
        weighed = _weighed(case, suspect, outputs) if suspect.about is About.GOLD else suspect
        seen = tuple(_seen(case, suspect, outputs))
    except JudgeError:
        return suspect
    runs = tuple(RunVerdict(read.output.run, read.output.verdict) for read in outputs)
    return replace(weighed, seen=seen, runs=runs)


def _weighed(case: CaseMaterial, suspect: Suspect, outputs: Sequence[ReadOutput]) -> Suspect:
    """Makes a suspect surer if a run has the expected value, less sure if it has the gold's."""
    cells = [
        (address, item)
        for item in suspect.evidence
        if item.file is EvidenceFile.GOLD and item.case is None
        if (address := _address(item)) is not None
        and case.in_answer(address)
        and address not in case.changing
    ]
    if not cells or not outputs:
        return suspect
    confirming = [read for read in outputs if all(_is_expected(read, *cell) for cell in cells)]
    reached = [
        read
        for read in outputs
        if all(agree(read.values.get(cell), case.answer.get(cell)) for cell, _ in cells)
    ]
    order = list(Certainty)
    if confirming and not reached:
        certainty = order[max(suspect.certainty.rank - 1, 0)]
        why = f"{suspect.why}; {confirming[0].output.run} has the expected value"
    elif reached and not confirming:
        certainty = order[min(suspect.certainty.rank + 1, len(order) - 1)]
        why = f"{suspect.why}; but {reached[0].output.run} has the gold's value"
    else:
        return suspect
    return replace(suspect, certainty=certainty, why=why)


def _is_expected(read: ReadOutput, address: CellAddress, item: Evidence) -> bool:
    value = read.values.get(address)
    if isinstance(item.expected, int | float) and isinstance(value, int | float):
        return agree(item.expected, value)
    return item.expected is not None and value_to_json(value) == item.expected


def _address(item: Evidence) -> CellAddress | None:
    place = parse_cell(item.cell)
    return None if place is None else CellAddress(item.sheet, cell_key(*place))


def _seen(
    case: CaseMaterial, suspect: Suspect, outputs: Sequence[ReadOutput]
) -> Iterator[SeenCell]:
    """Yields the first cells of the evidence in this case's files, side by side."""
    addresses = dict.fromkeys(
        address
        for item in suspect.evidence
        if item.case is None and (address := _address(item)) is not None
    )
    for address in list(addresses)[:MAX_SEEN]:
        inside = case.in_answer(address)
        yield SeenCell(
            sheet=address.sheet,
            cell=address.name,
            in_answer=inside,
            input=Held(value_to_json(case.input.value(address)), case.input.formula(address) or ""),
            gold=Held(
                value_to_json(case.answer.get(address) if inside else case.gold.value(address)),
                case.gold.formula(address) or "",
            ),
            outputs={
                read.output.run: Held(
                    value_to_json(read.values.get(address)), read.formulas.get(address, "")
                )
                for read in outputs
                if inside
            },
        )
