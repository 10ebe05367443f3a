"""Compares runs on the same tasks: which run is better, by how much, how certainly, and where.

The comparison is available as numbers, as Markdown and as lines of text. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

from judge.compare.cells.render import has_values, is_uncomputed, place_of, shown
from judge.console import counted
from judge.core.records.cases import DifferenceRecord
from judge.core.records.runs import InferenceIdentity, PromptContent, served_model
from judge.core.score import scores_by_task
from judge.core.statistics import Estimate, fewest_one_sided, holm, mean_interval
from judge.core.task import Phrasing
from judge.core.verdict import CaseResult, Verdict
from judge.errors import UsageError
from judge.report.build import DEFAULT_METHOD
from judge.report.counts import ScopeTally
from judge.report.desktop.counts import CommonTasks, compare_episodes, setting_rows
from judge.report.desktop.episodes import EpisodePair, SettingRow
from judge.report.identity import DEPARTS, departures
from judge.report.load import LoadedRun
from judge.report.markdown import (
    escape,
    markdown_list,
    markdown_table,
    points,
    settings_table,
    with_interval,
)
from judge.report.model import Method, RunPair
from judge.report.paired import POWER, TaskMeans, by_phrasing, compare_pair
from judge.report.tools import (
    ToolsSummary,
    cost_in_words,
    counts_in_words,
    percent_in_words,
    seconds_in_words,
    summarise_tools,
    tokens_in_words,
)

MAX_TASKS = 2_000
"""How many tasks a matrix lists; those on which the runs disagree come first."""

MAX_CELLS_OF_CASE = 20
MAX_CELLS = 20_000
"""How many cells are shown of one case, and of all cases together."""

_MAX_VALUE_WIDTH = 60

AGREES = "agrees"
NOT_RECORDED = "not on record"
NO_VALUE = "no value"


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """One cell of an answer that at least one run has wrong.

    Attributes:
        where: sheet and address.
        expected: the gold's value as text.
        outputs: each run's value as text, or one of ``AGREES`` and ``NOT_RECORDED``; None for a run
            without a compared output.
    """

    where: str
    expected: str
    outputs: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class MatrixCase:
    """One test case of a task.

    Attributes:
        sample: 0-based number among several solutions of the task.
        case: 1-based number of the test case.
        verdicts: the code of each run; None for a run without one.
        cells: the first cells that a run has wrong.
        more: further cells that differ in some run.
    """

    sample: int
    case: int
    verdicts: tuple[str | None, ...]
    cells: tuple[MatrixCell, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A task in all of the compared runs.

    Attributes:
        task: its id.
        disagree: whether the runs have different verdicts on some case.
        cases: its cases, by sample and number.
    """

    task: str
    disagree: bool
    cases: tuple[MatrixCase, ...]

    def to_json(self) -> dict[str, Any]:
        """The row as JSON, without the cells, which only pages show."""
        return {
            "task": self.task,
            "disagree": self.disagree,
            "cases": [
                {"sample": case.sample, "case": case.case, "verdicts": list(case.verdicts)}
                for case in self.cases
            ],
        }


def task_matrix(runs: Sequence[LoadedRun], tasks: Iterable[str]) -> tuple[MatrixRow, ...]:
    """Verdicts of several runs on the same tasks; tasks on which they disagree come first.

    Args:
        runs: the runs; details of single cells come from their records.
        tasks: the tasks that all of them have, in the order of the suite.
    """
    results = [_results(run) for run in runs]
    keys: dict[str, set[tuple[int, int]]] = {task: set() for task in tasks}
    for of_run in results:
        for task, sample, case in of_run:
            if task in keys:
                keys[task].add((sample, case))
    rows = [_row(task, sorted(cases), results) for task, cases in keys.items()]
    # Sorting is stable: each half stays in the order of the suite.
    rows.sort(key=lambda row: not row.disagree)
    budget = MAX_CELLS
    filled = []
    for row in rows[:MAX_TASKS]:
        cases = tuple(_with_cells(row.task, case, results, budget) for case in row.cases)
        budget -= sum(len(case.cells) for case in cases)
        filled.append(MatrixRow(row.task, row.disagree, cases))
    return tuple(filled)


