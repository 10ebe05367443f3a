"""Jobs: what a worker needs to judge a submission, and what it gives back.

A job can be pickled and says everything: the files of a case by their paths, the program as text,
what is on record of an earlier run. A worker gives back results and bytes; it writes nothing.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from judge.core.limits import Limits
from judge.core.submission import Submission
from judge.core.task import Task, TestCase
from judge.core.verdict import CaseResult, Verdict
from judge.errors import SandboxError
from judge.grading.case import CaseJudge
from judge.grading.keys import CaseKeys
from judge.grading.running import NO_CODE, RunOutcome, run_case, typed_outcome
from judge.sandbox.contract import RunRequest, Sandbox, SandboxSession

ATTEMPTS = 3
"""How often a case is tried before a failure of the judge is recorded as JE."""

PAUSE_S = 0.5
"""Seconds to wait before the second attempt; the third waits twice as long."""


@dataclass(frozen=True, slots=True)
class CaseJob:
    """A case that is still to be judged.

    Attributes:
        case: the test case.
        keys: its reuse keys.
        outcome: what came of the run, where nothing has to be run.
        known: the result on record, where it still holds and nothing has to be judged.
    """

    case: TestCase
    keys: CaseKeys
    outcome: RunOutcome | None = None
    known: CaseResult | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A submission with its task and the cases that are still to be judged.

    Attributes:
        task: the task.
        submission: the submission; None where outputs were made elsewhere.
        cases: the cases.
        limits: bounds of each run.
        finished_sample: number of the output among those of its task that were made elsewhere.
    """

    task: Task
    submission: Submission | None
    cases: tuple[CaseJob, ...]
    limits: Limits
    finished_sample: int = 0

    @property
    def sample(self) -> int:
        """Number of the submission among those of its task."""
        return self.finished_sample if self.submission is None else self.submission.sample


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """A case that a worker has judged.

    Attributes:
        keys: its reuse keys.
        result: the result.
        output: the file that was handed in, to be kept under the digest that the result names;
            None where none was, or where it is kept already.
        reused: whether the result was on record.
    """

    keys: CaseKeys
    result: CaseResult
    output: bytes | None = None
    reused: bool = False


class Worker:
    """Runs and judges submissions; called from several threads.

    Args:
        sandbox: where programs are run; None where there are none to run.
        judge: judges what they leave.
    """

    def __init__(self, sandbox: Sandbox | None, judge: CaseJudge) -> None:
        self._sandbox = sandbox
        self._case_judge = judge
        self._health_lock = threading.Lock()
        self.stop = threading.Event()
        self.gone: SandboxError | None = None

    def run(
        self,
        job: Job,
        emit: Callable[[JudgedCase], None],
        cases: Iterable[CaseJob] | None = None,
    ) -> None:
        """Judges the job's cases in order, each emitted as it is done.

        Args:
            job: the job.
            emit: called with each case as it is done.
            cases: those of the job's cases that are judged here; None for all of them.

        Raises:
            StoreError: records cannot be written.
        """
        session: SandboxSession | None = None
        try:
            for each in job.cases if cases is None else cases:
                if self.stop.is_set():
                    return
                if each.known is not None:
                    emit(JudgedCase(each.keys, each.known, reused=True))
                    continue
                outcome = each.outcome
                if outcome is None:
                    outcome, session = self._run(job, each.case, session)
                emit(self._judge(job, each, outcome))
        finally:
            if session is not None:
                session.close()

    def _judge(self, job: Job, case_job: CaseJob, outcome: RunOutcome) -> JudgedCase:
        output = None
        if case_job.outcome is None and outcome.answer is not None and outcome.answer.files:
            output = outcome.answer.data
            digest = hashlib.sha256(output).hexdigest()
            outcome = replace(outcome, record={**outcome.record, "output_sha256": digest})
        result = self._case_judge.conclude(job.task, job.sample, case_job.case, outcome)
        return JudgedCase(case_job.keys, result, output)

    def _run(
        self, job: Job, case: TestCase, session: SandboxSession | None
    ) -> tuple[RunOutcome, SandboxSession | None]:
        submission = job.submission
        assert submission is not None, "an output that was made elsewhere has its outcome"
        if not job.task.answer.is_file:
            return _typed(submission, job.task), session
        if submission.code is None:
            return RunOutcome(Verdict.CE, NO_CODE, {}), session
        if self._sandbox is None:
            raise SandboxError("programs can only be run in a sandbox, and none is available")
        problem: SandboxError | None = None
        for attempt in range(ATTEMPTS):
            if self.stop.wait(PAUSE_S * attempt):
                break
            try:
                session = session or self._sandbox.session()
                outcome = run_case(session, submission, case.question, job.limits, job.task.answer)
            except SandboxError as error:
                problem = error
                if session is not None:
                    session.close()
                session = None
            except OSError as error:
                name = error.filename or case.input_path
                return RunOutcome(Verdict.JE, f"{name} cannot be read: {error.strerror}"), session
            else:
                return outcome, session
        if problem is not None and not self.stop.is_set():
            self._check_health()
        message = problem.message if problem else "stopped"
        return RunOutcome(Verdict.JE, f"sandbox: {message}"), None

    def _check_health(self) -> None:
        """Tells a submission that breaks its own sandbox from a sandbox that is gone for all."""
        assert self._sandbox is not None
        with self._health_lock:
            if self.stop.is_set():
                return
            try:
                with self._sandbox.session() as session:
                    session.run(RunRequest(program="", files={}, collect=None))
            except SandboxError as error:
                self.gone = error
                self.stop.set()


def _typed(submission: Submission, task: Task) -> RunOutcome:
    """The outcome of a submission that is a typed answer."""
    if submission.answer is None:
        return RunOutcome(Verdict.NO, task.answer.missing)
    return typed_outcome(submission.answer)
