"""The process that performs one action: mouse and keyboard by PyAutoGUI, and code.

Once it runs code, this process is untrusted. It shares only a pipe with the driver, on which it
reports what it did. These reports are limited in size, and are only shown to the model or person
who works on the desktop. The process reads one request, performs it, and ends.
"""

from __future__ import annotations

import builtins
import contextlib
import json
import linecache
import os
import resource
import sys
import time
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any

from judge.desktop.driver import calls, gui_only, keys, permitted

HOLD_S = 0.05
NAME = "<action>"
_ERROR_CHARS = 4_000
_EVENT_CHARS = 2_000
_MAX_MEMORY_BYTES = 640 << 20
_MAX_PROCESSES = 320
_MAX_FILE_BYTES = 128 << 20


class Reporter:
    """Reports events, each as one JSON line.

    Args:
        descriptor: the descriptor to write to.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._quiet = 0
        self._at: tuple[int, int] | None = None

    def say(self, **what: Any) -> None:
        """Writes one line."""
        data = json.dumps(what).encode() + b"\n"
        while data:
            data = data[os.write(self._descriptor, data) :]

    def event(self, kind: str, x: int, y: int, detail: str = "") -> None:
        """Reports a mouse or keyboard event, unless it moves the cursor to where it already is."""
        if self._quiet or (kind == "move" and self._at == (x, y)):
            return
        self._at = (x, y)
        self.say(event=[kind, int(x), int(y), detail[:_EVENT_CHARS]])

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Suppresses reports in its block, which has already been reported as one event."""
        self._quiet += 1
        try:
            yield
        finally:
            self._quiet -= 1


