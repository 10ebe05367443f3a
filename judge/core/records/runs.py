"""Types for run.json and the files next to it: submissions and changed verdicts."""

from __future__ import annotations

from typing import Required, TypedDict

from judge.core.records.tool_episodes import ToolsIdentity
from judge.files.forms import Amount, Count, Sha256, TaskId

# -- run.json -------------------------------------------------------------------------------------


class CertifiedIdentity(TypedDict):
    """The grades that readers gave the golds of the suite.

    ``grades`` is by task, for tasks whose workbooks are unchanged since they were read. ``applied``
    says whether the run was judged with the corrections that follow from the grades, ``corrected``
    which tasks have a correction.
    """

    name: str
    digest: Sha256
    applied: bool
    grades: dict[str, str]
    corrected: list[str]


class SuiteIdentity(TypedDict, total=False):
    """The suite that a run answers, as it was loaded."""

    name: Required[str]
    source: str | None
    digest: str | None
    format: str | None
    corrections: list[dict[str, object]] | None
    certified: CertifiedIdentity


class RecalcIdentity(TypedDict, total=False):
    """How formulas without a stored value were computed."""

    mode: str | None
    engine: str | None
    engines: list[str] | None
    lenient_names: bool | None


class SandboxIdentity(TypedDict, total=False):
    """The environment in which programs were run."""

    backend: Required[str]
    image: str | None
    python: str | None
    runtime: str | None
    packages: dict[str, str] | None


class PromptContent(TypedDict, total=False):
    """How much of a workbook the prompt shows; all other fields are those of ``ContentLimits``."""

    form: str | None
    rows: int | None


class InferenceIdentity(TypedDict, total=False):
    """How the chat model was used, without secrets.

    ``params`` are the parameters of the requests. ``typed`` says how the model was asked about
    tasks with a typed answer (only set if there are any), ``desktop`` how it worked on a desktop,
    ``tools`` which tools it could call, ``left_out`` which tasks were left out there, and why.
    ``options`` are the options of the command line, which are used again when the run is continued.
    The fields from ``execution_feedback`` to ``background_sha256`` are only set for the inference
    settings that use them.
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
    desktop: dict[str, object] | None
    tools: ToolsIdentity | None
    left_out: dict[str, str] | None
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


class LayoutRecord(TypedDict, total=False):
    """The arrangement of a run's outputs in a folder: see :class:`judge.suites.layouts.Layout`."""

    kind: Required[str]
    pattern: str
    programs: bool


class JudgingRules(TypedDict):
    """The rules that verdicts depend on, besides the outputs; each rejudgement sets them again."""

    profile: str
    style: list[str]
    recalc: RecalcIdentity


class RunDocument(TypedDict, total=False):
    """The document of run.json.

    ``checker`` has the options of the comparison, ``limits`` the fields of
    :class:`judge.core.limits.Limits`. ``best_of`` says that the best sample of each task counts.
    ``values`` says whether the values of formulas in outputs were taken as ``stored`` or were
    ``computed``; it is not set if that depends on the output.
    """

    schema_version: int
    suite: SuiteIdentity | None
    profile: str | None
    style: list[str] | None
    checker: dict[str, object] | None
    best_of: bool | None
    values: str | None
    recalc: RecalcIdentity | None
    limits: dict[str, float] | None
    reference: dict[str, object] | None
    sandbox: SandboxIdentity | None
    host: dict[str, object] | None
    model: str | None
    setting: str | None
    solutions: str | None
    outputs: str | None
    layout: LayoutRecord | None
    imported_from: str | None
    inference: InferenceIdentity | None
    judge_version: str | None
    created: str | None
    rejudged: list[dict[str, object]] | None


# -- submissions.jsonl ----------------------------------------------------------------------------


class SubmissionIdentity(TypedDict, total=False):
    """The fields that every record of submissions.jsonl has."""

    id: Required[TaskId]
    sample: Count | None
    instruction_type: str | None
    conversation: object


class SubmissionRecord(SubmissionIdentity, total=False):
    """The part of a submissions.jsonl record that every reader may rely on.

    Other programs may write such files with additional fields; the fields about requests are read
    by :func:`judge.core.conversation.recorded_usage`.
    """

    calls: list[object] | None


class TokenCounts(TypedDict):
    """How many tokens the requests and the replies for a submission have."""

    prompt: Count
    completion: Count


class CallRecord(TypedDict, total=False):
    """A call of the chat model for a submission: one reply, however many attempts it took.

    ``case`` is set in modes that hold one conversation for each case. ``batch`` is set if the
    server answered in a batch, which has no latency. ``lost`` calls belong to attempts that failed
    midway. A failed call is copied from ``calls.jsonl``, with ``request``, ``error`` and
    ``message``.
    """

    round: Count | None
    case: Count
    finish_reason: str | None
    prompt_tokens: Count | None
    completion_tokens: Count | None
    cached_tokens: Count
    latency_s: Amount | None
    seconds: Amount | None
    attempts: Count | None
    faults: list[str] | None
    model: str | None
    cached: bool | None
    batch: str
    cost: Amount | None
    lost: bool
    task: TaskId
    sample: Count
    request: Sha256
    at: str
    error: str
    message: str


class EpisodeOutput(TypedDict, total=False):
    """The output of an episode on a desktop for a case."""

    sha256: Required[Sha256 | None]
    bytes: Count
    name: str
    ended: str
    gui_only: bool
    changed: bool
    problem: str
    turns: Count
    steps: Count
    seconds: Amount
    episode: str


class WrittenSubmission(SubmissionIdentity, total=False):
    """A record of submissions.jsonl as the judge writes it.

    ``solution`` is a program, stored with its paths; ``response`` is a typed answer; ``outputs``
    has the results of desktop episodes by case number. Extra fields of imported solutions are kept.
    """

    model: str | None
    setting: str | None
    solution: str | None
    input_path: str
    output_path: str
    reply: str | None
    response: str | None
    outputs: dict[str, EpisodeOutput]
    expected: list[str]
    label: str
    ended: str | None
    finish_reason: str | None
    truncated: bool
    stands_alone: bool | None
    rounds: Count
    tokens: TokenCounts
    cost: Amount | None
    seconds: Amount
    calls: list[CallRecord]
    documents: list[dict[str, object]]


# -- overrides.jsonl ------------------------------------------------------------------------------


class OverrideRecord(TypedDict, total=False):
    """A record of overrides.jsonl: a verdict changed by hand; null restores the judge's verdict."""

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


def served_model(run: RunDocument) -> str | None:
    """Returns the display name of a run's model: the server's name for it, or else its alias.

    An alias such as ``vllm`` only says which server was used; the server's name says which model
    answered.
    """
    alias, inference = run.get("model"), run.get("inference") or InferenceIdentity()
    served = inference.get("model_name")
    if not served or served == alias or alias != inference.get("model"):
        return alias
    return f"{served} ({alias})"
