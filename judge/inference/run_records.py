"""Records and reports of a run of inference: submissions, conversations, failures, progress."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from judge.core.records.runs import recorded_usage
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
"""(task id, 0-based number of the sample)"""


class InferenceRecords:
    """The files of a run that inference writes.

    Only inference takes the lock: grading may read and write in the same directory at that time.

    Args:
        store: the run's directory.
    """

    def __init__(self, store: RunDirectory) -> None:
        self.store = store
        self._lock: FileLock | None = None

    def lock(self) -> None:
        """Locks the directory for inference by this process, until :meth:`close`.

        Raises:
            StoreError: another process holds the lock, or the lock file cannot be written.
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
        """Returns the submissions so far."""
        return {self.key_of(record): record for record in self.store.read_records(SUBMISSIONS_FILE)}

    def key_of(self, record: Mapping[str, Any]) -> SampleKey:
        """Returns the task and the sample that a record of submissions.jsonl is about.

        Raises:
            StoreError: the record has no valid id or sample.
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
        """Returns the path of a conversation's file, relative to the run's directory."""
        return f"{CONVERSATIONS_FOLDER}/{quote(task_id, safe=' ')}.{sample}.json"

    def write_conversation(self, task_id: str, sample: int, document: Mapping[str, Any]) -> None:
        """Replaces a conversation's file.

        If the process dies and leaves an incomplete file, its task has no submission, so that the
        file is written again when the run is continued.
        """
        path = self.store.path / self.conversation_path(task_id, sample)
        try:
            # Links are not followed: a link in the folder might point to somebody else's file.
            descriptor = open_to_write(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW)
            with os.fdopen(descriptor, "wb") as file:
                for piece in _pieces(document):
                    # Lone surrogates cannot be encoded in UTF-8; they are replaced, so that they
                    # do not end the run.
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
        """Reads a conversation's file; returns None if there is no such file."""
        return self.store.read_document(self.conversation_path(task_id, sample))

    def append_submission(self, record: Mapping[str, Any]) -> None:
        """Appends a submission, which makes its task finished."""
        self.store.append(SUBMISSIONS_FILE, record)

    def append_failure(self, record: Mapping[str, Any]) -> None:
        """Appends a failure; its task is tried again when the run is continued."""
        self.store.append(FAILURES_FILE, record)


def _pieces(document: Mapping[str, Any]) -> Iterator[str]:
    """Yields a document as JSON text, with a line for each field, and array elements one by one."""
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
    """Returns the record of a conversation for submissions.jsonl.

    Args:
        plan: the run.
        assignment: the task.
        sample: 0-based number of the sample.
        conversation: the conversation.
        calls: the records of its calls to the model.
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
    """An event for the display of progress: a task is done.

    Attributes:
        task_id: the task.
        sample: 0-based number of the sample.
        state: ``program`` (the model wrote a program), ``answer`` (it typed an answer), ``file``
            (it left a file on a desktop), ``no-code`` or ``failed``.
        reused: whether the task was finished before this command.
        done: how many tasks (times samples) are done, failures included.
        total: how many tasks (times samples) there are.
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
    """An event for the display of progress: the state of a batch.

    Attributes:
        batch_id: the server's id of the batch.
        status: its status, as the server names it.
        answered: how many requests are done, failures included.
        total: how many requests the batch has.
    """

    batch_id: str
    status: str
    answered: int
    total: int


MAX_NOTES = 10


@dataclass(slots=True)
class InferenceSummary:
    """The outcome of a run. Counts are of tasks times samples, if not stated otherwise.

    Attributes:
        total: how many there are.
        finished: how many have a record in submissions.jsonl.
        reused: how many of these were finished before this command.
        failed: how many have no reply; the same command asks again.
        unasked: how many were not begun, because the run stopped.
        truncated: how many of the finished ones come from a reply that was cut off.
        no_code: how many of the finished ones have no program and no typed answer.
        not_alone: how many of the finished ones have a program that works only after the programs
            of earlier rounds.
        over_length: how many of the finished ones ended because the server found the conversation
            too long for the model.
        calls: how many requests were answered for the finished tasks.
        retries: how many attempts were made for them in addition to the first attempts.
        prompt_tokens: tokens of the prompts of the finished tasks.
        completion_tokens: tokens of the replies of the finished tasks.
        tokens: tokens of the whole run, failures and earlier commands included.
        cost: US dollars of the whole run; None if the price is unknown.
        seconds: duration of this command.
        stopped: why the run stopped early; None if it did not.
        failures: the reason for each failure, by task (and sample).
        notes: the first notes on faults in episodes, with the party at fault.
    """

    total: int = 0
    finished: int = 0
    reused: int = 0
    failed: int = 0
    unasked: int = 0
    truncated: int = 0
    no_code: int = 0
    not_alone: int = 0
    over_length: int = 0
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
        """Counts a submission, given its record."""
        usage = recorded_usage(record)
        self.finished += 1
        self.truncated += usage.is_truncated
        answers = ("solution", "response", "outputs")
        self.no_code += not any(record.get(name) for name in answers) and (
            record.get("solution") is None
        )
        self.not_alone += usage.stands_alone is False
        self.over_length += record.get("ended") == "context-length"
        self.calls += len(usage.calls)
        for call in usage.calls:
            self.retries += max(round(call.attempts) - 1, 0)
            self.prompt_tokens += round(call.prompt_tokens or 0)
            self.completion_tokens += round(call.completion_tokens or 0)

    @property
    def is_complete(self) -> bool:
        """Whether every task has its submission."""
        return self.finished == self.total


def _ignore(_: Any) -> None:
    """Ignores an event; the default for callers that do not follow the progress."""


@dataclass(frozen=True, slots=True)
class Listeners:
    """Functions that a run calls as it proceeds, in the thread of the event loop.

    Attributes:
        on_event: called when a task is done.
        on_submission: called when a submission has been written to submissions.jsonl.
        on_batch: called when the server has reported the progress of a batch.
    """

    on_event: Callable[[InferenceEvent], None] = _ignore
    on_submission: Callable[[dict[str, Any]], None] = _ignore
    on_batch: Callable[[BatchEvent], None] = _ignore
