"""Loads a suite of any format from any source, and remembers where it is. Opens no workbook.

Logs for other people name a suite by its digest and not by its path. The source of a loaded suite
can be remembered, so that the suite can be found on this machine by its digest.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Collection
from pathlib import Path

from judge.core.task import Task
from judge.errors import StoreError, SuiteError
from judge.files.documents import read_json
from judge.files.paths import state_folder
from judge.files.writing import write_whole
from judge.suites.locate import (
    SHIPPED,
    data_folder,
    fetched_folder,
    load_sources,
    locate_suite,
    whole_source,
)
from judge.suites.suite import Suite


def load_suite(source: Path | str, *, ids: Collection[str] = ()) -> Suite:
    """Loads a suite; if it is broken, reports everything that is wrong with it.

    Args:
        source: a folder, a ``.tar.gz`` (unpacked once into the cache), the file that defines the
            suite (``dataset.json``, ``suite.json``), ``sample`` for the embedded suite, or the
            name of a fetched suite.
        ids: the tasks that will be used; empty for all. If none of them has a fault, the faults of
            other tasks become notes, and those tasks are left out.

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
    """Whether one of the requested tasks has a fault, or may have one."""
    whole = {task.id for task in tasks}
    named = {f"(id {task_id})" for task_id in ids} | {f"/{task_id}/" for task_id in ids}
    return not set(ids) <= whole or any(name in fault for fault in faults for name in named)


# -- suites by their digest ------------------------------------------------------------------------

_DIGEST = re.compile(r"[0-9a-f]{64}")


def remember_suite(suite: Suite, source: str) -> None:
    """Remembers where a suite is. If that cannot be stored, the user has to name the path later.

    Args:
        suite: the suite.
        source: the source that it was loaded from.
    """
    whole = whole_source(source)
    with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: the user has no home
        path = _path(suite.digest)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, json.dumps({"source": whole}).encode())


def source_of_digest(digest: str, name: str) -> str | None:
    """A source that the suite can be loaded from on this machine; None if none is known.

    The suite may have changed there since: compare the digests.

    Args:
        digest: the digest of the suite's content; not trusted.
        name: the suite's name; not trusted, and used only if it is the name of a suite that ships
            with the judge or was fetched.
    """
    if _DIGEST.fullmatch(digest) is None:
        return None
    with contextlib.suppress(OSError, RuntimeError, StoreError):
        document = read_json(_path(digest), StoreError)
        source = document.get("source") if isinstance(document, dict) else None
        if isinstance(source, str):
            return source
    fetched = {
        load_source.name
        for load_source in load_sources(data_folder())
        if fetched_folder(load_source.name).is_dir()
    }
    return name if name in {*SHIPPED, *fetched} else None


def _path(digest: str) -> Path:
    return state_folder() / "suites" / f"{digest}.json"
