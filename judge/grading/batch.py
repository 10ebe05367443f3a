"""Many submissions on many cases: workers, reuse of what was judged before, events.

Workers run and judge; the thread that called :func:`grade` is the only one that writes records
and emits events. A case whose record is in the results directory is never run again unless its key
changed; a record that holds a judge error is not a result and is tried again.
"""

from __future__ import annotations

import hashlib
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from judge.core.limits import Limits
from judge.core.submission import Submission
from judge.core.task import Task, TestCase
from judge.core.verdict import CaseResult, Verdict
from judge.errors import JudgeError, SandboxError, WorkbookError
from judge.files.documents import read_regular
from judge.grading.case import (
    GradingRules,
    Judgement,
    RunFacts,
    case_result,
    comparison_key,
    judge_case,
    known_fault,
    problem_of_input,
    run_case,
    run_key,
)
from judge.grading.records import (
    CaseKey,
    CaseKeys,
    FileDigests,
    KnownCases,
    record_key,
    record_of_result,
)
from judge.grading.store import CASES_FILE, MOST_WORKBOOK_BYTES, RunDirectory
from judge.recalc.policy import Origin, Recalculator
from judge.sandbox.contract import RunRequest, Sandbox, SandboxSession

ATTEMPTS = 3
"""How often a case is tried before a failure of ours is recorded as JE."""

PAUSE_S = 0.5
"""Seconds to wait before the second attempt; the third waits twice as long."""


@dataclass(frozen=True, slots=True)
class Job:
    """A submission with its task and the cases that are still to be judged."""

    task: Task
    submission: Submission
    cases: tuple[TestCase, ...]


@dataclass(frozen=True, slots=True)
class FinishedOutput:
    """An output workbook that was made elsewhere, and the case it answers."""

    task: Task
    case: TestCase
    path: Path | None


@dataclass(frozen=True, slots=True)
class Event:
    """Something to show: a case is done.

    Attributes:
        result: the case's result.
        reused: whether nothing was run or compared for it.
        done: cases done so far, reused ones included.
        total: cases in all.
    """

    result: CaseResult
    reused: bool
    done: int
    total: int


@dataclass(slots=True)
class Outcome:
    """How a batch ended.

    Attributes:
        results: every case that has a result, by (task id, sample, case number).
        reused: how many of them were taken from the results directory as they were.
        stopped: why the batch stopped early, or None.
    """

    results: dict[CaseKey, CaseResult] = field(default_factory=dict)
    reused: int = 0
    stopped: JudgeError | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a batch needs besides suite and submissions.

    Attributes:
        sandbox: where programs are run; None where there are none to run.
        recalculator: computes formulas that have no value to trust.
        rules: how outputs are held against golds.
        limits: bounds of each run.
        jobs: submissions at one time.
        task_limits: task id -> bounds of its runs, where they are not those of the others.
    """

    sandbox: Sandbox | None
    recalculator: Recalculator
    rules: GradingRules
    limits: Limits
    jobs: int = 1
    task_limits: Mapping[str, Limits] = field(default_factory=dict)

    def limits_of(self, task: Task) -> Limits:
        """The bounds of a task's runs."""
        return self.task_limits.get(task.id, self.limits)


def grade(
    store: RunDirectory,
    pairs: Sequence[tuple[Task, Submission]],
    settings: Settings,
    *,
    on_event: Callable[[Event], None] = lambda _: None,
) -> Outcome:
    """Grades submissions, continuing what the results directory already holds.

    Args:
        store: the results directory, locked by this process.
        pairs: each submission with its task.
        settings: sandbox, engines, rules, limits, number of workers.
        on_event: called in the calling thread after each case, reused ones included.

    Returns:
        The results; ``stopped`` is set where the sandbox went away for good.

    Raises:
        StoreError: records cannot be written (the disk is full, …).
        KeyboardInterrupt: the user interrupted; what was judged is recorded.
    """
    if settings.sandbox is None:
        raise SandboxError("programs can only be run in a sandbox, and there is none")
    digests = FileDigests()
    image = settings.sandbox.info.image
    known = KnownCases(store)
    outcome = Outcome()
    total = sum(len(task.cases) for task, _ in pairs)
    jobs: list[Job] = []
    for task, submission in pairs:
        todo: list[TestCase] = []
        for case in task.cases:
            keys = _keys(task, submission, case, settings, image, digests)
            found = known.complete(_case_key(submission, case), keys)
            if found is None:
                todo.append(case)
                continue
            outcome.results[_case_key(submission, case)] = found
            outcome.reused += 1
            on_event(Event(found, reused=True, done=len(outcome.results), total=total))
        if todo:
            jobs.append(Job(task, submission, tuple(todo)))
    worker = _Worker(store, settings, image, digests, known)
    for record, result in _in_parallel(worker, jobs, settings.jobs, outcome):
        store.append(CASES_FILE, record)
        outcome.results[record_key(record)] = result
        on_event(Event(result, reused=False, done=len(outcome.results), total=total))
    return outcome


