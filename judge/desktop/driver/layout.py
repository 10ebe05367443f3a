"""How windows lie when an episode begins: the task's where it is wanted, others behind it."""

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
"""So often in a row a window has to be found in its place."""
_OPENED_S = 5.0
_CLUTTER = ("Notes", "Budget", "Contacts", "Inventory", "Schedule", "Orders", "Prices", "Draft")


class Layout:
    """Places the windows of a desktop.

    Args:
        screen: of the desktop.
        processes: of the desktop.
    """

    def __init__(self, screen: Screen, processes: Processes) -> None:
        self._screen = screen
        self._processes = processes

    def arrange(self, number: int, place: Place | None) -> None:
        """Gives a window its place, or the whole screen, and the keyboard.

        Raises:
            BrokenError: the desktop broke.
        """
        if place is None:
            self._screen.maximise(number)
        else:
            self.put(number, place)
        self._screen.activate(number)

    def put(self, number: int, place: Place) -> None:
        """Gives a window a place, as near to it as its program and the window manager permit.

        A program that has just opened a window may give it a place of its own once more, and what
        the borders take is known only once it has them: the place is requested until it holds.

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
        """Opens other documents behind the task's.

        Args:
            count: how many.
            main: number of the task's window.
            size: of the screen.
            end: until when all of them have to be there.

        Raises:
            BrokenError: they are not.
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
            lambda: any(name in each.title for each in self._screen.windows()),
            max(1.0, end - time.monotonic()),
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            done.wait(_OPENED_S)  # the office that runs already has opened it
