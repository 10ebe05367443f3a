"""Reads Harbor jobs: the trials, their usage, and the outputs and programs that they left.

A job is a folder with a folder for each trial. A trial has a ``config.json``, and a ``result.json``
once it has ended; the files that the agent left are in ``artifacts``. Written for Harbor 0.25.

Other people wrote these files: their sizes are limited, links are not followed, and a field whose
type is not the one that Harbor writes counts as unknown.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path

from judge.core.submission import Submission
from judge.core.task import Task
from judge.errors import JudgeError, SubmissionError
from judge.files.documents import read_json
from judge.suites.file_pattern import FilePattern
from judge.suites.folders import is_folder, is_regular, regular_files
from judge.suites.layouts import FoundOutputs, LayoutKind, raise_unknown
from judge.suites.submissions import submission_of_program
from judge.suites.suite import Suite

# -- names of tasks -------------------------------------------------------------------------------

_PLAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.))*")
_OTHER = re.compile(r"[^A-Za-z0-9_-]+")
_SEPARATORS = "-_."


def folder_name(task_id: str) -> str:
    """The name of a task's folder; no two ids have the same name."""
    if _PLAIN.fullmatch(task_id):
        return task_id
    plain = _OTHER.sub("-", task_id).strip("-_") or "task"
    return f"{plain}-{hashlib.sha256(task_id.encode()).hexdigest()[:8]}"


def find_tasks(names: Sequence[Sequence[str]], task_ids: Iterable[str]) -> list[str | None]:
    """Finds the task of each trial by its names.

    Adapters put the name of their benchmark before the id (``spreadsheetbench-59196``). All names
    must have the same prefix; otherwise, the ``1`` of ``13-1`` could be taken for a task.

    Args:
        names: for each trial, the possible names of its task.
        task_ids: ids of the existing tasks.

    Returns:
        For each trial, the id of its task, or None if no task fits.
    """
    by_name = {folder_name(task_id): task_id for task_id in task_ids}
    options = [_options(name, by_name) for name in names]
    prefixes = {prefix for option in options for prefix in option}
    fitting = {prefix: sum(prefix in option for option in options) for prefix in prefixes}
    chosen = min(prefixes, key=lambda prefix: (-fitting[prefix], len(prefix), prefix), default="")
    return [option.get(chosen) for option in options]


def _options(names: Sequence[str], by_name: dict[str, str]) -> dict[str, str]:
    """The possible readings of a trial's names: prefix -> id of the task that follows it."""
    options: dict[str, str] = {}
    for name in names:
        cuts = [0, *(index + 1 for index, character in enumerate(name) if character in _SEPARATORS)]
        for cut in cuts:
            if (task_id := by_name.get(name[cut:])) is not None:
                options.setdefault(name[:cut], task_id)
    return options


# -- trials ---------------------------------------------------------------------------------------

ARTIFACTS = "artifacts"
CONVENTION = "logs/artifacts"
"""Folder in the artifacts of a trial that holds files that the agent was not asked to publish."""

_RESULT = "result.json"
_CONFIG = "config.json"
_MAX_TRIALS = 100_000


@dataclass(frozen=True, slots=True)
class Trial:
    """One attempt of an agent at a task.

    Attributes:
        folder: its folder.
        name: its name.
        task_names: the possible names of its task.
        agent: the agent, with its version.
        model: the model that the agent used, if known.
        started: start time as Harbor writes it; sorts as text.
        seconds: how long the agent worked; None if unknown.
        prompt_tokens: tokens of the prompts; None if unknown.
        completion_tokens: tokens of the replies; None if unknown.
        cost_usd: cost in US dollars; None if unknown.
        exception: type of the exception that ended the trial, if one did.
        rewards: rewards from Harbor's own verifier; empty if it gave none.
    """

    folder: Path
    name: str
    task_names: tuple[str, ...]
    agent: str = ""
    model: str | None = None
    started: str = ""
    seconds: float | None = None
    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    cost_usd: float | None = None
    exception: str | None = None
    rewards: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """The trials of a job.

    Attributes:
        trials: the trials that have ended, in the order of their start times.
        unfinished: folder names of the trials that have not ended.
    """

    trials: tuple[Trial, ...]
    unfinished: tuple[str, ...]


