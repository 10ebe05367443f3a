"""Scores runs, grades one program on a task, and scores submissions of a run as they arrive."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Unpack

from judge.api.judging import Judge
from judge.api.options import (
    JudgingOptions,
    RunChanges,
    ScoreOptions,
    with_changes,
)
from judge.api.progress import Progress, Silent
from judge.api.reporting import ScoredRun, write_reward
from judge.api.scoring import RunScorer, find_runs, run_to_score
from judge.core.verdict import CaseResult
from judge.errors import JudgeError, SubmissionError
from judge.files.paths import as_path
from judge.suites import load_suite
from judge.suites.submissions import submission_of_program


def score(
    results: Path | str,
    options: ScoreOptions | None = None,
    *,
    progress: Callable[[str], Progress] = lambda _: Silent(),
    failures: list[JudgeError] | None = None,
) -> list[ScoredRun]:
    """Scores a run directory, a folder of runs, a .jsonl of solutions, or finished outputs.

    Args:
        results: what to score.
        options: how to score.
        progress: returns the progress display of a run; called with the run's name.
        failures: if given, a run that cannot be scored does not stop the others; its error is added
            here instead of being raised.

    Returns:
        One entry per run that was scored.

    Raises:
        JudgeError: any of its classes; cases judged before the error are kept on disk.
        KeyboardInterrupt: the user interrupted; cases judged before are kept on disk.
    """
    options = options or ScoreOptions()
    scored: list[ScoredRun] = []
    with Judge(options=options) as judge:
        scorer = RunScorer(options, judge.resources)
        for path in find_runs(Path(results), options):
            try:
                scored.append(scorer.score(run_to_score(path, options), progress))
            except JudgeError as error:
                if failures is None:
                    raise
                failures.append(error)
    if options.reward is not None and not failures:
        write_reward(as_path(options.reward), scored)
    return scored


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


class ArrivalScorer:
    """Grades a run directory whenever new submissions arrive; nothing is judged twice.

    Args:
        run: the results directory.
        options: how to grade.
    """

    def __init__(self, run: Path, options: ScoreOptions) -> None:
        self._run = run
        self._options = options
        self._arrived = threading.Event()
        self._ended = threading.Event()
        self._problem: JudgeError | None = None
        self._thread = threading.Thread(target=self._work, name="judge-arrivals", daemon=True)
        self._thread.start()

    def arrived(self) -> None:
        """Notifies the scorer that submissions.jsonl has a new submission."""
        self._arrived.set()

    def finish(
        self, *, progress: Callable[[str], Progress] = lambda _: Silent()
    ) -> list[ScoredRun]:
        """Waits for the current grading, grades the rest, and returns the scored run.

        Args:
            progress: returns the progress display for the rest; called with the run's name.

        Raises:
            JudgeError: grading failed.
        """
        self.stop()
        return score(self._run, self._options, progress=progress)

    def stop(self) -> None:
        """Stops grading after the current pass."""
        self._ended.set()
        self._arrived.set()
        self._thread.join()

    def _work(self) -> None:
        while True:
            self._arrived.wait()
            self._arrived.clear()
            if self._ended.is_set():
                return
            try:
                score(self._run, self._options)
            except SubmissionError:
                continue  # a line that is being written; the next pass sees it whole
            except JudgeError:
                return  # the final pass reports it