def main(corrections: list[str]) -> None:
    """Performs the request on standard input, and ends.

    Args:
        corrections: names of the corrections that apply.
    """
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # printed text is read from standard error
    for kind, most in (
        (resource.RLIMIT_AS, _MAX_MEMORY_BYTES),
        (resource.RLIMIT_NPROC, _MAX_PROCESSES),
        (resource.RLIMIT_FSIZE, _MAX_FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, (most, most))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # if memory runs out, this process ends, and not the desktop
    with contextlib.suppress(OSError):  # an action may have removed the folder
        os.chdir(os.environ["HOME"])
    reporter = Reporter(answers)
    gui = load(reporter, frozenset(corrections))
    reporter.say(ready=True)
    with os.fdopen(requests, "rb") as stream:
        line = stream.readline()
    if not line:
        return  # no longer needed
    request = json.loads(line)
    perform = _PERFORMERS[request["kind"]]
    error, refused = "", False
    try:
        perform(gui, request["what"])
    except (permitted.RefusedError, calls.NoActionError) as refusal:
        error, refused = str(refusal), True
    except SystemExit as stop:
        error = "" if stop.code in {None, 0} else f"SystemExit: {stop.code}"
    except BaseException as failure:  # noqa: BLE001 - however the action ends, the end is reported
        error = failure_text(failure)
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    reporter.say(end={"error": error, "refused": refused})
    os._exit(0)


def failure_text(failure: BaseException) -> str:
    """Returns the end of a traceback, only the part in the action's own code."""
    if isinstance(failure, permitted.FailedError):
        return str(failure)[-_ERROR_CHARS:]
    below = failure.__traceback__
    while below is not None and below.tb_frame.f_code.co_filename != NAME:
        below = below.tb_next
    return "".join(traceback.format_exception(type(failure), failure, below))[-_ERROR_CHARS:]


def load(reporter: Reporter, corrections: frozenset[str]) -> types.ModuleType:
    """Imports PyAutoGUI, applies the corrections, and makes it report everything it does."""
    # Without tkinter, this module would end the interpreter.
    sys.modules.setdefault("mouseinfo", types.ModuleType("mouseinfo"))
    import pyautogui  # noqa: PLC0415 - needs a screen

    backend: Any = pyautogui._pyautogui_x11  # noqa: SLF001
    pyautogui.FAILSAFE = False
    backend._mouse_is_swapped_setting = False  # noqa: SLF001 - it calls a program that is not installed
    if "held-clicks" in corrections:
        hold_clicks(backend)
    if "typing" in corrections:
        type_by_code(pyautogui, backend, reporter)
    report(backend, reporter)
    module: types.ModuleType = pyautogui
    return module


def hold_clicks(backend: Any) -> None:
    """Holds a button for a moment, as people do: programs miss a click that is too short."""
    wheel = backend._click  # noqa: SLF001

    def click(x: int, y: int, button: Any) -> None:
        if button not in {"left", "middle", "right", 1, 2, 3}:
            wheel(x, y, button)
            return
        backend._mouseDown(x, y, button)  # noqa: SLF001
        time.sleep(HOLD_S)
        backend._mouseUp(x, y, button)  # noqa: SLF001

    backend._click = click  # noqa: SLF001


def type_by_code(pyautogui: Any, backend: Any, reporter: Reporter) -> None:
    """Types characters by key code and level."""
    keyboard = keys.Keyboard(backend._display)  # noqa: SLF001
    named_down, named_up = backend._keyDown, backend._keyUp  # noqa: SLF001

    def write(
        message: Any,
        interval: float = 0.0,
        logScreenshot: Any = None,  # noqa: N803 - PyAutoGUI's name
        _pause: bool = True,
    ) -> None:
        del logScreenshot
        if isinstance(message, str):
            _type(keyboard, backend, reporter, message, interval)
        else:
            for each in message:
                if len(each) > 1:
                    pyautogui.press(each, _pause=False)
                else:
                    _type(keyboard, backend, reporter, each, 0.0)
                time.sleep(interval)
        if _pause and pyautogui.PAUSE:
            time.sleep(pyautogui.PAUSE)

    def down(key: Any) -> None:
        place = keyboard.place(key) if isinstance(key, str) and len(key) == 1 else None
        if place is not None:
            keyboard.press(*place)
        else:
            named_down(key)

    def up(key: Any) -> None:
        place = keyboard.place(key) if isinstance(key, str) and len(key) == 1 else None
        if place is not None:
            keyboard.release(place[0])
        else:
            named_up(key)

    pyautogui.write = pyautogui.typewrite = write
    backend._keyDown, backend._keyUp = down, up  # noqa: SLF001


def _type(
    keyboard: keys.Keyboard, backend: Any, reporter: Reporter, text: str, interval: float
) -> None:
    x, y = backend._position()  # noqa: SLF001
    reporter.event("type", x, y, text)
    with reporter.quiet():
        keyboard.type(text, max(keys.BETWEEN_S, float(interval)))


def report(backend: Any, reporter: Reporter) -> None:
    """Makes PyAutoGUI report what mouse and keyboard do."""

    def wrap(name: str, kind: str, spell: Callable[..., tuple[int, int, str]]) -> None:
        plain = getattr(backend, name)

        def does(*given: Any, **named: Any) -> Any:
            result = plain(*given, **named)
            with contextlib.suppress(ValueError, TypeError):
                reporter.event(kind, *spell(*given, **named))
            return result

        setattr(backend, name, does)

    def at(detail: object) -> tuple[int, int, str]:
        return (*backend._position(), str(detail))  # noqa: SLF001

    def button(_x: Any, _y: Any, button: Any) -> tuple[int, int, str]:
        return at({1: "left", 2: "middle", 3: "right"}.get(button, button))

    wrap("_moveTo", "move", lambda x, y: (round(x), round(y), ""))
    wrap("_mouseDown", "press", button)
    wrap("_mouseUp", "release", button)
    wrap("_keyDown", "key-press", at)
    wrap("_keyUp", "key-release", at)
    for name in ("_vscroll", "_hscroll"):
        _report_scroll(backend, name, reporter)
    backend._scroll = backend._vscroll  # noqa: SLF001


def _report_scroll(backend: Any, name: str, reporter: Reporter) -> None:
    plain = getattr(backend, name)

    def scroll(clicks: Any, x: Any = None, y: Any = None) -> None:
        sideways = " sideways" if name == "_hscroll" else ""
        at_x, at_y = backend._position()  # noqa: SLF001
        reporter.event("scroll", at_x, at_y, f"{int(clicks)}{sideways}")
        with reporter.quiet():
            plain(clicks, x, y)

    setattr(backend, name, scroll)


def run_code(gui: types.ModuleType, code: str) -> None:
    """Runs code as a Python program, with the modules that the published desktops import."""
    linecache.cache[NAME] = (len(code), None, code.splitlines(keepends=True), NAME)
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    vars(module).update(pyautogui=gui, time=time, __builtins__=builtins)
    exec(compile(code, NAME, "exec"), vars(module))  # noqa: S102 - its purpose


def run_gui_only(gui: types.ModuleType, code: str) -> None:
    """Interprets code that may only use mouse and keyboard."""
    gui_only.run(code, gui, time.sleep, lambda text: print(text, flush=True))  # noqa: T201


def run_call(gui: types.ModuleType, action: dict[str, Any]) -> None:
    """Performs an action of computer_13."""
    for call in calls.calls_of(action):
        getattr(gui, call.name)(*call.arguments, **call.options)


_PERFORMERS: dict[str, Callable[[types.ModuleType, Any], None]] = {
    "code": run_code,
    "gui-only": run_gui_only,
    "call": run_call,
}
