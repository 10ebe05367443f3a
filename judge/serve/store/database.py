"""Opens the database, keeps its schema up to date, and runs transactions on it.

SQLite runs in WAL mode with one writer at a time in a process, and every writing transaction
begins with ``BEGIN IMMEDIATE``, so that what it reads cannot change before it writes. PostgreSQL
locks rows instead (``with_for_update``, which SQLAlchemy leaves out on SQLite); locks are taken in
the order account, then judging, then events.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    InterfaceError,
    InternalError,
    OperationalError,
)

from judge.errors import StoreError, UsageError
from judge.serve.store.tables import event

_BUSY_MS = 30_000  # how long a writer waits for another one
_EVENT_LOCK = 0x6A756467_65766E74  # "judgevnt": events are numbered in the order of their commits
_SCHEMA_LOCK = 0x6A756467_6D696772  # "judgmigr"
_STARTING = sa.select(sa.func.pg_advisory_xact_lock(_SCHEMA_LOCK))
_MAX_STATE_CHARS = 80  # length of the columns ``before`` and ``after``
_IDLE_S = 20.0  # then PostgreSQL ends a transaction; see :class:`Database`
_CHANNEL = "judge_events"
_WRITES = sa.select(
    sa.func.pg_advisory_xact_lock(_EVENT_LOCK), sa.func.pg_notify(_CHANNEL, sa.literal(""))
)
_LIMITS = "SET idle_in_transaction_session_timeout = {idle}; SET lock_timeout = {lock}"
_TIMEOUTS = {
    "connect_timeout": 10,
    # A machine that has vanished does not even report that the connection is closed.
    "tcp_user_timeout": 20_000,  # milliseconds
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}


_INSERT_EVENT = sa.insert(event)


@dataclass(frozen=True, slots=True)
class Actor:
    """The author of a change, for the audit log.

    Attributes:
        name: an account's id, or the name of a part of the server, such as ``dispatcher:main``.
        request: id of the HTTP request, if there is one.
        address: the network address that the request came from.
    """

    name: str
    request: str | None = None
    address: str | None = None


@dataclass(slots=True)
class Transaction:
    """A writing transaction: either everything in it happens, or nothing does.

    Attributes:
        connection: the connection that executes the statements.
        actor: the author of the changes.
    """

    connection: sa.Connection
    actor: Actor
    _events: list[dict[str, object]] = field(default_factory=list)

    def execute(
        self, statement: sa.Executable, parameters: Any | None = None
    ) -> sa.CursorResult[Any]:
        """Executes one statement."""
        return self.connection.execute(statement, parameters)

    def one(self, statement: sa.Select[Any]) -> dict[str, Any] | None:
        """The first row of a query as a dictionary; None if there are no rows."""
        return first_row(self.connection, statement)

    def event(
        self,
        kind: str,
        of: str,
        *,
        before: str | None = None,
        after: str | None = None,
        detail: Mapping[str, object] | None = None,
    ) -> None:
        """Adds an event to the audit log; it is written only if the transaction is committed.

        Args:
            kind: the kind of event, such as ``submission.judged``; see docs/serve.md.
            of: id of the object that changed.
            before: its state before.
            after: its state now.
            detail: further ids and states; never content, secrets or verdicts of hidden tasks.
        """
        self._events.append(
            {
                "kind": kind,
                "object": of,
                "actor": self.actor.name,
                "before": None if before is None else str(before)[:_MAX_STATE_CHARS],
                "after": None if after is None else str(after)[:_MAX_STATE_CHARS],
                "detail": None if detail is None else dict(detail),
                "request": self.actor.request,
                "address": self.actor.address,
            }
        )

    def lock_start(self) -> None:
        """Locks making and updating the database, until this transaction is committed.

        Processes that start at the same moment would otherwise make the same rows.
        """
        if self.connection.dialect.name == "postgresql":  # SQLite has one writer anyway
            self.connection.execute(_STARTING)

    def write_events(self) -> None:
        """Inserts the events at the end, so that they are numbered in the order of commits."""
        if not self._events:
            return
        if self.connection.dialect.name == "postgresql":
            self.connection.execute(_WRITES)
        self.connection.execute(_INSERT_EVENT, self._events)


class Database:
    """The server's database.

    Args:
        url: ``sqlite:///PATH`` or ``postgresql://…``.
        idle_s: PostgreSQL rolls back a transaction that has been idle for this many seconds, for
            example because its process was stopped: its locks would block all other writers.

    Raises:
        UsageError: the URL is of an unsupported kind of database.
    """

    def __init__(self, url: str, *, idle_s: float = _IDLE_S) -> None:
        self.url = _checked_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        options: dict[str, Any] = {"pool_size": 20, "max_overflow": 60, "pool_timeout": 30}
        if self.is_sqlite:
            options["connect_args"] = {"timeout": _BUSY_MS / 1000, "check_same_thread": False}
        else:
            options["pool_pre_ping"] = True
            options["connect_args"] = {"application_name": "judge serve", **_TIMEOUTS}
        self._engine = sa.create_engine(self.url, **options)
        self._writing_engine = self._engine.execution_options(writes=True)
        self._writer = threading.Lock()
        if self.is_sqlite:
            sa.event.listen(self._engine, "connect", _set_up_sqlite)
            sa.event.listen(self._engine, "begin", _begin_sqlite)
        else:
            limits = _LIMITS.format(idle=round(1000 * idle_s), lock=_BUSY_MS)
            sa.event.listen(
                self._engine, "connect", lambda connection, _: _set_up(connection, limits)
            )

    @contextlib.contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A connection for queries; on SQLite, all of them see the same state of the database.

        Raises:
            StoreError: the database cannot be reached.
        """
        with _as_judge_errors(), self._engine.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self, actor: Actor) -> Iterator[Transaction]:
        """A transaction that is committed at the end of the block, or rolled back on an error.

        Raises:
            StoreError: the database cannot be reached or written.
        """
        with contextlib.ExitStack() as stack:
            if self.is_sqlite:
                stack.enter_context(self._writer)
            stack.enter_context(_as_judge_errors())
            connection = stack.enter_context(self._writing_engine.begin())
            transaction = Transaction(connection, actor)
            yield transaction
            transaction.write_events()

    def changes(self) -> Changes:
        """Makes a watcher, with which a loop can see whether the database has changed."""
        return Changes(self._engine)

    def last_event(self) -> int:
        """The number of the newest event; 0 if there are no events."""
        with self.reading() as connection:
            return int(connection.scalar(sa.select(sa.func.max(event.c.seq))) or 0)

    def migrate(self) -> None:
        """Creates the tables, or updates those of an older version.

        Raises:
            StoreError: a newer version of the judge has written the database.
        """
        if self.is_sqlite:
            _make_private(Path(str(self.url.database)))
        with self.writing(Actor("migration")) as transaction:
            transaction.lock_start()
            connection = transaction.connection
            if self._schema(connection) != _head():
                command.upgrade(_alembic(connection), "head")

    def step_back(self) -> None:
        """Reverts the last migration."""
        with self.writing(Actor("migration")) as transaction:
            command.downgrade(_alembic(transaction.connection), "-1")

    def close(self) -> None:
        """Closes all connections."""
        self._engine.dispose()

    def _schema(self, connection: sa.Connection) -> str | None:
        current = MigrationContext.configure(connection).get_current_revision()
        scripts = ScriptDirectory.from_config(_alembic(None))
        if current is not None and current not in {
            script.revision for script in scripts.walk_revisions()
        }:
            raise StoreError(
                f"{self.url.render_as_string()}: was written by a newer judge "
                f"(schema {current}), which this one cannot read",
                hint="Install the version that wrote it, or a later one.",
            )
        return current


