"""Path patterns, such as ``{task}/{case}/*.xlsx``, that say which file answers which case."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from judge.core.submission import Submission
from judge.core.task import Task
from judge.errors import JudgeError, SubmissionError, UsageError
from judge.suites.folders import regular_files
from judge.suites.layouts import FoundOutputs, LayoutKind, raise_unknown
from judge.suites.submissions import submission_of_program
from judge.suites.suite import Suite

_FIELD = re.compile(r"\{([^{}]*)\}")
_FIELDS = ("task", "case", "sample")
_EXAMPLE = "such as '{task}/{case}/*.xlsx'; fields are {task}, {case} and {sample}"
_NUMBER = r"\d{1,9}"
_MAX_LENGTH = 1_000


@dataclass(frozen=True, slots=True)
class PathFields:
    """The values of the fields in a file's path; None for fields that the pattern does not have."""

    task: str | None
    case: int | None
    sample: int | None


class FilePattern:
    """Matches paths relative to a folder.

    ``*``, ``?`` and ``[…]`` match characters of one name, as in a shell; a name that is just ``**``
    matches any number of folders. ``{case}`` and ``{sample}`` are numbers.

    Args:
        text: the pattern.
        tasks: ids of the tasks that the field ``{task}`` may name.

    Raises:
        UsageError: the pattern is absolute, leaves the folder, or has unknown fields.
    """

    def __init__(self, text: str, tasks: Collection[str] = ()) -> None:
        self.text = text
        self.fields = frozenset(_FIELD.findall(text))
        unknown = self.fields - set(_FIELDS)
        if unknown:
            raise UsageError(
                f"the pattern {text!r} has the unknown field {{{min(unknown)}}}",
                hint=_EXAMPLE,
            )
        names = text.split("/")
        if not text or text.startswith("/") or ".." in names or "" in names:
            raise UsageError(
                f"{text!r} is not a pattern of paths in a folder", hint=f"Give one {_EXAMPLE}."
            )
        if len(text) > _MAX_LENGTH:
            raise UsageError(f"a pattern has at most {_MAX_LENGTH} characters")
        longest_first = sorted(tasks, key=lambda task: (-len(task), task))
        task_ids = "|".join(re.escape(task) for task in longest_first)
        try:
            self._known = re.compile(_expression(names, task_ids or r"[^/]+?"))
            self._any = re.compile(_expression(names, r"[^/]+?"))
        except re.error as error:
            raise UsageError(f"the pattern {text!r} cannot be read: {error}") from error

    def match(self, path: str) -> PathFields | None:
        """The fields in a path with slashes; None if the path does not match.

        If no known task matches, the fields may name a task that the suite does not have.
        """
        match = self._known.fullmatch(path) or self._any.fullmatch(path)
        if match is None:
            return None
        fields = match.groupdict()
        case, sample = fields.get("case"), fields.get("sample")
        return PathFields(
            task=fields.get("task"),
            case=None if case is None else int(case),
            sample=None if sample is None else int(sample),
        )

    def case_of(self, fields: PathFields, task: Task, error: type[JudgeError]) -> int:
        """The number of the case that a file answers; if the path has none, the task's only case.

        Args:
            fields: the fields of the path.
            task: the task that the file answers.
            error: class of the error to raise.

        Raises:
            JudgeError: the task has several cases, and the pattern does not say which.
        """
        if fields.case is not None:
            return fields.case
        if len(task.cases) > 1:
            raise error(
                f"the pattern {self.text!r} does not say which case a file answers, and task "
                f"{task.id} has {len(task.cases)} cases",
                hint="Put the field {case} into the pattern.",
            )
        return task.cases[0].number


def folder_and_pattern(given: str) -> tuple[Path, str]:
    """Splits a path at the first name with a field or wildcard: a folder, and a pattern below it.

    Args:
        given: the path; its last name is always part of the pattern.
    """
    names = Path(given).parts
    plain = [not set(name) & set("{}*?[]") for name in names[:-1]]
    count = plain.index(False) if False in plain else len(plain)
    return Path(*names[:count]), "/".join(names[count:])


def _expression(names: list[str], task: str) -> str:
    parts: list[str] = []
    seen: set[str] = set()
    for index, name in enumerate(names):
        last = index == len(names) - 1
        if name == "**":
            parts.append("(?:[^/]+/)*[^/]+" if last else "(?:[^/]+/)*")
            continue
        parts.append(_name(name, task, seen) + ("" if last else "/"))
    return "".join(parts)


