"""Asks a chat model for solutions, as ``judge infer`` does.

:func:`infer` does all of it. Its steps can also be called one by one:
:func:`judge.api.planning.resume` fills in what a run remembers, :func:`make_plan` builds the plan
without sending anything, :func:`estimate` builds the prompts and says what they would cost,
:func:`ask` sends the requests. Unless ``trust_folder`` is set, none of
them lets a folder that this user did not start decide which server to use, which key to send, or
what to read.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from judge.api.infer_options import InferOptions
from judge.api.options import cores
from judge.api.planning import Resumed, check_batch, plan_of, request_params, resume
from judge.core.conversation import plain_text
from judge.desktop.sandboxed import open_desktops
from judge.errors import InferenceError, SuiteError, UsageError, WorkbookError, did_you_mean
from judge.files.media import PICTURES_FOLDER
from judge.files.paths import as_path, cache_folder
from judge.grading.store import RunDirectory
from judge.inference.batches.ahead import BulkClient, RequestsFile, ResultsFile
from judge.inference.batches.log import BatchLog
from judge.inference.batches.server import BatchClient, BatchEndpoint
from judge.inference.calls import ReplyCache
from judge.inference.chat import PICTURE_TOKENS, estimate_content_tokens
from judge.inference.client import OpenAIChatModel, RetryPolicy
from judge.inference.config import ModelSpec, Price, check_key, find_model, load_models
from judge.inference.desktop.setting import DesktopSetting
from judge.inference.pacing import Budget, Pacer, RateLimits
from judge.inference.pictures import PictureStore
from judge.inference.plan import InferencePlan
from judge.inference.run import Resources, run_inference
from judge.inference.run_records import BatchEvent, InferenceEvent, InferenceSummary, Listeners
from judge.inference.solver import Solver
from judge.inference.started import StartedRuns
from judge.sandbox import open_sandbox
from judge.tools.sets import SharedCalculator

if TYPE_CHECKING:
    from judge.inference.chat import ChatModel


def read_key(key_env: str | None) -> str | None:
    """The key in an environment variable.

    Args:
        key_env: name of the variable; None if the server does not require a key.

    Raises:
        InferenceError: the variable is not set.
    """
    if key_env is None:
        return None
    key = os.environ.get(key_env, "").strip()
    if not key:
        raise InferenceError(
            f"the key of the model is expected in the environment variable {key_env}, which is "
            "not set",
            hint=f"export {key_env}=…, or name another variable with --api-key-env, or another "
            "server with --base-url.",
        )
    return key


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run before it starts: its plan, its model, and the folder of its results.

    Attributes:
        plan: what is asked; ``model_name`` may still have to be requested from the server.
        out: the results directory.
        options: how it is asked.
    """

    plan: InferencePlan
    out: Path
    options: InferOptions


@dataclass(frozen=True, slots=True)
class InferredRun:
    """A run whose solutions have been requested from the model.

    Attributes:
        path: its results directory, for :func:`judge.score`.
        summary: how it ended; ``summary.is_complete`` says whether every task has its answer.
    """

    path: Path
    summary: InferenceSummary


