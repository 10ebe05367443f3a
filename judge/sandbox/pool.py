"""Prepares objects that are slow to start in advance, so that nothing waits for them.

The pool starts to fill when the first object is taken. An object that is taken belongs to the
caller. When done, the caller passes it to :meth:`Pool.give_back` if others may use it, and
otherwise to :meth:`Pool.discard`, which ends it in the background.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from judge.errors import SandboxError


class Closable(Protocol):
    """An object that a pool can hold."""

    def close(self) -> None:
        """Destroys the object; safe to call twice."""
        ...


T = TypeVar("T", bound=Closable)


class Pool(Generic[T]):
    """A few prepared objects, such as sandboxes with a warm interpreter.

    Args:
        prepare: makes an object that is ready to use; may raise SandboxError.
        size: how many objects are kept ready.
        reusable: whether objects are usually given back. Objects in use then count as ready, and
            more objects are prepared only for callers that wait.
    """

    def __init__(
        self, prepare: Callable[[], T], size: int, *, reusable: Callable[[], bool] = lambda: False
    ) -> None:
        self._prepare = prepare
        self._size = size
        self._reusable = reusable
        self._in_use = 0
        self._waiting = 0
        self._changed = threading.Condition()
        self._ready: deque[T] = deque()
        self._done: deque[T] = deque()
        self._error: SandboxError | None = None
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._preparing = 0

    def take(self) -> T:
        """Takes a prepared object; waits if no object is ready.

        Raises:
            SandboxError: no object can be made.
        """
        with self._changed:
            self._start()
            self._waiting += 1
            self._changed.notify_all()
            try:
                while not self._ready:
                    self._check()
                    self._changed.wait()
            finally:
                self._waiting -= 1
            item = self._ready.popleft()
            self._in_use += 1
            self._changed.notify_all()
            return item

    def _check(self) -> None:
        if self._closed:
            raise SandboxError("the sandbox was closed")
        if self._error is not None:
            error, self._error = self._error, None
            self._changed.notify_all()
            raise error

    def give_back(self, item: T) -> None:
        """Takes back an object that is as good as new, and lends it next."""
        with self._changed:
            self._in_use -= 1
            if not self._closed:
                self._ready.appendleft(item)
                self._changed.notify_all()
                return
        item.close()

    def discard(self, item: T) -> None:
        """Destroys an object in the background."""
        with self._changed:
            self._in_use -= 1
            if not self._closed:
                self._done.append(item)
                self._changed.notify_all()
                return
        item.close()

    def close(self) -> None:
        """Destroys everything; safe to call twice."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        while self._ready or self._done:
            # an object that cannot be destroyed (its daemon is down) must not stop the others
            with contextlib.suppress(SandboxError):
                (self._ready or self._done).popleft().close()

    def _start(self) -> None:
        if not self._threads and not self._closed:
            jobs = [self._fill] * min(2, self._size) + [self._empty]
            self._threads = [threading.Thread(target=job, daemon=True) for job in jobs]
            for thread in self._threads:
                thread.start()

    def _fill(self) -> None:
        while True:
            with self._changed:
                while not self._closed and (self._error is not None or self._has_enough()):
                    self._changed.wait()
                if self._closed:
                    return
                self._preparing += 1
            item, error = self._try()
            with self._changed:
                self._preparing -= 1
                self._error = error
                if item is not None:
                    self._ready.append(item)
                self._changed.notify_all()

    def _has_enough(self) -> bool:
        in_use = self._in_use if self._reusable() else 0
        return len(self._ready) + self._preparing >= max(self._size - in_use, self._waiting)

    def _try(self) -> tuple[T | None, SandboxError | None]:
        try:
            return self._prepare(), None
        except SandboxError as error:
            return None, error
        except Exception as error:  # noqa: BLE001 - any exception is passed to the caller
            return None, SandboxError(f"no sandbox could be prepared: {error!r}")

    def _empty(self) -> None:
        while True:
            with self._changed:
                while not self._closed and not self._done:
                    self._changed.wait()
                if self._closed:
                    return
                item = self._done.popleft()
            with contextlib.suppress(SandboxError):
                item.close()
