"""Scores runs, at once or while their submissions arrive."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path

from judge.api.options import ScoreOptions
from judge.api.progress import Progress, Silent
from judge.api.reporting import ScoredRun, write_reward
from judge.api.resources import JudgingResources
from judge.api.scoring import RunScorer, find_runs, run_to_score
from judge.errors import JudgeError, SubmissionError
from judge.files.paths import as_path


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
    with contextlib.ExitStack() as stack:
        scorer = RunScorer(options, JudgingResources(options, stack))
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
