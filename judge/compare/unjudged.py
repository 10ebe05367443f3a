"""The checker of tasks that the judge cannot decide; reports list them with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judge.compare.cells.computing import Compute
from judge.compare.contract import (
    Checker,
    Examination,
    GoldFaultError,
    Needs,
    Rules,
)
from judge.core.finding import Finding
from judge.core.submission import Answer
from judge.core.task import CheckerSpec, Gold, Task, TestCase


class UnjudgedChecker(Checker):
    """Gives no verdict.

    A suite gives the reason in the option ``left_out``, which every checker has.
    """

    name = "unjudged"

    def check_options(self, options: Mapping[str, object]) -> None:
        """Accepts any options: a command passes its options to all tasks of a suite."""

    def describe(self, spec: CheckerSpec) -> str:  # noqa: ARG002
        """Returns a line saying that nothing is judged."""
        return "not judged"

    def key(self, task: Task) -> Mapping[str, object]:  # noqa: ARG002
        """Returns only the name, because no option can change a finding that does not exist."""
        return {"checker": [self.name]}

    def needs(self, task: Task, case: TestCase, rules: Rules) -> Needs:  # noqa: ARG002
        """Needs no files."""
        return Needs(golds=False)

    def check(
        self,
        task: Task,
        case: TestCase,  # noqa: ARG002
        golds: Sequence[Gold],  # noqa: ARG002
        answer: Answer,  # noqa: ARG002
        compute: Compute,  # noqa: ARG002
        rules: Rules,  # noqa: ARG002
    ) -> Finding:
        """Always raises: there is nothing to compare.

        Raises:
            GoldFaultError: always.
        """
        raise GoldFaultError(f"the judge has no checker for task {task.id}")

    def examine(self, task: Task, case: TestCase, compute: Compute | None) -> Examination:  # noqa: ARG002
        """Returns an empty examination, as nothing is compared."""
        return Examination(units=0)

    def own_answers(self, task: Task, gold: Gold) -> Mapping[str, Answer]:  # noqa: ARG002
        """Returns no answers, since no answer is ever accepted."""
        return {}


CHECKER = UnjudgedChecker()
