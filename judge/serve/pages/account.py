"""Pages for signing in and out, and for the viewer's account, rights and tokens."""

from __future__ import annotations

import importlib
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from judge.serve.access.accounts import SESSION_HOURS, sign_in, sign_out
from judge.serve.access.rights import Viewer
from judge.serve.api.accounts import NewToken, end_token, list_tokens, make_token, me
from judge.serve.api.limits import rate
from judge.serve.context import OIDC, Server, ThisServer, session_of
from judge.serve.pages.frame import (
    MAX_FORM_BYTES,
    POLICY,
    PageViewer,
    Posted,
    SignedIn,
    check_origin,
    check_token,
    field,
    keep_return_path,
    prefix_of,
    read_form,
    redirect,
    redirect_back,
    render,
)
from judge.serve.problems import Problem, not_found
from judge.serve.store.tables import Role, Scope

router = APIRouter()


def _flow_cookie(server: Server) -> str:
    """Name of a flow's cookie; its prefix prevents other hosts of the domain from setting it."""
    return f"{server.cookie}-flow"


@router.get("/me")
def me_page(request: Request, server: ThisServer, viewer: SignedIn) -> Response:
    """The viewer's account and rights."""
    document = me(viewer, server)
    names = {team["id"]: team["name"] for team in document["teams"]}
    signing = _sign_in(server)
    return render(request, viewer, "me.html", document["name"], me=document, names=names, **signing)


@router.get("/me/tokens")
def tokens_page(request: Request, server: ThisServer, viewer: SignedIn) -> Response:
    """The viewer's tokens, without their secrets."""
    return _tokens(request, server, viewer, None)


def _tokens(
    request: Request, server: ThisServer, viewer: SignedIn, created: dict[str, Any] | None
) -> Response:
    return render(
        request,
        viewer,
        "tokens.html",
        "Tokens",
        headers={"Cache-Control": "no-store"},
        tokens=list_tokens(viewer, server)["tokens"],
        scopes=_scopes(viewer),
        made=created,
    )


_DOES = {
    Scope.SUBMIT: "submit, cancel and withdraw",
    Scope.READ: "read your own data",
    Scope.DISPUTE: "dispute verdicts",
    Scope.REVIEW: "decide about disputes",
    Scope.AUTHOR: "manage revisions and rejudgings of your suites",
    Scope.OPERATE: "operate the server",
}


def _scopes(viewer: Viewer) -> list[tuple[str, str]]:
    """The rights that are useful for a token of the viewer, and what they allow."""
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
    """Makes a token, and shows it once."""
    scopes = [scope for scope in Scope if form.get(f"scope-{scope.value}")]
    try:
        new = NewToken(name=field(form, "name", 80), scopes=scopes)
    except ValueError as error:
        raise Problem(
            "invalid", "A token needs a name in ASCII, and at least one right."
        ) from error
    created = await run_in_threadpool(make_token, new, viewer, server)
    return await run_in_threadpool(_tokens, request, server, viewer, created)


@router.post("/me/tokens/{token}/end")
async def token_ended(token: str, server: ThisServer, viewer: SignedIn, form: Posted) -> Response:
    """Revokes a token."""
    del form
    await run_in_threadpool(end_token, token, viewer, server)
    return redirect(server, "/me/tokens")


@router.get("/sign-in")
def sign_in_page(
    request: Request,
    server: ThisServer,
    page_viewer: PageViewer,
    code: Annotated[str, Query(max_length=100)] = "",
) -> Response:
    """Asks to confirm the code of a link, so that a link preview does not use it up."""
    shown = _sign_in(server, code=code)
    answer = render(request, page_viewer, "sign_in.html", "Sign in", **shown)
    keep_return_path(request, answer)
    return answer


@router.post("/sign-in", dependencies=[rate("sign-in")])
async def sign_in_posted(request: Request, server: ThisServer, page_viewer: PageViewer) -> Response:
    """Begins a session; unknown, used and expired codes all get the same answer."""
    check_origin(request, server)
    code = field(await read_form(request, MAX_FORM_BYTES), "code", 100)
    former = await session_of(request)

    def begin() -> str | None:
        with server.database.writing(page_viewer.actor()) as transaction:
            cookie = sign_in(transaction, code)
            if cookie is not None and former is not None:
                sign_out(transaction, former.id)
            return cookie

    cookie = await run_in_threadpool(begin)
    if cookie is None:
        failed = _sign_in(server, failed=True)
        return render(request, page_viewer, "sign_in.html", "Sign in", status=401, **failed)
    return with_session(redirect_back(request), server, cookie)


