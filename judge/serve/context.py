"""What every route of one server needs: database, data folder, options, and the caller."""

from __future__ import annotations

import hashlib
import hmac
import shlex
import shutil
import sys
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from judge.serve.access.accounts import Session, session_of_cookie, viewer_of_token
from judge.serve.access.rights import Viewer
from judge.serve.problems import Problem
from judge.serve.store import tables as t
from judge.serve.store.database import Database
from judge.serve.store.folder import DataFolder

ADDRESS = "address"
"""Name of the setting that has the server's last address, which links on a terminal begin with."""

OIDC = "oidc"
"""Name of the setting with the provider of identities: issuer, client, secret, title."""


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of a server.

    Attributes:
        public_url: the URL at which people reach the server, with its path prefix, if any, and
            without a final slash; empty on the loopback address.
        secure: whether cookies are sent only over HTTPS.
        hosts: the host names that it answers to, as a protection against DNS rebinding; if empty,
            it answers to any name.
        max_queue: how many judgings may wait before submissions are refused.
    """

    public_url: str = ""
    secure: bool = False
    hosts: AbstractSet[str] = frozenset()
    max_queue: int = 10_000


@dataclass(slots=True)
class Server:
    """One process of the server.

    Attributes:
        database: open, with the current schema.
        folder: its data folder.
        options: the options of the server.
        shared: objects that parts of the server keep between requests, by name.
    """

    database: Database
    folder: DataFolder
    options: ServeOptions = field(default_factory=ServeOptions)
    shared: dict[str, Any] = field(default_factory=dict)

    @property
    def cookie(self) -> str:
        """Name of the session's cookie."""
        return "__Host-judge" if self.options.secure else "judge"

    @property
    def program(self) -> str:
        """The judge's name in commands to copy; its path if it cannot be found through PATH."""
        called, on_path = Path(sys.argv[0]), shutil.which("judge")
        if called.name != "judge" or (on_path and Path(on_path).resolve() == called.resolve()):
            return "judge"
        return shlex.quote(str(called))

    @property
    def where(self) -> str:
        """The options with which `judge serve admin` finds this server, without passwords."""
        options = ["--data", str(self.folder.path)]
        if not self.database.is_sqlite:
            options += ["--database", self.database.url.render_as_string()]
        return shlex.join(options)

    def form_token(self, session: str) -> str:
        """The value of the hidden field ``token`` in every form of a session."""
        secret = self.folder.secret("forms.key")
        return hmac.new(secret, session.encode("ascii"), hashlib.sha256).hexdigest()

    def setting(self, name: str) -> Any:
        """The value of a setting of the whole server; None if it is not set."""
        with self.database.reading() as connection:
            return connection.scalar(sa.select(t.setting.c.value).where(t.setting.c.name == name))


def server_of(request: Request) -> Server:
    """The server that a request came to."""
    server: Server = request.app.state.server
    return server


async def viewer_of(request: Request) -> Viewer:
    """The caller: identified by a token or, if the request only reads, by the session cookie.

    Raises:
        Problem: 401, the token is not valid.
    """
    server = server_of(request)
    address = request.client.host if request.client is not None else None
    request_id = str(getattr(request.state, "request_id", "")) or None
    header = request.headers.get("authorization")
    if header is not None:
        scheme, _, text = header.partition(" ")
        viewer = None
        if scheme.lower() == "bearer":
            viewer = await run_in_threadpool(
                viewer_of_token, server.database, text.strip(), address=address, request=request_id
            )
        if viewer is None:
            raise Problem("unauthorized")
        return viewer
    if request.method in {"GET", "HEAD"}:
        session = await session_of(request)
        if session is not None:
            return session.viewer
    return Viewer(address=address, request=request_id)


async def session_of(request: Request) -> Session | None:
    """The page session that a request belongs to; None for visitors."""
    server = server_of(request)
    cookie = request.cookies.get(server.cookie)
    if cookie is None:
        return None
    address = request.client.host if request.client is not None else None
    request_id = str(getattr(request.state, "request_id", "")) or None
    return await run_in_threadpool(
        session_of_cookie, server.database, cookie, address=address, request=request_id
    )


ThisServer = Annotated[Server, Depends(server_of)]
Caller = Annotated[Viewer, Depends(viewer_of)]
