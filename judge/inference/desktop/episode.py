"""Episodes: a chat model works on a desktop, turn by turn, until it or a limit ends the episode.

A turn shows the model the desktop, asks for actions, and performs them. Each case of a task has an
episode of its own. An episode that is on record is not repeated; one whose desktop breaks starts
again.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from judge.core.answer import AnswerForm
from judge.core.messages import Content, Picture, content_of
from judge.core.task import CaseInput, TaskQuestion
from judge.desktop.contract import (
    HOME,
    Action,
    ActionOutcome,
    ActionSpace,
    Desktop,
    DesktopHost,
    DesktopTask,
    Observation,
    ObservationForm,
    Signal,
)
from judge.desktop.episodes import (
    Episode,
    EpisodeEnd,
    EpisodeWriter,
    episode_path,
    head_of,
    output_record,
    read_episode,
)
from judge.desktop.observations import TreeTable, mark_places, marks_table, tree_table
from judge.desktop.replies import ParsedReply, parse_reply, with_marks
from judge.errors import SandboxError, StoreError
from judge.grading.store import RunDirectory
from judge.inference.calls import Asker
from judge.inference.chat import CallError, ChatReply, Message, estimate_tokens, writable
from judge.inference.conversation import Ask, Talk, end_over_length, note_reply
from judge.inference.desktop.setting import DesktopWay, desktop_task, setting_name
from judge.inference.pictures import PictureStore
from judge.inference.plan import Assignment, InferencePlan
from judge.inference.prompt import Feedback
from judge.timestamp import utc_now


class Window:
    """A conversation of which requests send the beginning and the end.

    Args:
        messages: where messages are kept; those of an earlier episode may be in it.
        first: the first message, with the task.
        history: earlier turns that a request sends.
    """

    def __init__(self, messages: list[Message], first: Content, history: int) -> None:
        self._messages = messages
        self._first = len(messages)
        self._history = history
        self._turns: list[tuple[int, int]] = []
        self._shown = -1
        messages.append({"role": "system", "content": first})

    def show(self, content: Content) -> list[int]:
        """Adds what is shown now.

        Args:
            content: the message.

        Returns:
            The numbers of the messages that the next request sends.
        """
        self._shown = self._add("user", content)
        kept = self._turns[-self._history :] if self._history else []
        return [self._first, *(number for turn in kept for number in turn), self._shown]

    def replied(self) -> None:
        """Takes the message that was added last for the reply to what was shown."""
        self._turns.append((self._shown, len(self._messages) - 1))

    def sent(self, numbers: list[int]) -> tuple[Message, ...]:
        """The messages with these numbers."""
        return tuple(self._messages[number] for number in numbers)

    def _add(self, role: str, content: Content) -> int:
        self._messages.append({"role": role, "content": content})
        return len(self._messages) - 1


_T = TypeVar("_T")
_FORMS = {
    ObservationForm.SCREENSHOT: "screenshot",
    ObservationForm.TREE: "tree",
    ObservationForm.BOTH: "both",
    ObservationForm.MARKS: "som",
}
CODE_BLOCKS = "code-blocks"
"""Name of the correction that takes code blocks whole."""

Fill = Callable[[dict[str, str]], str]
Done = tuple[Action, ActionOutcome]


@dataclass(slots=True)
class EpisodeHands:
    """What an episode works with.

    Attributes:
        way: how the model works.
        desktop: the desktop, open.
        writer: keeps turns.
        pictures: keeps the pictures of messages.
        threads: run what blocks.
        feedback: whether the model learns what became of its actions.
        clock: seconds.
    """

    way: DesktopWay
    desktop: Desktop
    writer: EpisodeWriter
    pictures: PictureStore
    threads: Executor
    feedback: bool = True
    clock: Callable[[], float] = field(default=time.monotonic)

    async def blocking(self, work: Callable[[], _T]) -> _T:
        """Runs what blocks on a thread."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, work)


