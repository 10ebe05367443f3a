"""Serves the page on this machine alone.

Nobody else gets in: the server listens on 127.0.0.1, takes requests only for that host (so that no
website can reach it under a name of its own), and everything but the page's fixed files needs a
token that is new with each start. Files are served by name from a fixed list.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import string
import sys
import traceback
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from judge.annotate.casebook import ConflictError
from judge.annotate.web.session import AnnotationSession
from judge.annotate.web.state import show_state
from judge.errors import JudgeError, UsageError

HOST = "127.0.0.1"
TOKEN_HEADER = "X-Judge-Token"  # noqa: S105  the name of a header
MOST_BODY_BYTES = 4 * 1024 * 1024

STATIC_FILES: Mapping[str, str] = {
    "app.css": "text/css",
    "app.js": "text/javascript",
    "grid.js": "text/javascript",
}
GRID_FILES: Mapping[str, str] = {
    "jspreadsheet.js": "text/javascript",
    "jspreadsheet.css": "text/css",
    "jsuites.js": "text/javascript",
    "jsuites.css": "text/css",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "style-src 'self' 'unsafe-inline'; font-src 'self' data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)


def page_folder() -> Path:
    """The folder with the page's own files, and the grid's below it."""
    return Path(str(resources.files("judge.annotate.web")))


def check_grid() -> None:
    """Whether the grid's files are there.

    Raises:
        UsageError: they are not.
    """
    folder = page_folder() / "grid"
    missing = [name for name in GRID_FILES if not (folder / name).is_file()]
    if missing:
        raise UsageError(
            f"the grid of the page is not here: {folder / missing[0]}",
            hint="In a clone, `scripts/fetch-grid` fetches it; wheels bring it along.",
        )


class Page:
    """The page of one session, as an ASGI application.

    Args:
        session: what the page shows and changes.
        suite: the suite's name.
        author: who works in the session.
        port: the port that requests have to name; set by :func:`listen`.

    Attributes:
        closing: set when the server ends; failures are no longer printed in the terminal.
        on_open: called whenever the page was requested with its token.
    """

    def __init__(self, session: AnnotationSession, suite: str, author: str, port: int = 0) -> None:
        self.token = secrets.token_urlsafe(24)
        self.port = port
        self.closing = False
        self.on_open: Callable[[], None] = lambda: None
        self._session = session
        self._suite = suite
        self._author = author
        self._posts: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "/api/change": self._change,
            "/api/undo": self._undo,
            "/api/base": self._base,
            "/api/compute": self._compute,
            "/api/save": self._save,
        }

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://{HOST}:{self.port}/?token={self.token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, as ASGI asks for it."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        body = await _read(request)
        # Workbooks are read and sandboxes waited for: none of that may hold up other requests.
        response = await run_in_threadpool(self._answer, request, body)
        response.headers["Content-Security-Policy"] = _POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cache-Control"] = "no-store"
        await response(scope, receive, send)

    def _answer(self, request: Request, body: bytes | None) -> Response:
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in {f"{HOST}:{self.port}", f"localhost:{self.port}"}:
            return _plain("this server answers to its own address only", 421)
        if body is None:
            return _json({"error": "that is too much for one request"}, 413)
        path = request.scope["path"]
        kind, _, name = path[1:].partition("/")
        if request.method == "GET" and kind == "static" and name in STATIC_FILES:
            return _file(page_folder() / "static" / name, STATIC_FILES[name])
        if request.method == "GET" and kind == "grid" and name in GRID_FILES:
            return _file(page_folder() / "grid" / name, GRID_FILES[name])
        if request.method == "GET" and path == "/":
            if not self._is_token(request.query_params.get("token", "")):
                return _plain("open the address that `judge annotate` printed", 403)
            return self._index()
        if kind != "api":
            return _plain("there is nothing here", 404)
        if not self._is_token(request.headers.get(TOKEN_HEADER, "")):
            return _json({"error": "the page is from an earlier start; load it again"}, 403)
        return self._api(request.method, path, request, body)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())

    def _index(self) -> Response:
        text = (page_folder() / "static" / "index.html").read_text(encoding="utf-8")
        page = string.Template(text).substitute(token=self.token)
        self.on_open()
        return Response(page, media_type="text/html")

    # -- the page's requests ----------------------------------------------------------------------

    def _api(self, method: str, path: str, request: Request, body: bytes) -> Response:
        try:
            if (method, path) == ("GET", "/api/state"):
                return _json(self._state())
            if (method, path) == ("GET", "/api/window"):
                return _json(self._window(request))
            post = self._posts.get(path)
            if method == "POST" and post is not None:
                return _json(post(_object(body)))
        except ConflictError as error:
            told = {"error": error.message, "hint": error.hint, "state": self._state()}
            return _json(told, 409)
        except JudgeError as error:
            return _json({"error": error.message, "hint": error.hint}, 400)
        except Exception as error:  # noqa: BLE001  told on the page and in the terminal
            if not self.closing:  # what is cut off by the end of the server is no news
                traceback.print_exc(file=sys.stderr)
            text = f"the server failed: {type(error).__name__}: {error}"
            return _json({"error": text, "hint": "Nothing that was shown as kept is lost."}, 500)
        return _json({"error": "there is nothing here"}, 404)

    def _state(self) -> dict[str, Any]:
        return show_state(self._session, self._suite, self._author)

    def _window(self, request: Request) -> dict[str, Any]:
        query = request.query_params
        place = query.get("row", "1"), query.get("column", "1")
        if not all(each.isascii() and each.isdigit() and len(each) < 9 for each in place):
            raise UsageError("row and column are whole numbers")
        row, column = map(int, place)
        return self._session.window(query.get("book", ""), query.get("sheet", ""), (row, column))

    def _change(self, body: Mapping[str, Any]) -> dict[str, Any]:
        self._session.change(_revision(body), body)
        return self._state()

    def _undo(self, body: Mapping[str, Any]) -> dict[str, Any]:
        self._session.undo(_revision(body))
        return self._state()

    def _base(self, body: Mapping[str, Any]) -> dict[str, Any]:
        number = body.get("case")
        if not isinstance(number, int):
            raise UsageError("which case?")
        self._session.start_from(_revision(body), number)
        return self._state()

    def _compute(self, body: Mapping[str, Any]) -> dict[str, Any]:
        del body
        self._session.compute()
        return self._state()

    def _save(self, body: Mapping[str, Any]) -> dict[str, Any]:
        self._session.save(_revision(body), note=str(body.get("note") or ""))
        return self._state()


async def _read(request: Request) -> bytes | None:
    """The body of a request; None where it is longer than any change."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BODY_BYTES:
            return None
    return bytes(body)


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(body)
    except ValueError as error:
        raise UsageError("the request is not JSON") from error
    if not isinstance(document, dict):
        raise UsageError("the request is not an object")
    return document


