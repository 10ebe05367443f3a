"""``/v1/me`` and ``/v1/tokens``: the caller's account and tokens."""

from __future__ import annotations

from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from judge.serve.access.accounts import TOKEN_DAYS, create_token, revoke_token
from judge.serve.access.rights import Viewer, find, phase_state, require, visible_to
from judge.serve.api.limits import rate
from judge.serve.context import Caller, ThisServer
from judge.serve.intake import quota_left
from judge.serve.problems import Problem
from judge.serve.queue.leases import lock_account
from judge.serve.store import tables as t
from judge.serve.store.database import all_rows
from judge.serve.store.tables import PhaseState, Scope

router = APIRouter(tags=["account"])

MAX_TOKENS = 100
"""How many valid tokens an account may have at a time."""


class NewToken(BaseModel):
    """The token to make."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[ -~]+$")]
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=6)]
    days: Annotated[int, Field(ge=1, le=366)] = TOKEN_DAYS


@router.get("/me", dependencies=[rate("read")])
def me(caller: Caller, server: ThisServer) -> dict[str, Any]:
    """The caller's account, teams and rights, and what is left of their quotas."""
    require(caller, Scope.READ)
    with server.database.reading() as connection:
        teams = all_rows(
            connection,
            sa.select(t.account.c.id, t.account.c.name, t.account.c.kind)
            .where(t.account.c.id.in_(caller.teams))
            .order_by(t.account.c.name),
        )
        phases = open_phases(connection, caller)
    return {
        "account": caller.account,
        "name": caller.name,
        "roles": sorted(caller.roles),
        "scopes": sorted(caller.scopes),
        "teams": teams,
        "quotas": phases,
    }


def open_phases(connection: sa.Connection, viewer: Viewer) -> list[dict[str, Any]]:
    """The phases that the viewer can submit to now, with what is left of each team's quota.

    Members of teams submit for their teams, not for themselves.
    """
    now = str(connection.scalar(sa.select(t.Now())))
    teams = sorted(viewer.teams - {str(viewer.account)}) or [str(viewer.account)]
    phases = all_rows(
        connection,
        sa.select(t.phase, t.suite.c.name.label("of"))
        .join(t.suite, t.suite.c.id == t.phase.c.suite)
        .where(visible_to(viewer, t.phase))
        .order_by(t.phase.c.name),
    )
    return [
        {
            "phase": phase["name"],
            "suite": phase["of"],
            "closes": phase["closes"],
            "left": {team: quota_left(connection, phase, team) for team in teams},
        }
        for phase in phases
        if phase_state(phase, now) is PhaseState.OPEN
    ]


@router.get("/tokens", dependencies=[rate("read")])
def list_tokens(caller: Caller, server: ThisServer) -> dict[str, Any]:
    """The caller's own tokens, without their secrets."""
    require(caller, Scope.READ)
    with server.database.reading() as connection:
        tokens = all_rows(
            connection,
            sa.select(
                t.token.c.id,
                t.token.c.name,
                t.token.c.prefix,
                t.token.c.scopes,
                t.token.c.created,
                t.token.c.expires,
                t.token.c.revoked,
                t.token.c.last_used,
                t.token.c.maker,
                (t.token.c.expires <= t.Now()).label("expired"),
            )
            .where(visible_to(caller, t.token))
            .order_by(t.token.c.id),
        )
    return {"tokens": tokens}


@router.post("/tokens", status_code=201, dependencies=[rate("change")])
def make_token(token: NewToken, caller: Caller, server: ThisServer) -> dict[str, Any]:
    """Makes a token for the caller's account; its text is shown only in this answer.

    If it is made with a token, it ends no later than that token.
    """
    account = require(caller, token.scopes[0])
    if not caller.scopes.issuperset(token.scopes):
        raise Problem("forbidden", "A token cannot give a new token a scope that it lacks.")
    with server.database.writing(caller.actor()) as transaction:
        lock_account(transaction, account)
        valid = sa.and_(
            t.token.c.account == account, t.token.c.revoked.is_(None), t.token.c.expires > t.Now()
        )
        tokens = set(transaction.execute(sa.select(t.token.c.id).where(valid)).scalars())
        if caller.uses_token and caller.credential not in tokens:
            raise Problem("unauthorized")  # it was revoked since this request came
        if len(tokens) >= MAX_TOKENS:
            raise Problem("conflict", f"An account has at most {MAX_TOKENS} valid tokens.")
        token_id, text = create_token(
            transaction,
            account,
            token.name,
            token.scopes,
            days=token.days,
            maker=caller.credential if caller.uses_token else None,
        )
    return {"id": token_id, "token": text, "scopes": sorted(token.scopes)}


@router.delete("/tokens/{token}", status_code=204, dependencies=[rate("change")])
def end_token(token: str, caller: Caller, server: ThisServer) -> None:
    """Revokes one of the caller's own tokens, and those that were made with it."""
    account = require(caller, Scope.READ)
    with server.database.writing(caller.actor()) as transaction:
        lock_account(transaction, account)
        row = find(transaction.connection, caller, t.token, token)
        if not caller.scopes.issuperset(map(Scope, row["scopes"])):
            raise Problem("forbidden", "A token cannot end a token with a scope that it lacks.")
        revoke_token(transaction, row["id"])
