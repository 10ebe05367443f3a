"""Connections of the server as strangers hold them open."""

from __future__ import annotations

import asyncio
import contextlib

import uvicorn
from uvicorn.server import ServerState

from judge.serve.running import _PromptHeads


class Hasty(_PromptHeads):
    head_s = 0.05


async def ask(first: bytes, drip: bytes) -> bytes:
    """What a server says until it closes a connection on which bytes come one by one."""

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
