"""Types for report.json, as it is written and as it is read back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from judge.core.records.cases import PointsRecord
from judge.core.records.runs import RunDocument
from judge.files.forms import Amount, Count, TaskId


class ReportedTask(TypedDict):
    """The fields of a task's entry in report.json that are read back."""

    id: TaskId
    sample: Count
    instruction_type: str
    test_case_results: list[str | None]


class ReportedOverall(TypedDict, total=False):
    """The fields of the scores in report.json that are read back."""

    tasks_without_submission: Count


class ReportOnRecord(TypedDict):
    """The fields of report.json that are read back: which submissions and cases count."""

    overall: NotRequired[ReportedOverall]
    tasks: list[ReportedTask]


class ExcludedCase(TypedDict):
    """A case that no score includes, and why; a case that was not run has no reason."""

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

    ``shares`` is only set if the run has tasks that are decided by cells to change and to keep.
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
    """One submission for one task; causes and changes by hand are keyed by case number, as text."""

    soft_restriction: float | None
    hard_restriction: float | None
    causes: NotRequired[dict[str, str]]
    official_disagrees: NotRequired[list[int]]
    manual_verdicts: NotRequired[dict[str, ChangeReport]]


class Latencies(TypedDict):
    """Durations of the answered calls, in seconds."""

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
    """Several samples of each task, treated as repeated runs; shares are keyed by k as a string."""

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

    ``asked`` counts cases whose question asks for a formula and whose gold has one.
    """

    cases: int
    not_examined: int
    asked: int
    constants: int
    accepted_constants: int


class ChartsReport(TypedDict):
    """How much of the golds' charts the outputs have: the mean, and the share of each task."""

    cases: Count
    mean_share: float
    tasks: dict[str, Amount]


class AgreementReport(TypedDict):
    """How far two raters agree: the share of ``items``, and Cohen's kappa with its interval.

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
    """Points that include the marks of models, people and programs, which decide no verdict.

    One share is of all points, the other of the judged points. ``raters`` counts marks by rater.
    """

    by_judge: dict[str, PointsRecord]
    share_of_all: float
    share_of_judged: float | None
    raters: dict[str, Count]
    agreement: list[AgreementReport]


class PointsReport(TypedDict):
    """Points of checklists, summed over the cases that have them.

    In ``mean_share_of_all``, points that were not judged count as not earned;
    ``mean_share_of_judged`` leaves them out. ``with_pass_share`` counts the cases that have a
    minimum share to pass, ``passing`` those that reach it.
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
    """Results of the option ``collateral``: outputs, tasks with damage, and cells by kind.

    ``median_damage`` and ``largest_damage`` are over outputs with damage; null without damage.
    Fields that begin with ``accepted`` are the same for accepted outputs only.
    ``cases_with_errors_left`` counts outputs with error values that the input did not have.
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
    """A group of outputs: how many measurable ones are live, and how many are in each class."""

    live: ShareReport
    classes: dict[str, int]


class DynamicReport(TypedDict):
    """Results of the option ``dynamic``, for the first case of each task.

    ``by_question`` divides the accepted outputs by what the question asks for, ``by_change`` by
    where the changes came from. ``not_measurable`` counts outputs by reason.
    """

    accepted: DynamicGroup
    every_output: DynamicGroup
    by_question: dict[str, DynamicGroup]
    by_change: dict[str, DynamicGroup]
    not_measurable: dict[str, int]


class ScopeReport(TypedDict, total=False):
    """Changes that a user would object to, if an option checks for them."""

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
    """Scores over a whole suite, and over each of its groups as a whole."""

    overall: SuiteScores
    by_group: dict[str, dict[str, SuiteScores]]


class SuspectedCase(TypedDict):
    """A suspected fault of a task; ``case`` is null if it concerns the whole task."""

    id: TaskId
    case: int | None
    sign: str
    certainty: str
    status: str
    summary: str


class ScoresWithout(TypedDict):
    """Scores without the suspected cases; ``set_aside`` counts the scored cases left out."""

    set_aside: int
    tasks: Count
    cases: Count
    soft_restriction: float | None
    hard_restriction: float | None


class SuspectsReport(TypedDict):
    """Scores without suspects, keyed by the lowest certainty set aside; counts of suspects.

    ``by_list`` has the same scores for each list separately: ``gold`` sets aside golds that may be
    wrong, ``case`` sets aside cases that test nothing.
    """

    without: dict[str, ScoresWithout]
    by_list: NotRequired[dict[str, dict[str, ScoresWithout]]]
    by_status: dict[str, int]
    suspects: list[SuspectedCase]


class CertifiedReport(TypedDict):
    """Scores over the tasks whose golds readers certified, without the others.

    ``grades`` counts the tasks of the run by grade; ``ungraded`` counts those that nobody has read.
    ``applied`` says whether the run was judged with the corrections that follow from the grades.
    ``accepted_weak`` has the tasks with a weak gold whose answer was accepted.
    """

    name: str
    applied: bool
    grades: dict[str, Count]
    scores: ScoresWithout
    accepted_weak: NotRequired[list[str]]


class PublishedFigures(TypedDict):
    """Figures of a suite's own evaluation of a folder of results with logs, for each repeat.

    ``a50`` and ``a90`` are percentiles of the ratio of planned actions to the minimum that a task
    needs, over the tasks that passed; None if no task passed. ``problems`` are logs that cannot be
    read.
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
    """The parts of report.json that only some runs have; groups are keyed by division, then name.

    ``departures`` lists differences from the published suite that affected verdicts.
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
    """The document of report.json without its list of entries."""

    schema_version: int
    run: RunDocument
    overall: OverallReport
    by_instruction_type: dict[str, GroupReport]


class ReportDocument(ReportHead):
    """The document of report.json, as :func:`judge.report.report_json.build_report` makes it.

    In a large run, the entries are read from the file when they are needed.
    """

    tasks: Sequence[TaskReport]
