"""Runs ``judge serve``: as a server, a dispatcher, both in one process, or a demo."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from judge.console import print_label
from judge.errors import JudgeError, UsageError
from judge.serve.access.accounts import create_account, create_sign_in
from judge.serve.access.rights import Viewer
from judge.serve.api.submissions import accept_body
from judge.serve.app import make_app
from judge.serve.boards.disclosure import record_shown
from judge.serve.boards.versions import Boards, NewBoard
from judge.serve.catalog import NewPhase, NewSuite, add_phase, add_revision
from judge.serve.context import ADDRESS, ServeOptions, Server
from judge.serve.intake import LINES, SubmitterStatement, admit
from judge.serve.operations.metrics import metrics_of, serve_metrics
from judge.serve.options import LOOPBACK, ListenOptions, SlotOptions, StorageOptions, address_of
from judge.serve.queue.conditions import set_setting
from judge.serve.queue.dispatcher import Dispatcher, DispatchOptions
from judge.serve.queue.watching import Watcher
from judge.serve.store import tables as t
from judge.serve.store.database import Actor, Database, sqlite_url
from judge.serve.store.folder import DataFolder
from judge.serve.store.tables import AccountKind, Role, Scope
from judge.suites.submissions import load_submissions, submission_record
from judge.suites.suite import data_folder, load_suite

CHORES = (
    "judge.serve.boards.versions:renew_judged",
    "judge.serve.rejudging.service:advance",
    "judge.serve.operations.upkeep:send_webhooks",
    "judge.serve.operations.upkeep:sweep_hourly",
)
"""Functions that the serving process calls within a second of a change, and at regular
intervals."""

_CHORE_S = 1.0  # between two looks whether something was committed
_CHORE_ANYWAY_S = 5.0  # between two rounds of chores without a commit
_PAUSES, _MAX_PAUSE_S = (
    19,
    10.0,
)  # pause after a chore: this many times the processor time that it took
_STOP_S = 25  # for the threads to end
_OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class OpenedServer:
    """An open server; if its operator was just created, also the code of a sign-in link."""

    server: Server
    code: str | None


@contextlib.contextmanager
def opened(storage: StorageOptions, options: ServeOptions | None = None) -> Iterator[OpenedServer]:
    """Opens a server's data folder and database; makes them, with an operator, if they are missing.

    Raises:
        StoreError: they cannot be made, or a newer version of the judge wrote them.
        UsageError: the URL is not that of a supported database.
    """
    folder = DataFolder(storage.data.expanduser())
    folder.make()
    database = Database(storage.database or sqlite_url(folder.database))
    with contextlib.closing(database):
        database.migrate()
        server = Server(database, folder, options or ServeOptions())
        server.shared["boards"] = Boards(folder, server.options.public_url)
        yield OpenedServer(server, _first_operator(database))


def serve(
    listen: ListenOptions,
    slots: SlotOptions | None,
    *,
    on_listening: Callable[[Server, str | None, str], None],
    after_opening: Callable[[Server], None] = lambda _: None,
) -> None:
    """Serves until the main thread is interrupted; with a dispatcher, if slots are given.

    Args:
        listen: how it is reached.
        slots: how it judges; None if other processes judge.
        on_listening: called with the server, the code of a link to sign in (at the first start),
            and the address.
        after_opening: called on a thread once the dispatcher is ready.

    Raises:
        JudgeError: it cannot be opened, or has failed.
        KeyboardInterrupt: it was interrupted, and has shut down in order.
    """
    host, port = listen.address
    scheme = "http" if listen.certificate is None else "https"
    address = listen.public_url.rstrip("/") or f"{scheme}://{listen.listen}"
    options = ServeOptions(
        public_url=listen.public_url.rstrip("/"),
        secure=address.startswith("https:"),
        hosts={urlsplit(address).hostname or "", *LOOPBACK},
    )
    with opened(listen, options) as opening, contextlib.ExitStack() as stack:
        server = opening.server
        web = _web_server(server, listen, host, port)
        dispatcher = None if slots is None else _dispatcher(server, slots)
        parts = _Parts(stack)
        parts.start("server", web.run, stop=lambda: setattr(web, "should_exit", True))
        _wait_until_started(web, parts)
        reached = _reached_at(address, web)
        if server.setting(ADDRESS) != reached:
            with server.database.writing(Actor("start")) as transaction:
                set_setting(transaction, ADDRESS, reached)
        on_listening(server, opening.code, reached)
        notify_service_manager("READY=1")
        if dispatcher is not None:
            ready = threading.Event()
            parts.start(
                "dispatcher", lambda: dispatcher.run(on_ready=ready.set), stop=dispatcher.stop
            )
            parts.start("preparation", lambda: _when(ready, server, after_opening), once=True)
        else:
            watcher = Watcher(server.database, server.folder, f"server:{host}:{port}")
            watcher.start()
            stack.callback(watcher.stop)
        _serve_metrics(server, listen, stack)
        parts.start("chores", lambda: _do_chores(server, parts.ended))
        parts.wait()


def _serve_metrics(server: Server, listen: ListenOptions, stack: contextlib.ExitStack) -> None:
    if listen.metrics is None:
        return
    host, port = address_of(listen.metrics, "--metrics")
    try:
        stack.callback(serve_metrics(server, host, port))
    except OSError as error:
        raise UsageError(f"--metrics {listen.metrics}: cannot listen there: {error}") from error


def dispatch(storage: StorageOptions, slots: SlotOptions, *, on_ready: Callable[[], None]) -> None:
    """Judges until the main thread is interrupted.

    Raises:
        JudgeError: it cannot be opened, or has failed.
        KeyboardInterrupt: it was interrupted, and has returned its leases.
    """
    with opened(storage) as opening, contextlib.ExitStack() as stack:
        dispatcher = _dispatcher(opening.server, slots)
        parts = _Parts(stack)
        parts.start("dispatcher", lambda: dispatcher.run(on_ready=on_ready), stop=dispatcher.stop)
        parts.start("chores", lambda: _do_chores(opening.server, parts.ended, ()))
        notify_service_manager("READY=1")
        parts.wait()


class _Parts:
    """A group of threads: when one ends, all are stopped.

    Args:
        stack: stops them when it is closed.
    """

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self.ended = threading.Event()
        self._stops: list[Callable[[], None]] = []
        self._threads: list[threading.Thread] = []
        self._failure: BaseException | None = None
        stack.callback(self._stop)

    def start(
        self,
        name: str,
        work: Callable[[], None],
        *,
        stop: Callable[[], None] = lambda: None,
        once: bool = False,
    ) -> None:
        """Starts a thread; with ``once``, the others continue after it has ended."""

        def run() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001  raised again by wait()
                self._failure = self._failure or error
                self.ended.set()
            if not once:
                self.ended.set()

        thread = threading.Thread(target=run, name=f"judge-{name}", daemon=True)
        self._stops.append(stop)
        self._threads.append(thread)
        thread.start()

    def check(self) -> None:
        """Raises the error of a thread that has failed."""
        if self._failure is not None:
            raise self._failure

    def wait(self) -> None:
        """Waits until one of the threads ends.

        Raises:
            JudgeError: a thread has failed.
        """
        while not self.ended.wait(0.5):
            pass
        self.check()

    def _stop(self) -> None:
        self.ended.set()
        for stop in reversed(self._stops):
            stop()
        for thread in self._threads:
            thread.join(_STOP_S + 5)


class _PromptHeads(H11Protocol):
    """Closes a connection if no complete request head arrives in time, even if bytes keep coming.

    uvicorn's own time-out applies only to silent connections that have already received an answer.
    Without this time-out, a client could occupy a slot of ``limit_concurrency`` for as long as it
    likes.
    """

    head_s = 30.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins to wait for a request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Keeps waiting until there is a request."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops waiting."""
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        waits = self.cycle is None or self.cycle.response_complete
        if not waits:
            self._forget()
        elif self._timer is None:
            self._timer = self.loop.call_later(self.head_s, self.transport.close)

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _WebServer(uvicorn.Server):
    """Leaves signals to the main thread."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures no signals."""
        yield


