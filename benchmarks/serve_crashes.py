#!/usr/bin/env python3
"""Kills server and dispatcher of `judge serve` at random moments, and PostgreSQL if it is used.

    .venv/bin/python -m benchmarks.serve_crashes --kills 20
    .venv/bin/python -m benchmarks.serve_crashes --kills 20 --postgresql

Submissions of the sample suite come in over HTTP all the while, each with an idempotency key and as
often as it takes. Afterwards each is judged once, with the verdicts that it must get, `admin check`
finds nothing, and the board's document is that of a run without kills, ids and times aside. Prints
the counts; exits with 1 if one is not as it must be. The moments follow from --seed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from judge.errors import JudgeError
from judge.serve.access.accounts import create_account, create_token
from judge.serve.boards.versions import NewBoard, document_of, setting_of
from judge.serve.catalog import NewPhase, NewSuite, add_phase, add_revision
from judge.serve.client import Client, Handed
from judge.serve.context import Server
from judge.serve.options import PlaceOptions
from judge.serve.queue.checking import faults_of
from judge.serve.running import opened
from judge.serve.store import tables as t
from judge.serve.store.database import Actor, all_rows, first_row
from judge.serve.store.words import Scope
from tests.postgresql import new_database, running_postgresql

SAMPLE = Path(__file__).resolve().parent.parent / "dataset/sample/submissions.jsonl"
ACTOR = Actor("benchmark")
ACCOUNTS = 5
QUICK = {"AC", "WA", "RE", "CE", "NO"}
IDS = re.compile(r"\b[a-z]{3}_[0-9A-Z]{26}\b|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class Part:
    """A process that is killed and started again; ready when it has printed a word."""

    def __init__(self, name: str, command: list[str], ready: str, log: Path) -> None:
        self.name, self._command, self._ready, self._log = name, command, ready, log
        self.kills = 0
        self.start()

    def start(self) -> None:
        """Starts it, and waits until it is ready."""
        with self._log.open("ab") as errors:
            self.process = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if self._ready in line:
                return
        raise SystemExit(f"{self.name} did not start: {self._log.read_text()[-2000:]}")

    def kill(self) -> None:
        """Kills it as a fault of the machine would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.kills += 1

    def end(self) -> None:
        """Ends it in order."""
        self.process.terminate()
        self.process.wait()


def submissions(number: int) -> list[tuple[dict[str, Any], list[str]]]:
    """Lines of solutions that are quickly judged, each with its verdicts."""
    chosen = []
    for line in SAMPLE.read_text().splitlines():
        record = json.loads(line)
        if set(record["expected"]) <= QUICK:
            chosen.append((record, record["expected"]))
    return [chosen[place % len(chosen)] for place in range(number)]


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def prepare(server: Server) -> list[str]:
    """A suite, a phase and accounts; their tokens."""
    tokens = []
    with server.database.writing(ACTOR) as transaction:
        for place in range(ACCOUNTS):
            account = create_account(transaction, f"team-{place}")
            scopes = [Scope.SUBMIT, Scope.READ]
            tokens.append(create_token(transaction, account, "t", scopes)[1])
        add_revision(server, transaction, NewSuite("sample", "sample", account))
        add_phase(transaction, NewPhase("open", "sample", per_day=10**6, in_total=10**6))
    return tokens


def hand_in(
    url: str, tokens: list[str], lines: list[Any], folder: Path, share: Callable[[], float]
) -> None:
    """Hands everything in, each as often as it takes, spread over the kills that are to come."""
    for place, (record, _) in enumerate(lines):
        while share() < place / len(lines):
            time.sleep(0.05)
        path = folder / f"{place}.jsonl"
        kept = {name: record[name] for name in ("id", "solution", "input_path", "output_path")}
        path.write_text(json.dumps(kept) + "\n")
        while True:
            with contextlib.closing(Client(url, tokens[place % ACCOUNTS])) as client:
                try:
                    claims = {"note": f"number {place}", "system": f"system {place % ACCOUNTS}"}
                    client.submit(Handed(path, "open", claims))
                    break
                except JudgeError:
                    time.sleep(0.2)


def killing(parts: list[Part], chance: random.Random, kills: int, ended: threading.Event) -> None:
    """Kills each part so often, at random moments of its life."""
    for part in parts * kills:
        if ended.wait(chance.uniform(0.1, 4.0)):
            return
        part.kill()
        part.start()


