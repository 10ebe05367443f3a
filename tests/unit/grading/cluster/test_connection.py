"""What the client of a cluster does with tasks whose end is not reported to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from judge.grading.cluster.connection import Connection


class Task:
    """A task whose end is never reported."""

    status = "pending"

    def add_done_callback(self, call: Callable[[object], None]) -> None:
        del call

    def release(self) -> None:
        self.status = "released"


class Scheduler:
    """The answers of a scheduler to queries.

    Attributes:
        state: of every task.
        answer: what workers hold as the answer to each task.
    """

    state: str | None = None
    answer: object = None

    def gather(self, keys: list[str]) -> dict[str, object]:
        """The answers that the client can still fetch from workers."""
        if self.answer is None:
            return {"status": "error", "keys": keys}
        return {"status": "OK", "data": dict.fromkeys(keys, self.answer)}

    def ncores(self) -> dict[str, int]:
        return {"tls://w1": 1}

    def get_task_status(self, keys: list[str]) -> dict[str, str | None]:
        return dict.fromkeys(keys, self.state)


class Client:
    """Asks the scheduler immediately."""

    status = "running"

    def __init__(self) -> None:
        self.scheduler = Scheduler()

    def submit(self, *_: object, **__: object) -> Task:
        return Task()

    def sync(self, ask: Callable[..., Any], *, callback_timeout: float, **given: object) -> object:
        del callback_timeout
        return ask(**given)


def connected(client: Client, now: list[float]) -> Connection:
    from judge.grading.cluster.connection import Connection  # noqa: PLC0415  brings all of Dask

    return Connection(cast(Any, client), "tls://s", clock=lambda: now[0])


@pytest.mark.parametrize("state", [None, "released", "waiting", "no-worker", "processing"])
def test_a_task_that_has_not_ended_is_waited_for(state: str | None) -> None:
    """Its worker may still be starting: it is listed before it accepts work."""
    now, client = [0.0], Client()
    client.scheduler.state = state
    connection = connected(client, now)
    connection.send("tls://w1", "hello", b"H")
    for _ in range(5):
        now[0] += 60
        assert list(connection.workers()) == ["tls://w1"]
        assert connection.wait(0.0) == []


@pytest.mark.parametrize(
    ("state", "answer", "data", "problem"),
    [
        ("erred", None, None, "it could not finish the task"),
        ("memory", None, None, "its answer is not plain data, or was lost"),
        ("memory", {"not": "bytes"}, None, "its answer is not plain data, or was lost"),
        ("memory", b"an answer", b"an answer", ""),
    ],
)
def test_a_task_whose_end_is_not_reported_ends(
    state: str, answer: object, data: bytes | None, problem: str
) -> None:
    """The report may have been in a message that another worker made unreadable."""
    now, client = [0.0], Client()
    client.scheduler.state, client.scheduler.answer = state, answer
    connection = connected(client, now)
    connection.send("tls://w1", "hello", b"H")
    for _ in range(5):  # looked at again at once: the news may be on its way
        connection.workers()
    assert connection.wait(0.0) == []
    now[0] += 2
    connection.workers()
    (answered,) = connection.wait(0.0)
    assert (answered.key, answered.data, answered.problem) == ("hello", data, problem)


def test_each_run_gets_the_answers_to_what_it_sent() -> None:
    client = Client()
    client.scheduler.state = "erred"
    now = [0.0]
    connection = connected(client, now)
    first, second = connection.for_run(), connection.for_run()
    first.send("tls://w1", "a", b"W")
    second.send("tls://w1", "b", b"W")
    for run in (first, second):
        run.workers()
    now[0] += 2
    for run in (first, second):
        run.workers()
    assert [answered.key for answered in second.wait(0.0)] == ["b"]
    assert [answered.key for answered in first.wait(0.0)] == ["a"]


def test_what_a_worker_works_on_is_what_came_first_of_all_runs() -> None:
    connection = connected(Client(), [0.0])
    first, second = connection.for_run(), connection.for_run()
    first.workers()
    first.send("tls://w1", "a", b"W")
    second.send("tls://w1", "b", b"W")
    assert first.is_next("tls://w1", "a")
    assert not second.is_next("tls://w1", "b")
    first.cancel(["a"])
    assert second.is_next("tls://w1", "b")


def test_whom_a_dead_worker_worked_for_is_known_until_every_run_has_looked() -> None:
    client = Client()
    connection = connected(client, [0.0])
    first, second = connection.for_run(), connection.for_run()
    first.send("tls://w1", "a", b"W")
    second.send("tls://w1", "b", b"W")
    client.scheduler.ncores = dict  # type: ignore[method-assign]
    first.workers()
    first.cancel(["a"])
    assert not second.is_next("tls://w1", "b")
    second.cancel(["b"])
    assert first.is_next("tls://w1", "c")
