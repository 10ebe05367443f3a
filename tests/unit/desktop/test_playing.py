"""Step lists on a scripted desktop: what is looked up, what is waited for, what fails."""

from __future__ import annotations

from dataclasses import replace

import pytest

from judge.desktop.contract import (
    Action,
    ActionOutcome,
    DesktopOptions,
    DesktopTask,
    Element,
    Observation,
    Signal,
)
from judge.desktop.steps import play, steps_of
from judge.errors import UsageError
from tests.fakes.desktop import ELEMENTS, DesktopScript, ScriptedDesktop

SAVE = {"click": {"role": "button", "name": "Save"}}
BUSY = tuple(
    replace(each, states=frozenset({"showing"})) if each.name == "Save" else each
    for each in ELEMENTS
)


def opened(script: DesktopScript) -> ScriptedDesktop:
    task = DesktopTask({"/home/user/a.xlsx": b""}, "/home/user/a.xlsx", "/home/user/a.xlsx")
    return ScriptedDesktop(script, task, DesktopOptions())


def seen(*elements: Element) -> Observation:
    return Observation(None, elements, windows=("a.xlsx - LibreOffice Calc",))


def test_the_tree_is_read_before_each_step_and_busy_buttons_are_awaited() -> None:
    moved = tuple(replace(each, x=20) if each.name == "Save" else each for each in ELEMENTS)
    looks = (seen(*BUSY), seen(), seen(*ELEMENTS), seen(*moved))
    desktop, pauses = opened(DesktopScript(looks)), list[float]()
    steps = steps_of([SAVE, SAVE, {"say": "DONE"}], "list")
    played = list(play(desktop, steps, pause=pauses.append))
    clicks = [
        f"import pyautogui\npyautogui.click({x}, 3, clicks=1, button='left')" for x in (13, 23)
    ]
    done = Action(signal=Signal.DONE)
    assert desktop.performed == [Action(code=clicks[0]), Action(code=clicks[1]), done]
    assert [each.action for each in played] == desktop.performed
    assert len(pauses) == 2
    assert played[0].seen.elements == ELEMENTS
    assert desktop.looks == [(False, True, False)] * 4  # nobody looks before DONE


def test_screenshots_are_taken_only_if_they_are_kept() -> None:
    desktop = opened(DesktopScript())
    (played,) = play(desktop, steps_of([SAVE], "list"), screenshots=True)
    assert played.seen.screenshot is not None


def test_a_missing_element_is_reported_with_the_existing_ones() -> None:
    desktop, pauses = opened(DesktopScript()), list[float]()
    steps = steps_of([{"click": {"cell": "A1"}}, {"click": {"cell": "B7"}}], "list")
    with pytest.raises(UsageError, match=r"step 2 \(click on table-cell 'B7'\).*none") as caught:
        list(play(desktop, steps, pause=pauses.append))
    assert caught.value.hint is not None
    assert "of the role 'table-cell' there are 'A1'" in caught.value.hint
    assert "input.xlsx - LibreOffice Calc" in caught.value.hint
    assert len(desktop.performed) == 1
    assert len(pauses) == 19


def test_a_missing_role_is_reported_with_the_existing_roles() -> None:
    desktop = opened(DesktopScript())
    with pytest.raises(UsageError) as caught:
        list(play(desktop, steps_of([{"wait": {"role": "dialog"}}], "list"), pause=lambda _: None))
    assert "the tree has the roles filler, frame, menu, push-button, table-cell" in str(
        caught.value.hint
    )


def test_an_action_that_fails_ends_the_list() -> None:
    desktop = opened(DesktopScript(outcomes=(ActionOutcome(error="NameError: x\n"),)))
    with pytest.raises(UsageError, match=r"step 1 \(type 'a'\) failed: NameError: x$"):
        list(play(desktop, steps_of([{"type": "a"}, {"type": "b"}], "list")))
    assert len(desktop.performed) == 1
