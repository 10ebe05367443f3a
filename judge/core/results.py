"""The files of a results directory, as types: what their records hold.

Each of them is checked where it is read (:func:`judge.files.forms.checked`) and typed from there
on; fields that a directory may lack, because an earlier version of the judge wrote it or because
they do not apply, are not required. Whatever else a file holds is kept as it is.
"""
# Without `from __future__ import annotations`: see judge.files.forms.

from collections.abc import Sequence
from typing import NotRequired, Required, TypedDict

from judge.files.forms import Amount, Count, Sha256, TaskId

# -- cases.jsonl ----------------------------------------------------------------------------------


class CaseRun(TypedDict, total=False):
    """What is known about the run of a program on a case; empty if nothing was run.

    ``status`` is that of :class:`judge.sandbox.contract.RunStatus`, or ``finished`` for an output
    that was made elsewhere, or ``typed`` for an ``answer`` that is text. ``stdout`` and ``stderr``
    are the first, or last, characters.
    """

    status: str | None
    output_status: str | None
    exit_code: int | None
    signal: int | None
    cpu_s: Amount | None
    wall_s: Amount | None
    peak_memory_bytes: Count | None
    stdout: str
    stderr: str
    stdout_bytes: Count
    stderr_bytes: Count
    output_bytes: Count
    output_sha256: Sha256 | None
    survivors: Count
    detail: str | None
    answer: str


class PlaceRecord(TypedDict):
    """Where a difference is, if it is not in a cell: see :class:`judge.core.finding.PlaceKind`."""

    kind: str
    name: str


class SheetRecord(TypedDict):
    """A sheet of the ``gold`` or of the ``output``, by its ``file``."""

    file: str
    sheet: str


class DifferingCellRecord(TypedDict):
    """A cell that differs: both values, or a line that says how."""

    cell: str
    expected: NotRequired[object]
    actual: NotRequired[object]
    detail: NotRequired[str]


class AboutRecord(TypedDict):
    """What a difference is about: see :class:`judge.core.finding.About`."""

    subject: str
    expected: SheetRecord | None
    found: SheetRecord | None
    asked: list[str]
    decimals: NotRequired[int]
    cells: NotRequired[list[DifferingCellRecord]]
    all_cells: NotRequired[Count]


class DifferenceRecord(TypedDict):
    """One difference between gold and output.

    ``kind`` is a word of the checker that found it; values are those of JSON, dates and times
    ``{"date": ISO text}``, errors ``{"error": "#N/A"}``. ``rule`` and ``words`` are number and
    sentence of the rule that does not hold, ``about`` is what pages show of it.
    """

    kind: str
    sheet: str
    cell: str
    expected: object
    actual: object
    place: NotRequired[PlaceRecord]
    erased: NotRequired[object]
    expected_formula: NotRequired[str]
    actual_formula: NotRequired[str]
    detail: NotRequired[str]
    rule: NotRequired[Count]
    words: NotRequired[str]
    about: NotRequired[AboutRecord]


class UnitCounts(TypedDict):
    """How many cells of a part of the answer were compared, and how many differ."""

    cells: Count
    differing_cells: Count


class SharesRecord(TypedDict):
    """Shares of the cells to change and of those to keep that agree; null without such cells."""

    modification: Amount | None
    regression: Amount | None


class LossRecord(TypedDict):
    """Something that the input had, the gold kept, and the output lost.

    ``kept`` and ``left`` say how much of it there should be, and is: cells of rules and formulas,
    or how many of anything else.
    """

    kind: str
    what: str
    sheet: str
    place: str
    kept: Count
    left: Count


KeptRecord = TypedDict(
    "KeptRecord",
    {
        "as": Required[str],
        "problem": NotRequired[str],
        "lost": NotRequired[Count],
        "counts": NotRequired[dict[str, Count]],
        "losses": NotRequired[list[LossRecord]],
    },
)
"""What the option ``keep`` found; ``as`` is ``note`` or ``fail``, ``counts`` is by kind."""

FormulaAskedRecord = TypedDict(
    "FormulaAskedRecord",
    {
        "as": Required[str],
        "problem": NotRequired[str],
        "asked": NotRequired[bool],
        "words": NotRequired[str],
        "gold_formulas": NotRequired[Count],
        "constants": NotRequired[Count],
    },
)
"""What the option ``formula_asked`` found: see :class:`judge.comparison.formula_asked`."""


