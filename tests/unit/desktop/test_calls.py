"""computer_13: what each kind of action does, and what is not an action."""

from __future__ import annotations

from typing import Any

import pytest

from judge.desktop.driver.calls import MAX_TEXT, Call, NoActionError, calls_of


@pytest.mark.parametrize(
    ("action", "name", "arguments", "options"),
    [
        ({"action_type": "MOVE_TO", "x": 10, "y": 20.4}, "moveTo", (10, 20), {"duration": 0.3}),
        ({"action_type": "CLICK"}, "click", (), {"button": "left", "clicks": 1}),
        (
            {"action_type": "CLICK", "button": "right", "x": 1, "y": 2, "num_clicks": 3},
            "click",
            (),
            {"x": 1, "y": 2, "button": "right", "clicks": 3},
        ),
        ({"action_type": "MOUSE_DOWN"}, "mouseDown", (), {"button": "left"}),
        ({"action_type": "MOUSE_UP", "button": "middle"}, "mouseUp", (), {"button": "middle"}),
        (
            {"action_type": "RIGHT_CLICK", "x": 5, "y": 6},
            "click",
            (),
            {"x": 5, "y": 6, "button": "right", "clicks": 1},
        ),
        (
            {"action_type": "DOUBLE_CLICK", "parameters": {"x": 5, "y": 6}},
            "click",
            (),
            {"x": 5, "y": 6, "button": "left", "clicks": 2},
        ),
        (
            {"action_type": "DRAG_TO", "x": 7, "y": 8},
            "dragTo",
            (7, 8),
            {"duration": 1.0, "button": "left"},
        ),
        ({"action_type": "SCROLL", "clicks": -3}, "scroll", (-3,), {}),
        ({"action_type": "SCROLL", "dx": 2}, "hscroll", (2,), {}),
        ({"action_type": "TYPING", "text": 'a;"b\n'}, "typewrite", ('a;"b\n',), {}),
        ({"action_type": "PRESS", "key": "Enter"}, "press", ("enter",), {}),
        ({"action_type": "KEY_DOWN", "key": "shift"}, "keyDown", ("shift",), {}),
        ({"action_type": "KEY_UP", "key": "shift"}, "keyUp", ("shift",), {}),
        ({"action_type": "HOTKEY", "keys": ["ctrl", "S"]}, "hotkey", ("ctrl", "S"), {}),
    ],
)
def test_each_kind_is_a_call(
    action: dict[str, Any], name: str, arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    assert calls_of(action) == (Call(name, arguments, options),)


def test_scrolling_both_ways_is_two_calls() -> None:
    found = calls_of({"action_type": "SCROLL", "dx": 1, "dy": -2})
    assert [(each.name, each.arguments) for each in found] == [
        ("hscroll", (1,)),
        ("vscroll", (-2,)),
    ]


@pytest.mark.parametrize("kind", ["WAIT", "FAIL", "DONE"])
def test_signals_instead_of_actions_do_nothing(kind: str) -> None:
    assert calls_of({"action_type": kind}) == ()


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ({}, "no such action_type"),
        ({"action_type": "click"}, "no such action_type"),
        ({"action_type": ["CLICK"]}, "no such action_type"),
        ({"action_type": "MOVE_TO"}, "needs numbers for x and y"),
        ({"action_type": "MOVE_TO", "x": 1}, "needs numbers for x and y"),
        ({"action_type": "MOVE_TO", "x": True, "y": 1}, "needs numbers"),
        ({"action_type": "MOVE_TO", "x": float("nan"), "y": 1}, "out of reach"),
        ({"action_type": "MOVE_TO", "x": 1, "y": 40_000}, "out of reach"),
        ({"action_type": "CLICK", "button": "fourth"}, "button is one of"),
        ({"action_type": "CLICK", "num_clicks": 4}, "at most 3"),
        ({"action_type": "CLICK", "num_clicks": 0}, "1, 2 or 3"),
        ({"action_type": "CLICK", "x": "/tmp/a.png", "y": 1}, "needs numbers"),
        ({"action_type": "CLICK", "z": 1}, "no parameter"),
        ({"action_type": "SCROLL"}, "needs clicks"),
        ({"action_type": "SCROLL", "clicks": 1.5}, "whole number"),
        ({"action_type": "SCROLL", "clicks": 10**9}, "at most"),
        ({"action_type": "TYPING", "text": 7}, "must be a string"),
        ({"action_type": "TYPING", "text": "a" * (MAX_TEXT + 1)}, "at most"),
        ({"action_type": "PRESS", "key": "any"}, "there is no key"),
        ({"action_type": "HOTKEY", "keys": "ctrl"}, "list of"),
        ({"action_type": "HOTKEY", "keys": []}, "list of"),
        ({"action_type": "HOTKEY", "keys": ["ctrl", None]}, "there is no key"),
        ({"action_type": "PRESS", "parameters": ["enter"]}, "must be an object"),
    ],
)
def test_an_invalid_action_is_refused_with_a_reason(action: dict[str, Any], why: str) -> None:
    with pytest.raises(NoActionError, match=why):
        calls_of(action)
