"""Ends a command cleanly on a signal: everything it opened is closed, and no file is half written.

By default, SIGTERM and SIGHUP end Python immediately and leave containers, temporary folders and
half-written files behind. Here they end a command as Ctrl-C does, by an exception in its main
thread.

The exception is raised at whatever point that thread has reached. During an import, Python may
replace it with another exception; :func:`ending_in` therefore searches an exception's causes for
the signal. While an object is being destroyed, or a callback of a weak reference runs, Python only
prints the exception and continues; the signal is then sent again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_AGAIN_S = 0.05


class EndSignal(KeyboardInterrupt):
    """A signal asked the process to end.

    Args:
        number: the number of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.name = signal.Signals(number).name
        self.exit_code = 128 + number


@contextlib.contextmanager
def ending_by_signals() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP raise :class:`EndSignal`, unless they are ignored (``nohup``)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    hook = sys.unraisablehook
    sys.unraisablehook = lambda lost: _take_lost(lost, hook)
    before = {}
    for number in _ENDING:
        if signal.getsignal(number) == signal.SIG_DFL:
            before[number] = signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook


def ending_in(error: BaseException) -> KeyboardInterrupt | None:
    """Returns the signal or Ctrl-C that an exception stands for or has as a cause, or None."""
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        process = todo.pop()
        if isinstance(process, KeyboardInterrupt):
            return process
        if process is not None and id(process) not in seen:
            seen.add(id(process))
            todo += [process.__cause__, process.__context__]
    return None


def _take_lost(lost: sys.UnraisableHookArgs, hook: Callable[[Any], object]) -> None:
    """Sends a signal again if its exception was lost; other lost exceptions are printed."""
    error = lost.exc_value
    if not isinstance(error, KeyboardInterrupt):
        hook(lost)
        return
    number = error.exit_code - 128 if isinstance(error, EndSignal) else signal.SIGINT
    again = threading.Timer(_AGAIN_S, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()


def run_until_signal(main: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine like :func:`asyncio.run`; SIGTERM and SIGHUP cancel it, as Ctrl-C does.

    An exception raised by a signal handler could hit the event loop at any point. A task that is
    cancelled ends in an orderly way and saves its results so far.

    Raises:
        EndSignal: SIGTERM or SIGHUP was received.
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    import asyncio  # noqa: PLC0415  half of the start of a command that needs no loop

    received: list[int] = []

    async def run() -> T | None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def end(number: int) -> None:
            received.append(number)
            task.cancel()

        with _handled(loop, end):
            try:
                return await main
            except asyncio.CancelledError:
                if not received:
                    raise
                return None

    result = asyncio.run(run())
    if received:
        raise EndSignal(received[0])
    return cast("T", result)


@contextlib.contextmanager
def _handled(loop: asyncio.AbstractEventLoop, end: Callable[[int], None]) -> Iterator[None]:
    """Lets the loop handle the signals of :func:`ending_by_signals`, then restores the handlers."""
    handlers = {number: signal.getsignal(number) for number in _ENDING}
    taken = [number for number, handler in handlers.items() if handler is _end]
    for number in taken:
        loop.add_signal_handler(number, end, number)
    try:
        yield
    finally:
        for number in taken:
            loop.remove_signal_handler(number)
            signal.signal(number, handlers[number])


def _end(number: int, frame: FrameType | None) -> None:
    del frame
    raise EndSignal(number)
