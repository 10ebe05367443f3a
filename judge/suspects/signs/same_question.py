"""Finds tasks with the same question and input that do not accept each other's golds."""

from __future__ import annotations

from collections.abc import Iterator

from judge.core.task import Task, TestCase
from judge.errors import GoldFaultError
from judge.grading.verify import refused_golds
from judge.suspects.contract import suspect
from judge.suspects.material import TaskMaterial, digest_of_file
from judge.suspects.model import About, Certainty, Evidence, EvidenceFile, Suspect


class SameQuestion:
    """See :mod:`judge.suspects.signs.same_question`."""

    name = "same-question"
    title = "another task has the same question and input, but a different gold"
    about = About.GOLD
    blind_spots = (
        "which of the two golds is wrong; if the question leaves it open, neither is",
        "questions that say the same in other words, and inputs that differ in any byte",
        "tasks that are judged with different options, such as another answer position",
    )

    def examine(self, material: TaskMaterial) -> Iterator[Suspect]:
        """Yields one suspect for each case that refuses all golds of another task's case."""
        for case in material.task.cases:
            for other, twin in _twins(material, case):
                try:
                    refused = refused_golds(material.judge, material.task, case, twin.golds)
                except GoldFaultError:
                    continue
                if len(refused) < len(twin.golds) or not refused:
                    continue
                yield suspect(
                    material,
                    case.number,
                    self,
                    Certainty.LIKELY,
                    f"task {other.id} has the same question and input, but its gold is refused "
                    f"here: {refused[0]}",
                    "one of the two golds is wrong, or the question leaves the answer open",
                    [Evidence(EvidenceFile.OTHER_CASE, note=f"task {other.id}: {refused[0]}")],
                )
                break


def _twins(material: TaskMaterial, case: TestCase) -> Iterator[tuple[Task, TestCase]]:
    own = [digest_of_file(file.path) for file in case.inputs]
    if None in own:
        return
    for other in material.same_question:
        if other.checker != material.task.checker:
            continue
        for twin in other.cases:
            if [digest_of_file(file.path) for file in twin.inputs] == own:
                yield other, twin


SIGN = SameQuestion()