async def hold_episode(
    hands: EpisodeHands, talk: Talk, case: int, first: Content, ask: Ask
) -> tuple[str, float]:
    """Has a model work until the episode ends.

    Args:
        hands: what it works with.
        talk: the conversation, which may hold episodes on earlier cases.
        case: number of the case.
        first: the first message.
        ask: asks the model.

    Returns:
        Why it ended, as in :class:`judge.desktop.episodes.EpisodeEnd`, and when by the clock it
        began.

    Raises:
        CallError: no reply could be obtained.
        BudgetReachedError: the budget does not allow a call.
        SandboxError: the desktop broke.
        StoreError: a record cannot be written.
    """
    setting = hands.way.setting
    window = Window(talk.messages, first, setting.history)
    started = hands.clock()
    told, ended = "", "turns"
    for number in range(1, setting.rounds + 1):
        turn_started = hands.clock()
        if turn_started - started > setting.minutes * 60:
            ended = "time"
            break
        seen = await hands.blocking(partial(look, hands.desktop, setting.observation))
        table = table_of(hands.way, seen)
        kept = hands.writer.files.keep(seen, table.text, cut=table.cut)
        content = _shown(hands, seen, table, told, number)
        sent = window.show(content)
        try:
            reply = await ask(window.sent(sent), number)
        except CallError as error:
            end_over_length(talk, error)
            talk.rounds[-1] |= {"case": case, "turn": number, "sent": sent}
            ended = "context-length"
            break
        note_reply(talk, reply, "actions")
        talk.rounds[-1] |= {"case": case, "turn": number, "sent": sent}
        talk.reply, talk.truncated = reply.text, reply.is_truncated
        window.replied()
        parsed = _parsed(hands.way, reply)
        done = await _act(hands, seen, parsed.actions, started)
        told = _told(hands, parsed.problem, done)
        hands.writer.turn(
            kept,
            done,
            reply=reply.text,
            problem=parsed.problem,
            feedback=told,
            seconds=hands.clock() - turn_started,
        )
        if done and (signal := done[-1][0].signal) in {Signal.DONE, Signal.FAIL}:
            ended = str(signal).lower()
            break
    talk.ended = ended
    return ended, started


def look(desktop: Desktop, form: ObservationForm) -> Observation:
    """What a desktop shows, all of it: what the model is not shown is on record all the same.

    Raises:
        SandboxError: the desktop broke, or shows nothing.
    """
    seen = desktop.observe(screenshot=True, tree=True, marks=form is ObservationForm.MARKS)
    if seen.screenshot is None or seen.elements is None:
        raise SandboxError("the desktop shows nothing")
    return seen


def table_of(way: DesktopWay, seen: Observation) -> TreeTable:
    """The table of what a desktop shows, cut as the setting says."""
    elements, limit = seen.elements or (), way.setting.tree_tokens
    if way.setting.observation is ObservationForm.MARKS:
        return marks_table(elements, seen.marks or {}, most_tokens=limit, tokens_of=estimate_tokens)
    return tree_table(
        elements,
        as_published=way.options.as_published,
        most_tokens=limit,
        tokens_of=estimate_tokens,
    )


def _shown(
    hands: EpisodeHands, seen: Observation, table: TreeTable, told: str, number: int
) -> Content:
    """The message that shows what there is to see."""
    setting = hands.way.setting
    left = str(setting.rounds - number + 1)
    text = hands.way.words.say(f"seen_{_FORMS[setting.observation]}", table=table.text, left=left)
    text = writable("\n\n".join(filter(None, [told, text])))
    if setting.observation is ObservationForm.TREE:
        return text
    assert seen.screenshot is not None
    picture = hands.pictures.add_made(seen.screenshot, f"turn-{number}.png")
    if not isinstance(picture, Picture):
        raise SandboxError("the desktop's screenshot is not a picture")
    return content_of(text, (picture,))


def _parsed(way: DesktopWay, reply: ChatReply) -> ParsedReply:
    return parse_reply(
        reply.text,
        way.setting.action_space,
        is_truncated=reply.is_truncated,
        as_published=CODE_BLOCKS in way.options.as_published,
    )


