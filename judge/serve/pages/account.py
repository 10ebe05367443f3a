"""Signing in and out, one's account, its rights, and its tokens."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from judge.serve.access.accounts import SESSION_HOURS, sign_in, sign_out
from judge.serve.access.rights import Viewer
from judge.serve.api.accounts import NewToken, end_token, list_tokens, make_token, me
from judge.serve.api.limits import rate
from judge.serve.context import ThisServer, session_of
from judge.serve.pages.frame import (
    MAX_FORM_BYTES,
    Looker,
    Posted,
    SignedIn,
    check_origin,
    field,
    go,
    read_form,
    show,
)
from judge.serve.problems import Problem
from judge.serve.store.words import Role, Scope

router = APIRouter()


@router.get("/me")
def me_page(request: Request, server: ThisServer, viewer: SignedIn) -> Response:
    """Who one is, and what one may do."""
    document = me(viewer, server)
    names = {team["id"]: team["name"] for team in document["teams"]}
    return show(request, viewer, "me.html", document["name"], me=document, names=names)


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
        scopes=_scopes(viewer),
        made=made,
    )


_DOES = {
    Scope.SUBMIT: "hand in, cancel and withdraw",
    Scope.READ: "see what is yours",
    Scope.DISPUTE: "dispute verdicts",
    Scope.REVIEW: "decide about disputes",
    Scope.AUTHOR: "revisions and rejudgings of your suites",
    Scope.OPERATE: "operate the server",
}


def _scopes(viewer: Viewer) -> list[tuple[str, str]]:
    """The rights that a token of somebody can have an effect with, and what they are for."""
    without = set()
    if not viewer.reviewed:
        without.add(Scope.REVIEW)
    if not viewer.authored and Role.AUTHOR not in viewer.roles:
        without.add(Scope.AUTHOR)
    if Role.OPERATOR not in viewer.roles:
        without.add(Scope.OPERATE)
    return [(scope.value, does) for scope, does in _DOES.items() if scope not in without]


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


@router.get("/sign-in")
def sign_in_page(
    request: Request, looker: Looker, code: Annotated[str, Query(max_length=100)] = ""
) -> Response:
    """Asks for the code of a link; a visit alone uses nothing up, as previews of links visit it."""
    return show(request, looker, "sign_in.html", "Sign in", code=code, failed=False)


@router.post("/sign-in", dependencies=[rate("sign-in")])
async def sign_in_posted(request: Request, server: ThisServer, looker: Looker) -> Response:
    """Begins a session; a code that is unknown, used or old has one and the same answer."""
    check_origin(request, server)
    code = field(await read_form(request, MAX_FORM_BYTES), "code", 100)

    def begin() -> str | None:
        with server.database.writing(looker.actor()) as transaction:
            return sign_in(transaction, code)

    cookie = await run_in_threadpool(begin)
    if cookie is None:
        return show(request, looker, "sign_in.html", "Sign in", status=401, code="", failed=True)
    answer = go(server, "/")
    answer.set_cookie(
        server.cookie,
        cookie,
        max_age=SESSION_HOURS * 3600,
        path="/",
        secure=server.options.secure,
        httponly=True,
        samesite="lax",
    )
    return answer


@router.post("/sign-out")
async def sign_out_posted(request: Request, server: ThisServer, form: Posted) -> Response:
    """Ends the session."""
    del form
    session = await session_of(request)
    assert session is not None, "forms have one"

    def end() -> None:
        with server.database.writing(session.viewer.actor()) as transaction:
            sign_out(transaction, session.id)

    await run_in_threadpool(end)
    answer = go(server, "/")
    answer.delete_cookie(server.cookie, path="/", secure=server.options.secure, httponly=True)
    return answer
