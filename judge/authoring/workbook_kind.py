"""Suites whose tasks change a workbook, in the format of SpreadsheetBench: ``dataset.json``."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from judge.authoring.kinds import DraftKind, DraftTask, Record, given_options, refuse_others
from judge.compare.cells.answer_range import prepare
from judge.compare.cells.options import position_of
from judge.core.task import Task, TestCase
from judge.errors import PositionError, SuiteError, UsageError, WorkbookError
from judge.files.documents import dump_json, read_json
from judge.suites.spreadsheetbench import (
    FORMAT,
    KNOWN_FIELDS,
    InstructionType,
    read_record,
    task_of_record,
)
from judge.workbook.position import parse_position
from judge.workbook.reader import open_workbook


@dataclass(frozen=True, slots=True)
class TaskFields:
    """The fields of SpreadsheetBench's data formatting manual, and the judge's own fields.

    A field that is not filled yet has the value None.

    Attributes:
        instruction: the revised question: clear, self-contained, without small talk.
        instruction_type: cell level or sheet level.
        answer_position: the cells that hold the answer.
        answer_sheet: the sheet of the answer position, if the position names none.
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
        """A copy in which the filled fields of ``other`` replace those of this object."""
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

FIELDS_IN_LOG = ("multiple_tables", "non_standard_table", "original_question", "source_url")
"""Fields that SpreadsheetBench's own format cannot hold; the log of the suite keeps them."""

WANTED_FOR_REVIEW = ("multiple_tables", "non_standard_table")
"""Fields that must be filled in before anybody can check the task."""


