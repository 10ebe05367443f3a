"""SkillsBench's workbook tasks: Harbor tasks whose tests the judge implements as its own checks."""

from __future__ import annotations

import posixpath
import tomllib
from collections.abc import Iterator
from pathlib import Path

from judge.compare.checklists.published.skillsbench import OUTPUTS, TESTS
from judge.core.task import Gold, Task
from judge.errors import SuiteError
from judge.files.documents import read_text
from judge.suites.fields import FieldError
from judge.suites.folders import Boundary
from judge.suites.published.reading import (
    ChecklistFormat,
    checklist,
    checklist_task,
    input_files,
    workbook_first,
)

NAME = "skillsbench"
_NOT_WORKED_ON = ("Dockerfile", "skills/", "groundtruth/")
"""Files of ``environment`` that are not inputs of the agent."""


class SkillsBench(ChecklistFormat):
    """The format with ``tasks/*/task.toml``; only the workbook tasks are read."""

    names = (NAME,)
    definition = "tasks/*/task.toml"
    file_suffixes = (".xlsx", ".pptx")
    output_pattern = "{id}.xlsx or {id}.pptx, or a folder {id} with the file that the task names"

    def definitions_in(self, folder: Path) -> Iterator[Path]:
        """The ``task.toml`` of each of the seven workbook tasks."""
        for task in sorted(TESTS):
            if (folder / task / "instruction.md").is_file():
                yield folder / task / "task.toml"

    def tasks_of(self, definition: Path, boundary: Boundary) -> Iterator[Task]:
        """The task of a ``task.toml``; inputs are in ``environment``, golds in ``tests``."""
        folder = definition.parent
        try:
            metadata = tomllib.loads(read_text(definition, SuiteError)).get("metadata", {})
        except tomllib.TOMLDecodeError as error:
            raise FieldError(f"cannot be read as TOML: {error}") from error
        items = [
            {
                "id": test,
                "kind": "published",
                "suite": NAME,
                "check": {"task": folder.name, "test": test},
            }
            for test in TESTS[folder.name]
        ]
        inputs = [
            file
            for file in input_files(folder / "environment", boundary)
            if not file.below.startswith(_NOT_WORKED_ON)
        ]
        oracles = input_files(folder / "tests", boundary)
        words = {
            name: str(metadata[name])
            for name in ("category", "difficulty")
            if isinstance(metadata, dict) and isinstance(metadata.get(name), str)
        }
        yield checklist_task(
            folder.name,
            read_text(folder / "instruction.md", SuiteError),
            checklist({"evaluator": NAME, "items": items}),
            inputs=workbook_first(inputs),
            golds=[Gold(file.path) for file in oracles if file.path.suffix == ".xlsx"],
            kind=words.get("category", ""),
            groups=words,
            requested_file=posixpath.basename(OUTPUTS[folder.name]),
        )


FORMAT = SkillsBench()
