"""The logs of a results folder, and the published figures that they give."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.core.records.reports import PublishedFigures
from judge.errors import SubmissionError
from judge.files.yaml_documents import read_yaml
from judge.suites.sheetcopilot.reading import atomic_actions
from judge.suites.suite import Suite

_FOLDER = re.compile(r"[0-9]{1,6}_[A-Za-z][A-Za-z0-9]{0,99}")
_LOG = "_log.yaml"
_MOST_ENTRIES = 100_000


@dataclass(frozen=True, slots=True)
class ActionLog:
    """What the log of a task says.

    Attributes:
        successes: how many repeats ended with a workbook.
        actions: how many actions each successful repeat planned.
        workbooks: how many workbooks of repeats the folder holds.
        repeats: the samples, from 0, whose workbook is there.
    """

    successes: int
    actions: tuple[int, ...]
    workbooks: int
    repeats: frozenset[int]


def read_logs(suite: Suite, folder: Path) -> tuple[dict[str, ActionLog], list[str]]:
    """The logs of a results folder.

    Args:
        suite: the suite that was answered.
        folder: the folder with a folder for each task.

    Returns:
        Task id -> its log; and the logs that cannot be read, a line each.

    Raises:
        SubmissionError: the folder cannot be listed.
    """
    try:
        entries = sorted(each for each in folder.iterdir() if _FOLDER.fullmatch(each.name))
    except OSError as error:
        raise SubmissionError(f"{folder} cannot be listed: {error.strerror}") from error
    found: dict[str, ActionLog] = {}
    problems: list[str] = []
    for entry in entries[:_MOST_ENTRIES]:
        task_id = suite.task_id_in(entry.name, ())
        path = entry / f"{entry.name}{_LOG}"
        if task_id not in suite or not path.is_file():
            continue
        try:
            found[task_id] = _log(read_yaml(path, SubmissionError), entry)
        except (SubmissionError, OSError) as error:
            problems.append(str(error))
    return found, problems


def _log(document: Any, folder: Path) -> ActionLog:
    if not isinstance(document, dict) or not isinstance(document.get("Success Count"), int):
        raise SubmissionError(f"{folder.name}{_LOG}: the field 'Success Count' is not a number")
    responses = document.get("Success Response")
    names = [
        each.name
        for each in folder.iterdir()
        if each.name.endswith(".xlsx") and "source" not in each.name and "~$" not in each.name
    ]
    numbers = (re.fullmatch(rf"{re.escape(folder.name)}_(\d{{1,4}})\.xlsx", each) for each in names)
    return ActionLog(
        successes=document["Success Count"],
        actions=tuple(map(_planned, responses if isinstance(responses, list) else [])),
        workbooks=len(names),
        repeats=frozenset(int(each[1]) - 1 for each in numbers if each is not None),
    )


def _planned(response: Any) -> int:
    """The actions of a plan: a list of steps, each a list of actions."""
    plan = response.get("refined response") if isinstance(response, dict) else None
    return sum(len(each) for each in plan or () if isinstance(each, list | str))


def published_figures(
    suite: Suite, folder: Path, accepted: Mapping[tuple[str, int], bool]
) -> list[PublishedFigures]:
    """Exec@1, Pass@1, A50 and A90 of each repeat, as the published evaluation gives them.

    Tasks without a folder or a log are left out of the denominator. A50 and A90 are the median and
    the 90th percentile, over the tasks that passed, of the planned actions divided by the atomic
    actions of the task; None where no task passed.

    Args:
        suite: the suite that was answered.
        folder: the folder of finished outputs.
        accepted: task and sample -> whether its output was accepted.

    Returns:
        An entry for each repeat; none where no task has a log.

    Raises:
        SubmissionError: the folder cannot be listed.
        SuiteError: the suite's ``dataset.xlsx`` cannot be read.
    """
    logs, problems = read_logs(suite, folder)
    if not logs:
        return []
    least = atomic_actions(suite.root)
    samples = sorted({0, *(each for log in logs.values() for each in log.repeats)})
    figures = []
    for sample in samples:
        executed = [
            task_id
            for task_id, log in logs.items()
            if sample in log.repeats and log.workbooks == log.successes > 0
        ]
        passed = [
            task_id
            for task_id in executed
            if accepted.get((task_id, sample)) and logs[task_id].actions
        ]
        ratios = sorted(
            logs[task_id].actions[sample] / least[task_id]
            for task_id in passed
            if sample < len(logs[task_id].actions) and least.get(task_id)
        )
        figures.append(
            PublishedFigures(
                repeat=sample + 1,
                tasks=len(logs),
                executed=len(executed),
                passed=len(passed),
                exec_at_1=len(executed) / len(logs),
                pass_at_1=len(passed) / len(logs),
                a50=_percentile(ratios, 50),
                a90=_percentile(ratios, 90),
                problems=problems,
            )
        )
    return figures


def _percentile(ordered: list[float], percent: float) -> float | None:
    """A percentile, interpolated between neighbours; None of nothing."""
    if not ordered:
        return None
    place = (len(ordered) - 1) * percent / 100
    low, high = math.floor(place), math.ceil(place)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
