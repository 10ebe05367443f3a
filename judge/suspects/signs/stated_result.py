"""Finds results that the question states and the input shows, and that the gold changes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from judge.suspects.books import CellAddress, agree
from judge.suspects.contract import address_in, and_more, gold_evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial
from judge.suspects.model import About, Certainty, Suspect

# "which should give me a result of 25", "the correct answer is 1,200.5", "resulting in 60".
_STATED = re.compile(
    r"\b(?:(?:should|would|must)\s+(?:\w+\s+){0,2}?"
    r"(?:be|equal|give|return|show|display|result\s+in)(?:\s+\w+){0,4}?"
    r"|(?:result|answer|total|value)\s+(?:is|of|should\s+be)|resulting\s+in)"
    r"\s+(?P<number>-?\d[\d,]*(?:\.\d+)?)(?![\w%/:])",
    re.IGNORECASE,
)


class StatedResult:
    """See :mod:`judge.suspects.signs.stated_result`."""

    name = "stated-result"
    title = "the question states a result that the input shows, and the gold has another value"
    about = About.GOLD
    blind_spots = (
        "only numbers that follow words such as 'should give' or 'resulting in' count",
        "a result that the input does not show in a cell of the answer cannot be located",
        "a stated number can be equal by chance to a wrong value that the question wants corrected",
    )

    def examine(self, material: TaskMaterial) -> Iterator[Suspect]:
        """Yields one suspect for each case whose gold changes a stated result."""
        stated = {
            float(match["number"].replace(",", ""))
            for match in _STATED.finditer(material.task.instruction)
        }
        if stated:
            for case in material.cases:
                cells = _changed_results(case, stated)
                if cells:
                    yield self._suspect(material, case, cells)

    def _suspect(
        self, material: TaskMaterial, case: CaseMaterial, cells: list[CellAddress]
    ) -> Suspect:
        first = cells[0]
        return suspect(
            material,
            case.number,
            self,
            Certainty.LIKELY,
            f"the gold's {address_in(case.gold, first)} is {shown(case.answer.get(first))}, the "
            f"question states {shown(case.input.value(first))}{and_more(len(cells))}",
            "the input shows the stated result in the same cell",
            gold_evidence(
                case,
                cells,
                expected={cell: case.input.value(cell) for cell in cells},
                note="expected as the question states it",
            ),
        )


def _changed_results(case: CaseMaterial, stated: set[float]) -> list[CellAddress]:
    """Finds answer cells in which the gold changes a stated value to one that is not stated."""
    if case.ranges != case.input_ranges:
        return []
    return [
        address
        for address, value in sorted(case.answer.items())
        if _is_among(case.input.value(address), stated)
        and not agree(value, case.input.value(address))
        and not _is_among(value, stated)
    ]


def _is_among(value: object, stated: set[float]) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and float(value) in stated


SIGN = StatedResult()
