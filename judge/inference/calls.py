"""Calls to a chat model about one task: every call is recorded, and no reply is paid for twice.

Each reply is written to the run's ``calls.jsonl`` before it is used. When a run is continued, an
interrupted conversation is replayed from this file up to the point where it stopped; from there on,
the model is asked. Replies to repeatable requests (temperature 0, or a seed) are also shared
between runs, through a cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from judge.core.conversation import estimate_tokens
from judge.files.documents import dump_json, read_kept, utc_now
from judge.files.writing import write_whole
from judge.grading.store import RunDirectory
from judge.inference.chat import (
    CallError,
    ChatModel,
    ChatReply,
    ChatRequest,
    Message,
    estimate_request_tokens,
    reply_of_json,
)
from judge.inference.config import Price
from judge.inference.pacing import Budget
from judge.inference.pictures import PictureStore

CALLS_FILE = "calls.jsonl"
_EXPECTED_COMPLETION_TOKENS = 800
_MAX_AMOUNT = 1e12

CallKey = tuple[str, int, int, int, str]
"""(task id, sample, case, round, hash of the request); case is 0 for a call about all cases."""


class ReplyCache:
    """A cache of replies to repeatable requests, one small file for each, shared between runs.

    Args:
        folder: the folder of the files; created when the first file is written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, digest: str) -> ChatReply | None:
        """Returns the reply to a request; None if its file is missing or broken."""
        try:
            document = read_kept(self._path(digest))
            return reply_of_json(document or {}, cached=True, attempts=0, seconds=0.0, faults=())
        except TypeError:
            return None

    def put(self, digest: str, reply: ChatReply) -> None:
        """Stores a reply; an error, such as a full disk, is ignored."""
        path = self._path(digest)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, dump_json(reply.to_json()).encode("utf-8"))
        except OSError:
            return

    def _path(self, digest: str) -> Path:
        return self._folder / digest[:2] / f"{digest}.json"


class Journal:
    """The run's ``calls.jsonl``: requests, replies and their cost.

    Args:
        store: the run's directory; None to keep the calls in memory, if the caller records them.
        budget: the budget; it is charged with the cost of the recorded calls.
    """

    def __init__(self, store: RunDirectory | None, budget: Budget) -> None:
        self._store = store
        self._replies: dict[CallKey, Mapping[str, Any]] = {}
        self._answered: dict[tuple[str, int], list[Mapping[str, Any]]] = defaultdict(list)
        for record in () if store is None else store.read_records(CALLS_FILE):
            call: dict[str, Any] = record
            budget.spend(int(_amount(call.get("tokens"))), _amount(call.get("cost")))
            self._remember(call)

    def find(self, key: CallKey) -> Mapping[str, Any] | None:
        """Returns the record of a call that has been answered; None if there is no such record."""
        return self._replies.get(key)

    def answered(self, task_id: str, sample: int) -> list[Mapping[str, Any]]:
        """Returns the records of all answered calls about a task and sample, from any attempt."""
        return list(self._answered.get((task_id, sample), ()))

    def append(self, record: Mapping[str, Any]) -> None:
        """Records a call; if it was answered, :meth:`find` finds it from now on."""
        if self._store is not None:
            self._store.append(CALLS_FILE, record)
        self._remember(record)

    def sync(self) -> None:
        """Waits until the calls recorded so far have been written to disk."""
        if self._store is not None:
            self._store.sync(CALLS_FILE)

    def _remember(self, call: Mapping[str, Any]) -> None:
        reply = call.get("reply")
        if isinstance(reply, dict):
            # A record that the judge did not write is ignored, so that the model is asked again.
            with contextlib.suppress(TypeError, ValueError):
                reply_of_json(reply)
                key = _key_of(call)
                if key not in self._replies:
                    self._answered[key[0], key[1]].append(call)
                self._replies[key] = call


def _amount(value: Any) -> float:
    """Tokens or dollars in a record; never negative, so that no record reduces the total."""
    return value if type(value) in {int, float} and 0 <= value <= _MAX_AMOUNT else 0.0


def _key_of(call: Mapping[str, Any]) -> CallKey:
    return (
        str(call.get("task")),
        int(call.get("sample") or 0),
        int(call.get("case") or 0),
        int(call.get("round") or 0),
        str(call.get("request")),
    )


@dataclass(frozen=True, slots=True)
class CallContext:
    """The model, its settings and the records, which the calls of all tasks of a run share.

    Attributes:
        chat_model: the model.
        model: the server's name for the model.
        params: request parameters; the number of the sample is added to a seed.
        journal: the run's calls.
        budget: the spending limits.
        price: the price of tokens; None if it is unknown.
        cache: replies of other runs; None to use none.
        pictures: the pictures of messages; None if there are none.
    """

    chat_model: ChatModel
    model: str
    params: Mapping[str, Any]
    journal: Journal
    budget: Budget
    price: Price | None = None
    cache: ReplyCache | None = None
    pictures: PictureStore | None = None

    def expected(self, request: ChatRequest) -> tuple[int, float]:
        """Estimates the tokens (reply included) and the US dollars that a request will cost."""
        prompt = estimate_request_tokens(request.messages)
        completion = int(request.params.get("max_tokens") or _EXPECTED_COMPLETION_TOKENS)
        cost = self.price.of(prompt, completion) if self.price else 0.0
        return prompt + completion, cost

    def write_down(
        self, key: CallKey, reply: ChatReply, prompt_tokens_about: Callable[[], int], **more: Any
    ) -> dict[str, Any]:
        """Records a reply in the journal, and charges its cost to the budget.

        Args:
            key: the call.
            reply: the reply.
            prompt_tokens_about: estimates the tokens of the prompt; it is called only if the server
                did not count them.
            **more: further fields of the record.

        Returns:
            The record.
        """
        counted = reply.prompt_tokens is not None and reply.completion_tokens is not None
        prompt_tokens, completion_tokens = reply.prompt_tokens or 0, reply.completion_tokens or 0
        if not counted:
            # The budget has to work with servers that do not count tokens, too.
            prompt_tokens = prompt_tokens_about()
            completion_tokens = estimate_tokens(reply.text)
        tokens, cost = prompt_tokens + completion_tokens, None
        if reply.cached:
            tokens, cost = 0, 0.0
        elif self.price is not None:
            cost = self.price.of(prompt_tokens, completion_tokens)
        record = _call_record(key) | {
            "tokens": tokens,
            "estimated": not counted,
            "cost": cost,
            "reply": reply.to_json(),
            **more,
        }
        self.budget.spend(tokens, cost or 0.0)
        self.journal.append(record)
        return record