def _web_server(server: Server, listen: ListenOptions, host: str, port: int) -> _WebServer:
    config = uvicorn.Config(
        make_app(server),
        host=host,
        port=port,
        http=_PromptHeads,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=listen.behind_proxy is not None,
        forwarded_allow_ips=listen.behind_proxy,
        root_path=urlsplit(listen.public_url).path.rstrip("/"),
        limit_concurrency=1000,
        h11_max_incomplete_event_size=32 << 10,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=_STOP_S - 5,
        ssl_certfile=listen.certificate,
        ssl_keyfile=listen.key,
    )
    return _WebServer(config)


def _wait_until_started(web: _WebServer, parts: _Parts) -> None:
    while not web.started:
        if parts.ended.wait(0.05):
            parts.check()
            raise UsageError(
                f"{web.config.host}:{web.config.port}: cannot listen there",
                hint="Is something else listening? Give another --listen HOST:PORT.",
            )


def _reached_at(address: str, web: _WebServer) -> str:
    """The address; if port 0 was requested, with the port that the system chose."""
    if web.config.port != 0 or not address.endswith(":0"):
        return address
    port: int = web.servers[0].sockets[0].getsockname()[1]
    return f"{address.removesuffix('0')}{port}"


def _dispatcher(server: Server, slots: SlotOptions) -> Dispatcher:
    options = DispatchOptions(
        name=slots.name,
        slots=slots.slots,
        jobs=slots.jobs,
        sandbox=slots.sandbox,
        cluster=slots.cluster,
        insecure_cluster=slots.insecure_cluster,
    )
    metrics = metrics_of(server)
    return Dispatcher(
        server.database,
        server.folder,
        options,
        on_judged=record_shown,
        on_case=metrics.case,
        on_fenced=metrics.fenced,
    )


