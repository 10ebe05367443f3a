"""Claims, leases and their loss; every test runs on both databases."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from judge.grading.store import RunDirectory
from judge.serve.operations.upkeep import faults_of
from judge.serve.queue.conditions import make_environment
from judge.serve.queue.dispatcher import Dispatcher, DispatchOptions, _Running
from judge.serve.queue.judging import CaseCounter, Judged, Scorers, _signature
from judge.serve.queue.leases import (
    MAX_DISPATCHER_DEATHS,
    MAX_LOST_LEASES,
    RETRIES,
    Claim,
    FencedError,
    beat,
    cancel,
    claim,
    end_cancelled,
    enqueue,
    fail,
    finish,
    lose,
    release,
)
from judge.serve.queue.watching import Watcher, return_leases
from judge.serve.store import tables as t
from judge.serve.store.database import Database, DatabaseGoneError
from judge.serve.store.folder import DataFolder
from judge.serve.store.tables import JudgingState, Kind, Lane, new_id
from tests.serve_house import store_body
from tests.unit.serve.spine.world import ACTOR, LINES, World, state_events, typed_lines, verdicts_of


def queued(
    world: World, role: str = "contestant", cases: int = 3, rejudging: str | None = None
) -> str:
    """Adds a submission to the queue, without a body; returns the judging's id."""
    with world.server.database.writing(ACTOR) as transaction:
        conditions = transaction.execute(sa.select(t.conditions.c.digest)).scalar()
        if conditions is None:
            revision = transaction.execute(sa.select(t.revision.c.id)).scalar()
            conditions = "c" * 64
            values: dict[str, object] = {"digest": conditions, "revision": revision, "document": {}}
            transaction.execute(sa.insert(t.conditions).values(**values))
        phase = transaction.execute(sa.select(t.phase.c.id)).scalar()
        submission = new_id("sub")
        body = store_body(world.server.folder, b"x")
        account = world.accounts[role]
        transaction.execute(
            sa.insert(t.submission).values(
                id=submission,
                account=account,
                made_by=account,
                phase=phase,
                kind=Kind.ANSWERS,
                sha256=body.sha256,
                bytes=1,
            )
        )
        judging = enqueue(
            transaction,
            submission=submission,
            account=account,
            conditions=conditions,
            cases=cases,
            rejudging=rejudging,
        )
        transaction.execute(
            sa.update(t.submission)
            .where(t.submission.c.id == submission)
            .values(current_judging=judging)
        )
    return judging


def row_of(world: World, judging: str) -> dict[str, object]:
    return next(row for row in world.rows(t.judging) if row["id"] == judging)


def taken(world: World, holder: str = "one") -> Claim:
    claimed = world.claim(holder)
    assert claimed is not None
    return claimed


def in_order(world: World) -> None:
    assert faults_of(world.server.database, world.server.folder) == []


def lost(world: World, claimed: Claim, *, progress: int = 0) -> None:
    with world.server.database.writing(ACTOR) as transaction:
        assert lose(transaction, claimed.id, claimed.lease, beat_seen=None, progress=progress)


def test_service_is_shared_by_cases(world: World) -> None:
    """Four hundred cases of one account delay another account's first submission by one claim."""
    for _ in range(4):
        queued(world, "rival", cases=100)
    first = taken(world)
    assert first.judging["account"] == world.accounts["rival"]
    mine = queued(world, "contestant", cases=10)
    assert taken(world).id == mine
    in_order(world)


def test_an_account_that_comes_back_gets_no_advantage_of_the_past(world: World) -> None:
    """It starts at the least service of those who wait, not at its own of long ago."""
    for _ in range(3):
        queued(world, "rival", cases=100)
        world.finish(taken(world))
    queued(world, "rival")
    queued(world, "contestant")
    served = {row["name"]: row["vtime"] for row in world.rows(t.account)}
    assert served["contestant"] == served["rival"] == 300


def test_an_account_has_no_more_under_way_than_its_concurrency(world: World) -> None:
    for _ in range(3):
        queued(world)
    assert world.claim() is not None
    assert world.claim(alone=False) is not None
    assert world.claim(alone=False) is None


