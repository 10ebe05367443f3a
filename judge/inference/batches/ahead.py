"""Requests that are sent before the conversations begin, and the recording of their replies.

In a setting of one round, every request is known in advance. All of them are sent together, by one
of several clients (batches of a server, files for offline inference), and the replies are recorded
in the run's journal. The conversations then proceed as usual, and find their replies there.

Files of requests and results have the format of OpenAI's batches, which vLLM's ``run-batch`` also
uses. Results come in any order; a failed request has a result line with a status or an error code.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from judge.errors import InferenceError, SandboxError, SuiteError, UsageError, WorkbookError
from judge.files.documents import MalformedError, as_object, parse_json
from judge.files.json_lines import MAX_LINE_VALUES, read_lines
from judge.files.writing import folder_beside, naming_what_is_written
from judge.inference.calls import CallContext, CallKey, TaskClient
from judge.inference.chat import (
    CallError,
    ChatReply,
    ChatRequest,
    NotACompletionError,
    estimate_request_tokens,
    read_reply,
)
from judge.inference.client import AttemptError, detail_of, error_of_answer
from judge.inference.plan import Assignment, InferencePlan
from judge.inference.run_records import BatchEvent
from judge.inference.solver import Solver

Job = tuple[Assignment, int]
"""A task, and the 0-based number of the sample."""

JobKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A request that has no reply yet.

    Attributes:
        job: the task and the sample.
        key: the key of the call.
        request: the request.
    """

    job: JobKey
    key: CallKey
    request: ChatRequest

    @property
    def prompt_tokens(self) -> int:
        """Estimated tokens of the prompt."""
        return estimate_request_tokens(self.request.messages)


def _none() -> Mapping[str, CallError]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Outcome:
    """The requests that have no reply before the conversations begin.

    Attributes:
        failures: why requests have no reply, by custom id.
        unasked: tasks and samples with requests that were not sent.
        stopped: why they were not sent, if the reason ends the run; otherwise None.
    """

    failures: Mapping[str, CallError] = field(default_factory=_none)
    unasked: frozenset[JobKey] = frozenset()
    stopped: str | None = None


class BulkClient(Protocol):
    """A client that obtains replies before the conversations begin."""

    @property
    def collects_batches(self) -> bool:
        """Whether this client collects batches that an earlier command sent."""
        ...

    async def answer(self, queue: RequestQueue) -> Outcome:
        """Gets replies to the requests of a queue, as far as possible.

        Raises:
            InferenceError: no request can be answered in this way.
            StoreError: records cannot be read or written.
        """
        ...


class RequestQueue:
    """The requests of a run that have no reply yet; replies are recorded here.

    Args:
        plan: the plan of the run.
        jobs: the tasks and samples that have no submission yet.
        solver: builds the prompts.
        context: the context that the calls of all tasks share.
        folder: the run's directory, for temporary files.
        on_batch: called with the progress of batches.
    """

    def __init__(
        self,
        plan: InferencePlan,
        jobs: Sequence[Job],
        solver: Solver,
        context: CallContext,
        folder: Path,
        on_batch: Callable[[BatchEvent], None],
    ) -> None:
        self._plan = plan
        self._jobs = {(task.question.id, sample): (task, sample) for task, sample in jobs}
        self._solver = solver
        self.context = context
        self.folder = folder
        self.on_batch = on_batch

    async def pending(self, jobs: Iterable[JobKey] | None = None) -> AsyncIterator[PendingRequest]:
        """Yields the requests whose replies are neither recorded nor in the cache.

        A task whose prompt cannot be built is skipped: its conversation will report the reason.

        Args:
            jobs: the tasks and samples; None for all.
        """
        for job in self._jobs if jobs is None else jobs:
            assignment, sample = self._jobs[job]
            question = assignment.question
            context = replace(self.context, params=self._plan.params_of(question))
            client = TaskClient(context, question.id, sample)
            try:
                openings = await self._solver.openings(assignment)
            except (WorkbookError, SuiteError, SandboxError):
                continue
            for case, content in openings:
                key, request = client.request(({"role": "user", "content": content},), 1, case)
                if context.journal.find(key) is None and not self._is_cached(request):
                    yield PendingRequest(job, key, request)

    def record(self, key: CallKey, reply: ChatReply, prompt_tokens: int, source: str) -> None:
        """Records a reply in the journal, unless the journal already has one to the request.

        Args:
            key: the key of the call.
            reply: the reply.
            prompt_tokens: estimated tokens of the prompt, in case the server did not count them.
            source: the batch or the file from which the reply comes.
        """
        if self.context.journal.find(key) is None:
            self.context.write_down(key, reply, lambda: prompt_tokens, batch=source)

    def cache_key(self, request: ChatRequest) -> str | None:
        """Returns the key of a reply in the cache of all runs; None if the reply is not cached."""
        if self.context.cache is None or not request.is_repeatable:
            return None
        return request.digest(self.context.chat_model.endpoint)

    def _is_cached(self, request: ChatRequest) -> bool:
        digest = self.cache_key(request)
        cache = self.context.cache
        return digest is not None and cache is not None and cache.get(digest) is not None


