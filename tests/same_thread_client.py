"""A client of an application in this process that needs no threads.

Starlette's client starts a thread and an event loop for each request, and goes to that thread and
back seven times; FastAPI then hands every dependency, and every route that is no coroutine, to one
more thread. In tests of the server that took as much processor time as the routes themselves. Here
the loop runs in the thread of the test, and so does everything that a request calls.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

import anyio.to_thread
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette import testclient
from starlette.types import Message

httpx = testclient.httpx  # type: ignore[attr-defined] # whichever Starlette has

_here = threading.local()
_run_in_a_thread = anyio.to_thread.run_sync


class SameThreadClient(TestClient):
    """Starlette's client, which needs its threads only for streams and from other threads.

    Args:
        app: the application.
        raise_server_exceptions: whether an exception that the application does not handle is raised
            here, and not only answered.
    """

    def __init__(self, app: FastAPI, *, raise_server_exceptions: bool = True) -> None:
        super().__init__(app, raise_server_exceptions=raise_server_exceptions)
        self._with_threads = self._transport
        self._raises = raise_server_exceptions

    def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
        """Sends a request; the response has its whole body unless ``stream`` is set."""
        in_main_thread = threading.current_thread() is threading.main_thread()
        if stream or not in_main_thread or asyncio._get_running_loop() is not None:
            self._transport = self._with_threads
        else:
            self._transport = _SameThread(self.app, self._raises)
        return super().send(request, stream=stream, **options)


class _SameThread(httpx.BaseTransport):  # type: ignore[misc, name-defined]
    def __init__(self, app: Any, raises: bool) -> None:
        self._app = app
        self._raises = raises

    def handle_request(self, request: Any) -> Any:
        response = _Response()
        try:
            with _everything_here():
                _loop().run_until_complete(self._app(*_call(request, response)))
        except Exception:
            if self._raises:
                raise
        finally:
            asyncio.runners._cancel_all_tasks(_loop())  # type: ignore[attr-defined]
        body = b"" if request.method == "HEAD" else b"".join(response.body)
        return httpx.Response(
            response.status, headers=response.headers, content=body, request=request
        )


class _Response:
    """The response that the application sent."""

    def __init__(self) -> None:
        self.status = 500  # of an application that sends nothing
        self.headers: list[tuple[str, str]] = []
        self.body: list[bytes] = []
        self.complete = asyncio.Event()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            assert not self.headers, "a response starts twice"
            self.status = message["status"]
            self.headers = [
                (name.decode(), value.decode()) for name, value in message.get("headers", ())
            ]
        else:
            assert message["type"] == "http.response.body", message["type"]
            assert not self.complete.is_set(), "a response goes on after its end"
            self.body.append(message.get("body", b""))
            if not message.get("more_body", False):
                self.complete.set()


def _call(
    request: Any, response: _Response
) -> tuple[dict[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]]:
    """The three arguments with which an ASGI application is called."""
    url, messages = request.url, iter([request.read()])
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": request.method,
        "path": unquote(url.path),
        "raw_path": url.raw_path.split(b"?", 1)[0],
        "root_path": "",
        "scheme": url.scheme,
        "query_string": url.query,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "client": ("testclient", 50000),
        "server": [url.host, url.port or {"http": 80, "https": 443}[url.scheme]],
        "extensions": {},
        "state": {},
    }

    async def receive() -> Message:
        for body in messages:
            return {"type": "http.request", "body": body}
        await response.complete.wait()
        return {"type": "http.disconnect"}

    return scope, receive, response.send


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


@contextmanager
def _everything_here() -> Iterator[None]:
    """Work that would be passed to another thread runs in this one."""
    _here.is_set = True
    try:
        yield
    finally:
        _here.is_set = False


async def _run_here(call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    if not getattr(_here, "is_set", False):
        return await _run_in_a_thread(call, *arguments, **options)
    return contextvars.copy_context().run(call, *arguments)  # as a thread has a context of its own


anyio.to_thread.run_sync = _run_here  # type: ignore[assignment]
