"""Many people act at the same time: two authors, teams, reviewers and a judge of one suite."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import sqlalchemy as sa

from judge.serve.catalog import name_role
from judge.serve.operations.upkeep import faults_of
from judge.serve.queue.leases import FencedError, lose
from judge.serve.rejudging.service import advance
from judge.serve.rejudging.states import OPEN
from judge.serve.store import tables as t
from judge.serve.store.tables import SuiteRole
from tests.unit.serve.spine.world import ACTOR, LINES, World, furnish, typed_lines

PEOPLE, ACTS = 6, 14


class Person:
    """A person who does one random thing after the other."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.client = world, world.client()
        self.chance = random.Random(seed)

    def act(self) -> None:
        """Performs as many actions as all people together."""
        acts: list[Callable[[], None]] = [
            self.submit, self.judge, self.judge, self.judge, self.leave, self.dispute,
            self.take_back, self.review, self.rejudge, self.move, self.apply, self.apply,
        ]  # fmt: skip
        for _ in range(ACTS):
            self.chance.choice(acts)()

    def ask(self, role: str, method: str, path: str, **sent: Any) -> None:
        headers = {**self.world.headers(role), **sent.pop("headers", {})}
        answer = self.client.request(method, f"/v1{path}", headers=headers, **sent)
        assert answer.status_code < 500, (method, path, answer.text)

    def one(self, table: sa.Table, *wanted: Any) -> dict[str, Any] | None:
        with self.world.server.database.reading() as connection:
            rows = connection.execute(sa.select(table).where(*wanted)).mappings().all()
        return dict(self.chance.choice(rows)) if rows else None

    def submit(self) -> None:
        role = self.chance.choice(["contestant", "rival"])
        body = typed_lines("trips", "bars")
        self.ask(role, "POST", "/submissions?phase=open", headers=LINES, content=body)

    def judge(self) -> None:
        taken = self.world.claim(f"judge-{self.chance.random()}")
        if taken is None:
            return
        try:
            if self.chance.random() < 0.2:
                with self.world.server.database.writing(ACTOR) as transaction:
                    lose(transaction, taken.id, taken.lease, beat_seen=None, progress=0)
            self.world.finish(taken, self.chance.choice(["AC", "WA"]))
        except FencedError:
            pass

    def leave(self) -> None:
        submission = self.one(t.submission)
        assert submission is not None
        role = next(r for r, one in self.world.accounts.items() if one == submission["account"])
        act = self.chance.choice(["cancel", "withdraw", "cancel"])
        self.ask(role, "POST", f"/submissions/{submission['id']}:{act}", headers={"If-Match": "*"})

    def dispute(self) -> None:
        role = self.chance.choice(["contestant", "rival"])
        body = {"suite": "open", "task": self.chance.choice(["trips", "bars"]), "claim": "wrong"}
        self.ask(role, "POST", "/disputes", json={**body, "kind": "question"})

    def take_back(self) -> None:
        dispute = self.one(t.dispute, t.dispute.c.suite == self.suite)
        assert dispute is not None
        role = next(r for r, one in self.world.accounts.items() if one == dispute["account"])
        self.ask(role, "POST", f"/disputes/{dispute['id']}:withdraw")

    def review(self) -> None:
        dispute = self.one(t.dispute, t.dispute.c.suite == self.suite)
        assert dispute is not None
        body = {"finding": "fine", "reason": "as asked"}
        self.ask("reviewer", "POST", f"/disputes/{dispute['id']}:decide", json=body)

    def rejudge(self) -> None:
        role = self.chance.choice(["author", "other"])
        self.ask(role, "POST", "/rejudgings", json={"suite": "open", "reason": "again"})

    def move(self) -> None:
        rejudging = self.one(
            t.rejudging, t.rejudging.c.suite == self.suite, t.rejudging.c.state.in_(OPEN)
        )
        if rejudging is None:
            return
        act = self.chance.choice(["start", "start", "start", "start", "retry", "cancel"])
        role = self.chance.choice(["author", "other"])
        self.ask(role, "POST", f"/rejudgings/{rejudging['id']}:{act}")
        advance(self.world.server)

    def apply(self) -> None:
        advance(self.world.server)
        rejudging = self.one(t.rejudging, t.rejudging.c.state == "ready")
        if rejudging is None:
            return
        body = {"changed": rejudging["diff"]["changed"]}
        role = self.chance.choice(["author", "other"])
        self.ask(role, "POST", f"/rejudgings/{rejudging['id']}:apply", json=body)

    @property
    def suite(self) -> str:
        """The suite on which all of them act."""
        suite = self.one(t.suite, t.suite.c.name == "open")
        assert suite is not None
        return str(suite["id"])


def test_whatever_people_do_at_once_everything_holds(world: World) -> None:
    furnish(world)
    with world.server.database.writing(ACTOR) as transaction:
        name_role(transaction, "open", world.accounts["other"], SuiteRole.AUTHOR)
    people = [Person(world, seed) for seed in range(PEOPLE)]
    with ThreadPoolExecutor(PEOPLE) as pool:
        for ended in [pool.submit(person.act) for person in people]:
            ended.result()
    assert faults_of(world.server.database, world.server.folder) == []
    states: dict[str, list[tuple[object, object]]] = {}
    for row in sorted(world.rows(t.event), key=lambda row: int(str(row["seq"]))):
        of = str(row["kind"]).partition(".")[0]
        if of in {"dispute", "rejudging", "judging"} and row["before"] != row["after"]:
            states.setdefault(str(row["object"]), []).append((row["before"], row["after"]))
    for name, changes in states.items():
        afters = [after for _, after in changes]
        assert [before for before, _ in changes][1:] == afters[:-1], (name, changes)
    gone = {row["id"] for row in world.rows(t.judging) if row["state"] == "cancelled"}
    for row in world.rows(t.submission):
        if row["counts"] is False:
            assert row["current_judging"] in gone, "its turn was given back, and it was judged"
