"""The application: which modules have routes, and how every response is made safe.

A family of routes is a module with a ``router`` and one line in :data:`API_ROUTES` (under ``/v1``,
in the OpenAPI document) or :data:`PAGE_ROUTES` (pages, and what is outside ``/v1``).
"""

from __future__ import annotations

import functools
import importlib
import re
import secrets
import time
import traceback
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from sqlalchemy.exc import DataError
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from judge.console import print_label
from judge.errors import StoreError, UsageError
from judge.serve.api.limits import PROBLEMS, BoundedBodies
from judge.serve.context import Server
from judge.serve.intake import LIMITS
from judge.serve.operations.metrics import metrics_of
from judge.serve.pages.frame import POLICY, prefix_of, problem_page, wants_page
from judge.serve.problems import Problem, for_status
from judge.serve.store.database import DatabaseGoneError
from judge.version import __version__

API_ROUTES = (
    "judge.serve.api.accounts",
    "judge.serve.api.submissions",
    "judge.serve.api.results",
    "judge.serve.api.suites",
    "judge.serve.api.boards",
    "judge.serve.disputes.routes",
    "judge.serve.rejudging.routes",
    "judge.serve.operations.deliveries",
)
PAGE_ROUTES = (
    "judge.serve.pages.frame",
    "judge.serve.pages.account",
    "judge.serve.pages.suites",
    "judge.serve.pages.boards",
    "judge.serve.pages.submissions",
    "judge.serve.disputes.pages",
    "judge.serve.rejudging.pages",
    "judge.serve.operations.pages",
)

_FORM_EXTRA_BYTES = 1 << 20  # boundaries and fields of a form around the file
BODY_LIMITS = {
    "/v1/submissions": max(LIMITS.values()) + _FORM_EXTRA_BYTES,
    "/v1/submissions:batch": 64 << 20,
    "/v1/suites": max(LIMITS.values()) + _FORM_EXTRA_BYTES,
    "/submit": max(LIMITS.values()) + _FORM_EXTRA_BYTES,
}
"""Largest request body in bytes, by path; ``/v1/suites`` covers the revisions of every suite."""

_TITLE = "judge serve"
_DESCRIPTION = "Submit to suites of spreadsheet tasks; see docs/serve.md."
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,40}", re.ASCII)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": POLICY,
    # Unless a route says otherwise: the content of a response depends on the caller.
    "Cache-Control": "private, no-cache",
    "Vary": "Authorization, Cookie",
}


@functools.cache
def _routes() -> tuple[list[BaseRoute], list[tuple[re.Pattern[str], AbstractSet[str]]]]:
    """The routes of all applications, and the methods of each path.

    FastAPI prepares a route at its first request, which takes longer than several requests; so
    all applications of one process share the routes.
    """
    together = APIRouter(redirect_slashes=False)
    methods: list[tuple[re.Pattern[str], AbstractSet[str]]] = []
    for names, prefix in ((API_ROUTES, "/v1"), (PAGE_ROUTES, "")):
        for name in names:
            router = importlib.import_module(name).router
            together.include_router(
                router,
                prefix=prefix,
                responses=PROBLEMS if prefix else None,
                include_in_schema=bool(prefix),
            )
            methods += [
                (compile_path(prefix + route.path)[0], route.methods) for route in router.routes
            ]
    return together.routes, methods


class _Application(FastAPI):
    """An application whose routes and OpenAPI document are shared by all applications."""

    @staticmethod
    @functools.cache
    def openapi() -> dict[str, Any]:
        routes, _ = _routes()
        return get_openapi(
            title=_TITLE, version=__version__, description=_DESCRIPTION, routes=routes
        )


