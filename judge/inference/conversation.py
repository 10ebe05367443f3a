"""Conversations with a chat model: one loop for every mode, and the environments of the text modes.

:func:`converse` is the loop: the environment sends messages, the model replies, and the environment
acts on the reply, until one of them ends the conversation. A mode is an :class:`Environment`:

* :class:`ProgramEnvironment`: the model writes programs, which are run between rounds, and is shown
  how they ran.
* :class:`AnswerEnvironment`: the model gives a typed answer, and may run programs before.
* :class:`judge.inference.desktop.episode.DesktopEnvironment`: the model works on a desktop.

Budget, pacing, records of calls and resuming are the same for all modes. The client with which the
loop asks the model takes care of them (:class:`judge.inference.calls.TaskClient`).
"""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, TypeVar

from judge.core.conversation import Content, Picture, content_of
from judge.core.replies.answers import stated_answer
from judge.core.replies.blocks import find_blocks, outside_fences
from judge.core.replies.extract import Extraction, answer_of, extract
from judge.core.replies.python_text import defined_names
from judge.errors import SandboxError
from judge.inference.chat import CallError, ChatReply, Message
from judge.inference.config import TypedSetting
from judge.inference.execution import Execution, ProgramRunner, WorkbookRunner
from judge.inference.prompt import Feedback

Ask = Callable[[tuple[Message, ...], int], Awaitable[ChatReply]]
"""Asks the model; takes the messages of the request, and the 1-based number of the round."""

ANSWER = "answer"
"""The value of :attr:`Conversation.ended` if the model gave an answer."""

MAX_SANDBOXES = 3
"""How many sandboxes or desktops a conversation may lose before the task counts as failed."""

_DONE = re.compile(r"[\s*_#>`]*+DONE[\s*_.!`]*+\Z")
_T = TypeVar("_T")


