"""Loads a suite from any place and in any format. Opens no workbook."""

from __future__ import annotations

from pathlib import Path

from judge.errors import SuiteError
from judge.suites.locate import locate_suite
from judge.suites.suite import Suite


def load_suite(source: Path | str) -> Suite:
    """Loads a suite; if it is broken, reports everything that is wrong with it.

    Args:
        source: a folder, a ``.tar.gz`` (unpacked once into the cache), the file that defines the
            suite (``dataset.json``, ``suite.json``), ``sample`` for the embedded suite, or the
            name of a fetched suite.

    Raises:
        SuiteError: there is no suite, or it is broken; ``faults`` names each fault with its file.
    """
    located = locate_suite(source)
    contents = located.format.load(located.root)
    faults = contents.faults
    if not contents.tasks and not faults:
        faults = (f"{located.format.definition}: a suite needs at least one task",)
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
        notes=contents.notes,
    )