_Results = Mapping[tuple[str, int, int], CaseResult]


def _results(run: LoadedRun) -> dict[tuple[str, int, int], CaseResult]:
    return {
        (submission.task_id, submission.sample, number): result
        for submission in run.submissions
        for number, result in submission.results.items()
    }


def _row(task: str, cases: Sequence[tuple[int, int]], results: Sequence[_Results]) -> MatrixRow:
    matrix_cases = []
    for sample, case in cases:
        of_runs = [of_run.get((task, sample, case)) for of_run in results]
        verdicts = tuple(None if result is None else result.verdict.value for result in of_runs)
        matrix_cases.append(MatrixCase(sample, case, verdicts))
    disagree = any(len(set(case.verdicts)) > 1 for case in matrix_cases)
    return MatrixRow(task, disagree, tuple(matrix_cases))


def _with_cells(
    task: str, case: MatrixCase, results: Sequence[_Results], budget: int
) -> MatrixCase:
    """A case with the cells that a run has wrong."""
    of_runs = [of_run.get((task, case.sample, case.case)) for of_run in results]
    cells, more = wrong_cells(of_runs, max(0, min(MAX_CELLS_OF_CASE, budget)))
    return MatrixCase(case.sample, case.case, case.verdicts, cells, more)


def wrong_cells(
    results: Sequence[CaseResult | None], most: int
) -> tuple[tuple[MatrixCell, ...], int]:
    """The cells that a result has wrong, in the order of the record.

    Args:
        results: the result of each run on one case; None for a run without one.
        most: greatest number of cells.

    Returns:
        The cells, and how many more there are.
    """
    recorded = [_differences(result) for result in results]
    first_differences: dict[str, DifferenceRecord] = {}
    for differences in recorded:
        for cell, difference in differences.items():
            first_differences.setdefault(cell, difference)
    listed = list(first_differences.items())[:most]
    cells = tuple(
        MatrixCell(
            where=cell,
            expected=shown(difference["expected"], width=_MAX_VALUE_WIDTH),
            outputs=tuple(
                _output(result, differences, cell)
                for result, differences in zip(results, recorded, strict=True)
            ),
        )
        for cell, difference in listed
    )
    unlisted = max((_differing(result) for result in results), default=0) - len(cells)
    return cells, max(0, unlisted)


def _differences(result: CaseResult | None) -> dict[str, DifferenceRecord]:
    if result is None:
        return {}
    listed = result.comparison.get("differences", ())
    return {
        place_of(difference): difference
        for difference in listed
        if difference["cell"] and has_values(difference)
    }


def _differing(result: CaseResult | None) -> int:
    return 0 if result is None else result.comparison.get("differing_cells") or 0


def _output(
    result: CaseResult | None, differences: Mapping[str, DifferenceRecord], cell: str
) -> str | None:
    if result is None or "equal" not in result.comparison:
        return AGREES if result is not None and result.verdict is Verdict.AC else None
    difference = differences.get(cell)
    if difference is not None:
        if is_uncomputed(difference):
            return NO_VALUE
        return shown(difference["actual"], width=_MAX_VALUE_WIDTH)
    # Records list only the first differences: an unlisted cell agrees if the list is complete.
    everything = _differing(result) <= len(result.comparison.get("differences", ()))
    return AGREES if everything else NOT_RECORDED


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
        model: the chat model, if known.
        soft_restriction: soft score with its interval.
        hard_restriction: hard score with its interval.
        tasks: tasks with a scored case in this run, whether the other runs have them or not.
        rounds: how many times the chat model was allowed to answer, if known.
        prompt_rows: rows of each sheet that its prompt showed, if known.
        departures: settings that affected its verdicts and depart from the published suite.
        collateral: share of its common tasks with collateral damage; None if it was not examined.
        dynamic: share of its accepted measurable answers that follow their inputs; None if it was
            not examined.
        tools: its episodes with tools on the common tasks; None if it has no such episodes.
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
    collateral: Estimate | None = None
    dynamic: Estimate | None = None
    tools: ToolsSummary | None = None


