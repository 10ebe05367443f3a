"""What a report says, as data: every number of every form of a report comes from here.

:func:`judge.report.build.build_report_data` makes a :class:`ReportData` of a run's records; HTML,
JSON, CSV and Markdown only write it down. Shares are fractions from 0 to 1, sizes bytes, times
seconds; ``None`` means that a number is not known or not defined, never that it is zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from judge.core.records.reports import UsageReport
from judge.core.records.runs import RunDocument
from judge.report.entry_model import TaskEntry
from judge.report.episode_model import EpisodesSummary
from judge.report.pair_model import PhrasingComparison
from judge.report.score_model import Breakdown, Scores, TableOfScores
from judge.report.suspect_model import SuspectsSummary

REPORT_DATA_VERSION = 1


@dataclass(frozen=True, slots=True)
class VerdictCount:
    """How many cases got a verdict.

    Attributes:
        verdict: the code.
        description: the verdict in words.
        phase: where on the way of a case it falls.
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
        cases: how many.
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
        cases: cases that show at least one such difference.
        only: cases that show no other class.
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
    """A case that is in no score.

    Attributes:
        task_id: the task's id as text.
        sample: 0-based number among several solutions of the same task.
        case: 1-based number of the case.
        verdict: ``JE``, ``BT`` or ``SK``; None where the case was not run.
        reason: one line.
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
        count: how many have it.
        total: their sum; None where a sum says nothing (a peak).
        mean: arithmetic mean.
        median: the middle one.
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
class RepeatedRuns:
    """Several samples of each task, taken as repeated runs.

    Attributes:
        samples: samples of each task; the fewest where they differ.
        soft_restriction: mean of the runs' soft scores.
        soft_sd: their standard deviation (n - 1); None for one run.
        hard_restriction: mean of the runs' hard scores.
        hard_sd: their standard deviation.
        pass_at: k -> share of the tasks expected to be solved by at least one of k samples.
        pass_hat: k -> share of the tasks expected to be solved by all of k samples.
        best_of: share of the tasks that at least one of their samples solved, however many each
            has; None if no sample could be judged.
    """

    samples: int
    soft_restriction: float | None
    soft_sd: float | None
    hard_restriction: float | None
    hard_sd: float | None
    pass_at: Mapping[int, float]
    pass_hat: Mapping[int, float]
    best_of: float | None = None


@dataclass(frozen=True, slots=True)
class Method:
    """How the intervals were made; with these, anyone gets the same.

    Attributes:
        confidence: of all intervals.
        resamples: of the bootstrap.
        seed: of the bootstrap.
    """

    confidence: float
    resamples: int
    seed: int


@dataclass(frozen=True, slots=True)
class ReportData:
    """A report on one run.

    Attributes:
        schema_version: of the JSON form.
        name: name of the results directory.
        run: identity: suite (name, source, digest, format), model, setting, profile, style,
            recalc (mode, engine, engines), limits, sandbox (backend, image, python, packages),
            judge_version, created, host (None or empty where not known), and the settings of
            inference where there were any.
        overall: scores of all tasks.
        by_instruction_type: the breakdown that the benchmark reports.
        breakdowns: all others, the paper's four pairs first.
        tables: the tables that the suite asks for.
        phases: cases by phase and verdict, in the order of the phases.
        differences: cases by class of differences, commonest first.
        exclusions: what is in no score, and why.
        manual_verdicts: how many cases hold a verdict that a person changed.
        stale_manual_verdicts: how many such changes no longer fit the output on record.
        official_disagreements: cases on which the published script disagrees.
        measures: time, memory, tokens and cost, where known.
        usage: what asking the chat model took in all, as in report.json; None where that is not on
            record.
        repeated: several samples of each task; None where there is one.
        tasks: every submission, in suite order.
        tasks_without_submission: tasks of the suite that the run holds no solution of.
        method: how the intervals were made.
        notes: what a reader has to know (the suite is not available, the run is incomplete, …).
        departures: what decided verdicts and is not in the suite as published.
        suspects: scores without suspects; None where no suspects are known.
        phrasings: phrasings of the same tasks compared, if the run has several.
        episodes: desktop episodes counted; None if the run has none.
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
    phrasings: tuple[PhrasingComparison, ...] = ()
    episodes: EpisodesSummary | None = None

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object; keys are the names of the fields.

        What is about suspects is in it only if some are known, likewise for phrasings and
        episodes.
        """
        document = asdict(self)
        if self.episodes is None:
            del document["episodes"]
            for task in document["tasks"]:
                for case in task["cases"]:
                    del case["episode"]
        if not self.phrasings:
            del document["phrasings"]
        if self.suspects is None:
            del document["suspects"]
            for task in document["tasks"]:
                for case in task["cases"]:
                    del case["suspects"]
        return document
