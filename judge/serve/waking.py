"""Wakes those who wait for something to change: one query for all, at most five times a second."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Iterator

import sqlalchemy as sa
from starlette.concurrency import run_in_threadpool

from judge.errors import JudgeError
from judge.serve.problems import Problem
from judge.serve.store import tables as t
from judge.serve.store.database import Database

LOOK_S = 0.2
MOST_WAITS = 200
"""Long polls and streams of one process at a time."""

MOST_WAITS_OF_ONE = 4
"""Long polls and streams of one token, or of one address without token."""


class Waker:
    """What one process waits with. All methods belong to the event loop's thread.

    Args:
        database: where events are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changes = database.changes()
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self._task: asyncio.Task[None] | None = None
        self._seq: int | None = None
        self._counts: defaultdict[str, int] = defaultdict(int)

    @contextlib.contextmanager
    def seat(self, who: str) -> Iterator[None]:
        """The right to wait, of which nobody has too many.

        Raises:
            Problem: 429.
        """
        if self._counts[who] >= MOST_WAITS_OF_ONE or sum(self._counts.values()) >= MOST_WAITS:
            raise Problem(
                "too-many-requests", "Too many requests wait already.", headers={"Retry-After": "5"}
            )
        self._counts[who] += 1
        try:
            yield
        finally:
            self._counts[who] -= 1
            if not self._counts[who]:
                del self._counts[who]

    @contextlib.contextmanager
    def listening(self, key: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever something happens to an object; look after it was made.

        Args:
            key: id of the object.
        """
        event = asyncio.Event()
        self._waiting[key].add(event)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._look())
        try:
            yield event
        finally:
            self._waiting[key].discard(event)
            if not self._waiting[key]:
                del self._waiting[key]

    async def _look(self) -> None:
        """Looks as long as somebody waits."""
        self._seq = None
        while self._waiting:
            try:
                objects = await run_in_threadpool(self._news)
            except JudgeError:
                objects = set(self._waiting)  # they look themselves, and say so
            for key in objects & set(self._waiting):
                for event in self._waiting[key]:
                    event.set()
            await asyncio.sleep(LOOK_S)

    def _news(self) -> set[str]:
        happened = self._changes.happened()
        if self._seq is None:
            self._seq = self._database.last_event()
            return set(self._waiting)  # something may have happened before
        if not happened:
            return set()
        query = sa.select(t.event.c.seq, t.event.c.object, t.event.c.detail).where(
            t.event.c.seq > self._seq
        )
        objects = set()
        with self._database.reading() as connection:
            for row in connection.execute(query.order_by(t.event.c.seq).limit(5000)):
                self._seq = row.seq
                objects.add(row.object)
                objects.update(str(value) for value in (row.detail or {}).values())
        return objects


async def wait_for(event: asyncio.Event, seconds: float) -> bool:
    """Whether an event came within a time; it is cleared."""
    try:
        await asyncio.wait_for(event.wait(), max(0.0, seconds))
    except TimeoutError:
        return False
    event.clear()
    return True
