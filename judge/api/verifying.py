"""Audits a suite: finds suspect golds, and why they are suspect."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Unpack

from judge.api.options import (
    JudgingOptions,
    VerifyChanges,
    with_changes,
)
from judge.api.resources import JudgingResources
from judge.core.option import check_at_least
from judge.core.records.cases import CaseRecord
from judge.core.submission import Origin
from judge.core.verdict import Verdict
from judge.errors import StoreError, UsageError
from judge.grading.case import known_fault
from judge.grading.case_records import case_records, result_of_record
from judge.grading.store import SUBMISSIONS_FILE, RunDirectory
from judge.grading.verify import CaseCheck, verify_suite
from judge.suites import Suite, load_suite
from judge.suites.layouts import find_outputs, outputs_in
from judge.suspects.audit import TaskFindings, audit_suite
from judge.suspects.contract import all_signs, register
from judge.suspects.material import Output, Tools, without_copies
from judge.suspects.model import Audit


def verify(
    suite: str | Path,
    options: JudgingOptions | None = None,
    *,
    ids: Sequence[str] = (),
    limit: int | None = None,
    on_case: Callable[[CaseCheck, int], None] = lambda _check, _total: None,
    on_left_out: Callable[[str, str], None] = lambda _task, _reason: None,
    **changes: Unpack[VerifyChanges],
) -> list[CaseCheck]:
    """Checks that a suite can be judged: golds as their own answers, untouched inputs, formulas.

    The defaults are those of ``judge verify``; :mod:`judge.grading.verify` lists the checks.

    Args:
        suite: the suite (folder, archive or name).
        options: how to judge; ``limits`` do not matter, since no program is run.
        ids: task ids to check; empty for all.
        limit: check only that many tasks, in suite order.
        on_case: called with each finished check and with the total number of checks.
        on_left_out: called with the id of each task that is not judged, and with the reason.
        changes: fields of :class:`JudgingOptions` by name, in place of those in ``options``, such
            as ``profile="strict"``; None leaves a field as it is.

    Returns:
        One check for each case, in suite order; cases of tasks that are known to be faulty are
        left out.

    Raises:
        UsageError: an option has a value that is not valid.
        SuiteError: the suite is missing or broken, or has no such task.
        SandboxError: formulas have to be computed, and there is no sandbox.
        ClusterError: the cluster cannot be used, or was lost.
    """
    check_at_least("limit", limit, 1)
    options = with_changes(options, changes)
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


Outputs = dict[tuple[str, int], list[Output]]


def suspects(
    suite: str | Path,
    *,
    submissions: Sequence[Path | str] = (),
    ids: Sequence[str] = (),
    limit: int | None = None,
    on_task: Callable[[TaskFindings, int], None] = lambda _findings, _total: None,
    **changes: Unpack[VerifyChanges],
) -> Audit:
    """Looks for golds that may be at fault; see :mod:`judge.suspects` and docs/audit.md.

    Args:
        suite: the suite (folder, archive or name).
        submissions: results directories, folders of them, and folders of output workbooks, whose
            answers vote on the golds.
        ids: task ids to examine; empty for all.
        limit: examine only that many tasks, in suite order.
        on_task: called with the findings of each task and with the number of tasks.
        changes: fields of :class:`JudgingOptions` by name; ``recalc="never"`` leaves out the signs
            that depend on computing.

    Raises:
        UsageError: an option has a value that is not valid.
        SuiteError: the suite is missing or broken, or has no such task.
        StoreError: a results directory cannot be read, or belongs to another suite.
        SubmissionError: a folder has no outputs.
        SandboxError: formulas have to be computed, and there is no sandbox.
    """
    from judge.annotate.suspicion import SIGN, edited  # noqa: PLC0415  it loads the page's editor

    check_at_least("limit", limit, 1)
    options = with_changes(None, changes)
    register(SIGN)
    with contextlib.ExitStack() as stack:
        resources = JudgingResources(options, stack)
        loaded = resources.adapt(load_suite(suite))
        outputs, notes = outputs_of(submissions, loaded)
        settings = resources.settings(needs_sandbox=False)
        tools = Tools(settings.recalculator, edited, outputs)
        return audit_suite(
            loaded,
            loaded.select(tuple(ids), limit).tasks,
            tools,
            all_signs(),
            jobs=settings.jobs,
            submissions=[str(submission) for submission in submissions],
            notes=notes,
            on_task=on_task,
        )


def outputs_of(submissions: Sequence[Path | str], suite: Suite) -> tuple[Outputs, list[str]]:
    """The outputs of some runs and folders, by task and case.

    Args:
        submissions: results directories, folders of them, and folders of output workbooks; a path
            that is given twice counts once.
        suite: the suite that they answer.

    Returns:
        The outputs without those of copied runs, and notes about the copied runs
        (:func:`judge.suspects.material.without_copies`).

    Raises:
        UsageError: a path does not exist, or is a file.
        StoreError: a results directory cannot be read, or belongs to another suite.
        SubmissionError: a folder has no outputs.
    """
    outputs: Outputs = {}
    for path in {
        Path(submission).resolve(): Path(submission) for submission in submissions
    }.values():
        if not path.is_dir():
            raise UsageError(
                f"{path}: {'a file' if path.exists() else 'no such folder'}",
                hint="Give results directories or folders of output workbooks; `judge score` "
                "makes a results directory of a file of solutions.",
            )
        inner = [path] if RunDirectory.is_run(path) else _runs_in(path)
        for run in inner:
            _add_run(outputs, run, suite)
        if not inner:
            for key, output in find_outputs(path, suite).items():
                outputs.setdefault(key, []).append(Output(str(path), output, Origin.FINISHED))
    return without_copies(outputs)


def _runs_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and RunDirectory.is_run(path))


def _add_run(collected: Outputs, path: Path, suite: Suite) -> None:
    with RunDirectory(path) as store:
        run = store.read_run()
        recorded = run.get("suite") if run is not None else None
        digest = recorded.get("digest") if recorded is not None else None
        if digest is not None and digest != suite.digest:
            raise StoreError(
                f"{path}: belongs to another suite, not to {suite.root}",
                hint="Give runs of the suite that is audited.",
            )
        outputs = run.get("outputs") if run is not None else None
        layout = run.get("layout") if run is not None else None
        records = case_records(store)
        strength = _strength(records.values())
        verdicts = {
            (task, case): str(record.get("verdict", ""))
            for (task, _sample, case), record in records.items()
        }
        if outputs is not None:
            for key, file in outputs_in(Path(str(outputs)), suite, layout).items():
                output = Output(
                    str(path),
                    file,
                    Origin.FINISHED,
                    strength=strength,
                    verdict=verdicts.get(key, ""),
                )
                collected.setdefault(key, []).append(output)
            return
        programs = _programs(store)
        for (task, sample, case), record in records.items():
            digest = result_of_record(record).run.get("output_sha256")
            if digest is not None and task in suite:
                output = Output(
                    str(path),
                    store.workbook_path(digest),
                    Origin.SOLUTION,
                    programs.get((task, sample), ""),
                    strength,
                    str(record.get("verdict", "")),
                )
                collected.setdefault((task, case), []).append(output)


def _strength(records: Iterable[CaseRecord]) -> float | None:
    """The share of a run's scored cases that it passes; None if no cases are recorded."""
    verdicts = [result_of_record(record).verdict for record in records]
    scored = [verdict for verdict in verdicts if verdict.is_scored]
    return sum(verdict is Verdict.AC for verdict in scored) / len(scored) if scored else None


def _programs(store: RunDirectory) -> dict[tuple[str, int], str]:
    """(task, sample) -> hash of the program, for the recorded programs."""
    programs: dict[tuple[str, int], str] = {}
    for record in store.read_records(SUBMISSIONS_FILE):
        program, sample = record.get("solution"), record.get("sample", 0)
        if isinstance(program, str) and program.strip() and isinstance(sample, int):
            text = program.strip().encode(errors="surrogatepass")
            programs[str(record.get("id")), sample] = sha256(text).hexdigest()
    return programs
