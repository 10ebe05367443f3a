"""Shared by the formats of checklist suites: reads the tasks' folders, files and answers."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from judge.compare.checklists.items import NAME
from judge.compare.registry import check_options
from judge.core.submission import AnswerForm
from judge.core.task import (
    KIND_OF_SUFFIX,
    CheckerSpec,
    FileKind,
    Gold,
    InputFile,
    Task,
    TaskQuestion,
    TestCase,
)
from judge.errors import SubmissionError, SuiteError, UsageError
from judge.suites.fields import FieldError
from judge.suites.folders import Boundary, is_folder, is_regular, regular_files
from judge.suites.formats import DATA_FOLDER, Contents, SolutionPaths, SuiteFormat

_MAX_TASKS = 10_000
_MAX_DEPTH = 3
_OUTPUT = re.compile(r"(?P<id>[\w.-]{1,120}?)_output(?:_1)?\.(?:xlsx|pptx)")


REQUESTED_FILE = "file"
"""Name of the task detail that names the requested file."""


class ChecklistFormat(SuiteFormat):
    """A format whose tasks are lists of checks with points.

    Attributes:
        folders: paths below the suite's folder that may hold the tasks.
        work_folder: the folder in which programs change files; its files are their answer.
        output_folder: the folder into which programs write their answer instead; if both are
            empty, the answer is one file.
    """

    file_suffixes: tuple[str, ...] = (".xlsx",)
    output_pattern = "{id}.xlsx, or a folder {id} with the files of an answer"
    folders: tuple[str, ...] = ("tasks",)
    work_folder: str = ""
    output_folder: str = ""
    has_folder_answers = True

    def tasks_folder(self, root: Path) -> Path | None:
        """The folder that holds the tasks of a suite; None if the suite has no such folder."""
        for folder in self.folders:
            if any(self.definitions_in(root / folder)):
                return root / folder
        return None

    @abstractmethod
    def definitions_in(self, folder: Path) -> Iterator[Path]:
        """The files that define the tasks of a folder, in order."""

    @abstractmethod
    def tasks_of(self, definition: Path, boundary: Boundary) -> Iterator[Task]:
        """The tasks that a file defines.

        Raises:
            FieldError: the file does not have the suite's format.
            SuiteError: a file of the task cannot be read.
        """

    def notes_of(self, tasks: Sequence[Task]) -> tuple[str, ...]:  # noqa: ARG002
        """Notes on the tasks for people, one line each."""
        return ()

    def recognises(self, root: Path) -> bool:
        """Whether a folder holds tasks of the suite."""
        try:
            return self.tasks_folder(root) is not None
        except OSError:
            return False

    def load(self, root: Path) -> Contents:
        """Reads a suite; a task that cannot be read is a fault."""
        folder = self.tasks_folder(root)
        if folder is None:
            raise SuiteError(f"{root} holds no tasks of {self.names[0]}")
        boundary = Boundary(root)
        tasks: list[Task] = []
        faults: list[str] = []
        definitions = list(self.definitions_in(folder))[:_MAX_TASKS]
        for path in definitions:
            name = path.relative_to(root).as_posix()
            if not boundary.has_file(boundary.root / name):
                faults.append(f"{name}: leads out of the suite's folder")
                continue
            try:
                tasks.extend(self.tasks_of(boundary.root / name, boundary))
            except FieldError as error:
                faults.append(f"{name}: {error}")
        return Contents(
            self.names[0],
            tuple(tasks),
            self.notes_of(tasks),
            tuple(faults),
            definitions=tuple(definitions),
        )

    def folder_answers(self, folder: Path, tasks: Mapping[str, str]) -> Mapping[str, Path]:
        """Finds folders and files with the name of a task; folders up to three levels down."""
        answers = {
            tasks[path.stem]: path
            for path in _entries_of(folder)
            if path.stem in tasks and path.suffix in self.file_suffixes and is_regular(path)
        }
        waiting = [folder]
        while waiting:
            parent = waiting.pop()
            for path in _folders_in(parent):
                parts = path.relative_to(folder).parts
                task_id = next(
                    (tasks[name] for name in (parts[-1], "/".join(parts[-2:])) if name in tasks),
                    None,
                )
                if task_id is None:
                    if len(parts) < _MAX_DEPTH:
                        waiting.append(path)
                elif task_id in answers:
                    raise SubmissionError(
                        f"{folder}: task {task_id} has two answers: {answers[task_id]} and {path}",
                        hint="Name the folder of one run.",
                    )
                else:
                    answers[task_id] = path
        return answers

    def output_of(self, file_name: str) -> tuple[str, int] | None:
        """Reads ``{id}_output.xlsx`` or ``{id}_output_1.xlsx``."""
        match = _OUTPUT.fullmatch(file_name)
        return None if match is None else (match["id"], 1)

    def default_paths(self, question: TaskQuestion, folder: str = DATA_FOLDER) -> SolutionPaths:
        """Paths of the first input, under its own name, and of the output file or folder."""
        files = question.inputs[0].files if question.inputs else ()
        name = PurePosixPath(files[0].name if files else "input.xlsx")
        if self.work_folder:
            work = f"{folder}/{self.work_folder}/"
            return SolutionPaths(f"{work}{name}", work)
        if self.output_folder:
            return SolutionPaths(f"{folder}/{name}", f"{folder}/{self.output_folder}/")
        requested_file = PurePosixPath(question.details.get(REQUESTED_FILE, name.name))
        stem = requested_file.stem.removesuffix("_output_1")
        return SolutionPaths(f"{folder}/{name}", f"{folder}/{stem}_output{requested_file.suffix}")


def _folders_in(folder: Path) -> list[Path]:
    return [path for path in _entries_of(folder) if is_folder(path)]


def _entries_of(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise SubmissionError(f"{folder} cannot be listed: {error.strerror}") from error


RUBRIC = "rubric"
"""Name of the task detail with the rubric's hash, which identifies it in published scores."""

