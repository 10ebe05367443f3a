"""Tasks that a strong run fails in every case.

A program that is wrong fails the cases that tell it apart, and passes some. One that fails all of
them misread the question, or the golds want what the question does not say. For a run that passes
most tasks, the second is more probable: it reads well, and its mistakes are few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from judge.suspects.books import agree
from judge.suspects.contract import address_in, and_more, evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial
from judge.suspects.model import About, Certainty, EvidenceFile, Suspect
from judge.suspects.signs.mixed_verdicts import STRONG, Answer, answers_of, differences_from
from judge.workbook.cell import ErrorValue

MIN_CASES = 2
"""Cases that a run has to answer, and fail: one alone shows nothing."""


class FailedTask:
    """See :mod:`judge.suspects.signs.failed_task`."""

    name = "failed-task"
    title = "a strong run fails every case of the task"
    about = About.GOLD
    blind_spots = (
        "a question that is hard, or that everybody misreads in the same way, looks the same",
        "in a suite whose golds have been checked, the program is at fault more often",
        (
            "a run that passes less than two thirds of its cases, or has no verdicts on record, "
            "makes a case only possible; judge score puts verdicts on record"
        ),
        "nothing is reported of tasks with one case, nor of outputs that hold errors",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """One suspect for each case of a task that the strongest of its runs fails throughout."""
        by_run = answers_of(material)
        lost: list[tuple[float, str, dict[int, Answer]]] = []
        for run, (strength, answers) in by_run.items():
            failed = {
                case.number: answers[case.number]
                for case in material.cases
                if case.number in answers and differences_from(case, answers[case.number])
            }
            if len(failed) < len(answers):
                return  # the golds can be reached
            if len(failed) >= MIN_CASES:
                lost.append((strength or 0.0, run, failed))
        if lost:
            strength, run, failed = max(lost, key=lambda loss: loss[0])
            for case in material.cases:
                if case.number in failed:
                    yield from self._case(material, case, run, strength, failed[case.number])

    def _case(
        self, material: TaskMaterial, case: CaseMaterial, run: str, strength: float, answer: Answer
    ) -> Iterator[Suspect]:
        cells = differences_from(case, answer)
        if any(isinstance(answer.get(address), ErrorValue) for address in cells):
            return
        if not any(
            not agree(case.answer.get(address), case.input.value(address)) for address in cells
        ):
            return  # the gold leaves the input as it is: the case says nothing
        first = cells[0]
        yield suspect(
            material,
            case.number,
            self,
            Certainty.LIKELY if strength >= STRONG else Certainty.POSSIBLE,
            f"the gold's {address_in(case.gold, first)} is {shown(case.answer.get(first))}, "
            f"{run} has {shown(answer.get(first))}{and_more(len(cells))}",
            "the run fails every case of the task, and passes "
            + (
                f"{strength:.0%} of all its cases"
                if strength
                else "how many others is not on record"
            ),
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


SIGN = FailedTask()