def is_job(folder: Path) -> bool:
    """Whether a folder is a job, which holds the folder of at least one trial."""
    return any(_is_trial(trial_folder) for trial_folder in _folders(folder))


def read_job(folder: Path) -> Job:
    """Reads the trials of a job.

    Raises:
        SubmissionError: a file cannot be read or is not JSON, or there are too many trials.
    """
    trials: list[Trial] = []
    unfinished: list[str] = []
    for trial_folder in _folders(folder):
        result = trial_folder / _RESULT
        if is_regular(result):
            document = read_json(result, SubmissionError)
            if not isinstance(document, dict) or "trial_name" not in document:
                raise SubmissionError(
                    f"{result}: is not the result of a trial",
                    hint="Move the folder away, or name the folder of one job.",
                )
            trials.append(_trial(trial_folder, document))
        elif is_regular(trial_folder / _CONFIG):
            unfinished.append(trial_folder.name)
        if len(trials) > _MAX_TRIALS:
            raise SubmissionError(f"{folder} holds more than {_MAX_TRIALS:,} trials")
    trials.sort(key=lambda trial: (trial.started, trial.name))
    return Job(tuple(trials), tuple(unfinished))


def _folders(folder: Path) -> Iterator[Path]:
    try:
        children = sorted(folder.iterdir())
    except OSError as error:
        raise SubmissionError(f"{folder} cannot be listed: {error.strerror}") from error
    yield from (child for child in children if is_folder(child))


def _is_trial(folder: Path) -> bool:
    for name in (_CONFIG, _RESULT):
        if is_regular(folder / name):
            try:
                document = read_json(folder / name, SubmissionError)
            except JudgeError:
                continue  # reading the job reports the reason
            if isinstance(document, dict) and "trial_name" in document:
                return "task" in document or "task_name" in document
    return False


def _trial(folder: Path, document: Mapping[str, object]) -> Trial:
    agent, outcome = _object(document, "agent_info"), _object(document, "agent_result")
    model = _object(agent, "model_info")
    named = [_text(agent, "name"), _text(agent, "version")]
    provider, model_name = _text(model, "provider"), _text(model, "name")
    contexts = (
        [outcome]
        if outcome
        else [_object(step, "agent_result") for step in _objects(document, "step_results")]
    )
    rewards = _object(_object(document, "verifier_result"), "rewards")
    return Trial(
        folder=folder,
        name=folder.name,
        task_names=_task_names(document),
        agent=" ".join(part for part in named if part and part != "unknown"),
        model=f"{provider}/{model_name}" if provider and model_name else model_name or None,
        started=_text(document, "started_at"),
        seconds=_seconds(_object(document, "agent_execution")),
        prompt_tokens=_sum(contexts, "n_input_tokens"),
        completion_tokens=_sum(contexts, "n_output_tokens"),
        cost_usd=_sum(contexts, "cost_usd"),
        exception=_text(_object(document, "exception_info"), "exception_type") or None,
        rewards={
            name: value for name in rewards if (value := _amount(rewards.get(name))) is not None
        },
    )


def _task_names(document: Mapping[str, object]) -> tuple[str, ...]:
    """The possible names of a task: the names of its folder and of its package."""
    task_id = _object(document, "task_id")
    paths = [_text(task_id, "path"), _text(task_id, "name"), _text(document, "task_name")]
    names = (name.replace("\\", "/").rstrip("/").rpartition("/")[2] for name in paths)
    return tuple(dict.fromkeys(name for name in names if name))


