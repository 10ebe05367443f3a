"""The contract of desktops: they show the screen, perform actions, and return the file at the end.

A desktop reports only facts. The verdict on an episode is decided by the checker of its task, from
the file that the episode leaves. An exception (:class:`judge.errors.SandboxError`) means that the
desktop broke; this is never the fault of the model or the person who works on it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import Any, Protocol, Self

from judge.core.limits import MIB

HOME = "/home/user"
"""The folder of a task's files on a desktop, as in the published suites."""


class Signal(enum.StrEnum):
    """A word with which a model may reply in place of an action, in both languages."""

    WAIT = "WAIT"
    FAIL = "FAIL"
    """The task cannot be done."""
    DONE = "DONE"


@dataclass(frozen=True, slots=True)
class Action:
    """One action; exactly one of the three is given.

    Attributes:
        code: Python code.
        call: an action of computer_13: ``{"action_type": "CLICK", …}``.
        signal: a word instead of an action.
    """

    code: str | None = None
    call: Mapping[str, Any] | None = None
    signal: Signal | None = None


@dataclass(frozen=True, slots=True)
class WindowBounds:
    """Position and size of the window of the spreadsheet program, in pixels.

    Attributes:
        x: the left border.
        y: the upper border.
        width: the width of the window.
        height: the height of the window.
    """

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class DesktopOptions:
    """The options of a desktop; all of them are recorded.

    Attributes:
        width: the width of the screen, in pixels.
        height: the height of the screen, in pixels.
        as_published: names of the corrections (see :data:`CORRECTIONS`) that are not applied, to
            get the published behaviour.
        gui_only: whether actions may only use mouse and keyboard.
        window: position and size of the window; None for the whole screen.
        clutter: how many other windows are open.
        action_s: time limit of an action, in seconds.
        memory_bytes: memory limit of the whole desktop.
    """

    width: int = 1920
    height: int = 1080
    as_published: frozenset[str] = frozenset()
    gui_only: bool = False
    window: WindowBounds | None = None
    clutter: int = 0
    action_s: float = 60.0
    memory_bytes: int = 1536 * MIB


CORRECTIONS: Mapping[str, str] = MappingProxyType(
    {
        "positions": "positions of everything that the program draws itself are measured",
        "hit-tests": "cells are found by hit tests, which hidden rows do not stop",
        "menus": "closed menus and the second, empty menu bar are left out of the tree",
        "order": "the active window comes first, and hidden elements are left out",
        "held-clicks": "a mouse button is held for a moment",
        "held-keys": "a held key does not repeat",
        "typing": "text is typed by keycode, so that every character arrives",
        "settling": "an action ends when the desktop has settled, not after a fixed time",
        "titles": "all dashes in window names are the same",
        "dialogs": "no dialogs about formats, tips, recovery or news appear",
        "sheet-tabs": "the table of the tree has the tabs of sheets",
        "blank-cells": "the table of the tree has no empty cells far from all content",
        "code-blocks": "code blocks are not cut at every semicolon",
    }
)
"""The corrections of the published desktops: name -> description."""


@dataclass(frozen=True, slots=True)
class DesktopTask:
    """The files with which a desktop is opened, and the file that it returns.

    Attributes:
        files: absolute path on the desktop -> content.
        opened: path of the file that the spreadsheet program opens.
        collected: path of the file that is collected at the end. If the path ends with a slash, it
            is a folder, which is collected as one zip.
    """

    files: Mapping[str, bytes]
    opened: str
    collected: str


@dataclass(frozen=True, slots=True)
class Element:
    """A node of the accessibility tree.

    Attributes:
        role: its role, such as ``push-button`` or ``table-cell``.
        name: its name; for a cell, the address.
        text: its text; for a cell, the text that it shows.
        x: the left border on the screen, in pixels; None if it has no position.
        y: the upper border.
        width: its width, in pixels.
        height: its height, in pixels.
        states: its states, such as ``enabled``, ``focused``, ``selected``.
        parent: number of its parent within the tree; None for a root.
        value: the value of a slider or similar element; empty if there is none.
    """

    role: str
    name: str
    text: str = ""
    x: int | None = None
    y: int | None = None
    width: int | None = None
    height: int | None = None
    states: frozenset[str] = frozenset()
    parent: int | None = None
    value: str = ""

    @property
    def centre(self) -> tuple[int, int] | None:
        """The centre of the element on the screen; None if it has no position."""
        if self.x is None or self.y is None or self.width is None or self.height is None:
            return None
        return self.x + self.width // 2, self.y + self.height // 2


