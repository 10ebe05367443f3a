"""OfficeBench: tasks in a folder with documents, calendars and mail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from judge.core.task import Gold, Task
from judge.errors import SuiteError
from judge.files.documents import read_json
from judge.suites.fields import FieldError, Fields
from judge.suites.folders import Boundary
from judge.suites.published.reading import (
    ChecklistFormat,
    checklist,
    checklist_task,
    input_files,
    workbook_first,
)

NAME = "officebench"
_FOLDER = re.compile(r"(?P<applications>\d)-\d{1,4}")


class OfficeBench(ChecklistFormat):
    """The format with ``tasks/A-N/subtasks/S.json``; the judge calls such a task ``A-N-S``."""

    names = (NAME,)
    definition = "tasks/*/subtasks/*.json"
    output_pattern = "a folder {id}, or {A-N}/{S}, with the changed workspace"
    work_folder = "testbed"

    def definitions_in(self, folder: Path) -> Iterator[Path]:
        """One file for each task, in the order of their numbers."""
        found_files = (
            path
            for path in folder.glob("*/subtasks/*.json")
            if _FOLDER.fullmatch(path.parent.parent.name) and path.stem.isdecimal()
        )
        yield from sorted(
            found_files,
            key=lambda path: (*map(int, path.parent.parent.name.split("-")), int(path.stem)),
        )

    def tasks_of(self, definition: Path, boundary: Boundary) -> Iterator[Task]:
        """The task of a file; its workspace is ``testbed``, its golds are in ``reference``."""
        record = read_json(definition, SuiteError)
        if not isinstance(record, dict):
            raise FieldError("must hold an object")
        fields = Fields(record)
        checks = record.get("evaluation")
        if not isinstance(checks, list):
            raise fields.error("evaluation", "must be a list")
        folder = definition.parent.parent
        items = [
            {"id": str(number), "kind": "published", "suite": NAME, "check": check}
            for number, check in enumerate(checks)
        ]
        golds = input_files(folder / "reference", boundary)
        yield checklist_task(
            f"{folder.name}-{definition.stem}",
            fields.text("task"),
            checklist({"evaluator": NAME, "items": items}),
            inputs=workbook_first(input_files(folder / "testbed", boundary)),
            golds=[Gold(file.path) for file in golds],
            kind=f"{folder.name.partition('-')[0]} applications",
            groups={"applications": folder.name.partition("-")[0]},
            aliases=(f"{folder.name}/{definition.stem}",),
        )


FORMAT = OfficeBench()
