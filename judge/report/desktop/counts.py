"""Counts desktop episodes (success by setting, endings, histograms) and compares runs. Pure."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from judge.core.records.runs import InferenceIdentity, RunDocument, served_model
from judge.core.score import ScoreColumn, SubmissionScore
from judge.core.statistics import mean_interval, paired_bootstrap
from judge.core.task import Task
from judge.core.verdict import Verdict
from judge.desktop.episodes import HUMAN
from judge.report.desktop.episodes import (
    EndingCount,
    EpisodeBin,
    EpisodeEntry,
    EpisodePair,
    EpisodesSummary,
    PairedMean,
    SettingCell,
    SettingRow,
    ending_in_words,
)
from judge.report.load import LoadedRun, LoadedSubmission
from judge.report.model import Method
from judge.suites import Suite

SEVERAL = "several"
_MAX_TEXT_CHARS = 200
_OF_SETTING = {
    "turns at most": "rounds",
    "minutes at most": "minutes",
    "tokens of a tree": "tree_tokens",
}
"""A setting's name for people -> its key in the record of the desktop."""
_OF_REQUESTS = {
    "tokens of a reply": "max_tokens",
    "temperature": "temperature",
    "top p": "top_p",
}
"""A parameter's name for people -> its key in the record of the requests."""


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """The settings of requests to the chat model, for one line of a table.

    Attributes:
        history: earlier turns that a request shows; None if not known.
        instruction: the phrasing of the instructions; ``both`` if there are two.
        oracle_plan: whether an expert's steps were given.
        details: further settings, under their names for people.
    """

    history: int | None
    instruction: str
    oracle_plan: bool
    details: Mapping[str, str]


def request_settings(
    run: RunDocument, entries: Sequence[EpisodeEntry], tasks: Iterable[Task | None]
) -> RequestSettings:
    """Reads the settings of requests to the chat model from the records.

    Args:
        run: the document of run.json.
        entries: the episodes.
        tasks: the tasks of the episodes; None if the suite is not available.
    """
    inference = run.get("inference") or InferenceIdentity()
    if any(entry.model == HUMAN for entry in entries):
        inference = InferenceIdentity()  # settings of a chat model do not apply to people
    desktop = inference.get("desktop")
    setting = desktop.get("setting") if isinstance(desktop, Mapping) else None
    setting = setting if isinstance(setting, Mapping) else {}
    history = setting.get("history")
    phrasings = {task.phrasing.name for task in tasks if task is not None and task.phrasing}
    return RequestSettings(
        history=history if isinstance(history, int) else None,
        instruction="both" if len(phrasings) > 1 else "".join(phrasings)[:_MAX_TEXT_CHARS],
        oracle_plan=inference.get("oracle_plan") is True,
        details={**_model_settings(inference, setting), **_desktop_settings(entries)},
    )


def _model_settings(inference: InferenceIdentity, setting: Mapping[str, object]) -> dict[str, str]:
    if not inference:
        return {}
    params = inference.get("params") or {}
    values = {name: setting.get(key) for name, key in _OF_SETTING.items()}
    values |= {name: params.get(key) for name, key in _OF_REQUESTS.items()}
    values["execution feedback"] = inference.get("execution_feedback") is not False
    values["documents"] = inference.get("documents") or False
    prompt = inference.get("prompt")
    values["prompt"] = prompt.get("name") if isinstance(prompt, Mapping) else None
    return {name: _text(value) for name, value in values.items() if value is not None}


def _desktop_settings(entries: Sequence[EpisodeEntry]) -> dict[str, str]:
    if not entries:
        return {}
    return {
        "screen": common(entry.screen for entry in entries),
        "window": common(entry.window or "whole screen" for entry in entries),
        "other windows": common(str(entry.clutter) for entry in entries),
        "as published": common(", ".join(entry.as_published) or "nothing" for entry in entries),
    }


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)[:_MAX_TEXT_CHARS]


def common(names: Iterable[str]) -> str:
    """The value that all have in common; ``several`` if they differ, empty if there are none."""
    different = set(names)
    return SEVERAL if len(different) > 1 else "".join(different)


def plan_in_words(row: SettingRow) -> str:
    """The phrasing of the instructions, and whether a plan came with them."""
    return " + ".join(filter(None, [row.instruction, "plan" if row.oracle_plan else ""])) or "-"


def differing(rows: Sequence[SettingRow]) -> tuple[str, ...]:
    """The other settings that differ between the rows of a table, in the order of their records."""
    named = dict.fromkeys(name for row in rows for name in row.details)
    return tuple(
        name
        for name in named
        if len({row.details[name] for row in rows if name in row.details}) > 1
    )


Scored = Sequence[tuple[LoadedSubmission, SubmissionScore]]

_WIDTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)
_MAX_BINS = 16
_MAX_GROUPS = 6


