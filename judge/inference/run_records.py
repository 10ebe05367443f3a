"""Records and reports of a run of inference: submissions, conversations, failures, progress."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from judge.core.conversation import asking_of
from judge.errors import StoreError
from judge.files.writing import FileLock, HeldError, open_to_write, take_lock
from judge.grading.store import (
    MAX_DOCUMENT_BYTES,
    SUBMISSIONS_FILE,
    RunDirectory,
    too_long_to_read,
)
from judge.inference.conversation import Conversation
from judge.inference.plan import Assignment, InferencePlan

CONVERSATIONS_FOLDER = "conversations"
FAILURES_FILE = "failures.jsonl"
_LOCK_FILE = ".inference.lock"

_encode = json.JSONEncoder(ensure_ascii=False).encode

SampleKey = tuple[str, int]
"""(task id, 0-based sample)"""


class InferenceRecords:
    """The files of a run that inference writes.

    Grading may read and write in the same directory meanwhile: only inference takes this lock.

    Args:
        store: the run's directory.
    """

    def __init__(self, store: RunDirectory) -> None:
        self.store = store
        self._lock: FileLock | None = None

    def lock(self) -> None:
        """Takes the directory for this process's inference until :meth:`close`.

        Raises:
            StoreError: another process asks for the same run.
        """
        path = self.store.path / _LOCK_FILE
        try:
            (self.store.path / CONVERSATIONS_FOLDER).mkdir(parents=True, exist_ok=True)
            self._lock = take_lock(path)
        except OSError as error:
            raise StoreError(f"{path}: cannot be written: {error.strerror}") from error
        except HeldError as error:
            raise StoreError(
                f"{self.store.path}: another `judge infer` is at work on this run",
                hint="Wait for it to end, or give another --out.",
            ) from error

    def close(self) -> None:
        """Releases the directory; safe to call twice."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def finished(self) -> dict[SampleKey, dict[str, Any]]:
        """The submissions so far."""
        return {self.key_of(record): record for record in self.store.read_records(SUBMISSIONS_FILE)}

    def key_of(self, record: Mapping[str, Any]) -> SampleKey:
        """Which task and sample a record of submissions.jsonl is about.

        Raises:
            StoreError: it does not say.
        """
        task_id, sample = record.get("id"), record.get("sample") or 0
        if type(task_id) not in {int, str} or type(sample) is not int or sample < 0:
            raise StoreError(
                f"{self.store.path / SUBMISSIONS_FILE}: a record has the id {str(task_id)[:40]!r} "
                f"and the sample {str(sample)[:40]!r}",
                hint="The judge did not write this line. Remove it.",
            )
        return str(task_id), sample

    def conversation_path(self, task_id: str, sample: int) -> str:
        """The conversation's file, relative to the run's directory."""
        return f"{CONVERSATIONS_FOLDER}/{quote(task_id, safe=' ')}.{sample}.json"

    def write_conversation(self, task_id: str, sample: int, document: Mapping[str, Any]) -> None:
        """Replaces a conversation's file.

        A file that is incomplete because the process died belongs to a task without a submission:
        it is written again when the run is continued.
        """
        path = self.store.path / self.conversation_path(task_id, sample)
        try:
            # A link in the folder may lead to somebody else's file, and is not followed.
            descriptor = open_to_write(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW)
            with os.fdopen(descriptor, "wb") as file:
                for piece in _pieces(document):
                    # Half a surrogate pair has no UTF-8, and what cannot be shown ends no run.
                    file.write(piece.encode("utf-8", "replace"))
                    if file.tell() > MAX_DOCUMENT_BYTES:
                        path.unlink()
                        raise too_long_to_read(path, MAX_DOCUMENT_BYTES)
        except OSError as error:
            raise StoreError(
                f"{path}: cannot be written: {error.strerror}",
                hint="Free some space and run the same command again: replies so far are kept.",
            ) from error

    def read_conversation(self, task_id: str, sample: int) -> dict[str, Any] | None:
        """A conversation's file; None if there is none."""
        return self.store.read_document(self.conversation_path(task_id, sample))

    def append_submission(self, record: Mapping[str, Any]) -> None:
        """Appends a submission: from now on its task is finished."""
        self.store.append(SUBMISSIONS_FILE, record)

    def append_failure(self, record: Mapping[str, Any]) -> None:
        """Appends a failure: its task is asked again when the run is continued."""
        self.store.append(FAILURES_FILE, record)


def _pieces(document: Mapping[str, Any]) -> Iterator[str]:
    """A document as JSON, a field on each line; of an array, one element at a time."""
    start = "{\n"
    for name, value in document.items():
        yield f'{start}"{name}": '
        if isinstance(value, list):
            yield "["
            for number, element in enumerate(value):
                yield f"{', ' if number else ''}{_encode(element)}"
            yield "]"
        else:
            yield _encode(value)
        start = ",\n"
    yield "\n}\n"


