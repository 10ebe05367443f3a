"""Backs up a running server, and restores a server from a backup.

The database is copied first (SQLite's backup API, or ``pg_dump``), then the files that its rows
name. Files are on disk before the rows that name them, and no row is deleted, so every file that
the copied database names exists. A backup contains golds, keys and programs: protect it like the
data folder.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL

from judge.errors import StoreError, UsageError
from judge.files.documents import dump_json, utc_now
from judge.files.packed_folder import unpack_tar
from judge.files.writing import naming_what_is_written, writing_whole
from judge.serve.store import tables as t
from judge.serve.store.database import Actor, Database, all_rows, sqlite_url
from judge.serve.store.folder import DataFolder
from judge.serve.store.words import JudgingState
from judge.version import __version__

FORMAT = 1
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
    """The URL for PostgreSQL's programs, without the password: other users can see arguments."""
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
