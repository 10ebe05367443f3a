"""Runs of inference: workers let a chat model solve tasks; runs can be resumed.

A failure of one task never ends the run; the same command continues it.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from judge.core.records.runs import RunDocument
from judge.desktop.contract import DesktopHost
from judge.errors import (
    InferenceError,
    JudgeError,
    SandboxError,
    StoreError,
    SuiteError,
    WorkbookError,
)
from judge.files.documents import utc_now
from judge.files.media import PICTURES_FOLDER
from judge.grading.store import RunDirectory
from judge.inference.batches.ahead import AnsweredAhead, BulkClient, Job, Outcome, RequestQueue
from judge.inference.batches.log import BATCHES_FILE, BatchLog
from judge.inference.calls import CallContext, Journal, ReplyCache, TaskClient
from judge.inference.chat import BudgetReachedError, CallError, ChatModel
from judge.inference.conversation import Conversation
from judge.inference.desktop.episode import DesktopSolver
from judge.inference.pacing import Budget
from judge.inference.pictures import PictureStore
from judge.inference.plan import Assignment, InferencePlan
from judge.inference.run_records import (
    MAX_NOTES,
    InferenceEvent,
    InferenceRecords,
    InferenceSummary,
    Listeners,
    SampleKey,
    submission_of_conversation,
)
from judge.inference.solver import Solver, prompt_paths
from judge.inference.tools.setting import tool_paths
from judge.inference.tools.solver import ToolSolver
from judge.sandbox.contract import RunRequest, Sandbox
from judge.tools.sets import SharedCalculator


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of a run.

    Attributes:
        chat_model: the model; the run does not close it.
        sandbox: runs programs between rounds; None in settings that run none.
        budget: limits on tokens and cost.
        cache: replies of other runs; None to use none.
        concurrency: how many tasks are worked on at a time.
        jobs: how many programs run at a time.
        desktops: opens desktops; None in the other modes.
        calculator: computes formulas for tools; None in the other modes.
        bulk_client: obtains replies to all requests before the conversations begin; None to ask the
            model during the conversations. Only for settings of one round.
    """

    chat_model: ChatModel
    sandbox: Sandbox | None = None
    budget: Budget = field(default_factory=Budget)
    cache: ReplyCache | None = None
    concurrency: int = 8
    jobs: int = 2
    desktops: DesktopHost | None = None
    calculator: SharedCalculator | None = None
    bulk_client: BulkClient | None = None


async def run_inference(
    plan: InferencePlan,
    store: RunDirectory,
    resources: Resources,
    listeners: Listeners | None = None,
) -> InferenceSummary:
    """Lets a chat model solve every task that has no submission yet.

    Args:
        plan: the plan, which determines the requests.
        store: the results directory.
        resources: model, sandbox, budget and so on.
        listeners: functions to call as the run proceeds.

    Returns:
        The counts; ``stopped`` is the reason if the run stopped early.

    Raises:
        StoreError: the directory holds another run, or records cannot be written.
        SandboxError: the sandbox fails for all tasks.
        InferenceError: key, model name or address are wrong.
    """
    if resources.sandbox is None and (plan.executes or plan.fits_pictures):
        does = "runs programs" if plan.executes else "shrinks pictures"
        raise SandboxError(f"the setting {plan.setting.name} {does}, and there is no sandbox")
    if resources.desktops is None and plan.desktop is not None:
        raise SandboxError(f"the setting {plan.setting.name} needs desktops, and there are none")
    run = store.read_run() or RunDocument()
    plan.check_continues(run, str(store.path))
    _check_batches(store, resources.bulk_client)
    records = InferenceRecords(store)
    records.lock()
    try:
        created = run.get("created") or utc_now()
        store.write_run({**run, **plan.run_document(), "created": created})
        runner = _Runner(plan, records, resources, listeners or Listeners())
        return await runner.run()
    finally:
        records.close()


def _check_batches(store: RunDirectory, bulk_client: BulkClient | None) -> None:
    """Checks that no request is in an open batch, so that none is sent twice."""
    if bulk_client is not None and bulk_client.collects_batches:
        return
    sent = sum(len(x.requests) for x in BatchLog(store).open_batches() if x.file_id is not None)
    if sent:
        raise StoreError(
            f"{store.path}: {sent} requests of this run are under way in batches",
            hint=f"--batch collects them. To give up on them, delete {BATCHES_FILE}; they may be "
            "billed all the same.",
        )


_WITHOUT_PICTURES = {
    "tools": "--tool-pictures none, with another --out, keeps pictures of results from the model.",
    "text": "--pictures none, with another --out, asks in text: pictures are named, and in --mode "
    "multi programs can open them.",
    "desktop": "--observation tree, with another --out, shows the accessibility tree alone.",
}


