from __future__ import annotations

import asyncio
import base64
import json
import socket
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from urllib.parse import quote

import pytest
from werkzeug import Response

from judge.inference.chat import CallError, ChatReply, ChatRequest, read_retry_after
from judge.inference.client import OpenAIChatModel, RetryPolicy
from judge.inference.config import public_url
from judge.inference.pacing import Pacer
from tests.inference.scripted import (
    Reply,
    ScriptedServer,
    Seen,
    completion,
    cut_in_body,
    drop,
    endless,
    fault,
)

REQUEST = ChatRequest("m", ({"role": "user", "content": "1_7_input.xlsx"},), {"temperature": 1.0})
KEY = "sk-very-secret-0123456789"
QUICK = RetryPolicy(first_wait_s=0.01, longest_wait_s=0.05, call_timeout_s=3.0)


def play(*lines: Reply | Callable[[Seen], Reply]) -> Callable[[Seen], Reply]:
    script: Iterator[Reply | Callable[[Seen], Reply]] = iter(lines)

    def answer(seen: Seen) -> Reply:
        line = next(script)
        return line(seen) if callable(line) and not isinstance(line, Response) else line

    return answer


def ask(
    server: ScriptedServer | str,
    request: ChatRequest = REQUEST,
    policy: RetryPolicy = QUICK,
    key: str | None = KEY,
) -> ChatReply:
    async def run() -> ChatReply:
        url = server if isinstance(server, str) else server.url
        model = OpenAIChatModel(url, key, policy=policy)
        try:
            return await model.complete(request)
        finally:
            await model.close()

    return asyncio.run(run())


def test_a_reply_with_everything() -> None:
    def reply(seen: Seen) -> Reply:
        document = completion("hello", seen.body, finish_reason="length")
        document["choices"][0]["message"]["reasoning_content"] = "hm"
        return document

    with ScriptedServer(reply) as server:
        request = ChatRequest(
            "m", REQUEST.messages, {"temperature": 0, "seed": 3, "grammar": "root", "top_k": 5}
        )
        found = ask(server, request)
        body = server.seen[0].body
    assert (found.text, found.reasoning, found.model) == ("hello", "hm", "scripted-1")
    assert found.is_truncated
    assert found.attempts == 1
    assert found.prompt_tokens == 3
    assert (body["seed"], body["grammar"], body["top_k"], body["model"]) == (3, "root", 5, "m")
    assert server.seen[0].request.headers["Authorization"] == f"Bearer {KEY}"


FAULTS: dict[str, Callable[[Seen], Reply]] = {
    "429": lambda _: fault(429, "slow down"),
    "500": lambda _: fault(500),
    "503 without json": lambda _: Response("<html>", 503),
    "dropped": drop,
    "cut in the body": lambda _: cut_in_body(),
    "never ends": lambda _: endless(),
    "sends nothing": lambda _: endless(b"", 0.2),
    "empty body": lambda _: Response("", content_type="application/json"),
    "not json": lambda _: Response("<html>hello", content_type="text/html"),
    "another object": lambda _: {"hello": 1},
    "choices empty": lambda seen: completion("x", seen.body) | {"choices": []},
    "error with status 200": lambda _: {"error": {"message": "overloaded"}},
    "empty text": lambda seen: completion("", seen.body),
    "null text": lambda seen: completion(None, seen.body),
    "deep json": lambda _: Response("[" * 100_000, content_type="application/json"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_tried_again(name: str) -> None:
    with ScriptedServer(play(FAULTS[name], "right")) as server:
        found = ask(server)
        assert len(server.seen) == 2
    assert (found.text, found.attempts) == ("right", 2)
    assert len(found.faults) == 1
    assert found.seconds >= found.latency_s


def test_attempts_are_bounded() -> None:
    with ScriptedServer(lambda _: fault(500, f"with {KEY} inside")) as server:
        with pytest.raises(CallError) as caught:
            ask(server)
        assert len(server.seen) == QUICK.attempts == 6
    assert caught.value.kind == "gave-up"
    assert caught.value.attempts == 6
    assert "[key]" in caught.value.message
    assert KEY not in caught.value.message + "".join(caught.value.faults)


def test_a_reply_that_never_ends_twice_is_given_up() -> None:
    policy = RetryPolicy(first_wait_s=0.01, call_timeout_s=0.5)
    with ScriptedServer(lambda _: endless()) as server:
        with pytest.raises(CallError, match=r"no whole reply within 0\.5 s"):
            ask(server, policy=policy)
        assert len(server.seen) == 2


def test_a_reply_without_bound_is_cut() -> None:
    with ScriptedServer(play(lambda _: endless(b"x" * 1_000_000, 0.0), "right")) as server:
        found = ask(server, policy=RetryPolicy(first_wait_s=0.01, call_timeout_s=20))
    assert "longer than" in found.faults[0]


def test_an_empty_reply_is_kept_when_nothing_better_comes() -> None:
    with ScriptedServer(lambda seen: completion("", seen.body)) as server:
        found = ask(server)
        assert len(server.seen) == QUICK.attempts
    assert found.text == ""


def test_an_empty_reply_at_the_length_limit_is_an_answer() -> None:
    with ScriptedServer(lambda seen: completion("", seen.body, finish_reason="length")) as server:
        assert ask(server).is_truncated
        assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, "bad parameter", "refused"),
        (400, "This model's maximum context length is 4096 tokens", "context-length"),
        (401, "wrong key", "access"),
        (404, "no such model", "access"),
        (402, "Insufficient Balance", "access"),
        (429, "insufficient_quota: pay first", "access"),
        (422, "odd", "refused"),
    ],
)
def test_what_is_not_tried_again(status: int, message: str, kind: str) -> None:
    with ScriptedServer(lambda _: fault(status, message)) as server:
        with pytest.raises(CallError, match=message[:8]) as caught:
            ask(server)
        assert len(server.seen) == 1
    assert caught.value.kind == kind


