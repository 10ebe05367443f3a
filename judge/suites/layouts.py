"""Layouts: how the outputs of a run are found, by their names, by a pattern, or in a Harbor job.

The layout of a run is recorded in its run.json, so that every later command finds the same outputs.
A layout is one module with a :class:`LayoutKind`, and one row of :data:`LAYOUTS`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from types import MappingProxyType

from judge.core.records.runs import LayoutRecord
from judge.core.submission import Submission
from judge.errors import SubmissionError, UsageError
from judge.suites.suite import Suite

NAMES, PATTERN, HARBOR = "names", "pattern", "harbor"

LAYOUTS = {
    HARBOR: "judge.suites.harbor:JOBS",
    PATTERN: "judge.suites.file_pattern:BY_PATTERN",
    NAMES: "judge.suites.layouts:BY_NAMES",
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
            SubmissionError: an attempt cannot be read, or is about tasks that the suite lacks.
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


_MAX_DEPTH = 2
_MAX_SHOWN = 20


class FoundOutputs(Mapping[tuple[str, int], Path]):
    """Output files by (task id, case number), in suite order.

    If an output has several samples, the mapping holds the first; :meth:`of_sample` returns any.

    Args:
        suite: gives the order.
        unrecognized: see below.
        samples: output files by (task id, sample, case number).
        attempts: other pairs (task id, sample) that were attempted, with or without an output.

    Attributes:
        unrecognized: paths, relative to the folder, of files with the suffix of an output but
            without an output's name.
    """

    def __init__(
        self,
        suite: Suite,
        unrecognized: tuple[str, ...],
        samples: Mapping[tuple[str, int, int], Path],
        attempts: Iterable[tuple[str, int]] = (),
    ) -> None:
        first: dict[tuple[str, int], Path] = {}
        for task_id, sample, case in sorted(samples):
            first.setdefault((task_id, case), samples[task_id, sample, case])
        keys = ((task.id, case.number) for task in suite.tasks for case in task.cases)
        self._paths = MappingProxyType({key: first[key] for key in keys if key in first})
        self._samples = MappingProxyType(dict(samples))
        self._numbers: dict[str, set[int]] = {}
        tried = ((task_id, sample) for task_id, sample, _ in samples)
        for task_id, sample in (*tried, *attempts):
            self._numbers.setdefault(task_id, set()).add(sample)
        self.unrecognized = unrecognized
        self._suite = suite

    @property
    def attempted(self) -> AbstractSet[str]:
        """Ids of the attempted tasks, whether they have an output or not."""
        return self._numbers.keys()

    def samples_of(self, task_id: str) -> list[int]:
        """Numbers of the samples of a task, in order."""
        return sorted(self._numbers.get(task_id, ()))

    def of_sample(self, task_id: str, sample: int, case: int) -> Path | None:
        """The output of a sample for a case; None if there is no output."""
        return self._samples.get((task_id, sample, case))

    def with_attempts(self, attempts: Iterable[tuple[str, int]]) -> FoundOutputs:
        """A copy that also lists these attempts, which left no output."""
        existing = [(task_id, n) for task_id, numbers in self._numbers.items() for n in numbers]
        return FoundOutputs(self._suite, self.unrecognized, self._samples, [*existing, *attempts])

    def __getitem__(self, key: tuple[str, int]) -> Path:
        return self._paths[key]

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def find_outputs(folder: Path, suite: Suite) -> FoundOutputs:
    """Finds outputs by their names, in a folder and at most two levels of folders below it.

    Args:
        folder: where to look.
        suite: the suite whose tasks they answer; its format says how outputs are named.

    Raises:
        SubmissionError: the folder is missing, holds no output, holds outputs of tasks or cases
            that the suite does not have (the first ones are named), or holds an output twice.
    """
    outputs: dict[tuple[str, int, int], Path] = {}
    unrecognized: list[str] = []
    unknown: list[str] = []
    suite_format = suite.suite_format
    cases = {task.id: {case.number for case in task.cases} for task in suite.tasks}
    names = {name: task.id for task in suite.tasks for name in (task.id, *task.aliases)}
    whole = suite_format.folder_answers(folder, names)
    outputs |= {(task_id, 0, 1): path for task_id, path in whole.items()}
    parts = set(whole.values())
    for path in _files(folder, suite_format.file_suffixes):
        if not parts.isdisjoint((path, *path.parents)) or _is_beside(path, whole):
            continue
        shown = str(path.relative_to(folder))
        named = suite_format.output_of(path.name)
        if named is None:
            unrecognized.append(shown)
            continue
        task_id = suite.task_id_in(named[0], path.absolute().parent.parts)
        case = named[1]
        key = task_id, (named[2] if len(named) == 3 else 0), case
        if case not in cases.get(task_id, ()):
            name = f"task {task_id}" if task_id not in cases else f"case {case} of task {task_id}"
            unknown.append(f"{shown} (no {name})")
        elif key in outputs:
            raise SubmissionError(
                f"{folder}: case {case} of task {task_id} has two outputs: "
                f"{outputs[key].relative_to(folder)} and {shown}",
                hint="name the folder of one run",
            )
        else:
            outputs[key] = path
    raise_unknown(folder, suite, unknown)
    if not outputs:
        raise SubmissionError(
            f"{folder} holds no output workbook",
            hint=f"outputs are named {suite_format.output_pattern}",
        )
    return FoundOutputs(suite, tuple(unrecognized), outputs)


def _is_beside(path: Path, whole: Mapping[str, Path]) -> bool:
    """Whether a file belongs to an answer of several files, and is not its first file."""
    return any(
        answer.suffix == ".json"
        and path.parent == answer.parent
        and path.name.startswith(f"{answer.stem}_output")
        for answer in whole.values()
    )


def raise_unknown(folder: Path, suite: Suite, unknown: Sequence[str]) -> None:
    """Raises an error if there are outputs of tasks or cases that the suite does not have.

    Args:
        folder: the folder of the outputs.
        suite: the suite.
        unknown: the unknown outputs, one line each.

    Raises:
        SubmissionError: there are such outputs; names the first ones.
    """
    if unknown:
        more = f", and {len(unknown) - _MAX_SHOWN} more" if len(unknown) > _MAX_SHOWN else ""
        raise SubmissionError(
            f"{folder} holds outputs that the suite {suite.name} does not know: "
            f"{', '.join(unknown[:_MAX_SHOWN])}{more}",
            hint="is it the right suite (--dataset)?",
        )


def _files(folder: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    """Yields the files in a folder and its subfolders that have one of the suffixes.

    Their order is fixed.
    """

    def refuse(error: OSError) -> None:
        raise SubmissionError(f"{error.filename} cannot be listed: {error.strerror}") from error

    for parent, folders, names in os.walk(folder, onerror=refuse):
        depth = len(Path(parent).relative_to(folder).parts)
        folders[:] = sorted(folders) if depth < _MAX_DEPTH else []
        for name in sorted(names):
            if name.lower().endswith(suffixes) and not name.startswith((".", "~$")):
                yield Path(parent) / name


class ByNames(LayoutKind):
    """The layout in which outputs have the names that the suite's format prescribes."""

    def fits(self, folder: Path, pattern: str | None) -> bool:
        """Whether no pattern was given."""
        del folder
        return pattern is None

    def outputs(self, folder: Path, suite: Suite, pattern: str | None) -> FoundOutputs:
        """Finds the outputs by their names."""
        del pattern
        return find_outputs(folder, suite)


BY_NAMES = ByNames()