@dataclass(frozen=True, slots=True)
class Observation:
    """The state of a desktop at one moment.

    Attributes:
        screenshot: PNG with the cursor, and with any requested marks; None if no screenshot was
            requested.
        elements: the tree in document order; None if it was not requested.
        marks: number on the screenshot (from 1) -> number of the element in ``elements``; None if
            marks were not requested.
        cursor: position of the cursor, in pixels.
        windows: titles of the open windows, the active one first.
        tree_s: seconds that the latest reading of the tree took, which may be from an earlier
            observation.
        screenshot_s: seconds that the screenshot took.
    """

    screenshot: bytes | None
    elements: tuple[Element, ...] | None
    marks: Mapping[int, int] | None = None
    cursor: tuple[int, int] = (0, 0)
    windows: tuple[str, ...] = ()
    tree_s: float = 0.0
    screenshot_s: float = 0.0


@dataclass(frozen=True, slots=True)
class InputEvent:
    """A mouse or keyboard event, from an action or from a person who works on the desktop.

    Attributes:
        kind: ``move``, ``press``, ``release``, ``scroll``, ``key-press``, ``key-release`` or
            ``type``.
        x: horizontal position in pixels; the cursor first moves there, except for keys and text.
        y: vertical position in pixels.
        detail: the button (``left``, ``middle``, ``right``); the clicks of the wheel, above 0 for
            up; the name of the key in PyAutoGUI (``ctrl``, ``enter``, ``f2``, ``a``); or the text.
    """

    kind: str
    x: int
    y: int
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """The screen at one moment, for a person who works on the desktop.

    Attributes:
        digest: a digest of the picture.
        png: the picture without a cursor; None if the caller already has it.
    """

    digest: str
    png: bytes | None


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """The outcome of an action.

    Attributes:
        error: why it failed, for the model or the person: the end of a traceback, a time limit, a
            refusal; empty if it did not fail.
        refused: whether it was refused, because it is not permitted (``gui_only``) or is not an
            action.
        printed: the beginning of the output of its code.
        events: the first 1,000 mouse and keyboard events.
        settled: whether the desktop had settled at the end.
        seconds: how long it took, including the time to settle.
    """

    error: str = ""
    refused: bool = False
    printed: str = ""
    events: tuple[InputEvent, ...] = ()
    settled: bool = True
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CollectedFile:
    """The file that is collected at the end of an episode.

    Attributes:
        data: its bytes; None if there is no file.
        changed: whether it differs from the file with which the desktop was opened.
        problem: why there is no file (missing, a link, a folder, too large); empty if there is one.
    """

    data: bytes | None
    changed: bool
    problem: str = ""


@dataclass(frozen=True, slots=True)
class DesktopInfo:
    """The versions of a desktop, for records.

    Attributes:
        image: digest of everything that is installed on the desktop.
        office: version of the spreadsheet program.
        ready_s: seconds from the start until the desktop had settled.
    """

    image: str = ""
    office: str = ""
    ready_s: float = 0.0


class Desktop(Protocol):
    """An open desktop with the workbook of a task. Calls block; one thread at a time may use it."""

    @property
    def info(self) -> DesktopInfo:
        """The versions of the desktop."""
        ...

    def observe(
        self, *, screenshot: bool = True, tree: bool = True, marks: bool = False
    ) -> Observation:
        """Observes the present state of the desktop.

        Args:
            screenshot: whether to take a screenshot.
            tree: whether to read the accessibility tree.
            marks: whether to number elements on the screenshot; needs screenshot and tree.

        Raises:
            SandboxError: the desktop broke.
        """
        ...

    def perform(self, action: Action) -> ActionOutcome:
        """Performs an action, and waits until the desktop has settled.

        WAIT waits; FAIL and DONE do nothing. If an action fails, no error is raised; the outcome
        says so.

        Raises:
            SandboxError: the desktop broke.
        """
        ...

    def feed(self, events: Sequence[InputEvent]) -> None:
        """Repeats the mouse and keyboard events of a person, in order, without waiting.

        Ignores unknown keys and buttons.

        Raises:
            SandboxError: the desktop broke.
        """
        ...

    def frame(self, digest: str = "") -> Frame:
        """Returns the screen immediately, without the tree.

        Args:
            digest: digest of the frame that the caller has; the same picture is not sent again.

        Raises:
            SandboxError: the desktop broke.
        """
        ...

    def save(self) -> CollectedFile:
        """Saves with ctrl+s as a user would, and collects the file.

        Raises:
            SandboxError: the desktop broke.
        """
        ...

    def collect(self) -> CollectedFile:
        """Collects the file without saving it first.

        Raises:
            SandboxError: the desktop broke.
        """
        ...

    def close(self) -> None:
        """Ends the desktop and everything in it; safe to call twice, and from another thread."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class DesktopHost(Protocol):
    """Opens desktops. Safe to use from several threads; each desktop belongs to one thread."""

    def open(self, task: DesktopTask, options: DesktopOptions) -> Desktop:
        """Opens a fresh desktop, and waits until it has settled with the file open.

        Raises:
            SandboxError: there is no such root, or the desktop does not start.
        """
        ...
