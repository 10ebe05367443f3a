"""Score runs, run one program, hold a suite against itself."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path

from judge.api.opened import Opened
from judge.api.options import ScoredRun, ScoreOptions
from judge.api.progress import Progress, Silent
from judge.api.sources import find_runs, source_of
from judge.comparison.style_check import check_style_names
from judge.core.verdict import CaseResult
from judge.errors import JudgeError, UsageError
from judge.grading.batch import grade
from judge.grading.case import known_fault
from judge.grading.store import RunDirectory
from judge.grading.verify import CaseCheck, verify_suite
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
        options: how.
        progress: gives the progress display for a run, told the run's name.
        failures: where given, one run that cannot be scored does not keep the others from being
            scored; its error is put in here instead of being raised.

    Returns:
        One entry per run that was scored.

    Raises:
        JudgeError: any of its classes; what was judged before the error is kept on disk.
        KeyboardInterrupt: the user interrupted; what was judged is kept on disk.
    """
    options = options or ScoreOptions()
    check_style_names(options.style)
    scored: list[ScoredRun] = []
    with contextlib.ExitStack() as stack:
        opened = Opened(options, stack)
        for path in find_runs(Path(results), options):
            try:
                scored.append(opened.score_source(source_of(path, options), progress))
            except JudgeError as error:
                if failures is None:
                    raise
                failures.append(error)
    return scored


def verify(
    options: ScoreOptions,
    *,
    on_case: Callable[[CaseCheck, int], None] = lambda _check, _total: None,
) -> list[CaseCheck]:
    """Holds a suite against itself; see :mod:`judge.grading.verify`.

    Args:
        options: ``dataset`` names the suite; sandbox, recalculation and comparison as in scoring.
        on_case: told of each finished check and of how many there are in all.
    """
    if options.dataset is None:
        raise UsageError("which suite is to be verified?")
    check_style_names(options.style)
    with contextlib.ExitStack() as stack:
        opened = Opened(options, stack)
        suite = opened.adapt(load_suite(options.dataset))
        settings = opened.settings(needs_sandbox=False)
        chosen = suite.select(options.ids, options.limit).tasks
        tasks = [task for task in chosen if known_fault(task) is None]
        return verify_suite(
            tasks, settings.recalculator, settings.rules, jobs=settings.jobs, on_case=on_case
        )


def run_program(task_id: str, program: Path, options: ScoreOptions) -> list[CaseResult]:
    """Grades one program on one task, keeping nothing on disk.

    Args:
        task_id: the task, by its id in the suite.
        program: a Python file, with the paths of a solution in it.
        options: ``dataset`` names the suite (the sample suite where it is None).

    Returns:
        One result per test case, in case order.
    """
    with (
        tempfile.TemporaryDirectory(prefix="judge-run-") as folder,
        contextlib.ExitStack() as stack,
    ):
        opened = Opened(options, stack)
        task = opened.adapt(load_suite(options.dataset or "sample")).task(task_id)
        submission = submission_of_program(program, task)
        settings = opened.settings(needs_sandbox=True)
        with RunDirectory(Path(folder)) as store:
            outcome = grade(store, [(task, submission)], settings)
    if outcome.stopped is not None:
        raise outcome.stopped
    return [outcome.results[task.id, 0, case.number] for case in task.cases]
