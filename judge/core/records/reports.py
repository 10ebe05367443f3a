"""report.json, as types: what is written, and what is read back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from judge.core.records.cases import PointsRecord
from judge.core.records.runs import RunDocument
from judge.files.forms import Amount, Count, TaskId


class ReportedTask(TypedDict):
    """The part about a task that is read back from report.json."""

    id: TaskId
    sample: Count
    instruction_type: str
    test_case_results: list[str | None]


class ReportedOverall(TypedDict, total=False):
    """The part about the scores that is read back from report.json."""

    tasks_without_submission: Count


class ReportOnRecord(TypedDict):
    """The part of report.json that is read back: which submissions and cases count."""

    overall: NotRequired[ReportedOverall]
    tasks: list[ReportedTask]


class ExcludedCase(TypedDict):
    """A case that is in no score; one that was not run has no reason."""

    id: TaskId
    sample: Count
    case: Count
    reason: NotRequired[str]


class ScoresOfAll(TypedDict):
    """Scores in which every case that is not scored counts as not accepted."""

    tasks: Count
    cases: Count
    soft_restriction: float | None
    hard_restriction: float | None


class GroupSharesReport(TypedDict):
    """Mean shares, from 0 to 1, of the cells to change and of those to keep that are right."""

    cases: int
    modification: float | None
    regression: float | None


class GroupReport(ScoresOfAll):
    """The scores of a group of tasks; ``verdicts`` and ``excluded`` are by verdict code.

    ``shares`` is only there if cells to change and cells to keep decide about tasks of the run.
    """

    verdicts: dict[str, int]
    excluded: dict[str, list[ExcludedCase]]
    including_excluded: ScoresOfAll
    shares: NotRequired[GroupSharesReport]


class OverallReport(GroupReport):
    """The scores of all tasks."""

    tasks_without_submission: Count


class ChangeReport(TypedDict):
    """A verdict that a person changed: :class:`judge.grading.overrides.ManualVerdict`."""

    automatic: str
    verdict: str
    by: str
    at: str
    why: str


class TaskReport(ReportedTask):
    """One submission of one task; causes and changes by hand are by case number as text."""

    soft_restriction: float | None
    hard_restriction: float | None
    causes: NotRequired[dict[str, str]]
    official_disagrees: NotRequired[list[int]]
    manual_verdicts: NotRequired[dict[str, ChangeReport]]


class Latencies(TypedDict):
    """Seconds of a call that was answered."""

    median: float
    p95: float
    maximum: float


class UsageReport(TypedDict):
    """Usage of the chat model: see :class:`judge.report.counts.UsageTally`."""

    submissions: int
    calls: int
    retries: int
    truncated: int
    not_alone: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    inference_s: float
    latency_s: Latencies | None


class RepeatedReport(TypedDict):
    """Several samples of each task, taken as repeated runs; the shares are by k as text."""

    samples: int
    soft_restriction: float | None
    soft_sd: float | None
    hard_restriction: float | None
    hard_sd: float | None
    pass_at: dict[str, float]
    pass_hat: dict[str, float]
    best_of: float | None


class KeptReport(TypedDict):
    """Results of the option ``keep``: numbers of cases, and of tasks; ``by_kind`` counts cases."""

    cases: int
    not_examined: int
    cases_with_losses: int
    tasks_with_losses: int
    accepted_cases_with_losses: int
    by_kind: dict[str, int]
    losing_tasks: NotRequired[list[str]]


class FormulaAskedReport(TypedDict):
    """Results of the option ``formula_asked``: numbers of cases.

    ``asked`` counts those in which the question asks for a formula and the gold has one.
    """

    cases: int
    not_examined: int
    asked: int
    constants: int
    accepted_constants: int


class ChartsReport(TypedDict):
    """How much of the golds' charts outputs have: the mean, and the share of each task."""

    cases: Count
    mean_share: float
    tasks: dict[str, Amount]


class AgreementReport(TypedDict):
    """How far two raters agree: the share of ``items`` and Cohen's kappa with its interval.

    ``kind`` names the kind of the items, if all of them are of one kind.
    """

    raters: list[str]
    kind: NotRequired[str]
    items: Count
    raw: float | None
    kappa: float | None
    kappa_low: float | None
    kappa_high: float | None


class MarkedPointsReport(TypedDict):
    """Points with the marks of models, people and programs, which decide no verdict.

    The shares are those of all points, and of the judged ones. ``raters`` counts their marks.
    """

    by_judge: dict[str, PointsRecord]
    share_of_all: float
    share_of_judged: float | None
    raters: dict[str, Count]
    agreement: list[AgreementReport]


class PointsReport(TypedDict):
    """Points of checklists, summed over the cases that have them.

    ``mean_share_of_all`` counts what was not judged as not earned, ``mean_share_of_judged`` leaves
    it out. ``with_pass_share`` cases have a share from which they pass, and ``passing`` reach it.
    """

    cases: Count
    by_judge: dict[str, PointsRecord]
    by_group: dict[str, PointsRecord]
    by_kind: dict[str, PointsRecord]
    mean_share_of_all: float
    mean_share_of_judged: float | None
    with_pass_share: Count
    passing: Count
    with_marks: NotRequired[MarkedPointsReport]


