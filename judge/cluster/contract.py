"""What dispatching needs of a cluster: workers by address, tasks in bytes, answers in bytes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """A worker, as the scheduler knows it.

    Attributes:
        threads: how many tasks it does at once.
    """

    threads: int = 1


@dataclass(frozen=True, slots=True)
class Answered:
    """A task that has ended.

    Attributes:
        key: the name that it was sent under.
        data: what the worker answered; None if there is no answer that can be read.
        problem: why there is none.
    """

    key: str
    data: bytes | None
    problem: str = ""


class Cluster(Protocol):
    """Workers, each of which answers one task at a time, in the order in which it got them."""

    def workers(self) -> Mapping[str, WorkerFacts]:
        """The workers that there are now, by address.

        Raises:
            ClusterError: the scheduler is gone.
        """
        ...

    def send(self, address: str, key: str, request: bytes) -> None:
        """Gives a task to a worker.

        Raises:
            ClusterError: the scheduler is gone.
        """
        ...

    def wait(self, timeout_s: float) -> Sequence[Answered]:
        """Tasks that have ended, as soon as there is one.

        Raises:
            ClusterError: the scheduler is gone.
        """
        ...

    def cancel(self, keys: Collection[str]) -> None:
        """Takes tasks back; the workers end what runs for them."""
        ...
