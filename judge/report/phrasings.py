"""Tasks that a run was asked in two phrasings: how it did on one and on the other. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from judge.core.score import SubmissionScore
from judge.core.task import Task
from judge.report.breakdowns import Division, TaskFacts
from judge.report.model import Method
from judge.report.pair_model import PairCounts, PhrasingComparison
from judge.report.paired import SOLVED, TaskScores, by_phrasing, compare_pair, task_scores


def compare_phrasings(
    scores: Iterable[SubmissionScore],
    tasks: Mapping[str, Task],
    facts: Mapping[str, TaskFacts],
    divisions: Sequence[Division],
    method: Method,
) -> tuple[PhrasingComparison, ...]:
    """Compares each two phrasings that a run has scores of.

    Args:
        scores: of the submissions.
        tasks: the tasks by id.
        facts: what places each of them in the divisions.
        divisions: by which the counts are parted.
        method: confidence, resamples and seed.
    """
    phrasings = {task.id: task.phrasing for task in tasks.values() if task.phrasing is not None}
    names = list(dict.fromkeys(phrasing.name for phrasing in phrasings.values()))
    every = task_scores(scores)
    series = {}
    for name in sorted(names):
        mine = {task for task, each in phrasings.items() if each.name == name}
        part = TaskScores(
            {task: score for task, score in every.soft.items() if task in mine},
            {task: score for task, score in every.hard.items() if task in mine},
        )
        if part.soft and (joined := by_phrasing(part, phrasings)) is not None:
            series[name] = joined
    shared = {each.of: facts[task] for task, each in phrasings.items()}
    return tuple(
        _compared(first, second, series, shared, divisions, method)
        for first, second in combinations(series, 2)
        if series[first].soft.keys() & series[second].soft.keys()
    )


def _compared(
    first: str,
    second: str,
    series: Mapping[str, TaskScores],
    facts: Mapping[str, TaskFacts],
    divisions: Sequence[Division],
    method: Method,
) -> PhrasingComparison:
    one, two = series[first], series[second]
    common = [task for task in one.soft if task in two.soft]
    counts = [_counts("all", common, one, two)]
    for division in divisions:
        for part in division.parts:
            inside = [task for task in common if division.place(facts[task]) == part.key]
            if inside:
                counts.append(_counts(part.label, inside, one, two))
    return PhrasingComparison(
        pair=compare_pair(first, second, common, one, two, method),
        counts=tuple(counts),
        alone=len(one.soft.keys() ^ two.soft.keys()),
    )


def _counts(label: str, tasks: Sequence[str], one: TaskScores, two: TaskScores) -> PairCounts:
    solved = [(one.hard[task] > SOLVED, two.hard[task] > SOLVED) for task in tasks]
    return PairCounts(
        label=label,
        tasks=len(tasks),
        both=solved.count((True, True)),
        only_first=solved.count((True, False)),
        only_second=solved.count((False, True)),
        neither=solved.count((False, False)),
    )
