"""A page that is really served, and raw requests to it."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Iterator, Mapping

from judge.local_page import TOKEN_HEADER, LocalPage, listen, server_of

Answer = tuple[int, http.client.HTTPMessage, bytes]


@contextlib.contextmanager
def served(page: LocalPage) -> Iterator[LocalPage]:
    """Serves a page from a thread."""
    listener = listen(page)
    server = server_of(page)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield page
    finally:
        page.give_up()
        server.should_exit = True
        thread.join(timeout=120)
        listener.close()
        assert not thread.is_alive()


def begin(
    page: LocalPage,
    method: str,
    path: str,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> http.client.HTTPConnection:
    """Sends a request with only these headers, and a Host if none is among them."""
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=120)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in {"Host": f"127.0.0.1:{page.port}", **(headers or {})}.items():
        connection.putheader(name, value)
    if body is not None:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    return connection


def answer_of(connection: http.client.HTTPConnection) -> Answer:
    """The response."""
    answer = connection.getresponse()
    found = answer.status, answer.msg, answer.read()
    connection.close()
    return found


def ask(
    page: LocalPage,
    method: str,
    path: str,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> Answer:
    """Sends a request with the token in its header; returns the response."""
    given = {TOKEN_HEADER: page.token, **(headers or {})}
    return answer_of(begin(page, method, path, given, body))
