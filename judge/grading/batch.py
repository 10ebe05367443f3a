"""Many submissions on many cases: reuse of what was judged before, records, events.

Workers run and judge; the thread that called :func:`grade` is the only one that writes records
and emits events. A case whose record is in the results directory is never run again unless its key
changed; a record that holds a judge error is not a result and is tried again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from judge.core.answer import Answer, Origin
from judge.core.limits import Limits
from judge.core.submission import Submission
from judge.core.task import Task, TestCase
from judge.core.verdict import CaseResult
from judge.errors import JudgeError, SandboxError
from judge.grading.case import CaseJudge, GradingRules
from judge.grading.case_records import CaseKey, KnownCases, record_of_result
from judge.grading.executors import Executor, ThreadExecutor
from judge.grading.finished import FinishedOutput, read_output
from judge.grading.jobs import CaseJob, Job, Worker
from judge.grading.keys import CaseKeys, FileDigests, comparison_key, run_key
from judge.grading.order import ExpectedCost, longest_first
from judge.grading.running import RunOutcome, typed_answer
from judge.grading.store import CASES_FILE, RunDirectory
from judge.recalc.policy import Recalculator
from judge.sandbox.contract import Sandbox


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
class BatchResult:
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
        rules: how outputs are compared with golds.
        limits: bounds of each run.
        jobs: submissions to judge at a time.
        task_limits: task id -> bounds of its runs, where they are not those of the others.
        executor_of: makes what does the jobs; None for threads of this process.
    """

    sandbox: Sandbox | None
    recalculator: Recalculator
    rules: GradingRules
    limits: Limits
    jobs: int = 1
    task_limits: Mapping[str, Limits] = field(default_factory=dict)
    executor_of: Callable[[Settings], Executor] | None = None

    def image_of(self, task: Task) -> str:
        """What the programs of a task run in, for reuse keys; empty if nothing is run.

        Raises:
            SandboxError: there is no sandbox.
        """
        if not task.answer.is_file:
            return ""
        if self.sandbox is None:
            raise SandboxError("programs can only be run in a sandbox, and none is available")
        return self.sandbox.info.image

    def limits_of(self, task: Task) -> Limits:
        """The bounds of a task's runs."""
        return self.task_limits.get(task.id, self.limits)

    def executor(self) -> Executor:
        """What does the jobs: threads of this process, unless there is another way."""
        if self.executor_of is not None:
            return self.executor_of(self)
        worker = Worker(self.sandbox, CaseJudge(self.recalculator, self.rules))
        return ThreadExecutor(worker, self.jobs)


OnEvent = Callable[[Event], None]
"""Called in the calling thread after each case, reused ones included."""


def grade(
    store: RunDirectory,
    pairs: Sequence[tuple[Task, Submission]],
    settings: Settings,
    *,
    on_event: OnEvent = lambda _: None,
) -> BatchResult:
    """Grades submissions, continuing what the results directory already holds.

    Args:
        store: the results directory, locked by this process.
        pairs: each submission with its task.
        settings: sandbox, engines, rules, limits, number of workers.
        on_event: called in the calling thread after each case, reused ones included.

    Returns:
        The results; ``stopped`` is set if the sandbox was lost for good.

    Raises:
        SandboxError: there is no sandbox.
        StoreError: records cannot be written (the disk is full, …).
        KeyboardInterrupt: the user interrupted; what was judged is recorded.
    """
    digests, known = FileDigests(), KnownCases(store)
    batch = _Batch(store, sum(len(task.cases) for task, _ in pairs), on_event)
    todo: list[tuple[Task, Submission, list[tuple[TestCase, CaseKeys]]]] = []
    for task, submission in pairs:
        cases: list[tuple[TestCase, CaseKeys]] = []
        for case in task.cases:
            keys = case_keys(task, submission, case, settings, digests)
            found = known.complete(_case_key(submission, case), keys)
            if found is not None:
                batch.take_known(found)
            else:
                cases.append((case, keys))
        if cases:
            todo.append((task, submission, cases))
    cost = ExpectedCost()
    order = longest_first(todo, lambda each: sum(cost.of(each[0], c.number) for c, _ in each[2]))

    def jobs() -> Iterator[Job]:
        # One at a time: outputs on record are read when their turn has come.
        for task, submission, cases in order:
            case_jobs = tuple(
                CaseJob(case, keys, _stored_outcome(known, _case_key(submission, case), keys))
                for case, keys in cases
            )
            yield Job(task, submission, case_jobs, settings.limits_of(task))

    return batch.judge(jobs(), settings.executor())


