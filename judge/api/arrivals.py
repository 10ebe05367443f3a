"""Submissions graded while the model is still being asked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from judge.api.commands import score
from judge.api.options import ScoreOptions
from judge.api.progress import Progress, Silent
from judge.api.reporting import ScoredRun
from judge.errors import JudgeError, SubmissionError


class ArrivalScorer:
    """Grades a run directory again whenever submissions have come; nothing is judged twice.

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
        """Says that a submission is in submissions.jsonl."""
        self._arrived.set()

    def finish(
        self, *, progress: Callable[[str], Progress] = lambda _: Silent()
    ) -> list[ScoredRun]:
        """Waits for what is being graded, grades the rest, and gives the score.

        Args:
            progress: gives the progress display for what is left, from the run's name.

        Raises:
            JudgeError: grading failed.
        """
        self.stop()
        return score(self._run, self._options, progress=progress)

    def stop(self) -> None:
        """Ends grading after the pass that is under way."""
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
                return  # the pass at the end says it
