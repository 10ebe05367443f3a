"""Each invariant of docs/serve.md, "The queue", with something that tries to break it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from judge.errors import StoreError
from judge.serve.boards.versions import NewBoard
from judge.serve.operations.upkeep import faults_of
from judge.serve.queue.leases import (
    Claim,
    FencedError,
    cancel,
    claim,
    end_cancelled,
    fail,
    finish,
    lose,
    release,
)
from judge.serve.store import tables as t
from judge.serve.store.tables import JudgingState, Lane
from tests.unit.serve.spine.test_queue import in_order, queued, row_of, taken
from tests.unit.serve.spine.world import ACTOR, LINES, World, state_events, typed_lines, verdicts_of

DIGEST = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


def verdict_of(case: int) -> t.VerdictRow:
    return t.VerdictRow(
        task="task", sample=0, case=case, verdict="AC", run_key=None, comparison_key=None,
        output_sha256=None, earned=None,
    )  # fmt: skip


def refused(world: World, claimed: Claim, rows: list[t.VerdictRow]) -> None:
    with pytest.raises(StoreError), world.server.database.writing(ACTOR) as transaction:
        finish(transaction, claimed, rows, report_sha256=DIGEST, scores={})


def change(world: World, statement: sa.Executable) -> None:
    with world.server.database.writing(ACTOR) as transaction:
        transaction.execute(statement)


def faults(world: World) -> str:
    return "\n".join(faults_of(world.server.database, world.server.folder))


def test_1_many_end_one_judging_at_once_and_one_of_them_does(world: World) -> None:
    """Every way to end a lease, by twelve threads that all hold the same lease."""
    queued(world)
    claimed = taken(world)
    ways: list[Callable[[Any], object]] = [
        lambda transaction: finish(
            transaction, claimed, verdicts_of(world.server.database, claimed, "AC"),
            report_sha256=DIGEST, scores={},
        ),
        lambda transaction: release(transaction, claimed),
        lambda transaction: fail(transaction, claimed, "x", retry=True),
        lambda transaction: end_cancelled(transaction, claimed),
    ]  # fmt: skip
    results = world.server.folder.results(claimed.id)
    results.mkdir()
    (results / "report.json").write_bytes(b"{}")

    def end(way: Callable[[Any], object]) -> bool:
        try:
            with world.server.database.writing(ACTOR) as transaction:
                way(transaction)
        except FencedError:
            return False
        return True

    with ThreadPoolExecutor(12) as pool:
        ended = list(pool.map(end, ways * 3))
    assert sum(ended) == 1
    changes = state_events(world)[claimed.id]
    assert [before for before, _ in changes] == [None, JudgingState.QUEUED, JudgingState.RUNNING]
    in_order(world)


def test_1_a_lease_that_was_given_again_is_another_one(world: World) -> None:
    """The same dispatcher gets the judging again; its first lease still writes nothing."""
    queued(world)
    first = taken(world)
    with world.server.database.writing(ACTOR) as transaction:
        assert lose(transaction, first.id, first.lease, beat_seen=None, progress=0)
    second = taken(world)
    with pytest.raises(FencedError):
        world.finish(first, "WA")
    with world.server.database.writing(ACTOR) as transaction:
        assert not lose(transaction, first.id, first.lease, beat_seen=None, progress=0)
    world.finish(second)
    assert {row["verdict"] for row in world.rows(t.verdict)} == {"AC"}
    in_order(world)


def test_2_a_judging_is_not_done_with_fewer_or_other_cases(world: World) -> None:
    queued(world)
    claimed = taken(world)
    rows = verdicts_of(world.server.database, claimed, "AC")
    refused(world, claimed, rows[:-1])
    refused(world, claimed, [*rows, verdict_of(99)])
    assert row_of(world, claimed.id)["state"] == JudgingState.RUNNING
    assert world.rows(t.verdict) == []
    world.finish(claimed)
    in_order(world)
    change(world, sa.delete(t.verdict).where(t.verdict.c.case == 2))
    assert "2 verdicts in place of 3" in faults(world)
    change(world, sa.update(t.judging).values(report_sha256=None))
    assert "done without a report" in faults(world)


def test_2_a_rejudging_has_the_cases_that_the_suite_has_now(world: World) -> None:
    """A revision with one more case: a rejudging counts the cases that it has judged."""
    queued(world)
    world.finish(taken(world))
    (submission,) = world.rows(t.submission)
    (judging,) = world.rows(t.judging)
    other = queued(world, cases=3)
    change(world, sa.insert(t.rejudging).values(
        id="rej_x", suite=world.rows(t.suite)[0]["id"], reason="x", scope={}, state="running",
        conditions=judging["conditions"], opened_by=world.accounts["author"],
    ))  # fmt: skip
    change(world, sa.update(t.judging).where(t.judging.c.id == other).values(rejudging="rej_x"))
    claimed = taken(world)
    results = world.server.folder.results(claimed.id)
    results.mkdir()
    (results / "report.json").write_bytes(b"{}")
    rows = [verdict_of(case) for case in range(1, 5)]
    with world.server.database.writing(ACTOR) as transaction:
        finish(transaction, claimed, rows, report_sha256=DIGEST, scores={})
    assert row_of(world, other)["cases"] == row_of(world, other)["done"] == 4
    assert world.rows(t.submission)[0]["current_judging"] == submission["current_judging"]
    in_order(world)


@pytest.mark.parametrize("way", ["finish", "fail", "cancel", "lose"])
def test_3_a_judging_that_is_not_applied_changes_nothing(world: World, way: str) -> None:
    """However the second judging of a submission ends, the first one counts."""
    first = queued(world)
    world.finish(taken(world))
    (submission,) = world.rows(t.submission)
    second = queued(world)
    extra = next(row for row in world.rows(t.submission) if row["id"] != submission["id"])
    change(
        world,
        sa.update(t.judging).where(t.judging.c.id == second).values(submission=submission["id"]),
    )
    change(world, sa.delete(t.submission).where(t.submission.c.id == extra["id"]))
    claimed = taken(world)
    if way == "finish":
        world.finish(claimed)
    else:
        with world.server.database.writing(ACTOR) as transaction:
            if way == "fail":
                fail(transaction, claimed, "x", retry=False)
            elif way == "cancel":
                cancel(transaction, second)
            else:
                lose(transaction, second, claimed.lease, beat_seen=None, progress=0)
    (row,) = world.rows(t.submission)
    assert row["current_judging"] == first
    in_order(world)
    if way == "fail":
        change(world, sa.update(t.submission).values(current_judging=second))
        assert "neither done nor the first one" in faults(world)


def test_4_counts_hold_under_many_at_once(world: World) -> None:
    """Claims, losses, cancellations and ends by eight threads; the counts are recomputed."""
    for place in range(24):
        queued(world, ("contestant", "rival")[place % 2])
    change(world, sa.update(t.account).values(concurrency=100))

    def work(number: int) -> None:
        for step in range(6):
            with world.server.database.writing(ACTOR) as transaction:
                claimed = claim(transaction, f"d{number}", set(Lane), alone=True)
            if claimed is None:
                continue
            way = (number + step) % 4
            try:
                with world.server.database.writing(ACTOR) as transaction:
                    if way == 0:
                        lose(transaction, claimed.id, claimed.lease, beat_seen=None, progress=1)
                    elif way == 1:
                        cancel(transaction, claimed.id)
                    elif way == 2:
                        release(transaction, claimed)
                if way == 3:
                    world.finish(claimed)
            except FencedError:
                pass

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    in_order(world)
    change(world, sa.update(t.account).values(waiting=t.account.c.waiting + 1))
    assert "waiting is" in faults(world)


def test_5_a_board_has_judgings_of_its_conditions_and_its_versions_are_a_chain(
    world: World,
) -> None:
    boards = world.server.shared["boards"]
    with world.server.database.writing(ACTOR) as transaction:
        boards.add(transaction, NewBoard("board", "open"))
    board = world.rows(t.board)[0]
    other = {**world.rows(t.conditions)[0], "digest": "c" * 64}
    change(world, sa.insert(t.conditions).values(**other))
    for conditions in ("c" * 64, board["conditions"]):
        queued(world, cases=1)
        world.finish(taken(world))
        change(
            world,
            sa.update(t.judging)
            .where(t.judging.c.id == world.rows(t.submission)[-1]["current_judging"])
            .values(conditions=conditions),
        )
        phase = sa.select(t.phase.c.id).where(t.phase.c.name == "open").scalar_subquery()
        change(world, sa.update(t.submission).values(phase=phase))
        with world.server.database.writing(ACTOR) as transaction:
            boards.renew(transaction, str(board["phase"]), "x")
    versions = world.rows(t.board_version)
    assert len(versions) == 2  # the judging of other conditions made none
    assert versions[1]["previous"] == versions[0]["sha256"]
    in_order(world)
    change(world, sa.update(t.judging).values(conditions="c" * 64))
    assert "was made under other conditions" in faults(world)
    for values in ({"document": "{}"}, {"previous": None}, {"sha256": "0" * 64}):
        with pytest.raises(sa.exc.IntegrityError):
            change(world, sa.update(t.board_version).values(**values))
    with pytest.raises(sa.exc.IntegrityError):
        change(world, sa.delete(t.board_version))


def test_6_the_log_only_grows(world: World) -> None:
    queued(world)
    before = world.rows(t.event)
    for statement in (
        sa.delete(t.event),
        sa.update(t.event).values(actor="somebody"),
        sa.update(t.event).values(after="done"),
    ):
        with pytest.raises(sa.exc.IntegrityError):
            change(world, statement)
    assert world.rows(t.event) == before
    change(world, sa.update(t.judging).values(state=JudgingState.CANCELLED))
    assert "its last event says queued" in faults(world)


def test_7_keys_and_quota_at_once(world: World) -> None:
    """Thirty requests with ten keys and a quota of four: four submissions with different keys."""
    change(world, sa.update(t.phase).values(per_day=4))
    client, headers = world.client(), {**world.headers("contestant"), **LINES}

    def send(place: int) -> tuple[int, str]:
        key = f"key {place % 10}"
        answer = client.post(
            "/v1/submissions?phase=open",
            headers={**headers, "Idempotency-Key": key},
            content=typed_lines(),
        )
        return answer.status_code, key

    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(send, range(30)))
    accepted = {key for status, key in answers if status == 202}
    assert len(accepted) == len(world.rows(t.submission)) == 4
    assert {status for status, key in answers if key not in accepted} == {429}
    assert sorted(str(row["key"]) for row in world.rows(t.idempotency)) == sorted(accepted)
    in_order(world)
