"""From a dispute to a new version of a board, on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from judge.serve.catalog import set_phase_state
from judge.serve.rejudging.service import advance
from judge.serve.store import tables as t
from judge.serve.store.tables import PhaseState, new_id
from tests.postgresql import new_database
from tests.serve_house import ACTOR, CELL, RIGHT, TASK, House, make_suite


@pytest.fixture(scope="module")
def small_suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_suite(tmp_path_factory.mktemp("suite"))


@pytest.fixture(params=["sqlite", "postgresql"])
def house(request: pytest.FixtureRequest, tmp_path: Path, small_suite: Path) -> Iterator[House]:
    url = request.getfixturevalue("postgresql_url") if request.param == "postgresql" else None
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
    versions = sa.select(t.board_version).order_by(t.board_version.c.number)
    with house.server.database.reading() as connection:
        first_version, second_version = connection.execute(versions).all()
    assert second_version.previous == first_version.sha256
    assert second_version.conditions != first_version.conditions
    why = second_version.why
    assert [row["account"] for row in diff["boards"][0]["entries"]] == ["one"]
    assert f"Case 1 of task {TASK} was corrected after a dispute by one" in why
    current = sa.select(t.judging.c.scores).join(
        t.submission, t.submission.c.current_judging == t.judging.c.id
    )
    for submission, hard in ((right, 1.0), (wrong, 0.5)):
        scores = house.scalar(current.where(t.submission.c.id == submission))
        assert scores["hard"] == pytest.approx(hard), scores


@pytest.mark.parametrize(
    ("scope", "work"),
    [
        ({"of": "all", "afresh": True}, {"copied": 0, "compared": 0, "run": 6}),
        ({"of": "all", "tasks": [TASK]}, {"copied": 3, "compared": 0, "run": 3}),
    ],
)
def test_verdicts_that_are_not_trusted_are_made_again(
    house: House, small_suite: Path, scope: dict[str, Any], work: dict[str, int]
) -> None:
    """A dispatcher recorded wrong verdicts: the conditions are equal, and nothing is copied."""
    submission = house.submit("one", small_suite, RIGHT)
    before = house.scalar(sa.select(t.submission.c.current_judging))
    cases = house.server.folder.results(before) / "cases.jsonl"
    cases.write_text(cases.read_text().replace('"WA"', '"AC"'))
    with house.server.database.writing(ACTOR) as transaction:
        transaction.execute(sa.update(t.verdict).values(verdict="AC"))
    body = {"suite": "small", "reason": "a broken dispatcher", "scope": scope}
    draft = house.call("author", "POST", "/rejudgings", **body).json()
    assert draft["cost"]["cases"] == work, draft
    house.call("author", "POST", f"/rejudgings/{draft['id']}:start")
    house.dispatch()
    assert advance(house.server) == 1
    diff = house.call("author", "GET", f"/rejudgings/{draft['id']}/diff").json()
    assert diff["transitions"] == {"AC → WA": 1}
    assert (diff["outside"], diff["verdicts"][0]["submission"]) == (1, submission)


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
