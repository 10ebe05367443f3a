"""Episodes, one for each case of a task: finished ones are read from the record, others are run.

This module does the work that episodes on a desktop and episodes with tools share: it selects the
cases that are left, repeats attempts if the sandbox breaks, and separates each episode's part of
the conversation.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from judge.core.submission import AnswerForm
from judge.core.task import CaseInput
from judge.grading.store import RunDirectory
from judge.inference.calls import TaskClient
from judge.inference.chat import ChatReply, Message
from judge.inference.conversation import Conversation, try_sandboxes
from judge.inference.pictures import PictureStore
from judge.inference.plan import Assignment, InferencePlan

PAUSE_S = 1.0
"""Seconds to wait before the second attempt at an episode; the third waits twice as long."""

_RESPONSES = {"fail": "FAIL", "done": "DONE"}

End = TypeVar("End", bound=Mapping[str, Any])


@dataclass(frozen=True, slots=True)
class EpisodePart(Generic[End]):
    """A finished episode, with its part of the conversation.

    Attributes:
        end: the last line of its record.
        messages: its messages.
        rounds: the records of its turns; they number messages from the first of the episode.
        calls: the calls to the model.
    """

    end: End
    messages: list[Message]
    rounds: list[dict[str, Any]]
    calls: list[dict[str, Any]]


class EpisodeSolver(ABC, Generic[End]):
    """Lets a chat model solve tasks in episodes, a limited number of them at a time.

    Args:
        plan: the plan of the run.
        store: the results directory.
        pictures: the store for the pictures of messages.
        threads: threads for blocking work.
        jobs: maximum number of episodes at a time.
    """

    def __init__(
        self,
        plan: InferencePlan,
        store: RunDirectory,
        pictures: PictureStore,
        threads: Executor,
        jobs: int,
    ) -> None:
        self._plan = plan
        self._store = store
        self._pictures = pictures
        self._threads = threads
        self._slots = asyncio.Semaphore(jobs)

    async def solve(
        self,
        assignment: Assignment,
        conversation: Conversation,
        client: TaskClient,
        before: Mapping[str, Any] | None,
        keep: Callable[[], None],
    ) -> None:
        """Runs an episode for each case of a task, unless it is recorded already.

        Args:
            assignment: the task.
            conversation: filled as the episodes proceed.
            client: asks the model for this task and sample.
            before: the recorded conversation; None if there is none.
            keep: writes the conversation so far; called before an episode is finished.

        Raises:
            CallError: no reply could be obtained.
            BudgetReachedError: the budget does not allow a call.
            SandboxError: the sandbox broke in every attempt.
            SuiteError: a file of the task cannot be read.
        """
        question = assignment.question
        end: End | None = None
        for case in self.cases(assignment):
            part = self.recorded(assignment, client.sample, case, before)
            if part is not None:
                add_part(part, case.number, conversation, client)
                end = part.end
            else:
                async with self._slots:
                    end = await self._episode(assignment, case, conversation, client, keep)
            self.note_end(assignment, client.sample, case, conversation, end)
            conversation.ended = end["ended"]
        if question.answer is AnswerForm.TEXT and end is not None:
            conversation.response = _RESPONSES.get(end["ended"])

    def cases(self, assignment: Assignment) -> tuple[CaseInput, ...]:
        """Returns the cases that have an episode."""
        return assignment.question.inputs

    @abstractmethod
    async def check(self) -> None:
        """Checks that episodes can be started at all.

        Raises:
            SandboxError: they cannot be started.
        """

    @abstractmethod
    async def once(
        self,
        assignment: Assignment,
        case: CaseInput,
        conversation: Conversation,
        client: TaskClient,
        keep: Callable[[], None],
        attempt: int,
    ) -> End:
        """Runs an episode once; returns the last line of its record.

        Raises:
            SandboxError: the sandbox broke.
        """

    @abstractmethod
    def recorded(
        self,
        assignment: Assignment,
        sample: int,
        case: CaseInput,
        before: Mapping[str, Any] | None,
    ) -> EpisodePart[End] | None:
        """Returns the recorded episode of a case, with its part of the conversation.

        None if there is no finished episode, or it cannot be read; it is then repeated.
        """

    @abstractmethod
    def note_end(
        self,
        assignment: Assignment,
        sample: int,
        case: CaseInput,
        conversation: Conversation,
        end: End,
    ) -> None:
        """Adds the outcome of an episode to the conversation."""

    async def _episode(
        self,
        assignment: Assignment,
        case: CaseInput,
        conversation: Conversation,
        client: TaskClient,
        keep: Callable[[], None],
    ) -> End:
        """Runs an episode; starts it again if its sandbox breaks."""
        lists: tuple[list[Any], ...] = (
            conversation.messages,
            conversation.rounds,
            conversation.parts,
            client.calls,
        )
        lengths = [len(entries) for entries in lists]

        def undo() -> None:
            for entries, length in zip(lists, lengths, strict=True):
                del entries[length:]

        async def once(attempt: int) -> End:
            return await self.once(assignment, case, conversation, client, keep, attempt)

        return await try_sandboxes(once, undo, PAUSE_S)

    def has_output(self, digest: str | None) -> bool:
        """Whether the file that an episode left still exists; True if it left no file."""
        if digest is None or self._store.get_workbook(digest) is not None:
            return True
        # Otherwise, a damaged file would be kept instead of the new one.
        self._store.workbook_path(digest).unlink(missing_ok=True)
        return False


def asking(
    client: TaskClient, case: CaseInput
) -> Callable[[tuple[Message, ...], int], Awaitable[ChatReply]]:
    """Returns a function that asks the model about one case."""

    def ask(messages: tuple[Message, ...], number: int) -> Awaitable[ChatReply]:
        return client.ask(messages, number, case.number)

    return ask


def add_part(
    part: EpisodePart[Any], case: int, conversation: Conversation, client: TaskClient
) -> None:
    """Adds a finished episode to a conversation."""
    start = len(conversation.messages)
    conversation.parts.append((case, start))
    conversation.messages += part.messages
    for record in part.rounds:
        conversation.rounds.append(
            {**record, "sent": [number + start for number in record["sent"]]}
        )
    client.calls += part.calls
    if part.rounds:
        conversation.finish_reason = part.rounds[-1].get("finish_reason")
        conversation.truncated = bool(part.rounds[-1].get("truncated"))


def part_of(end: End, turns: int, case: int, before: Mapping[str, Any]) -> EpisodePart[End] | None:
    """Returns the part of a recorded conversation that belongs to an episode; None if it is absent.

    Args:
        end: the last line of the episode's record.
        turns: how many turns the episode has.
        case: number of the case.
        before: the recorded conversation.
    """
    with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):
        parts = [(int(number), int(start)) for number, start in before["parts"]]
        index = [number for number, _ in parts].index(case)
        start = parts[index][1]
        last = parts[index + 1][1] if index + 1 < len(parts) else len(before["messages"])
        rounds = [
            {**record, "sent": [int(number) - start for number in record["sent"]]}
            for record in before["rounds"]
            if record.get("case") == case
        ]
        messages = list(before["messages"][start:last])
        calls = [call for call in before["calls"] if call.get("case") == case]
        if messages and sum("error" not in record for record in rounds) == turns:
            return EpisodePart(end, messages, rounds, calls)
    return None