def _object(document: Mapping[str, object], name: str) -> Mapping[str, object]:
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def _objects(document: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    value = document.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(document: Mapping[str, object], name: str) -> str:
    value = document.get(name)
    return value if isinstance(value, str) else ""


def _amount(value: object) -> float | None:
    """The value if it is a finite number that is not negative; otherwise None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if value >= 0 and math.isfinite(value) else None


def _sum(contexts: list[Mapping[str, object]], name: str) -> float | None:
    amounts = [value for context in contexts if (value := _amount(context.get(name))) is not None]
    return sum(amounts) if amounts else None


def _seconds(timing: Mapping[str, object]) -> float | None:
    try:
        begun, ended = (
            datetime.fromisoformat(_text(timing, name)) for name in ("started_at", "finished_at")
        )
        return _amount((ended - begun).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None


# -- what trials left -----------------------------------------------------------------------------

_MAX_SHOWN = 5


class HarborJob:
    """A job whose trials answer the tasks of a suite.

    The trials of a task are its samples, in the order of their start times.

    Args:
        folder: the folder of the job.
        suite: the suite whose tasks it answers.
        pattern: where the files are, relative to the folder of each trial; None for the artifacts
            that are named like output workbooks.
    """

    def __init__(self, folder: Path, suite: Suite, pattern: str | None = None) -> None:
        self._folder = folder
        self._suite = suite
        self._pattern = pattern

    @cached_property
    def _trials(self) -> list[tuple[Trial, Task, int]]:
        """The trials that have ended, with their tasks and sample numbers."""
        job = read_job(self._folder)
        if not job.trials:
            raise SubmissionError(f"{self._folder}: no trial of this job has ended yet")
        ids = [task.id for task in self._suite.tasks]
        tasks = find_tasks([trial.task_names for trial in job.trials], ids)
        taken: dict[str, int] = defaultdict(int)
        trials: list[tuple[Trial, Task, int]] = []
        unknown: list[str] = []
        for trial, task_id in zip(job.trials, tasks, strict=True):
            if task_id is None:
                unknown.append(f"{trial.name} (task {' or '.join(trial.task_names) or 'unknown'})")
                continue
            trials.append((trial, self._suite.task(task_id), taken[task_id]))
            taken[task_id] += 1
        raise_unknown(self._folder, self._suite, unknown)
        return trials

    def outputs(self) -> FoundOutputs:
        """The output workbooks. A trial that left none still counts as an attempt.

        Raises:
            SubmissionError: the job cannot be read, has tasks that the suite lacks, or has two
                workbooks for a case; or there are workbooks, but none is named like an output.
        """
        workbooks: dict[tuple[str, int, int], Path] = {}
        unrecognized: list[str] = []
        for trial, task, sample in self._trials:
            for case, path in self._workbooks(trial, task, unrecognized).items():
                workbooks[task.id, sample, case] = path
        if not workbooks and unrecognized:
            raise SubmissionError(
                f"{self._folder}: no workbook among the artifacts is named "
                f"{self._suite.suite_format.output_pattern}; there are "
                f"{', '.join(unrecognized[:_MAX_SHOWN])}",
                hint="Say where they are in the folder of a trial: "
                "--outputs 'artifacts/**/{case}.xlsx'",
            )
        attempts = ((task.id, sample) for _, task, sample in self._trials)
        return FoundOutputs(self._suite, tuple(unrecognized), workbooks, attempts)

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
        """The program of a trial; an unreadable one counts as missing, as it does in a reply."""
        facts = _facts_of(trial)
        for path in matching:
            try:
                submission = submission_of_program(
                    path, task, self._suite.suite_format, sample=sample, model=trial.model
                )
                return replace(submission, provenance=facts)
            except SubmissionError as error:
                facts["problem"] = error.message
        paths = self._suite.suite_format.default_paths(task.question)
        return Submission(
            task.id,
            None,
            paths.input_path,
            paths.output_path,
            sample,
            trial.model,
            provenance=facts,
        )

    def trajectories(self) -> dict[tuple[str, int, int], Path]:
        """The files that match the pattern, as trajectories of the trials."""
        assert self._pattern is not None
        pattern = FilePattern(self._pattern)
        files: dict[tuple[str, int, int], Path] = {}
        for trial, task, sample in self._trials:
            for path in regular_files(trial.folder):
                fields = pattern.match(path.relative_to(trial.folder).as_posix())
                if fields is None:
                    continue
                case = task.cases[0].number if fields.case is None else fields.case
                if (task.id, sample, case) in files:
                    raise self._two(f"trial {trial.name}", [files[task.id, sample, case], path])
                files[task.id, sample, case] = path
        return files

    def records(self) -> list[dict[str, object]]:
        """Records of the trials; tokens, costs and seconds are as in records of ``judge infer``."""
        return [
            {
                "id": task.written_id,
                "sample": sample,
                "model": trial.model,
                **_facts_of(trial),
            }
            for trial, task, sample in self._trials
        ]

    def _workbooks(self, trial: Trial, task: Task, unrecognized: list[str]) -> dict[int, Path]:
        """Case -> workbook.

        If a case has several, the workbook in the fewest folders is chosen; a file that the agent
        was not asked to publish is chosen last.
        """
        candidates: dict[int, list[Path]] = defaultdict(list)
        for path, case in self._named(trial, task, unrecognized):
            candidates[case].append(path)
        workbooks = {}
        for case, paths in sorted(candidates.items()):
            ranks = [self._rank(path, trial) for path in paths]
            best = [path for path, rank in zip(paths, ranks, strict=True) if rank == min(ranks)]
            if len(best) > 1:
                raise self._two(f"case {case} of task {task.id}, trial {trial.name},", best)
            workbooks[case] = best[0]
        return workbooks

    def _rank(self, path: Path, trial: Trial) -> tuple[bool, int]:
        if self._pattern is not None:
            return False, 0
        relative = path.relative_to(trial.folder / ARTIFACTS)
        return relative.is_relative_to(CONVENTION), len(relative.parts)

    def _named(
        self, trial: Trial, task: Task, unrecognized: list[str]
    ) -> Iterator[tuple[Path, int]]:
        numbers = [case.number for case in task.cases]
        if self._pattern is not None:
            pattern = FilePattern(self._pattern, [task.id])
            for path in regular_files(trial.folder):
                fields = pattern.match(path.relative_to(trial.folder).as_posix())
                if fields is None:
                    continue
                case = pattern.case_of(fields, task, SubmissionError)
                if case in numbers:
                    yield path, case
            return
        artifacts = trial.folder / ARTIFACTS
        suite_format = self._suite.suite_format
        for path in regular_files(artifacts) if is_folder(artifacts) else ():
            if not path.name.lower().endswith(suite_format.file_suffixes):
                continue
            named = suite_format.output_of(path.name)
            if named is None:
                unrecognized.append(str(path.relative_to(self._folder)))
            elif self._suite.task_id_in(named[0], ()) == task.id and named[1] in numbers:
                yield path, named[1]

    def _two(self, name: str, paths: list[Path]) -> SubmissionError:
        shown = " and ".join(str(path.relative_to(self._folder)) for path in paths[:_MAX_SHOWN])
        return SubmissionError(
            f"{self._folder}: {name} has several files: {shown}",
            hint="Say which, relative to the folder of a trial: "
            "--outputs 'artifacts/app/output/{case}_{task}_output.xlsx'",
        )


def _facts_of(trial: Trial) -> dict[str, object]:
    """Facts about a trial, under the field names that records of ``judge infer`` use."""
    tokens = {"prompt": trial.prompt_tokens, "completion": trial.completion_tokens}
    has_tokens = any(token is not None for token in tokens.values())
    return {
        "trial": trial.name,
        "agent": trial.agent or None,
        "tokens": tokens if has_tokens else None,
        "cost": trial.cost_usd,
        "seconds": trial.seconds,
        "exception": trial.exception,
        "rewards": dict(trial.rewards or {}),
    }


class Jobs(LayoutKind):
    """The layout in which outputs or programs are among the artifacts of a job's trials."""

    def fits(self, folder: Path, pattern: str | None) -> bool:
        """Whether a folder is a job and no pattern with ``{task}`` was given."""
        return (pattern is None or "task" not in FilePattern(pattern).fields) and is_job(folder)

    def outputs(self, folder: Path, suite: Suite, pattern: str | None) -> FoundOutputs:
        """The workbooks of all trials."""
        return HarborJob(folder, suite, pattern).outputs()

    def programs(self, folder: Path, suite: Suite, pattern: str) -> Iterator[Submission]:
        """The program of each trial that left one."""
        return HarborJob(folder, suite, pattern).programs()

    def trajectories(
        self, folder: Path, suite: Suite, pattern: str
    ) -> dict[tuple[str, int, int], Path]:
        """The trajectories of all trials."""
        return HarborJob(folder, suite, pattern).trajectories()

    def attempts(self, folder: Path, suite: Suite, pattern: str | None) -> list[dict[str, object]]:
        """The usage of each trial, such as tokens and cost."""
        return HarborJob(folder, suite, pattern).records()


JOBS = Jobs()
