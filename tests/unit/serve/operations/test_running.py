"""How the server starts, and connections that strangers keep open."""

from __future__ import annotations

import asyncio
import contextlib
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import uvicorn
from uvicorn.server import ServerState

from judge.errors import UsageError
from judge.serve.access.accounts import create_account
from judge.serve.options import StorageOptions
from judge.serve.running import _PromptHeads, opened
from judge.serve.store.database import Actor
from tests.postgresql import new_database

MAKING = "judge.serve.running.create_account"
_WAITS = sa.text(
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE wait_event_type = 'Lock' AND datname = current_database()"
)


class Hasty(_PromptHeads):
    head_s = 0.05


async def ask(first: bytes, drip: bytes) -> bytes:
    """Returns a server's output until it closes a connection on which bytes arrive one by one."""

    async def app(scope: object, receive: object, send: object) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})  # type: ignore[operator]
        await send({"type": "http.response.body"})  # type: ignore[operator]

    config = uvicorn.Config(app, lifespan="off", log_level="critical", timeout_keep_alive=3600)
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Hasty(config, state, {}), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(first)

    async def go_on() -> None:
        while drip:
            writer.write(drip)
            await asyncio.sleep(0.01)

    dripping = asyncio.ensure_future(go_on())
    said = b""
    try:
        with contextlib.suppress(ConnectionResetError):  # by what was still on its way
            while piece := await reader.read(1000):
                said += piece
        return said
    finally:
        dripping.cancel()
        writer.close()
        server.close()


def test_a_connection_without_a_request_is_closed() -> None:
    assert asyncio.run(ask(b"", b"")) == b""
    assert asyncio.run(ask(b"GET / HTTP/1.1\r\nX: ", b"x")) == b"", "however it drips"


def test_so_is_one_that_has_had_an_answer() -> None:
    whole = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    assert b"204" in asyncio.run(ask(whole + b"GET / HTTP/1.1\r\nX: ", b"x"))


def test_a_server_and_a_dispatcher_that_start_at_once_make_one_operator(
    tmp_path: Path, postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Compose starts them: the second begins while the first creates the account."""
    codes: list[str | None] = []
    with new_database("postgresql", tmp_path, postgresql_url) as database:
        place = StorageOptions(
            data=tmp_path / "data", database=database.url.render_as_string(hide_password=False)
        )

        def start() -> None:
            with opened(place) as made:
                codes.append(made.code)

        second = threading.Thread(target=start)

        def slow(*arguments: Any, **others: Any) -> str:
            monkeypatch.setattr(MAKING, create_account)
            second.start()
            with database.reading() as connection:
                while second.is_alive() and not connection.scalar(_WAITS):
                    connection.rollback()
                    time.sleep(0.01)
            return create_account(*arguments, **others)

        monkeypatch.setattr(MAKING, slow)
        start()
        second.join()
    assert [code is None for code in codes].count(False) == 1


def test_one_name_that_two_administrators_take_in_the_same_moment(
    tmp_path: Path, postgresql_url: str
) -> None:
    """The second sees no account of that name, waits for the first, and gets a readable error."""
    errors: list[str] = []
    with new_database("postgresql", tmp_path, postgresql_url) as database:
        database.migrate()

        def make() -> None:
            try:
                with database.writing(Actor("second")) as transaction:
                    create_account(transaction, "ann")
            except UsageError as error:
                errors.append(error.message)

        second = threading.Thread(target=make)
        with database.writing(Actor("first")) as transaction:
            create_account(transaction, "ann")
            second.start()
            with database.reading() as connection:
                while second.is_alive() and not connection.scalar(_WAITS):
                    connection.rollback()
                    time.sleep(0.01)
        second.join()
    assert errors == ["there is an account 'ann' already"]


def test_nobody_else_reads_the_data_folder(tmp_path: Path) -> None:
    """Nor one that an earlier version left open; what is shared with a group stays shared."""
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    with opened(StorageOptions(data=data)) as made:
        assert stat.S_IMODE(data.stat().st_mode) == 0o750
        assert stat.S_IMODE(made.server.folder.database.stat().st_mode) == 0o600
    with opened(StorageOptions(data=tmp_path / "new")) as made:
        assert stat.S_IMODE(made.server.folder.path.stat().st_mode) == 0o700
