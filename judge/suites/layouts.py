"""Where the outputs of a run are: found by their names, by a pattern, or as Harbor leaves them.

The layout of a run is on record in its run.json: every later reading finds the same outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from judge.core.records.runs import LayoutRecord
from judge.core.submission import Submission
from judge.core.task import Task
from judge.errors import SubmissionError, UsageError
from judge.suites.file_pattern import FilePattern, PlaceOfFile
from judge.suites.folders import regular_files
from judge.suites.harbor import HarborJob, is_job
from judge.suites.outputs import FoundOutputs, find_outputs, raise_unknown
from judge.suites.submissions import submission_of_program
from judge.suites.suite import Suite

NAMES, PATTERN, HARBOR = "names", "pattern", "harbor"


@dataclass(frozen=True, slots=True)
class Layout:
    """How the files of a folder are laid out.

    Attributes:
        kind: ``names``, ``pattern`` or ``harbor``.
        pattern: where the files are, relative to the folder, or to that of each trial of a job; of
            a job, None stands for workbooks with the names of outputs among the artifacts.
        programs: whether they are programs, which are run, and no workbooks.
    """

    kind: str = NAMES
    pattern: str | None = None
    programs: bool = False

    def record(self) -> LayoutRecord:
        """As run.json has it."""
        found: LayoutRecord = {"kind": self.kind}
        if self.pattern is not None:
            found["pattern"] = self.pattern
        if self.programs:
            found["programs"] = True
        return found

    @classmethod
    def of_record(cls, record: LayoutRecord | None) -> Layout:
        """The layout of a run; runs of earlier versions found their outputs by their names.

        Raises:
            SubmissionError: there is no such layout.
        """
        if record is None:
            return cls()
        kind, pattern = record["kind"], record.get("pattern")
        if kind not in (NAMES, PATTERN, HARBOR) or (kind == PATTERN and pattern is None):
            raise SubmissionError(f"run.json: there is no layout {kind!r}")
        return cls(kind, pattern, programs=record.get("programs", False))


def layout_of(folder: Path, outputs: str | None, programs: str | None) -> Layout:
    """The layout of a folder that is to be scored.

    Args:
        folder: the folder.
        outputs: the pattern of its workbooks, if one was given.
        programs: that of its programs, if those are to be run.

    Raises:
        UsageError: both were given, or one that cannot be read.
    """
    if outputs is not None and programs is not None:
        raise UsageError(
            "--outputs names workbooks and --programs names programs that make them",
            hint="Give one of the two.",
        )
    pattern = outputs or programs
    if pattern is not None:
        fields = FilePattern(pattern).fields
        by_trial = "task" not in fields and is_job(folder)
        return Layout(HARBOR if by_trial else PATTERN, pattern, programs=programs is not None)
    return Layout(HARBOR if is_job(folder) else NAMES)


def outputs_in(folder: Path, suite: Suite, record: LayoutRecord | None) -> FoundOutputs:
    """Finds the outputs of a run.

    Args:
        folder: where to look.
        suite: whose tasks they answer.
        record: the layout, as run.json has it.

    Raises:
        SubmissionError: they cannot be found, or it is not certain which ones they are.
    """
    layout = Layout.of_record(record)
    if layout.kind == HARBOR:
        return HarborJob(folder, suite, layout.pattern).outputs()
    if layout.kind == PATTERN:
        assert layout.pattern is not None
        return _by_pattern(folder, suite, layout.pattern)
    return find_outputs(folder, suite)


def attempts_in(folder: Path, suite: Suite, record: LayoutRecord | None) -> list[dict[str, object]]:
    """What is known of each attempt, in the form of records of ``submissions.jsonl``.

    Raises:
        SubmissionError: there is no such layout, or the job cannot be read or is of other tasks.
    """
    layout = Layout.of_record(record)
    if layout.kind != HARBOR:
        return []
    return HarborJob(folder, suite, layout.pattern).records()


def programs_in(folder: Path, suite: Suite, record: LayoutRecord | None) -> Iterator[Submission]:
    """The programs that a folder holds, as submissions.

    Raises:
        SubmissionError: there is none, or it is not certain which ones they are.
    """
    layout = Layout.of_record(record)
    assert layout.pattern is not None
    if layout.kind == HARBOR:
        yield from HarborJob(folder, suite, layout.pattern).programs()
        return
    pattern = FilePattern(layout.pattern, [task.id for task in suite.tasks])
    found: dict[tuple[str, int], Path] = {}
    for path, place, task in _placed(folder, suite, pattern):
        key = task.id, place.sample or 0
        if key in found:
            raise _ambiguous(folder, f"task {task.id}", found[key], path)
        found[key] = path
    if not found:
        raise SubmissionError(f"{folder} holds no program that matches {layout.pattern!r}")
    for (task_id, sample), path in found.items():
        yield submission_of_program(path, suite.task(task_id), suite.conventions, sample=sample)


def _by_pattern(folder: Path, suite: Suite, text: str) -> FoundOutputs:
    pattern = FilePattern(text, [task.id for task in suite.tasks])
    found: dict[tuple[str, int, int], Path] = {}
    unknown: list[str] = []
    for path, place, task in _placed(folder, suite, pattern):
        case = pattern.case_of(place, task, UsageError)
        key = task.id, place.sample or 0, case
        if case not in {each.number for each in task.cases}:
            unknown.append(f"{path.relative_to(folder)} (no case {case} of task {task.id})")
        elif key in found:
            raise _ambiguous(folder, f"case {case} of task {task.id}", found[key], path)
        else:
            found[key] = path
    raise_unknown(folder, suite, unknown)
    return FoundOutputs(suite, (), found)


def _placed(
    folder: Path, suite: Suite, pattern: FilePattern
) -> Iterator[tuple[Path, PlaceOfFile, Task]]:
    """The files that match, each with what its path says and with its task."""
    only = suite.tasks[0].id if len(suite.tasks) == 1 else None
    if "task" not in pattern.fields and only is None:
        raise UsageError(
            f"the pattern {pattern.text!r} does not say which task a file answers",
            hint="Give the place of {task} in it.",
        )
    unknown: list[str] = []
    for path in regular_files(folder):
        shown = path.relative_to(folder)
        place = pattern.match(shown.as_posix())
        if place is None or path.name.startswith((".", "~$")):
            continue
        named = place.task if place.task is not None else only
        assert named is not None
        task_id = suite.task_id_in(named, ())
        if task_id in suite:
            yield path, place, suite.task(task_id)
        else:
            unknown.append(f"{shown} (no task {named})")
    raise_unknown(folder, suite, unknown)


def _ambiguous(folder: Path, what: str, first: Path, second: Path) -> SubmissionError:
    return SubmissionError(
        f"{folder}: {what} has two files that match: {first.relative_to(folder)} and "
        f"{second.relative_to(folder)}",
        hint="Give a pattern that only one of them matches, or the place of {sample} in it.",
    )