def test_a_lane_waits_until_it_may_be_served(world: World) -> None:
    large, small = queued(world, cases=500), queued(world, cases=5)
    with world.server.database.writing(ACTOR) as transaction:
        assert claim(transaction, "one", {Lane.REJUDGE}, alone=True) is None
    assert taken(world).id == small
    assert taken(world).id == large


def test_who_lost_the_lease_writes_nothing(world: World) -> None:
    queued(world)
    before = taken(world, "one")
    lost(world, before)
    after = taken(world, "two")
    assert after.id == before.id
    with pytest.raises(FencedError):
        world.finish(before, "WA")
    assert world.rows(t.verdict) == []
    for act in (release, end_cancelled):
        with pytest.raises(FencedError), world.server.database.writing(ACTOR) as transaction:
            act(transaction, before)
    world.finish(after)
    assert {row["verdict"] for row in world.rows(t.verdict)} == {"AC"}
    in_order(world)


def test_a_judging_is_done_with_all_its_verdicts_or_not_at_all(world: World) -> None:
    queued(world)
    claimed = taken(world)
    rows = verdicts_of(world.server.database, claimed, "AC")
    doubled = [*rows, rows[0]]
    with pytest.raises(sa.exc.IntegrityError), world.server.database.writing(ACTOR) as transaction:
        finish(transaction, claimed, doubled, report_sha256="0" * 64, scores={})
    assert row_of(world, claimed.id)["state"] == JudgingState.RUNNING
    assert world.rows(t.verdict) == []
    in_order(world)


def test_after_three_losses_it_is_judged_alone_and_after_three_deaths_alone_it_has_failed(
    world: World,
) -> None:
    judging = queued(world)
    for _ in range(MAX_LOST_LEASES):
        lost(world, taken(world))
    assert row_of(world, judging)["alone"]
    assert world.claim(alone=False) is None  # not beside anything else
    for _ in range(MAX_DISPATCHER_DEATHS):
        lost(world, taken(world))
    row = row_of(world, judging)
    assert row["state"] == JudgingState.FAILED
    assert "died" in str(row["reason"])
    assert not world.rows(t.submission)[0]["counts"]  # the turn is given back
    in_order(world)


def test_a_judging_that_gets_on_is_not_at_fault(world: World) -> None:
    """Dispatchers that are killed for other reasons still record a case each time they run."""
    judging = queued(world, cases=40)
    for life in range(30):
        lost(world, taken(world), progress=life + 1)
    assert row_of(world, judging)["state"] == JudgingState.QUEUED


def test_judge_errors_are_tried_again_twice(world: World) -> None:
    judging = queued(world)
    for place in range(RETRIES + 1):
        with world.server.database.writing(ACTOR) as transaction:
            claimed = claim(transaction, "one", set(Lane), alone=True)
        assert claimed is not None
        with world.server.database.writing(ACTOR) as transaction:
            state = fail(transaction, claimed, "1 case holds a judge error", retry=True)
        assert state == (JudgingState.QUEUED if place < RETRIES else JudgingState.FAILED)
    assert row_of(world, judging)["errors"] == RETRIES + 1
    assert world.claim() is None
    in_order(world)


def test_what_waits_is_cancelled_at_once_and_what_is_under_way_by_its_holder(world: World) -> None:
    waiting, database = queued(world), world.server.database
    with database.writing(ACTOR) as transaction:
        assert cancel(transaction, waiting) is JudgingState.QUEUED
    assert row_of(world, waiting)["state"] == JudgingState.CANCELLED
    assert not world.rows(t.submission)[0]["counts"]
    running = queued(world)
    claimed = taken(world)
    with database.writing(ACTOR) as transaction:
        cancel(transaction, running)
    own, cancelled = beat(database, ACTOR, "one", {claimed.lease: 1})
    assert own == cancelled == {claimed.lease}
    with database.writing(ACTOR) as transaction:
        end_cancelled(transaction, claimed)
    assert row_of(world, running)["state"] == JudgingState.CANCELLED
    assert world.rows(t.submission)[1]["counts"]  # it had begun
    in_order(world)