@dataclass(slots=True)
class TaskClient:
    """Asks the chat model on behalf of one task and sample.

    Attributes:
        context: the context that the calls of all tasks share.
        task_id: the task.
        sample: 0-based number of the sample.
        calls: records of the calls so far, for the submission's record.
    """

    context: CallContext
    task_id: str
    sample: int
    calls: list[dict[str, Any]] = field(default_factory=list)

    async def ask(
        self, messages: tuple[Message, ...], round_number: int, case: int = 0
    ) -> ChatReply:
        """Returns the reply to a conversation: from the record, from the cache, or from the model.

        Args:
            messages: the conversation so far.
            round_number: 1-based number of the round.
            case: number of the test case that the request is about; 0 for no particular case.

        Raises:
            CallError: no reply could be obtained.
            BudgetReachedError: the budget does not allow the call.
        """
        context = self.context
        key, request = self.request(messages, round_number, case)
        record = context.journal.find(key)
        if record is not None:
            self.calls.append(_without_text(record))
            return reply_of_json(record["reply"])
        if context.cache is None or not request.is_repeatable:
            reply = await self._send(request, key)
        else:
            digest = request.digest(context.chat_model.endpoint)
            cached = context.cache.get(digest)
            reply = cached or await self._send(request, key)
            if cached is None:
                context.cache.put(digest, reply)
        self._write_down(key, request, reply)
        return reply

    def lost(self) -> list[dict[str, Any]]:
        """Returns answered calls that are not among :attr:`calls`, marked as ``lost``.

        They belong to a desktop that broke or an episode that was interrupted. The next attempt saw
        a different screen and sent other requests, but these calls were paid for.
        """
        unused = [_without_text(call) for call in self.context.journal.answered(*self.key)]
        for call in self.calls:
            if call in unused:
                unused.remove(call)
        return [{**call, "lost": True} for call in unused]

    @property
    def key(self) -> tuple[str, int]:
        """The task and the sample."""
        return (self.task_id, self.sample)

    def request(
        self, messages: tuple[Message, ...], round_number: int, case: int = 0
    ) -> tuple[CallKey, ChatRequest]:
        """Returns the key under which a call is recorded, and the request of :meth:`ask`."""
        context = self.context
        request = ChatRequest(context.model, messages, self._params(), context.pictures)
        # The key leaves out the address: the server may have moved before the run is continued.
        key = (self.task_id, self.sample, case, round_number, request.digest(""))
        return key, replace(request, custom_id=custom_id_of(key))

    def _params(self) -> dict[str, Any]:
        params = dict(self.context.params)
        if params.get("seed") is not None:
            params["seed"] += self.sample
        return params

    async def _send(self, request: ChatRequest, key: CallKey) -> ChatReply:
        context = self.context
        with context.budget.reserve(*context.expected(request)):
            try:
                return await context.chat_model.complete(request)
            except CallError as error:
                record = _call_record(key) | {
                    "error": error.kind,
                    "message": error.message,
                    "attempts": error.attempts,
                    "cost": 0.0,
                    "faults": list(error.faults),
                }
                context.journal.append(record)
                self.calls.append(record)
                raise

    def _write_down(self, key: CallKey, request: ChatRequest, reply: ChatReply) -> None:
        record = self.context.write_down(
            key, reply, lambda: estimate_request_tokens(request.messages)
        )
        self.calls.append(_without_text(record))


def custom_id_of(key: CallKey) -> str:
    """Returns the id of a request in a batch: 64 hexadecimal digits.

    It depends on the task and the sample as well, because two samples may send equal requests.
    """
    return hashlib.sha256(json.dumps(key).encode("utf-8", "replace")).hexdigest()


def _call_record(key: CallKey) -> dict[str, Any]:
    task, sample, case, round_number, request = key
    return {
        "task": task,
        "sample": sample,
        "case": case,
        "round": round_number,
        "request": request,
        "at": utc_now(),
    }


def _without_text(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a call's record for the record of a submission: without the text of the reply."""
    reply = record["reply"]
    names = ("finish_reason", "prompt_tokens", "completion_tokens", "latency_s", "seconds")
    kept = {name: reply.get(name) for name in (*names, "attempts", "faults", "model", "cached")}
    for name in ("latency_s", "seconds"):
        kept[name] = round(float(kept[name] or 0.0), 3)
    if reply.get("cached_tokens"):
        kept["cached_tokens"] = reply["cached_tokens"]
    if record.get("batch"):  # the reply came in a batch, so that its time is unknown
        kept |= {"latency_s": None, "batch": record["batch"]}
    return {
        "round": record.get("round"),
        **({"case": record["case"]} if record.get("case") else {}),
        **kept,
        "cost": _amount(record["cost"]) if record.get("cost") is not None else None,
    }


def file_digest(path: Path) -> str:
    """SHA-256 of a file as hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
