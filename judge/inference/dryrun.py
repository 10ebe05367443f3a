"""Builds the prompts of a run and estimates its cost, without sending a request."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.core.conversation import plain_text
from judge.errors import SuiteError, WorkbookError
from judge.files.media import PICTURES_FOLDER
from judge.inference.chat import PICTURE_TOKENS, estimate_content_tokens
from judge.inference.desktop.setting import DesktopSetting
from judge.inference.pictures import PictureStore
from judge.inference.plan import InferencePlan
from judge.inference.solver import Solver

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
