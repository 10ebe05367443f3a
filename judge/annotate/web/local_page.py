"""A page that is served on this machine alone, to the one who started it.

Nobody else gets in: the server listens on 127.0.0.1, takes requests only for that host (so that no
website can reach it under a name of its own), and everything but the page's fixed files needs a
token that is new with each start.
"""

from __future__ import annotations

import abc
import hmac
import json
import secrets
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from judge.errors import JudgeError, UsageError

HOST = "127.0.0.1"
TOKEN_HEADER = "X-Judge-Token"  # noqa: S105  the name of a header
MOST_BODY_BYTES = 4 * 1024 * 1024

INLINE_POLICY = "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
"""Of a page with style and script inside the document, which names their hashes itself."""


class LocalPage(abc.ABC):
    """A page of this machine, as an ASGI application.

    Args:
        command: the command that serves it, for messages.
        policy: its content security policy.
        port: the port that requests have to name; set by :func:`listen`.

    Attributes:
        token: what requests have to show.
        closing: set when the server ends; failures are no longer printed in the terminal.
        on_open: called whenever the page was requested with its token.
    """

    def __init__(self, command: str, policy: str, port: int = 0) -> None:
        self.token = secrets.token_urlsafe(24)
        self.port = port
        self.closing = False
        self.on_open: Callable[[], None] = lambda: None
        self._command = command
        self._policy = policy

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://{HOST}:{self.port}/?token={self.token}"

    @abc.abstractmethod
    def index(self) -> str:
        """The page."""

    @abc.abstractmethod
    def respond(
        self, method: str, path: str, request: Request, body: bytes
    ) -> dict[str, Any] | None:
        """The answer to a request of the page; None if there is nothing under its path.

        Raises:
            JudgeError: shown on the page.
        """

    def file(self, path: str) -> tuple[bytes, str] | None:
        """A fixed file with its media type, which needs no token; None for all others."""
        del path
        return None

    def refusal(self, error: JudgeError) -> tuple[dict[str, Any], int]:
        """What the page is given for an error, and the status code."""
        return {"error": error.message, "hint": error.hint}, 400

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, as ASGI asks for it."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        body = await _read(request)
        # Workbooks are read and sandboxes waited for: none of that may hold up other requests.
        response = await run_in_threadpool(self._answer, request, body)
        response.headers["Content-Security-Policy"] = self._policy
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
        if request.method == "GET" and (fixed := self.file(path)) is not None:
            return Response(fixed[0], media_type=fixed[1])
        if request.method == "GET" and path == "/":
            if not self._is_token(request.query_params.get("token", "")):
                return _plain(f"open the address that `{self._command}` printed", 403)
            page = self.index()
            self.on_open()
            return Response(page, media_type="text/html")
        if not path.startswith("/api/"):
            return _plain("there is nothing here", 404)
        if not self._is_token(request.headers.get(TOKEN_HEADER, "")):
            return _json({"error": "the page is from an earlier start; load it again"}, 403)
        return self._api(request.method, path, request, body)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())

    def _api(self, method: str, path: str, request: Request, body: bytes) -> Response:
        try:
            document = self.respond(method, path, request, body)
        except JudgeError as error:
            return _json(*self.refusal(error))
        except Exception as error:  # noqa: BLE001  told on the page and in the terminal
            if not self.closing:  # what is cut off by the end of the server is no news
                traceback.print_exc(file=sys.stderr)
            text = f"the server failed: {type(error).__name__}: {error}"
            return _json({"error": text, "hint": "Nothing that was shown as kept is lost."}, 500)
        if document is None:
            return _json({"error": "there is nothing here"}, 404)
        return _json(document)


async def _read(request: Request) -> bytes | None:
    """The body of a request; None where it is longer than any change."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BODY_BYTES:
            return None
    return bytes(body)


def object_of(body: bytes) -> Mapping[str, Any]:
    """The JSON object of a request.

    Raises:
        UsageError: it is something else.
    """
    try:
        document = json.loads(body)
    except ValueError as error:
        raise UsageError("the request is not JSON") from error
    if not isinstance(document, dict):
        raise UsageError("the request is not an object")
    return document


def _plain(text: str, status: int) -> Response:
    return Response(f"{text}\n", status_code=status, media_type="text/plain")


def _json(document: Mapping[str, Any], status: int = 200) -> Response:
    text = json.dumps(document, ensure_ascii=False)
    return Response(text, status_code=status, media_type="application/json")


def listen(page: LocalPage, port: int = 0) -> socket.socket:
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


def server_of(page: LocalPage) -> uvicorn.Server:
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
