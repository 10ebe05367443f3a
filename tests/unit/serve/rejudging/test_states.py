"""The states of a rejudging, on SQLite and PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from judge.errors import UsageError
from judge.serve.problems import Problem
from judge.serve.rejudging import states
from judge.serve.rejudging.service import diff_of
from judge.serve.rejudging.states import ApplyRequest, Opening, Scope, ScopeKind
from judge.serve.store import tables as t
from judge.serve.store.database import Actor, Database, Transaction
from judge.serve.store.tables import (
    AccountKind,
    AccountState,
    DisputeState,
    JudgingState,
    Kind,
    Lane,
    RejudgingState,
    Visibility,
    new_id,
)
from tests.postgresql import new_database

ACTOR = Actor("test")
OLD, NEW = "0" * 64, "1" * 64


@pytest.fixture(params=["sqlite", "postgresql"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    url = request.getfixturevalue("postgresql_url") if request.param == "postgresql" else None
    with new_database(request.param, tmp_path, url) as database:
        yield World(database)


class World:
    """A suite with two revisions, a phase, a board, an author and two teams."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.author, self.one, self.two = (new_id("acc") for _ in range(3))
        self.suite, self.phase, self.board = new_id("sui"), new_id("pha"), new_id("brd")
        self.revisions = [new_id("rev"), new_id("rev")]
        self.versions: list[str] = []
        with database.writing(ACTOR) as transaction:
            self._make(transaction)

    def _make(self, transaction: Transaction) -> None:
        for name, account in (("author", self.author), ("one", self.one), ("two", self.two)):
            transaction.execute(
                sa.insert(t.account).values(
                    id=account,
                    name=name,
                    kind=AccountKind.TEAM,
                    state=AccountState.ACTIVE,
                    roles=[],
                )
            )
        transaction.execute(
            sa.insert(t.suite).values(
                id=self.suite, name="suite", title="Suite", owner=self.author, levels={},
                visibility=Visibility.PUBLIC, options={}, current_revision=self.revisions[0],
            )
        )  # fmt: skip
        for number, (revision, digest) in enumerate(zip(self.revisions, (OLD, NEW), strict=True)):
            transaction.execute(
                sa.insert(t.revision).values(
                    id=revision, suite=self.suite, number=number, digest=digest, folder=digest,
                    cases=2,
                )
            )  # fmt: skip
            transaction.execute(
                sa.insert(t.conditions).values(digest=digest, revision=revision, document={})
            )
        transaction.execute(
            sa.insert(t.phase).values(
                id=self.phase, name="open", suite=self.suite, split="public", per_day=5, in_total=9
            )
        )
        transaction.execute(
            sa.insert(t.board).values(
                id=self.board, name="main", title="Main", suite=self.suite, phase=self.phase,
                conditions=OLD, metric="soft", rule="best", visibility=Visibility.PUBLIC,
                columns=[],
            )
        )  # fmt: skip

    def submit(self, account: str, verdicts: str | None = "AC WA") -> str:
        """Makes a submission, which is judged unless its verdicts are None."""
        submission, judging = new_id("sub"), new_id("jdg")
        with self.database.writing(ACTOR) as transaction:
            transaction.execute(
                sa.insert(t.submission).values(
                    id=submission, account=account, made_by=account, phase=self.phase,
                    kind=Kind.PROGRAMS, sha256=OLD, bytes=1, current_judging=judging,
                )
            )  # fmt: skip
            transaction.execute(
                sa.insert(t.judging).values(
                    id=judging, submission=submission, account=account, conditions=OLD,
                    state=JudgingState.DONE, lane=Lane.NORMAL, cases=2, scores={"soft": 0.5},
                )
            )  # fmt: skip
            if verdicts is not None:
                self._judge(transaction, judging, verdicts, OLD)
        return submission

    def _judge(self, transaction: Transaction, judging: str, verdicts: str, key: str) -> None:
        for case, verdict in enumerate(verdicts.split(), 1):
            transaction.execute(
                sa.insert(t.verdict).values(
                    judging=judging, task="t1", sample=0, case=case, verdict=verdict,
                    run_key=OLD, comparison_key=key if case == 2 else OLD,
                )
            )  # fmt: skip

    def judge_members(self, rejudging: str, verdicts: str = "AC AC") -> int:
        """Finishes every waiting judging of a rejudging, as a dispatcher does."""
        with self.database.writing(ACTOR) as transaction:
            waiting = transaction.execute(
                sa.select(t.judging.c.id, t.judging.c.account).where(
                    t.judging.c.rejudging == rejudging, t.judging.c.state == JudgingState.QUEUED
                )
            ).all()
            for row in waiting:
                self._judge(transaction, row.id, verdicts, NEW)
                transaction.execute(
                    sa.update(t.judging)
                    .where(t.judging.c.id == row.id)
                    .values(state=JudgingState.DONE, scores={"soft": 1.0})
                )
                transaction.execute(
                    sa.update(t.account)
                    .where(t.account.c.id == row.account)
                    .values(waiting=t.account.c.waiting - 1)
                )
        return len(waiting)

    def opened(self, scope: Scope | None = None, **more: Any) -> str:
        opening = Opening(
            self.suite, NEW, scope or Scope(), "a gold was wrong", self.author, **more
        )
        with self.database.writing(ACTOR) as transaction:
            return states.open_rejudging(transaction, opening)

    def started(self) -> str:
        rejudging = self.opened()
        with self.database.writing(ACTOR) as transaction:
            states.start(transaction, rejudging)
        return rejudging

    def ready(self) -> str:
        rejudging = self.started()
        self.judge_members(rejudging)
        assert self.make_ready(rejudging)
        return rejudging

    def make_ready(self, rejudging: str) -> bool:
        with self.database.writing(ACTOR) as transaction:
            row = transaction.one(sa.select(t.rejudging).where(t.rejudging.c.id == rejudging))
            assert row is not None
            row["diff"] = {"cost": {"corrected": [["t1", 2]]}}
            diff = diff_of(transaction.connection, row, lambda *_: [])
            return states.make_ready(transaction, rejudging, diff, diff["members"])

    def diff(self) -> dict[str, Any]:
        with self.database.reading() as connection:
            return dict(connection.scalar(sa.select(t.rejudging.c.diff)) or {})

    def apply(self, rejudging: str, changed: int, *, other: bool = False) -> int:
        with self.database.writing(ACTOR) as transaction:
            return states.apply(
                transaction, rejudging, ApplyRequest(self.author, changed, other), self.new_version
            )

    def new_version(self, transaction: Transaction, row: Mapping[str, Any], why: str) -> None:
        number = row["latest"] + 1
        transaction.execute(
            sa.insert(t.board_version).values(
                board=row["id"], number=number, conditions=row["conditions"], document="{}",
                sha256=OLD, signature="", key_id="", why=why,
            )
        )  # fmt: skip
        transaction.execute(
            sa.update(t.board).where(t.board.c.id == row["id"]).values(latest=number)
        )

    def state(self) -> dict[str, Any]:
        """Returns everything that applying a rejudging changes."""
        with self.database.reading() as connection:
            return {
                "current": sorted(map(tuple, connection.execute(
                    sa.select(t.submission.c.id, t.submission.c.current_judging)
                ))),
                "boards": connection.execute(sa.select(t.board.c.conditions)).scalars().all(),
                "versions": connection.execute(sa.select(t.board_version.c.number)).scalars().all(),
                "revision": connection.scalar(sa.select(t.suite.c.current_revision)),
                "rejudgings": connection.execute(sa.select(t.rejudging.c.state)).scalars().all(),
                "applied": connection.scalar(
                    sa.select(sa.func.count()).where(t.event.c.kind == "rejudging.applied")
                ),
            }  # fmt: skip