def summarise_episodes(
    run: RunDocument, scored: Scored, columns: Sequence[ScoreColumn], method: Method
) -> EpisodesSummary | None:
    """Counts the episodes of a run; None if it has no episodes.

    Args:
        run: the document of run.json.
        scored: the submissions with their scores.
        columns: classes of tasks that the suite's tables distinguish.
        method: confidence, resamples and seed of the intervals.
    """
    episodes = [
        (entry, _is_accepted(submission, case))
        for submission, _ in scored
        for case, entry in submission.episodes.items()
    ]
    if not episodes:
        return None
    settings = dict.fromkeys(entry.setting for entry, _ in episodes)
    return EpisodesSummary(
        episodes=len(episodes),
        settings=tuple(
            setting_row("", run, _of_setting(scored, setting), columns, method)
            for setting in settings
        ),
        endings=_endings(episodes),
        steps=_histogram(episodes, lambda entry: entry.steps),
        turns=_histogram(episodes, lambda entry: entry.turns),
    )


def _is_accepted(submission: LoadedSubmission, case: int) -> bool:
    result = submission.results.get(case)
    return result is not None and result.verdict is Verdict.AC


def _of_setting(scored: Scored, setting: tuple[str, str, str, bool]) -> Scored:
    return [
        (submission, score)
        for submission, score in scored
        if any(entry.setting == setting for entry in submission.episodes.values())
    ]


def setting_row(
    name: str, run: RunDocument, scored: Scored, columns: Sequence[ScoreColumn], method: Method
) -> SettingRow:
    """A line of a table like those in the papers.

    Args:
        name: the name of the run, if there are several.
        run: the document of run.json.
        scored: its submissions; either all of them or none are episodes.
        columns: classes of tasks.
        method: confidence, resamples and seed.
    """
    entries = [entry for submission, _ in scored for entry in submission.episodes.values()]
    ended = [entry for entry in entries if entry.seconds is not None]
    alias = common(entry.model for entry in entries) if entries else run.get("model")
    requested = request_settings(run, entries, (submission.task for submission, _ in scored))
    return SettingRow(
        name=name,
        model=served_model({**run, "model": alias}) or "",
        observation=common(entry.observation for entry in entries),
        action_space=(
            common(entry.action_space for entry in entries) if entries else run.get("setting") or ""
        ),
        history=requested.history,
        instruction=requested.instruction,
        oracle_plan=requested.oracle_plan,
        gui_only=bool(entries) and all(entry.gui_only for entry in entries),
        details=requested.details,
        episodes=len(entries),
        mean_turns=_mean([entry.turns for entry in ended]),
        mean_steps=_mean([entry.steps for entry in ended]),
        mean_s=_mean([entry.seconds or 0.0 for entry in ended]),
        cells=tuple(_cell(column, scored, method) for column in (ScoreColumn("Overall"), *columns)),
    )


def classes_of(suite: Suite | None) -> tuple[ScoreColumn, ...]:
    """The classes of tasks that the tables of a suite distinguish; empty if there is no suite.

    For a suite without tables, its divisions are used, unless they have too many groups.
    """
    if suite is None:
        return ()
    if suite.tables:
        columns = (column for table in suite.tables for column in table.columns)
        return tuple(dict.fromkeys(column for column in columns if column.division))
    groups = Counter(group for task in suite.tasks for group in task.groups.items())
    sizes = Counter(division for division, _ in groups)
    return tuple(
        ScoreColumn(group, division, group, division)
        for division, group in groups
        if 1 < sizes[division] <= _MAX_GROUPS
    )


def _cell(column: ScoreColumn, scored: Scored, method: Method) -> SettingCell:
    by_task: dict[str, list[float]] = {}
    for submission, score in scored:
        groups = {} if submission.task is None else submission.task.groups
        if score.hard is not None and column.holds(groups):
            by_task.setdefault(submission.task_id, []).append(score.hard)
    solved = mean_interval(
        [math.fsum(scores) / len(scores) for scores in by_task.values()],
        confidence=method.confidence,
        resamples=method.resamples,
        seed=method.seed,
    )
    return SettingCell(column.heading, column.label, len(by_task), solved)


def _mean(numbers: Sequence[float]) -> float | None:
    return math.fsum(numbers) / len(numbers) if numbers else None


_Found = Sequence[tuple[EpisodeEntry, bool]]


def _endings(episodes: _Found) -> tuple[EndingCount, ...]:
    counts = Counter(entry.ended or "" for entry, _ in episodes)
    accepted = Counter(entry.ended or "" for entry, is_accepted in episodes if is_accepted)
    return tuple(
        EndingCount(ended, ending_in_words(ended), count, count / len(episodes), accepted[ended])
        for ended, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )


