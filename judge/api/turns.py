"""Turns: how many calls are at work at a time, and how they end when everything is closed."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

from judge.errors import UsageError


class Turns:
    """Lets so many calls work at a time; safe to use from several threads.

    Args:
        at_once: how many calls work at a time.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._changed = threading.Condition()
        self._at_work: dict[threading.Event, int] = {}
        self._closed = False
        self._process = os.getpid()

    @property
    def is_forked(self) -> bool:
        """Whether this process is a fork of the one that they belong to."""
        return os.getpid() != self._process

    @contextlib.contextmanager
    def take(self, stop: threading.Event) -> Iterator[None]:
        """Waits for a turn, and ends it.

        Args:
            stop: is set if everything is closed meanwhile; a call that is not finished ends early.

        Raises:
            UsageError: everything is closed, or belongs to another process.
        """
        self.raise_if_closed()
        with self._changed:
            while not self._closed and len(self._at_work) >= self._at_once:
                self._changed.wait()
            self.raise_if_closed()
            self._at_work[stop] = threading.get_ident()
        try:
            yield
        finally:
            with self._changed:
                del self._at_work[stop]
                self._changed.notify_all()

    def raise_if_closed(self) -> None:
        """Raises if there are no more turns.

        Raises:
            UsageError: everything is closed, or belongs to another process: two that talk to one
                sandbox would get each other's verdicts.
        """
        if self.is_forked:
            raise UsageError(
                f"this judge was opened by the process {self._process}, and this is a fork of it",
                hint="Open one in each process, after the process has begun.",
            )
        if self._closed:
            raise UsageError("this judge is closed", hint="Open another: judge.Judge(…).")

    def close(self) -> None:
        """Gives no more turns, has those end that are taken, and waits for them."""
        with self._changed:
            self._closed = True
            for stop in self._at_work:
                stop.set()
            self._changed.notify_all()
            # A call of this very thread (a signal handler closes) would be waited for in vain.
            here = threading.get_ident()
            while any(thread != here for thread in self._at_work.values()):
                self._changed.wait()
