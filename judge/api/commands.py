"""Score runs, run one program, check a suite."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from judge.api.judging import Judge
from judge.api.options import JudgingOptions, ScoredRun, ScoreOptions, check_at_least, cores
from judge.api.progress import Progress, Silent
from judge.api.resources import JudgingResources
from judge.api.reward_file import write_reward
from judge.api.scoring import RunScorer
from judge.api.sources import find_runs, run_to_score
from judge.core.limits import Limits
from judge.core.verdict import CaseResult
from judge.errors import JudgeError
from judge.files.paths import GivenPath, as_path
from judge.grading.case import known_fault
from judge.grading.verify import CaseCheck, verify_suite
from judge.recalc.policy import Mode
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
        progress: gives the progress display of a run, from the run's name.
        failures: if given, a run that cannot be scored does not keep the others from being
            scored; its error is added here instead of being raised.

    Returns:
        One entry per run that was scored.

    Raises:
        JudgeError: any of its classes; what was judged before the error is kept on disk.
        KeyboardInterrupt: the user interrupted; what was judged is kept on disk.
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


def verify(
    suite: str | Path,
    *,
    jobs: int | None = None,
    ids: Sequence[str] = (),
    limit: int | None = None,
    sandbox: str = "auto",
    profile: str = "standard",
    style: Sequence[str] = (),
    checker: Mapping[str, object] | None = None,
    corrections: GivenPath | None = None,
    recalc: Mode = "auto",
    engine: str = "auto",
    lenient_names: bool = False,
    cluster: str | None = None,
    insecure_cluster: bool = False,
    on_case: Callable[[CaseCheck, int], None] = lambda _check, _total: None,
    on_left_out: Callable[[str, str], None] = lambda _task, _reason: None,
) -> list[CaseCheck]:
    """Checks that a suite can be judged: golds as their own answers, untouched inputs, formulas.

    Every default is that of ``judge verify``; see :mod:`judge.grading.verify` for what is checked.

    Args:
        suite: the suite (folder, archive or name).
        jobs: cases to check at a time; None for one on each core.
        ids: task ids to check; empty for all.
        limit: check only that many tasks, in suite order.
        sandbox: see :class:`JudgingOptions`, as for all up to ``insecure_cluster``.
        profile: comparison profile.
        style: style attributes to compare in addition to the values.
        checker: comparison options that take precedence over those of the tasks.
        corrections: known faults of suites to correct first.
        recalc: ``auto``, ``never`` or ``always``.
        engine: calculation engine, ``auto`` for the cascade.
        lenient_names: whether newer functions written without their prefix are computed.
        cluster: workers that check in place of threads.
        insecure_cluster: whether the cluster may be reached without TLS on other machines.
        on_case: called with each finished check and with how many there are in all.
        on_left_out: called with the id of each task that is not judged, and with the reason.

    Returns:
        One check for each case, in suite order; cases of tasks that are known to be faulty are
        left out.

    Raises:
        UsageError: an option has a value that it cannot have.
        SuiteError: the suite is missing or broken, or has no such task.
        SandboxError: formulas have to be computed, and there is no sandbox.
        ClusterError: the cluster cannot be used, or was lost.
    """
    check_at_least("limit", limit, 1)
    options = JudgingOptions(
        jobs=cores() if jobs is None else jobs,
        sandbox=sandbox,
        profile=profile,
        style=tuple(style),
        checker=checker or {},
        corrections=corrections,
        recalc=recalc,
        engine=engine,
        lenient_names=lenient_names,
        cluster=cluster,
        insecure_cluster=insecure_cluster,
    )
    with contextlib.ExitStack() as stack:
        resources = JudgingResources(options, stack)
        loaded = resources.adapt(load_suite(suite))
        chosen = loaded.select(tuple(ids), limit).tasks
        tasks = []
        for task in chosen:
            if (fault := known_fault(task)) is None:
                tasks.append(task)
            else:
                on_left_out(task.id, fault)
        settings = resources.settings_for(tasks, runs=False)
        return verify_suite(
            tasks,
            settings.recalculator,
            settings.rules,
            jobs=settings.jobs,
            elsewhere=resources.checks(settings, loaded),
            on_case=on_case,
        )


def run(
    task_id: str,
    program: str | Path,
    *,
    dataset: str | Path = "sample",
    sandbox: str = "auto",
    profile: str = "standard",
    style: Sequence[str] = (),
    checker: Mapping[str, object] | None = None,
    corrections: GivenPath | None = None,
    recalc: Mode = "auto",
    engine: str = "auto",
    lenient_names: bool = False,
    limits: Limits | None = None,
) -> list[CaseResult]:
    """Grades one program on one task, keeping nothing on disk.

    Every default is that of ``judge run``.

    Args:
        task_id: the task, by its id in the suite.
        program: a Python file, with the paths of a solution in it.
        dataset: the suite (folder, archive or name).
        sandbox: see :class:`JudgingOptions`, as for all that follow.
        profile: comparison profile.
        style: style attributes to compare in addition to the values.
        checker: comparison options that take precedence over those of the task.
        corrections: known faults of suites to correct first.
        recalc: ``auto``, ``never`` or ``always``.
        engine: calculation engine, ``auto`` for the cascade.
        lenient_names: whether newer functions written without their prefix are computed.
        limits: bounds of each run of the program; None for the usual ones.

    Returns:
        One result per test case, in case order.

    Raises:
        UsageError: an option has a value that it cannot have.
        SuiteError: the suite is missing or broken, or has no such task.
        SubmissionError: the program cannot be read.
        SandboxError: there is no sandbox.
    """
    options = JudgingOptions(
        sandbox=sandbox,
        profile=profile,
        style=tuple(style),
        checker=checker or {},
        corrections=corrections,
        recalc=recalc,
        engine=engine,
        lenient_names=lenient_names,
        limits=limits or Limits(),
    )
    with Judge(options=options) as judge:
        suite = judge.resources.adapt(load_suite(dataset))
        task = suite.task(task_id)
        submission = submission_of_program(Path(program), task, suite.conventions)
        return list(judge(task, submission).cases)
