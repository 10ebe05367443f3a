"""All episodes about a task: a desktop for each case, what is on record already, what is kept."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any

from judge.core.submission import AnswerForm
from judge.core.task import CaseInput, TaskQuestion
from judge.desktop.contract import HOME, Desktop, DesktopHost, DesktopTask
from judge.desktop.episodes import Episode, EpisodeWriter, episode_path, read_episode
from judge.desktop.recording import head_of, output_record
from judge.desktop.records import EpisodeEnd
from judge.errors import SandboxError, StoreError
from judge.files.documents import utc_now
from judge.grading.store import RunDirectory
from judge.inference.asker import Asker
from judge.inference.chat import ChatReply, Message
from judge.inference.desktop.episode import EpisodeHands, first_message, hold_episode
from judge.inference.desktop.opening import desktop_task
from judge.inference.desktop.setting import DesktopWay, setting_name
from judge.inference.pictures import PictureStore
from judge.inference.plan import Assignment, InferencePlan
from judge.inference.talk import Talk

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
