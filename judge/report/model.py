"""The report as data; every format takes its numbers from it.

:func:`judge.report.build.build_report_data` makes a :class:`ReportData` from a run's records; HTML,
JSON, CSV and Markdown only present it. Shares are fractions from 0 to 1, sizes are in bytes, times
in seconds; ``None`` means that a number is not known or not defined, never that it is zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from judge.core.records.cases import ItemRecord
from judge.core.records.reports import UsageReport
from judge.core.records.runs import RunDocument
from judge.core.statistics import Estimate, PairedDifference
from judge.grading.overrides import ManualVerdict
from judge.report.desktop.episodes import EpisodeEntry, EpisodesSummary
from judge.report.repeats import RepeatedRuns
from judge.report.tools import ToolsSummary
from judge.suspects.model import RunVerdict, SeenCell


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a group of tasks, under both denominators.

    Attributes:
        soft_restriction: mean soft score over the tasks that have a scored case.
        hard_restriction: the same for the hard score.
        tasks: tasks with at least one scored case.
        cases: scored cases.
        all_tasks: all tasks, including those without a scored case.
        all_cases: all cases, including those that are not scored (JE, BT, SK, not run).
        soft_of_all: soft score if every unscored case counts as not accepted.
        hard_of_all: hard score if every unscored case counts as not accepted.
        verdicts: verdict code -> cases, in the order of :class:`judge.core.verdict.Verdict`.
    """

    soft_restriction: Estimate
    hard_restriction: Estimate
    tasks: int
    cases: int
    all_tasks: int
    all_cases: int
    soft_of_all: float | None
    hard_of_all: float | None
    verdicts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Group:
    """Some of the tasks, with their scores.

    Attributes:
        key: the part's name in data (``rows_up_to_50``).
        label: the part's name for people (``rows ≤ 50``).
        share: its share of the run's tasks.
        scores: its scores.
        paper_share: share of this part in the whole benchmark, by the paper's Table 3, which states
            it for the first part of each pair; None for other parts.
    """

    key: str
    label: str
    share: float | None
    scores: Scores
    paper_share: float | None = None


