"""Offers tools as a server of the Model Context Protocol on stdin and stdout.

There is one JSON-RPC 2.0 message per line. In older versions of the protocol, a session begins with
``initialize``; newer versions are stateless: every request names its version in ``_meta``, and
``server/discover`` returns the supported versions. Calls are executed one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from judge.console import visible
from judge.errors import JudgeError
from judge.files.documents import MIB, MalformedError, dump_json, parse_json
from judge.tools.contract import Tool, ToolFaultError
from judge.version import __version__

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Versions that begin with ``initialize``. Source: modelcontextprotocol.io/specification."""

STATELESS = ("2026-07-28",)
"""Versions in which every request names the version."""

MAX_LINE_BYTES = 16 * MIB
_MAX_VALUES = 200_000

_VERSION = "io.modelcontextprotocol/protocolVersion"
_SERVER = "io.modelcontextprotocol/serverInfo"

_BROKEN, _NO_REQUEST, _UNKNOWN, _PARAMETERS = -32700, -32600, -32601, -32602
_WRONG_VERSION = -32022

_INSTRUCTIONS = (
    "Tools for the workbooks of one folder. Look with list_sheets and view_range before you change "
    "anything, and compute formulas with recalc after it."
)


class _RequestError(Exception):
    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class ToolServer:
    """Answers the requests of one client.

    Args:
        tools: the tools to offer.
        log: called with lines for the person who started the server.
    """

    def __init__(self, tools: Sequence[Tool], log: Callable[[str], None] = lambda _: None) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._log = log
        self._info = {"name": "judge", "version": __version__}
        self._methods: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": lambda _: {},
            "tools/list": self._list,
            "tools/call": self._call,
        }

    def serve(self, incoming: IO[bytes], outgoing: IO[bytes]) -> None:
        """Answers line by line until the input ends.

        Args:
            incoming: one message per line; lines longer than :data:`MAX_LINE_BYTES` are refused.
            outgoing: receives one message per line, and nothing else.
        """
        while line := incoming.readline(MAX_LINE_BYTES + 1):
            answer: dict[str, Any] | None
            if len(line) > MAX_LINE_BYTES:
                while line and not line.endswith(b"\n"):
                    line = incoming.readline(MAX_LINE_BYTES)
                answer = _error(None, _NO_REQUEST, f"a line has more than {MAX_LINE_BYTES:,} bytes")
            elif line.strip():
                answer = self.answer(line)
            else:
                continue
            if answer is not None:
                outgoing.write(dump_json(answer).encode() + b"\n")
                outgoing.flush()

    def answer(self, line: bytes) -> dict[str, Any] | None:
        """Returns the answer to a message; None if it is a notification or an answer."""
        try:
            message = parse_json(line, max_values=_MAX_VALUES)
        except MalformedError as error:
            return _error(None, _BROKEN, str(error))
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return _error(None, _NO_REQUEST, "not a request of JSON-RPC 2.0")
        number, method = message.get("id"), message.get("method")
        if "id" not in message or not isinstance(method, str):
            return None
        if isinstance(number, bool) or not isinstance(number, str | int):
            return _error(None, _NO_REQUEST, "the id of a request is a string or a whole number")
        try:
            return {"jsonrpc": "2.0", "id": number, "result": self._result(method, message)}
        except _RequestError as error:
            return _error(number, error.code, error.message, error.data)
        except Exception as error:  # noqa: BLE001  the next request is still answered
            self._log(f"{method}: {type(error).__name__}: {error}")
            return _error(number, -32603, f"the server failed: {type(error).__name__}")

    def _result(self, method: str, message: Mapping[str, Any]) -> dict[str, Any]:
        params = message.get("params", {})
        if not isinstance(params, dict):
            raise _RequestError(_PARAMETERS, "params must be an object")
        meta = params.get("_meta")
        requested = meta.get(_VERSION) if isinstance(meta, dict) else None
        if requested is not None and requested not in STATELESS:
            supported = [*STATELESS, *HANDSHAKE]
            data = {"supported": supported, "requested": str(requested)[:80]}
            raise _RequestError(_WRONG_VERSION, "this version is not supported", data)
        run = self._methods.get(method)
        if run is None:
            raise _RequestError(_UNKNOWN, f"there is no method {visible(method)!r:.80}")
        result = run(params)
        if requested is not None:
            result |= {"resultType": "complete", "_meta": {_SERVER: self._info}}
            if method in {"server/discover", "tools/list"}:
                result |= {"ttlMs": 0, "cacheScope": "private"}
        return result

    def _initialize(self, params: Mapping[str, Any]) -> dict[str, Any]:
        requested = params.get("protocolVersion")
        return {
            "protocolVersion": requested if requested in HANDSHAKE else HANDSHAKE[-1],
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": self._info,
            "instructions": _INSTRUCTIONS,
        }

    def _discover(self, _: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "supportedVersions": [*STATELESS, *HANDSHAKE],
            "capabilities": {"tools": {"listChanged": False}},
            "instructions": _INSTRUCTIONS,
        }

    def _list(self, _: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "tools": [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "inputSchema": tool.schema,
                    "annotations": {"readOnlyHint": not tool.writes},
                }
                for tool in self._tools.values()
            ]
        }

    def _call(self, params: Mapping[str, Any]) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments", {})
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None:
            raise _RequestError(_PARAMETERS, f"there is no tool {str(name)!r:.80}")
        try:
            if not isinstance(arguments, dict):
                raise ToolFaultError("the arguments must be an object")
            text, failed = tool(arguments), False
        except JudgeError as error:
            text, failed = error.message + (f" {error.hint}" if error.hint else ""), True
        return {"content": [{"type": "text", "text": text}], "isError": failed}


def _error(
    number: str | int | None, code: int, message: str, data: object = None
) -> dict[str, Any]:
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": number, "error": error}
