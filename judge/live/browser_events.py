"""What a browser says about mouse and keyboard, as input for a desktop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from judge.desktop.contract import InputEvent
from judge.errors import UsageError

MODIFIERS = ("ctrl", "shift", "alt")
BUTTONS = ("left", "middle", "right")

MAX_EVENTS = 2000
"""As many events may come at once."""

_MAX_TEXT = 10_000
_MAX_CLICKS = 100

_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "Enter": "enter",
        "Tab": "tab",
        "Escape": "esc",
        "Backspace": "backspace",
        "Delete": "delete",
        "Insert": "insert",
        "Home": "home",
        "End": "end",
        " ": "space",
        "PageUp": "pageup",
        "PageDown": "pagedown",
        "ContextMenu": "apps",
        **{f"Arrow{name}": name.lower() for name in ("Up", "Down", "Left", "Right")},
        **{f"F{number}": f"f{number}" for number in range(1, 13)},
    }
)
"""Name of a key in a browser -> its name in PyAutoGUI."""


class BrowserEvents:
    """Reads the events of a page.

    Modifier keys are pressed in the desktop just before what needs them, and let go as soon as the
    page says so: a key whose release the browser never saw does not stay down.

    Args:
        width: of the screen, pixels.
        height: of the screen, pixels.
    """

    def __init__(self, width: int, height: int) -> None:
        self._width = width
        self._height = height
        self._x = self._y = 0
        self._held: list[str] = []

    @property
    def cursor(self) -> tuple[int, int]:
        """Where the mouse is, pixels."""
        return self._x, self._y

    def read(self, given: Any) -> list[InputEvent]:
        """The input that a list of events stands for.

        Args:
            given: objects with ``kind`` (``move``, ``press``, ``release``, ``scroll``, ``key``,
                ``text`` or ``held``), ``detail``, ``held`` (the modifier keys that are down), and,
                of the mouse, ``x`` and ``y``.

        Raises:
            UsageError: it is something else; nothing of it counts then.
        """
        if not isinstance(given, list) or len(given) > MAX_EVENTS:
            raise UsageError(f"events are a list of at most {MAX_EVENTS}")
        known = self._x, self._y, list(self._held)
        try:
            return [event for each in given for event in self._events(each)]
        except (UsageError, LookupError, TypeError, ValueError, ArithmeticError) as error:
            self._x, self._y, self._held = known
            raise UsageError(f"not an event of mouse or keyboard: {error}") from error

    def let_go(self) -> list[InputEvent]:
        """Lets go of all modifier keys."""
        return self._hold(())

    def _events(self, each: Mapping[str, Any]) -> Iterable[InputEvent]:
        if not isinstance(each, Mapping):
            raise UsageError("it is not an object")
        kind, detail = str(each["kind"]), str(each.get("detail", ""))
        held = tuple(name for name in MODIFIERS if name in each.get("held", ()))
        if kind in {"move", "press", "release", "scroll"}:
            self._x = _within(each["x"], self._width)
            self._y = _within(each["y"], self._height)
        match kind:
            case "move" | "held":
                kept = [name for name in self._held if name in held]
                moved = [self._event("move")] if kind == "move" else []
                return [*self._hold(kept), *moved]
            case "press" | "release":
                if detail not in BUTTONS:
                    raise UsageError(f"there is no button {detail[:20]!r}")
                return [*self._hold(held), self._event(kind, detail)]
            case "scroll":
                by = int(detail)
                if not 0 < abs(by) <= _MAX_CLICKS:
                    raise UsageError(f"a wheel is not turned by {by}")
                return [*self._hold(held), self._event("scroll", str(by))]
            case "text":
                if not 0 < len(detail) <= _MAX_TEXT:
                    raise UsageError("text has 1 to 10,000 characters")
                return [*self._hold(()), self._event("type", detail)]
            case "key":
                key = _KEYS.get(detail, detail.lower() if len(detail) == 1 else "")
                if not key:
                    return []
                stroke = [self._event("key-press", key), self._event("key-release", key)]
                return [*self._hold(held), *stroke]
        raise UsageError(f"there is no event {kind[:20]!r}")

    def _hold(self, wanted: Sequence[str]) -> list[InputEvent]:
        """Presses and releases modifier keys until just these are down."""
        up = [self._event("key-release", name) for name in self._held if name not in wanted]
        down = [self._event("key-press", name) for name in wanted if name not in self._held]
        self._held = list(wanted)
        return [*up, *down]

    def _event(self, kind: str, detail: str = "") -> InputEvent:
        return InputEvent(kind, self._x, self._y, detail)


def _within(value: Any, size: int) -> int:
    return min(max(int(value), 0), size - 1)
