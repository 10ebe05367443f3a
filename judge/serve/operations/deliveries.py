"""Webhooks of accounts: their routes, and the loop that delivers them from the table of events.

A delivery is written as a row before it is sent, and is sent again until its receiver has answered.
So a crash loses no delivery, but a delivery can arrive twice, with the same ``webhook-id``. A body
has ids and states, but no verdicts or scores.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from judge.errors import UsageError
from judge.files.documents import dump_json
from judge.serve.access.accounts import Later
from judge.serve.access.rights import Viewer, find, require, visible_to
from judge.serve.api.limits import rate
from judge.serve.context import Caller, Server, ThisServer
from judge.serve.operations.sending import (
    MAX_URL_LENGTH,
    Message,
    Outcome,
    Sender,
    checked_url,
    delay_before,
    new_secret,
)
from judge.serve.problems import Problem
from judge.serve.queue.leases import lock_account
from judge.serve.store import tables as t
from judge.serve.store.database import Actor, Database, Transaction, all_rows, first_row
from judge.serve.store.tables import AccountState, Scope, Visibility, new_id

KINDS = ("submission.judged", "rejudging.applied", "dispute.decided", "board.changed")
"""Kinds of events for which webhooks are sent."""

HOSTS = "webhook_hosts"
"""Name of the setting with the hosts that the operator allows; none are allowed by default."""

MAX_WEBHOOKS = 10
"""How many webhooks an account may have."""

ACTIVE, OFF = "active", "off"
WAITING, DELIVERED, GIVEN_UP = "waiting", "delivered", "given-up"

_ACTOR = Actor("webhooks")
_EVENTS_AT_ONCE = 500  # per webhook and round, so that all webhooks get their turn
_LEASE_S = 120
"""Seconds until a delivery is tried again if its process was killed; longer than any attempt."""


@dataclass(frozen=True, slots=True)
class NewWebhook:
    """A webhook to be made.

    Attributes:
        account: id of the account.
        url: the address to send to, on an allowed host.
        kinds: kinds of events, from :data:`KINDS`.
    """

    account: str
    url: str
    kinds: Sequence[str]


def add_webhook(transaction: Transaction, new: NewWebhook) -> tuple[str, str]:
    """Makes a webhook for the events that happen from now on.

    Returns:
        Its id, and its secret, which is not shown again.

    Raises:
        UsageError: the URL or a kind is not valid.
        Problem: 409, the account has too many.
    """
    connection = transaction.connection
    checked_url(new.url, hosts_of(connection))
    if unknown := [kind for kind in new.kinds if kind not in KINDS]:
        raise UsageError(f"there is no kind {unknown[0]!r}; the kinds are {', '.join(KINDS)}")
    lock_account(transaction, new.account)
    count = connection.scalar(sa.select(sa.func.count()).where(t.webhook.c.account == new.account))
    if (count or 0) >= MAX_WEBHOOKS:
        raise Problem("conflict", f"An account has at most {MAX_WEBHOOKS} webhooks.")
    webhook, secret = new_id("whk"), new_secret()
    since = connection.scalar(sa.select(sa.func.max(t.event.c.seq))) or 0
    transaction.execute(
        sa.insert(t.webhook).values(
            id=webhook,
            account=new.account,
            url=new.url,
            secret=secret,
            kinds=sorted(set(new.kinds)),
            state=ACTIVE,
            since=since,
        )
    )
    transaction.event("webhook.added", webhook, after=ACTIVE, detail={"account": new.account})
    return webhook, secret


def rotate_secret(transaction: Transaction, webhook: str) -> str:
    """Gives a webhook a new secret; messages are signed with both, until the next change."""
    secret = new_secret()
    transaction.execute(
        sa.update(t.webhook)
        .where(t.webhook.c.id == webhook)
        .values(old_secret=t.webhook.c.secret, secret=secret, state=ACTIVE)
    )
    transaction.event("webhook.rotated", webhook, after=ACTIVE)
    return secret


def remove_webhook(transaction: Transaction, webhook: str) -> None:
    """Removes a webhook with its deliveries."""
    transaction.execute(sa.delete(t.delivery).where(t.delivery.c.webhook == webhook))
    transaction.execute(sa.delete(t.webhook).where(t.webhook.c.id == webhook))
    transaction.event("webhook.removed", webhook, before=ACTIVE)


def redeliver(transaction: Transaction, webhook: str, delivery: str) -> None:
    """Requests another attempt of a delivery, immediately.

    Raises:
        Problem: 404, the webhook has no such delivery.
    """
    changed = transaction.execute(
        sa.update(t.delivery)
        .where(t.delivery.c.id == delivery, t.delivery.c.webhook == webhook)
        .values(state=WAITING, next=t.Now(), tries=0)
    )
    if changed.rowcount != 1:
        raise Problem("not-found")


def hosts_of(connection: sa.Connection) -> list[str]:
    """The hosts that the operator allows."""
    value = connection.scalar(sa.select(t.setting.c.value).where(t.setting.c.name == HOSTS))
    return list(value or ())


def plan(database: Database) -> int:
    """Makes the deliveries of new events.

    Returns:
        How many were made.
    """
    with database.reading() as connection:
        last = connection.scalar(sa.select(sa.func.max(t.event.c.seq))) or 0
        behind = (
            sa.select(t.webhook.c.id)
            .join(t.account, t.account.c.id == t.webhook.c.account)
            .where(
                t.webhook.c.state == ACTIVE,
                t.webhook.c.since < last,
                t.account.c.state == AccountState.ACTIVE,
            )
        )
        webhooks = list(connection.scalars(behind))
    return sum(_plan(database, webhook) for webhook in webhooks)


def _plan(database: Database, webhook: str) -> int:
    with database.writing(_ACTOR) as transaction:
        row = transaction.one(
            sa.select(t.webhook)
            .where(t.webhook.c.id == webhook, t.webhook.c.state == ACTIVE)
            .with_for_update()
        )
        if row is None:
            return 0
        events = all_rows(
            transaction.connection,
            sa.select(t.event)
            .where(t.event.c.seq > row["since"])
            .order_by(t.event.c.seq)
            .limit(_EVENTS_AT_ONCE),
        )
        teams = _teams(transaction.connection, row["account"])
        relevant = [
            event
            for event in events
            if event["kind"] in row["kinds"] and _concerns(transaction.connection, event, teams)
        ]
        for event in relevant:
            transaction.execute(
                sa.insert(t.delivery).values(
                    id=new_id("dlv"),
                    webhook=webhook,
                    event=event["seq"],
                    next=t.Now(),
                    state=WAITING,
                )
            )
        if events:
            transaction.execute(
                sa.update(t.webhook)
                .where(t.webhook.c.id == webhook)
                .values(since=events[-1]["seq"])
            )
        return len(relevant)


def _teams(connection: sa.Connection, account: str) -> list[str]:
    teams = sa.select(t.membership.c.team).where(t.membership.c.person == account)
    return [account, *connection.scalars(teams)]


def _concerns(connection: sa.Connection, event: Mapping[str, Any], teams: list[str]) -> bool:
    """Whether an event is about an object of the account, or about a public board."""
    match event["kind"]:
        case "submission.judged":
            judging = (event["detail"] or {}).get("judging")
            query = (
                sa.select(sa.literal(1))
                .select_from(t.submission.join(t.judging, t.judging.c.id == judging))
                .where(
                    t.submission.c.id == event["object"],
                    t.submission.c.account.in_(teams),
                    t.judging.c.rejudging.is_(
                        None
                    ),  # a rejudging that is not applied concerns nobody
                )
            )
        case "dispute.decided":
            query = sa.select(sa.literal(1)).where(
                t.dispute.c.id == event["object"], t.dispute.c.account.in_(teams)
            )
        case "rejudging.applied":
            query = (
                sa.select(sa.literal(1))
                .select_from(
                    t.rejudging_member.join(
                        t.submission, t.submission.c.id == t.rejudging_member.c.submission
                    )
                )
                .where(
                    t.rejudging_member.c.rejudging == event["object"],
                    t.submission.c.account.in_(teams),
                )
            )
        case _:
            query = (
                sa.select(sa.literal(1))
                .select_from(t.board.join(t.suite, t.suite.c.id == t.board.c.suite))
                .where(
                    t.board.c.id == event["object"],
                    t.board.c.visibility != Visibility.HIDDEN,
                    t.suite.c.visibility != Visibility.HIDDEN,
                )
            )
    return first_row(connection, query) is not None


def deliver(database: Database, sender: Sender | None = None, limit: int = 20) -> int:
    """Tries the deliveries that are due.

    Args:
        database: the database.
        sender: the sender; None for one that sends to the hosts that the operator allows.
        limit: how many deliveries to try at most.

    Returns:
        How many were tried.
    """
    tried = 0
    while tried < limit and (taken := _take(database)) is not None:
        if sender is None:
            with database.reading() as connection:
                sender = Sender(hosts_of(connection))
        delivery, message = taken
        sent = sender.send(message, dt.datetime.now(dt.UTC))
        _record(database, delivery, sent.outcome, sent.status)
        tried += 1
    return tried


_DUE = (
    sa.select(t.delivery.c.id)
    .where(t.delivery.c.state == WAITING, t.delivery.c.next <= t.Now())
    .limit(1)
)


def something_waits(database: Database) -> bool:
    """Whether a delivery is due; the query locks nothing."""
    with database.reading() as connection:
        return connection.scalar(_DUE) is not None


def _take(database: Database) -> tuple[Mapping[str, Any], Message] | None:
    """Claims the delivery that has waited longest, so that no other process tries it as well."""
    with database.writing(_ACTOR) as transaction:
        delivery = transaction.one(
            sa.select(t.delivery)
            .join(t.webhook, t.webhook.c.id == t.delivery.c.webhook)
            .join(t.account, t.account.c.id == t.webhook.c.account)
            .where(
                t.delivery.c.state == WAITING,
                t.delivery.c.next <= t.Now(),
                t.webhook.c.state == ACTIVE,
                t.account.c.state == AccountState.ACTIVE,
            )
            .order_by(t.delivery.c.next, t.delivery.c.id)
            .with_for_update(skip_locked=True, of=t.delivery)
        )
        if delivery is None:
            return None
        transaction.execute(
            sa.update(t.delivery)
            .where(t.delivery.c.id == delivery["id"])
            .values(tries=t.delivery.c.tries + 1, next=Later(_LEASE_S))
        )
        webhook = transaction.one(sa.select(t.webhook).where(t.webhook.c.id == delivery["webhook"]))
        event = transaction.one(sa.select(t.event).where(t.event.c.seq == delivery["event"]))
    assert webhook is not None, "a foreign key guarantees it"
    assert event is not None, "a foreign key guarantees it"
    keys = [key for key in (webhook["secret"], webhook["old_secret"]) if key is not None]
    return {**delivery, "tries": delivery["tries"] + 1}, Message(
        delivery["id"], webhook["url"], body_of(event), keys
    )


def body_of(event: Mapping[str, Any]) -> str:
    """The body of a webhook about an event."""
    data = {"id": event["object"], "state": event["after"]}
    return dump_json({"type": event["kind"], "timestamp": event["created"], "data": data})


def _record(
    database: Database, delivery: Mapping[str, Any], outcome: Outcome, status: int | None
) -> None:
    values: dict[str, Any] = {"status": status}
    delay = delay_before(delivery["tries"], random.random)
    if outcome is Outcome.DELIVERED:
        values |= {"state": DELIVERED, "next": None}
    elif outcome is Outcome.GONE or delay is None:
        values |= {"state": GIVEN_UP, "next": None}
    else:
        values |= {"next": Later(round(delay))}
    with database.writing(_ACTOR) as transaction:
        transaction.execute(
            sa.update(t.delivery).where(t.delivery.c.id == delivery["id"]).values(values)
        )
        if outcome is Outcome.GONE:
            transaction.execute(
                sa.update(t.webhook).where(t.webhook.c.id == delivery["webhook"]).values(state=OFF)
            )
            transaction.event("webhook.switched-off", delivery["webhook"], before=ACTIVE, after=OFF)


router = APIRouter(tags=["webhooks"])

_Id = Annotated[str, Path(max_length=80)]
_SHOWN = (
    t.webhook.c.id,
    t.webhook.c.created,
    t.webhook.c.url,
    t.webhook.c.kinds,
    t.webhook.c.state,
)


class WebhookRequest(BaseModel):
    """The webhook to make."""

    model_config = ConfigDict(extra="forbid")

    url: Annotated[str, Field(min_length=9, max_length=MAX_URL_LENGTH)]
    kinds: Annotated[list[Annotated[str, Field(max_length=40)]], Field(min_length=1, max_length=8)]


class Redelivery(BaseModel):
    """The delivery to try again."""

    model_config = ConfigDict(extra="forbid")

    delivery: Annotated[str, Field(max_length=31, pattern=r"^[^\x00]*$")]


@router.get("/webhooks", dependencies=[rate("read")])
def get_webhooks(caller: Caller, server: ThisServer) -> dict[str, Any]:
    """The caller's own webhooks, without their secrets."""
    require(caller, Scope.READ)
    return {"webhooks": own_webhooks(server, caller), "kinds": list(KINDS)}


