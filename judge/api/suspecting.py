"""Audits a suite: which golds are suspect, and why."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from judge.api.options import JudgingOptions, check_at_least, cores
from judge.api.resources import JudgingResources
from judge.core.answer import Origin
from judge.errors import StoreError, UsageError
from judge.files.paths import GivenPath
from judge.grading.case import known_fault
from judge.grading.case_records import case_records, result_of_record
from judge.grading.store import RunDirectory
from judge.recalc.policy import Mode
from judge.suites import Suite, load_suite
from judge.suites.layouts import outputs_in
from judge.suites.outputs import find_outputs
from judge.suspects.audit import TaskFindings, audit_suite
from judge.suspects.material import Output, Tools
from judge.suspects.model import Audit
from judge.suspects.registry import all_signs, register

Outputs = dict[tuple[str, int], list[Output]]


def suspects(
    suite: str | Path,
    *,
    submissions: Sequence[Path | str] = (),
    jobs: int | None = None,
    ids: Sequence[str] = (),
    limit: int | None = None,
    sandbox: str = "auto",
    corrections: GivenPath | None = None,
    recalc: Mode = "auto",
    engine: str = "auto",
    on_task: Callable[[TaskFindings, int], None] = lambda _findings, _total: None,
) -> Audit:
    """Looks for golds that may be at fault; see :mod:`judge.suspects` and docs/audit.md.

    Args:
        suite: the suite (folder, archive or name).
        submissions: results directories, folders of them, and folders of output workbooks, whose
            answers vote on the golds.
        jobs: tasks to examine at a time; None for one on each core.
        ids: task ids to examine; empty for all.
        limit: examine only that many tasks, in suite order.
        sandbox: what isolates the calculation engines.
        corrections: known faults of suites to correct first.
        recalc: ``never`` leaves the signs out that depend on computing.
        engine: calculation engine, ``auto`` for the cascade.
        on_task: called with the findings of each task and with how many tasks there are.

    Raises:
        UsageError: an option has a value that it cannot have.
        SuiteError: the suite is missing or broken, or has no such task.
        StoreError: a results directory cannot be read, or belongs to another suite.
        SubmissionError: a folder holds no outputs.
        SandboxError: formulas have to be computed, and there is no sandbox.
    """
    from judge.annotate.suspicion import SIGN, edited  # noqa: PLC0415  it loads the page's editor

    check_at_least("limit", limit, 1)
    options = JudgingOptions(
        jobs=cores() if jobs is None else jobs,
        sandbox=sandbox,
        corrections=corrections,
        recalc=recalc,
        engine=engine,
    )
    register(SIGN)
    with contextlib.ExitStack() as stack:
        resources = JudgingResources(options, stack)
        loaded = resources.adapt(load_suite(suite))
        outputs, runs = outputs_of(submissions, loaded)
        settings = resources.settings(needs_sandbox=False)
        chosen = loaded.select(tuple(ids), limit).tasks
        tasks = [task for task in chosen if known_fault(task) is None]
        tools = Tools(settings.recalculator, edited, outputs, runs)
        return audit_suite(
            loaded,
            tasks,
            tools,
            all_signs(),
            jobs=settings.jobs,
            submissions=[str(each) for each in submissions],
            on_task=on_task,
        )


def outputs_of(submissions: Sequence[Path | str], suite: Suite) -> tuple[Outputs, int]:
    """The outputs of some runs and folders, by task and case.

    Args:
        submissions: results directories, folders of them, and folders of output workbooks; one
            that is named twice counts once.
        suite: the suite that they answer.

    Returns:
        The outputs, and how many runs and folders they are from.

    Raises:
        UsageError: a path does not exist, or is a file.
        StoreError: a results directory cannot be read, or belongs to another suite.
        SubmissionError: a folder holds no outputs.
    """
    found: Outputs = {}
    runs = 0
    for path in {Path(each).resolve(): Path(each) for each in submissions}.values():
        if not path.is_dir():
            raise UsageError(
                f"{path}: {'a file' if path.exists() else 'no such folder'}",
                hint="Give results directories or folders of output workbooks; `judge score` "
                "makes a results directory of a file of solutions.",
            )
        inner = [path] if RunDirectory.is_run(path) else _runs_in(path)
        for run in inner:
            _add_run(found, run, suite)
        if not inner:
            for key, output in find_outputs(path, suite).items():
                found.setdefault(key, []).append(Output(str(path), output, Origin.FINISHED))
        runs += max(len(inner), 1)
    return found, runs


def _runs_in(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if each.is_dir() and RunDirectory.is_run(each))


def _add_run(found: Outputs, path: Path, suite: Suite) -> None:
    with RunDirectory(path) as store:
        run = store.read_run()
        known = run.get("suite") if run is not None else None
        digest = known.get("digest") if known is not None else None
        if digest is not None and digest != suite.digest:
            raise StoreError(
                f"{path}: belongs to another suite, not to {suite.root}",
                hint="Give runs of the suite that is audited.",
            )
        outputs = run.get("outputs") if run is not None else None
        layout = run.get("layout") if run is not None else None
        if outputs is not None:
            for key, output in outputs_in(Path(str(outputs)), suite, layout).items():
                found.setdefault(key, []).append(Output(str(path), output, Origin.FINISHED))
            return
        for (task, _sample, case), record in case_records(store).items():
            digest = result_of_record(record).run.get("output_sha256")
            if digest is not None and task in suite:
                found.setdefault((task, case), []).append(
                    Output(str(path), store.workbook_path(digest), Origin.SOLUTION)
                )
