"""Finds a suite: in a folder, an archive or a file, or by the name of a shipped or fetched suite.

The file ``sources.yaml`` names the published suites that can be fetched.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from judge.errors import SuiteError, did_you_mean
from judge.files.documents import written
from judge.files.paths import cache_folder, shipped_folder
from judge.files.yaml_documents import read_yaml
from judge.suites.archive import ARCHIVE_SUFFIXES, unpack_once
from judge.suites.formats import SuiteFormat, definition_names, format_of_folder, format_rows

SAMPLE = "sample"
"""Name of the suite that ships with the judge."""

SHIPPED = (SAMPLE, "sample-typed", "sample-rules", "sample-checklist", "sample-desktop")
"""All suites that ship with the judge: one for each kind of answer or checker."""

CERTIFIED_FOLDER = "certified"
"""Folder of ``dataset/`` with grades of golds; a file's name begins with the suite's format."""

_MAX_DEPTH = 2
"""How many nested folders are entered if each holds only one folder."""


@dataclass(frozen=True, slots=True)
class Located:
    """A suite that was found.

    Attributes:
        name: its name for people.
        root: its folder.
        format: the format that recognises it.
    """

    name: str
    root: Path
    format: SuiteFormat


def data_folder() -> Path:
    """The folder with the judge's data, which people can edit: ``dataset/`` of the checkout.

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


def certified_files(suite_format: str) -> list[Path]:
    """The files of grades that ship with the judge for suites of a format.

    Raises:
        SuiteError: the installation is incomplete.
    """
    return sorted((data_folder() / CERTIFIED_FOLDER).glob(f"{suite_format}*.yaml"))


def fetched_folder(name: str) -> Path:
    """The folder of a fetched suite, whether it exists or not."""
    return cache_folder() / "suites" / name


def shown_source(root: Path) -> str:
    """What a user types to name the suite in a folder: its name if it has one, else its path.

    Suites in the installation or in the cache have a name; nobody would recognise their paths.
    """
    for name in SHIPPED:
        if root == data_folder() / name:
            return name
    fetched = fetched_folder(root.name)
    return root.name if root.parent == fetched.parent else str(root)


def whole_source(source: str | Path) -> str:
    """The source of a suite as records hold it: an absolute path, or a name unchanged."""
    path = Path(source)
    return str(path.resolve() if path.exists() else source)


def locate_suite(source: Path | str) -> Located:
    """Finds the folder of a suite, unpacking an archive if necessary.

    A folder or file takes precedence over a suite's name, so ``./sample`` is always the folder.

    Raises:
        SuiteError: nothing exists there, or no format recognises it.
    """
    path = Path(source).expanduser()
    if path.is_dir():
        # A folder called "sample" that is not a suite: the user means the shipped suite.
        if str(source) in SHIPPED and format_of_folder(path) is None:
            return _in_folder(data_folder() / str(source), str(source))
        # A definition may be a folder. Naming it selects its suite, even if its parent folder is a
        # suite of another format too.
        for row in format_rows():
            root = _root_of(path, row.definition)
            if root is not None:
                return Located(_name_of(root), root, row.load())
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
        hint=f"`judge dataset list` names the suites; the judge ships with {', '.join(SHIPPED)}",
    )


def _root_of(folder: Path, definition: str) -> Path | None:
    """The suite that a folder of definitions belongs to; None if the folder is not one."""
    parts = PurePath(definition).parts
    real = folder.resolve()
    is_definition = len(parts) > 1 and real.parts[-len(parts) :] == parts
    return real.parents[len(parts) - 1] if is_definition else None


def _in_file(path: Path) -> Located:
    # The definition file stands for its folder.
    for row in format_rows():
        if path.name == row.definition:
            return Located(path.resolve().parent.name, path.parent, row.load())
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
    """The name of a folder, or of its parent if the folder is called ``data`` or ``dataset``."""
    path = folder.resolve()
    holds_data = path.name in {"data", "dataset"} and path.parent.name
    return path.parent.name if holds_data else path.name


