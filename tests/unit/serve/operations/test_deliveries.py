"""Deliveries of webhooks: planned from events, sent until they are answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
import sqlalchemy as sa

from judge.errors import UsageError
from judge.serve.access.accounts import create_account
from judge.serve.operations.deliveries import (
    HOSTS,
    NewWebhook,
    add_webhook,
    deliver,
    plan,
    redeliver,
    rotate_secret,
)
from judge.serve.operations.sending import DeliveryResult, Message, Outcome, Sender
from judge.serve.queue.conditions import set_setting
from judge.serve.store import tables as t
from judge.serve.store.database import Actor, Database, Transaction
from judge.serve.store.tables import new_id
from tests.postgresql import new_database

ACTOR = Actor("test")
URL = "https://hooks.example.org/"


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    url = request.getfixturevalue("postgresql_url") if request.param == "postgresql" else None
    with new_database(request.param, tmp_path, url) as opened:
        with opened.writing(ACTOR) as transaction:
            set_setting(transaction, HOSTS, ["hooks.example.org"])
        yield opened


@dataclass
class Answers:
    """A sender that answers as a test says."""

    outcomes: list[Outcome]
    sent: list[Message] = field(default_factory=list)

    def send(self, message: Message, _at: object) -> DeliveryResult:
        self.sent.append(message)
        return DeliveryResult(self.outcomes.pop(0), 500)

    def as_sender(self) -> Sender:
        return cast(Sender, self)


def account_with_webhook(database: Database, name: str) -> tuple[str, str]:
    with database.writing(ACTOR) as transaction:
        account = create_account(transaction, name)
        webhook, _ = add_webhook(transaction, NewWebhook(account, URL, ["dispute.decided"]))
    return account, webhook


def decided(transaction: Transaction, account: str) -> str:
    """An event about a dispute of an account."""
    suite, dispute = new_id("sui"), new_id("dis")
    transaction.execute(
        sa.insert(t.suite).values(
            id=suite, name=suite, title="", owner=account, visibility="public", levels={},
            options={},
        )
    )  # fmt: skip
    transaction.execute(
        sa.insert(t.dispute).values(
            id=dispute, suite=suite, account=account, task="1", case=1, kind="gold",
            claim="secret-claim", state="rejected",
        )
    )  # fmt: skip
    transaction.event("dispute.decided", dispute, before="suspect", after="rejected")
    return dispute


def rows(database: Database, *columns: Any) -> list[tuple[Any, ...]]:
    with database.reading() as connection:
        return [tuple(row) for row in connection.execute(sa.select(*columns))]


def test_only_the_people_concerned_are_notified(database: Database) -> None:
    one, webhook = account_with_webhook(database, "one")
    account_with_webhook(database, "two")
    with database.writing(ACTOR) as transaction:
        dispute = decided(transaction, one)
    assert (plan(database), plan(database)) == (1, 0)
    answers = Answers([Outcome.DELIVERED])
    assert deliver(database, answers.as_sender()) == 1
    assert deliver(database, answers.as_sender()) == 0
    (message,) = answers.sent
    assert json.loads(message.body)["data"] == {"id": dispute, "state": "rejected"}
    assert "secret-claim" not in message.body
    assert rows(database, t.delivery.c.webhook, t.delivery.c.state) == [(webhook, "delivered")]


def test_a_blocked_account_is_not_notified(database: Database) -> None:
    one, _ = account_with_webhook(database, "one")
    with database.writing(ACTOR) as transaction:
        decided(transaction, one)
    assert plan(database) == 1

    def set_state(state: str) -> None:
        with database.writing(ACTOR) as transaction:
            transaction.execute(sa.update(t.account).values(state=state))

    set_state("blocked")
    with database.writing(ACTOR) as transaction:
        transaction.event("dispute.decided", "dis_none")
    assert (plan(database), deliver(database, Answers([]).as_sender())) == (0, 0)
    set_state("active")
    assert deliver(database, Answers([Outcome.DELIVERED]).as_sender()) == 1


def test_it_is_tried_again_with_the_same_id_and_given_up_in_the_end(database: Database) -> None:
    one, _ = account_with_webhook(database, "one")
    with database.writing(ACTOR) as transaction:
        decided(transaction, one)
    plan(database)
    answers = Answers([Outcome.FAILED] * 9)
    for _ in range(8):
        with database.writing(ACTOR) as transaction:
            transaction.execute(sa.update(t.delivery).values(next=t.Now()))
        assert deliver(database, answers.as_sender()) == 1
    assert len({message.id for message in answers.sent}) == 1
    assert rows(database, t.delivery.c.tries, t.delivery.c.state) == [(8, "given-up")]
    with database.writing(ACTOR) as transaction:
        transaction.execute(sa.update(t.delivery).values(next=t.Now()))
    assert deliver(database, answers.as_sender()) == 0


def test_a_try_that_was_killed_is_made_again(database: Database) -> None:
    one, _ = account_with_webhook(database, "one")
    with database.writing(ACTOR) as transaction:
        decided(transaction, one)
    plan(database)

    class Killed(Answers):
        def send(self, message: Message, _at: object) -> DeliveryResult:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        deliver(database, Killed([]).as_sender())
    answers = Answers([Outcome.DELIVERED])
    assert deliver(database, answers.as_sender()) == 0  # the other process may still be sending
    with database.writing(ACTOR) as transaction:
        transaction.execute(sa.update(t.delivery).values(next=t.Now()))
    assert deliver(database, answers.as_sender()) == 1


def test_a_webhook_that_is_gone_is_switched_off(database: Database) -> None:
    one, webhook = account_with_webhook(database, "one")
    with database.writing(ACTOR) as transaction:
        decided(transaction, one)
    plan(database)
    deliver(database, Answers([Outcome.GONE]).as_sender())
    assert rows(database, t.webhook.c.state) == [("off",)]
    with database.writing(ACTOR) as transaction:
        decided(transaction, one)
    assert plan(database) == 0
    with database.writing(ACTOR) as transaction:
        secret = rotate_secret(transaction, webhook)
        delivery = transaction.connection.scalar(sa.select(t.delivery.c.id))
        redeliver(transaction, webhook, str(delivery))
    answers = Answers([Outcome.DELIVERED])
    assert deliver(database, answers.as_sender()) == 1
    assert answers.sent[0].secrets[0] == secret
    assert len(answers.sent[0].secrets) == 2


def test_hosts_are_off_until_the_operator_allows_them(database: Database) -> None:
    with database.writing(ACTOR) as transaction:
        set_setting(transaction, HOSTS, [])
        account = create_account(transaction, "one")
    with pytest.raises(UsageError, match="not allowed"), database.writing(ACTOR) as transaction:
        add_webhook(transaction, NewWebhook(account, URL, ["dispute.decided"]))
