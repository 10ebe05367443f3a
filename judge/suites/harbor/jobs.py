"""Reads a job of Harbor: its trials, with what each took.

A job is a folder with a folder for each trial. A trial has a ``config.json``, and a ``result.json``
once it has ended; what the agent left is in ``artifacts``. Written for the files of Harbor 0.25.
All of them were written by others: sizes are bounded, links are not followed, and a field whose
type is not the one that Harbor writes counts as unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from judge.errors import JudgeError, SubmissionError
from judge.files.documents import read_json
from judge.suites.walking import is_folder, is_regular

ARTIFACTS = "artifacts"
CONVENTION = "logs/artifacts"
"""What an agent publishes on its own account, in the artifacts of a trial."""

_RESULT = "result.json"
_CONFIG = "config.json"
_MAX_TRIALS = 100_000


@dataclass(frozen=True, slots=True)
class Trial:
    """One attempt of an agent at a task.

    Attributes:
        folder: its folder.
        name: its name.
        task_names: names that its task goes by.
        agent: the agent, with its version.
        model: the model that the agent used, if known.
        started: when it began, as Harbor writes it; sorts as text.
        seconds: how long the agent worked; None if unknown.
        prompt_tokens: tokens that went in; None if unknown.
        completion_tokens: tokens that came out; None if unknown.
        cost_usd: what it cost; None if unknown.
        exception: type of the exception that ended it, if one did.
        rewards: what its own verifier found; empty if there was none.
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
        trials: those that have ended, by the time at which they began.
        unfinished: names of the folders of those that have not.
    """

    trials: tuple[Trial, ...]
    unfinished: tuple[str, ...]


def is_job(folder: Path) -> bool:
    """Whether a folder is a job: one in which at least one folder is a trial."""
    return any(_is_trial(each) for each in _folders(folder))


def read_job(folder: Path) -> Job:
    """Reads the trials of a job.

    Raises:
        SubmissionError: a file cannot be read or is not JSON, or there are too many trials.
    """
    trials: list[Trial] = []
    unfinished: list[str] = []
    for each in _folders(folder):
        result = each / _RESULT
        if is_regular(result):
            document = read_json(result, SubmissionError)
            if not isinstance(document, dict) or "trial_name" not in document:
                raise SubmissionError(
                    f"{result}: is not the result of a trial",
                    hint="Move the folder away, or name the folder of one job.",
                )
            trials.append(_trial(each, document))
        elif is_regular(each / _CONFIG):
            unfinished.append(each.name)
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
                continue  # whoever reads the job will hear why
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
        agent=" ".join(each for each in named if each and each != "unknown"),
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
    """Names of the folder and of the package of the task."""
    task_id = _object(document, "task_id")
    found = [_text(task_id, "path"), _text(task_id, "name"), _text(document, "task_name")]
    names = (name.replace("\\", "/").rstrip("/").rpartition("/")[2] for name in found)
    return tuple(dict.fromkeys(name for name in names if name))


def _object(document: Mapping[str, object], name: str) -> Mapping[str, object]:
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def _objects(document: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    value = document.get(name)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _text(document: Mapping[str, object], name: str) -> str:
    value = document.get(name)
    return value if isinstance(value, str) else ""


def _amount(value: object) -> float | None:
    """A number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if value >= 0 and math.isfinite(value) else None


def _sum(contexts: list[Mapping[str, object]], name: str) -> float | None:
    known = [value for context in contexts if (value := _amount(context.get(name))) is not None]
    return sum(known) if known else None


def _seconds(timing: Mapping[str, object]) -> float | None:
    try:
        begun, ended = (
            datetime.fromisoformat(_text(timing, name)) for name in ("started_at", "finished_at")
        )
        return _amount((ended - begun).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None
