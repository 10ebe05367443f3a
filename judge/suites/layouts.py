"""Layouts: how the outputs of a run are found, by their names, by a pattern, or in a Harbor job.

The layout of a run is recorded in its run.json, so that every later command finds the same outputs.
A layout is one module with a :class:`LayoutKind`, and one row of :data:`LAYOUTS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from judge.core.records.runs import LayoutRecord
from judge.core.submission import Submission
from judge.errors import SubmissionError, UsageError
from judge.suites.suite import Suite

if TYPE_CHECKING:
    from judge.suites.outputs import FoundOutputs

NAMES, PATTERN, HARBOR = "names", "pattern", "harbor"

LAYOUTS = {
    HARBOR: "judge.suites.harbor:JOBS",
    PATTERN: "judge.suites.file_pattern:BY_PATTERN",
    NAMES: "judge.suites.outputs:BY_NAMES",
}
"""Name of a layout -> ``module:attribute``. The first layout that fits is used."""


class LayoutKind(ABC):
    """A way in which files can be laid out in the folder of a run."""

    @abstractmethod
    def fits(self, folder: Path, pattern: str | None) -> bool:
        """Whether a folder that is to be scored has this layout.

        Args:
            folder: the folder.
            pattern: the pattern that was given for its files, if one was.

        Raises:
            UsageError: the pattern cannot be read.
        """

    @abstractmethod
    def outputs(self, folder: Path, suite: Suite, pattern: str | None) -> FoundOutputs:
        """Finds the outputs of a run.

        Raises:
            SubmissionError: they cannot be found, or it is not certain which ones they are.
        """

    def programs(
        self,
        folder: Path,
        suite: Suite,  # noqa: ARG002
        pattern: str,  # noqa: ARG002
    ) -> Iterator[Submission]:
        """The programs that a folder holds, as submissions.

        Raises:
            SubmissionError: there is none, or it is not certain which ones they are.
        """
        raise SubmissionError(f"{folder}: programs are found by a pattern", hint="Give --programs.")

    def trajectories(
        self, folder: Path, suite: Suite, pattern: str
    ) -> dict[tuple[str, int, int], Path]:
        """Task, sample and case -> the file with the agent's trajectory.

        A file without a case number belongs to the first case of its task.

        Args:
            folder: the folder.
            suite: whose tasks are answered.
            pattern: the pattern of these files; in a job, relative to the folder of each trial.

        Raises:
            SubmissionError: it is not certain which ones they are.
        """
        from judge.suites.file_pattern import BY_PATTERN  # noqa: PLC0415  imports this module

        return BY_PATTERN.trajectories(folder, suite, pattern)

    def attempts(
        self,
        folder: Path,  # noqa: ARG002
        suite: Suite,  # noqa: ARG002
        pattern: str | None,  # noqa: ARG002
    ) -> list[dict[str, object]]:
        """The usage of each attempt, such as tokens, as records of ``submissions.jsonl``.

        Raises:
            SubmissionError: an attempt cannot be read, or is about tasks that the suite does not
                have.
        """
        return []


def _load(name: str) -> LayoutKind:
    kind: LayoutKind = resolve_name(LAYOUTS[name])
    return kind


def is_job(folder: Path) -> bool:
    """Whether a folder is a job of Harbor."""
    return _load(HARBOR).fits(folder, None)


@dataclass(frozen=True, slots=True)
class Layout:
    """How the files of a folder are laid out.

    Attributes:
        kind: ``names``, ``pattern`` or ``harbor``.
        pattern: where the files are, relative to the folder or, in a job, to the folder of each
            trial; in a job, None stands for the artifacts that are named like output workbooks.
        programs: whether the files are programs to run, and not workbooks.
    """

    kind: str = NAMES
    pattern: str | None = None
    programs: bool = False

    def record(self) -> LayoutRecord:
        """The layout as run.json records it."""
        record: LayoutRecord = {"kind": self.kind}
        if self.pattern is not None:
            record["pattern"] = self.pattern
        if self.programs:
            record["programs"] = True
        return record

    @classmethod
    def of_record(cls, record: LayoutRecord | None) -> Layout:
        """The layout of a run; if an earlier version recorded none, the layout by names.

        Raises:
            SubmissionError: there is no such layout.
        """
        if record is None:
            return cls()
        kind, pattern = record["kind"], record.get("pattern")
        if kind not in LAYOUTS or (kind == PATTERN and pattern is None):
            raise SubmissionError(f"run.json: there is no layout {kind!r}")
        return cls(kind, pattern, programs=record.get("programs", False))


def layout_of(folder: Path, outputs: str | None, programs: str | None) -> Layout:
    """The layout of a folder that is to be scored.

    Args:
        folder: the folder.
        outputs: the pattern of its workbooks, if one was given.
        programs: the pattern of its programs, if they are to be run.

    Raises:
        UsageError: both patterns were given, or the pattern cannot be read.
    """
    if outputs is not None and programs is not None:
        raise UsageError(
            "--outputs names workbooks and --programs names programs that make them",
            hint="Give one of the two.",
        )
    pattern = outputs or programs
    kind = next(name for name in LAYOUTS if _load(name).fits(folder, pattern))
    return Layout(kind, pattern, programs=programs is not None)


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
    return _load(layout.kind).outputs(folder, suite, layout.pattern)


def attempts_in(folder: Path, suite: Suite, record: LayoutRecord | None) -> list[dict[str, object]]:
    """The usage of each attempt, such as tokens, as records of ``submissions.jsonl``.

    Raises:
        SubmissionError: there is no such layout, or the job cannot be read or has tasks that the
            suite lacks.
    """
    layout = Layout.of_record(record)
    return _load(layout.kind).attempts(folder, suite, layout.pattern)


def trajectories_in(
    folder: Path, suite: Suite, record: LayoutRecord | None, pattern: str
) -> dict[tuple[str, int, int], Path]:
    """Task, sample and case -> the file with the agent's trajectory.

    Args:
        folder: where to look.
        suite: whose tasks are answered.
        record: the layout of the outputs, as run.json has it.
        pattern: the pattern of the files; in a job, relative to the folder of each trial.

    Raises:
        SubmissionError: there is no such layout, or it is not certain which files they are.
    """
    layout = Layout.of_record(record)
    return _load(layout.kind).trajectories(folder, suite, pattern)


def programs_in(folder: Path, suite: Suite, record: LayoutRecord | None) -> Iterator[Submission]:
    """The programs that a folder holds, as submissions.

    Raises:
        SubmissionError: there is none, or it is not certain which ones they are.
    """
    layout = Layout.of_record(record)
    assert layout.pattern is not None
    yield from _load(layout.kind).programs(folder, suite, layout.pattern)