FIGURES = {"collateral": "damaged tasks", "dynamic": "live answers"}
"""Field of a run -> the heading of its column, which is shown if some run has the figure."""


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Several runs compared with each other.

    Attributes:
        schema_version: the schema version of the JSON form.
        suite: name of their suite.
        suite_digest: digest of their suite.
        runs: the runs on the common tasks, in the order in which they were given.
        pairs: every pair of runs; the pairs with the first run come first.
        tasks: common tasks.
        left_out: tasks without a scored case in some of the runs.
        fewest_one_sided: number of tasks, solved by only one of two runs, from which McNemar's test
            can find a difference.
        power: the power that the smallest differences are computed for.
        method: confidence, resamples and seed of the bootstrap.
        notes: notes for the reader.
        settings: if a run has desktop episodes, a table like those in the papers: the setting of
            each run, and its success by class of tasks.
        episodes: for each pair of these runs, turns, actions and time of the episodes.
        matrix: the verdicts of all runs on each common task, tasks on which they disagree first;
            empty if phrasings of the tasks are compared.
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

    @property
    def figures(self) -> tuple[str, ...]:
        """The names in :data:`FIGURES` that at least one run has a figure for."""
        return tuple(
            name for name in FIGURES if any(getattr(run, name) is not None for run in self.runs)
        )

    def to_json(self) -> dict[str, Any]:
        """The comparison as a JSON object; keys are the names of the fields.

        Fields about episodes are in it only if there are episodes. The matrix has only verdicts.
        """
        document = asdict(replace(self, matrix=()))
        document["matrix"] = [row.to_json() for row in self.matrix]
        for run in document["runs"]:
            for name in (*FIGURES, "tools"):
                if run[name] is None:
                    del run[name]
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
        on_pair: called before each pair; an exception that it raises ends the comparison.

    Raises:
        UsageError: fewer than two runs, runs of different suites, or no task in common.
    """
    if len(runs) < 2:
        raise UsageError("there is nothing to compare: give at least two runs")
    _check_same_suite(runs)
    names = _names(runs)
    scored = [[submission.score() for submission in run.submissions] for run in runs]
    scores = [TaskMeans.of(scores_by_task(of_run)) for of_run in scored]
    notes = _notes(names, runs)
    common = _common(scores)
    if by_phrasings := not common:
        joined = [
            by_phrasing(of_run, _phrasings(run)) for of_run, run in zip(scores, runs, strict=True)
        ]
        scores = [of_run for of_run in joined if of_run is not None]
        common = _common(scores) if len(scores) == len(runs) else []
        notes.append(_PHRASINGS_NOTE)
    if not common:
        raise UsageError("the runs have no scored task in common")
    every = {task for score in scores for task in score.soft}
    compared = CommonTasks(frozenset(common), by_phrasings)
    pairs = []
    for one, two in combinations(range(len(runs)), 2):
        on_pair()
        pair = compare_pair(names[one], names[two], common, scores[one], scores[two], method)
        pairs.append(pair)
    suite = runs[0].run.get("suite")
    return RunComparison(
        schema_version=COMPARISON_VERSION,
        suite=None if suite is None else suite.get("name"),
        suite_digest=None if suite is None else suite.get("digest"),
        runs=tuple(
            _run_scores(name, run, of_run, common, method)
            for name, run, of_run in zip(names, runs, scores, strict=True)
        ),
        pairs=tuple(_adjusted(pairs)),
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


def _common(scores: Sequence[TaskMeans]) -> list[str]:
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
    """Folder names, or whole paths if two folders have the same name."""
    names = [run.name for run in runs]
    return names if len(set(names)) == len(names) else [str(run.path) for run in runs]


def _run_scores(
    name: str, run: LoadedRun, scores: TaskMeans, common: Sequence[str], method: Method
) -> RunScores:
    recalc = run.run.get("recalc")
    inference = run.run.get("inference") or InferenceIdentity()
    content = inference.get("content") or PromptContent()
    figures, tasks = ScopeTally(), set(common)
    for submission in run.submissions:
        if submission.task_id in tasks:
            for result in submission.results.values():
                figures.add(result)
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
        collateral=None if figures.collateral is None else figures.collateral.share(),
        dynamic=None if figures.dynamic is None else figures.dynamic.share(),
        tools=summarise_tools(
            run, ((one, one.score()) for one in run.submissions if one.task_id in tasks)
        ),
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
            "several samples of a task are averaged; for McNemar's test, a task counts as solved "
            "if more than half of its samples solved it"
        )
    return notes


# -- as text ---------------------------------------------------------------------------------------

_MAX_TASKS_OF_LINE = 12


def comparison_markdown(comparison: RunComparison) -> str:
    """The comparison as Markdown: scores, desktop episodes by setting, a list for each pair."""
    named = " and ".join(escape(run.name) for run in comparison.runs)
    scores = markdown_table(
        (
            *("run", "model", "profile", "recalc", "soft % [interval]", "hard % [interval]"),
            *(f"{heading} % [interval]" for heading in figure_headings(comparison)),
        ),
        [
            (
                *(escape(name or "-") for name in (run.name, run.model, run.profile, run.recalc)),
                with_interval(run.soft_restriction),
                with_interval(run.hard_restriction),
                *figure_cells(comparison, run),
            )
            for run in comparison.runs
        ],
    )
    head = markdown_list(map(escape, head_lines(comparison)))
    parts = [
        f"# {named}",
        *([head] if head else []),
        f"## Scores on {comparison.tasks} common tasks",
        scores,
    ]
    if (by_tools := tools_table(comparison)) is not None:
        headings, rows = by_tools
        shown = markdown_table([*map(escape, headings)], [[*map(escape, row)] for row in rows])
        parts += ["## By tool set", shown]
    if comparison.settings:
        how = (
            "Solved tasks, % [interval]; turns, actions and seconds are means of the episodes that "
            "ended."
        )
        parts += ["## Desktop episodes", settings_table(comparison.settings), how]
    for pair in comparison.pairs:
        heading, *lines = pair_lines(comparison, pair)
        parts += [f"## {escape(heading)}", markdown_list(escape(line) for line in lines)]
    parts += ["## Method", markdown_list(escape(line) for line in closing_lines(comparison))]
    return "\n\n".join(parts) + "\n"


def figure_headings(comparison: RunComparison) -> list[str]:
    """The headings of :data:`FIGURES`, each only if some run has the figure."""
    return [FIGURES[name] for name in comparison.figures]


def figure_cells(comparison: RunComparison, run: RunScores) -> list[str]:
    """The :data:`FIGURES` of a run with intervals, in the order of :func:`figure_headings`."""
    shares = (getattr(run, name) for name in comparison.figures)
    return ["-" if share is None else with_interval(share) for share in shares]


def tools_table(comparison: RunComparison) -> tuple[list[str], list[list[str]]] | None:
    """Headings and rows (one for each run) of a comparison by tool set; None if no run has tools.

    Differences are between the soft scores of a run and of the first run, in points.
    """
    if not any(run.tools is not None for run in comparison.runs):
        return None
    headings = [
        *("tools", "run", "model", "soft % [interval]", "hard % [interval]"),
        *(f"soft, against {comparison.runs[0].name} [interval]", "calls of an episode", "errors"),
        *("errors by kind", "tokens: requests + replies", "dollars", "seconds"),
        *(f"{heading} % [interval]" for heading in figure_headings(comparison)),
    ]
    return headings, [_tools_row(comparison, run) for run in comparison.runs]


def _tools_row(comparison: RunComparison, run: RunScores) -> list[str]:
    first = comparison.runs[0].name
    pairs = {(pair.first, pair.second): pair for pair in comparison.pairs}
    pair = pairs.get((first, run.name))
    cells = ["-"] * 6
    if run.tools is not None:
        figures = run.tools.overall
        cells = [
            f"{figures.calls_median:g} (median), {figures.calls_p90:g} (90 %)",
            percent_in_words(figures.error_share),
            counts_in_words(figures.errors),
            tokens_in_words(figures),
            cost_in_words(figures),
            seconds_in_words(figures),
        ]
    return [
        "-" if run.tools is None else f"{run.tools.tools} ({run.tools.answer})",
        run.name,
        run.model or "-",
        with_interval(run.soft_restriction),
        with_interval(run.hard_restriction),
        "-" if pair is None else points(pair.soft_difference),
        *cells,
        *figure_cells(comparison, run),
    ]


def pair_lines(comparison: RunComparison, pair: RunPair) -> list[str]:
    """The comparison of two runs: a heading, then lines with one or two numbers each.

    Args:
        comparison: the whole comparison.
        pair: one of its pairs.
    """
    hard = f"p = {_p(pair.p_hard)} (McNemar, exact)"
    soft = f"p = {_p(pair.soft_difference.p)} (paired cluster bootstrap)"
    if len(comparison.pairs) > 1:
        hard += f", {_p(pair.p_hard_holm)} after Holm"
        soft += f", {_p(pair.p_soft_holm)} after Holm"
    smallest = f"hard {_points(pair.smallest_hard)}, soft {_points(pair.smallest_soft)}"
    return [
        f"{pair.second} against {pair.first}, {counted(pair.tasks, 'task')}",
        f"hard {points(pair.hard_difference)}, {hard}",
        f"soft {points(pair.soft_difference)}, {soft}",
        f"solved by {pair.second} alone: {_tasks(pair.won)}",
        f"solved by {pair.first} alone: {_tasks(pair.lost)}",
        f"soft score higher on {len(pair.better)}, lower on {len(pair.worse)}",
        f"smallest difference that would be found: {smallest}",
        *(
            line
            for episode in comparison.episodes
            if (episode.first, episode.second) == (pair.first, pair.second)
            for line in _episode_lines(episode)
        ),
    ]


def head_lines(comparison: RunComparison) -> list[str]:
    """Settings that affected verdicts and depart from the published suite; often empty."""
    return [
        f"{run.name} {DEPARTS}: {departure}"
        for run in comparison.runs
        for departure in run.departures
    ]


def closing_lines(comparison: RunComparison) -> list[str]:
    """The method of a comparison, and notes for the reader."""
    method = comparison.method
    how = (
        f"{method.confidence:.0%} intervals, {method.resamples:,} resamples, seed {method.seed}; "
        f"smallest differences at a power of {comparison.power:.0%}, if as many tasks differ as "
        f"here. McNemar's test cannot find a difference below {comparison.fewest_one_sided} tasks "
        "that only one run solved."
    )
    lines = [how]
    if comparison.left_out:
        left_out = counted(comparison.left_out, "task")
        lines.append(f"without {left_out}, for which not every run has a score")
    return [*lines, *comparison.notes]


def _episode_lines(pair: EpisodePair) -> list[str]:
    lines = []
    for mean in pair.means:
        interval = ""
        if mean.low is not None and mean.high is not None:
            interval = f" [{mean.low:+.2f}, {mean.high:+.2f}]"
        unit = {"steps": "actions"}.get(mean.key, mean.key)
        lines.append(
            f"{unit} of an episode: {mean.second:.2f} against {mean.first:.2f}, "
            f"{mean.difference:+.2f}{interval}, {mean.tasks} tasks"
        )
    return lines


def _points(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.1f} points"


def _p(p: float) -> str:
    return f"{p:.2g}" if p < 0.001 else f"{p:.3f}"


def _tasks(tasks: tuple[str, ...]) -> str:
    if not tasks:
        return "none"
    shown = ", ".join(tasks[:_MAX_TASKS_OF_LINE])
    more = f" and {len(tasks) - _MAX_TASKS_OF_LINE} more" if len(tasks) > _MAX_TASKS_OF_LINE else ""
    return f"{len(tasks)} ({shown}{more})"