def _in_folder(folder: Path, name: str | None = None, depth: int = 0) -> Located:
    """Finds the suite in a folder: the folder itself, or the only folder in it that is a suite."""
    own = format_of_folder(folder)
    if own is not None:
        return Located(name or _name_of(folder), folder, own)
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise SuiteError(f"{folder} cannot be listed: {error.strerror}") from error
    folders = [entry for entry in entries if entry.is_dir()]
    if len(folders) == 1 and format_of_folder(folders[0]) is None and depth < _MAX_DEPTH:
        # An archived repository unpacks to one folder, and the suite's folder is in that.
        with contextlib.suppress(SuiteError):
            return _in_folder(folders[0], name, depth + 1)
    inner = [
        (entry, suite_format)
        for entry in entries
        if (suite_format := format_of_folder(entry)) is not None
    ]
    if len(inner) == 1:
        root, suite_format = inner[0]
        return Located(name or _name_of(root), root, suite_format)
    if inner:
        names = ", ".join(entry.name for entry, _ in inner)
        raise SuiteError(
            f"{folder} holds several suites: {names}",
            faults=tuple(
                f"{entry.name}/{suite_format.definition}" for entry, suite_format in inner
            ),
            hint=f"name one of them: {inner[0][0]}",
        )
    definitions = definition_names()
    raise SuiteError(
        f"{folder} is not a suite: it holds no {' or '.join(definitions)}",
        faults=tuple(f"{definition}: missing" for definition in definitions),
        hint="dataset/schema.md describes what a suite looks like",
    )


# -- published suites ------------------------------------------------------------------------------

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MAX_ADDRESSES = 20


@dataclass(frozen=True, slots=True)
class PublishedSuite:
    """A published suite.

    Attributes:
        name: its name for ``judge dataset fetch`` and ``--dataset``.
        title: one line for people.
        format: name of the suite format.
        tasks: how many tasks it has.
        licence: licence of the data.
        homepage: web page about it.
        archive: file name of the archive.
        size_bytes: size of the archive, where known.
        sha256: checksum of the archive, where one is known.
        urls: addresses of the archive, in the order in which they are tried.
    """

    name: str
    title: str
    format: str
    tasks: int
    licence: str
    homepage: str
    archive: str
    size_bytes: int | None
    sha256: str | None
    urls: tuple[str, ...]


def load_sources(folder: Path) -> tuple[PublishedSuite, ...]:
    """Reads ``sources.yaml``.

    Args:
        folder: the folder that holds it.

    Raises:
        SuiteError: it is missing, not YAML, or a field is not valid.
    """
    path = folder / "sources.yaml"
    document = read_yaml(path, SuiteError)
    entries = document.get("suites") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise SuiteError(f"{path}: field 'suites' must be a list")
    return tuple(_source(path, entry) for entry in entries)


def _source(path: Path, entry: object) -> PublishedSuite:
    if not isinstance(entry, dict):
        raise SuiteError(f"{path}: each suite must be an object, not {written(entry)}")
    fields = _Entry(path, entry)
    urls = entry.get("urls")
    if not isinstance(urls, list) or not urls or not all(isinstance(url, str) for url in urls):
        raise fields.fault("urls", "must be a list of addresses")
    for url in urls[:_MAX_ADDRESSES]:
        if not url.lower().startswith(("http://", "https://")):
            raise fields.fault(
                "urls", f"must hold only http and https addresses, not {written(url)}"
            )
    return PublishedSuite(
        name=fields.file_name("name"),
        title=fields.text("title"),
        format=fields.text("format"),
        tasks=fields.integer("tasks") or 0,
        licence=fields.text("licence"),
        homepage=fields.text("homepage"),
        archive=fields.file_name("archive"),
        size_bytes=fields.integer("size_bytes"),
        sha256=fields.checksum("sha256"),
        urls=tuple(urls[:_MAX_ADDRESSES]),
    )


@dataclass(frozen=True, slots=True)
class _Entry:
    path: Path
    values: Mapping[str, object]

    def fault(self, name: str, problem: str) -> SuiteError:
        suite = self.values.get("name", "?")
        return SuiteError(f"{self.path}, suite {suite}: field {name!r} {problem}")

    def text(self, name: str) -> str:
        value = self.values.get(name)
        if not isinstance(value, str) or not value:
            raise self.fault(name, f"must be text, not {written(value)}")
        return value

    def file_name(self, name: str) -> str:
        """A string that is used as the name of files and folders in the cache."""
        value = self.text(name)
        if _FILE_NAME.fullmatch(value) is None:
            raise self.fault(
                name,
                f"must be letters, digits, '.', '_' and '-', beginning with one of the "
                f"first two, not {written(value)}",
            )
        return value

    def integer(self, name: str) -> int | None:
        value = self.values.get(name)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
            return value
        raise self.fault(name, f"must be a positive integer or null, not {written(value)}")

    def checksum(self, name: str) -> str | None:
        value = self.values.get(name)
        if value is None:
            return None
        text = str(value).lower()
        if len(text) != 64 or not set(text) <= set("0123456789abcdef"):
            raise self.fault(name, f"must be 64 hexadecimal digits or null, not {written(value)}")
        return text
