"""Where a suite lies: a folder, an archive, a file, the embedded sample, a fetched name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from judge.errors import SuiteError
from judge.files.places import cache_folder
from judge.suites.archive import ARCHIVE_SUFFIXES, unpack_once
from judge.suites.sources import load_sources

SAMPLE = "sample"
"""Name of the suite that ships with the judge."""

_DATASET = "dataset.json"


@dataclass(frozen=True, slots=True)
class Located:
    """A suite's name and the folder that holds its ``dataset.json``."""

    name: str
    root: Path


def data_folder() -> Path:
    """The folder that people edit without touching code: ``dataset/`` of the checkout.

    In an installed package it is ``judge/data/dataset``.

    Raises:
        SuiteError: neither is there, so the installation is incomplete.
    """
    package = Path(str(resources.files("judge")))
    for candidate in (package / "data" / "dataset", package.parent / "dataset"):
        if (candidate / "sources.yaml").is_file():
            return candidate
    raise SuiteError(
        "the judge's own data (dataset/) is missing from this installation",
        hint="install it again: pip install --force-reinstall sheetjudge",
    )


def fetched_folder(name: str) -> Path:
    """The folder of a fetched suite, there or not."""
    return cache_folder() / "suites" / name


def locate_suite(source: Path | str) -> Located:
    """Finds the folder of a suite, unpacking an archive where need be.

    What exists on disk goes before a name, so ``./sample`` is never mistaken.

    Raises:
        SuiteError: nothing is there, or there is no ``dataset.json`` in it.
    """
    path = Path(source).expanduser()
    if path.is_dir():
        # "sample" beside a folder of that name that is no suite: the name is meant.
        if str(source) == SAMPLE and not (path / _DATASET).is_file():
            return Located(SAMPLE, data_folder() / SAMPLE)
        return _in_folder(path)
    if path.is_file():
        return _in_file(path)
    if isinstance(source, str) and os.sep not in source:
        if source == SAMPLE:
            return Located(SAMPLE, data_folder() / SAMPLE)
        if fetched_folder(source).is_dir():
            return _in_folder(fetched_folder(source), source)
        if source in {published.name for published in load_sources(data_folder())}:
            raise SuiteError(
                f"the suite {source} is not on this machine yet",
                faults=(f"{fetched_folder(source)}: does not exist",),
                hint=f"judge dataset fetch {source}",
            )
    raise SuiteError(
        f"there is no suite at {source}: no such folder, archive or fetched suite",
        faults=(f"{source}: does not exist",),
        hint="`judge dataset list` names the published suites; `sample` is always there",
    )


def _in_file(path: Path) -> Located:
    if path.suffix.lower() == ".json":
        # Whatever the file is called, it is read as the suite's dataset.json only by that name.
        if path.name == _DATASET:
            return Located(path.resolve().parent.name, path.parent)
    elif path.name.lower().endswith(ARCHIVE_SUFFIXES):
        name = path.name
        for suffix in ARCHIVE_SUFFIXES:
            name = name.removesuffix(suffix)
        return _in_folder(unpack_once(path, cache_folder() / "archives"), name)
    raise SuiteError(
        f"{path} is not a suite",
        faults=(f"{path.name}: neither dataset.json nor a .tar.gz",),
        hint="give the folder, its dataset.json, or the .tar.gz",
    )


def _in_folder(folder: Path, name: str | None = None) -> Located:
    """The folder itself, or the only folder in it that holds a ``dataset.json``."""
    if (folder / _DATASET).is_file():
        return Located(name or folder.resolve().name, folder)
    try:
        inner = sorted(entry for entry in folder.iterdir() if (entry / _DATASET).is_file())
    except OSError as error:
        raise SuiteError(f"{folder} cannot be listed: {error.strerror}") from error
    if len(inner) == 1:
        return Located(name or inner[0].name, inner[0])
    if inner:
        names = ", ".join(entry.name for entry in inner)
        raise SuiteError(
            f"{folder} holds several suites: {names}",
            faults=tuple(f"{entry.name}/dataset.json" for entry in inner),
            hint=f"name one of them: {inner[0]}",
        )
    raise SuiteError(
        f"{folder} is not a suite: it holds no dataset.json",
        faults=("dataset.json: missing",),
        hint="dataset/schema.md describes what a suite looks like",
    )
