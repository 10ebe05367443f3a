"""Where jobs are done: the seam between what is to be judged and who judges it."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from judge.errors import JudgeError
from judge.grading.jobs import CaseJob, Job, JudgedCase, Worker


class Executor(Protocol):
    """Has jobs done, on threads or elsewhere."""

    @property
    def stopped(self) -> JudgeError | None:
        """Why it gave up, where it did."""
        ...

    def judge(self, jobs: Iterable[Job]) -> Generator[JudgedCase]:
        """Has the jobs done; yields finished cases in the calling thread, in any order.

        Closing the iterator early ends the work.

        Args:
            jobs: taken as workers have room for them; the iterable may be advanced in any thread,
                by one at a time.
        """
        ...


class ThreadExecutor:
    """Does jobs on threads of this process.

    The cases of a job are done in order by one thread, in one place of the sandbox; when no job is
    left, threads that are free take over cases that the others have not begun.

    Args:
        worker: runs and judges.
        threads: jobs to run at a time.
    """

    def __init__(self, worker: Worker, threads: int) -> None:
        self._worker = worker
        self._threads = max(1, threads)

    @property
    def stopped(self) -> JudgeError | None:
        """Why the work was given up: the sandbox is gone."""
        return self._worker.gone

    def judge(self, jobs: Iterable[Job]) -> Generator[JudgedCase]:
        """Has the jobs done; yields finished cases in the calling thread, as they are done."""
        finished: queue.SimpleQueue[JudgedCase | BaseException | None] = queue.SimpleQueue()
        shared = _SharedJobs(jobs)
        worker = self._worker

        def work() -> None:
            try:
                while not worker.stop.is_set() and (part := shared.take()) is not None:
                    worker.run(part.job, finished.put, part.cases())
            except BaseException as error:  # noqa: BLE001  handed to the calling thread
                finished.put(error)
            finally:
                finished.put(None)

        threads = [
            threading.Thread(target=work, name=f"judge-worker-{number}", daemon=True)
            for number in range(self._threads)
        ]
        for thread in threads:
            thread.start()
        alive = len(threads)
        try:
            while alive:
                item = finished.get()
                if item is None:
                    alive -= 1
                elif isinstance(item, BaseException):
                    raise item
                else:
                    yield item
        finally:
            worker.stop.set()
            if alive:
                # Interrupted: the sandbox is closed by its owner, which ends what still runs.
                deadline = time.monotonic() + 0.5
                for thread in threads:
                    thread.join(max(0.0, deadline - time.monotonic()))


class _Part:
    """A job, or what is left of it, that several threads may take cases from."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._left = deque(job.cases)

    def __len__(self) -> int:
        return len(self._left)

    def cases(self) -> Iterator[CaseJob]:
        """The cases that nobody else has taken, each taken when it is needed."""
        while True:
            try:
                yield self._left.popleft()
            except IndexError:
                return

    def split(self) -> _Part | None:
        """Its last case as a part of its own; None if nothing is left."""
        try:
            last = self._left.pop()
        except IndexError:
            return None
        return _Part(replace(self.job, cases=(last,)))


class _SharedJobs:
    """Jobs as threads have room for them, then what is left of those that have begun."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._waiting = iter(jobs)
        self._taking = threading.Lock()
        self._begun: list[_Part] = []

    def take(self) -> _Part | None:
        """What a free thread does next; None if everything has begun."""
        with self._taking:
            job = next(self._waiting, None)
            self._begun = [part for part in self._begun if len(part)]
            if job is not None:
                part = _Part(job)
                self._begun.append(part)
                return part
            # The part with the most left will be waited for; another thread may empty it first.
            for part in sorted(self._begun, key=len, reverse=True):
                if (taken := part.split()) is not None:
                    return taken
            return None
