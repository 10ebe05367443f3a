"""One conversation about one task: single round, or rounds of program, execution and feedback."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields
from typing import Any

from judge.core.conversation import Content
from judge.inference.chat import CallError, ChatReply, Message
from judge.inference.prompt import Feedback
from judge.inference.workplace import Execution, Workplace
from judge.replies.blocks import outside_fences
from judge.replies.extract import Extraction, extract

Ask = Callable[[tuple[Message, ...], int], Awaitable[ChatReply]]
"""Asks the model: the conversation so far and the 1-based number of the round."""

_DONE = re.compile(r"[\s*_#>`]*+DONE[\s*_.!`]*+\Z")


@dataclass(slots=True)
class Talk:
    """A conversation while it is in progress, and its outcome.

    Attributes:
        messages: the conversation as it was sent, replies included.
        rounds: one record for each round: form of the program, execution, finish reason.
        solution: the program that is submitted; None if no reply contained one.
        reply: the reply that the solution came from, unchanged; the last reply if there is no
            solution.
        response: the reply that is the typed answer; None where the task asks for a workbook.
        ended: why it ended: ``replied`` (single), ``output``, ``explicit``, ``answer``, ``rounds``
            or ``context-length``; on a desktop as in
            :class:`judge.desktop.records.EpisodeEnd`.
        finish_reason: of the last reply.
        truncated: whether the reply that the solution came from was cut off.
        stands_alone: whether the solution leaves a workbook in a fresh process; None where it was
            not run, or no round ever left one.
        outputs: number of a case -> what its episode on a desktop left, as submissions have it.
        parts: for each of these episodes the number of its case, and of its first message.
    """

    messages: list[Message] = field(default_factory=list)
    rounds: list[dict[str, Any]] = field(default_factory=list)
    solution: str | None = None
    reply: str = ""
    response: str | None = None
    ended: str = "rounds"
    finish_reason: str | None = None
    truncated: bool = False
    stands_alone: bool | None = None
    outputs: dict[int, dict[str, Any]] = field(default_factory=dict)
    parts: list[tuple[int, int]] = field(default_factory=list)

    def start_again(self) -> None:
        """Forgets everything: the conversation starts again from the beginning."""
        fresh = Talk()
        for each in fields(self):
            setattr(self, each.name, getattr(fresh, each.name))


async def talk_once(talk: Talk, prompt: Content, ask: Ask) -> None:
    """A single round: one prompt, one reply.

    Args:
        talk: filled as the conversation proceeds, so that it is there if a call fails.
        prompt: the prompt.
        ask: asks the model.

    Raises:
        CallError: no reply could be obtained.
        BudgetReachedError: the budget does not allow the call.
    """
    talk.messages.append({"role": "user", "content": prompt})
    try:
        reply = await ask(tuple(talk.messages), 1)
    except CallError as error:
        end_over_length(talk, error)
        return
    found = _take_reply(talk, reply)
    _hand_in(talk, reply, found)
    talk.ended = "replied"


@dataclass(frozen=True, slots=True)
class RoundRules:
    """The rules of a conversation of several rounds.

    Attributes:
        rounds: how often the model may answer.
        explicit_stop: it ends when the model says so, not when a workbook is there.
        feedback: the words between rounds.
        output_path: where the prompt says that the solution leaves its workbook.
        unseen: the words where the model does not learn how its programs ran; None where it does.
    """

    rounds: int
    explicit_stop: bool
    feedback: Feedback
    output_path: str
    unseen: Feedback | None = None


async def talk_in_rounds(
    talk: Talk,
    prompt: Content,
    ask: Ask,
    rules: RoundRules,
    workplace: Workplace,
    threads: Executor,
) -> None:
    """Rounds of program, execution and feedback.

    Args:
        talk: filled as the conversation proceeds.
        prompt: the prompt.
        ask: asks the model.
        rules: of the conversation.
        workplace: where programs run.
        threads: run what blocks.

    Raises:
        CallError: no reply could be obtained.
        BudgetReachedError: the budget does not allow a call.
        SandboxError: the sandbox failed.
    """
    loop = asyncio.get_running_loop()
    talk.messages.append({"role": "user", "content": prompt})
    left_output: _Handed | None = None
    for number in range(1, rules.rounds + 1):
        try:
            reply = await ask(tuple(talk.messages), number)
        except CallError as error:
            end_over_length(talk, error)
            break
        found = _take_reply(talk, reply)
        _hand_in(talk, reply, found)
        says_done = rules.explicit_stop and _says_done(reply.text)
        execution: Execution | None = None
        if found.code is not None and not (found.truncated and reply.is_truncated):
            execution = await loop.run_in_executor(threads, workplace.execute, found.code)
            talk.rounds[-1]["execution"] = execution_record(execution)
            if execution.solved:
                left_output = _Handed(found.code, reply.text, talk.truncated)
        if says_done or (execution and execution.solved and not rules.explicit_stop):
            talk.ended = "explicit" if says_done else "output"
            break
        left = rules.rounds - number
        text = _feedback(rules, found, reply, execution, left)
        talk.rounds[-1]["feedback"] = text
        if left:
            talk.messages.append({"role": "user", "content": text})
    if left_output is not None:
        # What left a workbook counts more than a look around that came after it.
        talk.solution, talk.reply = left_output.code, left_output.reply
        talk.truncated = left_output.truncated
        alone = await loop.run_in_executor(threads, workplace.execute_alone, left_output.code)
        talk.stands_alone = alone.solved


@dataclass(frozen=True, slots=True)
class _Handed:
    """A program that left a workbook, with the reply that it came from."""

    code: str
    reply: str
    truncated: bool


def _take_reply(talk: Talk, reply: ChatReply) -> Extraction:
    found = extract(reply.text)
    note_reply(talk, reply, found.form)
    if talk.solution is None:
        talk.reply = reply.text
        talk.truncated = reply.is_truncated
    return found


def note_reply(talk: Talk, reply: ChatReply, form: str) -> None:
    """Adds a reply, and the record of its round.

    Args:
        talk: the conversation.
        reply: what came.
        form: how it holds its program.
    """
    talk.messages.append({"role": "assistant", "content": reply.text})
    talk.finish_reason = reply.finish_reason
    talk.rounds.append(
        {
            "form": form,
            "truncated": reply.is_truncated,
            "finish_reason": reply.finish_reason,
            **({"reasoning": reply.reasoning} if reply.reasoning else {}),
        }
    )


def _hand_in(talk: Talk, reply: ChatReply, found: Extraction) -> None:
    if found.code is not None:
        talk.solution = found.code
        talk.reply = reply.text
        talk.truncated = reply.is_truncated or found.truncated


def _says_done(text: str) -> bool:
    """Whether the model ends the conversation, outside of any program."""
    return any(_DONE.match(line) for line, outside in outside_fences(text) if outside)


def end_over_length(talk: Talk, error: CallError) -> None:
    """A conversation that is too long for the model ends with what it has so far."""
    if error.kind != "context-length":
        raise error
    talk.ended = "context-length"
    talk.finish_reason = "context_length"
    talk.rounds.append({"form": "none", "error": error.message})


def execution_record(execution: Execution) -> dict[str, Any]:
    """What a conversation keeps of the outcome of a program."""
    return {
        "failed": execution.failed,
        "stopped": execution.stopped,
        "printed": execution.printed,
        "error": execution.error,
        "output_exists": execution.output_exists,
        "seconds": round(execution.seconds, 3),
    }


def _feedback(
    rules: RoundRules,
    found: Extraction,
    reply: ChatReply,
    execution: Execution | None,
    left: int,
) -> str:
    say = rules.feedback.say
    if execution is None:
        cut_off = found.code is not None or reply.is_truncated
        return say("cut_off" if cut_off else "no_code", left=str(left))
    if rules.unseen is not None:
        occasion = "unseen_saved" if execution.output_exists else "unseen"
        return rules.unseen.say(occasion, output_path=rules.output_path, left=str(left))
    values = {
        "output": execution.printed or "(nothing)",
        "traceback": execution.error,
        "reason": execution.stopped or "",
        "output_path": rules.output_path,
        "left": str(left),
    }
    if execution.stopped is not None:
        return say("stopped", **values)
    if execution.failed:
        return say("failed", **values)
    if execution.output_exists:
        return say("solved", **values)
    return say("printed" if execution.printed else "silent", **values)