def test_retry_after_is_waited_for() -> None:
    with ScriptedServer(play(fault(429, retry_after="1"), "right")) as server:
        ask(server)
        first, second = server.seen
    assert second.at_s - first.at_s >= 1.0


def test_retry_after_beyond_two_minutes_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    real_sleep = asyncio.sleep

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await real_sleep(0)

    clock = {"offset": 0.0}
    real_monotonic = time.monotonic

    async def sleep_and_pass(seconds: float) -> None:
        clock["offset"] += seconds
        await sleep(seconds)

    monkeypatch.setattr("judge.inference.client.asyncio.sleep", sleep_and_pass)
    monkeypatch.setattr(
        "judge.inference.pacing.time.monotonic", lambda: real_monotonic() + clock["offset"]
    )
    with ScriptedServer(play(fault(429, retry_after="300"), "right")) as server:
        found = ask(server)
    assert found.text == "right"
    assert 300 <= max(waits) <= 301


def test_a_retry_after_that_is_too_long_is_given_up() -> None:
    with ScriptedServer(play(fault(429, retry_after="7200"))) as server:
        with pytest.raises(CallError, match="asks to wait 7200 s") as caught:
            ask(server)
        assert len(server.seen) == 1
    assert caught.value.kind == "gave-up"


def test_retry_after_headers() -> None:
    assert read_retry_after({"retry-after": "2.5"}) == 2.5
    assert read_retry_after({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert read_retry_after({"retry-after": "-3"}) == 0.0
    assert read_retry_after({"retry-after": "soon"}) is None
    assert read_retry_after({}) is None
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    found = read_retry_after({"retry-after": later})
    assert found is not None
    assert 85 < found <= 90


def test_no_server_is_not_waited_for() -> None:
    with socket.socket() as holder:  # bound, so that nobody else gets the port; it never listens
        holder.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{holder.getsockname()[1]}/v1"
        with pytest.raises(CallError, match="connection failed: ConnectionRefusedError") as caught:
            ask(url)
    assert (caught.value.kind, caught.value.attempts) == ("access", 3)


def test_a_server_that_went_away_is_waited_for() -> None:
    async def ask_twice() -> None:
        answers = await asyncio.start_server(answer_once, "127.0.0.1", 0)
        port = answers.sockets[0].getsockname()[1]
        policy = RetryPolicy(attempts=5, first_wait_s=0.01)
        model = OpenAIChatModel(f"http://127.0.0.1:{port}/v1", None, policy=policy)
        assert (await model.complete(REQUEST)).text == "here"
        answers.close()
        await answers.wait_closed()
        try:
            await model.complete(REQUEST)
        finally:
            await model.close()

    async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = b'{"choices": [{"message": {"content": "here"}, "finish_reason": "stop"}]}'
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()

    with pytest.raises(CallError, match="connection failed") as caught:
        asyncio.run(ask_twice())
    assert (caught.value.kind, caught.value.attempts) == ("gave-up", 5)


def test_credentials_in_an_address_go_into_a_header() -> None:
    with ScriptedServer(play("x")) as server:
        url = server.url.replace("http://", "http://me:pass%20word@")
        assert ask(url, key=None).text == "x"
        header = server.seen[0].request.headers["Authorization"]
    assert header == "Basic bWU6cGFzcyB3b3Jk"


def test_tool_calls_become_text() -> None:
    def reply(seen: Seen) -> Reply:
        document = completion(None, seen.body)
        call = {"function": {"name": "python", "arguments": '{"code": "x = 1"}'}}
        document["choices"][0]["message"]["tool_calls"] = [call]
        return document

    with ScriptedServer(reply) as server:
        assert "x = 1" in ask(server).text


def test_half_a_surrogate_pair_is_not_text() -> None:
    with ScriptedServer(lambda seen: completion("a \ud83d b \U0001f600", seen.body)) as server:
        assert ask(server).text == "a \N{REPLACEMENT CHARACTER} b \U0001f600"


def test_the_only_model_of_a_server() -> None:
    with ScriptedServer(play("x")) as server:
        assert asyncio.run(OpenAIChatModel(server.url, None).only_model()) == "scripted-1"


def test_public_url() -> None:
    assert public_url("https://me:pw@host:8000/v1?key=1#x") == "https://host:8000/v1"
    assert OpenAIChatModel("https://me:pw@host/v1", None).endpoint == "https://host/v1"


def test_the_server_says_that_nothing_is_left() -> None:
    pacer = Pacer()
    pacer.note_headers(
        {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "250ms"}
    )
    started = time.monotonic()
    asyncio.run(pacer.admit(10))
    assert time.monotonic() - started >= 0.2


def spellings(key: str) -> dict[str, str]:
    """Ways in which a server may send a key back, as written in the JSON of an answer."""
    quoted = json.dumps
    return {
        "plain": quoted(f"your key is {key}, is it not"),
        "escaped": '"' + "".join(f"\\u{ord(each):04X}" for each in key) + '"',
        "half escaped": quoted(key).replace("s", "\\u0073"),
        "in a header": quoted(f"Authorization: Bearer {key}"),
        "percent encoded": quoted(quote(f"key={key}&x", safe="")),
        "in hexadecimal digits": quoted(key.encode().hex()),
        "in base64": quoted(base64.b64encode(key.encode()).decode()),
        "in base64 after a letter": quoted(base64.b64encode(f"x{key}y".encode()).decode()),
        "in base64 after two": quoted(base64.b64encode(f"Be{key}yy".encode()).decode()),
        "in base64 for addresses": quoted(base64.urlsafe_b64encode(f"{key}".encode()).decode()),
        "twice": quoted(f"{key}{key}"),
    }


SLASHED = "sk-a/secret+key/0123?456789=~"


@pytest.mark.parametrize("key", [KEY, SLASHED])
@pytest.mark.parametrize("field", ["content", "reasoning_content", "model", "finish_reason"])
@pytest.mark.parametrize("way", spellings(KEY))
def test_a_key_that_a_server_sends_back_is_masked(way: str, field: str, key: str) -> None:
    """In everything that is made from a reply: records, conversations, submissions, caches."""

    def reply(seen: Seen) -> Response:
        document = completion("said", seen.body)
        choice = document["choices"][0]
        target = {"model": document, "finish_reason": choice}.get(field, choice["message"])
        target[field] = "MARK"
        text = json.dumps(document).replace('"MARK"', spellings(key)[way])
        return Response(text, content_type="application/json")

    with ScriptedServer(reply) as server:
        found = ask(server, key=key)
    said = {"content": found.text, "reasoning_content": found.reasoning, "model": found.model,
            "finish_reason": found.finish_reason}[field]  # fmt: skip
    assert said is not None
    assert "[key]" in said
    kept = json.dumps(found.to_json())
    assert not [each for each in spellings(key).values() if json.loads(each) in kept]


def test_a_password_in_the_address_is_masked() -> None:
    def reply(seen: Seen) -> Reply:
        basic = seen.request.headers["Authorization"]
        return completion(f"{basic} and a-long-password", seen.body)

    with ScriptedServer(reply) as server:
        url = server.url.replace("://", "://someone:a-long-password@")
        text = ask(url, key=None).text
    assert text.startswith("Basic [key]")
    assert text.endswith("and [key]")


@pytest.mark.parametrize("key", ["none", "EMPTY", "token"])
def test_words_of_replies_are_no_keys(key: str) -> None:
    """A dummy key for local servers is not removed from programs, where it means something else."""
    program = f"if x is {key}: pass"
    with ScriptedServer(lambda seen: completion(program, seen.body)) as server:
        assert ask(server, key=key).text == program


def test_an_error_is_masked_before_it_is_cut_off() -> None:
    """Half a key is also too much."""
    said = "x" * 150 + KEY * 40
    with ScriptedServer(lambda _: fault(400, said)) as server, pytest.raises(CallError) as caught:
        ask(server)
    assert KEY[:12] not in caught.value.message
