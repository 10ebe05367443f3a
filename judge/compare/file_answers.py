"""What checkers of answers that are files have in common, unless they say otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judge.compare.contract import AnswerAreas, ComparedValue, Rules
from judge.core.answer import Answer, Origin
from judge.core.task import Gold, Task
from judge.workbook.reader import Workbook


class FileChecker:
    """Part of a checker whose answers are files: a gold is accepted as a finished one.

    It looks at whole files, so that reports have neither a grid of cells nor named values to show.
    """

    def own_answers(self, task: Task, gold: Gold) -> Mapping[str, Answer]:  # noqa: ARG002
        """The gold workbook; a value that Excel left in it is trusted."""
        return {"": Answer.of_workbook(gold.read(), Origin.FINISHED, gold.name)}

    def areas(self, task: Task, gold: Workbook, output: Workbook | None) -> AnswerAreas:  # noqa: ARG002
        """None: whole files count."""
        return AnswerAreas()

    def compared(
        self,
        task: Task,  # noqa: ARG002
        golds: Sequence[Gold],  # noqa: ARG002
        answer: Answer,  # noqa: ARG002
        rules: Rules,  # noqa: ARG002
    ) -> tuple[ComparedValue, ...]:
        """None: the answer is a file."""
        return ()