def test_leases_are_lost_by_the_watchers_own_clock(world: World) -> None:
    queued(world)
    claimed, now = taken(world), [0.0]
    database = world.server.database
    watcher = Watcher(database, world.server.folder, "w", patience_s=30, clock=lambda: now[0])
    assert watcher.look() == 0
    now[0] += 29
    assert watcher.look() == 0
    beat(database, ACTOR, "one", {claimed.lease: 1})
    now[0] += 29
    assert watcher.look() == 0
    now[0] += 31
    assert watcher.look() == 1
    assert row_of(world, claimed.id)["state"] == JudgingState.QUEUED
    own, _ = beat(database, ACTOR, "one", {claimed.lease: 2})
    assert own == set()  # the holder learns it at its next beat
    in_order(world)


def test_a_dispatcher_that_starts_returns_the_leases_of_its_name(world: World) -> None:
    queued(world)
    queued(world, "rival")
    taken(world, "one")
    other = taken(world, "two")
    assert return_leases(world.server.database, world.server.folder, "one") == 1
    assert row_of(world, other.id)["state"] == JudgingState.RUNNING
    in_order(world)


def test_what_came_back_is_the_first_of_its_account(world: World) -> None:
    first = queued(world)
    claimed = taken(world)
    queued(world)
    with world.server.database.writing(ACTOR) as transaction:
        release(transaction, claimed)
    assert taken(world).id == first


def test_nothing_is_claimed_twice(world: World) -> None:
    for place in range(24):
        queued(world, ("contestant", "rival", "author")[place % 3])
    with world.server.database.writing(ACTOR) as transaction:
        transaction.execute(sa.update(t.account).values(concurrency=100))

    def work(holder: str) -> list[str]:
        done = []
        misses = 0
        while misses < 3:
            claimed = world.claim(holder)
            if claimed is None:
                misses += 1
                continue
            world.finish(claimed)
            done.append(claimed.id)
        return done

    with ThreadPoolExecutor(6) as pool:
        done = [one for many in pool.map(work, [f"d{place}" for place in range(6)]) for one in many]
    assert len(done) == len(set(done)) == 24
    in_order(world)


@pytest.mark.parametrize("seed", range(3))
def test_no_order_of_acts_breaks_what_must_hold(world: World, seed: int) -> None:
    """Acts in random order, with leases that are current, lost, or ended long ago."""
    chance, database = random.Random(seed), world.server.database
    claims: list[Claim] = []
    for _ in range(150):
        act = chance.choice(
            ["queue", "claim", "claim", "finish", "lose", "release", "fail", "cancel"]
        )
        if act == "queue":
            queued(world, chance.choice(["contestant", "rival"]), cases=chance.choice([1, 3, 40]))
        elif act == "claim":
            claimed = world.claim(chance.choice(["one", "two"]), alone=chance.random() < 0.5)
            claims += [] if claimed is None else [claimed]
        elif claims:
            claimed = chance.choice(claims)
            try:
                if act == "finish":
                    world.finish(claimed)
                elif act == "cancel":
                    with database.writing(ACTOR) as transaction:
                        cancel(transaction, claimed.id)
                elif act == "lose":
                    with database.writing(ACTOR) as transaction:
                        lose(transaction, claimed.id, claimed.lease, beat_seen=None, progress=0)
                else:
                    with database.writing(ACTOR) as transaction:
                        if act == "release":
                            release(transaction, claimed)
                        else:
                            fail(transaction, claimed, "x", retry=chance.random() < 0.5)
            except FencedError:
                pass
    in_order(world)
    states = {row["id"]: row["state"] for row in world.rows(t.judging)}
    for judging, changes in state_events(world).items():
        befores, afters = [before for before, _ in changes], [after for _, after in changes]
        assert befores == [None, *afters[:-1]], "every change has one event, in order"
        assert afters[-1] == states[judging]


def test_events_of_a_transaction_that_failed_are_not_there(world: World) -> None:
    before = len(world.rows(t.event))

    def change_and_fail() -> None:
        with world.server.database.writing(ACTOR) as transaction:
            transaction.event("x.y", "z")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        change_and_fail()
    assert len(world.rows(t.event)) == before


def test_a_verdict_row_has_the_columns_of_the_table() -> None:
    assert {column.name for column in t.OF_VERDICT} == set(t.verdict.columns.keys()) - {"judging"}


