#!/usr/bin/env python3
"""Stops the parts of `judge serve` while they judge, takes away resources, and sets clocks wrong.

    .venv/bin/python -m benchmarks.serve_faults                      # all scenarios, both databases
    .venv/bin/python -m benchmarks.serve_faults stopped disk --database postgresql

Each scenario starts a server with the sample suite, submits, causes its fault during a judging,
ends the fault, and waits. Then each submission must be judged exactly once, with the right
verdicts; `admin check` must find nothing; and no process may be left. Prints a line for each
scenario; exits with 1 if one fails. Needs root to mount file systems (`disk`, `database_disk`,
`temporary`, `readonly`), and Debian's package libfaketime for `clocks`.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import sqlalchemy as sa

from benchmarks.command_line import one_of, parser_of, run_command
from benchmarks.serve_rig import Rig, is_right, rig_of
from judge.serve.operations.upkeep import changed_revisions
from judge.serve.store import tables as t
from judge.serve.store.database import all_rows

FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
SUBMISSIONS = 5
MIB = 1 << 20
_UNAVAILABLE = 503
_NO_SPACE = 507


@contextlib.contextmanager
def busy(kind: str, data: Path | None = None, *names: str, **environment: Any) -> Iterator[Rig]:
    """Opens a rig with submissions, one of which is being judged."""
    with rig_of(kind, data) as rig:
        rig.start("dispatcher", "server", *names, **environment)
        rig.prepare()
        for number in range(SUBMISSIONS):
            rig.hand_in(number)
        rig.wait_for("a judging under way", lambda: bool(rig.held()))
        yield rig


@contextlib.contextmanager
def file_system(size: int) -> Iterator[Path]:
    """Mounts a file system in memory with a number of bytes."""
    with tempfile.TemporaryDirectory(prefix="judge-full-") as name:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", name], check=True)
        try:
            yield Path(name)
        finally:
            subprocess.run(["umount", "-l", name], check=True)


@contextlib.contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Fills the disk for a while."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while True:
                file.write(b"\0" * MIB)
        with contextlib.suppress(OSError):
            while True:
                file.write(b"\0" * 512)
    try:
        yield
    finally:
        ballast.unlink()


def answer_of(rig: Rig, method: str = "GET", path: str = "/v1/status") -> int:
    """Returns the status of a request; 0 if there is no answer."""
    headers = {"Authorization": f"Bearer {rig.tokens[0]}", "Content-Type": "application/x-ndjson"}
    try:
        body = b'{"id": 1001, "solution": "x"}\n' if method == "POST" else None
        address = rig.url + path
        return httpx.request(method, address, headers=headers, content=body, timeout=60).status_code
    except httpx.TransportError:
        return 0


# -- scenarios ------------------------------------------------------------------------------------


def stopped(kind: str) -> dict[str, Any]:
    """A dispatcher is stopped for longer than its lease, then continues: it can record nothing."""
    with busy(kind) as rig:
        first, begun = rig.parts["dispatcher"], time.monotonic()
        first.process.send_signal(signal.SIGSTOP)
        leases = {row["lease"] for row in rig.held("dispatcher")}
        rig.start("second")
        rig.wait_for(
            "the loss of the leases",
            lambda: not leases & {row["lease"] for row in rig.held("dispatcher")},
        )
        seconds = time.monotonic() - begun
        rest = SUBMISSIONS - len(leases)
        rig.wait_for("work of the other one", lambda: rig.count("done") >= rest)
        first.process.send_signal(signal.SIGCONT)
        rig.wait_until_judged()
        return {
            "leases held": len(leases),
            "lost after s": round(seconds),
            "leases lost": rig.lost_leases(),
            **rig.results(),
        }


def clocks(kind: str) -> dict[str, Any]:
    """A dispatcher a day ahead, then one a day behind, then two that are an hour apart."""
    if not Path(FAKETIME).exists():
        return {"skipped": "needs libfaketime"}

    def at(offset: str) -> dict[str, str]:
        return {"LD_PRELOAD": FAKETIME, "FAKETIME": offset, "DONT_FAKE_MONOTONIC": "1"}

    with rig_of(kind) as rig:
        rig.start("server", "dispatcher", dispatcher=at("+1d"), server=at("+0d"))
        rig.prepare()
        rig.hand_in(0)
        for number, offset in enumerate(("-1d", "+0d", "+1d", "-1d"), 1):
            rig.wait_for("a judging under way", lambda: bool(rig.held()))
            part = rig.parts["dispatcher"]
            part.kill()
            part.environment = at(offset)
            part.start_again()
            server = rig.parts["server"]
            server.end()
            server.environment = at("-1d" if offset == "+1d" else "+1d")
            server.start_again()
            rig.hand_in(number)
        rig.start("second", second=at("+1h"))
        for number in range(5, 8):
            rig.hand_in(number)
        rig.wait_until_judged()
        return {"leases lost": rig.lost_leases(), **rig.results()}


def disk(kind: str) -> dict[str, Any]:
    """The disk of the data folder is full; with SQLite, the database is on the same disk."""
    with file_system(600 * MIB) as folder, busy(kind, folder / "data") as rig:
        with filled(folder):
            time.sleep(6)
            seen = [answer_of(rig, "POST", "/v1/submissions?phase=nowhere") for _ in range(3)]
            lives = all(part.lives for part in rig.parts.values())
        rig.wait_until_judged()
        return {"POST when full": seen, "parts died": int(not lives), **rig.results()}


def database_disk(kind: str) -> dict[str, Any]:
    """The disk of PostgreSQL is full."""
    if kind == "sqlite":
        return {"skipped": "SQLite is in the data folder"}
    with file_system(400 * MIB) as folder:
        os.environ["JUDGE_RIG_POSTGRESQL"] = str(folder)
        try:
            with busy(kind) as rig:
                assert rig.postgresql is not None
                with filled(folder):
                    time.sleep(10)
                    seen = [
                        answer_of(rig, "POST", "/v1/submissions?phase=nowhere") for _ in range(3)
                    ]
                lives = all(part.lives for part in rig.parts.values())
                if not rig.postgresql.answers():
                    rig.postgresql.start()
                rig.wait_until_judged()
                return {"POST when full": seen, "parts died": int(not lives), **rig.results()}
        finally:
            del os.environ["JUDGE_RIG_POSTGRESQL"]


def temporary(kind: str) -> dict[str, Any]:
    """The disk of temporary files is full."""
    with file_system(100 * MIB) as folder:
        own = {"TMPDIR": str(folder)}
        with busy(kind, None, dispatcher=own, server=own) as rig:
            with filled(folder):
                time.sleep(8)
            rig.wait_until_judged()
            return rig.results()


def readonly(kind: str) -> dict[str, Any]:
    """The file system of the data folder is read-only for a while."""
    with file_system(600 * MIB) as folder, busy(kind, folder / "data") as rig:
        # A file system with files open for writing cannot become read-only, so end their processes.
        for part in rig.parts.values():
            part.kill()
        rig.server.database.close()
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        refused: list[int | str] = []
        for part in rig.parts.values():
            try:
                part.start()
            except SystemExit:
                refused.append(part.process.wait())
            else:
                refused.append("started")
        subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
        for part in rig.parts.values():
            if not part.lives:
                part.start_again()
        rig.wait_until_judged()
        return {"exit codes when started": refused, **rig.results()}


def descriptors(kind: str) -> dict[str, Any]:
    """Server and dispatcher cannot open any more files for a while."""
    with busy(kind) as rig:
        limits = {}
        for name, part in rig.parts.items():
            pid = part.process.pid
            limits[name] = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            count = len(list(Path(f"/proc/{pid}/fd").iterdir()))
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (count, limits[name][1]))
        time.sleep(8)
        for name, part in rig.parts.items():
            resource.prlimit(part.process.pid, resource.RLIMIT_NOFILE, limits[name])
        lives = all(part.lives for part in rig.parts.values())
        rig.wait_until_judged()
        return {"parts died": int(not lives), **rig.results()}


def away(kind: str) -> dict[str, Any]:
    """The database is gone for a minute."""
    with busy(kind) as rig:
        begun = time.monotonic()
        if rig.postgresql is not None:
            rig.postgresql.kill()
        else:  # another program writes and does not finish
            holder = sa.create_engine(rig.server.database.url).connect()
            holder.exec_driver_sql("BEGIN EXCLUSIVE")
        seen = []
        while time.monotonic() - begun < 60:
            seen.append(answer_of(rig, "POST", "/v1/submissions?phase=nowhere"))
            time.sleep(2)
        if rig.postgresql is not None:
            rig.postgresql.start()
        else:
            holder.close()
        lives = all(part.lives for part in rig.parts.values())
        rig.wait_until_judged()
        answers = {str(status): seen.count(status) for status in sorted(set(seen))}
        return {
            "answers": answers,
            "leases lost": rig.lost_leases(),
            "parts died": int(not lives),
            "answers other than 503": len(seen) - seen.count(_UNAVAILABLE),
            **rig.results(),
        }


def revision(kind: str) -> dict[str, Any]:
    """A file of a revision is changed, then removed: it judges nothing, and is reported."""
    with rig_of(kind) as rig:
        rig.start("dispatcher", "server")
        rig.prepare()
        rig.hand_in(0)
        rig.wait_until_judged()
        with rig.server.database.reading() as connection:
            (row,) = all_rows(connection, sa.select(t.revision))
        gold = next(rig.server.folder.suite(row["folder"]).rglob("1_1001_answer.xlsx"))
        content = gold.read_bytes()
        states, reasons = [], []
        for number in (1, 2):
            if number == 1:
                gold.write_bytes(content + b"x")
            else:
                gold.unlink()
            rig.hand_in(number)
            rig.wait_until_judged()
            with rig.server.database.reading() as connection:
                last = all_rows(connection, sa.select(t.judging).order_by(t.judging.c.id))[-1]
            states.append(last["state"])
            reasons.append(last["reason"])
        listed = changed_revisions(rig.server.database, rig.server.folder)
        gold.write_bytes(content)
        after = changed_revisions(rig.server.database, rig.server.folder)
        return {"states": states, "reasons": reasons, "listed": listed, "listed after": after}


SCENARIOS: dict[str, Callable[[str], dict[str, Any]]] = {
    one.__name__: one
    for one in (
        stopped,
        clocks,
        disk,
        database_disk,
        temporary,
        readonly,
        descriptors,
        away,
        revision,
    )
}


def holds(name: str, seen: dict[str, Any]) -> bool:
    """Returns whether a scenario ended as required."""
    if "skipped" in seen:
        return True
    if name == "revision":
        listed = len(seen["listed"]) > 0 and not seen["listed after"]
        return listed and set(seen["states"]) == {"failed"}
    rest = {key: seen[key] for key in list(seen)[list(seen).index("submissions") :]}
    return is_right(rest) and not seen.get("parts died")


def main() -> None:
    """Runs the command."""
    parser = parser_of(__doc__)
    parser.add_argument("scenarios", nargs="*", type=one_of(SCENARIOS), default=list(SCENARIOS))
    parser.add_argument("--database", choices=["sqlite", "postgresql"])
    options = parser.parse_args()
    right = True
    for kind in [options.database] if options.database else ["sqlite", "postgresql"]:
        for name in options.scenarios:
            begun = time.monotonic()
            seen = SCENARIOS[name](kind)
            good = holds(name, seen)
            right = right and good
            seconds = round(time.monotonic() - begun)
            print(f"{name}, {kind}, {seconds} s: {'right' if good else 'WRONG'} {json.dumps(seen)}")
            sys.stdout.flush()
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    run_command(main)