def grade_outputs(
    store: RunDirectory,
    outputs: Sequence[FinishedOutput],
    settings: Settings,
    *,
    on_event: Callable[[Event], None] = lambda _: None,
) -> Outcome:
    """Compares output workbooks that were made elsewhere; nothing is run.

    Args, returns and raises as :func:`grade`; a case without an output gets the verdict NO, one
    that the engines could not be had for JE, and the others go on.
    """
    known = KnownCases(store)
    digests = FileDigests()
    outcome = Outcome()

    def judge_one(item: FinishedOutput) -> tuple[dict[str, object], CaseResult]:
        placeholder = Submission(item.task.id, None, "", "")
        data, problem = _read_output(item.path)
        key = hashlib.sha256(data or b"").hexdigest()
        rule_key = comparison_key(key, item.task, digests.of(item.case.gold_path), settings.rules)
        keys = CaseKeys(run=key, comparison=rule_key)
        found = known.complete((item.task.id, 0, item.case.number), keys)
        if found is not None:
            return {}, found
        if data is None:
            fault = known_fault(item.task)
            facts = problem if fault is None else RunFacts(Verdict.BT, fault, problem.record, None)
            judgement = None
        else:
            facts = RunFacts(None, "", {"status": "finished", "output_sha256": key}, data)
            judgement = judge_case(
                item.task,
                item.case,
                data,
                recalculator=settings.recalculator,
                rules=settings.rules,
                origin=Origin.FINISHED,
            )
        result = case_result(placeholder, item.case, facts, judgement)
        return record_of_result(keys, result), result

    with ThreadPoolExecutor(settings.jobs) as pool:
        for record, result in pool.map(judge_one, outputs):
            if record:
                store.append(CASES_FILE, record)
            else:
                outcome.reused += 1
            outcome.results[(result.task_id, 0, result.case)] = result
            on_event(
                Event(result, reused=not record, done=len(outcome.results), total=len(outputs))
            )
    return outcome


def current_results(
    store: RunDirectory, pairs: Sequence[tuple[Task, Submission]], settings: Settings
) -> list[CaseResult]:
    """Results on record that belong to just these submissions, judged by just these rules.

    Judge errors count as well; what other code, limits, sandbox, gold or profile gave does not.
    """
    if settings.sandbox is None:
        raise SandboxError("programs can only be run in a sandbox, and there is none")
    known, digests, image = KnownCases(store), FileDigests(), settings.sandbox.info.image
    results = []
    for task, submission in pairs:
        for case in task.cases:
            keys = _keys(task, submission, case, settings, image, digests)
            found = known.current(_case_key(submission, case), keys)
            if found is not None:
                results.append(found)
    return results


def _read_output(path: Path | None) -> tuple[bytes | None, RunFacts]:
    """The bytes of a finished output, or None and why there are none."""
    if path is None:
        return None, RunFacts(Verdict.NO, "no such output workbook in the folder", {}, None)
    try:
        data = read_regular(path, WorkbookError, most_bytes=MOST_WORKBOOK_BYTES)
    except WorkbookError as error:
        cause = error.message.removeprefix(f"{path.parent}/")
        return None, RunFacts(Verdict.IW, cause, {}, None)
    if data is None:
        return None, RunFacts(Verdict.NO, "no such output workbook in the folder", {}, None)
    return data, RunFacts(None, "", {}, None)


# -- workers --------------------------------------------------------------------------------------

_Finished = tuple[dict[str, object], CaseResult]


