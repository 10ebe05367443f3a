"""Finds finished outputs in a folder, for grading without running anything."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from judge.errors import SubmissionError
from judge.suites.suite import Suite

_MAX_DEPTH = 2
_MAX_SHOWN = 20


class FoundOutputs(Mapping[tuple[str, int], Path]):
    """Output files by (task id, case number), in suite order.

    Of an output with several samples, the first one; :meth:`of_sample` gives the others.

    Attributes:
        strangers: files of the same kinds in the same place whose names are not those of outputs,
            relative to the folder.
    """

    def __init__(
        self,
        paths: Mapping[tuple[str, int], Path],
        strangers: tuple[str, ...],
        samples: Mapping[tuple[str, int, int], Path],
    ) -> None:
        self._paths = MappingProxyType(dict(paths))
        self._samples = MappingProxyType(dict(samples))
        self._numbers: dict[str, set[int]] = {}
        for task_id, sample, _ in samples:
            self._numbers.setdefault(task_id, set()).add(sample)
        self.strangers = strangers

    def samples_of(self, task_id: str) -> list[int]:
        """Numbers of the samples of a task that have an output, in order."""
        return sorted(self._numbers.get(task_id, ()))

    def of_sample(self, task_id: str, sample: int, case: int) -> Path | None:
        """The output of a sample; None without."""
        return self._samples.get((task_id, sample, case))

    def __getitem__(self, key: tuple[str, int]) -> Path:
        return self._paths[key]

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def find_outputs(folder: Path, suite: Suite) -> FoundOutputs:
    """Finds outputs by their names, in the folder itself or one or two folders down.

    Args:
        folder: where to look.
        suite: whose tasks they answer; its format says how outputs are named.

    Raises:
        SubmissionError: no folder, no output in it, an output of a task or a case that the suite
            does not have (all are named), or the same output twice.
    """
    found: dict[tuple[str, int, int], Path] = {}
    strangers: list[str] = []
    unknown: list[str] = []
    conventions = suite.conventions
    cases = {task.id: {case.number for case in task.cases} for task in suite.tasks}
    for path in _files(folder, conventions.file_suffixes):
        shown = str(path.relative_to(folder))
        named = conventions.output_of(path.name)
        if named is None:
            strangers.append(shown)
            continue
        task_id = suite.task_id_in(named[0], path.absolute().parent.parts)
        case = named[1]
        key = task_id, (named[2] if len(named) == 3 else 0), case
        if case not in cases.get(task_id, ()):
            what = f"task {task_id}" if task_id not in cases else f"case {case} of task {task_id}"
            unknown.append(f"{shown} (no {what})")
        elif key in found:
            raise SubmissionError(
                f"{folder}: case {case} of task {task_id} has two outputs: "
                f"{found[key].relative_to(folder)} and {shown}",
                hint="name the folder of one run",
            )
        else:
            found[key] = path
    if unknown:
        more = f", and {len(unknown) - _MAX_SHOWN} more" if len(unknown) > _MAX_SHOWN else ""
        raise SubmissionError(
            f"{folder} holds outputs that the suite {suite.name} does not know: "
            f"{', '.join(unknown[:_MAX_SHOWN])}{more}",
            hint="is it the right suite (--dataset)?",
        )
    if not found:
        raise SubmissionError(
            f"{folder} holds no output workbook",
            hint=f"outputs are named {conventions.output_pattern}",
        )
    first: dict[tuple[str, int], Path] = {}
    for task_id, sample, case in sorted(found):
        first.setdefault((task_id, case), found[task_id, sample, case])
    keys = ((task.id, case.number) for task in suite.tasks for case in task.cases)
    return FoundOutputs({key: first[key] for key in keys if key in first}, tuple(strangers), found)


def _files(folder: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    """Files with such suffixes of a folder and of the folders in it, in a fixed order."""

    def refuse(error: OSError) -> None:
        raise SubmissionError(f"{error.filename} cannot be listed: {error.strerror}") from error

    for parent, folders, names in os.walk(folder, onerror=refuse):
        depth = len(Path(parent).relative_to(folder).parts)
        folders[:] = sorted(folders) if depth < _MAX_DEPTH else []
        for name in sorted(names):
            if name.lower().endswith(suffixes) and not name.startswith((".", "~$")):
                yield Path(parent) / name
