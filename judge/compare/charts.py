"""The checker of tasks about charts whose published judge is a vision model."""

from __future__ import annotations

from collections.abc import Sequence

from judge.compare.chart_share import compare_charts
from judge.compare.unjudged import UnjudgedChecker
from judge.core.answer import Answer
from judge.core.records.cases import CaseComparison, ChartsRecord
from judge.core.task import Gold, Task
from judge.errors import WorkbookError
from judge.workbook.reader import open_workbook


class ChartsChecker(UnjudgedChecker):
    """Decides nothing, but says how much of the gold's charts an output has."""

    name = "charts"

    def measure(self, task: Task, golds: Sequence[Gold], answer: Answer) -> CaseComparison:  # noqa: ARG002
        """The figure, with the first gold; an output that cannot be read has nothing of it.

        Raises:
            WorkbookError: the gold is not a readable workbook.
            GoldFaultError: the gold cannot be read.
        """
        if not golds or not answer.files:
            return {}
        gold = open_workbook(golds[0].read())
        try:
            output = open_workbook(answer.data)
            with output.package.budget.working():
                found = compare_charts(gold, output)
        except WorkbookError as error:
            if error.culprit is gold.package:
                raise
            nothing: ChartsRecord = {"gold": 0, "output": 0, "share": 0.0, "charts": []}
            return {"charts": nothing, "notes": [f"the output cannot be read: {error.message}"]}
        return {"charts": found}


CHECKER = ChartsChecker()
