"""Judges many submissions on many cases: reuses earlier results, writes records, emits events.

Workers run and judge; only the thread that called :func:`grade` writes records and emits events. A
case whose record is in the results directory is not run again unless its key changed. A record of
a judge error is not a result: the case is tried again.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from judge.compare.profiles import get_profile
from judge.core.limits import Limits
from judge.core.submission import Answer, Origin, Submission
from judge.core.task import Task, TestCase
from judge.core.verdict import CaseResult, Verdict
from judge.errors import JudgeError, SandboxError
from judge.grading.case import CaseJudge, GradingRules
from judge.grading.case_records import (
    BatchKeys,
    CaseKey,
    KnownCases,
    record_of_result,
    short_key,
    unrecordable,
)
from judge.grading.jobs import (
    CaseJob,
    Executor,
    ExpectedCost,
    Job,
    ThreadExecutor,
    Worker,
    longest_first,
)
from judge.grading.keys import CaseKeys, FileDigests, comparison_key, run_key
from judge.grading.options import GradingOptions
from judge.grading.running import (
    FinishedOutput,
    RunOutcome,
    episode_outcome,
    has_episode_files,
    kept_key,
    output_for,
    read_output,
    typed_answer,
)
from judge.grading.store import CASES_FILE, RunDirectory, TooLongError
from judge.recalc.policy import Recalculator
from judge.recalc.select import open_recalculator, recalc_cache_folder
from judge.sandbox import open_sandbox
from judge.sandbox.contract import Sandbox
from judge.suites.submissions import SubmissionIndex


@dataclass(frozen=True, slots=True)
class Event:
    """An event for progress displays: a case is done.

    Attributes:
        result: the result of the case.
        reused: whether nothing was run or compared for it.
        done: how many cases are done so far, including reused ones.
        total: how many cases there are in all.
    """

    result: CaseResult
    reused: bool
    done: int
    total: int


@dataclass(slots=True)
class BatchResult:
    """The results of a batch, and how it ended.

    Attributes:
        results: the results by (task id, sample, case number); empty if they are only recorded.
        reused: how many cases were taken unchanged from the results directory.
        failed: how many cases have judge errors (JE).
        stopped: why the batch stopped early; None if it did not.
        judged: how many cases were judged.
        recorded: the records that existed when the batch began.
        keys: the comparison keys of the cases, by their number among all cases of the batch.
    """

    results: dict[CaseKey, CaseResult] = field(default_factory=dict)
    reused: int = 0
    failed: int = 0
    stopped: JudgeError | None = None
    judged: int = 0
    recorded: KnownCases | None = None
    keys: BatchKeys | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a batch requires in addition to the suite and the submissions.

    Attributes:
        sandbox: runs the programs; None if no programs have to be run.
        recalculator: computes formulas that have no trusted value.
        rules: how outputs are compared with golds.
        limits: limits on each run.
        jobs: how many submissions are judged at a time.
        task_limits: task id -> limits on its runs, for tasks that have their own limits.
        executor_of: makes the executor of the jobs; None for threads of this process.
        trusts_values: whether the values in outputs that were made elsewhere, or by mouse and
            keyboard alone, are trusted; the command decides this, never a record.
        recipe: what workers on other machines need to open the same sandbox and engines; None if
            nothing is judged elsewhere.
    """

    sandbox: Sandbox | None
    recalculator: Recalculator
    rules: GradingRules
    limits: Limits
    jobs: int = 1
    task_limits: Mapping[str, Limits] = field(default_factory=dict)
    executor_of: Callable[[Settings], Executor] | None = None
    trusts_values: bool = False
    recipe: WorkerRecipe | None = None

    def image_of(self, task: Task) -> str:
        """Returns the image in which a task's programs run, for reuse keys; empty if none run.

        Raises:
            SandboxError: there is no sandbox.
        """
        if not task.answer.is_file:
            return ""
        if self.sandbox is None:
            raise SandboxError("programs can only be run in a sandbox, and none is available")
        return self.sandbox.info.image

    def former_image_of(self, task: Task) -> str:
        """Returns the image as earlier versions wrote it into reuse keys; empty if unchanged."""
        runs = task.answer.is_file and self.sandbox is not None
        return self.sandbox.info.former_image if runs and self.sandbox is not None else ""

    def limits_of(self, task: Task) -> Limits:
        """Returns the limits on a task's runs."""
        return self.task_limits.get(task.id, self.limits)

    def worker(self) -> Worker:
        """Makes a worker that runs jobs with these resources."""
        return Worker(self.sandbox, CaseJudge(self.recalculator, self.rules))

    def executor(self) -> Executor:
        """Makes the executor of the jobs: threads of this process unless the settings differ."""
        if self.executor_of is not None:
            return self.executor_of(self)
        return ThreadExecutor(self.worker(), self.jobs)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRecipe(GradingOptions):
    """What a worker on any machine needs to open its sandbox and its engines; it can be pickled.

    Attributes:
        isolates: whether a sandbox is opened; without one, no program can be run.
        task_limits: task id -> limits on its runs, for tasks that have their own limits.
        threads: how many jobs are run at a time.
    """

    isolates: bool = True
    task_limits: Mapping[str, Limits] = field(default_factory=dict)
    threads: int = 1

    def open(self, stack: contextlib.ExitStack) -> Settings:
        """Opens the sandbox and the engines.

        Args:
            stack: the stack that closes them.

        Raises:
            SandboxError: there is no such sandbox.
            UsageError: there is no such profile or engine.
        """
        opened: Sandbox | None = None
        if self.isolates:
            opened = open_sandbox(self.sandbox, jobs=self.threads)
            stack.enter_context(contextlib.closing(opened))
        return self.settings(opened, stack)

    def settings(self, sandbox: Sandbox | None, stack: contextlib.ExitStack) -> Settings:
        """Opens the engines for a sandbox that is already open.

        Args:
            sandbox: runs programs and engines; None if nothing is run.
            stack: the stack that closes the engines.

        Raises:
            UsageError: there is no such profile or engine.
        """
        recalculator = open_recalculator(
            sandbox,
            mode=self.recalc,
            engine=self.engine,
            cache_dir=recalc_cache_folder(),
            lenient_names=self.lenient_names,
            workers=self.threads,
        )
        stack.enter_context(contextlib.closing(recalculator))
        return Settings(
            sandbox=sandbox,
            recalculator=recalculator,
            rules=GradingRules(
                profile=get_profile(self.profile),
                style=self.style,
                recalc_mode=self.recalc,
                engines=recalculator.identity,
            ),
            limits=self.limits,
            jobs=self.threads,
            task_limits=self.task_limits,
            recipe=self,
        )