def _revision(body: Mapping[str, Any]) -> str:
    return str(body.get("revision", ""))


def _file(path: Path, mimetype: str) -> Response:
    return Response(path.read_bytes(), media_type=mimetype)


def _plain(text: str, status: int) -> Response:
    return Response(f"{text}\n", status_code=status, media_type="text/plain")


def _json(document: Mapping[str, Any], status: int = 200) -> Response:
    text = json.dumps(document, ensure_ascii=False)
    return Response(text, status_code=status, media_type="application/json")


def listen(page: Page, port: int = 0) -> socket.socket:
    """Takes a port for the page; connections wait from then on.

    Args:
        page: the page, which learns its port.
        port: 0 for any free one.

    Raises:
        UsageError: the port is taken.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError as error:
        listener.close()
        raise UsageError(f"port {port} cannot be listened on: {error.strerror}") from error
    listener.listen()
    page.port = listener.getsockname()[1]
    return listener


def server_of(page: Page) -> uvicorn.Server:
    """A server for the page; ``run(sockets=[…])`` serves until it is interrupted.

    It writes no log of requests, whose addresses hold the token.
    """
    return uvicorn.Server(
        uvicorn.Config(
            page,
            access_log=False,
            log_level="critical",
            use_colors=False,
            timeout_graceful_shutdown=3,
        )
    )
