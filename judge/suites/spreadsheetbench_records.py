"""Reads one record of a ``dataset.json`` into typed fields, and reports its faults."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from judge.compare.cells.options import CELL_RANGE, POSITION_OPTIONS, range_spec
from judge.core.task import CheckerSpec, Task, TestCase
from judge.suites.fields import Fields, shown
from judge.suites.folders import inner_path


class InstructionType(enum.StrEnum):
    """The two kinds of instruction, as the benchmark names them."""

    CELL_LEVEL = "Cell-Level Manipulation"
    SHEET_LEVEL = "Sheet-Level Manipulation"


KNOWN_FIELDS = frozenset(
    {
        "id",
        "instruction",
        "spreadsheet_path",
        "instruction_type",
        "answer_position",
        "answer_sheet",
        "data_position",
        "exclude",
        "style",
        "checker",
        "category",
    }
)
"""Names of the fields that are read; others are ignored, with a note."""


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A valid record of ``dataset.json``.

    Attributes:
        raw_id: the id as the file has it, an integer or text.
        instruction: the question.
        folder: the task's folder, relative to the suite, without ``..``.
        instruction_type: cell level or sheet level.
        answer_position: where the answer is expected, as written.
        answer_sheet: the sheet that the position refers to, or None.
        data_position: where the input's data is, or None.
        excluded: why the suite leaves the task out, or None.
        checker: the checker and its options.
        category: the kind of manipulation that is requested (find, sort, sum …), or None.
        unknown_fields: names of fields that the judge does not know.
    """

    raw_id: int | str
    instruction: str
    folder: PurePosixPath
    instruction_type: InstructionType
    answer_position: str
    answer_sheet: str | None
    data_position: str | None
    excluded: str | None
    checker: CheckerSpec
    category: str | None
    unknown_fields: tuple[str, ...]

    @property
    def id(self) -> str:
        """The id as text."""
        return str(self.raw_id)


def read_record(record: object) -> tuple[TaskRecord | None, tuple[str, ...]]:
    """Checks one record.

    Args:
        record: the parsed JSON value.

    Returns:
        The record, or None if it has faults; and the faults, each naming its field.
    """
    if not isinstance(record, dict):
        return None, (f"must be an object with the fields of a task, not {shown(record)}",)
    faults: list[str] = []
    fields = Fields(record, faults=faults)
    raw_id = _raw_id(fields)
    instruction = _instruction(fields)
    instruction_type = _instruction_type(fields)
    answer_position = fields.text("answer_position")
    folder = _folder(fields, raw_id)
    answer_sheet = _optional_text(fields, "answer_sheet")
    data_position = _optional_text(fields, "data_position")
    excluded = _excluded(fields)
    checker = _checker(fields)
    category = _optional_text(fields, "category")
    if faults or instruction_type is None or raw_id is None or folder is None:
        return None, tuple(faults)
    checked = TaskRecord(
        raw_id=raw_id,
        instruction=instruction,
        folder=folder,
        instruction_type=instruction_type,
        answer_position=answer_position,
        answer_sheet=answer_sheet,
        data_position=data_position,
        excluded=excluded,
        checker=checker,
        category=category,
        unknown_fields=tuple(sorted(record.keys() - KNOWN_FIELDS)),
    )
    return checked, ()


def _optional_text(fields: Fields, name: str) -> str | None:
    """Text; None if the field is missing, null or empty."""
    is_given = fields.values.get(name) not in (None, "")
    return fields.text(name, blank=True) if is_given else None


def _instruction(fields: Fields) -> str:
    """The question. It may be empty: the published suite of 912 has such a task (55457)."""
    value = fields.values.get("instruction")
    return value if isinstance(value, str) else fields.text("instruction")


def _raw_id(fields: Fields) -> int | str | None:
    value = fields.values.get("id")
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        if not value.strip():
            fields.fault("id", "is empty")
        elif "/" in value or value in {".", ".."} or "\0" in value:
            fields.fault("id", f"must not hold a slash: {value!r}")
        else:
            return value
    elif value is None:
        fields.fault("id", "is missing")
    else:
        fields.fault("id", f"must be an integer or text, not {shown(value)}")
    return None


def _instruction_type(fields: Fields) -> InstructionType | None:
    if fields.values.get("instruction_type", "") is None:
        fields.fault("instruction_type", "is null")
        return None
    text = fields.text("instruction_type")
    if not text:
        return None
    try:
        return InstructionType(text.strip())
    except ValueError:
        names = " or ".join(repr(kind.value) for kind in InstructionType)
        fields.fault("instruction_type", f"must be {names}, not {text!r}")
        return None


def _folder(fields: Fields, raw_id: int | str | None) -> PurePosixPath | None:
    text = _optional_text(fields, "spreadsheet_path")
    if text is None:
        return PurePosixPath("spreadsheet", str(raw_id))
    path = inner_path(text.replace("\\", "/"))
    if path is None:
        fields.fault("spreadsheet_path", f"leaves the suite: {text!r}")
    return path


def _excluded(fields: Fields) -> str | None:
    value = fields.values.get("exclude")
    if value is None or value is False or value == "":
        return None
    if value is True:
        return "excluded by the suite, without a reason"
    if isinstance(value, str):
        return value
    fields.fault("exclude", f"must be text or true or false, not {shown(value)}")
    return None


def _checker(fields: Fields) -> CheckerSpec:
    """Reads ``checker``, which is a name or an object with ``name`` and options, and ``style``."""
    name = CheckerSpec().name
    options: dict[str, object] = {}
    value = fields.values.get("checker")
    if isinstance(value, str) and value.strip():
        name = value
    elif isinstance(value, dict) and isinstance(value.get("name", name), str):
        name = value.get("name", name)
        options = {key: option for key, option in value.items() if key != "name"}
    elif value is not None:
        fields.fault("checker", f"must be a name or an object with a name, not {shown(value)}")
    for stated in POSITION_OPTIONS:
        if stated in options:
            fields.fault("checker", f"must not hold {stated!r}: the record has a field for it")
    style = fields.values.get("style")
    if style is not None:
        if _is_list_of(style, lambda item: isinstance(item, str) and bool(item)):
            options["style"] = tuple(style) if isinstance(style, list) else ()
        else:
            fields.fault("style", f'must be a list such as ["fill"], not {shown(style)}')
    return CheckerSpec(name=name, options=options)


def _is_list_of(value: object, accepts: Callable[[object], bool]) -> bool:
    return isinstance(value, list) and bool(value) and all(accepts(item) for item in value)


def task_of_record(record: TaskRecord, cases: tuple[TestCase, ...]) -> Task:
    """The task that a record describes, with its test cases."""
    checker = record.checker
    stated = {
        "answer_position": record.answer_position,
        "answer_sheet": record.answer_sheet,
        "data_position": record.data_position,
    }
    if checker.name == CELL_RANGE:
        checker = range_spec(record.answer_position, record.answer_sheet, checker.options)
        stated = {"data_position": record.data_position}
    return Task(
        id=record.id,
        instruction=record.instruction,
        kind=record.instruction_type.value,
        cases=cases,
        checker=checker,
        groups={} if record.category is None else {"category": record.category},
        context={name: text for name, text in stated.items() if text is not None},
        excluded=record.excluded,
        raw_id=record.raw_id,
    )
