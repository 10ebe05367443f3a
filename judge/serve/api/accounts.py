"""``/v1/me`` and ``/v1/tokens``: who one is, and one's own tokens."""

from __future__ import annotations

from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from judge.serve.access.accounts import TOKEN_DAYS, create_token, revoke_token
from judge.serve.access.rights import find, require, visible_to
from judge.serve.api.limits import rate
from judge.serve.context import Caller, ThisServer
from judge.serve.problems import Problem
from judge.serve.store import tables as t
from judge.serve.store.database import all_rows
from judge.serve.store.words import Scope

router = APIRouter(tags=["account"])


class NewToken(BaseModel):
    """A token to make."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[ -~]+$")]
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=6)]
    days: Annotated[int, Field(ge=1, le=366)] = TOKEN_DAYS


@router.get("/me", dependencies=[rate("read")])
def me(caller: Caller, server: ThisServer) -> dict[str, Any]:
    """The caller's account, teams and rights."""
    require(caller, Scope.READ)
    with server.database.reading() as connection:
        teams = all_rows(
            connection,
            sa.select(t.account.c.id, t.account.c.name, t.account.c.kind)
            .where(t.account.c.id.in_(caller.teams))
            .order_by(t.account.c.name),
        )
    return {
        "account": caller.account,
        "name": caller.name,
        "roles": sorted(caller.roles),
        "scopes": sorted(caller.scopes),
        "teams": teams,
    }


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
            )
            .where(visible_to(caller, t.token))
            .order_by(t.token.c.id),
        )
    return {"tokens": tokens}


@router.post("/tokens", status_code=201, dependencies=[rate("change")])
def make_token(token: NewToken, caller: Caller, server: ThisServer) -> dict[str, Any]:
    """A new token of the caller's account, whose text is shown here and never again."""
    account = require(caller, token.scopes[0])
    if not caller.scopes.issuperset(token.scopes):
        raise Problem("forbidden", "A token can give no scope that it does not have.")
    with server.database.writing(caller.actor()) as transaction:
        token_id, text = create_token(
            transaction, account, token.name, token.scopes, days=token.days
        )
    return {"id": token_id, "token": text, "scopes": sorted(token.scopes)}


@router.delete("/tokens/{token}", status_code=204, dependencies=[rate("change")])
def end_token(token: str, caller: Caller, server: ThisServer) -> None:
    """Ends one of the caller's own tokens."""
    require(caller, Scope.READ)
    with server.database.writing(caller.actor()) as transaction:
        row = find(transaction.connection, caller, t.token, token)
        revoke_token(transaction, row["id"])
