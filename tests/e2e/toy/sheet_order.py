"""A checker in one file: compares the names of the output's sheets, in order."""

from __future__ import annotations

from collections.abc import Sequence

from judge.compare.cells.computing import Compute
from judge.compare.contract import (
    AnswerFaultError,
    Checker,
    Examination,
    GoldFaultError,
    Rules,
)
from judge.core.finding import (
    DifferenceLocation,
    Finding,
    FoundDifference,
    LocationKind,
    finding_of,
    nearest,
)
from judge.core.submission import Answer
from judge.core.task import Gold, Task, TestCase
from judge.errors import WorkbookError
from judge.workbook.reader import open_workbook


class SheetOrder(Checker):
    """Compares the names of the sheets, in order."""

    name = "sheet_order"

    def check(
        self,
        task: Task,
        case: TestCase,
        golds: Sequence[Gold],
        answer: Answer,
        compute: Compute,
        rules: Rules,
    ) -> Finding:
        """Compares an output with each gold."""
        try:
            names = open_workbook(answer.data).sheet_names
        except WorkbookError as error:
            raise AnswerFaultError(error.message) from error
        return nearest([(gold.name, _compare(_names(gold), names, rules)) for gold in golds])

    def examine(self, task: Task, case: TestCase, compute: Compute | None) -> Examination:
        """Counts the sheets."""
        return Examination(units=len(_names(case.golds[0])))


def _names(gold: Gold) -> Sequence[str]:
    try:
        return open_workbook(gold.read()).sheet_names
    except WorkbookError as error:
        raise GoldFaultError(f"{gold.name}: {error.message}") from error


def _compare(expected: Sequence[str], actual: Sequence[str], rules: Rules) -> Finding:
    differences = [
        FoundDifference(
            "sheet_order", DifferenceLocation(LocationKind.SHEET, str(at + 1)), want, have
        )
        for at in range(max(len(expected), len(actual)))
        if (want := expected[at] if at < len(expected) else None)
        != (have := actual[at] if at < len(actual) else None)
    ]
    return finding_of(differences, units=len(expected), max_kept=rules.max_differences)


CHECKER = SheetOrder()