class Changes:
    """Detects commits without querying the tables.

    SQLite counts the commits of other connections, and PostgreSQL sends a notification for each
    commit with events (``NOTIFY``). Use it on one thread only. Its connection is opened when it
    is first needed, and again after the database was unavailable.

    Args:
        engine: the engine of the database.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._is_sqlite = engine.dialect.name == "sqlite"
        self._connection: Any = None
        self._seen: object = None

    def happened(self) -> bool:
        """Whether something was committed since the last call; true for the first call.

        Raises:
            StoreError: the database cannot be reached.
        """
        with _as_judge_errors():
            try:
                if self._connection is None:
                    self._open()
                    return True
                if self._is_sqlite:
                    before, self._seen = self._seen, self._version()
                    return before != self._seen
                return any(True for _ in self._connection.notifies(timeout=0))
            except BaseException as error:
                self.close()
                if isinstance(error, self._engine.dialect.loaded_dbapi.Error):  # not SQLAlchemy's
                    raise DatabaseGoneError(_message(error), hint="Is it running?") from error
                raise

    def close(self) -> None:
        """Closes its connection."""
        if self._connection is not None:
            with contextlib.suppress(Exception):
                self._connection.close()
        self._connection = None

    def _open(self) -> None:
        connection = self._engine.raw_connection()
        self._connection = connection.driver_connection
        connection.detach()  # it stays open, so take it out of the pool
        if self._is_sqlite:
            self._seen = self._version()
        else:
            self._connection.autocommit = True
            self._connection.execute(f"LISTEN {_CHANNEL}")

    def _version(self) -> object:
        return self._connection.execute("PRAGMA data_version").fetchone()


def sqlite_url(path: Path) -> str:
    """The URL of a SQLite file."""
    return URL.create("sqlite", database=str(path.resolve())).render_as_string(hide_password=False)


def first_row(connection: sa.Connection, statement: sa.Select[Any]) -> dict[str, Any] | None:
    """The first row of a query as a dictionary; None if there are no rows."""
    row = connection.execute(statement.limit(1)).mappings().first()
    return None if row is None else dict(row)


@functools.cache
def _by_key(table: sa.Table) -> sa.Select[Any]:
    key = table.c.id if "id" in table.c else next(iter(table.primary_key.columns))
    return sa.select(table).where(key == sa.bindparam("key"))


def row_of(connection: sa.Connection, table: sa.Table, key: str) -> dict[str, Any]:
    """The row with an id or another key; it must exist, as another row refers to it.

    Raises:
        sqlalchemy.exc.NoResultFound: there is no such row.
    """
    return dict(connection.execute(_by_key(table), {"key": key}).mappings().one())


def all_rows(connection: sa.Connection, statement: sa.Select[Any]) -> list[dict[str, Any]]:
    """The rows of a query as dictionaries."""
    return [dict(row) for row in connection.execute(statement).mappings()]


def _checked_url(text: str) -> URL:
    hint = "Give sqlite:///PATH or postgresql://USER@HOST/NAME."
    try:
        url = make_url(text)
    except ArgumentError as error:
        raise UsageError("--database: this is not the URL of a database", hint=hint) from error
    if url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:"):
        return url
    if url.get_backend_name() == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    raise UsageError(f"--database: {url.drivername} is not supported", hint=hint)


def _make_private(path: Path) -> None:
    """Makes the file of a database, unless it exists; only its owner can read it."""
    with contextlib.suppress(OSError):  # SQLite itself reports files that it cannot open
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _set_up_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions begin where _begin_sqlite says
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        f"busy_timeout={_BUSY_MS}",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _set_up(connection: Any, statements: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statements)
    connection.commit()


def _begin_sqlite(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextlib.contextmanager
def _as_judge_errors() -> Iterator[None]:
    """Raises an error of the judge if the database cannot be reached or written."""
    try:
        yield
    except (OperationalError, InterfaceError, InternalError, sa.exc.TimeoutError) as error:
        # InternalError: PostgreSQL does not accept writes now, for example if it became read-only.
        raise DatabaseGoneError(
            _message(error), hint="Is it running, and is there space?"
        ) from error
    except DBAPIError as error:
        if error.connection_invalidated:
            raise DatabaseGoneError(_message(error), hint="Is it running?") from error
        raise


class DatabaseGoneError(StoreError):
    """The database cannot be reached or written now; the operation may be tried again."""


def _message(error: Exception) -> str:
    cause = str(getattr(error, "orig", None) or error).splitlines()
    return f"the database cannot be used: {cause[0] if cause else type(error).__name__}"


def _alembic(connection: sa.Connection | None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def _head() -> str | None:
    return ScriptDirectory.from_config(_alembic(None)).get_current_head()