def test_everything_changes_when_it_is_applied_and_nothing_before(world: World) -> None:
    submissions = [world.submit(world.one), world.submit(world.two, "AC AC")]
    before = world.state()
    rejudging = world.ready()
    ready = world.state()
    assert {**ready, "rejudgings": []} == {**before, "rejudgings": []}
    diff = world.diff()
    assert (diff["changed"], diff["outside"]) == (1, 0)
    assert diff["transitions"] == {"WA → AC": 1}
    assert diff["work"] == {"copied": 2, "compared": 2, "run": 0}
    assert diff["verdicts"][0]["submission"] == submissions[0]
    assert world.apply(rejudging, 1) == 0
    after = world.state()
    assert after["boards"] == [NEW]
    assert (after["versions"], after["revision"]) == ([1], world.revisions[1])
    assert (after["rejudgings"], after["applied"]) == ([RejudgingState.APPLIED], 1)
    assert {judging for _, judging in after["current"]}.isdisjoint(
        judging for _, judging in before["current"]
    )


def test_a_change_outside_the_correction_comes_first(world: World) -> None:
    world.submit(world.one, "WA WA")
    rejudging = world.started()
    world.judge_members(rejudging, "AC AC")
    assert world.make_ready(rejudging)
    diff = world.diff()
    assert [(row["case"], row["outside"]) for row in diff["verdicts"]] == [(1, True), (2, False)]
    assert (diff["changed"], diff["outside"]) == (2, 1)


