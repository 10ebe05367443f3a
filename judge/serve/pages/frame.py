"""The frame of all pages: the viewer, protection of forms, templates, style, errors.

This module also serves addresses for programs: problems, watchdogs, signing keys, the OpenAPI
document.

A family of pages is a module with a ``router``, a template for each page that extends
``base.html``, and a row of :data:`judge.serve.app.PAGE_ROUTES`. Pages have no inline styles or
scripts: the policy allows only files from ``/static``.
"""

from __future__ import annotations

import contextlib
import hmac
import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any
from urllib.parse import quote, unquote, urlsplit

import sqlalchemy as sa
from fastapi import APIRouter, Depends, Request
from jinja2 import Environment, pass_context
from jinja2.runtime import Context
from markupsafe import Markup
from starlette.datastructures import URL, FormData
from starlette.formparsers import MultiPartException
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)

from judge.report.html.page import Assets, asset, environment
from judge.report.html.render import REPORT
from judge.report.html.runs import LIST_KEYS
from judge.serve.access.accounts import Session
from judge.serve.access.rights import Viewer
from judge.serve.api.limits import rates_of, requester_key
from judge.serve.boards.versions import boards_of
from judge.serve.context import Caller, Server, ThisServer, server_of, session_of
from judge.serve.problems import KINDS, Problem, not_found
from judge.serve.store import tables as t
from judge.version import __version__
from judge.workbook.cell import Cell

router = APIRouter()

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
"""The content security policy of all pages."""

MAX_FORM_BYTES = 256 << 10  # of a form without a file
_MAX_FIELDS = 100  # of a form
PRIVATE = {"Cache-Control": "private, no-cache", "Vary": "Cookie"}
_CACHED = {"Cache-Control": "public, max-age=3600"}
_OWN = Assets(scripts=("base.js", "lists.js", "compare.js"))
_ASSETS = {"serve": _OWN, "report": REPORT}
"""Files that pages link to: name under ``/static``, without its suffix -> style and script."""


@cache
def _environment() -> Environment:
    templates = environment(__package__)
    templates.filters["time"] = _time
    templates.filters["linked"] = _linked
    templates.globals["keys"] = LIST_KEYS
    return templates


_NAMED = re.compile(r"\b(rej|dis)_[0-9A-Z]{26}\b", re.ASCII)


@pass_context
def _linked(context: Context, text: str) -> Markup:
    """Text to show, in which ids of rejudgings and disputes become links."""
    shown = context.environment.filters["visible"]
    parts, end = [], 0
    for match in _NAMED.finditer(text):
        parts += [shown(text[end : match.start()]), _link(context["prefix"], match)]
        end = match.end()
    return Markup().join([*parts, shown(text[end:])])


def _link(prefix: str, match: re.Match[str]) -> Markup:
    words = {"rej": "rejudging", "dis": "dispute"}[match[1]]
    return Markup('<a href="{}/{}s/{}">the {}</a>').format(prefix, words, match[0], words)


def _time(text: str | None) -> Markup:
    """Formats a time as ``2026-01-31 23:59 UTC``; empty for None."""
    if text is None:
        return Markup()
    parts = (
        text,
        text[:10],
        text[11:16],
    )  # so that a narrow column breaks the line between day and hour
    return Markup('<time datetime="{}"><span>{}</span> <span>{} UTC</span></time>').format(*parts)


def cell_text(cell: Cell | None) -> str:
    """The value of a cell in a grid on a page; a date at midnight is shown without its time."""
    if cell is None or cell.value is None:
        return ""
    return str(cell.value)[:200].removesuffix(" 00:00:00")


def prefix_of(server: Server) -> str:
    """The path under which people reach the server, such as ``/judge``; may be empty."""
    return urlsplit(server.options.public_url).path.rstrip("/")


def render(
    request: Request,
    viewer: Viewer,
    template: str,
    title: str,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **context: Any,
) -> HTMLResponse:
    """A page.

    Args:
        request: the request.
        viewer: the viewer.
        template: a template that extends ``base.html``.
        title: the title of the page.
        status: the status of the response.
        headers: headers of the response, in addition to those of every page.
        context: values for the template, in addition to ``viewer``, ``prefix``, ``form_token`` and
            ``title``.
    """
    server = server_of(request)
    token = "" if viewer.credential is None else server.form_token(viewer.credential)
    prefix = prefix_of(server)
    about = {
        "viewer": viewer,
        "prefix": prefix,
        "linked": f"{prefix}/static/serve",
        "js": "",
        "path": request.url.path.removeprefix(prefix),
        "form_token": token,
        "title": title,
        "judge_version": __version__,
        "maintenance": server.setting("maintenance"),
    }
    text = _environment().get_template(template).render({**about, **context})
    return HTMLResponse(text, status, {**PRIVATE, **(headers or {})})


