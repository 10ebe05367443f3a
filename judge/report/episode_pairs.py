"""Runs of desktop episodes on the same tasks: what they took, and their success by class. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from judge.core.score import SubmissionScore
from judge.core.statistics import paired_bootstrap
from judge.report.episode_counts import Scored, classes_of, setting_row
from judge.report.episode_model import EpisodeEntry, EpisodePair, PairedMean, SettingRow
from judge.report.load import LoadedRun
from judge.report.model import Method

_KEYS = ("turns", "steps", "seconds")


@dataclass(frozen=True, slots=True)
class Common:
    """The tasks on which runs are compared.

    Attributes:
        tasks: their names: ids, or what all phrasings of a task share.
        by_phrasing: which of the two.
    """

    tasks: frozenset[str]
    by_phrasing: bool = False

    def name_of(self, run: LoadedRun, task_id: str) -> str | None:
        """Under which name a task of a run is compared; None if it is not."""
        task = None if run.suite is None or not self.by_phrasing else run.suite.task(task_id)
        name = task_id if task is None or task.phrasing is None else task.phrasing.of
        return name if name in self.tasks else None


def compare_episodes(
    names: Sequence[str], runs: Sequence[LoadedRun], common: Common, method: Method
) -> tuple[EpisodePair, ...]:
    """Turns, actions and seconds of each two runs.

    Args:
        names: of the runs.
        runs: the runs.
        common: the tasks that are compared.
        method: confidence, resamples and seed.

    Returns:
        The pairs that have a task of which both have an episode that ended.
    """
    took = [_took(run, common) for run in runs]
    pairs = (
        EpisodePair(names[one], names[two], tuple(_means(took[one], took[two], method)))
        for one, two in combinations(range(len(runs)), 2)
    )
    return tuple(pair for pair in pairs if pair.means)


def setting_rows(
    names: Sequence[str],
    runs: Sequence[LoadedRun],
    scores: Sequence[Sequence[SubmissionScore]],
    common: Common,
    method: Method,
) -> tuple[SettingRow, ...]:
    """A line for each run, on the tasks that are compared; none if no run has episodes there.

    A run without episodes is next to them with what its programs solved, as the papers have it.

    Args:
        names: of the runs.
        runs: the runs.
        scores: of the submissions of each run, in their order.
        common: the tasks that are compared.
        method: confidence, resamples and seed.
    """
    compared = [
        [
            (each, score)
            for each, score in zip(run.submissions, found, strict=True)
            if common.name_of(run, each.task_id) is not None
        ]
        for run, found in zip(runs, scores, strict=True)
    ]
    if not any(each.episodes for found in compared for each, _ in found):
        return ()
    classes = classes_of(runs[0].suite)
    return tuple(
        setting_row(name, run.run, _held(found), classes, method)
        for name, run, found in zip(names, runs, compared, strict=True)
    )


def _held(found: Scored) -> Scored:
    """The submissions that are episodes; all where none is."""
    return [each for each in found if each[0].episodes] or found


_Took = Mapping[str, Mapping[str, float]]
"""What is counted -> task -> mean over its samples."""


def _took(run: LoadedRun, common: Common) -> _Took:
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
        tasks = [task for task in one[key] if task in two[key]]
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