async def _act(
    hands: EpisodeHands, seen: Observation, actions: tuple[Action, ...], started: float
) -> list[Done]:
    """Performs the actions of a reply, one after the other."""
    places = mark_places(seen.elements or (), seen.marks or {})
    done: list[Done] = []
    for action in actions:
        if action.signal in {Signal.DONE, Signal.FAIL}:
            done.append((action, ActionOutcome()))
            break
        if hands.clock() - started > hands.way.setting.minutes * 60:
            break
        named = with_marks(action, places)
        done.append((named, await hands.blocking(partial(hands.desktop.perform, named))))
    return done


def _told(hands: EpisodeHands, problem: str, done: list[Done]) -> str:
    """What the next message says of the reply and its actions; empty for nothing."""
    words = hands.way.words
    if problem:
        return words.say("no_action", problem=problem)
    if not hands.feedback:
        return ""
    said = [
        line
        for number, (_, outcome) in enumerate(done, start=1)
        for line in _of_outcome(words, number, outcome, hands.way.setting.printed_chars)
    ]
    return words.say("outcomes", outcomes="\n".join(said)) if said else ""


def _of_outcome(words: Feedback, number: int, outcome: ActionOutcome, chars: int) -> list[str]:
    said = []
    if outcome.printed.strip():
        said.append(words.say("printed", number=str(number), printed=outcome.printed[:chars]))
    if outcome.error:
        occasion = "refused" if outcome.refused else "failed"
        # What went wrong is at the end of a traceback.
        said.append(words.say(occasion, number=str(number), error=outcome.error[-chars:]))
    return said


def first_message(way: DesktopWay, task: DesktopTask, instruction: str, fill: Fill) -> str:
    """The first message of an episode, with the task.

    Args:
        way: how the model works.
        task: what the desktop is opened for.
        instruction: what the user asks, with what is added to it.
        fill: fills the template.
    """
    setting, words = way.setting, way.words
    actions = words.say(f"actions_{setting.action_space}")
    if setting.observation is ObservationForm.MARKS:
        actions = f"{actions}\n{words.say('actions_pyautogui_som')}"
    access = "access_any"
    if way.options.gui_only and setting.action_space is ActionSpace.PYAUTOGUI:
        access = "access_gui"
    return writable(
        fill(
            {
                "instruction": instruction,
                "file": task.opened,
                "wanted": task.collected,
                "observation": words.say(f"observation_{_FORMS[setting.observation]}"),
                "action_space": actions,
                "access": words.say(access),
                "screen_width": str(way.options.width),
                "screen_height": str(way.options.height),
                "turns": str(setting.rounds),
                "rounds": str(setting.rounds),
                "max_turn_num": str(setting.rounds),
            }
        )
    )


ATTEMPTS = 3
"""Desktops that may break in an episode before it is a failure on record."""

PAUSE_S = 1.0
"""Seconds to wait before the second attempt; the third waits twice as long."""


@dataclass(frozen=True, slots=True)
class KeptPart:
    """A finished episode and its part of the conversation.

    Attributes:
        episode: the episode.
        messages: its messages.
        rounds: the records of its turns, with numbers of messages from its first.
        calls: what its replies took.
    """

    episode: Episode
    messages: list[Message]
    rounds: list[dict[str, Any]]
    calls: list[dict[str, Any]]


