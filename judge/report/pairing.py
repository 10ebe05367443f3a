"""Two or more runs on the same tasks: who is better, by how much, and how sure that is. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

from judge.core.results import InferenceIdentity, PromptContent
from judge.core.score import score_submission
from judge.core.statistics import (
    Estimate,
    PairedDifference,
    fewest_one_sided,
    holm,
    mcnemar_exact,
    mean_interval,
    paired_bootstrap,
    smallest_detectable_change,
    smallest_detectable_difference,
)
from judge.errors import UsageError
from judge.report.build import DEFAULT_METHOD
from judge.report.load import LoadedRun
from judge.report.model import Method

COMPARISON_VERSION = 1
POWER = 0.8
_SOLVED = 0.5
"""A hard score of several samples that is above this counts as solved: most samples solved it."""


@dataclass(frozen=True, slots=True)
class RunScores:
    """One of the compared runs, on the tasks that all of them have.

    Attributes:
        name: its name in the comparison.
        profile: comparison profile.
        recalc: recalculation mode.
        model: the chat model, where known.
        soft_restriction: soft score with its interval.
        hard_restriction: hard score with its interval.
        tasks: tasks with a scored case in this run, before the common ones were taken.
        rounds: how often the chat model might answer, where known.
        prompt_rows: rows of each sheet that its prompt showed, where known.
    """

    name: str
    profile: str | None
    recalc: str | None
    model: str | None
    soft_restriction: Estimate
    hard_restriction: Estimate
    tasks: int
    rounds: int | None = None
    prompt_rows: int | None = None


@dataclass(frozen=True, slots=True)
class RunPair:
    """The second run compared with the first, on the tasks that both have.

    Attributes:
        first: name of the run that it is compared with.
        second: name of the run that is compared with it.
        tasks: tasks that both have.
        hard_difference: hard score of the second minus that of the first, with its interval.
        won: tasks that only the second run solved.
        lost: tasks that the first run alone solved.
        p_hard: McNemar's exact p on these.
        p_hard_holm: the same, adjusted for all pairs.
        soft_difference: soft score of the second minus that of the first, with interval and p.
        p_soft_holm: its p, adjusted for all pairs.
        better: tasks on which the second run has the higher soft score.
        worse: tasks on which it has the lower one.
        smallest_hard: smallest true difference of the hard scores that this many tasks show with a
            power of 80 %, where as many tasks tell the runs apart as here; None where so few do
            that none would be found.
        smallest_soft: the same for the soft score, where the differences scatter as here.
    """

    first: str
    second: str
    tasks: int
    hard_difference: PairedDifference
    won: tuple[str, ...]
    lost: tuple[str, ...]
    p_hard: float
    p_hard_holm: float
    soft_difference: PairedDifference
    p_soft_holm: float
    better: tuple[str, ...]
    worse: tuple[str, ...]
    smallest_hard: float | None
    smallest_soft: float | None


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Several runs compared with each other.

    Attributes:
        schema_version: of the JSON form.
        suite: name of their suite.
        suite_digest: digest of their suite.
        runs: the runs on the common tasks, in the order in which they were given.
        pairs: every pair, the first run against all others first.
        tasks: common tasks.
        left_out: tasks that not all runs have with a scored case.
        fewest_one_sided: how many tasks one run alone has to win for McNemar's test to speak.
        power: of the smallest differences.
        method: confidence, resamples and seed of the bootstrap.
        notes: what a reader has to know.
    """

    schema_version: int
    suite: str | None
    suite_digest: str | None
    runs: tuple[RunScores, ...]
    pairs: tuple[RunPair, ...]
    tasks: int
    left_out: int
    fewest_one_sided: int
    power: float
    method: Method
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The comparison as a JSON object; keys are the names of the fields."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _TaskScores:
    soft: Mapping[str, float]
    hard: Mapping[str, float]


def compare_loaded(runs: Sequence[LoadedRun], method: Method = DEFAULT_METHOD) -> RunComparison:
    """Compares runs with each other, task by task.

    Args:
        runs: at least two, on the same suite.
        method: confidence, resamples and seed.

    Raises:
        UsageError: fewer than two runs, runs of different suites, or no task in common.
    """
    if len(runs) < 2:
        raise UsageError("there is nothing to compare: give at least two runs")
    _check_same_suite(runs)
    names = _names(runs)
    scores = [_task_scores(run) for run in runs]
    common = [task for task in scores[0].soft if all(task in each.soft for each in scores)]
    if not common:
        raise UsageError("the runs have no scored task in common")
    every = {task for each in scores for task in each.soft}
    drafts = [
        _pair(names[one], names[two], common, scores[one], scores[two], method)
        for one, two in combinations(range(len(runs)), 2)
    ]
    suite = runs[0].run.get("suite")
    return RunComparison(
        schema_version=COMPARISON_VERSION,
        suite=None if suite is None else suite.get("name"),
        suite_digest=None if suite is None else suite.get("digest"),
        runs=tuple(
            _run_scores(name, run, each, common, method)
            for name, run, each in zip(names, runs, scores, strict=True)
        ),
        pairs=tuple(_adjusted(drafts)),
        tasks=len(common),
        left_out=len(every) - len(common),
        fewest_one_sided=fewest_one_sided(1 - method.confidence),
        power=POWER,
        method=method,
        notes=tuple(_notes(names, runs)),
    )


