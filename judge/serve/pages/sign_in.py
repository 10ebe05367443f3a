"""Signing in by a one-time link, and out."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from judge.serve.access.accounts import SESSION_HOURS, sign_in, sign_out
from judge.serve.api.limits import rate
from judge.serve.context import ThisServer, session_of
from judge.serve.pages.frame import (
    MAX_FORM_BYTES,
    Looker,
    Posted,
    check_origin,
    field,
    go,
    read_form,
    show,
)

router = APIRouter()


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
