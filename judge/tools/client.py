"""A client for untrusted MCP servers on stdio, for versions with a handshake and without one.

The driver inside the sandbox limits each line and each wait; the parser here has further limits. If
a server does something wrong, a :class:`ServerError` with the kind is raised. Nothing that a server
sends can start anything; only a model's calls run tools.

Source: modelcontextprotocol.io/specification, versions 2024-11-05 to 2026-07-28.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import contextlib
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from judge.console import visible
from judge.core.records.runs import ServerRecord
from judge.files.documents import MIB, MalformedError, dump_json, parse_json
from judge.tools.box import Box, BoxError
from judge.tools.mcp import HANDSHAKE, STATELESS
from judge.version import __version__

START_S = 180.0
"""Seconds within which a server has to give its first answer; usually, this takes 1 to 6 s."""

PROBE_S = 5.0
"""Seconds to wait for the answer to ``server/discover`` before ``initialize`` is sent as well."""

LIST_S = 60.0
CANCEL_S = 5.0
"""Seconds that a server has to answer after a call was cancelled; otherwise it is stopped."""

MAX_PAGES, MAX_TOOLS, MAX_LIST_BYTES, MAX_LEVELS = 20, 256, 1 * MIB, 64
MAX_DESCRIPTION_CHARS = 4_096
MAX_USELESS = 100
"""Largest number of lines other than answers that a server may send in an episode."""

MAX_PICTURES, MAX_PICTURE_BYTES = 4, 8 * MIB
_MAX_LINES, _MAX_BYTES = 20_000, 32 * MIB
_MAX_VALUES = 200_000
_MAX_TEXT_CHARS = 4 * MIB
_MAX_PARTS = 1_000
_HEAD_BYTES = 200

_VERSION = "io.modelcontextprotocol/protocolVersion"
_CLIENT = "io.modelcontextprotocol/clientInfo"
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_NOT_SUPPORTED = -32022
_SILENT = "no answer in time"
_UNKNOWN_METHOD = -32601
_CLEAN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ServerError(Exception):
    """A server did something wrong.

    Attributes:
        kind: ``timeout``, ``died`` or ``protocol``.
        message: what the server did, for people and models.
        late: whether a call has no result because it took too long.
    """

    def __init__(self, kind: str, message: str, *, late: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.late = late


@contextlib.contextmanager
def _within(late: str) -> Iterator[None]:
    """Replaces the message of a timeout in its block by ``late``."""
    try:
        yield
    except ServerError as error:
        if error.kind != "timeout":
            raise
        raise ServerError("timeout", late) from error


class RefusedError(Exception):
    """A server answers a request with an error, as the protocol allows.

    Attributes:
        code: error code of JSON-RPC.
        message: the server's message.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Wire(Protocol):
    """Sends lines to a server, and receives lines from it."""

    def send(self, line: bytes, limit_s: float) -> None:
        """Sends a line.

        Raises:
            ServerError: the server does not read, or has ended.
        """
        ...

    def receive(self, limit_s: float) -> list[bytes]:
        """Waits for at least one line.

        Raises:
            ServerError: no line came in time, the server has ended, or a line is too long.
        """
        ...