def test_one_of_a_suite_is_open_at_a_time(world: World) -> None:
    rejudging = world.opened()
    with pytest.raises(Problem) as problem:
        world.opened()
    assert problem.value.kind.status == 409
    with world.database.writing(ACTOR) as transaction:
        states.cancel(transaction, rejudging, world.author)
    world.opened()


def test_it_is_not_ready_while_a_member_is_not_judged(world: World) -> None:
    world.submit(world.one)
    rejudging = world.started()
    assert not world.make_ready(rejudging)
    with pytest.raises(Problem):
        world.apply(rejudging, 0)


def test_what_came_in_meanwhile_is_judged_before_it_is_applied(world: World) -> None:
    world.submit(world.one)
    rejudging = world.ready()
    late = world.submit(world.two)
    before = world.state()
    assert world.apply(rejudging, 1) == 1
    assert world.state() == {**before, "rejudgings": [RejudgingState.RUNNING]}
    assert world.judge_members(rejudging) == 1
    assert world.make_ready(rejudging)
    assert world.apply(rejudging, 2) == 0
    with world.database.reading() as connection:
        members = connection.execute(sa.select(t.rejudging_member.c.submission)).scalars().all()
    assert late in members


def test_the_number_of_changed_verdicts_has_to_be_typed(world: World) -> None:
    world.submit(world.one)
    rejudging = world.ready()
    before = world.state()
    with pytest.raises(Problem):
        world.apply(rejudging, 2)
    with pytest.raises(Problem):
        world.apply(rejudging, 1, other=True)
    assert world.state() == before


def test_cancelling_changes_nothing_and_keeps_the_judgings(world: World) -> None:
    world.submit(world.one)
    world.submit(world.two)
    before = world.state()
    rejudging = world.started()
    with world.database.writing(ACTOR) as transaction:
        states.cancel(transaction, rejudging, world.author)
    after = world.state()
    assert after == {**before, "rejudgings": [RejudgingState.CANCELLED]}
    with world.database.reading() as connection:
        assert connection.scalar(sa.select(sa.func.sum(t.account.c.waiting))) == 0
        judgings = connection.execute(
            sa.select(t.judging.c.state).where(t.judging.c.rejudging == rejudging)
        ).scalars()
        assert set(judgings) == {JudgingState.CANCELLED}
    with pytest.raises(Problem), world.database.writing(ACTOR) as transaction:
        states.start(transaction, rejudging)


@pytest.mark.parametrize("place", range(8))
def test_a_kill_while_it_is_applied_leaves_all_or_nothing(world: World, place: int) -> None:
    """The process ends before one of the statements, or before the commit, without clean-up."""
    world.submit(world.one)
    world.submit(world.two)
    rejudging = world.ready()
    before = world.state()
    url = world.database.url.render_as_string(hide_password=False)
    world.database.close()
    child = os.fork()
    if child == 0:
        try:
            own = World.__new__(World)
            own.database, own.author = Database(url.replace("+psycopg", "")), world.author
            _die_before(own.database, place)
            own.apply(rejudging, 2)
        finally:
            os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert world.state() == before
    assert world.apply(rejudging, 2) == 0


def _die_before(database: Database, place: int) -> None:
    """Ends the process before the nth writing statement, or before the commit."""
    writes = 0

    def on_statement(_conn: object, _cursor: object, statement: str, *_: object) -> None:
        nonlocal writes
        if statement.startswith(("UPDATE", "INSERT")):
            if writes == place:
                os._exit(9)
            writes += 1

    sa.event.listen(database._engine, "before_cursor_execute", on_statement)
    sa.event.listen(database._engine, "commit", lambda _: os._exit(9))


