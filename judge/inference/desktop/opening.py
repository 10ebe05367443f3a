"""What a desktop is opened for: the files of a case, and the one that is brought back."""

from __future__ import annotations

from pathlib import PurePosixPath

from judge.core.submission import AnswerForm
from judge.core.task import CaseInput, FileKind, TaskQuestion
from judge.desktop.contract import HOME, DesktopTask
from judge.errors import SuiteError
from judge.files.documents import MIB, read_regular
from judge.suites.desktop import ASKED_FILE

MAX_FILE_BYTES = 64 * MIB
"""The longest file that is put on a desktop."""


def desktop_task(question: TaskQuestion, case: CaseInput) -> DesktopTask:
    """What a desktop is opened for: all files of a case in the home folder, the workbook opened.

    What is brought back is that workbook, or the file that the task asks for in its place.

    Args:
        question: the task.
        case: one of its cases.

    Raises:
        SuiteError: no desktop can be opened for it, or a file cannot be read.
    """
    if (problem := why_not(case)) is not None:
        raise SuiteError(f"task {question.id}, case {case.number}: {problem}")
    files: dict[str, bytes] = {}
    for file in case.files:
        data = read_regular(file.path, SuiteError, most_bytes=MAX_FILE_BYTES)
        if data is None:
            raise SuiteError(f"{file.path}: the file is missing")
        files[f"{HOME}/{file.path.name}"] = data
    opened = f"{HOME}/{_workbook(case)}"
    asked = question.details.get(ASKED_FILE)
    return DesktopTask(files, opened, f"{HOME}/{PurePosixPath(asked).name}" if asked else opened)


def why_not(case: CaseInput) -> str | None:
    """Why no desktop can be opened for a case; None if one can."""
    if case.absent:
        return f"the files are not there: {', '.join(each.name for each in case.absent)}"
    if _workbook(case) is None:
        return "it has no workbook that could be opened"
    if len({file.path.name for file in case.files}) < len(case.files):
        return "two of its files have one name"
    return None


def why_not_asked(question: TaskQuestion) -> str | None:
    """Why a task cannot be asked on a desktop; None if it can."""
    if question.answer is AnswerForm.TEXT and not question.signals:
        return "its answer is typed, which nobody can do on a desktop"
    problems = (why_not(case) for case in question.inputs)
    return next((problem for problem in problems if problem is not None), None)


def _workbook(case: CaseInput) -> str | None:
    """The name of the file that is opened: the first workbook, or table."""
    for kind in (FileKind.WORKBOOK, FileKind.TABLE):
        for file in case.files:
            if file.kind is kind:
                return file.path.name
    return None
