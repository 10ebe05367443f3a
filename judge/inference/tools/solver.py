"""Lets a chat model solve tasks with tools: the first messages, and an episode for each case."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any

from judge.core.limits import Limits
from judge.core.records.tool_episodes import (
    ToolEpisodeEnd,
    ToolEpisodeHead,
)
from judge.core.task import CaseInput, TaskQuestion
from judge.desktop.episodes import EPISODES_FOLDER, episode_path
from judge.errors import StoreError
from judge.files.documents import utc_now
from judge.grading.store import RunDirectory
from judge.inference.calls import TaskClient
from judge.inference.chat import Message, writable
from judge.inference.conversation import Conversation, converse
from judge.inference.episodes import EpisodePart, EpisodeSolver, asking, part_of
from judge.inference.execution import Execution, FreshProcessRunner
from judge.inference.pictures import PictureStore
from judge.inference.plan import Assignment, InferencePlan
from judge.inference.prompt import Template
from judge.inference.tools.episode import ToolEnvironment
from judge.inference.tools.setting import ToolMode, ToolTask, tool_paths, tool_task
from judge.sandbox.contract import Sandbox
from judge.tools.episodes import ToolEpisodeWriter, read_tool_episode, write_definitions
from judge.tools.sets import EpisodeTools, SharedCalculator

_DECIMALS_OF_S = 3  # recorded times are rounded to milliseconds


def opening_messages(plan: InferencePlan, question: TaskQuestion, case: CaseInput) -> list[Message]:
    """Returns the first messages of an episode: the system message, and the task.

    Args:
        plan: the plan of the run.
        question: the task.
        case: one of its cases.
    """
    mode = plan.tools
    assert mode is not None, "only runs with tools have these messages"
    opened, collected = tool_paths(question, case)
    template = plan.template
    if template.name == mode.setting.prompt:
        template = Template(template.name, mode.prompt_text(question))
    details = question.details
    sheet = details.get("answer_sheet")
    words = mode.tools.instructions if mode.instructions else ""
    values = {
        **plan.background.fields(template, question, question.instruction),
        "input_path": opened,
        "output_path": collected,
        "spreadsheet_path": opened,
        "instruction_type": question.kind or "",
        "answer_position": details.get("answer_position", ""),
        "answer_sheet": f" (on the sheet {sheet})" if sheet else "",
        "rounds": str(mode.setting.rounds),
        "max_turn_num": str(mode.setting.rounds),
        "shows": mode.shows,
        "instructions": f"\n\n{words}" if words else "",
    }
    system = Template("system", mode.preset.system).fill(values).strip()
    return [
        {"role": "system", "content": writable(system)},
        {"role": "user", "content": writable(template.fill(values)).strip()},
    ]


class ToolSolver(EpisodeSolver[ToolEpisodeEnd]):
    """Lets a chat model solve tasks with tools, with a limited number of episodes at a time.

    Args:
        plan: the plan of the run.
        sandbox: the sandbox in which the tools run.
        calculator: computes formulas for all episodes.
        store: the results directory.
        pictures: the store for the pictures of messages.
        threads: threads for blocking work.
        jobs: maximum number of episodes at a time.
    """

    def __init__(
        self,
        plan: InferencePlan,
        sandbox: Sandbox,
        calculator: SharedCalculator,
        store: RunDirectory,
        pictures: PictureStore,
        threads: Executor,
        *,
        jobs: int = 1,
    ) -> None:
        assert plan.tools is not None, "only runs with tools have these episodes"
        super().__init__(plan, store, pictures, threads, jobs)
        self._mode: ToolMode = plan.tools
        self._sandbox = sandbox
        self._calculator = calculator
        self._definitions = ""

    def cases(self, assignment: Assignment) -> tuple[CaseInput, ...]:
        """Returns all cases; only the first one if the answer is a program."""
        inputs = assignment.question.inputs
        return inputs if self._mode.answer == "workbook" else inputs[:1]

    async def check(self) -> None:
        """Checks that the sandbox of the tools can be opened at all."""
        tools = self._tools(ToolTask({}, "", "/home/agent/out/none.xlsx"))
        try:
            await asyncio.to_thread(tools.start)
        finally:
            await asyncio.to_thread(tools.close)

    def _tools(self, task: ToolTask) -> EpisodeTools:
        mode = self._mode
        return EpisodeTools(
            mode.tools,
            self._sandbox,
            task.files,
            task.opened,
            task.collected,
            self._calculator,
            call_s=mode.setting.call_s,
            slow_call_s=mode.setting.slow_call_s,
            marker="marker" in mode.as_published,
            shifted="shifted-arguments" in mode.as_published,
        )

    async def once(
        self,
        assignment: Assignment,
        case: CaseInput,
        conversation: Conversation,
        client: TaskClient,
        keep: Callable[[], None],
        attempt: int,
    ) -> ToolEpisodeEnd:
        """Runs an episode once."""
        plan, mode, question = self._plan, self._mode, assignment.question
        task = tool_task(question, case, copied=mode.begins_with_copy)
        tools = self._tools(task)
        began = time.monotonic()
        run = asyncio.get_running_loop().run_in_executor
        try:
            await asyncio.shield(run(self._threads, tools.start))
            head: ToolEpisodeHead = {
                "line": "head",
                "id": assignment.raw_id,
                "sample": client.sample,
                "case": case.number,
                "model": plan.model.name,
                "setting": mode.setting.name,
                "instruction": question.instruction,
                "answer": mode.answer,
                "tools": self._kept_definitions(),
                "servers": tools.servers,
                "image": tools.image,
                "files": {
                    path: hashlib.sha256(data).hexdigest() for path, data in task.files.items()
                },
                "collected": task.collected,
                "limits": mode.setting.limits,
                "started": utc_now(),
                "start_s": round(time.monotonic() - began, _DECIMALS_OF_S),
                "attempt": attempt,
            }
            with ToolEpisodeWriter(self._store.path, head) as writer:
                conversation.parts.append((case.number, len(conversation.messages)))
                episode = ToolEnvironment(
                    mode,
                    tools,
                    conversation,
                    case.number,
                    opening_messages(plan, question, case),
                    writer=writer,
                    store=self._store,
                    pictures=self._pictures,
                    client=client,
                    threads=self._threads,
                    program=self._program(question, case),
                    max_tokens=plan.request_params.get("max_tokens"),
                    before=task.files.get(task.collected),
                )
                await converse(episode, asking(client, case))
                collected = await episode.blocking(tools.collect)
                if collected.data is not None:
                    self._store.put_workbook(collected.data)
                # The last line makes an episode finished, so everything else is written before.
                keep()
                end = episode.end(collected, task.files.get(task.opened))
                if end.get("fault"):
                    conversation.notes.append(str(end["fault"]))
                writer.append(end)
                return end
        finally:
            # Not on a thread of the run, since all of these may be waiting for tools that hang.
            await asyncio.shield(asyncio.to_thread(tools.close))

    def _kept_definitions(self) -> str:
        if not self._definitions:
            definitions = self._mode.tools.definitions
            self._definitions = write_definitions(self._store.path, definitions)
        return self._definitions

    def _program(
        self, question: TaskQuestion, case: CaseInput
    ) -> Callable[[str], Execution] | None:
        """Returns a function that runs a submitted program; None if a workbook is the answer."""
        if self._mode.answer != "program":
            return None
        limits: Limits = self._plan.limits
        paths = tool_paths(question, case)
        runner = FreshProcessRunner(self._sandbox, case.path, *paths, limits)
        return runner.execute_alone

    def recorded(
        self,
        assignment: Assignment,
        sample: int,
        case: CaseInput,
        before: Mapping[str, Any] | None,
    ) -> EpisodePart[ToolEpisodeEnd] | None:
        """Returns the recorded episode of a case; None if it is not finished or cannot be read.

        None also if the answer is a program: the episode is repeated with the recorded replies.
        """
        path = episode_path(self._store.path, assignment.question.id, sample, case.number)
        try:
            episode = read_tool_episode(path)
        except StoreError:
            return None
        end = episode.end
        if end is None or episode.head["model"] != self._plan.model.name or before is None:
            return None
        if self._mode.answer == "program" or not self.has_output(end["output"]):
            return None
        return part_of(end, len(episode.turns), case.number, before)

    def note_end(
        self,
        assignment: Assignment,
        sample: int,
        case: CaseInput,
        conversation: Conversation,
        end: ToolEpisodeEnd,
    ) -> None:
        """Adds the outcome of an episode to the conversation, for the submission."""
        if self._mode.answer == "program":
            return
        question = assignment.question
        path = episode_path(self._store.path, question.id, sample, case.number)
        conversation.outputs[case.number] = {
            "sha256": end["output"],
            "bytes": end["output_bytes"],
            "name": tool_paths(question, case)[1].rpartition("/")[2],
            "ended": end["ended"],
            "gui_only": False,
            "changed": end["changed"],
            "problem": end["problem"],
            "turns": end["turns"],
            "steps": end["calls"],
            "seconds": end["seconds"],
            "episode": f"{EPISODES_FOLDER}/{path.name}",
        }
