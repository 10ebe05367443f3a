"""A desktop that plays a script: for tests of code that uses one."""

from __future__ import annotations

import hashlib
import struct
import threading
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from judge.closable import Closable
from judge.desktop.contract import (
    Action,
    ActionOutcome,
    CollectedFile,
    DesktopInfo,
    DesktopOptions,
    DesktopTask,
    Element,
    Frame,
    InputEvent,
    Observation,
)

Seen = Observation | BaseException
Outcome = ActionOutcome | BaseException | Callable[[Action], ActionOutcome]
Left = bytes | CollectedFile | BaseException | None

WIDTH, HEIGHT = 96, 54


def tiny_png(number: int, width: int = WIDTH, height: int = HEIGHT) -> bytes:
    """Makes a PNG of one colour that depends on a number."""
    colour = hashlib.sha256(str(number).encode()).digest()[:3]
    rows = (b"\0" + colour * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


ELEMENTS = (
    Element("frame", "input.xlsx - LibreOffice Calc", "", 0, 0, WIDTH, HEIGHT),
    Element("menu", "File", "", 1, 1, 8, 4, frozenset({"enabled", "showing", "visible"}), parent=0),
    Element(
        "push-button", "Save", "", 10, 1, 6, 4, frozenset({"enabled", "showing", "visible"}), 0
    ),
    Element("filler", "", "", 0, 6, WIDTH, 40, frozenset({"showing", "visible"}), 0),
    Element(
        "table-cell", "A1", "Total", 0, 8, 20, 6, frozenset({"enabled", "showing", "visible"}), 3
    ),
)
"""A small tree, which is shown if a script has no observations."""


@dataclass(frozen=True)
class DesktopScript:
    """What a desktop shows and does.

    Attributes:
        observations: one for each look; an exception is raised. After the last, pictures of a
            colour of their own after each action, and the tree :data:`ELEMENTS`.
        outcomes: one for each action, or functions of it; an exception is raised. After the last,
            every action is performed, and is a click in the middle.
        left: the file that is collected: bytes; None for none; an exception is raised.
        info: what the desktop is.
    """

    observations: tuple[Seen, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    left: Left = None
    info: DesktopInfo = field(
        default_factory=lambda: DesktopInfo(image="scripted", office="none", ready_s=0.5)
    )


class ScriptedDesktop(Closable):
    """Plays a script.

    Args:
        script: what it shows and does.
        task: what it is opened for.
        options: what it is like.

    Attributes:
        task: as given.
        options: as given.
        performed: the actions so far.
        fed: what a person did so far.
        looks: what was requested, for each look: screenshot, tree, marks.
        saved: how often it was saved.
        closed: whether it was closed.
    """

    def __init__(self, script: DesktopScript, task: DesktopTask, options: DesktopOptions) -> None:
        self._script = script
        self._observations = iter(script.observations)
        self._outcomes = iter(script.outcomes)
        self.task = task
        self.options = options
        self.performed: list[Action] = []
        self.fed: list[InputEvent] = []
        self.looks: list[tuple[bool, bool, bool]] = []
        self.saved = 0
        self.closed = False

    @property
    def info(self) -> DesktopInfo:
        """The versions that the script gives."""
        return self._script.info

    def observe(
        self, *, screenshot: bool = True, tree: bool = True, marks: bool = False
    ) -> Observation:
        """Returns the next observation, with the requested parts."""
        self._check_open()
        self.looks.append((screenshot, tree, marks))
        seen = next(self._observations, None)
        if seen is None:
            seen = Observation(
                tiny_png(len(self.performed)), ELEMENTS, windows=("input.xlsx - LibreOffice Calc",)
            )
        if isinstance(seen, BaseException):
            raise seen
        if marks and seen.marks is None:
            placed = [n for n, each in enumerate(seen.elements or ()) if _can_be_marked(each)]
            seen = replace(seen, marks=dict(enumerate(placed, start=1)))
        return replace(
            seen,
            screenshot=seen.screenshot if screenshot else None,
            elements=seen.elements if tree else None,
            marks=seen.marks if marks else None,
        )

    def perform(self, action: Action) -> ActionOutcome:
        """Returns the next outcome."""
        self._check_open()
        self.performed.append(action)
        outcome = next(self._outcomes, None)
        if outcome is None:
            x, y = WIDTH // 2, HEIGHT // 2
            events = (InputEvent("press", x, y, "left"), InputEvent("release", x, y, "left"))
            return ActionOutcome(events=() if action.signal else events, seconds=0.25)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome if isinstance(outcome, ActionOutcome) else outcome(action)

    def feed(self, events: Sequence[InputEvent]) -> None:
        """Records the events."""
        self._check_open()
        self.fed.extend(events)

    def frame(self, known: str = "") -> Frame:
        """Returns a different picture after each action and each event of a person."""
        self._check_open()
        number = len(self.performed) + len(self.fed)
        digest = str(number)
        return Frame(digest, None if digest == known else tiny_png(number))

    def save(self) -> CollectedFile:
        """Returns the file that the script leaves."""
        self.saved += 1
        return self.collect()

    def collect(self) -> CollectedFile:
        """Returns the same file."""
        self._check_open()
        left = self._script.left
        if isinstance(left, BaseException):
            raise left
        if isinstance(left, CollectedFile):
            return left
        if left is None:
            return CollectedFile(None, changed=False, problem=f"{self.task.collected} is missing")
        return CollectedFile(left, changed=left != self.task.files.get(self.task.collected))

    def close(self) -> None:
        """Records that it was closed."""
        self.closed = True

    def _check_open(self) -> None:
        assert not self.closed, "a closed desktop is used"


def _can_be_marked(element: Element) -> bool:
    return element.centre is not None and "enabled" in element.states


Opening = DesktopScript | BaseException | Callable[[DesktopTask], DesktopScript]


class ScriptedDesktopHost:
    """Opens a desktop for each script; opening one past the last is an error.

    Args:
        scripts: one for each desktop, or functions of what it is opened for; an exception is
            raised.
        always: played where there are no more scripts.

    Attributes:
        desktops: those that were opened, in order.
    """

    def __init__(
        self, scripts: Iterable[Opening] = (), *, always: DesktopScript | None = None
    ) -> None:
        self._scripts = iter(scripts)
        self._always = always
        self._lock = threading.Lock()
        self.desktops: list[ScriptedDesktop] = []

    def open(self, task: DesktopTask, options: DesktopOptions) -> ScriptedDesktop:
        """Opens the next desktop."""
        assert task.opened in task.files, "a desktop opens one of its files"
        with self._lock:
            script = next(self._scripts, self._always)
            if script is None:
                raise AssertionError(f"desktop {len(self.desktops) + 1} is past the script's end")
            if isinstance(script, BaseException):
                raise script
            if not isinstance(script, DesktopScript):
                script = script(task)
            desktop = ScriptedDesktop(script, task, options)
            self.desktops.append(desktop)
        return desktop
