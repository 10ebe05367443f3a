"""Writes changed tasks of a suite as the ``dataset.json`` that it was read from, and no more."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from judge.compare.cells.options import CELL_RANGE, POSITION_OPTIONS
from judge.core.task import Task
from judge.suites.spreadsheetbench.reading import DEFINITION, read_records


def dataset_records(root: Path, tasks: Iterable[Task]) -> list[dict[str, Any]]:
    """The records of some tasks, with their positions, styles and options as they are now.

    Args:
        root: the folder of the suite that the tasks are from.
        tasks: the tasks; everything but their checkers is as the suite has it.

    Raises:
        SuiteError: the ``dataset.json`` cannot be read.
    """
    records = {
        str(raw["id"]): raw
        for raw in read_records(root / DEFINITION)
        if isinstance(raw, dict) and "id" in raw
    }
    return [_record(records[task.id], task) for task in tasks]


def _record(raw: dict[str, Any], task: Task) -> dict[str, Any]:
    record, options = dict(raw), dict(task.checker.options)
    if task.checker.name == CELL_RANGE:
        for name in POSITION_OPTIONS:
            if (value := options.pop(name, None)) is not None:
                record[name] = value
    if style := options.pop("style", None):
        record["style"] = style
    if options or "checker" in record:
        record["checker"] = {"name": task.checker.name, **options}
    return record
