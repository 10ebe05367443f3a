"""Finds and loads suites of any format, and what a loaded suite has: tasks, folder and digest.

A suite is found in a folder, an archive or a file, or by the name of a shipped or fetched suite.
The file ``sources.yaml`` names the published suites that can be fetched. No workbook is opened.

Logs for other people name a suite by its digest and not by its path. The source of a loaded suite
can be remembered, so that the suite can be found on this machine by its digest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePath
from pkgutil import resolve_name

from judge.compare.registry import check_options
from judge.core.score import ScoreTable
from judge.core.task import CheckerSpec, Task
from judge.errors import StoreError, SuiteError, UsageError, did_you_mean
from judge.files.documents import read_json, written
from judge.files.paths import cache_folder, shipped_folder, state_folder
from judge.files.writing import write_whole
from judge.suites.formats import (
    SuiteFormat,
    definition_names,
    format_named,
    format_of_folder,
    format_rows,
)


@dataclass(frozen=True)
class Suite:
    """The tasks of one suite, as read from its files.

    Attributes:
        name: its name for people: the published name, or the name of the folder or archive.
        root: the folder that holds the suite's definition, such as ``dataset.json``.
        format: a name of the suite's format, such as ``spreadsheetbench-v0.1``.
        tasks: the tasks in the order of the definition; at least one.
        notes: irregularities that were tolerated (a misnamed workbook, an unknown field), one line
            each, with the file.
        tables: the tables of scores for reports on the suite.
        definitions: the files that define the tasks; empty if it is the file that the format names.
    """

    name: str
    root: Path
    format: str
    tasks: tuple[Task, ...]
    notes: tuple[str, ...] = ()
    tables: tuple[ScoreTable, ...] = ()
    definitions: tuple[Path, ...] = ()
    _whole: Suite | None = field(default=None, repr=False, compare=False)
    _by_id: dict[str, Task] = field(init=False, repr=False, compare=False)
    _by_alias: dict[str, Task] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_id", {task.id: task for task in self.tasks})
        aliases = {alias: task for task in self.tasks for alias in task.aliases}
        object.__setattr__(self, "_by_alias", aliases)

    @property
    def suite_format(self) -> SuiteFormat:
        """The suite's format: how its files are named, read and written.

        Raises:
            UsageError: the format has been removed from the registry since.
        """
        return format_named(self.format)

    @property
    def definition_path(self) -> Path:
        """The file that the tasks were read from, such as ``dataset.json``, or their folder."""
        return self.root / self.suite_format.definition

    @property
    def case_count(self) -> int:
        """The number of test cases of all tasks."""
        return sum(len(task.cases) for task in self.tasks)

    def __contains__(self, task_id: object) -> bool:
        return str(task_id) in self._by_id

    def task(self, task_id: int | str) -> Task:
        """The task with an id; ids are compared as text.

        Raises:
            UsageError: the suite has no such task.
        """
        task = self._by_id.get(str(task_id))
        if task is None:
            raise self._no_task([str(task_id)])
        return task

    def _no_task(self, unknown: Sequence[str]) -> UsageError:
        near = filter(
            None, (did_you_mean(task_id, self._by_id, before=". ") for task_id in unknown[:5])
        )
        return UsageError(
            f"the suite {self.name} has no task {', '.join(unknown)}{next(near, '')}",
            hint=f"`judge dataset list {shown_source(self.root)}` names its tasks",
        )

    def aliased(self, record: Mapping[str, object]) -> str | None:
        """The id of the task that an answer record refers to by an alias.

        None if the record has no alias, or no task has this alias.
        """
        alias = self.suite_format.alias_of(record)
        task = None if alias is None else self._by_alias.get(alias)
        return None if task is None else task.id

    @property
    def whole(self) -> Suite:
        """The suite as its files define it, with all tasks."""
        return self if self._whole is None else self._whole

    def task_id_in(self, name: str, folders: Sequence[str]) -> str:
        """The id of the task that a file name refers to; several tasks may share a published id.

        Args:
            name: the id in the file name.
            folders: the folders that the file is in. An alias ``{folder}/{name}`` is tried first,
                beginning with the innermost folder; then the id, and then a plain alias.
        """
        for folder in reversed(folders):
            if (task := self._by_alias.get(f"{folder}/{name}")) is not None:
                return task.id
        if name not in self._by_id and (task := self._by_alias.get(name)) is not None:
            return task.id
        return name

    def select(self, ids: Sequence[int | str] | None = None, limit: int | None = None) -> Suite:
        """The suite with only some of its tasks, in suite order; the digest stays the same.

        Args:
            ids: the ids to keep; None or an empty collection for every task.
            limit: keeps only this many tasks, from the start; None for no limit.

        Raises:
            UsageError: ids that the suite does not have (all of them are named).
        """
        tasks = self.tasks
        if ids:
            selected = {str(task_id) for task_id in ids}
            unknown = sorted(selected - self._by_id.keys())
            if unknown:
                raise self._no_task(unknown)
            tasks = tuple(task for task in tasks if task.id in selected)
        if limit is not None:
            tasks = tasks[:limit]
        return replace(self, tasks=tasks, _whole=self._whole or self)

    def with_tasks(self, tasks: Sequence[Task]) -> Suite:
        """The suite with changed tasks; the digest is still that of the unchanged files."""
        return replace(self, tasks=tuple(tasks), _whole=self._whole or self)

    def with_checker_options(self, options: Mapping[str, object]) -> Suite:
        """The suite with comparison options that override those of its tasks.

        Raises:
            UsageError: there is no such option, or its value does not fit.
        """
        if not options:
            return self
        for name in {task.checker.name for task in self.tasks}:
            check_options(CheckerSpec(name, options))
        return self.with_tasks(
            [replace(task, checker=task.checker.with_options(options)) for task in self.tasks]
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256, in hexadecimal, of the suite's definition and of each case's files and values.

        The same content has the same digest everywhere: ids and case numbers are included, paths
        and file names are not. Computed once (about 0.1 s for 40 MB), then remembered.

        Raises:
            SuiteError: a file disappeared or cannot be read.
        """
        if self._whole is not None:
            return self._whole.digest
        whole = hashlib.sha256()
        for definition in self.definitions or _files_of(self.definition_path):
            whole.update(file_digest(definition))
        for task in self.tasks:
            for case in task.cases:
                whole.update(f"\0{task.id}\0{case.number}\0".encode())
                for path in case.paths:
                    whole.update(file_digest(path))
                # A value may come from a file other than the definition.
                values = [gold.value for gold in case.golds if gold.path is None]
                if values:
                    whole.update(json.dumps(values, sort_keys=True).encode())
        return whole.hexdigest()