class ChartFact(TypedDict):
    """A chart of a gold: how much of it the output has, and what that lacks."""

    sheet: str
    title: str
    share: Amount
    lacking: list[str]


class ChartsRecord(TypedDict):
    """The charts of a gold and of an output: how many, and the share that both have."""

    gold: Count
    output: Count
    share: Amount
    charts: list[ChartFact]


SheetValues = dict[str, dict[str, object]]
"""Sheet -> address -> value."""


class CaseComparison(TypedDict, total=False):
    """What comparing an output with its gold found; empty if nothing was compared.

    ``difference_counts`` counts all differences by kind, ``differences`` lists the first ones.
    ``computed_cells`` and ``computed_values`` have the keys ``gold`` and ``output``. ``gold`` names
    the gold that counted, if there are several.
    """

    equal: bool
    profile: str
    official_equal: bool | None
    official_score: float | None
    published_error: str
    gold: str
    ranges: list[str]
    cells: Count
    differing_cells: Count
    touched_cells: Count | None
    groups: dict[str, UnitCounts]
    shares: SharesRecord
    cell_accuracy: float
    difference_counts: dict[str, Count]
    differences: list[DifferenceRecord]
    notes: list[str]
    engines: list[str]
    computed_cells: dict[str, Count]
    computed_values: dict[str, SheetValues]
    kept: KeptRecord
    formula_asked: FormulaAskedRecord
    charts: ChartsRecord


class CaseRecord(TypedDict, total=False):
    """A record of cases.jsonl: what the judge says about one submission on one case."""

    task: Required[TaskId]
    sample: Required[Count]
    case: Required[Count]
    verdict: Required[str]
    phase: str
    cause: str
    run_key: str
    comparison_key: str
    run: CaseRun
    comparison: CaseComparison
    timings_s: dict[str, Amount]


# -- run.json -------------------------------------------------------------------------------------


class SuiteIdentity(TypedDict, total=False):
    """The suite that a run answers, as it was loaded."""

    name: Required[str]
    source: str | None
    digest: str | None
    format: str | None
    corrections: list[dict[str, object]] | None


class RecalcIdentity(TypedDict, total=False):
    """How formulas without a value were computed."""

    mode: str | None
    engine: str | None
    engines: list[str] | None
    lenient_names: bool | None


class SandboxIdentity(TypedDict, total=False):
    """The environment that programs were run in."""

    backend: Required[str]
    image: str | None
    python: str | None
    runtime: str | None
    packages: dict[str, str] | None


class PromptContent(TypedDict, total=False):
    """How much of a workbook went into the prompt; the rest is that of ``ContentLimits``."""

    form: str | None
    rows: int | None


class InferenceIdentity(TypedDict, total=False):
    """How the chat model was asked, without secrets.

    ``params`` are those of the requests, ``typed`` says how tasks were asked that expect a typed
    answer (only there if there are any), ``options`` those of the command line, which a run that is
    continued remembers. From ``execution_feedback`` to ``background_sha256`` they are only there in
    the settings that they are about.
    """

    model: str | None
    model_name: str | None
    setting: str | None
    rounds: int | None
    content: PromptContent | None
    params: dict[str, object] | None
    prompt: dict[str, object] | None
    feedback_sha256: str | None
    session: bool | None
    stop: str | None
    typed: dict[str, object] | None
    execution_feedback: bool | None
    oracle_plan: bool | None
    plans_sha256: str | None
    documents: str | None
    documents_sha256: str | None
    background_sha256: str | None
    endpoint: str | None
    samples: Count | None
    tasks: Count | None
    price: dict[str, object] | None
    options: dict[str, object] | None


class JudgingRules(TypedDict):
    """What verdicts depend on in addition to the outputs; a rejudgement chooses it again."""

    profile: str
    style: list[str]
    recalc: RecalcIdentity


