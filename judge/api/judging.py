"""A judge that is opened once and asked often: what scoring and everything like it use."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from judge.api.answers import (
    NOT_KEPT,
    GivenAnswer,
    JudgedSubmission,
    finished_cases,
    judged_submission,
)
from judge.api.computing import ComputedWhereNeeded
from judge.api.options import JudgingOptions
from judge.api.resources import JudgingResources
from judge.api.turns import Turns
from judge.closable import AsyncClosable
from judge.compare.cells.comparison import Comparison
from judge.compare.cells.computing import compare_files
from judge.compare.cells.options import check_contradictions
from judge.compare.profiles import Profile, get_profile
from judge.compare.registry import check_options
from judge.core.submission import Submission
from judge.core.task import CheckerSpec, Task
from judge.core.verdict import Verdict
from judge.errors import IncompleteRunError, UsageError
from judge.grading.batch import Settings
from judge.grading.case import CaseJudge
from judge.grading.jobs import CaseJob, Job, JudgedCase, Worker
from judge.recalc.policy import Recalculator
from judge.sandbox.contract import Sandbox
from judge.suites import Suite, load_suite
from judge.suites.submissions import submission_of_reply
from judge.workbook.budget import DEFAULT_LIMITS, ReadLimits


class Judge(AsyncClosable):
    """A judge: sandbox, engines and suite opened once, then asked as often as one likes.

    Safe to use from several threads, but not from forks of the process that opened it; those open
    one of their own. As many calls as ``options.jobs`` are judged at a time; the
    others wait for their turn. With a suite, everything that its tasks need is opened at once;
    without one, when the first task needs it. Nothing is kept on disk but computed values.

    A fault of a submission is a verdict, and so is a fault of the judge that concerns one case
    (JE); what concerns every case is raised.

    Args:
        suite: the suite (loaded, a folder, an archive or a name); None to judge tasks that are
            given as objects.
        options: how to judge.
        runs: whether programs are to be run; without them, and with ``recalc="never"``, no sandbox
            is opened.
        sandbox: one that is open already, in place of the one that the options name; its owner
            closes it.

    Attributes:
        options: how it judges.
        suite: the suite, with the corrections and comparison options that were requested.

    Raises:
        UsageError: an option has a value that it cannot have.
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
            answer: a submission; or text: a program or the reply that holds it, where the task asks
                for a workbook, otherwise the typed answer; or the finished workbooks of the cases
                (in case order or by case number, as paths or bytes; None where there is none).

        Raises:
            UsageError: there is no such task, the answer does not fit it, or the judge is closed.
            SandboxError: there is no sandbox, or it was lost for good.
            IncompleteRunError: the judge was closed before all cases were judged.
        """
        return self._judge(task, answer, threading.Event())

    async def ajudge(self, task: Task | str | int, answer: GivenAnswer) -> JudgedSubmission:
        """The same without blocking the event loop.

        A call that is cancelled judges no further case; a program that is running is waited for in
        the background.
        """
        stop = threading.Event()
        self._turns.raise_if_closed()
        loop = asyncio.get_running_loop()
        with self._closing:  # or the threads could be gone before they are given the call
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
            profile: what "equal" means; None for the profile of this judge, as for all that follow.
            style: names of style attributes to compare in addition to the values.
            before: the input workbook, for the option ``untouched`` and for the groups of cells.
            checker: options of the checker, such as ``{"tolerance": 0.01}``.
            max_differences: how many differences are kept; all are counted.
            limits: bounds on what reading a workbook may cost.
            published: whether the position is that of a published suite, which is read leniently.

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
                compute=ComputedWhereNeeded(self.options.recalc, self.recalculator),
                typed=not published,
            )

    def recalculator(self) -> Recalculator:
        """What computes formulas.

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
        found = self._task(task)
        job, runs = self._job(found, answer)
        judged: list[JudgedCase] = []
        with self._turns.take(stop):
            settings = self._settings(found, runs=runs)
            worker = Worker(settings.sandbox, CaseJudge(settings.recalculator, settings.rules))
            worker.stop = stop
            worker.run(replace(job, limits=settings.limits_of(found)), judged.append)
        if worker.gone is not None:
            raise worker.gone
        if stop.is_set() and len(_sound(judged)) < len(job.cases):
            raise IncompleteRunError(
                f"task {found.id}: the judge was closed, or the call cancelled, before all cases "
                "were judged"
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
        """What is to be judged, and whether a program has to run for it."""
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
                f"task {task.id}: where a program finds its input is known only with the suite",
                hint="Open the judge with the suite, or give a judge.Submission with both paths.",
            )
        conventions = None if self.suite is None else self.suite.conventions
        return submission_of_reply(answer, task, conventions)

    def _settings(self, task: Task, *, runs: bool) -> Settings:
        if self._opened is not None and self.suite is not None and task.id in self.suite:
            return self._opened
        return self.resources.settings_for([task], runs=runs)

    # -- closing ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Closes sandbox and engines; safe to call twice, and from any thread.

        Calls that wait for their turn fail. Those that are being judged finish the case that they
        are at, which is waited for, and fail unless it was the last. A fork of the process that
        opened it leaves everything as it is.
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
    """What was judged to its end; a case that was stopped holds a judge error."""
    return [each for each in judged if each.result.verdict is not Verdict.JE]
