"""A judge that is opened once and called often, with the types of its arguments and results.

Rewards, comparisons of two workbooks and the grading of one program use it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Unpack

from judge.api.options import JudgingOptions, RunChanges, with_changes
from judge.api.resources import JudgingResources
from judge.closable import AsyncClosable
from judge.compare.cells.comparison import Comparison
from judge.compare.cells.computing import compare_files
from judge.compare.cells.options import check_contradictions
from judge.compare.cells.sides import NO_ANSWERS, ConditionAnswers, ConditionQuestions
from judge.compare.profiles import Profile, get_profile
from judge.compare.registry import check_options
from judge.core.score import SubmissionScore, score_submission
from judge.core.submission import Origin, Submission
from judge.core.task import CheckerSpec, Task, TestCase
from judge.core.verdict import CaseResult, Verdict
from judge.errors import IncompleteRunError, UsageError
from judge.grading.batch import Settings
from judge.grading.jobs import CaseJob, Job, JudgedCase
from judge.grading.keys import CaseKeys
from judge.grading.running import outcome_of_output, read_output
from judge.recalc.computing import answer_conditions
from judge.recalc.names import Mode
from judge.recalc.policy import Recalculator
from judge.recalc.wanted import replaced_cells, untrusted_cells
from judge.sandbox.contract import Sandbox
from judge.suites import Suite, load_suite
from judge.suites.submissions import submission_of_program, submission_of_reply
from judge.workbook.budget import DEFAULT_LIMITS, ReadLimits
from judge.workbook.cell import NOTHING_COMPUTED, CellRange, ComputedValues
from judge.workbook.reader import Workbook


class Turns:
    """Limits how many calls run at a time; safe to use from several threads.

    Args:
        at_once: how many calls may run at a time.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._changed = threading.Condition()
        self._at_work: dict[threading.Event, int] = {}
        self._closed = False
        self._process = os.getpid()

    @property
    def is_forked(self) -> bool:
        """Whether this process was forked from the process that owns the turns."""
        return os.getpid() != self._process

    @contextlib.contextmanager
    def take(self, stop: threading.Event) -> Iterator[None]:
        """Waits for a turn, and gives it up at the end of the block.

        Args:
            stop: set if the judge is closed in the meantime; an unfinished call then ends early.

        Raises:
            UsageError: the judge is closed, or belongs to another process.
        """
        self.raise_if_closed()
        with self._changed:
            while not self._closed and len(self._at_work) >= self._at_once:
                self._changed.wait()
            self.raise_if_closed()
            self._at_work[stop] = threading.get_ident()
        try:
            yield
        finally:
            with self._changed:
                del self._at_work[stop]
                self._changed.notify_all()

    def raise_if_closed(self) -> None:
        """Raises an error if turns are no longer granted.

        Raises:
            UsageError: the judge is closed, or belongs to another process: two processes with one
                sandbox would get each other's verdicts.
        """
        if self.is_forked:
            raise UsageError(
                f"this judge was opened by the process {self._process}, and this is a fork of it",
                hint="Open one in each process, after the process has started.",
            )
        if self._closed:
            raise UsageError("this judge is closed", hint="Open another: judge.Judge(…).")

    def close(self) -> None:
        """Grants no more turns, tells the running calls to end, and waits for them."""
        with self._changed:
            self._closed = True
            for stop in self._at_work:
                stop.set()
            self._changed.notify_all()
            # A call on this thread could never end (if a signal handler closes): do not wait.
            here = threading.get_ident()
            while any(thread != here for thread in self._at_work.values()):
                self._changed.wait()


FinishedWorkbook = bytes | str | Path | None
"""A workbook or its path; None if none was submitted."""

Workbooks = bytes | Path | Sequence[FinishedWorkbook] | Mapping[int, FinishedWorkbook]
"""The workbooks of a task's cases: in case order, by case number, or a single workbook."""

GivenAnswer = Submission | str | Workbooks
"""A submission; text (a program, a reply with a program, a typed answer); or finished workbooks."""

NOT_KEPT = CaseKeys("", "")
"""Keys of results that are not kept on disk, so they are not looked up there."""


