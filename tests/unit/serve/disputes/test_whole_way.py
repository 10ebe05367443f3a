"""From a dispute to a new version of a board, on SQLite and PostgreSQL."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from judge.serve.access.accounts import create_account, create_token
from judge.serve.app import make_app
from judge.serve.catalog import (
    NewPhase,
    NewSuite,
    add_phase,
    add_revision,
    current_conditions,
    name_role,
    set_phase_state,
)
from judge.serve.context import Server
from judge.serve.queue.conditions import ENVIRONMENT, make_environment, set_setting
from judge.serve.queue.judging import CaseCounter, Scorers, judge, work_of
from judge.serve.queue.leases import claim, enqueue, finish
from judge.serve.rejudging.service import advance
from judge.serve.store import tables as t
from judge.serve.store.database import Actor, Database, Transaction
from judge.serve.store.folder import DataFolder
from judge.serve.store.ids import new_id
from judge.serve.store.words import Kind, Lane, PhaseState, Scope, SuiteRole, Visibility
from tests.postgresql import new_database, running_postgresql

ACTOR = Actor("test")
SAMPLE = Path(__file__).parents[4] / "dataset" / "sample"
TASK, CELL, RIGHT = "1001", "G3", 4711
SCOPES = (Scope.READ, Scope.DISPUTE, Scope.REVIEW, Scope.AUTHOR)


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    with running_postgresql() as url:
        yield url


@pytest.fixture(scope="module")
def small_suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tasks of the sample suite."""
    import json  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("suite") / "small"
    tasks = json.loads((SAMPLE / "dataset.json").read_text())[:2]
    for task in tasks:
        shutil.copytree(SAMPLE / task["spreadsheet_path"], folder / task["spreadsheet_path"])
    (folder / "dataset.json").write_text(json.dumps(tasks))
    return folder