class AnsweredAhead:
    """The chat model of conversations whose replies are already recorded; it only reports failures.

    Args:
        endpoint: address of the server.
        failures: why requests have no reply, by custom id.
    """

    def __init__(self, endpoint: str, failures: Mapping[str, CallError]) -> None:
        self._endpoint = endpoint
        self._failures = failures

    @property
    def endpoint(self) -> str:
        """Address of the server, without credentials."""
        return self._endpoint

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Raises the error of the request.

        Raises:
            CallError: always, since requests that succeeded have a reply in the journal.
        """
        raise self._failures.get(request.custom_id) or CallError(
            "gave-up", "the request was not among those sent before the conversations"
        )

    async def close(self) -> None:
        """Does nothing: there is no connection."""


CHAT_PATH = "/v1/chat/completions"
_NOT_BEGUN = "batch_expired"
_CANCELLED = "batch_cancelled"


def request_line(request: ChatRequest) -> bytes:
    """Returns a request as a line of a batch file, with the line break.

    Raises:
        StoreError: a picture is missing, or was changed.
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
    """The result of a request.

    Attributes:
        custom_id: the custom id of the request.
        reply: the reply; None if the request failed.
        error: why the request failed; None if it did not.
    """

    custom_id: str
    reply: ChatReply | None = None
    error: AttemptError | None = None


def read_result(line: bytes) -> Result | None:
    """Reads a line of results; returns None if it does not name its request."""
    try:
        record = as_object(parse_json(line, max_values=MAX_LINE_VALUES))
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
        return AttemptError("the batch expired before the request was answered")
    if code == _CANCELLED:
        return AttemptError("the batch was cancelled before the request was answered", retry=False)
    detail = detail_of(body) or detail_of(error) or ""
    for number in (status, code):
        if type(number) is int and number >= 400:
            return error_of_answer(number, detail, None)
    return AttemptError(detail or "the result is neither a reply nor an error")


class RequestsFile:
    """Writes the requests that have no reply yet; nothing is sent.

    Args:
        path: the file; an existing one is replaced.

    Attributes:
        written: how many requests were written to the file.
    """

    collects_batches = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self.written = 0

    async def answer(self, queue: RequestQueue) -> Outcome:
        """Writes the file.

        Raises:
            InferenceError: the file cannot be written.
        """
        jobs: set[JobKey] = set()
        self.written = 0
        with (
            naming_what_is_written(self._path, InferenceError),
            folder_beside(self._path, ".requests-") as scratch,
        ):
            part = scratch / self._path.name
            with part.open("wb") as file:
                async for pending in queue.pending():
                    file.write(request_line(pending.request))
                    jobs.add(pending.job)
                    self.written += 1
            part.replace(self._path)
        return Outcome(unasked=frozenset(jobs))


class ResultsFile:
    """Reads replies from a file of results, which may be in any order.

    Args:
        path: the file.
    """

    collects_batches = False

    def __init__(self, path: Path) -> None:
        self._path = path

    async def answer(self, queue: RequestQueue) -> Outcome:
        """Records the replies to requests without a recorded reply.

        Raises:
            UsageError: there is no such file.
            InferenceError: the file cannot be read, or answers none of the requests.
        """
        if not self._path.exists():
            raise UsageError(f"{self._path}: there is no such file")
        pending = {request.request.custom_id: request async for request in queue.pending()}
        total, name = len(pending), self._path.name
        missing = f"{name} has no result of this request"
        failures = {custom_id: CallError("gave-up", missing) for custom_id in pending}
        for _, line in read_lines(self._path, InferenceError):
            result = read_result(line)
            request = pending.get(result.custom_id) if result is not None else None
            if result is None or request is None:
                continue
            if result.reply is None:
                assert result.error is not None
                failures[result.custom_id] = CallError(
                    result.error.kind, result.error.message, attempts=1
                )
                continue
            reply = replace(result.reply, attempts=1)
            queue.record(request.key, reply, request.prompt_tokens, name)
            del pending[result.custom_id]
            failures.pop(result.custom_id, None)
        if total and len(pending) == total and all(x.message == missing for x in failures.values()):
            raise InferenceError(
                f"{self._path}: the file answers none of the {total} open requests",
                hint="A request is identified by its whole content: suite, prompt, model and "
                "parameters. Read the results into the run that --batch-file was given for.",
            )
        return Outcome(failures)
