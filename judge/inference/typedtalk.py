"""One conversation that ends with a typed answer: rounds of program, printout and pictures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Protocol

from judge.core.conversation import Content, Picture, content_of
from judge.inference.chat import CallError, ChatReply
from judge.inference.config import TypedSetting
from judge.inference.prompt import Feedback
from judge.inference.talk import Ask, Talk, end_over_length, execution_record, note_reply
from judge.inference.workplace import Execution
from judge.replies.answers import stated_answer
from judge.replies.blocks import find_blocks
from judge.replies.extract import Extraction, extract
from judge.replies.python_text import defined_names
from judge.replies.reasoning import answer_of

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