def own_webhooks(server: Server, viewer: Viewer) -> list[dict[str, Any]]:
    """The viewer's own webhooks."""
    with server.database.reading() as connection:
        return all_rows(
            connection,
            sa.select(*_SHOWN).where(visible_to(viewer, t.webhook)).order_by(t.webhook.c.id),
        )


@router.post("/webhooks", status_code=201, dependencies=[rate("change")])
def post_webhook(new: WebhookRequest, caller: Caller, server: ThisServer) -> dict[str, Any]:
    """Makes a webhook; its secret is shown only in this answer."""
    account = require(caller, Scope.READ)
    with server.database.writing(caller.actor()) as transaction:
        webhook, secret = add_webhook(transaction, NewWebhook(account, new.url, new.kinds))
    return {"id": webhook, "secret": secret, "kinds": sorted(set(new.kinds))}


@router.delete("/webhooks/{webhook}", status_code=204, dependencies=[rate("change")])
def delete_webhook(webhook: _Id, caller: Caller, server: ThisServer) -> None:
    """Removes a webhook with its deliveries."""
    require(caller, Scope.READ)
    with server.database.writing(caller.actor()) as transaction:
        find(transaction.connection, caller, t.webhook, webhook)
        remove_webhook(transaction, webhook)


@router.post("/webhooks/{webhook}:rotate", dependencies=[rate("change")])
def post_rotate(webhook: _Id, caller: Caller, server: ThisServer) -> dict[str, Any]:
    """Makes a new secret; until the next change, deliveries are signed with both."""
    require(caller, Scope.READ)
    with server.database.writing(caller.actor()) as transaction:
        find(transaction.connection, caller, t.webhook, webhook)
        return {"id": webhook, "secret": rotate_secret(transaction, webhook)}