def dataset_record(
    task_id: int | str, given: TaskFields, before: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The task's record for ``dataset.json``.

    Args:
        task_id: the id to write.
        given: the fields; those with the value None stay unchanged.
        before: the record so far; its other fields are kept.

    Raises:
        UsageError: a field is missing or wrong; the message names every such field.
    """
    record: dict[str, Any] = {"id": task_id, **(before or {})}
    for name in IN_DATASET:
        value = getattr(given, name)
        if value is not None:
            record[name] = list(value) if isinstance(value, tuple) else value
    record.setdefault("spreadsheet_path", f"spreadsheet/{task_id}")
    _, faults = read_record(record)
    if "instruction" in record and not str(record["instruction"]).strip():
        faults += ("the instruction is empty",)
    if faults:
        raise UsageError(
            f"task {task_id}: {'; '.join(dict.fromkeys(faults))}",
            hint="The options with the fields of a task are under `judge dataset add-task --help`.",
        )
    return record


_TYPES = {"cell": InstructionType.CELL_LEVEL, "sheet": InstructionType.SHEET_LEVEL}
_SUFFIXES = (".xlsx", ".xlsm")
_OPTIONS = (
    *("instruction", "type", "position", "answer_sheet", "data_position", "style"),
    *("multiple_tables", "non_standard_table", "original_question", "source_url", "case"),
)


class WorkbookKind(DraftKind):
    """Tasks in a ``dataset.json``, with a folder of workbooks for each."""

    name = "workbook"
    definition = FORMAT.definition
    folder = "spreadsheet"
    noted = FIELDS_IN_LOG
    wanted_for_review = WANTED_FOR_REVIEW
    example = "--case INPUT GOLD …"

    def fields_of(self, options: Mapping[str, Any]) -> TaskFields:
        """The fields of the data formatting manual."""
        given = given_options(options)
        refuse_others(given, _OPTIONS, self.name)
        given.pop("case", None)
        levels = given.pop("type", ())
        if len(levels) > 1 or any(level not in _TYPES for level in levels):
            raise UsageError(f"--type {' '.join(levels)}: must be one of {', '.join(_TYPES)}")
        return TaskFields(
            instruction_type=_TYPES[levels[0]] if levels else None,
            answer_position=given.pop("position", None),
            **given,
        )

    def files_of(self, options: Mapping[str, Any]) -> Sequence[tuple[Path, Path]]:
        """The two workbooks of each case."""
        cases: Sequence[tuple[Path, Path]] = options.get("case") or ()
        return cases

    def records(self, root: Path) -> list[Record]:
        """The records in ``dataset.json``."""
        path = root / self.definition
        records = read_json(path, SuiteError)
        if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
            raise SuiteError(f"{path}: must be a list of tasks")
        return records

    def text_of(self, root: Path, records: Sequence[Record]) -> str:  # noqa: ARG002
        """The list of records, which is the whole definition."""
        return dump_json(records, indent=2) + "\n"

    def record(
        self, task_id: int | str, given: TaskFields, before: Mapping[str, Any] | None
    ) -> Record:
        """The published fields."""
        return dataset_record(task_id, given, before)

    def place(self, record: Record, files: Sequence[tuple[Path, Path]], scratch: Path) -> Task:
        """Copies the workbooks, and names the copies as the format prescribes."""
        if not files:
            raise UsageError(f"task {record['id']}: it has no case", hint="Give --case INPUT GOLD.")
        placed = []
        for number, (question, gold) in enumerate(files, start=1):
            names = FORMAT.new_case_names(str(record["id"]), number)
            paths = (_copy(question, scratch / names[0]), _copy(gold, scratch / names[1]))
            placed.append(TestCase.of_workbooks(number, *paths))
        task = _task_of(record, tuple(placed))
        _check_position(task)
        return task

    def changed(self, record: Record, before: Task, root: Path) -> Task:  # noqa: ARG002
        """The task with its existing workbooks."""
        task = _task_of(record, before.cases)
        if position_of(task.checker) != position_of(before.checker):
            _check_position(task)
        return task

    def write(self, tasks: Sequence[DraftTask], source: Path, target: Path) -> int:
        """Writes SpreadsheetBench's own format: the published fields, and regular file names."""
        records, cases = [], 0
        for copied in tasks:
            task = copied.task
            path = f"{self.folder}/{task.id}"
            destination = target / path
            destination.mkdir(parents=True)
            for case in task.cases:
                for workbook, role in ((case.input_path, "input"), (case.gold_path, "answer")):
                    name = f"{case.number}_{task.id}_{role}{workbook.suffix.lower()}"
                    shutil.copyfile(workbook, destination / name)
                cases += 1
            fields = {key: value for key, value in copied.record.items() if key in KNOWN_FIELDS}
            records.append(fields | {"spreadsheet_path": path})
        (target / self.definition).write_text(self.text_of(source, records), encoding="utf-8")
        return cases


KIND = WorkbookKind()


def _task_of(record: Record, cases: tuple[TestCase, ...]) -> Task:
    read, faults = read_record(record)
    if read is None:
        raise UsageError(f"task {record.get('id')}: {'; '.join(faults)}")
    return task_of_record(read, cases)


def _check_position(task: Task) -> None:
    """Checks that the golds have the sheets that the author named.

    Unreadable files and positions are ignored here; other checks find them.

    Raises:
        PositionError: a gold lacks such a sheet.
    """
    try:
        parse_position(position_of(task.checker)[0])
    except PositionError:
        return
    for case in task.cases:
        try:
            prepare(task.checker, gold=open_workbook(case.gold_path), output=None, typed=True)
        except PositionError as error:
            named = f"task {task.id}, gold of case {case.number}"
            raise PositionError(f"{named}: {error.message}", hint=error.hint) from error
        except WorkbookError:
            continue


def _copy(source: Path, target: Path) -> Path:
    suffix = source.suffix.lower()
    if suffix not in _SUFFIXES:
        raise UsageError(
            f"{source}: must be an .xlsx or .xlsm workbook",
            hint="Save an .xls as .xlsx first, in a spreadsheet program.",
        )
    placed = target.with_suffix(suffix)
    shutil.copyfile(source, placed)
    return placed
