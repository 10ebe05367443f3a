"""A PostgreSQL server of Debian's packages for tests, started when first asked for."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from judge.serve.store.database import Database, sqlite_url

_USER = "postgres"


def _program(name: str) -> str | None:
    debian = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(debian[-1]) if debian else shutil.which(name)


@contextlib.contextmanager
def running_postgresql() -> Iterator[str]:
    """Runs a server on a socket of its own; as root, under the account that the package made.

    Yields:
        The URL of its databases, without a name at the end.
    """
    initdb, control = _program("initdb"), _program("pg_ctl")
    if initdb is None or control is None:
        pytest.skip("needs PostgreSQL (apt-get install postgresql)")
    account = _USER if os.getuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="judge-pg-") as name:
        folder = Path(name)
        if account is not None:
            shutil.chown(folder, account)
        data = folder / "data"

        def run(*command: str | Path) -> None:
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, user=account)

        run(initdb, "-D", data, "-A", "trust", "-U", _USER, "-N")
        server = f"-k {folder} -c listen_addresses= -c max_connections=200 -c fsync=off"
        run(control, "-D", data, "-w", "-l", folder / "log", "-o", server, "start")
        try:
            yield f"postgresql://{_USER}@/{{name}}?host={folder}"
        finally:
            run(control, "-D", data, "-m", "immediate", "-w", "stop")


def new_postgresql_name(postgresql: str, template: str = "template1") -> str:
    """The name of a new database of a server: empty, or a copy of another one."""
    import psycopg  # noqa: PLC0415

    name = f"judge_{os.urandom(6).hex()}"
    with psycopg.connect(postgresql.format(name="postgres"), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
    return name


@functools.cache
def _postgresql_template(postgresql: str) -> str:
    """The name of a database of a server that has the tables and no rows."""
    name = new_postgresql_name(postgresql)
    with contextlib.closing(Database(postgresql.format(name=name))) as database:
        database.migrate()
    return name


@functools.cache
def _sqlite_template() -> bytes:
    """A SQLite file that has the tables and no rows."""
    with tempfile.TemporaryDirectory(prefix="judge-sqlite-") as name:
        path = Path(name) / "judge.db"
        with contextlib.closing(Database(sqlite_url(path))) as database:
            database.migrate()
        assert [file.name for file in Path(name).iterdir()] == [path.name], "no log is left over"
        return path.read_bytes()


@contextlib.contextmanager
def new_database(kind: str, folder: Path, postgresql: str | None) -> Iterator[Database]:
    """A database with the tables of the server: a copy of one that was made for all tests.

    Args:
        kind: ``sqlite`` or ``postgresql``.
        folder: where a SQLite file may be.
        postgresql: what :func:`running_postgresql` gave.
    """
    if kind == "sqlite":
        path = folder / "judge.db"
        path.write_bytes(_sqlite_template())
        database = Database(sqlite_url(path))
    else:
        assert postgresql is not None
        template = _postgresql_template(postgresql)
        database = Database(postgresql.format(name=new_postgresql_name(postgresql, template)))
    with contextlib.closing(database):
        yield database
