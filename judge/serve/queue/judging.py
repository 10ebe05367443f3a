"""Has one judging done by the library: a results directory that is scored, and what it says.

The report is that of ``judge score``, because :class:`judge.api.scoring.RunScorer` makes both. A
judging that was interrupted goes on in its results directory, case by case. One of a rejudging
begins with what is on record of the submission, so that only what its new conditions change is
judged again.
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
from judge.serve.queue.conditions import corrections_place, score_options, suite_place
from judge.serve.queue.leases import Claim
from judge.serve.store import tables as t
from judge.serve.store.database import Database, row_of
from judge.serve.store.folder import DataFolder
from judge.serve.store.words import Kind
from judge.suites.layouts import Layout

_KEPT_SCORERS = 4
_SEEDS = (CASES_FILE, SUBMISSIONS_FILE, "workbooks", "files")


@dataclass(frozen=True, slots=True)
class Work:
    """What a judging is about.

    Attributes:
        submission: its row.
        phase: the row of the phase that it was handed in to.
        suite: the row of that phase's suite.
        now: time of the database when these were read.
        revision: the row of the revision by which it is judged.
        conditions: their document.
        is_rejudging: whether it belongs to a rejudging.
        before: id of the judging that counts now, for rejudgings; None otherwise, and where the
            rejudging wants every case judged afresh.
        afresh: tasks of which nothing on record is taken over.
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
    """What came of a judging.

    Attributes:
        verdicts: one for each case.
        report_sha256: of its report.json.
        scores: the numbers for lists and boards.
        problem: why it is incomplete; None if it is not.
    """

    verdicts: list[t.VerdictRow]
    report_sha256: str
    scores: dict[str, Any]
    problem: str | None


class StoppedError(Exception):
    """The judging was stopped between two cases; what is done is on record."""


class CaseCounter:
    """Counts the cases of a judging that are done, and stops it when it has to.

    Args:
        on_case: called with each case.

    Attributes:
        done: how many are done.
    """

    def __init__(self, on_case: Callable[[Event], None] = lambda _: None) -> None:
        self.done = 0
        self._on_case = on_case
        self._stop = threading.Event()

    def stop(self) -> None:
        """Has the judging stop after the case that is under way."""
        self._stop.set()

    def __call__(self, event: Event) -> None:
        """Takes note of one case.

        Raises:
            StoppedError: it is to stop.
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


class Scorers:
    """Scorers by the options of conditions, with engines that stay open. Safe to use from threads.

    Args:
        folder: the data folder.
        stack: closes the engines.
        sandbox: open, shared by all.
        shared: options that are no conditions: ``jobs``, ``sandbox``, ``cluster`` …
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
        self._signatures: dict[Path, tuple[str, float]] = {}  # of a place, and until when it counts

    def scorer(self, work: Work) -> RunScorer:
        """What scores runs under these options; suites are loaded once as long as they are used.

        Raises:
            SuiteError: the files of the revision are gone or changed.
        """
        place = suite_place(self._folder, work.revision)
        corrections = corrections_place(self._folder, work.revision)
        options = score_options(
            work.options, dataset=place, corrections=corrections, **self._shared
        )
        rules = repr(sorted(work.options.items()))
        name = f"{work.options}{place}{self._signature(place)}"  # one that was changed is loaded
        with self._lock:
            if rules not in self._resources:
                self._resources[rules] = JudgingResources(
                    options, self._stack, sandbox=self._sandbox
                )
            scorer = self._scorers.pop(name, None)
            if scorer is None:
                scorer = RunScorer(options, self._resources[rules])
            self._scorers[name] = scorer
            while len(self._scorers) > _KEPT_SCORERS:
                del self._scorers[next(iter(self._scorers))]
        suite = scorer.suite(str(place))
        if suite.digest != work.revision["digest"]:
            raise SuiteError(
                f"revision {work.revision['id']}: its files were changed; their digest is "
                f"{suite.digest[:12]}…, and it has to be {work.revision['digest'][:12]}…",
                hint="Add the suite again, as a new revision.",
            )
        return scorer

    def _signature(self, place: Path) -> str:
        """What :func:`_signature` says, renewed so often that it takes 5 % of a processor at most.

        A suite of 2,000 files takes 10 ms. A judging itself takes longer than such a signature
        counts, and files can be changed during it as well.
        """
        before, until = self._signatures.get(place, ("", 0.0))
        if time.monotonic() < until:
            return before
        began = time.thread_time()
        signature = _signature(place)
        pause = _PAUSE_BY_COST * (time.thread_time() - began)
        self._signatures[place] = signature, time.monotonic() + pause
        return signature


_PAUSE_BY_COST = 20


def _signature(place: Path) -> str:
    """What changes when a file of a suite is changed, without reading one: sizes and times."""
    digest = hashlib.sha256()
    folders = [str(place)]
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


def work_of(
    database: Database, claim: Claim, known: dict[str, KnownConditions] | None = None
) -> Work:
    """What a judging that was claimed is about.

    Args:
        database: where it is.
        claim: the judging.
        known: by the digest of conditions what was read before; what is read is added.
    """
    judging = claim.judging
    known = {} if known is None else known
    digest, scope = judging["conditions"], None
    with database.reading() as connection:
        submission = row_of(connection, t.submission, judging["submission"])
        phase = row_of(connection, t.phase, submission["phase"])
        suite = row_of(connection, t.suite, phase["suite"])
        now = str(connection.scalar(_NOW))
        if digest not in known:
            conditions = row_of(connection, t.conditions, digest)
            known[digest] = conditions, row_of(connection, t.revision, conditions["revision"])
        if judging["rejudging"] is not None:
            scope = row_of(connection, t.rejudging, judging["rejudging"])["scope"]
    conditions, revision = known[digest]
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


_NOW = sa.select(t.Now())


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
        scorers: what scores.
        claim: the judging.
        work: what it is about.
        count: gives what counts its cases.

    Raises:
        JudgeError: it cannot be judged.
        StoppedError: it had to stop.
    """
    results = folder.results(claim.id)
    if work.before is not None and not results.exists():
        _seed(folder, work.before, results, work.afresh)
    scorer = scorers.scorer(work)
    body = folder.body(work.submission["sha256"])
    if work.submission["kind"] == Kind.WORKBOOKS:
        outputs = folder.unpacked(body.name)
        source = RunToScore(results, solutions=None, outputs=outputs, fresh=True, layout=Layout())
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
    """The two figures besides the score, where the conditions have them measured."""
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
    """The last record of each case that the report is about, with what it earned if not all."""
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
    """Puts what is on record of a judging where another one begins; whole, or not at all."""
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
    """Workbooks are never changed in place, so that two directories can share one."""
    os.link(source, target)
    return target


def _sync(results: Path) -> None:
    """Puts the records behind the verdicts onto the disk, before a row names it."""
    with naming_what_is_written(results, StoreError):
        for name in (CASES_FILE, REPORT_FILE):
            descriptor = os.open(results / name, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
