"""The cost of a server that sends too much, too slowly, compressed, or redirects.

Nothing here is timed: a server without end counts what the client took of it before it hung up.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gzip
import json
import time
import zlib
from collections.abc import Callable

import pytest

from judge.errors import InferenceError, UsageError
from judge.inference.chat import (
    CallError,
    ChatReply,
    ChatRequest,
    NotACompletionError,
    read_reply,
    read_retry_after,
)
from judge.inference.client import MAX_BODY_BYTES, OpenAIChatModel, RetryPolicy
from judge.inference.config import check_address, origin_of
from tests.bounds import in_bounds
from tests.inference.raw_server import Exchange, RawServer, Send, raw_server

pytestmark = pytest.mark.slow

REQUEST = ChatRequest("m", ({"role": "user", "content": "hello"},))
KEY = "sk-of-this-server-alone"
ONCE = RetryPolicy(attempts=1, first_wait_s=0.01, call_timeout_s=30.0)
OFFERED = 200_000_000
"""How many bytes an endless server would send."""

BUFFERED = 48_000_000
"""How many bytes sockets may hold in addition to what the client read."""

GOOD = json.dumps({"choices": [{"message": {"content": "right"}}], "data": [{"id": "m-1"}]})
Ask = Callable[[OpenAIChatModel], object]


def chat(url: str, policy: RetryPolicy = ONCE) -> ChatReply:
    async def run() -> ChatReply:
        model = OpenAIChatModel(url, KEY, policy=policy)
        try:
            return await model.complete(REQUEST)
        finally:
            await model.close()

    return asyncio.run(run())


def models(url: str, policy: RetryPolicy = ONCE) -> str:
    async def run() -> str:
        model = OpenAIChatModel(url, KEY, policy=policy)
        try:
            return await model.only_model()
        finally:
            await model.close()

    return asyncio.run(run())


def flood(exchange: Exchange, chunk: bytes = b"x" * 1_000_000) -> None:
    while exchange.sent < OFFERED:
        exchange.send(chunk)


def endless(status: int, *headers: str, first: bytes = b"") -> Send:
    def send(exchange: Exchange) -> None:
        exchange.begin(status, *headers)
        exchange.send(first)
        flood(exchange)

    return send


ENDLESS = {
    "a reply": endless(200),
    "an error": endless(400),
    "an error with a reason": endless(401, first=b'{"error": {"message": "'),
    "a redirect": endless(307, "Location: /v1/other"),
    "behind the end of a packed reply": endless(
        200, "Content-Encoding: gzip", first=gzip.compress(GOOD.encode())
    ),
}


@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.parametrize("ask", [chat, models])
def test_nothing_without_end_is_read_whole(name: str, ask: Callable[[str], object]) -> None:
    with raw_server(ENDLESS[name]) as server:
        with pytest.raises((CallError, InferenceError)):
            ask(server.url)
        assert len(server.exchanges) == 1
        assert server.sent < MAX_BODY_BYTES + BUFFERED < OFFERED


@functools.cache
def packed(size: int, window: int) -> bytes:
    """A number of zeros, compressed about a thousand times."""
    packer = zlib.compressobj(9, zlib.DEFLATED, window)
    return b"".join(packer.compress(b"\0" * 1_000_000) for _ in range(size // 1_000_000)) + (
        packer.flush()
    )


def answering(status: int, body: bytes, *headers: str) -> Send:
    return lambda exchange: exchange.answer(status, body, *headers)


@pytest.mark.parametrize("window", [31, 15, -15])
def test_a_small_reply_that_unpacks_to_gigabytes(window: int) -> None:
    name = "gzip" if window == 31 else "deflate"
    bomb = answering(200, packed(30_000_000, window), f"Content-Encoding: {name}")
    with raw_server(bomb) as server:
        with pytest.raises(CallError, match="longer than 8388608 bytes once unpacked"):
            chat(server.url)
        with pytest.raises(InferenceError, match="once unpacked"):
            models(server.url)
    bomb = answering(400, packed(30_000_000, window), f"Content-Encoding: {name}")
    with raw_server(bomb) as server, pytest.raises(CallError, match="server says 400") as caught:
        chat(server.url)
    assert len(caught.value.message) < 1000


@pytest.mark.parametrize("name", ["gzip", "x-gzip", "deflate", "identity"])
def test_a_server_may_pack_although_nobody_asked(name: str) -> None:
    body = gzip.compress(GOOD.encode()) if "gzip" in name else GOOD.encode()
    body = zlib.compress(body) if name == "deflate" else body
    with raw_server(answering(200, body, f"Content-Encoding: {name}")) as server:
        assert chat(server.url).text == "right"
        assert models(server.url) == "m-1"
        assert "accept-encoding: identity" in server.heads.lower()


@pytest.mark.parametrize(("name", "words"), [("br", "not requested"), ("gzip", "be unpacked")])
def test_what_cannot_be_unpacked_is_a_fault(name: str, words: str) -> None:
    sent = answering(200, gzip.compress(GOOD.encode())[:-9], f"Content-Encoding: {name}")
    with raw_server(sent) as server, pytest.raises(CallError, match=words):
        chat(server.url)


def dripping(status: int) -> Send:
    def send(exchange: Exchange) -> None:
        exchange.begin(status)
        exchange.send(b'{"error": "')
        for _ in range(600):  # a minute, which no attempt may take
            exchange.send(b" ")
            time.sleep(0.1)

    return send


def test_the_time_limit_is_for_everything() -> None:
    policy = RetryPolicy(attempts=1, call_timeout_s=0.8)
    with raw_server(dripping(200)) as server:
        with pytest.raises(CallError, match=r"no whole reply within 0\.8 s"):
            chat(server.url, policy)
        with pytest.raises(InferenceError, match=r"no whole reply within 0\.8 s"):
            models(server.url, policy)


def test_an_error_is_what_its_status_says_before_its_last_byte_is_there() -> None:
    policy = RetryPolicy(attempts=3, call_timeout_s=3)
    with raw_server(dripping(401)) as server:
        with pytest.raises(CallError, match="the server says 401") as caught:
            chat(server.url, policy)
        assert len(server.exchanges) == 1
        assert caught.value.kind == "access"
        with pytest.raises(InferenceError, match="the server says 401"):
            models(server.url, policy)


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        (
            b"<html>\n<head><title>\n502 Bad Gateway </title></head><body><h1>502</h1>",
            "502 Bad Gateway",
        ),
        (b"<!DOCTYPE HTML>\n<html lang='en'><meta charset='utf-8'><title>No</title>", "No"),
        (b"<html>no title</html>", "<html>no title</html>"),
        (b"busy", "busy"),
    ],
)
def test_of_an_error_page_only_the_title_is_shown(page: bytes, shown: str) -> None:
    with raw_server(lambda exchange: exchange.answer(403, page)) as server:
        with pytest.raises(CallError) as caught:
            chat(server.url, RetryPolicy(attempts=1))
        assert caught.value.message.endswith(f"the server says 403: {shown}")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_said_and_not_followed(status: int) -> None:
    """Neither to another host, which would receive the prompt, nor in circles."""
    with raw_server(answering(200, GOOD.encode())) as other:
        location = f"Location: {other.url.replace('http://', 'http://me:pw@')}/chat?x=1"
        with raw_server(answering(status, b"", location)) as server:
            with pytest.raises(CallError, match="redirects are not followed") as caught:
                chat(server.url)
            with pytest.raises(InferenceError, match="redirects are not followed"):
                models(server.url)
        assert caught.value.kind == "access"
        assert f"'{other.url}/chat'" in caught.value.message
        assert other.exchanges == []


BAD_LISTS = {
    "not json": b"<html>",
    "no list": b'{"object": "list"}',
    "an error": b'{"error": {"message": "overloaded"}}',
    "deep": b"[" * 200_000,
    "other entries": b'{"data": [1, 2]}',
    "a name that is none": b'{"data": [{"id": {"a": 1}}]}',
    "a name that steers a terminal": b'{"data": [{"id": "m\\u001b[2J"}]}',
    "a name of a megabyte": b'{"data": [{"id": "' + b"m" * 1_000_000 + b'"}]}',
    "many": json.dumps({"data": [{"id": "m" * 400}] * 1000}).encode(),
}


@pytest.mark.parametrize("name", BAD_LISTS)
def test_a_list_of_models_that_is_none(name: str) -> None:
    sent = answering(200, BAD_LISTS[name])
    with raw_server(sent) as server, pytest.raises(InferenceError) as caught:
        models(server.url)
    assert len(caught.value.message) < 6000
    assert "\x1b" not in caught.value.message


def test_headers_without_end_cost_an_attempt() -> None:
    def send(exchange: Exchange) -> None:
        exchange.send(b"HTTP/1.1 200 OK\r\n")
        while exchange.sent < OFFERED:
            exchange.send(b"X-More: %s\r\n" % (b"y" * 4000))

    with raw_server(send) as server:
        with pytest.raises(CallError):
            chat(server.url)
        assert server.sent < BUFFERED


def said_to(server: RawServer) -> set[str]:
    return {line.split(":")[0].lower() for line in server.heads.splitlines()[1:] if ":" in line}


def test_variables_of_openai_are_for_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK would send them to every server to which it is pointed."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-openai")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-secret-admin")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-secret")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: secret\nAuthorization: Bearer secret")
    with raw_server(answering(200, GOOD.encode())) as server:
        assert chat(server.url).text == "right"
        assert models(server.url) == "m-1"
        assert f"authorization: Bearer {KEY}" in server.heads
        assert "secret" not in server.heads
        assert said_to(server) <= {
            "host", "authorization", "accept", "accept-encoding", "content-type", "content-length",
            "connection", "user-agent",
        }  # fmt: skip


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999", "9" * 5000, "nan\u0660"])
@pytest.mark.parametrize("name", ["retry-after", "retry-after-ms"])
def test_waits_that_are_no_numbers(name: str, value: str) -> None:
    assert read_retry_after({name: value}) is None


def test_dates_to_wait_for_count_from_the_servers_clock() -> None:
    """Independent of our own clock, which may be wrong or be set during a run."""
    headers = {"date": "Mon, 03 Jan 2000 10:00:00 GMT"}
    later = headers | {"retry-after": "Mon, 03 Jan 2000 10:01:30 GMT"}
    assert read_retry_after(later) == 90.0
    assert read_retry_after(later | {"date": "Tue, 04 Jan 2000 00:00:00 GMT"}) == 0.0
    assert read_retry_after({"retry-after": "Mon, 03 Jan 2000 10:01:30 GMT"}) == 0.0
    assert read_retry_after({"retry-after": "Mon, 03 Jan 2000 10:01:30 -0000"}) == 0.0
    for odd in ("Mon, 03 Jan 99999 10:01:30 GMT", "Fri, 31 Dec 9999 23:59:59 -9999", "Mon" * 9999):
        assert read_retry_after(headers | {"retry-after": odd}) in {None, 0.0} or odd[:3] == "Fri"


def test_a_wait_that_is_not_a_number_delays_nothing() -> None:
    answers = iter([(429, b"{}", "Retry-After-Ms: nan"), (200, GOOD.encode(), "X-Nothing: 1")])
    with raw_server(lambda exchange: exchange.answer(*next(answers))) as server:
        assert chat(server.url, RetryPolicy(attempts=2, first_wait_s=0.01)).text == "right"


def test_counts_that_no_server_can_have_made_are_none() -> None:
    usage = {"prompt_tokens": 10**300, "completion_tokens": 7}
    reply = read_reply(json.dumps(json.loads(GOOD) | {"usage": usage}).encode(), 0.0)
    assert (reply.prompt_tokens, reply.completion_tokens) == (None, 7)


@pytest.mark.parametrize(
    "url",
    ["", "api.openai.com/v1", "ftp://host/v1", "file:///etc/passwd", "http://", "http:///v1",
     "http://[::1", "http://host:port/v1", "http://host:99999/v1", "https://a b/v1",
     "https://api.openai.com\\@host/v1", "https://h\u00f6st/v1", "http://host/v1\n"],
)  # fmt: skip
def test_what_is_not_an_address_of_a_server(url: str) -> None:
    with pytest.raises(UsageError, match="is not the address of a chat server"):
        check_address(url)


def test_what_counts_as_the_same_server() -> None:
    one = origin_of("https://API.openai.com/v1")
    assert (
        one == origin_of("https://me:pw@api.openai.com:443/other?x") == "https://api.openai.com:443"
    )
    assert origin_of("https://api.openai.com./v1") == one
    others = ["http://api.openai.com/v1", "https://api.openai.com:8443/v1",
              "https://api.openai.com@host/v1", "https://api.openai.com.host/v1"]  # fmt: skip
    assert all(origin_of(check_address(each)) != one for each in others)


# Made in the test: every worker would keep 40 MB of them.
MILLIONS: dict[str, Callable[[], bytes]] = {
    "empty choices": lambda: b'{"choices":[' + b"{}," * 1_000_000 + b"{}]}",
    "a choice and millions": lambda: (
        b'{"choices":[{"message":{"content":"x"}}' + b",{}" * 2_000_000 + b"]}"
    ),
    "parts": lambda: b'{"choices":[{"message":{"content":[' + b"{}," * 2_000_000 + b"{}]}}]}",
    "calls of tools": lambda: (
        b'{"choices":[{"message":{"tool_calls":[' + b"{}," * 1_000_000 + b"{}]}}]}"
    ),
    "deep": lambda: b'{"choices":' + b"[" * 4_000_000 + b"]" * 4_000_000 + b"}",
}


@pytest.mark.parametrize("name", MILLIONS)
def test_a_million_choices_cost_little_memory(name: str) -> None:
    body = MILLIONS[name]()
    assert len(body) <= MAX_BODY_BYTES + 100

    def work() -> None:
        with contextlib.suppress(NotACompletionError):
            read_reply(body, 0.0)

    assert in_bounds(work, cpu_s=60, memory_bytes=700_000_000) == 0
