#!/usr/bin/env python3
"""Measures the cost of the online judge, in ratios and counts; see docs/serve.md.

    .venv/bin/python -m benchmarks.serve_load                          # all, on SQLite
    .venv/bin/python -m benchmarks.serve_load --times 3 --database both # three times each, medians
    .venv/bin/python -m benchmarks.serve_load claims notice --database postgresql

processor      processor time in excess of `judge score` on the same submissions as one file
transactions   database transactions from the request that submits to the end of the judging
busy           500 queued submissions of 20 accounts, 50 waiting clients, two judging slots
claims         a claim with 10,000 queued judgings, and with 10; the first case of a new account
notice         time from the transaction that ends a judging to the notice at a waiting client
memory         a server with 200 streams and 10,000 submissions, and an empty one
rejudging      how much is run and compared after the correction of one case

Compare figures only within a line: other programs also use the machine; its load is printed.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import resource
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import sqlalchemy as sa

from benchmarks.command_line import one_of, parser_of, run_command
from benchmarks.serve_rig import ACTOR, JUDGE, QUICK, SAMPLE, Rig, rig_of
from judge.serve.access.accounts import create_account, create_token
from judge.serve.catalog import set_phase_state
from judge.serve.queue.leases import Claim, claim, enqueue, finish
from judge.serve.rejudging.service import advance
from judge.serve.store import tables as t
from judge.serve.store.tables import Kind, Lane, PhaseState, Scope, new_id
from tests.postgresql import new_database, running_postgresql
from tests.serve_house import CELL, RIGHT, TASK, House

_TICKS = os.sysconf("SC_CLK_TCK")
_NAMES = ("id", "solution", "input_path", "output_path")


def quick_lines() -> list[dict[str, Any]]:
    """The lines of the sample suite that are quickly judged."""
    lines = [json.loads(text) for text in SAMPLE.read_text().splitlines()]
    return [
        {name: line[name] for name in _NAMES} for line in lines if set(line["expected"]) <= QUICK
    ]


def written(path: Path, lines: Sequence[dict[str, Any]]) -> Path:
    """Writes a file of solutions."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def spent(pid: int) -> float:
    """Returns the processor seconds of a process and of its ended children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS


def percentile(values: Sequence[float], share: float) -> float:
    """Returns the value below which a share of the values is."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def milliseconds(seconds: float) -> float:
    """Formats a number for printing."""
    return round(1000 * seconds, 1)


# -- processor time -------------------------------------------------------------------------------


def processor(kind: str) -> dict[str, Any]:
    """Measures processor time for submissions of one task, and of more than 100 cases."""
    lines = quick_lines()
    submissions = [[lines[index % len(lines)]] for index in range(40)]
    large = [lines[:36] for _ in range(2)]
    return {
        "one task": _beyond(kind, submissions),
        "108 cases": _beyond(kind, large),
    }


