"""Two or more runs on the same tasks: who is better, by how much, and how sure that is. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

from judge.core.records.runs import InferenceIdentity, PromptContent, served_model
from judge.core.score import SubmissionScore, score_submission
from judge.core.statistics import Estimate, fewest_one_sided, holm, mean_interval
from judge.core.task import Phrasing
from judge.errors import UsageError
from judge.report.build import DEFAULT_METHOD
from judge.report.episode_model import EpisodePair, SettingRow
from judge.report.episode_pairs import Common, compare_episodes, setting_rows
from judge.report.identity import departures
from judge.report.load import LoadedRun, LoadedSubmission
from judge.report.matrix import MatrixRow, task_matrix
from judge.report.model import Method
from judge.report.pair_model import RunPair
from judge.report.paired import POWER, TaskScores, by_phrasing, compare_pair, task_scores

COMPARISON_VERSION = 1
_PHRASINGS_NOTE = (
    "the runs have no task in common, but phrasings of the same tasks: these are compared, under "
    "the id of the first phrasing"
)


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
        departures: what decided its verdicts and is not in the suite as published.
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
    departures: tuple[str, ...] = ()


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
        settings: where a run has desktop episodes, the setting of each run and its success by
            class of tasks, in the form of the papers' tables.
        episodes: of each pair of them, what the episodes took.
        matrix: the verdicts of all runs on each common task, those on which they disagree first;
            empty where phrasings of the tasks are compared.
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
    settings: tuple[SettingRow, ...] = ()
    episodes: tuple[EpisodePair, ...] = ()
    matrix: tuple[MatrixRow, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The comparison as a JSON object; keys are the names of the fields.

        What is about episodes is in it only if there are some. The matrix has verdicts only.
        """
        document = asdict(replace(self, matrix=()))
        document["matrix"] = [each.to_json() for each in self.matrix]
        for name in ("settings", "episodes"):
            if not document[name]:
                del document[name]
        return document


def compare_loaded(
    runs: Sequence[LoadedRun],
    method: Method = DEFAULT_METHOD,
    *,
    on_pair: Callable[[], None] = lambda: None,
) -> RunComparison:
    """Compares runs with each other, task by task.

    Args:
        runs: at least two, on the same suite.
        method: confidence, resamples and seed.
        on_pair: called before each pair; what it raises ends the comparison.

    Raises:
        UsageError: fewer than two runs, runs of different suites, or no task in common.
    """
    if len(runs) < 2:
        raise UsageError("there is nothing to compare: give at least two runs")
    _check_same_suite(runs)
    names = _names(runs)
    scored = [list(_scored(run.submissions)) for run in runs]
    scores = [task_scores(each) for each in scored]
    notes = _notes(names, runs)
    common = _common(scores)
    if by_phrasings := not common:
        joined = [
            by_phrasing(each, _phrasings(run)) for each, run in zip(scores, runs, strict=True)
        ]
        scores = [each for each in joined if each is not None]
        common = _common(scores) if len(scores) == len(runs) else []
        notes.append(_PHRASINGS_NOTE)
    if not common:
        raise UsageError("the runs have no scored task in common")
    every = {task for score in scores for task in score.soft}
    compared = Common(frozenset(common), by_phrasings)
    drafts = []
    for one, two in combinations(range(len(runs)), 2):
        on_pair()
        drafts.append(
            compare_pair(names[one], names[two], common, scores[one], scores[two], method)
        )
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
        notes=tuple(notes),
        settings=setting_rows(names, runs, scored, compared, method),
        episodes=compare_episodes(names, runs, compared, method),
        matrix=() if by_phrasings else task_matrix(runs, common),
    )


def _scored(submissions: Iterable[LoadedSubmission]) -> Iterator[SubmissionScore]:
    for submission in submissions:
        found = [submission.results.get(number) for number in submission.cases]
        verdicts = [None if result is None else result.verdict for result in found]
        yield score_submission(submission.task_id, submission.sample, verdicts)


def _common(scores: Sequence[TaskScores]) -> list[str]:
    if not scores:
        return []
    return [task for task in scores[0].soft if all(task in score.soft for score in scores)]


def _phrasings(run: LoadedRun) -> dict[str, Phrasing]:
    tasks = (submission.task for submission in run.submissions)
    return {task.id: task.phrasing for task in tasks if task is not None and task.phrasing}


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


def _run_scores(
    name: str, run: LoadedRun, scores: TaskScores, common: Sequence[str], method: Method
) -> RunScores:
    recalc = run.run.get("recalc")
    inference = run.run.get("inference") or InferenceIdentity()
    content = inference.get("content") or PromptContent()
    return RunScores(
        name=name,
        profile=run.run.get("profile"),
        recalc=None if recalc is None else recalc.get("mode"),
        model=served_model(run.run),
        soft_restriction=_interval([scores.soft[task] for task in common], method),
        hard_restriction=_interval([scores.hard[task] for task in common], method),
        tasks=len(scores.soft),
        rounds=inference.get("rounds"),
        prompt_rows=content.get("rows"),
        departures=departures(run.run, by_hand=len(run.overrides.applied)),
    )


def _interval(values: Sequence[float], method: Method) -> Estimate:
    return mean_interval(
        values, confidence=method.confidence, resamples=method.resamples, seed=method.seed
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
        len(run.submissions) > len({submission.task_id for submission in run.submissions})
        for run in runs
    ]
    if any(samples):
        notes.append(
            "several samples of a task are averaged; for McNemar's test a task is solved where "
            "more than half of its samples solved it"
        )
    return notes
