"""The contract of a suite format, and the formats that exist.

A format is one module with a :class:`SuiteFormat`, and one row of :data:`FORMATS`. It recognises
the folders that are suites of its kind, reads them, and knows how their files are named.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, NamedTuple

from judge.core.score import ScoreTable
from judge.core.task import Task, TaskQuestion
from judge.errors import SuiteError, UsageError

if TYPE_CHECKING:
    from judge.core.records.reports import PublishedFigures
    from judge.suites.suite import Suite

DATA_FOLDER = "/mnt/data"
"""Folder in the sandbox where a program finds its input and leaves its output by default."""


class Row(NamedTuple):
    """A registered format; its module is imported only for suites that may have this format.

    Attributes:
        names: its :attr:`SuiteFormat.names`.
        definition: its :attr:`SuiteFormat.definition`.
        home: the module and the name of the format in it, or the format itself.
        markers: paths below the folder, perhaps with ``*``. Only a folder that has one of them is
            examined further. Empty if the definition is the only marker.
    """

    names: tuple[str, ...]
    definition: str
    home: str | SuiteFormat
    markers: tuple[str, ...] = ()

    def load(self) -> SuiteFormat:
        """Imports the format."""
        if not isinstance(self.home, str):
            return self.home
        suite_format: SuiteFormat = resolve_name(self.home)
        return suite_format

    def may_be_in(self, root: Path) -> bool:
        """Whether a folder has a certain entry; False if the folder cannot be listed."""
        try:
            return any(_is_there(root, marker) for marker in self.markers or (self.definition,))
        except OSError:
            return False


def _is_there(root: Path, marker: str) -> bool:
    if "*" in marker:
        return any(True for _ in root.glob(marker))
    return (root / marker).exists()


_EXAMPLES = "evaluation_examples/examples"
FORMATS = (
    Row(
        ("spreadsheetbench-v0.1", "spreadsheetbench-verified"),
        "dataset.json",
        "judge.suites.spreadsheetbench:FORMAT",
    ),
    Row(("sheetjudge-v1",), "suite.json", "judge.suites.own_format:FORMAT"),
    Row(("babelbench",), "benchmark.csv", "judge.suites.babelbench:FORMAT"),
    Row(
        ("spreadsheetbench-2",),
        "{category}/dataset.json",
        "judge.suites.spreadsheetbench2:FORMAT",
        markers=("*/dataset.json",),
    ),
    Row(("dabench",), "da-dev-questions.jsonl", "judge.suites.dabench:FORMAT"),
    Row(("spider2v",), f"{_EXAMPLES}/excel", "judge.suites.desktop:SPIDER2V"),
    Row(("osworld",), f"{_EXAMPLES}/libreoffice_calc", "judge.suites.desktop:OSWORLD"),
    Row(("sheetcopilot",), "dataset.xlsx", "judge.suites.sheetcopilot:FORMAT"),
    Row(
        ("opencomputer",),
        "tasks/calc_*/task.json",
        "judge.suites.checklists:OPENCOMPUTER",
        markers=("tasks/calc_*/task.json", "task_generator/tasks/calc_*/task.json"),
    ),
    Row(
        ("ib-bench",),
        "tasks/*/rubric.json",
        "judge.suites.checklists:IB_BENCH",
        markers=("tasks/*/rubric.json", "eval/tasks/*/rubric.json"),
    ),
    Row(("officebench",), "tasks/*/subtasks/*.json", "judge.suites.checklists:OFFICEBENCH"),
    Row(("skillsbench",), "tasks/*/task.toml", "judge.suites.checklists:SKILLSBENCH"),
    Row(
        ("waa-v2",),
        "examples/libreoffice_calc",
        "judge.suites.checklists:WINDOWS_AGENT_ARENA",
    ),
)
"""The formats of the judge."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a suite's folder.

    Attributes:
        format: the name that applies to the suite, if the format has several.
        tasks: the tasks, in the order of the suite.
        notes: irregularities that were tolerated (a misnamed workbook, an unknown field), one line
            each, with the file.
        faults: everything that is wrong, one line each, with the file. A suite with faults is not
            used, unless the tasks to judge are named and have none: a fault of a single task
            therefore contains ``(id ID)``, or the path of a file in a folder named after the task.
        tables: the tables of scores for reports on the suite, as in its paper.
        definitions: the files that define the tasks, unless it is only the file that
            :attr:`SuiteFormat.definition` names.
    """

    format: str
    tasks: tuple[Task, ...]
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    tables: tuple[ScoreTable, ...] = ()
    definitions: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class SolutionPaths:
    """Absolute paths at which a solution finds its input and leaves its output."""

    input_path: str
    output_path: str


class FileRole(enum.Enum):
    """The role that a file has for a program."""

    INPUT = "input"
    OUTPUT = "output"


class SuiteFormat(ABC):
    """How suites of one format are written, and how their files are named.

    The defaults are for a format that is read but not written, has no naming scheme for files, and
    has no finished outputs.

    Attributes:
        names: the names of the format in run.json, in corrections and in messages; more than one if
            published suites of the format differ.
        definition: name of the file in a suite's folder that defines its tasks. If there are
            several, a pattern for messages; :attr:`Contents.definitions` names them.
        file_suffixes: suffixes of inputs and outputs, such as ``.xlsx``; in lower case.
        output_pattern: naming scheme of finished outputs, for messages.
        has_folder_answers: whether :meth:`folder_answers` may return any.
    """

    names: tuple[str, ...]
    definition: str
    file_suffixes: tuple[str, ...]
    output_pattern: str = "none: its answers are values, or files that --outputs names"
    has_folder_answers: bool = False

    @abstractmethod
    def recognises(self, root: Path) -> bool:
        """Whether a folder is a suite of this format; must be fast, as caches are searched."""

    @abstractmethod
    def load(self, root: Path) -> Contents:
        """Reads a suite.

        Args:
            root: a folder that :meth:`recognises` accepts.

        Returns:
            The tasks, and everything that is wrong with them.

        Raises:
            SuiteError: the definition itself cannot be read.
        """

    @abstractmethod
    def default_paths(self, question: TaskQuestion, folder: str = DATA_FOLDER) -> SolutionPaths:
        """The paths that a program uses if none are given; they are the same for every case.

        Args:
            question: the task.
            folder: an absolute path inside the sandbox.
        """

    def alias_of(self, record: Mapping[str, object]) -> str | None:  # noqa: ARG002
        """The name by which an answer record without an id identifies its task, or None."""
        return None

    def output_of(
        self,
        file_name: str,  # noqa: ARG002
    ) -> tuple[str, int] | tuple[str, int, int] | None:
        """Task id and case number in the name of an output; None for any other name.

        If names distinguish several samples of a case, the sample number follows, counted from 0.
        """
        return None

    def folder_answers(
        self,
        folder: Path,  # noqa: ARG002
        tasks: Mapping[str, str],  # noqa: ARG002
    ) -> Mapping[str, Path]:
        """Finds the answers of several files in a folder of finished outputs, by task id.

        Args:
            folder: where to look.
            tasks: a task's name in answers -> its id.

        Returns:
            Task id -> a folder, or the file that leads
            :func:`judge.suites.folders.read_answer` to the others.

        Raises:
            SubmissionError: the folder cannot be listed.
        """
        return {}

    def role_of(self, file_name: str, task_id: str) -> FileRole | None:  # noqa: ARG002
        """The role that a file name has for programs of the task; None if it has none.

        Such names occur in prompts and programs that other people wrote.
        """
        return None

    def new_case_names(self, task_id: str, number: int) -> tuple[str, str] | None:  # noqa: ARG002
        """File names for the input and the gold workbook of a case that is added to a task.

        Files with these names become a case when they are put into the folder of the task's other
        cases. None if the definition lists the cases instead.
        """
        return None

    def definition_of(self, root: Path, tasks: Sequence[Task]) -> str:  # noqa: ARG002
        """The text of a new definition file for tasks of a suite.

        Args:
            root: the folder of the suite.
            tasks: its tasks, whose checkers may have changed; their files are in the folder.

        Raises:
            SuiteError: the suite's own definition cannot be read.
            UsageError: suites of this format are only read.
        """
        raise UsageError(
            f"{root}: suites of the format {self.names[0]} are read, and cannot be written",
            hint="Score with --corrections-from FILE instead.",
        )

    def published_figures(
        self,
        suite: Suite,  # noqa: ARG002
        folder: Path,  # noqa: ARG002
        accepted: Mapping[tuple[str, int], bool],  # noqa: ARG002
    ) -> list[PublishedFigures]:
        """The figures that the suite's own evaluation reports, from the logs in a results folder.

        Args:
            suite: the suite that was answered.
            folder: the folder of finished outputs.
            accepted: task and sample -> whether its output was accepted.

        Returns:
            The figures of each repetition; empty if the folder has no logs.

        Raises:
            SubmissionError: the folder cannot be listed.
            SuiteError: the suite cannot be read.
        """
        return []


_REGISTERED: dict[str, SuiteFormat] = {}


def register(suite_format: SuiteFormat) -> None:
    """Adds a custom format.

    Raises:
        UsageError: another format has one of its names, or the same definition file.
    """
    for row in format_rows():
        if row.home is suite_format:
            continue
        taken = set(row.names) & set(suite_format.names)
        if taken:
            raise UsageError(f"there is a suite format {min(taken)!r} already")
        if row.definition == suite_format.definition:
            raise UsageError(
                f"suites of the format {row.names[0]!r} are defined by a {row.definition} already"
            )
    for name in suite_format.names:
        _REGISTERED[name] = suite_format


def unregister(name: str) -> None:
    """Removes a registered format, with all its names."""
    if (suite_format := _REGISTERED.get(name)) is not None:
        for own_name in suite_format.names:
            _REGISTERED.pop(own_name, None)


def format_rows() -> Iterator[Row]:
    """The rows of all formats, first the judge's, then registered ones; imports no format."""
    yield from FORMATS
    for suite_format in {id(row): row for row in _REGISTERED.values()}.values():
        yield Row(suite_format.names, suite_format.definition, suite_format)


