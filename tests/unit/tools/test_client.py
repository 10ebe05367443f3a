"""The client of MCP servers, with scripted servers: protocol versions, limits, odd messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from judge.inference.chat import ChatRequest
from judge.tools.client import (
    MAX_USELESS,
    PROBE_S,
    ListedTool,
    McpClient,
    ServerError,
    cleaned,
    levels,
    offered_names,
    result_of,
)

Message = dict[str, Any]
TOOL = {"name": "say", "description": "Says it.", "inputSchema": {"type": "object"}}
GREETING = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "s"}, "instructions": "words"}


class Scripted:
    """A server that answers each line with a function; seconds pass only while nothing arrives."""

    def __init__(self, answer: Callable[[Message], list[Any]]) -> None:
        self.answer = answer
        self.now = 0.0
        self.sent: list[Message] = []
        self.waiting: list[tuple[float, bytes]] = []

    def send(self, line: bytes, limit_s: float) -> None:
        message = json.loads(line)
        self.sent.append(message)
        for each in self.answer(message):
            delay, reply = each if isinstance(each, tuple) else (0.0, each)
            data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
            self.waiting.append((self.now + delay, data))

    def receive(self, limit_s: float) -> list[bytes]:
        due = [each for each in self.waiting if each[0] <= self.now]
        if not due and self.waiting:
            first = min(at for at, _ in self.waiting)
            if first <= self.now + limit_s:
                self.now = first
                due = [each for each in self.waiting if each[0] <= self.now]
        if not due:
            self.now += limit_s
            raise ServerError("timeout", "no line in time")
        self.waiting = [each for each in self.waiting if each not in due]
        return [data for _, data in due]


def result(message: Message, value: object) -> Message:
    return {"jsonrpc": "2.0", "id": message["id"], "result": value}


def error(message: Message, code: int) -> Message:
    return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": "no"}}


def handshake(message: Message) -> list[Any]:
    match message["method"]:
        case "server/discover":
            return [error(message, -32601)]
        case "initialize":
            return [result(message, GREETING)]
        case "tools/list":
            return [result(message, {"tools": [TOOL]})]
        case "tools/call":
            return [result(message, {"content": [{"type": "text", "text": "said"}]})]
    return []


def started(answer: Callable[[Message], list[Any]]) -> tuple[McpClient, Scripted]:
    server = Scripted(answer)
    client = McpClient(server, "s", clock=lambda: server.now)
    client.start()
    return client, server


def test_a_server_with_the_handshake_protocol_is_greeted_and_its_requests_are_bare() -> None:
    client, server = started(handshake)
    assert client.record["era"] == "handshake"
    assert client.record["protocol"] == "2025-06-18"
    assert client.instructions == "words"
    assert [tool.name for tool in client.list_tools()] == ["say"]
    assert client.call("say", {"text": "x"}, 60).text == "said"
    methods = [message["method"] for message in server.sent]
    assert methods == [
        *("server/discover", "initialize", "notifications/initialized"),
        *("tools/list", "tools/call"),
    ]
    assert "_meta" not in server.sent[-1]["params"]


def test_a_mark_of_the_byte_order_and_an_error_that_is_null_do_no_harm() -> None:
    def answer(message: Message) -> list[Any]:
        return [b"\xef\xbb\xbf" + json.dumps({**r, "error": None}).encode() if "result" in r else r
                for r in handshake(message)]  # fmt: skip

    client, _ = started(answer)
    assert client.call("say", {"text": "x"}, 60).text == "said"


def test_a_stateless_server_gets_its_version_with_every_request() -> None:
    def answer(message: Message) -> list[Any]:
        if message["method"] == "server/discover":
            return [result(message, {"supportedVersions": ["2026-07-28"]})]
        return handshake(message)

    client, server = started(answer)
    assert client.record["era"] == "stateless"
    client.list_tools()
    assert all("_meta" in message["params"] for message in server.sent)
    assert not any(message["method"] == "initialize" for message in server.sent)


@pytest.mark.parametrize("delay", [PROBE_S + 1, PROBE_S + 50])
def test_a_slow_start_is_not_mistaken_for_an_old_server(delay: float) -> None:
    def stateless(message: Message) -> list[Any]:
        if message["method"] == "initialize":
            return [(delay, error(message, -32022))]
        return [(delay, result(message, {"supportedVersions": ["2026-07-28"]}))]

    assert started(stateless)[0].record["era"] == "stateless"

    def old(message: Message) -> list[Any]:
        # Both answers come at once when the server is there at last.
        at = delay if message["method"] == "server/discover" else delay - PROBE_S
        return [(at, handshake(message)[0])] if "id" in message else []

    assert started(old)[0].record["era"] == "handshake"


def test_a_version_that_nobody_knows_and_silence_are_the_fault_of_the_server() -> None:
    def strange(message: Message) -> list[Any]:
        if message["method"] == "initialize":
            return [result(message, {"protocolVersion": "1999-01-01"})]
        return handshake(message)

    with pytest.raises(ServerError, match="'1999-01-01' is not known"):
        started(strange)
    with pytest.raises(ServerError, match="does not answer in 180 s") as caught:
        started(lambda message: [])
    assert caught.value.kind == "timeout"
    client, _ = after_start(lambda message: [])
    with pytest.raises(ServerError, match="does not list its tools in 60 s"):
        client.list_tools()


def after_start(answer: Callable[[Message], list[Any]]) -> tuple[McpClient, Scripted]:
    def both(message: Message) -> list[Any]:
        method = str(message.get("method"))
        if method in {"server/discover", "initialize", "notifications/initialized"}:
            return handshake(message)
        return answer(message)

    return started(both)


def test_pages_are_read_and_tools_that_cannot_be_offered_are_named() -> None:
    deep: Any = {}
    for _ in range(70):
        deep = {"type": "object", "properties": deep}
    pages: Iterator[Any] = iter(
        [
            {"tools": [TOOL, TOOL], "nextCursor": "2"},
            {"tools": [{**TOOL, "name": "deep", "inputSchema": deep}, {}, 7], "nextCursor": "3"},
            {"tools": [{"name": "bare"}, {**TOOL, "name": "last", "description": "x" * 9_000}]},
        ]
    )
    client, server = after_start(lambda message: [result(message, next(pages))])
    listed = client.list_tools()
    assert [tool.name for tool in listed] == ["say", "last"]
    assert len(listed[-1].description) == 4_096
    assert [message["params"].get("cursor") for message in server.sent[-3:]] == [None, "2", "3"]
    assert sorted(client.record["left_out"].values()) == [
        "it has no name",
        "it has no name",
        "its arguments are not an object",
        "its name is used twice",
        "its schema has more than 64 levels",
    ]


@pytest.mark.parametrize(
    "page",
    [
        {"tools": [{**TOOL, "name": f"t{number}"} for number in range(300)]},
        {"tools": [{**TOOL, "description": "x" * 1_100_000}]},
        {"tools": {}},
        {"tools": [], "nextCursor": "again"},
        {"tools": [], "nextCursor": {"page": [None]}},
    ],
)
def test_a_list_without_end_is_refused(page: Message) -> None:
    client, server = after_start(lambda message: [result(message, page)])
    with pytest.raises(ServerError):
        client.list_tools()
    assert len(server.sent) <= 23


def test_an_empty_cursor_is_the_end_of_a_list() -> None:
    page = {"tools": [TOOL], "nextCursor": ""}
    client, _ = after_start(lambda message: [result(message, page)])
    assert [tool.name for tool in client.list_tools()] == ["say"]
    assert "left_out" not in client.record


def test_a_schema_can_be_sent_to_a_model_whatever_its_text_is() -> None:
    argument = {"type": "string", "description": "\ud800\x1b[2J" + "x" * 9_000, "enum": ["\udfff"]}
    schema = {"type": "object", "properties": {"te\ud800xt": argument, "description": argument}}
    page = {"tools": [{**TOOL, "inputSchema": schema}]}
    client, _ = after_start(lambda message: [result(message, page)])
    (tool,) = client.list_tools()
    request = ChatRequest("m", (), {"tools": [tool.schema]})
    assert len(request.digest("http://here")) == 64
    name, held = next(iter(tool.schema["properties"].items()))
    assert name == "te\N{REPLACEMENT CHARACTER}xt"
    assert len(held["description"]) == 4_096
    assert "\x1b" not in held["description"]
    assert tool.schema["properties"]["description"]["enum"] == ["\N{REPLACEMENT CHARACTER}"]


def test_no_text_of_a_server_ends_the_line_that_it_is_in() -> None:
    info = {"name": "good\r\nproblem: none", "version": "1\n2"}

    def answer(message: Message) -> list[Any]:
        if message["method"] == "initialize":
            return [result(message, {**GREETING, "serverInfo": info})]
        if message["method"] == "tools/list":
            return [result(message, {"tools": [{"name": "a\nb", "inputSchema": 7}]})]
        return handshake(message)

    client, _ = started(answer)
    assert client.list_tools() == []
    assert client.record["server_name"] == "good problem: none"
    assert client.record["server_version"] == "1 2"
    assert list(client.record["left_out"]) == ["a b"]


@pytest.mark.parametrize("number", [{"a": 1}, [1], 1.5, True, "x" * 60_000, 10**400, "\ud800"])
def test_requests_with_any_identifier_are_refused_or_dropped(number: object) -> None:
    def answer(message: Message) -> list[Any]:
        if message.get("method") != "tools/call":
            return []
        ask = {"jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": number}
        progress = {
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progressToken": {"a": number}, "progress": number},
        }
        return [ask, progress, *handshake(message)]

    client, server = after_start(answer)
    assert client.call("say", {}, 60).text == "said"
    replies = [message for message in server.sent if "method" not in message]
    is_identifier = isinstance(number, str | int) and not isinstance(number, bool)
    assert [reply["error"]["code"] for reply in replies] == [-32601] * is_identifier


def test_requests_of_a_server_are_refused_and_a_ping_is_answered() -> None:
    def answer(message: Message) -> list[Any]:
        if message.get("method") != "tools/call":
            return []
        asks: list[Any] = [
            {"jsonrpc": "2.0", "id": name, "method": name, "params": {}}
            for name in ("sampling/createMessage", "roots/list", "ping")
        ]
        changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        return [*asks, changed, *handshake(message)]

    client, server = after_start(answer)
    assert client.call("say", {}, 60).text == "said"
    replies = {message["id"]: message for message in server.sent if "method" not in message}
    assert replies["ping"]["result"] == {}
    assert replies["roots/list"]["error"]["code"] == -32601
    assert client.facts()["list_changed"] == 1


@pytest.mark.parametrize(
    "line",
    [
        b"Loading ...",
        b'{"level": "info"}',
        b'{"jsonrpc":"2.0","id":"1","result":{}}',
        b'{"jsonrpc":"2.0","id":9999,"result":{}}',
        b'{"jsonrpc":"2.0","id":null,"result":{}}',
        b'{"jsonrpc":"2.0","id":true,"result":{}}',
        b"[]",
        b"\xff\xfe",
    ],
)
def test_noise_is_dropped_up_to_a_bound(line: bytes) -> None:
    client, _ = after_start(lambda message: [line, *handshake(message)])
    assert client.call("say", {}, 60).text == "said"
    assert client.facts()["noise"] >= 1
    client, _ = after_start(lambda message: [line] * (MAX_USELESS + 1))
    with pytest.raises(ServerError, match="useless lines") as caught:
        client.call("say", {}, 60)
    assert caught.value.kind == "protocol"


def test_the_second_of_two_answers_is_dropped() -> None:
    client, _ = after_start(lambda message: handshake(message) * 2)
    assert client.call("say", {}, 60).text == "said"
    assert client.call("say", {}, 60).text == "said"


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":3,"result":' + b'{"a":' * 3_000 + b"1" + b"}" * 3_000 + b"}",
        b'{"jsonrpc":"2.0","id":3,"result":{"content":[' + b"[]," * 300_000 + b"[]]}}",
        b'{"jsonrpc":"2.0","id":3,"result":{"content":"\xff"}}',
        b'{"jsonrpc":"2.0","id":3,"result":[1]}',
        b'{"jsonrpc":"2.0","id":3}',
    ],
)
def test_an_answer_that_cannot_be_read_is_a_fault_at_once(line: bytes) -> None:
    client, server = after_start(lambda message: [line])
    with pytest.raises(ServerError) as caught:
        client.call("say", {}, 60)
    assert (caught.value.kind, server.now) == ("protocol", 0.0)


def test_a_call_that_takes_too_long_is_cancelled() -> None:
    def late(message: Message) -> list[Any]:
        return [(61.0, handshake(message)[0])] if "id" in message else []

    client, server = after_start(late)
    with pytest.raises(ServerError) as caught:
        client.call("say", {}, 60)
    assert caught.value.kind == "timeout"
    assert server.sent[-1]["method"] == "notifications/cancelled"
    client, server = after_start(lambda message: [])
    with pytest.raises(ServerError) as caught:
        client.call("say", {}, 60)
    assert caught.value.kind == "died"


def test_an_error_of_a_call_is_for_the_model_to_read() -> None:
    client, _ = after_start(lambda message: [error(message, -32602)])
    made = client.call("say", {}, 60)
    assert (made.failed, made.text) == (True, "Error -32602: no")


def test_content_becomes_text_and_pictures_that_nobody_decodes() -> None:
    parts: list[Any] = [
        {"type": "text", "text": "a\x00b\ud800\x1b[2J"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "image", "data": "not base64"},
        {"type": "audio", "data": "x"},
        {"type": "resource", "resource": {"uri": "file:///x", "text": "inside"}},
        {"type": "resource_link", "uri": "file:///\u202e"},
        None,
    ]
    made = result_of({"content": parts, "isError": True, "structuredContent": {"a": 1}})
    assert made.failed
    assert made.pictures == (b"hi",)
    lines = made.text.split("\n")
    assert lines[0] == "a\N{REPLACEMENT CHARACTER}b" + "\N{REPLACEMENT CHARACTER}" * 2 + "[2J"
    assert lines[3] == "inside"
    assert "\u202e" not in made.text
    assert result_of({"content": [], "structuredContent": {"a": 1}}).text == '{"a":1}'
    assert result_of({"resultType": "input_required"}).failed
    with pytest.raises(ServerError):
        result_of({"content": "text"})
    images = [{"type": "image", "data": data} for data in ("x" * 12_000_000, 7, *["aGk="] * 5)]
    assert result_of({"content": images}).text.split("\n") == [
        "(a picture that is too large is left out)",
        "(a picture that is not base64 is left out)",
        "(one picture too many is left out)",
    ]
    assert len(result_of({"content": [{"type": "x"}] * 5_000}).text.split("\n")) == 1_001


def test_names_become_those_that_chat_servers_take() -> None:
    odd = ["a.b", "a_b", "x" * 70, "x" * 80, "\u202eé", "submit"]
    tools = [ListedTool(name, "", {}) for name in odd]
    names = offered_names(tools, "", {"submit"})
    assert list(names.values()) == odd
    assert list(names) == ["a_b", "a_b_2", "x" * 64, "x" * 62 + "_2", "__", "submit_2"]
    assert list(offered_names(tools[:1], "excel__", set())) == ["excel__a_b"]


def test_depth_and_text_are_bounded_without_recursion() -> None:
    deep: Any = 1
    for _ in range(50_000):
        deep = [deep]
    assert levels(deep) == 50_001
    assert cleaned("a\tb\nc\x7f") == "a\tb\nc\N{REPLACEMENT CHARACTER}"
