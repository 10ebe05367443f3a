"""Runs the parts of a server as processes that can be killed, stopped and deprived of resources.

For `serve_crashes` and `serve_faults`. A rig is one data folder with one database, a suite, a
phase, a board and accounts. Processes that its processes leave behind become children of this
process (PR_SET_CHILD_SUBREAPER), so that sandboxes and office processes that outlive their
dispatcher are found.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from judge.errors import JudgeError
from judge.serve.access.accounts import create_account, create_token
from judge.serve.boards.versions import RENEWED, Boards, NewBoard, document_of, setting_of
from judge.serve.catalog import NewPhase, NewSuite, add_phase, add_revision
from judge.serve.client import Client, SubmissionContent
from judge.serve.context import Server
from judge.serve.operations.upkeep import faults_of
from judge.serve.options import StorageOptions
from judge.serve.running import opened
from judge.serve.store import tables as t
from judge.serve.store.database import Actor, all_rows, first_row
from judge.serve.store.tables import Scope
from tests.postgresql import PostgreSQL

SAMPLE = Path(__file__).resolve().parent.parent / "dataset/sample/submissions.jsonl"
JUDGE = str(Path(sys.executable).parent / "judge")
ACTOR = Actor("benchmark")
ACCOUNTS = 4
LINES_OF_ONE = 3
QUICK = {"AC", "WA", "RE", "CE", "NO"}
ENDED = ("done", "failed", "cancelled")
IDS = re.compile(r"\b[a-z]{3}_[0-9A-Z]{26}\b|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
"""Ids and times, which differ between two equal runs."""

_CHAIN = ("number", "previous", "why", "signed", "server")
_SUBREAPER = 36
_LEFT_S = 20.0
_ALONE = """import os
for name in ("LD_PRELOAD", "FAKETIME_SHARED"):
    os.environ.pop(name, None)
