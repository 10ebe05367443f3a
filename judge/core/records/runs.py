"""Types for run.json and the files next to it: submissions and changed verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Required, TypedDict

from judge.files.forms import Amount, Count, Sha256, TaskId


class ServerRecord(TypedDict, total=False):
    """An MCP server of a tool set."""

    name: Required[str]
    """The NAME in ``mcp:NAME``."""
    root: Required[Sha256 | None]
    """The hash of its packages, interpreter and entry point; None if it is not built."""
    era: str
    """``handshake`` or ``stateless``."""
    protocol: str
    """The version of the protocol, such as ``2025-11-25``."""
    server_name: str
    server_version: str
    renamed: dict[str, str]
    """Tool name that the model sees -> the server's name for the tool."""
    left_out: dict[str, str]
    """Name of a tool that is not offered -> the reason."""
    start_s: Amount
    problem: str
    """Why the server cannot be used, if that is the server's fault; empty if it can be used."""
    noise: Count
    """How many lines from the server answered no request."""
    list_changed: Count
    """How often the server reported that its tools changed; the list from the start is kept."""
    restarts: Count


class ToolsIdentity(TypedDict, total=False):
    """``inference.tools`` of run.json: the tools, and the rules of the conversation."""

    asked: Required[str]
    """The value of ``--tools``."""
    preset: str | None
    answer: Required[str]
    """``workbook`` or ``program``; results of the two are not comparable."""
    names: Required[list[str]]
    definitions: Required[Sha256]
    schemas: dict[str, Sha256]
    """Tool -> SHA-256 of its definition."""
    servers: list[ServerRecord]
    limits: dict[str, float | None]
    as_published: list[str]
    """Deviations of the published agent from its own description that this run reproduces."""
    corrected: list[str]
    """Deviations of the published agent from its own description that this run corrects."""
    licences: dict[str, dict[str, str]]
    """Licences, by server, then by package."""
    preset_sha256: Sha256
    pictures: str
    """Where the model gets pictures: ``after`` all results, ``in-result`` or ``none``."""
    instructions: bool
    """Whether the system message includes the servers' own instructions."""


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
    by :func:`judge.core.records.runs.recorded_usage`.
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

    An alias such as ``vllm`` only names the server; the server's own name says which model
    answered.
    """
    alias, inference = run.get("model"), run.get("inference") or InferenceIdentity()
    served = inference.get("model_name")
    if not served or served == alias or alias != inference.get("model"):
        return alias
    return f"{served} ({alias})"


# -- what requests for a submission cost --------------------------------------------------------
#
# ``judge infer`` records the cost of its requests with each submission. A file of solutions may
# come from anywhere. Its fields are kept unchanged: a field of the wrong type counts as unknown.

_MAX_NUMBER = 2**63


_USAGE_FIELDS = frozenset({"tokens", "calls", "rounds", "cost", "seconds"})


_CALL_NUMBERS = ("attempts", "latency_s", "prompt_tokens", "completion_tokens")


@dataclass(frozen=True, slots=True)
class Call:
    """A request to the chat model.

    Attributes:
        attempts: how many requests were sent for it, including those that failed.
        latency_s: seconds that the successful request took; None if the reply came from the cache
            or was not timed.
        prompt_tokens: tokens of the request.
        completion_tokens: tokens of the reply.
    """

    attempts: float = 0.0
    latency_s: float | None = None
    prompt_tokens: float | None = None
    completion_tokens: float | None = None


@dataclass(frozen=True, slots=True)
class RecordedUsage:
    """Cost of the requests for one submission.

    Attributes:
        model: the chat model.
        setting: the inference setting.
        rounds: rounds of the conversation.
        is_counted: whether tokens are on record.
        prompt_tokens: tokens of all requests.
        completion_tokens: tokens of all replies.
        cost_usd: cost in US dollars.
        seconds: duration of all calls together, including the waits between attempts.
        is_truncated: whether the reply that the program came from was cut off.
        stands_alone: whether the program works without the earlier rounds; None if that was not
            tried.
        calls: the requests.
    """

    model: str | None = None
    setting: str | None = None
    rounds: int | None = None
    is_counted: bool = False
    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    is_truncated: bool = False
    stands_alone: bool | None = None
    calls: tuple[Call, ...] = ()


NO_USAGE = RecordedUsage()
"""The value for a submission whose requests are not on record."""


def recorded_usage(record: Mapping[str, object]) -> RecordedUsage:
    """Reads the fields of a ``submissions.jsonl`` record that are about the requests.

    Args:
        record: the record, or the part of it that a submission keeps as its provenance.
    """
    tokens = record.get("tokens")
    counted = tokens if isinstance(tokens, Mapping) else {}
    calls = record.get("calls")
    stands_alone = record.get("stands_alone")
    rounds = _number(record.get("rounds"))
    return RecordedUsage(
        model=_text(record.get("model")),
        setting=_text(record.get("setting")),
        rounds=rounds if isinstance(rounds, int) else None,
        is_counted=isinstance(tokens, Mapping),
        prompt_tokens=_number(counted.get("prompt")),
        completion_tokens=_number(counted.get("completion")),
        cost_usd=_number(record.get("cost")),
        seconds=_number(record.get("seconds")),
        is_truncated=record.get("truncated") is True,
        stands_alone=stands_alone if isinstance(stands_alone, bool) else None,
        calls=tuple(
            _call(call)
            for call in (calls if isinstance(calls, list) else ())
            if isinstance(call, Mapping)
        ),
    )


def usage_fault(record: Mapping[str, object]) -> str | None:
    """Finds an impossibly large number among the fields about requests; None if all are plausible.

    Such a value would overflow when the numbers are added up. A field of the wrong type counts as
    unknown and is accepted.

    Args:
        record: as for :func:`recorded_usage`.

    Returns:
        A message with the name of the first such field and its bound.
    """
    if _USAGE_FIELDS.isdisjoint(record):
        return None
    tokens, calls = record.get("tokens"), record.get("calls")
    numbers = [(name, record.get(name)) for name in ("rounds", "cost", "seconds")]
    if isinstance(tokens, Mapping):
        numbers += [(f"tokens.{name}", tokens.get(name)) for name in ("prompt", "completion")]
    for index, call in enumerate(calls if isinstance(calls, list) else ()):
        if isinstance(call, Mapping):
            numbers += [(f"calls[{index}].{name}", call.get(name)) for name in _CALL_NUMBERS]
    for name, value in numbers:
        number = _number(value)
        if number is not None and not abs(number) < _MAX_NUMBER:
            return f"field {name!r} must be a number below 2^63"
    return None


def _call(call: Mapping[str, object]) -> Call:
    return Call(
        attempts=_number(call.get("attempts")) or 0.0,
        latency_s=None if call.get("cached") else _number(call.get("latency_s")),
        prompt_tokens=_number(call.get("prompt_tokens")),
        completion_tokens=_number(call.get("completion_tokens")),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
