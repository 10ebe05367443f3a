"""Sends requests in batches, which a server answers later; no request is paid for twice.

Requests are written to disk before they are sent (:mod:`judge.inference.batches.log`), and creating
a batch is tried only once. If it is unknown whether the batch was created, because the process was
killed or the answer was lost, the server's list of batches is searched. If the batch is not on the
list, the uploaded file is deleted, so that no batch can be made of it later, and the list is
searched again. Only then are the requests sent again.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from judge.errors import InferenceError, StoreError
from judge.files.documents import MalformedError, as_object, parse_json
from judge.files.json_lines import MAX_LINE_BYTES
from judge.inference.batches.ahead import (
    CHAT_PATH,
    JobKey,
    Outcome,
    PendingRequest,
    RequestQueue,
    read_result,
    request_line,
)
from judge.inference.batches.log import BATCHES_FILE, BatchedRequest, BatchLog, OpenBatch, is_id
from judge.inference.chat import CallError, ChatReply
from judge.inference.client import (
    AttemptError,
    OpenAIChatModel,
    RetryPolicy,
    ServerRequest,
    error_of_answer,
    refuses_pictures,
)
from judge.inference.run_records import BatchEvent

MAX_REQUESTS = 50_000
"""Largest number of requests in a batch; this is the limit of OpenAI."""

MAX_BYTES = 190_000_000
"""Largest file of a batch, in bytes; the limit of OpenAI is 200 MB."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often the progress of batches is checked.

    Attributes:
        first_s: wait before the first check.
        longest_s: upper limit of the waits, which grow.
        settle_s: wait before the list is searched again for a batch that was not found.
        patience_s: how long a batch may take after its creation: twice the completion window.
    """

    first_s: float = 2.0
    longest_s: float = 60.0
    settle_s: float = 5.0
    patience_s: float = 2 * 86_400.0


@dataclass(slots=True)
class _Draft:
    """A batch to which requests are still being added."""

    file: IO[bytes]
    requests: list[BatchedRequest] = field(default_factory=list)
    size: int = 0
    tokens: int = 0
    cost: float = 0.0

    def has_room(self, line: bytes) -> bool:
        return len(self.requests) < MAX_REQUESTS and self.size + len(line) <= MAX_BYTES


@dataclass(slots=True)
class _Sent:
    """A request that this command sends.

    Attributes:
        job: the task and the sample.
        has_pictures: whether the request shows pictures.
        cache_key: the key of the reply in the cache of all runs; None if it is not to be cached.
        faults: the errors of the attempts so far.
    """

    job: JobKey
    has_pictures: bool
    cache_key: str | None
    faults: list[str] = field(default_factory=list)


class BatchClient:
    """Sends requests in batches, waits for the replies, and sends failed requests again.

    Args:
        endpoint: the batch endpoint of the server.
        book: the record of the run's batches.
        policy: how many times a request is sent, and the waits between attempts.
        pace: how often the progress of batches is checked.
    """

    collects_batches = True

    def __init__(
        self,
        endpoint: BatchEndpoint,
        book: BatchLog,
        policy: RetryPolicy | None = None,
        pace: Pace | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._book = book
        self._policy = policy or RetryPolicy()
        self._pace = pace or Pace()
        self._open: dict[str, tuple[OpenBatch, contextlib.ExitStack]] = {}
        self._sent: dict[str, _Sent] = {}
        self._failures: dict[str, CallError] = {}
        self._retried: set[JobKey] = set()
        self._unasked: set[JobKey] = set()

    async def answer(self, queue: RequestQueue) -> Outcome:
        """Gets replies to the requests of a queue.

        Raises:
            InferenceError: the server takes no batches, or cannot be reached.
            StoreError: the records of batches are broken, or are about another server.
        """
        try:
            for batch in self._book.open_batches():
                await self._resume(queue, batch)
            await self._send(queue, None)
            for rounds in range(1, self._policy.attempts + 1):
                await self._wait_for_all(queue)
                if not self._retried:
                    break
                await asyncio.sleep(self._policy.wait_s(rounds))
                jobs, self._retried = sorted(self._retried), set()
                await self._send(queue, jobs)
        except CallError as error:
            raise InferenceError(
                f"{self._endpoint.endpoint}: {error.message}",
                hint="Does the server take batches? Batches that are under way are not lost: the "
                f"same command continues from here. To give up on them, delete {BATCHES_FILE}; "
                "they may be billed nevertheless.",
            ) from error
        stopped = "the budget is used up" if self._unasked else None
        return Outcome(self._failures, frozenset(self._unasked), stopped)

    # -- sending ---------------------------------------------------------------------------------

    async def _send(self, queue: RequestQueue, jobs: Iterable[JobKey] | None) -> None:
        """Sends the requests that have no reply and are not in an open batch."""
        draft: _Draft | None = None
        under_way = {custom_id for batch, _ in self._open.values() for custom_id in batch.requests}
        with contextlib.ExitStack() as files:
            async for pending in queue.pending(jobs):
                request = pending.request
                if request.custom_id in self._failures:
                    continue
                self._note_sent(queue, pending)
                if request.custom_id in under_way:
                    continue
                line = request_line(request)
                if draft is not None and not draft.has_room(line):
                    await self._submit(queue, draft)
                    draft = None
                draft = draft or _Draft(
                    files.enter_context(tempfile.TemporaryFile(dir=queue.folder))
                )
                tokens, cost = queue.context.expected(request)
                fits = queue.context.budget.allows(draft.tokens + tokens, draft.cost + cost)
                if not fits or self._unasked:
                    self._unasked.add(pending.job)
                    continue
                draft.file.write(line)
                draft.requests.append(BatchedRequest(pending.key, pending.prompt_tokens))
                draft.size += len(line)
                draft.tokens += tokens
                draft.cost += cost
            if draft is not None and draft.requests:
                await self._submit(queue, draft)

    def _note_sent(self, queue: RequestQueue, pending: PendingRequest) -> None:
        request = pending.request
        if request.custom_id not in self._sent:
            self._sent[request.custom_id] = _Sent(
                pending.job, request.has_pictures, queue.cache_key(request)
            )

    async def _submit(self, queue: RequestQueue, draft: _Draft) -> None:
        batch = self._book.intend(self._endpoint.endpoint, draft.requests, draft.tokens, draft.cost)
        try:
            file_id = await self._endpoint.upload(f"{batch.label}.jsonl", draft.file)
        except CallError:
            self._book.void(batch, "the file was not uploaded")
            raise
        finally:
            draft.file.close()
        self._book.uploaded(batch, file_id)
        try:
            state: BatchState | None = await self._endpoint.create(file_id, batch.label)
        except CallError as error:
            if error.kind != "gave-up":
                self._book.void(batch, f"refused: {error.message}")
                raise
            state = await self._find_batch(batch)
            if state is None:
                self._ask_again(batch, AttemptError(error.message))
                return
        if state is not None:
            self._take(queue, batch, state)

    def _take(self, queue: RequestQueue, batch: OpenBatch, state: BatchState | None) -> None:
        """Adds a batch to the open ones, and reserves its cost in the budget."""
        if state is not None:
            self._book.created(batch, state.batch_id)
        reservation = contextlib.ExitStack()
        reservation.enter_context(queue.context.budget.hold(batch.tokens, batch.cost))
        self._open[batch.label] = (batch, reservation)

    # -- batches of an earlier command, or of a lost answer --------------------------------------

    async def _resume(self, queue: RequestQueue, batch: OpenBatch) -> None:
        """Continues a batch of an earlier command.

        Raises:
            StoreError: the batch is on another server.
        """
        if batch.file_id is None:
            self._book.void(batch, "nothing was uploaded")
            return
        if batch.endpoint != self._endpoint.endpoint:
            raise StoreError(
                f"{queue.folder / BATCHES_FILE}: {len(batch.requests)} requests are under way at "
                f"{batch.endpoint}, not at {self._endpoint.endpoint}",
                hint="Continue with that endpoint, or give another --out.",
            )
        if batch.batch_id is not None:
            self._take(queue, batch, None)
        elif (state := await self._find_batch(batch)) is not None:
            self._take(queue, batch, state)

    async def _find_batch(self, batch: OpenBatch) -> BatchState | None:
        """Finds the batch made of an uploaded file; None if no such batch will ever exist."""
        assert batch.file_id is not None
        for last in (False, True):
            state = await self._endpoint.find(batch.label, batch.file_id, batch.begun_s)
            if state is not None:
                return state
            if not last:
                await self._endpoint.forget(batch.file_id)
                await asyncio.sleep(self._pace.settle_s)
        self._book.void(batch, "the server has no such batch")
        return None

    # -- waiting and collecting ------------------------------------------------------------------

    async def _wait_for_all(self, queue: RequestQueue) -> None:
        wait_s = self._pace.first_s
        while self._open:
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 1.5, self._pace.longest_s)
            for batch, reservation in list(self._open.values()):
                assert batch.batch_id is not None
                state = await self._endpoint.state(batch.batch_id)
                if state.batch_id != batch.batch_id:
                    raise CallError(
                        "gave-up",
                        f"asked about the batch {batch.batch_id}, the server answered about "
                        f"{state.batch_id}",
                    )
                total = len(batch.requests)
                queue.on_batch(
                    BatchEvent(state.batch_id, state.status, min(state.answered, total), total)
                )
                if state.is_over:
                    await self._collect(queue, batch, state)
                    reservation.close()
                    del self._open[batch.label]
                elif time.time() - batch.begun_s > self._pace.patience_s:
                    raise CallError(
                        "gave-up",
                        f"the batch {batch.batch_id} has the status {state.status!r} more than "
                        f"{self._pace.patience_s / 3600:g} hours after it was made",
                    )

    async def _collect(self, queue: RequestQueue, batch: OpenBatch, state: BatchState) -> None:
        """Records the replies of a batch that has ended, and marks failed requests for a retry."""
        open_requests = dict(batch.requests)
        errors: dict[str, AttemptError] = {}
        for file_id in state.files:
            async for line in self._endpoint.results(file_id, queue.folder):
                result = read_result(line)
                if result is None or result.custom_id not in open_requests:
                    continue
                if result.reply is None:
                    assert result.error is not None
                    errors[result.custom_id] = result.error
                    continue
                request = open_requests.pop(result.custom_id)
                self._record(queue, request, result.reply, batch, result.custom_id)
        errors = {**_errors_of(batch, state), **errors}
        for custom_id in open_requests:
            self._fail(custom_id, errors[custom_id])
        queue.context.journal.sync()
        self._book.collected(batch, state.status, len(batch.requests) - len(open_requests))

    def _record(
        self,
        queue: RequestQueue,
        request: BatchedRequest,
        reply: ChatReply,
        batch: OpenBatch,
        custom_id: str,
    ) -> None:
        sent = self._sent.get(custom_id)
        faults = tuple(sent.faults) if sent else ()
        reply = replace(reply, attempts=len(faults) + 1, faults=faults)
        queue.record(request.key, reply, request.prompt_tokens, str(batch.batch_id))
        if sent is not None and sent.cache_key is not None and queue.context.cache is not None:
            queue.context.cache.put(sent.cache_key, reply)

    def _ask_again(self, batch: OpenBatch, error: AttemptError) -> None:
        for custom_id in batch.requests:
            self._fail(custom_id, error)

    def _fail(self, custom_id: str, error: AttemptError) -> None:
        """Marks a failed request to be sent again, or gives up on it."""
        sent = self._sent.get(custom_id)
        if sent is None:
            return  # the request belongs to a task that this command leaves out
        sent.faults.append(error.message)
        if error.retry and len(sent.faults) < self._policy.attempts:
            self._retried.add(sent.job)
            return
        kind, message = error.kind, error.message
        if sent.has_pictures and refuses_pictures(message):
            kind = "pictures"
        if error.retry:
            message += f" ({len(sent.faults)} attempts)"
        self._failures[custom_id] = CallError(
            kind, message, attempts=len(sent.faults), faults=sent.faults
        )


def _errors_of(batch: OpenBatch, state: BatchState) -> dict[str, AttemptError]:
    """Returns the errors of requests that are missing from the files of results, by custom id."""
    reasons = "; ".join(dict.fromkeys(message for _, message in state.errors if message))
    message, retry = {
        "failed": (f"the batch failed: {reasons or 'the server does not say why'}", True),
        "expired": ("the batch expired before the request was answered", True),
        "cancelled": ("the batch was cancelled before the request was answered", False),
    }.get(state.status, ("the batch is complete without a result of this request", True))
    errors = {request: AttemptError(message[:500], retry=retry) for request in batch.requests}
    order = list(batch.requests)
    for line, why in state.errors:
        # One wrong line makes the whole batch fail; without this line, it may succeed.
        if line is not None and 1 <= line <= len(order):
            errors[order[line - 1]] = error_of_answer(400, why, None)
    return errors


WINDOW = "24h"
"""The time within which the server has to answer a batch; most servers accept no other value."""

LABEL = "judge"
"""The name of the metadata field that holds the judge's name for a batch."""

