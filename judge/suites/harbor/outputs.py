"""The outputs and programs among the artifacts of a job's trials."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from judge.core.submission import Submission
from judge.core.task import Task
from judge.errors import SubmissionError
from judge.suites.file_pattern import FilePattern
from judge.suites.harbor.jobs import ARTIFACTS, CONVENTION, Trial, read_job
from judge.suites.harbor.names import find_tasks
from judge.suites.outputs import FoundOutputs, raise_unknown
from judge.suites.submissions import submission_of_program
from judge.suites.suite import Suite
from judge.suites.walking import is_folder, regular_files

_MAX_SHOWN = 5


class HarborJob:
    """A job, as answers to the tasks of a suite.

    The trials of a task are its samples, in the order in which they began.

    Args:
        folder: the folder of the job.
        suite: whose tasks it answers.
        pattern: where the files are, relative to the folder of each trial; None for workbooks with
            the names of outputs among the artifacts.
    """

    def __init__(self, folder: Path, suite: Suite, pattern: str | None = None) -> None:
        self._folder = folder
        self._suite = suite
        self._pattern = pattern

    @cached_property
    def _trials(self) -> list[tuple[Trial, Task, int]]:
        """Each trial that has ended, with its task and its sample."""
        job = read_job(self._folder)
        if not job.trials:
            raise SubmissionError(f"{self._folder}: no trial of this job has ended yet")
        ids = [task.id for task in self._suite.tasks]
        tasks = find_tasks([trial.task_names for trial in job.trials], ids)
        taken: dict[str, int] = defaultdict(int)
        found: list[tuple[Trial, Task, int]] = []
        unknown: list[str] = []
        for trial, task_id in zip(job.trials, tasks, strict=True):
            if task_id is None:
                unknown.append(f"{trial.name} (task {' or '.join(trial.task_names) or 'unknown'})")
                continue
            found.append((trial, self._suite.task(task_id), taken[task_id]))
            taken[task_id] += 1
        raise_unknown(self._folder, self._suite, unknown)
        return found

    def outputs(self) -> FoundOutputs:
        """The workbooks. A case without one has none: the attempt counts all the same.

        Raises:
            SubmissionError: the job cannot be read, is of other tasks, or has two workbooks for a
                case; or none is named like an output, though there are workbooks.
        """
        found: dict[tuple[str, int, int], Path] = {}
        strangers: list[str] = []
        for trial, task, sample in self._trials:
            for case, path in self._workbooks(trial, task, strangers).items():
                found[task.id, sample, case] = path
        if not found and strangers:
            raise SubmissionError(
                f"{self._folder}: no workbook among the artifacts is named "
                f"{self._suite.conventions.output_pattern}; there are "
                f"{', '.join(strangers[:_MAX_SHOWN])}",
                hint="Say where they are in the folder of a trial: "
                "--outputs 'artifacts/**/{case}.xlsx'",
            )
        attempts = ((task.id, sample) for _, task, sample in self._trials)
        return FoundOutputs(self._suite, tuple(strangers), found, attempts)

    def programs(self) -> Iterator[Submission]:
        """The program of each trial that left one.

        Raises:
            SubmissionError: as for :meth:`outputs`, or no trial left one.
        """
        assert self._pattern is not None
        pattern = FilePattern(self._pattern)
        left = 0
        for trial, task, sample in self._trials:
            matching = [
                path
                for path in regular_files(trial.folder)
                if pattern.match(path.relative_to(trial.folder).as_posix()) is not None
            ]
            if len(matching) > 1:
                raise self._two(f"trial {trial.name}", matching)
            left += len(matching)
            yield self._program(matching, trial, task, sample)
        if not left:
            raise SubmissionError(
                f"{self._folder}: no trial holds a program that matches {self._pattern!r}"
            )

    def _program(self, matching: list[Path], trial: Trial, task: Task, sample: int) -> Submission:
        """The program of a trial; one that cannot be read counts as missing, as in a reply."""
        took = _took(trial)
        for path in matching:
            try:
                found = submission_of_program(
                    path, task, self._suite.conventions, sample=sample, model=trial.model
                )
                return replace(found, provenance=took)
            except SubmissionError as error:
                took["problem"] = error.message
        paths = self._suite.conventions.default_paths(task.question)
        return Submission(
            task.id,
            None,
            paths.input_path,
            paths.output_path,
            sample,
            trial.model,
            provenance=took,
        )

    def records(self) -> list[dict[str, object]]:
        """What is known of each trial; tokens, costs and seconds as ``judge infer`` has them."""
        return [
            {
                "id": task.written_id,
                "sample": sample,
                "model": trial.model,
                **_took(trial),
            }
            for trial, task, sample in self._trials
        ]

    def _workbooks(self, trial: Trial, task: Task, strangers: list[str]) -> dict[int, Path]:
        """Case -> workbook.

        Of several, the one in the fewest folders; what an agent publishes without being asked comes
        last.
        """
        candidates: dict[int, list[Path]] = defaultdict(list)
        for path, case in self._named(trial, task, strangers):
            candidates[case].append(path)
        found = {}
        for case, paths in sorted(candidates.items()):
            ranks = [self._rank(path, trial) for path in paths]
            best = [path for path, rank in zip(paths, ranks, strict=True) if rank == min(ranks)]
            if len(best) > 1:
                raise self._two(f"case {case} of task {task.id}, trial {trial.name},", best)
            found[case] = best[0]
        return found

    def _rank(self, path: Path, trial: Trial) -> tuple[bool, int]:
        if self._pattern is not None:
            return False, 0
        relative = path.relative_to(trial.folder / ARTIFACTS)
        return relative.is_relative_to(CONVENTION), len(relative.parts)

    def _named(self, trial: Trial, task: Task, strangers: list[str]) -> Iterator[tuple[Path, int]]:
        numbers = [case.number for case in task.cases]
        if self._pattern is not None:
            pattern = FilePattern(self._pattern, [task.id])
            for path in regular_files(trial.folder):
                place = pattern.match(path.relative_to(trial.folder).as_posix())
                if place is None:
                    continue
                case = pattern.case_of(place, task, SubmissionError)
                if case in numbers:
                    yield path, case
            return
        artifacts = trial.folder / ARTIFACTS
        conventions = self._suite.conventions
        for path in regular_files(artifacts) if is_folder(artifacts) else ():
            if not path.name.lower().endswith(conventions.file_suffixes):
                continue
            named = conventions.output_of(path.name)
            if named is None:
                strangers.append(str(path.relative_to(self._folder)))
            elif self._suite.task_id_in(named[0], ()) == task.id and named[1] in numbers:
                yield path, named[1]

    def _two(self, what: str, paths: list[Path]) -> SubmissionError:
        shown = " and ".join(str(path.relative_to(self._folder)) for path in paths[:_MAX_SHOWN])
        return SubmissionError(
            f"{self._folder}: {what} has several files: {shown}",
            hint="Say which, relative to the folder of a trial: "
            "--outputs 'artifacts/app/output/{case}_{task}_output.xlsx'",
        )


def _took(trial: Trial) -> dict[str, object]:
    """What is known of a trial, with the names that records of ``judge infer`` have."""
    tokens = {"prompt": trial.prompt_tokens, "completion": trial.completion_tokens}
    known = any(token is not None for token in tokens.values())
    return {
        "trial": trial.name,
        "agent": trial.agent or None,
        "tokens": tokens if known else None,
        "cost": trial.cost_usd,
        "seconds": trial.seconds,
        "exception": trial.exception,
        "rewards": dict(trial.rewards or {}),
    }