def _name(name: str, task: str, seen: set[str]) -> str:
    """The regular expression for one file or folder name in a pattern."""
    parts: list[str] = []
    position = 0
    while position < len(name):
        field = _FIELD.match(name, position)
        if field is not None:
            parts.append(_field(field[1], task, seen))
            position = field.end()
            continue
        character = name[position]
        end = name.find("]", position + 2) if character == "[" else -1
        if end > 0:
            chosen = name[position + 1 : end]
            inverted = chosen.startswith("!")
            chosen = chosen.removeprefix("!").replace("\\", "\\\\").replace("[", "\\[")
            chosen = chosen.replace("^", "\\^")
            parts.append(f"(?!/)[{'^' if inverted else ''}{chosen}]")
            position = end + 1
            continue
        parts.append({"*": "[^/]*", "?": "[^/]"}.get(character, re.escape(character)))
        position += 1
    return "".join(parts)


def _field(field: str, task: str, seen: set[str]) -> str:
    if field in seen:
        return f"(?P={field})"
    seen.add(field)
    return f"(?P<{field}>{task if field == 'task' else _NUMBER})"


# -- files that match -----------------------------------------------------------------------------


class ByPattern(LayoutKind):
    """The layout whose outputs or programs are found by a path pattern."""

    def fits(self, folder: Path, pattern: str | None) -> bool:
        """Whether a pattern was given."""
        del folder
        return pattern is not None and bool(FilePattern(pattern).text)

    def outputs(self, folder: Path, suite: Suite, pattern: str | None) -> FoundOutputs:
        """The workbooks that match the pattern."""
        assert pattern is not None
        file_pattern = FilePattern(pattern, [task.id for task in suite.tasks])
        outputs: dict[tuple[str, int, int], Path] = {}
        unknown: list[str] = []
        for path, fields, task in _matching_files(folder, suite, file_pattern):
            case = file_pattern.case_of(fields, task, UsageError)
            key = task.id, fields.sample or 0, case
            if case not in {own_case.number for own_case in task.cases}:
                unknown.append(f"{path.relative_to(folder)} (no case {case} of task {task.id})")
            elif key in outputs:
                raise _ambiguous(folder, f"case {case} of task {task.id}", outputs[key], path)
            else:
                outputs[key] = path
        raise_unknown(folder, suite, unknown)
        return FoundOutputs(suite, (), outputs)

    def trajectories(
        self, folder: Path, suite: Suite, pattern: str
    ) -> dict[tuple[str, int, int], Path]:
        """The matching files; a file whose path has no case belongs to its task's first case."""
        file_pattern = FilePattern(pattern, [task.id for task in suite.tasks])
        files: dict[tuple[str, int, int], Path] = {}
        for path, fields, task in _matching_files(folder, suite, file_pattern):
            case = task.cases[0].number if fields.case is None else fields.case
            key = task.id, fields.sample or 0, case
            if key in files:
                raise _ambiguous(folder, f"case {case} of task {task.id}", files[key], path)
            files[key] = path
        return files

    def programs(self, folder: Path, suite: Suite, pattern: str) -> Iterator[Submission]:
        """The programs that match the pattern, as submissions."""
        file_pattern = FilePattern(pattern, [task.id for task in suite.tasks])
        programs: dict[tuple[str, int], Path] = {}
        for path, fields, task in _matching_files(folder, suite, file_pattern):
            key = task.id, fields.sample or 0
            if key in programs:
                raise _ambiguous(folder, f"task {task.id}", programs[key], path)
            programs[key] = path
        if not programs:
            raise SubmissionError(f"{folder} holds no program that matches {pattern!r}")
        for (task_id, sample), path in programs.items():
            task = suite.task(task_id)
            yield submission_of_program(path, task, suite.suite_format, sample=sample)


BY_PATTERN = ByPattern()


def _matching_files(
    folder: Path, suite: Suite, pattern: FilePattern
) -> Iterator[tuple[Path, PathFields, Task]]:
    """The matching files, with the fields of their paths and their tasks."""
    only = suite.tasks[0].id if len(suite.tasks) == 1 else None
    if "task" not in pattern.fields and only is None:
        raise UsageError(
            f"the pattern {pattern.text!r} does not say which task a file answers",
            hint="Put the field {task} into the pattern.",
        )
    unknown: list[str] = []
    for path in regular_files(folder):
        shown = path.relative_to(folder)
        fields = pattern.match(shown.as_posix())
        if fields is None or path.name.startswith((".", "~$")):
            continue
        name = fields.task if fields.task is not None else only
        assert name is not None
        task_id = suite.task_id_in(name, ())
        if task_id in suite:
            yield path, fields, suite.task(task_id)
        else:
            unknown.append(f"{shown} (no task {name})")
    raise_unknown(folder, suite, unknown)


def _ambiguous(folder: Path, name: str, first: Path, second: Path) -> SubmissionError:
    return SubmissionError(
        f"{folder}: {name} has two files that match: {first.relative_to(folder)} and "
        f"{second.relative_to(folder)}",
        hint="Give a pattern that only one of them matches, or put the field {sample} into it.",
    )