@dataclass(slots=True)
class Conversation:
    """A conversation while it is in progress, and its outcome.

    Attributes:
        messages: the conversation as it was sent, replies included.
        rounds: a record of each round: form of the program, execution, finish reason.
        solution: the program that is submitted; None if no reply contained a program.
        reply: the unchanged reply that the solution came from; the last reply if there is no
            solution.
        response: the reply with the typed answer; None if the task asks for a workbook.
        ended: why the conversation ended: ``replied`` (single), ``output``, ``explicit``,
            ``answer``, ``rounds`` or ``context-length``; on a desktop, a value of
            :class:`judge.desktop.episodes.EpisodeEnd`.
        finish_reason: the finish reason of the last reply.
        truncated: whether the reply that the solution came from was cut off.
        stands_alone: whether the solution writes a workbook in a fresh process; None if it was not
            run in one, or if no program of any round wrote a workbook.
        outputs: number of a case -> the output of its episode, in the form that submissions have.
        parts: for each of these episodes, the number of its case and the number of its first
            message.
        notes: notes for the person who started the run.
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
    notes: list[str] = field(default_factory=list)

    def start_again(self) -> None:
        """Resets everything: the conversation starts again from the beginning."""
        fresh = Conversation()
        for attribute in fields(self):
            setattr(self, attribute.name, getattr(fresh, attribute.name))

    def note_reply(self, reply: ChatReply, form: str, **facts: Any) -> None:
        """Adds a reply, and the record of its round.

        Args:
            reply: the reply.
            form: the form of the program in it.
            **facts: further fields of the record.
        """
        self.messages.append({"role": "assistant", "content": reply.text})
        self.finish_reason = reply.finish_reason
        self.rounds.append(
            {
                "form": form,
                "truncated": reply.is_truncated,
                "finish_reason": reply.finish_reason,
                **({"reasoning": reply.reasoning} if reply.reasoning else {}),
                **facts,
            }
        )

    def end_over_length(self, error: CallError, **facts: Any) -> None:
        """Ends a conversation that became too long for the model; its solution is kept."""
        self.ended = "context-length"
        self.finish_reason = "context_length"
        self.rounds.append({"form": "none", "error": error.message, **facts})


class Environment(ABC):
    """The other side of a conversation with a chat model: it sends messages and acts on replies.

    Args:
        conversation: filled as the conversation proceeds, so that it is available if a call fails.
        rounds: how many times the model may reply.
        threads: threads for blocking work.

    Attributes:
        out_of_rounds: the value of :attr:`Conversation.ended` if the model used all rounds.
    """

    out_of_rounds = "rounds"

    def __init__(self, conversation: Conversation, rounds: int, threads: Executor | None) -> None:
        self.conversation = conversation
        self.rounds = rounds
        self._threads = threads

    @abstractmethod
    async def show(self, number: int) -> tuple[Message, ...] | str:
        """Returns the messages of a round's request, or why the conversation ends before it."""

    @abstractmethod
    async def act(self, reply: ChatReply, number: int) -> str | None:
        """Records a reply, and acts on it.

        Returns:
            Why the conversation ends; None if it continues.
        """

    def round_facts(self, number: int) -> dict[str, Any]:
        """Returns additional fields for the record of a round."""
        del number
        return {}

    async def finish(self) -> None:  # noqa: B027  in most modes, nothing is left to do
        """Finishes the work after the conversation has ended."""

    async def blocking(self, work: Callable[[], _T]) -> _T:
        """Runs blocking work on a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


async def converse(environment: Environment, ask: Ask) -> Conversation:
    """Lets a chat model talk to an environment until the conversation ends.

    Args:
        environment: the environment.
        ask: asks the model.

    Returns:
        The conversation of the environment.

    Raises:
        CallError: no reply could be obtained.
        BudgetReachedError: the budget does not allow a call.
        SandboxError: the sandbox, or the desktop, failed.
        StoreError: a record cannot be written.
    """
    conversation = environment.conversation
    for number in range(1, environment.rounds + 1):
        shown = await environment.show(number)
        if isinstance(shown, str):
            conversation.ended = shown
            break
        try:
            reply = await ask(shown, number)
        except CallError as error:
            if error.kind != "context-length":
                raise
            conversation.end_over_length(error, **environment.round_facts(number))
            break
        ended = await environment.act(reply, number)
        if ended is not None:
            conversation.ended = ended
            break
    else:
        conversation.ended = environment.out_of_rounds
    await environment.finish()
    return conversation


async def try_sandboxes(
    once: Callable[[int], Awaitable[_T]], undo: Callable[[], None], pause_s: float
) -> _T:
    """Repeats a conversation if its sandbox, or its desktop, fails.

    The replies so far are recorded, and are used again: the model is asked only if the new attempt
    sends a different request.

    Args:
        once: carries on the conversation; called with the number of the attempt, from 0.
        undo: removes everything that a failed attempt has added.
        pause_s: seconds to wait before the second attempt; twice as many before the third.

    Raises:
        SandboxError: the last attempt failed as well.
    """
    for attempt in range(MAX_SANDBOXES):
        try:
            return await once(attempt)
        except SandboxError:
            if attempt == MAX_SANDBOXES - 1:
                raise
        await asyncio.sleep(pause_s * (attempt + 1))
        undo()
    raise AssertionError("the last attempt returns or raises")


class _TextEnvironment(Environment):
    """A conversation that grows by a reply and a message in each round.

    Args:
        conversation: filled as the conversation proceeds.
        prompt: the first message.
        rounds: how many times the model may reply.
        threads: threads for blocking work.
    """

    def __init__(
        self,
        conversation: Conversation,
        prompt: Content,
        rounds: int,
        threads: Executor | None,
    ) -> None:
        super().__init__(conversation, rounds, threads)
        self._prompt = prompt

    async def show(self, number: int) -> tuple[Message, ...]:
        """Returns all messages so far."""
        if number == 1:
            self.conversation.messages.append({"role": "user", "content": self._prompt})
        return tuple(self.conversation.messages)

    async def _execute(
        self, runner: ProgramRunner, program: Extraction, reply: ChatReply
    ) -> Execution | None:
        """Runs the program of a reply; returns None if it has no program, or a truncated one."""
        if program.code is None or (program.truncated and reply.is_truncated):
            return None
        return await self.blocking(partial(runner.execute, program.code))

    def _send_feedback(self, content: Content, number: int) -> None:
        """Records feedback on a round, and sends it to the model if there is another round."""
        self.conversation.rounds[-1]["feedback"] = content
        if number < self.rounds:
            self.conversation.messages.append({"role": "user", "content": content})


# -- programs -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RoundRules:
    """The rules of a conversation with several rounds.

    Attributes:
        rounds: how many times the model may answer.
        explicit_stop: whether the conversation ends when the model says so; otherwise, it ends
            with the first workbook.
        feedback: the wording between rounds.
        output_path: the path at which the prompt asks for the workbook.
        unseen: the wording if the model is not shown how its programs ran; None if it is shown.
    """

    rounds: int
    explicit_stop: bool
    feedback: Feedback
    output_path: str
    unseen: Feedback | None = None


@dataclass(frozen=True, slots=True)
class _Submission:
    """A program that left a workbook, with the reply that it came from."""

    code: str
    reply: str
    truncated: bool


class SingleReply(_TextEnvironment):
    """A single round: one prompt, one reply, whose program is the solution.

    Args:
        conversation: filled as the conversation proceeds.
        prompt: the prompt.
    """

    def __init__(self, conversation: Conversation, prompt: Content) -> None:
        super().__init__(conversation, prompt, 1, None)

    async def act(self, reply: ChatReply, number: int) -> str:
        """Makes the program of the reply the solution."""
        del number
        take_program(self.conversation, reply)
        return "replied"


class ProgramEnvironment(_TextEnvironment):
    """Rounds of program, execution and feedback.

    Args:
        conversation: filled as the conversation proceeds.
        prompt: the prompt.
        rules: the rules of the conversation.
        runner: runs the programs.
        threads: threads for blocking work.
    """

    def __init__(
        self,
        conversation: Conversation,
        prompt: Content,
        rules: RoundRules,
        runner: WorkbookRunner,
        threads: Executor,
    ) -> None:
        super().__init__(conversation, prompt, rules.rounds, threads)
        self._rules = rules
        self._runner = runner
        self._with_output: _Submission | None = None

    async def act(self, reply: ChatReply, number: int) -> str | None:
        """Runs the program of a reply, and sends the model feedback on it."""
        conversation, rules = self.conversation, self._rules
        program = take_program(conversation, reply)
        is_done = rules.explicit_stop and _says_done(reply.text)
        execution = await self._execute(self._runner, program, reply)
        if execution is not None:
            conversation.rounds[-1]["execution"] = execution_record(execution)
            if execution.solved:
                assert program.code is not None
                self._with_output = _Submission(program.code, reply.text, conversation.truncated)
        if is_done:
            return "explicit"
        if execution is not None and execution.solved and not rules.explicit_stop:
            return "output"
        self._send_feedback(
            _feedback(rules, program, reply, execution, self.rounds - number), number
        )
        return None

    async def finish(self) -> None:
        """Submits the last program that wrote a workbook, even if later ones only read data."""
        submission = self._with_output
        if submission is None:
            return
        conversation = self.conversation
        conversation.solution, conversation.reply = submission.code, submission.reply
        conversation.truncated = submission.truncated
        alone = await self.blocking(partial(self._runner.execute_alone, submission.code))
        conversation.stands_alone = alone.solved


def take_program(conversation: Conversation, reply: ChatReply) -> Extraction:
    """Adds a reply to the conversation; if it has a program, this becomes the solution."""
    program = extract(reply.text)
    conversation.note_reply(reply, program.form)
    if conversation.solution is None or program.code is not None:
        conversation.reply = reply.text
        conversation.truncated = reply.is_truncated
    if program.code is not None:
        conversation.solution = program.code
        conversation.truncated = reply.is_truncated or program.truncated
    return program


def _says_done(text: str) -> bool:
    """Whether a line outside of any program says DONE, which ends the conversation."""
    return any(_DONE.match(line) for line, outside in outside_fences(text) if outside)


def execution_record(execution: Execution) -> dict[str, Any]:
    """Returns the outcome of a program, for the record of a round."""
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
    program: Extraction,
    reply: ChatReply,
    execution: Execution | None,
    left: int,
) -> str:
    say = rules.feedback.say
    if execution is None:
        cut_off = program.code is not None or reply.is_truncated
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


# -- typed answers --------------------------------------------------------------------------------

Drawn = tuple[tuple[str, bytes], ...]
"""Pictures that a program made, as pairs of name and bytes."""


@dataclass(frozen=True, slots=True)
class TypedRules:
    """The rules of a conversation that ends with a typed answer.

    Attributes:
        setting: rounds, words that announce the answer, and limits on what the model is shown.
        feedback: the wording between rounds.
        keep: stores pictures that a program made, given as names and bytes, and returns them in a
            form that can be shown; blocking.
    """

    setting: TypedSetting
    feedback: Feedback
    keep: Callable[[Drawn], list[Picture]]


class AnswerEnvironment(_TextEnvironment):
    """Rounds of program and printed output, until the model answers.

    The ``response`` of the conversation is the reply with the answer; if there is none, the last
    reply.

    Args:
        conversation: filled as the conversation proceeds.
        prompt: the first message.
        rules: the rules of the conversation.
        runner: runs programs; None in a setting that runs none, in which the first reply is the
            response.
        threads: threads for blocking work.
    """

    def __init__(
        self,
        conversation: Conversation,
        prompt: Content,
        rules: TypedRules,
        runner: ProgramRunner | None,
        threads: Executor,
    ) -> None:
        super().__init__(conversation, prompt, rules.setting.rounds, threads)
        self._rules = rules
        self._runner = runner

    async def act(self, reply: ChatReply, number: int) -> str | None:
        """Accepts the answer, or runs the program of the reply and shows its output."""
        conversation, rules = self.conversation, self._rules
        turn = read_turn(reply.text, rules.setting)
        conversation.note_reply(reply, turn.program.form, answers=turn.answers)
        conversation.reply = conversation.response = reply.text
        conversation.truncated = reply.is_truncated
        if self._runner is None or turn.answers:
            return ANSWER if turn.answers else "replied"
        pictures: list[Picture] = []
        execution = await self._execute(self._runner, turn.program, reply)
        if execution is not None:
            pictures = await self.blocking(partial(rules.keep, execution.pictures))
        self._send_feedback(self._feedback(reply, turn, execution, pictures, number), number)
        return None

    def _feedback(
        self,
        reply: ChatReply,
        turn: Turn,
        execution: Execution | None,
        pictures: Sequence[Picture],
        number: int,
    ) -> Content:
        """Returns the message to the model after a round that did not end the conversation."""
        rules, left = self._rules, self.rounds - number
        say = rules.feedback.say
        following = say("next_last") if left == 1 else say("next", left=str(left))
        if execution is None:
            cut_off = turn.program.code is not None or reply.is_truncated
            return say("cut_off" if cut_off else "no_answer", next=following)
        shows = rules.setting.pictures != "none"
        self.conversation.rounds[-1]["execution"] = execution_record(execution) | {
            "pictures": [picture.part for picture in pictures]
        }
        text = say(
            _occasion(execution),
            output=execution.printed or "(nothing)",
            traceback=execution.error,
            reason=execution.stopped or "",
            pictures=_named(rules.feedback, pictures, shows=shows),
            next=following,
        )
        return content_of(text, pictures if shows else ())


@dataclass(frozen=True, slots=True)
class Turn:
    """The role of a reply in a conversation that ends with an answer.

    Attributes:
        program: the program in the reply, without code if there is no program.
        answers: whether the reply gives the answer, so that the program is not run.
    """

    program: Extraction
    answers: bool


def read_turn(text: str, setting: TypedSetting) -> Turn:
    """Decides whether a reply gives the answer, or only a program to look at the data.

    A reply without a program is an answer if it contains JSON, or words that announce the answer. A
    reply with a program is an answer only if it contains both, and if the setting does not say that
    the program is run: the words alone can mean something else ("the next step computes the final
    answer").

    Args:
        text: the reply.
        setting: the words, and the treatment of a program next to an answer.
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
    """Whether a program is only a JSON object: models often fence JSON as Python."""
    return code.lstrip().startswith("{") and not defined_names(code) and _has_object(code)


def _has_object(text: str) -> bool:
    return stated_answer(text, ()).values is not None


def _without_programs(text: str) -> str:
    for block in find_blocks(text):
        if block.is_python and not _is_object(block.text):
            text = text.replace(block.text.strip("\n"), "")
    return text


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
