"""Many submissions on many cases: reuse of what was judged before, records, events.

Workers run and judge; the thread that called :func:`grade` is the only one that writes records
and emits events. A case whose record is in the results directory is never run again unless its key
changed; a record that holds a judge error is not a result and is tried again.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from judge.core.answer import Answer, Origin
from judge.core.limits import Limits
from judge.core.submission import Submission
from judge.core.task import Task, TestCase
from judge.core.verdict import CaseResult, Verdict
from judge.errors import JudgeError, SandboxError
from judge.grading.case import CaseJudge, GradingRules
from judge.grading.case_index import short_key
from judge.grading.case_records import CaseKey, record_of_result, recordable
from judge.grading.executors import Executor, ThreadExecutor
from judge.grading.finished import FinishedOutput, read_output
from judge.grading.jobs import CaseJob, Job, Worker
from judge.grading.kept import is_kept, kept_key, kept_outcome, output_for
from judge.grading.keys import CaseKeys, FileDigests, comparison_key, run_key
from judge.grading.known_cases import BatchKeys, KnownCases
from judge.grading.order import ExpectedCost, longest_first
from judge.grading.running import RunOutcome, typed_answer
from judge.grading.store import CASES_FILE, RunDirectory
from judge.recalc.policy import Recalculator
from judge.sandbox.contract import Sandbox
from judge.suites.submissions import SubmissionIndex

if TYPE_CHECKING:
    from judge.grading.recipe import WorkerRecipe


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
        results: every case that has a result, by (task id, sample, case number); empty where they
            are only to be recorded.
        reused: how many cases were taken from the results directory as they were.
        failed: how many hold judge errors (JE).
        stopped: why the batch stopped early, or None.
        judged: how many cases were judged.
        known: what was on record at the beginning.
        keys: the comparison keys of the cases, by their number among all cases of the batch.
    """

    results: dict[CaseKey, CaseResult] = field(default_factory=dict)
    reused: int = 0
    failed: int = 0
    stopped: JudgeError | None = None
    judged: int = 0
    known: KnownCases | None = None
    keys: BatchKeys | None = None


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
        trusts_values: whether the values in outputs are trusted that were made elsewhere, or by
            mouse and keyboard alone; the command says so, never a record.
        recipe: what workers elsewhere open the same from; None if nothing is judged elsewhere.
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
        """What the programs of a task run in, for reuse keys; empty if nothing is run.

        Raises:
            SandboxError: there is no sandbox.
        """
        if not task.answer.is_file:
            return ""
        if self.sandbox is None:
            raise SandboxError("programs can only be run in a sandbox, and none is available")
        return self.sandbox.info.image

    def former_image_of(self, task: Task) -> str:
        """What earlier versions of the judge have as the image in reuse keys; empty if the same."""
        runs = task.answer.is_file and self.sandbox is not None
        return self.sandbox.info.former_image if runs and self.sandbox is not None else ""

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
    keep: bool = True,
) -> BatchResult:
    """Grades submissions, continuing what the results directory already holds.

    Args:
        store: the results directory, locked by this process.
        pairs: each submission with its task; one of :mod:`judge.suites.submissions` is read
            one by one.
        settings: sandbox, engines, rules, limits, number of workers.
        on_event: called in the calling thread after each case, reused ones included.
        keep: whether the results are also held in memory. If not, the records of reused ones are
            not read, and events about them have only the verdict.

    Returns:
        The results; ``stopped`` is set if the sandbox was lost for good.

    Raises:
        SandboxError: there is no sandbox.
        StoreError: records cannot be written (the disk is full, …).
        KeyboardInterrupt: the user interrupted; what was judged is recorded.
    """
    digests, known = FileDigests(), KnownCases(store)
    tasks = tasks_of(pairs)
    first_cases = array("Q", accumulate((len(task.cases) for task in tasks), initial=0))
    batch = _Batch(store, first_cases[-1], on_event, keep=keep)
    done, short_keys = bytearray(first_cases[-1]), BatchKeys(first_cases[-1])
    for place in range(len(tasks)) if len(known.index) else ():
        task, submission = pairs[place]
        for number, case in enumerate(task.cases, first_cases[place]):
            keys = case_keys(task, submission, case, settings, digests)
            key = _case_key(submission, case)
            found = known.complete(key, keys) if keep else known.verdict(key, keys)
            if found is not None:
                done[number] = True
                # That of the record: earlier versions of the judge had others.
                short_keys.put(number, known.short_key(key))
                batch.take_known(found)

    def missing_of(place: int) -> list[tuple[int, TestCase]]:
        cases = enumerate(tasks[place].cases, first_cases[place])
        return [(number, case) for number, case in cases if not done[number]]

    cost = ExpectedCost()
    order = longest_first(
        range(len(tasks)),
        lambda place: sum(cost.of(tasks[place], case.number) for _, case in missing_of(place)),
    )

    def jobs() -> Iterator[Job]:
        # One at a time: submissions, and outputs on record, are read when their turn has come.
        for place in order:
            task, missing = tasks[place], missing_of(place)
            if missing:
                submission = pairs[place][1]
                cases: list[CaseJob] = []
                for number, case in missing:
                    keys = case_keys(task, submission, case, settings, digests)
                    short_keys.put(number, short_key(keys.comparison))
                    outcome: RunOutcome | None
                    if is_kept(task, submission):
                        left = output_for(submission, case)
                        outcome = kept_outcome(left, trusts_values=settings.trusts_values)
                    else:
                        outcome = _stored_outcome(known, _case_key(submission, case), keys)
                    cases.append(CaseJob(case, keys, outcome))
                yield Job(task, submission, tuple(cases), settings.limits_of(task))

    judged = batch.judge(jobs(), settings.executor())
    judged.known, judged.keys = known, short_keys
    return judged