class BoxWire:
    """Exchanges lines with a server in a sandbox.

    Args:
        box: the sandbox, with the server running in it.
        name: the name of the server.
    """

    def __init__(self, box: Box, name: str) -> None:
        self._box = box
        self._name = name

    def send(self, line: bytes, limit_s: float) -> None:
        """Sends a line."""
        self._ask({"op": "send", "limit_s": limit_s}, [line], limit_s)

    def receive(self, limit_s: float) -> list[bytes]:
        """Waits for at least one line."""
        return self._ask({"op": "receive", "limit_s": limit_s}, [], limit_s)

    def _ask(self, header: dict[str, Any], blobs: list[bytes], limit_s: float) -> list[bytes]:
        try:
            _, parts = self._box.ask({**header, "server": self._name}, blobs, limit_s)
        except BoxError as error:
            kind = error.kind if error.kind in {"timeout", "died"} else "protocol"
            raise ServerError(kind, error.message) from error
        return parts


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool as a server lists it.

    Attributes:
        name: the server's name for the tool.
        description: the server's description, shortened.
        schema: the schema of the arguments.
    """

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ServerResult:
    """The result of a call.

    Attributes:
        text: the text for the model.
        failed: whether the tool reports that it failed.
        pictures: the bytes of each picture, undecoded.
    """

    text: str
    failed: bool = False
    pictures: tuple[bytes, ...] = ()


@dataclass(slots=True)
class McpClient:
    """Talks to one server.

    Attributes:
        wire: the connection to the server.
        name: the server's name, as in ``mcp:NAME``.
        clock: returns the time in seconds.
        record: facts about the server, for records.
        instructions: the instructions that the server sends, shortened.
    """

    wire: Wire
    name: str
    clock: Callable[[], float] = time.monotonic
    record: ServerRecord = field(default_factory=lambda: ServerRecord(name="", root=None))
    instructions: str = ""
    _next: int = 0
    _stateless: bool = False
    _useless: int = 0
    _changed: int = 0
    _early: dict[int, Mapping[str, Any]] = field(default_factory=dict)

    # -- the start --------------------------------------------------------------------------------

    def start(self, limit_s: float = START_S) -> None:
        """Determines how the server begins a session, and initializes the connection.

        Older versions of the protocol begin with a handshake; newer ones are stateless.

        Raises:
            ServerError: the server does not answer, or supports no version known here.
        """
        with _within(f"it does not answer in {limit_s:g} s"):
            self._start(self.clock() + limit_s)

    def _start(self, deadline: float) -> None:
        probe = self._send_request("server/discover", self._meta({}), deadline)
        try:
            answer = self._await((probe,), min(deadline, self.clock() + PROBE_S))
        except ServerError as error:
            if error.kind != "timeout":
                raise
            answer = None
        if answer is not None and self._accept_discovery(answer):
            return
        handshake = self._send_initialize(deadline)
        waiting = [handshake] if answer is not None else [probe, handshake]
        while True:
            answer = self._await(waiting, deadline)
            if answer["id"] != handshake:
                if self._accept_discovery(answer):
                    return
                waiting.remove(probe)
                continue
            if "result" in answer:
                self._finish_handshake(answer["result"], deadline)
                return
            code, message = _error_of(answer)
            if code != _NOT_SUPPORTED:
                raise ServerError("protocol", f"it refuses to start: {_one_line(message)}")
            probe = self._send_request("server/discover", self._meta({}), deadline)
            if self._accept_discovery(self._await((probe,), deadline)):
                return
            raise ServerError("protocol", "it supports no known version of the protocol")

    def _send_initialize(self, deadline: float) -> int:
        return self._send_request(
            "initialize",
            {
                "protocolVersion": HANDSHAKE[-1],
                "capabilities": {},
                "clientInfo": {"name": "judge", "version": __version__},
            },
            deadline,
        )

    def _accept_discovery(self, answer: Mapping[str, Any]) -> bool:
        result = answer.get("result")
        if not isinstance(result, dict):
            return False
        versions = result.get("supportedVersions")
        if not isinstance(versions, list) or not set(STATELESS) & set(map(str, versions)):
            return False
        meta = result.get("_meta")
        info = meta.get("io.modelcontextprotocol/serverInfo") if isinstance(meta, dict) else None
        self._stateless = True
        self._note("stateless", STATELESS[-1], info, result)
        return True

    def _finish_handshake(self, result: object, deadline: float) -> None:
        version = result.get("protocolVersion") if isinstance(result, dict) else None
        if not isinstance(result, dict) or version not in HANDSHAKE:
            raise ServerError("protocol", f"its version {str(version)!r:.60} is not known")
        self._note("handshake", str(version), result.get("serverInfo"), result)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"}, deadline)

    def _note(self, era: str, version: str, info: object, result: Mapping[str, Any]) -> None:
        facts = info if isinstance(info, dict) else {}
        self.record |= {
            "era": era,
            "protocol": version,
            "server_name": _one_line(str(facts.get("name", "")))[:80],
            "server_version": _one_line(str(facts.get("version", "")))[:80],
        }
        words = result.get("instructions")
        self.instructions = cleaned(words)[:MAX_DESCRIPTION_CHARS] if isinstance(words, str) else ""

    # -- tools ------------------------------------------------------------------------------------

    def list_tools(self, limit_s: float = LIST_S) -> list[ListedTool]:
        """Lists the tools of the server; records why tools that cannot be offered are left out.

        Raises:
            ServerError: the server does not answer, or lists too much.
        """
        deadline = self.clock() + limit_s
        listed: list[ListedTool] = []
        left_out: dict[str, str] = {}
        size = 0
        cursor: object = None
        for _ in range(MAX_PAGES):
            params = {} if cursor is None else {"cursor": cursor}
            try:
                with _within(f"it does not list its tools in {limit_s:g} s"):
                    page = self.request("tools/list", params, deadline)
            except RefusedError as error:
                words = f"it does not list tools: {_one_line(error.message)}"
                raise ServerError("protocol", words) from None
            size += len(dump_json(page))
            tools = page.get("tools")
            if not isinstance(tools, list):
                raise ServerError("protocol", "its list of tools is not a list")
            if size > MAX_LIST_BYTES or len(listed) + len(left_out) + len(tools) > MAX_TOOLS:
                raise ServerError(
                    "protocol",
                    f"it lists more than {MAX_TOOLS} tools, or {MAX_LIST_BYTES:,} characters",
                )
            for tool in tools:
                self._take(tool, listed, left_out)
            cursor = page.get("nextCursor")
            if cursor is None or cursor == "":  # some servers send "" for the end
                break
        else:
            raise ServerError("protocol", f"its list of tools has more than {MAX_PAGES} pages")
        if left_out:
            self.record["left_out"] = left_out
        return listed

    @staticmethod
    def _take(tool: object, listed: list[ListedTool], left_out: dict[str, str]) -> None:
        facts = tool if isinstance(tool, dict) else {}
        name, schema = facts.get("name"), facts.get("inputSchema")
        if not isinstance(name, str) or not name:
            left_out[f"tool {len(listed) + len(left_out) + 1}"] = "it has no name"
            return
        shown = _one_line(visible(name))[:80]
        if any(other.name == name for other in listed):
            left_out[f"{shown} (again)"] = "its name is used twice"
        elif not isinstance(schema, dict) or schema.get("type") != "object":
            left_out[shown] = "its arguments are not an object"
        elif levels(schema) > MAX_LEVELS:
            left_out[shown] = f"its schema has more than {MAX_LEVELS} levels"
        else:
            words = facts.get("description")
            text = cleaned(words)[:MAX_DESCRIPTION_CHARS] if isinstance(words, str) else ""
            listed.append(ListedTool(name, text, _offered(schema)))

    def call(self, name: str, arguments: Mapping[str, Any], limit_s: float) -> ServerResult:
        """Calls a tool.

        Args:
            name: the server's name for the tool.
            arguments: the arguments of the call.
            limit_s: the call is cancelled after this many seconds.

        Raises:
            ServerError: there is no result. After a cancelled call, ``kind`` is ``timeout`` if the
                server still answers, and ``died`` if it does not answer and is stopped.
        """
        deadline = self.clock() + limit_s
        number = self._send_request(
            "tools/call", self._meta({"name": name, "arguments": dict(arguments)}), deadline
        )
        try:
            answer = self._await((number,), deadline)
        except ServerError as error:
            if error.kind != "timeout":
                raise
            self._cancel(number, limit_s)
            raise ServerError("timeout", f"no result in {limit_s:g} s", late=True) from None
        try:
            return result_of(self._result(answer))
        except RefusedError as error:
            return ServerResult(f"Error {error.code}: {error.message}", failed=True)

    def _cancel(self, number: int, limit_s: float) -> None:
        """Cancels a call; waits for the late answer, which is dropped."""
        deadline = self.clock() + CANCEL_S
        params = {"requestId": number, "reason": f"{limit_s:g} s"}
        try:
            self._send(
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}, deadline
            )
            self._await((number,), deadline)
        except ServerError as error:
            raise ServerError(
                "died",
                f"no result within {limit_s:g} s, and no answer to the cancellation either",
                late=True,
            ) from error

    # -- messages ---------------------------------------------------------------------------------

    def request(self, method: str, params: Mapping[str, Any], deadline: float) -> dict[str, Any]:
        """Sends a request and returns the result.

        Raises:
            RefusedError: the server answers with an error.
            ServerError: the server does not answer.
        """
        number = self._send_request(method, self._meta(params), deadline)
        return self._result(self._await((number,), deadline))

    def facts(self) -> ServerRecord:
        """Returns the facts known about the server so far."""
        return {**self.record, "noise": self._useless, "list_changed": self._changed}

    def _meta(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Returns parameters; in stateless versions of the protocol, the version is added."""
        if self.record.get("era") == "handshake":
            return dict(params)
        meta = {
            _VERSION: STATELESS[-1],
            _CAPABILITIES: {},
            _CLIENT: {"name": "judge", "version": __version__},
        }
        return {**params, "_meta": meta}

    def _result(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        if answer.get("error") is not None:
            raise RefusedError(*_error_of(answer))
        result = answer.get("result")
        if not isinstance(result, dict):
            raise ServerError("protocol", "its result is not an object")
        return result

    def _send_request(self, method: str, params: Mapping[str, Any], deadline: float) -> int:
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": dict(params)}
        self._send(message, deadline)
        return self._next

    def _send(self, message: Mapping[str, Any], deadline: float) -> None:
        line = dump_json(message).encode("utf-8", "replace")
        self.wire.send(line, max(deadline - self.clock(), 0.1))

    def _await(self, numbers: Sequence[int], deadline: float) -> Mapping[str, Any]:
        """Returns the first answer to any of the given requests, and handles all other messages.

        Raises:
            ServerError: no answer arrives in time, or too many other messages arrive.
        """
        for number in numbers:
            if number in self._early:
                return self._early.pop(number)
        lines = size = 0
        while True:
            left = deadline - self.clock()
            if left <= 0:
                raise ServerError("timeout", _SILENT)
            for line in self._receive(left):
                lines, size = lines + 1, size + len(line)
                if lines > _MAX_LINES or size > _MAX_BYTES:
                    raise ServerError("protocol", "it sends far more than was requested")
                answer = self._read(line, deadline)
                if answer is None:
                    continue
                if answer["id"] in numbers and answer["id"] not in self._early:
                    self._early[answer["id"]] = answer
                else:
                    self._count_useless("an answer without a request")
            for number in numbers:
                if number in self._early:
                    return self._early.pop(number)

    def _receive(self, limit_s: float) -> list[bytes]:
        with _within(_SILENT):
            return self.wire.receive(limit_s)

    def _read(self, line: bytes, deadline: float) -> Mapping[str, Any] | None:
        """Returns the answer in a line; None for a notification, a request or any other content."""
        # Some encoders begin their output with a byte order mark.
        line = line.removeprefix(codecs.BOM_UTF8)
        if not line.strip():
            return None
        try:
            message = parse_json(line, max_values=_MAX_VALUES)
        except MalformedError as error:
            if len(line) > MIB or b'"jsonrpc"' in line[:_HEAD_BYTES]:
                raise ServerError("protocol", f"an answer cannot be read: {error}") from None
            message = None
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self._count_useless("a line that is not a message")
            return None
        if isinstance(message.get("method"), str):
            self._handle(message, deadline)
            return None
        number = message.get("id")
        if isinstance(number, bool) or not isinstance(number, int):
            self._count_useless("an answer without the number of a request")
            return None
        return message

    def _handle(self, message: Mapping[str, Any], deadline: float) -> None:
        """Answers a ping, and refuses any other request; counts notices that the tools changed."""
        method, number = message["method"], message.get("id")
        if number is None:
            self._changed += method == "notifications/tools/list_changed"
            return
        self._count_useless("requests to the client")
        if isinstance(number, bool) or not isinstance(number, int | str):
            return
        if method == "ping":
            answer: dict[str, Any] = {"result": {}}
        else:
            answer = {"error": {"code": _UNKNOWN_METHOD, "message": "not offered by this client"}}
        self._send({"jsonrpc": "2.0", "id": number, **answer}, deadline)

    def _count_useless(self, example: str) -> None:
        self._useless += 1
        if self._useless > MAX_USELESS:
            raise ServerError(
                "protocol", f"more than {MAX_USELESS} useless lines, such as {example}"
            )


def _error_of(answer: Mapping[str, Any]) -> tuple[int, str]:
    error = answer.get("error")
    facts = error if isinstance(error, dict) else {}
    code = facts.get("code")
    number = code if isinstance(code, int) and not isinstance(code, bool) else -32603
    return number, cleaned(str(facts.get("message", "no reason given")))[:2_000]


def result_of(result: Mapping[str, Any]) -> ServerResult:
    """Converts the result of a call for the model: text, and undecoded pictures.

    Raises:
        ServerError: the object is not a result.
    """
    if result.get("resultType") == "input_required":
        return ServerResult("The tool asks for input, which nobody can give here.", failed=True)
    content = result.get("content")
    if content is not None and not isinstance(content, list):
        raise ServerError("protocol", "the content of its result is not a list")
    pictures: list[bytes] = []
    texts = list(_texts_of(content or [], pictures))
    if not texts and "structuredContent" in result:
        texts = [dump_json(result["structuredContent"])]
    text = cleaned("\n".join(texts)[:_MAX_TEXT_CHARS])
    return ServerResult(text, result.get("isError") is True, tuple(pictures))


def _texts_of(content: Sequence[object], pictures: list[bytes]) -> Iterator[str]:
    for part in content[:_MAX_PARTS]:
        facts = part if isinstance(part, dict) else {}
        kind = facts.get("type")
        if kind == "text":
            yield str(facts.get("text", ""))
        elif kind == "image":
            data = facts.get("data")
            if len(pictures) == MAX_PICTURES:
                yield "(one picture too many is left out)"
            elif isinstance(data, str) and len(data) > MAX_PICTURE_BYTES * 4 // 3 + 4:
                yield "(a picture that is too large is left out)"
            elif picture := _bytes_of(data):
                pictures.append(picture)
            else:
                yield "(a picture that is not base64 is left out)"
        elif kind == "resource":
            inner = facts.get("resource")
            resource = inner if isinstance(inner, dict) else {}
            text = resource.get("text")
            yield text if isinstance(text, str) else f"(a resource: {_short(resource.get('uri'))})"
        elif kind == "resource_link":
            yield f"(a link: {_short(facts.get('uri'))})"
        else:
            yield f"(content of the kind {_short(kind)} is left out)"
    if len(content) > _MAX_PARTS:
        yield f"({len(content) - _MAX_PARTS:,} further parts are left out)"


def _bytes_of(data: object) -> bytes | None:
    try:
        return base64.b64decode(data, validate=True) if isinstance(data, str) else None
    except (binascii.Error, ValueError):
        return None


def _short(value: object) -> str:
    return visible(str(value))[:200]


def cleaned(text: str) -> str:
    """Cleans untrusted text for a model: replaces control characters and lone surrogates."""
    return _CLEAN.sub("\N{REPLACEMENT CHARACTER}", text)


def _one_line(text: str) -> str:
    """Cleans untrusted text and puts it on one line."""
    return " ".join(cleaned(text).split())


def _offered(schema: Any) -> Any:
    """Cleans all text of a schema, so that it can be part of a request; shortens descriptions."""
    if isinstance(schema, dict):
        return {
            cleaned(name): _offered(
                part[:MAX_DESCRIPTION_CHARS]
                if name == "description" and isinstance(part, str)
                else part
            )
            for name, part in schema.items()
        }
    if isinstance(schema, list):
        return [_offered(part) for part in schema]
    return cleaned(schema) if isinstance(schema, str) else schema


def levels(document: object) -> int:
    """Returns how deeply a document is nested."""
    depth, level = 0, [document]
    while level:
        depth += 1
        below: list[object] = []
        for value in level:
            if isinstance(value, dict):
                below += value.values()
            elif isinstance(value, list):
                below += value
        level = below
    return depth


def offered_names(tools: Sequence[ListedTool], prefix: str, taken: set[str]) -> dict[str, str]:
    """Gives the tools of an MCP server names that chat servers accept.

    Args:
        tools: the tools.
        prefix: prefix of each name, such as ``excel__``; empty for none.
        taken: names that other tools have; the new names are added.

    Returns:
        Name for the model -> the server's name.
    """
    names: dict[str, str] = {}
    for tool in tools:
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", f"{prefix}{tool.name}")[:64]
        name, number = plain, 2
        while name in taken:
            end = f"_{number}"
            name, number = plain[: 64 - len(end)] + end, number + 1
        assert _NAME.fullmatch(name)
        taken.add(name)
        names[name] = tool.name
    return names
