"""Exports and imports runs in the form of the benchmark's logs (``conv_*.jsonl``).

A line has ``id``, ``instruction_type``, ``conversation`` (a list of strings: prompt, reply,
result, reply …) and ``solution``.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from judge.core.conversation import plain_text
from judge.core.records.runs import RunDocument
from judge.errors import StoreError
from judge.files.documents import dump_json, utc_now
from judge.files.json_lines import read_json_lines
from judge.grading.store import SUBMISSIONS_FILE, RunDirectory
from judge.inference.run_records import InferenceRecords
from judge.suites import Suite
from judge.suites.submissions import load_submissions, submission_record


@contextlib.contextmanager
def empty_records(store: RunDirectory) -> Iterator[InferenceRecords]:
    """Locks a directory, which must hold no submissions yet, until the end of the block.

    Raises:
        StoreError: the directory holds submissions, is locked by another process, or cannot be
            written.
    """
    records = InferenceRecords(store)
    records.lock()
    try:
        if records.finished():
            raise StoreError(
                f"{store.path}: already contains submissions", hint="Give another --out."
            )
        yield records
    finally:
        records.close()


def imported_run(
    log: Path, suite: Suite, source: str, *, model: str | None, setting: str | None
) -> RunDocument:
    """Returns the content of run.json for a run that is imported from a log.

    Args:
        log: the log.
        suite: the suite of the log's tasks.
        source: where the suite was loaded from.
        model: the chat model; None if the log does not name it.
        setting: the setting of inference; None if the log does not name it.
    """
    return {
        "suite": {
            "name": suite.name,
            "source": source,
            "digest": suite.digest,
            "format": suite.format,
        },
        "imported_from": log.name,
        "model": model,
        "setting": setting,
        "created": utc_now(),
    }


_SOLUTION_FIELDS = ("solution", "reply", "response")
_LOG_NAME = re.compile(
    r"conv_(?:single|multi_(?P<feedback>row_react_exec|react_exec|row_exec))_(?P<model>.+)\.jsonl"
)


def export_log(store: RunDirectory, target: Path) -> int:
    """Writes a run's conversations as the benchmark's scripts do.

    Args:
        store: the run's directory.
        target: the .jsonl file to write.

    Returns:
        How many conversations were written.

    Raises:
        StoreError: the directory holds no submissions, or the file cannot be written.
    """
    records = InferenceRecords(store)
    lines = [dump_json(line, spaced=True) + "\n" for line in _log_lines(records)]
    if not lines:
        raise StoreError(f"{store.path}: holds no submissions to export")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(lines), encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{target}: cannot be written: {error.strerror}") from error
    return len(lines)


def _log_lines(records: InferenceRecords) -> Iterator[dict[str, Any]]:
    for record in records.store.read_records(SUBMISSIONS_FILE):
        task_id, sample = records.key_of(record)
        document = records.read_conversation(task_id, sample) or {}
        texts = [
            plain_text(message.get("content")) for message in _objects(document.get("messages"))
        ]
        last_round = (_objects(document.get("rounds")) or [{}])[-1]
        if (result := _result_of(last_round)) is not None and texts[-1:] != [result]:
            texts.append(result)
        yield {
            "id": record["id"],
            "instruction_type": record.get("instruction_type"),
            # As the benchmark's scripts write them: an empty string if the calls failed, and the
            # whole reply if it contains no program.
            "conversation": texts or "",
            "solution": next(filter(None, map(record.get, _SOLUTION_FIELDS)), ""),
            **({"sample": sample} if sample else {}),
        }


def _objects(value: object) -> list[Any]:
    """Returns the objects in an array; an empty list if the value is not an array."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _result_of(last_round: Mapping[str, Any]) -> str | None:
    """Returns the outcome of the last program, which ends a conversation of the benchmark."""
    if feedback := last_round.get("feedback"):
        return plain_text(feedback)
    execution = last_round.get("execution")
    if not isinstance(execution, dict):
        return None
    return str(execution.get("error") or execution.get("printed") or "")


def setting_of_name(name: str) -> tuple[str | None, str | None]:
    """Reads the chat model and the setting from the name that the benchmark's scripts give a log.

    Args:
        name: such as ``conv_multi_row_react_exec_gpt-4o.jsonl`` or ``conv_single_gpt-4o.jsonl``.

    Returns:
        The model, and the setting as ``judge infer`` names it; None for both if the name has a
        different form.
    """
    match = _LOG_NAME.fullmatch(name)
    if match is None:
        return None, None
    feedback = match["feedback"]
    setting = f"multi/{feedback.replace('_', '-')}" if feedback else "single"
    return match["model"], setting


def import_log(
    log: Path, suite: Suite, source: str, store: RunDirectory, ids: Collection[str] | None = None
) -> int:
    """Makes a run out of a log, as if the model had just replied.

    Args:
        log: the benchmark's log, or any .jsonl of solutions.
        suite: the suite of the log's tasks.
        source: where the suite is loaded from, for run.json.
        store: the run's directory, which must hold no submissions yet.
        ids: the tasks to import; None for all.

    Returns:
        How many submissions were imported.

    Raises:
        SubmissionError: the log cannot be imported as it is.
        StoreError: the directory holds submissions, or cannot be written.
    """
    submissions = load_submissions(log, suite, ids=ids)
    with empty_records(store) as records:
        conversations = _conversations(log)
        model, setting = setting_of_name(log.name)
        for submission in submissions:
            record = submission_record(submission, suite)
            record |= {"model": submission.model or model, "setting": submission.setting or setting}
            record.setdefault("instruction_type", suite.task(submission.task_id).kind)
            texts = conversations.get(submission.key)
            if texts is not None:
                task_id, sample = submission.key
                record["conversation"] = records.conversation_path(task_id, sample)
                records.write_conversation(task_id, sample, _conversation(record, texts))
            records.append_submission(record)
        model = next((submission.model for submission in submissions if submission.model), model)
        setting = next(
            (submission.setting for submission in submissions if submission.setting), setting
        )
        store.write_run(imported_run(log, suite, source, model=model, setting=setting))
    return len(submissions)


def _conversations(log: Path) -> dict[tuple[str, int], list[Any]]:
    # Lines without a submission were refused before. Lines about other tasks may be of any form.
    return {
        (str(record.get("id")), record.get("sample") or 0): record["conversation"]
        for _, record in read_json_lines(log, StoreError)
        if isinstance(record.get("conversation"), list)
        and isinstance(record.get("sample") or 0, int)
    }


def _conversation(record: Mapping[str, Any], texts: list[Any]) -> dict[str, Any]:
    messages = [
        {"role": str(text["role"]), "content": str(text["content"])}
        if isinstance(text, dict) and {"role", "content"} <= text.keys()
        else {"role": "assistant" if index % 2 else "user", "content": str(text)}
        for index, text in enumerate(texts)
    ]
    return {
        "id": record["id"],
        "sample": record["sample"],
        "model": record.get("model"),
        "setting": record.get("setting"),
        "state": "finished",
        "messages": messages,
        "rounds": [],
        "calls": [],
    }