@dataclass(frozen=True, slots=True)
class Breakdown:
    """One way of dividing the tasks.

    Attributes:
        key: ``instruction_type``, ``rows``, ``columns``, ``tables``, ``layout``, ``category``,
            ``answer_cells``, ``workbook_bytes`` or ``rounds``.
        label: its name for people.
        rule: which tasks are in which part, in a sentence or two.
        groups: the parts; a task is in at most one of them.
        unknown_tasks: tasks that are not in any part (their workbook cannot be read, …).
        from_paper: whether it is one of the four pairs of the paper's Table 3.
    """

    key: str
    label: str
    rule: str
    groups: tuple[Group, ...]
    unknown_tasks: int = 0
    from_paper: bool = False


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table of scores.

    Attributes:
        heading: the heading that it shares with its neighbours; empty if it has no such heading.
        label: its own heading.
        suite_tasks: tasks of the whole suite that are in it, which is its denominator in the paper.
        score_of_suite: hard score over these tasks; a task without a solution counts as failed.
        scores: its scores over the tasks of the run.
    """

    heading: str
    label: str
    suite_tasks: int
    score_of_suite: float | None
    scores: Scores


@dataclass(frozen=True, slots=True)
class TableOfScores:
    """A table of scores that the suite defines, such as its paper's table.

    Attributes:
        title: its caption.
        columns: its columns; a task may be in several.
    """

    title: str
    columns: tuple[TableColumn, ...]


@dataclass(frozen=True, slots=True)
class CaseSuspect:
    """A reason to doubt the gold of a case, shown next to its verdict.

    Attributes:
        sign: the sign that found it.
        certainty: ``sure``, ``likely`` or ``possible``.
        status: ``open``, ``fault``, ``fine``, ``unclear``, ``disputed`` or ``corrected``.
        whole_task: whether it is about the task as a whole.
        summary: what is wrong, and where.
        why: why it matters to the answer.
        decisions: one line for each decision, with the person who made it.
        seen: its cells in input, gold and outputs, side by side.
        runs: the runs that the audit used, with their verdicts on the case.
    """

    sign: str
    certainty: str
    status: str
    whole_task: bool
    summary: str
    why: str
    decisions: tuple[str, ...]
    seen: tuple[SeenCell, ...] = ()
    runs: tuple[RunVerdict, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoresWithoutSuspects:
    """The scores with suspected cases set aside.

    Attributes:
        certainty: suspects with at least this certainty are set aside.
        about: the list of suspects that is set aside, ``gold`` or ``case``; empty for both.
        label: its name for people.
        set_aside_cases: scored cases that are set aside.
        set_aside_tasks: tasks that have such a case.
        scores: the scores of the remaining cases.
    """

    certainty: str
    about: str
    label: str
    set_aside_cases: int
    set_aside_tasks: int
    scores: Scores


@dataclass(frozen=True, slots=True)
class SuspectsSummary:
    """The suspects about the tasks of a run.

    Attributes:
        without: the scores without them, the fewest set aside first.
        status: status of a suspect -> how many have it.
    """

    without: tuple[ScoresWithoutSuspects, ...]
    by_status: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CertifiedSummary:
    """The scores over the tasks whose golds readers certified.

    Attributes:
        name: the suite that was certified.
        label: the name of the run's own scores, next to those over certified tasks.
        grades: grade -> tasks of the run; ``ungraded`` for those that nobody read.
        scores: the scores over certified tasks.
    """

    name: str
    label: str
    grades: Mapping[str, int]
    scores: Scores


@dataclass(frozen=True, slots=True)
class RunPair:
    """The second run compared with the first, on the tasks that both have.

    Attributes:
        first: name of the run that it is compared with.
        second: name of the run that is compared with it.
        tasks: tasks that both have.
        hard_difference: hard score of the second minus hard score of the first, with its interval.
        won: tasks that only the second run solved.
        lost: tasks that only the first run solved.
        p_hard: McNemar's exact p for ``won`` and ``lost``.
        p_hard_holm: the same, adjusted for all pairs.
        soft_difference: soft score of the second minus that of the first, with interval and p.
        p_soft_holm: its p, adjusted for all pairs.
        better: tasks on which the second run has the higher soft score.
        worse: tasks on which the second run has the lower soft score.
        smallest_hard: the smallest true difference of the hard scores that the test finds with a
            power of 80 % on this many tasks, assuming that as many tasks as here are solved by only
            one run; None if these tasks are too few to find any difference.
        smallest_soft: the same for the soft score, assuming that differences vary as much as they
            do here; None if scores cannot differ by that much.
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
class PairCounts:
    """Counts of tasks, by the phrasings that led to a solution.

    Attributes:
        label: the name of this group of tasks.
        tasks: how many tasks there are.
        both: tasks solved in both phrasings.
        only_first: tasks solved only in the first phrasing.
        only_second: tasks solved only in the second phrasing.
        neither: tasks solved in neither phrasing.
    """

    label: str
    tasks: int
    both: int
    only_first: int
    only_second: int
    neither: int


@dataclass(frozen=True, slots=True)
class PhrasingComparison:
    """Two phrasings of the same tasks compared.

    Attributes:
        pair: the second phrasing compared with the first, as two runs are; a task has the id of its
            first phrasing.
        counts: counts of all pairs, then of the parts of each division by aspect judged.
        alone: tasks with a score for only one of the two phrasings.
    """

    pair: RunPair
    counts: tuple[PairCounts, ...]
    alone: int


