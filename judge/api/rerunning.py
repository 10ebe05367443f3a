"""Runs the stored programs of a run again, and trusts nothing that the folder claims."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from judge.api.scoring import sandbox_record
from judge.core.records.runs import RunDocument
from judge.core.verdict import CaseResult
from judge.grading.batch import Event, Settings, grade
from judge.grading.case_records import CaseKey, case_records, result_of_record
from judge.grading.rejudge import RejudgedCase
from judge.grading.store import SUBMISSIONS_FILE, RunDirectory
from judge.report.load import LoadedRun
from judge.suites import Suite
from judge.suites.submissions import load_submissions


def rerun_cases(
    store: RunDirectory,
    loaded: LoadedRun,
    suite: Suite,
    settings: Settings,
    keep: RunDirectory | None,
    on_case: Callable[[RejudgedCase, int], None],
) -> list[RejudgedCase]:
    """Runs the programs of a run in a folder of its own, and compares the verdicts.

    Args:
        store: the run.
        loaded: the same, read; its submissions are run.
        suite: which they answer.
        settings: sandbox, limits, rules, engines, workers: those of this machine.
        keep: where the outputs are stored; None where nothing is to be written.
        on_case: called with each case that is on record, and with how many there are in all.

    Returns:
        One entry for each case on record, in the order of the submissions.

    Raises:
        SandboxError: the sandbox was lost.
    """
    before = {key: result_of_record(each) for key, each in case_records(store).items()}
    wanted = {each.key for each in loaded.submissions}
    pairs = [
        (suite.task(load_submission.task_id), load_submission)
        for load_submission in load_submissions(loaded.path / SUBMISSIONS_FILE, suite)
        if load_submission.key in wanted
    ]
    with (
        tempfile.TemporaryDirectory(prefix="judge-rerun-") as folder,
        RunDirectory(Path(folder)) as scratch,
    ):
        outcome = grade(scratch, pairs, settings, on_event=_told(before, on_case))
        if outcome.stopped is not None:
            raise outcome.stopped
        records = case_records(scratch)
        found = [
            RejudgedCase(before[key], outcome.results[key], records[key])
            for task, submission in pairs
            for case in task.cases
            if (key := (task.id, submission.sample, case.number)) in before
        ]
        if keep is not None:
            _keep_outputs(found, scratch, keep)
    return found


def _keep_outputs(found: list[RejudgedCase], scratch: RunDirectory, keep: RunDirectory) -> None:
    for each in found:
        digest = each.after.run.get("output_sha256")
        if digest is not None and (data := scratch.get_workbook(digest)):
            keep.put_workbook(data)


def ran_by(settings: Settings) -> RunDocument:
    """What a run.json says of the machine that a rerun ran on."""
    sandbox = settings.sandbox
    return {
        "limits": asdict(settings.limits),
        "reference": None,
        # Typed answers are judged again without one.
        "sandbox": None if sandbox is None else sandbox_record(sandbox.info),
    }


def _told(
    before: Mapping[CaseKey, CaseResult], on_case: Callable[[RejudgedCase, int], None]
) -> Callable[[Event], None]:
    def tell(event: Event) -> None:
        result = event.result
        known = before.get((result.task_id, result.sample, result.case))
        if known is not None:
            on_case(RejudgedCase(known, result, None), event.total)

    return tell
