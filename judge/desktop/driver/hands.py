"""The driver's own mouse and keyboard, for a person who works in the desktop live."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from Xlib import XK, X
from Xlib.ext import xtest

from judge.desktop.driver.keys import Keyboard

_MAX_CLICKS = 50
_BUTTONS = {"left": 1, "middle": 2, "right": 3}
_WHEEL_UP, _WHEEL_DOWN = 4, 5
_SYMBOLS = {
    "enter": "Return", "return": "Return", "esc": "Escape", "escape": "Escape", "tab": "Tab",
    "backspace": "BackSpace", "delete": "Delete", "del": "Delete", "insert": "Insert",
    "space": "space", "home": "Home", "end": "End", "pageup": "Page_Up", "pgup": "Page_Up",
    "pagedown": "Page_Down", "pgdn": "Page_Down", "up": "Up", "down": "Down", "left": "Left",
    "right": "Right", "shift": "Shift_L", "shiftleft": "Shift_L", "shiftright": "Shift_R",
    "ctrl": "Control_L", "ctrlleft": "Control_L", "ctrlright": "Control_R", "alt": "Alt_L",
    "altleft": "Alt_L", "altright": "Alt_R", "win": "Super_L", "winleft": "Super_L",
    "winright": "Super_R", "command": "Super_L", "apps": "Menu", "capslock": "Caps_Lock",
    "numlock": "Num_Lock", "scrolllock": "Scroll_Lock", "pause": "Pause", "printscreen": "Print",
    "add": "KP_Add", "subtract": "KP_Subtract", "multiply": "KP_Multiply", "divide": "KP_Divide",
    "decimal": "KP_Decimal", "help": "Help", "clear": "Clear", "select": "Select",
    **{f"f{number}": f"F{number}" for number in range(1, 25)},
    **{f"num{number}": f"KP_{number}" for number in range(10)},
}  # fmt: skip
"""Names of keys: PyAutoGUI -> X."""


class InputPlayer:
    """Mouse and keyboard of a screen.

    Args:
        display: connection of python-xlib.
    """

    def __init__(self, display: Any) -> None:
        self._display = display
        self._keyboard = Keyboard(display)

    def do(self, events: Iterable[tuple[str, int, int, str]]) -> None:
        """Repeats a person's events in order; unknown keys and buttons are ignored.

        Args:
            events: kind, position and detail; see ``judge.desktop.contract.InputEvent``.
        """
        for kind, x, y, detail in events:
            if kind in {"move", "press", "release", "scroll"}:
                xtest.fake_input(self._display, X.MotionNotify, x=x, y=y)
                self._with_mouse(kind, detail)
            elif kind in {"key-press", "key-release"}:
                self._with_key(detail, pressed=kind == "key-press")
            elif kind == "type":
                self._keyboard.type(detail)
            self._display.sync()

    def _with_mouse(self, kind: str, detail: str) -> None:
        if kind == "scroll":
            try:
                clicks = max(-_MAX_CLICKS, min(round(float(detail)), _MAX_CLICKS))
            except (ValueError, OverflowError):
                return
            for _ in range(abs(clicks)):
                button = _WHEEL_UP if clicks > 0 else _WHEEL_DOWN
                xtest.fake_input(self._display, X.ButtonPress, button)
                xtest.fake_input(self._display, X.ButtonRelease, button)
        elif kind != "move" and detail in _BUTTONS:
            what = X.ButtonPress if kind == "press" else X.ButtonRelease
            xtest.fake_input(self._display, what, _BUTTONS[detail])

    def _with_key(self, name: str, *, pressed: bool) -> None:
        if len(name) == 1:
            self._with_character(name, pressed=pressed)
            return
        symbol = _SYMBOLS.get(name.lower())
        code = self._display.keysym_to_keycode(XK.string_to_keysym(symbol)) if symbol else 0
        if code:
            what = X.KeyPress if pressed else X.KeyRelease
            xtest.fake_input(self._display, what, code)

    def _with_character(self, character: str, *, pressed: bool) -> None:
        place = self._keyboard.place(character)
        if place is None:
            if pressed:
                self._keyboard.type(character)
            return
        code, level = place
        if not pressed:
            self._keyboard.release(code)
            return
        mask = self._display.screen().root.query_pointer().mask
        # If the person already holds Shift, it must stay pressed.
        self._keyboard.press(code, 0 if mask & X.ShiftMask else level)