class EpisodeKeeper:
    """Has episodes held, so many at a time.

    Args:
        plan: the run.
        host: opens desktops.
        store: the results directory.
        pictures: keeps the pictures of messages.
        threads: run what blocks.
        jobs: desktops at a time.
    """

    def __init__(
        self,
        plan: InferencePlan,
        host: DesktopHost,
        store: RunDirectory,
        pictures: PictureStore,
        threads: Executor,
        *,
        jobs: int = 1,
    ) -> None:
        assert plan.desktop is not None, "only runs on a desktop have episodes"
        self._plan = plan
        self._way: DesktopWay = plan.desktop
        self._host = host
        self._store = store
        self._pictures = pictures
        self._threads = threads
        self._places = asyncio.Semaphore(jobs)

    async def talk(
        self,
        assignment: Assignment,
        talk: Talk,
        asker: Asker,
        before: Mapping[str, Any] | None,
        keep: Callable[[], None],
    ) -> None:
        """Has an episode held for each case of a task, unless it is on record.

        Args:
            assignment: the task.
            talk: filled as the episodes proceed.
            asker: asks for this task and sample.
            before: the conversation on record; None where there is none.
            keep: writes the conversation so far; called before an episode is finished.

        Raises:
            CallError: no reply could be obtained.
            BudgetReachedError: the budget does not allow a call.
            SandboxError: desktops broke, one after the other.
            SuiteError: a file of the task cannot be read.
        """
        question = assignment.question
        end: EpisodeEnd | None = None
        for case in question.inputs:
            task = desktop_task(question, case)
            part = self._known(assignment, asker.sample, case, before)
            if part is not None:
                _take(part, case.number, talk, asker)
                end = part.episode.end
            else:
                async with self._places:
                    end = await self._held(assignment, case, task, talk, asker, keep)
            assert end is not None
            talk.outputs[case.number] = self._output(task, assignment, asker.sample, case, end)
            talk.ended = end["ended"]
        if question.answer is AnswerForm.TEXT and end is not None:
            talk.response = _SAID.get(end["ended"])

    async def check(self) -> None:
        """Checks that desktops can be opened at all.

        Raises:
            SandboxError: they cannot.
        """
        probe = f"{HOME}/probe.csv"
        desktop = await self._opened(DesktopTask({probe: b"1\n"}, probe, probe))
        await self._closed(desktop)

    # -- one episode ------------------------------------------------------------------------------

    async def _held(
        self,
        assignment: Assignment,
        case: CaseInput,
        task: DesktopTask,
        talk: Talk,
        asker: Asker,
        keep: Callable[[], None],
    ) -> EpisodeEnd:
        """Has an episode held, again if its desktop breaks."""
        places = len(talk.messages), len(talk.rounds), len(talk.parts), len(asker.calls)
        for attempt in range(ATTEMPTS):
            try:
                return await self._once(assignment, case, task, talk, asker, keep, attempt)
            except SandboxError:
                if attempt == ATTEMPTS - 1:
                    raise
            # What was asked is on record: an equal request is answered from there.
            del talk.messages[places[0] :], talk.rounds[places[1] :], talk.parts[places[2] :]
            del asker.calls[places[3] :]
            await asyncio.sleep(PAUSE_S * (attempt + 1))
        raise AssertionError("the last attempt returns or raises")

    async def _once(
        self,
        assignment: Assignment,
        case: CaseInput,
        task: DesktopTask,
        talk: Talk,
        asker: Asker,
        keep: Callable[[], None],
        attempt: int,
    ) -> EpisodeEnd:
        plan, way, question = self._plan, self._way, assignment.question
        desktop = await self._opened(task)
        try:
            head = head_of(
                assignment.raw_id,
                asker.sample,
                case.number,
                model=plan.model.name,
                setting=setting_name(way.setting),
                instruction=question.instruction,
                task=task,
                options=way.options,
                info=desktop.info,
                started=utc_now(),
                attempt=attempt,
            )
            with EpisodeWriter(self._store.path, head) as writer:
                hands = EpisodeHands(
                    way, desktop, writer, self._pictures, self._threads, plan.execution_feedback
                )
                talk.parts.append((case.number, len(talk.messages)))
                ended, started = await hold_episode(
                    hands,
                    talk,
                    case.number,
                    opening_message(plan, question, task),
                    _asking(asker, case),
                )
                collected = await hands.blocking(desktop.save)
                if collected.data is not None:
                    self._store.put_workbook(collected.data)
                # An episode is finished with its last line: everything else is there by then.
                keep()
                return writer.end(ended, collected, hands.clock() - started)
        finally:
            await self._closed(desktop)

    async def _opened(self, task: DesktopTask) -> Desktop:
        opening = asyncio.get_running_loop().run_in_executor(
            self._threads, partial(self._host.open, task, self._way.options)
        )
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_close_unused)
            raise

    async def _closed(self, desktop: Desktop) -> None:
        # Not on a thread of the run's: all of them may wait for desktops that hang.
        await asyncio.shield(asyncio.to_thread(desktop.close))

    # -- what is on record -------------------------------------------------------------------------

    def _known(
        self,
        assignment: Assignment,
        sample: int,
        case: CaseInput,
        before: Mapping[str, Any] | None,
    ) -> KeptPart | None:
        """The finished episode of a case, with its part of the conversation; None if not on record.

        What cannot be read is done again.
        """
        path = episode_path(self._store.path, assignment.question.id, sample, case.number)
        try:
            episode = read_episode(path)
        except StoreError:
            return None
        end = episode.end
        if end is None or episode.head["model"] != self._plan.model.name or before is None:
            return None
        if end["output"] is not None and self._store.get_workbook(end["output"]) is None:
            # What is damaged would stand in the way of what is made again.
            self._store.workbook_path(end["output"]).unlink(missing_ok=True)
            return None
        return _part_of(episode, case.number, before)

    def _output(
        self,
        task: DesktopTask,
        assignment: Assignment,
        sample: int,
        case: CaseInput,
        end: EpisodeEnd,
    ) -> dict[str, Any]:
        """What a submission's record says of an episode."""
        path = episode_path(self._store.path, assignment.question.id, sample, case.number)
        return output_record(end, task, self._way.options, path)