def test_a_judging_that_a_living_process_works_on_is_left_alone_and_others_go_on(
    world: World,
) -> None:
    """A dispatcher that was stopped for longer than its lease still holds the directory."""
    client = world.client()
    for role in ("contestant", "rival"):
        made = client.post(
            "/v1/submissions?phase=open", headers={**world.headers(role), **LINES},
            content=typed_lines("trips"),
        )  # fmt: skip
        assert made.status_code == 202
    folder = world.server.folder
    dispatcher = Dispatcher(world.server.database, folder, DispatchOptions())
    dispatcher._environment = make_environment("image", ["engine 1"])
    first = dispatcher._claim()
    assert first is not None
    stopped = RunDirectory(folder.results(first.id))
    stopped.lock()
    with contextlib.ExitStack() as stack:
        scorers = Scorers(folder, stack, None, {"jobs": 1})
        dispatcher._do(scorers, first)
        dispatcher._running.clear()
        row = row_of(world, first.id)
        assert (row["state"], row["claims"]) == (JudgingState.QUEUED, 0)
        other = dispatcher._claim()
        assert other is not None
        assert other.id != first.id
        dispatcher._do(scorers, other)
        dispatcher._running.clear()
        assert row_of(world, other.id)["state"] == JudgingState.DONE
        assert dispatcher._claim() is None
        stopped.close()
        dispatcher._held.clear()  # as when its time is over
        again = dispatcher._claim()
        assert again is not None
        dispatcher._do(scorers, again)
    assert row_of(world, first.id)["state"] == JudgingState.DONE
    in_order(world)


def test_files_of_a_suite_are_looked_at_no_more_than_a_twentieth_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many files it has; what was changed meanwhile is noticed at the next check."""
    now, spent, looks = [100.0], [0.0], [0]
    clock = SimpleNamespace(monotonic=lambda: now[0], thread_time=lambda: spent[0])

    def slow_look(place: Path) -> str:
        spent[0] += 0.5
        looks[0] += 1
        return _signature(place)

    monkeypatch.setattr("judge.serve.queue.judging.time", clock)
    monkeypatch.setattr("judge.serve.queue.judging._signature", slow_look)
    (tmp_path / "gold").write_text("1")
    with contextlib.ExitStack() as stack:
        scorers = Scorers(DataFolder(tmp_path), stack, None, {})
        first = scorers._signature(tmp_path)
        (tmp_path / "gold").write_text("22")
        now[0] += 9.9
        assert scorers._signature(tmp_path) == first
        now[0] += 0.2
        assert scorers._signature(tmp_path) != first
    assert looks == [2]


@pytest.mark.parametrize("cancelled", [False, True])
def test_when_a_program_ended_is_seen_on_a_slow_clock_alone(
    small_world: World, monkeypatch: pytest.MonkeyPatch, cancelled: bool
) -> None:
    """Below ``verdicts`` nobody learns of an end before the tick, whichever route they use."""
    client, headers = small_world.client(), small_world.headers("contestant")
    made = client.post(
        "/v1/submissions?phase=secret", headers={**headers, **LINES}, content=typed_lines("bars")
    ).json()
    folder = small_world.server.folder
    dispatcher = Dispatcher(small_world.server.database, folder, DispatchOptions(end_tick_s=30.0))
    dispatcher._environment = make_environment("image", ["engine 1"])
    claimed = dispatcher._claim()
    assert claimed is not None
    begun = client.get(made["links"]["self"], headers=headers)
    monkeypatch.setattr("judge.serve.api.suites.END_TICK_S", 1e12)  # no tick while the test looks
    busy = client.get("/v1/status").json()
    client.post("/v1/submissions?phase=open", headers={**headers, **LINES}, content=typed_lines())
    events = len(small_world.rows(t.event))
    with contextlib.ExitStack() as stack:
        dispatcher._do(Scorers(folder, stack, None, {"jobs": 1}), claimed)
    assert (folder.results(claimed.id) / "report.json").exists()
    seen = client.get(made["links"]["self"], headers=headers)
    assert (seen.json(), seen.headers["etag"]) == (begun.json(), begun.headers["etag"])
    assert len(small_world.rows(t.event)) == events
    assert dispatcher._claim() is None, "the beginning of the team's next would tell"
    assert client.get("/v1/status").json() == busy
    if cancelled:
        asked = {**headers, "If-Match": seen.headers["etag"]}
        answer = client.post(f"{made['links']['self']}:cancel", headers=asked)
        assert answer.json()["state"] == "running"
        dispatcher._running[claimed.lease].cancelled = True  # as the next beat says

    waits = iter([False, True])
    monkeypatch.setattr(dispatcher._stopping, "wait", lambda _: next(waits))
    dispatcher._record_ends()
    state = client.get(made["links"]["self"], headers=headers).json()["state"]
    assert state == ("cancelled" if cancelled else "done")
    assert not dispatcher._running
    assert dispatcher._claim() is not None
    in_order(small_world)


def test_a_slot_outlives_whatever_the_database_does(
    small_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unexpected error at the end: the judging is tried again, and then fails."""
    queued(small_world, cases=1)
    dispatcher = Dispatcher(
        small_world.server.database, small_world.server.folder, DispatchOptions()
    )
    judged = Judged(
        verdicts_of(small_world.server.database, taken(small_world), "AC"), "0", {}, None
    )
    with small_world.server.database.writing(ACTOR) as transaction:
        transaction.execute(sa.update(t.account).values(concurrency=9))

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(dispatcher, "_finish", broken)
    return_leases(small_world.server.database, small_world.server.folder, "one")
    for place in range(RETRIES + 1):
        claimed = taken(small_world)
        dispatcher._running[claimed.lease] = _Running(claimed, CaseCounter())
        dispatcher._conclude(claimed, None, judged)
        expected = JudgingState.QUEUED if place < RETRIES else JudgingState.FAILED
        assert row_of(small_world, claimed.id)["state"] == expected
    in_order(small_world)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE, errno.EROFS])