class _Worker:
    """Runs and judges the cases of one submission; called from several threads."""

    def __init__(
        self,
        store: RunDirectory,
        settings: Settings,
        image: str,
        digests: FileDigests,
        known: KnownCases,
    ) -> None:
        assert settings.sandbox is not None
        self._sandbox = settings.sandbox
        self._store = store
        self._settings = settings
        self._image = image
        self._digests = digests
        self._known = known
        self._health_lock = threading.Lock()
        self.stop = threading.Event()
        self.gone: SandboxError | None = None

    def run(self, job: Job, emit: Callable[[_Finished], None]) -> None:
        """Judges the job's cases in order, each emitted as it is done."""
        session: SandboxSession | None = None
        try:
            for case in job.cases:
                if self.stop.is_set():
                    return
                keys = _keys(
                    job.task, job.submission, case, self._settings, self._image, self._digests
                )
                facts = _stored_facts(self._known, _case_key(job.submission, case), keys)
                if facts is None:
                    facts, session = self._run(job, case, session)
                emit(self._judge(job, case, keys, facts))
        finally:
            if session is not None:
                session.close()

    def _run(
        self, job: Job, case: TestCase, session: SandboxSession | None
    ) -> tuple[RunFacts, SandboxSession | None]:
        if job.submission.code is None:
            return RunFacts(Verdict.CE, "the reply holds no code", {}, None), session
        case_input = case.input_path.read_bytes()
        limits = self._settings.limits_of(job.task)
        problem: SandboxError | None = None
        for attempt in range(ATTEMPTS):
            if self.stop.wait(PAUSE_S * attempt):
                break
            try:
                session = session or self._sandbox.session()
                facts = run_case(session, job.submission, case_input, limits)
            except SandboxError as error:
                problem = error
                if session is not None:
                    session.close()
                session = None
            else:
                return facts, session
        if problem is not None and not self.stop.is_set():
            self._check_health()
        message = problem.message if problem else "stopped"
        return RunFacts(Verdict.JE, f"sandbox: {message}", {}, None), None

    def _check_health(self) -> None:
        """Tells a submission that breaks its own sandbox from a sandbox that is gone for all."""
        with self._health_lock:
            if self.stop.is_set():
                return
            try:
                with self._sandbox.session() as session:
                    session.run(RunRequest(program="", files={}, collect=None))
            except SandboxError as error:
                self.gone = error
                self.stop.set()

    def _judge(self, job: Job, case: TestCase, keys: CaseKeys, facts: RunFacts) -> _Finished:
        judgement: Judgement | None = None
        record = dict(facts.record)
        blamed = facts.verdict not in {None, Verdict.CE, Verdict.JE}
        if (fault := known_fault(job.task)) is not None:
            facts = RunFacts(Verdict.BT, fault, record, None)
        elif blamed and (problem := problem_of_input(case)) is not None:
            # Nobody can work on an input that cannot be read: that is the suite's fault.
            facts = RunFacts(Verdict.BT, problem, record, None)
        if facts.verdict is None and facts.output is not None:
            record["output_sha256"] = self._store.put_workbook(facts.output)
            facts = RunFacts(None, facts.cause, record, facts.output)
            judgement = judge_case(
                job.task,
                case,
                facts.output or b"",
                recalculator=self._settings.recalculator,
                rules=self._settings.rules,
                origin=Origin.SOLUTION,
            )
        result = case_result(job.submission, case, facts, judgement)
        return record_of_result(keys, result), result


def _in_parallel(
    worker: _Worker, jobs: Sequence[Job], workers: int, outcome: Outcome
) -> Iterator[_Finished]:
    """Runs the jobs on threads and yields finished cases in the calling thread."""
    finished: queue.SimpleQueue[_Finished | BaseException | None] = queue.SimpleQueue()
    waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
    for job in jobs:
        waiting.put(job)

    def work() -> None:
        try:
            while not worker.stop.is_set():
                try:
                    job = waiting.get_nowait()
                except queue.Empty:
                    break
                worker.run(job, finished.put)
        except BaseException as error:  # noqa: BLE001  handed to the calling thread, raised there
            finished.put(error)
        finally:
            finished.put(None)

    threads = [
        threading.Thread(target=work, name=f"judge-worker-{number}", daemon=True)
        for number in range(min(workers, max(len(jobs), 1)))
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
            # Interrupted: the sandbox is closed by its owner, which ends what still runs.
            deadline = time.monotonic() + 0.5
            for thread in threads:
                thread.join(max(0.0, deadline - time.monotonic()))
    outcome.stopped = worker.gone


def _keys(
    task: Task,
    submission: Submission,
    case: TestCase,
    settings: Settings,
    image: str,
    digests: FileDigests,
) -> CaseKeys:
    run = run_key(submission, digests.of(case.input_path), settings.limits_of(task), image)
    return CaseKeys(run, comparison_key(run, task, digests.of(case.gold_path), settings.rules))


def _stored_facts(known: KnownCases, key: CaseKey, keys: CaseKeys) -> RunFacts | None:
    stored = known.stored_run(key, keys)
    if stored is None:
        return None
    result, output = stored
    if output is None:
        return RunFacts(result.verdict, result.cause, result.run, None)
    return RunFacts(None, "", result.run, output)


def _case_key(submission: Submission, case: TestCase) -> CaseKey:
    return (submission.task_id, submission.sample, case.number)
