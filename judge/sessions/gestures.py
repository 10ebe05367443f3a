"""Converts a browser's mouse and keyboard events to input, and to actions of computer_13.

A click, a drag, a run of typed characters, a combination of keys or a scroll is a gesture, and
becomes one action or a few. The steps of people are thus counted like those of chat models, and a
person's episode can be replayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from judge.desktop.contract import Action, InputEvent
from judge.errors import UsageError

MODIFIERS = ("ctrl", "shift", "alt")
BUTTONS = ("left", "middle", "right")

MAX_EVENTS = 2000
"""The largest number of events in one request."""

_MAX_TYPED_CHARS = 10_000
_MAX_WHEEL_CLICKS = 100

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

    Modifier keys are pressed on the desktop just before the event that needs them, and released as
    soon as the page reports that they are up. A key therefore does not stay down if the browser
    missed its release.

    Args:
        width: the width of the screen in pixels.
        height: the height of the screen in pixels.
    """

    def __init__(self, width: int, height: int) -> None:
        self._width = width
        self._height = height
        self._x = self._y = 0
        self._held: list[str] = []

    @property
    def cursor(self) -> tuple[int, int]:
        """Position of the mouse in pixels."""
        return self._x, self._y

    def read(self, events: Any) -> list[InputEvent]:
        """Converts a list of events to input.

        Args:
            events: objects with ``kind`` (``move``, ``press``, ``release``, ``scroll``, ``key``,
                ``text`` or ``held``), ``detail``, ``held`` (the modifier keys that are down), and
                for the mouse ``x`` and ``y``.

        Raises:
            UsageError: it is not such a list. In this case, nothing changes.
        """
        if not isinstance(events, list) or len(events) > MAX_EVENTS:
            raise UsageError(f"events must be a list of at most {MAX_EVENTS}")
        before = self._x, self._y, list(self._held)
        try:
            return [event for record in events for event in self._events(record)]
        except (UsageError, LookupError, TypeError, ValueError, ArithmeticError) as error:
            self._x, self._y, self._held = before
            raise UsageError(f"not an event of mouse or keyboard: {error}") from error

    def let_go(self) -> list[InputEvent]:
        """Releases all modifier keys."""
        return self._hold(())

    def _events(self, record: Mapping[str, Any]) -> Iterable[InputEvent]:
        if not isinstance(record, Mapping):
            raise UsageError("it is not an object")
        kind, detail = str(record["kind"]), str(record.get("detail", ""))
        held = tuple(name for name in MODIFIERS if name in record.get("held", ()))
        if kind in {"move", "press", "release", "scroll"}:
            self._x = _clamped(record["x"], self._width)
            self._y = _clamped(record["y"], self._height)
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
                if not 0 < abs(by) <= _MAX_WHEEL_CLICKS:
                    raise UsageError(f"{by} is not a possible number of wheel clicks")
                return [*self._hold(held), self._event("scroll", str(by))]
            case "text":
                if not 0 < len(detail) <= _MAX_TYPED_CHARS:
                    raise UsageError("text must have 1 to 10,000 characters")
                return [*self._hold(()), self._event("type", detail)]
            case "key":
                key = _KEYS.get(detail, detail.lower() if len(detail) == 1 else "")
                if not key:
                    return []
                stroke = [self._event("key-press", key), self._event("key-release", key)]
                return [*self._hold(held), *stroke]
        raise UsageError(f"there is no event {kind[:20]!r}")

    def _hold(self, names: Sequence[str]) -> list[InputEvent]:
        """Presses and releases modifier keys until exactly the given ones are down."""
        up = [self._event("key-release", name) for name in self._held if name not in names]
        down = [self._event("key-press", name) for name in names if name not in self._held]
        self._held = list(names)
        return [*up, *down]

    def _event(self, kind: str, detail: str = "") -> InputEvent:
        return InputEvent(kind, self._x, self._y, detail)


def _clamped(value: Any, size: int) -> int:
    return min(max(int(value), 0), size - 1)


_NEAR = 4
"""Largest distance in pixels that the mouse moves during a click; a drag moves farther."""

_AGAIN_S = 0.5
"""A click at the same position belongs to the previous click if it follows within these seconds."""

_MAX_CLICKS_IN_A_ROW = 3
_ENDS = {"enter": "\n", "tab": "\t"}
"""Keys that end a run of typed text, and the characters that they add to it."""


@dataclass(slots=True)
class Gesture:
    """A click, a drag, a run of typed text, a combination of keys, or a scroll.

    Attributes:
        began: when it began, in seconds of the caller's clock.
        ended: the time of its last event, in seconds of the same clock.
        calls: its actions, as calls of computer_13.
        events: its mouse and keyboard events.
    """

    began: float
    ended: float
    calls: list[Mapping[str, Any]] = field(default_factory=list)
    events: list[InputEvent] = field(default_factory=list)

    @property
    def actions(self) -> list[Action]:
        """The actions of the gesture."""
        return [Action(call=call) for call in self.calls]


@dataclass(slots=True)
class _Click:
    x: int
    y: int
    button: str
    held: tuple[str, ...]
    times: int = 1

    def calls(self) -> list[Mapping[str, Any]]:
        count = {"num_clicks": self.times} if self.times > 1 else {}
        call = _call("CLICK", button=self.button, x=self.x, y=self.y, **count)
        return _with_keys_held(self.held, [call])


@dataclass(slots=True)
class _Text:
    text: str

    def calls(self) -> list[Mapping[str, Any]]:
        return [_call("TYPING", text=self.text)]