def _when(ready: threading.Event, server: Server, act: Callable[[Server], None]) -> None:
    ready.wait()
    act(server)


def notify_service_manager(state: str) -> None:
    """Tells systemd that this process is ready or alive, if systemd requested that.

    Args:
        state: ``READY=1`` or ``WATCHDOG=1``; see sd_notify(3).
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with (
        contextlib.suppress(OSError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender,
    ):
        sender.sendto(state.encode(), address.replace("@", "\0", 1))


def _do_chores(server: Server, ended: threading.Event, names: Iterable[str] = CHORES) -> None:
    """Calls the chores after each commit, and otherwise every few seconds.

    An expensive chore, such as a large board, gets at most a twentieth of the processor time.
    """
    chores: list[Callable[[Server], Any]] = list(map(resolve_name, names))
    changes, last = server.database.changes(), float("-inf")
    due = dict.fromkeys(chores, last)
    waiting: set[Callable[[Server], Any]] = set()
    while not ended.wait(_CHORE_S):
        notify_service_manager("WATCHDOG=1")
        with contextlib.suppress(JudgeError):  # the chores report it
            if changes.happened() or time.monotonic() - last >= _CHORE_ANYWAY_S:
                waiting, last = set(chores), time.monotonic()
        for chore in [one for one in chores if one in waiting and due[one] <= time.monotonic()]:
            waiting.discard(chore)
            began = time.thread_time()
            try:
                chore(server)
            except JudgeError as error:
                print_label("warning:", "yellow", error.message)
            except Exception:  # noqa: BLE001  a full disk must not end the server
                print_label("error:", "red", f"{chore.__name__}: {traceback.format_exc()}")
            pause = min(_MAX_PAUSE_S, _PAUSES * (time.thread_time() - began))
            due[chore] = time.monotonic() + pause


def _first_operator(database: Database) -> str | None:
    """Makes the operator's account if there are no accounts yet; returns its sign-in code."""
    with database.writing(Actor("first start")) as transaction:
        transaction.lock_start()
        if transaction.one(sa.select(t.account.c.id)) is not None:
            return None
        account = create_account(transaction, _OPERATOR, roles=(Role.OPERATOR, Role.AUTHOR))
        return create_sign_in(transaction, account)


