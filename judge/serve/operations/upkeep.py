"""Upkeep, by the server or for the operator: sweeps, backups, audit log, checks, outvoted golds.

In a backup, the database is copied first (SQLite's backup API, or ``pg_dump``), then the files that
its rows name. Files are on disk before the rows that name them, and no row is deleted, so every
file that the copied database names exists. A backup contains golds, keys and programs: protect it
like the data folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL

from judge import api
from judge.api.options import JudgingOptions
from judge.api.resources import JudgingResources
from judge.errors import JudgeError, StoreError, UsageError
from judge.files.documents import dump_json, utc_now
from judge.files.packed_folder import unpack_tar
from judge.files.writing import naming_what_is_written, writing_whole
from judge.grading.case import known_fault
from judge.grading.store import REPORT_FILE
from judge.serve.access.accounts import Later, create_account
from judge.serve.catalog import LoadedSuites, revision_of, suite_named
from judge.serve.context import Server
from judge.serve.disputes.review import DisputeKind
from judge.serve.operations.deliveries import deliver, plan, something_waits
from judge.serve.store import tables as t
from judge.serve.store.database import Actor, Database, all_rows, first_row, sqlite_url
from judge.serve.store.folder import DataFolder
from judge.serve.store.tables import AccountKind, DisputeState, JudgingState, Kind, new_id
from judge.suspects.audit import audit_suite
from judge.suspects.material import Tools
from judge.suspects.model import Certainty, Suspect
from judge.suspects.signs.verdicts import OUTVOTED
from judge.version import __version__

SWEPT_AFTER_S = 86_400
"""Files that no row names are removed at this age, in seconds; a younger file may still get a
row."""

AUDITOR = "audit"
"""Name of the account that opens automatic disputes."""

_SWEEP_EVERY_S = 3_600.0
_KEPT_DAYS = 7  # age of removed idempotency keys, links and sessions
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
        since: a time in UTC, such as ``2026-01-31T23:59:59Z``, or its beginning, such as the day.
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
    folders = [server.folder.results(judging) for judging in runs]
    loaded = server.shared.setdefault("suites", LoadedSuites(server.folder)).suite(revision)
    with contextlib.ExitStack() as stack:
        resources = JudgingResources(JudgingOptions(recalc="never"), stack)
        settings = resources.settings(needs_sandbox=False)
        outputs, _ = api.outputs_of([folder for folder in folders if folder.is_dir()], loaded)
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
    disputes = []
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
            disputes.append(dispute)
    return disputes


FORMAT = 1  # of backups; changes if older versions could not restore them
_MANIFEST, _SQLITE, _POSTGRESQL = "backup.json", "judge.db", "database.dump"
_ACTOR = Actor("restore")


@dataclass(frozen=True, slots=True)
class Backup:
    """The contents of a backup.

    Attributes:
        database: ``sqlite`` or ``postgresql``.
        files: how many files of the data folder it contains.
        bytes: size of the backup.
    """

    database: str
    files: int
    bytes: int


def back_up(database: Database, folder: DataFolder, target: Path) -> Backup:
    """Writes a backup, whole or not at all, while the server runs.

    Args:
        database: the server's database.
        folder: its data folder.
        target: the TAR archive to write; only its owner can read it.

    Raises:
        UsageError: the file exists.
        StoreError: it cannot be written, or ``pg_dump`` fails.
    """
    if target.exists():
        raise UsageError(f"{target}: already exists", hint="Name another file.")
    with (
        naming_what_is_written(target, StoreError),
        tempfile.TemporaryDirectory(dir=folder.temporary(), prefix="backup-") as scratch,
    ):
        kind = "sqlite" if database.is_sqlite else "postgresql"
        dump = Path(scratch) / (_SQLITE if database.is_sqlite else _POSTGRESQL)
        if database.is_sqlite:
            _copy_sqlite(Path(str(database.url.database)), dump)
        else:
            _run_postgresql("pg_dump", database.url, "--format=custom", "--file", str(dump))
        with (
            writing_whole(target, durable=True) as file,
            tarfile.open(fileobj=file, mode="w") as archive,
        ):
            files = _fill(archive, database, folder, dump, kind)
        return Backup(kind, files, target.stat().st_size)


def _fill(
    archive: tarfile.TarFile, database: Database, folder: DataFolder, dump: Path, kind: str
) -> int:
    manifest = {
        "format": FORMAT,
        "database": kind,
        "judge_version": __version__,
        "created": utc_now(),
    }
    data = dump_json(manifest).encode()
    head = tarfile.TarInfo(_MANIFEST)
    head.size, head.mode = len(data), 0o600
    archive.addfile(head, io.BytesIO(data))
    archive.add(dump, dump.name)
    files = 0
    for name in _named(database):
        source = folder.path / name
        for path in [source, *sorted(source.rglob("*"))] if source.is_dir() else [source]:
            if path.is_file() and not path.is_symlink():
                archive.add(path, f"data/{path.relative_to(folder.path)}", recursive=False)
                files += 1
    return files


def _named(database: Database) -> list[str]:
    """The paths in the data folder to which the database refers."""
    with database.reading() as connection:
        bodies = connection.scalars(sa.select(t.submission.c.sha256).distinct()).all()
        suites = connection.scalars(sa.select(t.revision.c.folder).distinct()).all()
        judged = sa.select(t.judging.c.id).where(t.judging.c.state == JudgingState.DONE)
        results = connection.scalars(judged).all()
    return [
        "keys",
        *(f"bodies/{name}{suffix}" for name in bodies for suffix in ("", ".d")),
        *(f"suites/{name}" for name in suites),
        *(f"results/{name}" for name in results),
    ]


def _copy_sqlite(source: Path, target: Path) -> None:
    with (
        contextlib.closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as opened,
        contextlib.closing(sqlite3.connect(target)) as copy,
    ):
        opened.backup(copy)


def restore(archive: Path, folder: DataFolder, database_url: str | None) -> Database:
    """Restores data folder and database from a backup; judgings that were running are queued.

    Args:
        archive: an archive that :func:`back_up` wrote.
        folder: a data folder that does not exist or is empty.
        database_url: an empty PostgreSQL database, if the backup is of one.

    Returns:
        The database, open, with the current schema.

    Raises:
        UsageError: the folder is in use, or the database is of another kind.
        StoreError: it is not a backup, or it cannot be restored.
    """
    if folder.path.exists() and any(folder.path.iterdir()):
        raise UsageError(f"{folder.path}: is not empty", hint="Restore into a new folder.")
    try:
        with (
            tempfile.TemporaryDirectory(prefix="judge-restore-") as scratch,
            tarfile.open(archive) as opened,
        ):
            root = Path(scratch)
            kind = _manifest(opened, archive)
            if (kind == "sqlite") == (database_url is not None):
                raise UsageError(
                    f"{archive}: is the backup of a {kind} database",
                    hint="Give --database URL only for PostgreSQL, and only an empty database.",
                )
            unpack_tar(opened, root)
            folder.make()
            for part in sorted((root / "data").glob("*")):
                shutil.copytree(part, folder.path / part.name, dirs_exist_ok=True)
            if kind == "sqlite":
                shutil.copyfile(root / _SQLITE, folder.database)
                database = Database(sqlite_url(folder.database))
            else:
                database = Database(str(database_url))
                dump = str(root / _POSTGRESQL)
                _run_postgresql("pg_restore", database.url, "--no-owner", "--exit-on-error", dump)
    except tarfile.ReadError as error:
        raise StoreError(
            f"{archive}: cannot be restored: it is not a complete tar archive",
            hint="Name a file that `judge serve admin backup` wrote.",
        ) from error
    except (OSError, tarfile.TarError, KeyError, ValueError) as error:
        raise StoreError(f"{archive}: cannot be restored: {error}") from error
    database.migrate()
    return_all_leases(database)
    return database


def _manifest(archive: tarfile.TarFile, path: Path) -> str:
    member = archive.extractfile(_MANIFEST)
    manifest: Any = json.load(member) if member is not None else {}
    if manifest.get("format") != FORMAT or manifest.get("database") not in {"sqlite", "postgresql"}:
        raise StoreError(f"{path}: is not a backup that this version of the judge can read")
    return str(manifest["database"])


def return_all_leases(database: Database) -> int:
    """Queues every judging that was running when the backup was made.

    Returns:
        How many there were.
    """
    with database.writing(_ACTOR) as transaction:
        running = all_rows(
            transaction.connection,
            sa.select(t.judging.c.id, t.judging.c.account).where(
                t.judging.c.state == JudgingState.RUNNING
            ),
        )
        for row in running:
            transaction.execute(
                sa.update(t.account)
                .where(t.account.c.id == row["account"])
                .values(waiting=t.account.c.waiting + 1, running=t.account.c.running - 1)
            )
            transaction.execute(
                sa.update(t.judging)
                .where(t.judging.c.id == row["id"])
                .values(state=JudgingState.QUEUED, lease=None, holder=None, front=1)
            )
            transaction.event(
                "judging.queued",
                row["id"],
                before=JudgingState.RUNNING,
                after=JudgingState.QUEUED,
            )
        transaction.execute(sa.update(t.dispatcher).values(state="stopped"))
    return len(running)


def _without_password(url: URL) -> str:
    """The URL for PostgreSQL's programs; without the password, as other users can see arguments."""
    return URL.create(
        "postgresql",
        username=url.username,
        host=url.host,
        port=url.port,
        database=url.database,
        query=url.query,
    ).render_as_string(hide_password=False)


