from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from judge.inference.chat import BudgetReachedError
from judge.inference.pacing import Budget, Pacer, RateLimits


class Clockwork(selectors.DefaultSelector):
    """A clock that jumps to the moment for which an event loop would wait."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now_s += max(timeout or 0.0, 1e-6)  # time passes while a loop is busy as well
        return super().select(timeout if timeout is None else 0)


Play = Callable[[Callable[[], Coroutine[Any, Any, None]]], None]


@pytest.fixture
def clock() -> Clockwork:
    return Clockwork()


@pytest.fixture
def play(clock: Clockwork, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Runs a coroutine with that clock: no test waits, and a busy machine delays no request."""
    monkeypatch.setattr(
        "judge.inference.pacing.time", SimpleNamespace(monotonic=lambda: clock.now_s)
    )

    def loop() -> asyncio.AbstractEventLoop:
        made = asyncio.SelectorEventLoop(clock)
        made.time = lambda: clock.now_s  # type: ignore[method-assign]
        return made

    def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(main())

    return run


def max_in_any_window(moments: list[tuple[float, float]], period_s: float) -> float:
    """Returns the largest sum of amounts within any window of the period."""
    return max(
        sum(amount for at, amount in moments if start <= at < start + period_s)
        for start, _ in moments
    )


@pytest.mark.parametrize(("requests", "count"), [(20, 50), (3, 7), (1, 2)])
def test_requests_hold_in_every_window(
    requests: int, count: int, play: Play, clock: Clockwork
) -> None:
    period_s = 60.0
    sent: list[tuple[float, float]] = []

    async def run() -> None:
        pacer = Pacer(RateLimits(requests=requests, period_s=period_s))

        async def one() -> None:
            await pacer.admit(1)
            sent.append((clock.now_s, 1))

        await asyncio.gather(*(one() for _ in range(count)))

    play(run)
    assert len(sent) == count
    assert max_in_any_window(sent, period_s) <= requests


def test_tokens_hold_in_every_window_although_replies_are_longer_than_expected(
    play: Play, clock: Clockwork
) -> None:
    period_s, limit = 60.0, 20_000
    used: list[tuple[float, float]] = []

    async def run() -> None:
        pacer = Pacer(RateLimits(tokens=limit, period_s=period_s), completion_tokens=100)

        async def one(size: int) -> None:
            await pacer.admit(size)
            used.append((clock.now_s, size + 400))
            pacer.settle(size, size, 400)

        await asyncio.gather(*(one(300 + 50 * (number % 7)) for number in range(80)))

    play(run)
    # What exceeds the estimate is paid back by the calls that follow.
    assert max_in_any_window(used, period_s) <= limit * 1.05


def test_a_request_larger_than_the_bucket_gets_through(play: Play, clock: Clockwork) -> None:
    async def run() -> None:
        pacer = Pacer(RateLimits(tokens=1000, period_s=60), completion_tokens=0)
        await pacer.admit(900)

    play(run)
    assert 30 < clock.now_s < 120


def test_a_pause_holds_everybody_back(play: Play, clock: Clockwork) -> None:
    async def run() -> None:
        pacer = Pacer(RateLimits(requests=1000))
        pacer.pause(30)
        await asyncio.gather(*(pacer.admit(1) for _ in range(5)))

    play(run)
    assert 30 <= clock.now_s < 31


def test_budget_counts_what_is_under_way() -> None:
    budget = Budget(max_cost=1.0, max_tokens=1000)
    with budget.reserve(600, 0.4):
        with pytest.raises(BudgetReachedError), budget.reserve(600, 0.1):
            pass
        with budget.reserve(300, 0.5):
            pass
    budget.spend(900, 0.9)
    with budget.reserve(100, 0.1):
        pass
    with pytest.raises(BudgetReachedError), budget.reserve(50, 0.2):
        pass
    with pytest.raises(BudgetReachedError), budget.reserve(101, 0.0):
        pass
