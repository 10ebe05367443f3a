"""Finds golds that are outvoted: independent submissions agree on different cell values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from judge.console import counted
from judge.suspects.books import CellAddress, agree
from judge.suspects.contract import address_in, and_more, evidence, shown, suspect
from judge.suspects.material import CaseMaterial, ReadOutput, TaskMaterial
from judge.suspects.model import About, Certainty, EvidenceFile, Suspect
from judge.workbook.cell import CellValue


class Outvoted:
    """See :mod:`judge.suspects.signs.outvoted`."""

    name = "outvoted"
    title = "independent submissions agree with each other, and not with the gold"
    about = About.GOLD
    blind_spots = (
        (
            "submissions of one model are not independent: they share its misreadings of the "
            "question"
        ),
        (
            "two submissions can agree on a wrong answer, above all on a blank one; blank cells "
            "do not count against a gold that is not blank"
        ),
        "nothing is reported if fewer than two submissions wrote a readable output",
        (
            "outputs of the same program, or equal files, count as one vote; a program that was "
            "copied and changed counts as another voter"
        ),
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case that is outvoted."""
        for case in material.cases:
            voters = _one_of_each_program(material.outputs[case.number])
            if len(voters) > 1:
                yield from self._case(material, case, voters)

    def _case(
        self, material: TaskMaterial, case: CaseMaterial, voters: Sequence[ReadOutput]
    ) -> Iterator[Suspect]:
        answers = [voter.values for voter in voters]
        addresses = sorted({*case.answer, *(address for answer in answers for address in answer)})
        against: dict[CellAddress, tuple[CellValue, int]] = {}
        for address in addresses:
            value, votes = _majority([answer.get(address) for answer in answers])
            if votes < 2 or value is None:
                continue
            if votes * 2 > len(answers) and not agree(case.answer.get(address), value):
                against[address] = (value, votes)
        if not against:
            return
        all_of_them = [address for address, (_, votes) in against.items() if votes == len(answers)]
        # If a submission has the gold's whole answer, the gold is at least a reasonable reading.
        accepted = sum(
            all(agree(case.answer.get(address), answer.get(address)) for address in addresses)
            for answer in answers
        )
        if accepted:
            certainty = Certainty.POSSIBLE
        elif all_of_them and len(answers) > 2:
            certainty = Certainty.SURE
        elif all_of_them:
            certainty = Certainty.LIKELY
        else:
            certainty = Certainty.POSSIBLE
        first = (all_of_them or list(against))[0]
        value, votes = against[first]
        yield suspect(
            material,
            case.number,
            self,
            certainty,
            f"the gold's {address_in(case.gold, first)} is {shown(case.answer.get(first))}, "
            f"{votes} of {len(answers)} submissions have {shown(value)}{and_more(len(against))}",
            f"{counted(len(against), 'cell')} of the answer outvoted; {accepted} of "
            f"{len(answers)} submissions give the gold's whole answer",
            [
                evidence(
                    EvidenceFile.SUBMISSION,
                    address,
                    expected=value,
                    found=case.answer.get(address),
                    note=f"{votes} of {len(answers)} submissions have the expected value",
                )
                for address, (value, votes) in against.items()
            ],
        )


def _one_of_each_program(outputs: Sequence[ReadOutput]) -> list[ReadOutput]:
    """Selects outputs of one case, only one for each program."""
    voters: dict[str, ReadOutput] = {}
    for number, read in enumerate(outputs):
        voters.setdefault(read.output.program or str(number), read)
    return list(voters.values())


def _majority(values: Sequence[CellValue]) -> tuple[CellValue, int]:
    """Returns the value that most submissions have, and how many have it."""
    groups: list[tuple[CellValue, int]] = []
    for value in values:
        for index, (other, votes) in enumerate(groups):
            if agree(other, value):
                groups[index] = (other, votes + 1)
                break
        else:
            groups.append((value, 1))
    return max(groups, key=lambda group: group[1])


SIGN = Outvoted()