OnEvent = Callable[[Event], None]
"""Called in the calling thread after each case, reused ones included."""


def grade(
    store: RunDirectory,
    pairs: Sequence[tuple[Task, Submission]],
    settings: Settings,
    *,
    on_event: OnEvent = lambda _: None,
    keep: bool = True,
) -> BatchResult:
    """Grades submissions, continuing what the results directory already holds.

    Args:
        store: the results directory, locked by this process.
        pairs: each submission with its task; a collection from :mod:`judge.suites.submissions` is
            read one submission at a time.
        settings: sandbox, engines, rules, limits, number of workers.
        on_event: called in the calling thread after each case, reused ones included.
        keep: whether the results are also kept in memory. If not, the records of reused cases are
            not read, and events about them have only the verdict.

    Returns:
        The results; ``stopped`` is set if the sandbox was lost for good.

    Raises:
        SandboxError: there is no sandbox.
        StoreError: records cannot be written (the disk is full, …).
        KeyboardInterrupt: the user interrupted; the cases judged so far are recorded.
    """
    cases = _Cases(store, pairs, settings)
    batch = _Batch(store, cases.total, on_event, keep=keep)
    for result in cases.on_record(read=keep):
        batch.take_recorded(result)
    ended = batch.judge(cases.jobs(), settings.executor())
    ended.recorded, ended.keys = cases.recorded, cases.short_keys
    return ended