class ShareReport(TypedDict):
    """A share with Wilson's interval of 95 %; null where nothing was observed."""

    part: int
    whole: int
    share: float | None
    low: float | None
    high: float | None


class CollateralReport(TypedDict):
    """What the option ``collateral`` found: outputs, tasks with damage, and cells by kind.

    ``median_damage`` and ``largest_damage`` are over outputs with damage; null without any. What
    begins with ``accepted`` is the same over accepted outputs. ``cases_with_errors_left`` are
    outputs with error values that the input did not have.
    """

    cases: int
    not_examined: int
    tasks: ShareReport
    cases_with_damage: int
    accepted_cases: int
    accepted_cases_with_damage: int
    median_damage: float | None
    largest_damage: int | None
    accepted_tasks: ShareReport
    accepted_median_damage: float | None
    accepted_largest_damage: int | None
    cases_with_additions: int
    cases_with_errors_left: int
    cells: dict[str, int]


class DynamicGroup(TypedDict):
    """Some outputs: live ones of those that are measurable, and how many are in each class."""

    live: ShareReport
    classes: dict[str, int]


class DynamicReport(TypedDict):
    """What the option ``dynamic`` found, on the first case of each task.

    ``by_question`` and ``by_change`` part the accepted outputs: by what the question asks for, and
    by where the changes came from. ``not_measurable`` counts outputs by reason.
    """

    accepted: DynamicGroup
    every_output: DynamicGroup
    by_question: dict[str, DynamicGroup]
    by_change: dict[str, DynamicGroup]
    not_measurable: dict[str, int]


class ScopeReport(TypedDict, total=False):
    """Changes that a user would object to, where an option checks for them."""

    kept: KeptReport
    formula_asked: FormulaAskedReport
    collateral: CollateralReport
    dynamic: DynamicReport


class SuiteScores(TypedDict):
    """Scores over all tasks of a suite; those without a submission count as not accepted."""

    tasks: Count
    soft_restriction: float
    hard_restriction: float


class OfSuite(TypedDict):
    """Scores over a whole suite, and over the whole of each of its groups."""

    overall: SuiteScores
    by_group: dict[str, dict[str, SuiteScores]]


class SuspectedCase(TypedDict):
    """A suspect about a task that is reported on; ``case`` is null for the task as a whole."""

    id: TaskId
    case: int | None
    sign: str
    certainty: str
    status: str
    summary: str


class ScoresWithout(TypedDict):
    """Scores with suspected cases set aside; ``set_aside`` is how many scored cases these are."""

    set_aside: int
    tasks: Count
    cases: Count
    soft_restriction: float | None
    hard_restriction: float | None


class SuspectsReport(TypedDict):
    """Scores without suspects, by the least certainty that is set aside; suspects by status.

    ``by_list`` has them for each of the two lists alone: ``gold`` sets golds aside that may be
    wrong, ``case`` cases that say nothing.
    """

    without: dict[str, ScoresWithout]
    by_list: NotRequired[dict[str, dict[str, ScoresWithout]]]
    by_status: dict[str, int]
    suspects: list[SuspectedCase]


class CertifiedReport(TypedDict):
    """Scores over the tasks whose golds readers certified; the others are set aside.

    ``grades`` counts the tasks of the run by grade; ``ungraded`` are those that nobody read.
    ``applied`` says whether the run was judged with the corrections that follow from the grades.
    ``accepted_weak`` are the tasks of which an answer is accepted although the gold is weak.
    """

    name: str
    applied: bool
    grades: dict[str, Count]
    scores: ScoresWithout
    accepted_weak: NotRequired[list[str]]


class PublishedFigures(TypedDict):
    """Figures of a suite's own evaluation for a folder of results with logs, for each repeat.

    ``a50`` and ``a90`` are planned actions over those that a task takes at least, of tasks that
    passed; None without such tasks. ``problems`` are logs that cannot be read.
    """

    repeat: Count
    tasks: Count
    executed: Count
    passed: Count
    exec_at_1: float
    pass_at_1: float
    a50: float | None
    a90: float | None
    problems: list[str]


class FurtherReports(TypedDict, total=False):
    """Parts of report.json that only some runs have; groups are by division, then by name.

    ``departures`` is what decided verdicts and is not in the suite as published.
    """

    departures: list[str]
    by_group: dict[str, dict[str, GroupReport]]
    of_suite: OfSuite
    repeated_runs: RepeatedReport
    scope: ScopeReport
    charts: ChartsReport
    points: PointsReport
    usage: UsageReport
    suspects: SuspectsReport
    certified: CertifiedReport
    published_figures: list[PublishedFigures]


class ReportHead(FurtherReports):
    """The document of report.json without its entries."""

    schema_version: int
    run: RunDocument
    overall: OverallReport
    by_instruction_type: dict[str, GroupReport]


class ReportDocument(ReportHead):
    """The document of report.json, as :func:`judge.report.report_json.build_report` makes it.

    The entries of a large run are read from the file when they are needed.
    """

    tasks: Sequence[TaskReport]
