"""The lines of batch files: requests as they are sent, results as they come back. Pure.

OpenAI's batches and vLLM's ``run-batch`` have the same form. Results come in any order, and a
request that failed has a line of its own, with a status or with an error's code.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from judge.files.documents import MalformedError, as_object, parse_json
from judge.files.json_lines import MAX_LINE_VALUES
from judge.inference.answers import NotACompletionError, read_reply
from judge.inference.attempts import AttemptError, detail_of, error_of_answer
from judge.inference.chat import ChatReply, ChatRequest

CHAT_PATH = "/v1/chat/completions"
_NOT_BEGUN = "batch_expired"
_CANCELLED = "batch_cancelled"


def request_line(request: ChatRequest) -> bytes:
    """A request as a line of a batch file, with its end.

    Raises:
        StoreError: a picture is missing, or is not what it was.
    """
    line = {
        "custom_id": request.custom_id,
        "method": "POST",
        "url": CHAT_PATH,
        "body": request.body(),
    }
    return json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a request.

    Attributes:
        custom_id: the request.
        reply: the reply; None if it failed.
        error: why it failed; None if it did not.
    """

    custom_id: str
    reply: ChatReply | None = None
    error: AttemptError | None = None


def read_result(line: bytes) -> Result | None:
    """A line of results; None if it does not say which request it is about."""
    try:
        record = as_object(parse_json(line, most_values=MAX_LINE_VALUES))
    except MalformedError:
        return None
    custom_id, response = record.get("custom_id"), record.get("response")
    if not isinstance(custom_id, str):
        return None
    answer: dict[str, Any] = response if isinstance(response, dict) else {}
    status, body = answer.get("status_code"), answer.get("body")
    if status == 200 and not record.get("error"):
        try:
            return Result(custom_id, reply=read_reply(json.dumps(body).encode("utf-8"), 0.0))
        except NotACompletionError as error:
            return Result(custom_id, error=AttemptError(str(error)))
    return Result(custom_id, error=_error_of(status, body, record.get("error")))


def _error_of(status: object, body: object, error: object) -> AttemptError:
    code = error.get("code") if isinstance(error, dict) else None
    if code == _NOT_BEGUN:
        return AttemptError("the batch expired before it was asked")
    if code == _CANCELLED:
        return AttemptError("the batch was cancelled before it was asked", retry=False)
    detail = detail_of(body) or detail_of(error) or ""
    for number in (status, code):
        if type(number) is int and number >= 400:
            return error_of_answer(number, detail, None)
    return AttemptError(detail or "the result is neither a reply nor an error")
