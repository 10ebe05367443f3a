"""Finds tasks that a strong run fails in every case.

A wrong program usually passes some cases. A program that fails all of them either misread the
question, or the golds require something that the question does not say. The question is misread
about as often as the gold is at fault, so the sign alone is only possible. It is likely if the
program has most of the gold's cells, which a misreading would have changed, or if the question has
the strings of the program and not those of the gold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from judge.suspects.books import agree
from judge.suspects.contract import address_in, and_more, evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial
from judge.suspects.model import About, Certainty, EvidenceFile, Suspect
from judge.suspects.signs.mixed_verdicts import (
    STRONG,
    Answer,
    Leaning,
    answers_of,
    differences_from,
    leaning_of,
)
from judge.workbook.cell import ErrorValue

MIN_CASES = 2
"""How many cases of a task a run must answer and fail; a single one proves nothing."""

MAX_SHARE = 1 / 3
"""A run seems to know the rule if at most this share of the cells differs in each failed case."""


class FailedTask:
    """See :mod:`judge.suspects.signs.failed_task`."""

    name = "failed-task"
    title = "a strong run fails every case of the task"
    about = About.GOLD
    blind_spots = (
        "a hard question, or one that everybody misreads in the same way, looks the same",
        "in a suite whose golds have been checked, the program is at fault more often",
        (
            "if a run passes less than two thirds of its cases, or has no verdicts on record, the "
            "case is only listed as possible; judge score records verdicts"
        ),
        (
            "it is also only possible if more than a third of the answer differs and neither the "
            "question's words nor another sign support the run"
        ),
        "tasks with one case, and outputs that contain errors, are not reported",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case of a task if its strongest run fails all the cases."""
        by_run = answers_of(material)
        lost: list[tuple[float, str, dict[int, Answer]]] = []
        for run, (strength, answers) in by_run.items():
            failed = {
                case.number: answers[case.number]
                for case in material.cases
                if case.number in answers and differences_from(case, answers[case.number])
            }
            if len(failed) < len(answers):
                return  # a program can produce the golds
            if len(failed) >= MIN_CASES:
                lost.append((strength or 0.0, run, failed))
        if lost:
            strength, run, failed = max(lost, key=lambda loss: loss[0])
            is_near = all(
                len(differences_from(case, failed[case.number])) <= MAX_SHARE * len(case.answer)
                for case in material.cases
                if case.number in failed
            )
            for case in material.cases:
                if case.number in failed:
                    answer = failed[case.number]
                    yield from self._case(material, case, run, strength, answer, is_near=is_near)

    def _case(
        self,
        material: TaskMaterial,
        case: CaseMaterial,
        run: str,
        strength: float,
        answer: Answer,
        *,
        is_near: bool,
    ) -> Iterator[Suspect]:
        cells = differences_from(case, answer)
        if any(isinstance(answer.get(address), ErrorValue) for address in cells):
            return
        if not any(
            not agree(case.answer.get(address), case.input.value(address)) for address in cells
        ):
            return  # the gold equals the input: the case tests nothing
        first = cells[0]
        leaning = leaning_of(material.task.instruction, case, cells, answer)
        is_likely = strength >= STRONG and (
            leaning is Leaning.ANSWER or (is_near and leaning is not Leaning.GOLD)
        )
        yield suspect(
            material,
            case.number,
            self,
            Certainty.LIKELY if is_likely else Certainty.POSSIBLE,
            f"the gold's {address_in(case.gold, first)} is {shown(case.answer.get(first))}, "
            f"{run} has {shown(answer.get(first))}{and_more(len(cells))}",
            "the run fails every case of the task, and "
            + (
                f"passes {strength:.0%} of all its cases"
                if strength
                else "its share of passed cases is not on record"
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
