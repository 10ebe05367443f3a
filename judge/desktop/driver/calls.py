"""The thirteen kinds of action of computer_13, as calls of PyAutoGUI's functions.

Names and parameters are those that OSWorld and Spider2-V publish. An action is either
``{"action_type": "CLICK", "x": 1, "y": 2}`` or has its parameters under ``parameters``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_CLICKS = 3
MAX_SCROLL = 1_000
MAX_TEXT = 20_000
MAX_KEYS = 8
MAX_PIXELS = 32_767
"""Largest coordinate of the X protocol."""
MOVE_S = 0.3
DRAG_S = 1.0

BUTTONS = ("left", "middle", "right")
_NAMED_KEYS = """
    accept add alt altleft altright apps backspace browserback browserfavorites browserforward
    browserhome browserrefresh browsersearch browserstop capslock clear convert ctrl ctrlleft
    ctrlright decimal del delete divide down end enter esc escape execute f1 f2 f3 f4 f5 f6 f7 f8
    f9 f10 f11 f12 f13 f14 f15 f16 f17 f18 f19 f20 f21 f22 f23 f24 final fn hanguel hangul hanja
    help home insert junja kana kanji launchapp1 launchapp2 launchmail launchmediaselect left
    modechange multiply nexttrack nonconvert num0 num1 num2 num3 num4 num5 num6 num7 num8 num9
    numlock pagedown pageup pause pgdn pgup playpause prevtrack print printscreen prntscrn prtsc
    prtscr return right scrolllock select separator shift shiftleft shiftright sleep stop subtract
    tab up volumedown volumemute volumeup win winleft winright yen command option optionleft
    optionright
