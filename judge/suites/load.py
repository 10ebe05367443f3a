"""Loads a suite from any place and in any format. Opens no workbook."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from judge.core.task import Task
from judge.errors import SuiteError
from judge.suites.locate import locate_suite
from judge.suites.suite import Suite


def load_suite(source: Path | str, *, ids: Collection[str] = ()) -> Suite:
    """Loads a suite; if it is broken, reports everything that is wrong with it.

    Args:
        source: a folder, a ``.tar.gz`` (unpacked once into the cache), the file that defines the
            suite (``dataset.json``, ``suite.json``), ``sample`` for the embedded suite, or the
            name of a fetched suite.
        ids: the tasks that are going to be used; if none of them is at fault, faults of other tasks
            become notes, and these tasks are left out. Every task counts if none is named.

    Raises:
        SuiteError: there is no suite, or it is broken; ``faults`` names each fault with its file.
    """
    located = locate_suite(source)
    contents = located.format.load(located.root)
    faults = contents.faults
    if not contents.tasks and not faults:
        faults = (f"{located.format.definition}: a suite needs at least one task",)
    notes = contents.notes
    if faults and ids and contents.tasks and not _concerns(faults, contents.tasks, ids):
        notes, faults = (*notes, *(f"left out: {fault}" for fault in faults)), ()
    if faults:
        raise SuiteError(
            f"{located.root} is broken: {len(faults)} fault{'s' if len(faults) > 1 else ''}",
            faults=faults,
            hint="dataset/schema.md describes what a suite looks like",
        )
    return Suite(
        name=located.name,
        root=located.root.absolute(),
        format=contents.format,
        tasks=contents.tasks,
        notes=notes,
        tables=contents.tables,
        definitions=contents.definitions,
    )


def _concerns(faults: Collection[str], tasks: Collection[Task], ids: Collection[str]) -> bool:
    """Whether a fault is one of certain tasks, or may be."""
    whole = {task.id for task in tasks}
    named = {f"(id {each})" for each in ids} | {f"/{each}/" for each in ids}
    return not set(ids) <= whole or any(name in fault for fault in faults for name in named)
