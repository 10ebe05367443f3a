from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from judge.errors import SandboxError
from judge.sandbox.pool import Pool


class Place:
    def __init__(self, number: int) -> None:
        self.number = number
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


class Maker:
    """Makes numbered objects; waits for ``gate``, and fails as often as ``failures`` says."""

    def __init__(self) -> None:
        self.made: list[Place] = []
        self.gate = threading.Event()
        self.gate.set()
        self.failures: list[Exception] = []
        self._lock = threading.Lock()

    def __call__(self) -> Place:
        self.gate.wait(60)
        with self._lock:
            if self.failures:
                raise self.failures.pop(0)
            place = Place(len(self.made))
            self.made.append(place)
            return place


@contextmanager
def pool_of(maker: Maker, size: int) -> Iterator[Pool[Place]]:
    pool = Pool(maker, size)
    try:
        yield pool
    finally:
        pool.close()


def until(condition: object) -> None:
    assert callable(condition)
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_nothing_is_made_before_the_first_is_taken() -> None:
    maker = Maker()
    with pool_of(maker, 3):
        time.sleep(0.05)
        assert maker.made == []


def test_the_requested_number_is_kept_ready() -> None:
    maker = Maker()
    with pool_of(maker, 3) as pool:
        pool.take()
        until(lambda: len(maker.made) == 4)
        time.sleep(0.05)
        assert len(maker.made) == 4
        pool.take()
        until(lambda: len(maker.made) == 5)
    assert sum(place.closed for place in maker.made) == 3  # those taken are the takers'


def test_each_object_is_taken_once() -> None:
    maker = Maker()
    with pool_of(maker, 2) as pool:
        assert len({pool.take().number for _ in range(20)}) == 20


def test_what_is_given_back_comes_first() -> None:
    maker = Maker()
    with pool_of(maker, 2) as pool:
        first = pool.take()
        pool.give_back(first)
        assert pool.take() is first


def test_what_is_discarded_is_closed_in_the_background() -> None:
    maker = Maker()
    with pool_of(maker, 1) as pool:
        place = pool.take()
        pool.discard(place)
        until(lambda: place.closed == 1)


def test_a_failure_reaches_the_taker_and_the_next_try_is_fresh() -> None:
    maker = Maker()
    maker.failures = [SandboxError("no daemon"), ValueError("a fault of ours")]
    with pool_of(maker, 1) as pool:
        with pytest.raises(SandboxError, match="no daemon"):
            pool.take()
        with pytest.raises(SandboxError, match="a fault of ours"):
            pool.take()
        assert pool.take().closed == 0


def test_close_ends_everything_and_wakes_waiting_threads() -> None:
    maker = Maker()
    pool = Pool(maker, 1)
    taken = pool.take()
    until(lambda: len(maker.made) == 2)
    pool.take()
    maker.gate.clear()
    errors: list[SandboxError] = []

    def wait() -> None:
        try:
            while True:
                pool.take()
        except SandboxError as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    closing = threading.Thread(target=pool.close)
    time.sleep(0.05)
    closing.start()
    maker.gate.set()
    closing.join(60)
    waiting.join(60)
    assert [error.message for error in errors] == ["the sandbox was closed"]
    pool.close()
    pool.discard(taken)
    assert taken.closed == 1
    with pytest.raises(SandboxError):
        pool.take()
    late = Place(99)
    pool.give_back(late)
    assert late.closed == 1


def test_an_object_that_cannot_be_closed_does_not_stop_the_others() -> None:
    class Stuck(Place):
        def close(self) -> None:
            super().close()
            raise SandboxError("the daemon is gone")

    pool: Pool[Place] = Pool(lambda: Stuck(0), 1)
    pool.take()
    places = [Stuck(1), Stuck(2), Place(3)]
    for place in places:
        pool.give_back(place)
    pool.close()
    assert [place.closed for place in places] == [1, 1, 1]


def test_objects_in_use_count_if_they_are_reusable() -> None:
    maker = Maker()
    pool = Pool(maker, 2, reusable=lambda: True)
    try:
        taken = [pool.take(), pool.take()]
        time.sleep(0.05)
        assert len(maker.made) == 2  # none is prepared that nobody would take
        pool.discard(taken.pop())
        until(
            lambda: len(maker.made) == 3
        )  # one that was used up is replaced before it is asked for
        kept = taken.pop()
        pool.give_back(kept)
        assert [pool.take().number, pool.take().number] == [kept.number, 2]
        time.sleep(0.05)
        assert len(maker.made) == 3
    finally:
        pool.close()


def test_one_more_is_made_for_a_waiting_thread() -> None:
    maker = Maker()
    pool = Pool(maker, 1, reusable=lambda: True)
    try:
        assert [pool.take().number for _ in range(3)] == [0, 1, 2]
    finally:
        pool.close()