def run(place: PlaceOptions, number: int, kills: int, seed: int, *, log: Path) -> dict[str, Any]:
    """One run with so many kills; its counts, and the board's document."""
    lines = submissions(number)
    port = free_port()
    judge = [str(Path(sys.executable).parent / "judge")]
    where = ["--data", str(place.data)]
    where += [] if place.database is None else ["--database", place.database]
    with opened(place) as made, tempfile.TemporaryDirectory() as name:
        tokens = prepare(made.server)
        slots = ["--slots", "2", "--sandbox", "bubblewrap"]
        dispatcher = Part("dispatcher", [*judge, "serve", "dispatch", *where, *slots], "ready", log)
        listen = ["--listen", f"127.0.0.1:{port}"]
        server = Part("server", [*judge, "serve", "api", *where, *listen], "Ctrl-C", log)
        with made.server.database.writing(ACTOR) as transaction:
            made.server.shared["boards"].add(transaction, NewBoard("board", "open"))
        ended = threading.Event()
        parts = [dispatcher, server]
        killer = threading.Thread(target=killing, args=(parts, random.Random(seed), kills, ended))
        begun = time.monotonic()
        killer.start()

        def share() -> float:
            return sum(part.kills for part in parts) / (len(parts) * kills) if kills else 1.0

        hand_in(f"http://127.0.0.1:{port}", tokens, lines, Path(name), share)
        killer.join()
        wait_until_judged(made.server)
        seconds = time.monotonic() - begun
        ended.set()
        for part in parts:
            part.end()
        return {
            "kills": {part.name: part.kills for part in parts},
            "seconds": round(seconds),
            **counts(made.server, lines),
            "document": document(made.server),
        }


def wait_until_judged(server: Server) -> None:
    """Waits for the end of the queue."""
    while True:
        with server.database.reading() as connection:
            left = connection.scalar(
                sa.select(sa.func.count())
                .select_from(t.judging)
                .where(t.judging.c.state.in_(("queued", "running")))
            )
        if not left:
            return
        time.sleep(0.5)


def counts(server: Server, lines: list[Any]) -> dict[str, Any]:
    """What must hold at the end, as numbers."""
    with server.database.reading() as connection:
        rows = all_rows(connection, sa.select(t.submission))
        judgings = {row["id"]: row for row in all_rows(connection, sa.select(t.judging))}
        verdicts: dict[str, list[str]] = {}
        query = sa.select(t.verdict).order_by(t.verdict.c.case)
        for row in all_rows(connection, query):
            verdicts.setdefault(row["judging"], []).append(row["verdict"])
    unexpected = 0
    for row in rows:
        expected = lines[int(row["note"].split()[-1])][1]
        got = verdicts.get(row["current_judging"], [])
        wanted = expected if len(expected) == len(got) else expected * len(got)
        unexpected += got != wanted
    notes = Counter(row["note"] for row in rows)
    return {
        "submissions": len(rows),
        "twice": sum(number > 1 for number in notes.values()),
        "states": dict(Counter(row["state"] for row in judgings.values())),
        "verdicts": sum(map(len, verdicts.values())),
        "unexpected": unexpected,
        "leases lost": sum(row["lost"] for row in judgings.values()),
        "faults": faults_of(server.database, server.folder),
    }


def document(server: Server) -> str:
    """The board's document, without ids and times."""
    with server.database.reading() as connection:
        board = first_row(connection, sa.select(t.board))
        assert board is not None
        made = document_of(connection, setting_of(connection, board))
    return IDS.sub("…", json.dumps(made, sort_keys=True, default=str))


@contextlib.contextmanager
def places(folder: Path, *, postgresql: bool) -> Iterator[list[PlaceOptions]]:
    """Two data folders, each with a database."""
    if not postgresql:
        yield [PlaceOptions(data=folder / name) for name in ("calm", "killed")]
        return
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(running_postgresql())
        databases = [stack.enter_context(new_database("postgresql", folder, url)) for _ in range(2)]
        yield [
            PlaceOptions(data=folder / name, database=made.url.render_as_string(False))
            for name, made in zip(("calm", "killed"), databases, strict=True)
        ]


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--submissions", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--postgresql", action="store_true")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        places(Path(name), postgresql=options.postgresql) as both,
    ):
        results = []
        for place, kills in zip(both, (0, options.kills), strict=True):
            log = Path(name) / "log"
            results.append(run(place, options.submissions, kills, options.seed, log=log))
            shown = {key: value for key, value in results[-1].items() if key != "document"}
            print(f"seed {options.seed}, {json.dumps(shown)}", flush=True)
    same = results[0]["document"] == results[1]["document"]
    print(f"the board's documents are {'equal' if same else 'different'}")
    right = all(
        not one["twice"]
        and not one["unexpected"]
        and not one["faults"]
        and one["submissions"] == options.submissions
        for one in results
    )
    sys.exit(0 if same and right else 1)


if __name__ == "__main__":
    main()
