"""Tasks of a suite as an environment of ``verifiers``: one reply each, judged and rewarded.

    vf-eval sheetjudge --env.taskset.task.suite SUITE --env.taskset.task.signal soft

A task's data is its question: prompts are those of ``judge infer --mode single``, and golds stay
with the judge. The judge of a process is opened with the first reply, or when the environment
starts, and is closed when the process ends.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import openai
import verifiers.v1 as vf

from judge.api.infer_options import InferOptions
from judge.api.options import JudgingOptions
from judge.api.planning import plan_of
from judge.api.rewards import Rewards, Signal, reward_of
from judge.core.conversation import Content
from judge.core.limits import MIB, Limits
from judge.core.score import mean_cell_accuracy
from judge.core.verdict import cause_without_golds
from judge.errors import JudgeError
from judge.files.media import PICTURES_FOLDER
from judge.inference.config import ModelSpec
from judge.inference.pictures import PictureStore, sent_content
from judge.inference.solver import Solver

_USUAL = Limits()
_ASKED_AGAIN = 4
"""How often a request that failed for a reason that may pass is repeated."""


class SpreadsheetTaskConfig(vf.TaskConfig):
    """Which suite, and how it is judged; the defaults are those of ``judge score``."""

    suite: str = "sample"
    """A folder, an archive or a name, as ``judge score --dataset`` takes it."""
    signal: Signal = "soft"
    """What the reward measures: ``soft``, ``hard`` or ``cell_accuracy``."""
    profile: str = "standard"
    """Comparison profile."""
    recalc: Literal["auto", "never", "always"] = "auto"
    """Whether formulas are computed: ``auto``, ``never`` or ``always``."""
    sandbox: str = "auto"
    """``auto``, ``docker`` or ``bubblewrap``."""
    jobs: int | None = None
    """Submissions judged at a time in this process; None for one per processor."""
    corrections: Path | None = None
    """A file of known faults of suites, or a folder of such files."""
    cpu_s: float = _USUAL.cpu_s
    """Processor seconds of a program on one case."""
    wall_s: float = _USUAL.wall_s
    """Wall-clock seconds of a program on one case."""
    memory_mib: int = _USUAL.memory_bytes // MIB
    """Memory of a program."""

    def options(self) -> JudgingOptions:
        """The same for the judge.

        Raises:
            UsageError: a field holds a value that it cannot have.
        """
        limits = Limits(cpu_s=self.cpu_s, wall_s=self.wall_s, memory_bytes=self.memory_mib * MIB)
        chosen: dict[str, Any] = {} if self.jobs is None else {"jobs": self.jobs}
        return JudgingOptions(
            sandbox=self.sandbox,
            profile=self.profile,
            recalc=self.recalc,
            corrections=self.corrections,
            limits=limits,
            **chosen,
        )


class SpreadsheetTaskData(vf.TaskData):
    """A question of a suite, without its golds.

    ``id`` is the task's id in the suite.
    """

    suite: str
    """Name of the suite."""
    kind: str
    """The suite's own class of the task, such as ``Cell-Level Manipulation``."""


class NoRewardError(Exception):
    """The judge failed, or the golds are at fault: the rollout has no reward, and is an error."""


class SpreadsheetTask(vf.Task[SpreadsheetTaskData, vf.State, SpreadsheetTaskConfig]):
    """Rewards the last reply of a rollout."""

    @property
    def key(self) -> str:
        """The suite and the task, whatever else of the data changes."""
        return f"{self.data.suite}/{self.data.id}"

    @vf.reward
    async def judged(self, trace: vf.Trace) -> Mapping[str, float]:
        """The reward, under the name of its signal; the scores and verdicts are kept with it.

        Raises:
            NoRewardError: there is none, so that the rollout is not taken for a failed answer.
        """
        rewards = await asyncio.to_thread(opened_rewards, self.config)
        found = await rewards.judge.ajudge(self.data.id, trace.last_reply)
        trace.info["verdicts"] = [case.verdict.value for case in found.cases]
        trace.info["causes"] = [cause_without_golds(case) for case in found.cases]
        scores = {"soft_score": found.soft, "hard_score": found.hard}
        if rewards.counts_cells(self.data.id):
            scores["cell_accuracy_score"] = mean_cell_accuracy(found.cases)
        trace.record_metrics({name: value for name, value in scores.items() if value is not None})
        reward = reward_of(found, rewards.signal)
        if reward is None:
            verdicts = ", ".join(trace.info["verdicts"])
            causes = "; ".join(filter(None, trace.info["causes"]))
            raise NoRewardError(f"task {self.data.id} has no reward ({verdicts}): {causes}")
        return {rewards.signal: reward}


class SpreadsheetTasksetConfig(vf.TasksetConfig):
    """Which tasks, and how they are asked."""

    task: SpreadsheetTaskConfig = SpreadsheetTaskConfig()
    ids: tuple[str, ...] = ()
    """Ids of tasks; empty for all."""
    rows: int | None = None
    """Rows of each sheet in the prompt; None for those of the mode ``single``."""
    prompt: Path | None = None
    """A template in place of that of the mode ``single``."""


