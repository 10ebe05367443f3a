"""``/admin`` for operators, and ``/me/webhooks`` for everybody."""

from __future__ import annotations

from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter, Path, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from judge.serve.access.accounts import account_named, change_account
from judge.serve.access.rights import Viewer, require_role
from judge.serve.context import Server, ThisServer
from judge.serve.operations.deliveries import (
    KINDS,
    Redelivery,
    WebhookRequest,
    delete_webhook,
    hosts_of,
    own_deliveries,
    own_webhooks,
    post_redeliver,
    post_rotate,
    post_webhook,
)
from judge.serve.pages.frame import Posted, SignedIn, field, redirect, render
from judge.serve.problems import Problem
from judge.serve.queue.conditions import set_setting
from judge.serve.queue.dispatcher import MAINTENANCE
from judge.serve.store import tables as t
from judge.serve.store.database import all_rows
from judge.serve.store.tables import AccountState, JudgingState, Role

router = APIRouter()

_Id = Annotated[str, Path(max_length=80)]
_MAX_LISTED = 200  # accounts, judgings and events on the page


@router.get("/admin")
def admin_page(request: Request, server: ThisServer, viewer: SignedIn) -> Response:
    """Accounts, dispatchers, failed judgings, maintenance, and the audit log."""
    require_role(viewer, Role.OPERATOR)
    with server.database.reading() as connection:
        accounts = all_rows(
            connection, sa.select(t.account).order_by(t.account.c.name).limit(_MAX_LISTED)
        )
        dispatchers = all_rows(connection, sa.select(t.dispatcher).order_by(t.dispatcher.c.name))
        failed = all_rows(
            connection,
            sa.select(t.judging.c.id, t.judging.c.submission, t.judging.c.finished)
            .add_columns(t.judging.c.errors, t.judging.c.reason)
            .where(t.judging.c.state == JudgingState.FAILED)
            .order_by(t.judging.c.id.desc())
            .limit(_MAX_LISTED),
        )
        events = all_rows(
            connection, sa.select(t.event).order_by(t.event.c.seq.desc()).limit(_MAX_LISTED)
        )
        named = sa.select(t.account.c.id, t.account.c.name)
        actors = {event["actor"] for event in events}
        names = dict(map(tuple, connection.execute(named.where(t.account.c.id.in_(actors)))))
        value = connection.scalar(
            sa.select(t.setting.c.value).where(t.setting.c.name == MAINTENANCE)
        )
    return render(
        request,
        viewer,
        "admin.html",
        "Admin",
        accounts=accounts,
        dispatchers=dispatchers,
        failed=failed,
        events=events,
        names=names,
        under_maintenance=value,
        states=[state.value for state in AccountState],
    )


@router.post("/admin/accounts/{account}")
async def account_posted(
    account: _Id, server: ThisServer, viewer: SignedIn, form: Posted
) -> Response:
    """Changes the state of an account."""
    require_role(viewer, Role.OPERATOR)
    state = field(form, "state", 20)
    if state not in set(AccountState):
        raise Problem("invalid", "There is no such state.")

    def act() -> None:
        with server.database.writing(viewer.actor()) as transaction:
            row = account_named(transaction.connection, account)
            change_account(transaction, row, state=AccountState(state), concurrency=None)

    await run_in_threadpool(act)
    return redirect(server, "/admin")


@router.post("/admin/maintenance")
async def maintenance_posted(server: ThisServer, viewer: SignedIn, form: Posted) -> Response:
    """Begins or ends maintenance."""
    require_role(viewer, Role.OPERATOR)
    message = field(form, "message", 300) or "Maintenance."
    begins = field(form, "state", 3) == "on"

    def act() -> None:
        with server.database.writing(viewer.actor()) as transaction:
            set_setting(transaction, MAINTENANCE, {"message": message} if begins else None)
            transaction.event("maintenance", MAINTENANCE, after="on" if begins else "off")

    await run_in_threadpool(act)
    return redirect(server, "/admin")


# -- the viewer's own webhooks --------------------------------------------------------------------


@router.get("/me/webhooks")
def webhooks_page(request: Request, server: ThisServer, viewer: SignedIn) -> Response:
    """The viewer's webhooks with their deliveries."""
    return _webhooks(request, server, viewer, None)


def _webhooks(
    request: Request, server: Server, viewer: Viewer, created: dict[str, Any] | None
) -> Response:
    rows = own_webhooks(server, viewer)
    with server.database.reading() as connection:
        hosts = hosts_of(connection)
    return render(
        request,
        viewer,
        "webhooks.html",
        "Webhooks",
        headers={"Cache-Control": "no-store"},
        webhooks=[(row, own_deliveries(server, viewer, row["id"])[:20]) for row in rows],
        kinds=KINDS,
        hosts=hosts,
        made=created,
    )


@router.post("/me/webhooks")
async def webhook_posted(
    request: Request, server: ThisServer, viewer: SignedIn, form: Posted
) -> Response:
    """Makes a webhook, and shows its secret once."""
    kinds = [kind for kind in KINDS if form.get(f"kind-{kind}")]
    try:
        new = WebhookRequest(url=field(form, "url", 500), kinds=kinds)
    except ValueError as error:
        raise Problem("invalid", "A webhook needs an address, and at least one kind.") from error
    created = await run_in_threadpool(post_webhook, new, viewer, server)
    return await run_in_threadpool(_webhooks, request, server, viewer, created)


@router.post("/me/webhooks/{webhook}/{action}")
async def webhook_action_posted(
    request: Request,
    webhook: _Id,
    action: _Id,
    server: ThisServer,
    viewer: SignedIn,
    form: Posted,
) -> Response:
    """Removes a webhook, gives it a new secret, or tries a delivery again."""
    created = None
    if action == "remove":
        await run_in_threadpool(delete_webhook, webhook, viewer, server)
    elif action == "rotate":
        created = await run_in_threadpool(post_rotate, webhook, viewer, server)
    elif action == "redeliver":
        redelivery = Redelivery(delivery=field(form, "delivery", 31))
        await run_in_threadpool(post_redeliver, webhook, redelivery, viewer, server)
    else:
        raise Problem("not-found")
    if created is not None:
        return await run_in_threadpool(_webhooks, request, server, viewer, created)
    return redirect(server, "/me/webhooks")
