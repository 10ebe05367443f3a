"""Limits on bodies, rate limits, cursors of lists, and entity tags: shared by all routes."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import ipaddress
import json
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Query, Request, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from judge.serve.access.rights import Viewer
from judge.serve.context import Caller, Server, server_of
from judge.serve.problems import KINDS, MEDIA_TYPE, Problem

WINDOW_S = 60  # the rates below are per minute
_MAX_BUCKETS = 10_000  # requesters whose requests are counted at a time; bounds the memory
_MAC_BYTES = 16  # of the MAC at the start of a cursor

RATES = {"submit": 30, "read": 600, "change": 60, "sign-in": 10}
"""Kind of request -> requests per minute of one account, or of one address without a token."""

Limit = Annotated[int, Query(ge=1, le=200, description="How many items a page has.")]
Cursor = Annotated[
    str | None, Query(max_length=200, description="Taken from the link to the next page.")
]

PRINTABLE = r"^[^\x00-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069]*$"
"""One line of text, without control characters and marks that change the text direction."""

MAX_BODY_BYTES = 2 << 20
"""Largest request body, in bytes, if :class:`BoundedBodies` has no limit for the route."""

_SILENCE_S = 60.0  # between two pieces of a body
_MIN_BYTES_PER_S = 20_000  # slower clients could occupy connections for hours

PROBLEM_SCHEMA = {
    "type": "object",
    "required": ["type", "title", "status", "instance"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "instance": {"type": "string"},
        "detail": {"type": "string"},
        "errors": {"type": "array", "items": {"type": "object"}},
    },
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    kind.status: {
        "description": kind.title,
        "content": {MEDIA_TYPE: {"schema": PROBLEM_SCHEMA}},
    }
    for kind in KINDS.values()
    if kind.status != 500
}
"""The errors that any route may return, for the OpenAPI document."""


class BoundedBodies:
    """Refuses a body that is longer than its route accepts, or that arrives too slowly.

    Args:
        app: the application that answers.
        limits: largest body in bytes by path, without the prefix; :data:`MAX_BODY_BYTES` for all
            other paths.
        silence_s: the longest pause between two pieces. Once a request has lasted this long, its
            average rate must also reach a minimum.
    """

    def __init__(
        self, app: ASGIApp, limits: Mapping[str, int], silence_s: float = _SILENCE_S
    ) -> None:
        self._app = app
        self._limits = limits
        self._silence_s = silence_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = str(scope["path"]).removeprefix(str(scope.get("root_path", "")))
        most = self._limits.get(path, MAX_BODY_BYTES)
        if path.startswith("/v1/suites/") and path.endswith("/revisions"):
            most = self._limits.get("/v1/suites", most)
        size, started, ended = 0, time.monotonic(), False

        async def bounded() -> Message:
            nonlocal size, ended
            if ended:  # after the body, the only message is that the client has disconnected
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), self._silence_s)
            except TimeoutError as error:
                raise HTTPException(400, "The body arrived too slowly.") from error
            ended = message["type"] != "http.request" or not message.get("more_body", False)
            size += len(message.get("body", b""))
            if size > most:
                raise HTTPException(413)
            if time.monotonic() - started > self._silence_s + size / _MIN_BYTES_PER_S:
                raise HTTPException(400, "The body arrived too slowly.")
            return message

        await self._app(scope, bounded, send)


@dataclass(slots=True)
class _Bucket:
    started: float
    used: int = 0


@dataclass(slots=True)
class Rates:
    """Rate-limit buckets of one process, by kind of request and by requester."""

    limits: Mapping[str, int] = field(default_factory=lambda: dict(RATES))
    clock: Callable[[], float] = time.monotonic
    _buckets: dict[tuple[str, str], _Bucket] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, kind: str, who: str) -> dict[str, str]:
        """Counts a request.

        Returns:
            The headers that say how many requests are left.

        Raises:
            Problem: 429.
        """
        now, most = self.clock(), self.limits[kind]
        with self._lock:
            bucket = self._buckets.get((kind, who))
            if bucket is None or now - bucket.started >= WINDOW_S:
                if len(self._buckets) >= _MAX_BUCKETS:
                    self._forget(now)
                bucket = self._buckets[kind, who] = _Bucket(now)
            bucket.used += 1
            left = most - bucket.used
            reset = max(1, math.ceil(bucket.started + WINDOW_S - now))
        headers = {
            "RateLimit-Policy": f'"{kind}";q={most};w={WINDOW_S}',
            "RateLimit": f'"{kind}";r={max(0, left)};t={reset}',
        }
        if left < 0:
            raise Problem("too-many-requests", headers={**headers, "Retry-After": str(reset)})
        return headers

    def _forget(self, now: float) -> None:
        for key in [key for key, one in self._buckets.items() if now - one.started >= WINDOW_S]:
            del self._buckets[key]
        while len(self._buckets) >= _MAX_BUCKETS:
            del self._buckets[next(iter(self._buckets))]


def requester_key(caller: Viewer) -> str:
    """The key under which a caller's requests are counted: the account, or a visitor's address.

    All tokens of an account count together, and so do all addresses of an IPv6 /64 network.
    """
    if caller.account is not None:
        return caller.account
    try:
        ip = ipaddress.ip_address(caller.address or "")
    except ValueError:
        return f"address:{caller.address}"
    if isinstance(ip, ipaddress.IPv6Address):
        mapped = ip.ipv4_mapped
        return f"address:{mapped or ipaddress.IPv6Network((int(ip), 64), strict=False)}"
    return f"address:{ip}"


def rates_of(server: Server) -> Rates:
    """The rate limits of this process."""
    rates: Rates = server.shared.setdefault("rates", Rates())
    return rates


def rate(kind: str) -> Any:
    """A FastAPI dependency that counts requests to a route under this kind of :data:`RATES`."""

    def take(request: Request, caller: Caller) -> None:
        taken = rates_of(server_of(request)).take(kind, requester_key(caller))
        request.state.rate_headers = taken  # for every kind of answer

    return Depends(take)


def cursor_text(server: Server, of: str, value: str | int) -> str:
    """Makes an opaque cursor, which only this server can make.

    Args:
        server: the server.
        of: the list that the cursor is for; it is not valid for any other list.
        value: the sort key of the last item on the page.
    """
    text = json.dumps([of, value]).encode()
    return base64.urlsafe_b64encode(_mac(server, text) + text).decode("ascii").rstrip("=")


def cursor_value(server: Server, of: str, text: str) -> Any:
    """Reads the sort key from a cursor.

    Raises:
        Problem: 422, this server did not make the cursor for this list.
    """
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError as error:
        raise Problem("invalid", "The cursor does not belong to this list.") from error
    mac, body = data[:_MAC_BYTES], data[_MAC_BYTES:]
    if hmac.compare_digest(mac, _mac(server, body)):
        list_of, value = json.loads(body)
        if list_of == of:
            return value
    raise Problem("invalid", "The cursor does not belong to this list.")


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list: its length, where it starts, and the link to the next page."""

    request: Request
    response: Response
    server: Server
    limit: int
    cursor: str | None

    def since(self, of: str) -> Any:
        """The sort key of the last item on the previous page; None on the first page."""
        return None if self.cursor is None else cursor_value(self.server, of, self.cursor)

    def cut(self, of: str, rows: list[dict[str, Any]], by: str) -> list[dict[str, Any]]:
        """Limits the rows to this page, and links to the next page if a further row was read.

        Args:
            of: the name of the list.
            rows: the rows that were read; one more than :attr:`limit` if there is a next page.
            by: the column by which they are ordered.
        """
        shown = rows[: self.limit]
        if len(rows) > self.limit:
            cursor = cursor_text(self.server, of, shown[-1][by])
            url = self.request.url
            following = f"{url.path}?{url.include_query_params(cursor=cursor).query}"
            self.response.headers["Link"] = f'<{following}>; rel="next"'
        return shown


def page_of(request: Request, response: Response, limit: Limit = 50, cursor: Cursor = None) -> Page:
    """The page that a request names."""
    return Page(request, response, server_of(request), limit, cursor)


def entity_tag(version: int, view: str) -> str:
    """The entity tag of an object as a caller sees it: a hash of its version and of this view."""
    return f'"{version}-{hashlib.sha256(view.encode()).hexdigest()[:8]}"'


def required_version(if_match: str | None) -> str:
    """The entity tag in the header ``If-Match``, which every request for a change needs.

    Raises:
        Problem: 428, the header is missing.
    """
    if if_match is None:
        raise Problem("precondition-required")
    return if_match.strip()


def matches(header: str | None, tag: str) -> bool:
    """Whether a header such as ``If-None-Match`` names an entity tag."""
    if header is None:
        return False
    tags = {one.strip().removeprefix("W/") for one in header.split(",")}
    return tag in tags or "*" in tags


def _mac(server: Server, text: bytes) -> bytes:
    secret = server.folder.secret("cursors.key")
    return hmac.new(secret, text, hashlib.sha256).digest()[:_MAC_BYTES]


Paging = Annotated[Page, Depends(page_of)]