def _files_of(definition: Path) -> list[Path]:
    """The file that defines a suite; for a folder of such files, all of them, sorted by name."""
    return sorted(definition.rglob("*.json")) if definition.is_dir() else [definition]


def file_digest(path: Path) -> bytes:
    """SHA-256 of a file of a suite.

    Raises:
        SuiteError: it disappeared, or cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        raise SuiteError(
            f"{path} cannot be read: {error.strerror}",
            hint="the suite changed while it was in use; load it again",
        ) from error


ARCHIVE_SUFFIXES = (".tar.gz", ".tgz", ".tar", ".zip")

_UNPACK = "judge.suites.archive:unpack_once"
"""Imported for suites in an archive."""

SAMPLE = "sample"
"""Name of the suite that ships with the judge."""

SHIPPED = (SAMPLE, "sample-typed", "sample-rules", "sample-checklist", "sample-desktop")
"""All suites that ship with the judge: one for each kind of answer or checker."""

CERTIFIED_FOLDER = "certified"
"""Folder of ``dataset/`` with grades of golds; a file's name begins with the suite's format."""

_MAX_DEPTH = 2
"""How many nested folders are searched for a suite, as long as each holds only one folder."""


@dataclass(frozen=True, slots=True)
class LocatedSuite:
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
    """The folder of the judge's data, which people can edit: ``dataset/`` in a checkout.

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
    """What a user types to choose the suite in a folder: its name or, if it has none, its path.

    Suites in the installation or in the cache have a name; a user does not know their paths.
    """
    for name in SHIPPED:
        if root == data_folder() / name:
            return name
    fetched = fetched_folder(root.name)
    return root.name if root.parent == fetched.parent else str(root)


def whole_source(source: str | Path) -> str:
    """The source of a suite as it is recorded: a path is made absolute, a name stays unchanged."""
    path = Path(source)
    return str(path.resolve() if path.exists() else source)


def locate_suite(source: Path | str) -> LocatedSuite:
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
                return LocatedSuite(_name_of(root), root, row.load())
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


def _in_file(path: Path) -> LocatedSuite:
    # The definition file stands for its folder.
    for row in format_rows():
        if path.name == row.definition:
            return LocatedSuite(path.resolve().parent.name, path.parent, row.load())
    if path.name.lower().endswith(ARCHIVE_SUFFIXES):
        name = path.name
        for suffix in ARCHIVE_SUFFIXES:
            name = name.removesuffix(suffix)
        return _in_folder(resolve_name(_UNPACK)(path, cache_folder() / "archives"), name)
    raise SuiteError(
        f"{path} is not a suite: it is neither an archive nor a file that defines one, such as "
        f"{definition_names()[0]}",
        hint=f"give the suite's folder, or an archive ({', '.join(ARCHIVE_SUFFIXES)})",
    )


def _name_of(folder: Path) -> str:
    """The name of a folder, or of its parent if the folder is called ``data`` or ``dataset``."""
    path = folder.resolve()
    holds_data = path.name in {"data", "dataset"} and path.parent.name
    return path.parent.name if holds_data else path.name


def _in_folder(folder: Path, name: str | None = None, depth: int = 0) -> LocatedSuite:
    """Finds the suite in a folder: the folder itself, or the only folder in it that is a suite."""
    own = format_of_folder(folder)
    if own is not None:
        return LocatedSuite(name or _name_of(folder), folder, own)
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
        return LocatedSuite(name or _name_of(root), root, suite_format)
    if inner:
        names = ", ".join(entry.name for entry, _ in inner)
        raise SuiteError(
            f"{folder} holds several suites: {names}",
            faults=tuple(
                f"{entry.name}/{suite_format.definition}" for entry, suite_format in inner
            ),
            hint=f"name one of them: {inner[0][0]}",
        )
    parent = folder.absolute().parent
    inside = format_of_folder(parent) is not None
    raise SuiteError(
        f"{folder} is not a suite: it holds no {' or '.join(definition_names()[:2])}, and no file "
        "that defines a suite in another format",
        hint=f"it is inside a suite: give {parent}"
        if inside
        else "dataset/schema.md describes what a suite looks like",
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
    from judge.files.yaml_documents import read_yaml  # noqa: PLC0415  not for a suite with a path

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
    """Whether one of the requested tasks has a fault, or a fault may belong to one of them."""
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
