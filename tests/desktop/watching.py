"""Helpers that read what a desktop shows."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from judge.desktop.contract import Desktop, Element

HOLDING = """
import time
pyautogui.keyDown('q')
time.sleep(1.5)
pyautogui.keyUp('q')
pyautogui.press('enter')
"""
"""Holds a key for longer than the time after which a screen repeats it."""

_MAX_S = 300.0
_BETWEEN_S = 0.2


def until(there: Callable[[], bool]) -> None:
    """Waits until a condition is true, which may take long on a busy machine."""
    end = time.monotonic() + _MAX_S
    while not there():
        assert time.monotonic() < end, "it did not come"
        time.sleep(_BETWEEN_S)


def windows_of(desktop: Desktop) -> tuple[str, ...]:
    """Titles of the open windows, the active one first."""
    return desktop.observe(screenshot=False, tree=False).windows


def cells_of_frames(elements: Sequence[Element]) -> dict[str, list[Element]]:
    """Maps the title of each document window, in tree order, to its cells that have a position."""
    found: dict[str, list[Element]] = {}
    for each in elements:
        above: Element | None = each
        while above is not None and above.role != "frame":
            above = None if above.parent is None else elements[above.parent]
        if above is not None and "LibreOffice Calc" in above.name:
            cells = found.setdefault(above.name, [])
            if each.role == "table-cell" and each.x is not None:
                cells.append(each)
    return found


def within(area: Sequence[Element], cells: Sequence[Element]) -> list[str]:
    """Returns the names of the cells that overlap other cells."""
    spots = [spot for each in area if (spot := each.centre) is not None]
    (left, right), (top, bottom) = ((min(ends), max(ends)) for ends in zip(*spots, strict=True))
    return [
        each.name
        for each in cells
        if each.centre and left <= each.centre[0] <= right and top <= each.centre[1] <= bottom
    ]


def process_named(name: str) -> int:
    """A descendant of this process."""
    parents, names = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                before, _, after = (entry / "stat").read_text(errors="replace").rpartition(")")
            except OSError:
                continue
            parents[int(entry.name)] = int(after.split()[1])
            names[int(entry.name)] = before.partition("(")[2]
    for number, found in names.items():
        above = number
        while above in parents and above != os.getpid():
            above = parents[above]
        if found == name and above == os.getpid():
            return number
    raise LookupError(name)
