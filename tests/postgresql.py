"""A PostgreSQL server for tests, from Debian's packages, started when it is first needed."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judge.serve.store.database import Database, sqlite_url

_USER = "postgres"
_SQLITE_FILE = "judge.db"
_TRIES = 20


def _program(name: str) -> str | None:
    debian = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(debian[-1]) if debian else shutil.which(name)


class PostgreSQL:
    """A server on its own socket; if run as root, under the account that the package made.

    Args:
        folder: a new folder, for its data and its socket.
        durable: whether it waits for the disk, as it does outside tests.
    """

    def __init__(self, folder: Path, *, durable: bool = False) -> None:
        initdb, control = _program("initdb"), _program("pg_ctl")
        if initdb is None or control is None:
            pytest.skip("needs PostgreSQL (apt-get install postgresql)")
        self._control, self._folder, self.data = control, folder, folder / "data"
        self._account = _USER if os.getuid() == 0 else None
        self._options = "" if durable else " -c fsync=off"
        if self._account is not None:
            shutil.chown(folder, self._account)
        self._run(initdb, "-D", self.data, "-A", "trust", "-U", _USER, "-N")

    @classmethod
    @contextlib.contextmanager
    def running(cls, folder: Path | None = None, *, durable: bool = False) -> Iterator[PostgreSQL]:
        """One that runs, in a temporary folder or in one that is empty.

        A database is some three hundred files: where ``scripts/with-test-machine`` keeps the files
        of tests in memory, those of temporary servers are there as well.
        """
        in_memory = os.environ.get("PYTEST_DEBUG_TEMPROOT") or None
        with tempfile.TemporaryDirectory(prefix="judge-pg-", dir=in_memory) as name:
            made = cls(folder or Path(name), durable=durable)
            made.start()
            try:
                yield made
            finally:
                made.stop()

    @property
    def url(self) -> str:
        """The URL of its databases, with ``{name}`` at the end."""
        return f"postgresql://{_USER}@/{{name}}?host={self._folder}"

    @property
    def pid(self) -> int:
        """The id of the server's main process; 0 if it does not run."""
        try:
            return int((self.data / "postmaster.pid").read_text().splitlines()[0])
        except (OSError, ValueError, IndexError):
            return 0

    def start(self) -> None:
        """Starts the server, and waits until it answers."""
        server = f"-k {self._folder} -c listen_addresses= -c max_connections=200{self._options}"
        log = self._folder / "log"
        command: list[str | Path] = [self._control, "-D", self.data, "-w", "-t", "120", "-l", log]
        command += ["-o", server]
        for tries in range(10):  # what it left behind when it was killed may still be in use
            try:
                self._run(*command, "start")
            except subprocess.CalledProcessError:
                if tries == 9:
                    raise
                time.sleep(0.5)
            else:
                return

    def stop(self) -> None:
        """Ends the server."""
        self._run(self._control, "-D", self.data, "-m", "immediate", "-w", "stop")

    def kill(self) -> None:
        """Kills the server and its processes, as a machine failure would."""
        first = self.pid
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        for pid in (first, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while any(_runs(pid) for pid in (first, *map(int, children))):
            time.sleep(0.02)

    def answers(self) -> bool:
        """Whether the server runs and answers."""
        command: list[str | Path] = [self._control, "-D", self.data, "status"]
        code = subprocess.run(
            command, check=False, stdout=subprocess.DEVNULL, cwd=self._folder, user=self._account
        ).returncode
        return code == 0

    def new_database(self) -> str:
        """The URL of a new, empty database."""
        return self.url.format(name=new_postgresql_name(self.url))

    def _run(self, *command: str | Path) -> None:
        subprocess.run(
            command, cwd=self._folder, check=True, stdout=subprocess.DEVNULL, user=self._account
        )


def _runs(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):  # it is ours where orphans come to this process
        os.waitpid(pid, os.WNOHANG)
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@contextlib.contextmanager
def running_postgresql() -> Iterator[str]:
    """Runs a server for a while.

    Yields:
        The URL of its databases, without a name at the end.
    """
    with PostgreSQL.running() as server:
        yield server.url


def new_postgresql_name(postgresql: str, template: str = "template1") -> str:
    """Returns the name of a new database on a server: empty, or a copy of another database."""
    import psycopg  # noqa: PLC0415

    name = f"judge_{os.urandom(6).hex()}"
    with psycopg.connect(postgresql.format(name="postgres"), autocommit=True) as admin:
        # Block by block through the log, as newer servers do by default, takes three times as long.
        by_files = " STRATEGY file_copy" if admin.info.server_version >= 150_000 else ""
        for tries in range(_TRIES):
            try:
                admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}{by_files}".encode())
                break
            except psycopg.errors.ObjectInUse:
                # On a busy machine the server's end of a connection to the template that was
                # closed just now may live on for longer than the five seconds that it waits.
                if tries == _TRIES - 1:
                    raise
    return name