def _run_postgresql(program: str, url: URL, *arguments: str) -> None:
    """Runs a program of PostgreSQL on a database; passes the password in the environment."""
    installed = shutil.which(program) or next(
        (str(path) for path in sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"))), None
    )
    if installed is None:
        raise StoreError(f"{program} is not installed", hint="apt-get install postgresql-client")
    plain = _without_password(url)
    environment = {**os.environ, **({"PGPASSWORD": str(url.password)} if url.password else {})}
    done = subprocess.run(
        [installed, "--dbname", plain, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = done.stderr.strip().splitlines()
        raise StoreError(f"{program} failed: {reason[0] if reason else done.returncode}")


_J, _S, _A, _V = t.judging.c, t.submission.c, t.account.c, t.verdict.c


def faults_of(database: Database, folder: DataFolder) -> list[str]:
    """Lists the invariants that do not hold, one line for each; see docs/serve.md.

    Args:
        database: the server's database.
        folder: its data folder, which must contain bodies and reports.
    """
    with database.reading() as connection:
        return [
            *_counts(connection),
            *_verdicts(connection),
            *_current(connection),
            *_boards(connection),
            *_events(connection),
            *_files(connection, folder),
        ]


def changed_revisions(database: Database, folder: DataFolder) -> list[str]:
    """Lists the revisions whose files are missing or changed, which cannot be used for judging.

    Args:
        database: the server's database.
        folder: its data folder.
    """
    faults = []
    with database.reading() as connection:
        rows = all_rows(connection, sa.select(t.revision).order_by(t.revision.c.id))
    for row in rows:
        name = f"revision {row['id']}"
        try:
            digest = LoadedSuites(folder).suite(row).digest
        except JudgeError as error:
            faults.append(f"{name}: {error.message}")
        else:
            if digest != row["digest"]:
                faults.append(f"{name}: its files were changed")
    return faults


def _counts(connection: sa.Connection) -> list[str]:
    faults = []
    for column, state in (("waiting", JudgingState.QUEUED), ("running", JudgingState.RUNNING)):
        counted = (
            sa.select(_J.account, sa.func.count().label("number"))
            .where(_J.state == state)
            .group_by(_J.account)
            .subquery()
        )
        number = sa.func.coalesce(counted.c.number, 0)
        query = (
            sa.select(_A.name, _A[column].label("kept"), number.label("counted"))
            .select_from(t.account.outerjoin(counted, counted.c.account == _A.id))
            .where(_A[column] != number)
        )
        faults += [
            f"account {row['name']}: {column} is {row['kept']}, and {row['counted']} are {state}"
            for row in all_rows(connection, query)
        ]
    query = sa.select(_J.id).where((_J.state == JudgingState.RUNNING) != _J.lease.is_not(None))
    faults += [
        f"judging {row['id']}: lease and state differ" for row in all_rows(connection, query)
    ]
    return faults


def _verdicts(connection: sa.Connection) -> list[str]:
    counted = sa.select(_V.judging, sa.func.count().label("number")).group_by(_V.judging).subquery()
    number = sa.func.coalesce(counted.c.number, 0)
    expected = sa.case((_J.state == JudgingState.DONE, _J.cases), else_=0)
    query = (
        sa.select(_J.id, _J.state, number.label("number"), expected.label("expected"))
        .select_from(t.judging.outerjoin(counted, counted.c.judging == _J.id))
        .where(number != expected)
    )
    faults = [
        f"judging {row['id']} ({row['state']}): {row['number']} verdicts in place of "
        f"{row['expected']}"
        for row in all_rows(connection, query)
    ]
    query = sa.select(_J.id).where(_J.state == JudgingState.DONE, _J.report_sha256.is_(None))
    faults += [f"judging {row['id']}: done without a report" for row in all_rows(connection, query)]
    return faults


def _current(connection: sa.Connection) -> list[str]:
    other = t.judging.alias()
    # Ids follow the clock, which can be set back. The first judging is the only one without a
    # rejudging.
    first = (
        sa.select(sa.func.min(other.c.id))
        .where(other.c.submission == _S.id, other.c.rejudging.is_(None))
        .scalar_subquery()
    )
    query = (
        sa.select(_S.id)
        .select_from(t.submission.outerjoin(t.judging, _J.id == _S.current_judging))
        .where(
            sa.or_(
                _J.id.is_(None),
                _J.submission != _S.id,
                sa.and_(_J.state != JudgingState.DONE, _J.id != first),
            )
        )
    )
    return [
        f"submission {row['id']}: its current judging is neither done nor the first one"
        for row in all_rows(connection, query)
    ]


def _boards(connection: sa.Connection) -> list[str]:
    faults = []
    query = sa.select(_J.id, _J.conditions)
    conditions = {row.id: row.conditions for row in connection.execute(query)}
    versions = sa.select(t.board_version).order_by(
        t.board_version.c.board, t.board_version.c.number
    )
    before: dict[str, str] = {}
    for row in all_rows(connection, versions):
        name = f"board {row['board']}, version {row['number']}"
        if row["previous"] != before.get(row["board"]):
            faults.append(f"{name}: does not name the previous version")
        if hashlib.sha256(row["document"].encode()).hexdigest() != row["sha256"]:
            faults.append(f"{name}: its document was changed")
        faults += [
            f"{name}: judging {judging} was made under other conditions"
            for judging in _judgings_in(row["document"])
            if conditions.get(judging) != row["conditions"]
        ]
        before[row["board"]] = row["sha256"]
    return faults


def _judgings_in(document: str) -> list[str]:
    try:
        return [str(entry["judging"]) for entry in json.loads(document).get("entries", ())]
    except (ValueError, TypeError, AttributeError, KeyError):
        return []  # it was changed, which is already listed


def _events(connection: sa.Connection) -> list[str]:
    """Lists judgings whose state differs from that of their last event."""
    event = t.event.c
    moved = event.kind.in_([f"judging.{state}" for state in JudgingState])
    newest = (
        sa.select(event.object, sa.func.max(event.seq).label("seq"))
        .where(moved)
        .group_by(event.object)
        .subquery()
    )
    query = (
        sa.select(_J.id, _J.state, event.after)
        .select_from(
            t.judging.join(newest, newest.c.object == _J.id).join(
                t.event, event.seq == newest.c.seq
            )
        )
        .where(event.after != _J.state)
    )
    return [
        f"judging {row['id']}: is {row['state']}, and its last event says {row['after']}"
        for row in all_rows(connection, query)
    ]


def _files(connection: sa.Connection, folder: DataFolder) -> list[str]:
    faults = []
    for row in all_rows(connection, sa.select(_S.id, _S.sha256, _S.kind)):
        body = folder.body(row["sha256"])
        if not body.is_file():
            faults.append(f"submission {row['id']}: its body is missing")
        elif row["kind"] == Kind.WORKBOOKS and not folder.unpacked(row["sha256"]).is_dir():
            faults.append(f"submission {row['id']}: its workbooks are missing")
    for row in all_rows(connection, sa.select(_J.id, _J.report_sha256).where(_J.state == "done")):
        report = folder.results(row["id"]) / REPORT_FILE
        if not report.is_file():
            faults.append(f"judging {row['id']}: its report is missing")
        elif hashlib.sha256(report.read_bytes()).hexdigest() != row["report_sha256"]:
            faults.append(f"judging {row['id']}: its report was changed")
    return faults
