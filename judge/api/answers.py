"""Answers as callers of the library give them, and what the judge says about one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from judge.core.score import SubmissionScore, score_submission
from judge.core.submission import Submission
from judge.core.task import Task, TestCase
from judge.core.verdict import CaseResult, Verdict
from judge.errors import UsageError
from judge.grading.jobs import CaseJob, Job, JudgedCase
from judge.grading.keys import CaseKeys
from judge.grading.running import outcome_of_output, read_output

FinishedWorkbook = bytes | str | Path | None
"""A workbook, or where it is; None where none was handed in."""

Workbooks = bytes | Path | Sequence[FinishedWorkbook] | Mapping[int, FinishedWorkbook]
"""The workbooks of a task's cases: in case order, by the number of the case, or the only one."""

GivenAnswer = Submission | str | Workbooks
"""A submission; text (a program, a reply that holds one, a typed answer); or finished workbooks."""

NOT_KEPT = CaseKeys("", "")
"""What is not kept on disk is not looked up there either."""


@dataclass(frozen=True, slots=True)
class JudgedSubmission:
    """What the judge says about one submission on all cases of its task.

    Attributes:
        task_id: the task's id as text.
        sample: number of the submission among those of its task.
        cases: one result for each case, in case order.
        score: the scores; None in it where no case could be scored, which is neither right nor
            wrong.
        outputs: case number -> what the program left there; not for finished workbooks.
    """

    task_id: str
    sample: int
    cases: tuple[CaseResult, ...]
    score: SubmissionScore
    outputs: Mapping[int, bytes] = field(default_factory=dict)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdict of each case, in case order."""
        return tuple(case.verdict for case in self.cases)

    @property
    def soft(self) -> float | None:
        """Share of the scored cases that are accepted; None if none is scored."""
        return self.score.soft

    @property
    def hard(self) -> float | None:
        """1.0 if all scored cases are accepted, otherwise 0.0; None if none is scored."""
        return self.score.hard

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        """The cases that the judge itself failed on (JE), which may be tried again."""
        return tuple(case for case in self.cases if case.verdict is Verdict.JE)


def judged_submission(job: Job, judged: Sequence[JudgedCase]) -> JudgedSubmission:
    """All cases of a job together, with the scores."""
    results = {each.result.case: each.result for each in judged}
    cases = tuple(results[case.case.number] for case in job.cases)
    verdicts = [case.verdict for case in cases]
    return JudgedSubmission(
        task_id=job.task.id,
        sample=job.sample,
        cases=cases,
        score=score_submission(job.task.id, job.sample, verdicts),
        outputs={each.result.case: each.output for each in judged if each.output is not None},
    )


def finished_cases(task: Task, workbooks: Workbooks) -> tuple[CaseJob, ...]:
    """The cases of a task with the finished workbooks that answer them.

    Raises:
        UsageError: they do not fit the cases, or the task does not ask for workbooks.
    """
    given = _by_case(task, workbooks)
    return tuple(_finished(task, case, given.get(case.number)) for case in task.cases)


def _by_case(task: Task, workbooks: Workbooks) -> Mapping[int, FinishedWorkbook]:
    """The finished workbooks by the number of the case."""
    if not task.answer.is_file:
        raise UsageError(f"task {task.id} asks for {task.answer.noun}: give it as text")
    numbers = [case.number for case in task.cases]
    if isinstance(workbooks, Mapping):
        if unknown := sorted(workbooks.keys() - set(numbers)):
            raise UsageError(f"task {task.id} has no case {', '.join(map(str, unknown))}")
        return workbooks
    if not isinstance(workbooks, Path) and not hasattr(workbooks, "__iter__"):
        raise UsageError(
            f"task {task.id}: an answer is text or workbooks, not {type(workbooks).__name__}",
            hint="An empty text stands for a reply without content.",
        )
    given = [workbooks] if isinstance(workbooks, bytes | Path) else list(workbooks)
    if len(given) != len(numbers):
        raise UsageError(
            f"task {task.id} has {len(numbers)} cases, and {len(given)} workbooks were given",
            hint="Give one for each case, None where there is none, or by case number.",
        )
    return dict(zip(numbers, given, strict=True))


def _finished(task: Task, case: TestCase, workbook: FinishedWorkbook) -> CaseJob:
    """A case with the workbook that answers it."""
    if isinstance(workbook, bytes):
        _, outcome = outcome_of_output(workbook, "output")
    else:
        path = None if workbook is None else Path(workbook)
        _, outcome = read_output(path, task.answer.missing)
    return CaseJob(case, NOT_KEPT, outcome)
