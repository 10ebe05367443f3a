"""Rewards for training: one number for each answer, from a judge that stays open."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, get_args

from judge.api.judging import GivenAnswer, Judge, JudgedSubmission
from judge.api.options import JudgingOptions
from judge.closable import AsyncClosable
from judge.compare.registry import checker_of
from judge.core.score import mean_cell_accuracy
from judge.core.task import Task
from judge.errors import UsageError
from judge.sandbox.contract import Sandbox
from judge.suites import Suite

Signal = Literal["soft", "hard", "cell_accuracy"]
"""The signal that a reward measures: soft score, hard score, or cell accuracy of an answer."""

SIGNALS: tuple[Signal, ...] = get_args(Signal)
"""All signals."""


class Rewards(AsyncClosable):
    """Computes the reward of an answer to a task, from 0 to 1; None if the answer has no reward.

    ``rewards(task, reply)`` judges as :class:`judge.Judge` does, and several threads may call it.
    There is no reward if the judge failed on a case (JE), since that says nothing about the answer,
    or if no case can be scored because the golds are at fault (BT). With every other verdict there
    is a reward: an answer without a program, or a program that ends in an exception or exceeds a
    limit, gets 0 for the case.

    - ``soft``: the share of the cases that are accepted.
    - ``hard``: 1 if all cases are accepted, otherwise 0.
    - ``cell_accuracy``: the share of the compared cells that are right, as the mean over the cases.
      An accepted case counts 1; a case that is not accepted always counts less, and 0 if there
      was nothing to compare. Changes of cells outside the answer range that should not have been
      changed count as wrong cells. Only for tasks whose checker compares cells one by one.

    Args:
        suite: the suite (loaded, a folder, an archive or a name).
        signal: what a reward measures.
        options: how to judge.
        sandbox: an open sandbox to use in place of the one that the options name; its owner closes
            it.

    Attributes:
        judge: the judge, for verdicts.
        signal: what a reward measures.

    Raises:
        UsageError: there is no such signal, or an option has a value that is not valid.
        SuiteError: the suite is missing or broken.
        SandboxError: there is no sandbox.
    """

    def __init__(
        self,
        suite: Suite | str | Path,
        signal: Signal = "soft",
        options: JudgingOptions | None = None,
        *,
        sandbox: Sandbox | None = None,
    ) -> None:
        if signal not in SIGNALS:
            raise UsageError(
                f"there is no signal {str(signal)[:80]!r}", hint=f"Signals: {', '.join(SIGNALS)}."
            )
        self.signal = signal
        self.judge = Judge(suite, options, sandbox=sandbox)

    def __call__(self, task: Task | str | int, answer: GivenAnswer) -> float | None:
        """The reward of one answer.

        Args:
            task: the task, or its id in the suite.
            answer: an answer as for :class:`judge.Judge`, such as a chat model's unchanged reply.

        Raises:
            UsageError: there is no such task, the answer does not fit it, its checker does not
                compare cells one by one (``cell_accuracy``), or the judge is closed.
            SandboxError: there is no sandbox, or it was lost for good.
            IncompleteRunError: the judge was closed before all cases were judged.
        """
        self.check(task)
        return reward_of(self.judge(task, answer), self.signal)

    async def areward(self, task: Task | str | int, answer: GivenAnswer) -> float | None:
        """Computes the reward without blocking the event loop."""
        self.check(task)
        return reward_of(await self.judge.ajudge(task, answer), self.signal)

    def batch(
        self, tasks: Sequence[Task | str | int], answers: Sequence[GivenAnswer]
    ) -> list[float | None]:
        """The rewards of many answers, in order; the options limit how many are judged at a time.

        Args:
            tasks: the task of each answer.
            answers: the answers.

        Raises:
            UsageError: the numbers of tasks and answers differ; also as for a single answer.
            SandboxError: as for a single answer.
            IncompleteRunError: as for a single answer.
        """
        if len(tasks) != len(answers):
            raise UsageError(f"{len(answers)} answers were given to {len(tasks)} tasks")
        with ThreadPoolExecutor(self.judge.options.jobs, "judge-rewards") as threads:
            return list(threads.map(self, tasks, answers))

    def check(self, task: Task | str | int) -> None:
        """Checks that this signal can be computed for answers to a task.

        Raises:
            UsageError: there is no such task, or its checker does not compare cells one by one.
        """
        if self.signal == "cell_accuracy" and not self.counts_cells(task):
            suite_task = self._task(task)
            raise UsageError(
                f"task {suite_task.id}: its checker ({suite_task.checker.name}) does not "
                "compare cells one by one, so there is no cell accuracy",
                hint='Use "soft" or "hard".',
            )

    def counts_cells(self, task: Task | str | int) -> bool:
        """Whether cell accuracy can be computed for answers to a task.

        Raises:
            UsageError: there is no such task.
        """
        return checker_of(self._task(task).checker).counts_cells

    def _task(self, task: Task | str | int) -> Task:
        assert self.judge.suite is not None
        return task if isinstance(task, Task) else self.judge.suite.task(task)

    def close(self) -> None:
        """Closes the judge; safe to call twice, and from any thread."""
        self.judge.close()


def reward_of(judged: JudgedSubmission, signal: Signal) -> float | None:
    """The reward of a judged answer; None if there is no reward, see :class:`Rewards`."""
    if judged.failed:
        return None
    if signal == "cell_accuracy":
        return mean_cell_accuracy(judged.cases)
    return judged.soft if signal == "soft" else judged.hard