@dataclass(frozen=True, slots=True)
class JudgedSubmission:
    """The verdicts on one submission for all cases of its task.

    Attributes:
        task_id: the task's id as text.
        sample: number of the submission among those of its task.
        cases: one result for each case, in case order.
        score: the scores; None in it means that no case could be scored: the submission is neither
            right nor wrong.
        outputs: case number -> output of the program; empty for finished workbooks.
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
        """The share of the scored cases that are accepted; None if no case is scored."""
        return self.score.soft

    @property
    def hard(self) -> float | None:
        """1.0 if all scored cases are accepted, otherwise 0.0; None if no case is scored."""
        return self.score.hard

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        """The cases on which the judge itself failed (JE); they may be tried again."""
        return tuple(case for case in self.cases if case.verdict is Verdict.JE)


def judged_submission(job: Job, judged: Sequence[JudgedCase]) -> JudgedSubmission:
    """Puts the results of all cases of a job together, with the scores."""
    results = {judged_case.result.case: judged_case.result for judged_case in judged}
    cases = tuple(results[case.case.number] for case in job.cases)
    return JudgedSubmission(
        task_id=job.task.id,
        sample=job.sample,
        cases=cases,
        score=score_submission(job.task.id, job.sample, cases),
        outputs={
            judged_case.result.case: judged_case.output
            for judged_case in judged
            if judged_case.output is not None
        },
    )


def finished_cases(task: Task, workbooks: Workbooks) -> tuple[CaseJob, ...]:
    """Pairs the cases of a task with the finished workbooks that answer them.

    Raises:
        UsageError: the workbooks do not fit the cases, or the task does not ask for workbooks.
    """
    by_number = _by_case(task, workbooks)
    return tuple(_finished(task, case, by_number.get(case.number)) for case in task.cases)


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
            hint="An empty string means a reply without content.",
        )
    listed = [workbooks] if isinstance(workbooks, bytes | Path) else list(workbooks)
    if len(listed) != len(numbers):
        raise UsageError(
            f"task {task.id} has {len(numbers)} cases, and {len(listed)} workbooks were given",
            hint="Give one for each case, None where there is none, or by case number.",
        )
    return dict(zip(numbers, listed, strict=True))


def _finished(task: Task, case: TestCase, workbook: FinishedWorkbook) -> CaseJob:
    """A case with the workbook that answers it."""
    if isinstance(workbook, bytes):
        _, outcome = outcome_of_output(workbook, "output")
    else:
        path = None if workbook is None else Path(workbook)
        _, outcome = read_output(path, task.answer.missing)
    return CaseJob(case, NOT_KEPT, outcome)


class ComputeOnDemand:
    """Computes formulas with engines that are opened when the first formula needs them.

    See :class:`judge.compare.cells.computing.Compute`.

    Args:
        mode: when to compute.
        opened: opens the engines; called each time that engines are needed.
    """

    def __init__(self, mode: Mode, opened: Callable[[], Recalculator]) -> None:
        self.mode = mode
        self._opened = opened

    def fill(
        self,
        workbook: Workbook,
        ranges: Sequence[CellRange],
        *,
        origin: Origin,
        like: Workbook | None = None,
    ) -> ComputedValues:
        """Computes those formula cells in some ranges whose values are missing or not trusted.

        Raises:
            WorkbookError: the ranges cannot be read.
            SandboxError: something has to be computed, and there is no sandbox.
        """
        needed, _ = untrusted_cells(workbook, ranges, self.mode, origin)
        if needed:
            return self._opened().fill(workbook, ranges, origin=origin, like=like)
        replaced = replaced_cells(workbook, ranges, self.mode, origin)
        return ComputedValues(not_calculated=replaced) if replaced else NOTHING_COMPUTED

    def answer_conditions(
        self, questions: ConditionQuestions, gold: Workbook, output: Workbook, *, origin: Origin
    ) -> ConditionAnswers:
        """Finds out which conditions of conditional formats hold.

        Raises:
            SandboxError: there is no sandbox to compute them in.
        """
        if self.mode == "never":
            return NO_ANSWERS
        return answer_conditions(self._opened(), questions, gold, output, origin=origin)


class Judge(AsyncClosable):
    """A judge: opens sandbox, engines and suite once, and then judges any number of answers.

    Safe to use from several threads, but not from forks of the process that opened it; a fork has
    to open a judge itself. At most ``options.jobs`` calls are judged at a time; the others wait for
    their turn. With a suite, everything that its tasks need is opened immediately; without one,
    when the first task needs it. Only computed values are kept on disk.

    A fault of a submission is a verdict, and so is a fault of the judge that concerns one case
    (JE); a fault that concerns every case is raised as an error.

    Args:
        suite: the suite (loaded, a folder, an archive or a name); None to judge tasks that are
            given as objects.
        options: how to judge.
        runs: whether programs have to be run; without them, and with ``recalc="never"``, no sandbox
            is opened.
        sandbox: an open sandbox to use in place of the one that the options name; its owner closes
            it.

    Attributes:
        options: how it judges.
        suite: the suite, with the corrections and comparison options that were requested.

    Raises:
        UsageError: an option has a value that is not valid.
        SuiteError: the suite is missing or broken.
        SandboxError: there is no sandbox.
    """

    def __init__(
        self,
        suite: Suite | str | Path | None = None,
        options: JudgingOptions | None = None,
        *,
        runs: bool = True,
        sandbox: Sandbox | None = None,
    ) -> None:
        self.options = options or JudgingOptions()
        self.suite: Suite | None = None
        self._runs = runs
        self._stack = contextlib.ExitStack()
        self.resources = JudgingResources(self.options, self._stack, sandbox=sandbox)
        self._opened: Settings | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._turns = Turns(self.options.jobs)
        self._closing = threading.RLock()
        if suite is not None:
            loaded = suite if isinstance(suite, Suite) else load_suite(suite)
            self.suite = self.resources.adapt(loaded)
            with contextlib.ExitStack() as undo:
                undo.callback(self._stack.close)
                self._opened = self.resources.settings_for(self.suite.tasks, runs=runs)
                undo.pop_all()

    # -- judging ---------------------------------------------------------------------------------

    def __call__(self, task: Task | str | int, answer: GivenAnswer) -> JudgedSubmission:
        """Judges one answer to a task, on all its cases.

        Args:
            task: the task, or its id in the suite.
            answer: a submission; or text: a program or a reply with a program if the task asks for
                a workbook, otherwise the typed answer; or the finished workbooks of the cases (in
                case order or by case number, as paths or bytes; None for a missing workbook).

        Raises:
            UsageError: there is no such task, the answer does not fit it, or the judge is closed.
            SandboxError: there is no sandbox, or it was lost for good.
            IncompleteRunError: the judge was closed before all cases were judged.
        """
        return self._judge(task, answer, threading.Event())

    async def ajudge(self, task: Task | str | int, answer: GivenAnswer) -> JudgedSubmission:
        """Judges one answer without blocking the event loop.

        A cancelled call judges no further case; a running program ends in the background.
        """
        import asyncio  # noqa: PLC0415 - who awaits this has imported it; others need not

        stop = threading.Event()
        self._turns.raise_if_closed()
        loop = asyncio.get_running_loop()
        with self._closing:  # otherwise the threads could end before they get the call
            self._turns.raise_if_closed()
            if self._threads is None:
                self._threads = ThreadPoolExecutor(
                    self.options.jobs, thread_name_prefix="judge-async"
                )
            judged = loop.run_in_executor(self._threads, self._judge, task, answer, stop)
        try:
            return await judged
        except asyncio.CancelledError:
            stop.set()
            raise

    def compare(
        self,
        gold: bytes | str | Path,
        output: bytes | str | Path,
        position: str,
        *,
        answer_sheet: str | None = None,
        profile: str | Profile | None = None,
        style: Sequence[str] | None = None,
        before: bytes | str | Path | None = None,
        checker: Mapping[str, object] | None = None,
        max_differences: int = 200,
        limits: ReadLimits = DEFAULT_LIMITS,
        published: bool = False,
    ) -> Comparison:
        """Compares two workbooks as :func:`judge.compare_workbooks` does, with its own engines.

        Args:
            gold: the gold workbook, as a path or as bytes.
            output: the output workbook, as a path or as bytes; it may be hostile.
            position: the answer position, such as ``'Sheet1'!A1:B9``.
            answer_sheet: the sheet that the suite names with the position, if any.
            profile: what "equal" means; None for the profile of this judge.
            style: names of style attributes to compare in addition to the values.
            before: the input workbook, for the option ``untouched`` and for the groups of cells.
            checker: options of the checker, such as ``{"tolerance": 0.01}``.
            max_differences: how many differences are kept; all are counted.
            limits: limits on the cost of reading a workbook.
            published: whether the position is from a published suite; such positions are read
                leniently.

        Raises:
            PositionError: the position cannot be read, or the gold has no such sheet.
            WorkbookError: a workbook cannot be read.
            UsageError: there is no such profile, style attribute or option.
            SandboxError: something has to be computed, and there is no sandbox.
        """
        rules = self.options.profile if profile is None else profile
        chosen = get_profile(rules) if isinstance(rules, str) else rules
        check_contradictions(chosen, {}, recalc=self.options.recalc)
        with self._turns.take(threading.Event()):
            return compare_files(
                gold,
                output,
                position,
                answer_sheet=answer_sheet,
                profile=chosen,
                style=self.options.style if style is None else style,
                before=before,
                options=self.options.checker if checker is None else checker,
                max_differences=max_differences,
                limits=limits,
                compute=ComputeOnDemand(self.options.recalc, self.recalculator),
                typed=not published,
            )

    def recalculator(self) -> Recalculator:
        """The recalculator.

        Raises:
            UsageError: the judge is closed.
            SandboxError: there is no sandbox.
        """
        self._turns.raise_if_closed()
        return self.resources.settings(needs_sandbox=False).recalculator

    def _judge(
        self,
        task: Task | str | int,
        answer: GivenAnswer,
        stop: threading.Event,
    ) -> JudgedSubmission:
        self._turns.raise_if_closed()
        suite_task = self._task(task)
        job, runs = self._job(suite_task, answer)
        judged: list[JudgedCase] = []
        with self._turns.take(stop):
            settings = self._settings(suite_task, runs=runs)
            worker = settings.worker()
            worker.stop = stop
            worker.run(replace(job, limits=settings.limits_of(suite_task)), judged.append)
        if worker.sandbox_error is not None:
            raise worker.sandbox_error
        if stop.is_set() and len(_sound(judged)) < len(job.cases):
            raise IncompleteRunError(
                f"task {suite_task.id}: the judge was closed, or the call cancelled, "
                "before all cases were judged"
            )
        return judged_submission(job, judged)

    def _task(self, task: Task | str | int) -> Task:
        """The task, with the comparison options that were requested."""
        if not isinstance(task, Task):
            if self.suite is None:
                raise UsageError(
                    f"task {task}: this judge has no suite to look it up in",
                    hint='Open it with one: judge.Judge("sample").',
                )
            return self.suite.task(task)
        if not self.options.checker:
            return task
        check_options(CheckerSpec(task.checker.name, self.options.checker))
        return replace(task, checker=task.checker.with_options(self.options.checker))

    def _job(self, task: Task, answer: GivenAnswer) -> tuple[Job, bool]:
        """Makes the job for one submission: its cases, and whether a program has to run for it."""
        limits = self.options.limits
        if not isinstance(answer, Submission | str):
            return Job(task, None, finished_cases(task, answer), limits), False
        submission = self._submission(task, answer)
        if task.answer.is_file and not self._runs:
            raise UsageError(
                f"task {task.id}: this judge was opened without programs (runs=False)",
                hint="Give finished workbooks, or open it with runs=True.",
            )
        cases = tuple(CaseJob(case, NOT_KEPT) for case in task.cases)
        return Job(task, submission, cases, limits), task.answer.is_file

    def _submission(self, task: Task, answer: Submission | str) -> Submission:
        if isinstance(answer, Submission):
            if answer.task_id != task.id:
                raise UsageError(f"task {task.id}: this submission answers task {answer.task_id}")
            return answer
        if self.suite is None and task.answer.is_file:
            raise UsageError(
                f"task {task.id}: without the suite, the path of its input is not known",
                hint="Open the judge with the suite, or give a judge.Submission with both paths.",
            )
        suite_format = None if self.suite is None else self.suite.suite_format
        return submission_of_reply(answer, task, suite_format)

    def _settings(self, task: Task, *, runs: bool) -> Settings:
        if self._opened is not None and self.suite is not None and task.id in self.suite:
            return self._opened
        return self.resources.settings_for([task], runs=runs)

    # -- closing ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Closes sandbox and engines; safe to call twice, and from any thread.

        Calls that wait for their turn fail. Running calls finish their current case, for which this
        method waits, and fail unless it was the last one. In a fork of the process that opened the
        judge, this does nothing.
        """
        if self._turns.is_forked:
            return
        self._turns.close()
        with self._closing:
            threads, self._threads = self._threads, None
            if threads is not None:
                threads.shutdown(wait=False)
            self._stack.close()


