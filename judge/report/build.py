"""Builds the data of a report from a loaded run: a row for each submission, and the summaries.

Pure: the same records give the same report.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import median
from typing import cast

from judge.compare.registry import aspects_of
from judge.core.records.cases import CaseComparison, CaseRun
from judge.core.records.runs import RunDocument, SuiteIdentity
from judge.core.score import (
    ScoreColumn,
    SubmissionScore,
    best_samples,
)
from judge.core.statistics import CONFIDENCE, RESAMPLES, SEED, Estimate, mean_interval
from judge.core.task import Task
from judge.core.verdict import CaseResult, Phase, Verdict
from judge.grading.overrides import Overrides
from judge.report.breakdowns import (
    INSTRUCTION_TYPE,
    Division,
    Part,
    TaskFacts,
    aspect_divisions,
    divisions_for,
)
from judge.report.checklists import points_lines
from judge.report.counts import (
    DifferenceTally,
    chart_lines,
    difference_counts,
    scope_lines,
    share_lines,
    shares_of_tallies,
)
from judge.report.desktop.counts import classes_of, summarise_episodes
from judge.report.identity import departures
from judge.report.load import (
    LARGE_NOTE,
    MAX_EXCLUSIONS,
    MAX_SHOWN_CASES,
    LoadedRun,
    LoadedSubmission,
)
from judge.report.model import (
    REPORT_DATA_VERSION,
    Breakdown,
    CaseEntry,
    CaseSuspect,
    CertifiedSummary,
    DifferenceCount,
    Distribution,
    Exclusion,
    Group,
    Method,
    PhaseCount,
    ReportData,
    Scores,
    ScoresWithoutSuspects,
    SuspectsSummary,
    TableColumn,
    TableOfScores,
    TaskEntry,
    VerdictCount,
)
from judge.report.paired import compare_phrasings
from judge.report.set_aside import CertifiedTally, SuspectsTally, certified_label, level_label
from judge.report.shapes import UNKNOWN_FILES, CaseFiles, CaseFilesByCase
from judge.report.tally import RunTally, TaskGroup, TaskTally, disagrees_with_published
from judge.report.tools import summarise_tools, tools_lines
from judge.suites import Suite
from judge.suites.spreadsheetbench import FORMAT as SPREADSHEETBENCH
from judge.suspects.decisions import Suspicions


def task_entry(
    submission: LoadedSubmission,
    score: SubmissionScore,
    overrides: Overrides,
    files: CaseFilesByCase,
    groups: Mapping[str, str],
    suspicions: Suspicions | None = None,
) -> TaskEntry:
    """The row of one submission.

    Args:
        submission: the submission with its results.
        score: its scores.
        overrides: changes by hand.
        files: sizes and shapes of the workbooks.
        groups: breakdown key -> group key of its task.
        suspicions: golds that may be at fault.
    """
    cases = tuple(
        _case_entry(
            submission,
            number,
            overrides,
            files.get((submission.task_id, number), UNKNOWN_FILES),
            case_suspects(suspicions, submission.task_id, number),
        )
        for number in submission.cases
    )
    usage = submission.usage
    walls = [case.wall_s for case in cases if case.wall_s is not None]
    kinds = {kind: None for case in cases for kind in case.difference_counts}
    return TaskEntry(
        task_id=submission.task_id,
        sample=submission.sample,
        instruction_type=submission.instruction_type,
        instruction=None if submission.task is None else submission.task.instruction,
        answer_position=None
        if submission.task is None
        else submission.task.details.get("answer_position"),
        soft_restriction=score.soft,
        hard_restriction=score.hard,
        groups=groups,
        cases=cases,
        difference_kinds=tuple(kinds),
        official_disagrees=any(case.official_disagrees for case in cases),
        model=usage.model,
        setting=usage.setting,
        rounds=usage.rounds,
        prompt_tokens=_whole(usage.prompt_tokens),
        completion_tokens=_whole(usage.completion_tokens),
        cost_usd=_float(usage.cost_usd),
        inference_s=_float(usage.seconds),
        run_wall_s=sum(walls) if walls else None,
        peak_memory_bytes=max(
            (case.peak_memory_bytes for case in cases if case.peak_memory_bytes is not None),
            default=None,
        ),
    )


def case_suspects(
    suspicions: Suspicions | None, task_id: str, case: int
) -> tuple[CaseSuspect, ...]:
    """The reasons to doubt the gold of a case."""
    if suspicions is None:
        return ()
    return tuple(
        CaseSuspect(
            sign=reviewed.suspect.sign,
            certainty=reviewed.certainty.value,
            status=reviewed.status.value,
            whole_task=reviewed.suspect.case is None,
            summary=reviewed.suspect.summary,
            why=reviewed.suspect.why,
            decisions=tuple(
                f"{decision.finding}, by {decision.by} on {decision.at[:10]}: {decision.reason}"
                for decision in reviewed.decisions
            ),
            seen=reviewed.suspect.seen,
            runs=reviewed.suspect.runs,
        )
        for reviewed in suspicions.of_case(task_id, case)
    )


def _case_entry(
    submission: LoadedSubmission,
    number: int,
    overrides: Overrides,
    files: CaseFiles,
    suspects: tuple[CaseSuspect, ...],
) -> CaseEntry:
    result = submission.results.get(number)
    automatic = submission.automatic.get(number)
    run = CaseRun() if automatic is None else automatic.run
    comparison = CaseComparison() if automatic is None else automatic.comparison
    timings_s = {} if automatic is None else automatic.timings_s
    return CaseEntry(
        case=number,
        verdict=None if result is None else result.verdict.value,
        phase=None if result is None else result.verdict.phase.value,
        cause="not run" if result is None else result.cause,
        manual=overrides.applied.get((submission.task_id, submission.sample, number)),
        cpu_s=_float(run.get("cpu_s")),
        wall_s=_float(run.get("wall_s")),
        recalculation_s=timings_s.get("recalculation"),
        comparison_s=timings_s.get("comparison"),
        peak_memory_bytes=run.get("peak_memory_bytes"),
        input_bytes=files.input_bytes,
        output_bytes=run.get("output_bytes"),
        input_rows=None if files.shape is None else files.shape.rows,
        input_columns=None if files.shape is None else files.shape.columns,
        answer_cells=files.answer_cells,
        differing_cells=comparison.get("differing_cells"),
        computed_cells=comparison.get("computed_cells", {}).get("output"),
        engines=tuple(comparison.get("engines", ())),
        difference_counts=difference_counts(comparison),
        official_equal=comparison.get("official_equal"),
        official_disagrees=automatic is not None
        and disagrees_with_published(automatic, automatic.verdict),
        notes=tuple(comparison.get("notes", ())),
        output_sha256=run.get("output_sha256"),
        suspects=suspects,
        episode=submission.episodes.get(number),
        items=tuple(comparison.get("items", ())),
        damage=comparison["collateral"].get("damage") if "collateral" in comparison else None,
        dynamic=comparison["dynamic"]["class"] if "dynamic" in comparison else None,
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


_Number = float | int | None


def _ended(case: CaseEntry, name: str) -> _Number:
    """Returns one measurement of a finished episode."""
    episode = case.episode
    number: _Number = None if episode is None or not episode.ended else getattr(episode, name)
    return number


_OF_CASES: tuple[tuple[str, str, Callable[[CaseEntry], _Number]], ...] = (
    ("run_wall_s", "Run, wall time (s)", lambda case: case.wall_s),
    ("run_cpu_s", "Run, processor time (s)", lambda case: case.cpu_s),
    ("peak_memory_bytes", "Run, peak memory (bytes)", lambda case: case.peak_memory_bytes),
    ("recalculation_s", "Recalculation (s)", lambda case: case.recalculation_s),
    ("comparison_s", "Comparison (s)", lambda case: case.comparison_s),
    ("episode_turns", "Turns of an episode", lambda case: _ended(case, "turns")),
    ("episode_steps", "Actions of an episode", lambda case: _ended(case, "steps")),
    ("episode_s", "Episode (s)", lambda case: _ended(case, "seconds")),
)
_OF_TASKS: tuple[tuple[str, str, Callable[[TaskEntry], _Number]], ...] = (
    ("rounds", "Rounds", lambda task: task.rounds),
    ("prompt_tokens", "Tokens of the prompts", lambda task: task.prompt_tokens),
    ("completion_tokens", "Tokens of the replies", lambda task: task.completion_tokens),
    ("cost_usd", "Cost (US dollars)", lambda task: task.cost_usd),
    ("inference_s", "Chat model (s)", lambda task: task.inference_s),
)
_WITHOUT_SUM = frozenset({"peak_memory_bytes"})


class Measured:
    """Measurements, collected submission by submission; eight bytes for each number."""

    def __init__(self) -> None:
        self._of_cases = [array("d") for _ in _OF_CASES]
        self._of_tasks = [array("d") for _ in _OF_TASKS]

    def add(self, task: TaskEntry) -> None:
        """Adds a submission with its cases."""
        for numbers, (_, _, read_task) in zip(self._of_tasks, _OF_TASKS, strict=True):
            if (number := read_task(task)) is not None:
                numbers.append(number)
        for case in task.cases:
            for numbers, (_, _, read_case) in zip(self._of_cases, _OF_CASES, strict=True):
                if (number := read_case(case)) is not None:
                    numbers.append(number)

    def distributions(self) -> tuple[Distribution, ...]:
        """The distribution of each quantity that was measured."""
        cases = zip(_OF_CASES, self._of_cases, strict=True)
        tasks = zip(_OF_TASKS, self._of_tasks, strict=True)
        distributions = [
            _distribution(key, label, "case", numbers) for (key, label, _), numbers in cases
        ]
        distributions += [
            _distribution(key, label, "task", numbers) for (key, label, _), numbers in tasks
        ]
        return tuple(distribution for distribution in distributions if distribution is not None)


def _distribution(key: str, label: str, per: str, numbers: Iterable[float]) -> Distribution | None:
    ordered = sorted(numbers)
    if not ordered:
        return None
    total = math.fsum(ordered)
    return Distribution(
        key=key,
        label=label,
        per=per,
        count=len(ordered),
        total=None if key in _WITHOUT_SUM else total,
        mean=total / len(ordered),
        median=median(ordered),
        # The smallest number that at least 95 % do not exceed.
        p95=ordered[math.ceil(0.95 * len(ordered)) - 1],
        maximum=ordered[-1],
    )


def method_of(*, seed: int | None = None, resamples: int | None = None) -> Method:
    """The default method with the given seed and number of resamples."""
    return Method(
        confidence=CONFIDENCE,
        resamples=RESAMPLES if resamples is None else resamples,
        seed=SEED if seed is None else seed,
    )


DEFAULT_METHOD = method_of()


def build_report_data(
    run: LoadedRun, files: CaseFilesByCase, method: Method = DEFAULT_METHOD
) -> ReportData:
    """Builds the data of a report.

    Args:
        run: the run, from :func:`judge.report.load.load_run`.
        files: its workbooks, from :func:`judge.report.shapes.inspect_files`.
        method: confidence, resamples and seed of the intervals.
    """
    counted = _count(run, files)
    tools = summarise_tools(run, counted.submissions)
    tally, rows, facts = counted.tally, counted.rows, counted.facts
    kinds = _instruction_types(facts.values())
    return ReportData(
        schema_version=REPORT_DATA_VERSION,
        name=run.name,
        run=_identity(run.run),
        overall=_scores(tally.all_tasks(), method),
        by_instruction_type=_breakdown(kinds, tally.tasks, facts, method),
        breakdowns=tuple(
            _breakdown(division, tally.tasks, facts, method) for division in counted.divisions
        ),
        tables=_tables(run.suite, tally.tasks.values(), method),
        phases=_phases(tally),
        differences=_differences(rows.differences),
        exclusions=tuple(
            islice(_exclusions(run.submissions), MAX_EXCLUSIONS if run.is_large else None)
        ),
        manual_verdicts=tally.by_hand,
        stale_manual_verdicts=len(run.overrides.stale),
        official_disagreements=tally.official_disagreements,
        measures=rows.measured.distributions(),
        usage=tally.usage.report(),
        repeated=tally.repeated_runs(),
        tasks=tuple(rows.kept),
        tasks_without_submission=run.tasks_without_submission,
        method=method,
        notes=(*_notes(run, tally), *(tools_lines(tools) if tools is not None else ())),
        departures=departures(run.run, by_hand=tally.by_hand),
        suspects=None if tally.suspects is None else _suspects(tally.suspects, method),
        certified=None if tally.certified is None else _certified(tally.certified, method),
        phrasings=compare_phrasings(
            {task_id: task.scores for task_id, task in tally.tasks.items()},
            {
                submission.task_id: submission.task
                for submission, _ in counted.submissions
                if submission.task is not None
            },
            facts,
            aspect_divisions([fact.aspects for fact in facts.values()]),
            method,
        ),
        episodes=summarise_episodes(run.run, counted.submissions, classes_of(run.suite), method),
        tools=tools,
    )


@dataclass(frozen=True, slots=True)
class _Counted:
    """A run whose submissions have been counted.

    Attributes:
        tally: its numbers.
        rows: its rows and their measurements.
        submissions: the submissions that are in the scores, each with its scores.
        facts: task id -> the facts that decide which groups the task belongs to.
        divisions: the ways in which the tasks are divided into groups.
    """

    tally: RunTally
    rows: _Rows
    submissions: Sequence[tuple[LoadedSubmission, SubmissionScore]]
    facts: Mapping[str, TaskFacts]
    divisions: Sequence[Division]


class _Rows:
    """The rows of a report: always measured, and kept unless there are too many.

    Args:
        keep: whether the rows are kept.
    """

    def __init__(self, *, keep: bool) -> None:
        self._keep = keep
        self.kept: list[TaskEntry] = []
        self.measured = Measured()
        self.differences = DifferenceTally()

    def add(self, entry: TaskEntry, results: Iterable[CaseResult]) -> None:
        """Adds the row of a submission, and the results of its cases."""
        self.measured.add(entry)
        for result in results:
            self.differences.add(result)
        if self._keep:
            self.kept.append(entry)


def _count(run: LoadedRun, files: CaseFilesByCase) -> _Counted:
    """Counts the submissions of a run one by one."""
    scored = [(submission, submission.score()) for submission in run.submissions]
    best = best_samples(score for _, score in scored) if run.run.get("best_of") else None
    facts = _task_facts(run.submissions, files)
    divisions = divisions_for(list(facts.values()), of_paper=_is_of_the_paper(run))
    tally = RunTally(run.overrides, run.suspicions, run.run, run.marks)
    rows = _Rows(keep=not run.is_large)
    counted = []
    for submission, score in scored:
        results = list(submission.results.values())
        counts = best is None or submission.key in best
        tally.add(submission.tallied, score, results, counts=counts)
        tally.usage.add(submission.usage)
        groups = _groups(divisions, facts[submission.task_id])
        entry = task_entry(submission, score, run.overrides, files, groups, run.suspicions)
        if tally.certified is not None:
            entry = replace(entry, grade=tally.certified.certified["grades"].get(entry.task_id))
        rows.add(entry, results)
        if counts:
            counted.append((submission, score))
    return _Counted(tally, rows, counted, facts, divisions)


def _notes(run: LoadedRun, tally: RunTally) -> Iterator[str]:
    """Notes that a reader of the report needs."""
    yield from run.notes
    if run.is_large:
        yield LARGE_NOTE.format(cases=tally.cases, most=MAX_SHOWN_CASES)
    yield from scope_lines(tally.scope.report())
    if any(task.shares.cases for task in tally.tasks.values()):
        groups = {"Overall": list(tally.tasks.values()), **tally.by_kind()}
        yield from share_lines(
            {
                name: shares_of_tallies([task.shares for task in tasks])
                for name, tasks in groups.items()
            }
        )
    yield from chart_lines(tally.charts.report())
    if tally.points is not None:
        yield from points_lines(tally.points.report())


def _identity(run: RunDocument) -> RunDocument:
    """The identity of the run, without paths on the machine that made it."""
    identity: RunDocument = {
        # Every report has these fields; they are empty if the run lacks them.
        "model": None,
        "setting": None,
        "profile": None,
        "sandbox": None,
        "judge_version": None,
        "created": None,
        "suite": cast("SuiteIdentity", {}),
        "style": [],
        "recalc": {},
        "limits": {},
        "host": {},
        **run,
    }
    identity.pop("solutions", None)
    identity.pop("outputs", None)
    if (suite := identity["suite"]) is not None:
        suite = suite.copy()
        suite.pop("source", None)
        suite.pop("certified", None)  # reported in a separate section
        identity["suite"] = suite
    return identity


# -- scores ---------------------------------------------------------------------------------------


def _scores(group: TaskGroup, method: Method) -> Scores:
    """The numbers of a group of tasks, with intervals for its scores."""
    score = group.score()
    return Scores(
        soft_restriction=_estimate((task.soft for task in group.tasks), method),
        hard_restriction=_estimate((task.hard for task in group.tasks), method),
        tasks=score.tasks,
        cases=score.cases,
        all_tasks=score.all_tasks,
        all_cases=score.all_cases,
        soft_of_all=score.soft_of_all,
        hard_of_all=score.hard_of_all,
        verdicts=group.verdicts,
    )


def _estimate(tasks: Iterable[Sequence[float | None]], method: Method) -> Estimate:
    """The mean over tasks with its interval; the samples of a task are averaged first."""
    scored = ([score for score in samples if score is not None] for samples in tasks)
    return mean_interval(
        [sum(samples) / len(samples) for samples in scored if samples],
        confidence=method.confidence,
        resamples=method.resamples,
        seed=method.seed,
    )


def _suspects(suspects: SuspectsTally, method: Method) -> SuspectsSummary:
    return SuspectsSummary(
        without=tuple(
            ScoresWithoutSuspects(
                certainty=least.value,
                about="" if about is None else about.value,
                label=level_label(about, least),
                set_aside_cases=level.set_aside_cases,
                set_aside_tasks=len(level.set_aside_tasks),
                scores=_scores(level.group(), method),
            )
            for about, least, level in suspects.shown()
        ),
        by_status=suspects.by_status(),
    )


def _certified(certified: CertifiedTally, method: Method) -> CertifiedSummary:
    return CertifiedSummary(
        name=certified.certified["name"],
        label=certified_label(certified.certified["applied"]),
        grades=dict(certified.grades),
        scores=_scores(certified.level.group(), method),
    )


# -- breakdowns -----------------------------------------------------------------------------------


def _task_facts(
    submissions: Sequence[LoadedSubmission], files: CaseFilesByCase
) -> dict[str, TaskFacts]:
    facts: dict[str, TaskFacts] = {}
    for submission in submissions:
        if submission.task_id in facts:
            continue
        first = files.get((submission.task_id, submission.cases[0]), UNKNOWN_FILES)
        facts[submission.task_id] = TaskFacts(
            instruction_type=submission.instruction_type,
            shape=first.shape,
            input_bytes=first.input_bytes,
            answer_cells=first.answer_cells,
            groups={} if submission.task is None else submission.task.groups,
            rounds=submission.usage.rounds,
            has_workbook=submission.task is None or submission.task.answer.is_file,
            aspects=() if submission.task is None else aspects_of(submission.task.checker),
        )
    return facts


def _is_of_the_paper(run: LoadedRun) -> bool:
    """Whether the SpreadsheetBench paper reports on the suite of a run."""
    recorded = run.run.get("suite")
    name = run.suite.format if run.suite else recorded.get("format") if recorded else None
    return name in SPREADSHEETBENCH.names


def _instruction_types(facts: Iterable[TaskFacts]) -> Division:
    """The breakdown by instruction type, with the types that occur."""
    present = sorted({fact.instruction_type for fact in facts})
    return replace(INSTRUCTION_TYPE, parts=tuple(Part(name, name) for name in present))


def _groups(divisions: Sequence[Division], facts: TaskFacts) -> dict[str, str]:
    """Key of a division -> the key of the group that a task is in."""
    placed = {division.key: division.part_of(facts) for division in (INSTRUCTION_TYPE, *divisions)}
    return {key: group for key, group in placed.items() if group is not None}


def _breakdown(
    division: Division,
    tallies: Mapping[str, TaskTally],
    facts: Mapping[str, TaskFacts],
    method: Method,
) -> Breakdown:
    group_of = {task_id: division.part_of(fact) for task_id, fact in facts.items()}
    placed = sum(group is not None for group in group_of.values())
    groups = []
    for part in division.parts:
        members = {task_id for task_id, group in group_of.items() if group == part.key}
        if not members and not division.from_paper:
            continue
        inside = (tally for task_id, tally in tallies.items() if task_id in members)
        groups.append(
            Group(
                key=part.key,
                label=part.label,
                share=len(members) / placed if placed else None,
                scores=_scores(TaskGroup.of(inside), method),
                paper_share=part.paper_share,
            )
        )
    return Breakdown(
        key=division.key,
        label=division.label,
        rule=division.rule,
        groups=tuple(groups),
        unknown_tasks=len(group_of) - placed,
        from_paper=division.from_paper,
    )


def _tables(
    suite: Suite | None, tallies: Collection[TaskTally], method: Method
) -> tuple[TableOfScores, ...]:
    """The tables that the suite defines; empty if the suite is not available."""
    if suite is None:
        return ()
    return tuple(
        TableOfScores(
            table.title,
            tuple(_column(column, suite.whole.tasks, tallies, method) for column in table.columns),
        )
        for table in suite.tables
    )


def _column(
    column: ScoreColumn, tasks: Sequence[Task], tallies: Iterable[TaskTally], method: Method
) -> TableColumn:
    inside = (tally for tally in tallies if column.holds(tally.task.groups))
    scores = _scores(TaskGroup.of(inside), method)
    count = sum(column.holds(task.groups) for task in tasks)
    accepted = (scores.hard_of_all or 0.0) * scores.all_tasks
    return TableColumn(
        heading=column.heading,
        label=column.label,
        suite_tasks=count,
        score_of_suite=accepted / count if count else None,
        scores=scores,
    )


# -- verdicts, differences, exclusions -------------------------------------------------------------


def _phases(tally: RunTally) -> tuple[PhaseCount, ...]:
    counts, cases = tally.verdicts(), tally.cases
    phases = []
    for phase in Phase:
        verdicts = tuple(
            VerdictCount(
                verdict=verdict.value,
                description=verdict.description,
                phase=phase.value,
                is_scored=verdict.is_scored,
                cases=counts[verdict],
                share=counts[verdict] / cases,
            )
            for verdict in Verdict
            if verdict.phase is phase and counts[verdict]
        )
        total = sum(verdict.cases for verdict in verdicts)
        phases.append(PhaseCount(phase.value, total, total / cases, verdicts))
    return tuple(phases)


def _differences(counted: DifferenceTally) -> tuple[DifferenceCount, ...]:
    """The classes of differences, most common first."""
    return tuple(
        DifferenceCount(
            kind, cases, counted.only[kind], counted.cells[kind], cases / counted.different
        )
        for kind, cases in sorted(counted.cases.items(), key=lambda item: (-item[1], item[0]))
    )


def _exclusions(submissions: Sequence[LoadedSubmission]) -> Iterable[Exclusion]:
    for submission in submissions:
        for number in submission.cases:
            result = submission.results.get(number)
            if result is None:
                yield Exclusion(submission.task_id, submission.sample, number, None, "not run")
            elif not result.verdict.is_scored:
                code = result.verdict.value
                yield Exclusion(submission.task_id, submission.sample, number, code, result.cause)