def infer(
    options: InferOptions,
    *,
    on_event: Callable[[InferenceEvent], None] = lambda _: None,
    on_submission: Callable[[Mapping[str, Any]], None] = lambda _: None,
) -> InferredRun:
    """Asks a chat model for solutions, and writes them where :func:`judge.score` finds them.

    The same options with the same ``out`` continue where an earlier call stopped. Failed tasks and
    a spent budget raise no error: the summary reports them, and the same call asks again.

    Args:
        options: what to ask and how.
        on_event: called with each task that is done.
        on_submission: called with each new record of submissions.jsonl.

    Raises:
        UsageError: no model is named, options contradict each other, or a key would go to a server
            that it does not belong to; or an event loop is already running (as in a notebook): use
            ``await infer_async(options)`` there.
        StoreError: ``out`` is a run that this user did not start on this machine, only its folder
            says which server to use or what to read, and ``trust_folder`` is not given; or ``out``
            contains something else.
        InferenceError: the key is not set, or the models file is broken.
        SuiteError: the suite is missing or broken.
        SandboxError: programs have to be run between rounds, and there is no sandbox.
        KeyboardInterrupt: the user interrupted; answers received before are kept on disk.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(infer_async(options, on_event=on_event, on_submission=on_submission))
    raise UsageError(
        "an event loop is already running here, as in a notebook",
        hint="from judge.api.inferring import infer_async; await infer_async(options)",
    )


async def infer_async(
    options: InferOptions,
    *,
    on_event: Callable[[InferenceEvent], None] = lambda _: None,
    on_submission: Callable[[Mapping[str, Any]], None] = lambda _: None,
) -> InferredRun:
    """:func:`infer` for callers with an event loop; arguments and errors are the same."""
    planned = make_plan(resume(options))
    summary = await ask(planned, on_event=on_event, on_submission=on_submission)
    return InferredRun(planned.out, summary)


def make_plan(resumed: Resumed) -> PlannedRun:
    """Builds the plan; sends nothing.

    Args:
        resumed: the options, completed with the options of the continued run.

    Raises:
        StoreError: somebody else's folder says which server to use or what to read; see
            :meth:`judge.api.planning.Resumed.check_trusted`.
        UsageError: options are missing, contradict each other or cannot be read.
        SuiteError: the suite is missing or broken.
    """
    resumed.check_trusted()
    options = resumed.options
    if not options.model:
        raise UsageError("which chat model? Give --model", hint="`judge infer --help`")
    assert options.mode is not None
    model = find_spec(options, key_given=resumed.key_given)
    if options.batch and not is_offline(options) and model.price is not None:
        model = replace(model, price=model.price.half())
    plan = plan_of(options, model)
    check_batch(options, plan.executes or plan.desktop is not None)
    out = options.out or default_out(model.name, options.mode)
    return PlannedRun(plan, as_path(out), options)


def check_ready(planned: PlannedRun) -> None:
    """Checks what can be checked before anything is asked.

    Raises:
        InferenceError: the variable for the key is not set.
        UsageError: ``max_cost`` is given, but no price is known; or the name of the model on its
            server is unknown, and no server may be queried for it.
    """
    if not is_offline(planned.options):
        try:
            read_key(planned.plan.model.key_env)
        except InferenceError as error:
            nearest = nearest_alias(planned.options)
            raise InferenceError(f"{error.message}{nearest}", hint=error.hint) from None
    elif not planned.plan.model_name:
        raise UsageError(
            f"the server's name for {planned.plan.model.name} is unknown, and no server is queried",
            hint="Give the model's own name: --model NAME --base-url URL.",
        )
    if planned.options.max_cost is not None and planned.plan.model.price is None:
        raise UsageError(
            f"--max-cost cannot be enforced: no price is known for {planned.plan.model.name}",
            hint="Give --price IN/OUT, in dollars per million tokens.",
        )


async def ask(
    planned: PlannedRun,
    *,
    on_event: Callable[[InferenceEvent], None] = lambda _: None,
    on_submission: Callable[[Mapping[str, Any]], None] = lambda _: None,
    on_batch: Callable[[BatchEvent], None] = lambda _: None,
) -> InferenceSummary:
    """Sends the planned requests, or the rest of them; arguments and errors as in :func:`infer`.

    ``on_batch`` is called when the server has reported the progress of a batch.
    """
    check_ready(planned)
    plan = planned.plan
    async with contextlib.AsyncExitStack() as stack:
        store = stack.enter_context(RunDirectory(planned.out))
        resources, plan = await _open_resources(planned, store, stack)
        plan.check_continues(store.read_run() or {}, str(planned.out))
        StartedRuns().note(planned.out, plan.options)
        listeners = Listeners(on_event=on_event, on_submission=on_submission, on_batch=on_batch)
        return await run_inference(plan, store, resources, listeners)


async def _open_resources(
    planned: PlannedRun, store: RunDirectory, stack: contextlib.AsyncExitStack
) -> tuple[Resources, InferencePlan]:
    """Opens client, sandbox, budget and cache; completes the plan with the model's server name."""
    plan, options = planned.plan, planned.options
    jobs = options.jobs or cores()
    chat_model = OpenAIChatModel(
        plan.model.base_url,
        None if is_offline(options) else read_key(plan.model.key_env),
        policy=RetryPolicy(
            attempts=options.retries + 1,
            call_timeout_s=options.timeout,
            longest_retry_after_s=options.max_wait,
        ),
        pacer=Pacer(RateLimits(requests=options.rpm, tokens=options.tpm)),
    )
    stack.push_async_callback(chat_model.close)
    if not plan.model_name:
        plan = replace(plan, model_name=await chat_model.only_model())
    sandbox = None
    if plan.executes or plan.fits_pictures:
        sandbox = stack.enter_context(contextlib.closing(open_sandbox(options.sandbox, jobs=jobs)))
    desktops = None
    if plan.desktop is not None:
        desktops = open_desktops(options.sandbox, jobs, stack)
    calculator = None
    if plan.tools is not None:
        calculator = stack.enter_context(contextlib.closing(SharedCalculator(options.sandbox)))
    resources = Resources(
        chat_model=chat_model,
        sandbox=sandbox,
        desktops=desktops,
        calculator=calculator,
        budget=Budget(options.max_cost, options.max_tokens_total),
        cache=ReplyCache(cache_folder() / "replies") if options.cache else None,
        concurrency=options.concurrency,
        jobs=jobs,
        bulk_client=_bulk_client(options, chat_model, store),
    )
    return resources, plan