class SpreadsheetTaskset(vf.Taskset[SpreadsheetTask, SpreadsheetTasksetConfig]):
    """The tasks of a suite, in its order."""

    def load(self) -> Iterator[SpreadsheetTask]:
        """Reads the suite and the first rows of each input workbook.

        Raises:
            SuiteError: the suite is missing or broken.
            UsageError: there is no such task, or the template cannot be read.
            WorkbookError: an input workbook cannot be shown.
        """
        config = self.config
        options = InferOptions(
            mode="single",
            dataset=config.task.suite,
            ids=config.ids,
            rows=config.rows,
            prompt=None if config.prompt is None else str(config.prompt),
        )
        plan = plan_of(options.filled({}), ModelSpec("verifiers", None))
        pictures = PictureStore(Path(PICTURES_FOLDER))
        with ThreadPoolExecutor(1) as threads:
            solver = Solver(plan, None, threads, pictures)
            for assignment in plan.assignments:
                question = assignment.question
                content = solver.prompt(assignment, question.inputs[0])
                data = SpreadsheetTaskData(
                    id=question.id,
                    name=f"{plan.suite.name}/{question.id}",
                    prompt=_prompt(content, pictures),
                    suite=plan.suite.name,
                    kind=question.kind,
                )
                yield SpreadsheetTask(data, config.task)


def _prompt(content: Content, pictures: PictureStore) -> Any:
    """A prompt as the library has it: a string, or a message with pictures."""
    sent = sent_content(content, pictures)
    return sent if isinstance(sent, str) else [vf.UserMessage(content=sent)]


class SpreadsheetHarness(vf.Harness[vf.HarnessConfig]):
    """Asks once, from this process: a reply is all that a task needs, and nothing is installed."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False
    SUPPORTS_RESUME = True

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,  # noqa: ARG002
        runtime: vf.Runtime,  # noqa: ARG002
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],  # noqa: ARG002
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """Sends the prompt; the reply is recorded on its way."""
        system, prompt = self.resolve_prompt(data)
        asked = [vf.UserMessage(content=prompt)] if isinstance(prompt, str) else list(prompt)
        if system is not None:
            asked.insert(0, vf.SystemMessage(content=system))
        messages: Any = [each.model_dump(exclude_none=True) for each in asked]
        async with openai.AsyncOpenAI(
            base_url=endpoint, api_key=secret, max_retries=_ASKED_AGAIN, timeout=None
        ) as client:
            await client.chat.completions.create(model=ctx.model, messages=messages)
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")


class SpreadsheetEnvConfig(vf.EnvConfig):
    """One agent, on this machine."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class SpreadsheetEnv(vf.Env[SpreadsheetEnvConfig]):
    """One reply to each task, by a judge that is open before the first is asked."""

    async def start(self) -> None:
        """Opens the judge, so that a machine without a sandbox is noticed before anything is paid.

        Raises:
            JudgeError: the suite, the sandbox or an option is wrong.
        """
        await asyncio.to_thread(opened_rewards, self.taskset.config.task)

    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        """One reply."""
        await agents.agent.run(task)


def load_environment(
    suite: str | Path = "sample",
    signal: Signal = "soft",
    *,
    ids: Sequence[str] = (),
    rows: int | None = None,
    **judging: Any,
) -> SpreadsheetEnv:
    """The environment, for programs that do not start from a configuration.

    Args:
        suite: a folder, an archive or a name.
        signal: what the reward measures.
        ids: ids of tasks; empty for all.
        rows: rows of each sheet in the prompt.
        **judging: any other field of :class:`SpreadsheetTaskConfig`.
    """
    task = SpreadsheetTaskConfig(suite=str(suite), signal=signal, **judging)
    taskset = SpreadsheetTasksetConfig(id="sheetjudge", task=task, ids=tuple(ids), rows=rows)
    return SpreadsheetEnv(SpreadsheetEnvConfig(taskset=taskset))


_OPENED: dict[tuple[int, str], Rewards] = {}
_OPENING = threading.Lock()


def opened_rewards(config: SpreadsheetTaskConfig) -> Rewards:
    """The rewards of this process for a suite and options; opened once.

    Raises:
        JudgeError: the suite, the sandbox or an option is wrong.
    """
    named = config.model_dump_json(
        include=set(SpreadsheetTaskConfig.model_fields) - set(vf.TaskConfig.model_fields)
    )
    key = (os.getpid(), named)  # a fork needs one of its own
    with _OPENING:
        if key not in _OPENED:
            if not _OPENED:
                atexit.register(_close_all)
            _OPENED[key] = Rewards(config.suite, config.signal, config.options())
        return _OPENED[key]


def _close_all() -> None:
    while _OPENED:
        _, rewards = _OPENED.popitem()
        with contextlib.suppress(JudgeError):
            rewards.close()