class _Cases:
    """The cases of a batch, numbered across all submissions, and their existing records.

    Args:
        store: the results directory.
        pairs: each submission with its task.
        settings: sandbox, engines, rules and limits.

    Attributes:
        total: how many cases there are.
        recorded: the existing records.
        short_keys: the comparison keys, by the number of the case.
    """

    def __init__(
        self,
        store: RunDirectory,
        pairs: Sequence[tuple[Task, Submission]],
        settings: Settings,
    ) -> None:
        self._pairs = pairs
        self._settings = settings
        self._tasks = tasks_of(pairs)
        counts = (len(task.cases) for task in self._tasks)
        self._first_numbers = array("Q", accumulate(counts, initial=0))
        self._digests = FileDigests()
        self.total = self._first_numbers[-1]
        self._done = bytearray(self.total)
        self.recorded = KnownCases(store)
        self.short_keys = BatchKeys(self.total)

    def on_record(self, *, read: bool) -> Iterator[CaseResult]:
        """Yields the recorded results that can be reused.

        Args:
            read: whether the records are read; if not, the results have only the verdict.
        """
        lookup = self.recorded.complete if read else self.recorded.verdict
        for position in range(len(self._pairs)) if len(self.recorded.index) else ():
            task, submission = self._pairs[position]
            for number, case in self._numbered(position):
                keys = case_keys(task, submission, case, self._settings, self._digests)
                key = _case_key(submission, case)
                result = lookup(key, keys)
                if result is not None:
                    self._done[number] = True
                    # Use the key on record: earlier versions of the judge computed other keys.
                    self.short_keys.put(number, self.recorded.short_key(key))
                    yield result

    def jobs(self) -> Iterator[Job]:
        """Yields the cases that are not done, the longest first.

        Submissions and recorded outputs are read one at a time, when it is their turn.
        """
        cost = ExpectedCost()
        order = longest_first(
            range(len(self._tasks)),
            lambda position: sum(
                cost.of(self._tasks[position], case.number) for _, case in self._missing(position)
            ),
        )
        for position in order:
            if missing := self._missing(position):
                task, submission = self._tasks[position], self._pairs[position][1]
                cases = tuple(self._case_job(task, submission, *case) for case in missing)
                yield Job(task, submission, cases, self._settings.limits_of(task))

    def _case_job(self, task: Task, submission: Submission, number: int, case: TestCase) -> CaseJob:
        keys = case_keys(task, submission, case, self._settings, self._digests)
        self.short_keys.put(number, short_key(keys.comparison))
        if has_episode_files(task, submission):
            trusts_values = self._settings.trusts_values
            outcome = episode_outcome(output_for(submission, case), trusts_values=trusts_values)
            return CaseJob(case, keys, outcome)
        return CaseJob(
            case, keys, _stored_outcome(self.recorded, _case_key(submission, case), keys)
        )

    def _numbered(self, position: int) -> Iterator[tuple[int, TestCase]]:
        """Yields the cases of a submission, each with its number in the batch."""
        return enumerate(self._tasks[position].cases, self._first_numbers[position])

    def _missing(self, position: int) -> list[tuple[int, TestCase]]:
        return [
            (number, case) for number, case in self._numbered(position) if not self._done[number]
        ]


def tasks_of(pairs: Sequence[tuple[Task, Submission]]) -> list[Task]:
    """Yields the task of each submission, without reading submissions that are not in memory."""
    if isinstance(pairs, SubmissionIndex):
        return [pairs.task(position) for position in range(len(pairs))]
    return [task for task, _ in pairs]


def grade_outputs(
    store: RunDirectory,
    outputs: Sequence[FinishedOutput],
    settings: Settings,
    *,
    on_event: OnEvent = lambda _: None,
) -> BatchResult:
    """Judges outputs that were made elsewhere; nothing is run.

    Args, returns and raises as :func:`grade`. A case without an output gets the verdict NO. A case
    gets JE if the engines that it needs were not available; other cases are not affected.
    """
    recorded_cases, digests = KnownCases(store), FileDigests()
    batch = _Batch(store, len(outputs), on_event)

    def jobs() -> Iterator[Job]:
        for output in outputs:
            missing = f"no such {output.task.answer.noun} in the folder"
            trusts = settings.trusts_values
            run, outcome = read_output(output.path, missing, trusts_values=trusts)
            rule_key = comparison_key(
                run, output.task, output.case, settings.rules, digests, distrusts=not trusts
            )
            keys = CaseKeys(run, rule_key)
            recorded = recorded_cases.complete(
                (output.task.id, output.sample, output.case.number), keys
            )
            job = CaseJob(output.case, keys, outcome, recorded=recorded)
            yield Job(output.task, None, (job,), settings.limits, output.sample)

    return batch.judge(jobs(), settings.executor())


