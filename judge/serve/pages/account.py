"""``/me`` and ``/me/tokens``: one's account, its rights, and its tokens."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from judge.serve.api.accounts import NewToken, end_token, list_tokens, make_token, me
from judge.serve.context import ThisServer
from judge.serve.pages.frame import Posted, SignedIn, field, go, show
from judge.serve.problems import Problem
from judge.serve.store.words import Scope

router = APIRouter()


@router.get("/me")
def me_page(request: Request, server: ThisServer, viewer: SignedIn) -> Response:
    """Who one is, and what one may do."""
    return show(request, viewer, "me.html", "You", me=me(viewer, server))


@router.get("/me/tokens")
def tokens_page(request: Request, server: ThisServer, viewer: SignedIn) -> Response:
    """One's tokens, without their secrets."""
    return _tokens(request, server, viewer, None)


def _tokens(
    request: Request, server: ThisServer, viewer: SignedIn, made: dict[str, Any] | None
) -> Response:
    return show(
        request,
        viewer,
        "tokens.html",
        "Tokens",
        headers={"Cache-Control": "no-store"},
        tokens=list_tokens(viewer, server)["tokens"],
        scopes=[scope.value for scope in Scope],
        made=made,
    )


@router.post("/me/tokens")
async def token_posted(
    request: Request, server: ThisServer, viewer: SignedIn, form: Posted
) -> Response:
    """Makes a token, and shows it this once."""
    scopes = [scope for scope in Scope if form.get(f"scope-{scope.value}")]
    try:
        new = NewToken(name=field(form, "name", 80), scopes=scopes)
    except ValueError as error:
        raise Problem(
            "invalid", "A token needs a name in ASCII, and at least one right."
        ) from error
    made = await run_in_threadpool(make_token, new, viewer, server)
    return await run_in_threadpool(_tokens, request, server, viewer, made)


@router.post("/me/tokens/{token}/end")
async def token_ended(token: str, server: ThisServer, viewer: SignedIn, form: Posted) -> Response:
    """Ends a token."""
    del form
    await run_in_threadpool(end_token, token, viewer, server)
    return go(server, "/me/tokens")
