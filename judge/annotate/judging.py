"""Judging workbooks that are not on disk yet: a case that somebody works on."""

from __future__ import annotations

from judge.core.limits import Limits
from judge.core.submission import Answer, Origin, Submission
from judge.core.task import Gold, Task, TestCase
from judge.grading.case import CaseJudge, Judgement
from judge.grading.running import RunOutcome, run_program
from judge.sandbox.contract import SandboxSession


def judge_workbooks(
    judge: CaseJudge, task: Task, gold: bytes, output: bytes, *, origin: Origin
) -> Judgement:
    """Judges an output workbook by a gold workbook.

    Args:
        judge: judges it.
        task: whose checker counts.
        gold: the gold workbook.
        output: the output workbook; read as the hostile file that it may be.
        origin: where the output comes from.
    """
    case = TestCase(1, (), (Gold(data=gold),))
    return judge.judge(task, case, Answer.of_workbook(output, origin))


def run_on_workbook(
    session: SandboxSession, submission: Submission, input_data: bytes, limits: Limits
) -> RunOutcome:
    """Runs a submission on an input workbook.

    Raises:
        SandboxError: the sandbox failed, not the program.
    """
    return run_program(session, submission, {submission.input_path: input_data}, limits)
