"""One episode: turns of looking, asking and acting, until the model or a limit ends it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from judge.core.conversation import Content, Picture, content_of
from judge.desktop.contract import (
    Action,
    ActionOutcome,
    ActionSpace,
    Desktop,
    DesktopTask,
    Observation,
    ObservationForm,
    Signal,
)
from judge.desktop.episodes import EpisodeWriter
from judge.desktop.replies import ParsedReply, parse_reply, with_marks
from judge.desktop.tables import TreeTable, mark_places, marks_table, tree_table
from judge.errors import SandboxError
from judge.inference.answers import writable
from judge.inference.chat import CallError, ChatReply, estimate_tokens
from judge.inference.desktop.setting import DesktopWay
from judge.inference.desktop.window import Window
from judge.inference.pictures import PictureStore
from judge.inference.prompt import Feedback
from judge.inference.talk import Ask, Talk, end_over_length, note_reply

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
        Why it ended, as in :class:`judge.desktop.records.EpisodeEnd`, and when by the clock it
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
