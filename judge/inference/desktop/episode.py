"""Episodes in which a chat model works on a desktop, until it or a limit ends the episode.

In each turn, the model is shown the desktop and asked for actions, which are then performed. Each
case of a task has a separate episode. An episode that is recorded is not repeated; if the desktop
breaks, the episode starts again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any

from judge.core.conversation import Content, Picture, content_of, estimate_tokens
from judge.core.task import CaseInput, TaskQuestion
from judge.desktop.choices import ActionSpace
from judge.desktop.contract import (
    HOME,
    Action,
    ActionOutcome,
    Desktop,
    DesktopHost,
    DesktopTask,
    Observation,
    Signal,
)
from judge.desktop.episodes import (
    EpisodeEnd,
    EpisodeWriter,
    SeenRecord,
    episode_path,
    head_of,
    output_record,
    read_episode,
)
from judge.desktop.observations import ObservationForm, TreeTable, mark_places
from judge.errors import SandboxError, StoreError
from judge.files.documents import utc_now
from judge.grading.store import RunDirectory
from judge.inference.calls import TaskClient
from judge.inference.chat import ChatReply, Message, writable
from judge.inference.conversation import Conversation, Environment, converse
from judge.inference.desktop.replies import parse_reply, with_marks
from judge.inference.desktop.setting import DesktopMode, desktop_task, setting_name
from judge.inference.episodes import EpisodePart, EpisodeSolver, asking, part_of
from judge.inference.pictures import PictureStore
from judge.inference.plan import Assignment, InferencePlan
from judge.inference.prompt import Feedback


class Window:
    """A conversation in which a request repeats only the first message and the latest turns.

    A message is the same in all requests that contain it. So the conversation stores each message
    once, and a request is a list of numbers of messages.

    Args:
        messages: the list of messages; may contain those of earlier episodes.
        first: the first message, with the task.
        history: how many earlier turns each request repeats.
    """

    def __init__(self, messages: list[Message], first: Content, history: int) -> None:
        self._messages = messages
        self._first = len(messages)
        self._history = history
        self._turns: list[tuple[int, int]] = []
        self._shown = -1
        messages.append({"role": "system", "content": first})

    def show(self, content: Content) -> list[int]:
        """Adds the message that shows the desktop in this turn.

        Args:
            content: the content of the message.

        Returns:
            The numbers of the messages that the next request sends.
        """
        self._shown = self._add("user", content)
        turns = self._turns[-self._history :] if self._history else []
        return [self._first, *(number for turn in turns for number in turn), self._shown]

    def replied(self) -> None:
        """Records that the last message is the model's reply in this turn."""
        self._turns.append((self._shown, len(self._messages) - 1))

    def sent(self, numbers: list[int]) -> tuple[Message, ...]:
        """Returns the messages with the given numbers."""
        return tuple(self._messages[number] for number in numbers)

    def _add(self, role: str, content: Content) -> int:
        self._messages.append({"role": role, "content": content})
        return len(self._messages) - 1


CODE_BLOCKS = "code-blocks"
"""Name of the correction by which a code block is read as a whole, and not cut at semicolons."""

_ENDINGS = frozenset({Signal.DONE, Signal.FAIL})

Fill = Callable[[dict[str, str]], str]
Done = tuple[Action, ActionOutcome]