@dataclass(frozen=True, slots=True)
class CaseEntry:
    """One test case of one submission.

    Attributes:
        case: 1-based number.
        verdict: the code; None if the case was not run.
        phase: the phase that decided the verdict; None if the case was not run.
        cause: the cause of the verdict, as a line for people.
        manual: a person's change of the verdict; None if nobody changed it.
        cpu_s: processor time of the run.
        wall_s: wall time of the run.
        recalculation_s: time spent on computing formulas.
        comparison_s: time spent on comparing.
        peak_memory_bytes: peak memory of the run.
        input_bytes: size of the input workbook.
        output_bytes: size of the output workbook.
        input_rows: rows of the input's tallest sheet, from the first used row to the last.
        input_columns: columns of the input's widest sheet.
        answer_cells: cells that were compared.
        differing_cells: how many of them differ.
        computed_cells: formula cells of the output that an engine computed.
        engines: engines that computed something.
        difference_counts: class -> differing cells.
        official_equal: whether the published script accepts the output; None if it was not run.
        official_disagrees: whether the published script disagrees with the verdict.
        notes: the comparison's notes on its result.
        output_sha256: the hash under which the output workbook is stored, if there is one.
        suspects: reasons to doubt its gold.
        episode: the desktop episode that made the output; None if there was none.
        items: the items of its checklist, as recorded; empty if it has no checklist.
        damage: cells that the output damaged outside the answer; None if this was not examined.
        dynamic: whether the answer follows its inputs, as a class; None if this was not examined.
    """

    case: int
    verdict: str | None
    phase: str | None
    cause: str
    manual: ManualVerdict | None
    cpu_s: float | None
    wall_s: float | None
    recalculation_s: float | None
    comparison_s: float | None
    peak_memory_bytes: int | None
    input_bytes: int | None
    output_bytes: int | None
    input_rows: int | None
    input_columns: int | None
    answer_cells: int | None
    differing_cells: int | None
    computed_cells: int | None
    engines: tuple[str, ...]
    difference_counts: Mapping[str, int]
    official_equal: bool | None
    official_disagrees: bool
    notes: tuple[str, ...]
    output_sha256: str | None
    suspects: tuple[CaseSuspect, ...] = ()
    episode: EpisodeEntry | None = None
    items: tuple[ItemRecord, ...] = ()
    damage: int | None = None
    dynamic: str | None = None


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """One submission of one task.

    Attributes:
        task_id: the task's id as text.
        sample: 0-based number among several solutions of the same task.
        instruction_type: the instruction type, in the benchmark's words.
        instruction: the question; None if the suite is not available.
        answer_position: as the suite has it; None if the suite is not available.
        soft_restriction: soft score; None if no case is scored.
        hard_restriction: hard score; None if no case is scored.
        groups: breakdown key -> group key, for every breakdown that puts the task into a group.
        cases: the cases in order.
        difference_kinds: classes of differences in any of the cases.
        official_disagrees: whether the published script disagrees on some case.
        model: the chat model, if known.
        setting: the inference setting, if known.
        rounds: rounds of the conversation.
        prompt_tokens: tokens sent to the model.
        completion_tokens: tokens that the model generated.
        cost_usd: cost of the requests in US dollars.
        inference_s: seconds that the chat model took.
        run_wall_s: wall time of all runs.
        peak_memory_bytes: highest peak of all runs.
        grade: the readers' grade of its gold; None if the gold was not graded.
    """

    task_id: str
    sample: int
    instruction_type: str
    instruction: str | None
    answer_position: str | None
    soft_restriction: float | None
    hard_restriction: float | None
    groups: Mapping[str, str]
    cases: tuple[CaseEntry, ...]
    difference_kinds: tuple[str, ...]
    official_disagrees: bool
    model: str | None
    setting: str | None
    rounds: int | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cost_usd: float | None
    inference_s: float | None
    run_wall_s: float | None
    peak_memory_bytes: int | None
    grade: str | None = None

    @property
    def key(self) -> tuple[str, int]:
        """Key that is unique to the entry within a run: (task id, sample)."""
        return (self.task_id, self.sample)


REPORT_DATA_VERSION = 1


@dataclass(frozen=True, slots=True)
class VerdictCount:
    """How many cases got a verdict.

    Attributes:
        verdict: the code.
        description: the verdict in words.
        phase: the phase of a case in which it is given.
        is_scored: whether it counts in the scores.
        cases: how many cases got it.
        share: their share of all cases.
    """

    verdict: str
    description: str
    phase: str
    is_scored: bool
    cases: int
    share: float


@dataclass(frozen=True, slots=True)
class PhaseCount:
    """How many cases ended in a phase.

    Attributes:
        phase: ``code``, ``run``, ``output``, ``recalculation``, ``comparison`` or ``judge``.
        cases: how many cases ended in it.
        share: their share of all cases.
        verdicts: the verdicts of that phase that occur.
    """

    phase: str
    cases: int
    share: float
    verdicts: tuple[VerdictCount, ...]


