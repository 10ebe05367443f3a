"""A browser's events become input for a desktop, and input becomes actions of computer_13."""

from __future__ import annotations

import pytest

from judge.desktop.contract import InputEvent
from judge.errors import UsageError
from judge.sessions.gestures import BrowserEvents, Gestures

Given = dict[str, object]


def mouse(kind: str, x: int, y: int, detail: str = "", held: tuple[str, ...] = ()) -> Given:
    return {"kind": kind, "x": x, "y": y, "detail": detail, "held": list(held)}


def key(detail: str, *held: str) -> Given:
    return {"kind": "key", "detail": detail, "held": list(held)}


def text(detail: str) -> Given:
    return {"kind": "text", "detail": detail}


def click(x: int, y: int, *held: str, button: str = "left") -> list[Given]:
    return [mouse("press", x, y, button, held), mouse("release", x, y, button, held)]


def read(*given: Given) -> list[tuple[str, str]]:
    return [(each.kind, each.detail) for each in BrowserEvents(800, 600).read(list(given))]


def calls(*given: Given, between_s: float = 0.1) -> list[list[dict[str, object]]]:
    """Returns the calls of each gesture."""
    gestures, now, found = Gestures(), 0.0, []
    for event in BrowserEvents(800, 600).read(list(given)):
        found += gestures.take(event, now)
        now += between_s
    return [[dict(call) for call in each.calls] for each in [*found, *gestures.end()]]


def test_modifier_keys_are_pressed_when_something_needs_them() -> None:
    control, shift = ("ctrl",), ("ctrl", "shift")
    assert read({"kind": "held", "held": ["ctrl"]}, mouse("move", 1, 1, "", control)) == [
        ("move", "")
    ]
    assert read(key("T", *shift), {"kind": "held", "held": []}) == [
        ("key-press", "ctrl"),
        ("key-press", "shift"),
        ("key-press", "t"),
        ("key-release", "t"),
        ("key-release", "ctrl"),
        ("key-release", "shift"),
    ]
    # `shift` was let go elsewhere, and the next event says so.
    assert read(key("Home", "shift"), text("A")) == [
        ("key-press", "shift"),
        ("key-press", "home"),
        ("key-release", "home"),
        ("key-release", "shift"),
        ("type", "A"),
    ]


def test_keys_of_browsers_have_the_names_of_pyautogui() -> None:
    names = ["ArrowDown", "Escape", "F2", "PageUp", " ", "Dead", "AudioVolumeUp", "+"]
    pressed = [detail for kind, detail in read(*map(key, names)) if kind == "key-press"]
    assert pressed == ["down", "esc", "f2", "pageup", "space", "+"]


def test_the_mouse_stays_on_the_screen() -> None:
    browser = BrowserEvents(800, 600)
    browser.read([mouse("move", -5, 4000)])
    assert browser.cursor == (0, 599)


@pytest.mark.parametrize(
    "given",
    [
        None,
        {},
        [1],
        [{}],
        [{"kind": "move"}],
        [{"kind": "move", "x": "left", "y": 0}],
        [{"kind": "move", "x": 1e999, "y": 0}],
        [{"kind": "move", "x": 0, "y": -1e999}],
        [{"kind": "move", "x": float("nan"), "y": 0}],
        [{"kind": "move", "x": 1, "y": 1, "held": 5}],
        ["move"],
        [None],
        [mouse("press", 1, 1, "thumb")],
        [mouse("scroll", 1, 1, "0")],
        [mouse("scroll", 1, 1, "far")],
        [{"kind": "text", "detail": ""}],
        [{"kind": "text", "detail": "x" * 10_001}],
        [{"kind": "paint", "held": []}],
        [mouse("move", 1, 1)] * 2001,
    ],
)
def test_what_is_not_an_event_is_refused_and_leaves_nothing(given: object) -> None:
    browser = BrowserEvents(800, 600)
    browser.read([mouse("move", 7, 8)])
    with pytest.raises(UsageError):
        browser.read(given)
    with pytest.raises(UsageError):
        browser.read([mouse("press", 1, 2, "left", ("ctrl",)), {}])
    assert browser.cursor == (7, 8)
    assert browser.let_go() == []


def test_clicks() -> None:
    one = {"action_type": "CLICK", "button": "left", "x": 5, "y": 6}
    other = {**one, "x": 50}
    assert calls(*click(5, 6), *click(50, 6)) == [[one], [other]]
    assert calls(*click(5, 6), mouse("move", 6, 6), *click(6, 7)) == [[{**one, "num_clicks": 2}]]
    assert calls(*click(5, 6), *click(5, 6), between_s=1.0) == [[one], [one]]
    assert calls(*click(5, 6), *click(5, 6, button="right")) == [
        [one],
        [{**one, "button": "right"}],
    ]
    assert calls(*click(5, 6, "ctrl")) == [
        [
            {"action_type": "KEY_DOWN", "key": "ctrl"},
            one,
            {"action_type": "KEY_UP", "key": "ctrl"},
        ]
    ]


def test_a_drag_and_a_drag_after_a_click() -> None:
    drag = [mouse("press", 5, 6, "left"), mouse("move", 90, 9), mouse("release", 100, 9, "left")]
    dragged = [
        {"action_type": "MOVE_TO", "x": 5, "y": 6},
        {"action_type": "DRAG_TO", "x": 100, "y": 9},
    ]
    assert calls(*drag) == [dragged]
    clicked = {"action_type": "CLICK", "button": "left", "x": 5, "y": 6}
    assert calls(*click(5, 6), *drag) == [[clicked, *dragged]]


def test_typed_text_is_one_action_with_the_key_that_ends_it() -> None:
    typed = [*map(text, "=A1"), key("Enter"), *map(text, "12"), key("Backspace"), text("3")]
    assert calls(*typed) == [
        [{"action_type": "TYPING", "text": "=A1\n"}],
        [{"action_type": "TYPING", "text": "12"}],
        [{"action_type": "PRESS", "key": "backspace"}],
        [{"action_type": "TYPING", "text": "3"}],
    ]


def test_keys_together_and_the_wheel() -> None:
    wheel = [mouse("scroll", 5, 5, "-2"), mouse("scroll", 6, 5, "-1")]
    assert calls(key("s", "ctrl"), *wheel, key("Enter", "alt")) == [
        [{"action_type": "HOTKEY", "keys": ["ctrl", "s"]}],
        [{"action_type": "MOVE_TO", "x": 5, "y": 5}, {"action_type": "SCROLL", "dx": 0, "dy": -3}],
        [{"action_type": "HOTKEY", "keys": ["alt", "enter"]}],
    ]


def test_a_gesture_ends_by_itself_but_not_with_a_button_down() -> None:
    gestures = Gestures()
    gestures.take(InputEvent("type", 0, 0, "a"), 1.0)
    assert gestures.under_way
    assert gestures.end(before=1.0) == []
    (typed,) = gestures.end(before=1.5)
    assert (typed.began, typed.ended, not gestures.under_way) == (1.0, 1.0, True)
    gestures.take(InputEvent("press", 5, 5, "left"), 2.0)
    assert gestures.end(before=9.0) == []
    assert gestures.under_way
    assert gestures.end() == []  # a press alone is no action
    assert not gestures.under_way
