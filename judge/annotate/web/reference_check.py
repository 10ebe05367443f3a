"""Whether reference solutions are right where the answer is known: on the case as it was."""

from __future__ import annotations

from collections.abc import Sequence

from judge.annotate.annotator import Annotator
from judge.annotate.casebook import CaseData
from judge.annotate.gold import FORMULAS
from judge.annotate.judging import judge_workbooks
from judge.compare.profiles import get_profile
from judge.core.submission import Origin, Submission
from judge.core.task import Task
from judge.core.verdict import Verdict
from judge.grading.case import CaseJudge, GradingRules


def wrong_references(
    annotator: Annotator, task: Task, base: CaseData, references: Sequence[Submission]
) -> tuple[str, ...]:
    """Runs each reference on a case whose gold is known.

    Args:
        annotator: runs and judges.
        task: the task.
        base: the case.
        references: solutions that are presumed to be right.

    Returns:
        A line for each that gets the case wrong.

    Raises:
        SandboxError: the sandbox failed.
    """
    if not references:
        return ()
    proposal = annotator.maker.propose(task, base, (), references=references)
    judge = CaseJudge(annotator.recalculator, GradingRules(get_profile("standard")))
    wrong = []
    for source in proposal.sources:
        if source.name == FORMULAS or source.data is None:
            continue
        judgement = judge_workbooks(judge, task, base.gold, source.data, origin=Origin.SOLUTION)
        if judgement.error is not None:
            raise judgement.error
        if judgement.verdict is not Verdict.AC:
            wrong.append(
                f"{source.name} gets case {base.number} wrong as it was: {judgement.cause}"
            )
    return tuple(wrong)