_SUITES = {
    "sample": "Programs: fourteen tasks of everyday spreadsheet work",
    "sample-typed": "Typed answers about workbooks",
    "sample-rules": "Finished workbooks, judged by rules",
}
_TEAMS = ("Aster", "Birch", "Cedar", "Dahlia", "Elder")
_ACTOR = Actor("demo")
_BOARD = "sample"
_FIELDS = ("id", "solution", "input_path", "output_path")


def add_demo(server: Server) -> Iterator[str]:
    """Adds the sample suites, unless they exist; yields lines that say where they are.

    Args:
        server: the server; its dispatcher is ready, so that the conditions of a board are known.
    """
    with server.database.reading() as connection:
        existing = connection.scalar(sa.select(t.board.c.id).where(t.board.c.name == _BOARD))
        operator = connection.scalar(
            sa.select(t.account.c.id).where(
                sa.cast(t.account.c.roles, sa.Text).contains(Role.OPERATOR.value)
            )
        )
    if existing is None:
        with server.database.writing(_ACTOR) as transaction:
            for name, title in _SUITES.items():
                add_revision(server, transaction, NewSuite(name, name, str(operator), title=title))
                phase = NewPhase(f"{name}-open", name, per_day=100, in_total=1000)
                add_phase(transaction, phase)
            board = NewBoard(_BOARD, f"{_BOARD}-open", title="The sample suite")
            server.shared["boards"].add(transaction, board)
        for number, team in enumerate(_TEAMS):
            _submit(server, team, number)
    address = server.setting(ADDRESS)
    yield f"A board of {len(_TEAMS)} sample submissions: {address}/boards/{_BOARD}"
    program = server.program
    yield f"A token: export JUDGE_TOKEN=$({program} serve admin token operator {server.where})"
    answers = shlex.quote(str(_short(data_folder() / "sample-typed" / "answers.jsonl")))
    yield f"Submit: {program} submit {answers} --to {address} --phase sample-typed-open --wait"


def _short(path: Path) -> Path:
    """A path relative to the working folder, if it is inside; otherwise, the path itself."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _submit(server: Server, team: str, number: int) -> None:
    """One answer to each task of the sample suite; different teams get different answers."""
    by_task: dict[str, list[dict[str, object]]] = {}
    path = data_folder() / _BOARD / "submissions.jsonl"
    suite = load_suite(_BOARD)
    for submission in load_submissions(path, suite):
        record = submission_record(submission, suite)
        by_task.setdefault(submission.task_id, []).append(record)
    lines = []
    for answers in by_task.values():
        record = dict(answers[number % len(answers)] if number else answers[0])
        record = {name: record[name] for name in _FIELDS if name in record}
        lines.append(json.dumps(record))
    with server.database.writing(_ACTOR) as transaction:
        account = create_account(transaction, f"demo-{team}", kind=AccountKind.SERVICE)
    viewer = Viewer(
        account=account, name=team, scopes=frozenset({Scope.SUBMIT}), teams=frozenset({account})
    )
    admission = admit(server, viewer, f"{_BOARD}-open", None)
    with server.folder.receiving() as received:
        received.write("".join(f"{line}\n" for line in lines).encode())
        described = SubmitterStatement(system=f"{team} (sample)", note="made by judge serve --demo")
        accept_body(server, viewer, admission, received, LINES, described, f"demo-{team}", None)
