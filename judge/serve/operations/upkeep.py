"""Upkeep, by the server or at the operator's request: sweeps, the audit log, outvoted golds."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from judge.api.options import JudgingOptions
from judge.api.resources import JudgingResources
from judge.api.verifying import outputs_of
from judge.grading.case import known_fault
from judge.serve.access.accounts import Later, create_account
from judge.serve.catalog import LoadedSuites, revision_of, suite_named
from judge.serve.context import Server
from judge.serve.disputes.review import DisputeKind
from judge.serve.operations.deliveries import deliver, plan, something_waits
from judge.serve.store import tables as t
from judge.serve.store.database import Actor, Database, all_rows, first_row
from judge.serve.store.folder import DataFolder
from judge.serve.store.ids import new_id
from judge.serve.store.words import AccountKind, DisputeState, JudgingState
from judge.suspects.audit import audit_suite
from judge.suspects.material import Tools
from judge.suspects.model import Certainty, Suspect
from judge.suspects.signs.verdicts import OUTVOTED

SWEPT_AFTER_S = 86_400
"""Files that no row names are removed at this age, in seconds; younger ones may yet get a row."""

AUDITOR = "audit"
"""Name of the account that opens automatic disputes."""

_SWEEP_EVERY_S = 3_600.0
_KEPT_DAYS = 7
_DAY_S = 86_400


def send_webhooks(server: Server) -> None:
    """Adds deliveries for new events, and sends them on a thread, since receivers may be slow."""
    plan(server.database)
    running: threading.Thread | None = server.shared.get("webhooks")
    if (running is not None and running.is_alive()) or not something_waits(server.database):
        return
    thread = threading.Thread(target=deliver, args=(server.database,), daemon=True)
    server.shared["webhooks"] = thread
    thread.start()


def sweep_hourly(server: Server) -> None:
    """Sweeps, if this process last swept at least an hour ago.

    Only files that already existed at the last sweep are removed: if the clock jumps a day forward,
    new files look old although their rows are about to be written.
    """
    now = time.monotonic()
    if now - server.shared.get("swept", float("-inf")) >= _SWEEP_EVERY_S:
        server.shared["swept"] = now
        seen = server.shared.get("seen by the sweep", set())
        server.shared["seen by the sweep"] = _entries(server.folder)
        sweep(server.database, server.folder, only=seen)


def sweep(
    database: Database,
    folder: DataFolder,
    older_s: float = SWEPT_AFTER_S,
    *,
    only: Collection[tuple[Path, int]] | None = None,
) -> int:
    """Removes files that no row names, and rows that have expired.

    Args:
        database: the server's database.
        folder: its data folder.
        older_s: files younger than this many seconds are kept.
        only: the entries that may be removed, see :func:`_entries`; None for all.

    Returns:
        How many files and folders were removed.
    """
    # Taken before the rows are read, so files written later are too young to be removed.
    candidates = [
        (path, changed)
        for path, changed in _entries(folder)
        if time.time() - changed / 1e9 > older_s and (only is None or (path, changed) in only)
    ]
    with database.reading() as connection:
        named = {
            "bodies": set(connection.scalars(sa.select(t.submission.c.sha256))),
            "suites": set(connection.scalars(sa.select(t.revision.c.folder))),
            "results": set(connection.scalars(sa.select(t.judging.c.id))),
            "tmp": set(),
        }
    removed = 0
    for path, changed in candidates:
        # If the same content was submitted again meanwhile, the file is younger now.
        if path.name.removesuffix(".d") not in named[path.parent.name] and (
            _changed(path) == changed
        ):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            removed += 1
    with database.writing(Actor("sweep")) as transaction:
        ended = Later(-_KEPT_DAYS * _DAY_S)
        for table in (t.idempotency, t.sign_in, t.session):
            transaction.execute(sa.delete(table).where(table.c.created < ended))
    return removed


def _entries(folder: DataFolder) -> set[tuple[Path, int]]:
    """Files and folders that may be swept, each with the time of its last change, in ns."""
    return {
        (path, changed)
        for name in ("bodies", "suites", "results", "tmp")
        for path in (folder.path / name).iterdir()
        if (changed := _changed(path)) is not None
    }


def _changed(path: Path) -> int | None:
    with contextlib.suppress(OSError):
        return path.stat().st_mtime_ns
    return None


def log_entries(
    database: Database, since: str, kind: str | None = None
) -> Iterator[Mapping[str, Any]]:
    """The events of the audit log since a time, oldest first.

    Args:
        database: the server's database.
        since: a time in UTC, ``2026-01-31T23:59:59Z``, or the beginning of one, such as a day.
        kind: kind of events, or the beginning of a kind, such as ``dispute``; None for all.
    """
    last = 0
    statement = sa.select(t.event).where(t.event.c.created >= since).order_by(t.event.c.seq)
    if kind is not None:
        statement = statement.where(t.event.c.kind.startswith(kind, autoescape=True))
    while True:
        with database.reading() as connection:
            rows = all_rows(connection, statement.where(t.event.c.seq > last).limit(1000))
        if not rows:
            return
        yield from rows
        last = rows[-1]["seq"]


def dispute_outvoted(server: Server, suite: str, actor: Actor) -> list[str]:
    """Disputes golds that the outputs of several accounts outvote, for reviewers to decide.

    Only the last judged submission of each account counts, so that nobody votes twice.

    Args:
        server: the server.
        suite: name of the suite.
        actor: the person who runs this, for the audit log.

    Returns:
        Ids of the new disputes.

    Raises:
        UsageError: there is no such suite.
        JudgeError: its files are missing.
    """
    with server.database.reading() as connection:
        row = suite_named(connection, suite)
        revision = revision_of(connection, row["current_revision"])
        runs = _last_runs(connection, row["id"], revision["id"])
    places = [server.folder.results(judging) for judging in runs]
    loaded = server.shared.setdefault("suites", LoadedSuites(server.folder)).suite(revision)
    with contextlib.ExitStack() as stack:
        resources = JudgingResources(JudgingOptions(recalc="never"), stack)
        settings = resources.settings(needs_sandbox=False)
        outputs, _ = outputs_of([place for place in places if place.is_dir()], loaded)
        tasks = [task for task in loaded.tasks if known_fault(task) is None]
        tools = Tools(settings.recalculator, _no_edit, outputs)
        audit = audit_suite(loaded, tasks, tools, [OUTVOTED])
    return _record(server, row["id"], audit.suspects, actor)


def _no_edit(*_: object) -> bytes:
    raise NotImplementedError("the sign that is examined edits nothing")


def _last_runs(connection: sa.Connection, suite: str, revision: str) -> list[str]:
    rows = connection.execute(
        sa.select(t.submission.c.account, t.judging.c.id)
        .join(t.phase, t.phase.c.id == t.submission.c.phase)
        .join(t.judging, t.judging.c.id == t.submission.c.current_judging)
        .join(t.conditions, t.conditions.c.digest == t.judging.c.conditions)
        .where(
            t.phase.c.suite == suite,
            t.conditions.c.revision == revision,
            t.judging.c.state == JudgingState.DONE,
            t.submission.c.withdrawn.is_(None),
        )
        .order_by(t.submission.c.seq)
    )
    last = {row.account: str(row.id) for row in rows}
    return list(last.values())


def _record(server: Server, suite: str, suspects: Sequence[Suspect], actor: Actor) -> list[str]:
    made = []
    with server.database.writing(actor) as transaction:
        auditor = transaction.one(sa.select(t.account.c.id).where(t.account.c.name == AUDITOR))
        account = (
            auditor["id"]
            if auditor is not None
            else create_account(transaction, AUDITOR, kind=AccountKind.SERVICE)
        )
        for suspect in suspects:
            if suspect.case is None or suspect.certainty is Certainty.POSSIBLE:
                continue
            same = sa.select(t.dispute.c.id).where(
                t.dispute.c.suite == suite,
                t.dispute.c.task == suspect.task,
                t.dispute.c.case == suspect.case,
                t.dispute.c.account == account,
            )
            if first_row(transaction.connection, same) is not None:
                continue
            dispute = new_id("dis")
            transaction.execute(
                sa.insert(t.dispute).values(
                    id=dispute,
                    suite=suite,
                    account=account,
                    task=suspect.task,
                    case=suspect.case,
                    kind=DisputeKind.GOLD,
                    # Without values: a claim becomes public when it is decided.
                    claim="Submissions of several accounts agree with each other, but not with "
                    "the gold.",
                    state=DisputeState.OPEN,
                )
            )
            transaction.event(
                "dispute.opened", dispute, after=DisputeState.OPEN, detail={"suite": suite}
            )
            made.append(dispute)
    return made