def opening_message(plan: InferencePlan, question: TaskQuestion, task: DesktopTask) -> str:
    """The first message about a task on a desktop.

    Args:
        plan: the run.
        question: the task.
        task: what the desktop is opened for.
    """
    assert plan.desktop is not None, "only runs on a desktop have episodes"
    fields = plan.background.fields(plan.template, question, question.instruction)
    return first_message(
        plan.desktop,
        task,
        fields["instruction"],
        lambda values: plan.template.fill({**fields, **values}),
    )


_SAID = {"fail": "FAIL", "done": "DONE"}


def _asking(
    asker: Asker, case: CaseInput
) -> Callable[[tuple[Message, ...], int], Awaitable[ChatReply]]:
    def ask(messages: tuple[Message, ...], number: int) -> Awaitable[ChatReply]:
        return asker.ask(messages, number, case.number)

    return ask


def _close_unused(opening: asyncio.Future[Desktop]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


def _take(part: KeptPart, case: int, talk: Talk, asker: Asker) -> None:
    """Adds a finished episode to a conversation."""
    start = len(talk.messages)
    talk.parts.append((case, start))
    talk.messages += part.messages
    for each in part.rounds:
        talk.rounds.append({**each, "sent": [number + start for number in each["sent"]]})
    asker.calls += part.calls
    if part.rounds:
        talk.finish_reason = part.rounds[-1].get("finish_reason")
        talk.truncated = bool(part.rounds[-1].get("truncated"))


def _part_of(episode: Episode, case: int, before: Mapping[str, Any]) -> KeptPart | None:
    """The part of a conversation on record that belongs to an episode; None if it is not there."""
    with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):
        places = [(int(number), int(start)) for number, start in before["parts"]]
        found = [number for number, _ in places].index(case)
        start = places[found][1]
        end = places[found + 1][1] if found + 1 < len(places) else len(before["messages"])
        rounds = [
            {**each, "sent": [int(number) - start for number in each["sent"]]}
            for each in before["rounds"]
            if each.get("case") == case
        ]
        messages = list(before["messages"][start:end])
        calls = [each for each in before["calls"] if each.get("case") == case]
        if messages and sum("error" not in each for each in rounds) == len(episode.turns):
            return KeptPart(episode, messages, rounds, calls)
    return None