ANSWER_CONTENTS = "leaves"
"""Name of the task detail that describes the files in the folder of an answer."""


def checklist(options: Mapping[str, object]) -> CheckerSpec:
    """The checker of a task.

    Raises:
        FieldError: the items are not valid.
    """
    spec = CheckerSpec(NAME, options)
    try:
        check_options(CheckerSpec(NAME, spec.own_options))
    except UsageError as error:
        raise FieldError(error.message) from error
    return spec


def checklist_task(
    task_id: str,
    instruction: str,
    spec: CheckerSpec,
    *,
    inputs: Sequence[InputFile] = (),
    golds: Sequence[Gold] = (),
    kind: str = "",
    groups: Mapping[str, str] | None = None,
    requested_file: str = "",
    details: Mapping[str, str] | None = None,
    aliases: tuple[str, ...] = (),
) -> Task:
    """A task with one case, whose answer is a folder of files or a single file."""
    return Task(
        id=task_id,
        instruction=instruction,
        kind=kind,
        cases=(TestCase(1, tuple(inputs), tuple(golds)),),
        checker=spec,
        answer=AnswerForm.FILES,
        groups=groups or {},
        context={**({REQUESTED_FILE: requested_file} if requested_file else {}), **(details or {})},
        raw_id=task_id,
        aliases=aliases,
    )


def input_files(folder: Path, boundary: Boundary) -> list[InputFile]:
    """All files below a folder, with their relative paths; empty if there is no such folder."""
    return [
        InputFile(path, file_kind(path), below=path.relative_to(folder).as_posix())
        for path in (regular_files(folder) if folder.is_dir() else ())
        if boundary.has_file(path)
    ]


def file_kind(path: Path) -> FileKind:
    """The kind of an input file, by its suffix; text if the suffix is unknown."""
    return KIND_OF_SUFFIX.get(path.suffix.lower(), FileKind.TEXT)


def workbook_first(files: Sequence[InputFile]) -> list[InputFile]:
    """Sorts workbooks to the front, because programs are given the path of the first file."""
    return sorted(files, key=lambda file: file.kind is not FileKind.WORKBOOK)