def make_app(server: Server) -> FastAPI:
    """Makes the application of a server, without a dispatcher."""
    app = _Application(
        title=_TITLE,
        version=__version__,
        description=_DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.server = server
    app.add_middleware(_EachRequest, server=server)
    app.add_middleware(
        BoundedBodies, limits=BODY_LIMITS
    )  # outermost, so that it limits what all others read
    handlers: dict[type[Exception], Callable[..., Any]] = {
        Problem: _on_problem,
        HTTPException: _on_http_exception,
        RequestValidationError: _on_invalid,
        DatabaseGoneError: _on_database_gone,
        UsageError: _on_usage,
        DataError: _on_unstorable,
        UnicodeEncodeError: _on_unstorable,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)
    routes, methods = _routes()
    app.router.routes.extend(routes)
    app.state.methods = methods
    return app


class _EachRequest:
    """Gives each request an id and each response security headers; hides internal errors.

    ``HEAD`` is answered like ``GET``, without the body, except for streams, which have no end.

    Args:
        app: the application that answers.
        server: the server of the application.
    """

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        given = request.headers.get("x-request-id", "")
        named = given if _REQUEST_ID.fullmatch(given) else f"req-{secrets.token_hex(10)}"
        request.state.request_id = named
        began, started = time.monotonic(), False
        is_head = scope["method"] == "HEAD" and not scope["path"].endswith("/events")
        if is_head:
            scope = {**scope, "method": "GET"}

        async def answer(message: Message) -> None:
            nonlocal started
            if is_head and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.update(getattr(request.state, "rate_headers", {}))
                headers["X-Request-Id"] = named
                seconds = time.monotonic() - began
                metrics_of(self._server).answered(request, message["status"], seconds)
            await send(message)

        try:
            if not _is_host(request, self._server.options.hosts):
                problem = Problem("malformed", "No such host here.")
                await problem.response(named)(scope, receive, answer)
            elif {"content-length", "transfer-encoding"} <= set(request.headers):
                # A proxy in front could use the one of the two that this server does not use.
                headers = {"Connection": "close"}
                detail = "The request has both Content-Length and Transfer-Encoding."
                problem = Problem("malformed", detail, headers=headers)
                await problem.response(named)(scope, receive, answer)
            else:
                await self._app(scope, receive, answer)
        except Exception:
            if started:
                raise
            print_label("error:", "red", f"{named}\n{traceback.format_exc()}")
            await Problem("internal").response(named)(scope, receive, answer)


def _is_host(request: Request, hosts: AbstractSet[str]) -> bool:
    """Whether the header ``Host`` is well formed, and is a name of this server."""
    try:
        name = request.url.hostname
    except ValueError:
        request.scope["headers"] = [
            (header, value) for header, value in request.scope["headers"] if header != b"host"
        ]
        return False
    return not hosts or name in hosts


def _answer(request: Request, problem: Problem) -> Response:
    if wants_page(request):
        return problem_page(request, problem)
    return problem.response(request.state.request_id, prefix_of(request.app.state.server))


def _on_problem(request: Request, problem: Problem) -> Response:
    return _answer(request, problem)


def _on_http_exception(request: Request, error: HTTPException) -> Response:
    name = for_status(error.status_code)
    detail = error.detail if name == "malformed" else None
    headers = dict(error.headers or {})
    if name == "method-not-allowed":
        headers["Allow"] = _methods_of(request)
    return _answer(request, Problem(name, detail, headers=headers))


def _methods_of(request: Request) -> str:
    """The methods of all routes of an address; Starlette names only those of the first route."""
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    methods: set[str] = set()
    for pattern, of_route in request.app.state.methods:
        if pattern.match(path):
            methods |= of_route
    if "GET" in methods and not path.endswith("/events"):
        methods.add("HEAD")
    return ", ".join(sorted(methods))


def _on_invalid(request: Request, error: RequestValidationError) -> Response:
    faults = [
        {
            "pointer": "/" + "/".join(str(part) for part in fault["loc"]),
            "detail": str(fault["msg"])[:300],
        }
        for fault in error.errors()[:20]
    ]
    return _answer(request, Problem("invalid", errors=faults))


def _on_database_gone(request: Request, _: StoreError) -> Response:
    headers = {"Retry-After": "5"}
    return _answer(request, Problem("unavailable", "The database is out of reach.", (), headers))


def _on_unstorable(request: Request, _: Exception) -> Response:
    return _answer(request, Problem("invalid", "It has characters that cannot be stored."))


def _on_usage(request: Request, error: UsageError) -> Response:
    return _answer(request, Problem("invalid", error.message))
