"""Finds finished outputs in a folder, to grade them without running anything."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from types import MappingProxyType

from judge.errors import SubmissionError
from judge.suites.layouts import LayoutKind
from judge.suites.suite import Suite

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
        """The output of a sample for a case; None if the sample left no output."""
        return self._samples.get((task_id, sample, case))

    def with_attempts(self, attempts: Iterable[tuple[str, int]]) -> FoundOutputs:
        """The same outputs, with additional attempts that left no output."""
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
    conventions = suite.conventions
    cases = {task.id: {case.number for case in task.cases} for task in suite.tasks}
    names = {name: task.id for task in suite.tasks for name in (task.id, *task.aliases)}
    whole = conventions.folder_answers(folder, names)
    outputs |= {(task_id, 0, 1): path for task_id, path in whole.items()}
    parts = set(whole.values())
    for path in _files(folder, conventions.file_suffixes):
        if not parts.isdisjoint((path, *path.parents)) or _is_beside(path, whole):
            continue
        shown = str(path.relative_to(folder))
        named = conventions.output_of(path.name)
        if named is None:
            unrecognized.append(shown)
            continue
        task_id = suite.task_id_in(named[0], path.absolute().parent.parts)
        case = named[1]
        key = task_id, (named[2] if len(named) == 3 else 0), case
        if case not in cases.get(task_id, ()):
            what = f"task {task_id}" if task_id not in cases else f"case {case} of task {task_id}"
            unknown.append(f"{shown} (no {what})")
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
            hint=f"outputs are named {conventions.output_pattern}",
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
