"""Arranges windows for the start of an episode: the task's window, and others behind it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time

from judge.desktop.driver import settings
from judge.desktop.driver.processes import Processes
from judge.desktop.driver.screen import Screen
from judge.sandbox.warden import files

Place = tuple[int, int, int, int]

_PLACED_S = 5.0
_BETWEEN_S = 0.1
_HELD = 3
"""How many times in a row a window has to be in the right position."""
_OPENED_S = 5.0
_CLUTTER = ("Notes", "Budget", "Contacts", "Inventory", "Schedule", "Orders", "Prices", "Draft")


class Layout:
    """Places the windows of a desktop.

    Args:
        screen: the screen of the desktop.
        processes: the processes of the desktop.
    """

    def __init__(self, screen: Screen, processes: Processes) -> None:
        self._screen = screen
        self._processes = processes

    def arrange(self, number: int, place: Place | None) -> None:
        """Moves a window to its position, or makes it fill the screen, and gives it the keyboard.

        Raises:
            BrokenError: the desktop broke.
        """
        if place is None:
            self._screen.maximise(number)
        else:
            self.put(number, place)
        self._screen.activate(number)

    def put(self, number: int, place: Place) -> None:
        """Moves a window to a position, as nearly as its program and the window manager permit.

        A program that has just opened a window may move it once more, and the size of the borders
        is only known once they are drawn. So the position is requested until it stays.

        Raises:
            BrokenError: the desktop broke.
        """
        end = time.monotonic() + _PLACED_S
        held = 0
        while held < _HELD and time.monotonic() < end:
            if self._screen.outline(number) == place:
                held += 1
            else:
                held = 0
                self._screen.place(number, *place)
            self._processes.check()
            time.sleep(_BETWEEN_S)

    def add_clutter(self, count: int, main: int, size: tuple[int, int], end: float) -> None:
        """Opens other documents behind the document of the task.

        Args:
            count: how many documents.
            main: number of the task's window.
            size: the size of the screen.
            end: the time until which all of them must be open.

        Raises:
            BrokenError: they are not open in time.
        """
        folder = f"{settings.RUNTIME}/other"
        os.makedirs(folder, exist_ok=True)
        for title in _CLUTTER[:count]:
            path = f"{folder}/{title}.csv"
            rows = "".join(f"{title} {row},{row * 7}\n" for row in range(1, 21))
            files.place(path, rows.encode())
            self._open(path, end)
        for number, window in enumerate(self._screen.windows()):
            if window.number != main:
                offset = 60 + 40 * number
                self.put(window.number, (offset, offset, size[0] * 2 // 3, size[1] * 2 // 3))
        self._screen.activate(main)

    def _open(self, path: str, end: float) -> None:
        done = subprocess.Popen(
            [*settings.office_command(path), "--infilter=CSV:44,34,76,1"],
            env=self._processes.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        name = os.path.basename(path)
        self._processes.wait_for(
            f"the window of {name}",
            lambda: any(name in window.title for window in self._screen.windows()),
            max(1.0, end - time.monotonic()),
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            done.wait(_OPENED_S)  # the running office has opened it