class _Runner:
    def __init__(
        self,
        plan: InferencePlan,
        records: InferenceRecords,
        resources: Resources,
        listeners: Listeners,
    ) -> None:
        self._plan = plan
        self._records = records
        self._resources = resources
        self._listeners = listeners
        pictures = PictureStore(records.store.path / PICTURES_FOLDER)
        self._context = CallContext(
            chat_model=resources.chat_model,
            model=plan.model_name,
            params=plan.request_params,
            pictures=pictures,
            journal=Journal(records.store, resources.budget),
            budget=resources.budget,
            price=plan.model.price,
            cache=resources.cache,
        )
        self._threads = ThreadPoolExecutor(resources.jobs, thread_name_prefix="judge-infer")
        self._solver = Solver(plan, resources.sandbox, self._threads, pictures)
        self._episodes: DesktopSolver | ToolSolver | None = None
        if plan.tools is not None and resources.sandbox is not None:
            self._episodes = ToolSolver(
                plan,
                resources.sandbox,
                resources.calculator or SharedCalculator("auto"),
                records.store,
                pictures,
                self._threads,
                jobs=resources.jobs,
            )
        if plan.desktop is not None and resources.desktops is not None:
            self._episodes = DesktopSolver(
                plan,
                resources.desktops,
                records.store,
                pictures,
                self._threads,
                jobs=resources.jobs,
            )
        self._ahead = Outcome()
        self._stop: JudgeError | None = None
        self._budget_reached = False
        self._summary = InferenceSummary()
        self._done = 0

    async def run(self) -> InferenceSummary:
        started = time.monotonic()
        summary = self._summary
        finished = self._records.finished()
        waiting: list[Job] = []
        summary.total = len(self._plan.assignments) * self._plan.samples
        for assignment in self._plan.assignments:
            for sample in range(self._plan.samples):
                record = finished.get((assignment.question.id, sample))
                if record is None:
                    waiting.append((assignment, sample))
                else:
                    summary.reused += 1
                    self._count(record, reused=True)
        try:
            jobs = await self._asked_ahead(waiting)
            workers = min(self._resources.concurrency, max(jobs.qsize(), 1))
            async with asyncio.TaskGroup() as group:
                for _ in range(workers):
                    group.create_task(self._work(jobs))
        except* JudgeError as errors:
            raise _first(errors) from None
        finally:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._solver.close()
        if self._stop is not None:
            raise self._stop
        self._records.store.check_intact()
        summary.unasked = summary.total - summary.finished - summary.failed
        summary.stopped = self._ahead.stopped
        if self._budget_reached:
            summary.stopped = "the budget is used up"
        summary.tokens = self._resources.budget.tokens
        summary.cost = self._resources.budget.cost if self._plan.model.price else None
        summary.seconds = time.monotonic() - started
        return summary

    async def _asked_ahead(self, waiting: Sequence[Job]) -> asyncio.Queue[Job]:
        """Returns a queue of the conversations; a bulk client first obtains their replies."""
        bulk_client, context = self._resources.bulk_client, self._context
        if bulk_client is not None:
            queue = RequestQueue(
                self._plan,
                waiting,
                self._solver,
                context,
                self._records.store.path,
                self._listeners.on_batch,
            )
            self._ahead = await bulk_client.answer(queue)
            model = AnsweredAhead(context.chat_model.endpoint, self._ahead.failures)
            self._context = replace(context, chat_model=model)
        jobs: asyncio.Queue[Job] = asyncio.Queue()
        for assignment, sample in waiting:
            if (assignment.question.id, sample) not in self._ahead.unasked:
                jobs.put_nowait((assignment, sample))
        return jobs

    @property
    def _mode(self) -> str:
        if self._plan.tools is not None:
            return "tools"
        return "text" if self._plan.desktop is None else "desktop"

    async def _work(self, jobs: asyncio.Queue[Job]) -> None:
        while self._stop is None and not self._budget_reached:
            try:
                assignment, sample = jobs.get_nowait()
            except asyncio.QueueEmpty:
                return
            await self._one(assignment, sample)

    async def _one(self, assignment: Assignment, sample: int) -> None:
        """Processes one task and sample, from prompt to record; raises only errors of the store."""
        question = assignment.question
        context = replace(self._context, params=self._plan.params_of(question))
        client = TaskClient(context, question.id, sample)
        conversation = Conversation()
        state = "stopped"
        problem: str | None = None
        try:
            await self._solve(assignment, conversation, client)
            state = "finished"
        except BudgetReachedError:
            self._budget_reached = True
            problem = "the budget is used up"
        except CallError as error:
            state, problem = "failed", error.message
            if error.kind == "pictures":
                self._stop = InferenceError(
                    f"{self._resources.chat_model.endpoint}: the model "
                    f"{self._plan.model_name} takes no pictures: {error.message}",
                    hint=_WITHOUT_PICTURES[self._mode],
                )
            if error.kind == "access":
                self._stop = InferenceError(
                    f"{self._resources.chat_model.endpoint}: {error.message}",
                    hint="Check the key, the model's name and the address; the same command "
                    "continues from here.",
                )
        except StoreError:
            raise
        except SandboxError as error:
            failed = "sandbox" if self._plan.desktop is None else "desktop"
            state, problem = "failed", f"{failed}: {error.message}"
            await self._check_sandbox(error)
        except (WorkbookError, SuiteError) as error:
            state, problem = "failed", error.message
        except Exception as error:  # noqa: BLE001  one bad task never ends a run
            state, problem = "failed", f"{type(error).__name__}: {error}"
            conversation.rounds.append({"judge_traceback": traceback.format_exc()})
        finally:
            # Also if the run is interrupted, since the replies so far have been paid for.
            self._write_conversation(assignment, sample, conversation, client, state, problem)
        if state == "finished":
            self._finish(assignment, sample, conversation, client)
        elif state == "failed":
            self._fail(question.id, assignment, sample, problem or "")

    async def _solve(
        self, assignment: Assignment, conversation: Conversation, client: TaskClient
    ) -> None:
        """Lets the model solve the task, in episodes or in a conversation."""
        if self._episodes is None:
            await self._solver.solve(assignment, conversation, client)
            return
        task_id, sample = assignment.question.id, client.sample

        def keep() -> None:
            self._write_conversation(assignment, sample, conversation, client, "stopped", None)

        before = self._records.read_conversation(task_id, sample)
        await self._episodes.solve(assignment, conversation, client, before, keep)

    async def _check_sandbox(self, error: SandboxError) -> None:
        """Stops the run if the sandbox fails for all tasks, and not only for this task."""
        if self._episodes is not None:
            try:
                await self._episodes.check()
            except SandboxError:
                self._stop = error
            return
        sandbox = self._resources.sandbox
        assert sandbox is not None

        def probe() -> None:
            with sandbox.session() as session:
                session.run(RunRequest(program="", files={}, collect=None))

        try:
            await asyncio.get_running_loop().run_in_executor(self._threads, probe)
        except SandboxError:
            self._stop = error

    # -- records ---------------------------------------------------------------------------------

    def _write_conversation(
        self,
        assignment: Assignment,
        sample: int,
        conversation: Conversation,
        client: TaskClient,
        state: str,
        problem: str | None,
    ) -> None:
        document = {
            "id": assignment.raw_id,
            "sample": sample,
            "model": self._plan.model.name,
            "setting": self._plan.setting_of(assignment.question).name,
            "state": state,
            "problem": problem,
            "ended": conversation.ended if state == "finished" else None,
            "messages": conversation.messages,
            "rounds": conversation.rounds,
            **({"parts": conversation.parts} if conversation.parts else {}),
            "calls": client.calls,
            **self._plan.background.record(assignment.question),
        }
        self._records.write_conversation(assignment.question.id, sample, document)

    def _finish(
        self, assignment: Assignment, sample: int, conversation: Conversation, client: TaskClient
    ) -> None:
        task_id = assignment.question.id
        plan, question = self._plan, assignment.question
        pathless = plan.desktop is not None or plan.typed_of(question) is not None
        paths = None if pathless else prompt_paths(plan, question)
        if plan.tools is not None:
            submits_program = plan.tools.answer == "program"
            paths = tool_paths(question, question.inputs[0]) if submits_program else None
        # A repeated episode shows something different, so its earlier replies cannot be used again.
        lost = client.lost() if self._episodes is not None else []
        for note in conversation.notes:
            if note not in self._summary.notes and len(self._summary.notes) < MAX_NOTES:
                self._summary.notes.append(note)
        record = submission_of_conversation(
            self._plan,
            assignment,
            sample,
            conversation,
            [*client.calls, *lost],
            self._records.conversation_path(task_id, sample),
            paths,
        )
        self._records.append_submission(record)
        self._count(record, reused=False)
        self._listeners.on_submission(record)

    def _fail(self, task_id: str, assignment: Assignment, sample: int, problem: str) -> None:
        at = utc_now()
        failure = {"id": assignment.raw_id, "sample": sample, "problem": problem, "at": at}
        self._records.append_failure(failure)
        self._summary.failed += 1
        self._summary.failures[f"{task_id}" + (f".{sample}" if sample else "")] = problem
        self._report((task_id, sample), "failed", reused=False)

    def _count(self, record: dict[str, Any], *, reused: bool) -> None:
        self._summary.count(record)
        key = (str(record["id"]), int(record.get("sample") or 0))
        state = "program" if record.get("solution") else "no-code"
        state = "file" if record.get("outputs") else state
        self._report(key, "answer" if record.get("response") else state, reused=reused)

    def _report(self, key: SampleKey, state: str, *, reused: bool) -> None:
        self._done += 1
        budget = self._resources.budget
        self._listeners.on_event(
            InferenceEvent(
                *key,
                state=state,
                reused=reused,
                done=self._done,
                total=self._summary.total,
                tokens=budget.tokens,
                cost=budget.cost if self._plan.model.price else None,
            )
        )


def _first(errors: BaseExceptionGroup[JudgeError]) -> JudgeError:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