def _bulk_client(
    options: InferOptions, chat_model: OpenAIChatModel, store: RunDirectory
) -> BulkClient | None:
    """The client that answers requests in bulk before the conversations, if there is one."""
    if options.batch_file is not None:
        return RequestsFile(as_path(options.batch_file))
    if options.batch_results is not None:
        return ResultsFile(as_path(options.batch_results))
    if not options.batch:
        return None
    return BatchClient(BatchEndpoint(chat_model), BatchLog(store), chat_model.policy)


def is_offline(options: InferOptions) -> bool:
    """Whether requests are written to a file, or results read from one, without a server."""
    return options.batch_file is not None or options.batch_results is not None


def default_out(model: str, mode: str) -> Path:
    """The default results directory: ``results/<model>-<mode>-<time>``.

    A directory that already exists belongs to another run, so it is not used.
    """
    name = re.sub(r"[^\w.-]+", "_", model)[:100]
    now = datetime.now().astimezone()
    first = Path("results") / f"{name}-{mode}-{now:%Y%m%d-%H%M%S}"
    others = (first.with_name(f"{first.name}-{number}") for number in itertools.count(2))
    return next(path for path in itertools.chain([first], others) if not path.exists())


def find_spec(options: InferOptions, *, key_given: bool) -> ModelSpec:
    """The chat model that the options name, with its endpoint and the variable with its key.

    Args:
        options: the options.
        key_given: whether the user gave endpoint and key name together, so that both are used.

    Raises:
        UsageError: the key belongs to another endpoint.
        InferenceError: a models file is broken.
    """
    configured = load_models()
    more = load_models(as_path(options.models)) if options.models else {}
    model = find_model(
        str(options.model),
        configured | more,
        base_url=options.base_url,
        key_env=options.api_key_env,
    )
    if not key_given:
        # The judge's own file takes precedence over other files about keys.
        named = {model.key_env for model in configured.values()}
        owners = configured if model.key_env in named else more
        check_key(model, owners.values())
    if options.price:
        model = replace(model, price=_price(options.price))
    return model


def nearest_alias(options: InferOptions) -> str:
    """A question about a model name that looks like an alias but is not one; otherwise empty.

    The server may have a model of that name, so this is a question, not an error.
    """
    models = load_models() | (load_models(as_path(options.models)) if options.models else {})
    name = str(options.model)
    if options.base_url is not None or name in models:
        return ""
    return did_you_mean(name, models, before=f". {name} is not an alias in models.yaml. ")


def _price(text: str) -> Price:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)\s*", text)
    if match is None or len(text) > 100:
        raise UsageError(
            f"--price {text[:100]}: write US dollars per million tokens as IN/OUT, such as 2.5/10"
        )
    return Price(float(match[1]), float(match[2]), "--price")


_Answer = TypeVar("_Answer")


def ask_model(
    options: InferOptions,
    question: Callable[[ChatModel, str, Mapping[str, Any]], Awaitable[_Answer]],
) -> _Answer:
    """Opens a chat model, asks it, and closes it.

    Args:
        options: which model to ask, and how; a model has to be named.
        question: called with the model, its name on the server, and the request parameters.

    Raises:
        UsageError: an option cannot be read, or a key would go to a server that it does not
            belong to.
        InferenceError: the key is not set, or the models file is broken.
    """
    spec = find_spec(options, key_given=bool(options.base_url and options.api_key_env))
    params = {**spec.params, **request_params(options)}
    for name in ("temperature", "top_p"):
        if (value := getattr(options, name)) is not None:
            params[name] = value
    key = read_key(spec.key_env)
    policy = RetryPolicy(attempts=options.retries + 1, call_timeout_s=options.timeout)

    async def run() -> _Answer:
        chat_model = OpenAIChatModel(spec.base_url, key, policy=policy)
        try:
            name = spec.model or await chat_model.only_model()
            return await question(chat_model, name, params)
        finally:
            await chat_model.close()

    return asyncio.run(run())


EXPECTED_REPLY_TOKENS = 700
"""Assumed length of a reply in tokens, unless ``max_tokens`` is lower."""

_EXPECTED_FEEDBACK_TOKENS = 250


