"""Where a suite is: a folder, an archive, a file, the embedded sample, a fetched name."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path, PurePath

from judge.errors import SuiteError, did_you_mean
from judge.files.paths import cache_folder, shipped_folder
from judge.suites.archive import ARCHIVE_SUFFIXES, unpack_once
from judge.suites.formats import SuiteFormat, definition_names, format_of_folder, suite_formats
from judge.suites.sources import load_sources

SAMPLE = "sample"
"""Name of the suite that ships with the judge."""

SHIPPED = (SAMPLE, "sample-typed", "sample-rules", "sample-desktop")
"""All suites that ship with it: of cell ranges, of typed answers, of rules, for desktops."""

_MAX_DEPTH = 2
"""How many folders with nothing but one folder are gone into."""


@dataclass(frozen=True, slots=True)
class Located:
    """Where a suite is.

    Attributes:
        name: its name for people.
        root: its folder.
        format: the format that recognises it.
    """

    name: str
    root: Path
    format: SuiteFormat


def data_folder() -> Path:
    """The folder that people edit without touching code: ``dataset/`` of the checkout.

    In an installed package it is ``judge/data/dataset``.

    Raises:
        SuiteError: neither exists, so the installation is incomplete.
    """
    if (folder := shipped_folder("dataset", "sources.yaml")) is not None:
        return folder
    raise SuiteError(
        "the judge's own data (dataset/) is missing from this installation",
        hint="Install the judge again, from the wheel: pip install --force-reinstall WHEEL.",
    )


def fetched_folder(name: str) -> Path:
    """The folder of a fetched suite, whether it exists or not."""
    return cache_folder() / "suites" / name


def said_source(root: Path) -> str:
    """What a person types for the suite in a folder: the name of one that the judge knows.

    A folder inside the installation or the cache says nothing to anybody.
    """
    for name in SHIPPED:
        if root == data_folder() / name:
            return name
    fetched = fetched_folder(root.name)
    return root.name if root.parent == fetched.parent else str(root)


def whole_source(source: str | Path) -> str:
    """What a suite is loaded from, as it goes on record: a path in full, a name as it is."""
    path = Path(source)
    return str(path.resolve() if path.exists() else source)


def locate_suite(source: Path | str) -> Located:
    """Finds the folder of a suite, unpacking an archive if necessary.

    What exists on disk takes precedence over a name, so ``./sample`` is never mistaken.

    Raises:
        SuiteError: nothing exists there, or no format recognises it.
    """
    path = Path(source).expanduser()
    if path.is_dir():
        # "sample" beside a folder of that name that is no suite: the name is meant.
        if str(source) in SHIPPED and format_of_folder(path) is None:
            return _in_folder(data_folder() / str(source), str(source))
        # A folder that defines a suite means that one, whatever else is around it.
        for suite_format in suite_formats():
            root = _root_of(path, suite_format)
            if root is not None:
                return Located(_name_of(root), root, suite_format)
        return _in_folder(path)
    if path.is_file():
        return _in_file(path)
    source = str(source)
    if os.sep not in source:
        if source in SHIPPED:
            return _in_folder(data_folder() / source, source)
        if fetched_folder(source).is_dir():
            return _in_folder(fetched_folder(source), source)
        if source in {published.name for published in load_sources(data_folder())}:
            raise SuiteError(
                f"the suite {source} is not on this machine yet",
                faults=(f"{fetched_folder(source)}: does not exist",),
                hint=f"judge dataset fetch {source}",
            )
    published = [load_source.name for load_source in load_sources(data_folder())]
    nearest = did_you_mean(source, (*SHIPPED, *published), before=". ")
    raise SuiteError(
        f"there is no suite at {source}: no such folder, archive or fetched suite{nearest}",
        faults=(f"{source}: does not exist",),
        hint=f"`judge dataset list` names the suites; always here are {', '.join(SHIPPED)}",
    )


def _root_of(folder: Path, found: SuiteFormat) -> Path | None:
    """The folder of the suite that a folder defines; None if it does not define one."""
    parts = PurePath(found.definition).parts
    real = folder.resolve()
    is_definition = len(parts) > 1 and real.parts[-len(parts) :] == parts
    return real.parents[len(parts) - 1] if is_definition else None


def _in_file(path: Path) -> Located:
    # A definition defines its own folder; a file with another name is none.
    for suite_format in suite_formats():
        if path.name == suite_format.definition:
            return Located(path.resolve().parent.name, path.parent, suite_format)
    if path.name.lower().endswith(ARCHIVE_SUFFIXES):
        name = path.name
        for suffix in ARCHIVE_SUFFIXES:
            name = name.removesuffix(suffix)
        return _in_folder(unpack_once(path, cache_folder() / "archives"), name)
    names = definition_names()
    raise SuiteError(
        f"{path} is not a suite",
        faults=(f"{path.name}: neither {' nor '.join(names)} nor a .tar.gz",),
        hint=f"give the folder, its {' or '.join(names)}, or the .tar.gz",
    )


def _name_of(folder: Path) -> str:
    """The name of a folder; that of the one above if it only says that it holds data."""
    path = folder.resolve()
    holds_data = path.name in {"data", "dataset"} and path.parent.name
    return path.parent.name if holds_data else path.name


def _in_folder(folder: Path, name: str | None = None, depth: int = 0) -> Located:
    """The folder itself, or the only folder in it that is a suite."""
    own = format_of_folder(folder)
    if own is not None:
        return Located(name or _name_of(folder), folder, own)
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise SuiteError(f"{folder} cannot be listed: {error.strerror}") from error
    folders = [entry for entry in entries if entry.is_dir()]
    if len(folders) == 1 and format_of_folder(folders[0]) is None and depth < _MAX_DEPTH:
        # The archive of a repository holds one folder, and that the folder with the suite.
        with contextlib.suppress(SuiteError):
            return _in_folder(folders[0], name, depth + 1)
    inner = [(entry, found) for entry in entries if (found := format_of_folder(entry)) is not None]
    if len(inner) == 1:
        root, found = inner[0]
        return Located(name or _name_of(root), root, found)
    if inner:
        names = ", ".join(entry.name for entry, _ in inner)
        raise SuiteError(
            f"{folder} holds several suites: {names}",
            faults=tuple(f"{entry.name}/{found.definition}" for entry, found in inner),
            hint=f"name one of them: {inner[0][0]}",
        )
    definitions = definition_names()
    raise SuiteError(
        f"{folder} is not a suite: it holds no {' or '.join(definitions)}",
        faults=tuple(f"{definition}: missing" for definition in definitions),
        hint="dataset/schema.md describes what a suite looks like",
    )