def submission_of_conversation(
    plan: InferencePlan,
    assignment: Assignment,
    sample: int,
    conversation: Conversation,
    calls: Sequence[Mapping[str, Any]],
    conversation_path: str,
    paths: tuple[str, str] | None,
) -> dict[str, Any]:
    """The line of submissions.jsonl for a conversation.

    Args:
        plan: the run.
        assignment: the task.
        sample: 0-based number of the sample.
        conversation: the conversation.
        calls: the calls that it took.
        conversation_path: the path of the conversation's file, relative to the run's directory.
        paths: the input and output paths that the prompt gave; None if the answer is typed, or is
            a file of a desktop.
    """
    answer: dict[str, Any] = {"response": conversation.response}
    if conversation.outputs:
        if conversation.response is None and assignment.question.answer.is_file:
            answer = {}
        answer["outputs"] = {str(case): output for case, output in conversation.outputs.items()}
    elif paths is not None:
        answer = {
            "solution": conversation.solution,
            "input_path": paths[0],
            "output_path": paths[1],
            "reply": conversation.reply,
        }
    costs = [call["cost"] for call in calls]
    return {
        "id": assignment.raw_id,
        "sample": sample,
        "instruction_type": assignment.question.kind,
        "model": plan.model.name,
        "setting": plan.setting_of(assignment.question).name,
        **answer,
        "ended": conversation.ended,
        "finish_reason": conversation.finish_reason,
        "truncated": conversation.truncated,
        **({} if paths is None else {"stands_alone": conversation.stands_alone}),
        "rounds": len(conversation.rounds),
        "tokens": {
            "prompt": sum(call.get("prompt_tokens") or 0 for call in calls),
            "completion": sum(call.get("completion_tokens") or 0 for call in calls),
        },
        "cost": None if None in costs else round(sum(costs), 8),
        "seconds": round(sum(call.get("seconds") or 0.0 for call in calls), 3),
        "calls": list(calls),
        "conversation": conversation_path,
        **plan.background.record(assignment.question),
    }


@dataclass(frozen=True, slots=True)
class InferenceEvent:
    """Something to show: a task is done.

    Attributes:
        task_id: the task.
        sample: 0-based number of the sample.
        state: ``program`` (the model gave one), ``answer`` (a typed one), ``file`` (one that was
            left on a desktop), ``no-code`` or ``failed``.
        reused: whether it was finished before this command.
        done: how many are done, failures included.
        total: how many there are.
        tokens: tokens used so far by the run.
        cost: US dollars spent so far by the run; None if the price is unknown.
    """

    task_id: str
    sample: int
    state: str
    reused: bool
    done: int
    total: int
    tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class BatchEvent:
    """Something to show: the progress of a batch.

    Attributes:
        batch_id: the server's id of the batch.
        status: its status, as the server names it.
        answered: requests that are done, failures included.
        total: requests in all.
    """

    batch_id: str
    status: str
    answered: int
    total: int


MAX_NOTES = 10


@dataclass(slots=True)
class InferenceSummary:
    """How a run ended.

    Attributes:
        total: tasks times samples.
        finished: with a record in submissions.jsonl.
        reused: of these, finished before this command.
        failed: without a reply; the same command asks again.
        unasked: not begun, because the run stopped.
        truncated: finished, from a reply that was cut off.
        no_code: finished, without a program, or without a typed answer.
        not_alone: finished, with a program that only worked because of earlier rounds.
        calls: requests answered for the finished ones.
        retries: attempts beyond the first.
        prompt_tokens: the prompt tokens of the finished ones.
        completion_tokens: likewise.
        tokens: the tokens of the whole run, failures and earlier commands included.
        cost: US dollars of the whole run; None if the price is unknown.
        seconds: of this command.
        stopped: why the run stopped early, or None.
        failures: the reason of each failure, by task (and sample).
        notes: what broke in episodes, and whose fault it was; the first ones.
    """

    total: int = 0
    finished: int = 0
    reused: int = 0
    failed: int = 0
    unasked: int = 0
    truncated: int = 0
    no_code: int = 0
    not_alone: int = 0
    calls: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0
    stopped: str | None = None
    failures: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def count(self, record: Mapping[str, object]) -> None:
        """Adds a submission's record to the counts."""
        asking = asking_of(record)
        self.finished += 1
        self.truncated += asking.is_truncated
        answers = ("solution", "response", "outputs")
        self.no_code += not any(record.get(name) for name in answers) and (
            record.get("solution") is None
        )
        self.not_alone += asking.stands_alone is False
        self.calls += len(asking.calls)
        for call in asking.calls:
            self.retries += max(round(call.attempts) - 1, 0)
            self.prompt_tokens += round(call.prompt_tokens or 0)
            self.completion_tokens += round(call.completion_tokens or 0)

    @property
    def is_complete(self) -> bool:
        """Whether every task has its submission."""
        return self.finished == self.total


def _ignore(_: Any) -> None:
    """For callers that do not follow the progress."""


@dataclass(frozen=True, slots=True)
class Listeners:
    """Functions that a run calls as it proceeds, in the thread of the event loop.

    Attributes:
        on_event: when a task is done.
        on_submission: when a submission's record is in submissions.jsonl.
        on_batch: when the server has reported the progress of a batch.
    """

    on_event: Callable[[InferenceEvent], None] = _ignore
    on_submission: Callable[[dict[str, Any]], None] = _ignore
    on_batch: Callable[[BatchEvent], None] = _ignore