@router.get("/webhooks/{webhook}/deliveries", dependencies=[rate("read")])
def get_deliveries(webhook: _Id, caller: Caller, server: ThisServer) -> dict[str, Any]:
    """The last 100 deliveries of a webhook, newest first."""
    require(caller, Scope.READ)
    return {"deliveries": own_deliveries(server, caller, webhook)}


def own_deliveries(server: Server, viewer: Viewer, webhook: str) -> list[dict[str, Any]]:
    """The last 100 deliveries of the viewer's own webhook.

    Raises:
        Problem: 404, the webhook is not theirs.
    """
    with server.database.reading() as connection:
        find(connection, viewer, t.webhook, webhook)
        return all_rows(
            connection,
            sa.select(
                t.delivery.c.id,
                t.delivery.c.created,
                t.event.c.kind,
                t.event.c.object,
                t.delivery.c.tries,
                t.delivery.c.next,
                t.delivery.c.status,
                t.delivery.c.state,
            )
            .join(t.event, t.event.c.seq == t.delivery.c.event)
            .where(t.delivery.c.webhook == webhook)
            .order_by(t.delivery.c.id.desc())
            .limit(100),
        )


@router.post("/webhooks/{webhook}:redeliver", dependencies=[rate("change")])
def post_redeliver(
    webhook: _Id, redelivery: Redelivery, caller: Caller, server: ThisServer
) -> dict[str, Any]:
    """Requests another attempt of a delivery, immediately."""
    require(caller, Scope.READ)
    with server.database.writing(caller.actor()) as transaction:
        find(transaction.connection, caller, t.webhook, webhook)
        redeliver(transaction, webhook, redelivery.delivery)
    return {"id": redelivery.delivery, "state": "waiting"}
