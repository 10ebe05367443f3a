"""Jobs: the cases of one submission that are still to be judged, and the threads that judge them.

The longest jobs come first: if a long job began last, all other workers would wait for it. An
:class:`Executor` runs jobs, either on threads of this process or on the workers of a cluster.
"""

from __future__ import annotations

import hashlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

from judge.core.limits import Limits
from judge.core.submission import Submission
from judge.core.task import Task, TestCase
from judge.core.verdict import CaseResult, Verdict
from judge.errors import JudgeError, SandboxError
from judge.grading.case import CaseJudge
from judge.grading.keys import CaseKeys
from judge.grading.running import NO_CODE, RunOutcome, run_case, typed_outcome
from judge.sandbox.contract import RunRequest, Sandbox, SandboxSession

ATTEMPTS = 3
"""How many times a case is tried before a failure of the judge is recorded as JE."""

PAUSE_S = 0.5
"""Seconds to wait before the second attempt; the third waits twice as long."""


@dataclass(frozen=True, slots=True)
class CaseJob:
    """A case that is still to be judged.

    Attributes:
        case: the test case.
        keys: its reuse keys.
        outcome: the outcome of the run; None if the program still has to be run.
        recorded: the result on record, if it is still valid and nothing has to be judged.
    """

    case: TestCase
    keys: CaseKeys
    outcome: RunOutcome | None = None
    recorded: CaseResult | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A submission with its task and the cases that are still to be judged.

    Attributes:
        task: the task.
        submission: the submission; None if the outputs were made elsewhere.
        cases: the cases.
        limits: limits on each run.
        finished_sample: sample number of an output that was made elsewhere.
    """

    task: Task
    submission: Submission | None
    cases: tuple[CaseJob, ...]
    limits: Limits
    finished_sample: int = 0

    @property
    def sample(self) -> int:
        """The number of the submission among those of its task."""
        return self.finished_sample if self.submission is None else self.submission.sample


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """A case that a worker has judged.

    Attributes:
        keys: its reuse keys.
        result: the result.
        output: the file that was submitted, to be stored under the digest in the result; None if
            there was none, or if it is already stored.
        reused: whether the result was taken from the records.
    """

    keys: CaseKeys
    result: CaseResult
    output: bytes | None = None
    reused: bool = False


class Worker:
    """Runs and judges submissions; called from several threads.

    Args:
        sandbox: runs the programs; None if no programs have to be run.
        judge: judges their outputs.
    """

    def __init__(self, sandbox: Sandbox | None, judge: CaseJudge) -> None:
        self._sandbox = sandbox
        self._case_judge = judge
        self._health_lock = threading.Lock()
        self.stop = threading.Event()
        self.sandbox_error: SandboxError | None = None

    def run(
        self,
        job: Job,
        emit: Callable[[JudgedCase], None],
        cases: Iterable[CaseJob] | None = None,
    ) -> None:
        """Judges the cases of a job in order and emits each one when it is done.

        Args:
            job: the job.
            emit: called with each case when it is done.
            cases: the cases of the job that are judged in this call; None for all of them.

        Raises:
            StoreError: records cannot be written.
        """
        session: SandboxSession | None = None
        try:
            for case_job in job.cases if cases is None else cases:
                if self.stop.is_set():
                    return
                if case_job.recorded is not None:
                    emit(JudgedCase(case_job.keys, case_job.recorded, reused=True))
                    continue
                outcome = case_job.outcome
                if outcome is None:
                    outcome, session = self._run(job, case_job.case, session)
                emit(self._judge(job, case_job, outcome))
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
        """Determines whether the sandbox still works and only this submission's session broke."""
        assert self._sandbox is not None
        with self._health_lock:
            if self.stop.is_set():
                return
            try:
                with self._sandbox.session() as session:
                    session.run(RunRequest(program="", files={}, collect=None))
            except SandboxError as error:
                self.sandbox_error = error
                self.stop.set()


def _typed(submission: Submission, task: Task) -> RunOutcome:
    """Returns the outcome of a submission that is a typed answer."""
    if submission.answer is None:
        return RunOutcome(Verdict.NO, task.answer.missing)
    return typed_outcome(submission.answer)