def _sound(judged: Sequence[JudgedCase]) -> list[JudgedCase]:
    """The results without judge errors; a case that was stopped has a judge error."""
    return [judged_case for judged_case in judged if judged_case.result.verdict is not Verdict.JE]


def run(
    task_id: str,
    program: str | Path,
    options: JudgingOptions | None = None,
    *,
    dataset: str | Path = "sample",
    **changes: Unpack[RunChanges],
) -> list[CaseResult]:
    """Grades one program on one task, and keeps nothing on disk.

    The defaults are those of ``judge run``.

    Args:
        task_id: the task, by its id in the suite.
        program: a Python file, which uses the paths of a solution.
        options: how to judge.
        dataset: the suite (folder, archive or name).
        changes: fields of :class:`JudgingOptions` by name, in place of those in ``options``, such
            as ``profile="strict"``; None leaves a field as it is.

    Returns:
        One result per test case, in case order.

    Raises:
        UsageError: an option has a value that is not valid.
        SuiteError: the suite is missing or broken, or has no such task.
        SubmissionError: the program cannot be read.
        SandboxError: there is no sandbox.
    """
    options = with_changes(options, changes)
    with Judge(options=options) as judge:
        suite = judge.resources.adapt(load_suite(dataset))
        task = suite.task(task_id)
        submission = submission_of_program(Path(program), task, suite.suite_format)
        return list(judge(task, submission).cases)
