"""OpenComputer's tasks for LibreOffice Calc, as in the published repository."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from judge.core.task import Task
from judge.errors import SuiteError
from judge.files.documents import read_json
from judge.suites.desktop import DESKTOP_FOLDER
from judge.suites.fields import FieldError, Fields
from judge.suites.folders import Boundary
from judge.suites.published.reading import (
    ChecklistFormat,
    checklist,
    checklist_task,
    input_files,
    workbook_first,
)

NAME = "opencomputer"
_DOUBTFUL = {"calc_loan_amortization_schedule": "its instruction and its check differ in sign (O9)"}


class OpenComputer(ChecklistFormat):
    """The format with ``tasks/calc_*/task.json``."""

    names = (NAME,)
    definition = "tasks/calc_*/task.json"
    folders = ("task_generator/tasks", "tasks")
    work_folder = "Documents"

    def definitions_in(self, folder: Path) -> Iterator[Path]:
        """One ``task.json`` in the folder of each task."""
        yield from sorted(folder.glob("calc_*/task.json"))

    def tasks_of(self, definition: Path, boundary: Boundary) -> Iterator[Task]:
        """The task of a ``task.json``; its files are in ``env``."""
        record = read_json(definition, SuiteError)
        if not isinstance(record, dict):
            raise FieldError("must hold an object")
        fields = Fields(record)
        checks = record.get("verification")
        if not isinstance(checks, list):
            raise fields.error("verification", "must be a list")
        task_id = fields.text("id")
        inputs = workbook_first(input_files(definition.parent / "env", boundary))
        items = [_item(number, check) for number, check in enumerate(checks)]
        yield checklist_task(
            task_id,
            fields.text("task"),
            checklist({"evaluator": NAME, "items": items}),
            inputs=inputs,
            kind="libreoffice_calc",
            requested_file=inputs[0].name if inputs else "",
            details={DESKTOP_FOLDER: self.work_folder},
        )

    def notes_of(self, tasks: Sequence[Task]) -> tuple[str, ...]:
        """A note for each task whose check contradicts its instruction."""
        return tuple(f"{task.id}: {_DOUBTFUL[task.id]}" for task in tasks if task.id in _DOUBTFUL)


def _item(number: int, check: Any) -> dict[str, object]:
    words = check.get("description") if isinstance(check, dict) else None
    item: dict[str, object] = {
        "id": str(number),
        "kind": "published",
        "suite": NAME,
        "check": check,
    }
    return {**item, "words": words} if isinstance(words, str) else item


FORMAT = OpenComputer()