@router.post("/sign-in/provider", dependencies=[rate("sign-in")])
async def provider_posted(request: Request, server: ThisServer) -> Response:
    """Sends the browser to the provider of identities; with a session, to connect its account."""
    check_origin(request, server)
    session = await session_of(request)
    if session is not None:
        check_token(server, session, await read_form(request, MAX_FORM_BYTES))
    provider = provider_of(server)
    account = None if session is None else session.viewer.account
    url, flow = await run_in_threadpool(
        _oidc().begin, server, provider, _back(request, server), account
    )
    answer = RedirectResponse(url, 303)
    answer.set_cookie(
        _flow_cookie(server),
        flow,
        max_age=600,
        path="/",
        secure=server.options.secure,
        httponly=True,
        samesite="lax",
    )
    return answer


@router.get("/sign-in/provider", dependencies=[rate("sign-in")])
async def provider_answered(
    request: Request, server: ThisServer, page_viewer: PageViewer
) -> Response:
    """Begins a session for a browser that the provider has sent back."""
    provider, oidc = provider_of(server), _oidc()
    flow = request.cookies.get(_flow_cookie(server), "")
    back = _back(request, server)
    session = await session_of(request)
    signed_in_as = None if session is None else session.viewer.account
    returned_to = f"{back}?{request.url.query}"

    def begin() -> str | None:
        identity, account = oidc.finish(server, provider, flow, returned_to, back)
        if account is not None and account != signed_in_as:
            raise Problem(
                "forbidden", "Another account started to connect an identity: start again."
            )
        with server.database.writing(page_viewer.actor()) as transaction:
            begun: str | None = oidc.signed_in(transaction, identity, account)
            if begun is not None and session is not None:
                sign_out(transaction, session.id)
            return begun

    cookie = await run_in_threadpool(begin)
    if cookie is None:
        answer: Response = render(
            request,
            page_viewer,
            "sign_in.html",
            "Sign in",
            status=403,
            **_sign_in(server, waits=True),
        )
    else:
        to = redirect_back(request) if session is None else redirect(server, "/me")
        answer = with_session(to, server, cookie)
    answer.delete_cookie(
        _flow_cookie(server), path="/", secure=server.options.secure, httponly=True
    )
    return answer


def _oidc() -> Any:
    """Imports the module for providers of identities, which needs an extra.

    Raises:
        Problem: 503, the extra is not installed.
    """
    try:
        return importlib.import_module("judge.serve.access.oidc")
    except ImportError as error:
        raise Problem("unavailable", "sheetjudge[serve-oidc] is not installed here.") from error


def provider_of(server: Server) -> Any:
    """The configured provider (``judge serve admin oidc``).

    Raises:
        Problem: 404, no provider is configured.
    """
    value = server.setting(OIDC)
    if value is None:
        raise not_found()
    return _oidc().Provider(value["issuer"], value["client"], value["secret"])


def _back(request: Request, server: Server) -> str:
    own = f"{request.url.scheme}://{request.headers.get('host', '')}{prefix_of(server)}"
    return f"{server.options.public_url or own}/sign-in/provider"


def _sign_in(server: Server, **how: Any) -> dict[str, Any]:
    """The values that the sign-in page needs."""
    value = server.setting(OIDC)
    provider = None if value is None else value["title"]
    shown = {"code": "", "failed": False, "waits": False, "provider": provider, **how}
    if value is not None:  # browsers also apply the policy to redirects of a form
        scheme = value["issuer"].partition(":")[0]
        policy = POLICY.replace("form-action 'self'", f"form-action 'self' {scheme}:")
        shown["headers"] = {"Content-Security-Policy": policy}
    return shown


def with_session(answer: Response, server: Server, cookie: str) -> Response:
    """The response, with the cookie that starts a session in the browser."""
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
    answer = redirect(server, "/")
    answer.delete_cookie(server.cookie, path="/", secure=server.options.secure, httponly=True)
    return answer
