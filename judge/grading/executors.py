"""Where jobs are done: the seam between what is to be judged and who judges it."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Generator, Iterable
from typing import Protocol

from judge.errors import SandboxError
from judge.grading.jobs import Job, JudgedCase, Worker


class Executor(Protocol):
    """Has jobs done, on threads or elsewhere."""

    @property
    def stopped(self) -> SandboxError | None:
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

    Args:
        worker: runs and judges.
        threads: jobs to run at a time.
    """

    def __init__(self, worker: Worker, threads: int) -> None:
        self._worker = worker
        self._threads = max(1, threads)

    @property
    def stopped(self) -> SandboxError | None:
        """Why the work was given up: the sandbox is gone."""
        return self._worker.gone

    def judge(self, jobs: Iterable[Job]) -> Generator[JudgedCase]:
        """Has the jobs done; yields finished cases in the calling thread, as they are done."""
        finished: queue.SimpleQueue[JudgedCase | BaseException | None] = queue.SimpleQueue()
        waiting, taking = iter(jobs), threading.Lock()
        worker = self._worker

        def work() -> None:
            try:
                while not worker.stop.is_set():
                    with taking:
                        job = next(waiting, None)
                    if job is None:
                        break
                    worker.run(job, finished.put)
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
