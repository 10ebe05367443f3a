"""Signals that end a command: what it opened is closed, and what it wrote is whole.

Left alone, SIGTERM and SIGHUP end Python at once: containers, temporary folders and half-written
files stay behind. They end a command as Ctrl-C does, by an exception in its main thread.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_ENDING = (signal.SIGTERM, signal.SIGHUP)


class Ended(KeyboardInterrupt):
    """A signal asked the process to end.

    Args:
        number: of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.name = signal.Signals(number).name
        self.exit_code = 128 + number


@contextlib.contextmanager
def ending_by_signals() -> Iterator[None]:
    """Has SIGTERM and SIGHUP raise :class:`Ended`, unless they are ignored (``nohup``)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {}
    for number in _ENDING:
        if signal.getsignal(number) == signal.SIG_DFL:
            before[number] = signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> None:
    del frame
    raise Ended(number)