def suite_formats() -> Iterator[SuiteFormat]:
    """All formats: first the judge's own, then the registered ones."""
    return (row.load() for row in format_rows())


def format_named(name: str) -> SuiteFormat:
    """The format that has a name.

    Raises:
        UsageError: there is no such format.
    """
    for row in format_rows():
        if name in row.names:
            return row.load()
    names = ", ".join(name for row in format_rows() for name in row.names)
    raise UsageError(f"there is no suite format {name!r}", hint=f"Suite formats: {names}.")


def definition_names() -> tuple[str, ...]:
    """Names of the files that define suites, for all formats."""
    return tuple(row.definition for row in format_rows())


def format_of_folder(root: Path) -> SuiteFormat | None:
    """The format of the suite in a folder; None if it is not a suite.

    Raises:
        SuiteError: it is a suite of several formats at once.
    """
    possible = [
        row.load() for row in format_rows() if not isinstance(row.home, str) or row.may_be_in(root)
    ]
    formats = [suite_format for suite_format in possible if suite_format.recognises(root)]
    if len(formats) > 1:
        names = " and ".join(suite_format.definition for suite_format in formats)
        raise SuiteError(
            f"{root} is a suite of several formats: it holds {names}",
            faults=tuple(
                f"{suite_format.definition}: {suite_format.names[0]}" for suite_format in formats
            ),
            hint=f"Give the definition of one of them: {root / formats[0].definition}",
        )
    return formats[0] if formats else None


def is_output_name(file_name: str) -> bool:
    """Whether a file has the name of a finished output in any format."""
    return any(suite_format.output_of(file_name) is not None for suite_format in suite_formats())
