"""Serves local pages: only the person who started the server, on this machine, gets an answer.

The server listens on 127.0.0.1. It accepts requests only for that host, so no website can reach it
under the website's own name, and only from its own pages, so no website can make a browser send
them. Everything but the page's fixed files needs a token, which is new with each start. All of this
is checked before anything is read or computed. The browser does not get the token on its command
line, which every user of the machine can see. It gets the name of a private file that redirects to
the page (:func:`redirect_to`).

The load is limited as well: only a limited number of requests are handled or wait at a time. Work
for a client that has disconnected, or for a server that is stopping, ends at its next call of
:func:`check_wanted`.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import contextvars
import hmac
import html
import json
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from judge.errors import JudgeError, UsageError
from judge.files.documents import MalformedError, parse_json
from judge.files.writing import write_new

HOST = "127.0.0.1"
TOKEN_HEADER = "X-Judge-Token"  # noqa: S105  the name of a header
MAX_BODY_BYTES = 4 * 1024 * 1024

MAX_AT_WORK = 8
"""How many requests are handled at a time."""

MAX_WAITING = 64
"""How many requests wait or are handled at a time; further ones are refused."""

INLINE_POLICY = "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
"""The policy of a page that contains its style and script, and lists their hashes."""

_FETCHED_BY = frozenset({"same-origin", "none"})
"""Accepted values of ``Sec-Fetch-Site``, unless a person follows a link."""


class UnwantedError(JudgeError):
    """Raised when no client waits for the answer any more."""


_given_up: contextvars.ContextVar[threading.Event | None] = contextvars.ContextVar(
    "given_up", default=None
)


def check_wanted() -> None:
    """Stops work that nobody waits for; long work calls it from time to time.

    Raises:
        UnwantedError: the client of the request has disconnected, or the server is stopping.
    """
    given_up = _given_up.get()
    if given_up is not None and given_up.is_set():
        raise UnwantedError("nobody waits for this answer any more")


@dataclass(slots=True)
class _Job:
    """An answer that is being computed.

    Attributes:
        answer: the future answer, which is set in the event loop.
        given_up: set as soon as nobody waits for the answer.
        waiting: how many requests wait for it.
    """

    answer: asyncio.Future[Response]
    given_up: threading.Event = field(default_factory=threading.Event)
    waiting: int = 0


class LocalPage(abc.ABC):
    """A local page, as an ASGI application.

    Args:
        command: the command that serves it, for messages.
        policy: its content security policy.
        port: the port that requests must name; set by :func:`listen`.
        only_reads: whether no request changes anything. If so, identical requests share one
            response, and responses, which are long documents, are compressed.

    Attributes:
        token: the token that requests must have.
        closing: set when the server stops; failures are no longer printed in the terminal.
        on_open: called whenever the page is requested with its token.
    """

    def __init__(
        self, command: str, policy: str, port: int = 0, *, only_reads: bool = False
    ) -> None:
        self.token = secrets.token_urlsafe(24)
        self.port = port
        self.closing = False
        self.on_open: Callable[[], None] = lambda: None
        self._command = command
        self._policy = policy
        self._only_reads = only_reads
        self._jobs: dict[object, _Job] = {}
        self._at_work = asyncio.Semaphore(MAX_AT_WORK)
        self._app = GZipMiddleware(self._serve, minimum_size=2_000) if only_reads else self._serve

    @property
    def address(self) -> str:
        """The address for the browser, with the token."""
        return f"http://{HOST}:{self.port}/?token={self.token}"

    @abc.abstractmethod
    def index(self) -> str:
        """The page."""

    @abc.abstractmethod
    def respond(
        self, method: str, path: str, request: Request, body: bytes
    ) -> Mapping[str, Any] | None:
        """The response to a request from the page; None if nothing is served under its path.

        Raises:
            JudgeError: shown on the page.
        """

    def is_document(self, path: str) -> bool:
        """Whether a path leads to a document, which a browser opens with the token in its address.

        The scripts of documents request everything else, with the token in a header.
        """
        return path == "/"

    def document(self, path: str, request: Request) -> str:
        """The HTML under the path of a document.

        Raises:
            JudgeError: there is no such document.
        """
        del path, request
        return self.index()

    def file(self, path: str) -> tuple[bytes, str] | None:
        """A fixed file, which needs no token, with its media type; None for any other path."""
        del path
        return None

    def refusal(self, error: JudgeError) -> tuple[dict[str, Any], int]:
        """The answer to a request that failed, and its status code."""
        return {"error": error.message, "hint": error.hint}, 400

    def give_up(self) -> None:
        """Stops all work at its next call of :func:`check_wanted`."""
        self.closing = True
        for job in list(self._jobs.values()):
            job.given_up.set()

    # -- admission ---------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, as the entry point of an ASGI application."""
        if scope["type"] == "http":
            await self._app(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        response = self._turned_away(request)
        if response is None:
            response = await self._admitted(request)
        if response is None:
            return  # the client has disconnected
        response.headers["Content-Security-Policy"] = self._policy
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
        response.headers["Cache-Control"] = "no-store"
        await response(scope, receive, send)

    def _turned_away(self, request: Request) -> Response | None:
        """The answer to a request that is not admitted; None if it is admitted."""
        own = {f"{HOST}:{self.port}", f"localhost:{self.port}"}
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in own:
            return _plain(
                f"this server answers only to its own address: {HOST}:{self.port} (a tunnel has "
                "to end at the same port)",
                421,
            )
        path = request.scope["path"]
        if not _is_from_here(request, hosts[0], opens=self.is_document(path)):
            return _plain("this server answers only to its own pages", 403)
        if request.method not in {"GET", "POST"}:
            return _plain("this server accepts only GET and POST", 405)
        if request.method == "GET" and self.file(path) is not None:
            return None
        if self.is_document(path):
            if request.method != "GET":
                return _plain("nothing can be changed here", 405)
            if not self._is_token(request.query_params.get("token", "")):
                return _plain(f"open the address that `{self._command}` printed", 403)
        elif not self._is_token(request.headers.get(TOKEN_HEADER, "")):
            return _json({"error": "the server was restarted; load the page again"}, 403)
        return None

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())

    # -- the work ----------------------------------------------------------------------------------

    async def _admitted(self, request: Request) -> Response | None:
        body = await _read(request)
        if body is None:
            return _json({"error": "the request is too large"}, 413)
        job = self._job(request, body)
        if job is None:
            busy = _json({"error": "too many requests at once; try again"}, 503)
            busy.headers["Retry-After"] = "1"
            return busy
        job.waiting += 1
        disconnected = asyncio.ensure_future(_disconnection(request))
        try:
            waits: set[asyncio.Future[Any]] = {job.answer, disconnected}
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if not job.answer.done():
                return None
            return _plain("given up", 503) if job.answer.cancelled() else job.answer.result()
        finally:
            disconnected.cancel()
            job.waiting -= 1
            if not job.waiting:
                job.given_up.set()

    def _job(self, request: Request, body: bytes) -> _Job | None:
        """The job of a request, which may already be running; None if there are too many jobs."""
        query = sorted(pair for pair in request.query_params.multi_items() if pair[0] != "token")
        path = request.scope["path"]
        key: object = (path, *query) if self._only_reads else object()
        same = self._jobs.get(key)
        if same is not None and not same.given_up.is_set():
            return same
        if self.closing or len(self._jobs) >= MAX_WAITING:
            return None
        if same is not None:
            key = object()  # nobody waits for the earlier job any more
        job = self._jobs[key] = _Job(asyncio.get_running_loop().create_future())
        # The task belongs to the loop, because other requests may wait for the same answer.
        working = asyncio.ensure_future(self._work(job, request, body))

        def over(_: asyncio.Future[None]) -> None:
            self._jobs.pop(key, None)
            if not job.answer.done():
                job.answer.cancel()

        working.add_done_callback(over)
        return job

    async def _work(self, job: _Job, request: Request, body: bytes) -> None:
        """Computes an answer in a thread, so that it does not block other requests.

        A thread that only reads ends with the process; the process waits for one that writes.
        """
        async with self._at_work:
            if job.given_up.is_set():
                return
            loop, over = asyncio.get_running_loop(), asyncio.Event()

            def settle(response: Response | None) -> None:
                if response is not None and not job.answer.done():
                    job.answer.set_result(response)
                over.set()

            def work() -> None:
                response = None
                try:
                    # A request that changes something is finished even if nobody waits for it.
                    if request.method == "GET":
                        _given_up.set(job.given_up)
                    response = self._answer(request, body)
                finally:
                    with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                        loop.call_soon_threadsafe(settle, response)

            context = contextvars.copy_context()
            threading.Thread(
                target=context.run, args=(work,), daemon=request.method == "GET"
            ).start()
            await over.wait()

    def _answer(self, request: Request, body: bytes) -> Response:
        path = request.scope["path"]
        if request.method == "GET" and (fixed := self.file(path)) is not None:
            return Response(fixed[0], media_type=fixed[1])
        is_document = self.is_document(path)
        try:
            if is_document:
                page = self.document(path, request)
                self.on_open()
                return Response(page.encode("utf-8", "replace"), media_type="text/html")
            answer = self.respond(request.method, path, request, body)
        except UnwantedError as error:
            return _plain(error.message, 503)
        except JudgeError as error:
            message, status = self.refusal(error)
            lines = [message["error"], message.get("hint") or ""]
            return (
                _plain("\n".join(filter(None, lines)), status)
                if is_document
                else _json(message, status)
            )
        except Exception as error:  # noqa: BLE001  shown on the page and in the terminal
            if not self.closing:  # when the server stops, interrupted requests fail
                traceback.print_exc(file=sys.stderr)
            text = f"the server failed: {type(error).__name__}: {error}"
            return _json({"error": text, "hint": "Nothing that was shown as kept is lost."}, 500)
        if answer is None:
            return _json({"error": "there is no such page"}, 404)
        return _json(answer)