class FakeBoards:
    """Boards that count their versions."""

    def changes(
        self, _connection: sa.Connection, members: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        return [{"members": len(members)}]

    def new_version(self, transaction: Transaction, board: Mapping[str, Any], why: str) -> None:
        transaction.execute(
            sa.insert(t.board_version).values(
                board=board["id"], number=1, conditions=board["conditions"], document="{}",
                sha256="0" * 64, signature="", key_id="", why=why,
            )
        )  # fmt: skip


class House:
    """A server with a suite, a phase, a board and accounts with tokens."""

    def __init__(self, database: Database, folder: Path, suite: Path) -> None:
        self.server = Server(database, DataFolder(folder))
        self.server.folder.make()
        self.server.shared["boards"] = FakeBoards()
        self.client = TestClient(make_app(self.server))
        self.tokens: dict[str, str] = {}
        self.accounts: dict[str, str] = {}
        with database.writing(ACTOR) as transaction:
            for name in ("author", "first", "second", "one", "two"):
                self.accounts[name] = create_account(transaction, name)
                self.tokens[name] = create_token(transaction, self.accounts[name], "test", SCOPES)[
                    1
                ]
            set_setting(transaction, ENVIRONMENT, make_environment(None, []))
            new = NewSuite(
                "small", str(suite), self.accounts["author"], options={"recalc": "never"}
            )
            add_revision(self.server, transaction, new)
            for name in ("first", "second"):
                name_role(transaction, "small", self.accounts[name], SuiteRole.REVIEWER)
            transaction.execute(sa.update(t.suite).values(two_reviewers=True))
            self.phase = add_phase(transaction, NewPhase("spring", "small"))
            row = transaction.one(sa.select(t.phase))
            assert row is not None
            self.conditions = current_conditions(transaction, row)
            transaction.execute(
                sa.insert(t.board).values(
                    id=new_id("brd"), name="main", title="Main", suite=row["suite"],
                    phase=self.phase, conditions=self.conditions, metric="soft", rule="best",
                    visibility=Visibility.PUBLIC, columns=[],
                )
            )  # fmt: skip

    def call(self, who: str, method: str, path: str, **body: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.tokens[who]}"}
        return self.client.request(method, f"/v1{path}", headers=headers, json=body or None)

    def submit(self, who: str, suite: Path, value: int) -> str:
        """Finished workbooks: the golds, with one cell of one case changed; judged at once."""
        submission = new_id("sub")
        sha256 = hashlib.sha256(f"{who}{value}".encode()).hexdigest()
        outputs = self.server.folder.unpacked(sha256)
        outputs.mkdir(parents=True)
        for gold in suite.rglob("*_answer.xlsx"):
            shutil.copyfile(gold, outputs / gold.name.replace("_answer", "_output"))
        changed = outputs / f"1_{TASK}_output.xlsx"
        book = openpyxl.load_workbook(changed)
        book.worksheets[0][CELL] = value
        book.save(changed)
        account = self.accounts[who]
        with self.server.database.writing(ACTOR) as transaction:
            transaction.execute(
                sa.insert(t.submission).values(
                    id=submission, account=account, made_by=account, phase=self.phase,
                    kind=Kind.WORKBOOKS, sha256=sha256, bytes=1,
                )
            )  # fmt: skip
            judging = enqueue(
                transaction, submission=submission, account=account,
                conditions=str(self.conditions), cases=6,
            )  # fmt: skip
            transaction.execute(
                sa.update(t.submission)
                .where(t.submission.c.id == submission)
                .values(current_judging=judging)
            )
        self.dispatch()
        return submission

    def dispatch(self) -> int:
        """Judges all that waits, as a dispatcher does."""
        count = 0
        with contextlib.ExitStack() as stack:
            scorers = Scorers(self.server.folder, stack, None, {"jobs": 1})
            while True:
                with self.server.database.writing(ACTOR) as transaction:
                    taken = claim(transaction, "test", list(Lane), alone=True)
                if taken is None:
                    return count
                work = work_of(self.server.database, taken)
                judged = judge(self.server.folder, scorers, taken, work, lambda _: CaseCounter())
                with self.server.database.writing(ACTOR) as transaction:
                    finish(
                        transaction, taken, judged.verdicts,
                        report_sha256=judged.report_sha256, scores=judged.scores,
                    )  # fmt: skip
                count += 1

    def scalar(self, statement: sa.Select[Any]) -> Any:
        with self.server.database.reading() as connection:
            return connection.scalar(statement)


@pytest.fixture(params=["sqlite", "postgresql"])
def house(request: pytest.FixtureRequest, tmp_path: Path, small_suite: Path) -> Iterator[House]:
    url = request.getfixturevalue("postgresql") if request.param == "postgresql" else None
    with new_database(request.param, tmp_path, url) as database:
        yield House(database, tmp_path / "data", small_suite)


def dispute(house: House, who: str, submission: str, **more: Any) -> Any:
    body = {"task": TASK, "case": 1, "kind": "gold", "claim": f"{CELL} is {RIGHT}", **more}
    return house.call(who, "POST", "/disputes", submission=submission, **body)


FAULT = {
    "finding": "fault",
    "reason": "the question counts the returns",
    "evidence": f"the orders add up to {RIGHT}",
    "cells": {"1": f"{CELL}={RIGHT}"},
}


def test_from_a_dispute_to_a_new_version(house: House, small_suite: Path) -> None:
    right = house.submit("one", small_suite, RIGHT)
    wrong = house.submit("two", small_suite, 1)
    opened = dispute(house, "one", right)
    assert opened.status_code == 201, opened.text
    number = opened.json()["id"]
    house_of_suspects = house.call("first", "GET", "/review").json()["suspects"]
    assert [(row["task"], row["mine"]) for row in house_of_suspects] == [(TASK, None)]
    with house.server.database.writing(ACTOR) as transaction:
        set_phase_state(transaction, "spring", PhaseState.CLOSED)

    first = house.call("first", "POST", f"/disputes/{number}:decide", **FAULT)
    assert first.status_code == 200, first.text
    assert (first.json()["decided"], first.json()["rejudging"]) == (1, None)
    second = house.call("second", "POST", f"/disputes/{number}:decide", **FAULT)
    assert second.json()["state"] == "accepted", second.text
    rejudging = second.json()["rejudging"]
    assert second.json()["revision"] == 2

    draft = house.call("author", "GET", f"/rejudgings/{rejudging}").json()
    assert draft["cost"]["corrected"] == [[TASK, 1]]
    assert draft["cost"]["cases"] == {"copied": 10, "compared": 2, "run": 0}
    assert draft["disputes"] == [number]
    started = house.call("author", "POST", f"/rejudgings/{rejudging}:start")
    assert started.json()["state"] == "running"
    assert house.dispatch() == 2
    assert advance(house.server) == 1
    diff = house.call("author", "GET", f"/rejudgings/{rejudging}/diff").json()
    assert (diff["changed"], diff["outside"]) == (1, 0)
    assert diff["transitions"] == {"WA → AC": 1}
    assert diff["verdicts"][0]["submission"] == right
    assert diff["work"] == {"copied": 10, "compared": 2, "run": 0}

    refused = house.call("author", "POST", f"/rejudgings/{rejudging}:apply", changed=2)
    assert refused.status_code == 409
    applied = house.call("author", "POST", f"/rejudgings/{rejudging}:apply", changed=1)
    assert applied.json()["state"] == "applied", applied.text
    shown = house.call("two", "GET", f"/disputes/{number}").json()
    assert (shown["state"], shown["account"], shown["submission"]) == ("corrected", "one", None)
    assert str(RIGHT) not in str(shown["reason"])
    why = house.scalar(sa.select(t.board_version.c.why))
    assert f"Case 1 of task {TASK} is corrected, disputed by one" in why
    current = sa.select(t.judging.c.scores).join(
        t.submission, t.submission.c.current_judging == t.judging.c.id
    )
    for submission, hard in ((right, 1.0), (wrong, 0.5)):
        scores = house.scalar(current.where(t.submission.c.id == submission))
        assert scores["hard"] == pytest.approx(hard), scores


def test_reviewers_are_blind_to_each_other(house: House, small_suite: Path) -> None:
    number = dispute(house, "one", house.submit("one", small_suite, RIGHT)).json()["id"]
    house.call("first", "POST", f"/disputes/{number}:decide", finding="fine", reason="secret-word")
    for path in ("/review", f"/disputes/{number}", "/disputes"):
        answer = house.call("second", "GET", path)
        assert answer.status_code == 200
        assert "secret-word" not in answer.text
        assert "first" not in answer.text
    events = house.scalar(
        sa.select(sa.func.count()).where(
            sa.cast(t.event.c.detail, sa.Text).contains("fine")
            | sa.cast(t.event.c.detail, sa.Text).contains("secret-word")
        )
    )
    assert events == 0


def test_reviewers_who_disagree_decide_nothing(house: House, small_suite: Path) -> None:
    number = dispute(house, "one", house.submit("one", small_suite, RIGHT)).json()["id"]
    house.call("first", "POST", f"/disputes/{number}:decide", **FAULT)
    other = {**FAULT, "cells": {"1": f"{CELL}=12"}}
    conflict = house.call("second", "POST", f"/disputes/{number}:decide", **other).json()
    assert (conflict["state"], conflict["rejudging"]) == ("suspect", None)
    assert "different values" in conflict["note"]
    fine = {"finding": "fine", "reason": "the gold counts as the question says"}
    split = house.call("second", "POST", f"/disputes/{number}:decide", **fine).json()
    assert (split["state"], split["decided"]) == ("suspect", 2)
    agreed = house.call("first", "POST", f"/disputes/{number}:decide", **fine).json()
    assert agreed["state"] == "rejected"
    public = house.call("two", "GET", f"/disputes/{number}").json()
    assert (
        public["reason"]
        == (
            "the gold counts as the question says (second) / "
            "the gold counts as the question says (first)"
        )
        or "the gold counts as the question says" in public["reason"]
    )
    assert house.scalar(sa.select(sa.func.count()).select_from(t.rejudging)) == 0


def test_who_takes_part_does_not_review(house: House, small_suite: Path) -> None:
    number = dispute(house, "one", house.submit("one", small_suite, RIGHT)).json()["id"]
    house.submit("first", small_suite, 3)
    answer = house.call("first", "POST", f"/disputes/{number}:decide", finding="fine", reason="x")
    assert answer.status_code == 403
    outsider = house.call("two", "POST", f"/disputes/{number}:decide", finding="fine", reason="x")
    assert outsider.status_code == 404


def test_limits_of_disputes(house: House, small_suite: Path) -> None:
    submission = house.submit("one", small_suite, RIGHT)
    assert dispute(house, "one", submission).status_code == 201
    assert dispute(house, "one", submission).status_code == 409
    others = [(TASK, 2), (TASK, 3), ("1002", 1), ("1002", 2)]
    for task, case in others:
        assert dispute(house, "one", submission, task=task, case=case).status_code == 201
    assert dispute(house, "one", submission, task="1002", case=3).status_code == 429
    listed = house.call("one", "GET", "/disputes").json()["disputes"]
    assert len(listed) == 5
    assert house.call("one", "POST", f"/disputes/{listed[0]['id']}:withdraw").status_code == 200
    assert dispute(house, "one", submission, task="1002", case=3).status_code == 201
    assert house.call("two", "POST", f"/disputes/{listed[1]['id']}:withdraw").status_code == 404


def test_what_one_does_not_see_cannot_be_disputed(house: House, small_suite: Path) -> None:
    submission = house.submit("one", small_suite, RIGHT)
    assert dispute(house, "two", submission).status_code == 404
    assert dispute(house, "one", submission, task="1003").status_code == 404
    assert dispute(house, "one", new_id("sub")).status_code == 404
    with house.server.database.writing(ACTOR) as transaction:
        transaction.execute(sa.update(t.suite).values(levels={"public": "verdicts"}))
    assert dispute(house, "one", submission).status_code == 422
    assert dispute(house, "one", submission, kind="question").status_code == 201
    with house.server.database.writing(ACTOR) as transaction:
        transaction.execute(sa.update(t.suite).values(levels={"public": "score"}))
    assert dispute(house, "one", submission, case=2, kind="question").status_code == 404
