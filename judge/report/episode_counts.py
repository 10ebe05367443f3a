"""Counts the desktop episodes of a run: success by setting, endings, histograms. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from judge.core.records.runs import RunDocument, served_model
from judge.core.score import ScoreColumn, SubmissionScore
from judge.core.statistics import mean_interval
from judge.core.verdict import Verdict
from judge.report.episode_model import (
    EndingCount,
    EpisodeBin,
    EpisodeEntry,
    EpisodesSummary,
    SettingCell,
    SettingRow,
)
from judge.report.episode_settings import asked_setting, common
from judge.report.episodes import ending_in_words
from judge.report.load import LoadedSubmission
from judge.report.model import Method
from judge.suites import Suite

Scored = Sequence[tuple[LoadedSubmission, SubmissionScore]]

_WIDTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)
_MAX_BINS = 16
_MAX_GROUPS = 6


def summarise_episodes(
    run: RunDocument, scored: Scored, columns: Sequence[ScoreColumn], method: Method
) -> EpisodesSummary | None:
    """Counts the episodes of a run; None if it has none.

    Args:
        run: the document of run.json.
        scored: the submissions with their scores.
        columns: classes of tasks that the suite's tables tell apart.
        method: confidence, resamples and seed of the intervals.
    """
    found = [
        (entry, _is_accepted(each, case))
        for each, _ in scored
        for case, entry in each.episodes.items()
    ]
    if not found:
        return None
    settings = dict.fromkeys(entry.setting for entry, _ in found)
    return EpisodesSummary(
        episodes=len(found),
        settings=tuple(
            setting_row("", run, _of_setting(scored, setting), columns, method)
            for setting in settings
        ),
        endings=_endings(found),
        steps=_histogram(found, lambda entry: entry.steps),
        turns=_histogram(found, lambda entry: entry.turns),
    )


def _is_accepted(submission: LoadedSubmission, case: int) -> bool:
    result = submission.results.get(case)
    return result is not None and result.verdict is Verdict.AC


def _of_setting(scored: Scored, setting: tuple[str, str, str, bool]) -> Scored:
    return [
        (each, score)
        for each, score in scored
        if any(entry.setting == setting for entry in each.episodes.values())
    ]


def setting_row(
    name: str, run: RunDocument, scored: Scored, columns: Sequence[ScoreColumn], method: Method
) -> SettingRow:
    """A line of a table as the papers print them.

    Args:
        name: of the run, if there are several.
        run: the document of run.json.
        scored: its submissions: all of them episodes, or none.
        columns: classes of tasks.
        method: confidence, resamples and seed.
    """
    entries = [entry for each, _ in scored for entry in each.episodes.values()]
    ended = [entry for entry in entries if entry.seconds is not None]
    alias = common(entry.model for entry in entries) if entries else run.get("model")
    asked = asked_setting(run, entries, (each.task for each, _ in scored))
    return SettingRow(
        name=name,
        model=served_model({**run, "model": alias}) or "",
        observation=common(entry.observation for entry in entries),
        action_space=(
            common(entry.action_space for entry in entries) if entries else run.get("setting") or ""
        ),
        history=asked.history,
        instruction=asked.instruction,
        oracle_plan=asked.oracle_plan,
        gui_only=bool(entries) and all(entry.gui_only for entry in entries),
        details=asked.details,
        episodes=len(entries),
        mean_turns=_mean([entry.turns for entry in ended]),
        mean_steps=_mean([entry.steps for entry in ended]),
        mean_s=_mean([entry.seconds or 0.0 for entry in ended]),
        cells=tuple(_cell(column, scored, method) for column in (ScoreColumn("Overall"), *columns)),
    )


def classes_of(suite: Suite | None) -> tuple[ScoreColumn, ...]:
    """The classes of tasks that the tables of a suite tell apart; none if it is not available.

    Of a suite without tables, its divisions take their place, unless they have too many groups.
    """
    if suite is None:
        return ()
    if suite.tables:
        columns = (column for table in suite.tables for column in table.columns)
        return tuple(dict.fromkeys(each for each in columns if each.division))
    groups = Counter(group for task in suite.tasks for group in task.groups.items())
    sizes = Counter(division for division, _ in groups)
    return tuple(
        ScoreColumn(group, division, group, division)
        for division, group in groups
        if 1 < sizes[division] <= _MAX_GROUPS
    )


def _cell(column: ScoreColumn, scored: Scored, method: Method) -> SettingCell:
    by_task: dict[str, list[float]] = {}
    for each, score in scored:
        groups = {} if each.task is None else each.task.groups
        if score.hard is not None and column.holds(groups):
            by_task.setdefault(each.task_id, []).append(score.hard)
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


def _endings(found: _Found) -> tuple[EndingCount, ...]:
    counts = Counter(entry.ended or "" for entry, _ in found)
    accepted = Counter(entry.ended or "" for entry, is_accepted in found if is_accepted)
    return tuple(
        EndingCount(ended, ending_in_words(ended), count, count / len(found), accepted[ended])
        for ended, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    )


def _histogram(found: _Found, read: Callable[[EpisodeEntry], int]) -> tuple[EpisodeBin, ...]:
    """Bars of the same width, of the episodes that ended."""
    numbers = [(read(entry), is_accepted) for entry, is_accepted in found if entry.ended]
    if not numbers:
        return ()
    lowest, highest = min(numbers)[0], max(numbers)[0]
    width = next(
        (each for each in _WIDTHS if highest // each - lowest // each < _MAX_BINS), highest + 1
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