def _is_from_here(request: Request, host: str, *, opens: bool) -> bool:
    """Whether a request comes from a page of this server, or from a person.

    Browsers send the origin of a request, and no script can change it. A client that does not send
    it is an old browser or not a browser at all; it still needs the token.

    Args:
        request: the request.
        host: the host that it is for.
        opens: whether it is for a document, to which a link may lead.
    """
    origins = request.headers.getlist("origin")
    if any(origin != f"http://{host}" for origin in origins):
        return False
    sites = request.headers.getlist("sec-fetch-site")
    if all(site in _FETCHED_BY for site in sites):
        return True
    return (
        opens
        and request.method == "GET"
        and request.headers.getlist("sec-fetch-mode") == ["navigate"]
        and request.headers.getlist("sec-fetch-dest") == ["document"]
    )


async def _disconnection(request: Request) -> None:
    """Waits until the client has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _read(request: Request) -> bytes | None:
    """The body of a request; None if it is over the limit."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            return None
    return bytes(body)


def object_of(body: bytes) -> Mapping[str, Any]:
    """The JSON object of a request.

    Raises:
        UsageError: the body is not a JSON object.
    """
    try:
        document = parse_json(body)
    except MalformedError as error:
        raise UsageError("the request is not JSON") from error
    if not isinstance(document, dict):
        raise UsageError("the request is not an object")
    return document