@dataclass(frozen=True, slots=True)
class DryPrompt:
    """The first message about a task (in text mode: about a case).

    Attributes:
        task_id: the task.
        case: number of the case; None if the prompt is the same for all cases.
        text: the prompt; None if the workbook cannot be shown.
        tokens: estimated tokens of the prompt.
        problem: why there is no prompt; None if there is one.
    """

    task_id: str
    case: int | None
    text: str | None
    tokens: int
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class DryRun:
    """The prompts of a run, and its cost. All figures are estimates.

    The first figure of a pair assumes that every task takes one round, the second one that every
    task takes all rounds.

    Attributes:
        prompts: the first messages.
        calls: number of calls, as a pair.
        prompt_tokens: tokens of the prompts, as a pair.
        completion_tokens: tokens of the replies, as a pair.
        cost: US dollars, as a pair; None if the price is unknown.
        over_length: tasks whose prompt alone exceeds the model's context length.
    """

    prompts: tuple[DryPrompt, ...]
    calls: tuple[int, int]
    prompt_tokens: tuple[int, int]
    completion_tokens: tuple[int, int]
    cost: tuple[float, float] | None
    over_length: tuple[str, ...]

    def to_json(self, plan: InferencePlan) -> dict[str, Any]:
        """Returns plan and figures as a JSON object; docs/inference.md describes the fields."""
        tools = plan.tool_definitions
        return {
            "model": plan.model.name,
            "suite": plan.suite.name,
            "setting": plan.setting.name,
            "samples": plan.samples,
            "prompts": [
                {
                    "id": prompt.task_id,
                    "case": prompt.case,
                    "prompt": prompt.text,
                    "tokens": prompt.tokens,
                    "problem": prompt.problem,
                }
                for prompt in self.prompts
            ],
            "calls": list(self.calls),
            "prompt_tokens": list(self.prompt_tokens),
            "completion_tokens": list(self.completion_tokens),
            "cost_usd": None if self.cost is None else list(self.cost),
            "over_length": list(self.over_length),
            **({"tools": tools, "tool_tokens": plan.tool_tokens} if tools else {}),
        }


def dry_run(plan: InferencePlan) -> DryRun:
    """Builds every prompt, and estimates tokens and cost of the run.

    The upper figures assume that every task takes all rounds. Each round sends the whole
    conversation again; on a desktop, only as many turns of it as the setting says.
    """
    prompts = tuple(_prompts(plan))
    reply = min(EXPECTED_REPLY_TOKENS, int(plan.request_params.get("max_tokens") or 10**9))
    rounds = max(
        setting.rounds if setting.executes else 1
        for setting in (plan.setting_of(assignment.question) for assignment in plan.assignments)
    )
    shown = [prompt for prompt in prompts if prompt.text is not None]
    calls = len(shown) * plan.samples
    once = sum(prompt.tokens + plan.tool_tokens for prompt in shown) * plan.samples
    all_rounds = once * rounds
    if plan.desktop is None:
        growth = reply + _EXPECTED_FEEDBACK_TOKENS
        all_rounds += calls * growth * rounds * (rounds - 1) // 2
    else:
        turns = [_turn_tokens(plan.desktop.setting, number, reply) for number in range(rounds)]
        once, all_rounds = once + calls * turns[0], all_rounds + calls * sum(turns)
    cost = None
    if plan.model.price is not None:
        cost = (
            plan.model.price.of(once, calls * reply),
            plan.model.price.of(all_rounds, calls * reply * rounds),
        )
    length = plan.model.context_length
    return DryRun(
        prompts=prompts,
        calls=(calls, calls * rounds),
        prompt_tokens=(once, all_rounds),
        completion_tokens=(calls * reply, calls * reply * rounds),
        cost=cost,
        over_length=tuple(
            prompt.task_id
            for prompt in shown
            if length is not None and prompt.tokens + reply > length
        ),
    )


def _turn_tokens(setting: DesktopSetting, earlier: int, reply: int) -> int:
    """Returns an upper estimate of the tokens that a request sends after its first message.

    Args:
        setting: the setting of the desktop.
        earlier: number of earlier turns.
        reply: tokens of a reply.
    """
    pictures = PICTURE_TOKENS if setting.form.shows_screenshot else 0
    table = setting.tree_tokens if setting.form.shows_table else 0
    shown, kept = pictures + table, min(earlier, setting.history)
    return shown * (kept + 1) + reply * kept


def _prompts(plan: InferencePlan) -> list[DryPrompt]:
    prompts: list[DryPrompt] = []
    with ThreadPoolExecutor(1) as threads:
        # Nothing is written, and pictures are counted without being shrunk or joined.
        solver = Solver(plan, None, threads, PictureStore(Path(PICTURES_FOLDER)))
        for assignment in plan.assignments:
            question = assignment.question
            is_text = plan.setting_of(question).name == "text"
            cases = question.inputs if is_text else question.inputs[:1]
            for case in cases:
                number = case.number if is_text else None
                try:
                    content = solver.prompt(assignment, case)
                except (WorkbookError, SuiteError) as error:
                    prompts.append(DryPrompt(question.id, number, None, 0, error.message))
                else:
                    tokens = estimate_content_tokens(content)
                    prompts.append(DryPrompt(question.id, number, plain_text(content), tokens))
    return prompts
