"""A fifth of the calls fail in every possible way; the limits hold with 32 tasks at a time."""

from __future__ import annotations

import asyncio
import collections
import itertools
import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from werkzeug import Response

from judge.grading.store import SUBMISSIONS_FILE, RunDirectory
from judge.inference.client import OpenAIChatModel, RetryPolicy
from judge.inference.config import ModelSpec
from judge.inference.pacing import Pacer, RateLimits
from judge.inference.plan import Assignment, InferencePlan
from judge.inference.run import Resources, run_inference
from judge.inference.run_records import InferenceSummary
from tests.inference.planning import MakePlan
from tests.inference.scripted import (
    Reply,
    ScriptedServer,
    Seen,
    completion,
    cut_in_body,
    drop,
    endless,
    fault,
    program,
)

TASKS = 200
POLICY = RetryPolicy(
    attempts=12,
    first_wait_s=0.02,
    longest_wait_s=0.1,
    call_timeout_s=4.0,
    longest_retry_after_s=400.0,
    timeouts=12,
)
"""More attempts than needed: on a busy machine a call may also simply take too long."""
FAULTS: list[Callable[[Seen], Reply]] = [
    lambda _: fault(429, retry_after="0.2"),
    lambda _: fault(429),
    lambda _: fault(500),
    lambda _: Response("<html>bad gateway", 502),
    drop,
    lambda _: cut_in_body(),
    lambda _: endless(pause_s=0.2, bound_s=6.0),
    lambda _: Response("", content_type="application/json"),
    lambda seen: completion("", seen.body),
    lambda _: {"choices": "none"},
    lambda _: {"error": {"message": "overloaded"}},
]
ENDLESS = 6  # its number


def many(plan: InferencePlan, count: int) -> InferencePlan:
    assignments = itertools.islice(itertools.cycle(plan.assignments), count)
    return replace(
        plan,
        assignments=tuple(
            Assignment(replace(each.question, id=f"t{number}"), f"t{number}")
            for number, each in enumerate(assignments)
        ),
    )


def run(
    plan: InferencePlan, url: str, path: Path, policy: RetryPolicy, limits: RateLimits | None = None
) -> InferenceSummary:
    plan = replace(plan, model=ModelSpec("scripted", "scripted-1", base_url=url))
    model = OpenAIChatModel(url, "sk-secret-in-no-file", policy=policy, pacer=Pacer(limits))

    async def go() -> InferenceSummary:
        try:
            with RunDirectory(path) as store:
                return await run_inference(plan, store, Resources(model, concurrency=32))
        finally:
            await model.close()

    return asyncio.run(go())


def test_a_fifth_of_the_calls_fail(make_plan: MakePlan, tmp_path: Path) -> None:
    kinds: collections.Counter[int] = collections.Counter()
    lock = threading.Lock()

    def script(seen: Seen) -> Reply:
        if seen.number % 5 == 3:
            with lock:
                kind = sum(kinds.values()) % len(FAULTS)
                kinds[kind] += 1
            return FAULTS[kind](seen)
        if seen.number % 50 == 7:
            return completion("```python\nx = (", seen.body, finish_reason="length")
        return program(seen.task)

    plan = many(make_plan(), TASKS)
    with ScriptedServer(script) as server:
        summary = run(plan, server.url, tmp_path, POLICY)
        seen = len(server.seen)
    assert (summary.finished, summary.failed) == (TASKS, 0)
    assert set(kinds) == set(range(len(FAULTS)))
    assert min(kinds.values()) >= 3
    lines = (tmp_path / SUBMISSIONS_FILE).read_text(encoding="utf-8").splitlines()
    records: dict[str, dict[str, Any]] = {each["id"]: each for each in map(json.loads, lines)}
    assert len(records) == TASKS
    failures = too_slow = requests = 0
    for task, record in records.items():
        (call,) = record["calls"]
        failures += len(call["faults"])
        too_slow += sum("no whole reply" in each for each in call["faults"])
        assert call["attempts"] == len(call["faults"]) + 1
        requests += call["attempts"]
        if not record["truncated"]:
            assert f"1_{task}_input.xlsx" in str(record["solution"])
    assert summary.truncated >= 3
    # Every failure was tried again once, and nothing was asked without need. (Where the machine is
    # busy, a reply may take longer than a call may without a fault being played.)
    assert too_slow >= kinds[ENDLESS]
    assert failures - too_slow == sum(kinds.values()) - kinds[ENDLESS]
    assert seen <= requests <= TASKS * POLICY.attempts
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"sk-secret" not in path.read_bytes()


