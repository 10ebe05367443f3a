"""Paces requests: by limits per minute, by pauses that the server requests, and by budgets.

The limits hold in every window of the period, not only on average. A leaky bucket that holds the
whole limit would allow twice the limit in the first minute. Therefore, the bucket holds a tenth of
the limit, and is refilled at the rate of the other nine tenths.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from aiolimiter import AsyncLimiter

from judge.inference.chat import BudgetReachedError

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_MARGIN = 0.95  # requests sent evenly may arrive unevenly
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The limits of a server.

    Attributes:
        requests: maximum number of requests in each period; None for no limit.
        tokens: maximum number of tokens of prompts and replies in each period; None for no limit.
        period_s: length of the period in seconds.
    """

    requests: int | None = None
    tokens: int | None = None
    period_s: float = 60.0


class Pacer:
    """Delays calls so that they keep the limits. An instance belongs to one event loop.

    Args:
        limits: the limits of the server.
        completion_tokens: assumed tokens of a reply, until the first reply has arrived.
    """

    def __init__(self, limits: RateLimits | None = None, completion_tokens: int = 800) -> None:
        self._limits = limits or RateLimits()
        self._requests = _bucket(self._limits.requests, self._limits.period_s)
        self._tokens = _bucket(self._limits.tokens, self._limits.period_s)
        self._order = asyncio.Lock()
        self._paused_until_s = 0.0
        self._expected = float(completion_tokens)
        self._seen = 0
        self._debt = 0.0

    @property
    def is_limited(self) -> bool:
        """Whether there are any limits; without limits, no estimates are needed."""
        return self._requests is not None or self._tokens is not None

    async def admit(self, prompt_tokens: int) -> None:
        """Waits until a request may be sent.

        Args:
            prompt_tokens: estimated tokens of its prompt.
        """
        if not self.is_limited:
            await self._wait_out_pause()
            return
        # One at a time, so that small requests do not keep overtaking a large one that is waiting.
        async with self._order:
            await self._wait_out_pause()
            if self._tokens is not None:
                await self._take_tokens(prompt_tokens + self._expected + self._debt)
            if self._requests is not None:
                await self._requests.acquire()
        await self._wait_out_pause()

    def settle(
        self, estimate: int, prompt_tokens: int | None, completion_tokens: int | None
    ) -> None:
        """Records the tokens of a call; if the estimate was too low, the next call waits longer.

        Args:
            estimate: the value passed to :meth:`admit`.
            prompt_tokens: tokens of the prompt as the server counted them; None if it did not.
            completion_tokens: tokens of the reply; None if the server did not count them.
        """
        if completion_tokens is None:
            return
        over = (prompt_tokens or estimate) + completion_tokens - estimate - self._expected
        self._debt = max(self._debt + over, 0.0)
        self._seen += 1
        self._expected += (completion_tokens - self._expected) / min(self._seen + 1, 50)

    def pause(self, seconds: float) -> None:
        """Makes all calls wait, because the server asked one of them to wait."""
        self._paused_until_s = max(self._paused_until_s, time.monotonic() + seconds)

    def note_headers(self, headers: Mapping[str, str]) -> None:
        """Pauses until the server's limits are reset, if they are used up."""
        for name in ("requests", "tokens"):
            remaining = headers.get(f"x-ratelimit-remaining-{name}")
            reset = headers.get(f"x-ratelimit-reset-{name}")
            if remaining is not None and reset is not None and remaining.strip() == "0":
                seconds = sum(
                    float(number) * _SECONDS[unit] for number, unit in _DURATION.findall(reset)
                )
                self.pause(min(seconds, 120.0))

    async def _take_tokens(self, amount: float) -> None:
        assert self._tokens is not None
        self._debt = 0.0
        while amount > 0:
            # A request larger than the bucket takes its tokens in several parts.
            part = min(amount, self._tokens.max_rate)
            await self._tokens.acquire(part)
            amount -= part

    async def _wait_out_pause(self) -> None:
        while True:
            left_s = self._paused_until_s - time.monotonic()
            if left_s <= 0:
                return
            await asyncio.sleep(left_s)  # the pause may have become longer in the meantime


def _bucket(limit: int | None, period_s: float) -> AsyncLimiter | None:
    """Returns a bucket that allows at most ``limit`` units in every window of the period."""
    if limit is None:
        return None
    burst = max(limit / 10, 1.0)
    per_second = max(limit * _MARGIN - burst, limit / 2) / period_s
    return AsyncLimiter(burst, burst / per_second)


@dataclass(slots=True)
class Budget:
    """Spending limits of a run, and what the run has spent, earlier commands included.

    Attributes:
        max_cost: limit in US dollars; None for no limit.
        max_tokens: maximum number of tokens of prompts and replies; None for no limit.
        cost: US dollars spent so far.
        tokens: tokens used so far.
    """

    max_cost: float | None = None
    max_tokens: int | None = None
    cost: float = 0.0
    tokens: int = 0
    _reserved_cost: float = 0.0
    _reserved_tokens: int = 0

    @contextlib.contextmanager
    def reserve(self, tokens: int, cost: float) -> Iterator[None]:
        """Reserves the expected tokens and cost of a call while it is under way.

        Raises:
            BudgetReachedError: the budget does not allow the call.
        """
        if not self.allows(tokens, cost):
            raise BudgetReachedError
        with self.hold(tokens, cost):
            yield

    def allows(self, tokens: int, cost: float) -> bool:
        """Whether the budget allows a call, given the amounts already spent and reserved."""
        full_tokens = self.max_tokens is not None and (
            self.tokens + self._reserved_tokens + tokens > self.max_tokens
        )
        full_cost = self.max_cost is not None and (
            self.cost + self._reserved_cost + cost > self.max_cost
        )
        return not (full_tokens or full_cost)

    @contextlib.contextmanager
    def hold(self, tokens: int, cost: float) -> Iterator[None]:
        """Reserves tokens and cost of a call that was already sent, even beyond the budget."""
        self._reserved_tokens += tokens
        self._reserved_cost += cost
        try:
            yield
        finally:
            self._reserved_tokens -= tokens
            self._reserved_cost -= cost

    def spend(self, tokens: int, cost: float) -> None:
        """Charges the tokens and the cost of a call."""
        self.tokens += tokens
        self.cost += cost