@dataclass(frozen=True, slots=True)
class DifferenceCount:
    """How often a class of differences occurs.

    Attributes:
        kind: the class (``number_as_text``).
        cases: cases with at least one such difference.
        only: cases whose differences are all of this class.
        cells: differing cells of that class in all cases.
        share: share of the cases that were compared and not accepted.
    """

    kind: str
    cases: int
    only: int
    cells: int
    share: float


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A case that is not in any score.

    Attributes:
        task_id: the task's id as text.
        sample: 0-based number among several solutions of the same task.
        case: 1-based number of the case.
        verdict: ``JE``, ``BT`` or ``SK``; None if the case was not run.
        reason: why it is not scored, on one line.
    """

    task_id: str
    sample: int
    case: int
    verdict: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Distribution:
    """A measured quantity over tasks or cases.

    Attributes:
        key: ``run_wall_s``, ``run_cpu_s``, ``peak_memory_bytes``, ``recalculation_s``,
            ``comparison_s``, ``episode_turns``, ``episode_steps``, ``episode_s``,
            ``prompt_tokens``, ``completion_tokens``, ``cost_usd``,
            ``inference_s`` or ``rounds``.
        label: its name for people.
        per: ``case`` or ``task``.
        count: how many tasks or cases have it.
        total: their sum; None for a quantity whose sum has no meaning (a peak).
        mean: arithmetic mean.
        median: the median.
        p95: 95th percentile.
        maximum: the largest.
    """

    key: str
    label: str
    per: str
    count: int
    total: float | None
    mean: float
    median: float
    p95: float
    maximum: float


@dataclass(frozen=True, slots=True)
class Method:
    """How the intervals were computed; the same method gives the same intervals.

    Attributes:
        confidence: the confidence level of all intervals.
        resamples: the number of resamples of the bootstrap.
        seed: the seed of the bootstrap.
    """

    confidence: float
    resamples: int
    seed: int


@dataclass(frozen=True, slots=True)
class ReportData:
    """A report on one run.

    Attributes:
        schema_version: the schema version of the JSON form.
        name: name of the results directory.
        run: identity: suite (name, source, digest, format), model, setting, profile, style,
            recalc (mode, engine, engines), limits, sandbox (backend, image, python, packages),
            judge_version, created, host (None or empty if not known), and the settings of
            inference, if there are any.
        overall: scores of all tasks.
        by_instruction_type: the breakdown that the benchmark reports.
        breakdowns: all others, the paper's four pairs first.
        tables: the tables that the suite defines.
        phases: cases by phase and verdict, in the order of the phases.
        differences: cases by class of differences, most common first.
        exclusions: cases that are not in any score, and why.
        manual_verdicts: how many cases have a verdict that a person changed.
        stale_manual_verdicts: how many such changes no longer fit the output on record.
        official_disagreements: cases on which the published script disagrees.
        measures: time, memory, tokens and cost, if known.
        usage: total usage of the chat model, as in report.json; None if it is not on record.
        repeated: several samples of each task as repeated runs; None if each task has one.
        tasks: every submission, in suite order.
        tasks_without_submission: how many tasks of the suite have no solution in the run.
        method: how the intervals were computed.
        notes: notes for the reader (the suite is not available, the run is incomplete, …).
        departures: settings that affected verdicts and depart from the published suite.
        suspects: scores without suspects; None if no suspects are known.
        certified: scores over certified tasks; None if nobody graded the suite's golds.
        phrasings: comparison of the phrasings of the same tasks, if the run has several.
        episodes: figures on desktop episodes; None if the run has no such episodes.
        tools: figures on episodes with tools; None if the run has no such episodes.
    """

    schema_version: int
    name: str
    run: RunDocument
    overall: Scores
    by_instruction_type: Breakdown
    breakdowns: tuple[Breakdown, ...]
    tables: tuple[TableOfScores, ...]
    phases: tuple[PhaseCount, ...]
    differences: tuple[DifferenceCount, ...]
    exclusions: tuple[Exclusion, ...]
    manual_verdicts: int
    stale_manual_verdicts: int
    official_disagreements: int
    measures: tuple[Distribution, ...]
    usage: UsageReport | None
    repeated: RepeatedRuns | None
    tasks: tuple[TaskEntry, ...]
    tasks_without_submission: int
    method: Method
    notes: tuple[str, ...]
    departures: tuple[str, ...] = ()
    suspects: SuspectsSummary | None = None
    certified: CertifiedSummary | None = None
    phrasings: tuple[PhrasingComparison, ...] = ()
    episodes: EpisodesSummary | None = None
    tools: ToolsSummary | None = None

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object; keys are the names of the fields.

        Fields about suspects are in it only if suspects are known; the same holds for certified
        tasks, phrasings, episodes and items.
        """
        document = asdict(self)
        has_items = any(case.items for task in self.tasks for case in task.cases)
        for name, is_there in (
            ("phrasings", bool(self.phrasings)),
            ("certified", self.certified is not None),
            ("episodes", self.episodes is not None),
            ("tools", self.tools is not None),
            ("suspects", self.suspects is not None),
        ):
            if not is_there:
                del document[name]
        without_task_fields = () if self.certified is not None else ("grade",)
        without_case_fields = (
            *(() if self.episodes is not None else ("episode",)),
            *(() if has_items else ("items",)),
            *(() if self.suspects is not None else ("suspects",)),
        )
        for task in document["tasks"]:
            for name in without_task_fields:
                del task[name]
            for case in task["cases"]:
                for name in without_case_fields:
                    del case[name]
        return document