def test_what_was_cancelled_or_withdrawn_meanwhile_does_not_come_back(world: World) -> None:
    """A submission whose turn was given back is not judged because of a rejudging.

    One that the judge could judge neither before nor now keeps nobody waiting either.
    """
    kept, cancelled, withdrawn, hopeless = (world.submit(world.one) for _ in range(4))
    rejudging = world.started()
    with world.database.writing(ACTOR) as transaction:
        of_hopeless = sa.update(t.judging).where(t.judging.c.submission == hopeless)
        transaction.execute(of_hopeless.values(state=JudgingState.FAILED))
        first = sa.select(t.submission.c.current_judging).where(t.submission.c.id == cancelled)
        transaction.execute(
            sa.update(t.judging)
            .where(t.judging.c.id == first.scalar_subquery())
            .values(state=JudgingState.CANCELLED)
        )
        transaction.execute(
            sa.update(t.submission).where(t.submission.c.id == withdrawn).values(withdrawn=t.Now())
        )
        of_withdrawn = sa.and_(
            t.judging.c.submission == withdrawn, t.judging.c.rejudging == rejudging
        )
        transaction.execute(
            sa.update(t.judging).where(of_withdrawn).values(state=JudgingState.FAILED)
        )
    before = dict(world.state()["current"])
    world.judge_members(rejudging)
    assert world.make_ready(rejudging), "one that was withdrawn need not be judged"
    assert world.apply(rejudging, world.diff()["changed"]) == 0
    after = dict(world.state()["current"])
    assert after[kept] != before[kept]
    assert (after[cancelled], after[hopeless]) == (before[cancelled], before[hopeless])


def test_only_a_whole_suite_moves_to_other_conditions(world: World) -> None:
    submission = world.submit(world.one)
    with pytest.raises(Problem) as problem:
        world.opened(Scope(ScopeKind.SUBMISSIONS, (submission,)))
    assert problem.value.kind.status == 422
    with pytest.raises(UsageError):
        Scope(ScopeKind.SUBMISSIONS)
    with pytest.raises(UsageError):
        Scope(ScopeKind.ALL, (submission,))


def test_disputes_are_corrected_when_it_is_applied(world: World) -> None:
    submission, dispute = world.submit(world.one), new_id("dis")
    with world.database.writing(ACTOR) as transaction:
        transaction.execute(
            sa.insert(t.dispute).values(
                id=dispute, suite=world.suite, account=world.one, submission=submission, task="t1",
                case=2, kind="gold", claim="…", state=DisputeState.ACCEPTED,
            )
        )  # fmt: skip
    rejudging = world.opened(disputes=[dispute])
    with world.database.writing(ACTOR) as transaction:
        states.start(transaction, rejudging)
    world.judge_members(rejudging)
    assert world.make_ready(rejudging)
    world.apply(rejudging, 1)
    with world.database.reading() as connection:
        assert connection.scalar(sa.select(t.dispute.c.state)) == DisputeState.CORRECTED
        kinds = connection.execute(sa.select(t.event.c.kind).where(t.event.c.object == dispute))
        assert "dispute.corrected" in kinds.scalars().all()


def test_a_failed_member_is_tried_again_and_keeps_it_from_being_ready(world: World) -> None:
    world.submit(world.one)
    rejudging = world.started()
    with world.database.writing(ACTOR) as transaction:
        transaction.execute(
            sa.update(t.judging)
            .where(t.judging.c.rejudging == rejudging)
            .values(state=JudgingState.FAILED)
        )
    assert not world.make_ready(rejudging)
    with world.database.writing(ACTOR) as transaction:
        assert states.retry_failed(transaction, rejudging) == 1
    world.judge_members(rejudging)
    assert world.make_ready(rejudging)


def test_rejudging_takes_nobodys_turn_but_that_of_who_opened_it(world: World) -> None:
    world.submit(world.one)
    world.started()
    with world.database.reading() as connection:
        rows = connection.execute(sa.select(t.account.c.name, t.account.c.waiting)).all()
    assert {row.name: row.waiting for row in rows} == {"author": 1, "one": 0, "two": 0}