class _Statements(dict[tuple[Any, ...], Any]):
    """Compiled statements by the keys that SQLAlchemy gives them, but for which dialect it is."""

    def get(self, key: tuple[Any, ...], default: Any = None) -> Any:
        return super().get((type(key[0]), *key[1:]), default)

    def __setitem__(self, key: tuple[Any, ...], compiled: Any) -> None:
        super().__setitem__((type(key[0]), *key[1:]), compiled)


_statements = _Statements()


def opened_database(url: str) -> Database:
    """A database that shares the compiled statements of all that were opened in this process.

    To compile a statement takes longer than to carry it out in so small a database, and each one
    would compile all of its own.
    """
    database = Database(url)
    for engine in (database._engine, database._writing_engine):
        engine.update_execution_options(compiled_cache=_statements)
    return database


@functools.cache
def _empty_template(postgresql: str | None) -> bytes | str:
    """Makes a database with the tables and no rows, on SQLite if no server is given."""
    with tempfile.TemporaryDirectory(prefix="judge-sqlite-") as name:
        if postgresql is None:
            url = sqlite_url(Path(name) / _SQLITE_FILE)
        else:
            url = postgresql.format(name=new_postgresql_name(postgresql))
        with contextlib.closing(opened_database(url)) as database:
            database.migrate()
        return template_of(database, Path(name))


def template_of(database: Database, folder: Path) -> bytes | str:
    """Makes a closed database to copy from: a SQLite file, or the name of one on the server."""
    if not database.is_sqlite:
        return str(database.url.database)
    path = folder / _SQLITE_FILE
    assert list(folder.glob(f"{_SQLITE_FILE}*")) == [path], "no log is left over"
    return path.read_bytes()


def new_sqlite(folder: Path, template: bytes | str | None = None) -> Database:
    """Makes a SQLite file in a folder: a copy of a template, or just the server's tables."""
    content = _empty_template(None) if template is None else template
    assert isinstance(content, bytes)
    path = folder / _SQLITE_FILE
    path.write_bytes(content)
    return opened_database(sqlite_url(path))


@contextlib.contextmanager
def new_database(
    kind: str, folder: Path, postgresql: str | None, template: bytes | str | None = None
) -> Iterator[Database]:
    """Makes a database with the server's tables: a copy of one that was made for all tests.

    Args:
        kind: ``sqlite`` or ``postgresql``.
        folder: where a SQLite file may be.
        postgresql: what :func:`running_postgresql` gave.
        template: what it is a copy of (:func:`template_of`); without rows if None.
    """
    if kind == "sqlite":
        database = new_sqlite(folder, template)
    else:
        assert postgresql is not None
        chosen = template or _empty_template(postgresql)
        url = postgresql.format(name=new_postgresql_name(postgresql, str(chosen)))
        database = opened_database(url)
    with contextlib.closing(database):
        yield database
