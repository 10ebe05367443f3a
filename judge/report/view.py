"""``judge view``: the pages of many runs, served only to browsers on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from judge.errors import JudgeError, StoreError
from judge.report.html.render import Served, render_served
from judge.report.html.runs import Listed, render_comparison, render_runs
from judge.report.pairing import compare_loaded
from judge.report.view_runs import RunShelf

HOSTS = ("127.0.0.1", "localhost", "[::1]")
"""Host names that a browser on this machine uses. Any other means that a foreign page had its own
name point to this server."""


def make_app(folder: Path, dataset: str | None = None) -> Starlette:
    """The application that serves a results folder.

    Args:
        folder: a results directory, or a folder of them.
        dataset: the suite; None for the one that each run remembers.

    Raises:
        StoreError: no such folder.
    """
    pages = _Pages(RunShelf(folder, dataset))
    return Starlette(
        routes=[
            Route("/", pages.runs),
            Route("/progress.json", pages.progress),
            Route("/compare", pages.compare),
            Route("/runs/{name}/", pages.run),
            Route("/runs/{name}/report.json", pages.report),
            Route("/runs/{name}/pages/{number:int}", pages.task),
        ],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS), www_redirect=False),
            Middleware(_Guarded),
            Middleware(GZipMiddleware, minimum_size=2_000),
        ],
        exception_handlers={JudgeError: _judge_error},
    )


class _Pages:
    """The handlers. They are plain functions, so that each runs in a thread of its own."""

    def __init__(self, shelf: RunShelf) -> None:
        self._shelf = shelf

    def runs(self, request: Request) -> Response:
        """All runs, best first."""
        del request
        return HTMLResponse(render_runs(self._shelf.folder.name, self._listed()))

    def _listed(self) -> list[Listed]:
        listed = []
        for name in self._shelf.runs():
            progress = self._shelf.progress(name)
            try:
                document: Any = _summary(self._shelf.scores(name).to_json())
                problem = ""
            except JudgeError as error:
                where = f"{self._shelf.path(name)}: "
                document, problem = None, error.message.removeprefix(where)
            except Exception as error:  # noqa: BLE001  one run must not take the others along
                kind = type(error).__name__
                document, problem = None, f"its records cannot be shown ({kind}: {error})"
            listed.append(Listed(name, document, progress.to_json(), problem))
        return listed

    def progress(self, request: Request) -> Response:
        """How far each run is."""
        del request
        return _json({name: self._shelf.progress(name).to_json() for name in self._shelf.runs()})

    def run(self, request: Request) -> Response:
        """The report of a run."""
        name = request.path_params["name"]
        opened = self._shelf.open(name)
        served = Served(home_url="/", pages_url=f"/runs/{quote(name, safe='')}/pages/")
        return HTMLResponse(render_served(opened.data, opened.document, served))

    def report(self, request: Request) -> Response:
        """The report of a run as JSON."""
        return _json(self._shelf.open(request.path_params["name"]).document)

    def task(self, request: Request) -> Response:
        """One task page of a run, as data."""
        pages = self._shelf.open(request.path_params["name"]).pages
        number: int = request.path_params["number"]
        if number >= len(pages):
            return PlainTextResponse("this page does not exist", status_code=404)
        page = pages.page(number)
        return _json({**page, "pictures": pages.pictures_of(page)})

    def compare(self, request: Request) -> Response:
        """Runs compared with each other."""
        names = request.query_params.getlist("run")
        comparison = compare_loaded([self._shelf.load(name) for name in names])
        return HTMLResponse(render_comparison(comparison, home_url="/"))


def _summary(document: dict[str, Any]) -> dict[str, Any]:
    return {name: document[name] for name in ("name", "run", "overall", "notes", "departures")}


def _json(document: Any) -> Response:
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return Response(text.encode("utf-8", "replace"), media_type="application/json")


async def _judge_error(request: Request, error: Exception) -> Response:
    del request
    assert isinstance(error, JudgeError)
    status = 404 if isinstance(error, StoreError) else 400
    hint = f"\n{error.hint}" if error.hint else ""
    return PlainTextResponse(f"{error.message}{hint}\n", status_code=status)


class _Guarded:
    """Headers that keep pages to themselves.

    Args:
        app: what answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Content-Security-Policy"] = "frame-ancestors 'none'"
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Referrer-Policy"] = "no-referrer"
                headers["Cross-Origin-Resource-Policy"] = "same-origin"
                headers["Cross-Origin-Opener-Policy"] = "same-origin"
                headers["Cache-Control"] = "no-store"
            await send(message)

        await self._app(scope, receive, guarded)


def serve(
    folder: Path,
    *,
    port: int,
    dataset: str | None = None,
    on_ready: Callable[[str], None] = lambda _url: None,
) -> None:
    """Serves a results folder on 127.0.0.1 until it is interrupted.

    Args:
        folder: a results directory, or a folder of them.
        port: 0 for any that is free.
        dataset: the suite; None for the one that each run remembers.
        on_ready: called with the address once it answers.

    Raises:
        StoreError: no such folder.
        OSError: the port is taken.
    """
    import socket  # noqa: PLC0415 - with uvicorn, for this function alone

    import uvicorn  # noqa: PLC0415

    app = make_app(folder, dataset)
    with socket.create_server(("127.0.0.1", port)) as listening:
        on_ready(f"http://127.0.0.1:{listening.getsockname()[1]}/")
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="off",
            use_colors=False,
        )
        uvicorn.Server(config).run(sockets=[listening])