from judge.cli.main import main
main()"""
"""Runs the judge with a preloaded library that its child programs do not get."""


class Part:
    """A process of the server; it is ready when it has printed a word.

    Args:
        name: its name for people.
        command: the command.
        ready: the word.
        log: the file for its output.
        environment: variables in addition to those of this process.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        ready: str,
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.command, self._ready, self.log = name, list(command), ready, log
        self.environment = dict(environment or {})
        self.kills = 0
        self.start_again()

    def start(self) -> None:
        """Starts the process, and waits until it is ready."""
        with self.log.open("ab") as errors:
            self.process = subprocess.Popen(
                self.command,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, **self.environment},
            )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if self._ready in line:
                threading.Thread(target=self.process.stdout.read, daemon=True).start()
                return
        raise SystemExit(f"{self.name} did not start: {self.log.read_text()[-3000:]}")

    def start_again(self, patience_s: float = 60.0) -> None:
        """Starts the process again and again until it runs, as a service manager does."""
        deadline = time.monotonic() + patience_s
        while True:
            try:
                self.start()
            except SystemExit:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
            else:
                return

    @property
    def lives(self) -> bool:
        """Whether the process is running."""
        return self.process.poll() is None

    def kill(self) -> None:
        """Kills the process as a fault of the machine would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.kills += 1

    def end(self) -> None:
        """Ends the process normally."""
        self.process.terminate()
        self.process.wait()


class Rig:
    """One server with its database.

    Args:
        folder: the folder for data, database and logs.
        kind: ``sqlite`` or ``postgresql``.
        data: the data folder, if it is elsewhere.
    """

    def __init__(self, folder: Path, kind: str, data: Path | None = None) -> None:
        self._before = set(_descendants())
        _adopt_orphans()
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.kind = folder, kind
        self.log = folder / "log"
        self.stack = contextlib.ExitStack()
        self.postgresql: PostgreSQL | None = None
        url = None
        if kind == "postgresql":
            server_url = os.environ.get("JUDGE_RIG_POSTGRESQL")
            own = None if server_url is None else Path(server_url)
            self.postgresql = self.stack.enter_context(PostgreSQL.running(own, durable=True))
            url = self.postgresql.new_database()
        self.place = StorageOptions(data=data or folder / "data", database=url)
        self.port = _free_port()
        self.parts: dict[str, Part] = {}
        self.handed: list[list[dict[str, Any]]] = []
        self.lost: list[str] = []
        self.server: Server = self.stack.enter_context(opened(self.place)).server
        self.tokens: list[str] = []

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.port}"

    def where(self) -> list[str]:
        """The options with the data folder and the database."""
        database = [] if self.place.database is None else ["--database", self.place.database]
        return ["--data", str(self.place.data), *database]

    def start(self, *names: str, **environment: Mapping[str, str]) -> None:
        """Starts a server (``server``) and dispatchers (any other name)."""
        for name in names:
            if name == "server":
                listen = ["--listen", f"127.0.0.1:{self.port}"]
                command, ready = [JUDGE, "serve", "api", *self.where(), *listen], "Ctrl-C"
            else:
                slots = ["--slots", "2", "--sandbox", "bubblewrap", "--name", name]
                command, ready = [JUDGE, "serve", "dispatch", *self.where(), *slots], "ready"
            own = environment.get(name)
            if own is not None and "LD_PRELOAD" in own:
                command = [sys.executable, "-c", _ALONE, *command[1:]]
            self.parts[name] = Part(name, command, ready, self.log, own)

    def prepare(self) -> None:
        """Adds suite, phase, board and accounts with tokens; a dispatcher must have run before."""
        boards = Boards(self.server.folder)
        with self.server.database.writing(ACTOR) as transaction:
            for index in range(ACCOUNTS):
                account = create_account(transaction, f"team-{index}")
                scopes = [Scope.SUBMIT, Scope.READ]
                self.tokens.append(create_token(transaction, account, "t", scopes)[1])
            add_revision(self.server, transaction, NewSuite("sample", "sample", account))
            add_phase(transaction, NewPhase("open", "sample", per_day=10**6, in_total=10**6))
            boards.add(transaction, NewBoard("board", "open"))

    def hand_in(self, number: int) -> None:
        """Sends the submission with a number, repeatedly until it is accepted."""
        lines = lines_of(number)
        path = self.folder / f"{number}.jsonl"
        names = ("id", "solution", "input_path", "output_path")
        kept = [{name: line[name] for name in names} for line in lines]
        path.write_text("".join(json.dumps(line) + "\n" for line in kept))
        claims = {"note": f"number {number}", "system": f"system {number % ACCOUNTS}"}
        while True:
            with contextlib.closing(
                Client(self.url, self.tokens[number % ACCOUNTS], sleep=lambda _: time.sleep(0.2))
            ) as client:
                try:
                    client.submit(SubmissionContent(path, "open", claims))
                except JudgeError:
                    time.sleep(0.2)
                else:
                    return

    # -- what is seen -----------------------------------------------------------------------------

    def count(self, *states: str) -> int:
        """Counts the judgings in these states."""
        query = (
            sa.select(sa.func.count()).select_from(t.judging).where(t.judging.c.state.in_(states))
        )
        with self.server.database.reading() as connection:
            return int(connection.scalar(query) or 0)

    def held(self, holder: str | None = None) -> list[dict[str, Any]]:
        """Returns the running judgings of one holder or of all."""
        query = sa.select(t.judging).where(t.judging.c.state == "running")
        if holder is not None:
            query = query.where(t.judging.c.holder == holder)
        with self.server.database.reading() as connection:
            return all_rows(connection, query)

    def wait_for(self, what: str, true: Callable[[], bool], patience_s: float = 600.0) -> float:
        """Waits for a condition; returns the seconds that it took."""
        begun = time.monotonic()
        while True:
            with contextlib.suppress(JudgeError):
                if true():
                    return time.monotonic() - begun
            if time.monotonic() - begun > patience_s:
                raise SystemExit(
                    f"{what}: not after {patience_s:.0f} s; {self.log.read_text()[-3000:]}"
                )
            time.sleep(0.05)

    def wait_until_judged(self) -> None:
        """Waits until the queue is empty and, if a server runs, until it has updated the boards."""
        self.wait_for("the end of the queue", lambda: not self.count("queued", "running"))
        server = self.parts.get("server")
        if server is not None and server.lives:
            self.wait_for("the boards", self._are_renewed)

    def _are_renewed(self) -> bool:
        judged = sa.select(sa.func.max(t.event.c.seq)).where(t.event.c.kind == "submission.judged")
        with self.server.database.reading() as connection:
            last = connection.scalar(judged) or 0
        return int(self.server.setting(RENEWED) or 0) >= int(last)

    def leftovers(self) -> list[str]:
        """Returns command lines of processes that still outlive their starter after a while."""
        deadline = time.monotonic() + _LEFT_S
        while True:
            alive = {part.process.pid for part in self.parts.values() if part.lives}
            if self.postgresql is not None:
                alive.add(self.postgresql.pid)
            left = _orphans(alive | self._before)
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.2)

    def results(self) -> dict[str, Any]:
        """Collects the facts to check at the end; all but the first two must be 0 or empty."""
        with self.server.database.reading() as connection:
            rows = all_rows(connection, sa.select(t.submission))
            judgings = {row["id"]: row for row in all_rows(connection, sa.select(t.judging))}
            verdicts: dict[str, dict[tuple[str, int], str]] = {}
            query = sa.select(t.verdict)
            count = 0
            for row in all_rows(connection, query):
                case = (row["task"], row["case"])
                verdicts.setdefault(row["judging"], {})[case] = row["verdict"]
                count += 1
        unexpected = missing = 0
        for row in rows:
            actual = verdicts.get(row["current_judging"], {})
            expected = expected_of(int(row["note"].split()[-1]))
            missing += len(expected.keys() - actual.keys())
            unexpected += sum(actual[case] != expected.get(case) for case in actual)
        notes = Counter(row["note"] for row in rows)
        states = Counter(row["state"] for row in judgings.values())
        return {
            "submissions": len(rows),
            "verdicts": count,
            "accepted twice": sum(number > 1 for number in notes.values()),
            "not done": sum(number for state, number in states.items() if state != "done"),
            "verdicts missing": missing,
            "verdicts doubled": count - sum(map(len, verdicts.values())),
            "verdicts unexpected": unexpected,
            "faults of admin check": faults_of(self.server.database, self.server.folder),
            "processes left": sorted({*self.lost, *self.leftovers()}),
        }

    def lost_leases(self) -> int:
        """Counts the leases that were lost."""
        with self.server.database.reading() as connection:
            return int(connection.scalar(sa.select(sa.func.sum(t.judging.c.lost))) or 0)

    def events(self, kind: str) -> int:
        """Counts the events of a kind."""
        query = sa.select(sa.func.count()).select_from(t.event).where(t.event.c.kind == kind)
        with self.server.database.reading() as connection:
            return int(connection.scalar(query) or 0)

    def documents(self) -> list[str]:
        """Returns the board's document, made now and as last published, without ids and times."""
        with self.server.database.reading() as connection:
            board = first_row(connection, sa.select(t.board))
            assert board is not None
            board_document = document_of(connection, setting_of(connection, board))
            query = sa.select(t.board_version.c.document).order_by(t.board_version.c.number.desc())
            stored = json.loads(str(connection.scalar(query)))
        return [
            IDS.sub(
                "…",
                json.dumps(
                    {name: value for name, value in document.items() if name not in _CHAIN},
                    sort_keys=True,
                    default=str,
                ),
            )
            for document in (board_document, stored)
        ]

    def close(self) -> None:
        """Ends the processes of the rig, the database last."""
        for part in self.parts.values():
            if part.lives:
                part.process.send_signal(signal.SIGCONT)
                part.end()
        self.stack.close()
        _adopt_orphans(adopt=False)


