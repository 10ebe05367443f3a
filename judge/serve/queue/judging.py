"""Runs one judging with the library: scores a results directory, and reads the outcome from it.

The report equals that of ``judge score``: :class:`judge.api.scoring.RunScorer` makes both. A
judging that was interrupted continues in its results directory, case by case. A judging of a
rejudging begins with a copy of the submission's records, so that only the cases that depend on
changed conditions are judged again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import sqlalchemy as sa

from judge.api.resources import JudgingResources
from judge.api.scoring import RunScorer, RunToScore
from judge.core.records.reports import ReportDocument, ShareReport
from judge.core.score import earned_share
from judge.core.verdict import Verdict
from judge.errors import StoreError, SuiteError
from judge.files.writing import naming_what_is_written
from judge.grading.batch import Event
from judge.grading.store import CASES_FILE, REPORT_FILE, SUBMISSIONS_FILE, RunDirectory
from judge.sandbox.contract import Sandbox
from judge.serve.queue.conditions import corrections_path, score_options, suite_path
from judge.serve.queue.leases import Claim
from judge.serve.store import tables as t
from judge.serve.store.database import Database, row_of
from judge.serve.store.folder import DataFolder
from judge.serve.store.tables import Kind
from judge.suites.layouts import Layout

_MAX_SCORERS = 4  # each keeps a suite and engines open
_SEEDS = (CASES_FILE, SUBMISSIONS_FILE, "workbooks", "files")


@dataclass(frozen=True, slots=True)
class Work:
    """The rows of the database that a judging needs.

    Attributes:
        submission: row of the submission.
        phase: row of the submission's phase.
        suite: row of that phase's suite.
        now: time of the database when these were read.
        revision: row of the revision by which it is judged.
        conditions: document of the conditions.
        is_rejudging: whether it belongs to a rejudging.
        before: for a rejudging, id of the judging that counts now; None if there is no rejudging,
            or if it judges every case afresh.
        afresh: tasks whose records are not copied.
    """

    submission: Mapping[str, Any]
    phase: dict[str, Any]
    suite: dict[str, Any]
    now: str
    revision: dict[str, Any]
    conditions: Mapping[str, Any]
    is_rejudging: bool
    before: str | None
    afresh: frozenset[str] = frozenset()

    @property
    def options(self) -> dict[str, Any]:
        """The options of the conditions."""
        options: dict[str, Any] = self.conditions["options"]
        return options


@dataclass(frozen=True, slots=True)
class Judged:
    """The outcome of a judging.

    Attributes:
        verdicts: the verdict of each case.
        report_sha256: SHA-256 of its report.json.
        scores: the numbers for lists and boards.
        problem: why it is incomplete; None if it is complete.
    """

    verdicts: list[t.VerdictRow]
    report_sha256: str
    scores: dict[str, Any]
    problem: str | None


class StoppedError(Exception):
    """The judging was stopped between two cases; the finished cases are recorded."""


class CaseCounter:
    """Counts the finished cases of a judging, and stops it on request.

    Args:
        on_case: called with each case.

    Attributes:
        done: how many cases are finished.
    """

    def __init__(self, on_case: Callable[[Event], None] = lambda _: None) -> None:
        self.done = 0
        self._on_case = on_case
        self._stop = threading.Event()

    def stop(self) -> None:
        """Makes the judging stop after the current case."""
        self._stop.set()

    def __call__(self, event: Event) -> None:
        """Counts one case.

        Raises:
            StoppedError: the judging has to stop.
        """
        self.done = event.done
        self._on_case(event)
        if self._stop.is_set():
            raise StoppedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return None


_PAUSE_BY_COST = 20  # times the processor time of a signature: at most 5 % of a core


class Scorers:
    """Keeps a scorer, with open engines, for each set of options. Several threads may use it.

    Args:
        folder: the data folder.
        stack: closes the engines when it is closed.
        sandbox: an open sandbox, shared by all scorers.
        shared: options that are not part of conditions: ``jobs``, ``sandbox``, ``cluster`` …
    """

    def __init__(
        self,
        folder: DataFolder,
        stack: contextlib.ExitStack,
        sandbox: Sandbox | None,
        shared: Mapping[str, Any],
    ) -> None:
        self._folder = folder
        self._stack = stack
        self._sandbox = sandbox
        self._shared = dict(shared)
        self._lock = threading.Lock()
        self._resources: dict[str, JudgingResources] = {}
        self._scorers: dict[str, RunScorer] = {}
        self._signatures: dict[Path, tuple[str, float]] = {}  # path -> signature, valid until

    def scorer(self, work: Work) -> RunScorer:
        """The scorer for the options of a judging, with its suite loaded.

        Raises:
            SuiteError: the files of the revision are missing or changed.
        """
        path = suite_path(self._folder, work.revision)
        corrections = corrections_path(self._folder, work.revision)
        options = score_options(work.options, dataset=path, corrections=corrections, **self._shared)
        rules = repr(sorted(work.options.items()))
        name = f"{work.options}{path}{self._signature(path)}"  # if files changed, load again
        with self._lock:
            if rules not in self._resources:
                self._resources[rules] = JudgingResources(
                    options, self._stack, sandbox=self._sandbox
                )
            scorer = self._scorers.pop(name, None)
            if scorer is None:
                scorer = RunScorer(options, self._resources[rules])
            self._scorers[name] = scorer
            while len(self._scorers) > _MAX_SCORERS:
                del self._scorers[next(iter(self._scorers))]
        suite = scorer.suite(str(path))
        if suite.digest != work.revision["digest"]:
            raise SuiteError(
                f"revision {work.revision['id']}: its files were changed; their digest is "
                f"{suite.digest[:12]}…, and it has to be {work.revision['digest'][:12]}…",
                hint="Add the suite again, as a new revision.",
            )
        return scorer

    def _signature(self, path: Path) -> str:
        """The result of :func:`_signature`, cached so that it takes at most 5 % of a processor.

        The signature of 2,000 files takes 10 ms. The short delay does no harm, because files can
        change during a judging as well, and a judging takes longer.
        """
        before, until = self._signatures.get(path, ("", 0.0))
        if time.monotonic() < until:
            return before
        began = time.thread_time()
        signature = _signature(path)
        pause = _PAUSE_BY_COST * (time.thread_time() - began)
        self._signatures[path] = signature, time.monotonic() + pause
        return signature


def _signature(path: Path) -> str:
    """A hash that changes with any file of a suite; made from sizes and times, not contents."""
    digest = hashlib.sha256()
    folders = [str(path)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                status = entry.stat(follow_symlinks=False)
                digest.update(f"{entry.path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    return digest.hexdigest()


KnownConditions = tuple[dict[str, Any], dict[str, Any]]
"""Rows of conditions and of their revision, which never change."""


_NOW = sa.select(t.Now())


def work_of(
    database: Database, claim: Claim, rows_read: dict[str, KnownConditions] | None = None
) -> Work:
    """Reads the rows that a claimed judging needs.

    Args:
        database: the server's database.
        claim: the claimed judging.
        rows_read: a cache of rows by the digest of conditions, to which new rows are added.
    """
    judging = claim.judging
    rows_read = {} if rows_read is None else rows_read
    digest, scope = judging["conditions"], None
    with database.reading() as connection:
        submission = row_of(connection, t.submission, judging["submission"])
        phase = row_of(connection, t.phase, submission["phase"])
        suite = row_of(connection, t.suite, phase["suite"])
        now = str(connection.scalar(_NOW))
        if digest not in rows_read:
            conditions = row_of(connection, t.conditions, digest)
            rows_read[digest] = conditions, row_of(connection, t.revision, conditions["revision"])
        if judging["rejudging"] is not None:
            scope = row_of(connection, t.rejudging, judging["rejudging"])["scope"]
    conditions, revision = rows_read[digest]
    before: str | None = None
    afresh: frozenset[str] = frozenset()
    if scope is not None and not scope["afresh"] and submission["current_judging"] != claim.id:
        before, afresh = submission["current_judging"], frozenset(scope["tasks"])
    return Work(
        submission=submission,
        phase=phase,
        suite=suite,
        now=now,
        revision=revision,
        conditions=conditions["document"],
        is_rejudging=scope is not None,
        before=before,
        afresh=afresh,
    )


def judge(
    folder: DataFolder,
    scorers: Scorers,
    claim: Claim,
    work: Work,
    count: Callable[[str], CaseCounter],
) -> Judged:
    """Judges a submission in its results directory.

    Args:
        folder: the data folder.
        scorers: the scorers.
        claim: the claimed judging.
        work: the rows that it needs.
        count: returns the counter of its cases.

    Raises:
        JudgeError: it cannot be judged.
        StoppedError: the judging was stopped.
    """
    results = folder.results(claim.id)
    if work.before is not None and not results.exists():
        _seed(folder, work.before, results, work.afresh)
    scorer = scorers.scorer(work)
    body = folder.body(work.submission["sha256"])
    if work.submission["kind"] == Kind.WORKBOOKS:
        outputs = folder.unpacked(body.name)
        source = RunToScore(
            results, solutions=None, outputs=outputs, fresh=True, layout=Layout(), noted=False
        )
    else:
        source = RunToScore(results, solutions=body, outputs=None, fresh=True)
    scored = scorer.score(source, count)
    _sync(results)
    overall = scored.report["overall"]
    data = (results / REPORT_FILE).read_bytes()
    scores: dict[str, Any] = {
        "soft": overall["soft_restriction"],
        "hard": overall["hard_restriction"],
        "tasks": overall["tasks"],
        "cases": overall["cases"],
        "verdicts": overall["verdicts"],
    }
    if figures := _figures(scored.report):
        scores["figures"] = figures
    earned = {
        (one.task_id, one.sample, one.case): None
        if one.verdict is Verdict.AC
        else earned_share(one) or None
        for one in scored.results
    }
    verdicts = _verdicts(results, earned)
    return Judged(verdicts, hashlib.sha256(data).hexdigest(), scores, scored.problem)


def _figures(report: ReportDocument) -> dict[str, ShareReport]:
    """The figures ``collateral`` and ``dynamic``, if the conditions include their measurement."""
    scope = report.get("scope") or {}
    figures: dict[str, ShareReport] = {}
    if (collateral := scope.get("collateral")) is not None:
        figures["collateral"] = collateral["tasks"]
    if (dynamic := scope.get("dynamic")) is not None:
        figures["dynamic"] = dynamic["accepted"]["live"]
    return figures


def _verdicts(
    results: Path, judged: Mapping[tuple[str, int, int], float | None]
) -> list[t.VerdictRow]:
    """The verdict row of each case of the report, from the case's last record."""
    rows: dict[tuple[str, int, int], t.VerdictRow] = {}
    with RunDirectory(results) as store:
        for record in store.read_records(CASES_FILE):
            key = (str(record["task"]), int(str(record["sample"])), int(str(record["case"])))
            if key not in judged:
                continue
            run = record.get("run")
            output = run.get("output_sha256") if isinstance(run, dict) else None
            run_key, comparison_key = record.get("run_key"), record.get("comparison_key")
            rows[key] = t.VerdictRow(
                task=key[0],
                sample=key[1],
                case=key[2],
                verdict=str(record["verdict"]),
                run_key=run_key if isinstance(run_key, str) else None,
                comparison_key=comparison_key if isinstance(comparison_key, str) else None,
                output_sha256=output if isinstance(output, str) else None,
                earned=judged[key],
            )
    return [rows[key] for key in sorted(rows)]


def _seed(folder: DataFolder, before: str, results: Path, afresh: frozenset[str]) -> None:
    """Copies the records of a judging to another results directory, either all or none."""
    source = folder.results(before)
    scratch = folder.temporary() / results.name
    with naming_what_is_written(results, StoreError):
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        for name in _SEEDS:
            if (source / name).is_dir():
                shutil.copytree(source / name, scratch / name, copy_function=_linked)
            elif (source / name).is_file():
                shutil.copyfile(source / name, scratch / name)
        if afresh:
            with RunDirectory(scratch) as store:
                records = list(store.read_records(CASES_FILE))
                store.replace_records(
                    CASES_FILE, [record for record in records if str(record["task"]) not in afresh]
                )
        scratch.replace(results)


def _linked(source: str, target: str) -> str:
    """Links a file instead of copying it, as workbooks are never changed in place."""
    os.link(source, target)
    return target


def _sync(results: Path) -> None:
    """Syncs the records behind the verdicts to the disk, before a row refers to them."""
    with naming_what_is_written(results, StoreError):
        for name in (CASES_FILE, REPORT_FILE):
            descriptor = os.open(results / name, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
