"""A whole desktop: starts it with a workbook open, reads it, performs actions, saves the file."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge.desktop.driver import marks, screen, settings, tree
from judge.desktop.driver.acting import ActorPool, Performed
from judge.desktop.driver.bus import Bus
from judge.desktop.driver.layout import Layout
from judge.desktop.driver.nodes import Node, plain_title
from judge.desktop.driver.processes import BrokenError, Processes
from judge.sandbox.warden import files

SETTLE_S = 6.0
_MIN_LOOKS = 4  # on a busy machine, one reading may take seconds
_REST_S = 0.4  # the office updates its tool bars up to 0.3 s after a change
_AWAIT_REST_S = 1.0
_START_S = 90.0
_PART_S = 20.0
_PUBLISHED_PAUSE_S = 2.0
_WAIT_S = 1.0
_SAVED_S = 40.0
_UNCHANGED_S = 1.5
_LOOK_S = 0.05
_HOLD_S = 0.05
_MAX_FILE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Options:
    """See ``judge.desktop.contract.DesktopOptions``."""

    width: int
    height: int
    corrections: frozenset[str]
    gui_only: bool
    window: tuple[int, int, int, int] | None
    clutter: int
    action_s: float


@dataclass(frozen=True, slots=True)
class _Seen:
    """A tree, and what the screen showed before and after it was read.

    Attributes:
        view: digest of what the screen showed.
        nodes: the tree.
        seconds: how long the reading took.
    """

    view: bytes
    nodes: list[Node]
    seconds: float


class DrivenDesktop:
    """A desktop.

    Args:
        options: the options of the desktop.
        modules: source text of the driver's modules, by name.
    """

    def __init__(self, options: Options, modules: Mapping[str, str]) -> None:
        self._options = options
        self._corrections = options.corrections
        os.makedirs(settings.RUNTIME, mode=0o700, exist_ok=True)
        self._processes = Processes(settings.ENVIRONMENT, settings.RUNTIME)
        self._actors = ActorPool(self._processes, modules, options.corrections)
        self._reader: tree.Reader
        self._screen: screen.Screen
        self._opened = self._collected = self._saved = ""
        self._before: bytes | None = None
        self._main = 0
        self._settled: _Seen | None = None

    # starting

    def start(self, placed: Mapping[str, bytes], opened: str, collected: str) -> float:
        """Starts everything, and waits until the workbook is shown and nothing moves.

        Returns:
            How many seconds that took.

        Raises:
            BrokenError: the desktop does not get that far.
        """
        started = time.monotonic()
        for path, content in placed.items():
            files.place(path, content)
        self._opened, self._collected = opened, collected
        self._saved = opened if collected.endswith("/") else collected
        _, _, self._before = files.collect(collected, _MAX_FILE_BYTES)
        settings.write_profile(dialogs="dialogs" not in self._corrections)
        self._start_screen()
        self._start_buses()
        os.environ.update(self._processes.environment)
        self._processes.start("window manager", ["openbox", "--sm-disable"])
        self._start_office(opened, placed.get(opened, b""))
        stem = os.path.basename(opened)
        self._wait_for_window(stem, started)
        layout = Layout(self._screen, self._processes)
        layout.arrange(self._main, self._options.window)
        self._await_cells(started)
        if self._options.window is not None:
            layout.put(self._main, self._options.window)  # the office may have moved it
        if self._options.clutter:
            size = (self._options.width, self._options.height)
            layout.add_clutter(self._options.clutter, self._main, size, started + _START_S)
        self._settle(max(SETTLE_S, started + _START_S - time.monotonic()))
        self._processes.learn_own()
        self._actors.prepare()
        return time.monotonic() - started

    def _start_screen(self) -> None:
        reader, writer = os.pipe()
        try:
            command = settings.screen_command(
                self._options.width,
                self._options.height,
                writer,
                repeats="held-keys" not in self._corrections,
            )
            part = self._processes.start("screen", command, passed=(writer,))
            os.close(writer)
            writer = -1
            number = screen.wait_for_number(reader, _PART_S)
        finally:
            os.close(reader)
            if writer >= 0:
                os.close(writer)
        if number is None:
            raise BrokenError(f"the screen does not start{self._processes.complaint(part)}")
        self._processes.environment["DISPLAY"] = f":{number}"
        self._screen = screen.Screen(f":{number}")

    def _start_buses(self) -> None:
        reader, writer = os.pipe()
        command = ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=1"]
        try:
            self._processes.start("message bus", command, output=writer)
        finally:
            os.close(writer)
        with os.fdopen(reader) as stream:
            address = stream.readline().strip()
        if not address:
            self._processes.check()
            raise BrokenError("the message bus does not start")
        self._processes.environment["DBUS_SESSION_BUS_ADDRESS"] = address
        # Asking for the accessibility bus starts it, so there is never a second one.
        self._reader = tree.Reader(Bus(address), self._corrections)

    def _start_office(self, path: str, content: bytes) -> None:
        self._processes.start(
            "office",
            [*settings.office_command(path), *settings.as_table(path, content)],
            may_end=True,
            again_code=settings.RESTART_EXIT_CODE,
            runs_programs=True,
        )

    def _wait_for_window(self, title: str, started: float) -> None:
        def there() -> bool:
            windows = [window for window in self._screen.windows() if title in window.title]
            if windows:
                self._main = windows[0].number
            return bool(windows)

        try:
            self._processes.wait_for("the window", there, started + _START_S - time.monotonic())
        except BrokenError as error:
            shown = ", ".join(repr(window.title) for window in self._screen.windows()) or "none"
            raise BrokenError(f"{error} ({title!r}; windows: {shown})") from None

    def _await_cells(self, started: float) -> None:
        def there() -> bool:
            return any(node.role == "table-cell" for node in self._read())

        self._processes.wait_for(
            "the sheet", there, max(1.0, started + _START_S - time.monotonic())
        )

    # reading the screen

    def _read(self) -> list[Node]:
        return self._reader.read(lambda: (self._screen.windows(), self._screen.active()))

    def _view(self) -> bytes:
        """Returns a digest of the picture on the screen and of its windows."""
        digest = hashlib.blake2b(self._screen.bare_picture().tobytes(), digest_size=16)
        digest.update(repr((self._screen.windows(), self._screen.active())).encode())
        return digest.digest()

    def _tree(self) -> tuple[list[Node], float]:
        """Returns the tree, and how many seconds it took to read it.

        It is not read again while the screen is the same as when the desktop settled.
        """
        settled, self._settled = self._settled, None
        if settled is not None and settled.view == self._view():
            return settled.nodes, settled.seconds
        started = time.perf_counter()
        return self._read(), time.perf_counter() - started

    def observe(
        self, *, picture: bool, nodes: bool, numbered: bool
    ) -> tuple[dict[str, Any], bytes | None]:
        """Returns what is shown now: facts, and the picture.

        Raises:
            BrokenError: the desktop broke.
        """
        self._processes.check()
        facts: dict[str, Any] = {"tree_s": 0.0, "screenshot_s": 0.0, "elements": None}
        tree_nodes: list[Node] = []
        if nodes or numbered:
            tree_nodes, facts["tree_s"] = self._tree()
        data = None
        if picture or numbered:
            started = time.perf_counter()
            shown = self._screen.picture()
            if numbered:
                drawn = marks.draw_marks(shown, tree_nodes)
                facts["marks"] = [[number, place] for number, place in drawn.items()]
                marks.name_marked(tree_nodes, drawn)
            data = screen.as_png(shown)
            facts["screenshot_s"] = time.perf_counter() - started
        if nodes or numbered:
            facts["elements"] = [node.row() for node in tree_nodes]
        facts["cursor"] = list(self._screen.cursor())
        facts["windows"] = self._titles()
        self._processes.check()
        return facts, data

    def _titles(self) -> list[str]:
        active = self._screen.active()
        windows = sorted(self._screen.windows(), key=lambda window: window.number != active)
        plain = "titles" in self._corrections
        return [plain_title(window.title) if plain else window.title for window in windows][:100]

    # performing actions

    def perform(self, kind: str, what: Any) -> tuple[Performed, bool, float]:
        """Performs an action; returns its outcome, whether the desktop settled, and the seconds.

        Raises:
            BrokenError: the desktop broke.
        """
        self._processes.check()
        self._settled = None
        started = time.monotonic()
        done = Performed()
        if kind == "wait":
            time.sleep(_WAIT_S)
        elif kind != "nothing":
            done = self._actors.perform(kind, what, self._options.action_s)
        settled = True
        if kind != "nothing":
            settled = self._settle(SETTLE_S)
        self._processes.check()
        self._actors.prepare()
        return done, settled, time.monotonic() - started

    def _settle(self, limit_s: float) -> bool:
        """Waits until nothing changes any more; returns whether that happened in time.

        A tree is enough if nothing ran before it was read and the screen showed the same before and
        after. Otherwise (a caret blinks, the office goes on working), two trees in a row must be
        equal.
        """
        if "settling" not in self._corrections:
            time.sleep(_PUBLISHED_PAUSE_S)
            return True
        end = time.monotonic() + limit_s
        last = None
        for looks in itertools.count(1):
            self._processes.check()
            rested = self._rest()
            view, started = self._view(), time.perf_counter()
            nodes = self._read()
            seconds = time.perf_counter() - started
            shown = [node.row() for node in nodes]
            same = view == self._view()
            if shown == last or (rested and same):
                self._settled = _Seen(view, nodes, seconds) if same else None
                return True
            if looks >= _MIN_LOOKS and time.monotonic() > end:
                break
            last = shown
        return False

    def _rest(self) -> bool:
        """Waits, within a limit, until nothing ran for a while; returns whether that happened."""
        end = time.monotonic() + _AWAIT_REST_S
        busy = time.monotonic()
        while (now := time.monotonic()) < end:
            if not self._processes.at_rest():
                busy = now
            elif now - busy >= _REST_S:
                return True
            time.sleep(_LOOK_S)
        return False

    def feed(self, events: list[tuple[str, int, int, str]]) -> None:
        """Repeats a person's mouse and keyboard events.

        Raises:
            BrokenError: the desktop broke.
        """
        self._processes.check()
        self._settled = None
        self._screen.work(events)

    def frame(self, shown_digest: str) -> tuple[str, bytes | None]:
        """Returns the digest of the screen, and its picture unless the caller already has it.

        Raises:
            BrokenError: the desktop broke.
        """
        self._processes.check()
        shown = self._screen.bare_picture()
        digest = hashlib.blake2b(shown.tobytes(), digest_size=16).hexdigest()
        return digest, None if digest == shown_digest else screen.as_png(shown)

    # collecting the file

    def save(self) -> tuple[str, bool, bytes | None]:
        """Saves as a user does, and collects the file.

        Raises:
            BrokenError: the desktop broke.
        """
        self._processes.check()
        self._settled = None
        name = os.path.basename(self._saved)
        windows = self._screen.windows()
        titled = [window for window in windows if name in window.title]
        target = (
            titled[0].number
            if titled
            else next((window.number for window in windows if window.number == self._main), 0)
        )
        if target:
            self._screen.activate(target)
            self._processes.wait_for(
                "the active window", lambda: self._screen.active() != 0, _PART_S
            )
            time.sleep(0.1)
            self._press_save()
        return self.collect()

    def _press_save(self) -> None:
        """Presses ctrl+s, and waits until the file is written or nothing changes any more."""
        before = last = self._stamp()
        self._screen.press("Control_L", "s")
        end = time.monotonic() + _SAVED_S
        rests = 0
        answered = False
        while time.monotonic() < end:
            self._processes.check()
            time.sleep(_LOOK_S)
            now, at_rest = self._stamp(), self._processes.at_rest()
            if at_rest and now is not None and before != now == last:
                return
            last = now
            # Saving a large file takes long, and so does everything on a busy machine.
            rests = rests + 1 if at_rest else 0
            if rests * _LOOK_S >= _UNCHANGED_S:
                if answered or not self._keep_format():
                    return  # nothing has changed, or the file cannot be saved
                answered, rests = True, 0

    def _keep_format(self) -> bool:
        """Answers the dialog about the format of the file, if it appears."""
        keeping = kept_format(self._read())
        if keeping is None:
            return False
        for kind in ("move", "press", "release"):
            self._screen.work([(kind, *keeping, "left")])
            time.sleep(_HOLD_S)
        return True

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            status = os.lstat(self._saved)
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def collect(self) -> tuple[str, bool, bytes | None]:
        """Reads the file or folder: its status, whether it changed, and its bytes."""
        status, _, content = files.collect(self._collected, _MAX_FILE_BYTES)
        return status, content is not None and content != self._before, content

    def memory_bytes(self) -> int:
        """Returns the memory of everything that runs on the desktop."""
        return self._processes.memory_bytes()

    def close(self) -> None:
        """Ends the desktop."""
        self._actors.close()
        for part in reversed(self._processes.parts):
            with contextlib.suppress(OSError):
                part.process.send_signal(signal.SIGKILL)


def kept_format(nodes: Sequence[Node]) -> tuple[int, int] | None:
    """Returns where to click so that a file keeps its format; None without such a dialog.

    The dialog has one button for the office's own format and one for the file's format. Their
    labels, and which of them has the focus, differ between versions.
    """
    buttons = [
        node
        for node in nodes
        if node.role.endswith("button") and node.box is not None and "showing" in node.states
    ]
    dialog = next((node.parent for node in buttons if "ODF" in node.name), None)
    for node in buttons:
        if dialog is not None and node.parent == dialog and "ODF" not in node.name and node.box:
            x, y, width, height = node.box
            return x + width // 2, y + height // 2
    return None
