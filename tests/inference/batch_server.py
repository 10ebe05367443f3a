"""A scripted batch server, and its record of what it would bill: files, batches, results."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.inference.scripted import _shared_server, completion, fault, program

Script = Callable[[str, int], str | int | None]
"""From a task and how often it was asked about before: a reply, an error's status, or None where
the batch expires before it is asked."""

_TASK = re.compile(r"1_([\w-]+)_input\.xlsx")


def always(task: str, _: int) -> str:
    return program(task)


@dataclass
class BatchServer:
    """Makes batches of files, and answers them at once, in reverse order.

    Attributes:
        script: what comes of each request.
        statuses: how batches end, in order; "completed" beyond the last.
        wrong_line: the line that a failed batch complains about; None for none.
        on_create: called when a batch is made, before the answer; returns another answer, or None.
        files: content by id; batches: by id.
        billed: how often each request was answered.
    """

    script: Script = always
    statuses: list[str] = field(default_factory=list)
    wrong_line: int | None = None
    on_create: Callable[[], Response | None] = lambda: None
    http: HTTPServer = field(default_factory=_shared_server)
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    billed: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    heard: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        for path in (r"/v1/files.*", r"/v1/batches.*"):
            self.http.expect_request(re.compile(path)).respond_with_handler(self._answer)
        return self

    def __exit__(self, *_: object) -> None:
        self.http.clear()

    @property
    def url(self) -> str:
        return str(self.http.url_for("/v1"))

    def _answer(self, request: Request) -> Response:
        self.heard.append(f"{request.method} {request.path}")
        parts = request.path.split("/")[2:]
        match (request.method, parts):
            case ("POST", ["files"]):
                file_id = f"file-{len(self.files)}"
                self.files[file_id] = request.files["file"].read()
                assert request.form["purpose"] == "batch"
                return _json({"id": file_id, "object": "file"})
            case ("GET", ["files", file_id, "content"]):
                return Response(self.files[file_id], content_type="application/octet-stream")
            case ("DELETE", ["files", file_id]):
                self.files.pop(file_id, None)
                return _json({"id": file_id, "deleted": True})
            case ("POST", ["batches"]):
                return self._create(json.loads(request.get_data()))
            case ("GET", ["batches", batch_id]):
                return _json(self.batches[batch_id])
            case ("GET", ["batches"]):
                return _json({"data": list(self.batches.values())[::-1], "has_more": False})
        return fault(404)

    def _create(self, body: dict[str, Any]) -> Response:
        if body["input_file_id"] not in self.files:
            return fault(400, "no such file")
        number = len(self.batches)
        status = self.statuses[number] if number < len(self.statuses) else "completed"
        batch: dict[str, Any] = {"id": f"batch_{number}", "status": status, **body}
        lines = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
        if status == "failed":
            error = {"code": "invalid", "message": "a scripted fault", "line": self.wrong_line}
            batch["errors"] = {"data": [error]}
        else:
            good: list[str] = []
            bad: list[str] = []
            for line in reversed(lines):
                result = self.result(line)
                (good if result["error"] is None else bad).append(json.dumps(result))
            for name, results in (("output_file_id", good), ("error_file_id", bad)):
                if results:
                    batch[name] = f"{name}-{number}"
                    self.files[batch[name]] = "\n".join(results).encode() + b"\n"
        self.batches[batch["id"]] = batch
        return self.on_create() or _json(batch)

    def result(self, line: dict[str, Any]) -> dict[str, Any]:
        """Returns the result of a request as a line of results."""
        assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
        match = _TASK.search(str(line["body"]["messages"][0]["content"]))
        reply = self.script(match[1] if match else "", self.asked[line["custom_id"]])
        self.asked[line["custom_id"]] += 1
        result: dict[str, Any] = {"custom_id": line["custom_id"], "response": None, "error": None}
        if reply is None:
            return result | {"error": {"code": "batch_expired", "message": "too late"}}
        if isinstance(reply, int):
            said = {"error": {"message": "scripted", "code": None}}
            answer = {"status_code": reply, "body": said}
            return result | {"response": answer, "error": {"code": None, "message": "scripted"}}
        self.billed[line["custom_id"]] += 1
        return result | {"response": {"status_code": 200, "body": completion(reply, line["body"])}}


def _json(document: dict[str, Any]) -> Response:
    return Response(json.dumps(document), content_type="application/json")
