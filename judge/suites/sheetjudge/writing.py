"""Writes the tasks of any suite as the document of a ``suite.json``. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from judge.core.score import ScoreTable
from judge.core.task import Gold, Task, TestCase
from judge.errors import UsageError
from judge.suites.sheetjudge import FORMAT_NAME, VERSION


def suite_document(
    tasks: Iterable[Task], root: Path, tables: Iterable[ScoreTable] = ()
) -> dict[str, Any]:
    """The document that :func:`judge.suites.load_suite` reads these tasks from.

    Args:
        tasks: the tasks, of a suite of any format.
        root: the folder that the ``suite.json`` is meant for; all files are in it.
        tables: the tables of scores that reports on the suite show.

    Raises:
        UsageError: a file is elsewhere, or a gold is not a file yet.
    """
    shown = [_table(table) for table in tables]
    return {
        "format": FORMAT_NAME,
        "version": VERSION,
        **({"tables": shown} if shown else {}),
        "tasks": [_task(task, root.resolve()) for task in tasks],
    }


def _table(table: ScoreTable) -> dict[str, Any]:
    columns = [
        {name: value for name, value in asdict(column).items() if value} for column in table.columns
    ]
    return {"title": table.title, "columns": columns}


def _task(task: Task, root: Path) -> dict[str, Any]:
    checker = {
        "name": task.checker.name,
        "options": dict(task.checker.options),
        "public": [name for name in task.checker.public if name in task.checker.options],
    }
    return {
        "id": task.written_id,
        "instruction": task.instruction,
        "kind": task.kind,
        "groups": dict(task.groups),
        "context": dict(task.context),
        "answer": task.answer.value,
        "checker": checker,
        "excluded": task.excluded,
        "cases": [_case(case, root) for case in task.cases],
    }


def _case(case: TestCase, root: Path) -> dict[str, Any]:
    return {
        "number": case.number,
        "inputs": [
            {"path": _relative(each.path, root), "kind": each.kind.value} for each in case.inputs
        ],
        "golds": [_gold(gold, root) for gold in case.golds],
    }


def _gold(gold: Gold, root: Path) -> dict[str, Any]:
    if gold.data is not None:
        raise UsageError("a gold is not a file yet", hint="Write it into the suite's folder first.")
    options = {"options": dict(gold.options)} if gold.options else {}
    if gold.path is None:
        return {"value": gold.value, **options}
    return {"path": _relative(gold.path, root), **options}


def _relative(path: Path, root: Path) -> str:
    try:
        return path.relative_to(root).as_posix()
    except ValueError as error:
        raise UsageError(
            f"{path} is not in {root}", hint="Copy it into the suite's folder first."
        ) from error