@dataclass(slots=True)
class _Wheel:
    x: int
    y: int
    held: tuple[str, ...]
    by: int

    def calls(self) -> list[Mapping[str, Any]]:
        move, scroll = _call("MOVE_TO", x=self.x, y=self.y), _call("SCROLL", dx=0, dy=self.by)
        return _with_keys_held(self.held, [move, scroll])


class Gestures:
    """Combines events into gestures."""

    def __init__(self) -> None:
        self._held: list[str] = []
        self._down: tuple[InputEvent, tuple[str, ...]] | None = None
        self._open: _Click | _Text | _Wheel | None = None
        self._gesture: Gesture | None = None
        self._done: list[Gesture] = []

    @property
    def under_way(self) -> bool:
        """Whether a gesture has begun and may continue."""
        return self._gesture is not None

    def take(self, event: InputEvent, now: float) -> list[Gesture]:
        """Adds an event.

        Args:
            event: the event.
            now: its time, in seconds of the caller's clock.

        Returns:
            The gestures that it completes.
        """
        match event.kind:
            case "key-press" if event.detail in MODIFIERS:
                self._held.append(event.detail)
            case "key-release" if event.detail in self._held:
                self._held.remove(event.detail)
            case "press":
                self._press(event, now)
            case "release" if self._down is not None:
                self._release(event, now)
            case "scroll":
                self._scroll(event, now)
            case "type":
                self._type(event, event.detail, now)
            case "key-press":
                self._key(event, now)
            case _:
                if self._gesture is not None and event.kind != "move":
                    self._note(event, now)
        done, self._done = self._done, []
        return done

    def end(self, *, before: float | None = None) -> list[Gesture]:
        """Ends the gesture that is under way.

        Args:
            before: ends it only if its last event came before this time; None ends it anyway.
        """
        gesture = self._gesture
        is_due = gesture is not None and (before is None or gesture.ended < before)
        if is_due and (before is None or self._down is None):
            self._down = None
            self._close()
        done, self._done = self._done, []
        return done

    def _press(self, event: InputEvent, now: float) -> None:
        click = self._open
        goes_on = (
            isinstance(click, _Click)
            and self._gesture is not None
            and now - self._gesture.ended < _AGAIN_S
            and (click.button, click.held) == (event.detail, tuple(self._held))
            and _is_near((click.x, click.y), event)
            and click.times < _MAX_CLICKS_IN_A_ROW
        )
        if not goes_on:
            self._close()
        self._down = event, tuple(self._held)
        self._note(event, now)

    def _release(self, event: InputEvent, now: float) -> None:
        assert self._down is not None
        start, held = self._down
        self._down = None
        self._note(event, now)
        if not _is_near((start.x, start.y), event):
            self._end_click()
            drag = [
                _call("MOVE_TO", x=start.x, y=start.y),
                _call("DRAG_TO", x=event.x, y=event.y),
            ]
            self._finish(_with_keys_held(held, drag))
        elif isinstance(self._open, _Click):
            self._open.times += 1
        else:
            self._open = _Click(start.x, start.y, start.detail, held)

    def _end_click(self) -> None:
        """Ends a click that is followed by a drag, since a drag begins like a second click."""
        if self._open is not None and self._gesture is not None:
            self._gesture.calls.extend(self._open.calls())
            self._open = None

    def _scroll(self, event: InputEvent, now: float) -> None:
        wheel, held = self._open, tuple(self._held)
        if isinstance(wheel, _Wheel) and wheel.held == held and _is_near((wheel.x, wheel.y), event):
            wheel.by += int(event.detail)
        else:
            self._close()
            self._open = _Wheel(event.x, event.y, held, int(event.detail))
        self._note(event, now)

    def _type(self, event: InputEvent, text: str, now: float) -> None:
        if isinstance(self._open, _Text):
            self._open.text += text
        else:
            self._close()
            self._open = _Text(text)
        self._note(event, now)

    def _key(self, event: InputEvent, now: float) -> None:
        if event.detail in _ENDS and isinstance(self._open, _Text) and not self._held:
            self._type(event, _ENDS[event.detail], now)
            self._close()
            return
        self._close()
        self._note(event, now)
        keys = [*self._held, event.detail]
        single = len(keys) == 1
        self._finish([_call("PRESS", key=keys[0]) if single else _call("HOTKEY", keys=keys)])

    def _note(self, event: InputEvent, now: float) -> None:
        if self._gesture is None:
            self._gesture = Gesture(now, now)
        self._gesture.ended = now
        self._gesture.events.append(event)

    def _finish(self, calls: list[Mapping[str, Any]]) -> None:
        """Completes the gesture with these calls."""
        if self._gesture is not None:
            self._gesture.calls.extend(calls)
            self._done.append(self._gesture)
        self._gesture = None
        self._open = None

    def _close(self) -> None:
        """Completes the gesture that might have continued."""
        if self._open is not None:
            self._finish(self._open.calls())
        elif self._gesture is not None and self._down is None:
            self._gesture = None


def _call(action_type: str, **parameters: Any) -> Mapping[str, Any]:
    return {"action_type": action_type, **parameters}


def _with_keys_held(
    held: tuple[str, ...], calls: list[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Wraps calls in calls that hold keys down."""
    down = [_call("KEY_DOWN", key=key) for key in held]
    return [*down, *calls, *(_call("KEY_UP", key=key) for key in reversed(held))]


def _is_near(position: tuple[int, int], event: InputEvent) -> bool:
    return abs(position[0] - event.x) <= _NEAR and abs(position[1] - event.y) <= _NEAR
