"""The contract of a suite format, and the formats that exist.

A format is one module with a ``FORMAT``, and one line in ``_HOMES``. It says which folders are
suites of its kind, reads them, and knows how their files are named.
"""

from __future__ import annotations

import enum
import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol, runtime_checkable

from judge.core.score_table import ScoreTable
from judge.core.task import Task, TaskQuestion
from judge.errors import SuiteError, UsageError

if TYPE_CHECKING:
    from judge.core.records.reports import PublishedFigures
    from judge.suites.suite import Suite

DATA_FOLDER = "/mnt/data"
"""Where a program finds its input and leaves its output inside the sandbox, by default."""

_HOMES = (
    "judge.suites.spreadsheetbench.format",
    "judge.suites.sheetjudge.format",
    "judge.suites.babelbench.format",
    "judge.suites.spreadsheetbench2.format",
    "judge.suites.dabench.format",
    "judge.suites.desktop.spider2v",
    "judge.suites.desktop.osworld",
    "judge.suites.sheetcopilot.format",
)
"""The modules whose ``FORMAT`` it is."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What was read of a suite's folder.

    Attributes:
        format: which of the format's names the suite goes by.
        tasks: the tasks, in the order of the suite.
        notes: liberties taken (a misnamed workbook, an unknown field), one line each, with the
            file.
        faults: everything that is wrong, one line each, with the file. A suite with faults is not
            used.
        tables: the tables of scores that reports on the suite show, as its paper prints them.
        definitions: the files that define the tasks, if that is not only the one that
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
    """What a file is to a program."""

    INPUT = "input"
    OUTPUT = "output"


class SuiteFormat(Protocol):
    """How suites of one kind are written, and how their files are named."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names that its suites go by in run.json, in corrections and in messages.

        More than one where published suites of the format differ.
        """
        ...

    @property
    def definition(self) -> str:
        """Name of the file in a suite's folder that defines its tasks.

        If there are several, a pattern for messages; :attr:`Contents.definitions` names them.
        """
        ...

    @property
    def file_suffixes(self) -> tuple[str, ...]:
        """How names of inputs and outputs end, such as ``.xlsx``; in lower case."""
        ...

    @property
    def output_pattern(self) -> str:
        """How finished outputs are named, for messages."""
        ...

    def recognises(self, root: Path) -> bool:
        """Whether a folder is a suite of this format. Cheap, because whole caches are searched."""
        ...

    def load(self, root: Path) -> Contents:
        """Reads a suite.

        Args:
            root: a folder that it recognises.

        Returns:
            The tasks, and everything that is wrong with them.

        Raises:
            SuiteError: the definition itself cannot be read.
        """
        ...

    def alias_of(self, record: Mapping[str, object]) -> str | None:
        """What a record of answers names its task by if it has no id; None if it does not."""
        ...

    def output_of(self, file_name: str) -> tuple[str, int] | tuple[str, int, int] | None:
        """Task id and case number of which a file is an output by its name; None for others.

        Where names tell several outputs of a case apart, the number of the sample, from 0, follows.
        """
        ...

    def role_of(self, file_name: str, task_id: str) -> FileRole | None:
        """What a file is to a program of the task, by its name; None for files of others.

        Prompts and programs of other people name their files; this says which to look for.
        """
        ...

    def default_paths(self, question: TaskQuestion, folder: str = DATA_FOLDER) -> SolutionPaths:
        """The paths of a program about which nothing else is known; the same for every case.

        Args:
            question: the task.
            folder: an absolute path inside the sandbox.
        """
        ...

    def new_case_names(self, task_id: str, number: int) -> tuple[str, str] | None:
        """File names of the input and the gold workbook of a case that is added to a task.

        They make a case wherever they are put into the folder of the task's other cases. None
        where cases are listed in the definition instead.
        """
        ...

    def definition_of(self, root: Path, tasks: Sequence[Task]) -> str:
        """The text of a definition that gives tasks of a suite as they are now.

        Args:
            root: the folder of the suite.
            tasks: its tasks, of which checkers may have changed; their files are in the folder.

        Raises:
            SuiteError: the suite's own definition cannot be read.
            UsageError: suites of this format cannot be written.
        """
        ...


def refuse_writing(root: Path, name: str) -> NoReturn:
    """What :meth:`SuiteFormat.definition_of` does in formats that are only read.

    Raises:
        UsageError: always.
    """
    raise UsageError(
        f"{root}: suites of the format {name} are read, and cannot be written",
        hint="Score with --corrections-from FILE instead.",
    )


@runtime_checkable
class LoggedFormat(Protocol):
    """A format whose folders of results hold logs, which give published figures."""

    def published_figures(
        self, suite: Suite, folder: Path, accepted: Mapping[tuple[str, int], bool]
    ) -> list[PublishedFigures]:
        """The figures of each repeat; none where the folder has no logs.

        Args:
            suite: the suite that was answered.
            folder: the folder of finished outputs.
            accepted: task and sample -> whether its output was accepted.

        Raises:
            SubmissionError: the folder cannot be listed.
            SuiteError: the suite cannot be read.
        """
        ...


_REGISTERED: dict[str, SuiteFormat] = {}


def register(suite_format: SuiteFormat) -> None:
    """Adds a custom format.

    Raises:
        UsageError: another format has one of its names, or the same definition file.
    """
    for known in suite_formats():
        if known is suite_format:
            continue
        taken = set(known.names) & set(suite_format.names)
        if taken:
            raise UsageError(f"there is a suite format {min(taken)!r} already")
        if known.definition == suite_format.definition:
            raise UsageError(
                f"suites of the format {known.names[0]!r} are defined by a "
                f"{known.definition} already"
            )
    for name in suite_format.names:
        _REGISTERED[name] = suite_format


def unregister(name: str) -> None:
    """Removes a registered format, with all its names."""
    found = _REGISTERED.get(name)
    for each in () if found is None else found.names:
        _REGISTERED.pop(each, None)


def suite_formats() -> Iterator[SuiteFormat]:
    """Every format once: those of the judge, then those that were registered."""
    for home in _HOMES:
        suite_format: SuiteFormat = importlib.import_module(home).FORMAT
        yield suite_format
    yield from {id(each): each for each in _REGISTERED.values()}.values()


def format_named(name: str) -> SuiteFormat:
    """The format that goes by a name.

    Raises:
        UsageError: there is no such format.
    """
    for each in suite_formats():
        if name in each.names:
            return each
    known = ", ".join(name for each in suite_formats() for name in each.names)
    raise UsageError(f"there is no suite format {name!r}", hint=f"Suite formats: {known}.")


def definition_names() -> tuple[str, ...]:
    """Names of the files that define suites, over all formats."""
    return tuple(each.definition for each in suite_formats())


def format_of_folder(root: Path) -> SuiteFormat | None:
    """The format of the suite in a folder; None if it is not a suite.

    Raises:
        SuiteError: it is a suite of several formats at once.
    """
    found = [each for each in suite_formats() if each.recognises(root)]
    if len(found) > 1:
        names = " and ".join(each.definition for each in found)
        raise SuiteError(
            f"{root} is a suite of several formats: it holds {names}",
            faults=tuple(f"{each.definition}: {each.names[0]}" for each in found),
            hint=f"Give the file that is meant: {root / found[0].definition}",
        )
    return found[0] if found else None


def is_output_name(file_name: str) -> bool:
    """Whether a file is a finished output of some format, by its name."""
    return any(each.output_of(file_name) is not None for each in suite_formats())