@contextlib.contextmanager
def rig_of(kind: str, data: Path | None = None) -> Iterator[Rig]:
    """Makes a rig in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="judge-rig-") as name:
        rig = Rig(Path(name), kind, data)
        try:
            yield rig
        finally:
            rig.close()


def lines_of(number: int) -> list[dict[str, Any]]:
    """Makes the lines of a submission with a number: quickly judged, each for a different task."""
    by_task: dict[str, list[dict[str, Any]]] = {}
    for text in SAMPLE.read_text().splitlines():
        line = json.loads(text)
        if set(line["expected"]) <= QUICK:
            by_task.setdefault(str(line["id"]), []).append(line)
    tasks = sorted(by_task)
    chosen = [tasks[(LINES_OF_ONE * number + step) % len(tasks)] for step in range(LINES_OF_ONE)]
    return [by_task[task][number % len(by_task[task])] for task in chosen]


def expected_of(number: int) -> dict[tuple[str, int], str]:
    """Returns the verdicts that a submission must get, by (task, case)."""
    wanted = {}
    for line in lines_of(number):
        expected = line["expected"] if len(line["expected"]) > 1 else line["expected"] * 3
        for case, verdict in enumerate(expected):
            wanted[(str(line["id"]), case + 1)] = verdict
    return wanted


def is_right(results: Mapping[str, Any]) -> bool:
    """Returns whether nothing is lost, duplicated, unexpected or left over."""
    names = list(results)[2:]
    return not any(results[name] for name in names)


def _adopt_orphans(*, adopt: bool = True) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, int(adopt), 0, 0, 0)


def _orphans(alive: set[int]) -> list[str]:
    """Returns command lines of descendants of this process with no ancestor in ``alive``."""
    left: list[str] = []
    for pid, chain in _descendants().items():
        if not chain & alive:
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                left.append(b" ".join(words[:6]).decode(errors="replace")[:120])
    return left


def _descendants() -> dict[int, set[int]]:
    """Maps each living descendant of this process to itself and the processes in between."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, ValueError):
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                if state not in "ZX":
                    parents[int(entry.name)] = int(parent)
    chains: dict[int, set[int]] = {}
    for pid, parent_of_it in parents.items():
        above, chain = parent_of_it, {pid}
        while above in parents and above != os.getpid():
            chain.add(above)
            above = parents[above]
        if above == os.getpid():
            chains[pid] = chain
    return chains


def _free_port() -> int:
    """Finds a free port below those that the system assigns, so that no other process takes it."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
