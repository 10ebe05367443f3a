"""Conversations in text: a single round, or rounds of program, execution and feedback.

A conversation ends with a program that leaves a workbook, or with a typed answer.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

from judge.core.messages import Content, Picture, content_of
from judge.inference.chat import CallError, ChatReply, Message
from judge.inference.config import TypedSetting
from judge.inference.execution import Execution, Workplace
from judge.inference.prompt import Feedback
from judge.replies.answers import stated_answer
from judge.replies.extract import Extraction, extract
from judge.replies.fences import find_blocks, outside_fences
from judge.replies.reasoning import answer_of
from judge.replies.scan import defined_names

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
            :class:`judge.desktop.episodes.EpisodeEnd`.
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


Drawn = tuple[tuple[str, bytes], ...]
"""Name and bytes of what a program made."""

ANSWER = "answer"
"""How a conversation ended in which an answer was given."""


class ProgramRunner(Protocol):
    """Runs the programs of one conversation. Blocking; used by one thread at a time."""

    def execute(self, code: str) -> Execution:
        """Runs one program among the variables of those before it.

        Raises:
            SandboxError: the sandbox failed (not the program).
        """
        ...


@dataclass(frozen=True, slots=True)
class TypedRules:
    """The rules of a conversation that ends with a typed answer.

    Attributes:
        setting: rounds, words that announce the answer, what a model is shown.
        feedback: the words between rounds.
        keep: keeps what a program made, given as names and bytes, and returns the pictures of it
            as they can be shown; blocking.
    """

    setting: TypedSetting
    feedback: Feedback
    keep: Callable[[Drawn], list[Picture]]


async def talk_to_answer(
    talk: Talk,
    prompt: Content,
    ask: Ask,
    rules: TypedRules,
    runner: ProgramRunner | None,
    threads: Executor,
) -> None:
    """Rounds of program and printout, until the model answers.

    Args:
        talk: filled as the conversation proceeds; its ``response`` is the reply with the answer, or
            the last one.
        prompt: the first message.
        ask: asks the model.
        rules: of the conversation.
        runner: runs programs; None in a setting that runs none, where the first reply is the
            response.
        threads: run what blocks.

    Raises:
        CallError: no reply could be obtained.
        BudgetReachedError: the budget does not allow a call.
        SandboxError: the sandbox failed.
    """
    loop = asyncio.get_running_loop()
    setting = rules.setting
    talk.messages.append({"role": "user", "content": prompt})
    for number in range(1, setting.rounds + 1):
        try:
            reply = await ask(tuple(talk.messages), number)
        except CallError as error:
            end_over_length(talk, error)
            return
        found = read_turn(reply.text, setting)
        note_reply(talk, reply, found.program.form)
        talk.reply = talk.response = reply.text
        talk.truncated = reply.is_truncated
        talk.rounds[-1]["answers"] = found.answers
        if runner is None or found.answers:
            talk.ended = ANSWER if found.answers else "replied"
            return
        execution, pictures = None, []
        if found.program.code is not None and not (found.program.truncated and reply.is_truncated):
            execution = await loop.run_in_executor(threads, runner.execute, found.program.code)
            pictures = await loop.run_in_executor(threads, rules.keep, execution.pictures)
        left = setting.rounds - number
        outcome = _Outcome(reply, found, execution, tuple(pictures))
        content = _told(rules, outcome, left, talk.rounds[-1])
        if left:
            talk.messages.append({"role": "user", "content": content})


@dataclass(frozen=True, slots=True)
class Turn:
    """What a reply is in a conversation that ends with an answer.

    Attributes:
        program: the program that it holds, which may be none.
        answers: whether it gives the answer, so that the program is not run.
    """

    program: Extraction
    answers: bool


def read_turn(text: str, setting: TypedSetting) -> Turn:
    """Tells an answer from a look around.

    An answer is announced by words, or is JSON where a reply holds no program. A program next to
    announced JSON is not run, unless the setting says so; words without JSON next to a program
    ("the next step computes the final answer") announce nothing.

    Args:
        text: the reply.
        setting: the words, and what is done with a program next to an answer.
    """
    program = extract(text)
    if program.code is not None and _is_object(program.code):
        program = Extraction(None, "none")
    prose = _without_programs(answer_of(text))
    announced = any(word.lower() in prose.lower() for word in setting.end_words)
    has_json = _has_object(prose)
    if program.code is None:
        return Turn(program, answers=announced or has_json)
    return Turn(program, answers=announced and has_json and setting.beside_code == "end")


def _is_object(code: str) -> bool:
    """Whether a program is only an object: models fence their JSON as Python."""
    return code.lstrip().startswith("{") and not defined_names(code) and _has_object(code)


def _has_object(text: str) -> bool:
    return stated_answer(text, ()).values is not None


def _without_programs(text: str) -> str:
    for block in find_blocks(text):
        if block.is_python and not _is_object(block.text):
            text = text.replace(block.text.strip("\n"), "")
    return text


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What came of a round that did not end the conversation."""

    reply: ChatReply
    turn: Turn
    execution: Execution | None
    pictures: tuple[Picture, ...]


def _told(rules: TypedRules, outcome: _Outcome, left: int, record: dict[str, Any]) -> Content:
    """The message to the model after a round that did not end the conversation; noted down."""
    say = rules.feedback.say
    following = say("next_last") if left == 1 else say("next", left=str(left))
    execution, pictures = outcome.execution, outcome.pictures
    if execution is None:
        cut_off = outcome.turn.program.code is not None or outcome.reply.is_truncated
        text = say("cut_off" if cut_off else "no_answer", next=following)
        record["feedback"] = text
        return text
    shows = rules.setting.pictures != "none"
    values = {
        "output": execution.printed or "(nothing)",
        "traceback": execution.error,
        "reason": execution.stopped or "",
        "pictures": _named(rules.feedback, pictures, shows=shows),
        "next": following,
    }
    text = say(_occasion(execution), **values)
    content = content_of(text, pictures if shows else ())
    record["execution"] = execution_record(execution) | {
        "pictures": [picture.part for picture in pictures]
    }
    record["feedback"] = content
    return content


def _occasion(execution: Execution) -> str:
    if execution.stopped is not None:
        return "stopped"
    if execution.failed:
        return "failed"
    return "printed" if execution.printed else "silent"


def _named(feedback: Feedback, pictures: Sequence[Picture], *, shows: bool) -> str:
    if not pictures:
        return ""
    names = ", ".join(picture.name for picture in pictures)
    return feedback.say("drawn" if shows else "drawn_not_shown", names=names) + "\n"
