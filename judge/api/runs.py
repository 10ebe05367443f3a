"""Compares finished runs, and audits a run with the marks of a person on a sample."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from judge.core.statistics import SEED
from judge.errors import JudgeError, StoreError
from judge.grading.case_records import CaseKey
from judge.grading.store import RunDirectory
from judge.report.audit import AuditRates, AuditSample, audit_rates, draw_sample
from judge.report.audit_sheet import CasePaths, MarkedSheet, already_there, audit_rows, write_sheet
from judge.report.build import method_of
from judge.report.load import LoadedRun, load_run
from judge.report.pairing import RunComparison, compare_loaded
from judge.suites.layouts import FoundOutputs, outputs_in

AUDITS_FILE = "audits.jsonl"
SHEET_NAME = "audit.xlsx"
DEFAULT_SAMPLE = 50


@dataclass(frozen=True, slots=True)
class Audit:
    """A sample that was drawn, and its sheet.

    Attributes:
        sample: the verdicts to be marked.
        sheet: the file for the marks.
    """

    sample: AuditSample
    sheet: Path


def make_audit(
    run: Path | str,
    *,
    size: int = DEFAULT_SAMPLE,
    seed: int = SEED,
    out: Path | str | None = None,
    dataset: str | Path | None = None,
) -> Audit:
    """Draws submissions at random and writes a sheet for a person to mark their verdicts.

    The sample is recorded in the run's audits.jsonl, with its verdicts, so that the marks remain
    valid even if the run is judged again in the meantime.

    Args:
        run: the results directory.
        size: how many submissions to draw, each with all of its scored cases.
        seed: the seed of the draw; the same seed draws the same submissions.
        out: the sheet, .xlsx or .csv; None for audit.xlsx in the results directory.
        dataset: the suite; None for the one that the run remembers.

    Raises:
        UsageError: the sheet already exists, or its name ends differently.
    """
    loaded = load_run(run, dataset)
    sheet = loaded.path / SHEET_NAME if out is None else Path(out)
    if os.path.lexists(sheet):
        raise already_there(sheet)
    sample = draw_sample(loaded, size, seed)
    write_sheet(sheet, audit_rows(loaded, sample, _paths(loaded, sample)))
    with RunDirectory(loaded.path) as store:
        store.append(AUDITS_FILE, sample.to_json())
    return Audit(sample, sheet)


def read_audit(run: Path | str, sheet: Path | str, *, seed: int | None = None) -> AuditRates:
    """Reads the marks of a sheet and computes the four rates.

    Args:
        run: the results directory that the sheet was made from.
        sheet: the marked sheet.
        seed: the seed of the bootstrap; None for the usual one.

    Raises:
        StoreError: the run has no record of this audit.
        UsageError: the sheet contains something other than marks; the message names the row.
    """
    loaded = load_run(run)
    marked = MarkedSheet(Path(sheet))
    sample = _recorded_sample(loaded.path, marked.audit_id)
    now = {
        (submission.task_id, submission.sample, number): result.verdict.value
        for submission in loaded.submissions
        for number, result in submission.automatic.items()
    }
    changed = sum(now.get(key) != verdict for key, verdict in sample.verdicts.items())
    return audit_rates(sample, marked.marks(sample), method_of(seed=seed), rejudged_cases=changed)


def _recorded_sample(path: Path, audit_id: str) -> AuditSample:
    with RunDirectory(path) as store:
        for record in store.read_records(AUDITS_FILE):
            if record.get("id") == audit_id:
                try:
                    return AuditSample.of_json(record)
                except (KeyError, TypeError, ValueError, OverflowError) as error:
                    raise StoreError(
                        f"{path / AUDITS_FILE}: the record of audit {audit_id} is broken ({error})"
                    ) from error
    raise StoreError(
        f"{path}: has no audit {audit_id}",
        hint="Read the sheet back with the run that it was made from.",
    )


def _paths(run: LoadedRun, sample: AuditSample) -> dict[CaseKey, CasePaths]:
    outputs, store = _finished_outputs(run), RunDirectory(run.path)
    paths: dict[CaseKey, CasePaths] = {}
    for key in sample.verdicts:
        submission = run.submission(key[0], key[1])
        cases = submission.task.cases if submission.task is not None else ()
        case = next((candidate for candidate in cases if candidate.number == key[2]), None)
        digest = submission.automatic[key[2]].run.get("output_sha256")
        stored = None if digest is None else store.workbook_path(digest)
        output = (
            stored if stored is not None and stored.is_file() else outputs.get((key[0], key[2]))
        )
        paths[key] = CasePaths(
            input=None if case is None or not case.inputs else case.input_path,
            gold=None if case is None or not case.golds else case.golds[0].path,
            output=output,
        )
    return paths


def _finished_outputs(run: LoadedRun) -> Mapping[tuple[str, int], Path]:
    folder = run.run.get("outputs")
    outputs: FoundOutputs | None = None
    if folder is not None and run.suite is not None:
        with contextlib.suppress(JudgeError):  # the folder is missing: its links are left out
            outputs = outputs_in(Path(folder), run.suite, run.run.get("layout"))
    return {} if outputs is None else outputs


def compare_runs(
    first: Path | str,
    *others: Path | str,
    seed: int | None = None,
    resamples: int | None = None,
) -> RunComparison:
    """Compares runs on the tasks that all of them have.

    Args:
        first: the results directory that the others are compared with.
        others: at least one other results directory.
        seed: the seed of the bootstrap; None for the usual one.
        resamples: the number of resamples of the bootstrap; None for the usual number.

    Returns:
        The scores of each run, and for each pair: the differences with intervals, McNemar's exact
        p, the p of the paired cluster bootstrap, both also adjusted by Holm's method, the tasks won
        and lost, and the smallest difference that would be found.

    Raises:
        StoreError: a directory has no run.
        UsageError: the runs are of different suites, or have no task in common.
    """
    method = method_of(seed=seed, resamples=resamples)
    return compare_loaded([load_run(path) for path in (first, *others)], method)
