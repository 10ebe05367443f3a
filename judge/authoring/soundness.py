"""Whether a task that is being written tells right from wrong: its golds, its untouched inputs."""

from __future__ import annotations

from collections.abc import Sequence

from judge.compare.profiles import get_profile
from judge.core.task import Task
from judge.core.verdict import Verdict
from judge.grading.case import CaseJudge, GradingRules
from judge.grading.verify import CaseCheck, verify_case
from judge.recalc.policy import Recalculator
from judge.suites.validate import Severity, SuiteFinding


def check_verdicts(task: Task) -> Sequence[SuiteFinding]:
    """Checks a task as ``judge verify`` does, with the values that its files store.

    A gold that is not accepted is an error; so are untouched inputs if those of all cases are
    accepted. What depends on formulas without a stored value stays open.
    """
    judge = CaseJudge(Recalculator((), mode="never"), GradingRules(get_profile("standard")))
    checks = [verify_case(task, case, judge) for case in task.cases]
    findings = [_refused(task, check) for check in checks if not check.gold_accepted]
    passed = [check for check in checks if check.untouched_accepted]
    everywhere = len(passed) == len(checks)
    findings.extend(
        SuiteFinding(
            Severity.ERROR if everywhere else Severity.WARNING,
            task.id,
            f"case {check.case}",
            "the untouched input is accepted: the task asks for nothing that it lacks",
        )
        for check in passed
    )
    return findings


def _refused(task: Task, check: CaseCheck) -> SuiteFinding:
    # NC: the checker wants a value that no engine has computed yet.
    if check.gold_problem.startswith(Verdict.NC):
        message = "formulas of the gold have no stored value; `judge verify` computes them"
        return SuiteFinding(Severity.WARNING, task.id, f"case {check.case}", message)
    message = f"the gold is not accepted as its own answer: {check.gold_problem}"
    return SuiteFinding(Severity.ERROR, task.id, f"case {check.case}", message)
