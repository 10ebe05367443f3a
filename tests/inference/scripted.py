"""A scripted chat-completion server on top of pytest-httpserver, which records its requests."""

from __future__ import annotations

import atexit
import functools
import itertools
import json
import logging
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

Reply = str | dict[str, Any] | Response
Script = Callable[["Seen"], Reply]

_TASK = re.compile(r"\d+_([\w-]+)_input\.xlsx")


@dataclass(frozen=True)
class Seen:
    """One request.

    Attributes:
        body: its JSON.
        task: the task that it is about, from the paths in the prompt.
        round: 1-based: how many replies stand in the conversation, and this one.
        number: 0-based number of the request at this server.
        at_s: when it came, on the monotonic clock.
        request: the request itself.
    """

    body: dict[str, Any]
    task: str
    round: int
    number: int
    at_s: float
    request: Request

    @property
    def messages(self) -> list[dict[str, str]]:
        return list(self.body["messages"])

    @property
    def last(self) -> str:
        return str(self.messages[-1]["content"])

    @property
    def prompt(self) -> str:
        return _opening(self.body)


@functools.cache
def _shared_server() -> HTTPServer:
    """One server for all tests of the process, since stopping one takes half a second."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = HTTPServer(threaded=True)
    server.start()
    atexit.register(server.stop)
    return server


@dataclass
class ScriptedServer:
    """Answers each request as a script says.

    Attributes:
        url: what to give as ``--base-url``.
        seen: every request, in order.
    """

    script: Script
    http: HTTPServer = field(default_factory=_shared_server)
    seen: list[Seen] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Self:
        self.http.expect_request(re.compile(r"/v1/chat/completions")).respond_with_handler(
            self._answer
        )
        models = {"object": "list", "data": [{"id": "scripted-1", "object": "model"}]}
        self.http.expect_request("/v1/models").respond_with_json(models)
        return self

    def __exit__(self, *_: object) -> None:
        self.http.clear()

    @property
    def url(self) -> str:
        return str(self.http.url_for("/v1"))

    @property
    def by_task(self) -> Counter[str]:
        return Counter(seen.task for seen in self.seen)

    def _answer(self, request: Request) -> Response:
        body = json.loads(request.get_data())
        match = _TASK.search(_opening(body))
        rounds = sum(message["role"] == "assistant" for message in body["messages"]) + 1
        task = match[1] if match else ""
        with self._lock:
            number = len(self.seen)
            seen = Seen(body, task, rounds, number, time.monotonic(), request)
            self.seen.append(seen)
        reply = self.script(seen)
        if isinstance(reply, Response):
            return reply
        document = completion(reply, body) if isinstance(reply, str) else reply
        return Response(json.dumps(document), content_type="application/json")


def _opening(body: dict[str, Any]) -> str:
    """The messages before the first reply."""
    said = itertools.takewhile(lambda each: each["role"] in {"system", "user"}, body["messages"])
    return "\n".join(str(message["content"]) for message in said)


def completion(
    text: str | None, body: dict[str, Any], *, finish_reason: str = "stop"
) -> dict[str, Any]:
    """Makes a chat completion with counted tokens (four characters each)."""
    prompt = sum(len(str(message["content"])) for message in body["messages"]) // 4
    answer = len(text or "") // 4
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted-1",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": finish_reason,
            }
        ],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": answer,
            "total_tokens": prompt + answer,
        },
    }


def fault(status: int, message: str = "scripted fault", **headers: str) -> Response:
    """Makes an error as servers of this kind send it."""
    body = {"error": {"message": message, "code": str(status)}}
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(json.dumps(body), status, names, content_type="application/json")


def drop(seen: Seen) -> Response:
    """Closes the connection without an answer."""
    connection: socket.socket = seen.request.environ["werkzeug.socket"]
    connection.shutdown(socket.SHUT_RDWR)
    return Response("")


def cut_in_body() -> Response:
    """Announces more bytes than it sends."""
    return Response(
        b'{"choices": [{"message"', headers={"Content-Length": "5000"}, content_type="text/json"
    )


def endless(chunk: bytes = b" ", pause_s: float = 0.05, bound_s: float = 5.0) -> Response:
    """Sends a reply that does not end within any test."""

    def chunks() -> Iterator[bytes]:
        started = time.monotonic()
        while time.monotonic() - started < bound_s:
            yield chunk
            time.sleep(pause_s)

    return Response(chunks(), content_type="application/json", direct_passthrough=True)


def program(task: str, body: str = "") -> str:
    """Makes a reply with a program that copies the workbook of a task."""
    return (
        "Here it is:\n```python\nimport openpyxl\n"
        f"workbook = openpyxl.load_workbook('/mnt/data/input/1_{task}_input.xlsx')\n"
        f"{body}"
        f"workbook.save('/mnt/data/output/1_{task}_output.xlsx')\n```\n"
    )
