"""How far a run of inference has come: an event for each task, and a summary at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from judge.core.conversation import asking_of


@dataclass(frozen=True, slots=True)
class InferenceEvent:
    """Something to show: a task is done.

    Attributes:
        task_id: the task.
        sample: 0-based number of the sample.
        state: ``program`` (the model gave one), ``answer`` (a typed one), ``file`` (one that was
            left on a desktop), ``no-code`` or ``failed``.
        reused: whether it was finished before this command.
        done: how many are done, failures included.
        total: how many there are.
        tokens: tokens used so far by the run.
        cost: US dollars spent so far by the run; None where no price is known.
    """

    task_id: str
    sample: int
    state: str
    reused: bool
    done: int
    total: int
    tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class BatchEvent:
    """Something to show: how a batch is getting on.

    Attributes:
        batch_id: the batch, as the server calls it.
        status: its status, as the server says.
        answered: requests that are done, failures included.
        total: requests in all.
    """

    batch_id: str
    status: str
    answered: int
    total: int


@dataclass(slots=True)
class InferenceSummary:
    """How a run ended.

    Attributes:
        total: tasks times samples.
        finished: with a record in submissions.jsonl.
        reused: of these, finished before this command.
        failed: without a reply; the same command asks again.
        unasked: not begun, because the run stopped.
        truncated: finished, from a reply that was cut off.
        no_code: finished, without a program, or without a typed answer.
        not_alone: finished, with a program that only worked because of earlier rounds.
        calls: requests answered for the finished ones.
        retries: attempts beyond the first.
        prompt_tokens: of the finished ones.
        completion_tokens: likewise.
        tokens: of the whole run, failures and earlier commands included.
        cost: US dollars of the whole run; None where no price is known.
        seconds: of this command.
        stopped: why the run stopped early, or None.
        failures: what went wrong, by task (and sample).
    """

    total: int = 0
    finished: int = 0
    reused: int = 0
    failed: int = 0
    unasked: int = 0
    truncated: int = 0
    no_code: int = 0
    not_alone: int = 0
    calls: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0
    stopped: str | None = None
    failures: dict[str, str] = field(default_factory=dict)

    def count(self, record: Mapping[str, object]) -> None:
        """Adds a submission's record to the counts."""
        asking = asking_of(record)
        self.finished += 1
        self.truncated += asking.is_truncated
        given = ("solution", "response", "outputs")
        self.no_code += not any(record.get(name) for name in given) and (
            record.get("solution") is None
        )
        self.not_alone += asking.stands_alone is False
        self.calls += len(asking.calls)
        for call in asking.calls:
            self.retries += max(round(call.attempts) - 1, 0)
            self.prompt_tokens += round(call.prompt_tokens or 0)
            self.completion_tokens += round(call.completion_tokens or 0)

    @property
    def is_complete(self) -> bool:
        """Whether every task has its submission."""
        return self.finished == self.total


def _ignore(_: Any) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True)
class Listeners:
    """What a run calls as it proceeds, in the thread of the event loop.

    Attributes:
        on_event: when a task is done.
        on_submission: when a submission's record is in submissions.jsonl.
        on_batch: when the server has said how a batch is getting on.
    """

    on_event: Callable[[InferenceEvent], None] = _ignore
    on_submission: Callable[[dict[str, Any]], None] = _ignore
    on_batch: Callable[[BatchEvent], None] = _ignore
