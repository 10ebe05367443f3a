"""A loaded suite: its tasks, its folder, and the digest of its content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from judge.compare.registry import check_options
from judge.core.score import ScoreTable
from judge.core.task import CheckerSpec, Task
from judge.errors import SuiteError, UsageError, did_you_mean
from judge.suites.formats import SuiteFormat, format_named
from judge.suites.load import shown_source


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
    def conventions(self) -> SuiteFormat:
        """The suite's format, which says how its files are named.

        Raises:
            UsageError: the format has been removed from the registry since.
        """
        return format_named(self.format)

    @property
    def definition_path(self) -> Path:
        """The file that the tasks were read from, such as ``dataset.json``, or their folder."""
        return self.root / self.conventions.definition

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
        alias = self.conventions.alias_of(record)
        task = None if alias is None else self._by_alias.get(alias)
        return None if task is None else task.id

    @property
    def whole(self) -> Suite:
        """The suite with all its tasks, unchanged from its files."""
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
