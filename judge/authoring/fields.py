"""What an annotator fills in for a task, and where each field goes. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from judge.errors import UsageError
from judge.suites.spreadsheetbench_records import InstructionType, read_record


@dataclass(frozen=True, slots=True)
class TaskFields:
    """The fields of the data formatting manual of SpreadsheetBench, and those of the judge.

    A field that nobody has filled yet has the value None.

    Attributes:
        instruction: the revised question: clear, self-contained, without the chat around it.
        instruction_type: cell level or sheet level.
        answer_position: the cells that hold the answer.
        answer_sheet: the sheet of that position, if the position names none.
        data_position: the cells that hold the input's data.
        style: which styles are part of the answer, such as ``("fill",)``.
        multiple_tables: whether a sheet holds several tables.
        non_standard_table: whether a table is not relational (nested or missing headers, merged
            cells, free text).
        original_question: the post as it was written.
        source_url: the address of the post.
    """

    instruction: str | None = None
    instruction_type: InstructionType | None = None
    answer_position: str | None = None
    answer_sheet: str | None = None
    data_position: str | None = None
    style: tuple[str, ...] | None = None
    multiple_tables: bool | None = None
    non_standard_table: bool | None = None
    original_question: str | None = None
    source_url: str | None = None

    def changed(self, other: TaskFields) -> TaskFields:
        """These fields, with those of ``other`` that are filled in their place."""
        filled = {
            field.name: value
            for field in fields(other)
            if (value := getattr(other, field.name)) is not None
        }
        return replace(self, **filled)


IN_DATASET = (
    "instruction",
    "instruction_type",
    "answer_position",
    "answer_sheet",
    "data_position",
    "style",
)
"""Fields that are kept in ``dataset.json``."""

IN_NOTES = ("multiple_tables", "non_standard_table", "original_question", "source_url")
"""Fields that SpreadsheetBench's own format has no place for; they are kept separately."""

WANTED_FOR_REVIEW = ("multiple_tables", "non_standard_table")
"""Fields that must be filled before anybody can check the task."""


def dataset_record(
    task_id: int | str, given: TaskFields, before: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The task's record for ``dataset.json``.

    Args:
        task_id: the id, as it is to be written.
        given: the fields; those with the value None are left as they were.
        before: the record so far; its other fields are kept.

    Raises:
        UsageError: a field is missing or wrong; every such field is named.
    """
    record: dict[str, Any] = {"id": task_id, **(before or {})}
    for name in IN_DATASET:
        value = getattr(given, name)
        if value is not None:
            record[name] = list(value) if isinstance(value, tuple) else value
    record.setdefault("spreadsheet_path", f"spreadsheet/{task_id}")
    _, faults = read_record(record)
    faults += () if str(record.get("instruction", "")).strip() else ("the instruction is empty",)
    if faults:
        raise UsageError(f"task {task_id}: {'; '.join(dict.fromkeys(faults))}")
    return record


def notes_of(given: TaskFields) -> dict[str, Any]:
    """The filled fields that are kept outside ``dataset.json``."""
    return {name: value for name in IN_NOTES if (value := getattr(given, name)) is not None}


def content_digest(
    record: Mapping[str, Any], notes: Mapping[str, Any], workbooks: Mapping[str, str]
) -> str:
    """SHA-256 of everything that a reviewer looks at.

    Args:
        record: the task's record in ``dataset.json``.
        notes: the fields outside it.
        workbooks: file names and the SHA-256 of their bytes.
    """
    document = [dict(record), dict(notes), dict(workbooks)]
    text = json.dumps(document, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
