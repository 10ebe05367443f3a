"""``/v1/webhooks``: an account's webhooks, their deliveries, and repeated tries."""

from __future__ import annotations

from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from judge.serve.access.rights import Viewer, find, require, visible_to
from judge.serve.api.limits import rate
from judge.serve.context import Caller, Server, ThisServer
from judge.serve.operations.deliveries import (
    KINDS,
    NewWebhook,
    add_webhook,
    redeliver,
    remove_webhook,
    rotate_secret,
)
from judge.serve.operations.sending import MAX_URL_LENGTH
from judge.serve.store import tables as t
from judge.serve.store.database import all_rows
from judge.serve.store.words import Scope

router = APIRouter(tags=["webhooks"])

_Id = Annotated[str, Path(max_length=80)]
_SHOWN = (
    t.webhook.c.id,
    t.webhook.c.created,
    t.webhook.c.url,
    t.webhook.c.kinds,
    t.webhook.c.state,
)


class AskedWebhook(BaseModel):
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
def post_webhook(new: AskedWebhook, caller: Caller, server: ThisServer) -> dict[str, Any]:
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
    """Requests another try of a delivery, immediately."""
    require(caller, Scope.READ)
    with server.database.writing(caller.actor()) as transaction:
        find(transaction.connection, caller, t.webhook, webhook)
        redeliver(transaction, webhook, redelivery.delivery)
    return {"id": redelivery.delivery, "state": "waiting"}