_FINAL_STATES = frozenset({"completed", "failed", "expired", "cancelled"})
_MAX_PAGES = 200  # of the list of batches
_PAGE_SIZE = 100  # batches on a page
_CLOCKS_DIFFER_S = 86_400.0
_SHOWN_CHARS = 300


@dataclass(frozen=True, slots=True)
class BatchState:
    """A batch as the server describes it.

    Attributes:
        batch_id: the id of the batch.
        status: ``validating``, ``in_progress``, ``finalizing``, ``completed``, ``failed``,
            ``expired``, ``cancelling`` or ``cancelled``.
        answered: how many requests are done, failures included.
        total: how many requests the batch has; 0 while the server does not report it.
        files: ids of the files with results that exist so far.
        errors: why the batch failed as a whole: the 1-based number of the line at fault (None if
            no line is named), and the message.
    """

    batch_id: str
    status: str
    answered: int = 0
    total: int = 0
    files: tuple[str, ...] = ()
    errors: tuple[tuple[int | None, str], ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether the batch has ended and cannot change any more."""
        return self.status in _FINAL_STATES


class BatchEndpoint:
    """The batch endpoint of the server of a chat model.

    Args:
        model: the chat model; its connection, key and retries are used.
    """

    def __init__(self, model: OpenAIChatModel) -> None:
        self._model = model

    @property
    def endpoint(self) -> str:
        """Address of the server, without credentials."""
        return self._model.endpoint

    async def upload(self, name: str, content: IO[bytes]) -> str:
        """Uploads a file with requests; returns its id.

        Raises:
            CallError: the file could not be uploaded. Uploading costs nothing.
        """
        request = ServerRequest("/files", body={"purpose": "batch"}, file=(name, content))
        return _id_in(await self._ask(request), "file")

    async def create(self, file_id: str, label: str) -> BatchState:
        """Asks the server once to create a batch from a file; a second batch would be billed too.

        Raises:
            CallError: of the kind ``gave-up`` if the batch may exist nevertheless.
        """
        body = {
            "input_file_id": file_id,
            "endpoint": CHAT_PATH,
            "completion_window": WINDOW,
            "metadata": {LABEL: label},
        }
        return _state_of(await self._ask(ServerRequest("/batches", body=body), once=True))

    async def state(self, batch_id: str) -> BatchState:
        """Returns the state of a batch.

        Raises:
            CallError: the server does not report it.
        """
        return _state_of(await self._ask(ServerRequest(f"/batches/{batch_id}")))

    async def find(self, label: str, file_id: str, begun_s: float) -> BatchState | None:
        """Finds the batch with a label or from a file; None if the server has no such batch.

        Args:
            label: the label.
            file_id: the file.
            begun_s: the earliest time of its creation, in seconds since 1970; the server's clock
                may differ by a day.

        Raises:
            CallError: the server does not list its batches.
        """
        after = ""
        for _ in range(_MAX_PAGES):
            page = await self._ask(ServerRequest(f"/batches?limit={_PAGE_SIZE}{after}"))
            entries = page.get("data")
            listed = entries if isinstance(entries, list) else []
            batches = [entry for entry in listed if isinstance(entry, dict)]
            for batch in batches:
                metadata = batch.get("metadata")
                labelled = isinstance(metadata, dict) and metadata.get(LABEL) == label
                if labelled or batch.get("input_file_id") == file_id:
                    return _state_of(batch)
            if not page.get("has_more") or not batches or not is_id(batches[-1].get("id")):
                return None
            created_at = batches[-1].get("created_at")
            if isinstance(created_at, int | float) and created_at < begun_s - _CLOCKS_DIFFER_S:
                return None  # the newest come first
            after = f"&after={batches[-1]['id']}"
        return None

    async def forget(self, file_id: str) -> None:
        """Tries to delete a file, so that no batch can be created from it any more."""
        with suppress(CallError):
            await self._model.call(ServerRequest(f"/files/{file_id}", deletes=True))

    async def results(self, file_id: str, folder: Path) -> AsyncIterator[bytes]:
        """Yields the lines of a file with results.

        Args:
            file_id: the file.
            folder: the folder for a temporary copy of the file.

        Raises:
            CallError: the file could not be downloaded.
        """
        with tempfile.TemporaryFile(dir=folder) as file:
            await self._model.call(ServerRequest(f"/files/{file_id}/content", keep_in=file))
            while line := file.readline(MAX_LINE_BYTES + 1):
                yield self._model.mask.masked(line)

    async def _ask(self, request: ServerRequest, *, once: bool = False) -> dict[str, Any]:
        body = await self._model.call(request, once=once)
        try:
            return as_object(parse_json(body))
        except MalformedError as error:
            # The server may have performed the request nevertheless.
            shown = body[:80].decode("utf-8", "replace")
            message = f"the answer to {request.path} is not one of a batch endpoint: {shown!r}"
            raise CallError("gave-up", message, attempts=1) from error


def _id_in(document: dict[str, Any], object_name: str) -> str:
    new_id = document.get("id")
    if not is_id(new_id):
        message = f"the server's id of the new {object_name} is not valid: {str(new_id)[:80]!r}"
        raise CallError("gave-up", message, attempts=1)
    return str(new_id)


def _state_of(document: dict[str, Any]) -> BatchState:
    counts = document.get("request_counts")
    counted = counts if isinstance(counts, dict) else {}
    files = (document.get("output_file_id"), document.get("error_file_id"))
    errors = document.get("errors")
    entries = errors.get("data") if isinstance(errors, dict) else None
    return BatchState(
        batch_id=_id_in(document, "batch"),
        status=str(document.get("status")).lower()[:40],
        answered=_count(counted.get("completed")) + _count(counted.get("failed")),
        total=_count(counted.get("total")),
        files=tuple(file for file in files if isinstance(file, str) and is_id(file)),
        errors=tuple(_error(x) for x in entries if isinstance(x, dict))
        if isinstance(entries, list)
        else (),
    )


def _error(entry: dict[str, Any]) -> tuple[int | None, str]:
    line = entry.get("line")
    reason = ": ".join(str(entry[name]) for name in ("code", "message") if entry.get(name))
    return (line if type(line) is int else None), reason[:_SHOWN_CHARS]


def _count(value: object) -> int:
    return value if type(value) is int and value > 0 else 0