def test_a_retry_after_of_more_than_two_minutes(
    make_plan: MakePlan, tmp_path: Path, monkeypatch: Any
) -> None:
    """The clock is advanced instead of waiting: sleeping makes time pass for everyone."""
    passed = {"s": 0.0}
    real_sleep, real_clock = asyncio.sleep, time.monotonic

    async def sleep(seconds: float) -> None:
        passed["s"] += seconds
        await real_sleep(0)

    monkeypatch.setattr("judge.inference.client.asyncio.sleep", sleep)
    monkeypatch.setattr("judge.inference.pacing.time.monotonic", lambda: real_clock() + passed["s"])

    def script(seen: Seen) -> Reply:
        return fault(429, retry_after="180") if seen.number == 0 else program(seen.task)

    with ScriptedServer(script) as server:
        summary = run(many(make_plan(), 1), server.url, tmp_path, POLICY)
    assert summary.is_complete
    assert summary.retries == 1
    assert passed["s"] >= 180


class Limiter:
    """A server that refuses requests beyond its limits in any window, and counts refusals."""

    def __init__(self, requests: int, tokens: int, period_s: float) -> None:
        self.limits = (requests, tokens)
        self.period_s = period_s
        self.events: collections.deque[tuple[float, int]] = collections.deque()
        self.refused = 0
        self.lock = threading.Lock()

    def __call__(self, seen: Seen) -> Reply:
        answer = completion(program(seen.task), seen.body)
        with self.lock:
            now = time.monotonic()
            while self.events and self.events[0][0] <= now - self.period_s:
                self.events.popleft()
            requests = len(self.events) + 1
            tokens = sum(amount for _, amount in self.events) + answer["usage"]["total_tokens"]
            if requests > self.limits[0] or tokens > self.limits[1]:
                self.refused += 1
                return fault(429, "over the limit")
            self.events.append((now, answer["usage"]["total_tokens"]))
        return answer


def test_the_servers_limits_are_kept_with_32_tasks(make_plan: MakePlan, tmp_path: Path) -> None:
    period_s = 2.0
    for name, requests, tokens in (("requests", 40, 10**9), ("tokens", 10**6, 30_000)):
        limiter = Limiter(requests, tokens, period_s)
        limits = RateLimits(
            requests=requests if name == "requests" else None,
            tokens=tokens if name == "tokens" else None,
            period_s=period_s * 2,  # what is sent evenly does not arrive evenly on a busy machine
        )
        plan = many(make_plan(), 130)
        with ScriptedServer(limiter) as server:
            summary = run(plan, server.url, tmp_path / name, POLICY, limits)
            spread_s = server.seen[-1].at_s - server.seen[0].at_s
        assert summary.is_complete
        assert limiter.refused == 0, name
        # And they are made use of: it is not one call at a time.
        used = 130 / requests if name == "requests" else summary.tokens / tokens
        assert spread_s <= 20 * used * period_s, name


def test_a_run_keeps_conversations_of_calls_that_failed(
    make_plan: MakePlan, tmp_path: Path
) -> None:
    policy = replace(POLICY, attempts=2)
    with ScriptedServer(lambda _: fault(503, "down for maintenance")) as server:
        summary = run(many(make_plan(), 4), server.url, tmp_path, policy)
    assert (summary.failed, summary.finished) == (4, 0)
    for number in range(4):
        document = json.loads((tmp_path / "conversations" / f"t{number}.0.json").read_text())
        assert document["state"] == "failed"
        assert "down for maintenance" in document["problem"]
        assert document["messages"][0]["role"] == "user"
        assert document["calls"][0]["attempts"] == 2
