"""What can be asked before any conversation begins, and where the replies go.

A setting of one round needs no reply to know its requests. So they are asked ahead, in whatever
way a :class:`Carrier` knows, and the replies put into the run's journal; the conversations are then
held as always, and find there what they ask for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from judge.errors import SandboxError, SuiteError, WorkbookError
from judge.inference.asker import AskContext, Asker, CallKey
from judge.inference.chat import CallError, ChatReply, ChatRequest, estimate_request_tokens
from judge.inference.interview import Interviewer
from judge.inference.plan import Assignment, InferencePlan
from judge.inference.progress import BatchEvent

Job = tuple[Assignment, int]
"""A task and the 0-based number of a sample of it."""

JobKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request that has no reply yet.

    Attributes:
        job: the task and sample that it is for.
        key: the call.
        request: what is asked.
    """

    job: JobKey
    key: CallKey
    request: ChatRequest

    @property
    def prompt_tokens(self) -> int:
        """About how many tokens the prompt has."""
        return estimate_request_tokens(self.request.messages)


def _none() -> Mapping[str, CallError]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was not answered ahead.

    Attributes:
        failures: why requests have no reply, by custom id.
        unasked: tasks and samples with requests that were not asked.
        stopped: why not, if that is what ends the run.
    """

    failures: Mapping[str, CallError] = field(default_factory=_none)
    unasked: frozenset[JobKey] = frozenset()
    stopped: str | None = None


class Carrier(Protocol):
    """A way to have requests answered ahead."""

    @property
    def collects_batches(self) -> bool:
        """Whether it collects batches that are under way from an earlier command."""
        ...

    async def carry(self, desk: Desk) -> Outcome:
        """Has the requests of a desk answered, as far as it can.

        Raises:
            InferenceError: no request can be answered like that.
            StoreError: records cannot be read or written.
        """
        ...


class Desk:
    """Lists the requests of a run, and files the replies.

    Args:
        plan: the run.
        jobs: the tasks and samples that have no submission yet.
        interviewer: makes prompts.
        context: what all tasks ask with.
        folder: the run's directory, for files that do not stay.
        tell: called with how batches get on.
    """

    def __init__(
        self,
        plan: InferencePlan,
        jobs: Sequence[Job],
        interviewer: Interviewer,
        context: AskContext,
        folder: Path,
        tell: Callable[[BatchEvent], None],
    ) -> None:
        self._plan = plan
        self._jobs = {(each.question.id, sample): (each, sample) for each, sample in jobs}
        self._interviewer = interviewer
        self.context = context
        self.folder = folder
        self.tell = tell

    async def wanted(self, jobs: Iterable[JobKey] | None = None) -> AsyncIterator[Wanted]:
        """The requests whose replies are neither on record nor in the cache.

        A task whose prompt cannot be made has none: its conversation will say why.

        Args:
            jobs: only of these tasks and samples; None for all.
        """
        for job in self._jobs if jobs is None else jobs:
            assignment, sample = self._jobs[job]
            question = assignment.question
            context = replace(self.context, params=self._plan.params_of(question))
            asker = Asker(context, question.id, sample)
            try:
                openings = await self._interviewer.openings(assignment)
            except (WorkbookError, SuiteError, SandboxError):
                continue
            for case, content in openings:
                key, request = asker.request(({"role": "user", "content": content},), 1, case)
                if context.journal.find(key) is None and not self._is_cached(request):
                    yield Wanted(job, key, request)

    def file(self, key: CallKey, reply: ChatReply, prompt_tokens: int, source: str) -> None:
        """Files a reply in the journal, where its conversation finds it; once.

        Args:
            key: the call.
            reply: the reply.
            prompt_tokens: about how many tokens the prompt has, if the server did not count.
            source: the batch, or the file, that it came in.
        """
        if self.context.journal.find(key) is None:
            self.context.write_down(key, reply, lambda: prompt_tokens, batch=source)

    def cache_key(self, request: ChatRequest) -> str | None:
        """Under which name other runs find the reply; None if they must not."""
        if self.context.cache is None or not request.is_repeatable:
            return None
        return request.digest(self.context.chat_model.endpoint)

    def _is_cached(self, request: ChatRequest) -> bool:
        digest = self.cache_key(request)
        cache = self.context.cache
        return digest is not None and cache is not None and cache.get(digest) is not None


class AnsweredAhead:
    """The chat model of conversations whose requests were asked ahead: it only says what failed.

    Args:
        endpoint: address of the server that was asked.
        failures: why requests have no reply, by custom id.
    """

    def __init__(self, endpoint: str, failures: Mapping[str, CallError]) -> None:
        self._endpoint = endpoint
        self._failures = failures

    @property
    def endpoint(self) -> str:
        """Address of the server, without credentials."""
        return self._endpoint

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Fails as the request failed.

        Raises:
            CallError: always; what was answered is in the journal.
        """
        raise self._failures.get(request.custom_id) or CallError(
            "gave-up", "the request was not among those that were asked ahead"
        )

    async def close(self) -> None:
        """Nothing is open."""