def redirect(server: Server, path: str) -> RedirectResponse:
    """Sends the browser to a page after a form was posted."""
    return RedirectResponse(prefix_of(server) + path, 303)


_RETURN_S = 3600
_NO_RETURN = re.compile(r"//|/sign-(in|out)\b", re.ASCII)
"""Paths that are no page to return to: other hosts, and those that begin or end a session."""


def _return_cookie(server: Server) -> str:
    """Name of the cookie with the page to return to, which other hosts of the domain cannot set."""
    return f"{server.cookie}-return"


def keep_return_path(request: Request, answer: Response) -> None:
    """Makes the browser remember the page that was wanted, until somebody has signed in.

    A sign-in link from an operator and a provider of identities both lead away from that page, so
    it is kept in a cookie: no address of a link decides where a browser goes.
    """
    server = server_of(request)
    page = request.url.replace(path=quote(request.url.path))  # it is given unquoted
    path = _path_of(page, server) if request.method == "GET" else ""
    if not _is_return_path(path):
        path = _came_from(request)
    if _is_return_path(path):
        answer.set_cookie(
            _return_cookie(server),
            quote(path, safe=""),
            max_age=_RETURN_S,
            path="/",
            secure=server.options.secure,
            httponly=True,
            samesite="lax",
        )


def _came_from(request: Request) -> str:
    """The page of this server that led to a request; empty if another one did, or none."""
    server, page = server_of(request), URL(request.headers.get("referer", ""))
    own = f"{page.scheme}://{page.netloc}" == _own_origin(request, server)
    path = _path_of(page, server) if own else ""
    return path if _is_return_path(path) else ""


def _path_of(page: URL, server: Server) -> str:
    path = page.path.removeprefix(prefix_of(server))
    return f"{path}?{page.query}" if page.query else path


def redirect_back(request: Request) -> RedirectResponse:
    """Sends a browser that has signed in to the page that was wanted, or to the first page."""
    server = server_of(request)
    path = unquote(request.cookies.get(_return_cookie(server), "/"))
    answer = redirect(server, path if _is_return_path(path) else "/")
    answer.delete_cookie(
        _return_cookie(server), path="/", secure=server.options.secure, httponly=True
    )
    return answer


def _is_return_path(path: str) -> bool:
    """Whether a path leads to a page of this server; browsers read a backslash like a slash."""
    is_plain = path.isascii() and path.isprintable() and "\\" not in path and len(path) <= 1000
    return is_plain and path.startswith("/") and not _NO_RETURN.match(path)


async def signed_in(request: Request) -> Viewer:
    """The viewer, who has to be signed in.

    Raises:
        Problem: 401.
    """
    session = await session_of(request)
    if session is None:
        raise await not_signed_in(request)
    return remember(request, session.viewer)


async def not_signed_in(request: Request) -> Problem:
    """The problem of a request without a session; its page shows what was typed into the form.

    Raises:
        Problem: 403 for a form that another site sent; 429.
    """
    server = server_of(request)
    if request.method == "POST":
        check_origin(request, server)
        address = request.client.host if request.client is not None else None
        rates_of(server).take("change", requester_key(Viewer(address=address)))
        with contextlib.suppress(Problem):  # too long, or malformed: its page cannot show it
            form = await read_form(request, MAX_FORM_BYTES)
            request.state.typed = {
                name: text
                for name, text in form.items()
                if isinstance(text, str) and text.strip() and name != "token"
            }
            await form.close()
    if server.cookie in request.cookies:
        return Problem(
            "unauthorized",
            "Your session has ended: it lasts twelve hours, and ends when you sign out. "
            "Sign in with a new link from your operator.",
        )
    return Problem("unauthorized", "Sign in with the link from your operator.")


async def posted(request: Request) -> FormData:
    """Reads a form of a signed-in browser; checks that a page of this server sent it.

    Raises:
        Problem: 401 without a session, 403 if sent from another site, 400 if the form is broken,
            413 if it is too long.
    """
    server = server_of(request)
    session = await session_of(request)
    if session is None:
        raise await not_signed_in(request)
    check_origin(request, server)
    rates_of(server).take("change", requester_key(session.viewer))
    form = await read_form(request, MAX_FORM_BYTES)
    check_token(server, session, form)
    return form


async def read_form(request: Request, max_bytes: int) -> FormData:
    """The fields of a form.

    Raises:
        Problem: 400 or 413.
    """
    length = request.headers.get("content-length", "")
    if not length.isdecimal() or len(length) > 15:
        raise Problem("malformed", "The form has no Content-Length header.")
    if int(length) > max_bytes:
        raise Problem("too-large", f"At most {max_bytes >> 10} KiB.")
    try:
        return await request.form(max_files=1, max_fields=_MAX_FIELDS)
    except (MultiPartException, ValueError, KeyError) as error:
        raise Problem("malformed", "The form is not well formed.") from error