def _plain(text: str, status: int) -> Response:
    return Response(
        f"{text}\n".encode("utf-8", "replace"), status_code=status, media_type="text/plain"
    )


def _json(document: Mapping[str, Any], status: int = 200) -> Response:
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return Response(
        text.encode("utf-8", "replace"), status_code=status, media_type="application/json"
    )


def listen(page: LocalPage, port: int = 0) -> socket.socket:
    """Listens on a port for the page; from now on, connections wait until it is served.

    Args:
        page: the page; its port is set.
        port: the port; 0 for any free one.

    Raises:
        UsageError: the port is in use.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError as error:
        listener.close()
        raise UsageError(
            f"cannot listen on port {port}: {error.strerror}",
            hint="Choose another with --port; 0 means any free port.",
        ) from error
    listener.listen()
    page.port = listener.getsockname()[1]
    return listener


class _Server(uvicorn.Server):
    """A server that stops the work of its page when a signal ends the server."""

    def __init__(self, page: LocalPage) -> None:
        super().__init__(
            uvicorn.Config(
                page,
                access_log=False,
                log_level="critical",
                use_colors=False,
                server_header=False,
                lifespan="off",
                ws="none",
                proxy_headers=False,
                timeout_graceful_shutdown=3,
            )
        )
        self._page = page

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serves until SIGINT, SIGTERM or SIGHUP; at the end, restores the former handlers.

        uvicorn takes the signals only once its event loop runs. Until then, the handlers of the
        command would raise an exception within the code of the loop, which prints some of these
        exceptions with a traceback. So they are taken before the loop is made.
        """
        with super().capture_signals(), self._capturing_hangup():
            super().run(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures nothing: :meth:`run` has captured them."""
        yield

    @contextlib.contextmanager
    def _capturing_hangup(self) -> Iterator[None]:
        takes = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN
        )
        before = signal.signal(signal.SIGHUP, self.handle_exit) if takes else None
        try:
            yield
        finally:
            if takes:
                signal.signal(signal.SIGHUP, before)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Starts the shutdown."""
        self._page.give_up()
        super().handle_exit(sig, frame)


def server_of(page: LocalPage) -> uvicorn.Server:
    """A server for the page; ``run(sockets=[…])`` serves until it is interrupted.

    It does not log requests, because their addresses contain the token.
    """
    return _Server(page)


_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>{title}</title>
<a href="{address}">Open the page</a>
"""


class Redirect:
    """A file that redirects a browser to an address.

    Args:
        folder: a private folder for this file only.
        address: the address.
        title: the title of the page.
    """

    def __init__(self, folder: Path, address: str, title: str) -> None:
        self._folder = folder
        self.path = folder / "page.html"
        write_new(
            self.path,
            _PAGE.format(address=html.escape(address), title=html.escape(title)).encode(),
            mode=0o600,
        )

    @property
    def uri(self) -> str:
        """The address of the file, which does not contain a secret."""
        return self.path.as_uri()

    def remove(self) -> None:
        """Deletes the file and its folder; safe to call twice, and from any thread."""
        shutil.rmtree(self._folder, ignore_errors=True)


@contextlib.contextmanager
def redirect_to(address: str, title: str = "judge annotate") -> Iterator[Redirect]:
    """Makes a redirect to an address, in a private folder that is deleted at the end."""
    folder = Path(tempfile.mkdtemp(prefix="judge-page-"))  # mode 0700
    try:
        yield Redirect(folder, address, title)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
