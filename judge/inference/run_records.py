"""What a run of inference leaves behind: submissions, conversations, failures."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from judge.errors import StoreError
from judge.files.writing import FileLock, HeldError, open_to_write, take_lock
from judge.grading.store import (
    MAX_DOCUMENT_BYTES,
    SUBMISSIONS_FILE,
    RunDirectory,
    too_long_to_read,
)
from judge.inference.plan import Assignment, InferencePlan
from judge.inference.talk import Talk

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
            for number, each in enumerate(value):
                yield f"{', ' if number else ''}{_encode(each)}"
            yield "]"
        else:
            yield _encode(value)
        start = ",\n"
    yield "\n}\n"


def submission_of_talk(
    plan: InferencePlan,
    assignment: Assignment,
    sample: int,
    talk: Talk,
    calls: Sequence[Mapping[str, Any]],
    conversation: str,
    paths: tuple[str, str] | None,
) -> dict[str, Any]:
    """The record of submissions.jsonl.

    Args:
        plan: the run.
        assignment: the task.
        sample: 0-based number of the sample.
        talk: the conversation.
        calls: what it took.
        conversation: path of the conversation's file, relative to the run's directory.
        paths: the input and output paths that the prompt gave; None where the answer is typed, or
            is a file of a desktop.
    """
    given: dict[str, Any] = {"response": talk.response}
    if talk.outputs:
        given = {} if talk.response is None and assignment.question.answer.is_file else given
        given["outputs"] = {str(case): output for case, output in talk.outputs.items()}
    elif paths is not None:
        given = {
            "solution": talk.solution,
            "input_path": paths[0],
            "output_path": paths[1],
            "reply": talk.reply,
        }
    costs = [call["cost"] for call in calls]
    return {
        "id": assignment.raw_id,
        "sample": sample,
        "instruction_type": assignment.question.kind,
        "model": plan.model.name,
        "setting": plan.setting_of(assignment.question).name,
        **given,
        "ended": talk.ended,
        "finish_reason": talk.finish_reason,
        "truncated": talk.truncated,
        **({} if paths is None else {"stands_alone": talk.stands_alone}),
        "rounds": len(talk.rounds),
        "tokens": {
            "prompt": sum(call.get("prompt_tokens") or 0 for call in calls),
            "completion": sum(call.get("completion_tokens") or 0 for call in calls),
        },
        "cost": None if None in costs else round(sum(costs), 8),
        "seconds": round(sum(call.get("seconds") or 0.0 for call in calls), 3),
        "calls": list(calls),
        "conversation": conversation,
        **plan.background.record(assignment.question),
    }