def tasks_of(pairs: Sequence[tuple[Task, Submission]]) -> list[Task]:
    """The task of each submission; submissions that are not in memory are not read for it."""
    if isinstance(pairs, SubmissionIndex):
        return [pairs.task(place) for place in range(len(pairs))]
    return [task for task, _ in pairs]


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
        for output in outputs:
            missing = f"no such {output.task.answer.noun} in the folder"
            trusts = settings.trusts_values
            run, outcome = read_output(output.path, missing, trusts_values=trusts)
            rule_key = comparison_key(
                run, output.task, output.case, settings.rules, digests, distrusts=not trusts
            )
            keys = CaseKeys(run, rule_key)
            found = known.complete((output.task.id, output.sample, output.case.number), keys)
            job = CaseJob(output.case, keys, outcome, known=found)
            yield Job(output.task, None, (job,), settings.limits, output.sample)

    return batch.judge(jobs(), settings.executor())


def current_records(
    known: KnownCases,
    pairs: SubmissionIndex,
    settings: Settings,
    batch_keys: BatchKeys | None = None,
) -> Iterator[list[int | None]]:
    """Records that belong to just these submissions, judged by just these rules.

    Judge errors count as well; what other code, limits, sandbox, gold or profile gave does not.

    Args:
        known: what is on record.
        pairs: the submissions with their tasks.
        settings: the rules, limits and sandbox.
        batch_keys: the keys of a batch of all these submissions; those that it does not have, or
            all, are computed.

    Returns:
        For each submission the numbers of the records of its cases in the index, in case order;
        None for a case without one.

    Raises:
        SandboxError: there is no sandbox.
    """
    digests, number = FileDigests(), 0
    for place in range(len(pairs)):
        task, sample = pairs.task(place), pairs.sample(place)
        submission: Submission | None = None
        slots: list[int | None] = []
        for case in task.cases:
            key = (task.id, sample, case.number)
            short = None if batch_keys is None else batch_keys.get(number)
            number += 1
            if short is not None:
                slots.append(known.slot_of_short_key(key, short))
                continue
            submission = submission or pairs[place][1]
            keys = case_keys(task, submission, case, settings, digests)
            slots.append(known.current_slot(key, keys))
        yield slots


class _Batch:
    """A batch while it is under way; used only in the calling thread."""

    def __init__(
        self, store: RunDirectory, total: int, on_event: OnEvent, *, keep: bool = True
    ) -> None:
        self._store = store
        self._total = total
        self._keep = keep
        self._done = 0
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
                result = recordable(each.keys, each.result)
                self._store.append(CASES_FILE, record_of_result(each.keys, result))
                self._found.judged += 1
                self._take(result, reused=False)
        self._found.stopped = executor.stopped
        return self._found

    def _take(self, result: CaseResult, *, reused: bool) -> None:
        self._done += 1
        self._found.failed += result.verdict is Verdict.JE
        if self._keep:
            self._found.results[result.task_id, result.sample, result.case] = result
        self._on_event(Event(result, reused=reused, done=self._done, total=self._total))


def case_keys(
    task: Task,
    submission: Submission,
    case: TestCase,
    settings: Settings,
    digests: FileDigests,
) -> CaseKeys:
    """The reuse keys of a case."""
    if is_kept(task, submission):
        output = output_for(submission, case)
        left = kept_key(output)
        distrusts = output is not None and output.gui_only and not settings.trusts_values
        rule_key = comparison_key(left, task, case, settings.rules, digests, distrusts=distrusts)
        return CaseKeys(left, rule_key)
    # A typed answer depends on no file: nothing reads one to give it.
    inputs = digests.of_inputs(case.question) if task.answer.is_file else ""
    limits, former = settings.limits_of(task), None
    run = run_key(submission, inputs, limits, settings.image_of(task))
    if image := settings.former_image_of(task):
        before = run_key(submission, inputs, limits, image)
        former = CaseKeys(before, comparison_key(before, task, case, settings.rules, digests))
    return CaseKeys(run, comparison_key(run, task, case, settings.rules, digests), former)


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