def _histogram(episodes: _Found, read: Callable[[EpisodeEntry], int]) -> tuple[EpisodeBin, ...]:
    """Counts finished episodes in bars of the same width."""
    numbers = [(read(entry), is_accepted) for entry, is_accepted in episodes if entry.ended]
    if not numbers:
        return ()
    lowest, highest = min(numbers)[0], max(numbers)[0]
    width = next(
        (step for step in _WIDTHS if highest // step - lowest // step < _MAX_BINS), highest + 1
    )
    bars: Mapping[int, list[bool]] = {
        number: [] for number in range(lowest // width, highest // width + 1)
    }
    for number, is_accepted in numbers:
        bars[number // width].append(is_accepted)
    return tuple(
        EpisodeBin(number * width, (number + 1) * width - 1, len(bar), sum(bar))
        for number, bar in bars.items()
    )


_KEYS = ("turns", "steps", "seconds")


@dataclass(frozen=True, slots=True)
class CommonTasks:
    """The tasks on which runs are compared.

    Attributes:
        tasks: their names: ids, or the id that all phrasings of a task share.
        by_phrasing: whether names are the shared ids of phrasings.
    """

    tasks: frozenset[str]
    by_phrasing: bool = False

    def name_of(self, run: LoadedRun, task_id: str) -> str | None:
        """The name under which a task of a run is compared; None if it is not compared."""
        task = None if run.suite is None or not self.by_phrasing else run.suite.task(task_id)
        name = task_id if task is None or task.phrasing is None else task.phrasing.of
        return name if name in self.tasks else None


def compare_episodes(
    names: Sequence[str], runs: Sequence[LoadedRun], common: CommonTasks, method: Method
) -> tuple[EpisodePair, ...]:
    """Turns, actions and seconds of every pair of runs.

    Args:
        names: the names of the runs.
        runs: the runs.
        common: the tasks that are compared.
        method: confidence, resamples and seed.

    Returns:
        The pairs of runs with at least one task on which both have an episode that ended.
    """
    measures = [_took(run, common) for run in runs]
    pairs = (
        EpisodePair(names[one], names[two], tuple(_means(measures[one], measures[two], method)))
        for one, two in combinations(range(len(runs)), 2)
    )
    return tuple(pair for pair in pairs if pair.means)


def setting_rows(
    names: Sequence[str],
    runs: Sequence[LoadedRun],
    scores: Sequence[Sequence[SubmissionScore]],
    common: CommonTasks,
    method: Method,
) -> tuple[SettingRow, ...]:
    """A line for each run, on the tasks that are compared; empty if no run has episodes on them.

    As in the papers, a run without episodes also has a line, which shows the success of its
    programs.

    Args:
        names: the names of the runs.
        runs: the runs.
        scores: the scores of the submissions of each run, in their order.
        common: the tasks that are compared.
        method: confidence, resamples and seed.
    """
    compared = [
        [
            (submission, score)
            for submission, score in zip(run.submissions, of_run, strict=True)
            if common.name_of(run, submission.task_id) is not None
        ]
        for run, of_run in zip(runs, scores, strict=True)
    ]
    if not any(submission.episodes for of_run in compared for submission, _ in of_run):
        return ()
    classes = classes_of(runs[0].suite)
    return tuple(
        setting_row(name, run.run, _episodes_only(of_run), classes, method)
        for name, run, of_run in zip(names, runs, compared, strict=True)
    )


def _episodes_only(scored: Scored) -> Scored:
    """The submissions that are episodes; all submissions if none is an episode."""
    return [pair for pair in scored if pair[0].episodes] or scored


_Took = Mapping[str, Mapping[str, float]]
"""Key of a figure -> task -> mean of the figure over the task's samples."""


def _took(run: LoadedRun, common: CommonTasks) -> _Took:
    ended: dict[str, list[EpisodeEntry]] = defaultdict(list)
    for submission in run.submissions:
        task = common.name_of(run, submission.task_id)
        if task is not None:
            ended[task] += [entry for entry in submission.episodes.values() if entry.ended]
    return {
        key: {
            task: math.fsum(getattr(entry, key) for entry in entries) / len(entries)
            for task, entries in ended.items()
            if entries
        }
        for key in _KEYS
    }


def _means(one: _Took, two: _Took, method: Method) -> Iterator[PairedMean]:
    for key in _KEYS:
        tasks = sorted(one[key].keys() & two[key].keys())
        if not tasks:
            continue
        before, after = ([took[key][task] for task in tasks] for took in (one, two))
        paired = paired_bootstrap(
            before,
            after,
            confidence=method.confidence,
            resamples=method.resamples,
            seed=method.seed,
        )
        yield PairedMean(
            key=key,
            tasks=len(tasks),
            first=math.fsum(before) / len(tasks),
            second=math.fsum(after) / len(tasks),
            difference=paired.difference or 0.0,
            low=paired.low,
            high=paired.high,
        )