def check_origin(request: Request, server: Server) -> None:
    """Checks that a form was sent from a page of this server.

    Raises:
        Problem: 403.
    """
    if request.headers.get("origin") != _own_origin(request, server):
        raise Problem("forbidden", "The form was not sent from a page of this server.")


def _own_origin(request: Request, server: Server) -> str:
    """The origin of this server's pages, as browsers name it."""
    public = urlsplit(server.options.public_url)
    if public.netloc:
        return f"{public.scheme}://{public.netloc}"
    return f"{request.url.scheme}://{request.headers.get('host', '')}"


def check_token(server: Server, session: Session, form: FormData) -> None:
    """Checks the token that every form of a session has.

    Raises:
        Problem: 403.
    """
    token = str(form.get("token", "")).encode()
    if not hmac.compare_digest(token, server.form_token(session.viewer.credential or "").encode()):
        raise Problem("forbidden", "The form does not belong to this session: reload its page.")


def field(form: FormData, name: str, most: int = 2000) -> str:
    """A text field of a form, without surrounding white space.

    Raises:
        Problem: 422, it is too long or has characters that cannot be shown.
    """
    text = str(form.get(name, "")).strip().replace("\r\n", "\n")
    if len(text) > most or not text.replace("\n", "").replace("\t", "").isprintable():
        raise Problem("invalid", f"{name}: at most {most} characters that can be shown.")
    return text


def problem_page(request: Request, problem: Problem) -> Response:
    """A problem as a page."""
    viewer = getattr(request.state, "page_viewer", Viewer())
    headers = {**problem.headers, "Cache-Control": "no-store"}
    # The title of the kind is about a program that calls the API.
    title = "You are not signed in" if problem.name == "unauthorized" else problem.kind.title
    answer = render(
        request,
        viewer,
        "problem.html",
        title,
        status=problem.kind.status,
        headers=headers,
        problem=problem,
        instance=request.state.request_id,
        typed=getattr(request.state, "typed", {}),
        came_from=_came_from(request) if request.method == "POST" else "",
    )
    if problem.name == "unauthorized":
        keep_return_path(request, answer)
    return answer


def wants_page(request: Request) -> bool:
    """Whether a browser requests a page."""
    accepts = request.headers.get("accept", "")
    return not request.url.path.startswith("/v1/") and "text/html" in accepts


def remember(request: Request, viewer: Caller) -> Viewer:
    """The viewer of a page, also for error pages; visits count towards the API's rate limits."""
    request.state.page_viewer = viewer
    rates_of(server_of(request)).take("read", requester_key(viewer))
    return viewer


PageViewer = Annotated[Viewer, Depends(remember)]
SignedIn = Annotated[Viewer, Depends(signed_in)]
Posted = Annotated[FormData, Depends(posted)]


@router.get("/static/{name}")
def static(name: str, server: ThisServer) -> Response:
    """Style sheets and scripts: those of all pages, and those of reports."""
    del server
    page, _, suffix = name.partition(".")
    assets = _ASSETS.get(page)
    if assets is None or suffix not in {"css", "js"}:
        raise not_found()
    text = assets.css if suffix == "css" else assets.js
    if page == "serve":
        text = f"{text}\n{asset(f'serve.{suffix}', __package__)}"
    kind = "text/css" if suffix == "css" else "text/javascript"
    return Response(text, media_type=kind, headers=_CACHED)


# -- addresses for programs -----------------------------------------------------------------------


@router.get("/problems/{name}")
def problem(request: Request, page_viewer: PageViewer, name: str) -> Response:
    """The page that explains a kind of problem."""
    kind = KINDS.get(name)
    if kind is None:
        raise not_found()
    if not wants_page(request):
        return PlainTextResponse(f"{kind.title} ({kind.status})\n\n{kind.explanation}\n")
    return render(
        request,
        page_viewer,
        "problem.html",
        kind.title,
        problem=Problem(name),
        instance=None,
        typed={},
        came_from="",
    )


@router.get("/healthz")
def health() -> Response:
    """Answers as long as the process is alive."""
    return JSONResponse({"status": "ok"})


@router.get("/readyz")
def ready(server: ThisServer) -> Response:
    """Answers if the process can reach its database and its data folder."""
    server.database.last_event()
    if not server.folder.has_space():
        return JSONResponse({"status": "no space"}, status_code=503)
    return JSONResponse({"status": "ready"})


@router.get("/.well-known/judge-keys.json")
def keys(server: ThisServer) -> Response:
    """The public keys, the current one last; replaced keys stay in the list."""
    with server.database.reading() as connection:
        now = connection.execute(sa.select(t.Now())).scalar_one()
    listed = boards_of(server).public_keys(now)
    return JSONResponse({"keys": listed}, headers={"Cache-Control": "public, max-age=300"})


@router.get("/v1/openapi.json")
def document(request: Request) -> Response:
    """The OpenAPI document."""
    return JSONResponse(request.app.openapi(), headers={"Cache-Control": "public, max-age=300"})