class DesktopEnvironment(Environment):
    """A desktop that is shown to the model, and whose mouse and keyboard the model uses.

    Args:
        mode: how the model works.
        desktop: the desktop, already open.
        conversation: filled as the episode proceeds; may contain episodes on earlier cases.
        case: number of the case.
        first: the first message.
        writer: writes the turns.
        pictures: the store for the pictures of messages.
        threads: threads for blocking work.
        feedback: whether the model is shown the outcomes of its actions.
    """

    out_of_rounds = "turns"

    def __init__(
        self,
        mode: DesktopMode,
        desktop: Desktop,
        conversation: Conversation,
        case: int,
        first: Content,
        *,
        writer: EpisodeWriter,
        pictures: PictureStore,
        threads: Executor,
        feedback: bool = True,
    ) -> None:
        super().__init__(conversation, mode.setting.rounds, threads)
        self._mode = mode
        self._desktop = desktop
        self._case = case
        self._writer = writer
        self._pictures = pictures
        self._gives_feedback = feedback
        self._window = Window(conversation.messages, first, mode.setting.history)
        self._started = self._turn_started = time.monotonic()
        self._feedback = ""
        self._sent: list[int] = []
        self._observation: Observation | None = None
        self._kept: SeenRecord | None = None

    @property
    def seconds(self) -> float:
        """Seconds that the episode has taken so far."""
        return time.monotonic() - self._started

    async def show(self, number: int) -> tuple[Message, ...] | str:
        """Shows the desktop to the model; no turn begins after the time limit of the episode."""
        self._turn_started = time.monotonic()
        if self._turn_started - self._started > self._mode.setting.minutes * 60:
            return "time"
        observation = await self.blocking(partial(look, self._desktop, self._mode.setting.form))
        table = table_of(self._mode, observation)
        self._observation = observation
        self._kept = self._writer.files.keep(observation, table.text, cut=table.cut)
        self._sent = self._window.show(self._message(observation, table, number))
        return self._window.sent(self._sent)

    def round_facts(self, number: int) -> dict[str, Any]:
        """The case and the turn, and the numbers of the messages that were sent."""
        return {"case": self._case, "turn": number, "sent": self._sent}

    async def act(self, reply: ChatReply, number: int) -> str | None:
        """Performs the actions of a reply, and writes the turn."""
        conversation = self.conversation
        conversation.note_reply(reply, "actions", **self.round_facts(number))
        conversation.reply, conversation.truncated = reply.text, reply.is_truncated
        self._window.replied()
        parsed = parse_reply(
            reply.text,
            self._mode.setting.action_space,
            is_truncated=reply.is_truncated,
            as_published=CODE_BLOCKS in self._mode.options.as_published,
        )
        performed = await self._perform(parsed.actions)
        self._feedback = self._feedback_on(parsed.problem, performed)
        assert self._kept is not None
        self._writer.turn(
            self._kept,
            performed,
            reply=reply.text,
            problem=parsed.problem,
            feedback=self._feedback,
            seconds=time.monotonic() - self._turn_started,
        )
        signal = performed[-1][0].signal if performed else None
        return str(signal).lower() if signal in _ENDINGS else None

    def _message(self, observation: Observation, table: TreeTable, number: int) -> Content:
        """Returns the message with feedback on the last actions, followed by an observation."""
        left = str(self.rounds - number + 1)
        text = self._mode.say("seen", table=table.text, left=left)
        text = writable("\n\n".join(filter(None, [self._feedback, text])))
        if not self._mode.setting.form.shows_screenshot:
            return text
        assert observation.screenshot is not None
        picture = self._pictures.add_made(observation.screenshot, f"turn-{number}.png")
        if not isinstance(picture, Picture):
            raise SandboxError("the desktop's screenshot is not a picture")
        return content_of(text, (picture,))

    async def _perform(self, actions: tuple[Action, ...]) -> list[Done]:
        """Performs the actions of a reply, one after the other."""
        assert self._observation is not None
        points = mark_places(self._observation.elements or (), self._observation.marks or {})
        done: list[Done] = []
        for action in actions:
            if action.signal in _ENDINGS:
                done.append((action, ActionOutcome()))
                break
            if self.seconds > self._mode.setting.minutes * 60:
                break
            named = with_marks(action, points)
            done.append((named, await self.blocking(partial(self._desktop.perform, named))))
        return done

    def _feedback_on(self, problem: str, done: list[Done]) -> str:
        """Returns the next message's feedback on the reply and its actions; empty for none."""
        words = self._mode.words
        if problem:
            return words.say("no_action", problem=problem)
        if not self._gives_feedback:
            return ""
        lines = [
            line
            for number, (_, outcome) in enumerate(done, start=1)
            for line in _outcome_lines(words, number, outcome, self._mode.setting.printed_chars)
        ]
        return words.say("outcomes", outcomes="\n".join(lines)) if lines else ""


def look(desktop: Desktop, form: ObservationForm) -> Observation:
    """Observes everything that a desktop shows; all of it is recorded, even if only a part is sent.

    Raises:
        SandboxError: the desktop broke, or shows nothing.
    """
    observation = desktop.observe(screenshot=True, tree=True, marks=form.has_marks)
    if observation.screenshot is None or observation.elements is None:
        raise SandboxError("the desktop shows nothing")
    return observation


def table_of(mode: DesktopMode, observation: Observation) -> TreeTable:
    """Returns the table of what a desktop shows, cut to the limit of the setting."""
    return mode.setting.form.table(
        observation,
        as_published=mode.options.as_published,
        max_tokens=mode.setting.tree_tokens,
        tokens_of=estimate_tokens,
    )


def _outcome_lines(
    words: Feedback, number: int, outcome: ActionOutcome, chars: int
) -> Iterator[str]:
    if outcome.printed.strip():
        yield words.say("printed", number=str(number), printed=outcome.printed[:chars])
    if outcome.error:
        occasion = "refused" if outcome.refused else "failed"
        # The cause is at the end of a traceback.
        yield words.say(occasion, number=str(number), error=outcome.error[-chars:])


def first_message(mode: DesktopMode, task: DesktopTask, instruction: str, fill: Fill) -> str:
    """Returns the first message of an episode, with the task.

    Args:
        mode: how the model works.
        task: the files of the desktop.
        instruction: the instruction of the task, with its additions.
        fill: fills the template.
    """
    setting, words = mode.setting, mode.words
    actions = words.say(f"actions_{setting.action_space}")
    if setting.form.has_marks:
        actions = f"{actions}\n{words.say('actions_pyautogui_som')}"
    access = "access_any"
    if mode.options.gui_only and setting.action_space is ActionSpace.PYAUTOGUI:
        access = "access_gui"
    return writable(
        fill(
            {
                "instruction": instruction,
                "file": task.opened,
                "wanted": task.collected,
                "observation": mode.say("observation"),
                "action_space": actions,
                "access": words.say(access),
                "screen_width": str(mode.options.width),
                "screen_height": str(mode.options.height),
                "turns": str(setting.rounds),
                "rounds": str(setting.rounds),
                "max_turn_num": str(setting.rounds),
            }
        )
    )


