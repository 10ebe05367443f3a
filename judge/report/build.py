"""From a loaded run to the data of its report. Pure: the same records give the same report."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import cast

from judge.compare.registry import aspects_of
from judge.core.records.runs import RunDocument, SuiteIdentity
from judge.core.score import (
    ScoreColumn,
    SubmissionScore,
    best_samples,
    score_group,
    score_submission,
    scores_by_task,
)
from judge.core.statistics import CONFIDENCE, RESAMPLES, SEED, Estimate, mean_interval
from judge.core.task import Task
from judge.core.verdict import CaseResult, Phase, Verdict, count_verdicts
from judge.report.breakdowns import (
    INSTRUCTION_TYPE,
    Division,
    Part,
    TaskFacts,
    aspect_divisions,
    divisions_for,
)
from judge.report.charts import chart_lines, charts_of
from judge.report.entries import difference_counts, task_entry
from judge.report.entry_model import TaskEntry
from judge.report.episode_counts import classes_of, summarise_episodes
from judge.report.files import UNKNOWN_FILES, CaseFilesByCase
from judge.report.identity import departures
from judge.report.large import LARGE_NOTE, MAX_EXCLUSIONS, MAX_SHOWN_CASES
from judge.report.load import LoadedRun, LoadedSubmission
from judge.report.measures import Measured
from judge.report.model import (
    REPORT_DATA_VERSION,
    DifferenceCount,
    Exclusion,
    Method,
    PhaseCount,
    ReportData,
    VerdictCount,
)
from judge.report.phrasings import compare_phrasings
from judge.report.repeats import repeated_runs
from judge.report.scope import scope_lines, scope_of
from judge.report.score_model import Breakdown, Group, Scores, TableColumn, TableOfScores
from judge.report.set_aside import LEVELS, cases_left, count_set_aside, count_standings
from judge.report.shares import has_shares, share_lines, shares_of
from judge.report.suspect_model import ScoresWithoutSuspects, SuspectsSummary
from judge.report.usage import usage_of
from judge.suites import Suite
from judge.suites.spreadsheetbench import FORMAT as SPREADSHEETBENCH
from judge.suspects.model import Certainty
from judge.suspects.standing import Suspicions


def method_of(*, seed: int | None = None, resamples: int | None = None) -> Method:
    """The usual method, with another seed or another number of resamples where one is given."""
    return Method(
        confidence=CONFIDENCE,
        resamples=RESAMPLES if resamples is None else resamples,
        seed=SEED if seed is None else seed,
    )


DEFAULT_METHOD = method_of()


def build_report_data(
    run: LoadedRun, files: CaseFilesByCase, method: Method = DEFAULT_METHOD
) -> ReportData:
    """Makes the data of a report.

    Args:
        run: the run, from :func:`judge.report.load.load_run`.
        files: its workbooks, from :func:`judge.report.files.inspect_files`.
        method: confidence, resamples and seed of the intervals.
    """
    scored = [(submission, _score(submission)) for submission in run.submissions]
    facts = _task_facts(run.submissions, files)
    divisions = divisions_for(list(facts.values()), of_paper=_is_of_the_paper(run))
    results = [result for submission in run.submissions for result in submission.results.values()]
    cases = sum(len(submission.cases) for submission in run.submissions)
    rows = _Rows(keep=not run.is_large)
    for each, score in scored:
        places = _places(divisions, facts[each.task_id])
        rows.add(task_entry(each, score, run.overrides, files, places, run.suspicions))
    kinds = _instruction_types(facts.values())
    most_exclusions = MAX_EXCLUSIONS if run.is_large else None
    counted = scored
    if run.run.get("best_of"):
        best = best_samples(score for _, score in scored)
        counted = [each for each in scored if (each[0].task_id, each[0].sample) in best]
    return ReportData(
        schema_version=REPORT_DATA_VERSION,
        name=run.name,
        run=_identity(run.run),
        overall=_scores(counted, method),
        by_instruction_type=_breakdown(kinds, counted, facts, method),
        breakdowns=tuple(_breakdown(division, counted, facts, method) for division in divisions),
        tables=_tables(run.suite, counted, method),
        phases=_phases(results, cases),
        differences=_differences(results),
        exclusions=tuple(islice(_exclusions(run.submissions), most_exclusions)),
        manual_verdicts=rows.manual,
        stale_manual_verdicts=len(run.overrides.stale),
        official_disagreements=rows.official_disagreements,
        measures=rows.measured.distributions(),
        usage=usage_of(submission.asking for submission in run.submissions),
        repeated=repeated_runs(scores_by_task(score for _, score in scored).values()),
        tasks=tuple(rows.kept),
        tasks_without_submission=run.tasks_without_submission,
        method=method,
        notes=(
            *run.notes,
            *([LARGE_NOTE.format(cases=cases, most=MAX_SHOWN_CASES)] if run.is_large else ()),
            *scope_lines(scope_of(results)),
            *_share_lines(counted, facts),
            *chart_lines(charts_of(results)),
        ),
        departures=departures(run.run, by_hand=rows.manual),
        suspects=None if run.suspicions is None else _suspects(counted, run.suspicions, method),
        phrasings=compare_phrasings(
            [score for _, score in counted],
            {each.task_id: each.task for each, _ in counted if each.task is not None},
            facts,
            aspect_divisions([fact.aspects for fact in facts.values()]),
            method,
        ),
        episodes=summarise_episodes(run.run, counted, classes_of(run.suite), method),
    )


class _Rows:
    """The entries of a report: counted, and kept unless there are too many.

    Args:
        keep: whether they are kept.
    """

    def __init__(self, *, keep: bool) -> None:
        self._keep = keep
        self.kept: list[TaskEntry] = []
        self.measured = Measured()
        self.manual = self.official_disagreements = 0

    def add(self, entry: TaskEntry) -> None:
        """Takes an entry."""
        self.measured.add(entry)
        self.manual += sum(case.manual is not None for case in entry.cases)
        self.official_disagreements += sum(case.official_disagrees for case in entry.cases)
        if self._keep:
            self.kept.append(entry)


_Scored = Sequence[tuple[LoadedSubmission, SubmissionScore]]


def _share_lines(scored: _Scored, facts: Mapping[str, TaskFacts]) -> Iterator[str]:
    """Mean shares of the cells to change and to keep, over all tasks and by instruction type."""
    groups: dict[str, list[CaseResult]] = {"Overall": []}
    for submission, _ in scored:
        results = list(submission.results.values())
        groups["Overall"] += results
        groups.setdefault(facts[submission.task_id].instruction_type, []).extend(results)
    if has_shares(groups["Overall"]):
        yield from share_lines({name: shares_of(results) for name, results in groups.items()})


def _identity(run: RunDocument) -> RunDocument:
    """What the run is, without the paths of its files on the machine that made it."""
    identity: RunDocument = {
        # What every report says of its run, known or not.
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
        identity["suite"] = suite
    return identity


def _score(submission: LoadedSubmission) -> SubmissionScore:
    found = [submission.results.get(number) for number in submission.cases]
    verdicts = [None if each is None else each.verdict for each in found]
    return score_submission(submission.task_id, submission.sample, verdicts)


# -- scores ---------------------------------------------------------------------------------------


def _scores(scored: _Scored, method: Method) -> Scores:
    group = score_group(score for _, score in scored)
    results = [result for each, _ in scored for result in each.results.values()]
    return Scores(
        soft_restriction=_estimate([(each.task_id, each.soft) for _, each in scored], method),
        hard_restriction=_estimate([(each.task_id, each.hard) for _, each in scored], method),
        tasks=group.tasks,
        cases=group.cases,
        all_tasks=group.all_tasks,
        all_cases=group.all_cases,
        soft_of_all=group.soft_of_all,
        hard_of_all=group.hard_of_all,
        verdicts=count_verdicts(results),
    )


def _estimate(scores: Iterable[tuple[str, float | None]], method: Method) -> Estimate:
    """Mean over tasks, several samples of a task averaged first, with its interval."""
    by_task: dict[str, list[float]] = defaultdict(list)
    for task_id, score in scores:
        if score is not None:
            by_task[task_id].append(score)
    return mean_interval(
        [sum(each) / len(each) for each in by_task.values()],
        confidence=method.confidence,
        resamples=method.resamples,
        seed=method.seed,
    )


def _suspects(scored: _Scored, suspicions: Suspicions, method: Method) -> SuspectsSummary:
    ids = list(dict.fromkeys(each.task_id for each, _ in scored))
    return SuspectsSummary(
        without=tuple(_without(scored, suspicions, level, method) for level in LEVELS),
        standing=count_standings(suspicions, ids),
    )


def _without(
    scored: _Scored, suspicions: Suspicions, least: Certainty, method: Method
) -> ScoresWithoutSuspects:
    """The scores of what is left if suspects of a certainty, and surer ones, are set aside."""
    left: list[tuple[LoadedSubmission, SubmissionScore]] = []
    set_aside, tasks = 0, set()
    for each, score in scored:
        places = cases_left(suspicions, each.task_id, each.cases, least)
        verdicts = [score.verdicts[place] for place in places]
        if fewer := count_set_aside(score.verdicts, verdicts):
            set_aside += fewer
            tasks.add(each.task_id)
        if verdicts:
            cases = tuple(each.cases[place] for place in places)
            results = {number: each.results[number] for number in cases if number in each.results}
            rest = replace(each, cases=cases, results=results)
            left.append((rest, score_submission(each.task_id, each.sample, verdicts)))
    return ScoresWithoutSuspects(
        certainty=least.value,
        label=LEVELS[least],
        set_aside_cases=set_aside,
        set_aside_tasks=len(tasks),
        scores=_scores(left, method),
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
            rounds=submission.asking.rounds,
            has_workbook=submission.task is None or submission.task.answer.is_file,
            aspects=() if submission.task is None else aspects_of(submission.task.checker),
        )
    return facts


def _is_of_the_paper(run: LoadedRun) -> bool:
    """Whether the suite of a run is one that the SpreadsheetBench paper reports on."""
    recorded = run.run.get("suite")
    name = run.suite.format if run.suite else recorded.get("format") if recorded else None
    return name in SPREADSHEETBENCH.names


def _instruction_types(facts: Iterable[TaskFacts]) -> Division:
    """The kinds of tasks that occur."""
    present = sorted({fact.instruction_type for fact in facts})
    return replace(INSTRUCTION_TYPE, parts=tuple(Part(name, name) for name in present))


def _places(divisions: Sequence[Division], facts: TaskFacts) -> dict[str, str]:
    placed = {each.key: each.place(facts) for each in (INSTRUCTION_TYPE, *divisions)}
    return {key: place for key, place in placed.items() if place is not None}


def _breakdown(
    division: Division, scored: _Scored, facts: Mapping[str, TaskFacts], method: Method
) -> Breakdown:
    place_of = {task_id: division.place(each) for task_id, each in facts.items()}
    known = sum(place is not None for place in place_of.values())
    groups = []
    for part in division.parts:
        members = {task_id for task_id, place in place_of.items() if place == part.key}
        if not members and not division.from_paper:
            continue
        inside = [(each, score) for each, score in scored if each.task_id in members]
        groups.append(
            Group(
                key=part.key,
                label=part.label,
                share=len(members) / known if known else None,
                scores=_scores(inside, method),
                paper_share=part.paper_share,
            )
        )
    return Breakdown(
        key=division.key,
        label=division.label,
        rule=division.rule,
        groups=tuple(groups),
        unknown_tasks=len(place_of) - known,
        from_paper=division.from_paper,
    )


def _tables(suite: Suite | None, scored: _Scored, method: Method) -> tuple[TableOfScores, ...]:
    """The tables that the suite asks for; none if it is not available."""
    if suite is None:
        return ()
    return tuple(
        TableOfScores(
            table.title,
            tuple(_column(column, suite.whole.tasks, scored, method) for column in table.columns),
        )
        for table in suite.tables
    )


def _column(
    column: ScoreColumn, tasks: Sequence[Task], scored: _Scored, method: Method
) -> TableColumn:
    inside = [
        (each, score)
        for each, score in scored
        if each.task is not None and column.holds(each.task.groups)
    ]
    scores = _scores(inside, method)
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


def _phases(results: Sequence[CaseResult], cases: int) -> tuple[PhaseCount, ...]:
    counts = Counter(result.verdict for result in results)
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
        total = sum(each.cases for each in verdicts)
        phases.append(PhaseCount(phase.value, total, total / cases, verdicts))
    return tuple(phases)


def _differences(results: Sequence[CaseResult]) -> tuple[DifferenceCount, ...]:
    cases: Counter[str] = Counter()
    only: Counter[str] = Counter()
    cells: Counter[str] = Counter()
    different = 0
    for result in results:
        if result.comparison.get("equal") is not False:
            continue
        different += 1
        counts = difference_counts(result.comparison)
        cases.update(counts.keys())
        cells.update(counts)
        if len(counts) == 1:
            only.update(counts.keys())
    return tuple(
        DifferenceCount(kind, count, only[kind], cells[kind], count / different)
        for kind, count in sorted(cases.items(), key=lambda item: (-item[1], item[0]))
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