def current_records(
    cases: KnownCases,
    pairs: SubmissionIndex,
    settings: Settings,
    batch_keys: BatchKeys | None = None,
) -> Iterator[list[int | None]]:
    """Finds the records of exactly these submissions, judged by exactly these rules.

    Records of judge errors count as well. Records made with other code, limits, sandbox, gold or
    profile do not.

    Args:
        cases: the existing records.
        pairs: the submissions with their tasks.
        settings: the rules, limits and sandbox.
        batch_keys: the keys of a batch of all these submissions; missing keys are computed.

    Returns:
        For each submission the index numbers of the records of its cases, in case order; None for a
        case without a record.

    Raises:
        SandboxError: there is no sandbox.
    """
    digests, number = FileDigests(), 0
    for position in range(len(pairs)):
        task, sample = pairs.task(position), pairs.sample(position)
        submission: Submission | None = None
        slots: list[int | None] = []
        for case in task.cases:
            key = (task.id, sample, case.number)
            short = None if batch_keys is None else batch_keys.get(number)
            number += 1
            if short is not None:
                slots.append(cases.slot_of_short_key(key, short))
                continue
            submission = submission or pairs[position][1]
            keys = case_keys(task, submission, case, settings, digests)
            slots.append(cases.current_slot(key, keys))
        yield slots


class _Batch:
    """A batch that is being judged; used only in the calling thread."""

    def __init__(
        self, store: RunDirectory, total: int, on_event: OnEvent, *, keep: bool = True
    ) -> None:
        self._store = store
        self._total = total
        self._keep = keep
        self._done = 0
        self._on_event = on_event
        self._result = BatchResult()

    def take_recorded(self, result: CaseResult) -> None:
        """Reuses a result from the records."""
        self._result.reused += 1
        self._take(result, reused=True)

    def judge(self, jobs: Iterable[Job], executor: Executor) -> BatchResult:
        """Runs the jobs and records their results."""
        with contextlib.closing(executor.judge(jobs)) as judged:
            for case in judged:
                if case.reused:
                    self.take_recorded(case.result)
                    continue
                if case.output is not None:
                    self._store.put_workbook(case.output)
                result = self._record(case.keys, case.result)
                self._result.judged += 1
                self._take(result, reused=False)
        self._result.stopped = executor.stopped
        return self._result

    def _record(self, keys: CaseKeys, result: CaseResult) -> CaseResult:
        """Records a result, and returns what was recorded."""
        try:
            self._store.append(CASES_FILE, record_of_result(keys, result))
        except TooLongError:
            result = unrecordable(result)
            self._store.append(CASES_FILE, record_of_result(keys, result))
        return result

    def _take(self, result: CaseResult, *, reused: bool) -> None:
        self._done += 1
        self._result.failed += result.verdict is Verdict.JE
        if self._keep:
            self._result.results[result.task_id, result.sample, result.case] = result
        self._on_event(Event(result, reused=reused, done=self._done, total=self._total))


def case_keys(
    task: Task,
    submission: Submission,
    case: TestCase,
    settings: Settings,
    digests: FileDigests,
) -> CaseKeys:
    """Computes the reuse keys of a case."""
    if has_episode_files(task, submission):
        output = output_for(submission, case)
        key = kept_key(output)
        distrusts = output is not None and output.gui_only and not settings.trusts_values
        rule_key = comparison_key(key, task, case, settings.rules, digests, distrusts=distrusts)
        return CaseKeys(key, rule_key)
    # A typed answer does not depend on the input files: no program reads them.
    inputs = digests.of_inputs(case.question) if task.answer.is_file else ""
    limits, former = settings.limits_of(task), None
    run = run_key(submission, inputs, limits, settings.image_of(task))
    if image := settings.former_image_of(task):
        before = run_key(submission, inputs, limits, image)
        former = CaseKeys(before, comparison_key(before, task, case, settings.rules, digests))
    return CaseKeys(run, comparison_key(run, task, case, settings.rules, digests), former)


def _stored_outcome(cases: KnownCases, key: CaseKey, keys: CaseKeys) -> RunOutcome | None:
    stored = cases.stored_run(key, keys)
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