def test_what_the_machine_lacks_is_not_a_fault_of_a_judging(
    small_world: World, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    judging = queued(small_world, cases=1)
    dispatcher = Dispatcher(
        small_world.server.database, small_world.server.folder, DispatchOptions()
    )
    monkeypatch.setattr(dispatcher._stopping, "wait", lambda _: True)
    for _ in range(10):
        claimed = taken(small_world)
        error = RuntimeError("deep inside")
        error.__cause__ = OSError(number, os.strerror(number))
        dispatcher._fail(claimed, error)
    row = row_of(small_world, judging)
    assert (row["state"], row["errors"]) == (JudgingState.QUEUED, 0)
    in_order(small_world)


def test_a_process_that_hangs_in_a_transaction_blocks_no_writer(
    world: World,
) -> None:
    """PostgreSQL rolls the transaction back and is told so; SQLite is used by a single process."""
    if world.server.database.is_sqlite:
        return
    judging = queued(world)
    url = world.server.database.url.render_as_string(hide_password=False)
    stopped = Database(url.replace("+psycopg", ""), idle_s=0.3)

    def claim_and_stand_still() -> None:
        with stopped.writing(ACTOR) as transaction:
            assert claim(transaction, "stopped", set(Lane), alone=True) is not None
            transaction.write_events()  # which takes the lock that every writer needs
            queued(world, "rival")

    with contextlib.closing(stopped), pytest.raises(DatabaseGoneError):
        claim_and_stand_still()
    with world.server.database.writing(ACTOR) as transaction:
        transaction.execute(sa.update(t.account).values(concurrency=9))
    assert {taken(world, "two").id, taken(world, "two").id} >= {judging}
    in_order(world)


def test_a_database_that_goes_away_while_its_notices_are_read_is_said_to_be_away(
    world: World,
) -> None:
    """Someone who waits for changes tries again, with another connection."""
    database = world.server.database
    if database.is_sqlite:
        return
    with contextlib.closing(database.changes()) as changes:
        assert changes.happened()
        with database.writing(ACTOR) as transaction:
            ended = transaction.execute(
                sa.text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND query LIKE 'LISTEN%'"
                )
            ).scalars()
            assert list(ended) == [True]

        def read_until_it_fails() -> None:
            for _ in range(100):  # the notice that it ends may come before the end itself
                changes.happened()
                time.sleep(0.01)

        with pytest.raises(DatabaseGoneError):
            read_until_it_fails()
        assert changes.happened()