def _beyond(kind: str, submissions: list[list[dict[str, Any]]]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = [line for submission in submissions for line in submission]
        alone = _score(written(folder / "all.jsonl", _as_samples(lines)), folder / "all")
        alone -= _score(written(folder / "few.jsonl", lines[:1]), folder / "few")
        with rig_of(kind) as rig:
            rig.start("dispatcher", "server")
            rig.prepare()
            parts = [part.process.pid for part in rig.parts.values()]
            _hand_in(rig, folder, submissions[:1], "first")  # suites are loaded once
            rig.wait_until_judged()
            before = sum(map(spent, parts))
            _hand_in(rig, folder, submissions, "next")
            rig.wait_until_judged()
            served = sum(map(spent, parts)) - before
    return {
        "judge score s": round(alone, 2),
        "server and dispatcher s": round(served, 2),
        "beyond %": round(100 * (served / alone - 1)),
        "ms a submission": round(1000 * (served - alone) / len(submissions), 1),
    }


def _as_samples(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Makes the same lines as samples of their tasks, as a single file requires."""
    counts: dict[str, int] = {}
    samples = []
    for line in lines:
        task = str(line["id"])
        samples.append({**line, "sample": counts.get(task, 0)})
        counts[task] = counts.get(task, 0) + 1
    return samples


def _score(path: Path, out: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [JUDGE, "score", str(path), "--dataset", "sample", "--out", str(out)]
    command += ["--jobs", "2", "--sandbox", "bubblewrap"]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _hand_in(
    rig: Rig, folder: Path, submissions: Sequence[Sequence[dict[str, Any]]], word: str
) -> None:
    with httpx.Client(base_url=rig.url, timeout=120) as client:
        for index, lines in enumerate(submissions):
            body = written(folder / "one.jsonl", _as_samples(lines)).read_bytes()
            while True:
                answer = client.post(
                    "/v1/submissions",
                    params={"phase": "open", "note": f"{word} {index}"},
                    headers=_headers(rig.tokens[index % len(rig.tokens)]),
                    content=body,
                )
                if answer.status_code != 429:
                    break
                time.sleep(1)
            assert answer.status_code == 202, answer.text


def _headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/x-ndjson"}


# -- transactions ---------------------------------------------------------------------------------


def transactions(kind: str) -> dict[str, Any]:
    """Counts database commits while 20 submissions are judged, without those of heartbeats."""
    with rig_of(kind) as rig, tempfile.TemporaryDirectory() as name:
        rig.start("dispatcher", "server")
        rig.prepare()
        submissions = [[line] for line in quick_lines()[:20]]
        _hand_in(rig, Path(name), submissions[:4], "first")
        rig.wait_until_judged()
        time.sleep(6)
        before, began = _events(rig), time.monotonic()
        _hand_in(rig, Path(name), submissions, "next")
        rig.wait_until_judged()
        seconds = time.monotonic() - began
        by_kind = {kind: count - before.get(kind, 0) for kind, count in _events(rig).items()}
        acts = ("submission.accepted", "judging.running", "judging.done", "board.changed")
        return {
            "submissions": len(submissions),
            "events by kind": {kind: count for kind, count in by_kind.items() if count},
            "transactions that wrote, of one submission": sum(by_kind.get(act, 0) for act in acts)
            / len(submissions),
            "heartbeats": f"1 in 5 s for the dispatcher, {seconds:.0f} s in all",
        }


def _events(rig: Rig) -> dict[str, int]:
    query = sa.select(t.event.c.kind, sa.func.count()).group_by(t.event.c.kind)
    with rig.server.database.reading() as connection:
        return {str(kind): int(count) for kind, count in connection.execute(query)}


# -- many clients ---------------------------------------------------------------------------------


def busy(kind: str, queued: int = 500, clients: int = 50) -> dict[str, Any]:
    """Measures `POST` on an idle server, and on one with a queue and waiting clients."""
    with rig_of(kind) as rig:
        rig.start("server", "dispatcher")
        rig.prepare()
        tokens = _accounts(rig, 20)
        others = _accounts(rig, 20, "other")  # an account may hand in 30 times a minute
        line = json.dumps(quick_lines()[0]).encode() + b"\n"
        idle, wrong = _posts(rig, others, line, 40, pause_s=0.05)
        addresses: list[tuple[str, str]] = []
        filled, more = _posts(rig, tokens, line, queued, pause_s=0.0, addresses=addresses)
        wrong += more
        ended = threading.Event()
        polls: list[int] = []
        threads = [
            threading.Thread(target=_poll, args=(rig.url, *addresses[-1 - index], ended, polls))
            for index in range(clients)
        ]
        for thread in threads:
            thread.start()
        time.sleep(2)
        before, began = _reads(rig), time.monotonic()
        loaded, more = _posts(rig, others, line, 100, pause_s=0.05)
        seconds = time.monotonic() - began
        reads = _reads(rig) - before
        wrong += more + sum(status not in {200, 304} for status in polls)
        waiting = rig.count("queued")
        ended.set()
        for part in rig.parts.values():
            part.end()
        for thread in threads:
            thread.join()
        return {
            "idle POST ms: median, 99th": [
                milliseconds(statistics.median(idle)),
                milliseconds(percentile(idle, 0.99)),
            ],
            "busy POST ms: median, 99th": [
                milliseconds(statistics.median(loaded)),
                milliseconds(percentile(loaded, 0.99)),
            ],
            "99th, times idle": round(percentile(loaded, 0.99) / percentile(idle, 0.99), 1),
            "20 at once, 99th ms": milliseconds(percentile(filled, 0.99)),
            "errors": wrong,
            "waiting at the end": waiting,
            "scans of events a second": None if reads is None else round(reads / seconds, 1),
        }


def _reads(rig: Rig) -> float:
    """Counts how often the table of events was read, on PostgreSQL."""
    if rig.postgresql is None:
        return float("nan")
    query = (
        "SELECT coalesce(seq_scan, 0) + coalesce(idx_scan, 0) FROM pg_stat_user_tables "
        "WHERE relname = 'event'"
    )
    with rig.server.database.reading() as connection:
        return float(connection.exec_driver_sql(query).scalar() or 0)


def _accounts(rig: Rig, number: int, word: str = "many") -> list[str]:
    tokens = []
    with rig.server.database.writing(ACTOR) as transaction:
        for index in range(number):
            account = create_account(transaction, f"{word}-{index}")
            for part in range(4):  # 4 waiting requests and 30 submissions a minute per token
                scopes = [Scope.SUBMIT, Scope.READ]
                tokens.append(create_token(transaction, account, f"t{part}", scopes)[1])
    return tokens


def _posts(
    rig: Rig,
    tokens: Sequence[str],
    body: bytes,
    number: int,
    *,
    pause_s: float,
    addresses: list[tuple[str, str]] | None = None,
) -> tuple[list[float], int]:
    """Measures the seconds of each `POST`, in sequence with a pause or 20 at a time; and errors."""
    with httpx.Client(base_url=rig.url, timeout=120) as client:

        def post(index: int) -> tuple[float, int, str, str]:
            token = tokens[index % len(tokens)]
            began = time.perf_counter()
            answer = client.post(
                "/v1/submissions", params={"phase": "open"}, headers=_headers(token), content=body
            )
            seconds = time.perf_counter() - began
            time.sleep(pause_s)
            return seconds, answer.status_code, answer.headers.get("location", ""), token

        with ThreadPoolExecutor(20 if pause_s == 0 else 1) as pool:
            answers = list(pool.map(post, range(number)))
    if addresses is not None:
        addresses += [(location, token) for _, status, location, token in answers if status == 202]
    return [seconds for seconds, *_ in answers], sum(status != 202 for _, status, *_ in answers)


def _poll(url: str, address: str, token: str, ended: threading.Event, seen: list[int]) -> None:
    tag = '"0"'
    with httpx.Client(base_url=url, timeout=60) as client:
        while not ended.is_set():
            headers = {**_headers(token), "If-None-Match": tag}
            try:
                answer = client.get(address, params={"wait": "20"}, headers=headers)
            except httpx.TransportError:
                if not ended.is_set():
                    seen.append(0)
                return
            seen.append(answer.status_code)
            tag = answer.headers.get("etag", tag)


# -- claims ---------------------------------------------------------------------------------------


def claims(kind: str) -> dict[str, Any]:
    """Measures claims with 10 and 10,000 queued judgings; a new account behind 400 submissions."""
    with rig_of(kind) as rig:
        _without_dispatcher(rig)
        accounts = _ids(rig, 20)
        few = _claims(rig, accounts, 10)
        many = _claims(rig, accounts, 10_000)
        old, new = _ids(rig, 2, "other")
        for account in (accounts, [old, new]):
            _set(rig, account, concurrency=100)
        with rig.server.database.writing(ACTOR) as transaction:
            transaction.execute(
                sa.update(t.judging).where(t.judging.c.state == "queued").values(state="cancelled")
            )
            transaction.execute(sa.update(t.account).values(waiting=0, running=0))
        _queue(rig, [old] * 400)
        _claim(rig)
        _queue(rig, [new])
        before = 0
        while (taken := _claim(rig)) is not None and taken.judging["account"] != new:
            before += 1
        return {
            "claim ms with 10": milliseconds(few),
            "claim ms with 10,000": milliseconds(many),
            "times as long": round(many / few, 2),
            "submissions before that of a new account, of 400": before,
        }


def _without_dispatcher(rig: Rig) -> None:
    rig.start("dispatcher")
    rig.prepare()
    rig.parts["dispatcher"].end()


def _ids(rig: Rig, number: int, word: str = "queue") -> list[str]:
    with rig.server.database.writing(ACTOR) as transaction:
        return [create_account(transaction, f"{word}-{index}") for index in range(number)]


def _set(rig: Rig, accounts: Sequence[str], **values: int) -> None:
    with rig.server.database.writing(ACTOR) as transaction:
        transaction.execute(
            sa.update(t.account).where(t.account.c.id.in_(accounts)).values(**values)
        )


def _queue(rig: Rig, accounts: Sequence[str], *, cases: int = 3) -> None:
    """Adds a submission of each account, without a body."""
    with rig.server.database.writing(ACTOR) as transaction:
        phase = transaction.execute(sa.select(t.phase.c.id)).scalar_one()
        conditions = transaction.execute(sa.select(t.conditions.c.digest)).scalar_one()
        for account in accounts:
            submission = new_id("sub")
            transaction.execute(
                sa.insert(t.submission).values(
                    id=submission,
                    account=account,
                    made_by=account,
                    phase=phase,
                    kind=Kind.PROGRAMS,
                    sha256="0" * 64,
                    bytes=1,
                )
            )
            judging = enqueue(
                transaction,
                submission=submission,
                account=account,
                conditions=conditions,
                cases=cases,
            )
            transaction.execute(
                sa.update(t.submission)
                .where(t.submission.c.id == submission)
                .values(current_judging=judging)
            )


def _claim(rig: Rig) -> Claim | None:
    with rig.server.database.writing(ACTOR) as transaction:
        return claim(transaction, "benchmark", set(Lane), alone=True)


def _claims(rig: Rig, accounts: Sequence[str], queued: int) -> float:
    """Measures the median seconds of a claim, while the number of waiting judgings is constant."""
    _set(rig, accounts, concurrency=10_000)
    for _ in range(0, queued - rig.count("queued"), 500):
        missing = min(500, queued - rig.count("queued"))
        _queue(rig, [accounts[index % len(accounts)] for index in range(missing)])
    if rig.postgresql is not None:
        with rig.server.database.writing(ACTOR) as transaction:
            transaction.connection.exec_driver_sql("ANALYZE")
    times = []
    for _ in range(60):
        began = time.perf_counter()
        taken = _claim(rig)
        times.append(time.perf_counter() - began)
        assert taken is not None
        _queue(rig, [str(taken.judging["account"])])
    return statistics.median(times)


# -- notice ---------------------------------------------------------------------------------------


def notice(kind: str) -> dict[str, Any]:
    """Measures the time from the commit that ends a judging to its notice at poll and stream."""
    with rig_of(kind) as rig:
        _without_dispatcher(rig)
        rig.start("server")
        polled: list[float] = []
        streamed: list[float] = []
        for way, times in (("poll", polled), ("stream", streamed)):
            for _ in range(15):
                times.append(_heard(rig, way))
        return {
            "long poll s: median, most": [
                round(statistics.median(polled), 2),
                round(max(polled), 2),
            ],
            "stream s: median, most": [
                round(statistics.median(streamed), 2),
                round(max(streamed), 2),
            ],
        }


def _heard(rig: Rig, way: str) -> float:
    with rig.server.database.reading() as connection:
        team = connection.scalar(sa.select(t.account.c.id).where(t.account.c.name == "team-0"))
    _queue(rig, [str(team)], cases=1)
    taken = _claim(rig)
    assert taken is not None
    notice_times: list[float] = []
    ready = threading.Event()
    path = f"/v1/submissions/{taken.judging['submission']}"

    def poll(client: httpx.Client) -> None:
        tag = client.get(path).headers["etag"]
        ready.set()
        client.get(path, params={"wait": "30"}, headers={"If-None-Match": tag})
        notice_times.append(time.monotonic())

    def stream(client: httpx.Client) -> None:
        with client.stream("GET", f"{path}/events") as answer:
            for line in answer.iter_lines():
                ready.set()
                if "done" in line or line.startswith("event: end"):
                    notice_times.append(time.monotonic())
                    return

    def listen() -> None:
        headers = _headers(rig.tokens[0])
        with httpx.Client(base_url=rig.url, timeout=60, headers=headers) as client:
            (poll if way == "poll" else stream)(client)

    thread = threading.Thread(target=listen)
    thread.start()
    ready.wait(30)
    time.sleep(0.6)
    with rig.server.database.writing(ACTOR) as transaction:
        rows = [
            t.VerdictRow(
                task="1001",
                sample=0,
                case=1,
                verdict="AC",
                run_key=None,
                comparison_key=None,
                output_sha256=None,
                earned=None,
            )
        ]
        finish(transaction, taken, rows, report_sha256="0" * 64, scores={"soft": 1.0, "hard": 1.0})
    committed = time.monotonic()
    thread.join()
    return notice_times[0] - committed


# -- memory ---------------------------------------------------------------------------------------


def memory(kind: str) -> dict[str, Any]:
    """Measures the resident memory of the server."""
    with rig_of(kind) as rig:
        _without_dispatcher(rig)
        rig.start("server")
        server = rig.parts["server"].process.pid
        with httpx.Client(base_url=rig.url, headers=_headers(rig.tokens[0])) as client:
            client.get("/v1/submissions")
            empty = _resident(server)
            tokens = _accounts(rig, 50)  # an account may listen four times
            accounts = _ids(rig, 20)
            for _ in range(20):
                _queue(rig, [accounts[index % 20] for index in range(500)])
            with rig.server.database.reading() as connection:
                query = sa.select(t.account.c.id).where(t.account.c.name.like("many-%"))
                owners = list(connection.scalars(query))
            _queue(rig, owners)
            with _streams(rig, tokens, 200) as opened:
                client.get("/v1/submissions")
                full = _resident(server)
        return {
            "empty MiB": round(empty / 1024),
            "streams": opened,
            "submissions": rig.count("queued"),
            "MiB": round(full / 1024),
            "times": round(full / empty, 2),
        }


def _resident(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    raise SystemExit("the server has ended")


@contextlib.contextmanager
def _streams(rig: Rig, tokens: Sequence[str], number: int) -> Iterator[int]:
    with rig.server.database.reading() as connection:
        rows = connection.execute(
            sa.select(t.submission.c.id, t.account.c.name)
            .join(t.account, t.account.c.id == t.submission.c.account)
            .where(t.account.c.name.like("many-%"))
        ).all()
    own = {row.name: row.id for row in rows}
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(
            httpx.Client(base_url=rig.url, timeout=60, limits=httpx.Limits(max_connections=number))
        )
        opened = 0
        for index in range(number):
            token = tokens[index % len(tokens)]
            path = f"/v1/submissions/{own[f'many-{index % len(tokens) // 4}']}/events"
            answer = stack.enter_context(client.stream("GET", path, headers=_headers(token)))
            opened += answer.status_code == 200
        time.sleep(2)
        yield opened


# -- rejudging ------------------------------------------------------------------------------------


def rejudging(kind: str, tasks: int = 60, submissions: int = 50) -> dict[str, Any]:
    """Counts what is copied, compared and run after the correction of one case of a suite."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(running_postgresql()) if kind == "postgresql" else None
        database = stack.enter_context(new_database(kind, folder, url))
        suite = _suite_of(folder / "small", tasks)
        house = House(database, folder / "data", suite)
        for index in range(submissions):
            house.submit(("one", "two")[index % 2], suite, index)
        disputed = house.scalar(sa.select(t.submission.c.id))
        claim_of = {"task": TASK, "case": 1, "kind": "gold", "claim": "it is not"}
        dispute = house.call("one", "POST", "/disputes", submission=disputed, **claim_of).json()
        with database.writing(ACTOR) as transaction:
            set_phase_state(transaction, "spring", PhaseState.CLOSED)
        fault = {
            "finding": "fault",
            "reason": "the question counts the returns",
            "evidence": "the orders add up to it",
            "cells": {"1": f"{CELL}={RIGHT}"},
        }
        for reviewer in ("first", "second"):
            decided = house.call(reviewer, "POST", f"/disputes/{dispute['id']}:decide", **fault)
        number = decided.json()["rejudging"]
        house.call("author", "POST", f"/rejudgings/{number}:start")
        before = time.process_time()
        house.dispatch()
        spent_s = time.process_time() - before
        advance(house.server)
        diff = house.call("author", "GET", f"/rejudgings/{number}/diff").json()
        return {
            "submissions": submissions,
            "cases": house.cases,
            **diff["work"],
            "processor s": round(spent_s, 1),
        }


def _suite_of(folder: Path, number: int) -> Path:
    """Makes a suite with one case per task: one task of the sample suite, and copies of another."""
    sample = SAMPLE.parent
    first, second = json.loads((sample / "dataset.json").read_text())[:2]
    tasks = [first]
    for index in range(number - 1):
        name = f"2{index:04}"
        path = second["spreadsheet_path"].replace(str(second["id"]), name)
        tasks.append({**second, "id": name, "spreadsheet_path": path})
    for task, source in zip(tasks, [first, *[second] * (number - 1)], strict=True):
        index = folder / task["spreadsheet_path"]
        index.mkdir(parents=True)
        for file in sorted((sample / source["spreadsheet_path"]).glob("1_*.xlsx")):
            name = file.name.replace(str(source["id"]), str(task["id"]))
            (index / name).write_bytes(file.read_bytes())
    (folder / "dataset.json").write_text(json.dumps(tasks))
    return folder


MEASURES: dict[str, Callable[[str], dict[str, Any]]] = {
    measurement.__name__: measurement
    for measurement in (processor, transactions, busy, claims, notice, memory, rejudging)
}


def median_of(values: Sequence[Any]) -> Any:
    """Takes the median of each number over several measurements, other values from the last."""
    last = values[-1]
    if isinstance(last, dict):
        return {name: median_of([value[name] for value in values]) for name in last}
    if isinstance(last, list):
        return [median_of(column) for column in zip(*values, strict=True)]
    return statistics.median(values) if isinstance(last, int | float) else last


def main() -> None:
    """Runs the command."""
    parser = parser_of(__doc__)
    parser.add_argument("measures", nargs="*", type=one_of(MEASURES), default=list(MEASURES))
    parser.add_argument("--database", choices=["sqlite", "postgresql", "both"], default="sqlite")
    parser.add_argument("--times", type=int, default=1)
    options = parser.parse_args()
    kinds = ["sqlite", "postgresql"] if options.database == "both" else [options.database]
    for name, kind in itertools.product(options.measures, kinds):
        seen = []
        for _ in range(options.times):
            seen.append(MEASURES[name](kind))
            load = round(os.getloadavg()[0])
            print(f"{name}, {kind}, load {load}: {json.dumps(seen[-1])}", flush=True)
        if options.times > 1:
            print(f"{name}, {kind}, median of {options.times}: {json.dumps(median_of(seen))}")


if __name__ == "__main__":
    run_command(main)