class Executor(Protocol):
    """Runs jobs, on threads of this process or elsewhere."""

    @property
    def stopped(self) -> JudgeError | None:
        """Why the executor stopped early; None if it did not."""
        ...

    def judge(self, jobs: Iterable[Job]) -> Generator[JudgedCase]:
        """Runs the jobs; yields finished cases in the calling thread, in any order.

        Closing the iterator early ends the work.

        Args:
            jobs: the jobs, taken when a worker is free; the iterable may be advanced in any thread,
                but only by one thread at a time.
        """
        ...


class ThreadExecutor:
    """Runs jobs on threads of this process.

    One thread judges the cases of a job in order, in one session of the sandbox. When no job is
    left, free threads take over cases that the others have not begun.

    Args:
        worker: runs and judges submissions.
        threads: how many jobs are run at a time.
    """

    def __init__(self, worker: Worker, threads: int) -> None:
        self._worker = worker
        self._threads = max(1, threads)

    @property
    def stopped(self) -> JudgeError | None:
        """Why the executor stopped early: the sandbox was lost; None if it was not."""
        return self._worker.sandbox_error

    def judge(self, jobs: Iterable[Job]) -> Generator[JudgedCase]:
        """Runs the jobs; yields each case in the calling thread when it is done."""
        finished: queue.SimpleQueue[JudgedCase | BaseException | None] = queue.SimpleQueue()
        shared = _SharedJobs(jobs)
        worker = self._worker

        def work() -> None:
            try:
                while not worker.stop.is_set() and (part := shared.take()) is not None:
                    worker.run(part.job, finished.put, part.cases())
            except BaseException as error:  # noqa: BLE001  raised in the calling thread
                finished.put(error)
            finally:
                finished.put(None)

        threads = [
            threading.Thread(target=work, name=f"judge-worker-{number}", daemon=True)
            for number in range(self._threads)
        ]
        for thread in threads:
            thread.start()
        alive = len(threads)
        try:
            while alive:
                item = finished.get()
                if item is None:
                    alive -= 1
                elif isinstance(item, BaseException):
                    raise item
                else:
                    yield item
        finally:
            worker.stop.set()
            if alive:
                # Interrupted: the owner of the sandbox closes it, which ends every running program.
                deadline = time.monotonic() + 0.5
                for thread in threads:
                    thread.join(max(0.0, deadline - time.monotonic()))


class _Part:
    """A job or the rest of a job; several threads may take cases from it."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._left = deque(job.cases)

    def __len__(self) -> int:
        return len(self._left)

    def cases(self) -> Iterator[CaseJob]:
        """Yields the cases that no other thread has taken, one at a time."""
        while True:
            try:
                yield self._left.popleft()
            except IndexError:
                return

    def split(self) -> _Part | None:
        """Splits off the last case; returns None if no case remains."""
        try:
            last = self._left.pop()
        except IndexError:
            return None
        return _Part(replace(self.job, cases=(last,)))


class _SharedJobs:
    """Distributes jobs in order and, when none is left, the remaining cases of jobs in progress."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._waiting = iter(jobs)
        self._taking = threading.Lock()
        self._begun: list[_Part] = []

    def take(self) -> _Part | None:
        """Returns the next part for a free thread; None if every case has been taken."""
        with self._taking:
            job = next(self._waiting, None)
            self._begun = [part for part in self._begun if len(part)]
            if job is not None:
                part = _Part(job)
                self._begun.append(part)
                return part
            # Split the longest part, for which all threads would wait; it may be empty by now.
            for part in sorted(self._begun, key=len, reverse=True):
                if (taken := part.split()) is not None:
                    return taken
            return None


Item = TypeVar("Item")


class ExpectedCost:
    """Estimates the work for a case of a task by the size of its files.

    Programs, engines and the comparison all read these files, and take longer for larger ones. The
    size of a file is read only once, however many submissions there are for its task.
    """

    def __init__(self) -> None:
        self._sizes: dict[str, dict[int, int]] = {}

    def of(self, task: Task, number: int) -> int:
        """Returns the total size of the inputs and golds of a case; missing files count as 0.

        Args:
            task: the task.
            number: number of the case.
        """
        sizes = self._sizes.get(task.id)
        if sizes is None:
            sizes = {
                case.number: sum(map(_size, (file.path for file in case.inputs)))
                + sum(_size(gold.path) for gold in case.golds if gold.path is not None)
                for case in task.cases
            }
            self._sizes[task.id] = sizes
        return sizes.get(number, 0)


def longest_first(items: Sequence[Item], cost: Callable[[Item], int]) -> list[Item]:
    """Yields the items in descending order of cost; items of equal cost keep their order."""
    return sorted(items, key=cost, reverse=True)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