class RunDocument(TypedDict, total=False):
    """The document of run.json.

    ``checker`` are the options of the comparison, ``limits`` the fields of
    :class:`judge.core.limits.Limits`; ``best_of`` says that the best sample of each task counts.
    """

    schema_version: int
    suite: SuiteIdentity | None
    profile: str | None
    style: list[str] | None
    checker: dict[str, object] | None
    best_of: bool | None
    recalc: RecalcIdentity | None
    limits: dict[str, float] | None
    reference: dict[str, object] | None
    sandbox: SandboxIdentity | None
    host: dict[str, object] | None
    model: str | None
    setting: str | None
    solutions: str | None
    outputs: str | None
    imported_from: str | None
    inference: InferenceIdentity | None
    judge_version: str | None
    created: str | None
    rejudged: list[dict[str, object]] | None


# -- submissions.jsonl ----------------------------------------------------------------------------


class SubmissionRecord(TypedDict, total=False):
    """A record of submissions.jsonl, as far as every reader may rely on it.

    Other programs may write such files, with fields of their own; what they say about requests is
    read by :func:`judge.core.asking.asking_of`.
    """

    id: Required[TaskId]
    sample: Count | None
    instruction_type: str | None
    calls: list[object] | None
    conversation: object


# -- overrides.jsonl, reference.json, audits.jsonl ------------------------------------------------


class OverrideRecord(TypedDict, total=False):
    """A record of overrides.jsonl: a verdict changed by hand; null restores the judge's own."""

    task: Required[TaskId]
    sample: Required[Count]
    case: Required[Count]
    verdict: Required[str | None]
    automatic: str | None
    by: Required[str]
    at: Required[str]
    why: Required[str]
    output_sha256: str | None
    run_key: str | None


class ReferenceTimeRecord(TypedDict):
    """The time of one reference solution, on its slowest case."""

    digest: str
    cpu_s: Amount
    wall_s: Amount


class ReferenceDocument(TypedDict):
    """The document of reference.json; times are by task id."""

    host: str
    image: str
    tasks: dict[str, ReferenceTimeRecord]


# -- report.json ----------------------------------------------------------------------------------


class ReportedTask(TypedDict):
    """What is read back about a task from report.json."""

    id: TaskId
    sample: Count
    instruction_type: str
    test_case_results: list[str | None]


class ReportedOverall(TypedDict, total=False):
    """What is read back about the scores from report.json."""

    tasks_without_submission: Count


class ReportOnRecord(TypedDict):
    """What is read back from report.json: which submissions and cases count."""

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
    """What the requests to the chat model took: see :func:`judge.report.usage.usage_of`."""

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
    """What the option ``keep`` found: numbers of cases, and of tasks; ``by_kind`` counts cases."""

    cases: int
    not_examined: int
    cases_with_losses: int
    tasks_with_losses: int
    accepted_cases_with_losses: int
    by_kind: dict[str, int]


class FormulaAskedReport(TypedDict):
    """What the option ``formula_asked`` found: numbers of cases.

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


class ScopeReport(TypedDict, total=False):
    """What was found of what a user would object to, where an option asks for it."""

    kept: KeptReport
    formula_asked: FormulaAskedReport


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
    standing: str
    summary: str


class ScoresWithout(TypedDict):
    """Scores with suspected cases set aside; ``set_aside`` is how many scored cases these are."""

    set_aside: int
    tasks: Count
    cases: Count
    soft_restriction: float | None
    hard_restriction: float | None


class SuspectsReport(TypedDict):
    """Scores without suspects, by the least certainty that is set aside; suspects by standing."""

    without: dict[str, ScoresWithout]
    standing: dict[str, int]
    suspects: list[SuspectedCase]


class PublishedFigures(TypedDict):
    """What the evaluation of a suite gives for a folder of results with logs, for each repeat.

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
    """What only some runs have in report.json; groups are by division, then by name."""

    by_group: dict[str, dict[str, GroupReport]]
    of_suite: OfSuite
    repeated_runs: RepeatedReport
    scope: ScopeReport
    charts: ChartsReport
    usage: UsageReport
    suspects: SuspectsReport
    published_figures: list[PublishedFigures]


class ReportHead(FurtherReports):
    """The document of report.json without its entries."""

    schema_version: int
    run: RunDocument
    overall: OverallReport
    by_instruction_type: dict[str, GroupReport]


class ReportDocument(ReportHead):
    """The document of report.json, as :func:`judge.report.summary.build_report` makes it.

    The entries of a large run are read from the file when they are needed.
    """

    tasks: Sequence[TaskReport]