""".split()
KEYS = frozenset([*_NAMED_KEYS, *"\t\n\r", *map(chr, range(32, 127))])
"""The names of keys that can be pressed; letters in either case."""


class NoActionError(Exception):
    """The request is not an action of computer_13; the message says why."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function of PyAutoGUI.

    Attributes:
        name: the name of the function.
        arguments: the positional arguments.
        options: the keyword arguments.
    """

    name: str
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


def calls_of(action: Mapping[str, Any]) -> tuple[Call, ...]:
    """Translates an action to calls of PyAutoGUI; WAIT, FAIL and DONE need no calls.

    Raises:
        NoActionError: the action is not one of the thirteen, or has wrong parameters.
    """
    kind = action.get("action_type")
    if not isinstance(kind, str) or kind not in _PARAMETERS:
        raise NoActionError(
            f"no such action_type: {_shown(kind)}; known are {', '.join(_PARAMETERS)}"
        )
    given = action.get("parameters")
    if given is None:
        given = {name: value for name, value in action.items() if name != "action_type"}
        given.pop("parameters", None)
    if not isinstance(given, Mapping):
        raise NoActionError(f"{kind}: parameters must be an object")
    unknown = [name for name in given if name not in _PARAMETERS[kind]]
    if unknown:
        takes = ", ".join(_PARAMETERS[kind]) or "none"
        raise NoActionError(f"{kind} has no parameter {_shown(unknown[0])}; it takes {takes}")
    return _MAKERS[kind](kind, dict(given)) if kind in _MAKERS else ()


_PLACE = ("x", "y")
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "MOVE_TO": _PLACE,
    "CLICK": ("button", "x", "y", "num_clicks"),
    "MOUSE_DOWN": ("button",),
    "MOUSE_UP": ("button",),
    "RIGHT_CLICK": _PLACE,
    "DOUBLE_CLICK": _PLACE,
    "DRAG_TO": _PLACE,
    "SCROLL": ("clicks", "dx", "dy"),
    "TYPING": ("text",),
    "PRESS": ("key",),
    "KEY_DOWN": ("key",),
    "KEY_UP": ("key",),
    "HOTKEY": ("keys",),
    "WAIT": (),
    "FAIL": (),
    "DONE": (),
}


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:60]


def _place(kind: str, given: Mapping[str, Any], *, optional: bool) -> dict[str, int]:
    if optional and given.get("x") is None and given.get("y") is None:
        return {}
    numbers = {}
    for name in _PLACE:
        value = given.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise NoActionError(f"{kind} needs numbers for x and y, not {_shown(value)}")
        if not math.isfinite(value) or abs(value) > MAX_PIXELS:
            raise NoActionError(f"{kind}: {name} is out of reach: {_shown(value)}")
        numbers[name] = round(value)
    return numbers


def _whole(kind: str, given: Mapping[str, Any], name: str, most: int) -> int:
    value = given.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise NoActionError(f"{kind}: {name} must be a whole number, not {_shown(value)}")
    if abs(value) > most:
        raise NoActionError(f"{kind}: {name} is at most {most}, not {value}")
    return value


def _button(kind: str, given: Mapping[str, Any]) -> str:
    button = given.get("button")
    if button is None:
        return "left"
    if button not in BUTTONS:
        raise NoActionError(f"{kind}: button is one of {', '.join(BUTTONS)}, not {_shown(button)}")
    return str(button)


def _key(kind: str, key: object) -> str:
    if not isinstance(key, str) or key.lower() not in KEYS:
        raise NoActionError(f"{kind}: there is no key {_shown(key)}")
    return key if len(key) == 1 else key.lower()


def _move(kind: str, given: Mapping[str, Any]) -> tuple[Call, ...]:
    place = _place(kind, given, optional=False)
    return (Call("moveTo", (place["x"], place["y"]), {"duration": MOVE_S}),)


def _click(kind: str, given: Mapping[str, Any]) -> tuple[Call, ...]:
    place = _place(kind, given, optional=True)
    button = "right" if kind == "RIGHT_CLICK" else _button(kind, given)
    clicks = 2 if kind == "DOUBLE_CLICK" else 1
    if given.get("num_clicks") is not None:
        clicks = _whole(kind, given, "num_clicks", MAX_CLICKS)
        if clicks < 1:
            raise NoActionError(f"{kind}: num_clicks is 1, 2 or 3, not {clicks}")
    return (Call("click", (), {**place, "button": button, "clicks": clicks}),)


def _hold(kind: str, given: Mapping[str, Any]) -> tuple[Call, ...]:
    name = "mouseDown" if kind == "MOUSE_DOWN" else "mouseUp"
    return (Call(name, (), {"button": _button(kind, given)}),)


def _drag(kind: str, given: Mapping[str, Any]) -> tuple[Call, ...]:
    place = _place(kind, given, optional=False)
    return (Call("dragTo", (place["x"], place["y"]), {"duration": DRAG_S, "button": "left"}),)


def _scroll(kind: str, given: Mapping[str, Any]) -> tuple[Call, ...]:
    calls = []
    for name, function in (("clicks", "scroll"), ("dx", "hscroll"), ("dy", "vscroll")):
        if given.get(name) is not None:
            calls.append(Call(function, (_whole(kind, given, name, MAX_SCROLL),)))
    if not calls:
        raise NoActionError("SCROLL needs clicks, or dx and dy")
    return tuple(calls)


def _type(kind: str, given: Mapping[str, Any]) -> tuple[Call, ...]:
    text = given.get("text")
    if not isinstance(text, str):
        raise NoActionError(f"{kind}: text must be a string, not {_shown(text)}")
    if len(text) > MAX_TEXT:
        raise NoActionError(f"{kind}: text has at most {MAX_TEXT} characters, not {len(text)}")
    return (Call("typewrite", (text,)),)


def _press(kind: str, given: Mapping[str, Any]) -> tuple[Call, ...]:
    name = {"PRESS": "press", "KEY_DOWN": "keyDown", "KEY_UP": "keyUp"}[kind]
    return (Call(name, (_key(kind, given.get("key")),)),)


def _hotkey(kind: str, given: Mapping[str, Any]) -> tuple[Call, ...]:
    keys = given.get("keys")
    if not isinstance(keys, list) or not 0 < len(keys) <= MAX_KEYS:
        raise NoActionError(f"{kind}: keys must be a list of 1 to {MAX_KEYS} keys")
    return (Call("hotkey", tuple(_key(kind, key) for key in keys)),)


_MAKERS = {
    "MOVE_TO": _move,
    "CLICK": _click,
    "MOUSE_DOWN": _hold,
    "MOUSE_UP": _hold,
    "RIGHT_CLICK": _click,
    "DOUBLE_CLICK": _click,
    "DRAG_TO": _drag,
    "SCROLL": _scroll,
    "TYPING": _type,
    "PRESS": _press,
    "KEY_DOWN": _press,
    "KEY_UP": _press,
    "HOTKEY": _hotkey,
}