def grade_outputs(
    store: RunDirectory,
    outputs: Sequence[FinishedOutput],
    settings: Settings,
    *,
    on_event: OnEvent = lambda _: None,
) -> BatchResult:
    """Judges outputs that were made elsewhere; nothing is run.

    Args, returns and raises as :func:`grade`; a case without an output gets the verdict NO, one
    for which the engines were not available JE, and the others continue.
    """
    known, digests = KnownCases(store), FileDigests()
    batch = _Batch(store, len(outputs), on_event)

    def jobs() -> Iterator[Job]:
        for each in outputs:
            missing = f"no such {each.task.answer.noun} in the folder"
            run, outcome = read_output(each.path, missing)
            keys = CaseKeys(run, comparison_key(run, each.task, each.case, settings.rules, digests))
            found = known.complete((each.task.id, 0, each.case.number), keys)
            job = CaseJob(each.case, keys, outcome, known=found)
            yield Job(each.task, None, (job,), settings.limits)

    return batch.judge(jobs(), settings.executor())


def current_results(
    store: RunDirectory, pairs: Sequence[tuple[Task, Submission]], settings: Settings
) -> list[CaseResult]:
    """Results on record that belong to just these submissions, judged by just these rules.

    Judge errors count as well; what other code, limits, sandbox, gold or profile gave does not.

    Raises:
        SandboxError: there is no sandbox.
    """
    known, digests = KnownCases(store), FileDigests()
    results = []
    for task, submission in pairs:
        for case in task.cases:
            keys = case_keys(task, submission, case, settings, digests)
            found = known.current(_case_key(submission, case), keys)
            if found is not None:
                results.append(found)
    return results


class _Batch:
    """A batch while it is under way; used only in the calling thread."""

    def __init__(self, store: RunDirectory, total: int, on_event: OnEvent) -> None:
        self._store = store
        self._total = total
        self._on_event = on_event
        self._found = BatchResult()

    def take_known(self, result: CaseResult) -> None:
        """Takes a result as it is on record."""
        self._found.reused += 1
        self._take(result, reused=True)

    def judge(self, jobs: Iterable[Job], executor: Executor) -> BatchResult:
        """Has the jobs done, and records their results."""
        with contextlib.closing(executor.judge(jobs)) as judged:
            for each in judged:
                if each.reused:
                    self.take_known(each.result)
                    continue
                if each.output is not None:
                    self._store.put_workbook(each.output)
                self._store.append(CASES_FILE, record_of_result(each.keys, each.result))
                self._take(each.result, reused=False)
        self._found.stopped = executor.stopped
        return self._found

    def _take(self, result: CaseResult, *, reused: bool) -> None:
        results = self._found.results
        results[result.task_id, result.sample, result.case] = result
        self._on_event(Event(result, reused=reused, done=len(results), total=self._total))


def case_keys(
    task: Task,
    submission: Submission,
    case: TestCase,
    settings: Settings,
    digests: FileDigests,
) -> CaseKeys:
    """The reuse keys of a case."""
    # A typed answer depends on no file: nothing reads one to give it.
    inputs = digests.of_inputs(case.question) if task.answer.is_file else ""
    run = run_key(submission, inputs, settings.limits_of(task), settings.image_of(task))
    return CaseKeys(run, comparison_key(run, task, case, settings.rules, digests))


def _stored_outcome(known: KnownCases, key: CaseKey, keys: CaseKeys) -> RunOutcome | None:
    stored = known.stored_run(key, keys)
    if stored is None:
        return None
    result, output = stored
    if (typed := typed_answer(result.run)) is not None:
        return RunOutcome(None, "", result.run, typed)
    if output is None:
        return RunOutcome(result.verdict, result.cause, result.run)
    return RunOutcome(None, "", result.run, Answer.of_workbook(output, Origin.SOLUTION))


def _case_key(submission: Submission, case: TestCase) -> CaseKey:
    return (submission.task_id, submission.sample, case.number)