def _check_same_suite(runs: Sequence[LoadedRun]) -> None:
    digests = {}
    for run in runs:
        suite = run.run.get("suite")
        digests[str(run.path)] = None if suite is None else suite.get("digest")
    if len(set(digests.values())) > 1:
        listed = "; ".join(f"{path}: {str(digest)[:12]}" for path, digest in digests.items())
        raise UsageError(
            f"the runs are of different suites ({listed})",
            hint="Only runs on the same tasks can be compared.",
        )


def _names(runs: Sequence[LoadedRun]) -> list[str]:
    """Folder names; whole paths where two folders have the same name."""
    names = [run.name for run in runs]
    return names if len(set(names)) == len(names) else [str(run.path) for run in runs]


def _task_scores(run: LoadedRun) -> _TaskScores:
    """Soft and hard score of each task that has a scored case; samples are averaged."""
    soft: dict[str, list[float]] = defaultdict(list)
    hard: dict[str, list[float]] = defaultdict(list)
    for each in run.submissions:
        found = [each.results.get(number) for number in each.cases]
        verdicts = [None if result is None else result.verdict for result in found]
        score = score_submission(each.task_id, each.sample, verdicts)
        if score.soft is not None and score.hard is not None:
            soft[each.task_id].append(score.soft)
            hard[each.task_id].append(score.hard)
    return _TaskScores(
        {task: math.fsum(each) / len(each) for task, each in soft.items()},
        {task: math.fsum(each) / len(each) for task, each in hard.items()},
    )


def _run_scores(
    name: str, run: LoadedRun, scores: _TaskScores, common: Sequence[str], method: Method
) -> RunScores:
    recalc = run.run.get("recalc")
    inference = run.run.get("inference") or InferenceIdentity()
    content = inference.get("content") or PromptContent()
    return RunScores(
        name=name,
        profile=run.run.get("profile"),
        recalc=None if recalc is None else recalc.get("mode"),
        model=run.run.get("model"),
        soft_restriction=_interval([scores.soft[task] for task in common], method),
        hard_restriction=_interval([scores.hard[task] for task in common], method),
        tasks=len(scores.soft),
        rounds=inference.get("rounds"),
        prompt_rows=content.get("rows"),
    )


def _interval(values: Sequence[float], method: Method) -> Estimate:
    return mean_interval(
        values, confidence=method.confidence, resamples=method.resamples, seed=method.seed
    )


def _pair(
    first: str,
    second: str,
    common: Sequence[str],
    one: _TaskScores,
    two: _TaskScores,
    method: Method,
) -> RunPair:
    won = tuple(task for task in common if one.hard[task] <= _SOLVED < two.hard[task])
    lost = tuple(task for task in common if two.hard[task] <= _SOLVED < one.hard[task])
    soft, hard = (
        paired_bootstrap(
            [before[task] for task in common],
            [after[task] for task in common],
            confidence=method.confidence,
            resamples=method.resamples,
            seed=method.seed,
        )
        for before, after in ((one.soft, two.soft), (one.hard, two.hard))
    )
    n, alpha = len(common), 1 - method.confidence
    discordant = (len(won) + len(lost)) / n
    p_hard = mcnemar_exact(len(lost), len(won))
    return RunPair(
        first=first,
        second=second,
        tasks=n,
        hard_difference=hard,
        won=won,
        lost=lost,
        p_hard=p_hard,
        p_hard_holm=p_hard,
        soft_difference=soft,
        p_soft_holm=soft.p,
        better=tuple(task for task in common if two.soft[task] > one.soft[task]),
        worse=tuple(task for task in common if two.soft[task] < one.soft[task]),
        smallest_hard=smallest_detectable_change(n, discordant, alpha=alpha, power=POWER),
        smallest_soft=None
        if not soft.sd
        else smallest_detectable_difference(n, soft.sd, alpha=alpha, power=POWER),
    )


def _adjusted(pairs: Sequence[RunPair]) -> list[RunPair]:
    hard = holm([pair.p_hard for pair in pairs])
    soft = holm([pair.soft_difference.p for pair in pairs])
    return [
        replace(pair, p_hard_holm=p_hard, p_soft_holm=p_soft)
        for pair, p_hard, p_soft in zip(pairs, hard, soft, strict=True)
    ]


def _notes(names: Sequence[str], runs: Sequence[LoadedRun]) -> list[str]:
    notes = [f"{name}: {note}" for name, run in zip(names, runs, strict=True) for note in run.notes]
    samples = [
        len(run.submissions) > len({each.task_id for each in run.submissions}) for run in runs
    ]
    if any(samples):
        notes.append(
            "several samples of a task are averaged; for McNemar's test a task is solved where "
            "more than half of its samples solved it"
        )
    return notes
