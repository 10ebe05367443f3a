"""Examples of the answer that the input holds, and that the gold contradicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from judge.suspects.books import CellAddress, agree, same_constant
from judge.suspects.contract import address_in, and_more, counted, evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial
from judge.suspects.model import About, Certainty, Evidence, EvidenceFile, Suspect
from judge.workbook.cell import CellValue

MIN_EXAMPLES = 2
SHARE = 0.6
"""Share of the constants in the input's answer range that the gold has as well, so that they count
as examples."""


class ContradictedExample:
    """See :mod:`judge.suspects.signs.contradicted_example`."""

    name = "contradicted-example"
    title = "the input shows an example of the answer, and the gold has another value there"
    about = About.GOLD
    blind_spots = (
        (
            "what the input has in the answer range may be what is wrong and to be corrected; it "
            "counts as examples only if the gold keeps most of it"
        ),
        (
            "examples that a later case took over from case 1 without a change are left out: they "
            "were simply not computed again"
        ),
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """One suspect for each case whose examples the gold contradicts."""
        if not material.cases:
            return
        first = material.cases[0]
        for case in material.cases:
            yield from self._case(material, case, first)

    def _case(
        self, material: TaskMaterial, case: CaseMaterial, first: CaseMaterial
    ) -> Iterator[Suspect]:
        if case.ranges != case.input_ranges or not case.answer_formulas:
            return
        same, apart = 0, []
        for address in case.answer_formulas:
            given = case.input.value(address)
            if given is None or case.input.formula(address) is not None:
                continue
            if agree(case.answer.get(address), given) or _noise(case.answer.get(address), given):
                same += 1
            elif case is first or not same_constant(given, first.input.value(address)):
                apart.append(address)
        if not apart or same < MIN_EXAMPLES or same < SHARE * (same + len(apart)):
            return
        address = apart[0]
        yield suspect(
            material,
            case.number,
            self,
            Certainty.LIKELY if case is not first else Certainty.POSSIBLE,
            f"the gold's {address_in(case.gold, address)} is {shown(case.answer.get(address))}, "
            f"the input shows {shown(case.input.value(address))} there{and_more(len(apart))}",
            f"the gold has the other {counted(same, 'example')} of the input as they are",
            [_evidence(case, address) for address in apart],
        )


def _evidence(case: CaseMaterial, address: CellAddress) -> Evidence:
    return evidence(
        EvidenceFile.GOLD,
        address,
        expected=case.input.value(address),
        found=case.answer.get(address),
        note="expected as the input shows it",
    )


def _noise(first: CellValue, second: CellValue) -> bool:
    """Whether two values are the same but for spaces and letter case."""
    return str(first).split() == str(second).split()


SIGN = ContradictedExample()