class DesktopSolver(EpisodeSolver[EpisodeEnd]):
    """Lets a chat model solve tasks on desktops, with a limited number of desktops at a time.

    Args:
        plan: the plan of the run.
        host: opens desktops.
        store: the results directory.
        pictures: the store for the pictures of messages.
        threads: threads for blocking work.
        jobs: maximum number of desktops at a time.
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
        super().__init__(plan, store, pictures, threads, jobs)
        self._mode: DesktopMode = plan.desktop
        self._host = host

    async def check(self) -> None:
        """Checks that desktops can be opened at all.

        Raises:
            SandboxError: they cannot be opened.
        """
        probe = f"{HOME}/probe.csv"
        desktop = await self._opened(DesktopTask({probe: b"1\n"}, probe, probe))
        await self._closed(desktop)

    # -- one episode ------------------------------------------------------------------------------

    async def once(
        self,
        assignment: Assignment,
        case: CaseInput,
        conversation: Conversation,
        client: TaskClient,
        keep: Callable[[], None],
        attempt: int,
    ) -> EpisodeEnd:
        """Runs an episode on a desktop once."""
        plan, mode, question = self._plan, self._mode, assignment.question
        task = desktop_task(question, case)
        desktop = await self._opened(task)
        try:
            head = head_of(
                assignment.raw_id,
                client.sample,
                case.number,
                model=plan.model.name,
                setting=setting_name(mode.setting),
                instruction=question.instruction,
                task=task,
                options=mode.options,
                info=desktop.info,
                started=utc_now(),
                attempt=attempt,
            )
            with EpisodeWriter(self._store.path, head) as writer:
                conversation.parts.append((case.number, len(conversation.messages)))
                episode = DesktopEnvironment(
                    mode,
                    desktop,
                    conversation,
                    case.number,
                    opening_message(plan, question, task),
                    writer=writer,
                    pictures=self._pictures,
                    threads=self._threads,
                    feedback=plan.execution_feedback,
                )
                await converse(episode, asking(client, case))
                collected = await episode.blocking(desktop.save)
                if collected.data is not None:
                    self._store.put_workbook(collected.data)
                # The last line makes an episode finished, so everything else is written before.
                keep()
                return writer.end(conversation.ended, collected, episode.seconds)
        finally:
            await self._closed(desktop)

    async def _opened(self, task: DesktopTask) -> Desktop:
        opening = asyncio.get_running_loop().run_in_executor(
            self._threads, partial(self._host.open, task, self._mode.options)
        )
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_close_unused)
            raise

    async def _closed(self, desktop: Desktop) -> None:
        # Not on a thread of the run, since all of these may be waiting for desktops that hang.
        await asyncio.shield(asyncio.to_thread(desktop.close))

    # -- recorded episodes -------------------------------------------------------------------------

    def recorded(
        self,
        assignment: Assignment,
        sample: int,
        case: CaseInput,
        before: Mapping[str, Any] | None,
    ) -> EpisodePart[EpisodeEnd] | None:
        """Returns the recorded episode of a case; None if it is not finished or cannot be read."""
        path = episode_path(self._store.path, assignment.question.id, sample, case.number)
        try:
            episode = read_episode(path)
        except StoreError:
            return None
        end = episode.end
        if end is None or episode.head["model"] != self._plan.model.name or before is None:
            return None
        if not self.has_output(end["output"]):
            return None
        return part_of(end, len(episode.turns), case.number, before)

    def note_end(
        self,
        assignment: Assignment,
        sample: int,
        case: CaseInput,
        conversation: Conversation,
        end: EpisodeEnd,
    ) -> None:
        """Adds the outcome of an episode to the conversation, for the submission."""
        path = episode_path(self._store.path, assignment.question.id, sample, case.number)
        task = desktop_task(assignment.question, case)
        conversation.outputs[case.number] = output_record(end, task, self._mode.options, path)


def opening_message(plan: InferencePlan, question: TaskQuestion, task: DesktopTask) -> str:
    """Returns the first message about a task on a desktop.

    Args:
        plan: the plan of the run.
        question: the task.
        task: the files of the desktop.
    """
    assert plan.desktop is not None, "only runs on a desktop have episodes"
    fields = plan.background.fields(plan.template, question, question.instruction)
    return first_message(
        plan.desktop,
        task,
        fields["instruction"],
        lambda values: plan.template.fill({**fields, **values}),
    )


def _close_unused(opening: asyncio.Future[Desktop]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
