"""Cases that a run fails although it passes other cases of the same task.

A program that is right on two cases follows the rule of their golds. Where the third gold wants
something else, the gold more often follows a rule of its own than the program is wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from judge.suspects.books import CellAddress, agree
from judge.suspects.contract import address_in, and_more, counted, evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial, answer_of
from judge.suspects.model import Certainty, EvidenceFile, Suspect
from judge.workbook.cell import CellValue, ErrorValue

Answer = Mapping[CellAddress, CellValue]


class MixedVerdicts:
    """See :mod:`judge.suspects.signs.mixed_verdicts`."""

    name = "mixed-verdicts"
    title = "a run passes other cases of the task and fails this one"
    blind_spots = (
        "a program that is right by chance on easy cases fails the one that tells it apart",
        "a case that some run passes is only possible: its gold can be reached",
        "nothing is reported of tasks with one case, nor of outputs that hold errors",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """One suspect for each case that a run fails next to cases that it passes."""
        if len(material.cases) < 2:
            return
        answers = _answers(material)
        lost: dict[int, tuple[str, int]] = {}
        reached: set[int] = set()
        for run, by_case in answers.items():
            passed = {
                case.number
                for case in material.cases
                if case.number in by_case and not _differences(case, by_case[case.number])
            }
            reached |= passed
            for number in by_case.keys() - passed:
                if len(passed) > lost.get(number, ("", 0))[1]:
                    lost[number] = (run, len(passed))
        for case in material.cases:
            if case.number in lost:
                run, sisters = lost[case.number]
                answer = answers[run][case.number]
                yield from self._case(
                    material, case, run, sisters, answer, is_reached=case.number in reached
                )

    def _case(
        self,
        material: TaskMaterial,
        case: CaseMaterial,
        run: str,
        sisters: int,
        answer: Answer,
        *,
        is_reached: bool,
    ) -> Iterator[Suspect]:
        cells = _differences(case, answer)
        if any(isinstance(answer.get(address), ErrorValue) for address in cells):
            return
        # A single case in common can be chance; an answer that is wrong almost everywhere is more
        # probably the program's.
        few = len(cells) * 2 <= max(len(case.answer), 2)
        certain = sisters > 1 and few and not is_reached
        first = cells[0]
        yield suspect(
            material,
            case.number,
            self,
            Certainty.LIKELY if certain else Certainty.POSSIBLE,
            f"the gold's {address_in(case.gold, first)} is {shown(case.answer.get(first))}, {run} "
            f"has {shown(answer.get(first))}{and_more(len(cells))}",
            f"the run passes {counted(sisters, 'other case')} of the task",
            [
                evidence(
                    EvidenceFile.SUBMISSION,
                    address,
                    expected=answer.get(address),
                    found=case.answer.get(address),
                    note=f"{run} has the expected value",
                )
                for address in cells
            ],
        )


def _answers(material: TaskMaterial) -> dict[str, dict[int, Answer]]:
    """Run -> case number -> its answer; the last of several outputs of a case."""
    answers: dict[str, dict[int, Answer]] = defaultdict(dict)
    for case in material.cases:
        for output in material.tools.outputs.get((material.task.id, case.number), ()):
            answer = answer_of(material.task, case, output)
            if answer is not None:
                answers[output.run][case.number] = answer
    return answers


def _differences(case: CaseMaterial, answer: Answer) -> list[CellAddress]:
    """Cells in which an answer is not the gold's, in reading order."""
    return [
        address
        for address in sorted({*case.answer, *answer})
        if not agree(case.answer.get(address), answer.get(address))
    ]


SIGN = MixedVerdicts()
